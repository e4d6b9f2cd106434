#!/usr/bin/env python3
"""Compares actuators, tendons, passive forces and sensors with MuJoCo's wheel, at random states and controls.

usage: actuation_against_mujoco.py TEST_SIM DATA   (the program test_sim of a build tree; a folder with .xml files)

Every MJCF below DATA that MuJoCo loads and that has actuators, tendons, sensors, springs, dampers or a fluid: lengths,
velocities, forces, activation derivatives, qfrc_actuator, qfrc_passive, moment arms and all sensors that do not depend
on contact, to 1e-9 of the largest number of their array (added masses of a fluid to 1e-5: MuJoCo integrates them
roughly). With a third argument, steps: 200 explicit steps of each file against MuJoCo's Euler step, without constraints.
Prints what was compared, by kind. Exit status 1 if anything differs that is not in EXPECTED.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import mujoco
import numpy as np

EXPECTED = {
    "dm_control_suite/quadruped.xml": "rays of rangefinders pass height fields, which reading warns of",
    "mujoco/model/adhesion/active_adhesion.xml": "adhesion is not computed, which reading warns of",
    "mujoco/model/replicate/newton_cradle.xml": "replicated tendons come one after the other, MuJoCo's replica by replica",
}
#: MuJoCo's point of contact of a path that touches a geom from within is found to 1e-6, and so are its moment arms.
TOUCHED_FROM_WITHIN = {"mujoco/model/replicate/tendon.xml"}
STATES = 3
CONTACT = {"mjSENS_TOUCH", "mjSENS_CONTACT"}  # compared at rest elsewhere
ARRAYS = ["actuator_length", "actuator_velocity", "actuator_force", "act_dot", "qfrc_actuator", "qfrc_passive",
          "ten_length", "ten_velocity", "ten_J"]
TOLERANCE = 1e-9 * float(os.environ.get("TARSUS_TOLERANCE_SCALE", "1"))


def random_state(model, data, rng, wide):
    mujoco.mj_resetData(model, data)
    velocity = rng.normal(size=model.nv) * (1.0 if wide else 0.1)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv) * (0.5 if wide else 0.1), 1.0)
    data.qvel[:] = velocity
    if model.nu:
        low = np.where(model.actuator_ctrllimited, model.actuator_ctrlrange[:, 0], -1)
        high = np.where(model.actuator_ctrllimited, model.actuator_ctrlrange[:, 1], 1)
        data.ctrl[:] = rng.uniform(low, high) * 1.2
    data.act[:] = rng.uniform(0, 1, size=model.na)
    data.time = rng.uniform(0, 10)


def dense_tendon_jacobian(model, data):
    out = np.zeros((model.ntendon, model.nv))
    for t in range(model.ntendon):
        first, count = model.ten_J_rowadr[t], model.ten_J_rownnz[t]
        out[t, model.ten_J_colind[first:first + count]] = data.ten_J.ravel()[first:first + count]
    return out


def expected_of(model, data):
    out = {name: np.array(getattr(data, name)) for name in ARRAYS if name != "ten_J"}
    out["ten_J"] = dense_tendon_jacobian(model, data)
    out["sensordata"] = np.array(data.sensordata)
    return out


def state_of(data):
    return {name: np.array(getattr(data, name)).tolist() for name in ("qpos", "qvel", "qacc", "ctrl", "act")} | {
        "time": data.time}


def relevant(model):
    return (model.nactuator or model.ntendon or model.nsensor or model.opt.density or model.opt.viscosity or
            model.jnt_stiffness.any() or model.dof_damping.any() or model.body_gravcomp.any())


def without_constraints(model):
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)


def question_of(file, rng, steps):
    model = mujoco.MjModel.from_xml_path(str(file))
    if not relevant(model):
        return None, None, None, None
    without_constraints(model)
    data = mujoco.MjData(model)
    states, answers = [], []
    for i in range(STATES):
        random_state(model, data, rng, i > 0)
        mujoco.mj_forward(model, data)
        states.append(state_of(data))
        answers.append(expected_of(model, data))
    question = {"file": str(file), "states": states}
    run = None
    if steps:
        question["steps"] = steps
        random_state(model, data, rng, False)
        # MuJoCo's own step from the first state
        d = mujoco.MjData(model)
        for name in ("qpos", "qvel", "ctrl", "act"):
            getattr(d, name)[:] = states[0][name]
        model.opt.integrator = int(mujoco.mjtIntegrator.mjINT_EULER)
        run = []
        for _ in range(steps):
            mujoco.mj_step(model, d)
            run.append(d.qpos.copy())
    return model, question, answers, run


def compare_file(model, answer, expected, counts, faults, within):
    def check(what, ours, theirs, tolerance, scale=None):
        ours, theirs = np.asarray(ours, float).ravel(), np.asarray(theirs, float).ravel()
        if ours.shape != theirs.shape:
            faults.append(f"{what}: {ours.shape} numbers, MuJoCo {theirs.shape}")
            return False
        size = max(np.abs(theirs).max(initial=0), 1e-6) if scale is None else scale
        worst = np.abs(ours - theirs).max(initial=0) / size
        if not worst <= tolerance:
            i = int(np.argmax(np.abs(ours - theirs)))
            faults.append(f"{what}: off by {worst:.2g} at {i}: {ours[i]:.12g}, MuJoCo {theirs[i]:.12g}")
        return worst <= tolerance

    for ours, theirs in zip(answer["states"], expected):
        fluid = (model.geom_fluid[:, 0] > 0).any() and (model.opt.density or model.opt.viscosity)
        for name in ARRAYS:
            loose = 1e4 if fluid and name == "qfrc_passive" else 1e3 if within and name.startswith("ten_") else 1
            check(name, ours[name], theirs[name], TOLERANCE * loose)
        data = np.asarray(ours["sensordata"], float)
        if data.shape != theirs["sensordata"].shape:
            faults.append(f"sensordata: {data.shape}, MuJoCo {theirs['sensordata'].shape}")
            continue
        for i in range(model.nsensor):
            kind = mujoco.mjtSensor(model.sensor_type[i]).name
            address, dimension, computed = answer["sensors"][i]
            if kind in CONTACT or not computed:
                counts["sensors not compared"][kind] += 1
                continue
            a, b = data[address:address + dimension], theirs["sensordata"][address:address + dimension]
            if kind == "mjSENS_FRAMEQUAT":
                a = a * np.sign(np.dot(a, b))
            scale = max(np.abs(b).max(initial=0), np.abs(theirs["sensordata"]).max(initial=0) * 1e-3, 1e-6)
            if check(f"{kind} {model.sensor(i).name}", a, b, TOLERANCE, scale):
                counts["sensors"][kind] += 1
    for i in range(model.nactuator):
        law = "/".join(enum(value).name.split("_")[-1].lower() for enum, value in (
            (mujoco.mjtTrn, model.actuator_trntype[i]), (mujoco.mjtDyn, model.actuator_dyntype[i]),
            (mujoco.mjtGain, model.actuator_gaintype[i]), (mujoco.mjtBias, model.actuator_biastype[i])))
        counts["actuators"][law] += 1
    for i in range(model.ntendon):
        kinds = {mujoco.mjtWrap(k).name.split("_")[-1].lower()
                 for k in model.wrap_type[model.tendon_adr[i]:model.tendon_adr[i] + model.tendon_num[i]]}
        counts["tendons"]["+".join(sorted(kinds))] += 1


def main():
    program, folder = sys.argv[1:3]
    files = []
    for file in sorted(Path(folder).rglob("*.xml")):
        try:
            if b"<mujoco" in file.read_bytes():
                files.append(file)
        except OSError:
            continue
    rng = np.random.default_rng(5)
    models, expected, runs, skipped = {}, {}, {}, 0
    with tempfile.TemporaryDirectory() as work:
        list_name, out_name = Path(work) / "list", Path(work) / "out"
        with open(list_name, "w") as out:
            for file in files:
                try:
                    steps = 200 if "steps" in sys.argv[3:] else 0
                    model, question, answers, run = question_of(file, rng, steps)
                except (ValueError, mujoco.FatalError, TypeError):
                    skipped += 1
                    continue
                if model is None:
                    continue
                models[str(file)], expected[str(file)], runs[str(file)] = model, answers, run
                out.write(json.dumps(question) + "\n")
        environment = dict(os.environ, TARSUS_DUMP_LIST=str(list_name), TARSUS_DUMP_OUT=str(out_name))
        subprocess.run([program, "--gtest_filter=ActuationDump.*"], env=environment, check=True, stdout=subprocess.DEVNULL)
        answers = [json.loads(line) for line in open(out_name)]
    counts, bad, refused = collections.defaultdict(collections.Counter), 0, []
    compared = 0
    growth = []
    for answer in answers:
        file = answer["file"]
        short = str(Path(file).relative_to(folder))
        if "error" in answer:
            refused.append(short)
            print(f"refused  {short}: {answer['error'].splitlines()[0][:150]}")
            continue
        faults = []
        compare_file(models[file], answer, expected[file], counts, faults, short in TOUCHED_FROM_WITHIN)
        if runs[file]:
            ours, theirs = np.array(answer["run"]["qpos"]), np.array(runs[file])
            off = np.abs(ours - theirs).max(axis=1)
            growth.append((short, off[0], off[-1]))
            if not off[0] < 1e-10:
                faults.append(f"first explicit step off by {off[0]:.3g}")
        compared += 1
        for fault in sorted(set(faults))[:6]:
            print(f"differs  {short}: {fault}")
        bad += bool(faults) and short not in EXPECTED
    print(f"{compared} files at {STATES} states each; {len(refused)} that tarsus refuses, {skipped} that MuJoCo does")
    for what, kinds in sorted(counts.items()):
        print(f"{what}: {sum(kinds.values())}: " + ", ".join(f"{k} {n}" for k, n in sorted(kinds.items())))
    for short, first, last in growth:
        print(f"explicit steps  {short}: {first:.2g} after 1, {last:.2g} after 200")
    print("all the same" if not bad else f"{bad} files differ")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
