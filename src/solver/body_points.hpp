// Contacts of free bodies for sweeps (tarsus/solver/sweeps.hpp), several side by side.
//
// A sweep goes from place to place, and those of one place go at once. Each contact comes after all that share a body
// with it and were added before it, so that every body meets its contacts as it would one by one, and backwards too:
// the result is that of one contact after the other. Between them the first place with room is taken; a pile has so
// many contacts that are not neighbours that nearly all places are full.
#pragma once

#include <vector>

#include "solver/relax.hpp"
#include "tarsus/base/aligned.hpp"
#include "tarsus/solver/sweeps.hpp"

namespace tarsus {

class BodyPoints {
 public:
  BodyPoints();
  /// None. @param bodies so many there are
  void clear(std::size_t bodies);
  /// A contact in its place, its numbers zero. @return where they are
  int add(const ContactRows& point);
  /// Something else that acts on these bodies, -1: on none; all of these come after one another. @return its place
  int add_other(int a, int b);
  int places() const { return int(room_.size()); }
  double& number(int contact, PointNumber which) {
    return numbers_[std::size_t(contact / lanes_) * lanes_ * kPointNumbers + std::size_t(which) * lanes_ +
                    contact % lanes_];
  }
  /// One sweep over places [first, end), or from the last to the first; before it y goes on by `by`, unless null.
  Relaxed relax(std::vector<FreeBody>& bodies, int first, int end, bool back, const Extrapolation* by);

 private:
  int find(int place);
  int take(int a, int b, int from);
  void add_place();
  void come_after(int place, int a, int b);

  int lanes_;
  std::vector<int> next_;  ///< [body] the first place after all of its contacts; then that of the others
  std::vector<int> room_;  ///< [place] so many contacts more
  std::vector<int> free_;  ///< [place] itself where there is room, else a later one
  std::vector<int> body_;  ///< [place][a, b][lane] -1: none
  AlignedVector<double> numbers_;
};

}  // namespace tarsus
