#!/usr/bin/env python3
"""Checks that an installed tarsus package is complete: type stubs, licence, models, command line."""

import pathlib

import tarsus

package = pathlib.Path(tarsus.__file__).parent
missing = [name for name in ("_core.pyi", "py.typed", "models/humanoid.xml") if not (package / name).is_file()]
if not any((package / "bin").glob("tarsus*")):
    missing.append("bin/tarsus")
if not list(package.parent.glob("tarsus-*.dist-info/**/LICENSE*")):
    missing.append("LICENSE")
assert not missing, f"the installed package lacks {', '.join(missing)}"
print("tarsus", tarsus.__version__, "is whole: command line, models, type stubs, licence")
