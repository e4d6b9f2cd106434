"""Sensors of the limits of ball joints, against MuJoCo and against the weight that a limit bears."""

import mujoco
import numpy as np
import pytest
import tarsus

BALL = """<mujoco><compiler angle="radian"/><worldbody><body><joint name="k" type="ball" range="0 .5" margin=".3"/><geom size=".1" pos=".4 0 0"/></body></worldbody>
<sensor><jointlimitpos joint="k"/><jointlimitvel joint="k"/><jointlimitfrc joint="k"/></sensor></mujoco>"""


@pytest.mark.parametrize("turn", [(0.1, 0, 0), (0.3, 0.1, 0), (0.2, 0.5, 0.1), (0.4, -0.3, 0.4), (0, 0, 0)])
def test_limit_sensors_of_ball_joints(turn):
    theirs, model = mujoco.MjModel.from_xml_string(BALL), tarsus.Model.from_xml_string(BALL)
    d, data = mujoco.MjData(theirs), tarsus.Data(model)
    mujoco.mj_integratePos(theirs, d.qpos, np.array(turn, dtype=float), 1)
    d.qvel[:] = 0.3, -0.2, 0.5
    mujoco.mj_forward(theirs, d)
    data.qpos, data.qvel = d.qpos, d.qvel
    np.testing.assert_allclose(tarsus.sensors(model, data)[:2], d.sensordata[:2], atol=1e-12)


def test_a_ball_joint_at_its_limit_bears_the_weight():
    model = tarsus.Model.from_xml_string(BALL)
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data, dt=0.002, joint_limits=True)
    for _ in range(4000):
        data.qvel *= 0.99
        assert stepper.step() == 0
    angle = 2 * np.arccos(abs(data.qpos[0]))
    mass = 1000 * 4 / 3 * np.pi * 0.1**3
    assert data.sensordata[2] == pytest.approx(mass * 9.81 * 0.4 * np.cos(angle), rel=1e-2)


@pytest.mark.parametrize("start", [-0.05, 0.02, 0.05])
def test_a_range_narrower_than_its_margins_reads_one_end(start):
    """Both ends push against one another. As in MuJoCo, the sensor reads the lower one, not their sum."""
    text = """<mujoco><option timestep=".001" gravity="0 0 0"/><compiler angle="radian"/><worldbody><body>
      <joint name="h" axis="0 1 0" range="-.1 .1" margin=".3" solreflimit=".02 1.001"/><geom size=".05" pos=".3 0 0" mass="1"/></body></worldbody>
      <sensor><jointlimitfrc joint="h"/></sensor></mujoco>"""
    theirs, model = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    d, data, batch = mujoco.MjData(theirs), tarsus.Data(model), tarsus.Batch(model, 4)
    d.qpos[:] = data.qpos[:] = start
    batch.qpos[:] = start
    stepper = tarsus.Stepper(data)
    for _ in range(1000):
        mujoco.mj_step(theirs, d)
        assert stepper.step() == 0
    _, felt = batch.rollout(1000, states=False, sensors=True)
    assert batch.width > 1 and d.nefc == 2
    for read in (data.sensordata[0], felt[-1, 0, 0]):
        assert read == pytest.approx(d.sensordata[0], rel=1e-5)


def test_limit_sensors_of_tendons_that_nothing_moves_read_their_distance():
    text = """<mujoco><worldbody><site name="a"/><site name="b" pos="1 0 0"/><body><joint/><geom size=".1"/></body></worldbody>
      <tendon><spatial name="t" range="0 .75"><site site="a"/><site site="b"/></spatial></tendon><sensor><tendonlimitpos tendon="t"/></sensor></mujoco>"""
    model, theirs = tarsus.Model.from_xml_string(text), mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(theirs)
    mujoco.mj_forward(theirs, d)
    assert d.sensordata[0] == 0
    assert tarsus.sensors(model, tarsus.Data(model))[0] == pytest.approx(-0.25)
