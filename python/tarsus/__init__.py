"""Constrained multibody dynamics. The names are those of the C++ library."""

from ._core import Error, InputError, ShapeError, ValueError, __version__, isa_level

__all__ = ["Error", "InputError", "ShapeError", "ValueError", "__version__", "isa_level"]
