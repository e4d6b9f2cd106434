"""Training: ``python -m tarsus.learn walk``. Needs ``pip install tarsus[learn]``: torch and rsl-rl, whose PPO it configures."""

from .policy import Policy

__all__ = ["Policy"]
