"""The Python interface itself: views, names, shapes, types, errors, stubs. The numbers are compared in test_mujoco.py."""

import gc
import inspect
import pathlib
import re
import threading

import numpy as np
import pytest
import tarsus

ROOT = pathlib.Path(__file__).parents[2]
HUMANOID = ROOT / "models" / "humanoid.xml"

ARM = """
<mujoco model="arm">
  <worldbody>
    <body name="base">
      <joint name="slide" type="slide" axis="1 0 0" damping="2" stiffness="3" springref=".5"/>
      <geom name="box" type="box" size=".1 .2 .3" mass="2"/>
      <body name="upper" pos="0 0 .5">
        <joint name="elbow" axis="0 1 0" range="-90 45" armature=".25"/>
        <geom type="capsule" size=".05 .2" mass="1"/>
        <body name="hand" pos="0 0 .5">
          <joint name="wrist" type="ball"/>
          <geom type="sphere" size=".1" mass=".5"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def arm():
    return tarsus.Model.from_xml_string(ARM)


def state(model, seed=1, dtype=np.float64):
    rng = np.random.default_rng(seed)
    data = tarsus.Data(model, dtype=dtype)
    v, a, tau = (rng.normal(size=model.nv).astype(dtype) for _ in range(3))
    q = tarsus.integrate(model, data, data.qpos, v, 0.7)
    return data, q, v, a, tau


# -- model ----------------------------------------------------------------------------------------------------------


def test_model_says_what_the_text_says(arm):
    assert (arm.name, arm.nq, arm.nv, arm.nbody, arm.njoint, arm.depth) == ("arm", 6, 5, 4, 3, 5)
    assert arm.body_name == ["world", "base", "upper", "hand"] and arm.joint_name == ["slide", "elbow", "wrist"]
    assert np.allclose(arm.body_mass, [0, 2, 1, 0.5], rtol=1e-15) and np.isclose(arm.total_mass(), 3.5, rtol=1e-15)
    assert arm.body_inertia.shape == (4, 3, 3) and arm.body_com.shape == (4, 3)
    # A box about its centre: m/3 (b² + c²).
    assert np.allclose(np.diag(arm.body_inertia[1]), 2 / 3 * np.array([0.13, 0.10, 0.05]), rtol=1e-14)
    assert arm.body_parent.tolist() == [0, 0, 1, 2] and arm.body_link.tolist() == [-1, 0, 1, 2]
    assert arm.joint_qpos.tolist() == [0, 1, 2] and arm.dof_joint.tolist() == [0, 1, 2, 2, 2]
    assert arm.gravity.tolist() == [0, 0, -9.81] and arm.timestep == 0.002
    assert arm.qpos0.tolist() == [0, 0, 1, 0, 0, 0] and arm.qpos_spring.tolist() == [0.5, 0, 1, 0, 0, 0]
    assert arm.armature.tolist() == [0, 0.25, 0, 0, 0]


def test_bodies_and_joints_by_name_and_by_index(arm):
    elbow = arm.joint("elbow")
    assert (elbow.id, elbow.type, elbow.body.name, elbow.parent) == (1, "hinge", "upper", 0)
    assert elbow.qpos == slice(1, 2, 1) and elbow.qvel == slice(1, 2, 1)
    assert elbow.limited and np.allclose(elbow.range, [-np.pi / 2, np.pi / 4]) and elbow.armature == 0.25
    assert elbow.axis.tolist() == [0, 1, 0]
    wrist = arm.joint(2)
    assert (wrist.name, wrist.qpos, wrist.qvel, wrist.nq, wrist.nv) == ("wrist", slice(2, 6, 1), slice(2, 5, 1), 4, 3)
    slide = arm.joint("slide")
    assert (slide.damping, slide.stiffness, slide.spring_reference) == (2, 3, 0.5)
    upper = arm.body("upper")
    assert (upper.id, upper.link, [j.name for j in upper.joints]) == (2, 1, ["elbow"]) and upper.mass == arm.body_mass[2]
    assert [j.name for j in arm.joints] == arm.joint_name and [b.name for b in arm.bodies] == arm.body_name
    assert arm.body_id("hand") == 3 and arm.joint_id("wrist") == 2
    assert "elbow" in repr(elbow) and "upper" in repr(upper) and "arm" in repr(arm)


def test_energy_needs_no_kinematics_before_it(arm):
    data, q, v, _, _ = state(arm)
    tarsus.kinematics(arm, data, q, v)
    after = tarsus.energy(arm, data, q, v)
    fresh = tarsus.energy(arm, tarsus.Data(arm), q, v)
    assert np.isfinite(fresh.total()) and fresh.total() == after.total() and fresh.kinetic == after.kinetic


def test_an_unknown_name_lists_the_known_ones(arm):
    with pytest.raises(ValueError, match='joint: is "knee", expected one of: slide, elbow, wrist'):
        arm.joint("knee")
    with pytest.raises(tarsus.ValueError, match="world, base, upper, hand"):
        arm.body("torso")
    with pytest.raises(tarsus.ValueError, match="below 3"):
        arm.joint(3)
    with pytest.raises(tarsus.ValueError):
        arm.joint(-1)
    with pytest.raises(TypeError, match="joint: is of type float, expected a name or an index"):
        arm.joint(1.0)


def test_a_models_arrays_are_read_only(arm):
    of_bodies = (arm.body_mass, arm.body_com, arm.body_inertia, arm.body_parent, arm.body_link, arm.body("upper").com, arm.body("upper").inertia)
    of_joints = (arm.joint_qpos, arm.joint_qvel, arm.joint("elbow").axis, arm.joint("elbow").position, arm.joint("elbow").range, arm.joint("elbow").force_range)
    for array in (arm.qpos0, arm.gravity, arm.armature, arm.qpos_spring, arm.dof_joint, *of_bodies, *of_joints):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_joints_and_views_keep_the_model_alive():
    model = tarsus.Model.from_xml_string(ARM)
    joint, qpos0, body = model.joint("elbow"), model.qpos0, model.joint("wrist").body
    del model
    gc.collect()
    assert joint.name == "elbow" and body.name == "hand" and qpos0.tolist() == [0, 0, 1, 0, 0, 0]


def test_urdf_text_and_files_and_options():
    text = (
        '<robot name="r"><link name="a"><inertial><mass value="1"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link></robot>'
    )
    assert tarsus.Model.from_xml_string(text).nv == 0
    assert tarsus.Model.from_xml_string(text, floating_base=True).nv == 6
    assert tarsus.Model.load(str(HUMANOID)).nv == tarsus.Model.load(HUMANOID).nv == 34


# -- data: views ----------------------------------------------------------------------------------------------------


def test_datas_arrays_are_views_without_copies(arm):
    data = tarsus.Data(arm)
    q = data.qpos
    address = q.ctypes.data
    q[0] = 0.25
    assert data.qpos[0] == 0.25 and data.qpos.ctypes.data == address and not q.flags.owndata
    data.qpos = arm.qpos0  # assignment copies: the view stays a view
    assert q[0] == 0 and data.qpos.ctypes.data == address
    data.qvel[arm.joint("elbow").qvel] = 3
    assert data.qvel.tolist() == [0, 3, 0, 0, 0]
    data.time = 1.5
    assert data.time == 1.5 and data.model is arm
    for time in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"time: is (nan|inf), expected finite \[s\]"):
            data.time = time
    assert data.time == 1.5


@pytest.mark.parametrize("worlds", [1, 9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_views_stay_those_of_the_state_in_steps(arm, dtype, worlds):
    data = tarsus.Data(arm, worlds=worlds, dtype=dtype)
    views = {name: getattr(data, name) for name in ("qpos", "qvel", "qacc", "tau")}
    stepper = tarsus.Stepper(data)
    for step in (lambda: tarsus.step(arm, data), stepper.step, lambda: tarsus.step(arm, data, integrator="rk4")):
        step()
        for name, view in views.items():
            assert view.ctypes.data == getattr(data, name).ctypes.data, name
    views["qvel"][:] = 0
    assert not data.qvel.any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_assigned_is_of_any_numbers(arm, dtype):
    """Assignment copies lists, arrays of other types and views across rows."""
    numbers = [0.5, -1.0, 2.0, 0.25, 3.0]
    data = tarsus.Data(arm, dtype=dtype)
    batch = tarsus.Batch(arm, 3, 0.01, dtype=dtype)
    for value in (numbers, tuple(numbers), np.array(numbers, np.float32), np.array(numbers), np.array([numbers] * 2).T[:, 1]):
        data.qvel = np.zeros(5, dtype)
        data.qvel = value
        assert data.qvel.dtype == dtype and list(data.qvel) == numbers
        batch.qvel = [value] * 3
        assert np.array_equal(batch.qvel, [numbers] * 3)
    data.qvel = [1, 2, 3, 4, 5]
    assert list(data.qvel) == [1, 2, 3, 4, 5]
    for bad in ("abc", [None] * 5, [True] * 5, [[1], [2, 3]], np.ones(5, complex), {}):
        with pytest.raises(TypeError, match="qvel: is "):
            data.qvel = bad
    for bad in (1.0, numbers[:4], [numbers]):
        with pytest.raises(tarsus.ShapeError, match="qvel: has s"):
            data.qvel = bad
    assert list(data.qvel) == [1, 2, 3, 4, 5]


def test_a_view_keeps_the_data_alive(arm):
    q = tarsus.Data(arm).qpos
    others = [tarsus.Data(arm) for _ in range(20)]
    gc.collect()
    for other in others:
        other.qpos[:] = 7
    assert q.tolist() == arm.qpos0.tolist()


def test_out_is_the_array_that_is_returned(arm):
    data, q, v, a, tau = state(arm)
    for function, inputs in [
        (tarsus.rnea, (q, v, a)),
        (tarsus.aba, (q, v, tau)),
        (tarsus.bias_force, (q, v)),
        (tarsus.crba, (q,)),
        (tarsus.maba, (q, v, tau, np.ones(arm.nv))),
        (tarsus.minv, (tau,)),
        (tarsus.integrate, (q, v, 0.1)),
    ]:
        fresh = function(arm, data, *inputs)
        out = np.full_like(fresh, np.nan)
        assert function(arm, data, *inputs, out=out) is out
        assert (out == fresh).all(), function.__name__


def test_minv_and_integrate_may_work_in_place(arm):
    data, q, v, _, tau = state(arm)
    tarsus.factor(arm, data, q, arm.armature)
    expected = tarsus.minv(arm, data, tau)
    assert tarsus.minv(arm, data, tau, out=tau) is tau and (tau == expected).all()
    moved = tarsus.integrate(arm, data, q, v, 0.1)
    assert (tarsus.integrate(arm, data, q, v, 0.1, out=q) == moved).all()


def test_a_result_in_the_memory_of_an_input_is_refused(arm):
    data, q, v, a, tau = state(arm)
    with pytest.raises(tarsus.ValueError, match="out: is in the same memory as qacc"):
        tarsus.rnea(arm, data, q, v, a, out=a)
    both = np.zeros(2 * arm.nv)
    with pytest.raises(tarsus.ValueError, match="same memory as tau"):
        tarsus.aba(arm, data, q, v, both[: arm.nv], out=both[1 : 1 + arm.nv])
    tarsus.aba(arm, data, q, v, both[: arm.nv], out=both[arm.nv :])


# -- algorithms agree with each other through the bindings -------------------------------------------------------------


#: Calls that take a qpos, and so overwrite the poses in the workspace. step() and the KKT system also overwrite the factors.
OVERWRITES = {
    "kinematics": lambda m, d, q, v: tarsus.kinematics(m, d, q, v),
    "crba": lambda m, d, q, v: tarsus.crba(m, d, q),
    "rnea": lambda m, d, q, v: tarsus.rnea(m, d, q, v, v),
    "bias_force": lambda m, d, q, v: tarsus.bias_force(m, d, q, v),
    "aba": lambda m, d, q, v: tarsus.aba(m, d, q, v, v),
    "maba": lambda m, d, q, v: tarsus.maba(m, d, q, v, v, np.ones(m.nv)),
    "factor": lambda m, d, q, v: tarsus.factor(m, d, q, np.ones(m.nv)),
    "energy": lambda m, d, q, v: tarsus.energy(m, d, q, v),
    "integrate": lambda m, d, q, v: tarsus.integrate(m, d, q, v, 0.1),
    "drive_terms": lambda m, d, q, v: tarsus.drive_terms(m, d, tarsus.Drives.uniform(m), 0.01, q, v, q),
    "minv": lambda m, d, q, v: (tarsus.aba(m, d, q, v, v), tarsus.minv(m, d, v)),
    "copy": lambda m, d, q, v: tarsus.crba(m, d.copy(), q),
    "sensordata": lambda m, d, q, v: d.sensordata,
    "step": lambda m, d, q, v: tarsus.step(m, d, dt=0.01),
    "solve_kkt": lambda m, d, q, v: tarsus.solve_kkt(m, d, q, v),
    "rows": lambda m, d, q, v: tarsus.Equalities(m).rows(d, q, v),
}


def poses_in(model, data):
    """All that reads what kinematics() left."""
    momentum = tarsus.momentum(model, data)
    return np.concatenate([np.ravel(part) for part in (
        *tarsus.body_pose(model, data, "hand"), *tarsus.body_poses(model, data), *tarsus.body_velocity(model, data, "hand"),
        tarsus.jacobian(model, data, "hand", np.array([0.1, 0.2, 0.3])), momentum.com, momentum.linear, momentum.angular,
        tarsus.relative_jacobian(model, data, "hand", "base"))])


@pytest.mark.parametrize("name", [name for name in OVERWRITES if name not in ("kinematics", "energy")])
def test_what_kinematics_left_outlives_other_calls(arm, name):
    """Poses, velocities and Jacobians are those of the last kinematics(), whatever qpos other functions had since."""
    data, q, v, a, _ = state(arm)
    other = tarsus.integrate(arm, data, q, a, 1.0)
    fresh = tarsus.Data(arm)
    tarsus.kinematics(arm, fresh, q, v)
    tarsus.kinematics(arm, data, q, v)
    OVERWRITES[name](arm, data, other, a)
    assert np.array_equal(poses_in(arm, data), poses_in(arm, fresh))
    assert np.array_equal(poses_in(arm, data.copy()), poses_in(arm, fresh))


@pytest.mark.parametrize("name", [name for name in OVERWRITES if name not in ("aba", "maba", "factor", "minv", "step", "solve_kkt", "rows")])
def test_factors_outlive_other_calls(arm, name):
    """M x = y for the M of the last factor(), whatever qpos other functions had since."""
    data, q, v, a, y = state(arm)
    other = tarsus.integrate(arm, data, q, a, 1.0)
    M = tarsus.crba(arm, data, q)
    tarsus.factor(arm, data, q, arm.armature.copy())
    OVERWRITES[name](arm, data, other, a)
    for holder in (data, data.copy()):
        assert np.abs(M @ tarsus.minv(arm, holder, y) - y).max() < 1e-12
    tarsus.kinematics(arm, data, other)
    tarsus.jacobian(arm, data, "hand", np.zeros(3))
    assert np.abs(M @ tarsus.minv(arm, data, y) - y).max() < 1e-12


def test_what_no_call_has_left_is_refused(arm):
    data, q, v, _, y = state(arm)
    for look in (lambda: tarsus.jacobian(arm, data, "hand", np.zeros(3)), lambda: tarsus.body_pose(arm, data, "hand"), lambda: tarsus.body_poses(arm, data),
                 lambda: tarsus.body_velocity(arm, data, "hand"), lambda: tarsus.momentum(arm, data), lambda: tarsus.relative_jacobian(arm, data, "hand", "base")):
        with pytest.raises(tarsus.ValueError, match=r"data: is without poses, expected a call of kinematics\(\)"):
            look()
    tarsus.kinematics(arm, data, q)
    for look in (lambda: tarsus.body_velocity(arm, data, "hand"), lambda: tarsus.momentum(arm, data)):
        with pytest.raises(tarsus.ValueError, match=r"data: is without velocities, expected a call of kinematics\(\) with qvel"):
            look()
    for call in (lambda: None, lambda: tarsus.step(arm, data, dt=0.01), lambda: tarsus.solve_kkt(arm, data, q, v)):
        call()
        with pytest.raises(tarsus.ValueError, match=r"data: is without factors, expected a call of factor\(\)"):
            tarsus.minv(arm, data, y)
        tarsus.factor(arm, data, q, arm.armature.copy())


def test_docstrings_name_what_is_returned(arm):
    assert isinstance(arm.joint("elbow").body, tarsus.Body) and "ndex" not in tarsus.Joint.body.__doc__
    assert "Kinetic energy" in tarsus.ParticleSystem.kinetic_energy.__doc__ and "Temperature" in tarsus.ParticleSystem.temperature.__doc__


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 2e-5)])
def test_identities_in_both_precisions(arm, dtype, tolerance):
    data, q, v, a, tau = state(arm, dtype=dtype)
    M, bias = tarsus.crba(arm, data, q), tarsus.bias_force(arm, data, q, v)
    assert M.dtype == bias.dtype == data.qpos.dtype == data.dtype == dtype
    assert np.allclose(tarsus.rnea(arm, data, q, v, a), M @ a + bias, atol=tolerance * 10)
    qacc = tarsus.aba(arm, data, q, v, tau)
    assert np.allclose(M @ qacc + bias, tau, atol=tolerance * 10)
    assert np.allclose(tarsus.minv(arm, data, tau), np.linalg.solve(M.astype(float), tau), rtol=tolerance * 1e3)
    tarsus.kinematics(arm, data, q, v)
    rotation, position = tarsus.body_pose(arm, data, "hand")
    angular, linear = tarsus.body_velocity(arm, data, "hand")
    J = tarsus.jacobian(arm, data, "hand", position.astype(dtype))
    assert np.allclose(J @ v, np.concatenate([angular, linear]), atol=tolerance)
    rotations, positions = tarsus.body_poses(arm, data)
    assert (rotations[3] == rotation).all() and (positions[3] == position).all()
    energy = tarsus.energy(arm, data, q, v)
    assert np.isclose(energy.kinetic, v @ M @ v / 2, rtol=tolerance)
    assert np.isclose(energy.spring, 3 / 2 * (q[0] - 0.5) ** 2, rtol=tolerance)
    assert energy.total() == energy.kinetic + energy.potential + energy.spring
    assert np.isclose(tarsus.momentum(arm, data).mass, 3.5)


def test_external_forces_enter_by_the_jacobian(arm):
    data, q, v, a, _ = state(arm)
    force = np.random.default_rng(3).normal(size=(arm.njoint, 6))
    tarsus.kinematics(arm, data, q)
    generalized = np.zeros(arm.nv)
    for i in range(arm.njoint):
        body = arm.joints[i].body
        rotation, position = tarsus.body_pose(arm, data, body.id)
        in_link = body.pose_in_link  # the link's origin in the world: X_WB X_LB⁻¹
        origin = position - rotation @ in_link[0].T @ in_link[1]
        generalized += tarsus.jacobian(arm, data, body.id, origin).T @ force[i]
    with_force = tarsus.rnea(arm, data, q, v, a, external=force)
    assert np.allclose(with_force, tarsus.rnea(arm, data, q, v, a) - generalized, atol=1e-12)


def test_difference_undoes_integrate(arm):
    data, q, v, _, _ = state(arm)
    moved = tarsus.integrate(arm, data, q, v, 0.3)
    assert np.allclose(tarsus.difference(arm, q, moved), 0.3 * v, atol=1e-14)


def test_drives_are_the_terms_of_maba(arm):
    data, q, v, _, tau = state(arm)
    drives = tarsus.Drives.uniform(arm, kp=50, kd=4)
    assert drives.kp.tolist() == [50] * arm.nv and drives.kd.tolist() == [4] * arm.nv and not drives.plain
    Q, K = tarsus.drive_terms(arm, data, drives, 0.01, q, v, arm.qpos0, tau=tau)
    qacc = tarsus.maba(arm, data, q, v, Q, K)
    # The elbow, by the position at the end of the step; it has no spring and no damping of its own.
    own = tarsus.drive_force(arm, data, drives, 0.01, q, v, arm.qpos0, None, qacc)
    speed = v[1] + 0.01 * qacc[1]
    assert np.isclose(own[1], -50 * (q[1] + 0.01 * speed) - 4 * speed, rtol=1e-12)
    assert np.isclose(Q[1], tau[1] - 50 * (q[1] + 0.01 * v[1]) - 4 * v[1]) and np.isclose(K[1], 0.25 + 0.01 * 4 + 0.01**2 * 50)
    drives.kp[1] = 0  # a view
    drives.kd[1] = 0
    assert tarsus.drive_force(arm, data, drives, 0.01, q, v, arm.qpos0, None, qacc)[1] == 0
    own = tarsus.Drives(np.zeros(arm.nv), np.zeros(arm.nv), plain=True)
    assert own.plain and tarsus.Drives.none(arm).kp.tolist() == [0] * arm.nv
    with pytest.raises(tarsus.ValueError):
        tarsus.Drives.uniform(arm, kp=-1)
    with pytest.raises(tarsus.ShapeError, match="kd"):
        tarsus.Drives(np.zeros(3), np.zeros(2))
    with pytest.raises(tarsus.ShapeError, match="kp"):
        tarsus.Drives(np.zeros(3), np.zeros(3)).check(arm)


def test_force_limits_hold_and_are_reported(arm):
    drives = tarsus.Drives.uniform(arm, kp=1e4, kd=1e3)
    assert drives.force_limit is None and drives.force_floor is None and drives.spin_damping == 0.5
    drives.force_limit = np.full(arm.nv, 2.0)
    drives.check(arm)
    data = tarsus.Data(arm)
    stepper = tarsus.Stepper(data, dt=1 / 60)
    assert stepper.limit_report() is None
    target = np.array(data.qpos)
    target[:2] += 1  # slide and elbow; the wrist stays
    for _ in range(10):
        assert stepper.step(drives, target) == 0
        report = stepper.limit_report()
        assert report["converged"] and report["residual"] < 1e-9 and report["iterations"] >= 1
    assert report["saturated"] > 0
    with pytest.raises(tarsus.ShapeError):
        drives.force_limit = np.ones(arm.nv + 1)
    with pytest.raises(tarsus.ValueError):
        stepper.limit_report(1)
    drives.force_limit = None
    assert drives.force_limit is None



# -- stepping -------------------------------------------------------------------------------------------------------


def test_a_free_fall_is_integrated_as_written():
    ball = tarsus.Model.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    data = tarsus.Data(ball)
    stepper = tarsus.Stepper(data, dt=0.01)
    for _ in range(100):
        assert stepper.step() == 0
    # Semi-implicit Euler: v_n = -g n h, z_n = -g h² n (n + 1) / 2.
    assert np.isclose(data.qvel[2], -9.81) and np.isclose(data.qpos[2], -9.81 * 1e-4 * 5050)
    assert np.isclose(data.time, 1) and stepper.status == ["ok"] and stepper.data is data
    one = tarsus.Data(ball)
    assert tarsus.step(ball, one, dt=0.01) == ["ok"] and np.isclose(one.qvel[2], -0.0981)
    assert tarsus.step(ball, one, integrator="rk4") == ["ok"] and np.isclose(one.time, 0.012)
    assert tarsus.state_hash(one) != tarsus.state_hash(data)


def test_a_bad_world_freezes_and_says_why(arm):
    data = tarsus.Data(arm, worlds=3)
    data.set(data.tau, 1, np.full(arm.nv, np.nan))
    stepper = tarsus.Stepper(data, dt=0.01)
    assert stepper.step() == 1 and stepper.status == ["ok", "bad_input", "ok"]
    assert data.get(data.qpos, 1).tolist() == arm.qpos0.tolist() and data.get(data.qvel, 0).any()
    data.set(data.tau, 1, np.zeros(arm.nv))
    stepper.restart(1)
    assert stepper.step() == 0
    with pytest.raises(tarsus.ValueError, match="world"):
        stepper.restart(3)


def test_bad_stepping_arguments(arm):
    data = tarsus.Data(arm)
    with pytest.raises(tarsus.ValueError, match="dt"):
        tarsus.Stepper(data, dt=0)
    with pytest.raises(tarsus.ValueError, match="semi_implicit_euler"):
        tarsus.Stepper(data, integrator="euler")
    with pytest.raises(tarsus.ValueError, match="drives"):
        tarsus.step(arm, data, qpos_target=arm.qpos0)
    with pytest.raises(tarsus.ValueError, match="qpos_target"):
        tarsus.step(arm, data, tarsus.Drives.none(arm))


# -- batches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_batch_computes_what_single_worlds_do(arm, dtype):
    worlds = 11
    batch = tarsus.Data(arm, worlds=worlds, dtype=dtype)
    assert batch.qpos.shape == (batch.packs, arm.nq, batch.width) and batch.packs * batch.width >= worlds
    tau, singles = batch.zeros(arm.nv), []
    for world in range(worlds):
        single, q, v, _, t = state(arm, seed=world, dtype=dtype)
        batch.set(batch.qpos, world, q), batch.set(batch.qvel, world, v), batch.set(tau, world, t)
        singles.append((tarsus.aba(arm, single, q, v, t), tarsus.crba(arm, single, q)))
        assert (batch.get(batch.qpos, world) == q).all()
        assert (batch.qpos[world // batch.width, :, world % batch.width] == q).all()
    qacc = tarsus.aba(arm, batch, batch.qpos, batch.qvel, tau)
    M = tarsus.crba(arm, batch, batch.qpos)
    assert M.shape == (batch.packs, arm.nv, arm.nv, batch.width)
    for world, (expected, matrix) in enumerate(singles):
        assert (batch.get(qacc, world) == expected).all()  # to the bit
        assert (M[world // batch.width, :, :, world % batch.width] == matrix).all()
    assert tarsus.first_bad_world(batch, qacc, arm.nv) == -1
    qacc[7 // batch.width, 0, 7 % batch.width] = np.inf
    assert tarsus.first_bad_world(batch, qacc, arm.nv) == 7


def test_batch_arrays_from_elsewhere_may_begin_anywhere(arm):
    """Packs are loaded with aligned instructions: arrays with any misalignment must give the same numbers."""
    batch = tarsus.Data(arm, worlds=9)
    batch.qvel[:] = np.random.default_rng(0).normal(size=batch.qvel.shape)
    expected = tarsus.aba(arm, batch, batch.qpos, batch.qvel, batch.tau)
    for shift in range(9):
        qpos, out = (np.zeros(n.size + 16)[shift : shift + n.size].reshape(n.shape) for n in (batch.qpos, batch.qvel))
        qpos[:] = batch.qpos
        assert tarsus.aba(arm, batch, qpos, batch.qvel, batch.tau, out=out) is out
        assert (out == expected).all()


def test_threads_with_data_of_their_own():
    model = tarsus.Model.load(HUMANOID)
    results = [None] * 4

    def work(i):
        data = tarsus.Data(model, worlds=64)
        data.qvel[:] = 0.1
        stepper = tarsus.Stepper(data, dt=1 / 240)
        for _ in range(20):
            stepper.step()
        results[i] = tarsus.state_hash(data)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] is not None and len(set(results)) == 1


# -- errors ---------------------------------------------------------------------------------------------------------


def test_arrays_that_do_not_fit_are_named(arm):
    data, q, v, a, tau = state(arm)
    cases = [
        (lambda: tarsus.crba(arm, data, list(q)), TypeError, r"qpos: is of type list, expected .* float64, shape \(6,\)"),
        (lambda: tarsus.crba(arm, data, None), TypeError, "qpos: is of type NoneType"),
        (lambda: tarsus.crba(arm, data, q.astype(np.float32)), TypeError, "qpos: is an array of float32, .* float64"),
        (lambda: tarsus.aba(arm, data, q, v, np.zeros(5, int)), TypeError, "tau: is an array of int64"),
        (lambda: tarsus.aba(arm, data, q, np.zeros(10)[::2], tau), TypeError, "qvel: is an array that is not contiguous"),
        (lambda: tarsus.crba(arm, data, q, out=np.asfortranarray(np.zeros((5, 5)))), TypeError, "out: .* not contiguous"),
        (lambda: tarsus.crba(arm, data, q[:-1]), tarsus.ShapeError, "qpos: has size 5, expected 6"),
        (lambda: tarsus.crba(arm, data, q, out=np.zeros(25)), tarsus.ShapeError, r"out: has shape \(25,\), expected \(5, 5\)"),
        (lambda: tarsus.integrate(arm, data, q, v, 0.1, out=arm.qpos0), TypeError, "out: is a read-only array"),
        (lambda: tarsus.rnea(arm, data, q, v, a, external=np.zeros((6, 3))), tarsus.ShapeError, r"external: has shape \(6, 3\)"),
        (lambda: setattr(data, "qpos", v), tarsus.ShapeError, "qpos: has size 5, expected 6"),
    ]
    for call, error, text in cases:
        with pytest.raises(error, match=text):
            call()
    assert issubclass(tarsus.ShapeError, ValueError) and issubclass(tarsus.ValueError, ValueError)


def test_read_only_inputs_are_welcome(arm):
    data, q, v, _, tau = state(arm)
    expected = tarsus.aba(arm, data, q, v, tau)
    for array in (q, v, tau):
        array.flags.writeable = False
    assert (tarsus.aba(arm, data, q, v, tau) == expected).all()


def test_data_of_another_model_is_refused(arm):
    other = tarsus.Data(tarsus.Model.from_xml_string(ARM))
    with pytest.raises(tarsus.ValueError, match="data: is made for another model"):
        tarsus.crba(arm, other, other.qpos)


def test_bad_data_arguments(arm):
    with pytest.raises(tarsus.ValueError, match="worlds: is 0"):
        tarsus.Data(arm, 0)
    with pytest.raises(tarsus.ValueError, match="dtype: is int32, expected float64 or float32"):
        tarsus.Data(arm, dtype=np.int32)
    with pytest.raises(tarsus.ValueError, match="a batch, expected a single world"):
        batch = tarsus.Data(arm, 4)
        tarsus.jacobian(arm, batch, "hand", np.zeros(3))
    with pytest.raises(tarsus.ValueError, match="world"):
        batch.get(batch.qpos, 4)


def test_errors_in_text_have_a_place():
    with pytest.raises(tarsus.InputError) as caught:
        tarsus.Model.from_xml_string("<mujoco>\n <worldbody>\n  <body><joint typ='a' axis='0 0 x'/></body>\n </worldbody></mujoco>", name="my.xml")
    findings = caught.value.diagnostics
    assert len(findings) >= 1 and str(caught.value).startswith("my.xml:3:")
    for finding in findings:
        assert (finding.severity, finding.file, finding.line) == ("error", "my.xml", 3) and finding.column > 0
        assert finding.element.endswith("joint") and finding.message and str(finding) in str(caught.value)
    with pytest.raises(tarsus.InputError, match="neither <mujoco>"):
        tarsus.Model.from_xml_string("<html/>")
    with pytest.raises(tarsus.InputError, match="nowhere.xml"):
        tarsus.Model.load("nowhere.xml")


# -- package --------------------------------------------------------------------------------------------------------


def test_everything_public_has_a_docstring():
    bare = []
    for name in tarsus.__all__:
        item = getattr(tarsus, name)
        if name.startswith("_"):
            continue
        if not inspect.getdoc(item):
            bare.append(name)
        if inspect.isclass(item) and item.__module__.startswith("tarsus._core"):
            bare += [f"{name}.{k}" for k, v in vars(item).items() if not k.startswith("_") and not inspect.getdoc(v)]
    assert not bare


def test_stubs_name_types_and_no_bare_objects():
    stub = (pathlib.Path(tarsus.__file__).parent / "_core.pyi").read_text()
    compile(stub, "_core.pyi", "exec")
    assert "def rnea(model: Model, data: Data, qpos:" in stub
    assert not re.findall(r"-> object\b", stub)
