// Adhesion: actuators on bodies, MuJoCo's <adhesion>. Each pulls its body together with all that touches it, with its
// force in equal parts at the contact points, along their normals. What is within margin and gap of the body counts as
// touching: there a pull acts and no contact's force does yet.
#pragma once

#include <vector>

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/control/actuator.hpp"

namespace tarsus {

class Adhesion {
 public:
  /// Keeps a reference to the model. @throws InputError naming a body that is not there, or as solid_shape()
  Adhesion(const Model& model, const ActuatorSet& actuators);
  bool empty() const { return grips_.empty(); }

  /// row += the generalised force of each, at the pose of `links` (after kinematics()).
  /// @param force [nu] of the actuators  @param row [nv]
  void add(const LinkState<double>* links, std::span<const double> force, std::span<double> row) const;

 private:
  struct Grip {
    int actuator;
    std::vector<std::pair<int, int>> pairs;  ///< of shapes
  };
  const Model& model_;
  ContactGeometry geometry_;
  std::vector<Grip> grips_;
};

}  // namespace tarsus
