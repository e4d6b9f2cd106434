"""Quality of motions retargeted from other skeletons to a humanoid: a table, and a picture of each. `make retarget-report`.

Each BVH file is mapped by itself (`tarsus map`), retargeted and tracked under stable PD (`tarsus run`). The pictures show the file's own
skeleton, by forward kinematics computed here, and the character that tracks it, at six times. Written to out/retarget/.

Exit status 1 if fewer than 80 % of the files map and track with a mean error of at most 8 cm and feet that slide by at most 2 cm per stance.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

import tarsus  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared/data"
MODEL = ROOT / "models/humanoid.xml"
ERROR, SLIDE, SHARE, SECONDS, MOMENTS = 0.08, 0.02, 0.8, 4.0, 6


class Skeleton:
    """A BVH file: joints, their parents, and their positions in a frame (the file's units, y up)."""

    def __init__(self, path):
        words = iter(path.read_text(errors="replace").split())
        self.parents, self.offsets, self.channels, open_joints, joint = [], [], [], [], -1
        for word in words:
            if word in ("ROOT", "JOINT", "End"):
                self.parents.append(joint), self.offsets.append(np.zeros(3)), self.channels.append([])
                joint = len(self.parents) - 1
            elif word == "{":
                open_joints.append(joint)
            elif word == "}":
                open_joints.pop()
                joint = open_joints[-1] if open_joints else -1
            elif word == "OFFSET":
                self.offsets[joint] = np.array([float(next(words)) for _ in range(3)])
            elif word == "CHANNELS":
                self.channels[joint] = [next(words) for _ in range(int(next(words)))]
            elif word == "MOTION":
                break
        next(words)
        frames = int(next(words))
        next(words), next(words)
        self.frame_time = float(next(words))
        numbers = np.array([float(word) for word in words])
        self.numbers = numbers[: frames * (numbers.size // frames)].reshape(frames, -1)
        self.duration = (frames - 1) * self.frame_time

    def at(self, time):
        row = iter(self.numbers[min(round(time / self.frame_time), len(self.numbers) - 1)])
        places, turns = [], []
        for parent, offset, channels in zip(self.parents, self.offsets, self.channels):
            turn, place = np.eye(3), offset.copy()
            for channel in channels:
                axis, number = "XYZ".index(channel[0]), next(row)
                if channel.endswith("position"):
                    place[axis] = number
                else:
                    c, s = np.cos(np.radians(number)), np.sin(np.radians(number))
                    one = np.eye(3)
                    i, k = (axis + 1) % 3, (axis + 2) % 3
                    one[i, i], one[i, k], one[k, i], one[k, k] = c, -s, s, c
                    turn = turn @ one
            above, at = (turns[parent], places[parent]) if parent >= 0 else (np.eye(3), np.zeros(3))
            places.append(at + above @ place), turns.append(above @ turn)
        return np.array(places)


def command(*words):
    run = subprocess.run([str(ROOT / "build/bin/tarsus"), *map(str, words)], capture_output=True, text=True, cwd=ROOT)
    return (json.loads(run.stdout), "") if run.returncode == 0 else (None, run.stderr.strip().splitlines()[-1])


def segments_of(model, qpos):
    """[n, 2, 3] both ends of each capsule and of the longest axis of each box; spheres are points."""
    poses, found = tarsus.poses_of(model, np.ascontiguousarray(qpos, float)[None])[0], []
    for shape in json.loads(tarsus.scene_json(model))["shapes"]:
        if shape["body"] == 0 or shape["type"] not in ("capsule", "box", "sphere"):
            continue
        size, half = shape["size"], np.zeros(3)
        k = 2 if shape["type"] == "capsule" else int(np.argmax(size))
        half[k] = {"capsule": size[1], "box": max(size), "sphere": 0.0}[shape["type"]]
        body, own = poses[shape["body"]], shape.get("orientation", [1, 0, 0, 0])
        ends = np.array(shape.get("position", [0, 0, 0])) + np.outer([-1, 1], turned(own, half))
        found.append(body[:3] + np.array([turned(body[3:], end) for end in ends]))
    return np.array(found)


def turned(quaternion, vector):
    w, axis = quaternion[0], np.array(quaternion[1:])
    return vector + 2 * np.cross(axis, np.cross(axis, vector) + w * vector)


def draw(path, skeleton, recording, model):
    """Draws both from the front left, each scaled to the same height."""
    times = recording["time"]
    figure, axes = plt.subplots(1, MOMENTS, figsize=(2 * MOMENTS, 2.4), gridspec_kw={"wspace": 0})
    up = int(np.argmax(np.ptp(skeleton.at(0.0), axis=0) * [1, 1.5, 1]))  # spread arms must not count as height

    def lines(axis, segments, up, colour, shift, label):
        right, ahead = (up + 2) % 3, (up + 1) % 3
        flat = np.stack([0.8 * segments[..., right] + 0.6 * segments[..., ahead], segments[..., up]], -1)
        low, high = flat.reshape(-1, 2).min(axis=0), flat.reshape(-1, 2).max(axis=0)
        flat = (flat - [(low[0] + high[0]) / 2, low[1]]) / max(high[1] - low[1], 1e-9) + [shift, 0]
        for ends in flat:
            axis.plot(*ends.T, color=colour, lw=2, solid_capstyle="round", marker="o", ms=2)
        axis.text(shift, -0.15, label, ha="center", color=colour, fontsize=8)

    for axis, moment in zip(axes, np.linspace(0, min(times[-1], skeleton.duration), MOMENTS)):
        points = skeleton.at(moment)
        bones = np.array([[points[i], points[p]] for i, p in enumerate(skeleton.parents) if p >= 0])
        lines(axis, bones, up, "#888888", -0.5, "file")
        lines(axis, segments_of(model, recording["qpos"][int(np.argmin(abs(times - moment)))]), 2, "#2a6fb5", 0.5, "tracked")
        axis.set_title(f"{moment:.2f} s", fontsize=8)
        axis.set_aspect("equal"), axis.axis("off")
        axis.set_xlim(-1, 1), axis.set_ylim(-0.2, 1.05)
    figure.savefig(path, dpi=80, bbox_inches="tight"), plt.close(figure)


def report(file, out, model):
    name = file.stem
    row = {"file": name}
    mapped, why = command("map", file, MODEL, "--json")
    if mapped is None:
        return {**row, "refused": why.replace(f"{file}: error: ", "")}
    recording = out / f"{name}.npz"
    ran, why = command("run", MODEL, "--clip", file, "--dt", 1 / 30, "--duration", SECONDS, "--out", recording, "--json")
    if ran is None:
        return {**row, "refused": why.replace(f"{file}: error: ", "")}
    row |= {"sure": mapped["confidence"], "driven": f"{mapped['driven']} of {mapped['joints']}",
            "direction": mapped["direction_error_degrees"]["mean"], "stances": mapped["stances"], "slide": mapped["slide_m"]["max"],
            "sink": mapped["sink_m"], "error": ran["tracking_error_m"]["mean"]}
    row["good"] = row["error"] <= ERROR and row["slide"] <= SLIDE
    draw(out / f"{name}.png", Skeleton(file), np.load(recording), model)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="BVH files; default: those of ../shared/data and the made ones")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out/retarget", help="folder (default: out/retarget)")
    arguments = parser.parse_args()
    out, files = arguments.out.resolve(), arguments.files
    out.mkdir(parents=True, exist_ok=True)
    if not files:
        made = out / "made"
        made.mkdir(exist_ok=True)
        subprocess.run([str(ROOT / "build/bin/test_sim_long"), "--gtest_filter=Retarget.FiftyFiles*"], check=True,
                       env={**os.environ, "TARSUS_BVH_OUT": str(made)}, stdout=subprocess.DEVNULL)
        files = sorted(DATA.rglob("*.bvh")) + sorted(made.glob("*.bvh"))
    model, rows = tarsus.Model.load(str(MODEL)), []
    for i, file in enumerate(files):
        print(f"\r{i + 1} of {len(files)}", end="", file=sys.stderr, flush=True)
        rows.append(report(file.resolve(), out, model))
    print(file=sys.stderr)
    good = sum(row.get("good", False) for row in rows)
    text = ["# Motions of other skeletons on the humanoid", "",
            f"{len(rows)} files, {good} of them ({100 * good / len(rows):.0f} %) mapped by themselves and tracked with a mean error of "
            f"{100 * ERROR:.0f} cm and feet that slide by {100 * SLIDE:.0f} cm a stance at most.", "",
            "| file | sure | drives | bones off by | stances | feet slide | feet sink | tracked to |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        if "refused" in row:
            text.append(f"| {row['file']} | refused: {row['refused']} | | | | | | |")
        else:
            text.append(f"| {row['file']}{'' if row['good'] else ' (not good)'} | {100 * row['sure']:.0f} % | {row['driven']} | "
                        f"{row['direction']:.1f}° | {row['stances']} | {1e3 * row['slide']:.1f} mm | {1e3 * row['sink']:.1f} mm | "
                        f"{1e3 * row['error']:.0f} mm |")
    text += ["", *(f"![{row['file']}]({row['file']}.png)".replace(" ", "%20") for row in rows if "refused" not in row), ""]
    (out / "report.md").write_text("\n".join(text))
    print("\n".join(text[2:3]), f"\n{out / 'report.md'}")
    return 0 if good >= SHARE * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
