// Two plan files, or two plans of one model that differ in one option.
#include <algorithm>

#include "output.h"
#include "report/documents.h"
#include "report/texts.h"
#include "report/usage.h"

namespace gearshift::cli {

namespace {

struct Sides {
  Options before, after;
  std::string option;  // the one that differs, with both values
  std::string labels[2];
};

ErrorInfo usage(std::string found, std::string wanted) {
  return {ErrorCode::usage,
          "diff",
          std::move(found),
          std::move(wanted),
          "gearshift diff MODEL --device sm_90 --device sm_121",
          {}};
}

std::string written(const std::string& option, const OptionSpec& spec, const std::string& value) {
  return "--" + option + (spec.argument.empty() ? "=" : " ") + shown(value);
}

// The option that the command line gives twice. One that takes a single value cannot mean anything else, so it goes
// before those that may be repeated.
Result<std::string> doubled_option(const Options& options) {
  std::vector<std::string> single, repeatable;
  for (const auto& [name, value] : options) {
    if (value.source != "command line" || value.values.size() < 2) continue;
    const OptionSpec* spec = find_option(name);
    if (spec == nullptr || spec->use == OptionUse::front_end) continue;
    const bool repeats = spec->kind == OptionKind::list || spec->kind == OptionKind::repeated;
    (repeats ? repeatable : single).push_back(name);
  }
  const std::vector<std::string>& candidates = single.empty() ? repeatable : single;
  if (candidates.empty()) return usage("one MODEL and no option given twice", "two plan files, or one option twice");
  if (candidates.size() > 1)
    return usage("--" + candidates[0] + " and --" + candidates[1] + " given twice", "one option given twice");
  return candidates.front();
}

Result<Sides> sides_of(const Options& options) {
  const Result<std::string> name = doubled_option(options);
  if (!name.ok()) return name.error();
  const OptionValue& value = options.at(*name);
  if (value.values.size() != 2)
    return usage("--" + *name + " given " + std::to_string(value.values.size()) + " times", "twice");
  Sides sides{options, options, *name, {}};
  for (const auto& [side, index] : {std::pair(&sides.before, 0), std::pair(&sides.after, 1)}) {
    (*side)[*name].values = {value.values[static_cast<size_t>(index)]};
    sides.labels[index] = written(*name, *find_option(*name), value.values[static_cast<size_t>(index)]);
  }
  return sides;
}

Result<std::pair<PlanRecord, PlanRecord>> records_of(const Call& call) {
  std::vector<PlanRecord> records;
  if (call.words.size() == 2) {
    for (const std::string& path : call.words) {
      Result<PlanRecord> record = read_plan_record(path);
      if (!record.ok()) return record.error();
      records.push_back(*std::move(record));
    }
  } else {
    const Result<Sides> sides = sides_of(call.options);
    if (!sides.ok()) return sides.error();
    for (const auto& [options, label] :
         {std::pair(&sides->before, sides->labels[0]), std::pair(&sides->after, sides->labels[1])}) {
      const Result<Plan> plan = plan_model(call.model, *options);
      if (!plan.ok()) {
        ErrorInfo error = plan.error();
        error.subject = label + ": " + error.subject;
        return error;
      }
      note_policy(call, *plan);
      records.push_back(record_of(*plan));
      records.back().subject = label;
    }
  }
  return std::pair(std::move(records[0]), std::move(records[1]));
}

}  // namespace

int diff(const Call& call) {
  const auto records = records_of(call);
  if (!records.ok()) return fail(records.error());
  const auto& [before, after] = *records;
  const PlanComparison comparison = compare_plans(before, after);
  return print_result(
      call, [&] { return diff_json(before, after, comparison); },
      [&](size_t width) { return diff_text(before, after, comparison, width); },
      comparison.differences.empty() ? 0 : exit_code(ErrorCode::runtime));
}

}  // namespace gearshift::cli
