"""Recordings in memory, and the page that plays one: a single HTML file, whose layout docs/viewer.md describes."""

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..errors import ValueError, expect  # noqa: A004 (the C++ name)
from ..files import complete

PAGE = Path(__file__).with_name("page.html")
STEPS_A_SECOND = 240  # for particles: steps shown per second
MOST_ARROWS = 400  # beyond this number, contacts hide the bodies
ROOM = '<script id="recording" type="application/json">null</script>'


def arrows(contacts):
    """The contacts [n][10] to draw: all, or none if there are too many."""
    return contacts if len(contacts) <= MOST_ARROWS else contacts[:0]


@dataclass
class Frame:
    """The state to show at one time."""

    time: float
    poses: np.ndarray  # float32 [worlds * nbody][7]
    ghost: "np.ndarray | None" = None  # the same for the reference
    # [n][10]: position [m], force [N], normal (of the body that the force acts on), coefficient of friction
    contacts: np.ndarray = field(default_factory=lambda: np.zeros((0, 10), np.float32))
    values: "list[float]" = field(default_factory=list)  # of the source's series
    tendons: np.ndarray = field(default_factory=lambda: np.zeros((0, 6), np.float32))  # [n][6]: tendon_segments()

    def packed(self):
        """The frame in the page's binary layout: docs/viewer.md."""
        parts = [np.ascontiguousarray(part, "<f4").ravel() for part in
                 (self.poses, [] if self.ghost is None else self.ghost, self.contacts, self.values, self.tendons)]
        head = np.array([*(part.size for part in parts), 0], "<u4").tobytes() + np.array([self.time], "<f8").tobytes()
        return head + b"".join(part.tobytes() for part in parts)


@dataclass
class Recording:
    """Frames of one scene."""

    scene: dict
    series: "list[tuple[str, str]]"  # name, unit
    frames: "list[Frame]" = field(default_factory=list)

    @property
    def times(self):
        return np.array([frame.time for frame in self.frames])

    @property
    def poses(self):
        """[frames][worlds * nbody][7]"""
        return np.array([frame.poses for frame in self.frames], np.float32)


def encode(values, dtype="<f4"):
    return base64.b64encode(np.ascontiguousarray(values, dtype).tobytes()).decode()


def page_json(recording):
    frames = recording.frames
    if not frames:
        raise ValueError("recording: has no frames, expected at least one")
    out = {"format": "tarsus-page", "version": 1, "scene": recording.scene, "frames": len(frames),
           "time": encode(recording.times), "poses": encode(recording.poses)}
    if frames[0].ghost is not None:
        out["ghost"] = encode([frame.ghost for frame in frames])
    for key, one in (("contacts", "contact"), ("tendons", "tendon")):
        rows = [getattr(frame, key) for frame in frames]
        starts = np.cumsum([0] + [len(row) for row in rows])
        if starts[-1]:
            out[key], out[f"{one}_start"] = encode(np.concatenate(rows)), encode(starts, "<i4")
    out["series"] = [{"name": name, "unit": unit, "values": encode([frame.values[k] for frame in frames])}
                     for k, (name, unit) in enumerate(recording.series)]
    return json.dumps(out)


def write_page(path, recording):
    """One HTML file that plays the recording in any browser, without a network."""
    page = PAGE.read_text(encoding="utf-8")
    if ROOM not in page:
        raise ValueError(f"{PAGE}: has no place to insert a recording")
    document = page_json(recording).replace("<", "\\u003c")  # the text is inside <script>
    with complete(path) as part:
        part.write_text(page.replace(ROOM, ROOM.replace("null", document)), encoding="utf-8")


class SimulationFailed(RuntimeError):
    """A step of a recording failed."""


def record(source, duration, fps=60.0, progress=None):
    """Plays a source from its present state and keeps frames at least 1/fps s apart."""
    for name, value in (("duration", duration), ("fps", fps)):
        if not 0 < expect(name, value, int, float, np.number) < float("inf"):
            raise ValueError(f"{name}: is {value}, expected a positive, finite number")
    if getattr(source, "times", None) is None and not 0.5 <= duration / source.dt < 1e9:  # a recording ends by itself
        raise ValueError(f"duration: is {duration:g}, expected at least one step and at most 1e9, here of {source.dt:g} s")
    recording = Recording(source.scene, source.series, [source.frame()])
    begin = last = source.time
    while source.time < begin + duration - 0.5 * source.dt and not source.at_end:
        error = source.step()
        if error:
            raise SimulationFailed(f"at {source.time:.6g} s: {error}")
        if source.time >= last + (1 - 1e-6) / fps:
            last = source.time
            recording.frames.append(source.frame())
            if progress:
                progress((source.time - begin) / duration)
    if source.time > last:  # the last frame, however soon after the one before
        recording.frames.append(source.frame())
    if progress:
        progress(1.0)
    return recording
