// Model, its bodies and its joints.
#include "tarsus/model/model.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <iterator>
#include <limits>
#include <optional>

#include "bindings.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/io/urdf.hpp"
#include "tarsus/io/xml.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/sim/rigid_model.hpp"

namespace tarsus::python {

using namespace nb::literals;

namespace {

/// A joint or body of a model; keeps the model alive.
struct JointRef {
  nb::object owner;
  const Model* model;
  int id;
  const Joint* operator->() const { return &model->joints[id]; }
};
struct BodyRef {
  nb::object owner;
  const Model* model;
  int id;
  const Body* operator->() const { return &model->bodies[id]; }
};
/// A site of a model; keeps the model alive.
struct SiteRef {
  nb::object owner;
  const SiteSpec* spec;
  int id, body;
  const SiteSpec* operator->() const { return spec; }
};

/// @throws nb::type_error
long long whole_number(nb::handle key, const char* kind) {
  long long id = 0;
  if (nb::try_cast(key, id)) return id;
  throw nb::type_error(
      (std::string(kind) + ": is of type " + nb::type_name(key.type()).c_str() + ", expected a name or an index")
          .c_str());
}

int index_of(nb::handle key, const char* kind, int n, int (Model::*find)(std::string_view) const, const Model& model) {
  if (nb::isinstance<nb::str>(key)) return (model.*find)(nb::cast<std::string>(key));
  const long long id = whole_number(key, kind);
  if (id < 0 || id >= n) throw ValueError(kind, std::to_string(id), "an index from 0 and below " + std::to_string(n));
  return int(id);
}

JointRef joint(nb::handle self, nb::handle key) {
  const Model& model = nb::cast<const Model&>(self);
  return {nb::borrow(self), &model, joint_index(model, key)};
}
BodyRef body(nb::handle self, nb::handle key) {
  const Model& model = nb::cast<const Model&>(self);
  return {nb::borrow(self), &model, body_index(model, key)};
}

/// All sites, body by body.
std::vector<SiteRef> sites(nb::handle self) {
  std::vector<SiteRef> out;
  const std::vector<BodySpec>& bodies = nb::cast<const Model&>(self).spec.bodies;
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    for (const SiteSpec& site : bodies[b].sites) out.push_back({nb::borrow(self), &site, int(out.size()), int(b)});
  }
  return out;
}
SiteRef site(nb::handle self, nb::handle key) {
  const std::vector<SiteRef> all = sites(self);
  if (!nb::isinstance<nb::str>(key)) {
    const long long id = whole_number(key, "site");
    if (id >= 0 && id < std::ssize(all)) return all[std::size_t(id)];
    throw ValueError("site", std::to_string(id), "an index from 0 and below " + std::to_string(all.size()));
  }
  const std::string name = nb::cast<std::string>(key);
  std::string known;
  for (const SiteRef& one : all) {
    if (one->name == name) return one;
    if (one.id < 40) known += (one.id ? ", " : "") + one->name;
  }
  throw ValueError("site", "\"" + name + "\"", all.empty() ? "a model that has sites" : "one of: " + known);
}

ReadOptions read_options(bool lenient, bool fix_balance, bool disable_includes, bool floating_base,
                         std::vector<std::filesystem::path> package_paths) {
  ReadOptions options;
  options.lenient = lenient;
  options.fix_balance = fix_balance;
  options.disable_includes = disable_includes;
  options.floating_base = floating_base;
  options.package_paths = std::move(package_paths);
  return options;
}

}  // namespace

Model load_model(const std::filesystem::path& path, const ReadOptions& options) {
  const std::optional<RigidScene> scene = scene_unless_file(path);
  if (!scene) return compile(read_model(path, options));
  if (options.lenient || options.fix_balance || options.floating_base || !options.package_paths.empty())
    throw ValueError("lenient, fix_balance, floating_base or package_paths", "given",
                     "a model file, to which these options apply");
  return compile(scene_spec(*scene));
}

namespace {

Model load(const std::filesystem::path& path, bool lenient, bool fix_balance, bool disable_includes, bool floating_base,
           std::vector<std::filesystem::path> package_paths) {
  const ReadOptions options =
      read_options(lenient, fix_balance, disable_includes, floating_base, std::move(package_paths));
  nb::gil_scoped_release release;
  return load_model(path, options);
}

Model from_xml_string(std::string text, const std::filesystem::path& directory, const std::string& name, bool lenient,
                      bool fix_balance, bool disable_includes, bool floating_base,
                      std::vector<std::filesystem::path> package_paths) {
  const ReadOptions options =
      read_options(lenient, fix_balance, disable_includes, floating_base, std::move(package_paths));
  nb::gil_scoped_release release;
  std::string root;
  {
    DiagnosticSink unused;  // the reader parses again and reports the findings
    root = XmlDocument::parse(text, name, unused).root().name();
  }
  if (root == "robot") return compile(parse_urdf(std::move(text), name, directory, options));
  if (root == "mujoco") return compile(parse_mjcf(std::move(text), name, directory, options));
  throw InputError(Location{name, 0, 0, {}},
                   "the root element <" + root + "> is neither <mujoco> (MJCF) nor <robot> (URDF)");
}

/// A new array of the model's numbers, read-only because writing to the copy would not change the model.
template <class Values>
nb::object fixed(const Values& values, const Shape& shape) {
  using E = std::decay_t<decltype(*values.begin())>;
  return own_array<E, const E>(AlignedVector<E>(values.begin(), values.end()), shape);
}

/// A new array with f(item), of shape `inner`, for each item.
template <class Items, class F>
nb::object gather(const Items& items, Shape inner, F f) {
  AlignedVector<double> values;
  for (const auto& item : items) {
    for (double x : f(item)) values.push_back(x);
  }
  inner.insert(inner.begin(), items.size());
  return fixed(values, inner);
}
template <class Items, class F>
nb::object gather_int(const Items& items, F f) {
  AlignedVector<int> values;
  for (const auto& item : items) values.push_back(f(item));
  return fixed(values, {items.size()});
}
template <class Items>
std::vector<std::string> names(const Items& items) {
  std::vector<std::string> out;
  for (const auto& item : items) out.push_back(item.name);
  return out;
}

std::array<double, 3> numbers(const Vec3d& v) { return {v.x, v.y, v.z}; }
std::array<double, 9> numbers(const Sym3d& s) { return {s.xx, s.xy, s.xz, s.xy, s.yy, s.yz, s.xz, s.yz, s.zz}; }

nb::object view_of(const std::vector<double>& values, nb::handle self) {
  return view_array(values.data(), {values.size()}, self);
}

void bind_joint(nb::module_& m) {
  nb::class_<JointRef> c(m, "Joint", "A joint of a model. It moves the link of the same index. SI units, radians.");
  copies_are_itself(c);
  c.def_ro("id", &JointRef::id, "Index in model.joints, and index of the link that it moves.")
      .def_prop_ro(
          "name", [](const JointRef& j) { return j->name; }, "Name in the file; may be empty.")
      .def_prop_ro(
          "type", [](const JointRef& j) { return name(j->type); }, "'free', 'ball', 'slide' or 'hinge'.")
      .def_prop_ro(
          "body",
          [](const JointRef& j) {
            return BodyRef{j.owner, j.model, j->body};
          },
          "The body to which it belongs.")
      .def_prop_ro(
          "parent", [](const JointRef& j) { return j->parent; }, "Index of the parent link, -1 for the world.")
      .def_prop_ro(
          "qpos", [](const JointRef& j) { return nb::slice(j->qpos, j->qpos + j->nq(), 1); },
          "Slice of the joint's coordinates in qpos: data.qpos[joint.qpos].")
      .def_prop_ro(
          "qvel", [](const JointRef& j) { return nb::slice(j->qvel, j->qvel + j->nv(), 1); },
          "Slice of the joint's degrees of freedom in qvel, qacc and tau.")
      .def_prop_ro(
          "nq", [](const JointRef& j) { return j->nq(); }, "Number of coordinates in qpos.")
      .def_prop_ro(
          "nv", [](const JointRef& j) { return j->nv(); }, "Number of degrees of freedom in qvel.")
      .def_prop_ro(
          "axis", [](const JointRef& j) { return fixed(numbers(j->axis), {3}); },
          nb::sig("def axis(self) -> numpy.ndarray"), "[3] unit vector in the body frame; for hinge and slide.")
      .def_prop_ro(
          "position", [](const JointRef& j) { return fixed(numbers(j->position), {3}); },
          nb::sig("def position(self) -> numpy.ndarray"), "[3] anchor in the body frame [m].")
      .def_prop_ro(
          "reference", [](const JointRef& j) { return j->reference; }, "qpos in the model file's pose [rad | m].")
      .def_prop_ro(
          "spring_reference", [](const JointRef& j) { return j->spring_reference; },
          "qpos at which the joint's spring is at rest [rad | m].")
      .def_prop_ro(
          "stiffness", [](const JointRef& j) { return j->stiffness; }, "Spring stiffness [N m/rad | N/m].")
      .def_prop_ro(
          "damping", [](const JointRef& j) { return j->damping; }, "Viscous damping [N m s/rad | N s/m].")
      .def_prop_ro(
          "armature", [](const JointRef& j) { return j->armature; }, "Added to the diagonal of M [kg m² | kg].")
      .def_prop_ro(
          "friction_loss", [](const JointRef& j) { return j->friction_loss; }, "Dry friction [N m | N].")
      .def_prop_ro(
          "limited", [](const JointRef& j) { return j->limited; }, "Whether `range` applies.")
      .def_prop_ro(
          "range", [](const JointRef& j) { return fixed(j->range, {2}); }, nb::sig("def range(self) -> numpy.ndarray"),
          "[2] limits of qpos [rad | m].")
      .def_prop_ro(
          "force_limited", [](const JointRef& j) { return j->force_limited; }, "Whether `force_range` applies.")
      .def_prop_ro(
          "force_range", [](const JointRef& j) { return fixed(j->force_range, {2}); },
          nb::sig("def force_range(self) -> numpy.ndarray"), "[2] limits of the joint's actuator force [N m | N].")
      .def("__repr__", [](const JointRef& j) {
        return "<tarsus.Joint " + std::to_string(j.id) + " '" + j->name + "' (" + name(j->type) + ")>";
      });
}

void bind_body(nb::module_& m) {
  nb::class_<BodyRef> c(m, "Body", "A body of a model. SI units.");
  copies_are_itself(c);
  c.def_ro("id", &BodyRef::id, "Index in model.bodies; the world is 0.")
      .def_prop_ro(
          "name", [](const BodyRef& b) { return b->name; }, "Name in the file; may be empty.")
      .def_prop_ro(
          "parent", [](const BodyRef& b) { return b->parent; }, "Index of the parent body.")
      .def_prop_ro(
          "link", [](const BodyRef& b) { return b->link; },
          "Link (joint index) to which the body is fixed, -1 if fixed to the world.")
      .def_prop_ro(
          "joints",
          [](const BodyRef& b) {
            nb::list list;
            for (int i = 0; i < b->joint_count; ++i) list.append(JointRef{b.owner, b.model, b->joint_first + i});
            return list;
          },
          nb::sig("def joints(self) -> list[Joint]"), "The body's own joints, in the order in which they act.")
      .def_prop_ro(
          "mass", [](const BodyRef& b) { return b->mass; }, "[kg].")
      .def_prop_ro(
          "com", [](const BodyRef& b) { return fixed(numbers(b->com), {3}); },
          nb::sig("def com(self) -> numpy.ndarray"), "[3] centre of mass, body frame [m].")
      .def_prop_ro(
          "inertia",
          [](const BodyRef& b) {
            return fixed(numbers(b->inertia), {3, 3});
          },
          nb::sig("def inertia(self) -> numpy.ndarray"), "[3][3] inertia about the centre of mass, body axes [kg m²].")
      .def_prop_ro(
          "pose_in_link", [](const BodyRef& b) { return nb::make_tuple(to_numpy(b->X_LB.R), to_numpy(b->X_LB.p)); },
          nb::sig("def pose_in_link(self) -> tuple[numpy.ndarray, numpy.ndarray]"),
          "(rotation [3][3], position [3]) of the body frame in its link's frame (for link -1: in the world).")
      .def("__repr__", [](const BodyRef& b) { return "<tarsus.Body " + std::to_string(b.id) + " '" + b->name + "'>"; });
}

void bind_site(nb::module_& m) {
  nb::class_<SiteRef> c(m, "Site", "A site of a model: a frame fixed to a body. site_pose() is its pose in the world.");
  copies_are_itself(c);
  c.def_ro("id", &SiteRef::id, "Index in model.sites.")
      .def_ro("body", &SiteRef::body, "Index of the body that carries it.")
      .def_prop_ro(
          "name", [](const SiteRef& s) { return s->name; }, "Name in the file; may be empty.")
      .def_prop_ro(
          "position", [](const SiteRef& s) { return fixed(numbers(s->position), {3}); },
          nb::sig("def position(self) -> numpy.ndarray"), "[3] in the body frame [m].")
      .def_prop_ro(
          "rotation", [](const SiteRef& s) { return to_numpy(rotation(normalized(s->orientation))); },
          nb::sig("def rotation(self) -> numpy.ndarray"), "[3][3] the site's axes as columns, body frame.")
      .def("__repr__", [](const SiteRef& s) { return "<tarsus.Site " + std::to_string(s.id) + " '" + s->name + "'>"; });
}

void bind_arrays(nb::class_<Model>& c) {
  c.def_prop_ro(
      "gravity", [](nb::handle self) { return view_array(&nb::cast<const Model&>(self).gravity.x, {3}, self); },
      nb::sig("def gravity(self) -> numpy.ndarray"), "[3] acceleration of gravity; read-only [m/s²].");
  c.def_prop_ro(
      "qpos0", [](nb::handle self) { return view_of(nb::cast<const Model&>(self).qpos0, self); },
      nb::sig("def qpos0(self) -> numpy.ndarray"), "[nq] pose of the model file; read-only view.");
  c.def_prop_ro(
      "qpos_spring", [](nb::handle self) { return view_of(nb::cast<const Model&>(self).qpos_spring, self); },
      nb::sig("def qpos_spring(self) -> numpy.ndarray"),
      "[nq] pose in which the joints' springs are at rest; read-only view.");
  c.def_prop_ro(
      "armature", [](nb::handle self) { return view_of(nb::cast<const Model&>(self).armature, self); },
      nb::sig("def armature(self) -> numpy.ndarray"),
      "[nv] addition to the diagonal of M [kg m² | kg]; read-only view.");
  c.def_prop_ro(
      "dof_joint",
      [](nb::handle self) {
        const Model& model = nb::cast<const Model&>(self);
        return view_array(model.dof_joint.data(), {model.dof_joint.size()}, self);
      },
      nb::sig("def dof_joint(self) -> numpy.ndarray"), "[nv] joint index of each degree of freedom; read-only view.");
  c.def_prop_ro(
      "body_name", [](const Model& m) { return names(m.bodies); }, "[nbody] names of the bodies.");
  c.def_prop_ro(
      "body_mass",
      [](const Model& m) { return gather(m.bodies, {}, [](const Body& b) { return std::array{b.mass}; }); },
      nb::sig("def body_mass(self) -> numpy.ndarray"), "[nbody] masses [kg]; read-only.");
  c.def_prop_ro(
      "body_com", [](const Model& m) { return gather(m.bodies, {3}, [](const Body& b) { return numbers(b.com); }); },
      nb::sig("def body_com(self) -> numpy.ndarray"), "[nbody][3] centre of mass, body frame [m]; read-only.");
  c.def_prop_ro(
      "body_inertia",
      [](const Model& m) {
        return gather(m.bodies, {3, 3}, [](const Body& b) { return numbers(b.inertia); });
      },
      nb::sig("def body_inertia(self) -> numpy.ndarray"),
      "[nbody][3][3] inertia about the centre of mass, body axes [kg m²] (MuJoCo's is diagonal, in its own "
      "axes); read-only.");
  c.def_prop_ro(
      "body_parent", [](const Model& m) { return gather_int(m.bodies, [](const Body& b) { return b.parent; }); },
      nb::sig("def body_parent(self) -> numpy.ndarray"), "[nbody] index of the parent body; read-only.");
  c.def_prop_ro(
      "body_link", [](const Model& m) { return gather_int(m.bodies, [](const Body& b) { return b.link; }); },
      nb::sig("def body_link(self) -> numpy.ndarray"),
      "[nbody] link to which the body is fixed, -1 for the world; read-only.");
  c.def_prop_ro(
      "geom_name",
      [](const Model& m) {
        std::vector<std::string> out;
        for (const BodySpec& body : m.spec.bodies) {
          for (const GeomSpec& geom : body.geoms) out.push_back(geom.name);
        }
        return out;
      },
      "[ngeom] names of the geoms, body by body; '' for none.");
  c.def_prop_ro(
      "geom_body",
      [](const Model& m) {
        std::vector<int> bodies;
        for (std::size_t b = 0; b < m.spec.bodies.size(); ++b)
          bodies.insert(bodies.end(), m.spec.bodies[b].geoms.size(), int(b));
        return gather_int(bodies, [](int body) { return body; });
      },
      nb::sig("def geom_body(self) -> numpy.ndarray"), "[ngeom] index of the body that carries the geom; read-only.");
  c.def_prop_ro(
      "joint_name", [](const Model& m) { return names(m.joints); }, "[njoint] names of the joints.");
  c.def_prop_ro(
      "joint_qpos", [](const Model& m) { return gather_int(m.joints, [](const Joint& j) { return j.qpos; }); },
      nb::sig("def joint_qpos(self) -> numpy.ndarray"), "[njoint] first index in qpos; read-only.");
  c.def_prop_ro(
      "joint_qvel", [](const Model& m) { return gather_int(m.joints, [](const Joint& j) { return j.qvel; }); },
      nb::sig("def joint_qvel(self) -> numpy.ndarray"), "[njoint] first index in qvel; read-only.");
}

const char* const kLoadDoc =
    "Reads and compiles an MJCF or URDF file, or makes a built-in scene of free bodies such as "
    "'box_stack:5'.\n"
    "\n"
    "lenient: a missing mesh is a warning where no inertia depends on it. fix_balance: inertias that no "
    "real body can have are\n"
    "repaired, and `diagnostics` reports each. disable_includes: an MJCF <include> is an error, for "
    "files from untrusted sources.\n"
    "floating_base: the root link of a URDF floats. package_paths: folders in which package://NAME/ is "
    "looked up.\n"
    "Raises InputError with all errors found, each with file, line, column and element.";

nb::tuple keyframe(const Model& model, nb::handle which) {
  const KeyframeSpec& key = keyframe_of(model, which);
  const auto values = [](const std::vector<double>& given, const std::vector<double>& otherwise) {
    return new_array(given.size() == otherwise.size() ? given : otherwise, {otherwise.size()});
  };
  return nb::make_tuple(values(key.qpos, model.qpos0), values(key.qvel, std::vector<double>(model.nv)));
}

}  // namespace

const KeyframeSpec& keyframe_of(const Model& model, nb::handle which) {
  const std::vector<KeyframeSpec>& all = model.spec.keyframes;
  const bool by_name = nb::isinstance<nb::str>(which);
  const std::string name = by_name ? nb::cast<std::string>(which) : std::to_string(whole_number(which, "keyframe"));
  std::string names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    names += (i ? ", " : "") + (all[i].name.empty() ? std::to_string(i) : all[i].name);
    if (by_name ? name == all[i].name : name == std::to_string(i)) return all[i];
  }
  throw ValueError("keyframe", "\"" + name + "\"", all.empty() ? "a model that has keyframes" : "one of: " + names);
}

int body_index(const Model& model, nb::handle body, const char* argument) {
  if (nb::isinstance<nb::str>(body) && model.find_body(nb::cast<std::string>(body)) < 0) {
    std::string known;
    for (int i = 0; i < model.nbody() && i < 40; ++i) known += (i ? ", " : "") + model.bodies[i].name;
    throw ValueError(argument, "\"" + nb::cast<std::string>(body) + "\"", "one of: " + known);
  }
  return index_of(body, argument, model.nbody(), &Model::body_id, model);
}
std::vector<int> Bodies::of(const char* argument, const Model& model) const {
  if (nb::isinstance<nb::str>(given) || !PySequence_Check(given.ptr()))
    throw nb::type_error(
        (std::string(argument) + ": is " + nb::repr(given).c_str() + ", expected a list of names or indices of bodies")
            .c_str());
  std::vector<int> out;
  for (nb::handle body : given) out.push_back(body_index(model, body, argument));
  return out;
}
int joint_index(const Model& model, nb::handle joint) {
  return index_of(joint, "joint", model.njoint(), &Model::joint_id, model);
}

void bind_model(nb::module_& m) {
  using Paths = std::vector<std::filesystem::path>;
  bind_body(m);
  bind_joint(m);
  bind_site(m);
  nb::class_<Model> c(m, "Model", "An immutable mechanism; any number of Data share it.");
  copies_are_itself(c);
  c.def_static("load", &load, "path"_a, nb::kw_only(), "lenient"_a = false, "fix_balance"_a = false,
               "disable_includes"_a = false, "floating_base"_a = false, "package_paths"_a = Paths(), kLoadDoc);
  c.def_static("from_xml_string", &from_xml_string, "text"_a, "directory"_a = ".", "name"_a = "<string>", nb::kw_only(),
               "lenient"_a = false, "fix_balance"_a = false, "disable_includes"_a = false, "floating_base"_a = false,
               "package_paths"_a = Paths(),
               "As load(), for MJCF or URDF text. Files that the text names are looked up in `directory`; messages "
               "show `name` as the file.");
  c.def_ro("name", &Model::name, "Name in the file.");
  c.def_ro("nq", &Model::nq, "Number of coordinates in qpos.");
  c.def_ro("nv", &Model::nv, "Number of degrees of freedom: numbers in qvel, qacc and tau.");
  c.def_ro("nu", &Model::nu,
           "Number of controls in ctrl: one per actuator, more for dcmotors and pids with several inputs.");
  c.def_prop_ro("nmocap", &Model::nmocap, "Number of mocap bodies: rows of Data.mocap_pos and mocap_quat.");
  c.def_ro("na", &Model::na, "Number of actuator states in act.");
  c.def_prop_ro(
      "actuators",
      [](const Model& model) {
        nb::list names;
        for (const ActuatorSpec& a : model.spec.actuators) names.append(a.name);
        return names;
      },
      nb::sig("def actuators(self) -> list[str]"), "Names of the actuators, in the order of ctrl.");
  c.def_prop_ro(
      "actuator_ctrlrange",
      [](const Model& model) {
        constexpr double kNone = std::numeric_limits<double>::infinity();
        std::vector<double> out;
        for (const ActuatorSpec& a : model.spec.actuators) {
          if (a.controls() == 0) continue;
          out.push_back(a.control_limited ? a.control_range[0] : -kNone);
          out.push_back(a.control_limited ? a.control_range[1] : kNone);
          for (int k = 1; k < a.controls(); ++k) {
            const auto [low, high] = a.more_control_ranges[std::size_t(k - 1)];
            out.insert(out.end(), {low < high ? low : -kNone, low < high ? high : kNone});
          }
        }
        return fixed(out, {out.size() / 2, 2});
      },
      nb::sig("def actuator_ctrlrange(self) -> numpy.ndarray"),
      "[nu][2] ranges to which controls are clamped; infinite for a control without a range.");
  c.def_prop_ro("controls", &Model::control_names,
                "[nu] name of each control in ctrl: the actuator's name, followed by .pos, .vel, .ff or .voltage if "
                "the actuator has several.");
  c.def_prop_ro("nbody", &Model::nbody, "Number of bodies, including the world.");
  c.def_prop_ro(
      "ngeom",
      [](const Model& m) {
        std::size_t sum = 0;
        for (const BodySpec& body : m.spec.bodies) sum += body.geoms.size();
        return sum;
      },
      "Number of geoms, those for display alone included.");
  c.def_prop_ro("njoint", &Model::njoint, "Number of joints, which is also the number of links.");
  c.def_ro("depth", &Model::depth, "Number of degrees of freedom on the longest branch of the tree.");
  c.def_ro("timestep", &Model::timestep, "Time step of the model file [s].");
  c.def("total_mass", &Model::total_mass, "Total mass of all bodies [kg].");
  c.def("body", &body, "name"_a, nb::sig("def body(self, name: str | int) -> Body"),
        "The body with a name or index. Raises ValueError, which lists the names.");
  c.def("joint", &joint, "name"_a, nb::sig("def joint(self, name: str | int) -> Joint"),
        "The joint with a name or index. Raises ValueError, which lists the names.");
  c.def("site", &site, "name"_a, nb::sig("def site(self, name: str | int) -> Site"),
        "The site with a name or index. Raises ValueError, which lists the names.");
  c.def("body_id", &Model::body_id, "name"_a, "Index of the body with this name.");
  c.def("joint_id", &Model::joint_id, "name"_a, "Index of the joint with this name.");
  c.def_prop_ro(
      "bodies",
      [](nb::handle self) {
        nb::list list;
        const Model& model = nb::cast<const Model&>(self);
        for (int i = 0; i < model.nbody(); ++i) list.append(BodyRef{nb::borrow(self), &model, i});
        return list;
      },
      nb::sig("def bodies(self) -> list[Body]"), "[nbody] all bodies; bodies[0] is the world.");
  c.def_prop_ro(
      "joints",
      [](nb::handle self) {
        nb::list list;
        const Model& model = nb::cast<const Model&>(self);
        for (int i = 0; i < model.njoint(); ++i) list.append(JointRef{nb::borrow(self), &model, i});
        return list;
      },
      nb::sig("def joints(self) -> list[Joint]"), "[njoint] all joints.");
  c.def_prop_ro(
      "sites",
      [](nb::handle self) {
        nb::list list;
        for (const SiteRef& one : sites(self)) list.append(one);
        return list;
      },
      nb::sig("def sites(self) -> list[Site]"), "[nsite] all sites, body by body.");
  c.def_prop_ro(
      "keyframes",
      [](const Model& model) {
        nb::list names;
        for (const KeyframeSpec& key : model.spec.keyframes) names.append(key.name);
        return names;
      },
      nb::sig("def keyframes(self) -> list[str]"), "Names of the file's keyframes; a name may be empty.");
  c.def("keyframe", &keyframe, "name"_a,
        nb::sig("def keyframe(self, name: str | int) -> tuple[numpy.ndarray, numpy.ndarray]"),
        "(qpos [nq], qvel [nv]) of a keyframe, by name or index, as copies. If the keyframe leaves them out, "
        "they are qpos0 and zero.\n"
        "Raises ValueError, which lists the names.");
  c.def_prop_ro(
      "diagnostics", [](const Model& model) { return to_python(model.spec.diagnostics); },
      nb::sig("def diagnostics(self) -> list[Diagnostic]"),
      "Notes and warnings from reading the file: what is not supported and what was repaired.");
  bind_arrays(c);
  c.def("__repr__", [](const Model& model) {
    return "<tarsus.Model '" + model.name + "' nq=" + std::to_string(model.nq) + " nv=" + std::to_string(model.nv) +
           " nbody=" + std::to_string(model.nbody()) + ">";
  });
}

}  // namespace tarsus::python
