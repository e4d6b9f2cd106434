"""What a viewer plays: the interface that simulations and recordings have in common."""

import math


def slider(name, value, low, high, unit="", log=False, label=None):
    return {"name": name, "label": label or name, "value": value, "low": low, "high": high, "unit": unit, "log": log}


def choice(name, value, choices, label=None):
    return {"name": name, "label": label or name, "value": value, "choices": list(choices)}


def finite(name, value):
    """A number that a page sent."""
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"{name}: not finite")
    return value


class Source:
    """A scene that moves. Subclasses say how."""

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
        """A function that makes the present Frame, now or later, in any thread, while the source goes on."""
        frame = self.frame()
        return lambda: frame

    def step(self):
        """One step; returns why there was none, or None."""
        raise NotImplementedError

    def reset(self, keyframe=None):
        raise NotImplementedError

    def state(self):
        """All that a later restore() needs to go back here."""
        raise NotImplementedError

    def restore(self, state):
        raise NotImplementedError

    def controls(self):
        return []

    def control(self, name, value):
        raise ValueError(f"no control has the name {name!r}")

    def push(self, body, world, point, target):
        """A spring from the point (in the body's frame) to the target (in the world), until release()."""

    def release(self):
        pass


def spring_force(inverse_mass, offset, velocity, dt):
    """Critically damped, at a rate that one explicit step can follow, for the mass that the spring sees."""
    rate = min(8.0, 0.4 / dt)
    return (rate**2 * offset - 2 * rate * velocity) / inverse_mass
