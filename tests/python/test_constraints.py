"""Equality constraints against MuJoCo (every model file that has them) and Pinocchio (welds and points on trees)."""

import mujoco
import numpy as np
import pytest

import tarsus
from oracle import DATA, disagreement, print_table, random_qpos
from test_mujoco import load_with_stand_ins

FILES = ["menagerie/agility_cassie/cassie.xml", "menagerie/robotiq_2f85/2f85.xml", "genesis/genesis/assets/xml/four_bar_linkage.xml",
         "genesis/genesis/assets/xml/four_bar_linkage_weld.xml", "unilab/src/unilab/assets/robots/stewart/scene.xml",
         "dm_control_suite/quadruped.xml", "menagerie/toddlerbot_2xc/toddlerbot_2xc.xml",
         "menagerie/toddlerbot_2xc/toddlerbot_2xc_pos.xml"]
METHODS = ["sweeps", "branches", "efpa", "constrained_aba", "sparse", "dense"]


def files():
    return [DATA / f for f in FILES]


def equality_rows(m, d):
    """(J, position, R, aref) of the equality rows, with everything else that MuJoCo adds off."""
    n = d.ne
    J = np.zeros((d.nefc, m.nv))
    if mujoco.mj_isSparse(m):
        mujoco.mju_sparse2dense(J, d.efc_J, d.efc_J_rownnz, d.efc_J_rowadr, d.efc_J_colind)
    else:
        J = d.efc_J.reshape(d.nefc, m.nv).copy()
    return J[:n], d.efc_pos[:n].copy(), d.efc_R[:n].copy(), d.efc_aref[:n].copy()


@pytest.mark.parametrize("path", files(), ids=lambda p: "/".join(p.parts[-2:]))
def test_mujoco(path):
    if not path.exists():
        pytest.skip(f"{path} is not there")
    m = load_with_stand_ins(path)
    assert m.neq > 0
    model = tarsus.Model.load(str(path), lenient=True)
    data = tarsus.Data(model)
    eq = tarsus.Equalities(model)
    m.opt.disableflags |= (mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS)
    m.opt.solver, m.opt.tolerance, m.opt.iterations = mujoco.mjtSolver.mjSOL_NEWTON, 0, 200
    d = mujoco.MjData(m)
    rng = np.random.default_rng(4)
    rows = []
    for k in range(5):
        qpos = np.array(model.qpos0) if k == 0 else random_qpos(model, rng)
        qvel = rng.normal(size=model.nv)
        tau = rng.normal(size=model.nv)
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = qpos, qvel, tau
        mujoco.mj_forward(m, d)
        assert d.ne == eq.nrow
        J, position, R, aref = equality_rows(m, d)
        ours = eq.rows(data, qpos, qvel)
        # A quaternion and its negative are one rotation: rows of a weld may have both signs turned.
        sign = np.ones(eq.nrow)
        for r in range(eq.nrow):
            if np.abs(J[r] + ours["J"][r]).max() < np.abs(J[r] - ours["J"][r]).max() - 1e-6:
                sign[r] = -1
        assert (sign == 1).all() or k > 0
        figures = {"J": disagreement(ours["J"] * sign[:, None], J), "phi": disagreement(ours["phi"] * sign, position)}
        # MuJoCo's soft constraint: J qacc - aref = -R f, which is Sigma = R, y2 = aref.
        y1 = d.qfrc_smooth.copy()
        for method in METHODS:
            s = tarsus.solve_kkt(model, data, qpos, y1, aref * sign, sigma=R.copy(), method=method)
            figures[method] = disagreement(s["x1"], d.qacc, floor=max(1, np.abs(d.qacc_smooth).max()))
        rows.append((k, figures))
    print_table("/".join(path.parts[-2:]) + f", {model.nv} DoFs, {eq.nrow} rows", rows, [], ["J", "phi", *METHODS])
    for k, figures in rows:
        for name, figure in figures.items():
            assert figure < 1e-8, f"{name}: {figure} at state {k}"


URDF = """<robot name="arm">
  <link name="base"/>
  {links}
</robot>"""


def urdf_tree(count, rng):
    """A tree of hinges with random inertias; both engines read the same text."""
    text = []
    for i in range(count):
        parent = "base" if i == 0 else f"l{rng.integers(max(0, i - 2), i)}"
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        d = rng.uniform(0.01, 0.05, 3)
        text.append(f"""<link name="l{i}"><inertial><origin xyz="{' '.join(map(repr, rng.uniform(-.1, .1, 3)))}"/><mass value="{rng.uniform(.5, 2)!r}"/>
<inertia ixx="{d[1] + d[2]!r}" iyy="{d[0] + d[2]!r}" izz="{d[0] + d[1]!r}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j{i}" type="revolute"><parent link="{parent}"/><child link="l{i}"/><origin xyz="{' '.join(map(repr, rng.uniform(-.3, .3, 3)))}"
rpy="{' '.join(map(repr, rng.uniform(-1, 1, 3)))}"/><axis xyz="{' '.join(map(repr, axis))}"/><limit lower="-3" upper="3" effort="10" velocity="10"/></joint>""")
    return URDF.format(links="\n".join(text).replace("np.float64(", "").replace(")", ""))


@pytest.mark.parametrize("seed", range(5))
def test_pinocchio(seed, tmp_path):
    """constraintDynamics of welds and points: to the world and between two links, exact accelerations."""
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(seed)
    file = tmp_path / "tree.urdf"
    file.write_text(urdf_tree(16, rng))
    theirs = pin.buildModelFromUrdf(str(file))
    ours = tarsus.Model.load(str(file))
    data = tarsus.Data(ours)
    order = [theirs.joints[theirs.getJointId(j.name)].idx_v for j in ours.joints]
    q, v, tau = rng.uniform(-1, 1, (3, ours.nv))
    pq, pv, ptau = np.zeros((3, theirs.nv))
    pq[order], pv[order], ptau[order] = q, v, tau
    reference = theirs.createData()
    pin.forwardKinematics(theirs, reference, pq)
    pin.updateFramePlacements(theirs, reference)
    # The last link welded to the world where it is, and one link's point to another's.
    eq = tarsus.Equalities(ours, own=False)
    id_a, id_b, id_c = (theirs.getJointId(f"j{k}") for k in (15, 12, 7))
    placement = reference.oMi[id_a]
    eq.add_weld("weld", "l15", 0, list(placement.rotation.T.ravel()), list(-placement.rotation.T @ placement.translation))
    point = np.array([0.1, -0.2, 0.05])
    other = reference.oMi[id_c].actInv(reference.oMi[id_b].act(point))
    eq.add_connect("point", "l12", list(point), "l7", list(other))
    contacts, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    frame = pin.SE3(np.eye(3), point)
    contacts.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, theirs, id_a, pin.SE3.Identity(), 0, placement, pin.LOCAL))
    contacts.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, theirs, id_b, frame, id_c, pin.SE3(np.eye(3), other), pin.LOCAL))
    for c in contacts:
        datas.append(c.createData())
    # Away from J v = 0 the second derivative of a constraint depends on how it is written; on it, it does not.
    J = eq.rows(data, q)["J"]
    v -= np.linalg.pinv(J) @ (J @ v)
    pv[order] = v
    mine = tarsus.constrained_dynamics(ours, data, q, v, tau, equalities=eq)
    assert mine["status"] == "solved"
    pd = theirs.createData()
    pin.initConstraintDynamics(theirs, pd, contacts, datas)
    expected = pin.constraintDynamics(theirs, pd, pq, pv, ptau, contacts, datas, pin.ProximalSettings(1e-14, 0.0, 1))[order]
    figures = {"constraintDynamics": disagreement(mine["qacc"], expected)}
    # lcaba is proximal: too large a penalty leaves an error of its own, too small a one rounding. Its best is compared.
    figures["lcaba"] = np.inf
    for penalty in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8):
        pd = theirs.createData()
        pin.computeJointMinimalOrdering(theirs, pd, contacts)
        expected = pin.lcaba(theirs, pd, pq, pv, ptau, contacts, datas, pin.ProximalSettings(1e-15, penalty, 1000))[order]
        figures["lcaba"] = min(figures["lcaba"], disagreement(mine["qacc"], expected))
    print(figures)
    assert all(figure < 1e-8 for figure in figures.values()), figures
