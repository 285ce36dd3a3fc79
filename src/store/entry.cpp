#include "store/entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/text.h"

namespace gearshift {

namespace {

// A row that is longer was not written by us.
constexpr size_t longest_text = 4096;

struct KeyText {
  std::string text;
  void operator()(std::string_view, const std::string& value) {
    text += std::to_string(value.size());
    text += ':';
    text += value;
  }
  void operator()(std::string_view field, int64_t value) { (*this)(field, std::to_string(value)); }
};

struct FieldCheck {
  std::string problem;
  void operator()(std::string_view field, const std::string& value) {
    if (value.size() > longest_text) problem = fmt::format("{} of {} characters", field, value.size());
    if (value.find('\0') != std::string::npos) problem = fmt::format("{} with a zero byte", field);
  }
  void operator()(std::string_view field, int64_t value) {
    if (value < 0) problem = fmt::format("{} {}", field, value);
  }
  void operator()(std::string_view field, double value) {
    if (!std::isfinite(value) || value < 0) problem = fmt::format("{} {}", field, value);
  }
};

auto values_of(const StoreEntry& e) {
  return std::tie(e.samples, e.taken, e.median_us, e.p10_us, e.p90_us, e.error_us, e.worst_row, e.tolerance, e.reason,
                  e.evidence);
}

}  // namespace

std::string_view name(EntryKind kind) {
  switch (kind) {
    case EntryKind::measurement:
      return "measurement";
    case EntryKind::proof:
      return "proof";
    case EntryKind::quarantine:
      return "quarantine";
  }
  return "";
}

std::optional<EntryKind> parse_entry_kind(std::string_view word) {
  for (const EntryKind kind : {EntryKind::measurement, EntryKind::proof, EntryKind::quarantine}) {
    if (name(kind) == word) return kind;
  }
  return std::nullopt;
}

std::string key_text(const StoreEntry& entry) {
  KeyText key{std::string(name(entry.kind))};
  visit_environment(entry.environment, key);
  visit_key(entry, key);
  return std::move(key.text);
}

bool stronger(const StoreEntry& a, const StoreEntry& b) { return values_of(a) > values_of(b); }

std::string why_bad(const StoreEntry& entry) {
  FieldCheck check;
  visit_environment(entry.environment, check);
  visit_key(entry, check);
  visit_values(entry, check);
  if (!check.problem.empty()) return check.problem;
  for (const auto& [field, value] :
       {std::pair("kernel", &entry.kernel), std::pair("layer_class", &entry.layer_class),
        std::pair("dtype", &entry.dtype), std::pair("device", &entry.environment.device)}) {
    if (value->empty()) return fmt::format("no {}", field);
  }
  if (entry.m_min < 1 || (entry.m_max != 0 && entry.m_max < entry.m_min))
    return fmt::format("batch sizes {} to {}", entry.m_min, entry.m_max);
  if (entry.kind == EntryKind::quarantine) return "";
  if (entry.m_min != entry.m_max)
    return fmt::format("a {} at batch sizes {} to {}", name(entry.kind), entry.m_min, entry.m_max);
  if (entry.kind == EntryKind::proof) return "";
  if (entry.mode != "graph" && entry.mode != "eager") return fmt::format("mode '{}'", printable(entry.mode));
  if (entry.samples < 1 || entry.median_us <= 0)
    return fmt::format("{} us from {} samples", entry.median_us, entry.samples);
  if (entry.p10_us > entry.median_us || entry.p90_us < entry.median_us) return "percentiles out of order";
  return "";
}

std::vector<StoreEntry> strongest(std::vector<StoreEntry> rows) {
  std::vector<std::pair<std::string, size_t>> order;
  for (size_t i = 0; i < rows.size(); ++i) order.emplace_back(key_text(rows[i]), i);
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : stronger(rows[a.second], rows[b.second]);
  });
  std::vector<StoreEntry> kept;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || order[i].first != order[i - 1].first) kept.push_back(std::move(rows[order[i].second]));
  }
  return kept;
}

Store store_of(const std::vector<StoreEntry>& rows, const RunEnvironment& environment) {
  Store store;
  for (const StoreEntry& e : rows) {
    if (e.environment != environment) continue;
    const int version = static_cast<int>(e.kernel_version), threads = static_cast<int>(e.threads);
    switch (e.kind) {
      case EntryKind::measurement:
        store.times.push_back({e.kernel, version, e.tactic, e.layout, e.layer_class, e.dtype, e.mode, threads, e.m_min,
                               e.median_us, e.p10_us, e.p90_us, static_cast<int>(e.samples), e.error_us});
        break;
      case EntryKind::proof:
        store.proofs.push_back({e.kernel, version, e.layout, e.layer_class, e.dtype, threads, e.m_min, e.tactic});
        break;
      case EntryKind::quarantine:
        store.quarantines.push_back({e.kernel, version, e.layer_class, e.dtype, e.m_min, e.m_max, e.reason, e.tactic});
        break;
    }
  }
  return store;
}

std::string text(const RunEnvironment& environment) {
  std::string words =
      fmt::format("{}, {}, {} cores", printable(environment.device), printable(environment.arch), environment.cores);
  for (const std::string* part :
       {&environment.limits, &environment.driver, &environment.runtime, &environment.libraries}) {
    if (!part->empty()) words += ", " + printable(*part);
  }
  return words;
}

std::string difference(const RunEnvironment& other, const RunEnvironment& here) {
  std::vector<std::pair<std::string, std::string>> mine;
  const auto as_text = [](const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
      return value.empty() ? "none" : printable(value);
    else
      return std::to_string(value);
  };
  visit_environment(here, [&](const char* field, const auto& value) { mine.emplace_back(field, as_text(value)); });
  std::string found;
  size_t i = 0;
  visit_environment(other, [&](const char* field, const auto& value) {
    const std::string theirs = as_text(value);
    if (found.empty() && theirs != mine[i].second) found = fmt::format("{} {}, here {}", field, theirs, mine[i].second);
    ++i;
  });
  return found;
}

}  // namespace gearshift
