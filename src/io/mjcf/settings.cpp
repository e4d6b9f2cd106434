// Top-level sections that say nothing about bodies: option, size, visual, statistic, custom, extension.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "io/mjcf/builder.hpp"
#include "io/mjcf/states.hpp"

namespace tarsus::mjcf {
namespace {

template <class T>
void read_in(const XmlElement& e, const char* attribute, T low, T high, T& out) {
  T value{};
  if (!e.read(attribute, value)) return;
  if (value < low || value > high) {
    e.error(fmt::format("attribute '{}' is {}, expected {} to {}", attribute, value, low, high), attribute);
    return;
  }
  out = value;
}

void keep_attribute(const XmlElement& e, const char* attribute, Attributes& kept) {
  if (const auto text = e.peek(attribute)) overlay({{attribute, std::string(*text)}}, kept);
}

/// memory of <size>, in bytes: -1, or a whole number below 2^64 with an optional suffix K, M, G, T, P or E.
void check_memory(const XmlElement& e) {
  const std::string all = e.text("memory");
  const std::string_view text = trimmed(all);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::size_t unit = suffix.empty() ? 0 : std::string_view("KkMmGgTtPpEe").find(suffix) / 2 + 1;
  const bool good = error == std::errc() && unit <= 6 && number <= ~std::uint64_t(0) >> 10 * unit;
  if (!good && text != "-1")
    e.error(fmt::format("attribute 'memory': {} is not a number of bytes below 2^64, such as 1048576, 1M or -1",
                        quote(text)),
            "memory");
  for (const char* other : {"njmax", "nstack"}) {
    if (e.has(other)) e.error(fmt::format("attributes 'memory' and '{}' exclude each other", other), "memory");
  }
}

}  // namespace

void Builder::read_option(const XmlElement& e) {
  OptionSpec& option = spec_.option;
  read_in(e, "timestep", 1e-9, 10.0, option.timestep);
  read_in(e, "impratio", 1e-9, 1e9, option.impact_ratio);
  read_in(e, "tolerance", 0.0, 1.0, option.tolerance);
  read_in(e, "iterations", 1, 1'000'000, option.iterations);
  e.read("gravity", option.gravity);
  if (!(norm(option.gravity) < 1e6)) e.error("attribute 'gravity' is larger than 1e6 m/s²", "gravity");
  e.read("wind", option.wind);
  read_in(e, "density", 0.0, 1e9, option.density);
  read_in(e, "viscosity", 0.0, 1e9, option.viscosity);
  e.read("magnetic", option.magnetic);
  read_word(e, "integrator", {"Euler", "RK4", "implicit", "implicitfast"}, option.integrator);
  read_word(e, "solver", {"PGS", "CG", "Newton"}, option.solver);
  read_word(e, "cone", {"pyramidal", "elliptic"}, option.cone);
  for (const char* name : {"ls_iterations", "ls_tolerance", "noslip_iterations", "noslip_tolerance", "ccd_iterations",
                           "ccd_tolerance", "sdf_iterations", "sdf_initpoints", "sleep_tolerance"}) {
    double number = 0;  // settings of MuJoCo's algorithms
    int count = 0;
    if (std::string_view(name).ends_with("tolerance"))
      read_in(e, name, 0.0, 1e9, number);
    else
      read_in(e, name, 0, 1'000'000'000, count);
    keep_attribute(e, name, option.kept);
  }
  check_value(e, "jacobian", "dense|sparse|auto");
  std::string unused;
  for (const char* name : {"integrator", "solver", "cone", "jacobian", "tolerance", "impratio", "ls_iterations",
                           "ls_tolerance", "noslip_iterations", "noslip_tolerance", "ccd_iterations", "ccd_tolerance",
                           "sdf_iterations", "sdf_initpoints"}) {
    if (e.has(name)) unused += fmt::format("{}{}", unused.empty() ? "" : ", ", name);
  }
  if (!unused.empty()) {
    e.note(
        fmt::format("not used here: {}; these are settings of MuJoCo's solvers (iterations is used by tarsus scene "
                    "only)",
                    unused));
  }
  std::vector<int> groups;
  e.read("actuatorgroupdisable", groups);
  if (std::ranges::any_of(groups, [](int group) { return group < 0 || group > 30; }))
    e.error(fmt::format("'actuatorgroupdisable' is {}, expected groups from 0 to 30", fmt::join(groups, " ")),
            "actuatorgroupdisable");
  check_value(e, "o_margin", "1");
  check_value(e, "o_solref", "1-2"), check_value(e, "o_solimp", "1-5"), check_value(e, "o_friction", "1-5");
  for (const char* name : {"jacobian", "actuatorgroupdisable", "o_margin", "o_solref", "o_solimp", "o_friction"})
    keep_attribute(e, name, option.kept);
  e.unsupported({"actuatorgroupdisable", "o_margin", "o_solref", "o_solimp", "o_friction"});
  refuse_repeated(e.children("flag"));
  for (const XmlElement& flag : e.children("flag")) read_flags(flag);
  e.report_unread(Severity::error);
}

void Builder::read_flags(const XmlElement& e) {
  const auto enabled = [&](const char* flag, bool otherwise) {
    std::string word;
    return read_word(e, flag, {"enable", "disable"}, word) ? word == "enable" : otherwise;
  };
  OptionSpec& option = spec_.option;
  const std::pair<const char*, bool*> flags[] = {
      {"contact", &option.contact_enabled},     {"gravity", &option.gravity_enabled},
      {"actuation", &option.actuation_enabled}, {"spring", &option.spring_enabled},
      {"damper", &option.damper_enabled},       {"clampctrl", &option.clamp_controls},
      {"limit", &option.limit_enabled},         {"frictionloss", &option.friction_loss_enabled},
      {"equality", &option.equality_enabled}};
  for (const auto& [flag, value] : flags) *value = enabled(flag, *value);
  if (!enabled("constraint", true))
    option.contact_enabled = option.limit_enabled = option.friction_loss_enabled = option.equality_enabled = false;
  if (!enabled("passive", true)) e.unsupported({"passive"});  // MuJoCo 4 has no such flag
  for (const char* flag : {"filterparent", "sensor"}) {
    if (!enabled(flag, true)) e.unsupported({flag});
    keep_attribute(e, flag, option.kept_flags);
  }
  for (const char* flag : {"override", "fwdinv", "invdiscrete", "sleep"}) {
    if (enabled(flag, false)) e.unsupported({flag});
    keep_attribute(e, flag, option.kept_flags);
  }
  // Flags of MuJoCo's algorithms, which have no meaning here.
  for (const char* flag : {"warmstart", "refsafe", "midphase", "nativeccd", "eulerdamp", "autoreset", "energy",
                           "island", "multiccd", "diagexact", "ipc", "speculative"}) {
    enabled(flag, true);
    keep_attribute(e, flag, option.kept_flags);
  }
  e.report_unread(Severity::error);
}

/// Reads the settings. Of an attached model only custom data are kept, with its prefix; the rest is only checked.
void Builder::read_settings(const Scope& scope) {
  const auto full_name = [&](const XmlElement& e) {
    const std::string name = e.text("name");
    return name.empty() ? name : scope.naming.prefix + name;
  };
  const auto keep_all = [&](const XmlElement& e, std::string kind) {
    refuse_unknown(e);
    CosmeticSpec kept{std::move(kind), full_name(e), 0, e.all_attributes(), e.where()};
    if (scope.level > 0 && !kept.kind.starts_with("custom.")) return;
    if (!kept.attributes.empty()) spec_.cosmetics.push_back(std::move(kept));
  };
  for (const XmlElement& e : scope.source->items(scope.source->root())) {
    if (e.is("option")) {
      if (scope.level == 0) read_option(e);
    } else if (e.is("size")) {
      refuse_unknown(e);
      for (auto& [name, value] : e.all_attributes()) {
        if (name == "memory") {
          check_memory(e);
          continue;
        }
        constexpr int kMost = std::numeric_limits<int>::max();
        const bool rows = name == "njmax" || name == "nconmax" || name == "nstack";
        int count = 0;
        read_in(e, name.c_str(), name == "nuserdata" ? 0 : -1,
                rows                  ? kMost
                : name == "nuserdata" ? 1'000'000'000
                                      : 100'000,
                count);
      }
    } else if (e.is("visual") || e.is("statistic")) {
      keep_all(e, std::string(e.name()));
      if (double extent = 0; e.read("extent", extent) && !(extent > 0))
        e.error("attribute 'extent' must be positive", "extent");
      const std::vector<XmlElement> parts = scope.source->items(e);
      refuse_repeated(parts);
      for (const XmlElement& part : parts) keep_all(part, "visual." + std::string(part.name()));
    } else if (e.is("custom")) {
      for (const XmlElement& part : scope.source->items(e)) {
        for (const XmlElement& inner : part.children()) refuse_unknown(inner);
        require(part, "name");
        const Kind kind = part.is("numeric") ? Kind::numeric : part.is("text") ? Kind::text : Kind::tuple;
        declare(kind, full_name(part), part);
        if (part.is("tuple") && part.children().empty()) part.error("the tuple is empty");
        if (part.is("text")) require(part, "data");
        int size = 0;
        read_in(part, "size", 0, 1'000'000, size);
        const auto data = part.is("numeric") ? split_blanks(part.text("data")).size() : 0;
        if (part.is("numeric") && size == 0 && data == 0) part.error("the numeric has neither 'size' nor 'data'");
        if (part.has("size") && data > static_cast<std::size_t>(size))
          part.error(fmt::format("attribute 'data' has {} numbers, more than its size {}", data, size), "data");
        keep_all(part, "custom." + std::string(part.name()));
      }
    } else if (e.is("extension")) {
      for (const XmlElement& plugin : e.children()) {
        plugin.warn(fmt::format("plugin {} is not supported and has no effect", quote(plugin.text("plugin"))));
      }
    } else if (e.is("deformable")) {
      for (const XmlElement& part : scope.source->items(e)) {
        const std::string message = fmt::format("<{}> is not supported", part.name());
        part.warn(message + " and has no effect");
      }
    }
  }
}

}  // namespace tarsus::mjcf
