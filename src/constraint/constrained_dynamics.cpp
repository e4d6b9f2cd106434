// Forward dynamics under equality constraints (constrained_dynamics.hpp has the equations).
//
// A world's rows are eliminated branch by branch if that applies, else in one LDLᵀ without pivoting, O(m³). A pivot
// near zero sends the world to a rank-revealing solve (solver/multipliers.hpp), which finds redundant and inconsistent
// rows. Rows with a zero Delassus entry are dropped before that.
#include "tarsus/constraint/constrained_dynamics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "constraint/branches.hpp"
#include "constraint/kernel_table.hpp"
#include "dynamics/delassus_table.hpp"
#include "dynamics/kernel_table.hpp"
#include "dynamics/pack_arrays.hpp"
#include "tarsus/math/larger.hpp"
#include "tarsus/solver/multipliers.hpp"

namespace tarsus {

const char* name(KktStatus status) {
  static constexpr const char* kNames[] = {"solved", "redundant", "inconsistent", "not_finite"};
  return kNames[int(status)];
}

template <class R>
ConstrainedDynamics<R>::ConstrainedDynamics(const Model& model, const EqualitySet& equalities, const BasicData<R>& data,
                                            bool branches)
    : model_(model),
      equalities_(equalities),
      width_(data.width()),
      worlds_(data.worlds()),
      rows_(model, data.width()),
      elsewhere_(model, data.width()),
      status_(data.worlds(), KktStatus::solved),
      closed_(data.worlds(), 1),
      by_branches_(data.worlds(), 0) {
  if (&equalities.model() != &model) throw ValueError("equalities", "made for another model", "this model's own");
  equalities.add_blocks(rows_);
  const int m = rows();
  for (auto* v : {&phi_, &rate_, &bias_, &demand_, &x2_}) v->resize(data.size(m));
  const std::size_t w = width_;
  pack_.A.resize(w * m * rows_.leading_dimension());
  // Kernels read whole packs of rows.
  for (auto* v : {&pack_.inverse, &pack_.scale, &pack_.rhs, &pack_.sigma, &pack_.projection})
    v->resize(w * rows_.leading_dimension());
  for (auto* v : {&pack_.u, &pack_.trial_v, &pack_.last_v, &pack_.zero}) v->resize(w * model.nv);
  pack_.push.resize(std::max(pack_.u.size(), w * m));
  pack_.least.resize(w), pack_.trust.resize(w);
  if (!branches) return;
  branches_ = std::make_unique<Branches<R>>(model, rows_);
  if (!branches_->apply()) branches_.reset();
  branch_.quality.resize(w), branch_.qacc.resize(pack_.u.size()), branch_.x2.resize(w * m);
}

template <class R>
ConstrainedDynamics<R>::~ConstrainedDynamics() = default;

template <class R>
void ConstrainedDynamics<R>::check(const BasicData<R>& data) const {
  if (data.width() != width_ || data.worlds() != worlds_)
    throw ValueError("data", "of another shape", "the shape that this was made for");
}

/// Whether there are many more rows than DoFs, without compliance. They are then dependent, even if only one row of
/// each weld can move. Elimination would find that out in O(m³), solve_rank_revealing() in O(m² rank).
static bool outnumber(const EqualitySet& equalities, int dofs) {
  if (equalities.rows() <= 6 * dofs) return false;
  for (int i = 0; i < equalities.size(); ++i) {
    if (equalities[i].softness.compliance > 0) return false;
  }
  return true;
}

template <class R>
void ConstrainedDynamics<R>::accelerate(BasicData<R>& data, double dt, In<R> qpos, In<R> qvel, In<R> Q, In<R> K,
                                        Out<R> qacc, double drift_time, bool bounded) {
  check(data);
  check_size("qpos", qpos.size(), data.size(model_.nq));
  check_sizes(data, model_.nv, "qvel", qvel, "joint_force", Q, "joint_inertia", K, "qacc", qacc);
  const std::size_t q = std::size_t(model_.nq) * width_, v = std::size_t(model_.nv) * width_;
  for (int p = 0; p < data.packs(); ++p) {
    const Inputs in{
        p, dt, drift_time, qpos.data() + p * q, qvel.data() + p * v, Q.data() + p * v, K.data() + p * v, bounded};
    if (branches_ && !outnumber(equalities_, model_.nv))
      solve_branches(data, in, qacc.data() + p * v);
    else
      solve_pack(data, in, qacc.data() + p * v);
  }
}

/// Largest recovery speed of an open loop without compliance [m/s]. A loop that a file leaves open by a decimetre would
/// otherwise close in four steps, at hundreds of metres a second if the steps are short.
constexpr double kLoopReturn = 10;
constexpr double kWeldReturn = 2 * kLoopReturn;  ///< of a weld's angle [rad/s]; its rows have the half angle

/// target = a φ + b rate + c bias.
template <class R>
static void weigh(std::size_t n, R a, R b, R c, const R* phi, const R* rate, const R* bias, R* __restrict target) {
  for (std::size_t k = 0; k < n; ++k) target[k] = a * phi[k] + b * rate[k] + c * bias[k];
}

/// Limits the pull a φ of open loops [begin, end), along φ, to what closes them at kLoopReturn. A weld's angles have
/// φ = s sin(θ/2) for torquescale s. Their rate is ω times s/2 cos(θ/2), the length of the moment Jᵀ φ/|φ|.
/// @param rows of the loops, with their forces  @param most kLoopReturn over the time in which the pull acts
/// @param bias of exact accelerations; null: `target` has none. That of an angle near half a turn asks for
/// tan(θ/2) ω²/2, and is left out along φ
template <class R>
static void slow_down(const EqualitySet& equalities, int begin, int end, DelassusRows<R>& rows, R a, R most,
                      const R* phi, const R* bias, R* target) {
  constexpr R kNear = R(0.25);  // of s; three components of this size are 52° of a turn
  const std::size_t w = rows.width();
  for (int i = begin; i < end; ++i) {
    const Equality& e = equalities[i];
    for (int row = 0; row < e.nrow; row += 3) {
      const bool turns = e.kind == EqualityKind::weld && row == 3;
      const std::size_t first = (e.first_row + row) * w, last = (e.first_row + std::min(row + 3, e.nrow)) * w;
      const R half = most / (2 * a), near = turns ? R(e.torque_scale) * std::min(half, kNear) : half;
      const auto far = [&](R x) { return !(std::abs(x) < near); };  // three rows may be √3 times as far
      if (std::none_of(phi + first, phi + last, far)) continue;
      const R* const force = turns ? rows.block(i).force : nullptr;
      const std::size_t stride = turns ? rows.block(i).stride : 0;
      for (std::size_t lane = 0; lane < w; ++lane) {
        R square = 0, moment2 = 0;
        for (std::size_t k = first + lane; k < last; k += w) square += phi[k] * phi[k];
        for (std::size_t axis = 0; turns && axis < 3; ++axis) {
          R moment = 0;
          for (std::size_t k = 0; k < 3; ++k)
            moment += force[(axis * stride + 3 + k) * w + lane] * phi[first + k * w + lane];
          moment2 += moment * moment;
        }
        const R length = std::sqrt(square), pull = a * length,
                bound = turns ? R(kWeldReturn / kLoopReturn) * most * std::sqrt(moment2) / length : most;
        if (!(pull > bound)) continue;
        R along = 0;
        for (std::size_t k = first + lane; turns && bias && k < last; k += w) along += bias[k] * phi[k];
        const R less = (1 - bound / pull) * a + along / square;
        for (std::size_t k = first + lane; k < last; k += w) target[k] -= less * phi[k];
      }
    }
  }
}

/// -y₂ and Σ. Consecutive constraints of the same softness, mostly all, are one run.
template <class R>
static void set_targets(const EqualitySet& equalities, DelassusRows<R>& rows, double dt, double drift_time,
                        bool bounded, const R* phi, const R* rate, const R* bias, const R* ahead, R* target, R* sigma) {
  const std::size_t w = rows.width();
  for (int i = 0; i < equalities.size();) {
    const Softness soft = equalities[i].softness;
    const std::size_t first = equalities[i].first_row * w;
    const int begin = i;
    std::size_t n = 0;
    for (; i < equalities.size() && equalities[i].softness == soft; ++i) n += equalities[i].nrow * w;
    double a = 0, b = 0, c = 1, softness = 0;
    if (dt > 0) {
      const double damping = 1 + 4 * soft.damping_steps;
      a = 4 / (dt * dt * damping), b = (1 - 1 / damping) / dt, c = 0,
      softness = 4 * soft.compliance / (dt * dt * damping);
    } else if (drift_time > 0) {
      a = 1 / (drift_time * drift_time), b = 2 / drift_time;
    }
    weigh<R>(n, R(a), R(b), R(c), phi + first, rate + first, bias + first, target + first);
    const R half = R(1 - b * dt / 2);  // J q̇ + h J q̈ + ½ h J̇ q̇ is what remains of J q̇ - ½ h J̇ q̇
    for (std::size_t k = first; dt > 0 && ahead && k < first + n; ++k) target[k] += half * ahead[k] * bias[k];
    std::fill_n(sigma + first, n, R(softness));
    if ((dt > 0 || (bounded && a > 0)) && soft.compliance == 0)
      slow_down(equalities, begin, i, rows, R(a), R(kLoopReturn * (dt > 0 ? 1 / dt : b)), phi, dt > 0 ? nullptr : bias,
                target);
  }
}

/// φ, rates, bias and the blocks' forces; -y₂ in pack_.rhs, Σ. @param data, place workspace and pack with the links
template <class R>
void ConstrainedDynamics<R>::evaluate_rows(const BasicData<R>& data, int place, const Inputs& in) {
  const std::size_t w = width_, m = rows(), first = in.pack * m * w;
  R *phi = phi_.data() + first, *rate = rate_.data() + first, *bias = bias_.data() + first;
  equalities_.evaluate<R>(data, place, {in.qpos, w * model_.nq}, {in.qvel, w * model_.nv}, rows_, {phi, m * w},
                          {rate, m * w}, {bias, m * w});
  const R* pull = phi;
  if (equalities_.has_tendons()) {
    pack_.pull.assign(phi, phi + m * w), pull = pack_.pull.data();
    equalities_.limit_lengths<R>(data.own ? data.own + place : nullptr, int(w), {in.qpos, w * model_.nq}, pack_.pull);
  }
  set_targets(equalities_, rows_, in.dt, in.drift_time, in.bounded, pull, rate, bias,
              ahead_.empty() ? nullptr : ahead_.data() + first, pack_.rhs.data(), pack_.sigma.data());
  for (std::size_t world = in.pack * w; world < std::min((in.pack + 1) * w, status_.size()); ++world)
    status_[world] = KktStatus::solved;
}

/// Records the status of a world's rows; the worst one stays.
template <class R>
void ConstrainedDynamics<R>::worsen(int world, KktStatus status) {
  if (world < worlds_) status_[world] = std::max(status_[world], status);
}

/// Solves a pack with all rows in one factor.
template <class R>
void ConstrainedDynamics<R>::solve_pack(BasicData<R>& data, const Inputs& in, R* qacc) {
  const ModelView<R> view = data.view(model_, in.pack);
  const DelassusTable<R>& sweeps = delassus_table<R>(width_);
  void* state = data.state(in.pack);
  const std::size_t w = width_, m = rows();
  R* x2 = x2_.data() + in.pack * m * w;
  constraint_table<R>(width_).prepare(view, state, in.qpos, in.qvel, in.Q, in.K);
  sweeps.read_u(view, state, pack_.u.data());
  evaluate_rows(data, in.pack, in);
  rows_.sweep(model_, data, in.pack);
  rows_.velocity(pack_.u.data(), pack_.push.data());
  for (std::size_t k = 0; k < m * w; ++k) pack_.rhs[k] += pack_.push[k];
  rows_.gram(pack_.A.data(), rows_.leading_dimension());
  factor_rows(in.pack);
  multipliers(in.pack, false, x2);
  rows_.push(x2, pack_.u.data(), -1);
  sweeps.outward(view, state, pack_.u.data(), qacc);
}

/// Solves a pack branch by branch. Worlds in which a branch's joints cannot move all its rows are solved again with all
/// rows at once. A world's result does not depend on its neighbours'.
template <class R>
void ConstrainedDynamics<R>::solve_branches(BasicData<R>& data, const Inputs& in, R* qacc) {
  const ModelView<R> view = data.view(model_, in.pack);
  const ConstraintTable<R>& kernels = constraint_table<R>(width_);
  void* state = data.state(in.pack);
  const std::size_t w = width_, m = rows();
  R* x2 = x2_.data() + in.pack * m * w;
  kernels.prepare_branches(view, state, in.qpos, in.qvel, in.Q, in.K, pack_.u.data());
  evaluate_rows(data, in.pack, in);
  kernels.branches(view, state, branches_->view(), in.Q, in.K, pack_.rhs.data(), pack_.sigma.data(), pack_.u.data(), x2,
                   qacc, branch_.quality.data());
  int done = 0;
  for (std::size_t lane = 0; lane < w; ++lane) {
    const std::size_t world = in.pack * w + lane;
    done += branch_.quality[lane] > 0;
    if (int(world) < worlds_) by_branches_[world] = branch_.quality[lane] > 0;
  }
  if (done == width_) return;
  std::copy_n(x2, m * w, branch_.x2.begin());
  solve_pack(data, in, branch_.qacc.data());
  for (std::size_t lane = 0; lane < w; ++lane) {
    const bool good = branch_.quality[lane] > 0;
    if (good && int(in.pack * w + lane) < worlds_) status_[in.pack * w + lane] = KktStatus::solved;
    for (std::size_t k = lane; good && k < m * w; k += w) x2[k] = branch_.x2[k];
    for (std::size_t k = lane; !good && k < branch_.qacc.size(); k += w) qacc[k] = branch_.qacc[k];
  }
}

/// LDLᵀ of pack_.A + Σ, with pack_.rhs as a further column. Rows that no motion changes (kZeroRow) are dropped; their
/// multiplier is zero.
template <class R>
void ConstrainedDynamics<R>::factor_rows(int pack) {
  const std::size_t m = rows(), ld = rows_.leading_dimension();
  if (m == 0) return;
  const ConstraintTable<R>& kernels = constraint_table<R>(width_);
  if (kernels.ldl_load(int(m), int(ld), pack_.A.data(), pack_.sigma.data(), pack_.rhs.data(), kZeroRow<R>,
                       kPivotShare<R>, pack_.scale.data()))
    drop_zero_rows(pack);
  if (outnumber(equalities_, model_.nv)) {
    std::fill(pack_.inverse.begin(), pack_.inverse.end(), R(0)),
        std::fill(pack_.least.begin(), pack_.least.end(), R(0));
    return;
  }
  kernels.ldl(int(m), int(ld), pack_.A.data(), pack_.inverse.data(), pack_.scale.data(), pack_.least.data());
}

template <class R>
void ConstrainedDynamics<R>::drop_zero_rows(int pack) {
  const std::size_t w = width_, m = rows(), ld = rows_.leading_dimension();
  for (std::size_t lane = 0; lane < w; ++lane) {
    R largest = 0;
    for (std::size_t r = 0; r < m; ++r) largest = std::max(largest, pack_.A[(r * ld + r) * w + lane]);
    for (std::size_t r = 0; r < m; ++r) {
      if (pack_.A[(r * ld + r) * w + lane] <= kZeroRow<R> * largest)
        drop_row(pack, int(lane), int(r), std::max(largest, R(1)));
    }
  }
}

/// Drops a row that no motion changes: a diagonal without demand. The status says so, and whether the demand was met.
template <class R>
void ConstrainedDynamics<R>::drop_row(int pack, int lane, int row, R diagonal) {
  const std::size_t w = width_, m = rows(), line = row * std::size_t(rows_.leading_dimension()), at = row * w + lane;
  pack_.A[(line + row) * w + lane] = diagonal, pack_.scale[at] = diagonal;
  const bool met = std::abs(pack_.rhs[at]) <= (sizeof(R) == 8 ? R(1e-7) : R(1e-3));
  pack_.rhs[at] = 0, pack_.A[(line + m) * w + lane] = 0;
  worsen(pack * width_ + lane, met ? KktStatus::redundant : KktStatus::inconsistent);
}

/// Multipliers for pack_.rhs. @param again pack_.rhs has changed since factor_rows()
template <class R>
void ConstrainedDynamics<R>::multipliers(int pack, bool again, R* x2) {
  const std::size_t w = width_, m = rows(), ld = rows_.leading_dimension();
  if (m == 0) return;
  const ConstraintTable<R>& kernels = constraint_table<R>(width_);
  if (again) {
    AlignedVector<R>& b = pack_.push;
    std::copy_n(pack_.rhs.begin(), m * w, b.begin());
    kernels.ldl_forward(int(m), int(ld), pack_.A.data(), pack_.inverse.data(), b.data());
  }
  kernels.ldl_back(int(m), int(ld), pack_.A.data(), pack_.inverse.data(), pack_.scale.data(), kDependent<R>, x2,
                   pack_.trust.data());
  for (std::size_t lane = 0; lane < w; ++lane) {
    if (!(pack_.least[lane] > kDependent<R> && pack_.trust[lane] >= 0)) solve_rank_revealing(pack, int(lane), x2);
  }
}

/// Factors M̂ at qpos, and Λ⁻¹ of the rows there.
template <class R>
void ConstrainedDynamics<R>::prepare_rows(BasicData<R>& data, int pack, const R* qpos, const R* K) {
  const ModelView<R> view = data.view(model_, pack);
  const std::size_t w = width_, m = rows();
  constraint_table<R>(width_).pose(view, data.state(pack), qpos);
  constraint_table<R>(width_).reduce(view, data.state(pack), pack_.zero.data(), K);
  elsewhere_.share_mocap(data, pack);
  equalities_.evaluate<R>(data, pack, {qpos, w * model_.nq}, {}, rows_, {phi_.data() + pack * m * w, m * w}, {}, {});
  rows_.sweep(model_, data, pack);
  rows_.gram(pack_.A.data(), rows_.leading_dimension());
  std::fill(pack_.sigma.begin(), pack_.sigma.end(), R(0)), std::fill(pack_.rhs.begin(), pack_.rhs.end(), R(0));
  factor_rows(pack);
}

template <class R>
int ConstrainedDynamics<R>::close(BasicData<R>& data, double h, In<R> qpos, In<R> K, Out<R> v, Out<R> next_qpos) {
  check(data);
  check_sizes(data, model_.nq, "qpos", qpos, "next_qpos", next_qpos);
  check_sizes(data, model_.nv, "joint_inertia", K, "v", v);
  int open = 0;
  const std::size_t nq = std::size_t(model_.nq) * width_, nv = std::size_t(model_.nv) * width_;
  for (int p = 0; p < data.packs(); ++p) {
    prepare_rows(data, p, qpos.data() + p * nq, K.data() + p * nv);
    int left = close_pack(data, p, R(h), qpos.data() + p * nq, v.data() + p * nv, next_qpos.data() + p * nq);
    if (left > 0)
      left = close_from_there(data, p, R(h), K.data() + p * nv, v.data() + p * nv, next_qpos.data() + p * nq);
    open += left;
  }
  return open;
}

/// The chord iteration uses the rows of the step's start, which fails near singular postures and in large steps. Lanes
/// that it left open are projected from its result with the rows there, a few times. v gets the displacement over h.
template <class R>
int ConstrainedDynamics<R>::close_from_there(BasicData<R>& data, int pack, R h, const R* K, R* v, R* next_qpos) {
  constexpr int kBases = 5;
  const std::size_t w = width_, nq = std::size_t(model_.nq) * w, nv = std::size_t(model_.nv) * w;
  std::vector<char> was_open(w, 0);
  for (std::size_t lane = 0; lane < w && int(pack * w + lane) < worlds_; ++lane)
    was_open[lane] = !closed_[pack * w + lane];
  int open = 0;
  AlignedVector<R> base(nq), moved(nv), end(nq);
  for (int k = 0; k < kBases; ++k) {
    std::copy(next_qpos, next_qpos + nq, base.begin());
    std::fill(moved.begin(), moved.end(), R(0));
    prepare_rows(data, pack, base.data(), K);
    open = close_pack(data, pack, R(1), base.data(), moved.data(), end.data());
    for (std::size_t lane = 0; lane < w; ++lane) {
      if (!was_open[lane]) continue;
      for (std::size_t i = lane; i < nq; i += w) next_qpos[i] = end[i];
      for (std::size_t i = lane; i < nv; i += w) v[i] += moved[i] / h;
      was_open[lane] = !closed_[pack * w + lane];
    }
    if (open == 0) break;
  }
  return open;
}

/// M̂⁻¹ Jᵀ times the multipliers for pack_.rhs, in pack_.trial_v.
template <class R>
void ConstrainedDynamics<R>::find_correction(BasicData<R>& data, int pack) {
  multipliers(pack, true, pack_.projection.data());
  std::fill(pack_.push.begin(), pack_.push.end(), R(0));
  rows_.push(pack_.projection.data(), pack_.push.data(), -1);
  delassus_table<R>(width_).outward(model_.view<R>(), data.state(pack), pack_.push.data(), pack_.trial_v.data());
}

/// λ -= Λ⁻¹ φ / h in each lane until its φ is within the tolerance or no longer falls.
template <class R>
int ConstrainedDynamics<R>::close_pack(BasicData<R>& data, int pack, R h, const R* qpos, R* v, R* next_qpos) {
  constexpr int kMaxIterations = 40;
  const std::size_t w = width_, m = rows(), nv = std::size_t(model_.nv) * w;
  const R* phi = phi_.data() + pack * m * w;
  std::vector<R> worst(w, std::numeric_limits<R>::infinity()), shift(worst);
  std::vector<char> falls(w, 1);
  std::copy_n(v, nv, pack_.last_v.begin());
  for (int round = 0;; ++round) {
    move_and_look(pack, h, qpos, v, next_qpos);
    bool any = false, back = false;
    for (std::size_t lane = 0; lane < w; ++lane) {
      if (!falls[lane]) continue;
      const R last = worst[lane];
      worst[lane] = largest_of(phi, m, lane);
      falls[lane] = worst[lane] > tolerance() && worst[lane] < last, any = any || falls[lane];
      const bool lost = !std::isfinite(worst[lane]) || !std::isfinite(largest_of(v, model_.nv, lane));
      R *from = lost ? pack_.last_v.data() : v, *to = lost ? v : pack_.last_v.data();
      for (std::size_t i = lane; i < nv; i += w) to[i] = from[i];
      back = back || lost;
    }
    if (!any || round == kMaxIterations) {
      if (back) move_and_look(pack, h, qpos, v, next_qpos);
      break;
    }
    for (std::size_t k = 0; k < m * w; ++k) pack_.rhs[k] = phi[k] / h;
    find_correction(data, pack);
    for (std::size_t lane = 0; lane < w; ++lane) {
      if (!falls[lane]) continue;
      for (std::size_t i = lane; i < nv; i += w) v[i] += pack_.trial_v[i];
      shift[lane] = h * largest_of(pack_.trial_v.data(), model_.nv, lane);
    }
  }
  int open = 0;
  for (std::size_t lane = 0; lane < w && int(pack * w + lane) < worlds_; ++lane) {
    // Far from the origin, the rounding of configurations may exceed the tolerance. A file's anchors may also be off by
    // their last digits in a direction that no motion changes.
    const bool stuck = shift[lane] <= 10 * tolerance() && worst[lane] <= (sizeof(R) == 8 ? R(1e-6) : R(1e-3));
    closed_[pack * w + lane] = worst[lane] <= 100 * tolerance() || stuck;
    open += !closed_[pack * w + lane];
  }
  return open;
}

/// next_qpos = qpos ⊞ h v, and φ there. J stays that of qpos in W; the blocks' forces become invalid.
template <class R>
void ConstrainedDynamics<R>::move_and_look(int pack, R h, const R* qpos, const R* v, R* next_qpos) {
  const ModelView<R> view = model_.view<R>();
  const std::size_t size = std::size_t(rows()) * width_;
  kernel_table<R>(width_).integrate(view, qpos, v, h, next_qpos);
  kernel_table<R>(width_).kinematics(view, elsewhere_.state(0), next_qpos, nullptr);
  equalities_.evaluate<R>(elsewhere_, 0, {next_qpos, std::size_t(model_.nq) * width_}, {}, rows_,
                          {phi_.data() + pack * size, size}, {}, {});
}

/// max |x| of a lane; NaN if one is NaN.
template <class R>
R ConstrainedDynamics<R>::largest_of(const R* x, std::size_t n, std::size_t lane) const {
  R worst = 0;
  for (std::size_t i = 0; i < n; ++i) worst = larger(worst, std::abs(x[i * width_ + lane]));
  return worst;
}

template <class R>
void ConstrainedDynamics<R>::settle(BasicData<R>& data, In<R> qpos, In<R> K, Out<R> v) {
  check(data);
  check_size("qpos", qpos.size(), data.size(model_.nq));
  check_sizes(data, model_.nv, "joint_inertia", K, "v", v);
  const ModelView<R> view = model_.view<R>();
  const std::size_t w = width_, m = rows(), nv = std::size_t(model_.nv) * w, nq = std::size_t(model_.nq) * w;
  for (int p = 0; p < data.packs(); ++p) {
    const R* q = qpos.data() + p * nq;
    R* velocity = v.data() + p * nv;
    prepare_rows(data, p, q, K.data() + p * nv);
    R* rate = rate_.data() + p * m * w;
    for (int round = 0; round < 2; ++round) {  // the second removes rounding
      kernel_table<R>(width_).kinematics(view, elsewhere_.state(0), q, velocity);
      row_rates(velocity, rate);
      std::copy(rate, rate + m * w, pack_.rhs.begin());
      find_correction(data, p);
      for (std::size_t i = 0; i < nv; ++i) velocity[i] += pack_.trial_v[i];
    }
  }
}

/// J v from the velocities of the links in elsewhere_, and from v for rows on joints.
template <class R>
void ConstrainedDynamics<R>::row_rates(const R* v, R* rate) {
  const std::size_t w = width_;
  const R* links = static_cast<const R*>(elsewhere_.state(0));
  for (int b = 0; b < rows_.blocks(); ++b) {
    const auto block = rows_.block(b);
    for (int r = 0; r < block.nrow; ++r) {
      for (std::size_t lane = 0; lane < w; ++lane) {
        const auto at = [&](const R* p, int k) { return p[(std::size_t(k) * block.stride + r) * w + lane]; };
        R sum = 0;
        for (int side = 0; block.force && side < 2; ++side) {
          const int link = side ? block.b : block.a;
          if (link < 0) continue;
          // LinkState<T> is an array of T, and T is [lane].
          constexpr std::size_t kSize = sizeof(LinkState<R>) / sizeof(R),
                                kVelocity = offsetof(LinkState<R>, v) / sizeof(R);
          const R* velocity = links + (link * kSize + kVelocity) * w + lane;
          for (int k = 0; k < 6; ++k) sum += at(block.force, 6 * side + k) * velocity[k * w];
          if (block.joint) sum += at(block.joint, side) * v[std::size_t(model_.joints[link].qvel) * w + lane];
        }
        for (std::size_t k = 0; !block.force && k < block.dofs.size(); ++k)
          sum += at(block.joint, int(k)) * v[block.dofs[k] * w + lane];
        rate[std::size_t(block.first_row + r) * w + lane] = sum;
      }
    }
  }
}

template <class R>
void ConstrainedDynamics<R>::evaluate(BasicData<R>& data, double dt, In<R> qpos, In<R> qvel, int pack) {
  // J̇ q̇ needs the accelerations at q̈ = 0. Without it data's poses and velocities do.
  const bool placed = dt > 0 && ahead_.empty() && width_ == 1;
  const R* const q = pack_of(qpos, model_.nq, pack, width_);
  const R* const v = pack_of(qvel, model_.nv, pack, width_);
  if (!placed) {
    elsewhere_.own = data.own ? data.own + pack : nullptr;
    elsewhere_.share_mocap(data, pack);
    constraint_table<R>(width_).place(data.view(model_, pack), elsewhere_.state(0), q, v);
  }
  evaluate_rows(placed ? data : elsewhere_, 0, {pack, dt, 0, q, v, nullptr, nullptr, false});
  const std::size_t n = std::size_t(rows()) * width_;
  for (std::size_t r = 0; r < n; ++r) demand_[std::size_t(pack) * n + r] = -pack_.rhs[r];
}

template <class R>
template <class X>
void ConstrainedDynamics<R>::record(std::span<const X> impulse, double h, std::span<const X> missed, int pack) {
  const std::size_t w = width_, first = std::size_t(pack) * w;
  for (std::size_t world = first; world < std::min(first + w, status_.size()); ++world) {
    const X most = missed[world - first];
    if (most > X(sizeof(R) == 8 ? 1e-5 : 1e-3)) status_[world] = KktStatus::inconsistent;  // [m/s | rad/s]
    if (!std::isfinite(most)) status_[world] = KktStatus::not_finite;
  }
  R* const x2 = x2_.data() + std::size_t(pack) * impulse.size();
  for (std::size_t i = 0; i < impulse.size(); ++i) {
    x2[i] = R(-double(impulse[i]) / h);
    const std::size_t world = first + i % w;
    if (!std::isfinite(impulse[i]) && world < status_.size()) status_[world] = KktStatus::not_finite;
  }
}

/// Multipliers of one world with dependent rows.
template <class R>
void ConstrainedDynamics<R>::solve_rank_revealing(int pack, int lane, R* x2) {
  const int m = rows(), ld = rows_.leading_dimension();
  pack_.gram.resize(std::max(pack_.gram.size(), pack_.A.size()));
  rows_.gram(pack_.gram.data(), ld);  // pack_.A holds its factor
  std::vector<double> A(std::size_t(m) * m), b(m), x(m);
  for (int r = 0; r < m; ++r) {
    for (int c = r; c < m; ++c)
      A[std::size_t(r) * m + c] = double(pack_.gram[(std::size_t(r) * ld + c) * width_ + lane]);
    A[std::size_t(r) * m + r] += double(pack_.sigma[std::size_t(r) * width_ + lane]);
    b[r] = double(pack_.rhs[std::size_t(r) * width_ + lane]);
  }
  std::vector<double> size(m);
  equalities_.each_unit(0, equalities_.size(), [&](int first, int end) {
    double most = 0;
    for (int r = first; r < end; ++r) most = std::max(most, A[std::size_t(r) * m + r]);
    std::fill(size.begin() + first, size.begin() + end, most);
  });
  const MultiplierReport report = solve_multipliers<R>(m, m, A.data(), b, x, size);
  for (int r = 0; r < m; ++r) x2[std::size_t(r) * width_ + lane] = R(x[r]);
  // The residual of contradictory rows exceeds rounding, which dependent rows magnify.
  const double slack = sizeof(R) == 8 ? 1e-7 : 1e-3;
  KktStatus status = KktStatus::solved;
  if (!report.dependent.empty()) status = KktStatus::redundant;
  if (report.violation > slack) status = KktStatus::inconsistent;
  if (!report.finite) status = KktStatus::not_finite;
  worsen(pack * width_ + lane, status);
}

template <class R>
typename ConstrainedDynamics<R>::Error ConstrainedDynamics<R>::error(int world) const {
  Error e;
  const std::size_t w = width_, first = world / w * w * rows() + world % w;
  for (int r = 0; r < rows(); ++r) {
    const double position = std::abs(double(phi_[first + r * w])), velocity = std::abs(double(rate_[first + r * w]));
    if (!(position <= e.position) || e.row < 0) e.position = position, e.row = r;
    if (!(velocity <= e.velocity)) e.velocity = velocity;
  }
  return e;
}

template class ConstrainedDynamics<double>;
template class ConstrainedDynamics<float>;
template void ConstrainedDynamics<double>::record(std::span<const double>, double, std::span<const double>, int);
template void ConstrainedDynamics<float>::record(std::span<const double>, double, std::span<const double>, int);
template void ConstrainedDynamics<float>::record(std::span<const float>, double, std::span<const float>, int);

}  // namespace tarsus
