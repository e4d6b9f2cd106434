// Actuators: the gain, bias and activation that each shortcut element stands for, by MuJoCo's rules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "io/mjcf/states.hpp"

namespace tarsus::mjcf {
namespace {

void set(ActuatorState& state, const char* gain, const char* bias, const char* dynamics) {
  state.gain_type = gain;
  state.bias_type = bias;
  state.dynamics = dynamics;
  if (state.dynamics == "none" || state.dynamics == "integrator") state.dynamics_parameters = {1};
}

void refuse_negative(const XmlElement& e, const char* attribute, double value) {
  if (value < 0) e.error(fmt::format("attribute '{}' is {}, expected at least 0", attribute, value), attribute);
}

/// Reads the list of inputs, whose words have a fixed order. Which of them a law has is checked once it is complete.
void read_input(const XmlElement& e, ActuatorState& state) {
  static constexpr std::array<std::string_view, 5> kWords{"pos", "vel", "ff", "voltage", "pressure"};
  std::string text;
  if (!e.read("input", text)) return;
  const std::vector<std::string_view> given = split_blanks(text);
  std::size_t found = 0;
  for (const std::string_view word : kWords) found += found < given.size() && given[found] == word;
  if (found < given.size() && text != "none" && text != "expmap" && text != "quat") {
    return e.error(
        fmt::format("attribute 'input' is {}, expected some of {} in this order", quote(text), fmt::join(kWords, ", ")),
        "input");
  }
  if (!given.empty()) state.motor.input = text;
}

void general(const XmlElement& e, ActuatorState& state) {
  read_word(e, "dyntype", {"none", "integrator", "filter", "filterexact", "muscle", "user", "dcmotor", "pid"},
            state.dynamics);
  read_word(e, "gaintype", {"fixed", "affine", "muscle", "user", "dcmotor", "pid"}, state.gain_type);
  read_word(e, "biastype", {"none", "affine", "muscle", "user", "dcmotor"}, state.bias_type);
  e.read("dynprm", state.dynamics_parameters, 1);
  e.read("gainprm", state.gain_parameters, 1);
  e.read("biasprm", state.bias_parameters, 1);
  e.read("inheritrange", state.inherit_range);
  e.read("actdim", state.activation_count);
  ActuatorState::Motor& motor = state.motor;
  read_input(e, state);
  e.read("velrange", motor.velocity_range), e.read("ffrange", motor.feedforward_range);
}

void motor(const XmlElement&, ActuatorState& state) {
  state.gain_parameters = {1}, state.bias_parameters = {};
  set(state, "fixed", "none", "none");
}

/// Reads inheritrange, which replaces a range. If a class or element gives either of the two, the other one from an
/// outer class no longer applies.
void inherit_range(const XmlElement& e, bool own, std::array<double, 2>& range, ActuatorState& state) {
  double factor = 0;
  if (e.read("inheritrange", factor) || own) state.inherit_range = factor;
  if (!(factor > 0)) return;
  if (own && range != std::array{0.0, 0.0}) {
    e.error(fmt::format("'inheritrange' and '{}' exclude each other", e.is("intvelocity") ? "actrange" : "ctrlrange"),
            "inheritrange");
  }
  range = {0, 0};
}

/// Reads <position> and <intvelocity>; the latter integrates its control to a position.
void position(const XmlElement& e, ActuatorState& state) {
  double kp = state.gain_parameters[0], kv = 0, ratio = 0, time = 0;
  if (e.read("kp", kp)) refuse_negative(e, "kp", kp);
  state.gain_parameters = {kp}, state.bias_parameters = {0, -kp, state.bias_parameters[2]};
  const bool has_kv = e.read("kv", kv);
  if (has_kv) {
    refuse_negative(e, "kv", kv);
    state.bias_parameters[2] = -kv;
  }
  if (e.read("dampratio", ratio)) {
    refuse_negative(e, "dampratio", ratio);
    if (has_kv) e.error("'kv' and 'dampratio' exclude each other", "dampratio");
    state.bias_parameters[2] = ratio;  // a positive value is a ratio, converted to a damping once the inertia is known
  }
  const bool integrates = e.is("intvelocity");  // its activation is the target position
  inherit_range(e, e.has(integrates ? "actrange" : "ctrlrange"),
                integrates ? state.spec.activation_range : state.spec.control_range, state);
  if (integrates) return set(state, "fixed", "affine", "integrator");
  set(state, "fixed", "affine", state.dynamics == "filterexact" ? "filterexact" : "none");
  if (e.read("timeconst", time)) {
    refuse_negative(e, "timeconst", time);
    state.dynamics_parameters[0] = time;
    state.dynamics = time > 0 ? "filterexact" : "none";
  }
}

void velocity(const XmlElement& e, ActuatorState& state) {
  double kv = state.gain_parameters[0];
  if (e.read("kv", kv)) refuse_negative(e, "kv", kv);
  state.gain_parameters = {kv};
  state.bias_parameters = {0, 0, -kv};
  set(state, "fixed", "affine", "none");
}

/// For <damper> and <adhesion>: the control is always limited to its range and must not be negative.
void hold_control(const XmlElement& e, ActuatorState& state) {
  state.control_limited = Limited::yes;
  if (state.spec.control_range[0] < 0)
    e.error(fmt::format("the 'ctrlrange' of <{}> begins below 0", e.name()), "ctrlrange");
}

void damper(const XmlElement& e, ActuatorState& state) {
  double kv = -state.gain_parameters[2];
  e.read("kv", kv);
  refuse_negative(e, "kv", kv);
  state.gain_parameters = {0, 0, -kv};
  set(state, "affine", "none", "none");
  hold_control(e, state);
}

void cylinder(const XmlElement& e, ActuatorState& state) {
  double diameter = 0;
  e.read("timeconst", state.dynamics_parameters[0]);
  e.read("area", state.gain_parameters[0]);
  if (e.read("diameter", diameter) && diameter >= 0) state.gain_parameters[0] = kPi / 4 * diameter * diameter;
  std::array<double, 3> bias{state.bias_parameters[0], state.bias_parameters[1], state.bias_parameters[2]};
  state.gain_parameters = {state.gain_parameters[0]};
  if (e.read("bias", bias)) std::copy(bias.begin(), bias.end(), state.bias_parameters.begin());
  set(state, "fixed", "affine", "filter");
}

constexpr std::array<double, 10> kMuscleGain{0.75, 1.05, -1, 200, 0.5, 1.6, 1.5, 1.3, 1.2};
constexpr std::array<double, 10> kMuscleDynamics{0.01, 0.04};

/// A negative number means MuJoCo's own, whatever the class has.
void muscle(const XmlElement& e, ActuatorState& state) {
  auto &gain = state.gain_parameters, &dynamics = state.dynamics_parameters;
  std::array<double, 2> pair{};
  const auto given = [](double value, double otherwise) { return value < 0 ? otherwise : value; };
  if (e.read("timeconst", pair))
    for (std::size_t i = 0; i < 2; ++i) dynamics[i] = given(pair[i], kMuscleDynamics[i]);
  if (e.read("range", pair))
    for (std::size_t i = 0; i < 2; ++i) gain[i] = given(pair[i], kMuscleGain[i]);
  if (e.read("tausmooth", dynamics[2])) refuse_negative(e, "tausmooth", dynamics[2]);
  static constexpr std::pair<const char*, std::size_t> kNumbers[] = {
      {"force", 2}, {"scale", 3}, {"lmin", 4}, {"lmax", 5}, {"vmax", 6}, {"fpmax", 7}, {"fvmax", 8}};
  for (const auto& [attribute, place] : kNumbers) {
    double value = 0;
    if (e.read(attribute, value)) gain[place] = given(value, kMuscleGain[place]);
  }
  state.bias_parameters = gain;
  set(state, "muscle", "muscle", "muscle");
}

void adhesion(const XmlElement& e, ActuatorState& state) {
  if (e.read("gain", state.gain_parameters[0])) refuse_negative(e, "gain", state.gain_parameters[0]);
  set(state, "fixed", "none", "none");
  hold_control(e, state);
}

/// Reads the constants of <dcmotor>, in each class. Builder::settle_motor() makes the law from them.
void dc_motor(const XmlElement& e, ActuatorState& state) {
  ActuatorState::Motor& motor = state.motor;
  std::array<double, 2> constant{motor.constant, 0};
  std::array<double, 3> nominal{};
  if (e.read("motorconst", constant, 1)) refuse_negative(e, "motorconst", std::min(constant[0], constant[1]));
  e.read("resistance", motor.resistance);
  e.read("nominal", nominal, 1);
  // A motor's torque and back-EMF constants are equal. If two numbers are given, their geometric mean is used.
  const auto& [voltage, stall, speed] = nominal;
  const double back = constant[1] > 0 ? constant[1] : speed > 0 ? voltage / speed : constant[0];
  motor.constant = constant[0] > 0 ? std::sqrt(constant[0] * back) : back;
  if (!(motor.resistance > 0)) motor.resistance = stall > 0 ? motor.constant * voltage / stall : 0;
  if (!(motor.constant > 0)) e.error("a dcmotor needs a positive 'motorconst', or 'nominal'", "motorconst");
  if (!(motor.resistance > 0)) e.error("a dcmotor needs a positive 'resistance', or 'nominal'", "resistance");
  if (e.read("saturation", motor.saturation, 1)) {
    const double most = motor.saturation[0] > 0 ? motor.saturation[0] : motor.constant * motor.saturation[1];
    state.force_limited = most > 0 ? Limited::yes : Limited::automatic;
    state.spec.force_range = {-std::max(0.0, most), std::max(0.0, most)};
  }
  e.read("controller", motor.controller, 1);
  read_input(e, state);
  std::array<double, 2> inductance{};
  if (e.read("inductance", inductance, 1)) {
    motor.electric_time = inductance[0] > 0 && motor.resistance > 0 ? inductance[0] / motor.resistance : inductance[1];
    refuse_negative(e, "inductance", std::min(inductance[0], inductance[1]));
  }
  e.read("thermal", motor.thermal, 1);
  e.read("lugre", motor.lugre, 1);
  e.read("cogging", motor.cogging, 1);
  set(state, "dcmotor", "dcmotor", "dcmotor");
  state.motor_element = "dcmotor";
}

void pid(const XmlElement& e, ActuatorState& state) {
  ActuatorState::Motor& motor = state.motor;
  double kp = state.gain_parameters[0], kv = -state.bias_parameters[2], ratio = 0;
  if (e.read("kp", kp)) refuse_negative(e, "kp", kp);
  const bool has_kv = e.read("kv", kv);
  if (has_kv) refuse_negative(e, "kv", kv);
  state.gain_parameters = {kp}, state.bias_parameters = {0, -kp, -kv};
  if (e.read("dampratio", ratio)) {
    refuse_negative(e, "dampratio", ratio);
    if (has_kv) e.error("'kv' and 'dampratio' exclude each other", "dampratio");
    state.bias_parameters[2] = ratio;
  }
  read_input(e, state);
  e.read("posrange", state.spec.control_range);
  e.read("velrange", motor.velocity_range), e.read("ffrange", motor.feedforward_range);
  inherit_range(e, e.has("posrange") || e.has("ctrlrange"), state.spec.control_range, state);
  if (e.read("ki", motor.integral)) refuse_negative(e, "ki", motor.integral);
  if (e.read("imax", motor.integral_max)) refuse_negative(e, "imax", motor.integral_max);
  if (e.read("slewmax", motor.slew_max)) refuse_negative(e, "slewmax", motor.slew_max);
  set(state, "pid", "pid", "pid");
  state.motor_element = "pid";
}

/// Reads elements without an affine law. The kind is kept by name, and nothing is computed from the attributes.
void opaque(const XmlElement& e, ActuatorState& state) {
  if (e.is("orientation")) {
    check_value(e, "kp", "1"), check_value(e, "kv", "1"), check_value(e, "dampratio", "1");
    read_input(e, state);
  } else {
    e.all_attributes();
    e.mark_all_children();
  }
  const std::string kind(e.name());
  set(state, kind.c_str(), kind.c_str(), kind.c_str());
}

void common(const XmlElement& e, ActuatorState& state) {
  ActuatorSpec& spec = state.spec;
  read_limited(e, "ctrllimited", state.control_limited);
  read_limited(e, "forcelimited", state.force_limited);
  e.read("ctrlrange", spec.control_range);
  e.read("forcerange", spec.force_range);
  e.read("gear", spec.gear, 1);
  e.read("group", spec.group);
  e.read("user", spec.user);
  read_limited(e, "actlimited", state.activation_limited);
  e.read("actrange", spec.activation_range);
  e.read("actearly", spec.activation_early);
  e.read("lengthrange", spec.length_range);
  e.read("cranklength", spec.crank_length);
  if (e.read("armature", state.armature)) refuse_negative(e, "armature", state.armature);
  if (e.read("damping", state.damping, 1)) refuse_negative(e, "damping", state.damping[0]);
  e.read("delay", state.delay), e.read("nsample", state.samples);
  check_value(e, "interp", "zoh|linear|cubic");
  e.unsupported({"delay"});
  e.ignore({"name", "class"});
}

struct Element {
  std::string_view name;
  void (*read)(const XmlElement&, ActuatorState&);
  std::string_view gain;  ///< gain type of a <general> default class whose parameters this kind inherits
};
constexpr Element kKinds[] = {{"general", general, ""},
                              {"motor", motor, "fixed"},
                              {"position", position, "fixed"},
                              {"intvelocity", position, "fixed"},
                              {"velocity", velocity, "fixed"},
                              {"damper", damper, "affine"},
                              {"cylinder", cylinder, "fixed"},
                              {"muscle", muscle, "muscle"},
                              {"adhesion", adhesion, "fixed"},
                              {"dcmotor", dc_motor, "dcmotor"},
                              {"pid", pid, "pid"},
                              {"orientation", opaque, ""},
                              {"plugin", opaque, ""}};

/// Sets the law that an element begins with. A default class has one law, that of its last element. A <general> and an
/// element of the law's kind change that law. An element of another kind begins with the law of the nearest enclosing
/// class that has its kind, or a <general> with the same gain type. If there is none, it begins with the defaults of
/// its kind.
void begin(const Element& kind, ActuatorState& state) {
  if (kind.name != "general") {  // only <general> has these: MuJoCo ignores them in an <intvelocity>
    state.activation_count = -1;
    state.activation_limited = Limited::automatic;
    state.spec.activation_early = false;
  }
  if (kind.name != "general" && kind.name != state.kind) {
    const auto fits = [&](const auto& law) {
      return law.first == kind.name || (law.first == "general" && law.second.gain_type == kind.gain);
    };
    const auto law = std::find_if(state.laws.rbegin(), state.laws.rend(), fits);
    ActuatorLawState own;
    if (kind.name == "muscle") own.gain_parameters = kMuscleGain, own.dynamics_parameters = kMuscleDynamics;
    static_cast<ActuatorLawState&>(state) = law == state.laws.rend() ? own : law->second;
    if (law != state.laws.rend() && law->first == "general") take_motor_constants(state);
  }
  state.kind = kind.name;
}

}  // namespace

void take_motor_constants(ActuatorLawState& law) {
  ActuatorState::Motor& motor = law.motor;
  const auto &gain = law.gain_parameters, &bias = law.bias_parameters, &dynamics = law.dynamics_parameters;
  if (law.gain_type == "dcmotor") {
    motor.resistance = gain[0], motor.constant = gain[1], motor.electric_time = dynamics[0];
    motor.saturation = {0, 0, dynamics[1]};
    motor.controller = {gain[4], gain[5], gain[6], dynamics[7], dynamics[8], gain[7]};
    motor.thermal = {dynamics[2], dynamics[3], 0, gain[2], gain[3], dynamics[4]};
    motor.lugre = {dynamics[5], dynamics[6], bias[3], bias[4], bias[5]};
    motor.cogging = {bias[0], bias[1], bias[2]};
  } else if (law.gain_type == "pid") {
    motor.integral = gain[0], motor.integral_max = dynamics[0], motor.slew_max = dynamics[1];
    law.gain_parameters = {-bias[1]};
  }
}

bool is_actuator(std::string_view element) {
  return std::any_of(std::begin(kKinds), std::end(kKinds), [&](const Element& kind) { return kind.name == element; });
}

void overlay(const XmlElement& e, ActuatorState& state) {
  common(e, state);
  refuse_others_attributes(e);
  for (const Element& kind : kKinds) {
    if (e.is(kind.name)) begin(kind, state), kind.read(e, state);
  }
  state.laws.resize(state.outer_laws);
  state.laws.emplace_back(state.kind, state);
}

}  // namespace tarsus::mjcf
