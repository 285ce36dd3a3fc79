#include "report/html.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "report/table.h"

namespace gearshift::html {

namespace {

// Okabe and Ito's colours, told apart with the common kinds of colour blindness.
constexpr std::array kColours = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                 "#56b4e9", "#d55e00", "#f0e442", "#666666"};

constexpr std::string_view kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 "
    "1em;color:#1a1a1a;background:#fff}"
    "h1{font-size:1.4em}h2{font-size:1.15em;margin-top:2em}table{border-collapse:collapse;font-size:.92em}"
    "th,td{text-align:left;vertical-align:top;padding:.2em .8em .2em 0;border-bottom:1px solid #ddd}"
    "code,td,th{overflow-wrap:anywhere}dt{float:left;width:6em;color:#555}dd{margin:0 0 .2em 6em}"
    "svg text{font:12px system-ui,sans-serif;fill:#1a1a1a}.key{display:inline-block;margin-right:1.2em}"
    ".key i{display:inline-block;width:.9em;height:.9em;margin-right:.4em;vertical-align:-.1em}"
    "details{margin:.3em 0}summary{cursor:pointer}";

std::string_view colour(size_t number) { return kColours[number % kColours.size()]; }

}  // namespace

std::string escaped(std::string_view text) {
  constexpr size_t kLongest = 4000;
  std::string out;
  for (const char c : printable(text, kLongest)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string tag(std::string_view name, std::string_view text) {
  return fmt::format("<{}>{}</{}>", name, escaped(text), name);
}

std::string table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<table><thead><tr>";
  for (const std::string& title : titles) out += tag("th", title);
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += tag("td", cell);
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>{}</title>\n<style>{}</style></head>\n<body>\n{}"
      "</body></html>\n",
      escaped(title), kStyle, body);
}

std::string chart(const std::vector<Bar>& bars, const std::vector<Tick>& ticks) {
  constexpr double kName = 330, kWidth = 560, kValue = 110, kRow = 22, kHeight = 16;
  constexpr size_t kNameCharacters = 46;
  const double bottom = kRow * static_cast<double>(bars.size());
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"100%\" role=\"img\">\n", kName + kWidth + kValue,
                                bottom + (ticks.empty() ? 4 : 24));
  for (const Tick& tick : ticks) {
    const double x = kName + tick.at * kWidth;
    out += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1:.1f}\" stroke=\"#ddd\"/>", x, bottom);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x, bottom + 16,
                       escaped(tick.label));
  }
  double y = 0;
  for (const Bar& bar : bars) {
    const double text = y + 14;
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}<title>{}</title></text>", kName - 8,
                       text, escaped(cut_middle(printable(bar.name), kNameCharacters)), escaped(bar.name));
    for (const Segment& segment : bar.segments) {
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"><title>{}</title></rect>",
          kName + segment.from * kWidth, y + 2, (segment.to - segment.from) * kWidth, kHeight, colour(segment.colour),
          escaped(segment.label));
    }
    if (!bar.value.empty())
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", kName + kWidth + 8, text, escaped(bar.value));
    out += "\n";
    y += kRow;
  }
  return out + "</svg>\n";
}

std::string legend(const std::vector<std::string>& names) {
  std::string out = "<p>";
  for (size_t i = 0; i < names.size(); ++i)
    out += fmt::format("<span class=\"key\"><i style=\"background:{}\"></i>{}</span>", colour(i), escaped(names[i]));
  return out + "</p>\n";
}

}  // namespace gearshift::html
