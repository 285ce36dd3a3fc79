#include "report/contract_fields.h"
#include "report/documents.h"
#include "report/json_parts.h"

namespace gearshift {

std::string kernels_json(const std::vector<KernelRow>& rows) {
  using Line = JsonWriter::Line;
  JsonWriter json;
  json.begin_object().member("schema", "gearshift.kernels/1").key("kernels").begin_array();
  for (const KernelRow& row : rows) {
    const Kernel& kernel = *row.kernel;
    json.begin_object()
        .member("kernel", kernel.name)
        .member("backend", kernel.backend)
        .member("version", kernel.version);
    json.key("families").begin_array(Line::single);
    for (Family family : kernel.families) json.value(name(family));
    json.end().member("platform", name(kernel.platform)).member("layout", kernel.layout->name);
    json.member("activation", activation_use_word(kernel.activation)).member("m_min", row.m_min);
    write_bound(json, "m_max", row.m_max);
    json.list("verified", kernel.contract.verified).member("runnable", row.runnable).member("reason", row.reason);
    json.key("contract").begin_object();
    for (const ContractField& field : contract_fields(kernel)) json.list(field.name, field.values);
    json.end().member("formula", kernel.formula);
    json.list("notes", kernel.notes).member_or_null("source", kernel.source).end();
  }
  json.end().end();
  return json.take();
}

}  // namespace gearshift
