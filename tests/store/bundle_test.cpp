#include "store/bundle.h"

#include "rows.h"

namespace gearshift {
namespace {

std::vector<StoreEntry> rows() {
  StoreEntry odd = row_of(EntryKind::quarantine, "k\"\\\n\xff");
  odd.kernel = "quote \" backslash \\ line\n tab\t \xc3\xa9";
  StoreEntry precise = row_of(EntryKind::measurement);
  precise.median_us = 12.1 + 1e-13, precise.p90_us = 1e300;
  return {row_of(EntryKind::measurement), row_of(EntryKind::proof), row_of(EntryKind::quarantine), odd, precise};
}

TEST(Bundles, RowsComeBackExactly) {
  const auto read = read_bundle(bundle_of(rows()), "b");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, rows());
  EXPECT_TRUE(read_bundle(bundle_of({}), "b")->empty());
}

TEST(Bundles, EveryTruncationIsRefused) {
  const std::string text = bundle_of(rows());
  for (size_t length = 0; length < text.size(); ++length) {
    const auto read = read_bundle(std::string_view(text).substr(0, length), "cut");
    ASSERT_FALSE(read.ok()) << length;
    EXPECT_NE(read.error().message().find("cut"), std::string::npos);
  }
}

TEST(Bundles, EveryChangedByteIsRefused) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string text = bundle_of(rows());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ (1 << random() % 8));
    const auto read = read_bundle(changed, "b");
    // A blank more in the last line, for one, changes no row.
    if (read.ok()) {
      EXPECT_EQ(*read, rows()) << i;
    }
  }
}

TEST(Bundles, ErrorsSayWhatWasFound) {
  const auto message = [](const std::string& text) {
    const auto read = read_bundle(text, "file");
    return read.ok() ? "" : read.error().message();
  };
  EXPECT_NE(message("").find("an empty file"), std::string::npos);
  EXPECT_NE(message("{}\n{}\n").find("another first line"), std::string::npos);
  const std::string text = bundle_of(rows());
  std::string faster = text;
  faster.replace(faster.find("12.25"), 5, "11.25");
  EXPECT_NE(message(faster).find("another SHA-256"), std::string::npos) << message(faster);
  EXPECT_NE(message(text + "\n").find("rows"), std::string::npos);
}

TEST(Lines, WhatIsNoRowIsNamed) {
  const std::string line = to_line(row_of(EntryKind::measurement));
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string changed = line;
    changed.replace(changed.find(from), from.size(), to);
    const auto read = from_line(changed, "line 2");
    return read.ok() ? "" : read.error().message();
  };
  EXPECT_NE(message("\"samples\":25", "\"samples\":\"25\"").find("'samples' of another type"), std::string::npos);
  EXPECT_NE(message("\"samples\":25,", "").find("no 'samples'"), std::string::npos);
  EXPECT_NE(message("measurement", "guess").find("kind 'guess'"), std::string::npos);
  EXPECT_NE(message("12.25", "1e999").find("line 2"), std::string::npos);
  EXPECT_NE(message("\"eager\"", "[[[[]]]]").find("line 2"), std::string::npos);
  std::string early = line;
  early.replace(early.find("\"error_us\":0,"), 13, "");
  EXPECT_EQ(*from_line(early, "x"), row_of(EntryKind::measurement)) << "the first bundles did not have it";
  EXPECT_FALSE(from_line("", "x").ok());
  EXPECT_FALSE(from_line("[]", "x").ok());
}

TEST(Journals, CutAndForeignLinesAreCounted) {
  int64_t bad = 0;
  const std::string line = to_line(row_of(EntryKind::proof));
  EXPECT_EQ(read_journal(line + "\n" + "nonsense\n" + line + "\n" + line.substr(0, 40), &bad).size(), 2u);
  EXPECT_EQ(bad, 2);
}

}  // namespace
}  // namespace gearshift
