"""Training: ``python -m tarsus.learn walk``. Needs ``pip install tarsus[learn]``: torch and rsl-rl, whose PPO it configures.
Policies are files; numpy alone and ``tarsus run --policy`` evaluate them."""

from .evaluation import evaluate, vary
from .policy import Policy

__all__ = ["Policy", "evaluate", "vary"]
