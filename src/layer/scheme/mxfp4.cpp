// quant_method "mxfp4": gpt-oss. Its expert stacks are blocks of 32 e2m1 codes with an exponent each; nothing else is
// quantized (formats.md 7).
#include <algorithm>

#include "base/try.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/module_reader.h"
#include "layer/scheme/names.h"

namespace gearshift {
namespace {

constexpr int64_t kBlockBytes = 16;

bool is_merged_gate(std::string_view module_name) {
  const std::string_view last = last_component(module_name);
  return last == "gate_up_proj" || last == "w13";
}

Result<ModuleScheme> read_blocks(const ModuleTensors& module) {
  // [.., rows, blocks, 16] is [.., rows, blocks * 16] in the file: read as a matrix of bytes.
  const TensorInfo* stored = module.find("blocks");
  if (stored == nullptr) {
    return ModuleReader(module).contradiction("blocks", "no such tensor", "the codes that its scales belong to",
                                              "the checkpoint is incomplete");
  }
  if (stored->shape.size() < 3 || stored->shape.back() != kBlockBytes ||
      *(stored->shape.end() - 2) > (int64_t{1} << 31)) {
    return ModuleReader(module).contradiction("blocks",
                                              std::string(name(stored->dtype)) + " " + to_string(stored->shape),
                                              "U8 [experts, rows, blocks, 16]: two codes a byte, 32 a block");
  }
  TensorInfo bytes = *stored;
  bytes.shape.pop_back();
  bytes.shape.back() *= kBlockBytes;
  ModuleTensors flat = module;
  for (auto& [suffix, tensor] : flat.tensors) {
    if (tensor == stored) tensor = &bytes;
  }

  ModuleReader reader(flat);
  GEARSHIFT_TRY(const ModuleReader::Matrix w, reader.codes("blocks", {DType::u8}, "blocks of two FP4 codes a byte"));
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight.format = Format::e2m1;
  scheme.weight.storage = Storage::nibbles;
  scheme.weight.grouping = {Grouping::Kind::group, 1, 2 * kBlockBytes};
  scheme.weight.scale = DType::f8_e8m0;
  GEARSHIFT_CHECK(reader.take(TensorRole::weight_scale, "scales", kExponentScales, {w.rows, w.cols / kBlockBytes},
                              "one exponent per block"));
  GEARSHIFT_TRY(ModuleScheme read, reader.finish(scheme, w.rows, 2 * w.cols));
  if (is_merged_gate(module.name)) read.row_order = RowOrder::interleaved;
  return read;
}

class Reader final : public SchemeReader {
 public:
  explicit Reader(const ModelConfig& config) : config_(config) {}

  Result<void> parse() {
    const QuantConfig& quant = config_.quant;
    constexpr std::string_view key = "modules_to_not_convert";
    GEARSHIFT_TRY(const std::vector<std::string> entries, string_list(quant.dict->find(key), quant.key(key)));
    for (const std::string& entry : entries) not_converted_.add(entry);
    return {};
  }

  Result<ModuleScheme> read(const ModuleTensors& module) const override {
    const bool plain = is_plain_float(module);
    const std::optional<std::string> rule = rule_name(config_, module);
    if (!rule || not_converted_.match(*rule) || (plain && not_converted_.match_respelled(*rule)))
      return read_unquantized(module, config_);
    const bool stack = module.raw_stack || expert_name(module.name).has_value();
    if (plain && stack) return unexpected_float(module, "MXFP4 experts", config_.quant);
    const bool blocks = module.find("blocks") != nullptr || module.find("scales") != nullptr;
    return blocks && !plain ? read_blocks(module) : read_unquantized(module, config_);
  }

  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t n, int64_t k) const override {
    const std::optional<std::string> rule = rule_name(config_, module);
    const bool stack = module.raw_stack || expert_name(module.name).has_value();
    if (!rule || !stack || not_converted_.match(*rule) || not_converted_.match_respelled(*rule))
      return std::vector<ExpectedTensor>{};
    const int64_t blocks = ceil_div(k, 2 * kBlockBytes);
    return std::vector<ExpectedTensor>{{"blocks", DType::u8, {n, blocks, kBlockBytes}},
                                       {"scales", DType::u8, {n, blocks}}};
  }

 private:
  const ModelConfig& config_;
  ExcludeList not_converted_;
};

}  // namespace

extern const SchemeEntry mxfp4_scheme;
const SchemeEntry mxfp4_scheme = {
    "mxfp4",
    [](const QuantConfig& config) { return config.method == "mxfp4"; },
    [](const ModelConfig& config) -> Result<std::unique_ptr<SchemeReader>> {
      auto reader = std::make_unique<Reader>(config);
      GEARSHIFT_CHECK(reader->parse());
      return std::unique_ptr<SchemeReader>(std::move(reader));
    },
};

}  // namespace gearshift
