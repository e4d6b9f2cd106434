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
