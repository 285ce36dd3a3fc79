// A registry as data: docs/registry.md. Everything a rule or a list names must be declared; what is not known is said
// with its place.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/try.h"
#include "kernel/data/contract.h"
#include "kernel/data/vllm_text.h"

namespace gearshift {

std::string_view name(Unserved unserved) { return unserved == Unserved::falls_back ? "falls_back" : "is_refused"; }
std::string_view name(Move::To to) { return to == Move::To::front ? "front" : to == Move::To::back ? "back" : "out"; }
std::string_view name(Fact::Kind kind) {
  switch (kind) {
    case Fact::Kind::flag:
      return "flag";
    case Fact::Kind::number:
      return "number";
    case Fact::Kind::version:
      return "version";
    case Fact::Kind::text:
      return "text";
  }
  return "";
}
std::string_view name(ActivationUse use) { return use == ActivationUse::as_checkpoint ? "as_checkpoint" : "float16"; }

namespace data {
namespace {

constexpr std::string_view kSchema = "gearshift.registry/1";
constexpr JsonLimits kLimits = {24, 200'000};

constexpr Unserved kUnserved[] = {Unserved::falls_back, Unserved::is_refused};
constexpr Move::To kPlaces[] = {Move::To::front, Move::To::back, Move::To::out};
constexpr Fact::Kind kFactKinds[] = {Fact::Kind::flag, Fact::Kind::number, Fact::Kind::version, Fact::Kind::text};
constexpr Stage kFactStages[] = {Stage::policy, Stage::build};
constexpr ActivationUse kUses[] = {ActivationUse::as_checkpoint, ActivationUse::float16};

// What the registry's views point into.
struct Storage {
  Texts texts;
  std::deque<Kernel> kernels;
};

class RegistryReader {
 public:
  RegistryReader(const Json& document, const std::string& subject, Storage& storage)
      : reading_{subject, storage.texts}, top_(document, "", reading_), storage_(storage) {}

  Result<Registry> read() {
    read_head();
    read_packages();
    read_facts();
    read_kernels();
    read_lists();
    read_rules();
    top_.finish();
    check_every_kernel_is_listed();
    if (reading_.error) return *reading_.error;
    registry_.packages = declared_.packages;
    registry_.facts = declared_.facts;
    return std::move(registry_);
  }

 private:
  void read_head() {
    std::string_view schema;
    top_.text("schema", schema);
    if (schema != kSchema)
      reading_.wrong("schema", schema.empty() ? "none" : "'" + printable(schema) + "'", std::string(kSchema));
    registry_.name = "";
    top_.text("name", registry_.name);
    if (!is_name(registry_.name)) reading_.wrong("name", "'" + printable(registry_.name) + "'", "a name");
    top_.text("source", registry_.source);
    std::vector<std::string_view> about;  // for readers of the file
    top_.texts_of_any_length("about", about);
    registry_.rules.host_stands_in = registry_.rules.rescues_shards = false;
  }

  // {"flashinfer": ["cute_dsl", ...]}: a package and the parts of it that somebody may lack.
  void read_packages() {
    top_.members("packages", [&](const std::string& name, const Json& member, const std::string& place) {
      if (!is_name(name) || name.find_first_of(".,=") != std::string::npos)
        return reading_.wrong(place, "'" + printable(name) + "'", "a name without '.', ',' and '='");
      declared_.packages.push_back(reading_.texts.keep(name));
      if (!member.is(Json::Kind::array))
        return reading_.wrong(place, described(member), "the list of its parts, or []");
      for (const Json& part : member.items) {
        if (!part.is(Json::Kind::string) || !is_name(part.string))
          return reading_.wrong(place, described(part), "the name of a part");
        declared_.packages.push_back(reading_.texts.keep(name + "." + part.string));
      }
    });
    top_.members("default_install", [&](const std::string& name, const Json& member, const std::string& place) {
      DefaultInstall install;
      if (!platform_named(name, place, install.platform)) return;
      if (!member.is(Json::Kind::array)) return reading_.wrong(place, described(member), "a list of packages");
      for (const Json& item : member.items) {
        const auto known = std::find(declared_.packages.begin(), declared_.packages.end(), item.string);
        if (known == declared_.packages.end())
          return reading_.unknown(place, item.string, "one of `packages`", declared_.packages);
        install.packages.push_back(*known);
      }
      registry_.default_install.push_back(std::move(install));
    });
  }

  void read_facts() {
    top_.members("facts", [&](const std::string& name, const Json& member, const std::string& place) {
      Fact fact;
      if (!is_name(name) || name.find_first_of(",=") != std::string::npos)
        return reading_.wrong(place, "'" + printable(name) + "'", "a name without ',' and '='");
      fact.name = reading_.texts.keep(name);
      Fields fields(member, place, reading_);
      fields.word("kind", fact.kind, std::span<const Fact::Kind>(kFactKinds));
      fields.word("stage", fact.stage, std::span<const Stage>(kFactStages));
      fields.text("default", fact.value);
      fields.texts("set_on", fact.set_on);
      fields.text("about", fact.about);
      fields.finish();
      declared_.facts.push_back(fact);
    });
  }

  void read_kernels() {
    top_.members("kernels", [&](const std::string& name, const Json& member, const std::string& place) {
      if (!is_name(name) || name.find_first_of(",*") != std::string::npos)
        return reading_.wrong(place, "'" + printable(name) + "'", "a name without ',' and '*'");
      Kernel kernel;
      kernel.name = reading_.texts.keep(name);
      kernel.layout = &engine_layout;
      Fields fields(member, place, reading_);
      fields.text("backend", kernel.backend);
      fields.word("activation", kernel.activation, std::span<const ActivationUse>(kUses));
      fields.text("accumulator", kernel.accumulator);
      fields.texts_of_any_length("notes", kernel.notes);
      fields.text("source", kernel.source);
      if (const Json* contract = fields.take("contract"))
        kernel.contract = read_contract(*contract, fields.place_of("contract"), declared_, reading_);
      fields.finish();
      kernels_.emplace(kernel.name, std::move(kernel));
    });
  }

  void read_lists() {
    top_.each("lists", [&](const Json& item, const std::string& place) {
      Fields fields(item, place, reading_);
      std::vector<Platform> platforms;
      std::vector<Family> families;
      KernelList list;
      fields.words("platforms", platforms, all_platforms());
      fields.words("families", families, all_families());
      fields.word("kind", list.kind, all_kinds());
      if (const Json* when = fields.take("when"))
        list.when = read_condition(*when, fields.place_of("when"), declared_, reading_);
      std::vector<std::pair<std::string_view, ListEntry>> lines;
      fields.each("kernels", [&](const Json& line, const std::string& line_place) {
        lines.push_back(read_line(line, line_place));
      });
      fields.finish();
      if (platforms.empty() || families.empty()) return reading_.wrong(place, "no platforms or no families", "both");
      for (Platform platform : platforms) {
        for (Family family : families) add_list(list, platform, family, lines, place);
      }
    });
  }

  // A name, or {"kernel": NAME, "why": TEXT, "on_request": true}.
  std::pair<std::string_view, ListEntry> read_line(const Json& json, const std::string& place) {
    std::pair<std::string_view, ListEntry> line;
    if (json.is(Json::Kind::string)) {
      line.first = known_kernel(json.string, place);
      return line;
    }
    Fields fields(json, place, reading_);
    std::string_view kernel;
    fields.text("kernel", kernel);
    fields.text("why", line.second.why);
    fields.flag("on_request", line.second.on_request);
    fields.finish();
    line.first = known_kernel(kernel, place);
    return line;
  }

  std::string_view known_kernel(std::string_view word, const std::string& place) {
    const auto found = kernels_.find(word);
    if (found != kernels_.end()) return found->first;
    std::vector<std::string_view> valid;
    for (const auto& [known, kernel] : kernels_) valid.push_back(known);
    reading_.unknown(place, word, "one of `kernels`", valid);
    return "";
  }

  void add_list(const KernelList& shape, Platform platform, Family family,
                const std::vector<std::pair<std::string_view, ListEntry>>& lines, const std::string& place) {
    if (reading_.error) return;
    KernelList list = shape;
    list.platform = platform;
    list.family = family;
    for (const auto& [kernel_name, line] : lines) {
      Kernel& kernel = kernel_on(kernel_name, platform);
      const bool twice = std::any_of(list.entries.begin(), list.entries.end(),
                                     [&](const ListEntry& other) { return other.kernel == &kernel; });
      if (twice) return reading_.wrong(place, std::string(kernel_name) + " twice", "each kernel once");
      if (std::find(kernel.families.begin(), kernel.families.end(), family) == kernel.families.end())
        kernel.families.push_back(family);
      list.entries.push_back(line);
      list.entries.back().kernel = &kernel;
    }
    registry_.lists.push_back(std::move(list));
  }

  // Kernels know one platform; one that several lists of different platforms name stands there several times.
  Kernel& kernel_on(std::string_view kernel_name, Platform platform) {
    const auto [found, is_new] = placed_.try_emplace({kernel_name, platform}, nullptr);
    if (is_new) {
      found->second = &storage_.kernels.emplace_back(kernels_.at(kernel_name));
      found->second->platform = platform;
    }
    return *found->second;
  }

  void check_every_kernel_is_listed() {
    for (const auto& declared : kernels_) {
      const bool listed = std::any_of(placed_.begin(), placed_.end(),
                                      [&](const auto& placed) { return placed.first.first == declared.first; });
      if (!listed)
        reading_.wrong("kernels." + std::string(declared.first), "in no list", "a kernel that some list names");
    }
  }

  // ---- rules --------------------------------------------------------------------------------------------------------

  void read_rules() {
    const Json* json = top_.take("rules");
    if (json == nullptr) return;
    RegistryRules& rules = registry_.rules;
    Fields fields(*json, "rules", reading_);
    fields.flag("expert_lists", rules.expert_lists);
    fields.flag("emulation_is_expected", rules.emulation_is_expected);
    fields.flag("rescues_shards", rules.rescues_shards);
    fields.flag("folds_backend_names", rules.folds_backend_names);
    read_request_rules(fields, "linear", rules.linear);
    read_request_rules(fields, "experts", rules.experts);
    rules.disabling_fact = read_fact_name(fields, "disabling_fact");
    rules.batch_invariant_fact = read_fact_name(fields, "batch_invariant_fact");
    fields.each("routes", [&](const Json& item, const std::string& place) { read_route(item, place); });
    fields.each("seen_as", [&](const Json& item, const std::string& place) { read_seen_as(item, place); });
    fields.each("forces", [&](const Json& item, const std::string& place) { read_force(item, place); });
    fields.each("moves", [&](const Json& item, const std::string& place) { read_move(item, place); });
    fields.finish();
  }

  void read_request_rules(Fields& fields, std::string_view key, RequestRules& out) {
    const Json* json = fields.take(key);
    if (json == nullptr) return;
    Fields inner(*json, fields.place_of(key), reading_);
    inner.word("not_covered", out.not_covered, std::span<const Unserved>(kUnserved));
    inner.word("not_usable", out.not_usable, std::span<const Unserved>(kUnserved));
    inner.each("not_heard", [&](const Json& item, const std::string& place) {
      out.not_heard.push_back(read_condition(item, place, declared_, reading_));
    });
    inner.finish();
  }

  std::string_view read_fact_name(Fields& fields, std::string_view key) {
    std::string_view word;
    fields.text(key, word);
    if (word.empty() || declared_.fact(word) != nullptr) return word;
    std::vector<std::string_view> valid;
    for (const Fact& fact : declared_.facts) valid.push_back(fact.name);
    reading_.unknown(fields.place_of(key), word, "one of `facts`", valid);
    return "";
  }

  void read_when(Fields& fields, Condition& out) {
    if (const Json* when = fields.take("when"))
      out = read_condition(*when, fields.place_of("when"), declared_, reading_);
  }
  void read_kernel_name(Fields& fields, std::string_view key, std::string_view& out) {
    fields.text(key, out);
    if (!out.empty()) out = known_kernel(out, fields.place_of(key));
  }

  void read_route(const Json& json, const std::string& place) {
    ListRoute route;
    Family family{};
    Fields fields(json, place, reading_);
    read_when(fields, route.when);
    if (json.find("family") != nullptr) {
      fields.word("family", family, all_families());
      route.family = family;
    }
    fields.text("refuses", route.refuses);
    fields.finish();
    if (!route.family && route.refuses.empty()) reading_.wrong(place, "no `family` and no `refuses`", "one of them");
    registry_.rules.routes.push_back(std::move(route));
  }

  void read_seen_as(const Json& json, const std::string& place) {
    constexpr Granularity granularities[] = {Granularity::tensor, Granularity::token, Granularity::token_group};
    SeenAs seen;
    Fields fields(json, place, reading_);
    read_when(fields, seen.when);
    read_kernel_name(fields, "if_usable", seen.if_usable);
    read_kernel_name(fields, "unless_usable", seen.unless_usable);
    fields.word("activation_granularity", seen.activation_granularity, std::span<const Granularity>(granularities));
    fields.finish();
    registry_.rules.seen_as.push_back(std::move(seen));
  }

  void read_force(const Json& json, const std::string& place) {
    Force force;
    Fields fields(json, place, reading_);
    read_when(fields, force.when);
    read_kernel_name(fields, "kernel", force.kernel);
    fields.flag("if_usable", force.if_usable);
    fields.flag("past_disabled", force.past_disabled);
    fields.flag("past_layer", force.past_layer);
    fields.text("why", force.why);
    fields.finish();
    if (force.kernel.empty()) reading_.wrong(place, "no `kernel`", "the kernel that is forced");
    registry_.rules.forces.push_back(std::move(force));
  }

  void read_move(const Json& json, const std::string& place) {
    Move move;
    Fields fields(json, place, reading_);
    read_when(fields, move.when);
    fields.texts("kernels", move.kernels);
    for (std::string_view& kernel : move.kernels) kernel = known_kernel(kernel, fields.place_of("kernels"));
    fields.word("to", move.to, std::span<const Move::To>(kPlaces));
    fields.text("why", move.why);
    fields.finish();
    registry_.rules.moves.push_back(std::move(move));
  }

  bool platform_named(std::string_view word, const std::string& place, Platform& out) {
    for (Platform platform : all_platforms()) {
      if (gearshift::name(platform) != word) continue;
      out = platform;
      return true;
    }
    std::vector<std::string_view> valid;
    for (Platform platform : all_platforms()) valid.push_back(gearshift::name(platform));
    reading_.unknown(place, word, "a platform", valid);
    return false;
  }

  Reading reading_;
  Fields top_;
  Storage& storage_;
  Registry registry_;
  Declared declared_;
  std::map<std::string_view, Kernel> kernels_;  // as declared, of no platform yet
  std::map<std::pair<std::string_view, Platform>, Kernel*> placed_;
};

}  // namespace
}  // namespace data

Result<Registry> read_registry(std::string_view text, const std::string& subject) {
  Result<Json> document = parse_json(text, subject, data::kLimits);
  if (!document.ok()) {
    ErrorInfo error = document.error();
    error.code = ErrorCode::usage;  // no checkpoint is damaged: somebody named this file
    return error;
  }
  auto storage = std::make_shared<data::Storage>();
  GEARSHIFT_TRY(Registry registry, data::RegistryReader(*document, subject, *storage).read());
  registry.storage = std::move(storage);
  return registry;
}

const Registry& vllm_registry() {
  static const Registry registry = read_registry(data::vllm_text(), "the vllm registry").value();
  return registry;
}

}  // namespace gearshift
