"""The interface that simulations and recordings share: a source that a viewer plays."""

import math

from ..errors import ValueError  # noqa: A004 (the C++ name)


def slider(name, value, low, high, unit="", log=False, label=None):
    return {"name": name, "label": label or name, "value": value, "low": low, "high": high, "unit": unit, "log": log}


def choice(name, value, choices, label=None):
    return {"name": name, "label": label or name, "value": value, "choices": list(choices)}


def finite(name, value):
    """Checks a number that a page sent."""
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"{name}: is {value}, expected a finite number")
    return value


class Source:
    """Base class of a scene that moves."""

    scene: dict
    series: "list[tuple[str, str]]" = []
    keyframes: "list[str]" = []
    can_push = False
    at_end = False
    time = 0.0
    dt = 1 / 60

    def frame(self):
        """The present Frame."""
        raise NotImplementedError

    def snapshot(self):
        """A function that makes the present Frame. It may be called now or later, in any thread, while the source goes on."""
        frame = self.frame()
        return lambda: frame

    def step(self):
        """Makes one step. Returns None, or the reason why there was none."""
        raise NotImplementedError

    def reset(self, keyframe=None):
        """Returns to the start, or to a keyframe by its name."""
        raise NotImplementedError

    def state(self):
        """The complete state, for a later restore()."""
        raise NotImplementedError

    def restore(self, state):
        """Returns to what state() gave."""
        raise NotImplementedError

    def controls(self):
        """Sliders and menus of the page, a dict each."""
        return []

    def control(self, name, value):
        """Sets one of controls(). Raises ValueError for a name that is unknown."""
        raise ValueError(f"unknown control {name!r}")

    def push(self, body, world, point, target):
        """Attaches a spring from the point (in the body's frame) to the target (in the world), until release()."""

    def release(self):
        """Removes the spring of push()."""


def spring_force(inverse_mass, offset, velocity, dt):
    """Spring constants for the mass that the spring moves: critically damped, at a rate that one explicit step can follow."""
    rate = min(8.0, 0.4 / dt)
    return (rate**2 * offset - 2 * rate * velocity) / inverse_mass
