// Any text as a bundle, a journal and a row: an error of one line, or rows that come back the same when they are written
// and read again.
#include <cstdlib>

#include "store/bundle.h"
#include "store/entry.h"

using namespace gearshift;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto bundle = read_bundle(text, "input");
  if (!bundle.ok()) require(bundle.error().message().find('\n') == std::string::npos);
  int64_t bad = 0;
  const std::vector<StoreEntry> rows = read_journal(text, &bad);
  for (const StoreEntry& row : rows) {
    require(why_bad(row).empty());
    const auto again = from_line(to_line(row), "row");
    require(again.ok() && *again == row);
  }
  const auto again = read_bundle(bundle_of(rows), "written");
  require(again.ok() && *again == rows);
  (void)strongest(rows);
  return 0;
}
