#!/usr/bin/env python3
"""MuJoCo's results for scenes of free bodies, for tests/sim/rigid_oracle_test.cpp.

usage: rigid_against_mujoco.py rest FILE SECONDS      contact forces of a scene that has come to rest
       rigid_against_mujoco.py path FILE SECONDS DT [QVEL...]   positions and velocities of all bodies at the end
Prints one JSON object. Elliptic cones, Newton's solver to 1e-12.
"""
import json
import sys

import mujoco
import numpy as np


def load(path, dt=None):
    model = mujoco.MjModel.from_xml_path(path)
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.iterations, model.opt.tolerance = 200, 1e-12
    if dt:
        model.opt.timestep = dt
    return model, mujoco.MjData(model)


def rest(path, seconds):
    model, data = load(path, 1 / 500)
    while data.time < seconds:
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    forces = {}
    for k in range(data.ncon):
        wrench = np.zeros(6)
        mujoco.mj_contactForce(model, data, k, wrench)
        bodies = sorted(model.geom_bodyid[g] for g in (data.contact[k].geom1, data.contact[k].geom2))
        key = " ".join(model.body(int(b)).name for b in bodies)
        normal, tangent = forces.get(key, (0.0, np.zeros(3)))
        frame = data.contact[k].frame.reshape(3, 3)
        sign = 1 if model.geom_bodyid[data.contact[k].geom1] == bodies[0] else -1
        forces[key] = (normal + wrench[0], tangent + sign * (frame[1] * wrench[1] + frame[2] * wrench[2]))
    speed = float(np.abs(data.qvel).max())
    return {"speed": speed, "forces": {k: {"normal": n, "tangent": float(np.linalg.norm(t))} for k, (n, t) in forces.items()}}


def path(file, seconds, dt, velocity):
    model, data = load(file, dt)
    if velocity:
        data.qvel[:] = velocity
    for _ in range(round(seconds / dt)):
        mujoco.mj_step(model, data)
    return {"qpos": data.qpos.tolist(), "qvel": data.qvel.tolist()}


if __name__ == "__main__":
    what, file, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    print(json.dumps(rest(file, seconds) if what == "rest" else path(file, seconds, float(sys.argv[4]), [float(x) for x in sys.argv[5:]])))
