// How what spins answers to the forces of contacts, limits and loops.
//
// Velocity products are linearly implicit (velocity_products.hpp), but the forces of a step's terms are found with the
// symmetric M̂, from the velocity v⁰ that the products lead to. A link that spins is a gyroscope: it answers to these
// forces within the step. Without this answer coins that roll and tops on a floor fall over, and gyroscopes on loops
// sink (decision 417).
#pragma once

#include <cstdint>
#include <vector>

#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/math/vec.hpp"

namespace tarsus {

/// What spins: a link on a ball or free joint that carries no other, or a link on a hinge of a carrier, round about the
/// hinge's axis, that carries no other. Turning a round link changes no inertia.
inline constexpr std::uint8_t kLoneLink = 1, kRoundLink = 4;
inline constexpr double kLeastSpin = 3e-3;  ///< h|ω|, of a rotor h|ℓ| over its and its carrier's inertia, that matters
inline constexpr double kMostTurn = 0.5;    ///< angle in a step up to which the turn of its axis is resolved [rad]
inline constexpr double kMostChange = 0.5;  ///< of ω by the terms, as a share of it: what is struck does not respond
inline constexpr double kLeastRate = 1e-2;  ///< change of ω that matters, as a share of it in a second [1/s]
inline constexpr int kResponses = 4;        ///< solves of a step after the first, at most

inline namespace TARSUS_ISA {
/// Whether what turns at w by itself, with the angular momentum L, responds to a change d of w by the terms.
template <class T>
TARSUS_INLINE Mask<T> responds_alone(const Vec3<T>& w, const Vec3<T>& L, const Vec3<T>& d, Real<T> h) {
  const auto square = [](double x) { return T(Real<T>(x * x)); };
  const Vec3<T> turn = cross(w, L);
  const T w2 = dot(w, w), d2 = dot(d, d), turn2 = dot(turn, turn), L2 = dot(L, L);
  const Mask<T> spins = w2 > square(kLeastSpin / h), changes = d2 > square(0.2 * kLeastRate);
  const Mask<T> little = d2 <= w2 * square(kMostChange), steady = turn2 <= L2 * square(kMostTurn / h);
  return spins & changes & little & steady;
}
}  // namespace TARSUS_ISA

/// Whether a link's inertia is round about its hinge's axis, z.
bool is_round(const RigidInertia<double>& link);
/// [njoint] kLoneLink, kRoundLink or 0. Worlds with their own masses may have links that are not round
/// (WorldTable::round).
std::vector<std::uint8_t> spinning_links(const Model& model);

template <class R>
class SpinResponse {
 public:
  /// @param spins [njoint] spinning_links() that are to respond  @throws ShapeError
  SpinResponse(const Model& model, const BasicData<R>& data, std::vector<std::uint8_t> spins);

  void begin();  ///< starts a step: no change
  /// Corrects the change of v⁰. Arrays are [pack][nv][lane] unless said.
  /// @param known [pack][lane] 0 in worlds whose v⁰ is not known
  /// @param free v⁰, in which the change is; corrected  @param next v⁺, with the terms  @param inertia K
  /// @return whether some world has to be solved again. The others keep their change.
  bool correct(const Model& model, const BasicData<R>& data, double h, In<R> known, Out<R> free, In<R> next,
               In<R> inertia);
  const std::vector<std::uint8_t>& links() const { return spins_; }
  In<R> change() const { return some_ ? In<R>(change_) : In<R>(); }  ///< of v⁰ [pack][nv][lane]; empty: none

 private:
  std::vector<std::uint8_t> spins_;
  bool some_ = false;
  BasicData<R> elsewhere_;
  AlignedVector<std::byte> links_;
  AlignedVector<R> scratch_, change_;
};

extern template class SpinResponse<double>;
extern template class SpinResponse<float>;

}  // namespace tarsus
