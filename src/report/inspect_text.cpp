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

struct Count {
  std::vector<std::string> cells;
  int64_t count = 0;
  uint64_t bytes = 0;
};

// Rows with equal cells become one, in the order of first appearance.
class Counts {
 public:
  void add(std::vector<std::string> cells, uint64_t bytes) {
    const auto [found, fresh] = index_.emplace(join(cells, "\n"), rows_.size());
    if (fresh) rows_.push_back({std::move(cells), 0, 0});
    ++rows_[found->second].count;
    rows_[found->second].bytes += bytes;
  }
  void print(Table& table) const {
    for (const Count& row : rows_) {
      std::vector<std::string> cells = row.cells;
      cells.insert(cells.end(), {std::to_string(row.count), format_bytes(row.bytes)});
      table.row(std::move(cells));
    }
  }

 private:
  std::vector<Count> rows_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace

std::string inspect_text(const InspectReport& report, size_t width) {
  using Kind = Table::Kind;
  std::string out;
  std::vector<std::string> kind;
  if (!report.architecture.empty()) kind.push_back(report.architecture);
  if (!report.quant_method.empty()) kind.push_back(report.quant_method);
  out += wrapped_paragraph(
      "model   ", printable(report.path) + (kind.empty() ? "" : " (" + printable(join(kind, ", ")) + ")"), width);

  uint64_t bytes = 0;
  Counts tensors;
  for (const TensorInfo& tensor : report.tensors) {
    tensors.add({role_pattern(tensor.name), std::string(name(tensor.dtype)), to_string(tensor.shape)}, tensor.bytes);
    bytes += tensor.bytes;
  }
  const auto files = static_cast<int64_t>(report.files.size());
  const auto absent =
      std::count_if(report.files.begin(), report.files.end(), [](const auto& file) { return !file.has_data; });
  std::string sizes =
      fmt::format("{} in {}, {}", count_text(static_cast<int64_t>(report.tensors.size()), "tensor", "tensors"),
                  count_text(files, "file", "files"), format_bytes(bytes));
  if (absent > 0) sizes += fmt::format("; {} without weight bytes", count_text(absent, "file", "files"));
  out += wrapped_paragraph("size    ", sizes, width);

  if (!report.layers.empty()) {
    Counts layers;
    for (const LayerSpec& layer : report.layers) {
      layers.add({role_pattern(layer.name), shape_text(layer.n, layer.k), scheme_name(layer.scheme)},
                 layer.weight_bytes);
    }
    Table table({{"linear layers", Kind::name},
                 {"N x K", Kind::word},
                 {"scheme", Kind::name},
                 {"count", Kind::number},
                 {"weights", Kind::number}});
    layers.print(table);
    out += "\n" + table.render(width);
  }
  if (!report.tensors.empty()) {
    Table table({{"tensors", Kind::name},
                 {"dtype", Kind::word},
                 {"shape", Kind::word},
                 {"count", Kind::number},
                 {"bytes", Kind::number}});
    tensors.print(table);
    out += "\n" + table.render(width);
  }
  std::vector<std::string> unknown;
  for (const UnknownModule& module : report.unknown) unknown.push_back(module.name + ": " + module.scheme);
  return out + list_text("schemes that are not loaded", unknown, width);
}

}  // namespace gearshift
