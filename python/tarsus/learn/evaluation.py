"""Evaluation of a policy."""

import numpy as np

from .. import MotionTask, VectorTask
from ..errors import ValueError, expect  # noqa: A004 (the C++ name)

MOST_THREADS = 256  #: of a VectorTask


def whole_episodes(task, memory):
    """[worlds] number of control steps to the end of an episode that starts with this memory [worlds, n]: to the time limit,
    or to the end of a clip that does not loop, rounded up. nan for a user-defined task without a limit."""
    seconds = np.full(len(memory), getattr(task, "time_limit", None) or np.nan)
    if isinstance(task, MotionTask) and not task.loops:
        seconds = np.minimum(seconds, task.clip_duration - memory[:, 0])  # memory[:, 0] is the time in the clip at which an episode starts
    return np.maximum(1, np.ceil((seconds - 1e-9) / task.control_dt))


LARGEST_OFFSET = 0.1  #: [m] largest offset of a centre of mass along each axis for share 1
#: What vary() multiplies: each number of a world by its own factor (the attribute of Model counts them), or all by one (None).
_FACTORS = {"mass_scale": "nbody", "damping_scale": "njoint", "armature_scale": "njoint", "friction_loss_scale": "njoint", "kp_scale": "nv",
            "kd_scale": "nv", "force_scale": "nv", "friction_scale": None, "actuator_gain_scale": None, "actuator_damping_scale": None,
            "actuator_force_scale": None}


def vary(worlds, share, seed=0):
    """Gives each world of a VectorTask a model of its own, until set_parameters() or clear_parameters().

    Factors from 1 - share to 1 + share multiply the mass of each body, damping, armature and dry friction of each joint, and
    gains and force limit of each drive. One such factor each multiplies the friction of all geoms, and gains, damping and
    force limits of all actuators. Centres of mass move by up to share × 0.1 m along each axis. What has no effect in the task
    is left out. Equal worlds, share and seed give equal models. Returns the names of what varies."""
    if not 0 <= expect("share", share, int, float, np.number) < 1:
        raise ValueError(f"share: is {share}, expected a number from 0 to less than 1")
    if expect("seed", seed, int, np.integer) < 0:
        raise ValueError(f"seed: is {seed}, expected a whole number, not negative")
    random, model, n = np.random.default_rng(seed), worlds.task.model, worlds.worlds
    values = {name: random.uniform(1 - share, 1 + share, (n, getattr(model, count)) if count else n) for name, count in _FACTORS.items()}
    values["com_offset"] = random.uniform(-share * LARGEST_OFFSET, share * LARGEST_OFFSET, (n, model.nbody, 3))
    for name, numbers in values.items():
        try:
            worlds.set_parameters(**{name: numbers})
        except ValueError:  # it would have no effect
            continue
    return list(worlds.parameters)


def evaluate(task, policy, *, worlds=32, seed=10**6, threads=1, dtype="float64", drives="maba", push=0.0, push_every=3.0,
             varied=0.0):
    """Runs one whole episode in each world, from random starts, without exploration noise. Needs numpy alone.

    drives: as in VectorTask. varied: the worlds' models differ by this share, as vary() does it. push: horizontal velocity
    [m/s] in a random direction that is added to the whole body every
    `push_every` seconds (the impulse is this times the mass); for models with a free root. Returns a dict:
    normalized_return, the sum of rewards over an episode divided by the number of steps to the time limit or to the end of
    a clip that does not loop (steps after a fall count 0), mean over worlds, at most 1 if a step's reward is; reward, mean
    over the steps made; episode_seconds, mean; completed, the share of worlds that reached that end."""
    if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise ValueError(f"seed: is {seed!r}, expected a whole number from 0 to 2**64 - 1")
    for name, value, fits, expected in (("push", push, push >= 0, "a finite speed, not negative"),
                                        ("push_every", push_every, push_every > 0, "a positive, finite number of seconds")):
        if not (fits and np.isfinite(value)):
            raise ValueError(f"{name}: is {value}, expected {expected}")
    relative = (getattr(policy, "task", None) or {}).get("relative_action")
    if relative is not None and isinstance(task, MotionTask) and bool(relative[0]) != bool(task.settings["relative_action"][0]):
        raise ValueError(f"policy: was trained with relative_action={bool(relative[0])}, expected a task with the same")
    vector = VectorTask(task, worlds, threads, autoreset="same_step", dtype=dtype, drives=drives)
    if varied:
        vary(vector, varied, seed)
    vector.reset(None, np.arange(worlds, dtype=np.uint64) + np.uint64(seed))
    if push and [joint.type for joint in task.model.joints[:1]] != ["free"]:
        raise ValueError(f"push: is {push}, expected 0, because pushes change the horizontal velocity of a free root, "
                         "which this model lacks")
    random = np.random.default_rng(seed)
    whole = whole_episodes(task, vector.memory)
    going, total, length = np.ones(worlds, bool), np.zeros(worlds), np.zeros(worlds, int)
    completed, low, high = np.zeros(worlds, bool), *task.action_bounds
    steps, pause = 0, max(1, round(push_every / task.control_dt))
    while going.any():
        action = np.asarray(policy(vector.observation.astype(np.float64)))
        if action.shape != (worlds, task.action_size):
            raise ValueError(f"policy: returns actions of shape {action.shape}, expected {(worlds, task.action_size)}")
        vector.step(np.clip(action, low, high).astype(dtype))
        steps += 1
        total[going] += vector.reward[going]
        length[going] += 1
        completed |= going & vector.truncated & ~vector.bad
        going &= ~(vector.terminated | vector.truncated)
        if push and steps % pause == 0:
            angle = random.uniform(0, 2 * np.pi, worlds)
            vector.qvel[:, 0] += push * np.cos(angle)
            vector.qvel[:, 1] += push * np.sin(angle)
    whole = np.where(np.isnan(whole), steps, whole)
    return {"normalized_return": float((total / whole).mean()), "reward": float(total.sum() / length.sum()),
            "episode_seconds": float(length.mean() * task.control_dt), "completed": float(completed.mean())}
