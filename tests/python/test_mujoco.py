"""Every MJCF file of ../shared/data that MuJoCo and tarsus load: the same masses, poses, matrices and accelerations, and the same
forces and sensors of actuators.

Files whose meshes, textures or height fields are missing do not load in MuJoCo. For those it is given stand-ins: tarsus has
loaded them with `lenient`, which means that no inertia comes from a missing mesh, so the dynamics are still the file's own.
"""

import re
import subprocess
import sys

import mujoco
import numpy as np
import pytest
import tarsus
from actuation_oracle import Actuation, exact_added_masses
from oracle import (
    DATA,
    TOLERANCE,
    acceleration_tolerance,
    disagreement,
    matrix_disagreement,
    print_table,
    random_qpos,
)

#: The least number of files that must be compared.
FILES = 220
#: The least number of these that load without stand-ins.
FILES_AS_THEY_ARE = 120

#: MuJoCo stores inertias as principal moments and axes. Its diagonalisation (mjuu_eig3) stops when the largest off-diagonal entry
#: is below 1e-12 kg m², or when the cosine of the next rotation is above 1 - 1e-12. Its axes then have an error of up to this
#: angle, and off-diagonal entries of this angle times the difference of two moments. The error of the moments is of second order.
AXES_ENTRY, AXES_ANGLE = 1e-12, np.sqrt(2e-12)
#: A mesh's vertices are stored in single precision, and its inertia is diagonalised once more.
MESH_ERROR = 2 * np.finfo(np.float32).eps + AXES_ANGLE

#: Files that are left out although both engines load them: those with features that tarsus names as not supported when it reads
#: the file.
NOT_SUPPORTED = {
    "mujoco/test/xml/testdata/parent_merge.xml": "compiler conflict='merge': options of an attached model",
}

#: The condition number of dense matrices larger than this is not computed.
LARGE = 700

COLUMNS = ["mass", "com", "inertia", "qpos0", "pose", "matrix", "bias", "jacobian", "spring", "qacc", "allowed"]

TETRAHEDRON = np.array([0, 0, 0, 0.1, 0, 0, 0, 0.1, 0, 0, 0, 0.1])
FACES = np.array([0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3])


def spec_with_stand_ins(path):
    """MuJoCo's model, not compiled, with a tetrahedron for every missing mesh, grey for textures, a slope for height fields."""
    spec = mujoco.MjSpec.from_file(str(path))
    for skin in list(spec.skins):
        spec.delete(skin)
    for texture in spec.textures:
        texture.builtin = mujoco.mjtBuiltin.mjBUILTIN_FLAT
        texture.file, texture.cubefiles = "", [""] * 6
        texture.width = texture.height = 8
        texture.nchannel = 3
    for field in spec.hfields:
        if field.file:
            field.file, field.nrow, field.ncol, field.userdata = "", 2, 2, [0, 0, 0, 1]
    for mesh in spec.meshes:
        if mesh.file and not (path.parent / spec.meshdir / mesh.file).is_file():
            mesh.name = mesh.name or mesh.file.rsplit("/")[-1].rsplit(".", 1)[0]
            mesh.file, mesh.uservert, mesh.userface = "", TETRAHEDRON, FACES
    return spec


def load_mujoco(path):
    """(model, whether it needs stand-ins). Raises ValueError with MuJoCo's reason."""
    try:
        return mujoco.MjModel.from_xml_path(str(path)), False
    except ValueError as error:
        if "Error opening file" not in str(error):
            raise
        return spec_with_stand_ins(path).compile(), True


def compare_inertias(ours, theirs):
    """Compares each body's tensor in MuJoCo's principal axes. It then gives MuJoCo the same tensor with exact axes, so that later
    comparisons test the dynamics and not the accuracy of the axes again."""
    worst, rotation = 0.0, np.zeros(9)
    has_mesh = np.zeros(ours.nbody, bool)
    has_mesh[theirs.geom_bodyid[theirs.geom_dataid >= 0]] = True
    for i, tensor in enumerate(ours.body_inertia):
        moments = theirs.body_inertia[i].copy()
        mujoco.mju_quat2Mat(rotation, theirs.body_iquat[i])
        axes = rotation.reshape(3, 3)
        seen = axes.T @ tensor @ axes
        off = np.abs(seen - np.diag(moments))
        allowed = np.maximum(AXES_ENTRY, AXES_ANGLE * np.abs(moments[:, None] - moments)) * (1 - np.eye(3))
        if has_mesh[i]:
            allowed = allowed + MESH_ERROR * moments.max()
        worst = max(worst, disagreement(np.maximum(off - allowed, 0), np.zeros((3, 3)), floor=max(moments.max(), 1e-300)))
        if off.max() > 1e-14 * moments.max():
            exact, turn = np.linalg.eigh(seen)
            if np.linalg.det(turn) < 0:
                turn[:, 0] *= -1
            theirs.body_inertia[i] = exact
            mujoco.mju_mat2Quat(theirs.body_iquat[i], (axes @ turn).ravel())
            theirs.body_sameframe[i] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
    return worst


def compare_constants(ours, theirs):
    assert ours.body_name == [theirs.body(i).name for i in range(theirs.nbody)]
    assert ours.joint_name == [theirs.joint(i).name for i in range(theirs.njnt)]
    assert ours.geom_name == [theirs.geom(i).name for i in range(theirs.ngeom)] and ours.ngeom == theirs.ngeom
    assert np.array_equal(ours.geom_body, theirs.geom_bodyid)
    assert [(site.name, site.body) for site in ours.sites] == [(theirs.site(i).name, theirs.site_bodyid[i]) for i in range(theirs.nsite)]
    assert ours.timestep == theirs.opt.timestep
    gravity = 0 * theirs.opt.gravity if theirs.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY else theirs.opt.gravity
    assert (ours.gravity == gravity).all()
    heavy = theirs.body_mass > 0  # a body without mass has no centre of mass
    return {
        "mass": max((disagreement(a, b, floor=1e-300) for a, b in zip(ours.body_mass, theirs.body_mass)), default=0),
        "com": disagreement(ours.body_com[heavy], theirs.body_ipos[heavy]),
        "inertia": compare_inertias(ours, theirs),
        "qpos0": disagreement(ours.qpos0, theirs.qpos0),
    }


def compare_jacobians(ours, data, theirs, their_data, rng):
    worst = 0.0
    for body in rng.integers(0, ours.nbody, size=4):
        point = their_data.xpos[body] + rng.uniform(-1, 1, 3)
        linear, angular = np.zeros((3, theirs.nv)), np.zeros((3, theirs.nv))
        mujoco.mj_jac(theirs, their_data, linear, angular, point, int(body))
        worst = max(worst, disagreement(tarsus.jacobian(ours, data, int(body), point), np.vstack([angular, linear])))
    return worst


def compare_springs(ours, data, theirs, their_data, q, v):
    """Joint springs and dampers, explicit: MABA's joint force for a step of 0 s."""
    if theirs.tendon_stiffness.any() or theirs.tendon_damping.any() or theirs.actuator_damping.any():
        return {}  # MuJoCo's qfrc_spring and qfrc_damper also contain those of tendons and actuators
    force, _ = tarsus.drive_terms(ours, data, tarsus.Drives.none(ours), 0.0, q, v, q)
    return {"spring": disagreement(force, their_data.qfrc_spring + their_data.qfrc_damper)}


def compare_state(ours, theirs, rng):
    """One random state without contacts, constraints, actuators and other passive forces."""
    data, their_data = tarsus.Data(ours), mujoco.MjData(theirs)
    q, v, tau = random_qpos(ours, rng), rng.normal(size=ours.nv), rng.normal(size=ours.nv)
    their_data.qpos[:], their_data.qvel[:] = q, v
    mujoco.mj_forward(theirs, their_data)
    their_data.qfrc_applied[:] = tau - their_data.qfrc_passive
    mujoco.mj_forward(theirs, their_data)

    tarsus.kinematics(ours, data, q, v)
    rotations, positions = tarsus.body_poses(ours, data)
    sites = [tarsus.site_pose(ours, data, i) for i in range(theirs.nsite)]
    site_errors = [max(disagreement(R.ravel(), their_data.site_xmat[i]), disagreement(p, their_data.site_xpos[i])) for i, (R, p) in enumerate(sites)]
    figures = {
        "pose": max(disagreement(rotations.reshape(-1, 9), their_data.xmat), disagreement(positions, their_data.xpos), *site_errors),
        "jacobian": compare_jacobians(ours, data, theirs, their_data, rng),
        **compare_springs(ours, data, theirs, their_data, q, v),
    }
    M = np.zeros((ours.nv, ours.nv))
    mujoco.mj_fullM(theirs, their_data, M)
    figures["matrix"] = matrix_disagreement(tarsus.crba(ours, data, q), M)
    # A force is measured relative to the force that accelerates the heaviest degree of freedom by 1 m/s² (or rad/s²), not to 1 N.
    floor = min(1.0, np.diag(M).max(initial=0))
    figures["bias"] = disagreement(tarsus.bias_force(ours, data, q, v), their_data.qfrc_bias, floor)
    figures["qacc"] = disagreement(tarsus.aba(ours, data, q, v, tau), their_data.qacc_smooth)
    figures["allowed"] = acceleration_tolerance(M) if ours.nv <= LARGE else TOLERANCE
    return figures


def compare(ours, theirs, seed):
    sizes = (theirs.nq, theirs.nv, theirs.nbody, theirs.njnt)
    assert (ours.nq, ours.nv, ours.nbody, ours.njoint) == sizes, f"sizes {sizes}"
    disable = mujoco.mjtDisableBit
    theirs.opt.disableflags |= int(disable.mjDSBL_CONSTRAINT | disable.mjDSBL_CONTACT | disable.mjDSBL_ACTUATION)
    rng = np.random.default_rng(seed)
    figures = compare_constants(ours, theirs)
    for _ in range(1 if ours.nv > LARGE else 2):
        for name, figure in compare_state(ours, theirs, rng).items():
            figures[name] = max(figures.get(name, 0), figure)
    return figures


def faults(figures):
    return [f"{name} {x:.1e}" for name, x in figures.items() if name != "allowed" and not x <= (figures["allowed"] if name == "qacc" else TOLERANCE)]


@pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data beside the repository")
def test_every_mjcf_agrees_with_mujoco(capsys):
    rows, left_out, failures, as_they_are, actuation = [], [], [], 0, Actuation()
    for seed, path in enumerate(sorted(DATA.rglob("*.xml"))):
        name = path.relative_to(DATA)
        try:
            theirs, stand_ins = load_mujoco(path)
        except ValueError as error:
            left_out.append((name, "MuJoCo: " + " ".join(str(error).split())[:120]))
            continue
        try:
            ours = tarsus.Model.load(path, lenient=True)
            actuation.compare(str(name), ours, theirs, seed, stand_ins)
            if str(name) in NOT_SUPPORTED:
                left_out.append((name, NOT_SUPPORTED[str(name)]))
                continue
            figures = compare(ours, theirs, seed)
        except tarsus.InputError as error:
            # A file that MuJoCo cannot read without stand-ins need not load; the others must.
            (left_out if stand_ins else failures).append((name, "tarsus: " + str(error).splitlines()[0].replace(f"{DATA}/", "")))
            continue
        except AssertionError as error:
            failures.append((name, str(error)))
            continue
        as_they_are += not stand_ins
        rows.append((f"{name}{' *' if stand_ins else ''}", figures))
        failures += [(name, fault) for fault in faults(figures)]
    with capsys.disabled():
        print_table(f"MuJoCo {mujoco.__version__} (* with stand-ins for missing files)", rows, left_out, COLUMNS)
        print(f"{len(rows)} files compared, {as_they_are} as they are; worst: " + worst(rows))
        actuation.print()
    failures += actuation.failures
    assert not failures, "\n".join(f"{name}: {fault}" for name, fault in failures)
    assert as_they_are >= FILES_AS_THEY_ARE and len(rows) >= FILES and actuation.is_enough()


def worst(rows):
    return ", ".join(f"{c} {max(figures.get(c, 0) for _, figures in rows):.1e}" for c in COLUMNS)


def arm(inside="", joint="type='hinge' axis='0 1 0'", geom="<geom size='.1' pos='.3 0 0'/>", option="", more=""):
    return (f"<mujoco><option {option}/><worldbody><body name='b' pos='0 0 1'><joint name='j' {joint}/>{geom}<site name='s'/><site name='e' pos='.1 0 0'/>"
            f"{inside}</body><site name='w' pos='.2 .3 .1'/></worldbody>{more}</mujoco>")  # fmt: skip


def test_a_range_holds_from_its_margin_on():
    text = arm(joint="axis='0 1 0' range='-1 .5' margin='.2' damping='2' solreflimit='.05 1'", option="timestep='0.005'").replace(
        "<mujoco>", "<mujoco><compiler angle='radian'/>")  # fmt: skip
    theirs, ours = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    their_data = mujoco.MjData(theirs)
    data, batch = tarsus.Data(ours), tarsus.Batch(ours, 3, dt=0.005, joint_limits=True)
    stepper = tarsus.Stepper(data, dt=0.005, joint_limits=True)
    for _ in range(600):
        mujoco.mj_step(theirs, their_data)
        stepper.step()
    batch.rollout(600)
    assert 0.25 < their_data.qpos[0] < 0.35
    assert abs(data.qpos[0] - their_data.qpos[0]) < 1e-4 and np.abs(batch.qpos - their_data.qpos[0]).max() < 1e-4


def test_energy_has_all_springs_and_all_masses():
    text = arm(joint="type='hinge' axis='0 1 0' stiffness='2 3 1' springref='10' armature='.3'", inside="<body pos='.3 0 .1'><joint type='slide' stiffness='4'/><geom size='.05'/></body>",
               more="<tendon><spatial name='t' stiffness='7 2 5' springlength='.1 .2' armature='.4'><site site='w'/><site site='e'/></spatial></tendon>")  # fmt: skip
    text = text.replace("<site name='w'", "<body pos='0 0 2'><geom size='.2'/></body><site name='w'").replace("<option />", "<option><flag energy='enable'/></option>")
    theirs, ours = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    their_data, data = mujoco.MjData(theirs), tarsus.Data(ours)
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, v = rng.uniform(-1, 1, 2), rng.uniform(-2, 2, 2)
        their_data.qpos[:], their_data.qvel[:] = q, v
        mujoco.mj_forward(theirs, their_data)
        tarsus.kinematics(ours, data, q, v)
        e = tarsus.energy(ours, data, q, v)
        assert e.potential + e.spring == pytest.approx(their_data.energy[0], rel=1e-12)
        assert e.kinetic == pytest.approx(their_data.energy[1], rel=1e-12)


@pytest.mark.parametrize("tendon", ["<fixed name='t' armature='1.5'><joint joint='j' coef='.5'/><joint joint='k' coef='-.7'/></fixed>",
                                    "<spatial name='t' armature='1.5'><site site='w'/><site site='s'/><site site='end'/></spatial>"])  # fmt: skip
@pytest.mark.parametrize("dtype, worlds", [("float64", 1), ("float64", 5), ("float32", 3)])
def test_equations_of_motion_have_the_armature_of_tendons(tendon, dtype, worlds):
    text = arm(inside="<body pos='.4 .1 0'><joint name='k' axis='0 0 1' armature='.1'/><geom size='.1' pos='.2 0 .1'/><site name='end' pos='.1 .1 .1'/></body>",
               more=f"<tendon>{tendon}</tendon>")  # fmt: skip
    theirs, ours = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    their_data, data = mujoco.MjData(theirs), tarsus.Data(ours, worlds, dtype=dtype)
    rng = np.random.default_rng(1)
    q, v, tau = (rng.uniform(-1, 1, (worlds, 2)) for _ in range(3))
    args = [np.empty_like(array) for array in (data.qpos, data.qvel, data.tau)]
    for array, values in zip(args, (q, v, tau)):
        for world in range(worlds):
            if worlds > 1:
                data.set(array, world, values[world].astype(dtype))
            else:
                array[:] = values[0]
    M, bias = tarsus.crba(ours, data, args[0]), tarsus.bias_force(ours, data, *args[:2])
    qacc = tarsus.aba(ours, data, *args)
    back = tarsus.rnea(ours, data, *args[:2], qacc)
    tolerance = {"float64": 1e-7, "float32": 2e-4}[dtype]  # MuJoCo's bias of a path is also from differences
    for world in range(worlds):
        of = lambda x: x.ravel() if worlds == 1 else data.get(x.reshape(x.shape[0], -1, x.shape[-1]), world)  # noqa: E731
        their_data.qpos[:], their_data.qvel[:], their_data.qfrc_applied[:] = q[world], v[world], tau[world]
        mujoco.mj_forward(theirs, their_data)
        full = np.zeros((2, 2))
        mujoco.mj_fullM(theirs, their_data, full)
        assert of(M).reshape(2, 2) == pytest.approx(full, rel=tolerance, abs=tolerance)
        assert of(bias) == pytest.approx(their_data.qfrc_bias, rel=tolerance, abs=tolerance)
        assert of(qacc) == pytest.approx(their_data.qacc, rel=100 * tolerance, abs=100 * tolerance)
        assert of(back) == pytest.approx(tau[world], rel=tolerance, abs=100 * tolerance)


@pytest.mark.parametrize("joints", ["<joint name='j'/><joint name='k'/>",  # about one axis: the tree has no inverse of M
                                    "<joint name='j' type='ball'/>", "<joint name='j' type='slide'/><joint name='k' type='ball'/>"])
def test_accelerations_where_a_tendon_alone_makes_the_mass_matrix_regular(joints):
    tendon = "<fixed armature='1.5'><joint joint='j' coef='2'/></fixed>" if "k" in joints and "ball" not in joints else \
        "<spatial armature='1.5'><site site='w'/><site site='s'/></spatial>"
    text = f"""<mujoco><worldbody><site name='w' pos='.3 .1 2'/><body pos='.1 0 1' euler='20 30 0'>{joints}<geom size='.1' pos='.2 .1 .1'/>
        <site name='s' pos='.2 .3 .1'/></body></worldbody><tendon>{tendon}</tendon></mujoco>"""
    model = tarsus.Model.from_xml_string(text)
    data, rng = tarsus.Data(model), np.random.default_rng(1)
    for _ in range(5):
        q = tarsus.integrate(model, data, model.qpos0, rng.uniform(-1, 1, model.nv), 1.0)
        v, tau, push = rng.uniform(-1, 1, model.nv), rng.uniform(-1, 1, model.nv), rng.uniform(-1, 1, (len(model.joints), 6))
        qacc = tarsus.aba(model, data, q, v, tau, external=push)
        assert tarsus.rnea(model, data, q, v, qacc, external=push) == pytest.approx(tau, abs=1e-9)
        M, bias = tarsus.crba(model, data, q), tarsus.bias_force(model, data, q, v)
        free = tarsus.aba(model, data, q, v, tau)
        assert M @ free + bias == pytest.approx(tau, abs=1e-9) and np.linalg.cond(M) < 1e6


def test_constrained_dynamics_says_that_it_lacks_the_armature_of_tendons():
    text = arm(joint="axis='0 1 0'", more="<tendon><fixed armature='1'><joint joint='j' coef='2'/></fixed></tendon>")
    model = tarsus.Model.from_xml_string(text)
    zero = np.zeros(1)
    with pytest.raises(ValueError, match="armature of tendons.*Stepper"):
        tarsus.constrained_dynamics(model, tarsus.Data(model), zero, zero, zero)


@pytest.mark.parametrize("mesh", ["", "inertia='shell'", "refpos='.1 .2 .3' refquat='.5 .2 .3 .1'", "scale='-1 2 .5' inertia='convex'"])
def test_sensors_of_mesh_geoms_are_at_the_mesh_centre_along_its_axes(mesh):
    rng = np.random.default_rng(5)
    vertices = " ".join(f"{x:.6g}" for x in 0.15 * rng.normal(size=24))
    kinds = ("framepos", "framequat", "framexaxis", "framelinvel", "frameangvel", "framelinacc")
    sensors = "".join(f"<{kind} objtype='geom' objname='g'/>" for kind in kinds)
    text = (f"<mujoco><asset><mesh name='m' vertex='{vertices}' {mesh}/></asset><worldbody><body><freejoint/><geom name='g' type='mesh' mesh='m' quat='.3 .4 .5 .2' pos='.1 0 .3'/>"
            f"</body><body pos='1 0 0'><joint/><geom name='o' type='mesh' mesh='m'/></body></worldbody><sensor>{sensors}<framepos objtype='geom' objname='g' reftype='geom' refname='o'/></sensor></mujoco>")  # fmt: skip
    theirs, ours = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    their_data, data = mujoco.MjData(theirs), tarsus.Data(ours)
    their_data.qpos[:7], their_data.qvel[:] = [1, 2, 3, 0.5, 0.5, 0.1, -0.7], rng.normal(size=7)
    their_data.qpos[3:7] /= np.linalg.norm(their_data.qpos[3:7])
    data.qpos, data.qvel = their_data.qpos, their_data.qvel
    mujoco.mj_forward(theirs, their_data)
    data.qacc = their_data.qacc
    read = tarsus.sensors(ours, data)
    assert read == pytest.approx(their_data.sensordata, abs=1e-6)


@pytest.mark.parametrize("text, named", [
    (arm(joint="type='ball' stiffness='2 3 4'"), "'stiffness'.*ball.*first number"),
    (arm(joint="type='free' stiffness='2 3 4'"), "'stiffness'.*free.*first number"),
    (arm(more="<equality><weld site1='s' site2='e'/></equality>"), "no effect"),
    (arm(more="<tendon><spatial name='t'><site site='w'/><site site='v'/></spatial></tendon><equality><tendon tendon1='t'/></equality>")
     .replace("</worldbody>", "<site name='v'/></worldbody>"), "no effect: the tendons of this equality have constant length"),
    (arm(inside="<body name='c'><geom size='.1'/></body>", more="<equality><connect body1='b' body2='c' anchor='0 0 0'/></equality>"), "no effect"),
    (arm(geom="<geom size='.1' solref='.05 -1'/>"), "'solref'.*default"),
    (arm(geom="<geom size='.1' solref='-500 20'/>"), "'solref'.*default"),
    (arm(geom="<geom size='.1' solref='0 0'/>"), "'solref'.*default"),
])  # fmt: skip
def test_what_does_not_act_is_named(text, named):
    model = tarsus.Model.from_xml_string(text)
    assert any(re.search(named, d.message) for d in model.diagnostics), [d.message for d in model.diagnostics]
    stepper = tarsus.Stepper(tarsus.Data(model), contacts=True, joint_limits=True)
    assert stepper.step() == 0
    assert mujoco.MjModel.from_xml_string(text).nv == model.nv


TWO = """<mujoco><worldbody><body name="a"><freejoint/><geom type="box" size=".1 .2 .3"/></body>
  <body name="b" pos="0 0 1"><freejoint/><geom type="capsule" size=".1 .2" pos=".1 0 0"/></body></worldbody><equality>{}</equality></mujoco>"""


def moved(text, steps=20, **options):
    model = tarsus.Model.from_xml_string(text)
    data = tarsus.Data(model)
    data.qvel[:] = np.linspace(-1, 1, model.nv)
    stepper = tarsus.Stepper(data, dt=0.005, **options)
    assert all(stepper.step() == 0 for _ in range(steps))
    return model, data.qvel.copy()


@pytest.mark.parametrize("equality", ["<connect body1='a' body2='b' anchor='0 0 .5'/>", "<weld body1='a' body2='b' relpose='0 0 1 1 0 0 0'/>"])
@pytest.mark.parametrize("contacts", [False, True])
def test_what_is_said_twice_is_named_and_holds_once(equality, contacts):
    """Two thousand equal rows would need a dense matrix."""
    other = "<weld body1='a' body2='b' torquescale='2' relpose='0 0 1 1 0 0 0'/>"
    model, seen = moved(TWO.format(equality * 2000 + other), contacts=contacts)
    found = [d.message for d in model.diagnostics if "an earlier equality is the same" in d.message]
    assert len(found) == 1999
    assert np.allclose(seen, moved(TWO.format(equality + other), contacts=contacts)[1], atol=1e-9)


HELD = """<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="5 5 1"/>
  <body name="trunk" pos=".3 .1 .4" euler="10 20 30"><freejoint/><geom size=".1" mass="1"/><site name="t" pos="{anchor}"/>
    <body name="hand" pos="0 0 .3" euler="20 0 10">{joints}<geom size=".05" pos=".1 0 0" mass=".5"/><site name="h" pos="{site}"/></body></body></worldbody>
  <equality>{equality}</equality></mujoco>"""


@pytest.mark.parametrize("joints, anchor, held", [('<joint axis="1 2 3"/>', ".1 .2 .3", True), ('<joint axis="1 2 3" pos=".3 0 0"/>', ".4 .2 .3", True), ('<joint type="ball"/>', "0 0 0", True),
                                                 ('<joint axis="1 0 0"/><joint axis="0 1 0"/>', "0 0 0", True), ('<joint axis="1 2 3"/>', ".1 .2 .31", False),
                                                 ('<joint type="slide" axis="1 2 3"/>', ".1 .2 .3", False), ('<joint axis="1 0 0"/><joint axis="0 1 0"/>', "1 0 0", False)])  # fmt: skip
@pytest.mark.parametrize("sites", [False, True])
def test_a_connection_that_joints_hold_anyway_is_named_and_does_nothing(joints, anchor, held, sites):
    """All of its rows contain only rounding errors; as constraints they would make the worlds diverge. In MuJoCo they have no
    effect either."""
    mujoco = pytest.importorskip("mujoco")
    point = np.array(anchor.split(), dtype=float)
    turn = np.zeros(9)
    plain = mujoco.MjModel.from_xml_string(HELD.format(joints=joints, anchor="0 0 0", site="0 0 0", equality=""))
    mujoco.mju_quat2Mat(turn, plain.body("hand").quat)
    there = numbers(turn.reshape(3, 3) @ point + [0, 0, 0.3])
    equality = "<connect site1='h' site2='t'/>" if sites else f"<connect body1='hand' body2='trunk' anchor='{anchor}'/>"
    text = HELD.format(joints=joints, anchor=there, site=anchor, equality=equality)
    model = tarsus.Model.from_xml_string(text)
    assert any("joints between the connected bodies already keep them together" in d.message for d in model.diagnostics) == held
    if not held:
        return
    free = tarsus.Model.from_xml_string(HELD.format(joints=joints, anchor=there, site=anchor, equality=""))
    speed = np.random.default_rng(1).uniform(-3, 3, model.nv)
    runs = []
    for one in (model, free):
        data = tarsus.Data(one)
        data.qvel[:] = speed
        stepper = tarsus.Stepper(data, dt=0.005, contacts=True)
        assert all(stepper.step() == 0 for _ in range(200))
        runs.append(data.qvel.copy())
    assert np.array_equal(*runs)
    d = mujoco.MjData(mujoco.MjModel.from_xml_string(text))
    d.qvel = speed
    mujoco.mj_forward(d.model, d)
    assert np.abs(d.qfrc_constraint).max() < 1e-9
    at_trunk, rows, elsewhere = np.array(there.split(), dtype=float), tarsus.Equalities(free), np.array([0.3, 0.4, 0.5])
    for add in (lambda: rows.add_connect("c", "hand", point, "trunk", at_trunk), lambda: rows.add_connect("c", "trunk", at_trunk, "hand", point),
                lambda: rows.add_distance("d", "hand", elsewhere, "trunk", at_trunk, 1), lambda: rows.add_distance("d", "hand", point, "trunk", elsewhere, 1),
                lambda: rows.add_point_on_plane("p", "hand", point, "trunk", elsewhere, [0, 0, 1])):  # fmt: skip
        with pytest.raises(ValueError, match="held by the joints"):
            add()
    rows.add_distance("d", "hand", elsewhere, "trunk", elsewhere, 1)


def test_far_more_rows_than_dofs_are_as_fewer():
    """120 rows over 12 DoFs, of which the first 60 determine the others."""
    points = np.random.default_rng(0).uniform(-1, 1, size=(40, 3))
    every = [f"<connect body1='a' body2='b' anchor='{numbers(p)}'/>" for p in points]
    assert np.allclose(moved(TWO.format("".join(every)))[1], moved(TWO.format("".join(every[:20])))[1], atol=5e-4)


def test_what_is_written_has_its_fluid(tmp_path):
    text = arm(joint="type='ball'", option="density='50' viscosity='.5'",
               geom="<geom type='box' size='.1 .2 .3' pos='.3 0 0' fluidshape='ellipsoid' fluidcoef='.4 .3 1.2 .9 .8' euler='10 20 30'/>")  # fmt: skip
    (tmp_path / "given.xml").write_text(text)
    assert subprocess.run([sys.executable, "-m", "tarsus", "convert", str(tmp_path / "given.xml"), str(tmp_path / "written.xml")]).returncode == 0
    written = (tmp_path / "written.xml").read_text()
    forces = []
    for each in (text, written):
        theirs = mujoco.MjModel.from_xml_string(each)
        data = mujoco.MjData(theirs)
        data.qvel[:] = 1, -2, 0.5
        mujoco.mj_forward(theirs, data)
        forces.append(data.qfrc_passive.copy())
    assert np.allclose(*forces, rtol=1e-9) and np.abs(forces[0]).max() > 0.1


@pytest.mark.parametrize("bounds", ["boundmass='.1'", "boundinertia='.1'", "boundmass='.1' boundinertia='.2'"])
def test_what_is_written_has_bounded_inertias(tmp_path, bounds):
    """Also a zero inertia, as of a body with a bound on its mass alone."""
    text = arm(inside="<body name='c'><site name='c'/></body>").replace("<mujoco>", f"<mujoco><compiler {bounds}/>")
    (tmp_path / "given.xml").write_text(text)
    assert subprocess.run([sys.executable, "-m", "tarsus", "convert", str(tmp_path / "given.xml"), str(tmp_path / "written.xml")]).returncode == 0
    given, written = (mujoco.MjModel.from_xml_path(str(tmp_path / f"{name}.xml")) for name in ("given", "written"))
    for what in ("body_mass", "body_inertia", "body_ipos", "body_iquat"):
        assert np.allclose(getattr(written, what), getattr(given, what), rtol=1e-12, atol=1e-12), what


@pytest.mark.parametrize("more", ["", "mass='3'", "density='10'", "shellinertia='true'"])
@pytest.mark.parametrize("beside", ["", "<geom size='.1' pos='.5 0 .5'/>"])
def test_height_fields_on_moving_bodies_have_mass(more, beside):
    """The mass is MuJoCo's, that of a box, whatever the heights."""
    text = arm(joint="type='free'", geom=f"<geom type='hfield' hfield='h' pos='.1 0 .2' euler='30 0 0' {more}/>{beside}",
               more="<asset><hfield name='h' nrow='2' ncol='2' size='1 2 .5 .1' elevation='0 1 1 .2'/></asset>").replace(
        "<body name='b' pos='0 0 1'>", "<body name='b'>")  # fmt: skip
    theirs, ours = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    assert ours.body_mass[1] == pytest.approx(theirs.body_mass[1], rel=1e-12)
    assert np.allclose(ours.body_com[1], theirs.body_ipos[1], atol=1e-12)
    assert compare_inertias(ours, theirs) < 1e-9


@pytest.mark.parametrize("text", [
    arm(geom="<geom type='capsule' size='.1' fromto='0 0 0 .3 0 0' pos='1 0 0'/>"),
    arm(geom="<geom size='.1'/><site type='box' size='.1' fromto='0 0 0 .3 0 0' pos='1e-20 0 0'/>"),
    arm(geom="<geom type='capsule' size='.1' fromto='0 0 0 .3 0 0'/>", more="<default><geom pos='1 0 0'/></default>"),
    arm(geom="<geom type='capsule' size='.1' pos='1 0 0'/>", more="<default><geom fromto='0 0 0 .3 0 0'/></default>"),
])  # fmt: skip
def test_a_place_beside_two_ends_is_refused(text):
    """As in MuJoCo 4, but not where the position is zero, which has no effect."""
    with pytest.raises(ValueError, match="both pos and fromto"):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(tarsus.InputError, match="'pos' and 'fromto'"):
        tarsus.Model.from_xml_string(text)
    text = re.sub("(?<=pos=')1[^ ]* ", "0 ", text)
    assert tarsus.Model.from_xml_string(text).nbody == mujoco.MjModel.from_xml_string(text).nbody


@pytest.mark.parametrize("body", [
    "<inertial pos='.1 0 0' mass='1' diaginertia='.5 .7 .9' euler='10 20 30'/>",
    "<geom type='box' size='.3 .2 .1' euler='0 30 10'/>", "<geom type='capsule' size='.1 .2' euler='10 20 30'/>",
    "<geom size='.1' pos='.3 0 0' euler='0 0 45'/>", "<geom type='cylinder' size='.1 .2' pos='.3 0 0' euler='10 20 30'/>",
])  # fmt: skip
def test_inertial_frames_are_those_of_the_file(body):
    """For sensors on bodies and the box that a fluid drags, where moments are equal or not in the order of their size."""
    more = ("<sensor><framequat objtype='body' objname='b'/><framexaxis objtype='body' objname='b'/>"
            "<framepos objtype='site' objname='w' reftype='body' refname='b'/></sensor>")  # fmt: skip
    text = arm(joint="type='ball'", geom=body, option="density='50' viscosity='.2'", more=more)
    theirs, ours = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
    their_data, data = mujoco.MjData(theirs), tarsus.Data(ours)
    q = np.array([0.8, 0.2, -0.4, 0.4]) / np.linalg.norm([0.8, 0.2, -0.4, 0.4])
    for d in (their_data, data):
        d.qpos[:], d.qvel[:] = q, (1, -2, 3)
    mujoco.mj_forward(theirs, their_data)
    assert np.allclose(tarsus.sensors(ours, data), their_data.sensordata, atol=1e-9)
    assert np.allclose(tarsus.actuation(ours, data)["qfrc_passive"], their_data.qfrc_passive, atol=1e-9)


@pytest.mark.parametrize("kind", ["geom", "mesh", "fitted", "geoms", "inertial", "fullinertia", "fullinertia in a frame"])
def test_orientations_of_bodies_have_mujocos_sign(kind):
    rng = np.random.default_rng(3)
    for _ in range(40):
        quat, pos = lambda: f'quat="{numbers(rng.normal(size=4))}"', lambda: f'pos="{numbers(rng.normal(size=3))}"'
        A = rng.normal(size=(3, 3))
        A = A @ A.T + 29 * np.eye(3)
        full = f'<inertial pos="0 0 0" mass="1" fullinertia="{numbers(A[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])}"/>'
        box = '<geom name="g" type="box" size=".1 .2 .3" {} {}/>'
        mesh = f'<asset><mesh name="m" vertex="{numbers(rng.normal(size=24))}"/></asset>'
        inner = {"geom": box.format(pos(), quat()), "geoms": box.format(pos(), quat()) + box.replace('name="g"', "").format(pos(), quat()),
                 "mesh": f'<geom name="g" type="mesh" mesh="m" {pos()} {quat()}/>', "fitted": f'<geom name="g" type="capsule" mesh="m" {pos()} {quat()}/>',
                 "inertial": f'<inertial pos="0 0 0" mass="1" diaginertia="1.2 1.1 1" {quat()}/>', "fullinertia": full, "fullinertia in a frame": f"<frame {quat()}>{full}</frame>"}[kind]
        read = '<framequat objtype="body" objname="b"/><framequat objtype="body" objname="b" reftype="body" refname="c"/>'
        read += '<framequat objtype="geom" objname="g"/>' if "<geom" in inner else ""
        text = (f'<mujoco>{mesh}<worldbody><body name="c"><joint/><geom type="box" size=".1 .2 .3" {quat()}/></body><body name="b" {quat()}><joint/>{inner}</body></worldbody>'
                f"<sensor>{read}</sensor></mujoco>")
        theirs, ours = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
        their_data = mujoco.MjData(theirs)
        mujoco.mj_forward(theirs, their_data)
        assert tarsus.sensors(ours, tarsus.Data(ours)) == pytest.approx(their_data.sensordata, abs=1e-6)


def numbers(values):
    return " ".join(repr(float(v)) for v in np.ravel(values))


def random_bodies(rng):
    """Contents of a body without inertial axes of its own: several geoms, turned or along the body's axes, a full inertia, also
    in a frame, a mesh."""
    def geom(kinds="sphere box capsule cylinder ellipsoid".split(), pos=None, more="", size=(0.02, 0.1)):
        pos = rng.normal(size=3) * 0.2 if pos is None else pos
        return f'<geom type="{rng.choice(kinds)}" size="{numbers(rng.uniform(*size, 3))}" pos="{numbers(pos)}" {more}/>'

    def turn():
        return f'quat="{numbers(rng.normal(size=4))}"'

    for _ in range(60):
        yield "".join(geom(more=turn()) for _ in range(rng.integers(2, 5)))
        yield "".join(geom(pos=rng.integers(-1, 2, size=3) * 0.1) for _ in range(rng.integers(2, 5)))
        axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        tensor = axes @ np.diag(rng.uniform(1, 1.9, 3) * 10 ** rng.uniform(-5, 1)) @ axes.T
        full = numbers([*np.diag(tensor), tensor[0, 1], tensor[0, 2], tensor[1, 2]])
        yield f'<inertial pos="0 0 0" mass="1" fullinertia="{full}"/>'
        yield f'<frame {turn()}><inertial pos="0 0 0" mass="1" fullinertia="{full}"/></frame>'
        yield f'<geom type="mesh" mesh="m" {turn()}/>'
        yield f'<geom type="mesh" mesh="m" {turn()} pos="{numbers(rng.normal(size=3))}" fluidshape="ellipsoid"/>'
        yield f'<geom type="mesh" mesh="m" {turn()}/>' + geom(more=turn())


def test_principal_axes_are_mujocos():
    """Order and signs too, as sensors on bodies and fluids use them, and meshes as ellipsoids. MuJoCo ends its iteration at
    angles of 1e-6."""
    rng, count = np.random.default_rng(3), 0
    for inside in random_bodies(rng):
        mesh = numbers(rng.normal(size=(12, 3)) * rng.uniform(0.05, 0.2, 3))
        text = f"""<mujoco><option density="50" viscosity=".2"/><asset><mesh name="m" vertex="{mesh}"/></asset>
          <worldbody><body name="b" quat="{numbers(rng.normal(size=4))}"><freejoint/>{inside}</body></worldbody>
          <sensor><framexaxis objtype="body" objname="b"/><frameyaxis objtype="body" objname="b"/></sensor></mujoco>"""
        theirs, ours = mujoco.MjModel.from_xml_string(text), tarsus.Model.from_xml_string(text)
        d, data = mujoco.MjData(theirs), tarsus.Data(ours)
        d.qvel[:] = data.qvel[:] = rng.normal(size=6)
        exact_added_masses(theirs)
        mujoco.mj_forward(theirs, d)
        assert np.allclose(tarsus.sensors(ours, data), d.sensordata, atol=5e-6), inside
        assert np.allclose(tarsus.actuation(ours, data)["qfrc_passive"], d.qfrc_passive, rtol=2e-5, atol=1e-6), inside
        count += 1
    assert count == 420
