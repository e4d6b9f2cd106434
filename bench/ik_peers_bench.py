#!/usr/bin/env python3
"""Inverse kinematics against pink (PyPI `pin-pink`, with `qpsolvers` and `daqp`): one arm of seven joints, random reachable targets.

usage: python bench/ik_peers_bench.py [TARGETS]     (default 1000; needs ../shared/data's iiwa14)

Both solve the same targets in one process on one core. pink is a differential controller: each step of its loop corrects the whole error (gain 1, dt 1 s),
in at most 200 steps. It restarts from as many random poses as tarsus.ik. Solved: error below 1e-6 within the joint ranges. One JSON line each.
"""
import json
import sys
import time
from pathlib import Path

import numpy as np
import tarsus

try:
    import pink
    import pinocchio as pin
except ImportError:
    print("SKIPPED: pink is not here (pip install pin-pink qpsolvers daqp)", file=sys.stderr)
    pink = None

ARM = Path(__file__).resolve().parents[2] / "shared/data/menagerie/kuka_iiwa_14/iiwa14.xml"
BODY, STEPS, RESTARTS, TOLERANCE = "link7", 200, 20, 1e-6


def targets(model, count):
    data, rng, out = tarsus.Data(model), np.random.default_rng(1), []
    for _ in range(count):
        tarsus.kinematics(model, data, tarsus.random_configuration(model, rng))
        rotation, position = tarsus.body_pose(model, data, BODY)
        out.append((rotation.copy(), position.copy()))
    return out


def ours(model, wanted):
    data = tarsus.Data(model)
    for rotation, position in wanted:
        begin = time.perf_counter()
        result = tarsus.ik(model, tarsus.FrameTask(BODY, position, rotation), data=data, restarts=RESTARTS)
        seconds = time.perf_counter() - begin
        within = all(j.range[0] <= result.qpos[j.qpos] <= j.range[1] for j in model.joints if j.limited)
        yield result.success and within, seconds


def theirs(wanted):
    model = pin.buildModelFromMJCF(str(ARM))
    data, rng = model.createData(), np.random.default_rng(2)
    low, high = model.lowerPositionLimit, model.upperPositionLimit
    task = pink.tasks.FrameTask(BODY, position_cost=1.0, orientation_cost=1.0, lm_damping=1e-6)
    for rotation, position in wanted:
        begin = time.perf_counter()
        solved = False
        task.set_target(pin.SE3(rotation, position))
        for attempt in range(RESTARTS + 1):
            start = (low + high) / 2 if attempt == 0 else rng.uniform(low, high)
            configuration = pink.Configuration(model, data, start)
            for _ in range(STEPS):
                if np.linalg.norm(task.compute_error(configuration)) < TOLERANCE:
                    solved = True
                    break
                try:
                    velocity = pink.solve_ik(configuration, [task], 1.0, solver="daqp")
                except Exception:  # the solver found no step
                    break
                configuration.integrate_inplace(velocity, 1.0)
            if solved:
                break
        yield solved, time.perf_counter() - begin


def report(name, results):
    solved, seconds = map(np.array, zip(*results))
    print(json.dumps({"who": name, "targets": len(solved), "solved": round(float(solved.mean()), 4),
                      "median_ms": round(1e3 * float(np.median(seconds)), 3),
                      "mean_ms": round(1e3 * float(seconds.mean()), 3)}), flush=True)


def main():
    model = tarsus.Model.load(ARM, lenient=True)
    wanted = targets(model, int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    report("tarsus", list(ours(model, wanted)))
    if pink:
        report(f"pink {pink.__version__}", list(theirs(wanted)))


if __name__ == "__main__":
    main()
