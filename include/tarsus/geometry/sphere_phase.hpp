// Combined broad and narrow phase for many spheres, in SIMD lanes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tarsus/geometry/body_pair.hpp"
#include "tarsus/math/vec.hpp"

namespace tarsus {

/// Contacts as a structure of arrays of equal length. The point midway between the surfaces is centre of `first` -
/// (radius of first + distance/2) · normal.
struct SphereContacts {
  std::vector<std::uint32_t> first, second;          ///< spheres; first < second
  std::vector<double> normal_x, normal_y, normal_z;  ///< unit, from `second` to `first`
  std::vector<double> distance;                      ///< [m], negative: penetration

  std::size_t size() const { return first.size(); }
};

/// Finder of contacts with scratch memory. Two threads must not use one at once.
class SpherePhase {
 public:
  SpherePhase();
  ~SpherePhase();
  SpherePhase(const SpherePhase&) : SpherePhase() {}  ///< copies get new memory
  SpherePhase(SpherePhase&&) noexcept;
  SpherePhase& operator=(SpherePhase&&) noexcept;

  /// Contacts between spheres whose distance is at most `margin` [m], each pair once, in an order that depends only on
  /// the spheres (neighbours in space tend to be adjacent). Valid until the next call. The cost is O(n + contacts) if
  /// the largest radius is within a small factor of the others. Spheres with the same centre get the normal z. Spheres
  /// with a coordinate that is not finite or with a negative radius have no contacts.
  /// @param x, y, z [n] coordinates of the centres [m]  @param radius [n] [m]
  /// @throws ShapeError if sizes differ
  const SphereContacts& find(std::span<const double> x, std::span<const double> y, std::span<const double> z,
                             std::span<const double> radius, double margin);
  /// The pairs of find() alone, first < second.
  std::span<const BodyPair> pairs(std::span<const double> x, std::span<const double> y, std::span<const double> z,
                                  std::span<const double> radius, double margin);

 private:
  struct Workspace;
  std::unique_ptr<Workspace> work_;
};

}  // namespace tarsus
