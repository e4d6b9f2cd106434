// What the kernels of lane_terms.hpp see of a model's contact shapes, joint limits and drives: plain numbers, the same
// for all worlds, in the kernels' precision.
#pragma once

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
  R centre[3], radius;         ///< of the sphere around it, in the link's frame; infinite for a plane
  R box_centre[3], box[3];     ///< of a box around it, in its own frame: centre and half sizes
};

/// SolverParameters' law over a step (surface.hpp): numbers that gaps do not change. The impedance d goes from `low` by
/// `range` to 1 - `rest`.
template <class R>
struct LaneSolverLaw {
  bool resolved;  ///< rows are SolverRow's; else softness() says
  R low, range, rest, per_width, midpoint, power;
  R share;                   ///< 1 - h B; 0 where not resolved
  R pull;                    ///< h K; else B/K [s]
  R give;                    ///< 1/K [s²]
  R least;                   ///< kTangentDamping h [s]
  R (*raise)(R x, R power);  ///< for powers that are not 2
};

/// Two shapes that may touch. `a` is the one that a contact's normal points to: it is on the higher link.
template <class R>
struct LanePair {
  int a, b;  ///< shapes
  int condim;
  R friction, torsional, rolling;  ///< the last two [m]
  R margin, compliance, damping_time;
  int law;     ///< of LaneModel::law; -1: none of its own
  bool falls;  ///< apart: ContactGeometry::fall_apart()
};

/// A row along a generalised direction: wrenches on up to two links, and entries at DoFs.
struct LanePath {
  int a, b;             ///< links, -1: none
  int first_dof, ndof;  ///< of LaneModel::path_dof
  int first;            ///< of the pack's numbers: the PathNumbers, wrenches on a and on b, an entry for each DoF
  int unit;             ///< the first path of an equality constraint's rows of one unit; -1: ForceRow's
};
enum PathNumbers {
  kPathTarget,      ///< J v⁺ of what is held, or is `rigid` [m/s | rad/s]
  kPathCompliance,  ///< of an impulse, of what is held
  // The others are ForceRow's.
  kPathLive,  ///< 1 where the world has it
  kPathRigid,
  kPathForce,
  kPathSlope,
  kPathLow,
  kPathHigh,
  kPathNumbers
};

/// Neighbours among the pairs, of two links, or of a link and one shape in the world.
template <class R>
struct LanePairGroup {
  int first, end;
  int a, b;  ///< shapes, or spheres around a link's, that are near where one of the pairs is; a -1: nobody asks
  R margin;  ///< the largest of theirs
  bool falls;
};

/// Calls the scalar narrow phase for one lane. @return number of points, written to `out`
using LaneCollide = int (*)(void* geometry, int pair, const double* pose_a, const double* pose_b, double margin,
                            ContactPoint* out);

template <class R>
struct LaneModel {
  int nlink, nv, nplaced, ngroup, nlimit, nloss;
  int most_contacts, most_crossings;  ///< slots for contacts with the world; for those between links
  int most_spins;                     ///< for torsional and rolling friction: of all contacts, or none
  const LaneShape<R>* shape;          ///< [nplaced] after those of the model spheres around links' shapes
  const LanePair<R>* pair;
  const LanePairGroup<R>* group;
  const R* mass;         ///< [nlink][kReferenceNumbers] ReferenceMass
  const int* limit;      ///< [nlimit] joints with a range
  const R* range;        ///< [nlimit][4] low, high, and HalfTurn of high
  const int* limit_law;  ///< [nlimit] of law; -1: none of its own
  const LaneSolverLaw<R>* law;
  const int* loss_dof;    ///< [nloss] DoFs with dry friction, not of a free joint
  const int* loss_joint;  ///< [nloss]
  const R* loss;          ///< [nloss] [N | N m]
  int npath, nalone;      ///< rows along generalised directions; the first nalone on one hinge or slide each
  int path_numbers;       ///< of all of them
  int path_dofs;          ///< entries at DoFs, of all of them
  const LanePath* path;   ///< [npath]
  const int* path_dof;    ///< [path_dofs]
  const int* dof_link;    ///< [nv]
  const Vec3d* parting;   ///< [pair] for collide, of the world that was last: in the frame of its first shape
  void* geometry;         ///< for collide
  LaneCollide collide;
};

/// Numbers of one step that all worlds share.
template <class R>
struct LaneStep {
  R h;
  R gravity;  ///< length [m/s²]
  R limit_compliance, limit_damping_time;
  R relative_compliance, restitution, restitution_threshold;
  R tolerance;
  int most_iterations;  ///< on the problem's own rows, from where the last step ended
  int all_iterations;   ///< in all
  int nlimited;         ///< joints whose drive has a force limit
  const int* limited;   ///< [nlimited] joints
  const R* force_low;   ///< [nlimited]; of a ball not used
  const R* force_high;  ///< [nlimited]
  const R* drive_kp;    ///< [nv] of the limited drives, zero elsewhere
  const R* drive_kd;    ///< [nv]
  bool plain, contacts;
};

/// Sizes of the kernels' memory, in bytes.
struct LaneSizes {
  std::size_t scratch;   ///< for all packs of a call
  std::size_t pack;      ///< for each of them
  std::size_t together;  ///< and, where they are several, for the one in which their last lanes go on
  std::size_t memory;    ///< what a pack's step leaves to the next
};

/// Of a contact for sensors: pair and one, 0 where the lane has none; point, normal from b to a, distance beyond the
/// margin; force and torque on a.
inline constexpr int kTouchNumbers = 14;

/// What a step reports of each world, arrays of [lane].
template <class R>
struct LaneTermReport {
  R *iterations, *residual, *penetration, *contacts, *touching, *limits, *saturated;
  R* missed;    ///< 0: converged; 1: the best of too many iterations; 2: not finite, no term acted
  R* ground;    ///< [nlink][3][lane] force of the contacts with the world on each link, world axes [N]
  R* touch;     ///< [contacts][kTouchNumbers][lane] world axes [m, N, N m]; null: not wanted, nor
  int* ntouch;  ///< how many contacts
  R* limit;     ///< [nlimit][lane] forces of ranges [N | N m]; null: not wanted
  R* path;      ///< [npath][lane] impulses of rows along generalised directions
};

/// One pack in a step.
template <class R>
struct LanePack {
  ModelView<R> view;
  void* state;  ///< LinkState[nlink] as pass 1 of ABA leaves it; lost
  const R *qpos, *qvel;
  const R *Q, *K;  ///< [nv][lane] of MABA
  const R* given;  ///< [lane] 1 where `velocity` is v⁰, 0 where it is qvel and v⁰ is to be found
  const R* path;   ///< [path_numbers][lane]
  const R* push;   ///< [nv][lane] force of the limited drives were q̈ zero; null without any
  R* velocity;     ///< [nv][lane] in: see `given`; out: v⁺
  R* drive_force;  ///< [nv][lane] out: force of the limited drives, 0 elsewhere
  std::byte* memory;
  LaneTermReport<R> report;
  // Worlds' own beside ModelView's; null: none.
  const R* own_mass;                           ///< [nlink][kReferenceNumbers][lane] in the place of LaneModel::mass
  const R* own_friction;                       ///< [npair][lane] in the place of the pairs'
  const R *kp_scale, *kd_scale, *force_scale;  ///< [nv][lane] factors on the drives' numbers
};

}  // namespace tarsus
