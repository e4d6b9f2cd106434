"""Motion tracking against another implementation: observation, reward and ends written here in numpy from the definition
(DeepMimic's; docs/learning.md), with MuJoCo's kinematics. Bodies' poses and velocities come from MuJoCo, the clip from
tarsus.Clip, whose interpolation has tests of its own."""

import json
import re

import mujoco
import numpy as np
import pytest
import tarsus
import tarsus.learn

MODELS = tarsus.MODELS
TOLERANCE = 1e-9


def quaternion_angle(a, b):
    """Angle between two orientations w x y z [rad]."""
    w = a[0] * b[0] + a[1:] @ b[1:]
    v = a[0] * b[1:] - b[0] * a[1:] - np.cross(a[1:], b[1:])
    return 2 * np.arctan2(np.linalg.norm(v), abs(w))


def heading(root_rotation):
    """Transforms vectors from the world's axes to those of the root's heading."""
    x, y = root_rotation[0, 0], root_rotation[1, 0]
    length = np.hypot(x, y)
    c, s = x / length, y / length
    return np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])


class Pose:
    """The quantities of one state that the definition needs, by MuJoCo."""

    def __init__(self, model, qpos, qvel):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = qpos, qvel
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        self.model, self.data, self.qpos, self.qvel = model, data, qpos, qvel
        self.root_rotation = data.xmat[1].reshape(3, 3)
        self.root_angular = self.root_rotation @ qvel[3:6]
        self.heading = heading(self.root_rotation)
        velocities = np.zeros((model.nbody, 6))
        for body in range(1, model.nbody):
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, velocities[body], 0)
        self.angular, self.linear = velocities[:, :3], velocities[:, 3:]  # of the centre of mass
        self.com_velocity = model.body_mass[1:] @ self.linear[1:] / model.body_mass[1:].sum()

    def point(self, body, position):
        return self.data.xpos[body] + self.data.xmat[body].reshape(3, 3) @ position


class Oracle:
    """One world's episode."""

    def __init__(self, name, table, clip):
        self.model = mujoco.MjModel.from_xml_path(str(MODELS / f"{name}.xml"))
        self.clip, self.table = clip, table
        self.bodies = [b for b in range(1, self.model.nbody) if self.model.body_mass[b] > 0]
        weights = [table["root"]["weight"]]
        for j in range(1, self.model.njnt):
            weights.append(table["joints"][self.model.joint(j).name]["weight"])
        self.weights = np.array(weights) / np.sum(weights)

    def begin(self, phase):
        self.start, self.steps, self.shift = phase * self.clip.duration, 0, np.zeros(2)

    def observation(self, qpos, qvel):
        pose = Pose(self.model, qpos, qvel)
        cycles = (self.start + self.steps / 30) / self.clip.duration
        out = [cycles - np.floor(cycles) if self.clip.loop else min(cycles, 1), qpos[2]]
        for b in self.bodies:
            rotation = pose.data.xmat[b].reshape(3, 3)
            for v in (pose.data.xipos[b] - qpos[:3], rotation[:, 2], rotation[:, 0], pose.linear[b], pose.angular[b]):
                out.extend(pose.heading @ v)
        return np.array(out)

    def mimickit(self, qpos, qvel):
        """MimicKit's terms and weights after one more step of a world, and the largest distance of a body from its reference."""
        self.steps += 1
        qpos_clip, qvel_clip = (np.array(x) for x in self.clip.sample(self.start + self.steps / 30))
        ours, theirs = Pose(self.model, qpos, qvel), Pose(self.model, qpos_clip, qvel_clip)
        pose = velocity = 0.0
        for j in range(1, self.model.njnt):
            q, v = self.model.jnt_qposadr[j], self.model.jnt_dofadr[j]
            weight = self.weights[j] / self.weights[1:].max()
            if self.model.jnt_type[j] == mujoco.mjtJoint.mjJNT_BALL:
                pose += weight * quaternion_angle(qpos[q : q + 4], qpos_clip[q : q + 4]) ** 2
                velocity += weight * np.sum((qvel[v : v + 3] - qvel_clip[v : v + 3]) ** 2)
            else:
                pose += weight * (qpos[q] - qpos_clip[q]) ** 2
                velocity += weight * (qvel[v] - qvel_clip[v]) ** 2
        root_pose = np.sum((qpos[:3] - qpos_clip[:3]) ** 2) + 0.1 * quaternion_angle(qpos[3:7], qpos_clip[3:7]) ** 2
        root_velocity = np.sum((qvel[:3] - qvel_clip[:3]) ** 2) + 0.1 * np.sum((ours.root_angular - theirs.root_angular) ** 2)
        keys = 0.0
        for point in self.table["end_effectors"]:
            body, position = self.model.body(point["body"]).id, np.array(point.get("position", (0.0, 0.0, 0.0)))
            keys += np.sum((ours.point(body, position) - qpos[:3] - theirs.point(body, position) + qpos_clip[:3]) ** 2)
        far = np.linalg.norm(ours.data.xpos[1:] - theirs.data.xpos[1:], axis=1).max()
        return np.exp(-np.array([0.25 * pose, 0.01 * velocity, 5 * root_pose, root_velocity, 10 * keys])), far

    def terms(self, qpos, qvel):
        """The reward's terms after one more step of a world."""
        before, self.steps = self.start + self.steps / 30, self.steps + 1
        now = self.start + self.steps / 30
        qpos_clip, qvel_clip = (np.array(x) for x in self.clip.sample(now))
        if self.clip.loop and int(now / self.clip.duration) > int(before / self.clip.duration):
            self.shift = qpos[:2] - qpos_clip[:2]
        qpos_clip[:2] += self.shift
        ours, theirs = Pose(self.model, qpos, qvel), Pose(self.model, qpos_clip, qvel_clip)
        pose = self.weights[0] * quaternion_angle(qpos[3:7], qpos_clip[3:7]) ** 2
        velocity = self.weights[0] * np.sum((ours.root_angular - theirs.root_angular) ** 2)
        for j in range(1, self.model.njnt):
            q, v = self.model.jnt_qposadr[j], self.model.jnt_dofadr[j]
            if self.model.jnt_type[j] == mujoco.mjtJoint.mjJNT_BALL:
                pose += self.weights[j] * quaternion_angle(qpos[q : q + 4], qpos_clip[q : q + 4]) ** 2
                velocity += self.weights[j] * np.sum((qvel[v : v + 3] - qvel_clip[v : v + 3]) ** 2)
            else:
                pose += self.weights[j] * (qpos[q] - qpos_clip[q]) ** 2
                velocity += self.weights[j] * (qvel[v] - qvel_clip[v]) ** 2
        ends = []
        for point in self.table["end_effectors"]:
            body, position = self.model.body(point["body"]).id, np.array(point.get("position", (0.0, 0.0, 0.0)))
            a, b = ours.point(body, position), theirs.point(body, position)
            a[:2] -= qpos[:2]
            b[:2] -= qpos_clip[:2]
            ends.append(np.sum((ours.heading @ a - theirs.heading @ b) ** 2))
        root = np.sum((qpos[:3] - qpos_clip[:3]) ** 2) + 0.1 * quaternion_angle(qpos[3:7], qpos_clip[3:7]) ** 2
        root += 0.01 * np.sum((qvel[:3] - qvel_clip[:3]) ** 2)
        root += 0.001 * np.sum((ours.root_angular - theirs.root_angular) ** 2)
        com = 0.1 * np.sum((ours.com_velocity - theirs.com_velocity) ** 2)
        n = self.model.njnt
        return np.exp(-np.array([2 / 15 * n * pose, 0.1 / 15 * n * velocity, 10 * np.mean(ends), 5 * root, 10 * com]))


def philox_uniform(seed, draw, episode):
    """The first 53 bits of Philox4x32-10, from Salmon et al.'s definition."""
    counter, key = [draw, episode, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & 0xFFFFFFFF, (a >> 32) ^ counter[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return ((counter[0] << 32 | counter[1]) >> 11) * 2.0**-53


def table_of(name):
    return json.loads((MODELS / "tasks" / f"{name}.json").read_text())


@pytest.mark.parametrize("name, model", [("HumanoidWalk", "humanoid"), ("HumanoidCartwheel", "humanoid"), ("DogPace", "dog")])
def test_reward_and_observation_follow_the_definition(name, model):
    task, table = tarsus.tasks.make(name), table_of(model)
    clip_name = tarsus.tasks._MOTIONS[name][1]
    clip = tarsus.Clip.load(str(MODELS / "clips" / f"{clip_name}.json"), tarsus.Model.load(MODELS / f"{model}.xml"))
    n, seed = 6, (7 << 32) + 11
    worlds = tarsus.VectorTask(task, n, seed=seed)  # next_step: the observation after a step belongs to the same episode
    worlds.reset()
    oracles = [Oracle(model, table, clip) for _ in range(n)]
    hands = ["left_forearm", "right_forearm"] if name == "HumanoidCartwheel" else []  # may touch the ground like feet
    feet, hands = ([oracles[0].model.body(f).id - 1 for f in names] for names in (table["feet"] + hands, hands))
    episodes, on_hands = [0] * n, 0
    for w, oracle in enumerate(oracles):
        oracle.begin(philox_uniform(seed + w, 0, 0))
    rng = np.random.default_rng(4)
    weights = np.array([0.5, 0.05, 0.15, 0.2, 0.1])
    ended, compared, worst = np.zeros(n, bool), 0, 0.0
    for _ in range(75):
        for w in range(n):
            seen = oracles[w].observation(worlds.qpos[w].copy(), worlds.qvel[w].copy())
            worst = max(worst, np.abs(seen - worlds.observation[w]).max())
        worlds.step(rng.normal(scale=0.1, size=(n, task.action_size)))
        for w in range(n):
            if ended[w]:  # this step was its start
                episodes[w] += 1
                oracles[w].begin(philox_uniform(seed + w, 0, episodes[w]))
                assert worlds.reward[w] == 0 and not worlds.terminated[w]
                continue
            terms = oracles[w].terms(worlds.qpos[w].copy(), worlds.qvel[w].copy())
            worst = max(worst, np.abs(terms - worlds.terms[w]).max())
            expected = 0.0 if worlds.terminated[w] else weights @ terms
            worst = max(worst, abs(worlds.reward[w] - expected))
            compared += 1
            touching = np.flatnonzero(np.any(worlds.ground_force[w] != 0, axis=1))
            if set(touching) - set(feet):
                assert worlds.terminated[w]
            on_hands += bool(set(touching) & set(hands)) and not worlds.terminated[w]
        ended = worlds.terminated | worlds.truncated
    print(f"{name}: {compared} steps, {sum(episodes)} starts, largest difference {worst:.2e}")
    assert compared > 300 and sum(episodes) > 0 and (on_hands > 0 or not hands)
    assert worst < TOLERANCE


def test_mimickits_reward_follows_its_definition():
    table, model = table_of("humanoid"), tarsus.Model.load(MODELS / "humanoid.xml")
    clip = tarsus.Clip.load(str(MODELS / "clips" / "humanoid_walk.json"), model)
    task = tarsus.tasks.make("HumanoidWalk", reward="mimickit", relative_action=True)
    assert task.terms == ["pose", "velocity", "root_pose", "root_velocity", "key_body"] and task.time_limit == 10
    weights = task.settings["weights"]
    assert np.allclose(weights, [0.5, 0.1, 0.15, 0.1, 0.15], rtol=0, atol=1e-15)
    n, rng = 4, np.random.default_rng(2)
    worlds = tarsus.VectorTask(task, n, seed=5, autoreset="disabled")
    worlds.reset()
    oracles = [Oracle("humanoid", table, clip) for _ in range(n)]
    for w, oracle in enumerate(oracles):
        oracle.begin(philox_uniform(5 + w, 0, 0))
    worst, compared, strayed = 0.0, 0, 0
    for step in range(60):
        if step == 20:  # two worlds slide away from the clip, upright: one body after another passes a metre
            worlds.qvel[:2, 1] += 6.0
        worlds.step(rng.normal(scale=0.02, size=(n, task.action_size)))
        for w, oracle in enumerate(oracles):
            terms, far = oracle.mimickit(worlds.qpos[w].copy(), worlds.qvel[w].copy())
            worst = max(worst, np.abs(terms - worlds.terms[w]).max())
            touching = set(np.flatnonzero(np.any(worlds.ground_force[w] != 0, axis=1)))
            fell = touching - {oracle.model.body(f).id - 1 for f in table["feet"]}
            assert abs(far - 1) > 1e-9 and worlds.terminated[w] == (far > 1 or bool(fell)), (step, w, far, fell)
            assert abs(worlds.reward[w] - (0 if worlds.terminated[w] else weights @ terms)) < TOLERANCE
            compared, strayed = compared + 1, strayed + (far > 1 and not fell)
        ended = worlds.terminated | worlds.truncated
        if ended.any():
            worlds.reset(ended)
            for w in np.flatnonzero(ended):
                oracles[w].episode = getattr(oracles[w], "episode", 0) + 1
                oracles[w].begin(philox_uniform(5 + int(w), 0, oracles[w].episode))
    print(f"{compared} steps, {strayed} ended a metre away, largest difference {worst:.2e}")
    assert compared == 60 * n and strayed >= 2 and worst < TOLERANCE
    with pytest.raises(tarsus.ValueError, match="reward"):
        tarsus.tasks.make("HumanoidWalk", reward="mimic")
    with pytest.raises(tarsus.ValueError, match="distance_limit"):
        tarsus.tasks.make("HumanoidWalk", distance_limit=0)


def test_the_world_alone_is_equal_to_the_bit():
    """Each world equals to the bit a Stepper whose lanes all hold that world. A Stepper of one world sums in another order and is
    equal to rounding."""
    task = tarsus.tasks.make("HumanoidWalk")
    model = tarsus.Model.load(MODELS / "humanoid.xml")
    n = 4
    worlds = tarsus.VectorTask(task, n, threads=2, seed=3, autoreset="disabled")
    worlds.reset()
    drives, options = task.drives, dict(dt=task.control_dt / task.substeps, contacts=True, joint_limits=True)
    lanes, single = [], []
    for w in range(n):
        pack, one = tarsus.Data(model, 2), tarsus.Data(model)
        pack.qpos[:], pack.qvel[:] = worlds.qpos[w][:, None], worlds.qvel[w][:, None]
        one.qpos[:], one.qvel[:] = worlds.qpos[w], worlds.qvel[w]
        lanes.append((pack, tarsus.Stepper(pack, **options)))
        single.append((one, tarsus.Stepper(one, **options)))
    rng = np.random.default_rng(0)
    for step in range(15):
        worlds.step(rng.normal(scale=0.05, size=(n, task.action_size)))
        for w in range(n):
            (pack, pack_stepper), (one, one_stepper) = lanes[w], single[w]
            target = worlds.qpos_target[w].copy()
            for _ in range(task.substeps):
                pack_stepper.step(drives, np.broadcast_to(target[:, None], pack.qpos.shape).copy(), np.zeros(pack.qvel.shape))
                one_stepper.step(drives, target, np.zeros(model.nv))
            assert np.array_equal(pack.qpos[0, :, 0], worlds.qpos[w]) and np.array_equal(pack.qvel[0, :, 0], worlds.qvel[w])
            if step == 0:
                assert np.abs(one.qpos - worlds.qpos[w]).max() < 1e-7
        if (worlds.terminated | worlds.truncated).any():
            break


@pytest.mark.parametrize("name", ["HumanoidWalk", "DogPace"])
@pytest.mark.parametrize("dtype, close", [("float64", 1e-9), ("float32", 1e-3)])
def test_the_dense_baselines_drives_are_mabas_where_nothing_is_touched(name, dtype, close):
    """From rest in the air and without force limits both solve the same equation. On the ground only MABA's drives take the
    contacts into account. (In motion the step treats velocity products implicitly, which a controller outside of it cannot.)"""
    character, clip = tarsus.tasks._MOTIONS[name]
    table = table_of(character)
    for joint in table["joints"].values():
        joint["force"] = np.inf
    task = tarsus.tasks.motion_task(MODELS / f"{character}.xml", MODELS / "clips" / f"{clip}.json", table, relative_action=True, substeps=1)
    n, rng = 5, np.random.default_rng(0)
    both = [tarsus.VectorTask(task, n, seed=2, dtype=dtype, drives=drives) for drives in ("maba", "dense")]

    def differ(height):
        action = rng.normal(scale=0.1, size=(n, task.action_size)).astype(dtype)
        for worlds in both:
            worlds.reset()
            worlds.qpos[:, 2] += height
            worlds.qvel[:] = 0
            worlds.step(action)
        assert not np.any(both[0].bad | both[1].bad)
        return np.abs(both[0].qvel - both[1].qvel).max() / np.abs(both[0].qvel).max()

    flying, standing = differ(5.0), differ(-0.005)
    print(f"{name} {dtype}: {flying:.1e} in the air, {standing:.1e} on the ground")
    assert flying < close < standing
    with pytest.raises(tarsus.ValueError, match="drives"):
        tarsus.VectorTask(task, drives="sparse")
    with pytest.raises(tarsus.ValueError, match="the task has no drives"):
        tarsus.VectorTask(tarsus.tasks.make("CartPole"), drives="dense")


def test_actions_are_exponential_maps():
    task = tarsus.tasks.make("HumanoidWalk")
    worlds = tarsus.VectorTask(task, 1)
    worlds.reset()
    action = np.linspace(-0.4, 0.4, task.action_size)[None]
    worlds.step(action)
    model, target = tarsus.Model.load(MODELS / "humanoid.xml"), worlds.qpos_target[0]
    for joint in list(model.joints)[1:]:
        a = action[0][joint.qvel.start - 6 : joint.qvel.stop - 6]
        if joint.type == "ball":
            angle = np.linalg.norm(a)
            expected = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * a / angle])
        else:
            expected = a
        assert np.allclose(target[joint.qpos], expected, rtol=0, atol=1e-14)

def test_a_second_free_body_is_refused():
    """No action would move it and no clip would give its pose. Its six action components would have no effect."""
    text = (MODELS / "humanoid.xml").read_text()
    box = '<body name="box" pos="2 0 1"><freejoint name="box"/><geom size=".1"/></body></worldbody>'
    model = tarsus.Model.from_xml_string(text.replace("</worldbody>", box))
    table = table_of("humanoid")
    table["joints"]["box"] = {"kp": 0, "kd": 0, "force": 1, "weight": 0}
    with pytest.raises(ValueError, match="several free joints"):
        tarsus.tasks.motion_task(model, MODELS / "clips" / "humanoid_walk.json", table)


def test_bad_tables_are_named():
    table = table_of("humanoid")
    table["joints"]["tail"] = table["joints"].pop("neck")
    files = MODELS / "humanoid.xml", MODELS / "clips" / "humanoid_walk.json"
    with pytest.raises(tarsus.ValueError, match="tail"):
        tarsus.tasks.motion_task(*files, table)
    del table["joints"]["tail"]
    with pytest.raises(tarsus.ValueError, match="neck"):
        tarsus.tasks.motion_task(*files, table)
    for change, error, text in (
            (lambda t: t["joints"]["left_knee"].update(kP=1), tarsus.ValueError, "^table's joint 'left_knee': has the key 'kP', expected kp, kd,"),
            (lambda t: t["joints"]["left_knee"].pop("kd"), tarsus.ValueError, "^table's joint 'left_knee': lacks the key 'kd', expected"),
            (lambda t: t["joints"]["left_knee"].update(kp="1"), TypeError, "^table's joint 'left_knee', kp: is of type str, expected a"),
            (lambda t: t.update(foot=[]), tarsus.ValueError, "^table: has the key 'foot', expected root, joints, end_effectors, feet"),
            (lambda t: t.update(joints=[]), TypeError, "^table's joints: is of type list, expected a dict"),
            (lambda t: t["root"].clear(), tarsus.ValueError, "^table's root: lacks the key 'weight'"),
            (lambda t: t["root"].update(weight="a"), TypeError, "^table's root, weight: is of type str"),
            (lambda t: t["joints"]["left_knee"].update(weight=None), TypeError, "^table's joint 'left_knee', weight: is None"),
            (lambda t: t.update(end_effectors=3), TypeError, "^table's end_effectors: is of type int, expected a list"),
            (lambda t: t["end_effectors"][0].update(position=[0, 0]), TypeError, r"^end_effectors: has \('\w+', 0, 0\), expected \(body, x, y, z\)"),
            (lambda t: t["end_effectors"][0].update(position=[0, 0, "a"]), TypeError, "^end_effectors: has .*'a'"),
            (lambda t: t["end_effectors"][0].update(position=[0, 0, np.nan]), tarsus.ValueError, "^end_effectors: is nan, expected finite positions"),
            (lambda t: t.update(feet="left_foot"), TypeError, "^table's feet: is of type str, expected a list"),
            (lambda t: t["end_effectors"][0].update(pos=[0, 0, 0]), tarsus.ValueError, "^table's end effector: has the key 'pos', expected body,")):
        table = table_of("humanoid")
        change(table)
        with pytest.raises(error, match=text):
            tarsus.tasks.motion_task(*files, table)
    with pytest.raises(TypeError, match="^table: is None, expected a dict"):
        tarsus.tasks.motion_task(*files, None)
    with pytest.raises(tarsus.ValueError, match="^table: .*humanoid.xml is not valid JSON: "):
        tarsus.tasks.motion_task(*files, files[0])
    with pytest.raises(tarsus.ValueError, match="HumanoidWalk"):
        tarsus.tasks.make("HumanoidSwim")


WALK = MODELS / "policies" / "humanoid_walk.npz"


@pytest.mark.parametrize("push", [0.0, 0.3])
def test_the_walk_keeps_walking(push):
    """20 s from random phases without a fall; also with pushes of 0.3 m/s on the whole body (18 N s) every 3 s."""
    task = tarsus.tasks.make("HumanoidWalk", relative_action=True)
    result = tarsus.learn.evaluate(task, tarsus.learn.Policy.load(WALK), worlds=8, push=push)
    print(result)
    assert result["completed"] == 1 and result["normalized_return"] > 0.8


def test_models_vary_by_their_share():
    """Numbers are within the share and differ between worlds; equal seeds give equal models; small shares change little."""
    task = tarsus.tasks.make("QuadrupedVelocity")
    worlds, twin, other = (tarsus.VectorTask(task, 16) for _ in range(3))
    names = tarsus.learn.vary(worlds, 0.3, seed=5)
    assert names == ["mass_scale", "damping_scale", "armature_scale", "com_offset", "friction_scale", "actuator_gain_scale",
                     "actuator_damping_scale", "actuator_force_scale"]
    tarsus.learn.vary(twin, 0.3, seed=5), tarsus.learn.vary(other, 0.3, seed=6)
    for name, numbers in worlds.parameters.items():
        assert np.abs(numbers - (0 if name == "com_offset" else 1)).max() <= (0.03 if name == "com_offset" else 0.3)
        assert len(np.unique(numbers.reshape(16, -1)[:, -1])) == 16
        assert np.array_equal(numbers, twin.parameters[name]) and not np.array_equal(numbers, other.parameters[name])
    assert tarsus.learn.vary(tarsus.VectorTask(tarsus.tasks.make("HumanoidWalk"), 2), 0.1)[-3:] == ["kp_scale", "kd_scale", "force_scale"]
    policy = tarsus.learn.Policy.load(MODELS / "policies" / "quadruped.npz")
    alike, near, far = (tarsus.learn.evaluate(task, policy, worlds=16, varied=share) for share in (0, 0.01, 0.9))
    print(alike, near, far)
    assert alike["completed"] == 1 and abs(near["normalized_return"] - alike["normalized_return"]) < 0.02
    assert far["completed"] < 1 and far["normalized_return"] < alike["normalized_return"] - 0.2
    for share in (1, -0.1, np.nan):
        with pytest.raises(tarsus.ValueError, match="^share: is .*, expected a number from 0 to less than 1"):
            tarsus.learn.vary(worlds, share)
    for wrong, error in ({"share": "a"}, TypeError), ({"seed": -1}, tarsus.ValueError), ({"seed": 0.5}, TypeError):
        with pytest.raises(error, match=f"^{[*wrong][0]}: is "):
            tarsus.learn.vary(worlds, **{"share": 0.1, **wrong})


def test_the_cartwheel_goes_round():
    """20 s of cartwheels from random phases, nearly all without a fall. The policy must perform the motion rather than stand: the
    trunk is upside down for the same share of the time as in the clip, 0.154."""
    task = tarsus.tasks.make("HumanoidCartwheel", relative_action=True)
    policy = tarsus.learn.Policy.load(MODELS / "policies" / "humanoid_cartwheel.npz")
    result = tarsus.learn.evaluate(task, policy, worlds=64)
    print(result)
    assert result["normalized_return"] > 0.8 and result["completed"] > 0.85
    worlds, inverted = tarsus.VectorTask(task, 64, autoreset="same_step"), []
    worlds.reset(None, np.arange(64, dtype=np.uint64))
    for _ in range(150):
        worlds.step(policy(worlds.observation))
        w, x, y, z = worlds.qpos[:, 3:7].T
        inverted.append(1 - 2 * (x * x + y * y) < -0.5)
    print(np.mean(inverted))
    assert abs(np.mean(inverted) - 0.154) < 0.03


def test_the_command_line_walks_alike(tmp_path):
    """`tarsus run --policy`, whose network is in C++, against the same network in numpy."""
    import subprocess
    import sys

    out, clip = tmp_path / "walk.npz", MODELS / "clips" / "humanoid_walk.json"
    command = [sys.executable, "-m", "tarsus", "run", MODELS / "humanoid.xml", "--clip", clip, "--policy", WALK]
    run = subprocess.run([*command, "--duration", "20", "--start", "0.2", "--json", "--out", out], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["steps"] == 600 and not report["fell"] and report["reward"] > 0.8
    policy = tarsus.learn.Policy.load(WALK)
    world = tarsus.VectorTask(tarsus.tasks.make("HumanoidWalk", relative_action=True, start=0.2), 1)
    world.reset()
    recorded = np.load(out)
    for step in range(5):  # later rounding errors have grown
        world.step(policy(world.observation))
        assert np.abs(recorded["qpos"][step] - world.qpos[0]).max() < 1e-9
    other = subprocess.run([*command, "--gains", "100,10"], capture_output=True, text=True)
    assert other.returncode != 0 and "--gains" in other.stderr


def test_the_page_of_a_policy_has_contacts_and_tracking_error(tmp_path):
    """The contact forces equal the external root wrench, in steps as long as those of control. The error is the mean distance of
    the bodies' centres of mass from the clip's."""
    import base64
    import re
    import subprocess
    import sys

    out, page, clip = tmp_path / "walk.npz", tmp_path / "walk.html", MODELS / "clips" / "humanoid_walk.json"
    command = [sys.executable, "-m", "tarsus", "run", MODELS / "humanoid.xml", "--clip", clip, "--policy", WALK, "--dt", "0.0333333333"]
    run = subprocess.run([*command, "--duration", "1", "--out", out, "--page", page], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    text = page.read_text(encoding="utf-8")
    recording = json.loads(re.search(r'<script id="recording" type="application/json">(.*?)</script>', text, re.S)[1])
    numbers = {key: np.frombuffer(base64.b64decode(recording[key]), kind) for key, kind in (("contacts", "<f4"), ("contact_start", "<i4"))}
    contacts, start = numbers["contacts"].reshape(-1, 10), numbers["contact_start"]
    kept, model = np.load(out), tarsus.Model.load(MODELS / "humanoid.xml")
    ours, theirs = tarsus.Data(model), tarsus.Data(model)
    bodies = [body for body in model.bodies if body.link >= 0]

    def centres(data, qpos, qvel):
        tarsus.kinematics(model, data, qpos, qvel)
        poses = [tarsus.body_pose(model, data, body.id) for body in bodies]
        return np.array([position + rotation @ body.com for body, (rotation, position) in zip(bodies, poses)])

    errors = []
    for qpos, qvel, target in zip(kept["qpos"], kept["qvel"], kept["target"]):
        apart = centres(ours, qpos, qvel) - centres(theirs, target, 0 * qvel)
        errors.append(np.linalg.norm(apart, axis=1).mean())
    series, = (np.frombuffer(base64.b64decode(s["values"]), "<f4") for s in recording["series"] if s["name"] == "tracking error")
    assert np.allclose(series[1:], errors, rtol=1e-5) and min(errors) > 1e-3
    force = np.array([contacts[a:b, 3:6].sum(axis=0) for a, b in zip(start[1:], start[2:])])
    expected = [tarsus.rnea(model, ours, qpos, v, 30 * (new - v))[:3] for qpos, v, new in zip(kept["qpos"], kept["qvel"], kept["qvel"][1:])]
    weight = 9.81 * model.total_mass()
    assert len(force) == 30 and np.ptp(force[:, 2]) > 0.5 * weight
    assert np.allclose(force[1:], expected, atol=0.015 * weight)  # a step's velocity products are bounded, rnea's are not


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("name, value", [("QuadrupedVelocity", np.inf), ("QuadrupedVelocity", np.nan), ("CartPole", -np.inf),
                                         ("QuadrupedVelocity", 1e160), ("HumanoidWalk", np.inf), ("Ant", 1e300)])
def test_a_world_whose_action_or_reward_is_no_number_is_bad(name, value, mode):
    if name == "Ant":
        pytest.importorskip("gymnasium")
    task = tarsus.tasks.make(name)
    worlds, same = (tarsus.VectorTask(task, 3, autoreset=mode) for _ in range(2))
    action = np.zeros((3, task.action_size))
    worlds.reset(), same.reset()
    worlds.step(action), same.step(action)
    same.step(action)
    action[1, 0] = value
    worlds.step(action)
    assert list(worlds.bad) == [False, True, False] and worlds.truncated[1] and worlds.reward[1] == 0
    assert np.isfinite(worlds.observation).all() and np.isfinite(worlds.reward).all() and np.isfinite(worlds.terms).all()
    assert np.array_equal(worlds.observation[[0, 2]], same.observation[[0, 2]]) and worlds.bad_worlds == 1
    if mode != "disabled":
        worlds.step(0 * np.nan_to_num(action))
        assert not worlds.bad.any() and np.isfinite(worlds.observation).all()


@pytest.mark.parametrize("option, value", [("--seed", "-1"), ("--threads", "0"), ("--threads", "257"), ("--worlds", "0"), ("--worlds", str(2**31)),
                                           ("--samples", "-5"), ("--samples", "nan"), ("--samples", "1e400"), ("--minutes", "0")])
def test_the_command_refuses_what_cannot_be(option, value, tmp_path, capsys):
    from tarsus.learn import __main__ as command

    with pytest.raises(SystemExit) as end:
        command.main(["cart-pole", "--out", str(tmp_path), option, value])
    assert end.value.code == 2 and f"{option}: is " in capsys.readouterr().err and not any(tmp_path.iterdir())


def test_the_command_names_a_folder_that_cannot_be(tmp_path):
    from tarsus.learn import __main__ as command

    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit, match="^--out: .*file"):
        command.main(["cart-pole", "--out", str(tmp_path / "file")])


def test_a_policy_of_another_task_is_named():
    policy = tarsus.learn.Policy.load(tarsus.MODELS / "policies" / "humanoid_walk.npz")
    with pytest.raises(tarsus.ValueError, match=r"^observation: is of shape \(2, 4\), expected .* numbers per observation"):
        tarsus.learn.evaluate(tarsus.tasks.make("CartPole"), policy, worlds=2)
    with pytest.raises(tarsus.ValueError, match=r"^policy: returns actions of shape \(2, 3\), expected \(2, 1\)"):
        tarsus.learn.evaluate(tarsus.tasks.make("CartPole"), lambda observation: np.zeros((2, 3)), worlds=2)
    with pytest.raises(tarsus.ValueError, match="^policy: was trained with relative_action=True, expected a task with the same"):
        tarsus.learn.evaluate(tarsus.tasks.make("HumanoidWalk"), policy, worlds=2)


def test_a_policy_may_give_what_numpy_takes_for_an_array():
    push = lambda observation: [[1.0]] * len(observation)
    arrays = lambda observation: np.ones((len(observation), 1))
    task = tarsus.tasks.make("CartPole")
    assert tarsus.learn.evaluate(task, push, worlds=2) == tarsus.learn.evaluate(task, arrays, worlds=2)


def test_a_cart_poles_return_is_over_its_time_limit():
    """500 steps with reward 1. The return is normalised by the time limit, not by the longest episode that occurred, by which
    short episodes would score full marks."""
    task = tarsus.tasks.make("CartPole")
    result = tarsus.learn.evaluate(task, lambda observation: np.zeros((len(observation), 1)), worlds=8)
    assert task.time_limit == 10 and result["completed"] == 0 and 0.3 < result["episode_seconds"] < 3
    assert np.isclose(result["normalized_return"], result["episode_seconds"] / 10, rtol=1e-12)
    worlds = tarsus.VectorTask(task, autoreset="disabled")
    worlds.reset()
    for step in range(1, 501):
        worlds.qpos[:], worlds.qvel[:] = 0, 0
        worlds.step(np.zeros((1, 1)))
        assert worlds.truncated[0] == (step == 500)


@pytest.mark.parametrize("limit, steps", [(0.1, 3), (0.11, 4), (0.045, 2), (0.01, 1)])
def test_a_time_limit_between_two_steps_is_the_later(limit, steps):
    """0.11 s are 3.3 steps of 1/30 s: episodes have four steps, and the return is normalised by four."""
    task = tarsus.tasks.make("HumanoidWalk", relative_action=True, time_limit=limit)
    result = tarsus.learn.evaluate(task, lambda observation: np.zeros((len(observation), 28)), worlds=4)
    assert result["completed"] == 1 and np.isclose(result["episode_seconds"], steps / 30)
    assert np.isclose(result["normalized_return"], result["reward"])


@pytest.mark.parametrize("start", [0.0, -1.0])
def test_the_return_of_a_clip_that_does_not_loop_is_over_its_steps(tmp_path, start):
    """Episodes end with the clip after 1 s, and the return is normalised by that, not by 20 s."""
    text = (MODELS / "clips" / "humanoid_walk.json").read_text(encoding="utf-8")
    looping = '"loop": true'
    assert looping in text
    (tmp_path / "once.json").write_text(text.replace(looping, '"loop": false'), encoding="utf-8")
    task = tarsus.tasks.motion_task(MODELS / "humanoid.xml", tmp_path / "once.json", MODELS / "tasks" / "humanoid.json", relative_action=True,
                                    start=start)
    result = tarsus.learn.evaluate(task, lambda observation: np.zeros((len(observation), 28)), worlds=16)
    assert not task.loops and result["completed"] == 1 and result["episode_seconds"] < task.clip_duration + task.control_dt
    assert np.isclose(result["normalized_return"], result["reward"], rtol=1e-12 if start == 0 else 0.2)
    twice = tarsus.tasks.motion_task(MODELS / "humanoid.xml", tmp_path / "once.json", MODELS / "tasks" / "humanoid.json", relative_action=True,
                                     start=start, time_limit=task.clip_duration / 2)
    assert tarsus.learn.evaluate(twice, lambda observation: np.zeros((len(observation), 28)), worlds=4)["normalized_return"] <= 1


@pytest.mark.parametrize("name, known", [("HumanoidWalk", "reward, weights"), ("QuadrupedVelocity", "command_low"),
                                         ("CartPole", "none")])
def test_unknown_options_of_tasks_are_named(name, known):
    with pytest.raises(TypeError, match=rf"^time_limits: is not an option of tarsus\.\w+Task, expected {known}"):
        tarsus.tasks.make(name, time_limits=3)


@pytest.mark.parametrize("start", [1e300, np.inf, np.nan])
def test_a_start_that_is_no_time_in_the_clip_is_named(start):
    with pytest.raises(tarsus.ValueError, match="^start: is .*, expected a time of at most 1e9 s"):
        tarsus.tasks.make("HumanoidWalk", start=start)


def test_tasks_take_bodies_by_name_or_index():
    model = tarsus.Model.load(MODELS / "humanoid.xml")
    clip, drives = tarsus.Clip.load(str(MODELS / "clips" / "humanoid_walk.json"), model), tarsus.Drives.uniform(model)
    drives.kp, drives.kd = (np.where(np.arange(model.nv) < 6, 0.0, x) for x in (drives.kp, drives.kd))
    settings = []
    for body in (lambda name: name, model.body_id, lambda name: np.int64(model.body_id(name))):
        task = tarsus.MotionTask(model, clip, drives, joint_weight=[1.0] * 13, feet=(body("left_foot"), body("right_foot")),
                                 end_effectors=[(body("left_forearm"), 0.0, 0.0, -0.1)])
        settings.append([*task.settings["feet"], *task.settings["end_effectors"][0]])
    assert settings[0] == settings[1] == settings[2]
    quadruped = tarsus.Model.load(MODELS / "quadruped.xml")
    for feet, error, message in ((["tail"], tarsus.ValueError, "^feet: is \"tail\", expected one of: world, trunk"),
                                 ([99], tarsus.ValueError, "^feet: is 99, expected an index"), ([1.5], TypeError, "^feet: is of type float"),
                                 (["trunk", 1], tarsus.ValueError, "^feet: is \"trunk\", whose link is among them already"),
                                 ("trunk", TypeError, "^feet: is 'trunk', expected a list of names or indices of bodies")):
        with pytest.raises(error, match=message):
            tarsus.VelocityTask(quadruped, feet=feet)
    assert tarsus.VelocityTask(quadruped, feet=["front_left_calf"]).observation_size == 48


@pytest.mark.parametrize("name, option", [("HumanoidWalk", "feet"), ("HumanoidWalk", "joint_weight"), ("QuadrupedVelocity", "feet")])
def test_what_a_task_has_of_its_own_is_no_option(name, option):
    with pytest.raises(TypeError, match=rf"^{option}: is already set by this task, expected \w+, "):
        tarsus.tasks.make(name, **{option: [1]})


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"seed": 2**64}, {"seed": 1.5}, {"push": np.nan}, {"push": np.inf}, {"push": -1},
                                   {"push_every": 0}, {"push_every": -1}, {"push_every": np.nan}, {"push_every": np.inf}])
def test_evaluation_names_what_is_out_of_range(wrong):
    task = tarsus.tasks.make("HumanoidWalk", time_limit=0.1)
    (name,) = wrong
    with pytest.raises(tarsus.ValueError, match=f"^{name}: is .*, expected a "):
        tarsus.learn.evaluate(task, lambda observation: np.zeros((2, 28)), worlds=2, **wrong)


@pytest.mark.parametrize("name", ["CartPole", "HalfCheetah"])
def test_a_blow_needs_a_free_root(name):
    """Without a free root the push would change the pole's angular velocity, or the cheetah's vertical one."""
    if name != "CartPole":
        pytest.importorskip("gymnasium", reason="gymnasium, which has the model, is not installed")
    task = tarsus.tasks.make(name)
    ball = tarsus.Model.from_xml_string("""<mujoco><worldbody><body><joint type="ball"/><geom size=".1" pos="0 0 .2"/>
        <body><joint name="h"/><geom size=".1"/></body></body></worldbody>
        <actuator><motor joint="h" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>""")
    for task in (task, tarsus.LocomotionTask(ball)):
        with pytest.raises(tarsus.ValueError, match="^push: is 0.3, expected 0, because pushes change the horizontal velocity of a free root"):
            tarsus.learn.evaluate(task, lambda observation: np.zeros((2, task.action_size)), worlds=2, push=0.3)
    assert task.model is ball


def damaged(folder, changes, source=WALK):
    """The policy's file with some arrays replaced; None removes an array."""
    arrays = {**dict(np.load(source)), **changes}
    path = folder / "damaged.npz"
    np.savez(path, **{name: values for name, values in arrays.items() if values is not None})
    return path


NAN = np.array([np.nan])
def test_the_command_line_says_that_a_policy_follows_no_clip():
    import subprocess
    import sys

    command = [sys.executable, "-m", "tarsus", "run", MODELS / "humanoid.xml", "--clip", MODELS / "clips" / "humanoid_walk.json", "--no-record",
               "--policy", MODELS / "policies" / "quadruped.npz"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1 and "is a policy without a task's gains, expected a policy that was trained to follow a clip" in run.stderr


#: Faults of a policy's file: the changed arrays, the array that is named, and the messages in Python and on the command line.
WRONG_POLICIES = [
    ({"mean": np.zeros(1)}, "mean", r"is \[1\], expected \[197\]", "weight0|scale"),
    ({"mean": np.full(197, np.nan)}, "mean", "has nan, expected numbers that are finite", "mean"),
    ({"mean": np.array("x")}, "mean", "is of <U1, expected float32 or float64", "mean"),
    ({"mean": None}, "mean", r"is missing, expected float32 or float64 \[197\]", "mean"),
    ({"scale": np.zeros(197)}, "scale", "has 0, expected numbers that are positive and finite", "scale"),
    ({"action_scale": np.ones(1)}, "action_scale", r"is \[1\], expected \[28\]", "action_scale"),
    ({"action_offset": NAN}, "action_offset", r"is \[1\], expected \[28\]", "action_offset"),
    ({"weight0": np.zeros((197, 256))}, "weight0", r"is \[197, 256\] and bias0 \[256\], expected \[n, 197\]",
     r"\(197, 256\); expected \(256, 197\) \(weight0\)"),
    ({"weight1": np.zeros((256, 256), int)}, "weight1", "is of int64, expected float32 or float64", "weight1"),
    ({"weight1": np.full((256, 256), np.inf)}, "weight1", "has inf, expected numbers that are finite", "weight1"),
    ({"weight1": None}, "weight1", "is missing", "weight1"),
    ({"bias2": np.zeros(1)}, "weight2", r"is \[28, 256\] and bias2 \[1\], expected \[n, 256\] and \[n\]", "weight2"),
    ({"weight3": np.zeros((28, 28))}, "bias3", "is missing", "bias3"),
    ({"task_kp": np.full(34, np.nan)}, "task_kp", "has nan, expected numbers that are at least 0 and finite", "kp"),
    ({"task_kp": np.full(34, -1.0)}, "task_kp", "has -1, expected numbers that are at least 0 and finite", "kp"),
    ({"task_kd": np.zeros(3)}, "task_kd", r"is \[3\], expected \[34\]", "kd"),
    ({"task_kd": None}, "task_kd", "is missing", "kd"),
    ({"task_force_limit": np.zeros(3)}, "task_force_limit", r"is \[3\], expected \[34\]", "force_limit"),
    ({"task_control_dt": np.zeros(1)}, "task_control_dt", "has 0, expected numbers that are positive", "control_dt"),
    ({"task_control_dt": np.array(0.03)}, "task_control_dt", r"is \[\], expected \[1\]", "control_dt"),
    ({"task_substeps": np.array([1.5])}, "task_substeps", "has 1.5, expected numbers that are whole", "substeps"),
    ({"task_feet": np.array([-3.0])}, "task_feet", "has -3, expected numbers that are whole", "feet"),
    ({"task_feet": NAN}, "task_feet", "has nan, expected numbers that are whole", "feet"),
    ({"task_end_effectors": np.full((1, 4), 0.5)}, "task_end_effectors", "has body 0.5, expected", "end_effectors"),
    ({"task_phase": NAN}, "task_phase", "has nan, expected numbers that are 0 or 1", "phase"),
    ({"task_weights": np.zeros(5)}, "task_weights", "are all 0, expected at least one positive weight", "weights"),
]


@pytest.mark.parametrize("changes, name, said, by_command", WRONG_POLICIES)
def test_a_policys_file_is_refused_by_the_name_of_what_is_wrong(tmp_path, changes, name, said, by_command):
    import subprocess
    import sys

    path = damaged(tmp_path, changes)
    with pytest.raises(tarsus.ValueError, match=rf"^{path}: {name}: {said}"):
        tarsus.learn.Policy.load(path)
    clip = MODELS / "clips" / "humanoid_walk.json"
    command = [sys.executable, "-m", "tarsus", "run", MODELS / "humanoid.xml", "--clip", clip, "--policy", path]
    run = subprocess.run([*command, "--duration", "0.1", "--no-record"], capture_output=True, text=True)
    assert run.returncode != 0 and re.search(by_command, run.stderr), run.stderr


def test_policies_that_are_no_files_of_arrays_are_named(tmp_path):
    path, whole = tmp_path / "p.npz", WALK.read_bytes()
    middle = len(whole) // 2
    for text in (b"", b"no zip", whole[:middle], whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]):
        path.write_bytes(text)
        with pytest.raises(tarsus.ValueError, match=rf"^{path}: (is not an .npz file or is damaged|\w+: cannot be read)"):
            tarsus.learn.Policy.load(path)
    np.savez(path, mean=np.array([{}], object))
    with pytest.raises(tarsus.ValueError, match=rf"^{path}: mean: cannot be read"):
        tarsus.learn.Policy.load(path)


def test_one_number_may_scale_all_actions(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime, which runs the graph, is not installed")
    pytest.importorskip("onnx", reason="onnx, which writes the graph, is not installed")
    policy = tarsus.learn.Policy(np.zeros(3), np.ones(3), [(np.arange(6.0).reshape(2, 3), np.ones(2))], 0.5, 2.0)
    policy.save_onnx(tmp_path / "p.onnx")
    with pytest.raises(tarsus.ValueError, match=r"p.npz, expected a file that does not end in .npz: save\(\) writes .npz"):
        policy.save_onnx(tmp_path / "p.npz")
    x = np.array([[1.0, 2.0, 3.0]])
    policy.save(tmp_path / "p.npz")
    run = onnxruntime.InferenceSession(str(tmp_path / "p.onnx")).run(None, {"observation": x.astype(np.float32)})[0]
    assert np.allclose(run, policy(x)) and np.allclose(tarsus.learn.Policy.load(tmp_path / "p.npz")(x), policy(x))


def test_policies_that_fit_are_loaded(tmp_path):
    """Policies of tasks without settings, without the reward's setting as in older files, in single precision, and saved from
    numbers."""
    tarsus.learn.Policy.load(damaged(tmp_path, {"task_reward": np.ones(1), "mean": np.zeros(197, np.float32)}))
    tarsus.learn.Policy.load(damaged(tmp_path, {"task_feet": np.zeros(0), "task_end_effectors": np.zeros((0, 4))}))
    assert tarsus.learn.Policy.load(MODELS / "policies" / "quadruped.npz").task == {}
    idle = tarsus.learn.Policy(0.0, 1.0, [(np.ones((2, 4)), np.zeros(2))], np.zeros(2), np.ones(2))
    for name in ("idle.npz", "idle"):
        idle.save(tmp_path / name)
        assert np.array_equal(tarsus.learn.Policy.load(tmp_path / name)(np.arange(4.0)), idle(np.arange(4.0)))
    assert sorted(path.name for path in tmp_path.glob("idle*")) == ["idle", "idle.npz"]
    assert repr(idle) == "<tarsus.learn.Policy 4 to 2>"


@pytest.mark.parametrize("task", ["cart-pole", "quadruped"])
def test_the_command_refuses_absolute_actions_without_a_clip(task, tmp_path, capsys):
    from tarsus.learn import __main__ as command

    with pytest.raises(SystemExit) as end:
        command.main([task, "--out", str(tmp_path), "--absolute"])
    said = f"--absolute: is given with {task}, which has no clip; expected one of walk"
    assert end.value.code == 2 and said in capsys.readouterr().err
