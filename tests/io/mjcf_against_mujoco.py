#!/usr/bin/env python3
"""Compares every MJCF file that MuJoCo loads with what tarsus reads from it.

usage: mjcf_against_mujoco.py TEST_IO DATA   (the program test_io of a build tree; a folder with .xml files)

Bodies (names, parents, poses, masses, centres, inertia tensors), joints (all numbers), geoms, sites, actuators (gains, biases,
limits), tendons, equalities, pairs, keyframes: to 1e-9 relative, but inertia tensors to 1e-7, because MuJoCo's stored
principal axes of a `fullinertia` reproduce the file's tensor only so far (we keep the tensor itself).
Exit status 1 if a file differs that is not in EXPECTED.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import mujoco
import numpy as np

EXPECTED = {
    "derivative/dcmotor.xml": "dcmotor actuators with several inputs are not supported, and are named as such",
    "testdata/parent_merge.xml": "options of attached models are not merged into the parent's, and are named as such",
}
JOINT_FREE, JOINT_SLIDE, JOINT_HINGE = 0, 2, 3
OUR_MESH = 6
GAIN_FIXED, GAIN_AFFINE = int(mujoco.mjtGain.mjGAIN_FIXED), int(mujoco.mjtGain.mjGAIN_AFFINE)
BIAS_NONE, BIAS_AFFINE = int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE)
SIZES = {2: 1, 3: 2, 5: 2}  # MuJoCo's geom type -> how many of its sizes count (others: 3)


def rotation(quat):
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, np.array(quat, float))
    return out.reshape(3, 3)


class Comparison:
    def __init__(self, ours, model):
        self.ours, self.model, self.faults = ours, model, []

    def check(self, what, a, b, tolerance=1e-9, scale=None):
        a, b = np.asarray(a, float), np.asarray(b, float)
        if a.shape != b.shape:
            self.faults.append(f"{what}: shape {a.shape}, MuJoCo {b.shape}")
            return
        largest = max(np.abs(a).max(initial=0), np.abs(b).max(initial=0), 1e-12) if scale is None else scale
        if a.size and np.abs(a - b).max() > tolerance * largest:
            self.faults.append(f"{what}: {a.ravel()}, MuJoCo {b.ravel()}")

    def same(self, what, a, b):
        if a != b:
            self.faults.append(f"{what}: {a}, MuJoCo {b}")
        return a == b

    def run(self):
        bodies = self.ours["bodies"]
        m = self.model
        if self.same("body names", [b["name"] for b in bodies], [m.body(i).name for i in range(m.nbody)]):
            self.bodies(bodies)
            self.joints(bodies)
            self.geoms(bodies)
            self.sites(bodies)
        self.actuators(self.ours.get("actuators") or [])
        self.rest()
        return self.faults

    def bodies(self, bodies):
        m = self.model
        for i, b in enumerate(bodies[1:], 1):
            name = f"body {i} {b['name']}"
            self.same(f"{name} parent", b["parent"], int(m.body_parentid[i]))
            self.check(f"{name} pos", b["pos"], m.body_pos[i], scale=1)
            self.check(f"{name} orientation", rotation(b["quat"]), rotation(m.body_quat[i]))
            mass = b.get("mass", 0)
            self.check(f"{name} mass", mass, m.body_mass[i])
            if mass > 0:
                self.check(f"{name} centre of mass", b["com"], m.body_ipos[i], scale=1)
            xx, xy, xz, yy, yz, zz = b.get("inertia", [0] * 6)
            r = rotation(m.body_iquat[i])
            self.check(f"{name} inertia", [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], r @ np.diag(m.body_inertia[i]) @ r.T, 1e-7)

    def joints(self, bodies):
        m = self.model
        ours = [(i, j) for i, b in enumerate(bodies) for j in b.get("joints") or []]
        if not self.same("number of joints", len(ours), m.njnt):
            return
        for k, (body, j) in enumerate(ours):
            name, dof, adr = f"joint {k} {j['name']}", m.jnt_dofadr[k], m.jnt_qposadr[k]
            self.same(f"{name} name", j["name"], m.jnt(k).name)
            self.same(f"{name} type", (body, j["type"]), (int(m.jnt_bodyid[k]), int(m.jnt_type[k])))
            if j["type"] != JOINT_FREE:
                self.check(f"{name} pos", j["pos"], m.jnt_pos[k], scale=1)
            if j["type"] in (JOINT_SLIDE, JOINT_HINGE):
                self.check(f"{name} axis", j["axis"], m.jnt_axis[k], scale=1)
                self.check(f"{name} qpos0", j["ref"], m.qpos0[adr], scale=1)
                self.check(f"{name} springref", j["springref"], m.qpos_spring[adr], scale=1)
            if self.same(f"{name} limited", j["limited"], bool(m.jnt_limited[k])) and j["limited"]:
                self.check(f"{name} range", j["range"], m.jnt_range[k])
            if self.same(f"{name} force limited", j["force_limited"], bool(m.jnt_actfrclimited[k])) and j["force_limited"]:
                self.check(f"{name} force range", j["force_range"], m.jnt_actfrcrange[k])
            self.check(f"{name} stiffness", j["stiffness"], np.ravel(m.jnt_stiffness[k])[0])
            self.check(f"{name} damping", j["damping"], np.ravel(m.dof_damping[dof])[0])
            self.check(f"{name} armature", j["armature"], m.dof_armature[dof])
            self.check(f"{name} frictionloss", j["frictionloss"], m.dof_frictionloss[dof])

    def geoms(self, bodies):
        m = self.model
        ours = [(i, g) for i, b in enumerate(bodies) for g in b.get("geoms") or []]
        if not self.same("number of geoms", len(ours), m.ngeom):
            return
        for k, (body, g) in enumerate(ours):
            name, kind = f"geom {k} {g['name']}", int(m.geom_type[k])
            self.same(f"{name} body", body, int(m.geom_bodyid[k]))
            for field in ("contype", "conaffinity", "condim", "margin"):
                self.check(f"{name} {field}", g[field], getattr(m, "geom_" + field)[k])
            self.check(f"{name} friction", g["friction"], m.geom_friction[k])
            if g["mesh"]:  # MuJoCo moves meshes to their inertial frame; what matters, the body's inertia, is compared
                if g["type"] != OUR_MESH:
                    self.check(f"{name} size fitted to a mesh", g["size"], m.geom_size[k], 1e-6)
                continue
            self.check(f"{name} pos", g["pos"], m.geom_pos[k], scale=1)
            self.check(f"{name} orientation", rotation(g["quat"]), rotation(m.geom_quat[k]))
            if kind > 1:
                n = SIZES.get(kind, 3)
                self.check(f"{name} size", g["size"][:n], m.geom_size[k][:n])

    def sites(self, bodies):
        m = self.model
        ours = [(i, s) for i, b in enumerate(bodies) for s in b.get("sites") or []]
        if not self.same("number of sites", len(ours), m.nsite):
            return
        for k, (body, s) in enumerate(ours):
            self.same(f"site {k}", (body, s["name"]), (int(m.site_bodyid[k]), m.site(k).name))
            self.check(f"site {k} pos", s["pos"], m.site_pos[k], scale=1)
            self.check(f"site {k} orientation", rotation(s["quat"]), rotation(m.site_quat[k]))

    def actuators(self, ours):
        m = self.model
        if not self.same("number of actuators", len(ours), m.nu):
            return
        for k, a in enumerate(ours):
            name = f"actuator {k} {a['name']}"
            self.same(f"{name} name", a["name"], m.actuator(k).name)
            if m.actuator_trntype[k] == int(mujoco.mjtTrn.mjTRN_JOINT):
                self.same(f"{name} joint", a["target"], m.jnt(m.actuator_trnid[k][0]).name)
            self.check(f"{name} gear", a["gear"], m.actuator_gear[k])
            if m.actuator_gaintype[k] in (GAIN_FIXED, GAIN_AFFINE) and m.actuator_biastype[k] in (BIAS_NONE, BIAS_AFFINE):
                self.check(f"{name} gain", a["gain"], m.actuator_gainprm[k][:3])
                if m.actuator_biastype[k] == BIAS_AFFINE:
                    self.check(f"{name} bias", a["bias"], m.actuator_biasprm[k][:3])
            if self.same(f"{name} control limited", a["ctrl_limited"], bool(m.actuator_ctrllimited[k])) and a["ctrl_limited"]:
                self.check(f"{name} control range", a["ctrl_range"], m.actuator_ctrlrange[k])
            if self.same(f"{name} force limited", a["force_limited"], bool(m.actuator_forcelimited[k])) and a["force_limited"]:
                self.check(f"{name} force range", a["force_range"], m.actuator_forcerange[k])
            self.same(f"{name} has dynamics", bool(a["dynamics"]) or m.actuator_dyntype[k] == 0, True)

    def rest(self):
        m, ours = self.model, self.ours
        self.check("timestep", ours["timestep"], m.opt.timestep)
        self.check("gravity", ours["gravity"], m.opt.gravity)
        counts = {"equalities": m.neq, "tendons": m.ntendon, "pairs": m.npair, "excludes": m.nexclude, "sensors": m.nsensor}
        equal = {what: self.same(f"number of {what}", len(ours.get(what) or []), n) for what, n in counts.items()}
        for k, t in enumerate((ours.get("tendons") or []) if equal["tendons"] else []):
            self.same(f"tendon {k} name", t["name"], m.tendon(k).name)
            if self.same(f"tendon {k} limited", t["limited"], bool(m.tendon_limited[k])) and t["limited"]:
                self.check(f"tendon {k} range", t["range"], m.tendon_range[k])
            if t["spatial"]:
                continue
            begin, n = m.tendon_adr[k], m.tendon_num[k]
            self.same(f"tendon {k} joints", [j for j, _ in t["terms"]], [m.jnt(m.wrap_objid[i]).name for i in range(begin, begin + n)])
            self.check(f"tendon {k} coefficients", [c for _, c in t["terms"]], m.wrap_prm[begin : begin + n])
        for k, e in enumerate((ours.get("equalities") or []) if equal["equalities"] else []):
            self.same(f"equality {k} active", e["active"], bool(m.eq_active0[k]))
            if m.eq_type[k] == int(mujoco.mjtEq.mjEQ_JOINT):
                self.check(f"equality {k} polynomial", e["poly"], m.eq_data[k][:5])
            if m.eq_type[k] == int(mujoco.mjtEq.mjEQ_CONNECT) and m.eq_objtype[k] == int(mujoco.mjtObj.mjOBJ_BODY):
                self.check(f"equality {k} anchor", e["anchor"], m.eq_data[k][:3], scale=1)
        for k, key in enumerate(ours.get("keys") or []):
            if key["qpos"]:  # MuJoCo normalises quaternions in keyframes, we keep them as written: real files are 1e-3 off
                self.check(f"key {k} qpos", key["qpos"], m.key_qpos[k], 1e-2)
            if key["ctrl"]:
                self.check(f"key {k} ctrl", key["ctrl"], m.key_ctrl[k])


def main(program, data):
    models = {}
    for path in sorted(Path(data).rglob("*.xml")):
        if b"<mujoco" not in path.read_bytes():
            continue
        try:
            models[str(path)] = mujoco.MjModel.from_xml_path(str(path))
        except ValueError:
            pass  # what MuJoCo refuses there is nothing to compare with
    with tempfile.TemporaryDirectory() as folder:
        listed, out = Path(folder) / "list", Path(folder) / "out"
        listed.write_text("\n".join(models) + "\n")
        environment = os.environ | {"TARSUS_DUMP_LIST": str(listed), "TARSUS_DUMP_OUT": str(out)}
        subprocess.run([program, "--gtest_filter=MjcfDump.*"], env=environment, check=True, stdout=subprocess.DEVNULL)
        dumps = [json.loads(line) for line in out.read_text().splitlines()]
    equal = unexpected = 0
    for ours in dumps:
        file = ours["file"]
        faults = [ours["error"]] if "error" in ours else Comparison(ours, models[file]).run()
        reason = next((r for tail, r in EXPECTED.items() if file.endswith(tail)), None)
        if not faults:
            equal += 1
            continue
        unexpected += reason is None
        print(f"{file}: {reason or 'DIFFERS'}")
        for fault in faults[:5]:
            print("   ", fault[:300])
    print(f"{len(models)} files that MuJoCo {mujoco.__version__} loads: {equal} equal, {unexpected} unexpectedly different")
    return 1 if unexpected or not models else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
