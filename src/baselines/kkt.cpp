// KktSolver: choice of the method, last stage of the direct methods, residuals.
#include "tarsus/baselines/kkt.hpp"

#include <algorithm>
#include <cmath>

#include "baselines/kkt_scratch.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {

namespace {

constexpr KktMethod kMethods[] = {KktMethod::sweeps,          KktMethod::branches, KktMethod::efpa,
                                  KktMethod::constrained_aba, KktMethod::sparse,   KktMethod::dense};

}  // namespace

const char* name(KktMethod method) {
  switch (method) {
    case KktMethod::automatic: return "automatic";
    case KktMethod::sweeps: return "sweeps";
    case KktMethod::branches: return "branches";
    case KktMethod::efpa: return "efpa";
    case KktMethod::constrained_aba: return "constrained_aba";
    case KktMethod::sparse: return "sparse";
    case KktMethod::dense: return "dense";
  }
  return "automatic";
}

std::span<const KktMethod> kkt_methods() { return kMethods; }

KktMethod kkt_method(std::string_view wanted) {
  std::string known = name(KktMethod::automatic);
  if (wanted == known) return KktMethod::automatic;
  for (const KktMethod method : kMethods) {
    if (wanted == name(method)) return method;
    known += std::string(", ") + name(method);
  }
  throw ValueError("method", "\"" + std::string(wanted) + "\"", "one of: " + known);
}

KktSolver::KktSolver(const Model& model) : model_(model), s_(std::make_unique<Scratch>(model)) {}
KktSolver::~KktSolver() = default;

KktMethod KktSolver::choose(DelassusRows<double>& rows) const {
  // Nanoseconds in addition to one ABA, from kkt_bench --growth on one machine. Only the ratios matter.
  const double m = rows.rows(), n = model_.nv;
  double products = 0, pairs = 0;
  bool linked_to_world = m > 0;
  for (int i = 0; i < rows.blocks(); ++i) {
    const auto p = rows.block(i);
    linked_to_world = linked_to_world && p.force && p.b < 0 && !p.joint;
    for (int j = i; j < rows.blocks(); ++j) {
      const double size = double(p.nrow) * rows.block(j).nrow;
      const std::span<const RowOverlap> shared = rows.overlaps(i, j);
      for (const RowOverlap& run : shared) products += run.count * size;
      pairs += !shared.empty();
    }
  }
  const double factor = m * m * m / 6;
  const double branches = 0.2 * products + 0.15 * factor, efpa = 400 * n + 450 * pairs + 0.15 * factor;
  const double proximal = linked_to_world ? 550 * n : kInfinity;
  if (proximal < std::min(branches, efpa)) return KktMethod::constrained_aba;
  return efpa < branches ? KktMethod::efpa : KktMethod::branches;
}

KktReport KktSolver::solve_only(KktMethod method, const KktInput& in, Out<double> x1, Out<double> x2) {
  const int m = in.rows.rows();
  check_size("qpos", in.qpos.size(), model_.nq);
  check_size("joint_inertia", in.joint_inertia.size(), model_.nv);
  check_size("y1", in.y1.size(), model_.nv);
  check_size("y2", in.y2.size(), m);
  if (!in.sigma.empty()) check_size("sigma", in.sigma.size(), m);
  check_size("x1", x1.size(), model_.nv);
  check_size("x2", x2.size(), m);
  if (in.data.width() != 1 || in.rows.width() != 1) throw ValueError("data", "a batch", "a single world");
  Scratch& s = *s_;
  const std::size_t ld = in.rows.leading_dimension();
  if (s.A.size() < m * ld) s.A.resize(m * ld);
  s.inverse.resize(m), s.scale.resize(m), s.rhs.resize(m), s.u.resize(model_.nv);
  KktReport report;
  report.method = method == KktMethod::automatic ? choose(in.rows) : method;
  switch (report.method) {
    case KktMethod::sweeps: by_sweeps(in, report, x1, x2); break;
    case KktMethod::efpa: by_efpa(in, report, x1, x2); break;
    case KktMethod::constrained_aba: by_constrained_aba(in, report, x1, x2); break;
    case KktMethod::sparse: by_sparse(in, report, x1, x2); break;
    case KktMethod::dense: by_dense(in, report, x1, x2); break;
    default: by_branches(in, report, x1, x2); break;
  }
  return report;
}

KktReport KktSolver::solve(KktMethod method, const KktInput& in, Out<double> x1, Out<double> x2) {
  KktReport report = solve_only(method, in, x1, x2);
  std::vector<double> r1(model_.nv), r2(in.rows.rows()), half(r1.size());
  residuals(in, x1, x2, r1, r2);
  // The largest terms: M̂ x₁, and Σ |J_rk x₁_k|.
  const std::vector<double> none1(r1.size()), none2(r2.size());
  std::vector<double> none_out(r2.size());
  residuals({in.data, in.rows, in.qpos, in.joint_inertia, {}, none1, none2}, x1, none2, half, none_out);
  const double force = std::max({largest_entry(in.y1), largest_entry(half), 1e-300});
  double row = std::max(largest_entry(in.y2), 1e-300);
  std::vector<double> J;
  for (int b = 0; b < in.rows.blocks(); ++b) {
    const auto block = in.rows.block(b);
    J.resize(block.dofs.size() * block.stride);
    in.rows.jacobian(model_, in.data, b, J.data());
    for (int r = 0; r < block.nrow; ++r) {
      double sum = 0;
      for (std::size_t k = 0; k < block.dofs.size(); ++k) sum += std::abs(J[k * block.stride + r] * x1[block.dofs[k]]);
      row = std::max(row, sum);
    }
  }
  report.force_residual = largest_entry(r1) / force;
  report.row_residual = in.rows.rows() ? largest_entry(r2) / row : 0;
  if (!std::isfinite(largest_entry(x1)) || !std::isfinite(largest_entry(x2))) report.status = KktStatus::not_finite;
  return report;
}

/// Solves (Λ⁻¹ + Σ) x₂ = rhs with Λ⁻¹ in s.A; x₂ is written to s.x2. matrix_in_place: Λ⁻¹ is expensive to recompute and
/// the fast factorisation overwrites it, so a copy is kept.
void KktSolver::finish(const KktInput& in, KktReport& report, bool matrix_in_place) {
  Scratch& s = *s_;
  const int m = in.rows.rows(), ld = in.rows.leading_dimension();
  s.x2.resize(m);
  report.rank = m;
  if (m == 0) return;
  double most = 0;
  for (int r = 0; r < m; ++r) {
    double& d = s.A[std::size_t(r) * ld + r];
    if (!in.sigma.empty()) d += in.sigma[r];
    most = std::max(most, d);
  }
  for (int r = 0; r < m; ++r) {
    const double d = s.A[std::size_t(r) * ld + r];
    s.scale[r] = d > kZeroRow<double> * most ? pivot_scale(d, most) : std::numeric_limits<double>::infinity();
    s.A[std::size_t(r) * ld + m] = s.rhs[r];
  }
  if (matrix_in_place) s.dense.assign(s.A.begin(), s.A.begin() + std::size_t(m) * ld);
  double least = 0, trust = 0;
  s.kernels.ldl(m, ld, s.A.data(), s.inverse.data(), s.scale.data(), &least);
  s.kernels.ldl_back(m, ld, s.A.data(), s.inverse.data(), s.scale.data(), kDependent<double>, s.x2.data(), &trust);
  if (least > kDependent<double> && trust >= 0) return;
  if (!matrix_in_place) {
    in.rows.gram(s.A.data(), ld);
    for (int r = 0; r < m && !in.sigma.empty(); ++r) s.A[std::size_t(r) * ld + r] += in.sigma[r];
  }
  const MultiplierReport found = solve_multipliers(m, ld, matrix_in_place ? s.dense.data() : s.A.data(), s.rhs, s.x2);
  report.rank = found.rank, report.dependent = found.dependent, report.iterations = found.iterations;
  report.status = !found.finite            ? KktStatus::not_finite
                  : found.violation > 1e-7 ? KktStatus::inconsistent
                                           : KktStatus::redundant;
  if (found.dependent.empty() && report.status == KktStatus::redundant) report.status = KktStatus::solved;
}

void KktSolver::residuals(const KktInput& in, In<double> x1, In<double> x2, Out<double> r1, Out<double> r2) {
  Scratch& s = *s_;
  const ModelView<double>& m = s.view;
  const LinkState<double>* state = in.data.links();
  const Vec3d zero{0, 0, 0};
  s.a.resize(m.nlink), s.f.resize(m.nlink);
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<double>& link = m.link[i];
    s.a[i] = joint_motion(link, state[i].R, x1.data() + link.qvel);
    if (link.parent >= 0) s.a[i] = s.a[i] + shift(s.a[link.parent], state[i].r);
    s.f[i] = link.massless ? Force<double>{zero, zero} : link_inertia(m, i, state[i].R) * s.a[i];
  }
  for (int i = 0; i < m.nv; ++i) r1[i] = in.y1[i] - in.joint_inertia[i] * x1[i];
  for (int index = 0; index < in.rows.blocks(); ++index) {
    const auto block = in.rows.block(index);
    for (int r = 0; r < block.nrow; ++r) {
      const int row = block.first_row + r, n = block.stride;
      double sum = -in.y2[row] - (in.sigma.empty() ? 0 : in.sigma[row] * x2[row]);
      for (int side = 0; block.force && side < 2; ++side) {
        const int link = side ? block.b : block.a;
        if (link < 0) continue;
        const double* p = block.force + 6 * side * n + r;
        const Force<double> force{{p[0], p[n], p[2 * n]}, {p[3 * n], p[4 * n], p[5 * n]}};
        sum += dot(force, s.a[link]);
        s.f[link] = mul_add(force, x2[row], s.f[link]);
        if (!block.joint) continue;
        const int dof = m.link[link].qvel;
        sum += block.joint[side * n + r] * x1[dof];
        r1[dof] -= block.joint[side * n + r] * x2[row];
      }
      for (std::size_t k = 0; !block.force && k < block.dofs.size(); ++k) {
        sum += block.joint[k * n + r] * x1[block.dofs[k]];
        r1[block.dofs[k]] -= block.joint[k * n + r] * x2[row];
      }
      r2[row] = sum;
    }
  }
  for (int i = m.nlink - 1; i >= 0; --i) {
    double tau[6];
    joint_force(m.link[i], state[i].R, s.f[i], tau);
    for (int d = 0; d < qvel_count(m.link[i].joint); ++d) r1[m.link[i].qvel + d] -= tau[d];
    if (m.link[i].parent >= 0) s.f[m.link[i].parent] += shift_back(s.f[i], state[i].r);
  }
}

}  // namespace tarsus
