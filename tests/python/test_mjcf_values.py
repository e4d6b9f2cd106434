"""Values, names and repeated elements that MuJoCo refuses are refused with their location, and those that it accepts are accepted."""

import subprocess
import sys

import mujoco
import pytest
import tarsus
from oracle import both_take

FRAME = """<mujoco>
{top}
<worldbody>{world}<body {body}><joint name="j" {joint}/><geom size=".1" {geom}/></body></worldbody>
{end}</mujoco>"""


def agree(**parts):
    """Whether MuJoCo accepts the text; tarsus must then accept it too."""
    return both_take(FRAME.format(**{"top": "", "world": "", "body": "", "joint": "", "geom": "", "end": "", **parts}), r":[234]:")


@pytest.mark.parametrize("size, fine", [("1 1 .1", True), ("0 0 .1", True), ("-1 1 .1", True), ("0 -1 1", True), ("1 1 -1", False)])
def test_sizes_of_planes(size, fine):
    assert agree(world=f'<geom type="plane" size="{size}"/>') == fine
    assert not agree(world=f'<site type="plane" size="{size}"/>')


@pytest.mark.parametrize("size", ["0 0 0", "1 1", "1", ""])
def test_planes_without_a_spacing_of_their_grid_are_named(size):
    """Bullet's files have such planes, MuJoCo refuses them."""
    text = FRAME.format(top="", world=f'<geom type="plane" size="{size}"/>', body="", joint="", geom="", end="")
    with pytest.raises(ValueError, match="plane size"):
        mujoco.MjModel.from_xml_string(text)
    warnings = [d for d in tarsus.Model.from_xml_string(text).diagnostics if d.severity == "warning" and not d.other_law]
    assert len(warnings) == 1 and "spacing of its grid" in warnings[0].message and warnings[0].line == 3


SENSOR, MOTOR, TETRA = "<sensor><jointpos joint='j' {}/></sensor>", "<actuator><motor joint='j' {}/></actuator>", "vertex='0 0 0 1 0 0 0 1 0 0 0 1'"
PATH = '<site name="w"/><body><joint/><geom size=".1"/><site name="s"/></body>'


@pytest.mark.parametrize("where, part, values", [
    ("joint", 'springyield="{}"', {"1": True, "-1": False}),
    ("geom", 'surfacevel="{}"', {"1 0 0": True, "1 2 3 4 5 6": True, "1 2 3 4 5 6 7": False}),
    ("top", '<option ls_iterations="{}"/>', {"9": True, "1.5": False}),
    ("top", '<option sdf_initpoints="{}"/>', {"9": True, "1.5": False}),
    ("top", '<compiler inertiagrouprange="{}"/>', {"0 5": True, "-1 2": True, "": True, "0.5 3": False, "0 5.5": False, "3000000000 5": False, "0": False, "0 1 2": False}),
    ("top", '<option actuatorgroupdisable="{}"/>', {"0 30": True, "-1": False, "31": False}),
    ("top", '<size nuserdata="{}"/>', {"0": True, "-1": False}),
    ("top", '<asset><texture name="t" type="2d" builtin="flat" width="8" height="8" {}/></asset>', {
        'gridsize="2 2" gridlayout="...."': True, 'gridsize="2 2" gridlayout="..."': False, 'gridlayout="."': True, 'gridlayout="RL"': False,
        'gridsize="2 7"': True, 'gridsize="2 7" gridlayout="RLUDFBRLUDFBRL"': False}),
    ("top", f'<asset><mesh name="m" {TETRA} {{}}/></asset>', {
        'normal="0 0 1 0 0 1"': True, 'normal="0 0 1 0"': False, 'texcoord="0 0 0 0 0 0 0 0"': True, 'texcoord="0 0 0 0 0 0"': False, 'texcoord="0"': False,
        'maxhullvert="-1"': True, 'maxhullvert="4"': True, 'maxhullvert="3"': False, 'maxhullvert="1.5"': False}),
    ("top", '<default><mesh maxhullvert="{}"/></default>', {"4": True, "2": False}),
    ("world", "<camera {}/>", {
        'focal="1 1"': False, 'focal="1 1" sensorsize="1 1"': True, 'focal="1 1" sensorsize="0 0"': False, 'focal="0 0"': True, 'principalpixel="1 1"': False,
        'principal="1 1" sensorsize="1 1"': True}),
    ("end", SENSOR, {'delay=".1"': False, 'delay=".1" nsample="1"': True, 'delay="-1"': True, 'interval="1 -.5"': True, 'interval="1 -1"': False, 'interval="1 .1"': False,
                     'interval="-1"': False, 'interval="0 -1"': True}),
    ("end", '<sensor><user dim="1" {}/></sensor>', {'noise="0"': True, 'delay="0"': False, 'nsample="0"': False, 'interval="0"': False, 'interp="zoh"': False}),
    ("end", '<custom><numeric name="n" {}/></custom>', {'data="1"': True, 'size="2"': True, 'size="0"': False, "": False, 'data=""': False}),
    ("end", MOTOR, {'delay=".1"': False, 'delay=".1" nsample="1"': True}),
    ("end", '<actuator><dcmotor joint="j" resistance="1" {}/></actuator>', {
        'motorconst="1"': True, 'motorconst="-1"': False, 'motorconst="1 -1"': False, 'motorconst="0 1"': True, 'nominal="1 1 1"': True, 'nominal="-1 1 1"': False})])
def test_values_that_are_only_checked(where, part, values):
    assert {value: agree(**{where: part.format(value)}) for value in values} == values


@pytest.mark.parametrize("given, delay", [("", False), ('nsample="2"', True)])
def test_the_history_of_a_delay_may_be_of_the_class(given, delay):
    assert agree(top=f'<default><motor delay=".1" {given}/></default>', end=MOTOR.format("")) == delay


@pytest.mark.parametrize("of_class, own, fine", [("", 'material="no"', False), ("", 'material="m"', True), ('<tendon material="no"/>', "", False), ('<tendon material="m"/>', "", True)])
def test_materials_of_tendons_exist(of_class, own, fine):
    for tendon in (f'<spatial {own}><site site="w"/><site site="s"/></spatial>', *(['<fixed><joint joint="j" coef="1"/></fixed>'] if not own else [])):
        assert agree(top=f'<asset><material name="m"/></asset><default>{of_class}</default>', world=PATH, end=f"<tendon>{tendon}</tendon>") == fine


def test_shapes_that_are_fitted_to_meshes():
    assets = '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>'
    for kind in ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box"):
        field = 'hfield="h"' if kind == "hfield" else ""
        assert agree(top=assets, world=f'<geom type="{kind}" mesh="m" {field} size="1 1 1"/>') == (kind not in ("plane", "hfield"))


@pytest.mark.parametrize("scale, fine", [("2", True), ("0", False), ("-1", False)])
def test_scales_of_fitted_shapes(scale, fine):
    mesh = '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
    assert agree(top=mesh, world=f'<geom type="box" mesh="m" fitscale="{scale}"/>') == fine


@pytest.mark.parametrize("name", ["", 'name=""', 'name="a"'])
def test_names_of_shapes_that_no_file_names(name):
    assert agree(top=f'<asset><mesh {name} vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>') == ("a" in name.split('"'))
    assert agree(top=f'<asset><hfield {name} nrow="2" ncol="2" size="1 1 1 1"/></asset>') == ("a" in name.split('"'))


def test_shells_of_meshes_are_the_meshes_own():
    mesh = '<asset><mesh name="m" inertia="shell" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
    assert not agree(top=mesh, world='<geom type="mesh" mesh="m" shellinertia="true"/>')
    assert agree(top=mesh, world='<geom type="mesh" mesh="m" shellinertia="false"/>')


def test_types_of_sites():
    for kind in ("sphere", "capsule", "ellipsoid", "cylinder", "box", "plane", "hfield", "mesh"):
        agree(world=f'<site type="{kind}" size=".1 .1 .1"/>')


@pytest.mark.parametrize("default, site, fine", [("", 'type="mesh" mesh="m"', True), ("", 'type="mesh" mesh="none"', False), ("", 'size=".1" mesh="m"', False), ("", 'type="mesh"', False),
                                                 ('mesh="m"', 'type="mesh"', True), ('mesh="none"', 'type="mesh"', False), ('mesh="m"', 'size=".1"', False)])  # fmt: skip
def test_meshes_of_sites(default, site, fine):
    top = f'<default><site {default}/></default><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
    assert agree(top=top, world=f"<site {site}/>") == fine


@pytest.mark.parametrize("tag", "joint geom site mesh material texture camera light pair equality tendon general motor position".split())
def test_default_elements_have_neither_name_nor_class(tag):
    for attribute in ('name="a"', 'class="main"', 'class="b"'):
        assert not agree(top=f"<default><{tag} {attribute}/></default>")


@pytest.mark.parametrize("element", [
    *(f'{a} lengthrange="0 1"' for a in "general motor position velocity intvelocity damper cylinder muscle pid".split()), 'muscle tausmooth=".1"',
    'texture file="a.png"', 'texture fileup="a.png"', 'texture content_type="image/png"', 'camera target="b"', 'light target="b"', 'light texture="t"',
    *(f'orientation {a}' for a in ('gear="1"', 'armature="1"', 'damping="1"', 'cranklength="1"', 'lengthrange="0 1"', 'ctrllimited="true"', 'actrange="0 1"'))])  # fmt: skip
def test_what_elements_have_that_classes_lack(element):
    assert agree(top=f"<default><{element.split()[0]}/></default>")
    assert not agree(top=f"<default><{element}/></default>")


@pytest.mark.parametrize("motor, fine", [("", False), ('motorconst="1"', False), ('motorconst="1" resistance="1"', True), ('nominal="24 2 50"', True),
                                         ('motorconst="1" resistance="1" lengthrange="0 1"', False)])  # fmt: skip
def test_motors_in_classes_are_whole(motor, fine):
    assert agree(top=f"<default><dcmotor {motor}/></default>") == fine


@pytest.mark.parametrize("more", ["gear='1'", "actrange='0 1'", "actearly='false'", "ctrllimited='true'", "armature='1'", "damping='1'", "lengthrange='0 1'", "cranklength='1'"])
def test_what_orientations_lack(more):
    ball = '<body><joint name="k" type="ball"/><geom size=".1"/></body>'
    assert agree(world=ball, end='<actuator><orientation joint="k"/></actuator>')
    assert not agree(world=ball, end=f'<actuator><orientation joint="k" {more}/></actuator>')


@pytest.mark.parametrize("top, fine", [
    ('<default/><default/>', True), ('<default class="main"/><default class="main"/>', True), ('<default/><default class="main"/>', True), ('<default class="a"/>', False),
    ('<default class="a"/><default class="a"/>', False), ('<default class="a"/><default/>', False), ('<default class="a"/><default class="main"/>', False),
    ('<default/><default class="a"/>', False), ('<default><default class="a"/><default class="a"/></default>', False),
    ('<default><default class="a"/></default><default><default class="b"/></default>', True)])
def test_default_classes_are_defined_once(top, fine):
    assert agree(top=top) == fine


def test_keywords_have_no_blanks_around_them():
    for part, text in [("joint", 'limited=" true " range="0 1"'), ("joint", 'type="slide "'), ("joint", 'actuatorgravcomp=" true"'), ("geom", 'type=" box " size=".1 .1 .1"'),
                       ("geom", 'shellinertia=" true "'), ("body", 'mocap="false "'), ("top", '<compiler angle=" degree"/>'), ("top", '<compiler autolimits=" true "/>'),
                       ("top", '<compiler inertiafromgeom="auto "/>'), ("top", '<option integrator=" RK4"/>'), ("top", '<option><flag contact=" disable "/></option>')]:
        assert not agree(**{part: text}), text


@pytest.mark.parametrize("top", ['<option><flag/><flag/></option>', '<compiler><lengthrange/><lengthrange/></compiler>'] +
                         [f"<visual><{part}/><{part}/></visual>" for part in "global quality headlight map scale rgba".split()])
def test_elements_that_are_there_once(top):
    assert not agree(top=top)
    first, rest = top.split("/><", 1)
    outer = top[1:].split(">", 1)[0]
    assert agree(top=f"{first}/></{outer}><{outer}><{rest}")  # once in each of two


VALUES = ["x", "1", "1 1", "1 1 1", "1 1 1 1", "1 1 1 1 1", "1.5", "true", " true", "auto", ""]
MATERIAL = "emission metallic reflectance rgba roughness shininess specular texrepeat texuniform".split()
TEXTURE = "builtin colorspace hflip mark markrgb random rgb1 rgb2 type".split()
CAMERA = "fovy ipd mode output pos principal principalpixel projection quat euler user".split()
LIGHT = "active ambient attenuation bulbradius castshadow cutoff diffuse dir directional exponent intensity mode pos range softness specular type".split()
VISUAL = ["global azimuth", "global orthographic", "global offwidth", "quality shadowsize", "headlight active", "headlight ambient", "map znear", "map fogend", "scale contactwidth",
          "scale com", "rgba fog", "rgba haze"]


@pytest.mark.parametrize("value", VALUES)
def test_values_of_looks(value):
    if value == "":  # MuJoCo takes no numbers for a missing attribute, and no word for an error
        agree(geom='rgba=""'), agree(top='<asset><material name="m" rgba=""/></asset>'), agree(top='<asset><material name="m" texuniform=""/></asset>')
        return
    for name in MATERIAL:
        agree(top=f'<asset><material name="m" {name}="{value}"/></asset>')
        agree(top=f'<default><material {name}="{value}"/></default>')
    for name in TEXTURE:
        other = " ".join(f'{n}="{v}"' for n, v in (("type", "2d"), ("builtin", "flat")) if n != name)
        agree(top=f'<asset><texture name="t" width="6" height="36" {other} {name}="{value}"/></asset>')
    for name in CAMERA:
        if not (name == "output" or name.startswith("principal")):  # which depend on others
            agree(world=f'<camera {name}="{value}"/>')
    for name in LIGHT:
        if (name, value) != ("softness", "1.5"):  # beyond 1
            agree(world=f'<light {name}="{value}"/>')
    for entry in VISUAL:
        agree(top='<visual><{} {}="{}"/></visual>'.format(*entry.split(), value))
    for name in ("center", "extent", "meansize"):
        agree(top=f'<statistic {name}="{value}"/>')
    for name in ("width", "rgba", "group", "user", "springyield", "solreflimit", "solimplimit", "solreffriction", "solimpfriction"):
        agree(top=f'<default><tendon {name}="{value}"/></default>')
        agree(end=f'<tendon><fixed {name}="{value}"><joint joint="j" coef="1"/></fixed></tendon>')
    for name in ("delay", "nsample", "interp"):
        if name != "interp" and (name, value) not in (("delay", "1"), ("delay", "1.5")):  # which need samples
            agree(end=f'<actuator><motor joint="j" {name}="{value}"/></actuator>')
        agree(top=f'<default><motor {name}="{value}"/></default>')
    for name in ("kp", "kv", "dampratio", "bogus"):
        agree(top=f'<default><orientation {name}="{value}"/></default>')
    agree(top=f'<asset><mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1" smoothnormal="{value}"/></asset>')
    for name in ("castshadow", "adhesion", "group", "rgba", "user", "hfield"):
        agree(geom=f'{name}="{value}"')
    agree(joint=f'springyield="{value}"')
    for name in ("sleep", "fuse", "simple"):
        agree(body=f'{name}="{value}"')
    for name in ("fusestatic", "discardvisual", "usethread", "saveinertial", "conflict"):
        agree(top=f'<compiler {name}="{value}"/>')
    for name in ("jacobian", "actuatorgroupdisable", "o_margin", "o_solref", "o_solimp", "o_friction"):
        agree(top=f'<option {name}="{value}"/>')
    for name in ("mode", "useexisting", "accel", "interval"):
        agree(top=f'<compiler><lengthrange {name}="{value}"/></compiler>')


@pytest.mark.parametrize("top, fine", [
    ('<custom><numeric name="a" data="1 2"/></custom>', True), ('<custom><numeric name="a" size="3" data="1 2"/></custom>', True), ('<custom><numeric name="a" size="1" data="1 2"/></custom>', False),
    ('<custom><numeric data="1"/></custom>', False), ('<custom><text name="a" data="x"/></custom>', True), ('<custom><text name="a" data=""/></custom>', False),
    ('<custom><text data="x"/></custom>', False), ('<custom><tuple><element objtype="body" objname="world"/></tuple></custom>', False),
    ('<statistic extent="0"/>', False), ('<statistic extent="-1"/>', False), ('<statistic extent="2"/>', True)])
def test_custom_data_and_statistics(top, fine):
    assert agree(top=top) == fine


def test_places_of_default_cameras_and_lights(tmp_path):
    text = FRAME.format(top='<default><camera pos="1 2 3" euler="0 90 0"/><light pos="0 0 4" dir="1 0 0"/></default>', world='<camera name="a"/><camera name="b" pos="0 0 0"/><light name="l"/>',
                        body="", joint="", geom="", end="")
    (tmp_path / "in.xml").write_text(text)
    subprocess.run([sys.executable, "-m", "tarsus", "convert", tmp_path / "in.xml", tmp_path / "out.xml"], check=True, capture_output=True)
    theirs, ours = mujoco.MjModel.from_xml_string(text), mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
    for field in ("cam_pos", "cam_quat", "light_pos", "light_dir"):
        assert abs(getattr(theirs, field) - getattr(ours, field)).max() < 1e-12, field


FLAT = '<texture name="{}" type="2d" builtin="flat" width="4" height="4"/>'.format
NAMES_IN_LOOKS = [  # the elements, and whether MuJoCo accepts them
    *[(dict(world=f'<{look} mode="{mode}" target="{target}"/>', body='name="b"'), target == "b")
      for look in ("camera", "light") for mode in ("fixed", "track", "targetbody") for target in ("b", "x", "B")],
    *[(dict(world=f'<camera output="{output}"/>'), fine) for output, fine in (
        ("", True), ("rgb", True), ("depth segmentation normal distance rgb", True), ("x", False), ("rgb x", False), ("rgb rgb", False), ("RGB", False))],
    *[(dict(world=f"<camera {values}/>"), fine) for values, fine in (
        ('fovy="179"', True), ('fovy="180"', False), ('fovy="20" sensorsize="1 1" resolution="2 2"', False), ('sensorsize="1 1"', True))],
    *[(dict(world=f'<light dir="{direction}"/>'), fine) for direction, fine in (("0 0 0", False), ("0 0 1e-3", True))],
    *[(dict(top="<asset>" + FLAT("t") + assets + "</asset>"), fine) for assets, fine in (
        ('<material name="m" texture="t"/>', True), ('<material name="m" texture="x"/>', False), ("<material/>", False), ('<material name="m" texture=""/>', True),
        ('<material name="m"><layer texture="t" role="rgb"/></material>', True), ('<material name="m"><layer texture="x" role="rgb"/></material>', False),
        ('<material name="m"><layer texture="t"/></material>', False), ('<material name="m"/>' * 2, False), (FLAT("t"), False), (FLAT(""), False))],
    (dict(top='<asset><material name="m" texture="t"/>' + FLAT("t") + "</asset>"), True),
    *[(dict(top='<asset><material name="m"/></asset>', geom=f'material="{name}"'), name == "m") for name in ("m", "x")],
    *[(dict(top='<asset><material name="m"/></asset>', world=f'<site material="{name}"/>'), name == "m") for name in ("m", "x")],
    (dict(top='<default><default class="c"><geom material="x"/></default></default>'), True),
    (dict(top='<default><geom material="x"/></default>'), False),
    *[(dict(world=f'<{look} name="a"/><{look} name="{name}"/>'), name != "a") for look in ("camera", "light", "frame") for name in ("a", "b")],
    (dict(world='<replicate count="3"><frame name="f"><site name="s"/></frame></replicate>'), True),
    *[(dict(top=f'<custom><{kind} name="a" data="1"/><{kind} name="{name}" data="1"/></custom>'), name != "a") for kind in ("numeric", "text") for name in "ab"],
    *[(dict(top="<custom>" + "".join(f'<tuple name="{name}"><element objtype="body" objname="world"/></tuple>' for name in names) + "</custom>"), names == "ab")
      for names in ("ab", "aa")],
    (dict(top='<custom><tuple name="a"/></custom>'), False),
    (dict(top='<custom><numeric name="a" data="1"/><text name="a" data="x"/></custom>'), True),
]


@pytest.mark.parametrize("parts, fine", NAMES_IN_LOOKS)
def test_names_in_looks_and_custom_data(parts, fine):
    assert agree(**parts) == fine


@pytest.mark.parametrize("kind, given", [("hinge", "30 10"), ("ball", "0 -20"), ("slide", "2 1")])
def test_ranges_in_errors_are_the_files(kind, given):
    with pytest.raises(tarsus.InputError, match=f"'range' is {given}, expected low < high"):
        tarsus.Model.from_xml_string(FRAME.format(top="", world="", body="", joint=f'type="{kind}" range="{given}"', geom="", end=""))


@pytest.mark.parametrize("kind", ["hinge", "slide", "ball", "free"])
def test_forces_of_actuators_are_bounded_on_axes_alone(kind):
    for limits in ('actuatorfrcrange="-1 1"', 'actuatorfrclimited="true"', 'actuatorfrclimited="true" actuatorfrcrange="1 2"'):
        if not agree(joint=f'type="{kind}" {limits}'):
            continue
        text = FRAME.format(top="", world="", body="", joint=f'type="{kind}" {limits}', geom="", end="")
        assert tarsus.Model.from_xml_string(text).joints[0].force_limited == mujoco.MjModel.from_xml_string(text).jnt_actfrclimited[0]


def test_textures_that_are_not_there_are_noted():
    text = FRAME.format(top='<asset><texture name="t" type="2d" file="nowhere.png"/></asset>', world="", body="", joint="", geom="", end="")
    notes = [d for d in tarsus.Model.from_xml_string(text).diagnostics if d.severity == "note"]
    assert len(notes) == 1 and notes[0].line == 2 and '"nowhere.png" is missing' in notes[0].message.replace("'", '"')


@pytest.mark.parametrize("axes", [".546 .27 .328 .091 -.075 -.95", ".945 -.873 -.346 -.176 -.115 -.999", "1 0 0 0 -1 0", "-1 0 0 0 0 -1",
                                  "0 1 0 1 0 0", "0 0 1 0 -1 0", "0 -1 0 -1 0 0", "0 0 -1 0 -1 0", "0 -1 0 0 0 1", "0 0 1 1 0 0"])
def test_quaternions_of_axes_have_mujocos_sign(axes):
    text = f'<mujoco><worldbody><body xyaxes="{axes}"><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
    theirs, ours = mujoco.MjModel.from_xml_string(text).qpos0, tarsus.Model.from_xml_string(text).qpos0
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("kind, name", [("body", "B"), ("xbody", "B"), ("joint", "j"), ("geom", "G"), ("body", "world"), ("site", "s")])
def test_objects_of_tuples_are_there(kind, name):
    for given in (name, "nowhere"):
        top = f'<custom><tuple name="t"><element objtype="{kind}" objname="{given}"/></tuple></custom>'
        assert agree(top=top, world='<site name="s"/>', body='name="B"', geom='name="G"') == (given == name)
    replicated = '<replicate count="2" offset="1 0 0"><body name="R"><joint/><geom size=".1"/></body></replicate>'
    assert agree(top='<custom><tuple name="t"><element objtype="body" objname="R"/></tuple></custom>', world=replicated)
