#!/usr/bin/env bash
# Makes a virtual environment and installs pinned packages into it, beside those of other lists; does nothing when all
# is as it was.
# usage: tools/setup_venv.sh DIRECTORY REQUIREMENTS
set -euo pipefail
venv=$1
requirements=$2
stamp=$venv/$(basename "$requirements").stamp

if ! "$venv/bin/python" -c '' 2>/dev/null; then
  echo "-- Creating $venv"
  rm -rf "$venv"
  "${PYTHON:-python3}" -m venv "$venv"
fi
if ! cmp -s "$requirements" "$stamp"; then
  echo "-- Installing into $venv: $(grep -v '^#' "$requirements" | tr '\n' ' ')"
  # Python compiles what is imported when it is: compiling all of torch takes two thirds of the time.
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile -r "$requirements"
  cp "$requirements" "$stamp"
fi
