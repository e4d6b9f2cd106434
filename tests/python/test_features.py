"""Each of MJCF's features alone, in a model of one to three bodies, beside MuJoCo: ../shared/reference/defects/features.py
has the cases, this file what agreement means for each.

A case agrees if the two end alike, to the size of a step's error, and nearer to each other with a 16 times shorter step.
Contacts, limits, dry friction and equalities are harder here than MuJoCo's defaults (decisions 405, 504): such a case agrees
if ours ends where MuJoCo does when its constraints are made hard, and reading must have warned of it. What has no effect must
be named by a warning when read.
"""

import re

import mujoco
import numpy as np
import pytest
import tarsus
from oracle import DATA

SOURCE = DATA.parent / "reference/defects/features.py"
pytestmark = pytest.mark.skipif(not SOURCE.is_file(), reason="no ../shared/reference beside the repository")

FINER = 16


def cases():
    """(name, xml, q, v, seconds, ctrl, change, entries of qpos, contacts, joint_limits, loops)"""
    if not SOURCE.is_file():
        return []
    space = {}
    exec(re.split(r"^for \(name,xml", SOURCE.read_text(), flags=re.M)[0], space)
    return space["C"]


#: Features that are compared with MuJoCo's hard constraints, because they are hard here. The bound of the difference in qpos
#: [rad, m], and the reason where it is large.
HARD = {
    "joint frictionloss 1 Nm": 1e-6,
    "joint frictionloss, joint_limits off": 1e-6,
    "fixed tendon frictionloss": 1e-6,
    "equality connect, stiff default": 3e-4,
    "equality joint (2nd follows 1st)": 1e-5,
    "tendon equality": 1e-4,
    "mocap body welded to free body (mocap moved to x=.5)": 1e-5,
    "contact: sphere drop rest height, default solref": 1e-5,
    "contact: margin=.05 gap=0": 1e-5,
    "contact: margin=.05 gap=.05": 1e-5,
    "actuator adhesion": 1e-5,
    "contact: condim 1": 1e-6,
    "contact: condim 4 torsion": 1e-5,
    "contact: condim 6 rolling friction .01": 0.02,  # sliding and rolling share one ellipsoid there: 2 % of 0.65 m
}
#: MuJoCo's hard limit rebounds by an amount that depends on its step; ours does not. With a damping ratio of 30 neither rebounds.
DAMPED = {"fixed tendon range (limit)": 1e-2, "spatial tendon limit": 5e-3}
#: MuJoCo's own run ends with a warning of an unstable state: a spring that pushes away.
UNSTABLE = {'joint stiffness polynomial "5 10 0"'}
#: Features that the caller switches off, or has to switch on.
ARGUMENTS = {
    "joint frictionloss, joint_limits off": {"joint_limits": True},
    "option integrator=RK4": {"integrator": "rk4"},
}


def hard_constraints(model, ratio):
    for part in ("jnt", "geom", "eq", "tendon", "dof", "pair"):
        for ending in ("", "_lim", "_fri"):
            reference = getattr(model, f"{part}_solref{ending}", None)
            if reference is not None and reference.size:
                reference[:] = [2 * model.opt.timestep, ratio]
                getattr(model, f"{part}_solimp{ending}")[:] = [0.9999, 0.9999, 0.001, 0.5, 2]
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.impratio = 100
    model.opt.iterations, model.opt.tolerance = 200, 1e-14


def run_mujoco(case, finer=1, hard=None):
    """(start, end) of qpos, qvel."""
    name, xml, q, v, seconds, ctrl, change, *_ = case
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.timestep /= finer
    if hard:
        hard_constraints(model, hard)
    data = mujoco.MjData(model)
    for array, given in ((data.qpos, q), (data.qvel, v), (data.ctrl, ctrl)):
        if given is not None:
            array[:] = given
    if change:
        change(model, data)
    start = data.qpos.copy(), data.qvel.copy()
    for _ in range(round(seconds / model.opt.timestep)):
        mujoco.mj_step(model, data)
    return start, data.qpos.copy()


def run_ours(case, start, finer=1):
    name, xml, q, v, seconds, ctrl, change, pick, contacts, joint_limits, loops = case
    model = tarsus.Model.from_xml_string(xml)
    data = tarsus.Data(model)
    data.qpos, data.qvel = start
    if ctrl is not None:
        data.ctrl[:] = ctrl
    if change:
        change(model, data)
    dt = model.timestep / finer
    options = {"contacts": contacts, "joint_limits": joint_limits, "loops": loops} | ARGUMENTS.get(name, {})
    if options.get("integrator") == "rk4":
        options |= {"contacts": False, "joint_limits": False}
    stepper = tarsus.Stepper(data, dt=dt, **options)
    for _ in range(round(seconds / dt)):
        stepper.step()
    return model, data.qpos.copy()


def softness_warnings(model):
    return [d.message for d in model.diagnostics if d.severity == "warning" and d.other_law]


def apart(a, b):
    return float(np.abs(a - b).max())


@pytest.mark.parametrize("case", cases(), ids=lambda case: case[0])
def test_a_feature_does_what_mujocos_does(case):
    name = case[0]
    start, theirs = run_mujoco(case)
    if name in UNSTABLE:
        assert apart(theirs, 0 * theirs) == 0  # reset
        return
    try:
        model, ours = run_ours(case, start)
    except tarsus.InputError as refused:
        assert any(d.severity == "error" for d in refused.diagnostics)
        return
    finest = run_mujoco(case, FINER)[1]
    if name in HARD or name in DAMPED:
        hard = run_mujoco(case, FINER, 1 if name in HARD else 30)[1]
        assert apart(run_ours(case, start, FINER)[1], hard) < (HARD | DAMPED)[name]
        assert ["default softness" in message for message in softness_warnings(model)] == [True]
        return
    warned = [d.message for d in model.diagnostics if d.severity == "warning" and not d.other_law]
    far, near = apart(ours, theirs), apart(run_ours(case, start, FINER)[1], finest)
    assert warned or (far < 5e-3 and near < max(2e-4, 0.2 * far)), (far, near)


def test_what_is_harder_is_said_once_and_where_it_is_so():
    """One warning per file with its counts. No warning where no constraint has MuJoCo's default softness, or none can act."""
    body = '<body><freejoint/><geom size=".1" {own}/></body><geom type="plane" size="1 1 1" {own}/>'
    soft = 'solref=".05 1"'

    def found(world, rest="", option=""):
        text = f"<mujoco><option>{option}</option><worldbody>{world}</worldbody>{rest}</mujoco>"
        return softness_warnings(tarsus.Model.from_xml_string(text))

    hinge = '<body><joint name="j" range="-1 1" limited="true" frictionloss=".1" {own}/><geom size=".1" contype="0" conaffinity="0"/></body>'
    assert found(body.format(own="")) == ["constraints with MuJoCo's default softness are stiffer here than in MuJoCo: 2 geoms"]
    assert found(body.format(own='solref=".02 1" solimp=".9 .95 .001"')) == found(body.format(own=""))
    assert found(body.format(own=soft)) == []
    assert found(body.format(own=""), option='<flag contact="disable"/>') == []
    assert found('<geom size="1"/><geom size="2"/>') == []  # nothing moves
    joint = '<equality><joint joint1="j"/></equality>'
    assert found(body.format(own="") + hinge.format(own=""), joint) == ["constraints with MuJoCo's default softness are stiffer here than in MuJoCo: "
                                                "2 geoms, 1 range, 1 dry friction, 1 equality"]
    assert found(hinge.format(own='solreflimit=".1 1"')) == ["constraints with MuJoCo's default softness are stiffer here than in MuJoCo: 1 dry friction"]


@pytest.mark.parametrize("joints", ['<joint axis="0 0 1"/>', '<joint axis="0 0 1"/><joint axis="0 1 0"/>', '<joint axis="0 1 0"/><joint type="slide" axis="0 1 0"/>'])
@pytest.mark.parametrize("turn", [0.05, 0.1, 0.2, 0.4])
def test_what_slides_close_to_its_axis_gains_no_energy(joints, turn):
    """The kinetic energy at q with the new velocity is bounded by that at q - h v, the pose before the previous step, with the
    old velocity. Without the bound it can be 10,000 times as much for less than 0.2 rad a step."""
    model = tarsus.Model.from_xml_string(f'''<mujoco><option gravity="0 0 0"/><worldbody><body>{joints}<joint type="slide" axis="1 0 0"/><geom size=".03"/></body></worldbody></mujoco>''')
    data, workspace, rng, h = tarsus.Data(model), tarsus.Data(model), np.random.default_rng(0), 1 / 60
    for _ in range(400):
        q, v = 0.5 * rng.normal(size=model.nv), rng.normal(size=model.nv)
        turns = [joint.type == "hinge" for joint in model.joints]
        v[turns] *= turn / h / np.linalg.norm(v[turns])
        v[np.logical_not(turns)] *= 10
        data.qpos, data.qvel = q, v
        before = tarsus.energy(model, workspace, q - h * v, v).kinetic
        assert tarsus.Stepper(data, dt=h).step() == 0
        assert tarsus.energy(model, workspace, q, data.qvel.copy()).kinetic < 1.11 * before
