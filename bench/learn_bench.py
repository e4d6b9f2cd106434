#!/usr/bin/env python3
"""Environment steps a second, with their parts, beside Gymnasium's MuJoCo Humanoid. JSON lines.

usage: bench/learn_bench.py [--worlds N] [--threads N] [--seconds S] [--dtype float64|float32]

An environment step is one action: for ours 1/30 s of simulated time in two steps, with contacts, self-collision, force limits,
observation, reward and resets, under random actions of 0.05 rad; for Gymnasium's Humanoid-v5 0.015 s in five, under its action
space's samples. "per_cpu_second" counts the process's own time, whatever else the machine does. "python" is the share of a
step's processor time that the vector environment takes around C++.
"""

import argparse
import json
import time

import gymnasium
import numpy as np
import tarsus.gym


class Timed:
    """A VectorTask that knows how much processor time its steps take."""

    def __init__(self, worlds):
        self.worlds, self.seconds = worlds, 0.0

    def __getattr__(self, name):
        return getattr(self.worlds, name)

    def step(self, action):
        began = time.process_time()
        self.worlds.step(action)
        self.seconds += time.process_time() - began


def ours(name, worlds, threads, seconds, dtype, **options):
    envs = gymnasium.make_vec(f"tarsus/{name}-v0", num_envs=worlds, threads=threads, dtype=dtype, autoreset_mode="SameStep", **options)
    envs.reset(seed=0)
    random = np.random.default_rng(0)
    actions = [random.normal(scale=0.05, size=envs.action_space.shape).astype(dtype) for _ in range(8)]
    vector = envs.unwrapped.worlds
    for action in actions[:2]:
        envs.step(action)
    envs.unwrapped.worlds = timed = Timed(vector)
    before, count, ends, began, cpu = vector.seconds, 0, 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        _, _, terminated, truncated, _ = envs.step(actions[count % len(actions)])
        ends += int((terminated | truncated).sum())
        count += 1
    whole, cpu = time.perf_counter() - began, time.process_time() - cpu
    parts = {key: (value - before[key]) / (threads if key != "simulation" else 1) for key, value in vector.seconds.items()}
    print(json.dumps({"env": name, "worlds": worlds, "threads": threads, "dtype": np.dtype(dtype).name, **options,
                      "env_steps_per_second": round(worlds * count / whole),
                      "per_cpu_second": round(worlds * count / cpu), "episodes_ended": ends,
                      "share": {key: round(value / whole, 3) for key, value in parts.items()},
                      "python": round(1 - timed.seconds / cpu, 4)}), flush=True)


def gymnasiums(worlds, seconds):
    envs = gymnasium.make_vec("Humanoid-v5", num_envs=worlds, vectorization_mode="sync")
    envs.reset(seed=0)
    envs.action_space.seed(0)
    count, began, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        envs.step(envs.action_space.sample())
        count += 1
    cpu = time.process_time() - cpu
    print(json.dumps({"env": "Humanoid-v5 (MuJoCo)", "worlds": worlds, "threads": 1,
                      "env_steps_per_second": round(worlds * count / (time.perf_counter() - began)),
                      "per_cpu_second": round(worlds * count / cpu)}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--dtype", default="float64")
    a = parser.parse_args()
    ours("HumanoidWalk", a.worlds, a.threads, a.seconds, a.dtype, relative_action=True)
    ours("HumanoidWalk", a.worlds, a.threads, a.seconds, a.dtype)
    ours("DogPace", a.worlds, a.threads, a.seconds, a.dtype, relative_action=True)
    gymnasiums(16, a.seconds)
