#include "report/contract_fields.h"

#include <fmt/format.h>

namespace gearshift {

namespace {

std::string_view grouping_word(Grouping::Kind kind) {
  switch (kind) {
    case Grouping::Kind::tensor:
      return "tensor";
    case Grouping::Kind::row:
      return "row";
    case Grouping::Kind::group:
      return "group";
    case Grouping::Kind::whole_row:
      return "whole_row";
    case Grouping::Kind::block:
      return "block";
  }
  return "";
}

class Fields {
 public:
  template <class T, class Word>
  void any_of(const char* field, const std::vector<T>& allowed, Word word) {
    if (allowed.empty()) return;
    std::vector<std::string> values;
    for (const T& value : allowed) values.emplace_back(word(value));
    fields_.push_back({field, std::move(values)});
  }
  void bounds(const char* field, const Bounds& b) {
    std::string text;
    if (b.min > 1 || b.max != 0)
      text = b.max == 0 ? fmt::format("at least {}", b.min) : fmt::format("{} to {}", b.min, b.max);
    if (b.multiple > 1) text += (text.empty() ? "" : ", ") + fmt::format("a multiple of {}", b.multiple);
    if (!text.empty()) fields_.push_back({field, {text}});
  }
  void at_most(const char* field, int64_t limit) {
    if (limit < Contract{}.max_weight_elements) fields_.push_back({field, {fmt::format("at most {}", limit)}});
  }
  void refused(const char* field, bool allowed) {
    if (!allowed) fields_.push_back({field, {"no"}});
  }
  std::vector<ContractField> take() { return std::move(fields_); }

 private:
  std::vector<ContractField> fields_;
};

}  // namespace

std::string_view activation_use_word(ActivationUse use) {
  return use == ActivationUse::as_checkpoint ? "as the checkpoint" : "16-bit";
}

std::vector<ContractField> contract_fields(const Kernel& kernel) {
  const Contract& c = kernel.contract;
  Fields out;
  if (c.isa != Isa::portable) out.any_of("isa", std::vector<Isa>{c.isa}, [](Isa isa) { return name(isa); });
  out.any_of("archs", c.archs, [](std::string_view arch) { return arch; });
  out.any_of("weight_formats", c.weight_formats, [](Format format) { return name(format); });
  out.any_of("storages", c.storages, [](Storage storage) { return name(storage); });
  out.any_of("groupings", c.groupings, grouping_word);
  out.any_of("groups", c.groups, [](int64_t columns) { return std::to_string(columns); });
  const auto dtype_name = [](DType dtype) { return name(dtype); };
  out.any_of("weight_dtypes", c.weight_dtypes, dtype_name);
  out.any_of("scale_dtypes", c.scale_dtypes, dtype_name);
  out.any_of("activation_formats", c.activation_formats, [](Format format) { return name(format); });
  out.any_of("dtypes", c.dtypes, dtype_name);
  out.bounds("n", c.n);
  out.bounds("k", c.k);
  out.bounds("m", c.m);
  out.at_most("max_weight_elements", c.max_weight_elements);
  out.at_most("max_output_elements", c.max_output_elements);
  out.refused("zero_points", c.zero_points);
  out.refused("act_order", c.act_order);
  out.refused("bias", c.bias);
  out.refused("experts", c.experts);
  out.refused("pre_scale", c.pre_scale);
  out.refused("partial_groups", c.partial_groups);
  return out.take();
}

}  // namespace gearshift
