"""Constrained multibody dynamics: articulated bodies, stable PD drives and constraints in one implicit solve.

>>> model = tarsus.Model.load("models/pendulum.xml")
>>> data = tarsus.Data(model)
>>> tarsus.aba(model, data, data.qpos, data.qvel, data.tau, out=data.qacc)

A :class:`Model` is immutable. A :class:`Data` is the state and workspace of one world or of a batch. Algorithms are
functions ``f(model, data, inputs..., outputs...)`` with the names and argument order of the C++ library.
"""

import pathlib as _pathlib

from ._core import *  # noqa: F401,F403
from ._core import __all__ as _core_all
from ._core import __version__
from .batches import Batches
from .errors import Error, InputError, ShapeError, ValueError  # noqa: A004 (the C++ name)
from .kinematic_tools import (FrameTask, IKResult, com_jacobian, ik, inverse_dynamics, jacobian_derivative, neutral,
                              random_configuration, relative_jacobian, site_pose)

#: Folder of the built-in models and clips: ``tarsus.Model.load(tarsus.MODELS / "humanoid.xml")``.
MODELS = _pathlib.Path(__file__).parent / "models"


def __getattr__(name):  # on first use, so that computing alone does not import the viewer and the learners
    if name in ("gym", "learn", "tasks", "view"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    if name == "Viewer":
        from .view.viewer import Viewer

        return Viewer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [*_core_all, "MODELS", "Batches", "Error", "InputError", "ShapeError", "ValueError", "__version__"]
