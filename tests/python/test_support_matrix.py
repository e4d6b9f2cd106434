"""Each entry of the table of MJCF in src/io/README.md by the smallest file that contains it.

computed   MuJoCo's numbers change when it is there, and ours are MuJoCo's with it (rows of forces, motion and sensors)
stored     reads without a warning; MuJoCo's own motion is the same with it and without
named      a warning at its line, and `tarsus check --strict` ends with exit status 2
refused    an error at its line

An entry of the table without a case here, and a case without an entry, are errors.
"""

import pathlib
import re
import subprocess

import mujoco
import numpy as np
import pytest
import tarsus

README = pathlib.Path(__file__).parents[2] / "src/io/README.md"
COMPUTED_ROWS = ["option", "body", "joint, freejoint", "site", "tendon", "actuator", "sensor", "keyframe"]


def table():
    """{(part, column): entries} of the table of MJCF."""
    text = README.read_text().split("## MJCF")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split(" |")] for line in text.splitlines() if line.startswith("|")]
    head, rows = rows[0], rows[2:]
    assert head[1:] == ["computed", "stored", "named", "refused"]
    out, part = {}, ""
    for first, *cells in rows:
        part = first or part
        for column, cell in zip(head[1:], cells + [""] * (4 - len(cells))):
            entries = [entry.strip() for entry in re.split(r"[,;](?![^(]*\))", cell) if entry.strip()]
            out.setdefault((part, column), []).extend(entries)
    return out


TABLE = table()

#: The slots that a case fills, each on a line of its own, so that warnings have one.
SKELETON = """<mujoco>
<compiler {compiler}/>
<option {timestep} {option}>
  <flag {flag}/>
</option>
{top}
<asset>
{asset}
</asset>
<worldbody>
{world}
<body name="a" pos="0 0 1" {body}>
  {joints}
  <geom name="g" size=".1" pos=".2 0 .05" {geom}/>
  <site name="s" pos=".1 0 .1" {site}/>
  {inside}
  <body name="b" pos=".4 0 0">
    <joint name="k" type="slide" axis="0 0 1" range="-1 1"/>
    <geom name="h" size=".05" pos=".1 0 0"/>
    <site name="t" pos="0 .1 0"/>
  </body>
</body>
<site name="w" pos="0 0 2"/>
</worldbody>
<contact>
{contact}
</contact>
<equality>
{equality}
</equality>
<tendon>
{fixed}
{tendons}
</tendon>
<actuator>
{actuators}
</actuator>
<sensor>
{sensors}
</sensor>
<keyframe>
{key}
</keyframe>
</mujoco>"""
USUAL = {"timestep": 'timestep="0.002"', "fixed": '<fixed name="f" {tendon}> <joint joint="j" coef="1"/> <joint joint="k" coef="2"/> </fixed>',
         "joints": '<joint name="j" axis="0 1 0" {joint}/>', "actuators": '<general name="u" joint="j" {actuator}/>'}


def xml(**slots):
    for _ in range(3):  # a slot may hold slots
        names = set(re.findall(r"{(\w+)}", text := SKELETON if _ == 0 else text))
        text = re.sub(r"{(\w+)}", lambda m: slots.get(m[1], USUAL.get(m[1], "")), text)
        if not names:
            break
    return text


def line_of(text, part):
    return text[: text.index(part)].count("\n") + 1


# -- computed -----------------------------------------------------------------------------------------------------------

SPATIAL = '<spatial name="p" {p}><site site="w"/>{path}<site site="t"/></spatial>'


def path(inner="", p=""):
    return {"tendons": SPATIAL.replace("{path}", inner).replace("{p}", p),
            "sensors": '<tendonpos tendon="p"/><tendonvel tendon="p"/>', "actuators": '<motor tendon="p"/>'}


def act(text):
    return {"actuators": text}


def sense(text, **more):
    return {"sensors": text, **more}


#: The quantities that are compared besides the arrays of tarsus.actuation(), or the test that covers a case elsewhere.
SHOWN = {
    ("option", "iterations (`tarsus scene`)"): "tests/sim/rigid_model_test.cpp",
    ("option", "flag contact"): "tests/python/test_features.py::test_what_is_harder_is_said_once_and_where_it_is_so",
    ("option", "flag limit"): "tests/python/test_features.py::test_a_feature_does_what_mujocos_does",
    ("option", "flag frictionloss"): "tests/python/test_features.py::test_a_feature_does_what_mujocos_does",
    ("option", "flag equality"): "tests/python/test_features.py::test_a_feature_does_what_mujocos_does",
    ("option", "flag constraint"): "tests/python/test_features.py::test_a_feature_does_what_mujocos_does",
    ("body", "mocap"): "tests/python/test_mocap.py::test_what_rides_on_a_mocap_body_is_seen_where_it_is",
    ("joint, freejoint", "range"): "tests/python/test_features.py::test_a_feature_does_what_mujocos_does",
    ("joint, freejoint", "margin"): "tests/python/test_mujoco.py::test_a_range_holds_from_its_margin_on",
    ("joint, freejoint", "frictionloss"): "tests/python/test_features.py::test_a_feature_does_what_mujocos_does",
    ("joint, freejoint", "solreflimit and solimplimit (short steps, decision 504)"):
        "tests/python/test_contact_rules.py",
    ("site", "size and type (zones of touch)"): "tests/python/test_actuation.py::test_sensors_of_contact_at_rest",
    ("tendon", "range"): "tests/python/test_actuation.py::test_sensors_of_scenes_at_rest",
    ("tendon", "margin"): "tests/sim/servo_test.cpp",
    ("tendon", "armature"): "tests/python/test_features.py::test_a_feature_does_what_mujocos_does",
    ("tendon", "frictionloss"): "tests/python/test_features.py::test_a_feature_does_what_mujocos_does",
    ("actuator", "or as MuJoCo saves a dcmotor or pid"): "tests/python/test_actuation.py::test_motors_are_mujocos",
    ("actuator", "adhesion"): "tests/python/test_actuation.py::test_adhesion_holds_what_it_can",
    ("actuator", "body"): "tests/python/test_actuation.py::test_adhesion_holds_what_it_can",
    ("sensor", "touch"): "tests/python/test_actuation.py::test_sensors_of_scenes_at_rest",
    ("sensor", "contact"): "tests/python/test_actuation.py::test_sensors_of_scenes_at_rest",
    ("sensor", "jointlimitfrc"): "tests/python/test_actuation.py::test_sensors_of_scenes_at_rest",
    ("sensor", "tendonlimitfrc"): "tests/python/test_actuation.py::test_sensors_of_scenes_at_rest",
}
POST = {"inside": '<geom name="post" type="{shape}" size=".15 .3" pos=".2 0 .4" {turn}/> <site name="side" pos=".2 0 .1"/>'}


def post(shape, turn=""):
    return {"inside": POST["inside"].replace("{shape}", shape).replace("{turn}", turn)}


BALL = {"joints": '<joint name="j" type="ball"/>', "fixed": "", "actuators": ""}
LOOK = '<framepos objtype="site" objname="s"/> <framequat objtype="site" objname="s"/>'
COMPUTED = {
    ("option", "timestep"): {"timestep": 'timestep="0.01"', "actuators": '<general joint="j" dyntype="filter" dynprm=".1" actearly="true"/>'},
    ("option", "gravity"): {"option": 'gravity="1 2 3"'},
    ("option", "density"): {"option": 'density="1000"'},
    ("option", "viscosity"): {"option": 'viscosity="1"'},
    ("option", "wind"): ({"option": 'density="1000"'}, {"option": 'density="1000" wind="1 2 3"'}),
    ("option", "magnetic"): ({"sensors": '<magnetometer site="s"/>'}, {"sensors": '<magnetometer site="s"/>', "option": 'magnetic="1 2 3"'}),
    ("option", "flag gravity"): {"flag": 'gravity="disable"'},
    ("option", "flag actuation"): {"flag": 'actuation="disable"'},
    ("option", "flag spring"): ({"joint": 'stiffness="3"'}, {"joint": 'stiffness="3"', "flag": 'spring="disable"'}),
    ("option", "flag damper"): ({"joint": 'damping="3"'}, {"joint": 'damping="3"', "flag": 'damper="disable"'}),
    ("option", "flag clampctrl"): ({"actuator": 'ctrlrange="-.1 .1"'}, {"actuator": 'ctrlrange="-.1 .1"', "flag": 'clampctrl="disable"'}),
    ("body", "pos"): {"world": '<body pos="1 2 3"><joint/><geom size=".1" pos=".1 0 0"/></body>'},
    ("body", "all five orientations"): [{"body": text} for text in (
        'quat="1 .2 .3 .4"', 'axisangle="1 2 3 40"', 'euler="10 20 30"', 'xyaxes="1 1 0 0 0 1"', 'zaxis="1 2 3"')],
    ("body", "gravcomp"): {"body": 'gravcomp=".7"'},
    ("joint, freejoint", "free"): {"world": '<body><freejoint/><geom size=".1" pos="0 .1 0"/></body>'},
    ("joint, freejoint", "ball"): {"world": '<body><joint type="ball"/><geom size=".1" pos="0 .1 0"/></body>'},
    ("joint, freejoint", "slide"): {"joint": 'type="slide"'},
    ("joint, freejoint", "hinge"): ({"joint": 'type="slide"'}, {"joint": 'type="hinge"'}),
    ("joint, freejoint", "pos"): {"joint": 'pos=".1 .2 .3"'},
    ("joint, freejoint", "axis"): {"joints": '<joint name="j" axis="1 2 3"/>'},
    ("joint, freejoint", "ref"): sense('<jointpos joint="j"/>', joint='ref="20"'),
    ("joint, freejoint", "stiffness and damping with their polynomials"): [
        {"joint": 'stiffness="3"'}, {"joint": 'damping="3"'}, {"joint": 'stiffness="3 4 5"'}, {"joint": 'damping="3 4 5"'}],
    ("joint, freejoint", "springref"): ({"joint": 'stiffness="3"'}, {"joint": 'stiffness="3" springref="30"'}),
    ("joint, freejoint", "springdamper"): {"joint": 'springdamper=".1 1"'},
    ("joint, freejoint", "armature"): {"joint": 'armature=".3"'},
    ("joint, freejoint", "actuatorfrcrange"): {"joint": 'actuatorfrcrange="-.1 .1"'},
    ("joint, freejoint", "actuatorgravcomp"): ({"body": 'gravcomp=".7"'}, {"body": 'gravcomp=".7"', "joint": 'actuatorgravcomp="true"'}),
    ("site", "pos"): (sense(LOOK.replace('"s"', '"t"')), sense(LOOK)),
    ("site", "all five orientations"): [(sense(LOOK), sense(LOOK, site=text)) for text in (
        'quat="1 .2 .3 .4"', 'axisangle="1 2 3 40"', 'euler="10 20 30"', 'xyaxes="1 1 0 0 0 1"', 'zaxis="1 2 3"')],
    ("site", "fromto"): ({"inside": '<site name="x" type="capsule" size=".1"/>', **sense(LOOK.replace('"s"', '"x"'))},
                         {"inside": '<site name="x" type="capsule" size=".1" fromto="0 .1 0 .2 .3 .4"/>', **sense(LOOK.replace('"s"', '"x"'))}),
    ("tendon", "fixed"): act('<motor tendon="f"/>'),
    ("tendon", "spatial with sites"): path(),
    ("tendon", "pulleys"): (path('<site site="s"/>'), path('<site site="s"/><pulley divisor="2"/><site site="s"/>')),
    ("tendon", "spheres"): ({**post("sphere"), **path()}, {**post("sphere"), **path('<geom geom="post"/>')}),
    ("tendon", "cylinders and side sites"): ({**post("cylinder", 'zaxis="0 1 0"'), **path('<geom geom="post"/>')},
                                             {**post("cylinder", 'zaxis="0 1 0"'), **path('<geom geom="post" sidesite="side"/>')}),
    ("tendon", "stiffness and damping with their polynomials"): [
        {"tendon": 'stiffness="3" springlength=".1"'}, {"tendon": 'damping="3"'}, {"tendon": 'stiffness="3 4 5" springlength=".1"'},
        {"tendon": 'damping="3 4 5"'}],
    ("tendon", "springlength"): ({"tendon": 'stiffness="3"'}, {"tendon": 'stiffness="3" springlength=".1 .2"'}),
    ("tendon", "actuatorfrcrange"): (act('<motor tendon="f"/>'), {**act('<motor tendon="f"/>'), "tendon": 'actuatorfrcrange="-.1 .1"'}),
    ("actuator", "motor"): act('<motor joint="j" gear="2"/>'),
    ("actuator", "position (kv, dampratio, inheritrange, timeconst)"): [act(f'<position joint="k" kp="9" {text}/>') for text in (
        'kv="2"', 'dampratio=".5"', 'inheritrange=".1"', 'timeconst=".1"')],
    ("actuator", "velocity"): act('<velocity joint="j" kv="2"/>'),
    ("actuator", "damper"): act('<damper joint="j" kv="2" ctrlrange="0 1"/>'),
    ("actuator", "intvelocity"): act('<intvelocity joint="j" kp="3" actrange="-1 1"/>'),
    ("actuator", "cylinder"): act('<cylinder joint="j" timeconst=".1" diameter="2" bias="1 2 3"/>'),
    ("actuator", "muscle"): act('<muscle joint="k" lengthrange="-1 1" force="9"/>'),
    ("actuator", "dcmotor"): act('<dcmotor joint="j" motorconst="2" resistance=".5" inductance=".1" input="pos vel" controller="3 0 1"/>'),
    ("actuator", "pid"): act('<pid joint="j" kp="3" kv="2" ki="1"/>'),
    ("actuator", "general with fixed"): {"actuator": 'gainprm="3"'},
    ("actuator", "affine or muscle gain and bias and integrator"): [
        {"actuator": 'gaintype="affine" gainprm="1 2 3"'}, {"actuator": 'biastype="affine" biasprm="1 2 3"'},
        {"actuator": 'gaintype="muscle" lengthrange="-1 1" gainprm=".75 1.05 9 200 .5 1.6 1.5 1.3 1.2"'},
        {"actuator": 'biastype="muscle" lengthrange="-1 .1" biasprm=".75 1.05 9 200 .5 1.6 1.5 1.3 1.2"'},
        {"actuator": 'dyntype="integrator"'}],
    ("actuator", "filter"): {"actuator": 'dyntype="filter" dynprm=".1"'},
    ("actuator", "filterexact or muscle dynamics"): [{"actuator": 'dyntype="filterexact" dynprm=".1"'},
                                                    {"actuator": 'dyntype="muscle" dynprm=".01 .04 .1"'}],
    ("actuator", "on joint"): act('<motor joint="k"/>'),
    ("actuator", "jointinparent"): ({**BALL, **act('<motor joint="j" gear="1 2 3"/>')}, {**BALL, **act('<motor jointinparent="j" gear="1 2 3"/>')}),
    ("actuator", "tendon"): act('<motor tendon="f"/>'),
    ("actuator", "site"): act('<motor site="t" gear="1 2 3 4 5 6"/>'),
    ("actuator", "refsite"): (act('<motor site="t" gear="1 2 3 4 5 6"/>'), act('<motor site="t" refsite="s" gear="1 2 3 4 5 6"/>')),
    ("actuator", "cranksite"): act('<motor cranksite="t" slidersite="s" cranklength=".5"/>'),
    ("actuator", "ctrlrange"): {"actuator": 'ctrlrange="-.1 .1"'},
    ("actuator", "forcerange"): {"actuator": 'forcerange="-.1 .1"'},
    ("actuator", "actrange"): ({"actuator": 'dyntype="integrator" actearly="true"'},
                               {"actuator": 'dyntype="integrator" actearly="true" actlimited="true" actrange="0 .1"'}),
    ("actuator", "actearly"): ({"actuator": 'dyntype="integrator"'}, {"actuator": 'dyntype="integrator" actearly="true"'}),
    ("actuator", "gear"): {"actuator": 'gear="3"'},
    ("actuator", "armature"): {"actuator": 'armature="3"'},
    ("actuator", "damping"): {"actuator": 'damping="3"'},
    ("sensor", "cutoff"): (sense('<framepos objtype="site" objname="t"/>'), sense('<framepos objtype="site" objname="t" cutoff=".1"/>')),
    ("sensor", "insidesite"): sense('<insidesite site="s" objtype="body" objname="a"/>', site='size="9"'),
    ("sensor", "distance"): sense('<distance geom1="g" geom2="h" cutoff="9"/>'),
    ("sensor", "normal"): sense('<normal geom1="g" geom2="h" cutoff="9"/>'),
    ("sensor", "fromto"): sense('<fromto geom1="g" geom2="h" cutoff="9"/>'),
    ("sensor", "rangefinder"): sense('<rangefinder site="s"/>', site='zaxis="1 0 -.3"'),
    ("sensor", "clock"): sense("<clock/>"),
    ("sensor", "ballquat"): sense('<ballquat joint="j"/>', **BALL),
    ("sensor", "ballangvel"): sense('<ballangvel joint="j"/>', **BALL),
    ("sensor", "jointlimitpos"): sense('<jointlimitpos joint="k"/>'),
    ("sensor", "jointlimitvel"): sense('<jointlimitvel joint="k"/>'),
    ("sensor", "tendonlimitpos"): sense('<tendonlimitpos tendon="f"/>', tendon='range="1 2"'),
    ("sensor", "tendonlimitvel"): sense('<tendonlimitvel tendon="f"/>', tendon='range="1 2"'),
    ("keyframe", "time"): {"key": '<key time="3"/>'},
    ("keyframe", "qpos"): {"key": '<key qpos=".3 .4"/>'},
    ("keyframe", "qvel"): {"key": '<key qvel=".3 .4"/>'},
    ("keyframe", "act"): {"actuator": 'dyntype="integrator"', "key": '<key act=".3"/>'},
    ("keyframe", "ctrl"): {"key": '<key ctrl=".3"/>'},
    ("keyframe", "mpos"): {"world": '<body mocap="true"/>', "key": '<key mpos="1 2 3"/>'},
    ("keyframe", "mquat (to unit length)"): {"world": '<body mocap="true"/>', "key": '<key mquat="1 2 3 4"/>'},
}
OF_SITE = ["accelerometer", "velocimeter", "gyro", "force", "torque", "magnetometer"]
for kind in TABLE["sensor", "computed"]:
    target = ("site" if kind in OF_SITE else "joint" if kind.startswith("joint") else "tendon" if kind.startswith("tendon") else
              "actuator" if kind.startswith("actuator") else "body" if kind.startswith("subtree") else None)
    name = {"site": "t", "joint": "k", "tendon": "f", "actuator": "u", "body": "b"}.get(target)
    text = f'<{kind} {target}="{name}"/>' if target else f'<{kind} objtype="site" objname="t"/>' if kind.startswith("frame") else f"<{kind}/>"
    COMPUTED.setdefault(("sensor", kind), sense(text))


def theirs_of(text, seed):
    """MuJoCo's (state, results) at a random state without constraints."""
    model = mujoco.MjModel.from_xml_string(text)
    if "limit" not in text:  # sensors of ranges need its constraints
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    d, rng = mujoco.MjData(model), np.random.default_rng(seed)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, d, 0)
        out = {name: getattr(d, name).copy() for name in ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")} | {"time": [d.time]}
        return d, out
    mujoco.mj_integratePos(model, d.qpos, 0.3 * rng.normal(size=model.nv), 1)
    d.qvel[:], d.ctrl[:], d.act[:] = rng.normal(size=model.nv), rng.normal(size=model.nu), rng.uniform(size=model.na)
    d.time = 2.5
    mujoco.mj_forward(model, d)
    mass = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, d, mass)
    out = {name: getattr(d, name).copy() for name in (
        "ten_length", "ten_velocity", "actuator_length", "actuator_velocity", "actuator_force", "act_dot", "qfrc_actuator", "qfrc_passive")}
    out |= {"mass": mass, "bias": d.qfrc_bias.copy(), "qacc": d.qacc.copy(), "sensordata": d.sensordata.copy(), "xpos": d.xpos.copy()}
    return d, out


def ours_of(text, model, d):
    data = tarsus.Data(model)
    if "<key " in text:
        data.reset(0)
        return {name: np.array(getattr(data, name)) for name in ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")} | {"time": [data.time]}
    data.qpos, data.qvel, data.qacc, data.ctrl, data.act, data.time = d.qpos, d.qvel, d.qacc, d.ctrl, d.act, d.time
    now = tarsus.actuation(model, data)
    out = {name: now[name] for name in ("ten_length", "ten_velocity", "actuator_length", "actuator_velocity", "actuator_force", "act_dot",
                                        "qfrc_actuator", "qfrc_passive")}
    tarsus.kinematics(model, data, data.qpos)
    out["xpos"] = np.array([tarsus.body_pose(model, data, b)[1] for b in range(model.nbody)])
    out["mass"] = tarsus.crba(model, data, data.qpos)
    out["bias"] = tarsus.bias_force(model, data, data.qpos, data.qvel)
    out["sensordata"] = tarsus.sensors(model, data)
    return out


def variants(given):
    """[(without, with)] of a case."""
    cases = given if isinstance(given, list) else [given]
    return [case if isinstance(case, tuple) else ({}, case) for case in cases]


def normal(name, values):
    values = np.asarray(values, float)
    if name == "mocap_quat":
        values = values.reshape(-1, 4) / np.linalg.norm(values.reshape(-1, 4), axis=1)[:, None]
    return values


@pytest.mark.parametrize("entry", [pytest.param((row, entry), id=f"{row}: {entry}") for row in COMPUTED_ROWS for entry in TABLE[row, "computed"]])
def test_what_is_computed_is_mujocos(entry):
    if entry in SHOWN:
        path, _, name = SHOWN[entry].partition("::")
        source = README.parents[2] / path
        assert source.is_file() and (not name or f"def {name}(" in source.read_text())
        return
    for without, given in variants(COMPUTED[entry]):
        text, changes = xml(**given), False
        model = tarsus.Model.from_xml_string(text)
        assert not [d for d in model.diagnostics if d.severity == "warning" and not d.other_law]
        for seed in range(3):
            d, expected = theirs_of(text, seed)
            seen = ours_of(text, model, d)
            _, plain = theirs_of(xml(**without), seed)
            changes = changes or any(
                name not in plain or np.shape(plain[name]) != np.shape(expected[name]) or
                np.abs(np.asarray(plain[name]) - expected[name]).max(initial=0) > 1e-6 for name in expected)
            for name in seen:
                size = max(1.0, np.abs(expected[name]).max(initial=0))
                assert np.allclose(normal(name, seen[name]), normal(name, expected[name]), rtol=0, atol=1e-9 * size), (name, seen[name], expected[name])
        assert changes, "it changes nothing"


# -- stored -------------------------------------------------------------------------------------------------------------

def line(text):
    return {"tendons": f'<spatial {text}><site site="w"/><site site="t"/></spatial>'}


STORED = {
    "option": {"integrator": 'integrator="implicit"', "solver": 'solver="CG"', "cone": 'cone="elliptic"', "tolerance": 'tolerance="1e-9"',
               "impratio": 'impratio="2"', "ls_iterations (a note says once which are not used)": 'ls_iterations="7"'},
    "size, statistic, visual, custom": {"all": {"top": '<size memory="1M"/><statistic extent="3"/><visual><global fovy="30"/></visual>'
                                                      '<custom><numeric name="n" data="1"/></custom>'}},
    "body": {"user": {"body": 'user="1 2"'}},
    "joint, freejoint": {"group": {"joint": 'group="2"'}, "user": {"joint": 'user="1"'}},
    "geom": {"rgba": {"geom": 'rgba="1 0 0 1"'}, "material": {"asset": '<material name="m"/>', "geom": 'material="m"'},
             "group": {"geom": 'group="2"'}, "user": {"geom": 'user="1"'}},
    "site": {"rgba": {"site": 'rgba="1 0 0 1"'}, "material": {"asset": '<material name="m"/>', "site": 'material="m"'},
             "group": {"site": 'group="2"'}, "user": {"site": 'user="1"'}},
    "camera, light": {"all": {"inside": '<camera name="c" pos="1 0 0"/>'}, "placed in the body's frame": {"inside": '<light pos="1 0 0"/>'}},
    "texture, material": {"all": {"asset": '<texture name="x" type="2d" builtin="flat" width="4" height="4"/><material name="m" texture="x"/>'}},
    "tendon": {"width": line('width=".1"'), "rgba": line('rgba="1 0 0 1"'), "group": {"tendon": 'group="1"'},
               "material": {"asset": '<material name="m"/>', **line('material="m"')}, "user": {"tendon": 'user="1"'}},
    "actuator": {"group": {"actuator": 'group="1"'}, "user": {"actuator": 'user="1"'}},
    "sensor": {"noise": {"sensors": '<jointpos joint="j" noise=".1"/>'}, "user": {"sensors": '<jointpos joint="j" user="1"/>'}},
}


def motion(text):
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.ctrl[:] = 0.3
    for _ in range(100):
        mujoco.mj_step(model, data)
    return data.qpos.copy()


@pytest.mark.parametrize("row, entry", [(row, entry) for (row, column), all in TABLE.items() if column == "stored" for entry in all])
def test_what_is_stored_moves_nothing(row, entry):
    case = STORED[row][entry]
    text = xml(**({"option": case} if isinstance(case, str) else case))
    model = tarsus.Model.from_xml_string(text)
    assert not [d for d in model.diagnostics if d.severity == "warning" and not d.other_law]
    if row == "option":  # choices of MuJoCo's solvers
        assert [d for d in model.diagnostics if d.severity == "note" and case.split("=")[0] in d.message and d.line == line_of(text, case)]
    else:
        assert np.array_equal(motion(text), motion(xml()))


# -- named --------------------------------------------------------------------------------------------------------------

TETRAHEDRON = 'vertex="0 0 0  1 0 0  0 1 0  0 0 1"'
#: (the slots, a part of the line that the warning must name).
NAMED = {
    "compiler": {"alignfree": ({"compiler": 'alignfree="true"'}, "alignfree"),
                 "settotalmass beside fusestatic": ({"compiler": 'settotalmass="3" fusestatic="true"', "world": '<body name="post"><geom size=".1"/></body>'}, "post"),
                 'lengthrange useexisting="false"': ({"top": '<compiler>\n<lengthrange useexisting="false"/></compiler>'}, "<lengthrange")},
    "option": {**{name: ({"option": f'{name}="{value}"'}, name) for name, value in (
                   ("o_margin", ".1"), ("o_solref", ".1 1"), ("o_solimp", ".9 .9 .1"), ("o_friction", "1 1 1 1 1"), ("actuatorgroupdisable", "1"))},
               "flags passive": ({"flag": 'passive="disable"'}, "passive"), "filterparent": ({"flag": 'filterparent="disable"'}, "filterparent"),
               "sensor off": ({"flag": 'sensor="disable"'}, "sensor="), "flags override": ({"flag": 'override="enable"'}, "override"),
               "fwdinv": ({"flag": 'fwdinv="enable"'}, "fwdinv"), "invdiscrete": ({"flag": 'invdiscrete="enable"'}, "invdiscrete"),
               "sleep on": ({"flag": 'sleep="enable"'}, "sleep")},
    "include": {"outside of the model's folder": None},
    "body": {"joints below a mocap body (what hangs on them stays when it moves)":
                 ({"world": '<body mocap="true"><body>\n<joint name="x"/><geom size=".1"/></body></body>'}, '<joint name="x"'),
             "plugin": ({"inside": '<plugin plugin="mujoco.elasticity.cable"/>'}, "<plugin"),
             "flexcomp (left out whole)": ({"inside": '<flexcomp type="grid" count="2 2 2" spacing="1 1 1" dim="3" name="x"/>'}, "<flexcomp")},
    "attach, model": {"its options": None},
    "inertial": {"moments that differ by more than 10⁸": ({"world": '<body><joint/>\n<inertial pos="0 0 0" mass="1" diaginertia="1e-9 1 1"/></body>'}, "<inertial")},
    "joint, freejoint": {"springyield": ({"joint": 'springyield="1"'}, "springyield"),
                         "align": ({"world": '<body>\n<freejoint align="true"/><geom size=".1"/></body>'}, "<freejoint"),
                         "polynomials of free joints' and balls' stiffness": ({"world": '<body>\n<joint type="ball" stiffness="1 2"/><geom size=".1"/></body>'}, "<joint"),
                         "solreffriction and solimpfriction of dry friction": ({"joint": 'frictionloss=".1" solreffriction=".1 1"'}, "solreffriction")},
    "geom": {"adhesion": ({"geom": 'adhesion="1"'}, "adhesion"), "surfacevel": ({"geom": 'surfacevel="1 0 0"'}, "surfacevel"),
             "plugin": ({"inside": '<geom name="p" size=".1">\n<plugin plugin="x"/></geom>'}, '<geom name="p"'),
             "planes without a third size": ({"world": '<geom type="plane"/>'}, '<geom type="plane"'),
             "a plane on a moving body against planes and height fields (it falls through)":
                 ({"world": '<geom type="plane" size="1 1 1"/>', "inside": '<geom type="plane" size="2 2 1"/>'}, 'type="plane" size="2 2 1"')},
    "site": {"mesh": ({"asset": f'<mesh name="m" {TETRAHEDRON}/>', "site": 'type="mesh" mesh="m"'}, 'mesh="m"')},
    "mesh": {"maxhullvert": ({"asset": f'<mesh name="m" {TETRAHEDRON} maxhullvert="8"/>'}, "maxhullvert"),
             "texcoord": ({"asset": f'<mesh name="m" {TETRAHEDRON} texcoord="0 0 0 1 1 0 1 1"/>'}, "texcoord"),
             "normal": ({"asset": f'<mesh name="m" {TETRAHEDRON} normal="1 0 0 1 0 0 1 0 0 1 0 0"/>'}, "normal"),
             "material": ({"asset": f'<material name="x"/>\n<mesh name="m" {TETRAHEDRON} material="x"/>'}, "<mesh"),
             "builtin and plugin meshes": ({"asset": '<mesh name="m" builtin="sphere" params="1"/>'}, "builtin"),
             "left without a surface": ({"asset": '<mesh name="m"><plugin plugin="x"/></mesh>'}, "<mesh"),
             "missing file when `lenient` and no inertia needs it": ({"asset": '<mesh name="m" file="no.obj"/>'}, "no.obj")},
    "hfield": {"missing file when `lenient`": ({"asset": '<hfield name="m" file="no.png" size="1 1 1 1"/>'}, "no.png"),
               "what lies below a field on a moving body (it falls through)":
                   ({"asset": '<hfield name="m" nrow="2" ncol="2" size="1 1 1 1"/>', "inside": '<geom type="hfield" hfield="m"/>'}, 'type="hfield"')},
    "skin, extension, plugin": {"all": ({"top": '<extension>\n<plugin plugin="mujoco.pid"/>\n</extension>'}, "<plugin")},
    "deformable": {"skin": ({"top": '<deformable>\n<skin file="x.skn"/>\n</deformable>'}, "<skin"),
                   "flex": ({"top": '<deformable>\n<flex name="x" dim="1" body="a b" vertex="0 0 0 1 0 0" element="0 1"/>\n</deformable>'}, "<flex")},
    "contact": {"solreffriction": ({"contact": '<pair geom1="g" geom2="h" solreffriction=".1 1"/>'}, "<pair"),
                "adhesion": ({"contact": '<pair geom1="g" geom2="h" adhesion="1"/>'}, "<pair"),
                "friction that depends on the direction with condim 6 (the larger is taken)":
                    ({"contact": '<pair geom1="g" geom2="h" condim="6" friction="1 .5"/>'}, "<pair"),
                "a second pair of two geoms (left out; MuJoCo 4 adds the contacts of both)":
                    ({"contact": '<pair geom1="g" geom2="h"/>\n<pair geom1="h" geom2="g" name="again"/>'}, 'name="again"')},
    "equality": {"what an earlier one says": ({"equality": '<joint joint1="j" joint2="k"/>\n<joint joint1="j" joint2="k" name="again"/>'}, '<joint joint1="j" joint2="k" name'),
                 "solref and solimp of their own": ({"equality": '<joint joint1="j" joint2="k" solref=".1 1"/>'}, "<joint joint1"),
                 **{name: ({"equality": f'<{name} flex="x"/>'}, f"<{name}") for name in ("flex", "flexvert", "flexstrain")}},
    "tendon": {"springyield": ({"tendon": 'springyield="1"'}, "springyield"),
               **{name: ({"tendon": f'{name}="{".1 1" if "ref" in name else ".9 .9 .1"}"'}, name)
                  for name in ("solreflimit", "solimplimit", "solreffriction", "solimpfriction")}},
    "actuator": {"orientation": ({**BALL, "actuators": '<orientation joint="j"/>'}, "<orientation"),
                 "plugin": ({"actuators": '<plugin joint="j" plugin="mujoco.pid"/>'}, '<plugin joint'),
                 "user laws": ({"actuator": 'gaintype="user"'}, 'gaintype="user"'),
                 "muscles without lengthrange (a step under such actuators is refused)": ({"actuators": '<muscle joint="k"/>'}, "<muscle"),
                 "delay": ({"actuator": 'delay=".1" nsample="60"'}, "delay")},
    "sensor": {"camprojection": ({"world": '<camera name="c"/>', "sensors": '<camprojection site="s" camera="c"/>'}, "<camprojection"),
               "tactile": ({"asset": f'<mesh name="m" {TETRAHEDRON}/>', "sensors": '<tactile geom="g" mesh="m"/>'}, "<tactile"),
               "user kinds": ({"sensors": '<user dim="1"/>'}, "<user"), "plugin": ({"sensors": '<plugin plugin="x" objtype="body" objname="a"/>'}, '<plugin plugin="x"'),
               "cameras as objects (all read nan)": ({"world": '<camera name="c"/>', "sensors": '<framepos objtype="camera" objname="c"/>'}, "<framepos"),
               "rays of cameras": ({"world": '<camera name="c"/>', "sensors": '<rangefinder camera="c"/>'}, "<rangefinder"),
               "normals of rays": ({"sensors": '<rangefinder site="s" data="dist normal"/>'}, "<rangefinder"),
               "enclosed": ({"sensors": '<insidesite site="s" objtype="geom" objname="g" enclosed="true"/>'}, "<insidesite"),
               "rangefinder beside height fields": ({"asset": '<hfield name="m" nrow="2" ncol="2" size="1 1 1 1"/>', "world": '<geom type="hfield" hfield="m"/>',
                                                     "sensors": '<rangefinder site="s"/>'}, "<rangefinder"),
               "delay": ({"sensors": '<jointpos joint="j" delay=".1" nsample="60"/>'}, "delay"), "interval": ({"sensors": '<jointpos joint="j" interval=".1 0"/>'}, "interval")},
    "keyframe": {"short lists (the rest as drawn; of a mocap body all numbers or none)": ({"key": '<key qpos="1"/>'}, "<key "),
                 "quaternions of no length (no rotation)": ({"world": '<body mocap="true"/>', "key": '<key mquat="0 0 0 0"/>'}, "<key ")},
}
ACTS_NOT = ["orientation", "plugin", "user laws", "muscles without lengthrange (a step under such actuators is refused)"]


@pytest.mark.parametrize("row, entry", [(row, entry) for (row, column), all in TABLE.items() if column == "named" for entry in all])
def test_what_is_named_warns_at_its_line(row, entry, tmp_path):
    file = tmp_path / "folder/model.xml"
    file.parent.mkdir()
    if NAMED[row][entry]:
        slots, part = NAMED[row][entry]
        text = xml(**slots)
    elif row == "include":
        (tmp_path / "more.xml").write_text("<mujoco/>")
        text, part = xml(top='<include file="../more.xml"/>'), "<include"
    else:
        (file.parent / "more.xml").write_text('<mujoco><option timestep=".1"/><worldbody><body name="c"><geom size="1"/></body></worldbody></mujoco>')
        text, part = xml(asset='<model name="m" file="more.xml"/>', inside='<attach model="m" body="c" prefix="x"/>'), "<attach"
    file.write_text(text)
    model = tarsus.Model.load(file, lenient=True)
    named = [d for d in model.diagnostics if d.severity == "warning" and not d.other_law]
    assert named and (row == "attach, model" or line_of(text, part) in [d.line for d in named]), [(d.line, d.message) for d in named]
    program = pathlib.Path(tarsus.__file__).parent / "bin/tarsus"
    assert subprocess.run([program, "check", file, "--lenient", "--strict"], capture_output=True).returncode == 2
    if row == "actuator" and entry in ACTS_NOT:
        with pytest.raises(tarsus.InputError, match="is not computed"):
            tarsus.Stepper(tarsus.Data(model), dt=0.01).step()


# -- refused ------------------------------------------------------------------------------------------------------------

REFUSED = {
    "compiler": {'coordinate="global"': {"compiler": 'coordinate="global"'}},
    "option": {"timestep ≤ 0": {"timestep": 'timestep="0"'}, "iterations < 1": {"option": 'iterations="0"'}},
    "size, statistic, visual, custom": {"counts over 100": {"top": '<size nuser_body="100001"/>'}, "000": {"top": '<size nuser_body="100001"/>'}},
    "include": {"absolute": {"top": '<include file="/etc/passwd"/>'}, "twice": None, "cycles": None, "more than 1": None, "000": None},
    "default": {"unknown class": {"geom": 'class="no"'}, "another name of the top class": {"top": '<default class="x"/>'},
                "name or class inside": [{"top": '<default><geom name="x"/></default>'}, {"top": '<default><geom class="main"/></default>'}],
                "what classes do not have (lengthrange or file)": [{"top": '<default><motor lengthrange="0 1"/></default>'}, {"top": '<default><texture file="a.png"/></default>'}]},
    "body": {"composite (as in MuJoCo 4)": {"inside": '<composite type="cable" count="3 1 1"/>'}},
    "frame, replicate": {"more than 500": None, "000 elements": None},
    "attach, model": {"more than 20 levels": None, "a model that cannot be read": {"asset": '<model name="m" file="none.xml"/>'}},
    "inertial": {"not positive": {"world": '<body><joint/><inertial pos="0 0 0" mass="0" diaginertia="1 1 1"/></body>'},
                 "triangle inequality violated (mended with balanceinertia or `fix_balance`)":
                     {"world": '<body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body>'}},
    "joint, freejoint": {"anything not positive that should be": {"joint": 'armature="-1"'}, "free below the top": {"inside": '<body><freejoint/><geom size="1"/></body>'},
                         "ball beside hinge": {"joints": '<joint name="j"/><joint type="ball"/>'},
                         "more than 6 freedoms": {"joints": "".join(f'<joint name="{n}"/>' for n in "jlmnopq")}},
    "geom": {"sdf": {"geom": 'type="sdf"'}, "pos beside fromto": {"world": '<geom type="box" size=".1" fromto="0 0 0 1 0 0" pos="1 0 0"/>'}, "unknown material": {"geom": 'material="no"'}},
    "site": {"pos beside fromto": {"world": '<site type="box" size=".1" fromto="0 0 0 1 0 0" pos="1 0 0"/>'},
             "type plane or hfield": [{"world": '<site type="plane" size="1 1 1"/>'}, {"world": '<site type="hfield"/>'}],
             "unknown material": {"site": 'material="no"'},
             "unknown mesh or mesh of another type": [{"site": 'type="mesh" mesh="no"'}, {"asset": f'<mesh name="m" {TETRAHEDRON}/>', "site": 'mesh="m"'}]},
    "camera, light": {"unknown target or texture": [{"world": '<camera target="no"/>'}, {"world": '<light texture="no"/>'}]},
    "texture, material": {"unknown texture": {"asset": '<material name="m" texture="no"/>'}},
    "mesh": {"missing file": {"asset": '<mesh name="m" file="no.obj"/>'}, "index out of range": {"asset": f'<mesh name="m" {TETRAHEDRON} face="0 1 9"/>'}},
    "hfield": {"sizes not positive": {"asset": '<hfield name="m" nrow="2" ncol="2" size="0 1 1 1"/>'},
               "a file whose size does not fit": None, "numbers not finite": {"asset": '<hfield name="m" nrow="2" ncol="2" size="1 1 1 1" elevation="1 nan 0 0"/>'}},
    "contact": {"unknown names": {"contact": '<pair geom1="no" geom2="h"/>'}},
    "equality": {"a body with itself": {"equality": '<weld body1="a" body2="a"/>'}},
    "tendon": {"unknown joints": {"tendons": '<fixed><joint joint="no" coef="1"/></fixed>'},
               "sites and geoms": {"tendons": '<spatial><site site="no"/><site site="t"/></spatial>'},
               "actuatorfrcrange without 0": {"tendon": 'actuatorfrcrange="1 2"'}},
    "actuator": {"unknown targets": {"actuators": '<motor joint="no"/>'}},
    "sensor": {"unknown elements and attributes": [{"sensors": '<smell site="s"/>'}, {"sensors": '<jointpos joint="j" smell="1"/>'}]},
    "keyframe": {"lists that are too long": {"key": '<key qpos="1 2 3"/>'}},
}


def files_that_are_refused(row, entry, folder):
    """The text of the cases that need files or are large."""
    if entry == "twice":
        (folder / "m.xml").write_text("<mujoco/>")
        return xml(top='<include file="m.xml"/><include file="m.xml"/>')
    if entry == "cycles":
        (folder / "m.xml").write_text('<mujoco><include file="n.xml"/></mujoco>')
        (folder / "n.xml").write_text('<mujoco><include file="m.xml"/></mujoco>')
        return xml(top='<include file="m.xml"/>')
    if row == "include":
        for k in range(1001):
            (folder / f"m{k}.xml").write_text("<mujoco/>")
        return xml(top="".join(f'<include file="m{k}.xml"/>' for k in range(1001)))
    if row == "frame, replicate":
        return xml(world='<replicate count="1000"><replicate count="1000"><site/></replicate></replicate>')
    if row == "attach, model":
        for k in range(30):
            (folder / f"m{k}.xml").write_text(f'<mujoco><asset><model name="n" file="m{k + 1}.xml"/></asset><worldbody><body name="c"><geom size="1"/>'
                                              f'<attach model="n" body="c" prefix="x"/></body></worldbody></mujoco>')
        (folder / "m30.xml").write_text('<mujoco><worldbody><body name="c"><geom size="1"/></body></worldbody></mujoco>')
        return xml(asset='<model name="m" file="m0.xml"/>', inside='<attach model="m" body="c" prefix="x"/>')
    (folder / "m.bin").write_bytes(b"\2\0\0\0\2\0\0\0" + bytes(4))
    return xml(asset='<hfield name="m" file="m.bin" size="1 1 1 1"/>')


@pytest.mark.parametrize("row, entry", [(row, entry) for (row, column), all in TABLE.items() if column == "refused" for entry in all])
def test_what_is_refused_is_an_error_with_a_line(row, entry, tmp_path):
    case = REFUSED[row][entry]
    for slots in case if isinstance(case, list) else [case]:
        text = xml(**slots) if slots else files_that_are_refused(row, entry, tmp_path)
        (tmp_path / "model.xml").write_text(text)
        with pytest.raises(tarsus.InputError) as refused:
            tarsus.Model.load(tmp_path / "model.xml")
        assert any(d.severity == "error" and d.line > 0 for d in refused.value.diagnostics)


def test_no_case_is_left_over():
    for column, cases in (("stored", STORED), ("named", NAMED), ("refused", REFUSED)):
        for row, entries in cases.items():
            assert set(entries) == set(TABLE[row, column]), (row, column)
    left = {(row, entry) for row, entry in [*COMPUTED, *SHOWN] if entry not in TABLE[row, "computed"]}
    assert not left
