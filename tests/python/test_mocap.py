"""Mocap bodies: their poses are inputs in MuJoCo's layout. Bodies that are fixed, welded or connected to them, or lie on them, follow."""

import pathlib
import subprocess

import mujoco
import numpy as np
import pytest
import tarsus

#: A target with a child, a lever on it, a ball on a plate, a mass on a cord, and sensors that see them.
SCENE = """<mujoco>
  <option timestep="0.002" density="1.2" wind="1 0 0"/>
  <worldbody>
    <body name="hand" mocap="true" pos="0 0 1" euler="10 20 30">
      <geom name="hand" size=".05" contype="0" conaffinity="0"/> <site name="tip" pos=".1 0 0" euler="0 40 0"/>
      <body name="finger" pos="0 .1 .2" euler="0 0 50">
        <geom name="finger" type="box" size=".02 .02 .1" contype="0" conaffinity="0"/> <site name="nail" pos="0 0 .1"/>
      </body>
    </body>
    <body name="plate" mocap="true" pos="2 0 .5"><geom name="plate" type="box" size=".3 .3 .05"/></body>
    <body name="ball" pos="2 .1 .65"><freejoint/><geom size=".1" condim="3"/><site name="ball"/></body>
    <body name="mass" pos="0 0 .2"><freejoint/><geom size=".03" contype="0" conaffinity="0"/><site name="mass" pos="0 0 .03"/></body>
    <body name="eye" pos="0 3 1"><joint name="pan" axis="0 0 1"/><geom size=".05"/><site name="eye" euler="90 0 0"/></body>
  </worldbody>
  <tendon><spatial name="cord" stiffness="5" damping=".3"><site site="nail"/><site site="mass"/></spatial></tendon>
  <actuator><motor name="pull" site="mass" refsite="tip" gear="1 2 3 0 0 0"/></actuator>
  <sensor>
    <framepos objtype="site" objname="nail"/> <framequat objtype="body" objname="finger"/>
    <framepos objtype="body" objname="ball" reftype="site" refname="tip"/> <framexaxis objtype="geom" objname="finger"/>
    <framelinvel objtype="site" objname="ball" reftype="body" refname="hand"/> <accelerometer site="nail"/> <gyro site="tip"/>
    <rangefinder site="eye"/> <tendonpos tendon="cord"/> <tendonvel tendon="cord"/> <actuatorpos actuator="pull"/>
    <subtreecom body="hand"/> <force site="tip"/> <torque site="nail"/> <magnetometer site="nail"/>
    <distance name="gap" geom1="finger" body2="mass" cutoff="9"/>
    <insidesite site="tip" objtype="body" objname="ball"/>
  </sensor>
  <keyframe>
    <key name="moved" mpos="1 2 3 4 5 6" mquat="0 1 0 0 0 0 0 2"/> <key name="rest"/>
  </keyframe>
</mujoco>"""


def pair(xml):
    return mujoco.MjModel.from_xml_string(xml), tarsus.Model.from_xml_string(xml)


@pytest.mark.parametrize("numbers", [f'{name}="{" ".join("123456789"[:n])}"' for name, count in (("mpos", 6), ("mquat", 8), ("qpos", 9)) for n in range(1, count + 1)])
def test_short_keys_are_those_of_mujoco(numbers, tmp_path):
    """Of a mocap body all numbers or none."""
    path = tmp_path / "out.xml"
    (tmp_path / "in.xml").write_text(SCENE.replace('name="rest"', f'name="rest" {numbers}'))
    subprocess.run([pathlib.Path(tarsus.__file__).parent / "bin/tarsus", "convert", tmp_path / "in.xml", path], check=True, capture_output=True)
    theirs, written = mujoco.MjModel.from_xml_path(str(tmp_path / "in.xml")), mujoco.MjModel.from_xml_path(str(path))
    for name in ("key_qpos", "key_mpos", "key_mquat"):
        np.testing.assert_allclose(getattr(written, name), getattr(theirs, name), atol=1e-15)


def turned(rng):
    q = rng.normal(size=4)
    return q  # of any length


def test_what_rides_on_a_mocap_body_is_seen_where_it_is():
    theirs, ours = pair(SCENE)
    assert ours.nmocap == theirs.nmocap == 2
    assert not [d.message for d in ours.diagnostics if d.severity == "warning" and not d.other_law]
    d, data, rng = mujoco.MjData(theirs), tarsus.Data(ours), np.random.default_rng(5)
    theirs.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    assert np.array_equal(data.mocap_pos, d.mocap_pos) and np.allclose(data.mocap_quat, d.mocap_quat, atol=1e-15)
    for _ in range(5):
        mujoco.mj_integratePos(theirs, d.qpos, rng.normal(size=theirs.nv), 0.3)
        d.qvel[:], d.ctrl[:] = rng.normal(size=theirs.nv), rng.normal()
        for k in range(2):
            d.mocap_pos[k], d.mocap_quat[k] = rng.normal(size=3), turned(rng)
        d.mocap_pos[0] = [0, 1.5, 1]  # sometimes in front of the eye
        mujoco.mj_forward(theirs, d)
        for name in ("qpos", "qvel", "qacc", "ctrl", "mocap_pos", "mocap_quat"):
            setattr(data, name, getattr(d, name))
        numbers, moved = tarsus.sensors(ours, data), tarsus.actuation(ours, data)
        for i in range(theirs.nsensor):
            place = slice(theirs.sensor_adr[i], theirs.sensor_adr[i] + theirs.sensor_dim[i])
            a, b = numbers[place], d.sensordata[place]
            assert np.allclose(a, b, rtol=1e-9, atol=1e-9), (mujoco.mjtSensor(theirs.sensor_type[i]).name, a, b)
        for name in ("ten_length", "ten_velocity", "actuator_length", "actuator_velocity", "qfrc_actuator", "qfrc_passive"):
            assert np.allclose(moved[name], getattr(d, name), rtol=1e-9, atol=1e-9), name
        tarsus.kinematics(ours, data, data.qpos)
        for name in ("hand", "finger", "plate"):
            rotation, position = tarsus.body_pose(ours, data, name)
            assert np.allclose(position, d.body(name).xpos, atol=1e-12)
            assert np.allclose(rotation.ravel(), d.body(name).xmat, atol=1e-12)


def test_a_step_carries_what_lies_on_a_mocap_body():
    """A plate that rises by 0.2 m in a second and turns lifts a ball. The cord on the other mocap body pulls its mass along."""
    theirs, ours = pair(SCENE.replace('wind="1 0 0"', 'wind="0 0 0"'))
    d, data = mujoco.MjData(theirs), tarsus.Data(ours)
    stepper = tarsus.Stepper(data, dt=0.002, contacts=True)
    for k in range(1500):
        t = min(1.0, 0.002 * k)
        for engine in (d, data):
            engine.mocap_pos[0], engine.mocap_pos[1] = [0.3 * t, 0, 1], [2, 0, 0.5 + 0.2 * t]
            engine.mocap_quat[1] = [np.cos(0.2 * t), 0, 0, np.sin(0.2 * t)]
        mujoco.mj_step(theirs, d)
        assert stepper.step() == 0
    assert data.qpos[2] == pytest.approx(0.7 + 0.05 + 0.1, abs=2e-3)
    assert np.abs(data.qpos[:3] - d.qpos[:3]).max() < 5e-3
    assert np.abs(data.qpos[7:10] - d.qpos[7:10]).max() < 1e-3  # the mass on its cord


PENDULUM = """<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="hook" mocap="true" pos="0 0 1"><geom size=".02" contype="0" conaffinity="0"/><site name="hook"/></body>
    <body name="bob" pos="0 0 .5">
      <freejoint/> <geom type="capsule" size=".03" fromto="0 0 0 0 0 .4" contype="0" conaffinity="0"/> <site name="bob" pos="0 0 .5"/>
    </body>
  </worldbody>
  <equality>{equality}</equality>
</mujoco>"""


@pytest.mark.parametrize("loops", ["spook", "shake"])
@pytest.mark.parametrize("equality", ['<connect body1="bob" body2="hook" anchor="0 0 .5"/>',
                                      '<connect body1="hook" body2="bob" anchor="0 0 0"/>',
                                      '<connect site1="hook" site2="bob"/>', '<weld body1="hook" body2="bob"/>',
                                      '<weld body1="bob" body2="hook"/>', '<weld site1="bob" site2="hook"/>'])
def test_what_is_tied_to_a_mocap_body_follows(equality, loops):
    """As in MuJoCo with hard constraints; the final position in closed form."""
    xml = PENDULUM.format(equality=equality)
    theirs, ours = pair(xml)
    theirs.eq_solref[:], theirs.eq_solimp[:] = [0.004, 1], [0.9999, 0.9999, 0.001, 0.5, 2]
    d, data = mujoco.MjData(theirs), tarsus.Data(ours)
    stepper = tarsus.Stepper(data, dt=0.002, loops=loops)
    for k in range(1000):
        t = min(1.0, 0.002 * k)
        for engine in (d, data):
            engine.mocap_pos[0] = [0.3 * t**2 * (3 - 2 * t), 0.1 * t, 1 + 0.2 * t]
            engine.mocap_quat[0] = [np.cos(0.3 * t), 0, np.sin(0.3 * t), 0]
        mujoco.mj_step(theirs, d)
        assert stepper.step() == 0
    assert np.abs(data.qpos - d.qpos).max() < 1e-2  # a bob that swings at 1.5 m/s, at steps of 2 ms
    tarsus.kinematics(ours, data, data.qpos)
    rotation, position = tarsus.body_pose(ours, data, "bob")
    assert np.abs(position + rotation @ [0, 0, 0.5] - [0.3, 0.1, 1.2]).max() < (1e-3 if loops == "spook" else 1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_each_world_of_a_batch_has_its_own(dtype):
    ours = tarsus.Model.from_xml_string(PENDULUM.format(equality='<weld body1="hook" body2="bob"/>'))
    many, rng = tarsus.Data(ours, worlds=5, dtype=dtype), np.random.default_rng(2)
    places = (np.array([0, 0, 1]) + 0.1 * rng.normal(size=(5, 3))).astype(dtype)
    for world, place in enumerate(places):
        many.mocap_pos[world // many.width, 0, :, world % many.width] = place
    stepper = tarsus.Stepper(many, dt=0.002)
    for _ in range(100):
        assert stepper.step() == 0
    for world, place in enumerate(places):
        one = tarsus.Data(ours, dtype=dtype)
        one.mocap_pos[0] = place
        alone = tarsus.Stepper(one, dt=0.002)
        for _ in range(100):
            assert alone.step() == 0
        assert np.allclose(many.get(many.qpos, world), one.qpos, atol=1e-12 if dtype == "float64" else 1e-4)
        assert np.abs(one.qpos[:3] - place + [0, 0, 0.5]).max() < 1e-3


def test_keyframes_place_mocap_bodies():
    theirs, ours = pair(SCENE)
    d, data = mujoco.MjData(theirs), tarsus.Data(ours)
    for key in (0, 1, 0):
        mujoco.mj_resetDataKeyframe(theirs, d, key)
        data.reset(key)
        assert np.array_equal(data.mocap_pos, d.mocap_pos)
        unit = d.mocap_quat / np.linalg.norm(d.mocap_quat, axis=1)[:, None]
        assert np.allclose(data.mocap_quat / np.linalg.norm(data.mocap_quat, axis=1)[:, None], unit, atol=1e-15)
    data.reset()
    assert np.array_equal(data.mocap_pos, [[0, 0, 1], [2, 0, 0.5]])


def test_what_is_wrong_with_a_mocap_pose_is_said():
    data = tarsus.Data(tarsus.Model.from_xml_string(SCENE))
    with pytest.raises(tarsus.ShapeError, match="mocap_pos"):
        data.mocap_pos = np.zeros(6)
    data.mocap_pos[1, 0] = np.nan
    stepper = tarsus.Stepper(data, dt=0.002)
    assert stepper.step() == 1 and stepper.status == ["bad_input"]
    below = tarsus.Model.from_xml_string('<mujoco><worldbody><body mocap="true"><body><joint/><geom size=".1"/></body></body>'
                                         "</worldbody></mujoco>")
    assert any("this joint is below a mocap body" in d.message and d.line == 1 for d in below.diagnostics)


def test_worlds_of_a_batch_have_poses_of_their_own():
    """Each world against a Data of its own: bodies on a mocap body, sensors on one, poses and contacts; with save, restore and
    reset."""
    ours, rng = tarsus.Model.from_xml_string(SCENE), np.random.default_rng(3)
    batch = tarsus.Batch(ours, 3, dt=0.004, contacts=True)
    assert batch.mocap_pos.shape == (3, 2, 3) and batch.mocap_quat.shape == (3, 2, 4)
    assert np.array_equal(batch.mocap_pos[1], tarsus.Data(ours).mocap_pos)
    ones = [tarsus.Data(ours) for _ in range(3)]
    steppers = [tarsus.Stepper(one, dt=0.004, contacts=True) for one in ones]
    drift = 0.3 * rng.normal(size=(3, 2, 3))
    halfway, state = 25, None
    for step in range(2 * halfway):
        if step == halfway:
            state = batch.save()
        batch.mocap_pos += 0.004 * drift
        batch.mocap_quat[:, 0] = [np.cos(0.01 * step), 0, np.sin(0.01 * step), 0]
        _, seen = batch.rollout(1, sensors=True)
        for world, (one, stepper) in enumerate(zip(ones, steppers)):
            one.mocap_pos, one.mocap_quat = batch.mocap_pos[world], batch.mocap_quat[world]
            assert stepper.step() == 0
            assert np.array_equal(one.qpos, batch.qpos[world])
            assert np.array_equal(one.sensordata, seen[0, world])
    assert (batch.status == 0).all() and np.abs(batch.qpos[0] - batch.qpos[1]).max() > 1e-3
    pose = batch.measure(["position"])["position"]
    for world, one in enumerate(ones):
        tarsus.kinematics(ours, one, one.qpos)
        for body in range(ours.nbody):
            assert np.allclose(pose[world, body], tarsus.body_pose(ours, one, body)[1], atol=1e-15)
    batch.restore(state)
    assert np.allclose(batch.mocap_pos - ones[0].mocap_pos, tarsus.Data(ours).mocap_pos + 0.1 * drift - ones[0].mocap_pos)
    batch.mocap_pos[2, 1, 0] = np.nan
    assert batch.step() == 1 and "mocap_pos[3] is nan" in batch.fault(2)
    batch.reset(np.array([False, False, True]))
    assert (batch.status == 0).all() and np.array_equal(batch.mocap_pos[2], tarsus.Data(ours).mocap_pos)
    with pytest.raises(tarsus.ShapeError, match="mocap_pos"):
        batch.mocap_pos = np.zeros((3, 6))


#: A box on a mocap body with its front at x = -0.3, before a body at x = 0 of 10 cm. Without friction, so that it goes straight.
PUSHED = """<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="plate" mocap="true" pos="-.4 0 0"><geom type="box" size=".1 .5 .5" friction="0"/></body>
  <body name="body">{joint}<geom {geom} mass="1" friction="0"/></body>
</worldbody></mujoco>"""
FREE, SLIDE = "<freejoint/>", '<joint type="slide" axis="1 0 0"/>'
BALL, BOX = 'size=".1"', 'type="box" size=".1 .1 .1"'


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("joint, geom", [(FREE, BALL), (FREE, BOX), (SLIDE, BOX)])
@pytest.mark.parametrize("dt", [1e-3, 1 / 240, 1 / 60])
@pytest.mark.parametrize("speed", [0.5, 2, 4, 8])
def test_a_mocap_body_that_moves_pushes(speed, dt, joint, geom, dtype):
    """What it meets is from then on before it and hardly faster, as with a heavy body in its place."""
    data = tarsus.Data(tarsus.Model.from_xml_string(PUSHED.format(joint=joint, geom=geom)), dtype=dtype)
    stepper = tarsus.Stepper(data, dt=dt)
    for step in range(round(0.9 / speed / dt)):
        data.mocap_pos[0, 0] = -0.4 + speed * dt * (step + 1)
        assert stepper.step() == 0
    assert data.qpos[0] > data.mocap_pos[0, 0] + 0.2 - 0.001 * speed
    assert 0.99 * speed < data.qvel[0] < 1.25 * speed


@pytest.mark.parametrize("dt", [1e-3, 1 / 60])
@pytest.mark.parametrize("speed", [0.5, 1, 2])
def test_a_hand_pushes_a_door(speed, dt):
    """The hand's nearest edge touches the door 0.5 m from the hinge, where the door's face is at x = 0.5 tan a - 0.02 / cos a."""
    data = tarsus.Data(tarsus.Model.from_xml_string("""<mujoco><worldbody>
      <body mocap="true" pos="-.25 0 0"><geom type="box" size=".1 .1 .1"/></body>
      <body pos="0 -.8 0"><joint axis="0 0 -1" damping=".05"/><geom type="box" size=".02 .4 .5" pos="0 .4 0" mass="5"/></body>
    </worldbody></mujoco>"""))
    stepper = tarsus.Stepper(data, dt=dt)
    for step in range(round(0.4 / speed / dt)):
        data.mocap_pos[0, :2] = [-0.25 + speed * dt * (step + 1), -0.2]
        assert stepper.step() == 0
    angle, front = data.qpos[0], data.mocap_pos[0, 0] + 0.1
    assert 0.5 * np.tan(angle) - 0.02 / np.cos(angle) > front - 0.005
    assert angle < 1.25 * np.arctan(front / 0.5 + 0.04)


@pytest.mark.parametrize("shape", ['type="box" size="1 1 .02"', 'type="plane" size="1 1 .1" pos="0 0 .02"'])
@pytest.mark.parametrize("dt", [1e-3, 1 / 60, 1 / 30])
@pytest.mark.parametrize("speed", [0.3, 1, 2.9])
def test_a_lift_carries_its_load(speed, dt, shape):
    """A plate of 4 cm rises with a constant acceleration for half a second, then at that speed. The load stays on it."""
    data = tarsus.Data(tarsus.Model.from_xml_string(f"""<mujoco><worldbody><body mocap="true"><geom {shape}/></body>
      <body pos="0 0 .12"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>"""))
    stepper = tarsus.Stepper(data, dt=dt)
    for step in range(round(1 / dt)):
        t = dt * (step + 1)
        data.mocap_pos[0, 2] = speed * (t**2 if t < 0.5 else t - 0.25)
        assert stepper.step() == 0
        assert abs(data.qpos[2] - data.mocap_pos[0, 2] - 0.12) < 1e-3 + speed * dt**2  # the first step has no speed
    assert data.qvel[2] == pytest.approx(speed, rel=1e-3)


@pytest.mark.parametrize("joint, most", [(FREE, 3), (SLIDE, 1)])
@pytest.mark.parametrize("dt", [1e-3, 1 / 60])
@pytest.mark.parametrize("first", [0, 5])
def test_a_mocap_body_that_jumps_does_not_throw(first, dt, joint, most):
    """After a jump of 0.55 m, 5 cm deep into the body, it parts from it as from any shape: decision 521."""
    data = tarsus.Data(tarsus.Model.from_xml_string(PUSHED.format(joint=joint, geom=BOX)))
    stepper = tarsus.Stepper(data, dt=dt)
    data.mocap_pos[0, 0] = -0.7
    for step in range(round(0.5 / dt)):
        if step == first:
            data.mocap_pos[0, 0] = -0.15
        assert stepper.step() == 0
        assert data.qvel[0] < most + 1e-6
    assert data.qpos[0] > 0.05 - 1e-3


@pytest.mark.parametrize("turn", [0, 3])
def test_a_short_jump_counts_as_the_motion_of_a_sixtieth_of_a_second(turn):
    """10 cm in a step of 1 ms are 6 m/s, at which it may be overtaken by a quarter, and not 100."""
    data = tarsus.Data(tarsus.Model.from_xml_string(PUSHED.format(joint=FREE, geom=BOX)))
    stepper = tarsus.Stepper(data, dt=1e-3)
    for step in range(300):
        data.mocap_pos[0, 0] = -0.1 if step > 100 else -0.2
        data.mocap_quat[0] = [np.cos(turn / 2), np.sin(turn / 2), 0, 0] if step > 100 else [1, 0, 0, 0]
        assert stepper.step() == 0
        assert data.qvel[0] < 7.6
    assert data.qpos[0] > 0.1


def test_poses_may_be_set_less_often_than_steps():
    """At 60 Hz beside steps of 1 ms: the mean speed counts, and not sixteen times as much in one step of sixteen."""
    data = tarsus.Data(tarsus.Model.from_xml_string(PUSHED.format(joint=FREE, geom=BOX)))
    stepper = tarsus.Stepper(data, dt=1 / 960)
    for frame in range(30):
        data.mocap_pos[0, 0] = -0.4 + 2 / 60 * (frame + 1)
        for _ in range(16):
            assert stepper.step() == 0
            assert data.qvel[0] < 2 * 2
    assert data.qpos[0] > data.mocap_pos[0, 0] + 0.2 - 0.01 and data.qvel[0] > 0.95 * 2


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_worlds_of_a_batch_are_pushed_as_single_ones(dtype):
    """To the bit; with save and restore in the middle of a push, and a reset, after which nothing has moved."""
    model = tarsus.Model.from_xml_string(PUSHED.format(joint=FREE, geom=BOX))
    batch, one = tarsus.Batch(model, 2, dt=1 / 240, dtype=dtype), tarsus.Data(model, dtype=dtype)
    stepper = tarsus.Stepper(one, dt=1 / 240)

    def push(steps):
        for step in steps:
            batch.mocap_pos[:, 0, 0] = [-0.4, -0.4 + 4 / 240 * (step + 1)]
            assert batch.step() == 0

    push(range(24))
    for step in range(40):
        one.mocap_pos[0, 0] = -0.4 + 4 / 240 * (step + 1)
        assert stepper.step() == 0
    state = batch.save()
    push(range(24, 40))
    end = batch.qpos[1].copy()
    assert np.array_equal(end, one.qpos) and end[0] > 0.1 and batch.qpos[0, 0] == 0
    batch.restore(state)
    push(range(24, 40))
    assert np.array_equal(batch.qpos[1], end)
    batch.reset()
    batch.mocap_pos[1, 0, 0] = -0.19  # 1 cm deep at the start: no motion
    for _ in range(48):
        assert batch.step() == 0
    assert 0.008 < batch.qpos[1, 0] and batch.qvel[1, 0] < 1


@pytest.mark.parametrize("integrator, steps", [("semi_implicit_euler", 3), ("rk4", 7.5)])
@pytest.mark.parametrize("dt", [1e-3, 1 / 60])
@pytest.mark.parametrize("equality", ['<weld body1="a" body2="b"/>', '<weld body1="b" body2="a"/>', '<connect body1="b" body2="a" anchor="0 0 0"/>'])
def test_what_is_tied_lags_by_a_few_steps(equality, dt, integrator, steps):
    """constraints.md: 3 h v behind the pose of the step's end, 7.5 h v with rk4. Angles by as much, up to the sine of their half."""
    data = tarsus.Data(tarsus.Model.from_xml_string(f"""<mujoco><option gravity="0 0 0"/><worldbody><body name="a" mocap="true"/>
      <body name="b"><freejoint/><geom type="box" size=".1 .05 .02" mass="1" contype="0" conaffinity="0"/></body></worldbody>
      <equality>{equality}</equality></mujoco>"""))
    stepper = tarsus.Stepper(data, dt=dt, integrator=integrator)
    for step in range(200):
        t = dt * (step + 1)
        data.mocap_pos[0, 0], data.mocap_quat[0] = t, [np.cos(t / 2), 0, 0, np.sin(t / 2)]
        assert stepper.step() == 0
    assert t - data.qpos[0] == pytest.approx(steps * dt, rel=1e-3)
    assert np.abs(data.qpos[1:3]).max() < 1e-9
    if "weld" in equality:
        assert t - 2 * np.arctan2(data.qpos[6], data.qpos[3]) == pytest.approx(steps * dt, rel=1e-2)
