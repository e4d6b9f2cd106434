#!/usr/bin/env python3
"""Writes models/scenes/: free rigid bodies with contact, two of them joined by equality constraints. usage: make_scenes.py [FOLDER]"""
import math
import pathlib
import random
import sys

MADE = "Made by tools/generate/make_scenes.py: change the numbers there, not here."


def num(x):
    return f"{x:.10g}" if abs(x) > 1e-12 else "0"


def vec(*v):
    return " ".join(num(x) for x in v)


def about_y(angle):
    return vec(math.cos(angle / 2), 0, math.sin(angle / 2), 0)


class Scene:
    def __init__(self, name, text, timestep=1 / 60, iterations=20, friction=0.5):
        self.name, self.text, self.timestep, self.iterations, self.friction = name, text, timestep, iterations, friction
        self.world, self.bodies, self.joints = [], [], []

    def plane(self, name, pos=(0, 0, 0), quat=None, size=20):
        turn = f' quat="{quat}"' if quat else ""
        self.world.append(f'<geom name="{name}" type="plane" size="{size} {size} 0.1" pos="{vec(*pos)}"{turn}/>')

    def box_walls(self, half):
        self.plane("floor")
        for k, name in enumerate(("east", "north", "west", "south")):
            a = math.pi / 2 * k
            inward = (-math.cos(a), -math.sin(a), 0)
            axis = (-inward[1], inward[0], 0)  # turns z into the inward normal
            r = math.sqrt(0.5)
            self.plane(name, [-half * c for c in inward], vec(r, *(r * c for c in axis)))

    def body(self, name, pos, kind, size, mass, quat=None, friction=None):
        turn = f' quat="{quat}"' if quat else ""
        own = f' friction="{num(friction)} 0 0" priority="1"' if friction is not None else ""
        self.bodies.append(f'<body name="{name}" pos="{vec(*pos)}"{turn}><freejoint/>'
                           f'<geom name="{name}" type="{kind}" size="{vec(*size)}" mass="{num(mass)}"{own}/></body>')

    def connect(self, first, anchor, second=None):
        other = f' body2="{second}"' if second else ""
        self.joints.append(f'<connect body1="{first}"{other} anchor="{vec(*anchor)}"/>')

    def write(self, folder):
        lines = ["<!--", f"  {self.text}", f"  {MADE}", "-->", f'<mujoco model="{self.name}">', '  <compiler angle="radian"/>',
                 f'  <option timestep="{num(self.timestep)}" gravity="0 0 -9.81" iterations="{self.iterations}" cone="elliptic"/>',
                 "  <default>", f'    <geom condim="3" friction="{num(self.friction)} 0.005 0.0001" rgba="0.6 0.65 0.75 1"/>', "  </default>",
                 "  <worldbody>", '    <light pos="0 0 20" dir="0 0 -1" directional="true"/>']
        lines += [f"    {x}" for x in self.world + self.bodies] + ["  </worldbody>"]
        if self.joints:
            lines += ["  <equality>", *[f"    {x}" for x in self.joints], "  </equality>"]
        (folder / f"{self.name}.xml").write_text("\n".join(lines + ["</mujoco>", ""]))


def ball_drop():
    s, r, side, layers = Scene("ball_drop", "216 balls dropped into a box."), 0.5, 6, 6
    pitch = 2.1 * r
    s.box_walls(side * pitch / 2 + 0.05 * r)
    draw = random.Random(1)
    for k in range(layers):
        for i in range(side):
            for j in range(side):
                jitter = [0.08 * r * (draw.random() - 0.5) for _ in range(3)]
                at = ((i - (side - 1) / 2) * pitch, (j - (side - 1) / 2) * pitch, (k + 0.6) * pitch)
                s.body(f"ball_{k}_{i}_{j}", [a + b for a, b in zip(at, jitter)], "sphere", [r], 1)
    return s


def ball_pyramid():
    s, r, layers = Scene("ball_pyramid", "A square pyramid of 55 balls between walls."), 0.5, 5
    s.box_walls(layers * r)
    for k in range(layers):
        side = layers - k
        for i in range(side):
            for j in range(side):
                s.body(f"ball_{k}_{i}_{j}", ((2 * i - side + 1) * r, (2 * j - side + 1) * r, r * (1 + k * math.sqrt(2))), "sphere", [r], 1)
    return s


def box_pyramid():
    s, base = Scene("box_pyramid", "A wall of 55 cubes, ten in the lowest row."), 10
    s.plane("floor")
    for row in range(base):
        for i in range(base - row):
            s.body(f"box_{row}_{i}", ((i - (base - row - 1) / 2) * 1.05, 0, row + 0.5), "box", [0.5, 0.5, 0.5], 1)
    return s


def box_stack():
    s = Scene("box_stack", "Ten cubes above one another.", iterations=50)
    s.plane("floor")
    for i in range(10):
        s.body(f"box_{i}", (0, 0, i + 0.5), "box", [0.5, 0.5, 0.5], 1)
    return s


def domino_row():
    s, half = Scene("domino_row", "Thirty dominoes; the first is about to fall."), (0.05, 0.25, 0.5)
    s.plane("floor")
    lean = 0.2
    c, n = math.cos(lean), math.sin(lean)
    s.body("domino_0", (n * half[2] - c * half[0] + half[0], 0, n * half[0] + c * half[2]), "box", half, 1, about_y(lean))
    for i in range(1, 30):
        s.body(f"domino_{i}", (0.4 * i, 0, half[2]), "box", half, 1)
    return s


def slope():
    angle = math.radians(25)
    s = Scene("slope", "A slope of 25 degrees: one cube sticks (friction 0.6), the other slips (friction 0.3).")
    s.plane("slope", quat=about_y(angle))
    up = (math.sin(angle), math.cos(angle))
    for name, y, mu in (("sticks", -1, 0.6), ("slips", 1, 0.3)):
        s.body(name, (0.5 * up[0], y, 0.5 * up[1]), "box", [0.5, 0.5, 0.5], 1, about_y(angle), mu)
    return s


def newton_cradle():
    s = Scene("newton_cradle", "Five balls on rods, the first lifted. Run with --restitution 1.", timestep=1 / 500, friction=0)
    r, length, angle = 0.1, 1.0, 0.6
    for i in range(5):
        pivot = (2.005 * r * i, 0, 1.5)
        lift = angle if i == 0 else 0
        at = (pivot[0] - length * math.sin(lift), 0, pivot[2] - length * math.cos(lift))
        s.body(f"ball_{i}", at, "sphere", [r], 1, about_y(lift))
        s.connect(f"ball_{i}", (0, 0, length))
    return s


def rope_on_peg():
    s = Scene("rope_on_peg", "A rope of 24 capsules falls over a peg and hangs.", timestep=1 / 240, iterations=60, friction=0.8)
    s.plane("floor", (0, 0, -3))
    s.world.append('<geom name="peg" type="capsule" fromto="0 -0.5 0 0 0.5 0" size="0.15"/>')
    half, n = 0.06, 24
    for i in range(n):
        x = (i - (n - 1) / 2) * 2 * half + 0.02
        r = math.sqrt(0.5)
        # Capsules are shorter than the links, so that the caps of neighbours do not overlap.
        s.body(f"link_{i}", (x, 0, 0.2), "capsule", [0.02, half - 0.03], 0.05, vec(r, 0, r, 0))
        if i:
            s.connect(f"link_{i - 1}", (0, 0, half), f"link_{i}")
    return s


def card_house():
    s = Scene("card_house", "A house of cards with three storeys; the cards are planks of 1 m.", iterations=50, friction=0.7)
    s.plane("floor")
    half, lean, storeys = (0.01, 0.3, 0.5), 0.35, 3
    up, out = math.cos(lean), math.sin(lean)
    foot, rise = half[0] * up, half[2] * up + half[0] * out
    width = 2 * (half[2] * out + foot)
    pitch, storey = 2 * width, 2 * rise + 2 * half[0]
    for level in range(storeys):
        pairs, base = storeys - level, level * storey
        for i in range(pairs):
            x = (i - (pairs - 1) / 2) * pitch
            for side in (-1, 1):
                s.body(f"card_{level}_{i}_{'l' if side < 0 else 'r'}", (x + side * width / 2, 0, base + rise), "box", half, 0.1, about_y(-side * lean))
        for i in range(pairs - 1):
            s.body(f"flat_{level}_{i}", ((i - (pairs - 2) / 2) * pitch, 0, base + 2 * rise + half[0]), "box", (pitch / 2 - 0.001, half[1], half[0]), 0.1)
    return s


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "models" / "scenes"
    folder.mkdir(parents=True, exist_ok=True)
    for make in (ball_drop, ball_pyramid, box_pyramid, box_stack, domino_row, slope, newton_cradle, rope_on_peg, card_house):
        make().write(folder)


if __name__ == "__main__":
    main()
