#include <array>

#include "layer/scheme/scheme.h"

namespace gearshift {

extern const SchemeEntry compressed_tensors_scheme;
extern const SchemeEntry modelopt_scheme;
extern const SchemeEntry fp8_scheme;
extern const SchemeEntry mistral_scheme;
extern const SchemeEntry fbgemm_fp8_scheme;
extern const SchemeEntry mxfp8_scheme;
extern const SchemeEntry gptq_scheme;
extern const SchemeEntry awq_scheme;
extern const SchemeEntry mxfp4_scheme;
extern const SchemeEntry quark_scheme;
extern const SchemeEntry auto_round_scheme;
extern const SchemeEntry unquantized_scheme;

std::span<const SchemeEntry* const> all_schemes() {
  static constexpr std::array kSchemes = {
      &compressed_tensors_scheme,
      &modelopt_scheme,
      &fp8_scheme,
      &mistral_scheme,
      &fbgemm_fp8_scheme,
      &mxfp8_scheme,
      &gptq_scheme,
      &awq_scheme,
      &mxfp4_scheme,
      &quark_scheme,
      &auto_round_scheme,
      &unquantized_scheme,  // last: takes what has no dictionary
  };
  return kSchemes;
}

}  // namespace gearshift
