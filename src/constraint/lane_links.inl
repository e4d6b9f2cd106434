// Contacts between links, whose links differ from lane to lane, and rows along generalised directions. These extra rows
// are eliminated from the linear problem by their Schur complement W = J A⁻¹ Jᵀ, where A contains all other terms:
//
//     (1 + G W) φ = f - G u₀     contacts between links
//     (R + W) φ = f - u₀         rows along generalised directions
//
// The cost is one pass over the tree for three columns of W, and O(n³) for n extra rows.
#pragma once

#include <algorithm>

#include "constraint/lane_space.inl"
#include "constraint/term_constants.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Between begin() and solve(), add() takes the contacts that act. Each lane fills its rows without gaps. Rows along
/// generalised directions are present in all lanes.
template <class T>
class LaneLinks {
 public:
  static constexpr int kLanes = kWidth<T>;
  using R = Real<T>;

  LaneLinks(const ModelView<R>& view, const LaneModel<R>& model, LinkState<T>* state, LaneSpace<T>& space)
      : v_(view), m_(model), state_(state), s_(space) {}

  /// Finds the links of a contact between links, each with its lanes.
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
  /// Calls f(link, whether it is on the second side, lanes) for the links of a contact between links.
  template <class Contact, class F>
  TARSUS_INLINE void each_touch(const Contact& c, const F& f) const {
    const LaneTouch<T>* touch = s_.touch + c.touch;
    for (int i = 0; i < c.ntouch_a + c.ntouch_b; ++i) f(touch[i].link, i >= c.ntouch_a, touch[i].lanes);
  }
  /// Relative velocity of the two sides along n, t₁, t₂, or their relative angular velocity about these axes, from the
  /// links' motions.
  template <bool kTurns, int N, class Contact>
  TARSUS_INLINE void between(const Contact& c, const LinkMotions<T>& motion, Vec3<T> (&out)[N]) const {
    const LaneTouch<T>* touch = s_.touch + c.touch;
    Motion<T> a[N], b[N];
    pick<N>(touch, c.ntouch_a, motion, a), pick<N>(touch + c.ntouch_a, c.ntouch_b, motion, b);
    for (int k = 0; k < N; ++k) out[k] = in_axes(c, side<kTurns>(a[k], c.arm_a) - side<kTurns>(b[k], c.arm_b));
  }
  /// The same for any contact, from one motion of each link.
  Vec3<T> along(const LaneContact<T>& c, const LinkMotions<T>& motion) const { return of<false>(c, motion); }
  Vec3<T> about(const LaneContact<T>& c, const LinkMotions<T>& motion) const { return of<true>(c, motion); }
  /// Starts a linear problem without active contacts.
  void begin() {
    nextra_ = nextra_spin_ = nitem_ = 0;
    std::fill(extras_, extras_ + kLanes, 0), std::fill(extra_spins_, extra_spins_ + kLanes, 0);
  }
  bool any() const { return nextra_ + nextra_spin_ + s_.npath > 0; }
  LanePathDirection<T> direction(int path) const { return {m_, path, s_.path}; }
  LanePathDirection<T> direction(const LaneJointRow<T>& r) const { return direction(r.path); }
  /// Adds a contact between links in the lanes `here`, to each lane's first free extra rows.
  void add(const LaneContact<T>& c, Mask<T> here) {
    each_extra(c, c, here, s_.extra, extras_, nextra_, [&](int l, LaneExtra<T>& to) { to.Gnn.set(l, c.Gnn[l]); });
  }
  /// Adds its torsional and rolling friction in the same way.
  void add(const LaneSpin<T>& s, Mask<T> here) {
    each_extra(s, *s.contact, here, s_.extra + m_.most_crossings, extra_spins_, nextra_spin_,
               [&](int l, LaneExtra<T>& to) { to.moment = true, to.Gss.set(l, s.Gss[l]), to.Gsn.set(l, s.Gsn[l]); });
  }
  /// Solves for the impulses φ of the extra rows by the Schur complement, and corrects `motion` and `x`. A row along a
  /// generalised direction with a given impulse has φ = f. These rows stand first, so that the elimination of the
  /// others satisfies them.
  ///
  /// The paths' rows come with f in at.next_y, an impulse where G is zero; φ replaces it.
  void solve(Motion<T>* motion, T* x) {
    LaneJointRow<T>* const paths = s_.paths();
    const int blocks = nextra_ + nextra_spin_, first_block = s_.npath, n = first_block + 3 * blocks, touches = ntouch_;
    for (int j = 0; j < blocks; ++j) find_touches(extra(j));
    std::fill(s_.matrix, s_.matrix + n * n, zero());
    add_path_columns(n);
    // Items of forces stand before items of moments: contacts are added first.
    int forces = 0;
    while (forces < nitem_ && !s_.extra[s_.item[forces].slot].moment) ++forces;
    for (int first = 0; first < forces; first += kLanes) add_columns(first, std::min(kLanes, forces - first), n);
    for (int first = forces; first < nitem_; first += kLanes) add_columns(first, std::min(kLanes, nitem_ - first), n);
    for (int i = first_block; i < n; ++i) s_.matrix[i * n + i] = s_.matrix[i * n + i] + one();
    const Mask<T> first = raise(paths, n);
    feel(paths, n);
    for (int i = 0; i < s_.npath; ++i) {
      const LaneMetric<T>& metric = paths[i].metric;
      T* const line = s_.matrix + i * n;
      Mask<T> dead = no_lanes<T>();
      if (paths[i].bilateral()) dead = !(absolute(line[i]) > metric.inverse_mass * T(kNothing));
      const Mask<T> given = !(paths[i].G > zero()), held = ~given & ~dead;
      for (int c = 0; c < n; ++c) line[c] = select(held, line[c], zero());
      line[i] = line[i] + select(held, metric.R, one());
      s_.right[i] = paths[i].at.next_y - select(held, direction(paths[i]).along(motions_of(motion), x), zero());
      s_.right[i] = select(dead, zero(), s_.right[i]);  // no motion changes it
    }
    for (int i = 0; i < blocks; ++i) {
      const LaneExtra<T>& e = extra(i);
      Vec3<T> gu[1];
      react<1>(e, motions_of(motion), gu);
      const Vec3<T> right = e.force - gu[0];
      for (int r = 0; r < 3; ++r) s_.right[first_block + 3 * i + r] = right[r];
    }
    if (any_lane(first)) leave_unmet(paths, n, first);
    eliminate(s_.matrix, n);
    if (any_lane(first)) meet(paths, n, first);
    substitute(s_.matrix, n, s_.right);
    no_forces(1, s_.needed);
    for (int i = 0; i < s_.npath; ++i) {
      paths[i].at.next_y = s_.right[i];
      apply(direction(paths[i]), s_.right[i], 1, 0);
    }
    for (int i = 0; i < blocks; ++i) {
      const LaneExtra<T>& e = extra(i);
      const T* f = s_.right + first_block + 3 * i;
      apply(e, e.n * f[0] + e.t1 * f[1] + e.t2 * f[2], 1, 0);
    }
    lane_substitute<1, T>(v_, state_, s_.link, s_.force, path_force(), nullptr, nullptr, s_.needed, nullptr, s_.left,
                          s_.column, s_.x_extra);
    ntouch_ = touches;
    for (int k = 0; k < v_.nv; ++k) x[k] = x[k] + s_.x_extra[k];
    for (int i = 0; i < v_.nlink; ++i) motion[i] = motion[i] + s_.column[i];
  }
  /// Sets R of rigid forces anew in `lanes`, from what they feel by the present factors without contacts between links.
  /// Bilateral rows there are as before the first linear problem.
  void feel_again(Mask<T> lanes) {
    LaneJointRow<T>* const paths = s_.paths();
    begin();
    add_path_columns(s_.npath);
    for (int i = 0; i < s_.npath; ++i) {
      LaneJointRow<T>& r = paths[i];
      r.metric.own_R = select(lanes & rigid(r), zero(), r.metric.own_R);
      if (!r.bilateral()) continue;
      r.metric.R = select(lanes, -one(), r.metric.R);
      r.target = select(lanes, direction(r)[kPathTarget], r.target);
    }
    feel(paths, s_.npath);
  }
  /// Lanes in which this row is a rigid force.
  Mask<T> rigid(const LaneJointRow<T>& r) const {
    return r.bilateral() ? no_lanes<T>() : r.live & (direction(r)[kPathRigid] > zero());
  }

 private:
  /// Share of a path row's inverse mass by which the row is softened, the same in all solves of a step. Dependent rows
  /// then share their force. It is some hundred times the rounding error of a pivot.
  static constexpr R kRaised = sizeof(R) == 8 ? R(1e-12) : R(4e-6);
  /// Shares of the inverse mass of a row's links alone: the least mass that a row counts with, and the value below
  /// which it counts as zero. Where forces cancel, the rounding error is in proportion to the terms, not to the rest.
  static constexpr R kLeastMass = sizeof(R) == 8 ? R(0.1) : R(0.02), kNothing = sizeof(R) == 8 ? R(1e-13) : R(3e-7);
  static constexpr R kSofter = sizeof(R) == 8 ? R(1000) : R(10);   ///< than kRaised, in leave_unmet()
  static constexpr int kPower = 8, kRounds = 3;                    ///< of leave_unmet()
  static constexpr R kRest = sizeof(R) == 8 ? R(1e-13) : R(1e-6);  ///< share of the demand that it takes for zero

  /// LU factorisation of A [n][n] without pivoting. The diagonal gets the inverse pivots; below it, rows keep their
  /// values at elimination.
  static void eliminate(T* A, int n) {
    for (int p = 0; p < n; ++p) {
      const T inverse = one() / A[p * n + p];
      for (int r = p + 1; r < n; ++r) {
        T* const line = A + r * n;
        const T factor = line[p] * inverse;
        for (int c = p + 1; c < n; ++c) line[c] = neg_mul_add(factor, A[p * n + c], line[c]);
      }
      A[p * n + p] = inverse;
    }
  }
  /// x = A⁻¹ x from eliminate()'s factors.
  static void substitute(const T* A, int n, T* x) {
    for (int p = 0; p < n; ++p) {
      for (int r = p + 1; r < n; ++r) x[r] = neg_mul_add(A[r * n + p] * A[p * n + p], x[p], x[r]);
    }
    for (int p = n - 1; p >= 0; --p) {
      T sum = x[p];
      for (int c = p + 1; c < n; ++c) sum = neg_mul_add(A[p * n + c], x[c], sum);
      x[p] = sum * A[p * n + p];
    }
  }
  /// Sets R of bilateral rows that have none. Rows of one unit share the largest value, so that the unmet part of their
  /// demand does not depend on the axes. In float each row has its own: the largest value would leave a hundredth of
  /// the demand of a weak row unmet.
  /// @return lanes without an R so far: this is their first linear problem
  Mask<T> raise(LaneJointRow<T>* paths, int n) {
    constexpr int kReach = sizeof(R) == 8 ? 2 : 0;
    Mask<T> first = no_lanes<T>();
    const auto unit = [&](int i) { return m_.path[paths[i].path].unit; };
    for (int i = 0; i < s_.npath; ++i) {
      LaneMetric<T>& metric = paths[i].metric;
      const Mask<T> unknown = metric.R < zero();
      if (!any_lane(unknown)) continue;
      T most = zero();
      for (int j = std::max(0, i - kReach); j < std::min(s_.npath, i + kReach + 1); ++j) {
        const T least = paths[j].metric.inverse_mass * T(kLeastMass);
        if (unit(j) == unit(i)) most = maximum(most, maximum(s_.matrix[j * n + j], least));
      }
      metric.R = select(unknown, mul_add(most, T(kRaised), metric.own_R), metric.R), first = first | unknown;
    }
    return first;
  }
  /// Sets R of rigid forces that have none from what they feel, which is the diagonal of the matrix.
  void feel(LaneJointRow<T>* paths, int n) {
    for (int i = 0; i < s_.npath; ++i) {
      LaneMetric<T>& metric = paths[i].metric;
      const Mask<T> unknown = metric.own_R <= zero();
      if (paths[i].bilateral() || !any_lane(unknown)) continue;
      const T least = absolute(s_.matrix[i * n + i]) * T(R(kLeastCompliance<R>));
      const T soft = maximum(maximum(least, direction(paths[i])[kPathCompliance]), tiny<T>());
      metric.own_R = select(unknown, soft, metric.own_R);
      metric.set(select(unknown, metric.own_R, metric.R), paths[i].live);
    }
  }
  /// Subtracts from the demand of bilateral rows the part that no motion satisfies; its force would be in proportion to
  /// 1/R. For a demand b that the rows feel through W, a softness r far above the rounding in W leaves b r / (W + r)
  /// unmet, and each further solve repeats that factor. The power keeps what a weak motion satisfies: of rows that
  /// nearly depend on one another, or that a contact or range all but holds, W may be as small as r. The rounds remove
  /// rounding in rows with zero W. BilateralSchur does the same by proximal steps. Beside sliding contacts W may be
  /// negative: what grows is no part of the demand.
  void leave_unmet(LaneJointRow<T>* paths, int n, Mask<T> lanes) {
    const int rows = s_.npath;
    T *const A = s_.right + n, *const x = A + rows * rows;
    const auto softness = [&](int i) {
      const LaneMetric<T>& m = paths[i].metric;
      return paths[i].bilateral() ? (m.R - m.own_R) * T(kSofter) : zero();
    };
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < rows; ++j)
        A[i * rows + j] = paths[i].bilateral() && paths[j].bilateral() ? s_.matrix[i * n + j] : i == j ? one() : zero();
      A[i * rows + i] = A[i * rows + i] + softness(i);
    }
    eliminate(A, rows);
    for (int round = 0; round < kRounds; ++round) {
      T demand = zero();  // Σ x²/r, which no symmetric W lets grow
      for (int i = 0; i < rows; ++i) {
        x[i] = paths[i].bilateral() ? s_.right[i] : zero();
        if (paths[i].bilateral()) demand = mul_add(x[i], x[i] / softness(i), demand);
      }
      Mask<T> some = lanes;
      for (int k = 0; k < kPower && any_lane(some); ++k) {
        substitute(A, rows, x);
        T rest = zero();
        for (int i = 0; i < rows; ++i) {
          const T unmet = softness(i) * x[i];
          rest = mul_add(unmet, x[i], rest), x[i] = unmet;
        }
        some = some & (rest > demand * T(kRest * kRest)) & (rest < demand * T(R(2)));
        for (int i = 0; i < rows; ++i) x[i] = select(some, x[i], zero());
      }
      if (!any_lane(some)) return;
      for (int i = 0; i < rows; ++i) {
        s_.right[i] = s_.right[i] - x[i], paths[i].target = paths[i].target - x[i];
      }
    }
  }

  /// Adds to the demand of bilateral rows what their raised R takes from it at the impulses of this linear problem. The
  /// demand then stays, so that all linear problems of a step belong to one problem.
  void meet(LaneJointRow<T>* paths, int n, Mask<T> lanes) {
    T* const x = s_.right + n;
    std::copy_n(s_.right, n, x);
    substitute(s_.matrix, n, x);
    for (int i = 0; i < s_.npath; ++i) {
      if (!paths[i].bilateral()) continue;
      const T taken = select(lanes, (paths[i].metric.R - paths[i].metric.own_R) * x[i], zero());
      s_.right[i] = s_.right[i] + taken, paths[i].target = paths[i].target + taken;
    }
  }

  TARSUS_INLINE static T zero() { return T(R(0)); }
  TARSUS_INLINE static T one() { return T(R(1)); }
  template <bool kTurns>
  TARSUS_INLINE static Vec3<T> side(const Motion<T>& a, const Vec3<T>& arm) {
    return kTurns ? a.w : cross_add(a.w, arm, a.v);
  }
  template <class Contact>
  TARSUS_INLINE static Vec3<T> in_axes(const Contact& c, const Vec3<T>& u) {
    return {dot(c.n, u), dot(c.t1, u), dot(c.t2, u)};
  }
  template <bool kTurns>
  Vec3<T> of(const LaneContact<T>& c, const LinkMotions<T>& motion) const {
    if (c.link >= 0) return in_axes(c, side<kTurns>(*motion[c.link], c.arm_a));
    Vec3<T> out[1];
    between<kTurns>(c, motion, out);
    return out[0];
  }
  /// Motions, N of each link, of each lane's link on one side.
  template <int N>
  TARSUS_INLINE static void pick(const LaneTouch<T>* touch, int count, const LinkMotions<T>& motion,
                                 Motion<T> (&out)[N]) {
    for (int k = 0; k < N; ++k) out[k] = world_velocity<T>();
    for (int i = 0; i < count; ++i) {
      const Motion<T>* from = motion[touch[i].link];
      const Mask<T> lanes = touch[i].lanes;
      for (int k = 0; k < N; ++k)
        out[k] = {select<T>(lanes, from[k].w, out[k].w), select<T>(lanes, from[k].v, out[k].v)};
    }
  }
  /// p[link][n][k] -= the wrench of the extra row's `push` at its point, on each lane's links.
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
  /// The same for a row along a generalised direction, and its force on the joints.
  void apply(const LanePathDirection<T>& d, T push, int n, int k) {
    d.each_link([&](int link, const Force<T>& f) {
      Force<T>& p = s_.force[link * n + k];
      p = {p.n - f.n * push, p.f - f.f * push};
    });
    d.each_dof([&](int dof, T j) { s_.path_force[n * dof + k] += j * push; });
  }
  /// The applied forces on the joints; null if no row has any.
  const T* path_force() const { return m_.path_dofs > 0 ? s_.path_force : nullptr; }

  /// Marks this link and its ancestors.
  void mark(int link, char* links) const {
    for (int i = link; i >= 0 && !links[i]; i = v_.link[i].parent) links[i] = 1;
  }
  void mark(const LaneExtra<T>& c, char* links) const {
    each_touch(c, [&](int link, bool, Mask<T>) { mark(link, links); });
  }
  void mark(const LanePathDirection<T>& d, char* links) const {
    d.each_link([&](int link, const Force<T>&) { mark(link, links); });
    d.each_dof([&](int dof, T) { mark(m_.dof_link[dof], links); });
  }
  static void clear(LaneExtra<T>& e) {
    e.live = no_lanes<T>(), e.a = e.b = Bits<T>{};
    e.n = e.t1 = e.t2 = e.arm_a = e.arm_b = e.force = zero3<T>();
    e.Gnn = e.Gss = e.Gsn = e.G1n = e.G2n = e.G11 = e.G12 = e.G22 = zero(), e.moment = false;
  }
  /// Copies the place of a contact from lane `from` to lane `to`.
  template <class Contact>
  static void copy_place(const Contact& c, int from, LaneExtra<T>& e, int to) {
    e.live[to] = -1, e.a[to] = c.a[from], e.b[to] = c.b[from];
    copy_lane(c.n, from, e.n, to), copy_lane(c.t1, from, e.t1, to), copy_lane(c.t2, from, e.t2, to);
    copy_lane(c.arm_a, from, e.arm_a, to), copy_lane(c.arm_b, from, e.arm_b, to);
  }
  static void copy_lane(const Vec3<T>& x, int from, Vec3<T>& y, int to) {
    y.x.set(to, x.x[from]), y.y.set(to, x.y[from]), y.z.set(to, x.z[from]);
  }

  /// Copies a term of contact c to the next of `extras` in each of the lanes `here`; f(lane, extra) copies the rest of
  /// G.
  /// @param used [lane] number of `extras`  @param most the largest of them
  template <class Term, class F>
  void each_extra(const Term& from, const LaneContact<T>& c, Mask<T> here, LaneExtra<T>* extras, int* used, int& most,
                  const F& f) {
    for (int l = 0; l < kLanes; ++l) {
      if (!here[l]) continue;
      LaneExtra<T>& to = extras[used[l]];
      if (used[l]++ == most) clear(to), ++most;
      s_.item[nitem_++] = {l, int(&to - s_.extra)};
      copy_place(c, l, to, l), copy_lane(from.at.next_y, l, to.force, l);
      to.G1n.set(l, from.G1n[l]), to.G2n.set(l, from.G2n[l]);
      to.G11.set(l, from.G11[l]), to.G12.set(l, from.G12[l]), to.G22.set(l, from.G22[l]);
      f(l, to);
    }
  }
  void no_forces(int count, const char* links) {
    if (m_.path_dofs > 0) std::fill(s_.path_force, s_.path_force + count * v_.nv, zero());
    for (int i = 0; i < v_.nlink; ++i) {
      for (int k = 0; k < count && (!links || links[i]); ++k) s_.force[count * i + k] = {zero3<T>(), zero3<T>()};
    }
  }

  /// Extra rows: first forces, then moments.
  LaneExtra<T>& extra(int i) { return s_.extra[i < nextra_ ? i : m_.most_crossings + i - nextra_]; }
  /// G J of an extra row, times N motions of each link.
  template <int N>
  TARSUS_INLINE void react(const LaneExtra<T>& e, const LinkMotions<T>& motion, Vec3<T> (&out)[N]) const {
    Vec3<T> u[N], turn[N];
    between<false>(e, motion, u);
    if (e.moment) between<true>(e, motion, turn);
    for (int k = 0; k < N; ++k) out[k] = e.moment ? times(e, u[k].x, turn[k]) : times(e, u[k]);
  }

  /// Columns of W for the rows along generalised directions. Marks the links whose motions the extra rows need.
  void add_path_columns(int n) {
    std::fill(s_.needed, s_.needed + v_.nlink, char(0));
    for (int j = 0; j < nextra_ + nextra_spin_; ++j) mark(extra(j), s_.needed);
    for (int i = 0; i < s_.npath; ++i) mark(direction(s_.paths()[i]), s_.needed);
    for (int first = 0; first < s_.npath; first += 3) add_path_columns(first, std::min(3, s_.npath - first), n);
  }
  /// The same for up to three of them.
  [[gnu::noinline]] void add_path_columns(int first, int count, int n) {
    const LaneJointRow<T>* const paths = s_.paths();
    std::fill(s_.pushed, s_.pushed + v_.nlink, char(0));
    no_forces(3, s_.needed);
    for (int k = 0; k < count; ++k) {
      const LanePathDirection<T> d = direction(paths[first + k]);
      mark(d, s_.pushed), apply(d, one(), 3, k);
    }
    T* const x = m_.path_dofs > 0 ? s_.path_x : nullptr;
    lane_substitute<3, T>(v_, state_, s_.link, s_.force, path_force(), nullptr, nullptr, s_.pushed, s_.needed, s_.left,
                          s_.column, x);
    const LinkMotions<T> motion = motions_of(s_.column, 3);
    for (int i = 0; i < s_.npath; ++i) {
      for (int k = 0; k < count; ++k) s_.matrix[i * n + first + k] = direction(paths[i]).along(motion, x, k, 3);
    }
    for (int i = 0; i < nextra_ + nextra_spin_; ++i) {
      Vec3<T> gw[3];
      react<3>(extra(i), motion, gw);
      for (int k = 0; k < count; ++k) {
        for (int r = 0; r < 3; ++r) s_.matrix[(s_.npath + 3 * i + r) * n + first + k] = gw[k][r];
      }
    }
  }

  /// Columns of G W for `count` blocks of one kind, from item `first` on. A lane of the columns uses the factors of its
  /// contact's lane, so that contacts of few lanes share a pass.
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
    T* const x = m_.path_dofs > 0 ? s_.path_x : nullptr;
    lane_substitute<3, T>(v_, state_, s_.link, s_.force, nullptr, nullptr, nullptr, s_.pushed, s_.needed, s_.left,
                          s_.column, x, of);
    const auto put = [&](int line, const Vec3<T>& values) {
      for (int j = 0; j < blocks; ++j) {
        const Mask<T> here = s_.place[j] >= Bits<T>{};
        if (!any_lane(here)) continue;
        T* const to = s_.matrix + line * n + s_.npath + 3 * j;
        for (int k = 0; k < 3; ++k) to[k] = select(here, permute(values[k], s_.place[j]), to[k]);
      }
    };
    for (int i = 0; i < s_.npath; ++i) {
      const LanePathDirection<T> d = direction(s_.paths()[i]);
      const auto along = [&](int k) { return d.along(motions_of(s_.column, 3), x, k, 3, of); };
      put(i, {along(0), along(1), along(2)});
    }
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
      react<3>(row, motions_of(s_.column, 3), gw);
      for (int r = 0; r < 3; ++r) put(s_.npath + 3 * i + r, {gw[0][r], gw[1][r], gw[2][r]});
    }
    ntouch_ = touches;
  }

  const ModelView<R>& v_;
  const LaneModel<R>& m_;
  LinkState<T>* state_;
  LaneSpace<T>& s_;
  int nextra_ = 0, nextra_spin_ = 0, nitem_ = 0, ntouch_ = 0;
  int extras_[kLanes];  ///< each lane's number of contacts between links in the present linear problem
  int extra_spins_[kLanes];
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
