"""Figures 5 and 6: end effector to root, simulated less reference, over time, by step and method."""

import common

RATES = (30, 60, 120, 300, 600)


def panels(rows, model, name, alt):
    fig, axes = common.figure(width=9, height=6, columns=2, rows=2)
    colours = dict(zip(RATES, ("#c0392b", "#e08e0b", "#2e8b57", "#1f6fb2", "#8e44ad")))
    for i, scalar in enumerate(("double", "float")):
        for j, solver in enumerate(("dense", "maba")):
            axis = axes[i][j]
            for row in rows:
                if (row["model"], row["scalar"], row["solver"]) != (model, scalar, solver):
                    continue
                label = f"1/{row['rate']:.0f} s" + (" (diverged)" if row["diverged_at"] >= 0 else "")
                axis.plot(row["time"], [1000 * e for e in row["error"]], color=colours[row["rate"]], linewidth=1, label=label)
            axis.set_yscale("log")
            axis.set_title(f"{'DF' if solver == 'dense' else 'MABA'}, {scalar}")
            axis.set_xlabel("time [s]")
            axis.set_ylabel("error [mm]")
    fig.legend(*axes[0][0].get_legend_handles_labels(), title="step", loc="outside lower center", ncols=5)
    top = max(a.get_ylim()[1] for row in axes for a in row)
    bottom = max(1e-4, min(a.get_ylim()[0] for row in axes for a in row))
    for row in axes:
        for axis in row:
            axis.set_ylim(bottom, top)
    return common.save(fig, name, alt)


def errors(rows, model):
    """{(rate, solver, scalar): row} of one model."""
    return {(r["rate"], r["solver"], r["scalar"]): r for r in rows if r["model"] == model}


def table(rows, model):
    found = errors(rows, model)
    out = []
    for rate in RATES:
        line = [f"1/{rate} s"]
        for scalar in ("double", "float"):
            for solver in ("dense", "maba"):
                row = found[rate, solver, scalar]
                line.append(f"diverged at {row['diverged_at']:.2f} s" if row["diverged_at"] >= 0 else
                            f"{1000 * row['mean']:.3g} / {1000 * row['max']:.3g}")
        dense, maba = found[rate, "dense", "float"], found[rate, "maba", "float"]
        line.append("" if max(dense["diverged_at"], maba["diverged_at"]) >= 0 else f"{dense['mean'] / maba['mean']:.4f}")
        out.append(line)
    return common.table(["step", "DF, double", "MABA, double", "DF, float", "MABA, float", "DF / MABA, float"], out)


def verdict(rows, model):
    """What the run says about divergence, in words."""
    gone = [f"{'DF' if s == 'dense' else 'MABA'} in {k} at 1/{r} s" for (r, s, k), row in errors(rows, model).items() if row["diverged_at"] >= 0]
    return ("Diverged: " + ", ".join(gone) + ".") if gone else "Nothing diverged: neither DF nor MABA, in double or in float, at any of these steps."
