// Shared by the tests of clips: folders, a sampled state, and the error of a velocity against differences of positions.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/built_in.hpp"
#include "tarsus/control/clip.hpp"
#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus::test {

struct ClipState {
  std::vector<double> q, v;
};
inline ClipState sample(const ClipBinding& binding, double t) {
  ClipState s{std::vector<double>(binding.nq()), std::vector<double>(binding.nv())};
  binding.sample(t, s.q, s.v);
  return s;
}

/// Largest |v - (q(t+h) ⊟ q(t-h)) / 2h| over the state, at time t.
inline double velocity_error(const Model& model, const ClipBinding& binding, double t, double h = 1e-5) {
  const ClipState before = sample(binding, t - h), now = sample(binding, t), after = sample(binding, t + h);
  std::vector<double> d(model.nv);
  difference(model, before.q, after.q, d);
  double worst = 0;
  for (int i = 0; i < model.nv; ++i) worst = std::max(worst, std::abs(d[i] / (2 * h) - now.v[i]));
  return worst;
}

/// Quaternions have unit norm to rounding, and all numbers are finite.
inline void expect_sound(const Model& model, const ClipState& s) {
  for (double x : s.q) ASSERT_TRUE(std::isfinite(x));
  for (double x : s.v) ASSERT_TRUE(std::isfinite(x));
  for (const Joint& joint : model.joints) {
    if (joint.nv() < 3) continue;
    const double* p = &s.q[joint.qpos + joint.nq() - 4];
    EXPECT_NEAR(std::hypot(std::hypot(p[0], p[1]), std::hypot(p[2], p[3])), 1, 1e-14) << joint.name;
  }
}

/// Forward kinematics: the position of a point that is fixed to a body.
class Figure {
 public:
  explicit Figure(const Model& model) : model_(model), data_(model) {}
  void pose(const ClipState& s) { kinematics<double>(model_, data_, s.q, s.v); }
  Transformd body(const std::string& name) { return body_pose(model_, data_, model_.body_id(name)); }
  Vec3d point(const std::string& name, const Vec3d& p) {
    const Transformd x = body(name);
    return x.R * p + x.p;
  }
  /// Lowest corner of the boxes of a body.
  Vec3d lowest_corner(const std::string& name) {
    Vec3d lowest{0, 0, kInfinity};
    for (const BodySpec& spec : model_.spec.bodies) {
      if (spec.name != name) continue;
      for (const GeomSpec& geom : spec.geoms) {
        for (int corner = 0; geom.type == GeomType::box && corner < 8; ++corner) {
          const Vec3d half{corner & 1 ? geom.size.x : -geom.size.x, corner & 2 ? geom.size.y : -geom.size.y,
                           corner & 4 ? geom.size.z : -geom.size.z};
          const Vec3d w = point(name, geom.position + rotate(geom.orientation, half));
          if (w.z < lowest.z) lowest = w;
        }
      }
    }
    return lowest;
  }

 private:
  const Model& model_;
  Data data_;
};

}  // namespace tarsus::test
