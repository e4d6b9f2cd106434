// A model in a pose: points fixed to its bodies, the ends of its shapes, and their lowest heights.
#pragma once

#include <Eigen/Core>
#include <span>
#include <vector>

#include "control/skeleton.hpp"
#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

/// A point fixed to a body of the model.
struct ModelPoint {
  int body = 0;
  Vec3d local{0, 0, 0};
};

class Figure {
 public:
  explicit Figure(const Model& model);

  /// A node for each body with joints: its name and those of its joints, and the position of its first joint in the
  /// model's own pose.
  const std::vector<SkeletonNode>& nodes() const { return nodes_; }
  int body(int node) const { return body_of_[std::size_t(node)]; }

  void pose(std::span<const double> qpos) { kinematics(model_, data_, qpos); }
  Vec3d place(const ModelPoint& p) const;
  /// The point of a body that is at a given position in the world.
  ModelPoint fixed_to(int b, const Vec3d& place) const;
  /// Jacobian of a point, [3][nv], in the current pose.
  Eigen::MatrixXd jacobian_of(const ModelPoint& p);
  /// Anchor of a body's first joint; for a free joint the body's origin.
  ModelPoint anchor(int b) const;
  /// The end of the body's shapes farthest from its anchor: the mean if several are equally far, as the front corners
  /// of a foot. The anchor itself without shapes.
  ModelPoint far_end(int b) const;
  /// Height of the lowest point of a body's shapes (and of bodies welded to it), or of its anchor if it has none.
  double lowest(int b) const;

 private:
  const Joint& joint(int b, int j) const;
  int node_of(int b) const;

  const Model& model_;
  Data data_;
  std::vector<SkeletonNode> nodes_;
  std::vector<int> body_of_;
  std::vector<double> rows_;
};

}  // namespace tarsus
