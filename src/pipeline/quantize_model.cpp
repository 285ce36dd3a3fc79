#include "base/try.h"
#include "gearshift/pipeline.h"
#include "pipeline/options.h"

namespace gearshift {

namespace {

ErrorInfo missing(std::string option, std::string wanted) {
  ErrorInfo error;
  error.code = ErrorCode::usage;
  error.subject = std::move(option);
  error.found = "nothing";
  error.wanted = std::move(wanted);
  return error;
}

}  // namespace

Result<QuantizeReport> quantize_model(const std::string& model, const Options& options, const Progress& progress) {
  GEARSHIFT_TRY(Settings settings, read_settings(options));
  if (settings.rules.empty()) return missing("--scheme", "a scheme, for example NVFP4 or '*.mlp.*=NVFP4'");
  if (settings.out.empty()) return missing("-o", "a directory to create");
  QuantizeRequest request;
  request.model = model;
  request.out = std::move(settings.out);
  request.rules = std::move(settings.rules);
  request.container = std::move(settings.container);
  request.calibration = std::move(settings.calibration);
  if (progress) request.progress = [&progress](size_t done, size_t total) { progress(done, total, "quantizing"); };
  return quantize(request);
}

}  // namespace gearshift
