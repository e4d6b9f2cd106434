#!/usr/bin/env python3
"""Alternates the benchmarks of two builds and reports which timings of the second build are slower, and by how much.

usage: tools/bench_turns.py OLD/bin NEW/bin [--rounds 6] [--places 1] [--core 0] [--limit 1.02] [PROGRAM[:ARGUMENT...] ...]

Every program runs in the order old, new, new, old, ... pinned to one core. A timing is a field ns..., us... or ms... in a
line of JSON. The fields before the first timing in the line are its name. If the new build's lines have more fields than the
old build's, the first line with all of the old build's fields is used. The ratio, new over old, is the median over the
rounds; both builds of a round run under nearly the same conditions. A program is repeated, for up to --rounds further
rounds, while a ratio is above the limit. Exit status 1 if one stays above it.

A kernel about as large as the processor's first-level instruction cache, such as ABA, gets up to 5 % slower or faster from
its address alone (docs/decisions/0005-kernels-from-one-list.md). With --places N, both builds are linked N times with
increasing padding before the code, and each round runs another of these, so that the median also covers addresses.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = ["aba_bench:--models", "kkt_bench:--models", "contact_bench", "particles_bench:--seconds=0.3"]
TIME = re.compile(r"^(aba_)?(ns|us|ms)(_(?!median|per_row)\w+)?$")


def linkings(folder, name, places, scratch):
    """Paths of `places` linked copies of folder/name. In each copy the code starts 1,360 bytes later than in the one before."""
    if places == 1:
        return [folder / name]
    tree = folder.parent
    commands = subprocess.run(["ninja", "-C", tree, "-t", "commands", f"bin/{name}"], capture_output=True, text=True, check=True)
    link = commands.stdout.splitlines()[-1]
    assert f" -o bin/{name} " in link, link
    made = []
    for place in range(places):
        program = Path(tempfile.mkdtemp(dir=scratch)) / name
        padding = program.with_suffix(".s")
        padding.write_text(f'.text\n.skip {1360 * place + 16}\n.section .note.GNU-stack,"",@progbits\n')
        subprocess.run(link.replace(f" -o bin/{name} ", f" -o {program} ").replace("c++ ", f"c++ {padding} ", 1), shell=True, cwd=tree,
                       check=True)
        made.append(program)
    return made


def figures(path, arguments, core):
    """Timings of one run: {(fields before the first time, name of the time): time}."""
    command = ["taskset", "-c", str(core), path, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PEERS": "0"}, check=False)
    if run.returncode:
        sys.exit(f"{path}: exit status {run.returncode}\n{run.stderr}")
    found = {}
    for line in run.stdout.splitlines():
        fields = json.loads(line)
        times = [field for field in fields if TIME.match(field)]
        if times:
            names = list(fields)
            about = tuple((field, fields[field]) for field in names[:names.index(times[0])])
            for field in times:
                found[about, field] = fields[field]
    return found


class Comparison:
    """Timings of one program in both builds, by round."""

    def __init__(self, program, folders, places, core, scratch):
        name, *self.arguments = program.split(":")
        self.programs = [linkings(folder, name, places, scratch) for folder in folders]
        self.core = core
        self.rounds = []  # [(old timings, new timings)]

    def run(self, rounds):
        for _ in range(rounds):
            order = (0, 1) if len(self.rounds) % 2 == 0 else (1, 0)
            place = len(self.rounds) % len(self.programs[0])
            found = {which: figures(self.programs[which][place], self.arguments, self.core) for which in order}
            self.rounds.append((found[0], found[1]))

    def ratios(self):
        """[(new over old, name, old, new)], slowest first."""
        result = []
        for about, field in self.rounds[0][0]:
            for new_about, new_field in self.rounds[0][1]:
                if new_field == field and set(about) <= set(new_about):
                    pairs = [(old[about, field], new[new_about, new_field]) for old, new in self.rounds]
                    values = " ".join(str(value) for name, value in about if name not in ("engine", "isa"))
                    old, new = (statistics.median(times) for times in zip(*pairs))
                    result.append((statistics.median(n / o for o, n in pairs), f"{values} [{field}]", old, new))
                    break
        return sorted(result, reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("programs", nargs="*", default=PROGRAMS, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--places", type=int, default=1)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--limit", type=float, default=1.02)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        return compare(arguments, scratch)


def compare(arguments, scratch):
    slower = 0
    for program in arguments.programs or PROGRAMS:
        comparison = Comparison(program, (arguments.old.resolve(), arguments.new.resolve()), arguments.places, arguments.core, scratch)
        comparison.run(arguments.rounds)
        for _ in range(arguments.rounds):
            if comparison.ratios()[0][0] <= arguments.limit:
                break
            comparison.run(1)
        ratios = comparison.ratios()
        above = [entry for entry in ratios if entry[0] > arguments.limit]
        slower += len(above)
        middle = statistics.median(ratio for ratio, *_ in ratios)
        print(f"{program}: {len(ratios)} figures, {len(comparison.rounds)} rounds; new over old: median {middle:.3f}, "
              f"{ratios[-1][0]:.3f} to {ratios[0][0]:.3f}; above {arguments.limit:g}: {len(above)}", flush=True)
        for ratio, name, old, new in above or ratios[:3]:
            print(f"  {ratio:6.3f}  {old:12.5g} {new:12.5g}  {name}", flush=True)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
