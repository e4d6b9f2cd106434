"""Code compiled for one instruction set must not be reachable under a name that other code shares.

The linker keeps one copy of a weak function (an inline one, a template's instance). If an object compiled for AVX2 holds
a weak function whose name does not contain isa_avx2, a program on an older machine may run that copy and die. So: every
weak function that such an object defines carries its instruction set's name, as must every global one.
"""

import re
import subprocess

ISA_OBJECT = re.compile(r"_(baseline|avx2|avx512)[_.][^/]*o$")


HAND_WRITTEN = re.compile(r"(^|/)isa/|_(baseline|avx2|avx512)(_\w+)?\.(cpp|hpp|inl)$")


def check_sources(paths):
    """Sources for one instruction set are written by CMake (cmake/TarsusKernels.cmake), never by hand."""
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
