#!/usr/bin/env python3
"""Shows the time of `make demo` and `make test`: a table of the stages, and of what was compiled in each.

usage: tools/times.py [--ninja build/.ninja_log] [--top 10] STAGES.tsv

STAGES.tsv has a line `name<TAB>start<TAB>end<TAB>processor seconds` for each stage (start and end since the epoch), as
tools/stage.sh writes it. On a shared machine, processor time is more meaningful than wall time.
"""

import argparse
from collections import defaultdict
from pathlib import Path


def compiled(path):
    """{output: seconds} from the last entry of each output in a ninja log."""
    steps = {}
    if path.is_file():
        for line in path.read_text().splitlines():
            fields = line.split("\t")
            if len(fields) == 5 and not line.startswith("#"):
                steps[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return steps


def group_of(output):
    for name, group in (("tarsus_kernels", "kernels"), ("tarsus_baselines", "baselines"),
                        ("tarsus_setup", "library: set-up"), ("tarsus.dir", "library"), ("apps/", "command line"),
                        ("tests/", "tests"), ("bench/", "benchmarks"), ("python/", "Python extension")):
        if name in output:
            return group
    return "linking and the rest"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("stages", type=Path)
    parser.add_argument("--ninja", type=Path, default=Path("build/.ninja_log"))
    parser.add_argument("--top", type=int, default=10, help="slowest compilations to list")
    arguments = parser.parse_args()

    print("stage                          seconds   processor")
    stages = [line.split("\t") for line in arguments.stages.read_text().splitlines()]
    stages = [(name, float(start), float(end), float(used)) for name, start, end, used in stages]
    for name, start, end, used in stages:
        print(f"  {name:<28} {end - start:7.1f}   {used:9.1f}")
    # Stages may run in parallel.
    total = max(end for _, _, end, _ in stages) - min(start for _, start, _, _ in stages)
    print(f"  {'all':<28} {total:7.1f}   {sum(used for *_, used in stages):9.1f}")

    steps = compiled(arguments.ninja)
    groups = defaultdict(lambda: [0, 0.0])
    for output, seconds in steps.items():
        groups[group_of(output)][0] += 1
        groups[group_of(output)][1] += seconds
    print("compiled (seconds of one compiler, several run at once)")
    for name, (count, seconds) in sorted(groups.items(), key=lambda item: -item[1][1]):
        print(f"  {name:<28} {seconds:7.1f}   {count} files")
    for output, seconds in sorted(steps.items(), key=lambda item: -item[1])[: arguments.top]:
        print(f"    {seconds:6.1f}  {output}")


if __name__ == "__main__":
    main()
