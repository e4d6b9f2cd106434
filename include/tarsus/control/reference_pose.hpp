// Actuator moments at qpos0, and the inverse of the mass matrix there, with the armature of tendons.
//
// MuJoCo evaluates at this pose the parameters that a file gives relative to inertia: springdamper, dampratio and the
// scale of muscles.
#pragma once

#include "tarsus/control/actuator.hpp"
#include "tarsus/dynamics/tendon_inertia.hpp"

namespace tarsus {

class ReferencePose {
 public:
  /// Keeps a reference to the model.
  ReferencePose(const Model& model, const TendonSet& tendons, const ActuatorSet& actuators);

  /// [nv] ∂l/∂q of an actuator of the set.
  std::vector<double> moment(const Actuator& actuator) const;
  /// x = M⁻¹ x.  @param x [nv]
  void minv(std::span<double> x);
  /// J M⁻¹ Jᵀ: the inverse of the inertia felt along J.  @param row [nv]
  double mobility(std::span<const double> row);

 private:
  const Model& model_;
  Data data_;
  TendonInertia inertia_;
  std::vector<double> moments_;  // of all actuators
};

}  // namespace tarsus
