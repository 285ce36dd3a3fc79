// What every function of the C border does: no exception crosses it, and a failure leaves its story with the thread.
#pragma once

#include <functional>
#include <memory>
#include <new>

#include "gearshift/gearshift.h"
#include "gearshift/pipeline.h"

namespace gearshift::c {

// Keeps `error` for gearshift_last_error() and says its status.
gearshift_status fail(ErrorInfo error);
// The same for work that a progress function stopped.
gearshift_status fail_stopped();
// Thrown by progress functions, caught by guarded().
struct Stopped {};

ErrorInfo misused(std::string subject, std::string found, std::string wanted, std::string hint = "");
inline ErrorInfo null_argument(std::string_view what) { return misused(std::string(what), "NULL", "a value"); }

// Runs `work`, which returns a Result, and passes its value to `deliver`.
template <class Work, class Deliver>
gearshift_status guarded(const Work& work, const Deliver& deliver) {
  try {
    auto result = work();
    if (!result.ok()) return fail(result.error());
    deliver(*std::move(result));
    return GEARSHIFT_OK;
  } catch (const Stopped&) {
    return fail_stopped();
  } catch (const std::bad_alloc&) {
    return fail({ErrorCode::runtime, "gearshift", "not enough memory", "", "", {}});
  } catch (const std::exception& error) {
    return fail({ErrorCode::runtime, "gearshift", error.what(), "", "", {}});
  } catch (...) {
    return fail({ErrorCode::runtime, "gearshift", "an unknown exception", "", "", {}});
  }
}

// Text that gearshift_free_text() frees. Throws bad_alloc.
char* handed_out(const std::string& text);

// What a call says, over environment and file. Errors usage: an option that this verb does not have.
Result<Options> options_of(Verb verb, const gearshift_option* options, size_t count);

// One of the forms of a result; an empty function: there is no such form.
struct Forms {
  std::function<std::string()> json;
  std::function<std::string(size_t width)> text;
  std::function<std::string()> html;
};
Result<std::string> show(const Forms& forms, gearshift_form form, size_t width);

}  // namespace gearshift::c
