#include <array>

#include "base/text.h"
#include "gearshift/device.h"

namespace gearshift {

namespace {
constexpr std::array<std::pair<Isa, std::string_view>, 7> kIsas = {{{Isa::portable, "portable"},
                                                                    {Isa::avx2, "avx2"},
                                                                    {Isa::avx512, "avx512"},
                                                                    {Isa::avx512_vnni, "avx512_vnni"},
                                                                    {Isa::avx512_bf16, "avx512_bf16"},
                                                                    {Isa::amx, "amx"},
                                                                    {Isa::neon, "neon"}}};
}  // namespace

std::string_view name(Isa isa) {
  for (const auto& [value, text] : kIsas) {
    if (value == isa) return text;
  }
  return "";
}

std::optional<Isa> parse_isa(std::string_view text) {
  std::string wanted = lower(text);
  for (char& c : wanted) {
    if (c == '-') c = '_';
  }
  for (const auto& [value, known] : kIsas) {
    if (known == wanted) return value;
  }
  return std::nullopt;
}

bool isa_covers(Isa have, Isa need) {
  if (need == Isa::portable || have == need) return true;
  if (have == Isa::neon || need == Isa::neon) return false;
  return have > need;
}

std::string_view name(Platform platform) {
  switch (platform) {
    case Platform::cpu:
      return "cpu";
    case Platform::cuda:
      return "cuda";
    case Platform::rocm:
      return "rocm";
    case Platform::xpu:
      return "xpu";
  }
  return "";
}

}  // namespace gearshift
