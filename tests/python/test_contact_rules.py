"""Every rule by which MuJoCo decides whether two shapes touch and with which numbers, against its wheel: one table, run on
trees (Stepper) and on free bodies (RigidWorld) alike.

A flat box lies on the floor, and slides over it under a tilted gravity. Compared: who touches, condim, friction as listed
and as it slows the box, height at rest."""

import numpy as np
import pytest
import tarsus

mujoco = pytest.importorskip("mujoco")

DT, G, PUSH = 0.002, 9.81, 12.0
HALF = 0.02
REST, SLIDE = 1500, 200  # steps


def scene(floor, box, contact="", gravity=(0, 0, -G), assets="", height=HALF):
    return f"""<mujoco><option timestep="{DT}" gravity="{gravity[0]} {gravity[1]} {gravity[2]}"/>{assets}<worldbody>
<geom name="f" type="plane" size="9 9 1" {floor}/>
<body name="B" pos="0 0 {height}"><freejoint/><geom name="b" type="box" size=".2 .2 {HALF}" mass="1" {box}/></body>
</worldbody>{contact}</mujoco>"""


def pair(attributes="", more=""):
    return f'<contact><pair geom1="f" geom2="b" {attributes}/>{more}</contact>'


EXCLUDE = '<exclude body1="world" body2="B"/>'

#: name: floor, box, <contact>
CASES = {
    # friction, condim, priority
    "equal friction": ('friction=".2"', 'friction=".2"'),
    "the larger friction": ('friction=".1"', 'friction=".25"'),
    "the larger friction, of the floor": ('friction=".6"', 'friction=".25"'),
    "priority of the floor": ('friction=".1" priority="1"', 'friction=".25"'),
    "priority of the box": ('friction=".1"', 'friction=".25" priority="3"'),
    "two priorities": ('friction=".1" priority="2"', 'friction=".25" priority="1"'),
    "a negative priority": ('friction=".1"', 'friction=".25" priority="-1"'),
    "condim 1 of both": ('condim="1"', 'condim="1"'),
    "condim 1 of one": ('condim="1" friction=".3"', 'friction=".2"'),
    "condim 4 of one": ('condim="4" friction=".3"', 'friction=".2"'),
    "condim 6 of one": ('condim="6" friction=".3"', 'friction=".2"'),
    "condim 1 by priority": ('condim="1" priority="1"', 'condim="4"'),
    "condim 4 by priority": ('condim="1"', 'condim="4" priority="1" friction=".3"'),
    # explicit pairs
    "pair: friction is not the geoms'": ('friction=".2"', 'friction=".3"', pair()),
    "pair: one friction for both directions": ("", "", pair('friction=".1 .1"')),
    "pair: condim is not the geoms'": ('condim="1"', 'condim="1"', pair('friction=".4 .4"')),
    "pair: condim 1": ("", "", pair('condim="1"')),
    "pair: priority has no say": ('priority="2" friction=".1"', 'friction=".2"', pair('friction=".3 .3"')),
    "pair beats masks": ('contype="0" conaffinity="0"', 'contype="0" conaffinity="0"', pair('friction=".3 .3"')),
    "pair beats exclude": ("", "", pair('friction=".3 .3"', EXCLUDE)),
    "pair of a default class": ("", "", pair(), '<default><pair friction=".15 .15" condim="4"/></default>'),
    "pair: margin": ("", "", pair('margin=".02"')),
    "pair: margin and gap": ("", "", pair('margin=".02" gap=".02"')),
    "pair: margins of the geoms do not count": ('margin=".02"', 'margin=".03"', pair()),
    "pair: solref": ("", "", pair('solref=".05 1"')),
    "pair: solref of the geoms does not count": ('solref=".1 1"', 'solref=".1 1"', pair()),
    "pair: solimp": ("", "", pair('solimp=".5 .8 .01"')),
    # margins and gaps
    "margin of the floor": ('margin=".02"', ""),
    "margin of the box": ("", 'margin=".03"'),
    "margins add up": ('margin=".02"', 'margin=".03"'),
    "a gap changes no motion": ('margin=".02" gap=".02"', ""),
    "gaps of both": ('margin=".02" gap=".01"', 'margin=".01" gap=".03"'),
    "margin beside priority": ('margin=".02" priority="1"', 'margin=".01"'),
    # softness
    "default softness": ("", ""),
    "the default written out": ('solref=".02 1" solimp=".9 .95 .001 .5 2"', 'solref=".02 1"'),
    "time constant of both": ('solref=".05 1"', 'solref=".05 1"'),
    "time constant of one": ('solref=".08 1"', ""),
    "time constant below two steps": ('solref=".001 1"', 'solref=".001 1"'),
    "damping ratio": ('solref=".04 .7"', 'solref=".04 .7"'),
    "stiffness and damping": ('solref="-1000 -50"', 'solref="-1000 -50"'),
    "stiffness against the default": ("", 'solref="-1000 -50"'),
    "two stiffnesses": ('solref="-100000 -500"', 'solref="-1000 -50"'),
    "solmix": ('solref=".1 1" solmix="3"', 'solref=".03 1" solmix="1"'),
    "solmix 0": ('solref=".1 1" solmix="0"', 'solref=".03 1"'),
    "solmix does not weigh stiffnesses": ('solref="-5000 -200" solmix="9"', 'solref="-1000 -50"'),
    "impedance": ('solimp=".5 .8 .01"', 'solimp=".5 .8 .01"'),
    "impedance of one": ('solimp=".3 .6 .02"', ""),
    "impedance: midpoint and power": ('solimp=".3 .9 .01 .3 3"', 'solimp=".3 .9 .01 .3 3"'),
    "impedance without a width": ('solimp=".6 .8 0"', 'solimp=".6 .8 0"'),
    "hard": ('solimp=".99 .999 .0001"', 'solimp=".99 .999 .0001"'),
    "softness by priority": ('solref=".1 1" solimp=".5 .8 .01" priority="1"', 'solref="-1000 -50"'),
    "solref and solimp": ('solref=".1 1" solimp=".5 .8 .01"', 'solref=".03 1" solimp=".9 .9 .01"'),
    # masks and excludes
    "types that do not meet": ('contype="2" conaffinity="2"', ""),
    "type meets affinity one way": ('contype="2" conaffinity="0" friction=".3"', 'contype="0" conaffinity="2" friction=".3"'),
    "both have no affinity": ('conaffinity="0"', 'conaffinity="0"'),
    "exclude": ("", "", f"<contact>{EXCLUDE}</contact>"),
}


def case_text(case, gravity, height=HALF):
    floor, box, contact, assets = (*case, "", "")[:4]
    return scene(floor, box, contact, gravity, assets, height)


def run_mujoco(text, steps):
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.tolerance, model.opt.iterations = 1e-12, 200
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    listed = {(c.dim, c.friction[:2].max() if c.dim > 1 else 0.0) for c in data.contact}
    default = all((c.solref == [0.02, 1]).all() and (c.solimp == [0.9, 0.95, 0.001, 0.5, 2]).all() for c in data.contact)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return data.qpos[2], data.qvel[0], listed, default


def run_tree(text, steps):
    model = tarsus.Model.from_xml_string(text)
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data, dt=DT, contacts=True)
    listed = None
    for _ in range(steps):
        assert stepper.step() == 0
        if listed is None:
            listed = {(c["dimension"], c["friction"]) for c in stepper.contacts}
    return data.qpos[2], data.qvel[0], listed


def run_free(text, steps):
    world = tarsus.RigidWorld.from_model(tarsus.Model.from_xml_string(text), dt=DT, iterations=200)
    assert world.step(1)
    listed = set(world.contacts["friction"].tolist())
    assert world.step(steps - 1)
    return world.poses[0, 2], world.velocities[0, 0], listed


@pytest.mark.parametrize("name", CASES)
def test_rule_is_mujocos(name):
    rest = case_text(CASES[name], (0, 0, -G))
    height, _, theirs, default = run_mujoco(rest, REST)
    for engine, run in ("tree", run_tree), ("free", run_free):
        z, _, ours = run(rest, REST)
        if not theirs:  # both fall: semi-implicit Euler's parabola
            assert not ours and z == pytest.approx(height, abs=1e-9), engine
            continue
        assert ours == (theirs if engine == "tree" else {mu for _, mu in theirs}), engine
        if default:  # for MJCF's default solref and solimp contacts have the default softness instead, which is harder
            surface = round(height, 3)  # of the margin
            assert height < z < surface, engine
        else:
            # At rest the depth is (1 - d)/(d² K) times the weight by MuJoCo's formula. MuJoCo's depth approaches it slowly, as
            # e^(-t/time constant), which is small after 3 s.
            assert z == pytest.approx(height, abs=1e-6 + 2e-3 * abs(HALF - height)), engine
        # Sliding from rest in the plane's normal direction: Coulomb's law, up to the effect of the small penetration.
        _, speed, _ = run(case_text(CASES[name], (PUSH, 0, -G), z), SLIDE)
        (friction,) = {mu for _, mu in theirs}
        assert (PUSH - speed / (SLIDE * DT)) / G == pytest.approx(friction, abs=2e-3), engine


DIRECTIONS = [(".1 .3", 0.0), (".1 .3", 90.0), (".3 .1", 30.0), (".1", 45.0), (".5 .5", 45.0), (".2 .8", 60.0)]


def ellipse_speed(friction, push, seconds):
    """The speed of a point from rest under a constant push, with friction of maximum dissipation on an ellipse. The direction is
    constant, F = -N (μ_x² v_x, μ_y² v_y)/|(μ_x v_x, μ_y v_y)|. By bisection on v_x/v_y."""
    numbers = [float(x) for x in friction.split()]
    mu = np.array([(numbers + [1.0])[1], numbers[0]])  # the frame's first tangent is y

    def acceleration(angle):
        v = np.array([np.sin(angle), np.cos(angle)])
        return push - G * mu**2 * v / np.linalg.norm(mu * v)

    low, high = 0.0, np.pi / 2
    for _ in range(100):
        angle = (low + high) / 2
        a = acceleration(angle)
        low, high = (low, angle) if a[0] * np.cos(angle) < a[1] * np.sin(angle) else (angle, high)
    return acceleration(angle) * seconds


@pytest.mark.parametrize("friction,angle", DIRECTIONS)
def test_pairs_with_two_frictions_slide_on_their_ellipse(friction, angle):
    push = PUSH * np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
    text = scene("", "", pair(f'friction="{friction}"'), (*push, -G))
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    theirs = mujoco.MjData(model)
    data = tarsus.Data(tarsus.Model.from_xml_string(text))
    stepper = tarsus.Stepper(data, dt=DT, contacts=True)
    for _ in range(SLIDE):
        mujoco.mj_step(model, theirs)
        assert stepper.step() == 0
    seconds = SLIDE * DT
    assert np.allclose(data.qvel[:2], ellipse_speed(friction, push, seconds), atol=5e-4 * PUSH * seconds)
    assert np.allclose(data.qvel[:2], theirs.qvel[:2], atol=0.03 * PUSH * seconds)  # its friction is soft


#: A capsule that slides flat on the floor, and does not turn.
ROD = """<mujoco><option timestep="{dt}" gravity="0 0 -{g}"/><worldbody><geom name="f" type="plane" size="0 0 1"/><body pos="0 0 .1">
  <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/>
  <geom name="b" type="capsule" size=".1 .3" zaxis="{axis}" mass="2"/></body></worldbody>{pair}
  <sensor><contact geom1="f" geom2="b" num="2" data="force tangent"/></sensor></mujoco>"""


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("heading", [0, 30, 60, 90, None])
def test_two_frictions_of_a_capsule_on_a_plane_follow_its_axis(heading, across):
    """Only one of the two coefficients acts if the capsule slides along or across its axis, whatever its heading. The axis of an
    upright capsule (None) has no direction in the plane; MuJoCo then takes x."""
    angle = np.radians(heading or 0)
    along, normal = np.array([np.cos(angle), np.sin(angle), 0]), np.array([-np.sin(angle), np.cos(angle), 0])
    text = ROD.format(dt=0.001, g=G, axis="0 0 1" if heading is None else " ".join(map(str, along)), pair=pair('friction=".1 .7"'))
    if heading is None:
        text = text.replace('pos="0 0 .1"', 'pos="0 0 .4"')
    way, friction = (normal, 0.7) if across else (along, 0.1)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    theirs, data = mujoco.MjData(model), tarsus.Data(tarsus.Model.from_xml_string(text))
    theirs.qvel[:] = data.qvel[:] = 2 * way
    stepper = tarsus.Stepper(data)
    batch = tarsus.Batch(data.model, 2, dt=0.001)
    batch.qvel[:] = data.qvel
    for _ in range(100):
        mujoco.mj_step(model, theirs)
        assert stepper.step() == 0
    batch.rollout(100, states=False)
    speed = 2 - friction * G * 0.1
    assert np.allclose(data.qvel, speed * way, atol=1e-3)
    assert np.allclose(batch.qvel[0], data.qvel, atol=1e-12)
    assert np.allclose(theirs.qvel[:2], speed * way[:2], atol=0.05)  # its friction is soft
    for force, tangent in data.sensordata.reshape(2, 2, 3)[: 1 if heading is None else 2]:
        assert np.allclose(tangent, along, atol=1e-9)
        assert np.allclose(force[1:], force[0] * friction * np.array([0, -1] if across else [-1, 0]), atol=1e-3 * G)


def test_tangents_of_a_capsule_on_a_plane_are_mujocos():
    """Capsules of random orientation on planes of random orientation."""
    random = np.random.default_rng(5)
    text = lambda v: " ".join(map(str, v))  # noqa: E731
    for _ in range(40):
        plane, capsule, body = random.normal(size=(3, 4))
        xml = f"""<mujoco><option timestep="1e-6"/><worldbody><geom name="f" type="plane" size="0 0 1" quat="{text(plane)}"/>
          <body quat="{text(body)}"><freejoint/>
            <geom name="b" type="capsule" size=".1 .3" quat="{text(capsule)}" pos="{text(random.uniform(-0.05, 0.05, 3))}" mass="1"/></body></worldbody>
          <sensor><contact geom1="f" geom2="b" data="normal tangent"/><contact geom1="b" geom2="f" data="normal tangent"/></sensor></mujoco>"""
        model, data = mujoco.MjModel.from_xml_string(xml), tarsus.Data(tarsus.Model.from_xml_string(xml))
        theirs = mujoco.MjData(model)
        mujoco.mj_forward(model, theirs)
        assert tarsus.Stepper(data).step() == 0
        assert np.abs(theirs.sensordata).max() > 0.5
        np.testing.assert_allclose(data.sensordata, theirs.sensordata, atol=1e-4)  # a step later


def test_two_frictions_of_a_free_body_are_refused_with_their_place():
    model = tarsus.Model.from_xml_string(scene("", "", pair('friction=".1 .3"')))
    with pytest.raises(tarsus.InputError, match="friction that depends on the direction"):
        tarsus.RigidWorld.from_model(model)


BALL = 'size=".1" mass="1"'
#: Overlapping bodies: which pairs touch. Names are those of bodies; cases with "trees" cannot be scenes of free bodies.
FILTERS = {
    "trees: parent and child": '<body name="P" pos="0 0 1"><joint axis="0 1 0"/><geom {B}/>'
                               '<body name="C"><joint axis="0 1 0"/><geom {B}/><body name="D"><joint axis="0 1 0"/><geom {B}/>'
                               "</body></body></body>",
    "trees: a child of the world touches the world": '<geom {B}/><body name="P"><joint axis="0 1 0"/><geom {B}/></body>',
    "trees: welded bodies between count as their parent":
        '<body name="P" pos="0 0 1"><joint axis="0 1 0"/><geom {B}/><body name="W"><geom {B}/><body name="C">'
        '<joint axis="0 1 0"/><geom {B}/></body></body></body>',
    "trees: two children of one parent": '<body name="P" pos="0 0 1"><joint axis="0 1 0"/><geom {B}/>'
                                         '<body name="C"><joint axis="0 1 0"/><geom {B}/></body>'
                                         '<body name="D"><joint axis="0 1 0"/><geom {B}/></body></body>',
    "free bodies": '<body name="P" pos="0 0 1"><freejoint/><geom {B}/></body>'
                   '<body name="C" pos="0 .1 1"><freejoint/><geom {B}/></body>',
    "free bodies and the world": '<geom {B} pos="0 0 1"/><body name="P" pos="0 .1 1"><freejoint/><geom {B}/></body>',
    "parts of one free body": '<body name="P" pos="0 0 1"><freejoint/><geom {B}/><body name="W"><geom {B}/></body></body>'
                              '<body name="C" pos="0 .1 1"><freejoint/><geom {B}/></body>',
    "exclude of a welded part": '<body name="P" pos="0 0 1"><freejoint/><geom {B}/><body name="W"><geom {B}/></body></body>'
                                '<body name="C" pos="0 .1 1"><freejoint/><geom {B}/></body>'
                                '|<exclude body1="C" body2="W"/>',
    "exclude of a body with a welded part":
        '<body name="P" pos="0 0 1"><freejoint/><geom {B}/><body name="W"><geom {B}/></body></body>'
        '<body name="C" pos="0 .1 1"><freejoint/><geom {B}/></body>|<exclude body1="C" body2="P"/><exclude body1="W" body2="C"/>',
    "trees: what hangs on a mocap body does not touch it":
        '<geom {B} pos="0 0 1"/><body name="M" mocap="true" pos="0 0 1"><geom {B}/><body name="W"><geom {B}/>'
        '<body name="C"><joint axis="0 1 0"/><geom {B}/></body></body></body>',
    "pair of two shapes of one body":
        '<body name="P" pos="0 0 1"><freejoint/><geom name="p" {B}/><body name="W"><geom name="w" {B} pos=".1 0 0"/></body></body>'
        '<body name="C" pos="0 .1 1"><freejoint/><geom {B}/></body>|<pair geom1="p" geom2="w"/>',
    "three masks": '<body name="P" pos="0 0 1"><freejoint/><geom {B} contype="1" conaffinity="2"/></body>'
                   '<body name="C" pos="0 .1 1"><freejoint/><geom {B} contype="2" conaffinity="4"/></body>'
                   '<body name="D" pos=".1 .05 1"><freejoint/><geom {B} contype="4" conaffinity="0"/></body>',
}


@pytest.mark.parametrize("name", FILTERS)
def test_filter_is_mujocos(name):
    bodies, _, contact = FILTERS[name].replace("{B}", BALL).partition("|")
    text = f"<mujoco><worldbody>{bodies}</worldbody><contact>{contact}</contact></mujoco>"
    model = mujoco.MjModel.from_xml_string(text)
    theirs = mujoco.MjData(model)
    mujoco.mj_forward(model, theirs)

    # The movable bodies of a contact: a welded part counts as the body that it is welded to.
    def weld(geom):
        return int(model.body_weldid[model.geom_bodyid[geom]])

    expected = sorted(tuple(sorted((weld(c.geom1), weld(c.geom2)))) for c in theirs.contact if c.exclude == 0)  # 3: of one body
    ours = tarsus.Model.from_xml_string(text)
    data = tarsus.Data(ours)
    stepper = tarsus.Stepper(data, dt=1e-4, contacts=True)
    stepper.step()
    moving = [i for i in range(model.nbody) if model.body_dofnum[i] > 0]  # one joint each: link k is moving[k]
    body = lambda link: moving[link] if link >= 0 else 0  # noqa: E731
    assert sorted(tuple(sorted(map(body, c["links"]))) for c in stepper.contacts) == expected
    if name.startswith("trees"):
        return
    world = tarsus.RigidWorld.from_model(ours, dt=1e-4)
    assert world.step(1)
    assert sorted(tuple(sorted(map(body, pair))) for pair in world.contacts["bodies"].tolist()) == expected


@pytest.mark.parametrize("height", [HALF + 0.045, HALF + 0.01, HALF - 0.003])
def test_listed_distances_are_of_the_shapes_whatever_their_margin(height):
    text = scene('margin=".02"', 'margin=".03"', '<sensor><contact geom1="f" geom2="b" num="4" reduce="mindist" data="dist"/></sensor>', height=height)
    theirs, model = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    d = mujoco.MjData(theirs)
    mujoco.mj_forward(theirs, d)
    data = tarsus.Data(model)
    stepper = tarsus.Stepper(data, dt=1e-5, contacts=True)
    world = tarsus.RigidWorld.from_model(model)
    batch = tarsus.Batch(model, 1, dt=1e-5, contacts=True)
    at_start = [c["distance"] for c in batch.contacts(0)]
    stepper.step(), world.set_options(dt=1e-5), world.step()
    expected = sorted(c.dist for c in d.contact)
    assert len(expected) == 4
    for listed in (at_start, [c["distance"] for c in stepper.contacts], world.contacts["distance"]):
        np.testing.assert_allclose(sorted(listed)[:4], expected, atol=1e-8)  # MuJoCo lists four points of a box on a plane
    np.testing.assert_allclose(tarsus.sensors(model, data), d.sensordata, atol=1e-8)


#: solref and solimp of contacts and ranges. MuJoCo's law and ours scale them by the weights of bodies and joints in the reference
#: pose.
LAWS = [(".02 1", ".8 .9 .01"), (".04 1", ".9 .95 .001"), (".01 1", ".9 .95 .001")]
LEG = """<body pos="{x} {y} 0"><joint axis="0 1 0" stiffness="2000" damping="40"/><geom type="capsule" fromto="0 0 0 0 0 -.15" size=".02" mass="1" contype="0" conaffinity="0"/>
  <body pos="0 0 -.15"><joint axis="0 1 0" stiffness="2000" damping="40"/><geom type="sphere" pos="0 0 -.05" size=".05" mass=".15"/></body></body>"""
TABLE = """<mujoco><option timestep="{dt}"/><default><geom solref="{ref}" solimp="{imp}"/></default><worldbody><geom type="plane" size="3 3 1"/>
  <body pos="0 0 .3"><freejoint/><geom type="box" size=".2 .2 .05" mass="20" contype="0" conaffinity="0"/>{legs}</body></worldbody></mujoco>"""


def settled(text, dt, seconds, **what):
    """(MuJoCo's data, a Stepper, a Batch) after `seconds`."""
    theirs = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(theirs)
    model = tarsus.Model.from_xml_string(text)
    stepper = tarsus.Stepper(tarsus.Data(model), dt=dt, **what)
    batch = tarsus.Batch(model, 2, dt=dt, **what)
    for _ in range(round(seconds / dt)):
        mujoco.mj_step(theirs, d)
        assert stepper.step() == 0
    batch.rollout(round(seconds / dt), states=False)
    return d, stepper, batch


@pytest.mark.parametrize("dt", [0.001, 0.01])
@pytest.mark.parametrize("ref,imp", LAWS)
def test_light_feet_under_a_heavy_body_stand_as_deep_as_mujocos(ref, imp, dt):
    """The contact law must use the weight at the reference pose. With the foot's own mass, 0.15 kg of 25, the feet stand several
    times as deep."""
    text = TABLE.format(dt=dt, ref=ref, imp=imp, legs="".join(LEG.format(x=x, y=y) for x in (-0.2, 0.2) for y in (-0.2, 0.2)))
    d, stepper, batch = settled(text, dt, 3, contacts=True)
    depth = -min(c.dist for c in d.contact)
    assert batch.width > 1 and depth > 5e-4
    for contacts in (stepper.contacts, batch.contacts(0)):
        assert -min(c["distance"] for c in contacts) == pytest.approx(depth, rel=1e-4)


ARM = """<mujoco><option timestep="{dt}"/><worldbody><body><joint axis="0 1 0" range="-40 20" limited="true" solreflimit="{ref}" solimplimit="{imp}"/>
  <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="1"/><body pos=".4 0 0"><joint type="{kind}" axis="0 1 0" range="{range}" limited="true"
    solreflimit="{ref}" solimplimit="{imp}" damping=".05"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass=".5"/></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("dt", [0.001, 0.005])
@pytest.mark.parametrize("ref,imp", [(".02 1", ".8 .9 .1"), (".04 1", ".9 .95 .01")])
@pytest.mark.parametrize("kind,span", [("hinge", "-60 30"), ("ball", "0 30")])
def test_ranges_give_under_a_load_as_mujocos(kind, span, ref, imp, dt):
    """A chain of two links that hangs at the ends of its ranges. The weight of the second link loads the first."""
    text = ARM.format(dt=dt, ref=ref, imp=imp, kind=kind, range=span)
    d, stepper, batch = settled(text, dt, 4, joint_limits=True)
    assert batch.width > 1 and abs(d.qpos[0] - np.deg2rad(20)) > 1e-3
    np.testing.assert_allclose(stepper.data.qpos, d.qpos, atol=1e-6)
    np.testing.assert_allclose(batch.qpos[0], d.qpos, atol=1e-6)


def test_contacts_name_their_bodies_and_geoms_as_mujoco():
    """A welded part is a body of its own, mocap bodies are not the world, and the order is that of `links`."""
    text = f"""<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
      <body name="table" pos="0 2 .1"><geom name="top" type="box" size=".5 .5 .1"/></body>
      <body name="hand" mocap="true" pos="0 0 .55"><geom name="palm" type="box" size=".2 .2 .05"/></body>
      <body name="robot" pos="0 0 .3"><freejoint/><geom name="trunk" type="box" size=".3 .2 .205"/>
        <body name="foot" pos=".4 0 -.2"><geom name="sole" type="sphere" size=".105"/><geom type="sphere" size=".105" pos=".3 0 0"/></body></body>
      <body name="one" pos="0 2 .3"><freejoint/><geom name="low" type="box" size=".1 .1 .105"/></body>
      <body name="two" pos="0 2 .5"><freejoint/><geom name="high" type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    theirs = mujoco.MjData(model)
    mujoco.mj_forward(model, theirs)
    named = lambda geom: (int(model.geom_bodyid[geom]), model.geom(geom).name)  # noqa: E731
    expected = {frozenset((named(c.geom1), named(c.geom2))) for c in theirs.contact}
    assert len(expected) == 5
    ours = tarsus.Model.from_xml_string(text)
    stepper, batch = tarsus.Stepper(tarsus.Data(ours), dt=1e-4), tarsus.Batch(ours, 2)
    stepper.step()
    for contacts in (stepper.contacts, batch.contacts(1)):
        assert {frozenset(zip(c["bodies"], c["geoms"])) for c in contacts if c["distance"] < 0} == expected
        for c in contacts:
            assert tuple(ours.bodies[body].link for body in c["bodies"]) == c["links"]
