"""Sources for free bodies, particles and recordings, and the function that opens a file or a name."""

import json
import os
import zipfile
import zlib
from os import PathLike
from pathlib import Path

import numpy as np

import tarsus

from ..errors import expect, ordinary_file
from .model_source import ModelSource
from .page import STEPS_A_SECOND, Frame, arrows
from .source import Source, finite, slider, spring_force

__all__ = ["ModelSource", "ParticleSource", "PlaybackSource", "RigidSource", "Source", "open_source"]


class RigidSource(Source):
    """Free bodies with contact: tarsus.RigidWorld of a model whose joints are all free, or of a named built-in scene."""

    can_push = True
    series = [("kinetic energy", "J"), ("potential energy", "J"), ("contacts", ""), ("penetration", "m"),
              ("contact force", "N"), ("residual", "m/s"), ("iterations", ""), ("collide", "ms"), ("match", "ms"),
              ("prepare", "ms"), ("terms", "ms"), ("integrate", "ms")]

    def __init__(self, model, name=None, **options):
        self.model = model if isinstance(model, tarsus.Model) else tarsus.Model.load(model)
        self.options = dict(options)
        self.world = self._make()
        self.dt = self.world.options["dt"]
        gravity = np.array(self.world.options["gravity"])
        self.down = gravity / np.linalg.norm(gravity) if gravity.any() else np.array([0, 0, -1.0])
        self.scene = json.loads(tarsus.scene_json(self.model))
        self.scene["name"] = name or self.scene["name"]
        poses = self.world.poses
        self.scene["extent"] = float(max(np.ptp(poses[:, :3], axis=0).max(initial=0.0) / 4, 0.5))
        self.start = self.state()
        self.report = None
        self.held = None

    def _make(self):
        return tarsus.RigidWorld.from_model(self.model, **self.options)

    def _poses(self):
        """Poses of the world and of each body of the model, in the model's order; bodies without a joint do not move."""
        qpos = self.model.qpos0.copy()
        for joint, pose in zip(self.model.joints, self.world.poses):
            qpos[joint.qpos] = pose
        return tarsus.poses_of(self.model, qpos)[0]

    @property
    def time(self):
        return self.origin + self.world.time

    origin = 0.0

    def step(self):
        if self.held is not None:
            self._pull()
        self.report = self.world.step()
        return None if self.report else f"{self.report.status} (Reset starts again)"

    def _index(self, body):
        """Index in the rigid world of a body of the scene."""
        link = self.model.bodies[body].link
        if link < 0:
            raise tarsus.ValueError(f"push: body {body} cannot move, expected a body with a joint")
        return link

    def _pull(self):
        body, point, target = self.held
        i = self._index(body)
        pose, velocity, forces = self.world.poses[i], self.world.velocities[i], np.zeros((self.world.nbody, 6))
        w, x, y, z = pose[3:]
        q = np.array([x, y, z])
        arm = point + 2 * np.cross(q, np.cross(q, point) + w * point)
        at, v = pose[:3] + arm, velocity[:3] + np.cross(velocity[3:], arm)
        force = spring_force(1 / self.world.masses[i], target - at, v, self.dt)
        forces[i, :3], forces[i, 3:] = force, np.cross(arm, force)
        self.world.forces = forces

    def push(self, body, world, point, target):
        if world != 0 or not 0 < body < len(self.scene["bodies"]):
            raise tarsus.ValueError(f"push: there is no body {body} in world {world}")
        self._index(body)
        self.held = body, np.array(point, float), np.array(target, float)

    def release(self):
        self.held = None
        self.world.forces = np.zeros((self.world.nbody, 6))

    def reset(self, keyframe=None):
        self.held = None
        self.world = self._make()
        self.origin, self.report = 0.0, None

    def state(self):
        return self.time, self.world.poses, self.world.velocities

    def restore(self, state):
        time, poses, velocities = state
        self.world.poses, self.world.velocities = poses, velocities
        self.origin = time - self.world.time

    def controls(self):
        o = self.world.options
        return [slider("dt", self.dt, 1 / 1000, 1 / 30, "s", log=True, label="step"),
                slider("gravity", float(np.linalg.norm(o["gravity"])), 0, 20, "m/s²"),
                slider("friction", max((s["friction"] for s in self.world.shapes), default=0.5), 0, 2),
                slider("iterations", int(o["iterations"]), 1, 200, log=True)]

    def control(self, name, value):
        if name in ("dt", "gravity", "friction", "iterations"):
            value = finite(name, value)
        if name == "dt":
            self.dt = float(np.clip(value, 1 / 1000, 1 / 30))
            self.options["dt"] = self.dt
            self.world.set_options(dt=self.dt)
        elif name == "gravity":
            self.options["gravity"] = tuple(value * self.down)
            self.world.set_options(gravity=self.options["gravity"])
        elif name == "iterations":
            self.options["iterations"] = int(np.clip(round(value), 1, 200))
            self.world.set_options(iterations=self.options["iterations"])
        elif name == "friction":  # surface options can be set only at construction
            state = self.state()
            self.options["friction"] = float(np.clip(value, 0, 2))
            self.world = self._make()
            self.restore(state)
        else:
            super().control(name, value)

    def frame(self):
        found = self.world.contacts
        contacts = np.concatenate([found["position"], found["force"], found["normal"], found["friction"][:, None]],
                                  axis=1).astype(np.float32)
        r = self.report
        stages = [1e3 * s for s in (r.seconds.values() if r else [0] * 5)]
        values = [self.world.kinetic_energy, self.world.potential_energy, r.contacts if r else 0,
                  r.penetration_max if r else 0, float(np.linalg.norm(contacts[:, 3:6], axis=1).sum()),
                  r.residual if r else 0, r.iterations if r else 0, *stages]
        return Frame(self.time, self._poses(), None, arrows(contacts), values)


class ParticleSource(Source):
    """A particle system under velocity Verlet."""

    series = [("temperature", ""), ("kinetic energy", ""), ("potential energy", ""), ("total energy", ""), ("violation", "")]

    COLOURS = {"O": [0.85, 0.2, 0.2], "H": [0.93, 0.93, 0.93], "C": [0.3, 0.32, 0.35], "N": [0.25, 0.4, 0.9]}

    def __init__(self, source, timestep=None, name=None, bonds=None, temperature=None, element=""):
        self.named, self.timestep, self.element = source, timestep, element  # element: gives the radius of particles of unknown species
        expect("source", source, str, tarsus.ParticleSystem)
        self.system = tarsus.ParticleSystem.load(source) if isinstance(source, str) else source
        if not len(self.system):
            raise tarsus.InputError(f"{source}: has no particles to show")
        if temperature:
            self.system.set_temperature(temperature)
        self.system.prepare()
        self.bonds = bonds if bonds is not None else self.system.distances.tolist()
        self._restart(0.0)
        self.start = self.state()
        self.scene = self._scene(name)

    def _restart(self, time):
        self.verlet = tarsus.VelocityVerlet(self.system, self.timestep)
        self.origin = time
        # The default steps of ropes and cloth are a fraction of a millisecond: too slow to watch one by one.
        self.each = max(1, round(1e-3 / self.verlet.timestep)) if self.timestep is None and self.system.units == "si" else 1
        self.unit = self.each * self.verlet.timestep
        self.dt = 1 / STEPS_A_SECOND  # the label shows the system's own

    def _scene(self, name):
        x = self.system.position
        n, species = len(self.system), self.system.species
        lengths = [np.linalg.norm(x[a] - x[b]) for a, b in self.bonds]
        spans = np.ptp(x, axis=0)
        spans = spans[spans > 1e-3 * spans.max()]  # all particles may lie on a line or in a plane
        size = float(np.median(lengths)) if lengths else float((np.prod(spans) / n) ** (1 / max(len(spans), 1)))
        shapes = []
        for i in range(n):
            kind = species[i][:1] if len(species) == n else self.element
            radius = size * (0.18 if kind == "H" else 0.26)
            shapes.append({"body": i, "type": "sphere", "size": [radius, 0, 0],
                           "rgba": [*self.COLOURS.get(kind, [0.3, 0.55, 0.8]), 1]})
        bodies = [{"name": f"{species[i] if len(species) == n else 'particle'} {i}", "mass": float(m), "link": -1}
                  for i, m in enumerate(self.system.mass)]
        return {"name": name or str(self.named), "bodies": bodies, "shapes": shapes, "meshes": [], "joints": [],
                "loops": [], "keyframes": [], "bonds": self.bonds, "extent": 2 * size, "units": self.system.units,
                "timestep": self.unit, "box": self.system.box.tolist()}

    steps = 0

    @property
    def time(self):
        return self.steps * self.dt

    def step(self):
        report = self.verlet.step(self.each)
        if not report:
            return report.message
        self.steps += 1
        return None

    def reset(self, keyframe=None):
        self.restore(self.start)

    def state(self):
        return self.steps, self.system.position.copy(), self.system.velocity.copy()

    def restore(self, state):
        self.steps, self.system.position, self.system.velocity = state
        self._restart(0.0)

    def frame(self):
        poses = np.zeros((len(self.system), 7), np.float32)
        poses[:, :3], poses[:, 3] = self.system.position, 1
        kinetic = self.system.kinetic_energy()
        potential = (self.verlet.energies if self.verlet.steps else self.system.forces()[1])["potential"]
        values = [self.system.temperature(), kinetic, potential, kinetic + potential, self.system.violation()]
        return Frame(self.time, poses, None, values=values)


def checked_states(where, model, named, arrays):
    """The arrays "time", "qpos" and, if there, "qvel" and "target", as float64. Raises InputError if they cannot be played."""
    arrays = {name: np.asarray(values) for name, values in arrays.items()}
    for name, values in arrays.items():
        if values.dtype.kind not in "fiu":
            raise tarsus.InputError(f"{where}: has {name} of {values.dtype}, expected float64")
    arrays = {name: values.astype(float) for name, values in arrays.items()}
    times = arrays["time"]
    if times.ndim != 1 or not len(times):
        raise tarsus.InputError(f"{where}: has time of shape {times.shape}, expected one or more frames")
    for name, n in (("qpos", model.nq), ("qvel", model.nv), ("target", model.nq)):
        shape = arrays[name].shape if name in arrays else (len(times), n)
        if shape != (len(times), n):
            raise tarsus.InputError(f"{where}: has {name} of shape {shape}, expected ({len(times)}, {n}) for its times and the model {named}")
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise tarsus.InputError(f"{where}: has {name} that is not finite, in frame {np.argwhere(~np.isfinite(values))[0][0]}")
    if not (np.diff(times) > 0).all():
        raise tarsus.InputError(f"{where}: has times that do not increase, after frame {np.flatnonzero(np.diff(times) <= 0)[0]}")
    return arrays


class PlaybackSource(Source):
    """A recording (npz of `tarsus run` or `tarsus scene`), the states of a loop of yours, or a clip, played as it is.

    times [n] [s], increasing. qpos [n][nq], qvel [n][nv], target [n][nq].
    keyframe: keyframe that gives the poses of mocap bodies.
    Raises InputError, as for a recording, if a size does not fit, a number is not finite or the times do not increase.
    """

    def __init__(self, model, times, qpos, qvel=None, target=None, name=None, keyframe=None):
        self.scene = json.loads(tarsus.scene_json(model))
        optional = {name: values for name, values in (("qvel", qvel), ("target", target)) if values is not None}
        states = checked_states("states", model, self.scene["name"], {"time": times, "qpos": qpos, **optional})
        self.model, self.times, self.qpos = model, states["time"], states["qpos"]
        self.qvel, self.target = states.get("qvel"), states.get("target")
        self.scene["name"] = name or self.scene["name"]
        poses = tarsus.poses_of(model, model.qpos0)[0, :, :3]
        self.scene["extent"] = float(max(np.ptp(poses[1:], axis=0).max(initial=0.0), 1e-3)) if len(poses) > 1 else 1.0
        self.series = [("kinetic energy", "J"), ("potential energy", "J")] if qvel is not None else []
        if target is not None:
            self.series = [("tracking error", "m"), *self.series]
        self.data = tarsus.Data(model)
        if keyframe is not None:
            self.data.reset(keyframe)
        self.mocap = self.data.mocap_pos.copy(), self.data.mocap_quat.copy()
        self.spacing = float(np.diff(self.times).mean()) if len(self.times) > 1 else 1 / 60
        self.index = 0

    @property
    def dt(self):
        """Time until the next frame; at the end, the mean spacing [s]."""
        return self.spacing if self.at_end else float(self.times[self.index + 1] - self.times[self.index])

    @property
    def time(self):
        return float(self.times[self.index])

    @property
    def at_end(self):
        return self.index + 1 >= len(self.times)

    def step(self):
        if self.at_end:
            self.index = 0
        else:
            self.index += 1
        return None

    def reset(self, keyframe=None):
        self.index = 0

    def state(self):
        return self.index

    def restore(self, state):
        self.index = state

    def frame(self):
        i, values = self.index, []
        poses = tarsus.poses_of(self.model, np.ascontiguousarray(self.qpos[i]), *self.mocap)[0]
        ghost = None if self.target is None else tarsus.poses_of(self.model, np.ascontiguousarray(self.target[i]), *self.mocap)[0]
        if ghost is not None:
            moving = [k for k, b in enumerate(self.scene["bodies"]) if k and b["mass"] > 0]
            values.append(float(np.linalg.norm(poses[moving, :3] - ghost[moving, :3], axis=1).mean()))
        if self.qvel is not None:
            qpos, qvel = np.ascontiguousarray(self.qpos[i]), np.ascontiguousarray(self.qvel[i])
            tarsus.kinematics(self.model, self.data, qpos, qvel)
            energy = tarsus.energy(self.model, self.data, qpos, qvel)
            values += [energy.kinetic, energy.potential + energy.spring]
        tendons = tarsus.tendon_segments(self.model, np.ascontiguousarray(self.qpos[i]), *self.mocap)
        return Frame(self.time, poses, ghost, values=values, tendons=tendons)


# -- opening --

MODELS = (".xml", ".mjcf", ".urdf")
CLIPS = (".json", ".bvh", ".txt", ".amc", ".pkl")
PARTICLES = (".sys", ".xyz", ".extxyz", ".data", ".lmp", ".lammps")


READING = ("lenient", "fix_balance", "floating_base", "package_paths")  # options of Model.load, for a file
OF_RECORDINGS = ("model", *READING)
OF_CLIPS = ("model", "mapping", *READING)
OF_PARTICLES = ("timestep", "name", "bonds", "temperature", "element")
NOT_OF_SCENES = (*READING, "data", "stepper", "model", "clip", "mapping", "worlds", "gains", "contacts", "keyframe", "plain", "force_limit", "loops")


def refuse(kind, options, known=None, unknown=()):
    """Raises ValueError for an option without effect on this kind: one in `unknown`, or one not in `known`."""
    for name, value in options.items():
        if value is not None and (name in unknown if known is None else name not in known):
            raise tarsus.ValueError(f"{name}: has no effect on {kind}" + (f", which takes {', '.join(known)}" if known else ""))


def open_source(what, data=None, *, model=None, clip=None, mapping=None, **options):
    """Returns the Source for a model, a source, a file (model, recording, clip, particles), a scene or a built-in system.

    model: the model file of a recording or a clip. The other options are those of ModelSource or RigidSource and, for a
    model file, those of Model.load; a recording uses those of its run. Raises ValueError for an option without effect.
    """
    given = {"data": data, "model": model, "clip": clip, "mapping": mapping, **options}
    reading = {name: options.pop(name) for name in READING if name in options}
    if isinstance(what, Source):
        refuse("what is a source already", given, ())
        return what
    expect("what", what, tarsus.Model, tarsus.ParticleSystem, Source, str, PathLike)
    text, suffix = str(what), "" if isinstance(what, (tarsus.Model, tarsus.ParticleSystem)) else Path(what).suffix.lower()
    if isinstance(what, tarsus.Model) or suffix in MODELS:
        refuse("a model", given, unknown=("model",))
        refuse("a model without a clip", {} if clip else given, unknown=("mapping",))
        if suffix:
            refuse("a model that is read from its file, whose data nobody else has", {"data": data}, unknown=("data",))
            return open_model(text, clip, mapping, reading, options)
        refuse("a model that is read", reading, ())
        return ModelSource(what, data, clip=clip_on(what, clip, mapping), **options)
    if suffix == ".npz" and not is_motion(text):
        refuse("a recording", given, OF_RECORDINGS)
        return open_recording(text, model, reading)
    if suffix in (*CLIPS, ".npz"):
        refuse("a clip", given, OF_CLIPS)
        return open_clip(text, model, mapping, reading)
    name = text.split(":")[0]
    if isinstance(what, tarsus.ParticleSystem) or suffix in PARTICLES or name in particle_names():
        refuse("a particle system", given, OF_PARTICLES)
        return ParticleSource(what if isinstance(what, tarsus.ParticleSystem) else text, **options)
    refuse("a scene of free bodies", given, unknown=NOT_OF_SCENES)
    if name not in [entry[0].split(":")[0] for entry in tarsus.builtin_scenes()]:
        raise tarsus.ValueError(f"{text!r} is neither a file that can be shown ({', '.join(MODELS + ('.npz',) + CLIPS + PARTICLES)}) nor the name of a scene or "
                         f"system: {', '.join([entry[0] for entry in tarsus.builtin_scenes()] + particle_names())}")
    return RigidSource(tarsus.Model.load(text), text, **options)


def particle_names():
    listed = tarsus.builtin_particle_systems()
    return [entry[0].split(":")[0] for entry in (listed.items() if isinstance(listed, dict) else listed)]


def clip_on(model, clip, mapping=None):
    """The clip in a file; anything else is returned as it is."""
    return tarsus.Clip.load(clip, model, mapping) if isinstance(clip, (str, Path)) else clip


def open_model(path, clip, mapping, reading, options):
    model = tarsus.Model.load(path, **reading)
    clip = clip_on(model, clip, mapping)
    free = [joint.type == "free" for joint in model.joints]
    if clip is None and len(free) >= 8 and all(free) and not options:
        try:
            return RigidSource(model, Path(path).stem)
        except tarsus.InputError:
            pass  # it contains elements that a scene of free bodies does not simulate
    return ModelSource(model, clip=clip, name=model_name(model, path), **options)


def model_name(model, path):
    return json.loads(tarsus.scene_json(model))["name"] or Path(path).stem


def is_motion(path):
    """Whether an .npz contains an AMASS motion."""
    try:
        with np.load(ordinary_file(path)) as file:
            return "meta" not in file and ("poses" in file or "root_orient" in file)
    except (tarsus.InputError, OSError, EOFError, zipfile.BadZipFile, zlib.error, ValueError, TypeError):
        return False  # open_recording() reports the error


def words_of(meta):
    """The arguments of the run that made the recording."""
    try:
        words = json.loads(meta.get("arguments") or "[]")  # a word that is not UTF-8 is a list of its bytes
        return [os.fsdecode(bytes(word)) if isinstance(word, list) else str(word) for word in words]
    except (TypeError, ValueError):
        return []


def arguments_of(meta):
    """(option, value) for each of them."""
    return [word.partition("=")[::2] for word in words_of(meta)]


def model_file_of(meta):
    """The model's file. A name that is not UTF-8 is complete among the arguments alone."""
    named = meta.get("model_file")
    if "\ufffd" not in (named or ""):
        return named
    return next((word for word in words_of(meta) if os.fsencode(word).decode("utf-8", "replace") == named), named)


def reading_of(meta):
    """The options of Model.load among the arguments of the run that made the recording."""
    given = arguments_of(meta)
    names = [name for name, _ in given]
    folders = [str(Path(meta.get("folder") or "") / value) for name, value in given if name == "--package-path"]
    return {"lenient": "--lenient" in names, "floating_base": "--floating-base" in names,
            "fix_balance": ("--fix", "balance") in given, "package_paths": folders}


def open_recording(path, model=None, reading=None):
    """A recording. Its model is the file that it names, or the given one, read with the options of its run or the given ones.

    With a given model, time and qpos are enough.
    """
    try:
        with np.load(ordinary_file(path)) as file:
            arrays = {name: np.array(file[name]) for name in ("meta", "time", "qpos", "qvel", "target") if name in file}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, TypeError) as error:
        reason = error if zipfile.is_zipfile(path) else "this is no .npz file"  # NumPy advises to unpickle it
        raise tarsus.InputError(f"{path}: is not a recording or is incomplete: {reason}") from None
    if "meta" not in arrays and not model:
        raise tarsus.InputError(f"{path}: is not a recording: the array \"meta\" is missing; name the model of your own time and qpos with --model")
    try:
        meta = dict(json.loads(bytes(arrays.pop("meta", b"{}")).decode("utf-8", "replace")))
    except (ValueError, TypeError) as error:
        raise tarsus.InputError(f"{path}: is not a recording: \"meta\" is not a JSON object: {error}") from None
    if meta.get("format") == "tarsus-capture":
        raise tarsus.InputError(f"{path}: is a captured world, not a recording: tarsus replay repeats its step")
    for name in ("time", "qpos"):
        if name not in arrays:
            raise tarsus.InputError(f"{path}: is not a recording: the array \"{name}\" is missing")
    for key in ("model_file", "folder"):
        if not isinstance(meta.get(key) or "", str):
            raise tarsus.InputError(f"{path}: is not a recording: {key} is {meta[key]!r}, expected a name")
    named = model or model_file_of(meta)
    if not named:
        raise tarsus.InputError(f"{path}: does not name its model file; name it with --model")
    places = [Path(folder) / named for folder in ("", Path(path).parent, meta.get("folder", ""))]  # the last: of the run
    named = next((place for place in places if place.exists()), named)
    loaded = tarsus.Model.load(named, **{**reading_of(meta), **(reading or {})})
    arrays = checked_states(path, loaded, named, arrays)
    started = dict(arguments_of(meta)).get("--keyframe")
    keyframe = next((i for i, named in enumerate(loaded.keyframes) if started in (named, str(i))), None)
    return PlaybackSource(loaded, arrays["time"], arrays["qpos"], arrays.get("qvel"), arrays.get("target"),
                          name=Path(path).stem, keyframe=keyframe)


def open_clip(path, model, mapping=None, reading=None):
    """A clip without dynamics, on its model."""
    if model is None:
        beside = Path(path).parent.parent / f"{Path(path).stem.split('_')[0]}.xml"
        if not beside.exists():
            tarsus.MotionClip.load(path, mapping)  # raises for what is no clip
            raise tarsus.InputError(f"{path}: is a motion clip; name the model to show it on with --model")
        model = beside
    loaded = tarsus.Model.load(model, **(reading or {}))
    clip = tarsus.Clip.load(path, loaded, mapping)
    times = np.arange(0, clip.duration + 1e-9, 1 / 60)
    states = [clip.sample(t) for t in times]
    return PlaybackSource(loaded, times, np.array([q for q, _ in states]), np.array([v for _, v in states]),
                          name=clip.name)
