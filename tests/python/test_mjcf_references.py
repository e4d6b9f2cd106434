"""References by name in MJCF, against MuJoCo: in replicas, in attached models, and to missing elements."""

import pathlib
import subprocess

import mujoco
import numpy as np
import pytest
import tarsus

SCENE = """<mujoco><worldbody><site name="w"/><body name="o" pos="0 0 3"><freejoint/><geom name="og" size=".1"/></body>
<replicate count="2" offset="0 1 0" sep="-"><body name="b" pos="1 0 0"><joint name="j" axis="0 1 0"/><joint name="sl" type="slide" axis="0 1 0"/>
<geom name="g" size=".1" pos=".2 0 0"/><site name="s" pos=".1 .1 0"/>
<replicate count="2" offset="0 0 1" sep="_"><body name="c"><joint name="k" type="ball" pos=".1 .1 .1"/><geom name="gc" size=".1" pos=".3 0 0"/><site name="sc"/></body></replicate>
</body></replicate>
<replicate count="2" offset="0 1 0" sep="+"><body name="B" pos="-1 0 0"><joint name="J" axis="0 1 0"/><geom name="G" size=".1" pos=".2 0 0"/></body></replicate>
</worldbody>{}</mujoco>"""
TENDONS = """<tendon><fixed name="F"><joint joint="J" coef="2"/></fixed><spatial name="t"><site site="w"/><site site="s"/></spatial>
<fixed name="f"><joint joint="j" coef="1"/></fixed></tendon>"""
ACTUATORS = '<actuator><motor name="A" joint="J"/><motor name="a" joint="j"/><motor name="at" tendon="f"/><motor name="aw" site="w"/></actuator>'

SENSORS = """framepos objtype="site" objname="s"|framepos objtype="body" objname="b"|framequat objtype="geom" objname="gc"
framepos objtype="body" objname="o" reftype="site" refname="s"|framelinvel objtype="xbody" objname="b" reftype="xbody" refname="o"
framepos objtype="body" objname="b" reftype="body" refname="c"|framepos objtype="body" objname="c" reftype="body" refname="b"
framepos objtype="body" objname="world" reftype="site" refname="s"
accelerometer site="s"|jointpos joint="j"|ballquat joint="k"|tendonpos tendon="t"|tendonpos tendon="f"|tendonactuatorfrc tendon="f"
actuatorpos actuator="a"|actuatorfrc actuator="at"|actuatorfrc actuator="A"|subtreecom body="b"|subtreelinvel body="c"
distance geom1="og" geom2="g" cutoff="5"|distance geom1="g" geom2="og" cutoff="5"|distance body1="o" body2="b" cutoff="5"|distance geom1="g" geom2="gc" cutoff="5"
insidesite site="s" objtype="body" objname="o"|insidesite site="w" objtype="body" objname="b"
contact geom1="g"|contact site="s"|contact subtree1="b" body2="c"|touch site="sc"|rangefinder site="s"|magnetometer site="s\""""


def read_both(text):
    return mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)


def written(text, folder):
    """MuJoCo's model of the file that `tarsus convert` writes."""
    (folder / "in.xml").write_text(text)
    program = pathlib.Path(tarsus.__file__).parent / "bin/tarsus"
    subprocess.run([program, "convert", folder / "in.xml", folder / "out.xml"], check=True, capture_output=True)
    return mujoco.MjModel.from_xml_path(str(folder / "out.xml"))


def names(count, of):
    return [of(i).name for i in range(count)]


@pytest.mark.parametrize("sensor", SENSORS.replace("\n", "|").split("|"))
def test_sensors_of_replicas_are_replicated(sensor):
    theirs, model = read_both(SCENE.format(f'{TENDONS}{ACTUATORS}<sensor><{sensor} name="n"/></sensor>'))
    d, data = mujoco.MjData(theirs), tarsus.Data(model)
    rng = np.random.default_rng(1)
    mujoco.mj_integratePos(theirs, d.qpos, 0.3 * rng.normal(size=theirs.nv), 1)
    d.qvel[:], d.ctrl[:] = rng.normal(size=theirs.nv), rng.normal(size=theirs.nu)
    theirs.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    mujoco.mj_forward(theirs, d)
    for name in ("qpos", "qvel", "qacc", "ctrl"):
        setattr(data, name, getattr(d, name))
    np.testing.assert_allclose(tarsus.sensors(model, data), d.sensordata, atol=1e-9)


@pytest.mark.parametrize("sequence", ["xyz", "ZYx"])
def test_replicas_turn_by_multiples_of_the_angles(sequence):
    """About several axes this differs from repeating one rotation. The offset is along the axes of the previous replica."""
    theirs, model = read_both(f"""<mujoco><compiler eulerseq="{sequence}"/><worldbody><replicate count="5" offset="1 2 3" euler="90 30 -70">
      <body pos=".1 .3 0" quat=".5 .1 .2 .3"/></replicate></worldbody></mujoco>""")
    d, data = mujoco.MjData(theirs), tarsus.Data(model)
    mujoco.mj_kinematics(theirs, d)
    tarsus.kinematics(model, data, data.qpos)
    rotations, positions = tarsus.body_poses(model, data)
    np.testing.assert_allclose(positions, d.xpos, atol=1e-12)
    np.testing.assert_allclose(rotations.reshape(-1, 9), d.xmat, atol=1e-12)


def test_replicas_have_the_class_of_their_replicate():
    """Which MuJoCo's reference does not have, but its reader."""
    theirs, ours = read_both("""<mujoco><default><default class="a"><geom size=".3"/></default><default class="b"><geom size=".2"/></default></default><worldbody>
      <body childclass="b"><joint/><replicate count="2" childclass="a"><geom/><body><joint/><geom/></body><body childclass="b"><joint/><geom/></body></replicate></body>
      </worldbody></mujoco>""")
    np.testing.assert_allclose(ours.body_mass, theirs.body_mass, rtol=1e-12)


@pytest.mark.parametrize("part, count", [
    ('<motor name="n" joint="j"/>', 2), ('<motor name="n" joint="k"/>', 4), ('<motor name="n" jointinparent="k"/>', 4),
    ('<motor name="n" tendon="f"/>', 2), ('<motor name="n" tendon="t"/>', 2), ('<motor name="n" tendon="F"/>', 2), ('<motor name="n" site="s"/>', 2),
    ('<muscle name="n" tendon="t" lengthrange=".1 1"/>', 2), ('<motor name="n" cranksite="s" slidersite="s" cranklength="1"/>', 2),
    ('<motor name="n" site="s" refsite="w"/>', 0), ('<motor name="n" cranksite="w" slidersite="s" cranklength="1"/>', 0),
    ('<adhesion name="n" body="b" gain="1" ctrlrange="0 1"/>', 2)])
def test_actuators_on_replicas_are_replicated(part, count):
    theirs, model = read_both(SCENE.format(f'{TENDONS}<actuator>{part}</actuator><sensor><actuatorfrc actuator="n"/></sensor>'))
    assert model.nu == theirs.nu == theirs.nsensordata == count
    assert any("left out" in str(d) for d in model.diagnostics) == (count == 0)
    d, data = mujoco.MjData(theirs), tarsus.Data(model)
    d.ctrl[:] = np.arange(1, theirs.nu + 1) / 4
    data.ctrl = d.ctrl
    mujoco.mj_forward(theirs, d)
    assert tarsus.sensors(model, data).size == count
    if "adhesion" not in part:
        np.testing.assert_allclose(tarsus.actuation(model, data)["qfrc_actuator"], d.qfrc_actuator, atol=1e-9)


@pytest.mark.parametrize("part", [
    '<actuator><motor joint="{}"/></actuator>', '<tendon><fixed><joint joint="{}" coef="1"/></fixed></tendon>', '<sensor><jointpos joint="{}"/></sensor>',
    '<equality><joint joint1="{}"/></equality>'])
def test_names_of_replicas_and_of_what_is_replicated_differ(part):
    """The first replica of j1 is j10. MuJoCo makes elements for it and for the replicas of j10."""
    body = '<body pos="{0} 0 0"><joint name="j{0}"/><geom size=".1"/></body>'
    text = f'<mujoco><worldbody><replicate count="2" offset="0 1 0" {{}}>{body.format(1)}{body.format(10)}</replicate></worldbody>\n{part}</mujoco>'
    assert tarsus.Model.from_xml_string(text.format("", "j1")).nv == 4
    with pytest.raises(tarsus.InputError, match=":2:.*joint 'j10' is replicated, but a replica of joint 'j1' has that name too"):
        tarsus.Model.from_xml_string(text.format("", "j10"))
    for joint in ("j1", "j10"):
        theirs, ours = read_both(text.format('sep="_"', joint))
        assert (ours.nu, ours.nq) == (theirs.nu, theirs.nq)


@pytest.mark.parametrize("part", [
    '<equality><tendon tendon1="f"/></equality>', '<equality><tendon tendon1="f" tendon2="t"/></equality>', '<equality><tendon tendon1="f" tendon2="F"/></equality>',
    '<equality><joint joint1="j" joint2="sl"/></equality>', '<equality><joint joint1="j" joint2="J"/></equality>',
    '<equality><weld body1="b" body2="o"/></equality>', '<equality><weld body1="o" body2="b"/></equality>', '<equality><weld body1="b"/></equality>',
    '<equality><weld body1="b" body2="c"/></equality>', '<equality><weld body1="b" body2="world"/></equality>', '<equality><weld site1="s" site2="w"/></equality>',
    '<contact><pair geom1="og" geom2="g"/></contact>', '<contact><pair geom1="gc" geom2="g"/></contact>', '<contact><exclude body1="c" body2="b"/></contact>',
    '<contact><exclude body1="c" body2="B"/></contact>', '<sensor><framepos objtype="body" objname="b" reftype="body" refname="B"/></sensor>'])
def test_what_refers_to_replicas_is_there_as_often_as_in_mujoco(part, tmp_path):
    text = SCENE.format(TENDONS + part)
    try:
        theirs = mujoco.MjModel.from_xml_string(text)
    except ValueError:
        with pytest.raises(tarsus.InputError, match="no replica contains all"):
            tarsus.Model.from_xml_string(text)
        return
    ours = written(text, tmp_path)
    for array in ("eq_type", "eq_obj1id", "eq_obj2id", "pair_geom1", "pair_geom2", "exclude_signature", "sensor_objid"):
        np.testing.assert_array_equal(getattr(ours, array), getattr(theirs, array), array)


def test_what_is_replicated_stands_in_mujocos_order(tmp_path):
    sections = TENDONS + ACTUATORS + '<sensor><jointpos name="J" joint="J"/><actuatorfrc name="x" actuator="at"/><jointpos name="j" joint="j"/>' \
        '<ballquat name="k" joint="k"/><framepos name="o" objtype="body" objname="o"/></sensor>'
    theirs, ours = mujoco.MjModel.from_xml_string(SCENE.format(sections)), written(SCENE.format(sections), tmp_path)
    for array in ("actuator_trnid", "sensor_objid", "wrap_objid"):
        np.testing.assert_array_equal(getattr(ours, array), getattr(theirs, array), array)
    for kind, count in (("actuator", theirs.nu), ("sensor", theirs.nsensor), ("tendon", theirs.ntendon)):
        assert names(count, getattr(ours, kind)) == names(count, getattr(theirs, kind))


def test_what_is_attached_and_replicated_stands_in_mujocos_order(tmp_path):
    """The order of traversal: the descendants of a replica come before the next replica, and attached elements before a later
    replica."""
    inner = '''<mujoco><worldbody><body name="b"><joint name="j"/><geom size=".1"/><replicate count="2" offset="1 0 0"><body name="c"><joint name="k"/><geom size=".1"/></body></replicate></body></worldbody>
<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon><actuator><motor name="a" joint="j"/><motor name="x" joint="k"/></actuator><sensor><jointpos name="s" joint="j"/><jointpos name="r" joint="k"/></sensor></mujoco>'''
    outer = '''<mujoco><asset><model name="m" file="inner.xml"/></asset><worldbody><attach model="m" body="b" prefix="A_"/>
<replicate count="2" sep="-" offset="0 1 0"><body name="o"><joint name="q"/><geom size=".1"/><attach model="m" body="b" prefix="B_"/></body></replicate><attach model="m" body="b" prefix="C_"/><body><joint name="z"/><geom size=".1"/></body></worldbody>
<tendon><fixed name="u"><joint joint="q" coef="1"/></fixed><fixed name="v"><joint joint="z" coef="1"/></fixed></tendon><actuator><motor name="p" joint="q"/><motor name="y" joint="z"/></actuator><sensor><jointpos name="w" joint="q"/><jointpos name="n" joint="z"/></sensor></mujoco>'''
    (tmp_path / "inner.xml").write_text(inner)
    (tmp_path / "in.xml").write_text(outer)
    theirs, ours = mujoco.MjModel.from_xml_path(str(tmp_path / "in.xml")), written(outer, tmp_path)
    for kind, count in (("actuator", theirs.nu), ("sensor", theirs.nsensor), ("tendon", theirs.ntendon)):
        assert names(count, getattr(ours, kind)) == names(count, getattr(theirs, kind))
    np.testing.assert_array_equal(ours.actuator_trnid, theirs.actuator_trnid)


KEYED = """<mujoco model="keyed"><custom><numeric name="n" data="1 2"/><text name="t" data="x"/></custom><worldbody><body name="b" pos="0 0 1"><freejoint/><geom size=".1"/>
<replicate count="2" sep="-" offset="0 1 0"><body name="c"><joint name="k" axis="0 1 0"/><geom size=".1"/></body></replicate></body><body><joint/><geom size=".1"/></body>
<body mocap="true" pos="1 2 3"/></worldbody><actuator><general name="i" joint="k" dyntype="integrator"/><dcmotor name="m" joint="k" motorconst="1" resistance="1"/></actuator>
<keyframe><key name="full" time="2" qpos="1 2 3 0 2 0 0 .4 .5 .6" qvel="1 2 3 4 5 6 7 8 9" ctrl=".1 .2 .3 .4" act=".5 .6" mpos="7 8 9" mquat="0 0 1 0"/>
<key name="short" qpos="1 2" act=".7"/><key/></keyframe></mujoco>"""


@pytest.mark.parametrize("attached", [
    '<attach model="keyed" prefix="A_"/><attach model="keyed" prefix="B_"/>', '<body><joint name="own"/><geom size=".1"/></body><frame pos="0 0 3"><attach model="keyed" prefix="A_"/></frame>',
    '<attach model="keyed" body="b" prefix="A_"/>', '<replicate count="2" sep="+"><attach model="keyed" prefix="A_"/></replicate>'])  # fmt: skip
def test_keyframes_and_custom_data_of_attached_models(attached, tmp_path):
    (tmp_path / "keyed.xml").write_text(KEYED)
    text = f'''<mujoco><custom><numeric name="n" data="3"/></custom><asset><model name="keyed" file="keyed.xml"/></asset><worldbody>
<body pos="2 0 0"><joint name="first" ref=".3"/><geom size=".1"/></body>{attached}</worldbody><actuator><motor joint="first"/></actuator><keyframe><key name="mine" ctrl="2"/></keyframe></mujoco>'''
    (tmp_path / "in.xml").write_text(text)
    theirs, ours = mujoco.MjModel.from_xml_path(str(tmp_path / "in.xml")), written(text, tmp_path)
    assert theirs.nkey == 1 + 3 * (2 if "B_" in attached else 1)
    their_names = [name if name not in ("A_", "B_") else "" for name in names(theirs.nkey, theirs.key)]  # MuJoCo gives unnamed keys the prefix as a name
    assert their_names == names(ours.nkey, ours.key)
    for array in ("key_time", "key_qpos", "key_qvel", "key_ctrl", "key_act", "key_mpos", "key_mquat", "numeric_data"):
        np.testing.assert_allclose(getattr(ours, array), getattr(theirs, array), atol=1e-12, err_msg=array)
    assert names(theirs.nnumeric, theirs.numeric) == names(ours.nnumeric, ours.numeric) and theirs.ntext == ours.ntext


@pytest.mark.parametrize("there", [("m",), ("sub",), ("m", "sub"), ("sub", "sub/m"), (".", "sub"), ("m", "sub", "sub/m", ".")])
def test_files_that_an_included_file_names_are_those_of_mujoco(there, tmp_path):
    for size, folder in enumerate(("m", "sub", "sub/m", "."), 1):
        (tmp_path / folder).mkdir(exist_ok=True, parents=True)
        if folder in there:
            corners = "".join(f"v {x * size} {y * size} {z * size}\n" for x, y, z in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)))
            (tmp_path / folder / "f.obj").write_text(corners + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    (tmp_path / "sub/part.xml").write_text('<mujocoinclude><asset><mesh name="k" file="f.obj"/></asset></mujocoinclude>')
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><compiler meshdir="m"/><include file="sub/part.xml"/><worldbody><body><joint/><geom type="mesh" mesh="k"/></body></worldbody></mujoco>')
    np.testing.assert_allclose(tarsus.Model.load(main).body_mass, mujoco.MjModel.from_xml_path(str(main)).body_mass, rtol=1e-6)


@pytest.mark.parametrize("there", [("sub",), ("sub", "."), ("sub", "sub/sub")])
def test_models_that_an_included_file_names_are_those_beside_it(there, tmp_path):
    (tmp_path / "sub/sub").mkdir(parents=True)
    for mass, folder in enumerate(("sub", ".", "sub/sub"), 1):
        if folder in there:
            (tmp_path / folder / "m.xml").write_text(f'<mujoco model="m"><worldbody><body name="b"><joint/><geom size=".1" mass="{mass}"/></body></worldbody></mujoco>')
    (tmp_path / "sub/part.xml").write_text('<mujocoinclude><asset><model name="m" file="m.xml"/></asset></mujocoinclude>')
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><include file="sub/part.xml"/><worldbody><attach model="m" body="b" prefix="A_"/></worldbody></mujoco>')
    np.testing.assert_allclose(tarsus.Model.load(main).body_mass, mujoco.MjModel.from_xml_path(str(main)).body_mass, rtol=1e-12)


def test_what_a_text_names_lies_in_its_folder(tmp_path, monkeypatch):
    for folder, mass in (("here", 1), ("there", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.xml").write_text(f'<mujoco model="m"><worldbody><body name="b"><joint/><geom size=".1" mass="{mass}"/></body></worldbody></mujoco>')
    monkeypatch.chdir(tmp_path / "here")
    text = '<mujoco><asset><model name="m" file="m.xml"/></asset><worldbody><attach model="m" body="b" prefix="A_"/></worldbody></mujoco>'
    assert tarsus.Model.from_xml_string(text, directory=tmp_path / "there").body_mass[1] == 2


@pytest.mark.parametrize("root", ["robot", "mujocoinclude"])
def test_what_is_no_mjcf_model_is_not_attached(root, tmp_path):
    (tmp_path / "m.xml").write_text(f'<{root} name="r"><link name="base"/></{root}>')
    (tmp_path / "main.xml").write_text('<mujoco><asset>\n<model name="m" file="m.xml"/></asset><worldbody><attach model="m" body="base" prefix="A_"/></worldbody></mujoco>')
    with pytest.raises(tarsus.InputError) as refusal:
        tarsus.Model.load(tmp_path / "main.xml")
    assert f"main.xml:2:17: error: the root element of the model is <{root}>; only MJCF's" in str(refusal.value)
    assert len(refusal.value.diagnostics) == 1 and "no body named" not in str(refusal.value)


@pytest.mark.parametrize("model, fine", [('file="m.xml"', True), ('name="m" file="m.xml" content_type="text/xml"', True), ('file="m.xml" prefix="a"', False),
                                         ('file="none.xml"', False), ('file="open.xml"', False)])  # fmt: skip
def test_models_that_nothing_attaches_are_read(model, fine, tmp_path):
    (tmp_path / "m.xml").write_text("<mujoco><worldbody/></mujoco>")
    (tmp_path / "open.xml").write_text("<mujoco><worldbody></mujoco>")
    (tmp_path / "main.xml").write_text(f"<mujoco><asset>\n<model {model}/></asset></mujoco>")
    if fine:
        mujoco.MjModel.from_xml_path(str(tmp_path / "main.xml"))
        tarsus.Model.load(tmp_path / "main.xml")
        return
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_path(str(tmp_path / "main.xml"))
    with pytest.raises(tarsus.InputError, match=r"main.xml:2:|open.xml:1:"):
        tarsus.Model.load(tmp_path / "main.xml")


def test_keys_of_attached_models_that_are_too_long_are_refused_at_their_line(tmp_path):
    (tmp_path / "keyed.xml").write_text(KEYED.replace('qpos="1 2"', 'qpos="1 2 3 1 0 0 0 1 1 1 1"'))
    (tmp_path / "in.xml").write_text('<mujoco><asset><model name="keyed" file="keyed.xml"/></asset><worldbody><attach model="keyed" body="b" prefix="A_"/></worldbody></mujoco>')
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_path(str(tmp_path / "in.xml"))
    with pytest.raises(tarsus.InputError, match="keyed.xml:5:.*'qpos' has 11 numbers, expected 10"):
        tarsus.Model.load(tmp_path / "in.xml")


MISSING = ["jointpos", 'jointpos joint="x"', 'framepos objname="o"', 'framepos objtype="body"', 'framepos objtype="body" objname="x"',
           'framepos objtype="joint" objname="J"', 'framepos objtype="body" objname="o" reftype="body"',
           'framepos objtype="body" objname="o" refname="o"', 'framepos objtype="body" objname="o" reftype="body" refname="x"',
           'distance geom1="og"', 'distance geom1="og" geom2="x"', 'insidesite objtype="body" objname="o"', "rangefinder",
           'rangefinder site="x"', 'touch site="x"', "subtreecom", 'subtreecom body="x"', 'tendonpos tendon="x"', 'actuatorfrc actuator="x"',
           'contact geom1="x"', 'contact body1="world" geom2="x"', 'camprojection site="w" camera="x"', 'user dim="1" objtype="body" objname="x"',
           'jointpos joint="k"', 'ballquat joint="j"']


@pytest.mark.parametrize("sensor", MISSING)
def test_sensors_of_what_is_not_there_are_refused_at_their_line(sensor):
    text = SCENE.format(f"<sensor>\n<{sensor}/></sensor>")
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(tarsus.InputError) as refusal:
        tarsus.Model.from_xml_string(text)
    assert f":{1 + text[: text.index(sensor)].count(chr(10))}:" in str(refusal.value)


ARM = """<mujoco model="arm"><worldbody><site name="w"/><body name="b" pos="0 0 1"><joint name="j" axis="0 1 0"/><geom name="g" size=".1" pos=".3 0 0"/>
<site name="s" pos=".1 .2 0"/><body name="c" pos=".5 0 0"><joint name="k" type="ball"/><geom name="h" size=".1" pos=".1 0 0"/><site name="t" pos=".3 .1 0"/></body></body></worldbody>
<contact><pair geom1="g" geom2="h"/><exclude body1="b" body2="c"/></contact>
<tendon><spatial name="tt"><site site="t"/><site site="s"/></spatial><fixed name="f"><joint joint="j" coef="2"/></fixed></tendon>
<equality><connect body1="c" anchor="0 0 0"/><weld body1="c" body2="b"/><weld body1="c"/><joint joint1="j"/><tendon tendon1="f"/></equality>
<actuator><motor name="a" joint="j"/><motor name="p" tendon="f"/><motor name="q" site="t" refsite="s"/><motor name="sc" cranksite="t" slidersite="s" cranklength="1"/>
<motor name="sc2" cranksite="s" slidersite="t" cranklength="1"/><motor name="sc3" site="t" refsite="w"/><motor name="ji" jointinparent="k"/></actuator>
<sensor><framepos name="fp" objtype="site" objname="s" reftype="body" refname="c"/><tendonpos name="tp" tendon="tt"/><actuatorfrc name="af" actuator="a"/>
<distance name="di" geom1="g" geom2="h" cutoff="4"/><insidesite name="is" site="s" objtype="body" objname="c"/><ballquat name="bq" joint="k"/>
<framepos name="fw" objtype="site" objname="w"/><framepos name="fr" objtype="body" objname="c" reftype="site" refname="s"/><contact name="co" geom1="h" body2="b"/>
<framepos name="wo" objtype="body" objname="c" reftype="body" refname="world"/><actuatorfrc name="ag" actuator="ji"/><subtreecom name="sw" body="world"/><clock name="cl"/></sensor></mujoco>"""


@pytest.mark.parametrize("part", ['body="b"', 'body="c"', ""])
def test_what_refers_to_what_was_not_attached_is_left_out(part, tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    (tmp_path / "main.xml").write_text('<mujoco><asset><model name="arm" file="arm.xml"/></asset><worldbody><body name="base"><geom size=".1"/>'
                                       f'<attach model="arm" {part} prefix="A_"/></body></worldbody></mujoco>')
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "main.xml"))
    ours = written((tmp_path / "main.xml").read_text(), tmp_path)
    left_out = [d for d in tarsus.Model.load(tmp_path / "main.xml").diagnostics if d.severity == "note" and "left out" in d.message]
    assert (len(left_out) > 0) == (part != "")
    for kind in ("actuator", "sensor", "tendon"):
        count = {"actuator": theirs.nu, "sensor": theirs.nsensor, "tendon": theirs.ntendon}[kind]
        assert names(count, getattr(ours, kind)) == names(count, getattr(theirs, kind))
    for array in ("eq_type", "eq_obj1id", "eq_obj2id", "pair_geom1", "exclude_signature", "sensor_objid", "sensor_refid", "actuator_trnid"):
        np.testing.assert_array_equal(getattr(ours, array), getattr(theirs, array), array)


@pytest.mark.parametrize("tendon", ['<fixed name="n"><joint joint="j" coef="1"/><joint joint="o" coef="1"/></fixed>', '<spatial name="n"><site site="s"/><site site="o"/></spatial>'])
def test_tendons_of_attached_models_take_nothing_of_the_main_one(tendon, tmp_path):
    body = '<body name="{0}"><joint name="{1}"/><geom size=".1"/><site name="{2}"/></body>'
    (tmp_path / "arm.xml").write_text(f'<mujoco><worldbody>{body.format("b", "j", "s")}{body.format("c", "o", "o")}</worldbody><tendon>{tendon}</tendon></mujoco>')
    (tmp_path / "main.xml").write_text(f'<mujoco><asset><model name="arm" file="arm.xml"/></asset><worldbody>{body.format("c", "o", "o")}'
                                       '<attach model="arm" body="b" prefix="A_"/></worldbody></mujoco>')
    ours = tarsus.Model.load(tmp_path / "main.xml")
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "main.xml")).ntendon == 1
    assert len(tarsus.actuation(ours, tarsus.Data(ours))["ten_length"]) == 0
    assert any("left out" in d.message for d in ours.diagnostics)


@pytest.mark.parametrize("part", ['body="b"', 'frame="f"'])
def test_what_is_replicated_is_not_attached_by_the_name_of_its_original(part, tmp_path):
    (tmp_path / "c.xml").write_text('<mujoco><worldbody><replicate count="2"><body name="b"><frame name="f"><geom size=".1"/></frame></body></replicate></worldbody></mujoco>')
    (tmp_path / "main.xml").write_text(f'<mujoco><asset><model name="c" file="c.xml"/></asset><worldbody>\n<attach model="c" {part} prefix="p"/></worldbody></mujoco>')
    with pytest.raises(ValueError, match="could not find"):
        mujoco.MjModel.from_xml_path(str(tmp_path / "main.xml"))
    with pytest.raises(tarsus.InputError, match=r":2:\d+: error: model 'c' has no (body|frame) named"):
        tarsus.Model.load(tmp_path / "main.xml")


REPLICATED = {
    "plain": """<replicate count="3" offset="1 0 0" euler="0 0 .3"><body name="b" pos=".1 0 0"><joint name="j"/><geom size=".1"/>
        <body name="c" pos="0 0 1"><joint name="k"/><geom size=".1"/></body></body></replicate>""",
    "in a frame": '<frame name="f" pos="0 5 0"><replicate count="3" offset="1 0 0"><body name="b" pos=".1 0 0"><joint name="j"/><geom size=".1"/></body></replicate></frame>',
    "a frame": '<replicate count="3" offset="1 0 0"><frame name="f" pos="0 7 0"><body name="b" pos=".1 0 0"><joint name="j"/><geom size=".1"/></body></frame></replicate>',
    "nested": """<replicate count="2" offset="1 0 0" sep="_"><replicate count="12" offset="0 1 0" sep="-"><body name="b"><joint name="j"/><geom size=".1"/></body>
        </replicate></replicate>""",
    "in a body": '<body name="a"><geom size=".1"/><replicate count="3" offset="1 0 0"><body name="b"><joint name="j"/><geom size=".1"/></body></replicate></body>'}


@pytest.mark.parametrize("outer", ['<frame pos="0 0 9">{}</frame>', '<replicate count="2" offset="0 0 9"><body name="o"><geom size=".1"/>{}</body></replicate>'])
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("kind", REPLICATED)
def test_a_replica_is_attached_by_its_own_name(kind, keyed, outer, tmp_path):
    def text(key=""):
        return (f'<mujoco><worldbody>{REPLICATED[kind]}</worldbody><actuator><motor name="m" joint="j"/></actuator>'
                f'<sensor><jointpos name="s" joint="j"/></sensor>{key}</mujoco>')

    nq = mujoco.MjModel.from_xml_string(text()).nq
    (tmp_path / "c.xml").write_text(text(f'<keyframe><key name="k" qpos="{" ".join(str(0.1 * i) for i in range(1, nq + 1))}"/></keyframe>' if keyed else ""))
    main, attached = tmp_path / "main.xml", 0
    for part in ('body="b1"', 'body="b0"', 'body="b-03_1"', 'frame="f"', 'frame="f1"', 'body="c1"', 'body="b"', 'body="b3"', 'body="b12"', 'body="b-1"', 'body="b-3_1"'):
        main.write_text('<mujoco><asset><model name="c" file="c.xml"/></asset><worldbody>\n' + outer.format(f'<attach model="c" {part} prefix="p_"/>') + "</worldbody></mujoco>")
        try:
            theirs = mujoco.MjModel.from_xml_path(str(main))
        except ValueError:
            with pytest.raises(tarsus.InputError, match=r":2:\d+: error: model 'c' has no (body|frame) named"):
                tarsus.Model.load(main)
            continue
        attached += 1
        ours = written(main.read_text(), tmp_path)
        for of, count in (("body", theirs.nbody), ("joint", theirs.njnt), ("actuator", theirs.nu), ("sensor", theirs.nsensor), ("key", theirs.nkey)):
            assert names(count, getattr(ours, of)) == names(count, getattr(theirs, of)), part
        for array in ("body_pos", "body_quat", "actuator_trnid", "sensor_objid", "key_qpos"):
            np.testing.assert_allclose(getattr(ours, array), getattr(theirs, array), atol=1e-9, err_msg=f"{array} {part}")
    assert attached >= 1


def test_attached_names_have_a_prefix(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    main = tmp_path / "main.xml"
    for prefix, fine in (('prefix="A_"', True), ('prefix=""', True), ("", False)):
        main.write_text(f'<mujoco><asset><model name="arm" file="arm.xml"/></asset><worldbody><attach model="arm" body="b" {prefix}/></worldbody></mujoco>')
        if fine:
            assert mujoco.MjModel.from_xml_path(str(main)).nbody == len(tarsus.Model.load(main).bodies)
            continue
        with pytest.raises(ValueError, match="prefix"):
            mujoco.MjModel.from_xml_path(str(main))
        with pytest.raises(tarsus.InputError, match="prefix"):
            tarsus.Model.load(main)


WORLD = """<mujoco model="w"><worldbody><geom size=".3" pos="0 0 .2"/><site name="ws" pos=".1 0 0"/>
<body name="b" pos="0 0 1"><joint name="j" axis="0 1 0"/><geom size=".1"/></body></worldbody>
<worldbody><body name="c" pos="1 0 1"><joint name="k" axis="1 0 0"/><geom size=".2"/></body></worldbody>
<contact><exclude body1="world" body2="b"/></contact>
<equality><connect body1="b" body2="world" anchor="0 0 .1"/><connect body1="c" anchor="0 0 .1"/><weld body1="world" body2="c"/></equality>
<sensor><framepos name="s" objtype="body" objname="world"/><framepos name="t" objtype="site" objname="ws"/><subtreecom name="u" body="world"/></sensor></mujoco>"""


@pytest.mark.parametrize("attached", [
    "{A}", '<frame pos="0 1 0" euler="0 90 0">{A}</frame>', '<replicate count="2" offset="3 0 0">{A}</replicate>',
    '<body name="base" pos="0 0 2"><joint/><geom size=".1"/>{A}</body>',
    '<body name="base" pos="0 0 2"><joint/><geom size=".1"/><frame pos="0 1 0" euler="0 90 0">{A}</frame><body name="last"><joint/><geom size=".1"/></body></body>'])  # fmt: skip
@pytest.mark.parametrize("body", ["", 'body="world"'])
def test_whole_worlds_are_attached_in_order_or_as_a_body(attached, body, tmp_path):
    (tmp_path / "w.xml").write_text(WORLD)
    main = tmp_path / "main.xml"
    attached = attached.replace("{A}", f'<attach model="w" {body} prefix="p_"/>')
    main.write_text(f'<mujoco><asset><model name="w" file="w.xml"/></asset><worldbody>{attached}</worldbody></mujoco>')
    theirs, model = mujoco.MjModel.from_xml_path(str(main)), tarsus.Model.load(main)
    assert model.body_name == names(theirs.nbody, theirs.body) and model.joint_name == names(theirs.njnt, theirs.joint)
    np.testing.assert_allclose(model.body_mass, theirs.body_mass, rtol=1e-12)
    ours = written(main.read_text(), tmp_path)
    for array in ("body_parentid", "body_pos", "eq_type", "eq_obj1id", "eq_obj2id", "exclude_signature", "sensor_objtype", "sensor_objid"):
        np.testing.assert_allclose(getattr(ours, array), getattr(theirs, array), rtol=0, atol=1e-12, err_msg=array)


@pytest.mark.parametrize("outer", ["true", "false"])
@pytest.mark.parametrize("inner", ["true", "false"])
@pytest.mark.parametrize("folder", ["", 'meshdir="b"'])
def test_files_of_attached_models_are_where_the_main_one_says(outer, inner, folder, tmp_path):
    for k, place in enumerate([".", "a", "sub", "sub/a", "sub/b", "sub/b/a"]):
        (tmp_path / place).mkdir(exist_ok=True)
        size = 0.1 * (k + 1)
        (tmp_path / place / "m.obj").write_text(f"v 0 0 0\nv {size} 0 0\nv 0 {size} 0\nv 0 0 {size}\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    text = """<mujoco><compiler strippath="{}" {}/><asset><mesh name="m" file="a/m.obj"/>{}</asset><worldbody><body name="b"><joint/><geom type="mesh" mesh="m"/></body>{}</worldbody></mujoco>"""
    (tmp_path / "sub/c.xml").write_text(text.format(inner, folder, "", ""))
    (tmp_path / "main.xml").write_text(text.format(outer, "", '<model name="c" file="sub/c.xml"/>', '<attach model="c" prefix="p"/>'))
    theirs, model = mujoco.MjModel.from_xml_path(str(tmp_path / "main.xml")), tarsus.Model.load(tmp_path / "main.xml")
    np.testing.assert_allclose(model.body_mass, theirs.body_mass, rtol=1e-6)


@pytest.mark.parametrize("outer", ["true", "false"])
def test_shapes_of_attached_models_are_fitted_as_the_main_one_says(outer, tmp_path):
    inner = "false" if outer == "true" else "true"
    (tmp_path / "inner.xml").write_text(f'<mujoco><compiler fitaabb="{inner}"/><asset><mesh name="m" vertex="0 0 0 1 0 0 0 2 0 0 0 3"/></asset>'
                                        '<worldbody><body name="b"><joint/><geom type="box" mesh="m"/></body></worldbody></mujoco>')
    main = tmp_path / "main.xml"
    main.write_text(f'<mujoco><compiler fitaabb="{outer}"/><asset><model name="i" file="inner.xml"/></asset><worldbody><attach model="i" body="b" prefix="p_"/></worldbody></mujoco>')
    np.testing.assert_allclose(tarsus.Model.load(main).body_mass, mujoco.MjModel.from_xml_path(str(main)).body_mass, rtol=1e-6)
