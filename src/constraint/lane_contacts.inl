// Contact detection for a pack of worlds: which pairs may touch within the step in some lane, and where.
//
// Planes with spheres, capsules and boxes, and pairs of spheres and capsules, are found in all lanes at once. Other
// pairs go through the narrow phase, one world at a time, after a test of boxes around the shapes.
//
// All lanes share the links of contacts with the world: a slot is one contact in some of the lanes. Contacts between
// links are few in each world and differ from world to world. Their slots hold each lane's own links.
#pragma once

#include "constraint/lane_softness.inl"
#include "constraint/lane_space.inl"
#include "tarsus/geometry/narrow_phase.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Identifier of a contact from its pair and feature; never zero.
inline int contact_key(int pair, std::uint32_t feature) {
  const std::uint32_t key = (std::uint32_t(pair) + 1) * 0x9e3779b1u ^ feature * 0x85ebca6bu;
  return key ? int(key) : 1;
}

template <class T>
struct LaneDetector {
  static constexpr int kLanes = kWidth<T>;
  const LanePack<Real<T>>& pack;
  const LaneModel<Real<T>>& m;
  const LaneStep<Real<T>>& step;
  const LinkState<T>* state;
  LaneSpace<T>& s;

  int pair = 0;
  bool flipped = false;  ///< the routine's first shape is the pair's b
  T whole_fall{};        ///< displacement of a body by gravity within the step
  T fall{};              ///< the same, of one shape of the pair against the other
  T reach{};
  Mask<T> near{};
  Motion<T> motion_a{}, motion_b{};  ///< velocities of the pair's two links, at the world's origin
  Motion<T> motion{};                ///< of a against b
  bool stopped_apart = false;        ///< as ContactGeometry::stopped_apart()
  struct RoundContact {
    std::uint32_t feature;
    Vec3<T> n, point;
    T distance;
    Mask<T> where;
  };
  RoundContact round[3]{};  ///< contacts of two spheres or capsules
  int nround = 0;
  bool round_pair = false;
  int crossings[kLanes] = {};
  int turning = -1;  ///< link of the last placed shape
  T turn{};          ///< its angular speed

  void place(int i) {
    const LaneShape<Real<T>>& shape = m.shape[i];
    LanePlaced<T>& p = s.placed[i];
    const T zero = T(Real<T>(0));
    const bool plane = shape.type == ShapeType::plane;
    p.posed = false;
    if (shape.link < 0) {
      p.position = load3<T>(shape.position), p.rotation = load33<T>(shape.rotation), p.posed = true;
      p.centre = load3<T>(shape.centre), p.velocity = zero3<T>(), p.turn = zero;
    } else {
      const LinkState<T>& link = state[shape.link];
      const Vec3<T> arm = link.R * load3<T>(shape.centre);
      p.centre = link.o + arm;
      p.velocity = cross_add(link.v.w, arm, link.v.v);
      if (shape.link != turning) turning = shape.link, turn = norm(link.v.w);
      p.turn = plane ? zero : turn * T(shape.radius);
    }
    if (plane) pose(i);
    p.reach = mul_add(norm(p.velocity) + p.turn, T(step.h), plane ? zero : T(shape.radius));
  }
  Vec3<T> spin(const LaneShape<Real<T>>& shape) const { return shape.link < 0 ? zero3<T>() : state[shape.link].v.w; }
  const LanePlaced<T>& pose(int i) {
    LanePlaced<T>& p = s.placed[i];
    if (p.posed) return p;
    const LaneShape<Real<T>>& shape = m.shape[i];
    const LinkState<T>& link = state[shape.link];
    p.position = link.o + link.R * load3<T>(shape.position);
    p.rotation = link.R * load33<T>(shape.rotation);
    p.posed = true;
    return p;
  }

  /// Whether a pair that is near by its fastest points may meet at this point too.
  Mask<T> may_meet(const Vec3<T>& point, const Vec3<T>& n, T distance) const {
    const T way = maximum(distance - T(m.pair[pair].margin) - fall, T(Real<T>(0)));
    const Vec3<T> speed = cross_add(motion.w, point, motion.v) * T(step.h);
    const Mask<T> meet = way * way <= dot(speed, speed);
    if (!stopped_apart) return meet;
    const auto along = [&](const Motion<T>& v) { return absolute(dot(n, cross_add(v.w, point, v.v))); };
    return meet | (way <= T(step.h) * maximum(along(motion_a), along(motion_b)));
  }

  /// Adds a contact in the lanes `where`.
  /// @param on_b point on the routine's second shape  @param n normal towards the first
  void add(std::uint32_t feature, const Vec3<T>& on_b, const Vec3<T>& n, T distance, Mask<T> where) {
    const LanePair<Real<T>>& p = m.pair[pair];
    where = where & near & (distance <= reach);
    if (touches_only()) where = where & (distance <= T(p.margin));
    if (!any_lane(where)) return;
    const T half = distance * T(Real<T>(0.5));
    const Vec3<T> point = mul_add(n, half, on_b);
    where = where & may_meet(point, n, distance);
    if (!any_lane(where)) return;
    if (round_pair)
      round[nround++] = {feature, flipped ? -n : n, point, distance, where};
    else
      place_contact(where, contact_key(pair, feature), flipped ? -n : n, point, distance);
  }
  /// Places the contacts found between two spheres or capsules. Where these are apart and would close, meet() looks
  /// whether they meet.
  void place_round() {
    const T zero = T(Real<T>(0)), margin = T(m.pair[pair].margin);
    Mask<T> touch = no_lanes<T>(), close = touch;
    for (int k = 0; k < nround; ++k) {
      const T gap = round[k].distance - margin;
      const T parting = dot(round[k].n, cross_add(motion.w, round[k].point, motion.v));
      const Mask<T> touches = gap <= zero, closes = mul_add(T(step.h), parting, gap) < zero;
      touch = touch | (round[k].where & touches), close = close | (round[k].where & closes);
    }
    close = close & ~touch;
    for (int k = 0; k < nround; ++k) {
      const Mask<T> here = round[k].where & ~close;
      if (any_lane(here))
        place_contact(here, contact_key(pair, round[k].feature), round[k].n, round[k].point, round[k].distance);
    }
    nround = 0;
    if (any_lane(close)) each_world(close);
  }
  /// Writes a contact of this pair, in the lanes `where`, to free slots.
  void place_contact(Mask<T> where, int key, const Vec3<T>& to_a, const Vec3<T>& point, T distance) {
    const LanePair<Real<T>>& p = m.pair[pair];
    if (m.shape[p.b].link >= 0) {
      for (int l = 0; l < kLanes; ++l) {
        if (where[l]) add_crossing(l, key, to_a, point, distance);
      }
      return;
    }
    Mask<T> left = where;
    for (int* at = &s.first[m.shape[p.a].link]; any_lane(left);) {
      LaneContact<T>& c = slot(at);
      const Mask<T> here = left & ~c.live;
      left = left & ~here;
      at = &c.next;
      if (any_lane(here)) write(c, here, key, to_a, point, distance);
    }
  }
  /// Writes a contact of this pair in the lanes `here`.
  void write(LaneContact<T>& c, Mask<T> here, int key, const Vec3<T>& n, const Vec3<T>& point, T distance) {
    const LanePair<Real<T>>& p = m.pair[pair];
    const T zero = T(Real<T>(0)), gap = distance - T(p.margin);
    const T friction = p.condim == 1       ? zero
                       : pack.own_friction ? reinterpret_cast<const T*>(pack.own_friction)[pair]
                                           : T(p.friction);
    const auto put = [here](T x, T& to) { to = select(here, x, to); };
    c.live = c.live | here;
    c.key = (c.key & ~here) | (here & all_bits<T>(key)), c.pair = (c.pair & ~here) | (here & all_bits<T>(pair));
    c.n = select<T>(here, n, c.n), c.point = select<T>(here, point, c.point);
    put(gap, c.distance), put(gap, c.gap), put(friction, c.friction), put(T(p.compliance), c.compliance);
    put(T(p.damping_time), c.damping_time), put(zero, c.relative_compliance), put(zero, c.share);
    if (p.law >= 0) {
      const LaneSolverRow<T> row(m.law[p.law], gap);
      put(row.share, c.share), put(row.pull, c.damping_time), put(row.relative_compliance, c.relative_compliance);
      put(row.gap_share * gap, c.gap);
    }
    if (p.condim <= 3 && c.spin < 0) return;
    LaneSpin<T>& spin = spin_of(c);
    spin.live = p.condim > 3 ? spin.live | here : spin.live & ~here;
    put(T(p.torsional), spin.torsional), put(T(p.rolling), spin.rolling);
  }
  static Mask<T> lane(int l) {
    Mask<T> here = no_lanes<T>();
    here[l] = -1;
    return here;
  }
  /// MuJoCo's law, where the steps resolve it, acts only where shapes touch.
  bool touches_only() const { return m.pair[pair].law >= 0 && m.law[m.pair[pair].law].resolved; }
  /// Torsional and rolling friction of a slot. A new one is in no lane yet.
  LaneSpin<T>& spin_of(LaneContact<T>& c) {
    if (c.spin >= 0) return s.spin[c.spin];
    c.spin = s.nspin++;
    LaneSpin<T>& fresh = s.spin[c.spin];
    fresh.contact = &c, fresh.live = no_lanes<T>(), fresh.torsional = fresh.rolling = T(Real<T>(0));
    return fresh;
  }
  /// The slot of index *at, or a new one if *at is -1. The contacts of a link fill its slots without gaps in every
  /// lane.
  LaneContact<T>& slot(int* at) {
    if (*at >= 0) return s.contact[*at];
    *at = s.ncontact++;
    LaneContact<T>& fresh = s.contact[*at];
    clear(fresh);
    fresh.link = m.shape[m.pair[pair].a].link;
    return fresh;
  }

  /// Adds one world's contact between two links, in that world's first free slot.
  void add_crossing(int l, int key, const Vec3<T>& n, const Vec3<T>& point, T distance) {
    const LanePair<Real<T>>& p = m.pair[pair];
    int slot = crossings[l];
    if (slot == m.most_crossings) {  // keep the deepest
      s.overflow[l] = -1;
      slot = 0;
      for (int k = 1; k < m.most_crossings; ++k) {
        if (s.crossing[k].distance[l] > s.crossing[slot].distance[l]) slot = k;
      }
      if (!(distance[l] - p.margin < s.crossing[slot].distance[l])) return;
    } else {
      ++crossings[l];
    }
    const int a = m.shape[p.a].link, b = m.shape[p.b].link;
    const bool two_trees = pack.view.link[a].root != pack.view.link[b].root;
    if (two_trees || distance[l] < p.margin) s.between += select(lane(l), T(Real<T>(1)), T(Real<T>(0)));
    LaneContact<T>& c = s.crossing[slot];
    if (slot == s.ncrossing) clear(s.crossing[s.ncrossing++]);
    c.a[l] = a, c.b[l] = b;
    write(c, lane(l), key, n, point, distance);
  }
  static void clear(LaneContact<T>& c) {
    const T zero = T(Real<T>(0)), one = T(Real<T>(1));
    c.live = no_lanes<T>(), c.key = c.pair = Bits<T>{}, c.link = c.next = c.spin = -1,
    c.touch = c.ntouch_a = c.ntouch_b = 0;
    c.a = c.b = Bits<T>{};
    c.n = {zero, zero, one}, c.point = zero3<T>();
    c.distance = c.gap = c.friction = c.compliance = c.damping_time = c.relative_compliance = c.share = zero;
  }

  // -- routines, first shape A, second B; normals towards A ---------------------------------------------------------

  void spheres(const Vec3<T>& a, T ra, const Vec3<T>& b, T rb, const Vec3<T>& otherwise, std::uint32_t feature,
               Mask<T> where) {
    T length;
    const Vec3<T> n = away(a, b, ra + rb, otherwise, length);
    add(feature, mul_add(n, rb, b), n, length - ra - rb, where);
  }
  /// As in geometry/sphere_pairs.cpp.
  static Vec3<T> away(const Vec3<T>& a, const Vec3<T>& b, T size, const Vec3<T>& otherwise, T& length) {
    const Vec3<T> n = direction(a - b, otherwise, length);
    const T rounding = T(kCoincide<Real<T>>) * (size + absolute(a.x) + absolute(a.y) + absolute(a.z));
    return select<T>(length > rounding, n, otherwise);
  }
  static Vec3<T> direction(const Vec3<T>& v, const Vec3<T>& otherwise, T& length) {
    length = norm(v);
    const T one = T(Real<T>(1));
    const Mask<T> some = length > tiny<T>();
    return select<T>(some, v * (one / select(some, length, one)), otherwise);
  }
  static Vec3<T> across(const Vec3<T>& axis) {
    const T zero = T(Real<T>(0)), one = T(Real<T>(1));
    const Mask<T> x = absolute(axis.x) < T(Real<T>(0.6));
    T length;
    return direction(cross(axis, Vec3<T>{select(x, one, zero), select(x, zero, one), zero}), {zero, zero, one}, length);
  }
  void on_plane(const Vec3<T>& point, const LanePlaced<T>& plane, std::uint32_t feature,
                Mask<T> where = every_lane<T>()) {
    const Vec3<T> n = plane.rotation.column_z();
    const T h = dot(n, point - plane.position);
    add(feature, mul_add(n, -h, point), n, h, where);
  }
  void shape_on_plane(const LaneShape<Real<T>>& shape, const LanePlaced<T>& a, const LanePlaced<T>& plane) {
    const Vec3<T> n = plane.rotation.column_z();
    if (shape.type == ShapeType::sphere) return on_plane(mul_add(n, T(-shape.size[0]), a.position), plane, 0);
    if (shape.type == ShapeType::capsule) {
      const Vec3<T> axis = a.rotation.column_z();
      for (int end = 0; end < 2; ++end)
        on_plane(mul_add(n, T(-shape.size[0]), mul_add(axis, T(end ? shape.size[1] : -shape.size[1]), a.position)),
                 plane, end);
      return;
    }
    // As in geometry/plane_pairs.cpp, without corners of the upper face that are above the centre.
    const T zero = T(Real<T>(0));
    const Vec3<T> e = transpose_mul(a.rotation, n);
    const Vec3<T> rise{e.x * T(shape.size[0]), e.y * T(shape.size[1]), e.z * T(shape.size[2])};
    const T x = absolute(e.x), y = absolute(e.y), z = absolute(e.z);
    const Mask<T> x_y = x >= y, x_z = x >= z, y_z = y >= z, upright_x = x_y & x_z;
    for (int k = 0; k < 8; ++k) {
      const Vec3<T> above{k & 1 ? rise.x : -rise.x, k & 2 ? rise.y : -rise.y, k & 4 ? rise.z : -rise.z};
      const Mask<T> lower_face = select(upright_x, above.x, select(y_z, above.y, above.z)) <= zero;
      const Mask<T> below = above.x + above.y + above.z <= zero;
      const Vec3<T> corner = {T(k & 1 ? shape.size[0] : -shape.size[0]), T(k & 2 ? shape.size[1] : -shape.size[1]),
                              T(k & 4 ? shape.size[2] : -shape.size[2])};
      on_plane(a.position + a.rotation * corner, plane, k, lower_face | below);
    }
  }
  void capsule_sphere(const LaneShape<Real<T>>& sa, const LanePlaced<T>& a, const LaneShape<Real<T>>& sb,
                      const LanePlaced<T>& b) {
    const Vec3<T> axis = a.rotation.column_z();
    const T along = clamp(dot(axis, b.position - a.position), T(-sa.size[1]), T(sa.size[1]));
    spheres(mul_add(axis, along, a.position), T(sa.size[0]), b.position, T(sb.size[0]), across(axis), 0,
            every_lane<T>());
  }
  /// [Ericson 2005, 5.1.9] If nearly parallel and side by side: both ends of the common stretch.
  void capsules(const LaneShape<Real<T>>& sa, const LanePlaced<T>& a, const LaneShape<Real<T>>& sb,
                const LanePlaced<T>& b) {
    const T one = T(Real<T>(1)), half = T(Real<T>(0.5)), parallel = T(Real<T>(0.02));
    const T ha = T(sa.size[1]), hb = T(sb.size[1]), ra = T(sa.size[0]), rb = T(sb.size[0]);
    const Vec3<T> u = a.rotation.column_z(), v = b.rotation.column_z(), w = a.position - b.position;
    const T uv = dot(u, v), uw = dot(u, w), vw = dot(v, w), det = neg_mul_add(uv, uv, one);
    const T reach_b = hb * absolute(uv), middle = -uw;
    const T low = maximum(-ha, middle - reach_b), high = minimum(ha, middle + reach_b);
    const Mask<T> degenerate = det < T(Real<T>(1e-14));
    T along =
        clamp(select(degenerate, (low + high) * half, mul_add(uv, vw, -uw) / select(degenerate, one, det)), -ha, ha);
    const T t = clamp(mul_add(uv, along, vw), -hb, hb);
    along = clamp(mul_add(uv, t, -uw), -ha, ha);
    const Vec3<T> pa = mul_add(u, along, a.position), pb = mul_add(v, t, b.position), apart = pa - pb;
    const T most = (ra + rb + reach) * T(Real<T>(1.001));
    if (!any_lane(near & (dot(apart, apart) <= most * most))) return;
    T sine, length;
    const Vec3<T> crossed = direction(cross(u, v), across(u), sine);
    const Vec3<T> n = away(pa, pb, ra + rb + ha + hb, crossed, length);
    const T distance = length - ra - rb;
    const Mask<T> beside =
        (sine < parallel) & (absolute(dot(n, u)) < parallel) & (high - low > T(Real<T>(1e-3)) * minimum(ha, hb));
    const T none = T(std::numeric_limits<Real<T>>::max());
    T least = none;
    if (any_lane(beside & near)) {
      for (int end = 0; end < 2; ++end) {
        const Vec3<T> on_a = mul_add(u, end ? high : low, a.position);
        const T far = clamp(dot(v, on_a - b.position), -hb, hb);
        const Vec3<T> on_b = mul_add(v, far, b.position);
        least = select(beside, minimum(least, norm(on_a - on_b) - ra - rb), least);
        spheres(on_a, ra, on_b, rb, crossed, 1 + end, beside);
      }
    }
    const T slack = T(Real<T>(1e-9)) * (ra + rb + ha + hb);
    add(0, mul_add(n, rb, pb), n, distance, least > distance + slack);
  }

  /// Half the extent of a shape's bounding box along L.
  TARSUS_INLINE static T extent(const LaneShape<Real<T>>& shape, const Mat3<T>& R, const Vec3<T>& L) {
    return T(shape.box[0]) * absolute(dot(R.column_x(), L)) + T(shape.box[1]) * absolute(dot(R.column_y(), L)) +
           T(shape.box[2]) * absolute(dot(R.column_z(), L));
  }
  /// Whether the bounding box of a shape comes within reach of the plane.
  Mask<T> box_reaches(int shape, int plane) {
    const LanePlaced<T>&a = pose(shape), &on = pose(plane);
    const LaneShape<Real<T>>& of = m.shape[shape];
    const Vec3<T> n = on.rotation.column_z();
    const T height = dot(n, a.position + a.rotation * load3<T>(of.box_centre) - on.position);
    const T half = extent(of, a.rotation, n), rounding = T(Real<T>(sizeof(Real<T>) == 8 ? 1e-9 : 1e-5));
    return near & (height - half <= mul_add(rounding, absolute(height) + half, maximum(reach, T(Real<T>(0)))));
  }
  /// Whether boxes around the two shapes are within reach of each other: neither the last separating direction nor any
  /// of their faces' normals separates them by more. The last separating direction comes from any world; its test is
  /// conservative to rounding, so that it does not change the result.
  Mask<T> boxes_near(int ia, int ib) {
    const LanePlaced<T>&a = pose(ia), &b = pose(ib);
    const LaneShape<Real<T>>&sa = m.shape[ia], &sb = m.shape[ib];
    const Vec3<T> d =
        (b.position + b.rotation * load3<T>(sb.box_centre)) - (a.position + a.rotation * load3<T>(sa.box_centre));
    Mask<T> close = near;
    const Vec3d& axis = m.parting[pair];
    if (axis.x != 0 || axis.y != 0 || axis.z != 0) {
      const Vec3<T> L = (int(sa.type) < int(sb.type) ? b : a).rotation *
                        Vec3<T>{T(Real<T>(axis.x)), T(Real<T>(axis.y)), T(Real<T>(axis.z))};
      const T size = extent(sa, a.rotation, L) + extent(sb, b.rotation, L), apart = absolute(dot(d, L));
      const T place = absolute(a.position.x) + absolute(a.position.y) + absolute(a.position.z);
      const T rounding = T(Real<T>(sizeof(Real<T>) == 8 ? 1e-9 : 1e-5)) * (size + apart + place);
      close = close & (apart <= mul_add(reach, norm(L), size + rounding));
      if (!any_lane(close)) return close;
    }
    const auto test = [&](const Vec3<T>& L) {
      close = close & (absolute(dot(d, L)) <= extent(sa, a.rotation, L) + extent(sb, b.rotation, L) + reach);
    };
    test(a.rotation.column_x()), test(a.rotation.column_y()), test(a.rotation.column_z());
    test(b.rotation.column_x()), test(b.rotation.column_y()), test(b.rotation.column_z());
    return close;
  }

  /// Runs the narrow phase one world at a time, with the shapes in the order of their indices, as in ContactGeometry.
  void each_world() {
    const int ia = std::min(m.pair[pair].a, m.pair[pair].b), ib = std::max(m.pair[pair].a, m.pair[pair].b);
    const auto is = [&](int shape, ShapeType type) { return m.shape[shape].type == type; };
    const bool field = is(ia, ShapeType::height_field) || is(ib, ShapeType::height_field);
    const Mask<T> close = is(ia, ShapeType::plane)   ? box_reaches(ib, ia)
                          : is(ib, ShapeType::plane) ? box_reaches(ia, ib)
                          : field                    ? near
                                                     : boxes_near(ia, ib);
    if (any_lane(close)) each_world(close);
  }
  void each_world(Mask<T> where) {
    const int ia = std::min(m.pair[pair].a, m.pair[pair].b), ib = std::max(m.pair[pair].a, m.pair[pair].b);
    const bool swapped = m.pair[pair].a != ia;
    const Real<T> sign = swapped ? -1 : 1;
    const LanePlaced<T>&a = pose(ia), &b = pose(ib);
    const Motion<T>&by_a = swapped ? motion_b : motion_a, &by_b = swapped ? motion_a : motion_b;
    ContactPoint points[kMaxManifold];
    for (int l = 0; l < kLanes; ++l) {
      if (!where[l]) continue;
      const LaneMover of_a = mover(a, by_a, l), of_b = mover(b, by_b, l);
      const int count =
          m.collide(m.geometry, pair, of_a, of_b, double(maximum(reach, T(Real<T>(0)))[l]), double(step.h), points);
      for (int k = 0; k < count; ++k) {
        const ContactPoint& found = points[k];
        if (touches_only() && found.distance > double(m.pair[pair].margin)) continue;
        const auto narrow = [](const Vec3d& v, Real<T> by) {
          return Vec3<T>{T(by * Real<T>(v.x)), T(by * Real<T>(v.y)), T(by * Real<T>(v.z))};
        };
        const Vec3<T> n = narrow(found.normal, sign), point = narrow(found.position, 1);
        const T distance = T(Real<T>(found.distance));
        if (may_meet(point, n, distance)[l])
          place_contact(lane(l), contact_key(pair, found.feature), n, point, distance);
      }
    }
  }
  /// A shape of the pair in lane l. @param v velocity of its link, at the world's origin
  static LaneMover mover(const LanePlaced<T>& shape, const Motion<T>& v, int l) {
    LaneMover out;
    const Vec3<T> velocity = cross_add(v.w, shape.position, v.v);
    for (int k = 0; k < 3; ++k)
      out.position[k] = shape.position[k][l], out.velocity[k] = velocity[k][l], out.spin[k] = v.w[k][l];
    for (int k = 0; k < 9; ++k) out.rotation[k] = (&shape.rotation.xx)[k][l];
    return out;
  }

  /// Reach of two shapes, or of a group's, from margin and gravity.
  template <class Both>
  TARSUS_INLINE T still(const Both& both) const {
    const T zero = T(Real<T>(0));
    return maximum(T(both.margin), zero) + (both.falls ? whole_fall : zero);
  }
  /// Whether two shapes, or the bounding spheres of two links, are too far apart in every lane by the sum of their
  /// speeds. Most pairs end here, without a square root or a call. Of a plane only the distance counts.
  template <class Both>
  TARSUS_INLINE bool far(const Both& both) const {
    const LanePlaced<T>&a = s.placed[both.a], &b = s.placed[both.b];
    const Vec3<T> d = a.centre - b.centre;
    const T most = a.reach + b.reach + still(both);
    if (m.shape[both.b].type == ShapeType::plane) return !any_lane(dot(b.rotation.column_z(), d) <= most);
    if (m.shape[both.a].type == ShapeType::plane) return !any_lane(-dot(a.rotation.column_z(), d) <= most);
    return !any_lane(dot(d, d) <= most * most);
  }

  void touch(int p) {
    pair = p;
    const LanePair<Real<T>>& both = m.pair[p];
    const LanePlaced<T>&a = s.placed[both.a], &b = s.placed[both.b];
    const LaneShape<Real<T>>&sa = m.shape[both.a], &sb = m.shape[both.b];
    const T zero = T(Real<T>(0)), h = T(step.h), margin = T(both.margin);
    fall = both.falls ? whole_fall : zero, stopped_apart = both.falls && sb.link >= 0;
    const Vec3<T> d = b.centre - a.centre;
    const bool plane_a = sa.type == ShapeType::plane, plane_b = sb.type == ShapeType::plane;
    T stopped = zero;
    if (!plane_a && !plane_b) {
      stopped =
          stopped_apart ? margin + fall + h * maximum(norm(a.velocity) + a.turn, norm(b.velocity) + b.turn) : zero;
      reach = maximum(stopped, margin + fall + h * (norm(a.velocity - b.velocity) + a.turn + b.turn));
      const T close = T(sa.radius) + T(sb.radius) + reach;
      near = dot(d, d) <= close * close;
    } else {
      const LanePlaced<T>& plane = plane_a ? a : b;
      const Vec3<T> n = plane.rotation.column_z(), relative = a.velocity - b.velocity;
      const T into = plane_a ? dot(n, relative) : -dot(n, relative);
      reach = margin + fall + h * (maximum(zero, into) + a.turn + b.turn);
      const T height = plane_a ? dot(n, d) : -dot(n, d);
      near = height <= T(plane_a ? sb.radius : sa.radius) + reach;
    }
    if (!any_lane(near)) return;
    reach = maximum(reach, zero);
    const Vec3<T> spin_a = spin(sa), spin_b = spin(sb);
    motion_a = {spin_a, a.velocity - cross(spin_a, a.centre)};
    motion_b = {spin_b, b.velocity - cross(spin_b, b.centre)};
    motion = {motion_a.w - motion_b.w, motion_a.v - motion_b.v};
    if (!plane_a && !plane_b) {  // as ContactGeometry::reach(): two shapes meet on the smaller one
      const T one = T(Real<T>(1)), radius = T(std::min(sa.radius, sb.radius)), turned = h * norm(motion.w);
      const T moved = h * norm(cross_add(motion.w, sa.radius <= sb.radius ? a.centre : b.centre, motion.v));
      const T tight = (maximum(margin + fall, zero) + moved + turned * radius) / (one - T(Real<T>(0.5)) * turned);
      reach = maximum(select(turned < one, minimum(reach, tight), reach), stopped);
      const T close = T(sa.radius) + T(sb.radius) + reach;
      near = near & (dot(d, d) <= close * close);
      if (!any_lane(near)) return;
    }
    // Routines take the shape of the higher type first, as collide() does, and of two equal types that of the lower
    // index, as ContactGeometry does: contacts of capsules side by side lie at the ends of the first.
    flipped = sa.type == sb.type ? both.a > both.b : int(sa.type) < int(sb.type);
    const int ia = flipped ? both.b : both.a, ib = flipped ? both.a : both.b;
    const LaneShape<Real<T>>&A = m.shape[ia], &B = m.shape[ib];
    const bool round_a = A.type == ShapeType::sphere || A.type == ShapeType::capsule;
    const bool round_b = B.type == ShapeType::sphere || B.type == ShapeType::capsule;
    round_pair = round_a && round_b;
    if (B.type == ShapeType::plane && (round_a || A.type == ShapeType::box)) {
      shape_on_plane(A, pose(ia), pose(ib));
    } else if (round_pair) {
      const LanePlaced<T>&pa = pose(ia), &pb = pose(ib);
      const T one = T(Real<T>(1));
      if (A.type == ShapeType::sphere)
        spheres(pa.position, T(A.size[0]), pb.position, T(B.size[0]), {zero, zero, one}, 0, every_lane<T>());
      else if (B.type == ShapeType::sphere)
        capsule_sphere(A, pa, B, pb);
      else
        capsules(A, pa, B, pb);
      place_round();
    } else {
      each_world();
    }
  }

  void detect() {
    s.ncontact = s.ncrossing = s.nspin = 0, s.overflow = Bits<T>{}, s.between = T(Real<T>(0));
    std::fill(s.first, s.first + m.nlink, -1);
    if (!step.contacts) return;
    whole_fall = T(step.h * step.h) * (pack.view.own_gravity ? norm(against_gravity<T>(pack.view)) : T(step.gravity));
    for (int i = 0; i < m.nplaced; ++i) place(i);
    for (int g = 0; g < m.ngroup; ++g) {
      const LanePairGroup<Real<T>>& group = m.group[g];
      if (group.a >= 0 && far(group)) continue;
      for (int p = group.first; p < group.end; ++p) {
        if (!far(m.pair[p])) touch(p);
      }
    }
    int count = 0;
    for (int i = 0; i < m.nlink; ++i) {
      for (int k = s.first[i]; k >= 0; k = s.contact[k].next) s.order[count++] = &s.contact[k];
    }
  }
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
