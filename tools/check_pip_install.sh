#!/usr/bin/env bash
# `pip install .` as a user would run it: a new environment, build isolation on, then an import far from the sources.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"${PYTHON:-python3}" -m venv "$directory/venv"
"$directory/venv/bin/pip" install --quiet --disable-pip-version-check .
cd "$directory"
venv/bin/python - <<'CODE'
import pathlib, tarsus
package = pathlib.Path(tarsus.__file__).parent
for name in ("_core.pyi", "py.typed"):
    assert (package / name).is_file(), f"the installed package lacks {name}"
print("pip install .: tarsus", tarsus.__version__, "with type stubs")
CODE
