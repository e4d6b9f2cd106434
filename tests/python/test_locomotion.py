"""Gymnasium's locomotion on its own models: observation, reward and ends against Gymnasium's environments in the same states.

Left out there, as their options allow: the forces of contacts that Ant and Humanoid observe and pay for; what a contact solver
finds differs. Gymnasium's Humanoid adds up its reward from poses one integration behind its state: here both are of the state.
"""

import gymnasium
import mujoco
import numpy as np
import pytest
import tarsus
import tarsus.gym

pytest.importorskip("imageio", reason="imageio, which Gymnasium's MuJoCo environments want, is not installed")

WITHOUT_CONTACTS = {
    "HalfCheetah": {},
    "Ant": {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0},
    "Humanoid": {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0},
}


def theirs(name):
    return gymnasium.make(f"{name}-v5", **WITHOUT_CONTACTS[name]).unwrapped


def place(name, env):
    """The position along x, as in the environment's own step."""
    if name == "Humanoid":
        return (env.model.body_mass @ env.data.xipos)[0] / env.model.body_mass.sum()
    return env.data.qpos[0]


@pytest.mark.parametrize("name", list(WITHOUT_CONTACTS))
def test_the_same_states_give_the_same_numbers(name):
    env, n = theirs(name), 6
    task = tarsus.tasks.make(name)
    worlds = tarsus.VectorTask(task, n, seed=3, autoreset="disabled")
    worlds.reset()
    assert task.observation_size == env.observation_space.shape[0] and task.action_size == env.action_space.shape[0]
    assert np.allclose(task.action_bounds[0], env.action_space.low) and np.allclose(task.action_bounds[1], env.action_space.high)
    assert abs(task.control_dt - env.dt) < 1e-12
    rng, worst, ends, fastest = np.random.default_rng(1), 0.0, 0, 0.0
    for step in range(60):
        if step == 40 and name == "Ant":  # it lies down but does not fall: thrown up instead
            worlds.qvel[:2, 2] += 6.0
        before = []
        for w in range(n):
            env.set_state(worlds.qpos[w], worlds.qvel[w])
            before.append(place(name, env))
        action = rng.uniform(1.2 * env.action_space.low, 1.2 * env.action_space.high, (n, task.action_size))  # some beyond the range
        worlds.step(action)
        for w in range(n):
            env.data.ctrl[:] = action[w]
            env.set_state(worlds.qpos[w], worlds.qvel[w])
            speed = (place(name, env) - before[w]) / env.dt
            reward, terms = env._get_rew(speed, action[w])
            seen, expected = worlds.observation[w], env._get_obs()
            scale = np.maximum(1.0, np.abs(expected))
            worst = max(worst, (np.abs(seen - expected) / scale).max(), abs(worlds.reward[w] - reward))
            ours = dict(zip(task.terms, worlds.terms[w]))
            assert abs(ours["forward"] - terms["reward_forward"]) < 1e-9 and abs(ours["control"] - terms["reward_ctrl"]) < 1e-9
            assert abs(ours["healthy"] - terms.get("reward_survive", 0.0)) < 1e-12
            assert worlds.terminated[w] == (name != "HalfCheetah" and not env.is_healthy)
            fastest = max(fastest, abs(speed))
        ended = worlds.terminated | worlds.truncated
        ends += int(ended.sum())
        if ended.any():
            worlds.reset(ended)
    print(f"{name}: {60 * n} steps, {ends} ends, up to {fastest:.2f} m/s, largest difference {worst:.1e}")
    assert worst < 1e-9 and fastest > 0.3 and (ends > 0 or name == "HalfCheetah")


@pytest.mark.parametrize("name", list(WITHOUT_CONTACTS))
def test_starts_have_the_same_distribution(name):
    """Mean, deviation and extremes of each coordinate over 2,000 initial states of ours, against the noise that Gymnasium's
    source adds, and over a hundred of Gymnasium's own."""
    env, n = theirs(name), 2000
    worlds = tarsus.VectorTask(tarsus.tasks.make(name), n, seed=9)
    worlds.reset()
    noise, uniform = env._reset_noise_scale, name == "Humanoid"
    free = env.model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    plain = [i for i in range(env.model.nq) if not (free and 3 <= i < 7)]  # a quaternion is normalised, by MuJoCo in its first step
    spread = worlds.qpos[:, plain] - env.init_qpos[plain]
    assert np.abs(spread).max() <= noise and np.abs(spread).max() > 0.99 * noise
    assert np.allclose(spread.std(axis=0), noise / np.sqrt(3), rtol=0.1) and np.abs(spread.mean(axis=0)).max() < 0.1 * noise
    velocities = worlds.qvel
    assert np.allclose(velocities.std(axis=0), noise / np.sqrt(3) if uniform else noise, rtol=0.1)
    assert (np.abs(velocities).max() <= noise) == uniform
    if free:
        assert np.allclose(np.linalg.norm(worlds.qpos[:, 3:7], axis=1), 1, rtol=0, atol=1e-14)
    own = []
    for seed in range(100):
        env.reset(seed=seed)
        own.append(np.concatenate([env.data.qpos[plain], env.data.qvel]))
    deviation = np.concatenate([worlds.qpos[:, plain], velocities], axis=1).std(axis=0)
    assert np.allclose(np.std(own, axis=0), deviation, rtol=0.35)


@pytest.mark.parametrize("name", list(WITHOUT_CONTACTS))
def test_motors_move_them_alike(name):
    """Away from the ground and from the ranges of joints, both in small steps: the model, its springs and the effect of an action
    are the same."""
    env, parts = theirs(name), 400
    env.model.opt.timestep, env.frame_skip = env.dt / parts, parts
    worlds = tarsus.VectorTask(tarsus.tasks.make(name, substeps=parts, low=-np.inf, high=np.inf), 1, seed=4, autoreset="disabled")
    worlds.reset()
    rng = np.random.default_rng(3)
    worlds.qpos[0, 1 if name == "HalfCheetah" else 2] += 5
    for j in np.flatnonzero(env.model.jnt_limited):
        worlds.qpos[0, env.model.jnt_qposadr[j]] = env.model.jnt_range[j].mean()
    env.set_state(worlds.qpos[0], worlds.qvel[0])
    start = worlds.qvel[0].copy()
    for _ in range(2):
        action = rng.uniform(0.2 * env.action_space.low, 0.2 * env.action_space.high)
        worlds.step(action[None])
        env.step(action)
        assert env.data.nefc == 0  # neither contacts nor limits
        apart, moved = np.abs(env.data.qvel - worlds.qvel[0]).max(), np.abs(env.data.qvel - start).max()
        print(f"{name}: velocities changed by {moved:.2f}, apart by {apart:.1e}")
        assert apart < 0.005 * moved and moved > 0.5


def test_episodes_end_after_a_thousand_steps():
    env = gymnasium.make_vec("tarsus/HalfCheetah-v0", num_envs=2, substeps=1)
    env.reset(seed=0)
    lengths = [i + 1 for i in range(1001) if env.step(np.zeros((2, 6)))[3].all()]
    assert lengths == [gymnasium.spec("HalfCheetah-v5").max_episode_steps]
    for name in WITHOUT_CONTACTS:
        task = tarsus.tasks.make(name)
        assert round(task.time_limit / task.control_dt) == gymnasium.spec(f"{name}-v5").max_episode_steps


def test_bad_options_are_named():
    model = tarsus.Model.load(tarsus.MODELS / "pendulum.xml")
    with pytest.raises(tarsus.ValueError, match="motors"):
        tarsus.LocomotionTask(model)
    for option, value in (("hidden", 99), ("noise", -1), ("substeps", 0), ("control_dt", 0), ("low", 3), ("time_limit", np.inf)):
        with pytest.raises(tarsus.ValueError, match=option):
            tarsus.tasks.make("Ant", **{option: value})
    with pytest.raises(tarsus.ValueError, match="observe_bodies"):
        tarsus.LocomotionTask(tarsus.Model.load(tarsus.MODELS / "cart_pole.xml"), observe_bodies=True)
