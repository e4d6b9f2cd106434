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
@pytest.mark.parametrize("rows, least, bound", [(False, 1e-6, 6e-5), (True, 1e-4, 0.01)])
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


@pytest.mark.parametrize("dt, error", [(1e-3, 0.21e-3), (0.25e-3, 0.014e-3)])
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
