"""Pace, trot and canter of the built-in dog."""
import numpy as np

from characters import LEFT, RIGHT, Dog, side_name
from gait import Foot, local, two_link
from tree import mul, pitch, roll, rotate, yaw

D = Dog()
N = D.length
TAU = 2 * np.pi
shortfalls = []


def stack(*columns):
    return np.stack(np.broadcast_arrays(*columns), -1).astype(float)


def leg(state, side, front, base, q_base, paw, q_paw, lower_pitch):
    """Brings the paw's joint to `paw` with the paw turned as q_paw; the lowest segment leans by lower_pitch (world)."""
    s = side_name(side)
    anchor, upper, middle, low = ((N["shoulder"], N["upper_arm"], N["forearm"], N["pastern"]) if front else
                                  (N["hip"], N["thigh"], N["shin"], N["metatarsus"]))
    q_low = pitch(lower_pitch)
    joint = paw + rotate(q_low, np.broadcast_to([0, 0, low], paw.shape))     # wrist or hock
    d = rotate(q_base * [1, -1, -1, -1], joint - base) - np.array(anchor) * [1, side, 1]
    # Elbows point back, knees forward.
    first, bend, short = two_link(d, upper, middle, -1 if front else 1)
    shortfalls.append((short.max(), f"{s} {'front' if front else 'hind'}", short.argmax()))
    names = ("shoulder", "elbow", "wrist", "front_toes") if front else ("hip", "knee", "hock", "hind_toes")
    state[f"{s}_{names[0]}"], state[f"{s}_{names[1]}"] = first, pitch(bend)
    state[f"{s}_{names[2]}"] = local(mul(q_base, mul(first, pitch(bend))), q_low)
    state[f"{s}_{names[3]}"] = local(q_low, q_paw)


def gait(period, stride, duty, lift, height, phases, bob, bob_phase, twice, rock, rock_phase, sway, flex, nod, reached):
    """One cycle. phases: touch-downs of left hind, right hind, left front, right front, as shares of the cycle."""
    t = np.linspace(0, period, round(period * 60) + 1)
    p = t / period
    k = 2 if twice else 1                       # a symmetric gait bobs twice a cycle, a canter once
    base = stack(stride * p, sway * np.sin(TAU * (p - phases[0] + 0.5 * (1 - duty))),
                 height + bob * np.cos(k * TAU * (p - bob_phase)))
    q_base = mul(pitch(rock * np.cos(k * TAU * (p - rock_phase))), roll(0.8 * sway * np.cos(TAU * (p - phases[0]))))
    state = {"root.position": base, "root": q_base}
    bend = flex * np.cos(k * TAU * (p - rock_phase))
    q_loin, q_chest = pitch(0.5 * bend), pitch(0.5 * bend - rock * np.cos(k * TAU * (p - rock_phase)))
    state["lower_spine"], state["upper_spine"] = q_loin, q_chest
    state["neck"] = pitch(-0.65 + nod * np.cos(k * TAU * (p - bob_phase)))
    state["head"] = pitch(0.60 - 0.7 * nod * np.cos(k * TAU * (p - bob_phase)))
    state["tail_base"] = mul(pitch(-0.7 + 0.5 * bend), yaw(0.12 * np.sin(TAU * p)))
    state["tail_tip"] = mul(pitch(0.35 + 0.3 * bend), yaw(0.15 * np.sin(TAU * p - 0.8)))
    thorax = base + rotate(mul(q_base, q_loin), np.broadcast_to([N["lower_spine"], 0, 0], base.shape))
    q_thorax = mul(mul(q_base, q_loin), q_chest)
    foot = Foot(stride=stride, duty=duty, flat=0.0, rise=0.6 * duty, land=0.0, leave=0.55, heel=-0.027, toe=0.057,
                height=N["paw"], lift=lift, curl=0.9, reached=reached)
    for i, (side, front) in enumerate(((LEFT, False), (RIGHT, False), (LEFT, True), (RIGHT, True))):
        x, z, angle = foot.path(p - phases[i])
        under = (N["lower_spine"] + N["shoulder"][0] + 0.005) if front else (N["hip"][0] + 0.0)
        x = x + stride * phases[i] + 0.5 * duty * stride + under
        width = (N["shoulder"][1] if front else N["hip"][1] + 0.01) - 0.02
        q = np.mod(p - phases[i], 1)
        # The lowest segment leans forward (-) before mid-stance and back after it, as the leg does, and folds in swing.
        stance = np.clip(q / duty, 0, 1)
        swing = np.clip((q - duty) / (1 - duty), 0, 1)
        reach = 0.28 if front else 0.30
        fold = (0.55 if front else 0.35) * np.sin(np.pi * swing) ** 2
        lean = np.where(q < duty, -reach * np.cos(np.pi * stance), reach * np.cos(np.pi * swing)) + fold
        lean = lean + (0.0 if front else 0.05)
        leg(state, side, front, thorax if front else base, q_thorax if front else q_base,
            stack(x, side * width, z), pitch(angle), lean)
    return t, state


def pace():
    """1.2 m/s, legs of one side together."""
    return gait(0.62, 0.74, 0.52, 0.05, 0.585, (0.0, 0.5, 0.03, 0.53), 0.008, 0.26, True, 0.01, 0.1, 0.02, 0.02, 0.03, 0.88)


def trot():
    """1.9 m/s, diagonal legs together."""
    return gait(0.46, 0.86, 0.46, 0.06, 0.578, (0.0, 0.5, 0.5, 0.0), 0.012, 0.48, True, 0.01, 0.2, 0.006, 0.02, 0.02, 0.90)


def canter():
    """2.5 m/s, three beats: left hind, right hind with left front, right front, then all four in the air."""
    return gait(0.44, 1.10, 0.34, 0.09, 0.572, (0.0, 0.22, 0.24, 0.46), 0.020, 0.92, False, 0.06, 0.45, 0.006, 0.14, 0.06, 0.94)


CLIPS = {"pace": pace, "trot": trot, "canter": canter}
