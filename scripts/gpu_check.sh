#!/usr/bin/env bash
# Proves the CUDA kernels on this machine, then times them: needs an NVIDIA driver and libcublasLt, nothing else of CUDA's.
# usage: gpu-check [FOLDER [OPTION...]]   what was found goes to FOLDER (default: gpu-check-results): doctor.json, tests.log,
# bench.json with the limits each time is held against, experts.json, and sanitizer.log where compute-sanitizer is installed; options are
# those of bench_cuda_kernels
# Exit status: 0 when every test passed and every timed result was right.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-gpu-check-results}
mkdir -p "$out" || exit 1

# Where toolkits and Python wheels put cuBLASLt.
for folder in /usr/local/cuda*/lib64 /usr/lib/python3/dist-packages/nvidia/*/lib /opt/*/lib/python3*/site-packages/nvidia/*/lib \
              /opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib "${VIRTUAL_ENV:-/nowhere}"/lib/python3*/site-packages/nvidia/*/lib; do
  [ -d "$folder" ] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH OMP_WAIT_POLICY=passive

status=0
"$here/gearshift" doctor --json="$out/doctor.json" >"$out/doctor.log" 2>&1 || status=1
echo "== tests"
if "$here/test_cuda" >"$out/tests.log" 2>&1; then
  grep -E "NVIDIA|tests ran" "$out/tests.log"
else
  status=1
  grep -E "NVIDIA|Failure|instead of|FAILED|tests ran" "$out/tests.log" | head -n 40
fi
# Out-of-bounds accesses and races, on the smallest set that launches every kernel.
for sanitizer in compute-sanitizer /usr/local/cuda*/bin/compute-sanitizer; do
  command -v "$sanitizer" >/dev/null || continue
  for tool in memcheck racecheck; do
    echo "== compute-sanitizer $tool"
    "$sanitizer" --tool "$tool" --error-exitcode 9 "$here/test_cuda" --gtest_filter='Case74.*' >>"$out/sanitizer.log" 2>&1 || status=1
    grep -E "ERROR SUMMARY|RACECHECK SUMMARY" "$out/sanitizer.log" | tail -n 1
  done
  break
done
echo "== benchmarks"
"$here/bench_cuda_kernels" "$out/bench.json" "${@:2}" | tee "$out/bench.log"
[ "${PIPESTATUS[0]}" -eq 0 ] && ! grep -q WRONG "$out/bench.log" || status=1
"$here/bench_cuda_experts" "$out/experts.json" | tee "$out/experts.log"
[ "${PIPESTATUS[0]}" -eq 0 ] || status=1
echo "== $([ $status -eq 0 ] && echo passed || echo FAILED), results in $out"
exit $status
