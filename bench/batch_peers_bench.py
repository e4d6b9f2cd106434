"""A thousand worlds with contacts against mujoco.rollout (wheel), on the same MJCF, one thread each, alternating in one process.

Both engines hold every joint by the same PD gains and force limits towards the same targets: tarsus by stable PD, MuJoCo by position
actuators (a ball joint gets three). mujoco.rollout abandons a world at its first unstable step, after which it would time no steps.
Therefore a step of MuJoCo consists of substeps: for each integrator the smallest number with which all worlds complete the run, and the
smallest with which their mean energy is also right after each round: within ERROR of that of implicitfast with REFERENCE substeps. Of
either kind the fastest integrator is used. Where they differ, the scene has two lines. The energy error of tarsus is measured likewise.
Scenes: a humanoid that stands, one that falls under random targets, and quadrupeds and a humanoid robot of mujoco_menagerie, whose
folder is given: standing and under random targets. Robots with servos also run on these, with the same controls in both engines. Columns
of boxes, which a batch steps one world at a time while they stand (docs/decisions/0509).
Each scene first settles. A standing scene restarts from its initial state before each round, since neither engine stands for ever.
Speed: best of the rounds, in wall time or, on a shared machine, in processor time of one thread (--cpu).
Penetration: the deepest after any round, over the same number of worlds of both engines. The natural residual (of contacts, limits and
drives) is that of tarsus only; for MuJoCo the largest final gradient of its solver is reported, in MuJoCo's scale.
JSON lines on standard output, a table on standard error.

    python bench/batch_peers_bench.py [--menagerie FOLDER] [--worlds 1024] [--threads 1 2] [--scenes g1] [--cpu]
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
    from mujoco import rollout
    from mujoco_files import without_pictures
except ImportError:
    print("SKIPPED: the `mujoco` wheel is not here", file=sys.stderr)
    sys.exit(0)

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"
SETTLE, STEPS, ROUNDS = {False: 60, True: 40}, 20, 5  # SETTLE: by whether the character stands
HOLD = 0.1  # [s] duration of each random target
SAMPLE = 64  # worlds in which penetration and energy are measured
TRIED = 256  # worlds in which MuJoCo's number of substeps is chosen
INTEGRATORS = {name: getattr(mujoco.mjtIntegrator, f"mjINT_{name.upper()}") for name in ("implicitfast", "euler", "discrete", "implicit")}
MOST_STEPS, REFERENCE, ERROR = 64, ("implicitfast", 64), 0.2
clock = time.perf_counter


class Scene:
    def __init__(self, name, file, dt, kp, kd, limit, amplitude, key=None):
        self.name, self.dt, self.kp, self.kd, self.limit, self.amplitude = name, dt, kp, kd, limit, amplitude
        self.own = kp is None  # whether the model's actuators are used
        self.mujoco = self.with_actuators(file) if key is None else without_pictures(file)
        if not self.own:
            self.set_actuators()
        self.tarsus = tarsus.Model.load(str(file), lenient=True)
        self.start = np.array(self.tarsus.qpos0 if key is None else self.tarsus.keyframe(key)[0])

    @staticmethod
    def with_actuators(file):
        """The model of a file that has no actuators, with one added for each hinge and three for each ball joint."""
        spec = mujoco.MjSpec.from_file(str(file))
        for joint in spec.joints:
            if joint.type == mujoco.mjtJoint.mjJNT_FREE:
                continue
            for axis in np.eye(3) if joint.type == mujoco.mjtJoint.mjJNT_BALL else [np.array([1.0, 0, 0])]:
                spec.add_actuator(trntype=mujoco.mjtTrn.mjTRN_JOINT, target=joint.name).gear[:3] = axis
        return spec.compile()

    def set_actuators(self):
        m = self.mujoco
        m.actuator_gaintype[:], m.actuator_biastype[:] = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        m.actuator_gainprm[:], m.actuator_biasprm[:] = 0, 0
        m.actuator_gainprm[:, 0], m.actuator_biasprm[:, 1], m.actuator_biasprm[:, 2] = self.kp, -self.kp, -self.kd
        m.actuator_forcelimited[:], m.actuator_forcerange[:] = 1, (-self.limit, self.limit)
        m.actuator_ctrllimited[:], m.jnt_actfrclimited[:] = 0, 0

    def targets(self, worlds, steps, seed):
        """Targets (for tarsus [steps, worlds, nq], or [steps, worlds, nu] with the model's actuators; for MuJoCo [worlds, steps, nu]):
        the start, and rotations about it that change every HOLD seconds."""
        hold = max(1, round(HOLD / self.dt))
        random = np.random.default_rng(seed + 1)
        nu = self.mujoco.nu
        turns = self.amplitude * random.uniform(-1, 1, (worlds, -(-steps // hold), nu)).repeat(hold, axis=1)[:, :steps]
        ours = np.tile(self.start, (steps, worlds, 1))
        theirs = np.zeros((worlds, steps, nu))
        u = 0
        while u < nu:
            joint = self.mujoco.actuator_trnid[u, 0]
            at = self.mujoco.jnt_qposadr[joint]
            if self.mujoco.jnt_type[joint] == mujoco.mjtJoint.mjJNT_BALL:
                v = turns[:, :, u:u + 3].swapaxes(0, 1)
                angle = np.linalg.norm(v, axis=2, keepdims=True)
                half = np.sinc(angle / (2 * np.pi)) / 2
                ours[:, :, at:at + 4] = np.concatenate([np.cos(angle / 2), v * half], axis=2)
                theirs[:, :, u:u + 3] = turns[:, :, u:u + 3]
                u += 3
            else:
                ours[:, :, at] += turns[:, :, u].T
                theirs[:, :, u] = self.start[at] + turns[:, :, u]
                u += 1
        return np.ascontiguousarray(theirs.swapaxes(0, 1)) if self.own else ours, theirs


class Ours:
    def __init__(self, scene, worlds, threads, dtype):
        model, drives = scene.tarsus, None
        self.inputs = "ctrl" if scene.own else "qpos_target"
        if not scene.own:
            drives = tarsus.Drives.uniform(model, scene.kp, scene.kd, 0, 0)
            drives.force_limit = np.full(model.nv, float(scene.limit))
        self.batch = tarsus.Batch(model, worlds, scene.dt, threads, dtype, drives=drives, contacts=True, joint_limits=True)
        self.scene, self.worst = scene, {}
        self.reset()

    def reset(self):
        self.batch.reset(None, self.scene.start.astype(self.batch.dtype))

    def run(self, targets):
        targets = {self.inputs: targets.astype(self.batch.dtype)}
        began = clock()
        bad = self.batch.rollout(**targets, states=False)
        seconds = clock() - began
        assert bad == (None, None)
        return seconds

    def look(self):
        """Keeps the maxima over all worlds; penetration is that of the sample, as for MuJoCo."""
        r = self.batch.reports
        worst = {"residual_m_per_s": r["residual"].max(), "penetration_m": r["penetration"][:SAMPLE].max(),
                 "unsolved": r["unsolved"].mean()}
        self.worst = {key: max(float(value), self.worst.get(key, 0.0)) for key, value in worst.items()}

    def energy(self):
        """[J] mean of the sample"""
        return float(self.batch.measure(["energy"])["energy"][:SAMPLE].sum(axis=1).mean())

    def quality(self):
        r = self.batch.reports
        return self.worst | {"worlds_a_call": self.batch.width, "contacts": float(r["contacts"].mean()), "iterations": float(r["iterations"].mean()),
                             "bad_worlds": int((self.batch.status != 0).sum()), "energy_J": self.energy()}


class Theirs:
    def __init__(self, scene, worlds, threads, integrator, steps):
        """@param steps MuJoCo's substeps in one step of tarsus"""
        self.model, self.steps = scene.mujoco, steps
        self.model.opt.timestep, self.model.opt.integrator = scene.dt / steps, INTEGRATORS[integrator]
        self.data = [mujoco.MjData(scene.mujoco) for _ in range(threads)]
        data = self.data[0]
        data.qpos[:] = scene.start
        size = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        state = np.zeros(size)
        mujoco.mj_getState(self.model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self.first = np.tile(state, (worlds, 1))
        self.reset()
        self.out = {}
        self.deepest = self.gradient = 0.0

    def reset(self):
        self.state, self.time = self.first.copy(), 0.0

    def run(self, targets):
        targets = np.repeat(targets, self.steps, axis=1)
        steps = targets.shape[1]
        out = self.out.setdefault(steps, np.empty((len(self.state), steps, self.state.shape[1])))
        began = clock()
        rollout.rollout(self.model, self.data, self.state, targets, state=out, nstep=steps, skip_checks=False)
        seconds = clock() - began
        self.state = np.ascontiguousarray(out[:, -1])
        self.time += steps * self.model.opt.timestep
        return seconds

    def left(self):
        """Share of the worlds that MuJoCo abandoned: their time is less than that of the others."""
        return float((np.abs(self.state[:, 0] - self.time) > 1e-6).mean())

    def look(self):
        self.energies, self.contacts, self.bad = [], [], 0
        data = mujoco.MjData(self.model)
        for state in self.state[:SAMPLE]:
            mujoco.mj_setState(self.model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
            self.model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
            mujoco.mj_forward(self.model, data)
            self.model.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_ENERGY)
            self.bad += not np.isfinite(state).all()
            self.deepest = max(self.deepest, -min((float(c.dist) for c in data.contact), default=0.0))
            last = max(int(data.solver_niter[0]) - 1, 0)
            self.gradient = max(self.gradient, float(data.solver[last].gradient))
            self.energies.append(float(data.energy.sum())), self.contacts.append(int(data.ncon))

    def energy(self):
        """[J] mean of the sample when last looked at"""
        return float(np.mean(self.energies))

    def quality(self):
        return {"penetration_m": self.deepest, "solver_gradient": self.gradient, "contacts": float(np.mean(self.contacts)),
                "bad_worlds": self.bad, "energy_J": self.energy(), "steps": self.steps, "left": self.left()}


def columns(path, count=4, height=5):
    """Writes a scene of columns of boxes of 20 cm, 5 cm apart. @return its path"""
    bodies = "".join(f"<body pos='{0.25 * column} 0 {0.1 + 0.2 * row}'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
                     for column in range(count) for row in range(height))
    path.write_text(f"<mujoco><worldbody><geom type='plane' size='9 9 1'/>{bodies}</worldbody></mujoco>")
    return path


def rounds(scene):
    """(number for the targets, steps) of what settles a scene and of each round after it"""
    stands = scene.amplitude == 0
    return [(-1, SETTLE[stands])] + [(round, STEPS) for round in range(1 if stands else ROUNDS)]


def energies(scene, worlds, integrator, steps, most=np.inf, right=None):
    """(seconds, mean energies [J] after settling and after each round) of MuJoCo; None for them where it abandons a world, takes longer
    than `most`, or has an energy that is not the right one."""
    side, seconds, found = Theirs(scene, worlds, 1, integrator, steps), 0.0, []
    for round, count in rounds(scene):
        seconds += side.run(scene.targets(worlds, count, round)[1])
        if side.left() > 0 or seconds > most:
            return seconds, None
        side.look()
        found.append(side.energy())
        if right is not None and error(np.array(found), right) > ERROR:
            return seconds, None
    return seconds, np.array(found)


def error(found, right):
    """The largest relative error of energies."""
    both = min(len(found), len(right))
    return float(np.max(np.abs(found[:both] - right[:both]) / np.abs(right[:both])))


def best_steps(scene, worlds):
    """({"completes" or "right": (integrator, substeps) of least time}, the right energies [J])"""
    right = energies(scene, min(worlds, SAMPLE), *REFERENCE)[1]
    if right is None:
        raise RuntimeError(f"{scene.name}: MuJoCo leaves worlds on their way with {REFERENCE}")
    best = {"completes": (np.inf,), "right": (np.inf,)}
    for integrator in INTEGRATORS:
        completes = False
        for steps in range(1, MOST_STEPS + 1):
            seconds, found = energies(scene, worlds, integrator, steps, best["right"][0], right if completes else None)
            one = (seconds, integrator, steps)
            if found is not None and not completes:
                completes, best["completes"] = True, min(best["completes"], one)
            is_right = found is not None and error(found, right) <= ERROR
            best["right"] = min(best["right"], one) if is_right else best["right"]
            if is_right or seconds > best["right"][0]:
                break
    if len(best["right"]) == 1:
        raise RuntimeError(f"{scene.name}: MuJoCo's energies are not right with {MOST_STEPS} steps in one of ours")
    return {kind: chosen[1:] for kind, chosen in best.items()}, right


def keep(sides, found):
    """Looks at all sides and keeps their energies."""
    for name, side in sides.items():
        side.look()
        found[name].append(side.energy())


def measure(scene, worlds, threads, integrator, steps, right):
    sides = {"mujoco": Theirs(scene, worlds, threads, integrator, steps)}
    for dtype in ("float64", "float32"):
        sides[dtype] = Ours(scene, worlds, threads, dtype)
    times, found = {side: [] for side in sides}, {side: [] for side in sides}
    stands = scene.amplitude == 0  # but not for ever, so each round restarts

    def run(steps, round):
        ours, theirs = scene.targets(worlds, steps, round)
        return {name: side.run(theirs if name == "mujoco" else ours) / (steps * worlds) * 1e6 for name, side in sides.items()}

    for round in range(ROUNDS):
        if stands or round == 0:
            for side in sides.values():
                side.reset()
            run(SETTLE[stands], -1)
            keep(sides, found)
        for name, each in run(STEPS, round).items():
            times[name].append(each)
        keep(sides, found)
    line = {"scene": scene.name, "dof": scene.tarsus.nv, "worlds": worlds, "threads": threads, "dt": scene.dt,
            "isa": tarsus.isa_level(), "mujoco_version": mujoco.__version__, "integrator": integrator}
    for name, side in sides.items():
        line[name] = {"us": float(min(times[name])), "median_us": float(np.median(times[name])),
                      "energy_error": error(np.array(found[name]), right)} | side.quality()
    for dtype in ("float64", "float32"):
        line[f"ratio_{dtype}"] = line["mujoco"]["us"] / line[dtype]["us"]
    return line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--menagerie", type=pathlib.Path)
    parser.add_argument("--worlds", type=int, default=1024)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--scenes", default="", help="only scenes with this in their name")
    parser.add_argument("--cpu", action="store_true", help="the processor's time instead of the clock's; of one thread")
    arguments = parser.parse_args()
    if arguments.cpu:
        global clock
        clock = time.process_time
        if arguments.threads != [1]:
            parser.error("--cpu is for one thread")
    mujoco.set_mju_user_warning(lambda text: None)  # no output: unstable steps are counted
    humanoid = (MODELS / "humanoid.xml", 1 / 60, 300, 30, 150)
    folder = tempfile.TemporaryDirectory()
    boxes = columns(pathlib.Path(folder.name) / "columns.xml")
    recipes = [("humanoid stands", *humanoid, 0.0), ("humanoid, random targets", *humanoid, 0.8),
               ("20 boxes in 4 columns", boxes, 1 / 60, None, None, None, 0.0)]
    if arguments.menagerie:
        for robot, folder, scene, key, gains in (("go2", "unitree_go2", "scene.xml", "home", (100, 5, 80)),
                                                 ("barkour", "google_barkour_vb", "scene.xml", "home", (100, 5, 80)),
                                                 ("g1", "unitree_g1", "scene.xml", 0, (100, 5, 80))):
            file = arguments.menagerie / folder / scene
            recipes += [(f"{robot} stands", file, 0.005, *gains, 0.0, key),
                        (f"{robot}, random targets", file, 0.005, *gains, 0.4, key)]
            if robot != "go2":  # go2 has motors only
                recipes += [(f"{robot} stands on its servos", file, 0.005, None, None, None, 0.0, key),
                            (f"{robot} on its servos, random", file, 0.005, None, None, None, 0.4, key)]
        # With loops: a biped with connect constraints, and a gripper with coupled fingers that holds a cube.
        for name, scene, key in (("cassie on its motors, random", "agility_cassie/scene.xml", 0),
                                 ("panda and cube on servos", "franka_emika_panda/mjx_single_cube.xml", "pickup")):
            recipes.append((name, arguments.menagerie / scene, 0.005, None, None, None, 0.4, key))
    head = f"{'scene':<26}{'threads':>8}{'MuJoCo':>16}{'left':>6}{'µs':>8}{'double µs':>10}{'ratio':>7}{'float µs':>10}{'ratio':>7}{'contacts':>10}"
    print(head + f"{'residual m/s':>20}{'penetration mm, ours/MuJoCo':>30}{'energy J, ours/MuJoCo':>25}{'error %':>15}{'threads give':>14}",
          file=sys.stderr)
    for recipe in recipes:
        if arguments.scenes not in recipe[0]:
            continue
        scene = Scene(*recipe)
        best, right = best_steps(scene, min(arguments.worlds, TRIED))
        for kind in ("completes", "right") if best["completes"] != best["right"] else ("right",):
            first = None
            for threads in arguments.threads:
                r = {"kind": kind} | measure(scene, arguments.worlds, threads, *best[kind], right)
                first = first or r
                for side in ("mujoco", "float64", "float32"):
                    r[f"scaling_{side}"] = first[side]["us"] / r[side]["us"]
                print(json.dumps(r), flush=True)
                show(r, threads)


def show(r, threads):
    d, f, m = r["float64"], r["float32"], r["mujoco"]
    print(f"{r['scene']:<26}{threads:>8}{r['integrator']:>13}{m['steps']:>3}{m['left']:>6.3f}{m['us']:>8.2f}{d['us']:>10.2f}{r['ratio_float64']:>7.1f}"
          f"{f['us']:>10.2f}{r['ratio_float32']:>7.1f}{d['contacts']:>10.1f}{d['residual_m_per_s']:>10.1e}{f['residual_m_per_s']:>10.1e}"
          f"{d['penetration_m'] * 1e3:>20.2f}/{m['penetration_m'] * 1e3:<9.2f}{d['energy_J']:>14.1f}/{m['energy_J']:<10.1f}"
          f"{d['energy_error'] * 100:>8.0f}/{m['energy_error'] * 100:<6.0f}{r['scaling_float64']:>7.2f}{r['scaling_float32']:>7.2f}", file=sys.stderr)


if __name__ == "__main__":
    main()
