"""Equality constraints against MuJoCo (every model file that has them) and Pinocchio (welds and points on trees)."""

import mujoco
import numpy as np
import pytest

import tarsus
from oracle import DATA, ROOT, disagreement, print_table, random_qpos
from test_mujoco import spec_with_stand_ins

FILES = ["menagerie/agility_cassie/cassie.xml", "menagerie/robotiq_2f85/2f85.xml", "genesis/genesis/assets/xml/four_bar_linkage.xml",
         "genesis/genesis/assets/xml/four_bar_linkage_weld.xml", "unilab/src/unilab/assets/robots/stewart/scene.xml",
         "dm_control_suite/quadruped.xml", "menagerie/toddlerbot_2xc/toddlerbot_2xc.xml",
         "menagerie/toddlerbot_2xc/toddlerbot_2xc_pos.xml"]
METHODS = ["sweeps", "branches", "efpa", "constrained_aba", "sparse", "dense"]


def files():
    return [DATA / f for f in FILES]


def equality_rows(m, d):
    """(J, position, R, aref) of the equality rows, with all other constraints of MuJoCo off."""
    n = d.ne
    J = np.zeros((d.nefc, m.nv))
    if mujoco.mj_isSparse(m):
        mujoco.mju_sparse2dense(J, d.efc_J, d.efc_J_rownnz, d.efc_J_rowadr, d.efc_J_colind)
    else:
        J = d.efc_J.reshape(d.nefc, m.nv).copy()
    return J[:n], d.efc_pos[:n].copy(), d.efc_R[:n].copy(), d.efc_aref[:n].copy()


def in_the_turning_frame(m, d, J, position):
    """MuJoCo's J for the rates of points of two moving bodies in a frame that turns with their mean angular velocity (decision
    414)."""
    J, spin_a, spin_b = J.copy(), np.zeros((3, m.nv)), np.zeros((3, m.nv))
    for i in np.unique(d.efc_id[:d.ne]):
        if m.eq_type[i] not in (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)):
            continue
        ends = m.eq_obj1id[i], m.eq_obj2id[i]
        bodies = [m.site_bodyid[k] for k in ends] if m.eq_objtype[i] == int(mujoco.mjtObj.mjOBJ_SITE) else ends
        if all(m.body_weldid[b] for b in bodies):
            for spin, b in zip((spin_a, spin_b), bodies):
                mujoco.mj_jacBody(m, d, None, spin, b)
            rows = np.flatnonzero(d.efc_id[:d.ne] == i)[:3]
            J[rows] -= np.cross((spin_a + spin_b) / 2, position[rows], axis=0)
    return J


@pytest.mark.parametrize("path", files(), ids=lambda p: "/".join(p.parts[-2:]))
def test_mujoco(path):
    if not path.exists():
        pytest.skip(f"{path} is not there")
    m = spec_with_stand_ins(path).compile()
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
        M, solved = np.zeros((m.nv, m.nv)), []
        mujoco.mj_fullM(m, d, M)
        for J in (J, in_the_turning_frame(m, d, J, position)):
            scaled = J / np.sqrt(R)[:, None]
            solved.append(np.linalg.solve(M + scaled.T @ scaled, d.qfrc_smooth + J.T @ (aref / R)))
        assert disagreement(solved[0], d.qacc, floor=max(1, np.abs(d.qacc_smooth).max())) < 1e-8
        # A quaternion and its negative are the same rotation, so the rows of a weld may have the opposite sign.
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
            figures[method] = disagreement(s["x1"], solved[1], floor=max(1, np.abs(d.qacc_smooth).max()))
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
    """Pinocchio's constraintDynamics of welds and points, to the world and between two links: exact accelerations."""
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
    # The last link is welded to the world where it is, and a point of one link is connected to that of another.
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
    # Away from J v = 0 the second derivative of a constraint depends on its formulation; on J v = 0 it does not.
    J = eq.rows(data, q)["J"]
    v -= np.linalg.pinv(J) @ (J @ v)
    pv[order] = v
    mine = tarsus.constrained_dynamics(ours, data, q, v, tau, equalities=eq)
    assert mine["status"] == "solved"
    pd = theirs.createData()
    pin.initConstraintDynamics(theirs, pd, contacts, datas)
    expected = pin.constraintDynamics(theirs, pd, pq, pv, ptau, contacts, datas, pin.ProximalSettings(1e-14, 0.0, 1))[order]
    figures = {"constraintDynamics": disagreement(mine["qacc"], expected)}
    # lcaba is proximal: a large penalty has a truncation error, a small one a rounding error. Its best result is compared.
    figures["lcaba"] = np.inf
    for penalty in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8):
        pd = theirs.createData()
        pin.computeJointMinimalOrdering(theirs, pd, contacts)
        expected = pin.lcaba(theirs, pd, pq, pv, ptau, contacts, datas, pin.ProximalSettings(1e-15, penalty, 1000))[order]
        figures["lcaba"] = min(figures["lcaba"], disagreement(mine["qacc"], expected))
    print(figures)
    assert all(figure < 1e-8 for figure in figures.values()), figures


#: The files that Pinocchio can compare: loops of bodies. It has no constraints for joint and tendon equalities; these are left
#: out on both sides here, and test_mujoco has them.
LOOP_FILES = [DATA / f for f in FILES if "quadruped" not in f] + [
    ROOT / "models" / "loops" / f"{name}.xml" for name in ("four_bar", "slider_crank", "stewart", "holding_hands")]


def pinocchio_model(pin, ours, data):
    """The links of our model as Pinocchio's joints, one by one, with the frame (SE3, in its joint's) of every body. A link's
    frame at rest is its body's in the initial pose, at the joint's anchor. None of Pinocchio's own readers is used."""
    tarsus.kinematics(ours, data, np.array(ours.qpos0))
    rest = [pin.SE3(np.array(R), np.array(p)) for R, p in zip(*tarsus.body_poses(ours, data))]
    theirs = pin.Model()
    theirs.gravity.linear = np.array(ours.gravity)
    link_frame = []  # at rest, in the world
    for joint in ours.joints:
        frame = rest[joint.body.id] * pin.SE3(np.eye(3), np.array(joint.position))
        parent = link_frame[joint.parent] if joint.parent >= 0 else pin.SE3.Identity()
        kind = {"free": pin.JointModelFreeFlyer, "ball": pin.JointModelSpherical}.get(joint.type)
        if joint.type == "free":
            placement, frame = pin.SE3.Identity(), rest[joint.body.id]
        else:
            placement = parent.inverse() * frame
        if kind is None:
            kind = (lambda axis=np.array(joint.axis): pin.JointModelRevoluteUnaligned(axis)) if joint.type == "hinge" else (
                lambda axis=np.array(joint.axis): pin.JointModelPrismaticUnaligned(axis))
        theirs.addJoint(joint.parent + 1, kind(), placement, f"joint {joint.id}")
        link_frame.append(frame)
    places = []
    for body in ours.bodies:
        place = rest[body.id] if body.link < 0 else link_frame[body.link].inverse() * rest[body.id]
        places.append(place)
        if body.link >= 0 and body.mass > 0:
            theirs.appendBodyToJoint(body.link + 1, pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia)), place)
    theirs.armature = np.array(ours.armature)
    return theirs, places


def to_pinocchio(pin, ours, qpos, qvel):
    """Angles from rest; quaternions (x, y, z, w); a free joint's linear velocity in its own axes."""
    q, v = np.array(qpos), np.array(qvel)
    for joint in ours.joints:
        a, d = joint.qpos.start, joint.qvel.start
        if joint.nq == 1:
            q[a] -= ours.qpos0[a]
            continue
        w = a + joint.nq - 4
        q[w : w + 4] = qpos[w + 1], qpos[w + 2], qpos[w + 3], qpos[w]
        if joint.type == "free":
            v[d : d + 3] = pin.Quaternion(q[w : w + 4]).matrix().T @ qvel[d : d + 3]
    return q, v


def from_pinocchio(pin, ours, q, v, a):
    """Accelerations in our convention: those of a free joint in the world's axes, with the contribution of the turning axes."""
    out = np.array(a)
    for joint in ours.joints:
        if joint.type == "free":
            d, w = joint.qvel.start, joint.qpos.start + 3
            R = pin.Quaternion(q[w : w + 4]).matrix()
            out[d : d + 3] = R @ (a[d : d + 3] + np.cross(v[d + 3 : d + 6], v[d : d + 3]))
    return out


def body_loops(pin, m, ours, theirs, places):
    """Connects and welds of MuJoCo's compiled model in both engines, and the number of equalities of other kinds."""
    eq, contacts, others = tarsus.Equalities(ours, own=False), pin.StdVec_RigidConstraintModel(), 0
    for i in range(m.neq):
        kind, numbers = int(m.eq_type[i]), m.eq_data[i]
        if kind not in (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)):
            others += 1
            continue
        a, b = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        weld = kind == int(mujoco.mjtEq.mjEQ_WELD)
        if int(m.eq_objtype[i]) == int(mujoco.mjtObj.mjOBJ_SITE):
            site_a, site_b = (pin.SE3(pin.Quaternion(*m.site_quat[s]).matrix(), m.site_pos[s].copy()) for s in (a, b))
            a, b = int(m.site_bodyid[a]), int(m.site_bodyid[b])
        elif not weld:
            site_a, site_b = pin.SE3(np.eye(3), numbers[0:3].copy()), pin.SE3(np.eye(3), numbers[3:6].copy())
        else:
            site_b = pin.SE3(np.eye(3), numbers[0:3].copy())
            site_a = pin.SE3(pin.Quaternion(*numbers[6:10]).matrix(), numbers[3:6].copy())
        if weld:
            relative = site_a * site_b.inverse()
            eq.add_weld(f"weld {i}", a, b, list(relative.rotation.ravel()), list(relative.translation))
        else:
            eq.add_connect(f"connect {i}", a, list(site_a.translation), b, list(site_b.translation))
        ends = [(ours.bodies[a].link + 1, places[a] * site_a), (ours.bodies[b].link + 1, places[b] * site_b)]
        if ends[0][0] == 0:  # lcaba cannot have the world as the first
            ends.reverse()
        contacts.append(pin.RigidConstraintModel(
            pin.ContactType.CONTACT_6D if weld else pin.ContactType.CONTACT_3D, theirs, *ends[0], *ends[1], pin.LOCAL))
    return eq, contacts, others


def contact_datas(pin, contacts):
    datas = pin.StdVec_RigidConstraintData()
    for c in contacts:
        datas.append(c.createData())
    return datas


@pytest.mark.parametrize("path", LOOP_FILES, ids=lambda p: "/".join(p.parts[-2:]))
def test_pinocchio_on_files(path):
    """constraintDynamics and lcaba on the loops of real files, at poses and velocities that satisfy them."""
    pin = pytest.importorskip("pinocchio")
    if not path.exists():
        pytest.skip(f"{path} is not there")
    m = spec_with_stand_ins(path).compile()
    ours = tarsus.Model.load(str(path), lenient=True)
    data = tarsus.Data(ours)
    theirs, places = pinocchio_model(pin, ours, data)
    eq, contacts, others = body_loops(pin, m, ours, theirs, places)
    if eq.nrow == 0:
        pytest.skip(f"none of its {others} equalities is between bodies: compared with MuJoCo alone")
    rng = np.random.default_rng(3)
    figures = {}
    for k in range(3):
        qpos, qvel, tau = np.array(ours.qpos0), rng.normal(size=ours.nv), rng.normal(size=ours.nv)
        mujoco.mj_integratePos(m, qpos, 0.05 * k * rng.normal(size=ours.nv), 1)
        for _ in range(50):  # closed by Newton's method
            rows = eq.rows(data, qpos)
            mujoco.mj_integratePos(m, qpos, -np.linalg.pinv(rows["J"], rcond=1e-7) @ rows["phi"], 1)
        rows = eq.rows(data, qpos)
        # The anchors of a file are rounded to 2 um, which matters where the loop cannot move. Accelerations of a connect do not
        # depend on it.
        assert np.abs(rows["phi"]).max() < 1e-5
        qvel -= np.linalg.pinv(rows["J"], rcond=1e-7) @ (rows["J"] @ qvel)
        mine = tarsus.constrained_dynamics(ours, data, qpos, qvel, tau, equalities=eq)
        assert mine["status"] in ("solved", "redundant")
        q, v = to_pinocchio(pin, ours, qpos, qvel)
        generalized = tau.copy()
        for joint in ours.joints:
            if joint.type == "free":
                d, w = joint.qvel.start, joint.qpos.start + 3
                generalized[d : d + 3] = pin.Quaternion(q[w : w + 4]).matrix().T @ tau[d : d + 3]
        reference = theirs.createData()
        free = from_pinocchio(pin, ours, q, v, pin.aba(theirs, reference, q, v, generalized))
        found = {"aba": disagreement(np.asarray(tarsus.aba(ours, data, qpos, qvel, tau)), free)}
        scale = max(1, np.abs(free).max())
        if not any("weld" in name for name in eq.row_names):
            # With equally softened rows, Sigma = 1e-4 (for Pinocchio: one iteration), the solution is unique whatever the rank.
            # The rows of a weld are written about different points.
            C = np.asarray(tarsus.rnea(ours, data, qpos, qvel, np.zeros(ours.nv)))
            y2, sigma = -eq.rows(data, qpos, qvel)["bias"], np.full(eq.nrow, 1e-4)
            soft = tarsus.solve_kkt(ours, data, qpos, tau - C, y2, sigma=sigma, equalities=eq)
            other, datas = theirs.createData(), contact_datas(pin, contacts)
            pin.initConstraintDynamics(theirs, other, contacts, datas)
            a = pin.constraintDynamics(theirs, other, q, v, generalized, contacts, datas, pin.ProximalSettings(1e-14, 1e-4, 1))
            found["softened"] = disagreement(soft["x1"], from_pinocchio(pin, ours, q, v, a), scale)
        # With the rounded digits of some files (toddlerbot) some rows have a mobility of a millionth of the others'. Their
        # numerical rank is then ambiguous, and exact accelerations cannot be compared.
        singular = np.linalg.svd(rows["J"])[1]
        if ((singular > 1e-9 * singular[0]) & (singular < 1e-3 * singular[0])).any():
            figures["rank unclear"] = 0
            figures.update({name: max(figures.get(name, 0), figure) for name, figure in found.items()})
            continue
        # Planar loops have redundant rows, for which both solvers are proximal: a large penalty has a truncation error, a small
        # one a rounding error. The best result is compared.
        found["constraintDynamics"] = found["lcaba"] = np.inf
        for penalty in (1e-4, 1e-6, 1e-8, 1e-10):
            other, datas = theirs.createData(), contact_datas(pin, contacts)
            pin.initConstraintDynamics(theirs, other, contacts, datas)
            a = pin.constraintDynamics(theirs, other, q, v, generalized, contacts, datas, pin.ProximalSettings(1e-14, penalty, 1000))
            found["constraintDynamics"] = min(found["constraintDynamics"], disagreement(mine["qacc"], from_pinocchio(pin, ours, q, v, a), scale))
        for penalty in (1e-2, 1e-4, 1e-6, 1e-8, 1e-10):
            other, datas = theirs.createData(), contact_datas(pin, contacts)
            pin.computeJointMinimalOrdering(theirs, other, contacts)
            a = pin.lcaba(theirs, other, q, v, generalized, contacts, datas, pin.ProximalSettings(1e-15, penalty, 1000))
            found["lcaba"] = min(found["lcaba"], disagreement(mine["qacc"], from_pinocchio(pin, ours, q, v, a), scale))
        figures.update({name: max(figures.get(name, 0), figure) for name, figure in found.items()})
    print(f"\n{'/'.join(path.parts[-2:])}: {eq.nrow} rows between bodies, {others} other equalities left out; {figures}")
    assert all(figure < 1e-8 for figure in figures.values()), figures


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_batch_is_its_worlds(dtype):
    """Humanoids held at both feet: a batch in lanes against one world after the other in double."""
    model = tarsus.Model.load(str(ROOT / "models" / "humanoid.xml"))
    probe, rng, n = tarsus.Data(model), np.random.default_rng(2), 11
    tarsus.kinematics(model, probe, np.array(model.qpos0))
    eq = tarsus.Equalities(model, own=False)
    for foot in ("left_foot", "right_foot"):
        rotation, position = tarsus.body_pose(model, probe, foot)
        eq.add_weld(foot, foot, 0, list(rotation.T.ravel()), list(-rotation.T @ position))
    batch = tarsus.Data(model, worlds=n, dtype=dtype)
    qpos, qvel, tau = (np.array(getattr(batch, name)) for name in ("qpos", "qvel", "tau"))
    states = []
    for k in range(n):
        q = tarsus.integrate(model, probe, np.array(model.qpos0), 0.1 * rng.normal(size=model.nv), 1.0)
        states.append([q.astype(dtype), rng.normal(size=model.nv).astype(dtype), 10 * rng.normal(size=model.nv).astype(dtype)])
        for array, values in zip((qpos, qvel, tau), states[-1]):
            batch.set(array, k, values)
    together = tarsus.constrained_dynamics(model, batch, qpos, qvel, tau, dt=0.01, equalities=eq)
    assert together["status"] == ["solved"] * n
    tolerance = 1e-10 if dtype == "float64" else 2e-3
    for k in range(n):
        alone = tarsus.constrained_dynamics(model, probe, *(x.astype("float64") for x in states[k]), dt=0.01, equalities=eq)
        for name in ("qacc", "x2"):
            got = batch.get(together[name], k) if name == "qacc" else together[name][k // batch.width, :, k % batch.width]
            assert np.abs(got - alone[name]).max() < tolerance * np.abs(alone[name]).max(), (k, name)


SITE_WELD = """<mujoco><compiler angle="radian"/><worldbody><site name="w" pos="0 0 1" euler=".5 0 0"/>
  <body name="a"><freejoint/><geom size=".1"/><site name="s1" pos=".2 .1 .1" euler="0 .7 0"/></body>
  <body name="b" pos="1 0 0"><freejoint/><geom size=".1"/><site name="s2" pos=".1 .2 .1" euler=".5 0 .3"/></body>
  </worldbody><equality><weld {}/></equality></mujoco>"""


@pytest.mark.parametrize("ends", ["site1='s1' site2='s2'", "site1='s2' site2='s1' torquescale='.5'", "site1='s1' site2='w'",
                                  "site1='w' site2='s1'"])
def test_welds_of_sites_turned_in_their_bodies(ends):
    """Orientation rows are along the second site's axes."""
    m, model = mujoco.MjModel.from_xml_string(SITE_WELD.format(ends)), tarsus.Model.from_xml_string(SITE_WELD.format(ends))
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    d, data, eq, rng = mujoco.MjData(m), tarsus.Data(model), tarsus.Equalities(model), np.random.default_rng(3)
    for _ in range(5):
        mujoco.mj_resetData(m, d)
        mujoco.mj_integratePos(m, d.qpos, 0.3 * rng.normal(size=m.nv), 1.0)
        mujoco.mj_forward(m, d)
        J, position, _, _ = equality_rows(m, d)
        J = in_the_turning_frame(m, d, J, position)
        ours = eq.rows(data, d.qpos.copy(), d.qvel.copy())
        assert np.abs(ours["phi"] - position).max() < 1e-12 and np.abs(ours["J"] - J).max() < 1e-12


def test_loops_in_float_beside_limits_keep_the_energy():
    """The compliance of dependent rows, as those of Cassie's rods, is as large as the rounding of float requires."""
    path = DATA / "menagerie/agility_cassie/cassie.xml"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    model = tarsus.Model.load(str(path))
    energy = {}
    for dtype in ("float64", "float32"):
        batch = tarsus.Batch(model, 4, 0.002, dtype=dtype, contacts=True, joint_limits=True)
        batch.reset(None, model.keyframe("home")[0].astype(dtype))
        random = np.random.default_rng(0)
        batch.qvel[:] = 0.3 * random.normal(size=batch.qvel.shape)
        energy[dtype] = []
        for _ in range(300):
            batch.ctrl[:] = random.uniform(-0.1, 0.1, batch.ctrl.shape)
            assert batch.step() == 0
            energy[dtype].append(batch.measure(["energy"])["energy"].sum(axis=1))
    assert np.abs(np.array(energy["float64"]) - energy["float32"]).max() < 0.05  # [J]; 2.4 with rows as hard as double's
    limp = tarsus.Batch(model, 96, dtype="float32", contacts=True, joint_limits=True, actuation="off")
    limp.reset(None, model.keyframe("home")[0].astype("float32"))
    limp.qvel[:] = 1.5 * random.normal(size=limp.qvel.shape)
    limp.rollout(2, states=False)
    now = limp.measure(["energy"])["energy"].sum(axis=1)
    for _ in range(60):
        assert limp.step() == 0
        before, now = now, limp.measure(["energy"])["energy"].sum(axis=1)
        assert (now - before).max() < 5  # [J]; in double at most 1; with rows as hard as double's one in 400 gains up to 430


def locked_tree(rng):
    """A tree of two to four bodies over a floor. Connects and welds lock its hinges, with anchors on the axes or beside them."""
    def text(x):
        return " ".join(repr(float(y)) for y in x)
    bodies, loops, count = "", "", rng.integers(2, 5)
    for i in range(count):
        turn, axis = rng.normal(size=4), rng.normal(size=3)
        turn, axis = text(turn / np.linalg.norm(turn)), axis / np.linalg.norm(axis)
        if i == 0:
            bodies += f'<body name="b0" pos="0 0 .5" quat="{turn}"><freejoint/><site name="s0"/><geom type="capsule" size=".05 .1" mass="2"/>'
            continue
        at = rng.normal(size=3) * 0.2 if rng.random() < 0.5 else np.zeros(3)
        bodies += (f'<body name="b{i}" pos="{text(rng.normal(size=3) * 0.3)}" quat="{turn}"><joint axis="{text(axis)}" pos="{text(at)}"/>'
                   f'<site name="s{i}"/><geom type="capsule" size=".04 .1" mass="{10**rng.uniform(-2, 1)}"/>')
        ends = f'body1="b{i}" body2="b{i - 1}"'
        loops += [f"<weld {ends}/>", f'<weld {ends} anchor="{text(at)}"/>', f'<connect {ends} anchor="{text(at + axis * 0.3)}"/>',
                  f'<connect {ends} anchor="{text(at + [0.1, 0, 0])}"/>'][rng.integers(4)]
    names = range(count)
    return f"""<mujoco><worldbody><geom type="plane" size="0 0 1"/>{bodies}{"</body>" * count}</worldbody><equality>{loops}</equality>
      <contact>{"".join(f'<exclude body1="b{i}" body2="b{j}"/>' for i in names for j in names if i < j)}</contact>
      <sensor>{"".join(f'<force site="s{i}"/><torque site="s{i}"/>' for i in names)}</sensor></mujoco>"""


def test_hinges_that_loops_lock_carry_the_forces_that_they_need():
    """Lanes and the scalar path leave different rounding errors in rows that nothing can move. These rows must not demand forces:
    the sensors measure only the fall and the impacts. Nor may forces in these rows cause any motion."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        model = tarsus.Model.from_xml_string(locked_tree(rng))
        data, options = tarsus.Data(model), {"dt": 0.01, "contacts": True, "joint_limits": True}
        stepper, batch = tarsus.Stepper(data, **options), tarsus.Batch(model, 2, **options)
        data.qvel = rng.normal(size=model.nv) * 0.5
        off, most = [], np.zeros(2)
        for _ in range(80):
            batch.qpos[:], batch.qvel[:] = data.qpos, data.qvel
            felt = batch.rollout(1, states=False, sensors=True)[1][0, 0]
            assert stepper.step() == 0
            off.append(np.abs(batch.qvel[0] - data.qvel).max())
            most = np.maximum(most, [np.abs(tarsus.sensors(model, data)).max(), np.abs(felt).max()])
        assert most.max() < 2e4 and most.max() < 10 * most.min(), (seed, most)
        assert np.sort(off)[-3] < 1e-4, (seed, off)  # an impact may have two solutions


ASKEW = """<mujoco>
  <option timestep="0.002" gravity="{gravity}"/> <default><geom contype="0" conaffinity="0"/></default>
  <worldbody><body name="frame" quat="{quat}">
    <geom size=".05"/>
    <body><joint axis="0 0 1"/> <geom type="capsule" size=".02" fromto="0 0 0 0 .2 0"/> <body name="b" pos="0 .2 0">
      <joint axis="0 0 1"/> <geom type="capsule" size=".02" fromto="0 0 0 .4 .1 0"/> <site name="b" pos=".4 .1 0"/>
    </body></body>
    <body pos=".4 0 0"><joint axis="0 0 1"/> <geom type="capsule" size=".02" fromto="0 0 0 0 .3 0"/> <site name="c" pos="0 .3 .02"/></body>
  </body></worldbody>
  <equality><connect site1="b" site2="c"/></equality>
</mujoco>"""


@pytest.mark.parametrize("contacts", [True, False])
@pytest.mark.parametrize("worlds", [1, 4, "batch"])
def test_a_linkage_that_is_askew_closes_in_its_plane_however_that_lies(contacts, worlds):
    """The pins are offset from their hole by 2 cm along their axis. No pose removes this error."""
    speeds = []
    for quat in ((1, 0, 0, 0), (0.9, 0.2, -0.3, 0.4), (0.3, -0.7, 0.5, 0.1)):
        w, x, y, z = quat / np.linalg.norm(quat)
        down = (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x))  # the frame's y, in the world
        text = ASKEW.format(gravity=" ".join(str(-9.81 * d) for d in down), quat=f"{w} {x} {y} {z}")
        model = tarsus.Model.from_xml_string(text)
        if worlds == "batch":
            batch = tarsus.Batch(model, 4, contacts=contacts, joint_limits=contacts)
            batch.qpos[:] += 0.02  # open in its plane as well
            batch.rollout(50)
            speeds.append(batch.qvel[0])
        else:
            data = tarsus.Data(model, worlds)
            data.qpos[:] += 0.02
            stepper = tarsus.Stepper(data, contacts=contacts, joint_limits=contacts)
            assert [stepper.step() for _ in range(50)] == [0] * 50
            speeds.append(data.qvel if worlds == 1 else data.get(data.qvel, 0))
    assert np.abs(speeds[0]).max() > 0.1
    np.testing.assert_allclose(speeds[1:], [speeds[0]] * 2, rtol=0, atol=1e-5)


LOCKED = """<mujoco>
  <option timestep="0.005"/> <default><geom contype="0" conaffinity="0"/></default>
  <worldbody><body><freejoint/> <geom size=".1" mass="3"/>
    <body pos="0 0 .3"><joint axis="1 .3 .5"/> <geom type="capsule" size=".03" fromto="0 0 0 0 0 .25" mass="1"/> <site name="a" pos="0 0 .3"/>
      <body pos="0 0 .3"><joint axis="1 .3 .5"/> <geom type="capsule" size=".03" fromto="0 0 0 0 0 .25" mass="1"/> <site name="b" pos="{off} {off} {off}"/></body>
    </body>
  </body></worldbody>
  <equality><weld site1="a" site2="b"/></equality>
</mujoco>"""


@pytest.mark.parametrize("off", [1e-4, 1e-3, 0.01, 0.1])
def test_a_weld_that_is_drawn_askew_locks_its_hinge_in_single_precision(off):
    model = tarsus.Model.from_xml_string(LOCKED.format(off=off))
    data = tarsus.Data(model, dtype="float32")
    stepper = tarsus.Stepper(data)
    for _ in range(200):
        assert stepper.step() == 0
        assert np.abs(data.qvel[3:]).max() < 0.1  # it falls as one


def test_loops_that_contradict_one_another_are_met_alike_in_single_precision():
    """Welds of neighbours in a chain that no angle of their hinge satisfies."""
    rng = np.random.default_rng(0)
    for _ in range(6):
        axes = rng.normal(size=(5, 3))
        links = "".join(f'<body pos="0 0 .3"><joint axis="{x} {y} {z}"/><geom type="capsule" size=".03" fromto="0 0 0 0 0 .25" mass="{0.5**i}"/><site name="{i}"/>'
                        for i, (x, y, z) in enumerate(axes))
        text = f"""<mujoco><default><geom contype="0" conaffinity="0"/></default><worldbody><body><freejoint/><geom size=".1" mass="3"/>
          {links}{"</body>" * 5}</body></worldbody><equality><weld site1="1" site2="2"/></equality></mujoco>"""
        model, speeds = tarsus.Model.from_xml_string(text), []
        q = model.qpos0.copy()
        q[7:] = rng.normal(size=5) * 0.5
        for dtype in ("float64", "float32"):
            data = tarsus.Data(model, dtype=dtype)
            data.qpos = q
            assert tarsus.Stepper(data).step() == 0
            speeds.append(np.array(data.qvel, float))
        np.testing.assert_allclose(speeds[1], speeds[0], rtol=0, atol=1e-3 * np.abs(speeds[0]).max())


CONTRADICTIONS = {
    "joint": '<joint joint1="a" polycoef="0 0 0 0 0"/><joint joint1="a" polycoef="{off} 0 0 0 0"/>',
    "two joints": '<joint joint1="a" joint2="b" polycoef="0 1 0 0 0"/><joint joint1="a" joint2="b" polycoef="{off} 1 0 0 0"/>',
    "locked": '<weld body1="low"/><joint joint1="a" polycoef="{off} 0 0 0 0"/>',
}


@pytest.mark.parametrize("off", [0, 0.3])
@pytest.mark.parametrize("kind", CONTRADICTIONS)
@pytest.mark.parametrize("worlds", [1, 9])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_that_contradict_one_another_are_reported(dtype, worlds, kind, off):
    model = tarsus.Model.from_xml_string(f"""<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 1"><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
        <body name="low" pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body></body>
      <body pos="0 1 .09"><freejoint/><geom size=".1"/></body></worldbody>
      <equality>{CONTRADICTIONS[kind].format(off=off)}</equality></mujoco>""")
    for terms in (True, False):
        data = tarsus.Data(model, worlds=worlds, dtype=dtype)
        stepper = tarsus.Stepper(data, dt=0.005, contacts=terms, joint_limits=terms)
        for _ in range(20):
            assert stepper.step() == 0
            for world in range(worlds):
                loops = stepper.loops(world)
                assert (loops["status"] == "inconsistent") == (off > 0), (terms, loops)
        assert (loops["error"] > 0.05) == (off > 0)
        batch = tarsus.Batch(model, worlds, dt=0.005, dtype=dtype, contacts=terms, joint_limits=terms)
        batch.rollout(20)
        assert (batch.reports["inconsistent"] == (off > 0)).all()
        # In float, lanes share the contradiction among rows otherwise.
        assert batch.reports["loop_error"] == pytest.approx(loops["error"], rel=0.3 if dtype == "float32" else 1e-9, abs=1e-6)


def coaxial(light, tendon, joint="", more=""):
    """A heavy link after one of this inertia, about one axis. The sum of both angles is the heavy link's angle, and moves as the
    heavy link would alone."""
    return tarsus.Model.from_xml_string(f"""<mujoco><option gravity="0 0 0"/><worldbody><body>
      <joint name="a" axis="1 0 0" {joint}/><inertial pos="0 0 0" mass="{light}" diaginertia="{light} {light} {light}"/>
      <body><joint name="b" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></body></worldbody>
      <tendon>{tendon}</tendon>{more}</mujoco>""")


def fixed_tendon(name, more):
    return f'<fixed name="{name}" {more}><joint joint="a" coef="1"/><joint joint="b" coef="1"/></fixed>'


RANGE = 'range="-0.1 0.1" limited="true"'


def longest_tendon(model, worlds, dtype="float64", steps=120, ctrl=()):
    """Largest sum of the angles in a world that is stepped individually (worlds = 0) or in lanes."""
    options, longest = {"dt": 1 / 60, "contacts": True, "joint_limits": True}, 0
    world = tarsus.Batch(model, worlds, dtype=dtype, **options) if worlds else tarsus.Data(model)
    world.qvel = np.full(world.qvel.shape, 0.5, dtype)
    if ctrl:
        world.ctrl = np.full(world.ctrl.shape, ctrl, dtype)
    stepper = world if worlds else tarsus.Stepper(world, **options)
    for _ in range(steps):
        assert stepper.step() == 0
        longest = max(longest, np.abs(world.qpos.sum(axis=-1)).max())
    return longest


@pytest.mark.parametrize("light", [1e-6, 1e-9])
@pytest.mark.parametrize("count", [1, 2])  # two such tendons: rows that depend on each other
def test_a_tendons_range_holds_where_a_light_link_spins_between_heavy_ones(light, count):
    tendons = "".join(fixed_tendon(f"t{k}", RANGE) for k in range(count))
    model, heavy = coaxial(light, tendons), coaxial(1, tendons)
    for worlds in (0, 6):
        assert 0.1 <= longest_tendon(model, worlds) < 0.1001, worlds
    alone = longest_tendon(heavy, 6, "float32")
    assert longest_tendon(model, 6, "float32") == pytest.approx(alone, abs=1e-6)


@pytest.mark.parametrize("light", [1, 1e-6, 1e-9])
def test_dependent_rows_of_tendons_hold_beside_a_light_link(light):
    """Two ranges, dry friction and two actuators along one direction. The light link reaches the end of its own range, which then
    holds the tendons' rows, and leaves it."""
    tendons = "".join(fixed_tendon(f"t{k}", f'{RANGE} frictionloss="0.01"') for k in range(2))
    drives = '<actuator><motor tendon="t0" ctrlrange="-1 1"/><position tendon="t0" kp="5" ctrlrange="-1 1"/></actuator>'
    model = coaxial(light, tendons, 'range="-3 3" limited="true"', drives)
    for ctrl in ((0.4, 0.5), (-0.4, 1.0), (-1.0, -1.0)):
        off = [longest_tendon(model, worlds, dtype, 240, ctrl) for worlds, dtype in ((0, "float64"), (6, "float64"), (6, "float32"))]
        assert max(off) < 0.102, (ctrl, off)
        assert off[1] == pytest.approx(off[0], abs=1e-5), (ctrl, off)


def test_equalities_of_the_file_are_selected_by_name():
    """The rows of a constraint that is added by its name, active or not, are those of a file in which it alone is active."""
    text = """<mujoco><worldbody><body name="hand" mocap="true" pos="0 0 .5"/>
      <body name="box" pos="0 .1 .5"><freejoint/><geom type="box" size=".05 .05 .05"/><site name="side" pos=".05 0 0"/></body>
      <body pos="1 0 .5"><joint name="j1" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
        <body pos=".3 0 0"><joint name="j2" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/><site name="tip" pos=".3 0 0"/></body></body>
      </worldbody><equality><weld name="grasp" body1="hand" body2="box" active="{}"/><connect name="hook" site1="tip" site2="side" active="{}"/>
      <joint name="gear" joint1="j1" joint2="j2" polycoef="0 .5 .1" active="{}"/></equality></mujoco>"""
    model = tarsus.Model.from_xml_string(text.format("true", "false", "true"))
    names = ("grasp", "hook", "gear")
    assert len(tarsus.Equalities(model)) == 2
    for i, name in enumerate(names):
        alone = tarsus.Model.from_xml_string(text.format(*["true" if i == k else "false" for k in range(3)]))
        eq, data = tarsus.Equalities(model, own=False), tarsus.Data(model)
        assert eq.add_own(name) == 0
        qpos, qvel = tarsus.random_configuration(model, 3), np.linspace(-1, 1, model.nv)
        mine, theirs = eq.rows(data, qpos, qvel), tarsus.Equalities(alone).rows(tarsus.Data(alone), qpos, qvel)
        assert eq.nrow == [6, 3, 1][i] and all(np.array_equal(mine[key], theirs[key]) for key in theirs)
        with pytest.raises(tarsus.ValueError, match="name"):
            eq.add_own(name)  # twice
    with pytest.raises(tarsus.ValueError, match="expected grasp, hook, gear"):
        eq.add_own("grip")


ROPE = """<mujoco><option gravity="0 0 0"/><worldbody><site name="w" pos=".8 0 .1"/><body><joint axis="0 1 0" damping="{damping}"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".04" mass="1.5"/><site name="a" pos=".3 0 0"/></body></worldbody>
  <tendon><spatial name="t" range="{range}" limited="true"><site site="w"/><site site="a"/></spatial></tendon></mujoco>"""


@pytest.mark.parametrize("dt", [1 / 30, 1 / 60, 1 / 240, 1e-3])
@pytest.mark.parametrize("damping", [0, 1])
@pytest.mark.parametrize("limits,turn", [("0 .3", -np.arctan(1 / 8)), ("1.2 2", np.pi - np.arctan(1 / 8))])
def test_a_tendon_range_that_no_pose_meets_ends_at_the_extremal_length(dt, damping, limits, turn):
    """The hinge stops where the length is least, or greatest. (It shook at 4.4 rad/s for ever, whatever the damping.)"""
    data = tarsus.Data(tarsus.Model.from_xml_string(ROPE.format(damping=damping, range=limits)))
    data.qvel[:] = 0.3
    stepper = tarsus.Stepper(data, dt=dt)
    for step in range(round(20 / dt)):
        assert stepper.step() == 0
        if step * dt > 19:
            assert abs(data.qvel[0]) < 3e-3
    assert data.qpos[0] == pytest.approx(turn, abs=1e-4)


@pytest.mark.parametrize("dt", [1 / 60, 2e-3])
def test_a_tendon_that_an_equality_holds_comes_to_rest(dt):
    """Its velocity falls below the least normal number. (From there on the derivative of its arms was no number, and the status
    singular.)"""
    data = tarsus.Data(tarsus.Model.from_xml_string("""<mujoco><option gravity="0 0 0"/><worldbody><site name="w" pos=".3 .1 .5"/>
      <body><joint axis="0 1 0"/><geom type="box" size=".1 .1 .1" pos=".1 0 0" mass="1"/><site name="a" pos=".3 0 0"/></body></worldbody>
      <tendon><spatial name="t"><site site="w"/><site site="a"/></spatial></tendon><equality><tendon tendon1="t"/></equality></mujoco>"""))
    data.qvel[:] = 0.5
    stepper = tarsus.Stepper(data, dt=dt)
    for _ in range(1000):
        assert stepper.step() == 0
    assert stepper.loops()["status"] == "solved" and abs(data.qvel[0]) < 1e-300


@pytest.mark.parametrize("dt", [1 / 30, 1 / 60, 1e-3])
@pytest.mark.parametrize("longer,turn", [(-0.2, -np.arctan(1 / 8)), (-0.005, -np.arctan(1 / 8)), (0.7, np.pi - np.arctan(1 / 8))])
def test_a_length_that_no_pose_has_ends_at_the_extremal_one(dt, longer, turn):
    """An equality holds the tendon beyond its least or greatest length. (The hinge spun ever faster, to 1e5 rad/s.)"""
    text = ROPE.format(damping=1, range="0 9").replace(
        "</mujoco>", f'<equality><tendon tendon1="t" polycoef="{longer} 0 0 0 0"/></equality></mujoco>')
    model = tarsus.Model.from_xml_string(text)
    data = tarsus.Data(model)
    batches = [tarsus.Batch(model, 5, dt, dtype=dtype) for dtype in ("float64", "float32")]
    for world in (data, *batches):
        world.qvel[:] = 0.3
    stepper, fastest = tarsus.Stepper(data, dt=dt), 0
    for _ in range(round(10 / dt)):
        for world in (stepper, *batches):
            assert world.step() == 0
        fastest = max(fastest, abs(data.qvel[0]))
    assert fastest < 200  # 10 m/s through the short arm at the start
    for world, off in ((data, 1e-4), (batches[0], 1e-4), (batches[1], 1e-3)):
        assert np.abs(world.qpos - turn).max() < off and np.abs(world.qvel).max() < 10 * off
    assert stepper.loops()["error"] > 1e-3


@pytest.mark.parametrize("dt", [0.001, 0.002, 0.005])
@pytest.mark.parametrize("tilt", [0.002, 0.02, 0.05])
def test_an_askew_shaft_keeps_its_spin_in_any_unit_of_mass(dt, tilt):
    """A shaft in two bearings, 0.8 to 20 mm askew at the far one, whose rows contradict the ball joint's. Neither has a torque
    about the shaft. Up to all of the spin was lost, by an amount that depended on the unit of mass."""
    spins = []
    for unit in (1, 3, 0.1):
        model = tarsus.Model.from_xml_string(f"""<mujoco><worldbody><body name="shaft" pos="0 0 1"><joint type="ball"/>
          <geom type="capsule" fromto="0 0 0 .4 0 0" size=".05" mass="{2 * unit}" contype="0" conaffinity="0"/></body></worldbody>
          <equality><connect body1="shaft" anchor=".4 0 0"/></equality></mujoco>""")
        data = tarsus.Data(model)
        data.qpos = [np.cos(tilt / 2), 0, 0.8 * np.sin(tilt / 2), 0.6 * np.sin(tilt / 2)]
        data.qvel = [30, 0, 0]
        stepper = tarsus.Stepper(data, dt=dt)
        for _ in range(round(0.1 / dt)):
            assert stepper.step() == 0
        spins.append(data.qvel[0])
    assert np.allclose(spins, 30, rtol=3e-3) and np.ptp(spins) < 1e-5


@pytest.mark.parametrize("off", [0.03, 0.1])
@pytest.mark.parametrize("turn", [0.3, 0.8, 1.5])
def test_two_bodies_on_a_connect_keep_their_momentum(off, turn):
    """One turns by so many radians in a step of 1/60 s, and the origins of both are beside their centres of mass."""
    body = "<freejoint/><geom type='box' size='.2 .1 .05' mass='1' pos='0 0 {}' contype='0' conaffinity='0'/>"
    model = tarsus.Model.from_xml_string(f"""<mujoco><option gravity="0 0 0"/><worldbody>
      <body name="a">{body.format(off)}</body><body name="b" pos=".5 0 0">{body.format(off)}</body></worldbody>
      <equality><connect body1="a" body2="b" anchor=".25 0 {off}"/></equality></mujoco>""")
    for seed in range(10):
        random = np.random.default_rng(seed)
        axis = random.normal(size=3)
        spin = axis / np.linalg.norm(axis) * turn * 60
        data = tarsus.Data(model)
        data.qvel[9:12] = spin
        data.qvel[6:9] = np.cross(spin, [0.25, 0, 0]) - np.cross(spin, [0, 0, off])
        stepper = tarsus.Stepper(data, dt=1 / 60)

        def momentum():
            tarsus.kinematics(model, data, data.qpos, data.qvel)
            return np.array(tarsus.momentum(model, data).linear)

        before = momentum()
        for _ in range(10):
            assert stepper.step() == 0
        assert np.abs(momentum() - before).max() < 1e-9 * turn * 60
