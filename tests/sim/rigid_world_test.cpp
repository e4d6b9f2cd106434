// Free bodies with contact against closed forms and conservation laws.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <set>
#include <thread>
#include <tuple>

#include "support/numbers.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/sim/rigid_scene.hpp"

namespace tarsus {
namespace {

using test::kGravity;

template <class R = double>
RigidStepReport run(RigidWorld<R>& world, double duration) {
  RigidStepReport report;
  const int steps = int(std::lround(duration / world.options().dt));
  for (int i = 0; i < steps; ++i) {
    report = world.step();
    EXPECT_EQ(report.status, WorldStatus::ok) << "step " << i;
    if (report.status != WorldStatus::ok) break;
  }
  return report;
}

Shape ball(double radius) { return {ShapeType::sphere, {radius, 0, 0}}; }

TEST(RigidWorld, SinksByComplianceTimesWeight) {
  for (double epsilon : {1e-4, 1e-3}) {
    RigidScene one;
    one.add_floor();
    one.surfaces[0].compliance = 0.5 * epsilon;  // the compliances of floor and body add up
    one.add(ball(0.3), 2, {0, 0, 0.3});
    one.options.iterations = 200, one.options.gravity = {0, 0, -kGravity};
    RigidWorld<double> world = make_world<double>(one);
    run(world, 5);
    EXPECT_NEAR(0.3 - world.bodies()[0].position.z, epsilon * 2 * kGravity, 1e-9);
    // A box stands on four points: k = 4.
    RigidScene box;
    box.add_floor();
    box.surfaces[0].compliance = 0.5 * epsilon;
    box.add({ShapeType::box, {0.4, 0.3, 0.2}}, 2, {0, 0, 0.2});
    box.options = one.options;
    RigidWorld<double> four = make_world<double>(box);
    const RigidStepReport r = run(four, 5);
    EXPECT_EQ(r.touching, 4);
    EXPECT_NEAR(0.2 - four.bodies()[0].position.z, epsilon * 2 * kGravity / 4, 1e-7);
  }
}

TEST(RigidWorld, SlidingBoxStopsWhereItShould) {
  // x = v²/(2 μ g) - v h/2 + O(h²)
  const double mu = 0.4, v = 3;
  double last_error = 0;
  for (double h : {1.0 / 60, 1.0 / 120, 1.0 / 240}) {
    RigidScene scene = box_stack(1);
    scene.surfaces[0].friction = mu;
    scene.options.dt = h, scene.options.iterations = 100;
    scene.bodies[0].velocity = {v, 0, 0};
    RigidWorld<double> world = make_world<double>(scene);
    run(world, 2);
    const double error = std::abs(world.bodies()[0].position.x - (v * v / (2 * mu * kGravity) - v * h / 2));
    EXPECT_LT(error, 40 * h * h) << "h = " << h;
    if (last_error > 1e-4) {
      EXPECT_LT(error, 0.5 * last_error + 1e-4);
    }
    last_error = error;
    EXPECT_LT(norm(world.bodies()[0].velocity), 1e-6);
  }
}

TEST(RigidWorld, SticksBelowTheFrictionAngleAndSlidesAbove) {
  const double mu = 0.5, angle = std::atan(mu);
  for (double offset : {-0.02, 0.02, 0.2}) {
    RigidScene scene = slope(angle + offset, mu);
    scene.options.iterations = 200;
    RigidWorld<double> world = make_world<double>(scene);
    const Vec3d start = world.bodies()[0].position;
    run(world, 2);
    const double moved = norm(world.bodies()[0].position - start);
    if (offset < 0) {
      EXPECT_LT(moved, 1e-3);
      continue;
    }
    const double a = kGravity * (std::sin(angle + offset) - mu * std::cos(angle + offset));
    EXPECT_NEAR(moved, 0.5 * a * 4, 0.03 * 0.5 * a * 4) << offset;
  }
}

TEST(RigidWorld, BallSlidesThenRollsAtFiveSeventhsOfItsSpeed) {
  RigidScene scene;
  scene.add_floor();
  scene.add(ball(0.5), 3, {0, 0, 0.5});
  scene.bodies[0].velocity = {2, 1, 0};
  RigidWorld<double> world = make_world<double>(scene);
  run(world, 2);
  const RigidBody& b = world.bodies()[0];
  EXPECT_NEAR(b.velocity.x, 2 * 5. / 7, 1e-2);
  EXPECT_NEAR(b.velocity.y, 1 * 5. / 7, 1e-2);
  // The sphere rolls without slipping, up to the ratio of its penetration to its radius.
  EXPECT_NEAR(b.angular_velocity.y * 0.5, b.velocity.x, 3e-4);
  EXPECT_NEAR(b.angular_velocity.x * 0.5, -b.velocity.y, 3e-4);
}

TEST(RigidWorld, ColumnCarriesItsWeight) {
  const int n = 10;
  RigidScene scene = box_stack(n, 1, 2);
  scene.options.iterations = 50;
  RigidWorld<double> world = make_world<double>(scene);
  run(world, 10);
  std::vector<double> carried(std::size_t(n), 0.0);
  for (std::size_t i = 0; i < world.contacts().size(); ++i) {
    const auto& c = world.contacts()[i];
    carried[std::size_t(std::max(c.body_a, c.body_b))] += world.impulses()[i].normal / world.options().dt;
  }
  for (int i = 0; i < n; ++i) {
    const double expected = (n - i) * 2 * kGravity;
    EXPECT_NEAR(carried[std::size_t(i)], expected, 1e-3 * expected) << "box " << i;
  }
}

TEST(RigidWorld, BounceKeepsTheCoefficientOfRestitution) {
  for (double e : {0.5, 0.8, 1.0}) {
    RigidScene scene;
    scene.add_floor();
    scene.surfaces[0].restitution = e;
    scene.add(ball(0.1), 1, {0, 0, 0.35});
    scene.bodies[0].velocity = {0, 0, -3};
    scene.options.dt = 1e-3, scene.options.gravity = {0, 0, 0};
    RigidWorld<double> world = make_world<double>(scene);
    run(world, 0.3);
    EXPECT_NEAR(world.bodies()[0].velocity.z, 3 * e, 1e-9);
  }
}

/// Balls that fill a closed box are often struck while they leave another contact.
TEST(RigidWorld, BouncingBallsGainNoEnergy) {
  for (const double e : {1.0, 0.9, 0.3}) {
    for (const double h : {1.0 / 60, 1.0 / 240}) {
      SCOPED_TRACE(testing::Message() << "e " << e << ", h " << h);
      RigidScene scene;
      scene.add_floor(1);
      scene.add_fixed({ShapeType::plane}, {{0, 0, 2}, rotation(axis_angle({1, 0, 0}, std::numbers::pi))});
      for (Surface& s : scene.surfaces) s.restitution = e, s.friction = 0;
      std::mt19937 engine(1);
      std::normal_distribution<double> speed(0, 2.5);
      for (int i = 0; i < 8; ++i) {
        const auto at = [](int bit) { return bit ? 0.475 : -0.475; };
        scene.add(ball(0.4), 1, {at(i & 1), at(i & 2), 1 + at(i & 4)});
        scene.bodies.back().velocity = {speed(engine), speed(engine), speed(engine)};
      }
      scene.options.gravity = {0, 0, 0}, scene.options.dt = h;
      RigidWorld<double> world = make_world<double>(scene);
      const double start = world.kinetic_energy();
      for (int i = 0; i < int(20 / h); ++i) {
        world.step();
        ASSERT_LT(world.kinetic_energy(), 1.02 * start) << "step " << i;
        for (const RigidBody& b : world.bodies())
          ASSERT_LT(std::max({std::abs(b.position.x), std::abs(b.position.y), std::abs(b.position.z - 1)}), 0.9);
      }
    }
  }
}

TEST(RigidWorld, NewtonsCradlePassesItsSpeedOn) {
  // A row of equal balls with small gaps and e = 1: the first stops, and the last leaves with its speed.
  RigidScene scene;
  scene.add_floor();
  scene.surfaces[0].restitution = 1, scene.surfaces[0].friction = 0;
  for (int i = 0; i < 5; ++i) scene.add(ball(0.1), 1, {0.21 * i + (i ? 0.3 : 0), 0, 1});
  scene.bodies[0].velocity = {2, 0, 0};
  scene.options.gravity = {0, 0, 0}, scene.options.dt = 1e-3, scene.options.margin = 0.001;
  RigidWorld<double> world = make_world<double>(scene);
  run(world, 1);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(world.bodies()[std::size_t(i)].velocity.x, 0, 1e-9) << i;
  EXPECT_NEAR(world.bodies()[4].velocity.x, 2, 1e-9);
}

TEST(RigidWorld, MomentumIsConservedInCollisions) {
  RigidScene scene;
  scene.surfaces.emplace_back();
  scene.options.gravity = {0, 0, 0};
  const Shape shapes[3] = {ball(0.4), {ShapeType::box, {0.3, 0.4, 0.5}}, {ShapeType::capsule, {0.2, 0.4, 0}}};
  for (int i = 0; i < 27; ++i) {
    const Vec3d p = {double(i % 3) - 1, double(i / 3 % 3) - 1, double(i / 9) - 1};
    scene.add(shapes[i % 3], 1 + i % 2, p * 1.1, axis_angle({1, 0.5, 0.2}, 0.3 * i));
    scene.bodies.back().velocity = p * -2;
    scene.bodies.back().angular_velocity = {0.3 * (i % 5), -0.2, 0.1};
  }
  RigidWorld<double> world = make_world<double>(scene);
  const Vec3d p = world.momentum(), l = world.angular_momentum();
  int touching = 0;
  for (int i = 0; i < 60; ++i) touching += world.step().touching;
  EXPECT_GT(touching, 50);
  EXPECT_LT(norm(world.momentum() - p), 1e-12);
  // Contact forces act at the same point on both bodies. The drift is that of torque-free rotation alone, of first
  // order in the step.
  EXPECT_LT(norm(world.angular_momentum() - l), 0.02 * 27);
}

TEST(RigidWorld, AngularMomentumOfSpheresToRounding) {
  RigidScene scene;
  scene.surfaces.emplace_back();
  scene.options.gravity = {0, 0, 0};
  for (int i = 0; i < 27; ++i) {
    const Vec3d p = {double(i % 3) - 1, double(i / 3 % 3) - 1, double(i / 9) - 1};
    scene.add(ball(0.5), 1 + i % 4, p * 1.1);
    scene.bodies.back().velocity = p * -1 + Vec3d{0.1 * i, 0, -0.05 * i};
    scene.bodies.back().angular_velocity = {0.3 * (i % 5), -0.2 * i, 0.1};
  }
  RigidWorld<double> world = make_world<double>(scene);
  const Vec3d p = world.momentum(), l = world.angular_momentum();
  run(world, 2);
  EXPECT_LT(norm(world.momentum() - p), 1e-11);
  EXPECT_LT(norm(world.angular_momentum() - l), 1e-11);
}

TEST(RigidWorld, ResultDoesNotDependOnThreads) {
  RigidScene scene = ball_drop(8, 12);  // fewer bodies are not shared among three threads
  for (int i = 0; i < 8; ++i)
    scene.add({ShapeType::box, {0.3, 0.4, 0.5}}, 1, {-2 + 0.6 * i, 0.3, 13}, axis_angle({1, 0, 0}, i));
  scene.options.iterations = 3;  // threads wait long for one another where other programs use the cores
  const auto hash = [&](int threads, auto precision) {
    scene.options.threads = threads;
    auto world = make_world<decltype(precision)>(scene);
    run(world, 1);
    return world.state_hash();
  };
  const auto one = hash(1, 0.0);
  EXPECT_EQ(one, hash(2, 0.0));
  EXPECT_EQ(one, hash(3, 0.0));
#ifndef TARSUS_DOUBLE_ONLY
  EXPECT_EQ(hash(1, 0.0f), hash(2, 0.0f));
  EXPECT_EQ(hash(1, 0.0f), hash(3, 0.0f));
  EXPECT_NE(one, hash(1, 0.0f));
  scene.surfaces[0].torsional = 0.03, scene.surfaces[0].rolling = 0.02;
  const auto turning = hash(1, 0.0f);
  EXPECT_NE(turning, one);
  EXPECT_EQ(turning, hash(2, 0.0f));
  EXPECT_EQ(turning, hash(3, 0.0f));
#endif
}

TEST(RigidWorld, UsesNoMoreThreadsThanHelp) {
  for (const auto& [scene, threads] : {std::pair{box_stack(3), 1}, {ball_drop(8, 12), 3}}) {
    RigidScene many = scene;
    many.options.threads = 256;
    RigidWorld<double> world = make_world<double>(many);
    world.step();
    EXPECT_EQ(world.threads(), ThreadTeam::useful(threads));
  }
  EXPECT_GE(ThreadTeam::useful(256), 1);
  EXPECT_LE(ThreadTeam::useful(256), int(std::thread::hardware_concurrency()));
}

TEST(RigidWorld, SpinningBallStopsByTorsionWhenItShould) {
  // Torque μ_τ m g about the normal: ω = ω₀ - μ_τ m g t/I until t = ω₀ I/(μ_τ m g), then ω = 0.
  const double torsional = 0.02, r = 0.5, m = 2, inertia = 0.4 * m * r * r, spin = 3;
  const double slowing = torsional * m * kGravity / inertia, stop = spin / slowing;
  RigidScene scene;
  scene.add_floor();
  scene.surfaces[0].torsional = torsional;
  scene.add(ball(r), m, {0, 0, r});
  scene.options.dt = 1.0 / 240, scene.options.iterations = 100;
  scene.bodies[0].angular_velocity = {0, 0, spin};
  RigidWorld<double> world = make_world<double>(scene);
  run(world, 0.5 * stop);
  EXPECT_NEAR(world.bodies()[0].angular_velocity.z, spin - slowing * world.time(), 1e-2);
  EXPECT_NEAR(world.moments()[0].moment[2] / scene.options.dt, -torsional * m * kGravity, 1e-3);
  run(world, 0.5 * stop - 0.02);
  EXPECT_GT(world.bodies()[0].angular_velocity.z, 0.01);
  run(world, 0.04);
  EXPECT_LT(std::abs(world.bodies()[0].angular_velocity.z), 1e-9);
}

TEST(RigidWorld, RollingBallStopsWhereItShould) {
  // Rolling resistance M = μ_ρ m g: a = M r/(I + m r²), and a path of v²/(2 a) - v h/2.
  const double rolling = 0.05, r = 0.5, m = 2, inertia = 0.4 * m * r * r, v = 2;
  const double a = rolling * m * kGravity * r / (inertia + m * r * r);
  double last = 0;
  for (double h : {1.0 / 60, 1.0 / 120, 1.0 / 240}) {
    RigidScene scene;
    scene.add_floor();
    scene.surfaces[0].rolling = rolling;
    scene.add(ball(r), m, {0, 0, r});
    scene.options.dt = h, scene.options.iterations = 200;
    scene.bodies[0].angular_velocity = {0, v / r, 0}, scene.bodies[0].velocity = {v, 0, 0};
    RigidWorld<double> world = make_world<double>(scene);
    run(world, v / a + 0.5);
    const double error = std::abs(world.bodies()[0].position.x - (v * v / (2 * a) - v * h / 2));
    EXPECT_LT(error, 3e-3 + 2 * h * h) << "h = " << h;  // it penetrates, and rolls on a smaller radius
    EXPECT_LT(norm(world.bodies()[0].velocity), 1e-6);
    last = error;
  }
  EXPECT_LT(last, 2e-3);
}

TEST(RigidWorld, TumblingBodiesKeepTheirEnergyForAMinute) {
  for (const auto& [rate, error] : {std::pair{3.0, 0.001}, {10.0, 0.01}, {30.0, 0.01}, {60.0, 0.01}, {200.0, 0.01}}) {
    RigidScene scene;
    scene.surfaces.emplace_back();
    scene.options.gravity = {0, 0, 0};
    scene.add({ShapeType::box, {0.1, 0.4, 1}}, 1, {0, 0, 0});
    scene.bodies[0].angular_velocity = Vec3d{0.02, 1, 0.02} * rate;  // about the middle axis: it tumbles
    RigidWorld<double> world = make_world<double>(scene);
    const double energy = world.kinetic_energy(), momentum = norm(world.angular_momentum());
    for (int i = 0; i < 3600; ++i) {
      world.step();
      ASSERT_NEAR(world.kinetic_energy(), energy, error * energy) << rate << " rad/s, step " << i;
      ASSERT_NEAR(norm(world.angular_momentum()), momentum, error * momentum) << rate << " rad/s, step " << i;
    }
  }
}

TEST(RigidWorld, SleepersStandStillAndWake) {
  RigidScene scene = box_stack(3);
  scene.add({ShapeType::sphere, {0.3, 0, 0}}, 0.5, {0, 0, 30});
  scene.options.sleep = true, scene.options.iterations = 30;
  RigidWorld<double> world = make_world<double>(scene);
  RigidStepReport r = run(world, 1.5);
  EXPECT_EQ(r.asleep, 3);
  EXPECT_EQ(r.islands, 2);
  const Vec3d before = world.bodies()[2].position;
  r = run(world, 0.2);
  EXPECT_EQ(norm(world.bodies()[2].position - before), 0);
  bool woke = false;
  for (int i = 0; i < 120; ++i) woke = woke || world.step().asleep == 0;
  EXPECT_TRUE(woke);  // the ball has landed
}

TEST(RigidWorld, SleepBeginsAfterHalfASecondAtAnyStep) {
  for (const double h : {1.0 / 60, 1.0 / 240, 1e-3}) {
    RigidScene scene = box_stack(1);
    scene.options.sleep = true, scene.options.dt = h;
    RigidWorld<double> world = make_world<double>(scene);
    while (world.step().asleep == 0 && world.time() < 2) continue;
    EXPECT_NEAR(world.time(), 0.5, 0.05) << h;
  }
}

TEST(RigidWorld, WhatIsSlowWithoutSupportDoesNotSleep) {
  const double h = 1.0 / 60, g = 0.01, time = 1;  // slower than the sleeping speed for a second
  RigidScene scene;
  scene.add_floor(1);
  for (Surface& s : scene.surfaces) s.friction = 0;
  for (const double x : {0.0, 0.9}) scene.add(ball(0.1), 1, {x, 0, 5});    // falls freely; beside a wall
  for (const double x : {-0.2, -0.4}) scene.add(ball(0.1), 1, {x, 0, 8});  // fall together
  scene.add(ball(0.1), 1, {0.5, 0, 0.1});
  scene.options.sleep = true, scene.options.gravity = {0, 0, -g}, scene.options.dt = h;
  RigidWorld<double> world = make_world<double>(scene);
  const RigidStepReport report = run(world, time);
  EXPECT_EQ(report.asleep, 1);  // on the floor
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(world.bodies()[std::size_t(i)].position.z, (i < 2 ? 5 : 8) - 0.5 * g * time * (time + h), 1e-6) << i;

  RigidScene space;  // what no force acts on rests where it is
  space.surfaces.emplace_back();
  space.add(ball(0.1), 1, {0, 0, 0}), space.add(ball(0.1), 1, {1, 0, 0});
  space.bodies[1].torque = {0, 0, 1e-2 * space.bodies[1].inertia.z};
  space.options.sleep = true, space.options.gravity = {0, 0, 0};
  RigidWorld<double> still = make_world<double>(space);
  EXPECT_EQ(run(still, time).asleep, 1);
  EXPECT_NEAR(still.bodies()[1].angular_velocity.z, 1e-2 * time, 1e-12);
}

/// Contacts of sleeping bodies are kept rather than found anew. They must equal those that a new world finds.
TEST(RigidWorld, SleepersContactsAreThoseThatWouldBeFound) {
  RigidScene scene = ball_drop(4, 2);
  for (int i = 0; i < 6; ++i)
    scene.add({ShapeType::box, {0.3, 0.4, 0.2}}, 1, {0.3 * (i % 2), 0.1 * i, 3 + 0.5 * i},
              axis_angle({1, 0, 0}, 0.1 * i));
  scene.add({ShapeType::sphere, {0.3, 0, 0}}, 0.5, {0, 0, 200});
  scene.options.sleep = true, scene.options.iterations = 50;
  scene.options.sleep_speed = 0.05, scene.options.sleep_spin = 0.1;
  scene.surfaces[0].rolling = scene.surfaces[0].torsional = 0.05;  // otherwise they roll for long
  RigidWorld<double> world = make_world<double>(scene);
  int slept = 0;
  for (int step = 0; step < 700; ++step) {
    if (step == 500) world.bodies()[3].position.z += 0.3;  // the test moves a sleeping body
    if (step == 600) world.options().margin = 0.03;
    RigidScene now = scene;
    now.bodies = world.bodies(), now.options.margin = world.options().margin;
    if (world.step().asleep > 10) ++slept;
    if (step % 20 != 0 && step != 501 && step != 601) continue;
    RigidWorld<double> fresh = make_world<double>(now);
    fresh.step();
    std::vector<std::tuple<int, int, std::uint32_t, double>> kept, found;
    const auto list = [](const RigidWorld<double>& w, auto& into) {
      for (std::size_t i = 0; i < w.contact_pairs().size(); ++i) {
        const auto& p = w.contact_pairs()[i];
        into.push_back({std::min(p.first, p.second), std::max(p.first, p.second), p.feature, w.contacts()[i].distance});
      }
      std::sort(into.begin(), into.end());
    };
    list(world, kept), list(fresh, found);
    ASSERT_EQ(kept.size(), found.size()) << "step " << step;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const auto [a, b, feature, distance] = kept[i];
      ASSERT_EQ(std::tuple(a, b, feature),
                std::tuple(std::get<0>(found[i]), std::get<1>(found[i]), std::get<2>(found[i])));
      ASSERT_NEAR(distance, std::get<3>(found[i]), 1e-12) << "step " << step;  // it has normalised its quaternions
    }
  }
  EXPECT_GT(slept, 200);
}

TEST(RigidWorld, BadInputIsAnErrorOrAStatusNeverAHang) {
  RigidWorldOptions bad;
  bad.dt = 0;
  EXPECT_THROW(RigidWorld<double>{bad}, ValueError);
  bad = {};
  bad.iterations = 0;
  EXPECT_THROW(RigidWorld<double>{bad}, ValueError);
  bad = {};
  bad.threads = 0;
  EXPECT_THROW(RigidWorld<double>{bad}, ValueError);
  RigidWorld<double> world;
  world.add_surface({});
  EXPECT_THROW(world.add_body({.mass = 0}), ValueError);
  EXPECT_THROW(world.add_body({.inertia = {1, -1, 1}}), ValueError);
  EXPECT_THROW(world.add_body({.velocity = {0, std::nan(""), 0}}), ValueError);
  EXPECT_THROW(world.add_body({.orientation = {0, 0, 0, 0}}), ValueError);
  Surface rubber;
  rubber.restitution = 1.5;
  EXPECT_THROW(world.add_surface(rubber), ValueError);
  BodyShape shape;
  shape.surface = 3;
  EXPECT_THROW(world.add_shape(shape), ValueError);
  shape.surface = 0, shape.body = 0;
  EXPECT_THROW(world.add_shape(shape), ValueError);
  shape.body = -1, shape.shape.size.x = -1;
  EXPECT_THROW(world.add_shape(shape), ValueError);
  bad = {};
  bad.restitution_threshold = std::nan("");
  EXPECT_THROW(RigidWorld<double>{bad}, ValueError);
  // An empty world and bodies without a shape are valid.
  EXPECT_EQ(world.step().status, WorldStatus::ok);
  world.add_body({});
  EXPECT_EQ(world.step().contacts, 0);
}

TEST(RigidWorld, NumbersThatAreSpoiledBetweenStepsEndInAStatusOrAnError) {
  RigidWorld<double> world = make_world<double>(box_stack(3));
  ASSERT_EQ(world.step().status, WorldStatus::ok);
  const RigidBody good = world.bodies()[1];
  const double nan = std::nan("");
  const auto spoiled = [&](const auto& spoil) {
    spoil(world.bodies()[1]);
    const std::uint64_t before = world.state_hash();
    EXPECT_EQ(world.step().status, WorldStatus::bad_input);
    EXPECT_EQ(world.state_hash(), before);
    world.bodies()[1] = good;
  };
  spoiled([&](RigidBody& b) { b.orientation.w = nan; });
  spoiled([&](RigidBody& b) { b.orientation.x = nan; });
  spoiled([&](RigidBody& b) { b.orientation.y = nan; });
  spoiled([&](RigidBody& b) { b.orientation.z = nan; });
  spoiled([&](RigidBody& b) { b.velocity.y = nan; });
  spoiled([&](RigidBody& b) { b.torque.z = nan; });
  spoiled([&](RigidBody& b) { b.mass = nan; });
  spoiled([&](RigidBody& b) { b.mass = -1; });
  spoiled([&](RigidBody& b) { b.inertia.z = 0; });
  for (double RigidWorldOptions::*number : {&RigidWorldOptions::dt, &RigidWorldOptions::restitution_threshold}) {
    const double given = world.options().*number;
    world.options().*number = nan;
    EXPECT_THROW(world.step(), ValueError);
    world.options().*number = given;
  }
  EXPECT_EQ(world.step().status, WorldStatus::ok);
}

TEST(RigidWorld, HugeSpeedsAndCoincidentCentresEndInAStatus) {
  RigidScene scene = ball_drop(3, 3);
  scene.bodies[0].position = scene.bodies[1].position;  // coincident
  scene.bodies[2].velocity = {1e4, -1e4, 1e4};          // 10 m/ms
  RigidWorld<double> world = make_world<double>(scene);
  for (int i = 0; i < 100; ++i) {
    const RigidStepReport r = world.step();
    if (r.status != WorldStatus::ok) break;
    for (const RigidBody& b : world.bodies()) ASSERT_TRUE(std::isfinite(b.position.x + b.position.y + b.position.z));
  }
  // NaN in a state: the status reports it, no body moves, and nothing is thrown.
  world.bodies()[4].velocity.x = std::nan("");
  const Vec3d before = world.bodies()[5].position;
  EXPECT_EQ(world.step().status, WorldStatus::bad_input);
  EXPECT_EQ(norm(world.bodies()[5].position - before), 0);
  world.bodies()[4].velocity = {1e9, 0, 0};
  EXPECT_EQ(world.step().status, WorldStatus::too_fast);
}

/// The kept pairs are all pairs within the margin, each once, whatever was kept from step to step.
TEST(RigidWorld, KeptPairsAreThoseOfAllPairs) {
  RigidScene scene = ball_drop(12, 4);
  scene.surfaces[0].rolling = scene.surfaces[0].torsional = 0.05;  // a pile at rest: pairs are updated, not found anew
  for (std::size_t i = 0; i < scene.shapes.size(); i += 7) scene.shapes[i].shape.size.x *= 0.9;  // of several sizes
  RigidWorld<double> world = make_world<double>(scene);
  run(world, 3);
  for (int step = 0; step < 200; ++step) {
    // A few fast bodies in a pile at rest; then all of them.
    if (step % 20 == 0) world.bodies()[std::size_t(step) * 2].velocity = {3, -2, 6};
    for (RigidBody& b : world.bodies()) b.velocity.z += step == 150 ? 4 : 0;
    std::set<std::pair<int, int>> expected, found;
    const auto& bodies = world.bodies();
    const auto& shapes = world.shapes();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      for (std::size_t j = i + 1; j < shapes.size(); ++j) {
        const BodyShape &a = shapes[i], &b = shapes[j];
        if (b.body < 0) continue;
        const Vec3d p = bodies[std::size_t(b.body)].position;
        const double gap = a.body < 0
                               ? dot(a.local.rotation.column_z(), p - a.local.position) - b.shape.size.x
                               : norm(p - bodies[std::size_t(a.body)].position) - a.shape.size.x - b.shape.size.x;
        if (gap <= scene.options.margin) expected.insert({int(i), int(j)});
      }
    }
    ASSERT_EQ(world.step().status, WorldStatus::ok);
    for (const auto& pair : world.contact_pairs()) {
      EXPECT_TRUE(found.insert(std::minmax(pair.first, pair.second)).second) << "a pair twice, step " << step;
    }
    ASSERT_EQ(found, expected) << "step " << step;
  }
}

TEST(RigidWorld, DroppedBallsComeToRestWithLittlePenetration) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  RigidScene scene = ball_drop(8, 8);
  scene.options.relative_compliance = 1e-5;
  RigidWorld<float> world = make_world<float>(scene);
  const RigidStepReport r = run(world, 10);
  EXPECT_GT(r.touching, 800);
  EXPECT_LT(r.penetration_max, 0.01);
  EXPECT_LT(r.penetration_mean, 0.002);
  EXPECT_LT(world.kinetic_energy() / 512, 1e-3);
}

}  // namespace
}  // namespace tarsus
