#include "base/try.h"
#include "gearshift/pipeline.h"
#include "pipeline/bencher.h"
#include "pipeline/moe_bencher.h"

namespace gearshift {

Result<BenchReport> bench(const Options& options, const Progress& progress) {
  GEARSHIFT_TRY(const BenchJob job, bench_job(options));
  if (!job.settings.moe_shapes.empty()) return MoeBencher(job, builtin_registry(), progress).run();
  return Bencher(job, builtin_registry(), progress).run();
}

}  // namespace gearshift
