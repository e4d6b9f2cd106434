// Sections that refer to bodies: contact, equality, tendon, actuator. sensors.cpp and keyframes.cpp have the others.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <sstream>
#include <tuple>

#include "io/mjcf/builder.hpp"
#include "tarsus/control/motor.hpp"

namespace tarsus::mjcf {
namespace {

bool missing(int reference) { return reference == -2; }

constexpr double kDefaultSolref[] = {0.02, 1}, kDefaultSolimp[] = {0.9, 0.95, 0.001, 0.5, 2};

bool says_default(const std::vector<double>& given, std::span<const double> defaults) {
  return given.size() <= defaults.size() && std::equal(given.begin(), given.end(), defaults.begin());
}

void settle_law(const std::string& type, const std::array<double, 10>& parameters, ActuatorLaw& law,
                std::array<double, 3>& affine, std::array<double, 9>& muscle) {
  affine = {0, 0, 0};
  law = type == "none"     ? ActuatorLaw::none
        : type == "fixed"  ? ActuatorLaw::fixed
        : type == "affine" ? ActuatorLaw::affine
        : type == "muscle" ? ActuatorLaw::muscle
                           : ActuatorLaw::other;
  if (law == ActuatorLaw::fixed) affine[0] = parameters[0];
  if (law == ActuatorLaw::affine) std::copy_n(parameters.begin(), 3, affine.begin());
  if (law == ActuatorLaw::muscle) std::copy_n(parameters.begin(), 9, muscle.begin());
}

}  // namespace

void Builder::read_sections(const std::vector<Scope>& scopes) {
  static constexpr std::string_view kHere[] = {"contact", "equality", "tendon", "actuator", "sensor", "keyframe"};
  static constexpr std::string_view kElsewhere[] = {"compiler",  "option", "size",      "visual",
                                                    "statistic", "custom", "extension", "deformable",
                                                    "default",   "asset",  "worldbody"};
  for (const Scope& scope : scopes) {
    for (const XmlElement& e : scope.source->items(scope.source->root())) {
      const bool here = std::find(std::begin(kHere), std::end(kHere), e.name()) != std::end(kHere);
      if (!here && std::find(std::begin(kElsewhere), std::end(kElsewhere), e.name()) == std::end(kElsewhere)) {
        e.error(fmt::format("<{}> is not a section of MJCF", e.name()));
      }
      if (!here && !e.is("asset") && !e.is("custom") && !e.is("extension") && !e.is("deformable")) continue;
      e.mark_all_children();
      e.report_unread(Severity::error);
    }
  }
  const auto each = [&](std::string_view section, auto&& read) {
    for (const auto& [e, s] : elements(section, scopes)) read(e, s);
  };
  each("contact", [&](const XmlElement& e, const Scope& s) { read_contact(e, s); });
  each("tendon", [&](const XmlElement& e, const Scope& s) { read_tendon(e, s); });
  each("equality", [&](const XmlElement& e, const Scope& s) { read_equality(e, s); });
  each("actuator", [&](const XmlElement& e, const Scope& s) { read_actuator(e, s); });
  each("sensor", [&](const XmlElement& e, const Scope& s) { read_sensor(e, s); });
  for (const XmlElement& custom : scopes.front().source->section("custom")) {
    for (const XmlElement& e : custom.children("element")) {  // elements of a <tuple>
      for (const auto& [attribute, kind] : references(e)) {
        if (!made_in(kind, std::string(*e.peek(attribute)))) reference(e, attribute, kind, scopes.front());
      }
    }
  }
}

/// A section's elements in MuJoCo's order: those of the main model, then those of each attachment and replica in the
/// order in which the walk opens them.
std::vector<std::pair<XmlElement, Scope>> Builder::elements(std::string_view section,
                                                            const std::vector<Scope>& scopes) {
  const bool whole = section == "equality" || section == "actuator";
  std::vector<std::pair<XmlElement, Scope>> all;
  for (const Scope& scope : scopes) {
    for (const XmlElement& e : scope.source->section(section)) {
      count_element(e);
      for (Scope& s : instances(e, scope, whole)) all.emplace_back(e, std::move(s));
    }
  }
  const auto order = [&](const Scope& s) {
    return std::max(s.order, replicas_.all[static_cast<std::size_t>(s.replica)].order);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const auto& a, const auto& b) { return order(a.second) < order(b.second); });
  return all;
}

void Builder::read_contact(const XmlElement& e, const Scope& scope) {
  const Source& source = *scope.source;
  if (e.is("pair")) {
    ContactPairSpec pair = source.defaults(e, source.main_defaults()).pair;
    overlay(e, pair);
    pair.name = scope.naming.of(e.text("name"));
    pair.where = e.where();
    require(e, "geom1"), require(e, "geom2");
    const int first = reference(e, "geom1", Kind::geom, scope, &pair.geom1),
              second = reference(e, "geom2", Kind::geom, scope, &pair.geom2);
    e.report_unread(Severity::error);
    if (missing(first) || missing(second)) return;
    declare(Kind::pair, pair.name, e);
    spec_.contact_pairs.push_back(std::move(pair));
  } else if (e.is("exclude")) {
    ContactExcludeSpec exclude{scope.naming.of(e.text("name")), "world", "world", e.where()};
    require(e, "body1"), require(e, "body2");
    const int first = reference(e, "body1", Kind::body, scope, &exclude.body1),
              second = reference(e, "body2", Kind::body, scope, &exclude.body2);
    e.report_unread(Severity::error);
    if (missing(first) || missing(second)) return;
    if (exclude.body1.empty()) exclude.body1 = "world";
    if (exclude.body2.empty()) exclude.body2 = "world";
    declare(Kind::exclude, exclude.name, e);
    spec_.contact_excludes.push_back(std::move(exclude));
  } else {
    e.error(fmt::format("<{}> is not an element of <contact>", e.name()));
  }
}

void Builder::read_equality(const XmlElement& e, const Scope& scope) {
  const Source& source = *scope.source;
  EqualityState state = source.defaults(e, source.main_defaults()).equality;
  overlay(e, state);
  EqualitySpec spec;
  spec.name = scope.naming.of(e.text("name"));
  spec.active = state.active;
  spec.solver_reference = state.solver_reference;
  spec.solver_impedance = state.solver_impedance;
  spec.where = e.where();
  int first = -1, second = -1;
  if (e.is("connect") || e.is("weld")) {
    spec.type = e.is("connect") ? EqualityType::connect : EqualityType::weld;
    spec.sites = e.has("site1") || e.has("site2");
    if (spec.sites && (e.has("body1") || e.has("body2") || e.has("anchor") || e.has("relpose")))
      e.error("'site1' and 'site2' cannot be combined with 'body1', 'body2', 'anchor' or 'relpose'", "site1");
    require(e, spec.sites ? "site1" : "body1");
    if (spec.sites) require(e, "site2");
    const Kind kind = spec.sites ? Kind::site : Kind::body;
    first = reference(e, spec.sites ? "site1" : "body1", kind, scope, &spec.first);
    second = reference(e, spec.sites ? "site2" : "body2", kind, scope, &spec.second);
    if (e.is("connect") && !spec.sites) require(e, "anchor");
    e.read("anchor", spec.anchor);
    std::array<double, 7> pose{};
    if (e.is("weld")) e.read("torquescale", spec.torque_scale);
    if (e.is("weld") && e.read("relpose", pose)) {
      spec.relative_position = {pose[0], pose[1], pose[2]};
      const Quatd q{pose[3], pose[4], pose[5], pose[6]};
      spec.has_relative_pose =
          q.w != 0 || q.x != 0 || q.y != 0 || q.z != 0;  // as in MuJoCo, a zero quaternion means the reference pose
      if (spec.has_relative_pose) spec.relative_orientation = normalized(q);
    }
    const bool same = spec.sites ? spec.first == spec.second : std::max(first, 0) == std::max(second, 0);
    if (!missing(first) && !missing(second) && same)
      e.error(fmt::format("a {} cannot be constrained to itself", name(kind)), spec.sites ? "site2" : "body2");
  } else if (e.is("joint") || e.is("tendon")) {
    const bool joint = e.is("joint");
    spec.type = joint ? EqualityType::joint : EqualityType::tendon;
    require(e, joint ? "joint1" : "tendon1");
    const Kind kind = joint ? Kind::joint : Kind::tendon;
    first = reference(e, joint ? "joint1" : "tendon1", kind, scope, &spec.first);
    second = reference(e, joint ? "joint2" : "tendon2", kind, scope, &spec.second);
    e.read("polycoef", spec.polynomial, 1);
    if (first >= 0 && first == second)
      e.error(joint ? "a joint cannot be constrained to itself" : "a tendon cannot be constrained to itself",
              joint ? "joint2" : "tendon2");
    for (const auto& [number, attribute] : {std::pair(first, "joint1"), std::pair(second, "joint2")}) {
      if (!joint || number < 0) continue;
      if (has_rotation(this->joint(number).type)) e.error("only hinges and slides can be coupled", attribute);
    }
  } else if (e.is("flex") || e.is("flexvert") || e.is("flexstrain")) {
    e.all_attributes();
    return e.warn(fmt::format("<{}> is not simulated and has no effect", e.name()));
  } else {
    e.all_attributes();
    return e.error(fmt::format("<{}> is not an element of <equality>", e.name()));
  }
  e.report_unread(Severity::error);
  if (missing(first) || missing(second)) return;
  if (!says_default(spec.solver_reference, kDefaultSolref) || !says_default(spec.solver_impedance, kDefaultSolimp))
    e.warn("solref and solimp of an equality constraint have no effect: the step enforces it as accurately as it can");
  declare(Kind::equality, spec.name, e);
  spec_.equalities.push_back(std::move(spec));
}

namespace {

bool wraps(const ModelSpec& spec, const std::string& geom) {
  for (const BodySpec& body : spec.bodies) {
    for (const GeomSpec& g : body.geoms)
      if (g.name == geom) return g.type == GeomType::sphere || g.type == GeomType::cylinder;
  }
  return true;
}

}  // namespace

/// Reads the sites, geoms and pulleys of a spatial tendon by MuJoCo's rules. False if the tendon is invalid.
bool Builder::read_path(const XmlElement& e, const Scope& scope, TendonSpec& tendon) {
  using Kinds = TendonSpec::PathKind;
  bool complete = true;
  const std::vector<XmlElement> parts = scope.source->items(e);
  for (const XmlElement& part : parts) {
    TendonSpec::PathPoint point;
    if (part.is("site")) {
      require(part, "site");
      complete = complete && reference(part, "site", Kind::site, scope, &point.name) >= 0;
    } else if (part.is("geom")) {
      point.kind = Kinds::geom;
      require(part, "geom");
      complete = complete && reference(part, "geom", Kind::geom, scope, &point.name) >= 0;
      if (complete && !wraps(spec_, point.name)) part.error("tendons wrap around spheres and cylinders only", "geom");
      if (part.has("sidesite"))
        complete = complete && reference(part, "sidesite", Kind::site, scope, &point.side_site) >= 0;
    } else if (part.is("pulley")) {
      point.kind = Kinds::pulley;
      require(part, "divisor");
      part.read("divisor", point.divisor);
      if (!(point.divisor > 0)) part.error("a pulley's divisor must be positive", "divisor");
    } else {
      part.error(fmt::format("<{}> is not an element of <spatial>", part.name()));
      continue;
    }
    part.report_unread(Severity::error);
    tendon.path.push_back(std::move(point));
  }
  if (!complete) return false;
  const auto kind = [&](std::size_t i) { return i < tendon.path.size() ? tendon.path[i].kind : Kinds::pulley; };
  for (std::size_t i = 0; i < tendon.path.size(); ++i) {
    const bool before = i > 0 && kind(i - 1) == Kinds::site, after = kind(i + 1) == Kinds::site;
    if (kind(i) == Kinds::geom && !(before && after))
      parts[i].error("a geom in a tendon's path must be between two sites");
    if (kind(i) == Kinds::pulley && !after) parts[i].error("a pulley must be followed by a site");
    if (kind(i) != Kinds::site) continue;
    const bool alone = (i == 0 || kind(i - 1) == Kinds::pulley) && kind(i + 1) == Kinds::pulley;
    if (alone)
      parts[i].error("this site is the only one between two pulleys or ends of the tendon: at least two are needed");
    if (before && tendon.path[i].name == tendon.path[i - 1].name)
      parts[i].error("the same site twice in a row", "site");
  }
  const auto sites = std::count_if(tendon.path.begin(), tendon.path.end(),
                                   [&](const auto& point) { return point.kind == Kinds::site; });
  if (sites < 2) e.error("a spatial tendon needs at least two sites");
  return true;
}

void Builder::read_tendon(const XmlElement& e, const Scope& scope) {
  const Source& source = *scope.source;
  TendonState state = source.defaults(e, source.main_defaults()).tendon;
  overlay(e, state);
  TendonSpec& tendon = state.spec;
  tendon.name = scope.naming.of(e.text("name"));
  tendon.where = e.where();
  bool complete = true;
  if (e.is("fixed")) {
    for (const XmlElement& part : source.items(e)) {
      TendonSpec::Term term;
      if (!part.is("joint")) {
        part.error(fmt::format("<{}> is not an element of <fixed>", part.name()));
        continue;
      }
      require(part, "joint"), require(part, "coef");
      part.read("coef", term.coefficient);
      const int joint = reference(part, "joint", Kind::joint, scope, &term.joint);
      part.report_unread(Severity::error);
      complete = complete && joint >= 0;
      if (joint < 0) continue;
      const auto same = [&](const TendonSpec::Term& other) { return other.joint == term.joint; };
      if (std::any_of(tendon.terms.begin(), tendon.terms.end(), same))
        part.error("the tendon names this joint twice", "joint");
      if (has_rotation(this->joint(joint).type)) part.error("only hinges and slides can be part of a tendon", "joint");
      tendon.terms.push_back(std::move(term));
    }
    if (e.children().empty()) e.error("the tendon has no joints");
  } else if (e.is("spatial")) {
    tendon.spatial = true;
    complete = read_path(e, scope, tendon);
  } else {
    return e.error(fmt::format("<{}> is not an element of <tendon>", e.name()));
  }
  e.report_unread(Severity::error);
  if (!state.material.empty() && find(Kind::material, scope.naming.prefix + state.material) < 0)
    e.error(fmt::format("there is no material named {}", quote(state.material)), "material");
  if (!complete) return;
  tendon.limited = settle_limit(e, source.compiler(), state.limited, "limited", "range", tendon.range);
  tendon.force_limited = settle_limit(e, source.compiler(), state.force_limited, "actuatorfrclimited",
                                      "actuatorfrcrange", tendon.force_range);
  if (tendon.force_limited && (tendon.force_range[0] > 0 || tendon.force_range[1] < 0))
    e.error("'actuatorfrcrange' of a tendon must contain 0", "actuatorfrcrange");
  declare(Kind::tendon, tendon.name, e, &scope);
  spec_.tendons.push_back(std::move(tendon));
}

bool Builder::find_transmission(const XmlElement& e, const Scope& scope, ActuatorSpec& spec) {
  struct Way {
    const char* attribute;
    Kind kind;
    TransmissionType type;
  };
  static constexpr Way kWays[] = {{"joint", Kind::joint, TransmissionType::joint},
                                  {"jointinparent", Kind::joint, TransmissionType::joint_in_parent},
                                  {"tendon", Kind::tendon, TransmissionType::tendon},
                                  {"site", Kind::site, TransmissionType::site},
                                  {"body", Kind::body, TransmissionType::body},
                                  {"cranksite", Kind::site, TransmissionType::slider_crank}};
  int given = 0, found = 0;
  spec.transmission = TransmissionType::none;
  for (const Way& way : kWays) {
    if (!e.has(way.attribute)) continue;
    if (++given > 1) {
      e.error(fmt::format("'{}' is a second transmission: an actuator has one", way.attribute), way.attribute);
      return false;
    }
    spec.transmission = way.type;
    found = reference(e, way.attribute, way.kind, scope, &spec.target);
    if (way.kind == Kind::body && found == 0) spec.target = "world";
  }
  if (given == 0) e.error("an actuator needs one of joint, jointinparent, tendon, site, body and cranksite");
  for (const auto& [attribute, with, type] : {std::tuple("slidersite", "cranksite", TransmissionType::slider_crank),
                                              std::tuple("cranklength", "cranksite", TransmissionType::slider_crank),
                                              std::tuple("refsite", "site", TransmissionType::site)}) {
    if (e.has(attribute) && given > 0 && spec.transmission != type)
      e.error(fmt::format("'{}' needs '{}'", attribute, with), attribute);
  }
  if (e.has("slidersite")) found = std::min(found, reference(e, "slidersite", Kind::site, scope, &spec.reference));
  if (e.has("refsite")) found = std::min(found, reference(e, "refsite", Kind::site, scope, &spec.reference));
  if (given == 0 || missing(found)) return false;
  if (spec.transmission == TransmissionType::slider_crank) {
    require(e, "slidersite");
    if (!(spec.crank_length > 0)) e.error("a slider-crank needs a positive 'cranklength'", "cranklength");
  }
  return true;
}

void Builder::inherit_range(const XmlElement& e, ActuatorState& state) {
  ActuatorSpec& spec = state.spec;
  std::array<double, 2> range{0, 0};
  if (spec.transmission == TransmissionType::joint) {
    const JointSpec& driven = joint(find(Kind::joint, spec.target));
    if (has_rotation(driven.type)) return e.error("'inheritrange' is for hinges, slides and tendons", "inheritrange");
    range = driven.range;
  } else if (spec.transmission == TransmissionType::tendon) {
    range = spec_.tendons[static_cast<std::size_t>(find(Kind::tendon, spec.target))].range;
  } else {
    return e.error("'inheritrange' needs the transmission 'joint' or 'tendon'", "inheritrange");
  }
  if (range[0] >= range[1])
    return e.error("'inheritrange': the joint or tendon of this actuator has no range", "inheritrange");
  const double middle = (range[0] + range[1]) / 2, half = (range[1] - range[0]) / 2 * state.inherit_range;
  (state.dynamics == "integrator" ? spec.activation_range : spec.control_range) = {middle - half, middle + half};
}

namespace {

void read_inputs(const XmlElement& e, const std::string& input, bool dc, MotorSpec& motor) {
  const std::pair<std::string_view, bool*> kinds[] = {
      {"pos", &motor.position}, {"vel", &motor.velocity}, {"ff", &motor.feedforward}, {"voltage", &motor.voltage}};
  std::size_t next = 0;
  std::istringstream words(input);
  for (std::string word; words >> word;) {
    if (dc && word == "none" && input == "none") return;
    while (next < std::size(kinds) && kinds[next].first != word) ++next;
    if (next == std::size(kinds) || (!dc && word == "voltage")) {
      return e.error(fmt::format("attribute 'input' is {}, expected some of pos, vel, ff{} in this order", quote(input),
                                 dc ? ", voltage" : ""),
                     "input");
    }
    *kinds[next++].second = true;
  }
}

/// Reads the constants of a dcmotor's winding, LuGre bristle, cogging and heat.
void read_winding(const XmlElement& e, const ActuatorState::Motor& given, MotorSpec& motor) {
  motor.constant = given.constant, motor.resistance = given.resistance, motor.electric_time = given.electric_time;
  const auto refuse_negative = [&e](const char* attribute, double value) {
    if (value < 0) e.error(fmt::format("attribute '{}' has {}, expected at least 0", attribute, value), attribute);
  };
  for (const double x : given.saturation) refuse_negative("saturation", x);
  for (const double x : given.controller) refuse_negative("controller", x);
  motor.rate_max = given.saturation[2];
  const auto& [heat, capacity, time, slope, at, around] = given.thermal;
  if (std::any_of(given.thermal.begin(), given.thermal.end(), [](double x) { return x != 0; })) {
    motor.heat_resistance = heat, motor.heat_capacity = time > 0 && heat > 0 ? time / heat : capacity;
    motor.resistance_slope = slope, motor.resistance_at = at, motor.ambient = around;
    if (!(heat > 0)) e.error("'thermal' needs a positive resistance, its first number", "thermal");
    if (!(motor.heat_capacity > 0)) e.error("'thermal' needs a positive capacity or time constant", "thermal");
  }
  motor.bristle_stiffness = std::max(0.0, given.lugre[0]), motor.bristle_damping = given.lugre[1];
  motor.sliding_friction = given.lugre[2], motor.static_friction = given.lugre[3], motor.slide_speed = given.lugre[4];
  motor.cogging = given.cogging;
}

/// Whether the complete law is a dcmotor's or pid's, all of which is implemented.
bool is_motor(const ActuatorState& state) {
  const auto& [gain, bias, dynamics] = std::tie(state.gain_type, state.bias_type, state.dynamics);
  if (state.kind != "general") return gain == "dcmotor" || gain == "pid";
  return gain == "pid" ? bias == "affine" && state.bias_parameters[0] == 0 && (dynamics == "pid" || dynamics == "none")
                       : gain == "dcmotor" && bias == "dcmotor" && dynamics == "dcmotor" &&
                             state.gain_parameters[0] > 0 && state.gain_parameters[1] > 0;
}

}  // namespace

/// A dcmotor or pid with one input and no activation becomes an affine law. With input u, length l and velocity v of
/// the transmission it is
///
///     voltage   K/R (u - K v)         pos   kp (u - l) - kd v
///     ff        u - kp l - kd v       vel   kd (u - v) - kp l
///
/// Any other dcmotor or pid becomes a MotorSpec. MuJoCo saves each of them as a <general>, which becomes the same.
void Builder::settle_motor(const XmlElement& e, ActuatorState& state) {
  ActuatorState::Motor& given = state.motor;
  ActuatorSpec& spec = state.spec;
  MotorSpec motor;
  const bool dc = motor.electric = state.gain_type == "dcmotor";
  const bool general = state.kind == "general";
  if (general) take_motor_constants(state);
  spec.kind = dc ? "dcmotor" : "pid";
  read_inputs(e, !given.input.empty() ? given.input : dc ? "voltage" : "pos vel", dc, motor);
  if (dc) {
    const auto& c = given.controller;
    motor.kp = c[0], motor.ki = c[1], motor.kd = c[2];
    motor.slew_max = c[3], motor.integral_max = c[4], motor.voltage_max = c[5];
    read_winding(e, given, motor);
    if (!motor.controlled() && (c[0] != 0 || c[1] != 0 || c[2] != 0 || c[3] != 0))
      e.error("'controller' needs pos, vel or ff in 'input'", "controller");
  } else {
    motor.kp = state.gain_parameters[0], motor.kd = -state.bias_parameters[2];
    motor.ki = given.integral, motor.integral_max = given.integral_max, motor.slew_max = given.slew_max;
  }
  const int states = motor.activations();
  if (general && state.activation_count >= 0 && state.activation_count != states)
    e.error(fmt::format("attribute 'actdim' is {}, but this law has {}", state.activation_count, states), "actdim");
  if (general && !dc && (state.dynamics == "pid") != (states > 0))
    e.error("gaintype 'pid' needs dyntype 'pid' with an integral gain or slew limit, else 'none'", "dyntype");
  if (motor.ki > 0 && !motor.position) e.error("an integral gain needs pos in 'input'", dc ? "controller" : "ki");
  if (!dc && motor.slew_max > 0 && !motor.position) e.error("'slewmax' needs pos in 'input'", "slewmax");
  if (!motor.position) state.inherit_range = 0;
  if (!dc && !motor.position) {  // 'ctrlrange' and 'ctrllimited' concern the input pos; the other ranges apply if given
    spec.control_range = motor.velocity ? given.velocity_range : given.feedforward_range;
    state.control_limited = spec.control_range == std::array{0.0, 0.0} ? Limited::no : Limited::yes;
  }

  const double K = motor.constant;
  const bool by_ratio = !dc && motor.kd < 0;  // kd is a damping ratio, which needs the inertia
  if (motor.controls() == 1 && states == 0 && (!motor.controlled() || affine_torque(motor)) && motor.cogging[0] == 0 &&
      (!by_ratio || motor.position)) {
    const double kp = motor_stiffness(motor), kd = motor_damping(motor);
    const double gain = motor.position      ? motor.kp
                        : motor.velocity    ? motor.kd
                        : motor.feedforward ? 1
                                            : K / motor.resistance;
    state.gain_parameters = {gain}, state.bias_parameters = {0, -kp, -kd};
    state.gain_type = "fixed", state.bias_type = "affine", state.dynamics = "none";
    return;
  }
  state.gain_type = "fixed", state.bias_type = "none", state.dynamics = "none";
  const auto more = [&](bool there, const std::array<double, 2>& range) {
    if (there) spec.more_control_ranges.push_back(range);
  };
  // As in MuJoCo, all controls of a dcmotor share a range, and each control of a pid has one.
  more(motor.velocity, dc ? spec.control_range : given.velocity_range);
  more(motor.feedforward, dc ? spec.control_range : given.feedforward_range);
  more(motor.voltage, spec.control_range);
  if (!motor.position && !spec.more_control_ranges.empty())
    spec.more_control_ranges.erase(spec.more_control_ranges.begin());
  spec.motor = motor;
}

void Builder::settle_actuator(const XmlElement& e, const Compiler& compiler, ActuatorState& state) {
  ActuatorSpec& spec = state.spec;
  if (!e.is("dcmotor") && !e.is("pid")) check_motor_law(e, state);
  if (is_motor(state)) settle_motor(e, state);
  if (spec.motor && state.control_limited == Limited::no && spec.motor->electric)
    for (auto& range : spec.more_control_ranges) range = {0, 0};
  if (state.inherit_range < 0) e.error("attribute 'inheritrange' is negative", "inheritrange");
  const auto& [gain, bias] = std::tie(state.gain_parameters, state.bias_parameters);
  const bool servo = state.gain_type == "fixed" && state.bias_type == "affine" && gain[0] == -bias[1];
  if (state.inherit_range > 0 && (servo || spec.motor)) inherit_range(e, state);
  spec.control_limited =
      settle_limit(e, compiler, state.control_limited, "ctrllimited", "ctrlrange", spec.control_range);
  spec.force_limited = settle_limit(e, compiler, state.force_limited, "forcelimited", "forcerange", spec.force_range);
  spec.activation_limited =
      settle_limit(e, compiler, state.activation_limited, "actlimited", "actrange", spec.activation_range);
  settle_law(state.gain_type, state.gain_parameters, spec.gain_law, spec.gain, spec.muscle_gain);
  settle_law(state.bias_type, state.bias_parameters, spec.bias_law, spec.bias, spec.muscle_bias);
  check_actuator(e, state);
  spec.dynamics = state.dynamics == "none" ? "" : state.dynamics;
  spec.user_states = std::max(1, state.activation_count);
  if (!spec.dynamics.empty())
    spec.dynamics_parameters.assign(state.dynamics_parameters.begin(), state.dynamics_parameters.end());
  const bool muscle = spec.gain_law == ActuatorLaw::muscle || spec.bias_law == ActuatorLaw::muscle;
  if (muscle && spec.length_range[0] >= spec.length_range[1]) {
    spec.gain_law = spec.bias_law = ActuatorLaw::other;
    return e.warn("a muscle without 'lengthrange' is not computed");
  }
  if (spec.computed()) return add_motor(state);
  e.warn(fmt::format("an actuator with {} dynamics, {} gain and {} bias is not computed", quote(state.dynamics),
                     quote(state.gain_type), quote(state.bias_type)));
}

/// Adds a motor's armature and damping, times the square of its gear, to the joint or tendon that it drives.
void Builder::add_motor(const ActuatorState& state) {
  const ActuatorSpec& spec = state.spec;
  const double square = spec.gear[0] * spec.gear[0];
  const auto add = [&](auto& driven) {
    driven.armature += square * state.armature;
    driven.damping += square * state.damping[0];
    for (std::size_t i = 0; i < 2; ++i) driven.damping_polynomial[i] += square * state.damping[i + 1];
  };
  if (spec.transmission == TransmissionType::joint || spec.transmission == TransmissionType::joint_in_parent) {
    add(joint(find(Kind::joint, spec.target)));
  } else if (spec.transmission == TransmissionType::tendon) {
    add(spec_.tendons[static_cast<std::size_t>(find(Kind::tendon, spec.target))]);
  }
}

void Builder::read_actuator(const XmlElement& e, const Scope& scope) {
  const Source& source = *scope.source;
  if (!is_actuator(e.name())) return e.error(fmt::format("<{}> is not an element of <actuator>", e.name()));
  ActuatorState state = source.defaults(e, source.main_defaults()).actuator;
  overlay(e, state);
  ActuatorSpec& spec = state.spec;
  spec.kind = e.name();
  spec.name = scope.naming.of(e.text("name"));
  spec.where = e.where();
  const bool found = find_transmission(e, scope, spec);
  e.ignore({"class"});
  e.report_unread(Severity::error);
  if (!found) return;
  check_delay(e, state.delay, state.samples);
  settle_actuator(e, source.compiler(), state);
  // A positive last coefficient of a position servo is a damping ratio, as in MuJoCo.
  const double kp = state.gain_parameters[0];
  const bool ratio = spec.bias[2] > 0 && kp >= 0 && kp == -spec.bias[1];
  if (ratio) {
    damping_ratios_.emplace_back(static_cast<int>(spec_.actuators.size()), spec.bias[2]);
    spec.bias[2] = 0;
  }
  if (spec.motor && spec.motor->kd < 0) {
    damping_ratios_.emplace_back(static_cast<int>(spec_.actuators.size()), -spec.motor->kd);
    spec.motor->kd = 0;
  }
  controls_ += spec.controls(), activations_ += spec.activations();
  origins_.actuators.push_back(origin(e, scope));
  declare(Kind::actuator, spec.name, e, &scope);
  spec_.actuators.push_back(std::move(spec));
}

/// Adds one warning for all constraints without solref and solimp or with MuJoCo's defaults. They are harder here
/// (decisions 405, 504), so a run differs from MuJoCo's by the penetration or creep that MuJoCo's softness causes.
void Builder::name_default_softness(const XmlElement& root) {
  const OptionSpec& option = spec_.option;
  const auto plain = [](const std::vector<double>& solref, const std::vector<double>& solimp) {
    return says_default(solref, kDefaultSolref) && says_default(solimp, kDefaultSolimp);
  };
  int geoms = 0, pairs = 0, ranges = 0, friction = 0, equalities = 0, joints = 0;
  for (const BodySpec& body : spec_.bodies) {
    for (const GeomSpec& g : body.geoms)
      geoms += option.contact_enabled && (g.contype || g.conaffinity) && plain(g.solver_reference, g.solver_impedance);
    for (const JointSpec& j : body.joints) {
      ranges += option.limit_enabled && j.limited && plain(j.solver_limit, j.solver_impedance);
      friction += option.friction_loss_enabled && j.friction_loss > 0;
    }
    joints += int(body.joints.size());
  }
  for (const TendonSpec& t : spec_.tendons)
    ranges += option.limit_enabled && t.limited, friction += option.friction_loss_enabled && t.friction_loss > 0;
  for (const ContactPairSpec& p : spec_.contact_pairs)
    pairs += option.contact_enabled && plain(p.solver_reference, p.solver_impedance);
  for (const EqualitySpec& e : spec_.equalities)
    equalities += option.equality_enabled && e.active && plain(e.solver_reference, e.solver_impedance);
  if (joints == 0) return;
  if (geoms == 1 && pairs == 0) geoms = 0;  // a single geom has no contact partner
  std::string what;
  for (const auto& [count, one, many] :
       {std::tuple(geoms, "geom", "geoms"), std::tuple(pairs, "pair", "pairs"), std::tuple(ranges, "range", "ranges"),
        std::tuple(friction, "dry friction", "dry frictions"), std::tuple(equalities, "equality", "equalities")}) {
    if (count > 0) what += fmt::format("{}{} {}", what.empty() ? "" : ", ", count, count == 1 ? one : many);
  }
  if (!what.empty())
    sink_.add_other_law(root.where(),
                        "constraints with MuJoCo's default softness are stiffer here than in MuJoCo: " + what);
}

}  // namespace tarsus::mjcf
