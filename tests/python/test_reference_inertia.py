"""Parameters relative to the inertia in the reference pose, against MuJoCo: dampratio, springdamper, muscles' scale."""

import mujoco
import numpy as np
import pytest
import tarsus

MODEL = """<mujoco><worldbody><body name="a"><joint name="x" axis="0 1 0" {joint}/><geom name="g" type="cylinder" fromto="0 0 0 .4 .1 0" size=".05"/>
<site name="s1" pos=".2 .1 .1"/><body pos=".4 .1 0" euler="10 20 30"><joint name="y" type="{type}" axis="0 0 1"/>
<geom type="capsule" fromto="0 0 0 .4 0 .2" size=".04"/><site name="s2" pos=".1 .1 .1"/></body></body><site name="w" pos="0 0 1"/>
<body pos="2 0 0" euler="30 20 10"><joint name="f" type="free" {free}/><geom type="capsule" fromto="0 0 0 .4 0 .2" size=".04"/></body></worldbody>
<tendon><fixed name="t" {tendon}><joint joint="x" coef=".5"/>{two}</fixed><spatial name="p" {path}><site site="w"/><site site="s1"/><site site="s2"/></spatial></tendon>
<actuator>{actuator}</actuator></mujoco>"""
TWO = '<joint joint="y" coef="-.7"/>'


def check(**parts):
    text = MODEL.format(**{"joint": "", "type": "hinge", "free": "", "tendon": "", "path": "", "actuator": "",
                           "two": TWO if parts.get("type", "hinge") == "hinge" else "", **parts})
    theirs, model = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    assert not [d for d in model.diagnostics if "stiffer" not in str(d)]
    theirs.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    d, data = mujoco.MjData(theirs), tarsus.Data(model)
    rng = np.random.default_rng(0)
    mujoco.mj_integratePos(theirs, d.qpos, 0.3 * rng.normal(size=theirs.nv), 1)
    d.qvel[:], d.ctrl[:], d.act[:] = rng.normal(size=theirs.nv), 0.4, 0.4
    mujoco.mj_forward(theirs, d)
    data.qpos, data.qvel, data.ctrl, data.act = d.qpos, d.qvel, d.ctrl, d.act
    ours = tarsus.actuation(model, data)
    for name in ("actuator_force", "qfrc_passive"):
        np.testing.assert_allclose(ours[name], getattr(d, name), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("on, kind", [
    ('joint="x" gear="2"', "hinge"), ('joint="y" gear=".3 .5 -.7"', "ball"), ('joint="y" gear="0 0 1"', "ball"),
    ('jointinparent="y" gear=".3 .5 -.7"', "ball"), ('joint="f" gear="1 .2 .3 .4 .5 .6"', "hinge"), ('jointinparent="f" gear="1 .2 .3 .4 .5 .6"', "hinge"),
    ('tendon="t" gear="-2"', "hinge"), ('tendon="p"', "ball"), ('site="s2" gear="1 2 3 .1 .2 .3"', "hinge"),
    ('site="s2" refsite="w" gear="1 2 3 .1 .2 .3"', "ball"), ('cranksite="s1" slidersite="s2" cranklength="1" gear="2"', "hinge")])
@pytest.mark.parametrize("law", ['position kp="20" dampratio=".5"', 'pid kp="20" dampratio=".5" ki="3"'])
def test_a_damping_ratio_on_every_transmission(on, kind, law):
    check(type=kind, actuator=f"<{law} {on}/>")


def test_a_damping_ratio_of_what_moves_by_rounding_alone():
    """A crank between two sites of one body has a moment arm of about 1e-18."""
    text = """<mujoco><worldbody><body pos=".1 .2 .3"><joint axis="1 2 3"/><geom size=".1" pos=".2 0 0"/><site name="a" pos="-.03 .02 -.1"/><site name="b"/></body></worldbody>
      <actuator><position kp="20" dampratio=".5" cranksite="b" slidersite="a" cranklength=".2"/></actuator></mujoco>"""
    theirs, model = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    d, data = mujoco.MjData(theirs), tarsus.Data(model)
    d.qpos[:], d.qvel[:] = 0.7, 3
    data.qpos, data.qvel = d.qpos, d.qvel
    mujoco.mj_forward(theirs, d)
    np.testing.assert_allclose(tarsus.actuation(model, data)["actuator_force"], d.actuator_force, rtol=1e-9)
    assert any("'dampratio' has no effect" in str(one) for one in model.diagnostics)


@pytest.mark.parametrize("joint", ['springdamper=".3 1"', 'springdamper=".3 1" stiffness="5" damping="3"'])
def test_a_motors_damping_adds_to_that_of_a_springdamper(joint):
    check(joint=joint, actuator='<motor joint="x" damping=".9" gear="2"/>')


def test_a_singular_tree_beside_it_does_not_matter():
    text = """<mujoco><worldbody><body><joint springdamper=".8 .9"/><geom size=".1" pos=".2 0 0"/></body>
      <body><joint springdamper=".8 .9"/><joint/><geom size=".1"/></body><body><joint type="slide" springdamper=".5 2"/><joint axis="-2.7 -3 2.6"/>
      <joint type="slide"/><geom size=".1" pos=".1 .2 0"/></body></worldbody></mujoco>"""
    theirs, model = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    assert model.joints[0].stiffness == pytest.approx(theirs.jnt_stiffness[0], rel=1e-9)
    assert model.joints[0].damping == pytest.approx(theirs.dof_damping[0], rel=1e-9)
    assert max(joint.stiffness for joint in model.joints[1:]) < 1e-9


@pytest.mark.parametrize("armature", [{"tendon": 'armature="1.5"'}, {"path": 'armature="1.5"'}, {"tendon": 'armature=".5"', "path": 'armature="1.5"'},
                                      {"actuator": '<motor tendon="t" armature=".3" gear="2"/>'}, {"actuator": '<motor joint="x" armature=".3"/>'}])
@pytest.mark.parametrize("part", [{"joint": 'springdamper=".3 1"'}, {"free": 'springdamper=".3 1"'}, {"actuator": '<position joint="x" kp="20" dampratio="1"/>'},
                                  {"actuator": '<position tendon="p" kp="20" dampratio="1"/>'},
                                  {"actuator": '<muscle joint="x" lengthrange="-1 1" scale="150"/>'}])
def test_the_armature_of_tendons_is_part_of_it(part, armature):
    check(**{**part, **armature, "actuator": part.get("actuator", "") + armature.get("actuator", "")})
