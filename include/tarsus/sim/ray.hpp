// Rays through the shapes of a model.
#pragma once

#include "tarsus/dynamics/frame.hpp"

namespace tarsus {

/// Distance to the surface of a shape in its own frame, negative: none. @param direction unit
double ray_shape(GeomType type, const Vec3d& size, const Vec3d& origin, const Vec3d& direction);

/// All shapes of a model that a ray can meet: not those without colour, nor height fields (which it passes).
class RayScene {
 public:
  explicit RayScene(const Model& model);
  /// Distance to the nearest shape, -1: none; those of `without` (a body) are passed. After kinematics().
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
