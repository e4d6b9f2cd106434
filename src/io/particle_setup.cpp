#include "tarsus/io/particle_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "io/json_text.hpp"
#include "tarsus/io/text_number.hpp"
#include "tarsus/io/xml.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

constexpr JsonLimits kLimits{64u << 20, 16, 4'000'000};
constexpr double kDegree = kPi / 180;
constexpr const char* kForces[] = {"lennard_jones", "coulomb", "bonds", "angles", "torsions", "springs", "gravity"};
using Type = JsonValue::Type;

/// One row of numbers in a list, e.g. a bond.
using TakeRow = std::function<void(const std::vector<double>& row)>;

class SetupReader {
 public:
  SetupReader(const JsonDocument& document, ParticleSystem& system)
      : document_(document), system_(system), root_(document, document.root(), "", sink_) {}

  /// Returns whether the text has forces.
  bool read() {
    if (std::string units; root_.read("units", units) && units != system_.units.name) {
      root_.fault(*root_.get("units"), "units",
                  fmt::format("{}, but the system is in {}", quote(units), system_.units.name));
    }
    read_molecule();
    read_types();
    read_lennard_jones();
    read_coulomb();
    read_exclusions();
    read_bonded();
    read_rigid();
    read_outer();
    read_places();
    const auto has = [&](const char* key) { return root_.get(key) != nullptr; };
    for (const char* key : {"types", "exclude"}) {
      if (has(key) && !has("lennard_jones") && !has("coulomb"))
        root_.fault(*root_.get(key), key, "without effect, because there is neither \"lennard_jones\" nor \"coulomb\"");
    }
    const bool forces = std::ranges::any_of(kForces, has);
    if (forces) system_.force_field = std::move(field_);
    root_.done(Severity::error,
               "units, molecule, types, lennard_jones, coulomb, exclude, bonds, angles, torsions, distances, "
               "rigid_angles, rigid_torsions, springs, gravity, pinned, planes, spheres, centre_of_mass");
    sink_.throw_if_failed();
    return forces;
  }

 private:
  void read_molecule();
  void read_types();
  void read_lennard_jones();
  void read_pairs(JsonObject& object, LennardJones& lj);
  void read_coulomb();
  void read_exclusions();
  void read_bonded();
  void read_rigid();
  void read_outer();
  void read_places();

  int size() const { return static_cast<int>(molecule_.empty() ? system_.mass.size() : molecule_.size()); }
  int type_number(const std::string& name) const {
    const auto at = std::find(type_names_.begin(), type_names_.end(), name);
    return at == type_names_.end() ? -1 : static_cast<int>(at - type_names_.begin());
  }
  /// Calls `take` for each row of a list. A row has `count` numbers; the first `indices` are indices below `limit`.
  void rows(const char* key, std::size_t count, std::size_t indices, int limit, const TakeRow& take);
  /// The same, repeated for every molecule with the indices shifted to its particles.
  void molecule_rows(const char* key, std::size_t count, std::size_t indices, const TakeRow& take);
  bool read_positive(JsonObject& object, const char* key, double& out);

  const JsonDocument& document_;
  ParticleSystem& system_;
  DiagnosticSink sink_;
  JsonObject root_;
  ForceField field_;
  std::vector<std::string> molecule_, type_names_;
  std::vector<int> type_;  // [n]
  std::vector<double> epsilon_, sigma_, charge_;
};

void SetupReader::rows(const char* key, std::size_t count, std::size_t indices, int limit, const TakeRow& take) {
  const JsonValue* list = root_.get(key);
  if (!list) return;
  if (!list->is_array() || !list->numbers.empty())
    return root_.fault(*list, key, fmt::format("an array of arrays of {} numbers is expected", count));
  for (std::size_t r = 0; r < list->items.size(); ++r) {
    const JsonValue& row = list->items[r];
    const std::string path = fmt::format("{}[{}]", key, r);
    if (!row.is(Type::numbers) || row.numbers.size() != count) {
      root_.fault(row, path, fmt::format("an array of {} numbers is expected", count));
      continue;
    }
    bool good = true;
    for (std::size_t a = 0; a < indices; ++a) {
      const double i = row.numbers[a];
      if (i >= 0 && i < limit && i == std::floor(i)) continue;
      root_.fault(row, path, fmt::format("{} is not a particle, expected 0 to {}", i, limit - 1));
      good = false;
    }
    if (!good) continue;
    try {
      take(row.numbers);
    } catch (const ValueError& error) {
      root_.fault(row, path, error.what());
    }
  }
}

void SetupReader::molecule_rows(const char* key, std::size_t count, std::size_t indices, const TakeRow& take) {
  rows(key, count, indices, size(), [&](const std::vector<double>& row) {
    std::vector<double> moved = row;
    for (int first = 0; first + size() <= system_.particles(); first += size()) {
      for (std::size_t a = 0; a < indices; ++a) moved[a] = first + row[a];
      take(moved);
    }
  });
}

bool SetupReader::read_positive(JsonObject& object, const char* key, double& out) {
  if (!object.read(key, out)) return false;
  if (!(out > 0)) object.fault(*object.get(key), key, fmt::format("{} is not a positive number", out));
  return true;
}

void SetupReader::read_molecule() {
  if (!root_.read("molecule", molecule_)) return;
  const JsonValue& at = *root_.get("molecule");
  const int n = system_.particles();
  if (molecule_.empty() || n % static_cast<int>(molecule_.size()) != 0) {
    root_.fault(at, "molecule",
                fmt::format("{} particles cannot be divided into molecules of {}", n, molecule_.size()));
    molecule_.clear();
    return;
  }
  system_.molecule.resize(n);
  for (int i = 0; i < n; ++i) system_.molecule[i] = i / size();
}

void SetupReader::read_types() {
  const JsonValue* types = root_.get("types");
  if (!types) return;
  JsonObject list(document_, *types, "types", sink_);
  for (std::size_t t = 0; t < types->keys.size(); ++t) {
    list.get(types->keys[t]);
    JsonObject item(document_, types->items[t], "types/" + types->keys[t], sink_);
    double epsilon = 0, sigma = 0, charge = 0;
    item.read("charge", charge);
    if (item.read("epsilon", epsilon) && !(epsilon >= 0))
      item.fault(types->items[t], "epsilon", fmt::format("{} is negative", epsilon));
    if (!read_positive(item, "sigma", sigma) && epsilon > 0)
      item.fault(types->items[t], "sigma", "is required with epsilon");
    item.done(Severity::error, "epsilon, sigma, charge");
    type_names_.push_back(types->keys[t]);
    epsilon_.push_back(epsilon), sigma_.push_back(sigma), charge_.push_back(charge);
  }
  const std::vector<std::string>& names = molecule_.empty() ? system_.species : molecule_;
  if (names.empty()) return root_.fault(*types, "types", "the types of the particles are not known: add \"molecule\"");
  for (int i = 0; i < system_.particles(); ++i) {
    const std::string& name = names[i % names.size()];
    type_.push_back(type_number(name));
    if (type_.back() >= 0) continue;
    type_.clear();
    return root_.fault(*types, "types",
                       fmt::format("particle {} has type {}, which is not defined here", i, quote(name)));
  }
}

void SetupReader::read_lennard_jones() {
  const JsonValue* value = root_.get("lennard_jones");
  if (!value) return;
  JsonObject object(document_, *value, "lennard_jones", sink_);
  LennardJones& lj = field_.lennard_jones;
  if (!read_positive(object, "cutoff", lj.cutoff)) object.fault(*value, "cutoff", "is missing");
  std::string form = "shifted", mixing = "lorentz_berthelot";
  object.read("form", form), object.read("mixing", mixing);
  if (form == "plain")
    lj.mode = LennardJones::Cutoff::plain;
  else if (form == "force_switch")
    lj.mode = LennardJones::Cutoff::force_switch;
  else if (form != "shifted")
    object.fault(*value, "form", fmt::format("{} is not plain, shifted or force_switch", quote(form)));
  const bool switched = lj.mode == LennardJones::Cutoff::force_switch;
  if (const bool given = read_positive(object, "switch_from", lj.switch_from); given != switched)
    object.fault(*value, "switch_from", given ? "is for the form force_switch only" : "is missing");
  else if (switched && !(lj.switch_from < lj.cutoff))
    object.fault(*value, "switch_from", "is not below the cutoff");
  if (type_.empty()) object.fault(*value, "", "needs \"types\" with epsilon and sigma");
  lj.type = type_;
  lj.mix_lorentz_berthelot(epsilon_, sigma_);
  if (mixing == "geometric") {
    for (int a = 0; a < lj.types; ++a) {
      for (int b = 0; b < lj.types; ++b) lj.sigma[a * lj.types + b] = std::sqrt(sigma_[a] * sigma_[b]);
    }
  } else if (mixing != "lorentz_berthelot") {
    object.fault(*value, "mixing", fmt::format("{} is not lorentz_berthelot or geometric", quote(mixing)));
  }
  read_pairs(object, lj);
  object.done(Severity::error, "cutoff, form, switch_from, mixing, pairs");
}

void SetupReader::read_pairs(JsonObject& object, LennardJones& lj) {
  const JsonValue* pairs = object.get("pairs");
  if (!pairs) return;
  JsonObject list(document_, *pairs, "lennard_jones/pairs", sink_);
  for (const std::string& key : pairs->keys) {
    std::vector<double> numbers;
    if (!list.read(key, numbers, 2)) continue;
    const std::size_t blank = key.find(' ');
    const int a = type_number(key.substr(0, blank)),
              b = blank == std::string::npos ? -1 : type_number(key.substr(blank + 1));
    if (a < 0 || b < 0)
      list.fault(*list.get(key), key, "is not two types with a blank between them");
    else if (!(numbers[0] >= 0 && numbers[1] > 0))
      list.fault(*list.get(key), key, "epsilon must not be negative, sigma must be positive");
    else
      for (const int at : {a * lj.types + b, b * lj.types + a}) lj.epsilon[at] = numbers[0], lj.sigma[at] = numbers[1];
  }
}

void SetupReader::read_coulomb() {
  const JsonValue* value = root_.get("coulomb");
  if (!value) return;
  JsonObject object(document_, *value, "coulomb", sink_);
  Coulomb& coulomb = field_.coulomb;
  double cutoff = 1, outside = 0;
  if (!read_positive(object, "cutoff", cutoff)) object.fault(*value, "cutoff", "is missing");
  std::string form = "shifted_force";
  object.read("form", form);
  const bool outside_given = object.read("epsilon_outside", outside);
  coulomb.cutoff = cutoff;
  if (form == "shifted")
    coulomb.offset = 1 / cutoff;
  else if (form == "shifted_force")
    coulomb.shifted_force(cutoff);
  else if (form == "shifted_gradient")
    coulomb.shifted_gradient(cutoff);
  else if (form == "reaction_field")
    coulomb.reaction_field(cutoff, outside);
  else if (form != "plain")
    object.fault(
        *value, "form",
        fmt::format("{} is not plain, shifted, shifted_force, shifted_gradient or reaction_field", quote(form)));
  if (outside < 0) object.fault(*value, "epsilon_outside", fmt::format("{} is negative", outside));
  if (outside_given && form != "reaction_field")
    object.fault(*value, "epsilon_outside", "is for the form reaction_field only");
  coulomb.constant = system_.units.coulomb;
  read_positive(object, "constant", coulomb.constant);
  read_positive(object, "bare", coulomb.bare);
  object.read("corrections", coulomb.corrections);
  if (type_.empty()) object.fault(*value, "", "needs \"types\" with charges");
  for (const int type : type_) coulomb.charge.push_back(charge_[type]);
  object.done(Severity::error, "cutoff, form, epsilon_outside, constant, bare, corrections");
}

void SetupReader::read_exclusions() {
  const JsonValue* value = root_.get("exclude");
  if (value && value->is_array()) {
    molecule_rows("exclude", 2, 2, [&](const std::vector<double>& r) {
      if (r[0] == r[1]) throw ValueError("exclusion", fmt::format("{} {}", r[0], r[1]), "two particles");
      field_.exclusions.push_back({static_cast<int>(r[0]), static_cast<int>(r[1])});
    });
    return;
  }
  std::string word = molecule_.empty() ? "none" : "molecule";
  root_.read("exclude", word);
  if (word == "molecule" && !molecule_.empty())
    field_.exclude_molecules(system_.molecule);
  else if (word != "none" && value)
    root_.fault(*value, "exclude",
                "expected \"molecule\" (needs the key \"molecule\"), \"none\" or pairs of particles");
}

void check_apart(std::initializer_list<double> particles) {
  for (auto a = particles.begin(); a != particles.end(); ++a) {
    if (std::find(particles.begin(), a, *a) != a)
      throw ValueError("particle", fmt::format("{}", *a), "each particle only once");
  }
}

void SetupReader::read_bonded() {
  const auto id = [](double i) { return static_cast<int>(i); };
  molecule_rows("bonds", 4, 2, [&](const std::vector<double>& r) {
    check_apart({r[0], r[1]});
    field_.bonds.push_back({id(r[0]), id(r[1]), r[2], r[3]});
  });
  molecule_rows("angles", 5, 3, [&](const std::vector<double>& r) {
    check_apart({r[0], r[1], r[2]});
    field_.angles.push_back({id(r[0]), id(r[1]), id(r[2]), r[3], r[4] * kDegree});
  });
  molecule_rows("torsions", 7, 4, [&](const std::vector<double>& r) {
    check_apart({r[0], r[1], r[2], r[3]});
    field_.torsions.push_back({id(r[0]), id(r[1]), id(r[2]), id(r[3]), r[4], r[5], r[6]});
  });
}

void SetupReader::read_rigid() {
  ConstraintSet& set = system_.constraints;
  const auto id = [](double i) { return static_cast<int>(i); };
  molecule_rows("distances", 3, 2, [&](const std::vector<double>& r) { set.add_distance(id(r[0]), id(r[1]), r[2]); });
  molecule_rows("rigid_angles", 4, 3,
                [&](const std::vector<double>& r) { set.add_angle(id(r[0]), id(r[1]), id(r[2]), r[3] * kDegree); });
  molecule_rows("rigid_torsions", 5, 4, [&](const std::vector<double>& r) {
    set.add_dihedral(id(r[0]), id(r[1]), id(r[2]), id(r[3]), r[4] * kDegree);
  });
}

void SetupReader::read_outer() {
  rows("springs", 5, 1, system_.particles(), [&](const std::vector<double>& r) {
    field_.springs.push_back({static_cast<int>(r[0]), r[1], {r[2], r[3], r[4]}});
  });
  if (std::vector<double> g; root_.read("gravity", g, 3)) field_.gravity = {g[0], g[1], g[2]};
  const JsonValue* pinned = root_.get("pinned");
  if (!pinned) return;
  if (!pinned->is(Type::numbers)) return root_.fault(*pinned, "pinned", "an array of particles is expected");
  system_.pinned.resize(system_.mass.size(), 0);
  for (const double i : pinned->numbers) {
    if (i >= 0 && i < system_.particles() && i == std::floor(i))
      system_.pinned[static_cast<std::size_t>(i)] = 1;
    else
      root_.fault(*pinned, "pinned", fmt::format("{} is not a particle, expected 0 to {}", i, system_.particles() - 1));
  }
}

void SetupReader::read_places() {
  ConstraintSet& set = system_.constraints;
  double length = 1;  // length scale of rows without one: the shortest distance, else 1
  for (int k = 0; k < set.nrow(); ++k) {
    if (set.kind(k) == RowKind::distance) length = k == 0 ? set.value(k) : std::min(length, set.value(k));
  }
  const int n = system_.particles();
  rows("planes", 7, 1, n, [&](const std::vector<double>& r) {
    set.add_plane(static_cast<int>(r[0]), {r[1], r[2], r[3]}, {r[4], r[5], r[6]}, length);
  });
  rows("spheres", 5, 1, n, [&](const std::vector<double>& r) {
    set.add_sphere(static_cast<int>(r[0]), {r[1], r[2], r[3]}, r[4]);
  });
  if (std::vector<double> c; root_.read("centre_of_mass", c, 3))
    set.add_centre_of_mass(system_.mass, {c[0], c[1], c[2]}, length);
}

}  // namespace

bool apply_particle_setup(ParticleSystem& system, const std::string& text, const std::string& file) {
  const JsonDocument document(text, file, kLimits);
  ParticleSystem changed = system;
  if (changed.constraints.particles() != changed.particles()) changed.constraints = ConstraintSet(changed.particles());
  const bool forces = SetupReader(document, changed).read();
  try {
    changed.check();
  } catch (const Error& error) {
    throw InputError({file, 0, 0, ""}, error.what());
  }
  // Not the state: others may have views of it.
  system.molecule = std::move(changed.molecule), system.pinned = std::move(changed.pinned);
  system.constraints = std::move(changed.constraints), system.force_field = std::move(changed.force_field);
  return forces;
}

bool read_particle_setup(ParticleSystem& system, const std::string& path) {
  return apply_particle_setup(system, read_file(path, kLimits.bytes), path);
}

}  // namespace tarsus
