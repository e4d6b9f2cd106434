// Non-bonded forces of molecules of three sites that are all alike, as water: a list of pairs of molecules.
//
// Two molecules are listed while their first sites are closer than cutoff + 2 extent + skin, the extent being how far a
// site lies from its molecule's first one. The list is made anew once the two first sites that moved farthest together
// with what the extent grew by have used up the skin, so it misses no pair. First sites are the slow ones: the
// hydrogens' turning costs no build.
//
// Two molecules of every five on that list have no two sites near the cutoff. While forces are computed over all of it,
// those that have are written to a second list, which serves until the sites that moved farthest have used up a skin of
// its own: some three steps.
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
    PairArgs pairs;  ///< cutoffs and constants; lengths in the unit
    PairLaw law;     ///< between first sites
    double charge[3];
    bool corrections;  ///< count what the smooth form adds between a molecule's own sites
    Coulomb coulomb;   ///< in the system's units
  };
  /// @param skin in units of length, which is the larger cutoff
  SiteForces(int molecules, const Field& field, double unit, double skin);
  /// Whether the positions suit: molecules whole and small beside the box.
  bool fits(std::span<const double> position) const;
  /// Adds to force [9 m] and to the energies, if any. The same bits for every size of the team. False, and nothing
  /// added, where a new list was due and the positions no longer suit.
  bool add(std::span<const double> position, std::span<double> force, Energies* energies, ThreadTeam& team);
  int builds() const { return list_.builds; }
  std::int64_t pairs() const { return 9 * list_.count; }

 private:
  /// A run of molecules in the list's order whose forces are summed into an array of their own. How many there are
  /// depends on the system alone, and with it every sum's order.
  struct Part {
    int from = 0, to = 0;
    AlignedVector<double> force;
    std::vector<char> touched;  // [blocks]
    double lj = 0, coulomb = 0, virial[6] = {};
  };
  /// What one thread finds for molecules [from, to).
  struct Segment {
    int from = 0, to = 0;
    std::vector<unsigned> entry;
    std::int64_t pairs = 0;
  };
  struct Correction {
    double energy = 0, virial[6] = {};
  };
  static constexpr int kBlock = 32;  // molecules that follow one another in the list's order
  int blocks() const { return m_ / kBlock + 1; }

  /// The two largest of some squares.
  struct Largest {
    double first = 0, second = 0;
    void take(double value) {
      if (value > second) second = value > first ? std::exchange(first, value) : value;
    }
    void take(const Largest& other) { take(other.first), take(other.second); }
  };
  /// How far some molecules have come since the list was made: the largest ways of first sites, the largest extent
  /// (squares, as given), and a sum that is NaN if any is.
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
    std::vector<double> at;           // [3 m] first sites, as given, when it was made
    std::vector<int> order;           // [m] place -> molecule
    std::vector<double> offset;       // [3 m] by place: what takes a molecule into the box
    std::vector<std::int64_t> start;  // [m + 1]
    std::vector<unsigned> entry;
    std::int64_t count = 0;
    int builds = 0;
  };
  struct Kept {  // those of the list with sites near each other, when packed_ was `at`
    std::vector<unsigned> entry;
    std::vector<std::int64_t> end;  // [m]
    AlignedVector<double> at;
    bool due = true;  // a new one is due
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
  std::vector<Correction> corrections_;  // [blocks] between sites of one molecule
};

}  // namespace tarsus
