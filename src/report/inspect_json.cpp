#include "report/documents.h"
#include "report/json_parts.h"

namespace gearshift {

std::string inspect_json(const InspectReport& report) {
  using Line = JsonWriter::Line;
  JsonWriter json;
  json.begin_object().member("schema", "gearshift.inspect/1").member("path", report.path);
  json.member_or_null("architecture", report.architecture).member_or_null("quant_method", report.quant_method);
  json.key("files").begin_array();
  for (const CheckpointFile& file : report.files) {
    json.begin_object(Line::single).member("path", file.path).member("has_data", file.has_data).end();
  }
  json.end().key("tensors").begin_array();
  for (const TensorInfo& tensor : report.tensors) {
    json.begin_object(Line::single).member("name", tensor.name).member("dtype", name(tensor.dtype));
    json.list("shape", tensor.shape).member("bytes", tensor.bytes);
    json.member("file", report.files.at(static_cast<size_t>(tensor.file)).path).end();
  }
  json.end().key("layers").begin_array();
  for (const LayerSpec& layer : report.layers) {
    json.begin_object().member("name", layer.name).key("scheme");
    write_scheme(json, layer);
    json.member("preset", scheme_name(layer.scheme)).member("family", name(layer.family));
    json.member("n", layer.n).member("k", layer.k).end();
  }
  json.end().key("unknown").begin_array();
  for (const UnknownModule& module : report.unknown) {
    json.begin_object(Line::single).member("name", module.name).member("scheme", module.scheme).end();
  }
  json.end().list("skipped", report.skipped).end();
  return json.take();
}

}  // namespace gearshift
