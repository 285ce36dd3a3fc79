// A quantization scheme: how to recognise it in the config, and how to read what one module is.
//
// To add one: a file of its own that defines a `SchemeEntry`, and one line in list.cpp. A reader says what the module
// is (module_reader.h checks every tensor it takes against the shape and dtype the scheme promises) and returns
//   unsupported_scheme  the module uses something that is recognised and not loaded (`found` names it), or
//   damaged_checkpoint  config and tensors contradict each other (subject: the tensor or module).
#pragma once

#include <memory>

#include "gearshift/layer.h"
#include "layer/modules.h"
#include "layer/quant_config.h"

namespace gearshift {

// One module, read: everything of a LayerSpec that the scheme knows.
struct ModuleScheme {
  Scheme scheme;
  int64_t n = 0, k = 0;
  int64_t experts = 0;  // of a stack, whose tensors have a leading expert axis; 0: a plain matrix
  RowOrder row_order = RowOrder::concatenated;
  std::vector<StoredTensor> tensors;
};

// One tensor of one matrix (of one expert, in a stack).
struct ExpectedTensor {
  std::string_view suffix;  // a literal
  DType dtype = DType::f32;
  Shape shape;
};

// Reads the linear layers of one checkpoint. Borrows the ModelConfig it was opened with.
class SchemeReader {
 public:
  virtual ~SchemeReader() = default;
  // REQUIRES: kind_of(module) == ModuleKind::linear.
  virtual Result<ModuleScheme> read(const ModuleTensors& module) const = 0;
  // The tensors, bias apart, that the scheme's writer stores for an N x K module, by the config's rules alone; empty:
  // it stays in float. `module` has its float tensors. REQUIRES: kind_of(module) == ModuleKind::linear, no tied head.
  virtual Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t n, int64_t k) const = 0;
  // What the config says of modules and cannot be loaded, whether or not their tensors are there (`subject` names the
  // module, `found` the scheme).
  virtual std::vector<ErrorInfo> refusals() const { return {}; }
};

struct SchemeEntry {
  std::string_view name;  // the method as users write it
  bool (*recognises)(const QuantConfig& config);
  Result<std::unique_ptr<SchemeReader>> (*open)(const ModelConfig& config);
};

// Every scheme, in the order of asking. The last one takes checkpoints without a quantization dictionary.
std::span<const SchemeEntry* const> all_schemes();

// A module that stays in float: the fallback of every reader. Error damaged_checkpoint where its tensors say otherwise.
Result<ModuleScheme> read_unquantized(const ModuleTensors& module, const ModelConfig& config);

// A format that is recognised and refused.
struct RefusedFormat {
  std::string_view name;    // "bitsandbytes"
  std::string_view what;    // one clause: what it is
  std::string_view advice;  // what to do instead
};
// By the dictionary's quant_method, and by a module's tensor names; nullptr: not one of these.
const RefusedFormat* refused_by_config(const QuantConfig& config);
const RefusedFormat* refused_by_tensors(const ModuleTensors& module);
ErrorInfo refusal(const RefusedFormat& format, std::string subject);
// For a checkpoint whose scheme is refused as a whole: reads what it leaves in float and gives `reason` (with the
// module as its subject) for the rest.
std::unique_ptr<SchemeReader> open_refused(ErrorInfo reason, const ModelConfig& config);

}  // namespace gearshift
