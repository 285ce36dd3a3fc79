#!/usr/bin/env bash
# Installs the built tree into a scratch prefix, builds what uses it with find_package alone, and runs it: the smallest
# program, and those of docs/cpp.md and docs/c.md as they stand there.
# Usage: check.sh BUILD_DIR MODEL DOCS LAYER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$1" --prefix "$scratch/prefix" >/dev/null

# The first block in LANGUAGE of a page: program LANGUAGE PAGE.
program() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$2" | sed '/^```/d'; }
mkdir "$scratch/source"
cp "$here/CMakeLists.txt" "$here/main.cpp" "$scratch/source"
program cpp "$3/cpp.md" >"$scratch/source/docs.cpp"
program c "$3/c.md" >"$scratch/source/docs.c"
test -s "$scratch/source/docs.cpp" && test -s "$scratch/source/docs.c"

cmake -S "$scratch/source" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$scratch/build" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
"$scratch/build/consumer" "$2" | tee /dev/stderr | grep -qE '^[1-9][0-9]* layers$'
export GEARSHIFT_STORE=off
for language in cpp c; do
  "$scratch/build/docs_$language" "$2" "$4" >"$scratch/said" || { echo "docs/$language.md: exit $?"; cat "$scratch/said"; exit 1; }
  grep -qE '^y\[0\]\[0\] = -?[0-9]' "$scratch/said"
  if "$scratch/build/docs_$language" "$2" no.such.layer >/dev/null 2>"$scratch/said"; then exit 1; fi
  grep -q no.such.layer "$scratch/said"
done
"$scratch/prefix/bin/gearshift" --version
