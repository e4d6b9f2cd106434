// The pose qpos0 as actuators feel it: their moments, and the inverse of the mass matrix with the tendons' armature.
//
//   M̃ = M + Σ a_t J_tᵀ J_t over tendons with armature a_t,   M̃⁻¹ x by Woodbury's identity from M⁻¹ of all J_tᵀ
//
// MuJoCo takes from it what a file gives relative to inertia: springdamper, dampratio, and muscles' scale.
#pragma once

#include "tarsus/control/actuator.hpp"

namespace tarsus {

class ReferencePose {
 public:
  /// Keeps a reference to the model.
  ReferencePose(const Model& model, const TendonSet& tendons, const ActuatorSet& actuators);

  /// [nv] ∂l/∂q of an actuator of the set.
  std::vector<double> moment(const Actuator& actuator) const;
  /// x = M̃⁻¹ x.  @param x [nv]
  void minv(std::span<double> x);
  /// J M̃⁻¹ Jᵀ: the inverse of the inertia felt along J.  @param row [nv]
  double mobility(std::span<const double> row);

 private:
  struct Heavy {  // a tendon with armature
    double armature;
    std::vector<double> row, column;  // [nv] J_t, M⁻¹ J_tᵀ
  };
  const Model& model_;
  Data data_;
  std::vector<double> moments_;  // of all actuators
  std::vector<Heavy> heavy_;
};

}  // namespace tarsus
