// MABA with force limits that hold at the end of the step: the minimiser x = q̈ of the convex function
//   f(x) = ½ xᵀ M x + (C - Q)ᵀ x + Σ ψ_i(x_i),   ψ_i' = -u_i(x_i) = -clamp(t_i(x_i)),   t_i = drive_force_i - drive_inertia_i x_i
// with M, C and Q without the drives (springs, damping, armature inside). Hinges and slides, and a free joint's three translations, clamp each
// DoF to [low, high]; a ball's three DoFs and a free joint's rotations scale t back to the length `high`.
//
// Semismooth Newton. Each joint is on a piece where u_i = Q_i - K_i x_i: inside its limit K_i = drive_inertia_i; at its limit
// K_i = 0 and Q_i the limit, but for a rotation K_i = k (τ/|t|)(1 - n nᵀ), n = t/|t|: k' 1 - b bᵀ, `rank_one` holding b. A round is
// passes 2 and 3 of ABA with these K. The first solves for x on the last step's pieces. If its x lies on those pieces it is the
// answer, at the cost of plain MABA. Otherwise f's gradient at x is g_i = (Q_i - K_i x_i) - u_i(x_i), with no RNEA, and later rounds
// solve H d = -g; since H = M + K, also M d = -g - K d comes free, so that the line search and the next gradient cost O(n)
// multiplications and nothing of the tree.  [theory: convex, hence one minimiser; the search makes f fall, hence it is found]
#pragma once

#include "control/drive.inl"
#include "dynamics/aba.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Some lane's mask is set.
TARSUS_INLINE bool any(bool mask) { return mask; }
template <class M>
TARSUS_INLINE bool any(const M& mask) {
  bool found = false;
  for (std::size_t i = 0; i < sizeof(M) / sizeof(mask[0]); ++i) found = found || mask[i] != 0;
  return found;
}

/// K = k 1 - b bᵀ of a joint's rotation, b in the joint's axes, in world axes.
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

  LimitedMaba(const ModelView<R>& model, const DriveView<R>& drive, const LimitView<R>& limits, const LimitSpace<R>& space,
              LinkState<T>* state)
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
    linearise();
    for (int k = 0; k < m_.nv; ++k) Q_[k] += Qf_[k];
    passes(Q_, x);
    for (int k = 0; k < m_.nv; ++k) Q_[k] = Q_[k] - Qf_[k];
    residual_after_solve(x);
    T rounds = T(R(1));
    for (int round = 1; round < limits_.max_rounds; ++round) {
      const Mask<T> busy = residual_ > T(limits_.tolerance);
      if (!any(busy)) break;
      rounds = select(busy, rounds + T(R(1)), rounds);
      linearise();
      restore_rigid();
      for (int k = 0; k < m_.nv; ++k) image_[k] = -g_[k];
      passes(image_, d_);
      multiply_by_mass();
      advance(busy, x);
    }
    for (int k = 0; k < m_.nv; ++k) Q_[k] += Qf_[k];
    *reinterpret_cast<T*>(space_.rounds) = rounds;
    *reinterpret_cast<T*>(space_.residual) = residual_;
  }

 private:
  static T zero() { return T(R(0)); }
  static T tiny() { return T(sizeof(R) == 8 ? R(1e-300) : R(1e-36)); }

  /// Calls axial(dof) for each DoF with limits of its own and rotation(dof) for each three that share one.
  template <class A, class B>
  TARSUS_INLINE void each_limit(A axial, B rotation) const {
    for (int i = 0; i < m_.nlink; ++i) {
      const Link& link = m_.link[i];
      const int v = link.qvel;
      if (link.joint == JointType::free) axial(v), axial(v + 1), axial(v + 2), rotation(v + 3);
      else if (link.joint == JointType::ball) rotation(v);
      else axial(v);
    }
  }

  /// Q and K without the drives, and the drives' own.
  void terms(const T* qpos, const T* qvel, const T* target, const T* target_velocity, const T* tau) {
    DriveView<R> none = drive_;
    none.kp = nullptr;
    drive_terms_kernel<T>(m_, none, qpos, qvel, target, target_velocity, tau, Qf_, Kf_);
    for (int k = 0; k < m_.nv; ++k) Qd_[k] = Kd_[k] = zero();
    for (int i = 0; i < m_.nlink; ++i) {
      const Link& link = m_.link[i];
      const int p = link.qpos, v = link.qvel;
      pull(link.joint, qpos + p, qvel + v, target + p, target_velocity ? target_velocity + v : nullptr, drive_.kp + v, drive_.kd + v,
           T(drive_.dt), Qd_ + v);
      stiffen(link.joint, drive_.kp + v, drive_.kd + v, drive_.dt, drive_.stiff, Kd_ + v);
    }
  }

  /// The links' own inertias, which pass 2 overwrites, wait in Ic.
  void keep_rigid() {
    for (int i = 0; i < m_.nlink; ++i) {
      const ArticulatedInertia<T>& A = state_[i].IA;
      state_[i].Ic = {A.M.xx, {A.H.zy, A.H.xz, A.H.yx}, A.I};
    }
  }
  /// Joint damping c = α h ω² D against the energy that explicit velocity-product forces bring: see Drives::spin_damping. D is the
  /// composite inertia that the joint carries, ω the fastest spin in it; for a free joint the fastest relative to its own body, so
  /// that rigid rotation is left alone.
  void damp_spin(const T* qvel) {
    RigidInertia<T>* composite = reinterpret_cast<RigidInertia<T>*>(space_.composite);
    T *spin = reinterpret_cast<T*>(space_.composite) + 10 * m_.nlink, *relative = spin + m_.nlink;
    for (int i = 0; i < m_.nlink; ++i) {
      LinkState<T>& s = state_[i];
      s.u = m_.link[i].parent < 0 ? s.v.w : state_[m_.link[i].parent].u;  // the root's spin, where pass 2 will put something else
      const Vec3<T> w = s.v.w, dw = w - s.u;
      composite[i] = state_[i].Ic;
      spin[i] = dot(w, w), relative[i] = dot(dw, dw);
    }
    const R scale = limits_.spin_damping * drive_.dt;
    for (int i = m_.nlink - 1; i >= 0; --i) {
      const Link& link = m_.link[i];
      const bool free = link.joint == JointType::free;
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
    if (joint == JointType::slide) return I.mass;
    if (joint == JointType::hinge) return dot(e, I.I * e);
    return (I.I.xx + I.I.yy + I.I.zz) * T(Real<T>(0.5));  // no axis has more than half the trace
  }
  void restore_rigid() {
    for (int i = 0; i < m_.nlink; ++i) {
      state_[i].IA = articulated(state_[i].Ic);
      state_[i].pA = {zero3<T>(), zero3<T>()};
    }
  }

  /// The clamped force, t already being there; rotations by their length.
  TARSUS_INLINE T clamp_axial(int v, T t) const { return clamp(t, T(limits_.low[v]), T(limits_.high[v])); }
  TARSUS_INLINE Vec3<T> clamp_rotation(int v, const Vec3<T>& t) const {
    const T limit = T(limits_.high[v]), square = dot(t, t);
    return t * select(square > limit * limit, limit / square_root(square + tiny()), T(R(1)));
  }

  /// Q, K and b of the piece that `demand` lies on; K with the free part.
  void linearise() {
    each_limit(
        [&](int v) {
          const T t = demand_[v], u = clamp_axial(v, t);
          const Mask<T> inside = u == t;
          Q_[v] = select(inside, Qd_[v], u);
          K_[v] = Kf_[v] + select(inside, Kd_[v], zero());
          b_[v] = zero();
        },
        [&](int v) {
          const Vec3<T> t = get3(demand_ + v), Qd = get3(Qd_ + v);
          const T limit = T(limits_.high[v]), square = dot(t, t), length = square_root(square + tiny());
          const Mask<T> outside = square > limit * limit;
          const T weight = select(outside, limit / length, T(R(1)));
          const Vec3<T> n = t * (T(R(1)) / length);
          // limit n + weight (1 - n nᵀ) Qd
          const T along = select(outside, neg_mul_add(weight, dot(n, Qd), limit), zero());
          const Vec3<T> Q = mul_add(n, along, Qd * weight);
          put3(Q_ + v, Q);
          const T k = weight * Kd_[v];
          for (int j = 0; j < 3; ++j) K_[v + j] = Kf_[v + j] + k;
          put3(b_ + v, n * select(outside, square_root(k), zero()));
        });
  }

  /// Tensors wherever a rotation has a limit, reached or not: the same roundings for a lane whatever its neighbours do.
  void passes(const T* Q, T* x) {
    if (limits_.rotations) inward_tensor(Q);
    else aba_inward(m_, state_, Q, K_);
    aba_accelerate(m_, state_, x);
  }

  void inward_tensor(const T* Q) {
    for (int i = m_.nlink - 1; i >= 0; --i) {
      const Link& link = m_.link[i];
      const int v = link.qvel;
      LinkState<T>& s = state_[i];
      if (link.joint == JointType::ball) {
        reduce_ball_tensor(s, link.parent >= 0 ? &state_[link.parent] : nullptr, Q + v, rotational_inertia(s.R, K_[v], b_ + v));
        continue;
      }
      if (link.joint == JointType::free) {  // nothing reads IA of the root again
        s.IA.I = s.IA.I + rotational_inertia(s.R, zero(), b_ + v + 3);
      }
      reduce(link, state_, i, Q + v, K_ + v);
    }
  }

  /// t, u, g and the residual where x solves the equations of the piece itself: Q_ without its free part, K_ with it.
  void residual_after_solve(const T* x) {
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
  }

  /// The force u that the drive may apply, and f's gradient g.
  TARSUS_INLINE void settle_axial(int v, T u, T g) {
    applied_[v] = u, g_[v] = g;
    measure(v, absolute(g));
  }
  TARSUS_INLINE void settle_rotation(int v, const Vec3<T>& u, const Vec3<T>& g) {
    put3(applied_ + v, u), put3(g_ + v, g);
    measure(v, norm(g));
  }
  TARSUS_INLINE void measure(int v, T size) { residual_ = maximum(residual_, size * T(limits_.inverse_size[v])); }

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

  /// A step along d that makes f fall: 1 where f still falls there (or has just stopped to), else a point short of the
  /// minimum on the line by at most a fifth of the slope at the start.
  T search(Mask<T> busy) const {
    const T one = T(R(1)), start = slope(zero()), end = slope(one);
    Mask<T> open = busy & (end > start * T(R(-1e-3)));
    T s = one, low = zero(), high = one, at_low = start, at_high = end;
    for (int i = 0; i < 60 && any(open); ++i) {
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

  /// x += s d in the lanes that are busy.
  void advance(Mask<T> busy, T* x) {
    const T s = search(busy);
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
  }

  const ModelView<R>& m_;
  const DriveView<R>& drive_;
  const LimitView<R>& limits_;
  LinkState<T>* state_;
  const LimitSpace<R>& space_;
  T *demand_, *Qf_, *Kf_, *Qd_, *Kd_, *Q_, *K_, *b_, *g_, *d_, *image_, *applied_;
  T residual_;
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
