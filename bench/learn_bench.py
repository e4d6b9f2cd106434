#!/usr/bin/env python3
"""Environment steps per second and their parts, against Gymnasium's MuJoCo Humanoid and mujoco.rollout. JSON lines.

usage: bench/learn_bench.py [--worlds N] [--threads N] [--seconds S] [--dtype float64|float32]

An environment step is one action. Motion tracking: 1/30 s of simulated time in two steps, with contacts, self-collision, force
limits, observation, reward and resets, under random actions of 0.05 rad. QuadrupedVelocity: 0.02 s in two steps, under random
actions of 0.075 rad. Gymnasium's tasks, in tarsus and in Gymnasium's own worlds: 0.015 s in five steps (Humanoid) or 0.05 s in five,
under samples of the action space. mujoco.rollout: five steps of Gymnasium's humanoid, without observation and reward.
With --threads N the last line compares HumanoidWalk's environment on one thread and on N, in 30 alternating stretches of ten steps
each: the speed-up of N threads in wall time, over all stretches and in the median stretch. "per_cpu_second" uses the processor time of
the process. "python" is the share of a step's processor time that the vector environment takes outside C++.
"""

import argparse
import json
import pathlib
import time

import gymnasium
import mujoco
import mujoco.rollout
import numpy as np
import tarsus.gym


class Timed:
    """A VectorTask that measures the processor time of its steps."""

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
    shape, (low, high) = envs.action_space.shape, envs.unwrapped.task.action_bounds
    scale = {tarsus.MotionTask: 0.05, tarsus.VelocityTask: 0.3}.get(type(envs.unwrapped.task))
    actions = [(random.normal(scale=scale, size=shape) if scale else random.uniform(low, high, shape)).astype(dtype) for _ in range(8)]
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
    parts = {key: (value - before[key]) / threads for key, value in vector.seconds.items()}
    print(json.dumps({"env": name, "worlds": worlds, "threads": threads, "dtype": np.dtype(dtype).name, **options,
                      "env_steps_per_second": round(worlds * count / whole),
                      "per_cpu_second": round(worlds * count / cpu), "episodes_ended": ends,
                      "share": {key: round(value / whole, 3) for key, value in parts.items()},
                      "python": round(1 - timed.seconds / cpu, 4)}), flush=True)


def threads_give(worlds, threads, dtype, turns=30, steps=10):
    pair = [gymnasium.make_vec("tarsus/HumanoidWalk-v0", num_envs=worlds, threads=n, dtype=dtype, autoreset_mode="SameStep", relative_action=True)
            for n in (1, threads)]
    random = np.random.default_rng(0)
    actions = [random.normal(scale=0.05, size=pair[0].action_space.shape).astype(dtype) for _ in range(8)]
    for envs in pair:
        envs.reset(seed=0)
    seconds = np.zeros((turns + 1, 2))
    for turn in range(turns + 1):  # the first is not counted
        for side, envs in enumerate(pair):
            began = time.perf_counter()
            for k in range(steps):
                envs.step(actions[k % len(actions)])
            seconds[turn, side] = time.perf_counter() - began
    one, several = seconds[1:].T
    print(json.dumps({"env": "HumanoidWalk", "worlds": worlds, "dtype": np.dtype(dtype).name, "threads": [1, threads],
                      "env_steps_per_second": [round(worlds * turns * steps / s.sum()) for s in (one, several)],
                      "times_as_fast": round(one.sum() / several.sum(), 3), "in_the_median": round(float(np.median(one / several)), 3)}), flush=True)


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


def rollouts(worlds, seconds, actions=20):
    """mujoco.rollout on Gymnasium's humanoid, one thread: simulation alone."""
    model = mujoco.MjModel.from_xml_path(str(pathlib.Path(gymnasium.__file__).parent / "envs/mujoco/assets/humanoid.xml"))
    data, kind = mujoco.MjData(model), mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    random, count, began, cpu = np.random.default_rng(0), 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        control = np.repeat(random.uniform(-0.4, 0.4, (worlds, actions, model.nu)), 5, axis=1)
        mujoco.rollout.rollout(model, [data], np.tile(state, (worlds, 1)), control)
        count += worlds * actions
    cpu = time.process_time() - cpu
    print(json.dumps({"env": "mujoco.rollout, Gymnasium's humanoid", "worlds": worlds, "threads": 1,
                      "env_steps_per_second": round(count / (time.perf_counter() - began)),
                      "per_cpu_second": round(count / cpu)}), flush=True)


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
    ours("QuadrupedVelocity", a.worlds, a.threads, a.seconds, a.dtype)
    for name in ("Humanoid", "Ant", "HalfCheetah"):
        ours(name, a.worlds, a.threads, a.seconds, a.dtype)
    gymnasiums(16, a.seconds)
    rollouts(16, a.seconds)
    if a.threads > 1:
        threads_give(a.worlds, a.threads, a.dtype)
