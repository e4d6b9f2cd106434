"""Inverse kinematics and related tools: initial and random poses, Jacobians composed of body Jacobians, and inverse dynamics
with contacts."""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Iterable
from typing import Sequence

import numpy as np

from . import _core
from .errors import ValueError, expect  # noqa: A004 (the C++ name)

__all__ = ["FrameTask", "IKResult", "com_jacobian", "ik", "inverse_dynamics", "jacobian_derivative", "neutral",
           "random_configuration", "relative_jacobian", "site_pose"]


@dataclasses.dataclass
class FrameTask:
    """Target for a body: its `point` (in the body's frame) at `position` [m] and its orientation equal to `orientation` (3 x
    3, or w x y z), both in the world. Either may be None. `weight` scales the error relative to other tasks."""

    body: int | str
    position: Sequence[float] | None = None
    orientation: Sequence | None = None
    point: Sequence[float] = (0, 0, 0)
    weight: float = 1.0


@dataclasses.dataclass
class IKResult:
    """Result of ik(). `error`: norm of all tasks' weighted errors [m | rad]. `success`: whether it is within the tolerance."""

    qpos: np.ndarray
    error: float
    success: bool
    iterations: int
    restarts: int


def neutral(model) -> np.ndarray:
    """[nq] pose of the model file, with every limited hinge and slide moved into its range."""
    qpos = np.array(expect("model", model, _core.Model).qpos0)
    for joint in model.joints:
        if joint.limited and joint.nv == 1:
            qpos[joint.qpos] = np.clip(qpos[joint.qpos], *joint.range)
    return qpos


def random_configuration(model, rng: np.random.Generator | int | None = None) -> np.ndarray:
    """[nq] random pose, uniformly distributed: hinges and slides over their range (without one: ±π, ±1 m), balls over the
    rotations within their range (without one: all), free roots over all orientations and a cube of ±1 m about their
    position in the file."""
    qpos = np.array(expect("model", model, _core.Model).qpos0)
    rng = _generator("rng", rng)
    for joint in model.joints:
        if joint.nv == 1:
            low, high = joint.range if joint.limited else (-1.0, 1.0) if joint.type == "slide" else (-np.pi, np.pi)
            qpos[joint.qpos] = rng.uniform(low, high)
            continue
        turn = rng.normal(size=4)
        first = joint.qpos.start
        if joint.type == "free":
            qpos[first:first + 3] += rng.uniform(-1, 1, size=3)
            first += 3
        qpos[first:first + 4] = turn / np.linalg.norm(turn)
        if joint.limited:
            angle = _random_angle(rng, joint.range[1])
            qpos[first] = np.cos(angle / 2)
            qpos[first + 1:first + 4] = turn[1:] * (np.sin(angle / 2) / np.linalg.norm(turn[1:]))
    return qpos


def com_jacobian(model, data, qpos) -> np.ndarray:
    """[3][nv] Jacobian J of the centre of mass at qpos: its velocity is J qvel. Leaves the kinematics of qpos in data. As in
    momentum() and Pinocchio, only moving bodies count; MuJoCo also counts bodies that are fixed to the world."""
    _core.kinematics(model, _one_world(data), qpos)
    total, out, J = 0.0, np.zeros((3, model.nv)), np.zeros((6, model.nv))
    for body in model.bodies[1:]:
        if body.mass == 0 or body.link < 0:
            continue
        rotation, position = _core.body_pose(model, data, body.id)
        _core.jacobian(model, data, body.id, position + rotation @ body.com, out=J)
        out += body.mass * J[3:]
        total += body.mass
    return out / total if total else out


def site_pose(model, data, site: int | str) -> tuple[np.ndarray, np.ndarray]:
    """(rotation [3][3], position [3]) of a site in the world [m]. Requires kinematics(). The Jacobian of the site is
    jacobian(model, data, model.site(site).body, position)."""
    at = expect("model", model, _core.Model).site(site)
    rotation, position = _core.body_pose(model, _one_world(data), at.body)
    return rotation @ at.rotation, position + rotation @ at.position


def relative_jacobian(model, data, body: int | str, reference: int | str, point=None) -> np.ndarray:
    """[6][nv] Jacobian J of a point of `body` relative to `reference`: J qvel is its velocity as `reference` sees it, angular
    rows first, along the axes of `reference`. Requires kinematics(). `point` is in the world [m]; None: the origin of
    `body`. J describes relative coordinates, so joints that move both bodies alike have zero columns."""
    point = None if point is None else _three("point", point)
    frame, _ = _core.body_pose(model, _one_world(data), reference)
    at = _core.body_pose(model, data, body)[1] if point is None else point
    J = _core.jacobian(model, data, body, at) - _core.jacobian(model, data, reference, at)
    return np.concatenate([frame.T @ J[:3], frame.T @ J[3:]])


def jacobian_derivative(model, data, body: int | str, qpos, qvel, point=(0, 0, 0)) -> np.ndarray:
    """[6][nv] dJ/dt of jacobian() at a point fixed in `body` (in its frame [m]), at qpos and qvel. The point's acceleration is
    J qacc + dJ/dt qvel. Leaves the kinematics of qpos and qvel in data.

    A joint's axis S, a motion vector at the world's origin, moves with its link: dS/dt = V x S [Featherstone 2008, eq.
    2.45]."""
    _core.kinematics(model, _one_world(data), qpos, qvel)
    rotation, position = _core.body_pose(model, data, body)
    at, qvel = position + rotation @ _three("point", point), _numbers("qvel", qvel, (model.nv,))
    S = _core.jacobian(model, data, body, at)
    S[3:] += np.cross(at, S[:3], axis=0)  # at the world's origin
    own = S * qvel
    V, rate = np.zeros(6), np.zeros_like(S)
    for joint in model.joints:  # links come after their parents; columns of joints that do not move `body` are zero
        part = joint.qvel
        V = V + own[:, part].sum(axis=1)
        rate[:3, part] = np.cross(V[:3], S[:3, part], axis=0)
        rate[3:, part] = np.cross(V[:3], S[3:, part], axis=0) + np.cross(V[3:], S[:3, part], axis=0)
        if joint.type == "free":
            rate[:, part.start:part.start + 3] = 0  # along the world's axes
    speed = S @ qvel
    speed = speed[3:] + np.cross(speed[:3], at)
    rate[3:] -= np.cross(at, rate[:3], axis=0) + np.cross(speed, S[:3], axis=0)
    return rate


def inverse_dynamics(model, data, qpos, qvel, qacc, contacts=()) -> np.ndarray:
    """[nv] joint forces that produce qacc while `contacts` act: rnea() minus the generalised forces of the contacts. They
    include what joint ranges, dry friction, tendons and equality constraints exert.
    `contacts` has the form of Stepper.contacts (world axes; link -1 is the world). Leaves the kinematics of qpos in data.
    The qacc of a step gives the step's forces exactly with velocity_products="off"; where velocity products are implicit, it
    differs from them in the first order of the step's length."""
    tau = np.array(_core.rnea(model, data, qpos, qvel, qacc))
    _core.kinematics(model, data, qpos, qvel)
    bodies = {}
    for body in model.bodies[1:]:
        bodies.setdefault(body.link, body.id)
    for contact in expect("contacts", contacts, list, tuple):
        missing = {"links", "position", "force"} - expect("contacts", contact, dict).keys()
        if missing:
            _refuse("contacts", f"without {sorted(missing)[0]!r}", "dictionaries as Stepper.contacts lists them")
        position, force, torque = (_three(f"contacts' {key}", contact.get(key, (0, 0, 0)))
                                   for key in ("position", "force", "torque"))
        for link, sign in zip(_two_links(contact["links"], bodies), (1, -1)):
            if link >= 0:
                J = _core.jacobian(model, data, bodies[link], position)
                tau -= sign * (J[3:].T @ force + J[:3].T @ torque)
    return tau


def _random_angle(rng, limit) -> float:
    """Random angle of a rotation uniformly distributed over those up to `limit`. Its density is proportional to 1 - cos θ,
    which θ²/2 bounds."""
    while True:
        angle = limit * np.cbrt(rng.uniform())
        if rng.uniform() * angle**2 / 2 <= 1 - np.cos(angle):
            return angle


def _turn_of(quaternion):
    """Angle (0 to π) of a quaternion of any length, and the axis times the sine of half the angle."""
    half = np.copysign(1.0, quaternion[0]) * quaternion[1:] / (np.linalg.norm(quaternion) or 1.0)
    return 2 * np.arctan2(np.linalg.norm(quaternion[1:]), abs(quaternion[0])), half


def _turn_into_range(quaternion, limit):
    """Limits the rotation of a quaternion, in place, to an angle of at most `limit` about the same axis."""
    angle, half = _turn_of(quaternion)
    if angle > limit:
        quaternion[0], quaternion[1:] = np.cos(limit / 2), half * (np.sin(limit / 2) / np.linalg.norm(half))


def _generator(argument, seed) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, builtins.ValueError):
        _refuse(argument, repr(seed), "a numpy.random.Generator or a whole number of at least 0")


def _refuse(argument, value, expected):
    raise ValueError(f"{argument}: is {value}, expected {expected}")


def _three(argument, values) -> np.ndarray:
    v = _numbers(argument, values)
    if v.shape != (3,) or not np.isfinite(v).all():
        _refuse(argument, repr(values), "three finite numbers")
    return v


def _numbers(argument, values, shape=None) -> np.ndarray:
    try:
        out = np.asarray(values, float)
    except (TypeError, builtins.ValueError):
        raise TypeError(f"{argument}: is {values!r}, expected numbers") from None
    if shape is not None and out.shape != shape:
        _refuse(argument, f"of shape {out.shape}", shape)
    return out


def _two_links(links, bodies):
    """Two links, each of which has a body or is -1, the world."""
    pair = expect("contacts' links", links, list, tuple)
    if len(pair) != 2 or not all(isinstance(k, (int, np.integer)) and (k == -1 or k in bodies) for k in pair):
        _refuse("contacts' links", repr(links), f"two links of bodies, 0 to {max(bodies, default=0)}, or -1: the world")
    return pair


def _one_world(data):
    if expect("data", data, _core.Data).worlds != 1:
        _refuse("data", f"of {data.worlds} worlds", "data of a single world")
    if data.dtype != np.float64:
        _refuse("data", f"of {data.dtype}", "float64")
    return data


def _matrix(orientation) -> np.ndarray:
    m = _numbers("orientation", orientation)
    if m.shape == (3, 3) and np.abs(m.T @ m - np.eye(3)).max() <= 1e-6 and np.linalg.det(m) > 0:
        return m
    if m.shape != (4,) or not 0 < np.linalg.norm(m) < np.inf:
        _refuse("orientation", repr(orientation), "a 3 x 3 rotation or a quaternion w x y z")
    w, x, y, z = m / np.linalg.norm(m)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def _rotation_vector(r: np.ndarray) -> np.ndarray:
    """Logarithm of a rotation matrix, with |result| <= π."""
    axis = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]]) / 2
    sine, cosine = np.linalg.norm(axis), (np.trace(r) - 1) / 2
    angle = np.arctan2(sine, cosine)
    if sine > 1e-7:
        return axis * (angle / sine)
    if cosine > 0:
        return axis
    square = np.clip((np.diag(r) + 1) / 2, 0, None)  # half a turn: r = 2 a aᵀ - 1
    k = int(np.argmax(square))
    return r[:, k] / 2 * (np.pi / np.sqrt(square[k])) + np.eye(3)[k] * (np.pi / np.sqrt(square[k]) / 2)


class _Problem:
    def __init__(self, model, tasks, data):
        self.model, self.data = model, _core.Data(model) if data is None else _one_world(data)
        self.tasks = [dataclasses.replace(
            t, position=None if t.position is None else _three("position", t.position), point=_three("point", t.point),
            orientation=None if t.orientation is None else _matrix(t.orientation)) for t in tasks]
        for t in self.tasks:
            if not isinstance(t.weight, (int, float, np.number)) or not 0 < t.weight < np.inf:
                _refuse("weight", repr(t.weight), "a positive, finite number")
        if not any(t.position is not None or t.orientation is not None for t in self.tasks):
            raise ValueError("tasks: have neither a position nor an orientation, expected at least one")
        self.low, self.high = np.full(model.nv, -np.inf), np.full(model.nv, np.inf)
        self.place = np.full(model.nv, -1)
        self.balls = [joint for joint in model.joints if joint.type == "ball" and joint.limited]
        for joint in model.joints:
            if joint.nv != 1:
                continue
            self.place[joint.qvel] = joint.qpos.start
            if joint.limited:
                self.low[joint.qvel], self.high[joint.qvel] = joint.range
        self.scalar = self.place >= 0
        self.floats = any(joint.type == "free" for joint in model.joints)
        self.loops = _core.Equalities(model)
        self._J = np.zeros((6, model.nv))

    def values(self, qpos):
        return np.where(self.scalar, qpos[self.place], 0.0)

    def clamp(self, qpos):
        qpos[self.place[self.scalar]] = np.clip(self.values(qpos), self.low, self.high)[self.scalar]
        for joint in self.balls:
            _turn_into_range(qpos[joint.qpos], joint.range[1])
        return qpos

    def free_columns(self, qpos, J, downhill):
        """J without the motions that would move a joint beyond its limit; for a ball joint, rotations about the axis of its
        rotation."""
        q = self.values(qpos)
        A = np.where(((q <= self.low) & (downhill < 0)) | ((q >= self.high) & (downhill > 0)), 0.0, J)
        for joint in self.balls:
            angle, half = _turn_of(qpos[joint.qpos])
            if angle >= max(joint.range[1] - 1e-9, 1e-9) and downhill[joint.qvel] @ half > 0:
                axis = half / np.linalg.norm(half)
                A[:, joint.qvel] -= np.outer(A[:, joint.qvel] @ axis, axis)
        return A

    def errors(self, qpos, jacobian=True):
        """Weighted errors of all tasks and of the model's equality constraints, and their Jacobian in qvel."""
        errors, rows = [], []
        if self.loops.nrow:
            found = self.loops.rows(self.data, qpos)
            errors.append(-found["phi"])
            rows.append(found["J"])
        _core.kinematics(self.model, self.data, qpos)
        for t in self.tasks:
            rotation, position = _core.body_pose(self.model, self.data, t.body)
            point = position + rotation @ t.point
            if jacobian:
                _core.jacobian(self.model, self.data, t.body, point, out=self._J)
            if t.position is not None:
                errors.append(t.weight * (t.position - point))
                if jacobian:
                    rows.append(t.weight * self._J[3:])
            if t.orientation is not None:
                errors.append(t.weight * _rotation_vector(t.orientation @ rotation.T))
                if jacobian:
                    rows.append(t.weight * self._J[:3])
        return np.concatenate(errors), np.concatenate(rows) if jacobian else None

    def descend(self, qpos, iterations, tolerance):
        """Levenberg-Marquardt. Joints at a limit that the step would pass stay there."""
        damping = 1e-2
        error, J = self.errors(qpos)
        size, stalled = np.linalg.norm(error), 0
        for iteration in range(iterations):
            if size <= tolerance or stalled > 6:
                return qpos, size, iteration
            A = self.free_columns(qpos, J, J.T @ error)
            if not A.any():
                return qpos, size, iteration
            step = A.T @ np.linalg.solve(A @ A.T + damping * min(size, 1.0) * np.eye(len(error)), error)
            longest = np.abs(step).max()
            if longest > 0.7:
                step *= 0.7 / longest
            trial = np.empty_like(qpos)
            _core.integrate(self.model, self.data, qpos, step, 1.0, out=trial)
            self.clamp(trial)
            new_error, new_J = self.errors(trial)
            new_size = np.linalg.norm(new_error)
            if new_size < size:
                far = longest > 0.7 and self.floats  # still travelling, over any distance
                stalled = stalled + 1 if new_size > 0.98 * size and not far else 0
                qpos, error, J, size = trial, new_error, new_J, new_size
                damping = max(damping * 0.2, 1e-9)
            else:
                damping *= 8
                if damping > 1e6:
                    return qpos, size, iteration
        return qpos, size, iterations


def ik(model, tasks: FrameTask | Sequence[FrameTask], qpos=None, *, tolerance: float = 1e-6, iterations: int = 100,
       restarts: int = 30, seed: int = 0, data=None) -> IKResult:
    """A configuration within the joints' ranges that meets the tasks and the model's equality constraints (loops, URDF's
    mimic).

    Damped least squares (Levenberg-Marquardt) from `qpos` (None: neutral(model)). While the norm of the errors exceeds
    `tolerance`, it restarts from up to `restarts` random configurations. Free roots move too. The best configuration found
    is returned; check `success`. The result is deterministic for a given seed. `data` (of the model, one world, float64) is
    scratch memory, for speed.

    >>> arm = tarsus.Model.load("arm.xml")
    >>> tarsus.ik(arm, tarsus.FrameTask("hand", position=[0.4, 0.1, 0.5])).qpos
    """
    expect("model", model, _core.Model)
    tasks = [tasks] if isinstance(tasks, FrameTask) else tasks
    if not isinstance(tasks, Iterable):
        expect("tasks", tasks, FrameTask)
    for name, value in (("iterations", iterations), ("restarts", restarts)):
        if not isinstance(value, (int, np.integer)) or value < 0:
            _refuse(name, repr(value), "a whole number that is not negative")
    if not isinstance(tolerance, (int, float, np.number)) or not tolerance >= 0:
        _refuse("tolerance", repr(tolerance), "a number of at least 0 (m or rad)")
    problem = _Problem(model, [expect("tasks", task, FrameTask) for task in tasks], data)
    start = neutral(model) if qpos is None else _numbers("qpos", qpos, (model.nq,))
    if not np.isfinite(start).all():
        _refuse("qpos", repr(qpos), "finite numbers")
    rng = _generator("seed", seed)
    free = [j for j in model.joints if j.type == "free"]
    best, used = None, 0
    for restart in builtins.range(restarts + 1):
        if restart:
            start = random_configuration(model, rng)
            for joint in free:
                start[joint.qpos] = best[0][joint.qpos]
        q, size, count = problem.descend(problem.clamp(start.copy()), iterations, tolerance)
        used += count
        if best is None or size < best[1]:
            best = (q, size, restart)
        if best[1] <= tolerance:
            break
    return IKResult(best[0], float(best[1]), bool(best[1] <= tolerance), used, best[2])
