#include "report/json_parts.h"

#include "base/build_identity.h"

namespace gearshift {

namespace {

void write_group(JsonWriter& json, const LayerSpec& layer) {
  const Grouping& grouping = layer.scheme.weight.grouping;
  json.key("group");
  if (!layer.scheme.quantized) {
    json.null();
    return;
  }
  switch (grouping.kind) {
    case Grouping::Kind::group:
      json.value(grouping.cols);
      break;
    case Grouping::Kind::whole_row:
      json.value(-1);
      break;
    case Grouping::Kind::block:
      json.begin_array(JsonWriter::Line::single).value(grouping.rows).value(grouping.cols).end();
      break;
    case Grouping::Kind::tensor:
    case Grouping::Kind::row:
      json.null();
      break;
  }
}

// The stored type of scales in the words of plans.
std::string_view scale_word(DType dtype) {
  switch (dtype) {
    case DType::f8_e4m3:
      return "e4m3";
    case DType::f8_e8m0:
      return "e8m0";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "fp16";
    case DType::f32:
      return "fp32";
    default:
      return name(dtype);
  }
}

// Bits of one stored element; the stored dtype says where the format does not.
int weight_bits(const LayerSpec& layer) {
  if (const int known = bits(layer.scheme.weight.format); known != 0) return known;
  for (const Module& module : layer.modules) {
    for (const StoredTensor& tensor : module.tensors) {
      if (tensor.role == TensorRole::weight) return bits(tensor.dtype);
    }
  }
  return 16;
}

void write_timing(JsonWriter& json, const std::optional<Timing>& timing) {
  const auto microseconds = [&](std::string_view key, double value) {
    json.key(key);
    timing ? json.value(rounded(value, 3)) : json.null();
  };
  const Timing t = timing.value_or(Timing{});
  microseconds("median_us", t.median_us);
  microseconds("p10_us", t.p10_us);
  microseconds("p90_us", t.p90_us);
  json.member("samples", t.samples);
}

}  // namespace

void write_measured_members(JsonWriter& json, const Measurement& m, bool ran) {
  const auto number = [&](std::string_view key, double value) {
    json.key(key);
    ran ? json.value(value) : json.null();
  };
  json.member("family", m.family).member("scheme", m.scheme);
  json.member_or_null("arithmetic", m.arithmetic);
  json.member("n", m.n).member("k", m.k).member("m", m.m);
  json.member_or_null("kernel", m.kernel).member_or_null("backend", m.backend).member_or_null("tactic", m.tactic);
  write_timing(json, m.timing);
  json.key("gbytes_per_s");
  m.timing ? json.value(rounded(m.gbytes_per_s, 4)) : json.null();
  json.key("tflops");
  m.timing ? json.value(rounded(m.tflops, 6)) : json.null();
  number("relative_error", m.comparison.relative_error);
  number("tolerance", m.comparison.tolerance);
  json.key("ok");
  ran ? json.value(m.comparison.ok) : json.null();
  number("worst_row", m.comparison.worst_row);
  number("worst_column", m.comparison.worst_column);
  if (m.comparison.divergence) json.member("divergence", *m.comparison.divergence);
  json.member("infinite", m.comparison.infinite);
  json.member_or_null("failure", m.comparison.failure);
  json.member("weight_bytes", m.weight_bytes);
}

void write_bound(JsonWriter& json, std::string_view key, int64_t bound) {
  json.key(key);
  bound == 0 ? json.null() : json.value(bound);
}

void write_device(JsonWriter& json, const DeviceProfile& device) {
  json.begin_object(JsonWriter::Line::single);
  json.member("name", device.name).member("platform", name(device.platform)).member("arch", device.arch);
  json.member("present", device.present).member("cores", device.cores).member("memory_bytes", device.memory_bytes);
  if (!device.other_identity.empty()) json.member("other_identity", device.other_identity);
  json.end();
}

void write_build(JsonWriter& json) {
  json.begin_object(JsonWriter::Line::single);
  for (const auto& [key, value] : build_identity()) json.member(key, value);
  json.end();
}

void begin_document(JsonWriter& json, std::string_view schema, const Plan& plan) {
  json.begin_object().member("schema", schema).key("device");
  write_device(json, plan.device);
  json.key("build");
  write_build(json);
  json.member("plan_hash", plan.hash);
}

void write_scheme(JsonWriter& json, const LayerSpec& layer) {
  const Scheme& scheme = layer.scheme;
  json.begin_object();
  json.member("quantized", scheme.quantized);
  json.key("weight").begin_object(JsonWriter::Line::single);
  json.member("format", name(scheme.weight.format)).member("bits", weight_bits(layer));
  write_group(json, layer);
  json.key("symmetric");
  scheme.quantized ? json.value(scheme.weight.symmetric) : json.null();
  json.member_or_null("scale", scheme.quantized ? scale_word(scheme.weight.scale) : "");
  json.member("bytes", layer.weight_bytes).end();
  json.key("activation");
  if (scheme.activation) {
    const ActivationScheme& activation = *scheme.activation;
    json.begin_object(JsonWriter::Line::single);
    json.member("format", name(activation.format)).member("dynamic", activation.dynamic);
    json.member("granularity", name(activation.granularity)).key("group");
    activation.granularity == Granularity::token_group ? json.value(activation.group) : json.null();
    json.end();
  } else {
    json.null();
  }
  json.end();
}

void write_warnings(JsonWriter& json, const std::vector<Warning>& warnings) {
  json.begin_array();
  for (const Warning& warning : warnings) {
    json.begin_object(JsonWriter::Line::single).member("code", warning.code).member_or_null("family", warning.family);
    json.member_or_null("requested", warning.requested).member("layers", warning.layers);
    json.member("message", warning.message).end();
  }
  json.end();
}

void write_stack(JsonWriter& json, const std::vector<StackTime>& stack) {
  json.begin_array();
  for (const StackTime& time : stack) {
    json.begin_object(JsonWriter::Line::single).member("m", time.m).member("total_us", rounded(time.total_us, 3));
    json.key("share").begin_object();
    for (const auto& [family, share] : time.share_by_family) json.member(family, rounded(share, 6));
    json.end().end();
  }
  json.end();
}

void write_quarantined(JsonWriter& json, const std::vector<Quarantine>& quarantined) {
  json.begin_array();
  for (const Quarantine& q : quarantined) {
    json.begin_object(JsonWriter::Line::single).member("kernel", q.kernel).member("kernel_version", q.kernel_version);
    json.member("layer_class", q.layer_class).member("dtype", q.dtype).member("m_min", q.m_min);
    write_bound(json, "m_max", q.m_max);
    json.member("reason", q.reason).end();
  }
  json.end();
}

void write_measurement(JsonWriter& json, const Measurement& m) {
  json.member("layer", m.layer);
  write_measured_members(json, m);
}

void write_measurements(JsonWriter& json, const std::vector<Measurement>& rows) {
  json.begin_array();
  for (const Measurement& row : rows) {
    json.begin_object();
    write_measurement(json, row);
    json.end();
  }
  json.end();
}

}  // namespace gearshift
