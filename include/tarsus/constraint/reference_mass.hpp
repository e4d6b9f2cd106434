// What a row feels of the links and joints that it acts on: a scale for its compliance and for its natural map.
#pragma once

#include <span>
#include <vector>

#include "tarsus/model/model.hpp"

namespace tarsus {

/// Inverse masses of one link in the model's reference pose, without drives; the first three by its articulated
/// inertia. Constants: rows can be laid out before anything of the step is factored.
struct ReferenceMass {
  double linear = 0;   ///< one over the mean of what it is in all directions [1/kg]
  double angular = 0;  ///< one over the mean about all axes at the link's origin [1/(kg m²)]
  double joint = 0;    ///< mass along the axis of a hinge or slide, mean about a ball's, no armature [kg m² | kg]
  // MuJoCo's body_invweight0 and dof_invweight0, for the law of solref and solimp:
  double weight = 0;        ///< mean of J M⁻¹ Jᵀ at its centre of mass [1/kg]
  double joint_weight = 0;  ///< mean of its joint's diagonal of M⁻¹, of rotations alone in a free joint
};
inline constexpr int kReferenceNumbers = 5;  ///< of a link, in that order, in arrays of numbers
template <class R>
std::vector<R> reference_numbers(std::span<const ReferenceMass> masses) {
  std::vector<R> out;
  for (const ReferenceMass& m : masses)
    out.insert(out.end(), {R(m.linear), R(m.angular), R(m.joint), R(m.weight), R(m.joint_weight)});
  return out;
}

/// [link]. O(nlink).
std::vector<ReferenceMass> reference_masses(const Model& model);
/// [world][link] of worlds with masses of their own, side by side, to the bit as of models with these.
/// @param inertia [world][link]
std::vector<ReferenceMass> reference_masses(const Model& model, std::span<const RigidInertia<double>> inertia);

}  // namespace tarsus
