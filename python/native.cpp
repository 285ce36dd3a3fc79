// The part of the Python package that depends on the Python version: calls the C border, holds its handles, and lets go
// of the interpreter's lock while it works. Names, defaults and presentation are Python (python/gearshift).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <memory>
#include <optional>

#include "gearshift/gearshift.h"

namespace nb = nanobind;

namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

// Texts may hold names of files and tensors in any bytes.
nb::str text(const char* utf8) {
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(utf8, static_cast<Py_ssize_t>(std::strlen(utf8)), "replace"));
}

// ---- errors ---------------------------------------------------------------------------------------------------------

// Makes the exception of an error: gearshift._errors.make_error. Lives as long as the process.
nb::object& error_maker() {
  static auto* maker = new nb::object;
  return *maker;
}

[[noreturn]] void raise(const char* code, const char* message, const char* subject, const char* found,
                        const char* wanted, const char* hint, const nb::list& details) {
  const nb::object error =
      error_maker()(text(code), text(message), text(subject), text(found), text(wanted), text(hint), details);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

void check(gearshift_status status) {
  if (status == GEARSHIFT_OK) return;
  const gearshift_error* error = gearshift_last_error();
  nb::list details;
  for (size_t i = 0; i < error->detail_count; ++i) details.append(text(error->details[i]));
  raise(error->code, error->message, error->subject, error->found, error->wanted, error->hint, details);
}

nb::str taken(char* handed_out) {
  nb::str result = text(handed_out);
  gearshift_free_text(handed_out);
  return result;
}

// ---- arguments ------------------------------------------------------------------------------------------------------

std::vector<gearshift_option> views(const Options& options) {
  std::vector<gearshift_option> result;
  for (const auto& [name, value] : options) result.push_back({name.c_str(), value.c_str()});
  return result;
}

// A DLPack producer, its tensor, and the type that its elements really have where DLPack or NumPy lack it (code -1: the
// producer knows).
template <class... Access>
struct Tensor {
  nb::ndarray<Access...> array;
  gearshift_tensor view{};

  Tensor(const nb::object& producer, const char* subject, int code, int bits, const char* wanted) {
    if (!nb::try_cast(producer, array) || !array.is_valid()) {
      std::string found = nb::type_name(producer.type()).c_str();
      if (PyCapsule_CheckExact(producer.ptr())) {
        const char* name = PyCapsule_GetName(producer.ptr());
        found = "a capsule named " + std::string(name == nullptr ? "nothing" : name);
        wanted = "one named dltensor or dltensor_versioned, used once";
      }
      const std::string message = std::string(subject) + ": found " + found + ", wanted " + wanted;
      raise("usage", message.c_str(), subject, found.c_str(), wanted, "", nb::list());
    }
    view.data = const_cast<void*>(static_cast<const void*>(array.data()));
    view.device_type = array.device_type();
    view.device_id = array.device_id();
    view.ndim = static_cast<int32_t>(array.ndim());
    view.dtype_code = code < 0 ? array.dtype().code : static_cast<uint8_t>(code);
    view.dtype_bits = code < 0 ? array.dtype().bits : static_cast<uint8_t>(bits);
    view.dtype_lanes = array.dtype().lanes;
    view.shape = const_cast<int64_t*>(array.shape_ptr());
    view.strides = const_cast<int64_t*>(array.stride_ptr());
  }
};
using ReadTensor = Tensor<nb::ro>;
using WriteTensor = Tensor<>;

constexpr const char* any_array = "an array or tensor with __dlpack__";

// ---- plans ----------------------------------------------------------------------------------------------------------

using PlanHandle = std::shared_ptr<gearshift_plan>;
using LinearHandle = std::shared_ptr<gearshift_linear>;

gearshift_form form_of(const std::string& form) {
  return form == "json" ? GEARSHIFT_JSON : form == "html" ? GEARSHIFT_HTML : GEARSHIFT_TEXT;
}

// `call` runs without the interpreter's lock.
template <class Call>
void unlocked(const Call& call) {
  gearshift_status status = GEARSHIFT_OK;
  {
    const nb::gil_scoped_release release;
    status = call();
  }
  check(status);
}

LinearHandle linear_handle(gearshift_linear* linear) { return {linear, gearshift_linear_free}; }

struct Plan {
  PlanHandle handle;

  Plan(const std::string& model, const Options& options) {
    const std::vector<gearshift_option> given = views(options);
    gearshift_plan* plan = nullptr;
    unlocked([&] { return gearshift_plan_open(model.c_str(), given.data(), given.size(), &plan); });
    handle = {plan, gearshift_plan_free};
  }
  nb::str show(const std::string& form, size_t width) const {
    char* shown = nullptr;
    check(gearshift_plan_show(handle.get(), form_of(form), width, &shown));
    return taken(shown);
  }
  nb::str explain(const std::string& layer, size_t width) const {
    char* shown = nullptr;
    check(gearshift_plan_explain(handle.get(), layer.c_str(), width, &shown));
    return taken(shown);
  }
  nb::str hash() const { return text(gearshift_plan_hash(handle.get())); }
};

std::pair<size_t, nb::str> diff(const std::string& before, const std::string& after, const std::string& form,
                                size_t width) {
  char* shown = nullptr;
  size_t differences = 0;
  check(gearshift_diff(before.c_str(), after.c_str(), form_of(form), width, &differences, &shown));
  return {differences, taken(shown)};
}

// ---- work -----------------------------------------------------------------------------------------------------------

// Follows work on behalf of Python: its signals (Ctrl-C) and a function of the caller's. What either raises stops the
// work and is raised again when the work has ended.
struct Watcher {
  nb::object progress;
  std::exception_ptr raised;

  static int follow(void* context, size_t done, size_t total, const char* what) {
    const nb::gil_scoped_acquire lock;
    auto* watcher = static_cast<Watcher*>(context);
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!watcher->progress.is_none()) watcher->progress(done, total, text(what));
      return 0;
    } catch (...) {
      watcher->raised = std::current_exception();
      return 1;
    }
  }
};

struct Report {
  std::shared_ptr<gearshift_report> handle;

  Report(const std::string& verb, const std::vector<std::string>& words, const Options& options,
         const nb::object& progress) {
    std::vector<const char*> word_views;
    for (const std::string& word : words) word_views.push_back(word.c_str());
    const std::vector<gearshift_option> given = views(options);
    Watcher watcher{progress, nullptr};
    gearshift_report* report = nullptr;
    gearshift_status status = GEARSHIFT_OK;
    {
      const nb::gil_scoped_release release;
      status = gearshift_work(verb.c_str(), word_views.data(), word_views.size(), given.data(), given.size(),
                              Watcher::follow, &watcher, &report);
    }
    if (watcher.raised != nullptr) {
      gearshift_report_free(report);
      std::rethrow_exception(watcher.raised);
    }
    check(status);
    handle = {report, gearshift_report_free};
  }
  nb::str show(const std::string& form, size_t width) const {
    char* shown = nullptr;
    check(gearshift_report_show(handle.get(), form_of(form), width, &shown));
    return taken(shown);
  }
  bool passed() const { return gearshift_report_passed(handle.get()) != 0; }
};

// ---- layers ---------------------------------------------------------------------------------------------------------

struct Linear {
  LinearHandle handle;

  static Linear load(const Plan& plan, const std::string& layer) {
    gearshift_linear* linear = nullptr;
    unlocked([&] { return gearshift_linear_load(plan.handle.get(), layer.c_str(), &linear); });
    return {linear_handle(linear)};
  }
  // Each tensor: name, producer, type code (-1: its own) and bits.
  static Linear from_tensors(const std::string& scheme,
                             const std::vector<std::tuple<std::string, nb::object, int, int>>& tensors,
                             const Options& options) {
    std::vector<ReadTensor> arrays;
    std::vector<const char*> names;
    std::vector<gearshift_tensor> tensor_views;
    for (const auto& [name, producer, code, bits] : tensors) {
      arrays.emplace_back(producer, name.c_str(), code, bits, any_array);
      names.push_back(name.c_str());
      tensor_views.push_back(arrays.back().view);
    }
    const std::vector<gearshift_option> given = views(options);
    gearshift_linear* linear = nullptr;
    unlocked([&] {
      return gearshift_linear_from_tensors(scheme.c_str(), names.data(), tensor_views.data(), tensor_views.size(),
                                           given.data(), given.size(), &linear);
    });
    return {linear_handle(linear)};
  }
  static Linear quantize(const std::string& scheme, const nb::object& weight, std::pair<int, int> weight_type,
                         const nb::object& bias, std::pair<int, int> bias_type, double input_amax,
                         const Options& options) {
    const ReadTensor w(weight, "weight", weight_type.first, weight_type.second, any_array);
    std::optional<ReadTensor> b;
    if (!bias.is_none()) b.emplace(bias, "bias", bias_type.first, bias_type.second, any_array);
    const std::vector<gearshift_option> given = views(options);
    gearshift_linear* linear = nullptr;
    unlocked([&] {
      return gearshift_linear_quantize(scheme.c_str(), &w.view, b ? &b->view : nullptr, input_amax, given.data(),
                                       given.size(), &linear);
    });
    return {linear_handle(linear)};
  }

  nb::dict about() const {
    gearshift_linear_facts facts{};
    check(gearshift_linear_about(handle.get(), &facts));
    nb::dict result;
    result["n"] = facts.n;
    result["k"] = facts.k;
    result["experts"] = facts.experts;
    result["device_type"] = facts.device_type;
    result["device_id"] = facts.device_id;
    result["dtype"] = std::pair<int, int>(facts.dtype_code, facts.dtype_bits);
    return result;
  }
  nb::str show(const std::string& form, size_t width) const {
    char* shown = nullptr;
    check(gearshift_linear_show(handle.get(), form_of(form), width, &shown));
    return taken(shown);
  }
  uint64_t prepare(std::pair<int, int> type, int64_t rows) const {
    const LinearHandle held = handle;
    uint64_t bytes = 0;
    unlocked([&] {
      return gearshift_linear_prepare(held.get(), static_cast<uint8_t>(type.first), static_cast<uint8_t>(type.second),
                                      rows, &bytes);
    });
    return bytes;
  }
  void run(const nb::object& x, std::pair<int, int> x_type, const nb::object& y, std::pair<int, int> y_type,
           int64_t expert, uintptr_t workspace, uint64_t workspace_bytes, uintptr_t stream) const {
    const LinearHandle held = handle;  // another thread may close the layer meanwhile
    const ReadTensor in(x, "x", x_type.first, x_type.second, any_array);
    WriteTensor out(y, "out", y_type.first, y_type.second, "an array or tensor that may be written");
    unlocked([&] {
      return gearshift_linear_run(held.get(), &in.view, &out.view, expert,
                                  reinterpret_cast<void*>(workspace),  // NOLINT(performance-no-int-to-ptr)
                                  workspace_bytes,
                                  reinterpret_cast<void*>(stream));  // NOLINT(performance-no-int-to-ptr)
    });
  }
};

}  // namespace

NB_MODULE(_native, module) {
  nb::set_leak_warnings(false);  // layers that are alive at the end of a program are no mistake
  module.def("set_error_maker", [](nb::object maker) { error_maker() = std::move(maker); });
  module.def("abi_version", [] { return gearshift_abi_version(); });
  module.def("built_for_abi", [] { return GEARSHIFT_ABI_VERSION; });
  module.def("version", [] { return text(gearshift_version()); });
  module.def("diff", &diff);

  nb::class_<Plan>(module, "Plan")
      .def(nb::init<const std::string&, const Options&>())
      .def("show", &Plan::show)
      .def("explain", &Plan::explain)
      .def("hash", &Plan::hash);
  nb::class_<Report>(module, "Report")
      .def(nb::init<const std::string&, const std::vector<std::string>&, const Options&, const nb::object&>(),
           nb::arg("verb"), nb::arg("words"), nb::arg("options"), nb::arg("progress").none())
      .def("show", &Report::show)
      .def("passed", &Report::passed);
  nb::class_<Linear>(module, "Linear")
      .def_static("load", &Linear::load)
      .def_static("from_tensors", &Linear::from_tensors)
      .def_static("quantize", &Linear::quantize, nb::arg("scheme"), nb::arg("weight"), nb::arg("weight_type"),
                  nb::arg("bias").none(), nb::arg("bias_type"), nb::arg("input_amax"), nb::arg("options"))
      .def("about", &Linear::about)
      .def("show", &Linear::show)
      .def("prepare", &Linear::prepare)
      .def("run", &Linear::run);
}
