// Arguments objects and presets of compressed-tensors. Source: compressed-tensors, quantization/quant_args.py and
// quantization/quant_scheme.py.
#include <array>

#include "base/text.h"
#include "base/try.h"
#include "layer/scheme/compressed_tensors.h"

namespace gearshift::compressed_tensors {
namespace {

constexpr int64_t kMaxGroup = int64_t{1} << 31;

ErrorInfo wrong(const std::string& subject, std::string_view key, const Json& value, std::string wanted) {
  std::string found(name(value.kind));
  if (value.is(Json::Kind::string)) found = "\"" + printable(value.string, 60) + "\"";
  if (value.is(Json::Kind::integer)) found = std::to_string(value.integer);
  if (value.is(Json::Kind::number)) found = std::to_string(value.number);
  return ErrorInfo{
      ErrorCode::damaged_checkpoint, subject + "." + std::string(key), std::move(found), std::move(wanted), "", {}};
}

// A member that is absent and one that is null mean the same.
const Json* member(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

Result<void> parse_bits(const Json& json, const std::string& subject, Arguments* arguments) {
  const Json* bits = member(json, "num_bits");
  if (bits == nullptr) return {};
  if (!bits->is(Json::Kind::integer)) {
    ErrorInfo error = wrong(subject, "num_bits", *bits, "an integer");
    error.code = ErrorCode::unsupported_scheme;
    error.found = "num_bits that is no integer (" + error.found + ")";
    error.hint = "the writer left the schema of compressed-tensors; quantize the original checkpoint again";
    return error;
  }
  if (bits->integer < 1 || bits->integer > 16) return wrong(subject, "num_bits", *bits, "1 to 16");
  arguments->bits = bits->integer;
  return {};
}

Result<void> parse_group_size(const Json& json, const std::string& subject, Arguments* arguments, bool* whole_row) {
  const Json* size = member(json, "group_size");
  *whole_row = false;
  if (size == nullptr) return {};
  if (!size->is(Json::Kind::integer) || size->integer == 0 || size->integer < -1 || size->integer > kMaxGroup) {
    return wrong(subject, "group_size", *size, "a positive integer, -1 or null");
  }
  *whole_row = size->integer == -1;
  arguments->group = *whole_row ? 0 : size->integer;
  return {};
}

Result<void> parse_strategy(const Json& json, const std::string& subject, bool whole_row, Arguments* arguments) {
  const Json* strategy = member(json, "strategy");
  if (strategy == nullptr) {
    arguments->strategy = whole_row ? Strategy::channel : arguments->group > 0 ? Strategy::group : Strategy::tensor;
    return {};
  }
  struct Word {
    std::string_view word;
    Strategy strategy;
  };
  constexpr std::array kWords = {Word{"tensor", Strategy::tensor}, Word{"channel", Strategy::channel},
                                 Word{"group", Strategy::group},   Word{"block", Strategy::block},
                                 Word{"token", Strategy::token},   Word{"tensor_group", Strategy::tensor_group}};
  for (const Word& word : kWords) {
    if (strategy->string == word.word) {
      arguments->strategy = word.strategy;
      const bool grouped = word.strategy == Strategy::group || word.strategy == Strategy::tensor_group;
      if (whole_row && word.strategy == Strategy::group) arguments->strategy = Strategy::channel;
      if (grouped && !whole_row && arguments->group == 0) {
        return ErrorInfo{ErrorCode::damaged_checkpoint,
                         subject + ".group_size",
                         "none",
                         "a size: the strategy is " + strategy->string,
                         "",
                         {}};
      }
      return {};
    }
  }
  ErrorInfo error = wrong(subject, "strategy", *strategy, "tensor, channel, group, block, token or tensor_group");
  if (strategy->string == "attn_head") error.code = ErrorCode::unsupported_scheme;
  return error;
}

Result<void> parse_block(const Json& json, const std::string& subject, Arguments* arguments) {
  if (arguments->strategy != Strategy::block) return {};
  const std::string wanted = "[rows, columns] or \"RxC\", both positive";
  const Json* block = member(json, "block_structure");
  if (block == nullptr) {
    return ErrorInfo{ErrorCode::damaged_checkpoint, subject + ".block_structure", "none", wanted, "", {}};
  }
  std::array<std::optional<int64_t>, 2> sides;
  if (block->is(Json::Kind::array) && block->items.size() == 2) {
    for (size_t i = 0; i < 2; ++i) {
      if (block->items[i].is(Json::Kind::integer)) sides[i] = block->items[i].integer;
    }
  } else if (block->is(Json::Kind::string)) {
    const std::vector<std::string> words = split(block->string, 'x');
    if (words.size() == 2) sides = {parse_integer(words[0]), parse_integer(words[1])};
  }
  for (const std::optional<int64_t>& side : sides) {
    if (!side || *side <= 0 || *side > kMaxGroup) return wrong(subject, "block_structure", *block, wanted);
  }
  arguments->block_rows = *sides[0];
  arguments->block_cols = *sides[1];
  return {};
}

Result<void> parse_words(const Json& json, const std::string& subject, Arguments* arguments) {
  if (const Json* type = member(json, "type"); type != nullptr) {
    if (type->string != "int" && type->string != "float") return wrong(subject, "type", *type, "\"int\" or \"float\"");
    arguments->is_float = type->string == "float";
  }
  if (const Json* symmetric = member(json, "symmetric"); symmetric != nullptr) {
    if (!symmetric->is(Json::Kind::boolean)) return wrong(subject, "symmetric", *symmetric, "true or false");
    arguments->symmetric = symmetric->boolean;
  }
  if (const Json* dynamic = member(json, "dynamic"); dynamic != nullptr) {
    const bool local = dynamic->string == "local";
    if (!local && !dynamic->is(Json::Kind::boolean))
      return wrong(subject, "dynamic", *dynamic, "true, false or \"local\"");
    arguments->dynamic = local ? Dynamic::local : dynamic->boolean ? Dynamic::yes : Dynamic::no;
  }
  if (const Json* order = member(json, "actorder"); order != nullptr) {
    const std::string word = lower(order->string);
    arguments->group_index = word == "group" || word == "dynamic" || (order->is(Json::Kind::boolean) && order->boolean);
    const bool none = word == "weight" || word == "static" || (order->is(Json::Kind::boolean) && !order->boolean);
    if (!arguments->group_index && !none) return wrong(subject, "actorder", *order, "\"group\", \"weight\" or null");
  }
  arguments->exponent_scales = json.text_or("scale_dtype", "") == "torch.uint8";
  return {};
}

Arguments integer(int64_t bits, Strategy strategy, int64_t group = 0, bool symmetric = true) {
  Arguments arguments;
  arguments.bits = bits;
  arguments.strategy = strategy;
  arguments.group = group;
  arguments.symmetric = symmetric;
  return arguments;
}

Arguments floating(int64_t bits, Strategy strategy, int64_t group = 0) {
  Arguments arguments = integer(bits, strategy, group);
  arguments.is_float = true;
  return arguments;
}

Arguments at_run_time(Arguments arguments, Dynamic dynamic = Dynamic::yes) {
  arguments.dynamic = dynamic;
  return arguments;
}

Arguments exponents(Arguments arguments) {
  arguments.exponent_scales = true;
  return arguments;
}

Arguments block(int64_t rows, int64_t cols) {
  Arguments arguments = floating(8, Strategy::block);
  arguments.block_rows = rows;
  arguments.block_cols = cols;
  return arguments;
}

}  // namespace

Result<std::optional<Arguments>> parse_arguments(const Json* json, const std::string& subject) {
  if (json == nullptr || json->is_null()) return std::optional<Arguments>{};
  if (!json->is(Json::Kind::object)) {
    return ErrorInfo{ErrorCode::damaged_checkpoint, subject, std::string(name(json->kind)),
                     "an object or null",           "",      {}};
  }
  Arguments arguments;
  bool whole_row = false;
  GEARSHIFT_CHECK(parse_bits(*json, subject, &arguments));
  GEARSHIFT_CHECK(parse_words(*json, subject, &arguments));
  GEARSHIFT_CHECK(parse_group_size(*json, subject, &arguments, &whole_row));
  GEARSHIFT_CHECK(parse_strategy(*json, subject, whole_row, &arguments));
  GEARSHIFT_CHECK(parse_block(*json, subject, &arguments));
  return std::optional<Arguments>{arguments};
}

std::optional<Preset> preset(std::string_view name) {
  const Arguments int8_token = at_run_time(integer(8, Strategy::token));
  const Arguments fp8_token = at_run_time(floating(8, Strategy::token));
  const Arguments nvfp4 = floating(4, Strategy::tensor_group, 16);
  const Arguments mxfp4 = exponents(floating(4, Strategy::group, 32)),
                  mxfp8 = exponents(floating(8, Strategy::group, 32));
  if (name == "UNQUANTIZED") return Preset{};
  if (name == "W8A8" || name == "INT8") return Preset{integer(8, Strategy::channel), int8_token};
  if (name == "W8A16") return Preset{integer(8, Strategy::channel), {}};
  if (name == "W4A16") return Preset{integer(4, Strategy::group, 128), {}};
  if (name == "W4A16_ASYM") return Preset{integer(4, Strategy::group, 128, false), {}};
  if (name == "W4A8") return Preset{integer(4, Strategy::group, 128), int8_token};
  if (name == "W4AFP8") return Preset{integer(4, Strategy::group, 128), fp8_token};
  if (name == "FP8") return Preset{floating(8, Strategy::tensor), floating(8, Strategy::tensor)};
  if (name == "FP8_DYNAMIC") return Preset{floating(8, Strategy::channel), fp8_token};
  if (name == "FP8_BLOCK") return Preset{block(128, 128), at_run_time(floating(8, Strategy::group, 128))};
  if (name == "NVFP4A16") return Preset{nvfp4, {}};
  if (name == "NVFP4") return Preset{nvfp4, at_run_time(nvfp4, Dynamic::local)};
  if (name == "MXFP4A16") return Preset{mxfp4, {}};
  if (name == "MXFP4") return Preset{mxfp4, at_run_time(mxfp4)};
  if (name == "MXFP8A16") return Preset{mxfp8, {}};
  if (name == "MXFP8") return Preset{mxfp8, at_run_time(mxfp8)};
  return std::nullopt;
}

Result<Layout> parse_format(std::string_view format, const std::string& subject) {
  struct Word {
    std::string_view word;
    Layout layout;
  };
  constexpr std::array kWords = {
      Word{"", Layout::by_arguments},
      Word{"dense", Layout::by_arguments},
      Word{"mixed-precision", Layout::by_arguments},  // every group says its own
      Word{"int-quantized", Layout::naive},
      Word{"float-quantized", Layout::naive},
      Word{"naive-quantized", Layout::naive},
      Word{"pack-quantized", Layout::packed},
      Word{"nvfp4-pack-quantized", Layout::nvfp4},
      Word{"mxfp4-pack-quantized", Layout::mxfp4},
      Word{"mxfp8-quantized", Layout::mxfp8},
  };
  for (const Word& word : kWords) {
    if (word.word == format) return word.layout;
  }
  return ErrorInfo{ErrorCode::unsupported_scheme,
                   subject,
                   "compressed-tensors format \"" + printable(format, 60) + "\"",
                   "a dense format of compressed-tensors",
                   "quantize the original float checkpoint with `gearshift quantize`",
                   {}};
}

}  // namespace gearshift::compressed_tensors
