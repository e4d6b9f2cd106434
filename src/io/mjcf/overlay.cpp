// Joints, geoms, sites, tendons, equalities and pairs: attributes over the default class.
#include <fmt/format.h>

#include <cmath>

#include "io/mjcf/states.hpp"

namespace tarsus::mjcf {
namespace {

constexpr double kLargest = 1e12;  // a larger value's square would swamp the digits of ordinary values

void read_non_negative(const XmlElement& e, const char* attribute, double& out) {
  double value = 0;
  if (!e.read(attribute, value)) return;
  if (value < 0 || value > kLargest) {
    e.error(fmt::format("attribute '{}' is {}, expected 0 to {}", attribute, value, kLargest), attribute);
    return;
  }
  out = value;
}

/// Reads a coefficient and up to two higher-order ones, which MuJoCo 4 allows. Omitted ones keep the class's values.
void read_coefficient(const XmlElement& e, const char* attribute, double& out, std::array<double, 2>& polynomial) {
  const auto text = e.attribute(attribute);
  if (!text) return;
  if (split_blanks(*text).size() <= 1) return read_non_negative(e, attribute, out);
  std::vector<double> values;
  if (!e.read(attribute, values, Count::between(1, 3))) return;
  out = values[0];
  if (out < 0) e.error(fmt::format("attribute '{}' is negative", attribute), attribute);
  std::copy(values.begin() + 1, values.end(), polynomial.begin());
}

void read_type(const XmlElement& e, GeomType& out) {
  static constexpr std::pair<std::string_view, GeomType> kTypes[] = {
      {"plane", GeomType::plane},     {"hfield", GeomType::height_field}, {"sphere", GeomType::sphere},
      {"capsule", GeomType::capsule}, {"ellipsoid", GeomType::ellipsoid}, {"cylinder", GeomType::cylinder},
      {"box", GeomType::box},         {"mesh", GeomType::mesh},           {"sdf", GeomType::sdf}};
  const auto word = e.attribute("type");
  if (!word) return;
  for (const auto& [name, type] : kTypes) {
    if (name == *word) {
      out = type;
      return;
    }
  }
  e.error(fmt::format("attribute 'type': {} is not a type of geom", quote(*word)), "type");
}

void read_size(const XmlElement& e, Vec3d& size) {
  std::vector<double> values;
  if (!e.read("size", values, Count::between(1, 3))) return;
  for (std::size_t i = 0; i < values.size(); ++i) size[static_cast<int>(i)] = values[i];
}

void read_ends(const XmlElement& e, std::optional<std::array<double, 6>>& ends) {
  std::array<double, 6> values{};
  if (e.read("fromto", values)) ends = values;
}

void read_contact(const XmlElement& e, GeomSpec& spec) {
  e.read("contype", spec.contype);
  e.read("conaffinity", spec.conaffinity);
  if (e.read("condim", spec.condim) && spec.condim != 1 && spec.condim != 3 && spec.condim != 4 && spec.condim != 6) {
    e.error(fmt::format("attribute 'condim' is {}, expected 1, 3, 4 or 6", spec.condim), "condim");
  }
  e.read("priority", spec.priority);
  if (e.read("friction", spec.friction, 1)) {
    for (const double mu : spec.friction) {
      if (mu < 0) e.error("attribute 'friction' is negative", "friction");
    }
  }
  read_solver(e, "solref", "solimp", spec.solver_reference, spec.solver_impedance);
  e.read("solmix", spec.solver_mix);
  e.read("margin", spec.margin);
  e.read("gap", spec.gap);
}

}  // namespace

void overlay(const XmlElement& e, const Compiler&, JointState& state) {
  JointSpec& spec = state.spec;
  std::string word;
  if (read_word(e, "type", {"free", "ball", "slide", "hinge"}, word)) spec.type = find_joint_type(word)->type;
  e.read("group", spec.group);
  e.read("pos", spec.position);
  e.read("axis", spec.axis);
  e.read("range", spec.range);
  read_limited(e, "limited", state.limited);
  e.read("actuatorfrcrange", spec.force_range);
  read_limited(e, "actuatorfrclimited", state.force_limited);
  e.read("springdamper", state.spring_damper);
  read_solver(e, "solreflimit", "solimplimit", spec.solver_limit, spec.solver_impedance);
  read_solver(e, "solreffriction", "solimpfriction", spec.solver_friction_limit, spec.solver_friction_impedance);
  read_coefficient(e, "stiffness", spec.stiffness, spec.stiffness_polynomial);
  read_coefficient(e, "damping", spec.damping, spec.damping_polynomial);
  read_non_negative(e, "armature", spec.armature);
  read_non_negative(e, "frictionloss", spec.friction_loss);
  e.read("springref", spec.spring_reference);
  e.read("ref", spec.reference);
  e.read("margin", spec.margin);
  e.read("user", spec.user);
  e.read("actuatorgravcomp", spec.actuator_gravity_compensation);
  double yield = 0;
  read_non_negative(e, "springyield", yield);
  e.unsupported({"springyield"});
  e.ignore({"name", "class"});
}

void overlay(const XmlElement& e, const Compiler& compiler, GeomState& state) {
  GeomSpec& spec = state.spec;
  read_type(e, spec.type);
  read_size(e, spec.size);
  e.read("pos", spec.position);
  read_orientation(e, compiler, spec.orientation);
  read_ends(e, state.ends);
  e.read("mesh", spec.mesh);
  e.read("hfield", spec.height_field);
  e.read("fitscale", state.fit_scale);
  e.read("group", spec.group);
  read_contact(e, spec);
  double mass = 0;
  if (e.read("mass", mass)) {
    if (mass < 0 || mass > kLargest)
      e.error(fmt::format("attribute 'mass' is {}, expected 0 to {}", mass, kLargest), "mass");
    else
      spec.mass = mass;
  }
  read_non_negative(e, "density", spec.density);
  e.read("shellinertia", spec.shell_inertia);
  e.read("rgba", spec.rgba);
  e.read("material", spec.material);
  e.read("user", spec.user);
  check_value(e, "adhesion", "1"), check_value(e, "surfacevel", "1-6"), check_value(e, "castshadow", "bool");
  e.unsupported({"adhesion", "surfacevel"});
  std::string fluid;
  if (read_word(e, "fluidshape", {"none", "ellipsoid"}, fluid)) spec.fluid_ellipsoid = fluid == "ellipsoid";
  e.read("fluidcoef", spec.fluid_coefficients, 1);
  e.ignore({"name", "class"});
}

void overlay(const XmlElement& e, const Compiler& compiler, SiteState& state) {
  SiteSpec& spec = state.spec;
  read_type(e, spec.type);
  read_size(e, spec.size);
  e.read("pos", spec.position);
  read_orientation(e, compiler, spec.orientation);
  read_ends(e, state.ends);
  e.read("group", spec.group);
  e.read("rgba", spec.rgba);
  e.read("material", spec.material);
  e.read("user", spec.user);
  e.read("mesh", state.mesh);
  e.unsupported({"mesh"});
  e.ignore({"name", "class"});
}

void overlay(const XmlElement& e, TendonState& state) {
  TendonSpec& spec = state.spec;
  e.read("range", spec.range);
  read_limited(e, "limited", state.limited);
  read_coefficient(e, "stiffness", spec.stiffness, spec.stiffness_polynomial);
  read_coefficient(e, "damping", spec.damping, spec.damping_polynomial);
  read_non_negative(e, "frictionloss", spec.friction_loss);
  read_non_negative(e, "armature", spec.armature);
  e.read("margin", spec.margin);
  std::vector<double> lengths;
  if (e.read("springlength", lengths, Count::between(1, 2))) {
    spec.spring_length = {lengths[0], lengths.back()};
    if (lengths[0] > lengths.back()) e.error("attribute 'springlength': low is above high", "springlength");
  }
  e.read("actuatorfrcrange", spec.force_range);
  read_limited(e, "actuatorfrclimited", state.force_limited);
  double yield = 0;
  read_non_negative(e, "springyield", yield);
  check_value(e, "group", "1i"), check_value(e, "user", "*");
  for (const auto& [reference, impedance] :
       {std::pair("solreflimit", "solimplimit"), std::pair("solreffriction", "solimpfriction")})
    check_value(e, reference, "1-2"), check_value(e, impedance, "1-5");
  e.unsupported({"springyield", "solreflimit", "solimplimit", "solreffriction", "solimpfriction"});
  e.ignore({"name", "class"});
  if (e.is("fixed")) return;  // a fixed tendon is not drawn
  e.read("width", state.width), check_value(e, "rgba", "4");
  if (e.is("spatial") && !(state.width > 0))
    e.error(fmt::format("'width' is {}, expected a positive number", state.width), "width");
  e.read("material", state.material);
}

void overlay(const XmlElement& e, EqualityState& state) {
  e.read("active", state.active);
  read_solver(e, "solref", "solimp", state.solver_reference, state.solver_impedance);
  e.ignore({"name", "class"});
}

void overlay(const XmlElement& e, ContactPairSpec& spec) {
  if (e.read("condim", spec.condim) && spec.condim != 1 && spec.condim != 3 && spec.condim != 4 && spec.condim != 6) {
    e.error(fmt::format("attribute 'condim' is {}, expected 1, 3, 4 or 6", spec.condim), "condim");
  }
  if (read_over(e, "friction", Count::between(1, 5), spec.friction)) {
    for (const double mu : spec.friction) {
      if (mu < 0) e.error("attribute 'friction' is negative", "friction");
    }
  }
  read_solver(e, "solref", "solimp", spec.solver_reference, spec.solver_impedance);
  e.read("margin", spec.margin);
  e.read("gap", spec.gap);
  check_value(e, "solreffriction", "1-2");
  e.unsupported({"solreffriction", "adhesion"});
  e.ignore({"name", "class"});
}

}  // namespace tarsus::mjcf
