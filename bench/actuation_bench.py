#!/usr/bin/env python3
"""Cost of a quadruped's servos, compared with a step under drives of the same gains, and cost of its sensors.

usage: python bench/actuation_bench.py [MODEL]   (default: unitree_go2 of ../shared/data, 12 servos)

Each result is the median over rounds of `STEPS` steps. The variants alternate in each round, from the same standing state.
Sensors are read after each step of a rollout (tarsus.Batch of one world), so that calls from Python do not count. Prints one
JSON line: microseconds per step, and the shares that servos and sensors add.
"""
import json
import sys
import time
from pathlib import Path

import numpy as np
import tarsus

DEFAULT = Path(__file__).parents[2] / "shared/data/menagerie/unitree_go2/scene_mjx.xml"
ROUNDS, STEPS = 41, 200


def drives_of(model, data):
    """Drives equivalent to the model's position servos, the servos' targets, and the data's controls as qpos."""
    unit = tarsus.actuation(model, data)
    drives, target = tarsus.Drives.none(model), data.qpos.copy()
    limits, floors = np.full(model.nv, np.inf), np.full(model.nv, -np.inf)
    data.qvel[:] = 0
    for i in range(model.nu):
        dof = int(np.argmax(np.abs(unit["actuator_moment"][i])))
        joint = next(j for j in model.joints if j.qvel.start <= dof < j.qvel.stop)
        at = joint.qpos.start
        slopes = []
        for array, place in ((data.qpos, at), (data.qvel, dof)):
            array[place] += 1e-3
            slopes.append((unit["qfrc_actuator"][dof] - tarsus.actuation(model, data)["qfrc_actuator"][dof]) / 1e-3)
            array[place] -= 1e-3
        drives.kp[dof], drives.kd[dof] = max(0, slopes[0]), max(0, slopes[1])
        target[at] = data.ctrl[i]
        ends, here = [], data.qpos[at]
        for far in (1e9, -1e9):
            data.qpos[at] = far
            ends.append(tarsus.actuation(model, data)["qfrc_actuator"][dof])
        data.qpos[at] = here
        if max(np.abs(ends)) < 1e6:
            limits[dof], floors[dof] = max(ends), min(ends)
    if np.isfinite(limits).any():
        drives.force_limit, drives.force_floor = limits, floors
    return drives, target


def main():
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    model = tarsus.Model.load(path, lenient=True)
    data = tarsus.Data(model)
    data.reset(0)
    drives, target = drives_of(model, data)
    stepper = tarsus.Stepper(data, dt=1 / 60, contacts=True, joint_limits=True)
    for _ in range(300):
        assert stepper.step() == 0
    state = data.qpos.copy(), data.qvel.copy()

    batch = tarsus.Batch(model, 1, dt=1 / 60, contacts=True, joint_limits=True)
    batch.ctrl[0] = data.ctrl
    sensors = np.empty((STEPS, 1, len(data.sensordata)))

    def with_drives():
        for _ in range(STEPS):
            stepper.step(drives, qpos_target=target)

    def with_servos():
        for _ in range(STEPS):
            stepper.step()

    def without_sensors():
        batch.rollout(STEPS, states=False)

    def with_sensors():
        batch.rollout(STEPS, states=False, sensors=sensors)

    ways = {"drives": with_drives, "servos": with_servos, "rollout": without_sensors, "rollout with sensors": with_sensors}
    times = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, run in ways.items():
            data.qpos[:], data.qvel[:] = state
            batch.qpos[0], batch.qvel[0] = state
            begin = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - begin) / STEPS * 1e6)
    medians = {name: float(np.median(t)) for name, t in times.items()}
    print(json.dumps({"model": str(path.name), "actuators": model.nu, "sensors": len(tarsus.sensor_places(data)),
                      "us": {k: round(v, 2) for k, v in medians.items()},
                      "servos_add": round(medians["servos"] / medians["drives"] - 1, 4),
                      "sensors_add": round(medians["rollout with sensors"] / medians["rollout"] - 1, 4)}))


if __name__ == "__main__":
    main()
