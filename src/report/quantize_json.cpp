#include <algorithm>

#include "report/documents.h"
#include "report/json_writer.h"

namespace gearshift {

std::string quantize_json(const QuantizeReport& report) {
  using Line = JsonWriter::Line;
  JsonWriter json;
  json.begin_object().member("schema", "gearshift.quantize/1").member("out", report.out).key("layers").begin_array();
  for (const QuantizedLayer& layer : report.layers) {
    json.begin_object(Line::single).member("name", layer.name).member("scheme", layer.scheme).member("n", layer.n);
    json.member("k", layer.k).member("relative_error", layer.relative_error).member("cosine", layer.cosine);
    json.member("worst_row", layer.worst_row).member("bytes_before", layer.bytes_before);
    json.member("bytes_after", layer.bytes_after).end();
  }
  json.end();
  QuantizedLayer all;
  for (const QuantizedLayer& layer : report.layers) {
    all.relative_error = std::max(all.relative_error, layer.relative_error);
    all.worst_row = std::max(all.worst_row, layer.worst_row);
    all.cosine = std::min(all.cosine, layer.cosine);
    all.bytes_before += layer.bytes_before;
    all.bytes_after += layer.bytes_after;
  }
  json.key("totals").begin_object(Line::single).member("layers", report.layers.size());
  json.member("relative_error", all.relative_error).member("cosine", all.cosine).member("worst_row", all.worst_row);
  json.member("bytes_before", all.bytes_before).member("bytes_after", all.bytes_after).end();
  json.list("notes", report.notes).end();
  return json.take();
}

}  // namespace gearshift
