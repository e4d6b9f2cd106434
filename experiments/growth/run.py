"""Cost against the number of degrees of freedom: chains and balanced trees, every method."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import common

SOLVERS = ("dense", "sparse", "pcg", "maba_standalone", "maba", "dense_direct", "sparse_direct")
FROM = 128  # exponents are fitted where the leading term has taken over


def series(rows, tree, solver):
    return [(r["nv"], r["ns"]) for r in rows if r["tree"] == tree and r["solver"] == solver]


def plot(rows, labels):
    fig, axes = common.figure(width=9, height=4, columns=2)
    for axis, tree in zip(axes[0], ("chain", "tree")):
        for solver in SOLVERS:
            points = series(rows, tree, solver)
            axis.plot([n for n, _ in points], [t / 1e3 for _, t in points], marker="o", markersize=3, linewidth=1.2,
                      color=common.COLOURS[solver], linestyle="--" if solver.endswith("direct") else "-", label=labels[solver])
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_title("chain (d = n)" if tree == "chain" else "balanced binary tree (d = log₂ n)")
        axis.set_xlabel("degrees of freedom n")
        axis.set_ylabel("time of one solve [µs]")
    axes[0][0].legend(fontsize=7)
    return common.save(fig, "growth", "Time of one solve against the number of degrees of freedom, for chains and balanced trees")


def fit(points):
    tail = [(n, t) for n, t in points if n >= FROM]
    return f"{common.slope(tail):.2f} (to {tail[-1][0]})" if len(tail) >= 3 else f"too few sizes (to {points[-1][0]})"


def last(points):
    """Exponent over the last doubling."""
    return f"{common.slope(points[-2:]):.2f}"


def run(context):
    rows = context.bench("growth")
    labels = {r["solver"]: r["label"] for r in rows}
    expected = {"dense": "3", "sparse": "3; 1 and a little", "pcg": "2, 1, and the growth of iterations", "maba_standalone": "1",
                "maba": "1", "dense_direct": "3", "sparse_direct": "3; 1 and a little"}
    fits = []
    for s in SOLVERS:
        chain, tree = series(rows, "chain", s), series(rows, "tree", s)
        fits.append([labels[s], fit(chain), last(chain), fit(tree), last(tree), expected[s]])
    ratios = []
    for n in (8, 32, 128, 512, 1024, 2048, 4096):
        line = [n]
        for tree in ("chain", "tree"):
            at = {s: dict(series(rows, tree, s)).get(n) for s in SOLVERS}
            best = min((s for s in ("sparse_direct", "dense_direct") if at[s]), key=lambda s: at[s], default=None)
            line += [f"{at['dense'] / at['maba']:.1f}" if at["dense"] else "–", f"{at[best] / at['maba']:.1f} ({best.split('_')[0]})" if best else "–"]
        ratios.append(line)
    worst = max((r["difference"] for r in rows if r["solver"] != "pcg"), default=0)
    return f"""## Cost against n

Hinges in a chain and in a balanced binary tree, 8 to 4,096 of them, the paper's gains, 1/30 s, one solve in double. Exponents of
n are fitted by least squares from n = {FROM} up; in brackets the largest n that was run (a method ends where its next call would take too
long; dense needs n² numbers). A dense factor's n³/3 runs at several times the speed of its other n² work, so its exponent reaches 3 from below. On a balanced tree SF costs n d² with d = log₂ n: barely more than linear, and there it is the baseline to beat.
All methods but PCG agree with MABA to {worst:.1g} of the largest acceleration.

{common.table(["method", "exponent, chain", "last doubling", "exponent, balanced tree", "last doubling", "expected"], fits)}
{plot(rows, labels)}
MABA is faster than the paper's DF, and than the strongest baseline (bias + CRBA + the better factor, no second solve), by:

{common.table(["n", "chain: DF", "chain: strongest", "tree: DF", "tree: strongest"], ratios)}"""


if __name__ == "__main__":
    common.main(run)
