// Where the rows of a step's terms act on links, joints and DoFs.
#pragma once

#include <cstdint>
#include <span>

#include "tarsus/solver/term.hpp"
#include "tarsus/spatial/spatial.hpp"

namespace tarsus {

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
  int on_link = -1;  ///< if J is `wrench` on one link: at its origin, world axes
  Force<double> wrench{{0, 0, 0}, {0, 0, 0}};
};

/// Of all terms: first those of `contacts`, then those of `joints`, then those of `paths`.
struct RowGeometry {
  std::span<const ContactRows> contacts;  ///< those of one pair of links are neighbours
  std::span<const JointRows> joints;
  std::span<const PathRow> paths;
  int first_joint() const { return int(contacts.size()); }  ///< terms
  int first_path() const { return first_joint() + int(joints.size()); }
};

}  // namespace tarsus
