"""The scenes of `tarsus demo`: a line of description each, and how to open them."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

import tarsus

from .source import finite, slider
from .sources import ModelSource, ParticleSource, RigidSource

THUMBNAILS = Path(__file__).with_name("thumbnails")


def models():
    """Folder of the built-in models: TARSUS_MODELS, the package's own, or `models` here."""
    for folder in (os.environ.get("TARSUS_MODELS"), tarsus.MODELS, "models"):
        if folder and (Path(folder) / "humanoid.xml").exists():
            return Path(folder)
    raise FileNotFoundError("the built-in models are not found: set TARSUS_MODELS to their folder")


def tracked(model, clip, **options):
    loaded = tarsus.Model.load(models() / f"{model}.xml")
    return ModelSource(loaded, clip=tarsus.Clip.load(models() / "clips" / f"{clip}.json", loaded), name=clip, **options)


def loop(name, **options):
    return ModelSource(tarsus.Model.load(models() / "loops" / f"{name}.xml"), contacts=False, dt=1 / 500, name=name, **options)


class Sway:
    """Reference strokes of the Stewart platform's legs: sines, each a sixth of a period behind its neighbour's, which grow
    from rest to 6 cm within a second."""

    def __init__(self, model):
        self.rest, self.nv = model.qpos0.copy(), model.nv
        self.strokes = np.array([joint.qpos.start for joint in model.joints if joint.type == "slide"])
        self.speeds = np.array([joint.qvel.start for joint in model.joints if joint.type == "slide"])

    def sample(self, t):
        t = np.asarray(t, float)[..., None]
        angle, size = np.pi * t + np.pi / 3 * np.arange(len(self.strokes)), 0.06 * np.clip(t, 0, 1)
        qpos = np.broadcast_to(self.rest, (*angle.shape[:-1], len(self.rest))).copy()
        qvel = np.zeros((*angle.shape[:-1], self.nv))
        qpos[..., self.strokes] += size * np.sin(angle)
        qvel[..., self.speeds] = size * np.pi * np.cos(angle) + 0.06 * (t < 1) * np.sin(angle)
        return qpos, qvel


def stewart():
    """Only the strokes are driven; the loops determine the hinges and the platform."""
    model = tarsus.Model.load(models() / "loops/stewart.xml")
    source = ModelSource(model, clip=Sway(model), gains=(2e4, 1e3, 0, 0), dt=1 / 500, contacts=False, name="stewart", ghost=False)
    driven = np.isin(np.arange(model.nv), source.clip.speeds)
    source.kp, source.kd = source.kp * driven, source.kd * driven
    source.drives.kp, source.drives.kd = source.kp, source.kd
    return source


def rigid(name, **options):
    return RigidSource(tarsus.Model.load(models() / "scenes" / f"{name}.xml"), name, **options)


def rope():
    return ModelSource(tarsus.Model.load(models() / "scenes/rope_on_peg.xml"), name="rope")


def snake_on_floor():
    source = tracked("snake195", "snake195_slither", dt=1 / 60, contacts=True)
    return source


def force_limits():
    """The humanoid with drives limited to 60 N m at the end of the step."""
    source = tracked("humanoid", "humanoid_walk")
    source.limit_forces(60.0)
    return source


def fall():
    """Starts half a metre above the floor, without drives."""
    source = ModelSource(tarsus.Model.load(models() / "humanoid.xml"), contacts=True, name="fall", dt=1 / 240)
    source.data.qpos[2] += 0.5
    source.origin = source.data.qpos.reshape(1, -1).copy(), source.data.qvel.reshape(1, -1).copy(), source.data.act.copy()
    return source


def c60(radius=3.55):
    """Sixty carbon atoms as a truncated icosahedron with 90 bonds; angstrom, femtoseconds."""
    golden = (1 + 5**0.5) / 2
    corners = {}
    for a, b, c in ((0, 1, 3 * golden), (1, 2 + golden, 2 * golden), (golden, 2, 2 * golden + 1)):
        for signs in np.ndindex(2, 2, 2):
            v = [x * (1 - 2 * s) + 0.0 for x, s in zip((a, b, c), signs)]
            for k in range(3):
                turned = [v[(i + k) % 3] for i in range(3)]
                corners[tuple(round(c, 6) for c in turned)] = turned
    x = np.array([corners[key] for key in sorted(corners)])
    distance = np.linalg.norm(x[:, None] - x[None], axis=2)
    edge = distance[distance > 1e-6].min()
    x *= radius / np.linalg.norm(x[0])
    pairs = [(i, j) for i in range(60) for j in range(i) if distance[i, j] < 1.01 * edge]
    return x, pairs


class PolicySource(ModelSource):
    """A character under a trained policy: one action per control step of the task sets its drives."""

    def __init__(self, model, clip, task, policy, **options):
        self.task, self.policy, self.bounds, self.due = task, policy, task.action_bounds, 0.0
        super().__init__(model, clip=clip, dt=task.control_dt / task.substeps, contacts=True, ghost=False, **options)
        self.drives = task.drives
        self.kp, self.kd = self.drives.kp.copy(), self.drives.kd.copy()

    def _target(self, time, first=None):
        if time == 0:
            self.due = 0.0
            return tuple(x[None] for x in self.task.reference(np.zeros(4)))
        began = time - self.dt
        if began > self.due - 1e-9 or began < self.due - 1.5 * self.task.control_dt:  # the clock was set back
            memory = np.array([0, began / self.task.control_dt, 0, 0])  # time at which the clip began, steps since then, position of the clip
            state = [np.ascontiguousarray(x[0], np.float64) for x in (self._qpos(), self._qvel())]
            action = np.clip(self.policy(self.task.observe(*state, memory)), *self.bounds)
            self.aim, self.due = self.task.targets(*state, memory, action), began + self.task.control_dt
        return self.aim[None], np.zeros((1, self.model.nv))


def learned(skill, name):
    """A policy trained by `python -m tarsus.learn`. The walker withstands gentle pulls."""
    task = tarsus.tasks.make(f"Humanoid{skill.capitalize()}", relative_action=True, start=0.0)
    model = tarsus.Model.load(models() / "humanoid.xml")
    clip = tarsus.Clip.load(models() / "clips" / f"humanoid_{skill}.json", model)
    return PolicySource(model, clip, task, tarsus.learn.Policy.load(models() / "policies" / f"humanoid_{skill}.npz"), name=name)


class CommandSource(ModelSource):
    """A robot under a policy trained on a :class:`tarsus.VelocityTask`; sliders set its command."""

    COMMAND = {"forward": ("m/s", 0), "left": ("m/s", 1), "turn": ("rad/s", 2)}

    def __init__(self, model, task, policy, command=(0.6, 0.0, 0.3), **options):
        self.task, self.policy, self.bounds = task, policy, task.action_bounds
        self.command, self.action, self.due = np.array(command), np.zeros(task.action_size), 0.0
        super().__init__(model, keyframe=0, dt=task.control_dt / task.substeps, contacts=True, **options)

    def reset(self, keyframe=None):
        super().reset(keyframe)
        self.action[:], self.due = 0, 0.0

    def step(self):
        due = self.due
        if self.time > due - 1e-9 or self.time < due - 1.5 * self.task.control_dt:  # the clock was set back
            # steps, seed, command, change, action, the feet's times in the air
            memory = np.concatenate([np.zeros(2), self.command, np.zeros(1), self.action, np.zeros(4)])
            state = [np.ascontiguousarray(x[0], np.float64) for x in (self._qpos(), self._qvel())]
            self.action = np.clip(self.policy(self.task.observe(*state, memory)), *self.bounds)
            self.data.ctrl[:] = self.task.targets(*state, memory, self.action)
            self.due = self.time + self.task.control_dt
        return super().step()

    def controls(self):
        command = [slider(name, float(self.command[i]), -1, 1, unit, label=f"command: {name}") for name, (unit, i) in self.COMMAND.items()]
        return command + [c for c in super().controls() if not c["name"].startswith("ctrl ")]

    def control(self, name, value):
        if name in self.COMMAND:
            self.command[self.COMMAND[name][1]] = np.clip(finite(name, value), -1, 1)
        else:
            super().control(name, value)


def robot():
    """A policy trained by `python -m tarsus.learn quadruped`."""
    task = tarsus.tasks.make("QuadrupedVelocity")
    return CommandSource(tarsus.Model.load(models() / "quadruped.xml"), task,
                         tarsus.learn.Policy.load(models() / "policies" / "quadruped.npz"), name="robot")


def buckyball():
    x, pairs = c60()
    system = tarsus.ParticleSystem(np.full(60, 12.011), x, units="angstrom_fs")
    for i, j in pairs:
        system.add_distance(i, j, float(np.linalg.norm(x[i] - x[j])))
    return ParticleSource(system, name="C60", bonds=pairs, temperature=600.0, element="C")


@dataclass(frozen=True)
class Scene:
    line: str
    open: Callable
    seconds: float = 4.0  # duration of a film or page of it
    picture: float = 1.0  # [s] time of its thumbnail


SCENES = {
    "walk": Scene("A humanoid with 34 degrees of freedom follows a walk, 30 steps a second", lambda: tracked("humanoid", "humanoid_walk")),
    "policy": Scene("A humanoid walks on its own feet; a trained policy controls its drives", lambda: learned("walk", "policy")),
    "cartwheel": Scene("A humanoid turns one cartwheel after the other; a trained policy controls its drives",
                       lambda: learned("cartwheel", "cartwheel"), 5.0, 1.1),
    "robot": Scene("A robot with servos follows the velocity of its sliders; a trained policy controls the servos", robot),
    "canter": Scene("A dog with 72 degrees of freedom follows a canter, 60 steps a second", lambda: tracked("dog", "dog_canter", dt=1 / 60)),
    "snake": Scene("A snake with 195 degrees of freedom slithers on the floor, in contact all along", snake_on_floor, 3.0),
    "limits": Scene("A walk with at most 60 N m in each joint; the limit holds at the end of every step", force_limits),
    "four-bar": Scene("A four-bar linkage, its loop closed by the constraint solver", lambda: loop("four_bar")),
    "stewart": Scene("A Stewart platform sways on six driven legs, which close six loops", stewart),
    "balls": Scene("8,000 balls fall into a box", lambda: RigidSource("balls:20:20", dtype="float32", name="8,000 balls"), 3.0, 2.0),
    "cards": Scene("A house of cards, held up by friction", lambda: rigid("card_house"), 3.0),
    "dominoes": Scene("A row of dominoes; the first one falls", lambda: rigid("domino_row")),
    "fall": Scene("A humanoid without drives falls to the floor", fall, 3.0),
    "rope": Scene("A rope over a peg, its links held together by the constraint solver", rope),
    "c60": Scene("C60: sixty atoms, ninety rigid bonds", buckyball),
    "water": Scene("216 rigid water molecules, converged to rounding at every step", lambda: ParticleSource("water216", name="water"), 2.0),
    "crowd": Scene("A thousand humanoids walk, each at its own phase of the clip",
                   lambda: tracked("humanoid", "humanoid_walk", worlds=1000), 2.0),
}


def open_scene(name):
    if name not in SCENES:
        raise tarsus.ValueError(f"unknown scene {name!r}, expected one of {', '.join(SCENES)}")
    return SCENES[name].open()
