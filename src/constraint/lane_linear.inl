// The linear problem of a Newton step for a pack of worlds (solver/step_newton.hpp),
//
//     (M̂ + Σ Jᵀ G J) x = Σ Jᵀ g,
//
// by passes over the tree. M̂ includes the implicit drives. Tangents of joints and of contacts with the world are
// stiffness of links. Contacts between links and rows along generalised directions are eliminated (lane_links.inl).
#pragma once

#include "constraint/lane_problem.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Each lane takes the pass that its terms need. The symmetric pass suffices unless a contact slides or is between two
/// links, or a row acts along a generalised direction; these need the pass without symmetry.
template <class T>
class LaneLinear {
 public:
  using R = Real<T>;

  /// @param h length of the step [s]
  LaneLinear(const LanePack<R>& pack, R h, LinkState<T>* state, const T* K, LaneSpace<T>& space, LaneLinks<T>& links)
      : pack_(pack), v_(pack.view), h_(h), state_(state), K_(K), s_(space), links_(links) {}

  const T* K() const { return K_; }
  /// Starts a step. The links hold what pass 1 of ABA left; most packs solve once, directly from it.
  void begin() {
    share_ = select(as_lanes(pack_.given)[0] > zero(), zero(), T(h_));
    for (int k = 0; k < v_.nv; ++k) s_.joint_force[k] = as_lanes(pack_.Q)[k] * share_;
    kept_ = false, fresh_ = true;
  }
  /// Saves the rigid inertias and the forces that pass 1 left, for further solves.
  void keep_forces() {
    if (kept_) return;
    const T* const none = nullptr;
    if (!fresh_) aba_outward(v_, state_, as_lanes(pack_.qpos), as_lanes(pack_.qvel), none);
    keep_link_forces(v_, state_, share_, s_.bias);
    kept_ = true, fresh_ = false;
  }
  /// x = v⁰ - (the velocity at which the solve began).
  void solve_free(T* x) {
    keep_forces();
    std::fill(s_.stiff, s_.stiff + v_.nlink, char(0));
    lane_solve_symmetric<T>(v_, state_, K_, {s_.bias, s_.joint_force}, s_.stiffness, s_.stiff, x);
  }
  /// Sets R of rigid forces along generalised directions in these lanes from what they feel without other terms.
  void feel_alone(Mask<T> lanes) {
    keep_forces();
    std::fill(s_.stiff, s_.stiff + v_.nlink, char(0));
    lane_factor<T>(v_, state_, K_, s_.stiffness, s_.stiff, s_.link);
    links_.feel_again(lanes);
  }
  /// Lanes that needed the pass without symmetry in this step. They keep to it, so that few packs need both passes.
  Mask<T> slid = no_lanes<T>();

  /// Solves the linear problem of the present tangents, into at.next_* and x_next.
  /// @param live lanes that need it
  /// @param near lanes that solve for the change from the present iterate, driven by its residual: in float nothing
  /// else converges. The other lanes solve from zero, so that a bad iterate's rounding errors do not persist.
  /// @param before, after f(term): called once for each term, before its tangent is used and at the end. Passes over
  /// the terms are bound by memory
  template <class Before, class After>
  void solve(Mask<T> live, Mask<T> near, const Before& before, const After& after) {
    live_ = live;
    std::fill(s_.stiff, s_.stiff + v_.nlink, char(0));
    const auto begin_with = [&](auto& t) {
      before(t);
      t.at.next_y = select(near, t.base - t.at.now_y, t.base + times(t, t.at.now_u - t.free));
    };
    const auto begin_row = [&](auto& r) { begin_with(r), add_stiffness(r, r.at.next_y); };
    const auto begin_path = [&](LaneJointRow<T>& r) {
      before(r);
      const T here = select(near, mul_add(r.metric.R, r.at.now_y, r.at.now_u), r.free);
      r.at.next_y = select(r.G > zero(), r.target - here, r.base - select(near, r.at.now_y, zero()));
    };
    const auto begin_contact = [&](auto& t, const LaneContact<T>& c) {
      const Mask<T> here = acts(t);
      if (!any_lane(here)) return;
      if (c.link < 0)
        links_.add(t, here), slid = slid | here;
      else
        add_stiffness(t, t.at.next_y), slid = slid | (here & couples(t));
    };
    links_.begin();
    s_.each_contact([&](LaneContact<T>& c) { begin_with(c), begin_contact(c, c); });
    s_.each_spin([&](LaneSpin<T>& s) {
      before(s);
      const LaneContact<T>& c = *s.contact;
      s.at.next_y = select(near, s.base - s.at.now_y, s.base + times(s, c.at.now_u.x - c.free.x, s.at.now_u - s.free));
      begin_contact(s, c);
    });
    const int on_joints = s_.nrow - s_.npath;
    LaneJointRow<T>* const paths = s_.paths();
    for (int i = 0; i < on_joints; ++i) begin_row(s_.row[i]);
    for (int i = 0; i < s_.npath; ++i) begin_path(paths[i]), slid = slid | (paths[i].live & live_);
    for (int i = 0; i < s_.nball; ++i) begin_row(s_.ball[i]);
    const Mask<T> with = live_ & slid, without = live_ & ~slid;
    if (!fresh_ || any_lane(with)) keep_forces();
    const LaneForces<T> forces = forces_unless(near);
    fresh_ = false;
    if (any_lane(without)) lane_solve_symmetric<T>(v_, state_, K_, forces, s_.stiffness, s_.stiff, s_.x_next);
    if (any_lane(with)) solve_skew(with, forces);
    const LinkMotions<T> motion(&state_[0].a, sizeof(LinkState<T>));
    const auto end_with = [&](auto& t, const auto& change) { read(t, change, near), after(t); };
    s_.each_contact([&](LaneContact<T>& c) { end_with(c, links_.along(c, motion)); });
    s_.each_spin([&](LaneSpin<T>& s) {
      const Vec3<T> change = links_.about(*s.contact, motion);
      read(s, change, times(s, links_.along(*s.contact, motion).x, change), near), after(s);
    });
    for (int i = 0; i < on_joints; ++i) end_with(s_.row[i], along_row(v_, state_, s_.row[i], s_.x_next));
    for (int i = 0; i < s_.npath; ++i) {
      LaneJointRow<T>& r = paths[i];  // its next_y is the change of the impulse
      r.at.next_y = r.at.next_y + select(near, r.at.now_y, zero());
      r.at.next_u = links_.direction(r).along(motion, s_.x_next) + select(near, r.at.now_u, r.free), after(r);
    }
    for (int i = 0; i < s_.nball; ++i) {
      const int joint = s_.ball[i].joint;
      end_with(s_.ball[i], state_[joint].R * get3(s_.x_next + v_.link[joint].qvel));
    }
    for (int k = 0; k < v_.nv; ++k) s_.x_next[k] = s_.x_next[k] + select(near, s_.x_now[k], zero());
  }

 private:
  TARSUS_INLINE static T zero() { return T(R(0)); }
  static const T* as_lanes(const R* p) { return reinterpret_cast<const T*>(p); }

  /// The step's own forces, except in lanes `near`, whose iterate includes them.
  LaneForces<T> forces_unless(Mask<T> near) {
    if (fresh_) return {nullptr, s_.joint_force, share_, true};
    if (all_lanes(near | ~live_)) return {};
    if (!any_lane(near)) return {s_.bias, s_.joint_force};
    const Force<T> none = {zero3<T>(), zero3<T>()};
    for (int i = 0; i < v_.nlink; ++i) {
      const Force<T>& f = s_.bias[i];
      s_.far_bias[i] = {select<T>(near, none.n, f.n), select<T>(near, none.f, f.f)};
    }
    for (int k = 0; k < v_.nv; ++k) s_.far_joint_force[k] = select(near, zero(), s_.joint_force[k]);
    return {s_.far_bias, s_.far_joint_force};
  }
  template <class... X>
  TARSUS_INLINE static Mask<T> some(const X&... x) {
    return ~((x == zero()) & ...);
  }
  /// Lanes in which a contact has a tangent, or a force that the linear problem must add.
  Mask<T> acts(const LaneContact<T>& c) const {
    const Vec3<T>& f = c.at.next_y;
    return some(c.Gnn, c.G11, c.G22, f.x, f.y, f.z) & live_;
  }
  Mask<T> acts(const LaneSpin<T>& s) const {
    const Vec3<T>& f = s.at.next_y;
    return some(s.Gss, s.Gsn, s.G11, s.G22, f.x, f.y, f.z) & live_;
  }
  /// Lanes in which the tangent depends on the normal force, and is not symmetric.
  static Mask<T> couples(const LaneContact<T>& c) { return some(c.G1n, c.G2n); }
  static Mask<T> couples(const LaneSpin<T>& s) { return some(s.Gsn, s.G1n, s.G2n); }
  LaneStiffness<T>& stiffness(int link) {
    LaneStiffness<T>& stiffness = s_.stiffness[link];
    if (!s_.stiff[link]) {
      s_.stiff[link] = 1;
      const Vec3<T> o = zero3<T>();
      const Mat3<T> none = zero33<T>();
      stiffness = {{none, none, none, none}, {o, o}, {zero(), zero(), zero(), zero(), zero(), zero()}, o};
    }
    return stiffness;
  }
  /// Adds the contact stiffness C = Σ G_ij a_i a_jᵀ at the point, and the force f there.
  void add_stiffness(const LaneContact<T>& c, const Vec3<T>& f) {
    const Vec3<T> g1 = c.n * c.G1n + c.t1 * c.G11 + c.t2 * c.G12, g2 = c.n * c.G2n + c.t1 * c.G12 + c.t2 * c.G22;
    const Vec3<T> gn = c.n * c.Gnn;
    const auto row = [&](T n, T t1, T t2) { return mul_add(gn, n, mul_add(g1, t1, g2 * t2)); };
    const Mat3<T> C = from_rows(row(c.n.x, c.t1.x, c.t2.x), row(c.n.y, c.t1.y, c.t2.y), row(c.n.z, c.t1.z, c.t2.z));
    const Mat3<T> rC = add_cross_times(zero33<T>(), c.arm_a, C);  // [r] C
    const Vec3<T> back = -c.arm_a;                                // v + w × r = v - [r] w
    LaneStiffness<T>& l = stiffness(c.link);
    l.B.fv = l.B.fv + C;
    l.B.nv = l.B.nv + rC;
    l.B.fw = add_times_cross(l.B.fw, C, back);
    l.B.nw = add_times_cross(l.B.nw, rC, back);
    const Vec3<T> force = c.n * f.x + c.t1 * f.y + c.t2 * f.z;
    l.f.f += force;
    l.f.n += cross(c.arm_a, force);
  }
  /// Adds Σ G_ij a_i a_jᵀ against the link's rotation, and Σ G_in a_i nᵀ: moments from the point's motion.
  void add_stiffness(const LaneSpin<T>& s, const Vec3<T>& f) {
    const LaneContact<T>& c = *s.contact;
    const Vec3<T> gs = c.n * s.Gss, g1 = c.t1 * s.G11 + c.t2 * s.G12, g2 = c.t1 * s.G12 + c.t2 * s.G22;
    const Vec3<T> by_normal = c.n * s.Gsn + c.t1 * s.G1n + c.t2 * s.G2n;
    LaneStiffness<T>& l = stiffness(c.link);
    Mat3<T>& nw = l.B.nw;
    nw = minus_outer(minus_outer(minus_outer(nw, -gs, c.n), -g1, c.t1), -g2, c.t2);
    nw = minus_outer(nw, -by_normal, cross(c.arm_a, c.n));
    l.B.nv = minus_outer(l.B.nv, -by_normal, c.n);
    l.f.n += c.n * f.x + c.t1 * f.y + c.t2 * f.z;
  }
  void add_stiffness(const LaneJointRow<T>& r, T f) {
    LaneStiffness<T>& l = stiffness(r.joint);
    if (r.axial) {
      l.joint.xx += r.G * r.e.x * r.e.x, l.joint_force.x += f * r.e.x;
      return;
    }
    const Vec3<T> ge = r.e * r.G;
    l.joint += Sym3<T>{ge.x * r.e.x, ge.x * r.e.y, ge.x * r.e.z, ge.y * r.e.y, ge.y * r.e.z, ge.z * r.e.z};
    l.joint_force += r.e * f;
  }
  void add_stiffness(const LaneBallRow<T>& r, const Vec3<T>& f) {
    LaneStiffness<T>& l = stiffness(r.joint);
    l.joint += r.G;
    l.joint_force += f;
  }

  template <class Term, class X>
  TARSUS_INLINE void read(Term& t, const X& change, Mask<T> near) {
    read(t, change, times(t, change), near);
  }
  /// @param less decrease of the impulse by the change
  template <class Term, class X>
  TARSUS_INLINE void read(Term& t, const X& change, const X& less, Mask<T> near) {
    const X y = t.at.next_y - less;
    t.at.next_y = select(near, t.at.now_y + y, y);
    t.at.next_u = change + select(near, t.at.now_u, t.free);
  }

  void solve_skew(Mask<T> lanes, const LaneForces<T>& forces) {
    lane_factor<T>(v_, state_, K_, s_.stiffness, s_.stiff, s_.link);
    for (int i = 0; i < v_.nlink; ++i) {
      s_.force[i] = forces.bias ? forces.bias[i] : Force<T>{zero3<T>(), zero3<T>()};
      if (s_.stiff[i]) s_.force[i] = s_.force[i] - s_.stiffness[i].f;
    }
    Motion<T>* motion = s_.skew_motion;
    T* x = s_.x_other;
    lane_substitute<1, T>(v_, state_, s_.link, s_.force, forces.joint, s_.stiffness, s_.stiff, nullptr, nullptr,
                          s_.left, motion, x);
    if (links_.any()) links_.solve(motion, x);
    for (int k = 0; k < v_.nv; ++k) s_.x_next[k] = select(lanes, x[k], s_.x_next[k]);
    for (int i = 0; i < v_.nlink; ++i) {
      Motion<T>& a = state_[i].a;
      a = {select<T>(lanes, motion[i].w, a.w), select<T>(lanes, motion[i].v, a.v)};
    }
  }

  const LanePack<R>& pack_;
  const ModelView<R>& v_;
  R h_;
  LinkState<T>* state_;
  const T* K_;
  LaneSpace<T>& s_;
  LaneLinks<T>& links_;
  Mask<T> live_ = no_lanes<T>();
  T share_ = zero();    ///< of the forces that pass 1 left: h, or zero where v⁰ is given
  bool kept_ = true;    ///< Ic, bias and joint_force are saved
  bool fresh_ = false;  ///< the links are as pass 1 left them
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
