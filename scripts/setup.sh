#!/usr/bin/env bash
# Installs the Debian packages that building, testing and the main job need and that are missing; says which.
set -euo pipefail

packages=(
  g++ cmake ninja-build make pkg-config
  nlohmann-json3-dev libfmt-dev libcli11-dev libpcre2-dev libxxhash-dev libtomlplusplus-dev libsqlite3-dev   # libraries of the command
  libgtest-dev libbenchmark-dev                                           # tests and benchmarks
  python3 python3-pip unzip                                               # command tests; fetching the example model
  python3-dev python3-venv                                                # the Python package
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "setup: missing: ${missing[*]}; install the equivalents with your package manager" >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null; then
    sudo=(sudo)
  else
    echo "setup: missing: ${missing[*]}; run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi
echo "setup: installing Debian packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${sudo[@]}" apt-get update && DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 15 "$log" >&2
  echo "setup: apt-get failed; the packages above are needed" >&2
  exit 1
fi
