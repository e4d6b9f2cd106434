#include "tarsus/particles/force_field.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tarsus/base/error.hpp"

namespace tarsus {

void LennardJones::mix_lorentz_berthelot(const std::vector<double>& own_epsilon, const std::vector<double>& own_sigma) {
  check_size("own_sigma", own_sigma.size(), own_epsilon.size());
  types = static_cast<int>(own_epsilon.size());
  epsilon.clear(), sigma.clear();
  for (int a = 0; a < types; ++a) {
    for (int b = 0; b < types; ++b) {
      epsilon.push_back(std::sqrt(own_epsilon[a] * own_epsilon[b]));
      sigma.push_back(0.5 * (own_sigma[a] + own_sigma[b]));
    }
  }
}

void Coulomb::shifted_force(double rc) {
  cutoff = rc, bare = 1, linear = 1 / (rc * rc), quadratic = 0, offset = 2 / rc;
}

void Coulomb::shifted_gradient(double rc) {
  cutoff = rc, bare = 1, linear = 3 / (rc * rc), quadratic = -1 / (rc * rc * rc), offset = 3 / rc;
}

void Coulomb::reaction_field(double rc, double outside) {
  const double k = outside > 0 ? (outside - 1) / (2 * outside + 1) : 0.5;
  cutoff = rc, bare = 1, linear = 0, quadratic = k / (rc * rc * rc), offset = 1 / rc + k / rc;
}

bool ForceField::empty() const {
  const bool no_bonded = bonds.empty() && angles.empty() && torsions.empty() && springs.empty();
  return !has_pairs() && no_bonded && gravity.x == 0 && gravity.y == 0 && gravity.z == 0;
}

void ForceField::exclude_molecules(const std::vector<int>& molecule) {
  std::map<int, std::vector<int>> members;
  for (std::size_t i = 0; i < molecule.size(); ++i) members[molecule[i]].push_back(static_cast<int>(i));
  for (const auto& [id, list] : members) {
    for (std::size_t a = 0; a < list.size(); ++a) {
      for (std::size_t b = a + 1; b < list.size(); ++b) exclusions.push_back({list[a], list[b]});
    }
  }
}

}  // namespace tarsus
