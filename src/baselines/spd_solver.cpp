#include "tarsus/baselines/spd_solver.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "baselines/kernel_table.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {

template <class R>
struct SpdWorkspace<R>::Parts {
  std::vector<int> start, depth, ancestor;
  AlignedVector<R> rows, dense;
  AlignedVector<R> bias, Q, K, x, residual, preconditioned, direction, image;

  BranchView tree() const { return {int(depth.size()), start.data(), depth.data(), ancestor.data()}; }
};

template <class R>
SpdWorkspace<R>::SpdWorkspace(const Model& model)
    : pcg_max_iterations(2 * model.nv), parts_(std::make_unique<Parts>()) {
  Parts& p = *parts_;
  const ModelView<R> view = model.view<R>();
  p.start.push_back(0);
  for (int i = 0; i < view.nlink; ++i) {
    const auto& link = view.link[i];
    int below = link.parent < 0 ? -1 : view.link[link.parent].qvel + qvel_count(view.link[link.parent].joint) - 1;
    for (int d = 0; d < qvel_count(link.joint); ++d) {
      const int dof = link.qvel + d, first = int(p.ancestor.size());
      if (below >= 0)
        p.ancestor.insert(p.ancestor.end(), p.ancestor.begin() + p.start[below],
                          p.ancestor.begin() + p.start[below + 1]);
      p.ancestor.push_back(dof);
      p.depth.push_back(int(p.ancestor.size()) - first - 1);
      p.start.push_back(int(p.ancestor.size()));
      below = dof;
    }
  }
  p.rows.resize(p.ancestor.size());
  for (auto* v : {&p.bias, &p.Q, &p.K, &p.x, &p.residual, &p.preconditioned, &p.direction, &p.image})
    v->resize(model.nv);
}

template <class R>
SpdWorkspace<R>::~SpdWorkspace() = default;
template <class R>
SpdWorkspace<R>::SpdWorkspace(SpdWorkspace&&) noexcept = default;

namespace {

template <class R>
using Parts = typename SpdWorkspace<R>::Parts;

template <class R>
void check(const BasicData<R>& data) {
  if (data.width() != 1) throw ValueError("data", "a batch", "a single world");
}

template <class R>
void form_terms(const Model& model, BasicData<R>& data, const Drives& drives, const SpdInput<R>& in, Parts<R>& p) {
  drive_terms<R>(model, data, drives, in.dt, in.qpos, in.qvel, in.qpos_target, in.qvel_target, in.tau, p.Q, p.K);
}

/// Forms the rows of M + K, and the right side Q - C in x. K includes the armature that crba() would add.
template <class R>
void form_system(const Model& model, BasicData<R>& data, const SpdInput<R>& in, Parts<R>& p) {
  bias_force<R>(model, data, in.qpos, in.qvel, p.bias);
  baseline_table<R>().crba_rows(model.view<R>(), data.state(0), p.tree(), in.qpos.data(), p.rows.data());
  for (int k = 0; k < model.nv; ++k) {
    p.rows[p.start[k] + p.depth[k]] += p.K[k];
    p.x[k] = p.Q[k] - p.bias[k];
  }
}

/// τ = Q - (K - armature) x: the applied force and those of drives, springs and dampers at the end of the step.
template <class R>
void form_force(const Model& model, const Parts<R>& p, std::span<const R> x, std::span<R> tau) {
  for (int k = 0; k < model.nv; ++k) tau[k] = p.Q[k] - (p.K[k] - R(model.armature[k])) * x[k];
}

/// The paper's simulator: τ from a baseline's x, then ABA.
template <class R>
void simulate(const Model& model, BasicData<R>& data, const SpdInput<R>& in, Parts<R>& p, Out<R> qacc,
              Out<R> joint_force) {
  const std::span<R> tau = joint_force.empty() ? std::span<R>(p.residual) : joint_force;
  form_force<R>(model, p, p.x, tau);
  aba<R>(model, data, in.qpos, in.qvel, tau, qacc);
}

template <class R>
void finish_direct(const Model& model, const Parts<R>& p, Out<R> qacc, Out<R> joint_force) {
  check_size("qacc", qacc.size(), model.nv);
  std::copy(p.x.begin(), p.x.end(), qacc.begin());
  if (!joint_force.empty()) form_force<R>(model, p, qacc, joint_force);
}

template <class R>
void solve_dense(const Model& model, BasicData<R>& data, const Drives& drives, const SpdInput<R>& in, Parts<R>& p) {
  check(data);
  form_terms(model, data, drives, in, p);
  form_system(model, data, in, p);
  p.dense.resize(std::size_t(model.nv) * model.nv);
  baseline_table<R>().branch_expand(p.tree(), p.rows.data(), p.dense.data());
  baseline_table<R>().dense_solve(model.nv, p.dense.data(), p.x.data());
}

template <class R>
void solve_sparse(const Model& model, BasicData<R>& data, const Drives& drives, const SpdInput<R>& in, Parts<R>& p) {
  check(data);
  form_terms(model, data, drives, in, p);
  form_system(model, data, in, p);
  baseline_table<R>().branch_factor(p.tree(), p.rows.data());
  baseline_table<R>().branch_solve(p.tree(), p.rows.data(), p.x.data());
}

template <class R>
R dot(const AlignedVector<R>& a, const AlignedVector<R>& b) {
  R sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Conjugate gradients from zero.
template <class R>
void iterate_pcg(Parts<R>& p, SpdWorkspace<R>& workspace) {
  const BranchView tree = p.tree();
  const std::size_t n = tree.n;
  const auto precondition = [&] {
    for (std::size_t k = 0; k < n; ++k) p.preconditioned[k] = p.residual[k] / p.rows[p.start[k] + p.depth[k]];
  };
  p.residual = p.x;
  std::fill(p.x.begin(), p.x.end(), R(0));
  const R goal = workspace.pcg_tolerance * workspace.pcg_tolerance * dot(p.residual, p.residual);
  precondition();
  p.direction = p.preconditioned;
  R rho = dot(p.residual, p.preconditioned);
  int i = 0;
  for (; i < workspace.pcg_max_iterations && dot(p.residual, p.residual) > goal; ++i) {
    baseline_table<R>().branch_multiply(tree, p.rows.data(), p.direction.data(), p.image.data());
    const R alpha = rho / dot(p.direction, p.image);
    for (std::size_t k = 0; k < n; ++k) p.x[k] += alpha * p.direction[k], p.residual[k] -= alpha * p.image[k];
    precondition();
    const R next = dot(p.residual, p.preconditioned), beta = next / rho;
    rho = next;
    for (std::size_t k = 0; k < n; ++k) p.direction[k] = p.preconditioned[k] + beta * p.direction[k];
  }
  workspace.pcg_iterations = i;
}

template <class R>
void dense(const Model& model, BasicData<R>& data, const Drives& drives, const SpdInput<R>& in, SpdWorkspace<R>& w,
           Out<R> qacc, Out<R> joint_force) {
  solve_dense(model, data, drives, in, w.parts());
  simulate(model, data, in, w.parts(), qacc, joint_force);
}

template <class R>
void sparse(const Model& model, BasicData<R>& data, const Drives& drives, const SpdInput<R>& in, SpdWorkspace<R>& w,
            Out<R> qacc, Out<R> joint_force) {
  solve_sparse(model, data, drives, in, w.parts());
  simulate(model, data, in, w.parts(), qacc, joint_force);
}

template <class R>
void pcg(const Model& model, BasicData<R>& data, const Drives& drives, const SpdInput<R>& in, SpdWorkspace<R>& w,
         Out<R> qacc, Out<R> joint_force) {
  check(data);
  form_terms(model, data, drives, in, w.parts());
  form_system(model, data, in, w.parts());
  iterate_pcg(w.parts(), w);
  simulate(model, data, in, w.parts(), qacc, joint_force);
}

template <class R>
void maba_standalone(const Model& model, BasicData<R>& data, const Drives& drives, const SpdInput<R>& in,
                     SpdWorkspace<R>& w, Out<R> qacc, Out<R> joint_force) {
  check(data);
  Parts<R>& p = w.parts();
  form_terms(model, data, drives, in, p);
  maba<R>(model, data, in.qpos, in.qvel, p.Q, p.K, p.x);
  simulate(model, data, in, p, qacc, joint_force);
}

template <class R>
void maba_embedded(const Model& model, BasicData<R>& data, const Drives& drives, const SpdInput<R>& in,
                   SpdWorkspace<R>& w, Out<R> qacc, Out<R> joint_force) {
  check(data);
  Parts<R>& p = w.parts();
  form_terms(model, data, drives, in, p);
  maba<R>(model, data, in.qpos, in.qvel, p.Q, p.K, qacc);
  if (!joint_force.empty()) form_force<R>(model, p, qacc, joint_force);
}

template <class R>
void dense_direct(const Model& model, BasicData<R>& data, const Drives& drives, const SpdInput<R>& in,
                  SpdWorkspace<R>& w, Out<R> qacc, Out<R> joint_force) {
  solve_dense(model, data, drives, in, w.parts());
  finish_direct<R>(model, w.parts(), qacc, joint_force);
}

template <class R>
void sparse_direct(const Model& model, BasicData<R>& data, const Drives& drives, const SpdInput<R>& in,
                   SpdWorkspace<R>& w, Out<R> qacc, Out<R> joint_force) {
  solve_sparse(model, data, drives, in, w.parts());
  finish_direct<R>(model, w.parts(), qacc, joint_force);
}

/// Clamps forces to the drives' limits. Torques of ball joints keep their direction.
template <class R>
void cut_off(const Model& model, const Drives& drives, std::span<R> tau) {
  if (drives.force_limit.empty()) return;
  const auto shorten = [&](int first, double limit) {
    const R length = R(elementary::hypot(tau[first], tau[first + 1], tau[first + 2]));
    if (!(length > R(limit))) return;
    for (int k = 0; k < 3; ++k) tau[first + k] *= R(limit) / length;
  };
  for (const Joint& joint : model.joints) {
    const int v = joint.qvel;
    const bool turns = turns_freely(joint.type), moves = moves_freely(joint.type);
    for (int k = v; !turns && k < v + (moves ? 3 : joint.nv()); ++k) {
      const double high = drives.force_limit[k], low = drives.force_floor.empty() ? -high : drives.force_floor[k];
      tau[k] = std::clamp(tau[k], R(low), R(high));
    }
    if (turns || moves) shorten(moves ? v + 3 : v, drives.force_limit[moves ? v + 3 : v]);
  }
}

}  // namespace

template <class R>
std::span<const SpdMethod<R>> spd_methods() {
  static constexpr std::array<SpdMethod<R>, 7> kMethods{{
      {SpdSolver::dense, "dense", "DF", dense<R>},
      {SpdSolver::sparse, "sparse", "SF", sparse<R>},
      {SpdSolver::pcg, "pcg", "PCG", pcg<R>},
      {SpdSolver::maba_standalone, "maba_standalone", "MABA, standalone", maba_standalone<R>},
      {SpdSolver::maba, "maba", "MABA", maba_embedded<R>},
      {SpdSolver::dense_direct, "dense_direct", "bias + CRBA + dense", dense_direct<R>},
      {SpdSolver::sparse_direct, "sparse_direct", "bias + CRBA + sparse", sparse_direct<R>},
  }};
  return kMethods;
}

template <class R>
std::function<void(In<R>, In<R>, In<R>, Out<R>)> spd_law(const Model& model, Drives drives, double dt,
                                                         SpdSolver method) {
  struct State {
    const Model& model;
    Drives drives;
    BasicData<R> data;
    SpdWorkspace<R> workspace;
    AlignedVector<R> qacc;
  };
  drives.check(model);
  const std::shared_ptr<State> state(new State{model, std::move(drives), BasicData<R>(model), SpdWorkspace<R>(model),
                                               AlignedVector<R>(std::size_t(model.nv))});
  return [state, dt, method](In<R> qpos, In<R> qvel, In<R> qpos_target, Out<R> tau) {
    State& s = *state;
    const SpdInput<R> in{qpos, qvel, qpos_target, {}, {}, dt};
    spd_method<R>(method).solve(s.model, s.data, s.drives, in, s.workspace, s.qacc, {});
    drive_force<R>(s.model, s.data, s.drives, dt, qpos, qvel, qpos_target, {}, s.qacc, tau);
    cut_off<R>(s.model, s.drives, tau);
  };
}

template std::function<void(In<double>, In<double>, In<double>, Out<double>)> spd_law<double>(const Model&, Drives,
                                                                                              double, SpdSolver);
template std::function<void(In<float>, In<float>, In<float>, Out<float>)> spd_law<float>(const Model&, Drives, double,
                                                                                         SpdSolver);
template class SpdWorkspace<double>;
template class SpdWorkspace<float>;
template std::span<const SpdMethod<double>> spd_methods<double>();
template std::span<const SpdMethod<float>> spd_methods<float>();

}  // namespace tarsus
