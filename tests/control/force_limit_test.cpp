// Force limits against brute force and against the equations of motion, from cold starts, and in SIMD lanes.
#include <gtest/gtest.h>

#include <cmath>

#include "support/random_model.hpp"
#include "tarsus/control/force_limit.hpp"

namespace tarsus::test {
namespace {

/// One body on two slides whose axes enclose an angle with cosine `c`: M = [1 c; c 1].
Model coupled_slides(double c) {
  ModelSpec spec;
  spec.option.gravity = {0, 0, 0};
  BodySpec body("b");
  body.parent = 0;
  for (const Vec3d& axis : {Vec3d{1, 0, 0}, Vec3d{c, std::sqrt(1 - c * c), 0}}) {
    JointSpec slide;
    slide.name = "s" + std::to_string(body.joints.size()), slide.type = JointType::slide, slide.axis = axis;
    body.joints.push_back(slide);
  }
  body.inertial = InertialSpec{1, {0, 0, 0}, diagonal3(1.0, 1.0, 1.0), {}};
  spec.bodies.push_back(body);
  return compile(std::move(spec));
}

struct TwoDrives {
  double c, v[2], k[2], limit[2];
};

/// v⁺ by trying all nine active sets: the one that its own solution satisfies. h = 1, u = clamp(-k v⁺).
std::array<double, 2> brute_force(const TwoDrives& p) {
  for (int piece = 0; piece < 9; ++piece) {
    const int side[2] = {piece % 3 - 1, piece / 3 - 1};  // -1, 1: at that limit; 0: inside
    double H[2][2] = {{1, p.c}, {p.c, 1}}, b[2];
    for (int i = 0; i < 2; ++i) {
      b[i] = H[i][0] * p.v[0] + H[i][1] * p.v[1] + side[i] * p.limit[i];
    }
    for (int i = 0; i < 2; ++i) H[i][i] += side[i] ? 0 : p.k[i];
    const double det = H[0][0] * H[1][1] - H[0][1] * H[1][0];
    const double v[2] = {(b[0] * H[1][1] - b[1] * H[0][1]) / det, (b[1] * H[0][0] - b[0] * H[1][0]) / det};
    bool fits = true;
    for (int i = 0; i < 2; ++i) {
      const double t = -p.k[i] * v[i], slack = 1e-12 * (1 + std::abs(t));
      fits = fits && (side[i] ? side[i] * t >= p.limit[i] - slack : std::abs(t) <= p.limit[i] + slack);
    }
    if (fits) return {v[0], v[1]};
  }
  return {std::nan(""), std::nan("")};
}

std::array<double, 2> by_solver(const TwoDrives& p, LimitReport& report, const std::array<double, 2>& guess = {0, 0}) {
  const Model model = coupled_slides(p.c);
  Data data(model);
  DriveLimiter<double> limiter(model, data);
  Drives drives{{0, 0}, {p.k[0], p.k[1]}, true, {p.limit[0], p.limit[1]}, {}, 0};
  std::copy(guess.begin(), guess.end(), limiter.guess().begin());
  std::copy(p.v, p.v + 2, data.qvel.begin());
  limiter.solve(data, drives, 1, data.qpos, data.qvel, data.qpos, {}, {}, data.qacc);
  report = limiter.report(0);
  return {p.v[0] + data.qacc[0], p.v[1] + data.qacc[1]};
}

const TwoDrives kCycling{0.5, {-3, -2}, {0.5, 100}, {0.25, 2}};

/// The plain active-set iteration without a line search. True if it converges within 1,000 iterations.
bool plain_active_set_settles(const TwoDrives& p) {
  int side[2] = {0, 0};
  for (int round = 0; round < 1000; ++round) {
    double H[2][2] = {{1, p.c}, {p.c, 1}}, b[2];
    for (int i = 0; i < 2; ++i) b[i] = H[i][0] * p.v[0] + H[i][1] * p.v[1] + side[i] * p.limit[i];
    for (int i = 0; i < 2; ++i) H[i][i] += side[i] ? 0 : p.k[i];
    const double det = H[0][0] * H[1][1] - H[0][1] * H[1][0];
    const double v[2] = {(b[0] * H[1][1] - b[1] * H[0][1]) / det, (b[1] * H[0][0] - b[0] * H[1][0]) / det};
    bool same = true;
    for (int i = 0; i < 2; ++i) {
      const double t = -p.k[i] * v[i];
      const int now = t > p.limit[i] ? 1 : t < -p.limit[i] ? -1 : 0;
      same = same && now == side[i], side[i] = now;
    }
    if (same) return true;
  }
  return false;
}

TEST(ForceLimits, TheExampleOnWhichPlainActiveSetsCycle) {
  EXPECT_FALSE(plain_active_set_settles(kCycling));
  LimitReport report;
  const auto v = by_solver(kCycling, report), expected = brute_force(kCycling);
  EXPECT_NEAR(v[0], expected[0], 1e-12);
  EXPECT_NEAR(v[1], expected[1], 1e-12);
  EXPECT_TRUE(report.converged);
  EXPECT_LE(report.iterations, 8);
}

TEST(ForceLimits, MatchBruteForceFromAnyColdStart) {
  Random random(11);
  int cycled = 0;
  for (int trial = 0; trial < 7200; ++trial) {
    TwoDrives p{random.uniform(-0.99, 0.99), {}, {}, {}};
    for (int i = 0; i < 2; ++i) {
      p.v[i] = random.uniform(-5, 5);
      p.k[i] = std::pow(10, random.uniform(-2, 4)), p.limit[i] = std::pow(10, random.uniform(-2, 2));
    }
    cycled += !plain_active_set_settles(p);
    LimitReport report;
    const std::array<double, 2> guess{random.uniform(-200, 200), random.uniform(-200, 200)};
    const auto v = by_solver(p, report, guess), expected = brute_force(p);
    ASSERT_TRUE(report.converged) << "trial " << trial << ": " << report.residual;
    for (int i = 0; i < 2; ++i) ASSERT_NEAR(v[i], expected[i], 1e-9 * (1 + std::abs(expected[i]))) << "trial " << trial;
  }
  RecordProperty("plain_active_set_cycled", cycled);
  EXPECT_GT(cycled, 0);  // otherwise this does not test the line search
}

struct Case {
  Model model;
  State state;
  std::vector<double> target, target_velocity;
  Drives drives;
  double h;
};

/// Trees over all joint types, with force limits near the forces that the drives demand.
Case random_case(unsigned seed, bool springs = true) {
  Random random(seed);
  Case c{random_tree(seed, {.bodies = 1 + int(seed % 20), .springs = springs, .chain = (seed % 5) / 4.0}),
         {},
         {},
         {},
         {},
         0};
  c.state = random_state(random, c.model);
  c.target = random_qpos(random, c.model), c.target_velocity = random_vector(random, c.model.nv);
  c.drives = Drives::none(c.model), c.drives.plain = seed % 3 == 0;
  c.drives.force_limit.assign(c.model.nv, kInfinity), c.drives.spin_damping = 0;
  for (const Joint& joint : c.model.joints) {
    const double kp = std::pow(10, random.uniform(1, 5)), kd = kp * random.uniform(0, 0.1);
    const double limit = random.chance(0.1)    ? kInfinity
                         : random.chance(0.05) ? 0
                                               : kp * std::pow(10, random.uniform(-3, 0.5));
    for (int k = 0; k < joint.nv(); ++k) {
      c.drives.kp[joint.qvel + k] = kp, c.drives.kd[joint.qvel + k] = kd, c.drives.force_limit[joint.qvel + k] = limit;
    }
  }
  if (seed % 4 == 0) {  // limits that are not symmetric
    for (double high : c.drives.force_limit) c.drives.force_floor.push_back(-high * random.uniform(0, 1));
  }
  c.h = random.uniform(1.0 / 240, 1.0 / 30);
  c.drives.check(c.model);
  return c;
}

/// The clamped force that the drives must apply, from the state at the end of the step, by an independent loop over
/// joints.
std::vector<double> clamped(const Case& c, Data& data, const std::vector<double>& qacc) {
  std::vector<double> u(c.model.nv);
  Drives unlimited = c.drives;
  drive_force<double>(c.model, data, unlimited, c.h, c.state.qpos, c.state.qvel, c.target, c.target_velocity, qacc, u);
  for (const Joint& joint : c.model.joints) {
    const int v = joint.qvel, linear = joint.type == JointType::free ? 3 : joint.nv() == 1 ? 1 : 0;
    for (int k = v; k < v + linear; ++k) {
      const double high = c.drives.force_limit[k], low = c.drives.force_floor.empty() ? -high : c.drives.force_floor[k];
      u[k] = std::min(std::max(u[k], low), high);
    }
    if (joint.nv() == 1) continue;
    const int w = v + linear;
    const double length = std::sqrt(u[w] * u[w] + u[w + 1] * u[w + 1] + u[w + 2] * u[w + 2]),
                 limit = c.drives.force_limit[w];
    if (length > limit) {
      for (int k = w; k < w + 3; ++k) u[k] *= limit / length;
    }
  }
  return u;
}

TEST(ForceLimits, TheForceInTheEquationsOfMotionIsTheClampedOne) {
  int iterations = 0, cases = 0, saturated = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const Case c = random_case(seed);
    if (c.model.nv == 0) continue;
    Data data(c.model);
    DriveLimiter<double> limiter(c.model, data);
    Random random(seed);
    for (double& t : limiter.guess()) t = seed % 2 ? random.uniform(-1e4, 1e4) : 0;  // hostile first guesses too
    std::vector<double> qacc(c.model.nv);
    limiter.solve(data, c.drives, c.h, c.state.qpos, c.state.qvel, c.target, c.target_velocity, c.state.tau, qacc);
    const LimitReport report = limiter.report(0);
    ASSERT_TRUE(report.converged) << "seed " << seed << ": residual " << report.residual << " after "
                                  << report.iterations;
    iterations += report.iterations, ++cases, saturated += report.saturated;

    // M q̈ + C - τ - springs = u, with springs and dampers at the end of the step.
    std::vector<double> needed(c.model.nv), Q(c.model.nv), K(c.model.nv);
    rnea<double>(c.model, data, c.state.qpos, c.state.qvel, qacc, needed);
    drive_terms<double>(c.model, data, Drives::none(c.model), c.h, c.state.qpos, c.state.qvel, c.state.qpos, {},
                        c.state.tau, Q, K);
    const std::vector<double> u = clamped(c, data, qacc);
    for (int k = 0; k < c.model.nv; ++k) needed[k] += (K[k] - c.model.armature[k]) * qacc[k] - Q[k];
    ASSERT_LT(relative_error(needed, u), 1e-8) << "seed " << seed;
    ASSERT_LT(relative_error({limiter.applied().data(), limiter.applied().size()}, u), 1e-9) << "seed " << seed;
  }
  RecordProperty("mean_iterations", std::to_string(double(iterations) / cases));
  EXPECT_GT(saturated, cases);  // the limits bind
}

TEST(ForceLimits, SecondSolveOfTheSameStepTakesOneRound) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Case c = random_case(seed);
    if (c.model.nv == 0) continue;
    Data data(c.model);
    DriveLimiter<double> limiter(c.model, data);
    std::vector<double> first(c.model.nv), second(c.model.nv);
    limiter.solve(data, c.drives, c.h, c.state.qpos, c.state.qvel, c.target, c.target_velocity, c.state.tau, first);
    limiter.solve(data, c.drives, c.h, c.state.qpos, c.state.qvel, c.target, c.target_velocity, c.state.tau, second);
    ASSERT_LT(relative_error(second, first), 1e-7) << "seed " << seed;
    ASSERT_LE(limiter.report(0).iterations, 2) << "seed " << seed;
  }
}

TEST(ForceLimits, WithoutLimitsItIsMaba) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Case c = random_case(seed);
    if (c.model.nv == 0) continue;
    std::fill(c.drives.force_limit.begin(), c.drives.force_limit.end(), kInfinity);
    c.drives.force_floor.clear();
    Data data(c.model);
    DriveLimiter<double> limiter(c.model, data);
    std::vector<double> limited(c.model.nv), plain(c.model.nv), Q(c.model.nv), K(c.model.nv);
    limiter.solve(data, c.drives, c.h, c.state.qpos, c.state.qvel, c.target, c.target_velocity, c.state.tau, limited);
    EXPECT_EQ(limiter.report(0).iterations, 1);
    EXPECT_EQ(limiter.report(0).saturated, 0);
    drive_terms<double>(c.model, data, c.drives, c.h, c.state.qpos, c.state.qvel, c.target, c.target_velocity,
                        c.state.tau, Q, K);
    maba<double>(c.model, data, c.state.qpos, c.state.qvel, Q, K, plain);
    // The two sum Q = τ + springs + drive in different orders, so they agree only to rounding.
    ASSERT_LT(relative_error(limited, plain), 1e-11) << "seed " << seed;
  }
}

template <class R>
void expect_lanes_equal_scalars() {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Case c = random_case(seed);
    if (c.model.nv == 0) continue;
    const int worlds = 11, nq = c.model.nq, nv = c.model.nv;
    BasicData<R> batch(c.model, worlds), one(c.model);
    DriveLimiter<R> limiter(c.model, batch);
    Random random(seed);
    AlignedVector<R> goal(batch.size(nq)), goal_velocity(batch.size(nv)), qacc(batch.size(nv));
    for (int world = 0; world < batch.packs() * batch.width(); ++world) {
      if (world >= worlds) break;
      const State s = random_state(random, c.model);
      const auto put = [&](std::span<R> array, const std::vector<double>& values) {
        batch.set(array, int(values.size()), world, std::vector<R>(values.begin(), values.end()));
      };
      put(batch.qpos, s.qpos), put(batch.qvel, s.qvel), put(batch.tau, s.tau);
      put(goal, random_qpos(random, c.model)), put(goal_velocity, random_vector(random, nv));
    }
    limiter.solve(batch, c.drives, c.h, batch.qpos, batch.qvel, goal, goal_velocity, batch.tau, qacc);
    for (int world = 0; world < worlds; ++world) {
      std::vector<R> q(nq), v(nv), tau(nv), g(nq), gv(nv), lane(nv), alone(nv);
      batch.get(batch.qpos, nq, world, q), batch.get(batch.qvel, nv, world, v), batch.get(batch.tau, nv, world, tau);
      batch.get(goal, nq, world, g), batch.get(goal_velocity, nv, world, gv), batch.get(qacc, nv, world, lane);
      DriveLimiter<R> single(c.model, one);
      single.solve(one, c.drives, c.h, q, v, g, gv, tau, alone);
      ASSERT_EQ(lane, alone) << "seed " << seed << ", world " << world;
      ASSERT_EQ(limiter.report(world).iterations, single.report(0).iterations)
          << "seed " << seed << ", world " << world;
      ASSERT_EQ(limiter.report(world).saturated, single.report(0).saturated);
    }
  }
}

TEST(ForceLimits, LanesEqualScalarsToTheBitInDouble) { expect_lanes_equal_scalars<double>(); }
TEST(ForceLimits, LanesEqualScalarsToTheBitInFloat) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  expect_lanes_equal_scalars<float>();
}

TEST(ForceLimits, FloatConverges) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  int missed = 0, cases = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Case c = random_case(seed);
    if (c.model.nv == 0) continue;
    DataFloat data(c.model);
    DriveLimiter<float> limiter(c.model, data);
    const auto narrow = [](const std::vector<double>& v) { return std::vector<float>(v.begin(), v.end()); };
    std::vector<float> qacc(c.model.nv);
    limiter.solve(data, c.drives, c.h, narrow(c.state.qpos), narrow(c.state.qvel), narrow(c.target),
                  narrow(c.target_velocity), narrow(c.state.tau), qacc);
    missed += !limiter.report(0).converged, ++cases;
  }
  EXPECT_LE(missed, cases / 100);
  RecordProperty("missed", missed);
}

TEST(ForceLimits, DampingWithinLimitsNeverDoesPositiveWork) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Case c = random_case(seed, false);
    if (c.model.nv == 0) continue;
    c.drives.force_floor.clear();
    std::fill(c.drives.kp.begin(), c.drives.kp.end(), 0.0);
    Data data(c.model);
    DriveLimiter<double> limiter(c.model, data);
    std::vector<double> qacc(c.model.nv);
    limiter.solve(data, c.drives, c.h, c.state.qpos, c.state.qvel, c.state.qpos, {}, c.state.tau, qacc);
    double power = 0, scale = 1;
    for (int k = 0; k < c.model.nv; ++k) {
      const double work = limiter.applied()[k] * (c.state.qvel[k] + c.h * qacc[k]);
      power += work, scale += std::abs(work);
    }
    ASSERT_LE(power, 1e-9 * scale) << "seed " << seed;
  }
}

TEST(ForceLimits, TakenFromTheModel) {
  ModelSpec spec = coupled_slides(0).spec;
  spec.bodies[1].joints[1].force_limited = true;
  spec.bodies[1].joints[1].force_range = {-3, 7};
  const Model model = compile(spec);
  Drives drives = Drives::none(model);
  EXPECT_FALSE(drives.limited());
  take_force_limits(model, drives);
  EXPECT_EQ(drives.force_limit, (std::vector<double>{kInfinity, 7}));
  EXPECT_EQ(drives.force_floor, (std::vector<double>{-kInfinity, -3}));
  EXPECT_NO_THROW(drives.check(model));
}

TEST(ForceLimits, BadLimitsAreNamed) {
  const Model model = coupled_slides(0);
  Drives drives = Drives::none(model);
  drives.force_limit = {1};
  EXPECT_THROW(drives.check(model), ShapeError);
  drives.force_limit = {1, std::nan("")};
  EXPECT_THROW(drives.check(model), ValueError);
  Data data(model);
  DriveLimiter<double> limiter(model, data);
  std::vector<double> qacc(model.nv);
  const auto solve = [&] { limiter.solve(data, drives, 0.01, data.qpos, data.qvel, data.qpos, {}, {}, qacc); };
  EXPECT_THROW(solve(), ValueError);
  drives.force_limit = {1, 5}, drives.force_floor = {-1, 2};  // the second only pushes
  EXPECT_NO_THROW(drives.check(model));
  EXPECT_NO_THROW(solve());
  drives.force_floor = {-1, 6};
  EXPECT_THROW(solve(), ValueError);
  drives.force_floor.clear(), drives.spin_damping = std::nan("");
  EXPECT_THROW(solve(), ValueError);
  drives.spin_damping = 0.5, drives.kp[0] = std::nan("");
  EXPECT_THROW(solve(), ValueError);
  drives.kp[0] = 0;
  EXPECT_NO_THROW(solve());
  drives.force_limit = {1, -1};
  try {
    drives.check(model);
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("\"s1\""), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace tarsus::test
