#include "support/random_model.hpp"

namespace tarsus::test {

JointSpec random_joint(Random& random, JointType type, const std::string& name, const TreeOptions& options) {
  JointSpec joint;
  joint.name = name;
  joint.type = type;
  joint.axis = random.direction();
  joint.position = random.vector(0.2);
  if (traits(type).axes > 1 && random.chance(0.5)) {
    const Vec3d other = cross(joint.axis, random.direction());
    joint.second_axis = other * (1 / norm(other));
  }
  if (has_axis(type)) {
    joint.reference = random.chance(0.3) ? random.uniform() : 0;
    joint.spring_reference = random.uniform();
  }
  if (options.armature && random.chance(0.5)) joint.armature = random.uniform(0, 0.2);
  if (options.springs && random.chance(0.5))
    joint.stiffness = random.uniform(0, 20), joint.damping = random.uniform(0, 2);
  return joint;
}

void add_joints(Random& random, BodySpec& body, int index, const TreeOptions& options) {
  const auto add = [&](JointType type) {
    body.joints.push_back(
        random_joint(random, type, "j" + std::to_string(index) + "_" + std::to_string(body.joints.size()), options));
  };
  if (body.parent == 0 && random.chance(0.5)) return add(JointType::free);
  std::vector<JointType> chains;
  for (const JointTraits& t : kJointTraits) {
    if (t.part_count > 0) chains.push_back(t.type);
  }
  const int kind = random.index((options.welds ? 8 : 7) + int(chains.size()));
  if (kind >= 7 && kind - 7 < int(chains.size())) add(chains[std::size_t(kind - 7)]);
  if (kind < 2) add(JointType::hinge);
  if (kind == 2) add(JointType::slide);
  if (kind == 3 || kind == 4) add(JointType::ball);
  if (kind == 5) add(JointType::hinge), add(JointType::hinge), add(JointType::hinge);
  if (kind == 6) add(JointType::slide), add(random.chance(0.5) ? JointType::ball : JointType::hinge);
}

Model random_tree(unsigned seed, const TreeOptions& options) {
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

std::vector<double> random_vector(Random& random, int n, double size) {
  std::vector<double> v(n);
  for (double& x : v) x = random.uniform(-size, size);
  return v;
}

std::vector<double> random_qpos(Random& random, const Model& model) {
  std::vector<double> qpos = random_vector(random, model.nq, 2);
  for (const Joint& joint : model.joints) {
    if (joint.nq() == 1) continue;
    const Quatd q = random.rotation();
    double* p = qpos.data() + joint.qpos + scalar_count(joint.type);
    p[0] = q.w, p[1] = q.x, p[2] = q.y, p[3] = q.z;
  }
  return qpos;
}

State random_state(Random& random, const Model& model) {
  return {random_qpos(random, model), random_vector(random, model.nv), random_vector(random, model.nv, 3),
          random_vector(random, model.nv, 10)};
}

double relative_error(std::span<const double> a, std::span<const double> b) {
  double error = 0, scale = 1;
  for (std::size_t i = 0; i < b.size(); ++i) {
    error = std::max(error, std::abs(a[i] - b[i]));
    if (!(a[i] == a[i]) || !(b[i] == b[i])) return kInfinity;
    scale = std::max(scale, std::abs(b[i]));
  }
  return error / scale;
}

}  // namespace tarsus::test
