#include "tarsus/sim/ray.hpp"

#include "tarsus/base/index.hpp"
#include "tarsus/geometry/ray.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

double ray_shape(GeomType type, const Vec3d& size, const Vec3d& o, const Vec3d& d) {
  switch (type) {
    case GeomType::plane: return ray_plane(size, o, d);
    case GeomType::sphere: return ray_sphere(size.x, o, d);
    case GeomType::capsule: return ray_capsule(size.x, size.y, o, d);
    case GeomType::cylinder: return ray_cylinder(size.x, size.y, o, d);
    case GeomType::ellipsoid: return ray_ellipsoid(size, o, d);
    case GeomType::box: return ray_box(size, o, d);
    case GeomType::mesh:
    case GeomType::height_field:
    case GeomType::sdf: break;
  }
  return -1;
}

RayScene::RayScene(const Model& model) {
  for (int body = 0; body < model.nbody(); ++body) {
    for (const GeomSpec& geom : model.spec.bodies[body].geoms) {
      if (geom.rgba[3] == 0) continue;
      const int mesh = geom.type == GeomType::mesh ? index_of(model.spec.meshes, geom.mesh) : -1;
      targets_.push_back({body, &geom, mesh >= 0 ? &model.spec.meshes[mesh] : nullptr,
                          frame_on(model, body, {rotation(normalized(geom.orientation)), geom.position})});
    }
  }
}

double RayScene::cast(const LinkState<double>* links, const Vec3d& origin, const Vec3d& direction, int without) const {
  double best = -1;
  for (const Target& target : targets_) {
    if (target.body == without) continue;
    const Transformd X = world_pose(links, target.frame);
    const Vec3d o = transpose_mul(X.R, origin - X.p), d = transpose_mul(X.R, direction);
    const double distance = target.mesh ? ray_triangles(target.mesh->vertices, target.mesh->triangles, o, d)
                                        : ray_shape(target.geom->type, target.geom->size, o, d);
    if (distance >= 0 && (best < 0 || distance < best)) best = distance;
  }
  return best;
}

}  // namespace tarsus
