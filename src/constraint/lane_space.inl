// Memory of lane_terms.hpp's kernels for one pack: scratch of a step, and the warm-start cache.
#pragma once

#include <algorithm>
#include <cstddef>

#include "constraint/lane_choice.inl"
#include "constraint/lane_paths.inl"
#include "dynamics/spin_response.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// A shape in the worlds.
template <class T>
struct LanePlaced {
  Vec3<T> centre, velocity;
  T turn;   ///< surface speed of its bounding sphere by rotation alone [m/s]
  T reach;  ///< radius within which it may touch something in the step [m]
  Vec3<T> position;
  Mat3<T> rotation;
  bool posed;
};

/// Cache of one contact: impulse and R (y - γ), the tangential parts in world axes.
template <class T>
struct LaneContactMemory {
  Bits<T> key;
  T impulse, excess;
  Vec3<T> slide, slide_excess;
};
/// Its moments and R (y - γ), those of rolling in world axes.
template <class T>
struct LaneSpinMemory {
  T torsion, torsion_excess;
  Vec3<T> rolling, rolling_excess;
};
template <class T>
struct LaneJointMemory {
  T impulse, excess, known;  ///< known: 1 where the row existed
};
template <class T>
struct LaneBallMemory {
  Vec3<T> impulse, excess;
  T known;
};

/// The warm-start cache of a pack. All arrays are [word][lane], so that a world can move from one pack to another word
/// by word. Contacts beyond the first `count` have no key.
template <class T>
struct LaneMemory {
  Bits<T>* count;  ///< number of contacts, the same in all lanes
  LaneContactMemory<T>* contact;
  LaneSpinMemory<T>* spin;    ///< parallel to contact; none if the model has no such friction
  LaneJointMemory<T>* joint;  ///< [most_rows()]
  LaneBallMemory<T>* ball;    ///< [nlink]
};

/// Allocates parts of a block of bytes; without a block, it counts their size.
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

/// Number of rows on joints and along generalised directions that a pack may have, in the order of the cache.
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

/// Scratch of the responses of what spins (dynamics/spin_response.inl).
template <class T>
struct LaneResponse {
  LinkState<T>* state;           ///< [nlink]
  VelocityProductLink<T>* link;  ///< [nlink]
  T* scratch;                    ///< of the kernel
  T *change, *by, *next;         ///< [nv] change of v⁰, its last part; v⁺
};

/// Scratch of detection and of an iteration. Packs that iterate one after another share it.
template <class T>
struct LaneScratch {
  LanePlaced<T>* placed;
  LaneExtra<T>* extra;  ///< those that act in an iteration, without gaps in any lane; moments from most_crossings on
  LaneItem* item;       ///< the same as a list
  Bits<T>* place;       ///< [extra] the column of each lane's contact; -1: none
  LaneStiffness<T>* stiffness;    ///< [nlink]
  char *stiff, *needed, *pushed;  ///< [nlink]
  LaneLink<T>* link;
  Motion<T>* free;         ///< [nlink] velocities at the start of the solve, if that is v⁰ in some lane
  Motion<T>* skew_motion;  ///< [nlink] J x of the pass without symmetry
  Motion<T>* column;       ///< [nlink][3] for three columns
  Force<T>* force;         ///< [nlink][3]
  Vec3<T>* left;           ///< [nlink][6]
  T *matrix, *right;       ///< of npath + 3 crossings; twice as many crossings with torsion or rolling
  T *path_force, *path_x;  ///< [nv][3] of rows along generalised directions with entries at DoFs
  T *x_next, *x_other, *x_extra;
  Force<T>* far_bias;  ///< [nlink] bias and joint_force of the lanes that solve from zero
  T* far_joint_force;
  Vec3<T>* ground;  ///< [nlink] impulses of the contacts with the world
  LaneResponse<T> response;
  std::byte* narrow;  ///< room for a narrow pack, which reuses this scratch
  std::byte* block;   ///< the whole block
};

/// A pack's problem and the state of its iteration.
template <class T>
struct LaneSpace : LaneScratch<T> {
  LaneContact<T>* contact;   ///< with the world
  LaneContact<T>** order;    ///< those with the world, in the order of the links
  int* first;                ///< [nlink] the link's first contact with the world; -1: none
  LaneContact<T>* crossing;  ///< between links
  LaneContact<T>** active;   ///< of both kinds, those that some iterating lane has
  LaneSpin<T>* spin;         ///< torsional and rolling friction of both kinds
  LaneSpin<T>** active_spin;
  LaneJointRow<T>* row;  ///< in the order of their places
  const T* path;         ///< [path_numbers] directions of the paths
  T* path_room;          ///< storage for `path` in a pack that gathers lanes of others
  LaneBallRow<T>* ball;
  LaneTouch<T>* touch;  ///< of all crossings and extras
  Force<T>* bias;       ///< [nlink] h times the bias forces at q̈ = 0; zero where v⁰ is given. Written by LaneLinear
  T* joint_force;       ///< [nv] h Q; zero where v⁰ is given
  T *x_now, *x_best;
  int ncontact = 0, ncrossing = 0, nactive = 0, nspin = 0, nactive_spin = 0, nrow = 0, nball = 0;
  int npath = 0;     ///< number of rows, the last ones, that the linear problem eliminates
  Bits<T> overflow;  ///< lanes with more contacts between links than most_crossings
  T between;         ///< RowsReport::between, except in these lanes

  LaneJointRow<T>* paths() { return row + nrow - npath; }
  /// f(contact) for the contacts of all lanes.
  template <class F>
  TARSUS_INLINE void every_contact(const F& f) {
    for (int i = 0; i < ncontact; ++i) f(*order[i]);
    for (int i = 0; i < ncrossing; ++i) f(crossing[i]);
  }
  /// f(contact) for the contacts of the iterating lanes.
  template <class F>
  TARSUS_INLINE void each_contact(const F& f) {
    for (int i = 0; i < nactive; ++i) f(*active[i]);
  }
  /// f(spin) for their torsional and rolling friction.
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
  /// Sets the iterating lanes; contacts that only other lanes have are skipped from now on.
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
/// Size of a pack that gathers lanes of others: its problem, links and the drives' K.
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
  s.matrix = carve.take<T>(std::size_t(n) * n), s.right = carve.take<T>(n + std::max(n, m.npath * (m.npath + 1)));
  s.path_force = carve.take<T>(nv3), s.path_x = carve.take<T>(nv3);
  s.x_next = carve.take<T>(m.nv), s.x_other = carve.take<T>(m.nv), s.x_extra = carve.take<T>(m.nv);
  s.far_bias = carve.take<Force<T>>(m.nlink), s.far_joint_force = carve.take<T>(m.nv);
  s.ground = carve.take<Vec3<T>>(m.nlink);
  const int nlink = m.spins ? m.nlink : 0, nv = m.spins ? m.nv : 0;
  s.response = {carve.take<LinkState<T>>(nlink),
                carve.take<VelocityProductLink<T>>(nlink),
                carve.take<T>(3 * nv + 36 * nlink),
                carve.take<T>(nv),
                carve.take<T>(nv),
                carve.take<T>(nv)};
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
