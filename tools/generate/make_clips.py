#!/usr/bin/env python3
"""Writes the built-in clips: tools/generate/make_clips.py [FOLDER], default models/clips/ beside tools/."""
import json
import pathlib
import sys

import numpy as np

import clips_dog
import clips_humanoid
import clips_snake


def channel(name, values):
    kind = "position" if name.endswith(".position") else "rotation" if values.ndim == 2 else "angle"
    return {"name": name, "kind": kind}


def unit_and_continuous(q):
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    for i in range(1, len(q)):
        if q[i] @ q[i - 1] < 0:
            q[i] = -q[i]
    return q


def text(name, comment, t, state, loop=True):
    state = {k: unit_and_continuous(v) if v.ndim == 2 and v.shape[1] == 4 else v for k, v in state.items()}
    rows = np.concatenate([v.reshape(len(t), -1) for v in state.values()], 1)
    number = lambda v: f"{v:.6f}".rstrip("0").rstrip(".") if abs(v) >= 5e-7 else "0"
    head = {"format": "tarsus-clip", "version": 1, "name": name, "comment": comment, "loop": loop, "up": "+z",
            "forward": "+x", "frame_time": round(float(t[1] - t[0]), 12)}
    out = json.dumps(head)[:-1] + ',\n "channels": [\n  '
    out += ",\n  ".join(json.dumps(channel(k, v)) for k, v in state.items())
    out += '],\n "frames": [\n  ' + ",\n  ".join("[" + ",".join(number(v) for v in row) + "]" for row in rows) + "]}\n"
    return out


def all_clips():
    """{file name: (title, formula's description, times, state)}"""
    out = {}
    for who, module in (("humanoid", clips_humanoid), ("dog", clips_dog)):
        for name, make in module.CLIPS.items():
            out[f"{who}_{name}"] = (f"{who} {name}", (make.__doc__ or "").split("\n")[0], *make())
    for dofs in (36, 72, 195):
        out[f"snake{dofs}_slither"] = (f"snake{dofs} slither", "Serpenoid wave, 1.5 waves on the body.", *clips_snake.slither(dofs))
    return out


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2] / "models/clips")
    folder.mkdir(parents=True, exist_ok=True)
    for file, (title, comment, t, state) in all_clips().items():
        comment = "Made by tools/generate/make_clips.py. " + comment
        (folder / f"{file}.json").write_text(text(title, comment, t, state))


if __name__ == "__main__":
    main()
