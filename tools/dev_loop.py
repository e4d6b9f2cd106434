#!/usr/bin/env python3
"""Measures the time from a change of one kernel to the end of its test, in the tree of `cmake --preset dev`.

usage: tools/dev_loop.py [--build build/dev] [--jobs N]

For each row of KERNELS, the test program is brought up to date and the kernel's file is touched. Then the program is built
again without the compiler cache, and the test is run. Prints wall time [s] of building and of running, processor time [s] of
both, and the number of ninja's steps.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Kernel file, test program, filter of its tests.
KERNELS = [
    ("src/dynamics/aba.inl", "test_dynamics", "Identities.*"),
    ("src/dynamics/rnea.inl", "test_dynamics", "Identities.*"),
    ("src/control/limited.inl", "test_control", "ForceLimits.*"),
    ("src/constraint/branches.inl", "test_constraint", "Branches.*"),
    ("src/baselines/efpa.inl", "test_baselines", "Kkt.*"),
    ("src/geometry/sweep.inl", "test_geometry", "BroadPhase.*"),
    ("src/particles/rigid_kernel.inl", "test_particles", "ClosedForm.*"),
]


def run(command, **extra):
    """(wall time [s], processor time [s], output) of a command that must succeed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **extra)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, used, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    print(f"{'kernel':<34}{'test':<32}{'steps':>6}{'build':>8}{'run':>8}{'both':>8}{'processor':>11}")
    for kernel, program, tests in KERNELS:
        build = ["cmake", "--build", arguments.build, "--parallel", str(arguments.jobs), "--target", program]
        run(build)
        (ROOT / kernel).touch()
        built, used, said = run(build, env={**os.environ, "CCACHE_DISABLE": "1"})
        ran, more, output = run([arguments.build / "bin" / program, f"--gtest_filter={tests}"])
        if "[  PASSED  ] 0 tests" in output:
            sys.exit(f"{program}: no test is called {tests}")
        steps = sum(line.startswith("[") for line in said.splitlines())
        print(f"{kernel:<34}{f'{program} {tests}':<32}{steps:>6}{built:>8.1f}{ran:>8.1f}{built + ran:>8.1f}{used + more:>11.1f}",
              flush=True)


if __name__ == "__main__":
    main()
