#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "tarsus/io/lammps_data.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

[[noreturn]] void refuse(const LammpsData& data, const std::string& message) {
  throw InputError({data.system.name, 0, 0, ""}, message);
}

const std::vector<double>& numbers_of(const LammpsData& data, const std::vector<LammpsCoefficients>& all, int type,
                                      const char* what, std::initializer_list<const char*> styles, std::size_t count) {
  if (all.empty() || all[type - 1].numbers.size() < count)
    refuse(data, fmt::format("{} type {} has no coefficients, expected at least {} numbers", what, type, count));
  const LammpsCoefficients& found = all[type - 1];
  if (!found.style.empty() &&
      std::none_of(styles.begin(), styles.end(), [&](const char* s) { return found.style == s; })) {
    refuse(data, fmt::format("{} type {} is {}, expected {}", what, type, found.style, fmt::join(styles, " or ")));
  }
  return found.numbers;
}

bool is_in(const std::vector<int>& list, int type) { return std::find(list.begin(), list.end(), type) != list.end(); }

void use_bonds(LammpsData& data, const LammpsUse& use) {
  for (const LammpsTopology& bond : data.bonds) {
    const auto& c = numbers_of(data, data.bond_coefficients, bond.type, "bond", {"harmonic"}, 2);
    if (is_in(use.rigid_bonds, bond.type))
      data.system.constraints.add_distance(bond.atoms[0], bond.atoms[1], c[1]);
    else
      data.system.force_field.bonds.push_back({bond.atoms[0], bond.atoms[1], 2 * c[0], c[1]});
  }
}

// A rigid angle between two rigid bonds becomes a distance constraint between its end atoms.
void use_angles(LammpsData& data, const LammpsUse& use) {
  std::map<std::pair<int, int>, double> rigid;
  for (const LammpsTopology& bond : data.bonds) {
    if (!is_in(use.rigid_bonds, bond.type)) continue;
    rigid[std::minmax(bond.atoms[0], bond.atoms[1])] = data.bond_coefficients[bond.type - 1].numbers[1];
  }
  const auto bond_length = [&](int i, int j) {
    const auto found = rigid.find(std::minmax(i, j));
    if (found != rigid.end()) return found->second;
    throw ValueError("rigid angle",
                     fmt::format("over atoms {} and {}, which have no rigid bond", data.id[i], data.id[j]),
                     "two rigid bonds");
  };
  for (const LammpsTopology& angle : data.angles) {
    const auto& c = numbers_of(data, data.angle_coefficients, angle.type, "angle", {"harmonic"}, 2);
    const double theta = c[1] * kPi / 180;
    const int i = angle.atoms[0], j = angle.atoms[1], k = angle.atoms[2];
    if (!is_in(use.rigid_angles, angle.type)) {
      data.system.force_field.angles.push_back({i, j, k, 2 * c[0], theta});
      continue;
    }
    const double a = bond_length(i, j), b = bond_length(j, k);
    data.system.constraints.add_distance(i, k, std::sqrt(a * a + b * b - 2 * a * b * elementary::cos(theta)));
  }
}

void use_dihedrals(LammpsData& data) {
  for (const LammpsTopology& term : data.dihedrals) {
    const auto& c = numbers_of(data, data.dihedral_coefficients, term.type, "dihedral", {"opls"}, 3);
    if (c.size() > 3 && c[3] != 0)
      refuse(data, fmt::format("dihedral type {} has K4 = {}, expected K4 = 0", term.type, c[3]));
    data.system.force_field.torsions.push_back(
        {term.atoms[0], term.atoms[1], term.atoms[2], term.atoms[3], c[0] / 2, c[1] / 2, c[2] / 2});
  }
}

void exclude_up_to_three_bonds(LammpsData& data) {
  const int n = data.system.particles();
  std::vector<std::vector<int>> bonded(n);
  for (const LammpsTopology& bond : data.bonds)
    bonded[bond.atoms[0]].push_back(bond.atoms[1]), bonded[bond.atoms[1]].push_back(bond.atoms[0]);
  for (int i = 0; i < n; ++i) {
    std::set<int> near{i};
    for (int depth = 0; depth < 3; ++depth) {
      std::set<int> wider = near;
      for (const int j : near) wider.insert(bonded[j].begin(), bonded[j].end());
      near = std::move(wider);
    }
    for (const int j : near) {
      if (j > i) data.system.force_field.exclusions.push_back({i, j});
    }
  }
}

void note(LammpsData& data, std::string text) {
  data.notes.push_back({Severity::warning, {data.system.name, 0, 0, ""}, std::move(text)});
}

// Adds a note where the file's cutoffs or Coulomb form differ from those that will be used.
void note_own_cutoffs(LammpsData& data, const LammpsUse& use) {
  for (std::size_t type = 0; type < data.pair_coefficients.size(); ++type) {
    const LammpsCoefficients& c = data.pair_coefficients[type];
    if (c.numbers.size() > 2 && c.numbers[2] != use.cutoff) {
      note(data, fmt::format("pair type {} has a cutoff of {}, which is not used: the cutoff is {}", type + 1,
                             c.numbers[2], use.cutoff));
    }
  }
  const std::string& style = data.pair_coefficients[0].style;
  if (style == "lj/cut/coul/cut" && !use.reaction_field)
    note(data,
         "pair style lj/cut/coul/cut: Coulomb energy and force are shifted to zero at the cutoff (coul/dsf, alpha 0)");
}

bool charged(const LammpsData& data) {
  return std::any_of(data.charge.begin(), data.charge.end(), [](double q) { return q != 0; });
}

void use_pairs(LammpsData& data, const LammpsUse& use) {
  ForceField& field = data.system.force_field;
  if (!data.pair_coefficients.empty()) {
    LennardJones& lj = field.lennard_jones;
    lj.types = static_cast<int>(data.pair_coefficients.size());
    std::vector<double> epsilon, sigma;
    for (int type = 1; type <= lj.types; ++type) {
      const auto& c =
          numbers_of(data, data.pair_coefficients, type, "pair", {"lj/cut", "lj/cut/coul/cut", "lj/cut/coul/dsf"}, 2);
      epsilon.push_back(c[0]), sigma.push_back(c[1]);
    }
    for (int a = 0; a < lj.types; ++a) {
      for (int b = 0; b < lj.types; ++b)
        lj.epsilon.push_back(std::sqrt(epsilon[a] * epsilon[b])), lj.sigma.push_back(std::sqrt(sigma[a] * sigma[b]));
    }
    note_own_cutoffs(data, use);
    for (const int type : data.type) lj.type.push_back(type - 1);
    lj.cutoff = use.cutoff;
    lj.mode = LennardJones::Cutoff::shifted;
  }
  if (charged(data)) {
    field.coulomb.charge = data.charge;
    field.coulomb.constant = data.system.units.coulomb;
    if (use.reaction_field)
      field.coulomb.reaction_field(use.cutoff, 0);
    else
      field.coulomb.shifted_force(use.cutoff);
  }
  exclude_up_to_three_bonds(data);
}

}  // namespace

void use_lammps_data(LammpsData& data, const LammpsUse& use) {
  if (use.reaction_field && !(use.cutoff > 0)) throw ValueError("reaction field", "given", "a cutoff with it");
  for (const int type : use.rigid_bonds) {
    if (type < 1 || type > static_cast<int>(data.bond_coefficients.size()))
      throw ValueError("rigid bond type", fmt::format("{}", type),
                       fmt::format("a bond type with coefficients, 1 to {}", data.bond_coefficients.size()));
  }
  for (const int type : use.rigid_angles) {
    if (type < 1 || type > static_cast<int>(data.angle_coefficients.size()))
      throw ValueError("rigid angle type", fmt::format("{}", type),
                       fmt::format("an angle type with coefficients, 1 to {}", data.angle_coefficients.size()));
  }
  use_bonds(data, use);
  use_angles(data, use);
  use_dihedrals(data);
  if (use.cutoff > 0)
    use_pairs(data, use);
  else if (!data.pair_coefficients.empty())
    note(data, "pair coefficients are not used: no cutoff is given");
  else if (charged(data))
    note(data, "charges are not used: no cutoff is given");
}

}  // namespace tarsus
