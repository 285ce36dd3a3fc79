#include "layer/expected_module.h"

#include "base/try.h"

namespace gearshift {
namespace {

// The tensors of a stack hang off its parent: experts.down_proj_scales.
std::string tensor_name(const FloatModule& module, std::string_view suffix) {
  const std::string& owner = module.tied_to.empty() ? module.name : module.tied_to;
  if (module.experts == 0) return owner + "." + std::string(suffix);
  return suffix == "weight" ? owner : owner + "_" + std::string(suffix);
}

}  // namespace

void ExpectedModule::store(const FloatModule& module, std::vector<ExpectedTensor> tensors) {
  infos_.clear();
  infos_.reserve(tensors.size());
  tensors_.tensors.clear();
  for (ExpectedTensor& tensor : tensors) {
    TensorInfo info;
    info.name = tensor_name(module, tensor.suffix);
    info.dtype = tensor.dtype;
    info.shape = std::move(tensor.shape);
    if (module.experts > 0) info.shape.insert(info.shape.begin(), module.experts);
    infos_.push_back(std::move(info));
    tensors_.tensors.emplace_back(tensor.suffix, &infos_.back());
  }
}

Result<ExpectedModule> ExpectedModule::make(const FloatModule& module, const SchemeReader& reader, DType dtype) {
  ExpectedModule made;
  made.tensors_.name = module.name;
  made.tensors_.raw_stack = module.experts > 0;
  made.tensors_.tied_head = !module.tied_to.empty();
  made.tensors_.draft = module.draft;
  const ExpectedTensor bias{"bias", dtype, {module.n}};
  std::vector<ExpectedTensor> floats = {
      {"weight", dtype, module.transposed ? Shape{module.k, module.n} : Shape{module.n, module.k}}};
  if (module.bias) floats.push_back(bias);
  made.store(module, std::move(floats));
  if (made.tensors_.tied_head || kind_of(made.tensors_) != ModuleKind::linear) return made;
  GEARSHIFT_TRY(std::vector<ExpectedTensor> quantized, reader.expected(made.tensors_, module.n, module.k));
  if (quantized.empty()) return made;
  if (module.bias) quantized.push_back(bias);
  made.store(module, std::move(quantized));
  return made;
}

}  // namespace gearshift
