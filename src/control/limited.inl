// MABA with force limits that hold at the end of the step. Finds the minimiser x = q̈ of the convex function
//   f(x) = ½ xᵀ M x + (C - Q)ᵀ x + Σ ψ_i(x_i),   ψ_i' = -u_i(x_i) = -clamp(t_i(x_i)),
//   t_i = drive_force_i - drive_inertia_i x_i
// M, C and Q are those without the drives (springs, damping and armature included). Hinges and slides, and the three
// translations of a free joint, clamp each DoF to [low, high]. The three DoFs of a ball and the rotations of a free
// joint scale t to at most the length `high`.
//
// The active set assigns each joint a regime, in which u_i = Q_i - K_i x_i. Within its limit K_i = drive_inertia_i. At
// its limit K_i = 0 and Q_i is the limit; a rotation has K_i = k (τ/|t|)(1 - n nᵀ) with n = t/|t|, written as k' 1 - b
// bᵀ with b in `rank_one`. An iteration is passes 2 and 3 of ABA with these K. The first iteration uses the last step's
// active set. If its x agrees with that set, it is the solution, at the cost of plain MABA.
//
// Iterations of sweeps: pass 3 goes outward and applies each joint's own law, so that a joint chooses its next regime
// knowing its parent's acceleration and its children's regimes (sweep_outward). A joint that changed from one limit to
// the other gets the secant of its law between the two instead of a tangent; without this such joints cycle. A fixed
// point is the minimiser, because x of the law and of the regime agree if the regime is right. Most steps end here; for
// balls the convergence is quadratic.
//
// If the sweeps do not converge, Newton's method follows. f's gradient at the x of the last active set is g_i = (Q_i -
// K_i x_i) - u_i(x_i), which needs no RNEA, and the iterations solve H d = -g. Since H = M + K, the product M d = -g -
// K d needs no further pass, so the line search and the next gradient cost O(n) multiplications and no pass over the
// tree.  [theory: f is convex, hence has one minimiser; the line search decreases f, hence finds it]
#pragma once

#include <limits>

#include "control/drive.inl"
#include "dynamics/aba.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// K = k 1 - b bᵀ of a joint's rotation in world axes, from b in the joint's axes.
template <class T>
TARSUS_INLINE Sym3<T> rotational_inertia(const Mat3<T>& R, T k, const T* b) {
  const T zero = T(Real<T>(0));
  const Vec3<T> w = R * get3(b);
  return minus_outer(Sym3<T>{k, zero, zero, k, zero, k}, w, w);
}

template <class T>
class LimitedMaba {
 public:
  using R = Real<T>;
  using Link = LinkConstants<R>;

  LimitedMaba(const ModelView<R>& model, const DriveView<R>& drive, const LimitView<R>& limits,
              const LimitSpace<R>& space, LinkState<T>* state)
      : m_(model), drive_(drive), limits_(limits), state_(state), space_(space) {
    const auto lanes = [](R* p) { return reinterpret_cast<T*>(p); };
    demand_ = lanes(space.demand), Qf_ = lanes(space.free_force), Kf_ = lanes(space.free_inertia);
    Qd_ = lanes(space.drive_force), Kd_ = lanes(space.drive_inertia), Q_ = lanes(space.Q), K_ = lanes(space.K);
    b_ = lanes(space.rank_one), g_ = lanes(space.gradient), d_ = lanes(space.direction), image_ = lanes(space.image);
    applied_ = lanes(space.applied);
  }

  void solve(const T* qpos, const T* qvel, const T* target, const T* target_velocity, const T* tau, T* x) {
    terms(qpos, qvel, target, target_velocity, tau);
    aba_outward(m_, state_, qpos, qvel, static_cast<const T*>(nullptr));
    keep_rigid();
    if (limits_.spin_damping > 0) damp_spin(qvel);
    keep_bias();
    T rounds = zero();
    residual_ = T(std::numeric_limits<R>::max());
    Mask<T> busy = residual_ > T(limits_.tolerance);
    const int sweeps = limits_.max_iterations < kSweeps ? limits_.max_iterations : kSweeps;
    int round = 0;
    for (; round < sweeps && any_lane(busy); ++round) {
      if (round > 0) restore(true);
      rounds = select(busy, rounds + T(R(1)), rounds);
      linearise(round > 0);
      for (int k = 0; k < m_.nv; ++k) image_[k] = Q_[k] + Qf_[k], g_[k] = demand_[k];
      inward(image_);
      sweep_outward(busy, x);
      busy = residual_ > T(limits_.tolerance);
    }
    if (any_lane(busy)) descend(busy, round, rounds, x);
    for (int k = 0; k < m_.nv; ++k) Q_[k] += Qf_[k];
    *reinterpret_cast<T*>(space_.iterations) = rounds;
    *reinterpret_cast<T*>(space_.residual) = residual_;
  }

 private:
  static T zero() { return T(R(0)); }
  static constexpr int kSweeps = 7;   ///< iterations of sweeps before the line search
  static constexpr R kTurned = R(2);  ///< |change of u|² / limit² above which a rotation gets its secant
  static T tiny() { return T(sizeof(R) == 8 ? R(1e-300) : R(1e-36)); }

  /// Calls axial(dof) for each DoF with its own limits and rotation(dof) for each three DoFs with a common limit.
  template <class A, class B>
  TARSUS_INLINE void each_limit(A axial, B rotation) const {
    for (int i = 0; i < m_.nlink; ++i) {
      const Link& link = m_.link[i];
      const int v = link.qvel;
      if (moves_freely(link.joint))
        axial(v), axial(v + 1), axial(v + 2), rotation(v + 3);
      else if (turns_freely(link.joint))
        rotation(v);
      else
        axial(v);
    }
  }

  /// Newton iterations with line search, from the active set of the last sweep, for lanes in which the sweeps did not
  /// converge.
  void descend(Mask<T> busy, int round, T& rounds, T* x) {
    for (bool first = true; round < limits_.max_iterations && any_lane(busy); ++round, first = false) {
      rounds = select(busy, rounds + T(R(1)), rounds);
      linearise();
      restore(first);
      for (int k = 0; k < m_.nv; ++k) image_[k] = first ? Q_[k] + Qf_[k] : -g_[k];
      inward(image_);
      aba_accelerate(m_, state_, d_);
      if (first) {
        for (int k = 0; k < m_.nv; ++k) x[k] = select(busy, d_[k], x[k]);
        residual_after_solve(busy, x);
      } else {
        multiply_by_mass();
        advance(busy, x);
      }
      busy = residual_ > T(limits_.tolerance);
    }
  }

  /// Q and K without the drives, and those of the drives.
  void terms(const T* qpos, const T* qvel, const T* target, const T* target_velocity, const T* tau) {
    DriveView<R> none = drive_;
    none.kp = nullptr;
    drive_terms_kernel<T>(m_, none, qpos, qvel, target, target_velocity, tau, Qf_, Kf_);
    for (int k = 0; k < m_.nv; ++k) Qd_[k] = Kd_[k] = zero();
    for (int i = 0; i < m_.nlink; ++i) {
      const Link& link = m_.link[i];
      const int p = link.qpos, v = link.qvel;
      pull(link.joint, qpos + p, qvel + v, target + p, target_velocity ? target_velocity + v : nullptr,
           stiffness_at<true, T>(drive_, v), damping_at<true, T>(drive_, v), T(drive_.dt), Qd_ + v);
      stiffen(link.joint, stiffness_at<true, T>(drive_, v), damping_at<true, T>(drive_, v), drive_.dt, drive_.plain,
              Kd_ + v);
    }
  }

  /// Stores the links' own inertias, which pass 2 overwrites, in Ic.
  void keep_rigid() {
    for (int i = 0; i < m_.nlink; ++i) {
      const ArticulatedInertia<T>& A = state_[i].IA;
      state_[i].Ic = {A.M.xx, {A.H.zy, A.H.xz, A.H.yx}, A.I};
    }
  }
  /// Joint damping c = α h ω² D against the energy that explicit velocity-product forces add; see Drives::spin_damping.
  /// D is the composite inertia that the joint carries, and ω the largest angular velocity in it. For a free joint ω is
  /// relative to its own body, so that rigid rotation is not damped. On a free root this is an external torque; without
  /// it free chains diverge (docs/force_limits.md).
  void damp_spin(const T* qvel) {
    RigidInertia<T>* composite = reinterpret_cast<RigidInertia<T>*>(space_.composite);
    T *spin = reinterpret_cast<T*>(space_.composite) + 10 * m_.nlink, *relative = spin + m_.nlink;
    for (int i = 0; i < m_.nlink; ++i) {
      LinkState<T>& s = state_[i];
      s.u = m_.link[i].parent < 0
                ? s.v.w
                : state_[m_.link[i].parent].u;  // the root's angular velocity, stored where pass 2 writes later
      const Vec3<T> w = s.v.w, dw = w - s.u;
      composite[i] = state_[i].Ic;
      spin[i] = dot(w, w), relative[i] = dot(dw, dw);
    }
    const R scale = limits_.spin_damping * drive_.dt;
    for (int i = m_.nlink - 1; i >= 0; --i) {
      const Link& link = m_.link[i];
      const bool free = moves_freely(link.joint);
      const T c = (free ? relative[i] : spin[i]) * carried(link.joint, composite[i], state_[i].R) * T(scale);
      for (int k = link.qvel + (free ? 3 : 0); k < link.qvel + qvel_count(link.joint); ++k) {
        Kf_[k] = mul_add(c, T(drive_.dt), Kf_[k]);
        Qf_[k] = neg_mul_add(c, qvel[k], Qf_[k]);
      }
      if (link.parent < 0) continue;
      composite[link.parent] = composite[link.parent] + shift_back(composite[i], state_[i].r);
      spin[link.parent] = maximum(spin[link.parent], spin[i]);
      relative[link.parent] = maximum(relative[link.parent], relative[i]);
    }
  }
  /// The largest inertia that a joint of this type can move.
  TARSUS_INLINE T carried(JointType joint, const RigidInertia<T>& I, const Mat3<T>& R) const {
    const Vec3<T> e = R.column_z();
    if (slides_on_axis(joint)) return I.mass;
    if (turns_on_axis(joint)) return dot(e, I.I * e);
    return (I.I.xx + I.I.yy + I.I.zz) * T(Real<T>(0.5));  // no axis has more than half the trace
  }
  void keep_bias() {
    Force<T>* bias = reinterpret_cast<Force<T>*>(space_.composite);  // damp_spin() needs this memory no longer
    for (int i = 0; i < m_.nlink; ++i) bias[i] = state_[i].pA;
  }
  void restore(bool with_bias) {
    const Force<T>* bias = reinterpret_cast<const Force<T>*>(space_.composite);
    for (int i = 0; i < m_.nlink; ++i) {
      state_[i].IA = articulated(state_[i].Ic);
      state_[i].pA = with_bias ? bias[i] : Force<T>{zero3<T>(), zero3<T>()};
    }
  }

  static TARSUS_INLINE Vec3<T> pick(Mask<T> mask, const Vec3<T>& a, const Vec3<T>& b) {
    return {select(mask, a.x, b.x), select(mask, a.y, b.y), select(mask, a.z, b.z)};
  }

  /// A limit times the lane's own factor.
  TARSUS_INLINE T of(const R* limit, int v) const {
    return limits_.scale ? T(limit[v]) * reinterpret_cast<const T*>(limits_.scale)[v] : T(limit[v]);
  }
  TARSUS_INLINE T inverse_size(int v) const {
    const T inverse = T(limits_.inverse_size[v]);
    return limits_.scale ? inverse / reinterpret_cast<const T*>(limits_.scale)[v] : inverse;
  }
  /// The clamped force for given t; rotations clamp the length.
  TARSUS_INLINE T clamp_axial(int v, T t) const { return clamp(t, of(limits_.low, v), of(limits_.high, v)); }
  TARSUS_INLINE Vec3<T> clamp_rotation(int v, const Vec3<T>& t) const {
    const T limit = of(limits_.high, v), square = dot(t, t);
    return t * select(square > limit * limit, limit / square_root(square + tiny()), T(R(1)));
  }

  /// Q, K and b of the regime that contains `demand`; K includes the part without drives. `secant`: use the secant of
  /// the law between the previous demand, in g, and this one, if the force changed direction between the two.
  void linearise(bool secant = false) {
    each_limit(
        [&](int v) {
          const T t = demand_[v], u = clamp_axial(v, t);
          const Mask<T> inside = u == t;
          T Q = select(inside, Qd_[v], u), share = select(inside, T(R(1)), zero());
          if (secant) {
            const T t0 = g_[v], u0 = clamp_axial(v, t0), r = (u - u0) / (t - t0);
            const Mask<T> turned = (u * u0 < zero()) & (r < T(R(1)));
            share = select(turned, r, share);
            Q = select(turned, mul_add(r, Qd_[v] - t, u), Q);
          }
          Q_[v] = Q;
          K_[v] = mul_add(share, Kd_[v], Kf_[v]);
          b_[v] = zero();
        },
        [&](int v) {
          const Vec3<T> t = get3(demand_ + v), Qd = get3(Qd_ + v);
          const T limit = of(limits_.high, v), square = dot(t, t), length = square_root(square + tiny());
          const Mask<T> outside = square > limit * limit;
          const T weight = select(outside, limit / length, T(R(1)));
          const Vec3<T> n = t * (T(R(1)) / length);
          // limit n + weight (1 - n nᵀ) Qd
          const T along = select(outside, neg_mul_add(weight, dot(n, Qd), limit), zero());
          Vec3<T> Q = mul_add(n, along, Qd * weight), axis = n;
          T share = weight, less = select(outside, weight, zero());
          if (secant) {  // r along the change of t, k perpendicular to it
            const Vec3<T> t0 = get3(g_ + v), u = t * weight, du = u - clamp_rotation(v, t0), dt = t - t0;
            const T moved2 = dot(dt, dt), r = dot(du, dt) / (moved2 + tiny());
            const T share0 = limit / maximum(square_root(dot(t0, t0) + tiny()), limit),
                    k = maximum(maximum(weight, share0), r);
            const Mask<T> turned = dot(du, du) > limit * limit * T(kTurned);
            const Vec3<T> e = dt * (T(R(1)) / square_root(moved2 + tiny())), y = Qd - t;
            const Vec3<T> Qs = u + y * k - e * ((k - r) * dot(e, y));
            Q = pick(turned, Qs, Q), axis = pick(turned, e, axis);
            share = select(turned, k, share), less = select(turned, k - r, less);
          }
          put3(Q_ + v, Q);
          for (int j = 0; j < 3; ++j) K_[v + j] = mul_add(share, Kd_[v], Kf_[v + j]);
          put3(b_ + v, axis * square_root(less * Kd_[v]));
        });
  }

  /// Treats every rotation that has a limit as a tensor, saturated or not, so that a lane's roundings do not depend on
  /// other lanes.
  void inward(const T* Q) {
    if (limits_.rotations)
      inward_tensor(Q);
    else
      aba_inward(m_, state_, Q, K_);
  }

  void inward_tensor(const T* Q) {
    for (int i = m_.nlink - 1; i >= 0; --i) {
      const Link& link = m_.link[i];
      const int v = link.qvel;
      LinkState<T>& s = state_[i];
      if (turns_freely(link.joint)) {
        reduce_ball_tensor(s, link.parent >= 0 ? &state_[link.parent] : nullptr, Q + v,
                           rotational_inertia(s.R, K_[v], b_ + v));
        continue;
      }
      if (moves_freely(link.joint)) {  // nothing reads the root's IA again
        s.IA.I = s.IA.I + rotational_inertia(s.R, zero(), b_ + v + 3);
      }
      reduce(link, state_, i, Q + v, K_ + v);
    }
  }

  /// Pass 3 with each drive's exact law. Given its parent's acceleration, and its children's regimes as pass 2 used
  /// them, a joint finds its actual regime. The regimes of the next iteration are therefore consistent along every
  /// branch, which separate decisions for each joint would not achieve. If the regime was right, x equals that of plain
  /// pass 3.
  void sweep_outward(Mask<T> busy, T* x) {
    T residual = zero();
    for (int i = 0; i < m_.nlink; ++i) {
      const Link& link = m_.link[i];
      LinkState<T>& s = state_[i];
      s.a = link.parent >= 0 ? shift(state_[link.parent].a, s.r) : world_velocity<T>();
      const int v = link.qvel;
      if (moves_freely(link.joint)) {
        residual = maximum(residual, sweep_free(link, s, v));
      } else if (turns_freely(link.joint)) {
        residual = maximum(residual, sweep_ball(s, v));
      } else {
        residual = maximum(residual, sweep_axial(link, s, v));
      }
    }
    for (int k = 0; k < m_.nv; ++k) x[k] = select(busy, d_[k], x[k]);
    residual_ = select(busy, residual, residual_);
    each_limit(
        [&](int v) {
          demand_[v] = neg_mul_add(Kd_[v], x[v], Qd_[v]);
          applied_[v] = clamp_axial(v, demand_[v]);
        },
        [&](int v) {
          put3(demand_ + v, mul_add(get3(x + v), -Kd_[v], get3(Qd_ + v)));
          put3(applied_ + v, clamp_rotation(v, get3(demand_ + v)));
        });
  }

  /// |force of the regime - force of the law| / limit, at the acceleration in d_.
  TARSUS_INLINE T gap_axial(int v) const {
    const T used = neg_mul_add(K_[v] - Kf_[v], d_[v], Q_[v]);
    return absolute(used - clamp_axial(v, neg_mul_add(Kd_[v], d_[v], Qd_[v]))) * inverse_size(v);
  }
  TARSUS_INLINE T gap_rotation(int v) const {
    const Vec3<T> a = get3(d_ + v), b = get3(b_ + v);
    const Vec3<T> used = mul_add(b, dot(b, a), mul_add(a, Kf_[v] - K_[v], get3(Q_ + v)));
    return norm(used - clamp_rotation(v, mul_add(a, -Kd_[v], get3(Qd_ + v)))) * inverse_size(v);
  }

  TARSUS_INLINE T sweep_axial(const Link& link, LinkState<T>& s, int v) {
    const Vec3<T> e = s.R.column_z();
    const bool hinge = turns_on_axis(link.joint);
    const T p = s.u.x - dot(s.U, s.a);
    d_[v] = p * s.Dinv.xx;
    const T gap = gap_axial(v);
    const Mask<T> wrong = gap > T(limits_.tolerance);
    if (any_lane(wrong)) {
      const T D = dot(e, hinge ? s.U.n : s.U.f) + Kf_[v];
      d_[v] = select(wrong, choose_axial(v, D, p - Q_[v]), d_[v]);
    }
    if (hinge)
      s.a.w = mul_add(e, d_[v], s.a.w);
    else
      s.a.v = mul_add(e, d_[v], s.a.v);
    return gap;
  }

  TARSUS_INLINE T sweep_ball(LinkState<T>& s, int v) {
    const Vec3<T> p = s.u - s.IA.I * s.a.w - s.IA.H * s.a.v, linear = s.Dinv * p;
    put3(d_ + v, transpose_mul(s.R, linear));
    const T gap = gap_rotation(v);
    const Mask<T> far = gap > T(R(0.1));  // below, plain pass 3 is a Newton step
    Vec3<T> x = linear;
    if (any_lane(far)) {
      x = pick(far, choose_rotation(s.IA.I, s.R, v, p - s.R * get3(Q_ + v)), linear);
      put3(d_ + v, transpose_mul(s.R, x));
    }
    s.a.w += x;
    return gap;
  }

  /// Acceleration of a ball whose torque without the drive is p, in world axes. At the limit, the drive's torque first
  /// gets the length that it would have if the inertia were a multiple of 1; one Newton step follows.
  Vec3<T> choose_rotation(const Sym3<T>& I, const Mat3<T>& axes, int v, const Vec3<T>& p) const {
    const T Kd = Kd_[v], limit = of(limits_.high, v);
    const Vec3<T> Qd = axes * get3(Qd_ + v);
    const auto with = [&](T k) {
      Sym3<T> D = I;
      D.xx += k + Kf_[v], D.yy += k + Kf_[v], D.zz += k + Kf_[v];
      return D;
    };
    const Vec3<T> inside = inverse(with(Kd)) * (p + Qd);
    Vec3<T> t = mul_add(inside, -Kd, Qd);
    const T square = dot(t, t);
    const Mask<T> outside = square > limit * limit;
    if (!any_lane(outside)) return inside;
    const T D0 = dot(t, I * t) / (square + tiny()) + Kf_[v];
    T weight = limit * D0 / (square_root(square + tiny()) * (D0 + Kd) - limit * Kd);
    t = mul_add(inverse(with(weight * Kd)) * mul_add(Qd, weight, p), -Kd, Qd);
    const T length = maximum(square_root(dot(t, t) + tiny()), limit);
    const Vec3<T> n = t * (T(R(1)) / length);
    weight = limit / length;
    const T k = weight * Kd;
    const Vec3<T> b = n * square_root(k), Q = mul_add(n, neg_mul_add(weight, dot(n, Qd), limit), Qd * weight);
    return pick(outside, inverse(minus_outer(with(k), b, b)) * (p + Q), inside);
  }

  /// The law of one DoF whose force without the drive is p; D is the inertia without the drive.
  TARSUS_INLINE T choose_axial(int v, T D, T p) const {
    const T inside = (p + Qd_[v]) / (D + Kd_[v]), t = neg_mul_add(Kd_[v], inside, Qd_[v]), u = clamp_axial(v, t);
    return select(u == t, inside, (p + u) / D);
  }

  /// Finds the regimes of the root's four limits in turn, repeated a few times.
  TARSUS_INLINE T sweep_free(const Link& link, LinkState<T>& s, int v) {
    joint_acceleration(link, s, d_);
    T gap = gap_rotation(v + 3);
    for (int k = v; k < v + 3; ++k) gap = maximum(gap, gap_axial(k));
    const Mask<T> far = gap > T(R(0.1));
    if (!any_lane(far)) return gap;
    const Vec3<T> b = s.R * get3(b_ + v + 3);
    const Sym3<T> I = minus_outer(s.IA.I, b * T(R(-1)), b), &M = s.IA.M;  // inward_tensor() subtracted b bᵀ
    const Vec3<T> torque = s.u - s.R * get3(Q_ + v + 3), force = s.u_linear - get3(Q_ + v);
    Vec3<T> ang = s.a.w, lin = s.a.v;
    for (int turn = 0; turn < 4; ++turn) {
      const Vec3<T> f = force - transpose_mul(s.IA.H, ang);
      lin.x = choose_axial(v, M.xx + Kf_[v], f.x - M.xy * lin.y - M.xz * lin.z);
      lin.y = choose_axial(v + 1, M.yy + Kf_[v + 1], f.y - M.xy * lin.x - M.yz * lin.z);
      lin.z = choose_axial(v + 2, M.zz + Kf_[v + 2], f.z - M.xz * lin.x - M.yz * lin.y);
      ang = choose_rotation(I, s.R, v + 3, torque - s.IA.H * lin);
    }
    s.a = {pick(far, ang, s.a.w), pick(far, lin, s.a.v)};
    put3(d_ + v, s.a.v), put3(d_ + v + 3, transpose_mul(s.R, s.a.w));
    return gap;
  }

  /// Computes t, u, g and the residual for x that solves the equations of the active set: Q_ without its free part, K_
  /// with it.
  void residual_after_solve(Mask<T> busy, const T* x) {
    const T old = residual_;
    residual_ = zero();
    each_limit(
        [&](int v) {
          const T used = neg_mul_add(K_[v] - Kf_[v], x[v], Q_[v]);
          demand_[v] = neg_mul_add(Kd_[v], x[v], Qd_[v]);
          const T u = clamp_axial(v, demand_[v]);
          settle_axial(v, u, used - u);
        },
        [&](int v) {
          const Vec3<T> a = get3(x + v), b = get3(b_ + v);
          const Vec3<T> used = mul_add(b, dot(b, a), mul_add(a, Kf_[v] - K_[v], get3(Q_ + v)));
          put3(demand_ + v, mul_add(a, -Kd_[v], get3(Qd_ + v)));
          const Vec3<T> u = clamp_rotation(v, get3(demand_ + v));
          settle_rotation(v, u, used - u);
        });
    residual_ = select(busy, residual_, old);
  }

  /// Stores the force u that the drive may apply, and f's gradient g.
  TARSUS_INLINE void settle_axial(int v, T u, T g) {
    applied_[v] = u, g_[v] = g;
    measure(v, absolute(g));
  }
  TARSUS_INLINE void settle_rotation(int v, const Vec3<T>& u, const Vec3<T>& g) {
    put3(applied_ + v, u), put3(g_ + v, g);
    measure(v, norm(g));
  }
  TARSUS_INLINE void measure(int v, T size) { residual_ = maximum(residual_, size * inverse_size(v)); }

  /// image = M d = -g - (K - K_free) d, given H d = -g with H = M + K - K_free.
  void multiply_by_mass() {
    each_limit([&](int v) { image_[v] = neg_mul_add(K_[v] - Kf_[v], d_[v], -g_[v]); },
               [&](int v) {
                 const Vec3<T> d = get3(d_ + v), b = get3(b_ + v);
                 put3(image_ + v, mul_add(b, dot(b, d), mul_add(d, Kf_[v] - K_[v], -get3(g_ + v))));
               });
  }

  /// f'(x + s d) along d.
  T slope(T s) const {
    T sum = zero();
    each_limit(
        [&](int v) {
          const T t = neg_mul_add(s * Kd_[v], d_[v], demand_[v]);
          sum = mul_add(mul_add(s, image_[v], g_[v]) + (applied_[v] - clamp_axial(v, t)), d_[v], sum);
        },
        [&](int v) {
          const Vec3<T> d = get3(d_ + v), t = mul_add(d, -(s * Kd_[v]), get3(demand_ + v));
          const Vec3<T> g = mul_add(get3(image_ + v), s, get3(g_ + v)) + (get3(applied_ + v) - clamp_rotation(v, t));
          sum = sum + dot(g, d);
        });
    return sum;
  }

  /// A step length along d that decreases f: 1 if f still decreases there (or has just stopped), else a point before
  /// the minimum on the line, where the slope is at most a fifth of that at the start.
  T search(Mask<T> busy) const {
    const T one = T(R(1)), start = slope(zero()), end = slope(one);
    Mask<T> open = busy & (end > start * T(R(-1e-3)));
    T s = one, low = zero(), high = one, at_low = start, at_high = end;
    for (int i = 0; i < 60 && any_lane(open); ++i) {
      const T middle = (low + high) * T(R(0.5));
      const T secant = (low * at_high - high * at_low) / (at_high - at_low);
      const Mask<T> good = (secant > low) & (secant < high);
      const T trial = i % 2 ? middle : select(good, secant, middle);
      const T value = slope(trial);
      const Mask<T> falls = value <= zero();
      low = select(open & falls, trial, low), at_low = select(open & falls, value, at_low);
      high = select(open & !falls, trial, high), at_high = select(open & !falls, value, at_high);
      s = select(open, low, s);
      open = open & (at_low < start * T(R(0.2)));
    }
    return s;
  }

  /// x += s d in the busy lanes.
  void advance(Mask<T> busy, T* x) {
    const T s = search(busy);
    const T old_residual = residual_;
    residual_ = zero();
    each_limit(
        [&](int v) {
          x[v] = select(busy, mul_add(s, d_[v], x[v]), x[v]);
          demand_[v] = neg_mul_add(Kd_[v], x[v], Qd_[v]);
          const T u = clamp_axial(v, demand_[v]), g = mul_add(s, image_[v], g_[v]) + (applied_[v] - u);
          settle_axial(v, u, select(busy, g, g_[v]));
        },
        [&](int v) {
          for (int j = v; j < v + 3; ++j) x[j] = select(busy, mul_add(s, d_[j], x[j]), x[j]);
          put3(demand_ + v, mul_add(get3(x + v), -Kd_[v], get3(Qd_ + v)));
          const Vec3<T> u = clamp_rotation(v, get3(demand_ + v)), old = get3(g_ + v);
          const Vec3<T> g = mul_add(get3(image_ + v), s, old) + (get3(applied_ + v) - u);
          settle_rotation(v, u, {select(busy, g.x, old.x), select(busy, g.y, old.y), select(busy, g.z, old.z)});
        });
    residual_ = select(busy, residual_, old_residual);
  }

  const ModelView<R>& m_;
  const DriveView<R>& drive_;
  const LimitView<R>& limits_;
  LinkState<T>* state_;
  const LimitSpace<R>& space_;
  T *demand_, *Qf_, *Kf_, *Qd_, *Kd_, *Q_, *K_, *b_, *g_, *d_, *image_, *applied_;
  T residual_;
};

template <class T>
void limited_maba_kernel(const ModelView<Real<T>>& m, const DriveView<Real<T>>& drive, const LimitView<Real<T>>& limits,
                         const LimitSpace<Real<T>>& space, LinkState<T>* state, const T* qpos, const T* qvel,
                         const T* target, const T* target_velocity, const T* tau, T* qacc) {
  LimitedMaba<T>(m, drive, limits, space, state).solve(qpos, qvel, target, target_velocity, tau, qacc);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
