// Contacts of free bodies for sweeps (tarsus/solver/sweeps.hpp) in SIMD lanes.
//
// A sweep goes from place to place, and treats the contacts of one place together. Each contact comes after all
// contacts that share a body with it and were added before it. Every body thus sees its contacts in the order of
// adding, or in the reverse order, and the result is that of sweeping one contact after another. Within that rule a
// contact takes the first place with room. A heap of bodies has so many contacts without a common body that nearly all
// places are full.
//
// Sweeps are in single precision. They end far from its limit, and their result is the impulses alone.
#pragma once

#include <span>
#include <vector>

#include "solver/relax.hpp"
#include "tarsus/base/aligned.hpp"
#include "tarsus/solver/sweeps.hpp"

namespace tarsus {

class BodyPoints {
 public:
  BodyPoints();
  /// Removes all contacts.
  void clear(std::span<const FreeBody> bodies);
  /// Adds a contact, with zero numbers, in its place. @return its index
  int add(const ContactRows& point);
  /// Adds something else that acts on these bodies (-1: none); all such additions come one after another.
  /// @return its place
  int add_other(int a, int b);
  int places() const { return int(room_.size()); }
  float& number(int contact, PointNumber which) {
    return numbers_[std::size_t(contact / lanes_) * lanes_ * kPointNumbers + std::size_t(which) * lanes_ +
                    contact % lanes_];
  }
  Vec3d vector(int contact, PointNumber which) {
    const float* const x = &number(contact, which);
    return {double(x[0]), double(x[lanes_]), double(x[2 * lanes_])};
  }
  void put(int contact, PointNumber which, const Vec3d& x) {
    float* const to = &number(contact, which);
    to[0] = float(x.x), to[lanes_] = float(x.y), to[2 * lanes_] = float(x.z);
  }
  /// Takes the motions of all bodies, or gives them back.
  void take_motions(std::span<const FreeBody> bodies);
  void give_motions(std::span<FreeBody> bodies) const;
  void take_motion(const FreeBody& body, int index);
  void give_motion(int index, FreeBody& body) const;
  void extrapolate(const Extrapolation& by);  ///< of the bodies' motions
  /// One sweep over places [first, end), forwards or backwards. Before it, y is extrapolated by `by`, unless null.
  Relaxed relax(int first, int end, bool back, const Extrapolation* by);

 private:
  int world() const { return int(bodies_.size() / (kBodyNumbers / 2)) - 2; }  ///< as an entry of body_
  int find(int place);
  int take(int a, int b, int from);
  void add_place();
  void come_after(int place, int a, int b);

  int lanes_;
  std::vector<int>
      next_;  ///< [body] the first place after all of its contacts; the last entry: after the other additions
  std::vector<int> room_;  ///< [place] free lanes
  std::vector<int> free_;  ///< [place] itself if it has room, else a later one
  std::vector<int> body_;  ///< [place][a, b][lane] twice the body's index
  AlignedVector<float> numbers_;
  AlignedVector<float> bodies_;              ///< [body][kBodyNumbers], then the world
  AlignedVector<float> before_, increment_;  ///< [body][8] motion before an Extrapolation, and its increments
};

}  // namespace tarsus
