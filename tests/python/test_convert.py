"""What `tarsus convert` writes loads in MuJoCo, with the same sizes."""

import json
import pathlib
import struct
import subprocess
import zlib

import mujoco
import numpy as np
import pytest
import tarsus
from oracle import DATA


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")


PROGRAM = pathlib.Path(tarsus.__file__).parent / "bin/tarsus"


def converted(source, target):
    subprocess.run([PROGRAM, "convert", source, target], check=True, capture_output=True)
    return mujoco.MjModel.from_xml_path(str(target))


@pytest.mark.parametrize("target", ["out.xml", "there/out.xml", "../out.xml"])
def test_textures_are_named_from_where_the_new_file_lies(target, tmp_path):
    home = tmp_path / "home"
    (home / "pictures").mkdir(parents=True), (home / "there").mkdir()
    (home / "pictures/skin.png").write_bytes(png())
    (home / "arm.xml").write_text('<mujoco model="arm"><compiler texturedir="pictures"/><asset><texture type="2d" file="skin.png"/><texture name="two" type="2d" builtin="flat" '
                                  'width="8" height="8"/><material name="m" texture="skin"/><material name="n"><layer role="rgb" texture="two"/></material></asset>'
                                  '<worldbody><body name="b"><joint/><geom size=".1" material="m"/><camera mode="targetbody" target="b" pos="0 0 2"/></body></worldbody></mujoco>')
    (home / "main.xml").write_text('<mujoco><asset><model name="arm" file="arm.xml"/></asset><worldbody><attach model="arm" body="b" prefix="A_"/></worldbody></mujoco>')
    for name in ("arm.xml", "main.xml"):
        theirs, ours = mujoco.MjModel.from_xml_path(str(home / name)), converted(home / name, home / target)
        assert (ours.ntex, ours.nmat) == (theirs.ntex, theirs.nmat)
        assert [ours.mat(i).name for i in range(2)] == [theirs.mat(i).name for i in range(2)]
        assert (ours.mat_texid == theirs.mat_texid).all() and (ours.tex_data == theirs.tex_data).all()
        assert (ours.cam_targetbodyid == theirs.cam_targetbodyid).all()
        (home / target).unlink()


def test_links_without_inertia_are_written_as_mujoco_reads_them(tmp_path):
    (tmp_path / "a.urdf").write_text("""<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="t"><inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="u"><inertial><mass value="2"/><inertia ixx=".5" iyy=".5" izz="1" ixy=".5" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="fixed"><parent link="a"/><child link="t"/></joint><joint name="k" type="fixed"><parent link="a"/><child link="u"/></joint></robot>""")
    ours = converted(tmp_path / "a.urdf", tmp_path / "b.xml")
    model = tarsus.Model.load(tmp_path / "b.xml")
    assert ours.body("u").mass == 2 and sorted(ours.body("u").inertia.round(12)) == [0, 1, 1]
    assert model.bodies[3].mass == 2


@pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data beside the repository")
@pytest.mark.parametrize("name", ["menagerie/agility_cassie/scene.xml", "mujoco/model/humanoid/22_humanoids.xml", "mujoco/model/hammock/hammock.xml",
                                  "mujoco/test/engine/testdata/island/2humanoid100.xml", "bullet3/data/hinge.urdf",
                                  "example_robot_data/robots/quadruped_description/urdf/quadruped.urdf"])
def test_models_of_others_load_in_mujoco_when_converted(name, tmp_path):
    ours = converted(DATA / name, tmp_path / "out.xml")
    model = tarsus.Model.load(DATA / name)
    assert (ours.nq, ours.nv, ours.nu, ours.na, ours.nbody) == (model.nq, model.nv, model.nu, model.na, model.nbody)


@pytest.mark.parametrize("target, says", [("out.urdf", ["lost: actuators (1)", "lost: sites (1)"]), ("out.xml", [])])
def test_what_is_lost_is_said(target, says, tmp_path):
    (tmp_path / "in.xml").write_text('<mujoco><worldbody><body><joint name="j"/><geom size=".1"/><site name="s"/></body></worldbody>'
                                     '<actuator><motor joint="j"/></actuator></mujoco>')
    for words in ([], ["--json"]):
        done = subprocess.run([PROGRAM, "convert", tmp_path / "in.xml", tmp_path / target, *words], check=True, capture_output=True, text=True)
        lines = json.loads(done.stdout)["warnings"] if words else done.stderr.splitlines()
        assert [line for line in lines if "lost" in line] == [f"{tmp_path / target}: warning: {what}" for what in says]


def test_inertias_that_readers_of_mjcf_refuse_are_said(tmp_path):
    (tmp_path / "in.urdf").write_text("""<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="3" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>""")
    done = subprocess.run([PROGRAM, "convert", tmp_path / "in.urdf", tmp_path / "out.xml"], check=True, capture_output=True, text=True)
    assert "kept: inertias that violate the triangle inequality; MJCF readers refuse them, --fix balance repairs them (1)" in done.stderr


@pytest.mark.parametrize("actuator", ["cylinder", 'muscle lengthrange="0 1"', 'general dyntype="integrator"', "intvelocity"])
@pytest.mark.parametrize("limited", ["true", "false", "auto"])
def test_of_a_class_only_a_general_has_whether_its_activation_is_limited(actuator, limited, tmp_path):
    file = tmp_path / "in.xml"
    file.write_text(f'<mujoco><default><general actlimited="{limited}" actrange="0 .5"/></default><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>'
                    f'<actuator><{actuator} joint="j"/></actuator></mujoco>')
    theirs, ours = mujoco.MjModel.from_xml_path(str(file)), converted(file, tmp_path / "out.xml")
    assert ours.actuator_actlimited == theirs.actuator_actlimited
    if theirs.actuator_actlimited:
        assert ours.actuator_actrange.tolist() == theirs.actuator_actrange.tolist()


def test_a_warning_of_each_kind_is_printed_once(tmp_path):
    (tmp_path / "arm.xml").write_text('<mujoco model="arm"><option timestep=".1"/><worldbody><body name="b"><joint/><geom size=".1"/></body></worldbody></mujoco>')
    copies = "".join(f'<attach model="arm" body="b" prefix="{prefix}_"/>' for prefix in "ABC")
    (tmp_path / "main.xml").write_text(f'<mujoco><asset><model name="arm" file="arm.xml"/></asset><worldbody>{copies}</worldbody></mujoco>')
    program = pathlib.Path(tarsus.__file__).parent / "bin/tarsus"
    printed = subprocess.run([program, "convert", tmp_path / "main.xml", tmp_path / "out.xml"], check=True, capture_output=True, text=True).stderr
    assert printed.count("options of attached models") == 1 and "(and 2 more of this kind)" in printed


def test_planes_of_urdf_have_the_spacing_that_mjcf_asks_for(tmp_path):
    (tmp_path / "floor.urdf").write_text('<robot name="f"><link name="ground"><collision><geometry><plane normal="0 0 1"/></geometry></collision></link></robot>')
    assert converted(tmp_path / "floor.urdf", tmp_path / "floor.xml").geom_size.tolist() == [[0, 0, 1]]


def test_principal_axes_that_sensors_read_stay(tmp_path):
    (tmp_path / "in.xml").write_text('<mujoco><worldbody><body name="b"><freejoint/><inertial mass="1" pos=".1 0 0" euler="10 20 30" diaginertia=".1 .2 .25"/></body></worldbody>'
                                     '<sensor><framequat objtype="body" objname="b"/></sensor></mujoco>')
    theirs, ours = mujoco.MjModel.from_xml_path(str(tmp_path / "in.xml")), converted(tmp_path / "in.xml", tmp_path / "out.xml")
    np.testing.assert_allclose(ours.body_inertia, theirs.body_inertia, rtol=1e-12)
    np.testing.assert_allclose(ours.body_iquat, theirs.body_iquat, rtol=1e-12)


def test_written_urdf_loads_in_pinocchio(tmp_path):
    """urdfdom accepts neither "inf" nor a slide without a range."""
    pinocchio = pytest.importorskip("pinocchio")
    (tmp_path / "in.xml").write_text('<mujoco><worldbody><body name="a"><joint name="x" type="slide"/><geom size=".1"/><body name="b"><joint name="y" range="-60 60" damping="1"/>'
                                     '<geom size=".1"/><body name="c"><joint name="z" actuatorfrcrange="-3 3"/><geom size=".1"/></body></body></body></worldbody></mujoco>')
    subprocess.run([PROGRAM, "convert", tmp_path / "in.xml", tmp_path / "out.urdf"], check=True, capture_output=True)
    theirs, ours = pinocchio.buildModelFromUrdf(str(tmp_path / "out.urdf")), tarsus.Model.load(tmp_path / "out.urdf")
    assert list(theirs.names)[1:] == [joint.name for joint in ours.joints] == ["x", "y", "z"]
    assert [joint.limited for joint in ours.joints] == [False, True, False]
    assert [joint.force_limited for joint in ours.joints] == [False, False, True]
    assert not [d for d in ours.diagnostics if d.severity == "warning" and not d.other_law]
    subprocess.run([PROGRAM, "convert", tmp_path / "out.urdf", tmp_path / "again.urdf"], check=True, capture_output=True)
    assert (tmp_path / "again.urdf").read_text() == (tmp_path / "out.urdf").read_text()


def test_what_classes_say_of_lists_and_motors_is_kept(tmp_path):
    """Shorter lists of solref, solimp and friction leave the remaining values of their class; motors keep their ranges."""
    text = """<mujoco><default><joint solreflimit=".05 2" solimplimit=".8 .85 .04 .3 3"/><geom solref=".05 2" solimp=".6 .9 .01 .2 3" friction=".5 .4 .3"/>
      <pair friction=".9 .8 .7 .6 .5" solref="-100 -5"/><equality solref=".05 2" solimp=".6 .9 .01 .2 3"/><motor forcerange="-1 2"/></default>
      <worldbody><body name="b"><joint name="j" range="0 1" solreflimit=".06" solimplimit=".9"/><geom name="g" size=".1" solref=".06" solimp=".7 .8" friction="1"/></body>
      <body name="c" pos="1 0 0"><joint name="k"/><geom name="h" size=".1"/></body></worldbody>
      <contact><pair geom1="g" geom2="h" friction=".1 .2" solref="-200"/></contact>
      <equality><joint joint1="j" joint2="k" solref=".06" solimp=".7"/></equality>
      <actuator><pid joint="j" input="pos vel" posrange="-1 1" velrange="-2 2" forcerange="-3 3"/><pid joint="j" input="pos" ki="1" forcerange="-3 3"/>
        <pid joint="j" input="vel ff" velrange="-2 2"/><dcmotor joint="k" motorconst=".3" resistance="2" inductance=".1" ctrlrange="-4 4"/>
        <dcmotor joint="k" motorconst=".3" resistance="2" inductance=".1" saturation="5"/></actuator></mujoco>"""
    (tmp_path / "a.xml").write_text(text)
    theirs, ours = mujoco.MjModel.from_xml_string(text), converted(tmp_path / "a.xml", tmp_path / "b.xml")
    tarsus.Model.load(tmp_path / "b.xml")
    for name in ("jnt_solref", "jnt_solimp", "geom_solref", "geom_solimp", "geom_friction", "pair_friction", "pair_solref", "eq_solref", "eq_solimp",
                 "actuator_ctrllimited", "actuator_ctrlrange", "actuator_forcelimited", "actuator_forcerange"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-9, err_msg=name)


def test_only_slider_cranks_are_written_with_a_crank(tmp_path):
    """A class may give other actuators a length of a crank, which MuJoCo refuses on them."""
    (tmp_path / "a.xml").write_text("""<mujoco><default><position cranklength=".3"/></default><worldbody><site name="w"/><body><joint name="j"/><geom size=".1"/>
      <site name="s"/></body></worldbody><actuator><position joint="j"/><position cranksite="s" slidersite="w"/></actuator></mujoco>""")
    model = converted(tmp_path / "a.xml", tmp_path / "b.xml")
    assert model.actuator_cranklength[1] == 0.3


@pytest.mark.parametrize("medium", ['density="500"', 'viscosity=".5"'])
def test_fluids_drag_the_same_boxes(medium, tmp_path):
    """The box that a fluid drags lies along the geom if that is the body's only one, even where the moments are equal."""
    (tmp_path / "a.xml").write_text(f'<mujoco><option {medium}/><worldbody><body><freejoint/><geom size=".1" zaxis="-1 1 -5"/></body>'
                                    '<body><freejoint/><geom type="box" size=".1 .2 .3" euler="10 20 30"/></body></worldbody></mujoco>')
    models = mujoco.MjModel.from_xml_path(str(tmp_path / "a.xml")), converted(tmp_path / "a.xml", tmp_path / "b.xml")
    forces = []
    for model in models:
        data = mujoco.MjData(model)
        data.qvel[:] = np.linspace(-2, 3, model.nv)
        mujoco.mj_forward(model, data)
        forces.append(data.qfrc_passive.copy())
    np.testing.assert_allclose(*forces, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("inertia", ["legacy", "exact", "convex", "shell"])
def test_meshes_keep_how_their_mass_is_found(inertia, tmp_path):
    """The method decides where the frames of sensors and the ellipsoids for fluids lie."""
    (tmp_path / "a.xml").write_text(f'<mujoco><asset><mesh name="m" vertex="0 0 0 .3 0 0 0 .2 0 0 0 .1" inertia="{inertia}"/></asset>'
                                    '<worldbody><body><freejoint/><geom name="g" type="mesh" mesh="m"/></body></worldbody></mujoco>')
    theirs, ours = mujoco.MjModel.from_xml_path(str(tmp_path / "a.xml")), converted(tmp_path / "a.xml", tmp_path / "b.xml")
    np.testing.assert_allclose(ours.geom_pos, theirs.geom_pos, atol=1e-6)


def test_equalities_without_effect_are_written_as_they_were_read(tmp_path):
    (tmp_path / "in.xml").write_text('<mujoco><worldbody><body name="a"><joint name="x"/><geom size=".1"/><body name="b" pos="1 0 0"><geom size=".1"/></body></body>'
                                     '<body name="c"><joint name="y"/><geom size=".1"/></body></worldbody><equality><weld body1="a" body2="b"/><joint joint1="x" joint2="y"/>'
                                     '<joint joint1="x" joint2="y"/><connect body1="a" anchor="0 0 0" active="false"/></equality></mujoco>')
    assert sum("no effect" in d.message for d in tarsus.Model.load(tmp_path / "in.xml").diagnostics) == 2
    assert converted(tmp_path / "in.xml", tmp_path / "out.xml").eq_active0.tolist() == [1, 1, 1, 0]


def test_what_refers_to_shapes_that_are_lost_is_lost_too(tmp_path):
    (tmp_path / "in.xml").write_text('<mujoco><asset><mesh name="m" builtin="sphere" params="2"/></asset><worldbody><geom name="f" type="plane" size="1 1 .1"/><body>'
                                     '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/><joint/><geom name="h" size=".1"/><geom name="g" type="mesh" mesh="m"/></body></worldbody>'
                                     '<contact><pair geom1="g" geom2="f"/><pair geom1="h" geom2="f"/></contact><sensor><framepos objtype="geom" objname="g"/>'
                                     '<framepos objtype="geom" objname="h"/><framepos objtype="geom" objname="h" reftype="geom" refname="g"/></sensor></mujoco>')
    ours = converted(tmp_path / "in.xml", tmp_path / "out.xml")
    assert (ours.npair, ours.nsensor) == (1, 1)


def test_ball_joints_in_urdf_are_warned_of(tmp_path):
    """The type is Bullet's, which MuJoCo reads and urdfdom does not."""
    (tmp_path / "in.xml").write_text('<mujoco><worldbody><body><joint type="ball" damping="2"/><geom size=".1"/></body></worldbody></mujoco>')
    run = subprocess.run([PROGRAM, "convert", tmp_path / "in.xml", tmp_path / "out.urdf"], capture_output=True, text=True, check=True)
    assert 'warning: ball joints (1) are written as "spherical"' in run.stderr
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "out.urdf"))
    assert theirs.jnt_type.tolist() == [mujoco.mjtJoint.mjJNT_BALL] and theirs.nv == tarsus.Model.load(tmp_path / "out.urdf").nv == 3
    pinocchio = pytest.importorskip("pinocchio")
    with pytest.raises(ValueError):
        pinocchio.buildModelFromUrdf(str(tmp_path / "out.urdf"))


def test_settings_of_mujocos_own_algorithms_are_written_back(tmp_path):
    settings = ('ls_iterations="7" ls_tolerance=".02" noslip_iterations="3" noslip_tolerance="1e-5" ccd_iterations="20" ccd_tolerance="1e-5" '
                'sdf_iterations="5" sdf_initpoints="20" jacobian="dense" sleep_tolerance=".01" o_margin=".01" o_solref=".03 1" actuatorgroupdisable="1 3"')
    off = ("filterparent", "sensor", "warmstart", "refsafe", "midphase", "nativeccd", "eulerdamp", "autoreset", "island", "multiccd")
    on = ("override", "energy", "fwdinv", "invdiscrete", "sleep", "diagexact", "speculative")
    flags = " ".join([f'{flag}="disable"' for flag in off] + [f'{flag}="enable"' for flag in on])
    (tmp_path / "a.xml").write_text(f'<mujoco><option {settings}><flag {flags}/></option><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>')
    theirs, ours = mujoco.MjModel.from_xml_path(str(tmp_path / "a.xml")).opt, converted(tmp_path / "a.xml", tmp_path / "b.xml").opt
    names = [name for name in dir(theirs) if not name.startswith("_")]
    assert theirs.disableflags and theirs.enableflags and len(names) > 25
    for name in names:
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
