#include "control/figure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace tarsus {

namespace {

constexpr double kSameDistance = 0.01;  ///< relative difference below which ends are equally far from a joint

const MeshSpec* mesh_of(const ModelSpec& spec, const GeomSpec& geom) {
  for (const MeshSpec& mesh : spec.meshes) {
    if (mesh.name == geom.mesh) return &mesh;
  }
  return nullptr;
}

/// Points that include the ends of a shape, in its body's frame, and the radius around all of them.
std::pair<std::vector<Vec3d>, double> ends_of_shape(const ModelSpec& spec, const GeomSpec& geom, bool corners) {
  std::vector<Vec3d> points;
  double radius = 0;
  const Vec3d& s = geom.size;
  const auto axes = [&](const Vec3d& half) {
    for (int k = 0; k < 3; ++k) {
      for (const double sign : {-1.0, 1.0}) {
        Vec3d p{0, 0, 0};
        p[k] = sign * half[k];
        points.push_back(p);
      }
    }
  };
  switch (geom.type) {
    case GeomType::sphere: points = {{0, 0, 0}}, radius = s.x; break;
    case GeomType::capsule: points = {{0, 0, s.y}, {0, 0, -s.y}}, radius = s.x; break;
    case GeomType::cylinder: axes({s.x, s.x, s.y}); break;
    case GeomType::ellipsoid: axes(s); break;
    case GeomType::box:
      axes(s);
      for (int k = 0; corners && k < 8; ++k)
        points.push_back({k & 1 ? s.x : -s.x, k & 2 ? s.y : -s.y, k & 4 ? s.z : -s.z});
      break;
    case GeomType::mesh:
      if (const MeshSpec* mesh = mesh_of(spec, geom)) points = mesh->vertices;
      break;
    default: break;
  }
  for (Vec3d& p : points) p = geom.position + rotate(geom.orientation, p);
  return {points, radius};
}

/// The bodies that move with `body`: itself and all bodies welded to it.
std::vector<int> welded(const Model& model, int body) {
  std::vector<int> out{body};
  for (int b = body + 1; b < model.nbody(); ++b) {
    const bool below = std::find(out.begin(), out.end(), model.bodies[std::size_t(b)].parent) != out.end();
    if (below && model.bodies[std::size_t(b)].joint_count == 0) out.push_back(b);
  }
  return out;
}

}  // namespace

Figure::Figure(const Model& model) : model_(model), data_(model) {
  pose(model.qpos0);
  for (int b = 1; b < model.nbody(); ++b) {
    if (model.bodies[std::size_t(b)].joint_count == 0) continue;
    SkeletonNode node;
    node.names.push_back(model.bodies[std::size_t(b)].name);
    for (int j = 0; j < model.bodies[std::size_t(b)].joint_count; ++j) node.names.push_back(joint(b, j).name);
    int parent = model.bodies[std::size_t(b)].parent;
    while (parent > 0 && node_of(parent) < 0) parent = model.bodies[std::size_t(parent)].parent;
    node.parent = parent > 0 ? node_of(parent) : -1;
    node.position = place(anchor(b));
    body_of_.push_back(b), nodes_.push_back(std::move(node));
  }
}

Vec3d Figure::place(const ModelPoint& p) const {
  const Transformd X = body_pose(model_, data_, p.body);
  return X.p + X.R * p.local;
}
ModelPoint Figure::fixed_to(int b, const Vec3d& place) const {
  const Transformd X = body_pose(model_, data_, b);
  return {b, transpose_mul(X.R, place - X.p)};
}
Eigen::MatrixXd Figure::jacobian_of(const ModelPoint& p) {
  const Vec3d at = place(p);
  rows_.resize(std::size_t(6 * model_.nv));
  const std::array<double, 3> point{at.x, at.y, at.z};
  jacobian(model_, data_, p.body, std::span<const double>(point), std::span<double>(rows_));
  Eigen::MatrixXd out(3, model_.nv);
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < model_.nv; ++c) out(r, c) = rows_[std::size_t((3 + r) * model_.nv + c)];
  }
  return out;
}

ModelPoint Figure::anchor(int b) const {
  const JointType type = joint(b, 0).type;
  return {b, moves_freely(type) ? Vec3d{0, 0, 0} : joint(b, 0).position};
}

ModelPoint Figure::far_end(int b) const {
  const ModelPoint start = anchor(b);
  const Transformd X = body_pose(model_, data_, b);
  std::vector<Vec3d> ends;
  double farthest = 0;
  for (const int w : welded(model_, b)) {
    const Transformd Y = body_pose(model_, data_, w);
    for (const GeomSpec& geom : model_.spec.bodies[std::size_t(w)].geoms) {
      for (const Vec3d& p : ends_of_shape(model_.spec, geom, false).first) {
        ends.push_back(transpose_mul(X.R, Y.p + Y.R * p - X.p));
        farthest = std::max(farthest, norm(ends.back() - start.local));
      }
    }
  }
  Vec3d sum{0, 0, 0};
  int count = 0;
  for (const Vec3d& p : ends) {
    if (norm(p - start.local) >= (1 - kSameDistance) * farthest) sum = sum + p, ++count;
  }
  return farthest > 0 ? ModelPoint{b, sum * (1.0 / count)} : start;
}

double Figure::lowest(int b) const {
  double low = kInfinity;
  for (const int w : welded(model_, b)) {
    const Transformd X = body_pose(model_, data_, w);
    const auto look = [&](bool touching) {
      for (const GeomSpec& geom : model_.spec.bodies[std::size_t(w)].geoms) {
        if ((geom.contype != 0 || geom.conaffinity != 0) != touching) continue;
        const auto [points, radius] = ends_of_shape(model_.spec, geom, true);
        for (const Vec3d& p : points) low = std::min(low, (X.p + X.R * p).z - radius);
      }
    };
    look(true);
    if (low == kInfinity) look(false);
  }
  return low == kInfinity ? place(anchor(b)).z : low;
}

const Joint& Figure::joint(int b, int j) const {
  return model_.joints[std::size_t(model_.bodies[std::size_t(b)].joint_first + j)];
}
int Figure::node_of(int b) const {
  const auto at = std::find(body_of_.begin(), body_of_.end(), b);
  return at == body_of_.end() ? -1 : int(at - body_of_.begin());
}

}  // namespace tarsus
