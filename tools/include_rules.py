"""The rooms of the library and what each may include: the table of docs/architecture.md as code.

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

# Third-party libraries and the rooms whose sources may include them. Public headers include none of them, so that users
# can compile without them. Kernels (.inl) include none either.
THIRD_PARTY = {
    "Eigen/": sorted(MAY_INCLUDE),
    "fmt/": sorted(MAY_INCLUDE),
    "libqhull_r/": ["geometry"],
    "nlohmann/": ["io", "sim"],
    "pugixml.hpp": ["io"],
}
# The only kernel that uses a library: Eigen's dense factor, compiled for each instruction set in a separate namespace. It
# renames the namespace Eigen; tools/lint_isa.py would report symbols outside it.
KERNEL_EXCEPTIONS = {("src/baselines/dense.inl", "Eigen/")}


def reachable(room):
    """The rooms that `room` may include, with `room` itself."""
    found, waiting = set(), [room]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting += MAY_INCLUDE[current]
    return found
