#!/usr/bin/env bash
# Installs the built tree into a scratch prefix, builds the consumer against it with find_package alone, and runs it.
# Usage: check.sh BUILD_DIR MODEL
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$1" --prefix "$scratch/prefix" >/dev/null
cmake -S "$here" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$scratch/build" >/dev/null
"$scratch/build/consumer" "$2" | tee /dev/stderr | grep -qE '^[1-9][0-9]* layers$'
"$scratch/prefix/bin/gearshift" --version
