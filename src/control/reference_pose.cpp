#include "tarsus/control/reference_pose.hpp"

#include <Eigen/Cholesky>
#include <numeric>

#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

namespace {

double inner(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

ReferencePose::ReferencePose(const Model& model, const TendonSet& tendons, const ActuatorSet& actuators)
    : model_(model), data_(model), moments_(actuators.moments()) {
  kinematics<double>(model, data_, model.qpos0);
  std::vector<double> tendon_length(tendons.size()), arm(tendons.arms()), row(model.nv), length(actuators.size());
  tendon_lengths(model, tendons, data_.links(), model.qpos0, tendon_length, arm, row);
  transmissions(model, actuators, tendons, data_.links(), model.qpos0, tendon_length, arm, length, moments_, row);
  factor<double>(model, data_, model.qpos0, model.armature);
  for (int t = 0; t < tendons.size(); ++t) {
    const Tendon& tendon = tendons[t];
    if (tendon.armature == 0) continue;
    Heavy heavy{tendon.armature, std::vector<double>(model.nv), std::vector<double>(model.nv)};
    for (std::size_t k = 0; k < tendon.dofs.size(); ++k) heavy.row[tendon.dofs[k]] = arm[tendon.first + k];
    tarsus::minv<double>(model, data_, heavy.row, heavy.column);
    heavy_.push_back(std::move(heavy));
  }
}

std::vector<double> ReferencePose::moment(const Actuator& actuator) const {
  std::vector<double> row(model_.nv);
  for (std::size_t k = 0; k < actuator.dofs.size(); ++k) row[actuator.dofs[k]] = moments_[actuator.first + k];
  return row;
}

void ReferencePose::minv(std::span<double> x) {
  tarsus::minv<double>(model_, data_, x, x);
  if (heavy_.empty()) return;
  const auto n = Eigen::Index(heavy_.size());
  Eigen::MatrixXd S(n, n);  // A⁻¹ + J M⁻¹ Jᵀ
  Eigen::VectorXd b(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    b[i] = inner(heavy_[i].row, x);
    for (Eigen::Index j = 0; j < n; ++j) S(i, j) = inner(heavy_[i].row, heavy_[j].column);
    S(i, i) += 1 / heavy_[i].armature;
  }
  b = S.ldlt().solve(b);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (int v = 0; v < model_.nv; ++v) x[v] -= b[i] * heavy_[i].column[v];
  }
}

double ReferencePose::mobility(std::span<const double> row) {
  std::vector<double> x(row.begin(), row.end());
  minv(x);
  return inner(row, x);
}

}  // namespace tarsus
