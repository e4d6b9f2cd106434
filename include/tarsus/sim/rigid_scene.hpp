// Scenes of free rigid bodies: what tests, benchmarks and the command line share. A scene is a list of parts; a
// RigidWorld is made from it, and so can be a world of another engine.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tarsus/sim/rigid_world.hpp"

namespace tarsus {

/// Mass properties in any frame as a body in its own: moments, and where the body's frame lies in the given one.
struct PrincipalBody {
  RigidBody body;   ///< at the origin
  ShapePose frame;  ///< centre of mass, and principal axes as columns; the given axes where the inertia is diagonal
};
/// @param mass > 0 [kg]   @param inertia about `com` [kg m²]
PrincipalBody principal_body(double mass, const Vec3d& com, const Sym3d& inertia);
/// Of a homogeneous solid, hulls included. @throws ValueError for planes and height fields, and sizes without a volume
PrincipalBody principal_body(double mass, const Shape& shape);

struct RigidScene {
  std::string name;
  RigidWorldOptions options;
  std::vector<Surface> surfaces;
  std::vector<RigidBody> bodies;
  std::vector<std::string> names;  ///< [body], may be empty
  std::vector<BodyShape> shapes;
  std::vector<PointJoint> joints;
  std::vector<std::pair<int, int>> excludes;  ///< bodies, -1: the world
  struct Pair {
    int shape_a, shape_b, surface;  ///< surface -1: never touch
  };
  std::vector<Pair> pairs;  ///< that may touch, or may not, whatever else is said

  /// Adds a body with one shape of unit-density inertia scaled to the mass. @return the body's number
  /// @param position, orientation of the shape's frame, which is the body's own but for hulls
  int add(const Shape& shape, double mass, const Vec3d& position, const Quatd& orientation = {1, 0, 0, 0},
          int surface = 0);
  /// Adds a shape of the world.
  void add_fixed(const Shape& shape, const ShapePose& pose, int surface = 0);
  /// The floor z = 0 and, if half_width > 0, four walls around the origin.
  void add_floor(double half_width = 0);
  /// Gives all surfaces the numbers that are there; a compliance [m/N] is that of two of them together and takes the
  /// place of MJCF's solref and solimp.
  void set_surfaces(std::optional<double> friction, std::optional<double> restitution,
                    std::optional<double> compliance);
};

/// @throws ValueError for parts that a world does not take
template <class R>
RigidWorld<R> make_world(const RigidScene& scene);
extern template RigidWorld<float> make_world<float>(const RigidScene&);
extern template RigidWorld<double> make_world<double>(const RigidScene&);

/// A built-in scene from text such as "balls:20:20"; nothing if no scene has that name.
/// @throws ValueError for numbers out of range
std::optional<RigidScene> named_scene(const std::string& text);
/// The built-in scenes as named_scene() takes them, with what they are.
std::vector<std::pair<std::string, std::string>> named_scenes();
std::string scene_names();  ///< those names with commas between them

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
