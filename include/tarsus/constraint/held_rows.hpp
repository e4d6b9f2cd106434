// Equality constraints that hold while contacts, limits and dry friction are solved for.
//
// v⁰ satisfies them, J_e v⁰ + Σ_e λ_e = b_e, whoever solved for that (constrained_dynamics.hpp); what the other rows do
// to it may not change that:
//
//     J_e (v - v⁰) + Σ_e Δλ_e = 0,    M̂ (v - v⁰) = Jᵀ λ + J_eᵀ Δλ_e
//
// so that one solve has drives, loops and contacts in it.
#pragma once

#include "tarsus/constraint/equality.hpp"

namespace tarsus {

template <class R>
struct HeldRows {
  const EqualitySet* equalities = nullptr;  ///< null: none
  In<R> qpos{};                             ///< [nq]
  In<R> compliance{};                       ///< Σ_e [rows]

  int rows() const { return equalities ? equalities->rows() : 0; }
  /// Their blocks with forces filled, to be the first of `to`. data must hold poses and origins; `phi` is scratch.
  void write(const BasicData<R>& data, DelassusRows<R>& to, AlignedVector<R>& phi) const {
    if (rows() == 0) return;
    phi.resize(rows());
    equalities->add_blocks(to);
    equalities->evaluate<R>(data, 0, qpos, {}, to, phi, {}, {});
  }
  /// Σ_e of a row, and a share of its own inverse mass (the diagonal of Λ⁻¹): keeps rows that depend on one another, or
  /// that nothing can move, from a pivot of zero, and is felt in the last digits only.
  double softness(int row, double diagonal, double largest) const {
    constexpr double kShare = sizeof(R) == 8 ? 1e-12 : 1e-6;
    return double(compliance[row]) + kShare * (diagonal > kShare * largest ? diagonal : largest);
  }
};

}  // namespace tarsus
