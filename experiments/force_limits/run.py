"""Force limits: iterations and cost over gains and limits, fidelity, and MuJoCo's implicit servos in the same experiment."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import common
from engines.run import mujoco_model

GAINS = [1e2, 1e3, 1e4, 1e5, 1e6]
LIMITS = [1.0, 10.0, 100.0, 1000.0, 10000.0]
BLOWN_UP = 1000.0  # joint speed [rad/s]; the drives' own top speed in this experiment is 10 rad/s
MUJOCO_HUMANOID = common.ROOT.parent / "shared" / "data" / "mujoco" / "model" / "humanoid" / "humanoid.xml"


# -- MuJoCo in the same experiment ---------------------------------------------------------------------------------------

def random_controls(mujoco, model, rng):
    """Random targets for all servos: hinges anywhere in ±1 rad, balls a rotation vector of random direction and length up to 1."""
    controls, actuator = np.zeros(model.nu), 0
    while actuator < model.nu:
        joint = model.actuator_trnid[actuator, 0]
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_BALL:
            direction = rng.normal(size=3)
            controls[actuator:actuator + 3] = direction / np.linalg.norm(direction) * rng.uniform(0, 1)
            actuator += 3
        else:
            controls[actuator] = rng.uniform(-1, 1)
            actuator += 1
    return controls


def blows_up(mujoco, model, seconds, seed):
    """Time at which MuJoCo warns of a bad state or a joint turns faster than BLOWN_UP; None if neither happens."""
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    free = [a for j, a in enumerate(model.jnt_dofadr) if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE]
    joints = np.setdiff1d(np.arange(model.nv), [a + k for a in free for k in range(3)])
    bad = [mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC]
    for step in range(round(seconds * 60)):
        if step % 2 == 0:
            data.ctrl[:] = random_controls(mujoco, model, rng)
        mujoco.mj_step(model, data)
        if any(data.warning[int(b)].number for b in bad) or not np.max(np.abs(data.qvel[joints])) < BLOWN_UP:
            return (step + 1) / 60
    return None


def mujoco_grid(mujoco, context):
    """{(model, integrator): fraction of runs that blew up [gain][limit]}."""
    seeds, seconds = (1, 5) if context.quick else (3, 10)
    grids = {}
    integrators = [i for i in ("mjINT_IMPLICITFAST", "mjINT_DISCRETE") if hasattr(mujoco.mjtIntegrator, i)]
    for name in ("humanoid", "dog", "snake36"):
        for integrator in integrators:
            grid = np.zeros((len(GAINS), len(LIMITS)))
            for i, kp in enumerate(GAINS):
                for j, limit in enumerate(LIMITS):
                    model = mujoco_model(mujoco, common.ROOT / "models" / f"{name}.xml", integrator, kp=kp, kd=kp / 10, limit=limit)
                    grid[i, j] = np.mean([blows_up(mujoco, model, seconds, s) is not None for s in range(seeds)])
            grids[name, integrator[len("mjINT_"):].lower()] = grid
    return grids


def their_humanoid(mujoco, context):
    """Their own humanoid and ours, kp 300, 200 N m, ten seeds, by damping and integrator: runs that blew up."""
    files = {"our humanoid": common.ROOT / "models" / "humanoid.xml"}
    if MUJOCO_HUMANOID.exists():
        files["MuJoCo's humanoid"] = MUJOCO_HUMANOID
    seeds, rows = (3 if context.quick else 10), []
    for label, file in files.items():
        for integrator in ("mjINT_IMPLICITFAST", "mjINT_IMPLICIT", "mjINT_DISCRETE"):
            if not hasattr(mujoco.mjtIntegrator, integrator):
                continue
            line = [label, integrator[len("mjINT_"):].lower()]
            for kd in (0.0, 3.0, 30.0):
                for limit in (200.0, None):
                    model = mujoco_model(mujoco, file, integrator, kp=300.0, kd=kd, limit=limit)
                    times = [blows_up(mujoco, model, 30 if not context.quick else 10, s) for s in range(seeds)]
                    lost = [t for t in times if t is not None]
                    line.append(f"{len(lost)} of {seeds}" + (f", first after {min(lost):.2f} s" if lost else ""))
            rows.append(line)
    head = ["model", "integrator"] + [f"kd {kd}, {'200 N m' if limited else 'no limit'}" for kd in (0, 3, 30) for limited in (True, False)]
    return common.table(head, rows)


# -- plots and tables ----------------------------------------------------------------------------------------------------

def heat(axis, values, title, label, fmt, **style):
    image = axis.imshow(values, origin="lower", aspect="auto", **style)
    axis.grid(False)
    axis.set_xticks(range(len(LIMITS)), [f"{x:g}" for x in LIMITS])
    axis.set_yticks(range(len(GAINS)), [f"$10^{{{round(np.log10(k))}}}$" for k in GAINS])
    axis.set_xlabel("force limit [N m]")
    axis.set_ylabel("kp [N m/rad]")
    axis.set_title(title, fontsize=9)
    middle = (image.norm.vmin + image.norm.vmax) / 2
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            axis.text(j, i, fmt.format(values[i, j]), ha="center", va="center", fontsize=8, color="white" if values[i, j] < middle else "black")
    axis.figure.colorbar(image, ax=axis, label=label)


def grids_of(rows, field):
    grids = {}
    for r in rows:
        grid = grids.setdefault(r["model"], np.full((len(GAINS), len(LIMITS)), np.nan))
        grid[GAINS.index(r["kp"]), LIMITS.index(r["limit"])] = r[field]
    return grids


def plot_cost(rows):
    fig, axes = common.figure(width=11, height=6, columns=3, rows=2)
    for k, (field, label) in enumerate((("iterations", "mean iterations a step"), ("ratio", "time over unlimited MABA"))):
        for axis, (model, grid) in zip(axes[k], grids_of(rows, field).items()):
            heat(axis, grid, model, label, "{:.1f}", cmap="viridis", vmin=1)
    return common.save(fig, "force_limits_cost", "Mean iterations and cost of the limited solve over gains and limits, three models")


def plot_blow_ups(ours, grids):
    fig, axes = common.figure(width=11, height=3 * (1 + len({i for _, i in grids})), columns=3, rows=1 + len({i for _, i in grids}))
    for axis, (model, grid) in zip(axes[0], ours.items()):
        heat(axis, grid, f"tarsus: {model}", "runs that blew up", "{:.0%}", cmap="magma", vmin=0, vmax=1)
    for k, integrator in enumerate(sorted({i for _, i in grids})):
        for axis, model in zip(axes[k + 1], ours):
            heat(axis, grids[model, integrator], f"MuJoCo {integrator}: {model}", "runs that blew up", "{:.0%}", cmap="magma", vmin=0, vmax=1)
    return common.save(fig, "force_limits_blow_ups", "Share of runs that blew up, over gains and limits, tarsus and MuJoCo")


LAWS = {"implicit_clamp": "implicit clamp (ours)", "clamp_afterwards": "stable PD, clamped afterwards", "explicit_clamp": "explicit PD, clamped"}


def fidelity(rows):
    rates = sorted({r["rate"] for r in rows})
    lines = []
    for model in ("humanoid", "dog", "snake36"):
        for kp in sorted({r["kp"] for r in rows}):
            for limit in sorted({r["limit"] for r in rows}):
                for law, label in LAWS.items():
                    found = {r["rate"]: r for r in rows if (r["model"], r["kp"], r["limit"], r["law"]) == (model, kp, limit, law)}
                    cell = [f"lost at {r['lost_at']:.2f} s" if r["lost_at"] >= 0 else f"{57.29578 * r['rms_rad']:.3g}" for r in (found[x] for x in rates)]
                    energy = found[rates[0]]["kinetic"]
                    lines.append([f"{model}, kp {kp:g}", "none" if limit > 1e8 else f"{limit:g}", label, *cell, f"{energy:.2f}" if energy is not None else "–"])
    head = ["model", "limit [N m]", "law", *(f"1/{r} s [°]" for r in rates), "kinetic energy at 1/60 s over the reference's"]
    return common.table(head, lines)


def plot_fidelity(rows):
    fig, axes = common.figure(width=10, height=4.2, columns=3)
    colours = {10: "#c0392b", 50: "#e08e0b", 200: "#2e8b57", 1e9: "#1f6fb2"}
    for axis, model in zip(axes[0], ("humanoid", "dog", "snake36")):
        for limit, colour in colours.items():
            for law, style in (("implicit_clamp", "-o"), ("clamp_afterwards", "--x")):
                points = [(r["rate"], 57.29578 * r["rms_rad"]) for r in rows
                          if (r["model"], r["kp"], r["limit"], r["law"]) == (model, 300, limit, law) and r["lost_at"] < 0]
                if points:
                    axis.plot(*zip(*points), style, color=colour, markersize=3, linewidth=1,
                              label=f"{'no limit' if limit > 1e8 else f'{limit:g} N m'}, {LAWS[law].split(' (')[0]}")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks([60, 120, 240, 480, 960], ["60", "120", "240", "480", "960"])
        axis.minorticks_off()
        axis.set_title(f"{model}, kp 300")
        axis.set_xlabel("steps a second")
        axis.set_ylabel("rms joint rotation from the reference [°]")
    fig.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
    return common.save(fig, "force_limits_fidelity", "Distance from the reference at 1/4,800 s against the step rate")


def goals(iterations, cost):
    """Against what was asked for: under 4 iterations, at most twice the cost."""
    said = "Under 4 iterations on average, as asked for" if iterations < 4 else "**Not under 4 iterations on average, as was asked for**"
    return said + (", and at most twice the cost." if cost <= 2 else
                   "; **the cost is not at most twice that of unlimited MABA on average, as was asked for**: it is only where limits seldom bind.")


def run(context):
    rows = context.bench("limits")
    limited = [r["status"] != "ok" or r["top_speed"] > BLOWN_UP for r in rows]
    for r, lost in zip(rows, limited):
        r["lost"] = float(lost)
    means = {m: (np.nanmean(grids_of(rows, "iterations")[m]), np.nanmean(grids_of(rows, "ratio")[m])) for m in grids_of(rows, "iterations")}
    all_rounds, all_ratio = np.mean([m[0] for m in means.values()]), np.mean([m[1] for m in means.values()])
    overall = (sum(r["ns_limited"] * r["steps"] for r in rows) / sum(r["ns_unlimited"] * r["steps"] for r in rows))
    worst = max(r["residual"] for r in rows)
    try:
        import mujoco
    except ImportError:
        blow_ups = "MuJoCo is not here, so not measured.\n"
    else:
        blow_ups = plot_blow_ups(grids_of(rows, "lost"), mujoco_grid(mujoco, context)) + f"""
The same with kp 300 and a limit of 200 N m, and without one (kd in N m s/rad):

{their_humanoid(mujoco, context)}"""
    distance = context.bench("fidelity")
    return f"""## Force limits

Characters in free fall, **without ground contact**; random targets up to 1 rad at 30 Hz on every joint, steps of 1/60 s, kd = kp/10,
all joints with the same limit. Of {len(rows)} runs {int(sum(limited))} blew up (a joint faster than {BLOWN_UP:g} rad/s, or not finite).
Largest complementarity residual {worst:.1g}. Rounds a step, mean over the grid: {', '.join(f'{m} {v[0]:.2f}' for m, v in means.items())}; together
**{all_rounds:.2f}**. Time of the limited solve over unlimited MABA (drive terms and solve of the same recorded states): mean of ratios
{', '.join(f'{m} {v[1]:.2f}' for m, v in means.items())}; together **{all_ratio:.2f}**, total time over total time {overall:.2f}. {goals(all_rounds, overall)}
The share that blew up over 100 seeds of 30 s each, with roots driven and not, is what `test_control_long` checks (none may).

{plot_cost(rows)}
### MuJoCo's implicit position servos in the same experiment

Same model files, gravity, targets' distribution, steps, gains and limits (on a ball, on each of three servos); contacts and joint ranges off. MuJoCo's implicit integrators take kd
implicitly, kp and the clamp explicitly; ours takes all three implicitly, with spin damping (docs/force_limits.md), without which a free snake at its limits blows up here
too.

{blow_ups}
### Fidelity

A clip tracked with limits below the root (kd = kp/10, the root held by the paper's gains), against the same limited law at 1/4,800 s: root
mean square over joints and time of the rotation between the two, in degrees. The error of a
first-order step halves with the step. An implicit clamp buys stability, not accuracy: where limits bind, its error at 1/60 s is
several times that without limits. "Lost": faster than 10⁵ rad/s.

{plot_fidelity(distance)}
{fidelity(distance)}"""


if __name__ == "__main__":
    common.main(run)
