#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "report/layer_groups.h"
#include "report/quantities.h"
#include "report/table.h"
#include "report/text_parts.h"
#include "report/texts.h"

namespace gearshift {

namespace {

struct Sum {
  std::string pattern;
  const QuantizedLayer* first = nullptr;
  int64_t count = 0;
  double error = 0, worst_row = 0, cosine = 1;
  uint64_t before = 0, after = 0;
};

void add(Sum& sum, const QuantizedLayer& layer) {
  ++sum.count;
  sum.error = std::max(sum.error, layer.relative_error);
  sum.worst_row = std::max(sum.worst_row, layer.worst_row);
  sum.cosine = std::min(sum.cosine, layer.cosine);
  sum.before += layer.bytes_before;
  sum.after += layer.bytes_after;
}

}  // namespace

std::string quantize_text(const QuantizeReport& report, size_t width) {
  std::vector<Sum> sums;
  std::unordered_map<std::string, size_t> index;
  Sum all;
  for (const QuantizedLayer& layer : report.layers) {
    std::string pattern = role_pattern(layer.name);
    const auto [found, fresh] =
        index.emplace(fmt::format("{}\n{}\n{}\n{}", pattern, layer.scheme, layer.n, layer.k), sums.size());
    if (fresh) sums.push_back({std::move(pattern), &layer, 0, 0, 0, 1, 0, 0});
    add(sums[found->second], layer);
    add(all, layer);
  }
  using Kind = Table::Kind;
  Table table({{"scheme", Kind::name},
               {"error", Kind::number},
               {"worst row", Kind::number},
               {"cosine", Kind::number},
               {"before", Kind::number},
               {"after", Kind::number}});
  const auto row = [&table](const Sum& sum, std::string scheme) {
    table.row({std::move(scheme), error_text(sum.error), error_text(sum.worst_row), fmt::format("{:.5f}", sum.cosine),
               format_bytes(sum.before), format_bytes(sum.after)});
  };
  for (const Sum& sum : sums) {
    table.section(fmt::format("{}: {} of {}", printable(sum.pattern), count_text(sum.count, "layer", "layers"),
                              shape_text(sum.first->n, sum.first->k)));
    row(sum, sum.first->scheme);
  }
  table.section(fmt::format("all {}", count_text(all.count, "layer", "layers")));
  row(all, "");
  return wrapped_paragraph("written ", printable(report.out), width) + "\n" + table.render(width) +
         wrapped_paragraph("",
                           "error: of the weights that a reader gets back, relative to the original ones, in the "
                           "Frobenius norm; of a group, its worst layer",
                           width) +
         list_text("notes", report.notes, width);
}

}  // namespace gearshift
