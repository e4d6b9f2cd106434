"""How well a policy does."""

import numpy as np

from .. import VectorTask
from ..errors import ValueError  # noqa: A004 (the C++ name)


def evaluate(task, policy, *, worlds=32, seed=10**6, threads=1, dtype="float64", drives="maba", push=0.0, push_every=3.0):
    """One whole episode of each world, from random starts, without noise. Needs numpy alone.

    drives: as VectorTask. push: [m/s] what a blow adds to the velocity of the whole body, horizontally, in a random
    direction, every `push_every` seconds; times its mass, the impulse. Returns a dict: normalized_return, the sum of rewards over the largest possible (what is
    left after a fall counts 0), mean over worlds; reward, mean over the steps done; episode_seconds, mean; completed, the share
    of worlds that reached the time limit."""
    vector = VectorTask(task, worlds, threads, autoreset="same_step", dtype=dtype, drives=drives)
    vector.reset(None, np.arange(worlds, dtype=np.uint64) + np.uint64(seed))
    random = np.random.default_rng(seed)
    going, total, length = np.ones(worlds, bool), np.zeros(worlds), np.zeros(worlds, int)
    completed, low, high = np.zeros(worlds, bool), *task.action_bounds
    steps, pause = 0, max(1, round(push_every / task.control_dt))
    while going.any():
        action = policy(vector.observation.astype(np.float64))
        if np.shape(action) != (worlds, task.action_size):
            raise ValueError(f"policy: gives actions of shape {np.shape(action)}, expected {(worlds, task.action_size)}")
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
    longest = max(1, round(task.time_limit / task.control_dt)) if hasattr(task, "time_limit") else steps
    return {"normalized_return": float(total.mean() / longest), "reward": float(total.sum() / length.sum()),
            "episode_seconds": float(length.mean() * task.control_dt), "completed": float(completed.mean())}
