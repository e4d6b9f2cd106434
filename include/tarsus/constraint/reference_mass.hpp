// Inverse masses that a row feels at its links and joints. They scale its compliance and its natural map.
#pragma once

#include <span>
#include <vector>

#include "tarsus/model/data.hpp"
#include "tarsus/model/model.hpp"
#include "tarsus/model/world_table.hpp"

namespace tarsus {

/// Inverse masses of one link in the model's reference pose, without drives; the first three follow from its
/// articulated inertia. They are constant, so that rows can be laid out before the step's factorisation.
struct ReferenceMass {
  double linear = 0;  ///< inverse of the mass, averaged over all directions [1/kg]
  double angular =
      0;  ///< inverse of the moment of inertia, averaged over all axes through the link's origin [1/(kg m²)]
  double joint =
      0;  ///< mass along the axis of a hinge or slide, mean over a ball's axes, without armature [kg m² | kg]
  // MuJoCo's body_invweight0 and dof_invweight0, for the law of solref and solimp:
  double weight = 0;        ///< mean of J M⁻¹ Jᵀ at the link's centre of mass [1/kg]
  double joint_weight = 0;  ///< mean over the diagonal of M⁻¹ of its joint; of a free joint, over the rotations
};
inline constexpr int kReferenceNumbers = 5;  ///< of a link, in the order above
template <class R>
std::vector<R> reference_numbers(std::span<const ReferenceMass> masses) {
  std::vector<R> out;
  for (const ReferenceMass& m : masses)
    out.insert(out.end(), {R(m.linear), R(m.angular), R(m.joint), R(m.weight), R(m.joint_weight)});
  return out;
}

/// Worlds in the model's reference pose, without drives: joint_inertia is the armature.
struct RestingWorlds {
  Data data;
  std::vector<WorldTable<double>> own;  ///< [pack] the inertias, to which `data` refers

  explicit RestingWorlds(const Model& model) : data(model) {}
  /// Worlds with their own masses.  @param inertia [world][link], at least one world  @param armature [world][nv]
  RestingWorlds(const Model& model, std::span<const RigidInertia<double>> inertia, std::span<const double> armature);
  RestingWorlds(const RestingWorlds&) = delete;
};

/// [link]. O(nlink).
std::vector<ReferenceMass> reference_masses(const Model& model);
/// [world][link], bit for bit as for models with the worlds' masses. Overwrites the links of `worlds`.
std::vector<ReferenceMass> reference_masses(const Model& model, RestingWorlds& worlds);

}  // namespace tarsus
