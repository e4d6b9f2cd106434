// Terms of one step. Each acts on the end velocity v by its rows, with a law.
//
//     M̂ (v - v⁰) = Σ J_iᵀ γ_i,    γ_i = P_i(y_i),    y_i = c_i + (b_i - J_i v) / R_i
//
// P_i projects onto the term's set of impulses. c is a proximal point. For laws without compliance (friction that
// sticks), c is the term's impulse in the last step, so that R causes no creep; otherwise c = 0.
//
// | law      | rows       | set                                                          | used by                    |
// | interval | 1          | [lower, upper]                                               | drives, limits, dry        |
// |          |            |                                                              | friction                   |
// | ball     | 3          | |γ| <= radius                                                | ball joints' drives        |
// | contact  | 1, 3, 4, 6 | γ_n >= 0, |γ_t| <= μ γ_n, torsion, rolling: lengths × γ_n    | contacts (Coulomb)         |
//
// The radius of Coulomb's disc depends on the normal impulse, so that G = -∂γ/∂(J v) of a sliding contact is not
// symmetric.
#pragma once

#include <cstdint>
#include <limits>

#include "tarsus/math/vec.hpp"

namespace tarsus {

enum class Law : std::uint8_t { interval, ball, contact };

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();
inline constexpr int kTermRows = 6;  ///< the most that one term has
/// Share of the inverse mass of a contact's sliding rows in the metric of Newton's steps. All other forces reduce their
/// effective inverse mass.
inline constexpr double kSlidingShare = 0.25;

struct Term {
  Law law = Law::interval;
  int first_row = 0, nrow = 1;
  double lower = 0, upper = kUnbounded;             ///< interval: bounds of the impulse; ball: `upper` is the radius
  double friction = 0, torsional = 0, rolling = 0;  ///< contact: μ, and lengths [m]
  bool operator==(const Term&) const = default;
};

/// Parameters of one row. Impulses in N s or N m s, velocities in m/s or rad/s.
struct TermRow {
  double compliance = 0;  ///< R > 0: velocity per impulse
  double target = 0;      ///< b
  double centre = 0;      ///< c: impulse
  double scale = 1;       ///< estimate of J M̂⁻¹ Jᵀ; converts impulses to velocities in residuals
  bool operator==(const TermRow&) const = default;
};

/// Where a contact's rows act: forces along the normal and the two tangents, then moments about these three.
struct ContactRows {
  int a = -1, b = -1;  ///< links, or free bodies; -1: the world, or no free body
  int nrow = 3;
  Vec3d arm_a{}, arm_b{};  ///< from the links' origins, or the bodies' centres, world axes [m]
  Vec3d axis[3] = {};      ///< n, t₁, t₂, world axes
};

/// G = -∂γ/∂(J v) of one term, [row][column].
struct Tangent {
  double at[kTermRows][kTermRows];
  bool open = false;  ///< a contact without force: all entries zero, the impulse too
};

}  // namespace tarsus
