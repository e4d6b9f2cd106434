// Random trees over all joint types, with random masses, frames, armature, springs and damping; and random states for
// them.
#pragma once

#include <random>
#include <string>

#include "tarsus/math/rotation.hpp"
#include "tarsus/model/model.hpp"

namespace tarsus::test {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  double uniform(double low = -1, double high = 1) {
    return std::uniform_real_distribution<double>(low, high)(engine_);
  }
  int index(int n) { return int(engine_() % unsigned(n)); }
  bool chance(double p) { return uniform(0, 1) < p; }
  Vec3d vector(double size = 1) { return {uniform(-size, size), uniform(-size, size), uniform(-size, size)}; }
  Vec3d direction() {
    for (;;) {
      const Vec3d v = vector();
      if (const double n = norm(v); n > 0.1 && n < 1) return v * (1 / n);
    }
  }
  Quatd rotation(double most = kPi) {
    const double angle = uniform(0, most);  // drawn first: the order of evaluation differs among compilers
    return exp_map(direction() * angle);
  }
  /// A positive definite inertia that a real body could have.
  Sym3d inertia(double mass) {
    const Vec3d s{uniform(0.05, 0.3), uniform(0.05, 0.3), uniform(0.05, 0.3)};
    const double x = s.x * s.x, y = s.y * s.y, z = s.z * s.z;
    return rotate(tarsus::rotation(rotation()), diagonal3(y + z, x + z, x + y) * (mass / 3));
  }

 private:
  std::mt19937 engine_;
};

struct TreeOptions {
  int bodies = 12;
  bool armature = true, springs = true, welds = true;
  double chain = 0.5;  ///< probability that a body is attached to the previous one
};

JointSpec random_joint(Random& random, JointType type, const std::string& name, const TreeOptions& options);

/// Adds no joint (a weld), one joint of any type of joint_type.hpp, two or three hinges, or a slide with a ball. Free
/// joints occur only at the root.
void add_joints(Random& random, BodySpec& body, int index, const TreeOptions& options);

Model random_tree(unsigned seed, const TreeOptions& options = {});

struct State {
  std::vector<double> qpos, qvel, qacc, tau;
};

std::vector<double> random_vector(Random& random, int n, double size = 1);

std::vector<double> random_qpos(Random& random, const Model& model);

State random_state(Random& random, const Model& model);

/// max |a - b| / max(1, max |b|).
double relative_error(std::span<const double> a, std::span<const double> b);

}  // namespace tarsus::test
