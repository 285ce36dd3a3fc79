#include "store/place.h"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "gearshift/store.h"

namespace gearshift {

namespace {

// statfs(2); Lustre, GPFS and BeeGFS from their own sources.
constexpr std::array<uint32_t, 10> network_file_systems = {
    0x6969,      // NFS
    0x517B,      // SMB
    0xFE534D42,  // SMB 2
    0xFF534D42,  // CIFS
    0x5346414F,  // AFS
    0x01021997,  // 9p
    0x00C36400,  // Ceph
    0x0BD00BD0,  // Lustre
    0x47504653,  // GPFS
    0x19830326   // BeeGFS
};
constexpr uint32_t fuse_magic = 0x65735546;

// The 22nd field of /proc/PID/stat: when it was started, in ticks since boot. "" where there is no such process.
std::string start_time(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string stat = text.str();
  const size_t after_name = stat.rfind(')');  // the name may hold blanks and brackets
  if (after_name == std::string::npos) return "";
  std::istringstream words(stat.substr(after_name + 1));
  std::string word;
  for (int field = 3; field <= 22; ++field) words >> word;
  return word;
}

}  // namespace

std::string default_store_path(const char* xdg_state_home, const char* home) {
  const auto absolute = [](const char* path) { return path != nullptr && path[0] == '/'; };
  if (absolute(xdg_state_home)) return std::string(xdg_state_home) + "/gearshift/store.sqlite";
  if (absolute(home)) return std::string(home) + "/.local/state/gearshift/store.sqlite";
  return "off";
}

bool on_network_disk(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::absolute(path, ignored).parent_path();
  struct statfs info {};
  while (statfs(folder.c_str(), &info) != 0) {
    if (folder == folder.parent_path()) return false;
    folder = folder.parent_path();
  }
  const auto type = static_cast<uint32_t>(info.f_type);
  return type == fuse_magic ||
         std::find(network_file_systems.begin(), network_file_systems.end(), type) != network_file_systems.end();
}

std::string this_process() {
  const std::string pid = std::to_string(getpid());
  return pid + "-" + start_time(pid);
}

bool may_be_alive(const std::string& host, const std::string& process) {
  if (host != this_host()) return true;
  const size_t dash = process.find('-');
  if (dash == std::string::npos || !parse_integer(process.substr(0, dash))) return false;
  return start_time(process.substr(0, dash)) == process.substr(dash + 1);
}

std::string this_host() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

bool make_folders_for(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  return !error;
}

}  // namespace gearshift
