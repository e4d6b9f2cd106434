// KktSolver: Λ⁻¹ by extended force propagation. Every row is a sum of chains from a tip to the root. Two chains x and y
// meet at a link c and share all joints from c to the root. Their contribution to Λ⁻¹ is w_xᵀ D⁻¹ w_y at c's joint plus
// f_xᵀ Ω f_y at c's parent.
#include <algorithm>

#include "baselines/kkt_scratch.hpp"

namespace tarsus {

namespace {

int length_to_root(const ModelView<double>& m, int link) {
  int length = 0;
  for (; link >= 0; link = m.link[link].parent) ++length;
  return length;
}

/// The chains of all blocks, in the blocks' order.
void list_chains(const ModelView<double>& m, DelassusRows<double>& rows, std::vector<Chain>& chains,
                 std::size_t& numbers) {
  chains.clear(), numbers = 0;
  for (int i = 0; i < rows.blocks(); ++i) {
    const auto block = rows.block(i);
    const auto add = [&](int side, int tip) {
      const int length = length_to_root(m, tip);
      chains.push_back({i, side, tip, numbers, length});
      numbers += std::size_t(18) * length * block.stride;
    };
    if (block.force) {
      add(0, block.a);
      if (block.b >= 0) add(1, block.b);
      continue;
    }
    int place = 0;  // index of the joint's first DoF
    for (std::size_t k = 0; k < block.links.size(); ++k) {
      const int nv = qvel_count(m.link[block.links[k]].joint);
      bool touched = false;
      for (int e = place * block.stride; e < (place + nv) * block.stride; ++e) touched = touched || block.joint[e] != 0;
      if (touched) add(place, block.links[k]);
      place += nv;
    }
  }
}

}  // namespace

/// Λ⁻¹ of one system, from factors and chains.
struct KktSolver::Efpa {
  const KktInput& in;
  Scratch& s;
  const ModelView<double>& m;
  const LinkState<double>* state;
  std::vector<int> way{};
  AlignedVector<double> lifted{};

  void climb();
  const double* omega(int link);
  void find_meetings(const Chain& x);
  void add_pair(const Chain& x, const Chain& y);
};

/// Computes w, D⁻¹ w and the force on the parent for every chain, link by link.
void KktSolver::Efpa::climb() {
  std::size_t numbers = 0;
  list_chains(m, in.rows, s.chains, numbers);
  if (s.climbed.size() < numbers) s.climbed.resize(numbers);
  for (const Chain& c : s.chains) {
    const auto block = in.rows.block(c.block);
    const double* force = block.force ? block.force + 6 * c.side * block.stride : nullptr;
    const double* entries = block.joint ? block.joint + c.side * block.stride : nullptr;
    const int count = block.force ? 1 : qvel_count(m.link[c.tip].joint);
    s.baselines.climb_chain(m, state, c.tip, force, entries, count, block.nrow, block.stride,
                            s.climbed.data() + c.first);
  }
  s.omega.resize(m.nlink), s.omega_done.assign(m.nlink, 0), s.near.resize(m.nlink), s.depth.resize(m.nlink);
  for (int i = 0; i < m.nlink; ++i) s.depth[i] = m.link[i].parent >= 0 ? s.depth[m.link[i].parent] + 1 : 1;
}

/// Ω of a link, computed once, together with those of the links towards the root; null for the world.
const double* KktSolver::Efpa::omega(int link) {
  if (link < 0) return nullptr;
  for (int i = link; i >= 0 && !s.omega_done[i]; i = m.link[i].parent) way.push_back(i);
  for (; !way.empty(); way.pop_back()) {
    const int i = way.back(), parent = m.link[i].parent;
    s.baselines.omega(m, state, i, parent >= 0 ? s.omega[parent].data() : nullptr, s.omega[i].data());
    s.omega_done[i] = 1;
  }
  return s.omega[link].data();
}

/// Sets near[i] to the link where the path from i to the root meets x's path.
void KktSolver::Efpa::find_meetings(const Chain& x) {
  for (int link = 0; link < m.nlink; ++link) s.near[link] = -1;
  for (int link = x.tip; link >= 0; link = m.link[link].parent) s.near[link] = link;
  for (int link = 0; link < m.nlink; ++link) {
    if (s.near[link] < 0 && m.link[link].parent >= 0) s.near[link] = s.near[m.link[link].parent];
  }
}

void KktSolver::Efpa::add_pair(const Chain& x, const Chain& y) {
  const auto p = in.rows.block(x.block), q = in.rows.block(y.block);
  const int meet = s.near[y.tip], parent = m.link[meet].parent, ld = in.rows.leading_dimension();
  const double* a = s.climbed.data() + x.first + std::size_t(18) * (x.length - s.depth[meet]) * p.stride;
  const double* b = s.climbed.data() + y.first + std::size_t(18) * (y.length - s.depth[meet]) * q.stride;
  // The padding would overwrite entries to the right of the block, so sums go through a buffer.
  AlignedVector<double>& sum = s.inverse;  // not in use before finish()
  const std::size_t size = std::size_t(p.nrow) * q.stride;
  if (sum.size() < size) sum.resize(size);
  s.sweeps.gram(qvel_count(m.link[meet].joint), p.nrow, a, p.stride, b + 6 * q.stride, q.stride, false, false,
                sum.data(), q.stride);
  if (const double* inverse_inertia = omega(parent)) {
    lifted.resize(std::size_t(6) * q.stride);
    s.baselines.omega_times(inverse_inertia, b + 12 * q.stride, q.nrow, q.stride, lifted.data());
    s.sweeps.gram(6, p.nrow, a + 12 * p.stride, p.stride, lifted.data(), q.stride, true, false, sum.data(), q.stride);
  }
  double* out = s.A.data() + std::size_t(p.first_row) * ld + q.first_row;
  for (int r = 0; r < p.nrow; ++r) {
    for (int c = 0; c < q.nrow; ++c) out[std::size_t(r) * ld + c] += sum[std::size_t(r) * q.stride + c];
  }
}

void KktSolver::by_efpa(const KktInput& in, KktReport& report, Out<double> x1, Out<double> x2) {
  Scratch& s = *s_;
  const ModelView<double>& m = s.view;
  const int ld = in.rows.leading_dimension();
  s.kernels.pose(m, in.data.state(0), in.qpos.data());
  s.kernels.reduce(m, in.data.state(0), in.y1.data(), in.joint_inertia.data());
  s.y.resize(m.nv), s.r1.resize(m.nv), s.r2.resize(in.rows.rows()), s.x2.assign(in.rows.rows(), 0.0);
  s.sweeps.read_u(m, in.data.state(0), s.u.data());
  s.sweeps.outward(m, in.data.state(0), s.u.data(), s.y.data());
  residuals(in, s.y, s.x2, s.r1, s.rhs);  // a₁ - y₂

  Efpa efpa{in, s, m, in.data.links()};
  efpa.climb();
  for (int r = 0; r < in.rows.rows(); ++r) std::fill_n(s.A.data() + std::size_t(r) * ld, ld, 0.0);
  for (const Chain& x : s.chains) {
    efpa.find_meetings(x);
    for (const Chain& y : s.chains) {
      if (y.block >= x.block && s.near[y.tip] >= 0) efpa.add_pair(x, y);
    }
  }
  finish(in, report, true);

  const std::vector<double> none(m.nv);
  residuals(in, none, s.x2, s.y, s.r2);  // y₁ - Jᵀ x₂
  minv<double>(model_, in.data, s.y, x1);
  std::copy(s.x2.begin(), s.x2.end(), x2.begin());
}

}  // namespace tarsus
