// Where the rows of a step's terms act on links, joints and DoFs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tarsus/solver/term.hpp"
#include "tarsus/spatial/spatial.hpp"

namespace tarsus {

/// Rows on one joint: e · (the joint's velocity); a rotation with three rows: its velocity in world axes.
struct JointRows {
  enum class Part : std::uint8_t {
    axial,
    linear,
    angular
  };  ///< axial: hinge, slide; linear: a free joint's translation; angular: ball, a free joint's rotation
  int joint = 0;
  Part part = Part::axial;
  int nrow = 1;
  Vec3d e{};  ///< axial: e.x = ±1; else world axes
};

/// A row along a generalised direction, with J over the dofs.
struct PathRow {
  std::span<const int> dofs;
  std::span<const double> arm;
  int on_link = -1;  ///< the link, if J is `wrench` on one link at its origin, in world axes; else -1
  Force<double> wrench{{0, 0, 0}, {0, 0, 0}};
};

/// J v of a path or a ForceRow.
template <class Row, class V>
double along(const Row& row, const V& v) {
  double sum = 0;
  for (std::size_t k = 0; k < row.dofs.size(); ++k) sum += row.arm[k] * double(v[std::size_t(row.dofs[k])]);
  return sum;
}

/// Of all terms: first `contacts`, then `joints`, then `paths`.
struct RowGeometry {
  std::span<const ContactRows> contacts;  ///< contacts of one pair of links are neighbours
  std::span<const JointRows> joints;
  std::span<const PathRow> paths;
  int first_joint() const { return int(contacts.size()); }  ///< index of a term
  int first_path() const { return first_joint() + int(joints.size()); }
};

}  // namespace tarsus
