// Non-bonded forces of identical molecules of three sites, such as water, over a list of pairs of molecules.
//
// A pair is listed if the first sites are closer than cutoff + 2 extent + skin. The extent is the largest distance of a
// site from its molecule's first site. The list is rebuilt once the two largest displacements of first sites plus the
// growth of the extent use up the skin, so it misses no pair. First sites are slow: the hydrogens' rotation causes no
// rebuild.
//
// Two of every five pairs on that list have no two sites near the cutoff. While forces are computed over the whole
// list, the other pairs are written to a second list with a smaller skin. It is valid until the largest displacements
// of sites use up that skin, which takes some three steps.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "particles/site_kernel.hpp"
#include "tarsus/base/aligned.hpp"
#include "tarsus/base/thread_team.hpp"
#include "tarsus/particles/forces.hpp"

namespace tarsus {

class SiteForces {
 public:
  struct Field {
    PairArgs pairs;  ///< cutoffs and constants; lengths in `unit`
    PairLaw law;     ///< between first sites
    double charge[3];
    bool corrections;  ///< add the smooth form's terms between the sites of a molecule
    Coulomb coulomb;   ///< in the system's units
  };
  /// @param unit length unit, the larger cutoff   @param skin in that unit
  SiteForces(int molecules, const Field& field, double unit, double skin);
  /// Whether the positions are suitable: molecules whole and small compared with the box.
  bool fits(std::span<const double> position) const;
  /// Adds to force [9 m] and, if not null, to the energies, with the same bits for every team size. Returns false and
  /// adds nothing if a new list is due and the positions are not suitable.
  bool add(std::span<const double> position, std::span<double> force, Energies* energies, ThreadTeam& team);
  int builds() const { return list_.builds; }
  std::int64_t pairs() const { return 9 * list_.count; }

 private:
  /// A run of molecules in the list's order, whose forces are summed into a separate array. The number of parts, and so
  /// the order of every sum, depends on the system only.
  struct Part {
    int from = 0, to = 0;
    AlignedVector<double> force;
    std::vector<char> touched;  // [blocks]
    double lj = 0, coulomb = 0, virial[6] = {};
  };
  /// The list entries that one thread finds for molecules [from, to).
  struct Segment {
    int from = 0, to = 0;
    std::vector<unsigned> entry;
    std::int64_t pairs = 0;
  };
  struct Correction {
    double energy = 0, virial[6] = {};
  };
  static constexpr int kBlock = 32;  // molecules that are consecutive in the list's order
  int blocks() const { return m_ / kBlock + 1; }

  /// The two largest of several squares.
  struct Largest {
    double first = 0, second = 0;
    void take(double value) {
      if (value > second) second = value > first ? std::exchange(first, value) : value;
    }
    void take(const Largest& other) { take(other.first), take(other.second); }
  };
  /// Motion of some molecules since the list was built: the largest displacements of first sites, the largest extent
  /// (both squared, in the system's unit), and a sum that is NaN if any position is.
  struct Moved {
    Largest way;
    double extent = 0, sum = 0;
  };
  Largest load(std::span<const double> position, int from, int to);
  bool load_all(std::span<const double> position, ThreadTeam& team);
  Moved moved(std::span<const double> position, int from, int to) const;
  bool list_is_stale(std::span<const double> position, ThreadTeam& team) const;
  void build_list(std::span<const double> position, ThreadTeam& team);
  void sort_into_cells(std::span<const double> position);
  void list_segment(Segment& segment);
  void cut_into_parts(ThreadTeam& team);
  void compute_part(Part& part, bool with_energy);
  void collect(std::span<const double> position, std::span<double> force, int block, Correction* correction) const;
  void correct(const double* position, double* force, Correction* correction) const;

  struct Cells {
    int count[3] = {1, 1, 1};
    double low[3] = {}, size[3] = {};
    std::vector<int> start, of;
    std::vector<double> x, y, z;
    std::vector<unsigned> id;
  };
  struct List {
    double radius = 0, extent = 0;
    std::vector<double> at;           // [3 m] first sites when the list was built, in the system's unit
    std::vector<int> order;           // [m] place -> molecule
    std::vector<double> offset;       // [3 m] by place: shift of the molecule into the box
    std::vector<std::int64_t> start;  // [m + 1]
    std::vector<unsigned> entry;
    std::int64_t count = 0;
    int builds = 0;
  };
  struct Kept {  // entries of the list with sites near each other at packed_ = at
    std::vector<unsigned> entry;
    std::vector<std::int64_t> end;  // [m]
    AlignedVector<double> at;
    bool due = true;  // a new second list is due
  };

  int m_;
  Field field_;
  double unit_, skin_;
  const SiteKernels* kernels_;
  SiteArgs args_{};
  alignas(64) double shift_[27 * 4] = {};
  AlignedVector<double> packed_;  // [kSiteRow (m + 1)]
  Cells cells_;
  List list_;
  std::vector<Segment> segments_;
  Kept kept_;
  std::vector<Part> parts_;
  std::vector<Correction> corrections_;  // [blocks]
};

}  // namespace tarsus
