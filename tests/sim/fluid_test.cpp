// Bodies in fluids: drag and lift in a step, against closed forms and the energy.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/built_in.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {
namespace {

/// A free body of 2 kg with these moments of inertia, in a fluid.
Model free_body(const std::string& option, const std::string& moments, const std::string& geom,
                const std::string& rest = "") {
  return compile(parse_mjcf("<mujoco><option " + option + "/><worldbody><body pos='0 0 1'><freejoint/>" +
                                "<inertial pos='0 0 0' mass='2' diaginertia='" + moments + "'/>" + geom + "</body>" +
                                rest + "</worldbody></mujoco>",
                            "body", "."));
}

/// Quadratic drag f = -c |v| v alone reduces a velocity in a step to v/(1 + x) with x = h c |v|/m. A step agrees to
/// second order, and halves the velocity where x is large.
TEST(Fluid, QuadraticDragSlowsAsItShouldAndReversesNothing) {
  const double density = 1000, m = 2;
  const Model model = free_body("gravity='0 0 0' density='1000'", "0.04 0.05 0.06", "<geom size='.1'/>");
  // The box that has the mass and the moments of inertia.
  const double box[3] = {std::sqrt(6 * 0.07 / m), std::sqrt(6 * 0.05 / m), std::sqrt(6 * 0.03 / m)};
  for (int axis = 0; axis < 6; ++axis) {
    const int i = axis % 3, j = (axis + 1) % 3, k = (axis + 2) % 3;
    const double inertia = axis < 3 ? m : 0.04 + 0.01 * i;
    const double c = axis < 3 ? 0.5 * density * box[j] * box[k]
                              : density * box[i] * (std::pow(box[j], 4) + std::pow(box[k], 4)) / 64;
    for (const double h : {0.25, 1e-3, 5e-4}) {
      Data data(model);
      data.qvel[axis] = -3;
      StepOptions options{.dt = h};
      options.rows.contacts = axis % 2 == 0;
      Stepper<double> stepper(model, data, options);
      double v = -3;
      for (int n = 1; n <= 40; ++n) {
        ASSERT_EQ(stepper.step(data), 0);
        const double x = h * c * std::abs(v) / inertia;
        if (std::abs(x - 0.25) < 1e-3)
          v = data.qvel[axis];  // on the boundary between the implicit and the explicit regime
        else
          v *= x > 0.25 ? (1 + x + x * x) / (1 + 2 * x + 2 * x * x) : 1 - x;
        ASSERT_NEAR(data.qvel[axis] / v, 1, 1e-9) << "axis " << axis << ", step " << n;
      }
      const double x = h * c * 3 / inertia;
      if (x < 0.1) {
        EXPECT_NEAR(data.qvel[axis] * (1 + 40 * x) / -3, 1, 40 * x * x) << "axis " << axis;
      }
    }
  }
}

/// Stokes' drag: backward Euler of v' = -(K/m) v. The terminal speed, at which weight and drag balance, is exact to
/// rounding.
TEST(Fluid, LinearDragIsBackwardEulerAndEndsAtTheTerminalSpeed) {
  const double h = 0.1, m = 2, side = std::sqrt(6 * 0.05 / m);
  const double K = 3 * std::acos(-1.0) * side * 40;
  Model model = free_body("gravity='0 0 -9.81' viscosity='40'", "0.05 0.05 0.05", "<geom size='.1'/>");
  Data data(model);
  Stepper<double> stepper(model, data, {.dt = h});
  double v = data.qvel[0] = 5, fall = 0;
  for (int n = 0; n < 60; ++n) {
    ASSERT_EQ(stepper.step(data), 0);
    v /= 1 + h * K / m, fall = (fall - 9.81 * h) / (1 + h * K / m);
    ASSERT_NEAR(data.qvel[0], v, 1e-9 * 5) << n;
    ASSERT_NEAR(data.qvel[2], fall, 1e-9) << n;
  }
  EXPECT_NEAR(data.qvel[2], -m * 9.81 / K, 1e-9);
}

/// With quadratic drag too the terminal speed is exact. A falling body approaches it from one side, however long the
/// step.
TEST(Fluid, WhatFallsComesToItsTerminalSpeedWithoutSwinging) {
  const double m = 2, side = std::sqrt(6 * 0.05 / m), c = 0.5 * 1000 * side * side;
  const double terminal = -std::sqrt(m * 9.81 / c);
  const Model model = free_body("gravity='0 0 -9.81' density='1000'", "0.05 0.05 0.05", "<geom size='.1'/>");
  for (const double h : {0.01, 0.1, 1.0}) {
    for (const double start : {0.1 * terminal, 10 * terminal}) {
      Data data(model);
      data.qvel[2] = start;
      Stepper<double> stepper(model, data, {.dt = h});
      for (int n = 0; n < int(10 / h) + 20; ++n) {
        const double before = data.qvel[2];
        ASSERT_EQ(stepper.step(data), 0);
        const double gap = data.qvel[2] - terminal;
        if (n < 2 || std::abs(before - terminal) < 1e-9) continue;  // the first step's drag is that of the start
        ASSERT_LT(std::abs(gap), std::abs(before - terminal)) << h << ", from " << start << ", step " << n;
        ASSERT_GT(gap * (before - terminal), -1e-12) << h << ", from " << start << ", step " << n;
      }
      EXPECT_NEAR(data.qvel[2], terminal, 1e-9) << h << ", from " << start;
    }
  }
}

/// Drag uses the velocity at the end of the step, which includes the contacts. So it carries none of a resting body's
/// weight.
TEST(Fluid, WhatRestsInItPressesWithItsWeight) {
  const Model model = free_body("gravity='0 0 -9.81' viscosity='400'", "0.05 0.05 0.05",
                                "<geom type='box' size='.2 .2 .2'/>", "<geom type='plane' size='0 0 1'/>");
  Data data(model);
  data.qpos[2] = 0.2;
  StepOptions options;
  options.rows.contacts = true;
  Stepper<double> stepper(model, data, options);
  for (int n = 0; n < 600; ++n) ASSERT_EQ(stepper.step(data), 0);
  double held = 0;
  for (int i = 0; i < int(stepper.rows()->contacts().size()); ++i) held += stepper.rows()->terms().force(i).z;
  EXPECT_NEAR(held, 2 * 9.81, 1e-6);
}

/// Lift and added mass turn a velocity and add no energy, however long the step.
TEST(Fluid, LiftTakesNoEnergyAndGivesNone) {
  const Model model = free_body("gravity='0 0 0' density='800'", "0.05 0.05 0.05",
                                "<geom type='ellipsoid' size='.03 .1 .2' fluidshape='ellipsoid' "
                                "fluidcoef='0 0 0 1.5 1'/>");
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-3, 3);
  double turned = 0;
  for (int start = 0; start < 20; ++start) {
    Data data(model);
    for (double& v : data.qvel) v = uniform(random);
    const auto kinetic = [&] {
      double sum = 0;
      for (int i = 0; i < 6; ++i) sum += 0.5 * (i < 3 ? 2 : 0.05) * data.qvel[i] * data.qvel[i];
      return sum;
    };
    const double before = kinetic(), along = data.qvel[0];
    Stepper<double> stepper(model, data, {.dt = 1.0 / 30});
    for (int n = 0; n < 300; ++n) {
      ASSERT_EQ(stepper.step(data), 0);
      ASSERT_NEAR(kinetic() / before, 1, 1e-9) << "start " << start << ", step " << n;
    }
    turned = std::max(turned, std::abs(data.qvel[0] - along));
  }
  EXPECT_GT(turned, 1);
}

/// For parallel hinges in a frame that is not aligned with the world the drag across their plane has lever arms that
/// are only rounding errors.
TEST(Fluid, WhatALinkCannotFeelDoesNotHoldIt) {
  std::vector<double> ends[2];
  for (const int turned : {0, 1}) {
    const Model model = compile(parse_mjcf(
        std::string("<mujoco><option gravity='0 0 0' density='1000' viscosity='0.01'/><worldbody><body ") +
            (turned ? "euler='33 -41 17'" : "") +
            "><joint axis='0 1 0'/><geom type='capsule' fromto='0 0 0 .4 0 0' size='.03'/><body pos='.4 0 0'>"
            "<joint axis='0 1 0'/><geom type='ellipsoid' pos='.15 .02 0' size='.15 .05 .02' fluidshape='ellipsoid'/>"
            "</body></body></worldbody></mujoco>",
        "arm", "."));
    Data data(model);
    data.qvel[0] = 1, data.qvel[1] = 1.5;
    StepOptions options;
    options.rows.contacts = true;
    Stepper<double> stepper(model, data, options);
    for (int n = 0; n < 60; ++n) ASSERT_EQ(stepper.step(data), 0);
    ends[turned].assign(data.qpos.begin(), data.qpos.end());
    ends[turned].insert(ends[turned].end(), data.qvel.begin(), data.qvel.end());
  }
  for (std::size_t i = 0; i < ends[0].size(); ++i) EXPECT_NEAR(ends[0][i], ends[1][i], 1e-9) << i;
}

/// A part without a moment of inertia is dragged with its link.
TEST(Fluid, PartsWithoutInertiaDoNotUnsettleAStep) {
  const Model model = compile(parse_mjcf(
      "<mujoco><option density='1000'/><worldbody><geom type='plane' size='0 0 1'/><body pos='0 0 .2'><freejoint/>"
      "<geom size='.1' mass='1'/><body pos='.05 0 0'><inertial pos='0 0 0' mass='.1' diaginertia='0 0 0'/>"
      "<geom type='ellipsoid' size='.02 .03 .01' mass='0' fluidshape='ellipsoid' contype='0' conaffinity='0'/>"
      "</body></body></worldbody></mujoco>",
      "ball", "."));
  Data data(model);
  data.qvel[0] = 1, data.qvel[4] = 2;
  StepOptions options;
  options.rows.contacts = true;
  Stepper<double> stepper(model, data, options);
  for (int n = 0; n < 120; ++n) {
    ASSERT_EQ(stepper.step(data), 0);
    ASSERT_EQ(stepper.rows()->report().status, StepStatus::converged) << n;
  }
  EXPECT_NEAR(data.qpos[2], 0.1, 1e-3);
}

/// Down to speeds whose products underflow.
TEST(Fluid, WhatComesToRestStaysThere) {
  const Model model = free_body("gravity='0 0 0' density='1000' viscosity='40'", "0.01 0.02 0.03",
                                "<geom type='ellipsoid' size='.1 .2 .05' fluidshape='ellipsoid'/>");
  Data data(model);
  for (int i = 0; i < 6; ++i) data.qvel[i] = 1 + 0.5 * i;
  Stepper<double> stepper(model, data, {});
  for (int n = 0; n < 3000; ++n) ASSERT_EQ(stepper.step(data), 0) << n;
  for (const double v : data.qvel) EXPECT_NEAR(v, 0, 1e-200);
}

/// dm_control's fish and swimmer, limp, at 30 and 60 Hz, in a fluid that takes most of the speed within a step.
TEST(Fluid, WhatSwimsNeverGainsEnergy) {
  for (const char* name : {"fish", "swimmer"}) {
    const Model model = compile(read_model(test::shared_data() / "dm_control_suite" / (std::string(name) + ".xml")));
    std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (const double rate : {30.0, 60.0}) {
      for (const double speed : {1.0, 5.0, 20.0}) {
        for (int start = 0; start < 10; ++start) {
          Data data(model), work(model);
          for (double& v : data.qvel) v = speed * uniform(random);
          StepOptions options{.dt = 1 / rate, .actuation = ActuationMode::off};
          options.rows.joints = options.rows.contacts = true;
          Stepper<double> stepper(model, data, options);
          const auto energy_now = [&] {
            kinematics<double>(model, work, data.qpos, data.qvel);
            return energy<double>(model, work, data.qpos, data.qvel).kinetic;
          };
          const double before = energy_now();
          double last = before;
          for (int n = 0; n < 120; ++n) {
            ASSERT_EQ(stepper.step(data), 0) << name << " at " << rate << " Hz, start " << start << ", step " << n;
            const double now = energy_now();
            ASSERT_LT(now, last + 0.05 * before) << name << " at " << rate << " Hz, start " << start << ", step " << n;
            last = now;
          }
          EXPECT_LT(last, 0.9 * before);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tarsus
