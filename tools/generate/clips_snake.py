"""Slithering: the body follows its head along a serpenoid curve (heading a sine of arc length; Hirose), without slip."""
import numpy as np

from characters import Snake
from tree import yaw

TAU = 2 * np.pi


def slither(dofs, waves=1.5, amplitude=0.9, period=1.5):
    """One cycle moves the body one wave along itself. amplitude: largest heading off the mean, radians."""
    snake = Snake(dofs)
    t = np.linspace(0, period, round(period * 30) + 1)
    wave = snake.total / waves
    heading = lambda s: amplitude * np.sin(TAU * s / wave)
    s0 = wave * t / period
    fine = np.linspace(0, wave, 4001)
    mean = 0.5 * (heading(fine)[1:] + heading(fine)[:-1])
    step = fine[1] - fine[0]
    x = np.concatenate([[0], np.cumsum(np.cos(mean) * step)])
    y = np.concatenate([[0], np.cumsum(np.sin(mean) * step)])
    # Every second joint is a yaw joint, so the straight segments are two links long, and the head's segment one link.
    state = {"root.position": np.stack([np.interp(s0, fine, x), np.interp(s0, fine, y), np.full_like(t, snake.radius)], -1)}
    at = s0 - 0.5 * snake.link
    state["root"] = yaw(heading(at))
    for k in range(1, snake.links):
        if k % 2 == 1:
            behind = s0 - (k + 1) * snake.link
            state[f"yaw{k:03d}"] = heading(behind) - heading(at)
            at = behind
        else:
            state[f"pitch{k:03d}"] = np.zeros_like(t)
    return t, state
