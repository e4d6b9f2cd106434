// The model's actuators and passive forces in a step, each against the same force expressed by other means.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "tarsus/control/actuation.hpp"
#include "tarsus/dynamics/tendon.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {
namespace {

constexpr double kStep = 1.0 / 60;
/// Velocity products are off: a joint's springs act within their pass and terms beside it, so both agree to rounding
/// only without them.
const StepOptions kPlain{.dt = kStep, .velocity_products = VelocityProductMode::off};

/// Two hinges, the second below the first; `joint` goes into both, `rest` follows the worldbody.
Model arm(const std::string& rest, const std::string& joint = "") {
  return compile(
      parse_mjcf("<mujoco><worldbody><body name='a' pos='0 0 1'><joint name='j' axis='0 1 0' " + joint +
                     "/><geom type='capsule' fromto='0 0 0 .4 0 0' size='.03'/><site name='sa' pos='.4 0 .1'/>"
                     "<body name='b' pos='.4 0 0'><joint name='k' axis='0 1 0' " +
                     joint +
                     "/><geom type='capsule' fromto='0 0 0 .3 0 .1' size='.03'/><site name='sb' pos='.3 0 0'/>"
                     "</body></body><site name='w' pos='0 0 1.5'/></worldbody>" +
                     rest + "</mujoco>",
                 "arm", "."));
}

std::string actuators(const std::string& text) { return "<actuator>" + text + "</actuator>"; }

/// The states of `steps` steps.
std::vector<double> run(const Model& model, const std::vector<double>& ctrl, int steps, const StepOptions& options,
                        const Drives* drives = nullptr, const std::vector<double>& target = {}) {
  Data data(model);
  data.qpos[0] = 0.3, data.qpos[1] = -0.5;
  std::copy(ctrl.begin(), ctrl.end(), data.ctrl.begin());
  Stepper<double> stepper(model, data, options);
  std::vector<double> out;
  for (int i = 0; i < steps; ++i) {
    EXPECT_EQ(drives ? stepper.step(data, *drives, target) : stepper.step(data), 0);
    out.insert(out.end(), data.qpos.begin(), data.qpos.end());
  }
  return out;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
}

TEST(Servo, PositionServosAreStiffDrives) {
  const Model model = arm(actuators("<position joint='j' kp='300' kv='20'/><position joint='k' kp='100' kv='5'/>"));
  Drives drives = Drives::none(model);
  drives.kp = {300, 100}, drives.kd = {20, 5};
  const StepOptions options{.dt = kStep};
  expect_near(run(model, {0.5, 0.2}, 200, options), run(model, {}, 200, options, &drives, {0.5, 0.2}), 1e-12);
}

TEST(Servo, ForceRangesAreLimitsOfDrives) {
  const Model model =
      arm(actuators("<position joint='j' kp='1e5' kv='100' forcerange='-4 6' gear='2'/>"
                    "<position joint='k' kp='1e5' kv='100' forcerange='-1 1'/>"));
  Drives drives = Drives::none(model);
  drives.kp = {4e5, 1e5}, drives.kd = {400, 100};
  drives.force_limit = {12, 1}, drives.force_floor = {-8, -1}, drives.spin_damping = 0;
  const StepOptions options{.dt = kStep};
  expect_near(run(model, {1, 0.2}, 200, options), run(model, {}, 200, options, &drives, {0.5, 0.2}), 1e-9);
}

TEST(Servo, JointRangesBoundServosAndMotorsTogether) {
  const Model model =
      arm(actuators("<position joint='j' kp='1e4' kv='100'/><motor joint='j'/>"), "actuatorfrcrange='-5 5'");
  Drives drives = Drives::none(model);
  drives.kp = {1e4, 0}, drives.kd = {100, 0};
  drives.force_limit = {2, kInfinity}, drives.force_floor = {-8, -kInfinity}, drives.spin_damping = 0;
  Data data(model);
  data.tau[0] = 3;  // the motor's
  Stepper<double> stepper(model, data, {.dt = kStep});
  data.qpos[0] = 0.3, data.qpos[1] = -0.5;
  std::vector<double> expected;
  for (int i = 0; i < 100; ++i) {
    stepper.step(data, drives, std::vector<double>{1, 0});
    expected.insert(expected.end(), data.qpos.begin(), data.qpos.end());
  }
  expect_near(run(model, {1, 3}, 100, {.dt = kStep}), expected, 1e-9);
}

TEST(Servo, JointRangesBoundMotorsBesideServosWithoutGains) {
  const std::string tendon = "<tendon><fixed name='t'><joint joint='j' coef='1.5'/></fixed></tendon>";
  for (const std::string other : {"<motor joint='j'/>", "<position tendon='t' kp='500'/>"}) {
    const Model alone = arm(tendon + actuators(other + "<motor joint='j'/>"), "actuatorfrcrange='-5 5'"),
                beside = arm(tendon + actuators(other + "<damper joint='j' kv='2' ctrlrange='0 1'/>"),
                             "actuatorfrcrange='-5 5'");
    for (const bool limits : {false, true}) {
      StepOptions options = kPlain;
      options.rows.joints = limits;
      expect_near(run(beside, {9, 0}, 100, options), run(alone, {9, 0}, 100, options), 1e-9);
    }
  }
}

TEST(Servo, OnATendonOfOneJointIsOneOnTheJoint) {
  const std::string tendon = "<tendon><fixed name='t'><joint joint='j' coef='1.5'/></fixed></tendon>";
  const std::string law = "kp='2000' kv='40' forcerange='-30 30'/>";
  const Model on_tendon = arm(tendon + actuators("<position tendon='t' " + law)),
              on_joint = arm(tendon + actuators("<position joint='j' gear='1.5' " + law));
  // Limited drives take velocity products explicitly.
  const auto options = StepOptions{.dt = kStep, .velocity_products = VelocityProductMode::off};
  expect_near(run(on_tendon, {0.8}, 100, options), run(on_joint, {0.8}, 100, options), 1e-7);
  const Model loose_tendon = arm(tendon + actuators("<position tendon='t' kp='2000' kv='40'/>")),
              loose_joint = arm(tendon + actuators("<position joint='j' gear='1.5' kp='2000' kv='40'/>"));
  expect_near(run(loose_tendon, {0.8}, 100, options), run(loose_joint, {0.8}, 100, options), 1e-8);
}

TEST(Servo, TendonSpringsAndDampersOfOneJointAreTheJoints) {
  const Model tendon =
      arm("<tendon><fixed stiffness='50' damping='2' springlength='.2'><joint joint='j' coef='1'/>"
          "</fixed></tendon>");
  const Model joint = compile([] {
    ModelSpec spec = arm("").spec;
    JointSpec& j = spec.bodies[1].joints[0];
    j.stiffness = 50, j.damping = 2, j.spring_reference = 0.2;
    return spec;
  }());
  expect_near(run(tendon, {}, 200, kPlain), run(joint, {}, 200, kPlain), 1e-9);
}

/// The arm falls on the ground; the step solves for all its forces together.
TEST(Servo, ServosOnTendonsActBesideContactsAndRanges) {
  StepOptions options = kPlain;
  options.rows.contacts = options.rows.joints = true;
  const auto on_ground = [](const std::string& rest) {
    ModelSpec spec = arm(rest).spec;
    GeomSpec floor;
    floor.type = GeomType::plane, floor.size = {0, 0, 1};
    floor.position = {0, 0, spec.bodies[1].position.z - 0.15};
    spec.bodies[0].geoms.push_back(floor);
    return compile(spec);
  };
  const std::string gains = " kp='1e4' kv='100' forcerange='-2 1.5'/>";
  const Model tendon = on_ground("<tendon><fixed name='t'><joint joint='j' coef='1'/></fixed></tendon>" +
                                 actuators("<position tendon='t'" + gains));
  const Model joint = on_ground(actuators("<position joint='j'" + gains));
  const std::vector<double> states = run(tendon, {-1}, 200, options);
  expect_near(states, run(joint, {-1}, 200, options), 1e-6);

  // A servo that is always at its force range is a motor.
  const std::string both =
      "<tendon><fixed name='t'><joint joint='j' coef='1'/><joint joint='k' coef='-.5'/></fixed></tendon>";
  const Model servo = on_ground(both + actuators("<position tendon='t' kp='1e4' kv='1' forcerange='-1 1'/>"));
  const Model motor = on_ground(both + actuators("<motor tendon='t'/>"));
  expect_near(run(servo, {100}, 200, options), run(motor, {1}, 200, options), 1e-6);

  Data data(servo);
  data.qpos[0] = 0.3, data.qpos[1] = -0.5, data.ctrl[0] = 100;
  Stepper<double> stepper(servo, data, options);
  int touching = 0;
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(stepper.step(data), 0);
    ASSERT_EQ(stepper.rows()->report().status, StepStatus::converged);
    ASSERT_LE(stepper.rows()->report().residual, 1e-6);
    touching += stepper.rows()->report().touching > 0;
  }
  EXPECT_GT(touching, 20);
}

TEST(Servo, TendonArmatureOfOneJointIsTheJoints) {
  const Model tendon = arm("<tendon><fixed armature='.3'><joint joint='j' coef='2'/></fixed></tendon>");
  const Model joint = compile([] {
    ModelSpec spec = arm("").spec;
    spec.bodies[1].joints[0].armature = 1.2;
    return spec;
  }());
  expect_near(run(tendon, {}, 200, kPlain), run(joint, {}, 200, kPlain), 1e-9);
}

TEST(Servo, FiltersFollowTheirControl) {
  const Model model =
      arm(actuators("<general joint='j' dyntype='filterexact' dynprm='.2'/>"
                    "<general joint='k' dyntype='integrator' actlimited='true' actrange='-.1 .1'/>"));
  Data data(model);
  data.ctrl[0] = 1, data.ctrl[1] = 1;
  Stepper<double> stepper(model, data, {.dt = kStep});
  for (int i = 0; i < 30; ++i) stepper.step(data);
  EXPECT_NEAR(data.act[0], 1 - std::exp(-30 * kStep / 0.2), 1e-12);
  EXPECT_EQ(data.act[1], 0.1);
}

TEST(Servo, ServosBeyondEveryReasonStandStill) {
  const Model model = arm(actuators("<position joint='j' kp='1e8' kv='1e4'/><velocity joint='k' kv='1e7'/>"));
  for (const double dt : {kStep, 1.0 / 30}) {
    const std::vector<double> states = run(model, {0.4, 0}, 600, {.dt = dt});
    EXPECT_NEAR(states[states.size() - 2], 0.4, 1e-5);
    EXPECT_NEAR(states[states.size() - 1], states[states.size() - 101], 1e-4);
  }
}

TEST(Servo, GravityCompensationHoldsABodyStill) {
  const Model model = compile(parse_mjcf(
      "<mujoco><worldbody><body gravcomp='1'><joint axis='0 1 0'/><geom size='.1' pos='.3 0 0'/>"
      "<body gravcomp='1' pos='.3 0 0'><joint axis='1 0 0'/><geom size='.1' pos='0 .2 0'/></body></body></worldbody>"
      "</mujoco>",
      "still", "."));
  const std::vector<double> states = run(model, {}, 300, {.dt = kStep});
  EXPECT_NEAR(states[598], 0.3, 1e-9);
  EXPECT_NEAR(states[599], -0.5, 1e-9);
}

TEST(Servo, LanesAreTheScalarRun) {
  const Model model =
      arm("<tendon><fixed name='t' stiffness='5'><joint joint='j' coef='1'/><joint joint='k' coef='-1'/>"
          "</fixed></tendon>" +
          actuators("<position joint='j' kp='300' kv='20'/><position tendon='t' kp='10' kv='1'/>"
                    "<general joint='k' dyntype='filter' dynprm='.1'/>"));
  Data batch(model, 5);
  for (int world = 0; world < 5; ++world) {
    batch.set(batch.ctrl, 3, world, std::vector<double>{0.1 * world, 0.2, 0.3 * world});
    batch.set(batch.qpos, 2, world, std::vector<double>{0.3, -0.5});
  }
  Stepper<double> stepper(model, batch, kPlain);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(stepper.step(batch), 0);
  for (int world = 0; world < 5; ++world) {
    const std::vector<double> one = run(model, {0.1 * world, 0.2, 0.3 * world}, 50, kPlain);
    std::vector<double> q(2);
    batch.get(batch.qpos, 2, world, q);
    EXPECT_NEAR(q[0], one[98], 1e-10);
    EXPECT_NEAR(q[1], one[99], 1e-10);
  }
}

/// The final states of a hinge with the text `joint` in its <joint> and of one with the tendon `tendon`, both pushed by
/// 3 N m from rest.
std::array<double, 4> pushed(const std::string& joint, const std::string& tendon, const StepOptions& options,
                             int steps) {
  std::array<double, 4> out{};
  for (int k = 0; k < 2; ++k) {
    const Model model = k == 0 ? arm("", joint)
                               : arm("<tendon><fixed " + tendon + "><joint joint='j' coef='1'/></fixed><fixed " +
                                     tendon + "><joint joint='k' coef='1'/></fixed></tendon>");
    Data data(model);
    data.tau[0] = 6, data.tau[1] = 3;
    Stepper<double> stepper(model, data, options);
    for (int i = 0; i < steps; ++i) EXPECT_EQ(stepper.step(data), 0);
    out[2 * k] = data.qpos[0], out[2 * k + 1] = data.qpos[1];
  }
  return out;
}

TEST(Servo, RangesOfTendonsHold) {
  StepOptions options{.dt = kStep};
  options.rows.joints = true;
  const auto x = pushed("range='-20 20' limited='true'", "range='-.35 .35' limited='true'", options, 200);
  EXPECT_NEAR(x[2], 0.35, 1e-3);
  EXPECT_NEAR(x[3], 0.35, 1e-3);
  EXPECT_NEAR(x[0], 20 * kPi / 180, 1e-2);
}

TEST(Servo, DryFrictionOfTendonsIsThatOfJoints) {
  StepOptions options{.dt = kStep, .velocity_products = VelocityProductMode::off};
  options.rows.joints = true;  // a joint's row yields a little (decision 504), a tendon's hardly
  const auto moving = pushed("frictionloss='1'", "frictionloss='1'", options, 12);
  EXPECT_NEAR(moving[2], moving[0], 0.02 * std::abs(moving[0]));
  EXPECT_NEAR(moving[3], moving[1], 0.02 * std::abs(moving[1]));
  const auto stuck = pushed("frictionloss='20'", "frictionloss='20'", options, 600);
  EXPECT_LT(std::abs(stuck[2]) + std::abs(stuck[3]), 1e-4);
}

TEST(Servo, WithoutLimitsTendonsRunFree) {
  const auto x = pushed("", "range='-.35 .35' limited='true' frictionloss='1'", {.dt = kStep}, 100);
  EXPECT_NEAR(x[2], x[0], 1e-9);
}

TEST(Servo, ATendonsEndsDependOnOneAnother) {  // the same range three times: none of them is lost
  StepOptions options{.dt = kStep};
  options.rows.joints = true;
  const std::string one = "<fixed range='-.35 .35' limited='true'><joint joint='j' coef='2'/></fixed>";
  const Model model = arm("<tendon>" + one + one + one + "</tendon>");
  Data data(model);
  data.tau[0] = 20;
  Stepper<double> stepper(model, data, options);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(stepper.step(data), 0);
  EXPECT_NEAR(data.qpos[0], 0.175, 1e-3);
}

/// A ball of a kilogram between two opposite ropes of a metre, both too short, as ranges or as equalities.
Model ball_between_ropes(double too_short, bool equalities, const std::string& joints) {
  const std::string d = std::to_string(too_short),
                    range = equalities ? "" : " range='0 " + std::to_string(1 - too_short) + "'";
  const auto rope = [&](const std::string& end) {
    return "<spatial name='" + end + "'" + range + "><site site='" + end + "'/><site site='s'/></spatial>";
  };
  const auto equality = [&](const std::string& end) {
    return "<tendon tendon1='" + end + "' polycoef='-" + d + " 0 0 0 0'/>";
  };
  return compile(
      parse_mjcf("<mujoco><worldbody><site name='a' pos='-1 0 0'/><site name='b' pos='1 0 0'/><body>" + joints +
                     "<geom size='.05' mass='1' contype='0' conaffinity='0'/><site name='s'/></body></worldbody>"
                     "<tendon>" +
                     rope("a") + rope("b") + "</tendon>" +
                     (equalities ? "<equality>" + equality("a") + equality("b") + "</equality>" : "") + "</mujoco>",
                 "ball", "."));
}

/// The largest velocity of a DoF in this time from rest, within ranges; infinite if a step fails.
double fastest_velocity(const Model& model, double h, double seconds) {
  Data data(model);
  StepOptions options{.dt = h};
  options.rows.joints = true;
  Stepper<double> stepper(model, data, options);
  double fastest = 0;
  for (int i = 0; i < seconds / h; ++i) {
    if (stepper.step(data) != 0) return std::numeric_limits<double>::infinity();
    for (const double v : data.qvel) fastest = std::max(fastest, std::abs(v));
  }
  return fastest;
}

/// MuJoCo's ball reaches 0.81 m/s at most. Ours was thrown at 10 to 200,000 m/s.
TEST(Servo, RopesThatAreAllTooShortHoldABallBetweenThem) {
  const std::string slides =
      "<joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 1 0'/><joint type='slide' axis='0 0 1'/>";
  for (const double too_short : {1e-5, 1e-3, 1e-2}) {
    for (const bool equalities : {false, true}) {
      for (const std::string& joints : {std::string("<freejoint/>"), slides}) {
        for (const double h : {2e-4, 1e-3, 1.0 / 60}) {
          const Model model = ball_between_ropes(too_short, equalities, joints);
          EXPECT_LT(fastest_velocity(model, h, 1), 1) << too_short << " h " << h << " " << equalities << joints;
        }
      }
    }
  }
}

/// Two ranges whose directions differ by 1e-4. The pulls, 4e5 rad/s² each at most (kTendonPull), leave 40 rad/s² across
/// both, times the ratio of inverse masses, below 4, for two seconds.
TEST(Servo, RangesOfNearlyParallelTendonsThatContradictDoNotThrow) {
  const Model model =
      arm("<tendon><fixed range='.3 1' limited='true'><joint joint='j' coef='1'/><joint joint='k' coef='.5'/></fixed>"
          "<fixed range='-1 -.3' limited='true'><joint joint='j' coef='1'/><joint joint='k' "
          "coef='.5001'/></fixed></tendon>");
  for (const double h : {2e-4, 1e-3, 1.0 / 60}) {
    EXPECT_LT(fastest_velocity(model, h, 2), 320) << h;  // MuJoCo: 13; it was 2,300 to 3,300
  }
}

TEST(Servo, TheBendOfATendonIsItsSecondDerivative) {
  const Model model = compile(parse_mjcf(
      "<mujoco><worldbody><site name='w' pos='0 .3 1'/><body><freejoint/><geom size='.1' mass='2'/><site name='s0' "
      "pos='.1 0 .1'/>"
      "<body pos='0 .2 0'><joint type='ball'/><geom size='.1 .1' type='capsule'/><site name='s1' pos='.2 .1 0'/>"
      "<body pos='.3 0 0'><joint type='hinge' axis='1 2 0'/><joint type='slide' axis='0 1 1'/><geom size='.1'/>"
      "<site name='s2' pos='.1 .3 0'/></body></body></body></worldbody><tendon><spatial><site site='w'/><site "
      "site='s1'/>"
      "<pulley divisor='2'/><site site='s0'/><site site='s2'/></spatial></tendon></mujoco>",
      "path", "."));
  const TendonSet tendons = TendonSet::of(model);
  std::vector<double> qpos(model.qpos0.begin(), model.qpos0.end());
  qpos[0] = 0.3, qpos[2] = 0.5, qpos[11] = 0.7, qpos[12] = 0.2;
  const Quatd turn = exp_map(Vec3d{0.4, -0.8, 0.3}), other = exp_map(Vec3d{-0.9, 0.1, 0.6});
  int at = 3;
  for (const Quatd& q : {turn, other})
    qpos[at] = q.w, qpos[at + 1] = q.x, qpos[at + 2] = q.y, qpos[at + 3] = q.z, at += 4;
  Data data(model), work(model);
  kinematics<double>(model, data, qpos);
  double sum = 0;
  for (int v = 0; v < model.nv; ++v) {
    std::vector<double> one(model.nv), second(1);
    one[v] = 1;
    tendon_bias(model, tendons, work, qpos, one, second);
    sum += std::abs(second[0]) / model.carried_inertia[v];
  }
  EXPECT_NEAR(tendon_bend(model, tendons[0], data.links(), model.carried_inertia), sum, 1e-6 * sum);
}

TEST(Servo, PolynomialSpringsKeepTheirEnergyAndStiffOnesStayStill) {
  // x'' = -k x³: with k = 1e6 a step of 1/60 s resolves nothing, but is stable.
  const Model model = compile(parse_mjcf(
      "<mujoco><option gravity='0 0 0'/><worldbody><body><joint type='slide' stiffness='0 0 1e6' damping='0 5'/>"
      "<geom size='.1' mass='1'/></body></worldbody></mujoco>",
      "cubic", "."));
  Data data(model);
  data.qpos[0] = 0.5;
  Stepper<double> stepper(model, data, {.dt = kStep});
  for (int i = 0; i < 600; ++i) {
    ASSERT_EQ(stepper.step(data), 0);
    ASSERT_LT(std::abs(data.qpos[0]), 0.6) << i;
  }
}

TEST(Servo, CouplingsOfPathsHold) {
  const std::string tendons =
      "<tendon><spatial name='t'><site site='w'/><site site='sa'/></spatial>"
      "<spatial name='u'><site site='w'/><site site='sb'/></spatial></tendon>"
      "<equality><tendon tendon1='u' tendon2='t' polycoef='0 .5 0 0 0'/></equality>";
  const Model model = arm(tendons);
  Data data(model);
  Stepper<double> stepper(model, data, {.dt = 1e-3, .loops = LoopMode::shake});
  Actuation actuation(model);
  std::vector<double> none;
  const auto lengths = [&] {
    actuation.evaluate(data.qpos, data.qvel, none, none, 1e-3);
    return std::array<double, 2>{actuation.passive().tendon_length()[0], actuation.passive().tendon_length()[1]};
  };
  const auto start = lengths();
  double most = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(stepper.step(data), 0);
    const auto now = lengths();
    most = std::max(most, std::abs(now[0] - start[0]));
    ASSERT_NEAR(now[1] - start[1], 0.5 * (now[0] - start[0]), 1e-10) << i;
  }
  EXPECT_GT(most, 0.05);  // it moves
}

TEST(Servo, LawsThatAreNotComputedAreNamedWhenTheyWouldAct) {
  const Model model = arm(actuators("<motor joint='j'/><general name='odd' joint='k' gaintype='user'/>"));
  Data data(model);
  Stepper<double> stepper(model, data, {.dt = kStep});
  try {
    stepper.step(data);
    FAIL() << "it steps";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("odd"), std::string::npos) << e.what();
  }
  EXPECT_EQ(stepper.step(data, Drives::none(model), {}), 0);
  Stepper<double> off(model, data, {.dt = kStep, .actuation = ActuationMode::off});
  EXPECT_EQ(off.step(data), 0);
}

/// Springs, dampers and ranges of tendons still act, and so does the fluid.
TEST(Servo, WithoutActuationAModelIsAsOneWithoutActuators) {
  const std::string passive =
      "<option density='1000' viscosity='.01'/><tendon><spatial name='s' stiffness='40' damping='2' limited='true' "
      "range='0 .9'><site site='w'/><site site='sb'/></spatial><fixed name='f'><joint joint='j' coef='1'/>"
      "<joint joint='k' coef='-.5'/></fixed></tendon>";
  const std::string joint = "damping='.1'", driven = actuators(
                                                "<position tendon='s' kp='300' kv='20'/><motor "
                                                "tendon='f' gear='30'/><motor site='sb' gear='1 2 3'/>");
  for (const std::string& own :
       {passive, std::string("<tendon><fixed name='s'><joint joint='j' coef='1'/></fixed>"
                             "<fixed name='f'><joint joint='k' coef='1'/></fixed></tendon>")}) {
    const Model with = arm(own + driven, joint), without = arm(own, joint);
    for (const bool joints : {false, true}) {
      StepOptions options{.dt = kStep, .actuation = ActuationMode::off};
      options.rows.joints = joints;
      const std::vector<double> limp = run(with, {1, 1, 1}, 100, options);
      EXPECT_EQ(limp, run(without, {}, 100, options));
      EXPECT_NE(limp, run(with, {1, 1, 1}, 100, {.dt = kStep}));
    }
  }
}

/// A hammer on a slide hits what a tendon may let move by 0.2 m, and would throw it farther within the step. At its
/// start nothing says that the tendon comes near its end.
TEST(Servo, NothingIsThrownPastTheEndOfATendonsRange) {
  const std::string fixed = "<fixed range='-1 .2'><joint joint='b' coef='1'/></fixed>",
                    wound = "<fixed range='-.2 1'><joint joint='b' coef='-1'/></fixed>",
                    spatial = "<spatial range='0 .7'><site site='w'/><site site='s'/></spatial>";
  for (const std::string& tendon : {fixed, wound, spatial}) {
    const Model model = compile(parse_mjcf(
        "<mujoco><compiler autolimits='true'/><worldbody><site name='w' pos='-.3 0 0'/>"
        "<body><joint name='a' type='slide' axis='1 0 0'/><geom type='sphere' size='.05' mass='1'/></body>"
        "<body pos='.2 0 0'><joint name='b' type='slide' axis='1 0 0'/><geom type='sphere' size='.05' mass='.5'/>"
        "<site name='s'/></body></worldbody><tendon>" +
            tendon + "</tendon></mujoco>",
        "hammer.xml", "."));
    Data data(model);
    StepOptions options = kPlain;
    options.rows.contacts = options.rows.joints = true;
    Stepper<double> stepper(model, data, options);
    data.qvel[0] = 30;
    double farthest = 0, fastest = 0, range = 0;
    for (int step = 0; step < 10; ++step) {
      ASSERT_EQ(stepper.step(data), 0);
      farthest = std::max(farthest, data.qpos[1]), fastest = std::max(fastest, data.qvel[1]);
      range = std::max(range, stepper.tendon_forces(0).range);
      EXPECT_LE(stepper.rows_report(0)->residual, 1e-6);
    }
    EXPECT_NEAR(farthest, 0.2, 0.015) << tendon;  // the range gives a little: at 30 m/s it would be 0.5
    EXPECT_GT(fastest, 5) << tendon;
    EXPECT_GT(range, 100) << tendon;
  }
}

}  // namespace
}  // namespace tarsus
