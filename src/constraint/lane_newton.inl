// The one solve of a step for packs of worlds: solver/step_newton.hpp's iteration, each lane with its own steps.
//
// A lane that has its answer is frozen; iterations go on while some lane needs them. Whatever a lane computes depends
// on its own numbers alone: rows, contacts and passes that only neighbours have add zeros to it.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "constraint/lane_contacts.inl"
#include "constraint/term_constants.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
class LaneSolver;
template <class N, class W>
void go_down_in(std::byte* room, std::span<LaneSolver<W>* const> packs);

template <class T>
class LaneSolver {
 public:
  static constexpr int kLanes = kWidth<T>;
  using R = Real<T>;
  template <class>
  friend class LaneSolver;
  template <class N, class W>
  friend void go_down_in(std::byte* room, std::span<LaneSolver<W>* const> packs);

  LaneSolver(const LanePack<R>& pack, const LaneModel<R>& model, const LaneStep<R>& step, LinkState<T>* state,
             const T* K, LaneSpace<T>& space, LaneMemory<T>& memory)
      : pack_(pack), v_(pack.view), m_(model), step_(step), state_(state), K_(K), s_(space), memory_(memory) {}

  /// The problem, and its iteration.
  /// @param waits the iteration stops where so few lanes need it that they had better go on together with others'
  void begin(bool waits) {
    const T *qpos = as_lanes(pack_.qpos), *qvel = as_lanes(pack_.qvel), *velocity = as_lanes(pack_.velocity);
    prepare_loads_kernel<T>(v_, state_);  // rigid inertias, which every solve starts from; M̂'s factors stay so long
    velocities(qvel, velocity);
    every_contact([&](LaneContact<T>& c) { build(c); });
    s_.nrow = s_.nball = 0;
    if (step_.limits) add_limits(qpos, qvel, velocity);
    if (step_.losses) add_losses(qvel, velocity);
    if (step_.nlimited > 0) add_drives(qvel, velocity, as_lanes(pack_.push));
    best_residual_ = T(std::numeric_limits<R>::infinity());
    met_ = every_lane<T>();
    for (int k = 0; k < v_.nv; ++k) s_.x_best[k] = zero();
    some_ = s_.ncontact + s_.ncrossing + s_.nrow + s_.nball > 0;
    if (!some_) return;
    met_ = no_lanes<T>();
    go_on(every_lane<T>());
    each([&](auto& t) {
      t.at.now_u = t.at.best_u = t.free;
      t.at.best_y = t.at.now_y * zero();
    });
    for (int k = 0; k < v_.nv; ++k) s_.x_now[k] = zero();
    waits_ = waits;
    descend(step_.tolerance, step_.most_iterations, true);
    waits_ = false;
  }
  /// Lanes that begin() left.
  int waiting() const { return waiting_ ? count_live() : 0; }
  /// v⁺ in place of v⁰; what the next step and the caller want to know.
  void end() {
    if (some_) solve_missed();
    const Mask<T> acted = (best_residual_ < T(std::numeric_limits<R>::infinity())) | met_;
    T* velocity = as_lanes(pack_.velocity);
    for (int k = 0; k < v_.nv; ++k) velocity[k] = velocity[k] + select(acted, s_.x_best[k], zero());
    remember(acted);
    write(pack_.report, acted);
    T* force = as_lanes(pack_.drive_force);
    for (int k = 0; k < v_.nv; ++k) force[k] = zero();
    drive_forces(force);
  }

 private:
  static constexpr R kExcess = sizeof(R) == 8 ? R(2e-10) : R(1e-6);
  static constexpr int kPatience = 8, kDiscs = 5, kHalvings = 8;
  static constexpr R kShort = R(0.2);
  static constexpr R kNear = R(0.01);  ///< residual below which steps go on from the iterate [m/s]

  static const T* as_lanes(const R* p) { return reinterpret_cast<const T*>(p); }
  static T* as_lanes(R* p) { return reinterpret_cast<T*>(p); }
  TARSUS_INLINE static T zero() { return T(R(0)); }
  TARSUS_INLINE static T one() { return T(R(1)); }
  /// Those of all lanes.
  template <class F>
  TARSUS_INLINE void every_contact(const F& f) {
    for (int i = 0; i < s_.ncontact; ++i) f(*s_.order[i]);
    for (int i = 0; i < s_.ncrossing; ++i) f(s_.crossing[i]);
  }
  /// Those of the lanes that go on.
  template <class F>
  TARSUS_INLINE void each_contact(const F& f) {
    for (int i = 0; i < s_.nactive; ++i) f(*s_.active[i]);
  }
  /// Torsional and rolling friction of these, after them.
  template <class F>
  TARSUS_INLINE void each_spin(const F& f) {
    for (int i = 0; i < s_.nactive_spin; ++i) f(*s_.active_spin[i]);
  }
  /// From now on `lanes` go on, and the contacts that only others have are passed over.
  void go_on(Mask<T> lanes) {
    live_ = lanes;
    s_.nactive = s_.nactive_spin = 0;
    every_contact([&](LaneContact<T>& c) {
      if (any_lane(c.live & live_)) s_.active[s_.nactive++] = &c;
      if (c.spin >= 0 && any_lane(s_.spin[c.spin].live & live_)) s_.active_spin[s_.nactive_spin++] = &s_.spin[c.spin];
    });
  }
  template <class F>
  TARSUS_INLINE void each(const F& f) {
    each_contact(f);
    each_spin(f);
    for (int i = 0; i < s_.nrow; ++i) f(s_.row[i]);
    for (int i = 0; i < s_.nball; ++i) f(s_.ball[i]);
  }

  // -- rows -----------------------------------------------------------------------------------------------------------

  /// Links' velocities at the start of the step and of v⁰.
  void velocities(const T* qvel, const T* free) {
    for (int i = 0; i < v_.nlink; ++i) {
      const LinkConstants<R>& link = v_.link[i];
      const auto go = [&](Motion<T>* all, const T* v) {
        const Motion<T> below = link.parent >= 0 ? shift(all[link.parent], state_[i].r) : world_velocity<T>();
        all[i] = below + joint_motion(link, state_[i].R, v + link.qvel);
      };
      go(s_.start, qvel), go(s_.free, free);
    }
  }
  T compliance(T own, T inverse_mass) const {
    const T relative = inverse_mass * T(step_.relative_compliance * R(4 / (1 + 4 * kDampingSteps)));
    return maximum(select(own > zero(), own, relative), inverse_mass * T(R(kLeastCompliance)));
  }
  /// The links of a contact between links, each with the lanes that have it there.
  template <class Contact>
  void find_touches(Contact& c) {
    const auto find = [&](const Bits<T>& side) {
      const int first = ntouch_;
      Mask<T> left = c.live;
      for (int l = 0; l < kLanes && any_lane(left); ++l) {
        if (!left[l]) continue;
        const Mask<T> here = left & (side == all_bits<T>(int(side[l])));
        s_.touch[ntouch_++] = {int(side[l]), here};
        left = left & ~here;
      }
      return ntouch_ - first;
    };
    c.touch = ntouch_, c.ntouch_a = find(c.a), c.ntouch_b = find(c.b);
  }
  /// f(link, whether it is on the second side, lanes) for the links of a contact between links.
  template <class Contact, class F>
  TARSUS_INLINE void each_touch(const Contact& c, const F& f) const {
    const LaneTouch<T>* touch = s_.touch + c.touch;
    for (int i = 0; i < c.ntouch_a + c.ntouch_b; ++i) f(touch[i].link, i >= c.ntouch_a, touch[i].lanes);
  }
  /// The motions, N of each link, of the links that each lane has on one side.
  template <int N>
  TARSUS_INLINE static void pick(const LaneTouch<T>* touch, int count, const Motion<T>* motion, Motion<T> (&out)[N]) {
    for (int k = 0; k < N; ++k) out[k] = world_velocity<T>();
    for (int i = 0; i < count; ++i) {
      const Motion<T>* from = motion + touch[i].link * N;
      const Mask<T> lanes = touch[i].lanes;
      for (int k = 0; k < N; ++k)
        out[k] = {select<T>(lanes, from[k].w, out[k].w), select<T>(lanes, from[k].v, out[k].v)};
    }
  }
  /// J of a contact between links times the links' motions, along n, t₁, t₂.
  template <int N, class Contact>
  TARSUS_INLINE void along(const Contact& c, const Motion<T>* motion, Vec3<T> (&out)[N]) const {
    const LaneTouch<T>* touch = s_.touch + c.touch;
    Motion<T> a[N], b[N];
    pick<N>(touch, c.ntouch_a, motion, a), pick<N>(touch + c.ntouch_a, c.ntouch_b, motion, b);
    for (int k = 0; k < N; ++k) {
      const Vec3<T> u = cross_add(a[k].w, c.arm_a, a[k].v) - cross_add(b[k].w, c.arm_b, b[k].v);
      out[k] = {dot(c.n, u), dot(c.t1, u), dot(c.t2, u)};
    }
  }
  /// The same of any contact and one motion of each link.
  Vec3<T> along(const LaneContact<T>& c, const Motion<T>* motion) const {
    if (c.link < 0) {
      Vec3<T> out[1];
      along<1>(c, motion, out);
      return out[0];
    }
    const Motion<T>& a = motion[c.link];
    const Vec3<T> u = cross_add(a.w, c.arm_a, a.v);
    return {dot(c.n, u), dot(c.t1, u), dot(c.t2, u)};
  }
  /// The links' relative angular velocities about a contact's n, t₁, t₂.
  template <int N, class Contact>
  TARSUS_INLINE void about(const Contact& c, const Motion<T>* motion, Vec3<T> (&out)[N]) const {
    const LaneTouch<T>* touch = s_.touch + c.touch;
    Motion<T> a[N], b[N];
    pick<N>(touch, c.ntouch_a, motion, a), pick<N>(touch + c.ntouch_a, c.ntouch_b, motion, b);
    for (int k = 0; k < N; ++k) {
      const Vec3<T> w = a[k].w - b[k].w;
      out[k] = {dot(c.n, w), dot(c.t1, w), dot(c.t2, w)};
    }
  }
  Vec3<T> about(const LaneContact<T>& c, const Motion<T>* motion) const {
    if (c.link < 0) {
      Vec3<T> out[1];
      about<1>(c, motion, out);
      return out[0];
    }
    const Vec3<T>& w = motion[c.link].w;
    return {dot(c.n, w), dot(c.t1, w), dot(c.t2, w)};
  }
  T inverse_mean(const Sym3<T>& M) const { return T(R(3)) / maximum(M.xx + M.yy + M.zz, T(R(1e-30))); }
  void build(LaneContact<T>& c) {
    const Vec3<T>& n = c.n;  // [Duff et al. 2017]
    const T sign = select(n.z < zero(), -one(), one()), a = -one() / (sign + n.z), b = n.x * n.y * a;
    c.t1 = {mul_add(sign * n.x, n.x * a, one()), sign * b, -(sign * n.x)};
    c.t2 = {b, mul_add(n.y, n.y * a, sign), -n.y};
    T mass;
    if (c.link >= 0) {
      c.arm_a = c.point - state_[c.link].o;
      mass = inverse_mean(state_[c.link].IA.M);
    } else {
      find_touches(c);
      c.arm_a = c.arm_b = zero3<T>();
      T of_a = zero(), of_b = zero();
      each_touch(c, [&](int link, bool second, Mask<T> lanes) {
        Vec3<T>& arm = second ? c.arm_b : c.arm_a;
        T& inverse = second ? of_b : of_a;
        arm = select<T>(lanes, c.point - state_[link].o, arm);
        inverse = select(lanes, inverse_mean(state_[link].IA.M), inverse);
      });
      mass = of_a + of_b;
    }
    const Vec3<T> speed = along(c, s_.start);
    c.free = along(c, s_.free);
    const LaneSpook<T> spook(c.compliance, c.damping_time, c.distance, speed.x, step_.h, R(kContactReturn),
                             c.relative_compliance * mass, step_.restitution, step_.restitution_threshold);
    const Mask<T> own_law = ~(c.share == zero());
    const T pull = neg_mul_add(c.damping_time, c.distance, c.share * speed.x);
    c.target = select(own_law, pull, spook.target), c.centre1 = c.centre2 = zero();
    c.normal.inverse_mass = c.tangent.inverse_mass = mass;
    c.normal.own_R = compliance(select(own_law, c.relative_compliance * mass, spook.own_R), mass);
    c.tangent.own_R = compliance(zero(), mass);
    c.normal.set(c.normal.own_R, c.live), c.tangent.set(c.tangent.own_R, c.live);
    c.at.now_y = before_projection(c, speed);
    c.Gnn = c.G1n = c.G2n = c.G11 = c.G12 = c.G22 = zero(), c.base = zero3<T>();
    if (c.spin >= 0) build(s_.spin[c.spin]);
    recall(c);
  }
  void build(LaneSpin<T>& s) {
    const LaneContact<T>& c = *s.contact;
    T inertia = zero();
    if (c.link >= 0) {
      inertia = inverse_mean(state_[c.link].IA.I);
    } else {
      T of_a = zero(), of_b = zero();
      each_touch(c, [&](int link, bool second, Mask<T> lanes) {
        T& inverse = second ? of_b : of_a;
        inverse = select(lanes, inverse_mean(state_[link].IA.I), inverse);
      });
      inertia = of_a + of_b;
    }
    s.free = about(c, s_.free), s.centre = zero3<T>();
    s.metric.inverse_mass = inertia, s.metric.own_R = compliance(zero(), inertia);
    s.metric.set(s.metric.own_R, s.live);
    s.at.now_y = before_projection(s, about(c, s_.start));
    s.no_tangent();
  }

  /// The same contact of the last step, lane by lane; both steps' contacts mostly stand in one order.
  void recall(LaneContact<T>& c) {
    const int count = int((*memory_.count)[0]);
    Bits<T> left = c.key;
    const auto take = [&](const LaneContactMemory<T>& old) {
      const Mask<T> same = (old.key == left) & (left != Bits<T>{});
      if (!any_lane(same)) return false;
      const Vec3<T> slide = old.slide, more = old.slide_excess;
      const T s1 = dot(c.t1, slide), s2 = dot(c.t2, slide);
      const Vec3<T> y = {mul_add(old.excess, c.normal.iR, old.impulse), mul_add(dot(c.t1, more), c.tangent.iR, s1),
                         mul_add(dot(c.t2, more), c.tangent.iR, s2)};
      c.at.now_y = select<T>(same, y, c.at.now_y);
      c.centre1 = select(same, s1, c.centre1), c.centre2 = select(same, s2, c.centre2);
      if (c.spin >= 0) recall(s_.spin[c.spin], memory_.spin[&old - memory_.contact], same);
      left = left & ~same;
      return !any_lane(left != Bits<T>{});
    };
    if (guess_ < count && take(memory_.contact[guess_])) {
      ++guess_;
      return;
    }
    for (int k = 0; k < count; ++k) {
      if (take(memory_.contact[k])) {
        guess_ = k + 1;
        return;
      }
    }
  }

  void recall(LaneSpin<T>& s, const LaneSpinMemory<T>& old, Mask<T> same) {
    const LaneContact<T>& c = *s.contact;
    const auto here = [&](T torsion, const Vec3<T>& x) { return Vec3<T>{torsion, dot(c.t1, x), dot(c.t2, x)}; };
    same = same & s.live;
    s.centre = select<T>(same, here(old.torsion, old.rolling), s.centre);
    const Vec3<T> over = here(old.torsion_excess, old.rolling_excess);
    s.at.now_y = select<T>(same, s.centre + over * s.metric.iR, s.at.now_y);
  }

  LaneJointRow<T>& add_row(typename LaneJointRow<T>::Kind kind, int joint, int place, Mask<T> live) {
    LaneJointRow<T>& r = s_.row[s_.nrow++];
    r.kind = kind, r.joint = joint, r.place = place, r.live = live;
    r.axial = !turns_freely(v_.link[joint].joint);
    r.G = r.base = r.centre = zero();
    return r;
  }
  T along(const LaneJointRow<T>& r, const T* velocity) const {
    const T* v = velocity + v_.link[r.joint].qvel;
    return r.axial ? r.e.x * v[0] : dot(r.e, state_[r.joint].R * get3(v));
  }
  T inverse_mass(const LaneJointRow<T>& r) const {
    const LinkState<T>& s = state_[r.joint];
    if (r.axial) return maximum(s.Dinv.xx, T(R(1e-30)));
    return one() / maximum(dot(r.e, s.IA.I * r.e) + s.k, T(R(1e-30)));
  }
  /// The start of a row's iteration at the velocity `speed`, or where the last step ended.
  void start(LaneJointRow<T>& r, T speed, bool sticks) {
    const LaneJointMemory<T>& old = memory_.joint[r.place];
    const Mask<T> known = (old.known > zero()) & r.live;
    r.at.now_y = select(known, mul_add(old.excess, r.metric.iR, old.impulse), before_projection(r, speed));
    if (sticks) r.centre = select(known, old.impulse, r.centre);
  }

  void add_limit(int joint, int place, const Vec3<T>& e, T gap, const T* qvel, const T* free, Mask<T> where) {
    LaneJointRow<T>& r = add_row(LaneJointRow<T>::Kind::limit, joint, place, where);
    r.e = e;
    const T speed = along(r, qvel), ahead = along(r, free);
    const int number = m_.limit_law[place / 2];
    const LaneSolverLaw<R>* law = number >= 0 && m_.law[number].resolved ? &m_.law[number] : nullptr;
    r.live = where & (mul_add(minimum(speed, ahead), T(step_.h), gap) <= T(R(kLimitReach)));
    if (law) r.live = r.live & (gap <= zero());
    if (!any_lane(r.live)) {
      --s_.nrow;
      return;
    }
    const T w = inverse_mass(r);
    const LaneSpook<T> spook(T(step_.limit_compliance), T(step_.limit_damping_time), gap, speed, step_.h,
                             R(kLimitReturn));
    T own_R = spook.own_R;
    r.free = ahead, r.target = spook.target;
    if (law) {
      const LaneSolverRow<T> row(*law, gap);
      own_R = row.relative_compliance * w, r.target = neg_mul_add(row.pull, gap, row.share * speed);
    }
    r.lower = zero(), r.upper = select(r.live, T(std::numeric_limits<R>::infinity()), zero());
    r.metric.inverse_mass = w, r.metric.own_R = compliance(own_R, w);
    r.metric.set(r.metric.own_R, r.live);
    start(r, speed, false);
  }
  void add_limits(const T* qpos, const T* qvel, const T* free) {
    for (int i = 0; i < m_.nlimit; ++i) {
      const int joint = m_.limit[i];
      const LinkConstants<R>& link = v_.link[joint];
      const T low = T(m_.range[2 * i]), high = T(m_.range[2 * i + 1]);
      if (!turns_freely(link.joint)) {
        const T q = qpos[link.qpos];
        add_limit(joint, 2 * i, {one(), zero(), zero()}, q - low, qvel, free, every_lane<T>());
        add_limit(joint, 2 * i + 1, {-one(), zero(), zero()}, high - q, qvel, free, every_lane<T>());
        continue;
      }
      // Far from its range without a logarithm: an angle is at most π sin(angle/2).
      const T* q = qpos + link.qpos;
      const Vec3<T> w = get3(qvel + link.qvel), w_free = get3(free + link.qvel), vec = get3(q + 1);
      const T fastest = square_root(maximum(dot(w, w), dot(w_free, w_free)));
      const T room = (high - T(R(kLimitReach)) - fastest * T(step_.h)) * T(R(0.31830988618379067));
      const Mask<T> far = (room > zero()) & (dot(vec, vec) < room * room);
      if (all_lanes(far)) continue;
      const Mask<T> back = q[0] < zero();
      const T factor = log_factor(minimum(absolute(q[0]), one()));
      const Vec3<T> turn = vec * select(back, -factor, factor);
      const T angle = norm(turn);
      const Mask<T> turned = (angle >= T(R(1e-6))) & ~far;
      const Vec3<T> axis = state_[joint].R * (turn * (-one() / maximum(angle, T(R(1e-6)))));
      add_limit(joint, 2 * i, axis, high - angle, qvel, free, turned);
    }
  }
  void add_losses(const T* qvel, const T* free) {
    for (int i = 0; i < m_.nloss; ++i) {
      const int joint = m_.loss_joint[i], k = m_.loss_dof[i] - v_.link[joint].qvel;
      LaneJointRow<T>& r = add_row(LaneJointRow<T>::Kind::loss, joint, 2 * m_.nlimit + i, every_lane<T>());
      const Mat3<T>& A = state_[joint].R;
      r.e = r.axial ? Vec3<T>{one(), zero(), zero()} : k == 0 ? A.column_x() : k == 1 ? A.column_y() : A.column_z();
      r.free = along(r, free), r.target = zero();
      r.upper = T(step_.h * m_.loss[i]), r.lower = -r.upper;
      r.metric.inverse_mass = inverse_mass(r), r.metric.own_R = compliance(zero(), r.metric.inverse_mass);
      r.metric.set(r.metric.own_R, r.live);
      start(r, along(r, qvel), true);
    }
  }
  /// A drive's number, times the lane's own factor.
  static T own(R number, const R* scale, int dof) {
    return scale ? T(number) * reinterpret_cast<const T*>(scale)[dof] : T(number);
  }
  void add_drives(const T* qvel, const T* free, const T* push) {
    const R h = step_.h;
    for (int i = 0; i < step_.nlimited; ++i) {
      const int joint = step_.limited[i], dof = v_.link[joint].qvel;
      const T implicit = T(step_.stiff ? h * h : R(0)) * own(step_.drive_kp[dof], pack_.kp_scale, dof);
      const T kd = T(h) * own(step_.drive_kd[dof], pack_.kd_scale, dof) + implicit;
      if (!turns_freely(v_.link[joint].joint)) {
        LaneJointRow<T>& r =
            add_row(LaneJointRow<T>::Kind::drive, joint, 2 * m_.nlimit + m_.nloss + i, every_lane<T>());
        r.e = {one(), zero(), zero()};
        const T w = inverse_mass(r), stiffness = maximum(kd, T(R(kLeastStiffness)) / w), along_push = push[dof] * T(h);
        r.free = free[dof], r.target = qvel[dof] + along_push / stiffness;
        r.lower = T(h) * own(step_.force_low[i], pack_.force_scale, dof);
        r.upper = T(h) * own(step_.force_high[i], pack_.force_scale, dof);
        r.metric.inverse_mass = w, r.metric.own_R = one() / stiffness;
        r.metric.set(r.metric.own_R, r.live);
        const LaneJointMemory<T>& old = memory_.joint[r.place];
        r.at.now_y = select(old.known > zero(), mul_add(old.excess, r.metric.iR, old.impulse), along_push);
        continue;
      }
      LaneBallRow<T>& r = s_.ball[s_.nball++];
      r.joint = joint, r.place = i, r.radius = T(h) * own(step_.force_high[i], pack_.force_scale, dof);
      const LinkState<T>& link = state_[joint];
      const T mean = (link.IA.I.xx + link.IA.I.yy + link.IA.I.zz) * T(R(1.0 / 3)) + link.k;
      const T w = one() / maximum(mean, T(R(1e-30))), stiffness = maximum(kd, T(R(kLeastStiffness)) / w);
      const Vec3<T> turned = link.R * get3(push + dof) * T(h), speed = link.R * get3(qvel + dof);
      r.free = link.R * get3(free + dof), r.target = speed + turned * (one() / stiffness);
      r.metric.inverse_mass = w, r.metric.own_R = one() / stiffness;
      r.metric.set(r.metric.own_R, every_lane<T>());
      r.no_tangent();
      const LaneBallMemory<T>& old = memory_.ball[i];
      r.at.now_y = select<T>(old.known > zero(), mul_add(old.excess, r.metric.iR, old.impulse), turned);
    }
  }

  // -- the linear problem ---------------------------------------------------------------------------------------------

  /// Lanes in which a contact has a tangent, or a force that the linear problem is to change.
  Mask<T> acts(const LaneContact<T>& c) const {
    const Vec3<T>& f = c.at.next_y;
    return ~((c.Gnn == zero()) & (c.G11 == zero()) & (c.G22 == zero()) & (f.x == zero()) & (f.y == zero()) &
             (f.z == zero())) &
           live_;
  }
  Mask<T> acts(const LaneSpin<T>& s) const {
    const Vec3<T>& f = s.at.next_y;
    return ~((s.Gss == zero()) & (s.Gsn == zero()) & (s.G11 == zero()) & (s.G22 == zero()) & (f.x == zero()) &
             (f.y == zero()) & (f.z == zero())) &
           live_;
  }
  LaneLoad<T>& load(int link) {
    LaneLoad<T>& load = s_.load[link];
    if (!s_.loaded[link]) {
      s_.loaded[link] = 1;
      const Vec3<T> o = zero3<T>();
      const Mat3<T> none = zero33<T>();
      load = {{none, none, none, none}, {o, o}, {zero(), zero(), zero(), zero(), zero(), zero()}, o};
    }
    return load;
  }
  /// C = Σ G_ij a_i a_jᵀ resists the point, f is its force.
  void add_load(const LaneContact<T>& c, const Vec3<T>& f) {
    const Vec3<T> g1 = c.n * c.G1n + c.t1 * c.G11 + c.t2 * c.G12, g2 = c.n * c.G2n + c.t1 * c.G12 + c.t2 * c.G22;
    const Vec3<T> gn = c.n * c.Gnn;
    const auto row = [&](T n, T t1, T t2) { return mul_add(gn, n, mul_add(g1, t1, g2 * t2)); };
    const Mat3<T> C = from_rows(row(c.n.x, c.t1.x, c.t2.x), row(c.n.y, c.t1.y, c.t2.y), row(c.n.z, c.t1.z, c.t2.z));
    const Mat3<T> rC = add_cross_times(zero33<T>(), c.arm_a, C);  // [r] C
    const Vec3<T> back = -c.arm_a;                                // v + w × r = v - [r] w
    LaneLoad<T>& l = load(c.link);
    l.B.fv = l.B.fv + C;
    l.B.nv = l.B.nv + rC;
    l.B.fw = add_times_cross(l.B.fw, C, back);
    l.B.nw = add_times_cross(l.B.nw, rC, back);
    const Vec3<T> force = c.n * f.x + c.t1 * f.y + c.t2 * f.z;
    l.f.f += force;
    l.f.n += cross(c.arm_a, force);
  }
  /// Σ G_ij a_i a_jᵀ resists the link's turning, Σ G_in a_i nᵀ the point's motion by moments.
  void add_load(const LaneSpin<T>& s, const Vec3<T>& f) {
    const LaneContact<T>& c = *s.contact;
    const Vec3<T> gs = c.n * s.Gss, g1 = c.t1 * s.G11 + c.t2 * s.G12, g2 = c.t1 * s.G12 + c.t2 * s.G22;
    const Vec3<T> by_normal = c.n * s.Gsn + c.t1 * s.G1n + c.t2 * s.G2n;
    LaneLoad<T>& l = load(c.link);
    Mat3<T>& nw = l.B.nw;
    nw = minus_outer(minus_outer(minus_outer(nw, -gs, c.n), -g1, c.t1), -g2, c.t2);
    nw = minus_outer(nw, -by_normal, cross(c.arm_a, c.n));
    l.B.nv = minus_outer(l.B.nv, -by_normal, c.n);
    l.f.n += c.n * f.x + c.t1 * f.y + c.t2 * f.z;
  }
  void add_load(const LaneJointRow<T>& r, T f) {
    LaneLoad<T>& l = load(r.joint);
    if (r.axial) {
      l.joint.xx += r.G * r.e.x * r.e.x, l.joint_force.x += f * r.e.x;
      return;
    }
    const Vec3<T> ge = r.e * r.G;
    l.joint += Sym3<T>{ge.x * r.e.x, ge.x * r.e.y, ge.x * r.e.z, ge.y * r.e.y, ge.y * r.e.z, ge.z * r.e.z};
    l.joint_force += r.e * f;
  }
  void add_load(const LaneBallRow<T>& r, const Vec3<T>& f) {
    LaneLoad<T>& l = load(r.joint);
    l.joint += r.G;
    l.joint_force += f;
  }

  /// The linear problem of the tangents at hand, into at.next and x_next.
  /// @param near lanes that go on from the iterate at hand, by what its impulses miss: in float nothing else settles.
  /// The others start from v⁰, so that what a wild iterate lost in rounding does not stay.
  /// @param before, after f(term), which sees each term once before its tangent is used and once at its end: memory is
  /// what a pass over the terms costs
  template <class Before, class After>
  void linear_solve(Mask<T> near, const Before& before, const After& after) {
    std::fill(s_.loaded, s_.loaded + v_.nlink, char(0));
    iterations_ += select(live_, one(), zero());
    const auto begin_with = [&](auto& t) {
      before(t);
      t.at.next_y = select(near, t.base - t.at.now_y, t.base + times(t, t.at.now_u - t.free));
    };
    const auto load_row = [&](auto& r) { begin_with(r), add_load(r, r.at.next_y); };
    nextra_ = nextra_spin_ = nitem_ = 0;
    std::fill(extras_, extras_ + kLanes, 0), std::fill(extra_spins_, extra_spins_ + kLanes, 0);
    each_contact([&](LaneContact<T>& c) {
      begin_with(c);
      const Mask<T> here = acts(c);
      if (!any_lane(here)) return;
      if (c.link < 0) {
        add_extra(c, here);
        slid_ = slid_ | here;
        return;
      }
      add_load(c, c.at.next_y);
      slid_ = slid_ | (here & ~((c.G1n == zero()) & (c.G2n == zero())));
    });
    each_spin([&](LaneSpin<T>& s) {
      before(s);
      const LaneContact<T>& c = *s.contact;
      s.at.next_y = select(near, s.base - s.at.now_y, s.base + times(s, c.at.now_u.x - c.free.x, s.at.now_u - s.free));
      const Mask<T> here = acts(s);
      if (!any_lane(here)) return;
      if (c.link < 0) {
        add_extra(s, here);
        slid_ = slid_ | here;
        return;
      }
      add_load(s, s.at.next_y);
      slid_ = slid_ | (here & ~((s.Gsn == zero()) & (s.G1n == zero()) & (s.G2n == zero())));
    });
    for (int i = 0; i < s_.nrow; ++i) load_row(s_.row[i]);
    for (int i = 0; i < s_.nball; ++i) load_row(s_.ball[i]);
    const Mask<T> with = live_ & slid_, without = live_ & ~slid_;
    if (any_lane(without)) {
      lane_solve_symmetric<T>(v_, state_, K_, s_.load, s_.loaded, s_.x_next);
      for (int i = 0; i < v_.nlink; ++i) s_.motion[i] = state_[i].a;
    }
    if (any_lane(with)) solve_skew(with);
    const auto end_with = [&](auto& t, const auto& change) { read(t, change, near), after(t); };
    each_contact([&](LaneContact<T>& c) { end_with(c, along(c, s_.motion)); });
    each_spin([&](LaneSpin<T>& s) {
      const Vec3<T> change = about(*s.contact, s_.motion);
      read(s, change, times(s, along(*s.contact, s_.motion).x, change), near), after(s);
    });
    for (int i = 0; i < s_.nrow; ++i) end_with(s_.row[i], along(s_.row[i], s_.x_next));
    for (int i = 0; i < s_.nball; ++i) {
      const int joint = s_.ball[i].joint;
      end_with(s_.ball[i], state_[joint].R * get3(s_.x_next + v_.link[joint].qvel));
    }
    for (int k = 0; k < v_.nv; ++k) s_.x_next[k] = s_.x_next[k] + select(near, s_.x_now[k], zero());
  }
  template <class Term, class X>
  TARSUS_INLINE void read(Term& t, const X& change, Mask<T> near) {
    read(t, change, times(t, change), near);
  }
  /// @param less what the change takes from the impulse
  template <class Term, class X>
  TARSUS_INLINE void read(Term& t, const X& change, const X& less, Mask<T> near) {
    const X y = t.at.next_y - less;
    t.at.next_y = select(near, t.at.now_y + y, y);
    t.at.next_u = change + select(near, t.at.now_u, t.free);
  }

  void solve_skew(Mask<T> lanes) {
    lane_factor<T>(v_, state_, K_, s_.load, s_.loaded, s_.link);
    for (int i = 0; i < v_.nlink; ++i)
      s_.force[i] = s_.loaded[i] ? Force<T>{-s_.load[i].f.n, -s_.load[i].f.f} : Force<T>{zero3<T>(), zero3<T>()};
    Motion<T>* motion = s_.skew_motion;
    T* x = s_.x_other;
    lane_substitute<1, T>(v_, state_, s_.link, s_.force, s_.load, s_.loaded, nullptr, nullptr, s_.left, motion, x);
    if (nextra_ + nextra_spin_ > 0) solve_extra(motion, x);
    for (int k = 0; k < v_.nv; ++k) s_.x_next[k] = select(lanes, x[k], s_.x_next[k]);
    for (int i = 0; i < v_.nlink; ++i) {
      s_.motion[i].w = select<T>(lanes, motion[i].w, s_.motion[i].w);
      s_.motion[i].v = select<T>(lanes, motion[i].v, s_.motion[i].v);
    }
  }

  /// p[link][n][k] -= the wrench of a crossing's `force` at its point, on its own links in each lane.
  void apply(const LaneExtra<T>& c, const Vec3<T>& push, int n, int k) {
    const Vec3<T> o = zero3<T>();
    const Force<T> on_a = c.moment ? Force<T>{push, o} : Force<T>{cross(c.arm_a, push), push};
    const Force<T> on_b = c.moment ? Force<T>{push, o} : Force<T>{cross(c.arm_b, push), push};
    each_touch(c, [&](int link, bool second, Mask<T> lanes) {
      Force<T>& p = s_.force[link * n + k];
      const Force<T> next = second ? Force<T>{p.n + on_b.n, p.f + on_b.f} : p - on_a;
      p = {select<T>(lanes, next.n, p.n), select<T>(lanes, next.f, p.f)};
    });
  }
  /// Marks the links that hold those of a contact between links, and these.
  void mark(const LaneExtra<T>& c, char* links) const {
    each_touch(c, [&](int link, bool, Mask<T>) {
      for (int i = link; i >= 0 && !links[i]; i = v_.link[i].parent) links[i] = 1;
    });
  }
  static void clear(LaneExtra<T>& e) {
    e.live = no_lanes<T>(), e.a = e.b = Bits<T>{};
    e.n = e.t1 = e.t2 = e.arm_a = e.arm_b = e.force = zero3<T>();
    e.Gnn = e.Gss = e.Gsn = e.G1n = e.G2n = e.G11 = e.G12 = e.G22 = zero(), e.moment = false;
  }
  /// Where a contact is in lane `from` becomes that of lane `to`.
  template <class Contact>
  static void copy_place(const Contact& c, int from, LaneExtra<T>& e, int to) {
    e.live[to] = -1, e.a[to] = c.a[from], e.b[to] = c.b[from];
    copy_lane(c.n, from, e.n, to), copy_lane(c.t1, from, e.t1, to), copy_lane(c.t2, from, e.t2, to);
    copy_lane(c.arm_a, from, e.arm_a, to), copy_lane(c.arm_b, from, e.arm_b, to);
  }
  static void copy_lane(const Vec3<T>& x, int from, Vec3<T>& y, int to) {
    y.x.set(to, x.x[from]), y.y.set(to, x.y[from]), y.z.set(to, x.z[from]);
  }

  /// A contact between links in the lanes `here`, into the first extra rows that each of them has free.
  void add_extra(const LaneContact<T>& c, Mask<T> here) {
    for (int l = 0; l < kLanes; ++l) {
      if (!here[l]) continue;
      LaneExtra<T>& to = next_extra(l, s_.extra, extras_[l], nextra_, false);
      copy_place(c, l, to, l);
      copy_lane(c.at.next_y, l, to.force, l), to.Gnn.set(l, c.Gnn[l]);
      copy_tangent(l, c, to);
    }
  }
  /// Its torsional and rolling friction, in rows that are filled in the same way.
  void add_extra(const LaneSpin<T>& s, Mask<T> here) {
    for (int l = 0; l < kLanes; ++l) {
      if (!here[l]) continue;
      LaneExtra<T>& to = next_extra(l, s_.extra + m_.most_crossings, extra_spins_[l], nextra_spin_, true);
      copy_place(*s.contact, l, to, l);
      copy_lane(s.at.next_y, l, to.force, l), to.Gss.set(l, s.Gss[l]), to.Gsn.set(l, s.Gsn[l]);
      copy_tangent(l, s, to);
    }
  }
  LaneExtra<T>& next_extra(int lane, LaneExtra<T>* extras, int& used, int& most, bool moment) {
    LaneExtra<T>& next = extras[used];
    if (used == most) clear(next), next.moment = moment, ++most;
    s_.item[nitem_++] = {lane, int(&next - s_.extra)};
    ++used;
    return next;
  }
  template <class Term>
  static void copy_tangent(int l, const Term& from, LaneExtra<T>& to) {
    to.G1n.set(l, from.G1n[l]), to.G2n.set(l, from.G2n[l]);
    to.G11.set(l, from.G11[l]), to.G12.set(l, from.G12[l]), to.G22.set(l, from.G22[l]);
  }
  void no_forces(int count, const char* links) {
    for (int i = 0; i < v_.nlink; ++i) {
      for (int k = 0; k < count && (!links || links[i]); ++k) s_.force[count * i + k] = {zero3<T>(), zero3<T>()};
    }
  }

  /// Those of forces, then those of moments.
  LaneExtra<T>& extra(int i) { return s_.extra[i < nextra_ ? i : m_.most_crossings + i - nextra_]; }
  /// G J of one, times N motions of each link.
  template <int N>
  void react(const LaneExtra<T>& e, const Motion<T>* motion, Vec3<T> (&out)[N]) const {
    Vec3<T> u[N], turn[N];
    along<N>(e, motion, u);
    if (e.moment) about<N>(e, motion, turn);
    for (int k = 0; k < N; ++k) out[k] = e.moment ? times(e, u[k].x, turn[k]) : times(e, u[k]);
  }

  /// Columns of G W for `count` blocks of one kind, items from `first` on: a lane of the columns takes the factors of
  /// the lane that its contact is in, so that contacts which few lanes have share a pass.
  void add_columns(int first, int count, int n) {
    const int touches = ntouch_, blocks = nextra_ + nextra_spin_;
    LaneExtra<T> item;
    clear(item);
    item.moment = s_.extra[s_.item[first].slot].moment;
    LanesTurned<T> of{Bits<T>{}};
    std::fill(s_.place, s_.place + blocks, all_bits<T>(-1));
    for (int k = 0; k < count; ++k) {
      const auto [lane, slot] = s_.item[first + k];
      copy_place(s_.extra[slot], lane, item, k);
      of.from[k] = lane, s_.place[item.moment ? nextra_ + slot - m_.most_crossings : slot][lane] = k;
    }
    find_touches(item);
    std::fill(s_.pushed, s_.pushed + v_.nlink, char(0));
    mark(item, s_.pushed);
    no_forces(3, s_.needed);
    apply(item, item.n, 3, 0), apply(item, item.t1, 3, 1), apply(item, item.t2, 3, 2);
    lane_substitute<3, T>(v_, state_, s_.link, s_.force, nullptr, nullptr, s_.pushed, s_.needed, s_.left, s_.column,
                          nullptr, of);
    for (int i = 0; i < blocks; ++i) {
      const LaneExtra<T>& e = extra(i);
      LaneExtra<T> row;
      row.moment = e.moment, row.touch = ntouch_, row.ntouch_a = e.ntouch_a, row.ntouch_b = e.ntouch_b;
      for (int k = 0; k < e.ntouch_a + e.ntouch_b; ++k)
        s_.touch[ntouch_ + k] = {s_.touch[e.touch + k].link, permute_bits(s_.touch[e.touch + k].lanes, of.from)};
      row.n = of(e.n), row.t1 = of(e.t1), row.t2 = of(e.t2), row.arm_a = of(e.arm_a), row.arm_b = of(e.arm_b);
      row.Gnn = of(e.Gnn), row.Gss = of(e.Gss), row.Gsn = of(e.Gsn), row.G1n = of(e.G1n), row.G2n = of(e.G2n);
      row.G11 = of(e.G11), row.G12 = of(e.G12), row.G22 = of(e.G22);
      Vec3<T> gw[3];
      react<3>(row, s_.column, gw);
      for (int j = 0; j < blocks; ++j) {
        const Mask<T> here = s_.place[j] >= Bits<T>{};
        if (!any_lane(here)) continue;
        for (int k = 0; k < 3; ++k) {
          for (int r = 0; r < 3; ++r) {
            T& to = s_.matrix[(3 * i + r) * n + 3 * j + k];
            to = select(here, permute(gw[k][r], s_.place[j]), to);
          }
        }
      }
    }
    ntouch_ = touches;
  }

  /// Contacts between links, by their Schur complement: (1 + G W) φ = f - G u₀, W = J A⁻¹ Jᵀ.
  void solve_extra(Motion<T>* motion, T* x) {
    const int blocks = nextra_ + nextra_spin_, n = 3 * blocks, touches = ntouch_;
    for (int j = 0; j < blocks; ++j) find_touches(extra(j));
    std::fill(s_.needed, s_.needed + v_.nlink, char(0));
    for (int j = 0; j < blocks; ++j) mark(extra(j), s_.needed);
    std::fill(s_.matrix, s_.matrix + n * n, zero());
    // Forces' items stand before moments': contacts are added first.
    int forces = 0;
    while (forces < nitem_ && !s_.extra[s_.item[forces].slot].moment) ++forces;
    for (int first = 0; first < forces; first += kLanes) add_columns(first, std::min(kLanes, forces - first), n);
    for (int first = forces; first < nitem_; first += kLanes) add_columns(first, std::min(kLanes, nitem_ - first), n);
    for (int i = 0; i < n; ++i) s_.matrix[i * n + i] = s_.matrix[i * n + i] + one();
    for (int i = 0; i < blocks; ++i) {
      const LaneExtra<T>& e = extra(i);
      Vec3<T> gu[1];
      react<1>(e, motion, gu);
      const Vec3<T> right = e.force - gu[0];
      for (int r = 0; r < 3; ++r) s_.right[3 * i + r] = right[r];
    }
    for (int p = 0; p < n; ++p) {
      const T inverse = one() / s_.matrix[p * n + p];
      for (int r = p + 1; r < n; ++r) {
        const T factor = s_.matrix[r * n + p] * inverse;
        for (int c = p + 1; c < n; ++c)
          s_.matrix[r * n + c] = neg_mul_add(factor, s_.matrix[p * n + c], s_.matrix[r * n + c]);
        s_.right[r] = neg_mul_add(factor, s_.right[p], s_.right[r]);
      }
      s_.matrix[p * n + p] = inverse;
    }
    for (int p = n - 1; p >= 0; --p) {
      T sum = s_.right[p];
      for (int c = p + 1; c < n; ++c) sum = neg_mul_add(s_.matrix[p * n + c], s_.right[c], sum);
      s_.right[p] = sum * s_.matrix[p * n + p];
    }
    no_forces(1, nullptr);
    for (int i = 0; i < blocks; ++i) {
      const LaneExtra<T>& e = extra(i);
      apply(e, e.n * s_.right[3 * i] + e.t1 * s_.right[3 * i + 1] + e.t2 * s_.right[3 * i + 2], 1, 0);
    }
    lane_substitute<1, T>(v_, state_, s_.link, s_.force, nullptr, nullptr, nullptr, nullptr, s_.left, s_.column,
                          s_.x_extra);
    ntouch_ = touches;
    for (int k = 0; k < v_.nv; ++k) x[k] = x[k] + s_.x_extra[k];
    for (int i = 0; i < v_.nlink; ++i) motion[i] = motion[i] + s_.column[i];
  }

  // -- Newton ---------------------------------------------------------------------------------------------------------

  /// Largest natural residual of the terms added. Not a number where some term's velocity or impulse is none.
  struct Residual {
    T worst = T(R(0)), poison = T(R(0));
    template <class Term>
    TARSUS_INLINE void add(const Term& t) {
      worst = maximum(natural_residual(t), worst);
      poison += (first_of(t.at.now_u) + first_of(t.at.now_y)) * zero();
    }
    TARSUS_INLINE T value() const { return worst + poison; }
  };
  TARSUS_INLINE static T first_of(T x) { return x; }
  TARSUS_INLINE static T first_of(const Vec3<T>& x) { return x.x + x.y + x.z; }
  Mask<T> within_sets() {
    T worst = zero();
    for (int i = 0; i < s_.nrow; ++i) worst = maximum(excess(s_.row[i]), worst);
    for (int i = 0; i < s_.nball; ++i) worst = maximum(excess(s_.ball[i]), worst);
    return worst <= T(kExcess);
  }
  template <class X>
  TARSUS_INLINE static void blend(Mask<T> lanes, T t, const X& next, X& now) {
    now = select(lanes, now + (next - now) * t, now);
  }
  /// @return the residual there
  T move(T t) {
    for (int k = 0; k < v_.nv; ++k) blend(live_, t, s_.x_next[k], s_.x_now[k]);
    Residual residual;
    each([&](auto& term) {
      blend(live_, t, term.at.next_u, term.at.now_u);
      blend(live_, t, term.at.next_y, term.at.now_y);
      residual.add(term);
    });
    return residual.value();
  }
  void keep(Mask<T> lanes) {
    each([&](auto& term) {
      term.at.best_u = select(lanes, term.at.now_u, term.at.best_u);
      term.at.best_y = select(lanes, term.at.now_y, term.at.best_y);
    });
    for (int k = 0; k < v_.nv; ++k) s_.x_best[k] = select(lanes, s_.x_now[k], s_.x_best[k]);
  }
  void judge(T now, Mask<T> met, Mask<T> lanes) {
    const Mask<T> better = lanes & ((now < best_residual_) | met);
    if (!any_lane(better)) return;
    best_residual_ = select(better, now, best_residual_);
    met_ = (better & met) | (~better & met_);
    keep(better);
  }

  /// The first iteration: the tangents at now_y; no search. @return the residual there
  T begin_descent() {
    Residual residual;
    const auto tangents = [&](auto& t) {
      t.at.now_u = select(live_, velocity_of(t, t.at.now_y), t.at.now_u);
      law(t, t.at.now_u, false, true, live_);
    };
    const auto go = [&](auto& t) {
      t.at.now_u = select(live_, t.at.next_u, t.at.now_u), t.at.now_y = select(live_, t.at.next_y, t.at.now_y);
      residual.add(t);
    };
    linear_solve(no_lanes<T>(), tangents, go);
    for (int k = 0; k < v_.nv; ++k) s_.x_now[k] = select(live_, s_.x_next[k], s_.x_now[k]);
    return residual.value();
  }

  template <class Term>
  TARSUS_INLINE static T map_at(Term& term, T t, Mask<T> lanes) {
    const auto u = term.at.now_u + (term.at.next_u - term.at.now_u) * t;
    const auto y = term.at.now_y + (term.at.next_y - term.at.now_y) * t;
    return natural_map<false>(term, u, y, lanes);
  }

  TARSUS_INLINE static T map_at(LaneSpin<T>& s, T t, Mask<T> lanes) {
    const LaneIterates<Vec3<T>>&c = s.contact->at, &a = s.at;
    const T un = c.now_u.x + (c.next_u.x - c.now_u.x) * t, yn = c.now_y.x + (c.next_y.x - c.now_y.x) * t;
    return natural_map<false>(s, un, yn, a.now_u + (a.next_u - a.now_u) * t, a.now_y + (a.next_y - a.now_y) * t, lanes);
  }

  TARSUS_INLINE static bool idle(const LaneContact<T>& c, Mask<T> lanes) { return !any_lane(c.live & lanes); }
  TARSUS_INLINE static bool idle(const LaneSpin<T>& s, Mask<T> lanes) { return !any_lane(s.live & lanes); }
  template <class Row>
  TARSUS_INLINE static bool idle(const Row&, Mask<T>) {
    return false;
  }

  /// Step along the natural map's Newton direction for `lanes`, 0 elsewhere.  @param start, whole its square at the
  /// iterate at hand and after the whole step
  T halved(T start, T whole, Mask<T> lanes) {
    T best = one(), least = T(std::numeric_limits<R>::infinity()), there = whole;
    Mask<T> open = lanes;
    R t = 1;
    for (int k = 0;;) {
      const Mask<T> better = open & (there < least);
      least = select(better, there, least), best = select(better, T(t), best);
      open = open & !(there <= start * T(1 - R(1e-4) * t));
      if (++k == kHalvings || !any_lane(open)) return best;
      t *= R(0.5), there = zero();
      each([&](auto& term) {
        if (!idle(term, open)) there += map_at(term, T(t), open);
      });
    }
  }

  /// dvᵀ F(v + t dv) for friction bounded by the given normals.
  T slope(T t) {
    T sum = zero();
    each([&](auto& term) {
      const auto dv = term.at.next_u - term.at.now_u;
      const auto y = term.at.now_y + (term.at.next_y - term.at.now_y) * t;
      sum += sum_product(dv, y - law(term, term.at.now_u + dv * t, true, false, live_));
    });
    return sum;
  }
  /// The root of the slope along a convex step: false position (Illinois) and bisection.
  T searched(Mask<T> lanes) {
    const T start = slope(zero());
    T low = zero(), high = one(), at_low = start, at_high = slope(one()), t = one();
    Mask<T> open = lanes & (at_high > absolute(start) * T(R(0.01)));
    for (int k = 0; k < 12 && any_lane(open); ++k) {
      const T chord = (low * at_high - high * at_low) / (at_high - at_low), middle = (low + high) * T(R(0.5));
      const T next =
          select((chord > low) & (chord < high) & (k % 3 == 2 ? no_lanes<T>() : every_lane<T>()), chord, middle);
      t = select(open, next, t);
      const T value = slope(t);
      const Mask<T> up = open & (value > zero()), down = open & !(value > zero());
      at_low = select(up, at_low * T(R(0.5)), at_low), at_high = select(down, at_high * T(R(0.5)), at_high);
      high = select(up, t, high), at_high = select(up, value, at_high);
      low = select(down, t, low), at_low = select(down, value, at_low);
      open = open & (absolute(value) > absolute(start) * T(R(0.01)));
    }
    return t;
  }

  /// Lanes whose Newton steps lead nowhere: kDiscs iterations with the discs as they are, then Newton's again.
  Mask<T> stalled(Mask<T> patient, T now, T before) {
    if (!any_lane(patient)) return no_lanes<T>();
    const Mask<T> in = live_ & patient & ((discs_ > zero()) | short_ | !(now <= before * T(R(0.5))));
    discs_ = select(in, select(discs_ > zero(), discs_ - one(), T(R(kDiscs))), discs_);
    return in & (discs_ > zero());
  }

  /// Where an iteration stands.
  struct Descent {
    R tolerance;
    int most;
    bool judged;                  ///< the rows are the problem's own
    T count;                      ///< of each lane's iterations
    T now;                        ///< residual at the iterate at hand
    T last, last_but_one, older;  ///< residuals before
    Mask<T> met;                  ///< the tolerance
  };

  /// Iterates from now_y in the lanes live_, which lose those that are done. @return lanes that met the tolerance
  Mask<T> descend(R tolerance, int most, bool judged) {
    discs_ = zero(), short_ = no_lanes<T>();
    const T infinite = T(std::numeric_limits<R>::infinity());
    descent_ = {tolerance, most, judged, one(), begin_descent(), infinite, infinite, infinite, no_lanes<T>()};
    go_down();
    return descent_.met;
  }
  void go_down() {
    for (Descent& d = descent_;; d.count += one()) {
      const Mask<T> patient = d.count > T(R(kPatience)), through = d.count >= T(R(d.most));
      Mask<T> met = live_ & (d.now <= T(d.tolerance));
      if (d.judged) {
        met = met & within_sets();
        judge(d.now, met, live_ & (met | patient | through));  // few need their best so far
      }
      d.met = d.met | met;
      go_on(live_ & ~met & ~through & (d.now < T(std::numeric_limits<R>::infinity())));
      if (!any_lane(live_)) return;
      if constexpr (kNarrows<T>) {
        if (count_live() <= kWidth<Narrow<T>>) {
          waiting_ = waits_;
          if (!waits_) go_down_narrow();
          return;
        }
      }
      const Mask<T> convex = stalled(patient, d.now, d.older);
      d.older = minimum(d.older, d.last_but_one), d.last_but_one = d.last, d.last = d.now;
      T start = zero(), whole = zero();
      const bool some = any_lane(convex);
      const auto tangents = [&](auto& t) {
        start += natural_map<true>(t, t.at.now_u, t.at.now_y, live_);
        if (!some) return;
        give_normal(t);
        law(t, t.at.now_u, true, true, convex);
      };
      linear_solve(d.now < T(kNear), tangents, [&](auto& t) { whole += map_at(t, one(), live_); });
      T t = halved(start, whole, live_ & ~convex);
      if (some) t = select(convex, searched(convex), t);
      short_ = t < T(kShort);
      d.now = move(t);
    }
  }
  /// The rest of it in a narrow pack.
  void go_down_narrow() {
    LaneSolver<T>* const one_pack[] = {this};
    go_down_in<Narrow<T>, T>(s_.narrow, one_pack);
  }
  TARSUS_INLINE static void give_normal(LaneContact<T>& c) { c.given_normal = maximum(c.at.now_y.x, zero()); }
  template <class Row>
  TARSUS_INLINE static void give_normal(Row&) {}
  int count_live() const {
    int count = 0;
    for (int l = 0; l < kLanes; ++l) count += live_[l] != 0;
    return count;
  }

  template <class W, class F>
  void match_contacts(std::span<LaneSolver<W>* const> packs, const F& f);
  template <class W, class F>
  void match_rows(std::span<LaneSolver<W>* const> packs, const F& f);
  template <class W>
  void go_down_for(std::span<LaneSolver<W>* const> packs);

  void solve_missed() {
    const Mask<T> missed = ~met_ & (best_residual_ < T(std::numeric_limits<R>::infinity()));
    if (!any_lane(missed)) return;
    harden(missed);
    bound_impulses(~met_ & (best_residual_ < T(std::numeric_limits<R>::infinity())));
  }

  /// Where the best iterate has impulses beyond their bounds: these as their bounds allow, and the rest once more.
  void bound_impulses(Mask<T> lanes) {
    if (!any_lane(lanes)) return;
    go_on(lanes);
    each([&](auto& t) {
      t.at.now_u = select(live_, t.at.best_u, t.at.now_u), t.at.now_y = select(live_, t.at.best_y, t.at.now_y);
    });
    for (int k = 0; k < v_.nv; ++k) s_.x_now[k] = select(live_, s_.x_best[k], s_.x_now[k]);
    go_on(live_ & ~within_sets());
    if (!any_lane(live_)) return;
    const auto bounded = [&](auto& t) {
      natural_map<true>(t, t.at.now_u, t.at.now_y, live_);
      bound(t, live_);
    };
    linear_solve(best_residual_ < T(kNear), bounded, [](auto&) {});
    best_residual_ = select(live_, move(one()), best_residual_);
    keep(live_);
  }

  /// R of all rows no less than `share` of the inverse mass.
  void set_stage(R share) {
    const auto set = [&](LaneMetric<T>& metric, Mask<T> live) {
      metric.set(maximum(metric.own_R, metric.inverse_mass * T(share)), live);
    };
    every_contact([&](LaneContact<T>& c) { set(c.normal, c.live), set(c.tangent, c.live); });
    for (int i = 0; i < s_.nspin; ++i) set(s_.spin[i].metric, s_.spin[i].live);
    for (int i = 0; i < s_.nrow; ++i) set(s_.row[i].metric, s_.row[i].live);
    for (int i = 0; i < s_.nball; ++i) set(s_.ball[i].metric, every_lane<T>());
  }
  /// The same problem with soft rows, then harder ones, for lanes that missed.
  void harden(Mask<T> missed) {
    go_on(missed);
    each([&](auto& t) {
      t.at.now_u = select(missed, t.at.best_u, t.at.now_u), t.at.now_y = select(missed, t.at.best_y, t.at.now_y);
    });
    for (int k = 0; k < v_.nv; ++k) s_.x_now[k] = select(missed, s_.x_best[k], s_.x_now[k]);
    Mask<T> going = missed;
    constexpr R kShares[] = {10, 3, 1, R(0.3), R(0.1), R(0.03), R(0.01), 0};
    for (const R share : kShares) {
      go_on(going);
      each([&](auto& t) {  // γ, and R (y - γ), of the rows as they are
        const auto gamma = law(t, t.at.now_u, false, false, going);
        t.at.next_y = gamma;
        t.at.next_u = times_R(t, before_projection(t, t.at.now_u) - gamma);
      });
      set_stage(share);
      each([&](auto& t) { t.at.now_y = select(going, t.at.next_y + times_iR(t, t.at.next_u), t.at.now_y); });
      const bool own = share == 0;
      const Mask<T> met = descend(own ? step_.tolerance : R(1e-3), own ? 10 : 12, own);
      if (own) return;
      going = going & met;
      if (!any_lane(going)) break;
    }
    set_stage(0);
  }
  TARSUS_INLINE static Vec3<T> times_R(const LaneContact<T>& c, const Vec3<T>& x) {
    return {x.x * c.normal.R, x.y * c.tangent.R, x.z * c.tangent.R};
  }
  TARSUS_INLINE static Vec3<T> times_R(const LaneSpin<T>& s, const Vec3<T>& x) { return x * s.metric.R; }
  TARSUS_INLINE static T times_R(const LaneJointRow<T>& r, T x) { return x * r.metric.R; }
  TARSUS_INLINE static Vec3<T> times_R(const LaneBallRow<T>& r, const Vec3<T>& x) { return x * r.metric.R; }
  TARSUS_INLINE static Vec3<T> times_iR(const LaneContact<T>& c, const Vec3<T>& x) {
    return {x.x * c.normal.iR, x.y * c.tangent.iR, x.z * c.tangent.iR};
  }
  TARSUS_INLINE static Vec3<T> times_iR(const LaneSpin<T>& s, const Vec3<T>& x) { return x * s.metric.iR; }
  TARSUS_INLINE static T times_iR(const LaneJointRow<T>& r, T x) { return x * r.metric.iR; }
  TARSUS_INLINE static Vec3<T> times_iR(const LaneBallRow<T>& r, const Vec3<T>& x) { return x * r.metric.iR; }

  // -- what remains ---------------------------------------------------------------------------------------------------

  void remember(Mask<T> acted) {
    const int before = int((*memory_.count)[0]);
    int now = 0;
    every_contact([&](const LaneContact<T>& c) {
      LaneContactMemory<T>& old = memory_.contact[now++];
      const Vec3<T>& y = c.at.best_y;
      const Vec3<T> over = times_R(c, before_projection(c, c.at.best_u) - y);
      old.key = c.key & acted;
      old.impulse = y.x, old.excess = over.x;
      old.slide = c.t1 * y.y + c.t2 * y.z, old.slide_excess = c.t1 * over.y + c.t2 * over.z;
      if (m_.most_spins > 0) remember(c, memory_.spin[now - 1]);
    });
    for (int i = now; i < before; ++i) memory_.contact[i].key = Bits<T>{};
    *memory_.count = all_bits<T>(now);
    for (int i = 0; i < 2 * m_.nlimit + m_.nloss + m_.nlink; ++i) memory_.joint[i].known = zero();
    for (int i = 0; i < m_.nlink; ++i) memory_.ball[i].known = zero();
    for (int i = 0; i < s_.nrow; ++i) {
      const LaneJointRow<T>& r = s_.row[i];
      LaneJointMemory<T>& old = memory_.joint[r.place];
      old.impulse = r.at.best_y, old.excess = times_R(r, before_projection(r, r.at.best_u) - r.at.best_y);
      old.known = select(acted & r.live, one(), zero());
    }
    for (int i = 0; i < s_.nball; ++i) {
      const LaneBallRow<T>& r = s_.ball[i];
      LaneBallMemory<T>& old = memory_.ball[r.place];
      old.impulse = r.at.best_y, old.excess = times_R(r, before_projection(r, r.at.best_u) - r.at.best_y);
      old.known = select(acted, one(), zero());
    }
  }

  void remember(const LaneContact<T>& c, LaneSpinMemory<T>& old) {
    if (c.spin < 0) {
      old = {zero(), zero(), zero3<T>(), zero3<T>()};
      return;
    }
    const LaneSpin<T>& s = s_.spin[c.spin];
    const Vec3<T>& y = s.at.best_y;
    const Vec3<T> over = times_R(s, before_projection(s, s.at.best_u) - y);
    old.torsion = y.x, old.torsion_excess = over.x;
    old.rolling = c.t1 * y.y + c.t2 * y.z, old.rolling_excess = c.t1 * over.y + c.t2 * over.z;
  }

  /// Forces of the drives with a limit over the step, in qvel's axes.
  void drive_forces(T* out) const {
    const T per_step = T(1 / step_.h);
    for (int i = 0; i < s_.nrow; ++i) {
      const LaneJointRow<T>& r = s_.row[i];
      if (r.kind == LaneJointRow<T>::Kind::drive) out[v_.link[r.joint].qvel] = r.at.best_y * per_step;
    }
    for (int i = 0; i < s_.nball; ++i) {
      const LaneBallRow<T>& r = s_.ball[i];
      put3(out + v_.link[r.joint].qvel, transpose_mul(state_[r.joint].R, r.at.best_y) * per_step);
    }
  }

  static void put(R* to, T x) {
    for (int l = 0; l < kLanes; ++l) to[l] = x[l];
  }
  void write(const LaneTermReport<R>& report, Mask<T> acted) {
    T contacts = zero(), touching = zero(), limits = zero(), saturated = zero(), deepest = zero();
    const auto count = [&](Mask<T> where) { return select(where, one(), zero()); };
    const bool forces = report.ground != nullptr;
    for (int i = 0; forces && i < v_.nlink; ++i) s_.ground[i] = zero3<T>();
    every_contact([&](const LaneContact<T>& c) {
      contacts += count(c.live), touching += count(c.live & acted & (c.at.best_y.x > zero()));
      deepest = maximum(select(c.live, -c.distance, zero()), deepest);
      if (!forces || c.link < 0) return;
      const Vec3<T>& y = c.at.best_y;
      const Vec3<T> f = c.n * y.x + c.t1 * y.y + c.t2 * y.z;
      s_.ground[c.link] += select<T>(acted & c.live, f, zero3<T>());
    });
    for (int i = 0; i < s_.nrow; ++i) {
      const LaneJointRow<T>& r = s_.row[i];
      const T near = T(1 - (sizeof(R) == 8 ? R(1e-9) : R(1e-6)));
      if (r.kind == LaneJointRow<T>::Kind::limit) limits += count(r.live);
      if (r.kind == LaneJointRow<T>::Kind::drive)
        saturated += count((r.at.best_y >= r.upper * near) | (r.at.best_y <= r.lower * near));
    }
    for (int i = 0; i < s_.nball; ++i)
      saturated += count(norm(s_.ball[i].at.best_y) >= s_.ball[i].radius * T(1 - (sizeof(R) == 8 ? R(1e-9) : R(1e-6))));
    put(report.iterations, iterations_),
        put(report.residual,
            select(acted & (best_residual_ < T(std::numeric_limits<R>::infinity())), best_residual_, zero()));
    put(report.penetration, deepest), put(report.contacts, contacts), put(report.touching, touching);
    put(report.limits, limits), put(report.saturated, saturated);
    const Mask<T> full = s_.overflow != Bits<T>{};
    put(report.missed, select(acted, select(met_ & ~full, zero(), one()), T(R(2))));
    for (int i = 0; forces && i < v_.nlink; ++i) {
      for (int k = 0; k < 3; ++k) put(report.ground + (3 * i + k) * kLanes, s_.ground[i][k] * T(1 / step_.h));
    }
  }

  const LanePack<R>& pack_;
  const ModelView<R>& v_;
  const LaneModel<R>& m_;
  const LaneStep<R>& step_;
  LinkState<T>* state_;
  const T* K_;
  T* own_K_ = nullptr;  ///< the same where lanes of other packs go on
  LaneSpace<T>& s_;
  LaneMemory<T>& memory_;
  int guess_ = 0, nextra_ = 0, nextra_spin_ = 0, nitem_ = 0, ntouch_ = 0;
  int extras_[kLanes];  ///< each lane's contacts between links in the linear problem at hand
  int extra_spins_[kLanes];
  bool some_ = false;  ///< terms in some lane
  bool waits_ = false, waiting_ = false;
  Mask<T> live_ = no_lanes<T>(), met_ = no_lanes<T>(), short_ = no_lanes<T>();
  Mask<T> slid_ = no_lanes<T>();  ///< lanes that had a matrix without symmetry: they keep to that pass
  T discs_ = zero(), iterations_ = zero(), best_residual_ = zero();
  Descent descent_{};
};

}  // namespace TARSUS_ISA
}  // namespace tarsus

#include "constraint/lane_together.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Contacts, limits, dry friction and drives with force limits in one problem, for up to kTogether packs. Lanes that
/// need more iterations than most of their pack's go on in one pack with those of the others.
template <class T>
void lane_solve(const LaneModel<Real<T>>& model, const LaneStep<Real<T>>& step, const LanePack<Real<T>>* packs,
                int count, std::byte* work) {
  if constexpr (kWidth < T >> 1) {
    std::array<LaneSpace<T>, kTogether<T>> space;  // of those that wait, and the one at hand
    std::array<LaneMemory<T>, kTogether<T>> memory;
    std::array<std::optional<LaneSolver<T>>, kTogether<T>> solver;
    std::array<LaneSolver<T>*, kTogether<T>> waiting;
    std::size_t nwaiting = 0;
    int lanes = 0;
    LaneScratch<T> scratch;
    work += carve_scratch<T>(model, work, scratch);
    for (int p = 0; p < count; ++p) {
      const LanePack<Real<T>>& pack = packs[p];
      LinkState<T>* state = static_cast<LinkState<T>*>(pack.state);
      LaneSpace<T>& mine = space[nwaiting];
      mine = LaneSpace<T>{}, static_cast<LaneScratch<T>&>(mine) = scratch;
      const std::size_t size = carve_space<T>(model, work, mine);
      carve_memory<T>(model, pack.memory, memory[nwaiting]);
      for (int i = 0; i < pack.view.nlink; ++i) {
        const int parent = pack.view.link[i].parent;
        state[i].o = parent >= 0 ? state[parent].o + state[i].r : state[i].r;
      }
      LaneDetector<T> detector{pack, model, step, state, mine};
      detector.detect();
      LaneSolver<T>& one = solver[nwaiting].emplace(pack, model, step, state, reinterpret_cast<const T*>(pack.K), mine,
                                                    memory[nwaiting]);
      one.begin(count > 1);
      if (one.waiting() == 0) {
        one.end();
        continue;
      }
      waiting[nwaiting++] = &one, lanes += one.waiting(), work += size;
    }
    const std::span<LaneSolver<T>* const> together(waiting.data(), nwaiting);
    if constexpr (kNarrows<T>) {
      if (lanes > kWidth<Narrow<T>>)
        go_down_in<T, T>(work, together);
      else if (lanes > 0)
        go_down_in<Narrow<T>, T>(scratch.narrow, together);
    }
    for (LaneSolver<T>* one : together) one->end();
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
