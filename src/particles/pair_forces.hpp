// Non-bonded forces: a Verlet list built from cells, and the kernels over it. Internal lengths are in units of the
// larger cutoff.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "particles/kernels.hpp"
#include "particles/site_forces.hpp"
#include "tarsus/particles/forces.hpp"

namespace tarsus {

class PairForces {
 public:
  explicit PairForces(const ParticleSystem& system);
  /// Adds to force [3 n] and to the energies, if any.
  void add(std::span<const double> position, std::span<double> force, Energies* energies, ThreadTeam& team);
  int builds() const { return list_.builds + (sites_ ? sites_->builds() : 0); }
  std::int64_t pairs() const { return by_sites_ ? sites_->pairs() : list_.pairs; }

 private:
  struct Laws {
    std::vector<PairLaw> all;
    std::vector<int> class_of;  // [n]
    int classes = 0;
    std::vector<int> of_classes;             // [classes²] index into all, -1: no interaction
    std::vector<std::vector<int>> of_class;  // [classes] the laws that involve a class
  };
  struct Excluded {
    std::vector<int> start, list;
    std::vector<std::array<int, 2>> pairs;  // each pair once, for the corrections
  };
  struct Cells {  // particles in the cells' order, as a structure of arrays
    int count[3] = {1, 1, 1};
    std::vector<int> bin_start;  // [cells * classes + 1] places of each class within each cell
    std::vector<int> sorted;     // [n] place -> particle
    std::vector<int> bin_of;     // [n]
    std::vector<double> x, y, z;
  };
  struct List {
    std::vector<PairRun> runs;
    std::vector<int> neighbours;  // the first `count` are valid
    std::int64_t count = 0, pairs = 0;
    int builds = 0;
  };
  void make_classes(const ForceField& field);
  void make_exclusions(const ForceField& field);
  void make_constants(const ForceField& field);
  void find_sites(const ParticleSystem& system);
  void add_general(std::span<const double> position, std::span<double> force, Energies* energies);
  bool list_is_stale() const;
  void build_list();
  void sort_into_cells();
  void add_run(int place, int law);
  void drop_excluded(int particle, std::int64_t begin);
  void add_corrections(std::span<const double> position, std::span<double> force, Energies* energies) const;

  int n_;
  double unit_, list_radius_, skin_;  // list_radius_ = 1 + skin_, in cutoff units
  const ParticleKernels* kernels_;
  Coulomb coulomb_;
  PairArgs args_{};
  Laws laws_;
  Excluded excluded_;
  std::vector<double> packed_, packed_force_, listed_at_;
  Cells cells_;
  List list_;
  std::unique_ptr<SiteForces> sites_;  // for a system of molecules of three sites, else null
  bool by_sites_ = false;
};

}  // namespace tarsus
