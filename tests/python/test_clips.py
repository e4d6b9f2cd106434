"""Motions from files of several kinds: loaded, bound, retargeted, saved."""

import json
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import tarsus
from oracle import DATA

WALK = tarsus.MODELS / "clips" / "humanoid_walk.json"
HUMANOID = tarsus.MODELS / "humanoid.xml"


@pytest.fixture(scope="module")
def humanoid():
    return tarsus.Model.load(HUMANOID)


def test_a_motion_binds_as_its_clip_does(humanoid, tmp_path):
    motion = tarsus.MotionClip.load(WALK)
    clip = motion.bind(humanoid)
    both = tarsus.Clip.load(WALK, humanoid)
    assert len(clip.driven) == len(humanoid.joints)
    for t in (0.0, 0.37, 5.1):
        for mine, theirs in zip(clip.sample(t), both.sample(t)):
            np.testing.assert_array_equal(mine, theirs)
    motion.save(tmp_path / "again.json")
    again = tarsus.MotionClip.load(tmp_path / "again.json")
    np.testing.assert_allclose(again.frames, motion.frames, rtol=0, atol=1e-15)  # quaternions to rounding
    assert again.channels == motion.channels and again.times == motion.times
    assert motion.loop and again.loop and clip.loop
    with pytest.raises(tarsus.Error, match="cannot be written"):
        motion.save(tmp_path / "no" / "folder.json")


def test_a_skeleton_that_a_file_has_no_place_for_is_said(humanoid, tmp_path):
    motion = tarsus.MotionClip.load(walker_bvh(tmp_path / "walk.bvh"))
    with pytest.warns(UserWarning, match=r"out.json: the format does not store the skeleton: call retarget\(\) before save\(\)"):
        motion.save(tmp_path / "out.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motion.retarget(humanoid)[0].save(tmp_path / "out.json")


def test_a_run_starts_within_a_clip_that_does_not_loop(tmp_path):
    (tmp_path / "once.json").write_text(WALK.read_text().replace('"loop": true', '"loop": false'))
    for clip, start, code in ((WALK, "99", 0), (tmp_path / "once.json", "0.5", 0), (tmp_path / "once.json", "99", 2), (tmp_path / "once.json", "-1", 2)):
        run = subprocess.run([sys.executable, "-m", "tarsus", "run", HUMANOID, "--clip", clip, "--start", start, "--duration", "0.1", "--no-record"],
                             capture_output=True, text=True)
        assert run.returncode == code, run.stderr
        assert code == 0 or "expected a time within the clip, which ends at 1.04" in run.stderr, run.stderr


def test_amass_arrays_of_several_types(humanoid, tmp_path):
    n = 30
    poses = np.zeros((n, 165), dtype=np.float32)
    poses[:, 0] = np.pi / 2
    poses[:, 3 * 4] = np.linspace(0, 1, n)
    poses[:, 3 * 16 + 2], poses[:, 3 * 17 + 2] = -1.3, 1.3
    trans = np.tile([0.0, 0.0, 0.93], (n, 1))
    for rate in (np.float64(30), np.int64(30), np.float32(30)):
        np.savez_compressed(tmp_path / "a.npz", trans=trans, poses=poses, mocap_frame_rate=rate, gender="neutral")
        motion = tarsus.MotionClip.load(tmp_path / "a.npz")
        assert motion.format == "amass" and motion.duration == pytest.approx((n - 1) / 30)
    root, body = poses[:, :3].astype(float), poses[:, 3:66].astype(float)
    np.savez(tmp_path / "x.npz", trans=trans, root_orient=root, pose_body=body, fps=30)
    np.testing.assert_array_equal(tarsus.MotionClip.load(tmp_path / "x.npz").frames, motion.frames)
    moved, report = motion.retarget(humanoid)
    assert report["confidence"] > 0.9 and report["direction_error"] < 0.25
    column = {name: first for name, _, first in moved.channels}
    assert moved.frames[-1, column["left_knee"]] == pytest.approx(1.1, abs=0.1)  # 0.1 of it at rest
    assert moved.frames[-1, column["right_knee"]] == pytest.approx(0.1, abs=0.1)
    np.savez(tmp_path / "b.npz", values=np.zeros(3))
    with pytest.raises(tarsus.InputError, match="not an AMASS motion.*contains values"):
        tarsus.MotionClip.load(tmp_path / "b.npz")


@pytest.mark.parametrize("protocol", range(2, 6))
def test_mimickits_pickles(protocol, tmp_path):
    frames = np.zeros((5, 34))
    frames[:, 2] = 0.88
    frames[:, 12], frames[:, 16] = np.pi / 2, -np.pi / 2
    as_list = pickle.dumps({"loop_mode": 0, "fps": 30, "frames": frames.tolist()}, protocol)
    (tmp_path / "stand.pkl").write_bytes(as_list)
    motion = tarsus.MotionClip.load(tmp_path / "stand.pkl")
    assert motion.format == "mimickit_humanoid" and len(motion.times) == 5
    if protocol >= 4:
        for dtype in (np.float64, np.float32):
            (tmp_path / "array.pkl").write_bytes(
                pickle.dumps({"loop_mode": 0, "fps": np.float64(30), "frames": frames.astype(dtype)}, protocol))
            np.testing.assert_allclose(tarsus.MotionClip.load(tmp_path / "array.pkl").frames, motion.frames, atol=1e-7)
    (tmp_path / "evil.pkl").write_bytes(pickle.dumps({"frames": print}, protocol))
    with pytest.raises(tarsus.InputError, match="not run"):
        tarsus.MotionClip.load(tmp_path / "evil.pkl")


def test_a_mapping_that_drives_little_is_refused(humanoid, tmp_path):
    (tmp_path / "few.json").write_text(
        '{"format": "tarsus-clip-mapping", "version": 1, "joints": {"left_knee": {"from": "left_knee"}}}')
    with pytest.raises(tarsus.InputError, match=r"drives 1 of 13 joints.*partial=True"):
        tarsus.Clip.load(WALK, humanoid, tmp_path / "few.json")
    assert len(tarsus.Clip.load(WALK, humanoid, tmp_path / "few.json", partial=True).driven) == 1


def test_cmus_motions_on_the_humanoid(humanoid):
    file = DATA / "cmu_mocap" / "subjects" / "02" / "02_01.amc"
    if not file.exists():
        pytest.skip("no CMU motions in ../shared/data")
    motion = tarsus.MotionClip.load(file)
    assert motion.format == "amc" and motion.duration == pytest.approx((len(motion.times) - 1) / 120)
    moved, report = motion.retarget(humanoid)
    assert report["slide_mean"] < 0.02 and report["direction_error"] < 0.25, report
    assert moved.bind(humanoid).duration == pytest.approx(motion.duration)


def walker_bvh(path):
    """A synthetic motion of two legs that swing, a trunk and two arms."""
    def joint(name, offset, *below, end=None):
        inner = "".join(below) or f"End Site\n{{\nOFFSET {end}\n}}\n"
        return f"{'ROOT' if name == 'Hips' else 'JOINT'} {name}\n{{\nOFFSET {offset}\nCHANNELS {'6 Xposition Yposition Zposition' if name == 'Hips' else '3'} Zrotation Xrotation Yrotation\n{inner}}}\n"

    def limb(names, x, y, lengths):
        last = joint(names[-1], f"0 -{lengths[-2]} 0", end=f"0 0 {lengths[-1]}")
        for name, length in zip(names[-2:0:-1], lengths[-3::-1]):
            last = joint(name, f"0 -{length} 0", last)
        return joint(names[0], f"{x} {y} 0", last)

    legs = "".join(limb([side + part for part in ("UpLeg", "Leg", "Foot")], x, 0, (40, 40, 15)) for side, x in (("Left", 10), ("Right", -10)))
    arms = "".join(limb([side + part for part in ("Arm", "ForeArm", "Hand")], x, 25, (28, 25, 10)) for side, x in (("Left", 18), ("Right", -18)))
    text = "HIERARCHY\n" + joint("Hips", "0 0 0", legs, joint("Spine", "0 25 0", arms, joint("Neck", "0 30 0", joint("Head", "0 10 0", end="0 15 0"))))
    count = 6 + 3 * (text.count("JOINT"))
    frames = "".join(" ".join(["0", "82", str(k)] + ["0"] * (count - 3)) + "\n" for k in range(20))
    path.write_text(f"{text}MOTION\nFrames: 20\nFrame Time: 0.033333\n{frames}")
    return path


def moved_walker(path, places):
    """The synthetic motion with other positions of its root along z, a frame every 0.01 s."""
    head, motion = walker_bvh(path).read_text().split("MOTION")
    rest = motion.strip().splitlines()[2].split()[3:]
    rows = "".join(" ".join(["0", "82", repr(float(z)), *rest]) + "\n" for z in places)
    path.write_text(f"{head}MOTION\nFrames: {len(places)}\nFrame Time: 0.01\n{rows}")
    return path


def map_command(*arguments):
    return subprocess.run([sys.executable, "-m", "tarsus", "map", *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize("first", ["ball", "character"])
def test_a_free_body_beside_the_character_stays_where_it_is(humanoid, tmp_path, first):
    """Only the character is fitted, in whichever order the file has them."""
    parts = ['<worldbody><body pos="3 0 1"><freejoint name="ball"/><geom size=".1"/></body></worldbody>', '<include file="humanoid.xml"/>']
    text = "".join(parts if first == "ball" else parts[::-1])
    model = tarsus.Model.from_xml_string(f"<mujoco>{text}</mujoco>", tarsus.MODELS)
    motion = tarsus.MotionClip.load(walker_bvh(tmp_path / "walk.bvh"))
    with pytest.warns(UserWarning, match="stay at rest: ball"):
        clip = tarsus.Clip.load(tmp_path / "walk.bvh", model)
    alone = motion.retarget(humanoid)[0].bind(humanoid)
    for t in np.linspace(0, clip.duration, 5):
        qpos = clip.sample(t)[0]
        for joint in model.joints:
            place = joint.qpos
            expected = [3, 0, 1, 1, 0, 0, 0] if joint.name == "ball" else alone.sample(t)[0][humanoid.joint(joint.name).qpos]
            np.testing.assert_allclose(qpos[place], expected, rtol=0, atol=1e-6)


def test_a_mapping_that_is_a_guess_is_no_success(tmp_path):
    clip, out, moved = walker_bvh(tmp_path / "walk.bvh"), tmp_path / "map.json", tmp_path / "moved.json"
    run = map_command(clip, HUMANOID, "--clip-out", moved)
    assert run.returncode == 0 and not run.stderr and moved.exists(), run.stderr
    moved.unlink()
    for more in ([], ["--json"]):
        run = map_command(clip, tarsus.MODELS / "dog.xml", "--out", out, "--clip-out", moved, *more)
        assert run.returncode == 1 and "do not seem to match (confidence 0.1" in run.stderr
        assert "left_knee" in run.stdout and out.exists() and not moved.exists()
    dog, error = tarsus.Model.load(tarsus.MODELS / "dog.xml"), run.stderr.strip()
    with pytest.raises(tarsus.InputError) as refused:
        tarsus.Clip.load(clip, dog)
    followed = subprocess.run([sys.executable, "-m", "tarsus", "run", tarsus.MODELS / "dog.xml", "--clip", clip, "--no-record"], capture_output=True, text=True)
    assert str(refused.value) == error and followed.returncode == 1 and followed.stderr.strip() == error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # joints that are not driven
        assert tarsus.Clip.load(clip, dog, out, partial=True).driven  # the mapping was reviewed
        assert "loin" not in run.stdout  # the front legs begin at one body: they are no two arms
    run = map_command(clip, tarsus.MODELS / "dog.xml", "--mapping", out, "--clip-out", moved)   # the mapping was reviewed
    assert run.returncode == 0 and moved.exists(), run.stderr
    run = map_command(clip, tarsus.MODELS / "pendulum.xml")
    assert run.returncode == 1 and run.stderr.startswith(f"{tarsus.MODELS / 'pendulum.xml'}: error: no two legs were found in model 'pendulum'")


def test_a_mapping_that_is_uncertain_is_warned_of(humanoid, tmp_path):
    """The right shin has 0.6 of the left's length."""
    clip = walker_bvh(tmp_path / "walk.bvh")
    text, count = re.subn(r"(JOINT RightFoot\n{\nOFFSET 0) -40 0", r"\1 -24 0", clip.read_text())
    assert count == 1
    clip.write_text(text)
    warning = r"walk.bvh: warning: the mapping is uncertain \(confidence 0\.60\): .*--mapping \(in Python mapping=\)"
    with pytest.warns(UserWarning, match=warning):
        tarsus.Clip.load(clip, humanoid)
    for run in (map_command(clip, HUMANOID), subprocess.run([sys.executable, "-m", "tarsus", "run", HUMANOID, "--clip", clip, "--duration", "0.1", "--no-record"],
                                                            capture_output=True, text=True)):
        assert run.returncode == 0 and re.search(warning, run.stderr), run.stderr


def test_positions_in_the_place_of_offsets(tmp_path):
    """Each joint's OFFSET is zero and its position is in the frames: the same motion, and the same confidence."""
    text = walker_bvh(tmp_path / "walk.bvh").read_text()
    head, frames = text.split("MOTION")
    given = [[float(x) for x in row.split()] for row in frames.splitlines() if row and not row.startswith("Frame")]
    joints, lines, moved = [], [], [[] for _ in given]
    for line in head.splitlines():
        if line.startswith("OFFSET") and not lines[-2].startswith("End"):
            joints.append(line.split()[1:])
            line = "OFFSET 0 0 0"
        lines.append(line.replace("CHANNELS 3", "CHANNELS 6 Xposition Yposition Zposition"))
    for row, old in zip(moved, given):
        for k, offset in enumerate(joints):
            row += (old[:3] if k == 0 else [float(x) for x in offset]) + old[3 + 3 * k:6 + 3 * k]
    rows = "".join(" ".join(map(repr, row)) + "\n" for row in moved)
    (tmp_path / "zero.bvh").write_text("\n".join(lines) + f"\nMOTION\nFrames: {len(moved)}\nFrame Time: 0.033333\n{rows}")
    said = [map_command(tmp_path / name, HUMANOID, "--clip-out", tmp_path / "out.json", "--json") for name in ("walk.bvh", "zero.bvh")]
    assert [run.returncode for run in said] == [0, 0], said[1].stderr
    walk, zero = (json.loads(run.stdout) for run in said)
    assert zero["confidence"] == walk["confidence"] > 0.9 and zero["scale"] == pytest.approx(walk["scale"], rel=1e-9)
@pytest.mark.parametrize("turn, step, start, up", [
    (0, (0, 0, 5), (0, 82, 0), "+y"),    # walks
    (90, (0, 0, 5), (0, 10, 0), "+y"),   # slides on its belly, head first
    (90, (0, 0, 0), (0, 10, 0), "+y"),   # lies still, at the origin
    (-90, (5, 0, 0), (0, 10, 90), "+y"),  # lies on its back
    (180, (0, 0, 0), (0, 100, 0), "+y"),  # stands on its head
    (90, (0, -5, 0), (0, 0, 82), "+z"),  # walks in a world with z up: the root turns the rest pose, in which y is up, to it
    (90, (0, 0, 0), (0, 0, 82), "+z")])
def test_where_up_is_in_a_bvh_file(humanoid, tmp_path, turn, step, start, up):
    path = walker_bvh(tmp_path / "walk.bvh")
    head, motion = path.read_text().split("MOTION")
    rest = motion.strip().splitlines()[2].split()[6:]
    rows = "".join(" ".join(map(str, [*(np.array(start) + k * np.array(step)), 0, turn, 0, *rest])) + "\n" for k in range(20))
    path.write_text(f"{head}MOTION\nFrames: 20\nFrame Time: 0.033333\n{rows}")
    moved, report = tarsus.MotionClip.load(path).retarget(humanoid)
    assert report["up"] == up
    clip = moved.bind(humanoid)
    along = axes_of(humanoid, clip, "pelvis")[:, 2, 2]  # the height of the pelvis's own up
    np.testing.assert_allclose(along, np.cos(np.radians(turn)) if up == "+y" else 1, atol=0.1)
    # The command shows it, and a mapping file keeps it.
    file = tmp_path / "map.json"
    run = map_command(path, HUMANOID, "--out", file)
    assert f"up in the clip is {up}\n" in run.stdout and json.loads(file.read_text())["source"]["up"] == up
    assert json.loads(map_command(path, HUMANOID, "--json").stdout)["up"] == up
    other = "+x" if up == "+z" else "+z"
    file.write_text(re.sub(r'"up": "..", "forward": ".."', f'"up": "{other}", "forward": "+y"', file.read_text()))
    assert tarsus.MotionClip.load(path).retarget(humanoid, file)[1]["up"] == other


@pytest.mark.parametrize("gap", [1, 4, 8, 16])
def test_feet_do_not_slide_in_stances_that_follow_shortly(humanoid, tmp_path, gap):
    """Feet that drift at 0.2 m/s stand; gap frames at 0.8 m/s separate two stances."""
    speed = np.full(80 + gap, 0.2)
    speed[40:40 + gap] = 0.8
    centimetres = 100 * 0.01 * np.r_[0, np.cumsum(speed)]
    _, report = tarsus.MotionClip.load(moved_walker(tmp_path / "drift.bvh", centimetres)).retarget(humanoid)
    assert report["stances"] == 4 and report["slide_max"] < 1e-3, report


def test_segments_without_length_have_no_error(humanoid, tmp_path):
    """Forearms that are a sphere at the elbow have no direction; nor have those of a source whose hands are at its elbows."""
    walk = walker_bvh(tmp_path / "walk.bvh")
    motion = tarsus.MotionClip.load(walk)
    _, whole = motion.retarget(humanoid)
    text, count = re.subn(r'(<body name="(?:left|right)_forearm".*?)<geom.*?(</body>)', r'\1<geom size=".03" mass="1"/>\2',
                          HUMANOID.read_text(), flags=re.DOTALL)
    assert count == 2
    without_hands = walk.read_text().replace("OFFSET 0 -25 0", "OFFSET 0 0 0")
    assert without_hands != walk.read_text()
    walk.write_text(without_hands)
    for clip, model in ((motion, tarsus.Model.from_xml_string(text)), (tarsus.MotionClip.load(walk), humanoid)):
        _, report = clip.retarget(model)
        assert report["direction_worst"] < whole["direction_worst"] + 0.01 and "forearm" not in report["worst_segment"], report


def axes_of(model, clip, body):
    """[n, 3, 3] a body's axes, as columns, at n times of a clip."""
    w, x, y, z = tarsus.poses_of(model, clip.sample(np.linspace(0, clip.duration, 10))[0])[:, model.body(body).id, 3:].T
    return np.stack([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]]).transpose(2, 0, 1)


def test_feet_of_four_spheres_point_ahead(tmp_path):
    """As those of the source. Each front sphere alone is 20 degrees beside the middle of the foot."""
    box = '<geom class="foot" type="box" pos="0.045 0 -0.0225" size="0.0875 0.045 0.0275" mass="0.87"/>'
    spheres = "".join(f'<geom class="foot" pos="{x} {y} -0.04" size="0.01" mass="0.2"/>' for x in (-0.0425, 0.1225) for y in (0.045, -0.045))
    text = HUMANOID.read_text()
    assert text.count(box) == 2
    model = tarsus.Model.from_xml_string(text.replace(box, spheres))
    clip = tarsus.MotionClip.load(walker_bvh(tmp_path / "walk.bvh")).retarget(model)[0].bind(model)
    for side in ("left", "right"):
        ahead = axes_of(model, clip, f"{side}_foot")[:, :, 0]
        assert np.abs(np.degrees(np.arctan2(ahead[:, 1], ahead[:, 0]))).max() < 1, side


def swinging_walker(path, mirrored=False):
    """The synthetic skeleton, bowing to its left and swinging its limbs, or the mirror image of this motion."""
    head = walker_bvh(path).read_text().split("MOTION")[0]
    rows = ""
    for k in range(20):
        row = [-2 * k if mirrored else 2 * k, 82, 3 * k, *(np.array([-1 if mirrored else 1, 1, -1 if mirrored else 1]) * [3, 5, 7] * np.sin(0.3 * k))]
        for name in re.findall(r"JOINT (\w+)", head):
            left = ("Right" if mirrored else "Left") in name
            sign = -1 if ("Right" in name or (mirrored and "Left" not in name)) else 1   # of turns about z and y
            size = {"UpLeg": 25, "Leg": 20, "Arm": 30, "ForeArm": -25, "Spine": 35}.get(name.removeprefix("Left").removeprefix("Right"), 5)
            swing = size * np.sin(0.3 * k + (1 if left else 0))
            row += [sign * 0.3 * swing, abs(swing) if name.endswith("tLeg") else -swing, sign * 0.2 * swing]
        rows += " ".join(map(repr, map(float, row))) + "\n"
    path.write_text(f"{head}MOTION\nFrames: 20\nFrame Time: 0.03\n{rows}")
    return path


def with_hip_hinges(chain):
    """The humanoid with three hinges in place of each ball of its hips, in one body or in three, as robots have them."""
    text = HUMANOID.read_text()
    for side in ("left", "right"):
        thigh = re.search(rf'<body name="{side}_thigh" (pos="[^"]*")>\s*<joint[^>]*/>(.*?</body>\s*</body>)\s*</body>', text, re.DOTALL)
        yaw, roll, pitch = (f'<joint name="{side}_hip_{name}" axis="{axis}"/>' for name, axis in (("yaw", "0 0 1"), ("roll", "1 0 0"), ("pitch", "0 1 0")))
        light, (place, rest) = '<inertial pos="0 0 0" mass="0.01" diaginertia="1e-5 1e-5 1e-5"/>', thigh.groups()
        hip = (f'<body name="{side}_hip_yaw_link" {place}>{yaw}{light}<body name="{side}_hip_roll_link">{roll}{light}'
               f'<body name="{side}_thigh">{pitch}{rest}</body></body></body>' if chain else f'<body name="{side}_thigh" {place}>{yaw}{roll}{pitch}{rest}</body>')
        text = text.replace(thigh.group(0), hip)
    return tarsus.Model.from_xml_string(text)


def test_hips_that_are_chains_of_bodies(tmp_path):
    """The pelvis is the body that carries both legs, not one of the links of the left hip: the motion is that of the same hip in one body, and the
    mirror image of a motion is retargeted to the mirror image."""
    frames = {}
    for chain in (False, True):
        for mirrored in (False, True):
            model = with_hip_hinges(chain)
            moved = tarsus.MotionClip.load(swinging_walker(tmp_path / "walk.bvh", mirrored)).retarget(model)[0]
            frames[chain, mirrored] = np.array(moved.frames)
    np.testing.assert_allclose(frames[True, False], frames[False, False], rtol=0, atol=1e-6)
    column = {name: first for name, _, first in moved.channels}
    for chain in (False, True):
        for joint, sign in (("hip_yaw", -1), ("hip_roll", -1), ("hip_pitch", 1), ("knee", 1)):
            left, right = frames[chain, False][:, column[f"left_{joint}"]], frames[chain, True][:, column[f"right_{joint}"]]
            np.testing.assert_allclose(left, sign * right, rtol=0, atol=1e-6, err_msg=f"{joint} {chain}")


@pytest.mark.parametrize("quat", ["0.7071 0 -0.7071 0", "0.7071 0 0.7071 0", "0.7071 0.7071 0 0", "0 1 0 0", "0.7071 0 0 0.7071", "0.99 0.1 -0.1 0"],
                         ids=["on its back", "face down", "on its side", "upside down", "yawed", "leaning"])
def test_the_pose_of_a_models_free_root_does_not_matter(humanoid, tmp_path, quat):
    """The fit finds the root and all joints. 'Flat' is a foot's angle in the standing figure, not in the model's pose."""
    text = HUMANOID.read_text().replace('<body name="pelvis"', f'<body name="pelvis" quat="{quat}"')
    motion = tarsus.MotionClip.load(swinging_walker(tmp_path / "walk.bvh"))
    (mine, report), (standing, expected) = motion.retarget(tarsus.Model.from_xml_string(text)), motion.retarget(humanoid)
    difference = np.abs(mine.frames - standing.frames)
    difference[:, 3:7] = np.minimum(difference[:, 3:7], np.abs(mine.frames + standing.frames)[:, 3:7])
    assert difference.max() < 1e-4, (report, expected)


def test_positions_that_are_too_far_away_are_named(humanoid, tmp_path):
    """One frame at 1e16 was retargeted to its neighbours, and a skeleton 1e160 times as large to a scale of zero."""
    def retarget(places=np.arange(10.0), offsets=None):
        path = moved_walker(tmp_path / "far.bvh", places)
        if offsets:
            path.write_text(re.sub(r"OFFSET (.*)", lambda m: "OFFSET " + " ".join(f"{x}e{offsets}" for x in m.group(1).split()), path.read_text()))
        return tarsus.MotionClip.load(path).retarget(humanoid)[1]

    near = retarget()
    jump = np.arange(10.0)
    jump[5] = 1e16
    with pytest.raises(tarsus.InputError, match=r"far.bvh: error: frame 5, at 0.05 s: its head is 1.*e\+14 m from the origin .*at most 1e\+09 m"):
        retarget(jump)
    jump[5] = 1e6
    with pytest.raises(tarsus.InputError, match=r"frame 5, at 0.05 s: its head is .* m from where it was a frame before .*at most 1e\+03 m"):
        retarget(jump)
    with pytest.raises(tarsus.InputError, match=r"frame 0, at 0 s: its head is .* m from the origin"):
        retarget(np.arange(10.0) + 1e16)
    for exponent in (160, -320):
        with pytest.raises(tarsus.InputError, match="the legs are inf long in the skeleton|the skeleton's legs have no length"):
            retarget(offsets=exponent)
    far = retarget(np.arange(10.0) + 1e8)
    assert far["direction_error"] == pytest.approx(near["direction_error"], abs=1e-4) and far["scale"] == near["scale"]


@pytest.mark.parametrize("changes, message", [
    ({"left_ankle": {"from": "LeftFoot", "body": "left_shin"}}, "points 'left_(ankle|knee)' and 'left_(ankle|knee)' are both at body 'left_shin'"),
    ({"left_toe": {"from": "LeftFoot_end", "body": "right_foot", "tip": True}}, "points '.*_toe' and '.*_toe' are both the far end of body 'right_foot'"),
    ({"left_knee": {"from": "LeftLeg", "body": "left_shin", "sure": -5}}, "the confidence is -5, expected 0 to 1 .*left_knee"),
    ({"left_knee": {"from": "LeftLeg", "body": "left_shin", "sure": 1.5}}, "the confidence is 1.5, expected 0 to 1 .*left_knee")])
def test_mistakes_in_the_points_of_a_mapping(humanoid, tmp_path, changes, message):
    clip, file = walker_bvh(tmp_path / "walk.bvh"), tmp_path / "map.json"
    assert map_command(clip, HUMANOID, "--out", file).returncode == 0
    mapping = json.loads(file.read_text())
    mapping["points"].update(changes)
    file.write_text(json.dumps(mapping))
    with pytest.raises(tarsus.InputError, match=message):
        tarsus.MotionClip.load(clip).retarget(humanoid, file)


def test_feet_that_are_welded_to_their_shins(tmp_path):
    text, count = re.subn(r'<joint name="(left|right)_ankle"[^>]*/>', "", HUMANOID.read_text())
    model = tarsus.Model.from_xml_string(text)
    assert count == 2
    moved, report = tarsus.MotionClip.load(walker_bvh(tmp_path / "walk.bvh")).retarget(model)
    assert report["confidence"] > 0.99 and report["direction_error"] < 0.1 and report["slide_max"] < 0.01, report
    assert len(moved.bind(model).driven) == len(model.joints)


def test_a_mapping_of_another_format_is_refused(humanoid, tmp_path):
    clip, mapping = walker_bvh(tmp_path / "walk.bvh"), tmp_path / "map.json"
    assert map_command(clip, HUMANOID, "--out", mapping).returncode == 0
    text = mapping.read_text()
    assert '"format": "bvh"' in text
    motion = tarsus.MotionClip.load(clip)
    motion.retarget(humanoid, mapping)
    mapping.write_text(text.replace('"format": "bvh"', '"format": "amass"'))
    for use in (lambda: motion.retarget(humanoid, mapping), lambda: motion.bind(humanoid, mapping)):
        with pytest.raises(tarsus.InputError, match="map.json.*for clips of format 'amass', but 'walk' is of format 'bvh'"):
            use()
    assert "for clips of format 'amass'" in map_command(clip, HUMANOID, "--mapping", mapping).stderr
    mapping.write_text(text.replace('"points"', '"scale": 0.01, "points"'))
    with pytest.raises(tarsus.InputError, match="has no effect with .points..*\\(scale\\)"):
        motion.retarget(humanoid, mapping)


@pytest.mark.parametrize("times, frames", [([0, 1, 2], [1e308, -1e308, 1e308]), ([0, 5e-324, 1], [0, 1, 2]), ([0, 1e-301, 1], [0, 0, 0])])
def test_frames_that_cannot_be_interpolated_are_named(times, frames, tmp_path):
    """Poses between such frames would not be finite."""
    model = tarsus.Model.load(tarsus.MODELS / "pendulum.xml")
    file = tmp_path / "clip.json"
    clip = {"format": "tarsus-clip", "version": 1, "name": "c", "loop": False, "up": "+z", "forward": "+x", "times": times,
            "channels": [{"name": model.joints[0].name, "kind": "angle"}], "frames": [[x] for x in frames]}
    file.write_text(json.dumps(clip))
    with pytest.raises(tarsus.InputError, match=r"clip.json: error: frames 0 and 1, at 0 s and .* s: their numbers are too large, or their times too close"):
        tarsus.Clip.load(file, model)
    clip["times"], clip["frames"] = [0, 1e-6, 1], [[1e200], [-1e200], [1e200]]
    file.write_text(json.dumps(clip))
    with pytest.warns(UserWarning, match="angle 'hinge' turns by -2e\\+200 rad from frame 0 to frame 1"):
        bound = tarsus.Clip.load(file, model)
    assert all(np.isfinite(bound.sample(np.linspace(0, 1, 101))[k]).all() for k in (0, 1))


def test_a_long_clip_that_is_saved_is_read_again(tmp_path):
    """60,000 frames are 1 MB of BVH and 11 MB in this project's format, with all digits."""
    joint = "OFFSET 0 -1 0\n CHANNELS 3 Zrotation Xrotation Yrotation\n End Site\n {\n OFFSET 0 -1 0\n }\n"
    head = ("HIERARCHY\nROOT Hips\n{\n OFFSET 0 0 0\n CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation\n JOINT Leg\n {\n "
            + joint + " }\n}\nMOTION\nFrames: 60000\nFrame Time: 0.01\n")
    (tmp_path / "long.bvh").write_text(head + "".join(f".1 1 .2 {k % 7} {k % 5} {k % 3} {k % 11} 3 {k % 13}\n" for k in range(60000)))
    clip = tarsus.MotionClip.load(tmp_path / "long.bvh")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the skeleton is not stored
        clip.save(tmp_path / "long.json")
    assert (tmp_path / "long.json").stat().st_size > 8 << 20
    again = tarsus.MotionClip.load(tmp_path / "long.json")
    assert again.times == clip.times and np.abs(again.frames - clip.frames).max() < 1e-15


def test_a_file_is_not_touched_by_a_clip_that_could_not_be_read_again(tmp_path):
    """1,100,000 frames of two numbers: a row of BVH is read from 4 bytes, one of JSON takes a place in memory."""
    rows = "0\n" * 1100000
    (tmp_path / "long.bvh").write_text(f"HIERARCHY\nROOT a\n{{\nOFFSET 0 0 0\nCHANNELS 1 Zrotation\n}}\nMOTION\nFrames: 1100000\nFrame Time: 0.01\n{rows}")
    clip = tarsus.MotionClip.load(tmp_path / "long.bvh")
    (tmp_path / "long.json").write_text("before")
    with pytest.raises(tarsus.InputError, match="long.bvh: error: this clip cannot be stored in the format tarsus-clip, because it could not be read again: more than 1000000 values"):
        clip.save(tmp_path / "long.json")
    assert (tmp_path / "long.json").read_text() == "before"


@pytest.mark.parametrize("times", [np.array([0.5]), np.array([0.5, 0.25]), np.zeros(0)])
def test_an_array_of_times_gives_an_array_of_poses(humanoid, times):
    """Also an array of one number, which NumPy before 2.4 takes for a number."""
    clip = tarsus.Clip.load(tarsus.MODELS / "clips" / "humanoid_walk.json", humanoid)
    qpos, qvel = clip.sample(times)
    assert qpos.shape == (len(times), humanoid.nq) and qvel.shape == (len(times), humanoid.nv)
    for row, t in zip(qpos, times):
        for number in (float(t), t, np.array(t)):
            assert np.array_equal(clip.sample(number)[0], row)


def test_times_beyond_all_cycles_are_refused(humanoid):
    """There the time within a cycle is unknown, and positions would not be finite."""
    clip = tarsus.Clip.load(tarsus.MODELS / "clips" / "humanoid_walk.json", humanoid)
    assert all(np.isfinite(part).all() for part in clip.sample(0.9 * 2**53 * clip.duration))
    for t in (1.7e308, -1.7e308, 1.1 * 2**53 * clip.duration):
        for given in (t, np.array([0.0, t])):
            with pytest.raises(tarsus.ValueError, match=r"t: is .*, expected at most 2\^53 cycles of the clip, "):
                clip.sample(given)
