// The house walked backwards: float tensors -> a checkpoint in scheme S that other tools read.
#pragma once

#include <functional>

#include "gearshift/checkpoint.h"
#include "gearshift/layer.h"

namespace gearshift {

// One rule of `quantize --scheme`: a preset name of compressed-tensors (any case), for all layers (glob "") or matching ones.
struct QuantizeRule {
  std::string glob, scheme;
};
struct QuantizeRequest {
  std::string model;                  // a float checkpoint
  std::string out;                    // directory to create; must not exist or be empty
  std::vector<QuantizeRule> rules;
  std::string container = "compressed-tensors";
  std::string calibration;            // safetensors of activations, one tensor per layer name; "" for none
  std::function<void(size_t done, size_t total)> progress;
};
struct QuantizedLayer {
  std::string name, scheme;
  int64_t n = 0, k = 0;
  double relative_error = 0, cosine = 1, worst_row = 0;  // dequantised against original weights
  uint64_t bytes_before = 0, bytes_after = 0;
};
struct QuantizeReport {
  std::string out;
  std::vector<QuantizedLayer> layers;
  std::vector<std::string> notes;     // defaults that were used, layers left alone
};
// Errors: usage (unknown preset, pattern that matches nothing, OUT exists), damaged_checkpoint, runtime. On error
// nothing is left under `out`.
Result<QuantizeReport> quantize(const QuantizeRequest& request);

// ---- one layer in memory --------------------------------------------------------------------------------------------

// How the only layer of such a checkpoint is called.
inline constexpr std::string_view layer_in_memory = "linear";

// A tensor that is in memory already.
struct TensorInMemory {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  ByteView data;  // as many bytes as the shape has, any alignment
};

// A float matrix and what it becomes.
struct QuantizeLayerRequest {
  TensorInMemory weight;               // [N,K], F32, F16 or BF16; names are not read
  std::optional<TensorInMemory> bias;  // [N]
  std::string scheme;                  // preset name; UNQUANTIZED leaves it float
  double input_amax = 0;  // largest magnitude of the activations, for schemes that store a scale of them; 0: unknown
};
struct QuantizedInMemory {
  Checkpoint checkpoint;
  QuantizedLayer layer;
};
// Errors: usage (unknown preset, a shape or type it cannot code), damaged_checkpoint (NaN or infinity).
Result<QuantizedInMemory> quantize_layer(const QuantizeLayerRequest& request);

// A layer that is quantized already. Tensors have the names that their writer uses behind the layer's ("weight_packed",
// "weight_scale", "bias"). `scheme`: a preset name, for which "weight" stands for the codes whatever they are called
// and U8 for any type of 8 bits; or a quantization_config as JSON text, of any writer that Gearshift reads. Errors
// usage; what contradicts the scheme shows when the layers of the checkpoint are read.
Result<Checkpoint> layer_of_tensors(const std::string& scheme, std::vector<TensorInMemory> tensors, DType dtype);

}  // namespace gearshift
