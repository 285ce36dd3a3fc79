// compressed-tensors, shared by its two files: the arguments objects of a config group, and what a group makes of a
// module.
#pragma once

#include "base/json.h"
#include "layer/scheme/scheme.h"

namespace gearshift::compressed_tensors {

// How the codes lie on disk: `format` of a group or of the whole dictionary.
enum class Layout : uint8_t { by_arguments, naive, packed, nvfp4, mxfp4, mxfp8 };

enum class Strategy : uint8_t { tensor, channel, group, block, token, tensor_group };
enum class Dynamic : uint8_t { no, yes, local };

// One arguments object (`weights`, `input_activations`).
struct Arguments {
  int64_t bits = 8;
  bool is_float = false;
  bool symmetric = true;
  Strategy strategy = Strategy::tensor;
  int64_t group = 0;                       // columns; 0: not grouped
  int64_t block_rows = 0, block_cols = 0;  // strategy block
  Dynamic dynamic = Dynamic::no;
  bool group_index = false;      // actorder "group": an index tensor is stored
  bool exponent_scales = false;  // scale_dtype torch.uint8
};

struct Group {
  std::string subject;  // "config.json: quantization_config.config_groups.group_0"
  Layout layout = Layout::by_arguments;
  std::string format;                // as written, for messages
  std::optional<Arguments> weights;  // nullopt: says nothing about weights (attention groups)
  std::optional<Arguments> input;    // nullopt: 16-bit activations
};

// Parses an arguments object; null gives nullopt. Errors: damaged_checkpoint (wrong type, out of range, group_size 0),
// unsupported_scheme (num_bits that is no integer, attn_head).
Result<std::optional<Arguments>> parse_arguments(const Json* json, const std::string& subject);
// "pack-quantized" ...; Error unsupported_scheme for sparse formats, marlin-24 and unknown words.
Result<Layout> parse_format(std::string_view format, const std::string& subject);
// A preset name of the library ("W4A16", "NVFP4") as weights and input arguments. nullopt: no such preset.
struct Preset {
  std::optional<Arguments> weights, input;
};
std::optional<Preset> preset(std::string_view name);

// Reads a module that belongs to `group`.
Result<ModuleScheme> read_module(const ModuleTensors& module, const Group& group);
// The tensors of such a module. Error unsupported_scheme: weights that are not loaded.
Result<std::vector<ExpectedTensor>> expected_tensors(const Group& group, int64_t n, int64_t k);

}  // namespace gearshift::compressed_tensors
