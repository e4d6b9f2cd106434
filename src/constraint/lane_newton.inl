// The one solve of a step for packs of worlds: solver/step_newton.hpp's iteration, each lane with its own steps.
//
// A lane that has its answer is frozen; iterations go on while some lane needs them. Whatever a lane computes depends
// on its own numbers alone: rows, contacts and passes that only neighbours have add zeros to it.
#pragma once

#include "constraint/lane_contacts.inl"
#include "constraint/term_constants.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
class LaneSolver {
 public:
  static constexpr int kLanes = kWidth<T>;
  using R = Real<T>;

  LaneSolver(const ModelView<R>& view, const LaneModel<R>& model, const LaneStep<R>& step, LinkState<T>* state,
             const T* K, LaneSpace<T>& space, LaneMemory<T>& memory)
      : v_(view), m_(model), step_(step), state_(state), K_(K), s_(space), memory_(memory) {}

  /// Rigid inertias, which every solve starts from; the factors of M̂ stay until the first of them.
  void prepare_inertias() { prepare_loads_kernel<T>(v_, state_); }

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

  /// v⁺ in place of v⁰ in `velocity`.
  void run(const T* qpos, const T* qvel, const T* push, T* velocity, const LaneTermReport<R>& report) {
    velocities(qvel, velocity);
    each_contact([&](LaneContact<T>& c) { build(c); });
    s_.nrow = s_.nball = 0;
    if (step_.limits) add_limits(qpos, qvel, velocity);
    if (step_.losses) add_losses(qvel, velocity);
    if (step_.nlimited > 0) add_drives(qvel, velocity, push);
    const T zero = T(R(0));
    iterations_ = zero;
    best_residual_ = T(std::numeric_limits<R>::infinity());
    met_ = every_lane<T>();
    for (int k = 0; k < v_.nv; ++k) s_.x_best[k] = zero;
    if (s_.ncontact + s_.ncrossing + s_.nrow + s_.nball > 0) solve();
    const Mask<T> finite = best_residual_ < T(std::numeric_limits<R>::infinity());
    const Mask<T> acted = finite | met_;
    for (int k = 0; k < v_.nv; ++k) velocity[k] = velocity[k] + select(acted, s_.x_best[k], zero);
    remember(acted);
    write(report, acted);
  }

 private:
  static constexpr R kExcess = sizeof(R) == 8 ? R(2e-10) : R(1e-6);
  static constexpr int kPatience = 8, kDiscs = 5, kHalvings = 8;
  static constexpr R kShort = R(0.2);
  static constexpr R kNear = R(0.01);  ///< residual below which steps go on from the iterate [m/s]

  T zero() const { return T(R(0)); }
  T one() const { return T(R(1)); }
  template <class F>
  TARSUS_INLINE void each_contact(const F& f) {
    for (int i = 0; i < s_.ncontact; ++i) f(s_.contact[i]);
    for (int i = 0; i < s_.ncrossing; ++i) f(s_.crossing[i]);
  }
  template <class F>
  TARSUS_INLINE void each(const F& f) {
    each_contact(f);
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
  /// Each lane's own of structures that lie `stride` numbers apart, at the same place in them.
  static T gather(const T* first, int stride, const int (&link)[kLanes]) {
    const R* numbers = reinterpret_cast<const R*>(first);
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 64) {
      if constexpr (sizeof(R) == 8) {
        const __m256i at = _mm256_add_epi32(
            _mm256_mullo_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(link)), _mm256_set1_epi32(stride)),
            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        return T(typename T::Vector(_mm512_i32gather_pd(at, numbers, 8)));
      } else {
        const __m512i at = _mm512_add_epi32(_mm512_mullo_epi32(_mm512_loadu_si512(link), _mm512_set1_epi32(stride)),
                                            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        return T(typename T::Vector(_mm512_i32gather_ps(at, numbers, 4)));
      }
    }
#endif
    T out;
    for (int l = 0; l < kLanes; ++l) out.set(l, numbers[std::ptrdiff_t(link[l]) * stride + l]);
    return out;
  }
  static Vec3<T> gather(const Vec3<T>* first, std::size_t bytes, const int (&link)[kLanes]) {
    const int stride = int(bytes / sizeof(R));
    return {gather(&first->x, stride, link), gather(&first->y, stride, link), gather(&first->z, stride, link)};
  }
  static Motion<T> gather(const Motion<T>* all, int stride, int k, const int (&link)[kLanes]) {
    return {gather(&all[k].w, sizeof(Motion<T>) * stride, link), gather(&all[k].v, sizeof(Motion<T>) * stride, link)};
  }
  /// J of a contact times the links' motions, along n, t₁, t₂.
  Vec3<T> along(const LaneContact<T>& c, const Motion<T>* motion, int stride = 1, int k = 0) const {
    Vec3<T> u;
    if (c.link >= 0) {
      const Motion<T>& a = motion[c.link * stride + k];
      u = cross_add(a.w, c.arm_a, a.v);
    } else {
      const Motion<T> a = gather(motion, stride, k, c.a), b = gather(motion, stride, k, c.b);
      u = cross_add(a.w, c.arm_a, a.v) - cross_add(b.w, c.arm_b, b.v);
    }
    return {dot(c.n, u), dot(c.t1, u), dot(c.t2, u)};
  }
  T inverse_mean(const Sym3<T>& M) const { return T(R(3)) / maximum(M.xx + M.yy + M.zz, T(R(1e-30))); }
  T inverse_mean_of(const int (&link)[kLanes]) const {
    T sum;
    for (int l = 0; l < kLanes; ++l) {
      const Sym3<T>& M = state_[link[l]].IA.M;
      sum.set(l, M.xx[l] + M.yy[l] + M.zz[l]);
    }
    return T(R(3)) / maximum(sum, T(R(1e-30)));
  }

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
      c.arm_a = c.point - gather(&state_[0].o, sizeof(LinkState<T>), c.a);
      c.arm_b = c.point - gather(&state_[0].o, sizeof(LinkState<T>), c.b);
      mass = inverse_mean_of(c.a) + inverse_mean_of(c.b);
    }
    const Vec3<T> speed = along(c, s_.start);
    c.free = along(c, s_.free);
    const LaneSpook<T> spook(c.compliance, c.damping_time, c.distance, speed.x, step_.h, R(kContactReturn),
                             c.relative_compliance * mass, step_.restitution, step_.restitution_threshold);
    c.target = spook.target, c.centre1 = c.centre2 = zero();
    c.normal.inverse_mass = c.tangent.inverse_mass = mass;
    c.normal.own_R = compliance(spook.own_R, mass), c.tangent.own_R = compliance(zero(), mass);
    c.normal.set(c.normal.own_R, c.live), c.tangent.set(c.tangent.own_R, c.live);
    c.at.now_y = before_projection(c, speed);
    c.Gnn = c.G1n = c.G2n = c.G11 = c.G12 = c.G22 = zero(), c.base = zero3<T>();
    recall(c);
  }

  /// The same contact of the last step, lane by lane; both steps' contacts mostly stand in one order.
  void recall(LaneContact<T>& c) {
    const int count = int((*memory_.count)[0]);
    Bits<T> left = c.key;
    const auto take = [&](const LaneContactMemory<T>& old) {
      const Mask<T> same = (old.key == left) & (left != Bits<T>{});
      if (!any(same)) return false;
      const Vec3<T> slide = old.slide, more = old.slide_excess;
      const T s1 = dot(c.t1, slide), s2 = dot(c.t2, slide);
      const Vec3<T> y = {mul_add(old.excess, c.normal.iR, old.impulse), mul_add(dot(c.t1, more), c.tangent.iR, s1),
                         mul_add(dot(c.t2, more), c.tangent.iR, s2)};
      c.at.now_y = select<T>(same, y, c.at.now_y);
      c.centre1 = select(same, s1, c.centre1), c.centre2 = select(same, s2, c.centre2);
      left = left & ~same;
      return !any(left != Bits<T>{});
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

  LaneJointRow<T>& add_row(typename LaneJointRow<T>::Kind kind, int joint, int place, Mask<T> live) {
    LaneJointRow<T>& r = s_.row[s_.nrow++];
    r.kind = kind, r.joint = joint, r.place = place, r.live = live;
    r.axial = v_.link[joint].joint != JointType::ball;
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
    r.live = where & (mul_add(minimum(speed, ahead), T(step_.h), gap) <= T(R(kLimitReach)));
    if (!any(r.live)) {
      --s_.nrow;
      return;
    }
    const T w = inverse_mass(r);
    const LaneSpook<T> spook(T(step_.limit_compliance), T(step_.limit_damping_time), gap, speed, step_.h,
                             R(kLimitReturn));
    r.free = ahead, r.target = spook.target;
    r.lower = zero(), r.upper = select(r.live, T(std::numeric_limits<R>::infinity()), zero());
    r.metric.inverse_mass = w, r.metric.own_R = compliance(spook.own_R, w);
    r.metric.set(r.metric.own_R, r.live);
    start(r, speed, false);
  }
  void add_limits(const T* qpos, const T* qvel, const T* free) {
    for (int i = 0; i < m_.nlimit; ++i) {
      const int joint = m_.limit[i];
      const LinkConstants<R>& link = v_.link[joint];
      const T low = T(m_.range[2 * i]), high = T(m_.range[2 * i + 1]);
      if (link.joint != JointType::ball) {
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
      const T implicit = T(step_.stiff ? h * h : R(0)) * own(step_.drive_kp[dof], step_.kp_scale, dof);
      const T kd = T(h) * own(step_.drive_kd[dof], step_.kd_scale, dof) + implicit;
      if (v_.link[joint].joint != JointType::ball) {
        LaneJointRow<T>& r =
            add_row(LaneJointRow<T>::Kind::drive, joint, 2 * m_.nlimit + m_.nloss + i, every_lane<T>());
        r.e = {one(), zero(), zero()};
        const T w = inverse_mass(r), stiffness = maximum(kd, T(R(kLeastStiffness)) / w), along_push = push[dof] * T(h);
        r.free = free[dof], r.target = qvel[dof] + along_push / stiffness;
        r.lower = T(h) * own(step_.force_low[i], step_.force_scale, dof);
        r.upper = T(h) * own(step_.force_high[i], step_.force_scale, dof);
        r.metric.inverse_mass = w, r.metric.own_R = one() / stiffness;
        r.metric.set(r.metric.own_R, r.live);
        const LaneJointMemory<T>& old = memory_.joint[r.place];
        r.at.now_y = select(old.known > zero(), mul_add(old.excess, r.metric.iR, old.impulse), along_push);
        continue;
      }
      LaneBallRow<T>& r = s_.ball[s_.nball++];
      r.joint = joint, r.place = i, r.radius = T(h) * own(step_.force_high[i], step_.force_scale, dof);
      const LinkState<T>& link = state_[joint];
      const T mean = (link.IA.I.xx + link.IA.I.yy + link.IA.I.zz) * T(R(1.0 / 3)) + link.k;
      const T w = one() / maximum(mean, T(R(1e-30))), stiffness = maximum(kd, T(R(kLeastStiffness)) / w);
      const Vec3<T> turned = link.R * get3(push + dof) * T(h), speed = link.R * get3(qvel + dof);
      r.free = link.R * get3(free + dof), r.target = speed + turned * (one() / stiffness);
      r.metric.inverse_mass = w, r.metric.own_R = one() / stiffness;
      r.metric.set(r.metric.own_R, every_lane<T>());
      r.G = {zero(), zero(), zero(), zero(), zero(), zero()}, r.base = zero3<T>();
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
  void linear_solve(Mask<T> near) {
    std::fill(s_.loaded, s_.loaded + v_.nlink, char(0));
    iterations_ += select(live_, one(), zero());
    each([&](auto& t) { t.at.next_y = select(near, t.base - t.at.now_y, t.base + times(t, t.at.now_u - t.free)); });
    Mask<T> skew = no_lanes<T>();
    for (int i = 0; i < s_.ncontact; ++i) {
      const LaneContact<T>& c = s_.contact[i];
      if (!any(acts(c))) continue;
      add_load(c, c.at.next_y);
      skew = skew | ~((c.G1n == zero()) & (c.G2n == zero()));
    }
    for (int i = 0; i < s_.nrow; ++i) add_load(s_.row[i], s_.row[i].at.next_y);
    for (int i = 0; i < s_.nball; ++i) add_load(s_.ball[i], s_.ball[i].at.next_y);
    nextra_ = 0;
    for (int i = 0; i < s_.ncrossing; ++i) {
      const Mask<T> here = acts(s_.crossing[i]);
      if (any(here)) extra_[nextra_++] = i;
      skew = skew | here;
    }
    const Mask<T> with = live_ & skew, without = live_ & ~skew;
    if (any(without)) {
      lane_solve_symmetric<T>(v_, state_, K_, s_.load, s_.loaded, s_.x_next);
      for (int i = 0; i < v_.nlink; ++i) s_.motion[i] = state_[i].a;
    }
    if (any(with)) solve_skew(with);
    each_contact([&](LaneContact<T>& c) { read(c, along(c, s_.motion), near); });
    for (int i = 0; i < s_.nrow; ++i) read(s_.row[i], along(s_.row[i], s_.x_next), near);
    for (int i = 0; i < s_.nball; ++i)
      read(s_.ball[i], state_[s_.ball[i].joint].R * get3(s_.x_next + v_.link[s_.ball[i].joint].qvel), near);
    for (int k = 0; k < v_.nv; ++k) s_.x_next[k] = s_.x_next[k] + select(near, s_.x_now[k], zero());
  }
  template <class Term, class X>
  TARSUS_INLINE void read(Term& t, const X& change, Mask<T> near) {
    const X y = t.at.next_y - times(t, change);
    t.at.next_y = select(near, t.at.now_y + y, y);
    t.at.next_u = change + select(near, t.at.now_u, t.free);
  }

  void solve_skew(Mask<T> lanes) {
    lane_factor<T>(v_, state_, K_, s_.load, s_.loaded, s_.link);
    for (int i = 0; i < v_.nlink; ++i)
      s_.force[i] = s_.loaded[i] ? Force<T>{-s_.load[i].f.n, -s_.load[i].f.f} : Force<T>{zero3<T>(), zero3<T>()};
    Motion<T>* motion = s_.skew_motion;
    T* x = s_.x_other;
    lane_substitute<1, T>(v_, state_, s_.link, s_.force, s_.load, s_.loaded, nullptr, s_.left, motion, x);
    if (nextra_ > 0) solve_extra(motion, x);
    for (int k = 0; k < v_.nv; ++k) s_.x_next[k] = select(lanes, x[k], s_.x_next[k]);
    for (int i = 0; i < v_.nlink; ++i) {
      s_.motion[i].w = select<T>(lanes, motion[i].w, s_.motion[i].w);
      s_.motion[i].v = select<T>(lanes, motion[i].v, s_.motion[i].v);
    }
  }

  /// p[link][n][k] -= the wrench of a crossing's `force` at its point, on its own links in each lane.
  void apply(const LaneContact<T>& c, const Vec3<T>& force, int n, int k) {
    const Force<T> on_a = {cross(c.arm_a, force), force}, on_b = {cross(c.arm_b, force), force};
    const R *from_a = reinterpret_cast<const R*>(&on_a), *from_b = reinterpret_cast<const R*>(&on_b);
    R* all = reinterpret_cast<R*>(s_.force + k);
    for (int l = 0; l < kLanes; ++l) {
      if (!c.live[l]) continue;
      R *a = all + std::ptrdiff_t(c.a[l]) * n * 6 * kLanes + l, *b = all + std::ptrdiff_t(c.b[l]) * n * 6 * kLanes + l;
      for (int j = 0; j < 6 * kLanes; j += kLanes) a[j] -= from_a[j + l], b[j] += from_b[j + l];
    }
  }

  /// Contacts between links, by their Schur complement: (1 + G W) φ = f - G u₀, W = J A⁻¹ Jᵀ.
  void solve_extra(Motion<T>* motion, T* x) {
    const int n = 3 * nextra_;
    const auto no_forces = [&](int count) {
      for (int i = 0; i < v_.nlink; ++i) {
        if (count > 1 && !s_.needed[i]) continue;
        for (int k = 0; k < count; ++k) s_.force[count * i + k] = {zero3<T>(), zero3<T>()};
      }
    };
    std::fill(s_.needed, s_.needed + v_.nlink, char(0));
    for (int j = 0; j < nextra_; ++j) {
      const LaneContact<T>& c = s_.crossing[extra_[j]];
      for (int l = 0; l < kLanes; ++l) {
        if (!(c.live[l] & live_[l])) continue;
        for (int i = c.a[l]; i >= 0 && !s_.needed[i]; i = v_.link[i].parent) s_.needed[i] = 1;
        for (int i = c.b[l]; i >= 0 && !s_.needed[i]; i = v_.link[i].parent) s_.needed[i] = 1;
      }
    }
    for (int j = 0; j < nextra_; ++j) {
      const LaneContact<T>& cj = s_.crossing[extra_[j]];
      no_forces(3);
      apply(cj, cj.n, 3, 0), apply(cj, cj.t1, 3, 1), apply(cj, cj.t2, 3, 2);
      lane_substitute<3, T>(v_, state_, s_.link, s_.force, nullptr, nullptr, s_.needed, s_.left, s_.column, nullptr);
      for (int i = 0; i < nextra_; ++i) {
        const LaneContact<T>& ci = s_.crossing[extra_[i]];
        for (int k = 0; k < 3; ++k) {
          const Vec3<T> gw = times(ci, along(ci, s_.column, 3, k));
          for (int r = 0; r < 3; ++r) s_.matrix[(3 * i + r) * n + 3 * j + k] = i == j && r == k ? gw[r] + one() : gw[r];
        }
      }
    }
    for (int i = 0; i < nextra_; ++i) {
      const LaneContact<T>& c = s_.crossing[extra_[i]];
      const Vec3<T> right = c.at.next_y - times(c, along(c, motion));
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
    no_forces(1);
    for (int i = 0; i < nextra_; ++i) {
      const LaneContact<T>& c = s_.crossing[extra_[i]];
      apply(c, c.n * s_.right[3 * i] + c.t1 * s_.right[3 * i + 1] + c.t2 * s_.right[3 * i + 2], 1, 0);
    }
    lane_substitute<1, T>(v_, state_, s_.link, s_.force, nullptr, nullptr, nullptr, s_.left, s_.column, s_.x_extra);
    for (int k = 0; k < v_.nv; ++k) x[k] = x[k] + s_.x_extra[k];
    for (int i = 0; i < v_.nlink; ++i) motion[i] = motion[i] + s_.column[i];
  }

  // -- Newton ---------------------------------------------------------------------------------------------------------

  /// Not a number where some term's velocity or impulse is none.
  T residual() {
    T worst = zero(), poison = zero();
    each([&](auto& t) {
      worst = maximum(natural_residual(t), worst);
      poison += (first_of(t.at.now_u) + first_of(t.at.now_y)) * zero();
    });
    return worst + poison;
  }
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
  void move(T t) {
    each([&](auto& term) {
      blend(live_, t, term.at.next_u, term.at.now_u);
      blend(live_, t, term.at.next_y, term.at.now_y);
    });
    for (int k = 0; k < v_.nv; ++k) blend(live_, t, s_.x_next[k], s_.x_now[k]);
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
    if (!any(better)) return;
    best_residual_ = select(better, now, best_residual_);
    met_ = (better & met) | (~better & met_);
    keep(better);
  }

  /// The first iteration: the tangents at now_y; no search.
  void begin() {
    each([&](auto& t) {
      t.at.now_u = select(live_, velocity_of(t, t.at.now_y), t.at.now_u);
      law(t, t.at.now_u, false, true, live_);
    });
    linear_solve(no_lanes<T>());
    each([&](auto& t) {
      t.at.now_u = select(live_, t.at.next_u, t.at.now_u), t.at.now_y = select(live_, t.at.next_y, t.at.now_y);
    });
    for (int k = 0; k < v_.nv; ++k) s_.x_now[k] = select(live_, s_.x_next[k], s_.x_now[k]);
  }

  T map_at(T t, Mask<T> lanes) {
    T sum = zero();
    each([&](auto& term) {
      const auto u = term.at.now_u + (term.at.next_u - term.at.now_u) * t;
      const auto y = term.at.now_y + (term.at.next_y - term.at.now_y) * t;
      sum += natural_map<false>(term, u, y, lanes);
    });
    return sum;
  }

  /// Step along the natural map's Newton direction for `lanes`, 0 elsewhere.
  T halved(T start, Mask<T> lanes) {
    T best = one(), least = T(std::numeric_limits<R>::infinity());
    Mask<T> open = lanes;
    R t = 1;
    for (int k = 0; k < kHalvings && any(open); ++k, t *= R(0.5)) {
      const T there = map_at(T(t), lanes);
      const Mask<T> better = open & (there < least);
      least = select(better, there, least), best = select(better, T(t), best);
      open = open & !(there <= start * T(1 - R(1e-4) * t));
    }
    return best;
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
    for (int k = 0; k < 12 && any(open); ++k) {
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
  Mask<T> stalled(int count, T now, T before) {
    if (count <= kPatience) return no_lanes<T>();
    const Mask<T> in = live_ & ((discs_ > zero()) | short_ | !(now <= before * T(R(0.5))));
    discs_ = select(in, select(discs_ > zero(), discs_ - one(), T(R(kDiscs))), discs_);
    return in & (discs_ > zero());
  }

  /// Iterates from now_y in the lanes live_, which lose those that are done. @param judged the rows are the problem's
  /// own @return lanes that met the tolerance
  Mask<T> descend(T tolerance, int most, bool judged) {
    discs_ = zero(), short_ = no_lanes<T>();
    begin();
    const T infinite = T(std::numeric_limits<R>::infinity());
    T last = infinite, last_but_one = infinite, older = infinite;
    Mask<T> all_met = no_lanes<T>();
    for (int count = 1;; ++count) {
      const T now = residual();
      Mask<T> met = live_ & (now <= tolerance);
      if (judged) {
        met = met & within_sets();
        judge(now, met, live_);
      }
      all_met = all_met | met;
      live_ = live_ & ~met & (now < infinite);
      if (!any(live_) || count >= most) return all_met;
      const Mask<T> convex = stalled(count, now, older);
      older = minimum(older, last_but_one), last_but_one = last, last = now;
      T start = zero();
      each([&](auto& t) { start += natural_map<true>(t, t.at.now_u, t.at.now_y, live_); });
      if (any(convex)) {
        each_contact([&](LaneContact<T>& c) { c.given_normal = maximum(c.at.now_y.x, zero()); });
        each([&](auto& t) { law(t, t.at.now_u, true, true, convex); });
      }
      linear_solve(now < T(kNear));
      T t = halved(start, live_ & ~convex);
      if (any(convex)) t = select(convex, searched(convex), t);
      short_ = t < T(kShort);
      move(t);
    }
  }

  void solve() {
    each([&](auto& t) {
      t.at.now_u = t.at.best_u = t.free;
      t.at.best_y = t.at.now_y * zero();
    });
    for (int k = 0; k < v_.nv; ++k) s_.x_now[k] = s_.x_best[k] = zero();
    met_ = no_lanes<T>(), live_ = every_lane<T>();
    descend(T(step_.tolerance), step_.most_iterations, true);
    const Mask<T> missed = ~met_ & (best_residual_ < T(std::numeric_limits<R>::infinity()));
    if (!any(missed)) return;
    harden(missed);
    bound_impulses(~met_ & (best_residual_ < T(std::numeric_limits<R>::infinity())));
  }

  /// Where the best iterate has impulses beyond their bounds: these as their bounds allow, and the rest once more.
  void bound_impulses(Mask<T> lanes) {
    if (!any(lanes)) return;
    live_ = lanes;
    each([&](auto& t) {
      t.at.now_u = select(live_, t.at.best_u, t.at.now_u), t.at.now_y = select(live_, t.at.best_y, t.at.now_y);
    });
    for (int k = 0; k < v_.nv; ++k) s_.x_now[k] = select(live_, s_.x_best[k], s_.x_now[k]);
    live_ = live_ & ~within_sets();
    if (!any(live_)) return;
    each([&](auto& t) { natural_map<true>(t, t.at.now_u, t.at.now_y, live_); });
    for (int i = 0; i < s_.nrow; ++i) bound(s_.row[i], live_);
    for (int i = 0; i < s_.nball; ++i) bound(s_.ball[i], live_);
    linear_solve(best_residual_ < T(kNear));
    move(one());
    best_residual_ = select(live_, residual(), best_residual_);
    keep(live_);
  }

  /// R of all rows no less than `share` of the inverse mass.
  void set_stage(R share) {
    const auto set = [&](LaneMetric<T>& metric, Mask<T> live) {
      metric.set(maximum(metric.own_R, metric.inverse_mass * T(share)), live);
    };
    each_contact([&](LaneContact<T>& c) { set(c.normal, c.live), set(c.tangent, c.live); });
    for (int i = 0; i < s_.nrow; ++i) set(s_.row[i].metric, s_.row[i].live);
    for (int i = 0; i < s_.nball; ++i) set(s_.ball[i].metric, every_lane<T>());
  }
  /// The same problem with soft rows, then harder ones, for lanes that missed.
  void harden(Mask<T> missed) {
    each([&](auto& t) {
      t.at.now_u = select(missed, t.at.best_u, t.at.now_u), t.at.now_y = select(missed, t.at.best_y, t.at.now_y);
    });
    for (int k = 0; k < v_.nv; ++k) s_.x_now[k] = select(missed, s_.x_best[k], s_.x_now[k]);
    Mask<T> going = missed;
    constexpr R kShares[] = {10, 3, 1, R(0.3), R(0.1), R(0.03), R(0.01), 0};
    for (const R share : kShares) {
      each([&](auto& t) {  // γ, and R (y - γ), of the rows as they are
        const auto gamma = law(t, t.at.now_u, false, false, going);
        t.at.next_y = gamma;
        t.at.next_u = times_R(t, before_projection(t, t.at.now_u) - gamma);
      });
      set_stage(share);
      each([&](auto& t) { t.at.now_y = select(going, t.at.next_y + times_iR(t, t.at.next_u), t.at.now_y); });
      live_ = going;
      const bool own = share == 0;
      const Mask<T> met = descend(T(own ? step_.tolerance : R(1e-3)), own ? 10 : 12, own);
      if (own) return;
      going = going & met;
      if (!any(going)) break;
    }
    set_stage(0);
  }
  TARSUS_INLINE static Vec3<T> times_R(const LaneContact<T>& c, const Vec3<T>& x) {
    return {x.x * c.normal.R, x.y * c.tangent.R, x.z * c.tangent.R};
  }
  TARSUS_INLINE static T times_R(const LaneJointRow<T>& r, T x) { return x * r.metric.R; }
  TARSUS_INLINE static Vec3<T> times_R(const LaneBallRow<T>& r, const Vec3<T>& x) { return x * r.metric.R; }
  TARSUS_INLINE static Vec3<T> times_iR(const LaneContact<T>& c, const Vec3<T>& x) {
    return {x.x * c.normal.iR, x.y * c.tangent.iR, x.z * c.tangent.iR};
  }
  TARSUS_INLINE static T times_iR(const LaneJointRow<T>& r, T x) { return x * r.metric.iR; }
  TARSUS_INLINE static Vec3<T> times_iR(const LaneBallRow<T>& r, const Vec3<T>& x) { return x * r.metric.iR; }

  // -- what remains ---------------------------------------------------------------------------------------------------

  void remember(Mask<T> acted) {
    const int before = int((*memory_.count)[0]);
    int now = 0;
    each_contact([&](const LaneContact<T>& c) {
      LaneContactMemory<T>& old = memory_.contact[now++];
      const Vec3<T>& y = c.at.best_y;
      const Vec3<T> over = times_R(c, before_projection(c, c.at.best_u) - y);
      old.key = c.key & acted;
      old.impulse = y.x, old.excess = over.x;
      old.slide = c.t1 * y.y + c.t2 * y.z, old.slide_excess = c.t1 * over.y + c.t2 * over.z;
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

  static void put(R* to, T x) {
    for (int l = 0; l < kLanes; ++l) to[l] = x[l];
  }
  void write(const LaneTermReport<R>& report, Mask<T> acted) {
    T contacts = zero(), touching = zero(), limits = zero(), saturated = zero(), deepest = zero();
    const auto count = [&](Mask<T> where) { return select(where, one(), zero()); };
    const bool forces = report.ground != nullptr;
    for (int i = 0; forces && i < v_.nlink; ++i) s_.ground[i] = zero3<T>();
    each_contact([&](const LaneContact<T>& c) {
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

  const ModelView<R>& v_;
  const LaneModel<R>& m_;
  const LaneStep<R>& step_;
  LinkState<T>* state_;
  const T* K_;
  LaneSpace<T>& s_;
  LaneMemory<T>& memory_;
  int guess_ = 0, nextra_ = 0;
  int extra_[64];
  Mask<T> live_, met_, short_;
  T discs_, iterations_, best_residual_;
};

/// Contacts, limits, dry friction and drives with force limits in one problem, for one pack. `state` as maba() leaves
/// it, with the factors of M̂; they are lost.
/// @param push [nv] the limited drives' force were q̈ zero  @param velocity [nv] in: v⁰; out: v⁺
/// @param drive_force [nv] out: force of the limited drives, 0 elsewhere
template <class T>
void lane_solve(const ModelView<Real<T>>& view, LinkState<T>* state, const LaneModel<Real<T>>& model,
                const LaneStep<Real<T>>& step, const T* qpos, const T* qvel, const T* K, const T* push, T* velocity,
                T* drive_force, std::byte* memory_block, std::byte* work, const LaneTermReport<Real<T>>& report) {
  if constexpr (kWidth < T >> 1) {
    LaneSpace<T> space;
    LaneMemory<T> memory;
    carve_space<T>(model, work, space);
    carve_memory<T>(model, memory_block, memory);
    for (int i = 0; i < view.nlink; ++i) {
      const int parent = view.link[i].parent;
      state[i].o = parent >= 0 ? state[parent].o + state[i].r : state[i].r;
    }
    LaneDetector<T> detector{view, model, step, state, space};
    detector.detect();
    LaneSolver<T> solver(view, model, step, state, K, space, memory);
    solver.prepare_inertias();
    solver.run(qpos, qvel, push, velocity, report);
    for (int k = 0; k < view.nv; ++k) drive_force[k] = T(Real<T>(0));
    solver.drive_forces(drive_force);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
