"""Every URDF file of ../shared/data that Pinocchio and tarsus load, with a fixed and with a floating base.

Conventions differ. Pinocchio's continuous joint has (cos, sin) for its angle; its free-flyer has the quaternion's w last and
takes its linear velocity in the body's axes, where tarsus (as MuJoCo) takes it in the world's. With v_theirs = G v_ours:
M_ours = Gᵀ M G, C_ours = Gᵀ (C + M Ġ v), qacc_ours = Gᵀ (qacc - Ġ v), and G is orthogonal.
"""

import contextlib
import os

import numpy as np
import pinocchio as pin
import pytest
import tarsus
from oracle import (
    DATA,
    TOLERANCE,
    acceleration_tolerance,
    disagreement,
    matrix_disagreement,
    print_table,
    random_qpos,
    skew,
)

#: The least number of files that must be compared with a fixed base, and of those also with a floating one.
FILES, FLOATING = 40, 40

COLUMNS = ["mass", "com", "inertia", "pose", "matrix", "bias", "jacobian", "qacc", "allowed"]

#: A mass matrix with a larger condition number (scaled by its diagonal) counts as singular: its accelerations are not compared.
SINGULAR = 1e13


@contextlib.contextmanager
def silence():
    """Silences Pinocchio's parser, which writes to stderr from C++."""
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def load_pinocchio(path, floating):
    with silence():
        if floating:
            return pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
        return pin.buildModelFromUrdf(str(path))


class Translation:
    """Translates between the coordinates of a tarsus model and Pinocchio's for the same file."""

    def __init__(self, ours, theirs):
        self.ours, self.theirs = ours, theirs
        by_name = {joint.name: joint for joint in ours.joints}
        free = [joint for joint in ours.joints if joint.type == "free"]
        #: Pinocchio's joint index -> our joint.
        self.joints = {
            k: free[0] if theirs.joints[k].nv == 6 else by_name[theirs.names[k]] for k in range(1, theirs.njoints)
        }
        assert sorted(j.id for j in self.joints.values()) == list(range(ours.njoint)), "other joints"

    def qpos(self, q):
        out = np.zeros(self.theirs.nq)
        for k, joint in self.joints.items():
            at, n, own = self.theirs.joints[k].idx_q, self.theirs.joints[k].nq, q[joint.qpos]
            if joint.type == "free":
                own = np.concatenate([own[:3], own[4:], own[3:4]])
            elif n == 2:
                own = np.array([np.cos(own[0]), np.sin(own[0])])
            out[at : at + n] = own
        return out

    def velocities(self, q, v):
        """G [nv theirs][nv ours] and Ġ v."""
        G, rate = np.zeros((self.theirs.nv, self.ours.nv)), np.zeros(self.theirs.nv)
        for k, joint in self.joints.items():
            at, n = self.theirs.joints[k].idx_v, self.theirs.joints[k].nv
            G[at : at + n, joint.qvel] = np.eye(n)
            if joint.type == "free":
                w, x, y, z = q[joint.qpos][3:]
                R = pin.Quaternion(w, x, y, z).toRotationMatrix()
                G[at : at + 3, joint.qvel.start : joint.qvel.start + 3] = R.T
                rate[at : at + 3] = -np.cross(v[joint.qvel][3:], R.T @ v[joint.qvel][:3])
        return G, rate


def sum_of_bodies(ours, rotations, positions, link):
    """Mass, centre of mass and inertia about it, in world axes, of all bodies that ride on a link."""
    mass, moment, about_origin = 0.0, np.zeros(3), np.zeros((3, 3))
    for i in np.flatnonzero(ours.body_link == link):
        m, com = ours.body_mass[i], positions[i] + rotations[i] @ ours.body_com[i]
        mass += m
        moment += m * com
        about_origin += rotations[i] @ ours.body_inertia[i] @ rotations[i].T - m * skew(com) @ skew(com)
    com = moment / mass if mass > 0 else moment
    return mass, com, about_origin + mass * skew(com) @ skew(com)


def compare_inertias(translation, data, rotations, positions):
    ours, theirs = translation.ours, translation.theirs
    figures = {"mass": 0.0, "com": 0.0, "inertia": 0.0}
    links = {0: -1, **{k: joint.id for k, joint in translation.joints.items()}}
    for k, link in links.items():
        mass, com, inertia = sum_of_bodies(ours, rotations, positions, link)
        expected = data.oMi[k].act(theirs.inertias[k])
        figures["mass"] = max(figures["mass"], disagreement(mass, expected.mass, floor=1e-300))
        if expected.mass > 0:
            figures["com"] = max(figures["com"], disagreement(com, expected.lever))
            # Sums and differences of m c² have rounding errors of their own size, also in the sum above.
            floor = 1e-4 * expected.mass * (1 + com @ com)
            figures["inertia"] = max(figures["inertia"], disagreement(inertia, expected.inertia, floor))
    return figures


def compare_frames(translation, ours_data, data, rotations, positions, G, rng):
    """Poses of all links, and Jacobians of some of them at their origins."""
    ours, theirs = translation.ours, translation.theirs
    pose = jacobian = 0.0
    frames = [(i, ours.body_id(f.name)) for i, f in enumerate(theirs.frames) if f.type == pin.FrameType.BODY and f.name != "universe"]
    for i, body in frames:
        pose = max(pose, disagreement(rotations[body], data.oMf[i].rotation), disagreement(positions[body], data.oMf[i].translation))
    if ours.nv == 0:
        return {"pose": pose}  # Pinocchio 4.1 crashes on an empty Jacobian
    for i, body in (frames[k] for k in rng.integers(0, len(frames), size=4)):
        expected = pin.getFrameJacobian(theirs, data, i, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        expected = expected.reshape(6, theirs.nv) @ G
        expected = np.vstack([expected[3:], expected[:3]])
        jacobian = max(jacobian, disagreement(tarsus.jacobian(ours, ours_data, body, data.oMf[i].translation.copy()), expected))
    return {"pose": pose, "jacobian": jacobian}


def compare_state(translation, rng):
    ours, theirs = translation.ours, translation.theirs
    ours_data, data = tarsus.Data(ours), theirs.createData()
    q, v, tau = random_qpos(ours, rng), rng.normal(size=ours.nv), rng.normal(size=ours.nv)
    q_theirs = translation.qpos(q)
    G, rate = translation.velocities(q, v)
    pin.computeJointJacobians(theirs, data, q_theirs)
    pin.framesForwardKinematics(theirs, data, q_theirs)
    tarsus.kinematics(ours, ours_data, q, v)
    rotations, positions = tarsus.body_poses(ours, ours_data)
    figures = compare_inertias(translation, data, rotations, positions)
    figures.update(compare_frames(translation, ours_data, data, rotations, positions, G, rng))

    upper = np.triu(pin.crba(theirs, theirs.createData(), q_theirs))
    M = upper + np.triu(upper, 1).T
    expected = G.T @ M @ G
    figures["matrix"] = matrix_disagreement(tarsus.crba(ours, ours_data, q), expected)
    bias = G.T @ (pin.nonLinearEffects(theirs, theirs.createData(), q_theirs, G @ v) + M @ rate)
    floor = min(1.0, np.diag(expected).max(initial=0))
    figures["bias"] = disagreement(tarsus.bias_force(ours, ours_data, q, v), bias, floor)
    allowed = acceleration_tolerance(expected)
    if allowed < SINGULAR * np.finfo(float).eps * max(ours.nv, 1):
        qacc = G.T @ (pin.aba(theirs, theirs.createData(), q_theirs, G @ v, G @ tau) - rate)
        figures["qacc"], figures["allowed"] = disagreement(tarsus.aba(ours, ours_data, q, v, tau), qacc), allowed
    return figures


def compare(ours, theirs, seed):
    assert ours.nv == theirs.nv, f"nv {ours.nv}, Pinocchio {theirs.nv}"
    assert (ours.gravity == theirs.gravity.linear).all()
    translation = Translation(ours, theirs)
    rng, figures = np.random.default_rng(seed), {}
    for _ in range(3):
        for name, figure in compare_state(translation, rng).items():
            figures[name] = max(figures.get(name, 0), figure)
    return figures


def faults(figures):
    return [f"{name} {x:.1e}" for name, x in figures.items() if name != "allowed" and not x <= (figures["allowed"] if name == "qacc" else TOLERANCE)]


@pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data beside the repository")
@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
def test_every_urdf_agrees_with_pinocchio(floating, capfd):
    rows, left_out, failures = [], [], []
    for seed, path in enumerate(sorted(DATA.rglob("*.urdf"))):
        name = path.relative_to(DATA)
        try:
            theirs = load_pinocchio(path, floating)
        except ValueError as error:
            left_out.append((name, "Pinocchio: " + " ".join(str(error).replace(f"{DATA}/", "").split())))
            continue
        try:
            ours = tarsus.Model.load(path, lenient=True, floating_base=floating)
            if floating and not any(joint.type == "free" for joint in ours.joints):
                left_out.append((name, "its root link is the world, which does not float"))
                continue
            figures = compare(ours, theirs, seed)
        except (tarsus.Error, AssertionError) as error:
            failures.append((name, str(error)))
            continue
        rows.append((name, figures))
        if "qacc" not in figures:
            left_out.append((name, "its accelerations only: the mass matrix is singular"))
        failures += [(name, fault) for fault in faults(figures)]
    with capfd.disabled():
        print_table(f"Pinocchio {pin.__version__}, {'floating' if floating else 'fixed'} base", rows, left_out, COLUMNS)
        worst = ", ".join(f"{c} {max(figures.get(c, 0) for _, figures in rows):.1e}" for c in COLUMNS)
        print(f"{len(rows)} files compared; worst: {worst}")
    assert not failures, "\n".join(f"{name}: {fault}" for name, fault in failures)
    assert len(rows) >= (FLOATING if floating else FILES)
