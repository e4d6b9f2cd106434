"""Gymnasium environments: ``gymnasium.make("tarsus/HumanoidWalk-v0")`` and ``gymnasium.make_vec(..., num_envs=1024)``.

Importing this module registers them. C++ (:class:`tarsus.VectorTask`) computes observations, rewards and resets; Python
only passes arrays on.
"""

import builtins

try:
    import gymnasium
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"tarsus.gym needs {error.name}: pip install 'tarsus[gym]'", name=error.name) from error
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from .. import ValueError, VectorTask, tasks  # noqa: A004 (the C++ name)
from ..errors import expect


def _spaces(task, dtype):
    low, high = (bound.astype(dtype) for bound in task.action_bounds)
    observation = gymnasium.spaces.Box(-np.inf, np.inf, (task.observation_size,), dtype)
    return observation, gymnasium.spaces.Box(low, high, dtype=dtype)


def _task_of(task, options):
    if isinstance(task, str):
        return tasks.make(task, **options)
    if options:
        raise TypeError(f"options {sorted(options)} given together with a Task, expected the name of a task: a Task has its options already")
    return task


def _seed(number):
    if isinstance(number, (int, np.integer)) and 0 <= number < 2**64:
        return np.uint64(number)
    raise ValueError(f"seed: is {number!r}, expected a whole number from 0 to 2**64 - 1, None, or for many worlds a list "
                     "of these")


def _actions(values, dtype):
    """Converts values to real numbers of the environment's type. Refuses text, None and complex numbers."""
    try:
        array = np.asarray(values)
        kind = array.dtype.kind
    except builtins.ValueError:  # rows of different lengths
        kind = "O"
    if kind not in "fiub":
        of = f"an array of {values.dtype}" if isinstance(values, np.ndarray) else f"{values!r:.60}"
        raise TypeError(f"action: is {of}, expected an array of real numbers")
    return np.ascontiguousarray(array, dtype=dtype)


def _options(given, *known):
    """The options of reset(), {} for None. Refuses those that would have no effect."""
    given = {} if given is None else expect("options", given, dict)
    for name in given:
        if name not in known:
            raise ValueError(f"options: has the key {name!r}, expected {', '.join(map(repr, known)) or 'none'}")
    return given


def _random_seed():
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))


class TarsusVectorEnv(gymnasium.vector.VectorEnv):
    """Many worlds of one task.

    task: a :class:`tarsus.Task`, or a name of :data:`tarsus.tasks.NAMES` with the task's options. threads: does not affect
    the results. dtype: float32 simulates in single precision. copy: False returns views of memory that the next step
    overwrites.
    """

    def __init__(self, task, num_envs=1, *, threads=1, autoreset_mode=AutoresetMode.NEXT_STEP, dtype=np.float64, copy=True,
                 **options):
        mode = AutoresetMode(autoreset_mode)
        self.metadata = {"autoreset_mode": mode, "render_modes": []}
        self.num_envs, self.render_mode = num_envs, None
        self.task = _task_of(task, options)
        self.worlds = VectorTask(self.task, num_envs, threads, autoreset=mode.name.lower(), dtype=np.dtype(dtype).name)
        self.single_observation_space, self.single_action_space = _spaces(self.task, dtype)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._dtype, self._copy, self._mode, self._seeded = np.dtype(dtype), copy, mode, False

    def _array(self, values):
        return values.copy() if self._copy else values

    def reset(self, *, seed=None, options=None):
        """seed: None continues each world's random sequence; a number seeds world i with seed + i; a list has one entry per
        world, None for worlds that continue. options["reset_mask"]: bool [num_envs], the worlds to restart, in every mode."""
        mask = _options(options, "reset_mask").get("reset_mask")
        if mask is not None:
            if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
                raise ValueError(f"reset_mask: is {mask!r}, expected an array of {self.num_envs} bool")
            if not mask.any():
                raise ValueError("reset_mask: has no True, expected at least one")
            mask = np.ascontiguousarray(mask)
        if seed is None and not self._seeded:
            seed = _random_seed()
        if seed is None:
            self.worlds.reset(mask)
        elif isinstance(seed, (list, tuple, np.ndarray)):
            self._reset_by_list(seed, mask)
        else:
            self.worlds.reset(mask, np.arange(self.num_envs, dtype=np.uint64) + _seed(seed))
        self._seeded = True
        return self._array(self.worlds.observation), {}

    def _reset_by_list(self, seeds, mask):
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed: has {len(seeds)} numbers, expected {self.num_envs}")
        given = np.array([not self._seeded or s is not None for s in seeds])
        numbers = np.array([_random_seed() if s is None else _seed(s) for s in seeds], dtype=np.uint64)
        chosen = np.ones(self.num_envs, dtype=bool) if mask is None else mask
        if (chosen & given).any():
            self.worlds.reset(chosen & given, numbers)
        if (chosen & ~given).any():
            self.worlds.reset(chosen & ~given)

    def _infos(self, of):
        """What a single environment's info has, for the worlds `of` [num_envs] bool."""
        terms, names = self._array(self.worlds.terms), self.task.terms
        columns = {name: terms[:, k] for k, name in enumerate(names)} | {f"_{name}": of for name in names}
        return {"terms": columns, "_terms": of, "bad": self._array(self.worlds.bad), "_bad": of}

    def step(self, actions):
        worlds = self.worlds
        worlds.step(_actions(actions, self._dtype))
        terminated, truncated = self._array(worlds.terminated), self._array(worlds.truncated)
        infos = self._infos(np.ones(self.num_envs, dtype=bool))
        if self._mode == AutoresetMode.SAME_STEP:
            ended = terminated | truncated
            if ended.any():
                final = np.full(self.num_envs, None, dtype=object)
                which = np.flatnonzero(ended)
                for i, observation in zip(which, worlds.final_observation[which]):
                    final[i] = observation
                infos |= {"final_obs": final, "_final_obs": ended, "final_info": self._infos(ended), "_final_info": ended}
        return self._array(worlds.observation), self._array(worlds.reward), terminated, truncated, infos


class TarsusEnv(gymnasium.Env):
    """One world of a task: a :class:`TarsusVectorEnv` with one world, without the first dimension of its arrays."""

    metadata = {"render_modes": []}

    def __init__(self, task, *, dtype=np.float64, render_mode=None, **options):
        if render_mode is not None:
            raise ValueError(f"render_mode: is {render_mode!r}, expected None: tarsus.view shows states")
        self.render_mode = render_mode
        self.task = _task_of(task, options)
        self.worlds = VectorTask(self.task, 1, autoreset="disabled", dtype=np.dtype(dtype).name)
        self.observation_space, self.action_space = _spaces(self.task, dtype)
        self._seeded = False

    def reset(self, *, seed=None, options=None):
        _options(options)
        if seed is not None:
            seed = int(_seed(seed))
        super().reset(seed=seed)
        if seed is None and not self._seeded:
            seed = _random_seed()
        self._seeded = True
        self.worlds.reset(None, None if seed is None else np.array([seed], dtype=np.uint64))
        return self.worlds.observation[0].copy(), {}

    def step(self, action):
        worlds = self.worlds
        worlds.step(_actions(action, self.action_space.dtype)[None])
        terms = dict(zip(self.task.terms, worlds.terms[0].tolist()))
        return (worlds.observation[0].copy(), float(worlds.reward[0]), bool(worlds.terminated[0]), bool(worlds.truncated[0]),
                {"terms": terms, "bad": bool(worlds.bad[0])})


for _name in tasks.NAMES:
    gymnasium.register(f"tarsus/{_name}-v0", entry_point="tarsus.gym:TarsusEnv", vector_entry_point="tarsus.gym:TarsusVectorEnv",
                       kwargs={"task": _name})
