"""Constrained forward dynamics against Pinocchio, in one run on one core: the humanoid with two to four 6-D constraints, and a chain of
72 hinges with one constraint at its tip.

aba_bench writes the trees. kkt_bench --models times tarsus, also in SIMD lanes. bench/peers/pinocchio_kkt.cpp times Pinocchio: aba,
constraintDynamics (exact) and constrainedABA (one iteration, and to 1e-12). Without the headers of the `pin` wheel Pinocchio is
skipped, with a message.

usage: kkt_peers_bench.py [PREFIX ...]     PREFIX: cmeel.prefix of a Pinocchio; default: this Python's own. All in one run.
Times are minima of ROUNDS rounds in which the programs alternate. JSON lines on standard output, a table on standard error. Set
TARSUS_BENCH to the folder that holds aba_bench and kkt_bench (default build/bin).
"""

import json
import os
import pathlib
import re
import sys
import sysconfig

from aba_peers_bench import BINARIES, OUT, ROOT, compile_peer, run, say

#: Tree, and the links that are constrained, as in kkt_bench.
CASES = [("humanoid", (9, 12)), ("humanoid", (9, 12, 4)), ("humanoid", (9, 12, 4, 6)), ("hinges72", (71,))]


ROUNDS = 3


def version_of(prefix):
    """Pinocchio's version from its headers; None without the headers."""
    config = prefix / "include" / "pinocchio" / "config.hpp"
    found = re.search(r'PINOCCHIO_VERSION\s+"?([\d.]+)', config.read_text()) if config.exists() else None
    return found[1] if found else None


def peer(prefix, version):
    eigen = next((p for p in (prefix / "include" / "eigen3", pathlib.Path("/usr/include/eigen3")) if p.exists()), None)
    if eigen is None:
        say("SKIPPED pinocchio: Eigen's headers are not here")
        return None
    # The wheel's CMake files require these definitions.
    flags = ["-std=c++17", "-O3", "-DNDEBUG", "-w", "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
             "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "-DBOOST_FUSION_INVOKE_MAX_ARITY=12", f"-I{prefix}/include", f"-I{eigen}"]
    return compile_peer(OUT / f"pinocchio_kkt_{version}", ROOT / "bench" / "peers" / "pinocchio_kkt.cpp", flags,
                        [f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lpinocchio_default"])


def peers(prefixes):
    """Programs by the engine's name."""
    programs = {}
    for prefix in prefixes:
        version = version_of(prefix)
        if version is None:
            say(f"SKIPPED pinocchio: no headers of it in {prefix}")
        elif program := peer(prefix, version):
            programs[f"pinocchio {version}"] = program
    return programs


def table(best):
    say(f"\n{'model':<10}{'rows':>5}{'tarsus':>9}   ns a world; in lanes with times the double world's rate; Pinocchio's with error, times ours")
    for (engine, _, model, rows, scalar, lanes), row in best.items():
        if engine != "tarsus" or (scalar, lanes) != ("double", 1):
            continue
        say(f"{model:<10}{rows:>5}{row['ns']:>9.0f}")
        packs = [r for (name, _, tree, count, _, width), r in best.items()
                 if (name, tree, count) == ("tarsus", model, rows) and width > 1]
        for r in packs:
            label = f"{r['scalar']} x {r['lanes']}"
            say(f"{'':<24}   {'in lanes':<17}{label:<28}{r['ns']:>9.0f}{row['ns'] / r['ns']:>8.2f} x")
            print(json.dumps({"bench": "lanes", "model": model, "rows": rows, "scalar": r["scalar"], "lanes": r["lanes"],
                              "world_over_lanes": row["ns"] / r["ns"], "residual": r["residual"]}))
        quickest = min([r["ns"] for r in packs], default=row["ns"])
        for (name, bench, tree, count, _, _), r in best.items():
            if name == "tarsus" or (tree, count) != (model, rows):
                continue
            say(f"{'':<24}   {name:<17}{bench:<28}{r['ns']:>9.0f}{r['error']:>9.0e}{r['ns'] / row['ns']:>8.2f} a world, "
                f"{r['ns'] / quickest:.1f} in lanes")
            print(json.dumps({"bench": "ratio", "peer": name, "call": bench, "model": model, "rows": rows, "error": r["error"],
                              "peer_over_ours": r["ns"] / row["ns"], "peer_over_lanes": r["ns"] / quickest}))


def main():
    own = pathlib.Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix"
    OUT.mkdir(parents=True, exist_ok=True)
    run(BINARIES / "aba_bench", ["--trees", OUT])
    programs = peers([pathlib.Path(p) for p in sys.argv[1:]] or [own])
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    best = {}
    cases = [a for name, links in CASES for a in (OUT / f"{name}.tree", ",".join(map(str, links)))]
    for _ in range(ROUNDS):
        output = {"tarsus": run(BINARIES / "kkt_bench", ["--models"])}
        for engine, program in programs.items():
            output[engine] = run(program, cases)
        for engine, lines in output.items():
            for row in map(json.loads, lines.splitlines()):
                row["engine"] = engine
                key = (engine, row["bench"], row["model"], row["rows"], row.get("scalar", "double"), row.get("lanes", 1))
                if key not in best or row["ns"] < best[key]["ns"]:
                    best[key] = row
    for row in best.values():
        print(json.dumps(row))
    table(best)


if __name__ == "__main__":
    main()
