// Takes the tensors of one module one by one, each checked against the dtype and shape its scheme promises; what is
// left over in the end and belongs to quantization is a contradiction, too.
#pragma once

#include "base/math.h"
#include "layer/scheme/scheme.h"

namespace gearshift {

using DTypes = std::initializer_list<DType>;
// Scales as plain numbers, and as exponents of two (E8M0, also declared as bytes).
inline constexpr DTypes kFloatScales = {DType::f32, DType::bf16, DType::f16};
inline constexpr DTypes kExponentScales = {DType::u8, DType::f8_e8m0, DType::i8};

// Rounded up; b > 0.

class ModuleReader {
 public:
  explicit ModuleReader(const ModuleTensors& module) : module_(module) {}

  bool has(std::string_view suffix) const { return module_.find(suffix) != nullptr; }

  // The codes: a matrix, or a stack of matrices with a leading expert axis. Called first: later tensors must agree on
  // that axis. Returns {rows, columns} as stored.
  struct Matrix {
    int64_t rows = 0, cols = 0;
    DType dtype = DType::f32;
  };
  Result<Matrix> codes(std::string_view suffix, DTypes dtypes, std::string_view why);

  // A tensor of exactly these dimensions (dimensions of 1 may be missing or added, as exporters do). `why` ends the
  // sentence "wanted F32 [64, 8]: ...".
  Result<DType> take(TensorRole role, std::string_view suffix, DTypes dtypes, const Shape& shape, std::string_view why);
  // The same when the tensor is there; nullopt when it isn't.
  Result<std::optional<DType>> take_optional(TensorRole role, std::string_view suffix, DTypes dtypes,
                                             const Shape& shape, std::string_view why);
  // Checked nowhere and not part of the layer: known and without meaning here.
  void skip(std::string_view suffix) { used_.push_back(suffix); }

  // Takes the bias, refuses what is left of quantization, and returns the module.
  Result<ModuleScheme> finish(const Scheme& scheme, int64_t n, int64_t k);

  ErrorInfo contradiction(std::string_view suffix, std::string found, std::string wanted, std::string hint = "") const;

 private:
  Result<const TensorInfo*> required(std::string_view suffix, DTypes dtypes, std::string_view why);

  const ModuleTensors& module_;
  std::vector<std::string_view> used_;
  ModuleScheme result_;
};

}  // namespace gearshift
