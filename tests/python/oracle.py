"""Shared by the comparisons with other engines: files, random states, measures of disagreement, tables."""

import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"

#: Required relative agreement: max |a - b| / max(1, max |b|).
TOLERANCE = 1e-9
#: Unit roundoff of double.
EPS = np.finfo(float).eps


def disagreement(ours, theirs, floor=1.0):
    """max |ours - theirs| / max(floor, max |theirs|); inf if the shapes differ or a number is not finite."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        return np.inf
    if ours.size == 0:
        return 0.0
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return np.inf
    error = np.abs(ours - theirs).max()
    return float(error / max(floor, np.abs(theirs).max())) if error > 0 else 0.0


def matrix_disagreement(ours, theirs):
    """The same for mass matrices, with each entry relative to sqrt(M_ii M_jj): a finger's entries count as much as a torso's."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape or not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return np.inf
    if len(theirs) == 0:
        return 0.0
    diagonal = np.diag(theirs)
    scale = np.sqrt(np.maximum(diagonal, max(1e-12 * diagonal.max(), 1e-300)))  # below this there is only rounding
    return float((np.abs(ours - theirs) / scale / scale[:, None]).max())


def acceleration_tolerance(mass_matrix):
    """The difference in qacc = M^-1 (tau - C) that two correct engines may have. A backward-stable solve with an n x n matrix has
    an error of at most n * eps * cond(M), relative to the largest acceleration. M is scaled by its diagonal first, because an
    algorithm that never adds numbers of different units does not depend on their ratio. The tolerance of 1e-9 holds for every
    model with n * cond below 4.5e6. The others get the tolerance that their matrix allows: inf for a singular one."""
    if len(mass_matrix) == 0:
        return TOLERANCE
    if np.diag(mass_matrix).min() <= 0:
        return np.inf
    scale = 1 / np.sqrt(np.diag(mass_matrix))
    return max(TOLERANCE, len(mass_matrix) * EPS * np.linalg.cond(mass_matrix * np.outer(scale, scale)))


def random_qpos(model, rng):
    """A random [nq] for a tarsus model: hinges within a turn, slides within a metre, any rotation."""
    qpos = rng.uniform(-1, 1, model.nq)
    for joint in model.joints:
        address = joint.qpos.start
        if joint.type == "hinge":
            qpos[address] *= np.pi
        elif joint.type in ("ball", "free"):
            quaternion = rng.normal(size=4)
            begin = address + (3 if joint.type == "free" else 0)
            qpos[begin : begin + 4] = quaternion / np.linalg.norm(quaternion)
    return qpos


def skew(p):
    return np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])


def print_table(title, rows, left_out, columns):
    """rows: (file, {column: figure}); left_out: (file, reason)."""
    width = max([len(str(name)) for name, _ in rows], default=20)
    print(f"\n{title}")
    print(f"{'file':{width}}  " + "  ".join(f"{c:>9}" for c in columns))
    for name, figures in rows:
        cells = (f"{figures[c]:9.1e}" if c in figures else f"{'-':>9}" for c in columns)
        print(f"{name!s:{width}}  " + "  ".join(cells))
    if left_out:
        print(f"left out ({len(left_out)}):")
        for name, reason in left_out:
            print(f"  {name}: {reason}")


def both_take(text, place):
    """Whether MuJoCo accepts the MJCF; tarsus must then accept it too. Otherwise ours must raise an InputError that matches
    `place`."""
    import mujoco
    import pytest
    import tarsus
    try:
        mujoco.MjModel.from_xml_string(text)
    except ValueError:
        with pytest.raises(tarsus.InputError, match=place):
            tarsus.Model.from_xml_string(text)
        return False
    tarsus.Model.from_xml_string(text)
    return True
