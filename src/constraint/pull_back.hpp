// How much of the rows' errors a step pulls back.
//
// A step asks for J v = -r φ: a share of Newton's step towards φ(q) = 0. Loops that cannot close come to where |φ| is
// least, and there J loses its rank along φ: Newton's steps grow without bound and throw the links about. The multipliers
// of the pull, λ with (A + Σ) λ = φ, A = J M̂⁻¹ Jᵀ, tell how far it may be believed: turning the links, it turns J by
// about A_e |λ_e| / reach (A_e the largest inverse mass of a unit's rows). Where that is above one for some unit,
//
//     (A + Σ + μ diag A_e) λ = φ,   φ' = (A + Σ) λ
//
// with the least μ for which it is not, and the step pulls φ' back. What is well closed has no μ, and loops that cannot
// close come to rest where they are least open. [Levenberg-Marquardt, by the condition of Newton and Kantorovich; that
// the geometric stiffness of λ stays below what the links' inertia holds: Tournier et al. 2015]
#pragma once

#include <vector>

#include "tarsus/constraint/equality.hpp"

namespace tarsus {

template <class R>
class PullBack {
 public:
  /// Keeps a reference to the set. rows: as all those given later
  PullBack(const EqualitySet& equalities, const DelassusRows<R>& rows);

  /// Whether that lane's errors are nothing but rounding: there is nothing to limit.
  bool closed(const R* phi, std::size_t lane) const;
  /// phi [rows][lane] becomes φ'.
  /// @param rows swept @param sigma [rows][lane] Σ @return it changed in some lane
  bool limit(DelassusRows<R>& rows, const R* sigma, R* phi);
  bool limited(std::size_t lane) const { return limited_[lane]; }  ///< by the last limit()

 private:
  struct Unit {  ///< of the largest A_e |λ_e| / reach
    double strain = 0;
    const RowUnit* at = nullptr;
  };
  void weigh();
  void solve(const R* sigma, const R* phi);
  void differentiate();
  Unit strained(std::size_t lane) const;
  double slope(std::size_t lane, const Unit& unit) const;

  const EqualitySet& equalities_;
  std::size_t width_, rows_, ld_;
  AlignedVector<R> A_, inverse_, scale_, sigma_, right_;
  AlignedVector<R> mass_, lambda_, change_;  // [rows][lane] A_e, λ and (A + Σ + μ A_e)⁻¹ A_e λ
  AlignedVector<R> lane_;                    // scratch [lane]
  std::vector<double> mu_;
  std::vector<char> limited_, settled_;
};

extern template class PullBack<double>;
extern template class PullBack<float>;

}  // namespace tarsus
