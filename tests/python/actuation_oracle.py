"""Actuators, tendons, passive forces and sensors of a model, against MuJoCo's."""

import collections

import mujoco
import numpy as np
import tarsus
from oracle import TOLERANCE

STATES = 3
#: The least numbers of files and of compared quantities.
FILES, ENOUGH = 179, {"actuators": 6860, "tendons": 674, "sensors": 929}
#: Compared only where bodies touch, below. Rays against stand-ins of missing meshes mean nothing.
CONTACT = {"touch", "contact"}
#: MuJoCo finds the point at which a path touches a geom from within to an angle of about 1e-7, and its moment arms have that
#: error. Lengths agree because the shortest path makes the error second order. For these files our arms are compared with the
#: slope of the length, and MuJoCo's only to these tolerances: test_paths_from_within_are_shortest has closed forms.
ROUGH = {
    "mujoco/model/replicate/tendon.xml": {"ten_velocity": 1e-6, "ten_J": 1e-6},
    "mujoco/test/engine/testdata/island/tendon_wrap.xml": {"ten_velocity": 1e-4, "ten_J": 1e-6},
}
ARRAYS = ["ten_length", "ten_velocity", "ten_J", "actuator_length", "actuator_velocity", "actuator_force", "act_dot",
          "qfrc_actuator", "qfrc_passive"]


def relevant(model):
    return (model.nu or model.ntendon or model.nsensor or model.opt.density or model.opt.viscosity or
            model.jnt_stiffness.any() or model.dof_damping.any() or model.body_gravcomp.any())


def random_state(model, data, rng, size):
    mujoco.mj_resetData(model, data)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv) * 0.5 * size, 1.0)
    data.qvel[:] = rng.normal(size=model.nv) * size
    limited = np.asarray(model.actuator_ctrllimited, bool)
    low = np.where(limited, model.actuator_ctrlrange[:, 0], -1)
    high = np.where(limited, model.actuator_ctrlrange[:, 1], 1)
    data.ctrl[:] = rng.uniform(low, high) * 1.2
    data.act[:] = rng.uniform(0, 1, size=model.na)
    data.time = rng.uniform(0, 10)


def dense_tendon_jacobian(model, data):
    out = np.zeros((model.ntendon, model.nv))
    for t in range(model.ntendon):
        first, count = model.ten_J_rowadr[t], model.ten_J_rownnz[t]
        out[t, model.ten_J_colind[first : first + count]] = data.ten_J.ravel()[first : first + count]
    return out


def sensor_kind(model, i):
    return mujoco.mjtSensor(model.sensor_type[i]).name.removeprefix("mjSENS_").lower()


def fault(what, ours, theirs, tolerance, scale=None):
    ours, theirs = np.asarray(ours, float).ravel(), np.asarray(theirs, float).ravel()
    if ours.shape != theirs.shape:
        return f"{what}: {ours.shape} numbers, MuJoCo {theirs.shape}"
    size = scale or max(np.abs(theirs).max(initial=0), 1e-6)
    off = np.abs(ours - theirs) / size
    if (off <= tolerance).all():
        return None
    i = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
    return f"{what}[{i}]: {ours[i]:.12g}, MuJoCo {theirs[i]:.12g}, off by {off[i]:.2g}"


def set_state(data, theirs):
    for name in ("qpos", "qvel", "qacc", "ctrl", "act", "time"):
        setattr(data, name, getattr(theirs, name))


LEGENDRE = np.polynomial.legendre.leggauss(200)


def added_mass(size):
    """Added mass and inertia of an ellipsoid in a fluid of density 1 [Tuckerman 1925], with the integrals over s = a² t²/(1 - t)²
    by Gauss-Legendre quadrature."""
    t, weight = (LEGENDRE[0] + 1) / 2, LEGENDRE[1] / 2
    size = np.asarray(size)
    kappa = np.zeros(3)
    for k in range(3):
        a = size[k]
        s, slope = a**2 * t**2 / (1 - t) ** 2, 2 * a**2 * t / (1 - t) ** 3
        b, c = np.delete(size, k)
        kappa[k] = size.prod() * (weight * slope / np.sqrt((a**2 + s) ** 3 * (b**2 + s) * (c**2 + s))).sum()
    volume, inertia = 4 / 3 * np.pi * size.prod(), np.zeros(3)
    for k in range(3):
        y, z = (k + 1) % 3, (k + 2) % 3
        difference, total = size[y] ** 2 - size[z] ** 2, size[y] ** 2 + size[z] ** 2
        inertia[k] = volume * difference**2 * abs(kappa[z] - kappa[y]) / 5 / max(
            1e-15, abs(2 * difference + total * (kappa[y] - kappa[z])))
    return volume * kappa / np.maximum(1e-15, 2 - kappa), inertia


def exact_added_masses(model):
    """Replaces MuJoCo's added masses, which it integrates to 1e-3, by exact ones, so that the rest of its fluid forces can be
    compared to 1e-9."""
    for geom in np.flatnonzero(model.geom_fluid[:, 0] > 0):
        a, b, c = model.geom_size[geom]
        sizes = {mujoco.mjtGeom.mjGEOM_SPHERE: (a, a, a), mujoco.mjtGeom.mjGEOM_CAPSULE: (a, a, a + b),
                 mujoco.mjtGeom.mjGEOM_CYLINDER: (a, a, b)}
        exact = np.concatenate(added_mass(sizes.get(mujoco.mjtGeom(model.geom_type[geom]), (a, b, c))))
        assert np.allclose(model.geom_fluid[geom, 6:], exact, rtol=1e-3, atol=1e-3 * np.abs(exact).max())
        model.geom_fluid[geom, 6:] = exact


def slope_of_length(ours, data):
    """[ntendon, nv] ∂length/∂q by central differences with two steps and Richardson extrapolation."""
    qpos, out = data.qpos.copy(), np.zeros((len(tarsus.actuation(ours, data)["ten_length"]), ours.nv))
    for k, direction in enumerate(np.eye(ours.nv)):
        slopes = []
        for h in (4e-4, 2e-4):
            ends = []
            for sign in (1, -1):
                data.qpos = tarsus.integrate(ours, data, qpos, sign * h * direction, 1.0)
                ends.append(tarsus.actuation(ours, data)["ten_length"])
            slopes.append((ends[0] - ends[1]) / (2 * h))
        out[:, k] = (4 * slopes[1] - slopes[0]) / 3
    data.qpos = qpos
    return out


def compare(ours, theirs, seed, stand_ins, rough, counts):
    """The disagreements at STATES states; adds the number of compared quantities to `counts`."""
    theirs.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    rng, faults = np.random.default_rng(seed), []
    d, data = mujoco.MjData(theirs), tarsus.Data(ours)
    exact_added_masses(theirs)
    for state in range(STATES):
        random_state(theirs, d, rng, 1.0 if state else 0.2)
        mujoco.mj_forward(theirs, d)
        set_state(data, d)
        answer = tarsus.actuation(ours, data)
        for name in ARRAYS:
            expected = dense_tendon_jacobian(theirs, d) if name == "ten_J" else getattr(d, name)
            faults.append(fault(name, answer[name], expected, rough.get(name, TOLERANCE)))
        if rough:
            exact = slope_of_length(ours, data)
            faults.append(fault("ten_J beside the slope of ten_length", answer["ten_J"], exact, 2e-9))
            faults.append(fault("ten_velocity", answer["ten_velocity"], answer["ten_J"] @ d.qvel, 1e-12))
            errors = [np.abs(J - exact).max() for J in (answer["ten_J"], dense_tendon_jacobian(theirs, d))]
            counts["arms"] = np.maximum(errors, counts.get("arms", 0))
        numbers = tarsus.sensors(ours, data)
        if numbers.shape != d.sensordata.shape:
            faults.append(f"sensordata: {numbers.shape}, MuJoCo {d.sensordata.shape}")
            continue
        largest = np.abs(d.sensordata).max(initial=0)
        for i in range(theirs.nsensor):
            kind = sensor_kind(theirs, i)
            place = slice(theirs.sensor_adr[i], theirs.sensor_adr[i] + theirs.sensor_dim[i])
            a, b = numbers[place], d.sensordata[place]
            if kind in CONTACT or np.isnan(a).all() or (kind == "rangefinder" and stand_ins):
                counts["sensors left out"][kind] += state == 0
                continue
            found = fault(f"{kind} {theirs.sensor(i).name}", a, b, TOLERANCE, max(np.abs(b).max(), 1e-3 * largest, 1e-6))
            faults.append(found)
            counts["sensors"][kind] += state == 0
    return [f for f in faults if f]


def count(model, counts):
    for i in range(model.nactuator):
        parts = ((mujoco.mjtTrn, model.actuator_trntype[i]), (mujoco.mjtDyn, model.actuator_dyntype[i]),
                 (mujoco.mjtGain, model.actuator_gaintype[i]), (mujoco.mjtBias, model.actuator_biastype[i]))
        counts["actuators"]["/".join(e(value).name.split("_")[-1].lower() for e, value in parts)] += 1
    for i in range(model.ntendon):
        wraps = model.wrap_type[model.tendon_adr[i] : model.tendon_adr[i] + model.tendon_num[i]]
        counts["tendons"]["+".join(sorted({mujoco.mjtWrap(k).name.split("_")[-1].lower() for k in wraps}))] += 1


class Actuation:
    """The files compared so far, their contents, and the disagreements."""

    def __init__(self):
        self.counts, self.failures, self.files = collections.defaultdict(collections.Counter), [], 0

    def compare(self, name, ours, theirs, seed, stand_ins):
        if not relevant(theirs) or theirs.nv == 0:
            return
        if (ours.nq, ours.nv, ours.nu, ours.na) != (theirs.nq, theirs.nv, theirs.nu, theirs.na):
            self.failures.append((name, "sizes"))
            return
        self.files += 1
        count(theirs, self.counts)
        faults = compare(ours, theirs, seed, stand_ins, ROUGH.get(name, {}), self.counts)
        self.failures += [(name, f) for f in dict.fromkeys(faults)]

    def print(self):
        print(f"\nactuators and sensors of {self.files} files at {STATES} states each")
        ours_off, theirs_off = self.counts.pop("arms")
        print(f"arms of {len(ROUGH)} files beside the slope of the length: ours off by {ours_off:.1e}, MuJoCo's by {theirs_off:.1e}")
        for what, kinds in sorted(self.counts.items()):
            print(f"{what} {sum(kinds.values())}: " + ", ".join(f"{k} {n}" for k, n in sorted(kinds.items())))

    def is_enough(self):
        compared = {what: sum(self.counts[what].values()) for what in ENOUGH}
        return self.files >= FILES and all(compared[what] >= number for what, number in ENOUGH.items())
