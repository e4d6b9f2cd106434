"""A character as a tree of bodies: MJCF for models/, and forward kinematics for the clips.

Each body has one joint, at the origin of its frame. Quaternions are (w, x, y, z); x forward, y left, z up; metres, kilograms.
"""
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Body:
    name: str
    joint: str                       # its joint's name
    kind: str                        # free, ball, hinge, slide
    pos: tuple                       # in the parent's frame
    geoms: list = field(default_factory=list)   # attribute strings, e.g. 'type="sphere" size="0.1" mass="3"'
    axis: tuple = None
    limit: tuple = None              # radians
    children: list = field(default_factory=list)
    note: str = ""


def numbers(values):
    return " ".join(f"{v:.6g}" for v in values)


def emit(body, indent):
    pad = "  " * min(indent, 8)  # limits the indentation of long chains
    lines = []
    if body.note:
        lines.append(f"{pad}<!-- {body.note} -->")
    lines.append(f'{pad}<body name="{body.name}" pos="{numbers(body.pos)}">')
    if body.kind == "free":
        lines.append(f'{pad}  <freejoint name="{body.joint}"/>')
    else:
        axis = f' axis="{numbers(body.axis)}"' if body.axis else ""
        limit = f' range="{numbers(body.limit)}"' if body.limit else ""
        kind = f' type="{body.kind}"' if body.kind != "hinge" else ""
        lines.append(f'{pad}  <joint name="{body.joint}"{kind}{axis}{limit}/>')
    for k, geom in enumerate(body.geoms):
        lines.append(f"{pad}  <geom {geom}/>")
    for child in body.children:
        lines += emit(child, indent + 1)
    lines.append(f"{pad}</body>")
    return lines


def walk(body, parent=None):
    yield body, parent
    for child in body.children:
        yield from walk(child, body)


# Rotations, on arrays of any leading shape.

def mul(a, b):
    aw, ax, ay, az = np.moveaxis(np.asarray(a, float), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b, float), -1, 0)
    return np.stack([aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by,
                     aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw], -1)


def conj(q):
    return np.asarray(q, float) * [1, -1, -1, -1]


def turn(axis, angle):
    axis, angle = np.asarray(axis, float), np.asarray(angle, float)
    axis = axis / np.linalg.norm(axis)
    return np.concatenate([np.cos(angle / 2)[..., None], np.sin(angle / 2)[..., None] * axis], -1)


def rotate(q, v):
    v = np.asarray(v, float)
    zero = np.zeros(v.shape[:-1] + (1,))
    return mul(mul(q, np.concatenate([zero, v], -1)), conj(q))[..., 1:]


def roll(a): return turn((1, 0, 0), a)
def pitch(a): return turn((0, 1, 0), a)      # positive: nose down, arms and legs back
def yaw(a): return turn((0, 0, 1), a)


def poses(root, state):
    """World poses of all bodies: {body name: (position, quaternion)}, each with a leading axis of frames.

    state: {joint name: quaternions or angles}, and "root.position".
    """
    out = {}
    for body, parent in walk(root):
        if parent is None:
            out[body.name] = (state["root.position"], state[body.joint])
            continue
        p, q = out[parent.name]
        position = p + rotate(q, np.broadcast_to(body.pos, p.shape))
        value = state.get(body.joint)
        if value is None:
            local = np.broadcast_to([1.0, 0, 0, 0], q.shape)
        else:
            local = turn(body.axis, value) if body.kind == "hinge" else value
        out[body.name] = (position, mul(q, local))
    return out
