// Tangent and force of one term as stiffness of its link or joint: see tarsus/constraint/tree_operator.hpp.
#pragma once

#include <algorithm>

#include "tarsus/constraint/tree_operator.hpp"

namespace tarsus {

/// Whether the term has no force and no tangent: an open contact.
inline bool idle(const Tangent& tangent, const double* force, int nrow) {
  if (tangent.open) return true;
  if (tangent.at[0][0] != 0 || force[0] != 0) return false;
  for (int i = 1; i < nrow; ++i) {
    if (force[i] != 0) return false;
    for (int j = 1; j < nrow; ++j) {
      if (tangent.at[i][j] != 0) return false;
    }
  }
  return true;
}

/// Norm of the unsymmetric part of a contact's tangent: its first column below the diagonal.
double coupling(const Tangent& tangent, int nrow);

/// Whether the norm is positive; false for NaN. Most contacts end at the first test.
inline bool couples(const Tangent& tangent, int nrow) {
  for (int i = 1; i < nrow; ++i) {
    if (tangent.at[i][0] != 0) return coupling(tangent, nrow) > 0;
  }
  return false;
}

/// Adds Σ G_ij a_i a_jᵀ of a contact with the world, its symmetric part, and its force, at the link's origin.
template <class R>
void add_contact_stiffness(const ContactRows& contact, const Tangent& tangent, const double* force,
                           LinkStiffness<R>& stiffness);

/// The same for a joint's rows, as joint-space inertia. A free joint's velocity is its link's: its rows add to the
/// link.
template <class R>
void add_joint_stiffness(const JointRows& rows, bool free_joint, const Tangent& tangent, const double* force,
                         LinkStiffness<R>& stiffness);

/// The same for a path's row on one link.
template <class R>
void add_wrench_stiffness(const Force<double>& wrench, double tangent, double force, LinkStiffness<R>& stiffness);

/// Writes a row of a block over these dofs, and perhaps others: the path's arms.
template <class R>
void write_path(const PathRow& path, const typename DelassusRows<R>::Block& block, int row) {
  for (std::size_t k = 0; k < path.dofs.size(); ++k) {
    const auto place = std::find(block.dofs.begin(), block.dofs.end(), path.dofs[k]) - block.dofs.begin();
    block.joint[std::size_t(place) * block.stride + std::size_t(row)] = R(path.arm[k]);
  }
}

/// Adds a row along a generalised direction as a block.
template <class R>
typename DelassusRows<R>::Block add_path(const Model& model, const PathRow& path, DelassusRows<R>& rows,
                                         std::vector<int>& joints) {
  joints.clear();
  for (const int v : path.dofs) joints.push_back(model.dof_joint[v]);
  const typename DelassusRows<R>::Block block = rows.block(rows.add_joint_block(joints, 1));
  write_path<R>(path, block, 0);
  return block;
}

/// J of rows on a joint, over `count` of its DoFs in qvel's axes.
struct JointArms {
  int first, count;
  double at[3][3];  ///< [row][DoF]
};
/// @param links with orientations
template <class R>
JointArms joint_arms(const Model& model, const LinkState<R>* links, const JointRows& rows);

/// J v from qvel of rows that are not axial. @param links with orientations
template <class R>
void turning_velocity(const Model& model, const LinkState<R>* links, const JointRows& rows, const R* qvel, double* out);
/// J v of the rows from qvel. @param links with orientations
template <class R>
void joint_velocity(const Model& model, const LinkState<R>* links, const JointRows& rows, const R* qvel, double* out) {
  if (rows.part == JointRows::Part::axial)
    *out = rows.e.x * double(qvel[model.joints[rows.joint].qvel]);
  else
    turning_velocity(model, links, rows, qvel, out);
}
/// The same for one row.
template <class R>
double along_joint(const Model& model, const LinkState<R>* links, const JointRows& row, const R* qvel) {
  double out[3];
  joint_velocity(model, links, row, qvel, out);
  return out[0];
}

}  // namespace tarsus
