// KktSolver: constrained ABA. A row between one link and the world adds ρ F Fᵀ, ρ = 1/(Σ + μ), to the link's inertia.
// ABA thus factorises the penalised M̃ = M̂ + Σ_w ρ Jᵀ J at its usual cost. Each iteration computes corrections from
// the residuals of both block rows:
//
//   M̃ δx₁ + J_lᵀ δx₂_l = r₁ - J_wᵀ ρ r₂_w,   J_l δx₁ - Σ δx₂_l = -r₂_l,   δx₂_w = ρ (r₂_w + J_w δx₁)
//
// w: rows between one link and the world; l: all other rows, by the method `branches`. In each iteration r₁ vanishes
// and r₂_w shrinks by μ / (μ + Λ⁻¹).
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "baselines/kkt_scratch.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {

namespace {

constexpr int kMaxIterations = 100;
constexpr double kFirstPenalty = 1e-5;  // μ relative to the row's inverse inertia if the model were one rigid body

/// I += rho F Fᵀ with F = (n; f).
void add_outer(ArticulatedInertia<double>& I, const Force<double>& F, double rho) {
  const Vec3d n = F.n, f = F.f;
  I.I += Sym3d{n.x * n.x, n.x * n.y, n.x * n.z, n.y * n.y, n.y * n.z, n.z * n.z} * rho;
  I.M += Sym3d{f.x * f.x, f.x * f.y, f.x * f.z, f.y * f.y, f.y * f.z, f.z * f.z} * rho;
  I.H = I.H + outer(n * rho, f);
}

/// Total mass, and squared radius of gyration of the links about their own origins.
std::pair<double, double> size_of(const ModelView<double>& m) {
  double mass = 0, moment = 0;
  for (int i = 0; i < m.nlink; ++i) mass += m.link[i].mass, moment += m.link[i].I[0] + m.link[i].I[3] + m.link[i].I[5];
  for (int i = 0; i < m.nv && mass <= 0; ++i) moment += m.armature[i];
  mass = std::max(mass, 1e-6);
  return {mass, std::max(moment / (2 * mass), 1e-6)};
}

}  // namespace

/// One solve. Residuals and factors are recomputed from x₁ and x₂, so that the iterations can restart with another
/// penalty.
struct KktSolver::ConstrainedAba {
  KktSolver& solver;
  const KktInput& in;
  Out<double> x1, x2;
  Scratch& s;
  const ModelView<double>& m;
  DelassusRows<double> others;  // the rows l
  std::vector<int> other_row{};
  std::vector<double> rho, z, dx1, y, rhs{}, dz{}, A{}, none, jx, zero_rows;
  double mass = 0, radius2 = 0;
  MultiplierReport found{};

  ConstrainedAba(KktSolver& solver, const KktInput& in, Out<double> x1, Out<double> x2);
  static bool to_world(const DelassusRows<double>::Block& b) { return b.force && b.b < 0 && !b.joint; }
  void add_others();
  void restart();
  void factor(double penalty);
  void round();
  double rounding();
  bool iterate(KktReport& report);
};

KktSolver::ConstrainedAba::ConstrainedAba(KktSolver& solver, const KktInput& in, Out<double> x1, Out<double> x2)
    : solver(solver),
      in(in),
      x1(x1),
      x2(x2),
      s(*solver.s_),
      m(s.view),
      others(solver.model_),
      rho(in.rows.rows(), 0.0),
      z(rho.size()),
      dx1(m.nv),
      y(m.nv),
      none(m.nv),
      jx(rho.size()),
      zero_rows(rho.size()) {
  std::tie(mass, radius2) = size_of(m);
  add_others();
  found.rank = others.rows();
  s.r1.resize(m.nv), s.r2.resize(rho.size());
}

void KktSolver::ConstrainedAba::add_others() {
  for (int i = 0; i < in.rows.blocks(); ++i) {
    const auto block = in.rows.block(i);
    if (to_world(block)) continue;
    const int index = block.force ? others.add_block(block.a, block.b, block.nrow, block.joint)
                                  : others.add_joint_block(block.links, block.nrow);
    auto copy = others.block(index);
    if (block.force) std::copy_n(block.force, 12 * block.stride, copy.force);
    if (block.joint) std::copy_n(block.joint, (block.force ? 2 : block.dofs.size()) * block.stride, copy.joint);
    for (int r = 0; r < block.nrow; ++r) other_row.push_back(block.first_row + r);
  }
  rhs.resize(others.rows()), dz.resize(others.rows());
  A.resize(std::size_t(others.rows()) * others.leading_dimension());
}

void KktSolver::ConstrainedAba::restart() {
  std::fill(x1.begin(), x1.end(), 0.0), std::fill(x2.begin(), x2.end(), 0.0);
  solver.residuals(in, x1, x2, s.r1, s.r2);
}

/// Computes the factors of M̃, and Λ⁻¹ = J_l M̃⁻¹ J_lᵀ.
void KktSolver::ConstrainedAba::factor(double penalty) {
  LinkState<double>* state = in.data.links();
  s.kernels.pose(m, state, in.qpos.data());
  for (int i = 0; i < in.rows.blocks(); ++i) {
    const auto block = in.rows.block(i);
    for (int r = 0; r < block.nrow && to_world(block); ++r) {
      const double* p = block.force + r;
      const int n = block.stride;
      const Force<double> F{{p[0], p[n], p[2 * n]}, {p[3 * n], p[4 * n], p[5 * n]}};
      const double mobility = (dot(F.f, F.f) + dot(F.n, F.n) / radius2) / mass,
                   sigma = in.sigma.empty() ? 0 : in.sigma[block.first_row + r];
      if (!(mobility + sigma > 0)) continue;  // a zero row
      rho[block.first_row + r] = 1 / (sigma + penalty * mobility);
      add_outer(state[block.a].IA, F, rho[block.first_row + r]);
    }
  }
  s.kernels.reduce(m, state, none.data(), in.joint_inertia.data());
  const int count = others.rows(), ld = others.leading_dimension();
  if (count == 0) return;
  others.sweep(solver.model_, in.data);
  others.gram(A.data(), ld);
  for (int k = 0; k < count && !in.sigma.empty(); ++k) A[std::size_t(k) * ld + k] += in.sigma[other_row[k]];
}

/// One iteration: corrections from both residuals.
void KktSolver::ConstrainedAba::round() {
  const int rows = in.rows.rows(), count = others.rows();
  for (int r = 0; r < rows; ++r) z[r] = rho[r] * s.r2[r];
  const KktInput right{in.data, in.rows, in.qpos, in.joint_inertia, {}, s.r1, in.y2};
  solver.residuals(right, none, z, y, jx);  // r₁ - J_wᵀ ρ r₂
  inward<double>(solver.model_, in.data, y, s.u);
  if (count > 0) {
    others.velocity(s.u.data(), rhs.data());
    for (int k = 0; k < count; ++k) rhs[k] += s.r2[other_row[k]];
    found = solve_multipliers(count, others.leading_dimension(), A.data(), rhs, dz);
    others.push(dz.data(), s.u.data(), -1);
  }
  outward<double>(solver.model_, in.data, s.u, dx1);
  const KktInput bare{in.data, in.rows, in.qpos, in.joint_inertia, {}, none, zero_rows};
  solver.residuals(bare, dx1, zero_rows, y, jx);  // J δx₁
  for (int r = 0; r < rows; ++r) x2[r] += rho[r] * (s.r2[r] + jx[r]);
  for (int k = 0; k < count; ++k) x2[other_row[k]] += dz[k];
  for (int i = 0; i < m.nv; ++i) x1[i] += dx1[i];
  solver.residuals(bare, x1, zero_rows, y, jx);  // y = -M̂ x₁
  solver.residuals(in, x1, x2, s.r1, s.r2);
}

/// The change of r₁ due to the last digit of x₁, M̂ (ε x₁). No method reaches a smaller residual. On chains of
/// thousands of links it is much larger than the last digit of the forces, since M̂ x₁ is a small difference of large
/// numbers.
double KktSolver::ConstrainedAba::rounding() {
  constexpr double kDigit = std::numeric_limits<double>::epsilon();
  for (int i = 0; i < m.nv; ++i) dx1[i] = (i * 0x9E3779B9u >> 31 ? kDigit : -kDigit) * x1[i];  // pseudo-random signs
  const KktInput bare{in.data, in.rows, in.qpos, in.joint_inertia, {}, none, zero_rows};
  solver.residuals(bare, dx1, zero_rows, y, jx);
  return largest_entry(y);
}

/// @return whether it converged
bool KktSolver::ConstrainedAba::iterate(KktReport& report) {
  double penalty = kFirstPenalty, too_small = 0;  // too_small: the largest penalty at which rounding prevailed
  double last2 = kInfinity;
  const double scale2 = std::max(largest_entry(in.y2), 1e-300);
  restart();
  factor(penalty);
  bool done = false;
  for (; report.iterations < kMaxIterations && !done; ++report.iterations) {
    round();
    const double scale1 = std::max({largest_entry(in.y1), largest_entry(y), 1e-300});
    const double now1 = largest_entry(s.r1), now2 = largest_entry(s.r2), moved = largest_entry(dx1),
                 size = largest_entry(x1);
    const bool still = moved <= 1e-13 * size;
    bool rounded = !(now1 <= 0.1 * scale1);
    if (!rounded && still && now1 > 1e-10 * scale1) rounded = now1 > 10 * rounding();
    if (rounded) {  // rounding in the factors of M̃: restart with a larger μ
      too_small = penalty, penalty *= 100;
      if (!(penalty <= 1)) return false;
      restart();
      factor(penalty);
      last2 = kInfinity;
      continue;
    }
    // Converged when neither x₁ nor r₂ changes any more. r₂ need not vanish: contradictory rows leave a residual.
    const bool settled = now2 <= 1e-14 * std::max(scale2, size) || !(now2 < 0.5 * last2);
    done = report.iterations > 0 && still && settled;
    if (!done && report.iterations > 2 && now2 > 0.1 * last2 && 0.1 * penalty > too_small && penalty > 1e-9 && !still)
      factor(penalty *= 0.1);
    last2 = now2;
  }
  return done;
}

void KktSolver::by_constrained_aba(const KktInput& in, KktReport& report, Out<double> x1, Out<double> x2) {
  ConstrainedAba rounds(*this, in, x1, x2);
  if (!rounds.iterate(report) && in.rows.rows() > 0) {  // rows too nearly dependent for any penalty
    report = KktReport{};
    report.method = KktMethod::branches;
    return by_branches(in, report, x1, x2);
  }
  const bool rigid = std::ranges::none_of(in.sigma, [](double sigma) { return sigma > 0; });
  report.rank = in.rows.rows() - int(rounds.found.dependent.size());
  if (rigid) report.rank = std::min(report.rank, rounds.m.nv);
  for (const int k : rounds.found.dependent) report.dependent.push_back(rounds.other_row[k]);
  const double size = std::max({largest_entry(in.y2), 1e-300, largest_entry(x1)});
  if (!std::isfinite(largest_entry(x1) + largest_entry(x2)))
    report.status = KktStatus::not_finite;
  else if (largest_entry(s_->r2) > 1e-7 * std::max(1.0, size))
    report.status = KktStatus::inconsistent;
  else if (report.rank < in.rows.rows())
    report.status = KktStatus::redundant;
}

}  // namespace tarsus
