"""How well a policy does."""

import numpy as np

from .. import MotionTask, VectorTask
from ..errors import ValueError  # noqa: A004 (the C++ name)


def whole_episodes(task, memory):
    """[worlds] control steps to the time limit, or to the end of a clip that does not loop, of episodes that start with this memory
    [worlds, n]; the last step passes it where it is no whole number of them. nan for a task of a person's own without a limit."""
    seconds = np.full(len(memory), getattr(task, "time_limit", None) or np.nan)
    if isinstance(task, MotionTask) and not task.loops:
        seconds = np.minimum(seconds, task.clip_duration - memory[:, 0])  # which is where in the clip they start
    return np.maximum(1, np.ceil((seconds - 1e-9) / task.control_dt))


def evaluate(task, policy, *, worlds=32, seed=10**6, threads=1, dtype="float64", drives="maba", push=0.0, push_every=3.0):
    """One whole episode of each world, from random starts, without noise. Needs numpy alone.

    drives: as VectorTask. push: [m/s] what a blow adds to the velocity of the whole body, horizontally, in a random
    direction, every `push_every` seconds; times its mass, the impulse; for models with a free root. Returns a dict:
    normalized_return, the sum of rewards over the steps of an episode that reaches the time limit or the end of a clip that does
    not loop (what is left after a fall counts 0), mean over worlds, at most 1 where a step's reward is; reward, mean over the
    steps done; episode_seconds, mean; completed, the share of worlds that reached that end."""
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
    vector.reset(None, np.arange(worlds, dtype=np.uint64) + np.uint64(seed))
    if push and [joint.type for joint in task.model.joints[:1]] != ["free"]:
        raise ValueError(f"push: is {push}, expected 0 for a model without a free root, whose first speeds are no "
                         "horizontal velocity")
    random = np.random.default_rng(seed)
    whole = whole_episodes(task, vector.memory)
    going, total, length = np.ones(worlds, bool), np.zeros(worlds), np.zeros(worlds, int)
    completed, low, high = np.zeros(worlds, bool), *task.action_bounds
    steps, pause = 0, max(1, round(push_every / task.control_dt))
    while going.any():
        action = np.asarray(policy(vector.observation.astype(np.float64)))
        if action.shape != (worlds, task.action_size):
            raise ValueError(f"policy: gives actions of shape {action.shape}, expected {(worlds, task.action_size)}")
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
