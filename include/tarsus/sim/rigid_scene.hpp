// Scenes of free rigid bodies, shared by the tests, the benchmarks and the command line. A scene is a list of parts
// from which a RigidWorld, or a world of another engine, can be built.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tarsus/sim/rigid_world.hpp"

namespace tarsus {

/// Mass properties converted to a body in its frame of principal axes.
struct PrincipalBody {
  RigidBody body;   ///< at the origin
  ShapePose frame;  ///< centre of mass, and principal axes as columns; the given axes if the inertia is diagonal
};
/// @param mass > 0 [kg]  @param inertia about `com` [kg m²]
PrincipalBody principal_body(double mass, const Vec3d& com, const Sym3d& inertia);
/// Mass properties of a homogeneous solid, convex hulls included.
/// @throws ValueError for planes and height fields, and for sizes without a volume
PrincipalBody principal_body(double mass, const Shape& shape);

struct RigidScene {
  std::string name;
  std::string text;  ///< of which named_scene() makes it; empty: not a built-in scene
  RigidWorldOptions options;
  std::vector<Surface> surfaces;
  std::vector<RigidBody> bodies;
  std::vector<std::string> names;  ///< [body], may be empty
  std::vector<BodyShape> shapes;
  std::vector<std::pair<int, int>> excludes;  ///< pairs of bodies, -1: the world
  struct Pair {
    int shape_a, shape_b, surface;  ///< surface -1: the shapes never touch
  };
  std::vector<Pair> pairs;  ///< explicit pairs, which override masks and excludes

  /// Adds a body with one shape. Its inertia is that of a homogeneous solid of this mass.
  /// @param position, orientation of the shape's frame; it equals the body's frame except for hulls
  /// @return the body's index
  int add(const Shape& shape, double mass, const Vec3d& position, const Quatd& orientation = {1, 0, 0, 0},
          int surface = 0);
  /// Adds a shape that is fixed to the world.
  void add_fixed(const Shape& shape, const ShapePose& pose, int surface = 0);
  /// Adds the floor z = 0 and, if half_width > 0, four walls around the origin.
  void add_floor(double half_width = 0);
  /// Sets the given parameters on all surfaces. The compliance [m/N] is the combined value of two such surfaces in
  /// contact; it replaces MJCF's solref and solimp.
  void set_surfaces(std::optional<double> friction, std::optional<double> restitution,
                    std::optional<double> compliance);
};

/// @throws ValueError for parts that a RigidWorld rejects
template <class R>
RigidWorld<R> make_world(const RigidScene& scene);
extern template RigidWorld<float> make_world<float>(const RigidScene&);
extern template RigidWorld<double> make_world<double>(const RigidScene&);

/// A built-in scene from text such as "balls:20:20"; empty if no scene has that name.
/// @throws ValueError for numbers out of range
std::optional<RigidScene> named_scene(const std::string& text);
/// The built-in scene of that name, if `path` is not a file that exists.
/// @throws ValueError for numbers out of range
std::optional<RigidScene> scene_unless_file(const std::filesystem::path& path);
/// The built-in scenes: the text that named_scene() takes, and a description.
std::vector<std::pair<std::string, std::string>> named_scenes();
std::string scene_names();  ///< those names, separated by commas

/// side² × layers balls of the given radius [m] on a jittered lattice above the floor of a box. They fall and settle.
RigidScene ball_drop(int side, int layers, double radius = 0.5, double mass = 1, unsigned seed = 1);
/// A square pyramid of balls: layer k has k × k balls, layers (layers + 1)(2 layers + 1)/6 in all. Walls hold the
/// lowest layer together.
RigidScene ball_pyramid(int layers, double radius = 0.5, double mass = 1);
/// A stack of n cubes of the given edge [m].
RigidScene box_stack(int n, double edge = 1, double mass = 1);
/// A wall of cubes with `base` cubes in the lowest row.
RigidScene box_pyramid(int base, double edge = 1, double mass = 1);
/// n dominoes in a row; the first is about to fall.
RigidScene domino_row(int n);
/// One cube on a slope of the given angle [rad]; friction is the slope surface's coefficient.
RigidScene slope(double angle, double friction);
/// A house of cards, `storeys` storeys high.
RigidScene card_house(int storeys);

}  // namespace tarsus
