// Ten simulated minutes of closed loops without drift, and a chain that hangs between two nails.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "support/random_model.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::test {
namespace {

struct Drift {
  double position = 0, velocity = 0, energy = 0,
         first = 0;  ///< worst [m | rad], [m/s | rad/s], [J]; initial energy [J]
};

/// Steps with SHAKE and RATTLE. Measures the loops after every step and the energy after every hundredth.
Drift run_for(const Model& model, const EqualitySet& set, Data& data, double dt, double duration) {
  StepOptions options{.dt = dt, .integrator = Integrator::rk4};
  options.loops = LoopMode::shake, options.equalities = &set;
  Stepper<double> stepper(model, data, options);
  DelassusRows<double> rows(model);
  set.add_blocks(rows);
  std::vector<double> phi(set.rows()), rate(set.rows()), bias(set.rows());
  const auto measure_energy = [&] {
    kinematics<double>(model, data, data.qpos, data.qvel);
    return energy<double>(model, data, data.qpos, data.qvel).total();
  };
  Drift drift;
  drift.first = measure_energy();
  const long steps = std::lround(duration / dt);
  for (long i = 0; i < steps; ++i) {
    if (stepper.step(data) != 0) {
      ADD_FAILURE() << name(stepper.status(0)) << " at " << data.time << " s";
      break;
    }
    kinematics<double>(model, data, data.qpos, data.qvel);
    set.evaluate<double>(data, 0, data.qpos, data.qvel, rows, phi, rate, bias);
    for (const double x : phi) drift.position = std::max(drift.position, std::abs(x));
    for (const double x : rate) drift.velocity = std::max(drift.velocity, std::abs(x));
    if (i % 100 == 0) drift.energy = std::max(drift.energy, std::abs(measure_energy() - drift.first));
  }
  return drift;
}

void settle(const Model& model, const EqualitySet& set, Data& data) {
  ConstrainedDynamics<double> start(model, set, data);
  start.settle(data, data.qpos, data.joint_inertia, data.qvel);
}

/// The platform swings on springs in its legs, without damping.
TEST(LoopsLong, StewartPlatformTenMinutes) {
  ModelSpec spec = read_model(std::string(TARSUS_SOURCE_DIR) + "/models/loops/stewart.xml");
  for (BodySpec& body : spec.bodies) {
    for (JointSpec& joint : body.joints) {
      if (joint.type == JointType::slide)
        joint.stiffness = 3000;
      else if (joint.type == JointType::hinge)
        joint.stiffness = 5;
    }
  }
  const Model model = compile(spec);
  const EqualitySet set = EqualitySet::of(model);
  Data data(model);
  data.qvel[model.nv - 6] = 0.1, data.qvel[model.nv - 1] = 0.3;
  settle(model, set, data);
  const Drift drift = run_for(model, set, data, 1e-3, 600);
  std::printf("Stewart platform, 600 s at 1 ms: loops %.2g m, rates %.2g m/s, energy within %.2g of %.4g J\n",
              drift.position, drift.velocity, drift.energy, drift.first);
  EXPECT_LT(drift.position, 1e-10);
  EXPECT_LT(drift.velocity, 1e-9);
  EXPECT_LT(drift.energy, 0.05);
}

/// Cassie in free flight without gravity, its springs undamped: four closed loops.
TEST(LoopsLong, CassieTenMinutes) {
  const std::string file = std::string(TARSUS_SOURCE_DIR) + "/../shared/data/menagerie/agility_cassie/cassie.xml";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  ReadOptions options;
  options.lenient = true;
  ModelSpec spec = read_model(file, options);
  spec.option.gravity = {0, 0, 0};
  for (BodySpec& body : spec.bodies) {
    for (JointSpec& joint : body.joints) joint.damping = 0;
  }
  const Model model = compile(spec);
  const EqualitySet set = EqualitySet::of(model);
  Data data(model);
  if (!model.spec.keyframes.empty() && int(model.spec.keyframes[0].qpos.size()) == model.nq) {
    std::copy(model.spec.keyframes[0].qpos.begin(), model.spec.keyframes[0].qpos.end(), data.qpos.begin());
  }
  // The keyframe closes the loops to a few digits only.
  ConstrainedDynamics<double> start(model, set, data);
  AlignedVector<double> none(model.nv), closed(model.nq);
  ASSERT_EQ(start.close(data, 1, data.qpos, data.joint_inertia, none, closed), 0);
  data.qpos = closed;
  for (int i = 0; i < model.nv; ++i) data.qvel[i] = 0.2 * std::sin(1.0 + i);
  settle(model, set, data);
  const Drift drift = run_for(model, set, data, 1e-3, 600);
  std::printf("cassie, 600 s at 1 ms: loops %.2g m, rates %.2g m/s, energy within %.2g of %.4g J\n", drift.position,
              drift.velocity, drift.energy, drift.first);
  EXPECT_LT(drift.position, 1e-10);
  EXPECT_LT(drift.velocity, 1e-9);
}

/// A chain of n uniform links of total length 1 m between (0, 0, 0) and (0.8, 0, 0), hanging as an arc.
ModelSpec hanging_chain(int n) {
  double x = 1.13;  // sin x = 0.8 x
  for (int i = 0; i < 50; ++i) x -= (std::sin(x) - 0.8 * x) / (std::cos(x) - 0.8);
  const double length = 1.0 / n, mass = 1.0 / n, turn = 2 * x / n;
  ModelSpec spec;
  for (int i = 0; i < n; ++i) {
    BodySpec body("link" + std::to_string(i));
    body.parent = i;
    body.position = {i ? length : 0, 0, 0};
    // The links start pointing down by x and turn upward; a positive rotation about -y turns x towards z.
    body.orientation = exp_map(Vec3d{0, -1, 0} * (i ? turn : -(x - 0.5 * turn)));
    JointSpec joint;
    joint.name = "j" + std::to_string(i);
    joint.axis = {0, -1, 0}, joint.damping = 0.02;
    body.joints.push_back(joint);
    const double I = mass * length * length / 12;
    body.inertial = InertialSpec{mass, {0.5 * length, 0, 0}, diagonal3(0.1 * I, I, I), {}};
    spec.bodies.push_back(body);
  }
  return spec;
}

/// Lowest point of the catenary of length 1 over a span of 0.8: 2 a sinh(0.4 / a) = 1, sag a (cosh(0.4 / a) - 1).
double catenary_sag() {
  double a = 0.35;
  for (int i = 0; i < 100; ++i) {
    const double f = 2 * a * std::sinh(0.4 / a) - 1, d = 2 * std::sinh(0.4 / a) - 0.8 / a * std::cosh(0.4 / a);
    a -= f / d;
  }
  return a * (std::cosh(0.4 / a) - 1);
}

/// The moment balance of rigid links makes tan θ exactly linear in the link's number, and the sag approaches the
/// catenary's as 1/n².
TEST(LoopsLong, PinnedChainHangsAsACatenary) {
  double errors[3];
  int k = 0;
  for (const int n : {10, 20, 40}) {
    const Model model = compile(hanging_chain(n));
    EqualitySet set(model);
    set.add_connect("nail", model.body_id("link" + std::to_string(n - 1)), {1.0 / n, 0, 0}, 0, {0.8, 0, 0});
    Data data(model);
    StepOptions options{.dt = 2e-3};
    options.loops = LoopMode::shake, options.equalities = &set;
    Stepper<double> stepper(model, data, options);
    double speed = 1;
    int steps = 0;
    for (; steps < 400000 && speed > 1e-10; ++steps) {
      ASSERT_EQ(stepper.step(data), 0) << name(stepper.status(0));
      speed = 0;
      for (const double v : data.qvel) speed = std::max(speed, std::abs(v));
    }
    kinematics<double>(model, data, data.qpos);
    std::vector<double> slope;
    double lowest = 0;
    for (int i = 0; i < n; ++i) {
      const Transformd X = body_pose(model, data, model.body_id("link" + std::to_string(i)));
      slope.push_back(X.R.zx / X.R.xx);
      lowest = std::min(lowest, X.p.z);
    }
    double worst = 0;
    for (int i = 1; i + 1 < n; ++i) worst = std::max(worst, std::abs(slope[i + 1] - 2 * slope[i] + slope[i - 1]));
    errors[k] = std::abs(-lowest - catenary_sag());
    std::printf(
        "%d links: at rest after %d steps (%.1g rad/s), tan is linear to %.2g, sag off the catenary by %.3g m\n", n,
        steps, speed, worst, errors[k]);
    EXPECT_LT(worst, 1e-7);
    ++k;
  }
  EXPECT_NEAR(std::log2(errors[0] / errors[1]), 2, 0.2);
  EXPECT_NEAR(std::log2(errors[1] / errors[2]), 2, 0.2);
}

}  // namespace
}  // namespace tarsus::test
