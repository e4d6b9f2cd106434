"""Checks that code compiled for one instruction set is not reachable under a name that other code shares.

The linker keeps one copy of a weak function (an inline function or a template instance). If an object compiled for AVX2
defines a weak function whose name does not contain isa_avx2, a program on an older machine may run that copy and crash.
Therefore the name of every weak or global function that such an object defines must contain the instruction set's name.
"""

import re
import subprocess

ISA_OBJECT = re.compile(r"_(baseline|avx2|avx512)[_.][^/]*o$")


HAND_WRITTEN = re.compile(r"(^|/)isa/|_(baseline|avx2|avx512)(_\w+)?\.(cpp|hpp|inl)$")


def check_sources(paths):
    """Only CMake writes the sources for one instruction set (cmake/TarsusKernels.cmake)."""
    return [f"{path}: a source for one instruction set; list the table in cmake/TarsusKernels.cmake instead"
            for path in paths if HAND_WRITTEN.search(path)]


def check(build):
    objects = sorted(path for path in build.glob("**/CMakeFiles/tarsus*.dir/**/*.o") if ISA_OBJECT.search(path.name))
    problems, symbols = [], 0
    for path in objects:
        match = ISA_OBJECT.search(path.name)
        tag = "isa_" + match[1]
        lines = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        for line in lines.splitlines():
            kind, symbol = line.split()[-2:]
            if kind not in "WT":
                continue
            symbols += 1
            if tag not in symbol:
                name = subprocess.run(["c++filt", symbol], capture_output=True, text=True, check=True).stdout.strip()
                kind_name = "weak" if kind == "W" else "global"
                problems.append(f"{path.name}: the {kind_name} function {name} lies outside namespace {tag}")
    return problems, f"{symbols} functions in {len(objects)} objects"
