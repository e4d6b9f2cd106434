#!/usr/bin/env python3
"""Boxes of rigid water against GROMACS, mixed and double precision, on one core: processor time of a step; the programs alternate.

usage: python bench/md_peers_bench.py build/bin/tarsus [--waters 216 1728] [--rounds 3] [--core 0] [--threads 2]

Needs GROMACS' programs gmx and gmx_d (Debian: apt-get install gromacs). Prints a line of JSON for each box.

Both programs compute the same physics: SPC/E, cutoff 0.85 nm for every pair of sites, Coulomb by reaction field with an infinite
dielectric outside, Lennard-Jones energy-shifted, 2 fs, no thermostat, energies every 100 steps, the same start (216
waters equilibrated at 300 K, copied). GROMACS runs with its usual settings: leap-frog, SETTLE (exact to rounding), and a pair list
whose buffer allows a drift of 0.005 kJ/mol/ps per atom (its default). tarsus: velocity Verlet with both constraint stages at 1e-12, and
a pair list that misses no pair. A time is the difference in processor time between a run and one twice as long, the minimum over all
rounds, so that start-up and other programs do not count. --threads adds the wall time of tarsus on that number of cores, alternating with one.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOPOLOGY = """[ defaults ]
1 1 no 1.0 1.0
[ atomtypes ]
; c6 and c12 of epsilon 0.1553 kcal/mol, sigma 0.3166 nm
OW 8 15.9994 0.0 A 2.617511425577986e-03 2.636052462078924e-06
HW 1 1.008   0.0 A 0.0 0.0
[ moleculetype ]
SOL 2
[ atoms ]
1 OW 1 SOL OW  1 -0.8476 15.9994
2 HW 1 SOL HW1 1  0.4238 1.008
3 HW 1 SOL HW2 1  0.4238 1.008
[ settles ]
1 1 0.1 0.1632980861840235
[ exclusions ]
1 2 3
2 1 3
3 1 2
[ system ]
water
[ molecules ]
SOL {waters}
"""
RUN = """integrator = md
nsteps = {steps}
dt = 0.002
cutoff-scheme = Verlet
coulombtype = reaction-field
rcoulomb = 0.85
epsilon-rf = 0
vdwtype = cut-off
vdw-modifier = potential-shift
rvdw = 0.85
nstcalcenergy = 100
nstenergy = 100
nstlog = 1000000
"""


def run(command, **options):
    """Processor time and wall time [s] of a command that must succeed, and its output."""
    begin = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, **options)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    if status:
        sys.exit(f"{command[0]}: failed\n{output}")
    return usage.ru_utime + usage.ru_stime, wall, output


def read_sys(path):
    """Box length, [(mass, x, y, z, vx, vy, vz)] in nm and ps, and [(i, j, length)] of a .sys file in A and fs."""
    box, atoms, bonds, block = None, [], [], None
    for line in path.read_text().splitlines():
        fields = line.split("#")[0].split()
        if not fields:
            continue
        if fields[0] == "box":
            box = float(fields[1])
        elif fields[0] in ("atoms", "constraints"):
            block = fields[0]
        elif block == "atoms" and len(fields) == 8:
            atoms.append([float(field) for field in fields[1:]])
        elif block == "constraints":
            bonds.append((int(fields[0]), int(fields[1]), float(fields[2])))
    return box, atoms, bonds


def copies(box, atoms, bonds, times):
    """A box of times³ copies of this box."""
    many, links = [], []
    for cell in range(times**3):
        shift = [box * (cell // times**c % times) for c in range(3)]
        links += [(i + len(many), j + len(many), length) for i, j, length in bonds]
        many += [[m, x + shift[0], y + shift[1], z + shift[2], *v] for m, x, y, z, *v in atoms]
    return box * times, many, links


def write_sys(path, box, atoms, bonds):
    with open(path, "w") as out:
        print(f"# units nm, ps\nnatoms {len(atoms)}\nnconstraints {len(bonds)}\nbox {box!r} {box!r} {box!r}\natoms", file=out)
        for index, atom in enumerate(atoms):
            print(index, *map(repr, atom), file=out)
        print("constraints", file=out)
        for i, j, length in bonds:
            print(i, j, repr(length), file=out)


def write_gro(path, box, atoms):
    with open(path, "w") as out:
        print(f"water\n{len(atoms)}", file=out)
        for index, (_, *state) in enumerate(atoms):
            name = ("OW", "HW1", "HW2")[index % 3]
            numbers = "".join(f"{x:16.10f}" for x in state[:3]) + "".join(f"{x:16.11f}" for x in state[3:])
            print(f"{(index // 3 + 1) % 100000:5d}SOL  {name:>5}{(index + 1) % 100000:5d}{numbers}", file=out)
        print(f"{box:.12f} {box:.12f} {box:.12f}", file=out)


class Gromacs:
    def __init__(self, program, folder, box, atoms):
        self.program, self.folder = program, folder
        write_gro(folder / "start.gro", box, atoms)
        (folder / "water.top").write_text(TOPOLOGY.format(waters=len(atoms) // 3))
        self.made = set()

    def seconds(self, steps, core):
        name = f"{self.program}_{steps}"
        if steps not in self.made:
            (self.folder / f"{name}.mdp").write_text(RUN.format(steps=steps))
            run([self.program, "grompp", "-f", f"{name}.mdp", "-c", "start.gro", "-p", "water.top", "-o", f"{name}.tpr",
                 "-po", f"{name}.out.mdp", "-maxwarn", "5"], cwd=self.folder)
            self.made.add(steps)
        return run(["taskset", "-c", core, self.program, "mdrun", "-s", f"{name}.tpr", "-deffnm", name, "-ntmpi", 1, "-ntomp", 1, "-pin", "off",
                    "-cpt", -1], cwd=self.folder, env={**os.environ, "GMX_MAXBACKUP": "-1"})[:2]


class Tarsus:
    def __init__(self, program, folder, box, atoms, bonds):
        self.program, self.folder = program, folder
        write_sys(folder / "start.sys", box, atoms, bonds)

    def seconds(self, steps, core, threads=1):
        more = ["--threads", threads] if threads > 1 else []
        return run(["taskset", "-c", core, self.program, "md", "start.sys", "--forces", "spce-reaction-field", "--steps", steps,
                    "--every", 100, "--json", *more], cwd=self.folder)[:2]


def best(sides, steps, rounds, which):
    """{name: minimum time of a step [µs]}, from alternating runs of `steps` and of twice as many steps."""
    least = {}
    for number in range(rounds):
        names = list(sides)
        for name in names if number % 2 == 0 else reversed(names):
            short, long = sides[name](steps)[which], sides[name](2 * steps)[which]
            least[name] = min(least.get(name, 1e300), 1e6 * (long - short) / steps)
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tarsus", type=Path)
    parser.add_argument("--waters", type=int, nargs="+", default=[216, 1728])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a run, about")
    given = parser.parse_args()
    program = given.tarsus.resolve()
    for peer in ("gmx", "gmx_d"):
        if not shutil.which(peer):
            sys.exit(f"{peer} is not installed (Debian: apt-get install gromacs)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run([program, "md", "water216", "--units", "nm_ps", "--forces", "spce-reaction-field", "--steps", 5000, "--thermostat", 300,
             "--final", "water216.sys", "--quiet"], cwd=folder)
        small = read_sys(folder / "water216.sys")
        for waters in given.waters:
            times = round((waters / 216) ** (1 / 3))
            if 216 * times**3 != waters:
                sys.exit(f"--waters {waters}: expected 216 times a cube")
            box, atoms, bonds = copies(*small, times)
            where = {side: folder / f"{waters}_{side}" for side in ("tarsus", "gmx", "gmx_d")}
            for path in where.values():
                path.mkdir()
            ours = Tarsus(program, where["tarsus"], box, atoms, bonds)
            peers = {side: Gromacs(side, where[side], box, atoms) for side in ("gmx", "gmx_d")}
            steps = max(100, int(given.seconds * 1e6 / (2.0 * waters)))
            sides = {"tarsus": lambda n: ours.seconds(n, given.core)}
            for side, peer in peers.items():
                sides[side] = lambda n, peer=peer: peer.seconds(n, given.core)
            least = best(sides, steps, given.rounds, 0)
            row = {"bench": "water_beside_gromacs", "waters": waters, "us_tarsus": round(least["tarsus"], 1),
                   "us_gromacs_mixed": round(least["gmx"], 1), "us_gromacs_double": round(least["gmx_d"], 1),
                   "rate_over_mixed": round(least["gmx"] / least["tarsus"], 3),
                   "rate_over_double": round(least["gmx_d"] / least["tarsus"], 3)}
            if given.threads > 1:
                cores = f"0-{given.threads - 1}"
                walls = best({n: lambda k, n=n: ours.seconds(k, cores, n) for n in (1, given.threads)}, steps, given.rounds, 1)
                row["threads"] = given.threads
                row["us_wall"] = round(walls[1], 1)
                row["us_wall_threads"] = round(walls[given.threads], 1)
                row["speedup"] = round(walls[1] / walls[given.threads], 2)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
