// The methods of KktSolver that form Λ⁻¹: sweeps, branches, sparse, dense.
#include <Eigen/Cholesky>
#include <algorithm>

#include "baselines/kkt_scratch.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {

namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// J x of one row, from x and the links' accelerations due to x (in the workspace after minv).
double row_product(const ModelView<double>& m, const LinkState<double>* state, const DelassusRows<double>::Block& block,
                   int r, const double* x) {
  const int n = block.stride;
  double sum = 0;
  if (!block.force) {
    for (std::size_t k = 0; k < block.dofs.size(); ++k) sum += block.joint[k * n + r] * x[block.dofs[k]];
    return sum;
  }
  for (int side = 0; side < 2; ++side) {
    const int link = side ? block.b : block.a;
    if (link < 0) continue;
    const double* p = block.force + 6 * side * n + r;
    sum += dot(Force<double>{{p[0], p[n], p[2 * n]}, {p[3 * n], p[4 * n], p[5 * n]}}, state[link].a);
    if (block.joint) sum += block.joint[side * n + r] * x[m.link[link].qvel];
  }
  return sum;
}

}  // namespace

void KktSolver::by_branches(const KktInput& in, KktReport& report, Out<double> x1, Out<double> x2) {
  Scratch& s = *s_;
  void* state = in.data.state(0);
  const int m = in.rows.rows();
  s.kernels.pose(s.view, state, in.qpos.data());
  s.kernels.reduce(s.view, state, in.y1.data(), in.joint_inertia.data());
  s.sweeps.read_u(s.view, state, s.u.data());
  in.rows.sweep(model_, in.data);
  in.rows.velocity(s.u.data(), s.rhs.data());
  for (int r = 0; r < m; ++r) s.rhs[r] -= in.y2[r];
  in.rows.gram(s.A.data(), in.rows.leading_dimension());
  finish(in, report, false);
  in.rows.push(s.x2.data(), s.u.data(), -1);
  s.sweeps.outward(s.view, state, s.u.data(), x1.data());
  std::copy(s.x2.begin(), s.x2.end(), x2.begin());
}

void KktSolver::by_sweeps(const KktInput& in, KktReport& report, Out<double> x1, Out<double> x2) {
  Scratch& s = *s_;
  const int m = in.rows.rows(), ld = in.rows.leading_dimension(), blocks = in.rows.blocks();
  s.kernels.pose(s.view, in.data.state(0), in.qpos.data());
  s.kernels.reduce(s.view, in.data.state(0), in.y1.data(), in.joint_inertia.data());
  const LinkState<double>* state = in.data.links();
  s.J.resize(blocks);
  for (int i = 0; i < blocks; ++i) {
    const auto block = in.rows.block(i);
    s.J[i].resize(block.dofs.size() * block.stride);
    in.rows.jacobian(model_, in.data, i, s.J[i].data());
  }
  const auto products = [&](int from_row, const double* x, auto&& put) {
    for (int i = 0; i < blocks; ++i) {
      const auto block = in.rows.block(i);
      for (int r = 0; r < block.nrow; ++r) {
        if (block.first_row + r >= from_row) put(block.first_row + r, row_product(s.view, state, block, r, x));
      }
    }
  };
  s.column.assign(model_.nv, 0.0), s.y.resize(model_.nv);
  minv<double>(model_, in.data, in.y1, s.y);  // a₁
  products(0, s.y.data(), [&](int row, double value) { s.rhs[row] = value - in.y2[row]; });
  for (int i = 0; i < blocks; ++i) {
    const auto block = in.rows.block(i);
    for (int r = 0; r < block.nrow; ++r) {
      std::fill(s.column.begin(), s.column.end(), 0.0);
      for (std::size_t k = 0; k < block.dofs.size(); ++k) s.column[block.dofs[k]] = s.J[i][k * block.stride + r];
      minv<double>(model_, in.data, s.column, s.y);
      double* row = s.A.data() + std::size_t(block.first_row + r) * ld;
      products(block.first_row + r, s.y.data(), [&](int column, double value) { row[column] = value; });
    }
  }
  finish(in, report, true);
  std::copy(in.y1.begin(), in.y1.end(), s.column.begin());
  for (int i = 0; i < blocks; ++i) {
    const auto block = in.rows.block(i);
    for (std::size_t k = 0; k < block.dofs.size(); ++k) {
      for (int r = 0; r < block.nrow; ++r)
        s.column[block.dofs[k]] -= s.J[i][k * block.stride + r] * s.x2[block.first_row + r];
    }
  }
  minv<double>(model_, in.data, s.column, x1);
  std::copy(s.x2.begin(), s.x2.begin() + m, x2.begin());
}

/// With M̂ = L Lᵀ: Y = L⁻¹ Jᵀ by `half_solve`, Λ⁻¹ = Yᵀ Y, then x₁ = M̂⁻¹ (y₁ - Jᵀ x₂) by `solve`.
template <class Half, class Solve>
static void schur(const Model& model, const KktInput& in, std::vector<std::vector<double>>& blocks, double* A,
                  std::vector<double>& rhs, const std::vector<double>& x2, Out<double> x1, const Half& half_solve,
                  const Solve& solve, const std::function<void()>& finish) {
  const int m = in.rows.rows(), ld = in.rows.leading_dimension();
  Eigen::MatrixXd Jt = Eigen::MatrixXd::Zero(model.nv, m);
  blocks.resize(in.rows.blocks());
  for (int i = 0; i < in.rows.blocks(); ++i) {
    const auto block = in.rows.block(i);
    blocks[i].resize(block.dofs.size() * block.stride);
    in.rows.jacobian(model, in.data, i, blocks[i].data());
    for (std::size_t k = 0; k < block.dofs.size(); ++k) {
      for (int r = 0; r < block.nrow; ++r) Jt(block.dofs[k], block.first_row + r) = blocks[i][k * block.stride + r];
    }
  }
  const Eigen::Map<const Eigen::VectorXd> y1(in.y1.data(), model.nv), y2(in.y2.data(), m);
  const Eigen::VectorXd free = solve(Eigen::VectorXd(y1));
  Eigen::Map<Eigen::VectorXd>(rhs.data(), m) = Jt.transpose() * free - y2;
  if (m > 0) {
    const Eigen::MatrixXd Y = half_solve(Jt);
    Eigen::Map<RowMatrix, 0, Eigen::OuterStride<>>(A, m, m, Eigen::OuterStride<>(ld)) = Y.transpose() * Y;
  }
  finish();
  Eigen::Map<Eigen::VectorXd>(x1.data(), model.nv) =
      solve(Eigen::VectorXd(y1 - Jt * Eigen::Map<const Eigen::VectorXd>(x2.data(), m)));
}

void KktSolver::by_dense(const KktInput& in, KktReport& report, Out<double> x1, Out<double> x2) {
  Scratch& s = *s_;
  const int n = model_.nv;
  RowMatrix M(n, n);
  crba<double>(model_, in.data, in.qpos, {M.data(), std::size_t(M.size())});
  for (int i = 0; i < n; ++i) M(i, i) += in.joint_inertia[i] - model_.armature[i];
  const Eigen::LLT<Eigen::MatrixXd> factor(M);
  schur(
      model_, in, s.J, s.A.data(), s.rhs, s.x2, x1,
      [&](const Eigen::MatrixXd& b) { return Eigen::MatrixXd(factor.matrixL().solve(b)); },
      [&](const Eigen::VectorXd& b) { return Eigen::VectorXd(factor.solve(b)); }, [&] { finish(in, report, true); });
  std::copy(s.x2.begin(), s.x2.end(), x2.begin());
}

/// M̂ with its DoFs in reverse order, so that the Cholesky factorisation eliminates leaves first and has no fill.
/// [Featherstone 2008, section 6.5]
static void reversed_mass_matrix(const ModelView<double>& m, LinkState<double>* state, const double* qpos,
                                 const double* K, bool first, Eigen::SparseMatrix<double>& M) {
  for (int i = 0; i < m.nlink; ++i) {
    joint_pose(m.link[i], qpos, state, state[i]);
    state[i].Ic = link_inertia(m, i, state[i].R);
  }
  std::vector<Eigen::Triplet<double>> triplets;
  int at = 0;
  // Columns of the reversed lower triangle in order: DoFs from the last, each with itself and then its ancestors up to
  // the root.
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<double>& link = m.link[i];
    for (int d = qvel_count(link.joint) - 1; d >= 0; --d) {
      double unit[6] = {0, 0, 0, 0, 0, 0}, row[6];
      unit[d] = 1;
      const int column = m.nv - 1 - (link.qvel + d);
      Force<double> F = state[i].Ic * joint_motion(link, state[i].R, unit);
      for (int j = i; j >= 0; j = m.link[j].parent) {
        joint_force(m.link[j], state[j].R, F, row);
        for (int k = j == i ? d : qvel_count(m.link[j].joint) - 1; k >= 0; --k) {
          const double value = row[k] + (j == i && k == d ? K[link.qvel + d] : 0);
          if (first)
            triplets.emplace_back(m.nv - 1 - (m.link[j].qvel + k), column, value);
          else
            M.valuePtr()[at++] = value;
        }
        F = shift_back(F, state[j].r);
      }
    }
    if (link.parent >= 0) state[link.parent].Ic = state[link.parent].Ic + shift_back(state[i].Ic, state[i].r);
  }
  if (!first) return;
  M.resize(m.nv, m.nv);
  M.setFromTriplets(triplets.begin(), triplets.end());
  M.makeCompressed();
}

void KktSolver::by_sparse(const KktInput& in, KktReport& report, Out<double> x1, Out<double> x2) {
  Scratch& s = *s_;
  reversed_mass_matrix(s.view, in.data.links(), in.qpos.data(), in.joint_inertia.data(), !s.analyzed, s.M);
  if (!s.analyzed) s.cholesky.analyzePattern(s.M);
  s.analyzed = true;
  s.cholesky.factorize(s.M);
  schur(
      model_, in, s.J, s.A.data(), s.rhs, s.x2, x1,
      [&](const Eigen::MatrixXd& b) { return Eigen::MatrixXd(s.cholesky.matrixL().solve(b.colwise().reverse())); },
      [&](const Eigen::VectorXd& b) { return Eigen::VectorXd(s.cholesky.solve(b.reverse()).reverse()); },
      [&] { finish(in, report, true); });
  std::copy(s.x2.begin(), s.x2.end(), x2.begin());
}

}  // namespace tarsus
