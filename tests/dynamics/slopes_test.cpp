// Order of accuracy, measured by its slope: halving the step divides the error by 2^order. The reference is an
// independent integration where there is one, otherwise the system's conserved quantities or the run at half the step.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::test {
namespace {

constexpr double kEulerTolerance = 0.05,
                 kRk4Tolerance = 0.2;  // steps are small enough for the next order to stay below these

/// A rod of `mass` and `length` on a hinge about y that hangs along -z at angle 0, or a chain of `links` such rods.
Model pendulum(int links, double mass, double length) {
  ModelSpec spec;
  for (int i = 1; i <= links; ++i) {
    BodySpec body("rod" + std::to_string(i));
    body.parent = i - 1;
    if (i > 1) body.position = {0, 0, -length};
    JointSpec joint;
    joint.name = "hinge" + std::to_string(i), joint.axis = {0, 1, 0};
    body.joints.push_back(joint);
    const double inertia = mass * length * length / 12;
    body.inertial = InertialSpec{mass, {0, 0, -length / 2}, diagonal3(inertia, inertia, 1e-4), {}};
    spec.bodies.push_back(body);
  }
  return compile(std::move(spec));
}

/// A body with three different moments of inertia and its centre of mass off its origin, floating without gravity.
Model tumbling_body() {
  ModelSpec spec;
  spec.option.gravity = {0, 0, 0};
  BodySpec body("wing_nut");
  body.parent = 0;
  JointSpec joint;
  joint.name = "free", joint.type = JointType::free;
  body.joints.push_back(joint);
  body.inertial = InertialSpec{2, {0.1, -0.2, 0.05}, diagonal3(0.1, 0.2, 0.28), {}};
  spec.bodies.push_back(body);
  return compile(std::move(spec));
}

Energy energy_of(const Model& model, Data& data) {
  kinematics<double>(model, data, data.qpos, data.qvel);
  return energy<double>(model, data, data.qpos, data.qvel);
}
Momentum momentum_of(const Model& model, Data& data) {
  kinematics<double>(model, data, data.qpos, data.qvel);
  return momentum<double>(model, data);
}

using Watch = std::function<void(Data&)>;

/// Runs `steps` steps over `duration` seconds; `watch` receives every state after the first.
Data run(const Model& model, Integrator integrator, std::vector<double> qpos, std::vector<double> qvel, double duration,
         int steps, const Watch& watch = {}) {
  Data data(model);
  std::copy(qpos.begin(), qpos.end(), data.qpos.begin());
  std::copy(qvel.begin(), qvel.end(), data.qvel.begin());
  StepOptions options;
  options.dt = duration / steps, options.integrator = integrator;
  options.velocity_products = VelocityProductMode::off;  // one scheme, whatever the speed
  Stepper<double> stepper(model, data, options);
  for (int i = 0; i < steps; ++i) {
    EXPECT_EQ(stepper.step(data), 0) << "step " << i;
    if (watch) watch(data);
  }
  return data;
}

/// Slope of log(error) against log(step), by least squares over `count` numbers of steps: `first`, 2 `first`, 4
/// `first`, ….
double slope(const std::function<double(int steps)>& error, int first, int count) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (int k = 0; k < count; ++k) {
    const double x = -std::log(double(first << k)), y = std::log(error(first << k));
    sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  return (count * sxy - sx * sy) / (count * sxx - sx * sx);
}

double distance(const Data& a, const Data& b) {
  double d = 0;
  for (std::size_t i = 0; i < a.qpos.size(); ++i) d += (a.qpos[i] - b.qpos[i]) * (a.qpos[i] - b.qpos[i]);
  for (std::size_t i = 0; i < a.qvel.size(); ++i) d += (a.qvel[i] - b.qvel[i]) * (a.qvel[i] - b.qvel[i]);
  return std::sqrt(d);
}

/// The equation of the rod, 2/3 l θ'' = -g sin θ, by the Runge-Kutta method in long double with steps far below those
/// under test.
std::pair<double, double> rod_reference(double length, double angle, double duration) {
  using Real = long double;
  const Real k = 1.5L * 9.81L / Real(length);
  Real q = angle, v = 0;
  constexpr int kSteps = 40'000;
  const Real h = Real(duration) / kSteps;
  for (int i = 0; i < kSteps; ++i) {
    const Real a1 = -k * std::sin(q), a2 = -k * std::sin(q + h / 2 * v),
               a3 = -k * std::sin(q + h / 2 * (v + h / 2 * a1)), a4 = -k * std::sin(q + h * (v + h / 2 * a2));
    q += h * v + h * h / 6 * (a1 + a2 + a3);
    v += h / 6 * (a1 + 2 * a2 + 2 * a3 + a4);
  }
  return {double(q), double(v)};
}

TEST(Slopes, PendulumStateAgainstItsOwnEquation) {
  const Model model = pendulum(1, 1.5, 0.7);
  const double angle = 2.5, duration = 2;
  const std::pair<double, double> end = rod_reference(0.7, angle, duration);
  const auto error = [&](Integrator integrator) {
    return [&, integrator](int steps) {
      const Data data = run(model, integrator, {angle}, {0}, duration, steps);
      return std::hypot(data.qpos[0] - end.first, data.qvel[0] - end.second);
    };
  };
  EXPECT_NEAR(slope(error(Integrator::rk4), 800, 3), 4, kRk4Tolerance);
  EXPECT_NEAR(slope(error(Integrator::semi_implicit_euler), 8000, 3), 1, kEulerTolerance);
}

/// With a constant mass the scheme is symplectic: the energy error is of first order and oscillates, but does not grow.
TEST(Slopes, PendulumEnergyUnderEulerIsFirstOrderAndBounded) {
  const Model model = pendulum(1, 1.5, 0.7);
  const auto worst = [&](double duration, int steps) {
    Data start(model);
    start.qpos[0] = 2.5;
    const double e0 = energy_of(model, start).total();
    double error = 0;
    run(model, Integrator::semi_implicit_euler, {2.5}, {0}, duration, steps,
        [&](Data& data) { error = std::max(error, std::abs(energy_of(model, data).total() - e0)); });
    return error;
  };
  EXPECT_NEAR(slope([&](int steps) { return worst(5, steps); }, 2000, 3), 1, kEulerTolerance);
  const double once = worst(5, 2500), often = worst(100, 50'000);
  EXPECT_GT(once, 1e-4) << "an error too small to say anything";
  EXPECT_LT(often, 1.02 * once) << "twenty times as long: the same bound";
}

TEST(Slopes, DoublePendulum) {
  const Model model = pendulum(2, 0.8, 0.5);
  const std::vector<double> q{1.2, 0.7}, v{0, -0.5};
  const double duration = 1;
  Data start(model);
  std::copy(q.begin(), q.end(), start.qpos.begin()), std::copy(v.begin(), v.end(), start.qvel.begin());
  const double e0 = energy_of(model, start).total();
  const auto state_error = [&](Integrator integrator) {
    return [&, integrator](int steps) {
      return distance(run(model, integrator, q, v, duration, steps), run(model, integrator, q, v, duration, 2 * steps));
    };
  };
  const auto energy_error = [&](Integrator integrator) {
    return [&, integrator](int steps) {
      double error = 0;
      run(model, integrator, q, v, duration, steps,
          [&](Data& data) { error = std::max(error, std::abs(energy_of(model, data).total() - e0)); });
      return error;
    };
  };
  EXPECT_NEAR(slope(state_error(Integrator::rk4), 800, 3), 4, kRk4Tolerance);
  EXPECT_NEAR(slope(state_error(Integrator::semi_implicit_euler), 8000, 3), 1, kEulerTolerance);
  EXPECT_NEAR(slope(energy_error(Integrator::rk4), 400, 3), 4, kRk4Tolerance);
  EXPECT_NEAR(slope(energy_error(Integrator::semi_implicit_euler), 8000, 3), 1, kEulerTolerance);
}

/// Spin about the middle axis: the body flips repeatedly (Dzhanibekov). Energy and both momenta are constant.
struct Tumble {
  Model model = tumbling_body();
  std::vector<double> qpos{0, 0, 1, 1, 0, 0, 0}, qvel{0.3, -0.2, 0.1, 0.01, 6, 0.02};
  double duration = 3;

  struct Error {
    double energy = 0, angular = 0, linear = 0, turned = 0;
  };
  Error errors(Integrator integrator, int steps) const {
    Data start(model);
    std::copy(qpos.begin(), qpos.end(), start.qpos.begin()), std::copy(qvel.begin(), qvel.end(), start.qvel.begin());
    const double e0 = energy_of(model, start).total();
    const Momentum m0 = momentum_of(model, start);
    Error error;
    run(model, integrator, qpos, qvel, duration, steps, [&](Data& data) {
      error.energy = std::max(error.energy, std::abs(energy_of(model, data).total() - e0));
      const Momentum m = momentum_of(model, data);
      error.angular = std::max(error.angular, norm(m.angular - m0.angular));
      error.linear = std::max(error.linear, norm(m.linear - m0.linear));
      error.turned = std::max(error.turned, -data.qvel[4]);
    });
    return error;
  }
};

TEST(Slopes, TumblingBodyKeepsItsMomentumAndEnergyToTheOrder) {
  const Tumble t;
  EXPECT_GT(t.errors(Integrator::rk4, 2000).turned, 5.5)
      << "the body must flip within the run: its spin about its own middle axis turns round";
  const auto of = [&](Integrator integrator, double Tumble::Error::*what) {
    return [&t, integrator, what](int steps) { return t.errors(integrator, steps).*what; };
  };
  EXPECT_NEAR(slope(of(Integrator::rk4, &Tumble::Error::energy), 400, 3), 4, kRk4Tolerance);
  EXPECT_NEAR(slope(of(Integrator::rk4, &Tumble::Error::angular), 400, 3), 4, kRk4Tolerance);
  EXPECT_NEAR(slope(of(Integrator::rk4, &Tumble::Error::linear), 400, 3), 4, kRk4Tolerance);
  EXPECT_NEAR(slope(of(Integrator::semi_implicit_euler, &Tumble::Error::energy), 40'000, 3), 1, kEulerTolerance);
  EXPECT_NEAR(slope(of(Integrator::semi_implicit_euler, &Tumble::Error::angular), 40'000, 3), 1, kEulerTolerance);
  EXPECT_NEAR(slope(of(Integrator::semi_implicit_euler, &Tumble::Error::linear), 40'000, 3), 1, kEulerTolerance);
}

/// Quaternions are normalised in every step: their norm is one to rounding after any number of steps.
TEST(Slopes, QuaternionsStayUnit) {
  const Tumble t;
  for (const Integrator integrator : {Integrator::semi_implicit_euler, Integrator::rk4}) {
    double worst = 0;
    run(t.model, integrator, t.qpos, t.qvel, 100, 10'000, [&](Data& data) {
      double n2 = 0;
      for (int k = 3; k < 7; ++k) n2 += data.qpos[k] * data.qpos[k];
      worst = std::max(worst, std::abs(std::sqrt(n2) - 1));
    });
    EXPECT_LT(worst, 4 * std::numeric_limits<double>::epsilon());
  }
}

}  // namespace
}  // namespace tarsus::test
