"""User-defined constraints in Python: Equalities.add_user, alone and in steps."""

import gc
import weakref

import numpy as np
import pytest

import tarsus
from oracle import ROOT

BEAD = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="bead">
  <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
  <geom type="sphere" size="0.1" mass="2"/></body></worldbody></mujoco>"""
LENGTH = 0.7


@pytest.fixture
def bead(tmp_path):
    file = tmp_path / "bead.xml"
    file.write_text(BEAD)
    return tarsus.Model.load(str(file))


def circle(q, v):
    return (q @ q - LENGTH**2) / 2, q, None if v is None else v @ v


def circle_without_bias(q, v):
    return (q @ q - LENGTH**2) / 2, q


def on_circle(angle, speed):
    """Position and velocity at an angle from straight down."""
    radial = np.array([np.sin(angle), -np.cos(angle)])
    return LENGTH * radial, speed * np.array([np.cos(angle), np.sin(angle)]), radial


@pytest.mark.parametrize("function", [circle, circle_without_bias])
def test_bead_on_a_circle_accelerates_as_a_pendulum(bead, function):
    eq = tarsus.Equalities(bead)
    assert eq.add_user("circle", function) == 0
    assert (len(eq), eq.nrow, eq.row_names) == (1, 1, ["circle (user)"])
    data = tarsus.Data(bead)
    for angle, speed in [(0.3, 0.0), (1.2, -3.0), (-2.5, 2.0)]:
        q, v, radial = on_circle(angle, speed)
        got = tarsus.constrained_dynamics(bead, data, q, v, np.zeros(2), equalities=eq)
        tangent = np.array([np.cos(angle), np.sin(angle)])
        expected = -9.81 * np.sin(angle) * tangent - speed**2 / LENGTH * radial
        assert got["status"] == "solved"
        np.testing.assert_allclose(got["qacc"], expected, atol=1e-9)
        np.testing.assert_allclose(eq.rows(data, q, v)["rate"], [0], atol=1e-12)


@pytest.mark.parametrize("given", [True, False], ids=["bias given", "bias differenced"])
@pytest.mark.parametrize("loops", ["spook", "shake"])
def test_a_user_s_rows_are_as_good_as_the_built_in_ones(given, loops):
    """The humanoid with a free root and ball joints: a weld and a distance, once built in and once through a user's function."""
    model = tarsus.Model.load(str(ROOT / "models" / "humanoid.xml"))
    built_in, probe = tarsus.Equalities(model, own=False), tarsus.Data(model)
    rng = np.random.default_rng(3)
    start, speed = np.array(model.qpos0), rng.normal(size=model.nv)
    tarsus.kinematics(model, probe, start)
    rotation, position = tarsus.body_pose(model, probe, "left_foot")
    hand, other = (tarsus.body_pose(model, probe, b)[1] for b in ("left_forearm", "right_forearm"))
    built_in.add_weld("foot", "left_foot", 0, list(rotation.T.ravel()), list(-rotation.T @ position))
    built_in.add_distance("hands", "left_forearm", [0, 0, 0], "right_forearm", [0, 0, 0], np.linalg.norm(hand - other))

    def function(q, v):
        r = built_in.rows(probe, q, v)
        return (r["phi"], r["J"], r["bias"]) if given and v is not None else (r["phi"], r["J"])

    eq = tarsus.Equalities(model, own=False)
    eq.add_user("all", function)
    assert eq.nrow == 7
    states = []
    for constraints in (built_in, eq):
        data = tarsus.Data(model)
        data.qpos[:], data.qvel[:] = start, speed
        stepper = tarsus.Stepper(data, dt=1e-3, loops=loops, equalities=constraints)
        for _ in range(40):
            assert stepper.step() == 0
        report = stepper.loops()
        assert report["rows"] == 7
        if loops == "shake":
            assert report["error"] < 1e-10
        states.append(np.concatenate([data.qpos, data.qvel]))
    assert np.abs(states[0][:model.nq] - start).max() > 0.01
    np.testing.assert_allclose(states[1], states[0], atol=1e-9 if given else 1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_worlds_side_by_side(bead, dtype):
    eq = tarsus.Equalities(bead)
    eq.add_user("circle", circle, joints=["x", "z"])
    batch = tarsus.Data(bead, worlds=11, dtype=dtype)
    qpos, qvel = np.zeros((11, 2)), np.zeros((11, 2))
    for k in range(11):
        qpos[k], qvel[k], _ = on_circle(0.2 * k, 0.1 * k)
        batch.set(batch.qpos, k, qpos[k].astype(dtype))
        batch.set(batch.qvel, k, qvel[k].astype(dtype))
    stepper = tarsus.Stepper(batch, dt=2e-3, loops="shake", equalities=eq)
    for _ in range(300):
        assert stepper.step() == 0
    for k in range(11):
        one = tarsus.Data(bead)
        one.qpos[:], one.qvel[:] = qpos[k], qvel[k]
        alone = tarsus.Stepper(one, dt=2e-3, loops="shake", equalities=eq)
        for _ in range(300):
            alone.step()
        assert abs(np.hypot(*one.qpos) - LENGTH) < 1e-9
        np.testing.assert_allclose(batch.get(batch.qpos, k), one.qpos, atol=1e-10 if dtype == "float64" else 5e-5)


def test_errors_say_whose_they_are(bead):
    eq = tarsus.Equalities(bead)
    with pytest.raises(TypeError, match=r'the function of "pair" must return \(phi, J\)'):
        eq.add_user("pair", lambda q, v: 1.0)
    with pytest.raises(ZeroDivisionError):
        eq.add_user("broken", lambda q, v: 1 / 0)
    with pytest.raises(tarsus.ShapeError, match="J"):
        eq.add_user("short", lambda q, v: (0.0, [1.0]))
    with pytest.raises(tarsus.ValueError, match='J of "narrow".*DoF 1'):
        eq.add_user("narrow", lambda q, v: (0.0, [1.0, 1.0]), joints=["x"])
    with pytest.raises(tarsus.ValueError, match="an index from 0 and below 2"):
        eq.add_user("far", circle, joints=[7])
    with pytest.raises(tarsus.ValueError, match="joints"):
        eq.add_user("nowhere", lambda q, v: (0.0, [0.0, 0.0]), joints=[])
    assert len(eq) == 0


def test_an_error_in_a_step_reaches_the_caller(bead):
    class Stop(Exception):
        pass

    calls = 0

    def fragile(q, v):
        nonlocal calls
        calls += 1
        if calls > 5:
            raise Stop
        return circle(q, v)

    eq = tarsus.Equalities(bead)
    eq.add_user("fragile", fragile)
    data = tarsus.Data(bead)
    data.qpos[:], data.qvel[:], _ = on_circle(0.5, 0)
    stepper = tarsus.Stepper(data, dt=0.01, equalities=eq)
    with pytest.raises(Stop):
        for _ in range(10):
            stepper.step()
    # The step in which it raised has not taken place, and is taken once the function can be called.
    time, qpos = data.time, data.qpos.copy()
    assert 0 < time < 0.1 and stepper.status == ["ok"]
    with pytest.raises(Stop):
        stepper.step()
    assert data.time == time and np.array_equal(data.qpos, qpos) and stepper.status == ["ok"]
    calls = -100
    assert stepper.step() == 0 and data.time > time
    calls = 10
    with pytest.raises(Stop):
        eq.rows(data, data.qpos)
    with pytest.raises(Stop):
        tarsus.solve_kkt(bead, data, data.qpos, np.ones(2), equalities=eq)


def test_rows_that_are_no_numbers_are_an_error(bead):
    """The error comes in a step, not when the set is made: a function may have no gradient at qpos0."""
    values = {"phi": np.nan, "J": np.zeros(2)}
    eq = tarsus.Equalities(bead)
    eq.add_user("lost", lambda q, v: (values["phi"], values["J"]))
    data = tarsus.Data(bead)
    stepper = tarsus.Stepper(data, dt=0.01, equalities=eq)
    with pytest.raises(tarsus.ValueError, match='phi of "lost": is not finite'):
        stepper.step()
    values.update(phi=0.0, J=np.array([np.inf, 0]))
    with pytest.raises(tarsus.ValueError, match='J of "lost": is not finite'):
        stepper.step()
    values.update(J=np.array([1.0, 0]))
    assert stepper.step() == 0 and data.time == 0.01


def test_a_set_that_grew_or_is_another_model_s(bead):
    eq = tarsus.Equalities(bead)
    eq.add_user("circle", circle)
    data = tarsus.Data(bead)
    data.qpos[:], data.qvel[:], _ = on_circle(0.5, 0)
    stepper = tarsus.Stepper(data, dt=0.01, equalities=eq)
    stepper.step()
    with pytest.raises(tarsus.ValueError, match="in use by a Stepper"):
        eq.add_user("again", circle)
    other = tarsus.Model.load(str(ROOT / "models" / "humanoid.xml"))
    with pytest.raises(tarsus.ValueError, match="another model"):
        tarsus.Stepper(tarsus.Data(other), equalities=eq)


def test_a_function_that_leads_back_to_its_set_is_collected(bead):
    class Box:
        pass

    box = Box()
    box.eq = tarsus.Equalities(bead)
    box.eq.add_user("circle", lambda q, v: circle(q, v) if box else None)
    box.stepper = tarsus.Stepper(tarsus.Data(bead), equalities=box.eq)
    gone = weakref.ref(box)
    del box
    gc.collect()
    assert gone() is None


def test_a_function_cannot_add_to_its_own_equalities():
    model = tarsus.Model.from_xml_string("<mujoco><worldbody><body name='a'><freejoint/><geom size='.1'/></body>"
                                         "<body name='b' pos='1 0 0'><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
    eq, calls = tarsus.Equalities(model, own=False), []

    def function(qpos, qvel):
        calls.append(1)
        if len(calls) > 1:
            eq.add_connect(f"c{len(calls)}", "a", (0, 0, 0), "b", (0, 0, 0))
        return np.array([qpos[0]]), np.eye(1, model.nv)

    eq.add_user("row", function)
    with pytest.raises(tarsus.ValueError, match="equalities: is in use by the function of one of its constraints"):
        eq.rows(tarsus.Data(model), model.qpos0)
    assert len(eq) == 1
    eq.add_connect("later", "a", (0, 0, 0), "b", (0, 0, 0))
