"""Prints, as one JSON object, Pinocchio's reading of the URDF files named on the command line.

For each file that it loads: nq, nv, the fixed base's inertia, and for each joint its name, parent's name, placement in the parent's
frame, motion subspace (linear first, 6 x nv) at rest and composite inertia (mass, centre of mass, rotational about it).
"""
import json
import sys

import numpy as np
import pinocchio


def inertia(i):
    return {"mass": i.mass, "com": list(i.lever), "inertia": np.asarray(i.inertia).tolist()}


def describe(path):
    model = pinocchio.buildModelFromUrdf(path)
    joints = []
    for k in range(1, model.njoints):
        joint = model.joints[k]
        data = joint.createData()
        joint.calc(data, pinocchio.neutral(model)[joint.idx_q : joint.idx_q + joint.nq])
        placement = model.jointPlacements[k]
        joints.append(
            {
                "name": model.names[k],
                "parent": model.names[model.parents[k]],
                "position": list(placement.translation),
                "rotation": placement.rotation.tolist(),
                "subspace": np.asarray(data.S).reshape(6, joint.nv).tolist(),
                **inertia(model.inertias[k]),
            }
        )
    return {"nv": model.nv, "base": inertia(model.inertias[0]), "joints": joints}


result = {}
for path in sys.argv[1:]:
    try:
        result[path] = describe(path)
    except ValueError:
        result[path] = None  # not a URDF for Pinocchio
json.dump(result, sys.stdout)
