#include "tarsus/model/joint_parts.hpp"

#include <cmath>

#include "tarsus/base/number_text.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

namespace {

std::string axis_text(const Vec3d& v) { return number_text(v.x) + " " + number_text(v.y) + " " + number_text(v.z); }

bool is_unit(const Vec3d& v) { return std::abs(norm(v) - 1) <= 1e-9; }  // false for nan

/// Reason why a chain is invalid; empty if it is valid.
std::string objection(const JointSpec& joint) {
  const JointTraits& t = traits(joint.type);
  if (!is_unit(joint.axis)) return "axis is " + axis_text(joint.axis) + ", expected a unit vector";
  const bool own = !(norm(joint.second_axis) == 0);
  if (own && t.axes < 2) return std::string("a ") + t.name + " joint cannot have a second axis";
  if (own && (!is_unit(joint.second_axis) || std::abs(dot(joint.axis, joint.second_axis)) > 1e-9))
    return "second axis is " + axis_text(joint.second_axis) + ", expected a unit vector perpendicular to the first";
  if (joint.reference != 0 || joint.spring_reference != 0)
    return std::string("a ") + t.name + " joint cannot have a reference position: only its parts can";
  if (joint.limited && t.translations > 0 && t.translations < t.scalars)
    return std::string("a ") + t.name + " joint cannot have a range: some of its parts turn and some slide";
  return "";
}

/// Axes 0, 1, 2 of a chain. If the second axis is not given, it is x rotated by the shortest rotation from z to the
/// first.
std::array<Vec3d, 3> chain_axes(const JointSpec& joint) {
  const auto unit = [](const Vec3d& v) { return v * (1 / norm(v)); };
  if (norm(joint.second_axis) > 0) return {joint.second_axis, unit(cross(joint.axis, joint.second_axis)), joint.axis};
  const Mat3d frame = rotation(between({0, 0, 1}, joint.axis));
  return {unit(frame.column_x()), unit(frame.column_y()), joint.axis};
}

}  // namespace

std::vector<JointSpec> joint_parts(const JointSpec& joint, Diagnostics& errors) {
  const JointTraits& t = traits(joint.type);
  if (t.part_count == 0) {
    if (!(norm(joint.second_axis) == 0))
      errors.push_back({Severity::error, joint.where,
                        "joint \"" + joint.name + "\": a " + t.name + " joint cannot have a second axis"});
    return {joint};
  }
  if (const std::string what = objection(joint); !what.empty()) {
    errors.push_back({Severity::error, joint.where, "joint \"" + joint.name + "\": " + what});
    return {};
  }
  const std::array<Vec3d, 3> axes = chain_axes(joint);
  std::vector<JointSpec> out(std::size_t(t.part_count), joint);
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k].type = t.parts[k].type;
    out[k].axis = axes[std::size_t(t.parts[k].axis)];
    out[k].second_axis = {0, 0, 0};
    if (!joint.name.empty()) out[k].name += t.parts[k].suffix;
  }
  return out;
}

void split_chains(ModelSpec& spec) {
  Diagnostics errors;
  for (BodySpec& body : spec.bodies) {
    std::vector<JointSpec> parts;
    for (const JointSpec& joint : body.joints) {
      for (JointSpec& part : joint_parts(joint, errors)) parts.push_back(std::move(part));
    }
    body.joints = std::move(parts);
  }
  if (!errors.empty()) throw InputError(errors);
}

ModelSpec without_chains(ModelSpec spec) {
  split_chains(spec);
  return spec;
}

void append_drawn_qpos(const JointSpec& joint, const Vec3d& position, const Quatd& orientation,
                       std::vector<double>& qpos) {
  const Vec3d& p = position;
  const Quatd q = moves_freely(joint.type) ? orientation : Quatd{1, 0, 0, 0};
  if (moves_freely(joint.type)) qpos.insert(qpos.end(), {p.x, p.y, p.z});
  if (has_rotation(joint.type)) qpos.insert(qpos.end(), {q.w, q.x, q.y, q.z});
  if (has_axis(joint.type)) qpos.push_back(joint.reference);
}

}  // namespace tarsus
