// Other engines on the same scene of spheres and planes, for bench/contact_bench.cpp: those whose packages were found
// when the benchmark was built (TARSUS_BENCH_BULLET, TARSUS_BENCH_ODE).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tarsus/sim/rigid_scene.hpp"

namespace tarsus {

struct PeerMeasure {
  int contacts = 0;
  double penetration_max = 0, penetration_mean = 0;  ///< [m], from the positions of the spheres
};

class ContactPeer {
 public:
  virtual ~ContactPeer() = default;
  virtual std::string name() const = 0;
  virtual void step() = 0;
  virtual PeerMeasure measure() const = 0;
};

std::vector<std::unique_ptr<ContactPeer>> make_contact_peers(const RigidScene& scene);
std::unique_ptr<ContactPeer> make_bullet_peer(const RigidScene& scene);
std::unique_ptr<ContactPeer> make_ode_peer(const RigidScene& scene);
/// Measures the overlaps of the spheres with one another and with the scene's planes, in the same way for all engines.
PeerMeasure measure_spheres(const RigidScene& scene, const std::vector<Vec3d>& centres);

}  // namespace tarsus
