#include "tarsus/sim/adhesion.hpp"

#include <algorithm>
#include <array>

#include "tarsus/math/rotation.hpp"

namespace tarsus {

Adhesion::Adhesion(const Model& model, const ActuatorSet& actuators) : model_(model) {
  for (int i = 0; i < actuators.size(); ++i) {
    if (actuators[i].transmission == TransmissionType::body && actuators[i].active) grips_.push_back({i, {}});
  }
  if (grips_.empty()) return;
  geometry_ = ContactGeometry(model);
  const std::span<const ContactShape> shapes = geometry_.shapes();
  for (Grip& grip : grips_) {
    const ActuatorSpec& spec = model.spec.actuators[grip.actuator];
    const int body = body_named(model, spec.target, spec.where);
    for (int a = 0; a < int(shapes.size()); ++a) {
      for (int b = a + 1; b < int(shapes.size()); ++b) {
        if ((shapes[a].body == body || shapes[b].body == body) && geometry_.may_touch(a, b))
          grip.pairs.push_back({a, b});
      }
    }
  }
}

void Adhesion::add(const LinkState<double>* links, std::span<const double> force, std::span<double> row) const {
  struct Pull {
    int a, b;
    ContactPoint point;
  };
  const auto pose = [&](const ContactShape& s) -> ShapePose {
    const Transformd X = world_pose(links, {s.link, Transformd{s.pose.rotation, s.pose.position}, s.mocap});
    return {X.p, X.R};
  };
  const auto reach = [&](const ContactShape& s) {
    const GeomSpec& geom = model_.spec.bodies[s.body].geoms[s.geom];
    return geom.margin + geom.gap;
  };
  std::vector<Pull> pulls;
  for (const Grip& grip : grips_) {
    pulls.clear();
    for (const auto& [a, b] : grip.pairs) {
      const ContactShape &first = geometry_.shapes()[a], &second = geometry_.shapes()[b];
      std::array<ContactPoint, kMaxManifold> points;
      const int count = collide(first.shape, pose(first), second.shape, pose(second),
                                std::max(0.0, reach(first) + reach(second)), points);
      for (int k = 0; k < count; ++k) pulls.push_back({first.link, second.link, points[k]});
    }
    for (const Pull& pull : pulls) {
      const double share = force[grip.actuator] / double(pulls.size());
      const Vec3d n = pull.point.normal, none{0, 0, 0};
      add_generalized_force(model_, links, pull.a, pull.point.position, n, none, -share, row.data());
      add_generalized_force(model_, links, pull.b, pull.point.position, n, none, share, row.data());
    }
  }
}

}  // namespace tarsus
