"""A model under tarsus.Stepper: the source for characters, robots and loops."""

import functools
import json
import time as clock
from os import PathLike

import numpy as np

import tarsus

from ..errors import expect
from .page import Frame, arrows
from .source import Source, choice, finite, slider, spring_force

GHOSTS = 16  # with more worlds than these, references would be hidden and double the cost of drawing


class ModelSource(Source):
    """A model under tarsus.Stepper: one world, with contacts and pushes, or many worlds side by side.

    stepper: the stepper of a user's loop, whose contacts and loops are shown. Without it, contacts and loops of a Data that
    others step are not known.
    """

    def __init__(self, model, data=None, *, stepper=None, clip=None, dt=None, contacts=None, loops="spook", gains=None, plain=False,
                 force_limit=None, worlds=1, keyframe=None, spacing=None, name=None, ghost=True):
        expect("model", model, tarsus.Model)
        if stepper is not None:
            if expect("stepper", stepper, tarsus.Stepper).data is not (data or stepper.data):
                raise tarsus.ValueError("stepper: uses other data, expected a stepper of the data that are shown")
            if dt is not None:
                raise tarsus.ValueError(f"dt: is {dt}, expected None together with a stepper, which has a time step")
            data, dt = stepper.data, stepper.dt
        if data is not None:
            expect("data", data, tarsus.Data)
            tarsus.kinematics(model, data, data.qpos, data.qvel)  # refuses data of another model
            if worlds not in (1, data.worlds):
                raise tarsus.ValueError(f"worlds: is {worlds}, expected {data.worlds}, the number of worlds of data")
            if keyframe is not None:
                raise tarsus.ValueError(f"keyframe: is {keyframe!r}, expected None together with data, whose state is shown")
        if gains is not None and isinstance(expect("gains", gains, tuple, list, str, PathLike), (tuple, list)):
            if len(gains) not in (2, 4):
                raise tarsus.ValueError(f"gains: has {len(gains)} numbers, expected (KP, KD) or (KP, KD, ROOT_KP, ROOT_KD)")
            gains = ",".join(repr(float(x)) for x in gains)
        if not (clip is None or hasattr(clip, "sample")):
            expect("clip", clip, tarsus.Clip)
        if clip is not None and clip.sample(0.0)[0].shape != (model.nq,):
            raise tarsus.ValueError(f"clip: is bound to another model, with nq {clip.sample(0.0)[0].size}, expected one with nq {model.nq}")
        self.model = model
        self.scene = json.loads(tarsus.scene_json(model))
        if name:
            self.scene["name"] = name
        self.data = data if data is not None else tarsus.Data(model, worlds=worlds)
        self.worlds = self.data.worlds
        self.clip, self.keyframe = clip, keyframe
        self.dt = dt if dt is not None else 1 / 30 if clip is not None else min(max(model.timestep, 1 / 480), 1 / 60)
        self.contacts = contacts if contacts is not None else clip is None
        self.loops = loops
        driven = clip is not None or gains is not None
        self.drives = None
        if driven:
            self.drives = tarsus.Drives.uniform(model) if gains is None else tarsus.Drives.load(gains, model)
        self.has_ghost = driven and ghost  # whether the targets are a pose that the whole model should reach
        for option, value in (("plain", plain), ("force_limit", force_limit)):
            if value and not driven:
                raise tarsus.ValueError(f"{option}: is {value}, which needs drives, expected it together with a clip or gains")
        if driven:
            self.drives.plain = plain
            self.kp, self.kd = self.drives.kp.copy(), self.drives.kd.copy()
        self.scales = {"gains": 1.0, "damping": 1.0, "gravity": 1.0}
        starts = {kind: [joint.qvel.start for joint in model.joints if joint.type == kind] for kind in ("ball", "free")}
        self.balls, self.free = (np.array(starts[kind], int)[:, None] + np.arange(n) for kind, n in (("ball", 3), ("free", 6)))
        if force_limit is not None:
            self.limit_forces(force_limit)
        self.keyframes = self.scene["keyframes"]
        self.measured = self._measured() if driven else []
        self.can_push = True
        self.scratch = tarsus.Data(model)
        self.held = None
        self.phases = np.zeros(self.worlds)
        self._lay_out(spacing)
        self.series = self._series()
        self.timing = 0.0
        self.others = data is not None  # step the shown world, not this one
        self._make_stepper()
        if stepper is not None:
            self.stepper, self.known = stepper, True
        if data is None:
            self.reset()
        else:
            self.origin = self._qpos().copy(), self._qvel().copy(), self.data.act.copy()

    # -- layout of many worlds --

    def _lay_out(self, spacing):
        self.scene["worlds"] = self.worlds
        poses = tarsus.poses_of(self.model, self.model.qpos0)[0, :, :3]
        extent = float(np.ptp(poses[1:], axis=0).max()) if len(poses) > 1 else 1.0
        self.scene["extent"] = max(extent, 1e-3)
        side = int(np.ceil(np.sqrt(self.worlds)))
        spacing = 1.2 * max(extent, 0.5) if spacing is None else finite("spacing", spacing)
        if not spacing > 0:
            raise tarsus.ValueError(f"spacing: is {spacing}, expected a positive number of metres")
        at = np.arange(self.worlds)
        grid = np.stack([at % side - (side - 1) / 2, at // side - (side - 1) / 2, np.zeros(self.worlds)], 1)
        self.offsets = (spacing * grid if self.worlds > 1 else 0 * grid).astype(np.float32)[:, None, :]

    def _rows(self, array):
        """A batch's array as [worlds][n]."""
        packs, n, width = array.shape if array.ndim == 3 else (self.worlds, array.shape[-1], 1)
        return array.reshape(packs, n, width).transpose(0, 2, 1).reshape(packs * width, n)[: self.worlds]

    def _qpos(self):
        return self._rows(self.data.qpos)

    def _qvel(self):
        return self._rows(self.data.qvel)

    def _store(self, array, rows):
        """Copies [worlds][n] into an array of the data's layout. Lanes beyond the last world keep their numbers."""
        if self.data.width == 1:
            array[...] = np.reshape(rows, array.shape)
            return
        packs, n, width = array.shape
        packed = array.transpose(0, 2, 1).reshape(packs * width, n)
        packed[: self.worlds] = rows
        array[...] = packed.reshape(packs, width, n).transpose(0, 2, 1)

    def _mocap(self):
        """Poses of each world's mocap bodies: [worlds, nmocap, 3] and [worlds, nmocap, 4], copies."""
        out = []
        for array, numbers in ((self.data.mocap_pos, 3), (self.data.mocap_quat, 4)):
            n = self.model.nmocap * numbers
            rows = self._rows(array.reshape(len(array), n, array.shape[-1]) if array.ndim == 4 else array.reshape(1, n))
            out.append(np.array(rows, np.float64, order="C").reshape(self.worlds, self.model.nmocap, numbers))
        return out

    def _poses(self, qpos, mocap=None):
        """Poses of the first worlds. mocap: poses of their mocap bodies, if not the present ones."""
        qpos = np.ascontiguousarray(qpos, np.float64)
        poses = tarsus.poses_of(self.model, qpos, *(rows[: len(qpos)] for rows in mocap or self._mocap()))
        poses[:, :, :3] += self.offsets[: len(poses)]
        return poses.reshape(-1, 7)

    # -- stepping --

    def _make_stepper(self):
        self.stepper = tarsus.Stepper(self.data, dt=self.dt, contacts=self.contacts, joint_limits=self.contacts,
                                      loops=self.loops)
        self.known = not self.others  # whether it steps the shown state
        self.drive_force = self.drive_share = 0.0 if self.known else float("nan")

    def _target(self, time, first=None):
        """State of all worlds, or of the first ones."""
        if self.clip is None:
            return self.hold[:first], np.zeros((len(self.hold[:first]), self.model.nv))
        return self.clip.sample(time + self.phases[:first])

    def reset(self, keyframe=None):
        self.keyframe = keyframe if keyframe is not None else self.keyframe
        qpos, qvel = self.model.qpos0.copy(), np.zeros(self.model.nv)
        self.data.act = np.zeros_like(self.data.act)
        if self.keyframe is not None:
            self.data.reset(self.keyframe)  # controls and activations too
            qpos, qvel = self.model.keyframe(self.keyframe)
        self.hold = np.tile(qpos, (self.worlds, 1))
        self.data.time = 0.0
        if self.clip is not None:
            if self.worlds > 1:
                self.phases = np.arange(self.worlds) * 0.618034 % 1 * self.clip.duration
            rows = self._target(0.0)
        else:
            rows = self.hold, np.tile(qvel, (self.worlds, 1))
        if hasattr(self, "origin") and keyframe is None:
            *rows, self.data.act = self.origin
        self._place(*rows)

    def _place(self, qpos, qvel):
        self._store(self.data.qpos, qpos)
        self._store(self.data.qvel, qvel)
        self.data.tau = np.zeros_like(self.data.tau)
        self.held = None
        self._make_stepper()

    @property
    def time(self):
        return self.data.time

    def step(self):
        self.known = True
        self._apply_forces()
        measured = self.drives is not None and self.worlds == 1
        before = (self.data.qpos.copy(), self.data.qvel.copy()) if measured else None
        begin = clock.perf_counter()
        if self.drives is None:
            bad = self.stepper.step()
        else:
            q, v = self._target(self.data.time + self.dt)
            if self.worlds == 1:
                q_target, v_target = q[0], v[0]
            else:
                q_target, v_target = self.data.zeros(self.model.nq), self.data.zeros(self.model.nv)
                self._store(q_target, q), self._store(v_target, v)
            bad = self.stepper.step(self.drives, qpos_target=q_target, qvel_target=v_target)
        self.timing = 1e3 * (clock.perf_counter() - begin)
        if measured and not bad:
            self._measure_force(*before, q_target, v_target)
        if bad:
            status = next(s for s in self.stepper.status if s != "ok")
            return f"{status} (a smaller step or smaller gains may help; Reset starts again)"
        return None

    def _measure_force(self, qpos, qvel, qpos_target, qvel_target):
        """Largest drive force of the last step [N m | N], and the largest share of its limit that a drive used.

        The force is the drives' law at the step's end, within their limits: contacts and loops act through the velocity alone.
        A free root's drive, the hand that holds it, is left out.
        """
        drives, qacc = self.drives, (self.data.qvel - qvel) / self.dt
        force = tarsus.drive_force(self.model, self.data, drives, self.dt, qpos, qvel, qpos_target, qvel_target, qacc)
        high = np.full(self.model.nv, np.inf) if drives.force_limit is None else drives.force_limit
        low = -high if drives.force_floor is None else drives.force_floor
        size, limit = np.abs(np.clip(force, low, high)), np.where(force < 0, -low, high)
        if len(self.balls):  # the first limit is that of the torque's length
            limit[self.balls] = most = high[self.balls[:, :1]]
            size[self.balls] = np.minimum(np.linalg.norm(force[self.balls], axis=1, keepdims=True), most)
        size[self.free] = 0
        self.drive_force = float(size.max(initial=0.0))
        self.drive_share = float(np.divide(size, limit, out=np.zeros_like(size), where=limit > 0).max(initial=0.0))

    def _apply_forces(self):
        """Gravity's factor and the hand's spring, as joint forces."""
        model, scratch = self.model, self.scratch
        factor = self.scales["gravity"]
        if factor == 1 and self.held is None and not getattr(self, "_forced", False):
            return
        self._forced = factor != 1 or self.held is not None
        tau = np.zeros((self.worlds, model.nv))
        places = self._mocap()
        if factor != 1:
            for world in range(self.worlds):
                scratch.mocap_pos, scratch.mocap_quat = (rows[world] for rows in places)
                qpos = np.ascontiguousarray(self._qpos()[world], np.float64)
                tau[world] += (1 - factor) * tarsus.bias_force(model, scratch, qpos, np.zeros(model.nv))
        if self.held is not None:
            body, world, point, target = self.held
            scratch.mocap_pos, scratch.mocap_quat = (rows[world] for rows in places)
            qpos = np.ascontiguousarray(self._qpos()[world], np.float64)
            qvel = np.ascontiguousarray(self._qvel()[world], np.float64)
            inertia = np.ascontiguousarray(self._rows(self.data.joint_inertia)[world], np.float64)
            tarsus.factor(model, scratch, qpos, inertia)
            tarsus.kinematics(model, scratch, qpos, qvel)
            rotation, position = tarsus.body_pose(model, scratch, body)
            at = position + rotation @ point
            offset = target - self.offsets[world, 0] - at
            jacobian = tarsus.jacobian(model, scratch, body, at)[3:]
            along = jacobian.T @ (offset / max(np.linalg.norm(offset), 1e-12))
            tarsus.factor(model, scratch, qpos, inertia)
            inverse_mass = float(along @ tarsus.minv(model, scratch, along))
            if inverse_mass > 0:
                tau[world] += jacobian.T @ spring_force(inverse_mass, offset, jacobian @ qvel, self.dt)
        self._store(self.data.tau, tau)

    def push(self, body, world, point, target):
        if not (0 < body < self.model.nbody and 0 <= world < self.worlds):
            raise tarsus.ValueError(f"push: there is no body {body} in world {world}")
        self.held = body, world, np.array(point, float), np.array(target, float)

    def release(self):
        self.held = None

    # -- state, controls --

    def state(self):
        data = self.data
        return data.time, *(array.copy() for array in (data.qpos, data.qvel, data.act, data.mocap_pos, data.mocap_quat))

    def restore(self, state):
        data = self.data
        data.time, data.qpos, data.qvel, data.act, data.mocap_pos, data.mocap_quat = state
        self._make_stepper()

    def controls(self):
        out = [slider("dt", self.dt, 1 / 1000, 1 / 15, "s", log=True, label="step"),
               slider("gravity", self.scales["gravity"], 0, 2, "× the model's")]
        if self.drives is not None:
            out += [slider("gains", self.scales["gains"], 0.001, 10, "× kp", log=True, label="stiffness"),
                    slider("damping", self.scales["damping"], 0.001, 10, "× kd", log=True),
                    slider("force limit", self._largest_limit() or 1e5, 1, 1e5, "N m", log=True),
                    choice("plain", "yes" if self.drives.plain else "no", ["no", "yes"], "the paper's law")]
        if self.scene["loops"]:
            out.append(choice("loops", self.loops, ["spook", "shake", "off"]))
        out.append(choice("contacts", "on" if self.contacts else "off", ["on", "off"]))
        if self.drives is None and self.worlds == 1:
            for i, (name, (low, high)) in enumerate(zip(self.model.controls, self.model.actuator_ctrlrange)):
                low, high = (float(x) if np.isfinite(x) else end for x, end in zip((low, high), (-1.0, 1.0)))
                now = float(self.data.ctrl[i])
                out.append(slider(f"ctrl {i}", now, min(low, now), max(high, now), label=f"ctrl {name or i}"))
        if self.clip is None and self.drives is not None and self.worlds == 1:
            for joint in self.model.joints:
                if joint.type in ("hinge", "slide"):
                    low, high = joint.range if joint.limited else (-np.pi, np.pi)
                    out.append(slider(f"target {joint.id}", float(self.hold[0, joint.qpos.start]), float(low), float(high),
                                      "rad" if joint.type == "hinge" else "m", label=f"target {joint.name or joint.id}"))
        return out

    def control(self, name, value):
        known = {c["name"]: c for c in self.controls()}
        if name not in known:
            raise tarsus.ValueError(f"unknown control {name!r}, expected one of {', '.join(known)}")
        if "choices" in known[name]:
            if value not in known[name]["choices"]:
                raise tarsus.ValueError(f"{name}: {value!r} is not one of {', '.join(known[name]['choices'])}")
        else:
            value = float(np.clip(finite(name, value), known[name]["low"], known[name]["high"]))
        if name in self.scales:
            self.scales[name] = value
            if self.drives is not None:
                self.drives.kp, self.drives.kd = self.kp * self.scales["gains"], self.kd * self.scales["damping"]
        elif name == "dt":
            self.dt = value
        elif name == "force limit":
            self.limit_forces(value)
        elif name == "plain":
            self.drives.plain = value == "yes"
        elif name == "loops":
            self.loops = value
        elif name == "contacts":
            self.contacts = value == "on"
        elif name.startswith("ctrl "):
            self.data.ctrl[int(name[len("ctrl "):])] = value
        elif name.startswith("target "):
            self.hold[0, self.model.joints[int(name[len("target "):])].qpos] = value
        if name in ("dt", "loops", "contacts"):
            self._make_stepper()

    def limit_forces(self, limit):
        """The same force limit for every joint but a free root [N m], or "model": the limits of the model's file."""
        if limit == "model":
            return self.drives.take_force_limits(self.model)
        if not finite("force_limit", limit) > 0:
            raise tarsus.ValueError(f"force_limit: is {limit}, expected a positive number of N m")
        limits = np.full(self.model.nv, float(limit))
        limits[self.free] = np.inf
        self.drives.force_limit, self.drives.force_floor = limits, None

    def _largest_limit(self):
        """Largest finite force limit of a drive [N m | N], or None."""
        limits = self.drives.force_limit
        return None if limits is None else max((float(x) for x in limits if np.isfinite(x)), default=None)

    # -- frames --

    def _series(self):
        out = []
        if self.has_ghost:
            out += [("tracking error", "m")]
        if self.worlds == 1:
            if self.drives is not None:
                out += [("largest drive force", "N m | N"), ("largest drive force / limit", "")]
            out += [("kinetic energy", "J"), ("potential energy", "J"), ("total energy", "J"), ("contact force", "N"),
                    ("penetration", "m"), ("contact residual", "m/s"), ("contact iterations", "")]
            if self.scene["loops"]:
                out += [("loop error", "m | rad")]
        return out + [("time of a step", "ms")]

    def _measured(self):
        """Bodies that have mass, in the trees in which a joint has a gain that is not zero, or in all if none has."""
        root, driven = [], set()
        for joint in self.model.joints:
            root.append(joint.id if joint.parent < 0 else root[joint.parent])
            if np.any(self.kp[joint.qvel]) or np.any(self.kd[joint.qvel]):
                driven.add(root[-1])
        return [i for i, body in enumerate(self.scene["bodies"])
                if body["mass"] > 0 and body["link"] >= 0 and (not driven or root[body["link"]] in driven)]

    def _tracking_error(self, poses, ghost):
        """Tracking error [m], mean over the measured bodies."""
        bodies = len(self.scene["bodies"])
        apart = (poses[: len(ghost), :3] - ghost[:, :3]).reshape(-1, bodies, 3)[:, self.measured]
        return float(np.sqrt((apart * apart).sum(axis=2)).mean()) if apart.size else 0.0

    def _values(self, poses, ghost):
        values = []
        if self.drives is not None:
            values += [self.drive_force, self.drive_share]
        if self.has_ghost:
            values.insert(0, self._tracking_error(poses, ghost))
        tarsus.kinematics(self.model, self.data, self.data.qpos, self.data.qvel)
        energy = tarsus.energy(self.model, self.data, self.data.qpos, self.data.qvel)
        rows = (self.stepper.rows if self.contacts else None) or {}
        of_step = [self.contact_force, rows.get("penetration", 0.0), rows.get("residual", 0.0), rows.get("iterations", 0)]
        if self.scene["loops"]:
            of_step.append((self.stepper.loops() or {}).get("error", 0.0))
        values += [energy.kinetic, energy.potential + energy.spring, energy.total(),
                   *(of_step if self.known else [float("nan")] * len(of_step))]
        return values + [self.timing]

    def _worlds_frame(self, time, qpos, mocap, timing):
        """Poses of many worlds. The reference is that of the first GHOSTS worlds, and is drawn only if there are no more
        worlds."""
        poses, ghost, values = self._poses(qpos, mocap), None, [timing]
        if self.has_ghost:
            ghost = self._poses(self._target(time, GHOSTS)[0], mocap)
            values.insert(0, self._tracking_error(poses, ghost))
        return Frame(time, poses, ghost if self.worlds <= GHOSTS else None, values=values)

    def snapshot(self):
        if self.worlds == 1:
            return super().snapshot()
        return functools.partial(self._worlds_frame, self.data.time, np.array(self._qpos(), np.float64), self._mocap(), self.timing)

    def frame(self):
        if self.worlds > 1:
            return self.snapshot()()
        poses = self._poses(self._qpos())
        ghost = self._poses(self._target(self.data.time)[0]) if self.has_ghost else None
        found = self.stepper.contacts if self.contacts else []
        contacts = [(*c["position"], *c["force"], *c["normal"], c["friction"]) for c in found]
        contacts = np.array(contacts, np.float32).reshape(-1, 10)
        self.contact_force = float(np.linalg.norm(contacts[:, 3:6], axis=1).sum())
        tendons = tarsus.tendon_segments(self.model, np.ascontiguousarray(self._qpos()[0], np.float64), *(rows[0] for rows in self._mocap()))
        return Frame(self.data.time, poses, ghost, arrows(contacts), self._values(poses, ghost), tendons)
