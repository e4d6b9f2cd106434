#include "tarsus/constraint/constrained_dynamics.hpp"

#include <algorithm>
#include <cmath>

#include "constraint/kernel_table.hpp"
#include "dynamics/delassus_table.hpp"

namespace tarsus {

const char* name(KktStatus status) {
  switch (status) {
    case KktStatus::solved: return "solved";
    case KktStatus::redundant: return "redundant";
    case KktStatus::inconsistent: return "inconsistent";
    case KktStatus::not_finite: return "not_finite";
  }
  return "solved";
}

namespace {

/// Below it the quick factor hands over: kDependent in double, what float can tell apart in float.
template <class R>
constexpr R kSmallPivot = sizeof(R) == 8 ? R(kDependent) : R(1e-5);

}  // namespace

template <class R>
ConstrainedDynamics<R>::ConstrainedDynamics(const Model& model, const EqualitySet& equalities, const BasicData<R>& data)
    : model_(model),
      equalities_(equalities),
      width_(data.width()),
      worlds_(data.worlds()),
      rows_(model, data.width()),
      status_(data.worlds(), KktStatus::solved) {
  if (&equalities.model() != &model) throw ValueError("equalities", "made for another model", "this model's own");
  equalities.add_blocks(rows_);
  const int m = rows();
  for (auto* v : {&phi_, &rate_, &bias_, &x2_}) v->resize(data.size(m));
  const std::size_t w = width_;
  A_.resize(w * m * rows_.leading_dimension());
  for (auto* v : {&inverse_, &pivots_, &rhs_, &sigma_}) v->resize(w * m);
  u_.resize(w * model.nv);
}

template <class R>
void ConstrainedDynamics<R>::accelerate(BasicData<R>& data, double dt, In<R> qpos, In<R> qvel, In<R> Q, In<R> K,
                                        Out<R> qacc) {
  if (data.width() != width_ || data.worlds() != worlds_)
    throw ValueError("data", "of another shape", "the shape that this was made for");
  check_size("qpos", qpos.size(), data.size(model_.nq));
  check_size("qvel", qvel.size(), data.size(model_.nv));
  check_size("joint_force", Q.size(), data.size(model_.nv));
  check_size("joint_inertia", K.size(), data.size(model_.nv));
  check_size("qacc", qacc.size(), data.size(model_.nv));
  const std::size_t q = std::size_t(model_.nq) * width_, v = std::size_t(model_.nv) * width_;
  for (int p = 0; p < data.packs(); ++p) {
    solve_pack(data, p, dt, qpos.data() + p * q, qvel.data() + p * v, Q.data() + p * v, K.data() + p * v,
               qacc.data() + p * v);
  }
}

template <class R>
void ConstrainedDynamics<R>::solve_pack(BasicData<R>& data, int pack, double dt, const R* qpos, const R* qvel,
                                        const R* Q, const R* K, R* qacc) {
  const ModelView<R> view = model_.view<R>();
  const ConstraintTable<R>& kernels = constraint_table<R>(width_);
  const DelassusTable<R>& sweeps = delassus_table<R>(width_);
  void* state = data.state(pack);
  const std::size_t w = width_, m = rows(), ld = rows_.leading_dimension();
  kernels.prepare(view, state, qpos, qvel, Q, K);
  sweeps.read_u(view, state, u_.data());
  R *phi = phi_.data() + pack * m * w, *rate = rate_.data() + pack * m * w, *bias = bias_.data() + pack * m * w,
    *x2 = x2_.data() + pack * m * w;
  equalities_.evaluate<R>(data, pack, {qpos, w * model_.nq}, {qvel, w * model_.nv}, rows_, {phi, m * w}, {rate, m * w},
                          {bias, m * w});
  rows_.sweep(model_, data, pack);
  rows_.velocity(u_.data(), rhs_.data());
  rows_.gram(A_.data(), int(ld));
  // rhs = a₁ - y₂, Σ on the diagonal.
  for (int i = 0; i < equalities_.size(); ++i) {
    const Equality& e = equalities_[i];
    double a = 0, b = 0, sigma = 0;
    if (dt > 0) {
      const double damping = 1 + 4 * e.softness.damping_steps;
      a = 4 / (dt * dt * damping), b = (1 - 1 / damping) / dt, sigma = 4 * e.softness.compliance / (dt * dt * damping);
    }
    for (std::size_t k = e.first_row * w; k < std::size_t(e.first_row + e.nrow) * w; ++k) {
      rhs_[k] += dt > 0 ? R(a) * phi[k] + R(b) * rate[k] : bias[k];
      sigma_[k] = R(sigma);
    }
  }
  for (std::size_t r = 0; r < m; ++r) {
    for (std::size_t lane = 0; lane < w; ++lane) {
      R& d = A_[(r * ld + r) * w + lane];
      d += sigma_[r * w + lane];
      pivots_[r * w + lane] = d > 0 ? 1 / d : R(-1);
      A_[(r * ld + m) * w + lane] = rhs_[r * w + lane];
    }
  }
  if (m > 0) kernels.ldl(int(m), int(ld), A_.data(), inverse_.data(), pivots_.data());
  if (m > 0) kernels.ldl_back(int(m), int(ld), A_.data(), inverse_.data(), x2);
  bool spoilt = false;
  for (std::size_t lane = 0; lane < w; ++lane) {
    const int world = int(pack * w + lane);
    bool good = m == 0 || pivots_[lane] > kSmallPivot<R>;
    for (std::size_t r = 0; r < m; ++r) good = good && std::isfinite(x2[r * w + lane]);
    if (world < worlds_) status_[world] = KktStatus::solved;
    if (good) continue;
    if (!spoilt) rows_.gram(A_.data(), int(ld));  // as it was before the factor
    spoilt = true;
    rescue(pack, int(lane), rhs_.data(), x2);
  }
  rows_.pull(x2, u_.data());
  sweeps.outward(view, state, u_.data(), qacc);
}

/// The multipliers of one world whose rows depend on one another.
template <class R>
void ConstrainedDynamics<R>::rescue(int pack, int lane, const R* rhs, R* x2) {
  const int m = rows(), ld = rows_.leading_dimension(), world = pack * width_ + lane;
  std::vector<double> A(std::size_t(m) * m), b(m), x(m);
  for (int r = 0; r < m; ++r) {
    for (int c = r; c < m; ++c) A[std::size_t(r) * m + c] = double(A_[(std::size_t(r) * ld + c) * width_ + lane]);
    A[std::size_t(r) * m + r] += double(sigma_[std::size_t(r) * width_ + lane]);
    b[r] = double(rhs[std::size_t(r) * width_ + lane]);
  }
  const MultiplierReport report = solve_multipliers(m, m, A.data(), b, x);
  for (int r = 0; r < m; ++r) x2[std::size_t(r) * width_ + lane] = R(x[r]);
  if (world >= worlds_) return;
  // Rows that contradict one another leave more than rounding, which dependent rows magnify.
  const double slack = sizeof(R) == 8 ? 1e-7 : 1e-3;
  report_ = report;
  if (!report.finite)
    status_[world] = KktStatus::not_finite;
  else if (report.violation > slack)
    status_[world] = KktStatus::inconsistent;
  else if (!report.dependent.empty())
    status_[world] = KktStatus::redundant;
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

}  // namespace tarsus
