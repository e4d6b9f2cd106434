// Particle systems against exact solutions, without files of other programs.
#include <gtest/gtest.h>

#include <cmath>

#include "md_reference.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus::md_test {
namespace {

ParticleSystem spinning_chain(int beads, double omega) {
  ParticleSystem system;
  system.constraints = ConstraintSet(beads);
  for (int i = 0; i < beads; ++i) {
    const double r = i - 0.5 * (beads - 1);
    system.mass.push_back(1.0);
    system.position.insert(system.position.end(), {r, 0, 0});
    system.velocity.insert(system.velocity.end(), {0, omega * r, 0});
    if (i > 0) system.constraints.add_distance(i - 1, i, 1.0);
  }
  return system;
}

// RATTLE turns the chain by asin(ω Δt) per step and keeps |v| = ω r: exact for the discrete equations.
TEST(ClosedForm, SpinningStraightChain) {
  for (const int beads : {32, 128, 1024}) {
    SCOPED_TRACE(beads);
    const double dt = 1.0, stability = 1.6, omega = stability / (std::sqrt(2.0) * dt * 0.5 * (beads - 1));
    ParticleSystem system = spinning_chain(beads, omega);
    VelocityVerlet verlet(system, {.timestep = dt, .tolerance = 1e-14});
    const double energy = kinetic_energy(system);
    const int steps = 300;
    int most = 0;
    for (int k = 0; k < steps; ++k) {
      const StepReport report = verlet.step();
      ASSERT_TRUE(report.ok) << report.message;
      most = std::max(most, report.position.iterations);
    }
    EXPECT_LE(most, 8);
    const double angle = steps * std::asin(omega * dt);
    double worst = 0, worst_speed = 0;
    for (int i = 0; i < beads; ++i) {
      const double r = i - 0.5 * (beads - 1), *x = &system.position[3 * i], *v = &system.velocity[3 * i];
      worst = std::max(worst, std::hypot(x[0] - r * std::cos(angle), x[1] - r * std::sin(angle), x[2]));
      worst_speed = std::max(worst_speed,
                             std::hypot(v[0] + omega * r * std::sin(angle), v[1] - omega * r * std::cos(angle), v[2]));
    }
    // Rounding (2e-16 of the half length per step) moves such a chain by its condition number, which grows as N².
    const double rounding = 1e-15 * steps * beads * beads;
    EXPECT_LT(worst, rounding);
    EXPECT_LT(worst_speed, rounding);
    EXPECT_NEAR(kinetic_energy(system), energy, 1e-11 * energy);
    // The tension's stiffness reproduces the stability number; the bound is exact for long chains.
    EXPECT_NEAR(verlet.stability(), stability, stability * 3.0 / beads);
  }
}

TEST(ClosedForm, SpinningChainDefeatsTheBooksShake) {
  const double omega = 1.6 / (std::sqrt(2.0) * 0.5 * 1023);
  ParticleSystem system = spinning_chain(1024, omega);
  const std::vector<double> before = system.position, speeds = system.velocity;
  VelocityVerlet verlet(system, {.timestep = 1.0, .solver = "shake", .tolerance = 1e-12, .max_iterations = 1000});
  const StepReport report = verlet.step();
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.position.status, SolveStatus::too_many_iterations);
  EXPECT_EQ(system.position, before);
  EXPECT_EQ(system.velocity, speeds);
  EXPECT_NE(report.message.find("particles"), std::string::npos) << report.message;
}

// No rotation by asin(ω Δt) exists beyond ω Δt = 1. The report gives the stability number although no step was done.
TEST(ClosedForm, AChainThatSpinsTooFastIsToldItsStabilityNumber) {
  for (const int beads : {2, 32, 1024}) {
    for (const double turn : {1.5, 40.0}) {
      SCOPED_TRACE(beads);
      ParticleSystem system = spinning_chain(beads, turn);
      const std::vector<double> before = system.position;
      const StepReport report = VelocityVerlet(system, {.timestep = 1.0}).step();
      EXPECT_FALSE(report.ok);
      EXPECT_TRUE(std::isfinite(report.position.residual)) << report.message;
      EXPECT_EQ(system.position, before);
      if (beads > 2) {  // the number is that of long chains
        const double expected = std::sqrt(2.0) * turn * 0.5 * (beads - 1);
        EXPECT_NEAR(report.stability, expected, expected * 3.0 / beads) << report.message;
      }
    }
  }
}

// Free rotor in continuous time: error over the step squared.
TEST(ClosedForm, FreeRotorConvergesWithSlopeTwo) {
  TARSUS_NEEDS_REFERENCE("water1.exact.frames");
  const std::vector<MdFrame> exact = read_md_frames(reference("water1.exact.frames"), 3);
  const MdFrame* last = nullptr;
  for (const MdFrame& frame : exact) {
    if (frame.step == 1000) last = &frame;
  }
  ASSERT_NE(last, nullptr);
  std::vector<double> errors;
  for (const double dt : {1.0, 0.5, 0.25, 0.125}) {
    ParticleSystem system = read_md_system(reference("water1.sys"));
    VelocityVerlet verlet(system, {.timestep = dt, .tolerance = 1e-14});
    run_steps(verlet, static_cast<int>(2000 / dt));
    errors.push_back(largest_difference(system.position, last->position));
  }
  for (std::size_t k = 1; k < errors.size(); ++k)
    EXPECT_NEAR(std::log2(errors[k - 1] / errors[k]), 2.0, 0.02) << "step " << k;
}

// Euler's equations of a free rigid body, by RK4 with steps so small that its error is 1e-12.
struct RigidBody {
  Quatd q{1, 0, 0, 0};
  Vec3d omega;  // body frame
  Vec3d inertia;

  void advance(double time, int steps) {
    const double h = time / steps;
    for (int k = 0; k < steps; ++k) {
      struct Rate {
        Quatd q;
        Vec3d w;
      };
      const auto rate = [&](const Quatd& p, const Vec3d& w) {
        const Quatd dq = p * Quatd{0, w.x, w.y, w.z};
        const Vec3d iw{inertia.x * w.x, inertia.y * w.y, inertia.z * w.z}, torque = cross(iw, w);
        return Rate{{0.5 * dq.w, 0.5 * dq.x, 0.5 * dq.y, 0.5 * dq.z},
                    {torque.x / inertia.x, torque.y / inertia.y, torque.z / inertia.z}};
      };
      const auto shifted = [&](const Rate& r, double s, Quatd& p, Vec3d& w) {
        p = {q.w + s * r.q.w, q.x + s * r.q.x, q.y + s * r.q.y, q.z + s * r.q.z}, w = omega + r.w * s;
      };
      Quatd p;
      Vec3d w;
      const Rate a = rate(q, omega);
      shifted(a, h / 2, p, w);
      const Rate b = rate(p, w);
      shifted(b, h / 2, p, w);
      const Rate c = rate(p, w);
      shifted(c, h, p, w);
      const Rate d = rate(p, w);
      const auto mean = [&](double x, double y, double z, double u) { return h / 6 * (x + 2 * y + 2 * z + u); };
      q = normalized(Quatd{q.w + mean(a.q.w, b.q.w, c.q.w, d.q.w), q.x + mean(a.q.x, b.q.x, c.q.x, d.q.x),
                           q.y + mean(a.q.y, b.q.y, c.q.y, d.q.y), q.z + mean(a.q.z, b.q.z, c.q.z, d.q.z)});
      omega += (a.w + b.w * 2 + c.w * 2 + d.w) * (h / 6);
    }
  }
};

TEST(ClosedForm, FourMassesAndSixDistancesAreARigidBody) {
  // Masses in opposite pairs on the axes would be six; four at these places have a diagonal inertia about their centre.
  const std::vector<Vec3d> place{{1, 0, -0.5}, {-1, 0, -0.5}, {0, 0.6, 0.5}, {0, -0.6, 0.5}};
  RigidBody start{{1, 0, 0, 0}, {0.3, 1.1, 0.5}, {0, 0, 0}};
  for (const Vec3d& r : place)
    start.inertia += Vec3d{r.y * r.y + r.z * r.z, r.x * r.x + r.z * r.z, r.x * r.x + r.y * r.y};
  RigidBody body = start;
  const double time = 5.0;
  body.advance(time, 20000);
  std::vector<double> errors;
  for (const int steps : {250, 500, 1000, 2000}) {
    ParticleSystem system;
    system.constraints = ConstraintSet(4);
    for (int i = 0; i < 4; ++i) {
      system.mass.push_back(1);
      const Vec3d v = cross(start.omega, place[i]);
      for (int c = 0; c < 3; ++c) system.position.push_back(place[i][c]), system.velocity.push_back(v[c]);
      for (int j = 0; j < i; ++j) system.constraints.add_distance(j, i, norm(place[i] - place[j]));
    }
    ASSERT_TRUE(prepare(system, 1e-13, time / steps).redundant.empty());
    VelocityVerlet verlet(system, {.timestep = time / steps, .tolerance = 1e-14});
    run_steps(verlet, steps);
    double worst = 0;
    for (int i = 0; i < 4; ++i) {
      const Vec3d expected = rotate(body.q, place[i]);
      worst = std::max(
          worst,
          norm(Vec3d{system.position[3 * i], system.position[3 * i + 1], system.position[3 * i + 2]} - expected));
    }
    errors.push_back(worst);
  }
  for (std::size_t k = 1; k < errors.size(); ++k)
    EXPECT_NEAR(std::log2(errors[k - 1] / errors[k]), 2.0, 0.05) << "halving " << k;
  EXPECT_LT(errors.back(), 1e-4);
}

}  // namespace
}  // namespace tarsus::md_test
