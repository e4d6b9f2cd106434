"""Free rigid bodies from Python: closed forms, MuJoCo on the same MJCF, arrays, threads and bad input."""

import pathlib
import threading

import numpy as np
import pytest
import tarsus

SCENES = pathlib.Path(__file__).parents[2] / "models" / "scenes"
G = 9.81


def ball_on_floor(**options):
    world = tarsus.RigidWorld(**options)
    world.add_shape(-1, tarsus.Shape.plane())
    world.add_body(tarsus.Shape.sphere(0.3), 2.0, (0, 0, 0.3))
    return world


# -- closed forms ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-4, 1e-3])
def test_ball_sinks_by_compliance_times_weight(epsilon):
    world = ball_on_floor(compliance=epsilon, iterations=100)
    assert world.step(300)
    assert 0.3 - world.poses[0, 2] == pytest.approx(epsilon * 2 * G, abs=1e-9)
    contacts = world.contacts
    assert contacts["bodies"].tolist() == [[0, -1]] and contacts["shapes"].tolist() == [[1, 0]]
    assert np.allclose(contacts["force"], [[0, 0, 2 * G]], rtol=1e-9)
    assert np.allclose(contacts["normal"], [[0, 0, 1]]) and np.allclose(contacts["distance"], -epsilon * 2 * G)
    assert np.allclose(contacts["position"], [[0, 0, -epsilon * G]], atol=1e-9)


def test_sliding_box_stops_where_it_should():
    mu, speed, errors = 0.4, 3.0, []
    for dt in (1 / 60, 1 / 120, 1 / 240):
        world = tarsus.RigidWorld(dt=dt, friction=mu, iterations=100)
        world.add_shape(-1, tarsus.Shape.plane())
        world.add_body(tarsus.Shape.box(0.5, 0.5, 0.5), 1.0, (0, 0, 0.5))
        world.velocities = np.array([[speed, 0, 0, 0, 0, 0]])
        assert world.step(round(2 / dt))
        assert np.allclose(world.contacts["friction"], mu) and len(world.contacts["friction"]) == 4
        errors.append(abs(world.poses[0, 0] - (speed**2 / (2 * mu * G) - speed * dt / 2)))
        assert errors[-1] < 40 * dt**2
        assert np.abs(world.velocities).max() < 1e-6
    assert errors[2] < 0.6 * errors[0]


def test_free_flight_of_a_lopsided_hull():
    # A hull whose frame is far from its centre of mass: the centre follows a parabola, and the frame turns about it.
    points = np.array([[0, 0, 0], [0.6, 0, 0], [0, 0.4, 0], [0, 0, 0.2], [0.5, 0.3, 0.1]])
    world = tarsus.RigidWorld(dt=1e-3, gravity=(0, 0, -G))
    world.add_body(tarsus.Shape.convex(points), 3.0, (1, 2, 3), (0.5, 0.5, -0.5, 0.5))
    assert np.allclose(world.poses, [[1, 2, 3, 0.5, 0.5, -0.5, 0.5]], atol=1e-14)
    start = np.array([[0.3, -0.2, 1.0, 1.5, -0.4, 2.0]])
    world.velocities = start
    assert np.allclose(world.velocities, start, atol=1e-13)
    momentum, spin = world.momentum, world.angular_momentum
    before = world.poses
    assert world.step()
    # The velocity is the pose's derivative, to the order of the step.
    assert np.allclose((world.poses - before)[0, :3] / 1e-3, start[0, :3], atol=2e-2)
    assert world.step(499)
    t = 500e-3
    assert np.allclose(world.momentum - momentum, [0, 0, -3 * G * t], atol=1e-9)
    centre = momentum / 3
    # L(t) = L0 + ∫ r × m g dt, with r = r0 + v0 t + O(t²) along z, which is parallel to g.
    expected = spin + np.cross(start_centre(points, before) * t + centre * t**2 / 2, [0, 0, -3 * G])
    assert np.allclose(world.angular_momentum, expected, atol=0.05)


def start_centre(points, pose):
    """World centre of mass of the homogeneous hull, as an exact sum over its Delaunay tetrahedra."""
    base = points[0]
    # The hull of the five points is two tetrahedra that share the face 1, 2, 3.
    first, second = points[[0, 1, 2, 3]], points[[4, 1, 2, 3]]
    volumes = [abs(np.linalg.det(t[1:] - t[0])) for t in (first, second)]
    local = sum(v * t.mean(axis=0) for v, t in zip(volumes, (first, second))) / sum(volumes)
    w, x, y, z = pose[0, 3:]
    turn = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])
    return pose[0, :3] + turn @ (local - base)


def test_applied_force_and_torque_are_those_of_newton_and_euler():
    world = tarsus.RigidWorld(dt=0.01, gravity=(0, 0, 0))
    world.add_body(None, 2.0, inertia=(0.5, 0.5, 0.5))
    world.forces = np.array([[4.0, 0, 0, 0, 0, 1.0]])
    assert world.step(100)
    assert np.allclose(world.velocities, [[2, 0, 0, 0, 0, 2]], atol=1e-12)
    assert world.kinetic_energy == pytest.approx(0.5 * 2 * 4 + 0.5 * 0.5 * 4)


def test_velocities_and_forces_are_in_world_axes():
    for axes in (tarsus.RigidWorld.velocities.__doc__, tarsus.RigidWorld.forces.__doc__):
        assert "in world axes" in axes
    turn = np.array([np.sqrt(0.5), 0, np.sqrt(0.5), 0])  # the body's z is the world's x
    world = tarsus.RigidWorld(dt=0.01, gravity=(0, 0, 0))
    world.add_body(None, 1.0, orientation=turn, inertia=(1.0, 1.0, 2.0))
    world.forces = np.array([[0, 3.0, 0, 1.0, 0, 0]])
    assert world.step(100)
    assert np.allclose(world.velocities, [[0, 3, 0, 0.5, 0, 0]], atol=1e-12)


# -- beside MuJoCo --------------------------------------------------------------------------------------------------

STACK = """<mujoco><option timestep="0.002" cone="elliptic" iterations="100"/>
<default><geom solref="0.021 1"/></default><worldbody><geom type="plane" size="0 0 1"/>
<body name="low" pos="0 0 0.1"><freejoint/><geom type="box" size="0.2 0.2 0.1" mass="3"/></body>
<body name="middle" pos="0.02 0 0.3"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="5"/></body>
<body name="top" pos="0.02 0 0.5"><freejoint/><geom type="sphere" size="0.1" mass="2"/></body>
</worldbody></mujoco>"""


def test_resting_stack_carries_what_mujocos_does():
    mujoco = pytest.importorskip("mujoco")
    world = tarsus.RigidWorld.from_model(tarsus.Model.from_xml_string(STACK), iterations=100)
    assert world.names == ["low", "middle", "top"] and np.allclose(world.masses, [3, 5, 2])
    assert world.step(1500)
    model = mujoco.MjModel.from_xml_string(STACK)
    data = mujoco.MjData(model)
    for _ in range(1500):
        mujoco.mj_step(model, data)
    theirs, force = {}, np.zeros(6)
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, force)
        pair = tuple(sorted(int(model.geom_bodyid[g]) - 1 for g in (data.contact[i].geom1, data.contact[i].geom2)))
        theirs[pair] = theirs.get(pair, 0) + force[0]
    ours, contacts = {}, world.contacts
    for (a, b), f, n in zip(contacts["bodies"], contacts["force"], contacts["normal"]):
        pair = tuple(sorted((int(a), int(b))))
        ours[pair] = ours.get(pair, 0) + f @ n
    assert set(ours) == set(theirs) == {(-1, 0), (0, 1), (1, 2)}
    for pair, value in theirs.items():
        assert ours[pair] == pytest.approx(value, rel=0.01)
    # Both penetrate by MuJoCo's softness, 0.3 mm and 0.7 mm. (The ball on top rolls away in both.)
    assert np.allclose(world.poses[:2, 2], data.xpos[1:3, 2], atol=2e-5)


# -- arrays, scenes, determinism --------------------------------------------------------------------------------------


def test_scene_files_and_built_in_scenes_run():
    for path in sorted(SCENES.glob("*.xml")):
        model = tarsus.Model.load(str(path))
        if "<equality>" in path.read_text():
            continue
        world = tarsus.RigidWorld.load(path)
        assert world.step(10) and world.time == pytest.approx(10 * world.options["dt"])
        assert np.isfinite(world.poses).all() and world.poses.shape == (world.nbody, 7)
    for name in ("balls:4:3", "ball_pyramid:4", "box_pyramid:4", "box_stack:3", "dominoes:5", "slope:20", "cards:2"):
        report = tarsus.RigidWorld.scene(name, iterations=30).step(5)
        assert report and report.status == "ok" and 1 <= report.iterations <= 30 and report.residual < 1


def test_poses_are_copies_and_setting_them_makes_steps_repeatable():
    world = tarsus.RigidWorld.scene("balls:5:4", dtype="float32", threads=2)
    assert world.options["dtype"] == "float32" and world.options["threads"] == 2
    world.step(40)
    poses, velocities = world.poses, world.velocities
    world.poses[0, 0] = 1e9
    assert np.array_equal(world.poses, poses)
    ends = []
    for _ in range(2):
        world.poses, world.velocities = poses, velocities
        assert len(world.contacts["distance"]) == 0  # there is no step that they could belong to
        world.step(30)
        ends.append(world.state_hash())
    assert ends[0] == ends[1]


def test_result_does_not_depend_on_threads():
    hashes = []
    for threads in (1, 2, 3):
        world = tarsus.RigidWorld.scene("balls:16:3", threads=threads)
        assert world.step(60)
        hashes.append(world.state_hash())
    assert len(set(hashes)) == 1


def test_report_has_what_a_pile_is_judged_by():
    world = tarsus.RigidWorld.scene("ball_pyramid:6")
    report = world.step(120)
    assert report.touching > 0 and report.contacts >= report.touching
    assert 0 < report.penetration_mean <= report.penetration_max < 0.01
    assert report.residual >= 0 and report.colours > 0 and set(report.seconds) == {
        "collide", "match", "prepare", "terms", "integrate"}
    carried = world.contacts["force"][world.contacts["bodies"][:, 1] == -1].sum(axis=0)
    assert carried[2] == pytest.approx(world.nbody * G, rel=0.02)


def test_bodies_fall_asleep_and_wake_when_pushed():
    world = tarsus.RigidWorld.scene("box_stack:3", sleep=True, iterations=30)
    world.step(300)
    assert world.asleep.all() and world.asleep.dtype == bool
    push = np.zeros((3, 6))
    push[2, 0] = 50
    world.forces = push
    world.step(30)
    assert not world.asleep.any() and world.poses[2, 0] > 0.01


def test_compound_body_and_masks():
    world = tarsus.RigidWorld(friction=0.8)
    world.add_shape(-1, tarsus.Shape.plane())
    # A dumbbell: two balls on a massless bar, with a given inertia.
    bell = world.add_body(None, 2.0, (0, 0, 0.5), inertia=np.diag([0.02, 0.5, 0.5]))
    for x in (-0.5, 0.5):
        world.add_shape(bell, tarsus.Shape.sphere(0.1), (x, 0, 0))
    ghost = world.add_body(None, 1.0, (0, 0, 2), inertia=(1, 1, 1))
    world.add_shape(ghost, tarsus.Shape.sphere(0.1), contype=2, conaffinity=2)
    assert world.step(120)
    assert world.poses[bell, 2] == pytest.approx(0.1, abs=1e-3)
    assert world.poses[ghost, 2] < -10


def test_other_threads_run_while_the_world_steps():
    world = tarsus.RigidWorld.scene("balls:12:12", iterations=40)
    done = threading.Event()
    failures = []

    def work():
        try:
            world.step(60)
        except Exception as error:  # noqa: BLE001 (the main thread looks at it)
            failures.append(error)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    turns = refused = 0
    while not done.is_set():
        turns += 1
        try:
            world.poses
        except tarsus.ValueError as error:
            assert "another thread" in str(error)
            refused += 1
    thread.join()
    assert not failures and refused > 10 and turns > 10


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make, message", [
    (lambda: tarsus.RigidWorld(dt=0.0), "dt"),
    (lambda: tarsus.RigidWorld(iterations=0), "iterations"),
    (lambda: tarsus.RigidWorld(threads=0), "threads"),
    (lambda: tarsus.RigidWorld(dtype="int32"), "dtype"),
    (lambda: tarsus.RigidWorld(friction=-1.0), "friction"),
    (lambda: tarsus.RigidWorld.scene("teapot"), "box_stack"),
    (lambda: tarsus.RigidWorld.scene("balls:1e9"), "1 to 200"),
    (lambda: tarsus.RigidWorld().add_body(tarsus.Shape.sphere(1), 0.0), "mass"),
    (lambda: tarsus.RigidWorld().add_body(tarsus.Shape.sphere(0), 1.0), "shape"),
    (lambda: tarsus.RigidWorld().add_body(tarsus.Shape.plane(), 1.0), "plane"),
    (lambda: tarsus.RigidWorld().add_body(None, 1.0), "inertia"),
    (lambda: tarsus.RigidWorld().add_body(None, 1.0, inertia=(1, 1, -1)), "inertia"),
    (lambda: tarsus.RigidWorld().add_body(tarsus.Shape.sphere(1), 1.0, (0, 0, float("nan"))), "state"),
    (lambda: tarsus.RigidWorld().add_body(tarsus.Shape.sphere(1), 1.0, orientation=(0, 0, 0, 0)), "orientation"),
    (lambda: tarsus.RigidWorld().add_body(tarsus.Shape.sphere(1), 1.0, surface=3), "surface"),
    (lambda: tarsus.RigidWorld().add_shape(0, tarsus.Shape.sphere(1)), "body"),
    (lambda: tarsus.RigidWorld().exclude(0, 7), "body"),
    (lambda: tarsus.RigidWorld().step(0), "steps"),
    (lambda: ball_on_floor().set_options(dt=-1.0), "dt"),
    (lambda: ball_on_floor().set_options(threads=2), "threads"),
])
def test_bad_values_are_named(make, message):
    with pytest.raises(tarsus.ValueError, match=message):
        make()


def test_bad_types_and_arrays_are_named():
    world = ball_on_floor()
    with pytest.raises(TypeError, match="iteration_count"):
        tarsus.RigidWorld(iteration_count=3)
    with pytest.raises(TypeError, match="dt"):
        tarsus.RigidWorld(dt="fast")
    with pytest.raises(tarsus.ShapeError, match="poses"):
        world.poses = np.zeros((2, 7))
    with pytest.raises(TypeError, match="velocities"):
        world.velocities = np.zeros((1, 6), np.float32)
    before = world.poses
    for bad in (np.nan, np.inf):
        poses = world.poses
        poses[0, 1] = bad
        with pytest.raises(tarsus.ValueError, match="body 0"):
            world.poses = poses
    assert np.array_equal(world.poses, before)
    with pytest.raises(tarsus.ValueError, match="orientation"):
        world.poses = np.zeros((1, 7))
    world.add_body(tarsus.Shape.box(1, 1, 1), 1.0)  # a failed call leaves nothing behind
    assert world.nbody == 2 and world.poses.shape == (2, 7)
    with pytest.raises(tarsus.ValueError):
        world.add_body(tarsus.Shape.box(1, 1, 1), 1.0, surface=9)
    assert world.nbody == 2 and world.poses.shape == (2, 7)


def test_models_that_are_not_free_bodies_are_refused_with_their_place():
    text = "<mujoco>\n<worldbody>\n<body>\n<joint axis='0 1 0'/><geom size='.1'/></body></worldbody></mujoco>"
    with pytest.raises(tarsus.InputError, match="joint other than free") as caught:
        tarsus.RigidWorld.from_model(tarsus.Model.from_xml_string(text))
    assert caught.value.diagnostics[0].line == 4


@pytest.mark.parametrize("equality", ["<connect name='nail' body1='b' anchor='0 0 1'/>", "<weld name='nail' body1='b'/>"])
def test_equality_constraints_are_refused_by_name_with_what_simulates_them(equality):
    text = f"<mujoco><worldbody><body name='b'><freejoint/><geom size='.1'/></body></worldbody>\n<equality>{equality}</equality></mujoco>"
    model = tarsus.Model.from_xml_string(text)
    with pytest.raises(tarsus.InputError, match=r"an equality constraint is not simulated .*Stepper.*nail") as caught:
        tarsus.RigidWorld.from_model(model)
    assert caught.value.diagnostics[0].line == 2
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data, dt=0.01)
    for _ in range(100):
        assert not stepper.step()
    assert abs(data.qpos[2]) < 1e-6  # it hangs


def test_a_world_that_diverges_says_so_and_stays_where_it_was():
    world = tarsus.RigidWorld(speed_limit=10.0)
    world.add_body(tarsus.Shape.sphere(0.1), 1.0)
    report = world.step(1000)
    assert not report and report.status == "too_fast"
    assert 9 < np.linalg.norm(world.velocities) <= 10 and np.isfinite(world.poses).all()


def test_torque_of_torsional_friction():
    world = tarsus.RigidWorld()
    world.add_surface(torsional=0.02, rolling=0.01)
    world.add_shape(-1, tarsus.Shape.plane(), surface=1)
    world.add_body(tarsus.Shape.sphere(0.3), 2.0, (0, 0, 0.3), surface=1)
    world.velocities = np.array([[0, 0, 0, 0, 0, 5.0]])
    assert world.step(30)
    assert np.allclose(world.contacts["torque"], [[0, 0, -0.02 * 2 * G]], rtol=2e-3, atol=1e-6)


def test_options_that_change_between_steps_count():
    # A surface without a compliance yields by 0.036 h² g under a ball, with h the current step, not an earlier one.
    world = ball_on_floor(iterations=50)
    for dt in (1 / 60, 1 / 240):
        world.set_options(dt=dt)
        assert world.step(round(3 / dt))
        assert 0.3 - world.poses[0, 2] == pytest.approx(0.036 * dt**2 * G, rel=1e-3)


@pytest.mark.parametrize("change, moves", [
    (lambda w: w.set_options(gravity=(0, 0, 9.81)), lambda z: z > [1.5, 2.5]),
    (lambda w: w.exclude(0, 1), lambda z: [abs(z[0] - 0.5) < 0.01, abs(z[1] - 0.5) < 0.01]),
    (lambda w: w.add_shape(0, tarsus.Shape.box(0.2, 0.2, 0.7)), lambda z: z > [0.68, 1.68]),
])  # fmt: skip
def test_sleepers_wake_when_what_they_rest_on_is_another(change, moves):
    world = tarsus.RigidWorld(iterations=30, sleep=True, friction=0.8)
    world.add_shape(-1, tarsus.Shape.plane())
    for k in range(2):
        world.add_body(tarsus.Shape.box(0.5, 0.5, 0.5), 1.0, position=(0, 0, 0.5 + k))
    assert world.step(200) and world.asleep.all()
    change(world)
    assert world.step(60)
    assert np.all(moves(world.poses[:, 2])), world.poses[:, 2]


def test_built_in_scenes_are_models():
    assert "box_stack:N" in dict(tarsus.builtin_scenes())
    model = tarsus.Model.load("box_stack:3")
    world = tarsus.RigidWorld.scene("box_stack:3")
    assert model.nv == 18 and world.nbody == 3
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data)
    assert stepper.dt == pytest.approx(1 / 60) == world.options["dt"]
    for _ in range(60):
        assert stepper.step() == 0 and world.step()
    heights = data.qpos[2::7]
    assert np.allclose(heights, [0.5, 1.5, 2.5], atol=2e-3) and np.allclose(heights, world.poses[:, 2], atol=2e-3)
    with pytest.raises(tarsus.ValueError, match="expected a model file"):
        tarsus.Model.load("box_stack:3", lenient=True)
    with pytest.raises(tarsus.ValueError, match="whole numbers"):
        tarsus.Model.load("box_stack:0")
    with pytest.raises(tarsus.InputError, match="no_scene:3"):
        tarsus.Model.load("no_scene:3")
