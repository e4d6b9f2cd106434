"""Exceptions of tarsus. All derive from :class:`Error` and carry the message of the corresponding C++ exception."""

import builtins
import os
from typing import Sequence

__all__ = ["Error", "InputError", "ShapeError", "ValueError"]


class Error(Exception):
    """Base class of all exceptions of the library."""


class InputError(Error):
    """A file or text cannot be used as a model. `diagnostics` holds all findings with their locations."""

    diagnostics: Sequence = ()


class ShapeError(Error, builtins.ValueError):
    """The size or shape of an array does not fit; the message names the argument."""


class ValueError(Error, builtins.ValueError):  # noqa: A001 (the C++ name)
    """An argument is out of range; the message names the argument, its value and the expected values."""


def expect(argument, value, *kinds):
    """Returns the value if it is an instance of one of these classes (built-in or the library's). Raises TypeError otherwise."""
    if isinstance(value, kinds):
        return value
    got = "None" if value is None else f"of type {type(value).__name__}"
    names = [("tarsus." if kind.__module__.startswith("tarsus") else "") + kind.__name__ for kind in kinds]
    raise TypeError(f"{argument}: is {got}, expected a {' or '.join(names)}")


def ordinary_file(path):
    """Returns the path of an existing ordinary file. Raises InputError otherwise: opening a pipe would wait for its writer."""
    if not os.path.isfile(path):
        raise InputError(f"{path}: " + ("this is not an ordinary file" if os.path.exists(path) else "no such file"))
    return path
