"""Many worlds from Python: views, DLPack, resets, copies, pickles of the state, rollouts, threads, what a call costs."""

import copy
import json
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import tarsus

MODELS = pathlib.Path(__file__).parents[2] / "models"


@pytest.fixture(scope="module")
def humanoid():
    return tarsus.Model.load(str(MODELS / "humanoid.xml"))


def stands(model, worlds, **arguments):
    drives = tarsus.Drives.uniform(model, 300, 30, 0, 0)
    return tarsus.Batch(model, worlds, drives=drives, contacts=True, joint_limits=True, **{"dt": 1 / 60, **arguments})


def test_arrays_are_views_of_worlds(humanoid):
    batch = stands(humanoid, 5)
    assert batch.qpos.shape == (5, humanoid.nq) and batch.qvel.shape == (5, humanoid.nv)
    assert batch.ground_force.shape == (5, humanoid.njoint, 3)
    view = batch.qpos
    address = view.__array_interface__["data"][0]
    view[3, 2] += 0.25
    assert batch.qpos[3, 2] == view[3, 2]
    assert batch.step() == 0
    assert batch.qpos.__array_interface__["data"][0] == address
    assert np.array_equal(view, batch.qpos) and view[3, 2] != humanoid.qpos0[2] + 0.25
    goal = np.tile(humanoid.qpos0, (5, 1))
    batch.qpos_target = goal
    assert np.array_equal(batch.qpos_target, goal)
    with pytest.raises(tarsus.ShapeError, match="qpos_target"):
        batch.qpos_target = humanoid.qpos0[:-1].copy()
    del batch
    assert np.isfinite(view).all()  # a view keeps the batch alive


def test_dlpack_shares_the_memory(humanoid):
    batch = stands(humanoid, 3)
    for name in ("qpos", "qvel", "qpos_target", "ground_force"):
        other = np.from_dlpack(getattr(batch, name))
        assert np.shares_memory(other, getattr(batch, name)), name


def test_a_script_that_ends_with_shared_memory_ends_quietly():
    """A script ends without errors if shared memory outlives it, as with torch tensors."""
    in_a_process(f"""
        import sys
        import numpy as np
        import tarsus

        batch = tarsus.Batch(tarsus.Model.load({str(MODELS / "humanoid.xml")!r}), 2)
        sys.modules["kept beyond the end"] = np.from_dlpack(batch.qpos)
    """)


@pytest.mark.parametrize("contacts", [False, True])
def test_a_batch_is_its_worlds_alone(humanoid, contacts):
    drives = tarsus.Drives.uniform(humanoid, 300, 30, 0, 0)
    random = np.random.default_rng(5)
    speeds = random.uniform(-1, 1, (7, humanoid.nv))
    batch = tarsus.Batch(humanoid, 7, 1 / 60, threads=2, drives=drives, contacts=contacts, joint_limits=contacts)
    batch.qvel = speeds
    for _ in range(30):
        assert batch.step() == 0
    for world in range(7):
        one = tarsus.Batch(humanoid, 1, 1 / 60, drives=drives, contacts=contacts, joint_limits=contacts)
        one.qvel[0] = speeds[world]
        one.rollout(30)
        assert np.array_equal(batch.qpos[world], one.qpos[0]) and batch.state_hash(world) == one.state_hash()
        data = tarsus.Data(humanoid)
        data.qvel = speeds[world]
        stepper = tarsus.Stepper(data, 1 / 60, contacts=contacts, joint_limits=contacts)
        for _ in range(30):
            stepper.step(drives, humanoid.qpos0)
        if contacts:  # lanes solve them in another order, to the same tolerance
            assert np.allclose(batch.qpos[world], data.qpos, atol=1e-5)
        else:
            assert batch.state_hash(world) == tarsus.state_hash(data)


@pytest.mark.parametrize("servo", ['forcerange="-.4 .4"', ""])
def test_servos_beside_loops_are_those_of_worlds_alone(servo):
    """A gripper whose second finger an equality couples to the first, with and without a range."""
    model = tarsus.Model.from_xml_string(f"""<mujoco><worldbody>
      <body><joint name="a" type="slide" axis="1 0 0"/><geom size=".1"/></body><body pos="0 1 0"><joint name="b" type="slide" axis="1 0 0"/><geom size=".2"/></body></worldbody>
      <equality><joint joint1="a" joint2="b"/></equality><actuator><position joint="a" kp="50" kv="2" {servo}/></actuator></mujoco>""")
    batch = tarsus.Batch(model, 9, dt=0.01)
    batch.ctrl[:, 0] = np.linspace(-1, 1, 9)
    for _ in range(20):
        assert batch.step() == 0
    for world in (0, 3, 8):
        data = tarsus.Data(model)
        data.ctrl[0] = batch.ctrl[world, 0]
        stepper = tarsus.Stepper(data, dt=0.01)
        for _ in range(20):
            assert stepper.step() == 0
        np.testing.assert_allclose(batch.qpos[world], data.qpos, rtol=1e-9)
    assert batch.width > 1


def velocity_after_a_step(xml, q, v, worlds, dtype="float64", **options):
    """Of a world that is stepped individually (worlds = 0) or in lanes, whose laws hold."""
    model = tarsus.Model.from_xml_string(f"<mujoco>{xml}</mujoco>")
    world = tarsus.Batch(model, worlds, dtype=dtype, **options) if worlds else tarsus.Data(model, dtype=dtype)
    stepper = world if worlds else tarsus.Stepper(world, **options)
    world.qpos[:], world.qvel[:] = q, v
    assert stepper.step() == 0
    if worlds:
        assert stepper.width > 1 and not stepper.reports["inconsistent"].any() and not stepper.reports["unsolved"].any()
        assert (world.qvel == world.qvel[0]).all()
    return np.array(world.qvel[0] if worlds else world.qvel, float)


NO_CONTACT = '<default><geom contype="0" conaffinity="0"/></default>'


@pytest.mark.parametrize("worlds", [0, 9])
@pytest.mark.parametrize("limits", [True, False])
def test_what_no_loop_holds_tumbles_as_without_loops(worlds, limits):
    """A free box beside a hinge that an equality locks."""
    xml = f"""{NO_CONTACT}<option gravity="0 0 0"/><worldbody><body><freejoint/><geom type="box" size=".1 .2 .3"/></body>
      <body pos="0 1 0"><joint name="a" damping="1"/><geom size=".1"/></body></worldbody>"""
    q, v = [0, 0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 6, -8, 5, 0]
    options = {"dt": 1 / 60, "contacts": limits, "joint_limits": limits}
    lone, beside = (velocity_after_a_step(xml + loop, q, v, worlds, **options)
                    for loop in ("", '<equality><joint joint1="a"/></equality>'))
    np.testing.assert_allclose(beside, lone, rtol=0, atol=1e-12)


def test_loops_that_turn_fast_step_in_lanes_as_alone():
    """Links that turn by a radian a step, in a tree that a connection closes and in one beside it."""
    def chain(name, at):
        return (f'<body pos="{at} 0 0"><joint type="ball"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>'
                '<body pos=".3 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .2 .2 0" size=".02"/>'
                f'<body name="{name}" pos=".2 .2 0"><joint axis="0 0 1"/><geom size=".05" pos=".1 0 .1"/></body></body></body>')
    xml = f"""{NO_CONTACT}<worldbody>{chain("a", 0)}{chain("b", 1)}</worldbody><equality><connect body1="a" anchor=".1 0 0"/></equality>"""
    rng, most = np.random.default_rng(0), 0
    for _ in range(20):
        q, v = [1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0], rng.normal(size=10) * 20
        one, lanes = (velocity_after_a_step(xml, q, v, worlds, dt=1 / 60, contacts=True, joint_limits=True) for worlds in (0, 9))
        np.testing.assert_allclose(lanes, one, rtol=0, atol=1e-6)
        most = max(most, np.abs(one).max())
    assert most > 10


@pytest.mark.parametrize("worlds", [0, 9])
@pytest.mark.parametrize("less", [1e-2, 1e-3, 1e-4])
def test_rows_that_nearly_depend_on_one_another_hold_like_others(worlds, less):
    """Two equalities that together hold both hinges at zero."""
    xml = f"""{NO_CONTACT}<worldbody><body><joint name="a" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
      <body pos="0 1 0"><joint name="b" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body></worldbody><equality>"""
    apart = '<joint joint1="a"/><joint joint1="b"/></equality>'
    near = f'<joint joint1="a" joint2="b"/><joint joint1="a" joint2="b" polycoef="0 {1 - less} 0 0 0"/></equality>'
    q, v, options = [0.01, -0.02], [0.3, 0.1], {"dt": 0.005, "contacts": True, "joint_limits": True}
    expected = velocity_after_a_step(xml + apart, q, v, worlds, **options)
    np.testing.assert_allclose(velocity_after_a_step(xml + near, q, v, worlds, **options), expected, rtol=0, atol=2e-3)


@pytest.mark.parametrize("worlds", [0, 9])
def test_equalities_hold_a_ball_that_the_floor_pushes_up(worlds):
    """One locks a hinge and one couples the ball's height to it: together with the contact they leave little to move."""
    for coupling in (1, 0.1, 0.03):
        xml = f"""<worldbody><geom type="plane" size="1 1 1"/><body><joint name="a"/><geom size=".05" contype="0" conaffinity="0"/>
          <body><joint name="b" type="slide"/><geom size=".1"/></body></body></worldbody>
          <equality><joint joint1="a" joint2="b" polycoef="0 {coupling} 0 0 0"/><joint joint1="a"/></equality>"""
        speeds = velocity_after_a_step(xml, [0, 0], [0, 0], worlds, contacts=True, joint_limits=True)
        np.testing.assert_allclose(speeds, 0, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-9), ("float32", 1e-3)])
@pytest.mark.parametrize("partner", ["range", "contact"])
def test_a_tendons_range_yields_in_lanes_as_alone(partner, dtype, tolerance):
    """A range over two joints, which contradicts a range over one of them, or a contact with the floor."""
    tendons = '<fixed limited="true" range="{} -.2"><joint joint="a" coef=".01"/><joint joint="b" coef="{}"/></fixed>'
    if partner == "range":
        floor, tendons = "", tendons.format(-1, -0.5) + '<fixed limited="true" range="-1 -.1"><joint joint="b" coef=".7"/></fixed>'
    else:
        floor, tendons = '<geom type="plane" size="5 5 .1" pos="0 0 -.5"/>', tendons.format(-2, 0.5)
    xml = f"""<worldbody>{floor}<body><joint name="a" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .5 0 0" size=".05" contype="0" conaffinity="0"/>
      <body pos=".5 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .1 .1 -.3" size=".03"/></body></body></worldbody>
      <tendon>{tendons}</tendon>"""
    q, v, options = [0.5, 0.3], [1, -2], {"dtype": dtype, "dt": 1 / 60, "contacts": True, "joint_limits": True}
    one, lanes = (velocity_after_a_step(xml, q, v, worlds, **options) for worlds in (0, 9))
    np.testing.assert_allclose(lanes, one, rtol=0, atol=tolerance * np.abs(one).max())
    batch = tarsus.Batch(tarsus.Model.from_xml_string(f"<mujoco>{xml}</mujoco>"), 9, **options)
    batch.qpos[:], batch.qvel[:] = np.linspace(-0.4, 0.2, 9)[:, None] * [1, -1], 0  # most neighbours are within the ranges
    batch.qpos[4], batch.qvel[4] = q, v
    assert batch.step() == 0
    assert (batch.qvel[4] == lanes.astype(dtype)).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_tendon_over_one_joint_is_as_hard_in_lanes_as_alone(dtype):
    """Two such ranges contradict each other, in a pose in which the joint feels another mass than in the reference pose."""
    xml = f"""{NO_CONTACT}<worldbody><body><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".05"/>
      <body pos=".5 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .1 .1 -.3" size=".03"/></body></body></worldbody>
      <tendon><fixed limited="true" range="-1 .1"><joint joint="b" coef=".7"/></fixed>
      <fixed limited="true" range=".2 1"><joint joint="b" coef=".5"/></fixed></tendon>"""
    options = {"dtype": dtype, "dt": 1 / 60, "contacts": True, "joint_limits": True}
    one, lanes = (velocity_after_a_step(xml, [0.5, 0.3], [1, -2], worlds, **options) for worlds in (0, 9))
    np.testing.assert_allclose(lanes, one, rtol=0, atol=1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("geom", ["type='sphere' size='.08'", "type='capsule' size='.08 .1' euler='90 0 0'"])
def test_what_flies_past_under_mujocos_law_is_not_touched(geom):
    """With a solref that the steps resolve, a contact acts where shapes touch, alone and in lanes. The upper shape is
    50 um above the lower one and sinks as it flies past: MuJoCo has no contact in this step either."""
    model = tarsus.Model.from_xml_string(
        f"""<mujoco><option timestep='.002' gravity='0 0 0'/><default><geom solref='.015 1'/></default><worldbody>
        <body><freejoint/><geom {geom}/></body>
        <body pos='0 0 .16005'><freejoint/><geom {geom}/></body></worldbody></mujoco>"""
    )
    qvel = np.zeros(12)
    qvel[6], qvel[8] = 3, -0.4
    alone = tarsus.Data(model)
    alone.qvel = qvel
    stepper = tarsus.Stepper(alone)
    lanes = tarsus.Batch(model, 2)
    lanes.reset(None, model.qpos0, qvel)
    assert not lanes.contacts(0)
    stepper.step(), lanes.step()
    assert stepper.rows["contacts"] == 0 and np.array_equal(np.asarray(alone.qvel), qvel)
    assert np.array_equal(lanes.qvel[0], qvel)


def test_capsules_side_by_side_touch_in_lanes_where_they_touch_alone():
    """The first is the world's."""
    xml = """<worldbody><geom type="capsule" size=".05 .1"/><body pos=".09 0 0"><joint type="slide" axis="1 0 0"/>
      <joint axis="0 1 0"/><joint axis="1 0 0"/><geom type="capsule" size=".05 .13"/></body></worldbody>"""
    for turn in (0.004, 0.01, 0.015):
        one, lanes = (velocity_after_a_step(xml, [0, turn, turn], [-0.5, 0.1, 0.3], worlds, contacts=True, tolerance=1e-12)
                      for worlds in (0, 9))
        np.testing.assert_allclose(lanes, one, rtol=0, atol=1e-9)


def test_save_is_pickled_and_goes_on_to_the_bit(humanoid):
    batch = stands(humanoid, 4)
    batch.qvel[:] = np.random.default_rng(1).uniform(-1, 1, batch.qvel.shape)
    batch.qpos_target[2, 0] = np.nan
    batch.rollout(20)
    text = pickle.dumps(batch.save())
    twin = batch.copy()
    batch.rollout(20)
    twin.rollout(20)
    other = stands(humanoid, 4, threads=2)
    other.restore(pickle.loads(text))
    other.rollout(20)
    assert batch.state_hash() == twin.state_hash() == other.state_hash()
    assert other.fault(2) == "bad_input: qpos_target[0] is nan" and other.status.tolist() == [0, 0, 1, 0]
    assert other.steps.tolist() == [40, 40, 0, 40]
    for key in ("residual", "iterations", "touching"):
        assert np.array_equal(other.reports[key], batch.reports[key])
    with pytest.raises(TypeError, match="save"):
        pickle.dumps(batch)
    with pytest.raises(tarsus.ShapeError):
        stands(humanoid, 5).restore(pickle.loads(text))
    broken = pickle.loads(text)
    broken["memory"] = broken["memory"][:-9]
    with pytest.raises(ValueError, match="memory"):
        other.restore(broken)
    del broken["memory"]
    with pytest.raises(ValueError, match="memory"):
        other.restore(broken)
    before = other.state_hash()
    with pytest.raises(ValueError, match="memory|terms"):
        other.restore({**(saved := pickle.loads(text)), "memory": saved["memory"][:64] + b"\xff" * (len(saved["memory"]) - 64)})
    for steps in (-1, 2**63 - 1):
        with pytest.raises(ValueError, match="state.steps: is"):
            other.restore({**saved, "steps": np.array([40, 40, 0, steps])})
    with pytest.raises(ValueError, match="state.reports: is -1"):
        other.restore({**saved, "reports": b"\xff" * len(saved["reports"])})
    assert other.state_hash() == before
    other.step(), batch.step()
    assert other.state_hash() == batch.state_hash()


def test_reset_by_mask(humanoid):
    batch = stands(humanoid, 6)
    batch.qvel[:] = 0.5
    batch.rollout(10)
    before = batch.qpos.copy()
    mask = np.array([True, False, False, True, False, False])
    start = humanoid.qpos0.copy()
    start[2] += 1
    batch.reset(mask, start)
    assert np.array_equal(batch.qpos[mask], np.tile(start, (2, 1))) and (batch.qvel[mask] == 0).all()
    assert np.array_equal(batch.qpos_target[mask], np.tile(start, (2, 1)))
    assert np.array_equal(batch.qpos[~mask], before[~mask])
    assert batch.steps.tolist() == [0, 10, 10, 0, 10, 10]
    batch.reset()
    fresh = stands(humanoid, 6)
    batch.rollout(10), fresh.rollout(10)
    assert batch.state_hash() == fresh.state_hash()
    batch.qvel_target[0] = 0.5
    batch.reset(None, None, batch.qvel_target[0])  # a part of the array that is written
    assert (batch.qvel == 0.5).all()
    memory = np.zeros(6 * 6 * humanoid.nv)
    with pytest.raises(ValueError, match="out: is in the same memory as point"):
        batch.jacobian("head", memory[:18].reshape(6, 3), out=memory.reshape(6, 6, -1))
    with pytest.raises(tarsus.ShapeError, match="mask"):
        batch.reset(np.array([True]))
    with pytest.raises(TypeError, match="mask"):
        batch.reset(np.zeros(6, int))


ARM = """<mujoco><option timestep="0.01"/><worldbody><body name="arm"><joint name="j" axis="0 1 0" damping="0.1"/>
  <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.5" mass="1"/></body></worldbody>
  <actuator><motor name="m" joint="j"/></actuator><sensor><jointpos joint="j"/><jointvel joint="j"/></sensor></mujoco>"""


def test_rollout_writes_where_it_is_told():
    model = tarsus.Model.from_xml_string(ARM)
    batch, other = (tarsus.Batch(model, 9, 0.01, threads=t) for t in (1, 2))
    ctrl = np.random.default_rng(2).uniform(-1, 1, (25, 9, 1))
    states, sensors = np.full((25, 9, 2), np.nan), np.full((25, 9, 2), np.nan)
    out = batch.rollout(ctrl=ctrl, states=states, sensors=sensors)
    assert out[0] is states and out[1] is sensors
    assert np.array_equal(states, sensors) and np.array_equal(states[-1, :, :1], batch.qpos)
    for i in range(25):
        other.ctrl = ctrl[i]
        assert other.step() == 0
        assert np.array_equal(states[i, :, 1:], other.qvel)
    assert batch.rollout(3, states=False) == (None, None)
    with pytest.raises(tarsus.ShapeError, match="ctrl"):
        batch.rollout(4, ctrl=ctrl)
    with pytest.raises(TypeError, match="states"):
        batch.rollout(ctrl=ctrl, states=np.zeros((25, 9, 2), np.float32))
    # Beside MuJoCo's law, in closed form: one step of an arm that hangs at rest, under a torque.
    one = tarsus.Batch(model, 1, 0.01)
    one.ctrl[0, 0] = 1
    one.step()
    inertia = tarsus.crba(model, tarsus.Data(model), model.qpos0)[0, 0] + 0.01 * 0.1
    assert one.qvel[0, 0] == pytest.approx(0.01 / inertia, rel=1e-12)


def test_bad_worlds_are_named_and_stay(humanoid):
    batch = stands(humanoid, 8)
    batch.qvel[5, 7] = 1e30
    batch.tau[6, 3] = np.inf
    assert batch.step() == 2
    assert batch.status.tolist() == [0, 0, 0, 0, 0, 3, 1, 0]
    assert batch.fault(5) == "too_fast: qvel[7] is 1e+30" and batch.fault(6) == "bad_input: tau[3] is inf"
    assert batch.fault(0) == "ok" and batch.steps.tolist() == [1, 1, 1, 1, 1, 0, 0, 1]
    assert "2 not ok" in repr(batch)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_quaternions_of_any_length_turn_alike(humanoid, dtype):
    """Quaternions of qpos and of targets, which are divided by their norm as in MuJoCo."""
    random = np.random.default_rng(4)
    turned = [j.qpos.stop - 4 for j in map(humanoid.joint, range(humanoid.njoint)) if j.nq >= 4]
    assert len(turned) == 9

    def drawn(worlds, longer):
        q = np.tile(humanoid.qpos0, (worlds, 1))
        for at in turned:
            q[:, at : at + 4] += random.uniform(-0.2, 0.2, (worlds, 4))
            q[:, at : at + 4] /= np.linalg.norm(q[:, at : at + 4], axis=1, keepdims=True)
        scaled = q.copy()
        for at in turned:
            scaled[:, at : at + 4] *= random.uniform(0.2, longer, (worlds, 1))
        return q, scaled

    (q, longer), (target, longer_target) = drawn(21, 4), drawn(21, 4)
    unit, other = (stands(humanoid, 21, dt=1 / 60, dtype=dtype) for _ in range(2))
    unit.qpos[:], unit.qpos_target[:] = q, target
    other.qpos[:], other.qpos_target[:] = longer, longer_target
    near = 1e-11 if dtype == "float64" else 1e-4
    here, there = (b.measure(["position"])["position"] for b in (unit, other))
    assert np.abs(here - there).max() < near
    assert unit.step() == 0 and other.step() == 0
    assert np.abs(unit.qpos - other.qpos).max() < near and np.abs(unit.qvel - other.qvel).max() < 1000 * near
    # Zero quaternions mean no rotation.
    for b, root in ((unit, [1, 0, 0, 0]), (other, 0)):
        b.reset()
        b.qpos[7, 3:7], b.qpos_target[3, turned[2] : turned[2] + 4] = root, root
        assert b.step() == 0
    assert np.array_equal(unit.qpos, other.qpos) and np.array_equal(unit.qvel, other.qvel)
    other.qpos[7, turned[2]] = 1e200 if dtype == "float64" else 1e25
    assert other.step() == 1 and other.fault(7).startswith(f"bad_input: qpos[{turned[2]}] is ")
    data = tarsus.Data(humanoid)
    data.qpos[:] = longer[0]
    alone = tarsus.Stepper(data, dt=1 / 60)
    assert alone.step() == 0
    assert all(abs(np.linalg.norm(data.qpos[at : at + 4]) - 1) < 1e-14 for at in turned)
    data.qpos[3:7] = 0
    assert alone.step() == 0


def test_measures_are_those_of_the_worlds(humanoid):
    batch = stands(humanoid, 3)
    batch.qvel[:] = np.random.default_rng(3).uniform(-1, 1, batch.qvel.shape)
    batch.rollout(5)
    found = batch.measure()
    data = tarsus.Data(humanoid)
    for world in range(3):
        tarsus.kinematics(humanoid, data, batch.qpos[world].copy(), batch.qvel[world].copy())
        head = humanoid.body_id("head")
        pose = tarsus.body_pose(humanoid, data, head)
        assert np.array_equal(found["position"][world, head], pose[1])
        energy = tarsus.energy(humanoid, data, batch.qpos[world].copy(), batch.qvel[world].copy())
        assert found["energy"][world, 0] == energy.kinetic
        point = np.array([0.1 * world, -0.2, 1.3])
        points = np.tile(point, (3, 1))
        assert np.array_equal(batch.jacobian("head", points)[world], tarsus.jacobian(humanoid, data, head, point))
        com = tarsus.jacobian(humanoid, data, head, np.array(pose[1] + pose[0] @ humanoid.bodies[head].com))
        assert np.allclose(batch.jacobian("head")[world], com, atol=1e-14)
    assert list(batch.measure(["com"])) == ["com"]
    nothing = tarsus.Model.from_xml_string("<mujoco><worldbody><geom type='sphere' size='1'/></worldbody></mujoco>")
    assert not tarsus.Batch(nothing, 2).measure(["com"])["com"].any()
    with pytest.raises(tarsus.ShapeError, match="point"):
        batch.jacobian("head", np.zeros((2, 3)))
    with pytest.raises(ValueError, match="body"):
        batch.jacobian(99)
    with pytest.raises(ValueError, match="what"):
        batch.measure(["smell"])


def test_pushes_are_jacobians_transposed(humanoid):
    batch, data = stands(humanoid, 3), tarsus.Data(humanoid)
    force, point = np.array([3.0, -2.0, 5.0]), np.array([0.3, 0.2, 1.1])
    tarsus.kinematics(humanoid, data, data.qpos)
    J = tarsus.jacobian(humanoid, data, "head", point)
    batch.apply_force("head", force, point, np.array([False, True, False]))
    data.apply_force("head", force, point)
    assert np.allclose(batch.tau[1], J[3:].T @ force, atol=1e-12) and not batch.tau[[0, 2]].any()
    assert np.array_equal(data.tau, batch.tau[1])
    data.apply_force("head", -force, point)
    assert np.allclose(data.tau, 0, atol=1e-12)
    with pytest.raises(tarsus.ShapeError, match="force"):
        batch.apply_force("head", np.zeros((2, 3)))
    with pytest.raises(ValueError, match="one world"):
        tarsus.Data(humanoid, 4).apply_force("head", force)


def test_worlds_have_numbers_of_their_own(humanoid):
    random = np.random.default_rng(4)
    batch, same = stands(humanoid, 6), stands(humanoid, 6)
    batch.set_parameters(mass_scale=np.array([1, 2, 1, 1, 1, 1.0]), friction_scale=np.array([1, 1, 0.1, 1, 1, 1.0]))
    gravity = np.tile([0, 0, -9.81], (6, 1))
    gravity[3, 2] = -1.62
    batch.set_parameters(gravity=gravity, kp_scale=np.array([1, 1, 1, 1, 0.5, 1.0]))
    assert set(batch.parameters) == {"mass_scale", "friction_scale", "gravity", "kp_scale"}
    assert batch.parameters["mass_scale"].shape == (6, humanoid.nbody)
    for b in (batch, same):
        b.qvel[:, :2] = 0.3
        b.rollout(120, states=False)
    for world in (0, 5):  # factors of 1 change nothing, to the bit
        assert batch.state_hash(world) == same.state_hash(world)
    for world in (1, 2, 3, 4):
        assert batch.state_hash(world) != same.state_hash(world)
    # The mean ground force over 5 s is the weight up to the change of momentum: at most 0.5 m/s of 49.
    force = np.zeros(6)
    for _ in range(300):
        batch.rollout(1, states=False)
        force += batch.ground_force[:, :, 2].sum(axis=1) / 300
    assert np.allclose(force / (humanoid.total_mass() * 9.81), [1, 2, 1, 1.62 / 9.81, 1, 1], rtol=0, atol=0.01)
    other = stands(humanoid, 6, threads=2)
    other.restore(pickle.loads(pickle.dumps(batch.save())))
    twin = batch.copy()
    for b in (batch, other, twin):
        b.rollout(30, states=False)
    assert batch.state_hash() == other.state_hash() == twin.state_hash()
    masses = random.uniform(0.8, 1.2, (6, humanoid.nbody))
    batch.set_parameters(mass_scale=masses, mask=np.array([0, 0, 0, 0, 0, 1], bool))
    assert np.array_equal(batch.parameters["mass_scale"][5], masses[5]) and batch.parameters["mass_scale"][1, 0] == 2
    batch.clear_parameters()
    assert batch.parameters == {}
    with pytest.raises(ValueError, match=r"mass_scale\[2, 0\]"):
        batch.set_parameters(mass_scale=np.array([1, 1, -1, 1, 1, 1.0]))
    with pytest.raises(tarsus.ShapeError, match="kd_scale"):
        batch.set_parameters(kd_scale=np.ones(5))
    with pytest.raises(tarsus.ShapeError, match="gravity"):
        batch.set_parameters(gravity=np.ones(6))
    with pytest.raises(ValueError, match="force_scale"):  # these drives have no limits
        batch.set_parameters(force_scale=np.ones(6))


SPRUNG = """<mujoco><worldbody><body pos="0 0 1"><joint name="a" axis="0 1 0" stiffness="5 3 20" damping="{} {} {}"/>
  <inertial pos=".1 0 -.2" mass="{}" diaginertia="{} {} {}"/><site name="on"/><body pos="0 0 -.4"><joint name="b" axis="0 1 .2"/>
  <inertial pos="0 .05 -.2" mass=".75" diaginertia=".02 .02 .01"/><site name="tip" pos=".1 0 -.4"/></body></body></worldbody><tendon>
  <fixed stiffness="20" damping=".5"><joint joint="a" coef="1"/><joint joint="b" coef="-.5"/></fixed>
  <spatial stiffness="90" springlength=".2"><site site="on"/><site site="tip"/></spatial></tendon></mujoco>"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("arguments", [{}, {"integrator": "rk4"}, {"actuation": "explicit"}])
def test_passive_forces_have_the_worlds_masses_and_damping(arguments, dtype):
    """Springs of tendons, polynomial springs and dampers give the same bits as in a model with these numbers."""
    numbers = np.array([0.25, 0.5, 1.5, 1.5, 0.05, 0.06, 0.03])
    model = tarsus.Model.from_xml_string(SPRUNG.format(*numbers))
    scales = np.array([[1, 1], [2, 0.5], [0.25, 4], [8, 0]])
    batch = tarsus.Batch(model, 4, 0.005, dtype=dtype, **arguments)
    batch.set_parameters(mass_scale=np.stack([np.ones(4), scales[:, 0], np.ones(4)], axis=1).copy(),
                         damping_scale=np.stack([scales[:, 1], np.ones(4)], axis=1).copy())
    batch.qvel[:] = [2, -3]
    batch.rollout(60, states=False)
    for world, (mass, damping) in enumerate(scales):
        own = tarsus.Model.from_xml_string(SPRUNG.format(*numbers * np.repeat([damping, mass], [3, 4])))
        one = tarsus.Batch(own, 1, 0.005, dtype=dtype, **arguments)
        one.qvel[:] = [2, -3]
        one.rollout(60, states=False)
        assert np.array_equal(batch.qpos[world], one.qpos[0]) and np.array_equal(batch.qvel[world], one.qvel[0])


FISH = """<mujoco><option density="400"/><worldbody><body name="trunk" pos="0 0 1"><freejoint/>
  <inertial pos=".05 0 .1" mass="{}" diaginertia="{} {} {}"/><body name="fin" pos="0 .3 0"><inertial pos="0 .05 0" mass="{}" diaginertia="{} {} {}"/></body>
  </body></worldbody></mujoco>"""


def test_drag_feels_the_worlds_masses_of_bodies_on_one_link():
    """The result equals to the bit that of a model with these masses. Drag and lift act on the mass of both bodies."""
    numbers = np.array([0.5, 0.01, 0.02, 0.015, 0.25, 0.002, 0.0005, 0.002])
    scales = np.array([[1, 1], [0.25, 4], [8, 0.5]])
    batch = tarsus.Batch(tarsus.Model.from_xml_string(FISH.format(*numbers)), 3)
    batch.set_parameters(mass_scale=np.insert(scales, 0, 1, axis=1))
    batch.qvel[:] = [2, -3, 1, 4, -2, 1]
    batch.rollout(30, states=False)
    for world, scale in enumerate(scales):
        one = tarsus.Batch(tarsus.Model.from_xml_string(FISH.format(*numbers * np.repeat(scale, 4))), 1)
        one.qvel[:] = [2, -3, 1, 4, -2, 1]
        one.rollout(30, states=False)
        assert np.array_equal(batch.qpos[world], one.qpos[0]) and np.array_equal(batch.qvel[world], one.qvel[0])


def test_reports_are_of_the_worlds_own_last_step(humanoid):
    drives = tarsus.Drives.uniform(humanoid, 300, 30, 0, 0)
    drives.force_limit = np.r_[np.full(6, np.inf), np.full(humanoid.nv - 6, 5.0)]
    batch = tarsus.Batch(humanoid, 3, drives=drives)  # force limits alone
    batch.qpos_target[1, 7:] += 0.5
    batch.step()
    assert np.array_equal(batch.reports["saturated"] > 3, [False, True, False]) and (batch.reports["iterations"] > 0).all()
    fish = tarsus.Batch(tarsus.Model.from_xml_string(FISH.format(0.5, 0.01, 0.02, 0.015, 0.25, 0.002, 0.0005, 0.002)), 3)
    fish.qvel[1, 0] = 30  # its drag needs rows, that of slow bodies does not
    fish.step()
    assert (fish.reports["iterations"] > 0).all() and (fish.reports["residual"] < 1e-6).all()

def test_factors_on_limits_go_with_the_limits(humanoid):
    batch = stands(humanoid, 2)
    drives = tarsus.Drives.uniform(humanoid, 300, 30, 0, 0)
    limited = tarsus.Drives.uniform(humanoid, 300, 30, 0, 0)
    limited.force_limit = np.full(humanoid.nv, 100.0)
    limited.force_limit[:6] = np.inf
    batch.set_drives(limited)
    batch.set_parameters(force_scale=np.array([1, 2.0]), kp_scale=np.array([1, 2.0]))
    batch.set_drives(drives)
    assert set(batch.parameters) == {"kp_scale"}
    with pytest.raises(ValueError, match="mass_scale"):
        batch.set_parameters(mass_scale=-np.ones(2))
    assert set(batch.parameters) == {"kp_scale"}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_factors_on_the_models_own_actuators_act_in_their_worlds(dtype):
    """The factors' law is MuJoCo's with the same factors on gainprm, biasprm and forcerange, at the start of the step."""
    mujoco = pytest.importorskip("mujoco")
    path = tarsus.MODELS / "quadruped.xml"
    oracle, model = mujoco.MjModel.from_xml_path(str(path)), tarsus.Model.load(path)
    random = np.random.default_rng(2)
    factors = {name: random.uniform(0.5, 1.5, (5, model.nu)) for name in ("actuator_gain_scale", "actuator_damping_scale", "actuator_force_scale")}
    batch = tarsus.Batch(model, 5, 1e-5, dtype=dtype, contacts=False, joint_limits=False)
    batch.set_parameters(**factors)
    qpos, ctrl = model.keyframe("stance")[0], random.uniform(-1, 1, (5, model.nu))
    batch.reset(qpos=np.array(qpos, dtype))
    batch.ctrl[:] = ctrl
    batch.step()
    state = mujoco.MjData(oracle)
    gain, bias, force = oracle.actuator_gainprm.copy(), oracle.actuator_biasprm.copy(), oracle.actuator_forcerange.copy()
    for world in range(5):
        g, d = factors["actuator_gain_scale"][world][:, None], factors["actuator_damping_scale"][world][:, None]
        oracle.actuator_gainprm[:, :3] = gain[:, :3] * np.hstack([g, g, d])
        oracle.actuator_biasprm[:, :3] = bias[:, :3] * np.hstack([g, g, d])
        oracle.actuator_forcerange[:] = force * factors["actuator_force_scale"][world][:, None]
        mujoco.mj_resetData(oracle, state)
        oracle.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        state.qpos[:], state.ctrl[:] = qpos, ctrl[world]
        mujoco.mj_forward(oracle, state)
        assert batch.qacc[world] == pytest.approx(state.qacc, rel=5e-3, abs=1e-2 * np.abs(state.qacc).max())
    other = pickle.loads(pickle.dumps(batch.save()))
    twin = batch.copy()
    batch.rollout(20, states=False)
    twin.restore(other)
    twin.rollout(20, states=False)
    assert batch.state_hash() == twin.state_hash() and set(twin.parameters) == set(factors)
    with pytest.raises(ValueError, match="without drives"):
        stands(model, 5).set_parameters(actuator_gain_scale=np.ones(5))


WEIGHED = """<mujoco><option gravity="{} {} {}" timestep="0.005"><flag energy="enable"/></option><worldbody>
  <body name="post" pos="0 0 1"><inertial pos=".01 0 .2" mass="{}" diaginertia="{} {} {}"/><site name="foot"/>
    <body name="arm"><joint type="ball" damping=".1"/><inertial pos="0 .1 -.1" mass="{}" diaginertia="{} {} {}"/><site name="shoulder" pos="0 0 .1"/>
      <body name="tool" pos="0 0 -.3"><inertial pos=".1 0 0" mass="{}" diaginertia="{} {} {}"/><site name="wrist" euler="20 30 0"/>
        <body name="fin" pos="0 .2 0"><joint axis="1 0 1" stiffness="3"/><inertial pos="0 0 .1" mass="{}" diaginertia="{} {} {}"/><site name="fin"/></body></body></body></body></worldbody>
  <sensor><force site="foot"/><torque site="foot"/><force site="shoulder"/><torque site="shoulder"/><force site="wrist"/><torque site="wrist"/><force site="fin"/><torque site="fin"/>
    <accelerometer site="fin"/><framelinacc objtype="site" objname="foot"/><subtreecom body="post"/><subtreelinvel body="arm"/><subtreeangmom body="arm"/><e_potential/><e_kinetic/></sensor></mujoco>"""


@pytest.mark.parametrize("lanes", [True, False], ids=["in lanes", "one at a time"])
def test_sensors_feel_the_worlds_masses_and_gravity(lanes):
    """As in a model file with those numbers, and as in MuJoCo in the same state: that of the last step's start for force and torque
    sensors."""
    mujoco = pytest.importorskip("mujoco")
    numbers = np.array([3, 0.1, 0.2, 0.15, 0.8, 0.01, 0.02, 0.015, 0.5, 0.004, 0.002, 0.003, 0.25, 0.002, 0.001, 0.002])
    scales = np.array([[1, 1, 1, 1], [0.25, 4, 2, 0.5], [8, 0.5, 0.1, 3]])
    gravity = np.array([[0, 0, -9.81], [1, -2, -3.7], [0, 0, 0]])
    options = {"dt": 0.005} if lanes else {"dt": 0.005, "contacts": True}
    touching = "" if lanes else '<body mocap="true" pos="5 0 0"><geom size=".1"/></body>'  # lanes cannot step it
    weighed = WEIGHED.replace("<worldbody>", "<worldbody>" + touching)
    batch = tarsus.Batch(tarsus.Model.from_xml_string(weighed.format(*gravity[0], *numbers)), 3, **options)
    assert bool(batch.one_at_a_time_because) != lanes
    batch.set_parameters(mass_scale=np.insert(scales, [0] if lanes else [0, 0], 1, axis=1), gravity=gravity)
    batch.qvel[:] = [2, -3, 1, 4]
    _, felt = batch.rollout(19, sensors=True)
    start = batch.qpos.copy(), batch.qvel.copy()
    felt = np.concatenate([felt, batch.rollout(1, sensors=True)[1]])
    for world, scale in enumerate(scales):
        text = weighed.format(*gravity[world], *numbers * np.repeat(scale, 4))
        one = tarsus.Batch(tarsus.Model.from_xml_string(text), 1, **options)
        one.qvel[:] = [2, -3, 1, 4]
        _, alone = one.rollout(20, sensors=True)
        assert np.allclose(felt[:, world], alone[:, 0], rtol=1e-10, atol=1e-10)
        m = mujoco.MjModel.from_xml_string(text)
        for (qpos, qvel), part in ((start, slice(24)), ((batch.qpos, batch.qvel), slice(24, None))):
            d = mujoco.MjData(m)
            d.qpos, d.qvel = qpos[world], qvel[world]
            mujoco.mj_forward(m, d)
            d.qacc = batch.qacc[world]
            mujoco.mj_rnePostConstraint(m, d), mujoco.mj_sensorAcc(m, d)
            assert np.allclose(felt[-1, world, part], d.sensordata[part], rtol=1e-9, atol=1e-9)
    assert np.abs(felt[-1, 0] - felt[-1, 1]).max() > 1


ARMS = """<mujoco><option gravity="1 2 -9.81"><flag energy="enable"/></option><worldbody>{touching}
  <body name="arm" pos="0 0 1"><joint axis="0 1 0" armature=".3"/><inertial pos=".1 .2 .3" mass="2" diaginertia=".2 .15 .1"/>
    <body name="hand" pos="0 0 .5" euler="20 10 0"><joint type="ball" armature=".02"/><inertial pos="0 .1 .2" mass="1" fullinertia=".03 .04 .02 .001 .002 .003"/></body></body>
  <body name="loose" pos="3 0 2"><freejoint/><inertial pos=".1 0 0" mass="1.5" diaginertia=".04 .05 .06"/></body></worldbody>
  <sensor><framepos objtype="body" objname="hand"/><framequat objtype="body" objname="hand" reftype="body" refname="loose"/>
    <framepos objtype="body" objname="hand" reftype="body" refname="arm"/><framelinvel objtype="body" objname="loose"/>
    <framelinacc objtype="body" objname="hand"/><subtreecom body="arm"/><subtreeangmom body="arm"/><e_potential/><e_kinetic/></sensor></mujoco>"""


@pytest.mark.parametrize("lanes", [True, False], ids=["in lanes", "one at a time"])
def test_centres_of_mass_and_armature_are_the_worlds_own(lanes):
    """Accelerations and sensors are MuJoCo's with the same body_ipos and dof_armature, forces act at these centres."""
    mujoco = pytest.importorskip("mujoco")
    random = np.random.default_rng(3)
    touching = "" if lanes else '<body mocap="true" pos="9 0 0"><geom size=".1" pos="0 .1 0"/></body>'  # lanes cannot step it
    text = ARMS.format(touching=touching)
    model = tarsus.Model.from_xml_string(text)
    batch = tarsus.Batch(model, 5, 1e-7, **({} if lanes else {"contacts": True}))
    assert bool(batch.one_at_a_time_because) != lanes
    offset = random.normal(0, 0.05, (5, model.nbody, 3))
    armature = random.uniform(0, 3, (5, model.njoint))
    batch.set_parameters(com_offset=offset, armature_scale=armature, mask=np.array([0, 1, 1, 1, 1], bool))
    assert np.array_equal(batch.parameters["com_offset"][1:], offset[1:]) and not batch.parameters["com_offset"][0].any()
    batch.qpos[:, 5:8] += random.normal(0, 1, (5, 3))
    batch.qvel[:] = random.normal(0, 1, batch.qvel.shape)
    push = np.array([3.0, -2.0, 5.0])
    batch.apply_force("hand", push)
    qpos, qvel, tau, J = batch.qpos.copy(), batch.qvel.copy(), batch.tau.copy(), batch.jacobian("hand")
    twin = batch.copy()
    twin.restore(pickle.loads(pickle.dumps(batch.save())))
    _, felt = batch.rollout(1, sensors=True)
    twin.rollout(1)
    assert batch.state_hash() == twin.state_hash()
    for world in range(5):
        m = mujoco.MjModel.from_xml_string(text)
        if world > 0:
            m.body_ipos += offset[world]
            m.dof_armature *= armature[world][m.dof_jntid]
        d = mujoco.MjData(m)
        d.qpos, d.qvel = qpos[world], qvel[world]
        mujoco.mj_forward(m, d)
        hand = m.body("hand").id
        mujoco.mj_applyFT(m, d, push, np.zeros(3), d.xipos[hand], hand, d.qfrc_applied)
        assert np.allclose(tau[world], d.qfrc_applied, rtol=0, atol=1e-12)
        Jp = np.zeros((3, m.nv))
        mujoco.mj_jac(m, d, Jp, None, d.xipos[hand], hand)
        assert np.allclose(J[world].reshape(6, -1)[3:], Jp, rtol=0, atol=1e-12)
        mujoco.mj_forward(m, d)
        assert np.allclose(batch.qacc[world], d.qacc, rtol=1e-5, atol=1e-4)
        d.qpos, d.qvel = batch.qpos[world], batch.qvel[world]
        mujoco.mj_forward(m, d)
        d.qacc = batch.qacc[world]
        mujoco.mj_rnePostConstraint(m, d), mujoco.mj_sensorAcc(m, d)
        d.sensordata[-2:] = d.energy  # a second mj_forward() leaves the sensors of energy as they were
        assert np.allclose(felt[0, world], d.sensordata, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_dry_friction_is_the_worlds_own(dtype):
    """A torque below the world's friction turns nothing, one above it accelerates by their difference."""
    text = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="dry" frictionloss="2"/><inertial pos="0 0 0" mass="1" diaginertia=".5 .5 .5"/>
      </body><body pos="1 0 0"><joint name="smooth"/><inertial pos="0 0 0" mass="1" diaginertia=".5 .5 .5"/></body></worldbody></mujoco>"""
    batch = tarsus.Batch(tarsus.Model.from_xml_string(text), 9, 0.01, dtype=dtype, joint_limits=True)
    scale = np.array([1, 0, 0.5, 2, 3, 1, 0.1, 10, 0.25])
    batch.set_parameters(friction_loss_scale=scale)
    batch.tau[:] = 3
    batch.rollout(100, states=False)
    assert np.allclose(batch.qvel[:, 0], np.maximum(3 - 2 * scale, 0) / 0.5, rtol=1e-3, atol=1e-4)
    assert np.allclose(batch.qvel[:, 1], 6, rtol=1e-3)
    with pytest.raises(ValueError, match="friction_loss_scale: is given, expected a batch with joint limits"):
        tarsus.Batch(tarsus.Model.from_xml_string(text), 2, joint_limits=False).set_parameters(friction_loss_scale=np.ones(2))
    for name, lacks in (("armature_scale", "armature"), ("com_offset", "without fluid")):
        fluid = tarsus.Model.from_xml_string(text.replace("<option ", '<option viscosity="1" '))
        with pytest.raises(ValueError, match=f"{name}: is given, expected .*{lacks}"):
            tarsus.Batch(fluid, 2).set_parameters(**{name: np.ones((2, 3, 3)) if name == "com_offset" else np.ones(2)})


def test_memory_of_another_library_is_shared_through_dlpack(humanoid):
    torch = pytest.importorskip("torch")
    batch = tarsus.Batch(humanoid, 3)
    states = torch.full((5, 3, humanoid.nq + humanoid.nv), torch.nan, dtype=torch.float64)
    with pytest.raises(TypeError, match=r"states: is an array of torch.float64, not NumPy's \(numpy.from_dlpack\(\) shares its memory\), expected"):
        batch.rollout(5, states=states)
    batch.rollout(5, states=np.from_dlpack(states))
    assert np.array_equal(states[-1, :, : humanoid.nq].numpy(), batch.qpos)


def test_factors_of_joints_cover_what_actuators_add():
    """An actuator's armature and damping are its joint's, factors included."""
    def model(factor):
        own, added = (f'armature="{factor * a}" damping="{factor * d}"' for a, d in ((0.5, 1), (2, 3)))
        return tarsus.Model.from_xml_string(f"""<mujoco><worldbody><body><joint name="j" axis="0 1 0" {own}/><geom size=".1" pos=".3 0 0"/></body></worldbody>
            <actuator><motor joint="j" {added}/></actuator></mujoco>""")

    scaled, written = tarsus.Batch(model(1), 2), tarsus.Batch(model(2), 2)
    scaled.set_parameters(armature_scale=np.full(2, 2.0), damping_scale=np.full(2, 2.0))
    for batch in (scaled, written):
        batch.qvel[:], batch.ctrl[:] = 1, 5
        for _ in range(20):
            assert batch.step() == 0
    assert np.array_equal(scaled.qpos, written.qpos)


def test_parameters_are_set_all_or_none(humanoid):
    batch = stands(humanoid, 3)
    batch.set_parameters(kp_scale=np.array([1, 2, 3.0]))
    twin, before = batch.copy(), batch.parameters
    for wrong, error in (({"gravity": np.full((3, 3), np.nan)}, ValueError), ({"force_scale": np.ones(3)}, ValueError),
                         ({"friction_scale": np.ones(2)}, tarsus.ShapeError)):
        with pytest.raises(error):
            batch.set_parameters(mass_scale=np.full(3, 2.0), kp_scale=np.ones(3), **wrong)
        assert batch.parameters.keys() == before.keys() and np.array_equal(batch.parameters["kp_scale"], before["kp_scale"])
    batch.rollout(20), twin.rollout(20)
    assert batch.state_hash() == twin.state_hash()


@pytest.mark.parametrize("captures", [False, True])
def test_a_bad_world_is_written_and_replayed(humanoid, tmp_path, captures):
    batch = stands(humanoid, 5, captures=captures)
    batch.qvel[:] = np.random.default_rng(1).uniform(-1, 1, batch.qvel.shape)
    batch.rollout(10, states=False)
    batch.qpos_target[1, 5] = np.nan
    batch.tau[2, 2] = 1e13
    assert batch.step() == 2
    batch.rollout(5, states=False)
    files = [str(tmp_path / f"{world}.npz") for world in range(5)]
    assert batch.capture(1, files[1]) and batch.capture(0, files[0])
    assert batch.capture(2, files[2]) or not captures
    batch.tau[3, 2] = 1e13  # still ok
    assert batch.capture(3, files[3])
    saved = np.load(files[2])
    assert saved["tau"][2] == 1e13 and saved["qpos"].shape == (humanoid.nq,)
    assert (saved["memory"].size > 0) == captures
    model = str(MODELS / "humanoid.xml")
    for world, text in ((1, "qpos_target[5] is nan"), (2, "too_fast"), (0, "ok"), (3, "too_fast")):
        if world == 2 and not captures:
            continue
        run = subprocess.run(
            [sys.executable, "-m", "tarsus", "replay", files[world], "--verify", "--model", model], capture_output=True, text=True)
        assert run.returncode == 0 and text in run.stdout, run.stdout + run.stderr
    run = subprocess.run([sys.executable, "-m", "tarsus", "run", files[1], "--json"], capture_output=True, text=True)
    assert run.returncode == 0 and json.loads(run.stdout)["replayed"].startswith("bad_input"), run.stdout + run.stderr
    unnamed = shutil.copy(files[1], tmp_path / "unnamed")  # detected from its content
    other = tmp_path / "other.npz"
    np.savez(other, time=np.zeros(3))
    for arguments, code, text in (([unnamed], 0, "the same to the bit"), ([unnamed, "--dt", "0.1", "--quiet"], 2, "--dt: is given, expected no such option"),
                                  ([files[1], "--out", "x.npz"], 2, "--out: is given, expected no such option"),
                                  ([other], 1, "an .npz without a captured world")):
        run = subprocess.run([sys.executable, "-m", "tarsus", "run", *map(str, arguments)], capture_output=True, text=True)
        assert run.returncode == code and text in run.stdout + run.stderr, run.stdout + run.stderr
    with pytest.raises(ValueError, match="world"):
        batch.capture(5, files[0])
    with pytest.raises(TypeError, match="PathLike"):
        batch.capture(0, 5)


def test_captures_of_other_versions_and_damaged_ones_are_named(humanoid, tmp_path):
    batch = stands(humanoid, 3, captures=True)
    batch.rollout(10, states=False)
    good, bad = tmp_path / "good.npz", tmp_path / "bad.npz"
    assert batch.capture(1, good)
    with np.load(good) as file:
        arrays = dict(file)
    meta, memory = bytes(arrays["meta"]), arrays["memory"]
    older = re.sub(rb'"version": \d+', b'"version": 1', meta)
    assert older != meta and memory.size > 100
    random = np.random.default_rng(0).integers(0, 256, memory.size, np.uint8)
    damaged = "not the bytes that Batch.capture writes (memory)"
    for change, text in (({"meta": np.frombuffer(older, np.uint8)}, "a capture of version 1, written by another version of tarsus"),
                         ({"memory": memory[:-3]}, damaged), ({"memory": random}, damaged)):
        np.savez(bad, **{**arrays, **change})
        for command in ("run", "replay"):
            run = subprocess.run([sys.executable, "-m", "tarsus", command, bad], capture_output=True, text=True)
            assert run.returncode == 1 and f"{bad}: error: {text}" in run.stderr, run.stdout + run.stderr
    saved = batch.save()
    older = {key: value for key, value in saved.items() if key != "version"}
    for other in (older, {**saved, "version": 1}):
        with pytest.raises(tarsus.ValueError, match="^state: is saved by another version of tarsus, expected a value returned by save"):
            batch.restore(other)


def test_a_captured_worlds_model_is_read_as_it_was(tmp_path, monkeypatch):
    here, elsewhere, packages = tmp_path / "here", tmp_path / "elsewhere", tmp_path / "here/packages"
    (packages / "arm").mkdir(parents=True), elsewhere.mkdir()
    shutil.copy(MODELS / "pendulum.xml", here / "mine.xml")
    (packages / "arm/tip.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    (here / "r.urdf").write_text("""<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="3" ixy="0" ixz="0" iyz="0"/></inertial>
      <visual><geometry><mesh filename="package://arm/tip.obj"/></geometry></visual><visual><geometry><mesh filename="none.obj"/></geometry></visual></link></robot>""")
    monkeypatch.chdir(here)
    urdf = {"floating_base": True, "fix_balance": True, "lenient": True, "package_paths": ["packages"]}
    for name, model, options in (("file", "mine.xml", {}), ("urdf", "r.urdf", urdf), ("scene", "box_stack:3", {})):
        batch = tarsus.Batch(tarsus.Model.load(model, **options), 2)
        batch.rollout(3), batch.capture(0, tmp_path / f"{name}.npz")
        batch.tau[1, 0] = np.nan
        assert batch.step() == 1 and batch.capture(1, tmp_path / f"{name} bad.npz")
    text = tarsus.Batch(tarsus.Model.from_xml_string((here / "mine.xml").read_text()), 1)
    text.capture(0, tmp_path / "text.npz")

    def tarsus_says(*words):
        run = subprocess.run([sys.executable, "-m", "tarsus", *map(str, words)], capture_output=True, text=True, cwd=elsewhere)
        return run.returncode, run.stdout + run.stderr
    for name in ("file", "urdf", "scene"):
        for end, result in (("", "ok"), (" bad", "the same to the bit")):
            code, said = tarsus_says("run", tmp_path / f"{name}{end}.npz")
            assert code == 0 and result in said and "changed" not in said, said
    assert tarsus_says("replay", tmp_path / "scene.npz", "--model", "box_stack:3", "--verify")[0] == 0
    code, said = tarsus_says("replay", tmp_path / "urdf.npz", "--model", here / "r.urdf", "--lenient", "--package-path", packages)
    assert code == 1 and 'not the joints of the model "r"; its own was read with --lenient --floating-base --fix balance --package-path packages' in said
    given = ("--model", here / "r.urdf", "--lenient", "--floating-base", "--fix", "balance", "--package-path", packages)
    assert tarsus_says("replay", tmp_path / "urdf.npz", *given, "--verify")[0] == 0
    code, said = tarsus_says("run", tmp_path / "text.npz")
    assert code == 1 and "the captured world's model was not read from a file" in said, said
    here.rename(elsewhere / "here")  # the folder is gone: files are looked up in the current one
    code, said = tarsus_says("run", tmp_path / "file.npz")
    assert code == 1 and 'the model of the captured world, "mine.xml", is not found' in said, said
    shutil.copy(elsewhere / "here/mine.xml", elsewhere)
    assert tarsus_says("run", tmp_path / "file.npz")[0] == 0
    code, said = tarsus_says("run", tmp_path / "urdf.npz")
    assert code == 1 and "urdf.npz: error: " in said and "packages" in said and "(meta/read_options)" in said, said


def test_a_captured_worlds_file_and_folder_need_not_be_utf8(tmp_path, monkeypatch):
    folder = tmp_path / os.fsdecode(b"m\xe9")
    folder.mkdir()
    name = os.fsdecode(b"k\xe9n.urdf")
    (folder / name).write_text("""<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
      </link></robot>""")
    monkeypatch.chdir(folder)
    batch = tarsus.Batch(tarsus.Model.load(name, floating_base=True, package_paths=[folder]), 1)
    batch.tau[0, 0] = np.nan
    assert batch.step() == 1 and batch.capture(0, tmp_path / "world.npz")
    monkeypatch.chdir(tmp_path)
    run = subprocess.run([sys.executable, "-m", "tarsus", "replay", "world.npz", "--verify"], capture_output=True)
    assert run.returncode == 0 and b"the same to the bit" in run.stdout, run.stderr


def test_a_captured_world_is_of_the_file_that_includes_the_others(tmp_path):
    (tmp_path / "robot.xml").write_text("<mujoco model='robot'><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
    (tmp_path / "scene.xml").write_text("<mujoco model='scene'><include file='robot.xml'/><worldbody><geom type='plane' size='1 1 1'/></worldbody></mujoco>")
    urdf = "<robot name='r'><link name='a'><inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial></link></robot>"
    (tmp_path / "robot.urdf").write_text(urdf)
    captured = str(tmp_path / "world.npz")
    for name, of in (("scene.xml", "of scene"), ("robot.urdf", "of r")):
        tarsus.Batch(tarsus.Model.load(tmp_path / name), 1).capture(0, captured)
        run = subprocess.run([sys.executable, "-m", "tarsus", "run", captured], capture_output=True, text=True)
        assert run.returncode == 0 and of in run.stdout, run.stdout + run.stderr
    tarsus.Batch(tarsus.Model.load(tmp_path / "scene.xml"), 1).capture(0, captured)
    for size, code in ((".1", 0), (".2", 3)):  # in a file that the captured one includes
        (tmp_path / "robot.xml").write_text((tmp_path / "robot.xml").read_text().replace("size='.1'", f"size='{size}'"))
        run = subprocess.run([sys.executable, "-m", "tarsus", "replay", captured, "--verify"], capture_output=True, text=True)
        assert run.returncode == code and ("has changed since the capture" in run.stdout) == (code > 0), run.stdout + run.stderr
    tarsus.Batch(tarsus.Model.from_xml_string(urdf), 1).capture(0, captured)
    run = subprocess.run([sys.executable, "-m", "tarsus", "run", captured], capture_output=True, text=True)
    assert run.returncode == 1 and "was not read from a file; write it to one and name that with tarsus replay --model" in run.stderr


def test_a_copy_has_its_bad_worlds_as_they_were(humanoid, tmp_path):
    batch = stands(humanoid, 3, captures=True)
    batch.rollout(10, states=False)
    batch.tau[1, 8] = 1e13
    assert batch.step() == 1
    batch.tau[:] = 0
    assert batch.copy().capture(1, tmp_path / "bad.npz") and np.load(tmp_path / "bad.npz")["tau"][8] == 1e13


def test_models_side_by_side_are_their_batches(humanoid):
    dog = tarsus.Model.load(str(MODELS / "dog.xml"))
    both = tarsus.Batches(stands(humanoid, 3), stands(dog, 2, threads=2))
    alone = stands(humanoid, 3), stands(dog, 2)
    kick = np.random.default_rng(4).uniform(-1, 1, (5, max(humanoid.nv, dog.nv)))
    both.assign("qvel", kick)
    alone[0].qvel[:], alone[1].qvel[:] = kick[:3, : humanoid.nv], kick[3:, : dog.nv]
    assert both.worlds == 5 and both.slices == (slice(0, 3), slice(3, 5))
    saved = pickle.loads(pickle.dumps(both.save()))
    twin = both.copy()
    assert both.step() == 0 and both.rollout(4) == 0
    for batch in alone:
        batch.rollout(5)
    assert both.state_hash() == tuple(batch.state_hash() for batch in alone)
    qpos = both.padded("qpos", fill=np.nan)
    assert np.array_equal(qpos[3:, : dog.nq], alone[1].qpos) and np.array_equal(qpos[:3, : humanoid.nq], alone[0].qpos)
    assert np.isnan(qpos).sum() == 5 * qpos.shape[1] - 3 * humanoid.nq - 2 * dog.nq
    assert np.array_equal(both.measure()["com"], np.concatenate([batch.measure(["com"])["com"] for batch in alone]))
    assert both.reports["contacts"].shape == (5,) and list(both.steps) == [5] * 5
    twin.rollout(5)
    assert twin.state_hash() == both.state_hash()
    both.restore(saved)
    both.rollout(5)
    assert twin.state_hash() == both.state_hash()
    both.groups[1].qpos_target[0, 7] = np.nan
    for twin in (copy.copy(both), copy.deepcopy(both)):
        twin.step()
        assert twin.state_hash() != both.state_hash()
    assert both.step() == 1 and list(both.status) == [0, 0, 0, 1, 0]
    both.reset(both.status != 0)
    assert list(both.status) == [0] * 5 and list(both.steps) == [6, 6, 6, 0, 6]
    before = both.state_hash()
    with pytest.raises(ValueError):
        both.restore([saved[0], {**saved[1], "memory": b"?"}])
    assert both.state_hash() == before
    for wrong, error in ((lambda: tarsus.Batches(), ValueError), (lambda: tarsus.Batches(humanoid), TypeError),
                         (lambda: tarsus.Batches(both.groups[0], both.groups[0]), ValueError),
                         (lambda: tarsus.Batches(both.groups[0], tarsus.Batch(dog, 1, dt=0.01)), ValueError),
                         (lambda: both.reset(np.ones(4, bool)), tarsus.ShapeError), (lambda: both.measure(["position"]), ValueError),
                         (lambda: both.assign("qvel", kick[:4]), tarsus.ShapeError), (lambda: both.padded("mocap_pos"), ValueError),
                         (lambda: both.padded("ground_force"), ValueError), (lambda: both.padded("status"), ValueError),
                         (lambda: both.assign("steps", kick), ValueError), (lambda: both.assign("qacc", kick), ValueError),
                         (lambda: both.assign("qvel", kick.astype(complex)), ValueError), (lambda: both.assign("qvel", kick.astype(str)), ValueError),
                         (lambda: both.restore(None), TypeError), (lambda: both.padded("nothing"), ValueError),
                         (lambda: both.padded("qpos", out=np.zeros(qpos.shape, int)), ValueError)):
        with pytest.raises(error):
            wrong()


def test_data_is_copied(humanoid):
    data = tarsus.Data(humanoid)
    data.qvel[:] = 1
    twin = data.copy()
    data.qvel[:] = 2
    assert (twin.qvel == 1).all() and twin.model is humanoid


def test_the_ground_carries_the_weight(humanoid):
    batch = stands(humanoid, 2)
    assert batch.rollout(120, states=False) == (None, None)
    weight = humanoid.total_mass() * 9.81
    assert np.allclose(batch.ground_force[:, :, 2].sum(axis=1), weight, rtol=0.02)
    feet = {humanoid.bodies[humanoid.body_id(f"{side}_foot")].link for side in ("left", "right")}
    assert set(np.flatnonzero(batch.ground_force[0, :, 2])) == feet
    contacts = batch.contacts(0)
    assert {c["links"][0] for c in contacts} == feet and all(c["links"][1] == -1 for c in contacts)
    assert all(abs(c["distance"]) < 1e-3 and c["normal"][2] == pytest.approx(1) for c in contacts)
    assert 4 <= batch.reports["touching"][0] <= len(contacts)


def test_several_batches_in_several_threads(humanoid):
    def run(batch):
        batch.qvel[:] = np.random.default_rng(9).uniform(-1, 1, batch.qvel.shape)
        batch.rollout(40, states=False)

    batches = [stands(humanoid, 6) for _ in range(4)]
    threads = [threading.Thread(target=run, args=(b,)) for b in batches]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({b.state_hash() for b in batches}) == 1


def test_one_batch_is_for_one_thread(humanoid):
    batch = stands(humanoid, 64)
    errors, started = [], threading.Event()

    def other():
        started.wait()
        for _ in range(200):
            try:
                batch.step()
            except ValueError as e:
                errors.append(str(e))

    thread = threading.Thread(target=other)
    thread.start()
    started.set()
    for _ in range(20):
        try:
            batch.rollout(20, states=False)
        except ValueError as e:
            errors.append(str(e))
    thread.join()
    assert all("another thread" in e for e in errors)


def test_what_a_call_costs(humanoid):
    """Prints the cost of a call without a limit, because the machine may be busy."""
    batch = stands(humanoid, 1)
    batch.qpos[0, 2] = np.nan  # a frozen world is not stepped: the cost of the call alone
    batch.step()
    costs = {}
    for name, call in {"step": batch.step, "qpos": lambda: batch.qpos, "reset": batch.reset}.items():
        times = []
        for _ in range(300):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        costs[name] = float(np.median(times) * 1e6)
    print({name: f"{us:.1f} us" for name, us in costs.items()})


def test_float_is_float(humanoid):
    try:
        batch = stands(humanoid, 3, dtype="float32")
        batch.step()
    except tarsus.Error as e:
        if "double precision only" in str(e):
            pytest.skip("this build has double precision only")
        raise
    assert batch.qpos.dtype == np.float32
    batch.rollout(60, states=False)
    weight = batch.ground_force[:, :, 2].sum(axis=1)
    assert np.allclose(weight, weight[0], rtol=1e-6) and weight[0] > 100


@pytest.mark.parametrize(
    "arguments, name",
    [({"worlds": 0}, "worlds"), ({"threads": 0}, "threads"), ({"dt": -1.0}, "dt"), ({"dtype": "int32"}, "dtype"),
     ({"integrator": "euler"}, "integrator"), ({"loops": "maybe"}, "loops")],
)
def test_bad_arguments_are_named(humanoid, arguments, name):
    with pytest.raises(ValueError, match=name):
        tarsus.Batch(humanoid, **({"worlds": 2} | arguments))


# -- a forked child, Ctrl-C -------------------------------------------------------------------------------------------


def in_a_process(script):
    """Runs a script in a process that SIGINT can interrupt. Background jobs of a shell ignore SIGINT, and so would their
    children."""
    heed = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120,
                         preexec_fn=heed)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_threads_work_in_a_forked_child():
    """The objects are made and stepped in the parent. The steps of the parent, of its child and of the child's child are the
    same."""
    in_a_process(f"""
        import os, signal, sys, warnings, zlib
        import numpy as np
        import tarsus

        warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of fork beside threads
        batch = tarsus.Batch(tarsus.Model.load({str(MODELS / "humanoid.xml")!r}), 64, threads=2, contacts=True)
        task = tarsus.tasks.make("CartPole")
        worlds = tarsus.VectorTask(task, 64, threads=2)
        worlds.reset()
        pile = tarsus.RigidWorld.scene("balls:8:8", threads=2)
        verlet = tarsus.VelocityVerlet(tarsus.ParticleSystem.load("water:1000"), threads=2)

        def step():
            batch.step(), pile.step(), verlet.step()
            worlds.step(np.full((64, task.action_size), 0.1))
            arrays = batch.qpos, worlds.observation, pile.poses, verlet.system.position
            return zlib.crc32(b"".join(array.tobytes() for array in arrays))

        def child(work):
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                signal.alarm(30)
                os.write(write, work().to_bytes(4, "little"))
                sys.exit(0)  # takes down what there is, as any process does
            _, status = os.waitpid(pid, 0)
            assert status == 0, status
            return int.from_bytes(os.read(read, 4), "little")

        step()
        first, second = child(step), child(lambda: child(step))
        assert first == second == step()
    """)


def test_a_rollout_ends_by_ctrl_c():
    """All worlds stop at the same step and can continue from there."""
    in_a_process(f"""
        import signal, threading, time
        import tarsus

        humanoid = tarsus.Model.load({str(MODELS / "humanoid.xml")!r})
        batch = tarsus.Batch(humanoid, 64, contacts=True, threads=2)
        same = batch.copy()
        for call in (lambda: batch.rollout(10**6, states=False), lambda: tarsus.Batches(batch).rollout(10**6)):
            threading.Timer(0.4, lambda: signal.raise_signal(signal.SIGINT)).start()
            start = time.monotonic()
            try:
                call()
                raise SystemExit("the rollout came to its end")
            except KeyboardInterrupt:
                assert time.monotonic() - start < 10
        assert (batch.steps == batch.steps[0]).all() and batch.steps[0] > 0
        same.rollout(int(batch.steps[0]), states=False)
        assert batch.state_hash() == same.state_hash()
        batch.rollout(3)
        assert batch.steps[0] == same.steps[0] + 3
    """)


# -- what would be ignored, what does not fit -------------------------------------------------------------------------


def test_inputs_that_would_do_nothing_are_refused(humanoid):
    model = tarsus.Model.load(str(MODELS / "quadruped.xml"))
    own, driven = tarsus.Batch(model, 2), tarsus.Batch(model, 2, drives=tarsus.Drives.uniform(model, 10, 1, 0, 0))
    for batch, name, n in ((own, "qpos_target", model.nq), (own, "qvel_target", model.nv), (driven, "ctrl", model.nu)):
        before = batch.state_hash()
        with pytest.raises(ValueError, match=f"{name}: is given"):
            batch.rollout(**{name: np.zeros((3, 2, n))})
        assert batch.state_hash() == before and (batch.steps == 0).all()
    own.rollout(ctrl=np.zeros((3, 2, model.nu))), driven.rollout(qvel_target=np.zeros((3, 2, model.nv)))
    limp = tarsus.Batch(model, 2, drives=tarsus.Drives.uniform(model, 0, 1, 0, 0))
    pendulum = tarsus.Batch(tarsus.Model.load(str(MODELS / "pendulum.xml")), 2, contacts=True)
    for batch, name, lacks in ((limp, "kp_scale", "stiffness"), (pendulum, "friction_scale", "shapes that may touch")):
        with pytest.raises(ValueError, match=f"{name}: is given, expected .*{lacks}"):
            batch.set_parameters(**{name: np.array([1.0, 2.0])})
    limp.set_parameters(kd_scale=np.array([1.0, 2.0]))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("length", [1e-12, 1e-17, 1e-30])
def test_a_short_quaternion_is_the_same_rotation_to_all(dtype, length):
    model = tarsus.Model.from_xml_string("<mujoco><option gravity='0 0 0'/><worldbody><body name='b' pos='0 0 1'><freejoint/><geom type='box' size='.1 .2 .3'/></body></worldbody></mujoco>")
    batch = tarsus.Batch(model, 3, dtype=dtype)
    batch.qpos[:, 3:] = np.array([0.6, 0, 0.8, 0]) * length
    seen, rows = batch.measure()["orientation"][:, 1], batch.jacobian("b")
    assert batch.step() == 0  # at rest: the pose stays, with a quaternion of unit length
    assert np.allclose(np.abs((seen * batch.qpos[:, 3:]).sum(axis=1)), 1, atol=1e-6)
    assert np.allclose(rows, batch.jacobian("b"), atol=1e-6)


SENSED = """<mujoco><option timestep=".01"/><worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 .099"><freejoint/><geom type="box" size=".1 .1 .1"/><site name="s"/>
  <body pos="0 0 .3"><joint name="h" axis="0 1 0" range="-12 12"/><geom type="capsule" fromto="0 0 -.1 .1 0 .2" size=".02"/><site name="t"/></body></body></worldbody>
  <tendon><fixed name="r"><joint joint="h" coef="1"/></fixed></tendon><actuator><position name="a" joint="h" kp="10"/><motor tendon="r"/></actuator><sensor>{}</sensor></mujoco>"""
OF_STATE = "<gyro site='s'/><velocimeter site='s'/><jointpos joint='h'/><jointvel joint='h'/><framepos objtype='site' objname='t'/><tendonpos tendon='r'/><actuatorpos actuator='a'/>"
OF_STEP = ("<accelerometer site='s'/><framelinacc objtype='site' objname='t'/><frameangacc objtype='site' objname='t'/><actuatorfrc actuator='a'/>"
           "<jointactuatorfrc joint='h'/><tendonactuatorfrc tendon='r'/>")
OF_CONTACT = "<touch site='s'/><force site='t'/><torque site='t'/><jointlimitfrc joint='h'/><contact data='found'/>"


@pytest.mark.parametrize("more", ["", OF_CONTACT])
def test_sensors_of_the_step_of_a_frozen_world_read_nan(more):
    """Others read its last good state, and qacc is that of its last good step, until it is restarted."""
    model = tarsus.Model.from_xml_string(SENSED.format(OF_STATE + OF_STEP + more))
    of_state = tarsus.Data(tarsus.Model.from_xml_string(SENSED.format(OF_STATE))).sensordata.size
    worlds, steps, bad = 3, 12, 6
    ctrl = np.full((steps, worlds, 2), 0.5)
    ctrl[bad, 1, 0] = np.nan
    batch = tarsus.Batch(model, worlds)
    _, sensors = batch.rollout(bad, ctrl=ctrl[:bad], sensors=True)
    good, qacc = sensors[-1], batch.qacc[1].copy()
    _, sensors = batch.rollout(steps - bad, ctrl=ctrl[bad:], sensors=True)
    assert np.isfinite(sensors[:, ::2]).all() and np.isnan(sensors[:, 1, of_state:]).all()
    assert np.array_equal(sensors[:, 1, :of_state], np.tile(good[1, :of_state], (steps - bad, 1)))
    assert np.array_equal(batch.qacc[1], qacc) and np.abs(qacc).max() > 1e-3
    for many in (1, worlds):
        data = tarsus.Data(model, worlds=many)
        stepper, world = tarsus.Stepper(data), 1 if many > 1 else 0
        def of(array): return np.array(data.get(array, world))
        for step in range(steps):
            for w in range(many):
                data.set(data.ctrl, w, ctrl[step, w if many > 1 else 1])
            assert stepper.step() == (step >= bad)
            now = of(data.sensordata)
            assert np.isfinite(now[:of_state]).all() and (np.isnan if step >= bad else np.isfinite)(now[of_state:]).all(), step
            if step == bad - 1:
                qacc = of(data.qacc)
            assert step < bad or np.array_equal(of(data.qacc), qacc)
        stepper.restart(world)
        assert stepper.step() == 0 and np.isfinite(of(data.sensordata)).all()
    batch.reset(batch.status != 0)
    assert np.isfinite(batch.rollout(1, sensors=True)[1]).all()
    data = tarsus.Data(model)
    data.ctrl[0] = np.nan
    assert tarsus.step(model, data) == ["bad_input"] and np.isnan(tarsus.sensors(model, data)[of_state:]).all()


def test_a_state_fits_the_batch_that_it_is_of(humanoid):
    saved = stands(humanoid, 3).save()
    stands(humanoid, 3, threads=2, captures=True).restore(pickle.loads(pickle.dumps(saved)))
    heavier = (MODELS / "humanoid.xml").read_text(encoding="utf-8").replace('mass="', 'mass="1', 1)
    soft = tarsus.Drives.uniform(humanoid, 200, 30, 0, 0)
    others = {"dt": stands(humanoid, 3, dt=0.01), "drives": tarsus.Batch(humanoid, 3, 1 / 60),
              "contacts": tarsus.Batch(humanoid, 3, 1 / 60, contacts=False), "tolerance": stands(humanoid, 3, tolerance=1e-4),
              "model": stands(tarsus.Model.from_xml_string(heavier, directory=str(MODELS)), 3)}
    others["gains"] = tarsus.Batch(humanoid, 3, 1 / 60, drives=soft)
    for what, other in others.items():
        before = other.state_hash()
        with pytest.raises(ValueError, match=f"state: is saved with {'drives' if what == 'gains' else what} ") as refused:
            other.restore(saved)
        assert not re.search(r"(?<![.\d])\d{9}", str(refused.value)), refused.value  # no hash
        assert other.state_hash() == before
    # Two models are different if any element that affects the motion differs; the name does not count.
    moved = ['<motor joint="j" gear="2"/>', '<position joint="j" kp="9"/>', '<motor joint="j" gear="3"/>']
    arms = [ARM.replace('<motor name="m" joint="j"/>', actuator) for actuator in moved]
    arms += [ARM.replace("<actuator>", f'<tendon><fixed stiffness="{k}"><joint joint="j" coef="1"/></fixed></tendon><actuator>') for k in (1, 2)]
    arms += [ARM.replace('timestep="0.01"', f'timestep="0.01" density="{density}"') for density in (1, 2)]
    saves = [tarsus.Batch(tarsus.Model.from_xml_string(text, name="one"), 2).save() for text in arms]
    for i, text in enumerate(arms):
        batch = tarsus.Batch(tarsus.Model.from_xml_string(text, name="other"), 2)
        batch.restore(saves[i])
        for other in saves[:i] + saves[i + 1:]:
            with pytest.raises(ValueError, match='state: is saved with model of the same sizes, but of other parts or numbers, expected model "'):
                batch.restore(other)
    with pytest.raises(ValueError, match=f"saved with model of nq 1, nv 1, nu 1, expected model of nq {humanoid.nq}, nv {humanoid.nv}, nu {humanoid.nu}"):
        stands(humanoid, 2).restore(saves[0])
    batch = stands(humanoid, 3)
    for name in ("faults", "reports", "memory", "parameters", "settings"):
        with pytest.raises(TypeError, match=f"{name}: is of type None"):
            batch.restore({**saved, name: None})
    with pytest.raises(ValueError, match="faults"):
        batch.restore({**saved, "faults": {0: (1, "qpos")}})
    for wrong in ({**saved, "qpos_targets": saved["qpos"]}, {**saved, "settings": {**saved["settings"], "qpos_targets": 1}}):
        before, keys = batch.state_hash(), len(wrong)
        with pytest.raises(ValueError, match="state: is with 'qpos_targets', expected a value returned by save"):
            batch.restore(wrong)
        assert batch.state_hash() == before and len(wrong) == keys
    with pytest.raises(ValueError, match="state: is saved with width 4096, expected width "):
        batch.restore({**saved, "settings": {**saved["settings"], "width": 4096}})
    batch.restore(saved)
    assert saved.keys() == batch.save().keys()


@pytest.mark.parametrize("make", [tarsus.Batch, lambda model, n: tarsus.VectorTask(tarsus.tasks.make("CartPole"), n)])
def test_too_many_worlds_are_an_error_about_worlds(humanoid, make):
    with pytest.raises(ValueError, match="worlds: is 2147483647, expected fewer"):
        make(humanoid, 2**31 - 1)


def test_results_of_a_rollout_have_memory_of_their_own(humanoid):
    batch = stands(humanoid, 2)
    memory = np.zeros(3 * 2 * (humanoid.nq + humanoid.nv))
    targets = memory[: 3 * 2 * humanoid.nq].reshape(3, 2, humanoid.nq)
    with pytest.raises(ValueError, match="states: is in the same memory as qpos_target"):
        batch.rollout(qpos_target=targets, states=memory.reshape(3, 2, -1))


def test_inputs_that_would_have_no_effect_are_refused():
    model = tarsus.Model.load(tarsus.MODELS / "quadruped.xml")
    free, driven = tarsus.Batch(model, 2), tarsus.Batch(model, 2, drives=tarsus.Drives.uniform(model))
    for name, batch in (("qpos_target", free), ("qvel_target", free), ("ctrl", driven)):
        with pytest.raises(tarsus.ValueError, match=f"{name}: is of a batch with"):
            getattr(batch, name)[:] = 1
        with pytest.raises(tarsus.ValueError, match=f"{name}: is of a batch with"):
            setattr(batch, name, np.zeros((2, model.nq)))
    free.set_drives(tarsus.Drives.uniform(model))
    assert free.qpos_target.shape == (2, model.nq) and driven.qvel_target.shape == (2, model.nv)
    assert tarsus.Batch(tarsus.Model.load(tarsus.MODELS / "pendulum.xml"), 2, drives=tarsus.Drives(np.ones(1), np.ones(1))).ctrl.shape == (2, 0)


def test_worlds_are_reset_to_a_keyframe():
    text = """<mujoco><worldbody><body name='hand' mocap='true' pos='0 0 3'/><body><joint name='j'/><geom size='.1' pos='.2 0 0'/></body></worldbody>
      <actuator><position joint='j' kp='5'/><general joint='j' dyntype='integrator'/></actuator>
      <keyframe><key name='a' qpos='.3' qvel='.1' act='.2' ctrl='.4 .5' mpos='1 2 3' mquat='0 1 0 0'/><key name='b' qpos='.7'/></keyframe></mujoco>"""
    model = tarsus.Model.from_xml_string(text)
    batch, one = tarsus.Batch(model, worlds=3), tarsus.Data(model)
    batch.ctrl[:] = batch.tau[:] = 9
    batch.reset(np.array([True, False, True]), keyframe="a")
    one.reset("a")
    for name in ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat"):
        of = getattr(batch, name)[2]
        assert np.array_equal(of.ravel(), getattr(one, name).ravel()), name
    assert batch.ctrl[1].tolist() == [9, 9] and batch.qpos[1, 0] == 0 and batch.tau[0, 0] == 0
    driven = tarsus.Batch(model, worlds=2, drives=tarsus.Drives.uniform(model))
    driven.reset(keyframe="a")
    assert np.array_equal(driven.qpos_target, driven.qpos) and driven.qpos[0, 0] == 0.3
    batch.reset(keyframe=1)
    assert (batch.qpos == 0.7).all() and not batch.ctrl.any() and (batch.mocap_pos.ravel()[:3] == [0, 0, 3]).all()
    with pytest.raises(tarsus.ValueError, match="keyframe"):
        batch.reset(keyframe="c")
    with pytest.raises(tarsus.ValueError, match="None together with a keyframe"):
        batch.reset(None, model.qpos0, keyframe="a")


def test_a_batch_says_why_its_worlds_go_one_at_a_time():
    humanoid = tarsus.Model.load(str(MODELS / "humanoid.xml"))
    assert tarsus.Batch(humanoid, worlds=16, contacts=True, joint_limits=True).one_at_a_time_because == ""
    damper = tarsus.Model.from_xml_string('<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body></worldbody>'
                                          '<actuator><damper joint="a" kv="1" ctrlrange="0 1"/></actuator></mujoco>')
    assert "damping" in tarsus.Batch(damper, worlds=16).one_at_a_time_because


SHARED = MODELS.parents[1] / "shared" / "data"


@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/data beside the repository")
def test_models_of_benchmarks_go_side_by_side():
    """Tendons, fluids, muscles, linkages and actuators of all kinds: none of them prevents stepping in lanes."""
    files = [f for suite in ("gymnasium/gymnasium/envs/mujoco/assets", "dm_control_suite") for f in sorted((SHARED / suite).glob("*.xml"))]
    files += [SHARED / "menagerie" / f for f in ("agility_cassie/scene.xml", "franka_emika_panda/mjx_scene.xml", "robotiq_2f85/scene.xml")]
    assert len(files) > 30
    for file in files:
        batch = tarsus.Batch(tarsus.Model.load(file, lenient=True), 20, contacts=True, joint_limits=True)
        assert not batch.one_at_a_time_because, f"{file.name}: {batch.one_at_a_time_because}"
        assert batch.step() == 0, file.name


def pairs_that_differ(text, worlds, steps):
    """Pairs of worlds of which the first does not step as by itself beside the second. All start at random."""
    model, random = tarsus.Model.from_xml_string(text), np.random.default_rng(0)
    qpos, qvel, data = np.tile(model.qpos0, (worlds, 1)), random.normal(0, 0.7, (worlds, model.nv)), tarsus.Data(model)
    for world in range(worlds):
        qpos[world] = tarsus.integrate(model, data, qpos[world].copy(), random.normal(0, 0.3, model.nv), 1.0)
    ctrl = random.normal(0, 1, (worlds, model.nu))

    def first(of):
        batch = tarsus.Batch(model, len(of))
        batch.reset(None, qpos[of], qvel[of])
        batch.ctrl[:] = ctrl[of]
        batch.rollout(steps, states=False)
        return batch.qvel[0].copy()

    alone = [first([world]) for world in range(worlds)]
    return [(a, b) for a in range(worlds) for b in range(worlds) if not np.array_equal(alone[a], first([a, b]))]


@pytest.mark.parametrize("text", [
    # Some of these worlds need softer problems on the way: those beside them are not looked at or weighed anew,
    """<mujoco><worldbody><body><body pos="0.198793 0.125328 -0.00585045"><geom size="0.0844223"/><site name="s1"/></body>
      <body quat="0.872135 -0.304021 0.0485492 -0.380255"><body pos="-0.028116 -0.104139 0.136324" quat="0.230875 0.134803 0.8284 -0.492218">
      <body pos="-0.188212 0.172614 -0.143711"><joint/><geom size="0.0585449" pos="0.0193705 0.0410516 -0.0199165"/></body></body></body></body>
      <body pos="0.570781 0.531915 0.592053"><body><joint/><geom size="0.0919499"/><body quat="0.633634 -0.300876 0.71271 -0.00510584">
      <joint range="-0.441325 0.463583"/><geom size="0.0432503"/><site name="s8" pos="-0.0484307 -0.0220467 -0.0650509"/></body></body></body>
      </worldbody><tendon><spatial range="0 .5"><site site="s1"/><site site="s8"/></spatial></tendon></mujoco>""",
    # and their limited drives keep their compliance to the last bit.
    """<mujoco><option timestep="0.01"/><worldbody><geom size="3"/><body><body pos="-0.174916 -0.129516 0.106299"><joint type="slide"/>
      <geom size="0.0945699"/><body><body><joint name="j2"/><geom size="0.0312197"/></body></body></body></body></worldbody>
      <actuator><velocity joint="j2" kv="2.30234" forcerange="-4.26852 16.5298"/></actuator></mujoco>"""])
def test_a_world_does_not_see_that_others_are_hard_to_solve(text):
    assert pairs_that_differ(text, 24, 2) == []


def test_worlds_on_a_height_field_are_as_alone():
    """Triangles number their points alike, and a lane found the last step's point of another triangle if its neighbour's order said so."""
    random = np.random.default_rng(3)
    heights = " ".join(f"{z:.3f}" for z in random.random(441))
    model = tarsus.Model.from_xml_string(f"""<mujoco><asset><hfield name="h" nrow="21" ncol="21" size="1 1 .05 .1" elevation="{heights}"/></asset>
      <worldbody><geom type="hfield" hfield="h"/><body pos="0 0 .15"><freejoint/><geom type="cylinder" size=".1 .05" mass="1"/></body></worldbody></mujoco>""")
    random, worlds = np.random.default_rng(0), 16
    qpos = np.tile(model.qpos0, (worlds, 1))
    qpos[:, :2] += random.uniform(-0.7, 0.7, (worlds, 2))
    qpos[:, 3:] += random.normal(0, 0.3, (worlds, 4))
    qvel = random.normal(0, 0.3, (worlds, 6))

    def run(of):
        batch = tarsus.Batch(model, len(of), dt=0.005)
        batch.reset(None, qpos[of], qvel[of])
        batch.rollout(150, states=False)
        return batch.qpos.copy()

    together = run(list(range(worlds)))
    assert [world for world in range(worlds) if not np.array_equal(run([world])[0], together[world])] == []


def test_a_world_far_out_spoils_nothing():
    """The row of a tendon without spring or armature, whose length is not finite, was written where there is no row."""
    for kind, far in (("hinge", 1e200), ("slide", 1e200)):
        model = tarsus.Model.from_xml_string(f"""<mujoco><worldbody><site name="a" pos="0 0 1"/><body><joint type="{kind}" axis="0 1 0"/>
          <geom size=".08" pos=".2 0 0"/><site name="b" pos=".3 0 0"/></body></worldbody>
          <tendon><spatial range="0 .5"><site site="a"/><site site="b"/></spatial></tendon></mujoco>""")
        one = tarsus.Batch(model, 8)
        one.qvel[:] = 0.1
        one.step()
        for _ in range(50):
            batch = tarsus.Batch(model, 8)
            batch.qvel[:] = 0.1
            batch.qpos[3] = far
            assert batch.step() == (kind == "hinge") and (batch.status[3] != 0) == (kind == "hinge")
            others = np.arange(8) != 3
            assert np.array_equal(batch.qvel[others], one.qvel[others])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_capsules_whose_axes_cross_part_across_them(dtype):
    """Planar models have such contacts. The normal was rounding noise, other in lanes than in a world alone, and their velocities
    differed by metres a second."""
    model = tarsus.Model.from_xml_string("""<mujoco><option timestep=".008"/><worldbody>
      <body pos="-.5 0 .3"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".04"/>
      <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".04"/></body></body>
      <body pos="0 0 .34"><freejoint/><geom type="capsule" size=".05 .06"/></body></worldbody></mujoco>""")
    random = np.random.default_rng(0)
    worlds = 20
    batch = tarsus.Batch(model, worlds, dtype=dtype)
    for world in range(worlds):
        angle = random.uniform(-0.1, 0.1)
        batch.qpos[world, :2], batch.qpos[world, 5:] = random.uniform(-0.1, 0.1, 2), (np.cos(angle), 0, np.sin(angle), 0)
    start, crossed = batch.qpos.astype(float), 0
    assert batch.step() == 0
    for world in range(worlds):
        data = tarsus.Data(model)
        data.qpos[:] = start[world]
        stepper = tarsus.Stepper(data)
        assert stepper.step() == 0
        for contact in stepper.contacts:
            if contact["distance"] < -0.0899:  # the axes, not an end, are together
                crossed += 1
                assert abs(contact["normal"][1]) == pytest.approx(1, abs=1e-6)
        assert batch.qvel[world] == pytest.approx(data.qvel, abs=1e-6 if dtype == "float64" else 2e-2), world
    assert crossed > 10


SPINS = """<mujoco><option timestep=".017"/><worldbody><body><freejoint/><geom type="capsule" size=".04923 .050525"/>
  <body pos=".05 .2 -.14" euler="-6.4 -44 59"><joint type="slide" axis="-.54 2.7 1.5" range="-.022 .11"/>
    <geom type="box" size=".11678 .094888 .081469" pos="-.045 .022 -.048"/><body pos="-.31 .16 -.015" euler="-36 20 60">
    <body pos="-.04 -.2 -.13" euler="-13 -15 -54"><geom type="cylinder" size=".063393 .087777" pos=".0051 -.046 .022" euler="9.3 49 -70"
      condim="6"/></body></body>
    <body><body pos=".1 .25 .068"><joint/><geom type="ellipsoid" size=".11056 .071729 .11461"/></body></body></body>
  <body pos="-.077 -.017 -.1" euler="-6.5 14 -52"><joint axis=".46 .74 -1.5"/>
    <body pos="-.17 -.17 -.22"><body pos=".046 .1 -.051"><joint type="slide" axis=".88 .83 .32"/>
      <geom type="ellipsoid" size=".058572 .063085 .086807"/></body></body>
    <body pos="-.12 -.037 -.055" euler="9.7 38 -11"><geom type="box" size=".060866 .048071 .10593" euler="-29 -8.5 -90"/>
      <geom type="box" size=".11623 .11697 .034584" euler="-45 88 -73"/><body pos=".14 -.0069 -.15">
      <joint type="slide" axis=".83 -1.3 -.26"/><geom name="last" type="capsule" size=".05686 .10921" euler="-63 -54 87"/>
  </body></body></body></body></worldbody><sensor><contact geom1="last" num="4" data="torque"/></sensor></mujoco>"""


def test_contacts_without_torque_have_none_beside_contacts_with_torque():
    """Some pairs of the model have condim 6, and a place in the lanes may hold another pair in each world. A contact of another
    got what was left in that place, which depended on the order of the worlds."""
    model = tarsus.Model.from_xml_string(SPINS)
    random, worlds, place = np.random.default_rng(2), 16, tarsus.Data(model)
    qpos = [tarsus.integrate(model, place, model.qpos0, random.normal(0, 0.3, model.nv), 1.0) for _ in range(worlds)]
    qvel = random.normal(0, 2, (worlds, model.nv))
    found = []
    for order in (1, -1):
        batch = tarsus.Batch(model, worlds)
        batch.reset(None, np.array(qpos[::order]), qvel[::order].copy())
        found.append(batch.rollout(15, sensors=True)[1][:, ::order])
    assert found[0].any() and np.array_equal(*found)


@pytest.mark.parametrize("viscosity", [0, 0.1])
@pytest.mark.parametrize("products", ["auto", "on"])
def test_a_servo_at_its_limit_does_not_feed_what_tumbles(viscosity, products):
    """Nor do a Stepper and a Batch take its limit otherwise. Explicit velocity products made 777,000 J of 5 in 2 s."""
    model = tarsus.Model.from_xml_string(f"""<mujoco><option timestep=".016667" gravity="0 0 0" viscosity="{viscosity}"/><worldbody>
      <body><freejoint/><geom type="box" size=".1 .06 .03" density="1200"/>
        <body pos=".15 0 .05"><joint name="j" axis="0 1 0" pos="0 0 .02"/><geom type="box" size=".1 .02 .05" pos=".1 .03 0" density="900"/>
      </body></body></worldbody><actuator><position joint="j" kp="100" kv="5" forcerange="-.05 .05"/></actuator></mujoco>""")
    options = {"contacts": False, "joint_limits": False, "velocity_products": products}
    data, batch = tarsus.Data(model), tarsus.Batch(model, 9, **options)
    stepper = tarsus.Stepper(data, **options)
    data.qvel[3:6] = batch.qvel[:, 3:6] = 6, 12, 9
    data.ctrl[:] = 1
    batch.ctrl[:] = 1
    energy = [tarsus.energy(model, data, data.qpos, data.qvel).kinetic]
    for _ in range(300):
        assert stepper.step() == 0 and batch.step() == 0
        energy.append(tarsus.energy(model, data, data.qpos, data.qvel).kinetic)
        assert np.allclose(batch.qvel, data.qvel, rtol=0, atol=1e-6)
    assert max(energy) < energy[0] + 1  # 0.05 N m do some work over a few turns


@pytest.mark.parametrize("dt", [1 / 60, 0.01, 0.005, 0.001])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_push_on_a_linkage_whose_rows_contradict_throws_the_link_beside_it(dt, dtype):
    """A connect with two independent rows of three locks two hinges, and qvel pushes against it. The third link is free."""
    model = tarsus.Model.from_xml_string("""<mujoco><worldbody><geom type="plane" size="0 0 1" pos="0 0 -50"/>
      <body pos="0 0 1"><joint axis="1 .3 .2"/><geom type="capsule" size=".03" fromto="0 0 0 .4 .1 0" mass="1"/>
        <body name="b" pos=".4 .1 0"><joint axis="0 1 .3"/><geom type="box" size=".15 .05 .03" pos=".1 0 .05" mass="2"/>
          <body pos=".2 0 .1"><joint axis=".2 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .1 .2 0" mass=".3"/></body></body></body>
      </worldbody><equality><connect body1="b" anchor=".1 .1 .05"/></equality></mujoco>""")
    data, batch = tarsus.Data(model), tarsus.Batch(model, 3, dt=dt, dtype=dtype)
    data.qvel = 2, 4, 1
    batch.qvel[:] = 2, 4, 1
    assert tarsus.Stepper(data, dt=dt).step() == 0 and batch.step() == 0
    assert data.qvel[2] > 20 and np.allclose(batch.qvel[:, 2], data.qvel[2], rtol=0.05)


def test_friction_of_parameters_that_are_cleared_is_gone_in_a_heap():
    """Worlds with so many contacts are stepped individually."""
    boxes = "".join(f'<body pos="{0.25 * i} 0 {0.1 + 0.2 * k}"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
                    for i in range(3) for k in range(3))  # fmt: skip
    model = tarsus.Model.from_xml_string(f'<mujoco><worldbody><geom type="plane" size="0 0 1"/>{boxes}</worldbody></mujoco>')
    gravity = np.tile([0, 0, -9.81], (2, 1))

    def slide(batch):
        batch.qvel[:, 0::6] = 1
        batch.rollout(30)
        return batch.state_hash()

    fresh, used, restored = (tarsus.Batch(model, 2) for _ in range(3))
    for batch in (fresh, restored):
        batch.set_parameters(gravity=gravity)
    saved = restored.save()
    for batch in (used, restored):
        batch.set_parameters(friction_scale=np.full(2, 0.01))
        slide(batch)
    used.reset()
    used.clear_parameters()
    used.set_parameters(gravity=gravity)
    restored.restore(saved)
    assert slide(fresh) == slide(used) == slide(restored)
