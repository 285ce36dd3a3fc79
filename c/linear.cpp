#include <array>
#include <atomic>
#include <mutex>

#include "base/try.h"
#include "gearshift/quantize.h"
#include "plan.h"
#include "report/documents.h"
#include "report/pages.h"
#include "report/texts.h"
#include "tensor.h"
#include "workspaces.h"

using namespace gearshift;     // NOLINT(google-build-using-namespace): the functions below stand outside it
using namespace gearshift::c;  // NOLINT(google-build-using-namespace)

// A layer is proven for one type of activations; the others are made ready when they are first asked for.
struct gearshift_linear {
  gearshift_linear(std::shared_ptr<const Model> opened, std::string name)
      : model_(std::move(opened)), layer_(std::move(name)) {}

  Result<const ReadyLayer*> ready_for(DType dtype) const {
    const size_t slot = dtype == DType::f32 ? 0 : dtype == DType::f16 ? 1 : 2;
    if (const ReadyLayer* ready = ready_[slot].load(std::memory_order_acquire)) return ready;
    const std::lock_guard lock(mutex_);
    if (owned_[slot] == nullptr) {
      GEARSHIFT_TRY(owned_[slot], model_->load(layer_, dtype));
      ready_[slot].store(owned_[slot].get(), std::memory_order_release);
    }
    return owned_[slot].get();
  }
  DType planned() const { return model_->plan().policy.dtype; }

 private:
  std::shared_ptr<const Model> model_;
  std::string layer_;
  mutable std::mutex mutex_;
  mutable std::array<std::unique_ptr<const ReadyLayer>, 3> owned_;
  mutable std::array<std::atomic<const ReadyLayer*>, 3> ready_{};
};

namespace gearshift::c {

namespace {

using Loaded = Result<std::unique_ptr<gearshift_linear>>;

Loaded load(std::shared_ptr<const Model> model, const std::string& layer) {
  auto linear = std::make_unique<gearshift_linear>(std::move(model), layer);
  GEARSHIFT_CHECK(linear->ready_for(linear->planned()));
  return linear;
}

// Options of environment and file that speak of the layers of a model say nothing about a layer without one.
Options about_one_layer(Options options) {
  for (const char* name : {"layers", "layer", "lock", "explain", "tp"}) {
    const auto option = options.find(name);
    if (option != options.end() && option->second.source != "call") options.erase(option);
  }
  return options;
}

Loaded load_alone(const Checkpoint& checkpoint, Options options) {
  GEARSHIFT_TRY(Model model, Model::open(checkpoint, about_one_layer(std::move(options))));
  return load(std::make_shared<const Model>(std::move(model)), std::string(layer_in_memory));
}

// The type of activations that a call asks for; a layer in memory has no config that says one.
DType stated_dtype(const Options& options) {
  const auto stated = options.find("dtype");
  if (stated == options.end() || stated->second.values.empty()) return DType::bf16;
  const std::string& word = stated->second.values.back();
  return word == "fp32" ? DType::f32 : word == "fp16" ? DType::f16 : DType::bf16;
}

Loaded from_tensors(const char* scheme, const char* const* names, const gearshift_tensor* tensors, size_t count,
                    const gearshift_option* options, size_t option_count) {
  if (scheme == nullptr || names == nullptr || tensors == nullptr) return null_argument("scheme, names or tensors");
  GEARSHIFT_TRY(const Options all, options_of(kPlan, options, option_count));
  std::vector<TensorInMemory> given;
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) return null_argument("a name");
    GEARSHIFT_TRY(TensorInMemory tensor, in_host_memory(names[i], tensors[i]));
    given.push_back(std::move(tensor));
  }
  GEARSHIFT_TRY(const Checkpoint checkpoint, layer_of_tensors(scheme, std::move(given), stated_dtype(all)));
  return load_alone(checkpoint, all);
}

Loaded quantized(const char* scheme, const gearshift_tensor* weight, const gearshift_tensor* bias, double input_amax,
                 const gearshift_option* options, size_t option_count) {
  if (scheme == nullptr || weight == nullptr) return null_argument("scheme or weight");
  GEARSHIFT_TRY(const Options all, options_of(kPlan, options, option_count));
  QuantizeLayerRequest request;
  request.scheme = scheme;
  request.input_amax = input_amax;
  GEARSHIFT_TRY(request.weight, in_host_memory("weight", *weight));
  if (bias != nullptr) {
    GEARSHIFT_TRY(request.bias, in_host_memory("bias", *bias));
  }
  GEARSHIFT_TRY(const QuantizedInMemory made, quantize_layer(request));
  return load_alone(made.checkpoint, all);
}

Result<uint64_t> prepared(const gearshift_linear& linear, uint8_t code, uint8_t bits, int64_t rows) {
  GEARSHIFT_TRY(const DType dtype, dtype_of("x", code, bits));
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16)
    return misused("x", std::string(name(dtype)), "F32, F16 or BF16");
  if (rows < 0) return misused("rows", std::to_string(rows), "0 or more");
  GEARSHIFT_TRY(const ReadyLayer* ready, linear.ready_for(dtype));
  return static_cast<uint64_t>(workspace_bytes(ready->plan.layers.front(), rows, ready->threads));
}

// Everything a call needs is checked before anything is written.
struct Call {
  const gearshift_tensor *x, *y;
  int64_t expert;
  void* workspace;
  uint64_t workspace_bytes;
  void* stream;
};

Result<bool> run_call(const gearshift_linear& linear, const Call& call) {
  GEARSHIFT_TRY(const DType dtype, dtype_of("x", call.x->dtype_code, call.x->dtype_bits));
  const bool known = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  if (!known) return misused("x", std::string(name(dtype)), "F32, F16 or BF16");
  GEARSHIFT_TRY(const ReadyLayer* ready, linear.ready_for(dtype));
  const DeviceProfile& device = ready->plan.device;
  GEARSHIFT_TRY(const Matrix x, matrix_of("x", *call.x, device));
  GEARSHIFT_TRY(const Matrix y, matrix_of("y", *call.y, device));
  if (overlap(x, y)) return misused("y", "memory that x uses, too", "memory of its own");
  const ConstMatrix input{x.data, x.dtype, x.rows, x.cols, x.stride};
  const LayerPlan& plan = ready->plan.layers.front();
  GEARSHIFT_CHECK(use_device(device));
  if (runs_on_host(ready->prepared, device, x.rows)) {
    GEARSHIFT_CHECK(run_on_host(ready->prepared, input, y, ready->threads, call.expert));
    return true;
  }
  if (call.workspace != nullptr) {
    const std::span<uint8_t> given(static_cast<uint8_t*>(call.workspace), static_cast<size_t>(call.workspace_bytes));
    GEARSHIFT_CHECK(run(ready->prepared, input, y, given, ready->threads, call.expert, call.stream));
    return true;
  }
  const int64_t needed = x.rows == 0 ? 0 : workspace_bytes(plan, x.rows, ready->threads);
  if (device.platform != Platform::cpu) {
    std::span<uint8_t> scratch;
    if (needed > 0) {
      GEARSHIFT_TRY(scratch, Workspaces::shared().on_device(device, call.stream, needed));
    }
    GEARSHIFT_CHECK(run(ready->prepared, input, y, scratch, ready->threads, call.expert, call.stream));
    return true;
  }
  GEARSHIFT_TRY(Workspaces::OnHost scratch, Workspaces::shared().on_host(needed));
  GEARSHIFT_CHECK(run(ready->prepared, input, y, scratch.span(), ready->threads, call.expert, call.stream));
  return true;
}

}  // namespace

}  // namespace gearshift::c

extern "C" {

gearshift_status gearshift_linear_load(const gearshift_plan* plan, const char* layer, gearshift_linear** linear) {
  if (plan == nullptr || layer == nullptr || linear == nullptr) return fail(null_argument("plan, layer or linear"));
  return guarded([&] { return load(plan->model, layer); },
                 [&](std::unique_ptr<gearshift_linear> made) { *linear = made.release(); });
}

gearshift_status gearshift_linear_from_tensors(const char* scheme, const char* const* names,
                                               const gearshift_tensor* tensors, size_t tensor_count,
                                               const gearshift_option* options, size_t option_count,
                                               gearshift_linear** linear) {
  if (linear == nullptr) return fail(null_argument("linear"));
  return guarded([&] { return from_tensors(scheme, names, tensors, tensor_count, options, option_count); },
                 [&](std::unique_ptr<gearshift_linear> made) { *linear = made.release(); });
}

gearshift_status gearshift_linear_quantize(const char* scheme, const gearshift_tensor* weight,
                                           const gearshift_tensor* bias, double input_amax,
                                           const gearshift_option* options, size_t option_count,
                                           gearshift_linear** linear) {
  if (linear == nullptr) return fail(null_argument("linear"));
  return guarded([&] { return quantized(scheme, weight, bias, input_amax, options, option_count); },
                 [&](std::unique_ptr<gearshift_linear> made) { *linear = made.release(); });
}

void gearshift_linear_free(gearshift_linear* linear) { delete linear; }

gearshift_status gearshift_linear_about(const gearshift_linear* linear, gearshift_linear_facts* facts) {
  if (linear == nullptr || facts == nullptr) return fail(null_argument("linear or facts"));
  return guarded([&] { return linear->ready_for(linear->planned()); },
                 [&](const ReadyLayer* ready) {
                   const LayerSpec& layer = ready->plan.layers.front().layer;
                   const DLType type = dl_type_of(linear->planned());
                   const bool cpu = ready->plan.device.platform == Platform::cpu;
                   *facts = {layer.n,   layer.k,  layer.experts, cpu ? 1 : 2, cpu ? 0 : ready->plan.device.index,
                             type.code, type.bits};
                 });
}

gearshift_status gearshift_linear_show(const gearshift_linear* linear, gearshift_form form, size_t width, char** text) {
  if (linear == nullptr || text == nullptr) return fail(null_argument("linear or text"));
  return guarded(
      [&]() -> Result<std::string> {
        GEARSHIFT_TRY(const ReadyLayer* ready, linear->ready_for(linear->planned()));
        const Forms forms = {[&] { return plan_json(ready->plan); },
                             [&](size_t columns) { return plan_text(ready->plan, columns); },
                             [&] { return plan_html(ready->plan); }};
        return show(forms, form, width);
      },
      [&](const std::string& shown) { *text = handed_out(shown); });
}

gearshift_status gearshift_linear_prepare(const gearshift_linear* linear, uint8_t dtype_code, uint8_t dtype_bits,
                                          int64_t rows, uint64_t* workspace) {
  if (linear == nullptr) return fail(null_argument("linear"));
  return guarded([&] { return prepared(*linear, dtype_code, dtype_bits, rows); },
                 [&](uint64_t bytes) {
                   if (workspace != nullptr) *workspace = bytes;
                 });
}

gearshift_status gearshift_linear_run(const gearshift_linear* linear, const gearshift_tensor* x, gearshift_tensor* y,
                                      int64_t expert, void* workspace, uint64_t workspace_bytes, void* stream) {
  if (linear == nullptr || x == nullptr || y == nullptr) return fail(null_argument("linear, x or y"));
  return guarded([&] { return run_call(*linear, {x, y, expert, workspace, workspace_bytes, stream}); }, [](bool) {});
}
}
