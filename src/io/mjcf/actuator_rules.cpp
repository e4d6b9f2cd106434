// Actuators that MuJoCo refuses: attributes that an element does not have, invalid states and parameters.
#include <fmt/format.h>

#include <algorithm>

#include "io/mjcf/states.hpp"

namespace tarsus::mjcf {
namespace {

/// An attribute and the actuator elements without it, or, if `only` is set, the only elements with it.
struct Owners {
  const char* attribute;
  bool only;
  std::vector<std::string_view> elements;
};

const std::vector<Owners>& owners() {
  static const std::vector<Owners> kOwners = {
      {"actlimited", true, {"general", "intvelocity"}},
      {"actrange", true, {"general", "intvelocity"}},
      {"actearly", true, {"general"}},
      {"body", true, {"general", "adhesion"}},
      {"ctrllimited", false, {"damper", "adhesion", "orientation"}},
      {"forcelimited", false, {"dcmotor"}},
      {"forcerange", false, {"dcmotor"}},
      {"site", false, {"muscle", "adhesion"}},
      {"refsite", false, {"muscle", "adhesion"}},
      {"joint", false, {"adhesion"}},
      {"jointinparent", false, {"adhesion", "orientation"}},
      {"tendon", false, {"adhesion", "orientation"}},
      {"cranksite", false, {"adhesion", "orientation"}},
      {"slidersite", false, {"adhesion", "orientation"}},
      {"gear", false, {"adhesion", "orientation"}},
      {"lengthrange", false, {"adhesion", "orientation"}},
      {"cranklength", false, {"adhesion", "orientation"}},
      {"armature", false, {"adhesion", "orientation"}},
      {"damping", false, {"adhesion", "orientation"}},
  };
  return kOwners;
}

void check_muscle(const XmlElement& e, const std::array<double, 10>& p) {
  if (!(p[0] < p[1])) e.error(fmt::format("the range of a muscle is {} {}, expected low < high", p[0], p[1]), "range");
  if (!(p[4] < 1 && 1 < p[5]))
    e.error(fmt::format("lmin and lmax of a muscle are {} and {}, expected lmin < 1 < lmax", p[4], p[5]), "lmin");
  if (!(p[3] > 0 && p[6] > 0 && p[7] > 0 && p[8] > 0))
    e.error("scale, vmax, fpmax and fvmax of a muscle must be positive", "scale");
}

/// A fixed or affine gain has one input, which MuJoCo only names; a muscle or user gain has none that may be named.
void check_input(const XmlElement& e, const ActuatorState& state) {
  const std::vector<std::string_view> given = split_blanks(state.motor.input);
  const bool orients = e.is("orientation"), one = orients || state.gain_type == "fixed" || state.gain_type == "affine";
  if ((state.gain_type == "muscle" || state.gain_type == "user") && e.peek("input") && !given.empty())
    return e.error(fmt::format("a law with {} gain has no 'input'", state.gain_type), "input");
  const std::string_view input = given.size() == 1 ? given[0] : "";
  const bool fine =
      input == "pos" || input == "vel" || input == "expmap" || input == "quat" || (input == "pressure" && !orients);
  if (one && !given.empty() && !fine)
    e.error(fmt::format("attribute 'input' is {}, expected {}", quote(state.motor.input),
                        orients ? "expmap or quat" : "one of pos, vel and pressure"),
            "input");
}

}  // namespace

void check_motor_law(const XmlElement& e, const ActuatorState& state) {
  if (state.motor_element)
    return e.error(
        fmt::format("the default class of this <{0}> contains a <{1}>, which is not supported: write <{1}> here",
                    e.name(), state.motor_element));
  if (state.dynamics == "dcmotor" && !state.spec.activation_early)
    e.error("dyntype 'dcmotor' needs actearly='true'", "dyntype");
  if (state.gain_type == "dcmotor" && state.dynamics != "dcmotor")
    e.error("gaintype 'dcmotor' needs dyntype 'dcmotor'", "gaintype");
  if (state.dynamics == "pid" && state.gain_type != "pid") e.error("dyntype 'pid' needs gaintype 'pid'", "dyntype");
  if (state.gain_type == "pid" && state.bias_type != "affine")
    e.error("gaintype 'pid' needs biastype 'affine'", "gaintype");
}

void refuse_others_attributes(const XmlElement& e) {
  if (e.is("plugin")) return;
  for (const Owners& owner : owners()) {
    const bool named = std::find(owner.elements.begin(), owner.elements.end(), e.name()) != owner.elements.end();
    if (named != owner.only && e.peek(owner.attribute))
      e.error(fmt::format("<{}> has no attribute '{}'", e.name(), owner.attribute), owner.attribute);
  }
}

void check_actuator(const XmlElement& e, const ActuatorState& state) {
  const bool stateless = state.dynamics == "none", pid = state.spec.kind == "pid", dc = state.spec.kind == "dcmotor";
  const bool motor = pid || dc || state.dynamics == "dcmotor" || state.dynamics == "pid";
  const int states = state.activation_count;
  if (!motor && states >= 0 && (stateless ? states > 0 : states == 0 || (states > 1 && state.dynamics != "user")))
    e.error(fmt::format("attribute 'actdim' is {}, but dyntype {} has {}", states, quote(state.dynamics),
                        stateless                  ? "no activation"
                        : state.dynamics == "user" ? "at least one activation"
                                                   : "one activation"),
            "actdim");
  if (!motor && stateless && state.spec.activation_limited)
    e.error("'actrange' is given, but the actuator has no activation: its dyntype is none", "actrange");
  if ((pid || (dc && !e.is("dcmotor"))) && state.spec.activation_limited) {  // <pid>: from the class
    if (!state.spec.motor || state.spec.motor->activations() == 0)
      e.error("'actrange' is given, but the actuator has no activation: neither ki nor slewmax is given", "actrange");
    else
      e.warn("'actrange' has no effect: imax bounds the integral", "actrange");
  }
  if (state.gain_type == "muscle") check_muscle(e, state.gain_parameters);
  if (state.bias_type == "muscle") check_muscle(e, state.bias_parameters);
  const TransmissionType on = state.spec.transmission;
  if ((e.is("general") && !motor) || e.is("orientation")) check_input(e, state);
  if (e.is("orientation") && on == TransmissionType::site && state.spec.reference.empty())
    e.error("<orientation> on a site needs 'refsite'", "site");
  if (on == TransmissionType::joint || on == TransmissionType::joint_in_parent || on == TransmissionType::tendon)
    return;
  if (state.armature != 0) e.error("'armature' needs a joint or a tendon", "armature");
  if (state.damping != std::array<double, 3>{}) e.error("'damping' needs a joint or a tendon", "damping");
}

}  // namespace tarsus::mjcf
