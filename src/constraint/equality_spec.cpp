// The equalities of a model's spec (MJCF <equality>, URDF <mimic>) as an EqualitySet.
#include <algorithm>
#include <cmath>

#include "tarsus/constraint/equality.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

namespace {

/// A frame fixed to a body: the body's own, or a site's.
struct Frame {
  int body = 0;
  Transformd X{identity3<double>(), {0, 0, 0}};  ///< in the body's frame
};

Frame find_frame(const Model& model, const EqualitySpec& spec, const std::string& name) {
  if (!spec.sites) {
    const int body = name.empty() ? 0 : model.find_body(name);
    if (body < 0) throw InputError(spec.where, "equality \"" + spec.name + "\": there is no body \"" + name + "\"");
    return {body, {identity3<double>(), {0, 0, 0}}};
  }
  for (std::size_t b = 0; b < model.spec.bodies.size(); ++b) {
    for (const SiteSpec& site : model.spec.bodies[b].sites) {
      if (site.name == name) return {int(b), {rotation(normalized(site.orientation)), site.position}};
    }
  }
  throw InputError(spec.where, "equality \"" + spec.name + "\": there is no site \"" + name + "\"");
}

int find_joint(const Model& model, const EqualitySpec& spec, const std::string& name) {
  const int joint = model.find_joint(name);
  if (joint < 0) throw InputError(spec.where, "equality \"" + spec.name + "\": there is no joint \"" + name + "\"");
  return joint;
}

/// Length of a fixed tendon: its terms by joint.
struct Tendon {
  std::vector<std::pair<int, double>> terms;
  double length(const Model& model, std::span<const double> q) const {
    double sum = 0;
    for (const auto& [joint, coefficient] : terms) sum += coefficient * q[model.joints[joint].qpos];
    return sum;
  }
};

Tendon find_tendon(const Model& model, const EqualitySpec& spec, const std::string& name) {
  if (name.empty()) return {};
  for (const TendonSpec& t : model.spec.tendons) {
    if (t.name != name) continue;
    if (t.spatial)
      throw InputError(spec.where, "equality \"" + spec.name + "\": tendon \"" + name +
                                       "\" is a path through sites, which is not simulated");
    Tendon tendon;
    for (const TendonSpec::Term& term : t.terms) {
      const int joint = find_joint(model, spec, term.joint);
      if (model.joints[joint].nv() != 1)
        throw InputError(spec.where,
                         "equality \"" + spec.name + "\": joint \"" + term.joint + "\" is no hinge or slide");
      tendon.terms.push_back({joint, term.coefficient});
    }
    return tendon;
  }
  throw InputError(spec.where, "equality \"" + spec.name + "\": there is no tendon \"" + name + "\"");
}

}  // namespace

int EqualitySet::add_spec_pair(const EqualitySpec& spec) {
  const Frame a = find_frame(*model_, spec, spec.first), b = find_frame(*model_, spec, spec.second);
  Data data(*model_);
  kinematics<double>(*model_, data, model_->qpos0);  // what is not given is as in the pose that the file draws
  const Transformd X_AB = inverse(body_pose(*model_, data, a.body)) * body_pose(*model_, data, b.body);
  if (spec.type == EqualityType::connect) {
    if (spec.sites) return add_connect(spec.name, a.body, a.X.p, b.body, b.X.p);
    const Transformd X_BA = inverse(X_AB);
    return add_connect(spec.name, a.body, spec.anchor, b.body, X_BA.R * spec.anchor + X_BA.p);
  }
  if (spec.sites) return add_weld(spec.name, a.body, b.body, a.X * inverse(b.X), spec.torque_scale, b.X.p);
  if (!spec.has_relative_pose) return add_weld(spec.name, a.body, b.body, X_AB, spec.torque_scale, spec.anchor);
  const Mat3d R = rotation(normalized(spec.relative_orientation));
  return add_weld(spec.name, a.body, b.body, {R, spec.relative_position - R * spec.anchor}, spec.torque_scale,
                  spec.anchor);
}

int EqualitySet::add_spec_joint(const EqualitySpec& spec) {
  const int first = find_joint(*model_, spec, spec.first);
  return add_joint(spec.name, first, spec.second.empty() ? -1 : find_joint(*model_, spec, spec.second),
                   spec.polynomial);
}

int EqualitySet::add_spec_tendon(const EqualitySpec& spec) {
  const Tendon a = find_tendon(*model_, spec, spec.first), b = find_tendon(*model_, spec, spec.second);
  UserRows rows;
  for (const Tendon* t : {&a, &b}) {
    for (const auto& term : t->terms) rows.joints.push_back(term.first);
  }
  std::vector<int> order(rows.joints);
  std::sort(order.begin(), order.end());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  rows.evaluate = [m = model_, a, b, order, c = spec.polynomial](std::span<const double> q, std::span<const double> v,
                                                                 std::span<double> phi, std::span<double> J,
                                                                 std::span<double> Jdot_v) {
    const Model& model = *m;
    const double x = b.length(model, q) - b.length(model, model.qpos0);
    const double value = c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * c[4])));
    const double slope = c[1] + x * (2 * c[2] + x * (3 * c[3] + x * 4 * c[4])),
                 bend = 2 * c[2] + x * (6 * c[3] + x * 12 * c[4]);
    phi[0] = a.length(model, q) - a.length(model, model.qpos0) - (b.terms.empty() ? c[0] : value);
    std::fill(J.begin(), J.end(), 0.0);
    const auto place = [&](int joint) { return std::lower_bound(order.begin(), order.end(), joint) - order.begin(); };
    for (const auto& [joint, k] : a.terms) J[place(joint)] += k;
    for (const auto& [joint, k] : b.terms) J[place(joint)] -= slope * k;
    if (v.empty()) return;
    double speed = 0;
    for (const auto& [joint, k] : b.terms) speed += k * v[model.joints[joint].qvel];
    Jdot_v[0] = -bend * speed * speed;
  };
  const int index = add_user(spec.name, std::move(rows));
  equalities_[index].kind = EqualityKind::tendon;
  return index;
}

int EqualitySet::add_from_spec(int index) {
  const EqualitySpec& spec = model_->spec.equalities.at(index);
  int added = -1;
  try {
    switch (spec.type) {
      case EqualityType::connect:
      case EqualityType::weld: added = add_spec_pair(spec); break;
      case EqualityType::joint: added = add_spec_joint(spec); break;
      case EqualityType::tendon: added = add_spec_tendon(spec); break;
      case EqualityType::distance:
        throw InputError(spec.where, "equality \"" + spec.name + "\": distance between shapes is not supported");
    }
  } catch (const ValueError& e) {
    throw InputError(spec.where, e.what());
  }
  equalities_[added].where = spec.where;
  equalities_[added].solver_reference = spec.solver_reference,
  equalities_[added].solver_impedance = spec.solver_impedance;
  return added;
}

EqualitySet EqualitySet::of(const Model& model) {
  EqualitySet set(model);
  Diagnostics errors;
  for (std::size_t i = 0; i < model.spec.equalities.size(); ++i) {
    if (!model.spec.equalities[i].active) continue;
    try {
      set.add_from_spec(int(i));
    } catch (const InputError& e) {
      errors.insert(errors.end(), e.diagnostics().begin(), e.diagnostics().end());
    }
  }
  if (!errors.empty()) throw InputError(errors);
  return set;
}

}  // namespace tarsus
