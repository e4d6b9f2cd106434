// Kernels on contacts of one world with three rows, one contact a SIMD lane (math/gather.hpp): their rows, contact
// stiffness C = Σ G_ij a_i a_jᵀ, J x, and blocks J_xᵀ G J_y. A contact's numbers do not depend on the other contacts.
#pragma once

#include <algorithm>
#include <type_traits>

#include "constraint/lane_rows.inl"
#include "constraint/term_constants.hpp"
#include "tarsus/constraint/contact_place.hpp"
#include "tarsus/constraint/row_geometry.hpp"
#include "tarsus/dynamics/coupled_place.hpp"
#include "tarsus/dynamics/link_stiffness.hpp"
#include "tarsus/math/gather.hpp"
#include "tarsus/model/link_state.hpp"
#include "tarsus/solver/term.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

using ContactPack = RecordPack<double>::type;

using ContactLanes = RecordRun<ContactPack, ContactPlace>;

/// Where the rows of these contacts act: the arm on a, and the axes.
template <class P>
struct ContactFrames {
  const double* from[kWidth<P>];
  Vec3<P> arm, n, t1, t2;
  TARSUS_INLINE ContactFrames(const ContactRows* contacts, const ContactLanes& lanes) {
    for (int l = 0; l < kWidth<P>; ++l) from[l] = &contacts[lanes.at[l]->contact].arm_a.x;
    P x[4], y[9];
    gather_numbers<3>(from, 0, x), gather_numbers<9>(from, 6, y);
    arm = {x[0], x[1], x[2]}, n = {y[0], y[1], y[2]}, t1 = {y[3], y[4], y[5]}, t2 = {y[6], y[7], y[8]};
  }
  TARSUS_INLINE Vec3<P> other_arm() const {
    P x[4];
    gather_numbers<3>(from, 3, x);
    return {x[0], x[1], x[2]};
  }
};

/// As contact_tangents() [Duff et al. 2017], except for n.z = -0, which counts as 0 here.
template <class P>
TARSUS_INLINE void tangents_of(const Vec3<P>& n, Vec3<P>& t1, Vec3<P>& t2) {
  const P zero = P(0.0), one = P(1.0), sign = select(n.z < zero, -one, one), a = -one / (sign + n.z), b = n.x * n.y * a;
  t1 = {mul_add(sign * n.x * n.x, a, one), sign * b, -(sign * n.x)};
  t2 = {b, mul_add(n.y * n.y, a, sign), -n.y};
}

/// One side of the contacts: arm and velocity of the point on its link.
template <class P>
struct ContactSide {
  Vec3<P> arm, speed, later;  ///< later: at x = 0
  template <class T>
  TARSUS_INLINE ContactSide(const LinkState<T>* const* links, const Vec3<P>& point, P ahead) {
    const T* motion[kWidth<P>];
    for (int l = 0; l < kWidth<P>; ++l) motion[l] = &links[l]->v.w.x;
    P x[15];
    gather_numbers<15>(motion, 0, x);  // v, a, o
    arm = point - Vec3<P>{x[12], x[13], x[14]};
    speed = cross_add(Vec3<P>{x[0], x[1], x[2]}, arm, Vec3<P>{x[3], x[4], x[5]});
    later = mul_add(cross_add(Vec3<P>{x[6], x[7], x[8]}, arm, Vec3<P>{x[9], x[10], x[11]}), ahead, speed);
  }
};

/// The rows of contacts along n, t₁, t₂ (contact_terms.inl): axes and arms, R, b and w of each row, J v at x = 0, and y
/// at the present velocity.
/// @param contacts in: their links; out: arms and axes  @param rows, free, y [row]
template <class T>
void contact_terms_kernel(const ContactNumbers& of, const ContactPlace* places, int count, const LinkState<T>* links,
                          const ContactStep& step, ContactRows* contacts, TermRow* rows, double* free, double* y) {
  using P = ContactPack;
  static constexpr LinkState<T> kStill{};
  const P zero = P(0.0), ahead = P(step.ahead);
  for (int first = 0; first < count; first += kWidth<P>) {
    const ContactLanes lanes(places, first, count);
    const double *point[kWidth<P>], *softness[kWidth<P>];
    const LinkState<T>*a[kWidth<P>], *b[kWidth<P>];
    double *frame[kWidth<P>], *numbers[kWidth<P>];
    double has_b[kWidth<P>], inverse_mass[kWidth<P>], weight[kWidth<P>];
    bool both = false;
    for (int l = 0; l < kWidth<P>; ++l) {
      const ContactPlace& place = *lanes.at[l];
      ContactRows& contact = contacts[place.contact];
      point[l] = of.point + std::ptrdiff_t(place.contact) * of.stride;
      softness[l] = of.softness + std::ptrdiff_t(place.contact) * of.stride;
      a[l] = &links[contact.a], b[l] = contact.b >= 0 ? &links[contact.b] : &kStill;
      has_b[l] = contact.b >= 0, both |= contact.b >= 0;
      const ReferenceMass &of_a = step.mass[contact.a], none{}, &of_b = contact.b >= 0 ? step.mass[contact.b] : none;
      inverse_mass[l] = of_a.linear + of_b.linear, weight[l] = of_a.weight + of_b.weight;
      frame[l] = &contact.arm_a.x, numbers[l] = &rows[place.first_row].compliance;
    }
    P x[7], soft[8];
    gather_numbers<7>(point, 0, x), gather_numbers<8>(softness, 0, soft);
    const Vec3<P> at = {x[0], x[1], x[2]}, n = {x[3], x[4], x[5]};
    const P g = x[6] * soft[6];
    ContactSide<P> side(a, at, ahead);
    Vec3<P> t1, t2, other_arm = zero3<P>();
    tangents_of(n, t1, t2);
    const P w = load_rows<P>(inverse_mass), by_weight = load_rows<P>(weight);
    if (both) {
      const ContactSide<P> other(b, at, ahead);
      const P on_b = load_rows<P>(has_b);
      other_arm = other.arm * on_b;
      side.speed = side.speed - other.speed, side.later = side.later - other.later;
    }
    const Vec3<P> speed = {dot(n, side.speed), dot(t1, side.speed), dot(t2, side.speed)};

    const auto law = soft[3] > zero;  // the law of solref and solimp
    const LaneSpook<P> spook(soft[0], soft[1], g, speed.x, step.h, soft[7], soft[2] * by_weight);
    const P usual = P(std::max(step.relative_compliance, kLeastCompliance<T>)) * w;
    const P own = select(law, soft[5] * by_weight, spook.own_R);
    const P R = select(own > zero, maximum(own, P(kLeastCompliance<T>) * w), usual);
    const P target = select(law, neg_mul_add(soft[4], g, soft[3] * speed.x), spook.target);

    const P frame_numbers[15] = {side.arm.x, side.arm.y, side.arm.z, other_arm.x, other_arm.y, other_arm.z, n.x, n.y,
                                 n.z,        t1.x,       t1.y,       t1.z,        t2.x,        t2.y,        t2.z};
    scatter_numbers<15>(frame, 0, frame_numbers);
    const P row_numbers[12] = {R, target, zero, w, usual, zero, zero, w, usual, zero, zero, w};
    scatter_numbers<12>(numbers, 0, row_numbers);
    const P per_usual = P(1.0) / usual;
    lanes.triples.store(y, {(target - speed.x) / R, -(speed.y * per_usual), -(speed.z * per_usual)});
    lanes.triples.store(free, {dot(n, side.later), dot(t1, side.later), dot(t2, side.later)});
  }
}

/// Adds the symmetric part of the contacts' tangents, C = Σ G_ij a_i a_jᵀ at the point, and their forces to the links'
/// stiffness. At the link's origin: M = C, H = [arm] C, I = -[arm] C [arm].
template <class T>
void contact_stiffness_kernel(const ContactRows* contacts, const ContactPlace* places, int count,
                              const Tangent* tangents, const double* force, LinkStiffness<T>* stiffnesses) {
  using P = ContactPack;
  LinkStiffness<T> nobody{};
  for (int first = 0; first < count; first += kWidth<P>) {
    const ContactLanes lanes(places, first, count);
    const ContactFrames<P> at(contacts, lanes);
    const double* G[kWidth<P>];
    T* to[kWidth<P>];
    for (int l = 0; l < kWidth<P>; ++l) {
      G[l] = tangents[lanes.at[l]->contact].at[0];
      to[l] = l < lanes.live ? &stiffnesses[lanes.at[l]->stiffness].I.xx : &nobody.I.xx;
    }
    P of_n[1], of_t[2], of_2[1];
    gather_numbers<1>(G, 0, of_n), gather_numbers<2>(G, kTermRows + 1, of_t),
        gather_numbers<1>(G, 2 * kTermRows + 2, of_2);
    const Vec3<P> y = lanes.triples.load(force);
    const Vec3<P> cn = at.n * of_n[0], c1 = mul_add(at.t1, of_t[0], at.t2 * of_t[1]),
                  c2 = mul_add(at.t1, of_t[1], at.t2 * of_2[0]);
    const auto outer = [&](P Vec3<P>::*i, P Vec3<P>::*j) {
      return mul_add(c2.*i, at.t2.*j, mul_add(c1.*i, at.t1.*j, cn.*i * at.n.*j));
    };
    using V = Vec3<P>;
    const Sym3<P> C = {outer(&V::x, &V::x), outer(&V::x, &V::y), outer(&V::x, &V::z),
                       outer(&V::y, &V::y), outer(&V::y, &V::z), outer(&V::z, &V::z)};
    const V &arm = at.arm, hx = cross(arm, C.column_x()), hy = cross(arm, C.column_y()), hz = cross(arm, C.column_z());
    const V push = mul_add(at.t2, y.z, mul_add(at.t1, y.y, at.n * y.x)), moment = cross(arm, push);
    const Sym3<P> I = {neg_mul_add(arm.z, hy.x, arm.y * hz.x), neg_mul_add(arm.z, hy.y, arm.y * hz.y),
                       neg_mul_add(arm.z, hy.z, arm.y * hz.z), neg_mul_add(arm.x, hz.y, arm.z * hx.y),
                       neg_mul_add(arm.x, hz.z, arm.z * hx.z), neg_mul_add(arm.y, hx.z, arm.x * hy.z)};
    const LinkStiffness<P> sum{I, from_columns(hx, hy, hz), C, moment, push, {}, {}};
    scatter_numbers<27, true>(to, 0, reinterpret_cast<const P*>(&sum));
  }
}

/// J x of these contacts, from the links' motions a.
template <class T>
void contact_velocities_kernel(const ContactRows* contacts, const ContactPlace* places, int count,
                               const LinkState<T>* links, double* velocity) {
  using P = ContactPack;
  static const LinkState<T> kStill{};
  for (int first = 0; first < count; first += kWidth<P>) {
    const ContactLanes lanes(places, first, count);
    const ContactFrames<P> at(contacts, lanes);
    const T *a[kWidth<P>], *b[kWidth<P>];
    bool both = false;
    for (int l = 0; l < kWidth<P>; ++l) {
      const ContactRows& contact = contacts[lanes.at[l]->contact];
      a[l] = &links[contact.a].a.w.x, b[l] = contact.b >= 0 ? &links[contact.b].a.w.x : &kStill.a.w.x;
      both |= contact.b >= 0;
    }
    P m[6];
    gather_numbers<6>(a, 0, m);
    Vec3<P> v = cross_add(Vec3<P>{m[0], m[1], m[2]}, at.arm, Vec3<P>{m[3], m[4], m[5]});
    if (both) {
      gather_numbers<6>(b, 0, m);
      v = v - cross_add(Vec3<P>{m[0], m[1], m[2]}, at.other_arm(), Vec3<P>{m[3], m[4], m[5]});
    }
    lanes.triples.store(velocity, {dot(at.n, v), dot(at.t1, v), dot(at.t2, v)});
  }
}

/// J of n rows of a contact on one of its links: moments about the link's origin, and forces. @param sign -1 on link b
template <int n>
struct ContactWrenches {
  double at[n][6];
  RowOfEight<double> row[n];
  TARSUS_INLINE ContactWrenches(const ContactRows& contact, const Vec3<double>& arm, double sign) {
    for (int k = 0; k < n; ++k) {
      const Vec3<double> axis = contact.axis[k % 3] * sign, none = zero3<double>();
      const Vec3<double> moment = k < 3 ? cross(arm, axis) : axis, push = k < 3 ? axis : none;
      const double numbers[8] = {moment.x, moment.y, moment.z, push.x, push.y, push.z, 0, 0};
      for (int c = 0; c < 6; ++c) at[k][c] = numbers[c];
      row[k] = RowOfEight<double>::of(numbers);
    }
  }
};

/// B_xy += J_xᵀ G J_y and f_x += J_xᵀ γ of a contact with n rows.
template <int n>
TARSUS_INLINE void add_contact_blocks(const ContactRows& contact, const CoupledPlace& place, const Tangent& G,
                                      const double* gamma, double* blocks, double* forces) {
  using Row = RowOfEight<double>;
  const auto add_force = [&](const ContactWrenches<n>& J, double* f) {
    for (int c = 0; c < 6; ++c) {
      for (int k = 0; k < n; ++k) f[c] = mul_add(J.at[k][c], gamma[k], f[c]);
    }
  };
  const auto times = [&](const ContactWrenches<n>& J, Row* GJ) {
    for (int r = 0; r < n; ++r) {
      GJ[r] = Row{};
      for (int k = 0; k < n; ++k) GJ[r] = sum(GJ[r], G.at[r][k], J.row[k]);
    }
  };
  const auto add = [&](const ContactWrenches<n>& J, const Row* GJ, int block) {
    double* B = blocks + 48 * block;
    for (int r = 0; r < 6; ++r, B += 8) {
      Row row = Row::at(B);
      for (int k = 0; k < n; ++k) row = sum(row, J.at[k][r], GJ[k]);
      row.store(B);
    }
  };
  const ContactWrenches<n> A(contact, contact.arm_a, 1);
  Row GA[n];
  times(A, GA), add(A, GA, place.a), add_force(A, forces + 6 * place.a);
  if (place.b < 0) return;
  const ContactWrenches<n> B(contact, contact.arm_b, -1);
  Row GB[n];
  times(B, GB), add(B, GB, place.b), add_force(B, forces + 6 * place.b);
  add(A, GB, place.pair), add(B, GA, place.pair ^ 1);
}

/// Adds the contacts' tangents and forces as blocks between the motions of their links.
/// @param where [contact of the list]
/// @param blocks, forces of CoupledTrees
template <class T>
void contact_blocks_kernel(const ContactRows* contacts, const ContactPlace* places, const CoupledPlace* where,
                           int count, const Tangent* tangents, const double* force, double* blocks, double* forces) {
  for (int i = 0; i < count; ++i) {
    const ContactRows& contact = contacts[places[i].contact];
    const auto add = [&](auto n) {
      add_contact_blocks<n>(contact, where[i], tangents[places[i].contact], force + places[i].first_row, blocks,
                            forces);
    };
    switch (contact.nrow) {
      case 1: add(std::integral_constant<int, 1>()); break;
      case 3: add(std::integral_constant<int, 3>()); break;
      case 4: add(std::integral_constant<int, 4>()); break;
      default: add(std::integral_constant<int, 6>());
    }
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
