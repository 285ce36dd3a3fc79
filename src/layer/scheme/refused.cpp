// Formats that are recognised and refused: by name in the config, and by the names of their tensors (formats.md
// sections 1 and 10). Everything here is data; the message is made in one place.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/try.h"
#include "layer/scheme/scheme.h"

namespace gearshift {
namespace {

constexpr std::string_view kFromFloat = "quantize the original float checkpoint with `gearshift quantize`";
constexpr std::string_view kRuntime =
    "it is a run-time mode of a serving engine, no checkpoint format: use the checkpoint it was made from";
constexpr std::string_view kLater =
    "convert it to compressed-tensors, or quantize the original float checkpoint with `gearshift quantize`";

constexpr std::array kFormats = {
    RefusedFormat{"bitsandbytes", "blocks of NF4, FP4 or INT8 codes with a look-up table, high nibble first",
                  kFromFloat},
    RefusedFormat{"torchao", "serialized tensor subclasses of torchao", kFromFloat},
    RefusedFormat{"hqq", "half-quadratic quantization with float zero points and meta objects", kFromFloat},
    RefusedFormat{"exl2", "ExLlamaV2: groups of mixed bit widths in permuted rows", kFromFloat},
    RefusedFormat{"exl3", "ExLlamaV3: trellis codes behind Hadamard transforms", kFromFloat},
    RefusedFormat{"gguf", "GGML block formats", kFromFloat},
    RefusedFormat{"fp_quant", "FP4 codes behind an online Hadamard rotation", kFromFloat},
    RefusedFormat{"aqlm", "additive vector quantization with learned codebooks", kFromFloat},
    RefusedFormat{"vptq", "vector post-training quantization with codebooks", kFromFloat},
    RefusedFormat{"higgs", "Hadamard-rotated grid codes", kFromFloat},
    RefusedFormat{"spqr", "sparse-quantized weights with outliers kept apart", kFromFloat},
    RefusedFormat{"quip", "incoherence-processed lattice codes", kFromFloat},
    RefusedFormat{"eetq", "INT8 weights in the interleaved order of one GPU kernel", kFromFloat},
    RefusedFormat{"quanto", "quantized tensor subclasses of optimum-quanto", kFromFloat},
    RefusedFormat{"bitnet", "ternary weights packed four a byte", kFromFloat},
    RefusedFormat{"sinq", "weights with scales along both axes", kFromFloat},
    RefusedFormat{"marlin", "INT4 in the tile permutation of one GPU kernel",
                  "convert the GPTQ checkpoint it was made from"},
    RefusedFormat{"tensorrt-llm", "TensorRT-LLM's own layer table with INT4 experts under FP8 names", kLater},
    RefusedFormat{"experts_int8", "INT8 experts made while loading", kRuntime},
    RefusedFormat{"moe_wna16", "a way to run GPTQ and AWQ experts", kRuntime},
    RefusedFormat{"cpu_wna16", "a way to run GPTQ and AWQ layers", kRuntime},
    RefusedFormat{"humming", "a way to run weight-only layers", kRuntime},
    RefusedFormat{"turboquant", "online quantization", kRuntime},
    RefusedFormat{"fp8_per_tensor", "online quantization to FP8", kRuntime},
    RefusedFormat{"fp8_per_block", "online quantization to FP8", kRuntime},
};

// A tensor name that only this format has.
struct Signature {
  std::string_view suffix, format;
  bool prefix = false;
};
constexpr std::array kSignatures = {
    Signature{"weight.quant_state", "bitsandbytes", true},
    Signature{"weight.absmax", "bitsandbytes"},
    Signature{"weight.quant_map", "bitsandbytes"},
    Signature{"SCB", "bitsandbytes"},
    Signature{"trellis", "exl3"},
    Signature{"suh", "exl3"},
    Signature{"q_invperm", "exl2"},
    Signature{"q_groups", "exl2"},
    Signature{"W_q", "hqq"},
    Signature{"forward_hadamard_matrix", "fp_quant"},
    Signature{"codebooks", "aqlm"},
    Signature{"weight:_data", "torchao", true},
    Signature{"bitmask", "sparse-bitmask"},
};
constexpr RefusedFormat kSparse = {"sparse-bitmask", "sparse weights stored with a bit mask", kFromFloat};

const RefusedFormat* find_format(std::string_view name) {
  const auto found =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const RefusedFormat& f) { return f.name == name; });
  if (found != kFormats.end()) return &*found;
  return name == kSparse.name ? &kSparse : nullptr;
}

class RefusedReader final : public SchemeReader {
 public:
  RefusedReader(ErrorInfo reason, const ModelConfig& config) : reason_(std::move(reason)), config_(config) {}
  Result<ModuleScheme> read(const ModuleTensors& module) const override {
    if (is_plain_float(module)) return read_unquantized(module, config_);
    ErrorInfo error = reason_;
    error.subject = module.name;
    return error;
  }
  // What it would leave in float is not known.
  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t, int64_t) const override {
    ErrorInfo error = reason_;
    error.subject = module.name;
    return error;
  }

 private:
  ErrorInfo reason_;
  const ModelConfig& config_;
};

}  // namespace

const RefusedFormat* refused_by_config(const QuantConfig& config) {
  if (config.dict == nullptr) return nullptr;
  if (const RefusedFormat* format = find_format(config.method); format != nullptr) return format;
  // bitsandbytes dictionaries of old files name no method.
  for (std::string_view key : {"load_in_4bit", "_load_in_4bit", "load_in_8bit", "_load_in_8bit"}) {
    if (config.method.empty() && config.dict->boolean_or(key, false)) return find_format("bitsandbytes");
  }
  return nullptr;
}

const RefusedFormat* refused_by_tensors(const ModuleTensors& module) {
  for (const auto& [suffix, tensor] : module.tensors) {
    for (const Signature& signature : kSignatures) {
      if (signature.prefix ? suffix.starts_with(signature.suffix) : suffix == signature.suffix)
        return find_format(signature.format);
    }
  }
  return nullptr;
}

ErrorInfo refusal(const RefusedFormat& format, std::string subject) {
  std::string loaded;
  for (const SchemeEntry* scheme : all_schemes()) loaded += (loaded.empty() ? "" : ", ") + std::string(scheme->name);
  return ErrorInfo{ErrorCode::unsupported_scheme,
                   std::move(subject),
                   std::string(format.name) + " (" + std::string(format.what) + ")",
                   "a scheme that Gearshift loads: " + loaded,
                   std::string(format.advice),
                   {}};
}

std::unique_ptr<SchemeReader> open_refused(ErrorInfo reason, const ModelConfig& config) {
  return std::make_unique<RefusedReader>(std::move(reason), config);
}

}  // namespace gearshift
