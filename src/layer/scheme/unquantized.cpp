// Float weights: F32, F16 or BF16 [N,K], optionally a bias [N]; expert stacks [E,N,K] or, older, [E,K,N].
#include "base/try.h"
#include "layer/scheme/module_reader.h"

namespace gearshift {
namespace {

// Older transformers store expert stacks as [E, in, out] and multiply x @ W, newer ones [E, out, in]; the side that is
// as wide as the hidden state tells (formats.md 12.4). Where both are, the newer order is taken.
bool is_transposed_stack(const ModuleTensors& module, const Shape& shape, int64_t hidden) {
  if (shape.size() != 3 || hidden <= 0 || shape[1] == shape[2]) return false;
  const std::string_view last = last_component(module.name);
  const bool reads_hidden = last != "down_proj" && last != "w2";
  return reads_hidden ? shape[1] == hidden : shape[2] == hidden;
}

class UnquantizedReader final : public SchemeReader {
 public:
  explicit UnquantizedReader(const ModelConfig& config) : config_(config) {}
  Result<ModuleScheme> read(const ModuleTensors& module) const override { return read_unquantized(module, config_); }
  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors&, int64_t, int64_t) const override {
    return std::vector<ExpectedTensor>{};
  }

 private:
  const ModelConfig& config_;
};

}  // namespace

Result<ModuleScheme> read_unquantized(const ModuleTensors& module, const ModelConfig& config) {
  ModuleReader reader(module);
  GEARSHIFT_TRY(const ModuleReader::Matrix matrix, reader.codes("weight", {DType::bf16, DType::f16, DType::f32},
                                                                "the config says that this module is not quantized"));
  const Shape& shape = module.find("weight")->shape;
  Scheme scheme;
  int64_t n = matrix.rows, k = matrix.cols;
  if (is_transposed_stack(module, shape, config.hidden_size)) {
    scheme.weight.storage = Storage::dense_transposed;
    std::swap(n, k);
  }
  return reader.finish(scheme, n, k);
}

extern const SchemeEntry unquantized_scheme;
const SchemeEntry unquantized_scheme = {
    "unquantized",
    [](const QuantConfig& config) { return config.dict == nullptr; },
    [](const ModelConfig& config) -> Result<std::unique_ptr<SchemeReader>> {
      return std::unique_ptr<SchemeReader>(std::make_unique<UnquantizedReader>(config));
    },
};

}  // namespace gearshift
