#include "device/host_cpu.h"

#include <fstream>
#include <sstream>

#include "base/text.h"
#include "base/try.h"
#include "device/cpu_features.h"
#include "device/limits.h"

namespace gearshift {

namespace {

std::string one_blank_between_words(const std::string& text) {
  std::istringstream stream(text);
  std::string out;
  for (std::string word; stream >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::ostringstream text;
  text << file.rdbuf();
  if (std::string model = cpuinfo_model(text.str()); !model.empty()) return model;
  if (std::string brand = one_blank_between_words(cpu_brand()); !brand.empty()) return brand;
  return std::string(machine_arch()) + " CPU";
}

}  // namespace

std::string cpuinfo_model(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) return one_blank_between_words(line.substr(colon + 1));
  }
  return "";
}

Result<Isa> limit_isa(Isa have, std::string_view max_isa) {
  if (max_isa.empty()) return have;
  std::vector<std::string> valid;
  const std::vector<Isa> levels = have == Isa::neon ? std::vector<Isa>{Isa::portable, Isa::neon}
                                                    : std::vector<Isa>{Isa::portable,    Isa::avx2,        Isa::avx512,
                                                                       Isa::avx512_vnni, Isa::avx512_bf16, Isa::amx};
  for (Isa level : levels) valid.emplace_back(name(level));
  const std::optional<Isa> wanted = parse_isa(max_isa);
  for (Isa level : levels) {
    if (wanted == level) return isa_covers(have, level) ? level : have;
  }
  return ErrorInfo{ErrorCode::usage, "GEARSHIFT_MAX_ISA", printable(max_isa), "one of " + join(valid, ", "), "", {}};
}

Result<DeviceProfile> host_cpu(std::string_view max_isa) {
  GEARSHIFT_TRY(const Isa isa, limit_isa(detect_isa(), max_isa));
  DeviceProfile host;
  host.name = cpu_name();
  host.platform = Platform::cpu;
  host.arch = machine_arch();
  if (isa != Isa::portable) host.arch += "+" + std::string(name(isa));
  host.isa = isa;
  host.aliases = {"cpu"};
  host.present = true;
  host.cores = usable_cores();
  host.memory_bytes = usable_memory_bytes();
  return host;
}

}  // namespace gearshift
