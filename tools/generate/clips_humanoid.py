"""Walk, run, cartwheel and backflip of the built-in humanoid, by formulas and inverse kinematics."""
import re

import numpy as np

from characters import LEFT, RIGHT, Humanoid, side_name
from gait import Foot, hermite, local, pulse, smooth, two_link
from tree import mul, pitch, poses, roll, rotate, walk as bodies_of, yaw

H = Humanoid()
N = H.length
G = 9.81
TAU = 2 * np.pi
shortfalls = []


def stack(*columns):
    return np.stack(np.broadcast_arrays(*columns), -1).astype(float)


def leg(state, side, pelvis, q_pelvis, ankle, q_foot, toe_out=0.0):
    """Sets hip, knee and ankle so that the ankle is at `ankle` and the foot has the orientation q_foot (world)."""
    s = side_name(side)
    d = rotate(q_pelvis * [1, -1, -1, -1], ankle - pelvis) - [0, side * N["hip_out"], 0]
    hip, knee, short = two_link(d, N["thigh"], N["shin"], 1, toe_out)
    shortfalls.append((short.max(), f"{s} leg", short.argmax()))
    state[f"{s}_hip"], state[f"{s}_knee"] = hip, knee
    state[f"{s}_ankle"] = local(mul(q_pelvis, mul(hip, pitch(knee))), q_foot)


def arm_to(state, side, pelvis, q_pelvis, q_chest, hand):
    """Sets shoulder and elbow so that the hand's centre is at `hand` (world)."""
    s = side_name(side)
    torso = pelvis + rotate(q_pelvis, np.broadcast_to([0, 0, N["waist"]], pelvis.shape))
    q_torso = mul(q_pelvis, q_chest)
    d = rotate(q_torso * [1, -1, -1, -1], hand - torso) - [-0.02, side * N["shoulder_out"], N["shoulder_up"]]
    shoulder, elbow, short = two_link(d, N["upper_arm"], N["forearm"], -1)
    shortfalls.append((short.max(), f"{s} arm", short.argmax()))
    state[f"{s}_shoulder"], state[f"{s}_elbow"] = shoulder, -elbow


def frames(period, fps=30):
    count = round(period * fps)
    return np.linspace(0, period, count + 1)


def gait(period, foot, height, bob, bob_phase, sway, lean, hip_yaw, arm_swing, elbow, elbow_swing, width, spread, ahead):
    """One cycle of walking or running; the left foot lands at t = 0."""
    t = frames(period)
    p = t / period
    speed = foot.stride / period
    pelvis = stack(speed * t, -sway * np.cos(TAU * (p - 0.5 * foot.duty)) * -1,
                   height + bob * np.cos(2 * TAU * (p - bob_phase)))
    turn = hip_yaw * np.cos(TAU * p)           # the hip of the front leg moves forward
    q_pelvis = mul(yaw(-turn), mul(pitch(np.full_like(t, 0.4 * lean)), roll(0.02 * np.sin(TAU * p))))
    state = {"root.position": pelvis, "root": q_pelvis}
    state["chest"] = mul(yaw(1.8 * turn), pitch(0.6 * lean + 0.02 * np.cos(2 * TAU * p)))
    state["neck"] = mul(yaw(-0.8 * turn), pitch(np.full_like(t, -0.8 * lean)))
    for side in (LEFT, RIGHT):
        s = side_name(side)
        q = p if side == LEFT else p + 0.5
        x, z, angle = foot.path(q)
        # At landing the foot is ahead of the hip by half the travel of its stance, plus `ahead`.
        x = x - (0 if side == LEFT else 0.5 * foot.stride) + 0.5 * foot.duty * foot.stride + ahead
        leg(state, side, pelvis, q_pelvis, stack(x, side * width, z), pitch(angle))
        swing = arm_swing * np.cos(TAU * q)        # backward when the leg of the same side is in front
        state[f"{s}_shoulder"] = mul(roll(np.full_like(t, side * spread)), pitch(swing + 0.1))
        state[f"{s}_elbow"] = elbow - elbow_swing * np.cos(TAU * q)
    return t, state


def walk():
    """1.15 m/s."""
    foot = Foot(stride=1.20, duty=0.62, flat=0.10, rise=0.36, land=-0.30, leave=0.85, heel=H.heel,
                toe=0.045 + H.half_foot, height=N["ankle"], lift=0.035, curl=0.15)
    return gait(1.04, foot, height=0.826, bob=0.018, bob_phase=0.5 * 0.62, sway=0.022, lean=0.06, hip_yaw=0.10,
                arm_swing=0.42, elbow=0.35, elbow_swing=0.15, width=0.075, spread=0.10, ahead=-0.02)


def run():
    """2.9 m/s, both feet off the ground for a third of the time."""
    foot = Foot(stride=2.03, duty=0.33, flat=0.05, rise=0.12, land=-0.12, leave=1.0, heel=H.heel,
                toe=0.045 + H.half_foot, height=N["ankle"], lift=0.20, curl=0.75)
    return gait(0.70, foot, height=0.789, bob=-0.026, bob_phase=0.5 * 0.33, sway=0.008, lean=0.20, hip_yaw=0.14,
                arm_swing=0.75, elbow=1.5, elbow_swing=0.25, width=0.045, spread=0.16, ahead=-0.02)


def masses():
    """{body: (mass, centre of mass in its frame, moment of inertia about the y axis through it)} from the geoms."""
    out = {}
    for body, _ in bodies_of(H.root):
        parts = []
        for geom in body.geoms:
            kg, size = (float(re.search(rf'{key}="(\S+)', geom).group(1).rstrip('"')) for key in ("mass", "size"))
            ends = np.array([float(x) for x in re.search(r'(pos|fromto)="([^"]+)"', geom).group(2).split()]).reshape(-1, 3)
            axis = ends[-1] - ends[0]
            if "capsule" in geom:  # a cylinder of equal volume: longer by 4/3 of the radius
                length = np.linalg.norm(axis)
                across = 1 - (axis[1] / length) ** 2
                own = kg * ((length + 4 / 3 * size) ** 2 / 12 * across + size**2 / 4 * (2 - across))
            else:
                own = 0.4 * kg * size**2
            parts.append((kg, ends.mean(0), own))
        total = sum(kg for kg, _, _ in parts)
        centre = sum(kg * at for kg, at, _ in parts) / total
        out[body.name] = total, centre, sum(own + kg * ((at - centre)[[0, 2]] ** 2).sum() for kg, at, own in parts)
    return out


def centre_of_mass(state):
    world, total, moment = poses(H.root, state), 0, 0
    for name, (kg, at, _) in masses().items():
        p, q = world[name]
        total, moment = total + kg, moment + kg * (p + rotate(q, np.broadcast_to(at, p.shape)))
    return moment / total


def momentum(t, state):
    """Angular momentum (by finite differences) and moment of inertia of a planar motion about the y axis through its centre of mass."""
    world, centre = poses(H.root, state), centre_of_mass(state)
    drift, L, inertia = np.gradient(centre, t, axis=0), 0, 0
    for name, (kg, at, own) in masses().items():
        p, q = world[name]
        p = p + rotate(q, np.broadcast_to(at, p.shape))
        r, v = p - centre, np.gradient(p, t, axis=0) - drift
        turned = np.unwrap(2 * np.arctan2(q[:, 2], q[:, 0]))
        L = L + kg * (r[:, 2] * v[:, 0] - r[:, 0] * v[:, 2]) + own * np.gradient(turned, t)
        inertia = inertia + kg * (r[:, 0] ** 2 + r[:, 2] ** 2) + own
    return L, inertia


class Curve:
    """Cubic Hermite through keys (time, value) or (time, value, rate); a rate left out is the centred slope."""

    def __init__(self, *keys):
        self.t = np.array([k[0] for k in keys])
        self.x = np.array([k[1] for k in keys], float)
        self.v = np.gradient(self.x, self.t) if len(keys) > 1 else np.zeros(1)
        for i, k in enumerate(keys):
            if len(k) > 2:
                self.v[i] = k[2]

    def __call__(self, t):
        i = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2)
        h = self.t[i + 1] - self.t[i]
        return hermite(np.clip((t - self.t[i]) / h, 0, 1), self.x[i], h * self.v[i], self.x[i + 1], h * self.v[i + 1])


def backflip():
    """Crouch, jump, one turn backward in a tuck, land, stand: in the air the centre of mass falls freely and the spin keeps its momentum.

    Planar: both sides are alike. Joint angles are curves of time throughout. On the ground the pelvis is placed so that the toes (push-off)
    or the soles (landing) stand still; the trunk's angle is a curve too. The flight starts with the velocity and the angular momentum of
    the push-off. The keys of the curves are a least-squares fit of the ground reaction that they require: an upward force of at most three
    times the weight, at a point of the sole, within a friction cone of 0.7, and a landing impact of 1.2 m/s.
    """
    crouch, off, air = 0.378, 0.84, 0.629
    land, low = off + air, off + air + 0.469
    end, tucked, opens = low + 0.6, off + 0.42 * air, off + 0.62 * air
    # hip < 0: thigh forward. The sole is kept flat by ankle = -(root + hip + knee), plus the heel's rise.
    hip = Curve((0, -0.10, 0), (crouch, -0.906, 0), (off, -0.80, 10.253), (tucked, -2.5, 0), (opens, -2.5, 0), (land, -0.614, 1.155),
                (low, -0.811, 0), (end, -0.10, 0))
    knee = Curve((0, 0.16, 0), (crouch, 1.969, 0), (off, 1.0, -9.086), (tucked, 2.6, 0), (opens, 2.6, 0), (land, 1.4, 11.0), (low, 1.983, 0),
                 (end, 0.16, 0))
    heel = Curve((0, 0, 0), (off - 0.16, 0, 0), (off, 0.235, 6.015))
    chest = Curve((0, 0, 0), (crouch, 0.118, 0), (off, 0.4, -1.917), (off + 0.45 * air, 1.1, 0), (land, 0.791, 0), (low, 0.3, 0), (end, 0, 0))
    shoulder = Curve((0, 0, 0), (crouch - 0.06, 0.755, 0), (off, -2.584, -17.622), (tucked, -0.301, 0), (off + 0.65 * air, -0.301, 0),
                     (land, -2.65, 0), (low, -0.6, 0), (end, 0, 0))
    elbow = Curve((0, 0.15, 0), (off, 0.2, 0), (tucked, 1.0, 0), (off + 0.65 * air, 0.9, 0), (land, 0.4, 0), (end, 0.15, 0))

    def posture(t, spin, ankle):
        state = {"root.position": np.zeros(t.shape + (3,)), "root": pitch(spin), "chest": pitch(chest(t)), "neck": pitch(-0.5 * chest(t))}
        for s, side in (("left", 1), ("right", -1)):
            state[f"{s}_hip"], state[f"{s}_knee"], state[f"{s}_ankle"] = pitch(hip(t)), knee(t), pitch(ankle)
            state[f"{s}_shoulder"] = mul(roll(np.full_like(t, side * 0.12)), pitch(shoulder(t)))
            state[f"{s}_elbow"] = elbow(t)
        return state

    def sole(state, at_toe):
        """The standing point of the sole relative to the pelvis."""
        p, q = poses(H.root, state)["left_foot"]
        x = 0.045 + H.half_foot if at_toe else 0.045
        return (p + rotate(q, np.broadcast_to([x, 0, -N["ankle"]], p.shape))) * [1, 0, 1]

    def fine(begin, end):
        return np.linspace(begin, end, round((end - begin) * 600) + 1)

    # Push-off, with the toes at the origin. Its end gives the velocity of the centre of mass and the angular momentum.
    t = fine(0, off)
    spin = Curve((0, 0, 0), (crouch, -0.089, 0), (off, -0.139, -4.11))(t)
    push = posture(t, spin, heel(t) - (spin + hip(t) + knee(t)))
    push["root.position"] = -sole(push, True)
    centre = centre_of_mass(push)
    speed = (1.5 * (centre[-1] - centre[-2]) - 0.5 * (centre[-2] - centre[-3])) / (t[1] - t[0])
    kept = 2 * momentum(t, push)[0][-2] - momentum(t, push)[0][-3]
    # Flight: the trunk turns so that the joints' motion conserves angular momentum. The soles are flat at the end.
    u = (fine(off, land) - off) / air
    turned = 0.0
    for _ in range(4):
        first, last = heel(off) - (spin[-1] + hip(off) + knee(off)), -TAU - (turned + hip(land) + knee(land))
        ankle = first + (last - first) * smooth(u) + 0.3 * np.sin(np.pi * u) ** 2
        still = posture(off + air * u, np.zeros_like(u), ankle)
        L, inertia = momentum(off + air * u, still)
        rate = (kept - L) / inertia
        spin_air = spin[-1] + np.concatenate([[0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(u) * air)])
        turned = spin_air[-1]
    fly = posture(off + air * u, spin_air, ankle)
    fly["root.position"] = centre[-1] + speed * (air * u)[:, None] - [0, 0, 0.5 * G] * (air * u)[:, None] ** 2 - centre_of_mass(fly)
    stands = sole(fly, False)[-1] * [1, 0, 0]  # relative to the origin
    # Landing: the soles stay where they came down.
    t = fine(land, end)
    spin = Curve((land, turned, rate[-1]), (low, -TAU - 0.161, 0), (end, -TAU, 0))(t)
    rise = posture(t, spin, -TAU - (spin + hip(t) + knee(t)))
    rise["root.position"] = stands - sole(rise, False)

    times = np.concatenate([fine(0, off), (off + air * u)[1:], t[1:]])
    frames_at = np.arange(0, round(end * 60) + 1) / 60
    near = np.clip(np.round(np.interp(frames_at, times, np.arange(len(times)))).astype(int), 0, len(times) - 1)
    state = {key: np.concatenate([push[key], fly[key][1:], rise[key][1:]])[near] for key in push}
    state["root.position"] = state["root.position"] * [1, 0, 1]
    return frames_at, state


def cartwheel():
    """To the left, facing forward: left hand, right hand, right foot, left foot, along the y axis."""
    hold, rolling = 0.25, 1.75
    end = 2 * hold + rolling
    t = np.arange(0, round(end * 30) + 1) / 30
    x = np.clip((t - hold) / rolling, 0, 1)
    u = smooth(x) * 0.55 + 0.45 * x * x * (3 - 2 * x)      # turns made, 0 to 1
    D, out = 2.16, 0.25
    angle = -TAU * u
    pelvis_up = 0.79 - N["waist"] - 0.02
    # The middle of the trunk, `up` above the pelvis, moves over the ground. Inverted, it is as high as the arms allow.
    up = 0.235
    mid_height = 0.5 * ((0.80 + up) + 0.72) + 0.5 * ((0.80 + up) - 0.72) * np.cos(angle) - 0.045 * np.sin(angle) ** 2
    mid = stack(0 * t, D * u + 0.05 * np.sin(TAU * u), mid_height)
    q = roll(angle)
    pelvis = mid - rotate(q, np.broadcast_to([0, 0, up], mid.shape))
    state = {"root.position": pelvis, "root": q, "chest": roll(-0.15 * np.sin(TAU * u)), "neck": pitch(-0.35 * pulse(u, 0.3, 0.7, 0.2))}
    # (start and end of the foot's stance as shares of the turn, y of its standing point)
    feet = {LEFT: [(-1, 0.27, out), (0.915, 2, D + out)], RIGHT: [(-1, 0.10, -out), (0.72, 2, D - out)]}
    hands = {LEFT: (0.27, 0.56, 0.84), RIGHT: (0.42, 0.70, 1.32)}
    ramp = 0.10
    for side in (LEFT, RIGHT):
        # Free: legs apart and almost straight, arms up and out.
        spread = np.array([0, side * 0.50, -0.80])
        free = pelvis + rotate(q, np.broadcast_to(spread / np.linalg.norm(spread) * (N["thigh"] + N["shin"]) * 0.985
                                                  + [0, side * N["hip_out"], 0], pelvis.shape))
        ankle, weight = free, np.zeros_like(t)
        for a, b, y in feet[side]:
            w = pulse(u, a, b, ramp)
            ankle = ankle + (np.array([0, y, N["ankle"]]) - ankle) * w[:, None]
            weight = np.maximum(weight, w)
        point = mul(q, roll(np.full_like(t, 0.0)))
        # The foot is flat in stance and along the leg in swing. It turns the short way round, in the plane of the leg.
        flat = roll(np.where(u < 0.5, 0.0, -TAU))
        foot = slerp(point, flat, weight)
        leg(state, side, pelvis, q, ankle, foot)
        lift = smooth((t - 0.0) / 0.35) * smooth((end - t) / 0.35)
        torso = pelvis + rotate(q, np.broadcast_to([0, side * N["shoulder_out"], N["waist"] + N["shoulder_up"]], pelvis.shape))
        reach = (N["upper_arm"] + N["forearm"]) * 0.97
        high = np.array([0, side * 0.42, 0.9]) / np.hypot(0.42, 0.9) * reach
        low = np.array([0.02, side * 0.10, -0.52])
        along = side * (0.25 + lift * (np.pi - 0.25 - np.arctan2(0.42, 0.9)))
        reach_now = np.linalg.norm(low) + lift * (reach - np.linalg.norm(low))
        hand = torso + rotate(q, stack(0.02 * (1 - lift), np.sin(along), -np.cos(along)) * reach_now[:, None])
        a, b, y = hands[side]
        w = pulse(u, a, b, ramp)
        hand = hand + (np.array([0, y, 0.035]) - hand) * w[:, None]
        arm_to(state, side, pelvis, q, state["chest"], hand)
    cartwheel.u = u
    return t, state


def slerp(a, b, w):
    """Interpolates from a to b along the shorter arc; w from 0 to 1."""
    d = mul(a * [1, -1, -1, -1], b)
    d = np.where(d[..., :1] < 0, -d, d)
    angle = 2 * np.arctan2(np.linalg.norm(d[..., 1:], axis=-1), d[..., 0])
    axis = d[..., 1:] / np.maximum(np.linalg.norm(d[..., 1:], axis=-1, keepdims=True), 1e-12)
    half = 0.5 * angle * w
    return mul(a, np.concatenate([np.cos(half)[..., None], np.sin(half)[..., None] * axis], -1))


CLIPS = {"walk": walk, "run": run, "cartwheel": cartwheel, "backflip": backflip}
