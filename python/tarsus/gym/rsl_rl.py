"""Worlds as a VecEnv of rsl-rl: ``OnPolicyRunner(tarsus.gym.rsl_rl.VecEnv("HumanoidWalk", 256), configuration)``."""

import numpy as np
import torch
from rsl_rl.env import VecEnv as _VecEnv
from tensordict import TensorDict

from .. import ShapeError, ValueError, VectorTask  # noqa: A004 (the C++ name)
from ..errors import expect
from ..learn.evaluation import whole_episodes
from . import _task_of


class VecEnv(_VecEnv):
    """task: a :class:`tarsus.Task` or its name, with its options. Observations are in the group ``policy``. An episode
    restarts in the step in which it ends, with ``time_outs`` in the extras. action_scale: the task's action for an output
    of 1."""

    def __init__(self, task, num_envs=1, *, threads=1, seed=0, dtype="float64", action_scale=1.0, **options):
        if not np.isfinite(expect("action_scale", action_scale, int, float, np.number)) or action_scale == 0:
            raise ValueError(f"action_scale: is {action_scale}, expected a finite number other than 0")
        self.task = _task_of(task, options)
        self.worlds = VectorTask(self.task, num_envs, threads, seed=seed, autoreset="same_step", dtype=dtype)
        self.worlds.reset()
        self.num_envs, self.num_actions, self.device = num_envs, self.task.action_size, "cpu"
        longest = whole_episodes(self.task, np.zeros((1, 1)))[0]  # starting at the clip's first frame, if the task has a clip
        self.max_episode_length = None if np.isnan(longest) else int(longest)
        self.cfg = {"task": type(self.task).__name__, "action_scale": action_scale}
        self._scale, (self._low, self._high) = action_scale, self.task.action_bounds

    @property
    def episode_length_buf(self):
        return torch.from_numpy(self.worlds.steps.astype(np.int64))

    @episode_length_buf.setter
    def episode_length_buf(self, value):
        raise AttributeError("episode_length_buf: cannot be set; episodes begin with length 0, and their phases are already random")

    def get_observations(self):
        return TensorDict({"policy": torch.from_numpy(self.worlds.observation.astype(np.float32))}, batch_size=[self.num_envs])

    def step(self, actions):
        worlds, shape = self.worlds, (self.num_envs, self.num_actions)
        if tuple(actions.shape) != shape:
            raise ShapeError(f"actions: are {list(actions.shape)}, expected {list(shape)}")
        scaled = np.clip(actions.detach().numpy().astype(np.float64) * self._scale, self._low, self._high)
        worlds.step(scaled.astype(worlds.observation.dtype))
        return (self.get_observations(), torch.from_numpy(worlds.reward.astype(np.float32)),
                torch.from_numpy(worlds.terminated | worlds.truncated),
                {"time_outs": torch.from_numpy(worlds.truncated.astype(np.float32))})
