"""Learning tasks: a character that follows a clip, and a robot that follows a velocity command. :func:`make` makes the tasks
of the built-in models, and Gymnasium's locomotion tasks on Gymnasium's models.

>>> task = tarsus.tasks.make("HumanoidWalk")
>>> worlds = tarsus.VectorTask(task, worlds=64)
"""

import builtins
import importlib.util
import json
import os
import pathlib
import re

import numpy as np

from . import MODELS, CartPoleTask, Clip, Drives, LocomotionTask, Model, MotionTask, ValueError, VelocityTask  # noqa: A004
from .errors import expect, ordinary_file

_MOTIONS = {
    "HumanoidWalk": ("humanoid", "humanoid_walk"),
    "HumanoidRun": ("humanoid", "humanoid_run"),
    "HumanoidCartwheel": ("humanoid", "humanoid_cartwheel"),
    "HumanoidBackflip": ("humanoid", "humanoid_backflip"),
    "DogPace": ("dog", "dog_pace"),
    "DogTrot": ("dog", "dog_trot"),
    "DogCanter": ("dog", "dog_canter"),
}
# Gymnasium's v5, without the contact forces that its Ant and Humanoid observe and penalise.
_LOCOMOTION = {
    "HalfCheetah": ("half_cheetah.xml", dict(hidden=1, control_weight=0.1, noise=0.1, control_dt=0.05, time_limit=50.0)),
    "Ant": ("ant.xml", dict(hidden=2, control_weight=0.5, healthy_reward=1.0, low=0.2, high=1.0, noise=0.1, control_dt=0.05,
                            time_limit=50.0)),
    "Humanoid": ("humanoid.xml", dict(hidden=2, observe_bodies=True, speed_of_centre=True, forward_weight=1.25, control_weight=0.1,
                                      healthy_reward=5.0, low=1.0, high=2.0, noise=0.01, normal_velocity=False, control_dt=0.015,
                                      time_limit=15.0)),
}
# Bodies that may touch the ground besides the table's feet. In a cartwheel these are the hands, which belong to the forearms
# here.
_HANDS = {"HumanoidCartwheel": ["left_forearm", "right_forearm"]}
#: Names that :func:`make` accepts. The last three need gymnasium, whose models they use.
NAMES = [*_MOTIONS, "QuadrupedVelocity", "CartPole", *_LOCOMOTION]


def _task(kind, things, options, **given):
    """Returns kind(*things, **options, **given). Raises TypeError naming an option that is unknown or given twice."""
    known = re.findall(r"(\w+): ", kind.__init__.__nb_signature__[0][0])[len(things):]
    left = [name for name in known if name not in given]
    for name in options:
        if name not in left:
            of = "already set by this task" if name in given else f"not an option of tarsus.{kind.__name__}"
            raise TypeError(f"{name}: is {of}, expected {', '.join(left) or 'none'}")
    return kind(*things, **options, **given)


def _with(what, given, needed, others=()):
    """Returns the dict, which must have all keys of `needed` and otherwise only those of `others`."""
    names = ", ".join([*needed, *others])
    for name in [*expect(what, given, dict), *needed]:
        if name not in (*needed, *others):
            raise ValueError(f"{what}: has the key {name!r}, expected {names}")
        if name not in given:
            raise ValueError(f"{what}: lacks the key {name!r}, expected {names}")
    return given


def make(name, **options):
    """The task of this name, with the options of its class (:class:`tarsus.MotionTask`, :class:`tarsus.VelocityTask`,
    :class:`tarsus.LocomotionTask`).

    Raises ValueError for a name that is not in NAMES, and for a task of Gymnasium if Gymnasium is not installed.
    """
    if expect("task", name, str) in _LOCOMOTION:
        gymnasium = importlib.util.find_spec("gymnasium")
        if gymnasium is None:
            raise ValueError(f"task: is {name!r}, whose model is part of gymnasium, which is not installed: pip install 'tarsus[gym]'")
        file, defaults = _LOCOMOTION[name]
        path = pathlib.Path(gymnasium.origin).parent / "envs" / "mujoco" / "assets" / file
        return _task(LocomotionTask, [Model.load(path)], {**defaults, **options})
    if name == "CartPole":
        return _task(CartPoleTask, [Model.load(MODELS / "cart_pole.xml")], options)
    if name == "QuadrupedVelocity":
        calves = [f"{end}_{side}_calf" for end in ("front", "rear") for side in ("left", "right")]
        return _velocity_task(MODELS / "quadruped.xml", calves, options)
    if name not in _MOTIONS:
        raise ValueError(f"task: is {name!r}, expected one of {', '.join(NAMES)}")
    model, clip = _MOTIONS[name]
    table = json.loads((MODELS / "tasks" / f"{model}.json").read_text(encoding="utf-8"))
    table["feet"] += _HANDS.get(name, [])
    return _motion_task(MODELS / f"{model}.xml", MODELS / "clips" / f"{clip}.json", table, options)


def velocity_task(model, feet=(), **options):
    """A robot with position servos follows a velocity command.

    model: an object or a file, with a free root; its first keyframe, if any, is the stance. feet: names or indices of bodies.
    options: those of :class:`tarsus.VelocityTask`. Raises ValueError for names that the model does not have, and for actuators that
    are not position servos.
    """
    return _velocity_task(model, feet, options)


def _velocity_task(model, feet, options):
    if not isinstance(model, Model):
        model = Model.load(model)
    return _task(VelocityTask, [model], options, feet=expect("feet", feet, list, tuple))


def motion_task(model, clip, table, **options):
    """Motion tracking for any model with a clip that maps to it.

    model, clip: objects or files. table: a file or a dict. It gives the gains kp [N m/rad | N/m] and kd [N m s/rad | N s/m],
    the largest force [N m | N] and the reward weight of each joint, the reward weight of the root, and the bodies that are
    end effectors (position: in the body's frame [m]) and feet:
    ``{"root": {"weight": 1}, "joints": {"knee": {"kp": 500, "kd": 50, "force": 150, "weight": 0.3}, …}, "end_effectors":
    [{"body": "hand", "position": [0, 0, 0]}], "feet": ["foot"]}``. options: those of :class:`tarsus.MotionTask`. With
    ``reward="mimickit"`` the defaults of termination and reference are MimicKit's: ``distance_limit=1, follow_root=False,
    time_limit=10``; the reference then stays where the clip is.
    Raises ValueError for names that the model does not have, and for joints that the table leaves out; InputError for files
    that are missing or not ordinary files.
    """
    return _motion_task(model, clip, table, options)


def _motion_task(model, clip, table, options):
    if not isinstance(model, Model):
        model = Model.load(model)
    if not isinstance(clip, Clip):
        clip = Clip.load(str(clip), model)
    if not isinstance(table, dict):
        expect("table", table, dict, str, os.PathLike)
        try:
            table = json.loads(pathlib.Path(ordinary_file(table)).read_text(encoding="utf-8"))
        except builtins.ValueError as error:
            raise ValueError(f"table: {table} is not valid JSON: {error}") from None
    _with("table", table, ("root", "joints", "end_effectors", "feet"), ("format", "version", "comment"))
    joints = [joint.name for joint in model.joints]
    kp, kd, force = (np.zeros(model.nv) for _ in range(3))
    force[:6] = np.inf
    number = lambda what, value: expect(what, value, int, float, np.number)  # noqa: E731
    weight = [number("table's root, weight", _with("table's root", table["root"], ["weight"])["weight"])]
    unknown = sorted(expect("table's joints", table["joints"], dict).keys() - set(joints[1:]))
    if unknown:
        raise ValueError(f"table's joints: has {unknown}, which the model lacks, expected {joints[1:]}")
    for joint, name in zip(model.joints[1:], joints[1:]):
        if name not in table["joints"]:
            raise ValueError(f"table's joints: lacks {name!r}, expected all of {joints[1:]}")
        row = _with(f"table's joint {name!r}", table["joints"][name], ("kp", "kd", "force", "weight"))
        for to, key in ((kp, "kp"), (kd, "kd"), (force, "force")):
            to[joint.qvel] = number(f"table's joint {name!r}, {key}", row[key])
        weight.append(number(f"table's joint {name!r}, weight", row["weight"]))
    if options.get("reward") == "mimickit":
        options = {"distance_limit": 1.0, "follow_root": False, "time_limit": 10.0, **options}
    drives = Drives(kp, kd)
    drives.force_limit = force
    points = [(_with("table's end effector", p, ["body"], ["position"])["body"], *p.get("position", (0, 0, 0)))
              for p in expect("table's end_effectors", table["end_effectors"], list, tuple)]
    feet = expect("table's feet", table["feet"], list, tuple)
    return _task(MotionTask, [model, clip, drives], options, joint_weight=weight, end_effectors=points, feet=feet)
