"""Training something small: to a stated return, the same twice, through a kill, and through worlds that go bad."""

import subprocess
import sys
import time

import numpy as np
import pytest
import tarsus

pytest.importorskip("torch", reason="torch, which tarsus.learn trains with, is not installed")
pytest.importorskip("rsl_rl", reason="rsl-rl, which tarsus.learn trains with, is not installed")

from tarsus.learn import Policy, evaluate  # noqa: E402
from tarsus.learn.__main__ import PRESETS  # noqa: E402
from tarsus.learn.training import Settings, Training  # noqa: E402


def cart_pole(folder, seed=0, **changes):
    return Training(tarsus.tasks.make("CartPole"), folder, Settings(**{**PRESETS["cart-pole"][2], **changes}), seed=seed)


def test_cart_pole_is_learned(tmp_path):
    """Balances for all of the 10 s from 32 starts that it was not trained on; a pole without a push falls within 2 s."""
    began = time.perf_counter()
    run = cart_pole(tmp_path)
    run.run(250_000, out=None)
    result = evaluate(run.task, run.policy())
    print(f"{run.samples} samples, {time.perf_counter() - began:.1f} s, {result}")
    assert result["episode_seconds"] > 9.5
    idle = Policy(0.0, 1.0, [(np.zeros((1, 4)), np.zeros(1))], np.zeros(1), np.ones(1))
    assert evaluate(run.task, idle)["episode_seconds"] < 2


def test_the_same_seed_gives_the_same_curve(tmp_path):
    def curve(folder, seed):
        return [(row["reward"], row["noise"], row["episode_seconds"]) for row in cart_pole(tmp_path / folder, seed).run(10_000, out=None)]

    first = curve("a", 1)
    assert len(first) == 5 and first == curve("b", 1)
    assert first != curve("c", 2)


def test_goes_on_after_a_kill(tmp_path):
    """The process dies in the middle; the run goes on from its last checkpoint, with the policy of then."""
    code = f"""
import os
from test_training import cart_pole
run = cart_pole({str(tmp_path)!r})
run.run(8_000, out=None)
run.iterate()
os._exit(9)
"""
    died = subprocess.run([sys.executable, "-c", code], cwd=__file__.rpartition("/")[0], capture_output=True, text=True, timeout=120)
    assert died.returncode == 9, died.stderr
    kept = Policy.load(tmp_path / "policy.npz")
    run = cart_pole(tmp_path)
    assert run.samples == 8192 and len(run.curve) == 4
    x = np.random.default_rng(0).normal(size=(5, 4))
    assert np.array_equal(run.policy()(x), kept(x))
    assert run.run(12_000, out=None)[-1]["samples"] == 12_288


def test_training_goes_on_when_worlds_go_bad(tmp_path):
    run = cart_pole(tmp_path)
    for iteration in range(3):
        run.worlds.qpos[iteration, 1] = np.nan
        row = run.iterate()
        assert np.isfinite(row["reward"]) and np.isfinite(run.policy()(np.zeros(4))).all()
    assert run.worlds.bad_worlds == 3


def test_policy_file_is_the_network(tmp_path):
    import torch
    from tensordict import TensorDict

    run = Training(tarsus.tasks.make("HumanoidWalk"), tmp_path, Settings(worlds=4, steps=8, minibatches=1))
    run.iterate()
    run.policy().save(tmp_path / "p.npz")
    policy, x = Policy.load(tmp_path / "p.npz"), run.worlds.observation.astype(np.float32)
    with torch.no_grad():
        expected = run.ppo.actor(TensorDict({"policy": torch.from_numpy(x)}, batch_size=[4])).numpy()
    assert np.allclose(policy(x), policy.action_scale * expected, rtol=0, atol=1e-5)
