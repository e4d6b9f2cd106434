// Finds, in SIMD lanes, which pairs of a list of spheres on moving bodies may meet within a step.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tarsus/geometry/body_pair.hpp"
#include "tarsus/math/vec.hpp"

namespace tarsus {

/// Arrays with one number per sphere and kSpare more at the end, so that packs may read beyond the last sphere.
struct SphereColumns {
  static constexpr std::size_t kSpare = 8;
  std::array<std::vector<double>, 3> own, centre, velocity;  ///< own: centre in the carrier's frame [m]; velocity [m/s]
  std::array<std::vector<double>, 3> normal;                 ///< of planes
  std::vector<double> radius;                                ///< [m], infinite: a plane through the centre
  std::vector<double> margin;                                ///< [m], not negative
  std::vector<double> turn;                                  ///< surface speed due to rotation alone [m/s]
  std::vector<double> speed;                                 ///< bound on the speed of any of its points [m/s]
};

/// Consecutive spheres [first, last) on one carrier.
struct SphereGroup {
  std::uint32_t first, last;
  int carrier;                                 ///< -1: the world
  Mat3d rotation;                              ///< of the carrier
  Vec3d position{0, 0, 0}, velocity{0, 0, 0};  ///< of its origin [m], [m/s]
  Vec3d spin{0, 0, 0};                         ///< [rad/s]
};

/// Pairs of sphere `one` with each of [others, others + count), numbered from `pair`.
struct SphereRun {
  std::uint32_t one, others, count, pair;
  bool apart = false;        ///< one may be stopped within the step while the other moves on
  std::uint32_t around = 0;  ///< index from 1 of the pair of groups' bounding spheres; 0: always tested
};

/// One of CarriedSpheres, as of place().
struct MovingSphere {
  Vec3d centre{0, 0, 0}, velocity{0, 0, 0}, spin{0, 0, 0};  ///< [m], [m/s], [rad/s]
  double radius = 0, turn = 0, speed = 0;                   ///< as in SphereColumns
  /// Velocity of a point of its carrier.
  Vec3d velocity_at(const Vec3d& point) const { return velocity + cross(spin, point - centre); }
};
/// Largest distance [m] of two spheres at which their surfaces can meet within h seconds; `still` is that distance
/// without motion. The contact point lies in the smaller sphere. Relative to the other's carrier, its speed is bounded
/// by the speed of the smaller sphere's centre and the rotations of both.
double reach(const MovingSphere& a, const MovingSphere& b, double h, double still);

class CarriedSpheres {
 public:
  /// Adds a sphere; its index is the number of earlier calls.
  /// @param carrier body that carries the sphere, -1: the world  @param centre in the carrier's frame [m]
  /// @param radius [m], infinite: a plane through the centre  @param margin [m]
  void add(int carrier, const Vec3d& centre, double radius, double margin);
  /// Sets the pairs that near() tests. Call after the last add().
  /// @param apart [pair] one sphere may be stopped within the step while the other moves on; empty: none
  void list(std::span<const BodyPair> pairs, std::span<const unsigned char> apart = {});

  /// The groups. Set their poses and velocities before each place(); those on the world are constant.
  std::span<SphereGroup> groups() { return groups_; }
  /// Computes centres and velocities of the spheres in the world from the groups.
  void place();
  /// Sets the outward unit normal of a plane, before near().
  void face(std::size_t i, const Vec3d& normal);
  /// Indices of the pairs whose surfaces may come into contact within h seconds, given their margins and `fall` [m].
  /// Valid until the next call.
  std::span<const std::uint32_t> near(double h, double fall);

  MovingSphere moving(std::size_t i) const {
    return {centre(i), velocity(i), spin(i), columns_.radius[i], turn(i), speed(i)};
  }
  Vec3d centre(std::size_t i) const { return at(columns_.centre, i); }      ///< [m], in the world, as of place()
  Vec3d velocity(std::size_t i) const { return at(columns_.velocity, i); }  ///< [m/s]
  Vec3d spin(std::size_t i) const { return groups_[group_[i]].spin; }       ///< [rad/s]
  double turn(std::size_t i) const { return columns_.turn[i]; }             ///< SphereColumns::turn
  double speed(std::size_t i) const { return columns_.speed[i]; }           ///< SphereColumns::speed

 private:
  static Vec3d at(const std::array<std::vector<double>, 3>& column, std::size_t i) {
    return {column[0][i], column[1][i], column[2][i]};
  }

  /// Bounding spheres of the groups. Groups whose bounding spheres are not near have no near pairs.
  struct Around {
    SphereColumns columns;
    std::vector<SphereGroup> groups;  ///< with one sphere each
    std::vector<SphereRun> runs;      ///< empty: all pairs are tested
    std::vector<std::uint32_t> near;
    std::vector<unsigned char> on{1};  ///< [SphereRun::around]
  };
  void put_around();

  SphereColumns columns_;
  std::vector<SphereGroup> groups_;
  std::vector<std::uint32_t> group_;  ///< [sphere]
  std::vector<SphereRun> runs_;
  std::vector<std::uint32_t> near_;
  Around around_;
};

}  // namespace tarsus
