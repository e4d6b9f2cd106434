// Data that RigidWorld keeps between stages.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "tarsus/base/union_find.hpp"
#include "tarsus/sim/rigid_world.hpp"

namespace tarsus {

/// Two surfaces combined, for steps of dt.
struct PairSurface {
  ContactMaterial material;
  ContactSurface surface;
  double dt = 0;
  double relative_compliance = 0;  ///< used if the surface has no solver parameters

  /// [s²] ε divided by the inverse mass.
  double relative(double distance) const {
    if (!surface.solver) return relative_compliance;
    const ContactSoftness soft = surface.softness(distance, dt);
    return soft.relative_compliance / soft.gap_share;
  }
};
PairSurface combine(const Surface& a, const Surface& b, const RigidWorldOptions& options);

/// The bodies and shapes of a contact.
struct ContactOwners {
  int shape_a, shape_b, body_a, body_b, surface_a, surface_b;
};

/// Statistics over contacts with distance < 0.
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

/// A sphere at its present position.
struct RoundShape {
  Vec3d centre{0, 0, 0};
  double radius = 0;
};
struct RoundOwner {
  int shape, body, surface;
};

/// Points in cells of a grid, for neighbour searches.
class RoundGrid {
 public:
  void clear(std::size_t n, double width);
  void insert(int i, const Vec3d& p);
  void remove(int i, const Vec3d& p);  ///< `p` must be the position at insertion
  /// Calls visit(i) once for each point in the 27 cells around p, and possibly for some others.
  template <class Visit>
  void around(const Vec3d& p, const Visit& visit) const {
    std::size_t seen[27];
    int count = 0;
    for (int k = 0; k < 27; ++k) {
      const std::size_t cell = place(index(p.x) + k % 3 - 1, index(p.y) + k / 3 % 3 - 1, index(p.z) + k / 9 - 1);
      if (std::find(seen, seen + count, cell) != seen + count) continue;  // two cells share one list
      seen[count++] = cell;
      for (int i = head_[cell]; i >= 0; i = next_[std::size_t(i)]) visit(i);
    }
  }

 private:
  std::int64_t index(double x) const { return std::int64_t(std::floor(std::clamp(x * inverse_width_, -1e15, 1e15))); }
  std::size_t place(std::int64_t x, std::int64_t y, std::int64_t z) const {
    const std::uint64_t h = (std::uint64_t(x) * 0x9e3779b97f4a7c15u) ^ (std::uint64_t(y) * 0xc2b2ae3d27d4eb4fu) ^
                            (std::uint64_t(z) * 0x165667b19e3779f9u);
    return std::size_t(h >> 20) & (head_.size() - 1);
  }

  double inverse_width_ = 1;
  std::vector<int> head_, next_;
};

/// Results of one thread.
struct alignas(64) DetectShare {
  std::vector<int> hits;  // candidates within the margin
  double farthest = 0;    // squared largest displacement since the candidates were found
  PenetrationSum depth;
};

/// Of an island of bodies: see RigidWorld::count_still().
struct IslandLoad {
  Vec3d force{0, 0, 0};    ///< weight and applied forces [N]
  Vec3d carried{0, 0, 0};  ///< impulse of the world's contacts [N s]
  bool turned = false;     ///< a torque is applied
};

template <class R>
struct RigidWorld<R>::Workspace {
  bool classified = false;
  std::vector<RoundShape> rounds;  // spheres about the centre of mass of their body
  std::vector<RoundOwner> owners;  // [round]
  std::vector<char> is_round;      // [shape]
  std::vector<double> widen;       // [boxed] its margin
  std::vector<int> planes, boxed;  // static planes; shapes in the broad phase
  bool need_broad = false, same_masks = true, turns = false;
  std::array<std::vector<double>, 4> columns;  // x, y, z, radius of all, for SpherePhase
  struct Candidate {
    int first, second;  // [round]; second < 0: plane number -1 - second
    int slot;           // of a group, -1: none
    int last;           // index of its contact in the last step, -1: none or unknown
  };
  std::vector<Candidate> candidates;
  std::vector<Vec3d> found;  // [round] position when its candidates were found
  double skin = 0, found_margin = 0;
  std::size_t loose = 0;    // candidates without a slot
  std::vector<int> movers;  // [.] spheres whose candidates are found again
  std::vector<char> moved;  // [round] whether it is among them
  std::vector<std::uint64_t> kept;
  RoundGrid grid;  // of stored positions
  bool grid_valid = false;
  bool candidates_valid = false, candidates_new = false, carry = false;
  std::size_t from_candidates = 0, last_from_candidates = 0;  // number of contacts from candidates, which come first
  std::vector<std::uint64_t> cell, cells;                     // [round] its cell; all of them, sorted: [group]
  std::vector<Candidate> sorted;
  std::vector<std::uint64_t> used;    // [body] colours
  std::vector<DetectShare> shares;    // [thread]
  std::vector<ShapePose> pose;        // [shape]
  std::vector<Aabb> boxes;            // [boxed]
  std::vector<int> groups, present;   // [boxed] broad-phase groups: all awake; sleepers in the world's group
  std::vector<PairSurface> surfaces;  // [surface][surface]
  SpherePhase spheres;
  BroadPhase broad;

  void resize_contacts(BodyContactSolver<R>& lanes, std::size_t n) {
    lanes.contacts.resize(n), lanes.impulses.resize(n), pairs.resize(n);
    if (turns) lanes.moments.resize(n);
  }
  /// Initialises a contact from its counterpart in the last step.
  void take_last(BodyContactSolver<R>& lanes, std::size_t contact, int last) {
    lanes.impulses[contact] = last_impulses[std::size_t(last)];
    if (turns) lanes.moments[contact] = last_moments[std::size_t(last)];
  }

  std::vector<ContactPair> pairs, last_pairs;
  std::vector<ContactImpulse<R>> last_impulses;
  std::vector<ContactMoment<R>> last_moments;  // empty if no surface has torsional or rolling friction
  std::vector<int> head, next;                 // the last step's contacts by hash

  AlignedVector<R> push;  // [body][8] change due to forces of a record of BodyContactSolver

  // Contacts of sleeping bodies are kept without detection, as long as their poses are not changed from outside.
  std::vector<char> still;              // [body] slept in the last step and has not been moved; empty if there is none
  std::vector<ShapePose> rest_pose;     // [body] of sleeping bodies, in the last step
  std::vector<BodyContact<R>> resting;  // the last step's contacts from last_active on
  std::size_t last_active = 0, kept_from = 0;
  std::array<double, 4> rules{};  // options that contacts were made with
  Vec3d gravity{0, 0, 0};         // of the last step

  UnionFind islands;  // of bodies
  std::vector<char> island_moves;
  std::vector<IslandLoad> island_loads;
};

}  // namespace tarsus
