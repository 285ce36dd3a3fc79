// Rows as JSON lines: bundles that travel, and the journals of processes that may not write the file itself.
#pragma once

#include "gearshift/store.h"

namespace gearshift {

// {"kind":"measurement","device":...}: one row without its line end.
std::string to_line(const StoreEntry& entry);
// Nothing is assumed of `line`. Error runtime: names `subject` and what is wrong.
Result<StoreEntry> from_line(std::string_view line, const std::string& subject);

// A first line with the schema and the number of rows, the rows, and a last line with the SHA-256 of all bytes before
// it.
std::string bundle_of(const std::vector<StoreEntry>& rows);
// All rows or an error: a bundle that was cut or changed gives none.
Result<std::vector<StoreEntry>> read_bundle(std::string_view text, const std::string& subject);

// The rows of a journal. Lines that are cut or make no sense are counted in `bad` and left out.
std::vector<StoreEntry> read_journal(std::string_view text, int64_t* bad);

// The whole file, up to a gigabyte. Error runtime.
Result<std::string> read_text_file(const std::string& path);
// To a neighbour, then renamed: a reader sees it whole or not at all. Error runtime.
Result<void> write_text_file(const std::string& path, std::string_view text);

}  // namespace gearshift
