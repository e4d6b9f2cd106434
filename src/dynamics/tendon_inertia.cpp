#include "tarsus/dynamics/tendon_inertia.hpp"

#include <algorithm>
#include <numeric>

#include "math/dense_lu.hpp"
#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

TendonInertia::TendonInertia(const Model& model)
    : model_(model),
      tendons_(TendonSet::of(model)),
      work_(model),
      length_(std::size_t(tendons_.size())),
      arm_(std::size_t(tendons_.arms())),
      bias_(length_.size()),
      row_(std::size_t(model.nv)),
      every_(std::size_t(model.nv)) {
  std::iota(every_.begin(), every_.end(), 0);
}

bool TendonInertia::any(const Model& model) {
  const auto heavy = [](const TendonSpec& t) { return t.armature > 0; };
  return std::any_of(model.spec.tendons.begin(), model.spec.tendons.end(), heavy);
}

template <class R>
void TendonInertia::evaluate(const BasicData<R>& data, int world, std::span<const double> qpos,
                             std::span<const double> qvel) {
  const auto take = [&](const AlignedVector<R>& from, AlignedVector<double>& to) {
    std::vector<R> one(to.size());
    data.get(from, int(to.size()), world, one);
    std::copy(one.begin(), one.end(), to.begin());
  };
  take(data.mocap_pos, work_.mocap_pos), take(data.mocap_quat, work_.mocap_quat);
  qpos_.assign(qpos.begin(), qpos.end()), answers_ = {};
  std::fill(bias_.begin(), bias_.end(), 0.0);
  if (!qvel.empty()) tendon_bias(model_, tendons_, work_, qpos, qvel, bias_);
  kinematics<double>(model_, work_, qpos);
  tendon_lengths(model_, tendons_, work_.links(), qpos, length_, arm_, row_);
}

double TendonInertia::along(std::span<const int> dofs, std::span<const double> arm, std::span<const double> v) {
  double sum = 0;
  for (std::size_t i = 0; i < dofs.size(); ++i) sum += arm[i] * v[std::size_t(dofs[i])];
  return sum;
}

void TendonInertia::add_mass(std::span<double> M) const {
  for (int t = 0; t < tendons_.size(); ++t) {
    const Tendon& tendon = tendons_[t];
    const double* const J = arm_.data() + tendon.first;
    for (std::size_t i = 0; i < tendon.dofs.size(); ++i) {
      double* const row = &M[std::size_t(tendon.dofs[i]) * std::size_t(model_.nv)];
      for (std::size_t j = 0; j < tendon.dofs.size(); ++j) row[tendon.dofs[j]] += tendon.armature * J[i] * J[j];
    }
  }
}

double TendonInertia::force(int t, std::span<const double> qacc) const {
  const Tendon& tendon = tendons_[t];
  const std::span<const double> arm(arm_.data() + tendon.first, tendon.dofs.size());
  return tendon.armature * ((qacc.empty() ? 0 : along(tendon.dofs, arm, qacc)) + bias_[std::size_t(t)]);
}

void TendonInertia::add_force(std::span<const double> qacc, std::span<double> tau) const {
  for (int t = 0; t < tendons_.size(); ++t) {
    const Tendon& tendon = tendons_[t];
    const double inertial = force(t, qacc);
    for (std::size_t i = 0; i < tendon.dofs.size(); ++i)
      tau[std::size_t(tendon.dofs[i])] += inertial * arm_[std::size_t(tendon.first) + i];
  }
}

/// K [nv] that makes the tree regular wherever M is: the diagonal of Σ a Jᵀ J, limited to what the joint carries, so
/// that the correction removes little.
std::vector<double> TendonInertia::tree_inertia() const {
  std::vector<double> K(std::size_t(model_.nv));
  for (int t = 0; t < tendons_.size(); ++t) {
    const Tendon& tendon = tendons_[t];
    for (std::size_t i = 0; i < tendon.dofs.size(); ++i) {
      const double J = arm_[std::size_t(tendon.first) + i];
      K[std::size_t(tendon.dofs[i])] += tendon.armature * J * J;
    }
  }
  for (std::size_t v = 0; v < K.size(); ++v) {
    const double carried = model_.carried_inertia[v];
    if (carried > 0) K[v] *= carried / (K[v] + carried);
  }
  for (const Joint& joint : model_.joints) {  // a rotation has one number for its three axes
    if (!has_rotation(joint.type)) continue;
    const auto first = K.begin() + joint.qvel + scalar_count(joint.type);
    std::fill_n(first, 3, *std::max_element(first, first + 3));
  }
  return K;
}

void TendonInertia::make_answers() {
  static constexpr double kOne = 1;
  Answers& a = answers_;
  for (int t = 0; t < tendons_.size(); ++t) {
    const Tendon& tendon = tendons_[t];
    const std::span<const double> arm(arm_.data() + tendon.first, tendon.dofs.size());
    if (tendon.armature > 0) a.lacks.push_back({tendon.armature, tendon.dofs, arm, bias_[std::size_t(t)]});
  }
  a.K = tree_inertia();
  for (std::size_t v = 0; v < a.K.size(); ++v) {
    if (a.K[v] > 0) a.lacks.push_back({-a.K[v], {&every_[v], 1}, {&kOne, 1}, 0});
    a.K[v] += model_.armature[v];
  }
  factor<double>(model_, work_, qpos_, a.K);
  const std::size_t n = a.lacks.size(), nv = a.K.size();
  a.columns.resize(n * nv), a.schur.resize(n * n), a.force.resize(n), a.pivot.resize(n);
  for (std::size_t k = 0; k < n; ++k) {
    const Lack& lack = a.lacks[k];
    for (std::size_t i = 0; i < lack.dofs.size(); ++i) row_[std::size_t(lack.dofs[i])] = lack.arm[i];
    tarsus::minv<double>(model_, work_, row_, std::span(a.columns).subspan(k * nv, nv));
    std::fill(row_.begin(), row_.end(), 0.0);
  }
  for (std::size_t k = 0; k < n; ++k) {
    const Lack& lack = a.lacks[k];
    for (std::size_t j = 0; j < n; ++j)
      a.schur[k * n + j] = along(lack.dofs, lack.arm, std::span(a.columns).subspan(j * nv, nv));
    a.schur[k * n + k] += 1 / lack.inertia;
  }
  factor_lu(a.schur, a.pivot);
}

/// Corrects q̈ of the tree with K. The equation is (M₀ + K) q̈ = Q - C - Σ Jᵀ f with f = a (J q̈ + J̇ q̇), over all
/// lacks. With W = (M₀ + K)⁻¹ it gives (1/a + J W Jᵀ) f = J W (Q - C) + J̇ q̇.
void TendonInertia::correct(bool biased, std::span<double> qacc) {
  Answers& a = answers_;
  const std::size_t n = a.lacks.size(), nv = a.K.size();
  for (std::size_t k = 0; k < n; ++k)
    a.force[k] = along(a.lacks[k].dofs, a.lacks[k].arm, qacc) + (biased ? a.lacks[k].bias : 0);
  solve_lu(a.schur, a.pivot, a.force);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = 0; i < nv; ++i) qacc[i] -= a.columns[k * nv + i] * a.force[k];
  }
}

void TendonInertia::minv(std::span<double> x) {
  if (answers_.K.empty()) make_answers();
  tarsus::minv<double>(model_, work_, x, x);
  correct(false, x);
}

void TendonInertia::accelerate(std::span<const double> qvel, std::span<const double> tau,
                               std::span<const double> external, std::span<double> qacc) {
  if (answers_.K.empty()) make_answers();
  maba<double>(model_, work_, qpos_, qvel, tau, answers_.K, qacc, external);  // leaves the same factors of M̂
  correct(true, qacc);
}

template void TendonInertia::evaluate(const BasicData<double>&, int, std::span<const double>, std::span<const double>);
template void TendonInertia::evaluate(const BasicData<float>&, int, std::span<const double>, std::span<const double>);

}  // namespace tarsus
