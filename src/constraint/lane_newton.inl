// Semismooth Newton method of a step for packs of worlds: the iteration of solver/step_newton.hpp with each lane's own
// steps.
//
// A converged lane is frozen, and the iteration continues while some lane needs it. The result of a lane depends on
// that lane alone: rows, contacts and passes that only other lanes need add zeros to it. Lanes that do not converge get
// the problem with softer rows (harden()).
#pragma once

#include <array>
#include <optional>
#include <span>

#include "constraint/lane_contacts.inl"
#include "constraint/lane_linear.inl"

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
      : pack_(pack),
        v_(pack.view),
        m_(model),
        step_(step),
        state_(state),
        s_(space),
        links_(v_, model, state, space),
        problem_(pack, model, step, state, space, memory, links_),
        linear_(pack, step.h, state, K, space, links_) {}

  /// Builds the problem and iterates.
  /// @param waits stop when so few lanes are left that they should continue in one pack with those of other packs
  void begin(bool waits) {
    problem_.build(), linear_.begin();
    best_residual_ = T(std::numeric_limits<R>::infinity());
    met_ = no_lanes<T>();
    go_on(~problem_.crowded());
    s_.each_term([&](auto& t) {
      t.at.now_u = t.at.best_u = t.free;
      t.at.best_y = t.at.now_y * zero();
    });
    for (int k = 0; k < v_.nv; ++k) s_.x_now[k] = s_.x_best[k] = zero();
    waits_ = waits;
    if (any_lane(live_)) descend(step_.tolerance, step_.most_iterations, true);
    waits_ = false;
  }
  /// Number of lanes that begin() left unsolved.
  int waiting() const { return waiting_ ? count_live() : 0; }
  /// Call when no lane waits. Verifies the results, solves softer problems for lanes that failed, and writes the
  /// results.
  void end() {
    Mask<T> acted, looked = no_lanes<T>();  // a lane is looked at once, whatever lanes beside it need
    for (bool hardened = false;; hardened = true) {
      look_again(met_ & ~looked);
      looked = met_;
      acted = best_residual_ < T(std::numeric_limits<R>::infinity());
      const Mask<T> missed = ~met_ & acted;
      if (hardened || !any_lane(missed)) break;
      harden(missed & (iterations_ < most())), bound_impulses(missed & ~met_);
    }
    for (int k = 0; k < kResponses && m_.spins && step_.responds; ++k) {
      const Mask<T> changed = problem_.respond(s_.x_best, met_, k == 0);
      if (!any_lane(changed)) break;
      go_on_from_new_start(changed);
      look_again(changed & met_);
    }
    acted = best_residual_ < T(std::numeric_limits<R>::infinity());
    if (!all_lanes(acted)) {  // without terms
      linear_.solve_free(s_.x_next);
      for (int k = 0; k < v_.nv; ++k) s_.x_best[k] = select(acted, s_.x_best[k], s_.x_next[k]);
    }
    problem_.end({iterations_, best_residual_, met_, acted});
  }

 private:
  static constexpr R kExcess = sizeof(R) == 8 ? R(2e-10) : R(1e-6);
  static constexpr int kPatience = 8, kDiscs = 5, kHalvings = 8;
  static constexpr R kShort = R(0.2);
  /// Lanes with a smaller residual solve for the change from the present iterate [m/s].
  static constexpr R kNear = sizeof(R) == 8 ? R(0.01) : R(0.3);
  static constexpr R kDrift = R(0.1);  ///< share of a change's energy that no impulse accounts for
  static constexpr R kMuch = R(1);     ///< change by a single solve that requires a verification [rad/s | m/s]
  /// Speed that a rigid force's impulse would give alone, above which it may contradict other rows [rad/s | m/s].
  static constexpr R kStrain = R(100);
  static constexpr int kLooks = 3;

  TARSUS_INLINE static T zero() { return T(R(0)); }
  TARSUS_INLINE static T one() { return T(R(1)); }
  T most() const { return T(R(step_.all_iterations)); }
  void go_on(Mask<T> lanes) {
    live_ = lanes;
    s_.go_on(lanes);
  }
  template <class Before, class After>
  void linear_solve(Mask<T> near, const Before& before, const After& after) {
    iterations_ += select(live_, one(), zero());
    linear_.solve(live_, near, before, after);
  }

  /// Largest natural residual of the terms added. NaN if the velocity or impulse of a term is not finite.
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
    Mask<T> all = every_lane<T>();
    for (int i = 0; i < s_.nrow; ++i) all = all & is_within_set(s_.row[i], kExcess);
    for (int i = 0; i < s_.nball; ++i) all = all & is_within_set(s_.ball[i], kExcess);
    return all;
  }
  template <class X>
  TARSUS_INLINE static void blend(Mask<T> lanes, T t, const X& next, X& now) {
    now = select(lanes, now + (next - now) * t, now);
  }
  /// @return the residual after the step
  T move(T t) {
    for (int k = 0; k < v_.nv; ++k) blend(live_, t, s_.x_next[k], s_.x_now[k]);
    Residual residual;
    s_.each_term([&](auto& term) {
      blend(live_, t, term.at.next_u, term.at.now_u);
      blend(live_, t, term.at.next_y, term.at.now_y);
      residual.add(term);
    });
    return residual.value();
  }
  void keep(Mask<T> lanes) {
    s_.each_term([&](auto& term) {
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

  /// The first iteration: the tangents at now_y, without a search. @return the residual
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

  /// Halves the step along the Newton direction of the natural map, for `lanes`; 0 elsewhere.
  /// @param start, whole square of the map at the present iterate and after the full step
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
      s_.each_term([&](auto& term) {
        if (!idle(term, open)) there += map_at(term, T(t), open);
      });
    }
  }

  /// Derivative of the convex potential along the step, dvᵀ F(v + t dv), for friction bounded by the given normal
  /// impulses.
  T slope(T t) {
    T sum = zero();
    s_.each_term([&](auto& term) {
      if constexpr (requires { term.kind; }) {
        if (term.bilateral()) return;  // linear: the full step
      }
      const auto dv = term.at.next_u - term.at.now_u;
      const auto y = term.at.now_y + (term.at.next_y - term.at.now_y) * t;
      sum += sum_product(dv, y - law(term, term.at.now_u + dv * t, true, false, live_));
    });
    return sum;
  }
  /// Root of the slope along a convex step, by false position (Illinois) and bisection.
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

  /// Lanes whose Newton steps make no progress. They take kDiscs iterations with fixed friction discs, then Newton's
  /// again.
  Mask<T> stalled(Mask<T> patient, T now, T before) {
    if (!any_lane(patient)) return no_lanes<T>();
    const Mask<T> in = live_ & patient & ((discs_ > zero()) | short_ | !(now <= before * T(R(0.5))));
    discs_ = select(in, select(discs_ > zero(), discs_ - one(), T(R(kDiscs))), discs_);
    return in & (discs_ > zero());
  }

  /// State of the iteration.
  struct Descent {
    R tolerance;
    int most;
    bool judged;  ///< the rows are the problem's own
    T count;      ///< iterations of each lane
    T now;        ///< residual of the present iterate
    T last = T(std::numeric_limits<R>::infinity()), last_but_one = last, older = last;  ///< earlier residuals
    Mask<T> met = no_lanes<T>();                                                        ///< within the tolerance
  };

  /// Iterates from now_y in the lanes live_, and removes the finished ones from live_.
  /// @return lanes within the tolerance
  Mask<T> descend(R tolerance, int at_most, bool judged) {
    const T spent = maximum(T(R(at_most)) - (most() - iterations_), one());
    return go_down({tolerance, at_most, judged, spent, begin_descent()});
  }
  Mask<T> go_down(const Descent& from) {
    discs_ = zero(), short_ = no_lanes<T>();
    descent_ = from;
    go_down();
    return descent_.met;
  }
  void go_down() {
    for (Descent& d = descent_;; d.count += one()) {
      const Mask<T> patient = d.count > T(R(kPatience)), through = d.count >= T(R(d.most));
      Mask<T> met = live_ & (d.now <= T(d.tolerance));
      if (d.judged) {
        met = met & within_sets();
        judge(d.now, met, live_ & (met | patient | through));  // few lanes need their best iterate
      }
      d.met = d.met | met;
      go_on(live_ & ~met & ~through & (d.now < T(std::numeric_limits<R>::infinity())));
      if (!any_lane(live_)) return;
      linear_.keep_forces();
      if constexpr (kNarrows<T>) {
        if (count_live() <= kWidth<Narrow<T>>) {
          waiting_ = waits_;
          LaneSolver<T>* const one_pack[] = {this};
          if (!waits_) go_down_in<Narrow<T>, T>(s_.narrow, one_pack);
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
  void go_down_for(std::span<LaneSolver<W>* const> packs, T* K);

  /// Verifies the results. Limits that v⁺ passes, although they were not near at the start, become rows. In float,
  /// solves for changes and eliminations of fast rotations lose digits of x that the rows' velocities do not show
  /// (decision 512). Where x is not the motion of the impulses, it is computed from them again. The iteration then
  /// continues. So it does where rigid forces contradict other rows: R weighs these against one another, and the first
  /// linear problem, from which R is, had the others' tangents.
  /// @param open lanes whose results are new
  void look_again(Mask<T> open) {
    Mask<T> weighed = no_lanes<T>();
    for (int looks = 0; any_lane(open);) {
      Mask<T> late = problem_.join_limits(s_.x_best, open);
      if (!any_lane(late)) {
        const Mask<T> heavy = strained(open & ~weighed);
        if (any_lane(heavy)) {
          weigh(heavy), weighed = weighed | heavy, open = open & met_;
          continue;
        }
      }
      const bool anew = !any_lane(late);
      if (anew) {
        if constexpr (sizeof(R) == 8) return;
        late = drifted(open & ((iterations_ > one()) | changes_much()));
        if (looks++ == kLooks) met_ = met_ & ~late, late = no_lanes<T>();
        open = late;
      }
      if (any_lane(late)) go_on_from_best(late, anew);
      open = open & met_;
    }
  }
  /// Lanes in which the impulse of a rigid force along a generalised direction is far more than stops any motion.
  Mask<T> strained(Mask<T> lanes) {
    Mask<T> much = no_lanes<T>();
    for (int i = s_.nrow - s_.npath; i < s_.nrow; ++i) {
      const LaneJointRow<T>& r = s_.row[i];
      much = much | (links_.rigid(r) & (absolute(r.at.best_y) * r.metric.inverse_mass > T(kStrain)));
    }
    return much & lanes;
  }
  /// Solves these lanes again with R of such forces from what they feel without other terms, as in a single world.
  void weigh(Mask<T> lanes) {
    linear_.feel_alone(lanes);
    reopen(lanes);
    descend(step_.tolerance, step_.most_iterations, true);
  }
  Mask<T> changes_much() const {
    T most = zero();
    for (int k = 0; k < v_.nv; ++k) most = maximum(absolute(s_.x_best[k]), most);
    return most > T(kMuch);
  }
  /// The lanes whose best x has an energy xᵀ M̂ x far from xᵀ f + Σ (J x)ᵀ γ.
  Mask<T> drifted(Mask<T> lanes) {
    if (!any_lane(lanes)) return lanes;
    go_on(lanes);
    linear_.keep_forces();
    T moves = zero(), miss = zero();
    for (int i = 0; i < v_.nlink; ++i) {
      const LinkConstants<R>& link = v_.link[i];
      const Motion<T> below = link.parent >= 0 ? shift(s_.free[link.parent], state_[i].r) : world_velocity<T>();
      const Motion<T> a = below + joint_motion(link, state_[i].R, s_.x_best + link.qvel);
      s_.free[i] = a, moves += dot(state_[i].Ic * a, a), miss += dot(s_.bias[i], a);
    }
    for (int k = 0; k < v_.nv; ++k) {
      const T x = s_.x_best[k];
      moves = mul_add(linear_.K()[k] * x, x, moves), miss = neg_mul_add(s_.joint_force[k], x, miss);
    }
    T done = zero();
    s_.each_term([&](auto& t) {
      const T work = sum_product(t.at.best_y, t.at.best_u - t.free);
      miss = miss - work, done += absolute(work);
    });
    return lanes & !(absolute(moves + miss) <= (moves + done) * T(kDrift));
  }

  /// Continues from the best iterate, with the rows that have joined.
  /// @param anew first compute x from the present impulses, through M̂ alone
  void go_on_from_best(Mask<T> lanes, bool anew = false) {
    reopen(lanes);
    if (anew)
      linear_solve(
          no_lanes<T>(), [](auto& t) { t.no_tangent(), t.base = t.at.now_y; }, [](auto&) {});
    go_on_with(move(T(R(anew))));
  }
  /// Continues from the best iterate after a change of v⁰. Bilateral rows need a whole step: no residual and no search
  /// sees them.
  void go_on_from_new_start(Mask<T> lanes) {
    if (!problem_.holds()) return go_on_from_best(lanes);
    reopen(lanes);
    linear_solve(
        no_lanes<T>(), [&](auto& t) { natural_map<true>(t, t.at.now_u, t.at.now_y, live_); }, [](auto&) {});
    go_on_with(move(one()));
  }
  void go_on_with(T residual) {
    const T so_far = minimum(iterations_, T(R(step_.most_iterations - 1)));  // allow one more at least
    go_down({step_.tolerance, step_.most_iterations, true, so_far, residual});
  }
  /// Makes these lanes iterate again, from the best iterate.
  void reopen(Mask<T> lanes) {
    go_on(lanes), from_best(lanes);
    met_ = met_ & ~lanes, best_residual_ = select(lanes, T(std::numeric_limits<R>::infinity()), best_residual_);
  }
  void from_best(Mask<T> lanes) {
    s_.each_term([&](auto& t) {
      t.at.now_u = select(lanes, t.at.best_u, t.at.now_u), t.at.now_y = select(lanes, t.at.best_y, t.at.now_y);
    });
    for (int k = 0; k < v_.nv; ++k) s_.x_now[k] = select(lanes, s_.x_best[k], s_.x_now[k]);
  }

  /// If the best iterate has impulses outside their bounds: sets these to their bounds and solves the rest once more.
  void bound_impulses(Mask<T> lanes) {
    if (!any_lane(lanes)) return;
    go_on(lanes);
    from_best(live_);
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

  /// Raises R of all rows to at least `share` of the inverse mass, in some lanes.
  void set_stage(R share, Mask<T> lanes) {
    const auto set = [&](LaneMetric<T>& metric, Mask<T> live, R part = 1) {
      LaneMetric<T> to = metric;
      to.set(maximum(metric.own_R, metric.inverse_mass * T(share)), live, part);
      metric.R = select(lanes, to.R, metric.R), metric.iR = select(lanes, to.iR, metric.iR);
      metric.rho = select(lanes, to.rho, metric.rho), metric.irho = select(lanes, to.irho, metric.irho);
    };
    s_.every_contact(
        [&](LaneContact<T>& c) { set(c.normal, c.live, kSlidingPart<R>), set(c.tangent, c.live, kSlidingPart<R>); });
    for (int i = 0; i < s_.nspin; ++i) set(s_.spin[i].metric, s_.spin[i].live);
    for (int i = 0; i < s_.nrow; ++i) {
      if (!s_.row[i].bilateral()) set(s_.row[i].metric, s_.row[i].live);
    }
    for (int i = 0; i < s_.nball; ++i) set(s_.ball[i].metric, every_lane<T>());
  }
  /// For lanes that failed: the same problem with soft rows, then with harder ones.
  void harden(Mask<T> missed) {
    if (!any_lane(missed)) return;
    go_on(missed);
    from_best(missed);
    Mask<T> going = missed;
    constexpr R kShares[] = {10, 3, 1, R(0.3), R(0.1), R(0.03), R(0.01), 0};
    for (const R share : kShares) {
      go_on(going);
      s_.each_term([&](auto& t) {  // γ, and R (y - γ), with the present R
        const auto gamma = law(t, t.at.now_u, false, false, going);
        t.at.next_y = gamma;
        t.at.next_u = times_R(t, before_projection(t, t.at.now_u) - gamma);
      });
      set_stage(share, missed);
      s_.each_term([&](auto& t) { t.at.now_y = select(going, t.at.next_y + times_iR(t, t.at.next_u), t.at.now_y); });
      const bool own = share == 0;
      const Mask<T> met = descend(own ? step_.tolerance : R(1e-3), own ? 10 : 12, own);
      if (own) return;
      going = going & met & (iterations_ < most());
      if (!any_lane(going)) break;
    }
    set_stage(0, missed);
  }

  const LanePack<R>& pack_;
  const ModelView<R>& v_;
  const LaneModel<R>& m_;
  const LaneStep<R>& step_;
  LinkState<T>* state_;
  LaneSpace<T>& s_;
  LaneLinks<T> links_;
  LaneProblem<T> problem_;
  LaneLinear<T> linear_;
  bool waits_ = false, waiting_ = false;
  Mask<T> live_ = no_lanes<T>(), met_ = no_lanes<T>(), short_ = no_lanes<T>();
  T discs_ = zero(), iterations_ = zero(), best_residual_ = zero();
  Descent descent_{};
};

}  // namespace TARSUS_ISA
}  // namespace tarsus

#include "constraint/lane_together.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Solves contacts, limits, dry friction and limited drives in one problem, for up to kTogether packs. Lanes that need
/// more iterations than most of their pack continue in one pack with those of the other packs.
template <class T>
void lane_solve(const LaneModel<Real<T>>& model, const LaneStep<Real<T>>& step, const LanePack<Real<T>>* packs,
                int count, std::byte* work) {
  if constexpr (kWidth < T >> 1) {
    static_assert(kTogether<T> == std::max(1, kWidth<T> * int(sizeof(Real<T>)) / 16), "packs_together() says so");
    std::array<LaneSpace<T>, kTogether<T>> space;  // of the waiting packs and the present one
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
      mine.path = reinterpret_cast<const T*>(pack.path);
      carve_memory<T>(model, pack.memory, memory[nwaiting]);
      place_origins(pack.view.link, pack.view.nlink, state);
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
