// Data of a model for the kernels of lane_terms.hpp: contact shapes, joint limits and drives as plain numbers in the
// kernels' precision, the same for all worlds.
#pragma once

#include <cstdint>

#include "tarsus/constraint/reference_mass.hpp"
#include "tarsus/geometry/narrow_phase.hpp"
#include "tarsus/model/view.hpp"

namespace tarsus {

/// A contact shape on a link, or fixed in the world.
template <class R>
struct LaneShape {
  int link;  ///< -1: the world
  ShapeType type;
  R size[3];
  R position[3], rotation[9];  ///< in the link's frame, row major
  R centre[3], radius;         ///< of the bounding sphere, in the link's frame; infinite for a plane
  R box_centre[3], box[3];     ///< of a bounding box, in the shape's frame: centre and half sizes
};

/// SolverParameters' law over a step (surface.hpp): the numbers that do not depend on the gap. The impedance d rises
/// from `low` by `range` to 1 - `rest`.
template <class R>
struct LaneSolverLaw {
  bool resolved;  ///< rows are SolverRow's; else ContactSoftness
  R low, range, rest, per_width, midpoint, power;
  R share;                   ///< 1 - h B; 0 if not resolved
  R pull;                    ///< h K; if not resolved B/K [s]
  R give;                    ///< 1/K [s²]
  R least;                   ///< kTangentDamping h [s]
  R (*raise)(R x, R power);  ///< for powers other than 2
};

/// Two shapes that may touch. A contact's normal points to `a`, which is on the higher link.
template <class R>
struct LanePair {
  int a, b;  ///< shapes
  int condim;
  R friction, torsional, rolling;  ///< the last two [m]
  R margin, compliance, damping_time;
  int law;     ///< index in LaneModel::law; -1: none
  bool falls;  ///< ContactGeometry::fall_apart()
};

/// A row along a generalised direction: wrenches on up to two links, and entries at DoFs.
struct LanePath {
  int a, b;             ///< links; -1: none
  int first_dof, ndof;  ///< range in LaneModel::path_dof
  int first;            ///< offset in the pack's numbers: the PathNumbers, wrenches on a and b, an entry for each DoF
  int unit;             ///< the first path of an equality constraint's rows of the same unit; -1: a ForceRow
};
enum PathNumbers {
  kPathTarget,      ///< J v⁺ of a bilateral or `rigid` row [m/s | rad/s]
  kPathCompliance,  ///< of a bilateral row, the least of a `rigid` one: velocity per impulse
  // The others belong to ForceRow.
  kPathLive,  ///< 1 if the world has the row
  kPathRigid,
  kPathForce,
  kPathSlope,
  kPathLow,
  kPathHigh,
  kPathNumbers
};

/// Consecutive pairs between the same two links, or between a link and one shape of the world.
template <class R>
struct LanePairGroup {
  int first, end;
  int a, b;  ///< shapes, or bounding spheres of links, that are near if one of the pairs is; a = -1: no test
  R margin;  ///< the largest of the pairs'
  bool falls;
};

/// A shape in one lane: position, rotation by rows, velocity of the position, spin.
struct LaneMover {
  double position[3], rotation[9], velocity[3], spin[3];
};
/// Calls collide() and meet() for one lane. @return number of points, written to `out`
using LaneCollide = int (*)(void* geometry, int pair, const LaneMover& a, const LaneMover& b, double reach, double h,
                            ContactPoint* out);

template <class R>
struct LaneModel {
  int nlink, nv, nplaced, ngroup, nlimit, nloss;
  int most_contacts, most_crossings;  ///< slots for contacts with the world; for contacts between links
  int most_spins;                     ///< slots for torsional and rolling friction: for all contacts, or none
  const LaneShape<R>* shape;          ///< [nplaced] the model's shapes, then bounding spheres of links
  const LanePair<R>* pair;
  const LanePairGroup<R>* group;
  const R* mass;         ///< [nlink][kReferenceNumbers] ReferenceMass
  const int* limit;      ///< [nlimit] joints with a range
  const R* range;        ///< [nlimit][4] low, high, and HalfTurn of high
  const int* limit_law;  ///< [nlimit] index in `law`; -1: none
  const LaneSolverLaw<R>* law;
  const int* loss_dof;        ///< [nloss] DoFs with dry friction, not of a free joint
  const int* loss_joint;      ///< [nloss]
  const R* loss;              ///< [nloss] [N | N m]
  int npath, nalone;          ///< rows along generalised directions; the first nalone act on one hinge or slide each
  int path_numbers;           ///< of all paths
  int path_dofs;              ///< entries at DoFs of all paths
  const LanePath* path;       ///< [npath]
  const int* path_dof;        ///< [path_dofs]
  const int* dof_link;        ///< [nv]
  const std::uint8_t* spins;  ///< [nlink] spinning_links() that respond; null: none
  const Vec3d*
      parting;     ///< [pair] for collide: separating direction of the last world, in the frame of the first shape
  void* geometry;  ///< for collide
  LaneCollide collide;
};

/// Parameters of one step that all worlds share.
template <class R>
struct LaneStep {
  R h;
  R gravity;  ///< length [m/s²]
  R limit_compliance, limit_damping_time;
  R relative_compliance, restitution, restitution_threshold;
  R tolerance;
  int most_iterations;  ///< on the problem's own rows, from the warm start
  int all_iterations;   ///< in total
  int nlimited;         ///< joints whose drive has a force limit
  const int* limited;   ///< [nlimited] joints
  const R* force_low;   ///< [nlimited]; not used for a ball
  const R* force_high;  ///< [nlimited]
  const R* drive_kp;    ///< [nv] of the limited drives, zero elsewhere
  const R* drive_kd;    ///< [nv]
  bool plain, contacts;
  bool responds;  ///< what spins responds to the terms
};

/// Sizes of the kernels' memory, in bytes.
struct LaneSizes {
  std::size_t scratch;   ///< for all packs of a call together
  std::size_t pack;      ///< for each of them
  std::size_t together;  ///< besides, if there are several: for the pack that gathers their last lanes
  std::size_t memory;    ///< warm-start cache of a pack
};

/// Numbers of a contact for sensors: pair + 1 (0 if the lane has none), point, normal from b to a, distance beyond the
/// margin, force and torque on a.
inline constexpr int kTouchNumbers = 14;

/// What a step reports of each world, arrays of [lane].
template <class R>
struct LaneTermReport {
  R *iterations, *residual, *penetration, *contacts, *touching, *between, *limits, *saturated;
  R* missed;    ///< 0: converged; 1: the best of too many iterations; 2: crowded, 3: not finite, no term acted
  R* unmet;     ///< the largest |J v⁺ + Σ λ - target| of bilateral rows [m/s | rad/s]
  R* ground;    ///< [nlink][3][lane] force of the contacts with the world on each link, world axes [N]
  R* touch;     ///< [contacts][kTouchNumbers][lane] world axes [m, N, N m]; null: not requested, nor
  int* ntouch;  ///< the number of contacts
  R* limit;     ///< [nlimit][lane] forces of ranges [N | N m]; null: not requested
  R* path;      ///< [npath][lane] impulses of rows along generalised directions
};

/// One pack in a step.
template <class R>
struct LanePack {
  ModelView<R> view;
  void* state;  ///< LinkState[nlink] as pass 1 of ABA leaves it; overwritten
  const R *qpos, *qvel;
  const R *Q, *K;  ///< [nv][lane] as for maba()
  const R* given;  ///< [lane] 1 where `velocity` is v⁰, 0 where it is qvel and v⁰ is not known
  const R* path;   ///< [path_numbers][lane]
  const R* push;   ///< [nv][lane] force of the limited drives at q̈ = 0; null without any
  R* velocity;     ///< [nv][lane] in: see `given`; out: v⁺
  R* drive_force;  ///< [nv][lane] out: force of the limited drives, 0 elsewhere
  std::byte* memory;
  LaneTermReport<R> report;
  // Worlds' own parameters beside ModelView's; null: none.
  const R* own_mass;                           ///< [nlink][kReferenceNumbers][lane] instead of LaneModel::mass
  const R* own_friction;                       ///< [npair][lane] instead of the pairs'
  const R* own_loss;                           ///< [nlink][lane] dry friction instead of LaneModel::loss
  const R *kp_scale, *kd_scale, *force_scale;  ///< [nv][lane] factors of the drives' parameters
};

}  // namespace tarsus
