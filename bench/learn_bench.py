#!/usr/bin/env python3
"""Environment steps a second, with their parts, beside Gymnasium's MuJoCo Humanoid. JSON lines.

usage: bench/learn_bench.py [--worlds N] [--threads N] [--seconds S] [--dtype float64|float32]

An environment step is one action: for ours 1/30 s of simulated time in two steps, with contacts, self-collision, force limits,
observation, reward and resets, under random actions of 0.05 rad; for Gymnasium's Humanoid-v5 0.015 s in five, under its action
space's samples. "python" is what is left of a step of the vector environment outside of C++.
"""

import argparse
import json
import time

import gymnasium
import numpy as np
import tarsus.gym


def ours(name, worlds, threads, seconds, dtype, **options):
    envs = gymnasium.make_vec(f"tarsus/{name}-v0", num_envs=worlds, threads=threads, dtype=dtype, autoreset_mode="SameStep", **options)
    envs.reset(seed=0)
    random = np.random.default_rng(0)
    actions = [random.normal(scale=0.05, size=envs.action_space.shape).astype(dtype) for _ in range(8)]
    vector = envs.unwrapped.worlds
    inside, step = 0.0, vector.step

    for action in actions[:2]:
        envs.step(action)
    before, count, ends, began = vector.seconds, 0, 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        _, _, terminated, truncated, _ = envs.step(actions[count % len(actions)])
        ends += int((terminated | truncated).sum())
        count += 1
    whole = time.perf_counter() - began
    parts = {key: (value - before[key]) / (threads if key != "simulation" else 1) for key, value in vector.seconds.items()}
    again, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds / 2:  # the same without Python's environment around it
        began_step = time.perf_counter()
        step(actions[again % len(actions)])
        inside += time.perf_counter() - began_step
        again += 1
    print(json.dumps({"env": name, "worlds": worlds, "threads": threads, "dtype": np.dtype(dtype).name, **options,
                      "env_steps_per_second": round(worlds * count / whole), "episodes_ended": ends,
                      "share": {key: round(value / whole, 3) for key, value in parts.items()},
                      "python": round(max(0.0, 1 - (inside / again) / (whole / count)), 3)}), flush=True)


def gymnasiums(worlds, seconds):
    envs = gymnasium.make_vec("Humanoid-v5", num_envs=worlds, vectorization_mode="sync")
    envs.reset(seed=0)
    envs.action_space.seed(0)
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        envs.step(envs.action_space.sample())
        count += 1
    print(json.dumps({"env": "Humanoid-v5 (MuJoCo)", "worlds": worlds, "threads": 1,
                      "env_steps_per_second": round(worlds * count / (time.perf_counter() - began))}), flush=True)


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
