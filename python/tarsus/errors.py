"""Exceptions of tarsus. Every one derives from :class:`Error` and carries the text of the C++ exception it stands for."""

import builtins
from typing import Sequence

__all__ = ["Error", "InputError", "ShapeError", "ValueError"]


class Error(Exception):
    """Root of every exception that the library raises."""


class InputError(Error):
    """A file or text cannot be used as a model. `diagnostics` holds every finding with its place, not only the first."""

    diagnostics: Sequence = ()


class ShapeError(Error, builtins.ValueError):
    """An array's size or shape does not fit; the text names the argument."""


class ValueError(Error, builtins.ValueError):  # noqa: A001 (the C++ name)
    """An argument's value is out of its range; the text names the argument, the value and what was expected."""


def expect(argument, value, *kinds):
    """The value, which must be of one of these classes, built-in ones or the library's. Raises TypeError."""
    if isinstance(value, kinds):
        return value
    got = "None" if value is None else f"of type {type(value).__name__}"
    names = [("tarsus." if kind.__module__.startswith("tarsus") else "") + kind.__name__ for kind in kinds]
    raise TypeError(f"{argument}: is {got}, expected a {' or '.join(names)}")
