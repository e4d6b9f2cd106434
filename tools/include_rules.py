"""The rooms of the library and what each may include: the table of docs/architecture.md in a form that runs.

A room may include itself, the rooms listed beside it, and whatever those may include.
"""

MAY_INCLUDE = {
    "base": [],
    "math": ["base"],
    "spatial": ["math"],
    "model": ["spatial"],
    "dynamics": ["model"],
    "control": ["dynamics"],
    "geometry": ["math"],
    "solver": ["math"],
    "constraint": ["dynamics", "geometry", "solver"],
    "particles": ["constraint", "solver"],
    "sim": ["control", "constraint", "particles"],
    "baselines": ["control", "constraint"],
    "learn": ["sim"],
    "io": ["model", "particles", "control", "geometry"],
}

# Libraries of others and the rooms whose sources may include them. Public headers include none of them, so that users
# need none to compile; kernels (.inl) none either.
THIRD_PARTY = {
    "Eigen/": sorted(MAY_INCLUDE),
    "fmt/": sorted(MAY_INCLUDE),
    "libqhull_r/": ["geometry"],
    "nlohmann/": ["io", "sim"],
    "pugixml.hpp": ["io"],
}
# The one kernel that uses a library: Eigen's dense factor, compiled for each instruction set in a namespace of its own
# (it renames Eigen's; tools/lint_isa.py would see what escaped).
KERNEL_EXCEPTIONS = {("src/baselines/dense.inl", "Eigen/")}


def reachable(room):
    """The rooms that `room` may include, itself among them."""
    found, waiting = set(), [room]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting += MAY_INCLUDE[current]
    return found
