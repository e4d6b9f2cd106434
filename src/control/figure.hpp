// A model posed: points fixed to its bodies, where its shapes end, and how low they reach.
#pragma once

#include <Eigen/Core>
#include <span>
#include <vector>

#include "control/skeleton.hpp"
#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

/// A point of the model: fixed to a body.
struct ModelPoint {
  int body = 0;
  Vec3d local{0, 0, 0};
};

class Figure {
 public:
  explicit Figure(const Model& model);

  /// A node for each body with joints: its name and theirs, the place of its first joint in the model's own pose.
  const std::vector<SkeletonNode>& nodes() const { return nodes_; }
  int body(int node) const { return body_of_[std::size_t(node)]; }

  void pose(std::span<const double> qpos) { kinematics(model_, data_, qpos); }
  Vec3d place(const ModelPoint& p) const;
  /// The point of a body that is at a place of the world.
  ModelPoint fixed_to(int b, const Vec3d& place) const;
  /// [3][nv], of the pose.
  Eigen::MatrixXd jacobian_of(const ModelPoint& p);
  /// Of a body's first joint; a free joint's is the body's origin.
  ModelPoint anchor(int b) const;
  /// The end of the body's shapes farthest from its anchor; the anchor itself without shapes.
  ModelPoint far_end(int b) const;
  /// Height of the lowest point of a body's shapes (and of what is welded to it); of its anchor without shapes.
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
