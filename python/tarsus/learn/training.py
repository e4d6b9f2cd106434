"""PPO on many worlds of a task. The algorithm is rsl-rl's (:class:`rsl_rl.algorithms.PPO`). This module adds its
configuration, progress, checkpoints, curves and the policy file."""

import atexit
import csv
import dataclasses
import io
import json
import os
import pathlib
import pickle
import sys
import time

import numpy as np
import torch
from rsl_rl.algorithms import PPO
from tensordict import TensorDict

from .. import VectorTask
from ..errors import ValueError  # noqa: A004 (the C++ name)
from ..files import complete
from .evaluation import MOST_THREADS, evaluate, vary, whole_episodes
from .policy import Policy


@dataclasses.dataclass
class Settings:
    """Settings of a training, besides its task and seed."""

    worlds: int = 256  #: of all processes together
    steps: int = 32  #: per world and iteration
    epochs: int = 4
    minibatches: int = 8
    hidden: tuple = (256, 256)
    gamma: float = 0.95
    lam: float = 0.95
    clip: float = 0.2
    learning_rate: float = 1e-3
    desired_kl: float = 0.01
    entropy: float = 0.0
    noise: float = 0.25  #: initial standard deviation of actions, in action scales
    largest_noise: float | None = None  #: upper bound of the noise in PPO, in action scales; applies at once to a resumed run
    action_scale: float = 0.25  #: [rad | m | N] action for an output of 1
    reward_scale: float = 0.1
    dtype: str = "float64"  #: of the simulation
    varied: float = 0.0  #: share by which the worlds' masses, friction, gains, ... differ: :func:`tarsus.learn.vary`
    drives: str = "maba"  #: or "dense", the baseline of figure 7: see VectorTask

    def configuration(self, multi=None):
        """The configuration of rsl-rl. multi: its settings for several processes that train together."""
        network = {"class_name": "rsl_rl.models.MLPModel", "hidden_dims": list(self.hidden), "activation": "relu",
                   "obs_normalization": True}
        noise = {"class_name": "GaussianDistribution", "init_std": self.noise, "std_type": "log"}
        return {
            "num_steps_per_env": self.steps, "multi_gpu": multi, "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
            "actor": {**network, "distribution_cfg": noise}, "critic": network,
            "algorithm": {"class_name": "PPO", "num_learning_epochs": self.epochs, "num_mini_batches": self.minibatches,
                          "clip_param": self.clip, "gamma": self.gamma, "lam": self.lam, "entropy_coef": self.entropy,
                          "learning_rate": self.learning_rate, "desired_kl": self.desired_kl, "schedule": "adaptive",
                          "use_clipped_value_loss": False},
        }


class _Processes:
    """The processes that train together: those of torchrun, which average their gradients over gloo, or this one alone."""

    def __init__(self):
        self.size, self.rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
        if self.size > 1 and not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo")
            atexit.register(torch.distributed.destroy_process_group)  # otherwise gloo's threads may abort a process that ends
        self.multi = {"global_rank": self.rank, "local_rank": self.rank, "world_size": self.size} if self.size > 1 else None

    def sum(self, *numbers):
        """The sum of each number over all processes."""
        if self.size == 1:
            return numbers
        total = torch.tensor(numbers, dtype=torch.float64)
        torch.distributed.all_reduce(total)
        return total.tolist()

    def any(self, flag):
        return self.sum(float(flag))[0] > 0


class _Sizes:
    """The interface of an environment that rsl-rl uses to build its networks."""

    def __init__(self, worlds, actions):
        self.num_envs, self.num_actions = worlds, actions


def check_outputs(folder, *names):
    """Raises ValueError if one of these files could not be written in the folder. No file is changed."""
    for path in (folder / name for name in names):
        if path.exists() and not path.is_file():
            raise ValueError(f"folder: {path} is not an ordinary file, expected one to write to, or none; choose another folder")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise ValueError(f"folder: {path} cannot be written, expected a folder with write permission; choose another folder")


class Training:
    """A run in a folder: ``checkpoint.pt``, ``curve.csv``, ``policy.npz`` and ``settings.json``. With `tensorboard` a folder
    of this name also has the curve for TensorBoard. With `evaluate_every`, policies are evaluated without noise each time
    after this many samples, and ``best.npz`` is the one with the largest return.

    If the folder has a checkpoint, the run continues from it. Raises ValueError if settings.json belongs to another task,
    seed, network or drives. Other settings may change; run() reports which did. about: further properties of the task for
    settings.json, which may not change either. Equal task, settings, seed, threads and processes give equal curves, to the
    bit. A resumed run restarts its worlds, so it is as good but not the same. Under torchrun, processes share the worlds
    evenly, and the first writes the files. worlds: an object with a VectorTask's reset, step and arrays, for worlds
    elsewhere (examples/ray/rollouts.py).
    """

    FILES = ("settings.json", "checkpoint.pt", "curve.csv", "policy.npz", "best.npz")
    COLUMNS = ("samples", "seconds", "reward", "normalized_return", "episode_seconds", "noise", "learning_rate", "bad_worlds")

    def __init__(self, task, folder, settings=None, *, seed=0, threads=1, about=None, tensorboard=False, worlds=None,
                 evaluate_every=None):
        self.settings = s = settings or Settings()
        for name, value, least, most in (("seed", seed, 0, 2**31 - 1), ("threads", threads, 1, MOST_THREADS),
                                         ("worlds", s.worlds, 1, 2**31 - 1)):
            if not isinstance(value, (int, np.integer)) or not least <= value <= most:
                raise ValueError(f"{name}: is {value!r}, expected a whole number from {least} to {most}")
        seed = int(seed)
        torch.set_num_threads(threads)
        self.processes = group = _Processes()
        torch.manual_seed(seed)
        self.task, self.folder, self.seed = task, pathlib.Path(folder), seed
        self.about = dict(about or {})
        self.folder.mkdir(parents=True, exist_ok=True)
        check_outputs(self.folder, *(name + end for name in self.FILES for end in ("", ".partial")))
        if tensorboard and (self.folder / "tensorboard").exists() and not (self.folder / "tensorboard").is_dir():
            raise ValueError(f"folder: {self.folder / 'tensorboard'} is not a folder, expected one or none; choose another folder")
        kept = self._check_folder()
        self._changed = {key: (kept[key], value) for key, value in json.loads(json.dumps(dataclasses.asdict(s))).items()
                         if key in kept and kept[key] != value}
        if s.worlds % group.size:
            raise ValueError(f"worlds: is {s.worlds}, expected a multiple of {group.size}, the number of processes")
        share = s.worlds // group.size
        self.worlds = worlds or VectorTask(task, share, threads, autoreset="same_step", dtype=s.dtype, drives=s.drives)
        if s.varied:
            vary(self.worlds, s.varied, (seed << 32) + group.rank)
        low, high = task.action_bounds
        self.low, self.high = low.astype(s.dtype), high.astype(s.dtype)
        self.curve, self.samples, self.seconds, self.iteration = [], 0, 0.0, 0
        self.bad_worlds = 0  #: number of episodes that ended because a state failed, since the run began
        self.threads, self.evaluate_every = threads, evaluate_every
        self.best = {"normalized_return": -1.0, "samples": 0}  #: evaluate() of best.npz, and the samples until then
        self._tensorboard, self._logged = None if tensorboard else False, 0
        self.totals = np.zeros(share)  #: sums of rewards of the present episodes
        example = self._observations(np.zeros((share, task.observation_size), np.float32))
        self.ppo = PPO.construct_algorithm(example, _Sizes(share, task.action_size), s.configuration(group.multi), "cpu")
        with torch.no_grad():  # the first policy acts by its noise alone
            self.ppo.actor.mlp[-1].weight *= 0.01
            self.ppo.actor.mlp[-1].bias.zero_()
        if group.multi:
            self.ppo.broadcast_parameters()
        self.ppo.train_mode()
        self._resume()
        self._limit_noise()
        self._bad_before = self.bad_worlds
        if group.rank:  # separate random numbers for noise and minibatches
            torch.manual_seed((seed << 32) + (self.iteration << 20) + group.rank)
        first = (seed << 32) + (self.iteration << 20) + group.rank * share
        self.worlds.reset(None, np.arange(share, dtype=np.uint64) + np.uint64(first))
        self.whole = whole_episodes(task, self.worlds.memory)  #: control steps of the present episodes if nothing ends them early

    def _limit_noise(self):
        if self.settings.largest_noise:
            with torch.no_grad():
                self.ppo.actor.distribution.log_std_param.clamp_(max=float(np.log(self.settings.largest_noise)))

    @staticmethod
    def _observations(values):
        return TensorDict({"policy": torch.from_numpy(values.astype(np.float32))}, batch_size=[len(values)])

    def act(self, output):
        """Actions for outputs of the network [worlds, action_size]."""
        s = self.settings
        return np.clip(output.numpy().astype(s.dtype) * s.action_scale, self.low, self.high)

    def iterate(self):
        """One iteration: worlds × steps samples and an update. Returns the row that it adds to the curve."""
        began, s, worlds = time.perf_counter(), self.settings, self.worlds
        observation = self._observations(worlds.observation)
        reward_sum, returns, lengths = 0.0, [], []
        totals = self.totals
        with torch.inference_mode():
            for _ in range(s.steps):
                steps = worlds.steps + 1
                worlds.step(self.act(self.ppo.act(observation)))
                observation = self._observations(worlds.observation)
                reward, ended = worlds.reward, worlds.terminated | worlds.truncated
                totals += reward
                reward_sum += float(reward.sum())
                returns += (totals[ended] / self.whole[ended]).tolist()
                lengths += steps[ended].tolist()
                totals[ended] = 0
                if ended.any():
                    self.whole[ended] = whole_episodes(self.task, worlds.memory)[ended]
                self.ppo.process_env_step(observation, torch.from_numpy((s.reward_scale * reward).astype(np.float32)),
                                          torch.from_numpy(ended.copy()),
                                          {"time_outs": torch.from_numpy(worlds.truncated.astype(np.float32))})
            self.ppo.compute_returns(observation)
        self.ppo.update()
        self._limit_noise()
        self.iteration += 1
        self.seconds += time.perf_counter() - began
        count = s.worlds * s.steps
        self.samples += count
        reward, total, length, ends, bad = self.processes.sum(reward_sum, sum(returns), sum(lengths), len(returns),
                                                              self.worlds.bad_worlds)
        self.bad_worlds = self._bad_before + int(bad)
        if self.evaluate_every and self.samples // self.evaluate_every > (self.samples - count) // self.evaluate_every:
            self._try_policy()
        row = dict(samples=self.samples, seconds=self.seconds, reward=reward / count,
                   normalized_return=total / ends if ends else float("nan"),
                   episode_seconds=length / ends * self.task.control_dt if ends else float("nan"),
                   noise=float(self.ppo.get_policy().output_std.detach().mean()), learning_rate=self.ppo.learning_rate,
                   bad_worlds=self.bad_worlds)
        self.curve.append(row)
        return row

    def _try_policy(self):
        """Keeps the present policy if it is the best so far."""
        if self.processes.rank:
            return
        policy = self.policy()
        result = evaluate(self.task, policy, worlds=128, threads=self.threads)
        if result["normalized_return"] > self.best["normalized_return"]:
            self.best = {**result, "samples": self.samples}
            policy.save(self.folder / "best.npz")

    def run(self, samples, *, minutes=float("inf"), until=None, save_every=30.0, out=sys.stderr):
        """Trains until `samples`, for `minutes`, or until(row) is true. Returns the curve, a dict per iteration."""
        out = None if self.processes.rank else out
        began = saved = printed = time.perf_counter()
        first, first_samples = began, self.samples
        if out and self._changed and self.samples < samples:
            changes = ", ".join(f"{key} {value} (before: {before})" for key, (before, value) in self._changed.items())
            print(f"resumes after {self.samples} samples with other settings: {changes}", file=out, flush=True)
            self._changed = {}
        while self.samples < samples and not self.processes.any(time.perf_counter() - began >= 60 * minutes):
            row = self.iterate()
            now = time.perf_counter()
            if out and now - printed > 5:
                rate = (self.samples - first_samples) / (now - first)
                left = max(0, min((samples - self.samples) / rate, 60 * minutes - (now - began)))
                ended = f"return {row['normalized_return']:.3f}  episodes {row['episode_seconds']:5.2f} s"
                print(f"{self.samples / 1e6:7.2f} M samples  reward {row['reward']:.3f} per step  "
                      f"{ended if np.isfinite(row['normalized_return']) else 'no episode ended'}  noise {row['noise']:.3f}"
                      + (f"  best {self.best['normalized_return']:.3f}" if self.best["samples"] else "") + f"  {rate:6.0f} samples/s"
                      f"  {left / 60:5.1f} min left", file=out, flush=True)
                printed = now
            if now - saved > save_every:
                self.save()
                saved = now
            if until and self.processes.any(until(row)):
                break
        if self.samples > first_samples:
            self.save()
        return self.curve

    # -- files ----------------------------------------------------------------------------------------------------------

    def policy(self):
        """The mean of the present policy, for any number of worlds."""
        actor, s = self.ppo.get_policy(), self.settings
        n = actor.obs_normalizer
        layers = [tuple(p.detach().numpy().astype(np.float64) for p in (m.weight, m.bias))
                  for m in actor.mlp if isinstance(m, torch.nn.Linear)]
        size = self.task.action_size
        return Policy(n.mean.numpy().astype(np.float64), 1 / (n.std.numpy().astype(np.float64) + n.eps), layers,
                      np.zeros(size), np.full(size, s.action_scale), getattr(self.task, "settings", {}))

    def save(self):
        """Writes settings, checkpoint, curve and policy. If the process is killed at any moment, the previous files stay
        intact."""
        if self.processes.rank:
            return
        about = {"threads": self.threads, "processes": self.processes.size, **self._identity(), **dataclasses.asdict(self.settings)}
        with complete(self.folder / "settings.json") as part:
            part.write_text(json.dumps(about, indent=1), encoding="utf-8")
        written = io.BytesIO()  # of a full disk, torch says "unexpected pos" in a RuntimeError
        torch.save({"ppo": self.ppo.save(), "iteration": self.iteration, "samples": self.samples, "seconds": self.seconds, "curve": self.curve,
                    "bad_worlds": self.bad_worlds, "best": self.best, "random": torch.get_rng_state()}, written)
        with complete(self.folder / "checkpoint.pt") as part:
            part.write_bytes(written.getbuffer())
        with complete(self.folder / "curve.csv") as part, open(part, "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, self.COLUMNS)
            table.writeheader()
            table.writerows(self.curve)
        self.policy().save(self.folder / "policy.npz")
        if self._tensorboard is not False:
            self._log()

    def _log(self):
        """Writes the new rows of the curve for TensorBoard. A resumed run writes all rows again, which restores what a kill
        cut off."""
        if self._tensorboard is None:
            from torch.utils.tensorboard import SummaryWriter

            self._tensorboard = SummaryWriter(str(self.folder / "tensorboard"), purge_step=0)
            self._began = time.time() - self.seconds
        for row in self.curve[self._logged:]:
            for key in self.COLUMNS[2:]:
                if np.isfinite(row.get(key, np.nan)):
                    self._tensorboard.add_scalar(key, row[key], row["samples"], walltime=self._began + row["seconds"])
        self._tensorboard.flush()
        self._logged = len(self.curve)

    def _identity(self):
        """The settings that a resumed run must share, as written to settings.json."""
        task, s = self.task, self.settings
        settings = getattr(task, "settings", {})
        of_task = {"task_class": type(task).__name__, "observation_size": task.observation_size,
                   "action_size": task.action_size, "control_dt": task.control_dt,
                   "clip_duration": getattr(task, "clip_duration", None),
                   **{name: bool(settings[name][0]) for name in ("phase", "relative_action") if name in settings}}
        about = {**self.about, **{key: value for key, value in of_task.items() if key not in self.about}}
        return {**about, "seed": self.seed, "hidden": list(s.hidden), "drives": s.drives}

    def _check_folder(self):
        """The settings.json of the run to resume. Raises ValueError if the folder has a checkpoint of another run."""
        if not (self.folder / "checkpoint.pt").exists():
            return {}
        path = self.folder / "settings.json"
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"folder: {path} cannot be read ({error}), expected the settings of the run "
                             "of checkpoint.pt; choose another folder") from None
        if not isinstance(kept, dict):
            raise ValueError(f"folder: {path} is not a JSON object, expected the settings of the run of checkpoint.pt; "
                             "choose another folder")
        for key, value in json.loads(json.dumps(self._identity())).items():
            if key in kept and kept[key] != value:
                raise ValueError(f"folder: {self.folder} has a run whose {key} is {kept[key]!r}, expected {value!r} to "
                                 "resume it; choose another folder")
        return kept

    def _resume(self):
        path = self.folder / "checkpoint.pt"
        if not path.exists():
            return
        try:
            kept = torch.load(path, weights_only=True)
            self.ppo.load(kept["ppo"], None, True)
            self.iteration, self.samples, self.seconds = kept["iteration"], kept["samples"], kept["seconds"]
            self.curve, self.bad_worlds, self.best = kept["curve"], kept["bad_worlds"], kept["best"]
            torch.set_rng_state(kept["random"])
        except (OSError, EOFError, KeyError, TypeError, RuntimeError, pickle.UnpicklingError) as error:
            about = "it is damaged" if isinstance(error, pickle.UnpicklingError) else (str(error) or type(error).__name__).splitlines()[0]
            raise ValueError(f"folder: {path} cannot be read ({about}), expected the checkpoint of a run; choose another "
                             "folder") from None
        if self.best["samples"] and not self.processes.rank and not (self.folder / "best.npz").exists():
            raise ValueError(f"folder: {self.folder} has no best.npz, expected the best policy of its run, after "
                             f"{self.best['samples']} samples; choose another folder")


def draw(curve, path, title=""):
    """Draws the curve: reward per step and normalised return against samples and against minutes. Needs matplotlib; without it
    there is no picture, and False is returned."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return False
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, key, unit, label in zip(figure.subplots(1, 2, sharey=True), ("samples", "seconds"), (1e6, 60), ("million samples", "minutes")):
        x = [row[key] / unit for row in curve]
        axes.plot(x, [row["reward"] for row in curve], label="reward a step")
        axes.plot(x, [row["normalized_return"] for row in curve], label="return / largest")
        axes.set_xlabel(label)
        axes.set_ylim(0, 1 if all(row["reward"] < 1 for row in curve) else None)
        axes.grid(alpha=0.3)
    axes.legend()
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    return True
