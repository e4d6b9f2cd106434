"""A step against MuJoCo's (wheel), on the same MJCF: standing, lying and falling characters and chains, limp robots, driven models.

Both engines run in one process on one core and alternate. Lying scenes first settle. Standing scenes start from their pose, since
neither engine stands for ever, and must be up at the end. Falling scenes start in the air with random rotations and velocities, the
same for both, and every step is timed until they lie. Each engine repeats everything several times from the same states. The time of a
step is the median of its repeats, since timer interrupts and other programs can take longer than a step. Residuals and depths are those
of the first repeat, which alone reads them. A step of tarsus includes collision, drives, contacts and limits, solved to the stated
residual. MuJoCo uses its default solver at the same time step, and implicitfast if the model has servos or gains. Driven models follow
random controls, a new one every ten steps, at the time step of their file and with MuJoCo's integrator of the file. Times are of single
steps: median, 99th percentile, largest. Steps that MuJoCo finds unstable, after which it restarts from the model's pose, are counted.
JSON lines on standard output, a table on standard error.

  ground_peers_bench.py [NAME ...] [--seconds 3] [--seeds 6] [--repeats 5]    scenes whose name contains one of the NAMEs; all without
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

import numpy as np

import tarsus

try:
    import mujoco
    from mujoco_files import without_pictures
except ImportError:
    print("SKIPPED: the `mujoco` wheel is not here", file=sys.stderr)
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS, DATA = ROOT / "models", ROOT.parent / "shared/data"
ROBOTS = DATA / "menagerie"
DT, SETTLE, WARM, STEPS = 1 / 60, 1500, 20, 200
#: Robots with available meshes: on the floor of their scene, or hands and arms without a floor, which sag against themselves.
LIMP = ["unitree_go2/scene", "unitree_a1/scene", "google_barkour_vb/scene", "unitree_g1/scene", "agility_cassie/scene",
        "toddlerbot_2xc/scene", "shadow_hand/scene_right", "leap_hand/scene_right", "franka_emika_panda/scene",
        "trs_so_arm100/scene", "robotiq_2f85/scene", "kuka_iiwa_14/scene", "wonik_allegro/scene_right", "dynamixel_2r/scene"]
#: Motors, servos and muscles, on joints and tendons; springs, equality constraints, fluid; many characters, tendons around geoms.
DRIVEN = ["dm_control_suite/cheetah", "dm_control_suite/fish", "dm_control_suite/humanoid", "dm_control_suite/manipulator",
          "dm_control_suite/quadruped", "dm_control_suite/stacker", "menagerie/shadow_hand/scene_right", "menagerie/leap_hand/scene_right",
          "menagerie/franka_emika_panda/scene", "menagerie/robotiq_2f85/scene", "mujoco/model/replicate/newton_cradle",
          "mujoco/model/replicate/tendon", "mujoco/model/humanoid/22_humanoids", "mujoco/model/humanoid/100_humanoids"]


def controls_of(model, steps, seed=0):
    """One control vector [nu] for every ten steps, within the actuators' ranges, or -1 to 1."""
    limited, low, high = model.actuator_ctrllimited.astype(bool), *model.actuator_ctrlrange.T
    return np.random.default_rng(seed).uniform(np.where(limited, low, -1), np.where(limited, high, 1), (-(-steps // 10), model.nu))


class Ours:
    def __init__(self, path, kp, kd, limp, driven):
        self.model = tarsus.Model.load(str(path), lenient=True)
        self.data = tarsus.Data(self.model)
        self.stepper = tarsus.Stepper(self.data, dt=None if driven else DT, contacts=True, joint_limits=True, **({"actuation": "off"} if limp else {}))
        self.drives, self.target = None, None
        if kp:
            self.drives = tarsus.Drives.uniform(self.model, kp, kd, 0, 0)
            self.target = np.array(self.data.qpos)

    def start(self, qpos, qvel):
        self.data.reset()
        self.stepper.restart()
        self.data.qpos, self.data.qvel = qpos, qvel

    def run(self, steps, controls=None, reads=True):
        """Time of each step [ns], largest residual and penetration, contacts of the last step, number of failed steps.

        Without `reads`, times and failed steps alone: what is read between two steps takes cache lines from the next.
        """
        step, drives, target, clock = self.stepper.step, self.drives, self.target, time.perf_counter_ns
        times, residual, penetration, touching, failed = [], 0.0, 0.0, 0, 0
        for k in range(steps):
            if controls is not None and k % 10 == 0:
                self.data.ctrl[:] = controls[k // 10]
            began = clock()
            bad = step(drives, target)
            times.append(clock() - began)
            failed += bool(bad)
            if not reads:
                continue
            rows = self.stepper.rows
            residual, penetration = max(residual, rows["residual"]), max(penetration, rows["penetration"])
            touching = rows["touching"]
        return times, residual, penetration, touching, failed


class MuJoCo:
    """MuJoCo has no stable PD. Standing scenes use implicit joint springs and damping of the same gains where possible."""

    def __init__(self, path, kp, kd, limp, driven):
        self.model = without_pictures(path)
        if not driven:
            self.model.opt.timestep = DT
        if limp:
            self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
        if kp or (self.model.nu and not driven):
            self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        if kp:
            for j in range(self.model.njnt):
                if self.model.jnt_type[j] != mujoco.mjtJoint.mjJNT_FREE:
                    self.model.jnt_stiffness[j] = kp
                    adr = self.model.jnt_dofadr[j]
                    self.model.dof_damping[adr:adr + (3 if self.model.jnt_type[j] == mujoco.mjtJoint.mjJNT_BALL else 1)] = kd
        self.data = mujoco.MjData(self.model)

    def start(self, qpos, qvel):
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel

    def run(self, steps, controls=None, reads=True):
        model, data, clock = self.model, self.data, time.perf_counter_ns
        times, penetration = [], 0.0
        before = self.unstable()
        for k in range(steps):
            if controls is not None and k % 10 == 0:
                data.ctrl[:] = controls[k // 10]
            began = clock()
            mujoco.mj_step(model, data)
            times.append(clock() - began)
            if reads and data.ncon:
                penetration = max(penetration, -float(data.contact.dist.min()))
        return times, 0.0, penetration, data.ncon, self.unstable() - before

    def unstable(self):
        kinds = (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)
        return sum(self.data.warning[int(kind)].number for kind in kinds)


def thrown(model, random):
    """(qpos, qvel): the model's pose raised into the air, with random orientation and velocities."""
    qpos, qvel = np.array(model.qpos0), 0.5 * random.normal(size=model.nv)
    for joint in model.joints:
        if joint.type == "free":
            at = joint.qpos.start
            qpos[at + 2] += 0.3
            turn = random.normal(size=4)
            qpos[at + 3:at + 7] = turn / np.linalg.norm(turn)
    return qpos, qvel


def wall(path, columns=17, rows=7, half=(0.1, 0.05, 0.05), gap=0.002):
    """Writes a wall of 119 free boxes, each on two below, with gaps between the neighbours in a row."""
    boxes = "".join(f'<body pos="{(c + r % 2 / 2 - columns / 2) * (2 * half[0] + gap):.6f} 0 {(2 * r + 1) * half[2]:.6f}"><freejoint/>'
                    f'<geom type="box" size="{half[0]} {half[1]} {half[2]}" density="600"/></body>'
                    for r in range(rows) for c in range(columns))
    path.write_text(f'<mujoco><worldbody><geom type="plane" size="0 0 1"/>{boxes}</worldbody></mujoco>')


def stack(path, boxes=20, half=0.1):
    """Writes a stack of free boxes."""
    boxes = "".join(f'<body pos="0 0 {(2 * i + 1) * half:.6f}"><freejoint/><geom type="box" size="{half} {half} {half}"/></body>' for i in range(boxes))
    path.write_text(f'<mujoco><worldbody><geom type="plane" size="0 0 1"/>{boxes}</worldbody></mujoco>')


def boxes(side, gap, half=0.1):
    """side³ free boxes in stacks around the origin, with gaps between the stacks."""
    pitch = 2 * half + gap
    return "".join(f'<body pos="{(i - (side - 1) / 2) * pitch:.6f} {(j - (side - 1) / 2) * pitch:.6f} {(2 * k + 1) * half:.6f}"><freejoint/>'
                   f'<geom type="box" size="{half} {half} {half}" density="1000"/></body>' for k in range(side) for j in range(side) for i in range(side))


def cube(path, side=10, gap=0.0):
    """Writes a cube of free boxes on a plane. Without gaps, every box touches six to twenty-six others."""
    path.write_text(f'<mujoco><worldbody><geom type="plane" size="0 0 1"/>{boxes(side, gap)}</worldbody></mujoco>')


def among(path, side=10, gap=0.002):
    """Writes the humanoid above a cube of boxes, onto which it falls."""
    text = (MODELS / "humanoid.xml").read_text()
    raised = text.replace('<body name="pelvis" pos="0 0 0.88"', f'<body name="pelvis" pos="0 0 {0.2 * side + 1:.2f}"', 1)
    assert raised != text
    path.write_text(raised.replace("</worldbody>", boxes(side, gap) + "</worldbody>", 1))


def linked(name, vertices, radius):
    """Free capsules along a polyline, neighbours connected at its vertices, where they do not touch: (bodies, equalities)."""
    bodies, equalities = "", ""
    for i, (a, b) in enumerate(zip(vertices, vertices[1:])):
        half = (b - a) / 2
        end = half * (1 - 1.4 * radius / np.linalg.norm(half))
        numbers = lambda x: " ".join(f"{v:.9g}" for v in x)  # noqa: E731
        bodies += (f'<body name="{name}{i}" pos="{numbers((a + b) / 2)}"><freejoint/><geom type="capsule" size="{radius}" '
                   f'fromto="{numbers(-end)} {numbers(end)}" density="800"/></body>')
        if i + 2 < len(vertices):
            equalities += f'<connect body1="{name}{i}" body2="{name}{i + 1}" anchor="{numbers(half)}"/>'
    return bodies, equalities


def chains(path, count=18, wall=0.45):
    """Writes chains of five capsules across one another over the floor of a box."""
    bodies, equalities = "", ""
    for c in range(count):
        layer = c // 3
        line = [np.array([-0.4 + 0.16 * i, 0.25 * (c % 3 - 1) + (0.02 if i % 2 else -0.02), 0.1 + 0.1 * layer]) for i in range(6)]
        more, rows = linked(f"c{c}_", [v[[1, 0, 2]] if layer % 2 else v for v in line], 0.025)
        bodies, equalities = bodies + more, equalities + rows
    walls = "".join(f'<geom type="box" size=".1 {wall + 0.2} 1" pos="{s * (wall + 0.1)} 0 1"/><geom type="box" size="{wall + 0.2} .1 1" pos="0 {s * (wall + 0.1)} 1"/>'
                    for s in (-1, 1))
    path.write_text(f'<mujoco><worldbody><geom type="plane" size="0 0 1"/>{walls}{bodies}</worldbody><equality>{equalities}</equality></mujoco>')


def rope(path, links=100, count=10):
    """Writes a rope of capsules over boxes."""
    length = 0.1 * links
    below = "".join(f'<body pos="{-length / 2 + length * (i + 0.5) / count} {0.03 if i % 2 else -0.03} 0.1"><freejoint/><geom type="box" size=".1 .1 .1" density="500"/></body>'
                    for i in range(count))
    bodies, equalities = linked("rope", [np.array([-length / 2 + 0.1 * i, 0.01 if i % 2 else -0.01, 0.3]) for i in range(links + 1)], 0.02)
    path.write_text(f'<mujoco><worldbody><geom type="plane" size="0 0 1"/>{below}{bodies}</worldbody><equality>{equalities}</equality></mujoco>')


def measure(name, path, kp=0, kd=0, falls=False, stands=False, limp=False, driven=0, seconds=3.0, seeds=6, repeats=5, settle=SETTLE, warm=WARM, steps=STEPS):
    sides = Ours(path, kp, kd, limp, driven > 0), MuJoCo(path, kp, kd, limp, driven > 0)
    controls = controls_of(sides[1].model, driven) if driven else None
    found = [([], [], [], [], []) for _ in sides]

    def run(warm, steps, starts):
        """Runs each side `repeats` times from its (qpos, qvel). The time of a step is the median over its repeats."""
        runs = []
        for repeat in range(repeats):
            runs.append([])
            for side, start in zip(sides, starts):
                side.start(*start)
                side.run(warm)
                runs[-1].append(side.run(steps, controls, reads=repeat == 0))
        for side, out in enumerate(found):
            times = np.median([one[side][0] for one in runs], axis=0)
            for kept, new in zip(out, (times, *runs[0][side][1:])):
                kept.append(new)

    pose = np.array(sides[0].model.qpos0), np.zeros(sides[0].model.nv)
    if driven:
        run(0, driven, [pose, pose])
    elif falls:
        for seed in range(seeds):
            run(0, round(seconds / DT), [thrown(sides[0].model, np.random.default_rng(seed))] * 2)
    elif stands:
        run(warm, steps, [pose, pose])
        for side in sides:
            if not abs(side.data.qpos[2] - pose[0][2]) < 0.02:
                raise RuntimeError(f"{name}: {type(side).__name__}'s is {side.data.qpos[2]:.2f} m above the floor, {pose[0][2]:.2f} at first")
    else:
        for side in sides:
            side.run(settle)
        run(warm, steps, [(np.array(side.data.qpos), np.array(side.data.qvel)) for side in sides])
    row = {"scene": name, "dof": sides[0].model.nv}
    for key, out in zip(("ours", "mujoco"), found):
        times = np.concatenate(out[0]) / 1e3
        row |= {f"{key}_p50_us": float(np.percentile(times, 50)), f"{key}_p99_us": float(np.percentile(times, 99)),
                f"{key}_largest_us": float(times.max()), f"{key}_penetration_m": max(out[2]), f"{key}_contacts": int(out[3][-1]),
                f"{key}_failed": int(sum(out[4]))}
    return row | {"p50": row["mujoco_p50_us"] / row["ours_p50_us"], "p99": row["mujoco_p99_us"] / row["ours_p99_us"],
                  "residual_m_per_s": max(found[0][1]), "mujoco": mujoco.__version__}


def scenes(folder):
    yield "humanoid stands", (MODELS / "humanoid.xml", 300, 30), {"stands": True, "steps": 50}  # it topples after two seconds
    for arguments in (("humanoid lies", "humanoid.xml"), ("dog lies", "dog.xml"), ("snake72 lies", "snake72.xml"), ("snake195 lies", "snake195.xml")):
        yield arguments[0], (MODELS / arguments[1], *arguments[2:]), {}
    stack(folder / "stack.xml")
    yield "stack of 20 boxes stands", (folder / "stack.xml",), {}
    wall(folder / "wall.xml")  # few steps: its ends begin to fall
    yield "wall of 119 boxes stands", (folder / "wall.xml",), {"settle": 20, "steps": 80}
    cube(folder / "cube.xml")
    yield "cube of 1000 boxes", (folder / "cube.xml",), {"settle": 5, "warm": 0, "steps": 15, "repeats": 1}
    among(folder / "among.xml")
    yield "humanoid on 1000 boxes", (folder / "among.xml",), {"settle": 1, "warm": 0, "steps": 60, "repeats": 1}
    chains(folder / "chains.xml")
    yield "heap of 18 chains", (folder / "chains.xml",), {"settle": 1, "warm": 0, "steps": 240, "repeats": 1}
    rope(folder / "rope.xml")
    yield "rope of 100 on boxes", (folder / "rope.xml",), {"settle": 1, "warm": 0, "steps": 240, "repeats": 1}
    for name in ("humanoid", "dog"):
        yield f"{name} falls", (MODELS / f"{name}.xml",), {"falls": True}
    for name in LIMP:
        if (ROBOTS / f"{name}.xml").exists():
            yield f"{name.split('/')[0]} falls", (ROBOTS / f"{name}.xml",), {"falls": True, "limp": True}
    for name in DRIVEN:
        if (DATA / f"{name}.xml").exists():
            parts = name.split("/")
            yield f"{parts[-1] if 'scene' not in parts[-1] else parts[1]} driven", (DATA / f"{name}.xml",), {"driven": 600}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of scenes' names")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each fall")
    parser.add_argument("--seeds", type=int, default=6, help="falls of each scene")
    parser.add_argument("--repeats", type=int, default=5, help="of each scene; a step's time is the median")
    options = parser.parse_args()
    print(f"{'scene':<26}{'ours p50':>9}{'p99':>8}{'largest':>9}{'MuJoCo p50':>12}{'p99':>8}{'largest':>9}  {'p50 x':>6}{'p99 x':>7}"
          f"{'contacts':>10}{'residual':>10}{'penetration m':>18}{'failed':>9}", file=sys.stderr)
    folder = tempfile.TemporaryDirectory()
    for name, arguments, more in scenes(pathlib.Path(folder.name)):
        if options.names and not any(part in name for part in options.names):
            continue
        if more.get("falls"):
            more |= {"seconds": options.seconds, "seeds": options.seeds}
        r = measure(name, *arguments, **{"repeats": options.repeats} | more)
        print(json.dumps(r), flush=True)
        print(f"{name:<26}{r['ours_p50_us']:>9.1f}{r['ours_p99_us']:>8.0f}{r['ours_largest_us']:>9.0f}{r['mujoco_p50_us']:>12.1f}"
              f"{r['mujoco_p99_us']:>8.0f}{r['mujoco_largest_us']:>9.0f}  {r['p50']:>6.2f}{r['p99']:>7.2f}"
              f"{r['ours_contacts']:>6}/{r['mujoco_contacts']:<3}{r['residual_m_per_s']:>10.1e}"
              f"{r['ours_penetration_m']:>9.1e}/{r['mujoco_penetration_m']:<8.1e}{r['ours_failed']:>5}/{r['mujoco_failed']}",
              file=sys.stderr)


if __name__ == "__main__":
    main()
