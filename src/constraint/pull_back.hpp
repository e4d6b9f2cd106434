// How much of the rows' errors a step pulls back.
//
// A step asks for J v = -r φ: a share of Newton's step d = -M̂⁻¹ Jᵀ λ with (A + Σ) λ = φ, A = J M̂⁻¹ Jᵀ. Loops that
// cannot close come to where |φ| is least, and there J loses its rank along φ: Newton's steps grow without bound and
// throw the links about. How far one may be believed is told by the geometric stiffness of λ, about |λ| / lever, over
// the inertia that it meets: the strain of a unit of rows, D |λ| / reach, with D their largest inverse mass. Where d
// turns a link by more than half a turn although some unit's strain is above one,
//
//     (A + Σ + μ D) λ = φ,   φ' = (A + Σ) λ
//
// with about the least μ for which no strain is, and φ' is pulled back in the place of φ. Loops that cannot close come
// to rest where they are least open; those that are nearly closed have no μ. Light rods between heavy bodies are
// strained by little errors: no μ is to keep them from being closed at all, at a slow turn.
// [Levenberg-Marquardt; geometric stiffness in a step: Tournier et al. 2015]
#pragma once

#include <vector>

#include "tarsus/constraint/equality.hpp"

namespace tarsus {

enum class Pulled {
  all,
  what_moves,  ///< all but errors that nothing can move
  part,
};

template <class R>
class PullBack {
 public:
  /// Keeps references to model and set. rows: as all those given later
  PullBack(const Model& model, const EqualitySet& equalities, const DelassusRows<R>& rows);

  /// Whether that lane's errors are so small that there is nothing to limit.
  bool closed(const R* phi, std::size_t lane) const;
  /// phi [rows][lane] becomes φ'.
  /// @param data holds the factors of M̂ @param rows swept @param sigma [rows][lane] Σ @return the least of all lanes
  Pulled limit(BasicData<R>& data, int pack, DelassusRows<R>& rows, const R* sigma, R* phi);

 private:
  void weigh();
  void solve(const R* sigma, const R* phi);
  void move(BasicData<R>& data, int pack, DelassusRows<R>& rows);
  double strain(std::size_t lane) const;
  double turn(std::size_t lane);
  double stiffer(std::size_t lane, double strain, const R* phi) const;

  const Model& model_;
  const EqualitySet& equalities_;
  std::size_t width_, rows_, ld_;
  AlignedVector<R> A_, inverse_, scale_, sigma_;
  AlignedVector<R> mass_, lambda_;  // [rows][lane] D, λ
  AlignedVector<R> u_, way_;        // [nv][lane] scratch, d
  AlignedVector<R> lane_;           // scratch [lane]
  std::vector<double> levers_;      // [nv] of d, that counts as a radian
  std::vector<double> turned_;      // [joint] scratch
  std::vector<double> mu_;
  std::vector<char> settled_;
};

extern template class PullBack<double>;
extern template class PullBack<float>;

}  // namespace tarsus
