"""Constrained forward dynamics beside Pinocchio, in one run on one core: the humanoid with two to four 6-D constraints, a chain of 72
hinges with one at its tip.

aba_bench writes the trees, kkt_bench --models times ours, bench/peers/pinocchio_kkt.cpp theirs: aba, constraintDynamics (exact) and
constrainedABA (one round, and to 1e-12). Skipped, and said so, where the `pin` wheel's headers are not there.

usage: kkt_peers_bench.py [PREFIX]     PREFIX: cmeel.prefix of another Pinocchio than this Python's
JSON lines on standard output, a table on standard error.
"""

import json
import os
import pathlib
import sys
import sysconfig

from aba_peers_bench import BINARIES, OUT, ROOT, compile_peer, run, say

#: Tree and the links that are held, as kkt_bench holds them.
CASES = [("humanoid", (9, 12)), ("humanoid", (9, 12, 4)), ("humanoid", (9, 12, 4, 6)), ("hinges72", (71,))]


def peer(prefix):
    eigen = next((p for p in (prefix / "include" / "eigen3", pathlib.Path("/usr/include/eigen3")) if p.exists()), None)
    if not (prefix / "include" / "pinocchio").exists() or eigen is None:
        say("SKIPPED pinocchio: the `pin` wheel's headers or Eigen's are not here")
        return None
    flags = ["-std=c++17", "-O3", "-DNDEBUG", "-w", "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
             "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "-DBOOST_FUSION_INVOKE_MAX_ARITY=12", f"-I{prefix}/include", f"-I{eigen}"]
    return compile_peer(OUT / "pinocchio_kkt", ROOT / "bench" / "peers" / "pinocchio_kkt.cpp", flags,
                        [f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lpinocchio_default"])


def main():
    prefix = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix"
    OUT.mkdir(parents=True, exist_ok=True)
    run(BINARIES / "aba_bench", ["--trees", OUT])
    program = peer(prefix)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    best = {}
    for _ in range(3):
        lines = run(BINARIES / "kkt_bench", ["--models"])
        if program:
            lines += run(program, [a for name, links in CASES for a in (OUT / f"{name}.tree", ",".join(map(str, links)))])
        for line in lines.splitlines():
            row = json.loads(line)
            key = (row["engine"], row["bench"], row["model"], row["rows"], row.get("scalar", "double"), row.get("lanes", 1))
            if key not in best or row["ns"] < best[key]["ns"]:
                best[key] = row
    for row in best.values():
        print(json.dumps(row))
    say(f"\n{'model':<10}{'rows':>5}{'tarsus':>10}  Pinocchio, nanoseconds (times ours; error)")
    for (engine, _, model, rows, scalar, lanes), row in best.items():
        if engine != "tarsus" or (scalar, lanes) != ("double", 1):
            continue
        peers = [(k[1], r) for k, r in best.items() if k[0] == "pinocchio" and (k[2], k[3]) == (model, rows)]
        say(f"{model:<10}{rows:>5}{row['ns']:>10.0f}  " + "; ".join(f"{n} {r['ns']:.0f} ({r['ns'] / row['ns']:.2f}; {r['error']:.0e})" for n, r in peers))


if __name__ == "__main__":
    main()
