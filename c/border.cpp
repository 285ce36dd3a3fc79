#include "border.h"

#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "base/try.h"

namespace gearshift::c {

namespace {

// An error as C sees it; `view` points at the other members.
struct KeptError {
  ErrorInfo info;
  std::string message;
  std::vector<const char*> details;
  gearshift_error view{};
};

const gearshift_error no_error = {GEARSHIFT_OK, "", "", "", "", "", "", 0, nullptr};
thread_local std::unique_ptr<KeptError> kept;

gearshift_status keep(gearshift_status status, const char* code, ErrorInfo info) {
  try {
    auto error = std::make_unique<KeptError>();
    error->info = std::move(info);
    error->message = error->info.message();
    for (const std::string& detail : error->info.details) error->details.push_back(detail.c_str());
    const ErrorInfo& i = error->info;
    error->view = {status,           code,           error->message.c_str(), i.subject.c_str(),    i.found.c_str(),
                   i.wanted.c_str(), i.hint.c_str(), error->details.size(),  error->details.data()};
    kept = std::move(error);
  } catch (...) {
    kept.reset();  // no memory even for its text: the status has to do
  }
  return status;
}

gearshift_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::runtime:
      return GEARSHIFT_RUNTIME;
    case ErrorCode::usage:
      return GEARSHIFT_USAGE;
    case ErrorCode::no_kernel:
      return GEARSHIFT_NO_KERNEL;
    case ErrorCode::fallback_refused:
      return GEARSHIFT_FALLBACK_REFUSED;
    case ErrorCode::damaged_checkpoint:
      return GEARSHIFT_DAMAGED_CHECKPOINT;
    case ErrorCode::unsupported_scheme:
      return GEARSHIFT_UNSUPPORTED_SCHEME;
    case ErrorCode::self_check:
      return GEARSHIFT_SELF_CHECK;
  }
  return GEARSHIFT_RUNTIME;
}

}  // namespace

gearshift_status fail(ErrorInfo error) {
  const ErrorCode code = error.code;
  return keep(status_of(code), name(code).data(), std::move(error));
}

gearshift_status fail_stopped() {
  return keep(GEARSHIFT_STOPPED, "stopped", {ErrorCode::runtime, "gearshift", "a request to stop", "", "", {}});
}

ErrorInfo misused(std::string subject, std::string found, std::string wanted, std::string hint) {
  return {ErrorCode::usage, std::move(subject), std::move(found), std::move(wanted), std::move(hint), {}};
}

char* handed_out(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

Result<Options> options_of(Verb verb, const gearshift_option* options, size_t count) {
  if (options == nullptr && count != 0) return null_argument("options");
  Options given;
  for (size_t i = 0; i < count; ++i) {
    if (options[i].name == nullptr || options[i].value == nullptr) return null_argument("an option");
    const std::string name = options[i].name;
    const OptionSpec* spec = find_option(name);
    if (spec == nullptr || spec->use == OptionUse::front_end || (spec->verbs != 0 && (spec->verbs & verb) == 0)) {
      std::vector<std::string_view> names;
      for (const OptionSpec& known : all_options()) {
        const bool heard = known.verbs == 0 || (known.verbs & verb) != 0;
        if (heard && known.use != OptionUse::front_end) names.push_back(known.name);
      }
      const std::vector<std::string> near = near_names(name, names);
      return misused(printable(name), spec == nullptr ? "an unknown option" : "an option of other work",
                     "one that this work has", near.empty() ? "" : "did you mean " + join(near, ", ") + "?");
    }
    OptionValue& option = given[name];
    option.values.push_back(options[i].value);
    option.source = "call";
    option.written = name;
  }
  GEARSHIFT_TRY(Options all, complete_options(std::move(given), [](const char* name) { return std::getenv(name); }));
  return heard_by(verb, std::move(all));
}

Result<std::string> show(const Forms& forms, gearshift_form form, size_t width) {
  if (form == GEARSHIFT_JSON && forms.json) return forms.json();
  if (form == GEARSHIFT_TEXT && forms.text) return forms.text(width == 0 ? 100 : width);
  if (form == GEARSHIFT_HTML && forms.html) return forms.html();
  return misused("form", std::to_string(static_cast<int>(form)), "a form that this result has");
}

}  // namespace gearshift::c

extern "C" {

uint32_t gearshift_abi_version(void) { return GEARSHIFT_ABI_VERSION; }

const char* gearshift_version(void) { return GEARSHIFT_VERSION; }

const gearshift_error* gearshift_last_error(void) {
  return gearshift::c::kept ? &gearshift::c::kept->view : &gearshift::c::no_error;
}

void gearshift_free_text(char* text) { std::free(text); }
}
