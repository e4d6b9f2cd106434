// The gain report against closed forms and against simulated steps.
#include "tarsus/control/gain_report.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>

#include "support/random_model.hpp"

namespace tarsus::test {
namespace {

Model one_slider(double mass) {
  ModelSpec spec;
  spec.option.gravity = {0, 0, 0};
  BodySpec body("cart");
  body.parent = 0;
  JointSpec slide;
  slide.name = "x", slide.type = JointType::slide, slide.axis = {1, 0, 0};
  body.joints.push_back(slide);
  body.inertial = InertialSpec{mass, {0, 0, 0}, diagonal3(mass, mass, mass), {}};
  spec.bodies.push_back(body);
  return compile(std::move(spec));
}

/// Positions of the slider, which starts from rest at 1 and is driven towards 0.
std::vector<double> simulate(double m, const Drives& drives, double h, int steps) {
  const Model model = one_slider(m);
  Data data(model);
  std::vector<double> q{1}, v{0}, zero{0}, a(1), path{1};
  for (int i = 0; i < steps; ++i) {
    drive_terms<double>(model, data, drives, h, q, v, zero, {}, {}, data.joint_force, data.joint_inertia);
    maba<double>(model, data, q, v, data.joint_force, data.joint_inertia, a);
    v[0] += h * a[0], q[0] += h * v[0];
    path.push_back(q[0]);
  }
  return path;
}

TEST(GainReport, SmallStepsDeliverWhatWasAskedFor) {
  const double m = 2, kp = 800, kd = 8;  // 20 rad/s, ζ = 0.1
  for (const bool plain : {false, true}) {
    const GainReport r = analyse_gains(m, kp, kd, plain, 1e-6);
    EXPECT_NEAR(r.frequency, 20 / (2 * kPi), 1e-12);
    EXPECT_NEAR(r.damping_ratio, 0.1, 1e-12);
    EXPECT_NEAR(r.step_frequency, r.frequency, 1e-3);
    EXPECT_NEAR(r.numerical_damping, 0, 1e-4);
    EXPECT_NEAR(r.phase_lag, 0, 0.1);
    EXPECT_TRUE(r.warnings.empty());
  }
}

TEST(GainReport, TheLeastStepsDeliverItToo) {
  for (const double h : {1e-7, 1e-8, 1e-9}) {
    const GainReport r = analyse_gains(60, 10, 1, false, h);
    EXPECT_NEAR(r.step_frequency / r.frequency, 1, 1e-6) << h;
    EXPECT_NEAR(r.step_damping_ratio / r.damping_ratio, 1, 1e-5) << h;
  }
  EXPECT_THROW(report_gains(one_slider(1), {{1}, {1}}, 1e-10, std::vector<double>(1)), ValueError);
  EXPECT_THROW(report_gains(one_slider(1), {{1e308}, {1}}, 0.01, std::vector<double>(1)), ValueError);
}

TEST(GainReport, WithoutDampingTheLagIsThatOfTheLeastDamping) {
  for (const double kp : {1., 2., 3., 7., 100., 300., 1000.}) {
    for (const double m : {60., 0.406, 0.0177, 0.00245}) {
      const double lag = analyse_gains(m, kp, 0, false, 1e-3).phase_lag;
      EXPECT_NEAR(lag, analyse_gains(m, kp, 1e-4 * std::sqrt(kp * m), false, 1e-3).phase_lag, 1) << kp << " " << m;
      EXPECT_LT(std::abs(lag), 45) << kp << " " << m;
    }
  }
}

TEST(GainReport, WithoutInertiaThereIsNoOscillator) {
  for (const auto& [kp, kd] : {std::pair(300., 20.), {300., 0.}, {0., 20.}, {0., 0.}}) {
    for (const bool plain : {false, true}) {
      const GainReport r = analyse_gains(0, kp, kd, plain, 1.0 / 60);
      for (const double x : {r.frequency, r.damping_ratio, r.step_frequency, r.step_damping_ratio, r.numerical_damping,
                             r.phase_lag, r.growth, r.largest_stable_step})
        EXPECT_TRUE(std::isnan(x)) << x;
      ASSERT_EQ(r.warnings.size(), kp + kd > 0 ? 1u : 0u);
      for (const std::string& warning : r.warnings) EXPECT_TRUE(warning.starts_with("no inertia")) << warning;
    }
  }
}

TEST(GainReport, NumericalDampingIsOfFirstOrderInTheStep) {
  double last = 0;
  for (const double h : {4e-4, 2e-4, 1e-4}) {
    const double added = analyse_gains(2, 800, 8, false, h).numerical_damping;
    if (last > 0) {
      EXPECT_NEAR(last / added, 2, 0.05);
    }
    last = added;
  }
}

TEST(GainReport, TheStepsOwnOscillatorIsTheOneThatRuns) {
  // The decay of the real step: its rate and period from the eigenvalues that the report gives.
  const double m = 2, kp = 800, kd = 8, h = 1.0 / 120;
  for (const bool plain : {false, true}) {
    const GainReport r = analyse_gains(m, kp, kd, plain, h);
    const double omega = 2 * kPi * r.step_frequency, decay = r.step_damping_ratio * omega,
                 wd = std::sqrt(omega * omega - decay * decay);
    const std::vector<double> q = simulate(m, {{kp}, {kd}, plain}, h, 400);
    // q_n = e^(-decay n h) (a cos + b sin)(wd n h) satisfies q_{n+1} = 2 e^(-decay h) cos(wd h) q_n - e^(-2 decay h)
    // q_{n-1}
    for (std::size_t n = 2; n + 1 < q.size(); ++n) {
      EXPECT_NEAR(q[n + 1], 2 * std::exp(-decay * h) * std::cos(wd * h) * q[n] - std::exp(-2 * decay * h) * q[n - 1],
                  1e-12);
    }
  }
}

TEST(GainReport, PhaseLagIsThatOfASwingingTarget) {
  const double m = 2, kp = 800, kd = 40, h = 1.0 / 90;
  const Model model = one_slider(m);
  for (const bool plain : {false, true}) {
    const GainReport r = analyse_gains(m, kp, kd, plain, h);
    const double w = 2 * kPi * r.frequency;
    Data data(model);
    std::vector<double> q{0}, v{0}, a(1), goal(1);
    const Drives drives{{kp}, {kd}, plain};
    double in_phase = 0, quadrature = 0;  // q against sin and cos over whole periods, after the initial transient
    const int settle = 2000, count = 90000;
    for (int n = 0; n < settle + count; ++n) {
      goal[0] = std::sin(w * h * (n + 1));
      drive_terms<double>(model, data, drives, h, q, v, goal, {}, {}, data.joint_force, data.joint_inertia);
      maba<double>(model, data, q, v, data.joint_force, data.joint_inertia, a);
      v[0] += h * a[0], q[0] += h * v[0];
      if (n < settle) continue;
      in_phase += q[0] * std::sin(w * h * (n + 1)), quadrature += q[0] * std::cos(w * h * (n + 1));
    }
    const double lag = -std::atan2(quadrature, in_phase), own = std::atan2(kd * w, kp - m * w * w);
    EXPECT_NEAR(r.phase_lag, (lag - own) * 180 / kPi, 0.05);
  }
}

TEST(GainReport, WarningsCountDegreesForwards) {
  const GainReport early = analyse_gains(0.0177, 300, 20, true, 1.0 / 60);  // damped more than the step resolves
  ASSERT_LT(early.phase_lag, -20);
  bool said = false;
  for (const std::string& w : early.warnings) {
    EXPECT_EQ(w.find('-'), w.npos) << w;
    said |= w.find("reduces the lag") != w.npos;
  }
  EXPECT_TRUE(said);
  EXPECT_THROW(report_gains(one_slider(1), {{1}, {1}}, 1e300, std::vector<double>(1)), ValueError);
}

TEST(GainReport, StabilityBoundAndWarnings) {
  const double m = 1, kd = 0, h = 1.0 / 60, bound = 4 * m / (3 * h * h);
  EXPECT_NEAR(analyse_gains(m, bound, kd, true, h).largest_stable_step, h, 1e-12);
  EXPECT_TRUE(analyse_gains(m, 1.01 * bound, kd, true, h).warnings.front().starts_with("unstable"));
  EXPECT_TRUE(analyse_gains(m, 0.99 * bound, kd, true, h).warnings.size());
  const GainReport implicit = analyse_gains(m, 1e8, 0, false, h);
  EXPECT_LE(implicit.growth, 1);
  EXPECT_FALSE(implicit.warnings.empty());  // 1,600 Hz at 60 steps a second
  EXPECT_TRUE(analyse_gains(m, 0, 0, false, h).warnings.empty());
}

TEST(GainReport, InertiasOfATree) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Model model = random_tree(seed);
    if (model.nv == 0) continue;
    const auto reports = report_gains(model, Drives::uniform(model), 1.0 / 60, model.qpos0);
    std::size_t expected = 0;
    for (const Joint& joint : model.joints) expected += joint.type == JointType::free ? 2 : 1;
    ASSERT_EQ(reports.size(), expected);
    for (const GainReport& r : reports) {
      EXPECT_GT(r.inertia, 0);
      EXPECT_LE(r.inertia, r.inertia_largest);
      EXPECT_LE(r.inertia_limp, r.inertia * (1 + 1e-9))
          << "seed " << seed;  // freeing the other joints only makes it lighter
    }
  }
}

TEST(GainReport, InertiasAreThoseOfTheMassMatrixAndItsInverse) {
  using Matrix = Eigen::MatrixXd;
  const auto range = [](const Matrix& M, int first, int n) {
    const Eigen::VectorXd values =
        Eigen::SelfAdjointEigenSolver<Matrix>(Matrix(M.block(first, first, n, n))).eigenvalues();
    return std::pair(values[0], values[n - 1]);
  };
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = random_tree(seed);
    Data data(model);
    Matrix M(model.nv, model.nv);
    crba<double>(model, data, model.qpos0, {M.data(), std::size_t(M.size())});
    const Matrix inverse = M.inverse();
    for (const GainReport& r : report_gains(model, Drives::uniform(model), 1.0 / 60, model.qpos0)) {
      const Joint& joint = model.joints[std::size_t(r.joint)];
      const int first = joint.qvel + (r.part == "rotation" ? 3 : 0), n = std::min(joint.nv(), 3);
      const auto [least, most] = range(M, first, n);
      EXPECT_NEAR(r.inertia, least, 1e-12 * most);
      EXPECT_NEAR(r.inertia_largest, most, 1e-12 * most);
      EXPECT_NEAR(1 / r.inertia_limp, range(inverse, first, n).second,
                  1e-9 / r.inertia_limp);  // the inverse's rounding
    }
  }
}

}  // namespace
}  // namespace tarsus::test
