#include "base/try.h"
#include "gearshift/pipeline.h"

namespace gearshift {

Result<InspectReport> inspect_model(const std::string& model) {
  GEARSHIFT_TRY(const Checkpoint checkpoint, Checkpoint::open(model));
  GEARSHIFT_TRY(ModelLayers read, read_layers(checkpoint, true));
  InspectReport report;
  report.path = checkpoint.path();
  report.architecture = std::move(read.architecture);
  report.quant_method = std::move(read.quant_method);
  report.files = checkpoint.files();
  report.tensors = checkpoint.tensors();
  report.layers = std::move(read.layers);
  report.unknown = std::move(read.unknown);
  report.skipped = std::move(read.skipped);
  return report;
}

}  // namespace gearshift
