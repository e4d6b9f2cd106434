// Stepping: a failed world freezes and reports why, its neighbours continue; results do not depend on how worlds are
// divided into batches.
#include "tarsus/sim/step.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

#include "support/chain_model.hpp"
#include "support/random_model.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/batch.hpp"
#include "tarsus/sim/sensor.hpp"
#include "tarsus/sim/track.hpp"

namespace tarsus::test {
namespace {

std::vector<State> random_states(const Model& model, int worlds, unsigned seed) {
  Random random(seed);
  std::vector<State> states;
  for (int i = 0; i < worlds; ++i) states.push_back(random_state(random, model));
  return states;
}

void start(const Model& model, Data& data, const std::vector<State>& states) {
  for (int world = 0; world < data.worlds(); ++world) {
    data.set(data.qpos, model.nq, world, states[world].qpos);
    data.set(data.qvel, model.nv, world, states[world].qvel);
    data.set(data.tau, model.nv, world, states[world].tau);
  }
}

/// The arrays of such a model are empty. The address sanitizer and the assertions of libstdc++ check their accesses.
TEST(Step, AModelThatCannotMoveIsStepped) {
  const char* plane =
      "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body mocap='true'><geom "
      "size='.1'/></body></worldbody></mujoco>";
  for (const char* text : {"<mujoco/>", plane}) {
    const Model model = compile(parse_mjcf(text, "still", {}));
    for (int k = 0; k < 16; ++k) {
      BatchOptions options;
      options.step.integrator = k & 8 ? Integrator::rk4 : Integrator::semi_implicit_euler;
      options.step.rows.contacts = (k & 9) == 1;
      options.step.velocity_products = k & 2 ? VelocityProductMode::on : VelocityProductMode::off;
      if (k & 4) options.drives = Drives::uniform(model);
      Batch<double> batch(model, 9, options);
      EXPECT_EQ(batch.step(), 0) << text << ' ' << k;
      EXPECT_EQ(batch.steps(8), 1) << text << ' ' << k;
      std::vector<double> J, com(9 * 6);
      batch.measure({.com = com});
      batch.jacobian(0, {}, J);
      EXPECT_EQ(com[3], 0) << text << ' ' << k;
    }
  }
}

TEST(Step, BatchEqualsLoopToTheBit) {
  for (const Integrator integrator : {Integrator::semi_implicit_euler, Integrator::rk4}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const Model model = random_tree(seed, {.bodies = 6});
      if (model.nv == 0) continue;
      const int worlds = 1 + int(seed % 9);
      const std::vector<State> states = random_states(model, worlds, seed);
      const Drives drives = Drives::uniform(model, 100, 10, 100, 10);
      const StepOptions options{.dt = 1e-3, .integrator = integrator};
      Data batch(model, worlds);
      start(model, batch, states);
      Stepper<double> stepper(model, batch, options);
      AlignedVector<double> target(batch.size(model.nq));
      for (int world = 0; world < worlds; ++world) batch.set(target, model.nq, world, model.qpos0);
      for (int i = 0; i < 20; ++i) stepper.step(batch, drives, target);
      for (int world = 0; world < worlds; ++world) {
        Data alone(model);
        start(model, alone, {states[world]});
        Stepper<double> one(model, alone, options);
        for (int i = 0; i < 20; ++i) one.step(alone, drives, model.qpos0);
        std::vector<double> qpos(model.nq), qvel(model.nv);
        batch.get(batch.qpos, model.nq, world, qpos), batch.get(batch.qvel, model.nv, world, qvel);
        ASSERT_EQ(qpos, std::vector<double>(alone.qpos.begin(), alone.qpos.end()))
            << "seed " << seed << " world " << world;
        ASSERT_EQ(qvel, std::vector<double>(alone.qvel.begin(), alone.qvel.end()))
            << "seed " << seed << " world " << world;
        if (worlds == 1) {
          ASSERT_EQ(state_hash(batch), state_hash(alone));
        }
      }
    }
  }
}

TEST(Step, BadWorldFreezesAndNeighboursGoOn) {
  const Model model = random_tree(7, {.bodies = 5});
  ASSERT_GT(model.nv, 0);
  const std::vector<State> states = random_states(model, 5, 7);
  Data data(model, 5), clean(model, 5);
  start(model, data, states), start(model, clean, states);
  const std::vector<double> nan(model.nv, std::nan("")), huge(model.nv, 1e12);
  data.set(data.tau, model.nv, 1, nan);
  data.set(data.qvel, model.nv, 3, huge);
  Stepper<double> stepper(model, data, {.dt = 1e-3}), reference(model, clean, {.dt = 1e-3});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(stepper.step(data), 2);
    EXPECT_EQ(reference.step(clean), 0);
  }
  EXPECT_EQ(stepper.status(1), WorldStatus::bad_input);
  EXPECT_EQ(stepper.status(3), WorldStatus::too_fast);
  std::vector<double> a(model.nq), b(model.nq);
  for (const int world : {0, 2, 4}) {
    data.get(data.qpos, model.nq, world, a), clean.get(clean.qpos, model.nq, world, b);
    EXPECT_EQ(a, b) << world;
  }
  for (const int world : {1, 3}) {  // frozen where they were
    data.get(data.qpos, model.nq, world, a);
    EXPECT_EQ(a, states[world].qpos) << world;
  }
  // With a valid input and after a restart the world moves.
  data.set(data.tau, model.nv, 1, states[1].tau);
  stepper.restart(data, 1);
  EXPECT_EQ(stepper.step(data), 1);
  EXPECT_EQ(stepper.status(1), WorldStatus::ok);
}

TEST(Step, SingularMassMatrixIsAStatus) {
  ModelSpec spec;
  BodySpec body("massless");
  body.parent = 0;
  JointSpec hinge;
  hinge.name = "h";
  body.joints.push_back(hinge);
  spec.bodies.push_back(body);
  const Model model = compile(std::move(spec));
  Data data(model);
  data.tau[0] = 1;
  Stepper<double> stepper(model, data, {});
  EXPECT_EQ(stepper.step(data), 1);
  EXPECT_EQ(stepper.status(0), WorldStatus::singular);
  EXPECT_EQ(data.qpos[0], 0);
}

/// A box on a floor and an arm. A limit of the arm's, or a row on it, is not finite where the arm is past 1 rad. The
/// terms are then ignored, and the box would fall through the floor.
TEST(Step, TermsThatAreNotFiniteFreezeTheirWorldOnly) {
  const Model model = compile(parse_mjcf(R"(<mujoco><worldbody><geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="3 0 3"><joint name="arm" axis="0 1 0"/><geom size=".1" pos="1 0 0" contype="0" conaffinity="0"/></body>
    </worldbody></mujoco>)",
                                         "arm", {}));
  const int arm = model.joint_id("arm"), place = model.nq - 1;
  const auto past = [](double q) { return q > 1 ? std::nan("") : q; };
  EqualitySet rows(model);
  rows.add_user("row", {.joints = {arm},
                        .evaluate = [&](auto q, auto, auto phi, auto J, auto) { phi[0] = past(q[place]), J[0] = 1; }});
  for (int mode = 0; mode < 4; ++mode) {
    for (const int worlds : {1, 9}) {
      BatchOptions options{.step = {.dt = 5e-3}};
      options.step.rows.contacts = mode < 2;
      if (mode == 0)
        options.step.rows.user_limits = {{"limit", arm, [&](auto q) {
                                            return UserLimit::Value{past(q[0]) + 1, {1, 0, 0}};
                                          }}};
      else
        options.step.equalities = &rows;
      if (mode == 3) options.step.loops = LoopMode::shake;
      const int bad = worlds / 2;
      Data data(model, worlds);
      Batch<double> batch(model, worlds, options);
      const std::size_t of_arm = batch_index(data.width(), model.nq, place, bad);
      data.qpos[of_arm] = batch.qpos()[std::size_t(bad * model.nq + place)] = 1.5;
      Stepper<double> stepper(model, data, options.step);
      std::vector<double> before(model.nq), after(model.nq);
      data.get(data.qpos, model.nq, bad, before);
      for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(stepper.step(data), 1) << mode << ' ' << worlds;
        ASSERT_EQ(batch.step(), 1) << mode << ' ' << worlds;
      }
      data.get(data.qpos, model.nq, bad, after);
      EXPECT_EQ(after, before) << mode;
      const std::span<const double> in_batch = batch.qpos().subspan(std::size_t(bad * model.nq), before.size());
      EXPECT_TRUE(std::equal(before.begin(), before.end(), in_batch.begin())) << mode;
      for (int world = 0; world < worlds; ++world) {
        const WorldStatus expected = world != bad ? WorldStatus::ok
                                     : mode == 3  ? WorldStatus::open_loop
                                                  : WorldStatus::singular;
        EXPECT_EQ(stepper.status(world), expected) << mode << ' ' << world;
        EXPECT_EQ(batch.status(world), expected) << mode << ' ' << world;
        if (world == bad || mode > 1) continue;
        data.get(data.qpos, model.nq, world, after);
        EXPECT_NEAR(after[2], 0.1, 1e-5) << mode << ' ' << world;
      }
    }
  }
}

/// A Stepper refers to its model.
static_assert(std::is_constructible_v<Stepper<double>, const Model&, const Data&, const StepOptions&>);
static_assert(!std::is_constructible_v<Stepper<double>, Model, const Data&, const StepOptions&>);

TEST(Step, StepsOutOfRangeAreNamed) {
  const Model model = random_tree(1);
  const Data data(model);
  for (const double dt : {0.0, -1.0, std::nan(""), kInfinity}) {
    EXPECT_THROW(Stepper<double>(model, data, {.dt = dt}), ValueError) << dt;
  }
}

TEST(Step, BadDrivesAreNamed) {
  const Model model = random_tree(1);
  const int last = model.nv - 1;
  for (const int worlds : {1, 9}) {
    Data data(model, worlds);
    Stepper<double> stepper(model, data, {});
    const auto throws = [&](const auto& spoil) {
      Drives drives = Drives::uniform(model, 10, 1, 10, 1);
      spoil(drives);
      EXPECT_THROW(stepper.step(data, drives, data.qpos), ValueError);
    };
    for (const double bad : {std::nan(""), -1.0, kInfinity}) {
      throws([&](Drives& d) { d.kp[last] = bad; });
      throws([&](Drives& d) { d.kd[0] = bad; });
      throws([&](Drives& d) { d.spin_damping = bad; });
    }
    throws([&](Drives& d) { d.force_limit.assign(model.nv, -1); });
    throws([&](Drives& d) { d.force_limit.assign(model.nv, std::nan("")); });
    throws([&](Drives& d) { d.force_limit.assign(model.nv, 1), d.force_floor.assign(model.nv, 2); });
    EXPECT_EQ(state_hash(data), state_hash(Data(model, worlds))) << worlds;
    EXPECT_EQ(stepper.step(data, Drives::uniform(model, 10, 1, 10, 1), data.qpos), 0);
  }
}

TEST(Step, AnEmptyTargetIsThePoseAtTheStart) {
  const Model model = random_tree(1);
  const Drives drives = Drives::uniform(model, 100, 10, 100, 10);
  for (const int worlds : {1, 9}) {
    Data empty(model, worlds), given(model, worlds);
    const std::vector<State> states = random_states(model, worlds, 3);
    start(model, empty, states), start(model, given, states);
    Stepper<double> first(model, empty, {}), second(model, given, {});
    for (int i = 0; i < 5; ++i) {
      const AlignedVector<double> pose = given.qpos;
      ASSERT_EQ(first.step(empty, drives, {}), second.step(given, drives, pose));
    }
    EXPECT_EQ(state_hash(empty), state_hash(given)) << worlds;
  }
}

TEST(Step, WorldsThatDoNotExistAreNamed) {
  const Model model = random_tree(1);
  for (const int worlds : {1, 3}) {
    Data data(model, worlds);
    StepOptions options;
    options.rows.joints = true;
    Stepper<double> stepper(model, data, options);
    Drives drives = Drives::uniform(model, 10, 1, 10, 1);
    drives.force_limit.assign(model.nv, 1);
    stepper.step(data, drives, data.qpos);
    std::vector<double> numbers(model.nq), force(3 * model.njoint());
    StepMemory<double> memory;
    for (const int world : {-1, 20}) {
      EXPECT_THROW(stepper.status(world), ValueError);
      EXPECT_THROW(stepper.revive(world), ValueError);
      EXPECT_THROW(stepper.restart(data, world), ValueError);
      EXPECT_THROW(stepper.taker(world), ValueError);
      EXPECT_THROW(stepper.limit_report(world), ValueError);
      EXPECT_THROW(stepper.rows_report(world), ValueError);
      EXPECT_THROW(stepper.tendon_forces(0, world), ValueError);
      EXPECT_THROW(stepper.ground_force(world, force), ValueError);
      EXPECT_THROW(stepper.exchange(data, memory, world), ValueError);
      EXPECT_THROW(step_forces(model, stepper, data, world), ValueError);
      EXPECT_THROW(data.get(data.qpos, model.nq, world, numbers), ValueError);
      EXPECT_THROW(data.set(data.qpos, model.nq, world, numbers), ValueError);
    }
    EXPECT_THROW(stepper.tendon_forces(0), ValueError);  // the model has no tendon
    EXPECT_NO_THROW(stepper.limit_report(worlds - 1));
    EXPECT_EQ(stepper.drive_force().size(), data.qvel.size());
    stepper.step(data);
    EXPECT_TRUE(stepper.drive_force().empty());  // those of the last step, which had no limits
  }
}

TEST(Step, DataThatDoNotFitAreNamed) {
  const Model model = compile(parse_mjcf(R"(<mujoco><worldbody>
    <body><joint name="a" axis="0 1 0"/><geom size=".1" pos="1 0 0"/></body><body mocap="true"/></worldbody>
    <actuator><motor joint="a"/><general joint="a" dyntype="filter" dynprm="0.1"/></actuator></mujoco>)",
                                         "arrays", {}));
  using Array = AlignedVector<double>;
  const std::pair<const char*, Array Data::*> arrays[] = {{"qpos", &Data::qpos},
                                                          {"qvel", &Data::qvel},
                                                          {"tau", &Data::tau},
                                                          {"ctrl", &Data::ctrl},
                                                          {"act", &Data::act},
                                                          {"mocap_pos", &Data::mocap_pos},
                                                          {"mocap_quat", &Data::mocap_quat},
                                                          {"qacc", &Data::qacc},
                                                          {"joint_force", &Data::joint_force},
                                                          {"joint_inertia", &Data::joint_inertia}};
  const auto message = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  for (const int worlds : {1, 9}) {
    for (const auto& [name, array] : arrays) {
      Data data(model, worlds);
      Stepper<double> stepper(model, data, {});
      const std::size_t right = (data.*array).size();
      for (const std::size_t size : {std::size_t(0), right - 1, right + 1}) {
        (data.*array) = Array(size);
        const std::string expected = name + std::string(": has size ") + std::to_string(size);
        EXPECT_EQ(message([&] { stepper.step(data); }).substr(0, expected.size()), expected);
      }
    }
    Data data(model, worlds);
    Stepper<double> stepper(model, data, {});
    const Drives drives = Drives::uniform(model);
    EXPECT_EQ(message([&] { stepper.step(data, drives, data.qpos, std::vector<double>(data.qvel.size() + 1)); }),
              "qvel_target: has size " + std::to_string(data.qvel.size() + 1) + ", expected " +
                  std::to_string(data.qvel.size()));
    for (const int others : {2, 8, 10}) {
      Data other(model, others);
      EXPECT_EQ(message([&] { stepper.step(other); }).substr(0, 15), "worlds of data:") << others;
    }
    const Model chain = random_tree(1);
    Data of_chain(chain, worlds);
    EXPECT_THROW(stepper.step(of_chain), ValueError);
    EXPECT_THROW(Stepper<double>(model, of_chain, {}), ValueError);
    EXPECT_EQ(stepper.step(data), 0);
  }
}

Model chain(const std::string& joint, const std::string& more) { return based_chain(joint, more, "1"); }

/// Models that lanes_refusal() names give the same bits as worlds stepped individually.
TEST(Step, WorldsThatLanesDoNotTakeStepAsAlone) {
  const std::string tendon = R"(<tendon><spatial name="t" stiffness="60" damping="2" range=".1 .35" limited="true">
    <site site="s"/><site site="e"/></spatial></tendon>)";
  const std::string loop = R"(<equality><connect body1="end" body2="base" anchor=".1 0 .05"/></equality>)";
  struct Case {
    const char* name;
    Model model;
    StepOptions options;
    double limit;  ///< of drives' forces; 0: the model's own actuators act
  };
  StepOptions plain, contacts, rk4;
  plain.dt = contacts.dt = 1.0 / 60, rk4.dt = 1.0 / 240;
  contacts.rows.contacts = contacts.rows.joints = true, rk4.integrator = Integrator::rk4;
  const double free = kInfinity;
  const Case cases[] = {
      {"path in rk4", chain("", tendon), rk4, 0},
      {"path, and limits of a root", chain("", tendon), plain, 20},
      {"damper", chain("", "<actuator><damper joint='a' kv='3' ctrlrange='0 1'/></actuator>"), plain, 0},
      {"loop, and limits of a root", chain("", loop), plain, 20},
      {"limits of a root on the floor", chain("", ""), contacts, 20},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const int worlds = 5;
    Drives drives = Drives::uniform(c.model, 40, 4, 10, 5);
    if (c.limit < free) drives.force_limit.assign(c.model.nv, c.limit);
    std::vector<State> states = random_states(c.model, worlds, 3);
    for (State& state : states) {
      std::copy_n(c.model.qpos0.begin(), 7, state.qpos.begin());
      state.qpos[2] = 0.15;
      for (double& v : state.qvel) v *= 4;
      state.tau.assign(state.tau.size(), 0);
    }
    Data many(c.model, worlds);
    start(c.model, many, states);
    AlignedVector<double> targets(many.size(c.model.nq)), force(3 * c.model.njoint()), lane_force(force.size());
    for (int world = 0; world < worlds; ++world) many.set(targets, c.model.nq, world, c.model.qpos0);
    std::fill(many.ctrl.begin(), many.ctrl.end(), 0.5);
    Stepper<double> together(c.model, many, c.options);
    const auto step = [&](Stepper<double>& stepper, Data& data, In<double> target) {
      return c.limit == 0 ? stepper.step(data) : stepper.step(data, drives, target);
    };
    for (int i = 0; i < 20; ++i) ASSERT_EQ(step(together, many, targets), 0) << i;
    for (int world = 0; world < worlds; ++world) {
      Data one(c.model);
      start(c.model, one, {states[world]});
      std::fill(one.ctrl.begin(), one.ctrl.end(), 0.5);
      Stepper<double> alone(c.model, one, c.options);
      for (int i = 0; i < 20; ++i) ASSERT_EQ(step(alone, one, c.model.qpos0), 0);
      const auto equal = [&](const AlignedVector<double>& lanes, const AlignedVector<double>& mine, int n) {
        AlignedVector<double> theirs(n);
        many.get(lanes, n, world, theirs);
        EXPECT_EQ(theirs, mine) << world;
      };
      equal(many.qpos, one.qpos, c.model.nq), equal(many.qvel, one.qvel, c.model.nv);
      equal(many.qacc, one.qacc, c.model.nv), equal(many.act, one.act, c.model.na);
      ASSERT_EQ(together.limit_report(world).has_value(), alone.limit_report(0).has_value());
      if (alone.limit_report(0)) {
        EXPECT_EQ(together.limit_report(world)->saturated, alone.limit_report(0)->saturated);
        equal({together.drive_force().begin(), together.drive_force().end()},
              {alone.drive_force().begin(), alone.drive_force().end()}, c.model.nv);
      }
      if (c.options.rows.any()) {
        ASSERT_TRUE(together.rows_report(world));
        EXPECT_EQ(together.rows_report(world)->touching, alone.rows_report(0)->touching);
        together.ground_force(world, lane_force), alone.ground_force(0, force);
        EXPECT_EQ(lane_force, force);
      }
      const Stepper<double>& taker = together.taker(world);
      ASSERT_EQ(taker.loops() != nullptr, alone.loops() != nullptr);
      if (alone.loops()) {
        ASSERT_NE(&taker, &together);
        EXPECT_EQ(taker.loops()->error(0).position, alone.loops()->error(0).position);
      }
    }
    EXPECT_EQ(many.time, 20 * c.options.dt);
    AlignedVector<double> broken(c.model.nv, std::nan("")), before(c.model.nq), after(c.model.nq);
    many.get(many.qpos, c.model.nq, 1, before);
    many.set(many.tau, c.model.nv, 1, broken);
    EXPECT_EQ(step(together, many, targets), 1);
    EXPECT_EQ(step(together, many, targets), 1);
    EXPECT_EQ(together.status(1), WorldStatus::bad_input);
    EXPECT_EQ(together.status(2), WorldStatus::ok);
    many.get(many.qpos, c.model.nq, 1, after);
    EXPECT_EQ(before, after);
    std::fill(broken.begin(), broken.end(), 0.0);
    many.set(many.tau, c.model.nv, 1, broken);
    together.restart(many, 1);
    EXPECT_EQ(step(together, many, targets), 0);
  }
}

TEST(Track, HoldsAPoseUnderGravity) {
  // Stiff gains and a fixed pose: the error is that which gravity causes against kp.
  const Model model = random_tree(5, {.bodies = 6, .springs = false, .welds = false});
  ASSERT_GT(model.nv, 0);
  TrackOptions options;
  options.dt = 1.0 / 60, options.duration = 2;
  const TrackReport report =
      track<double>(model, hold(model.qpos0), Drives::uniform(model, 1e6, 1e5, 1e6, 1e5), options);
  EXPECT_EQ(report.status, WorldStatus::ok);
  EXPECT_EQ(report.steps, 120);
  EXPECT_LT(report.error_max, 0.01);
  EXPECT_FALSE(report.nan);
}

// A box without gains falls 1.2 m beside a driven arm. It counts only if nothing is driven.
TEST(Track, TheErrorIsThatOfDrivenTrees) {
  const Model model =
      compile(parse_mjcf("<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='0.1' pos='0 0 -1'/></body>"
                         "<body name='box' pos='2 0 3'><freejoint/><geom size='0.1'/></body></worldbody></mujoco>",
                         "arm", "."));
  Drives drives = Drives::none(model);
  TrackOptions options;
  options.dt = 1.0 / 60, options.duration = 0.5;
  const auto run = [&] { return track<double>(model, hold(model.qpos0), drives, options); };
  EXPECT_GT(run().error_max, 1);
  EXPECT_GT(run().error_mean, 0.1);
  drives.kp[0] = 1000, drives.kd[0] = 100;
  EXPECT_LT(run().error_max, 1e-9);
  EXPECT_LT(run().error_mean, 1e-9);
}

TEST(Track, OptionsOutOfRangeAreNamed) {
  const Model model = random_tree(5);
  TrackOptions options;
  options.duration = -1;
  EXPECT_THROW(track<double>(model, hold(model.qpos0), Drives::none(model), options), ValueError);
  options.duration = 1e12;
  EXPECT_THROW(track<double>(model, hold(model.qpos0), Drives::none(model), options), ValueError);
}

}  // namespace
}  // namespace tarsus::test
