"""Contact points against MuJoCo's: the distance of every pair of shapes, terrain, resting manifolds."""

import itertools

import numpy as np
import pytest

import tarsus

mujoco = pytest.importorskip("mujoco")

IDENTITY = np.eye(3)


def random_rotation(random):
    q = random.normal(size=4)
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, q / np.linalg.norm(q))
    return q / np.linalg.norm(q), matrix.reshape(3, 3)


HULL = np.random.default_rng(3).normal(size=(30, 3))
HULL = np.ascontiguousarray(0.3 * HULL / np.linalg.norm(HULL, axis=1)[:, None])

SHAPES = {
    "sphere": (tarsus.Shape.sphere(0.2), 'type="sphere" size="0.2"'),
    "capsule": (tarsus.Shape.capsule(0.1, 0.3), 'type="capsule" size="0.1 0.3"'),
    "ellipsoid": (tarsus.Shape.ellipsoid(0.3, 0.2, 0.15), 'type="ellipsoid" size="0.3 0.2 0.15"'),
    "cylinder": (tarsus.Shape.cylinder(0.2, 0.25), 'type="cylinder" size="0.2 0.25"'),
    "box": (tarsus.Shape.box(0.2, 0.25, 0.15), 'type="box" size="0.2 0.25 0.15"'),
    "convex": (tarsus.Shape.convex(HULL), 'type="mesh" mesh="hull"'),
}


def mujoco_pair(a, b):
    vertices = " ".join(map(str, HULL.ravel()))
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option ccd_tolerance="1e-9" ccd_iterations="200"/><asset><mesh name="hull" vertex="{vertices}"/></asset>
        <worldbody><body mocap="true"><geom {SHAPES[a][1]}/></body><body mocap="true"><geom {SHAPES[b][1]}/></body>
        </worldbody></mujoco>"""
    )


@pytest.mark.parametrize("pair", list(itertools.combinations_with_replacement(SHAPES, 2)), ids="-".join)
def test_distance_is_mujocos(pair):
    model = mujoco_pair(*pair)
    data = mujoco.MjData(model)
    random = np.random.default_rng(7)
    for _ in range(300):
        direction = random.normal(size=3)
        data.mocap_pos[0] = direction / np.linalg.norm(direction) * random.uniform(0.3, 1.2)
        data.mocap_pos[1] = 0
        for k in range(2):
            data.mocap_quat[k], _ = random_rotation(random)
        mujoco.mj_kinematics(model, data)
        theirs = mujoco.mj_geomDistance(model, data, 0, 1, 5.0, np.zeros(6))
        place = [(data.xpos[1 + k].copy(), data.xmat[1 + k].reshape(3, 3).copy()) for k in range(2)]
        ours = tarsus.collide(SHAPES[pair[0]][0], *place[0], SHAPES[pair[1]][0], *place[1], 5.0)["distance"].min()
        if pair == ("capsule", "box") and ours < -0.1:
            continue  # the capsule's segment is in the box: theirs stops at the radius
        # MuJoCo's meshes are in single precision: 3e-8. Without meshes the largest difference of 21,000 scenes is 1.3e-9.
        assert ours == pytest.approx(theirs, abs=1e-7 if "convex" in pair else 1e-8)


def test_resting_box_has_mujocos_corners():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><geom type="box" size="1 1 0.1"/>
        <body pos="0.2 0.1 0.299"><freejoint/><geom type="box" size="0.2 0.3 0.2"/></body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    theirs = np.array(sorted(tuple(np.round(c.pos, 9)) for c in data.contact))
    found = tarsus.collide(
        tarsus.Shape.box(0.2, 0.3, 0.2), np.array([0.2, 0.1, 0.299]), IDENTITY, tarsus.Shape.box(1, 1, 0.1), np.zeros(3), IDENTITY
    )
    np.testing.assert_allclose(np.array(sorted(map(tuple, np.round(found["position"], 9)))), theirs, atol=1e-8)
    np.testing.assert_allclose(found["distance"], -0.001, atol=1e-12)
    np.testing.assert_allclose(found["normal"], np.tile([0, 0, 1.0], (4, 1)), atol=1e-12)


def test_sphere_on_terrain_is_as_deep_as_mujocos():
    random = np.random.default_rng(5)
    rows, columns = 6, 7
    heights = random.uniform(size=(rows, columns))
    heights[0, 0], heights[-1, -1] = 0, 1  # MuJoCo scales to this range
    text = " ".join(map(str, heights[::-1].ravel()))
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><asset><hfield name="h" nrow="{rows}" ncol="{columns}" size="3 2 1 1" elevation="{text}"/></asset>
        <worldbody><geom type="hfield" hfield="h"/><body><freejoint/><geom type="sphere" size="0.15"/></body></worldbody>
        </mujoco>"""
    )
    data = mujoco.MjData(model)
    terrain = tarsus.Shape.height_field(heights, 3.0, 2.0, 1.0)
    ball = tarsus.Shape.sphere(0.15)
    touching = 0
    for _ in range(2000):
        data.qpos[:3] = random.uniform([-2.5, -1.7, 0.2], [2.5, 1.7, 1.2])
        mujoco.mj_forward(model, data)
        position = data.qpos[:3].copy()
        ours = tarsus.collide(ball, position, IDENTITY, terrain, np.zeros(3), IDENTITY)
        above = all(n[2] > 0.1 for n in (c.frame[:3] for c in data.contact))
        if len(data.contact) == 0 or not above or min(c.dist for c in data.contact) < -0.12:
            continue  # the ball's centre is under the ground: no common definition
        touching += 1
        assert len(ours["distance"]) > 0
        assert ours["distance"].min() == pytest.approx(min(c.dist for c in data.contact), abs=1e-5)
    assert touching > 100


def test_bad_arguments_are_named():
    sphere = tarsus.Shape.sphere(1.0)
    with pytest.raises(tarsus.ValueError, match="size"):
        tarsus.Shape.sphere(-1.0)
    with pytest.raises(tarsus.ValueError, match="convex hull"):
        tarsus.Shape.convex(np.zeros((8, 3)))
    with pytest.raises(tarsus.ValueError, match="2 x 2"):
        tarsus.Shape.height_field(np.zeros((1, 4)), 1.0, 1.0, 1.0)
    with pytest.raises(tarsus.ValueError, match="margin"):
        tarsus.collide(sphere, np.zeros(3), IDENTITY, sphere, np.zeros(3), IDENTITY, -1.0)
    with pytest.raises(tarsus.ShapeError, match="rotation_b"):
        tarsus.collide(sphere, np.zeros(3), IDENTITY, sphere, np.zeros(3), np.zeros(3))
    nowhere = np.full(3, np.nan)
    assert len(tarsus.collide(sphere, nowhere, IDENTITY, sphere, np.zeros(3), IDENTITY)["distance"]) == 0


@pytest.mark.parametrize("shape, inside", [
    (tarsus.Shape.ellipsoid(0.12, 0.08, 0.06), lambda p: 0.06 * (1 - np.linalg.norm(p / [0.12, 0.08, 0.06], axis=1))),
    (tarsus.Shape.cylinder(0.08, 0.1), lambda p: np.minimum(0.08 - np.hypot(p[:, 0], p[:, 1]), 0.1 - np.abs(p[:, 2]))),
    (tarsus.Shape.capsule(0.06, 0.1), lambda p: 0.06 - np.linalg.norm(p - np.clip(p, [0, 0, -0.1], [0, 0, 0.1]), axis=1)),
])  # fmt: skip
def test_what_overlaps_a_terrain_touches_it(shape, inside):
    """Checked by a fine grid of points of the terrain that are inside the shape."""
    random, overlaps = np.random.default_rng(2), 0
    line = np.linspace(-0.165, 0.165, 67)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    for trial in range(600):
        if trial % 50 == 0:
            heights = random.uniform(0, random.choice([0.05, 0.1, 0.2, 0.6]), (5, 5))
            terrain = tarsus.Shape.height_field(heights, 0.6, 0.6, 0.3)
        place, (_, turn) = random.uniform(-0.4, 0.4, 2), random_rotation(random)

        def height(xy):
            u, (row, column) = (xy + 0.6) / 0.3, np.clip(((xy + 0.6) / 0.3).astype(int), 0, 3).T[::-1]
            s, t = u[:, 0] - column, u[:, 1] - row
            a, b, c, d = heights[row, column], heights[row, column + 1], heights[row + 1, column], heights[row + 1, column + 1]
            return np.where(s >= t, a + s * (b - a) + t * (d - b), a + t * (c - a) + s * (d - c))

        at = np.array([*place, height(place[None])[0] + random.uniform(0, 0.15)])
        points = np.column_stack([place + grid, height(place + grid)]) - at
        if inside(points @ turn).max() < 0.003:
            continue
        overlaps += 1
        found = tarsus.collide(shape, at, turn, terrain, np.zeros(3), IDENTITY)["distance"]
        assert len(found) and found.min() < 0, (trial, at, inside(points @ turn).max())
    assert overlaps > 200
