"""Worlds as an engine of MimicKit (https://github.com/xbpeng/MimicKit), whose environments and learners then run on them. In its
``engine_builder.build_engine``::

    elif (eng_name == "tarsus"):
        import tarsus.gym.mimickit as tarsus_engine
        engine = tarsus_engine.Engine(config, num_envs, device, visualize, record_video=record_video)

and ``engine_name: "tarsus"`` in the engine's file, optionally with ``threads``. Each environment has one character on a plane, from an MJCF
file, with a free root. As in MimicKit's other engines, a file's joint stiffness and damping are the gains of the drives, and actuatorfrcrange
gives their limits.
"""

import enum
import xml.etree.ElementTree

import numpy as np
import torch

from .. import Batch, Drives, Model, ValueError  # noqa: A004 (the C++ name)

try:  # MimicKit's module, present when this runs within MimicKit
    from engines.engine import ControlMode
    from engines.engine import Engine as _Base
except ImportError:
    _Base = object
    ControlMode = enum.Enum("ControlMode", {"none": 0, "pos": 1, "vel": 2, "torque": 3, "pd_explicit": 4})

_GROUND = {"name": "mimickit_ground", "type": "plane", "size": "100 100 0.1", "condim": "3", "friction": "1 0.05 0.05"}


def _load(file, self_collisions):
    """(model on a plane without joint springs and dampers, gains kp and kd [nv] from the file, force limits [nv])."""
    own = Model.load(file)
    kp, kd, force = np.zeros(own.nv), np.zeros(own.nv), np.full(own.nv, np.inf)
    for joint in list(own.joints)[1:]:
        kp[joint.qvel], kd[joint.qvel] = joint.stiffness, joint.damping
        if joint.force_limited:
            force[joint.qvel] = np.abs(joint.force_range).max()
    tree = xml.etree.ElementTree.parse(file)
    root = tree.getroot()
    for part in (*root.iter("worldbody"), *root.iter("default")):  # tendons and equalities also contain elements of this name
        for joint in part.iter("joint"):
            joint.attrib.update(stiffness="0", damping="0")
    root.find("worldbody").insert(0, xml.etree.ElementTree.Element("geom", _GROUND))
    if not self_collisions:
        contact = xml.etree.ElementTree.SubElement(root, "contact")
        names = [body.name for body in own.bodies][1:]
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                xml.etree.ElementTree.SubElement(contact, "exclude", body1=first, body2=second)
    directory = str(file).rpartition("/")[0] or "."
    return Model.from_xml_string(xml.etree.ElementTree.tostring(root, encoding="unicode"), directory, str(file)), kp, kd, force


def _exponential(v):
    """Quaternions w x y z [..., 4] of rotation vectors [..., 3]."""
    half = 0.5 * torch.linalg.vector_norm(v, dim=-1, keepdim=True)
    return torch.cat([torch.cos(half), 0.5 * v * torch.sinc(half / torch.pi)], dim=-1)


def _logarithm(q):
    """Rotation vectors [..., 3], no longer than pi, of unit quaternions w x y z [..., 4]."""
    q = torch.where(q[..., :1] < 0, -q, q)
    length = torch.linalg.vector_norm(q[..., 1:], dim=-1, keepdim=True)
    return q[..., 1:] * torch.where(length > 1e-6, 2 * torch.atan2(length, q[..., :1]) / length.clamp_min(1e-30), 2.0)


def _turned(q, v, back=False):
    """Rotates vectors v [..., 3] by unit quaternions w x y z [..., 4], or by their inverses."""
    u = -q[..., 1:] if back else q[..., 1:]
    t = 2 * torch.linalg.cross(u, v)
    return v + q[..., :1] * t + torch.linalg.cross(u, t)


class Engine(_Base):
    """MimicKit's Engine on a :class:`tarsus.Batch`. Tensors are float32. Quaternions are x y z w, as in MimicKit. Joint
    positions are angles, distances and, for ball joints, rotation vectors.

    config: MimicKit's; sim_freq, control_freq, control_mode ("pos": stable PD within the step; "vel", "torque", "none") and
    `threads` are used. A world whose step fails stays frozen until its state is set again; :attr:`bad_worlds` counts such
    worlds.
    """

    def __init__(self, config, num_envs, device="cpu", visualize=False, record_video=False):
        if visualize or record_video:
            raise ValueError("visualize: is True, expected False: this engine has no window; record states and use tarsus view")
        if torch.device(device).type != "cpu":
            raise ValueError(f"device: is {device}, expected cpu")
        frequency, control = config.get("sim_freq", 120), config.get("control_freq", 30)
        if frequency < control or frequency % control:
            raise ValueError(f"sim_freq: is {frequency} Hz, expected a multiple of control_freq, {control} Hz")
        mode = config.get("control_mode", "none")
        if mode not in ("pos", "vel", "torque", "none"):
            raise ValueError(f"control_mode: is {mode!r}, expected pos (stable PD within the step), vel, torque or none")
        self._mode, self._num_envs, self._threads = ControlMode[mode], num_envs, config.get("threads", 1)
        self._timestep, self._sim_timestep, self._sim_steps = 1 / control, 1 / frequency, frequency // control
        self._envs, self._object, self._steps = 0, None, 0
        self._starts = []
        self.bad_worlds = 0

    # -- construction -----------------------------------------------------------------------------------------------------

    def get_name(self):
        return "tarsus"

    def create_env(self, env_id=None):
        if self._envs == self._num_envs:
            raise ValueError(f"env_id: is {self._envs}, expected at most {self._num_envs} environments")
        self._envs += 1
        return self._envs - 1

    def create_obj(self, env_id, obj_type, asset_file, name, is_visual=False, enable_self_collisions=True, fix_root=False,
                   start_pos=None, start_rot=None, color=None, disable_motors=False):
        if is_visual or fix_root or getattr(obj_type, "name", obj_type) not in ("articulated", 1):
            raise ValueError(f"name: is {name!r}, not an articulated character with a free root, expected one such character in each environment")
        new = (str(asset_file), bool(enable_self_collisions), bool(disable_motors))
        if len(self._starts) > env_id or (self._object or new) != new:
            raise ValueError(f"name: is {name!r}, a second or a different character, expected the same single character in each environment")
        if not new[0].endswith(".xml"):
            raise ValueError(f"asset_file: is {asset_file}, expected MJCF (.xml)")
        self._object = new
        self._starts.append((np.zeros(3) if start_pos is None else np.asarray(start_pos, float),
                             np.array([0, 0, 0, 1.0]) if start_rot is None else np.asarray(start_rot, float)))
        return 0

    def initialize_sim(self):
        if len(self._starts) != self._num_envs:
            raise ValueError(f"create_obj: {len(self._starts)} environments have a character, expected all {self._num_envs}")
        file, self_collisions, disabled = self._object
        self._model, self._kp, self._kd, self._limit = _load(file, self_collisions)
        model = self._model
        joints = list(model.joints)
        if joints[0].type != "free":
            raise ValueError(f"{file}: has a {joints[0].type} as its first joint, expected a free root")
        off = disabled or self._mode not in (ControlMode.pos, ControlMode.vel)
        drives = Drives(np.zeros(model.nv) if off or self._mode == ControlMode.vel else self._kp, np.zeros(model.nv) if off else self._kd)
        if not off:
            drives.force_limit = self._limit
        self._batch = Batch(model, self._num_envs, self._sim_timestep, self._threads, dtype="float32", drives=drives, contacts=True,
                            joint_limits=True)
        batch, n = self._batch, self._num_envs
        self._qpos, self._qvel = torch.from_numpy(batch.qpos), torch.from_numpy(batch.qvel)
        self._body_names = [body.name for body in model.bodies][1:]
        self._balls = [(j.qpos.start, j.qvel.start) for j in joints[1:] if j.type == "ball"]
        single = [j for j in joints[1:] if j.nv == 1]
        self._single = [j.qpos.start for j in single], [j.qvel.start for j in single]
        self._low, self._high = np.full(model.nv - 6, -np.pi, np.float32), np.full(model.nv - 6, np.pi, np.float32)
        for j in single:
            if j.limited:
                self._low[j.qvel.start - 6], self._high[j.qvel.start - 6] = j.range
        links = [body.link for body in list(model.bodies)[1:]]
        self._first_of_link = [(link, links.index(link)) for link in sorted(set(links))]
        bodies, dofs = len(self._body_names), model.nv - 6
        empty = lambda *shape: torch.zeros(n, *shape)  # noqa: E731
        self._root = dict(pos=self._qpos[:, :3], rot=empty(4), vel=self._qvel[:, :3], ang_vel=empty(3))
        self._dof = dict(pos=empty(dofs), vel=self._qvel[:, 6:], force=empty(dofs))
        self._body = dict(pos=empty(bodies, 3), rot=empty(bodies, 4), vel=empty(bodies, 3), ang_vel=empty(bodies, 3))
        self._command, self._ground, self._forces = empty(dofs), empty(bodies, 3), {}
        self._touched = np.zeros(n, bool)
        for env_id, (position, rotation) in enumerate(self._starts):
            self.set_root_pos(env_id, 0, position)
            self.set_root_rot(env_id, 0, rotation)
        self._look()

    def get_timestep(self):
        return self._timestep

    def get_sim_timestep(self):
        return self._sim_timestep

    def get_sim_time(self):
        return self._steps * self._timestep

    def get_num_envs(self):
        return self._num_envs

    def get_objs_per_env(self):
        return 1

    def get_gravity(self):
        return np.array(self._model.gravity)

    def get_obj_type(self, obj_id):
        try:
            from engines.engine import ObjType
        except ImportError:
            return 1
        return ObjType.articulated

    def get_obj_num_dofs(self, obj_id):
        return self._model.nv - 6

    def get_obj_num_bodies(self, obj_id):
        return len(self._body_names)

    def get_obj_body_names(self, obj_id):
        return list(self._body_names)

    def find_obj_body_id(self, obj_id, body_name):
        return self._body_names.index(body_name)

    def get_obj_torque_limits(self, env_id, obj_id):
        return self._limit[6:].astype(np.float32)

    def get_obj_dof_limits(self, env_id, obj_id):
        return self._low.copy(), self._high.copy()

    def get_obj_pd_gains(self, env_id, obj_id):
        return self._kp[6:].astype(np.float32), self._kd[6:].astype(np.float32)

    def calc_obj_mass(self, env_id, obj_id):
        return float(self._model.total_mass())

    def get_control_mode(self):
        return self._mode

    # -- a step -----------------------------------------------------------------------------------------------------------

    def set_cmd(self, obj_id, cmd):
        """[num_envs, dofs]: joint positions, velocities or forces, depending on the control mode; kept until the next command."""
        self._command[:] = cmd

    def set_body_forces(self, env_id, obj_id, body_id, forces):
        """Force [N] at the centre of mass during the next step, world axes."""
        _assign(self._forces.setdefault(body_id, torch.zeros(self._num_envs, 3)), env_id, forces)

    def step(self):
        batch, model = self._batch, self._model
        if self._touched.any():  # a new episode: nothing is carried over
            batch.reset(self._touched, batch.qpos.copy(), batch.qvel.copy())
            self._touched[:] = False
        if self._mode == ControlMode.pos:
            target = torch.from_numpy(batch.qpos_target)
            target[:, self._single[0]] = self._command[:, [v - 6 for v in self._single[1]]]
            for q, v in self._balls:
                target[:, q : q + 4] = _exponential(self._command[:, v - 6 : v - 3])
        elif self._mode == ControlMode.vel:
            batch.qvel_target[:, 6:] = self._command
        tau = np.zeros((self._num_envs, model.nv), np.float32)
        if self._mode == ControlMode.torque:
            tau[:, 6:] = np.clip(self._command, -self._limit[6:], self._limit[6:])
        for _ in range(self._sim_steps):
            batch.tau[:] = tau
            for body, force in self._forces.items():
                batch.apply_force(body + 1, force.numpy())
            before = self._qpos.clone()
            batch.step()
        self._forces.clear()
        self._steps += 1
        self.bad_worlds = int(np.count_nonzero(batch.status))
        self._dof["force"][:] = torch.from_numpy(tau[:, 6:]) if self._mode == ControlMode.torque else self._drive_force(before)
        self._look()

    def _drive_force(self, qpos):
        """Drive forces of the last simulation step, which began at qpos: the PD law at the end of the step, clamped to the
        limits."""
        if self._mode == ControlMode.none:
            return torch.zeros_like(self._command)
        kp, kd, limit = (torch.from_numpy(x.astype(np.float32)) for x in (self._kp, self._kd, self._limit))
        target, now = torch.from_numpy(self._batch.qpos_target), torch.from_numpy(self._batch.qvel_target) - self._qvel
        error, turned = torch.zeros_like(self._qvel), self._sim_timestep * self._qvel
        if self._mode == ControlMode.pos:
            q, v = self._single
            error[:, v] = target[:, q] - qpos[:, q] - turned[:, v]
            for q, v in self._balls:
                a, b = qpos[:, q : q + 4], target[:, q : q + 4]
                relative = torch.cat([(a * b).sum(-1, keepdim=True),
                                      a[:, :1] * b[:, 1:] - b[:, :1] * a[:, 1:] - torch.linalg.cross(a[:, 1:], b[:, 1:])], dim=-1)
                error[:, v : v + 3] = _logarithm(relative) - turned[:, v : v + 3]
        force = kp * error + kd * now
        for _, v in self._balls:
            length = torch.linalg.vector_norm(force[:, v : v + 3], dim=-1, keepdim=True)
            force[:, v : v + 3] *= (limit[v] / length).clamp(max=1)
        force[:, self._single[1]] = torch.clamp(force, -limit, limit)[:, self._single[1]]
        return force[:, 6:]

    def _look(self):
        """Tensors that do not share memory with the batch."""
        batch = self._batch
        q = self._qpos[:, 3:7]
        self._root["rot"][:] = q[:, [1, 2, 3, 0]]
        self._root["ang_vel"][:] = _turned(q, self._qvel[:, 3:6])
        self._dof["pos"][:, [v - 6 for v in self._single[1]]] = self._qpos[:, self._single[0]]
        for at, v in self._balls:
            self._dof["pos"][:, v - 6 : v - 3] = _logarithm(self._qpos[:, at : at + 4])
        seen = batch.measure(["position", "orientation", "velocity"])
        self._body["pos"][:] = torch.from_numpy(seen["position"][:, 1:])
        self._body["rot"][:] = torch.from_numpy(np.ascontiguousarray(seen["orientation"][:, 1:, [1, 2, 3, 0]]))
        self._body["ang_vel"][:] = torch.from_numpy(np.ascontiguousarray(seen["velocity"][:, 1:, :3]))
        self._body["vel"][:] = torch.from_numpy(np.ascontiguousarray(seen["velocity"][:, 1:, 3:]))
        for link, body in self._first_of_link:
            self._ground[:, body] = torch.from_numpy(np.ascontiguousarray(batch.ground_force[:, link]))

    # -- states -----------------------------------------------------------------------------------------------------------

    def get_root_pos(self, obj_id):
        return self._root["pos"]

    def get_root_rot(self, obj_id):
        return self._root["rot"]

    def get_root_vel(self, obj_id):
        return self._root["vel"]

    def get_root_ang_vel(self, obj_id):
        """In world axes."""
        return self._root["ang_vel"]

    def get_dof_pos(self, obj_id):
        return self._dof["pos"]

    def get_dof_vel(self, obj_id):
        return self._dof["vel"]

    def get_dof_forces(self, obj_id):
        """Forces of the drives in the last simulation step."""
        return self._dof["force"]

    def get_body_pos(self, obj_id):
        return self._body["pos"]

    def get_body_rot(self, obj_id):
        return self._body["rot"]

    def get_body_vel(self, obj_id):
        return self._body["vel"]

    def get_body_ang_vel(self, obj_id):
        return self._body["ang_vel"]

    def get_ground_contact_forces(self, obj_id):
        """[num_envs, bodies, 3] N. A body without a joint is part of the body that carries it, which reports its force."""
        return self._ground

    def get_contact_forces(self, obj_id):
        """The ground's forces, if the character does not collide with itself; otherwise ValueError, because other contact
        forces are not known here."""
        if self._object[1]:
            raise ValueError("get_contact_forces: forces between the character's own bodies are not available; expected get_ground_contact_forces, "
                             "or enable_self_collisions=False")
        return self._ground

    def _set(self, target, env_id, value):
        """_assign() to a part of the state. Returns the rows. The numbers of other rows do not change, to the bit."""
        _assign(target, env_id, value)
        rows = slice(None) if env_id is None else env_id
        self._touched[rows if isinstance(rows, slice) else np.asarray(rows)] = True
        return rows

    def _turn_velocity(self, rows):
        """The batch has the root's angular velocity in body axes."""
        self._qvel[rows, 3:6] = _turned(self._qpos[rows, 3:7], self._root["ang_vel"][rows], back=True)

    def set_root_pos(self, env_id, obj_id, root_pos):
        self._set(self._root["pos"], env_id, root_pos)

    def set_root_rot(self, env_id, obj_id, root_rot):
        rows = self._set(self._root["rot"], env_id, root_rot)
        self._qpos[rows, 3:7] = self._root["rot"][rows][..., [3, 0, 1, 2]]
        self._turn_velocity(rows)

    def set_root_vel(self, env_id, obj_id, root_vel):
        self._set(self._root["vel"], env_id, root_vel)

    def set_root_ang_vel(self, env_id, obj_id, root_ang_vel):
        self._turn_velocity(self._set(self._root["ang_vel"], env_id, root_ang_vel))

    def set_dof_pos(self, env_id, obj_id, dof_pos):
        rows = self._set(self._dof["pos"], env_id, dof_pos)
        position = self._dof["pos"][rows]
        for q, v in zip(*self._single):
            self._qpos[rows, q] = position[..., v - 6]
        for q, v in self._balls:
            self._qpos[rows, q : q + 4] = _exponential(position[..., v - 6 : v - 3])

    def set_dof_vel(self, env_id, obj_id, dof_vel):
        self._set(self._dof["vel"], env_id, dof_vel)

    def set_body_pos(self, env_id, obj_id, body_pos):
        """Sets what get_body_pos() returns until the next step, as in MimicKit's other engines. The state itself is that of
        the root and the joints."""
        _assign(self._body["pos"], env_id, body_pos)

    def set_body_rot(self, env_id, obj_id, body_rot):
        _assign(self._body["rot"], env_id, body_rot)

    def set_body_vel(self, env_id, obj_id, body_vel):
        _assign(self._body["vel"], env_id, body_vel)

    def set_body_ang_vel(self, env_id, obj_id, body_ang_vel):
        _assign(self._body["ang_vel"], env_id, body_ang_vel)

    # -- pictures (not supported) -----------------------------------------------------------------------------------------

    def set_camera_pose(self, pos, look_at):
        self._camera = np.asarray(pos, float), np.asarray(look_at, float)

    def get_camera_pos(self):
        return self._camera[0].copy()

    def get_camera_dir(self):
        along = self._camera[1] - self._camera[0]
        return along / np.linalg.norm(along)

    def render(self):
        pass

    def draw_lines(self, env_id, start_verts, end_verts, cols, line_width):
        pass

    def register_keyboard_callback(self, key_str, callback_func):
        pass

    def enabled_record_video(self):
        return False


def _assign(target, env_id, value):
    """Sets target [num_envs, ...], or its rows env_id (one or several indices), to value."""
    value = torch.as_tensor(np.asarray(value) if not isinstance(value, torch.Tensor) else value, dtype=torch.float32)
    if env_id is None:
        target[:] = value
    else:
        target[env_id] = value
