// What RigidWorld keeps from stage to stage.
#pragma once

#include "tarsus/sim/rigid_world.hpp"

namespace tarsus {

/// The same whichever body comes first.
inline std::uint64_t body_pair_key(int a, int b) {
  const auto low = std::uint64_t(a < b ? a + 1 : b + 1), high = std::uint64_t(a < b ? b + 1 : a + 1);
  return high << 32 | low;
}

/// Two surfaces together.
struct PairSurface {
  ContactMaterial material;
  double torsional = 0, rolling = 0;
  double relative_compliance = 0;  // if not impedance
  bool impedance = false;          // MJCF: the compliance depends on the penetration
  double solimp[5] = {0.9, 0.95, 0.001, 0.5, 2};
  double stiffness = 0;  // K of MuJoCo's reference acceleration: -K d r

  double relative(double distance) const;
};
PairSurface combine(const Surface& a, const Surface& b, const RigidWorldOptions& options);

/// Whose contact it is.
struct ContactOwners {
  int shape_a, shape_b, body_a, body_b, surface_a, surface_b;
};

/// Over contacts with distance < 0.
struct PenetrationSum {
  int touching = 0;
  double sum = 0, max = 0;

  void add(double distance) {
    if (distance >= 0) return;
    ++touching;
    sum -= distance;
    max = -distance > max ? -distance : max;
  }
  void add(const PenetrationSum& other) {
    touching += other.touching, sum += other.sum;
    max = other.max > max ? other.max : max;
  }
};

/// What one thread finds.
struct alignas(64) DetectShare {
  std::vector<int> hits;  // candidates within the margin
  double farthest = 0;    // square of the largest move since the candidates were found
  PenetrationSum depth;
};

template <class R>
struct RigidWorld<R>::Workspace {
  bool classified = false;
  std::vector<int> round_shape;    // [round] shapes that are spheres about their body's centre of mass
  std::vector<char> is_round;      // [shape]
  std::vector<int> planes, boxed;  // static planes; shapes that go through the broad phase
  bool need_broad = false, same_masks = true, needs_rows = false;
  std::vector<int> round_body, round_surface;  // [round]
  std::vector<double> x, y, z, radius;         // [round]
  struct Candidate {
    int first, second;  // [round]; second < 0: plane number -1 - second
    int slot;           // of a group, -1: none
    int last;           // its contact in the last step, -1: none or not known
  };
  std::vector<Candidate> candidates;
  std::vector<double> found_x, found_y, found_z;  // [round] when the candidates were found
  double skin = 0, found_margin = 0;
  bool candidates_valid = false, candidates_new = false, carry = false;
  std::size_t from_candidates = 0, last_from_candidates = 0;  // contacts, the first ones
  std::vector<std::uint64_t> cell, cells;  // [round] the cell that it is in; all of them, sorted: [group]
  std::vector<Candidate> sorted;
  std::vector<std::uint64_t> used;    // [body] colours
  std::vector<DetectShare> shares;    // [thread]
  std::vector<ShapePose> pose;        // [shape]
  std::vector<Aabb> boxes;            // [boxed]
  std::vector<int> groups;            // [boxed]
  std::vector<PairSurface> surfaces;  // [surface][surface]
  SpherePhase spheres;
  BroadPhase broad;

  BodyContactSolver<R> lanes;
  std::vector<ContactPair> pairs, last_pairs;
  std::vector<ContactImpulse<R>> last_impulses;
  std::vector<int> head, next;  // the last step's contacts by hash

  std::vector<Vec3d> velocity, spin;  // [body] before a step by rows: given back if it fails
  AlignedVector<R> push;              // [body][8] what forces add to a record of BodyContactSolver

  std::vector<int> parent;  // [body] union-find of islands
  std::vector<char> island_moves;

  RowProblem rows;
  std::vector<double> u, multiplier, last_joint;
  std::unique_ptr<RowSolver> row_solver;
  std::string row_solver_name;
  bool solved_by_rows = false;
};

/// Rotation matrices of bodies are needed by several stages.
inline Mat3d rotation_of(const RigidBody& b) { return rotation(b.orientation); }

}  // namespace tarsus
