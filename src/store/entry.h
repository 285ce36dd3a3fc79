// The fields of a row, listed once: files, keys and bundles go through this list.
#pragma once

#include "gearshift/store.h"

namespace gearshift {

// visit(name, field) for every field; fields are std::string, int64_t or double.
template <class Env, class Visit>
void visit_environment(Env& environment, Visit&& visit) {
  visit("device", environment.device);
  visit("arch", environment.arch);
  visit("cores", environment.cores);
  visit("memory_bytes", environment.memory_bytes);
  visit("limits", environment.limits);
  visit("driver", environment.driver);
  visit("runtime", environment.runtime);
  visit("libraries", environment.libraries);
}
// The key without kind and environment.
template <class Entry, class Visit>
void visit_key(Entry& entry, Visit&& visit) {
  visit("kernel", entry.kernel);
  visit("kernel_version", entry.kernel_version);
  visit("tactic", entry.tactic);
  visit("layout", entry.layout);
  visit("layer_class", entry.layer_class);
  visit("dtype", entry.dtype);
  visit("mode", entry.mode);
  visit("threads", entry.threads);
  visit("m_min", entry.m_min);
  visit("m_max", entry.m_max);
}
// What stronger() compares comes first, in its order.
template <class Entry, class Visit>
void visit_values(Entry& entry, Visit&& visit) {
  visit("samples", entry.samples);
  visit("taken", entry.taken);
  visit("median_us", entry.median_us);
  visit("p10_us", entry.p10_us);
  visit("p90_us", entry.p90_us);
  visit("error_us", entry.error_us);
  visit("worst_row", entry.worst_row);
  visit("tolerance", entry.tolerance);
  visit("reason", entry.reason);
  visit("evidence", entry.evidence);
}

// The whole key as one text; equal only for equal keys.
std::string key_text(const StoreEntry& entry);
// Of two rows with one key, the one that stays. A total order: merging is idempotent and its order does not matter.
bool stronger(const StoreEntry& a, const StoreEntry& b);
// "" or why this row can't be one: an empty name, a time that is no number, a range without a batch size.
std::string why_bad(const StoreEntry& entry);
// Rows sorted by key, the strongest of each.
std::vector<StoreEntry> strongest(std::vector<StoreEntry> rows);
// What planning reads of them.
Store store_of(const std::vector<StoreEntry>& rows, const RunEnvironment& environment);
// "AMD EPYC, x86_64+avx2, 2 cores"
std::string text(const RunEnvironment& environment);
// The first field in which `other` differs from `here`: "driver 570.1, here 580.2".
std::string difference(const RunEnvironment& other, const RunEnvironment& here);

}  // namespace gearshift
