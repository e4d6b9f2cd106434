"""Contacts of trees against MuJoCo's, on the same MJCF, and their Python interface."""

import pathlib
import re

import numpy as np
import pytest
import tarsus

mujoco = pytest.importorskip("mujoco")

MODELS = pathlib.Path(__file__).parents[2] / "models"

FLOOR = '<geom type="plane" size="0 0 1" friction="0.1 0 0"/>'


def model_text(bodies, extra=""):
    return f"""<mujoco><option gravity="0 0 -9.81" cone="elliptic" impratio="10"/>{extra}
<worldbody>{FLOOR}{bodies}</worldbody></mujoco>"""


def box(name, position, size="0.1 0.1 0.1", friction=0.5, mass=2):
    return (f'<body name="{name}" pos="{position}"><freejoint/>'
            f'<geom type="box" size="{size}" mass="{mass}" friction="{friction} 0 0" condim="3"/></body>')


def ours(text, dt, steps, velocity=None, **options):
    model = tarsus.Model.from_xml_string(text)
    data = tarsus.Data(model)
    if velocity is not None:
        data.qvel = np.asarray(velocity, float)
    stepper = tarsus.Stepper(data, dt=dt, contacts=True, joint_limits=True, **options)
    for _ in range(steps):
        assert stepper.step() == 0
    return model, data, stepper


def theirs(text, dt, seconds, velocity=None):
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = dt
    data = mujoco.MjData(model)
    if velocity is not None:
        data.qvel[:] = velocity
    for _ in range(round(seconds / dt)):
        mujoco.mj_step(model, data)
    return model, data


def mujoco_floor_force(model, data):
    """Sum of the normal forces between the floor and anything [N]."""
    total, force = 0.0, np.zeros(6)
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, force)
        if 0 in (data.contact[i].geom1, data.contact[i].geom2):
            total += force[0]
    return total


@pytest.mark.parametrize("bodies", [
    box("a", "0 0 0.1"),
    box("a", "0 0 0.1") + box("b", "0 0 0.3", mass=5),
    '<body pos="0 0 0.2"><freejoint/><geom type="capsule" fromto="-0.3 0 0 0.3 0 0" size="0.1" mass="3"/>'
    '<body pos="0.4 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.1" mass="2"/></body></body>',
])
def test_resting_forces_are_mujocos(bodies):
    text = model_text(bodies)
    _, _, stepper = ours(text, 0.005, 600)
    mine = sum(c["force"][2] for c in stepper.contacts if c["links"][1] == -1)
    model, data = theirs(text, 0.002, 4)
    assert mine == pytest.approx(mujoco_floor_force(model, data), rel=0.01)


def test_contacts_have_the_friction_of_mujocos_rules():
    text = model_text(box("a", "0 0 0.1", friction=0.7) + box("b", "2 0 0.1", friction=0.05))
    _, _, stepper = ours(text, 0.005, 3)
    model, data = theirs(text, 0.002, 0.01)
    mine = {c["position"][0] > 1: c["friction"] for c in stepper.contacts}
    others = {bool(c.pos[0] > 1): c.friction[0] for c in data.contact}
    assert mine == pytest.approx(others) and sorted(mine.values()) == pytest.approx([0.1, 0.7])
    smooth = model_text(box("a", "0 0 0.1")).replace('condim="3"', 'condim="1"').replace('friction="0.1 0 0"', 'condim="1"')
    _, _, stepper = ours(smooth, 0.005, 3)
    assert stepper.contacts and all(c["friction"] == 0 for c in stepper.contacts)


def test_sliding_block_converges_to_coulomb_as_mujocos_does():
    text = model_text(box("a", "0 0 0.05", "0.2 0.2 0.05", 0.4))
    start, seconds, exact = [2, 0, 0, 0, 0, 0], 0.4, 2 * 0.4 - 0.5 * 0.4 * 9.81 * 0.4**2
    errors = []
    for dt in (0.01, 0.005, 0.0025):
        _, data, _ = ours(text, dt, round(seconds / dt), start)
        errors.append(abs(data.qpos[0] - exact))
    assert errors[2] < 0.6 * errors[1] < 0.6 * 0.6 * errors[0]
    _, reference = theirs(text, 0.0005, seconds, start)
    assert data.qpos[0] == pytest.approx(reference.qpos[0], abs=0.005)


def test_rolling_sphere_slides_then_rolls():
    text = model_text('<body pos="0 0 0.1"><freejoint/><geom type="sphere" size="0.1" mass="1" friction="0.3 0 0"/></body>')
    # A solid sphere that starts sliding ends up rolling at 5/7 of its initial speed, whatever the friction.
    speeds = []
    for dt in (0.01, 0.0025):
        _, data, _ = ours(text, dt, round(1.5 / dt), [2, 0, 0, 0, 0, 0])
        speeds.append(data.qvel[0])
    assert speeds[1] == pytest.approx(2 * 5 / 7, rel=2e-3)
    _, reference = theirs(text, 0.001, 1.5, [2, 0, 0, 0, 0, 0])
    assert speeds[1] == pytest.approx(reference.qvel[0], rel=0.01)


def test_humanoid_falls_and_lies_still():
    model = tarsus.Model.load(str(MODELS / "humanoid.xml"))
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data, dt=1 / 60, contacts=True, joint_limits=True)
    assert stepper.rows is not None
    deepest = 0.0
    for _ in range(600):
        assert stepper.step() == 0
        deepest = max(deepest, stepper.rows["penetration"])
    assert 0.1 < data.qpos[2] < 0.4
    assert deepest < 0.02
    weight = sum(c["force"][2] for c in stepper.contacts if c["links"][1] == -1)
    assert weight == pytest.approx(9.81 * model.total_mass(), rel=0.1)


LADDER = """<mujoco><option gravity="0 0 -9.81" timestep="0.005"/><worldbody>
  <geom type="plane" size="0 0 1" friction="0 0 0"/>
  <body name="left" pos="0 0 1.22">
    <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/><joint name="turn" axis="0 1 0"/>
    <inertial pos="-.25 0 -.6" mass="3" diaginertia=".3 .3 .05"/><geom type="sphere" size=".02" pos="-.5 0 -1.2" friction="0 0 0"/>
    <body name="right"><joint name="hinge" axis="0 1 0"/>
      <inertial pos=".25 0 -.6" mass="3" diaginertia=".3 .3 .05"/><geom type="sphere" size=".02" pos=".5 0 -1.2" friction="0 0 0"/>
    </body></body></worldbody>
  <equality><joint name="rope" joint1="hinge"/></equality></mujoco>"""


@pytest.mark.parametrize("loops", ["spook", "shake"])
def test_loops_and_contacts_hold_together(tmp_path, loops):
    """A stepladder on ice. An equality locks its hinge, so that the legs do not slide apart: the hinge's torque is m g a / 2."""
    (tmp_path / "ladder.xml").write_text(LADDER)
    model = tarsus.Model.load(str(tmp_path / "ladder.xml"))
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data, dt=0.005, contacts=True, loops=loops)
    for _ in range(1000):
        assert stepper.step() == 0
    report = stepper.loops()
    assert report["status"] == "solved" and report["rows"] == 1
    assert report["error"] < 1e-9 and report["worst_row"].startswith("rope")
    (torque,) = report["multipliers"].values()
    assert abs(torque) == pytest.approx(3 * 9.81 * 0.5 / 2, rel=1e-4)
    assert [c["force"][2] for c in stepper.contacts] == pytest.approx([3 * 9.81] * 2, rel=1e-4)
    with pytest.raises(tarsus.ValueError, match="world"):
        stepper.loops(1)


def test_rows_of_one_world_and_of_many():
    model = tarsus.Model.load(str(MODELS / "pendulum.xml"))
    many = tarsus.Stepper(tarsus.Data(model, worlds=8), contacts=True)
    many.step()
    assert [r["status"] for r in many.rows] == ["converged"] * 8
    with pytest.raises(tarsus.ValueError, match="one world; use Batch"):
        many.contacts
    assert tarsus.Stepper(tarsus.Data(model), contacts=False, joint_limits=False).rows is None
    assert tarsus.Stepper(tarsus.Data(model)).loops() is None



@pytest.mark.parametrize("name, most", [("humanoid", 16), ("dog", 24)])
def test_falls_take_few_iterations(name, most):
    """Limp characters with random orientations, from the first impact until they lie: the falls of bench/ground_peers_bench.py.
    Newton's method alone needs 22 and 71 iterations at the 99th percentile, and exceeds the tolerance in one step of each."""
    model = tarsus.Model.load(str(MODELS / f"{name}.xml"))
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data, dt=1 / 60, contacts=True, joint_limits=True)
    iterations, residuals = [], []
    for seed in range(6):
        random = np.random.default_rng(seed)
        qpos, qvel = np.array(model.qpos0), 0.5 * random.normal(size=model.nv)
        qpos[2] += 0.3
        turn = random.normal(size=4)
        qpos[3:7] = turn / np.linalg.norm(turn)
        data.reset()
        data.qpos, data.qvel = qpos, qvel
        for _ in range(180):
            assert stepper.step() == 0
            iterations.append(stepper.rows["iterations"])
            residuals.append(stepper.rows["residual"])
    assert max(residuals) <= 1e-6
    assert np.percentile(iterations, 99) <= most


def test_iterations_end_where_they_are_told_to():
    """With drives at their limits and random targets a step returns the best of its iterations, with the residual."""
    model = tarsus.Model.load(str(MODELS / "humanoid.xml"))
    drives = tarsus.Drives.uniform(model, kp=300, kd=30, root_kp=0, root_kd=0)
    drives.force_limit = np.where(np.arange(model.nv) < 6, np.inf, 60.0)
    hinges = [joint.qpos.start for joint in model.joints if joint.type == "hinge"]
    told = {}
    for most in (3, 1000):
        data = tarsus.Data(model)
        stepper = tarsus.Stepper(data, dt=1 / 60, contacts=True, joint_limits=True, max_iterations=most)
        random, rows = np.random.default_rng(0), []
        for _ in range(120):
            target = np.array(model.qpos0)
            target[hinges] += random.uniform(-1, 1, len(hinges))
            assert stepper.step(drives, qpos_target=target) == 0
            rows.append(stepper.rows)
        told[most] = rows
    assert all(r["residual"] <= 1e-6 and r["status"] == "converged" for r in told[1000])
    assert max(r["iterations"] for r in told[1000]) > 5
    assert max(r["iterations"] for r in told[3]) <= 4  # and one that brings impulses within their bounds
    assert any(r["status"] == "too_many_iterations" and r["residual"] > 1e-6 for r in told[3])
    with pytest.raises(tarsus.ValueError, match="max_iterations"):
        tarsus.Stepper(tarsus.Data(model), contacts=True, max_iterations=0)


@pytest.mark.parametrize("geom", ['type="sphere" size=".1"', 'type="box" size=".1 .1 .1"'])
@pytest.mark.parametrize("restitution", [0.5, 1.0])
def test_bounces_reach_the_height_that_restitution_gives(geom, restitution):
    model = tarsus.Model.from_xml_string(f'<mujoco><worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 1.1"><freejoint/><geom {geom}/></body></worldbody></mujoco>')  # fmt: skip
    data, dt = tarsus.Data(model), 1e-4
    stepper = tarsus.Stepper(data, dt=dt, contacts=True, restitution=restitution)
    batch = tarsus.Batch(model, 2, dt=dt, contacts=True, restitution=restitution)
    falls = round(np.sqrt(2 / 9.81) / dt)
    heights = []
    for _ in range(int(falls * (1 + 2 * restitution)) - 10):
        assert stepper.step() == 0
        heights.append(data.qpos[2] - 0.1)
    assert max(heights[falls + 10:]) == pytest.approx(restitution**2, rel=2e-3)
    batch.rollout(len(heights))
    assert batch.qpos[:, 2] == pytest.approx(data.qpos[2], abs=1e-9)


def test_bounces_in_float_are_those_in_double():
    """Legs hit the ground at random speeds, in lanes and individually."""
    model = tarsus.Model.from_xml_string('''<mujoco><worldbody><geom type="plane" size="5 5 1"/>
        <body pos="0 0 .9"><joint axis="0 1 0"/><geom type="capsule" size=".04" fromto="0 0 0 .1 0 -.4"/>
        <body pos=".1 0 -.4"><joint axis="0 1 .25"/><geom type="capsule" size=".03" fromto="0 0 0 0 0 -.4"/>
        <body pos="0 0 -.4"><joint type="slide" axis="0 0 1"/><geom type="sphere" size=".06"/></body></body></body></worldbody></mujoco>''')
    random, worlds = np.random.default_rng(7), 200
    qpos, qvel = random.uniform(-0.2, 0.2, (worlds, 3)), random.uniform(-1, 1, (worlds, 3))
    found = {}
    for dtype in ("float64", "float32"):
        batch = tarsus.Batch(model, worlds, 0.01, dtype=dtype, contacts=True, restitution=0.5)
        batch.qpos[:], batch.qvel[:] = qpos, qvel
        assert batch.step() == 0
        found[dtype] = batch.qvel.copy(), batch.ground_force[:, 2].copy(), (batch.reports["touching"] > 0).sum()
    (speed, force, touching), (speed32, force32, _) = found.values()
    assert touching > 40
    assert np.abs(speed32 - speed).max() < 2e-3 and np.abs(force32 - force).max() < 2e-3 * np.abs(force).max()
    one = tarsus.Data(model, dtype="float32")
    stepper = tarsus.Stepper(one, 0.01, contacts=True, restitution=0.5)
    for world in range(worlds):
        one.qpos[:], one.qvel[:] = qpos[world], qvel[world]
        stepper.restart()
        assert stepper.step() == 0
        assert np.abs(one.qvel - speed[world]).max() < 2e-3
        pushed = np.sum([np.zeros(3)] + [contact["force"] for contact in stepper.contacts], axis=0)
        assert np.abs(pushed - force[world]).max() < 2e-3 * np.abs(force).max()


QPOS_OF_BOWLS = [-0.1109, 0.0106, 0.0187, 0.945, -0.0395, -0.2742, 0.1741, -0.0081, 0.0304, 0.027, 0.4754, -0.4294, 0.3646, -0.6757, 0.1111, -0.0381, 0.0215, -0.0897, 0.9948, -0.0349, -0.0327]
QVEL_OF_BOWLS = [-0.323, 0.31, 0.146, -13.243, -19.738, 12.333, -0.217, 0.886, 0.651, -28.626, 17.72, -57.503, 0.731, -1.222, 0.021, -283.146, 26.605, -50.878]


@pytest.mark.parametrize("joint, qpos, qvel", [("<freejoint/>", QPOS_OF_BOWLS, QVEL_OF_BOWLS),
                                               ('<joint type="ball"/>', [1, 0, 0, 0] * 3, 50 * np.random.default_rng(3).normal(size=9))])
def test_fast_bodies_of_many_shapes_are_stepped(joint, qpos, qvel):
    """Three bowls of boxes that spin by radians a step, with 33,000 and 23,000 contacts within reach. A dense matrix of their
    rows would take 56 and 32 GB."""
    def bowl(place, turn, size, rings, radius, box):
        return (f'<body pos="{place}" euler="{turn}">{joint}<geom type="cylinder" size="{size}"/><replicate count="20" euler="0 0 18">'
                f'<frame pos="{radius} 0 .03" euler="0 15 0"><replicate count="{rings}" euler="0 15 0"><geom type="box" size="{box}" pos="0 0 -.03"/>'
                "</replicate></frame></replicate></body>")

    bodies = (bowl("-.1 0 .04", "20 10 0", ".03 .002", 6, -0.025, ".0044 .009 .002") + bowl("0 0 .02", "20 20 0", ".01 .0015", 6, -0.005, ".0044 .006 .0015")
              + bowl(".09 0 .04", "30 30 0", ".03 .002", 4, -0.025, ".0044 .009 .002"))  # fmt: skip
    model = tarsus.Model.from_xml_string(f'<mujoco><worldbody><geom type="plane" size="1 1 .01"/>{bodies}</worldbody></mujoco>')
    data = tarsus.Data(model)
    data.qpos, data.qvel = np.array(qpos, float), np.array(qvel)
    stepper = tarsus.Stepper(data, dt=1 / 60, contacts=True)
    assert stepper.step() == 0 and stepper.rows["status"] == "converged" and stepper.rows["contacts"] > 20000


def test_rough_terrain_gives_no_energy():
    random = np.random.default_rng(3)
    kinds = ['type="cylinder" size=".08 .1"', 'type="ellipsoid" size=".12 .08 .06"', 'type="box" size=".1 .07 .05"', 'type="capsule" size=".06 .1"']
    bodies = "".join(f'<body pos="{random.uniform(-0.5, 0.5):.3f} {random.uniform(-0.5, 0.5):.3f} {0.6 + 0.2 * i:.2f}" euler="{random.uniform(0, 180):.0f} {random.uniform(0, 180):.0f} 0">'
                     f'<freejoint/><geom {kinds[i % 4]} mass="1"/></body>' for i in range(16))  # fmt: skip
    heights = " ".join(f"{h:.3f}" for h in random.uniform(0, 1, 121))
    text = (f'<mujoco><asset><hfield name="h" nrow="11" ncol="11" size="1.5 1.5 .4 .3" elevation="{heights}"/></asset><worldbody><geom type="hfield" hfield="h"/>'
            f"{bodies}</worldbody></mujoco>")  # fmt: skip
    model = tarsus.Model.from_xml_string(text)
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data, dt=0.002, contacts=True)
    tarsus.kinematics(model, data, data.qpos, data.qvel)
    before, deepest = tarsus.energy(model, data, data.qpos, data.qvel).total(), 0
    for _ in range(1500):
        assert stepper.step() == 0
        tarsus.kinematics(model, data, data.qpos, data.qvel)
        now = tarsus.energy(model, data, data.qpos, data.qvel).total()
        assert now < before + 0.02, now - before
        before, deepest = now, max(deepest, stepper.rows["penetration"])
    assert deepest < 0.02


def test_whoever_steps_takes_the_files_step_contacts_and_ranges():
    model = tarsus.Model.from_xml_string("""<mujoco><compiler angle="radian"/><option timestep=".004"/><worldbody><geom type="plane" size="0 0 1"/>
      <body pos="0 0 .1"><freejoint/><geom size=".1"/></body>
      <body pos="2 0 1"><joint axis="0 1 0" range="-1 1" limited="true"/><geom size=".1" pos=".5 0 0"/></body></worldbody></mujoco>""")
    data, alone = tarsus.Data(model), tarsus.Data(model)
    stepper, batch = tarsus.Stepper(data), tarsus.Batch(model, 2)
    assert stepper.dt == batch.dt == 0.004
    for _ in range(500):
        assert stepper.step() == 0 and tarsus.step(model, alone) == ["ok"]
    batch.rollout(500)
    assert data.time == pytest.approx(2) and alone.time == data.time
    for qpos in (data.qpos, alone.qpos, batch.qpos[0]):
        assert 0.09 < qpos[2] < 0.1 and 0.99 < qpos[7] < 1.01
    for options in ({"contacts": False, "joint_limits": False}, {"integrator": "rk4"}):
        falls = tarsus.Data(model)
        tarsus.Stepper(falls, **options).step()
        twin = tarsus.Batch(model, 1, **options)
        assert tarsus.step(model, tarsus.Data(model), **options) == ["ok"] and twin.step() == 0
        assert falls.qvel[2] == pytest.approx(-9.81 * 0.004) and twin.qvel[0, 2] == falls.qvel[2]


TURNTABLE = """<mujoco><worldbody>
  <body><joint axis="0 0 1"/><geom type="box" size=".7 .7 .05" mass="1e5" condim="4"/></body>
  <body pos=".4 0 .1"><freejoint/><geom type="box" size=".05 .05 .05" mass="1" condim="4"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("h", [0.002, 1 / 60])
@pytest.mark.parametrize("dtype", [None, np.float64, np.float32])
def test_what_a_turntable_carries_stays_on_its_circle(h, dtype):
    """Friction of 0.37 of the weight holds the block; it has 1. A step along the tangent leads ½ h² v²/r outward, so that r
    would grow by the factor exp(½ ω² h t): 1.09 at 2 ms, 2.1 at 60 Hz."""
    rate, start, time = 3.0, 0.4, 10.0
    model = tarsus.Model.from_xml_string(TURNTABLE)
    if dtype is None:
        world = tarsus.Data(model)
        world.qvel[[0, 2, 6]] = rate, start * rate, rate
        stepper = tarsus.Stepper(world, dt=h)
    else:
        world = stepper = tarsus.Batch(model, 3, dt=h, dtype=dtype)
        world.qvel[:, [0, 2, 6]] = rate, start * rate, rate
    for _ in range(round(time / h)):
        assert stepper.step() == 0
    radius = np.hypot(world.qpos[..., 1], world.qpos[..., 2])
    assert np.abs(radius - start).max() < start * (h * rate) ** 2 + (1e-4 if dtype is np.float32 else 0)
    assert np.allclose(world.qvel[..., 0], rate, rtol=1e-3)


@pytest.mark.parametrize("h", [0.0005, 0.002, 0.005, 1 / 60])
def test_jaws_that_swing_hold_a_cube(h):
    """Half a radian at 1 Hz. Along tangents the cube would creep outward by ½ h v²/r, 0.6 to 20 mm/s; at 60 Hz it was lost."""
    model = tarsus.Model.from_xml_string("""<mujoco><option gravity="0 0 0"/><worldbody>
      <body><joint name="arm" axis="0 0 1"/><geom type="box" size=".25 .02 .02" pos=".25 0 0" mass="2" contype="0" conaffinity="0"/>
        <body pos=".5 .05 0"><joint name="jaw" type="slide" axis="0 1 0"/>
          <geom type="box" size=".03 .01 .03" pos="0 .01 0" mass=".2"/></body>
        <body pos=".5 -.05 0"><geom type="box" size=".03 .01 .03" pos="0 -.01 0" mass=".2"/></body></body>
      <body pos=".5 0 0"><freejoint/><geom type="box" size=".025 .05 .025" mass=".1"/></body></worldbody>
      <actuator><position joint="arm" kp="5000" kv="200"/><motor joint="jaw"/></actuator></mujoco>""")
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data, dt=h)
    radius = []
    for k in range(round(5 / h)):
        data.ctrl = [0.5 * np.sin(2 * np.pi * k * h), -30]
        assert stepper.step() == 0
        radius.append(np.hypot(*data.qpos[2:4]))
    second = round(1 / h)
    assert abs(radius[-1] - radius[-1 - 3 * second]) < 2e-6  # [m] in three seconds
    assert abs(radius[-1] - 0.5) < 2 * h**2 * np.pi**4 * 0.5  # h² ω² r at the fastest ω = π²


@pytest.mark.parametrize("h", [0.002, 1 / 60])
def test_jaws_that_float_hold_a_cube(h):
    """They turn at 3 rad/s and have a free joint themselves; along tangents the cube would be lost at 60 Hz."""
    model = tarsus.Model.from_xml_string("""<mujoco><option gravity="0 0 0"/><worldbody>
      <body><freejoint/><geom type="box" size=".3 .05 .05" mass="5" contype="0" conaffinity="0"/>
        <body pos=".5 .06 0"><joint name="l" type="slide" axis="0 1 0"/><geom type="box" size=".03 .01 .03" mass=".2"/></body>
        <body pos=".5 -.06 0"><joint name="r" type="slide" axis="0 -1 0"/><geom type="box" size=".03 .01 .03" mass=".2"/></body>
      </body><body pos=".5 0 0"><freejoint/><geom type="box" size=".025 .05 .025" mass=".1"/></body></worldbody>
      <actuator><position joint="l" kp="3000" kv="50"/><position joint="r" kp="3000" kv="50"/></actuator></mujoco>""")
    data = tarsus.Data(model)
    data.qvel[[5, -5, -1]] = 3, 1.5, 3
    data.ctrl = [-0.02, -0.02]
    stepper = tarsus.Stepper(data, dt=h)
    for _ in range(round(10 / h)):
        assert stepper.step() == 0
    assert np.linalg.norm(data.qpos[-7:-4] - data.qpos[:3]) == pytest.approx(0.5, abs=0.5 * (3 * h) ** 2 + 1e-5)


def test_a_limp_dog_on_a_turntable_stays_where_it_lies():
    """The table begins to turn once the dog lies on it. Along tangents it would creep outward by 6 % in three seconds."""
    dog = (MODELS / "dog.xml").read_text()
    begin, end = dog.index("<body"), dog.rindex("</body>") + len("</body>")
    table = '<body><joint axis="0 0 1"/><geom type="cylinder" size="3 .05" pos="0 0 -.05" mass="500"/></body>'
    head = re.sub(r"<geom[^>]*plane[^>]*/>", "", dog[:begin])
    model = tarsus.Model.from_xml_string(
        f"{head}{table}<frame pos='1 0 .3'>{dog[begin:end]}</frame></worldbody></mujoco>")
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data, dt=1 / 60, joint_limits=True, actuation="off")
    drives = tarsus.Drives.none(model)
    drives.kd[0] = 1e8
    wanted, radius = np.zeros(model.nv), []
    for k in range(18 * 60):
        wanted[0] = np.clip(0.5 * (k / 60 - 6), 0, 1.5)
        assert stepper.step(drives, qpos_target=data.qpos.copy(), qvel_target=wanted) == 0
        radius.append(np.hypot(*data.qpos[1:3]))
    assert data.qvel[0] == pytest.approx(1.5, rel=1e-3)
    assert np.ptp(radius[14 * 60 :]) < 1e-3


@pytest.mark.parametrize("rate", [60, 240, 500])
def test_toddlerbot_stands_still_on_soles_that_are_not_flat(rate):
    """What it stands on is 0.19 mm below the soles' outline: a step would turn it by more from facet to facet."""
    file = MODELS.parent.parent / "shared/data/menagerie/toddlerbot_2xc/scene_pos.xml"
    if not file.exists():
        pytest.skip("no robots")
    model = tarsus.Model.load(str(file), lenient=True)
    data = tarsus.Data(model)
    data.reset(0)
    stepper = tarsus.Stepper(data, dt=1 / rate)
    fastest = 0
    for k in range(10 * rate):
        assert stepper.step() == 0
        if k >= 9 * rate:
            fastest = max(fastest, np.abs(data.qvel).max())
    assert fastest < 1e-6
