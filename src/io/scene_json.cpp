// A model as JSON for the viewer: shapes, their poses and colours, joints, loops, keyframes.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base64.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/io/page.hpp"
#include "tarsus/io/text_number.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/data.hpp"

namespace tarsus {

namespace {

using OrderedJson = nlohmann::ordered_json;
using Colour = std::array<float, 4>;

OrderedJson numbers(const Vec3d& v) { return {v.x, v.y, v.z}; }
OrderedJson numbers(const Quatd& q) { return {q.w, q.x, q.y, q.z}; }
OrderedJson numbers(const Colour& c) {
  OrderedJson out = OrderedJson::array();
  for (const float x : c) out.push_back(std::round(1e4 * x) / 1e4);
  return out;
}

std::string_view attribute(const CosmeticSpec& c, std::string_view name) {
  for (const auto& [key, value] : c.attributes) {
    if (key == name) return value;
  }
  return {};
}

const CosmeticSpec* find(const ModelSpec& spec, std::string_view kind, std::string_view name) {
  if (name.empty()) return nullptr;  // an empty name must not find an unnamed asset, such as a sky
  for (const CosmeticSpec& c : spec.cosmetics) {
    if (c.kind == kind && c.name == name) return &c;
  }
  return nullptr;
}

std::optional<Colour> colour(const CosmeticSpec* c, std::string_view name) {
  if (!c) return {};
  const auto values = parse_numbers(attribute(*c, name), Count::between(3, 4));
  if (!values) return {};
  Colour out{0, 0, 0, 1};
  std::copy(values.value.begin(), values.value.end(), out.begin());
  return out;
}

/// MuJoCo's rule: a geom's own colour unless it has the default one and a material. A material's texture lends its
/// first colour.
Colour colour_of(const ModelSpec& spec, const Colour& own, const std::string& material) {
  const Colour unset = GeomSpec().rgba;
  if (material.empty() || own != unset) return own;
  const CosmeticSpec* m = find(spec, "material", material);
  Colour out = colour(m, "rgba").value_or(Colour{1, 1, 1, 1});
  if (!m) return own;
  if (const auto texture = colour(find(spec, "texture", attribute(*m, "texture")), "rgb1")) {
    for (int k = 0; k < 3; ++k) out[k] *= (*texture)[k];
  }
  return out;
}

/// A height field as a mesh with two triangles a cell.
OrderedJson mesh_of(const HeightFieldSpec& field) {
  std::vector<float> vertices;
  std::vector<std::int32_t> triangles;
  const int rows = field.rows, columns = field.columns;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const std::size_t i = std::size_t(r) * columns + c;
      vertices.push_back(float(field.size[0] * (columns > 1 ? 2.0 * c / (columns - 1) - 1 : 0)));
      vertices.push_back(float(field.size[1] * (rows > 1 ? 2.0 * r / (rows - 1) - 1 : 0)));
      vertices.push_back(field.elevation.empty() ? 0 : float(field.size[2] * field.elevation[i]));
      if (r + 1 == rows || c + 1 == columns) continue;
      const std::int32_t a = std::int32_t(i), b = a + 1, d = a + columns, e = d + 1;
      triangles.insert(triangles.end(), {a, b, e, a, e, d});
    }
  }
  return {{"name", field.name}, {"vertices", base64<float>(vertices)}, {"triangles", base64<std::int32_t>(triangles)}};
}

OrderedJson mesh_of(const MeshSpec& mesh) {
  std::vector<float> vertices;
  std::vector<std::int32_t> triangles;
  for (const Vec3d& v : mesh.vertices) vertices.insert(vertices.end(), {float(v.x), float(v.y), float(v.z)});
  for (const auto& t : mesh.triangles) triangles.insert(triangles.end(), t.begin(), t.end());
  return {{"name", mesh.name}, {"vertices", base64<float>(vertices)}, {"triangles", base64<std::int32_t>(triangles)}};
}

class SceneBuilder {
 public:
  explicit SceneBuilder(const Model& model) : model_(model), data_(model) {
    kinematics<double>(model, data_, model.qpos0);
  }

  std::string text() {
    OrderedJson scene{{"name", model_.name}, {"gravity", numbers(model_.gravity)}, {"timestep", model_.timestep}};
    scene["bodies"] = scene["shapes"] = scene["meshes"] = scene["joints"] = scene["loops"] = OrderedJson::array();
    for (int i = 0; i < model_.nbody(); ++i) add_body(scene, i);
    for (const Joint& j : model_.joints) add_joint(scene, j);
    for (const EqualitySpec& e : model_.spec.equalities) add_loop(scene, e);
    scene["keyframes"] = OrderedJson::array();
    for (const KeyframeSpec& k : model_.spec.keyframes) scene["keyframes"].push_back(k.name);
    scene["meshes"] = std::move(meshes_);
    return scene.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }

 private:
  void add_body(OrderedJson& scene, int i) {
    const Body& b = model_.bodies[i];
    const Sym3d& I = b.inertia;
    scene["bodies"].push_back({{"name", b.name},
                               {"parent", b.parent},
                               {"link", b.link},
                               {"mass", b.mass},
                               {"com", numbers(b.com)},
                               {"inertia", {I.xx, I.xy, I.xz, I.yy, I.yz, I.zz}}});
    const std::vector<GeomSpec>& geoms = model_.spec.bodies[i].geoms;
    const bool has_looks = std::any_of(geoms.begin(), geoms.end(), [](const GeomSpec& g) { return g.visual_only; });
    for (const GeomSpec& g : geoms) add_shape(scene, i, g, has_looks);
  }

  void add_shape(OrderedJson& scene, int body, const GeomSpec& g, bool body_has_looks) {
    OrderedJson shape{{"body", body}, {"type", name(g.type)}, {"size", numbers(g.size)}};
    if (g.type == GeomType::sdf) return;
    if (g.type == GeomType::mesh || g.type == GeomType::height_field) {
      const int mesh = g.type == GeomType::mesh ? mesh_index(g.mesh) : field_index(g.height_field);
      if (mesh < 0) return;
      shape["type"] = "mesh", shape["mesh"] = mesh;
    }
    if (!g.name.empty()) shape["name"] = g.name;
    shape["position"] = numbers(g.position), shape["orientation"] = numbers(g.orientation);
    shape["rgba"] = numbers(colour_of(model_.spec, g.rgba, g.material));
    // Shown at first are groups 0 to 2, as in MuJoCo's viewer, and of a URDF link with visuals only those.
    if (g.group > 2 || (body_has_looks && !g.visual_only)) shape["hidden"] = true;
    scene["shapes"].push_back(std::move(shape));
  }

  void add_joint(OrderedJson& scene, const Joint& j) {
    OrderedJson joint{{"name", j.name}, {"type", name(j.type)}, {"body", j.body}, {"qpos", j.qpos}, {"qvel", j.qvel}};
    joint["axis"] = numbers(j.axis), joint["position"] = numbers(j.position);
    if (j.limited) joint["range"] = j.range;
    scene["joints"].push_back(std::move(joint));
  }

  /// The point where a loop closure connects two bodies at qpos0, in both bodies' frames.
  void add_loop(OrderedJson& scene, const EqualitySpec& e) {
    if (e.type != EqualityType::connect && e.type != EqualityType::weld) return;
    const auto [a, site_a] = attached(e, e.first);
    const auto [b, site_b] = attached(e, e.second);
    if (a < 0 || b < 0) return;
    const Transformd X_a = body_pose<double>(model_, data_, a), X_b = body_pose<double>(model_, data_, b);
    const bool in_second = e.type == EqualityType::weld && !e.sites;
    const Vec3d world = in_second ? X_b.R * e.anchor + X_b.p : X_a.R * (e.sites ? site_a : e.anchor) + X_a.p;
    const Vec3d other = e.sites ? X_b.R * site_b + X_b.p : world;
    scene["loops"].push_back(
        {{"name", e.name},
         {"bodies", {a, b}},
         {"points", {numbers(transpose_mul(X_a.R, world - X_a.p)), numbers(transpose_mul(X_b.R, other - X_b.p))}}});
  }

  std::pair<int, Vec3d> attached(const EqualitySpec& e, const std::string& what) const {
    if (!e.sites) return {what.empty() ? 0 : model_.find_body(what), Vec3d{0, 0, 0}};
    for (std::size_t i = 0; i < model_.spec.bodies.size(); ++i) {
      for (const SiteSpec& s : model_.spec.bodies[i].sites) {
        if (s.name == what) return {int(i), s.position};
      }
    }
    return {-1, Vec3d{0, 0, 0}};
  }

  int mesh_index(const std::string& mesh) {
    for (const MeshSpec& m : model_.spec.meshes) {
      if (m.name == mesh) return m.triangles.empty() ? -1 : add_mesh("mesh " + mesh, m);
    }
    return -1;
  }
  int field_index(const std::string& field) {
    for (const HeightFieldSpec& f : model_.spec.height_fields) {
      if (f.name == field) return f.rows < 2 || f.columns < 2 ? -1 : add_mesh("field " + field, f);
    }
    return -1;
  }
  /// Adds a mesh once, however many geoms use it, and returns its index.
  template <class Asset>
  int add_mesh(const std::string& key, const Asset& asset) {
    const int index = int(std::find(keys_.begin(), keys_.end(), key) - keys_.begin());
    if (index == int(keys_.size())) keys_.push_back(key), meshes_.push_back(mesh_of(asset));
    return index;
  }

  const Model& model_;
  Data data_;
  std::vector<std::string> keys_;
  OrderedJson meshes_ = OrderedJson::array();
};

}  // namespace

std::string scene_json(const Model& model) { return SceneBuilder(model).text(); }

}  // namespace tarsus
