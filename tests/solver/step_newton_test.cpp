// The solver of a step on a dense mass matrix: laws, momentum, and numbers of iterations.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <memory>
#include <random>
#include <tuple>

#include "solver/friction_path.hpp"
#include "support/dense_solve.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {
namespace {

using Eigen::MatrixXd, Eigen::VectorXd;

/// One block per term, with A = J M⁻¹ Jᵀ of all rows; or all rows in one block.
class DenseRows final : public RowBlocks {
 public:
  bool at_once = false;
  std::vector<int> first, row;
  MatrixXd A, padded;
  VectorXd Jx, before, momentum;

  int blocks() const override { return at_once ? 1 : int(first.size()) - 1; }
  int terms(int) const override { return at_once ? int(first.size()) - 1 : 1; }
  Mass whole() const override { return at_once ? Mass{padded.data(), int(padded.rows())} : Mass{}; }
  void own_mass(int b, double* out, int stride) override {
    const int n = first[b + 1] - first[b];
    Eigen::Map<MatrixXd, 0, Eigen::OuterStride<>>(out, n, n, Eigen::OuterStride<>(stride)) =
        A.block(first[b], first[b], n, n);
  }
  void rest() override { Jx = before = momentum = VectorXd::Zero(A.rows()); }
  void extrapolate(const Extrapolation& by) override {
    for (int i = 0; i < Jx.size(); ++i) by(Jx[i], before[i], momentum[i]);
  }
  void velocity(int b, double* out) override { std::copy(&Jx[first[b]], &Jx[first[b]] + first[b + 1] - first[b], out); }
  void push(int b, const double* change) override {
    for (int r = first[b]; r < first[b + 1]; ++r) Jx += change[r - first[b]] * A.col(r);
  }
};

/// M̂ and J as dense matrices; bilateral rows E x = e by their KKT matrix.
class DenseOperator : public StepOperator {
 public:
  MatrixXd M, J, E;
  VectorXd e;
  std::span<const Term> terms;
  VectorXd x, next, best;
  DenseRows rows;
  bool first = true, offers_alone = false;
  bool changes = false, keeps_factors = false;  ///< it has solve_change(), and solve_again()
  int solves = 0, asked_alone = 0, solves_again = 0;
  std::unique_ptr<DenseOperator> own;
  std::vector<Term> own_terms;

  bool solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) override {
    MatrixXd G = MatrixXd::Zero(J.rows(), J.rows());
    for (std::size_t i = 0; i < tangents.size(); ++i) {
      for (int r = 0; r < terms[i].nrow; ++r) {
        for (int c = 0; c < terms[i].nrow; ++c)
          G(terms[i].first_row + r, terms[i].first_row + c) = tangents[i].at[r][c];
      }
    }
    const Eigen::Index n = M.rows(), m = E.rows();
    MatrixXd whole = MatrixXd::Zero(n + m, n + m);
    whole.topLeftCorner(n, n) = M + J.transpose() * G * J;
    whole.topRightCorner(n, m) = E.transpose(), whole.bottomLeftCorner(m, n) = E;
    VectorXd right(n + m);
    right << J.transpose() * Eigen::Map<const VectorXd>(force.data(), J.rows()), e;
    next = test::lu_solve(whole, right).col(0).head(n);
    Eigen::Map<VectorXd>(change.data(), J.rows()) = J * next;
    ++solves;
    return true;
  }
  bool takes_changes() const override { return changes; }
  bool solve_change(std::span<const Tangent> tangents, std::span<const double> force,
                    std::span<double> change) override {
    solve(tangents, force, change);
    next += x;
    return true;
  }
  bool solve_again(std::span<const Tangent> tangents, std::span<const double> force,
                   std::span<double> change) override {
    if (!keeps_factors) return false;
    ++solves_again;
    return solve_change(tangents, force, change);
  }
  RowBlocks& row_blocks(std::span<const int> chosen) override {
    rows.first.clear(), rows.row.clear();
    for (const int t : chosen) {
      rows.first.push_back(int(rows.row.size()));
      for (int k = 0; k < terms[t].nrow; ++k) rows.row.push_back(terms[t].first_row + k);
    }
    rows.first.push_back(int(rows.row.size()));
    const MatrixXd some = J(rows.row, Eigen::all);
    const Eigen::Index n = M.rows(), m = E.rows();
    MatrixXd whole = MatrixXd::Zero(n + m, n + m), right = MatrixXd::Zero(n + m, some.rows());
    whole.topLeftCorner(n, n) = M;
    whole.topRightCorner(n, m) = E.transpose(), whole.bottomLeftCorner(m, n) = E;
    right.topRows(n) = some.transpose();
    rows.A = some * test::lu_solve(whole, right).topRows(n);
    rows.padded = MatrixXd::Zero((some.rows() + 7) / 8 * 8, some.rows());
    rows.padded.topRows(some.rows()) = rows.A;
    rows.rest();
    return rows;
  }
  SweepKind sweeps() const override { return rows.at_once ? SweepKind::at_once : SweepKind::of_trees; }
  StepOperator* reduced(std::span<const int> chosen) override {
    if (!offers_alone) return nullptr;
    own = std::make_unique<DenseOperator>();
    own->M = M, own->E = E, own->e = VectorXd::Zero(E.rows()), own->rows.at_once = true;
    own_terms.clear();
    std::vector<int> kept;
    for (const int t : chosen) {
      own_terms.push_back(terms[t]), own_terms.back().first_row = int(kept.size());
      for (int k = 0; k < terms[t].nrow; ++k) kept.push_back(terms[t].first_row + k);
    }
    own->J = J(kept, Eigen::all), own->terms = own_terms;
    ++asked_alone;
    return own.get();
  }
  void move(double t) override {
    x = first ? next : VectorXd(x + t * (next - x));
    first = false;
  }
  void keep() override { best = x; }
};

struct Problem {
  DenseOperator mass;
  std::vector<Term> terms;
  std::vector<TermRow> rows;
  VectorXd free;  // v⁰

  std::vector<double> free_rows() const {
    const VectorXd u = mass.J * free;
    return {u.data(), u.data() + u.size()};
  }
};

struct Draw {
  std::mt19937 engine;
  double uniform(double a, double b) { return std::uniform_real_distribution<double>(a, b)(engine); }
  double normal() { return std::normal_distribution<double>()(engine); }
  int index(int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine); }
};

Problem random_problem(unsigned seed, int n, int contacts, int axial, int balls, int bilateral) {
  Draw draw{std::mt19937(seed)};
  Problem p;
  const auto fill = [&](MatrixXd& m) {
    for (int i = 0; i < m.size(); ++i) m.data()[i] = draw.normal();
  };
  MatrixXd A(n, n);
  fill(A);
  const VectorXd scale = VectorXd::NullaryExpr(n, [&] { return std::pow(10, draw.uniform(-1, 1)); });
  p.mass.M = scale.asDiagonal() * (A * A.transpose() / n + 0.1 * MatrixXd::Identity(n, n)) * scale.asDiagonal();
  const auto add = [&](Term term) {
    term.first_row = int(p.rows.size());
    p.rows.resize(p.rows.size() + term.nrow);
    p.terms.push_back(term);
  };
  constexpr int kDimensions[] = {1, 3, 4, 6};
  for (int i = 0; i < contacts; ++i)
    add({Law::contact, 0, kDimensions[draw.index(4)], 0, kUnbounded, draw.uniform(0, 1.2), draw.uniform(0, 0.3),
         draw.uniform(0, 0.2)});
  for (int i = 0; i < axial; ++i) {
    const double bound = std::pow(10, draw.uniform(-2, 1));
    const bool one_sided = draw.index(2);
    add({Law::interval, 0, 1, one_sided ? 0 : -bound, one_sided ? kUnbounded : bound});
  }
  for (int i = 0; i < balls; ++i) add({Law::ball, 0, 3, 0, std::pow(10, draw.uniform(-2, 1))});
  const int m = int(p.rows.size());
  p.mass.J.resize(m, n), fill(p.mass.J);
  p.mass.J = p.mass.J * scale.asDiagonal();
  p.mass.E.resize(bilateral, n), fill(p.mass.E);
  p.mass.e = VectorXd::NullaryExpr(bilateral, [&] { return draw.normal(); });
  const VectorXd w = (p.mass.J * test::spd_solve(p.mass.M, p.mass.J.transpose())).diagonal();
  for (const Term& term : p.terms) {
    const double drive = std::pow(10, draw.uniform(-3, 0));
    for (int k = 0; k < term.nrow; ++k) {
      const int r = term.first_row + k, like = term.law == Law::contact && k > 0 ? term.first_row + 1 : term.first_row;
      p.rows[r] = {term.law == Law::contact ? 0.00085 * w[like] : drive * w[like], draw.normal(), 0, w[r]};
      if (k > 0 && draw.index(2)) p.rows[r].centre = 0.1 * draw.normal();
    }
  }
  p.free = VectorXd::NullaryExpr(n, [&] { return 3 * draw.normal(); });
  p.mass.terms = p.terms;
  return p;
}

struct Solution {
  NewtonReport report;
  std::vector<double> y, impulse;
  VectorXd velocity;
};

Solution solve(Problem& p, const NewtonOptions& options, const std::vector<double>* start = nullptr) {
  Solution s;
  s.y.assign(p.rows.size(), 0.0), s.impulse.assign(p.rows.size(), 0.0);
  const std::vector<double> u = p.free_rows();
  for (std::size_t r = 0; r < p.rows.size(); ++r)
    s.y[r] = p.rows[r].centre + (p.rows[r].target - u[r]) / p.rows[r].compliance;
  if (start) s.y = *start;
  p.mass.terms = p.terms, p.mass.first = true;
  StepNewton newton;
  s.report = newton.solve(p.mass, {p.terms, p.rows, u}, options, s.y, s.impulse);
  s.velocity = p.free + p.mass.best;
  return s;
}

/// The laws, written independently: each term's impulse is the projection of y at the velocity that the impulses cause.
/// @return the largest violation
double law_missed(const Problem& p, const Solution& s) {
  const VectorXd u = p.mass.J * s.velocity;
  double worst = 0;
  for (const Term& t : p.terms) {
    const auto y = [&](int k) {
      const TermRow& r = p.rows[t.first_row + k];
      return r.centre + (r.target - u[t.first_row + k]) / r.compliance;
    };
    const auto take = [&](int k, double expected) {
      worst = std::max(worst, std::abs(s.impulse[t.first_row + k] - expected) * p.rows[t.first_row + k].compliance);
    };
    const auto vector = [&](int first, int count, double radius) {
      double square = 0;
      for (int k = 0; k < count; ++k) square += y(first + k) * y(first + k);
      const double q = square > radius * radius ? radius / std::sqrt(square) : 1;
      for (int k = 0; k < count; ++k) take(first + k, q * y(first + k));
    };
    if (t.law == Law::interval) take(0, std::min(std::max(y(0), t.lower), t.upper));
    if (t.law == Law::ball) vector(0, 3, t.upper);
    if (t.law != Law::contact) continue;
    const double normal = std::max(0.0, s.impulse[t.first_row]);
    take(0, std::max(0.0, y(0)));
    if (t.nrow >= 3) vector(1, 2, t.friction * normal);
    if (t.nrow >= 4) vector(3, 1, t.torsional * normal);
    if (t.nrow >= 6) vector(4, 2, t.rolling * normal);
  }
  return worst;
}

double momentum_missed(const Problem& p, const Solution& s) {
  VectorXd left = p.mass.M * (s.velocity - p.free) -
                  p.mass.J.transpose() * Eigen::Map<const VectorXd>(s.impulse.data(), p.mass.J.rows());
  if (p.mass.E.rows() > 0) {  // without the part that the bilateral rows can carry
    const MatrixXd Et = p.mass.E.transpose();
    const VectorXd carried = Et.colPivHouseholderQr().solve(left);
    left -= Et * carried;
  }
  return left.norm() / (1 + (p.mass.M * p.free).norm());
}

struct Tally {
  int solved = 0, missed = 0, iterations = 0;
  double law = 0, momentum = 0, bilateral = 0, warm = 0;
  int alone = 0;  ///< solved for the active terms alone
};

/// With 30 iterations, which leave none for other starts.
Tally run(unsigned count, int contacts, int axial, int balls, int bilateral, bool at_once = false, bool alone = false) {
  Tally tally;
  for (unsigned seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(seed);
    Problem p = random_problem(seed, 8 + seed % 17, contacts, axial, balls, bilateral);
    p.mass.rows.at_once = at_once, p.mass.offers_alone = alone;
    const Solution s = solve(p, {.max_iterations = 30, .tolerance = 1e-8});
    tally.alone += p.mass.asked_alone > 0;
    tally.iterations += s.report.iterations;
    EXPECT_TRUE(s.report.finite);
    tally.momentum = std::max(tally.momentum, momentum_missed(p, s));
    if (bilateral) tally.bilateral = std::max(tally.bilateral, (p.mass.E * (s.velocity - p.free) - p.mass.e).norm());
    if (!s.report.converged) {
      ++tally.missed;
      continue;
    }
    ++tally.solved;
    tally.law = std::max(tally.law, law_missed(p, s));
    // From its own solution: one iteration.
    const Solution again = solve(p, {.max_iterations = 30, .tolerance = 1e-7}, &s.y);
    tally.warm = std::max(tally.warm, double(again.report.iterations));
  }
  std::printf(
      "%d contacts, %d axial, %d balls, %d bilateral: %.1f iterations, %d of %u missed; law %.1e, momentum %.1e, "
      "bilateral %.1e, warm %.0f\n",
      contacts, axial, balls, bilateral, double(tally.iterations) / count, tally.missed, count, tally.law,
      tally.momentum, tally.bilateral, tally.warm);
  return tally;
}

TEST(StepNewton, ConvexTermsAlwaysConverge) {
  for (const int bilateral : {0, 3}) {
    const Tally t = run(200, 0, 10, 3, bilateral);
    EXPECT_EQ(t.missed, 0);
    EXPECT_LT(t.law, 1e-7);
    EXPECT_LT(t.momentum, 1e-9);
    EXPECT_LT(t.bilateral, 1e-9);
    EXPECT_EQ(t.warm, 1);
  }
}

TEST(StepNewton, CoulombFrictionWithEverythingElse) {
  for (const int bilateral : {0, 2}) {
    for (const int way : {0, 1, 2}) {  // sweeps from the seventh iteration, from the second, or the active terms alone
      const Tally t = run(200, 3, 4, 1, bilateral, way == 1, way == 2);
      EXPECT_EQ(t.alone > 100, way == 2);
      EXPECT_EQ(t.missed, 0);
      EXPECT_LT(t.law, 1e-7);
      EXPECT_LT(t.momentum, 1e-9);
      EXPECT_LE(t.warm, 2);
    }
  }
}

/// A step with the last iteration's factors takes the place of an iteration near the solution.
TEST(StepNewton, TheLastFactorsSaveFactorisations) {
  int factorisations[2] = {}, again = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    for (const bool keeps : {false, true}) {
      Problem p = random_problem(seed, 8 + seed % 17, 3, 4, 1, 0);
      p.mass.changes = true, p.mass.keeps_factors = keeps;
      const Solution s = solve(p, {.max_iterations = 30, .tolerance = 1e-8});
      EXPECT_TRUE(s.report.converged);
      EXPECT_LT(law_missed(p, s), 1e-7);
      EXPECT_LT(momentum_missed(p, s), 1e-9);
      factorisations[keeps] += s.report.iterations, again += p.mass.solves_again;
    }
  }
  std::printf("%d factorisations, %d with %d solves by earlier factors\n", factorisations[0], factorisations[1], again);
  EXPECT_LT(factorisations[1], 0.95 * factorisations[0]);
  EXPECT_LT(again, 200);  // at most one in each of nearly all steps: it is made where it probably suffices
}

/// Where Newton's method with sweeps does not converge, another start solves the problem.
TEST(StepNewton, CoulombFrictionEndsFromAnotherStart) {
  int long_ones = 0;
  for (unsigned seed = 0; seed < 1200; ++seed) {
    SCOPED_TRACE(seed);
    Problem p = random_problem(seed, 24, 16, 6, 2, int(seed % 3));
    const Solution s = solve(p, {.tolerance = 1e-8});
    EXPECT_TRUE(s.report.converged) << s.report.iterations << " iterations, residual " << s.report.residual;
    EXPECT_LT(law_missed(p, s), 1e-7);
    EXPECT_LT(momentum_missed(p, s), 1e-9);
    long_ones += s.report.iterations > 25;
  }
  std::printf("%d of 1200 took more than 25 iterations\n", long_ones);
  EXPECT_GT(long_ones, 5);
}

/// With starts drawn at random one in fifteen of these problems remains unsolved, by metres a second, after a thousand
/// iterations.
TEST(StepNewton, CoulombFrictionEndsHoweverManyContactsAct) {
  int long_ones = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    Problem p = random_problem(seed, 30, 40, 10, 2, 0);
    const Solution s = solve(p, {.tolerance = 1e-8});
    EXPECT_TRUE(s.report.converged) << s.report.iterations << " iterations, residual " << s.report.residual;
    EXPECT_LT(law_missed(p, s), 1e-7);
    EXPECT_LT(momentum_missed(p, s), 1e-9);
    long_ones += s.report.iterations > 40;
  }
  std::printf("%d of 120 took more than 40 iterations\n", long_ones);
  EXPECT_GE(long_ones, 3);
}

Solution without_friction(Problem& p) {
  const std::vector<Term> terms = p.terms;
  for (Term& term : p.terms) term.friction = term.torsional = term.rolling = 0;
  const Solution smooth = solve(p, {.tolerance = 1e-9});
  EXPECT_TRUE(smooth.report.converged);
  p.terms = terms, p.mass.terms = p.terms;
  return smooth;
}

/// From the impulses without friction, with every term that becomes active on the way.
TEST(FrictionPath, LeadsToASolution) {
  int joined = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    Problem p = random_problem(seed, 8, 12, 4, 1, int(seed % 3));
    const Solution smooth = without_friction(p);
    const std::vector<double> free = p.free_rows();
    const StepProblem problem{p.terms, p.rows, free};
    std::vector<double> velocity(p.rows.size());
    Eigen::Map<VectorXd>(velocity.data(), p.mass.J.rows()) = p.mass.J * smooth.velocity;
    FrictionPath path;
    Solution s = smooth;
    path.clear(p.terms.size()), path.join(problem, velocity, smooth.impulse);
    do {
      s.impulse = smooth.impulse;
      ASSERT_TRUE(path.follow(p.mass, problem, 1e-3, 5000, s.impulse));
      apply_impulses(p.mass, problem, s.impulse, velocity);
      ++joined;
    } while (path.join(problem, velocity, s.impulse));
    --joined;
    s.velocity = p.free + p.mass.x;
    EXPECT_LT(law_missed(p, s), 1e-2);
    EXPECT_LT(momentum_missed(p, s), 1e-9);
  }
  EXPECT_GT(joined, 10);
}

TEST(FrictionPath, EndsWithinItsFactorisations) {
  Problem p = random_problem(3, 8, 12, 4, 1, 0);
  const Solution smooth = without_friction(p);
  const std::vector<double> free = p.free_rows();
  const StepProblem problem{p.terms, p.rows, free};
  std::vector<double> impulse = smooth.impulse;
  FrictionPath path;
  path.clear(p.terms.size()), path.join(problem, free, impulse);
  EXPECT_FALSE(path.follow(p.mass, problem, 1e-3, 3, impulse));
  EXPECT_EQ(path.factorisations(), 3);
  EXPECT_EQ(impulse, smooth.impulse);
}

/// Problems in which a mirror symmetry makes two solution curves meet, and bounds that have no effect.
TEST(FrictionPath, LeadsOnFromWhereCurvesMeet) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Problem half = random_problem(seed, 6, 6, 3, 0, 0);
    const Eigen::Index n = half.mass.M.rows(), m = half.mass.J.rows();
    Problem p;  // two of one kind and their coupling
    p.mass.M.setZero(2 * n, 2 * n), p.mass.J.setZero(2 * m, 2 * n), p.mass.E.resize(0, 2 * n), p.free.resize(2 * n);
    const MatrixXd coupling = 0.5 * half.mass.M;
    p.mass.M << half.mass.M, coupling, coupling, half.mass.M;
    p.mass.J.topLeftCorner(m, n) = p.mass.J.bottomRightCorner(m, n) = half.mass.J;
    p.free << half.free, half.free;
    for (const int side : {0, 1}) {
      for (Term term : half.terms) {
        term.first_row += side * int(m);
        if (term.law == Law::interval && term.upper < kUnbounded) term.lower = -1e12, term.upper = 1e12;
        p.terms.push_back(term);
      }
      p.rows.insert(p.rows.end(), half.rows.begin(), half.rows.end());
    }
    const Solution s = solve(p, {.tolerance = 1e-8});
    EXPECT_TRUE(s.report.converged) << s.report.residual;
    EXPECT_LT(law_missed(p, s), 1e-7);
    const Solution smooth = without_friction(p);
    const std::vector<double> free = p.free_rows();
    const StepProblem problem{p.terms, p.rows, free};
    std::vector<double> velocity(p.rows.size()), impulse = smooth.impulse;
    Eigen::Map<VectorXd>(velocity.data(), p.mass.J.rows()) = p.mass.J * smooth.velocity;
    FrictionPath path;
    path.clear(p.terms.size()), path.join(problem, velocity, impulse);
    EXPECT_TRUE(path.follow(p.mass, problem, 1e-3, 5000, impulse));
  }
}

/// After one sweep, and after as many as the solution takes.
TEST(Sweeps, OneBlockOfAllRowsIsTheSame) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const auto swept = [&](bool at_once, int count) {
      Problem p = random_problem(seed, 8 + seed % 17, 2, 4, 1, seed % 3);
      p.mass.rows.at_once = at_once;
      std::vector<double> y(p.rows.size(), 0.0), impulse = y;
      const std::vector<double> u = p.free_rows();
      Sweeps sweeps;
      const SweepReport report = sweeps.solve(
          p.mass, {p.terms, p.rows, u}, {.max_sweeps = count, .tolerance = 1e-10, .most_sweeps = count}, y, impulse);
      if (count > 1) {
        EXPECT_LT(report.residual, 1e-8);
      }
      return impulse;
    };
    const std::vector<double> in_blocks = swept(false, 1), at_once = swept(true, 1);
    double size = 0;
    for (const double x : in_blocks) size = std::max(size, std::abs(x));
    for (std::size_t r = 0; r < at_once.size(); ++r) EXPECT_NEAR(in_blocks[r], at_once[r], 1e-12 * size);
    swept(true, 20000);
  }
}

/// Also in a step that takes thousands of iterations with occasional progress.
TEST(Sweeps, AStepHasABoundedNumber) {
  for (const auto& [kind, early, most] : {std::tuple{SweepKind::of_trees, 0.0, 640},
                                          {SweepKind::at_once, 1.0, 100},
                                          {SweepKind::of_bodies, 0.0, 4000},
                                          {SweepKind::of_crowd, 0.0, 4000}}) {
    for (const int stride : {25, 29, 33, 2000}) {
      Sweeps sweeps;
      sweeps.restart();
      std::vector<double> residuals;
      int all = 0;
      double residual = 1;
      for (int k = 1; k <= 1000; ++k) {
        if (k % stride == 0) residual *= 0.4;
        residuals.push_back(residual);
        const int count = sweeps.due(residuals, early, kind);
        ASSERT_GE(count, 0) << "iteration " << k;
        all += count;
      }
      EXPECT_GT(all, 0);
      EXPECT_LE(all, most);
    }
  }
}

/// Also for terms that the sweeps already know.
TEST(Sweeps, RowsAreReadAtEachRun) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const auto swept = [&](bool known) {
      Problem p = random_problem(seed, 8 + seed % 17, 0, 6, 2, 0);
      const std::vector<double> u = p.free_rows();
      std::vector<double> impulse(p.rows.size(), 0.0);
      Sweeps sweeps;
      sweeps.begin({p.terms, p.rows, u});
      if (known) {
        std::vector<double> other = impulse;
        sweeps.run(p.mass, {p.terms, p.rows, u}, 3, u, other);
      }
      for (TermRow& row : p.rows) row.target += 0.5, row.centre *= 2;
      sweeps.run(p.mass, {p.terms, p.rows, u}, 2000, u, impulse);
      return impulse;
    };
    const std::vector<double> fresh = swept(false), known = swept(true);
    double size = 0;
    for (const double x : fresh) size = std::max(size, std::abs(x));
    for (std::size_t r = 0; r < fresh.size(); ++r) EXPECT_NEAR(fresh[r], known[r], 1e-8 * size);
  }
}

}  // namespace
}  // namespace tarsus
