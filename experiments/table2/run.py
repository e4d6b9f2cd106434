"""Table 2: frames per second of ten motions under every method of stable PD; ratios first."""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import common
import paper


def frames(context, scalar="double"):
    """{(model, motion): {solver: nanoseconds a frame}}; "none" is the same frame with ABA alone. Nan: the character was lost."""
    times = {}
    for row in context.bench("frames"):
        if row["scalar"] == scalar:
            if not row["finite"]:
                if scalar == "double":
                    raise SystemExit(f"{row['model']} {row['motion']}: {row['solver']} diverged")
                row["ns"] = math.nan
            times.setdefault((row["model"], row["motion"]), {})[row["solver"]] = row["ns"]
    return times


def rate(ns):
    return f"{1e9 / ns:,.0f}"


def absolute(times):
    rows = []
    for key, ns in times.items():
        rows.append([" ".join(key), *(rate(ns[s]) for s in paper.COLUMNS), rate(ns["maba_standalone"]), rate(ns["sparse_direct"]),
                     rate(ns["dense_direct"]), *(f"{x:,}" for x in paper.FRAMES[key])])
    head = ["frames/s", "DF", "PCG", "SF", "MABA", "MABA standalone", "bias + CRBA + sparse", "bias + CRBA + dense", "paper DF",
            "paper PCG", "paper SF", "paper MABA"]
    return common.table(head, rows)


def in_float(ns):
    """DF over MABA, or who was lost."""
    lost = [paper.LABELS[s] for s in paper.COLUMNS if math.isnan(ns[s])]
    return f"{', '.join(lost)} diverged" if lost else f"{ns['dense'] / ns['maba']:.2f}"


def ratios(double, single):
    rows = []
    for key, ns in double.items():
        theirs = paper.FRAMES[key]
        best = min(("sparse_direct", "dense_direct"), key=lambda s: ns[s])
        rows.append([" ".join(key), f"**{ns['dense'] / ns['maba']:.2f}**", f"{theirs[3] / theirs[0]:.2f}",
                     f"{ns['sparse'] / ns['maba']:.2f}", f"{theirs[3] / theirs[2]:.2f}", f"{ns['pcg'] / ns['maba']:.2f}",
                     f"{theirs[3] / theirs[1]:.2f}", f"{ns['maba_standalone'] / ns['maba']:.2f}", f"{ns[best] / ns['maba']:.2f}",
                     best.split("_")[0], in_float(single[key])])
    head = ["MABA is faster than", "DF", "paper", "SF", "paper", "PCG", "paper", "MABA standalone", "strongest baseline", "which is",
            "DF, both in float"]
    return common.table(head, rows)


def plot(double):
    fig, axes = common.figure(width=8)
    axis = axes[0][0]
    names, width = list(double), 0.38
    x = range(len(names))
    axis.bar([i - width / 2 for i in x], [double[n]["dense"] / double[n]["maba"] for n in names], width, color=common.COLOURS["maba"],
             label="tarsus (double, this run)")
    axis.bar([i + width / 2 for i in x], [paper.FRAMES[n][3] / paper.FRAMES[n][0] for n in names], width, color="#b0b7bf",
             label="Yin & Yin 2020, table 2")
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_xticks(list(x), [f"{m}\n{c}" for m, c in names], fontsize=8)
    axis.set_yscale("log")
    axis.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axis.set_ylabel("frames/s of MABA over frames/s of DF")
    axis.set_xlabel("model and motion")
    axis.legend()
    return common.save(fig, "table2_ratio", "Frame rate of MABA over that of DF, ten motions, beside the paper's")


def run(context):
    double, single = frames(context), frames(context, "float")
    means = {}
    for (model, _), ns in double.items():
        means.setdefault(model, []).append(ns["dense"] / ns["maba"])
    summary = ", ".join(f"{m} {sum(v) / len(v):.2f} (paper {p:.2f})" for (m, v), p in zip(means.items(), paper_means().values()))
    return f"""## Table 2: frames per second

A frame samples the clip, finds the acceleration under stable PD with the paper's gains, and integrates, on one core, in double,
**without ground contact**. Time steps are the paper's: 1/30 s, the dog's 1/240 s. DF, SF and PCG do what the
paper's do: solve for the acceleration, form the joint forces, hand them to ABA. The two columns "bias + CRBA" leave that second solve
out, as a simulator that factorises anyway would; the better of the two is the strongest baseline that we know.

MABA over DF, means over a model's motions: {summary}.
One reason why ours are larger: the rest of our frame is shorter, the paper's contains PhysX and its contacts.

{ratios(double, single)}
{plot(double)}
Absolute rates, which depend on the machine:

{absolute(double)}"""


def paper_means():
    means = {}
    for (model, _), (dense, _, _, maba) in paper.FRAMES.items():
        means.setdefault(model, []).append(maba / dense)
    return {m: sum(v) / len(v) for m, v in means.items()}


if __name__ == "__main__":
    common.main(run)
