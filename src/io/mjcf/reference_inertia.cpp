// Numbers that MJCF gives relative to a joint's inertia in the reference pose: springdamper and dampratio.
#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "io/mjcf/builder.hpp"

namespace tarsus::mjcf {
namespace {

constexpr int kMostFreedoms = 3'000;  // the matrix is dense

/// Mass, first and second moments about the world's origin.
struct Heavy {
  double mass = 0;
  Vec3d moment{0, 0, 0};
  Sym3d inertia{0, 0, 0, 0, 0, 0};
};

/// A degree of freedom: [angular; linear at the world's origin], world axes.
struct Motion {
  Vec3d angular, linear;
  int body;
  double armature;
};

struct Freedoms {
  std::vector<Motion> motions;
  std::vector<std::vector<int>> first;  ///< [body][joint of that body]: index of its first motion
};

void add_motions(const JointSpec& joint, const Pose& body, int index, Freedoms& out) {
  const Mat3d r = rotation(body.orientation);
  const Vec3d anchor = body.position + r * joint.position;
  const auto turn = [&](const Vec3d& axis, const Vec3d& at) {
    out.motions.push_back({axis, cross(at, axis), index, joint.armature});
  };
  const auto shift = [&](const Vec3d& axis) { out.motions.push_back({{0, 0, 0}, axis, index, joint.armature}); };
  out.first[static_cast<std::size_t>(index)].push_back(static_cast<int>(out.motions.size()));
  const Vec3d axes[] = {r.column_x(), r.column_y(), r.column_z()};
  if (turns_on_axis(joint.type)) return turn(r * joint.axis, anchor);
  if (slides_on_axis(joint.type)) return shift(r * joint.axis);
  const bool free = moves_freely(joint.type);
  if (free) shift({1, 0, 0}), shift({0, 1, 0}), shift({0, 0, 1});
  for (const Vec3d& axis : axes) turn(axis, free ? body.position : anchor);
}

/// M at qpos0. [Featherstone 2008, ch. 6]
Eigen::MatrixXd reference_mass_matrix(const ModelSpec& spec, Freedoms& freedoms) {
  const std::size_t nbody = spec.bodies.size();
  std::vector<Pose> pose(nbody);
  std::vector<Heavy> composite(nbody);
  freedoms.first.resize(nbody);
  for (std::size_t i = 1; i < nbody; ++i) {
    const BodySpec& body = spec.bodies[i];
    pose[i] = compose(pose[static_cast<std::size_t>(body.parent)], {body.position, body.orientation});
    for (const JointSpec& joint : body.joints) add_motions(joint, pose[i], static_cast<int>(i), freedoms);
    if (!body.inertial) continue;
    const Mat3d r = rotation(pose[i].orientation);
    const Vec3d com = pose[i].position + r * body.inertial->com;
    composite[i] = {body.inertial->mass, com * body.inertial->mass,
                    shifted_inertia(rotate(r, body.inertial->inertia), body.inertial->mass, com)};
  }
  for (std::size_t i = nbody; i-- > 1;) {
    Heavy& parent = composite[static_cast<std::size_t>(spec.bodies[i].parent)];
    parent.mass += composite[i].mass;
    parent.moment += composite[i].moment;
    parent.inertia += composite[i].inertia;
  }
  const auto n = static_cast<Eigen::Index>(freedoms.motions.size());
  Eigen::MatrixXd mass = Eigen::MatrixXd::Zero(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const Motion& m = freedoms.motions[static_cast<std::size_t>(i)];
    const Heavy& h = composite[static_cast<std::size_t>(m.body)];
    const Vec3d torque = h.inertia * m.angular + cross(h.moment, m.linear);
    const Vec3d force = m.linear * h.mass + cross(m.angular, h.moment);
    std::vector<bool> above(nbody, false);
    for (int b = m.body; b > 0; b = spec.bodies[static_cast<std::size_t>(b)].parent)
      above[static_cast<std::size_t>(b)] = true;
    for (Eigen::Index j = 0; j <= i; ++j) {
      const Motion& other = freedoms.motions[static_cast<std::size_t>(j)];
      if (!above[static_cast<std::size_t>(other.body)]) continue;
      mass(i, j) = mass(j, i) = dot(other.angular, torque) + dot(other.linear, force);
    }
    mass(i, i) += m.armature;
  }
  return mass;
}

}  // namespace

void Builder::settle_by_inertia() {
  if (springs_.empty() && damping_ratios_.empty()) return;
  Freedoms freedoms;
  std::size_t count = 0;
  for (const BodySpec& body : spec_.bodies) count += 6 * body.joints.size();
  if (count > 6 * kMostFreedoms) {
    return sink_.add(
        Severity::error, {},
        fmt::format("springdamper and dampratio are not supported for more than {} joints", kMostFreedoms));
  }
  const Eigen::MatrixXd mass = reference_mass_matrix(spec_, freedoms);
  const Eigen::MatrixXd inverse = mass.ldlt().solve(Eigen::MatrixXd::Identity(mass.rows(), mass.cols()));
  // Joints are numbered as they were read, which may be after the joints of bodies that are written before them.
  const auto first = [&](int number) {
    const auto [body, place] = joint_place_[static_cast<std::size_t>(number)];
    return freedoms.first[static_cast<std::size_t>(body)][static_cast<std::size_t>(place)];
  };
  for (const Springs& spring : springs_) {
    const auto [body, place] = joint_place_[static_cast<std::size_t>(spring.joint)];
    JointSpec& joint = spec_.bodies[static_cast<std::size_t>(body)].joints[static_cast<std::size_t>(place)];
    const int size = qvel_count(joint.type);
    double mobility = 0;
    for (int i = 0; i < size; ++i) mobility += inverse.diagonal()[first(spring.joint) + i];
    const double inertia = size / std::max(1e-15, mobility);
    const auto [time, ratio] = spring.spring_damper;
    joint.stiffness = inertia / std::max(1e-15, time * time * ratio * ratio);
    joint.damping = 2 * inertia / std::max(1e-15, time);
  }
  for (const auto& [index, ratio] : damping_ratios_) {
    ActuatorSpec& actuator = spec_.actuators[static_cast<std::size_t>(index)];
    // The inertia that the transmission feels is 1 / (J M⁻¹ Jᵀ).
    Eigen::VectorXd row = Eigen::VectorXd::Zero(mass.rows());
    const auto add = [&](const std::string& joint, double gear) { row[first(find(Kind::joint, joint))] += gear; };
    if (actuator.transmission == TransmissionType::tendon) {
      const TendonSpec& tendon = spec_.tendons[static_cast<std::size_t>(find(Kind::tendon, actuator.target))];
      for (const TendonSpec::Term& term : tendon.terms) add(term.joint, term.coefficient * actuator.gear[0]);
    } else if (actuator.transmission == TransmissionType::joint ||
               actuator.transmission == TransmissionType::joint_in_parent) {
      add(actuator.target, actuator.gear[0]);
    }
    const double mobility = row.dot(inverse * row);
    const double stiffness = actuator.motor ? actuator.motor->kp : actuator.gain[0];
    if (mobility > 0 && actuator.motor)
      actuator.motor->kd = ratio * 2 * std::sqrt(stiffness / mobility);
    else if (mobility > 0)
      actuator.bias[2] = -ratio * 2 * std::sqrt(stiffness / mobility);
    else
      sink_.add(Severity::warning, actuator.where,
                "'dampratio' is not supported for this transmission and has no effect");
  }
}

}  // namespace tarsus::mjcf
