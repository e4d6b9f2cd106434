"""Tendons and actuators that MuJoCo refuses are refused, and those that it accepts are accepted."""

import mujoco
import pytest
import tarsus
from oracle import both_take

MODEL = """<mujoco><compiler autolimits="{}"/><worldbody><site name="w"/><body><joint name="x"/><joint name="y" type="slide"/><geom size=".1"/><site name="s"/><site name="t" pos="0 0 1"/></body>
<body name="c"><joint name="z" type="ball"/><geom size=".1"/></body></worldbody><tendon><fixed name="f"><joint joint="x" coef="1"/></fixed>{}</tendon><actuator>
{}</actuator></mujoco>"""


def agree(tendon="", actuator="", autolimits="true", equality="", default="", place=r":[23]:"):
    text = MODEL.format(autolimits, tendon, actuator).replace("<tendon>", f"<equality>{equality}</equality><tendon>")
    text = text.replace("<worldbody>", f"<default>{default}</default><worldbody>")
    return both_take(text, place)


@pytest.mark.parametrize("path, fine", [
    ("joint=x", True), ("joint=x joint=y", True), ("joint=x joint=x", False), ("joint=x joint=y joint=x", False),
    ("site=w site=s", True), ("site=w site=s site=w", True), ("site=w site=w site=s", False), ("site=w site=s site=s", False),
    ("site=w site=s pulley=2 site=s site=t", True), ("site=w site=s pulley=2", False), ("site=w pulley=2 site=s site=t", False), ("pulley=2 site=w pulley=2 site=s site=t", False)])
def test_paths_of_tendons(path, fine):
    parts = [part.split("=") for part in path.split()]
    inner = "".join(f'<pulley divisor="{name}"/>' if kind == "pulley" else f'<{kind} {kind}="{name}"' + (' coef="1"/>' if kind == "joint" else "/>") for kind, name in parts)
    kind = "fixed" if "joint" in path else "spatial"
    assert agree(tendon=f"<{kind}>{inner}</{kind}>") == fine


@pytest.mark.parametrize("inertia", ["legacy", "convex", "shell"])
@pytest.mark.parametrize("face", ["0 0 0", "0 2 1", "0 1 1 0 2 1", "0 2 1 0 1 3 0 3 2 1 2 3"])
@pytest.mark.parametrize("used", [False, True])
def test_meshes_without_volume(face, inertia, used):
    """Meshes that nothing uses are checked too."""
    geom = '<geom type="mesh" mesh="m"/>' if used else '<geom size=".1"/>'
    fine = both_take(f"""<mujoco><asset>
<mesh name="m" inertia="{inertia}" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="{face}"/></asset><worldbody><body><freejoint/>
{geom}</body></worldbody></mujoco>""", ":2:.*mesh (volume|surface area): is 0")
    assert fine == (face != "0 0 0" and (inertia != "legacy" or len(face) > 11))


@pytest.mark.parametrize("kind, fine", [("sphere", True), ("cylinder", True), ("box", False), ("capsule", False), ("ellipsoid", False), ("plane", False)])
def test_what_tendons_wrap_around(kind, fine):
    text = MODEL.format("true", '<spatial><site site="w"/><geom geom="k"/><site site="s"/></spatial>', "").replace("<worldbody>", f'<worldbody><geom name="k" type="{kind}" size=".1 .1 .1"/>')
    text = text.replace("<spatial>", "\n<spatial>")
    if fine:
        assert mujoco.MjModel.from_xml_string(text).ntendon == 2
        tarsus.Model.from_xml_string(text)
        return
    with pytest.raises(ValueError, match="not sphere or cylinder"):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(tarsus.InputError, match=r":3:\d+: error: tendons wrap around spheres and cylinders only"):
        tarsus.Model.from_xml_string(text)


@pytest.mark.parametrize("transmission, fine", [('joint="x" refsite="s"', False), ('joint="x" slidersite="s"', False), ('tendon="f" refsite="s"', False), ('site="s" slidersite="t"', False),
                                                ('site="s" refsite="t"', True), ('cranksite="s" slidersite="t" cranklength="1"', True), ('cranksite="s" refsite="t" cranklength="1"', False),
                                                ('joint="x" cranklength="1"', False), ('site="s" cranklength="0"', False)])
def test_sites_that_go_with_a_transmission(transmission, fine):
    assert agree(actuator=f"<motor {transmission}/>") == fine


@pytest.mark.parametrize("size, fine", [
    ('njmax="-5"', False), ('njmax="-1"', True), ('njmax="100" nconmax="100"', True), ('njmax="100" memory="1M"', False), ('nconmax="100" memory="1M"', True), ('nconmax="-2"', False), ('nstack="-3"', False),
    ('nstack="100000"', True), ('memory="1Q"', False), ('memory="M"', False), ('memory=""', False), ('memory="1MB"', False), ('memory="1.5M"', False),
    ('memory="-2"', False), ('memory="16E"', False), ('memory="18446744073709551616"', False), ('memory="-1"', True), ('memory=" 2m"', True),
    ('memory="1048576"', True), ('memory="2048K"', True), ('memory="1M" nstack="100000"', False)])
def test_sizes_of_mujocos_arrays(size, fine):
    assert both_take(f"<mujoco>\n<size {size}/><worldbody/></mujoco>", ":2:") == fine


@pytest.mark.parametrize("number, fine", [("1", True), ("1 2", True), ("1 2 3", False), ("x", False)])
def test_references_of_the_friction_of_pairs(number, fine):
    text = '<mujoco><worldbody><geom name="a" size="1"/><body><joint/><geom name="b" size=".1"/></body></worldbody><contact>'
    assert both_take(f'{text}\n<pair geom1="a" geom2="b" solreffriction="{number}"/></contact></mujoco>', ":2:") == fine


@pytest.mark.parametrize("stage, fine", [("none", True), ("pos", True), ("later", False)])
def test_stages_of_the_users_sensors(stage, fine):
    text = '<mujoco><worldbody/><sensor>\n<user name="u" dim="1" needstage="{}"/></sensor></mujoco>'
    assert both_take(text.format(stage), ":2:") == fine


@pytest.mark.parametrize("size", ['diameter="-3"', 'area="2" diameter="-1"', 'area="2" diameter=".1"', 'diameter="0"', 'area="-2"', ""])
def test_areas_of_cylinders(size):
    theirs, ours = (read(MODEL.format("true", "", f'<cylinder name="c" joint="x" timeconst="1" {size}/>')) for read in (mujoco.MjModel.from_xml_string, tarsus.Model.from_xml_string))
    data = tarsus.Data(ours)
    data.act[:] = 1
    assert tarsus.actuation(ours, data)["actuator_force"][0] == pytest.approx(theirs.actuator_gainprm[0, 0], rel=1e-12)


@pytest.mark.parametrize("texture, fine", [
    ('builtin="checker" width="8"', True), ('builtin="checker" height="8"', False), ('builtin="flat" width="-1" height="8"', False),
    ('type="2d" builtin="checker" width="8"', False), ('type="2d" builtin="checker" width="8" height="8"', True), ('type="2d" builtin="flat" width="0" height="8"', False),
    ('type="skybox" builtin="gradient" width="8"', True), ('type="skybox" builtin="gradient"', False), ('builtin="flat" width="8" nchannel="4"', False),
    ('builtin="flat" width="8" nchannel="3"', True), ('type="2d"', False), ('builtin="none" width="8" height="8"', False), ("", False), ('class="c" type="2d"', True),
    ('class="c"', True)])
def test_textures_have_an_image(texture, fine):
    text = '<mujoco><default><default class="c"><texture builtin="flat" width="8" height="8"/></default></default>'
    assert both_take(f'{text}<asset>\n<texture name="t" {texture}/></asset><worldbody/></mujoco>', ":2:") == fine


@pytest.mark.parametrize("width, fine", [("0", False), ("-1", False), ("1e-20", True)])
def test_widths_of_tendons(width, fine):
    sites = '<site site="w"/><site site="s"/>'
    assert agree(tendon=f'<spatial width="{width}">{sites}</spatial>') == fine
    default = f'<tendon width="{width}"/>'
    assert agree(default=default, tendon=f"<spatial>{sites}</spatial>") == fine
    assert agree(default=default, tendon=f'<spatial width=".1">{sites}</spatial>')
    assert agree(default=default)


@pytest.mark.parametrize("kind", ["body", "xbody", "joint", "geom", "site", "camera", "light", "mesh", "hfield", "texture", "material", "pair", "exclude", "equality",
                                  "tendon", "actuator", "sensor", "numeric", "text", "tuple", "x", "unknown", "default"])
def test_members_of_tuples(kind):
    text = """<mujoco><asset><texture name="texture" builtin="flat" width="8"/><material name="material"/><mesh name="mesh" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
<hfield name="hfield" nrow="2" ncol="2" size="1 1 1 1"/></asset><worldbody><light name="light"/><camera name="camera"/><body name="body"><joint name="joint"/>
<geom name="geom" size=".1"/><site name="site"/></body><body name="b"><joint name="j"/><geom name="g" size=".1"/></body></worldbody>
<contact><pair name="pair" geom1="geom" geom2="g"/><exclude name="exclude" body1="body" body2="b"/></contact>
<equality><joint name="equality" joint1="joint" joint2="j"/></equality><tendon><fixed name="tendon"><joint joint="joint" coef="1"/></fixed></tendon>
<actuator><motor name="actuator" joint="j"/></actuator><sensor><clock name="sensor"/></sensor><custom><numeric name="numeric" data="1"/><text name="text" data="a"/>
<tuple name="tuple"><element objtype="{}" objname="{}"/></tuple></custom></mujoco>"""
    known = kind not in ("x", "unknown", "default")
    assert both_take(text.format(kind, "body" if kind == "xbody" else kind), ":7:") == known
    assert not both_take(text.format(kind, "no such"), ":7:")


@pytest.mark.parametrize("on, fine", [('joint="x"', True), ('jointinparent="x"', False), ('joint="y"', False), ('joint="z"', False), ('tendon="f"', False), ('site="s"', False)])
def test_what_ranges_are_inherited_from(on, fine):
    text = MODEL.format("true", "", f'<position {on} inheritrange="1"/>').replace('<joint name="x"/>', '<joint name="x" range="0 1"/>')
    assert both_take(text.replace('name="z"', 'name="z" range="0 1"'), ":[23]:") == fine


@pytest.mark.parametrize("weld, fine", [('site1="s" site2="t"', True), ('site1="s" site2="w" relpose="0 0 0 1 0 0 0"', False), ('body1="c" relpose="0 0 0 1 0 0 0"', True)])
def test_poses_of_welds(weld, fine):
    text = MODEL.format("true", "", "").replace("<tendon>", f"\n<equality><weld {weld}/></equality><tendon>")
    if fine:
        assert mujoco.MjModel.from_xml_string(text).neq == 1
        assert tarsus.Model.from_xml_string(text).nv == 5
        return
    with pytest.raises(ValueError, match="at most one of"):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(tarsus.InputError, match="cannot be combined with 'body1', 'body2', 'anchor' or 'relpose'"):
        tarsus.Model.from_xml_string(text)


@pytest.mark.parametrize("equality", ['connect body1="c" anchor="0 0 1"', 'connect site1="s" site2="t"', 'weld body1="c"', 'weld site1="s" site2="t"'])
@pytest.mark.parametrize("more", ["", 'torquescale="2"', 'relpose="0 0 0 0 1 0 0"', 'polycoef="1"', 'anchor="1 0 0"'])
def test_attributes_of_connections_and_welds(equality, more):
    if 'anchor' not in equality or 'anchor' not in more:
        agree(equality=f"<{equality} {more}/>")
    assert not agree(equality=f"<{equality} {more}/>".replace('"t"', '"s"').replace('"c"', '"world" body2="world"'))  # with itself


ELEMENTS = {"general": "", "motor": "", "position": 'kp="1"', "velocity": "", "intvelocity": "", "damper": 'ctrlrange="0 1"', "cylinder": "",
            "muscle": 'lengthrange="0 1"', "adhesion": 'ctrlrange="0 1" gain="1"', "dcmotor": 'motorconst="1" resistance="1"', "pid": 'kp="1"'}
ATTRIBUTES = ['ctrllimited="false"', 'forcelimited="false"', 'actlimited="false"', 'actearly="false"', 'gear="2"', 'armature="0"', 'armature=".1"', 'damping=".1"',
              'actrange="-1 1"']
TARGETS = ['joint="x"', 'jointinparent="z"', 'tendon="f"', 'site="s"', 'body="c"', 'cranksite="s" slidersite="t" cranklength="1"']


@pytest.mark.parametrize("element", ELEMENTS)
def test_attributes_of_actuators(element):
    for target in TARGETS:
        agree(actuator=f"<{element} {target} {ELEMENTS[element]}/>")
    for target in ['body="c"'] if element == "adhesion" else ['joint="x"', 'site="s"']:
        for attribute in ATTRIBUTES:
            agree(actuator=f"<{element} {target} {ELEMENTS[element]} {attribute}/>")
        for numbers in ("0 1", "-1 1", "1 2"):
            agree(actuator=f"<{element} {target} {ELEMENTS[element]}/>".replace(' ctrlrange="0 1"', "").replace("/>", f' ctrlrange="{numbers}"/>'))


@pytest.mark.parametrize("element", ELEMENTS)
def test_activations_of_classes_are_those_of_general(element):
    target, more = 'body="c"' if element == "adhesion" else 'joint="x"', 'actrange="-1 1"' if element == "intvelocity" else ""
    text = MODEL.format("true", "", f"<{element} {target} {ELEMENTS[element]} {more}/>")
    for count in (0, 1, 2):
        both_take(text.replace("<worldbody>", f'<default><general actdim="{count}"/></default><worldbody>'), ":3:")
    for limit in ('actlimited="true"', 'actlimited="false" actrange="0 1"', 'actlimited="true" actrange="0 1"'):
        both_take(text.replace("<worldbody>", f"<default><general {limit}/></default><worldbody>"), ":3:")


@pytest.mark.parametrize("dynamics", ["none", "integrator", "filter", "filterexact", "muscle", "user"])
def test_activations_of_laws(dynamics):
    for count in (-1, 0, 1, 2):
        agree(actuator=f'<general joint="x" dyntype="{dynamics}" actdim="{count}"/>')
    for limited in ("auto", "true", "false"):
        for autolimits in ("true", "false"):
            for element in (f'general dyntype="{dynamics}"', "intvelocity"):
                agree(actuator=f'<{element} joint="x" actrange="-1 1" actlimited="{limited}"/>', autolimits=autolimits)


@pytest.mark.parametrize("numbers, fine", [
    (".75 1.05 -1 200 .5 1.6 1.5 1.3 1.2", True), ("1 .5 -1 200 .5 1.6 1.5 1.3 1.2", False), (".75 1.05 -1 200 1.5 1.6 1.5 1.3 1.2", False),
    (".75 1.05 -1 200 .5 .6 1.5 1.3 1.2", False), (".75 1.05 -1 0 .5 1.6 1.5 1.3 1.2", False), (".75 1.05 -1 200 .5 1.6 0 1.3 1.2", False),
    (".75 1.05 -1 200 .5 1.6 1.5 0 1.2", False), (".75 1.05 -1 200 .5 1.6 1.5 1.3 0", False), ("0", False)])
def test_parameters_of_muscles(numbers, fine):
    for law in ("gaintype=", "biastype="):
        assert agree(actuator=f'<general joint="x" {law}"muscle" {law[:4]}prm="{numbers}" lengthrange="-1 1"/>') == fine
    assert not agree(actuator=f'<general joint="x" gaintype="muscle" biastype="muscle" gainprm="{numbers}" lengthrange="-1 1"/>')


INPUTS = ["banana", "pos", "vel", "ff", "voltage", "pressure", "pos vel", "vel pos", "pos pos", "pos vel ff", "ff voltage", "pos,vel", "Pos", "none", "pos none", "expmap", "quat", "", " ", " pos"]


@pytest.mark.parametrize("text", INPUTS)
def test_inputs_of_actuators(text):
    for law in ("", 'gaintype="affine" dyntype="integrator"', 'gaintype="muscle" lengthrange="0 1" gainprm=".75 1.05 -1 200 .5 1.6 1.5 1.3 1.2"', 'gaintype="user"',
                'gaintype="dcmotor" dyntype="dcmotor" biastype="dcmotor" actearly="true" gainprm="2 1"', 'gaintype="pid" biastype="affine" gainprm="0" biasprm="0 -3 -1"'):
        if '"pid"' not in law and '"dcmotor"' not in law or text not in ("expmap", "quat"):  # further names of pos and vel
            agree(actuator=f'<general joint="x" {law} input="{text}"/>')
    if text not in ("expmap", "quat"):
        agree(actuator=f'<dcmotor joint="x" input="{text}" motorconst="1" resistance="1"/>')
        agree(actuator=f'<pid joint="x" kp="1" input="{text}"/>')
    agree(actuator=f'<orientation site="s" refsite="w" input="{text}"/>')
    for element in ("general", 'dcmotor motorconst="1" resistance="1"', "pid", "orientation"):
        agree(default=f'<{element} input="{text}"/>', place="'input'")
    for element in ("motor", 'muscle lengthrange="0 1"', "general", 'dcmotor motorconst="1" resistance="1"'):
        agree(default=f'<general input="{text}"/>', actuator=f'<{element} joint="x"/>', place="'input'")


@pytest.mark.parametrize("target, fine", [('site="s" refsite="w"', True), ('site="s"', False), ('joint="z"', True)])
def test_what_orientations_turn(target, fine):
    assert agree(actuator=f"<orientation {target}/>") == fine


def test_laws_of_the_users_have_as_many_activations_as_they_say():
    text = MODEL.format("true", "", '<general joint="x" dyntype="user" actdim="3"/><cylinder joint="y"/>').replace("</mujoco>", '<keyframe><key act=".1 .2 .3 .4"/></keyframe></mujoco>')
    theirs, model = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    assert model.na == theirs.na == 4
    data = tarsus.Data(model)
    data.reset(0)
    assert data.act.tolist() == theirs.key_act[0].tolist()


SENSED = """<mujoco><asset><mesh name="m" builtin="sphere" params="2"/></asset><worldbody><site name="w"/><camera name="cam" pos="0 0 4" resolution="9 9"/>
<body name="b"><joint name="j"/><joint name="r" range="0 1"/><geom name="g" size=".1"/><site name="s"/>
<body name="c"><joint name="k" type="ball"/><joint name="x" type="slide" range="0 1" limited="false"/><geom name="h" size=".1"/></body>
<body name="d"><joint name="kr" type="ball" range="0 1"/><geom size=".1"/></body></body><body name="e"><freejoint name="f"/><geom size=".1"/></body></worldbody>
<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed><fixed name="tr" range="0 1"><joint joint="j" coef="1"/></fixed></tendon><sensor>
<{}/></sensor></mujoco>"""
OF_LIMITS = [f'{kind}limit{what} {kind}="{name}"' for what in ("pos", "vel", "frc")
             for kind, names in (("joint", "j r k x kr f"), ("tendon", "t tr")) for name in names.split()]
SIDES = [f"{kind} {sides}" for kind in ("distance", "normal", "fromto") for sides in (
    'geom1="g" geom2="h"', 'geom1="g" body2="c"', 'body1="b" body2="c"', 'geom1="g" body1="b" geom2="h"', 'geom1="g" geom2="h" body2="c"',
    'geom1="g" geom2="h" body1="b" body2="c"', 'geom1="g"', 'body2="c"', 'geom1="g" geom2="g"', 'body1="b" body2="b"', 'geom1="g" body2="b"')]
VALUES = [f"contact {x}" for x in ('geom1="g" body1="b"', 'site="s" subtree1="b"', 'geom2="g" subtree2="b"', 'site="s" body2="b"', 'num="0"', 'num="2"', 'data="force found"',
                                   'data="found force"', 'data="force force"', 'data="x"', 'data=""', 'reduce="x"', 'reduce="netforce"')]
VALUES += [f'jointpos joint="j" {x}' for x in ('cutoff="-1"', 'cutoff="x"', 'cutoff="1"', 'noise="-1"', 'noise="x"', 'user="x"', 'user="1 2"', 'nsample="x"', 'nsample="2"',
                                               'interp="x"', 'interp="cubic"', 'site="s"', 'objname="b"', 'refname="b"', 'class="main"', 'num="1"')]
VALUES += [f"{kind} cutoff='1'" for kind in ('framequat objtype="body" objname="b"', 'framexaxis objtype="body" objname="b"', 'framepos objtype="body" objname="b"',
                                             'ballquat joint="k"', 'normal geom1="g" geom2="h"', 'touch site="s"')]
CAMERAS = ["camprojection", 'camprojection site="s"', 'camprojection camera="cam"', 'camprojection site="s" camera="cam"', 'camprojection site="s" camera="x"',
           'rangefinder site="s" camera="cam"', 'rangefinder camera="cam"', 'rangefinder site="s" data="dist dir"', 'rangefinder site="s" data="dir dist"']
OTHERS = [f'insidesite site="s" objtype="body" objname="c" {x}' for x in ('enclosed="false"', 'enclosed="true"', 'enclosed="1"')]
OTHERS += [f'jointpos joint="j" {x}' for x in ('delay="x"', 'delay="1 2"', 'interval="x"', 'interval="1 0 1"', 'enclosed="true"')]
OTHERS += ["user", 'user dim="2"', 'user dim="-1"', 'user dim="1" datatype="x"', 'user dim="1" objtype="body"', 'user dim="1" objtype="body" objname="b"', "tactile",
          'tactile geom="g"', 'tactile geom="g" mesh="x"', 'framelinacc objtype="body" objname="b" reftype="body" refname="c"']


@pytest.mark.parametrize("sensor", OF_LIMITS + SIDES + VALUES + CAMERAS + OTHERS)
def test_sensors(sensor):
    both_take(SENSED.format(sensor), ":6:")


def test_parts_of_the_laws_of_motors_are_not_computed():
    inner = ('<general joint="x" dyntype="dcmotor" actearly="true" gainprm="1 2"/>'
             '<general joint="y" gaintype="pid" gainprm="0" biastype="affine" biasprm="1 -2 -3" input="pos"/>')
    text = MODEL.format("true", "", inner)
    theirs, ours = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    assert (ours.nu, ours.na) == (theirs.nu, theirs.na) == (2, 1)
    assert sum("is not computed" in str(d) for d in ours.diagnostics) == 2
