"""Linkages with closed loops, as MJCF text. Lengths in metres, masses in kilograms; every number is chosen here."""
import math

import characters
from tree import emit

HEAD = """<!--
  {title}
  Made by tools/generate/make_models.py: change the numbers in tools/generate/loops.py, not here.
-->
<mujoco model="{name}">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="{step}" gravity="0 0 -9.81"/>
  <default>
    <geom contype="0" conaffinity="0"/>
    <default class="foot"/>
  </default>
"""


def numbers(*values):
    return " ".join(f"{v:.17g}" for v in values)


def rod(length, radius, mass):
    return f'<geom type="capsule" fromto="0 0 0 {numbers(length)} 0 0" size="{radius}" mass="{mass}"/>'


def four_bar():
    """Crank 0.1, coupler 0.3, rocker 0.25, ground 0.3, drawn with the crank upright."""
    crank, coupler, rocker, ground = 0.1, 0.3, 0.25, 0.3
    # The coupler's end is the upper intersection of circles about the crank pin (0, crank) and the rocker's pivot (ground, 0).
    dx, dz = ground, -crank
    d = math.hypot(dx, dz)
    along = (d * d + coupler**2 - rocker**2) / (2 * d)
    up = math.sqrt(coupler**2 - along**2)
    x, z = along * dx / d - up * dz / d, crank + along * dz / d + up * dx / d
    coupler_angle, rocker_angle = math.atan2(z - crank, x), math.atan2(z, x - ground)
    # Positive rotation about -y turns x towards z.
    return HEAD.format(title="Four-bar linkage in the x-z plane: crank 0.1 m, coupler 0.3 m, rocker 0.25 m, ground 0.3 m.", name="four_bar", step=0.001) + f"""  <worldbody>
    <body name="crank">
      <joint name="crank" axis="0 -1 0" ref="{numbers(math.pi / 2)}"/>
      <geom type="capsule" fromto="0 0 0 0 0 {crank}" size="0.01" mass="0.1"/>
      <body name="coupler" pos="0 0 {crank}">
        <joint name="pin" axis="0 -1 0" ref="{numbers(coupler_angle - math.pi / 2)}"/>
        <geom type="capsule" fromto="0 0 0 {numbers(x, 0, z - crank)}" size="0.01" mass="0.3"/>
        <site name="end" pos="{numbers(x, 0, z - crank)}"/>
      </body>
    </body>
    <body name="rocker" pos="{ground} 0 0">
      <joint name="rocker" axis="0 -1 0" ref="{numbers(rocker_angle)}"/>
      <geom type="capsule" fromto="0 0 0 {numbers(x - ground, 0, z)}" size="0.01" mass="0.25"/>
      <site name="tip" pos="{numbers(x - ground, 0, z)}"/>
    </body>
  </worldbody>
  <equality>
    <connect name="loop" site1="end" site2="tip"/>
  </equality>
</mujoco>
"""


def slider_crank():
    """Crank 0.1, rod 0.3, a slider along x, drawn with the crank upright."""
    crank, length = 0.1, 0.3
    x = math.sqrt(length**2 - crank**2)
    return HEAD.format(title="Slider-crank in the x-z plane: crank 0.1 m, rod 0.3 m, slider along x.", name="slider_crank", step=0.001) + f"""  <worldbody>
    <body name="crank">
      <joint name="crank" axis="0 -1 0" ref="{numbers(math.pi / 2)}"/>
      <geom type="capsule" fromto="0 0 0 0 0 {crank}" size="0.01" mass="0.1"/>
      <body name="rod" pos="0 0 {crank}">
        <joint name="pin" axis="0 -1 0" ref="{numbers(math.atan2(-crank, x) - math.pi / 2)}"/>
        <geom type="capsule" fromto="0 0 0 {numbers(x, 0, -crank)}" size="0.01" mass="0.3"/>
        <site name="end" pos="{numbers(x, 0, -crank)}"/>
      </body>
    </body>
    <body name="slider" pos="{numbers(x)} 0 0">
      <joint name="slider" type="slide" axis="1 0 0" ref="{numbers(x)}"/>
      <geom type="box" size="0.03 0.02 0.02" mass="0.5"/>
      <site name="wrist"/>
    </body>
  </worldbody>
  <equality>
    <connect name="loop" site1="end" site2="wrist"/>
  </equality>
</mujoco>
"""


def stewart():
    """Six legs, each with a universal joint, a slide and a ball socket, carry a platform: 24 DoFs, 18 rows, 6 remaining DoFs."""
    base, top, height = 0.5, 0.3, 0.6
    legs, rows, sites = [], [], []
    for i in range(6):
        pair = i // 2 * 2 * math.pi / 3
        side = -1 if i % 2 == 0 else 1
        a, b = pair + side * 0.2, pair + side * (math.pi / 3 - 0.25)
        foot = (base * math.cos(a), base * math.sin(a), 0.0)
        head = (top * math.cos(b), top * math.sin(b), height)
        d = [q - p for p, q in zip(foot, head)]
        length = math.sqrt(sum(x * x for x in d))
        u = [x / length for x in d]
        middle = length / 2
        yaw, pitch = math.atan2(u[1], u[0]), math.acos(u[2])
        half = (math.cos(yaw / 2) * math.cos(pitch / 2), -math.sin(yaw / 2) * math.sin(pitch / 2),
                math.cos(yaw / 2) * math.sin(pitch / 2), math.sin(yaw / 2) * math.cos(pitch / 2))
        legs.append(f"""    <body name="cylinder{i}" pos="{numbers(*foot)}" quat="{numbers(*half)}">
      <joint name="swing{i}" axis="1 0 0"/>
      <joint name="lean{i}" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0.02 0 0 {numbers(middle)}" size="0.02" mass="0.8"/>
      <body name="piston{i}" pos="0 0 {numbers(middle)}">
        <joint name="stroke{i}" type="slide" axis="0 0 1"/>
        <geom type="capsule" fromto="0 0 0 0 0 {numbers(length - middle)}" size="0.012" mass="0.4"/>
        <site name="head{i}" pos="0 0 {numbers(length - middle)}"/>
      </body>
    </body>""")
        sites.append(f'      <site name="socket{i}" pos="{numbers(head[0], head[1], 0)}"/>')
        rows.append(f'    <connect name="leg{i}" site1="head{i}" site2="socket{i}"/>')
    body = "\n".join(legs)
    return HEAD.format(title="Stewart platform: six legs (two hinges and a slide each) under a free platform of 10 kg.", name="stewart", step=0.001) + f"""  <worldbody>
{body}
    <body name="platform" pos="0 0 {height}">
      <freejoint name="platform"/>
      <geom type="cylinder" size="{top} 0.02" mass="10"/>
""" + "\n".join(sites) + """
    </body>
  </worldbody>
  <equality>
""" + "\n".join(rows) + "\n  </equality>\n</mujoco>\n"


def ring(count=1000):
    """A closed chain of ball joints on a circle, with links of 0.05 m; the end of the last link is the start of the first."""
    length, mass = 0.05, 0.02
    turn = 2 * math.pi / count
    radius = length / (2 * math.sin(turn / 2))
    lines, close = [], []
    for i in range(count):
        place = f'pos="{numbers(radius, 0, 0)}" quat="{numbers(math.cos(math.pi / 4 + turn / 4), 0, 0, math.sin(math.pi / 4 + turn / 4))}"' if i == 0 \
            else f'pos="{length} 0 0" quat="{numbers(math.cos(turn / 2), 0, 0, math.sin(turn / 2))}"'
        joint = "<freejoint/>" if i == 0 else f'<joint name="j{i}" type="ball"/>'
        lines.append(f'<body name="link{i}" {place}>{joint}<geom type="capsule" fromto="0 0 0 {length} 0 0" size="0.006" mass="{mass}"/>')
        close.append("</body>")
    return HEAD.format(title=f"Closed chain of {count} links: free first link, ball joints, a connect that closes the ring.", name="ring", step=0.001) + \
        "  <worldbody>\n" + "\n".join(lines) + "\n" + "".join(close) + f"""
  </worldbody>
  <equality>
    <connect name="clasp" body1="link{count - 1}" body2="link0" anchor="{length} 0 0"/>
  </equality>
</mujoco>
"""


def renamed(body, prefix):
    body.name, body.joint = prefix + body.name, prefix + body.joint
    for child in body.children:
        renamed(child, prefix)
    return body


def holding_hands():
    """Two humanoids side by side; the left hand of one holds the right hand of the other. The arms hang as in the model's pose."""
    one, two = characters.Humanoid(), characters.Humanoid()
    apart = 2 * one.length["shoulder_out"]
    renamed(one.root, "a_"), renamed(two.root, "b_")
    x, y, z = two.root.pos
    two.root.pos = (x, y + apart, z)
    hand = numbers(0, 0, -one.length["forearm"])
    return HEAD.format(title="Two humanoids (models/humanoid.xml) side by side, hand in hand: 68 degrees of freedom, 3 rows.", name="holding_hands", step=0.005) + \
        "  <worldbody>\n" + "\n".join(emit(one.root, 2) + emit(two.root, 2)) + f"""
  </worldbody>
  <equality>
    <connect name="hands" body1="a_left_forearm" body2="b_right_forearm" anchor="{hand}"/>
  </equality>
</mujoco>
"""


def models():
    return {"four_bar": four_bar(), "slider_crank": slider_crank(), "stewart": stewart(), "ring": ring(),
            "holding_hands": holding_hands()}
