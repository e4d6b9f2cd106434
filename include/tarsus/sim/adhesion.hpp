// Adhesion: MuJoCo's <adhesion> actuators, which act on bodies. An adhesion actuator pulls its body towards everything
// that touches the body. The actuator's force is divided equally among the contact points and acts along their normals.
// A shape counts as touching when its distance is within margin + gap; adhesion thus acts on contacts in the gap, which
// carry no contact force.
#pragma once

#include <vector>

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/control/actuator.hpp"

namespace tarsus {

class Adhesion {
 public:
  /// Keeps a reference to the model.
  /// @throws InputError naming a body that does not exist, or as solid_shape()
  Adhesion(const Model& model, const ActuatorSet& actuators);
  bool empty() const { return grips_.empty(); }

  /// Adds the generalised force of each actuator to row, at the pose of `links` (after kinematics()).
  /// @param force [nu] of the actuators  @param row [nv]
  void add(const LinkState<double>* links, std::span<const double> force, std::span<double> row) const;

 private:
  struct Grip {
    int actuator;
    std::vector<std::pair<int, int>> pairs;  ///< shape pairs of the actuator's body
  };
  const Model& model_;
  ContactGeometry geometry_;
  std::vector<Grip> grips_;
};

}  // namespace tarsus
