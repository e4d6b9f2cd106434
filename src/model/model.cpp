#include "tarsus/model/model.hpp"

#include <algorithm>

#include "tarsus/base/index.hpp"

namespace tarsus {

const char* name(GeomType type) {
  switch (type) {
    case GeomType::plane: return "plane";
    case GeomType::sphere: return "sphere";
    case GeomType::capsule: return "capsule";
    case GeomType::ellipsoid: return "ellipsoid";
    case GeomType::cylinder: return "cylinder";
    case GeomType::box: return "box";
    case GeomType::mesh: return "mesh";
    case GeomType::height_field: return "hfield";
    case GeomType::sdf: return "sdf";
  }
  return "unknown";
}

double Model::total_mass() const {
  double sum = 0;
  for (const Body& body : bodies) sum += body.mass;
  return sum;
}

namespace {

template <class Items>
int find_or_throw(const Items& items, std::string_view name, const char* kind) {
  const int index = index_of(items, name);
  if (index >= 0) return index;
  std::string known;
  for (std::size_t i = 0; i < items.size() && i < 40; ++i) known += (i ? ", " : "") + items[i].name;
  throw ValueError(kind, "\"" + std::string(name) + "\"", "one of: " + known);
}

}  // namespace

int Model::find_body(std::string_view name) const { return index_of(bodies, name); }
std::vector<std::string> Model::control_names() const {
  std::vector<std::string> names;
  for (const ActuatorSpec& a : spec.actuators) {
    if (a.controls() == 1) {
      names.push_back(a.name);
      continue;
    }
    if (a.motor->position) names.push_back(a.name + ".pos");
    if (a.motor->velocity) names.push_back(a.name + ".vel");
    if (a.motor->feedforward) names.push_back(a.name + ".ff");
    if (a.motor->voltage) names.push_back(a.name + ".voltage");
  }
  return names;
}

int Model::find_joint(std::string_view name) const { return index_of(joints, name); }
int Model::body_id(std::string_view name) const { return find_or_throw(bodies, name, "body"); }
int Model::joint_id(std::string_view name) const { return find_or_throw(joints, name, "joint"); }

Model model_of_trees(const Model& model, std::span<const int> roots) {
  Model out;
  out.gravity = model.gravity, out.timestep = model.timestep;
  std::vector<int> parent;
  std::vector<JointType> type;
  const auto append = [](auto& to, const auto& from, int first, int count) {
    to.insert(to.end(), from.begin() + first, from.begin() + first + count);
  };
  for (const int root : roots) {
    const int shift = int(out.joints.size()) - root;
    const Joint& first = model.joints[std::size_t(root)];
    const int q = out.nq - first.qpos, v = out.nv - first.qvel;
    for (int i = root; i < model.njoint() && (i == root || model.joints[std::size_t(i)].parent >= 0); ++i) {
      const Joint& from = model.joints[std::size_t(i)];
      Joint joint;
      joint.type = from.type, joint.parent = from.parent < 0 ? -1 : from.parent + shift;
      joint.qpos = from.qpos + q, joint.qvel = from.qvel + v;
      const auto renumber = [&](auto link) {
        link.parent = joint.parent, link.root += shift, link.qpos = joint.qpos, link.qvel = joint.qvel;
        return link;
      };
      out.links_.push_back(renumber(model.links_[std::size_t(i)]));
      out.links_float_.push_back(renumber(model.links_float_[std::size_t(i)]));
      out.depth = std::max(out.depth, out.links_.back().depth);
      out.dof_joint.insert(out.dof_joint.end(), std::size_t(from.nv()), out.njoint());
      append(out.qpos0, model.qpos0, from.qpos, from.nq()),
          append(out.qpos_spring, model.qpos_spring, from.qpos, from.nq());
      append(out.qpos_spring_float_, model.qpos_spring_float_, from.qpos, from.nq());
      append(out.armature, model.armature, from.qvel, from.nv());
      append(out.armature_float_, model.armature_float_, from.qvel, from.nv());
      append(out.carried_inertia, model.carried_inertia, from.qvel, from.nv());
      out.nq += from.nq(), out.nv += from.nv();
      parent.push_back(joint.parent), type.push_back(joint.type);
      out.joints.push_back(std::move(joint));
    }
  }
  out.inward_ = inward_groups(parent, type);
  return out;
}

template <>
ModelView<double> Model::view<double>() const {
  return {njoint(),
          nq,
          nv,
          links_.data(),
          armature.data(),
          qpos_spring.data(),
          {gravity.x, gravity.y, gravity.z},
          int(inward_.size()),
          inward_.data()};
}
template <>
ModelView<float> Model::view<float>() const {
  return {njoint(),
          nq,
          nv,
          links_float_.data(),
          armature_float_.data(),
          qpos_spring_float_.data(),
          {float(gravity.x), float(gravity.y), float(gravity.z)},
          int(inward_.size()),
          inward_.data()};
}

}  // namespace tarsus
