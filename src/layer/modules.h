// The tensor table as modules: which tensors belong together, and what kind of thing a module is by its names and
// shapes.
#pragma once

#include <array>

#include "gearshift/checkpoint.h"
#include "layer/quant_config.h"

namespace gearshift {

// The tensors of one module. Suffixes are those of formats.md ("weight", "weight_scale" ...); the tensors of an expert
// stack that hang off their parent (`experts.gate_up_proj_scale_inv`) are given the suffix they would have behind a
// module.
struct ModuleTensors {
  std::string name;
  std::vector<std::pair<std::string_view, const TensorInfo*>> tensors;
  bool raw_stack = false;  // the weight has no suffix of its own: experts.gate_up_proj [E,..]
  bool tied_head = false;  // made up: the head's name with the embedding's tensors
  std::optional<std::pair<int64_t, int64_t>> stated;  // N and K that a `weight_shape` says, where its bytes are there
  bool draft = false;      // a draft (multi-token prediction) layer behind those that num_hidden_layers counts

  const TensorInfo* find(std::string_view suffix) const;
};

enum class ModuleKind : uint8_t {
  linear,
  matrix,  // holds a matrix but is no linear layer: embedding, norm, convolution, loose parameter
  other    // nothing of two dimensions
};

// Groups the checkpoint's tensors, natural order of names; adds a tied head where the config says so and no head is
// stored.
std::vector<ModuleTensors> group_modules(const Checkpoint& checkpoint, const ModelConfig& config);

ModuleKind kind_of(const ModuleTensors& module);

// A weight stored as F32, F16 or BF16, and no tensor that only quantized modules have.
bool is_plain_float(const ModuleTensors& module);
bool is_float(DType dtype);
// A suffix that only a quantized module has.
bool is_quantization_suffix(std::string_view suffix);

// Modules that runtimes and exporters hold as plain parameters, so that a rule for linear layers does not reach them
// even where no list excludes them: routers, embeddings, norms.
bool is_router_like(std::string_view module_name);

// The part of a name that says which expert: "a.experts.17.up_proj" -> {"a.experts", "17", "up_proj"}.
struct ExpertName {
  std::string_view container, number, rest;
};
std::optional<ExpertName> expert_name(std::string_view name);

// Siblings that serving engines merge into one layer; some architectures store them merged (Phi-3).
struct FusedName {
  std::string_view fused;
  std::array<std::string_view, 3> parts;  // in the order of their rows; the last one "" where there are two
};
std::span<const FusedName> fused_names();
// `name` with another last component.
std::string sibling(std::string_view name, std::string_view last);

std::string_view last_component(std::string_view name);
std::string_view parent(std::string_view name);  // "" when there is none

}  // namespace gearshift
