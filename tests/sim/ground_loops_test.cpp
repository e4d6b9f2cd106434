// Closed loops and contacts in one step: statics in closed form, loops that stay closed on the ground, force limits.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "support/numbers.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/urdf.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {
namespace {

using test::kGravity;

/// A stepladder: two legs of `mass`, hinged at the top, stand on spheres, each at the horizontal distance `half` from
/// the middle. The hinge is `height` above the spheres' centres.
struct Ladder {
  static constexpr double mass = 3, half = 0.5, height = 1.2, radius = 0.02;

  static GeomSpec foot(double x, double friction) {
    GeomSpec g;
    g.type = GeomType::sphere, g.size = {radius, 0, 0}, g.friction = {friction, 0, 0}, g.position = {x, 0, -height};
    return g;
  }
  static BodySpec leg(const std::string& name, int parent, double x, double friction) {
    BodySpec body(name);
    body.parent = parent;
    body.inertial = InertialSpec{mass, {0.5 * x, 0, -0.5 * height}, {0.3, 0, 0, 0.3, 0, 0.05}, {}};
    body.geoms = {foot(x, friction)};
    return body;
  }
  static Model model(double friction) {
    ModelSpec spec;
    spec.option.gravity = {0, 0, -kGravity};
    GeomSpec floor;
    floor.type = GeomType::plane, floor.friction = {0, 0, 0};
    spec.bodies[0].geoms.push_back(floor);
    BodySpec left = leg("left", 0, -half, friction), right = leg("right", 1, half, friction);
    left.position = {0, 0, height + radius};
    JointSpec x, z, turn, hinge;
    x.name = "x", x.type = JointType::slide, x.axis = {1, 0, 0};
    z.name = "z", z.type = JointType::slide, z.axis = {0, 0, 1};
    turn.name = "turn", turn.type = JointType::hinge, turn.axis = {0, 1, 0};
    hinge.name = "hinge", hinge.type = JointType::hinge, hinge.axis = {0, 1, 0};
    left.joints = {x, z, turn}, right.joints = {hinge};
    spec.bodies.push_back(left), spec.bodies.push_back(right);
    return compile(std::move(spec));
  }
};

StepOptions on_the_ground(double h, LoopMode loops) {
  StepOptions options;
  options.dt = h, options.loops = loops;
  options.rows.contacts = options.rows.joints = true;
  options.rows.solve = {.max_iterations = 100, .tolerance = 1e-11};
  return options;
}

double vertical(const RowStage<double>& rows, int link) {
  double sum = 0;
  for (int i = 0; i < int(rows.contacts().size()); ++i) {
    if (rows.contacts()[i].a == link) sum += rows.terms().force(i).z;
  }
  return sum;
}

/// Without friction a rope between the feet must hold the legs together with T = m g a / (2 H). Each foot carries m g.
TEST(GroundLoops, ARopeHoldsAPairOfStairs) {
  const Model model = Ladder::model(0);
  EqualitySet rope(model);
  const Vec3d left{-Ladder::half, 0, -Ladder::height}, right{Ladder::half, 0, -Ladder::height};
  rope.add_distance("rope", model.body_id("left"), left, model.body_id("right"), right, 2 * Ladder::half);
  for (const LoopMode mode : {LoopMode::spook, LoopMode::shake}) {
    {
      Data data(model);
      StepOptions options = on_the_ground(0.005, mode);
      options.equalities = &rope;
      Stepper<double> stepper(model, data, options);
      for (int i = 0; i < 2000; ++i) ASSERT_EQ(stepper.step(data), 0);
      SCOPED_TRACE(name(mode));
      EXPECT_EQ(stepper.rows()->report().touching, 2);
      const int first = model.joint_id("turn"), second = model.joint_id("hinge");
      EXPECT_NEAR(vertical(*stepper.rows(), first), Ladder::mass * kGravity, 1e-4);
      EXPECT_NEAR(vertical(*stepper.rows(), second), Ladder::mass * kGravity, 1e-4);
      // The force on the bodies is -Jᵀ x₂, and φ grows with the distance: a rope in tension has x₂ > 0.
      EXPECT_NEAR(stepper.loops()->multiplier()[0], Ladder::mass * kGravity * Ladder::half / (2 * Ladder::height),
                  2e-3);  // the contacts' compliance lowers the legs by 4e-5 m
      EXPECT_LT(stepper.loops()->error(0).position, 1e-9);
    }
  }
}

/// Without a rope and without friction the legs slide apart.
TEST(GroundLoops, WithoutTheRopeTheyFall) {
  const Model model = Ladder::model(0);
  Data data(model);
  Stepper<double> stepper(model, data, on_the_ground(0.005, LoopMode::spook));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(stepper.step(data), 0);
  EXPECT_LT(data.qpos[1], -0.3);
}

/// A four-bar dropped on the floor, link by link. SHAKE keeps the loop closed through the impacts, no link penetrates,
/// and in the end the floor carries its weight.
TEST(GroundLoops, AFallingLinkageStaysClosed) {
  const char* xml = R"(<mujoco><option gravity="0 0 -9.81"/><worldbody>
    <geom type="plane" size="0 0 1" friction="0.6"/>
    <body name="a" pos="0 0 0.8" euler="20 30 10"><freejoint/><geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" density="800"/>
      <body name="b" pos=".4 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .3" size=".03" density="800"/>
        <body name="c" pos="0 0 .3"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 -.4 0 0" size=".03" density="800"/>
        </body></body>
      <body name="d" pos="0 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .3" size=".03" density="800"/></body>
    </body></worldbody>
    <contact><exclude body1="c" body2="d"/><exclude body1="a" body2="c"/></contact>
    <equality><connect body1="c" body2="d" anchor="-.4 0 0"/></equality></mujoco>)";
  const Model model = compile(parse_mjcf(xml, "linkage", "."));
  for (const LoopMode mode : {LoopMode::spook, LoopMode::shake}) {
    SCOPED_TRACE(name(mode));
    Data data(model);
    StepOptions options;
    options.dt = 0.002, options.loops = mode;
    options.rows.contacts = options.rows.joints = true;
    Stepper<double> stepper(model, data, options);
    double open = 0, deep = 0, speed = 0;
    for (int i = 0; i < 6000; ++i) {
      ASSERT_EQ(stepper.step(data), 0) << i;
      open = std::max(open, stepper.loops()->error(0).position);
      deep = std::max(deep, stepper.rows()->report().penetration);
    }
    double carried = 0;
    for (int i = 0; i < int(stepper.rows()->contacts().size()); ++i) {
      if (stepper.rows()->contacts()[i].b < 0) carried += stepper.rows()->terms().force(i).z;
    }
    for (const double v : data.qvel) speed = std::max(speed, std::abs(v));
    std::printf("%s: loop opened by %.2g m at most, %.2g m deep, at rest to %.1g, carries %.6f of its weight\n",
                name(mode), open, deep, speed, carried / (model.total_mass() * kGravity));
    EXPECT_LT(open, mode == LoopMode::shake ? 1e-10 : 1e-4);
    EXPECT_LT(deep, 2e-3);
    EXPECT_NEAR(carried / (model.total_mass() * kGravity), 1, 1e-3);
  }
}

/// Cassie, with four loops of springs and rods, starts above the floor from its keyframe and is held by drives. It may
/// tip over, but its loops stay closed and the floor carries its weight.
TEST(GroundLoops, CassieOnTheFloor) {
  const std::string file = std::string(TARSUS_SOURCE_DIR) + "/../shared/data/menagerie/agility_cassie/scene.xml";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  ReadOptions options;
  options.lenient = true;
  const Model model = compile(read_mjcf(file, options));
  Drives drives = Drives::uniform(model, 2000, 100, 0, 0);
  for (const LoopMode mode : {LoopMode::spook, LoopMode::shake}) {
    SCOPED_TRACE(name(mode));
    Data data(model);
    data.qpos.assign(model.spec.keyframes[0].qpos.begin(), model.spec.keyframes[0].qpos.end());
    const AlignedVector<double> target(data.qpos);
    StepOptions step;
    step.dt = 0.004, step.loops = mode;
    step.rows.contacts = step.rows.joints = true;
    Stepper<double> stepper(model, data, step);
    double open = 0, deep = 0, speed = 0;
    for (int i = 0; i < 2500; ++i) {
      ASSERT_EQ(stepper.step(data, drives, target), 0) << i;
      if (i > 0) open = std::max(open, stepper.loops()->error(0).position);  // the keyframe is 1.5 mm off
      deep = std::max(deep, stepper.rows()->report().penetration);
    }
    double carried = 0;
    for (int i = 0; i < int(stepper.rows()->contacts().size()); ++i) {
      if (stepper.rows()->contacts()[i].b < 0) carried += stepper.rows()->terms().force(i).z;
    }
    for (const double v : data.qvel) speed = std::max(speed, std::abs(v));
    std::printf("cassie, %s: loops opened by %.2g m, %.2g m deep, at rest to %.1g, carried %.6f of its weight\n",
                name(mode), open, deep, speed, carried / (model.total_mass() * kGravity));
    EXPECT_LT(open, mode == LoopMode::shake ? 1e-10 : 2e-3);
    EXPECT_LT(deep, 5e-3);
    EXPECT_LT(speed, 1e-5);
    EXPECT_NEAR(carried / (model.total_mass() * kGravity), 1, 1e-4);
  }
}

/// Drives at their force limits, a loop and contacts in one step: all three conditions hold.
TEST(GroundLoops, ForceLimitsLoopsAndContactsHoldTogether) {
  const Model model = Ladder::model(0.4);
  EqualitySet rope(model);
  rope.add_distance("rope", model.body_id("left"), {-Ladder::half, 0, -Ladder::height}, model.body_id("right"),
                    {Ladder::half, 0, -Ladder::height}, 2 * Ladder::half);
  Data data(model);
  StepOptions options = on_the_ground(0.01, LoopMode::spook);
  options.equalities = &rope;
  Stepper<double> stepper(model, data, options);
  Drives drives = Drives::uniform(model, 4000, 200, 0, 0);
  drives.force_limit.assign(model.nv, kInfinity);
  drives.force_limit[model.joints[model.joint_id("hinge")].qvel] = 5;
  AlignedVector<double> target(data.qpos);
  target[model.joints[model.joint_id("hinge")].qpos] = -0.5;  // the drive pulls the legs together with at most 5 N m
  target[1] = data.qpos[1];
  double residual = 0, open = 0;
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(stepper.step(data, drives, target), 0);
    residual = std::max(residual, stepper.rows()->report().residual);
    open = std::max(open, stepper.loops()->error(0).position);
  }
  EXPECT_LT(residual, 1e-8);
  EXPECT_LT(open, 1e-6);
  EXPECT_EQ(stepper.rows()->report().touching, 2);
  ASSERT_TRUE(stepper.limit_report(0));
  EXPECT_EQ(stepper.limit_report(0)->saturated, 1);
}

/// A crank and its rod in line, at dead centre: no speed of the crank moves the slider, which is 0.3 m beyond its
/// range.
Model dead_centre() {
  return compile(parse_mjcf(R"(<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
    <body><joint name="crank" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02" contype="0"/>
      <body name="rod" pos="0.5 0 0"><joint name="pin" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 1 0 0" size="0.02" contype="0"/></body></body>
    <body name="slider" pos="1.5 0 0"><joint name="slide" type="slide" axis="1 0 0" limited="true" range="-3 -0.3"/>
      <geom type="sphere" size="0.1" contype="0"/></body></worldbody>
    <equality><connect body1="rod" body2="slider" anchor="1 0 0"/></equality></mujoco>)",
                            "test.xml", "."));
}

/// A limit that the closed loop blocks is violated, and its force stays bounded. A crank that leaves dead centre in
/// long steps may carry the slider some way into its range.
TEST(GroundLoops, ALimitThatTheLoopBlocksGivesWay) {
  for (const double offset : {0.0, 1e-6, 1e-3}) {
    for (const double h : {0.0005, 0.002, 1.0 / 60}) {
      SCOPED_TRACE(testing::Message() << "crank at " << offset << ", step " << h);
      const Model model = dead_centre();
      Data data(model);
      data.qpos[0] = offset, data.qpos[1] = -offset - std::asin(0.5 * std::sin(offset));
      data.qpos[2] = 0.5 * std::cos(offset) + std::cos(data.qpos[0] + data.qpos[1]) - 1.5;
      Stepper<double> stepper(model, data, on_the_ground(h, LoopMode::spook));
      double fastest = 0;
      for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(stepper.step(data), 0) << i << " " << name(stepper.status(0));
        for (const double v : data.qvel) fastest = std::max(fastest, std::abs(v));
      }
      EXPECT_LT(fastest, 1e4);
      EXPECT_LT(data.qpos[2], -0.3 + 1e-3);
      EXPECT_GT(data.qpos[2], -1);
      EXPECT_LT(stepper.loops()->error(0).position, 1e-2);
    }
  }
}

/// A joint returns from far beyond its range at a speed that does not depend on the step.
TEST(GroundLoops, AJointComesBackToItsRangeAtFiveRadiansASecond) {
  const Model model = compile(parse_mjcf(R"(<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
    <body><joint axis="0 1 0" limited="true" range="1 2"/><geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02"/>
    </body></worldbody></mujoco>)",
                                         "test.xml", "."));
  for (const double h : {1e-4, 1e-3, 1.0 / 60}) {
    SCOPED_TRACE(h);
    Data data(model);
    Stepper<double> stepper(model, data, on_the_ground(h, LoopMode::spook));
    double fastest = 0;
    while (data.time < 0.5) {
      ASSERT_EQ(stepper.step(data), 0);
      fastest = std::max(fastest, std::abs(data.qvel[0]));
    }
    EXPECT_NEAR(fastest, 5, 1e-6);
    EXPECT_TRUE(data.qpos[0] > 1 && data.qpos[0] < 2.01) << data.qpos[0];  // nothing stops it within the range
  }
}

/// Arms whose zero pose is 0.8 rad outside their ranges, as in many robots' files. A limp arm only swings.
TEST(GroundLoops, ALimpArmThatStartsBeyondItsRangesOnlySwings) {
  const std::string file =
      TARSUS_SOURCE_DIR "/../shared/data/example_robot_data/robots/kinova_description/robots/kinova.urdf";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  ReadOptions lenient;
  lenient.lenient = true;
  const Model model = compile(read_urdf(file, lenient));
  Data data(model);
  StepOptions options = on_the_ground(0.002, LoopMode::spook);
  options.rows.solve = RowStageOptions().solve;
  Stepper<double> stepper(model, data, options);
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(stepper.step(data), 0) << i << " " << name(stepper.status(0));
    kinematics<double>(model, data, data.qpos, data.qvel);
    EXPECT_LT(energy<double>(model, data, data.qpos, data.qvel).kinetic, 50) << i;
  }
}

/// In the pose of this robot's file both knees are 0.65 rad beyond their ranges and the linkages are stretched.
TEST(GroundLoops, CassieRunsFromThePoseOfItsFile) {
  const std::string file = TARSUS_SOURCE_DIR "/../shared/data/menagerie/agility_cassie/scene.xml";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  ReadOptions lenient;
  lenient.lenient = true;
  const Model model = compile(read_mjcf(file, lenient));
  for (const double h : {model.timestep, 4 * model.timestep}) {
    SCOPED_TRACE(h);
    Data data(model);
    StepOptions options = on_the_ground(h, LoopMode::spook);
    options.rows.solve = RowStageOptions().solve;
    Stepper<double> stepper(model, data, options);
    for (int i = 0; i * h < 0.5; ++i) ASSERT_EQ(stepper.step(data), 0) << i << " " << name(stepper.status(0));
    kinematics<double>(model, data, data.qpos, data.qvel);
    EXPECT_LT(energy<double>(model, data, data.qpos, data.qvel).kinetic, 400);  // half a second's fall has 400 J
  }
}

/// A scene of models/scenes at its file's step.
struct SceneRun {
  Model model;
  Data data;
  Stepper<double> stepper;

  explicit SceneRun(const char* name, double restitution = 0)
      : model(compile(read_mjcf(std::string(TARSUS_SOURCE_DIR "/models/scenes/") + name))),
        data(model),
        stepper(model, data, options(model.timestep, restitution)) {}
  static StepOptions options(double dt, double restitution) {
    StepOptions options;
    options.dt = dt, options.rows.contacts = true, options.rows.restitution = restitution;
    return options;
  }
  Vec3d position(int body) const {
    const double* q = data.qpos.data() + 7 * body;
    return {q[0], q[1], q[2]};
  }
};

/// Equal balls that collide elastically one after the other pass the whole swing on: the last one rises as high as the
/// first one was lifted, the others stay at rest.
TEST(GroundLoops, NewtonsCradlePassesItsSwingOn) {
  SceneRun run("newton_cradle.xml", 1);
  const double lift = run.position(0).z - run.position(4).z, lowest = run.position(4).z;
  double rise = 0, others = 0;
  for (int i = 0; i < 600; ++i) {  // 1.2 s: until the last ball is on its way back
    ASSERT_EQ(run.stepper.step(run.data), 0) << i;
    rise = std::max(rise, run.position(4).z - lowest);
    if (rise > 0.5 * lift) others = std::max({others, run.position(0).z - lowest, run.position(2).z - lowest});
  }
  EXPECT_NEAR(rise, lift, 0.03 * lift);
  EXPECT_LT(others, 1e-3 * lift);
}

/// A rope of capsules falls over a peg, stays on it, and hangs on both sides with its links together.
TEST(GroundLoops, ARopeHangsOverItsPeg) {
  SceneRun run("rope_on_peg.xml");
  for (int i = 0; i < 1200; ++i) ASSERT_EQ(run.stepper.step(run.data), 0) << i;  // 5 s
  double top = -kInfinity;
  for (int i = 0; i < 24; ++i) top = std::max(top, run.position(i).z);
  EXPECT_GT(top, 0.15);  // the peg's radius
  for (const int end : {0, 23}) {
    EXPECT_LT(run.position(end).z, -0.3);
    EXPECT_GT(run.position(end).z, -2.5);
  }
  for (int i = 1; i < 24; ++i)  // centres of neighbours whose ends are together are two half lengths apart or less
    EXPECT_LT(norm(run.position(i) - run.position(i - 1)), 0.12 + 1e-3) << i;
}

}  // namespace
}  // namespace tarsus
