"""Worlds as a VecEnv of Stable-Baselines3: ``PPO("MlpPolicy", tarsus.gym.stable_baselines3.VecEnv("HumanoidWalk", 64))``."""

import numpy as np
from stable_baselines3.common.vec_env import VecEnv as _VecEnv

from . import TarsusVectorEnv


class VecEnv(_VecEnv):
    """Takes the arguments of :class:`tarsus.gym.TarsusVectorEnv`. An episode restarts in the step in which it ends; infos then
    have ``terminal_observation``, ``TimeLimit.truncated`` and ``episode`` (return r, length l)."""

    def __init__(self, task, num_envs=1, *, dtype=np.float32, **options):
        self.envs = TarsusVectorEnv(task, num_envs, autoreset_mode="SameStep", dtype=dtype, **options)
        self._returns = np.zeros(num_envs)
        super().__init__(num_envs, self.envs.single_observation_space, self.envs.single_action_space)

    def reset(self):
        given = any(seed is not None for seed in self._seeds)
        observation, _ = self.envs.reset(seed=list(self._seeds) if given else None)
        self._reset_seeds()
        self._returns[:] = 0
        return observation

    def step_async(self, actions):
        self._actions = actions

    def step_wait(self):
        lengths = self.envs.worlds.steps + 1
        observation, reward, terminated, truncated, info = self.envs.step(self._actions)
        ended = terminated | truncated
        self._returns += reward
        infos = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(ended):
            infos[i] = {"terminal_observation": self.envs.worlds.final_observation[i].copy(),
                        "TimeLimit.truncated": bool(truncated[i] and not terminated[i]), "bad": bool(info["bad"][i]),
                        "episode": {"r": float(self._returns[i]), "l": int(lengths[i])}}
        self._returns[ended] = 0
        return observation, reward.astype(np.float32), ended, infos

    def close(self):
        self.envs.close()

    def get_attr(self, attr_name, indices=None):
        return [getattr(self.envs, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name, value, indices=None):
        raise AttributeError(f"{attr_name}: cannot be set; the worlds share one task, whose options are fixed when it is made")

    def env_method(self, method_name, *method_args, indices=None, **method_kwargs):
        raise AttributeError(f"{method_name}: cannot be called; worlds are not separate objects")

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False for _ in self._get_indices(indices)]
