"""Other engines on the same model files, in the same run: MuJoCo, Pinocchio, PyBullet; what each can do, and its cost."""

import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import common
import paper

KP, KD, ROUNDS = 75000.0, 4000.0, 3


def thread_ns(call, count, repeats):
    """Least nanoseconds of one of the `count` steps that `call` makes."""
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time_ns()
        call()
        best = min(best, (time.thread_time_ns() - start) / count)
    return best


# -- MuJoCo --------------------------------------------------------------------------------------------------------------

def mujoco_model(mujoco, file, integrator, kp=None, kd=None, limit=None, dt=1 / 60):
    """The file without contacts and joint ranges; kp: a position servo on every joint below the root, three on a ball."""
    spec = mujoco.MjSpec.from_file(str(file))
    spec.option.timestep = dt
    spec.option.integrator = getattr(mujoco.mjtIntegrator, integrator)
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    if kp is not None:
        for joint in spec.joints:
            if joint.type == mujoco.mjtJoint.mjJNT_FREE:
                continue
            axes = range(3) if joint.type == mujoco.mjtJoint.mjJNT_BALL else range(1)
            for axis in axes:
                actuator = spec.add_actuator(name=f"{joint.name}_{axis}", target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
                actuator.gear = [float(i == axis) for i in range(6)]
                actuator.set_to_position(kp=kp, kv=kd)
                if limit is not None:
                    actuator.forcelimited, actuator.forcerange = True, [-limit, limit]
    return spec.compile()


def mujoco_step(mujoco, file, integrator, quick, **servos):
    model = mujoco_model(mujoco, file, integrator, **servos)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 10)
    count = max(20, int(2e7 / 1e3 / (model.nv ** 1.5)))

    def call():
        mujoco.mj_resetData(model, data)
        mujoco.mj_step(model, data, count)

    return thread_ns(call, count, 3 if quick else 12)


def mujoco_rows(mujoco, quick):
    """{(model, what): ns}: a passive step and one with servos on every joint, by the two implicit integrators."""
    rows = {}
    integrators = [i for i in ("mjINT_IMPLICITFAST", "mjINT_DISCRETE") if hasattr(mujoco.mjtIntegrator, i)]
    for name in paper.MODELS:
        file = common.ROOT / "models" / f"{name}.xml"
        for integrator in integrators:
            label = integrator[len("mjINT_"):].lower()
            rows[name, f"{label}, passive"] = mujoco_step(mujoco, file, integrator, quick)
            rows[name, f"{label}, servos"] = mujoco_step(mujoco, file, integrator, quick, kp=KP, kd=KD)
    return rows


# -- Pinocchio -----------------------------------------------------------------------------------------------------------

def pinocchio_rows():
    """{(model, method): ns} of the C++ program in bench/peers, {} without the wheel or a compiler."""
    import aba_peers_bench as peers

    peers.BINARIES = common.BINARIES
    program = peers.pinocchio("headers")
    if not program:
        return {}
    subprocess.run([str(common.BINARIES / "aba_bench"), "--trees", str(peers.OUT)], check=True)
    trees = [peers.OUT / f"{m}.tree" for m in paper.MODELS]
    lines = subprocess.run(common.wrapped([program, *trees]), capture_output=True, text=True, check=True).stdout.splitlines()
    rows = {}
    for row in map(json.loads, lines):
        # K = 133 on bodies of a few grams: the residual's scale is the largest force that cancels in it.
        if not row["residual"] < 1e-5:
            raise SystemExit(f"pinocchio does not solve the tree: {row}")
        rows[row["model"], row["bench"]] = min(row["ns"], rows.get((row["model"], row["bench"]), float("inf")))
    return rows


# -- PyBullet ------------------------------------------------------------------------------------------------------------

def pybullet_rows(quick):
    """{(model, what): ns} of the snakes, whose hinges URDF can say; {} where it does not install."""
    try:
        import pybullet
    except ImportError:
        return {}
    rows = {}  # its reader fixes the base: a URDF has no free joint at the root
    folder = common.OUT / "urdf"
    folder.mkdir(exist_ok=True)
    for name in ("snake36", "snake72", "snake195"):
        urdf = folder / f"{name}.urdf"
        subprocess.run([str(common.TARSUS), "convert", str(common.ROOT / "models" / f"{name}.xml"), str(urdf)], check=True,
                       capture_output=True)
        client = pybullet.connect(pybullet.DIRECT)
        try:
            body = pybullet.loadURDF(str(urdf), flags=pybullet.URDF_USE_INERTIA_FROM_FILE, physicsClientId=client)
            joints = [j for j in range(pybullet.getNumJoints(body)) if pybullet.getJointInfo(body, j)[2] == pybullet.JOINT_REVOLUTE]
            pybullet.setTimeStep(1 / 60)
            zeros = [[0.0]] * len(joints)
            pybullet.setJointMotorControlArray(body, joints, pybullet.VELOCITY_CONTROL, forces=[0.0] * len(joints))

            def passive(n):
                for _ in range(n):
                    pybullet.stepSimulation()

            def driven(n):
                for _ in range(n):
                    pybullet.setJointMotorControlMultiDofArray(body, joints, pybullet.STABLE_PD_CONTROL, targetPositions=zeros,
                                                               targetVelocities=zeros, positionGains=[KP] * len(joints),
                                                               velocityGains=[KD] * len(joints), forces=[[1e9]] * len(joints))
                    pybullet.stepSimulation()

            count = 20 if quick else 100
            rows[name, "passive"] = thread_ns(lambda: passive(count), count, 3)
            rows[name, "STABLE_PD"] = thread_ns(lambda: driven(count), count, 3)
        except (pybullet.error, SystemError) as error:
            common.say(f"PyBullet, {name}: {error}")
        finally:
            pybullet.disconnect(client)
    return rows


# -- the section ---------------------------------------------------------------------------------------------------------

def tarsus_steps(context):
    command = common.wrapped([common.BINARIES / "control_bench", "steps"])
    return {r["model"]: r["ns"] for r in map(json.loads, subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())}


def measure(context):
    """Rounds in turn; the best of each figure."""
    try:
        import mujoco
    except ImportError:
        mujoco = None
    best = {}

    def keep(engine, rows):
        for key, ns in rows.items():
            best[engine, key] = min(ns, best.get((engine, key), float("inf")))

    for _ in range(1 if context.quick else ROUNDS):
        keep("tarsus", {(m, "step"): ns for m, ns in tarsus_steps(context).items()})
        if mujoco:
            keep("MuJoCo", mujoco_rows(mujoco, context.quick))
    keep("PyBullet", pybullet_rows(context.quick))
    pinocchio = pinocchio_rows()
    keep("Pinocchio", pinocchio)
    return best, mujoco


def step_table(best, models):
    columns = sorted({(e, what) for (e, (_, what)) in best if e in ("MuJoCo", "PyBullet")})
    rows = []
    for model in models:
        ours = best["tarsus", (model, "step")]
        line = [model, f"{ours / 1e3:.2f}"]
        for engine, what in columns:
            theirs = best.get((engine, (model, what)))
            line.append(f"{theirs / ours:.1f} × ({theirs / 1e3:.1f})" if theirs else "–")
        rows.append(line)
    return common.table(["model", "tarsus, MABA drives [µs]", *(f"{e}: {w} [µs]" for e, w in columns)], rows)


def pinocchio_table(best, models):
    rows = []
    for model in models:
        aba, armature, sparse, dense = (best.get(("Pinocchio", (model, k))) for k in ("aba", "armature_aba", "crba_sparse", "crba_dense"))
        if not armature:
            return ""
        strongest = min(sparse, dense)
        rows.append([model, f"{armature / 1e3:.2f}", f"{sparse / 1e3:.2f}", f"{dense / 1e3:.2f}", f"**{strongest / armature:.2f}**",
                     "sparse" if sparse < dense else "dense", f"{armature / aba:.2f}"])
    return common.table(["model", "ABA with armature [µs]", "bias + CRBA + sparse [µs]", "bias + CRBA + dense [µs]",
                         "better factor / ABA with armature", "better factor", "ABA with armature / best ABA"], rows)


CAN = """### What each can do with a joint drive

| | ball joints | force limits | shown by |
| --- | --- | --- | --- |
| tarsus | one drive on the rotation | at the end of the step, on the torque's length | `experiments/force_limits/run.py` |
| MuJoCo | three servos on the rotation vector's components | clamped explicitly | `experiments/force_limits/run.py` |
| Pinocchio | armature, torque formed by the user | none | `experiments/engines/run.py` |
| PyBullet, STABLE_PD | not tried (the snakes have hinges) | not tried | `experiments/engines/run.py` |

60 Hz with gains from 1e2 to 1e6 is the grid of [the force limits](#force-limits).
"""


def run(context):
    best, mujoco = measure(context)
    models = list(paper.MODELS)
    snake = [ns for (e, key), ns in best.items() if e == "MuJoCo" and key[0] == "snake195"]
    held = f"On the 195-DoF snake our step is **{min(snake) / best['tarsus', ('snake195', 'step')]:.1f} ×** faster than MuJoCo's fastest of these." if snake else ""
    missing = [e for e in ("MuJoCo", "Pinocchio", "PyBullet") if not any(k == e for k, _ in best)]
    note = f"\nNot here, so not measured: {', '.join(missing)}.\n" if missing else ""
    version = f"MuJoCo {mujoco.__version__}" if mujoco else "MuJoCo"
    return f"""## Other engines, same model files, same run

Whole steps at 1/60 s, one core, **without ground contact** (and without joint ranges) in every engine. tarsus steps under stable PD on every joint; "passive" is the
other engine's step without any drive, "servos" with position servos of the same gains (MuJoCo: three on each ball joint, root without).
In brackets microseconds, before them how many times ours. {version}; its steps are taken inside one call, so Python costs nothing
there. PyBullet's include two calls from Python each, have the base fixed (its URDF reader knows no free joint) and keep joint ranges. {held}
{note}
{step_table(best, models)}
### What linear time earns by itself

Pinocchio's own ways to solve (M + K) q̈ = τ - C, as stable PD asks for, in C++ from its headers: its ABA with K as armature, and
bias force + CRBA + the better of its sparse factor and Eigen's dense one. This is the fair measure of the algorithm: one code base on
both sides, each the better of Pinocchio's two conventions.

{pinocchio_table(best, models)}
{CAN}"""


if __name__ == "__main__":
    common.main(run)
