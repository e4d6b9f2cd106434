#include "tarsus/dynamics/tendon_inertia.hpp"

#include <algorithm>

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
      row_(std::size_t(model.nv)) {}

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
  qpos_.assign(qpos.begin(), qpos.end()), answers_.made = false;
  std::fill(bias_.begin(), bias_.end(), 0.0);
  if (!qvel.empty()) tendon_bias(model_, tendons_, work_, qpos, qvel, bias_);
  kinematics<double>(model_, work_, qpos);
  tendon_lengths(model_, tendons_, work_.links(), qpos, length_, arm_, row_);
}

double TendonInertia::along(const Tendon& tendon, std::span<const double> v) const {
  double sum = 0;
  for (std::size_t i = 0; i < tendon.dofs.size(); ++i)
    sum += arm_[std::size_t(tendon.first) + i] * v[std::size_t(tendon.dofs[i])];
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
  return tendons_[t].armature * ((qacc.empty() ? 0 : along(tendons_[t], qacc)) + bias_[std::size_t(t)]);
}

void TendonInertia::add_force(std::span<const double> qacc, std::span<double> tau) const {
  for (int t = 0; t < tendons_.size(); ++t) {
    const Tendon& tendon = tendons_[t];
    const double inertial = force(t, qacc);
    for (std::size_t i = 0; i < tendon.dofs.size(); ++i)
      tau[std::size_t(tendon.dofs[i])] += inertial * arm_[std::size_t(tendon.first) + i];
  }
}

void TendonInertia::make_answers() {
  Answers& a = answers_;
  a.made = true, a.tendons.clear();
  for (int t = 0; t < tendons_.size(); ++t) {
    if (tendons_[t].armature > 0) a.tendons.push_back(t);
  }
  const std::size_t n = a.tendons.size(), nv = std::size_t(model_.nv);
  a.columns.resize(n * nv), a.schur.resize(n * n), a.force.resize(n), a.pivot.resize(n);
  factor<double>(model_, work_, qpos_, model_.armature);
  for (std::size_t k = 0; k < n; ++k) {
    const Tendon& tendon = tendons_[a.tendons[k]];
    for (std::size_t i = 0; i < tendon.dofs.size(); ++i)
      row_[std::size_t(tendon.dofs[i])] = arm_[std::size_t(tendon.first) + i];
    minv<double>(model_, work_, row_, std::span(a.columns).subspan(k * nv, nv));
    std::fill(row_.begin(), row_.end(), 0.0);
  }
  for (std::size_t k = 0; k < n; ++k) {
    const Tendon& tendon = tendons_[a.tendons[k]];
    for (std::size_t j = 0; j < n; ++j)
      a.schur[k * n + j] = along(tendon, std::span(a.columns).subspan(j * nv, nv)) + (j == k ? 1 / tendon.armature : 0);
  }
  factor_lu(a.schur, a.pivot);
}

/// q̈ -= M₀⁻¹ Jᵀ f with f = a (J q̈ + J̇ q̇): (1/a + J M₀⁻¹ Jᵀ) f = J q̈ + J̇ q̇ at the tree's q̈, M₀ with the joints'
/// armature.
void TendonInertia::correct(std::span<double> qacc) {
  Answers& a = answers_;
  if (!a.made) make_answers();
  const std::size_t n = a.tendons.size(), nv = std::size_t(model_.nv);
  for (std::size_t k = 0; k < n; ++k)
    a.force[k] = along(tendons_[a.tendons[k]], qacc) + bias_[std::size_t(a.tendons[k])];
  solve_lu(a.schur, a.pivot, a.force);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = 0; i < nv; ++i) qacc[i] -= a.columns[k * nv + i] * a.force[k];
  }
}

template void TendonInertia::evaluate(const BasicData<double>&, int, std::span<const double>, std::span<const double>);
template void TendonInertia::evaluate(const BasicData<float>&, int, std::span<const double>, std::span<const double>);

}  // namespace tarsus
