// Predictor-corrector method along the friction path (friction_path.hpp has the equations). A step moves along the
// curve's direction and returns to the curve by Newton's iterations across it.
#include "solver/friction_path.hpp"

#include <algorithm>
#include <cmath>

#include "math/dense_lu.hpp"
#include "solver/law.hpp"

namespace tarsus {

namespace {

constexpr std::size_t kMostRows = 256;  ///< largest number on the path: with more, the work ends before the curve does
constexpr double kMostWork = 1e9;       ///< limit on the operations of a problem's factorisations
constexpr double kFirstLength = 0.1;    ///< first length of a step along the curve,
constexpr double kMostLength = 0.3;     ///< and the largest relative to the impulses there; not below 1
constexpr double kLeastLength = 1e-10;  ///< the path is given up below this
constexpr double kLonger = 3, kShorter = 1.0 / 3;
constexpr int kEasy = 3;          ///< factorisations of a step up to which the next one is longer
constexpr int kFactored = 7;      ///< largest number in a step. It has converged when
constexpr double kMissed = 1e-7;  ///< the residual before the last correction is below this,
constexpr double kMoved = 1e-2;   ///< and that correction is below this share of the step
constexpr double kAstray = 2;     ///< corrections longer than this many steps lead to another curve. For steps shorter
constexpr double kShort =
    1e-4;  ///< than kShort the limit is in units of kShort: their starting point is no nearer to the curve
constexpr double kActive = 1e-6;  ///< smaller derivatives of a row's projection count as zero: its impulse is constant

double norm(std::span<const double> a) {
  double sum = 0;
  for (const double x : a) sum += x * x;
  return std::sqrt(sum);
}

/// The rounded maximum of two numbers, with its derivatives.
struct Larger {
  double value, by_a, by_b;
  Larger(double a, double b, double epsilon) {
    const double difference = a - b, root = std::sqrt(difference * difference + 4 * epsilon * epsilon);
    value = std::max(a, b) + 2 * epsilon * epsilon / (std::abs(difference) + root);  // ½ (a + b + root)
    by_a = 0.5 * (1 + difference / root), by_b = 0.5 * (1 - difference / root);
  }
};

/// P(z) of one term with friction scaled by s and rounded corners.
class RoundedLaw {
 public:
  double projected[kTermRows] = {}, by_s[kTermRows] = {};
  Tangent by_z{};

  RoundedLaw(const Term& term, const double* rho, const double* z, double rounding, double s)
      : term_(term), rho_(rho), z_(z), rounding_(rounding), s_(s) {
    switch (term.law) {
      case Law::interval: interval(term.lower, term.upper); break;
      case Law::ball: disc(0, 3, term.upper, 0, 0); break;
      case Law::contact:
        interval(0, kUnbounded);
        friction(1, 2, term.friction), friction(3, 1, term.torsional), friction(4, 2, term.rolling);
    }
  }

 private:
  double epsilon(int row) const { return rounding_ / rho_[row]; }
  void interval(double lower, double upper) {
    double y = z_[0], slope = 1;
    if (lower > -kUnbounded) {
      const Larger above(z_[0], lower, epsilon(0));
      y = above.value, slope = above.by_a;
    }
    if (upper < kUnbounded) {
      const Larger beyond(z_[0] - upper, 0, epsilon(0));
      y -= beyond.value, slope -= beyond.by_a;
    }
    projected[0] = y, by_z.at[0][0] = slope;
  }
  void friction(int first, int count, double bound) {
    if (term_.nrow < first + count) return;
    disc(first, count, s_ * bound * projected[0], s_ * bound * by_z.at[0][0], bound * projected[0]);
  }
  /// @param by_normal, of_s derivatives of the radius with respect to z_n and s
  void disc(int first, int count, double radius, double by_normal, double of_s) {
    const double e = epsilon(first);
    double square = e * e;
    for (int k = first; k < first + count; ++k) square += z_[k] * z_[k];
    const double length = std::sqrt(square);
    const Larger larger(radius, length, e);
    const double share = radius / larger.value;
    const double by_radius = (1 - share * larger.by_a) / larger.value;
    const double by_length = -share * larger.by_b / larger.value;
    for (int k = first; k < first + count; ++k) {
      projected[k] = z_[k] * share, by_s[k] = z_[k] * by_radius * of_s;
      for (int c = first; c < first + count; ++c)
        by_z.at[k][c] = (k == c ? share : 0) + z_[k] * z_[c] * by_length / length;
      if (first > 0) by_z.at[k][0] = z_[k] * by_radius * by_normal;
    }
  }

  const Term& term_;
  const double *rho_, *z_;
  double rounding_, s_;
};

}  // namespace

bool FrictionPath::spent() const { return work_ >= kMostWork; }
bool FrictionPath::is_over() const { return factorisations_ >= most_ || spent(); }

void FrictionPath::clear(std::size_t terms) { acted_.assign(terms, 0), work_ = 0; }

bool FrictionPath::join(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse) {
  return mark_active(problem.terms, problem.rows, velocity, impulse, acted_);
}

/// Collects the rows of the terms on the path. It perturbs their free velocities by shares of `rounding`, which breaks
/// symmetries.
/// @return false: there are too many rows, or the operator refused a solve
bool FrictionPath::gather(StepOperator& mass, const StepProblem& problem, double rounding) {
  Problem& p = problem_;
  p.clear(), terms_.clear();
  for (std::size_t t = 0; t < acted_.size(); ++t) {
    if (acted_[t]) p.add(problem.terms[t], problem.rows), terms_.push_back(int(t));
  }
  const std::size_t n = p.row.size();
  if (n > kMostRows) return false;
  const RowBlocks::Mass whole = mass.row_blocks(terms_).whole();
  p.A.resize(n * n), p.free.resize(n), p.rho.resize(n);
  const auto measure = [&] {
    for (const Term& term : p.terms)
      metric(term, &p.rows[term.first_row], problem.sliding_share, &p.rho[term.first_row]);
  };
  measure();
  std::vector<double> y(problem.rows.size(), 0.0), u(y.size()), rest(y.size());
  if (!mass.solve({}, y, rest)) return false;
  for (std::size_t i = 0; i < n && whole.A; ++i) std::copy_n(whole.A + i * std::size_t(whole.stride), n, &p.A[i * n]);
  for (std::size_t i = 0; i < n && !whole.A; ++i) {
    double& one = y[p.row[i]];
    one = 1 / p.rho[i];
    if (!mass.solve({}, y, u)) return false;
    for (std::size_t k = 0; k < n; ++k) p.A[i * n + k] = (u[p.row[k]] - rest[p.row[k]]) / one;
    one = 0;
  }
  double share = 0;  // fractional parts of multiples of the golden ratio
  for (std::size_t i = 0; i < n; ++i) {
    share += 0.6180339887498949, share -= std::floor(share);
    p.free[i] = problem.free_velocity[p.row[i]] + rest[p.row[i]] + rounding * (share - 0.5);
    for (std::size_t k = 0; k < i; ++k) p.A[i * n + k] = p.A[k * n + i] = 0.5 * (p.A[i * n + k] + p.A[k * n + i]);
    const double own = std::max(0.0, p.A[i * (n + 1)]);
    p.rows[i].scale = p.rows[i].scale > 0 ? std::min(p.rows[i].scale, own) : own;
  }
  measure();
  return true;
}

/// Residual at that point, and its derivatives.
void FrictionPath::look_at(const Point& at) {
  const Problem& p = problem_;
  const std::size_t n = p.row.size();
  now_.missed.resize(n), now_.by_friction.resize(n), now_.projection.resize(p.terms.size());
  now_.active.clear(), now_.term_of.clear();
  std::vector<double>& y = factors_.right;
  y.resize(n);
  for (std::size_t i = 0; i < n; ++i) y[i] = at[i] / p.rho[i];
  for (std::size_t t = 0; t < p.terms.size(); ++t) {
    const Term& term = p.terms[t];
    double z[kTermRows];
    for (int k = 0; k < term.nrow; ++k) {
      const std::size_t i = std::size_t(term.first_row + k);
      double u = p.free[i];
      for (std::size_t c = 0; c < n; ++c) u += p.A[i * n + c] * y[c];
      z[k] = y[i] - miss(p.rows[i], u, y[i]) / p.rho[i];
    }
    const RoundedLaw law(term, &p.rho[term.first_row], z, rounding_, at.back());
    now_.projection[t] = law.by_z;
    for (int k = 0; k < term.nrow; ++k) {
      const std::size_t i = std::size_t(term.first_row + k);
      now_.missed[i] = at[i] - p.rho[i] * law.projected[k], now_.by_friction[i] = -p.rho[i] * law.by_s[k];
      const double* const row = law.by_z.at[k];
      if (std::abs(now_.by_friction[i]) > kActive * unit_ ||
          std::any_of(row, row + term.nrow, [](double d) { return std::abs(d) > kActive; }))
        now_.active.push_back(int(i)), now_.term_of.push_back(int(t));
    }
  }
}

/// Factors with `along` as the last row.  @return sign of the determinant; 0: singular
int FrictionPath::factor(const Point& along) {
  const Problem& p = problem_;
  const std::size_t n = p.row.size(), m = now_.active.size();
  factors_.matrix.assign((m + 1) * (m + 1), 0.0), factors_.pivot.resize(m + 1);
  for (std::size_t a = 0; a <= m; ++a) {
    double* const row = &factors_.matrix[a * (m + 1)];
    if (a == m) {
      for (std::size_t c = 0; c < m; ++c) row[c] = along[now_.active[c]];
      row[m] = along.back();
      break;
    }
    const int i = now_.active[a];
    const Term& term = p.terms[now_.term_of[a]];
    const double* const D = now_.projection[now_.term_of[a]].at[i - term.first_row];
    row[a] = 1, row[m] = now_.by_friction[i] / unit_;
    for (int k = 0; k < term.nrow; ++k) {  // ∂z = 1 - (A + R)/ρ
      const std::size_t r = std::size_t(term.first_row + k);
      if (D[k] == 0) continue;
      const double share = D[k] * p.rho[i] / p.rho[r];
      for (std::size_t c = 0; c < m; ++c) {
        const std::size_t j = std::size_t(now_.active[c]);
        row[c] += share * p.A[r * n + j] / p.rho[j];
        if (j == r) row[c] -= share * (p.rho[r] - p.rows[r].compliance) / p.rho[r];
      }
    }
  }
  ++factorisations_, work_ += 2.0 / 3 * double(m * m * m);
  if (!factor_lu(factors_.matrix, factors_.pivot)) return 0;
  int sign = 1;
  for (std::size_t k = 0; k <= m; ++k) {
    if ((factors_.matrix[k * (m + 2)] < 0) != (factors_.pivot[k] != int(k))) sign = -sign;
  }
  return sign;
}

/// @param x [row] and s: right side, in units; out: the solution
void FrictionPath::solve(std::span<double> x) {
  std::vector<double>& right = factors_.right;
  right.clear();
  for (const int i : now_.active) right.push_back(x[i]);
  right.push_back(x.back());
  solve_lu(factors_.matrix, factors_.pivot, right);
  for (std::size_t a = 0; a < now_.active.size(); ++a) x[now_.active[a]] = right[a];
  x.back() = right.back();
}

/// @param by in units
void FrictionPath::move(Point& at, const Point& by, double times) const {
  for (std::size_t i = 0; i + 1 < at.size(); ++i) at[i] += times * unit_ * by[i];
  at.back() += times * by.back();
}

/// Corrects the point onto the curve, across `along`.
/// @return number of factorisations times the sign of the last determinant; 0: failed
int FrictionPath::correct(Point& at, const Point& along, double length) {
  Point step(at.size());
  double last = kUnbounded;
  for (int k = 1; k <= kFactored && !is_over(); ++k) {
    look_at(at);
    double missed = 0;
    for (const double r : now_.missed) missed = std::max(missed, std::abs(r) / unit_);
    const int sign = factor(along);
    if (sign == 0 || (k > 2 && missed > last)) return 0;
    last = missed;
    for (std::size_t i = 0; i < now_.missed.size(); ++i) step[i] = -now_.missed[i] / unit_;
    step.back() = 0;
    solve(step);
    const double moved = norm(step);
    if (!(moved <= kAstray * std::max(length, kShort))) return 0;
    move(at, step, 1);
    if (missed < kMissed && moved <= kMoved * length) return k * sign;
  }
  return 0;
}

/// Direction of the curve where correct() ended, from its factors.
bool FrictionPath::find_direction(Point& along) {
  std::fill(along.begin(), along.end(), 0.0), along.back() = 1;
  solve(along);
  const double length = norm(along);
  for (double& x : along) x /= length;
  return std::isfinite(length);
}

bool FrictionPath::follow(StepOperator& mass, const StepProblem& problem, double rounding, int most,
                          std::span<double> impulse) {
  factorisations_ = 0, most_ = most;
  if (is_over() || !gather(mass, problem, rounding)) return false;
  Point at(problem_.row.size() + 1, 0.0);
  for (std::size_t i = 0; i + 1 < at.size(); ++i) at[i] = problem_.rho[i] * impulse[problem_.row[i]];
  rounding_ = rounding, unit_ = std::max(norm(at), 1e-3);
  if (!follow(at)) return false;
  for (std::size_t i = 0; i + 1 < at.size(); ++i) impulse[problem_.row[i]] = at[i] / problem_.rho[i];
  return true;
}

bool FrictionPath::follow(Point& at) {
  const std::size_t n = at.size() - 1;
  Point along(n + 1, 0.0), ahead(n + 1), last(n + 1, 0.0);
  along[n] = last[n] = 1;
  const int started = correct(at, along, 1);
  if (started == 0 || !find_direction(along)) return false;
  double length = kFirstLength;
  while (length > kLeastLength && !is_over()) {
    Point next = at;
    move(next, along, length);
    const int corrections = correct(next, along, length);
    // On another curve nearby, the determinant may have the other sign.
    if (corrections == 0 || (corrections > 0) != (started > 0) || !find_direction(ahead)) {
      length *= kShorter;
      continue;
    }
    if (next[n] >= 1) {  // beyond the end
      const double share = (1 - at[n]) / (next[n] - at[n]);
      for (std::size_t i = 0; i < n; ++i) next[i] = at[i] + share * (next[i] - at[i]);
      next[n] = 1;
      if (correct(next, last, length) != 0) return at = next, true;
      length *= 0.5 * share;
      continue;
    }
    std::swap(at, next), std::swap(along, ahead);
    const int count = std::abs(corrections);
    length *= count <= kEasy ? kLonger : count == kEasy + 1 ? 1.3 : 0.8;
    length = std::min(length, std::max(1.0, kMostLength * norm(at) / unit_));
  }
  return false;
}

}  // namespace tarsus
