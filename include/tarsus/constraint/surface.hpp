// Surfaces of shapes, and what two of them make of a contact: MuJoCo's rules, for trees and free bodies alike.
//
//     dimension, friction    the larger of the two; those of the one with the higher priority, if they differ
//     margin                 the sum: forces begin at that distance
//     solref                 the mean, weighted by solmix; where one is (-stiffness, -damping), the smaller of each
//     solimp                 the mean, weighted by solmix
//
// An explicit <pair> has its own numbers, or MJCF's defaults; never those of its geoms. Two surfaces whose solref and
// solimp come out as MJCF's defaults have said nothing: their contact has the default softness (decision 504). Others
// have MuJoCo's law where steps are short enough for it, else the depth at rest that it brings.
// [MuJoCo's documentation: Computation, solver parameters; Modeling, contact parameters]
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "tarsus/constraint/spook.hpp"
#include "tarsus/model/model.hpp"

namespace tarsus {

/// MJCF's solref and solimp with its defaults. The constraint's acceleration a, a₀ without its force, obeys
///
///     a + d (B v + K r) = (1 - d) a₀,   d = d(|r|)
struct SolverParameters {
  /// (time constant [s], damping ratio), or (-stiffness [1/s²], -damping [1/s])
  std::array<double, 2> reference{0.02, 1};
  /// d without penetration, d from the width on; width [m], midpoint (share of the width), power
  std::array<double, 5> impedance{0.9, 0.95, 0.001, 0.5, 2};
  bool operator==(const SolverParameters&) const = default;
};
/// Missing numbers are MJCF's. @throws ValueError for numbers not finite or too many, signs of solref that differ
SolverParameters solver_parameters(std::span<const double> solref, std::span<const double> solimp);
/// Those of a joint's range. @throws InputError as solver_parameters()
std::optional<SolverParameters> limit_parameters(const Model& model, int joint);

/// A row that obeys SolverParameters' law over a step, its spring and damper those of the step's start, as MuJoCo's:
///
///     v⁺ + Σ λ = share v - pull g,   share = 1 - h B,   pull = h K d,   Σ = w (1 - d)/d
///
/// for the inverse mass w that it feels. share = 0: none.
struct SolverRow {
  double share = 0, pull = 0;      ///< pull [1/s]
  double relative_compliance = 0;  ///< Σ/w
  double target(double speed, double gap) const { return share * speed - pull * gap; }
};
/// Where steps of h seconds resolve the time constant (it is 4 h at least). Elsewhere such a row would be softer than
/// its author meant, by what MuJoCo's bound of 2 h makes of it.
SolverRow solver_row(const SolverParameters& p, double gap, double h);
/// SolverParameters over steps of h, for all gaps: what gives a row, or a softness, once d(|r|) is known.
struct SolverLaw {
  bool resolved = false;              ///< it makes rows: solver_row(); else softness()
  std::array<double, 5> impedance{};  ///< in MuJoCo's range
  double stiffness = 0, damping = 0;  ///< K [1/s²], B [1/s]
};
SolverLaw solver_law(const SolverParameters& p, double h);

/// Surface of a shape.
struct Surface {
  double friction = 0.5;   ///< μ
  double torsional = 0;    ///< [m] moment about the normal <= this × λ_n
  double rolling = 0;      ///< [m] moment about the tangents <= this × λ_n
  double restitution = 0;  ///< e, the larger of two
  int dimension = 6;       ///< MuJoCo's condim: 1 no friction, 3 sliding, 4 and torsional, 6 and rolling
  int priority = 0;
  double margin = 0;                       ///< [m]
  std::optional<SolverParameters> solver;  ///< of an MJCF geom; else
  double compliance = 0;                   ///< ε [m/N], of two the sum; 0: the default softness
  double damping_time = 0;                 ///< τ [s], the longer of two; 0: kDampingSteps steps
  double mix = 1;                          ///< solmix
  bool operator==(const Surface&) const = default;
};
/// @throws InputError for numbers that are not finite, or as solver_parameters()
Surface surface_of(const GeomSpec& geom);

/// ε = spook.compliance + relative_compliance × (the inverse mass that the contact feels). Of solver parameters that
/// steps do not resolve, whose force grows as |g| d²/(1 - d), ε and τ are the tangent's at g: the same force, at
/// gap_share g. It may be ten times the force over g, by which what rests on such feet rocked from step to step.
struct ContactSoftness {
  Spook spook;
  double relative_compliance = 0;  ///< [s²]
  double gap_share = 1;
};

/// Two surfaces together.
struct ContactSurface {
  int dimension = 3;
  std::array<double, 5> friction{1, 1, 0, 0, 0};  ///< sliding along t₁, t₂; torsional [m]; rolling about t₁, t₂ [m]
  double restitution = 0;
  double margin = 0;  ///< [m]
  Spook spook;        ///< where solver is empty; ε = 0: the default softness
  std::optional<SolverParameters> solver;

  /// Whether friction depends on the direction.
  bool directional() const {
    return (dimension >= 3 && friction[0] != friction[1]) || (dimension == 6 && friction[3] != friction[4]);
  }
  /// Of a contact with the gap [m], steps of h [s], without solver_row(): at rest it gives way as far as MuJoCo's,
  /// ε = (1 - d)/(d² K) of the inverse mass; τ = B/(K d). As in MuJoCo a time constant is 2 h at least.
  ContactSoftness softness(double gap, double h) const;
};
ContactSurface mix(const Surface& a, const Surface& b);
/// @throws InputError as surface_of()
ContactSurface contact_surface(const ContactPairSpec& pair);

/// contype and conaffinity: whether one's type meets the other's affinity.
template <class Shape>
bool masks_meet(const Shape& a, const Shape& b) {
  return (a.contype & b.conaffinity) || (b.contype & a.conaffinity);
}

}  // namespace tarsus
