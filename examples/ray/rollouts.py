"""Worlds in Ray's processes, on this machine or on many: each actor steps its share, the learner is tarsus.learn's.

    pip install 'tarsus[learn]' ray
    python examples/ray/rollouts.py --workers 2

Worlds do not depend on where they are stepped: the curve is that of one process, to the bit.
"""

import argparse
import time

import numpy as np
import ray
import tarsus
import tarsus.learn.training
import tarsus.tasks

NAMES = ("observation", "reward", "terminated", "truncated", "steps", "memory")


@ray.remote
class Share:
    """Some of the worlds, in a process of its own."""

    def __init__(self, name, options, worlds, dtype):
        self.worlds = tarsus.VectorTask(tarsus.tasks.make(name, **options), worlds, autoreset="same_step", dtype=dtype)

    def _all(self):
        return [np.array(getattr(self.worlds, name)) for name in NAMES] + [self.worlds.bad_worlds]

    def reset(self, seeds):
        self.worlds.reset(None, seeds)
        return self._all()

    def step(self, action):
        self.worlds.step(action)
        return self._all()


class RayWorlds:
    """What Training wants of a VectorTask, spread over actors."""

    def __init__(self, name, options, worlds, workers, dtype="float64"):
        bounds = [worlds * k // workers for k in range(workers + 1)]
        self.parts = [slice(a, b) for a, b in zip(bounds, bounds[1:])]
        self.actors = [Share.remote(name, options, part.stop - part.start, dtype) for part in self.parts]

    def _gather(self, calls):
        answers = ray.get(calls)
        for k, name in enumerate(NAMES):
            setattr(self, name, np.concatenate([answer[k] for answer in answers]))
        self.bad_worlds = sum(answer[-1] for answer in answers)

    def reset(self, mask, seeds):
        self._gather([actor.reset.remote(seeds[part]) for actor, part in zip(self.actors, self.parts)])

    def step(self, action):
        self._gather([actor.step.remote(action[part]) for actor, part in zip(self.actors, self.parts)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="HumanoidWalk")
    parser.add_argument("--workers", type=int, default=2, help="0: no Ray, one process")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--address", help="of a Ray cluster; none: one on this machine")
    parser.add_argument("--out", default="out/learn/ray")
    args = parser.parse_args()
    options = {"relative_action": True} if args.task not in ("CartPole", "QuadrupedVelocity") else {}
    settings = tarsus.learn.training.Settings()
    worlds = None
    if args.workers:
        ray.init(address=args.address, num_cpus=None if args.address else args.workers, include_dashboard=False, log_to_driver=False)
        worlds = RayWorlds(args.task, options, settings.worlds, args.workers)
    run = tarsus.learn.training.Training(tarsus.tasks.make(args.task, **options), args.out, settings, worlds=worlds)
    for _ in range(args.iterations):
        began = time.perf_counter()
        row = run.iterate()
        rate = settings.worlds * settings.steps / (time.perf_counter() - began)
        print(f"{row['samples']:9d} samples  return {row['normalized_return']:.4f}  {rate:6.0f} samples/s", flush=True)
    run.save()


if __name__ == "__main__":
    main()
