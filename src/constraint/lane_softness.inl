// Own solref and solimp of contacts and joint ranges (surface.hpp), a lane a world.
#pragma once

#include "constraint/lane_view.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// d and 1 - d at a gap. 1 - d is small where d is near one: it is not made by subtraction.
template <class T>
struct LaneImpedance {
  T d, rest;
  TARSUS_INLINE LaneImpedance(const LaneSolverLaw<Real<T>>& law, T gap) {
    const T one = T(Real<T>(1)), middle = T(law.midpoint), x = minimum(absolute(gap) * T(law.per_width), one);
    const Mask<T> near = x <= middle;
    const T side = select(near, x * T(1 / law.midpoint), (one - x) * T(1 / (1 - law.midpoint)));
    T power = side * side;
    if (law.power != 2) {
      for (int l = 0; l < kWidth<T>; ++l) power.set(l, law.raise(side[l], law.power));
    }
    const T part = select(near, middle, one - middle) * power, up = select(near, part, one - part);
    const T down = select(near, one - part, part), range = T(law.range);
    d = mul_add(up, range, T(law.low)), rest = mul_add(down, range, T(law.rest));
  }
};

/// A row at a gap: SolverRow where the steps resolve the law, else ContactSoftness.
template <class T>
struct LaneSolverRow {
  T share;                ///< SolverRow's; 0: a softness
  T pull;                 ///< SolverRow's [1/s]; of a softness its damping time [s]
  T relative_compliance;  ///< of the row [1]; of a softness [s²]
  TARSUS_INLINE LaneSolverRow(const LaneSolverLaw<Real<T>>& law, T gap) {
    const LaneImpedance<T> at(law, gap);
    const T inverse = T(Real<T>(1)) / at.d;
    share = T(law.share), pull = T(law.pull) * (law.resolved ? at.d : inverse);
    relative_compliance = at.rest * inverse;
    if (!law.resolved) relative_compliance = relative_compliance * inverse * T(law.give);
  }
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
