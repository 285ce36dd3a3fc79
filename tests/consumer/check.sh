#!/usr/bin/env bash
# Installs the built tree into a scratch prefix, builds what uses it with find_package alone, and runs it: the smallest
# program, and those of docs/cpp.md and docs/c.md as they stand there. Those two once more with pkg-config, in a tree that was moved.
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
# Runs the programs of both pages in a folder: programs_in FOLDER MODEL LAYER.
programs_in() {
  for language in cpp c; do
    "$1/docs_$language" "$2" "$3" >"$scratch/said" || { echo "docs/$language.md: exit $?"; cat "$scratch/said"; exit 1; }
    grep -qE '^y\[0\]\[0\] = -?[0-9]' "$scratch/said"
    if "$1/docs_$language" "$2" no.such.layer >/dev/null 2>"$scratch/said"; then exit 1; fi
    grep -q no.such.layer "$scratch/said"
  done
}
programs_in "$scratch/build" "$2" "$4"
"$scratch/prefix/bin/gearshift" --version

mv "$scratch/prefix" "$scratch/moved"
mkdir "$scratch/plain"
PKG_CONFIG_PATH=$(dirname "$(find "$scratch/moved" -name gearshift.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
cc -std=c11 "$scratch/source/docs.c" $(pkg-config --cflags --libs gearshift) -Wl,-rpath,"$(pkg-config --variable=libdir gearshift)" -o "$scratch/plain/docs_c"
# shellcheck disable=SC2046
c++ -std=c++20 "$scratch/source/docs.cpp" $(pkg-config --cflags --libs gearshift-cpp) -o "$scratch/plain/docs_cpp"
programs_in "$scratch/plain" "$2" "$4"
echo "pkg-config: $(pkg-config --modversion gearshift gearshift-cpp | tr '\n' ' ')"
