// A contact's tangent and force as blocks between its two links' motions, 6 × 6.
#pragma once

#include "constraint/contact_force.hpp"

namespace tarsus {

/// What a contact's rows are to one of its links: moments about its origin and forces, world axes.
inline void write_rows(const ContactRows& contact, const Vec3d& arm, double sign, double (&J)[kTermRows][6]) {
  for (int k = 0; k < contact.nrow; ++k) {
    const Force<double> f = contact_wrench(contact, arm, sign, k);
    for (int j = 0; j < 3; ++j) J[k][j] = f.n[j], J[k][3 + j] = f.f[j];
  }
}

/// B += Aᵀ G C.
inline void add_product(int nrow, const double (&A)[kTermRows][6], const double (&GC)[kTermRows][6],
                        CoupledTrees::Block& B) {
  for (std::size_t r = 0; r < 6; ++r) {
    for (int k = 0; k < nrow; ++k) {
      for (std::size_t c = 0; c < 6; ++c) B[8 * r + c] += A[k][r] * GC[k][c];
    }
  }
}

inline void multiply(int nrow, const Tangent& G, const double (&J)[kTermRows][6], double (&GJ)[kTermRows][6]) {
  for (int r = 0; r < nrow; ++r) {
    for (std::size_t c = 0; c < 6; ++c) {
      double sum = 0;
      for (int k = 0; k < nrow; ++k) sum += G.at[r][k] * J[k][c];
      GJ[r][c] = sum;
    }
  }
}

inline void add_force(int nrow, const double (&J)[kTermRows][6], const double* force, double* to) {
  for (int k = 0; k < nrow; ++k) {
    for (int c = 0; c < 6; ++c) to[c] += J[k][c] * force[k];
  }
}

}  // namespace tarsus
