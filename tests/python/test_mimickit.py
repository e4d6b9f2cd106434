"""MimicKit's engine interface on tarsus.Batch: states against MuJoCo's kinematics, steps against a separate Batch."""

import re

import numpy as np
import pytest
import tarsus
from oracle import DATA

torch = pytest.importorskip("torch", reason="torch, whose tensors MimicKit's engines speak, is not installed")
mujoco = pytest.importorskip("mujoco")
pytestmark = [pytest.mark.xdist_group("torch"), pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data beside the repository")]

FILE = DATA / "mimickit" / "data" / "assets" / "humanoid" / "humanoid.xml"
#: The abstract methods of MimicKit's engines.engine.Engine.
INTERFACE = """get_name create_env create_obj initialize_sim set_cmd step set_camera_pose get_camera_pos get_camera_dir render get_timestep
    get_num_envs get_root_pos get_root_rot get_root_vel get_root_ang_vel get_dof_pos get_dof_vel get_dof_forces get_body_pos get_body_rot
    get_body_vel get_body_ang_vel get_contact_forces get_ground_contact_forces set_root_pos set_root_rot set_root_vel set_root_ang_vel
    set_dof_pos set_dof_vel set_body_vel set_body_ang_vel set_body_forces get_obj_type get_obj_num_dofs get_obj_num_bodies
    get_obj_body_names find_obj_body_id get_obj_torque_limits get_obj_dof_limits calc_obj_mass get_control_mode draw_lines
    register_keyboard_callback enabled_record_video""".split()
BALLS = """<mujoco><compiler angle="radian"/><worldbody><body name="a"><freejoint/><geom size=".1" mass="3"/>
    <body name="b" pos="0 0 .3"><joint name="neck" type="ball" stiffness="50" damping="5" armature=".01"/>
    <geom type="capsule" size=".04" fromto="0 0 0 0 .2 .2" mass="1"/></body></body></worldbody></mujoco>"""


def engine(file=FILE, n=3, mode="pos", height=1.0, control_freq=30, **options):
    from tarsus.gym import mimickit

    e = mimickit.Engine({"sim_freq": 120, "control_freq": control_freq, "control_mode": mode}, n)
    for _ in range(n):
        e.create_obj(e.create_env(), 1, str(file), "character", start_pos=[0, 0, height], **options)
    e.initialize_sim()
    return e


def random_state(e, rng):
    n, dofs = e.get_num_envs(), e.get_obj_num_dofs(0)
    rotation = rng.normal(size=(n, 4))
    rotation /= np.linalg.norm(rotation, axis=1, keepdims=True)
    state = {"root_pos": rng.normal(size=(n, 3)) + [0, 0, 3], "root_rot": rotation, "root_vel": rng.normal(size=(n, 3)),
             "root_ang_vel": rng.normal(size=(n, 3)), "dof_pos": rng.uniform(-0.4, 0.4, (n, dofs)), "dof_vel": rng.normal(size=(n, dofs))}
    for name, value in state.items():
        getattr(e, f"set_{name}")(None, 0, torch.tensor(value, dtype=torch.float32))
    return state


@pytest.fixture(params=["humanoid", "ball"])
def file(request, tmp_path):
    if request.param == "humanoid":
        return FILE
    (tmp_path / "balls.xml").write_text(BALLS)
    return tmp_path / "balls.xml"


def test_every_method_is_there():
    from tarsus.gym import mimickit

    missing = [name for name in INTERFACE if not callable(getattr(mimickit.Engine, name, None))]
    assert not missing


def test_states_are_mujocos(file):
    e, rng = engine(file), np.random.default_rng(1)
    state = random_state(e, rng)
    for name, value in state.items():
        assert np.abs(getattr(e, f"get_{name}")(0).numpy() - value).max() < 1e-6, name
    for row in range(3):  # setting one environment's state leaves the others unchanged
        kept = e._qpos.clone(), e._qvel.clone()
        e.set_root_rot(torch.tensor([row]), 0, torch.tensor([[0.0, 0, 0, 1]]))
        e.set_dof_pos(torch.tensor([row]), 0, torch.tensor(state["dof_pos"][row : row + 1], dtype=torch.float32))
        others = [i for i in range(3) if i != row]
        assert torch.equal(e._qpos[others], kept[0][others]) and torch.equal(e._qvel[others], kept[1][others])
        e.set_root_rot(row, 0, state["root_rot"][row])
    e.step()
    model = mujoco.MjModel.from_xml_path(str(file))
    assert e.get_obj_body_names(0) == [model.body(b).name for b in range(1, model.nbody)]
    assert abs(e.calc_obj_mass(0, 0) - model.body_mass.sum()) < 1e-5
    for row in range(3):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = e._qpos[row].numpy(), e._qvel[row].numpy()
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        for body in range(1, model.nbody):
            velocity = np.zeros(6)
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0)
            assert np.abs(e.get_body_pos(0)[row, body - 1].numpy() - data.xpos[body]).max() < 1e-5
            q, mine = data.xquat[body], e.get_body_rot(0)[row, body - 1].numpy()
            assert abs(abs(mine @ q[[1, 2, 3, 0]]) - 1) < 1e-5
            assert np.abs(e.get_body_ang_vel(0)[row, body - 1].numpy() - velocity[:3]).max() < 1e-4
            assert np.abs(e.get_body_vel(0)[row, body - 1].numpy() - velocity[3:]).max() < 1e-4
        root = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, 1, root, 0)
        assert np.abs(e.get_root_ang_vel(0)[row].numpy() - root[:3]).max() < 1e-4


def test_a_control_step_is_four_of_a_batchs(file):
    """Position targets, stable PD with the file's gains and limits, and the forces of drives and ground."""
    rng = np.random.default_rng(3)
    e = engine(file, n=2)
    random_state(e, rng)
    own = tarsus.Model.load(file)
    kp, kd, force = np.zeros(own.nv), np.zeros(own.nv), np.full(own.nv, np.inf)
    for joint in list(own.joints)[1:]:
        kp[joint.qvel], kd[joint.qvel] = joint.stiffness, joint.damping
        if joint.force_limited:  # hinges' and slides', as in MuJoCo
            force[joint.qvel] = joint.force_range[1]
    plain = re.sub(r' (stiffness|damping)="[^"]*"', "", file.read_text())  # these are the drives', not the joints'
    plain = plain.replace("<worldbody>", '<worldbody><geom type="plane" size="100 100 .1" friction="1 .05 .05"/>', 1)
    drives = tarsus.Drives(kp, kd)
    drives.force_limit = force
    batch = tarsus.Batch(tarsus.Model.from_xml_string(plain), 2, 1 / 120, dtype="float32", drives=drives, contacts=True, joint_limits=True)
    batch.reset(None, e._qpos.numpy().copy(), e._qvel.numpy().copy())
    saturated = 0
    for _ in range(20):
        command = rng.uniform(-0.5, 0.5, (2, e.get_obj_num_dofs(0))).astype(np.float32)
        e.set_cmd(0, torch.from_numpy(command))
        e.step()
        for joint in list(own.joints)[1:]:
            a = command[:, joint.qvel.start - 6 : joint.qvel.stop - 6]
            if joint.type == "ball":
                angle = np.linalg.norm(a, axis=1, keepdims=True)
                batch.qpos_target[:, joint.qpos] = np.hstack([np.cos(angle / 2), np.sin(angle / 2) * a / angle])
            else:
                batch.qpos_target[:, joint.qpos] = a
        for _ in range(4):
            batch.step()
        assert np.abs(batch.qpos - e._qpos.numpy()).max() < 1e-4
        forces, limits = e.get_dof_forces(0).numpy(), e.get_obj_torque_limits(0, 0)
        assert np.all(np.abs(forces) <= limits * (1 + 1e-5))
        saturated += np.count_nonzero(np.abs(forces) > 0.99 * limits)
    print(f"{saturated} drives at their limit")
    assert saturated > 0 or not np.isfinite(force).any()


@pytest.mark.parametrize("mode", ["pos", "vel"])
def test_forces_of_drives_are_those_of_the_motion(file, mode):
    """A step from rest in the air and within all ranges, where only the drives act: their forces are those of inverse
    dynamics."""
    e, rng = engine(file, mode=mode, height=3.0, control_freq=120), np.random.default_rng(5)
    start = np.zeros(e.get_obj_num_dofs(0))
    for joint in e._model.joints:
        if joint.type == "hinge":
            start[joint.qvel.start - 6] = np.mean(joint.range)
    e.set_dof_pos(None, 0, torch.tensor(np.tile(start, (3, 1)), dtype=torch.float32))
    command = rng.uniform(-0.1, 0.1, (3, len(start))) + (start if mode == "pos" else 0)
    e.set_cmd(0, torch.tensor(command, dtype=torch.float32))
    before = e._qpos.numpy().astype(float)
    e.step()
    forces, data = e.get_dof_forces(0).numpy(), tarsus.Data(e._model)
    for row in range(3):
        needed = tarsus.rnea(e._model, data, before[row], np.zeros(e._model.nv), e._batch.qacc[row].astype(float))[6:]
        assert np.abs(forces[row] - needed).max() < 1e-3 * np.abs(needed).max()


def test_a_standing_character_is_carried_by_the_ground_and_pushed_by_forces():
    e = engine(height=0.9)
    e.set_cmd(0, torch.zeros(3, e.get_obj_num_dofs(0)))
    for _ in range(15):
        e.step()
    ground = e.get_ground_contact_forces(0)
    weight = 9.81 * e.calc_obj_mass(0, 0)
    feet = [e.find_obj_body_id(0, "right_foot"), e.find_obj_body_id(0, "left_foot")]
    assert abs(float(ground[0, feet, 2].sum()) / weight - 1) < 0.5 and float(ground[0, :, 2].sum()) == float(ground[0, feet, 2].sum())
    before = e.get_root_vel(0).clone()
    e.set_body_forces([1], 0, e.find_obj_body_id(0, "torso"), torch.tensor([[600.0, 0, 0]]))
    e.step()
    change = e.get_root_vel(0) - before
    assert change[1, 0] > 0.1 and torch.equal(e.get_root_vel(0)[0], e.get_root_vel(0)[2])
    with pytest.raises(tarsus.ValueError, match="get_ground_contact_forces"):
        e.get_contact_forces(0)
    assert torch.equal(engine(enable_self_collisions=False).get_contact_forces(0), torch.zeros(3, e.get_obj_num_bodies(0), 3))


def test_joints_of_tendons_and_equalities_stay(tmp_path):
    """Springs and dampers of joints become the drives' gains. Elements that only refer to a joint do not."""
    text = BALLS.replace("</body></body></worldbody>", """<body pos="0 .2 .2"><joint name="h" stiffness="7" damping="2"/><geom size=".05"/></body>
        </body></body></worldbody><tendon><fixed name="t"><joint joint="h" coef="1"/></fixed></tendon>
        <equality><joint name="e" joint1="h"/></equality>""").replace('name="neck"', 'name="neck" class="c"').replace(
        "<worldbody>", '<default><default class="c"><joint stiffness="3"/></default></default><worldbody>')
    (tmp_path / "tendon.xml").write_text(text)
    e = engine(tmp_path / "tendon.xml")
    kp, kd = e.get_obj_pd_gains(0, 0)
    assert kp.tolist() == [50, 50, 50, 7] and kd.tolist() == [5, 5, 5, 2]
    assert all(joint.stiffness == joint.damping == 0 for joint in e._model.joints) and len(tarsus.Equalities(e._model)) == 1


def test_a_bad_world_comes_back_with_its_next_state():
    e = engine()
    e.set_root_vel([1], 0, torch.full((1, 3), float("nan")))
    e.step()
    assert e.bad_worlds == 1
    e.set_root_vel([1], 0, torch.zeros(1, 3))
    e.step()
    assert e.bad_worlds == 0 and bool(torch.isfinite(e.get_root_pos(0)).all())


def test_what_it_does_not_do_is_named():
    from tarsus.gym import mimickit

    with pytest.raises(tarsus.ValueError, match="stable PD within the step"):
        mimickit.Engine({"control_mode": "pd_explicit"}, 1)
    with pytest.raises(tarsus.ValueError, match="multiple of control_freq"):
        mimickit.Engine({"sim_freq": 100, "control_freq": 30}, 1)
    with pytest.raises(tarsus.ValueError, match="cpu"):
        mimickit.Engine({}, 1, "cuda:0")
    e = mimickit.Engine({}, 1)
    e.create_env()
    with pytest.raises(tarsus.ValueError, match="free root"):
        e.create_obj(0, 1, str(FILE), "ghost", is_visual=True)
    e.create_obj(0, 1, str(FILE), "character")
    with pytest.raises(tarsus.ValueError, match="same single character"):
        e.create_obj(0, 1, str(FILE), "another")
