#include "kernel/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/text.h"
#include "base/try.h"
#include "gearshift/gearshift_plugin.h"

namespace gearshift {

namespace {

// ---- what a plugin sees ---------------------------------------------------------------------------------------------

const char* c_text(std::string_view literal) { return literal.data(); }  // names of enumerators are literals

gearshift_bytes bytes_of(ByteView view) { return {view.data(), view.size()}; }

gearshift_part part_of(const PartWeights& part) {
  gearshift_part out{};
  out.n = part.n;
  out.weight = bytes_of(part.weight);
  out.scale = bytes_of(part.scale);
  out.zero_point = bytes_of(part.zero_point);
  out.group_index = bytes_of(part.group_index);
  out.pre_scale = bytes_of(part.pre_scale);
  out.bias = bytes_of(part.bias);
  out.weight_dtype = c_text(name(part.weight_dtype));
  out.scale_dtype = c_text(name(part.scale_dtype));
  out.zero_point_dtype = c_text(name(part.zero_point_dtype));
  out.pre_scale_dtype = c_text(name(part.pre_scale_dtype));
  out.bias_dtype = c_text(name(part.bias_dtype));
  out.weight_global = part.weight_global;
  out.input_scale = part.input_scale;
  out.input_zero_point = part.input_zero_point;
  return out;
}

// The parts of the layer that this thread is at work on: `run` allocates nothing once they have been many enough.
std::vector<gearshift_part>& parts_of_thread() {
  thread_local std::vector<gearshift_part> parts;
  parts.clear();
  return parts;
}

gearshift_layer layer_with(const LayerSpec& spec, const std::vector<gearshift_part>& parts) {
  const WeightScheme& weight = spec.scheme.weight;
  gearshift_layer layer{};
  layer.n = spec.n;
  layer.k = spec.k;
  layer.family = c_text(name(spec.family));
  layer.weight_format = c_text(name(weight.format));
  layer.storage = c_text(name(weight.storage));
  layer.grouping = c_text(name(weight.grouping.kind));
  layer.group_rows = weight.grouping.rows;
  layer.group_cols = weight.grouping.cols;
  layer.symmetric = weight.symmetric;
  layer.global_divides = weight.global_divides;
  layer.act_order = weight.act_order;
  layer.activation_format = "";
  layer.activation_granularity = "";
  if (const auto& activation = spec.scheme.activation) {
    layer.activation_format = c_text(name(activation->format));
    layer.activation_dynamic = activation->dynamic;
    layer.activation_granularity = c_text(name(activation->granularity));
    layer.activation_group = activation->group;
    layer.input_multiplies = activation->stored_multiplies;
  }
  layer.interleaved = spec.row_order == RowOrder::interleaved;
  layer.part_count = static_cast<int64_t>(parts.size());
  layer.parts = parts.data();
  return layer;
}

// While sizes are asked for: rows, and no bytes.
gearshift_layer layer_without_bytes(const LayerSpec& spec) {
  std::vector<gearshift_part>& parts = parts_of_thread();
  const size_t experts =
      spec.kind == LayerKind::experts && !spec.stacked ? static_cast<size_t>(std::max<int64_t>(1, spec.experts)) : 1;
  for (size_t i = 0; i < spec.modules.size() / experts; ++i) {
    PartWeights part;
    part.n = spec.modules[i].n;
    parts.push_back(part_of(part));
  }
  return layer_with(spec, parts);
}

gearshift_layer layer_of(const LayerWeights& weights) {
  std::vector<gearshift_part>& parts = parts_of_thread();
  for (const PartWeights& part : weights.parts) parts.push_back(part_of(part));
  return layer_with(*weights.spec, parts);
}

int dtype_code(DType dtype) {
  return dtype == DType::f32 ? GEARSHIFT_F32 : dtype == DType::f16 ? GEARSHIFT_F16 : GEARSHIFT_BF16;
}

// ---- from our function pointers to theirs ---------------------------------------------------------------------------

// A Kernel's functions carry no context, so each loaded kernel has functions of its own, made here.
constexpr size_t most_kernels = 64;
std::array<const gearshift_kernel*, most_kernels> loaded_kernels{};

template <size_t Slot>
struct Bridge {
  static int64_t bytes(const LayerSpec& spec) {
    const gearshift_layer layer = layer_without_bytes(spec);
    return std::max<int64_t>(0, loaded_kernels[Slot]->packed_bytes(&layer));
  }
  static void pack(const LayerWeights& weights, uint8_t* out, int threads) {
    const gearshift_layer layer = layer_of(weights);
    loaded_kernels[Slot]->prepare(&layer, out, threads);
  }
  static int64_t workspace_bytes(const LayerSpec& spec, int64_t m, int threads) {
    const gearshift_layer layer = layer_without_bytes(spec);
    return std::max<int64_t>(0, loaded_kernels[Slot]->workspace_bytes(&layer, m, threads));
  }
  static void run(const RunArgs& args) {
    const gearshift_layer layer = layer_of(*args.weights);
    gearshift_call call{};
    call.layer = &layer;
    call.packed = args.packed;
    call.x = {const_cast<void*>(args.x.data), dtype_code(args.x.dtype), args.x.rows, args.x.cols, args.x.stride};
    call.y = {args.y.data, dtype_code(args.y.dtype), args.y.rows, args.y.cols, args.y.stride};
    call.workspace = args.workspace.data();
    call.workspace_bytes = args.workspace.size();
    call.threads = args.threads;
    call.stream = args.stream;
    loaded_kernels[Slot]->run(&call);
  }
};

struct Functions {
  int64_t (*bytes)(const LayerSpec&);
  void (*pack)(const LayerWeights&, uint8_t*, int);
  int64_t (*workspace_bytes)(const LayerSpec&, int64_t, int);
  void (*run)(const RunArgs&);
};
template <size_t... Slots>
constexpr std::array<Functions, sizeof...(Slots)> all_bridges(std::index_sequence<Slots...>) {
  return {{{Bridge<Slots>::bytes, Bridge<Slots>::pack, Bridge<Slots>::workspace_bytes, Bridge<Slots>::run}...}};
}
constexpr std::array<Functions, most_kernels> bridges = all_bridges(std::make_index_sequence<most_kernels>());

// ---- reading descriptors --------------------------------------------------------------------------------------------

// Words of one kernel's descriptor; remembers the first that makes no sense.
class DescriptorReader {
 public:
  explicit DescriptorReader(std::string subject) : subject_(std::move(subject)) {}

  void wrong(std::string_view field, std::string found, std::string wanted) {
    if (error_) return;
    error_ = ErrorInfo{
        ErrorCode::usage, fmt::format("{}, {}", subject_, field), std::move(found), std::move(wanted), "", {}};
  }
  const std::optional<ErrorInfo>& error() const { return error_; }

  std::string text(const char* value) const { return value == nullptr ? "" : value; }

  template <class Parse>
  auto list(std::string_view field, const char* value, Parse parse, const std::string& wanted) {
    std::vector<typename decltype(parse(std::string()))::value_type> values;
    for (const std::string& word : text(value).empty() ? std::vector<std::string>() : split(text(value), ',')) {
      const auto parsed = parse(word);
      parsed ? values.push_back(*parsed) : wrong(field, fmt::format("'{}'", printable(word)), wanted);
    }
    return values;
  }

  Bounds bounds(std::string_view field, int64_t min, int64_t max, int64_t multiple) {
    const Bounds bounds{std::max<int64_t>(1, min), max, std::max<int64_t>(1, multiple)};
    if (min < 0 || max < 0 || multiple < 0 || (max != 0 && max < bounds.min))
      wrong(field, fmt::format("{} to {}, a multiple of {}", min, max, multiple),
            "0 or more, the maximum not below the minimum");
    return bounds;
  }

 private:
  std::string subject_;
  std::optional<ErrorInfo> error_;
};

// The value of an enumeration with that name; `last` is the last enumerator.
template <class Enum, class Name>
auto parser(Enum last, Name name_of) {
  return [last, name_of](const std::string& word) -> std::optional<Enum> {
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      if (name_of(static_cast<Enum>(i)) == word) return static_cast<Enum>(i);
    }
    return std::nullopt;
  };
}

bool is_name(std::string_view word) {
  return !word.empty() && word.size() <= 100 && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// All plugins of the process. Kernels, layouts and texts stay where they are.
struct Loaded {
  std::mutex mutex;
  std::map<std::string, std::vector<const Kernel*>> files;
  std::deque<Kernel> kernels;
  std::deque<Layout> layouts;
  std::deque<std::string> texts;
  std::map<const Kernel*, std::string_view> reasons;

  std::string_view kept(std::string text) { return texts.emplace_back(std::move(text)); }
};
Loaded& loaded() {
  static Loaded state;
  return state;
}

void read_contract(const gearshift_kernel& descriptor, DescriptorReader& reader, Contract& contract) {
  const auto dtype = [](const std::string& word) { return parse_dtype(word); };
  const auto number = [](const std::string& word) { return parse_integer(word); };
  const std::string isa = reader.text(descriptor.isa);
  if (const auto known = parse_isa(isa.empty() ? "portable" : isa)) {
    contract.isa = *known;
  } else {
    reader.wrong("isa", fmt::format("'{}'", printable(isa)), "an instruction set of `gearshift doctor`");
  }
  const auto format = parser(Format::uint8, [](Format f) { return name(f); });
  contract.weight_formats = reader.list("weight_formats", descriptor.weight_formats, format, "a weight format");
  contract.storages = reader.list("storages", descriptor.storages,
                                  parser(Storage::dense_transposed, [](Storage s) { return name(s); }), "a storage");
  contract.groupings = reader.list("groupings", descriptor.groupings,
                                   parser(Grouping::Kind::block, [](Grouping::Kind k) { return name(k); }),
                                   "tensor, row, group, whole_row or block");
  contract.groups = reader.list("groups", descriptor.groups, number, "numbers");
  contract.weight_dtypes = reader.list("weight_dtypes", descriptor.weight_dtypes, dtype, "an element type");
  contract.scale_dtypes = reader.list("scale_dtypes", descriptor.scale_dtypes, dtype, "an element type");
  contract.activation_formats =
      reader.list("activation_formats", descriptor.activation_formats, format, "an activation format");
  contract.dtypes = reader.list("dtypes", descriptor.dtypes, dtype, "F32, F16 or BF16");
  contract.n = reader.bounds("n", descriptor.n_min, descriptor.n_max, descriptor.n_multiple);
  contract.k = reader.bounds("k", descriptor.k_min, descriptor.k_max, descriptor.k_multiple);
  contract.m = reader.bounds("m", descriptor.m_min, descriptor.m_max, 1);
  contract.zero_points = descriptor.zero_points != 0;
  contract.act_order = descriptor.act_order != 0;
  contract.bias = descriptor.bias != 0;
  contract.experts = descriptor.experts != 0;
  contract.pre_scale = descriptor.pre_scale != 0;
  contract.partial_groups = descriptor.partial_groups != 0;
  contract.bits_same_for_any_m = descriptor.bits_same_for_any_m != 0;
  contract.capture_safe = descriptor.capture_safe != 0;
}

// Whether a list of ours has this name, as a kernel's or as a backend.
bool is_taken(const Registry& registry, std::string_view word) {
  for (const KernelList& list : registry.lists) {
    for (const ListEntry& entry : list.entries) {
      if (entry.kernel->name == word || entry.kernel->backend == word) return true;
    }
  }
  return false;
}

const Layout* layout_for(const gearshift_kernel& descriptor, size_t slot, const std::string& plugin,
                         std::vector<const Layout*>& own) {
  if (descriptor.packed_bytes == nullptr) return &checkpoint_layout;
  const std::string layout_name = plugin + "." + descriptor.layout;
  for (const Layout* known : own) {
    if (known->name == layout_name && known->version == descriptor.layout_version) return known;
  }
  Layout& layout = loaded().layouts.emplace_back();
  layout.name = loaded().kept(layout_name);
  layout.version = descriptor.layout_version;
  layout.bytes = bridges[slot].bytes;
  layout.pack = bridges[slot].pack;
  own.push_back(&layout);
  return &layout;
}

Result<void> check_descriptor(const gearshift_kernel& descriptor, const Registry& base, DescriptorReader& reader) {
  const std::string kernel = reader.text(descriptor.name), backend = reader.text(descriptor.backend);
  for (const auto& [field, word] : {std::pair("name", kernel), std::pair("backend", backend)}) {
    if (!is_name(word))
      reader.wrong(field, fmt::format("'{}'", printable(word)), "small letters, digits and '_', at most 100");
    if (is_taken(base, word))
      reader.wrong(field, fmt::format("'{}', which Gearshift has itself", word), "a name of its own");
  }
  if (reader.text(descriptor.families).empty()) reader.wrong("families", "nothing", "at least one family");
  if (descriptor.run == nullptr) reader.wrong("run", "NULL", "a function");
  if (descriptor.version < 1) reader.wrong("version", std::to_string(descriptor.version), "1 or more");
  const bool packs = descriptor.packed_bytes != nullptr;
  if (packs != (descriptor.prepare != nullptr))
    reader.wrong("prepare", packs ? "NULL beside packed_bytes" : "no packed_bytes beside it", "both or neither");
  if (packs && (!is_name(reader.text(descriptor.layout)) || descriptor.layout_version < 1))
    reader.wrong("layout", "no name or version", "a name and a version from 1");
  if (!(descriptor.bound_c >= 0) || !(descriptor.bound_u >= 0) || descriptor.bound_c > 1000 ||
      descriptor.bound_u > 0.01)
    reader.wrong("bound", fmt::format("{:g} and {:g}", descriptor.bound_c, descriptor.bound_u),
                 "at most 1000 and 0.01");
  if (reader.error()) return *reader.error();
  return {};
}

Result<const Kernel*> add_kernel(const gearshift_kernel& descriptor, const std::string& file, const std::string& plugin,
                                 const Registry& base, std::vector<const Layout*>& own) {
  DescriptorReader reader(fmt::format("plugin {}, kernel {}", printable(file),
                                      printable(descriptor.name == nullptr ? "without name" : descriptor.name)));
  GEARSHIFT_CHECK(check_descriptor(descriptor, base, reader));
  Loaded& state = loaded();
  const size_t slot = state.kernels.size();
  if (slot >= most_kernels) {
    return ErrorInfo{ErrorCode::usage,
                     fmt::format("plugin {}", printable(file)),
                     fmt::format("more than {} kernels", most_kernels),
                     "fewer kernels",
                     "",
                     {}};
  }
  Kernel kernel;
  kernel.families = reader.list(
      "families", descriptor.families, [](const std::string& word) { return parse_family(word); },
      "a family of `gearshift plan`");
  read_contract(descriptor, reader, kernel.contract);
  if (reader.error()) return *reader.error();
  loaded_kernels[slot] = &descriptor;
  kernel.name = state.kept(descriptor.name);
  kernel.backend = state.kept(descriptor.backend);
  kernel.version = descriptor.version;
  kernel.activation = descriptor.float_activations != 0 ? ActivationUse::float16 : ActivationUse::as_checkpoint;
  if (!reader.text(descriptor.accumulator).empty()) kernel.accumulator = state.kept(descriptor.accumulator);
  if (descriptor.bound_c > 0) kernel.bound_c = descriptor.bound_c;
  if (descriptor.bound_u > 0) kernel.bound_u = descriptor.bound_u;
  kernel.layout = layout_for(descriptor, slot, plugin, own);
  if (descriptor.workspace_bytes != nullptr) kernel.workspace_bytes = bridges[slot].workspace_bytes;
  kernel.run = bridges[slot].run;
  kernel.formula = state.kept(reader.text(descriptor.formula));
  const Kernel* added = &state.kernels.emplace_back(std::move(kernel));
  const std::string why = reader.text(descriptor.why);
  state.reasons[added] = state.kept("plugin " + plugin + (why.empty() ? "" : ": " + why));
  return added;
}

Result<std::vector<const Kernel*>> load(const std::string& file, const Registry& base) {
  const auto refuse = [&](std::string found, std::string wanted) {
    return ErrorInfo{
        ErrorCode::usage, fmt::format("plugin {}", printable(file)), std::move(found), std::move(wanted), "", {}};
  };
  std::error_code ignored;
  const std::string path = std::filesystem::canonical(file, ignored).string();
  if (path.empty()) return refuse("no such file", "a shared object");
  const std::lock_guard lock(loaded().mutex);
  if (const auto known = loaded().files.find(path); known != loaded().files.end()) return known->second;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return refuse(printable(dlerror()), "a shared object that can be loaded");
  const auto entry = reinterpret_cast<decltype(&gearshift_plugin)>(dlsym(library, "gearshift_plugin"));
  if (entry == nullptr) return refuse("no function gearshift_plugin", "a plugin (docs/plugins.md)");
  const gearshift_plugin_table* table = entry(GEARSHIFT_PLUGIN_ABI);
  if (table == nullptr || table->abi != GEARSHIFT_PLUGIN_ABI)
    return refuse(table == nullptr ? "another version of the plugin interface"
                                   : fmt::format("version {} of the plugin interface", table->abi),
                  fmt::format("version {}", GEARSHIFT_PLUGIN_ABI));
  const std::string plugin = table->name == nullptr ? "" : table->name;
  if (!is_name(plugin)) return refuse(fmt::format("the name '{}'", printable(plugin)), "small letters, digits and '_'");
  if (table->kernels == nullptr || table->kernel_count < 1) return refuse("no kernel", "a table of kernels");
  std::vector<const Kernel*> kernels;
  std::vector<const Layout*> layouts;
  for (int64_t i = 0; i < table->kernel_count; ++i) {
    GEARSHIFT_TRY(const Kernel* kernel, add_kernel(table->kernels[i], file, plugin, base, layouts));
    kernels.push_back(kernel);
  }
  loaded().files[path] = kernels;
  return kernels;
}

}  // namespace

Result<Registry> with_plugins(const Registry& base, const std::vector<std::string>& files) {
  Registry registry = base;
  for (const std::string& file : files) {
    GEARSHIFT_TRY(const std::vector<const Kernel*> kernels, load(file, base));
    for (const Kernel* kernel : kernels) {
      for (const Family family : kernel->families) {
        for (KernelList& list : registry.lists) {
          if (list.platform != kernel->platform || list.family != family) continue;
          const bool there = std::any_of(list.entries.begin(), list.entries.end(),
                                         [&](const ListEntry& entry) { return entry.kernel->name == kernel->name; });
          if (!there) list.entries.push_back({kernel, 1, 0, loaded().reasons[kernel]});
        }
      }
    }
  }
  return registry;
}

}  // namespace gearshift
