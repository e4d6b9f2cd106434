// Scenes of free rigid bodies: what tests, benchmarks and the command line share. A scene is a list of parts; a
// RigidWorld is made from it, and so can be a world of another engine.
#pragma once

#include <string>
#include <vector>

#include "tarsus/sim/rigid_world.hpp"

namespace tarsus {

struct RigidScene {
  std::string name;
  RigidWorldOptions options;
  std::vector<Surface> surfaces;
  std::vector<RigidBody> bodies;
  std::vector<std::string> names;  ///< [body], may be empty
  std::vector<BodyShape> shapes;
  std::vector<PointJoint> joints;
  std::vector<std::pair<int, int>> excludes;  ///< bodies, -1: the world

  /// Adds a body with one shape of unit-density inertia scaled to the mass. @return the body's number
  int add(const Shape& shape, double mass, const Vec3d& position, const Quatd& orientation = {1, 0, 0, 0},
          int surface = 0);
  /// Adds a shape of the world.
  void add_fixed(const Shape& shape, const ShapePose& pose, int surface = 0);
  /// The floor z = 0 and, if half_width > 0, four walls around the origin.
  void add_floor(double half_width = 0);
};

/// @throws ValueError for parts that a world does not take
template <class R>
RigidWorld<R> make_world(const RigidScene& scene);
extern template RigidWorld<float> make_world<float>(const RigidScene&);
extern template RigidWorld<double> make_world<double>(const RigidScene&);

/// side² × layers balls of the radius [m] on a jittered lattice above the floor of a box: they fall and settle.
RigidScene ball_drop(int side, int layers, double radius = 0.5, double mass = 1, unsigned seed = 1);
/// A square pyramid of balls, layer k of k × k balls: layers (layers + 1)(2 layers + 1)/6 in all; its lowest layer is
/// held together by walls.
RigidScene ball_pyramid(int layers, double radius = 0.5, double mass = 1);
/// n cubes of the edge [m] above one another.
RigidScene box_stack(int n, double edge = 1, double mass = 1);
/// A wall of cubes, `base` in the lowest row.
RigidScene box_pyramid(int base, double edge = 1, double mass = 1);
/// n dominoes, the first about to fall.
RigidScene domino_row(int n);
/// One cube on a slope [rad]; friction is the surface's.
RigidScene slope(double angle, double friction);
/// A house of cards, `storeys` high.
RigidScene card_house(int storeys);

}  // namespace tarsus
