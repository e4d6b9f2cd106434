// Contact parameters of two surfaces by MuJoCo's rules, for trees and free bodies.
//
//     dimension, friction    the larger of the two; if the priorities differ, those of the higher priority
//     margin                 the sum: forces begin at that distance
//     solref                 the mean, weighted by solmix; where one is (-stiffness, -damping), the smaller of each
//     solimp                 the mean, weighted by solmix
//
// An explicit <pair> has its own parameters or MJCF's defaults, never those of its geoms. If the mixed solref and
// solimp equal MJCF's defaults, the contact has the default softness (decision 504). Otherwise it obeys MuJoCo's law
// where the steps are short enough for it, and where they are not, a softness with the same depth at rest.
// [MuJoCo's documentation: Computation, solver parameters; Modeling, contact parameters]
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "tarsus/constraint/spook.hpp"
#include "tarsus/model/model.hpp"

namespace tarsus {

/// MJCF's solref and solimp with their defaults. The constraint's acceleration a obeys, with the acceleration a₀
/// without its force,
///
///     a + d (B v + K r) = (1 - d) a₀,   d = d(|r|)
struct SolverParameters {
  /// (time constant [s], damping ratio), or (-stiffness [1/s²], -damping [1/s])
  std::array<double, 2> reference{0.02, 1};
  /// d without penetration, d from the width on, width [m], midpoint (share of the width), power
  std::array<double, 5> impedance{0.9, 0.95, 0.001, 0.5, 2};
  bool operator==(const SolverParameters&) const = default;
};
/// Missing numbers are MJCF's defaults.
/// @throws ValueError for numbers that are not finite, too many numbers, or signs of solref that differ
SolverParameters solver_parameters(std::span<const double> solref, std::span<const double> solimp);
/// Parameters of a joint's range. @throws InputError as solver_parameters()
std::optional<SolverParameters> limit_parameters(const Model& model, int joint);

/// A row that obeys SolverParameters' law over a step, with spring and damper taken at the step's start, as in MuJoCo:
///
///     v⁺ + Σ λ = share v - pull g,   share = 1 - h B,   pull = h K d,   Σ = w (1 - d)/d
///
/// w is the inverse mass that the row feels. share = 0: no such row.
struct SolverRow {
  double share = 0, pull = 0;      ///< pull [1/s]
  double relative_compliance = 0;  ///< Σ/w
  double target(double speed, double gap) const { return share * speed - pull * gap; }
};
/// The row of SolverParameters where steps of h seconds resolve the time constant, which must be 4 h at least.
/// Otherwise none: MuJoCo's lower bound of 2 h would make the row softer than its author meant.
SolverRow solver_row(const SolverParameters& p, double gap, double h);
/// SolverParameters over steps of h, independent of the gap. With d(|r|) they give a row or a softness.
struct SolverLaw {
  bool resolved = false;              ///< the law is a row, solver_row(); else softness()
  std::array<double, 5> impedance{};  ///< clamped to MuJoCo's range
  double stiffness = 0, damping = 0;  ///< K [1/s²], B [1/s]
};
SolverLaw solver_law(const SolverParameters& p, double h);

/// Surface parameters of a shape.
struct Surface {
  double friction = 0.5;   ///< μ
  double torsional = 0;    ///< [m] moment about the normal <= this × λ_n
  double rolling = 0;      ///< [m] moment about the tangents <= this × λ_n
  double restitution = 0;  ///< e, the larger of the two surfaces
  int dimension = 6;       ///< MuJoCo's condim: 1 no friction, 3 sliding, 4 and torsional, 6 and rolling
  int priority = 0;
  double margin = 0;                       ///< [m]
  std::optional<SolverParameters> solver;  ///< of an MJCF geom; if empty, compliance and damping_time
  double compliance = 0;                   ///< ε [m/N], summed over the two surfaces; 0: the default softness
  double damping_time = 0;                 ///< τ [s], the longer of the two; 0: kDampingSteps steps
  double mix = 1;                          ///< solmix
  bool operator==(const Surface&) const = default;
};
/// @throws InputError for numbers that are not finite, or as solver_parameters()
Surface surface_of(const GeomSpec& geom);

/// ε = spook.compliance + relative_compliance × (the inverse mass that the contact feels). Solver parameters that steps
/// do not resolve have a force that grows as |g| d²/(1 - d). ε and τ are then those of its tangent at g, and gap_share
/// g gives the same force there. The tangent may be ten times stiffer than the secant force/g; with the secant's
/// softness, feet at rest rock from step to step.
struct ContactSoftness {
  Spook spook;
  double relative_compliance = 0;  ///< [s²]
  double gap_share = 1;
};

/// Parameters of two surfaces together.
struct ContactSurface {
  int dimension = 3;
  std::array<double, 5> friction{1, 1, 0, 0, 0};  ///< along t₁, t₂; torsional [m]; rolling about t₁, t₂ [m]
  double restitution = 0;
  double margin = 0;  ///< [m]
  Spook spook;        ///< used if `solver` is empty; ε = 0: the default softness
  std::optional<SolverParameters> solver;

  /// Whether friction depends on the direction.
  bool directional() const {
    return (dimension >= 3 && friction[0] != friction[1]) || (dimension == 6 && friction[3] != friction[4]);
  }
  /// Softness of a contact with the gap [m] in steps of h [s], if there is no solver_row(). At rest it yields as far as
  /// MuJoCo's contact: ε = (1 - d)/(d² K) of the inverse mass, τ = B/(K d). As in MuJoCo, a time constant is at least 2
  /// h.
  ContactSoftness softness(double gap, double h) const;
};
ContactSurface mix(const Surface& a, const Surface& b);
/// @throws InputError as surface_of()
ContactSurface contact_surface(const ContactPairSpec& pair);

/// Whether one shape's contype meets the other's conaffinity.
template <class Shape>
bool masks_meet(const Shape& a, const Shape& b) {
  return (a.contype & b.conaffinity) || (b.contype & a.conaffinity);
}

}  // namespace tarsus
