"""Inverse kinematics, initial poses, Jacobians composed of body Jacobians, inverse dynamics with contacts."""

import re

import mujoco
import numpy as np
import pytest
import tarsus
from oracle import DATA
from test_mujoco import load_mujoco

ARMS = {"kuka_iiwa_14/iiwa14.xml": "link7", "franka_emika_panda/panda.xml": "hand"}


def load(name):
    if not (DATA / "menagerie" / name).exists():
        pytest.skip(f"no {name} in ../shared/data")
    return tarsus.Model.load(DATA / "menagerie" / name, lenient=True)


def pose(model, data, qpos, body):
    tarsus.kinematics(model, data, qpos)
    rotation, position = tarsus.body_pose(model, data, body)
    return position.copy(), rotation.copy()


def within_ranges(model, qpos):
    return all(j.range[0] <= qpos[j.qpos][0] <= j.range[1] for j in model.joints if j.limited and j.nv == 1)


@pytest.mark.parametrize("name", ARMS)
def test_a_thousand_reachable_targets(name):
    model = load(name)
    data, rng = tarsus.Data(model), np.random.default_rng(1)
    solved = 0
    for _ in range(1000):
        position, rotation = pose(model, data, tarsus.random_configuration(model, rng), ARMS[name])
        result = tarsus.ik(model, tarsus.FrameTask(ARMS[name], position, rotation), data=data)
        assert within_ranges(model, result.qpos)
        reached, turned = pose(model, data, result.qpos, ARMS[name])
        miss = np.hypot(np.linalg.norm(reached - position), np.linalg.norm(turned - rotation))
        assert result.success == (result.error <= 1e-6)
        solved += result.success and miss < 2e-6
    print(f"{name}: {solved} of 1000 solved to 1e-6 within the joints' ranges")
    assert solved >= 990


def test_several_frames_at_once():
    model = load("unitree_go2/go2.xml")
    data = tarsus.Data(model)
    feet = [b.name for b in model.bodies if b.name.endswith("_calf")]
    qpos = tarsus.random_configuration(model, 4)
    qpos[:7] = model.qpos0[:7]
    tasks = [tarsus.FrameTask("base", qpos[:3], qpos[3:7])]
    for foot in feet:
        position, rotation = pose(model, data, qpos, foot)
        tasks.append(tarsus.FrameTask(foot, position + rotation @ [0, 0, -0.2], point=[0, 0, -0.2]))
    result = tarsus.ik(model, tasks)
    assert result.success and within_ranges(model, result.qpos)


def test_out_of_reach_says_so():
    model = load("kuka_iiwa_14/iiwa14.xml")
    result = tarsus.ik(model, tarsus.FrameTask("link7", position=[5, 0, 0]), restarts=2)
    assert not result.success and result.error > 3


def test_a_free_root_goes_far():
    """Targets at distances that are many times the motion of one iteration, which turns no joint by more than 0.7 rad."""
    model = tarsus.Model.load(tarsus.MODELS / "humanoid.xml")
    for place in ([0, 0, -50], [300, -200, 10]):
        result = tarsus.ik(model, tarsus.FrameTask("left_foot", position=place))
        assert result.success, (place, result.error)


def test_half_turns():
    model = tarsus.Model.from_xml_string(
        '<mujoco><worldbody><body name="b"><joint type="ball"/><geom size=".1"/></body></worldbody></mujoco>')
    for axis in np.eye(3):
        result = tarsus.ik(model, tarsus.FrameTask("b", orientation=[0, *axis]))
        assert result.success
        assert abs(result.qpos[1:] @ axis) == pytest.approx(1, abs=1e-6)


def turn_of(quaternion):
    return np.degrees(2 * np.arctan2(np.linalg.norm(quaternion[1:]), abs(quaternion[0])))


def test_balls_stay_within_their_ranges():
    """A pendulum on a ball joint with a range of 20 degrees. Targets within the range are reached; for others the result is the
    nearest point."""
    model = tarsus.Model.from_xml_string("""
      <mujoco><worldbody><body name="b"><joint type="ball" range="0 20"/>
      <geom type="capsule" fromto="0 0 0 0 0 -1" size=".05"/></body></worldbody></mujoco>""")
    for angle in (5.0, 19.9, 20.1, 90.0, 179.0):
        for heading in (0.0, 1.0, 4.0):
            a = np.radians(angle)
            target = [np.sin(a) * np.cos(heading), np.sin(a) * np.sin(heading), -np.cos(a)]
            result = tarsus.ik(model, tarsus.FrameTask("b", target, point=[0, 0, -1]), restarts=3)
            assert turn_of(result.qpos) <= 20 + 1e-9
            assert result.success == (angle < 20)
            assert result.error == pytest.approx(2 * np.sin(np.radians(max(angle - 20, 0)) / 2), abs=2e-6)
    turned = [turn_of(tarsus.random_configuration(model, seed)) for seed in range(400)]
    assert max(turned) <= 20 and np.mean(turned) == pytest.approx(15, abs=0.6)  # density ~ angle², 4 standard errors


def test_com_jacobian_moves_the_centre_of_mass():
    model = load("unitree_go2/go2.xml")
    data = tarsus.Data(model)
    qpos, qvel = tarsus.random_configuration(model, 3), np.random.default_rng(0).normal(size=model.nv)
    J = tarsus.com_jacobian(model, data, qpos)
    tarsus.kinematics(model, data, qpos, qvel)
    momentum = tarsus.momentum(model, data)
    np.testing.assert_allclose(J @ qvel, momentum.linear / momentum.mass, atol=1e-12)


ROBOTS = ["unitree_go2/go2.xml", "kuka_iiwa_14/iiwa14.xml", "shadow_hand/left_hand.xml", "unitree_g1/g1.xml"]


def moving(name, seed=0):
    model = load(name)
    rng = np.random.default_rng(seed)
    return model, tarsus.Data(model), tarsus.random_configuration(model, seed), rng.normal(size=model.nv)


def slope(f):
    """f'(0), by two central differences and Richardson extrapolation."""
    near, far = ((f(h) - f(-h)) / (2 * h) for h in (1e-3, 2e-3))
    return (4 * near - far) / 3


@pytest.mark.parametrize("name", ROBOTS)
def test_jacobian_derivative_is_mujocos_and_the_slope(name):
    model, data, qpos, qvel = moving(name)
    theirs, _ = load_mujoco(DATA / "menagerie" / name)
    d, point, body = mujoco.MjData(theirs), np.array([0.1, 0.2, 0.3]), model.nbody - 1
    d.qpos[:], d.qvel[:] = qpos, qvel
    mujoco.mj_forward(theirs, d)
    linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jacDot(theirs, d, linear, angular, d.xpos[body] + d.xmat[body].reshape(3, 3) @ point, body)
    rate = tarsus.jacobian_derivative(model, data, body, qpos, qvel, point)
    np.testing.assert_allclose(rate, np.concatenate([angular, linear]), atol=1e-12)

    def jacobian(time):
        tarsus.kinematics(model, data, tarsus.integrate(model, data, qpos, qvel, time))
        rotation, position = tarsus.body_pose(model, data, body)
        return tarsus.jacobian(model, data, body, position + rotation @ point).copy()

    np.testing.assert_allclose(rate, slope(jacobian), atol=1e-10)


@pytest.mark.parametrize("name", ROBOTS)
def test_relative_jacobian_is_the_slope_of_the_relative_pose(name):
    model, data, qpos, qvel = moving(name, 1)
    body, reference = model.nbody - 1, model.nbody // 2

    def pose(time):
        tarsus.kinematics(model, data, tarsus.integrate(model, data, qpos, qvel, time))
        (R, p), (Q, r) = (tarsus.body_pose(model, data, b) for b in (reference, body))
        return np.column_stack([R.T @ (r - p), R.T @ Q])

    rate, turn = slope(pose), pose(0)[:, 1:]
    spin = rate[:, 1:] @ turn.T
    J = tarsus.relative_jacobian(model, data, body, reference)
    np.testing.assert_allclose(J @ qvel, [spin[2, 1], spin[0, 2], spin[1, 0], *rate[:, 0]], atol=1e-9)
    assert (J[:, :6] == 0).all() or name not in ROBOTS[::3]  # a free root moves both alike


def test_inverse_dynamics_finds_the_forces_of_a_step_with_contacts():
    """A humanoid falls under random torques. Inverse dynamics recovers the torques of a step from its acceleration and contact
    forces."""
    model = tarsus.Model.load(tarsus.MODELS / "humanoid.xml")
    data, other, rng = tarsus.Data(model), tarsus.Data(model), np.random.default_rng(0)
    stepper = tarsus.Stepper(data, dt=1 / 240, joint_limits=False, velocity_products="off")
    most = 0
    for _ in range(240):
        data.tau[6:] = 5 * rng.normal(size=model.nv - 6)
        qpos, qvel, tau = data.qpos.copy(), data.qvel.copy(), data.tau.copy()
        assert stepper.step() == 0
        most = max(most, len(stepper.contacts))
        found = tarsus.inverse_dynamics(model, other, qpos, qvel, data.qacc, stepper.contacts)
        size = max(1, np.abs(tarsus.rnea(model, other, qpos, qvel, data.qacc)).max())
        np.testing.assert_allclose(found, tau, atol=1e-8 * size)
    assert most > 8


def test_inverse_dynamics_finds_the_torques_of_contacts():
    """Torques of torsional and rolling friction on a ball that lands with a spin."""
    ball = 'type="sphere" size="0.1" mass="1" condim="6" friction="0.8 0.05 0.02"'
    model = tarsus.Model.from_xml_string(
        f'<mujoco><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 0.099"><freejoint/><geom {ball}/></body></worldbody></mujoco>')
    data, other = tarsus.Data(model), tarsus.Data(model)
    data.qvel[:] = [0.5, 0, 0, 1, 5, 10]
    stepper = tarsus.Stepper(data, dt=0.001, contacts=True, velocity_products="off")
    qpos, qvel = data.qpos.copy(), data.qvel.copy()
    assert stepper.step() == 0
    contact, = stepper.contacts
    assert contact["torque"][2] == pytest.approx(-0.05 * contact["force"][2], rel=1e-6)
    np.testing.assert_allclose(tarsus.inverse_dynamics(model, other, qpos, qvel, data.qacc, [contact]), 0, atol=1e-8)


@pytest.mark.parametrize("links", [(999, -1), (-2, 0), (0,), (0, 1, 2), (0.0, -1), ("head", -1)])
def test_links_that_a_contact_cannot_be_of_are_named(links):
    model = tarsus.Model.load(tarsus.MODELS / "humanoid.xml")
    data, zero = tarsus.Data(model), np.zeros(model.nv)
    contact = {"links": links, "position": [0, 0, 0], "force": [0, 0, 1]}
    with pytest.raises(tarsus.ValueError, match=f"^contacts' links: is {re.escape(repr(links))}, expected two links"):
        tarsus.inverse_dynamics(model, data, model.qpos0, zero, zero, [contact])
    contact["links"] = [np.int64(0), -1]
    pushed = tarsus.inverse_dynamics(model, data, model.qpos0, zero, zero, [contact])
    assert pushed[2] == pytest.approx(tarsus.rnea(model, data, model.qpos0, zero, zero)[2] - 1)


@pytest.mark.parametrize("options, text", [
    ({"worlds": 4}, "is of 4 worlds, expected data of a single world"),
    ({"dtype": "float32"}, "is of float32, expected float64"),
])
def test_data_of_worlds_or_floats_is_named(options, text):
    model = tarsus.Model.load(tarsus.MODELS / "humanoid.xml")
    data, q, v = tarsus.Data(model, **options), model.qpos0, np.zeros(model.nv)
    for call in (lambda: tarsus.ik(model, tarsus.FrameTask("head", position=[0, 0, 1]), data=data),
                 lambda: tarsus.com_jacobian(model, data, q),
                 lambda: tarsus.relative_jacobian(model, data, "head", "chest"),
                 lambda: tarsus.jacobian_derivative(model, data, "head", q, v)):
        with pytest.raises(tarsus.ValueError, match=f"^data: {text}$"):
            call()


def test_neutral_is_within_ranges_and_random_is_reproducible():
    model = load("unitree_go2/go2.xml")
    assert within_ranges(model, tarsus.neutral(model))
    assert within_ranges(model, tarsus.random_configuration(model, 0))
    np.testing.assert_array_equal(tarsus.random_configuration(model, 7), tarsus.random_configuration(model, 7))


def test_refuses_tasks_without_a_target():
    model = load("kuka_iiwa_14/iiwa14.xml")
    with pytest.raises(tarsus.ValueError):
        tarsus.ik(model, tarsus.FrameTask("link7"))
    with pytest.raises(tarsus.ValueError):
        tarsus.ik(model, tarsus.FrameTask("link7", orientation=[1, 2]))


@pytest.mark.parametrize("task, options, text", [
    ({}, {}, "tasks: have neither a position"),
    ({"position": 5}, {}, "position: is 5, expected three"),
    ({"position": [0, np.nan, 0]}, {}, "position: is "),
    ({"position": [0, 0, 1], "point": [0, 0]}, {}, "point: is "),
    ({"orientation": np.diag([1, 1, -1.0])}, {}, "orientation: is "),
    ({"orientation": [np.nan, 0, 0, 0]}, {}, "orientation: is "),
    ({"position": [0, 0, 1], "weight": 0}, {}, "weight: is 0, expected a positive"),
    ({"position": [0, 0, 1], "weight": -1}, {}, "weight: is -1"),
    ({"position": [0, 0, 1]}, {"restarts": -1}, "restarts: is -1, expected a whole number that is not negative"),
    ({"position": [0, 0, 1]}, {"iterations": -1}, "iterations: is -1"),
    ({"position": [0, 0, 1]}, {"tolerance": np.nan}, "tolerance: is nan"),
    ({"position": [0, 0, 1]}, {"qpos": [0.0]}, "qpos: is of shape"),
    ({"position": [0, 0, 1]}, {"qpos": [np.nan] * 43}, "qpos: is .*, expected finite numbers"),
])
def test_what_ik_cannot_mean_is_named(task, options, text):
    model = tarsus.Model.load(tarsus.MODELS / "humanoid.xml")
    with pytest.raises(tarsus.ValueError, match=f"^{text}"):
        tarsus.ik(model, tarsus.FrameTask("head", **task), **options)


def test_inverse_kinematics_keeps_loops_and_mimics():
    model = tarsus.Model.load(tarsus.MODELS / "loops/four_bar.xml")
    data, loops = tarsus.Data(model), tarsus.Equalities(model)
    stepper = tarsus.Stepper(data, dt=0.002, loops="shake")
    for _ in range(150):
        assert stepper.step() == 0
    tarsus.kinematics(model, data, data.qpos)
    _, position = tarsus.body_pose(model, data, "coupler")
    result = tarsus.ik(model, tarsus.FrameTask("coupler", position=position))
    assert result.success and np.abs(loops.rows(data, result.qpos)["phi"]).max() <= 1e-6
    result = tarsus.ik(model, tarsus.FrameTask("coupler", position=position + [0, 0.1, 0]), restarts=1)   # out of its plane
    assert not result.success

    links = "".join(f'<link name="l{i}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>' for i in range(3))
    joints = "".join(f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/><axis xyz="0 1 0"/>{more}</joint>'
                     for i, more in enumerate(["", '<mimic joint="j0" multiplier="-2" offset="0.1"/>']))
    finger = tarsus.Model.from_xml_string(f'<robot name="finger">{links}{joints}</robot>')
    result = tarsus.ik(finger, tarsus.FrameTask("l2", orientation=[np.cos(0.2), 0, np.sin(0.2), 0]))
    assert result.success and np.allclose(result.qpos, [-0.3, 0.7], atol=1e-5)


def test_sites_by_name_and_index():
    model = tarsus.Model.from_xml_string("""<mujoco><worldbody><site name="w" pos="1 2 3"/>
      <body name="arm" pos="0 0 1"><joint axis="0 1 0"/><geom size=".1"/><site name="tip" pos=".3 0 0" euler="0 90 0"/></body>
    </worldbody></mujoco>""")
    data = tarsus.Data(model)
    data.qpos[:] = -np.pi / 2  # the arm's x axis points up
    with pytest.raises(ValueError, match="expected a call of kinematics"):
        tarsus.site_pose(model, data, "tip")
    tarsus.kinematics(model, data, data.qpos, data.qvel)
    rotation, position = tarsus.site_pose(model, data, "tip")
    assert np.allclose(position, [0, 0, 1.3]) and np.allclose(rotation, np.eye(3))  # the two rotations cancel
    assert np.allclose(tarsus.site_pose(model, data, 0)[1], [1, 2, 3])
    tip = model.site("tip")
    assert (tip.id, tip.body, tip.name) == (1, model.body("arm").id, "tip") and np.array_equal(tip.position, [0.3, 0, 0])
    found = tarsus.ik(model, tarsus.FrameTask(tip.body, position=[0.3, 0, 1], point=tip.position))
    assert found.success and abs(found.qpos[0]) < 1e-6
    for wrong in ("tap", 2, -1):
        with pytest.raises(tarsus.ValueError, match="site: is "):
            model.site(wrong)
    with pytest.raises(TypeError, match="site: is of type float"):
        model.site(0.5)
    with pytest.raises(tarsus.ValueError, match="a model that has sites"):
        tarsus.Model.load(tarsus.MODELS / "pendulum.xml").site("tip")
