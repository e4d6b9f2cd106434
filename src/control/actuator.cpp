#include "tarsus/control/actuator.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "tarsus/control/reference_pose.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

namespace {

Activation activation_named(const std::string& name) {
  return name == "integrator"    ? Activation::integrator
         : name == "filter"      ? Activation::filter
         : name == "filterexact" ? Activation::filterexact
         : name == "muscle"      ? Activation::muscle
                                 : Activation::none;
}

void resolve_target(const Model& model, const TendonSet& tendons, const ActuatorSpec& spec, Actuator& a) {
  const auto refuse = [&](const char* kind) {
    throw InputError(spec.where, std::string("there is no ") + kind + " named \"" + spec.target + "\"");
  };
  std::vector<char> used(model.nv, 0);
  switch (spec.transmission) {
    case TransmissionType::joint:
    case TransmissionType::joint_in_parent: {
      a.joint = model.find_joint(spec.target);
      if (a.joint < 0) return refuse("joint");
      const Joint& joint = model.joints[a.joint];
      for (int k = 0; k < joint.nv(); ++k) used[joint.qvel + k] = 1;
      break;
    }
    case TransmissionType::tendon:
      for (int t = 0; t < tendons.size(); ++t) {
        if (tendons[t].name == spec.target) a.tendon = t;
      }
      if (a.tendon < 0) return refuse("tendon");
      for (const int v : tendons[a.tendon].dofs) used[v] = 1;
      break;
    case TransmissionType::site:
    case TransmissionType::slider_crank:
      a.site = site_frame(model, spec.target, spec.where);
      mark_dofs(model, a.site.link, used);
      a.has_reference = !spec.reference.empty();
      if (a.has_reference) {
        a.reference = site_frame(model, spec.reference, spec.where);
        std::vector<char> other(model.nv, 0);
        mark_dofs(model, a.reference.link, other);
        for (int v = 0; v < model.nv; ++v) {
          if (other[v] && used[v] && spec.transmission == TransmissionType::site) a.common.push_back(v);
          used[v] = used[v] || other[v];
        }
      }
      break;
    case TransmissionType::body:
    case TransmissionType::none: break;
  }
  for (int v = 0; v < model.nv; ++v) {
    if (used[v]) a.dofs.push_back(v);
  }
}

/// 2π |gear| if the length is purely that of a rotation and the law that of a position servo; else 0.
double servo_period(const Model& model, const Actuator& a, const std::string& kind) {
  const bool servo = a.motor ? !a.motor->electric
                             : kind != "dcmotor" && a.gain_law == ActuatorLaw::fixed &&
                                   a.bias_law == ActuatorLaw::affine && a.gain[0] != 0 && a.bias[1] == -a.gain[0];
  if (!servo) return 0;
  const auto turn = [&a](int k) { return 2 * kPi * norm(Vec3d{a.gear[k], a.gear[k + 1], a.gear[k + 2]}); };
  if (a.joint >= 0) return model.joints[a.joint].type == JointType::ball ? turn(0) : 0;
  const bool turns = a.transmission == TransmissionType::site && a.has_reference;
  return turns && a.gear[0] == 0 && a.gear[1] == 0 && a.gear[2] == 0 ? turn(3) : 0;
}

/// Computes length and moment of one transmission; adds the moment to a dense row.
class TransmissionWalk {
 public:
  TransmissionWalk(const Model& model, const LinkState<double>* links, std::span<const double> qpos, double* row)
      : model_(model), links_(links), qpos_(qpos), row_(row) {}

  double joint(const Actuator& a) {
    const Joint& joint = model_.joints[a.joint];
    if (joint.nv() == 1) {
      row_[joint.qvel] += a.gear[0];
      return a.gear[0] * qpos_[joint.qpos];
    }
    const int first = scalar_count(joint.type), q = joint.qpos + first, v = joint.qvel + first;
    const Quatd turn = normalized(unit(Quatd{qpos_[q], qpos_[q + 1], qpos_[q + 2], qpos_[q + 3]}));
    Vec3d axis{a.gear[first], a.gear[first + 1], a.gear[first + 2]};
    if (a.transmission == TransmissionType::joint_in_parent) axis = rotate(conjugate(turn), axis);
    for (int k = 0; k < 3; ++k) row_[v + k] += axis[k];
    for (int k = 0; k < first; ++k) row_[joint.qvel + k] += a.gear[k];
    return moves_freely(joint.type) ? 0 : dot(log_map(turn), axis);
  }

  double site(const Actuator& a) {
    const Transformd X = world_pose(links_, a.site);
    const Vec3d push{a.gear[0], a.gear[1], a.gear[2]}, twist{a.gear[3], a.gear[4], a.gear[5]};
    if (!a.has_reference) {
      add(a.site.link, X.p, X.R * push, X.R * twist, 1);
      return 0;
    }
    // A force between the two sites, each at its own position, along the reference's axes.
    const Transformd X_ref = world_pose(links_, a.reference);
    add(a.site.link, X.p, X_ref.R * push, X_ref.R * twist, 1);
    add(a.reference.link, X_ref.p, X_ref.R * push, X_ref.R * twist, -1);
    for (const int v : a.common) row_[v] = 0;  // DoFs that move both sites have no effect between them
    double length = dot(transpose_mul(X_ref.R, X.p - X_ref.p), push);
    if (norm(twist) > 0) length += dot(log_map(quaternion(transpose(X_ref.R) * X.R)), twist);
    return length;
  }

  /// l = a·v - √((a·v)² + r² - v·v), v from the slider to the crank's pin, a the slider's axis.
  double slider_crank(const Actuator& a) {
    const Transformd X = world_pose(links_, a.reference);
    const Vec3d pin = world_point(links_, a.site), axis = X.R.column_z(), v = pin - X.p;
    const double along = dot(axis, v), det = along * along + a.crank_length * a.crank_length - dot(v, v);
    Vec3d by_axis = v, by_vector = axis;
    double length = along;
    if (det > 0) {
      const double root = std::sqrt(det);
      length -= root;
      by_vector = axis * (1 - along / root) + v * (1 / root);
      by_axis = v * (1 - along / root);
    }
    add(a.site.link, pin, by_vector, {0, 0, 0}, a.gear[0]);
    add(a.reference.link, X.p, -by_vector, cross(axis, by_axis), a.gear[0]);
    return length * a.gear[0];
  }

 private:
  void add(int link, const Vec3d& point, const Vec3d& force, const Vec3d& torque, double scale) {
    add_generalized_force(model_, links_, link, point, force, torque, scale, row_);
  }

  const Model& model_;
  const LinkState<double>* links_;
  std::span<const double> qpos_;
  double* row_;
};

}  // namespace

ActuatorSet::ActuatorSet(const Model& model, const TendonSet& tendons) {
  for (const ActuatorSpec& spec : model.spec.actuators) add(model, tendons, spec);
  keep_ranges_apart();
  find_shared(tendons);
  find_unit_accelerations(model, tendons);
}

/// Servos on one joint are not plain if one of them has a range, because each must be clamped to its own.
void ActuatorSet::keep_ranges_apart() {
  struct Servos {
    int count = 0, limited = 0;
  };
  std::map<int, Servos> on;
  for (const Actuator& a : actuators_) {
    if (a.is_joint_servo()) ++on[a.joint].count, on[a.joint].limited += a.force_limited;
  }
  for (Actuator& a : actuators_) {
    if (a.is_joint_servo() && on[a.joint].count > 1 && on[a.joint].limited > 0) a.plain = plain_ = false;
  }
}

void ActuatorSet::find_shared(const TendonSet& tendons) {
  std::vector<int> on(tendons.size());
  for (const Actuator& a : actuators_) {
    if (a.tendon >= 0) on[a.tendon] += a.active;
  }
  for (Actuator& a : actuators_) a.shares_tendon = a.tendon >= 0 && on[a.tendon] > 1 && tendons[a.tendon].force_limited;
}

void ActuatorSet::add(const Model& model, const TendonSet& tendons, const ActuatorSpec& spec) {
  Actuator a;
  a.name = spec.name, a.transmission = spec.transmission;
  resolve_target(model, tendons, spec, a);
  a.crank_length = spec.crank_length, a.gear = spec.gear;
  a.gain_law = spec.gain_law, a.bias_law = spec.bias_law, a.gain = spec.gain, a.bias = spec.bias;
  a.muscle_gain = spec.muscle_gain, a.muscle_bias = spec.muscle_bias, a.length_range = spec.length_range;
  a.control_limited = spec.control_limited && model.spec.option.clamp_controls;
  a.control_range = spec.control_range, a.force_range = spec.force_range, a.activation_range = spec.activation_range;
  a.force_limited = spec.force_limited, a.activation_limited = spec.activation_limited;
  a.early = spec.activation_early;
  a.dynamics = activation_named(spec.dynamics);
  for (std::size_t k = 0; k < 3 && k < spec.dynamics_parameters.size(); ++k) a.time[k] = spec.dynamics_parameters[k];
  a.motor = spec.motor, a.more_control_ranges = spec.more_control_ranges;
  a.more_control_ranges.resize(4);
  if (!model.spec.option.clamp_controls) a.more_control_ranges.assign(4, {0, 0});
  a.ctrl = controls_, a.controls = spec.controls(), controls_ += a.controls;
  if (spec.activations() > 0) a.act = activations_;
  activations_ += spec.activations();
  a.period = servo_period(model, a, spec.kind);
  a.computed = spec.computed();
  a.active = a.computed && model.spec.option.actuation_enabled;
  a.where = spec.where;
  enabled_ = model.spec.option.actuation_enabled;
  const bool one_dof = a.joint >= 0 && model.joints[a.joint].nv() == 1;
  a.plain = one_dof &&
            (a.motor ? affine_torque(*a.motor) : a.is_affine() && a.gain[1] == 0 && a.dynamics != Activation::muscle);
  plain_ = plain_ && (a.plain || !a.active);
  needs_kinematics_ =
      needs_kinematics_ || a.transmission == TransmissionType::site || a.transmission == TransmissionType::slider_crank;
  limits_tendons_ = limits_tendons_ || (a.tendon >= 0 && tendons[a.tendon].force_limited);
  a.first = moments_;
  moments_ += int(a.dofs.size());
  actuators_.push_back(std::move(a));
}

bool ActuatorSet::scale(const Model& model, const ActuatorScales& factors) {
  if (!scaled_ && !factors.any()) return false;
  scaled_ = factors.any();
  for (std::size_t i = 0; i < actuators_.size(); ++i) {
    const ActuatorSpec& spec = model.spec.actuators[i];
    Actuator& a = actuators_[i];
    const auto factor = [i](std::span<const double> all) { return all.empty() ? 1 : all[i]; };
    const double gain = factor(factors.gain), damping = factor(factors.damping), force = factor(factors.force);
    const std::array<double, 3> each{gain, gain, damping};
    for (std::size_t k = 0; k < 3; ++k) a.gain[k] = each[k] * spec.gain[k], a.bias[k] = each[k] * spec.bias[k];
    for (std::size_t k = 0; k < 2; ++k) a.force_range[k] = force * spec.force_range[k];
  }
  return true;
}

void ActuatorSet::require_computed() const {
  Diagnostics errors;
  for (const Actuator& a : actuators_) {
    if (a.computed || !enabled_) continue;
    errors.push_back({Severity::error, a.where,
                      "the law of actuator \"" + a.name +
                          "\" is not computed; the model can be stepped without actuators (actuation off, or drives)"});
  }
  if (!errors.empty()) throw InputError(errors);
}

void ActuatorSet::find_unit_accelerations(const Model& model, const TendonSet& tendons) {
  const auto needs = [](const Actuator& a) {
    return (a.gain_law == ActuatorLaw::muscle && a.muscle_gain[2] < 0) ||
           (a.bias_law == ActuatorLaw::muscle && a.muscle_bias[2] < 0);
  };
  if (std::none_of(actuators_.begin(), actuators_.end(), needs)) return;
  ReferencePose pose(model, tendons, *this);
  for (Actuator& a : actuators_) {
    if (!needs(a)) continue;
    std::vector<double> row = pose.moment(a);
    pose.minv(row);
    a.unit_acceleration = std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
  }
}

void transmissions(const Model& model, const ActuatorSet& actuators, const TendonSet& tendons,
                   const LinkState<double>* links, std::span<const double> qpos, std::span<const double> tendon_length,
                   std::span<const double> tendon_arm, std::span<double> length, std::span<double> moment,
                   std::span<double> row) {
  check_size("qpos", qpos.size(), model.nq);
  check_size("length", length.size(), actuators.size());
  check_size("moment", moment.size(), actuators.moments());
  check_size("row", row.size(), model.nv);
  TransmissionWalk way(model, links, qpos, row.data());
  for (int i = 0; i < actuators.size(); ++i) {
    const Actuator& a = actuators[i];
    length[i] = 0;
    if (a.tendon >= 0) {
      const Tendon& tendon = tendons[a.tendon];
      length[i] = a.gear[0] * tendon_length[a.tendon];
      for (std::size_t k = 0; k < a.dofs.size(); ++k) moment[a.first + k] = a.gear[0] * tendon_arm[tendon.first + k];
      continue;
    }
    if (a.joint >= 0) length[i] = way.joint(a);
    if (a.transmission == TransmissionType::site) length[i] = way.site(a);
    if (a.transmission == TransmissionType::slider_crank) length[i] = way.slider_crank(a);
    for (std::size_t k = 0; k < a.dofs.size(); ++k) moment[a.first + k] = std::exchange(row[a.dofs[k]], 0.0);
  }
}

}  // namespace tarsus
