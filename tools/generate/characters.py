"""Dimensions and masses of the built-in characters. They follow from a stature and a mass, or are round numbers chosen here."""
from tree import Body, numbers

LEFT, RIGHT = 1, -1


def side_name(side):
    return "left" if side == LEFT else "right"


def capsule(a, b, radius, mass, cls=None):
    head = f'class="{cls}" ' if cls else ""
    return f'{head}type="capsule" fromto="{numbers(a)} {numbers(b)}" size="{numbers([radius])}" mass="{numbers([mass])}"'


def sphere(at, radius, mass):
    return f'type="sphere" pos="{numbers(at)}" size="{numbers([radius])}" mass="{numbers([mass])}"'


def box(at, half, mass, cls=None):
    head = f'class="{cls}" ' if cls else ""
    return f'{head}type="box" pos="{numbers(at)}" size="{numbers(half)}" mass="{numbers([mass])}"'


class Humanoid:
    """Free root, ball joints at chest, neck, shoulders, hips, ankles, hinges at elbows and knees: n = 34, d = 13."""
    stature, mass = 1.64, 60.0
    # Lengths as shares of stature, rounded to 5 mm; the shares are near those of anthropometric tables.
    share = dict(waist=0.143, neck=0.137, shoulder_up=0.146, shoulder_out=0.110, upper_arm=0.168, forearm=0.158,
                 hip_out=0.052, thigh=0.256, shin=0.250, ankle=0.030, foot=0.108)
    # Shares of mass; the sum over both sides, trunk and head is 1.
    weight = dict(pelvis=0.158, chest=0.340, head=0.080, upper_arm=0.028, forearm=0.022, thigh=0.100, shin=0.0465,
                  foot=0.0145)

    def __init__(self):
        self.length = {k: round(v * self.stature / 0.005) * 0.005 for k, v in self.share.items()}
        self.kg = {k: v * self.mass for k, v in self.weight.items()}
        n, m = self.length, self.kg
        self.height = n["thigh"] + n["shin"] + n["ankle"]      # of the pelvis, with straight legs and the soles on the floor
        self.half_foot = n["foot"] / 2
        self.heel = 0.045 - self.half_foot                     # x of the sole's back edge from the ankle
        pelvis = Body("pelvis", "root", "free", (0, 0, self.height), [
            capsule((0, -0.045, 0.03), (0, 0.045, 0.03), 0.085, 0.65 * m["pelvis"]),
            sphere((0, 0, 0.15), 0.08, 0.35 * m["pelvis"])])
        torso = Body("torso", "chest", "ball", (0, 0, n["waist"]), [
            capsule((0, -0.06, 0.13), (0, 0.06, 0.13), 0.11, 0.8 * m["chest"]),
            capsule((-0.01, -0.125, 0.235), (-0.01, 0.125, 0.235), 0.045, 0.2 * m["chest"])], limit=(0, 1.6))
        head = Body("head", "neck", "ball", (0, 0, n["neck"]), [
            capsule((0, 0, 0.03), (0, 0, 0.07), 0.045, 0.1 * m["head"]),
            sphere((0.01, 0, 0.175), 0.1, 0.9 * m["head"])], limit=(0, 1.5))
        torso.children = [head, self.arm(LEFT), self.arm(RIGHT)]
        pelvis.children = [torso, self.leg(LEFT), self.leg(RIGHT)]
        self.root = pelvis

    def arm(self, side):
        n, m, s = self.length, self.kg, side_name(side)
        a, f = n["upper_arm"], n["forearm"]
        forearm = Body(f"{s}_forearm", f"{s}_elbow", "hinge", (0, 0, -a), [
            capsule((0, 0, -0.04), (0, 0, -f + 0.07), 0.038, 0.7 * m["forearm"]),
            sphere((0, 0, -f), 0.035, 0.3 * m["forearm"])], axis=(0, -1, 0), limit=(-0.2, 2.9))
        return Body(f"{s}_upper_arm", f"{s}_shoulder", "ball", (-0.02, side * n["shoulder_out"], n["shoulder_up"]), [
            capsule((0, 0, -0.03), (0, 0, -a + 0.045), 0.045, m["upper_arm"])], children=[forearm],
            note="hangs down at rest; the elbow bends forward, positive")

    def leg(self, side):
        n, m, s = self.length, self.kg, side_name(side)
        t, c = n["thigh"], n["shin"]
        half = (self.half_foot, 0.045, 0.0275)
        foot = Body(f"{s}_foot", f"{s}_ankle", "ball", (0, 0, -c), [
            box((0.045, 0, half[2] - n["ankle"]), half, m["foot"], "foot")], limit=(0, 1.8))
        shin = Body(f"{s}_shin", f"{s}_knee", "hinge", (0, 0, -t), [
            capsule((0, 0, -0.04), (0, 0, -c + 0.06), 0.05, m["shin"])], axis=(0, 1, 0), limit=(-0.2, 2.8),
            children=[foot])
        return Body(f"{s}_thigh", f"{s}_hip", "ball", (0, side * n["hip_out"], 0), [
            capsule((0, 0, -0.05), (0, 0, -t + 0.06), 0.056, m["thigh"])], limit=(0, 2.8), children=[shin],
            note="the knee bends backward, positive")


class Dog:
    """Free root and 22 ball joints, six of them to each front paw: n = 72, d = 24."""
    length = dict(lower_spine=0.235, upper_spine=0.28, neck=0.175, head=0.19, shoulder=(0.30, 0.105, -0.11),
                  upper_arm=0.19, forearm=0.22, pastern=0.09, hip=(-0.075, 0.06, -0.095), thigh=0.20, shin=0.225,
                  metatarsus=0.135, tail=0.20, paw=0.04)

    def __init__(self):
        n = self.length
        self.height = -n["hip"][2] + n["thigh"] + n["shin"] + n["metatarsus"] + n["paw"]
        pelvis = Body("pelvis", "root", "free", (0, 0, self.height), [
            capsule((-0.07, 0, -0.03), (-0.03, 0, -0.03), 0.085, 2.4)])
        loin = Body("loin", "lower_spine", "ball", (0, 0, 0), [
            capsule((0.06, 0, -0.025), (0.20, 0, -0.03), 0.085, 3.2)],
            note="the spine's joints bend at the pelvis and in front of the loin")
        thorax = Body("thorax", "upper_spine", "ball", (n["lower_spine"], 0, 0), [
            capsule((0.06, 0, -0.04), (0.24, 0, -0.05), 0.11, 7.2)])
        neck = Body("neck", "neck", "ball", (n["upper_spine"], 0, 0), [
            capsule((0.035, 0, 0), (0.135, 0, 0), 0.05, 1.1)])
        head = Body("head", "head", "ball", (n["neck"], 0, 0), [
            capsule((0.04, 0, -0.01), (0.06, 0, -0.015), 0.06, 0.9),
            capsule((0.10, 0, -0.035), (0.165, 0, -0.045), 0.032, 0.4)])
        neck.children = [head]
        thorax.children = [neck, self.front(LEFT), self.front(RIGHT)]
        loin.children = [thorax]
        tip = Body("tail_tip", "tail_tip", "ball", (-n["tail"], 0, 0), [
            capsule((-0.03, 0, 0), (-0.19, 0, 0), 0.018, 0.2)])
        tail = Body("tail", "tail_base", "ball", (-0.085, 0, 0), [
            capsule((-0.03, 0, 0), (-0.17, 0, 0), 0.024, 0.4)], children=[tip])
        pelvis.children = [loin, self.hind(LEFT), self.hind(RIGHT), tail]
        self.root = pelvis

    def paw(self, name, at):
        return Body(f"{name}_paw", f"{name}_toes", "ball", (0, 0, -at), [
            box((0.015, 0, 0.0175 - self.length["paw"]), (0.042, 0.025, 0.0175), 0.35, "paw")])

    def front(self, side):
        n, s = self.length, side_name(side)
        x, y, z = n["shoulder"]
        pastern = Body(f"{s}_front_pastern", f"{s}_wrist", "ball", (0, 0, -n["forearm"]), [
            capsule((0, 0, -0.02), (0, 0, -n["pastern"] + 0.02), 0.02, 0.35)],
            children=[self.paw(f"{s}_front", n["pastern"])])
        forearm = Body(f"{s}_forearm", f"{s}_elbow", "ball", (0, 0, -n["upper_arm"]), [
            capsule((0, 0, -0.03), (0, 0, -n["forearm"] + 0.035), 0.027, 0.9)], children=[pastern])
        return Body(f"{s}_upper_arm", f"{s}_shoulder", "ball", (x, side * y, z), [
            capsule((0, 0, -0.01), (0, 0, -n["upper_arm"] + 0.045), 0.038, 1.5)], children=[forearm])

    def hind(self, side):
        n, s = self.length, side_name(side)
        x, y, z = n["hip"]
        metatarsus = Body(f"{s}_metatarsus", f"{s}_hock", "ball", (0, 0, -n["shin"]), [
            capsule((0, 0, -0.025), (0, 0, -n["metatarsus"] + 0.02), 0.022, 0.45)],
            children=[self.paw(f"{s}_hind", n["metatarsus"])])
        shin = Body(f"{s}_shin", f"{s}_knee", "ball", (0, 0, -n["thigh"]), [
            capsule((0, 0, -0.035), (0, 0, -n["shin"] + 0.035), 0.03, 0.95)], children=[metatarsus])
        return Body(f"{s}_thigh", f"{s}_hip", "ball", (x, side * y, z), [
            capsule((0, 0, -0.01), (0, 0, -n["thigh"] + 0.05), 0.045, 1.6)], children=[shin])


class Snake:
    """Free root at the head and dofs - 6 hinges along the body, alternately about z and y: n = d = dofs."""

    def __init__(self, dofs):
        self.dofs, self.hinges = dofs, dofs - 6
        self.links = self.hinges + 1
        self.total = {36: 1.8, 72: 2.4, 195: 4.0}[dofs]       # m
        self.radius = 0.03
        self.link = self.total / self.links
        mass = 1000 * 3.14159265 * self.radius**2 * self.link  # of water
        def make(k):
            # Capsules overlap at their caps. A link's mass is that of its length, so that the overlap does not count twice.
            geom = capsule((0, 0, 0), (-self.link, 0, 0), self.radius, mass)
            if k == 0:
                return Body("head", "root", "free", (0, 0, self.radius), [geom])
            side = k % 2 == 1
            return Body(f"link{k:03d}", f"{'yaw' if side else 'pitch'}{k:03d}", "hinge", (-self.link, 0, 0), [geom],
                        axis=(0, 0, 1) if side else (0, 1, 0))
        bodies = [make(k) for k in range(self.links)]
        for a, b in zip(bodies, bodies[1:]):
            a.children = [b]
        self.root = bodies[0]
