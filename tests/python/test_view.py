"""The viewer without a browser: sources, pages, formats, and a server that refuses strangers."""

import asyncio
import base64
import importlib.util
import io
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

import tarsus
from tarsus.view import ModelSource, ParticleSource, RigidSource, open_source, write_page
from tarsus.view.formats import write_dcd, write_gltf, write_xyz
from tarsus.view.gallery import SCENES, c60, open_scene
from tarsus.view.page import ROOM, Frame, Recording, record

ROOT = pathlib.Path(__file__).parents[2]
HUMANOID = ROOT / "models/humanoid.xml"
WALK = ROOT / "models/clips/humanoid_walk.json"
BALL = """<mujoco><option timestep='0.01'/><worldbody><geom type='plane' size='0 0 1'/>
  <body name='ball' pos='0 0 2'><freejoint/><geom type='sphere' size='.1' mass='2'/></body></worldbody></mujoco>"""


@pytest.fixture(autouse=True)
def root(monkeypatch):
    monkeypatch.chdir(ROOT)


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


# -- what is drawn --


def test_poses_of_many_states_are_the_kinematics():
    model = tarsus.Model.load(HUMANOID)
    data = tarsus.Data(model)
    rng = np.random.default_rng(1)
    qpos = np.array([tarsus.integrate(model, data, model.qpos0, rng.normal(size=model.nv), 1.0) for _ in range(4)])
    poses = tarsus.poses_of(model, qpos)
    assert poses.shape == (4, model.nbody, 7) and poses.dtype == np.float32
    for q, found in zip(qpos, poses):
        tarsus.kinematics(model, data, q)
        rotations, positions = tarsus.body_poses(model, data)
        assert np.allclose(found[:, :3], positions, atol=1e-6)
        w, x, y, z = found[:, 3:].T.astype(float)
        first_column = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], 1)
        assert np.allclose(first_column, rotations[:, :, 0], atol=1e-6)
    with pytest.raises(tarsus.ShapeError):
        tarsus.poses_of(model, np.zeros(3))


TENDONS = """<mujoco><worldbody>
  <geom name='post' type='cylinder' size='.1 .5' pos='0 0 1' euler='80 10 0'/><site name='aside' pos='.05 .3 1.1'/>
  <site name='a' pos='-.6 0 1.15'/><site name='top' pos='-.5 .4 1.8'/>
  <body name='arm' pos='.3 0 1'><joint name='hinge' axis='0 1 .2' range='-3 3'/><joint name='turn' axis='1 0 0'/>
    <geom name='knuckle' type='sphere' size='.08' pos='.1 .02 .1' mass='1'/><site name='over' pos='.1 .02 .3'/>
    <site name='b' pos='.35 .05 0'/><site name='c' pos='.1 -.1 -.1'/></body></worldbody>
  <tendon><spatial name='post'><site site='a'/><geom geom='post' sidesite='aside'/><site site='b'/></spatial>
    <spatial name='knuckle'><site site='a'/><geom geom='knuckle' sidesite='over'/><site site='b'/>
      <pulley divisor='2'/><site site='top'/><site site='c'/></spatial>
    <fixed name='sum'><joint joint='hinge' coef='1'/></fixed></tendon>
  <actuator><motor tendon='post' ctrlrange='-2 5'/><position name='servo' joint='turn' kp='3'/></actuator></mujoco>"""


def test_tendons_run_along_mujocos_paths():
    mujoco = pytest.importorskip("mujoco")
    theirs = mujoco.MjModel.from_xml_string(TENDONS)
    state = mujoco.MjData(theirs)
    model = tarsus.Model.from_xml_string(TENDONS)
    data, rng, arcs, contacts = tarsus.Data(model), np.random.default_rng(3), 0, 0
    for _ in range(50):
        state.qpos[:] = data.qpos = qpos = rng.uniform(-2.5, 2.5, model.nq)
        mujoco.mj_forward(theirs, state)
        segments = tarsus.tendon_segments(model, qpos).astype(float)
        ends = segments.reshape(-1, 3)
        # Every point of theirs, including those of contact, is one of ours.
        count = state.ten_wrapadr[1] + state.ten_wrapnum[1]
        points = state.wrap_xpos.reshape(-1, 3)[:count][state.wrap_obj.ravel()[:count] != -2]  # -2: a pulley
        assert np.linalg.norm(points[:, None] - ends[None], axis=2).min(axis=1).max() < 1e-6
        # Chords of 15 degrees are at most 0.3 % shorter than their arc.
        lengths = np.linalg.norm(segments[:, 3:] - segments[:, :3], axis=1)
        lengths[-1] /= 2  # behind the pulley
        total = tarsus.actuation(model, data)["ten_length"][:2].sum()
        assert 0.997 * total < lengths.sum() < total + 1e-6
        arcs += len(segments) - 3
        contacts += int(count) - 7  # sites and the pulley
    assert arcs > 300 and contacts > 50
    assert tarsus.tendon_segments(tarsus.Model.load(HUMANOID), tarsus.Model.load(HUMANOID).qpos0).shape == (0, 6)


def test_tendons_are_in_frames_live_and_in_pages():
    source = ModelSource(tarsus.Model.from_xml_string(TENDONS), contacts=False)
    recording = record(source, 0.1)
    page = json.loads(tarsus.view.page.page_json(recording))
    rows, start = floats(page["tendons"]).reshape(-1, 6), np.frombuffer(base64.b64decode(page["tendon_start"]), "<i4")
    assert len(start) == len(recording.frames) + 1 and start[-1] == len(rows)
    for i, frame in enumerate(recording.frames):
        assert np.array_equal(rows[start[i]:start[i + 1]], frame.tendons) and len(frame.tendons) > 4
    assert not np.array_equal(recording.frames[0].tendons[-1], recording.frames[-1].tendons[-1])


HOOK = """<mujoco><worldbody><body name="hook" mocap="true" pos="0 0 1"><geom size=".05"/><site name="hook"/>
  <body pos="0 .2 0"><geom size=".02"/></body></body>
  <body name="bob" pos="0 0 .5"><freejoint/><geom size=".05"/><site name="bob"/></body></worldbody>
  <tendon><spatial stiffness="20"><site site="hook"/><site site="bob"/></spatial></tendon>
  <keyframe><key name="aside" mpos=".5 0 1" mquat="0 0 0 1"/></keyframe></mujoco>"""


@pytest.mark.parametrize("worlds", [1, 5])
def test_mocap_bodies_are_drawn_where_they_are(worlds):
    """For each world, in a user's own loop. Stepping back in time restores the mocap poses."""
    model = tarsus.Model.from_xml_string(HOOK)
    data = tarsus.Data(model, worlds=worlds)
    source = ModelSource(model, data, spacing=1e-9)
    before, start = source.state(), source.frame().poses.reshape(worlds, -1, 7)
    places = 0.1 * np.arange(3 * worlds).reshape(worlds, 3)
    for world, place in enumerate(places):
        if worlds == 1:
            data.mocap_pos[0] = place
        else:
            data.mocap_pos[world // data.width, 0, :, world % data.width] = place
    later, now = source.snapshot(), source.frame()
    assert np.allclose(now.poses.reshape(worlds, -1, 7)[:, 1, :3], places, atol=1e-6)
    assert np.allclose(now.poses.reshape(worlds, -1, 7)[:, 2, :3], places + [0, 0.2, 0], atol=1e-6)
    if worlds == 1:
        assert np.allclose(now.tendons[0, :3], places[0], atol=1e-6)
    source.restore(before)
    assert np.array_equal(source.frame().poses.reshape(worlds, -1, 7), start)
    assert np.array_equal(later().poses, now.poses)


@pytest.mark.parametrize("how", ["--keyframe=aside", "--keyframe=0"])
def test_mocap_bodies_of_a_keyframe_are_drawn_there(how, tmp_path):
    (tmp_path / "hook.xml").write_text(HOOK)
    words = [how, "--duration=0.1", "--out", "run.npz", "--page", "run.html"]
    subprocess.run([sys.executable, "-m", "tarsus", "run", "hook.xml", *words], cwd=tmp_path, check=True, capture_output=True)
    page = json.loads(re.search(ROOM.replace("null", "(.*?)"), (tmp_path / "run.html").read_text(), re.S)[1])
    recording = record(open_source(tmp_path / "run.npz"), 1.0)
    assert "target" not in np.load(tmp_path / "run.npz") and "tracking error" not in [name for name, _ in recording.series]
    live = record(open_source(tmp_path / "hook.xml", keyframe="aside"), 0.1)
    for poses in (floats(page["poses"]).reshape(page["frames"], -1, 7), recording.poses, live.poses):
        assert np.allclose(poses[:, 1, :3], [0.5, 0, 1], atol=1e-6) and np.allclose(poses[:, 2, :3], [0.5, -0.2, 1], atol=1e-6)


def test_controls_of_actuators_are_sliders():
    model = tarsus.Model.from_xml_string(TENDONS)
    source = ModelSource(model, contacts=False)
    sliders = {c["name"]: c for c in source.controls() if c["name"].startswith("ctrl")}
    assert [(c["label"], c["low"], c["high"]) for c in sliders.values()] == [("ctrl 0", -2, 5), ("ctrl servo", -1, 1)]
    source.control("ctrl 1", 0.7)
    assert source.data.ctrl[1] == 0.7
    for _ in range(20):
        source.step()
    beside = tarsus.Data(model)
    beside.ctrl = np.array([0, 0.7])
    stepper = tarsus.Stepper(beside, dt=source.dt, contacts=False, joint_limits=False)
    for _ in range(20):
        stepper.step()
    assert np.array_equal(beside.qpos, source.data.qpos.ravel())
    source.control("ctrl 0", 100)
    assert source.data.ctrl[0] == 5


def test_a_clip_is_sampled_at_many_times_as_at_each():
    model = tarsus.Model.load(HUMANOID)
    clip = tarsus.Clip.load(WALK, model)
    times = np.array([-1.0, 0.0, 0.123, 7.5])
    qpos, qvel = clip.sample(times)
    assert qpos.shape == (4, model.nq) and qvel.shape == (4, model.nv)
    for t, q, v in zip(times, qpos, qvel):
        assert np.array_equal(clip.sample(t)[0], q) and np.array_equal(clip.sample(float(t))[1], v)
    assert clip.sample(np.zeros(0))[0].shape == (0, model.nq)
    for wrong in ("x", None, np.zeros((2, 2)), np.zeros(2, int)):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            clip.sample(wrong)


def test_a_rigid_worlds_shapes_are_where_its_scene_put_them():
    world = tarsus.RigidWorld()
    world.add_body(tarsus.Shape.box(0.1, 0.2, 0.3), 1.0, (1, 2, 3))
    shape, = world.shapes
    assert shape["body"] == 0 and shape["type"] == "box"
    assert np.allclose(shape["size"], [0.1, 0.2, 0.3]) and np.allclose(shape["position"], 0)
    assert np.allclose(np.abs(shape["orientation"]), [1, 0, 0, 0])


def test_c60_is_a_truncated_icosahedron():
    x, pairs = c60()
    assert len(x) == 60 and len(pairs) == 90
    assert all(sum(i in pair for pair in pairs) == 3 for i in range(60))
    lengths = [np.linalg.norm(x[i] - x[j]) for i, j in pairs]
    assert np.ptp(lengths) < 1e-12 and np.allclose(np.linalg.norm(x, axis=1), 3.55)


def test_every_picture_of_the_documentation_is_made_by_make_pictures():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "tools/pictures.py")
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {(page.parent / link).resolve() for page in pages
             for link in re.findall(r"!\[[^]]*\]\(([^) ]+)|<img[^>]*src=[\"']([^\"']+)", page.read_text()) for link in link if link}
    assert shown == {pictures.PICTURES / f"{name}.jpg" for name in pictures.DOCUMENTED} == set((ROOT / "docs/pictures").iterdir())
    assert {scene for scene, _, _ in pictures.DOCUMENTED.values()} <= set(SCENES)
    assert {path.stem for path in pictures.THUMBNAILS.iterdir()} == set(SCENES)


def test_every_gallery_scene_has_a_line():
    assert len(SCENES) >= 13 and all(scene.line for scene in SCENES.values())


@pytest.mark.parametrize("name", [name for name in SCENES if name not in ("balls", "crowd")])
def test_gallery_scenes_step_back_and_forward(name):
    source = SCENES[name].open()
    first = source.frame()
    assert first.poses.shape == (source.scene.get("worlds", 1) * len(source.scene["bodies"]), 7)
    assert len(first.values) == len(source.series)
    state = source.state()
    for _ in range(3):
        assert source.step() is None
    later = source.frame()
    assert later.time > first.time and np.isfinite(later.poses).all()
    assert np.abs(later.poses - first.poses).max() > 0
    source.restore(state)
    assert np.allclose(source.frame().poses, first.poses, atol=1e-6)
    source.reset()
    assert np.allclose(source.frame().poses, first.poses, atol=1e-6)


def test_the_policy_walks_in_the_viewer_as_in_its_task():
    """The states equal those of the task's worlds to rounding, and the walk lasts twenty seconds without a fall."""
    source = SCENES["policy"].open()
    world = tarsus.VectorTask(tarsus.tasks.make("HumanoidWalk", relative_action=True, start=0.0), 1)
    world.reset()
    for _ in range(5):  # later rounding errors have grown
        assert np.allclose(source._qpos()[0], world.qpos[0], rtol=0, atol=1e-9)
        world.step(source.policy(world.observation))
        assert source.step() is None and source.step() is None
    while source.time < 20:
        assert source.step() is None
    assert source._qpos()[0, 2] > 0.7 and source._qpos()[0, 0] > 10


def test_targets_of_joints_without_names_are_sliders_of_their_own():
    bodies = "<body><joint/><geom size='.1'/>" * 2 + "<body pos='0 0 1'><joint name='last' type='slide'/><geom size='.1'/>" + "</body>" * 3
    source = ModelSource(tarsus.Model.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"), gains=(100, 10))
    targets = [c for c in source.controls() if c["name"].startswith("target")]
    assert [c["label"] for c in targets] == ["target 0", "target 1", "target last"]
    for i, c in enumerate(targets):
        source.control(c["name"], 0.25 * (i + 1))
    assert source.hold.tolist() == [[0.25, 0.5, 0.75]]


def test_a_keyframe_is_where_a_source_starts():
    model = tarsus.Model.load(tarsus.MODELS / "quadruped.xml")
    source = ModelSource(model, keyframe="stance")
    assert (source._qpos()[0] == model.keyframe(0)[0]).all() and (source._qpos()[0] != model.qpos0).any()
    while source.time < 2:
        assert source.step() is None
    assert source._qpos()[0, 2] > 0.25  # its controls hold the stance
    other = ModelSource(model)
    assert (other._qpos()[0] == model.qpos0).all()
    other.reset(0)  # a selection in the page's list of keyframes does this
    assert (other._qpos()[0] == model.keyframe(0)[0]).all()


def test_the_robot_goes_where_its_sliders_say():
    """The states equal those of the task to the solver's tolerance, 1e-6 m/s, over ten steps. The robot then reaches the
    commanded speeds."""
    source = SCENES["robot"].open()
    world = tarsus.VectorTask(source.task, 1)
    world.reset()
    source._place(world.qpos.copy(), world.qvel.copy())
    source.command[:] = world.observation[0, 9:12]
    for _ in range(5):
        assert np.allclose(source._qpos()[0], world.qpos[0], rtol=0, atol=2e-7)
        world.step(np.clip(source.policy(world.observation), *source.bounds))
        assert source.step() is None and source.step() is None
    source.reset()
    for command in ([0.8, 0.0, 0.0], [0.0, 0.25, 0.0], [0.3, 0.0, -0.8], [0.0, 0.0, 0.0]):
        for name, value in zip(("forward", "left", "turn"), command):
            source.control(name, value)
        seen = []
        for step in range(300):
            assert source.step() is None
            if step >= 100:
                world_velocity, turning = source._qvel()[0, :3], source._qvel()[0, 5]
                w, x, y, z = source._qpos()[0, 3:7]
                heading = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
                c, s = np.cos(heading), np.sin(heading)
                seen.append([c * world_velocity[0] + s * world_velocity[1], c * world_velocity[1] - s * world_velocity[0], turning])
        assert np.abs(np.mean(seen, axis=0) - command).max() < 0.15, (command, np.mean(seen, axis=0))
    assert source._qpos()[0, 2] > 0.25
    with pytest.raises(ValueError):
        source.control("ctrl 0", 1.0)


def test_many_worlds_are_laid_out_in_a_grid_and_stay_apart():
    model = tarsus.Model.load(HUMANOID)
    source = ModelSource(model, clip=tarsus.Clip.load(WALK, model), worlds=10)
    assert source.step() is None
    poses = source.frame().poses.reshape(10, model.nbody, 7)
    roots = poses[:, 1, :2]
    apart = np.linalg.norm(roots[:, None] - roots[None], axis=2) + 10 * np.eye(10)
    assert apart.min() > 0.5
    assert np.ptp(poses[:, 1, 2]) > 1e-3  # each at its own phase


@pytest.mark.parametrize("worlds", [1, 5])
def test_what_falls_lands_on_the_floor_in_every_world(worlds):
    source = ModelSource(tarsus.Model.from_xml_string(BALL), worlds=worlds)
    assert next(c["value"] for c in source.controls() if c["name"] == "contacts") == "on"

    def heights(seconds):
        return record(source, seconds).poses[-1].reshape(worlds, 2, 7)[:, 1, 2]

    assert np.allclose(heights(1.5), 0.1, atol=0.01)  # its radius. It falls for 0.62 s; the floor gives by millimetres
    source.reset()
    source.control("contacts", "off")
    assert np.allclose(heights(1.0), 2 - 9.81 / 2 * (1 + source.dt), atol=1e-4)  # v⁺ = v - g dt, then z⁺ = z + v⁺ dt


def test_a_snapshot_shows_its_moment_later():
    model = tarsus.Model.load(HUMANOID)
    for worlds in (1, 20):
        source = ModelSource(model, clip=tarsus.Clip.load(WALK, model), worlds=worlds)
        source.step()
        now, snapshot = source.frame(), source.snapshot()
        for _ in range(5):
            source.step()
        later = snapshot()
        assert later.time == now.time and np.array_equal(later.poses, now.poses) and len(later.values) == len(source.series)
        assert not np.array_equal(source.frame().poses, now.poses)
        assert (later.ghost is None) == (worlds > 16)


# -- hands and sliders --


def ball_source(**options):
    return ModelSource(tarsus.Model.from_xml_string(BALL), contacts=False, dt=0.01, **options)


def test_a_push_moves_a_body_as_a_critically_damped_spring_would():
    source = ball_source()
    source.control("gravity", 0.0)
    target = np.array([1.0, 0, 2.0])
    source.push(1, 0, [0, 0, 0], target)
    x = []
    for _ in range(200):
        assert source.step() is None
        x.append(source.data.qpos[0])
    assert max(x) < 1 + 1e-2 and abs(x[-1] - 1) < 1e-3  # arrives without overshoot
    # Critically damped: x = 1 - (1 + w t) exp(-w t). The step is explicit in the force, so the agreement is of first order in w
    # dt.
    t, w = 0.25, 8.0
    assert abs(x[24] - (1 - (1 + w * t) * np.exp(-w * t))) < 0.05
    source.release()
    before = source.data.qvel.copy()
    source.step()
    assert np.allclose(source.data.qvel, before)


def test_a_push_of_a_free_body_of_a_rigid_world():
    source = RigidSource("box_stack:3")
    start = source.world.poses[2].copy()
    source.push(3, 0, [0, 0, 0], start[:3] + [0, 0, 2.0])
    for _ in range(30):
        assert source.step() is None
    assert source.world.poses[2][2] > start[2] + 0.5
    source.release()
    assert not source.world.forces.any()
    with pytest.raises(ValueError):
        source.push(99, 0, [0, 0, 0], [0, 0, 0])


def test_gravitys_slider_scales_gravity():
    for factor in (0.0, 0.5, 1.0, 2.0):
        source = ball_source()
        source.control("gravity", factor)
        for _ in range(10):
            source.step()
        assert source.data.qvel[2] == pytest.approx(-9.81 * factor * 0.1, abs=1e-9)


def test_sliders_reach_the_drives_and_the_step():
    model = tarsus.Model.load(HUMANOID)
    source = ModelSource(model, clip=tarsus.Clip.load(WALK, model))
    kp = source.drives.kp.copy()
    source.control("gains", 0.01)
    assert np.allclose(source.drives.kp, 0.01 * kp)
    source.control("force limit", 30.0)
    for _ in range(20):
        assert source.step() is None
    assert 0 < source.drive_force <= 30.0
    source.control("dt", 1 / 120)
    time_before = source.time
    source.step()
    assert source.time - time_before == pytest.approx(1 / 120)
    for name, value in (("nosuch", 1), ("plain", "perhaps")):
        with pytest.raises(ValueError):
            source.control(name, value)


def test_a_force_limit_limits_and_leaves_the_law_as_it_is():
    model = tarsus.Model.load(HUMANOID)
    source = ModelSource(model, clip=tarsus.Clip.load(WALK, model), force_limit=20.0)
    for _ in range(20):
        assert source.step() is None
    assert 10 < source.drive_force <= 20.0
    assert next(c["value"] for c in source.controls() if c["name"] == "force limit") == 20
    plain = ModelSource(model, gains=(300, 30), plain=True)
    plain.control("force limit", 30.0)
    assert next(c["value"] for c in plain.controls() if c["name"] == "plain") == "yes" and plain.drives.plain
    for wrong in ({"force_limit": 20.0}, {"plain": True}):
        with pytest.raises(ValueError, match="needs drives"):
            ModelSource(model, **wrong)
    for limit in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="force_limit"):
            ModelSource(model, gains=(300, 30), force_limit=limit)


# A sphere that hangs from its drive, one that its drive presses onto the floor, and one on an arm.
DRIVEN = """<mujoco><worldbody><geom type='plane' size='0 0 1'/>
  <body name='hangs' pos='0 0 2'><joint name='hangs' type='slide' axis='0 0 1' actuatorfrcrange='-98.1 39.24'/><geom size='.1' mass='2'/></body>
  <body pos='1 0 .1'><joint name='pressed' type='slide' axis='0 0 1' actuatorfrcrange='-5 1000'/><geom size='.1' mass='2'/></body>
  <body pos='2 0 2'><joint name='ball' type='ball' actuatorfrcrange='0 30'/><geom size='.1' pos='.3 0 -.4' mass='1'/></body></worldbody></mujoco>"""


def test_drive_forces_and_their_limits_are_plotted():
    model = tarsus.Model.from_xml_string(DRIVEN)
    source = ModelSource(model, gains=(1000, 200), force_limit="model", dt=0.01)

    def plotted(steps, **targets):
        for name, value in targets.items():
            source.control(f"target {model.joint(name).id}", value)
        for _ in range(steps):
            assert source.step() is None
        return dict(zip([name for name, _ in source.series], source.frame().values))

    assert next(c["value"] for c in source.controls() if c["name"] == "force limit") == 1000  # the largest one
    shown = plotted(500)
    assert shown["contact force"] > 1
    assert shown["largest drive force"] == pytest.approx(2 * 9.81, rel=1e-6)
    assert shown["largest drive force / limit"] == pytest.approx(2 * 9.81 / 39.24, rel=1e-6)
    shown = plotted(200, pressed=-1.0)
    assert shown["contact force"] == pytest.approx(2 * 9.81 + 5, rel=1e-6)
    assert shown["largest drive force"] == pytest.approx(2 * 9.81, rel=1e-6) and shown["largest drive force / limit"] == 1
    source.control("force limit", 1e5)  # for all, in both directions
    shown = plotted(500, pressed=-1.0)
    assert shown["contact force"] == pytest.approx(2 * 9.81 + 1000, rel=1e-2)  # kp × 1 m, as far as the floor does not give
    assert shown["largest drive force"] == pytest.approx(shown["contact force"] - 2 * 9.81, rel=1e-6)
    assert shown["largest drive force / limit"] == pytest.approx(shown["largest drive force"] / 1e5, rel=1e-6)


def test_a_ball_joints_drive_force_is_the_length_of_its_torque():
    model = tarsus.Model.from_xml_string(DRIVEN)
    source = ModelSource(model, gains=(1000, 200), contacts=False, dt=0.01)
    source.drives.force_limit = np.r_[np.inf, np.inf, 3.0, 0, 0]  # of the torque's components, the first
    for _ in range(500):
        assert source.step() is None
    assert source.drive_force == pytest.approx(2 * 9.81, rel=1e-6)
    assert source.drive_share == pytest.approx(0.3 * 9.81 / 3, rel=1e-2)  # its arm, but for the angle that the drive gives by


def test_a_recording_of_one_frame_is_written(tmp_path):
    from tarsus.view.command import main

    recording = tmp_path / "one.npz"
    run = [sys.executable, "-m", "tarsus", "run", str(HUMANOID), "--dt", "0.01", "--duration", "0.01", "--quiet", "--out", str(recording)]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    for ending in ("html", "glb"):
        assert main(["view", str(recording), "--export", str(tmp_path / f"one.{ending}")]) == 0


def test_gains_and_limits_are_what_run_takes(tmp_path):
    from tarsus.view.command import main

    model, file = tarsus.Model.load(HUMANOID), tmp_path / "gains.json"
    assert ModelSource(model, gains=(300, 30)).drives.kp.tolist() == [300] * model.nv
    file.write_text('{"left_knee": [300, 20], "default": [1000, 100]}')
    knee = model.joint("left_knee").qvel.start
    for drives in (tarsus.Drives.load(file, model), ModelSource(model, gains=str(file)).drives):
        assert drives.kp[[0, 6, knee]].tolist() == [0, 1000, 300] and drives.kd[[0, 6, knee]].tolist() == [0, 100, 20]
    page = tmp_path / "x.html"
    assert main(["view", str(HUMANOID), "--gains", str(file), "--force-limit", "model", "--export", str(page), "--duration", "0.1"]) == 0
    assert page.exists()
    limited = tarsus.Model.from_xml_string('<mujoco><worldbody><body><joint actuatorfrcrange="-3 3"/><geom size=".1"/></body></worldbody></mujoco>')
    assert ModelSource(limited, gains=(300, 30), force_limit="model").drives.force_limit.tolist() == [3]
    with pytest.raises(tarsus.ValueError, match="KP,KD"):
        tarsus.Drives.load("300", model)


def test_what_does_not_belong_to_the_model_is_refused():
    model, dog = tarsus.Model.load(HUMANOID), tarsus.Model.load(ROOT / "models/dog.xml")
    with pytest.raises(ValueError, match="clip: is bound to another model, with nq 43, expected one with nq 95"):
        ModelSource(dog, clip=tarsus.Clip.load(WALK, model))
    with pytest.raises(ValueError, match="data: is made for another model"):
        ModelSource(model, tarsus.Data(dog))
    for gains in ((300,), (300, 30, 1)):
        with pytest.raises(ValueError, match="gains: has"):
            ModelSource(model, gains=gains)


@pytest.mark.parametrize("scene, friction", [("cards:2", 0.7), ("box_stack:2", 0.5)])
def test_the_friction_slider_starts_at_the_scenes(scene, friction):
    source = RigidSource(scene)
    value = next(c["value"] for c in source.controls() if c["name"] == "friction")
    source.step()
    assert value == friction == pytest.approx(source.world.contacts["friction"].max())


def test_friction_is_a_rigid_worlds_control():
    source = RigidSource("box_stack:2")
    source.control("friction", 0.9)
    source.control("gravity", 1.0)
    assert np.allclose(source.world.options["gravity"], [0, 0, -1]) and source.options["friction"] == 0.9
    source.step()


def test_gravity_of_a_rigid_world_keeps_its_direction():
    source = RigidSource("box_stack:2", gravity=(3, 0, -4))
    assert next(c["value"] for c in source.controls() if c["name"] == "gravity") == 5
    source.control("gravity", 10.0)
    assert np.allclose(source.world.options["gravity"], [6, 0, -8])
    source.control("gravity", 0.0)
    source.control("gravity", 5.0)
    assert np.allclose(source.world.options["gravity"], [3, 0, -4])


# -- files --


def short_recording():
    model = tarsus.Model.load(HUMANOID)
    return record(ModelSource(model, clip=tarsus.Clip.load(WALK, model)), 0.5)


def test_a_page_holds_the_recording_and_no_address(tmp_path):
    recording = short_recording()
    recording.scene["name"] = "</script><script>alert(1)<!--<script>"
    write_page(tmp_path / "page.html", recording)
    text = (tmp_path / "page.html").read_text()
    held = re.search(ROOM.replace("null", "(.*?)"), text, re.S)[1]
    assert "<" not in held  # no name opens or ends a script or a comment
    document = json.loads(held)
    assert document["scene"]["name"] == recording.scene["name"]
    poses = floats(document["poses"]).reshape(document["frames"], -1, 7)
    assert np.array_equal(poses, recording.poses)
    assert np.allclose(floats(document["time"]), recording.times)
    size = len(text) - len(json.dumps(document))
    assert size < 6e6
    # Nothing in the page fetches: no element has an address, and the program opens only its own socket.
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=[\"'](?!data:)", text[: text.index("<script type")])


def test_the_checked_in_page_is_built_from_its_sources():
    """Run `make page` after a change of python/viewer."""
    import hashlib

    folder = ROOT / "python/viewer"
    names = re.search(r"sources = \[(.*?)\]", (folder / "build.mjs").read_text(), re.S)[1]
    found = hashlib.sha256()
    for name in re.findall(r"'([^']+)'", names):
        found.update((folder / name).read_bytes())
    page = (ROOT / "python/tarsus/view/page.html").read_text()
    assert re.search(r'data-sources="([0-9a-f]+)"', page)[1] == found.hexdigest()


def test_the_tracking_error_is_that_of_driven_trees():
    """A box without gains falls 1.2 m beside a driven arm. It counts only if nothing is driven."""
    model = tarsus.Model.from_xml_string("""<mujoco><worldbody><body><joint name="arm" axis="0 1 0"/><geom size="0.1" pos="0 0 -1"/></body>
      <body pos="2 0 3"><freejoint name="box"/><geom size="0.1"/></body></worldbody></mujoco>""")
    for gains, low, high in (((1000, 100, 0, 0), 0, 1e-6), ((0, 0, 0, 0), 0.1, 10)):
        assert low <= record(ModelSource(model, gains=gains), 0.5).frames[-1].values[0] < high


@pytest.mark.parametrize("where", [{"model_file": str(HUMANOID)}, {"model_file": HUMANOID.name, "folder": str(HUMANOID.parent)}])
def test_a_recording_of_the_command_plays(tmp_path, where):
    model = tarsus.Model.load(HUMANOID)
    n = 5
    qpos = np.tile(model.qpos0, (n, 1))
    qpos[:, 0] = np.arange(n)
    meta = json.dumps({"format": "tarsus-recording"} | where).encode()
    np.savez(tmp_path / "run.npz", time=np.arange(n) / 30, qpos=qpos, qvel=np.zeros((n, model.nv)), target=qpos,
             meta=np.frombuffer(meta, np.uint8))
    source = open_source(tmp_path / "run.npz")
    recording = record(source, 10.0)
    assert len(recording.frames) == n and np.allclose(recording.poses[:, 1, 0] - recording.poses[0, 1, 0], np.arange(n))
    assert recording.frames[2].values[0] == 0  # tracking error
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(tarsus.InputError, match="not a recording"):
        open_source(tmp_path / "other.npz")


def test_names_that_are_not_utf8_are_shown(tmp_path, monkeypatch):
    from tarsus.view.command import main

    folder = os.fsencode(tmp_path)
    model, page, walk, bones, run = (os.path.join(folder, b"odd\xe9." + end) for end in (b"xml", b"html", b"json", b"bvh", b"npz"))
    shutil.copy(HUMANOID, model)
    loaded = tarsus.Model.load(os.fsdecode(model))
    meta = {"format": "tarsus-recording", "model_file": model.decode("utf-8", "replace"), "arguments": json.dumps([list(model), "--json"])}
    np.savez(open(run, "wb"), time=np.arange(2), qpos=np.tile(loaded.qpos0, (2, 1)), qvel=np.zeros((2, loaded.nv)),
             meta=np.frombuffer(json.dumps(meta).encode(), np.uint8))
    with open(walk, "w") as file:
        json.dump({key: value for key, value in json.loads(WALK.read_text()).items() if key != "name"}, file)
    with open(bones, "wb") as file:
        file.write(b"HIERARCHY\nROOT h\xe9\n{\nOFFSET 0 0 0\nCHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation\n"
                   b"End Site\n{\nOFFSET 0 1 0\n}\n}\nMOTION\nFrames: 2\nFrame Time: 0.1\n0 0 0 0 0 0\n0 0 0 0 0 1\n")
    clip = tarsus.MotionClip.load(os.fsdecode(bones))
    assert clip.name == r"odd\xe9" in repr(clip) and any(r"h\xe9" in name for name, _, _ in clip.channels)
    assert r"odd\xe9" in repr(tarsus.Clip.load(os.fsdecode(walk), loaded))
    for words in (["view", run], ["view", model], ["view", model, "--clip", walk], ["view", walk, "--model", model]):
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict"))
        assert main([os.fsdecode(word) for word in words] + ["--export", os.fsdecode(page), "--duration", "0.1"]) == 0
        sys.stdout.flush()
        assert rb"odd\udce9.html" in sys.stdout.buffer.getvalue()
        assert b"frames" in pathlib.Path(os.fsdecode(page)).read_bytes()


def test_a_clip_plays_on_the_model_that_it_is_for():
    source = open_source(WALK)
    assert source.scene["name"] and len(source.times) > 10
    with pytest.raises(ValueError, match="neither a file"):
        open_source("nosuch")
    assert len(open_source("water:8").system) == 24  # named by its number of molecules


@pytest.mark.parametrize("call", ["start", "run", "update"])
def test_a_closed_viewer_shows_nothing_any_more(call):
    viewer = tarsus.Viewer("box_stack:2")
    viewer.close()
    viewer.close()
    with pytest.raises(tarsus.ValueError, match="^viewer: is closed, expected an open one$"):
        getattr(viewer, call)()


@pytest.mark.parametrize("text, message", [('{"gravity": [0, 0, -1]}', "not a motion clip but JSON with the keys 'gravity'"), ("{}", "not a motion clip but JSON without keys"),
                                           ('{"a":', "the text ends"), ("", "the file is empty")])
def test_json_that_is_no_clip_is_said(text, message, tmp_path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(tarsus.InputError, match=message):
        tarsus.view.sources.open_source(str(tmp_path / "x.json"))


def test_clips_of_every_kind_are_played(tmp_path):
    upright = np.tile(np.pi / 2 * np.eye(1, 156), (9, 1))  # SMPL's own up is y
    np.savez(tmp_path / "amass.npz", trans=np.zeros((9, 3)), poses=upright, mocap_framerate=60.0)
    (tmp_path / "w.asf").write_text("""\
:units
  mass 1.0
  length 0.45
  angle deg
:root
  order TX TY TZ RX RY RZ
  axis XYZ
  position 0 0 0
  orientation 0 0 0
:bonedata
""" + "".join(f"""\
  begin
    id {i + 1}
    name {name}
    direction {direction}
    length {length}
    axis 0 0 0 XYZ
    dof rx ry rz
    limits (-180 180)
           (-180 180)
           (-180 180)
  end
""" for i, (name, direction, length) in enumerate(LEGS)) + """\
:hierarchy
  begin
    root lhipjoint rhipjoint
    lhipjoint lfemur
    lfemur ltibia
    ltibia lfoot
    rhipjoint rfemur
    rfemur rtibia
    rtibia rfoot
  end
""")
    (tmp_path / "w.amc").write_text("".join([":FULLY-SPECIFIED\n:DEGREES\n", *(f"{n}\nroot 0 17 0 0 0 0\n" + "".join(f"{name} 0 0 0\n" for name, _, _ in LEGS)
                                                                             for n in range(1, 9))]))
    for name in ("amass.npz", "w.amc"):
        source = open_source(tmp_path / name, model=HUMANOID)
        assert len(source.times) > 1 and abs(source.qpos[:, 2] - 0.86).max() < 0.1, name


LEGS = [(f"{side}{bone}", direction, length) for side, x in (("l", 1), ("r", -1))
        for bone, direction, length in (("hipjoint", f"{x} -1 0", 1.5), ("femur", "0 -1 0", 7), ("tibia", "0 -1 0", 7), ("foot", "0 0 1", 2))]


def test_a_recordings_model_is_read_as_for_its_run(tmp_path):
    (tmp_path / "r.urdf").write_text("""<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="3" ixy="0" ixz="0" iyz="0"/></inertial>
      <visual><geometry><mesh filename="package://parts/m.stl"/></geometry></visual></link></robot>""")
    (tmp_path / "packages").mkdir()
    words = ["--floating-base", "--fix", "balance", "--package-path", "packages"]
    subprocess.run([sys.executable, "-m", "tarsus", "run", "r.urdf", *words, "--duration", "0.1", "--out", "r.npz"], cwd=tmp_path, check=True, capture_output=True)
    source = open_source(tmp_path / "r.npz")
    assert source.model.nq == 7 and source.model.bodies[1].inertia[2, 2] < 3
    assert open_source(tmp_path / "r.urdf", floating_base=True, dt=0.01).model.nq == 7
    for what, options in (("balls:2:2", {"lenient": True}), (source.model, {"floating_base": True})):
        with pytest.raises(ValueError, match=f"{next(iter(options))}: has no effect on"):
            open_source(what, **options)


def test_a_model_without_joints_is_seen_in_several_worlds():
    still = tarsus.Model.from_xml_string("<mujoco><worldbody><body pos='0 0 1'><geom size='.1'/></body></worldbody></mujoco>")
    assert record(ModelSource(still, worlds=3), 0.05).poses.shape[1:] == (3 * 2, 7)


def test_a_loops_own_contacts_are_shown():
    """Contacts of the loop's stepper are shown. Without the stepper they are unknown."""
    model = tarsus.Model.load(HUMANOID)
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data, dt=1 / 60, contacts=True, joint_limits=True)
    sources = ModelSource(model, data, stepper=stepper), ModelSource(model, data)
    for _ in range(20):
        assert stepper.step() == 0
    names = [name for name, _ in sources[0].series]
    mine, unknown = (dict(zip(names, source.frame().values)) for source in sources)
    force = sum(np.linalg.norm(contact["force"]) for contact in stepper.contacts)
    assert force > 100 and mine["contact force"] == pytest.approx(force, rel=1e-5) and len(sources[0].frame().contacts) == len(stepper.contacts)
    assert mine["contact iterations"] == stepper.rows["iterations"] and mine["kinetic energy"] == unknown["kinetic energy"] > 0
    assert all(np.isnan(unknown[name]) for name in ("contact force", "penetration", "contact residual", "contact iterations"))
    assert sources[1].step() is None and np.isfinite(sources[1].frame().values).all()
    with pytest.raises(ValueError, match="stepper: uses other data"):
        ModelSource(model, tarsus.Data(model), stepper=stepper)
    with pytest.raises(ValueError, match="dt: is 0.1, expected None together with a stepper"):
        ModelSource(model, stepper=stepper, dt=0.1)
    with pytest.raises(ValueError, match="stepper: has no effect on a scene"):
        open_source("balls:2:2", stepper=stepper)


def test_what_has_no_effect_beside_data_is_refused():
    model = tarsus.Model.load(tarsus.MODELS / "humanoid.xml")
    data, many = tarsus.Data(model), tarsus.Data(model, worlds=3)
    for what in (tarsus.MODELS / "humanoid.xml", "balls:2:2", "water1", tarsus.MODELS / "clips" / "humanoid_walk.json"):
        with pytest.raises(ValueError, match="data: has no effect on a "):
            open_source(what, data)
    with pytest.raises(ValueError, match="worlds: is 4, expected 1, the number of worlds of data"):
        open_source(model, data, worlds=4)
    with pytest.raises(ValueError, match="keyframe: is 0, expected None together with data"):
        open_source(model, data, keyframe=0)
    assert open_source(model, many).worlds == open_source(model, many, worlds=3).worlds == 3


@pytest.mark.parametrize("spacing", [0, -1, np.nan, np.inf])
def test_worlds_are_apart(spacing):
    with pytest.raises(ValueError, match="^spacing: "):
        ModelSource(tarsus.Model.load(tarsus.MODELS / "pendulum.xml"), worlds=2, spacing=spacing)


def test_a_scenes_option_is_named_as_what_it_is():
    with pytest.raises(ValueError, match="^iterations: is -1, expected 1 to"):
        open_source("box_stack:3", iterations=-1)
    with pytest.raises(ValueError, match="^scene: is box_stack:x, expected box_stack with whole numbers"):
        open_source("box_stack:x")
    with pytest.raises(ValueError, match="'nothing' is neither a file that can be shown"):
        open_source("nothing")


def test_a_model_goes_back_to_its_activations():
    model = tarsus.Model.from_xml_string("""<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body></worldbody>
      <actuator><intvelocity joint="j" kp="30" actrange="-2 2"/></actuator></mujoco>""")
    source = ModelSource(model)
    source.data.ctrl[:] = 1.0

    def run():
        for _ in range(20):
            assert source.step() is None
        return source.data.qpos.copy()

    before = source.state()
    first = run()
    source.restore(before)
    assert np.array_equal(run(), first)
    source.reset()
    assert np.array_equal(run(), first) and source.data.act[0] > 0


def read_glb(path):
    data = path.read_bytes()
    magic, version, length = struct.unpack_from("<III", data)
    assert (magic, version, length) == (0x46546C67, 2, len(data))
    size, kind = struct.unpack_from("<II", data, 12)
    assert kind == 0x4E4F534A
    return json.loads(data[20 : 20 + size]), data[20 + size + 8 :]


def test_gltf_has_the_poses_of_the_recording(tmp_path):
    recording = short_recording()
    write_gltf(tmp_path / "run.glb", recording)
    document, binary = read_glb(tmp_path / "run.glb")

    def values(number):
        accessor = document["accessors"][number]
        view = document["bufferViews"][accessor["bufferView"]]
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor["type"]]
        return np.frombuffer(binary, "<f4", accessor["count"] * width, view["byteOffset"]).reshape(-1, width)

    animation = document["animations"][0]
    moved = 0
    for channel in animation["channels"]:
        if channel["target"]["path"] != "translation":
            continue
        sampler = animation["samplers"][channel["sampler"]]
        name = document["nodes"][channel["target"]["node"]]["name"]
        body = [b["name"] for b in recording.scene["bodies"]].index(name)
        assert np.array_equal(values(sampler["output"]), recording.poses[:, body, :3])
        assert np.allclose(values(sampler["input"])[:, 0], recording.times - recording.times[0])
        moved += 1
    assert moved > 10


def test_what_does_not_move_has_no_animation_in_gltf(tmp_path):
    write_gltf(tmp_path / "still.glb", record(ModelSource(tarsus.Model.load(ROOT / "models/pendulum.xml")), 0.1))
    assert "animations" not in read_glb(tmp_path / "still.glb")[0]


def water():
    return record(ParticleSource("water1"), 0.05)


@pytest.mark.parametrize("name, bonds", [("chain:4", 3), ("rope:5", 5), ("ring:6", 6), ("cloth:4x4", 21), ("water1", 3)])
def test_bonds_are_the_distances_that_are_kept(name, bonds):
    source = ParticleSource(name)
    system, x = source.system, source.system.position
    assert np.array_equal(system.distances, source.scene["bonds"]) and len(source.scene["bonds"]) == bonds
    for row, (a, b) in enumerate(system.distances):
        assert f"(particles {a}, {b})" in system.describe(row)
    lengths = [np.linalg.norm(x[a] - x[b]) for a, b in system.distances]
    for shape in source.scene["shapes"]:
        assert 0.1 * min(lengths) < shape["size"][0] < 0.5 * max(lengths)
    assert record(source, 0.02).frames[-1].poses.shape == (len(system), 7)


@pytest.mark.parametrize("name", ["rope:4", "rope", "cloth:20x20"])
def test_ropes_and_cloth_show_a_millisecond_at_a_time(name):
    source = ParticleSource(name)
    assert source.step() is None and source.verlet.time == pytest.approx(1e-3, rel=0.1)
    assert source.scene["timestep"] == pytest.approx(source.verlet.time)


def test_particles_without_bonds_have_a_size():
    for x in ([[0, 0, 0]], [[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 0, 0], [1, 1, 0], [0, 1, 0], [1, 0, 0]]):
        system = tarsus.ParticleSystem(np.ones(len(x)), np.array(x, float))
        assert system.distances.shape == (0, 2)
        assert all(0.1 < shape["size"][0] < 1 for shape in ParticleSource(system).scene["shapes"])
    with pytest.raises(tarsus.InputError, match="has no particles to show"):
        ParticleSource(tarsus.ParticleSystem(np.ones(0), np.zeros((0, 3))))


def test_what_is_no_source_is_named():
    model = tarsus.Model.load(HUMANOID)
    for options, text in (({"data": 3}, "data: is of type int, expected a tarsus.Data"), ({"clip": "walk.json"}, "clip: is of type str"),
                          ({"gains": 3}, "gains: is of type int")):
        with pytest.raises(TypeError, match=text):
            ModelSource(model, **options)
    assert open_source(model, clip=WALK).clip.duration > 0
    with pytest.raises(TypeError, match="source: is of type int, expected a str or tarsus.ParticleSystem"):
        ParticleSource(3)


def test_energies_of_particles_are_the_systems():
    source = ParticleSource("water216")
    for _ in range(2):
        values = dict(zip([name for name, _ in source.series], source.frame().values))
        assert values["potential energy"] == pytest.approx(source.system.forces()[1]["potential"], rel=1e-12)
        assert values["total energy"] == pytest.approx(-2944.15, abs=0.1)
        source.step()


FREE = "".join(f"<body name='b{i}' pos='{i} 0 1'><freejoint/><geom size='.1' mass='1'/></body>" for i in range(8))


@pytest.mark.parametrize("what, options, message", [
    ("water216", {"clip": str(WALK)}, "clip: has no effect on a particle system"),
    ("water216", {"worlds": 3}, "worlds: has no effect on a particle system"),
    ("water216", {"dt": 1.0}, "dt: has no effect on a particle system"),
    ("balls:2:2", {"clip": str(WALK)}, "clip: has no effect on a scene of free bodies"),
    ("balls:2:2", {"gains": (1, 1)}, "gains: has no effect on a scene of free bodies"),
    (WALK, {"gains": (1, 1)}, "gains: has no effect on a clip, which takes model, mapping"),
    (HUMANOID, {"model": HUMANOID}, "model: has no effect on a model"),
    (HUMANOID, {"mapping": "x.json"}, "mapping: has no effect on a model without a clip"),
    ("run.npz", {"worlds": 4}, "worlds: has no effect on a recording, which takes model"),
    ("run.npz", {"clip": str(WALK)}, "clip: has no effect on a recording, which takes model"),
])
def test_options_that_have_no_effect_are_named(what, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        open_source(what, **options)


def test_numbers_that_are_not_finite_change_nothing():
    for source, names in ((ball_source(), ("dt", "gravity")), (RigidSource("box_stack:2"), ("dt", "gravity", "iterations"))):
        before = source.controls()
        for name in names:
            with pytest.raises(ValueError, match=f"^{name}: is .*, expected a finite number"):
                source.control(name, float("nan"))
        assert source.controls() == before
    viewer = tarsus.Viewer(ball_source(), playing=False)
    try:
        with pytest.raises(ValueError, match="^speed: is nan, expected a finite number"):
            viewer._order({"do": "speed", "value": float("nan")})
        assert viewer.speed == 1
    finally:
        viewer.close()


def test_many_free_bodies_with_more_than_contact_are_a_model(tmp_path):
    path = tmp_path / "free.xml"
    for more, kind in (("", RigidSource), *((f"<equality><{e}/></equality>", ModelSource) for e in ("weld body1='b0' body2='b1'", "connect body1='b0' anchor='0 0 1'"))):
        path.write_text(f"<mujoco><worldbody>{FREE}</worldbody>{more}</mujoco>")
        assert type(open_source(path)) is kind


def test_numbers_on_the_command_line_are_checked(tmp_path, capsys, monkeypatch):
    from tarsus.view import capture
    from tarsus.view.command import main

    for needed in ("find_browser", "find_protocol"):  # which come first
        monkeypatch.setattr(capture, needed, lambda: None)

    page = str(tmp_path / "x.html")
    for words, message in ((["--gains", "a,b"], "is a,b, expected KP,KD or"), (["--gains", "1,2,3"], "is 1,2,3, expected KP,KD"),
                           (["--duration", "0"], "is 0, expected more than 0 seconds"),
                           (["--duration", "-1"], "is -1, expected more than 0 seconds"), (["--port", "x"], "is x, expected 1 to 65535"),
                           (["--size", "big"], "is big, expected two numbers of pixels"), (["--size", "1x2x3"], "is 1x2x3, expected two")):
        with pytest.raises(SystemExit) as stopped:
            main(["view", str(HUMANOID), "--export", page, *words])
        assert stopped.value.code == 2 and message in capsys.readouterr().err
    for words, message in ((["--dt", "0"], "dt: is 0, expected a positive"), (["--duration", "1e300"], "duration: is 1e+300, expected at least one step and at most 1e9, here of"),
                           (["--screenshot", str(tmp_path / "x.gif")], "expected a file that ends in .png or .jpg or .jpeg"),
                           (["--video", str(tmp_path / "x.avi")], "expected a file that ends in .mp4"),
                           (["--export", str(tmp_path / "x")], "expected a file that ends in .html, .glb"),
                           (["--export", ""], "expected a file that ends in .html, .glb"),
                           (["--at", "9", "--screenshot", str(tmp_path / "x.png")], "is 9 s, expected at most 0.1 s, the end of the recording")):
        duration = [] if "--duration" in words else ["--duration", "0.1"]
        assert main(["view", str(HUMANOID), "--export", page, *duration, *words]) == 2
        assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_time_of_a_picture_is_one_of_the_recording(tmp_path, capsys, monkeypatch):
    from tarsus.view import capture
    from tarsus.view.command import main

    for needed in ("find_browser", "find_protocol"):
        monkeypatch.setattr(capture, needed, lambda: None)
    taken = []
    monkeypatch.setattr(capture, "screenshot", lambda page, path, time, **more: taken.append(time))
    file, picture = str(tmp_path / "late.npz"), str(tmp_path / "x.png")
    np.savez(file, time=[5.0, 5.1, 5.2, 9.0], qpos=np.zeros((4, 1)))
    for at, message in (("1", "is 1 s, expected at least 5 s, the start"), ("12", "is 12 s, expected at most 9 s, the end")):
        assert main(["view", file, "--model", str(ROOT / "models/pendulum.xml"), "--screenshot", picture, "--at", at]) == 2
        assert f"--at: {message} of the recording" in capsys.readouterr().err
    for words in ([], ["--at", "5.15"], ["--at", "7"], ["--at", "9"]):
        assert main(["view", file, "--model", str(ROOT / "models/pendulum.xml"), "--screenshot", picture, *words]) == 0
    assert taken == [5, 5.15, 7, 9]


def test_a_film_has_two_pixels_at_least(tmp_path, capsys):
    from tarsus.view.capture import video
    from tarsus.view.command import main

    film = tmp_path / "x.mp4"
    with pytest.raises(SystemExit, match="2"):
        main(["view", str(HUMANOID), "--video", str(film), "--size", "640x1"])
    assert "--size: is 640x1, expected at least 2x2 pixels for a film" in capsys.readouterr().err
    with pytest.raises(tarsus.ValueError, match="^size: is 1x480, expected at least 2x2 pixels"):
        video(tmp_path / "page.html", film, width=1, height=480)
    assert not film.exists()


def test_a_keyframe_in_other_digits_is_a_name(capsys):
    from tarsus.view.command import main

    assert main(["view", str(ROOT / "models/quadruped.xml"), "--keyframe", "²", "--export", "x.html"]) == 2
    assert capsys.readouterr().err.startswith('error: keyframe: is "²", expected')


def test_shapes_that_are_hidden_are_told(tmp_path, capsys):
    from tarsus.view.command import main

    for group, told in ((3, 1), (2, 0)):
        (tmp_path / "m.xml").write_text(BALL.replace("<geom type='sphere'", f"<geom type='sphere' group='{group}'"))
        assert main(["view", str(tmp_path / "m.xml"), "--export", str(tmp_path / "m.html"), "--duration", "0.1"]) == 0
        errors = capsys.readouterr().err
        assert errors.count('"collision shapes"') == told and errors.count("note: 1 of 1 bodies") == told


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["view", "--help"], ["demo", "--help"], ["demo"]])
def test_help_that_cannot_be_written_is_an_error(words):
    with open("/dev/full", "w") as full:
        run = subprocess.run([sys.executable, "-c", f"import sys; from tarsus.view.command import main; sys.exit(main({words}))"],
                             stdout=full, stderr=subprocess.PIPE, text=True)
    assert run.returncode == 1 and "No space left on device" in run.stderr and "Traceback" not in run.stderr


def test_files_of_particles_are_for_particles(tmp_path, capsys):
    from tarsus.view.command import main

    for file in ("w.xyz", "w.dcd"):
        assert main(["view", str(HUMANOID), "--export", str(tmp_path / file), "--duration", "0.05"]) == 2
        assert "is a particle file" in capsys.readouterr().err and not (tmp_path / file).exists()
        assert main(["view", "water1", "--export", str(tmp_path / file), "--duration", "0.05"]) == 0
        assert (tmp_path / file).stat().st_size > 0


def test_all_exports_are_written(tmp_path, capsys):
    from tarsus.view.command import main

    files = [str(tmp_path / name) for name in ("w.html", "w.xyz", "w.dcd", "w.glb")]
    words = ["view", "water1", "--duration", "0.05", *(word for file in files for word in ("--export", file))]
    assert main(words) == 0 and capsys.readouterr().out.split() == files
    assert all(pathlib.Path(file).stat().st_size > 0 for file in files)
    assert main([*words, "--export", str(tmp_path / "." / "w.glb")]) == 2
    assert "which is an output already" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--duration", "1"], ["--screenshot", "x.png"], ["--contacts", "on"], ["--gains", "1,1"]])
def test_options_that_take_one_value_are_given_once(words, capsys):
    from tarsus.view.command import main

    with pytest.raises(SystemExit) as stopped:
        main(["view", str(HUMANOID), *words, *words])
    assert stopped.value.code == 2 and f"{words[0]}: is given twice, expected once" in capsys.readouterr().err


def test_outputs_are_no_inputs(tmp_path, capsys):
    from tarsus.view.command import main

    file = tmp_path / "w.xyz"
    assert main(["view", "water1", "--export", str(file), "--duration", "0.05"]) == 0
    before = file.read_bytes()
    assert main(["view", str(file), "--export", str(tmp_path / "." / "w.xyz"), "--duration", "0.05"]) == 2
    assert "which is an input, expected another file" in capsys.readouterr().err and file.read_bytes() == before


def test_a_file_that_is_no_recording_is_not_to_be_unpickled(tmp_path, capsys):
    from tarsus.view.command import main

    file = tmp_path / "x.npz"
    file.write_bytes(bytes(range(256)) * 20)
    assert main(["view", str(file), "--export", str(tmp_path / "x.html")]) == 1
    err = capsys.readouterr().err
    assert "this is no .npz file" in err and "pickle" not in err


def test_a_failed_simulation_has_its_exit_status(tmp_path, capsys):
    from tarsus.view.command import main

    assert main(["view", str(HUMANOID), "--gains", "1e300,1e300", "--export", str(tmp_path / "x.html"), "--duration", "0.5"]) == 3
    assert "error: at 0.0166667 s: singular" in capsys.readouterr().err


def test_warnings_on_the_command_line_have_no_line_of_python(tmp_path, capfd):
    words = ["view", str(HUMANOID), "--clip", str(tarsus.MODELS / "clips" / "dog_pace.json"), "--export", "x.html", "--duration", "0.1"]
    subprocess.run([sys.executable, "-m", "tarsus", *words], cwd=tmp_path, check=True)
    err = capfd.readouterr().err
    assert "dog_pace.json: warning: channels not used: lower_spine" in err and "UserWarning" not in err and ".py" not in err


def test_a_captured_world_is_named(tmp_path, capsys):
    from tarsus.view.command import main

    file = tmp_path / "world.npz"
    tarsus.Batch(tarsus.Model.load(HUMANOID), 1, dt=0.01).capture(0, str(file))
    assert main(["view", str(file), "--export", str(tmp_path / "x.html")]) == 1
    assert "is a captured world, not a recording: tarsus replay repeats its step" in capsys.readouterr().err


def test_outputs_are_tried_before_the_run(tmp_path, capsys):
    from tarsus.view.command import main

    for option in ("--export", "--screenshot", "--video"):
        file = tmp_path / "nodir" / {"--export": "x.html", "--screenshot": "x.png", "--video": "x.mp4"}[option]
        assert main(["view", str(HUMANOID), option, str(file), "--duration", "0.5"]) == 1
        err = capsys.readouterr().err
        assert "No such file" in err and str(file) in err and "recording" not in err


@pytest.mark.parametrize("option, file, lacks", [("--export", "x.mcap", "pip install mcap"), ("--screenshot", "x.png", "apt-get install chromium"),
                                                 ("--video", "x.mp4", "apt-get install chromium")])
def test_tools_are_looked_for_before_the_run(option, file, lacks, tmp_path, capsys, monkeypatch):
    from tarsus.view.command import main

    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["view", str(HUMANOID), option, str(tmp_path / file), "--duration", "0.5"]) == 1
    err = capsys.readouterr().err
    assert lacks in err and "recording" not in err


def test_files_that_need_no_tool_are_written_without_it(tmp_path, capsys, monkeypatch):
    from tarsus.view.command import main

    monkeypatch.setenv("PATH", str(tmp_path))
    page, picture = tmp_path / "x.html", tmp_path / "x.png"
    assert main(["view", str(HUMANOID), "--export", str(page), "--screenshot", str(picture), "--duration", "0.1"]) == 1
    out, err = capsys.readouterr()
    assert out.split() == [str(page)] and page.stat().st_size > 0 and not picture.exists()
    assert f"error: {picture} is not written: pictures and films need Chromium" in err


def test_the_protocol_is_looked_for_before_the_run(tmp_path, capsys, monkeypatch):
    from tarsus.view import capture
    from tarsus.view.command import main

    monkeypatch.setattr(capture, "find_browser", lambda: shutil.which("true"))
    monkeypatch.setitem(sys.modules, "websockets.sync.client", None)
    assert main(["view", str(HUMANOID), "--screenshot", str(tmp_path / "x.png"), "--duration", "0.5"]) == 1
    err = capsys.readouterr().err
    assert 'pip install "tarsus[view]"' in err and "recording" not in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("name", ["w.xyz", "w.dcd", "w.html", "w.glb"])
def test_a_full_disk_is_an_error_that_names_the_file(name, tmp_path, capsys):
    from tarsus.view.command import main

    (tmp_path / name).symlink_to("/dev/full")
    assert main(["view", "water1", "--export", str(tmp_path / name), "--duration", "0.05"]) == 1
    assert re.search(f"No space left on device: '.*{name}'$", capsys.readouterr().err.strip())


@pytest.mark.parametrize("name", ["w.xyz", "w.dcd", "w.html", "w.glb"])
@pytest.mark.parametrize("there", [True, False])
def test_a_disk_that_fills_up_leaves_the_file_that_was_there(name, there, tmp_path):
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / name).symlink_to(tmp_path / name)
    if there:
        (tmp_path / name).write_text("mine")
    code = f"import sys; from tarsus.view.command import main; sys.exit(main(['view', 'water1', '--duration', '0.1', '--export', 'link/{name}']))"

    def run(most):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))

    failed = run(100)
    assert failed.returncode == 1 and failed.stderr.splitlines()[-1] == f"error: [Errno 27] File too large: 'link/{name}'"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link", *[name] * there]
    assert not there or (tmp_path / name).read_text() == "mine"
    assert run(10**8).returncode == 0 and (tmp_path / name).stat().st_size > 100 and (tmp_path / "link" / name).is_symlink()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link", name]


def test_films_whose_encoder_gives_up_are_errors(tmp_path, monkeypatch):
    from tarsus.view import capture

    class Browser:
        def __init__(self, *size):
            pass

        __enter__ = open = lambda self, *address: self
        __exit__ = lambda self, *error: None
        evaluate = lambda self, text: [0.0, 9.0]
        picture = lambda self, kind: b"0" * 100_000

    monkeypatch.setattr(capture, "Chromium", Browser)
    monkeypatch.setattr(capture, "find_encoder", lambda: shutil.which("false"))
    with pytest.raises(RuntimeError, match="ffmpeg failed with exit status 1"):
        capture.video(tmp_path / "page.html", tmp_path / "x.mp4")


#: A film whose browser and encoder need nothing: the encoder writes what it is given.
FILM = """
import sys
from tarsus.view import capture
from tarsus.view.command import main

class Browser:
    def __init__(self, *size):
        pass

    __enter__ = open = lambda self, *address: self
    __exit__ = lambda self, *error: None
    evaluate = lambda self, text: [0.0, 1e4]
    picture = lambda self, kind: b"0" * 1000

capture.Chromium = Browser
capture.find_browser = capture.find_protocol = lambda: None
capture.find_encoder = lambda: sys.argv[3]
sys.exit(main(["view", sys.argv[1], "--video", sys.argv[2], "--duration", "0.1"]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_film_leaves_the_file_that_was_there(number, tmp_path):
    (tmp_path / "ball.xml").write_text(BALL)
    (tmp_path / "encoder").write_text('#!/bin/sh\nfor last; do :; done\ncat > "$last"\n')
    (tmp_path / "encoder").chmod(0o755)
    (tmp_path / "film.mp4").write_text("mine")
    # A shell's background job ignores SIGINT, and so would its children.
    heed = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    run = subprocess.Popen([sys.executable, "-c", FILM, *(str(tmp_path / name) for name in ("ball.xml", "film.mp4", "encoder"))],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    while not run.stderr.readline().startswith("film"):
        assert run.poll() is None
    run.send_signal(number)
    out, errors = run.communicate(timeout=60)
    assert run.returncode == 128 + number and out == "" and "Traceback" not in errors
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ball.xml", "encoder", "film.mp4"]
    assert (tmp_path / "film.mp4").read_text() == "mine"


def test_a_recording_goes_to_the_end():
    source = ModelSource(tarsus.Model.load(HUMANOID), dt=0.007)
    times = record(source, 0.3).times
    assert times[0] == 0 and times[-1] == source.time and abs(times[-1] - 0.3) < 0.0036


def test_xyz_and_dcd_read_back_by_their_definitions(tmp_path):
    recording = water()
    write_xyz(tmp_path / "w.xyz", recording)
    lines = (tmp_path / "w.xyz").read_text().split("\n")
    n = int(lines[0])
    block = np.array([line.split()[1:] for line in lines[2 : 2 + n]], float)
    assert np.allclose(block[:, :3], recording.poses[0, :, :3], rtol=1e-6)
    write_dcd(tmp_path / "w.dcd", recording)
    data, at, records = (tmp_path / "w.dcd").read_bytes(), 0, []
    while at < len(data):  # Fortran's records: a length before and after
        size, = struct.unpack_from("<i", data, at)
        records.append(data[at + 4 : at + 4 + size])
        assert struct.unpack_from("<i", data, at + 4 + size)[0] == size
        at += 8 + size
    assert records[0][:4] == b"CORD" and struct.unpack_from("<i", records[0], 4)[0] == len(recording.frames)
    assert struct.unpack("<i", records[2])[0] == n
    last = np.array([np.frombuffer(r, "<f4") for r in records[-3:]]).T
    assert np.array_equal(last, recording.poses[-1, :, :3])


def test_xyz_names_what_is_no_element_by_a_label(tmp_path):
    """Other programs look species up among the elements. Reading restores the original species and masses."""
    source = ParticleSource("butane:1")
    write_xyz(tmp_path / "b.xyz", record(source, 0.02))
    lines = (tmp_path / "b.xyz").read_text().split("\n")
    assert "Properties=species:S:1:pos:R:3:masses:R:1:label:S:1 " in lines[1] and {line.split()[0] for line in lines[2:6]} == {"X"}
    again = tarsus.ParticleSystem.load(str(tmp_path / "b.xyz"))
    assert again.species == source.system.species and np.array_equal(again.mass, source.system.mass)


def test_particles_in_nanometres_stay_as_long(tmp_path):
    source = ParticleSource("chain:4")
    recording = record(source, 0.05)
    write_xyz(tmp_path / "c.xyz", recording)
    assert f"units=nm_ps step=12 time={12 * source.verlet.timestep:.9g}" in (tmp_path / "c.xyz").read_text()
    again = tarsus.ParticleSystem.load(str(tmp_path / "c.xyz"))
    assert again.units == "nm_ps" and np.allclose(again.position, source.system.position, atol=1e-6)
    write_dcd(tmp_path / "c.dcd", recording)  # in Angstrom
    z = np.frombuffer((tmp_path / "c.dcd").read_bytes()[-20:-4], "<f4")
    assert np.allclose(z, 10 * source.system.position[:, 2], rtol=1e-6)
    with pytest.raises(ValueError, match="a DCD file is in Angstrom, expected particles in nm_ps or angstrom_fs, not in si"):
        write_dcd(tmp_path / "r.dcd", record(ParticleSource("rope:4"), 0.05))
    assert not (tmp_path / "r.dcd").exists()


@pytest.mark.parametrize("box", [[3.0, 2.0, 4.0], [3.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
def test_files_of_particles_have_their_box(box, tmp_path):
    periodic = f'Lattice="{box[0]} 0 0 0 {box[1]} 0 0 0 {box[2]}" pbc="{" ".join("FT"[x > 0] for x in box)}"' if any(box) else ""
    (tmp_path / "in.xyz").write_text(f"2\n{periodic} Properties=species:S:1:pos:R:3 units=nm_ps\nO 0 0 0\nO 1 0 0\n")
    recording = record(ParticleSource(str(tmp_path / "in.xyz")), 0.02)
    write_xyz(tmp_path / "b.xyz", recording), write_dcd(tmp_path / "b.dcd", recording)
    assert tarsus.ParticleSystem.load(str(tmp_path / "b.xyz")).box.tolist() == box
    data = (tmp_path / "b.dcd").read_bytes()
    flag, = struct.unpack_from("<i", data, 4 + 44)  # the header's eleventh number
    assert flag == all(box)
    cells = re.findall(re.escape(struct.pack("<i6di", 48, 10 * box[0], 90, 10 * box[1], 90, 90, 10 * box[2], 48)), data)
    assert len(cells) == (len(recording.frames) if all(box) else 0)


# -- the server --


@pytest.fixture
def viewer():
    with tarsus.Viewer(ball_source(), playing=False) as viewer:
        yield viewer.start()


def status(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_it_listens_on_loopback_and_serves_its_page_alone(viewer):
    assert viewer.url.startswith("http://127.0.0.1:")
    assert status(viewer.url) == 200
    for path in ("../../../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "page.html", "thumbnails/../server.py", "index.html", "//etc/passwd"):
        assert status(viewer.url + path) == 404, path
    assert listening(viewer) == ["0100007F"]


def listening(viewer):
    """Addresses that its port listens on, in hexadecimal."""
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[3] == "0A" and row[1].endswith(f":{viewer.server.port:04X}")]


def test_it_listens_elsewhere_only_if_told(tmp_path):
    (tmp_path / "ball.xml").write_text(BALL)
    with tarsus.Viewer(tmp_path / "ball.xml", host="0.0.0.0", playing=False) as viewer:
        assert listening(viewer) == ["00000000"]
        assert status(viewer.url, Host=f"another.example:{viewer.server.port}") == 200  # it cannot know its names there
        assert status(viewer.url, Origin="http://evil.example") == 403


def test_foreign_origins_and_names_are_refused(viewer):
    port = viewer.server.port
    assert status(viewer.url, Origin="http://evil.example") == 403
    assert status(viewer.url, Host=f"evil.example:{port}") == 403
    assert status(viewer.url, Origin="null") == 403
    assert status(viewer.url, Origin=f"http://127.0.0.1:{port + 1}") == 403
    assert status(viewer.url, Origin=f"http://127.0.0.1:{port}") == 200

    async def tries():
        address = viewer.url.replace("http", "ws") + "socket"
        with pytest.raises(InvalidStatus):
            async with connect(address, origin="http://evil.example"):
                pass
        async with connect(address, origin=viewer.url.rstrip("/")) as socket:
            assert json.loads(await socket.recv())["type"] == "scene"

    asyncio.run(tries())


async def first_frame(socket):
    while True:
        message = await asyncio.wait_for(socket.recv(), 20)
        if isinstance(message, bytes):
            return message


async def state_of(socket, **wanted):
    while True:
        message = await asyncio.wait_for(socket.recv(), 20)
        if isinstance(message, str):
            found = json.loads(message)
            if found["type"] == "state" and all(found[key] == value for key, value in wanted.items()):
                return found


def time_of(frame):
    return struct.unpack_from("<d", frame, 24)[0]


def test_orders_play_pause_and_step(viewer):
    async def go():
        async with connect(viewer.url.replace("http", "ws") + "socket") as socket:
            scene = json.loads(await socket.recv())
            assert scene["can_push"] and [c["name"] for c in scene["controls"]][:2] == ["dt", "gravity"]
            frame = await first_frame(socket)
            sizes = struct.unpack_from("<6I", frame)
            assert sizes == (14, 0, 0, len(scene["series"]), 0, 0) and len(frame) == 32 + 4 * sum(sizes)
            await socket.send(json.dumps({"do": "step", "n": 3}))
            assert time_of(await first_frame(socket)) == pytest.approx(0.03)
            await socket.send(json.dumps({"do": "step", "n": -2}))
            assert time_of(await first_frame(socket)) == pytest.approx(0.01)
            await socket.send(json.dumps({"do": "play"}))
            await state_of(socket, playing=True)
            while time_of(await first_frame(socket)) < 0.1:
                pass
            await socket.send(json.dumps({"do": "pause"}))
            await state_of(socket, playing=False)

    asyncio.run(go())


def test_a_keyframe_sets_the_sliders_of_the_controls(tmp_path):
    keys = "<keyframe><key name='low' ctrl='.1'/><key name='high' ctrl='.7'/></keyframe>"
    arm = "<body><joint name='j'/><geom size='.1'/></body></worldbody><actuator><motor joint='j' ctrlrange='0 1'/></actuator>"
    (tmp_path / "arm.xml").write_text(f"<mujoco><worldbody>{arm}{keys}</mujoco>")

    async def tries(viewer):
        async with connect(viewer.url.replace("http", "ws") + "socket", max_size=None) as socket:
            await socket.send(json.dumps({"do": "keyframe", "index": 1}))
            while True:
                message = await asyncio.wait_for(socket.recv(), 20)
                found = json.loads(message) if isinstance(message, str) else {}
                if found.get("type") == "controls":
                    return {c["name"]: c["value"] for c in found["controls"]}

    with tarsus.Viewer(tmp_path / "arm.xml", playing=False) as viewer:
        assert asyncio.run(tries(viewer))["ctrl 0"] == 0.7


def test_nonsense_is_answered_and_does_no_harm(viewer):
    orders = ["", "{", "[]", "1", '{"do": "nosuch"}', '{"do": "step"}', '{"do": "step", "n": "x"}', '{"do": "step", "n": 1e999}',
              '{"do": "control", "name": "nosuch", "value": 1}', '{"do": "control", "name": "dt", "value": []}',
              '{"do": "push", "body": 1, "world": 0, "point": [0], "target": [0, 0, 0]}',
              '{"do": "push", "body": 77, "world": 0, "point": [0, 0, 0], "target": [0, 0, 0]}',
              '{"do": "push", "body": 1, "world": 0, "point": [0, 0, NaN], "target": [0, 0, 0]}',
              "[" * 20_000, '{"do": "open", "name": "walk"}', '{"do": "keyframe", "index": 5}', '{"do": "speed", "value": null}']

    async def go():
        async with connect(viewer.url.replace("http", "ws") + "socket") as socket:
            await first_frame(socket)
            for order in orders:
                await socket.send(order)
                while True:
                    answer = await asyncio.wait_for(socket.recv(), 20)
                    if isinstance(answer, str) and json.loads(answer)["type"] == "error":
                        break
            await socket.send(json.dumps({"do": "step", "n": 1}))
            assert len(await first_frame(socket)) > 32

    asyncio.run(go())
    assert np.isfinite(viewer.source.data.qpos).all()


def test_pages_beyond_the_most_are_refused(viewer, monkeypatch):
    """viewer.md: at most 256 connections. A page that closes makes room for another."""
    assert tarsus.view.server.MOST_CLIENTS == 256
    monkeypatch.setattr(tarsus.view.server, "MOST_CLIENTS", 2)
    address = viewer.url.replace("http", "ws") + "socket"

    async def go():
        async with connect(address) as first:
            await first_frame(first)
            async with connect(address) as second:
                await first_frame(second)
                with pytest.raises(InvalidStatus, match="503"):
                    async with connect(address):
                        pass
        deadline = time.monotonic() + 20
        while viewer.server.clients and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        async with connect(address) as third:
            await first_frame(third)

    asyncio.run(go())
    assert status(viewer.url) == 200


def test_connections_that_ask_nothing_are_nobodys_error(viewer, capfd):
    """Browsers open some connections in advance."""
    for said in (b"", b"GET / HT"):
        with socket.create_connection(("127.0.0.1", viewer.server.port)) as connection:
            connection.sendall(said)
    assert status(viewer.url) == 200
    time.sleep(0.2)
    assert capfd.readouterr().err == ""


def test_pages_that_come_while_it_steps_are_greeted():
    """Even while a rigid world is stepping and cannot answer requests."""
    with tarsus.Viewer(open_scene("balls"), playing=True) as viewer:
        viewer.start()

        async def go():
            for _ in range(10):
                async with connect(viewer.url.replace("http", "ws") + "socket", max_size=None) as page:
                    assert json.loads(await asyncio.wait_for(page.recv(), 20))["type"] == "scene"

        asyncio.run(go())


def test_frames_come_in_step_with_the_clock():
    """30 steps a second are 30 frames a second, and no pose is sent twice."""
    model = tarsus.Model.from_xml_string(BALL)
    with tarsus.Viewer(ModelSource(model, contacts=False, dt=1 / 30), playing=True) as viewer:
        viewer.start()

        async def go():
            async with connect(viewer.url.replace("http", "ws") + "socket") as page:
                await first_frame(page)
                return [time_of(await first_frame(page)) for _ in range(20)]

        times = np.array(asyncio.run(go()))
    assert (np.diff(times) > 0.03).all()


def test_two_hundred_connections_and_one_that_never_reads(viewer):
    async def go():
        address = viewer.url.replace("http", "ws") + "socket"
        sockets = [await connect(address, max_queue=None if i else 1) for i in range(200)]
        for socket in sockets:
            await first_frame(socket)
        await sockets[0].send(json.dumps({"do": "play"}))

        async def goes_on(socket):
            begin = time_of(await first_frame(socket))
            while time_of(await first_frame(socket)) < begin + 0.05:
                pass

        await asyncio.gather(*map(goes_on, sockets[1:]))  # the first no longer reads
        await asyncio.gather(*(socket.close() for socket in sockets[1:]))
        sockets[0].transport.abort()

    asyncio.run(go())
    time.sleep(0.2)
    assert status(viewer.url) == 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("words", [["view", "ball.xml"], ["demo", "rope"]])
def test_signals_end_it_cleanly(words, number, tmp_path):
    (tmp_path / "ball.xml").write_text(BALL)
    # A shell's background job ignores SIGINT, and so would its children.
    heed = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    run = subprocess.Popen([sys.executable, "-c", f"import sys; from tarsus.view.command import main; sys.exit(main({words}))"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed, cwd=tmp_path)
    line = run.stdout.readline()
    assert status(re.search(r"http://\S+", line)[0]) == 200
    run.send_signal(number)
    _, errors = run.communicate(timeout=30)
    assert run.returncode == 128 + number and errors == ""


def test_a_file_that_changes_is_loaded_again(tmp_path):
    from tarsus.view.viewer import Viewer

    path = tmp_path / "ball.xml"
    path.write_text(BALL)
    with Viewer(open_source(path), reload_from=(path, lambda: open_source(path)), playing=False) as viewer:
        viewer.start()
        path.write_text(BALL.replace("mass='2'", "mass='5'"))
        deadline = time.monotonic() + 20
        while viewer.source.scene["bodies"][1]["mass"] != 5 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert viewer.source.scene["bodies"][1]["mass"] == 5
        path.write_text("<mujoco><worldbody><body/>")
        while not viewer.error and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "cannot be read" in viewer.error and viewer.source.scene["bodies"][1]["mass"] == 5


def test_it_plays_on_while_its_file_is_half_written(tmp_path):
    path = tmp_path / "ball.xml"
    path.write_text(BALL)
    with tarsus.Viewer(open_source(path), reload_from=(path, lambda: open_source(path))) as viewer:
        viewer.start()
        for text, done in ((BALL[:60], lambda: "cannot be read" in viewer.error), (BALL, lambda: not viewer.error)):
            path.write_text(text)
            deadline = time.monotonic() + 20
            while not done() and time.monotonic() < deadline:
                time.sleep(0.02)
            assert done() and viewer.playing


def test_a_recording_is_played_by_its_times(monkeypatch):
    """Half a second of many frames, then one a second later. The clock is the test's own."""
    from tarsus.view import viewer as module

    times = np.append(np.arange(26) / 50, 1.5)
    model = tarsus.Model.load(tarsus.MODELS / "pendulum.xml")
    source = open_source(tarsus.view.PlaybackSource(model, times, np.zeros((len(times), model.nq))))
    seen = []

    class Clock:
        now = 0.0
        monotonic = lambda self: self.now  # noqa: E731
        is_set = lambda self: self.now > 1.6  # noqa: E731
        set = lambda self: None  # noqa: E731

        def wait(self, span):
            self.now += span
            seen.append((self.now, source.time))

    with tarsus.Viewer(source) as viewer:
        clock = Clock()
        monkeypatch.setattr(module, "clock", clock)
        viewer.stopping = clock
        viewer._play()
    for now, shown in seen:
        if 0.02 < now < 1.55:  # then it begins again
            assert times[times <= now - 0.02][-1] <= shown <= now + 1e-9


def test_a_loop_of_ones_own_updates_and_is_pulled():
    model = tarsus.Model.from_xml_string(BALL)
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data, dt=0.01)
    with tarsus.Viewer(model, data) as viewer:
        viewer.source.push(1, 0, [0, 0, 0], [0, 0, 4])
        for _ in range(20):
            viewer.update()
            stepper.step()
        assert data.qvel[2] > 0  # up, against gravity


# -- the command line --


def command(*words):
    return subprocess.run([sys.executable, "-m", "tarsus.view", *map(str, words)], capture_output=True, text=True, cwd=ROOT)


def test_the_command_writes_files_and_names_what_is_wrong(tmp_path):
    page = tmp_path / "walk.html"
    run = command(HUMANOID, "--clip", WALK, "--export", page, "--duration", "0.3")
    assert run.returncode == 0 and run.stdout.strip() == str(page), run.stderr
    assert page.stat().st_size < 6e6
    (tmp_path / "no.npz").write_bytes(b"")
    for words, code, expected in (((tmp_path / "no.xml",), 1, "no.xml"), (("nosuch",), 2, "neither a file"), ((HUMANOID, "--export", "x.doc"), 2, ".html"),
                                  ((WALK, "--model", tmp_path / "no.xml"), 1, "no.xml"), ((HUMANOID, "--force-limit", "3"), 2, "needs drives"),
                                  ((tmp_path / "no.npz",), 1, "not a recording")):
        run = command(*words)
        assert run.returncode == code and expected in run.stderr and "Traceback" not in run.stderr, run.stderr


@pytest.mark.parametrize("words", [("--port", "99999"), ("--port", "-1"), ("--duration", "nan"), ("--duration", "-1"),
                                   ("--size", "0x0"), ("--size", "big"), ("--at", "1"), ("--size", "9x9"), ("--theme", "dark"),
                                   ("--duration", "1"), ("--theme", "dark", "--export", "x.html"), ("--at", "0", "--video", "x.mp4"),
                                   ("--port", "0", "--export", "x.html"), ("--paused", "--screenshot", "x.png")])
def test_the_command_refuses_what_cannot_be_or_would_do_nothing(words):
    run = subprocess.run([sys.executable, "-m", "tarsus.view", HUMANOID, *words], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert run.returncode == 2 and words[0] in run.stderr.splitlines()[-1] and "Traceback" not in run.stderr, run.stderr


def test_a_gallery_without_a_scene_takes_no_options(capsys):
    from tarsus.view.command import main

    for option in (["--export", "x.html"], ["--paused"], ["--port", "0"]):
        with pytest.raises(SystemExit, match="2"):
            main(["demo", *option])
        assert f"{option[0]}: is given, expected together with the name of a scene" in capsys.readouterr().err
    assert main(["demo"]) == 0


@pytest.mark.parametrize("port", [99999, -1])
def test_a_port_that_cannot_be_is_an_error(port):
    with pytest.raises(tarsus.ValueError, match=f"port: is {port}"):
        tarsus.Viewer(ball_source(), port=port)


def test_what_keeps_the_server_from_starting_is_raised():
    with pytest.raises((OSError, ValueError)):
        tarsus.Viewer(ball_source(), host="no host\0")


def test_recordings_that_cannot_be_are_named(tmp_path):
    meta = np.frombuffer(json.dumps({"model_file": str(HUMANOID)}).encode(), np.uint8)
    model = tarsus.Model.load(HUMANOID)
    good = {"meta": meta, "time": np.array([0, 0.1]), "qpos": np.tile(model.qpos0, (2, 1)), "qvel": np.zeros((2, model.nv))}
    path = tmp_path / "run.npz"
    np.savez(path, **good)
    assert open_source(path).scene["name"] == "run"
    whole = path.read_bytes()
    for text in (b"", whole[:200], whole[:-40]):
        path.write_bytes(text)
        with pytest.raises(tarsus.InputError, match="run.npz: is not a recording"):
            open_source(path)
    for text in (b"{", b"[1]", b"3"):
        np.savez(path, **{**good, "meta": np.frombuffer(text, np.uint8)})
        with pytest.raises(tarsus.InputError, match='run.npz: is not a recording: "meta"'):
            open_source(path)
    for change, expected in (({"time": np.zeros(0), "qpos": np.zeros((0, model.nq)), "qvel": np.zeros((0, model.nv))}, "time of shape"),
                             ({"time": np.array([0, np.nan])}, "time that is not finite, in frame 1"),
                             ({"time": np.array([0.1, 0])}, "do not increase, after frame 0"),
                             ({"time": np.array([0, np.inf])}, "time that is not finite, in frame 1"),
                             ({"time": np.array([0, 0.1, 0.2])}, rf"qpos of shape \(2, {model.nq}\), expected \(3, {model.nq}\)"),
                             ({"qpos": np.array(np.nan)}, r"qpos of shape \(\)"),
                             ({"qpos": np.full((2, model.nq), np.nan)}, "qpos that is not finite, in frame 0"),
                             ({"target": np.zeros((2, 3))}, "target of shape"),
                             ({"time": np.array(["a", "b"])}, "time of <U1, expected float64"),
                             ({"qpos": np.zeros((2, model.nq)) * 1j}, "qpos of complex128, expected float64"),
                             ({"qvel": np.full((2, model.nv), np.inf)}, "qvel that is not finite"),
                             ({"qpos": good["qpos"][:1]}, "qpos of shape")):
        np.savez(path, **{**good, **change})
        with pytest.raises(tarsus.InputError, match=f"run.npz: has .*{expected}"):
            open_source(path)
        states = {key.replace("time", "times"): values for key, values in (good | change).items() if key != "meta"}
        with pytest.raises(tarsus.InputError, match=f"^states: has .*{expected}"):
            tarsus.view.PlaybackSource(model, **states)
    with pytest.raises(tarsus.InputError, match="^states: has qpos of object"):
        tarsus.view.PlaybackSource(model, [0], None)
    for wrong in ({"model_file": 5}, {"model_file": "models/pendulum.xml", "folder": [1]}):
        np.savez(path, **{**good, "meta": np.frombuffer(json.dumps(wrong).encode(), np.uint8)})
        with pytest.raises(tarsus.InputError, match=f"run.npz: is not a recording: {[*wrong][-1]} is .*, expected a name"):
            open_source(path)


def test_states_of_a_loop_of_ones_own_are_shown_on_the_given_model(tmp_path):
    model = tarsus.Model.load(HUMANOID)
    qpos = np.tile(model.qpos0, (3, 1))
    qpos[:, 0] = 0, 1, 2
    np.savez(tmp_path / "own.npz", time=[0, 0.1, 0.2], qpos=qpos)
    with pytest.raises(tarsus.InputError, match='"meta" is missing; name the model'):
        open_source(tmp_path / "own.npz")
    recording = record(open_source(tmp_path / "own.npz", model=HUMANOID), 10.0)
    assert np.allclose(recording.times, [0, 0.1, 0.2]) and np.allclose(np.diff(recording.poses[:, 1, 0]), 1)
    assert recording.series == []  # without velocities no energies
    of_lists = record(tarsus.view.PlaybackSource(model, [0, 0.1, 0.2], list(qpos)), 10.0)
    assert (of_lists.poses == recording.poses).all()


def test_demo_lists_the_gallery():
    code = "import sys; from tarsus.view.command import main; sys.exit(main(['demo']))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0 and all(f"  {name} " in run.stdout for name in SCENES)


def test_a_recording_without_frames_is_refused(tmp_path):
    with pytest.raises(ValueError):
        write_page(tmp_path / "x.html", Recording({"name": "x"}, []))
    frame = Frame(0.0, np.zeros((2, 7), np.float32))
    assert len(frame.packed()) == 32 + 4 * 14


@pytest.mark.parametrize("script", [
    "viewer = tarsus.Viewer(model, tarsus.Data(model))",
    "viewer = tarsus.Viewer(model, tarsus.Data(model)).start()",
    "try: tarsus.Viewer(model, tarsus.Data(model), host='nohost.invalid')\nexcept OSError: pass",
    "try: tarsus.Viewer(model, tarsus.Data(model), port=-1)\nexcept ValueError: pass",
])
def test_a_script_with_a_viewer_ends_quietly(script):
    start = f"import tarsus\nmodel = tarsus.Model.load({str(ROOT / 'models/pendulum.xml')!r})\n"
    run = subprocess.run([sys.executable, "-c", start + script], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
