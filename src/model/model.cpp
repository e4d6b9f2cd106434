#include "tarsus/model/model.hpp"

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
