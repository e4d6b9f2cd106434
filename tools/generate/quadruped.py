"""The quadruped of models/: a trunk, four legs of three hinges with position servos, made of round numbers."""

HIP, SIDE, THIGH, CALF, FOOT = (0.19, 0.05), 0.08, 0.21, 0.21, 0.022  # [m]
STANCE = (0.0, 0.8, -1.6)  # hip, thigh, calf [rad]: feet under the hips
HEIGHT = 0.315  # [m] of the trunk in that stance, with the feet on the ground

LEGS = {"front_left": (1, 1), "front_right": (1, -1), "rear_left": (-1, 1), "rear_right": (-1, -1)}


def leg(name, front, left):
    side = left * SIDE
    return f"""
      <body name="{name}_hip" pos="{front * HIP[0]:g} {left * HIP[1]:g} 0">
        <joint name="{name}_hip" axis="1 0 0" range="-0.8 0.8"/>
        <geom type="cylinder" fromto="0 {0.3 * side:g} 0 0 {side:g} 0" size="0.045" mass="0.6" class="inner"/>
        <body name="{name}_thigh" pos="0 {side:g} 0">
          <joint name="{name}_thigh" axis="0 1 0" range="-1 3"/>
          <geom type="capsule" fromto="0 0 0 0 0 {-THIGH:g}" size="0.02" mass="0.9"/>
          <body name="{name}_calf" pos="0 0 {-THIGH:g}">
            <joint name="{name}_calf" axis="0 1 0" range="-2.7 -0.8"/>
            <geom type="capsule" fromto="0 0 0 0 0 {0.03 - CALF:g}" size="0.014" mass="0.15"/>
            <geom name="{name}_foot" type="sphere" pos="0 0 {-CALF:g}" size="{FOOT:g}" mass="0.05" class="foot"/>
          </body>
        </body>
      </body>"""


def quadruped(made):
    joints = [f"{name}_{part}" for name in LEGS for part in ("hip", "thigh", "calf")]
    angles = " ".join(f"{a:g}" for _ in LEGS for a in STANCE)
    servos = "\n".join(f'    <position name="{j}" joint="{j}" class="{j.rsplit("_", 1)[1]}"/>' for j in joints)
    return f"""<!--
  Quadruped robot: 18 degrees of freedom; 12.8 kg; four legs of three hinges with position servos (60 N m/rad, 24 N m at
  the most). x forward, y left, z up. Its keyframe is a stance, whose controls hold it. Geoms collide with the floor, legs
  and trunk with each other too.
  {made}
-->
<mujoco model="quadruped">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.01" gravity="0 0 -9.81"/>
  <default>
    <joint damping="0.5" armature="0.01"/>
    <position kp="60" kv="2" forcerange="-24 24"/>
    <geom condim="3" friction="0.8 0.005 0.0001" rgba="0.35 0.4 0.47 1"/>
    <default class="inner"><geom contype="0" conaffinity="0"/></default>
    <default class="foot"><geom rgba="0.15 0.15 0.15 1"/></default>
    <default class="hip"><position ctrlrange="-0.8 0.8"/></default>
    <default class="thigh"><position ctrlrange="-1 3"/></default>
    <default class="calf"><position ctrlrange="-2.7 -0.8"/></default>
  </default>
  <worldbody>
    <light pos="0 0 4" dir="0 0 -1" directional="true"/>
    <geom name="floor" type="plane" size="20 20 0.1" rgba="0.8 0.8 0.8 1"/>
    <body name="trunk" pos="0 0 {HEIGHT:g}">
      <freejoint name="root"/>
      <geom type="box" size="0.19 0.06 0.05" mass="6" rgba="0.55 0.62 0.72 1"/>{"".join(leg(n, *p) for n, p in LEGS.items())}
    </body>
  </worldbody>
  <actuator>
{servos}
  </actuator>
  <keyframe>
    <key name="stance" qpos="0 0 {HEIGHT:g} 1 0 0 0 {angles}" ctrl="{angles}"/>
  </keyframe>
</mujoco>
"""
