// The terms of a pack's step, R and b of their rows at its start, and afterwards the warm-start cache and the report.
// The laws are those of contact_terms.inl, limit_terms.inl, friction_terms.inl and path_terms.inl, written for lanes.
#pragma once

#include <algorithm>

#include "constraint/carried_bodies.inl"
#include "constraint/lane_links.inl"
#include "constraint/term_constants.hpp"
#include "tarsus/constraint/half_turn.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Velocity along a row on a joint.
template <class T>
T along_row(const ModelView<Real<T>>& m, const LinkState<T>* state, const LaneJointRow<T>& r, const T* velocity) {
  const T* v = velocity + m.link[r.joint].qvel;
  return r.axial ? r.e.x * v[0] : dot(r.e, state[r.joint].R * get3(v));
}

/// Result of a pack's solve.
template <class T>
struct LaneAnswer {
  T iterations, residual;
  Mask<T> met;    ///< the residual is within the tolerance
  Mask<T> acted;  ///< some iterate was finite
};

/// Terms of one pack over one step: build() before the solve, end() after it.
template <class T>
class LaneProblem {
 public:
  static constexpr int kLanes = kWidth<T>;
  using R = Real<T>;

  LaneProblem(const LanePack<R>& pack, const LaneModel<R>& model, const LaneStep<R>& step, LinkState<T>* state,
              LaneSpace<T>& space, LaneMemory<T>& memory, LaneLinks<T>& links)
      : pack_(pack), v_(pack.view), m_(model), step_(step), state_(state), s_(space), memory_(memory), links_(links) {}

  /// Builds all terms from the detected contacts and the state.
  void build() {
    const T *qvel = as_lanes(pack_.qvel), *velocity = as_lanes(pack_.velocity);
    find_velocities(velocity);
    const Mask<T> many = s_.between > T(R(kMostBetween<R>)), full = s_.overflow != Bits<T>{};
    crowded_ = many | full;
    find_turns(qvel);
    s_.every_contact([&](LaneContact<T>& c) { build(c); });
    s_.nrow = s_.nball = 0;
    add_limits(velocity), add_losses(qvel, velocity), add_drives(qvel, velocity, as_lanes(pack_.push));
    add_paths(velocity);
  }
  /// Lanes with so many contacts between links that the scalar path, which eliminates them as a graph, is faster.
  Mask<T> crowded() const { return crowded_; }
  /// Adds rows for limits without one that v⁺ passes in lanes `where`.
  /// @param change of the velocity since the start of the solve  @return the lanes with new rows
  Mask<T> join_limits(const T* change, Mask<T> where) {
    Mask<T> late = no_lanes<T>();
    if (m_.nlimit == 0) return late;
    T* const end = s_.x_other;
    const T* velocity = as_lanes(pack_.velocity);
    for (int k = 0; k < v_.nv; ++k) end[k] = velocity[k] + change[k];
    each_limit(
        end, end, where, T(R(0)), [&](int joint, int place, const Vec3<T>& e, T gap, T speed, T ahead, Mask<T> of) {
          const T last = mul_add(ahead, T(step_.h), gap);
          of = of & ((gap <= zero()) | (last < zero()));
          if (resolved_law(place)) of = of & (gap <= zero());
          if (!any_lane(of)) return;
          const auto first_from = [&](int at) {
            return std::find_if(s_.row, s_.row + s_.nrow, [&](const LaneJointRow<T>& r) { return r.place >= at; });
          };
          const auto join = [&](int at, Mask<T> lanes) {
            LaneJointRow<T>* const there = first_from(at);
            const bool known = there < s_.row + s_.nrow && there->place == at;  // in some lane
            const Mask<T> had = known ? lanes & there->live : no_lanes<T>();
            lanes = lanes & ~had;
            if (!any_lane(lanes)) return had;
            LaneJointRow<T>& r = add_limit(joint, at, e, gap, speed, ahead, lanes);
            lanes = lanes & (ahead < r.target);
            r.live = lanes, r.upper = select(lanes, r.upper, zero()), r.metric.set(r.metric.own_R, lanes);
            r.at.best_u = ahead, r.at.best_y = zero(), r.free = along_row(v_, state_, r, velocity);
            late = late | lanes;
            if (known || !any_lane(lanes)) {
              if (known) there->take(lanes, r);
              --s_.nrow;
            } else {
              std::rotate(there, &r, &r + 1);
            }
            return had;
          };
          const Mask<T> had = join(place, of);
          if (!turns_freely(v_.link[joint].joint)) return;
          // A second row, if the rotation has another end that it passes despite the first row.
          const Mask<T> elsewhere = had & (last < minimum(gap, zero()) - T(R(kLimitReach)));
          if (any_lane(elsewhere)) join(place + 1, elsewhere);
        });
    return late;
  }
  /// Lets what spins respond to the change x of the velocities: changes v⁰, and J v⁰ and J v⁺ of all rows with it.
  /// @param where lanes in which the terms are solved  @param first the step's first response  @return changed lanes
  Mask<T> respond(const T* x, Mask<T> where, bool first) {
    const LaneResponse<T>& r = s_.response;
    T* velocity = as_lanes(pack_.velocity);
    for (int k = 0; k < v_.nv; ++k) r.by[k] = velocity[k], r.next[k] = velocity[k] + x[k];
    if (first) std::fill_n(r.change, v_.nv, zero());
    const T known = select(where, as_lanes(pack_.given)[0], zero());
    T moved;
    spin_response_kernel<T>(v_, r.state, r.link, m_.spins, step_.h, as_lanes(pack_.qpos), as_lanes(pack_.qvel),
                            velocity, r.next, as_lanes(pack_.K), &known, r.scratch, r.change, &moved);
    const Mask<T> changed = moved > zero();
    if (!any_lane(changed)) return changed;
    for (int k = 0; k < v_.nv; ++k) r.by[k] = velocity[k] - r.by[k];
    link_motions<T>(v_, state_, r.by, [&](int i) -> Motion<T>& { return s_.free[i]; });
    const LinkMotions<T> motion = motions_of(s_.free);
    const auto add = [](auto& term, const auto& by) {
      term.free = term.free + by, term.at.best_u = term.at.best_u + by;
    };
    s_.every_contact([&](LaneContact<T>& c) { add(c, links_.along(c, motion)); });
    for (int i = 0; i < s_.nspin; ++i) add(s_.spin[i], links_.about(*s_.spin[i].contact, motion));
    for (int i = 0; i < s_.nrow; ++i) {
      LaneJointRow<T>& row = s_.row[i];
      add(row, row.path >= 0 ? links_.direction(row).along(motion, r.by) : along_row(v_, state_, row, r.by));
    }
    for (int i = 0; i < s_.nball; ++i) {
      const int joint = s_.ball[i].joint;
      add(s_.ball[i], state_[joint].R * get3(r.by + v_.link[joint].qvel));
    }
    return changed;
  }
  /// Whether there are bilateral rows.
  bool holds() const {
    return std::any_of(s_.row, s_.row + s_.nrow, [](const LaneJointRow<T>& row) { return row.bilateral(); });
  }
  /// Turns the velocities into v⁺, and writes the warm-start cache and the report.
  void end(const LaneAnswer<T>& answer) {
    T* velocity = as_lanes(pack_.velocity);
    for (int k = 0; k < v_.nv; ++k) velocity[k] = velocity[k] + s_.x_best[k];
    store_warm_start(answer.acted);
    write(pack_.report, answer);
    T* force = as_lanes(pack_.drive_force);
    for (int k = 0; k < v_.nv; ++k) force[k] = zero();
    drive_forces(force);
  }

 private:
  static const T* as_lanes(const R* p) { return reinterpret_cast<const T*>(p); }
  static T* as_lanes(R* p) { return reinterpret_cast<T*>(p); }
  TARSUS_INLINE static T zero() { return T(R(0)); }
  TARSUS_INLINE static T one() { return T(R(1)); }

  /// Velocities of the links at the start of the solve, if it starts from v⁰ and not from the step's start in some
  /// lane.
  void find_velocities(const T* velocity) {
    const Mask<T> known = as_lanes(pack_.given)[0] > zero();
    begins_at_v0_ = any_lane(known);
    for (int i = 0; begins_at_v0_ && i < v_.nlink; ++i) {
      const LinkConstants<R>& link = v_.link[i];
      const Motion<T> below = link.parent >= 0 ? shift(s_.free[link.parent], state_[i].r) : world_velocity<T>();
      const Motion<T> there = below + joint_motion(link, state_[i].R, velocity + link.qvel), &here = state_[i].v;
      s_.free[i] = {select<T>(known, there.w, here.w), select<T>(known, there.v, here.v)};
    }
  }
  /// Accelerations at q̈ = 0 for carry(), if there are several trees and a link turns in some lane.
  void find_turns(const T* qvel) {
    if (v_.nlink == 0 || v_.link[v_.nlink - 1].root == 0) return;
    turns_ = turns(state_, v_.nlink, step_.h);
    if (any_lane(turns_)) bias_accelerations(v_, state_, qvel, s_.skew_motion);
  }
  /// Takes the rows of friction of a contact between links half a step ahead, where one carries the other.
  void carry(LaneContact<T>& c) {
    const Mask<T> where = c.live & turns_;
    if (!any_lane(where)) return;
    T turn = zero();
    Mask<T> alone = no_lanes<T>(), floating = no_lanes<T>(), grounded = no_lanes<T>();
    Vec3<T> apart = zero3<T>(), spin = zero3<T>();
    links_.each_touch(c, [&](int link, bool second, Mask<T> lanes) {
      const Motion<T>& v = state_[link].v;
      const Vec3<T> a = point_acceleration(v, s_.skew_motion[link], second ? c.arm_b : c.arm_a);
      turn = select(lanes, maximum(turn, dot(v.w, v.w)), turn);
      apart = select<T>(lanes, second ? apart - a : apart + a, apart);
      spin = select<T>(lanes, second ? spin - v.w : spin + v.w, spin);
      if (v_.link[link].alone) alone = alone | lanes;
      Mask<T>& kind = floats(v_, link) ? floating : grounded;
      kind = kind | lanes;
    });
    const Mask<T> carried = where & (alone | (floating & grounded));
    const T alike = select(grounded, T(R(kAlikeOnGround)), T(R(kAlikeAfloat)));
    const T share = carried_share(dot(spin, spin), turn, alike);
    const T by = T(R(-0.5) * step_.h) * share * c.tangent.iR;  // b / R, as part of c
    c.centre1 = select(carried, mul_add(by, dot(c.t1, apart), c.centre1), c.centre1);
    c.centre2 = select(carried, mul_add(by, dot(c.t2, apart), c.centre2), c.centre2);
  }
  LinkMotions<T> at_start() const { return {&state_[0].v, sizeof(LinkState<T>)}; }
  T compliance(T own, T inverse_mass) const {
    const T relative = inverse_mass * T(step_.relative_compliance * R(4 / (1 + 4 * kDampingSteps)));
    return maximum(select(own > zero(), own, relative), inverse_mass * T(R(kLeastCompliance<R>)));
  }
  enum Reference { linear, angular, joint, weight, joint_weight };  ///< the numbers of ReferenceMass
  T reference_mass(int link, Reference which) const {
    const int place = kReferenceNumbers * link + which;
    return pack_.own_mass ? as_lanes(pack_.own_mass)[place] : T(m_.mass[place]);
  }
  /// The sum over a contact's links.
  T reference_mass(const LaneContact<T>& c, Reference which) const {
    if (c.link >= 0) return reference_mass(c.link, which);
    T of_a = zero(), of_b = zero();
    links_.each_touch(c, [&](int link, bool second, Mask<T> lanes) {
      T& inverse = second ? of_b : of_a;
      inverse = select(lanes, reference_mass(link, which), inverse);
    });
    return of_a + of_b;
  }
  bool carries(int link, int other) const {
    while (other > link) other = v_.link[other].parent;
    return other == link;
  }
  /// Lanes in which this link carries one side of a contact but not the other.
  Mask<T> carries_a_side(int link, const LaneContact<T>& c) const {
    if (c.link >= 0) return carries(link, c.link) ? zero() <= zero() : no_lanes<T>();
    Mask<T> sides = no_lanes<T>();
    links_.each_touch(c, [&](int of, bool, Mask<T> lanes) {
      if (carries(link, of)) sides = (sides | lanes) & ~(sides & lanes);
    });
    return sides;
  }
  /// As in contact_terms.inl.
  T parting_speed(const LaneContact<T>& c) const {
    T sum = zero();
    for (int i = v_.nlink - 1; i >= 0; --i) {
      const Mask<T> parts = carries_a_side(i, c);
      if (!any_lane(parts)) continue;
      const JointType joint = v_.link[i].joint;
      const Vec3<T> turn = cross(c.point - state_[i].o, c.n), axis = state_[i].R.column_z();
      const T speed = moves_freely(joint)     ? T(R(kUnbounded))
                      : turns_on_axis(joint)  ? absolute(dot(axis, turn))
                      : slides_on_axis(joint) ? absolute(dot(axis, c.n))
                                              : square_root(dot(turn, turn));
      sum = select(parts, sum + speed, sum);
    }
    return sum;
  }
  /// Recovery speed of a deep contact: LinkContact::fastest of StepTerms::slow_down_deep_contacts().
  T way_back(const LaneContact<T>& c) const {
    const auto time = [&](double usual) { return select(c.damping_time > zero(), c.damping_time, T(R(usual))); };
    const T slow = T(R(kSlowReturn)), usual = T(R(kContactReturn));
    const Mask<T> deep =
        c.live & (c.gap < -(time(kDampingSteps * step_.h) * slow)) & (c.compliance == zero()) & (c.share == zero());
    if (!any_lane(deep)) return usual;
    const T most = minimum(parting_speed(c) * T(R(kContactTurn)), -c.gap / time(kReturnTime));
    return select(deep, clamp(most, slow, usual), usual);
  }
  void build(LaneContact<T>& c) {
    const Vec3<T>& n = c.n;  // [Duff et al. 2017]
    const T sign = select(n.z < zero(), -one(), one()), a = -one() / (sign + n.z), b = n.x * n.y * a;
    c.t1 = {mul_add(sign * n.x, n.x * a, one()), sign * b, -(sign * n.x)};
    c.t2 = {b, mul_add(n.y, n.y * a, sign), -n.y};
    if (c.link >= 0) {
      c.arm_a = c.point - state_[c.link].o;
    } else {
      links_.find_touches(c);
      c.arm_a = c.arm_b = zero3<T>();
      links_.each_touch(c, [&](int link, bool second, Mask<T> lanes) {
        Vec3<T>& arm = second ? c.arm_b : c.arm_a;
        arm = select<T>(lanes, c.point - state_[link].o, arm);
      });
    }
    const T mass = reference_mass(c, linear), by_weight = reference_mass(c, weight);
    const Vec3<T> speed = links_.along(c, at_start());
    c.free = begins_at_v0_ ? links_.along(c, motions_of(s_.free)) : speed;
    const LaneSpook<T> spook(c.compliance, c.damping_time, c.gap, speed.x, step_.h, way_back(c),
                             c.relative_compliance * by_weight, step_.restitution, step_.restitution_threshold);
    const Mask<T> own_law = ~(c.share == zero());
    const T pull = neg_mul_add(c.damping_time, c.gap, c.share * speed.x);
    c.target = select(own_law, pull, spook.target), c.centre1 = c.centre2 = zero();
    c.normal.inverse_mass = c.tangent.inverse_mass = mass;
    c.normal.own_R = compliance(select(own_law, c.relative_compliance * by_weight, spook.own_R), mass);
    c.tangent.own_R = compliance(zero(), mass);
    c.set(c.normal.own_R, c.tangent.own_R, c.live);
    c.at.now_y = before_projection(c, speed);
    c.no_tangent();
    if (c.spin >= 0) build(s_.spin[c.spin]);
    find_warm_start(c);
    if (c.link < 0) carry(c);
  }
  void build(LaneSpin<T>& s) {
    const LaneContact<T>& c = *s.contact;
    const T inertia = reference_mass(c, angular);
    const Vec3<T> spin = links_.about(c, at_start());
    s.free = begins_at_v0_ ? links_.about(c, motions_of(s_.free)) : spin, s.centre = zero3<T>();
    s.metric.inverse_mass = inertia, s.metric.own_R = compliance(zero(), inertia);
    s.metric.set(s.metric.own_R, s.live);
    s.at.now_y = before_projection(s, spin);
    s.no_tangent();
  }

  /// Looks up the same contact of the last step, lane by lane. The contacts of both steps mostly have the same order.
  void find_warm_start(LaneContact<T>& c) {
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
      if (c.spin >= 0) find_warm_start(s_.spin[c.spin], memory_.spin[&old - memory_.contact], same);
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

  void find_warm_start(LaneSpin<T>& s, const LaneSpinMemory<T>& old, Mask<T> same) {
    const LaneContact<T>& c = *s.contact;
    const auto here = [&](T torsion, const Vec3<T>& x) { return Vec3<T>{torsion, dot(c.t1, x), dot(c.t2, x)}; };
    same = same & s.live;
    s.centre = select<T>(same, here(old.torsion, old.rolling), s.centre);
    const Vec3<T> over = here(old.torsion_excess, old.rolling_excess);
    s.at.now_y = select<T>(same, s.centre + over * s.metric.iR, s.at.now_y);
  }

  LaneJointRow<T>& add_row(typename LaneJointRow<T>::Kind kind, int joint, int place, Mask<T> live) {
    LaneJointRow<T>& r = s_.row[s_.nrow++];
    r.kind = kind, r.joint = joint, r.place = place, r.path = -1, r.live = live;
    r.axial = joint >= 0 && !turns_freely(v_.link[joint].joint);
    r.centre = zero(), r.no_tangent();
    return r;
  }
  /// Mass that a joint feels, with its implicit inertia.
  T joint_mass(int joint) const {
    return maximum(reference_mass(joint, Reference::joint) + as_lanes(pack_.K)[v_.link[joint].qvel], T(R(1e-30)));
  }
  T inverse_mass(int joint) const { return one() / joint_mass(joint); }
  /// Initial impulse of a row: that of the last step, or `impulse`.
  void start(LaneJointRow<T>& r, T impulse, bool sticks) {
    const LaneJointMemory<T>& old = memory_.joint[r.place];
    const Mask<T> known = (old.known > zero()) & r.live;
    r.at.now_y = select(known, mul_add(old.excess, r.metric.iR, old.impulse), impulse);
    if (sticks) r.centre = select(known, old.impulse, r.centre);
  }

  /// Adds the row of a limit in lanes `where`.
  /// @param speed, free velocities along it at the step's start and at the start of the solve
  LaneJointRow<T>& add_limit(int joint, int place, const Vec3<T>& e, T gap, T speed, T free, Mask<T> where) {
    LaneJointRow<T>& r = add_row(LaneJointRow<T>::Kind::limit, joint, place, where);
    r.e = e;
    const T w = inverse_mass(joint);
    const LaneSpook<T> spook(T(step_.limit_compliance), T(step_.limit_damping_time), gap, speed, step_.h,
                             T(R(kLimitReturn)));
    T own_R = spook.own_R;
    r.free = free, r.target = spook.target;
    if (const LaneSolverLaw<R>* law = resolved_law(place)) {
      const LaneSolverRow<T> row(*law, gap);
      own_R = row.relative_compliance * reference_mass(joint, Reference::joint_weight),
      r.target = neg_mul_add(row.pull, gap, row.share * speed);
    }
    r.lower = zero(), r.upper = select(r.live, T(std::numeric_limits<R>::infinity()), zero());
    r.metric.inverse_mass = w, r.metric.own_R = compliance(own_R, w);
    r.metric.set(r.metric.own_R, r.live);
    start(r, before_projection(r, speed), false);
    return r;
  }
  /// MuJoCo's law of a limit, which acts only beyond the range, if the steps resolve it; else null.
  const LaneSolverLaw<R>* resolved_law(int place) const {
    const int number = m_.limit_law[place / 2];
    return number >= 0 && m_.law[number].resolved ? &m_.law[number] : nullptr;
  }
  /// Calls f(joint, place, row's direction, gap, speed along the row at the step's start, speed by `ahead`, lanes) for
  /// limits in lanes `where`. Ball joints that stay within their range after turning by `turns` and `reach` more are
  /// skipped.
  template <class F>
  TARSUS_INLINE void each_limit(const T* ahead, const T* turns, Mask<T> where, T reach, const F& f) {
    const T *qpos = as_lanes(pack_.qpos), *qvel = as_lanes(pack_.qvel);
    for (int i = 0; i < m_.nlimit; ++i) {
      const int joint = m_.limit[i];
      const LinkConstants<R>& link = v_.link[joint];
      const R* range = m_.range + 4 * i;
      const T low = T(range[0]), high = T(range[1]);
      if (!turns_freely(link.joint)) {
        const T q = qpos[link.qpos], speed = qvel[link.qvel], next = ahead[link.qvel];
        f(joint, 2 * i, Vec3<T>{one(), zero(), zero()}, q - low, speed, next, where);
        f(joint, 2 * i + 1, Vec3<T>{-one(), zero(), zero()}, high - q, -speed, -next, where);
        continue;
      }
      const T* q = qpos + link.qpos;
      const Vec3<T> w = get3(qvel + link.qvel), rate = get3(turns + link.qvel);
      const T nearest = mul_add(norm(rate), T(step_.h), reach);
      const Mask<T> far = ends_before(absolute(q[0]), nearest, T(range[2]), T(range[3]));
      if (all_lanes(far)) continue;
      // As StepTerms::each_end(): the end at which the rotation leaves its range, if it does.
      const Quat<T> at = get_quat(q);
      const Vec3<T> turn = logarithm(at), way = rate * T(step_.h), shorter = logarithm(at * exponential(way));
      const T angle = norm(turn), least = T(R(1e-6)), whole = T(R(6.283185307179586)), short_angle = norm(shorter);
      const Mask<T> past_half = dot(shorter, turn + way) < zero();
      const Vec3<T> end = select<T>(past_half, shorter * (one() - whole / maximum(short_angle, least)), shorter);
      const T there = select(past_half, whole - short_angle, short_angle);
      const Mask<T> leaves = (angle < high) & (there > high);
      const Vec3<T> axis_end = end * (one() / maximum(there, least)), axis = turn * (one() / maximum(angle, least));
      const Vec3<T> e = state_[joint].R * -select<T>(leaves, axis_end, axis);
      const T gap = select(leaves, mul_add(dot(axis_end, rate), T(step_.h), high - there), high - angle);
      const Mat3<T>& A = state_[joint].R;
      f(joint, 2 * i, e, gap, dot(e, A * w), dot(e, A * get3(ahead + link.qvel)),
        (leaves | (angle >= least)) & where & ~far);
    }
  }
  /// Limits that are near at the step's start or by the velocity at the start of the solve.
  void add_limits(const T* begin) {
    each_limit(begin, as_lanes(pack_.qvel), every_lane<T>(), T(R(kLimitReach)),
               [&](int joint, int place, const Vec3<T>& e, T gap, T speed, T ahead, Mask<T> where) {
                 const T least = turns_freely(v_.link[joint].joint) ? speed : minimum(speed, ahead);
                 where = where & (mul_add(least, T(step_.h), gap) <= T(R(kLimitReach)));
                 if (resolved_law(place)) where = where & (gap <= zero());
                 if (any_lane(where)) add_limit(joint, place, e, gap, speed, ahead, where);
               });
  }
  void add_losses(const T* qvel, const T* free) {
    for (int i = 0; i < m_.nloss; ++i) {
      const int joint = m_.loss_joint[i], k = m_.loss_dof[i] - v_.link[joint].qvel;
      LaneJointRow<T>& r = add_row(LaneJointRow<T>::Kind::loss, joint, 2 * m_.nlimit + i, every_lane<T>());
      const Mat3<T>& A = state_[joint].R;
      r.e = r.axial ? Vec3<T>{one(), zero(), zero()} : k == 0 ? A.column_x() : k == 1 ? A.column_y() : A.column_z();
      r.free = along_row(v_, state_, r, free), r.target = zero();
      const T loss = pack_.own_loss ? as_lanes(pack_.own_loss)[joint] : T(m_.loss[i]);
      r.upper = T(step_.h) * loss, r.lower = -r.upper;
      r.metric.inverse_mass = inverse_mass(r.joint), r.metric.own_R = compliance(zero(), r.metric.inverse_mass);
      r.metric.set(r.metric.own_R, r.live);
      start(r, before_projection(r, along_row(v_, state_, r, qvel)), true);
    }
  }
  /// A drive's parameter, times the lane's scale.
  static T own(R number, const R* scale, int dof) {
    return scale ? T(number) * reinterpret_cast<const T*>(scale)[dof] : T(number);
  }
  void add_drives(const T* qvel, const T* free, const T* push) {
    const R h = step_.h;
    for (int i = 0; i < step_.nlimited; ++i) {
      const int joint = step_.limited[i], dof = v_.link[joint].qvel;
      const T implicit = T(step_.plain ? R(0) : h * h) * own(step_.drive_kp[dof], pack_.kp_scale, dof);
      const T kd = T(h) * own(step_.drive_kd[dof], pack_.kd_scale, dof) + implicit;
      const T mass = joint_mass(joint), stiffness = maximum(kd, T(R(kLeastStiffness)) * mass);
      const T compliance = one() / stiffness;
      const auto set = [&](LaneMetric<T>& metric) {
        metric.inverse_mass = one() / mass, metric.own_R = compliance;
        metric.set(compliance, every_lane<T>()), metric.iR = stiffness;
      };
      if (!turns_freely(v_.link[joint].joint)) {
        LaneJointRow<T>& r =
            add_row(LaneJointRow<T>::Kind::drive, joint, 2 * m_.nlimit + m_.nloss + i, every_lane<T>());
        r.e = {one(), zero(), zero()};
        const T along_push = push[dof] * T(h);
        r.free = free[dof], r.target = mul_add(along_push, compliance, qvel[dof]);
        r.lower = T(h) * own(step_.force_low[i], pack_.force_scale, dof);
        r.upper = T(h) * own(step_.force_high[i], pack_.force_scale, dof);
        set(r.metric);
        start(r, along_push, false);
        continue;
      }
      LaneBallRow<T>& r = s_.ball[s_.nball++];
      r.joint = joint, r.place = i, r.radius = T(h) * own(step_.force_high[i], pack_.force_scale, dof);
      const LinkState<T>& link = state_[joint];
      const Vec3<T> turned = link.R * get3(push + dof) * T(h), speed = link.R * get3(qvel + dof);
      r.free = link.R * get3(free + dof), r.target = mul_add(turned, compliance, speed);
      set(r.metric);
      r.no_tangent();
      const LaneBallMemory<T>& old = memory_.ball[i];
      r.at.now_y = select<T>(old.known > zero(), mul_add(old.excess, r.metric.iR, old.impulse), turned);
    }
  }

  /// Inverse of the mass that a direction feels.
  T inverse_mass(const LanePathDirection<T>& d) const {
    T sum = zero();
    d.each_link([&](int link, const Force<T>& f) {
      sum = mul_add(dot(f.f, f.f), reference_mass(link, linear),
                    mul_add(dot(f.n, f.n), reference_mass(link, angular), sum));
    });
    d.each_dof([&](int dof, T j) {
      const int link = m_.dof_link[dof], place = dof - v_.link[link].qvel;
      const bool root = moves_freely(v_.link[link].joint);
      sum = mul_add(j * j, root ? reference_mass(link, place < 3 ? linear : angular) : inverse_mass(link), sum);
    });
    return sum;
  }
  void add_paths(const T* velocity) {
    s_.npath = 0;
    for (int i = 0; i < m_.npath; ++i) {
      const LanePathDirection<T> d = links_.direction(i);
      if (d.path().unit >= 0)
        add_bilateral(i, d, velocity);
      else
        add_force(i, d, velocity);
    }
  }
  LaneJointRow<T>& add_path(typename LaneJointRow<T>::Kind kind, int path, const LanePathDirection<T>& d,
                            const T* velocity, Mask<T> live) {
    const bool alone = path < m_.nalone;
    const int joint = alone ? m_.dof_link[m_.path_dof[d.path().first_dof]] : -1;
    LaneJointRow<T>& r = add_row(kind, joint, most_rows(m_) - m_.npath + path, live);
    r.path = path, r.e = {alone ? d.joint(0) : zero(), zero(), zero()}, s_.npath += !alone;
    r.free = d.along(begins_at_v0_ ? motions_of(s_.free) : at_start(), velocity);
    return r;
  }
  void add_bilateral(int path, const LanePathDirection<T>& d, const T* velocity) {
    LaneJointRow<T>& r = add_path(LaneJointRow<T>::Kind::bilateral, path, d, velocity, every_lane<T>());
    r.target = d[kPathTarget], r.lower = T(-std::numeric_limits<R>::infinity()), r.upper = -r.lower;
    r.metric = {d[kPathCompliance], inverse_mass(d), -one(), zero(), one(), one()};
    start(r, zero(), false);
  }
  /// As StepTerms::add_force_row().
  void add_force(int path, const LanePathDirection<T>& d, const T* velocity) {
    const T w = inverse_mass(d), h = T(step_.h), speed = d.along(at_start(), as_lanes(pack_.qvel));
    const Mask<T> live = (d[kPathLive] > zero()) & (w > zero()), rigid = d[kPathRigid] > zero();
    if (!any_lane(live)) return;
    LaneJointRow<T>& r = add_path(LaneJointRow<T>::Kind::force, path, d, velocity, live);
    const T least = d.path().a >= 0 ? zero() : T(R(kLeastStiffness)) / w;
    const T slope = maximum(maximum(d[kPathSlope], least), tiny<T>());
    r.target = select(rigid, d[kPathTarget], mul_add(h, d[kPathForce] / slope, speed));
    r.lower = select(live, h * d[kPathLow], zero()), r.upper = select(live, h * d[kPathHigh], zero());
    r.metric.inverse_mass = w;
    r.metric.own_R = select(rigid, maximum(w * T(R(kLeastCompliance<R>)), d[kPathCompliance]), one() / slope);
    r.metric.set(r.metric.own_R, live);
    if (path >= m_.nalone) r.metric.own_R = select(rigid, zero(), r.metric.own_R);  // LaneLinks::feel() sets it
    start(r, before_projection(r, speed), false);
  }

  /// Forces of the limited drives over the step, in qvel's axes.
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
  /// Fills the warm-start cache for the next step.
  void store_warm_start(Mask<T> acted) {
    const int before = int((*memory_.count)[0]);
    int now = 0;
    s_.every_contact([&](const LaneContact<T>& c) {
      LaneContactMemory<T>& old = memory_.contact[now++];
      const Vec3<T>& y = c.at.best_y;
      const Vec3<T> over = times_R(c, before_projection(c, c.at.best_u) - y);
      old.key = c.key & acted;
      old.impulse = y.x, old.excess = over.x;
      old.slide = c.t1 * y.y + c.t2 * y.z, old.slide_excess = c.t1 * over.y + c.t2 * over.z;
      if (m_.most_spins > 0) store_warm_start(c, memory_.spin[now - 1]);
    });
    for (int i = now; i < before; ++i) memory_.contact[i].key = Bits<T>{};
    *memory_.count = all_bits<T>(now);
    for (int i = 0; i < most_rows(m_); ++i) memory_.joint[i].known = zero();
    for (int i = 0; i < m_.nlink; ++i) memory_.ball[i].known = zero();
    for (int i = 0; i < s_.nrow; ++i) {
      const LaneJointRow<T>& r = s_.row[i];
      LaneJointMemory<T>& old = memory_.joint[r.place];
      const Mask<T> here = acted & r.live;
      const T excess = times_R(r, before_projection(r, r.at.best_u) - r.at.best_y);
      old.impulse = select(here, r.at.best_y, old.impulse), old.excess = select(here, excess, old.excess);
      old.known = select(here, one(), old.known);
    }
    for (int i = 0; i < s_.nball; ++i) {
      const LaneBallRow<T>& r = s_.ball[i];
      LaneBallMemory<T>& old = memory_.ball[r.place];
      old.impulse = r.at.best_y, old.excess = times_R(r, before_projection(r, r.at.best_u) - r.at.best_y);
      old.known = select(acted, one(), zero());
    }
  }

  void store_warm_start(const LaneContact<T>& c, LaneSpinMemory<T>& old) {
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

  /// Contacts for sensors.
  void write_touches(const LaneTermReport<R>& report, Mask<T> acted) {
    const T per_step = T(1 / step_.h);
    R* to = report.touch;
    const auto add = [&](T x) { put(to, x), to += kLanes; };
    const auto add3 = [&](const Vec3<T>& x) { add(x.x), add(x.y), add(x.z); };
    s_.every_contact([&](const LaneContact<T>& c) {
      const T share = select(acted & c.live, per_step, zero());
      const auto in_world = [&](const Vec3<T>& y) { return (c.n * y.x + c.t1 * y.y + c.t2 * y.z) * share; };
      for (int l = 0; l < kLanes; ++l) to[l] = c.live[l] ? R(c.pair[l] + 1) : R(0);
      to += kLanes;
      add3(c.point), add3(c.n), add(c.distance), add3(in_world(c.at.best_y));
      if (c.spin < 0) return add3(zero3<T>());
      const LaneSpin<T>& spin = s_.spin[c.spin];  // that of a contact with fewer rows is not set
      add3(select<T>(spin.live, in_world(spin.at.best_y), zero3<T>()));
    });
    *report.ntouch = s_.ncontact + s_.ncrossing;
  }
  void write_limits(const LaneTermReport<R>& report, Mask<T> acted) {
    const T per_step = T(1 / step_.h);
    std::fill(report.limit, report.limit + std::ptrdiff_t(m_.nlimit) * kLanes, R(0));
    for (int i = 0; i < s_.nrow; ++i) {
      const LaneJointRow<T>& r = s_.row[i];
      if (r.kind != LaneJointRow<T>::Kind::limit) continue;
      R* const force = report.limit + r.place / 2 * kLanes;
      const T lower = as_lanes(force)[0], found = select(acted & r.live, r.at.best_y * per_step, zero());
      put(force, r.axial ? select(lower > zero(), lower, found) : lower + found);  // as StepTerms::limit_force()
    }
  }
  static T count(Mask<T> where) { return select(where, one(), zero()); }
  static void put(R* to, T x) {
    for (int l = 0; l < kLanes; ++l) to[l] = x[l];
  }
  void write(const LaneTermReport<R>& report, const LaneAnswer<T>& answer) {
    const Mask<T> acted = answer.acted;
    T contacts = zero(), touching = zero(), limits = zero(), saturated = zero(), deepest = zero(), unmet = zero();
    for (int i = 0; i < v_.nlink; ++i) s_.ground[i] = zero3<T>();
    s_.every_contact([&](const LaneContact<T>& c) {
      contacts += count(c.live), touching += count(c.live & acted & (c.at.best_y.x > zero()));
      deepest = maximum(select(c.live, -c.distance, zero()), deepest);
      if (c.link < 0) return;
      const Vec3<T>& y = c.at.best_y;
      const Vec3<T> f = c.n * y.x + c.t1 * y.y + c.t2 * y.z;
      s_.ground[c.link] += select<T>(acted & c.live, f, zero3<T>());
    });
    const T near = T(1 - (sizeof(R) == 8 ? R(1e-9) : R(1e-6)));
    std::fill(report.path, report.path + std::ptrdiff_t(m_.npath) * kLanes, R(0));
    for (int i = 0; i < s_.nrow; ++i) {
      const LaneJointRow<T>& r = s_.row[i];
      if (r.path >= 0) put(report.path + r.path * kLanes, select(acted & r.live, r.at.best_y, zero()));
      if (r.bilateral()) {
        const T rest = neg_mul_add(r.metric.own_R, r.at.best_y, links_.direction(r)[kPathTarget] - r.at.best_u);
        unmet = maximum(select(acted, absolute(rest), zero()), unmet);
      }
      if (r.kind == LaneJointRow<T>::Kind::limit)
        limits += count(r.live & acted & (r.at.best_y * r.metric.inverse_mass > T(kActiveChange<R>)));
      if (r.kind == LaneJointRow<T>::Kind::drive)
        saturated += count((r.at.best_y >= r.upper * near) | (r.at.best_y <= r.lower * near));
    }
    for (int i = 0; i < s_.nball; ++i) saturated += count(norm(s_.ball[i].at.best_y) >= s_.ball[i].radius * near);
    put(report.iterations, answer.iterations),
        put(report.residual,
            select(acted & (answer.residual < T(std::numeric_limits<R>::infinity())), answer.residual, zero()));
    put(report.penetration, deepest), put(report.contacts, contacts), put(report.touching, touching);
    put(report.between, s_.between);
    put(report.limits, limits), put(report.saturated, saturated), put(report.unmet, unmet);
    put(report.missed, select(acted, select(answer.met, zero(), one()), select(crowded_, T(R(2)), T(R(3)))));
    if (report.touch) write_touches(report, acted);
    if (report.limit) write_limits(report, acted);
    for (int i = 0; i < v_.nlink; ++i) {
      for (int k = 0; k < 3; ++k) put(report.ground + (3 * i + k) * kLanes, s_.ground[i][k] * T(1 / step_.h));
    }
  }

  const LanePack<R>& pack_;
  const ModelView<R>& v_;
  const LaneModel<R>& m_;
  const LaneStep<R>& step_;
  LinkState<T>* state_;
  LaneSpace<T>& s_;
  LaneMemory<T>& memory_;
  LaneLinks<T>& links_;
  Mask<T> crowded_ = no_lanes<T>(), turns_ = no_lanes<T>();
  int guess_ = 0;
  bool begins_at_v0_ = false;  ///< in some lane
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
