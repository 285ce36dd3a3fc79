#include "pipeline/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "base/text.h"
#include "base/try.h"

namespace gearshift {

namespace {

// Reads the occurrences of one option; every error names it where the user wrote it.
class Reader {
 public:
  Reader(std::string_view name, const OptionValue& value) : name_(name), value_(value) {}

  ErrorInfo wrong(std::string found, std::string wanted, std::string hint = "") const {
    ErrorInfo error;
    error.code = ErrorCode::usage;
    error.subject = value_.written.empty() ? fmt::format("--{}", name_) : value_.written;
    error.found = std::move(found);
    error.wanted = std::move(wanted);
    error.hint = std::move(hint);
    return error;
  }
  ErrorInfo unknown(std::string_view word, std::string what, const std::vector<std::string_view>& valid) const {
    const std::vector<std::string> near = near_names(word, valid);
    const std::vector<std::string> all(valid.begin(), valid.end());
    return wrong(quoted(word), fmt::format("{}: {}", what, join(all, ", ")),
                 near.empty() ? "" : fmt::format("did you mean {}?", join(near, ", ")));
  }
  static std::string quoted(std::string_view word) { return fmt::format("'{}'", printable(word)); }

  Result<bool> flag() const {
    GEARSHIFT_TRY(const std::string word, text());
    const std::string value = lower(word);
    if (value == "1" || value == "true" || value == "yes") return true;
    if (value == "0" || value == "false" || value == "no") return false;
    return wrong(quoted(word), "1, 0, true, false, yes or no");
  }

  Result<std::string> text() const {
    for (const std::string& value : value_.values) {
      if (value != value_.values.front()) {
        return wrong(fmt::format("{} and {}", quoted(value_.values.front()), quoted(value)), "one value");
      }
    }
    if (value_.values.empty() || value_.values.front().empty()) return wrong("nothing", "a value");
    return value_.values.front();
  }

  Result<std::vector<std::string>> list() const {
    std::vector<std::string> items;
    for (const std::string& value : value_.values) {
      for (std::string& item : split(value, ',')) {
        if (item.empty()) return wrong(quoted(value), "names or numbers separated by single commas");
        items.push_back(std::move(item));
      }
    }
    if (items.empty()) return wrong("nothing", "at least one item");
    return items;
  }

  Result<int64_t> integer(std::string_view word, int64_t min, int64_t max) const {
    const std::optional<int64_t> number = parse_integer(word);
    if (!number || *number < min || *number > max)
      return wrong(quoted(word), fmt::format("a whole number from {} to {}", min, max));
    return *number;
  }

  Result<double> seconds() const {
    constexpr double most = 1e6;
    GEARSHIFT_TRY(const std::string word, text());
    const std::optional<double> number = parse_number(word);
    if (!number || !(*number > 0) || *number > most)
      return wrong(quoted(word), fmt::format("seconds, more than 0 and at most {:.0f}", most));
    return *number;
  }

  Result<std::string> one_of(const std::vector<std::string_view>& words) const {
    GEARSHIFT_TRY(const std::string word, text());
    if (std::find(words.begin(), words.end(), word) == words.end()) return unknown(word, "one of", words);
    return word;
  }

  // "B", "FAMILY=B", both, in any order.
  Result<BackendChoice> backends() const {
    GEARSHIFT_TRY(const std::vector<std::string> items, list());
    BackendChoice choice;
    bool global_given = false;
    for (const std::string& item : items) {
      const size_t equals = item.find('=');
      if (equals == std::string::npos) {
        if (global_given && choice.global != item) {
          return wrong(fmt::format("{} and {}", quoted(choice.global), quoted(item)), "one backend for all families");
        }
        choice.global = item;
        global_given = true;
        continue;
      }
      const std::string family_name = item.substr(0, equals), backend = item.substr(equals + 1);
      const std::optional<Family> family = parse_family(family_name);
      if (!family) {
        std::vector<std::string_view> families;
        for (const Family valid : all_families()) families.push_back(name(valid));
        return unknown(family_name, "a family", families);
      }
      if (backend.empty()) return wrong(quoted(item), "FAMILY=BACKEND");
      choice.families[*family] = backend;
    }
    return choice;
  }

  // "GLOB=B": the last '=' divides, a module name may hold others.
  Result<std::vector<std::pair<std::string, std::string>>> pairs(std::string_view form) const {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const std::string& value : value_.values) {
      const size_t equals = value.rfind('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == value.size()) {
        return wrong(quoted(value), std::string(form));
      }
      pairs.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    }
    return pairs;
  }

  // "NAME=VALUE[,NAME=VALUE...]"; an item without '=' goes on with the value before it, which may be a list itself.
  Result<std::vector<std::pair<std::string, std::string>>> assignments() const {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const std::string& value : value_.values) {
      bool begun = false;
      for (const std::string& item : split(value, ',')) {
        const size_t equals = item.find('=');
        if (equals == 0 || (equals == std::string::npos && !begun)) return wrong(quoted(value), "NAME=VALUE[,...]");
        if (equals == std::string::npos)
          pairs.back().second += "," + item;
        else
          pairs.emplace_back(item.substr(0, equals), item.substr(equals + 1));
        begun = true;
      }
    }
    return pairs;
  }

  const std::vector<std::string>& values() const { return value_.values; }
  bool from_environment() const { return value_.source == "environment"; }

 private:
  std::string_view name_;
  const OptionValue& value_;
};

constexpr int64_t largest_batch = std::numeric_limits<int32_t>::max();
constexpr int64_t most_threads = 4096;

Result<DType> read_dtype(const Reader& reader) {
  GEARSHIFT_TRY(const std::string word, reader.one_of({"bf16", "fp16", "fp32"}));
  return word == "bf16" ? DType::bf16 : word == "fp16" ? DType::f16 : DType::f32;
}

Result<Arithmetic> read_arithmetic(const Reader& reader) {
  GEARSHIFT_TRY(const std::string word, reader.one_of({"exact", "higher", "lossy"}));
  return word == "exact" ? Arithmetic::exact : word == "higher" ? Arithmetic::higher : Arithmetic::lossy;
}

Result<std::vector<int64_t>> read_batch(const Reader& reader) {
  GEARSHIFT_TRY(const std::vector<std::string> items, reader.list());
  std::vector<int64_t> batch;
  for (const std::string& item : items) {
    GEARSHIFT_TRY(const int64_t m, reader.integer(item, 1, largest_batch));
    batch.push_back(m);
  }
  return batch;
}

// "1073741824", "1.5G", "512MiB"; K, M, G and T are powers of 1000, with an i of 1024.
Result<uint64_t> read_bytes(const Reader& reader) {
  GEARSHIFT_TRY(const std::string word, reader.text());
  std::string text = lower(word);
  if (!text.empty() && text.back() == 'b') text.pop_back();
  const bool binary = text.size() > 1 && text.back() == 'i';
  if (binary) text.pop_back();
  constexpr std::string_view units = "kmgt";
  const size_t unit = text.empty() ? std::string_view::npos : units.find(text.back());
  double factor = 1;
  if (unit != std::string_view::npos) {
    text.pop_back();
    for (size_t i = 0; i <= unit; ++i) factor *= binary ? 1024 : 1000;
  }
  const std::optional<double> number = parse_number(text);
  if (!number || !(*number >= 0) || (binary && unit == std::string_view::npos) || *number * factor > 0x1p62)
    return reader.wrong(Reader::quoted(word), "a size in bytes: 1073741824, 1.5G or 512MiB");
  return static_cast<uint64_t>(*number * factor);
}

constexpr int64_t largest_degree = 1024;

Result<void> read_tp(const Reader& reader, Settings& settings) {
  GEARSHIFT_TRY(const std::string word, reader.text());
  settings.tp_auto = word == "auto";
  if (settings.tp_auto) return {};
  const std::optional<int64_t> degree = parse_integer(word);
  if (!degree || *degree < 1 || *degree > largest_degree)
    return reader.wrong(Reader::quoted(word), fmt::format("auto or a whole number from 1 to {}", largest_degree));
  settings.policy.tp = *degree;
  return {};
}

Result<std::vector<QuantizeRule>> read_rules(const Reader& reader) {
  std::vector<QuantizeRule> rules;
  for (const std::string& value : reader.values()) {
    const size_t equals = value.rfind('=');
    if (equals == std::string::npos) {
      rules.push_back({"", value});
    } else if (equals == 0 || equals + 1 == value.size()) {
      return reader.wrong(Reader::quoted(value), "SCHEME or GLOB=SCHEME");
    } else {
      rules.push_back({value.substr(0, equals), value.substr(equals + 1)});
    }
  }
  return rules;
}

Result<std::vector<Family>> read_families(const Reader& reader) {
  GEARSHIFT_TRY(const std::vector<std::string> items, reader.list());
  std::vector<Family> families;
  std::vector<std::string_view> valid;
  for (const Family family : all_families()) valid.push_back(name(family));
  for (const std::string& item : items) {
    const std::optional<Family> family = parse_family(item);
    if (!family) return reader.unknown(item, "a family", valid);
    families.push_back(*family);
  }
  return families;
}

// "N,K" an occurrence; a variable has been split at its commas, two numbers to a shape.
Result<std::vector<std::pair<int64_t, int64_t>>> read_layer_shapes(const Reader& reader) {
  constexpr int64_t kLargest = int64_t{1} << 31;
  std::vector<int64_t> numbers;
  for (const std::string& value : reader.values()) {
    const std::vector<std::string> words = split(value, ',');
    if (!reader.from_environment() && words.size() != 2) return reader.wrong(Reader::quoted(value), "N,K");
    for (const std::string& word : words) {
      GEARSHIFT_TRY(const int64_t number, reader.integer(word, 1, kLargest));
      numbers.push_back(number);
    }
  }
  if (numbers.size() % 2 != 0 || numbers.empty()) return reader.wrong("half a shape", "N,K");
  std::vector<std::pair<int64_t, int64_t>> shapes;
  for (size_t i = 0; i < numbers.size(); i += 2) shapes.emplace_back(numbers[i], numbers[i + 1]);
  return shapes;
}

// "E,TOPK,N,K" an occurrence; a variable has been split at its commas.
Result<std::vector<MoeShape>> read_moe_shapes(const Reader& reader) {
  constexpr int64_t kMostExperts = 4096, kLargest = int64_t{1} << 31;
  constexpr std::string_view kWanted = "E,TOPK,N,K";
  std::vector<std::string> words;
  for (const std::string& value : reader.values()) {
    const std::vector<std::string> own = split(value, ',');
    if (!reader.from_environment() && own.size() != 4) return reader.wrong(Reader::quoted(value), std::string(kWanted));
    words.insert(words.end(), own.begin(), own.end());
  }
  if (words.size() % 4 != 0 || words.empty()) return reader.wrong("part of a block", std::string(kWanted));
  std::vector<MoeShape> shapes;
  for (size_t i = 0; i < words.size(); i += 4) {
    MoeShape shape;
    GEARSHIFT_TRY(shape.experts, reader.integer(words[i], 1, kMostExperts));
    GEARSHIFT_TRY(shape.top_k, reader.integer(words[i + 1], 1, shape.experts));
    GEARSHIFT_TRY(shape.n, reader.integer(words[i + 2], 1, kLargest));
    GEARSHIFT_TRY(shape.k, reader.integer(words[i + 3], 1, kLargest));
    shapes.push_back(shape);
  }
  return shapes;
}

// Options of planning.
Result<bool> read_policy_option(std::string_view name, const Reader& reader, Settings& settings) {
  Policy& policy = settings.policy;
  if (name == "linear-backend") {
    GEARSHIFT_TRY(policy.linear, reader.backends());
  } else if (name == "moe-backend") {
    GEARSHIFT_TRY(policy.moe, reader.backends());
  } else if (name == "strict") {
    GEARSHIFT_TRY(policy.strict, reader.flag());
  } else if (name == "disable") {
    GEARSHIFT_TRY(policy.disable, reader.list());
  } else if (name == "batch") {
    GEARSHIFT_TRY(policy.batch, read_batch(reader));
    settings.batch_given = true;
  } else if (name == "selection") {
    GEARSHIFT_TRY(policy.selection, reader.one_of({"static", "measured"}));
  } else if (name == "arithmetic") {
    GEARSHIFT_TRY(policy.arithmetic, read_arithmetic(reader));
  } else if (name == "layer") {
    GEARSHIFT_TRY(policy.layers, reader.pairs("GLOB=BACKEND"));
  } else if (name == "single-kernel") {
    GEARSHIFT_TRY(policy.single_kernel, reader.flag());
  } else if (name == "with") {
    GEARSHIFT_TRY(policy.with, reader.list());
  } else if (name == "without") {
    GEARSHIFT_TRY(policy.without, reader.list());
  } else if (name == "assume") {
    GEARSHIFT_TRY(policy.assume, reader.assignments());
  } else if (name == "batch-invariant") {
    GEARSHIFT_TRY(policy.batch_invariant, reader.flag());
  } else if (name == "memory-budget") {
    GEARSHIFT_TRY(policy.memory_budget, read_bytes(reader));
  } else if (name == "tp") {
    GEARSHIFT_CHECK(read_tp(reader, settings));
  } else if (name == "kernel") {
    GEARSHIFT_TRY(policy.force_kernel, reader.text());
  } else {
    return false;
  }
  return true;
}

// Options that say what to work on, where, and with which files.
Result<void> read_other_option(std::string_view name, const Reader& reader, Settings& settings) {
  if (name == "dtype") {
    GEARSHIFT_TRY(settings.dtype, read_dtype(reader));
  } else if (name == "threads") {
    GEARSHIFT_TRY(const std::string word, reader.text());
    GEARSHIFT_TRY(const int64_t threads, reader.integer(word, 1, most_threads));
    settings.threads = static_cast<int>(threads);
  } else if (name == "seed") {
    GEARSHIFT_TRY(const std::string word, reader.text());
    GEARSHIFT_TRY(const int64_t seed, reader.integer(word, 0, std::numeric_limits<int64_t>::max()));
    settings.seed = static_cast<uint64_t>(seed);
  } else if (name == "fuse") {
    GEARSHIFT_TRY(settings.fuse, reader.flag());
  } else if (name == "no-fuse") {
    GEARSHIFT_TRY(const bool apart, reader.flag());
    settings.fuse = !apart;
  } else if (name == "plugin") {
    GEARSHIFT_TRY(settings.plugins, reader.list());
  } else if (name == "mode") {
    GEARSHIFT_TRY(settings.mode, reader.one_of({"graph", "eager"}));
  } else if (name == "isolation") {
    GEARSHIFT_TRY(settings.isolation, reader.flag());
  } else if (name == "time-budget") {
    GEARSHIFT_TRY(settings.time_budget_s, reader.seconds());
  } else if (name == "launch-limit") {
    GEARSHIFT_TRY(settings.launch_limit_s, reader.seconds());
  } else if (name == "memory-limit") {
    GEARSHIFT_TRY(const std::string word, reader.text());
    GEARSHIFT_TRY(settings.memory_limit, reader.integer(word, 1, std::numeric_limits<int64_t>::max()));
  } else if (name == "scheme") {
    GEARSHIFT_TRY(settings.rules, read_rules(reader));
  } else if (name == "shape") {
    GEARSHIFT_TRY(settings.shapes, read_layer_shapes(reader));
  } else if (name == "moe") {
    GEARSHIFT_TRY(settings.moe_shapes, read_moe_shapes(reader));
  } else if (name == "family") {
    GEARSHIFT_TRY(settings.families, read_families(reader));
  } else if (name == "container") {
    GEARSHIFT_TRY(settings.container, reader.one_of({"compressed-tensors", "modelopt"}));
  } else {
    const std::pair<std::string_view, std::string*> texts[] = {
        {"device", &settings.device},     {"max-isa", &settings.max_isa},
        {"layers", &settings.layers},     {"explain", &settings.explain},
        {"input", &settings.input},       {"output", &settings.output},
        {"out", &settings.out},           {"calibration", &settings.calibration},
        {"registry", &settings.registry}, {"store", &settings.store},
        {"model", &settings.model},       {"lock", &settings.lock}};
    for (const auto& [known, target] : texts) {
      if (known != name) continue;
      GEARSHIFT_TRY(*target, reader.text());
    }
  }
  return {};
}

ErrorInfo unknown_option(const Reader& reader, std::string_view name) {
  std::vector<std::string_view> names;
  for (const OptionSpec& spec : all_options()) names.push_back(spec.name);
  const std::vector<std::string> near = near_names(name, names);
  return reader.wrong("an unknown option", "an option of `gearshift --help`",
                      near.empty() ? "" : fmt::format("did you mean --{}?", join(near, ", --")));
}

// A --json that names no file: standard output, or a switch of the environment.
bool is_switch(std::string_view json) {
  constexpr std::string_view words[] = {"-", "1", "true", "yes", "0", "false", "no"};
  return std::find(std::begin(words), std::end(words), json) != std::end(words);
}

}  // namespace

Result<Settings> read_settings(const Options& options) {
  Settings settings;
  for (const auto& [name, value] : options) {
    const Reader reader(name, value);
    const OptionSpec* spec = find_option(name);
    if (spec == nullptr) return unknown_option(reader, name);
    if (spec->use == OptionUse::front_end) {
      if (name == "json" && !value.values.empty() && !is_switch(value.values.back()))
        settings.json = value.values.back();
      if (name == "html") {
        GEARSHIFT_TRY(settings.html, reader.text());
      }
      continue;
    }
    if (spec->use == OptionUse::later) {
      return reader.wrong("an option that this version does not have yet", "a command without it");
    }
    GEARSHIFT_TRY(const bool done, read_policy_option(name, reader, settings));
    if (!done) GEARSHIFT_CHECK(read_other_option(name, reader, settings));
  }
  return settings;
}

}  // namespace gearshift
