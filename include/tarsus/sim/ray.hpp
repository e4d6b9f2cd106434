// Ray casting against the shapes of a model.
#pragma once

#include "tarsus/dynamics/frame.hpp"

namespace tarsus {

/// Distance along a ray to the surface of a shape, in the shape's frame; negative if the ray misses.
/// @param direction unit vector
double ray_shape(GeomType type, const Vec3d& size, const Vec3d& origin, const Vec3d& direction);

/// The shapes of a model that a ray can hit: all except those without colour and height fields, which rays pass
/// through.
class RayScene {
 public:
  explicit RayScene(const Model& model);
  /// Distance to the nearest shape, or -1 if the ray hits none. Shapes of the body `without` are ignored. Call after
  /// kinematics().
  double cast(const LinkState<double>* links, const Vec3d& origin, const Vec3d& direction, int without) const;

 private:
  struct Target {
    int body;
    const GeomSpec* geom;
    const MeshSpec* mesh;
    LinkFrame frame;
  };
  std::vector<Target> targets_;
};

}  // namespace tarsus
