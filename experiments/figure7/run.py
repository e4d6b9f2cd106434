"""Figure 7: learning curves with the dense factor and with MABA, from the runs of train.py."""

import csv
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import common

LABELS = {"dense": "DF", "maba": "MABA"}
NAMES = {"walk": "humanoid, walk", "run": "humanoid, run", "cartwheel": "humanoid, cartwheel", "spin-kick": "humanoid, spin-kick", "pace": "dog, pace"}
GOAL = 0.8


def read(file):
    """{task: {(drives, substeps): [run]}}, a run being {column: array}."""
    found = {}
    with open(file, encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            runs = found.setdefault(row["task"], {}).setdefault((row["drives"], int(row["substeps"])), {})
            run = runs.setdefault(int(row["seed"]), {})
            for key in ("samples", "seconds", "simulation_seconds", "normalized_return", "bad_worlds"):
                run.setdefault(key, []).append(float(row[key] or "nan"))
    return {task: {key: [{k: np.array(v) for k, v in run.items()} for run in runs.values()] for key, runs in sorted(kinds.items())}
            for task, kinds in found.items()}


def band(runs, axis, points=60):
    """x, mean and deviation of the returns over the runs, where all of them are."""
    x = np.linspace(max(r[axis][0] for r in runs), min(r[axis][-1] for r in runs), points)
    y = np.array([np.interp(x, r[axis][np.isfinite(r["normalized_return"])], r["normalized_return"][np.isfinite(r["normalized_return"])])
                  for r in runs])
    return x, y.mean(axis=0), y.std(axis=0)


def reached(run, axis):
    """Where a run's return first reaches GOAL; nan: nowhere."""
    there = np.flatnonzero(run["normalized_return"] >= GOAL)
    return run[axis][there[0]] if len(there) else np.nan


def spread(values, digits=2):
    """Mean ± deviation, with how many there are where some are not; of one value, that."""
    good = np.array([v for v in values if np.isfinite(v)])
    if not len(good):
        return "-"
    if len(values) == 1:
        return f"{good[0]:.{digits}f}"
    text = f"{good.mean():.{digits}f} ± {good.std():.{digits}f}"
    return text if len(good) == len(values) else f"{text} ({len(good)} of {len(values)})"


def panels(found):
    fig, axes = common.figure(7.2, 2.6 * len(found), columns=2, rows=len(found))
    for row, (task, kinds) in zip(axes, found.items()):
        for axes_of, axis, unit, label in zip(row, ("samples", "seconds"), (1e6, 60), ("million samples", "minutes of one core")):
            for (drives, substeps), runs in kinds.items():
                x, mean, deviation = band(runs, axis)
                line, = axes_of.plot(x / unit, mean, label=f"{LABELS[drives]}, 1/{30 * substeps} s", color=common.COLOURS[drives],
                                     linestyle={2: "-", 8: "--", 40: ":"}.get(substeps, "-."))
                axes_of.fill_between(x / unit, mean - deviation, mean + deviation, color=line.get_color(), alpha=0.15, linewidth=0)
            axes_of.set_xlabel(label)
            axes_of.set_ylim(0, 1)
        row[0].set_ylabel(f"{NAMES[task]}\nreturn / largest")
    axes[0][0].legend(fontsize=7)
    return common.save(fig, "figure7", "Return against samples and against wall-clock time for DF and MABA")


def figures(found):
    rows = []
    for task, kinds in found.items():
        for (drives, substeps), runs in kinds.items():
            rows.append([f"{NAMES[task]}: {LABELS[drives]}, 1/{30 * substeps} s", len(runs),
                         spread([reached(r, "samples") / 1e6 for r in runs]), spread([reached(r, "seconds") / 60 for r in runs], 1),
                         spread([np.nanmean(r["normalized_return"][-3:]) for r in runs]), f"{max(r['samples'][-1] for r in runs) / 1e6:.2f}",
                         f"{100 * np.mean([r['simulation_seconds'][-1] / r['seconds'][-1] for r in runs]):.0f} %",
                         f"{np.mean([r['bad_worlds'][-1] for r in runs]):.1f}"])
    return common.table(["skill: drives, step", "runs", f"million samples to {GOAL}", f"minutes to {GOAL}", "return at the end",
                         "million samples", "simulation's share", "worlds gone bad"], rows)


def verdict(found):
    """One sentence for each pair of methods at one step that the runs support."""
    said = []
    for task, kinds in found.items():
        for substeps in sorted({s for _, s in kinds}):
            pair = [kinds.get((drives, substeps)) for drives in ("dense", "maba")]
            if None in pair or min(map(len, pair)) < 2:
                continue
            last = [np.array([np.nanmean(r["normalized_return"][-3:]) for r in runs]) for runs in pair]
            # Welch's: two standard errors of the difference.
            error = np.sqrt(sum(v.var(ddof=1) / len(v) for v in last))
            difference = last[1].mean() - last[0].mean()
            samples = min(r["samples"][-1] for runs in pair for r in runs)
            seconds = [np.mean([np.interp(samples, r["samples"], r["seconds"]) for r in runs]) for runs in pair]
            ends = "alike, within two standard errors" if abs(difference) < 2 * error else \
                f"{'higher' if difference > 0 else 'lower'} with MABA by {abs(difference):.2f} ± {error:.2f}"
            said.append(f"- {NAMES[task]}, 1/{30 * substeps} s: DF takes {seconds[0] / seconds[1]:.2f} × MABA's time for the same samples; "
                        f"the return at the end is {ends}.")
    return "\n".join(said)


def handed_over(context):
    """The walk's policy, which learned with MABA at 1/60 s, under both methods at smaller and smaller steps."""
    import tarsus.learn

    policy = tarsus.learn.Policy.load(tarsus.MODELS / "policies" / "humanoid_walk.npz")
    model = tarsus.Model.load(tarsus.MODELS / "humanoid.xml")
    inertia = 1 / np.diag(np.linalg.inv(tarsus.crba(model, tarsus.Data(model), np.array(model.qpos0))))  # of each DoF, the others free
    joints = {joint.name: joint.qvel for joint in model.joints}
    rows = []
    for substeps in (2, 8, 40) if context.quick else (2, 8, 40, 160, 400):
        task = tarsus.tasks.make("HumanoidWalk", relative_action=True, substeps=substeps, time_limit=10.0)
        found = [tarsus.learn.evaluate(task, policy, worlds=8, drives=drives) for drives in ("dense", "maba")]
        damping = np.array(task.drives.kd) * task.control_dt / substeps
        shares = [np.mean((inertia / (inertia + damping))[joints[f"left_{name}"]]) for name in ("hip", "knee", "ankle")]
        rows.append([f"1/{30 * substeps} s"] + [f"{share:.3f}" for share in shares] + [f"{r[key]:.2f}" for r in found for key in ("normalized_return", "episode_seconds")])
    return common.table(["step", "I/(I + Δt k_d): hip", "knee", "ankle", "DF: return", "seconds to a fall, of 10", "MABA: return", "seconds to a fall, of 10"], rows)


def run(context):
    file = common.OUT / "figure7_quick.csv" if context.quick else pathlib.Path(__file__).resolve().parent / "curves.csv"
    if context.quick and (context.fresh or not file.exists()):
        import shutil

        from figure7 import train

        shutil.rmtree(common.OUT / "figure7_quick", ignore_errors=True)
        file.unlink(missing_ok=True)
        train.run_all(train.plan_of([], 1, [], True), 2, True, file)
    found = read(file)
    return f"""## Figure 7: learning with DF and with MABA

`make figure7` trains them (most of an hour a skill, four for the acrobatic ones; it resumes where it was interrupted); the curves of what has run are in
[figure7/curves.csv](figure7/curves.csv). The spin-kick is DeepMimic's clip, the others are built in. PPO of [`python -m tarsus.learn`](../docs/learning.md#training), one core a run. DF is stable PD as a
controller outside the simulator has it, Eigen's dense factor one world after the other, cut off at the force limits; MABA is in the step, worlds in lanes.
Contacts and everything else are the same. Return: of the episodes that ended, the sum of rewards over the largest possible. Bands are a
standard deviation of the seeds either way; the table says how many there are. Time is the processor's, for the machine had other work, too.

{panels(found)}
{figures(found)}
{verdict(found)}

The paper finds that MABA learns faster by the clock, to better returns, and with fewer samples, and says that its stability is why. Here the difference is larger, and
another reason is seen. DF is asked before contacts are: it predicts the acceleration that the joints would have if nothing were touched, and takes
Δt k_d times that off its force. A leg that carries the body hardly moves, but a free one of its inertia I would, and so DF pulls with about I/(I + Δt k_d) of the force
that is asked for; MABA is solved with the contacts. The difference goes away with the step, slowly. That share for a leg of the humanoid in the air, and the
policy that walks with MABA, under both:

{handed_over(context)}
DeepMimic's own simulation has steps of 1/1200 s. A policy can learn to ask for more force than DF gives; within these samples ours did not.
"""


if __name__ == "__main__":
    common.main(run)
