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
  Quatd rotation() { return exp_map(direction() * uniform(0, kPi)); }
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
  double chain = 0.5;  ///< chance that a body hangs on the last one
};

inline JointSpec random_joint(Random& random, JointType type, const std::string& name, const TreeOptions& options) {
  JointSpec joint;
  joint.name = name;
  joint.type = type;
  joint.axis = random.direction();
  joint.position = random.vector(0.2);
  if (type == JointType::hinge || type == JointType::slide) {
    joint.reference = random.chance(0.3) ? random.uniform() : 0;
    joint.spring_reference = random.uniform();
  }
  if (options.armature && random.chance(0.5)) joint.armature = random.uniform(0, 0.2);
  if (options.springs && random.chance(0.5))
    joint.stiffness = random.uniform(0, 20), joint.damping = random.uniform(0, 2);
  return joint;
}

/// Welded, one joint of any type, two or three hinges, slide with ball; free only at the root.
inline void add_joints(Random& random, BodySpec& body, int index, const TreeOptions& options) {
  const auto add = [&](JointType type) {
    body.joints.push_back(
        random_joint(random, type, "j" + std::to_string(index) + "_" + std::to_string(body.joints.size()), options));
  };
  if (body.parent == 0 && random.chance(0.5)) return add(JointType::free);
  const int kind = random.index(options.welds ? 8 : 7);
  if (kind < 2) add(JointType::hinge);
  if (kind == 2) add(JointType::slide);
  if (kind == 3 || kind == 4) add(JointType::ball);
  if (kind == 5) add(JointType::hinge), add(JointType::hinge), add(JointType::hinge);
  if (kind == 6) add(JointType::slide), add(random.chance(0.5) ? JointType::ball : JointType::hinge);
}

inline Model random_tree(unsigned seed, const TreeOptions& options = {}) {
  Random random(seed);
  ModelSpec spec;
  spec.option.gravity = random.vector(10);
  for (int i = 1; i <= options.bodies; ++i) {
    BodySpec body("b" + std::to_string(i));
    body.parent = i == 1 ? 0 : random.chance(options.chain) ? i - 1 : random.index(i);
    body.position = random.vector(0.4), body.orientation = random.rotation();
    add_joints(random, body, i, options);
    const double mass = random.uniform(0.2, 3);
    body.inertial = InertialSpec{mass, random.vector(0.1), random.inertia(mass), {}};
    spec.bodies.push_back(body);
  }
  return compile(std::move(spec));
}

struct State {
  std::vector<double> qpos, qvel, qacc, tau;
};

inline std::vector<double> random_vector(Random& random, int n, double size = 1) {
  std::vector<double> v(n);
  for (double& x : v) x = random.uniform(-size, size);
  return v;
}

inline std::vector<double> random_qpos(Random& random, const Model& model) {
  std::vector<double> qpos = random_vector(random, model.nq, 2);
  for (const Joint& joint : model.joints) {
    if (joint.nq() == 1) continue;
    const Quatd q = random.rotation();
    double* p = qpos.data() + joint.qpos + (joint.type == JointType::free ? 3 : 0);
    p[0] = q.w, p[1] = q.x, p[2] = q.y, p[3] = q.z;
  }
  return qpos;
}

inline State random_state(Random& random, const Model& model) {
  return {random_qpos(random, model), random_vector(random, model.nv), random_vector(random, model.nv, 3),
          random_vector(random, model.nv, 10)};
}

/// max |a - b| / max(1, max |b|).
inline double relative_error(std::span<const double> a, std::span<const double> b) {
  double error = 0, scale = 1;
  for (std::size_t i = 0; i < b.size(); ++i) {
    error = std::max(error, std::abs(a[i] - b[i]));
    if (!(a[i] == a[i]) || !(b[i] == b[i])) return kInfinity;
    scale = std::max(scale, std::abs(b[i]));
  }
  return error / scale;
}

}  // namespace tarsus::test
