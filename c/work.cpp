#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/try.h"
#include "border.h"
#include "report/documents.h"
#include "report/pages.h"
#include "report/texts.h"

// Every form is made when it is asked for.
struct gearshift_report {
  gearshift::c::Forms forms;
  bool passed = true;
};

namespace gearshift::c {

namespace {

// What one call of gearshift_work asks for.
struct Work {
  std::vector<std::string> words;
  Options options;
  Progress progress;
};
using Reported = Result<std::unique_ptr<gearshift_report>>;

template <class Report>
using Json = std::string (*)(const Report&);
template <class Report>
using Text = std::string (*)(const Report&, size_t);

template <class Report>
std::unique_ptr<gearshift_report> report_of(Report report, Json<Report> json, Text<Report> text,
                                            Json<Report> html = nullptr, bool passed = true) {
  const auto data = std::make_shared<const Report>(std::move(report));
  auto shown = std::make_unique<gearshift_report>();
  shown->forms.json = [=] { return json(*data); };
  shown->forms.text = [=](size_t width) { return text(*data, width); };
  if (html != nullptr) shown->forms.html = [=] { return html(*data); };
  shown->passed = passed;
  return shown;
}

bool all_right(const std::vector<Measurement>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const Measurement& row) { return row.comparison.ok; });
}

Result<DeviceProfile> host_of(const Options& options) {
  const auto limit = options.find("max-isa");
  return host_cpu(limit == options.end() ? "" : limit->second.values.back());
}

Reported do_run(const Work& work) {
  GEARSHIFT_TRY(RunReport report, run_model(work.words[0], work.options, work.progress));
  const bool passed = all_right(report.rows);
  return report_of<RunReport>(std::move(report), run_json, run_text, run_html, passed);
}
Reported do_verify(const Work& work) {
  GEARSHIFT_TRY(VerifyReport report, verify_model(work.words[0], work.options, work.progress));
  const bool passed = all_right(report.rows) && report.quarantined.empty();
  return report_of<VerifyReport>(std::move(report), verify_json, verify_text, verify_html, passed);
}
Reported do_tune(const Work& work) {
  GEARSHIFT_TRY(TuneReport report, tune_model(work.words[0], work.options, work.progress));
  return report_of<TuneReport>(std::move(report), tune_json, tune_text);
}
Reported do_quantize(const Work& work) {
  GEARSHIFT_TRY(QuantizeReport report, quantize_model(work.words[0], work.options, work.progress));
  return report_of<QuantizeReport>(std::move(report), quantize_json, quantize_text);
}
Reported do_bench(const Work& work) {
  GEARSHIFT_TRY(BenchReport report, bench(work.options, work.progress));
  const bool passed = std::all_of(report.rows.begin(), report.rows.end(), [](const BenchRow& row) {
    return !row.refused.empty() || row.measurement.comparison.ok;
  });
  return report_of<BenchReport>(std::move(report), bench_json, bench_text, nullptr, passed);
}
Reported do_inspect(const Work& work) {
  GEARSHIFT_TRY(InspectReport report, inspect_model(work.words[0]));
  return report_of<InspectReport>(std::move(report), inspect_json, inspect_text);
}
Reported do_kernels(const Work& work) {
  GEARSHIFT_TRY(const DeviceProfile host, host_of(work.options));
  GEARSHIFT_TRY(KernelListing listing, list_kernels(host, work.options));
  return report_of<KernelListing>(
      std::move(listing), [](const KernelListing& l) { return kernels_json(l.rows); },
      [](const KernelListing& l, size_t width) { return kernels_text(l.rows, width); });
}
Reported do_devices(const Work& work) {
  GEARSHIFT_TRY(const DeviceProfile host, host_of(work.options));
  return report_of<std::vector<DeviceProfile>>(known_devices(host), devices_json, devices_text);
}
Reported do_doctor(const Work& work) {
  GEARSHIFT_TRY(DoctorReport report, doctor(work.options));
  const bool passed = std::all_of(report.launch_tests.begin(), report.launch_tests.end(),
                                  [](const LaunchTest& test) { return test.ok; });
  return report_of<DoctorReport>(std::move(report), doctor_json, doctor_text, nullptr, passed);
}
Reported do_store(const Work& work) {
  GEARSHIFT_TRY(StoreReport report, use_store(work.words, work.options));
  const bool wrong = report.action == "verify" && (!report.check.problems.empty() || report.check.bad_rows > 0);
  return report_of<StoreReport>(std::move(report), store_json, store_text, nullptr, !wrong);
}

struct VerbOfWork {
  std::string_view name;
  Verb verb;
  size_t least, most;  // words
  Reported (*work)(const Work& work);
};
constexpr std::array<VerbOfWork, 10> verbs = {{{"run", kRun, 1, 1, do_run},
                                               {"verify", kVerify, 1, 1, do_verify},
                                               {"tune", kTune, 1, 1, do_tune},
                                               {"quantize", kQuantize, 1, 1, do_quantize},
                                               {"bench", kBench, 0, 0, do_bench},
                                               {"inspect", kInspect, 1, 1, do_inspect},
                                               {"kernels", kKernels, 0, 0, do_kernels},
                                               {"devices", kDevices, 0, 0, do_devices},
                                               {"doctor", kDoctor, 0, 0, do_doctor},
                                               {"store", kStore, 1, 2, do_store}}};

Reported do_work(const char* verb, const char* const* words, size_t word_count, const gearshift_option* options,
                 size_t option_count, const Progress& progress) {
  if (verb == nullptr || (words == nullptr && word_count != 0)) return null_argument("verb or words");
  const auto found = std::find_if(verbs.begin(), verbs.end(), [&](const VerbOfWork& v) { return v.name == verb; });
  if (found == verbs.end()) {
    std::vector<std::string> names;
    for (const VerbOfWork& known : verbs) names.emplace_back(known.name);
    return misused("verb", "'" + printable(verb) + "'", "one of " + join(names, ", "));
  }
  Work work;
  for (size_t i = 0; i < word_count; ++i) {
    if (words[i] == nullptr || *words[i] == '\0') return misused(std::string(found->name), "an empty word", "a text");
    work.words.emplace_back(words[i]);
  }
  if (word_count < found->least || word_count > found->most) {
    return misused(std::string(found->name), std::to_string(word_count) + " words",
                   found->least == found->most ? std::to_string(found->least)
                                               : std::to_string(found->least) + " to " + std::to_string(found->most));
  }
  GEARSHIFT_TRY(work.options, options_of(found->verb, options, option_count));
  work.progress = progress;
  return found->work(work);
}

}  // namespace

}  // namespace gearshift::c

using namespace gearshift;     // NOLINT(google-build-using-namespace): the functions below stand outside it
using namespace gearshift::c;  // NOLINT(google-build-using-namespace)

extern "C" {

gearshift_status gearshift_work(const char* verb, const char* const* words, size_t word_count,
                                const gearshift_option* options, size_t option_count, gearshift_progress progress,
                                void* context, gearshift_report** report) {
  if (report == nullptr) return fail(null_argument("report"));
  Progress watched;
  if (progress != nullptr) {
    watched = [=](size_t done, size_t total, std::string_view what) {
      if (progress(context, done, total, std::string(what).c_str()) != 0) throw Stopped();
    };
  }
  return guarded([&] { return do_work(verb, words, word_count, options, option_count, watched); },
                 [&](std::unique_ptr<gearshift_report> made) { *report = made.release(); });
}

void gearshift_report_free(gearshift_report* report) { delete report; }

gearshift_status gearshift_report_show(const gearshift_report* report, gearshift_form form, size_t width, char** text) {
  if (report == nullptr || text == nullptr) return fail(null_argument("report or text"));
  return guarded([&] { return show(report->forms, form, width); },
                 [&](const std::string& shown) { *text = handed_out(shown); });
}

int gearshift_report_passed(const gearshift_report* report) { return report != nullptr && report->passed ? 1 : 0; }
}
