#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "report/choices.h"
#include "report/html.h"
#include "report/pages.h"
#include "report/quantities.h"
#include "report/remedies.h"
#include "report/text_parts.h"

namespace gearshift {

namespace {

using html::Bar;
using html::escaped;

// Kernels in order of their first use: their numbers are their colours.
std::vector<std::string> kernels_of(const std::vector<LayerGroup>& groups) {
  std::vector<std::string> names;
  for (const LayerGroup& group : groups) {
    for (const PlannedRange& range : group.decision().by_batch()) {
      if (std::find(names.begin(), names.end(), range.kernel->name) == names.end())
        names.emplace_back(range.kernel->name);
    }
  }
  return names;
}

size_t number_of(const std::vector<std::string>& names, std::string_view name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

// Batch sizes on a logarithmic axis: 1 at the left, twice the largest of interest at the right.
class BatchAxis {
 public:
  explicit BatchAxis(const Plan& plan) {
    for (const int64_t m : plan.policy.batch) largest_ = std::max(largest_, m);
    for (const LayerPlan& row : plan.layers) {
      for (const PlannedRange& range : row.decision->by_batch()) largest_ = std::max(largest_, range.m_min);
    }
  }
  double at(int64_t m) const {
    return std::clamp(std::log2(static_cast<double>(m)) / (std::log2(static_cast<double>(largest_)) + 1), 0.0, 1.0);
  }
  double end(int64_t m_max) const { return m_max == 0 ? 1.0 : at(m_max < largest_ ? m_max + 1 : m_max); }
  std::vector<html::Tick> ticks() const {
    std::vector<html::Tick> ticks;
    for (int64_t m = 1; m > 0 && m <= largest_; m *= 4) ticks.push_back({at(m), std::to_string(m)});
    return ticks;
  }

 private:
  int64_t largest_ = 16;
};

std::string ranges_chart(const Plan& plan, const std::vector<LayerGroup>& groups,
                         const std::vector<std::string>& kernels) {
  const BatchAxis axis(plan);
  std::vector<Bar> bars;
  for (const LayerGroup& group : groups) {
    Bar bar{group.pattern, count_text(static_cast<int64_t>(group.layers.size()), "row", "rows"), {}};
    for (const PlannedRange& range : group.decision().by_batch()) {
      bar.segments.push_back({axis.at(range.m_min), axis.end(range.m_max), number_of(kernels, range.kernel->name),
                              fmt::format("{}: {}, activations {}", batch_text(range.m_min, range.m_max),
                                          range.kernel->name, range.activation)});
    }
    bars.push_back(std::move(bar));
  }
  return html::chart(bars, axis.ticks());
}

std::string bytes_chart(const std::vector<LayerGroup>& groups, const std::vector<std::string>& kernels) {
  std::vector<uint64_t> bytes(kernels.size());
  for (const LayerGroup& group : groups) {
    std::set<size_t> counted;
    for (const PlannedRange& range : group.decision().by_batch()) {
      const size_t kernel = number_of(kernels, range.kernel->name);
      if (counted.insert(kernel).second) bytes[kernel] += group.weight_bytes;
    }
  }
  const uint64_t most = bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
  std::vector<Bar> bars;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const double share = most == 0 ? 0 : static_cast<double>(bytes[i]) / static_cast<double>(most);
    bars.push_back({kernels[i], format_bytes(bytes[i]), {{0, share, i, format_bytes(bytes[i])}}});
  }
  return html::chart(bars, {});
}

std::string fact(std::string_view term, std::string_view text) { return html::tag("dt", term) + html::tag("dd", text); }

std::string heading(const Plan& plan, std::string_view title) {
  std::string options;
  for (const PolicyOrigin& origin : plan.origins)
    options += fmt::format("{}{} = {} ({})", options.empty() ? "" : "; ", origin.option, origin.value, origin.source);
  std::string out = html::tag("h1", title) + "\n<dl>";
  out += fact("model", plan.model_path);
  out += fact("kind", fmt::format("{} {}, {} in {}", plan.architecture, plan.quant_method,
                                  count_text(plan.linear_layers, "linear layer", "linear layers"),
                                  count_text(static_cast<int64_t>(plan.layers.size()), "row", "rows")));
  out += fact("device", device_text(plan.device));
  out += fact("policy", policy_text(plan));
  out += fact(plan.policy.tp > 1 ? "a rank" : "memory", memory_words(plan));
  if (!options.empty()) out += fact("options", options);
  return out + fact("plan", plan.hash) + "</dl>\n";
}

std::string groups_table(const std::vector<LayerGroup>& groups, const std::vector<RunsAs>& runs) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < groups.size(); ++i) {
    const LayerSpec& layer = groups[i].spec();
    rows.push_back({std::to_string(groups[i].layers.size()), groups[i].pattern, shape_text(layer.n, layer.k),
                    layer.kind == LayerKind::experts ? std::to_string(layer.experts) : "", groups[i].scheme,
                    format_bytes(groups[i].weight_bytes), letter_of(runs, i)});
  }
  return html::table({"rows", "layer", "N x K", "experts", "scheme", "weights", "as"}, rows);
}

std::string runs_table(const std::vector<RunsAs>& runs) {
  std::vector<std::vector<std::string>> rows;
  for (const RunsAs& run : runs) {
    const Decision& decision = run.first->decision();
    for (const PlannedRange& range : decision.by_batch()) {
      rows.push_back({run.letter, range_text(range.m_min, range.m_max), std::string(range.kernel->name),
                      std::string(range.kernel->backend), arithmetic_text(decision, range), std::string(range.source),
                      why_text(decision, range)});
    }
  }
  return html::table({"as", "batch", "kernel", "backend", "arithmetic", "source", "why"}, rows);
}

std::string candidates(const LayerGroup& group) {
  std::vector<std::vector<std::string>> rows;
  for (const Verdict& verdict : group.decision().candidates) {
    rows.push_back({std::string(verdict.kernel->name), std::string(name(verdict.kind)),
                    std::string(name(verdict.stage)), verdict.field, verdict.found, verdict.wanted, verdict.reason,
                    what_would_change_it(verdict, *group.layers.front())});
  }
  return "<details>" + html::tag("summary", group_title(group)) +
         html::table({"candidate", "verdict", "stage", "field", "found", "wanted", "reason", "what it needs"}, rows) +
         "</details>\n";
}

std::string list(std::string_view title, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string out = html::tag("h2", title) + "<ul>";
  for (const std::string& item : items) out += html::tag("li", item);
  return out + "</ul>\n";
}

std::string degrees_table(const std::vector<TpDegree>& degrees) {
  if (degrees.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const TpDegree& degree : degrees)
    rows.push_back({std::to_string(degree.degree), degree.ok ? "yes" : "no",
                    degree.ok ? "" : std::to_string(degree.layers), obstacle_text(degree)});
  return html::tag("h2", "Tensor-parallel degrees") +
         html::table({"ranks", "without a rescue", "rows in the way", "the first of them"}, rows);
}

std::string plan_sections(const Plan& plan) {
  const std::vector<LayerGroup> groups = group_layers(plan);
  const std::vector<RunsAs> runs = runs_of(groups);
  const std::vector<std::string> kernels = kernels_of(groups);
  std::string out = html::tag("h2", "Kernels by batch size") + html::legend(kernels) +
                    ranges_chart(plan, groups, kernels) + html::tag("h2", "Weights by kernel") +
                    bytes_chart(groups, kernels) + html::tag("h2", "Layers") + groups_table(groups, runs) +
                    html::tag("h2", "What runs") + runs_table(runs) +
                    list("Shards that need a rescue", rescue_lines(groups)) + degrees_table(plan.tp);
  std::vector<std::string> warnings;
  for (const Warning& warning : plan.warnings) warnings.push_back(warning.code + ": " + warning.message);
  out += list("Warnings", warnings) + html::tag("h2", "Every candidate");
  for (const LayerGroup& group : groups) out += candidates(group);
  return out + list("Left out, no linear layers", plan.skipped);
}

// ---- measured rows --------------------------------------------------------------------------------------------------

std::string measured_table(const std::vector<Measurement>& rows) {
  std::vector<std::vector<std::string>> cells;
  for (const Measurement& m : rows) {
    const Comparison& proof = m.comparison;
    cells.push_back({m.layer, std::to_string(m.m), m.kernel, m.timing ? time_text(m.timing->median_us) : "",
                     m.timing ? rate_text(m.gbytes_per_s) : "", error_text(proof.relative_error),
                     error_text(proof.worst_row), error_text(proof.tolerance), proof.ok ? "ok" : proof.failure});
  }
  return html::table({"layer", "batch", "kernel", "median", "GB/s", "error", "worst row", "tolerance", "result"},
                     cells);
}

std::string stack_chart(const std::vector<StackTime>& stack) {
  std::vector<std::string> families;
  double most = 0;
  for (const StackTime& time : stack) most = std::max(most, time.total_us);
  std::vector<Bar> bars;
  for (const StackTime& time : stack) {
    Bar bar{fmt::format("batch {}", time.m), time_text(time.total_us), {}};
    double at = 0;
    for (const auto& [family, share] : time.share_by_family) {
      if (std::find(families.begin(), families.end(), family) == families.end()) families.push_back(family);
      const double length = most > 0 ? share * time.total_us / most : 0;
      bar.segments.push_back({at, at + length, number_of(families, family), family + " " + percent_text(share)});
      at += length;
    }
    bars.push_back(std::move(bar));
  }
  return html::legend(families) + html::chart(bars, {});
}

std::vector<std::string> quarantine_lines(const std::vector<Quarantine>& quarantined) {
  std::vector<std::string> lines;
  for (const Quarantine& q : quarantined)
    lines.push_back(fmt::format("{}, {}: {}", q.kernel, batch_text(q.m_min, q.m_max), q.reason));
  return lines;
}

}  // namespace

std::string plan_html(const Plan& plan) {
  return html::page("plan of " + plan.model_path, heading(plan, "Plan") + plan_sections(plan));
}

std::string run_html(const RunReport& report) {
  const Plan& plan = report.plan;
  return html::page("run of " + plan.model_path,
                    heading(plan, "Run") + html::tag("h2", "Time of all layers") + stack_chart(report.stack) +
                        list("Quarantined", quarantine_lines(report.quarantined)) + plan_sections(plan) +
                        html::tag("h2", "Measured") + measured_table(report.rows) + list("Not run", report.not_run));
}

std::string verify_html(const VerifyReport& report) {
  const Plan& plan = report.plan;
  return html::page("verification of " + plan.model_path,
                    heading(plan, "Verification") + list("Quarantined", quarantine_lines(report.quarantined)) +
                        html::tag("h2", "Checks") + measured_table(report.rows) + plan_sections(plan));
}

}  // namespace gearshift
