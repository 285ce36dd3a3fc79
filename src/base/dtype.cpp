#include <array>

#include "gearshift/base.h"

namespace gearshift {
namespace {

struct DTypeRow {
  std::string_view name;
  int bits;
};

// In the order of the enumerators. Names and sizes are those of the safetensors format (huggingface/safetensors, enum
// Dtype).
constexpr std::array<DTypeRow, 19> kDTypes = {{{"F64", 64},
                                               {"F32", 32},
                                               {"F16", 16},
                                               {"BF16", 16},
                                               {"F8_E4M3", 8},
                                               {"F8_E5M2", 8},
                                               {"F8_E8M0", 8},
                                               {"F6_E2M3", 6},
                                               {"F6_E3M2", 6},
                                               {"F4", 4},
                                               {"I64", 64},
                                               {"I32", 32},
                                               {"I16", 16},
                                               {"I8", 8},
                                               {"U64", 64},
                                               {"U32", 32},
                                               {"U16", 16},
                                               {"U8", 8},
                                               {"BOOL", 8}}};
static_assert(static_cast<size_t>(DType::boolean) + 1 == kDTypes.size());

}  // namespace

std::string_view name(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int bits(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].bits; }

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace gearshift
