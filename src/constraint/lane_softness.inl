// The law of solref and solimp, of contacts and joint ranges (surface.hpp), in SIMD lanes.
#pragma once

#include "constraint/lane_view.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// d, 1 - d and |g| dd/d|g| at a gap. 1 - d has its own formula: subtraction would cancel where d is near one.
template <class T>
struct LaneImpedance {
  T d, rest, slope;
  TARSUS_INLINE LaneImpedance(const LaneSolverLaw<Real<T>>& law, T gap) {
    const T one = T(Real<T>(1)), middle = T(law.midpoint), x = minimum(absolute(gap) * T(law.per_width), one);
    const Mask<T> near = x <= middle;
    const T side = select(near, x * T(1 / law.midpoint), (one - x) * T(1 / (1 - law.midpoint)));
    T less = side;  // side^(power - 1)
    if (law.power != 2) {
      for (int l = 0; l < kWidth<T>; ++l) less.set(l, law.raise(side[l], law.power - 1));
    }
    const T part = select(near, middle, one - middle) * less * side, up = select(near, part, one - part);
    const T down = select(near, one - part, part), range = T(law.range);
    d = mul_add(up, range, T(law.low)), rest = mul_add(down, range, T(law.rest));
    slope = select(x < one, x * less * (T(law.power) * range), T(Real<T>(0)));
  }
};

/// Parameters of a row at a gap: SolverRow if the steps resolve the law, else ContactSoftness.
template <class T>
struct LaneSolverRow {
  T share;                ///< of SolverRow; 0: a softness
  T pull;                 ///< of SolverRow [1/s]; of a softness: the damping time [s]
  T relative_compliance;  ///< of a row [1]; of a softness [s²]
  T gap_share;            ///< of ContactSoftness
  TARSUS_INLINE LaneSolverRow(const LaneSolverLaw<Real<T>>& law, T gap) {
    const LaneImpedance<T> at(law, gap);
    const T one = T(Real<T>(1)), inverse = one / at.d;
    share = T(law.share), relative_compliance = at.rest * inverse, gap_share = one;
    if (law.resolved) {
      pull = T(law.pull) * at.d;
      return;
    }
    const T steeper = mul_add(maximum(at.slope, T(Real<T>(0))), (one + at.rest) * inverse / at.rest, one);
    gap_share = select(gap < T(Real<T>(0)), one / steeper, one);
    const T time = T(law.pull) * inverse;
    pull = minimum(time, maximum(time * gap_share, T(law.least)));
    relative_compliance = relative_compliance * inverse * T(law.give) * gap_share;
  }
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
