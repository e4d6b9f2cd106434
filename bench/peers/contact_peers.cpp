#include "peers/contact_peers.hpp"

#include <algorithm>

namespace tarsus {

std::vector<std::unique_ptr<ContactPeer>> make_contact_peers([[maybe_unused]] const RigidScene& scene) {
  std::vector<std::unique_ptr<ContactPeer>> peers;
#if defined(TARSUS_BENCH_BULLET)
  peers.push_back(make_bullet_peer(scene));
#endif
#if defined(TARSUS_BENCH_ODE)
  peers.push_back(make_ode_peer(scene));
#endif
  return peers;
}

PeerMeasure measure_spheres(const RigidScene& scene, const std::vector<Vec3d>& centres) {
  std::vector<double> x, y, z, radius;
  for (const BodyShape& s : scene.shapes) {
    if (s.body < 0) continue;
    const Vec3d& p = centres[std::size_t(s.body)];
    x.push_back(p.x), y.push_back(p.y), z.push_back(p.z), radius.push_back(s.shape.size.x);
  }
  PeerMeasure m;
  double sum = 0;
  const auto count = [&](double distance) {
    if (distance >= 0) return;
    ++m.contacts, sum -= distance;
    m.penetration_max = std::max(m.penetration_max, -distance);
  };
  SpherePhase phase;
  for (double d : phase.find(x, y, z, radius, 0).distance) count(d);
  for (const BodyShape& s : scene.shapes) {
    if (s.body >= 0) continue;
    for (std::size_t i = 0; i < x.size(); ++i) {
      count(dot(s.local.rotation.column_z(), Vec3d{x[i], y[i], z[i]} - s.local.position) - radius[i]);
    }
  }
  m.penetration_mean = m.contacts ? sum / m.contacts : 0;
  return m;
}

}  // namespace tarsus
