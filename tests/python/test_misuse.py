"""Mistakes of new users: arguments of the wrong type, objects that outlive others, threads, reference cycles.

Each case must end in an exception that says what to do, never in a crash, and never silently.
"""

import copy
import gc
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

import tarsus

ROOT = pathlib.Path(__file__).parents[2]
MODELS = ROOT / "models"


@pytest.fixture(scope="module")
def model():
    return tarsus.Model.load(MODELS / "humanoid.xml")


# -- drives ---------------------------------------------------------------------------------------------------------


def test_gains_are_assigned_like_every_other_array(model):
    drives = tarsus.Drives.uniform(model)
    view = drives.kp
    drives.kp = np.full(model.nv, 300.0)
    drives.kd = np.full(model.nv, 20.0)
    assert (drives.kp == 300).all() and (drives.kd == 20).all()
    assert (view == 300).all()  # assignment copies: views stay views
    with pytest.raises(tarsus.ShapeError, match="kp"):
        drives.kp = np.zeros(3)
    with pytest.raises(TypeError, match="kd"):
        drives.kd = [1.0] * model.nv


def test_force_limits_come_from_the_file():
    urdf = "<robot name='r'><link name='a'/><link name='b'><inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial></link><joint name='j' type='revolute'><parent link='a'/><child link='b'/><axis xyz='0 1 0'/><limit lower='-1' upper='1' effort='7' velocity='1'/></joint></robot>"
    model = tarsus.Model.from_xml_string(urdf)
    drives = tarsus.Drives.uniform(model, kp=1000, kd=100)
    assert drives.force_limit is None
    drives.take_force_limits(model)
    assert drives.force_limit.tolist() == [7]


@pytest.mark.parametrize("value", [-1, float("nan")])
def test_a_limit_that_is_none_is_named(model, value):
    drives = tarsus.Drives.uniform(model)
    drives.force_limit = np.full(model.nv, float(value))
    with pytest.raises(tarsus.ValueError, match=f'^force_limit of joint ".*": is -?{value}, expected a number, not negative$'):
        drives.check(model)


def test_a_view_of_limits_survives_assignments(model):
    drives = tarsus.Drives.uniform(model)
    drives.force_limit = np.full(model.nv, 50.0)
    view = drives.force_limit
    for value in (60.0, 70.0):
        drives.force_limit = np.full(model.nv, value)
        assert (view == value).all()
    drives.force_limit = None
    drives.force_limit = np.full(model.nv, 80.0)
    assert (view == 80).all()


# -- objects say what they are --------------------------------------------------------------------------------------


def test_every_object_has_a_repr_that_says_something(model):
    data = tarsus.Data(model)
    system = tarsus.ParticleSystem.load("water1")
    verlet = tarsus.VelocityVerlet(system)
    loops = tarsus.Model.load(MODELS / "loops" / "four_bar.xml")
    texts = {
        repr(tarsus.Drives.uniform(model)): ["nv=34"],
        repr(tarsus.Stepper(data, dt=0.01, contacts=True)): ["humanoid", "dt=0.01", "contacts"],
        repr(tarsus.Shape.box(1, 2, 3)): ["box 1 2 3"],
        repr(tarsus.Shape.plane()): ["plane"],
        repr(verlet): ["3 particles", "timestep=2"],
        repr(verlet.step()): ["ok"],
        repr(tarsus.Equalities(loops)): ["four_bar", "1 constraints, 3 rows"],
        repr(tarsus.energy(model, data, data.qpos, data.qvel)): ["kinetic=", "potential="],
        repr(tarsus.momentum(model, data)): ["mass=59.99", "linear=(0, 0, 0)"],
        repr(walk()): ["'humanoid walk'", "loops", "drives 13 joints"],
        repr(tarsus.MotionClip.load(MODELS / "clips" / "humanoid_walk.json")): ["'humanoid walk' (tarsus)", "32 frames, 14 channels"],
        repr(tarsus.cone_limit(model, "swing", "chest", (0, 0, 1), 0.5)): ["'swing' of joint 1"],
        repr(tarsus.tasks.make("CartPole")): ["tarsus.CartPoleTask of 'cart_pole'", "observation_size=4", "control_dt=0.02"],
        repr(tarsus.VectorTask(tarsus.tasks.make("CartPole"), 3, dtype="float32")): ["'cart_pole'", "worlds=3 float32"],
        repr(system.prepare()): ["rank=3", "redundant=0"],
        repr(tarsus.VelocityVerlet(tarsus.ParticleSystem.load("water1")).step().position): ["converged", "iterations=", "residual="],
    }
    for text, words in texts.items():
        assert " object at 0x" not in text
        assert all(word in text for word in words), text


def test_copies_of_pythons_kind(model):
    for same in (model, walk(), tarsus.MotionClip.load(MODELS / "clips" / "humanoid_walk.json"), tarsus.tasks.make("CartPole")):
        assert copy.copy(same) is same and copy.deepcopy([same])[0] is same  # they never change
    for part in (model.joint("chest"), model.body("head")):
        assert copy.copy(part) is part and copy.deepcopy([part])[0] is part
    data, batch, drives = tarsus.Data(model), tarsus.Batch(model, 2), tarsus.Drives.uniform(model, kp=7.0)
    data.qpos[0] = batch.qpos[:, 0] = 3.0
    for new in (copy.copy, copy.deepcopy):
        mine = new(drives)
        mine.kp[:], mine.force_limit, mine.plain = 1.0, np.ones(model.nv), True
        assert drives.kp[6] == 7 and drives.force_limit is None and not drives.plain and mine.kd[6] == drives.kd[6]
        other, others = new(data), new(batch)
        data.qpos[0] = batch.qpos[:, 0] = 4.0
        assert other.qpos[0] == 3 and (others.qpos[:, 0] == 3).all()
        data.qpos[0] = batch.qpos[:, 0] = 3.0


def test_what_a_file_has_wrong_is_pickled(tmp_path):
    """As processes hand on what one of them raises."""
    name = os.fsencode(tmp_path) + b"/odd\xe9.xml"
    with open(name, "wb") as file:
        file.write(b"<mujoco>\n<foo/></mujoco>")
    with pytest.raises(tarsus.InputError) as caught:
        tarsus.Model.load(os.fsdecode(name))
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is tarsus.InputError and str(again) == str(caught.value)
    names = ("severity", "message", "other_law", "file", "line", "column", "element")
    for mine, theirs in zip(again.diagnostics, caught.value.diagnostics, strict=True):
        assert [getattr(mine, name) for name in names] == [getattr(theirs, name) for name in names]
    assert copy.deepcopy(again.diagnostics[0]) is again.diagnostics[0]


# -- arguments ------------------------------------------------------------------------------------------------------


def humanoid():
    return tarsus.Model.load(MODELS / "humanoid.xml")


def body(**arguments):
    return tarsus.RigidWorld().add_body(tarsus.Shape.box(0.1, 0.1, 0.1), 1.0, **arguments)


def weld(rotation):
    return tarsus.Equalities(humanoid(), own=False).add_weld("w", "head", 0, rotation, (0, 0, 1))


def kkt(sigma):
    model = tarsus.Model.load(MODELS / "loops" / "ring.xml")
    rows = tarsus.Equalities(model).nrow
    return tarsus.solve_kkt(model, tarsus.Data(model), model.qpos0, np.zeros(model.nv), sigma=np.full(rows, sigma))


def couple(polynomial, joint="right_knee"):
    return tarsus.Equalities(humanoid(), own=False).add_joint("c", "left_knee", joint, polynomial)


FIXED = """<mujoco><worldbody><body name="base"><geom size=".1"/><body><joint/><geom size=".1"/></body></body>
  <body name="hand" mocap="true"><body name="palm"><geom size=".1"/></body></body></worldbody></mujoco>"""
AT, STILL = humanoid().qpos0, np.zeros(humanoid().nv)


def kinematic(function, *arguments):
    model = humanoid()
    return function(model, tarsus.Data(model), *arguments)


REACH = tarsus.FrameTask("head", position=(0, 0, 1))


def walk():
    return tarsus.Clip.load(str(MODELS / "clips" / "humanoid_walk.json"), humanoid())


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: tarsus.Shape.convex([[0, 0, 0]]), TypeError, "points: is of type list"),
        (lambda: tarsus.Shape.height_field([[0.0]], 1.0, 1.0, 1.0), TypeError, "heights: is of type list"),
        (lambda: tarsus.ParticleSystem(np.ones(1), np.zeros((1, 3)), box=[1]), tarsus.ShapeError, "box: has size 1, expected 3"),
        (lambda: tarsus.ParticleSystem(1.0, np.zeros((1, 3))), TypeError, "mass: is of type float, expected a C-contiguous NumPy array"),
        (lambda: tarsus.ParticleSystem(np.float64(1.0), np.zeros((1, 3))), tarsus.ShapeError, "mass: has shape"),
        (lambda: tarsus.MotionClip.load(MODELS / "clips" / "humanoid_walk.json").save("/nosuch/x.json"), tarsus.Error, "cannot be written: No such file"),
        (lambda: tarsus.RigidWorld(gravity=(0, 0)), tarsus.ShapeError, "gravity: has size 2, expected 3"),
        (lambda: tarsus.RigidWorld(gravity=-9.81), TypeError, "gravity: is -9.81, expected 3 numbers"),
        (lambda: body(position=(0, 0)), tarsus.ShapeError, "position: has size 2, expected 3"),
        (lambda: body(position=("a", 0, 0)), TypeError, "position: is .'a', 0, 0., expected 3 numbers"),
        (lambda: body(orientation=(0, 0, 1)), tarsus.ShapeError, "orientation: has size 3, expected 4"),
        (lambda: body(inertia=(1, 1)), tarsus.ShapeError, "inertia: has size 2, expected 3"),
        (lambda: tarsus.ParticleSystem.load("water1").add_plane(0, (0, 0), (0, 0, 1)), tarsus.ShapeError, "point: has size 2"),
        (lambda: tarsus.ParticleSystem.load("water1").add_linear([0], [(1, 2)], 0.0), tarsus.ShapeError, "coefficients: has size 2"),
        (lambda: tarsus.cone_limit(humanoid(), "c", "neck", (1, 0), 1.0), tarsus.ShapeError, "axis: has size 2, expected 3"),
        (lambda: kkt(sigma=-1.0), ValueError, "sigma: is -1, expected softness, 0 or more"),
        (lambda: kkt(sigma=np.nan), ValueError, "sigma: is nan"),
        (lambda: weld(np.eye(3)[:2]), tarsus.ShapeError, "rotation: has size 6, expected 9"),
        (lambda: tarsus.RigidWorld(friction=np.nan), ValueError, "friction: is nan"),
        (lambda: tarsus.RigidWorld(compliance=-1), ValueError, "compliance: is -1, expected finite, not negative"),
        (lambda: tarsus.RigidWorld().add_surface(compliance=-3), ValueError, "compliance: is -3, expected finite"),
        (lambda: tarsus.RigidWorld(iterations=2**31 - 1), ValueError, "1 to 1,000,000"),
        (lambda: tarsus.RigidWorld.scene("slope:120"), ValueError, "degrees from 0 to below 90"),
        (lambda: tarsus.RigidWorld(sleep=True, sleep_time=-1), ValueError, "sleep_time: is -1, expected not negative"),
        (lambda: tarsus.RigidWorld(sleep_speed=np.nan), ValueError, "sleep_speed: is nan"),
        (lambda: tarsus.RigidWorld(speed_limit=np.nan), ValueError, "speed_limit: is nan"),
        (lambda: tarsus.RigidWorld(relative_compliance=0.0), ValueError, "relative_compliance: is 0"),
        (lambda: body(com=(0, 0, 0.15)), ValueError, "com: is 0.15, expected 0 unless inertia is given"),
        (lambda: body(com=(0, np.nan, 0)), ValueError, "com: is nan"),
        (lambda: body(inertia=(1, 1, 3)), ValueError, "inertia: is with a moment 3 "),
        (lambda: body(inertia=np.array([[1, 0.2, 0], [0, 1, 0], [0, 0, 1.0]])), ValueError, "inertia: is not symmetric"),
        (lambda: tarsus.ParticleSystem.load("water1").prepare(tolerance=np.nan), ValueError, "tolerance: is nan"),
        (lambda: tarsus.ParticleSystem.load("water1").prepare(tolerance=0.0), ValueError, "tolerance: is 0"),
        (lambda: tarsus.VelocityVerlet(tarsus.ParticleSystem.load("water1"), solver="x"), ValueError, "newton_general"),
        (lambda: couple([]), ValueError, 'polynomial of "c": is 0 numbers, expected 1 to 5 coefficients, the constant first'),
        (lambda: couple([0, 1, 0, 0, 0, 0]), ValueError, 'polynomial of "c": is 6 numbers'),
        (lambda: couple([0, 1], joint=99), ValueError, "joint: is 99, expected an index from 0 and below 13"),
        (lambda: couple([0, 1], joint=-1), ValueError, "joint: is -1, expected an index from 0"),
        (lambda: couple([0, 1], joint=1.5), TypeError, "joint: is of type float, expected a name or an index"),
        (lambda: weld([0.0] * 9), ValueError, "rotation: is off by .*, expected a rotation matrix"),
        (lambda: weld([1, 0, 0, 0, 1, 0, 0, 0, -1.0]), ValueError, "rotation: is off by 2"),
        (lambda: weld([np.nan] * 9), ValueError, "rotation: is off by nan"),
        (lambda: tarsus.Equalities(humanoid(), own=False).set_softness(0, 0.0, 4.0), ValueError, "index: is 0"),
        (lambda: tarsus.Stepper(tarsus.Data(humanoid()), speed_limit=0.0), ValueError, "speed_limit: is 0"),
        (lambda: tarsus.Stepper(tarsus.Data(humanoid()), speed_limit=np.nan), ValueError, "speed_limit: is nan"),
        (lambda: tarsus.Stepper(tarsus.Data(humanoid()), restitution=2.0), ValueError, "restitution: is 2"),
        (lambda: tarsus.Stepper(tarsus.Data(humanoid()), contacts=False, restitution=0.5), ValueError, "restitution: is 0.5, expected 0 without contacts"),
        (lambda: tarsus.Batch(humanoid(), 2, contacts=False, restitution=0.5), ValueError, "restitution: is 0.5, expected 0 without contacts"),
        (lambda: tarsus.Stepper(tarsus.Data(humanoid()), tolerance=np.nan), ValueError, "tolerance: is nan"),
        (lambda: tarsus.Batch(humanoid(), 2, max_iterations=0), ValueError, "max_iterations: is 0"),
        (lambda: walk().sample("a"), TypeError, "t: is of type str"),
        (lambda: walk().sample([0.0, 1.0]), TypeError, "t: is of type list"),
        (lambda: walk().sample(np.zeros((2, 2))), tarsus.ShapeError, "t"),
        (lambda: tarsus.VectorTask(tarsus.tasks.make("CartPole"), 2, drives="dense"), ValueError, "drives: is dense"),
        (lambda: tarsus.VectorTask(tarsus.tasks.make("CartPole"), 2).reset(None, np.array([1, 2])), TypeError, "array of uint64"),
        (lambda: tarsus.Model.load(MODELS / "humanoid.xml", floating_base=True), ValueError, "floating_base, --floating-base: is given"),
        (lambda: tarsus.first_bad_world(tarsus.Data(humanoid(), 4), np.zeros(3), -1), ValueError, "n: is -1, expected not negative"),
        (lambda: tarsus.Batch(humanoid(), 2).capture(0, "cap\0.npz"), ValueError, 'file: is "cap", followed by a NUL'),
        (lambda: tarsus.ParticleSystem.load("water1\0"), ValueError, "source: is "),
        (lambda: tarsus.ParticleSystem.load("water1").save("x\0.sys"), ValueError, "path: is "),
        (lambda: tarsus.neutral(3), TypeError, "model: is of type int, expected a tarsus.Model"),
        (lambda: tarsus.random_configuration(None), TypeError, "model: is None, expected a tarsus.Model"),
        (lambda: tarsus.random_configuration(humanoid(), -1), ValueError, "rng: is -1, expected a numpy.random.Generator or"),
        (lambda: tarsus.ik(3, REACH), TypeError, "model: is of type int"),
        (lambda: tarsus.ik(humanoid(), [3], humanoid().qpos0), TypeError, "tasks: is of type int, expected a tarsus.FrameTask"),
        (lambda: tarsus.ik(humanoid(), 3), TypeError, "tasks: is of type int"),
        (lambda: tarsus.ik(humanoid(), REACH, "x"), TypeError, "qpos: is 'x', expected numbers"),
        (lambda: tarsus.ik(humanoid(), REACH, iterations="x"), ValueError, "iterations: is 'x'"),
        (lambda: tarsus.ik(humanoid(), REACH, tolerance=None), ValueError, "tolerance: is None"),
        (lambda: tarsus.ik(humanoid(), REACH, seed=1.5), ValueError, "seed: is 1.5"),
        (lambda: tarsus.ik(humanoid(), REACH, data=3), TypeError, "data: is of type int"),
        (lambda: tarsus.ik(humanoid(), tarsus.FrameTask("head", position="x")), TypeError, "position: is 'x'"),
        (lambda: tarsus.ik(humanoid(), tarsus.FrameTask("head", (0, 0, 1), weight="x")), ValueError, "weight: is 'x'"),
        (lambda: kinematic(tarsus.relative_jacobian, "head", "torso", "x"), TypeError, "point: is 'x', expected numbers"),
        (lambda: kinematic(tarsus.jacobian_derivative, "head", AT, STILL, 3), ValueError, "point: is 3, expected three"),
        (lambda: kinematic(tarsus.jacobian_derivative, "head", AT, None), ValueError, r"qvel: is of shape \(\), expected \(34,\)"),
        (lambda: kinematic(tarsus.inverse_dynamics, AT, STILL, STILL, 3), TypeError, "contacts: is of type int"),
        (lambda: kinematic(tarsus.inverse_dynamics, AT, STILL, STILL, ["x"]), TypeError, "contacts: is of type str, expected a dict"),
        (lambda: kinematic(tarsus.inverse_dynamics, AT, STILL, STILL, [{"force": 1}]), ValueError, "contacts: is without 'links'"),
        (lambda: tarsus.tasks.make([]), TypeError, "task: is of type list, expected a str"),
        (lambda: tarsus.tasks.velocity_task(MODELS / "quadruped.xml", 3), TypeError, "feet: is of type int"),
        (lambda: tarsus.tasks.motion_task(humanoid(), walk(), {}), ValueError, "table: lacks the key 'root'"),
        (lambda: tarsus.Batches(3), TypeError, "groups: is of type int, expected a tarsus.Batch"),
        (lambda: tarsus.Batches(tarsus.Batch(humanoid(), 2)).measure(3), TypeError, "what: is of type int"),
        (lambda: tarsus.Batches(tarsus.Batch(humanoid(), 2)).padded(3), TypeError, "name: is of type int, expected a str"),
        (lambda: tarsus.Batches(tarsus.Batch(humanoid(), 2)).padded("qpos", 3), TypeError, "out: is of type int"),
        (lambda: tarsus.Batches(tarsus.Batch(humanoid(), 2)).padded("qpos", fill="x"), TypeError, "fill: is of type str"),
        *[(lambda n=n: tarsus.LocomotionTask(humanoid(), substeps=n), ValueError, f"substeps: is {n}, expected 1 to 10000") for n in (0, 10001, 10**9)],
        (lambda: tarsus.Batch(humanoid(), 4).rollout(2**31 - 1), ValueError, "steps: is 2147483647, expected fewer: the results do not fit"),
        (lambda: tarsus.Data(humanoid()).apply_force(0, np.ones(3)), ValueError, "body: is 0, the world"),
        (lambda: tarsus.Batch(humanoid(), 2).apply_force("world", np.ones(3)), ValueError, "body: is 0, the world"),
        *[(lambda make=make, b=b: make(tarsus.Model.from_xml_string(FIXED)).apply_force(b, np.ones(3)), ValueError, f"body: is [1-4], {b}, which no joint moves")
          for make in (tarsus.Data, lambda model: tarsus.Batch(model, 2)) for b in ("base", "hand", "palm")],
        (lambda: tarsus.Drives.uniform(tarsus.Model.load(MODELS / "pendulum.xml"), 1, 1, root_kd=5), ValueError, "root_kd: is 5, expected 0 or None for a model without"),
        (lambda: tarsus.Batch(humanoid(), 2).measure(3), TypeError, "what: is of type int, expected a list of names: position"),
        (lambda: tarsus.Batch(humanoid(), 2).measure("energy"), TypeError, "what: is of type str"),
        (lambda: tarsus.Batch(humanoid(), 2).measure(["mass"]), ValueError, 'what: is "mass", expected position'),
        (lambda: setattr(tarsus.Data(humanoid()), "time", np.nan), ValueError, "time: is nan, expected finite \\[s\\]"),
        (lambda: setattr(tarsus.Data(humanoid()), "qpos", ["a"]), TypeError, r"qpos: is of type list with <U1 in it, expected an array or a list of real"),
        (lambda: setattr(tarsus.Data(humanoid()), "qvel", [1j] * 34), TypeError, "qvel: is of type list with complex128 in it"),
        (lambda: setattr(tarsus.Data(humanoid()), "tau", [[1], [1, 2]]), TypeError, "tau: is of type list with rows of different lengths"),
        (lambda: setattr(tarsus.Batch(humanoid(), 2), "qpos", np.ones(43, bool)), TypeError, r"qpos: is an array of bool, expected an array or a list"),
        *[(lambda n=n: tarsus.LocomotionTask(humanoid(), **{n: np.nan}), ValueError, f"^{n}: is nan") for n in ("forward_weight", "control_weight", "healthy_reward")],
    ],
)
def test_wrong_arguments_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_data_in_an_arrays_place_is_called_data(model):
    data = tarsus.Data(model)
    with pytest.raises(TypeError, match="a: is of type .*Data"):
        tarsus.difference(model, data, data.qpos)


def test_a_limit_is_for_the_model_that_it_was_made_for(model):
    dog = tarsus.Model.load(MODELS / "dog.xml")
    cone = tarsus.cone_limit(model, "swing", "chest", (0, 0, 1), 0.5)
    assert (cone.name, model.joints[cone.joint].name) == ("swing", "chest")
    tarsus.Stepper(tarsus.Data(model), limits=[cone]).step()
    with pytest.raises(ValueError, match='limits: is with "swing", which was made for another model'):
        tarsus.Stepper(tarsus.Data(dog), limits=[cone])


def test_a_result_is_in_its_inputs_place_or_apart(model):
    data, memory = tarsus.Data(model), np.concatenate([model.qpos0, np.zeros(3)])
    qpos, speed = memory[: model.nq], np.ones(model.nv)
    expected = tarsus.integrate(model, data, qpos, speed, 0.1)
    with pytest.raises(ValueError, match="out: is in the same memory as qpos"):
        tarsus.integrate(model, data, qpos, speed, 0.1, out=memory[3:])
    assert np.array_equal(tarsus.integrate(model, data, qpos, speed, 0.1, out=qpos), expected)
    tarsus.factor(model, data, model.qpos0, np.ones(model.nv))
    both = np.ones(model.nv + 1)
    with pytest.raises(ValueError, match="out: is in the same memory as y"):
        tarsus.minv(model, data, both[:-1], out=both[1:])
    drives, zero = tarsus.Drives.uniform(model), np.zeros(model.nv)
    with pytest.raises(ValueError, match="joint_inertia: is in the same memory as joint_force"):
        tarsus.drive_terms(model, data, drives, 0.01, model.qpos0, zero, model.qpos0, joint_force=speed, joint_inertia=speed)


def test_a_file_whose_name_is_not_utf8_is_named(tmp_path):
    name = os.path.join(os.fsencode(tmp_path), b"odd\xe9.xml")
    with pytest.raises(tarsus.Error, match=r"odd\\xe9"):
        tarsus.Model.load(os.fsdecode(name))
    with open(name, "w") as file:
        file.write("<mujoco><nonsense/></mujoco>")
    with pytest.raises(tarsus.InputError, match=r"odd\\xe9") as caught:
        tarsus.Model.load(os.fsdecode(name))
    assert all("odd" in f"{d} {d.file} {d!r} {d.text()}" for d in caught.value.diagnostics)


def test_only_ordinary_files_are_read(tmp_path):
    """A pipe is refused; it is not waited for."""
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "folder.npz").mkdir()
    reads = """
import sys, tarsus.learn
read = {"policy": tarsus.learn.Policy.load, "recording": tarsus.view.open_source, "table": lambda path: tarsus.tasks.motion_task(
    tarsus.MODELS / "humanoid.xml", tarsus.MODELS / "clips" / "humanoid_walk.json", path)}[sys.argv[1]]
for path in sys.argv[2:]:
    try:
        read(path)
    except tarsus.InputError as error:
        print(error)
"""
    paths = [str(tmp_path / name) for name in ("none.npz", "folder.npz", "pipe.npz")]
    said = [f"{path}: {what}" for path, what in zip(paths, ("no such file", "this is not an ordinary file", "this is not an ordinary file"))]
    for what in ("policy", "recording", "table"):
        run = subprocess.run([sys.executable, "-c", reads, what, *paths], capture_output=True, text=True, timeout=60)
        assert run.stdout.splitlines() == said, run.stderr


def test_keyframes_are_poses_by_name_and_number():
    text = """<mujoco><worldbody><body><joint name="a"/><geom size="1"/></body></worldbody>
      <keyframe><key name="home" qpos="0.5"/><key qvel="2"/></keyframe></mujoco>"""
    model = tarsus.Model.from_xml_string(text)
    assert model.keyframes == ["home", ""]
    qpos, qvel = model.keyframe("home")
    assert qpos.tolist() == [0.5] and qvel.tolist() == [0]
    qpos, qvel = model.keyframe(1)
    assert qpos.tolist() == [0] and qvel.tolist() == [2]
    for wrong in ("away", 2, -1):
        with pytest.raises(ValueError, match="one of: home, 1"):
            model.keyframe(wrong)
    with pytest.raises(TypeError, match="keyframe: is of type float"):
        model.keyframe(1.0)
    data, batch = tarsus.Data(model), tarsus.Batch(model, 2)
    for number in (np.int64(1), np.uint8(1)):
        assert model.keyframe(number)[1].tolist() == [2]
        data.reset(number), batch.reset(keyframe=number)
        assert data.qvel == 2 and (batch.qvel == 2).all()


def test_too_many_worlds_are_an_error_about_worlds(model):
    with pytest.raises(ValueError, match="worlds: is 2147483647"):
        tarsus.Data(model, worlds=2**31 - 1)


def test_numbers_in_messages_can_be_read(model):
    with pytest.raises(ValueError, match=r"dt: is -1e-09, "):
        tarsus.Stepper(tarsus.Data(model), dt=-1e-9)


def test_a_matrix_that_is_no_rotation_is_refused():
    ball, floor, zero = tarsus.Shape.sphere(1.0), tarsus.Shape.plane(), np.zeros(3)
    for wrong in (np.zeros((3, 3)), 2 * np.eye(3), np.diag([1.0, 1.0, -1.0]), np.ones((3, 3))):
        with pytest.raises(ValueError, match="rotation_a: .* expected a rotation matrix"):
            tarsus.collide(ball, zero, wrong, floor, zero, np.eye(3))
    assert len(tarsus.collide(ball, zero, np.full((3, 3), np.nan), floor, zero, np.eye(3))["distance"]) == 0


def test_a_setup_may_hold_numpys_numbers():
    def falling(gravity):
        system = tarsus.ParticleSystem.load("chain:4")
        system.setup({"gravity": gravity, "pinned": [np.int64(0)]})
        verlet = tarsus.VelocityVerlet(system)
        assert verlet.step(10)
        return system.position.copy()

    plain = falling([0, 0, -2.0])
    assert np.array_equal(falling(np.array([0, 0, -2.0])), plain)
    assert np.array_equal(falling([np.float64(0), 0, np.float32(-2)]), plain)
    with pytest.raises(TypeError, match="setup"):
        falling({1, 2})


# -- constraints of one's own, in a step ----------------------------------------------------------------------------


def hanging(loops):
    """The double pendulum with its end connected to a point within its reach."""
    model = tarsus.Model.load(MODELS / "double_pendulum.xml")
    data = tarsus.Data(model)
    data.qpos = np.array([0.6, -1.2])
    tarsus.kinematics(model, data, data.qpos, data.qvel)
    rotation, position = tarsus.body_pose(model, data, "lower")
    equalities = tarsus.Equalities(model, own=False)
    end = np.array([0, 0, -1.0])
    anchor = position + rotation @ end
    equalities.add_distance("rope", "lower", end, 0, anchor + [0.3, 0, 0.4], 0.5)
    return model, data, equalities, tarsus.Stepper(data, dt=0.001, loops=loops, equalities=equalities), end, anchor


@pytest.mark.parametrize("loops, error", [("shake", 1e-11), ("spook", 1e-4)])
def test_a_stepper_keeps_constraints_of_ones_own(loops, error):
    model, data, equalities, stepper, end, anchor = hanging(loops)
    moved = 0
    for _ in range(1000):
        assert stepper.step() == 0
        tarsus.kinematics(model, data, data.qpos, data.qvel)
        rotation, position = tarsus.body_pose(model, data, "lower")
        tip = position + rotation @ end
        assert abs(np.linalg.norm(tip - anchor - [0.3, 0, 0.4]) - 0.5) < error
        moved = max(moved, np.linalg.norm(tip - anchor))
    assert moved > 0.1
    assert stepper.loops()["worst_row"].startswith("rope")


def test_constraints_have_names_of_their_own():
    """The names distinguish the multipliers."""
    model = tarsus.Model.load(MODELS / "loops/four_bar.xml")
    equalities = tarsus.Equalities(model)
    taken = equalities.row_names[0].split(" (")[0]
    for name in ("", "", "hook"):
        equalities.add_joint(name, 0, None, [0, 0, 0, 0, 0])
    for name in (taken, "hook"):
        with pytest.raises(ValueError, match=f'name: is "{name}", expected a name that no other constraint has'):
            equalities.add_connect(name, 1, [0, 0, 0], 0, [0, 0, 0])
    assert len(set(equalities.row_names)) == equalities.nrow


def test_constraints_of_a_stepper_do_not_grow_under_it():
    model, _, equalities, stepper, _, _ = hanging("spook")
    with pytest.raises(ValueError, match="in use by a Stepper"):
        equalities.add_joint("lock", 0, None, [0, 0, 0, 0, 0])
    del equalities
    gc.collect()
    assert stepper.step() == 0  # it keeps them
    with pytest.raises(ValueError, match="another model"):
        tarsus.Stepper(tarsus.Data(tarsus.Model.load(MODELS / "pendulum.xml")), equalities=tarsus.Equalities(model))


# -- threads --------------------------------------------------------------------------------------------------------


def at_once(work, count=2):
    """Runs `work` in threads. @return the messages of the exceptions"""
    raised = []
    start = threading.Barrier(count)

    def run():
        start.wait()
        try:
            work()
        except ValueError as error:
            raised.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_a_stepper_is_for_one_thread_at_a_time():
    stepper = tarsus.Stepper(tarsus.Data(tarsus.Model.load(MODELS / "snake195.xml")), contacts=True)
    raised = at_once(lambda: [stepper.step() for _ in range(200)])
    assert all("one thread at a time" in text for text in raised)
    assert stepper.status == ["ok"]
    assert raised, "two threads met nowhere in 400 steps"


def vector_task():
    task = tarsus.tasks.make("CartPole")
    vector = tarsus.VectorTask(task, 512)
    vector.reset()
    action = np.zeros((512, task.action_size))
    return vector, lambda: vector.step(action)


def batch_of_many():
    batch = tarsus.Batch(tarsus.Model.load(MODELS / "humanoid.xml"), 64, contacts=True)
    return batch, batch.step


def data_of_a_snake():
    model = tarsus.Model.load(MODELS / "snake195.xml")
    data = tarsus.Data(model)
    return data, lambda: tarsus.crba(model, data, data.qpos)


def stepper_of_a_snake():
    stepper = tarsus.Stepper(tarsus.Data(tarsus.Model.load(MODELS / "snake195.xml")), contacts=True)
    return stepper, stepper.step


def waters():
    system = tarsus.ParticleSystem.load("water216")
    verlet = tarsus.VelocityVerlet(system)
    return system, lambda: verlet.step(10)


@pytest.mark.parametrize("make, look", [
    (vector_task, lambda v: v.step(np.zeros((512, 1)))), (vector_task, lambda v: v.reset()), (vector_task, lambda v: v.bad_worlds),
    (batch_of_many, lambda b: b.copy()), (batch_of_many, lambda b: b.steps), (batch_of_many, lambda b: b.reports),
    (batch_of_many, lambda b: b.parameters), (batch_of_many, lambda b: b.status), (batch_of_many, lambda b: b.state_hash()),
    (batch_of_many, lambda b: b.fault(0)),
    (data_of_a_snake, lambda d: d.reset()), (data_of_a_snake, lambda d: d.sensordata), (data_of_a_snake, lambda d: d.apply_force(1, np.zeros(3))),
    (data_of_a_snake, lambda d: setattr(d, "qpos", d.model.qpos0)), (data_of_a_snake, lambda d: setattr(d, "time", 1.0)),
    (data_of_a_snake, lambda d: d.get(d.qpos, 0)), (data_of_a_snake, lambda d: d.set(d.qpos, 0, d.model.qpos0)), (data_of_a_snake, tarsus.state_hash),
    (data_of_a_snake, lambda d: tarsus.actuation(d.model, d)), (data_of_a_snake, lambda d: setattr(d, "mocap_pos", np.zeros((0, 3)))),
    (data_of_a_snake, lambda d: d.copy()), (data_of_a_snake, lambda d: tarsus.kinematics(d.model, d, d.qpos)),
    (stepper_of_a_snake, lambda s: s.contacts), (stepper_of_a_snake, lambda s: s.rows), (stepper_of_a_snake, lambda s: s.status),
    (waters, lambda p: p.forces()), (waters, lambda p: p.temperature()), (waters, lambda p: p.set_temperature(300)),
])
def test_what_a_thread_works_on_is_refused_to_others(make, look):
    """Another thread can neither read nor change an object during a call."""
    thing, work = make()
    stop = threading.Event()

    def run():
        while not stop.is_set():
            try:
                work()
            except ValueError as error:  # the other thread was first
                assert "one thread at a time" in str(error)

    worker = threading.Thread(target=run)
    worker.start()
    said = ""
    for _ in range(2000):
        time.sleep(0)  # lets the other thread begin a call
        try:
            look(thing)
        except ValueError as error:
            said = str(error)
            break
    stop.set()
    worker.join()
    assert "by another thread, expected one thread at a time" in said


def test_a_system_that_is_being_stepped_cannot_be_changed():
    system = tarsus.ParticleSystem.load("chain:2000")
    verlet = tarsus.VelocityVerlet(system)
    stop = threading.Event()
    refused = []

    def grow():
        while not stop.is_set():
            try:
                system.add_distance(0, 1000, 1.0)
                return
            except ValueError as error:
                refused.append(str(error))

    meddler = threading.Thread(target=grow)
    done = []
    runner = threading.Thread(target=lambda: done.append(verlet.step(300)))
    runner.start()
    while runner.is_alive() and not refused:
        try:
            system.pinned = [0]
            break  # the assignment came between two calls
        except ValueError as error:
            refused.append(str(error))
    meddler.start()
    runner.join()
    stop.set()
    meddler.join()
    if done:
        assert done[0], done[0].message
    assert all("one thread at a time" in text for text in refused)


def test_a_long_call_can_be_interrupted():
    script = """
        import signal, threading, time
        import tarsus

        def cut(call):
            threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
            start = time.monotonic()
            try:
                call()
            except KeyboardInterrupt:
                return time.monotonic() - start
            raise SystemExit("the call came to its end")

        verlet = tarsus.VelocityVerlet(tarsus.ParticleSystem.load("water216"))
        assert cut(lambda: verlet.step(10**9)) < 10
        assert verlet.steps > 0 and abs(verlet.time - verlet.steps * verlet.timestep) < 1e-6 * verlet.time
        now = verlet.system.forces()[1]["potential"]  # of another neighbour list
        assert abs(verlet.energies["potential"] - now) < 1e-9 * abs(now)
        assert verlet.step(2)  # goes on from where it was
        world = tarsus.RigidWorld.scene("box_stack:5")
        assert cut(lambda: world.step(10**9)) < 10
    """
    # A shell's background job ignores SIGINT, and so would its children.
    heed = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60,
                         preexec_fn=heed)
    assert (run.returncode, run.stderr) == (0, "")


# -- garbage --------------------------------------------------------------------------------------------------------


class Flag:
    pass


def test_a_function_that_leads_back_to_its_system_is_collected():
    flag = Flag()
    gone = weakref.ref(flag)

    def build():
        system = tarsus.ParticleSystem(np.ones(1), np.array([[2.0, 0, 0]]), np.zeros((1, 3)))
        verlet = []

        def plane(x, keep=flag):
            assert system and verlet is not None
            return float(x[0, 2]), np.array([[0, 0, 1.0]])

        system.add_user([0], plane, scale=1.0)
        system.prepare()
        verlet.append(tarsus.VelocityVerlet(system, 0.01))
        assert verlet[0].step(3)

    build()
    del flag
    gc.collect()
    assert gone() is None


def test_a_script_with_a_function_of_its_own_ends_quietly():
    script = """
        import numpy as np
        import tarsus

        def plane(x):
            return float(x[0, 2]), np.array([[0, 0, 1.0]])

        bead = tarsus.ParticleSystem(np.ones(1), np.zeros((1, 3)), np.zeros((1, 3)))
        bead.add_user([0], plane, scale=1.0)
        verlet = tarsus.VelocityVerlet(bead, 0.01)
        assert verlet.step(2)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(
    "make, argument",
    [
        (lambda model, wrong: tarsus.Data(wrong), "model"),
        (lambda model, wrong: tarsus.Stepper(wrong), "data"),
        (lambda model, wrong: tarsus.Batch(wrong, 2), "model"),
        (lambda model, wrong: tarsus.Equalities(wrong), "model"),
        (lambda model, wrong: tarsus.Stepper(tarsus.Data(model), equalities=wrong), "equalities"),
        (lambda model, wrong: tarsus.VectorTask(wrong, 2), "task"),
        (lambda model, wrong: tarsus.VelocityVerlet(wrong, 0.001), "system"),
    ],
    ids=["Data", "Stepper", "Batch", "Equalities", "equalities", "VectorTask", "VelocityVerlet"],
)
@pytest.mark.parametrize("wrong", ["a file's name", 0.01, object(), ...], ids=["str", "float", "object", "other class"])
def test_an_argument_of_another_class_says_which_is_expected(model, make, argument, wrong):
    wrong = tarsus.Drives.uniform(model) if wrong is ... else wrong
    with pytest.raises(TypeError, match=f"{argument}: is of type .*{type(wrong).__name__}, expected a tarsus"):
        make(model, wrong)


def test_files_of_other_kinds_are_not_written_under_their_names(tmp_path):
    motion = tarsus.MotionClip.load(MODELS / "clips" / "humanoid_walk.json")
    with pytest.raises(tarsus.ValueError, match=r"walk\.bvh, expected a file that ends in \.json"):
        motion.save(tmp_path / "walk.bvh")
    policy = tarsus.learn.Policy.load(MODELS / "policies" / "humanoid_walk.npz")
    with pytest.raises(tarsus.ValueError, match=r"save_onnx\(\)"):
        policy.save(tmp_path / "walk.onnx")
    assert not list(tmp_path.iterdir())


def test_shapes_that_differ_are_said_as_shapes():
    model = tarsus.Model.load(MODELS / "humanoid.xml")
    clip = tarsus.Clip.load(MODELS / "clips" / "humanoid_walk.json", model)
    with pytest.raises(tarsus.ShapeError, match=r"t: has shape \(2, 2\), expected \(2,\)"):
        clip.sample(np.zeros((2, 2)))
    batch = tarsus.Batch(model, worlds=3, drives=tarsus.Drives.uniform(model))
    with pytest.raises(tarsus.ShapeError, match=r"qpos_target: has shape \(5, 43\), expected \(5, 3, 43\)"):
        batch.rollout(5, qpos_target=np.zeros((5, 43)))


@pytest.mark.parametrize("wrong", [{"duration": -1}, {"duration": 0}, {"duration": float("nan")}, {"duration": 1, "fps": 0}])
def test_a_recording_lasts_for_a_while(wrong):
    from tarsus.view import ModelSource
    from tarsus.view.page import record

    with pytest.raises(ValueError, match=f"{list(wrong)[-1]}: is .*positive"):
        record(ModelSource(tarsus.Model.load(MODELS / "pendulum.xml")), **wrong)


def test_what_the_viewer_cannot_show_is_named(model):
    from tarsus.view import ModelSource, open_source
    from tarsus.view.page import record

    with pytest.raises(TypeError, match="what: is of type Batch, expected a tarsus.Model or"):
        open_source(tarsus.Batch(model, 2))
    with pytest.raises(TypeError, match="model: is of type int, expected a tarsus.Model"):
        ModelSource(3)
    with pytest.raises(TypeError, match="duration: is of type str"):
        record(ModelSource(model), "1")
    calls = {"duration": lambda: record(ModelSource(model), -1), "nowhere": lambda: open_source("nowhere"), "dt": lambda: ModelSource(
        model, stepper=tarsus.Stepper(tarsus.Data(model)), dt=0.1), "plain": lambda: ModelSource(model, plain=True)}
    for name, call in calls.items():
        with pytest.raises(tarsus.Error, match=name):
            call()


def test_an_environment_that_does_not_render_says_so():
    import tarsus.gym

    with pytest.raises(tarsus.ValueError, match="render_mode"):
        tarsus.gym.TarsusEnv("CartPole", render_mode="human")


def test_a_clip_says_what_it_does_not_drive(tmp_path):
    model, text = tarsus.Model.load(MODELS / "humanoid.xml"), (MODELS / "clips" / "humanoid_walk.json").read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not [d for d in tarsus.Clip.load(MODELS / "clips" / "humanoid_walk.json", model).diagnostics if d.severity == "warning"]
    file = tmp_path / "walk.json"
    file.write_text(text.replace('"neck"', '"nek"'))
    with pytest.warns(UserWarning) as said:
        clip = tarsus.Clip.load(file, model)
    assert len(clip.driven) == 12
    found = " ".join(str(w.message) for w in said)
    assert "joints that are not driven and stay at rest: neck" in found and "channels not used: nek" in found
    assert {d.severity for d in clip.diagnostics} >= {"warning"} and isinstance(tarsus.MotionClip.load(file).diagnostics, list)
    mapping = tmp_path / "mapping.json"
    mapping.write_text('{"format": "tarsus-clip-mapping", "version": 1, "source": {"format": "tarsus"}, "scale": -1, "joints": {"neck": {"from": "nek"}}}')
    with pytest.raises(tarsus.InputError, match="the scale is -1, expected a positive number"):
        tarsus.Clip.load(file, model, mapping, partial=True)
