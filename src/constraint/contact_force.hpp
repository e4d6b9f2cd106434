// A contact's rows as forces in a block of DelassusRows.
#pragma once

#include "tarsus/constraint/tree_operator.hpp"

namespace tarsus {

/// A row of the block on its link a alone: a moment about the link's origin and a force, world axes.
template <class R>
void write_wrench(const Vec3d& moment, const Vec3d& force, const typename DelassusRows<R>::Block& block, int row) {
  for (int j = 0; j < 3; ++j) {
    block.force[std::size_t(j) * block.stride + row] = R(moment[j]);
    block.force[std::size_t(3 + j) * block.stride + row] = R(force[j]);
  }
}

/// Row k of a contact on one of its links: the moment about the link's origin and the force, world axes. @param sign -1
/// for the second link
inline Force<double> contact_wrench(const ContactRows& contact, const Vec3d& arm, double sign, int k) {
  const Vec3d d = contact.axis[k % 3] * sign;
  return k < 3 ? Force<double>{cross(arm, d), d} : Force<double>{d, {0, 0, 0}};
}

/// All its rows so, [row][moment, force].
inline void write_rows(const ContactRows& contact, const Vec3d& arm, double sign, double (&J)[kTermRows][6]) {
  for (int k = 0; k < contact.nrow; ++k) {
    const Force<double> f = contact_wrench(contact, arm, sign, k);
    for (int j = 0; j < 3; ++j) J[k][j] = f.n[j], J[k][3 + j] = f.f[j];
  }
}

/// Rows `row`, row + 1, … of the block: along the contact's axes at its point, from the fourth on moments about them.
template <class R>
void write_contact(const ContactRows& contact, const typename DelassusRows<R>::Block& block, int row) {
  const auto put = [&](int offset, const Vec3d& arm, double sign) {
    for (int k = 0; k < contact.nrow; ++k) {
      const Force<double> f = contact_wrench(contact, arm, sign, k);
      R* at = block.force + std::size_t(offset) * block.stride + row + k;
      for (int j = 0; j < 3; ++j) {
        at[std::size_t(j) * block.stride] = R(f.n[j]);
        at[std::size_t(3 + j) * block.stride] = R(f.f[j]);
      }
    }
  };
  put(0, contact.arm_a, 1);
  if (contact.b >= 0) put(6, contact.arm_b, -1);
}

}  // namespace tarsus
