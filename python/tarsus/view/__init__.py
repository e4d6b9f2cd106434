"""Show models, simulations and recordings in a browser.

>>> tarsus.view("models/humanoid.xml", clip="models/clips/humanoid_walk.json")      # plays until Ctrl-C

From a user's loop or a notebook, a :class:`Viewer` shows the present state of the data at each ``update()``:

>>> viewer = tarsus.Viewer(model, data)
>>> print(viewer.url)
>>> while stepper.step() == 0:
...     viewer.update()

``python -m tarsus.view --help`` (or ``tarsus view --help``) is the command line, which also writes pages, pictures, films,
glTF and other files.
"""

import sys
import types

from .page import Recording, record, write_page
from .sources import ModelSource, ParticleSource, PlaybackSource, RigidSource, Source, open_source

__all__ = ["ModelSource", "ParticleSource", "PlaybackSource", "Recording", "RigidSource", "Source", "Viewer",
           "open_source", "record", "write_page"]


def __getattr__(name):
    if name == "Viewer":  # needs the package websockets; the rest does not
        from .viewer import Viewer

        return Viewer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _CallableModule(types.ModuleType):
    def __call__(self, what, data=None, *, host="127.0.0.1", port=0, **options):
        """Opens a viewer on a model, a file or the name of a scene and plays until Ctrl-C."""
        from .viewer import Viewer

        with Viewer(what, data, host=host, port=port, **options) as viewer:
            print(viewer.url, flush=True)
            viewer.run()


sys.modules[__name__].__class__ = _CallableModule
