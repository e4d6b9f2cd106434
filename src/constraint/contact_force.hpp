// A contact's rows as forces in a block of DelassusRows.
#pragma once

#include "tarsus/constraint/tree_operator.hpp"

namespace tarsus {

/// Writes a row of the block on one of its links: a moment about the link's origin and a force, world axes.
/// @param side 0: on a, 1: on b
template <class R>
void write_wrench(const Force<double>& f, const typename DelassusRows<R>::Block& block, int row, int side = 0) {
  R* const at = block.force + std::size_t(6 * side) * block.stride + row;
  for (int j = 0; j < 3; ++j) {
    at[std::size_t(j) * block.stride] = R(f.n[j]);
    at[std::size_t(3 + j) * block.stride] = R(f.f[j]);
  }
}

/// Row k of a contact on one of its links: the moment about the link's origin and the force, world axes.
/// @param sign -1 for the second link
inline Force<double> contact_wrench(const ContactRows& contact, const Vec3d& arm, double sign, int k) {
  const Vec3d d = contact.axis[k % 3] * sign;
  return k < 3 ? Force<double>{cross(arm, d), d} : Force<double>{d, {0, 0, 0}};
}

/// Force and moment at the contact's point, from the impulses y of its rows.
inline Force<double> contact_sum(const ContactRows& contact, const double* y) {
  Force<double> sum{{0, 0, 0}, {0, 0, 0}};
  for (int k = 0; k < contact.nrow; ++k) (k < 3 ? sum.f : sum.n) += contact.axis[k % 3] * y[k];
  return sum;
}

/// Motion of a link's point at that arm.
inline Motion<double> at_arm(const Motion<double>& link, const Vec3d& arm) {
  return {link.w, link.v + cross(link.w, arm)};
}
/// Row k of a contact applied to such a motion, or to the first link's relative to the second's.
inline double along_contact(const ContactRows& contact, const Motion<double>& motion, int k) {
  return dot(contact.axis[k % 3], k < 3 ? motion.v : motion.w);
}

/// Writes rows `row`, row + 1, … of the block: forces along the contact's axes at its point, from the fourth row on
/// moments about them.
template <class R>
void write_contact(const ContactRows& contact, const typename DelassusRows<R>::Block& block, int row) {
  for (int k = 0; k < contact.nrow; ++k) {
    write_wrench<R>(contact_wrench(contact, contact.arm_a, 1, k), block, row + k);
    if (contact.b >= 0) write_wrench<R>(contact_wrench(contact, contact.arm_b, -1, k), block, row + k, 1);
  }
}

}  // namespace tarsus
