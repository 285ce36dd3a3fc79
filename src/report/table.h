// Tables for terminals: columns aligned, long names cut in the middle, sentences wrapped, never wider than asked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gearshift {

// Columns that text takes on a terminal: 0 for combining marks, 2 for East Asian wide characters and emoji. Control
// characters and bytes that are not UTF-8 must have been made printable before.
size_t display_width(std::string_view text);
// `text` in at most `width` columns: "model.lay..proj" keeps both ends, which tell names apart.
std::string cut_middle(std::string_view text, size_t width);
// Lines of at most `width` columns, broken at blanks; a longer word is broken anywhere.
std::vector<std::string> wrap(std::string_view text, size_t width);
// The same with `first` before the first line and as much blank space before the others.
std::string wrapped_paragraph(std::string_view first, std::string_view text, size_t width);

class Table {
 public:
  enum class Kind : uint8_t {
    word,     // left, never cut
    name,     // left, cut in the middle where space is short
    number,   // right, never cut
    sentence  // left, wrapped; goes on beside the following rows as long as these have no sentence of their own
  };
  struct Column {
    std::string title;
    Kind kind = Kind::name;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: as many cells as columns. Cells are made printable here.
  void row(std::vector<std::string> cells);
  // A line of its own over all columns.
  void section(std::string text);
  bool empty() const { return lines_.empty(); }

  // With a title line and a newline after each line. Where even short columns do not fit, each cell gets a line.
  std::string render(size_t width) const;

 private:
  struct Line {
    bool is_section = false;
    std::vector<std::string> cells;
  };
  std::vector<size_t> column_widths(size_t width) const;
  std::string render_columns(const std::vector<size_t>& widths, size_t width) const;
  std::string render_list(size_t width) const;

  std::vector<Column> columns_;
  std::vector<Line> lines_;
};

}  // namespace gearshift
