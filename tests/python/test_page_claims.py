"""Numbers and refusals that the pages of docs/ state and that no other test shows. A test names its page."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tarsus

ROOT = pathlib.Path(__file__).parents[2]
MODELS = ROOT / "models"


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "tarsus", *map(str, arguments)], capture_output=True, text=True, timeout=120)


def kinetic_and_potential(model, data, workspace, qpos):
    tarsus.kinematics(model, workspace, qpos, data.qvel)
    return tarsus.energy(model, workspace, qpos, data.qvel).total()


# -- ground.md ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate, most", [(60, 1.05), (240, 1.02)])
@pytest.mark.parametrize("name", ["snake36", "snake72"])
def test_limp_snakes_gain_little_energy(name, rate, most):
    """ground.md, "Energy": falls of 0.5 m. The energies combine v with the q at the start of the step."""
    model = tarsus.Model.load(MODELS / f"{name}.xml")
    workspace = tarsus.Data(model)
    for seed in range(10):
        data = tarsus.Data(model)
        data.qvel[6:] = 0.7 * np.random.default_rng(seed).standard_normal(model.nv)[6:]
        data.qpos[2] += 0.5
        stepper = tarsus.Stepper(data, dt=1 / rate, contacts=True, joint_limits=True)
        start = kinetic_and_potential(model, data, workspace, data.qpos)
        for step in range(3 * rate):
            qpos = data.qpos.copy()
            assert stepper.step() == 0
            assert kinetic_and_potential(model, data, workspace, qpos) < most * start, f"seed {seed}, step {step}"


@pytest.mark.parametrize("speed, deepest", [(20, 0.012), (400, 0.034)])
def test_how_deep_a_fast_ball_goes_into_a_wall(speed, deepest):
    """ground.md, "fast approach": a ball of 5 cm and a wall of 2 cm, at 60 Hz."""
    model = tarsus.Model.from_xml_string("""<mujoco><option gravity="0 0 0"/><worldbody>
      <geom type="box" size=".01 1 1" pos=".01 0 0"/><body><freejoint/><geom size=".05"/></body></worldbody></mujoco>""")
    seen = 0
    for k in range(20):
        data = tarsus.Data(model)
        data.qpos[:3], data.qvel[0] = (-3 + 0.15 * k, 0.1, 0.07), speed
        stepper = tarsus.Stepper(data, dt=1 / 60, contacts=True)
        for _ in range(60):
            assert stepper.step() == 0
            seen = max(seen, data.qpos[0] + 0.05)
        assert data.qpos[0] < 0
    assert 0.8 * deepest < seen < deepest


@pytest.mark.parametrize("most", [2, 5, 3000])
def test_force_limits_bound_the_force_of_every_iterate(most):
    """ground.md, "What a step reports": beside contacts, also in steps that end before they have converged. By inverse dynamics."""
    model = tarsus.Model.load(MODELS / "humanoid.xml")
    drives = tarsus.Drives.uniform(model, kp=1000, kd=100, root_kp=0, root_kd=0)
    drives.force_limit = np.where(np.arange(model.nv) < 6, np.inf, 20.0)
    data, random, target = tarsus.Data(model), np.random.default_rng(0), model.qpos0.copy()
    data.qpos[2] += 0.2
    data.qvel[:] = random.normal(0, 3, model.nv)
    stepper = tarsus.Stepper(data, dt=1 / 60, contacts=True, joint_limits=False, max_iterations=most, velocity_products="off")
    at_limit = 0
    for step in range(120):
        if step % 3 == 0:
            target[-4:] = random.uniform(-1, 1, 4)
        before = data.qpos.copy(), data.qvel.copy()
        assert stepper.step(drives, qpos_target=target) == 0
        force = tarsus.inverse_dynamics(model, data, *before, data.qacc, stepper.contacts)
        assert np.abs(force[:6]).max() < 1e-4  # no drive on the root
        lengths = [np.linalg.norm(force[joint.qvel]) for joint in list(model.joints)[1:]]
        assert max(lengths) < 20 * (1 + 1e-6)
        at_limit += sum(length > 20 * (1 - 1e-6) for length in lengths)
    assert at_limit > 100


def test_contacts_are_on_without_a_clip():
    """ground.md: `--contacts auto`. A clip turns them off, also without the root's drive."""
    walk = ["--clip", MODELS / "clips/humanoid_walk.json"]
    for options, on in (([], True), (walk, False), ([*walk, "--free-root"], False), (["--integrator", "rk4"], False)):
        run = command("run", MODELS / "humanoid.xml", "--duration", "0.1", "--no-record", "--quiet", *options)
        assert run.returncode == 0, run.stderr
        assert ("at most" in run.stdout and "rows' residual" in run.stdout) == on, run.stdout


def test_single_precision_has_its_own_tolerance():
    """ground.md: 1e-6 m/s, and at least 1e-4 m/s in single precision. Steps that end there say that they have converged."""
    model = tarsus.Model.load(MODELS / "humanoid.xml")
    for dtype, tolerance in (("float64", 1e-6), ("float32", 1e-4)):
        worst = 0
        for seed in range(4):
            data = tarsus.Data(model, dtype=dtype)
            data.qvel[:] = np.random.default_rng(seed).standard_normal(model.nv)
            stepper = tarsus.Stepper(data, dt=1 / 60, contacts=True, joint_limits=True)
            for _ in range(60):
                assert stepper.step() == 0
                if stepper.rows["status"] == "converged":
                    worst = max(worst, stepper.rows["residual"])
        assert 0.1 * tolerance < worst < tolerance


# -- constraints.md -----------------------------------------------------------------------------------------------------

MENAGERIE = ROOT.parent / "shared" / "data" / "menagerie"


@pytest.mark.skipif(not MENAGERIE.is_dir(), reason="no ../shared/data beside the repository")
@pytest.mark.parametrize("rows, least, bound", [(False, 1e-6, 7e-5), (True, 1e-4, 0.01)])
def test_a_step_of_a_gripper_in_single_precision(rows, least, bound):
    """constraints.md: robotiq's 2f85, which closes; each step starts from the same state in both precisions."""
    model = tarsus.Model.load(MENAGERIE / "robotiq_2f85" / "2f85.xml")
    exact, rounded = tarsus.Data(model), tarsus.Data(model, dtype="float32")
    steppers = [tarsus.Stepper(data, dt=0.002, contacts=rows, joint_limits=rows) for data in (exact, rounded)]
    most = 0
    for step in range(400):
        exact.qpos[:], exact.qvel[:] = rounded.qpos, rounded.qvel
        exact.ctrl[:] = rounded.ctrl[:] = 255 if step > 50 else 0
        assert [stepper.step() for stepper in steppers] == [0, 0]
        most = max(most, np.abs(exact.qvel - rounded.qvel).max())
    assert np.abs(exact.qpos).max() > 0.5 and least < most < bound


@pytest.mark.parametrize("dt", [1 / 60, 0.002])
def test_an_open_loop_closes_at_a_bounded_speed(dt):
    """constraints.md: 10.7 m/s at most. A body 3 m away from the point that it is connected to."""
    model = tarsus.Model.from_xml_string('<mujoco><option gravity="0 0 0"/><worldbody><body name="a"><freejoint/><geom size=".1"/></body></worldbody></mujoco>')
    rows = tarsus.Equalities(model)
    rows.add_connect("c", "a", [0, 0, 0], 0, [3, 0, 0])
    data = tarsus.Data(model)
    stepper, fastest = tarsus.Stepper(data, dt=dt, equalities=rows), 0
    for _ in range(round(1 / dt)):
        assert stepper.step() == 0
        fastest = max(fastest, data.qvel[0])
    assert 9 < fastest < 10.7 and abs(data.qpos[0] - 3) < 1e-5


@pytest.mark.parametrize("dt, error", [(1e-3, 4.2e-6), (0.25e-3, 0.075e-6)])
def test_the_error_of_a_stabilised_loop(dt, error):
    """constraints.md, "In a step": the built-in four-bar, whose crank turns at 12 rad/s and more, for a second."""
    model = tarsus.Model.load(MODELS / "loops" / "four_bar.xml")
    data = tarsus.Data(model)
    data.qvel[0] = 12
    tarsus.Stepper(data, dt=dt, loops="shake").step()  # velocities that the loop allows
    data.qvel *= 12 / data.qvel[0]
    stepper, most = tarsus.Stepper(data, dt=dt), 0
    for step in range(round(1 / dt)):
        assert stepper.step() == 0
        most = max(most, stepper.loops()["error"])
    assert 0.6 * error < most < 1.1 * error


# -- contact.md ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count, size, rate, stands", [(5, 0.02, 60, True), (6, 0.02, 60, False), (8, 0.02, 240, True), (5, 0.01, 60, False), (5, 0.01, 240, True)])
@pytest.mark.parametrize("sweeps", [50, 200])
def test_stacks_of_small_cubes(count, size, rate, stands, sweeps):
    """contact.md, "High stacks of small bodies": a contact yields by an amount that does not depend on the bodies' size."""
    world = tarsus.RigidWorld(dt=1 / rate, iterations=sweeps)
    world.add_shape(-1, tarsus.Shape.plane())
    for k in range(count):
        world.add_body(tarsus.Shape.box(size / 2, size / 2, size / 2), mass=1.0, position=(0, 0, size * (k + 0.5)))
    assert world.step(10 * rate)
    top = world.poses[-1, 2]
    assert (top > 0.9 * size * (count - 0.5)) == stands, top


@pytest.mark.parametrize("ratio, sweeps", [(10, 10), (100, 100)])
def test_sweeps_carry_a_heavy_body(ratio, sweeps):
    """contact.md, "Mass ratios": a cube on a lighter one, for five seconds; the depths are those of the page's table [m]."""
    world = tarsus.RigidWorld(iterations=sweeps)
    world.add_shape(-1, tarsus.Shape.plane())
    for k, mass in enumerate((1.0, float(ratio))):
        world.add_body(tarsus.Shape.box(0.5, 0.5, 0.5), mass=mass, position=(0, 0, 0.5 + k))
    assert world.step(300) and np.abs(world.velocities).max() < 1e-3
    assert 1.5 - world.poses[1, 2] == pytest.approx({10: 0.0016, 100: 0.017}[ratio], rel=0.1)


def test_deep_overlaps_part_within_steps():
    """contact.md, "Initial overlap": a box 0.2 m deep in the floor, at 60 Hz."""
    world = tarsus.RigidWorld(iterations=50)
    world.add_shape(-1, tarsus.Shape.plane())
    world.add_body(tarsus.Shape.box(0.5, 0.5, 0.5), mass=1.0, position=(0, 0, 0.3))
    depths = [0.2]
    for _ in range(5):
        assert world.step()
        depths.append(0.5 - world.poses[0, 2])
    assert 0.15 < -np.diff(depths).max() / 0.2 < 0.3 and depths[-2] > 0 > depths[-1]
    assert world.velocities[0, 2] == pytest.approx(2.3, abs=0.3)


@pytest.mark.parametrize("xml, named", [
    ('<body><freejoint/><geom size=".1"/></body><body><joint/><geom size=".1"/></body>', "a joint other than free"),
    ('<body><joint type="free" damping="1"/><geom size=".1"/></body>', "damping"),
    ('<body gravcomp="1"><freejoint/><geom size=".1"/></body>', "gravity compensation")])
def test_what_scenes_of_free_bodies_refuse(tmp_path, xml, named):
    """contact.md, "Not supported for free bodies"."""
    file = tmp_path / "scene.xml"
    file.write_text(f"<mujoco><worldbody>{xml}</worldbody></mujoco>")
    with pytest.raises(tarsus.InputError, match=named):
        tarsus.RigidWorld.load(file)


# -- clips.md -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, head, most", [("clip.json", '{"format": "tarsus-clip", "version": 1}', 64 << 20), ("clip.bvh", "HIERARCHY\n", 16 << 20)])
def test_files_of_clips_have_a_largest_size(tmp_path, name, head, most):
    file = tmp_path / name
    file.write_text(head + " " * (most + 1 - len(head)))
    with pytest.raises(tarsus.InputError, match=f"bytes, expected at most {most}"):
        tarsus.MotionClip.load(file)


def test_bvh_files_have_a_largest_number_of_numbers(tmp_path):
    file, rows = tmp_path / "clip.bvh", 333_334
    file.write_text("HIERARCHY\nROOT Hips\n{\n OFFSET 0 0 0\n CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation\n End Site\n {\n"
                    f" OFFSET 0 1 0\n }}\n}}\nMOTION\nFrames: {rows}\nFrame Time: 0.01\n" + "0 1 0 0 0 0\n" * rows)
    with pytest.raises(tarsus.InputError, match="2000004 numbers, expected at most 2000000"):
        tarsus.MotionClip.load(file)


def test_clips_keep_their_speeds_and_frames():
    """clips.md: speeds of the built-in clips [m/s], "Sampling": every frame is passed, qvel is the derivative, also at the seam."""
    for name, speed in (("humanoid_walk", 1.15), ("humanoid_run", 2.9), ("dog_pace", 1.2), ("dog_trot", 1.87), ("dog_canter", 2.5)):
        motion = tarsus.MotionClip.load(MODELS / "clips" / f"{name}.json")
        model = tarsus.Model.load(MODELS / f"{name.split('_')[0]}.xml")
        clip = motion.bind(model)
        first, last = (clip.sample(t)[0] for t in (0.0, clip.duration))
        assert np.hypot(*(last - first)[:2]) / clip.duration == pytest.approx(speed, rel=0.01)
        assert np.abs(clip.sample(float(motion.times[5]))[0][:3] - motion.frames[5, :3]).max() < 1e-12
        for t in (0.1, clip.duration - 1e-6, clip.duration, 1.3):
            qpos = [clip.sample(t + shift)[0] for shift in (-1e-6, 1e-6)]
            # At frames the acceleration, some hundred rad/s², is discontinuous: the difference is off by 1e-6 s times its jump.
            assert np.abs(tarsus.difference(model, *qpos) / 2e-6 - clip.sample(t)[1]).max() < 1e-3


# -- actuators.md -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beside, most", [(False, 1e-12), (True, 1e-6)])
def test_force_ranges_of_servos_hold(beside, most):
    """actuators.md: to rounding in free motion, to the step's tolerance beside contacts and ranges."""
    text = (MODELS / "quadruped.xml").read_text()
    assert 'forcerange="-24 24"' in text
    model = tarsus.Model.from_xml_string(text.replace('forcerange="-24 24"', 'forcerange="-5 5"'))
    saturated, worst, random = 0, 0, np.random.default_rng(0)
    data = tarsus.Data(model)
    data.reset("stance")
    stepper = tarsus.Stepper(data, dt=1 / 60, contacts=beside, joint_limits=beside)
    for step in range(300):
        if step % 6 == 0:
            data.ctrl[:] = random.uniform(-1, 1, model.nu)
        assert stepper.step() == 0
        report = stepper.limit_report()
        saturated, worst = saturated + report["saturated"], max(worst, report["residual"])
    assert saturated > 300 and worst < most


# -- many_worlds.md, ground.md ------------------------------------------------------------------------------------------


def test_what_lanes_do_not_support_is_named():
    floor = '<geom type="plane" size="0 0 1"/>'
    for bodies, rest, options, named in (
            ('<body><joint name="j" actuatorfrcrange="-1 1"/><geom size=".1"/></body>',
             '<actuator><position joint="j" kp="1"/><motor joint="j"/></actuator>', {}, "actuatorfrcrange"),
            ('<body gravcomp="1"><joint name="j" actuatorfrcrange="-1 1" actuatorgravcomp="true"/><geom size=".1"/></body>',
             '<actuator><position joint="j" kp="1"/></actuator>', {}, "actuatorgravcomp"),
            ('<body><joint name="j"/><geom size=".1"/></body>', '<actuator><damper joint="j" kv="1" ctrlrange="0 1"/></actuator>', {}, "a damping"),
            ('<body><joint/><geom size=".1"/></body><body mocap="true"><geom size=".1"/></body>', "", {}, "mocap"),
            ('<body><joint type="free" frictionloss="1"/><geom size=".1"/></body>', "", {}, "dry friction of a free joint"),
            ('<body><joint/><geom size=".1"/><site name="a" pos="1 0 0"/></body><site name="b"/>',
             '<tendon><spatial stiffness="9"><site site="a"/><site site="b"/></spatial></tendon>', {"integrator": "rk4"}, "rk4"),
            ('<body><freejoint/><geom name="a" size=".1"/></body><body pos="1 0 0"><freejoint/><geom name="b" size=".1"/></body>',
             '<contact><pair geom1="a" geom2="b" friction="1 .5 .1 .1 .1"/></contact>', {}, "depends on the direction")):
        model = tarsus.Model.from_xml_string(f"<mujoco><worldbody>{floor}{bodies}</worldbody>{rest}</mujoco>")
        batch = tarsus.Batch(model, 2, **options)
        assert batch.width == 1 and named in batch.one_at_a_time_because
        assert batch.step() == 0
    humanoid = tarsus.Model.load(MODELS / "humanoid.xml")
    drives = tarsus.Drives.uniform(humanoid)
    drives.force_limit = np.full(humanoid.nv, 100.0)
    assert "free joint's drive" in tarsus.Batch(humanoid, 2, drives=drives).one_at_a_time_because
    assert not tarsus.Batch(humanoid, 2, drives=drives, contacts=False, joint_limits=False).one_at_a_time_because


# -- particles.md -------------------------------------------------------------------------------------------------------


def test_md_continues_to_the_bit_and_refuses_what_no_force_acts_on(tmp_path):
    """particles.md: a run that continues from its .sys file, without pair forces."""
    first, second, whole = (tmp_path / name for name in ("first.sys", "second.sys", "whole.sys"))
    assert command("md", "chain:32", "--steps", 100, "--final", first, "--quiet").returncode == 0
    refused = command("md", first, "--steps", 100)
    assert refused.returncode == 1 and "no forces act" in refused.stderr
    assert command("md", first, "--steps", 100, "--forces", "none", "--final", second, "--quiet").returncode == 0
    assert command("md", "chain:32", "--steps", 200, "--final", whole, "--quiet").returncode == 0
    numbers = [[line for line in file.read_text().splitlines() if not line.startswith("#")] for file in (second, whole)]
    assert numbers[0] == numbers[1] and len(numbers[0]) > 32
    fails = command("md", "chain:64", "--dt", 1, "--steps", 200)
    assert fails.returncode == 3, fails.stderr


@pytest.mark.parametrize("dt, alike", [(0.002, True), (0.025, True), (0.05, False)])
def test_solref_is_mujocos_law_in_short_steps(dt, alike):
    """contact.md, "solref and solimp": a ball drops 10 cm on a time constant of 0.1 s. Deeper than MuJoCo's rest it goes only by MuJoCo's
    law, which trees have in steps of at most a quarter of it, and RigidWorld in none."""
    mujoco = pytest.importorskip("mujoco")
    text = f"""<mujoco><option timestep="{dt}"/><default><geom solref=".1 1"/></default><worldbody><geom type="plane" size="0 0 1"/>
      <body pos="0 0 .2"><freejoint/><geom size=".1" mass="1"/></body></worldbody></mujoco>"""
    model = tarsus.Model.from_xml_string(text)
    data, theirs = tarsus.Data(model), mujoco.MjModel.from_xml_string(text)
    state, stepper, world = mujoco.MjData(theirs), tarsus.Stepper(data), tarsus.RigidWorld.from_model(model)
    low, off, rigid = 1, 0, 1
    for _ in range(round(1.5 / dt)):
        assert stepper.step() == 0 and world.step()
        mujoco.mj_step(theirs, state)
        low, rigid, off = min(low, state.qpos[2]), min(rigid, world.poses[0, 2]), max(off, abs(data.qpos[2] - state.qpos[2]))
    assert (off < 1e-9) == alike and abs(data.qpos[2] - state.qpos[2]) < 1e-4
    assert 0.04 < 0.1 - low < 0.06
    assert dt > 0.025 or 0.004 < 0.1 - rigid < 0.006  # in 0.05 s the ball falls further than RigidWorld's margin
