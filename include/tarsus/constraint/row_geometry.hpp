// Where the rows of a step's terms act on links, joints and DoFs.
#pragma once

#include <cstdint>
#include <span>

#include "tarsus/math/vec.hpp"

namespace tarsus {

/// Where a contact's rows act: along the normal and the two tangents, then moments about the three.
struct ContactRows {
  int a = 0, b = -1;  ///< links; b -1: the world
  int nrow = 3;
  Vec3d arm_a{}, arm_b{};  ///< from the links' origins, world axes [m]
  Vec3d axis[3] = {};      ///< n, t₁, t₂, world axes
};

/// Rows on one joint: e · its velocity; of a rotation with three rows, the velocity itself in world axes.
struct JointRows {
  enum class Part : std::uint8_t {
    axial,
    linear,
    angular
  };  ///< hinge, slide; free's translation; ball, free's rotation
  int joint = 0;
  Part part = Part::axial;
  int nrow = 1;
  Vec3d e{};  ///< axial: e.x = ±1; else world axes
};

/// A row along a generalised direction, J over the dofs.
struct PathRow {
  std::span<const int> dofs;
  std::span<const double> arm;
};

/// Of all terms: first those of `contacts`, then those of `joints`, then those of `paths`.
struct RowGeometry {
  std::span<const ContactRows> contacts;  ///< those of one pair of links are neighbours
  std::span<const JointRows> joints;
  std::span<const PathRow> paths;
};

}  // namespace tarsus
