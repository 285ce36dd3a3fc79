#include "quantize/activations.h"

#include <algorithm>

#include "base/text.h"
#include "base/try.h"
#include "quantize/matrix.h"
#include "quantize/widen.h"

namespace gearshift::quantize_detail {
namespace {

Result<float> measured(const Checkpoint& file, const TensorInfo& tensor, int64_t k) {
  if (!is_float16_or_32(tensor.dtype)) {
    return ErrorInfo{
        ErrorCode::usage, "--calibration: " + tensor.name, std::string(name(tensor.dtype)), "F32, F16 or BF16", "", {}};
  }
  if (tensor.shape.empty() || tensor.shape.back() != k) {
    return ErrorInfo{ErrorCode::usage,
                     "--calibration: " + tensor.name,
                     "shape " + to_string(tensor.shape),
                     "[..., " + std::to_string(k) + "], the layer's K",
                     "",
                     {}};
  }
  GEARSHIFT_TRY(const ByteView bytes, file.bytes(tensor));
  return finite_amax("--calibration: " + tensor.name, tensor.dtype, tensor.shape, bytes);
}

}  // namespace

Result<InputRanges> input_ranges(const std::string& file, const std::vector<LayerSpec>& layers,
                                 const std::vector<Assignment>& assignments, const std::vector<size_t>& rows,
                                 const std::vector<std::string>& row_names) {
  InputRanges result;
  result.amax.assign(layers.size(), assumed_amax);
  std::optional<Checkpoint> calibration;
  if (!file.empty()) {
    Result<Checkpoint> opened = Checkpoint::open(file);
    if (!opened.ok()) {
      ErrorInfo error = opened.error();
      error.subject = "--calibration " + error.subject;
      return error;
    }
    calibration = std::move(opened).value();
  }
  std::vector<float> of_row(row_names.size(), -1);  // -1: not measured
  for (size_t i = 0; calibration && i < layers.size(); ++i) {
    float& row = of_row[rows[i]];
    if (!assignments[i].preset->static_input) continue;
    const TensorInfo* own = calibration->find(layers[i].name);
    const TensorInfo* shared = row_names[rows[i]] == layers[i].name ? nullptr : calibration->find(row_names[rows[i]]);
    for (const TensorInfo* tensor : {own, shared}) {
      if (tensor == nullptr) continue;
      GEARSHIFT_TRY(const float amax, measured(*calibration, *tensor, layers[i].k));
      row = std::max(row, amax);
    }
  }
  size_t assumed = 0;
  std::string first;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!assignments[i].preset->static_input) continue;
    if (of_row[rows[i]] >= 0) {
      result.amax[i] = of_row[rows[i]];
    } else {
      if (assumed++ == 0) first = layers[i].name;
    }
  }
  if (assumed > 0) {
    result.notes.push_back("static activation scale of " + std::to_string(assumed) +
                           (assumed > 1 ? " layers (" : " layer (") + first + (assumed > 1 ? ", ..." : "") +
                           ") not calibrated: activations up to 448 assumed; give --calibration FILE to measure it");
  }
  if (calibration) {
    size_t wanted = 0;
    for (const TensorInfo& tensor : calibration->tensors()) {
      const bool known =
          std::any_of(layers.begin(), layers.end(), [&](const LayerSpec& l) { return l.name == tensor.name; }) ||
          std::find(row_names.begin(), row_names.end(), tensor.name) != row_names.end();
      if (!known) result.notes.push_back("--calibration: " + printable(tensor.name) + " is no layer's name; not used");
      wanted += known ? 1 : 0;
    }
    if (wanted == 0) {
      return ErrorInfo{ErrorCode::usage,
                       "--calibration " + file,
                       "no tensor named after a linear layer",
                       "one tensor of activations per layer name",
                       layers.empty() ? "" : "for example " + layers.front().name,
                       {}};
    }
  }
  return result;
}

}  // namespace gearshift::quantize_detail
