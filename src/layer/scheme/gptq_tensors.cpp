// The tensors of a GPTQ module (formats.md 5.2, 5.3).
#include "base/try.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/gptq.h"
#include "layer/scheme/module_reader.h"

namespace gearshift::gptq {
namespace {

// K from the packed rows, which hold whole words of codes.
Result<int64_t> columns(const ModuleReader& reader, int64_t words, int64_t bits) {
  if (words * 32 % bits == 0) return words * 32 / bits;
  return reader.contradiction("qweight", std::to_string(words) + " rows of words",
                              "a multiple of " + std::to_string(bits) + " rows: codes of " + std::to_string(bits) +
                                  " bits, packed along the columns");
}

// Some configs say "one group a row" over tables with more: there the table is right (formats.md trap 24). The width is
// then taken only where it divides the row and is one that writers use.
int64_t group_of_table(const ModuleTensors& module, int64_t k) {
  const TensorInfo* scales = module.find("scales");
  if (scales == nullptr || scales->shape.size() != 2) return -1;
  const int64_t groups = scales->shape[0];
  if (groups <= 1 || k % groups != 0) return -1;
  const int64_t width = k / groups;
  return width >= 16 && (width & (width - 1)) == 0 ? width : -1;
}

}  // namespace

Result<ModuleScheme> read_module(const ModuleTensors& module, const Arguments& arguments) {
  const int64_t bits = arguments.bits;
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8) {
    return unsupported_scheme(arguments.subject, std::to_string(bits) + "-bit GPTQ", "2, 3, 4 or 8 bits");
  }
  ModuleReader reader(module);
  GEARSHIFT_TRY(const ModuleReader::Matrix packed,
                reader.codes("qweight", {DType::i32}, std::to_string(bits) + "-bit codes packed along the columns"));
  const int64_t n = packed.cols;
  GEARSHIFT_TRY(const int64_t k, columns(reader, packed.rows, bits));

  Scheme scheme;
  scheme.quantized = true;
  WeightScheme& weight = scheme.weight;
  weight.format = static_cast<Format>(static_cast<int64_t>(Format::uint2) + bits - 2);
  weight.storage = arguments.storage;
  weight.symmetric = arguments.symmetric;
  const int64_t group = arguments.group > 0 ? arguments.group : group_of_table(module, k);
  const int64_t groups = group > 0 ? ceil_div(k, group) : 1;
  weight.grouping = group > 0 ? Grouping{Grouping::Kind::group, 1, group} : Grouping{Grouping::Kind::whole_row, 1, 0};
  GEARSHIFT_TRY(weight.scale,
                reader.take(TensorRole::weight_scale, "scales", kFloatScales, {groups, n},
                            group > 0 ? "one row of scales per " + std::to_string(group) + " columns"
                                      : std::string("one row of scales: the config says one group a row")));
  const Shape zeros = {groups, ceil_div(n * bits, 32)};
  constexpr std::string_view why = "one packed zero point per scale";
  if (arguments.symmetric) {
    GEARSHIFT_CHECK(reader.take_optional(TensorRole::weight_zero_point, "qzeros", {DType::i32}, zeros, why));
  } else {
    GEARSHIFT_CHECK(reader.take(TensorRole::weight_zero_point, "qzeros", {DType::i32}, zeros, why));
  }
  GEARSHIFT_TRY(
      const std::optional<DType> index,
      reader.take_optional(TensorRole::weight_group_index, "g_idx", {DType::i32}, {k}, "one group index per column"));
  weight.act_order = arguments.act_order && index.has_value() && groups > 1;
  return reader.finish(scheme, n, k);
}

std::vector<ExpectedTensor> expected_tensors(const Arguments& arguments, int64_t n, int64_t k) {
  const int64_t bits = arguments.bits >= 1 && arguments.bits <= 32 ? arguments.bits : 32;  // others are refused later
  const int64_t groups = arguments.group > 0 ? ceil_div(k, arguments.group) : 1;
  return {{"qweight", DType::i32, {ceil_div(k * bits, 32), n}},
          {"qzeros", DType::i32, {groups, ceil_div(n * bits, 32)}},
          {"scales", DType::f16, {groups, n}},
          {"g_idx", DType::i32, {k}}};
}

}  // namespace gearshift::gptq
