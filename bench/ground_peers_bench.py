"""A step with contacts beside MuJoCo's (wheel), on the same MJCF: our humanoid standing and lying, and the 72-DoF snake, on the floor.

Both run in one process on one core, in turns; each scene is first left to settle. Ours includes collision, drives, contacts and limits,
solved to the stated residual; MuJoCo's is its default solver at the same time step. JSON lines on standard output, a table on standard error.
"""

import json
import pathlib
import sys
import time

import numpy as np

import tarsus

try:
    import mujoco
except ImportError:
    print("SKIPPED: the `mujoco` wheel is not here", file=sys.stderr)
    sys.exit(0)

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"
DT, SETTLE, STEPS, ROUNDS = 1 / 60, 600, 200, 7


class Ours:
    def __init__(self, path, kp, kd):
        self.model = tarsus.Model.load(str(path))
        self.data = tarsus.Data(self.model)
        self.stepper = tarsus.Stepper(self.data, dt=DT, contacts=True, joint_limits=True)
        self.drives, self.target = None, None
        if kp:
            self.drives = tarsus.Drives.uniform(self.model, kp, kd, 0, 0)
            self.drives.stiff = True
            self.target = np.array(self.data.qpos)
        self.residual, self.penetration, self.touching = 0.0, 0.0, 0

    def run(self, steps):
        self.residual = self.penetration = 0.0
        for _ in range(steps):
            assert self.stepper.step(self.drives, self.target) == 0
            rows = self.stepper.rows
            self.residual = max(self.residual, rows["residual"])
            self.penetration = max(self.penetration, rows["penetration"])
            self.touching = rows["touching"]

    def time(self, steps):
        step, drives, target = self.stepper.step, self.drives, self.target
        began = time.perf_counter()
        for _ in range(steps):
            step(drives, target)
        return (time.perf_counter() - began) / steps * 1e6


class MuJoCo:
    """Stable PD is what MuJoCo does not have: standing uses implicit joint springs and damping of the same gains where it can."""

    def __init__(self, path, kp, kd):
        spec = mujoco.MjSpec.from_file(str(path))
        self.model = spec.compile()
        self.model.opt.timestep = DT
        if kp:
            self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
            for j in range(self.model.njnt):
                if self.model.jnt_type[j] != mujoco.mjtJoint.mjJNT_FREE:
                    self.model.jnt_stiffness[j] = kp
                    adr = self.model.jnt_dofadr[j]
                    self.model.dof_damping[adr:adr + (3 if self.model.jnt_type[j] == mujoco.mjtJoint.mjJNT_BALL else 1)] = kd
        self.data = mujoco.MjData(self.model)
        self.contacts = 0

    def run(self, steps):
        mujoco.mj_step(self.model, self.data, steps)
        self.contacts = self.data.ncon

    def time(self, steps):
        began = time.perf_counter()
        mujoco.mj_step(self.model, self.data, steps)
        return (time.perf_counter() - began) / steps * 1e6


def measure(name, file, kp=0, kd=0):
    ours, theirs = Ours(MODELS / file, kp, kd), MuJoCo(MODELS / file, kp, kd)
    ours.run(SETTLE), theirs.run(SETTLE)
    mine, other = [], []
    for _ in range(ROUNDS):
        mine.append(ours.time(STEPS)), other.append(theirs.time(STEPS))
    ours.run(STEPS)
    penetration = -min((c.dist for c in theirs.data.contact), default=0.0)
    return {"scene": name, "dof": ours.model.nv, "ours_us": min(mine), "mujoco_us": min(other), "ratio": min(other) / min(mine),
            "ours_median_us": float(np.median(mine)), "mujoco_median_us": float(np.median(other)),
            "touching": ours.touching, "mujoco_contacts": int(theirs.contacts), "residual_m_per_s": ours.residual,
            "penetration_m": ours.penetration, "mujoco_penetration_m": penetration, "mujoco": mujoco.__version__}


def main():
    print(f"{'scene':<22}{'ours µs':>9}{'MuJoCo µs':>11}{'ratio':>7}{'contacts':>14}{'residual m/s':>14}{'penetration m':>20}",
          file=sys.stderr)
    for arguments in (("humanoid stands", "humanoid.xml", 300, 30), ("humanoid lies", "humanoid.xml"), ("dog lies", "dog.xml"),
                      ("snake72 lies", "snake72.xml"), ("snake195 lies", "snake195.xml")):
        r = measure(*arguments)
        print(json.dumps(r), flush=True)
        print(f"{r['scene']:<22}{r['ours_us']:>9.1f}{r['mujoco_us']:>11.1f}{r['ratio']:>7.1f}{r['touching']:>7}/{r['mujoco_contacts']:<6}"
              f"{r['residual_m_per_s']:>14.1e}{r['penetration_m']:>10.1e}/{r['mujoco_penetration_m']:<9.1e}", file=sys.stderr)


if __name__ == "__main__":
    main()
