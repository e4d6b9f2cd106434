// The natural map of the terms: how well a velocity and an impulse satisfy a term's law, and Newton's step on it.
#include <algorithm>

#include "solver/law.hpp"
#include "tarsus/math/larger.hpp"

namespace tarsus {

void metric(const Term& term, const TermRow* rows, double share, double* rho) {
  const int sliding = term.law == Law::contact ? 3 : 0;
  for (int i = 0; i < term.nrow; ++i) rho[i] = rows[i].scale * (i < sliding ? share : 1) + rows[i].compliance;
  const auto join = [&](int first, int count) {
    const double largest = *std::max_element(rho + first, rho + first + count);
    std::fill_n(rho + first, count, largest);
  };
  if (term.law == Law::ball) join(0, 3);
  if (term.law == Law::contact && term.nrow >= 3) join(1, 2);
  if (term.law == Law::contact && term.nrow >= 6) join(4, 2);
}

namespace {

constexpr TermRow kUnit{.compliance = 1};
constexpr TermRow kUnits[kTermRows] = {kUnit, kUnit, kUnit, kUnit, kUnit, kUnit};

/// P(z) of the natural map. @param share as for metric()  @param normal, tangent as for term_law()
void project(const Term& term, const TermRow* rows, const double* velocity, const double* impulse, double share,
             double normal, double* rho, double* projected, Tangent* tangent) {
  double z[kTermRows] = {};
  metric(term, rows, share, rho);
  for (int i = 0; i < term.nrow; ++i) z[i] = impulse[i] - miss(rows[i], velocity[i], impulse[i]) / rho[i];
  term_law(term, kUnits, z, normal, projected, tangent);
}

/// Solves (1 - D K) [G | s] = [D/ρ | N] in place, K = 1 - R/ρ. Elimination without pivoting: the matrix is triangular
/// in blocks, normal first, and the blocks are symmetric and positive definite.
template <int n>
void eliminate(const TermRow* rows, const double* rho, Tangent& tangent, double* N) {
  double A[n][2 * n + 1];
  for (int r = 0; r < n; ++r) {
    for (int c = 0; c < n; ++c) {
      const double D = tangent.at[r][c];
      A[r][c] = (r == c ? 1 : 0) - D * (1 - rows[c].compliance / rho[c]);
      A[r][n + c] = D / rho[c];
    }
    A[r][2 * n] = N[r];
  }
  for (int p = 0; p < n; ++p) {
    const double inverse = 1 / A[p][p];
    for (int c = p; c <= 2 * n; ++c) A[p][c] *= inverse;
    for (int r = 0; r < n; ++r) {
      const double factor = A[r][p];
      if (r == p || factor == 0) continue;
      for (int c = p; c <= 2 * n; ++c) A[r][c] -= factor * A[p][c];
    }
  }
  for (int r = 0; r < n; ++r) {
    for (int c = 0; c < n; ++c) tangent.at[r][c] = A[r][n + c];
    N[r] = A[r][2 * n];
  }
}

void eliminate(int n, const TermRow* rows, const double* rho, Tangent& tangent, double* N) {
  switch (n) {
    case 1: return eliminate<1>(rows, rho, tangent, N);
    case 3: return eliminate<3>(rows, rho, tangent, N);
    case 4: return eliminate<4>(rows, rho, tangent, N);
    default: return eliminate<kTermRows>(rows, rho, tangent, N);
  }
}

/// ρ N of one row. @param inside out: z is within the bounds
double interval_miss(const Term& term, const TermRow& row, double u, double y, bool& inside) {
  const double rho = row.scale + row.compliance, z = y - miss(row, u, y) / rho;
  inside = z > term.lower && z < term.upper;
  return (y - std::clamp(z, term.lower, term.upper)) * rho;
}

double interval_map(const Term& term, const TermRow& row, double u, double y, Tangent* tangent, double* base) {
  bool inside = false;
  const double r = interval_miss(term, row, u, y, inside);
  if (tangent) {
    const double stiffness = 1 / (inside ? row.compliance : row.scale + row.compliance);
    tangent->open = false, tangent->at[0][0] = inside ? stiffness : 0, base[0] = y - r * stiffness;
  }
  return r * r;
}

bool nonzero(const Term& term, const double* impulse) {
  return std::any_of(impulse, impulse + term.nrow, [](double y) { return y != 0; });
}

/// Whether a contact has no impulse and opens: zero residual and zero tangent.
bool open(const Term& term, const TermRow* rows, const double* velocity, const double* impulse) {
  return term.law == Law::contact && miss(rows[0], velocity[0], 0) >= 0 && !nonzero(term, impulse);
}

}  // namespace

double natural_map(const Term& term, const TermRow* rows, double share, const double* velocity, const double* impulse,
                   Tangent* tangent, double* base) {
  if (open(term, rows, velocity, impulse)) {
    for (int i = 0; tangent && i < term.nrow; ++i) std::fill_n(tangent->at[i], term.nrow, 0.0), base[i] = 0;
    if (tangent) tangent->open = true;
    return 0;
  }
  if (term.law == Law::interval) return interval_map(term, rows[0], velocity[0], impulse[0], tangent, base);
  double rho[kTermRows], projected[kTermRows], N[kTermRows], sum = 0;
  project(term, rows, velocity, impulse, share, kOwnNormal, rho, projected, tangent);
  for (int i = 0; i < term.nrow; ++i) {
    N[i] = impulse[i] - projected[i];
    sum += N[i] * rho[i] * N[i] * rho[i];
  }
  if (!tangent) return sum;
  eliminate(term.nrow, rows, rho, *tangent, N);
  for (int i = 0; i < term.nrow; ++i) base[i] = impulse[i] - N[i];
  return sum;
}

double natural_residual(const Term& term, const TermRow* rows, const double* velocity, const double* impulse) {
  if (open(term, rows, velocity, impulse)) return 0;
  if (term.law == Law::interval) {
    bool inside = false;
    return std::abs(interval_miss(term, rows[0], velocity[0], impulse[0], inside));
  }
  double rho[kTermRows], projected[kTermRows], worst = 0;
  project(term, rows, velocity, impulse, 1, std::max(0.0, impulse[0]), rho, projected, nullptr);
  for (int i = 0; i < term.nrow; ++i) worst = larger(worst, std::abs(impulse[i] - projected[i]) * rho[i]);
  return worst;
}

bool acts(const Term& term, const TermRow* rows, const double* velocity, const double* impulse) {
  if (nonzero(term, impulse)) return true;
  if (term.law == Law::contact) return miss(rows[0], velocity[0], 0) < 0;
  double rho[kTermRows], projected[kTermRows];
  project(term, rows, velocity, impulse, 1, kOwnNormal, rho, projected, nullptr);
  return nonzero(term, projected);
}

bool mark_active(std::span<const Term> terms, std::span<const TermRow> rows, std::span<const double> velocity,
                 std::span<const double> impulse, std::span<char> acted) {
  bool more = false;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (acted[i]) continue;
    const int first = terms[i].first_row;
    acted[i] = acts(terms[i], &rows[first], &velocity[first], &impulse[first]);
    more |= acted[i] != 0;
  }
  return more;
}

double excess(const Term& term, const double* impulse) {
  if (term.law == Law::contact) return 0;
  if (term.law == Law::ball) {
    const double length = std::sqrt(impulse[0] * impulse[0] + impulse[1] * impulse[1] + impulse[2] * impulse[2]);
    return term.upper > 0 ? length / term.upper - 1 : length;
  }
  const double beyond = std::max(term.lower - impulse[0], impulse[0] - term.upper);
  if (!(beyond > 0)) return 0;
  double size = 0;
  for (const double bound : {term.lower, term.upper}) {
    if (std::abs(bound) < kUnbounded) size = std::max(size, std::abs(bound));
  }
  return size > 0 ? beyond / size : beyond;
}

}  // namespace tarsus
