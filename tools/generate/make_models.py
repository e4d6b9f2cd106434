#!/usr/bin/env python3
"""Writes the built-in models: tools/generate/make_models.py [FOLDER], default models/ beside tools/."""
import pathlib
import sys

import characters
import loops
import quadruped
from tree import emit, walk

MADE = "Made by tools/generate/make_models.py: change the numbers there, not here."
FLOOR = '    <geom name="floor" type="plane" size="20 20 0.1" contype="1" conaffinity="1" rgba="0.8 0.8 0.8 1"/>'


def character(title, text, root, defaults, contact=(), timestep="0.033333333333333333"):
    lines = ["<!--", f"  {title}", *[f"  {t}" for t in text], f"  {MADE}", "-->", f'<mujoco model="{title.split(":")[0].lower()}">',
             '  <compiler angle="radian" autolimits="true"/>', f'  <option timestep="{timestep}" gravity="0 0 -9.81"/>',
             "", "  <default>", *defaults, "  </default>", "", "  <worldbody>",
             '    <light pos="0 0 4" dir="0 0 -1" directional="true"/>', FLOOR, *emit(root, 2), "  </worldbody>"]
    if contact:
        lines += ["", "  <contact>", *[f'    <exclude body1="{a}" body2="{b}"/>' for a, b in contact], "  </contact>"]
    return "\n".join(lines + ["</mujoco>", ""])


def humanoid():
    h = characters.Humanoid()
    return character(
        "Humanoid: 34 degrees of freedom, 13 on the longest branch",
        ["Free root, ball joints at chest, neck, shoulders, hips and ankles, hinges at elbows and knees.",
         f"x forward, y left, z up. {h.stature} m, {h.mass:g} kg. Joints have neither damping nor armature: the controller",
         "supplies the damping. Ball joints' ranges bound the angle from rest; shoulders are free.",
         "Geoms collide with the floor and with each other, neighbours and thighs excepted."],
        h.root,
        ['    <joint damping="0" armature="0"/>',
         '    <geom contype="1" conaffinity="1" condim="3" friction="0.9 0.005 0.0001" rgba="0.55 0.62 0.72 1"/>',
         '    <default class="foot"><geom friction="1 0.005 0.0001" rgba="0.35 0.4 0.47 1"/></default>'],
        [("left_thigh", "right_thigh"), ("pelvis", "left_upper_arm"), ("pelvis", "right_upper_arm"),
         ("pelvis", "left_forearm"), ("pelvis", "right_forearm"), ("head", "left_upper_arm"),
         ("head", "right_upper_arm")])


def dog():
    d = characters.Dog()
    names = [b.name for b, _ in walk(d.root)]
    trunk = [("pelvis", "thorax"), ("thorax", "head"), ("left_upper_arm", "right_upper_arm"), ("left_thigh", "right_thigh"),
             ("loin", "left_thigh"), ("loin", "right_thigh"), ("loin", "tail"), ("pelvis", "tail_tip"),
             ("loin", "left_upper_arm"), ("loin", "right_upper_arm"), ("neck", "left_upper_arm"), ("neck", "right_upper_arm"),
             ("thorax", "left_forearm"), ("thorax", "right_forearm"), ("pelvis", "left_shin"), ("pelvis", "right_shin"),
             ("left_thigh", "tail"), ("right_thigh", "tail")]
    assert all(a in names and b in names for a, b in trunk)
    return character(
        "Dog: 72 degrees of freedom, 24 on the longest branch",
        ["Free root and 22 ball joints: spine, neck and head, four legs of four joints, a tail of two.",
         "x forward, y left, z up; straight legs at rest. Joints have neither damping nor armature nor limits."],
        d.root,
        ['    <joint damping="0" armature="0"/>',
         '    <geom contype="1" conaffinity="1" condim="3" friction="0.9 0.005 0.0001" rgba="0.62 0.5 0.38 1"/>',
         '    <default class="paw"><geom friction="1 0.005 0.0001" rgba="0.35 0.28 0.2 1"/></default>'],
        trunk, timestep="0.0041666666666666667")


def snake(dofs):
    s = characters.Snake(dofs)
    return character(
        f"Snake{dofs}: {dofs} degrees of freedom, all on one branch",
        [f"Free root at the head, then {s.hinges} hinges down a body of {s.total} m, by turns about z (yaw) and y (pitch).",
         "Links collide with the floor, not with each other (their skins overlap)."],
        s.root,
        ['    <joint damping="0" armature="0"/>',
         '    <geom contype="1" conaffinity="0" condim="3" friction="0.6 0.005 0.0001" rgba="0.35 0.5 0.3 1"/>'])


PENDULUM = f"""<!--
  Pendulum: a point-like bob on a massless rod, hanging at qpos = 0. Its period for small swings is 2 pi sqrt(I / (m g l)).
  {MADE}
-->
<mujoco model="pendulum">
  <compiler angle="radian"/>
  <option timestep="0.01" gravity="0 0 -9.81"/>
  <worldbody>
    <body name="rod" pos="0 0 1.2">
      <joint name="hinge" axis="0 1 0"/>
      <inertial pos="0 0 -1" mass="1" diaginertia="0.001 0.001 0.001"/>
      <geom type="capsule" fromto="0 0 0 0 0 -1" size="0.015" contype="0" conaffinity="0"/>
      <geom type="sphere" pos="0 0 -1" size="0.05" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
</mujoco>
"""

DOUBLE_PENDULUM = f"""<!--
  Double pendulum: two uniform rods of 1 m and 1 kg, hanging at qpos = 0.
  {MADE}
-->
<mujoco model="double_pendulum">
  <compiler angle="radian"/>
  <option timestep="0.01" gravity="0 0 -9.81"/>
  <default>
    <joint axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 -1" size="0.02" contype="0" conaffinity="0"/>
  </default>
  <worldbody>
    <body name="upper" pos="0 0 2.2">
      <joint name="shoulder"/>
      <inertial pos="0 0 -0.5" mass="1" diaginertia="{1/12:.9g} {1/12:.9g} 0.0002"/>
      <geom/>
      <body name="lower" pos="0 0 -1">
        <joint name="elbow"/>
        <inertial pos="0 0 -0.5" mass="1" diaginertia="{1/12:.9g} {1/12:.9g} 0.0002"/>
        <geom/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

CART_POLE = f"""<!--
  Cart-pole: a cart of 1 kg on a rail along x, a uniform pole of 0.1 kg and 1 m that stands up at qpos = 0.
  {MADE}
-->
<mujoco model="cart_pole">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.01" gravity="0 0 -9.81"/>
  <default>
    <geom contype="0" conaffinity="0"/>
  </default>
  <worldbody>
    <geom name="rail" type="capsule" fromto="-2.4 0 0.5 2.4 0 0.5" size="0.01"/>
    <body name="cart" pos="0 0 0.5">
      <joint name="slider" type="slide" axis="1 0 0" range="-2.4 2.4"/>
      <geom type="box" size="0.2 0.12 0.06" mass="1"/>
      <body name="pole" pos="0 0 0.06">
        <joint name="pole" axis="0 1 0"/>
        <inertial pos="0 0 0.5" mass="0.1" diaginertia="{0.1/12:.9g} {0.1/12:.9g} 0.00001"/>
        <geom type="capsule" fromto="0 0 0 0 0 1" size="0.02"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="push" joint="slider" ctrllimited="true" ctrlrange="-10 10"/>
  </actuator>
</mujoco>
"""


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2] / "models")
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"humanoid": humanoid(), "dog": dog(), **{f"snake{n}": snake(n) for n in (36, 72, 195)},
             "pendulum": PENDULUM, "double_pendulum": DOUBLE_PENDULUM, "cart_pole": CART_POLE, "quadruped": quadruped.quadruped(MADE),
             **{f"loops/{name}": text for name, text in loops.models().items()}}
    (folder / "loops").mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.xml").write_text(text)


if __name__ == "__main__":
    main()
