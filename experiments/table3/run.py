"""Table 3: share of the simulation's time that stable PD takes."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import common
import paper
from table2.run import frames


def run(context):
    shares = {}
    for (model, _), ns in frames(context).items():
        for solver in ("dense", "sparse", "maba", "maba_standalone", "sparse_direct", "dense_direct"):
            shares.setdefault(model, {}).setdefault(solver, []).append(100 * (1 - ns["none"] / ns[solver]))
    mean = {m: {s: sum(v) / len(v) for s, v in row.items()} for m, row in shares.items()}
    rows = [[m, *(f"{row[s]:.1f}" for s in ("dense", "sparse", "maba")), *paper.SHARE[m], f"{row['maba_standalone']:.1f}"]
            for m, row in mean.items()]
    return ("## Table 3: share of the time that stable PD takes\n\nPer cent of a frame, mean over a model's motions. What stable PD costs is "
            "the frame less the same frame with ABA alone (no drives, the clip still sampled). "
            "**Without ground contact**, so the rest of our frame is smaller than the paper's and every share larger.\n\n" +
            common.table(["model", "DF %", "SF %", "MABA %", "paper DF %", "paper SF %", "paper MABA %", "MABA standalone %"], rows))


if __name__ == "__main__":
    common.main(run)
