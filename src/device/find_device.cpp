// How a name finds a device.
#include <algorithm>

#include "base/text.h"
#include "device/cuda.h"
#include "gearshift/device.h"

namespace gearshift {

namespace {

// "RTX PRO 6000", "rtx-pro-6000" and "rtx_pro_6000" are one name.
std::string key(std::string_view text) {
  std::string out = lower(text);
  std::erase_if(out, [](char c) { return c == '-' || c == '_' || c == ' '; });
  return out;
}

bool answers_to(const DeviceProfile& device, const std::string& wanted) {
  if (key(device.arch) == wanted || key(device.name) == wanted) return true;
  const size_t vendor = device.name.find(' ');
  const bool host_cpu = device.present && device.platform == Platform::cpu;
  if (!host_cpu && vendor != std::string::npos && key(device.name.substr(vendor + 1)) == wanted) return true;
  return std::any_of(device.aliases.begin(), device.aliases.end(),
                     [&](const auto& alias) { return key(alias) == wanted; });
}

// "cuda" or "cuda:<digits>" (and the same for rocm): a device of this machine.
std::optional<Platform> local_platform(const std::string& wanted) {
  const size_t colon = wanted.find(':');
  const std::string index = colon == std::string::npos ? "0" : wanted.substr(colon + 1);
  if (!parse_integer(index) || index.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  for (Platform platform : {Platform::cuda, Platform::rocm}) {
    if (wanted.substr(0, colon) == name(platform)) return platform;
  }
  return std::nullopt;
}

ErrorInfo not_here(std::string_view asked, Platform platform) {
  if (platform == Platform::cuda) return cuda::no_device(asked);
  return {ErrorCode::usage,
          "--device " + printable(asked),
          "no ROCm device that this build can use on this machine",
          "a device that is here",
          "to plan for one that is not here, name it, for example --device gfx950",
          {}};
}

ErrorInfo unknown_device(std::string_view asked, const std::vector<DeviceProfile>& known) {
  ErrorInfo error{ErrorCode::usage, "--device", printable(asked), "cpu, cuda, cuda:<number> or a known device", "", {}};
  std::vector<std::string_view> names = {"cpu", "cuda"};
  for (const DeviceProfile& device : known) {
    names.push_back(device.arch);
    names.insert(names.end(), device.aliases.begin(), device.aliases.end());
    if (!device.present)
      error.details.push_back(device.arch + ": " + device.name + " (" + join(device.aliases, ", ") + ")");
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::vector<std::string> near = near_names(lower(asked), names);
  error.hint = near.empty() ? "`gearshift devices` lists them" : "did you mean " + join(near, ", ") + "?";
  return error;
}

}  // namespace

Result<DeviceProfile> find_device(std::string_view name, const DeviceProfile& host) {
  const std::string wanted = key(name);
  if (wanted == "cpu") return host;
  if (const auto platform = local_platform(wanted)) {
    const std::string numbered = wanted.find(':') == std::string::npos ? wanted + ":0" : wanted;
    for (DeviceProfile& device : cuda_devices()) {
      if (device.aliases.front() == numbered) return std::move(device);
    }
    return not_here(name, *platform);
  }
  std::vector<DeviceProfile> known = known_devices(host);
  for (DeviceProfile& device : known) {
    if (!wanted.empty() && answers_to(device, wanted)) return std::move(device);
  }
  return unknown_device(name, known);
}

}  // namespace gearshift
