"""Worlds under other projects' learners: the VecEnv of Stable-Baselines3 and of rsl-rl."""

import numpy as np
import pytest
import tarsus
import tarsus.gym

pytestmark = pytest.mark.xdist_group("torch")
SHORT = {"time_limit": 0.2}


def test_stable_baselines3():
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecMonitor

    from tarsus.gym.stable_baselines3 import VecEnv

    n = 4
    env = VecEnv("HumanoidWalk", n, dtype=np.float64, **SHORT)
    env.seed(11)
    same = tarsus.gym.TarsusVectorEnv("HumanoidWalk", n, autoreset_mode="SameStep", **SHORT)
    assert np.array_equal(env.reset(), same.reset(seed=11)[0])
    returns, lengths, ended = np.zeros(n), np.zeros(n, int), 0
    for step in range(15):
        action = np.random.default_rng(step).normal(scale=0.2, size=(n, 28))
        observation, reward, done, infos = env.step(action)
        expected = same.step(action)
        assert np.array_equal(observation, expected[0]) and np.array_equal(done, expected[2] | expected[3])
        returns += expected[1]
        lengths += 1
        for w in np.flatnonzero(done):
            assert np.array_equal(infos[w]["terminal_observation"], expected[4]["final_obs"][w])
            assert infos[w]["TimeLimit.truncated"] == (expected[3][w] and not expected[2][w])
            assert infos[w]["episode"]["l"] == lengths[w] and np.isclose(infos[w]["episode"]["r"], returns[w])
            returns[w], lengths[w], ended = 0, 0, ended + 1
    assert ended > 0
    model = PPO("MlpPolicy", VecMonitor(VecEnv("CartPole", 8, dtype=np.float64)), n_steps=16, batch_size=64, seed=0, device="cpu")
    model.learn(256)
    assert model.num_timesteps == 256


def test_rsl_rl():
    pytest.importorskip("rsl_rl", reason="rsl-rl is not installed")
    from rsl_rl.runners import OnPolicyRunner

    from tarsus.gym.rsl_rl import VecEnv
    from tarsus.learn.training import Settings

    env = VecEnv("CartPole", 8, action_scale=10.0)
    configuration = Settings(worlds=8, steps=16, minibatches=2, hidden=(16, 16)).configuration()
    runner = OnPolicyRunner(env, {**configuration, "save_interval": 100}, log_dir=None)
    runner.learn(2)
    assert runner.alg.storage.num_envs == 8 and (env.worlds.steps > 0).any()


def test_rsl_rl_refuses_what_it_would_not_use():
    """Options beside an existing task would have no effect, and one action per world would be applied to each of its motors."""
    pytest.importorskip("rsl_rl", reason="rsl-rl is not installed")
    import torch

    from tarsus.gym.rsl_rl import VecEnv

    with pytest.raises(TypeError, match=r"options \['time_limit'\] given together with a Task"):
        VecEnv(tarsus.tasks.make("HumanoidWalk"), 2, time_limit=3)
    env = VecEnv("HumanoidWalk", 2)
    for shape in ((2, 1), (28,), (2, 27), (1, 28)):
        with pytest.raises(tarsus.ShapeError, match=r"^actions: are .*, expected \[2, 28\]"):
            env.step(torch.zeros(shape))
    env.step(torch.zeros(2, 28, requires_grad=True))  # as a policy's mean is


@pytest.mark.parametrize("scale, error", [(np.nan, ValueError), (np.inf, ValueError), (0, ValueError), ("1", TypeError)])
def test_rsl_rls_actions_have_a_scale(scale, error):
    """With nan every world fails in each step."""
    pytest.importorskip("rsl_rl", reason="rsl-rl is not installed")
    from tarsus.gym.rsl_rl import VecEnv

    with pytest.raises(error, match="^action_scale: is "):
        VecEnv("CartPole", 2, action_scale=scale)
