// quant_method "awq": arguments and tensors (formats.md 6). Whether a module is quantized shows in its tensors.
#include "layer/scheme/awq.h"

#include <algorithm>

#include "base/text.h"
#include "base/try.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/module_reader.h"

namespace gearshift {
namespace awq {

Result<ModuleScheme> read_module(const ModuleTensors& module, const Arguments& arguments) {
  if (arguments.bits != 4) {
    return unsupported_scheme(arguments.subject, std::to_string(arguments.bits) + "-bit AWQ", "4 bits");
  }
  ModuleReader reader(module);
  GEARSHIFT_TRY(const ModuleReader::Matrix packed,
                reader.codes("qweight", {DType::i32}, "4-bit codes packed along the rows, eight a word"));
  const int64_t k = packed.rows;
  // The scales have one column a row of the weight; the last word of codes may be filled up.
  const TensorInfo* scales = module.find("scales");
  const int64_t columns = scales != nullptr && !scales->shape.empty() ? scales->shape.back() : 0;
  const int64_t n =
      columns > 0 && columns < packed.cols * 8 && ceil_div(columns, 8) == packed.cols ? columns : packed.cols * 8;
  const bool whole = arguments.group < 0;
  const int64_t groups = whole ? 1 : ceil_div(k, arguments.group);

  Scheme scheme;
  scheme.quantized = true;
  WeightScheme& weight = scheme.weight;
  weight.format = Format::uint4;
  weight.storage = Storage::awq;
  weight.symmetric = arguments.symmetric;
  weight.grouping =
      whole ? Grouping{Grouping::Kind::whole_row, 1, 0} : Grouping{Grouping::Kind::group, 1, arguments.group};
  GEARSHIFT_TRY(weight.scale,
                reader.take(TensorRole::weight_scale, "scales", kFloatScales, {groups, n},
                            whole ? std::string("one row of scales: the config says one group a row")
                                  : "one row of scales per " + std::to_string(arguments.group) + " columns"));
  GEARSHIFT_CHECK(reader.take(TensorRole::weight_zero_point, "qzeros", {DType::i32}, {groups, packed.cols},
                              "one packed zero point per scale"));
  return reader.finish(scheme, n, k);
}

std::vector<ExpectedTensor> expected_tensors(const Arguments& arguments, int64_t n, int64_t k) {
  const int64_t groups = arguments.group > 0 ? ceil_div(k, arguments.group) : 1;
  return {{"qweight", DType::i32, {k, ceil_div(n, 8)}},
          {"qzeros", DType::i32, {groups, ceil_div(n, 8)}},
          {"scales", DType::f16, {groups, n}}};
}

}  // namespace awq

namespace {

class Reader final : public SchemeReader {
 public:
  explicit Reader(const ModelConfig& config) : config_(config) {}

  Result<void> parse() {
    const QuantConfig& quant = config_.quant;
    // GPTQModel names the order of the codes `checkpoint_format`.
    const std::string version = lower(quant.dict->text_or("version", quant.dict->text_or("checkpoint_format", "gemm")));
    if (version != "gemm" && version != "exllama" && version != "ipex") {
      return unsupported_scheme(quant.key("version"), "awq in the order \"" + printable(version, 60) + "\"", "gemm");
    }
    GEARSHIFT_TRY(const std::optional<int64_t> bits, integer_member(*quant.dict, {"bits", "w_bit"}, quant.source));
    arguments_.bits = bits.value_or(4);
    arguments_.subject = quant.key("bits");
    GEARSHIFT_TRY(arguments_.group, group_size_member(*quant.dict, quant.source, arguments_.group));
    arguments_.symmetric = !quant.dict->boolean_or("zero_point", true);
    GEARSHIFT_TRY(not_converted_,
                  string_list(quant.dict->find("modules_to_not_convert"), quant.key("modules_to_not_convert")));
    return {};
  }

  Result<ModuleScheme> read(const ModuleTensors& module) const override {
    const std::optional<std::string> name = rule_name(config_, module);
    if (!name || is_plain_float(module)) return read_unquantized(module, config_);
    // Entries are parts of names. Inside a component ("gate" in gate_proj) one cannot contradict quantized tensors.
    const bool excluded = std::any_of(not_converted_.begin(), not_converted_.end(),
                                      [&](const std::string& entry) { return has_components(*name, entry); });
    return excluded ? read_unquantized(module, config_) : awq::read_module(module, arguments_);
  }

  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t n, int64_t k) const override {
    const std::optional<std::string> name = rule_name(config_, module);
    // Read as the writer does: an entry excludes every name that it is a part of.
    const auto excludes = [&](const std::string& entry) { return name->find(entry) != std::string::npos; };
    if (!name || !is_in_decoder(module) || std::any_of(not_converted_.begin(), not_converted_.end(), excludes))
      return std::vector<ExpectedTensor>{};
    return awq::expected_tensors(arguments_, n, k);
  }

 private:
  const ModelConfig& config_;
  awq::Arguments arguments_;
  std::vector<std::string> not_converted_;
};

}  // namespace

extern const SchemeEntry awq_scheme;
const SchemeEntry awq_scheme = {
    "awq",
    [](const QuantConfig& config) { return config.method == "awq"; },
    [](const ModelConfig& config) -> Result<std::unique_ptr<SchemeReader>> {
      auto reader = std::make_unique<Reader>(config);
      GEARSHIFT_CHECK(reader->parse());
      return std::unique_ptr<SchemeReader>(std::move(reader));
    },
};

}  // namespace gearshift
