"""Shared by the comparisons with MuJoCo's wheel."""

import pathlib

import mujoco


def without_pictures(file):
    """The model of a file without the geoms that neither collide nor have mass, whose meshes may be missing."""
    spec = mujoco.MjSpec.from_file(str(file))
    used = set()
    for geom in list(spec.geoms):
        weighs = not geom.parent.explicitinertial and geom.mass != 0
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH and geom.contype == 0 and geom.conaffinity == 0 and not weighs:
            spec.delete(geom)
        else:
            used.add(geom.meshname)
    for mesh in list(spec.meshes):
        if mesh.name not in used and pathlib.Path(mesh.file).stem not in used:
            spec.delete(mesh)
    return spec.compile()
