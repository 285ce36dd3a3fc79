#include "report/table.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "base/utf8.h"

namespace gearshift {

namespace {

constexpr size_t kGap = 2;  // blanks between columns
constexpr std::string_view kCut = "..";
// Below these a cut name or a wrapped sentence tells nothing any more.
constexpr size_t kLeastName = 10, kLeastSentence = 24;
constexpr size_t kLongestCell = 4096;

size_t character_width(char32_t c) {
  const auto in = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  if (in(0x300, 0x36f) || in(0x1ab0, 0x1aff) || in(0x20d0, 0x20ff) || in(0xfe00, 0xfe0f) || in(0x200b, 0x200d))
    return 0;
  // East Asian Wide and Fullwidth (Unicode Standard Annex 11), in whole blocks.
  if (in(0x1100, 0x115f) || in(0x2e80, 0xa4cf) || in(0xac00, 0xd7a3) || in(0xf900, 0xfaff) || in(0xfe30, 0xfe6f) ||
      in(0xff00, 0xff60) || in(0xffe0, 0xffe6) || in(0x1f300, 0x1faff) || in(0x20000, 0x3fffd)) {
    return 2;
  }
  return 1;
}

// Bytes of the longest prefix of at most `width` columns.
size_t prefix_bytes(std::string_view text, size_t width) {
  size_t bytes = 0, used = 0;
  while (bytes < text.size()) {
    const Utf8Character c = decode_utf8(text.substr(bytes));
    used += character_width(c.code);
    if (used > width) break;
    bytes += c.bytes;
  }
  return bytes;
}

// The first byte of the longest suffix of at most `width` columns.
size_t suffix_start(std::string_view text, size_t width) {
  size_t skipped = display_width(text) <= width ? 0 : display_width(text) - width;
  size_t at = 0;
  while (at < text.size() && skipped > 0) {
    const Utf8Character c = decode_utf8(text.substr(at));
    skipped -= std::min(skipped, character_width(c.code));
    at += c.bytes;
  }
  return at;
}

void pad(std::string& line, size_t columns) { line.append(columns, ' '); }

void finish(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line;
  out += '\n';
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const Utf8Character c = decode_utf8(text);
    width += character_width(c.code);
    text.remove_prefix(c.bytes);
  }
  return width;
}

std::string cut_middle(std::string_view text, size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width <= kCut.size()) return std::string(text.substr(0, prefix_bytes(text, width)));
  // The end of a layer's name says more than its beginning.
  const size_t head = (width - kCut.size()) / 2, tail = width - kCut.size() - head;
  std::string out(text.substr(0, prefix_bytes(text, head)));
  out += kCut;
  out += text.substr(suffix_start(text, tail));
  return out;
}

std::vector<std::string> wrap(std::string_view text, size_t width) {
  width = std::max<size_t>(width, 2);  // a wide character needs two
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t bytes = prefix_bytes(text, width);
    if (bytes < text.size()) {
      // Lists without blanks are to be pasted again: they are cut behind a comma, which says that more follows.
      const size_t blank = text.substr(0, bytes + 1).rfind(' '), comma = text.substr(0, bytes).rfind(',');
      if (blank != std::string_view::npos && blank > 0)
        bytes = blank;
      else if (comma != std::string_view::npos)
        bytes = comma + 1;
    }
    lines.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
  return lines;
}

std::string wrapped_paragraph(std::string_view first, std::string_view text, size_t width) {
  const size_t indent = display_width(first);
  std::string out;
  std::string line(first);
  for (const std::string& part : wrap(text, width > indent + kLeastName ? width - indent : kLeastName)) {
    finish(out, line + part);
    line.assign(indent, ' ');
  }
  if (out.empty()) finish(out, line);
  return out;
}

void Table::row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable(cell, kLongestCell);
  lines_.push_back({false, std::move(cells)});
}

void Table::section(std::string text) { lines_.push_back({true, {printable(text, kLongestCell)}}); }

std::string Table::render(size_t width) const {
  const std::vector<size_t> widths = column_widths(width);
  return widths.empty() ? render_list(width) : render_columns(widths, width);
}

// Natural widths; where they do not fit, the widest of those that may shrink gives way first. Empty: does not fit.
std::vector<size_t> Table::column_widths(size_t width) const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(display_width(column.title));
  std::vector<size_t> least = widths;
  for (const Line& line : lines_) {
    if (line.is_section) continue;
    for (size_t i = 0; i < columns_.size(); ++i) widths[i] = std::max(widths[i], display_width(line.cells[i]));
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    const size_t floor = columns_[i].kind == Kind::name       ? kLeastName
                         : columns_[i].kind == Kind::sentence ? kLeastSentence
                                                              : widths[i];
    least[i] = std::min(widths[i], std::max(least[i], floor));
  }
  const size_t gaps = columns_.empty() ? 0 : kGap * (columns_.size() - 1);
  size_t total = std::accumulate(widths.begin(), widths.end(), gaps);
  // Sentences first: wrapping loses nothing.
  for (const Kind kind : {Kind::sentence, Kind::name}) {
    while (total > width) {
      size_t widest = columns_.size();
      for (size_t i = 0; i < columns_.size(); ++i) {
        if (columns_[i].kind == kind && widths[i] > least[i] &&
            (widest == columns_.size() || widths[i] > widths[widest]))
          widest = i;
      }
      if (widest == columns_.size()) break;
      --widths[widest];
      --total;
    }
  }
  if (total > width) widths.clear();
  return widths;
}

std::string Table::render_columns(const std::vector<size_t>& widths, size_t width) const {
  std::string out;
  const size_t count = columns_.size();
  std::string titles, rule;
  for (size_t i = 0; i < count; ++i) {
    const size_t blank = widths[i] - display_width(columns_[i].title);
    if (i > 0) pad(titles, kGap), pad(rule, kGap);
    if (columns_[i].kind == Kind::number) pad(titles, blank);
    titles += columns_[i].title;
    if (columns_[i].kind != Kind::number) pad(titles, blank);
    rule.append(widths[i], '-');
  }
  finish(out, titles);
  finish(out, rule);

  std::vector<std::vector<std::string>> pending(count);  // what is left of each column's sentence, last line first
  const auto print = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) pad(text, kGap);
      std::string cell = cells.empty() ? "" : cells[i];
      if (columns_[i].kind == Kind::sentence) {
        cell.clear();
        if (!pending[i].empty()) {
          cell = std::move(pending[i].back());
          pending[i].pop_back();
        }
      } else if (columns_[i].kind == Kind::name) {
        cell = cut_middle(cell, widths[i]);
      }
      const size_t blank = widths[i] - std::min(widths[i], display_width(cell));
      if (columns_[i].kind == Kind::number) pad(text, blank);
      text += cell;
      if (columns_[i].kind != Kind::number) pad(text, blank);
    }
    finish(out, text);
  };
  const auto flush = [&] {
    while (std::any_of(pending.begin(), pending.end(), [](const auto& lines) { return !lines.empty(); })) print({});
  };
  for (const Line& line : lines_) {
    if (line.is_section) {
      flush();
      for (const std::string& text : wrap(line.cells[0], width)) finish(out, text);
      continue;
    }
    bool starts = false;
    for (size_t i = 0; i < count; ++i) starts |= columns_[i].kind == Kind::sentence && !line.cells[i].empty();
    if (starts) flush();
    for (size_t i = 0; i < count; ++i) {
      if (columns_[i].kind != Kind::sentence || line.cells[i].empty()) continue;
      pending[i] = wrap(line.cells[i], widths[i]);
      std::reverse(pending[i].begin(), pending[i].end());
    }
    print(line.cells);
  }
  flush();
  return out;
}

std::string Table::render_list(size_t width) const {
  std::string out;
  for (const Line& line : lines_) {
    if (line.is_section) {
      for (const std::string& text : wrap(line.cells[0], width)) finish(out, text);
      continue;
    }
    bool first = true;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (line.cells[i].empty()) continue;
      const std::string text = columns_[i].title.empty() ? line.cells[i] : columns_[i].title + ": " + line.cells[i];
      for (const std::string& part : wrap(text, width > 2 ? width - 2 : width)) {
        finish(out, (first ? "- " : "  ") + part);
        first = false;
      }
    }
  }
  return out;
}

}  // namespace gearshift
