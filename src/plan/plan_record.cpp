#include <fmt/format.h>

#include <set>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "base/try.h"
#include "gearshift/plan.h"

namespace gearshift {
namespace {

// ---- from a plan ----------------------------------------------------------------------------------------------------

std::string group_words(const Scheme& scheme) {
  const Grouping& grouping = scheme.weight.grouping;
  if (!scheme.quantized) return "";
  switch (grouping.kind) {
    case Grouping::Kind::group:
      return fmt::format(" g{}", grouping.cols);
    case Grouping::Kind::whole_row:
      return " g-1";
    case Grouping::Kind::block:
      return fmt::format(" g{}x{}", grouping.rows, grouping.cols);
    case Grouping::Kind::tensor:
    case Grouping::Kind::row:
      return "";
  }
  return "";
}

std::string arithmetic_words(std::string_view weight, std::string_view activation, std::string_view accumulator,
                             std::string_view differs) {
  std::string words = fmt::format("{} x {}, {}", weight, activation, accumulator);
  if (!differs.empty()) words += fmt::format(" ({})", differs);
  return words;
}

RecordedLayer recorded(const LayerPlan& row) {
  const LayerSpec& layer = row.layer;
  const Decision& decision = *row.decision;
  RecordedLayer record;
  record.name = layer.name;
  record.family = name(layer.family);
  record.experts = layer.experts;
  record.n = layer.n;
  record.k = layer.k;
  record.scheme = std::string(name(layer.scheme.weight.format)) + group_words(layer.scheme);
  if (layer.scheme.activation) record.scheme += fmt::format(" x {}", name(layer.scheme.activation->format));
  record.arithmetic = arithmetic_words(decision.weight_arithmetic, decision.activation_arithmetic, decision.accumulator,
                                       decision.differs);
  for (const PlannedRange& range : decision.by_batch()) {
    record.ranges.push_back({range.m_min, range.m_max, std::string(range.kernel->name),
                             std::string(range.kernel->backend), std::string(range.source),
                             std::string(range.activation), std::string(range.kernel->layout->name),
                             std::string(range.tactic)});
  }
  return record;
}

// ---- from a document ------------------------------------------------------------------------------------------------

constexpr size_t kLongestDocument = size_t{1} << 30;

// Reads members of one object; remembers the first that is missing or of another kind.
class Members {
 public:
  Members(const Json* object, std::string where) : object_(object), where_(std::move(where)) {
    if (object_ == nullptr || !object_->is(Json::Kind::object)) miss("", "an object", object_);
  }

  std::string text(std::string_view key) {
    const Json* value = find(key);
    if (value != nullptr && value->is(Json::Kind::string)) return value->string;
    miss(key, "a text", value);
    return "";
  }
  // "" for null.
  std::string text_or_null(std::string_view key) {
    const Json* value = find(key);
    return value != nullptr && value->is_null() ? "" : text(key);
  }
  int64_t integer(std::string_view key, int64_t least) {
    const Json* value = find(key);
    if (value != nullptr && value->is(Json::Kind::integer) && value->integer >= least) return value->integer;
    miss(key, fmt::format("a whole number from {} up", least), value);
    return least;
  }
  // 0 for null.
  int64_t integer_or_null(std::string_view key, int64_t least) {
    const Json* value = find(key);
    return value != nullptr && value->is_null() ? 0 : integer(key, least);
  }
  const std::vector<Json>& items(std::string_view key) {
    static const std::vector<Json> none;
    const Json* value = find(key);
    if (value != nullptr && value->is(Json::Kind::array)) return value->items;
    miss(key, "a list", value);
    return none;
  }
  const Json* find(std::string_view key) const { return object_ == nullptr ? nullptr : object_->find(key); }

  const std::optional<ErrorInfo>& error() const { return error_; }

 private:
  void miss(std::string_view key, std::string wanted, const Json* value) {
    if (error_) return;
    const std::string place = key.empty() ? where_ : fmt::format("{}{}{}", where_, where_.empty() ? "" : ".", key);
    std::string found = value == nullptr ? "nothing" : std::string(name(value->kind));
    if (value != nullptr && value->is(Json::Kind::integer)) found = std::to_string(value->integer);
    error_ = ErrorInfo{ErrorCode::usage, place, std::move(found), std::move(wanted), "", {}};
  }

  const Json* object_;
  std::string where_;
  std::optional<ErrorInfo> error_;
};

std::string group_words(const Json* group) {
  if (group == nullptr || group->is_null()) return "";
  if (group->is(Json::Kind::integer)) return fmt::format(" g{}", group->integer);
  if (group->items.size() == 2) return fmt::format(" g{}x{}", group->items[0].integer, group->items[1].integer);
  return "";
}

Result<std::string> read_scheme(const Json* scheme, const std::string& where) {
  Members members(scheme, where);
  Members weight(members.find("weight"), where + ".weight");
  std::string words = weight.text("format") + group_words(weight.find("group"));
  if (weight.error()) return *weight.error();
  const Json* activation = members.find("activation");
  if (activation == nullptr || activation->is_null()) return words;
  Members quantized(activation, where + ".activation");
  words += " x " + quantized.text("format");
  if (quantized.error()) return *quantized.error();
  return words;
}

Result<std::string> read_arithmetic(const Json* arithmetic, const std::string& where) {
  Members members(arithmetic, where);
  const std::string weight = members.text("weight"), activation = members.text("activation");
  const std::string accumulator = members.text("accumulator"), differs = members.text_or_null("differs");
  if (members.error()) return *members.error();
  return arithmetic_words(weight, activation, accumulator, differs);
}

Result<std::vector<RecordedRange>> read_ranges(const std::vector<Json>& items, const std::string& where) {
  std::vector<RecordedRange> ranges;
  const auto gap = [&](std::string found, std::string wanted) {
    return ErrorInfo{ErrorCode::usage, where, std::move(found), std::move(wanted), "", {}};
  };
  for (size_t i = 0; i < items.size(); ++i) {
    Members members(&items[i], fmt::format("{}[{}]", where, i));
    RecordedRange range;
    range.m_min = members.integer("m_min", 1);
    range.m_max = members.integer_or_null("m_max", 1);
    range.kernel = members.text("kernel");
    range.backend = members.text("backend");
    range.source = members.text("source");
    range.activation = members.text("activation");
    range.layout = members.text("layout");
    if (members.find("tactic") != nullptr) range.tactic = members.text("tactic");
    if (members.error()) return *members.error();
    const bool follows = ranges.empty() ? range.m_min == 1
                                        : ranges.back().m_max != 0 && ranges.back().m_max < range.m_min &&
                                              range.m_min - ranges.back().m_max == 1;
    if (!follows || (range.m_max != 0 && range.m_max < range.m_min))
      return gap(fmt::format("range {} from {}", i, range.m_min), "batch ranges from 1 up without gap or overlap");
    ranges.push_back(std::move(range));
  }
  if (ranges.empty() || ranges.back().m_max != 0) return gap("no last range", "a last range whose m_max is null");
  return ranges;
}

Result<RecordedLayer> read_layer(const Json& json, const std::string& where) {
  Members members(&json, where);
  RecordedLayer layer;
  layer.name = members.text("name");
  layer.family = members.text("family");
  layer.experts = members.integer("experts", 0);
  layer.n = members.integer("n", 1);
  layer.k = members.integer("k", 1);
  const std::vector<Json>& kernels = members.items("kernels");
  if (members.error()) return *members.error();
  GEARSHIFT_TRY(layer.scheme, read_scheme(members.find("scheme"), where + ".scheme"));
  GEARSHIFT_TRY(layer.arithmetic, read_arithmetic(members.find("arithmetic"), where + ".arithmetic"));
  GEARSHIFT_TRY(layer.ranges, read_ranges(kernels, where + ".kernels"));
  return layer;
}

Result<PlanRecord> read_document(const Json& json) {
  Members top(&json, "");
  if (const std::string schema = top.text("schema"); schema != "gearshift.plan/1") {
    return ErrorInfo{ErrorCode::usage, "schema", "'" + printable(schema) + "'", "'gearshift.plan/1'", "", {}};
  }
  PlanRecord record;
  record.hash = top.text("hash");
  const std::vector<Json>& layers = top.items("layers");
  Members model(top.find("model"), "model"), device(top.find("device"), "device");
  record.model = model.text("path");
  record.device = device.text("name");
  record.arch = device.text("arch");
  for (const Members* members : {&top, &model, &device}) {
    if (members->error()) return *members->error();
  }
  std::set<std::string_view> names;
  record.layers.reserve(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string where = fmt::format("layers[{}]", i);
    GEARSHIFT_TRY(RecordedLayer layer, read_layer(layers[i], where));
    record.layers.push_back(std::move(layer));
    if (!names.insert(record.layers.back().name).second) {
      return ErrorInfo{ErrorCode::usage,   where, "'" + printable(record.layers.back().name) + "' again",
                       "every layer once", "",    {}};
    }
  }
  return record;
}

}  // namespace

PlanRecord record_of(const Plan& plan) {
  PlanRecord record;
  record.subject = record.model = plan.model_path;
  record.hash = plan.hash;
  record.device = plan.device.name;
  record.arch = plan.device.arch;
  for (const LayerPlan& row : plan.layers) record.layers.push_back(recorded(row));
  return record;
}

Result<PlanRecord> parse_plan_record(std::string_view json, const std::string& subject) {
  Result<Json> tree = parse_json(json, subject);
  if (!tree) {
    ErrorInfo error = tree.error();
    error.code = ErrorCode::usage;
    error.hint = "a plan is written by `gearshift plan MODEL --json FILE`";
    return error;
  }
  Result<PlanRecord> record = read_document(*tree);
  if (!record) {
    ErrorInfo error = record.error();
    error.subject = error.subject.empty() ? subject : subject + ": " + error.subject;
    error.hint = "a plan is written by `gearshift plan MODEL --json FILE`";
    return error;
  }
  record->subject = subject;
  return record;
}

Result<PlanRecord> read_plan_record(const std::string& path) {
  Result<std::string> text = read_text(path, kLongestDocument);
  if (!text) {
    ErrorInfo error = text.error();
    if (error.code == ErrorCode::damaged_checkpoint) error.code = ErrorCode::usage;  // it is no checkpoint
    return error;
  }
  return parse_plan_record(*text, path);
}

}  // namespace gearshift
