#include "store/entry.h"

#include <cmath>
#include <limits>
#include <set>

#include "rows.h"

namespace gearshift {
namespace {

// Changes one field so that it differs from what it was.
struct Change {
  int wanted, seen = 0;
  bool done = false;
  std::string field;
  void changed(const char* name) { done = true, field = name; }
  void operator()(const char* name, std::string& value) {
    if (seen++ == wanted) value += "x", changed(name);
  }
  void operator()(const char* name, int64_t& value) {
    if (seen++ == wanted) value += 1, changed(name);
  }
};

TEST(StoreKeys, Case61AnyChangedFieldIsAnotherKey) {
  for (const EntryKind kind : {EntryKind::measurement, EntryKind::proof, EntryKind::quarantine}) {
    const StoreEntry row = row_of(kind);
    std::set<std::string> keys = {key_text(row)};
    std::set<std::string> fields;
    for (int i = 0;; ++i) {
      StoreEntry other = row;
      Change change{i, 0, false, ""};
      visit_environment(other.environment, change);
      visit_key(other, change);
      if (!change.done) break;
      EXPECT_TRUE(keys.insert(key_text(other)).second) << change.field;
      fields.insert(change.field);
    }
    // What R12 asks a key to hold; scale layout, bias, N and K are words of the layer class.
    for (const char* field :
         {"device", "arch", "cores", "memory_bytes", "limits", "driver", "runtime", "libraries", "kernel",
          "kernel_version", "tactic", "layout", "layer_class", "dtype", "mode", "threads", "m_min", "m_max"})
      EXPECT_EQ(fields.count(field), 1u) << field;
    StoreEntry same = row;
    same.median_us = 99, same.samples = 1, same.reason = "other", same.taken = 3;
    EXPECT_EQ(key_text(same), key_text(row));
  }
}

TEST(StoreKeys, FieldsDoNotRunIntoEachOther) {
  StoreEntry a = row_of(EntryKind::proof), b = a;
  a.kernel = "ab", a.tactic = "c";
  b.kernel = "a", b.tactic = "bc";
  a.kernel_version = b.kernel_version = 1;
  EXPECT_NE(key_text(a), key_text(b));
}

TEST(StrongerRows, MoreSamplesThenLater) {
  StoreEntry careful = row_of(EntryKind::measurement), sloppy = careful;
  sloppy.samples = 3, sloppy.median_us = 9, sloppy.taken += 100;
  EXPECT_TRUE(stronger(careful, sloppy));
  EXPECT_FALSE(stronger(sloppy, careful));
  StoreEntry later = careful;
  later.taken += 1, later.median_us = 20;
  EXPECT_TRUE(stronger(later, careful));
  EXPECT_FALSE(stronger(careful, careful));
}

TEST(BadRows, EachIsRefusedWithItsReason) {
  const auto reason = [](EntryKind kind, auto change) {
    StoreEntry row = row_of(kind);
    EXPECT_EQ(why_bad(row), "");
    change(row);
    return why_bad(row);
  };
  const auto m = EntryKind::measurement;
  EXPECT_EQ(reason(m, [](StoreEntry& r) { r.kernel = ""; }), "no kernel");
  EXPECT_EQ(reason(m, [](StoreEntry& r) { r.samples = 0; }), "12.25 us from 0 samples");
  EXPECT_EQ(reason(m, [](StoreEntry& r) { r.mode = "lazy"; }), "mode 'lazy'");
  EXPECT_EQ(reason(m, [](StoreEntry& r) { r.median_us = std::nan(""); }), "median_us nan");
  EXPECT_EQ(reason(m, [](StoreEntry& r) { r.p90_us = std::numeric_limits<double>::infinity(); }), "p90_us inf");
  EXPECT_EQ(reason(m, [](StoreEntry& r) { r.p10_us = 12.5; }), "percentiles out of order");
  EXPECT_EQ(reason(m, [](StoreEntry& r) { r.m_max = 32; }), "a measurement at batch sizes 16 to 32");
  EXPECT_EQ(reason(m, [](StoreEntry& r) { r.layer_class = std::string(5000, 'x'); }), "layer_class of 5000 characters");
  EXPECT_EQ(reason(EntryKind::quarantine, [](StoreEntry& r) { r.m_max = 3; }), "batch sizes 16 to 3");
  EXPECT_EQ(reason(EntryKind::proof, [](StoreEntry& r) { r.threads = -1; }), "threads -1");
}

TEST(StoreOfRows, Case27And71OtherEnvironmentsDoNotApply) {
  StoreEntry large = row_of(EntryKind::quarantine), driver = row_of(EntryKind::measurement), power = driver;
  large.environment.cores = 152;
  driver.environment.driver = "570.1";
  power.environment.limits = "400 W";
  RunEnvironment here = row_of(EntryKind::proof).environment;
  here.cores = 80;
  EXPECT_TRUE(store_of({large, driver, power}, here).quarantines.empty());
  EXPECT_TRUE(store_of({large, driver, power}, here).times.empty());
  EXPECT_EQ(store_of({large, driver, power}, large.environment).quarantines.size(), 1u);
  EXPECT_EQ(difference(large.environment, here), "cores 152, here 80");
  EXPECT_EQ(difference(driver.environment, row_of(EntryKind::proof).environment), "driver 570.1, here none");
}

}  // namespace
}  // namespace gearshift
