// One self-contained page: escaped text, tables, hand-written SVG. No script, nothing is fetched.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gearshift::html {

// For element content and quoted attributes: & < > " ' replaced, control characters and broken UTF-8 shown escaped.
std::string escaped(std::string_view text);
std::string tag(std::string_view name, std::string_view text);  // <name>escaped text</name>
std::string table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows);
// `body` is HTML already.
std::string page(std::string_view title, std::string_view body);

// One bar of a chart: parts from left to right.
struct Segment {
  double from = 0, to = 0;  // 0..1 of the chart's width
  size_t colour = 0;        // any number; equal ones have equal colours
  std::string label;        // shown when the pointer rests on it
};
struct Bar {
  std::string name, value;  // left and right of it; either may be ""
  std::vector<Segment> segments;
};
struct Tick {
  double at = 0;
  std::string label;
};
std::string chart(const std::vector<Bar>& bars, const std::vector<Tick>& ticks);
// Names with their colours.
std::string legend(const std::vector<std::string>& names);

}  // namespace gearshift::html
