"""Gymnasium's interface: checkers, and every autoreset mode step by step against a single environment, to the bit."""

import gymnasium
import numpy as np
import pytest
import tarsus
import tarsus.gym
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

ID = "tarsus/HumanoidWalk-v0"
SHORT = {"time_limit": 0.2}  # six steps: a short test contains both kinds of ends


def actions(space, worlds, step):
    """Actions for `worlds` worlds; those of a world do not depend on the number of worlds."""
    rows = [np.random.default_rng(1000 * step + w).normal(scale=0.2, size=space.shape) for w in worlds]
    return np.array(rows, dtype=space.dtype)


@pytest.mark.parametrize("name", ["HumanoidWalk", "DogPace", "CartPole"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_checkers_pass(name, dtype):
    if dtype == np.float32 and double_only():
        pytest.skip("double only: this build has no float kernels")
    check_env(gymnasium.make(f"tarsus/{name}-v0", dtype=dtype).unwrapped, skip_render_check=True)


def double_only():
    try:
        tarsus.VectorTask(tarsus.tasks.make("CartPole"), 1, dtype="float32").reset()
    except tarsus.Error:
        return True
    return False


def test_a_task_of_ones_own_is_registered():
    task = tarsus.tasks.make("HumanoidWalk", **SHORT)
    gymnasium.register("own/Walk-v0", entry_point="tarsus.gym:TarsusEnv", vector_entry_point="tarsus.gym:TarsusVectorEnv", kwargs={"task": task})
    one, many = gymnasium.make("own/Walk-v0"), gymnasium.make_vec("own/Walk-v0", num_envs=2)
    asynchronous = gymnasium.make_vec("own/Walk-v0", num_envs=2, vectorization_mode="async")
    first = one.reset(seed=3)[0]
    assert np.array_equal(many.reset(seed=3)[0][0], first) and np.array_equal(asynchronous.reset(seed=3)[0][0], first)
    asynchronous.close()


def test_every_task_is_registered():
    for name in tarsus.tasks.NAMES:
        env = gymnasium.make_vec(f"tarsus/{name}-v0", num_envs=2)
        observation, _ = env.reset(seed=0)
        assert observation in env.observation_space
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert observation in env.observation_space
        assert reward.shape == terminated.shape == truncated.shape == (2,)


def test_make_vec_with_many_worlds():
    env = gymnasium.make_vec(ID, num_envs=1024)
    assert env.num_envs == 1024 and env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    observation, info = env.reset(seed=1)
    assert observation.shape == (1024, 197) and info == {}
    assert len(np.unique(observation[:, 0])) == 1024  # each at a phase of its own


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vector_equals_single_environments(mode):
    n, seed = 5, 40
    env = gymnasium.make_vec(ID, num_envs=n, autoreset_mode=mode, threads=2, **SHORT)
    singles = [gymnasium.make(ID, **SHORT).unwrapped for _ in range(n)]
    observation, _ = env.reset(seed=seed)
    expected = [single.reset(seed=seed + w)[0] for w, single in enumerate(singles)]
    assert np.array_equal(observation, expected)
    ended, ends = np.zeros(n, bool), 0
    for step in range(20):
        if mode == AutoresetMode.DISABLED and ended.any():
            observation, _ = env.reset(options={"reset_mask": ended})
            for w in np.flatnonzero(ended):
                assert np.array_equal(observation[w], singles[w].reset()[0])
            ended[:] = False
        action = actions(env.single_action_space, range(n), step)
        was_ended = ended.copy()
        observation, reward, terminated, truncated, info = env.step(action)
        for w, single in enumerate(singles):
            if mode == AutoresetMode.NEXT_STEP and was_ended[w]:
                row = (single.reset()[0], 0.0, False, False)
            else:
                row = single.step(action[w])[:4]
            if mode == AutoresetMode.SAME_STEP and (row[2] or row[3]):
                assert info["_final_obs"][w] and np.array_equal(info["final_obs"][w], row[0])
                row = (single.reset()[0], *row[1:])
            elif "_final_obs" in info:
                assert not info["_final_obs"][w] and info["final_obs"][w] is None
            assert np.array_equal(observation[w], row[0]), (step, w)
            assert (reward[w], terminated[w], truncated[w]) == row[1:]
        ended = terminated | truncated
        ends += ended.sum()
    assert ends > n


def test_the_same_as_gymnasiums_own_vector_environment():
    n, seed = 3, 7
    for mode in AutoresetMode:
        ours = gymnasium.make_vec(ID, num_envs=n, autoreset_mode=mode, **SHORT)
        theirs = gymnasium.make_vec(ID, num_envs=n, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **SHORT)
        assert ours.single_observation_space == theirs.single_observation_space
        assert ours.action_space == theirs.action_space
        assert np.array_equal(ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0])
        for step in range(6):
            action = actions(ours.single_action_space, range(n), step)
            a, b = ours.step(action), theirs.step(action)
            for x, y in zip(a[:4], b[:4]):
                assert np.array_equal(x, y)
            for x, y in zip(a[4].get("final_obs", []), b[4].get("final_obs", [])):
                assert (x is None) == (y is None) and (x is None or np.array_equal(x, y))
            assert ("final_obs" in a[4]) == ("final_obs" in b[4])
            same_infos(a[4], b[4])


def same_infos(ours, theirs):
    """All that theirs tell of a world; ours may tell more: of worlds that have just started anew, too."""
    for name in theirs.keys() - {"final_obs", "_final_obs"}:
        if isinstance(theirs[name], dict):
            same_infos(ours[name], theirs[name])
        elif not name.startswith("_"):
            known = theirs[f"_{name}"]
            assert ours[f"_{name}"][known].all() and np.array_equal(ours[name][known], theirs[name][known]), name


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_mask_resets_as_in_gymnasiums_own_vector_environment(mode):
    """In every mode, for worlds that ended and for others."""
    n, ends = 4, 0
    ours = gymnasium.make_vec(ID, num_envs=n, autoreset_mode=mode, **SHORT)
    theirs = gymnasium.make_vec(ID, num_envs=n, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode},
                                **SHORT)
    ours.reset(seed=3), theirs.reset(seed=3)
    for step in range(15):
        action = actions(ours.single_action_space, range(n), step)
        a, b = ours.step(action), theirs.step(action)
        for x, y in zip(a[:4], b[:4]):
            assert np.array_equal(x, y), step
        ended = a[2] | a[3]
        ends += ended.sum()
        mask = ended.copy() if mode == AutoresetMode.DISABLED else ended & (np.arange(n) % 2 == 0)
        mask[step % n] |= step % 4 == 3
        if mask.any():
            x, y = (envs.reset(options={"reset_mask": mask.copy()})[0] for envs in (ours, theirs))
            assert np.array_equal(x, y), step
    assert ends > n


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_infos_name_the_worlds_that_went_bad(mode):
    envs = gymnasium.make_vec(ID, num_envs=3, autoreset_mode=mode)
    single = gymnasium.make(ID).unwrapped
    envs.reset(seed=0), single.reset(seed=0)
    for spoil in (False, True):
        if spoil:
            envs.unwrapped.worlds.qvel[1, 1] = single.worlds.qvel[0, 1] = np.nan
        observation, reward, terminated, truncated, infos = envs.step(np.zeros(envs.action_space.shape))
        assert infos["bad"].tolist() == [False, spoil, False] and infos["_bad"].all()
        assert truncated[1] == spoil and not terminated[1] and np.isfinite(observation).all()
        assert single.step(np.zeros(single.action_space.shape))[4]["bad"] is spoil
    assert reward[1] == 0


def test_bad_arguments_are_named():
    env = gymnasium.make_vec(ID, num_envs=3, autoreset_mode=AutoresetMode.DISABLED, **SHORT)
    env.reset(seed=[1, None, 3])
    for options in ({"reset_mask": np.zeros(3, bool)}, {"reset_mask": [True] * 3}, {"reset_mask": np.ones(2, bool)}):
        with pytest.raises(ValueError, match="reset_mask"):
            env.reset(options=options)
    single = gymnasium.make(ID, **SHORT).unwrapped
    for seed in (-1, 2**64, 1.5, "x"):
        for wrong in (seed, [seed] * 3):
            with pytest.raises(tarsus.ValueError, match="seed: is .*, expected a whole number from 0"):
                env.unwrapped.reset(seed=wrong)
        with pytest.raises(tarsus.ValueError, match="seed: is"):
            single.reset(seed=seed)
    for one in (env.unwrapped, single):
        with pytest.raises(TypeError, match="options: is of type int, expected a dict"):
            one.reset(options=3)
        with pytest.raises(tarsus.ValueError, match="options: has the key 'resetmask', expected "):
            one.reset(options={"resetmask": np.ones(3, bool)})
    with pytest.raises(ValueError, match="seed"):
        env.reset(seed=[1, 2])
    with pytest.raises(tarsus.Error, match="action"):
        env.step(np.zeros((3, 5)))
    with pytest.raises(tarsus.ValueError, match="HumanoidWalk"):
        tarsus.gym.TarsusVectorEnv("HumanoidFly")


@pytest.mark.parametrize("wrong", [[["1"]] * 2, np.full((2, 1), "1"), np.full((2, 1), None), np.ones((2, 1)) * 1j, [[1], [1, 2]], "x", None, {}])
def test_actions_are_real_numbers(wrong):
    many, single = tarsus.gym.TarsusVectorEnv("CartPole", 2), tarsus.gym.TarsusEnv("CartPole")
    many.reset(seed=0), single.reset(seed=0)
    for env in (many, single):
        with pytest.raises(TypeError, match="^action: is .*, expected an array of real numbers"):
            env.step(wrong)
    assert not many.worlds.steps.any() and not single.worlds.steps.any()
    for numbers in ([[1], [0]], np.array([[1], [0]], np.int8), np.array([[1.0, 0]]).T, np.array([[True], [False]]), np.ones((2, 1), np.float16)):
        assert not many.step(numbers)[4]["bad"].any()


def test_a_mask_may_be_every_second_of_another():
    env = tarsus.gym.TarsusVectorEnv("CartPole", 3)
    first = env.reset(seed=0)[0]
    mask = np.array([True, True, False, True, False, True])[::2]
    second = env.reset(options={"reset_mask": mask})[0]
    assert ((first != second).any(axis=1) == mask).all()


def test_views_without_copies():
    env = tarsus.gym.TarsusVectorEnv("CartPole", 2, copy=False)
    first, _ = env.reset(seed=0)
    before = first.copy()
    second = env.step(np.ones((2, 1)))[0]
    assert np.shares_memory(first, second) and not np.array_equal(before, first)


@pytest.mark.parametrize("make", [tarsus.gym.TarsusEnv, tarsus.gym.TarsusVectorEnv])
def test_options_beside_a_made_task_are_refused(make):
    with pytest.raises(TypeError, match=r"options \['bogus'\] given together with a Task"):
        make(tarsus.tasks.make("CartPole"), bogus=3)
