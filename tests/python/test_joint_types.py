"""Planar, universal and screw joints of URDF against Pinocchio's own joint models and MuJoCo's bodies with several joints.

Pinocchio's planar joint has (x, y, cos, sin) and takes its linear velocity in the body's axes; ours has (x, y, angle) and the
rates of these. With v_theirs = G v_ours: M_ours = Gᵀ M G, C_ours = Gᵀ (C + M Ġ v).
"""

import mujoco
import numpy as np
import pinocchio as pin
import pytest
import tarsus
from oracle import TOLERANCE, disagreement, matrix_disagreement

#: Chains of joints, from the root on.
TREES = [
    ["planar"],
    ["universal"],
    ["planar", "universal", "continuous"],
    ["continuous", "universal", "planar", "universal"],
    ["spherical", "planar", "prismatic", "universal"],
]


def link(name, rng):
    com, mass = rng.uniform(-0.2, 0.2, 3), rng.uniform(0.5, 2)
    A = rng.uniform(-0.1, 0.1, (3, 3))
    inertia = A @ A.T + 0.05 * np.eye(3)
    xyz = " ".join(f"{x:.17g}" for x in com)
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    values = inertia[np.triu_indices(3)]
    text = " ".join(f"{n}='{v:.17g}'" for n, v in zip(names, values, strict=True))
    return f"<link name='{name}'><inertial><origin xyz='{xyz}'/><mass value='{mass:.17g}'/><inertia {text}/></inertial></link>", (
        mass,
        com,
        inertia,
    )


def build(types, rng):
    """URDF text, Pinocchio's model and MJCF text of the same chain."""
    text, theirs = "<robot name='chain'><link name='world'/>", pin.Model()
    theirs.gravity.linear = np.array([0, 0, -9.81])
    mjcf, parent, joint = "", "world", 0
    models = {
        "planar": pin.JointModelPlanar,
        "universal": lambda: pin.JointModelUniversal(np.array([1.0, 0, 0]), np.array([0, 1.0, 0])),
        "continuous": pin.JointModelRZ,
        "prismatic": pin.JointModelPZ,
        "spherical": pin.JointModelSpherical,
    }
    inner = {
        "planar": "<joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 1 0'/><joint axis='0 0 1'/>",
        "universal": "<joint axis='1 0 0'/><joint axis='0 1 0'/>",
        "continuous": "<joint axis='0 0 1'/>",
        "prismatic": "<joint type='slide' axis='0 0 1'/>",
        "spherical": "<joint type='ball'/>",
    }
    for i, kind in enumerate(types):
        body, (mass, com, inertia) = link(f"b{i}", rng)
        xyz, rpy = rng.uniform(-0.3, 0.3, 3), rng.uniform(-1, 1, 3)
        numbers = [" ".join(f"{x:.17g}" for x in v) for v in (xyz, rpy)]
        tag = "drake:joint" if kind == "universal" else "joint"
        axis = "" if kind in ("universal", "spherical") else "<axis xyz='0 0 1'/>"
        text += (
            f"{body}<{tag} name='j{i}' type='{kind}'><parent link='{parent}'/><child link='b{i}'/>"
            f"<origin xyz='{numbers[0]}' rpy='{numbers[1]}'/>{axis}</{tag}>"
        )
        rotation = pin.rpy.rpyToMatrix(*rpy)
        joint = theirs.addJoint(joint, models[kind](), pin.SE3(rotation, xyz), f"j{i}")
        theirs.appendBodyToJoint(joint, pin.Inertia(mass, com, inertia), pin.SE3.Identity())
        q = pin.Quaternion(rotation).coeffs()
        full = " ".join(f"{x:.17g}" for x in (*np.diag(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2]))
        mjcf += (
            f"<body pos='{numbers[0]}' quat='{q[3]:.17g} {q[0]:.17g} {q[1]:.17g} {q[2]:.17g}'>"
            f"<inertial pos='{' '.join(f'{x:.17g}' for x in com)}' mass='{mass:.17g}' fullinertia='{full}'/>{inner[kind]}"
        )
        parent = f"b{i}"
    mjcf = f"<mujoco><worldbody>{mjcf}{'</body>' * len(types)}</worldbody></mujoco>"
    return text + "</robot>", theirs, mjcf


def translate(types, q, v):
    """Pinocchio's q, G and Ġ v."""
    theirs, blocks, rate, at, dof = [], [], [], 0, 0
    for kind in types:
        if kind == "planar":
            x, y, angle = q[at : at + 3]
            c, s, w = np.cos(angle), np.sin(angle), v[dof + 2]
            theirs += [x, y, c, s]
            turn = np.array([[c, s], [-s, c]])
            blocks.append(np.block([[turn, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]]))
            rate += [*(w * np.array([[-s, c], [-c, -s]]) @ v[dof : dof + 2]), 0]
            at, dof = at + 3, dof + 3
            continue
        n = {"universal": 2, "spherical": 3}.get(kind, 1)
        if kind == "spherical":
            theirs += [*q[at + 1 : at + 4], q[at]]
        elif kind == "continuous":
            theirs += [q[at]]
        else:
            theirs += list(q[at : at + n])
        blocks.append(np.eye(n))
        rate += [0] * n
        at, dof = at + (4 if kind == "spherical" else n), dof + n
    G = np.zeros((dof, dof))
    at = 0
    for b in blocks:
        G[at : at + len(b), at : at + len(b)] = b
        at += len(b)
    return np.array(theirs), G, np.array(rate)


def random_state(types, model, rng):
    q, v = rng.uniform(-2, 2, model.nq), rng.uniform(-3, 3, model.nv)
    at = 0
    for kind in types:
        if kind == "spherical":
            q[at : at + 4] /= np.linalg.norm(q[at : at + 4])
        at += {"planar": 3, "universal": 2, "spherical": 4}.get(kind, 1)
    return q, v


@pytest.mark.parametrize("types", TREES, ids="-".join)
def test_chains_equal_pinocchio_and_mujoco(types):
    rng = np.random.default_rng(3)
    text, theirs, mjcf = build(types, rng)
    model = tarsus.Model.from_xml_string(text)
    data, other = tarsus.Data(model), theirs.createData()
    reference = mujoco.MjModel.from_xml_string(mjcf)
    state = mujoco.MjData(reference)
    assert model.nv == theirs.nv == reference.nv
    for _ in range(20):
        q, v = random_state(types, model, rng)
        tau = rng.uniform(-5, 5, model.nv)
        M, C = tarsus.crba(model, data, q), tarsus.bias_force(model, data, q, v)
        qacc = tarsus.aba(model, data, q, v, tau)
        pin_q, G, rate = translate(types, q, v)
        expected = pin.crba(theirs, other, pin_q)
        expected = np.triu(expected) + np.triu(expected, 1).T
        nle = pin.nonLinearEffects(theirs, other, pin_q, G @ v)
        assert matrix_disagreement(M, G.T @ expected @ G) < TOLERANCE
        assert disagreement(C, G.T @ (nle + expected @ rate)) < TOLERANCE
        theirs_qacc = pin.aba(theirs, other, pin_q, G @ v, np.linalg.solve(G.T, tau))
        assert disagreement(qacc, np.linalg.solve(G, theirs_qacc - rate)) < TOLERANCE
        state.qpos[:], state.qvel[:], state.qfrc_applied[:] = q, v, tau
        mujoco.mj_forward(reference, state)
        dense = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(reference, state, dense)
        assert matrix_disagreement(M, dense) < TOLERANCE
        assert disagreement(C, state.qfrc_bias) < TOLERANCE
        assert disagreement(qacc, state.qacc) < TOLERANCE
        point = state.xpos[-1] + [0.1, 0.2, -0.3]
        linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        mujoco.mj_jac(reference, state, linear, angular, point, reference.nbody - 1)
        tarsus.kinematics(model, data, q)
        mine = tarsus.jacobian(model, data, f"b{len(types) - 1}", point)
        assert disagreement(mine, np.vstack([angular, linear])) < TOLERANCE


def test_names_and_types_are_those_of_the_parts():
    text, _, _ = build(["planar", "universal"], np.random.default_rng(0))
    model = tarsus.Model.from_xml_string(text)
    names = ["j0_x", "j0_y", "j0_angle", "j1_first", "j1_second"]
    assert [j.name for j in model.joints] == names
    assert [j.type for j in model.joints] == ["slide", "slide", "hinge", "hinge", "hinge"]
    with pytest.raises(ValueError, match="j0_angle"):
        model.joint("j0")
