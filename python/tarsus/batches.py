"""Worlds of several models together: one Batch per model, results in one array."""

import contextlib

import numpy as np

from ._core import Batch
from .errors import ShapeError, ValueError, expect  # noqa: A004 (the C++ name)


class Batches:
    """Batches of different models that are stepped, reset and read together. World `i` overall is world ``i -
    slices[g].start`` of ``groups[g]``. Each group keeps its own arrays.

    >>> both = tarsus.Batches(tarsus.Batch(humanoid, 512), tarsus.Batch(dog, 512))
    >>> both.groups[1].ctrl[:] = 0.1
    >>> bad = both.step()
    """

    def __init__(self, *groups):
        if not groups:
            raise ValueError("groups: is empty, expected one or more tarsus.Batch")
        for group in groups:
            expect("groups", group, Batch)
        if len(set(map(id, groups))) < len(groups):
            raise ValueError("groups: has the same batch twice, expected each batch once")
        if len({group.dt for group in groups}) > 1:
            raise ValueError(f"groups: have time steps of {sorted({group.dt for group in groups})} s, expected the same dt in all groups")
        self.groups = tuple(groups)
        ends = np.cumsum([group.worlds for group in groups])
        self.slices = tuple(slice(int(end) - group.worlds, int(end)) for group, end in zip(groups, ends))

    def __repr__(self):
        return f"<tarsus.Batches of {', '.join(f'{g.worlds} {g.model.name!r}' for g in self.groups)}>"

    @property
    def worlds(self):
        """Number of worlds in all groups."""
        return self.slices[-1].stop

    @property
    def dt(self):
        """Time step [s]."""
        return self.groups[0].dt

    def step(self):
        """Advances all worlds with status ok by one step. Returns the number of worlds whose status is not ok."""
        return sum(group.step() for group in self.groups)

    def rollout(self, steps):
        """Makes many steps, one group after the other, without Python's lock. Ctrl-C ends the rollout; `steps` then tells how
        far each group is. Returns the number of worlds whose status is not ok."""
        for group in self.groups:
            group.rollout(steps, states=False)
        return int(np.count_nonzero(self.status))

    def reset(self, mask=None):
        """Restarts the worlds of mask [worlds] (bool; None: all) at their models' qpos0, at rest."""
        if mask is not None:
            mask = np.asarray(mask)
            if mask.shape != (self.worlds,) or mask.dtype != bool:
                raise ShapeError(f"mask: is {mask.dtype} {list(mask.shape)}, expected bool [{self.worlds}]")
        for group, part in zip(self.groups, self.slices):
            group.reset(None if mask is None else mask[part].copy())

    @property
    def status(self):
        """[worlds] status of each world, as Batch.status."""
        return np.concatenate([group.status for group in self.groups])

    @property
    def steps(self):
        """[worlds] number of successful steps since the world's reset."""
        return np.concatenate([group.steps for group in self.groups])

    @property
    def reports(self):
        """Solver results, each [worlds], as Batch.reports."""
        parts = [group.reports for group in self.groups]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def measure(self, what=("energy", "com")):
        """As Batch.measure, for the quantities that have the same size in all models: 'energy' [worlds, 3] and 'com' [worlds,
        6]."""
        for name in expect("what", what, list, tuple):
            if name not in ("energy", "com"):
                raise ValueError(f"what: is {name!r}, expected energy or com; measure() of a group has the others")
        parts = [group.measure(list(what)) for group in self.groups]
        return {name: np.concatenate([part[name] for part in parts]) for name in what}

    def _arrays(self, name):
        parts = [getattr(group, expect("name", name, str), None) for group in self.groups]
        if not all(isinstance(part, np.ndarray) and part.ndim == 2 for part in parts):
            raise ValueError(f"name: is {name!r}, expected the name of an array [worlds, n], such as 'qpos'; the groups have other attributes")
        return parts

    def padded(self, name, out=None, fill=0.0):
        """An array of all groups ('qpos', 'qvel', 'tau', 'ctrl', …), copied to [worlds, n of the largest model]. Models with
        fewer numbers are padded with `fill`. out: floating-point array of this shape to write to. Raises ValueError for a
        name that is not such an array, and ShapeError for an `out` of another shape."""
        parts = self._arrays(name)
        shape = (self.worlds, max(part.shape[1] for part in parts))
        expect("fill", fill, int, float, np.number)
        if out is None:
            out = np.empty(shape, np.result_type(*parts))
        if expect("out", out, np.ndarray).shape != shape:
            raise ShapeError(f"out: is {list(out.shape)}, expected {list(shape)}")
        if out.dtype.kind != "f":
            raise ValueError(f"out: is of {out.dtype}, expected a floating-point type")
        for part, at in zip(parts, self.slices):
            out[at, : part.shape[1]], out[at, part.shape[1] :] = part, fill
        return out

    def assign(self, name, values):
        """The inverse of padded(): copies `values` [worlds, n of the largest model] to the groups' arrays. Raises ValueError
        for an array that cannot be set, and ShapeError for values of another shape."""
        parts = self._arrays(name)
        if getattr(Batch, name).fset is None:
            raise ValueError(f"name: is {name!r}, which only steps write, expected the name of an array that can be set, such as 'qpos'")
        values, shape = np.asarray(values), (self.worlds, max(part.shape[1] for part in parts))
        if values.shape != shape:
            raise ShapeError(f"{name}: is {list(values.shape)}, expected {list(shape)}")
        if values.dtype.kind not in "fiu":
            raise ValueError(f"{name}: is of {values.dtype}, expected real numbers")
        for part, at in zip(parts, self.slices):
            part[...] = values[at, : part.shape[1]]

    def save(self):
        """The complete state of the worlds of all batches; can be pickled."""
        return [group.save() for group in self.groups]

    def restore(self, state):
        """Restores what save() returned. On an error all groups keep their states."""
        if len(expect("state", state, list, tuple)) != len(self.groups):
            raise ValueError(f"state: has {len(state)} groups, expected {len(self.groups)}")
        before = self.save()
        try:
            for group, part in zip(self.groups, state):
                group.restore(part)
        except Exception:
            with contextlib.suppress(Exception):
                for group, part in zip(self.groups, before):
                    group.restore(part)
            raise

    def copy(self):
        """A new object with the same worlds in the same states."""
        return Batches(*(group.copy() for group in self.groups))

    __copy__ = copy  # as of a Batch: Python's own would share the groups

    def state_hash(self):
        """Hash of each group's state: equal states have equal hashes."""
        return tuple(group.state_hash() for group in self.groups)
