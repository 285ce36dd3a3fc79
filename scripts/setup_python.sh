#!/bin/sh
# Makes the virtual environment in which `make test` builds and tests the Python package; packages come from PyPI, 40 MB.
#
#   setup_python.sh VENV [PACKAGE...]     further packages stay: "torch transformers" (5 GB) add the tests of gearshift.torch
#
# Where PyPI cannot be reached it says so and leaves no environment: everything else is tested then.
set -eu

venv=${1:?usage: setup_python.sh VENV [PACKAGE...]}
shift
python=$(command -v python3)
packages="nanobind>=2.4 scikit-build-core>=0.10 numpy>=1.23 ml_dtypes>=0.4 mypy>=1.8"

# Ready: made by this Python, with all packages.
if [ -f "$venv/ready" ] && [ "$(cat "$venv/ready")" = "$python: $packages" ] && "$venv/bin/python" -c '' 2>/dev/null; then
  [ $# -eq 0 ] || exec "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
  exit 0
fi
rm -rf "$venv"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "setup_python: installing $packages from PyPI into $venv"
# shellcheck disable=SC2086
if "$python" -m venv "$venv" >"$log" 2>&1 &&
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --timeout 20 --retries 1 $packages "$@" >>"$log" 2>&1; then
  echo "$python: $packages" >"$venv/ready"
  exit 0
fi
echo "setup_python: the Python package will not be tested, because its environment cannot be made: $(tail -n 1 "$log" | cut -c 1-160)" >&2
rm -rf "$venv"
