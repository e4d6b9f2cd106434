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
};

/// Which of the held rows follow from earlier ones, or cannot be moved by anything: v⁰ has met their demands already,
/// and they are to be left out. To be asked of the tree as it is: in one that stiff loads hold, rounding looks like
/// rank.
/// @param a [rows][ld] Λ⁻¹ of the held rows, the upper triangle; used up  @return [rows]
template <class R>
std::vector<char> dependent_rows(const HeldRows<R>& held, std::span<double> a, int ld);

/// Eliminates the held rows, the first of a x = b: a [n][ld] = Λ⁻¹ of all rows, whatever has become of those below; Σ_e
/// is added here. What is left is the Schur complement, for the others; in the held rows U and b for held_back().
/// @param left_out as of dependent_rows()  @param b [n], or empty: zero
template <class R>
void eliminate_held(const HeldRows<R>& held, std::span<const char> left_out, std::span<double> a, int n, int ld,
                    std::span<double> b);

/// The held rows' x [0, held) from the others' x [held, n).
void held_back(int held, std::span<const double> a, int n, int ld, std::span<const double> b, std::span<double> x);

}  // namespace tarsus
