// Sensors that MuJoCo refuses: missing attributes, attributes that the element does not have, and invalid values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/mjcf/states.hpp"

namespace tarsus::mjcf {
namespace {

/// Attributes beside those that all sensors have. An element has exactly one of each list in `needed`, at most one of
/// each in `possible`, and all or none of each in `together`.
struct Parts {
  std::vector<std::vector<const char*>> needed, possible, together;
};

Parts parts_of(const XmlElement& e, const SensorTraits* traits) {
  if (e.is("tactile")) return {{{"geom"}, {"mesh"}}, {}, {}};
  if (e.is("user")) return {{{"dim"}}, {{"datatype"}, {"needstage"}}, {{"objtype", "objname"}}};
  if (e.is("camprojection")) return {{{"site"}, {"camera"}}, {}, {}};
  if (e.is("rangefinder")) return {{{"site", "camera"}}, {{"data"}}, {}};
  if (e.is("insidesite")) return {{{"site"}, {"objtype"}, {"objname"}}, {{"enclosed"}}, {}};
  if (e.is("framelinacc") || e.is("frameangacc")) return {{{"objtype"}, {"objname"}}, {}, {}};
  switch (traits->target) {
    case SensorTarget::site: return {{{"site"}}, {}, {}};
    case SensorTarget::joint: return {{{"joint"}}, {}, {}};
    case SensorTarget::tendon: return {{{"tendon"}}, {}, {}};
    case SensorTarget::actuator: return {{{"actuator"}}, {}, {}};
    case SensorTarget::body: return {{{"body"}}, {}, {}};
    case SensorTarget::frame: return {{{"objtype"}, {"objname"}}, {}, {{"reftype", "refname"}}};
    case SensorTarget::shapes: return {{{"geom1", "body1"}, {"geom2", "body2"}}, {}, {}};
    case SensorTarget::contact:
      return {{},
              {{"geom1", "body1", "subtree1", "site"}, {"geom2", "body2", "subtree2"}, {"num"}, {"data"}, {"reduce"}},
              {}};
    case SensorTarget::none: break;
  }
  return {};
}

/// Checks that the attribute has only these words, in this order, each at most once.
void check_order(const XmlElement& e, const char* attribute, std::initializer_list<std::string_view> all) {
  const auto text = e.attribute(attribute);
  const auto* next = all.begin();
  for (const std::string_view word : text ? split_blanks(*text) : std::vector<std::string_view>{}) {
    next = std::find(next, all.end(), word);
    if (next == all.end()) {
      return e.error(fmt::format("attribute '{}' is {}, expected some of {} in this order", attribute, quote(*text),
                                 fmt::join(all, ", ")),
                     attribute);
    }
    ++next;
  }
}

void check_values(const XmlElement& e) {
  double cutoff = 0, noise = 0;
  int samples = 0, slots = 1, dimension = 0;
  std::vector<double> user;
  std::string word;
  if (e.read("cutoff", cutoff) && cutoff < 0) e.error("attribute 'cutoff' is negative", "cutoff");
  if (e.read("noise", noise) && noise < 0) e.error("attribute 'noise' is negative", "noise");
  static constexpr std::string_view kUnit[] = {"framequat", "ballquat", "framexaxis", "frameyaxis", "framezaxis"};
  if (cutoff > 0 && std::find(std::begin(kUnit), std::end(kUnit), e.name()) != std::end(kUnit))
    e.error("a sensor of a direction or a rotation cannot have a 'cutoff'", "cutoff");
  e.read("user", user);
  if (!e.is("user")) {
    double delay = 0;
    std::array<double, 2> interval{0, 0};
    e.read("nsample", samples), e.read("delay", delay);
    check_delay(e, delay, samples);
    read_word(e, "interp", {"zoh", "linear", "cubic"}, word);
    const auto& [period, phase] = interval;
    if (e.read("interval", interval, 1) && (period < 0 || phase > 0 || (period > 0 && phase <= -period)))
      e.error(fmt::format("'interval' is {} {}, expected a period of at least 0 and a phase from above -period to 0",
                          period, phase),
              "interval");
    e.unsupported({"delay", "interval"});
  }
  if (e.is("contact")) {
    if (e.read("num", slots) && slots < 1) e.error("attribute 'num' must be positive", "num");
    check_order(e, "data", {"found", "force", "torque", "dist", "pos", "normal", "tangent", "linvel", "angvel"});
    read_word(e, "reduce", {"none", "mindist", "maxforce", "netforce"}, word);
  }
  if (e.is("insidesite")) read_word(e, "enclosed", {"true", "false"}, word);
  if (e.is("rangefinder")) check_order(e, "data", {"dist", "dir", "origin", "point", "normal", "depth"});
  if (!e.is("user")) return;
  if (e.read("dim", dimension) && dimension < 0) e.error("attribute 'dim' is negative", "dim");
  read_word(e, "datatype", {"real", "positive", "axis", "quaternion"}, word);
  read_word(e, "needstage", {"none", "pos", "vel", "acc"}, word);
}

}  // namespace

bool check_sensor(const XmlElement& e, const SensorTraits* traits) {
  if (e.is("plugin")) return true;
  Parts parts = parts_of(e, traits);
  const auto count = [&](const auto& names) {
    return std::count_if(names.begin(), names.end(), [&](const char* name) { return e.has(name); });
  };
  bool complete = true;
  const auto refuse = [&](const char* what, const auto& names) {
    e.error(fmt::format("<{}> {} '{}'", e.name(), what, fmt::join(names, "' or '"))), complete = false;
  };
  for (const auto& names : parts.possible) {
    if (count(names) > 1) refuse("has at most one of", names);
  }
  for (const auto& names : parts.together) {
    if (count(names) == 0) continue;
    for (const char* name : names) parts.needed.push_back({name});
  }
  for (const auto& names : parts.needed) {
    if (count(names) == 0) refuse("needs the attribute", names);
    if (count(names) > 1) refuse("has only one of", names);
  }
  check_values(e);
  e.ignore({"name"});
  e.report_unread(Severity::error);
  return complete;
}

}  // namespace tarsus::mjcf
