// Contacts, ranges, dry friction and drives with force limits in SIMD lanes: each world's step equals that of the
// scalar path.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <random>

#include "support/random_model.hpp"
#include "tarsus/constraint/half_turn.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/sim/batch.hpp"

namespace tarsus {
namespace {

StepOptions options_of(double dt = 1.0 / 60) {
  StepOptions options;
  options.dt = dt, options.rows.contacts = options.rows.joints = true;
  return options;
}

Drives limited(const Model& model, double kp, double limit) {
  Drives drives = Drives::uniform(model, kp, kp / 10, 0, 0);
  if (!(limit < kInfinity)) return drives;
  drives.force_limit.assign(model.nv, limit);
  std::fill_n(drives.force_limit.begin(), 6, kInfinity);
  return drives;
}

/// A random state: the initial pose, turned, lowered until something meets the ground, with random velocities.
void random_state(const Model& model, std::mt19937& random, double size, std::span<double> qpos,
                  std::span<double> qvel) {
  std::normal_distribution<double> normal;
  std::copy(model.qpos0.begin(), model.qpos0.end(), qpos.begin());
  std::vector<double> turn(model.nv);
  for (double& x : turn) x = size * normal(random);
  turn[0] = turn[1] = 0, turn[2] = 0.05 * normal(random);
  Data data(model);
  AlignedVector<double> out(model.nq);
  integrate<double>(model, data, qpos, turn, 1.0, out);
  std::copy(out.begin(), out.end(), qpos.begin());
  for (double& x : qvel) x = size / 0.3 * normal(random);
}

struct Case {
  const char* path;
  double kp, limit, turn;          ///< turn: of the joints about the file's pose [rad]
  double dt = 1.0 / 60, down = 0;  ///< what the root is lowered by, for what short steps do not reach [m]
};
class LaneStep : public testing::TestWithParam<Case> {};

/// Both paths solve the same problem to 1e-6 m/s and differ within that tolerance. Redundant contacts leave forces
/// undetermined, not velocities.
TEST_P(LaneStep, IsThatOfAWorldAlone) {
  ReadOptions lenient;
  lenient.lenient = true;  // some robots' meshes are missing here; only pictures need them
  const Model model = compile(read_mjcf(std::string(TARSUS_SOURCE_DIR "/") + GetParam().path, lenient));
  const Drives drives = limited(model, GetParam().kp, GetParam().limit);
  const bool hulls = !model.spec.meshes.empty();  // the last bit of a pose decides which points a face has
  const int worlds = hulls ? 8 : 24;
  const StepOptions options = options_of(GetParam().dt);
  Batch<double> batch(model, worlds, {.step = options, .drives = drives});
  ASSERT_GT(batch.pack_width(), 1);
  std::mt19937 random(5);
  std::vector<Data> alone;
  for (int world = 0; world < worlds; ++world) {
    alone.emplace_back(model);
    random_state(model, random, GetParam().turn, alone.back().qpos, alone.back().qvel);
    alone.back().qpos[2] -= GetParam().down;
    std::copy(alone.back().qpos.begin(), alone.back().qpos.end(), batch.qpos().begin() + world * model.nq);
    std::copy(alone.back().qvel.begin(), alone.back().qvel.end(), batch.qvel().begin() + world * model.nv);
    std::copy(model.qpos0.begin(), model.qpos0.end(), batch.qpos_target().begin() + world * model.nq);
  }
  ASSERT_EQ(batch.step(), 0);
  const AlignedVector<double> target(model.qpos0.begin(), model.qpos0.end());
  int touching = 0, saturated = 0, compared = 0, missed = 0, missed_alone = 0;
  for (int world = 0; world < worlds; ++world) {
    Stepper<double> stepper(model, alone[world], options);
    ASSERT_EQ(stepper.step(alone[world], drives, target), 0);
    const RowsReport& one = stepper.rows()->report();
    const WorldReport& lane = batch.reports()[world];
    EXPECT_NEAR(lane.contacts, one.contacts, hulls ? 5 : 0) << world;
    if (lane.contacts != one.contacts) continue;
    EXPECT_EQ(lane.limits, one.limits) << world;
    EXPECT_NEAR(lane.penetration, one.penetration, 1e-12) << world;
    touching += lane.touching, saturated += lane.saturated;
    missed += lane.unsolved, missed_alone += one.status != StepStatus::converged;
    EXPECT_TRUE(lane.unsolved || lane.residual <= 1e-6) << world;
    if (lane.unsolved || one.status != StepStatus::converged) continue;
    double largest = 0;
    for (int k = 0; k < model.nv; ++k)
      largest = std::max(largest, std::abs(batch.qvel()[world * model.nv + k] - alone[world].qvel[k]));
    EXPECT_LE(largest, 2e-4) << world;  // for speeds of 1 to 50 rad/s
    ++compared;
  }
  EXPECT_GE(compared, worlds * (hulls ? 3 : 9) / 10);
  EXPECT_LE(missed, missed_alone + 2);
  EXPECT_GT(touching, worlds / 2);
  EXPECT_EQ(saturated > 0, GetParam().limit < kInfinity);
}

INSTANTIATE_TEST_SUITE_P(
    Models, LaneStep,
    testing::Values(Case{"models/humanoid.xml", 300, kInfinity, 0.3}, Case{"models/humanoid.xml", 300, 60, 0.3},
                    Case{"models/humanoid.xml", 1e4, 100, 0.3}, Case{"models/dog.xml", 300, kInfinity, 0.3},
                    Case{"models/dog.xml", 1e3, 50, 0.3},
                    Case{"../shared/data/menagerie/google_barkour_vb/scene.xml", 100, 0.5, 0.03},
                    Case{"../shared/data/menagerie/google_barkour_vb/scene.xml", 100, 0.5, 0.03, 0.002},
                    Case{"../shared/data/menagerie/unitree_go2/scene.xml", 100, 0.5, 0.1},
                    Case{"../shared/data/menagerie/unitree_go2/scene.xml", 100, 0.5, 0.1, 0.005, 0.03},
                    Case{"../shared/data/menagerie/boston_dynamics_spot/scene.xml", 100, 0.5, 0.1, 0.001, 0.1},
                    Case{"../shared/data/menagerie/unitree_g1/scene.xml", 300, 2, 0.03}));

/// Worlds in a batch, and the same worlds stepped individually, without drives.
struct Twice {
  StepOptions options;
  Batch<double> batch;
  std::vector<Data> alone;
  Twice(const Model& model, int worlds, const StepOptions& step = options_of())
      : options(step),
        batch(model, worlds, {.step = step, .drives = Drives::none(model)}),
        alone(std::size_t(worlds), Data(model)) {}
  /// `steps` steps from the states in `alone`. After each step it calls f(step, world, report of the world stepped
  /// individually).
  template <class F>
  void run(int steps, const F& f) {
    const Model& model = batch.model();
    ASSERT_GT(batch.pack_width(), 1);
    std::vector<std::unique_ptr<Stepper<double>>> steppers;
    for (const Data& data : alone) {
      const std::size_t world = steppers.size();
      std::copy(data.qpos.begin(), data.qpos.end(), &batch.qpos()[world * std::size_t(model.nq)]);
      std::copy(data.qvel.begin(), data.qvel.end(), &batch.qvel()[world * std::size_t(model.nv)]);
      steppers.push_back(std::make_unique<Stepper<double>>(model, data, options));
    }
    for (int step = 0; step < steps; ++step) {
      ASSERT_EQ(batch.step(), 0);
      for (std::size_t world = 0; world < alone.size(); ++world) {
        ASSERT_EQ(steppers[world]->step(alone[world]), 0);
        f(step, int(world), steppers[world]->rows()->report());
      }
    }
  }
};

/// Bodies fall together with tiny gaps between them, and the lowest is about to land. The other pairs have their
/// contacts before they approach each other.
TEST(LaneSteps, WhatFallsTogetherIsStoppedOneByOne) {
  const int n = 4, worlds = 16;
  std::string bodies;
  for (int i = 0; i < n; ++i) {
    const std::string shape = i % 2 ? "type='box' size='.1 .1 .1'" : "type='capsule' size='.1 .1' euler='90 0 0'";
    bodies += "<body pos='0 0 " + std::to_string(0.1 + 0.21 * i) + "'><freejoint/><geom " + shape + "/></body>";
  }
  const Model model = compile(
      parse_mjcf("<mujoco><worldbody><geom type='plane' size='0 0 1'/>" + bodies + "</worldbody></mujoco>", "t", "."));
  Twice twice(model, worlds);
  for (int world = 0; world < worlds; ++world) {
    for (int i = 0; i < n; ++i) twice.alone[std::size_t(world)].qvel[6 * i + 2] = -0.2 * (world % 8);
  }
  twice.run(40, [&](int step, int world, const RowsReport& alone) {
    const WorldReport& lane = twice.batch.reports()[std::size_t(world)];
    EXPECT_LT(lane.penetration, 5e-3) << step << ": " << world;
    EXPECT_NEAR(lane.penetration, alone.penetration, 1e-4) << step;
    if (step == 0) {
      EXPECT_EQ(lane.contacts, alone.contacts) << world;
    }
  });
}

/// Over the seams of a floor of flush boxes, without friction, in lanes as alone. The corner between two boxes stood
/// for a plane: boxes and cylinders ended at 0.03 to 0.45 m/s of 2, balls at 1.2 at 60 Hz.
TEST(LaneSteps, WhatSlidesOverSeamsKeepsItsSpeed) {
  std::string floor;
  for (int i = -1; i < 10; ++i)
    floor += "<geom type='box' size='.25 1 .1' pos='" + std::to_string(0.5 * i) + " 0 -.1' friction='0'/>";
  for (const std::string shape : {"sphere' size='.1", "box' size='.1 .1 .1", "cylinder' size='.1 .1",
                                  "capsule' size='.1 .15' euler='90 0 0", "ellipsoid' size='.15 .12 .1"}) {
    const Model model =
        compile(parse_mjcf("<mujoco><worldbody>" + floor + "<body pos='0 .03 .1'><freejoint/><geom type='" + shape +
                               "' friction='0' mass='1'/></body></worldbody></mujoco>",
                           "t", "."));
    for (const double rate : {60.0, 500.0}) {
      Twice twice(model, 16, options_of(1 / rate));
      for (int world = 0; world < 16; ++world) twice.alone[std::size_t(world)].qvel[0] = 0.5 + 0.13 * world;
      twice.run(int(1.5 * rate), [&](int step, int world, const RowsReport&) {
        const Data& alone = twice.alone[std::size_t(world)];
        const double speed = 0.5 + 0.13 * world;  // round shapes lie 0.04 mm deep on edges 2 degrees steep
        ASSERT_NEAR(alone.qvel[0], speed, 0.01) << shape << ", " << rate << " Hz, " << step;
        ASSERT_NEAR(twice.batch.qvel()[std::size_t(world * model.nv)], speed, 0.01) << shape;
        ASSERT_LT(alone.qpos[2], 0.101) << shape << ", " << rate << " Hz, " << step;
      });
    }
  }
}

/// A wall of 2 cm stops bodies at up to 400 m/s, seven metres a step, wherever the step before the impact ends. SPOOK
/// alone keeps a seventeenth of the speed, and 50 m/s move a body by 5 cm in the step that meets the wall.
TEST(LaneSteps, WhatIsFastDoesNotPassThroughWalls) {
  const std::array speeds{20.0, 50.0, 100.0, 400.0};
  for (const char* const shape : {"sphere' size='.05", "box' size='.05 .05 .05", "capsule' size='.03 .05"}) {
    const Model model = compile(parse_mjcf(
        std::string("<mujoco><option gravity='0 0 0'/><worldbody><geom type='box' size='.01 1 1' pos='.01 0 0'/>"
                    "<body><freejoint/><geom type='") +
            shape + "'/></body></worldbody></mujoco>",
        "t", "."));
    const int worlds = 32;
    Twice twice(model, worlds);
    for (int world = 0; world < worlds; ++world) {
      Data& data = twice.alone[std::size_t(world)];
      data.qpos[0] = -3 + 0.1 * (world / 4), data.qpos[1] = 0.1, data.qpos[2] = 0.07;
      data.qvel[0] = speeds[std::size_t(world % 4)];
    }
    twice.run(30, [&](int step, int world, const RowsReport&) {
      const double alone = twice.alone[std::size_t(world)].qpos[0];
      EXPECT_NEAR(alone, twice.batch.qpos()[std::size_t(world * model.nq)], 1e-6) << step << ": " << world;
      EXPECT_LT(alone, step < 29 ? -0.005 : -0.029) << shape << ": " << speeds[std::size_t(world % 4)] << " m/s";
    });
  }
}

/// Limp humanoids that are dropped. The floor's impulse may carry a hinge past the end of its range within the step
/// although nothing else brought it near. No step may end beyond the range, in lanes or individually.
TEST(LaneSteps, NoHingeIsThrownPastItsRange) {
  const Model model = compile(read_model(std::string(TARSUS_SOURCE_DIR "/models/humanoid.xml"), {}));
  const StepOptions options = options_of();
  const int worlds = 24, steps = 90;
  Batch<double> batch(model, worlds, {.step = options, .drives = Drives::none(model)});
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (int world = 0; world < worlds; ++world) {
    batch.qpos()[std::size_t(world * model.nq + 2)] += 0.3;
    for (int k = 0; k < model.nv; ++k) batch.qvel()[std::size_t(world * model.nv + k)] = normal(random);
  }
  // How far a step takes a hinge beyond its range that was within it. A limit's compliance allows about a degree.
  const auto passed = [&](std::span<const double> qpos, std::span<const double> qvel) {
    double most = 0;
    for (const Joint& joint : model.joints) {
      if (!joint.limited || joint.nv() != 1) continue;
      const double q = qpos[joint.qpos], next = q + options.dt * qvel[joint.qvel];
      if (q > joint.lower() && q < joint.upper()) most = std::max({most, joint.lower() - next, next - joint.upper()});
    }
    return most;
  };
  int held = 0;
  for (int step = 0; step < steps; ++step) {
    const AlignedVector<double> before(batch.qpos().begin(), batch.qpos().end());
    ASSERT_EQ(batch.step(), 0);
    for (int world = 0; world < worlds; ++world) {
      const std::span<const double> start(&before[std::size_t(world * model.nq)], std::size_t(model.nq));
      EXPECT_LE(passed(start, batch.qvel().subspan(std::size_t(world * model.nv), std::size_t(model.nv))), 0.02);
      held += batch.reports()[world].limits;
    }
  }
  EXPECT_GT(held, 1000);
  for (int fall = 0; fall < 12; ++fall) {
    Data data(model);
    Stepper<double> stepper(model, data, options);
    data.qpos[2] += 0.3;
    for (double& v : data.qvel) v = normal(random);
    for (int step = 0; step < steps; ++step) {
      const AlignedVector<double> start = data.qpos;
      ASSERT_EQ(stepper.step(data), 0);
      EXPECT_LE(passed(start, data.qvel), 0.02) << fall << " " << step;
    }
  }
}

/// If `ends_before` says that a rotation is far from the end of its range, its angle is more than `way` from the end.
/// Few rotations farther away are not recognised as far.
TEST(LaneSteps, ATurnFarFromTheEndOfItsRangeIsToldByItsQuaternion) {
  constexpr double kPi = std::numbers::pi;
  test::Random random(8);
  int far = 0;
  for (int i = 0; i < 200000; ++i) {
    const double end = random.uniform(0, 3.5), way = random.uniform(0, 1), angle = random.uniform(0, kPi);
    const HalfTurn half(end);
    const bool is_far = ends_before(std::cos(angle / 2), way, half.cosine, half.sine);
    const bool is_far_in_float =
        ends_before(float(std::cos(angle / 2)), float(way), float(half.cosine), float(half.sine));
    const double room = std::min(end, kPi) - way - angle;
    ASSERT_LE(std::max(is_far, is_far_in_float), room > 0) << end << ' ' << way << ' ' << angle;
    ASSERT_GE(is_far,
              std::cos(angle / 2) > std::cos((std::min(end, kPi) - way) / 2) + way * way / 8 + 1e-14 && room > 0);
    far += is_far;
  }
  EXPECT_GT(far, 40000);
}

/// Balls at and near the range's centre, which turn outwards, sideways or through the centre at up to 170 rad/s. At the
/// centre no axis of the current rotation says where a turn will end. The bound of 0.65 rad allows for the curvature of
/// turns of radians in a step.
TEST(LaneSteps, NoBallTurnsThroughItsRange) {
  const Model model = compile(parse_mjcf(
      "<mujoco><compiler angle='radian'/><option gravity='0 0 0'/><worldbody><body><joint type='ball' range='0 .5'/>"
      "<geom type='box' size='.1 .2 .3' mass='1' contype='0' conaffinity='0'/></body></worldbody></mujoco>",
      "ball.xml", "."));
  const auto angle = [](std::span<const double> q) { return norm(log_map({q[0], q[1], q[2], q[3]})); };
  std::vector<std::array<Vec3d, 2>> starts;  // rotation vector, velocity
  for (const Vec3d& turn : {Vec3d{0, 0, 0}, {.05, 0, 0}, {.2, 0, 0}, {0, .05, 0}, {0, -.05, 0}, {0, -.4, .1}}) {
    for (const double rate : {20.0, 60.0, 120.0, 170.0}) starts.push_back({turn, {0, rate, 0}});
  }
  const int worlds = int(starts.size());
  Twice twice(model, worlds);
  for (int world = 0; world < worlds; ++world) {
    const auto& [turn, rate] = starts[std::size_t(world)];
    const Quatd q = exp_map(turn);
    Data& data = twice.alone[std::size_t(world)];
    data.qpos = {q.w, q.x, q.y, q.z}, data.qvel = {rate.x, rate.y, rate.z};
  }
  twice.run(10, [&](int step, int world, const RowsReport&) {
    EXPECT_LE(angle(twice.batch.qpos().subspan(std::size_t(4 * world), 4)), 0.65) << world << " " << step;
    EXPECT_LE(angle(twice.alone[std::size_t(world)].qpos), 0.65) << world << " " << step;
  });
}

/// A rotation that would exceed half a turn counts as beyond the range, not as within it on the other side.
TEST(LaneSteps, BallsAreHeldWhereTheyWouldTurnPastHalfATurn) {
  const Model model = compile(parse_mjcf(
      "<mujoco><compiler angle='radian'/><option gravity='0 0 0'/><worldbody><body><joint type='ball' range='0 2.8'/>"
      "<geom size='.1' mass='1' contype='0' conaffinity='0'/></body></worldbody></mujoco>",
      "ball.xml", "."));
  const auto angle = [](std::span<const double> q) { return norm(log_map({q[0], q[1], q[2], q[3]})); };
  std::vector<std::array<Vec3d, 2>> starts;  // rotation vector, velocity
  for (const double at : {2.5, 2.7, 2.79, 2.7999}) {
    for (const double rate : {10.0, 25.0, 40.0, 60.0}) {
      starts.push_back({Vec3d{0, at, 0}, Vec3d{0, rate, 0}});
      starts.push_back({Vec3d{0, at, 0}, Vec3d{0.5 * rate, rate, -0.2 * rate}});
    }
  }
  const int worlds = int(starts.size());
  Batch<double> batch(model, worlds, {.step = options_of(), .drives = Drives::none(model)});
  for (int world = 0; world < worlds; ++world) {
    const auto& [turn, rate] = starts[std::size_t(world)];
    const Quatd q = exp_map(turn);
    Data data(model);
    const double numbers[4] = {q.w, q.x, q.y, q.z};
    std::copy_n(numbers, 4, data.qpos.begin()), std::copy_n(numbers, 4, &batch.qpos()[std::size_t(4 * world)]);
    for (int k = 0; k < 3; ++k) data.qvel[k] = batch.qvel()[std::size_t(3 * world + k)] = rate[k];
    Stepper<double> stepper(model, data, options_of());
    ASSERT_EQ(stepper.step(data), 0);
    EXPECT_LE(angle(data.qpos), 2.95) << world;
    EXPECT_LE(norm(Vec3d{data.qvel[0], data.qvel[1], data.qvel[2]}), 1.0001 * norm(rate)) << world;
  }
  ASSERT_EQ(batch.step(), 0);
  for (int world = 0; world < worlds; ++world) {
    const std::span<const double> w = batch.qvel().subspan(std::size_t(3 * world), 3);
    EXPECT_LE(angle(batch.qpos().subspan(std::size_t(4 * world), 4)), 2.95) << world;
    EXPECT_LE(norm(Vec3d{w[0], w[1], w[2]}), 1.0001 * norm(starts[std::size_t(world)][1])) << world;
  }
}

/// In a Stepper of packs, as in a batch, the scalar path steps the worlds that the lanes do not solve.
TEST(LaneSteps, AStepperOfPacksLeavesNoWorldUnsolved) {
  const Model model = compile(read_mjcf(TARSUS_SOURCE_DIR "/models/humanoid.xml", {}));
  const int worlds = 64;
  StepOptions options = options_of();
  options.dt = 1.0 / 60;
  Data data(model, worlds);
  Stepper<double> stepper(model, data, options);
  std::mt19937 random(1);
  std::normal_distribution<double> normal(0, 8);
  std::uniform_real_distribution<double> height(0, 0.5);
  std::vector<double> qpos(model.qpos0), qvel(model.nv), force(3 * model.njoint());
  for (int world = 0; world < worlds; ++world) {
    qpos[2] = model.qpos0[2] + height(random);
    for (double& v : qvel) v = normal(random);
    data.set(data.qpos, model.nq, world, qpos), data.set(data.qvel, model.nv, world, qvel);
  }
  int missed = 0;  // the lanes alone leave some forty unsolved
  for (int step = 0; step < 120; ++step) {
    ASSERT_EQ(stepper.step(data), 0);
    for (int world = 0; world < worlds; ++world) {
      const RowsReport& report = *stepper.rows_report(world);
      const bool solved = report.status == StepStatus::converged || report.status == StepStatus::swept;
      missed += !solved;
      EXPECT_TRUE(!solved || report.residual < 1e-5) << step << " " << world;
    }
  }
  EXPECT_EQ(missed, 0);
}

/// Most contacts are between links. There are more of them than there could be with the world.
TEST(LaneSteps, BallsThatMeetEachOtherAlone) {
  std::string balls;
  for (int i = 0; i < 9; ++i) {
    balls += "<body pos='" + std::to_string(0.19 * (i % 3)) + " " + std::to_string(0.19 * (i / 3)) +
             " 0'><freejoint/><geom type='sphere' size='.1'/></body>";
  }
  const Model model = compile(parse_mjcf("<mujoco><worldbody>" + balls + "</worldbody></mujoco>", "balls.xml", "."));
  const int worlds = 32;
  Batch<double> batch(model, worlds, {.step = options_of()});
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<Data> alone;
  for (int world = 0; world < worlds; ++world) {
    Data& data = alone.emplace_back(model);
    for (int i = 0; i < 9; ++i) {
      if (world % 4) data.qpos[7 * i + 2] += i;  // far from one another: solved in few iterations
      for (int k = 0; k < 6; ++k) data.qvel[6 * i + k] = normal(random);
    }
    std::copy(data.qpos.begin(), data.qpos.end(), batch.qpos().begin() + world * model.nq);
    std::copy(data.qvel.begin(), data.qvel.end(), batch.qvel().begin() + world * model.nv);
  }
  ASSERT_EQ(batch.step(), 0);
  for (int world = 0; world < worlds; ++world) {
    Stepper<double> stepper(model, alone[world], options_of());
    ASSERT_EQ(stepper.step(alone[world]), 0);
    EXPECT_EQ(batch.reports()[world].contacts >= 12, world % 4 == 0) << world;
    EXPECT_EQ(stepper.rows()->report().contacts, batch.reports()[world].contacts) << world;
    for (int k = 0; k < model.nv; ++k)
      EXPECT_NEAR(batch.qvel()[world * model.nv + k], alone[world].qvel[k], 1e-5) << world << " " << k;
  }
}

Model spinning_model(const char* bodies, const char* defaults) {
  return compile(parse_mjcf(std::string("<mujoco><option gravity='0 0 -10'/><default><geom ") + defaults +
                                "/></default><worldbody><geom type='plane' size='9 9 1'/>" + bodies +
                                "</worldbody></mujoco>",
                            "spin.xml", "."));
}

/// A ball that spins about the normal decelerates at ρ m g / I with torsional friction of length ρ. One that rolls
/// decelerates at ρ m g / (I + m R²) with rolling friction. I = 2/5 m R².
template <class R>
void expect_slowing(const char* friction, bool rolls) {
  const double h = 0.005, radius = 0.1, length = 0.004, inertia = 0.4 * radius * radius;
  const Model model =
      spinning_model("<body pos='0 0 .1'><freejoint/><geom type='sphere' size='.1' mass='3'/></body>", friction);
  const int worlds = 5, steps = 100;
  Batch<R> batch(model, worlds, {.step = options_of(h)});
  ASSERT_GT(batch.pack_width(), 1);
  for (int k = 0; k < 60; ++k) ASSERT_EQ(batch.step(), 0);  // until it rests on its compliance
  const auto axis = [&](int world) { return world * model.nv + (rolls ? 3 : 5); };
  for (int world = 0; world < worlds; ++world) {
    batch.qvel()[axis(world)] = R(10 + world);
    if (rolls) batch.qvel()[world * model.nv + 1] = R(-(10 + world) * radius);
  }
  const double slower = length * 10 / (inertia + (rolls ? radius * radius : 0)) * h * steps;
  for (int k = 0; k < steps; ++k) ASSERT_EQ(batch.step(), 0);
  for (int world = 0; world < worlds; ++world)
    EXPECT_NEAR(batch.qvel()[axis(world)], 10 + world - slower, 2e-3 * slower) << world;
  for (int k = 0; k < 1000; ++k) ASSERT_EQ(batch.step(), 0);
  for (int world = 0; world < worlds; ++world) EXPECT_NEAR(batch.qvel()[axis(world)], 0, 1e-3) << world;
}
TEST(LaneSpins, ABallThatSpinsAndOneThatRollsSlowDown) {
  expect_slowing<double>("condim='4' friction='1 .004'", false);
#ifndef TARSUS_DOUBLE_ONLY
  expect_slowing<float>("condim='4' friction='1 .004'", false);
#endif
  expect_slowing<double>("condim='6' friction='1 .05 .004'", true);
#ifndef TARSUS_DOUBLE_ONLY
  expect_slowing<float>("condim='6' friction='1 .05 .004'", true);
#endif
}

/// Bodies that slide, spin and roll on the ground and on one another, beside bodies that only slide.
const char* const kSpinners = R"(
    <body pos='0 0 .09'><freejoint/><geom type='sphere' size='.1' condim='6'/></body>
    <body pos='.15 0 .19'><freejoint/><geom type='sphere' size='.1' condim='4'/></body>
    <body pos='.05 .12 .2'><freejoint/><geom type='capsule' size='.07 .1' condim='6'/></body>
    <body pos='-.3 0 .06'><freejoint/><geom type='box' size='.1 .08 .06' condim='4'/>
      <body pos='.1 0 .06'><joint axis='0 1 0'/><geom type='capsule' fromto='0 0 0 .3 0 -.1' size='.03' condim='6'/></body>
    </body>
    <body pos='.5 0 .05'><freejoint/><geom type='box' size='.1 .1 .05' condim='3'/></body>
    <body pos='.45 .03 .2'><freejoint/><geom type='sphere' size='.08' condim='1'/></body>)";
void random_spins(const Model& model, int seed, std::span<double> qpos, std::span<double> qvel) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::copy(model.qpos0.begin(), model.qpos0.end(), qpos.begin());
  for (const Joint& joint : model.joints) {
    if (moves_freely(joint.type))
      qpos[joint.qpos] += 0.02 * normal(random), qpos[joint.qpos + 2] += 0.02 * normal(random);
  }
  for (const Joint& joint : model.joints) {
    if (joint.nv() == 1) qpos[joint.qpos] += 0.2 * normal(random);
  }
  for (double& x : qvel) x = 2 * normal(random);
}

/// Compares `steps` steps of random worlds in lanes with the scalar path. After a step that either leaves unsolved a
/// world is not compared any further.
/// @return the number of compared steps
int expect_steps_alone(const Model& model, double h, int steps, double tolerance) {
  const int worlds = 40;
  Batch<double> batch(model, worlds, {.step = options_of(h)});
  EXPECT_GT(batch.pack_width(), 1);
  std::vector<Data> alone(worlds, Data(model));
  std::vector<std::unique_ptr<Stepper<double>>> steppers;
  std::vector<char> solved(worlds, 1);
  for (int world = 0; world < worlds; ++world) {
    random_spins(model, world, alone[world].qpos, alone[world].qvel);
    std::copy(alone[world].qpos.begin(), alone[world].qpos.end(), batch.qpos().begin() + world * model.nq);
    std::copy(alone[world].qvel.begin(), alone[world].qvel.end(), batch.qvel().begin() + world * model.nv);
    steppers.push_back(std::make_unique<Stepper<double>>(model, alone[world], options_of(h)));
  }
  int compared = 0;
  for (int k = 0; k < steps; ++k) {
    EXPECT_EQ(batch.step(), 0);
    for (int world = 0; world < worlds; ++world) {
      EXPECT_EQ(steppers[world]->step(alone[world]), 0);
      const RowsReport& one = steppers[world]->rows()->report();
      const WorldReport& lane = batch.reports()[world];
      solved[world] = solved[world] && !lane.unsolved && one.status == StepStatus::converged;
      if (!solved[world]) continue;
      ++compared;
      EXPECT_EQ(lane.contacts, one.contacts);
      EXPECT_EQ(lane.limits, one.limits);
      for (int j = 0; j < model.nv; ++j)
        EXPECT_NEAR(batch.qvel()[world * model.nv + j], alone[world].qvel[j], tolerance)
            << h << " " << k << " " << world;
    }
  }
  return compared;
}
const char* const kOwnLaws[] = {"", "solimp='.015 1 .02'", "solref='.03 .8'", "solimp='.5 .97 .01 .3 3'",
                                "solref='-4e4 -300'"};
TEST(LaneSpins, AStepIsThatOfAWorldAlone) {
  for (const char* own : kOwnLaws) {
    const Model model = spinning_model(kSpinners, (std::string("friction='.7 .02 .01' ") + own).c_str());
    for (const double h : {1.0 / 60, 0.002}) EXPECT_GE(expect_steps_alone(model, h, 1, 2e-4), 36) << own << h;
  }
}
/// Where the contact forces are unique, a sequence of steps shows whether the quantities that a step passes on to the
/// next agree: for contacts with the ground and between bodies.
TEST(LaneSpins, StepsAreThoseOfAWorldAlone) {
  for (const char* own : kOwnLaws) {
    const Model model = spinning_model(
        "<body pos='0 0 .09'><freejoint/><geom type='sphere' size='.1' condim='6'/></body>"
        "<body pos='.05 0 .28'><freejoint/><geom type='sphere' size='.1' condim='6'/></body>"
        "<body pos='1 0 .09'><freejoint/><geom type='sphere' size='.1' condim='4'/></body>"
        "<body pos='1 1 .09'><freejoint/><geom type='sphere' size='.1' condim='3'/></body>",
        (std::string("friction='.7 .02 .01' ") + own).c_str());
    for (const double h : {1.0 / 60, 0.002}) EXPECT_GE(expect_steps_alone(model, h, 30, 2e-4), 1000) << own << h;
  }
}

/// A range that only the step's own force reaches holds with few iterations too, or the report says otherwise.
template <class R>
void expect_range_held_at_once() {
  const Model model = spinning_model(
      "<body pos='0 0 .1'><freejoint/><geom type='box' size='.1 .1 .1' mass='1'/><body pos='0 0 .5'>"
      "<joint axis='0 1 0' range='-1.7 1.7' limited='true'/>"
      "<geom type='capsule' fromto='0 0 0 0 0 .3' size='.03' mass='.1' contype='0' conaffinity='0'/></body></body>",
      "friction='1'");
  for (const int most : {1, 2, 3, 100}) {
    StepOptions options = options_of();
    options.rows.solve.max_iterations = most;
    BasicData<R> data(model);
    Stepper<R> stepper(model, data, options);
    data.tau[6] = R(4);
    ASSERT_EQ(stepper.step(data), 0);
    const RowsReport& alone = stepper.rows()->report();
    EXPECT_LT(data.qpos[model.joints[1].qpos], R(0.04)) << most << " " << sizeof(R);
    EXPECT_LE(alone.iterations, most + 1);
    EXPECT_EQ(alone.limits, 1);
    Batch<R> batch(model, 3, {.step = options});
    ASSERT_GT(batch.pack_width(), 1);
    batch.tau()[6] = R(4);
    ASSERT_EQ(batch.step(), 0);
    EXPECT_LT(batch.qpos()[model.joints[1].qpos], R(0.04)) << most << " " << sizeof(R);
    EXPECT_EQ(batch.reports()[0].limits, 1);
  }
}
TEST(LaneSteps, ARangeThatAForceReachesHoldsHoweverFewTheIterations) {
  expect_range_held_at_once<double>();
#ifndef TARSUS_DOUBLE_ONLY
  expect_range_held_at_once<float>();
#endif
}

/// Ranges with their own solref and solimp, beside one with the defaults.
TEST(LaneSteps, RangesWithLawsOfTheirOwn) {
  const std::string link = "<geom type='capsule' fromto='0 0 0 .3 0 0' size='.03' contype='0' conaffinity='0'/>";
  const Model model = spinning_model(
      ("<body pos='0 0 2'><joint axis='0 1 0' range='-5 30' limited='true' solreflimit='.03 .8'/>" + link +
       "<body pos='.3 0 0'><joint axis='0 1 0' range='-8 20' limited='true'/>" + link +
       "<body pos='.3 0 0'><joint type='ball' range='0 15' limited='true' solimplimit='.5 .97 .1 .3 3'/>" + link +
       "</body></body></body>")
          .c_str(),
      "friction='1'");
  for (const double h : {1.0 / 60, 0.002}) {
    EXPECT_GE(expect_steps_alone(model, h, 20, 1e-4), 780) << h;
  }
}

/// The applied torques are half of what torsional and rolling friction can resist, so that nothing turns. Each step
/// starts from the moments of the last.
template <class R>
void expect_no_creep() {
  const Model model = spinning_model("<body pos='0 0 .1'><freejoint/><geom type='sphere' size='.1' mass='3'/></body>",
                                     "condim='6' friction='1 .004 .002'");
  Batch<R> batch(model, 3, {.step = options_of(0.005)});
  ASSERT_GT(batch.pack_width(), 1);
  for (int world = 0; world < 3; ++world) {
    batch.tau()[world * model.nv + 3] = R(0.01 * (world + 1)), batch.tau()[world * model.nv + 5] = R(-0.06);
  }
  for (int k = 0; k < 100; ++k) ASSERT_EQ(batch.step(), 0);
  for (const R speed : batch.qvel()) EXPECT_NEAR(speed, 0, sizeof(R) == 8 ? 1e-8 : 1e-5);
}
TEST(LaneSpins, WhatStaysDoesNotCreep) {
  expect_no_creep<double>();
#ifndef TARSUS_DOUBLE_ONLY
  expect_no_creep<float>();
#endif
}

/// The bits of a world depend neither on its neighbours' motion, nor on their number, nor on their failure.
TEST(LaneSteps, AWorldsBitsDependOnItAlone) {
  const Model model = compile(read_mjcf(TARSUS_SOURCE_DIR "/models/humanoid.xml", {}));
  const Drives drives = limited(model, 300, 100);
  const BatchOptions options{.step = options_of(), .drives = drives};
  const int worlds = 19, steps = 40;
  const auto set = [&](Batch<double>& batch, int world, int seed) {
    std::mt19937 random(seed);
    random_state(model, random, 0.3, batch.qpos().subspan(world * model.nq, model.nq),
                 batch.qvel().subspan(world * model.nv, model.nv));
  };
  Batch<double> many(model, worlds, options), one(model, 1, options);
  for (int world = 0; world < worlds; ++world) set(many, world, world);
  many.qpos_target()[3 * model.nq + 9] = std::nan("");
  for (int k = 0; k < steps; ++k) many.step();
  EXPECT_EQ(many.bad_worlds(), 1);
  for (const int world : {0, 2, 7, 18}) {
    one.reset();
    set(one, 0, world);
    for (int k = 0; k < steps; ++k) one.step();
    EXPECT_EQ(one.state_hash(0), many.state_hash(world)) << world;
  }
}

/// Groups of packs whose last unfinished lanes are solved together, and packs that do not fill a group, against a batch
/// of one world.
template <class R>
void expect_bits_of_groups() {
  const Model model = compile(read_mjcf(TARSUS_SOURCE_DIR "/models/humanoid.xml", {}));
  const BatchOptions options{.step = options_of(), .drives = limited(model, 300, 100)};
  const int worlds = 70, steps = 40;
  const auto set = [&](Batch<R>& batch, int world, int seed) {
    std::mt19937 random(seed);
    std::vector<double> q(model.nq), v(model.nv);
    random_state(model, random, 0.3, q, v);
    std::copy(q.begin(), q.end(), batch.qpos().begin() + world * model.nq);
    std::copy(v.begin(), v.end(), batch.qvel().begin() + world * model.nv);
  };
  Batch<R> many(model, worlds, options), one(model, 1, options);
  for (int world = 0; world < worlds; ++world) set(many, world, world);
  int longest = 0;
  for (int k = 0; k < steps; ++k) {
    ASSERT_EQ(many.step(), 0);
    for (const WorldReport& report : many.reports()) longest = std::max(longest, report.iterations);
  }
  EXPECT_GE(longest, 8) << "no lane was left behind";
  for (int world = 0; world < worlds; world += 3) {
    one.reset();
    set(one, 0, world);
    for (int k = 0; k < steps; ++k) one.step();
    EXPECT_EQ(one.state_hash(0), many.state_hash(world)) << world;
  }
}
TEST(LaneSteps, LanesThatGoOnTogetherHaveTheirOwnBits) {
  expect_bits_of_groups<double>();
#ifndef TARSUS_DOUBLE_ONLY
  expect_bits_of_groups<float>();
#endif
}

/// A body on two legs with various actuators: servos with and without ranges and activations, a joint range, servos of
/// position and velocity on one joint, and motors.
Model actuated_model(const char* more_actuators = "", const char* joint = "") {
  const std::string leg = R"(<body name='NAME' pos='0 Y 0'>
      <joint name='hipNAME' type='hinge' axis='0 1 0' damping='.2' armature='.01'/>
      <geom type='capsule' fromto='0 0 0 0 0 -.4' size='.05' mass='3'/>
      <body pos='0 0 -.4'>
        <joint name='kneeNAME' type='hinge' axis='0 1 0' range='-10 120' limited='true'/>
        <geom type='capsule' fromto='0 0 0 0 0 -.4' size='.04' mass='2'/>
        <body pos='0 0 -.42'>
          <joint name='slideNAME' type='slide' axis='1 0 0' range='-.1 .1' limited='true' JOINT/>
          <geom type='box' size='.1 .05 .02' mass='1'/>
        </body>
      </body>
    </body>)";
  const auto named = [&](const char* name, const char* y) {
    std::string out = leg;
    for (std::size_t i; (i = out.find("NAME")) != std::string::npos;) out.replace(i, 4, name);
    out.replace(out.find("pos='0 Y"), 8, std::string("pos='0 ") + y), out.replace(out.find("JOINT"), 5, joint);
    return out;
  };
  const std::string text =
      R"(<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 .9'><freejoint/>
    <site name='middle'/>
    <geom type='box' size='.1 .2 .1' mass='10'/>)" +
      named("L", "-.15") + named("R", ".15") + R"(</body></worldbody>
    <actuator>
      <position joint='hipL' kp='300' kv='20' forcerange='-40 40'/>
      <position joint='hipR' kp='200' gear='1.5' ctrllimited='true' ctrlrange='-.5 .5'/>
      <velocity joint='hipR' kv='10'/>
      <position joint='kneeL' kp='300' timeconst='.05'/>
      <velocity joint='kneeR' kv='15'/>
      <position joint='slideL' kp='2000' kv='50'/>
      <motor joint='slideR' gear='10' forcelimited='true' forcerange='-4 4'/>)" +
      more_actuators + "</actuator></mujoco>";
  return compile(parse_mjcf(text, "test", "."));
}
void set_controls(const Model& model, int seed, std::span<double> ctrl) {
  std::mt19937 random(100 + seed);
  std::normal_distribution<double> normal(0, 0.6);
  for (int i = 0; i < model.nu; ++i) ctrl[i] = normal(random);
}

/// Servos act as drives in lanes too, each world with its own targets, and the activations advance.
TEST(LaneActuators, AStepIsThatOfAWorldAlone) {
  const Model models[] = {actuated_model(), actuated_model("", "actuatorfrclimited='true' actuatorfrcrange='-50 60'")};
  for (const Model& model : models) {
    for (const bool terms : {true, false}) {
      StepOptions options = options_of(0.01);
      options.rows.contacts = options.rows.joints = terms;
      const int worlds = 17;
      Batch<double> batch(model, worlds, {.step = options});
      ASSERT_EQ(batch.pack_width(), lanes<double>(isa_level()));
      std::mt19937 random(9);
      std::vector<Data> alone;
      for (int world = 0; world < worlds; ++world) {
        Data& data = alone.emplace_back(model);
        random_state(model, random, 0.2, data.qpos, data.qvel);
        set_controls(model, world, data.ctrl);
        data.act[0] = 0.1 * world;
        std::copy(data.qpos.begin(), data.qpos.end(), batch.qpos().begin() + world * model.nq);
        std::copy(data.qvel.begin(), data.qvel.end(), batch.qvel().begin() + world * model.nv);
        std::copy(data.ctrl.begin(), data.ctrl.end(), batch.ctrl().begin() + world * model.nu);
        batch.act()[world] = data.act[0];
      }
      ASSERT_EQ(batch.step(), 0);
      int saturated = 0;
      for (int world = 0; world < worlds; ++world) {
        Stepper<double> stepper(model, alone[world], options);
        ASSERT_EQ(stepper.step(alone[world]), 0);
        saturated += stepper.limit_report(0)->saturated;
        EXPECT_DOUBLE_EQ(batch.act()[world], alone[world].act[0]);
        if (terms && (batch.reports()[world].unsolved || stepper.rows()->report().status != StepStatus::converged))
          continue;
        for (int k = 0; k < model.nv; ++k)
          EXPECT_NEAR(batch.qvel()[world * model.nv + k], alone[world].qvel[k], 2e-4) << world << " " << k;
      }
      EXPECT_GT(saturated, 0);
    }
  }
}

/// In both precisions a batch of one world gives the same bits as that world at any index, beside any other worlds,
/// with any number of threads.
template <class R>
void expect_bits_of_the_world_alone(const Model& model) {
  const int worlds = 19, steps = 60;
  const auto set = [&](Batch<R>& batch, int world, int seed, int step) {
    std::vector<double> ctrl(std::size_t(model.nu));
    set_controls(model, 10 * seed + step / 10, ctrl);
    std::copy(ctrl.begin(), ctrl.end(), batch.ctrl().begin() + world * model.nu);
    if (step == 0) batch.qvel()[world * model.nv + seed % 6] = R(0.1 * seed);
  };
  for (const int threads : {1, 3}) {
    Batch<R> many(model, worlds, {.step = options_of(0.01), .threads = threads}), one(model, 1, many.options());
    for (int k = 0; k < steps; ++k) {
      for (int world = 0; world < worlds; ++world) set(many, world, threads + world, k);
      if (k == 20) many.ctrl()[4 * model.nu] = std::numeric_limits<R>::quiet_NaN();
      many.step();
    }
    EXPECT_EQ(many.bad_worlds(), 1);
    for (const int world : {0, 5, 7, 18}) {
      one.reset();
      for (int k = 0; k < steps; ++k) set(one, 0, threads + world, k), one.step();
      EXPECT_EQ(one.state_hash(0), many.state_hash(world)) << world;
      EXPECT_EQ(one.act()[0], many.act()[world]);
    }
    EXPECT_NE(many.state_hash(0), many.state_hash(1));
  }
}
/// The same for spinning bodies: from identical states at rest, from random states, in batches of other sizes, after
/// save and restore.
template <class R>
void expect_bits_of_spins() {
  const Model model = spinning_model(kSpinners, "friction='.7 .02 .01' solimp='.015 1 .02'");
  const int worlds = 37, steps = 40;
  const auto set = [&](Batch<R>& batch, int world, int seed) {
    std::vector<double> qpos(model.nq), qvel(model.nv);
    random_spins(model, seed, qpos, qvel);
    std::copy(qpos.begin(), qpos.end(), batch.qpos().begin() + world * model.nq);
    std::copy(qvel.begin(), qvel.end(), batch.qvel().begin() + world * model.nv);
  };
  for (const double h : {0.01, 0.002}) {
    Batch<R> many(model, worlds, {.step = options_of(h), .threads = 3}), few(model, 3, {.step = options_of(h)});
    ASSERT_GT(many.pack_width(), 1);
    for (int world = 0; world < worlds; ++world) set(many, world, world);
    for (int k = 0; k < steps; ++k) {
      if (k == steps / 2) {
        const BatchState<R> saved = many.save();
        many.step(), many.restore(saved);
        many.qvel()[20 * model.nv] = std::numeric_limits<R>::quiet_NaN();
      }
      many.step();
    }
    EXPECT_EQ(many.bad_worlds(), 1);
    for (const int world : {0, 5, 17, 36}) {
      few.reset();
      for (int i = 0; i < 3; ++i) set(few, i, world + (i - 2) * 7 + (i < 2 ? 100 : 0));
      for (int k = 0; k < steps; ++k) few.step();
      EXPECT_EQ(few.state_hash(2), many.state_hash(world)) << world;
    }
  }
}
TEST(LaneSpins, AWorldsBitsDependOnItAlone) {
  expect_bits_of_spins<double>();
#ifndef TARSUS_DOUBLE_ONLY
  expect_bits_of_spins<float>();
#endif
}

TEST(LaneActuators, AWorldsBitsDependOnItAlone) {
  const Model model = actuated_model();
  expect_bits_of_the_world_alone<double>(model);
#ifndef TARSUS_DOUBLE_ONLY
  expect_bits_of_the_world_alone<float>(model);
#endif
}

/// The reason why lanes cannot step a model is reported, and its worlds are stepped individually.
TEST(LaneSteps, WhatTheyCannotStepIsNamed) {
  const auto model = [](const char* geom, const char* joint) {
    return compile(parse_mjcf(std::string("<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 1'>") +
                                  joint + geom + "</body></worldbody></mujoco>",
                              "test", "."));
  };
  const char* ball = "<geom type='sphere' size='.1' mass='1'/>";
  const Model plain = model(ball, "<freejoint/>");
  const Model rubs = compile(parse_mjcf(
      "<mujoco><worldbody><geom name='floor' type='plane' size='1 1 1'/><body pos='0 0 1'><freejoint/><geom "
      "name='ball' "
      "type='sphere' size='.1' mass='1'/></body></worldbody><contact><pair geom1='floor' geom2='ball' condim='3' "
      "friction='1 .5'/></contact></mujoco>",
      "test", "."));
  const Drives none = Drives::none(plain);
  EXPECT_EQ(lanes_refusal<double>(plain, options_of(), &none), "");
  EXPECT_NE(lanes_refusal<double>(rubs, options_of(), &none).find("direction"), std::string::npos);
  EXPECT_EQ(pack_width<double>(rubs, options_of(), &none), 1);
  Drives root = Drives::uniform(plain, 100, 10, 100, 10);
  root.force_limit.assign(plain.nv, 5.0);
  EXPECT_NE(lanes_refusal<double>(plain, options_of(), &root).find("free joint"), std::string::npos);
  const auto refusal = [](const Model& model) { return lanes_refusal<double>(model, options_of(), nullptr); };
  EXPECT_EQ(refusal(actuated_model()), "");
  EXPECT_NE(refusal(actuated_model("<damper joint='kneeL' kv='3' ctrlrange='0 1'/>")).find("damping"),
            std::string::npos);
  const char* range = "actuatorfrclimited='true' actuatorfrcrange='-50 60'";
  EXPECT_NE(refusal(actuated_model("<motor joint='slideL'/>", range)).find("actuatorfrcrange"), std::string::npos);
  EXPECT_EQ(refusal(actuated_model("<motor site='middle' gear='0 0 1 0 0 0'/>")), "");
  EXPECT_EQ(refusal(actuated_model("<velocity joint='hipL' kv='10'/>")), "");
  const char* touch = "</actuator><sensor><touch site='middle'/></sensor><actuator>";
  EXPECT_EQ(refusal(actuated_model(touch)), "");
}

}  // namespace
}  // namespace tarsus
