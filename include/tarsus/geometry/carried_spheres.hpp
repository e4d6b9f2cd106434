// Spheres that ride on moving bodies, and which of a list of pairs may meet within a step, in SIMD lanes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tarsus/geometry/body_pair.hpp"
#include "tarsus/math/vec.hpp"

namespace tarsus {

/// Columns of numbers, one of each sphere, and kSpare more at their ends for packs that go beyond.
struct SphereColumns {
  static constexpr std::size_t kSpare = 8;
  std::array<std::vector<double>, 3> own, centre, velocity;  ///< own: the centre in its carrier's frame [m]; [m/s]
  std::array<std::vector<double>, 3> normal;                 ///< of planes
  std::vector<double> radius;                                ///< [m], infinite: a plane through the centre
  std::vector<double> margin;                                ///< [m], not negative
  std::vector<double> turn;                                  ///< speed of the sphere's surface by rotation alone [m/s]
  std::vector<double> speed;                                 ///< the fastest that a point of it can be [m/s]
};

/// Spheres [first, last), neighbours in the list, on one carrier.
struct SphereGroup {
  std::uint32_t first, last;
  int carrier;                                 ///< -1: the world
  Mat3d rotation;                              ///< of the carrier
  Vec3d position{0, 0, 0}, velocity{0, 0, 0};  ///< of its origin [m], [m/s]
  Vec3d spin{0, 0, 0};                         ///< [rad/s]
};

/// Sphere `one` with each of [others, others + count): pairs from `pair` on.
struct SphereRun {
  std::uint32_t one, others, count, pair;
  bool apart = false;        ///< either may be stopped within the step where the other goes on
  std::uint32_t around = 0;  ///< the pair of spheres around their groups, counted from 1; 0: always looked at
};

class CarriedSpheres {
 public:
  /// @param carrier the body it rides on, -1: the world  @param centre in the carrier's frame
  void add(int carrier, const Vec3d& centre, double radius, double margin);
  /// After the last add(): the pairs that near() looks at. @param apart [pair] either may be stopped within the step
  /// where the other goes on; empty: of none
  void list(std::span<const BodyPair> pairs, std::span<const unsigned char> apart = {});

  /// Whose poses and velocities are to be set before each place(); those of the world stay.
  std::span<SphereGroup> groups() { return groups_; }
  void place();
  /// Of a plane, before near(): the unit vector out of it.
  void face(std::size_t i, const Vec3d& normal);
  /// Indices of the pairs that are no further apart than their surfaces can come within h seconds, their margins and
  /// `fall` [m] included. The answer stays valid until the next call.
  std::span<const std::uint32_t> near(double h, double fall);

  /// How near the spheres of i and j may be [m] that their surfaces can meet within h seconds; `still`: if they did not
  /// move. Where two meet is within the smaller sphere: its points move against the other's carrier by what its centre
  /// does, and by what the two turn.
  double reach(std::size_t i, std::size_t j, double h, double still) const;

  Vec3d centre(std::size_t i) const { return at(columns_.centre, i); }      ///< [m], in the world, as of place()
  Vec3d velocity(std::size_t i) const { return at(columns_.velocity, i); }  ///< [m/s]
  Vec3d spin(std::size_t i) const { return groups_[group_[i]].spin; }       ///< [rad/s]
  double turn(std::size_t i) const { return columns_.turn[i]; }             ///< SphereColumns::turn
  double speed(std::size_t i) const { return columns_.speed[i]; }           ///< SphereColumns::speed

 private:
  static Vec3d at(const std::array<std::vector<double>, 3>& column, std::size_t i) {
    return {column[0][i], column[1][i], column[2][i]};
  }

  /// Spheres around the spheres of each group: pairs of groups that are not near have no near pairs.
  struct Around {
    SphereColumns columns;
    std::vector<SphereGroup> groups;  ///< of one each
    std::vector<SphereRun> runs;      ///< none: all pairs are looked at
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
