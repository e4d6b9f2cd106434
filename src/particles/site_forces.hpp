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
  int builds() const { return builds_; }
  std::int64_t pairs() const { return 9 * listed_; }

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

  int m_;
  Field field_;
  double unit_, skin_, radius_ = 0, extent_ = 0;  // radius_, extent_: of the list
  const SiteKernels* kernels_;
  SiteArgs args_{};
  alignas(64) double shift_[27 * 4] = {};
  AlignedVector<double> packed_;   // [kSiteRow (m + 1)]
  std::vector<double> listed_at_;  // [3 m] first sites, as given
  // The list's order.
  std::vector<int> order_;      // [m] place -> molecule
  std::vector<double> offset_;  // [3 m] by place: what takes a molecule into the box
  int cells_[3] = {1, 1, 1};
  double low_[3] = {}, size_[3] = {};
  std::vector<int> cell_start_, cell_of_;
  std::vector<double> x_, y_, z_;
  std::vector<unsigned> id_;
  std::vector<Segment> segments_;
  std::vector<std::int64_t> start_;  // [m + 1]
  std::vector<unsigned> entry_;
  // Those of the list with sites near each other, when packed_ was kept_at_.
  std::vector<unsigned> kept_;
  std::vector<std::int64_t> kept_end_;  // [m]
  AlignedVector<double> kept_at_;
  bool keep_ = true;  // a new second list is due
  std::vector<Part> parts_;
  std::vector<Correction> corrections_;  // [blocks] between sites of one molecule
  std::int64_t listed_ = 0;
  int builds_ = 0;
};

}  // namespace tarsus
