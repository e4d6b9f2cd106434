#include "tarsus/control/reference_pose.hpp"

namespace tarsus {

ReferencePose::ReferencePose(const Model& model, const TendonSet& tendons, const ActuatorSet& actuators)
    : model_(model), data_(model), inertia_(model), moments_(actuators.moments()) {
  kinematics<double>(model, data_, model.qpos0);
  std::vector<double> tendon_length(tendons.size()), arm(tendons.arms()), row(model.nv), length(actuators.size());
  tendon_lengths(model, tendons, data_.links(), model.qpos0, tendon_length, arm, row);
  transmissions(model, actuators, tendons, data_.links(), model.qpos0, tendon_length, arm, length, moments_, row);
  inertia_.evaluate(data_, 0, model.qpos0, {});
}

std::vector<double> ReferencePose::moment(const Actuator& actuator) const {
  std::vector<double> row(model_.nv);
  for (std::size_t k = 0; k < actuator.dofs.size(); ++k) row[actuator.dofs[k]] = moments_[actuator.first + k];
  return row;
}

void ReferencePose::minv(std::span<double> x) { inertia_.minv(x); }

double ReferencePose::mobility(std::span<const double> row) {
  std::vector<double> x(row.begin(), row.end());
  minv(x);
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] != 0) sum += row[i] * x[i];  // other entries of x may be infinite: another tree may be singular
  }
  return sum;
}

}  // namespace tarsus
