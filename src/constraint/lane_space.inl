// The memory of lane_terms.hpp's kernels for one pack: scratch of a step, and what it leaves to the next.
#pragma once

#include <cstddef>

#include "constraint/lane_choice.inl"
#include "constraint/lane_paths.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// A shape in the worlds.
template <class T>
struct LanePlaced {
  Vec3<T> centre, velocity;
  T turn;   ///< speed of the surface of its sphere by rotation alone [m/s]
  T reach;  ///< radius of all that it can touch within the step
  Vec3<T> position;
  Mat3<T> rotation;
  bool posed;
};

/// Of one contact: impulse and R (y - γ), tangential ones in world axes.
template <class T>
struct LaneContactMemory {
  Bits<T> key;
  T impulse, excess;
  Vec3<T> slide, slide_excess;
};
/// Moments and R (y - γ) of the same contact, rolling's in world axes.
template <class T>
struct LaneSpinMemory {
  T torsion, torsion_excess;
  Vec3<T> rolling, rolling_excess;
};
template <class T>
struct LaneJointMemory {
  T impulse, excess, known;  ///< known: 1 where the row was there
};
template <class T>
struct LaneBallMemory {
  Vec3<T> impulse, excess;
  T known;
};

/// Everything is [word][lane], so that a world can be taken from one pack to another word by word. Contacts beyond the
/// first `count` have no key.
template <class T>
struct LaneMemory {
  Bits<T>* count;  ///< of contacts, the same in all lanes
  LaneContactMemory<T>* contact;
  LaneSpinMemory<T>* spin;    ///< beside contact; none where the model has no such friction
  LaneJointMemory<T>* joint;  ///< [most_rows()]
  LaneBallMemory<T>* ball;    ///< [nlink]
};

/// Hands out parts of a block of bytes; counts them where there is none.
class LaneCarver {
 public:
  explicit LaneCarver(std::byte* block) : block_(block) {}
  template <class X>
  X* take(std::size_t count) {
    X* at = block_ ? reinterpret_cast<X*>(block_ + used_) : nullptr;
    used_ += (count * sizeof(X) + 63) / 64 * 64;
    return at;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* block_;
  std::size_t used_ = 0;
};

/// Rows on joints that a pack may have, and those along generalised directions, in the order of what is remembered.
template <class R>
int most_rows(const LaneModel<R>& m) {
  return 2 * m.nlimit + m.nloss + m.nlink + m.npath;
}
template <class T>
std::size_t carve_memory(const LaneModel<Real<T>>& m, std::byte* block, LaneMemory<T>& memory) {
  LaneCarver carve(block);
  memory.count = carve.take<Bits<T>>(1);
  memory.contact = carve.take<LaneContactMemory<T>>(m.most_contacts + m.most_crossings);
  memory.spin = carve.take<LaneSpinMemory<T>>(m.most_spins);
  memory.joint = carve.take<LaneJointMemory<T>>(most_rows(m));
  memory.ball = carve.take<LaneBallMemory<T>>(m.nlink);
  return carve.used();
}

/// What detection and each iteration make anew: packs of which one waits while another goes on share it.
template <class T>
struct LaneScratch {
  LanePlaced<T>* placed;
  LaneExtra<T>* extra;  ///< those that act in an iteration, without gaps in any lane; moments from most_crossings on
  LaneItem* item;       ///< the same, one after another
  Bits<T>* place;       ///< [extra] where the columns at hand have each lane's, -1: not
  LaneStiffness<T>* stiffness;    ///< [nlink]
  char *stiff, *needed, *pushed;  ///< [nlink]
  LaneLink<T>* link;
  Motion<T>* free;         ///< [nlink] velocities of what the solve begins with, where that is v⁰ in some lane
  Motion<T>* skew_motion;  ///< [nlink] J x of the pass without symmetry
  Motion<T>* column;       ///< [nlink][3] of three columns
  Force<T>* force;         ///< [nlink][3]
  Vec3<T>* left;           ///< [nlink][6]
  T *matrix, *right;       ///< of npath + 3 crossings; twice as many with torsion or rolling
  T *path_force, *path_x;  ///< [nv][3] of rows along generalised directions that have entries at DoFs
  T *x_next, *x_other, *x_extra;
  Force<T>* far_bias;  ///< [nlink] bias and joint_force of the lanes that begin with v⁰ anew
  T* far_joint_force;
  Vec3<T>* ground;    ///< [nlink] force of the contacts with the world, an impulse
  std::byte* narrow;  ///< room for a narrow pack, whose scratch is in the place of this
  std::byte* block;   ///< all of it
};

/// A pack's problem and where its iteration stands.
template <class T>
struct LaneSpace : LaneScratch<T> {
  LaneContact<T>* contact;   ///< with the world
  LaneContact<T>** order;    ///< those with the world, link by link
  int* first;                ///< [nlink] of the link's contacts with the world; -1: none
  LaneContact<T>* crossing;  ///< between links
  LaneContact<T>** active;   ///< of both, those that lanes which go on have
  LaneSpin<T>* spin;         ///< torsional and rolling friction of both
  LaneSpin<T>** active_spin;
  LaneJointRow<T>* row;  ///< by their places
  const T* path;         ///< [path_numbers] directions of these
  T* path_room;          ///< for them where lanes of several packs go on together
  LaneBallRow<T>* ball;
  LaneTouch<T>* touch;  ///< of all crossings, and of extra
  Force<T>* bias;  ///< [nlink] h times what moves the link with q̈ = 0; nothing where v⁰ is given. From LaneLinear
  T* joint_force;  ///< [nv] h Q; the same
  T *x_now, *x_best;
  int ncontact = 0, ncrossing = 0, nactive = 0, nspin = 0, nactive_spin = 0, nrow = 0, nball = 0;
  int npath = 0;     ///< of the rows the last, that the linear problem has by elimination
  Bits<T> overflow;  ///< lanes with more contacts between links than there is room for

  LaneJointRow<T>* paths() { return row + nrow - npath; }
  /// f(contact) for those of all lanes.
  template <class F>
  TARSUS_INLINE void every_contact(const F& f) {
    for (int i = 0; i < ncontact; ++i) f(*order[i]);
    for (int i = 0; i < ncrossing; ++i) f(crossing[i]);
  }
  /// For those of the lanes that go on.
  template <class F>
  TARSUS_INLINE void each_contact(const F& f) {
    for (int i = 0; i < nactive; ++i) f(*active[i]);
  }
  /// For torsional and rolling friction of these.
  template <class F>
  TARSUS_INLINE void each_spin(const F& f) {
    for (int i = 0; i < nactive_spin; ++i) f(*active_spin[i]);
  }
  template <class F>
  TARSUS_INLINE void each_term(const F& f) {
    each_contact(f), each_spin(f);
    for (int i = 0; i < nrow; ++i) f(row[i]);
    for (int i = 0; i < nball; ++i) f(ball[i]);
  }
  /// From now on `lanes` go on, and the contacts that only others have are passed over.
  void go_on(Mask<T> lanes) {
    nactive = nactive_spin = 0;
    every_contact([&](LaneContact<T>& c) {
      if (any_lane(c.live & lanes)) active[nactive++] = &c;
      if (c.spin >= 0 && any_lane(spin[c.spin].live & lanes)) active_spin[nactive_spin++] = &spin[c.spin];
    });
  }
};

template <class T>
int most_extras(const LaneModel<Real<T>>& m) {
  return (m.most_spins > 0 ? 2 : 1) * m.most_crossings;
}
template <class T>
std::size_t carve_space(const LaneModel<Real<T>>& m, std::byte* block, LaneSpace<T>& s) {
  LaneCarver carve(block);
  s.contact = carve.take<LaneContact<T>>(m.most_contacts), s.crossing = carve.take<LaneContact<T>>(m.most_crossings);
  s.order = carve.take<LaneContact<T>*>(m.most_contacts), s.first = carve.take<int>(m.nlink);
  s.active = carve.take<LaneContact<T>*>(m.most_contacts + m.most_crossings);
  s.spin = carve.take<LaneSpin<T>>(m.most_spins), s.active_spin = carve.take<LaneSpin<T>*>(m.most_spins);
  s.row = carve.take<LaneJointRow<T>>(most_rows(m) + 1);  // and one that joins
  s.path_room = carve.take<T>(m.path_numbers), s.path = s.path_room;
  s.ball = carve.take<LaneBallRow<T>>(m.nlink);
  s.touch = carve.take<LaneTouch<T>>(2 * kWidth<T> * (m.most_crossings + most_extras<T>(m) + 2));
  s.bias = carve.take<Force<T>>(m.nlink), s.joint_force = carve.take<T>(m.nv);
  s.x_now = carve.take<T>(m.nv), s.x_best = carve.take<T>(m.nv);
  return carve.used();
}
/// Room for a pack that lanes of others go on in: its problem, links and drives' K.
template <class T>
std::size_t together_size(const LaneModel<Real<T>>& m) {
  LaneSpace<T> space;
  LaneCarver rest(nullptr);
  rest.take<LinkState<T>>(std::size_t(m.nlink)), rest.take<T>(std::size_t(m.nv));
  return carve_space<T>(m, nullptr, space) + rest.used();
}
template <class T>
std::size_t carve_scratch(const LaneModel<Real<T>>& m, std::byte* block, LaneScratch<T>& s) {
  LaneCarver carve(block);
  const int extras = most_extras<T>(m), n = m.npath + 3 * extras, nv3 = m.path_dofs > 0 ? 3 * m.nv : 0;
  s.block = block;
  s.placed = carve.take<LanePlaced<T>>(m.nplaced);
  s.extra = carve.take<LaneExtra<T>>(extras);
  s.item = carve.take<LaneItem>(kWidth<T> * extras), s.place = carve.take<Bits<T>>(extras);
  s.stiffness = carve.take<LaneStiffness<T>>(m.nlink);
  s.stiff = carve.take<char>(m.nlink), s.needed = carve.take<char>(m.nlink), s.pushed = carve.take<char>(m.nlink);
  s.link = carve.take<LaneLink<T>>(m.nlink);
  s.free = carve.take<Motion<T>>(m.nlink), s.skew_motion = carve.take<Motion<T>>(m.nlink);
  s.column = carve.take<Motion<T>>(3 * m.nlink);
  s.force = carve.take<Force<T>>(3 * m.nlink), s.left = carve.take<Vec3<T>>(6 * m.nlink);
  s.matrix = carve.take<T>(std::size_t(n) * n), s.right = carve.take<T>(n + m.npath * (m.npath + 1));
  s.path_force = carve.take<T>(nv3), s.path_x = carve.take<T>(nv3);
  s.x_next = carve.take<T>(m.nv), s.x_other = carve.take<T>(m.nv), s.x_extra = carve.take<T>(m.nv);
  s.far_bias = carve.take<Force<T>>(m.nlink), s.far_joint_force = carve.take<T>(m.nv);
  s.ground = carve.take<Vec3<T>>(m.nlink);
  if constexpr (kNarrows<T>) s.narrow = carve.take<std::byte>(together_size<Narrow<T>>(m));
  return carve.used();
}

template <class T>
void lane_sizes(const LaneModel<Real<T>>& m, LaneSizes* sizes) {
  if constexpr (kWidth < T >> 1) {
    LaneSpace<T> space;
    LaneMemory<T> memory;
    sizes->scratch = carve_scratch<T>(m, nullptr, space), sizes->pack = carve_space<T>(m, nullptr, space);
    sizes->together = kNarrows<T> ? together_size<T>(m) : 0;
    sizes->memory = carve_memory<T>(m, nullptr, memory);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
