// A module that only the config knows, with the tensors that a checkpoint of its scheme would store for it: readers
// then take it as any other.
#pragma once

#include "layer/architecture/float_module.h"
#include "layer/scheme/scheme.h"

namespace gearshift {

// Owns the tensors that its ModuleTensors borrows; can be moved, not copied.
class ExpectedModule {
 public:
  // `dtype`: of tensors in float. Error: the scheme's, where it cannot say what it would store.
  static Result<ExpectedModule> make(const FloatModule& module, const SchemeReader& reader, DType dtype);

  ExpectedModule(ExpectedModule&&) = default;
  ExpectedModule& operator=(ExpectedModule&&) = default;
  ExpectedModule(const ExpectedModule&) = delete;
  ExpectedModule& operator=(const ExpectedModule&) = delete;

  const ModuleTensors& tensors() const { return tensors_; }

 private:
  ExpectedModule() = default;
  void store(const FloatModule& module, std::vector<ExpectedTensor> tensors);

  std::vector<TensorInfo> infos_;
  ModuleTensors tensors_;
};

}  // namespace gearshift
