"""tarsus' aba() against its peers, in one run on one core: Pinocchio (the `pin` wheel) and the prototype of ../shared/reference.

aba_bench writes the trees that it measures. Pinocchio uses the same trees, with its fastest joint types. The prototype has a humanoid,
a dog and hinge chains of the same sizes. The peers are compiled once into out/bench/peers/. A peer that is not
installed is skipped, with a message. The programs alternate until each one's two best rounds agree within 3 %.

JSON lines on standard output, a table on standard error. Set TARSUS_BENCH to the folder that holds aba_bench (default build/bin).
"""

import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARIES = pathlib.Path(os.environ.get("TARSUS_BENCH", ROOT / "build" / "bin"))
OUT = ROOT / "out" / "bench" / "peers"
PROTOTYPE = ROOT.parent / "shared" / "reference" / "prototype" / "aba_lanes.cpp"
MODELS = ["humanoid", "dog", "snake36", "snake72", "snake195", "hinges36", "hinges72", "hinges195"]
PROTOTYPE_NAMES = {"humanoid34": "humanoid", "dog": "dog", "snake36": "hinges36", "snake72": "hinges72", "snake195": "hinges195"}
ROUNDS, AGREE = 6, 1.03


def say(text):
    print(text, file=sys.stderr, flush=True)


def compile_peer(target, source, flags, libraries=()):
    """Path of the compiled program; None if it cannot be built. Compiles only if the source is newer than the program."""
    if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
        return target
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if not compiler:
        say(f"SKIPPED {target.name}: no compiler")
        return None
    say(f"-- compiling {target.name}")
    OUT.mkdir(parents=True, exist_ok=True)
    result = subprocess.run([compiler, *flags, str(source), "-o", str(target), *libraries], capture_output=True, text=True)
    if result.returncode:
        say(f"SKIPPED {target.name}: it does not compile here\n{result.stderr[:2000]}")
        return None
    return target


def pinocchio(build):
    prefix = pathlib.Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix"
    eigen = next((p for p in (prefix / "include" / "eigen3", pathlib.Path("/usr/include/eigen3")) if p.exists()), None)
    if not (prefix / "include" / "pinocchio").exists() or eigen is None:
        say("SKIPPED pinocchio: the `pin` wheel's headers or Eigen's are not here")
        return None
    # The wheel's CMake files require these definitions.
    flags = ["-std=c++17", "-O3", "-DNDEBUG", "-w", "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
             "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "-DBOOST_FUSION_INVOKE_MAX_ARITY=12", f"-I{prefix}/include", f"-I{eigen}"]
    if build == "wheel":
        flags.append("-DPEER_WHEEL")
    target = OUT / f"pinocchio_{build}"
    source = ROOT / "bench" / "peers" / "pinocchio_aba.cpp"
    return compile_peer(target, source, flags, [f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lpinocchio_default"])


def prototype(real, width):
    if not PROTOTYPE.exists():
        say("SKIPPED prototype: ../shared/reference/prototype is not here")
        return None
    clock = ROOT / "bench" / "peers" / "thread_clock.hpp"
    flags = ["-O3", "-march=native", "-mprefer-vector-width=512", "-w", "-include", str(clock), f"-DREAL={real}", f"-DW={width}"]
    return compile_peer(OUT / f"prototype_{real}_{width}", PROTOTYPE, flags)


def run(program, arguments=()):
    return subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def ours():
    rows = {}
    for line in run(BINARIES / "aba_bench", ["--models"]).splitlines():
        row = json.loads(line)
        rows[("tarsus", row["bench"], row["model"], row["scalar"], row["lanes"])] = row["ns"]
    return rows


def pinocchio_rows(program, build):
    rows = {}
    for line in run(program, [OUT / f"{m}.tree" for m in MODELS]).splitlines():
        row = json.loads(line)
        if row["bench"] != "aba":
            continue
        if not row["residual"] < 1e-6:
            raise SystemExit(f"pinocchio does not solve the tree: {line}")
        rows[(f"pinocchio {build} {row['convention']}", "aba", row["model"], "double", 1)] = row["ns"]
    return rows


def prototype_rows(program, real, width):
    rows = {}
    pattern = re.compile(r"^(\w+)\s+nv=.*ABA\s+[\d.]+ ns/call\s+([\d.]+) ns/env \| MABA\s+([\d.]+) ns/env")
    for line in run(program).splitlines():
        found = pattern.match(line)
        if found:
            for bench, value in (("aba", found[2]), ("maba_with_drive_terms", found[3])):
                rows[("prototype", bench, PROTOTYPE_NAMES[found[1]], real, width)] = float(value)
    return rows


def measure(programs):
    """Alternates the programs for ROUNDS rounds, or until the two best rounds of each time agree: {key: times [ns]}."""
    figures = {}
    for number in range(ROUNDS):
        for program in programs:
            for key, ns in program().items():
                figures.setdefault(key, []).append(ns)
        spread = max((sorted(v)[1] / sorted(v)[0] for v in figures.values()), default=1) if number else math.inf
        say(f"-- round {number + 1}: the two best rounds differ by " + (f"at most {100 * (spread - 1):.1f} %" if number else "?"))
        if spread < AGREE:
            break
    return figures


def report(figures):
    best = {key: min(v) for key, v in figures.items()}
    for (engine, bench, model, real, lanes), ns in best.items():
        values = sorted(figures[(engine, bench, model, real, lanes)])
        print(json.dumps({"bench": bench, "engine": engine, "model": model, "scalar": real, "lanes": lanes, "ns": ns, "rounds": len(values),
                          "second_best": values[1] if len(values) > 1 else None}))
    say(f"\nnanoseconds a world, aba(); in brackets how many times ours\n{'model':<11}{'scalar':<8}{'lanes':<6}{'tarsus':>9}  peers")
    for (engine, bench, model, real, lanes), ns in best.items():
        if engine != "tarsus" or bench != "aba":
            continue
        peers = [(e, b) for (e, k, m, r, w), b in best.items() if (k, m, r, w) == ("aba", model, real, lanes) and e != "tarsus"]
        say(f"{model:<11}{real:<8}x{lanes:<5}{ns:>9.1f}  " + "  ".join(f"{e} {b:.1f} ({b / ns:.2f})" for e, b in peers))
        for e, b in peers:
            print(json.dumps({"bench": "ratio", "peer": e, "model": model, "scalar": real, "lanes": lanes, "peer_over_ours": b / ns}))


def main():
    if not (BINARIES / "aba_bench").exists():
        raise SystemExit(f"{BINARIES / 'aba_bench'} is not built")
    OUT.mkdir(parents=True, exist_ok=True)
    run(BINARIES / "aba_bench", ["--trees", OUT])
    widths = {("double", 1), ("float", 1)} | {(r, w) for (_, _, _, r, w) in ours()}
    programs = [ours]
    for build in ("wheel", "headers"):
        if program := pinocchio(build):
            programs.append(lambda p=program, b=build: pinocchio_rows(p, b))
    for real, width in sorted(widths):
        if program := prototype(real, width):
            programs.append(lambda p=program, r=real, w=width: prototype_rows(p, r, w))
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    report(measure(programs))


if __name__ == "__main__":
    main()
