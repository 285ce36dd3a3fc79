// Any text as JSON: an error of one line, or a tree in which every member is found by its name. What is accepted is
// also accepted by the library underneath, and texts go through the functions that print and match names.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"

using namespace gearshift;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void visit(const Json& json) {
  for (const Json& item : json.items) visit(item);
  for (const auto& [key, value] : json.members) {
    require(json.find(key) == &value);
    require(!natural_less(key, key));
    const std::string shown = printable(key, 40);
    require(shown.size() <= 40 && printable(shown, std::string::npos) == shown);
    (void)fnmatch(key, json.members[0].first);
    (void)glob_match(key, json.members[0].first);
    visit(value);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Json> json = parse_json(text, "input");
  if (!json.ok()) {
    require(json.error().code == ErrorCode::damaged_checkpoint);
    require(json.error().message().find('\n') == std::string::npos);
    return 0;
  }
  require(nlohmann::json::accept(text));
  visit(*json);
  return 0;
}
