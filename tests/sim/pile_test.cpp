// Piles of many bodies in the step: which terms sweeps solve, and which remain for Newton's method.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "support/numbers.hpp"
#include "support/random_model.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/rigid_model.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::test {
namespace {

std::string box(const Vec3d& at, double half) {
  char text[256];
  std::snprintf(text, sizeof text,
                "<body pos='%g %g %g'><freejoint/><geom type='box' size='%g %g %g' density='1000'/></body>\n", at.x,
                at.y, at.z, half, half, half);
  return text;
}

/// n³ boxes with a gap between neighbours, from `corner` on.
std::string cube(int n, double half, double gap, const Vec3d& corner) {
  std::string out;
  for (int k = 0; k < n; ++k) {
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < n; ++i)
        out += box(corner + Vec3d{i * (2 * half + gap), j * (2 * half + gap), half + 2 * half * k}, half);
    }
  }
  return out;
}

Model scene(const std::string& bodies, const char* gravity = "0 0 -9.81") {
  const std::string text =
      "<mujoco><option gravity='" + std::string(gravity) + "'/><worldbody>" + bodies + "</worldbody></mujoco>";
  return compile(parse_mjcf(text, "pile", "."));
}

const std::string kPlane = "<geom type='plane' size='0 0 1'/>";

StepOptions options() {
  StepOptions o;
  o.rows.contacts = o.rows.joints = true;
  return o;
}

/// n layers of boxes, each box on four below.
std::string pyramid(int n, double half) {
  std::string out;
  for (int k = 0; k < n; ++k) {
    for (int j = 0; j < n - k; ++j) {
      for (int i = 0; i < n - k; ++i)
        out += box(Vec3d{half * 2.2 * (i + 0.5 * k), half * 2.2 * (j + 0.5 * k), half * (2 * k + 1)}, half);
    }
  }
  return out;
}

/// A pyramid of 204 boxes carries its weight on the ground, solved by Newton's method and by sweeps. A separate box is
/// not part of this contact island: Newton's method keeps it at rest to rounding.
TEST(Pile, RestsOnItsWeight) {
  const double half = 0.1, weight = 8000 * half * half * half * 9.81;
  const int boxes = 204, measured = 60;
  const Model model = scene(kPlane + pyramid(8, half) + box({-1, -1, half}, half));
  for (const bool swept : {false, true}) {
    SCOPED_TRACE(swept ? "sweeps" : "Newton");
    StepOptions o = options();
    o.rows.piles.most_operations = swept ? 0 : 1e9;
    Data data(model);
    Stepper<double> stepper(model, data, o);
    AlignedVector<double> ground(std::size_t(3) * model.njoint());
    double mean = 0, alone = 0, residual = 0;
    for (int i = 0; i < 120; ++i) {
      ASSERT_EQ(stepper.step(data), 0);
      const RowsReport& report = stepper.rows()->report();
      EXPECT_EQ(report.status, swept ? StepStatus::swept : StepStatus::converged);
      EXPECT_EQ(report.piled, swept ? report.contacts - 4 : 0);
      EXPECT_LT(report.penetration, 2e-3);
      residual = std::max(residual, report.residual);
      if (i < 120 - measured) continue;
      stepper.ground_force(0, ground);
      for (int link = 0; link < boxes; ++link) mean += ground[3 * link + 2] / measured;
      alone = std::max(alone, std::abs(ground[3 * boxes + 2] - weight));
    }
    EXPECT_LT(residual, swept ? 0.05 : 1e-6);
    EXPECT_NEAR(mean, boxes * weight, (swept ? 2e-3 : 1e-6) * boxes * weight);
    EXPECT_LT(alone, 1e-6 * weight);
  }
}

/// Two cubes of 64 boxes collide without gravity. Contacts conserve momentum.
TEST(Pile, KeepsItsMomentum) {
  const int n = 4, bodies = 2 * n * n * n;
  const double half = 0.1;
  const Model model = scene(cube(n, half, 0.001, {0, 0, 0}) + cube(n, half, 0.001, {0.9, 0.13, 0.07}), "0 0 0");
  Data data(model);
  Random random(7);
  for (int i = 0; i < bodies; ++i) {
    double* v = &data.qvel[6 * i];
    v[0] = i < bodies / 2 ? 3 : -3;
    for (int k = 3; k < 6; ++k) v[k] = random.uniform(-2, 2);
  }
  StepOptions o = options();
  o.rows.piles.least_trees = 2, o.rows.piles.most_operations = 0;
  Stepper<double> stepper(model, data, o);
  Vec3d linear, angular, first_linear, first_angular;
  const auto measure = [&](Vec3d& p, Vec3d& L) {
    kinematics<double>(model, data, data.qpos, data.qvel);
    p = L = {0, 0, 0};
    for (int i = 0; i < bodies; ++i) {
      const LinkState<double>& link = data.links()[i];
      const double m = 8000 * half * half * half;
      p += link.v.v * m;
      L += cross(link.o, link.v.v) * m + link.v.w * (m * half * half * 2 / 3);
    }
  };
  measure(first_linear, first_angular);
  int most = 0;
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(stepper.step(data), 0);
    most = std::max(most, stepper.rows()->report().touching);
  }
  measure(linear, angular);
  EXPECT_GT(most, 100);
  const double size = bodies * 8 * 3;  // kg m/s that were exchanged
  EXPECT_LT(norm(linear - first_linear), 1e-10 * size);
  EXPECT_LT(norm(angular - first_angular), 1e-10 * size);  // a step along the end velocities does not change x × m v
}

/// Where more contacts act than Newton's method may eliminate, the step starts again with sweeps. A four-bar linkage
/// that swings beside two colliding cubes of 64 boxes must move as it does without them.
TEST(Pile, LoopsHoldWhereAStepBeginsAnew) {
  const std::string linkage = R"(
    <body pos='-2 0 2'><joint type='hinge' axis='0 1 0'/><geom size='.03' fromto='0 0 0 0 0 -.4' contype='0'/>
      <body name='c' pos='0 0 -.4'><joint type='hinge' axis='0 1 0'/>
        <geom size='.03' fromto='0 0 0 .5 0 0' contype='0'/></body></body>
    <body name='b' pos='-1.5 0 2'><joint type='hinge' axis='0 1 0'/>
      <geom size='.03' fromto='0 0 0 0 0 -.4' contype='0'/></body>)";
  const auto model_with = [&](const std::string& boxes) {
    return compile(
        parse_mjcf("<mujoco><default><geom type='capsule'/></default><worldbody>" + linkage + boxes +
                       "</worldbody><equality><connect body1='c' body2='b' anchor='.5 0 0'/></equality></mujoco>",
                   "pile", "."));
  };
  const Model alone = model_with(""),
              both = model_with(cube(4, 0.1, 0.001, {0, 0, 0}) + cube(4, 0.1, 0.001, {1, 0.13, 0.07}));
  StepOptions o = options();
  o.rows.piles.least_trees = 2, o.rows.piles.most_operations = 1e5;
  Data wanted(alone), data(both);
  for (Data* d : {&wanted, &data}) d->qvel[0] = 3, d->qvel[1] = -3, d->qvel[2] = 3;
  for (int i = 0; i < 64; ++i) data.qvel[3 + 6 * i] = 3, data.qvel[3 + 6 * (64 + i)] = -3;
  Stepper<double> reference(alone, wanted, o), stepper(both, data, o);
  int anew = 0;
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(reference.step(wanted), 0);
    ASSERT_EQ(stepper.step(data), 0);
    const RowsReport& report = stepper.rows()->report();
    anew += report.iterations > 0 && report.piled > 0;
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(data.qvel[k], wanted.qvel[k], 1e-8) << i;
  }
  EXPECT_GT(anew, 0);
}

/// Bodies of all kinds are poured into a box and come to rest in it: some 300 contacts, most of which slide or turn
/// over in a step. Newton's method alone leaves one of eleven steps unsolved.
TEST(Pile, WhatIsPouredIntoABoxEndsWithinTheTolerance) {
  const double wall = 0.8;
  std::string bodies = kPlane;
  for (const double side : {-wall, wall}) {
    char text[256];
    std::snprintf(text, sizeof text, "<geom type='box' size='0.05 0.8 1' pos='%g 0 1'/>", side), bodies += text;
    std::snprintf(text, sizeof text, "<geom type='box' size='0.8 0.05 1' pos='0 %g 1'/>", side), bodies += text;
  }
  const char* const kinds[] = {"box", "capsule", "ellipsoid", "cylinder", "sphere"};
  Random random(3);
  for (int i = 0; i < 72; ++i) {
    const auto size = [&] { return random.uniform(0.05, 0.11); };
    const Vec3d at{(i % 3 - 1) * 0.45 + random.uniform(-0.03, 0.03), (i / 3 % 3 - 1) * 0.45, 0.3 + 0.45 * (i / 9)};
    const double first = random.uniform(0, 360), second = random.uniform(0, 360);
    const Vec3d sizes{size(), size(), size()};
    char text[512];
    std::snprintf(
        text, sizeof text,
        "<body pos='%g %g %g' euler='%g %g 0'><freejoint/><geom type='%s' size='%g %g %g' density='800'/></body>", at.x,
        at.y, at.z, first, second, kinds[i % 5], sizes.x, sizes.y, sizes.z);
    bodies += text;
  }
  const Model model = scene(bodies);
  Data data(model);
  Stepper<double> stepper(model, data, options());
  int missed = 0, solves = 0, most = 0;
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(stepper.step(data), 0);
    const RowsReport& report = stepper.rows()->report();
    missed += report.status != StepStatus::converged, solves += report.iterations;
    most = std::max(most, report.touching);
    EXPECT_LT(report.residual, 0.01) << i;
  }
  EXPECT_GT(most, 150);
  EXPECT_LE(missed, 4);
  EXPECT_LT(solves, 200 * 16);  // two or more solves in a step, since bodies roll
}

/// Limp characters that fall on one another, from six poses each. With sweeps over blocks of rows, and fewer of them,
/// four of these steps are left unsolved.
TEST(Pile, CharactersOnOneAnotherEndWithinTheTolerance) {
  for (const std::string name : {"humanoid", "dog"}) {
    SCOPED_TRACE(name);
    std::ifstream file(TARSUS_SOURCE_DIR "/models/" + name + ".xml");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t body = text.find("<body"), end = text.rfind("</body>");
    ASSERT_LT(body, end);
    int missed = 0, between = 0;
    for (int fall = 0; fall < 6; ++fall) {
      char replicate[128];
      std::snprintf(replicate, sizeof replicate, "<replicate count='3' offset='%g 0.05 0.5' euler='%d 30 40'>",
                    0.1 + 0.013 * fall, 20 + 7 * fall);
      const Model model = compile(parse_mjcf(
          text.substr(0, body) + replicate + text.substr(body, end - body) + "</body></replicate></worldbody></mujoco>",
          "heap", "."));
      const int links = model.njoint() / 3;
      Data data(model);
      Stepper<double> stepper(model, data, options());
      for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(stepper.step(data), 0);
        const RowsReport& report = stepper.rows()->report();
        missed += report.status != StepStatus::converged;
        EXPECT_LT(report.residual, 1e-3) << i;
        for (const LinkContact& c : stepper.rows()->contacts()) between += c.b >= 0 && c.a / links != c.b / links;
      }
    }
    EXPECT_EQ(missed, 0);
    EXPECT_GT(between, 10000);
  }
}

/// The limp humanoid falls on 343 boxes and lies among them. The laws of its joints hold beside those of the large
/// contact island.
TEST(Pile, ACharacterAmongBoxes) {
  ModelSpec spec = read_mjcf(TARSUS_SOURCE_DIR "/models/humanoid.xml", {});
  const int own = compile(spec).njoint();
  const ModelSpec boxes = scene(kPlane + cube(7, 0.1, 0.002, {-0.6, -0.6, 0})).spec;
  for (const BodySpec& body : boxes.bodies) {
    if (body.parent == 0) spec.bodies.push_back(body);
  }
  const Model model = compile(spec);
  Data data(model);
  data.qpos[2] += 1.6;
  Stepper<double> stepper(model, data, options());
  double deepest = 0, beyond = 0, residual = 0;
  int on_boxes = 0;
  for (int i = 0; i < 120; ++i) {
    ASSERT_EQ(stepper.step(data), 0);
    const RowsReport& report = stepper.rows()->report();
    deepest = std::max(deepest, report.penetration), residual = std::max(residual, report.residual);
    for (const LinkContact& c : stepper.rows()->contacts()) on_boxes += c.a >= own && c.b >= 0 && c.b < own;
    for (int j = 0; j < own; ++j) {
      const Joint& joint = model.joints[j];
      if (!joint.limited || joint.nv() > 1) continue;
      const double q = data.qpos[joint.qpos];
      beyond = std::max({beyond, q - joint.range[1], joint.range[0] - q});
    }
  }
  EXPECT_GT(on_boxes, 100);
  EXPECT_LT(deepest, 0.015);  // eight starts 0.1 mm apart give 2.5 to 7.6 mm
  EXPECT_LT(beyond, 0.05);
  EXPECT_LT(residual, 3);  // in the step in which it strikes the boxes
}

/// docs/contact.md, "A heavy body on a light one". Four corners carry m g (1 + ratio) under the lower cube, whose
/// inverse mass is 1/m, and ratio m g between the two, whose inverse masses add up to (1 + 1/ratio)/m. With the default
/// compliance of 0.0144 h² times these, both layers are equally deep.
TEST(Pile, ALightBodyCarriesAnyMass) {
  for (const double ratio : {1.0, 10.0, 100.0, 1000.0}) {
    SCOPED_TRACE(ratio);
    RigidScene two = box_stack(2);
    two.bodies[1].mass *= ratio, two.bodies[1].inertia = two.bodies[1].inertia * ratio;
    const Model model = compile(scene_spec(two));
    Data data(model);
    Stepper<double> stepper(model, data, options());
    int iterations = 0;
    for (int i = 0; i < 300; ++i) {
      ASSERT_EQ(stepper.step(data), 0);
      iterations = std::max(iterations, stepper.rows()->report().iterations);
    }
    const double h = stepper.options().dt, depth = 0.0144 * h * h * (1 + ratio) * kGravity / 4;
    EXPECT_NEAR(data.qpos[2], 0.5 - depth, 1e-3 * depth);
    EXPECT_NEAR(data.qpos[9], 1.5 - 2 * depth, 1e-3 * depth);
    EXPECT_LE(iterations, 3);
    for (const double v : data.qvel) EXPECT_LT(std::abs(v), 1e-9);
  }
}

}  // namespace
}  // namespace tarsus::test
