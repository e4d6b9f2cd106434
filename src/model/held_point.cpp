#include "tarsus/model/held_point.hpp"

#include <algorithm>

#include "tarsus/model/body_at.hpp"

namespace tarsus {

namespace {

constexpr double kHeld = 1e-9;  ///< relative to the lengths; smaller Jacobians are zero (solver/multipliers.hpp)
constexpr double kRounding = 1e-14;

/// Pose of a link in its parent with the joint at zero.
Transformd rest(const LinkConstants<double>& link) {
  const double* E = link.E0;
  return {{E[0], E[1], E[2], E[3], E[4], E[5], E[6], E[7], E[8]}, {link.r0[0], link.r0[1], link.r0[2]}};
}

/// Pose of a link in the world with all joints at zero.
Transformd pose(const Model& model, int link) {
  Transformd X{identity3<double>(), {0, 0, 0}};
  for (; link >= 0; link = model.joints[std::size_t(link)].parent) X = rest(model.view<double>().link[link]) * X;
  return X;
}

}  // namespace

bool joints_hold(const Model& model, int body_a, const Vec3d& point_a, int body_b,
                 const std::optional<Vec3d>& point_b) {
  const Body &a = body_at(model, body_a), &b = body_at(model, body_b);
  if (a.mocap >= 0 || b.mocap >= 0) return false;
  const auto on_link = [](const Body& body, const Vec3d& p) { return body.X_LB.R * p + body.X_LB.p; };
  const Vec3d p = on_link(a, point_a), place = pose(model, a.link).R * p + pose(model, a.link).p;
  double lengths = a.link >= 0 ? norm(p) : 0, away = 0;
  if (point_b) {
    const Vec3d q = on_link(b, *point_b);
    lengths += b.link >= 0 ? norm(q) : 0;
    away = norm(pose(model, b.link).R * q + pose(model, b.link).p - place);
  }
  for (int i = a.link, j = b.link; i != j;) {
    int& link = i > j ? i : j;
    const Joint& joint = model.joints[std::size_t(link)];
    const Transformd X = pose(model, link);
    const Vec3d arm = place - X.p;
    if (!turns_on_axis(joint.type) && !turns_freely(joint.type)) return false;
    away = std::max(away, turns_freely(joint.type) ? norm(arm) : norm(cross(X.R.column_z(), arm)));
    if (joint.parent >= 0) lengths += norm(rest(model.view<double>().link[link]).p);
    link = joint.parent;
  }
  return away <= kHeld * lengths + kRounding * norm(place);
}

}  // namespace tarsus
