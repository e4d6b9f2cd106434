"""The live viewer: a source, the clock that plays it, and the server that sends it to pages."""

import atexit
import collections
import os
import threading
import time as clock

import numpy as np

import tarsus

from .page import Recording, record, write_page
from .server import Server
from .source import finite
from .sources import Source, open_source

HISTORY_BYTES = 64 << 20
FRAME_SPACING, SPARING_FRAME_SPACING = 1 / 60, 1 / 30  # [s]
LARGE_FRAME = 4096  # poses


class Viewer:
    """Shows a model's data, a file or a scene in the browser, at `url`.

    what: a tarsus.Model with its Data (stepper=: the stepper of a user's loop, whose contacts are shown); the path of a
    model, recording, clip or particle file; or the name of a scene.
    The viewer shows the state at each update() of a user's loop. Otherwise run() plays until Ctrl-C, and start() plays in
    the background.
    options: those of open_source(), e.g. clip=, dt=, contacts=, worlds=.
    """

    def __init__(self, what, data=None, *, host="127.0.0.1", port=0, playing=True, files=None, gallery=None,
                 on_open=None, reload_from=None, **options):
        self.source = open_source(what, data, **options)
        self.playing, self.speed, self.error = playing, 1.0, ""
        self.gallery, self.on_open = gallery, on_open  # scenes to choose from; called with a name, returns its source
        self.reload_from = reload_from  # (file, function that opens it again): a changed file is loaded again
        self.stamp, self.looked = self._file_time(), 0.0
        self.lock = threading.RLock()
        self.history = collections.deque()
        self.due = 0.0  # earliest time of the next frame
        self.thread, self.stopping = None, threading.Event()
        self.server = Server(self._greeting, self._order, host, port, files)
        atexit.register(self.close)  # while the interpreter is alive: its threads hold the data
        self._show()

    @property
    def url(self):
        """The page's address."""
        return self.server.url

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        """Stops playing and serving. Idempotent."""
        atexit.unregister(self.close)
        self.stopping.set()
        if self.thread and self.thread is not threading.current_thread():
            self.thread.join(5)
        self.server.close()

    def __repr__(self):
        return f"<tarsus.Viewer of {self.source.scene['name']!r} at {self.url}>"

    def _repr_html_(self):
        return f'<iframe src="{self.url}" width="100%" height="480" style="border:0"></iframe>'

    # -- from a user's loop --

    def update(self, apply_push=True):
        """Shows the present data, at most 30 times a second, because each frame costs the caller's loop time. Returns at once.

        apply_push: sets data.tau to the pull of the hand in the page, or to zero without one.
        """
        self._check_open()
        due = clock.monotonic() >= self.due
        if not due and not apply_push:
            return
        with self.lock:
            if apply_push and hasattr(self.source, "_apply_forces"):
                self.source._apply_forces()
            if due:
                self._show(SPARING_FRAME_SPACING)

    # -- playing --

    def start(self):
        """Plays in the background."""
        self._check_open()
        if self.thread is None:
            self.thread = threading.Thread(target=self._play, name="tarsus player", daemon=True)
            self.thread.start()
        return self

    def run(self):
        """Plays until Ctrl-C."""
        self._check_open()
        try:
            self._play()
        except KeyboardInterrupt:
            pass

    def _check_open(self):
        if self.stopping.is_set():
            raise tarsus.ValueError("viewer: is closed, expected an open one")

    def _play(self):
        last, due, stepped = clock.monotonic(), 0.0, False
        while not self.stopping.is_set():
            now = clock.monotonic()
            due = due + min((now - last) * self.speed, 0.25) if self.playing else 0.0
            last = now
            while self.playing and due >= (dt := self.source.dt) and clock.monotonic() < now + FRAME_SPACING:
                self._step()
                due -= dt
                stepped = True
            due = min(due, self.source.dt)  # a simulation slower than real time does not accumulate delay
            if stepped and clock.monotonic() >= self.due:
                stepped = False
                with self.lock:
                    self._show()
            if now >= self.looked + 0.5:
                self.looked = now
                self._reload()
            rest = (self.source.dt - due) / self.speed if self.playing else 0.01
            self.stopping.wait(min(max(rest, 0.0005), 0.01))

    def _step(self):
        with self.lock:
            self._remember()
            error = self.source.step()
            if error:
                self.history.pop()
                self._say(f"Stopped at {self.source.time:.4g} s: {error}")

    def _file_time(self):
        try:
            return os.stat(self.reload_from[0]).st_mtime_ns if self.reload_from else None
        except OSError:
            return None  # the file is being written

    def _reload(self):
        stamp = self._file_time()
        if stamp is None or stamp == self.stamp:
            return
        self.stamp = stamp
        try:
            self.replace(self.reload_from[1]())
        except (tarsus.Error, ValueError, OSError) as error:
            with self.lock:  # perhaps the file is half written: it goes on as it was
                self.error = f"{self.reload_from[0]} has changed and cannot be read: {error}"
                self._tell_state()

    def _remember(self):
        state = self.source.state()
        size = sum(np.asarray(part).nbytes for part in (state if isinstance(state, tuple) else (state,)))
        self.history.append(state)
        while len(self.history) > 1 and len(self.history) * size > HISTORY_BYTES:
            self.history.popleft()

    def _say(self, error=""):
        self.error = error
        if error:
            self.playing = False
        self._tell_state()

    def _spacing(self):
        poses = len(self.source.scene["bodies"]) * self.source.scene.get("worlds", 1)
        return FRAME_SPACING if poses < LARGE_FRAME else SPARING_FRAME_SPACING

    def _show(self, spacing=None):
        now = clock.monotonic()
        self.due = max(self.due + (spacing or self._spacing()), now)  # a late frame does not delay the next
        self.server.publish(self.source.snapshot())

    # -- communication with pages, in the server's thread --

    def _greeting(self):
        with self.lock:  # a source cannot answer while it steps
            return self._scene_messages()

    def _scene_messages(self):
        s = self.source
        return [{"type": "scene", "scene": s.scene, "controls": s.controls(), "keyframes": s.keyframes,
                 "series": [{"name": name, "unit": unit} for name, unit in s.series], "can_push": s.can_push,
                 "gallery": self.gallery},
                self._state()]

    def _state(self):
        return {"type": "state", "playing": self.playing, "speed": self.speed, "text": self.error, "bad": bool(self.error)}

    def _tell_state(self):
        self.server.tell(self._state())

    def replace(self, source):
        """Shows another source from now on."""
        with self.lock:
            self.source, self.error = open_source(source), ""
            self.history.clear()
            for message in self._greeting():
                self.server.tell(message)
            self._show()

    def _order(self, order):
        what = order.get("do")
        with self.lock:
            if what == "play":
                self.playing, self.error = True, ""
            elif what == "pause":
                self.playing = False
            elif what == "step":
                self._single_steps(int(np.clip(int(order["n"]), -100, 100)))
            elif what == "speed":
                self.speed = float(np.clip(finite("speed", order["value"]), 0.01, 100))
            elif what in ("reset", "keyframe"):
                self.source.reset(int(order["index"]) if what == "keyframe" else None)
                self.history.clear()
                self.error = ""
                self.server.tell({"type": "controls", "controls": self.source.controls()})  # a keyframe contains its own
                self._show()
            elif what == "control":
                self.source.control(str(order["name"]), order["value"])
                self._show()
                return
            elif what == "push":
                self._push(order)
                return
            elif what == "release":
                self.source.release()
                return
            elif what == "open" and self.on_open:
                self.replace(self.on_open(str(order["name"])))
            else:
                raise tarsus.ValueError(f"unknown command {what!r}")
            self._tell_state()

    def _push(self, order):
        point, target = (np.array([float(x) for x in order[key]]) for key in ("point", "target"))
        if point.shape != (3,) or target.shape != (3,) or not np.isfinite([point, target]).all():
            raise tarsus.ValueError("push: point and target must have three finite numbers each [m]")
        self.source.push(int(order["body"]), int(order["world"]), point, target)

    def _single_steps(self, n):
        self.playing = False
        for _ in range(abs(n)):
            if n > 0:
                self._step()
            elif self.history:
                self.source.restore(self.history.pop())
                self.error = ""
        self._show()

    # -- files --

    def save_page(self, path, duration=10.0):
        """Plays for this duration [s] from now on and writes the frames as one HTML file."""
        with self.lock:
            write_page(path, record(self.source, duration))


__all__ = ["Recording", "Source", "Viewer"]
