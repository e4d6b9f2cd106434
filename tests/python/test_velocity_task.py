"""A robot that follows a command of velocity: observation, reward and ends against another implementation, in numpy from the
definition (docs/learning.md) on MuJoCo's kinematics."""

import pathlib

import gymnasium
import mujoco
import numpy as np
import pytest
import tarsus
import tarsus.gym  # noqa: F401 (registers)
from gymnasium.utils.env_checker import check_env

FILE = tarsus.MODELS / "quadruped.xml"
ROBOTS = pathlib.Path(__file__).resolve().parents[3] / "shared/data/menagerie"
WEIGHTS = np.array([1, 0.5, -2, -0.05, -1, -0.02, -0.01, 1])
TERMS = ["linear", "turn", "vertical", "roll_pitch", "level", "pose", "change", "air"]
DT = 0.02


class Oracle:
    """The expected outputs of one world."""

    def __init__(self):
        self.model = mujoco.MjModel.from_xml_path(str(FILE))
        self.data = mujoco.MjData(self.model)
        self.stance = self.model.key_qpos[0, 7:]
        self.feet = [i for i in range(self.model.ngeom) if self.model.geom(i).name.endswith("foot")]
        self.start()

    def start(self):
        self.action, self.air = np.zeros(12), np.zeros(4)

    def look(self, qpos, qvel):
        """Sets velocity, angular velocity and gravity's direction in the trunk's frame, and the feet's heights over the
        ground."""
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        mujoco.mj_comVel(self.model, self.data)
        turned, world = self.data.xmat[1].reshape(3, 3), np.zeros(6)
        mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_XBODY, 1, world, 0)
        self.velocity, self.turning, self.down = turned.T @ world[3:], turned.T @ world[:3], turned.T @ [0, 0, -1]
        self.heights = self.data.geom_xpos[self.feet, 2] - self.model.geom_size[self.feet, 0]
        self.joints, self.speeds = qpos[7:] - self.stance, qvel[6:]

    def observation(self, command):
        return np.concatenate([self.velocity, self.turning, self.down, command, self.joints, self.speeds, self.action])

    def terms(self, command, action, touches):
        came = (self.air > 0) & touches & bool(np.any(command))
        values = [np.exp(-4 * ((command[:2] - self.velocity[:2]) ** 2).sum()), np.exp(-4 * (command[2] - self.turning[2]) ** 2),
                  self.velocity[2] ** 2, (self.turning[:2] ** 2).sum(), (self.down[:2] ** 2).sum(), (self.joints ** 2).sum(),
                  ((action - self.action) ** 2).sum(), (self.air - 0.5)[came].sum()]
        self.air, self.action = np.where(touches, 0, self.air + DT), action
        return WEIGHTS * values / 1.5


def test_observation_reward_and_ends_follow_the_definition():
    n, rng = 8, np.random.default_rng(5)
    task = tarsus.tasks.make("QuadrupedVelocity", command_interval=0.4, standing=0.25, time_limit=1.5)
    assert task.terms == TERMS and task.observation_size == 48 and task.action_size == 12
    worlds = tarsus.VectorTask(task, n, seed=2, autoreset="disabled")
    worlds.reset()
    oracles = [Oracle() for _ in range(n)]
    worst, falls, limits, clipped, landed, odd, commands = 0.0, 0, 0, 0, 0, 0, set()
    for step in range(300):
        command = worlds.observation[:, 9:12].copy()
        commands |= {tuple(c) for c in command}
        action = (2.5 if step % 100 > 60 else 0.4) * rng.normal(size=(n, 12))
        worlds.step(action)
        for w, o in enumerate(oracles):
            o.look(worlds.qpos[w], worlds.qvel[w])
            touches = worlds.memory[w, -4:] == 0
            odd += ((o.heights > 0.04) & touches).sum() + ((o.heights < -5e-3) & ~touches).sum()
            terms, seen = o.terms(command[w], action[w], touches), worlds.observation[w]
            worst = max(worst, np.abs(terms - worlds.terms[w]).max(), abs(max(0, terms.sum()) - worlds.reward[w]),
                        np.abs(seen - o.observation(seen[9:12])).max())
            assert (seen[9:12] == command[w]).all() or worlds.steps[w] % 20 == 0
            assert worlds.terminated[w] or o.down[2] < -np.cos(1) + 1e-9
            assert worlds.truncated[w] == (worlds.steps[w] == 75 and not worlds.terminated[w])
            clipped, landed = clipped + (terms.sum() < 0), landed + (terms[7] != 0)
        ended = worlds.terminated | worlds.truncated
        falls, limits = falls + int(worlds.terminated.sum()), limits + int(worlds.truncated.sum())
        if ended.any():
            worlds.reset(ended)
            for w in np.flatnonzero(ended):
                oracles[w].start()
    print(f"largest difference {worst:.1e}; {falls} falls, {limits} limits, {clipped} rewards below 0, {landed} steps with feet that come down, "
          f"{odd} feet that touch from on high or not from below")
    # The shin of a foot's body may touch, and it may touch in the first of two substeps only.
    assert odd < 0.01 * 4 * n * 300
    assert worst < 1e-9 and min(falls, limits, clipped, landed) > 5
    low, high = np.array([-0.5, -0.3, -1]), np.array([1, 0.3, 1])
    moving = np.array([c for c in commands if any(c)])
    assert (0.0, 0.0, 0.0) in commands and len(moving) > 50
    assert (moving >= low).all() and (moving <= high).all() and (np.ptp(moving, axis=0) > 0.8 * (high - low)).all()


def test_no_action_stands_and_an_action_is_an_angle_of_a_servo():
    task = tarsus.tasks.make("QuadrupedVelocity", noise=0.0)
    low, high = task.action_bounds
    model = mujoco.MjModel.from_xml_path(str(FILE))
    stance = model.key_ctrl[0]
    assert np.allclose(stance + 0.25 * low, model.actuator_ctrlrange[:, 0]) and np.allclose(stance + 0.25 * high, model.actuator_ctrlrange[:, 1])
    action = np.linspace(-1, 1, 12)
    state = (model.key_qpos[0], np.zeros(18), np.zeros(3 + 3 + 12 + 4))
    assert np.allclose(task.targets(*state, action), stance + 0.25 * action)
    assert np.allclose(task.targets(*state, 100 * np.ones(12)), model.actuator_ctrlrange[:, 1])
    worlds = tarsus.VectorTask(task, 4)
    worlds.reset()
    headings = np.arctan2(2 * worlds.qpos[:, 3] * worlds.qpos[:, 6], 1 - 2 * worlds.qpos[:, 6] ** 2)
    assert np.ptp(headings) > 0.5
    for _ in range(250):
        worlds.step(np.zeros((4, 12)))
        assert not worlds.terminated.any()
    assert np.abs(worlds.qvel).max() < 0.02 and (worlds.qpos[:, 2] > 0.28).all()


@pytest.mark.parametrize("robot, feet", [("unitree_go2/scene_mjx", ["FL_calf", "FR_calf", "RL_calf", "RR_calf"]),
                                         ("google_barkour_vb/scene_mjx", [])])
def test_other_robots_do_as_well(robot, feet):
    if not ROBOTS.exists():
        pytest.skip("no robots in ../shared/data")
    task = tarsus.tasks.velocity_task(tarsus.Model.load(ROBOTS / f"{robot}.xml", lenient=True), feet, noise=0.01)
    worlds = tarsus.VectorTask(task, 4, autoreset="disabled")
    worlds.reset()
    for _ in range(100):
        worlds.step(np.zeros((4, 12)))
    assert not worlds.terminated.any() and (worlds.observation[:, 8] < -0.98).all()


def test_gymnasium_has_it():
    env = gymnasium.make_vec("tarsus/QuadrupedVelocity-v0", num_envs=3, command_low=(0.5, 0, 0), command_high=(0.5, 0, 0), standing=0.0)
    observation, _ = env.reset(seed=1)
    assert np.allclose(observation[:, 9:12], [0.5, 0, 0])
    check_env(gymnasium.make("tarsus/QuadrupedVelocity-v0").unwrapped, skip_render_check=True)


@pytest.mark.parametrize("limit, ends", [(3.1, True), (np.pi, False), (4.0, False), (2 * np.pi, False)])
def test_nobody_leans_further_than_a_half_turn(limit, ends):
    """The cosine of an angle above half a turn is also that of a smaller one: a limit of 2 pi would end every episode with its
    first step."""
    worlds = tarsus.VectorTask(tarsus.tasks.velocity_task(FILE, tilt_limit=limit), autoreset="disabled")
    for upside_down in (False, True):
        worlds.reset()
        worlds.qpos[0, 2] = 5
        worlds.qvel[:] = 0
        if upside_down:
            worlds.qpos[0, 3:7] = 0, 1, 0, 0
        worlds.step(np.zeros((1, worlds.task.action_size)))
        assert worlds.terminated[0] == (upside_down and ends)


def test_bad_options_are_named():
    model = tarsus.Model.load(FILE)
    for option, value in (("noise", -1), ("substeps", 0), ("control_dt", 0), ("standing", 2), ("keyframe", "no such"), ("feet", [99]),
                          ("command_low", (9, 0, 0)), ("weights", (0, 0, 1, 1, 1, 1, 1, 1)), ("tilt_limit", 0), ("action_scale", np.inf)):
        with pytest.raises(tarsus.ValueError, match=option):
            tarsus.VelocityTask(model, **{option: value})
    for name, what in (("humanoid", "position servos"), ("cart_pole", "free")):
        with pytest.raises(tarsus.ValueError, match=what):
            tarsus.VelocityTask(tarsus.Model.load(tarsus.MODELS / f"{name}.xml"))
    with pytest.raises(tarsus.ValueError, match="no such"):
        tarsus.tasks.velocity_task(FILE, ["no such"])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_worlds_of_a_task_have_their_own_parameters(tmp_path, dtype):
    """Such a world is that of a task whose file has these numbers; the others do not change."""
    text = FILE.read_text()
    for old, new in (('armature="0.01"', 'armature="0.03"'), ('gravity="0 0 -9.81"', 'gravity="0.5 0 -5"'), ('kp="60"', 'kp="75"')):
        assert text.count(old) == 1
        text = text.replace(old, new)
    other = tmp_path / "quadruped.xml"
    other.write_text(text)
    feet = [f"{end}_{side}_calf" for end in ("front", "rear") for side in ("left", "right")]
    make = lambda file, worlds, seed: tarsus.VectorTask(tarsus.tasks.velocity_task(file, feet=feet), worlds=worlds, seed=seed, dtype=dtype)
    worlds, plain, own = make(FILE, 3, 5), make(FILE, 3, 5), make(other, 1, 6)
    assert worlds.parameters == {}
    worlds.set_parameters(armature_scale=np.array([1, 3.0, 1]), gravity=np.array([[0, 0, -9.81], [0.5, 0, -5], [0, 0, -9.81]]),
                          actuator_gain_scale=np.array([1, 1.25, 1]))
    assert worlds.parameters["armature_scale"].shape == (3, worlds.task.model.njoint)
    actions = np.random.default_rng(2).uniform(-1, 1, (40, 3, 12)).astype(dtype)
    for vector in (worlds, plain, own):
        vector.reset()
    for action in actions:
        worlds.step(action), plain.step(action), own.step(action[1:2].copy())
    assert np.array_equal(worlds.observation[::2], plain.observation[::2])
    assert np.abs(worlds.observation[1] - plain.observation[1]).max() > 0.1
    assert np.allclose(worlds.observation[1], own.observation[0], rtol=0, atol=1e-8 if dtype == "float64" else 1e-2)
    worlds.clear_parameters()
    assert worlds.parameters == {}
