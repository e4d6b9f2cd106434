#include "tarsus/constraint/tree_newton.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>

#include "constraint/contact_force.hpp"
#include "constraint/widen.hpp"

namespace tarsus {

namespace {

/// σ in units of a row's own inverse mass: large enough that rounding does not show through it, small enough that
/// centres hardly move.
template <class R>
constexpr double kProximal = sizeof(R) == 8 ? 1e-2 : 3e-2;
/// The least σ: where rows depend on one another, their multipliers travel residual / σ a round.
template <class R>
constexpr double kLeastProximal = sizeof(R) == 8 ? 1e-5 : 1e-2;
constexpr int kFewContacts = 48;  ///< up to which discs follow their normal forces within a round
constexpr int kPatience = 15;     ///< rounds without a better residual
constexpr int kRoundsOfOne = 6;   ///< for one centre and σ; more, and kinks are too sharp
constexpr double kMostProximal = 1, kSigmaStep = 5;
constexpr double kAtTheEdge = 0.999;  ///< of a friction disc
constexpr double kSettled = 0.8;      ///< gap of one centre's problem, of the residual, at which the next one begins

/// Σ t_ij t_i t_jᵀ.
Sym3d in_plane(const Vec3d& t1, const Vec3d& t2, double t11, double t12, double t22) {
  const Vec3d c1 = t1 * t11 + t2 * t12, c2 = t1 * t12 + t2 * t22;
  return {c1.x * t1.x + c2.x * t2.x, c1.x * t1.y + c2.x * t2.y, c1.x * t1.z + c2.x * t2.z,
          c1.y * t1.y + c2.y * t2.y, c1.y * t1.z + c2.y * t2.z, c1.z * t1.z + c2.z * t2.z};
}

/// x = a⁻¹ x for the unknowns from `first` on; a [n][n] is used up. What is left of 1 + B A with positive B and A:
/// never singular.
void solve_dense(std::vector<double>& a, std::vector<double>& x, int first) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Index n = Eigen::Index(x.size()), left = n - first;
  if (left == 0) return;
  using Block = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;
  Block matrix(a.data() + first * (n + 1), left, left, Eigen::OuterStride<>(n));
  Eigen::Map<Eigen::VectorXd> vector(x.data() + first, left);
  vector = Eigen::PartialPivLU<Eigen::Ref<Matrix>>(matrix).solve(vector).eval();
}

}  // namespace

template <class R>
TreeNewton<R>::TreeNewton(const Model& model)
    : model_(model),
      load_of_link_(model.njoint(), -1),
      loads_(model.njoint()),
      x_(model.nv),
      next_x_(model.nv),
      pairs_(model),
      u_(model.nv) {}

/// Scales, and the law's pieces from where the last step ended: the velocities at which the rows would give these
/// multipliers; the present velocity where there was none, since the free one falls through what others hold, and
/// where something slid.
template <class R>
void TreeNewton<R>::begin(BasicData<R>& data, std::span<const double> multiplier) {
  const std::size_t n = numbers_.size();
  for (auto* v : {&sigma_, &scale_, &lambda_, &y_, &next_w_, &next_y_, &between_, &g_}) v->resize(n);
  centre_.assign(multiplier.begin(), multiplier.end());
  admit(centre_);
  w_.resize(n);
  bounding_.resize(contacts_.size());
  tangent_.resize(contacts_.size() + joints_.size()), moment_tangent_.resize(contacts_.size());
  for (std::size_t c = 0; c < contacts_.size(); ++c) {
    const TreeContact& contact = contacts_[c];
    const int row = contact.first_row;
    for (int k = 0; k < contact.nrow; ++k) scale_[row + k] = k < 3 ? contact.inverse_mass : contact.inverse_inertia;
    const double* at = &centre_[row];
    bounding_[c] = at[0];
    // Where it slid, turned or rolled at its bound, it goes on.
    const auto at_bound = [&](int k, double second, double second_speed, double bound) {
      return at[k] * at[k] + second * second >= kAtTheEdge * kAtTheEdge * bound * bound &&
             at[k] * contact.speed[k] + second * second_speed < 0;
    };
    const auto start = [&](int k, bool as_now) {
      const RowNumbers& numbers = numbers_[row + k];
      w_[row + k] = at[0] == 0 || as_now ? contact.speed[k] : numbers.target - numbers.compliance * at[k];
    };
    start(0, false);
    if (contact.nrow >= 3) {
      const bool slid = at_bound(1, at[2], contact.speed[2], contact.friction * at[0]);
      start(1, slid), start(2, slid);
    }
    if (contact.nrow >= 4) start(3, at_bound(3, 0, 0, contact.torsional * at[0]));
    if (contact.nrow >= 6) {
      const bool rolled = at_bound(4, at[5], contact.speed[5], contact.rolling * at[0]);
      start(4, rolled), start(5, rolled);
    }
  }
  for (const OneJointRow& j : joints_) {
    const LinkState<R>& s = data.links()[j.joint];
    const double inverse = double(s.Dinv.xx);
    scale_[j.row] = inverse > 0 ? inverse : 1;
    w_[j.row] = centre_[j.row] == 0 ? j.speed : numbers_[j.row].target - numbers_[j.row].compliance * centre_[j.row];
  }
  relative_sigma_ = kProximal<R>;
  for (std::size_t i = 0; i < n; ++i) sigma_[i] = relative_sigma_ * scale_[i];
}

/// The proximal centre moves to where the multipliers are, and the normal forces that bound friction, where they do not
/// follow at once, to what they have become. That is a fixed-point iteration, N -> λ_n(N), linear at best: Anderson's
/// mixing of the last few makes it fast.
template <class R>
void TreeNewton<R>::centre() {
  centre_ = lambda_;
  const std::size_t n = contacts_.size();
  asked_.resize(n);
  for (std::size_t c = 0; c < n; ++c) asked_[c] = lambda_[contacts_[c].first_row];
  mixing_.next(bounding_, asked_);
  for (double& normal : bounding_) normal = std::max(0.0, normal);
}

template <class R>
double TreeNewton<R>::gap() const {
  double worst = 0;
  for (std::size_t i = 0; i < y_.size(); ++i) {
    const double miss = std::abs(y_[i] - lambda_[i]) * scale_[i];
    worst = miss <= worst ? worst : miss;
  }
  return worst;
}

template <class R>
void TreeNewton<R>::moment_times(std::size_t contact, const double* d, const double* base, double* out) const {
  const MomentTangent& b = moment_tangent_[contact];
  out[3] = base[3] + b.turn_n * d[0] + b.turn * d[3];
  if (contacts_[contact].nrow >= 6) b.roll.times(d[0], d + 4, base + 4, out + 4);
}

template <class R>
bool TreeNewton<R>::symmetric_moments(std::size_t contact) const {
  const MomentTangent& b = moment_tangent_[contact];
  return b.turn_n == 0 && (contacts_[contact].nrow < 6 || b.roll.symmetric());
}

template <class R>
bool TreeNewton<R>::idle_moments(std::size_t contact) const {
  const MomentTangent& b = moment_tangent_[contact];
  return b.turn == 0 && (contacts_[contact].nrow < 6 || b.roll.idle());
}

template <class R>
LinkLoad<R>& TreeNewton<R>::load_of(int link) {
  int& load = load_of_link_[link];
  if (load < 0) {
    load = loads_used_++;
    loads_[load].clear();
  }
  return loads_[load];
}

/// g of every row; the tangents of those with the world and on joints as loads.
template <class R>
void TreeNewton<R>::load() {
  loads_used_ = 0;
  std::fill(load_of_link_.begin(), load_of_link_.end(), -1);
  for (std::size_t c = 0; c < contacts_.size(); ++c) {
    const TreeContact& contact = contacts_[c];
    const int i = contact.first_row;
    double d[6];
    for (int k = 0; k < contact.nrow; ++k) d[k] = w_[i + k] - w0_[i + k];
    times(c, d, &lambda_[i], &g_[i]);
    if (contact.b < 0 && !idle(c)) add_load(c);
  }
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    const OneJointRow& row = joints_[j];
    const double b = tangent_[contacts_.size() + j].normal;
    const double g = g_[row.row] = lambda_[row.row] + b * (w_[row.row] - w0_[row.row]);
    const Vec3d& e = row.e;
    LinkLoad<R>& sum = load_of(row.joint);
    sum.joint +=
        {R(b * e.x * e.x), R(b * e.x * e.y), R(b * e.x * e.z), R(b * e.y * e.y), R(b * e.y * e.z), R(b * e.z * e.z)};
    sum.joint_force += {R(g * e.x), R(g * e.y), R(g * e.z)};
  }
}

/// B of the contact as C = Σ B_ij a_i a_jᵀ over its axes, which resists the point; at the link's origin: M = C,
/// H = [arm] C, I = -[arm] C [arm].
template <class R>
void TreeNewton<R>::add_load(std::size_t index) {
  const TreeContact& contact = contacts_[index];
  const Tangent& b = tangent_[index];
  const int i = contact.first_row;
  const Vec3d &n = contact.axis[0], &t1 = contact.axis[1], &t2 = contact.axis[2], &arm = contact.arm_a;
  const DiscTangent& slide = b.slide;
  const bool isotropic = slide.t12 == 0 && slide.t11 == slide.t22;  // sticking, or no friction: C = t 1 + (b - t) n nᵀ
  const double along = isotropic ? b.normal - slide.t11 : b.normal;
  const Vec3d cn = n * along;
  Sym3d C = {cn.x * n.x, cn.x * n.y, cn.x * n.z, cn.y * n.y, cn.y * n.z, cn.z * n.z};
  if (isotropic) {
    C.xx += slide.t11, C.yy += slide.t11, C.zz += slide.t11;
  } else {
    C += in_plane(t1, t2, slide.t11, slide.t12, slide.t22);
  }
  const Vec3d hx = cross(arm, C.column_x()), hy = cross(arm, C.column_y()), hz = cross(arm, C.column_z());
  LinkLoad<R>& sum = load_of(contact.a);
  sum.M += {R(C.xx), R(C.xy), R(C.xz), R(C.yy), R(C.yz), R(C.zz)};
  sum.H = sum.H + Mat3<R>{R(hx.x), R(hy.x), R(hz.x), R(hx.y), R(hy.y), R(hz.y), R(hx.z), R(hy.z), R(hz.z)};
  sum.I += {R(arm.y * hz.x - arm.z * hy.x), R(arm.y * hz.y - arm.z * hy.y), R(arm.y * hz.z - arm.z * hy.z),
            R(arm.z * hx.y - arm.x * hz.y), R(arm.z * hx.z - arm.x * hz.z), R(arm.x * hy.z - arm.y * hx.z)};
  Vec3d f = n * g_[i];
  if (contact.nrow >= 3) f += t1 * g_[i + 1] + t2 * g_[i + 2];
  const Vec3d moment = cross(arm, f);
  sum.n += {R(moment.x), R(moment.y), R(moment.z)}, sum.f += {R(f.x), R(f.y), R(f.z)};
  if (contact.nrow >= 4) add_moment_load(index);
}

/// Torsion and rolling resist the link's rotation alone.
template <class R>
void TreeNewton<R>::add_moment_load(std::size_t index) {
  const TreeContact& contact = contacts_[index];
  const MomentTangent& b = moment_tangent_[index];
  const Vec3d &n = contact.axis[0], &t1 = contact.axis[1], &t2 = contact.axis[2], turn = n * b.turn;
  const double* g = &g_[contact.first_row + 3];
  Sym3d D = {turn.x * n.x, turn.x * n.y, turn.x * n.z, turn.y * n.y, turn.y * n.z, turn.z * n.z};
  Vec3d moment = n * g[0];
  if (contact.nrow >= 6) {
    D += in_plane(t1, t2, b.roll.t11, b.roll.t12, b.roll.t22);
    moment += t1 * g[1] + t2 * g[2];
  }
  LinkLoad<R>& sum = load_of(contact.a);
  sum.I += {R(D.xx), R(D.xy), R(D.xz), R(D.yy), R(D.yz), R(D.zz)};
  sum.n += {R(moment.x), R(moment.y), R(moment.z)};
}

template <class R>
bool TreeNewton<R>::in_pairs(std::size_t contact) const {
  return contacts_[contact].b >= 0 ? !idle(contact) : !symmetric(contact);
}

/// What no link's load can be, as forces: contacts between two links by their rows; of a contact that slides, turns or
/// rolls on the world only what makes B unsymmetric, u c nᵀ with u the wrench with which it pulls: rows n and u.
template <class R>
void TreeNewton<R>::add_pairs(const BasicData<R>& data) {
  pairs_.clear(), pair_contacts_.clear(), unknown_.clear();
  held_.write(data, pairs_, held_phi_);
  for (int i = 0; i < held_.rows(); ++i) unknown_.push_back(i);
  for (std::size_t c = 0; c < contacts_.size();) {  // those of one pair of links are neighbours: one block
    const std::size_t first = pair_contacts_.size();
    const int a = contacts_[c].a, b = contacts_[c].b;
    const int row = pairs_.rows();
    int count = 0;
    for (; c < contacts_.size() && contacts_[c].a == a && contacts_[c].b == b; ++c) {
      if (!in_pairs(c)) continue;
      const int nrow = b >= 0 ? contacts_[c].nrow : 2;
      pair_contacts_.push_back({int(c), row + count, nrow});
      count += nrow;
    }
    if (count == 0) continue;
    const typename DelassusRows<R>::Block block = pairs_.block(pairs_.add_block(a, b, count));
    for (std::size_t p = first; p < pair_contacts_.size(); ++p) write_pair(pair_contacts_[p], block);
  }
}

template <class R>
void TreeNewton<R>::write_pair(PairContact& pair, const typename DelassusRows<R>::Block& block) {
  const TreeContact& contact = contacts_[pair.contact];
  const int row = pair.first_row - block.first_row;
  pair.first_unknown = int(unknown_.size());
  if (contact.b >= 0) {
    for (int k = 0; k < pair.nrow; ++k) unknown_.push_back(pair.first_row + k);
    write_contact<R>(contact, block, row);
    return;
  }
  const DiscTangent& slide = tangent_[pair.contact].slide;
  double by_normal[5] = {slide.n1, slide.n2, 0, 0, 0};
  if (contact.nrow >= 4) {
    const MomentTangent& b = moment_tangent_[pair.contact];
    by_normal[2] = b.turn_n;
    if (contact.nrow >= 6) by_normal[3] = b.roll.n1, by_normal[4] = b.roll.n2;
  }
  double square = 0;
  for (const double x : by_normal) square += x * x;
  pair.coupling = std::sqrt(square);
  const Vec3d &n = contact.axis[0], &t1 = contact.axis[1], &t2 = contact.axis[2];
  const double scale = 1 / pair.coupling;
  const Vec3d force = (t1 * by_normal[0] + t2 * by_normal[1]) * scale,
              moment = (n * by_normal[2] + t1 * by_normal[3] + t2 * by_normal[4]) * scale;
  unknown_.push_back(pair.first_row + 1);
  write_wrench<R>(cross(contact.arm_a, n), n, block, row);
  write_wrench<R>(cross(contact.arm_a, force) + moment, force, block, row + 1);
}

/// Which of the equality constraints' rows take part: by the factors of the tree without loads.
template <class R>
void TreeNewton<R>::choose_held(BasicData<R>& data) {
  pairs_.clear();
  held_.write(data, pairs_, held_phi_);
  pairs_.sweep(model_, data);
  const int ld = pairs_.leading_dimension();
  pair_gram_.resize(std::size_t(pairs_.rows()) * ld);
  pairs_.gram(pair_gram_.data(), ld);
  pair_matrix_.assign(pair_gram_.begin(), pair_gram_.end());
  left_out_ = dependent_rows<R>(held_, pair_matrix_, ld);
}

/// x solves the loaded tree without the pairs; now with them: (1 + B A) y = g - B J x, A their Delassus matrix in the
/// loaded tree; for equality constraints (Σ_e + A) y = -J_e x. The normal row of a contact that slides on the world has
/// no y: the loads have it.
template <class R>
void TreeNewton<R>::solve_pairs(BasicData<R>& data, Out<R> x) {
  const int k = int(unknown_.size()), ld = pairs_.leading_dimension();
  read_u<R>(model_, data, u_);
  pairs_.sweep(model_, data);
  pair_gram_.resize(std::size_t(pairs_.rows()) * ld), pair_velocity_.resize(pairs_.rows());
  pairs_.gram(pair_gram_.data(), ld);
  pairs_.velocity(u_.data(), pair_velocity_.data());
  const auto A = [&](int i, int j) { return double(pair_gram_[std::size_t(std::min(i, j)) * ld + std::max(i, j)]); };
  pair_matrix_.assign(std::size_t(k) * k, 0.0), pair_rhs_.assign(k, 0.0);
  const int held = held_.rows();
  for (int i = 0; i < held; ++i) {
    for (int j = 0; j < k; ++j) pair_matrix_[std::size_t(i) * k + j] = A(i, unknown_[j]);
    pair_rhs_[i] = -double(pair_velocity_[i]);
  }
  for (int i = held; i < k; ++i) pair_matrix_[std::size_t(i) * k + i] = 1;
  const auto add = [&](int i, int row, double b) {  // b times a row of A and of J x in equation i
    if (b == 0) return;
    pair_rhs_[i] -= b * double(pair_velocity_[row]);
    for (int j = 0; j < k; ++j) pair_matrix_[std::size_t(i) * k + j] += b * A(row, unknown_[j]);
  };
  for (const PairContact& pair : pair_contacts_) {
    if (contacts_[pair.contact].b < 0) {
      add(pair.first_unknown, pair.first_row, pair.coupling);
      continue;
    }
    for (int r = 0; r < pair.nrow; ++r) pair_rhs_[pair.first_unknown + r] += g_[contacts_[pair.contact].first_row + r];
    for (int c = 0; c < pair.nrow; ++c) {
      double unit[6] = {}, column[6] = {};
      unit[c] = 1;
      times(pair.contact, unit, column, column);
      for (int r = 0; r < pair.nrow; ++r) add(pair.first_unknown + r, pair.first_row + c, column[r]);
    }
  }
  if (held > 0) eliminate_held<R>(held_, left_out_, pair_matrix_, k, k, pair_rhs_);
  solve_dense(pair_matrix_, pair_rhs_, held);
  if (held > 0) held_back(held, pair_matrix_, k, k, pair_rhs_, pair_rhs_);
  std::copy_n(pair_rhs_.begin(), held, next_held_.begin());
  pair_y_.assign(pairs_.rows(), R(0));
  for (int i = 0; i < k; ++i) pair_y_[unknown_[i]] = R(pair_rhs_[i]);
  pairs_.push(pair_y_.data(), u_.data());
  outward<R>(model_, data, u_, x);
}

/// w' and y' of the solve that left x and the links' J x.
template <class R>
void TreeNewton<R>::read(BasicData<R>& data, In<R> x) {
  for (std::size_t c = 0; c < contacts_.size(); ++c) {
    const TreeContact& contact = contacts_[c];
    const int i = contact.first_row;
    const Motion<R>& a = data.links()[contact.a].a;
    Vec3d w = widen(a.w), v = widen(a.v) + cross(w, contact.arm_a);
    if (contact.b >= 0) {
      const Motion<R>& other = data.links()[contact.b].a;
      const Vec3d other_w = widen(other.w);
      v -= widen(other.v) + cross(other_w, contact.arm_b), w -= other_w;
    }
    double d[6] = {-dot(contact.axis[0], v), -dot(contact.axis[1], v), -dot(contact.axis[2], v)};
    if (contact.nrow > 3) {
      for (int k = 0; k < 3; ++k) d[3 + k] = -dot(contact.axis[k], w);
    }
    for (int k = 0; k < contact.nrow; ++k) next_w_[i + k] = w0_[i + k] - d[k];
    times(c, d, &g_[i], &next_y_[i]);
  }
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    const OneJointRow& row = joints_[j];
    const Joint& joint = model_.joints[row.joint];
    const R* at = x.data() + joint.qvel;
    double d = row.e.x * double(at[0]);
    if (joint.type == JointType::ball) d = dot(row.e, widen(data.links()[row.joint].R * Vec3<R>{at[0], at[1], at[2]}));
    next_w_[row.row] = w0_[row.row] + d;
    next_y_[row.row] = g_[row.row] - tangent_[contacts_.size() + j].normal * d;
  }
}

/// Slope of the function along the step, at t.
template <class R>
double TreeNewton<R>::slope(double t) {
  for (std::size_t i = 0; i < w_.size(); ++i) between_[i] = w_[i] + t * (next_w_[i] - w_[i]);
  law(between_, false);
  double sum = 0;
  for (std::size_t i = 0; i < w_.size(); ++i)
    sum += (next_w_[i] - w_[i]) * (y_[i] + t * (next_y_[i] - y_[i]) - lambda_[i]);
  return sum;
}

/// The length of the step: 1, or where the slope along it vanishes.
template <class R>
double TreeNewton<R>::search() {
  const double end = slope(1);
  if (!(end > 0)) return 1;
  const double start = slope(0);
  if (!(start < 0) || end <= -0.1 * start) return 1;
  double low = 0, high = 1, slope_low = start, slope_high = end, t = 1;
  for (int k = 0; k < 12; ++k) {  // Illinois' false position on a monotone function
    t = (low * slope_high - high * slope_low) / (slope_high - slope_low);
    const double at = slope(t);
    if (std::abs(at) <= -0.1 * start) break;
    if (at < 0)
      low = t, slope_low = at, slope_high *= 0.5;
    else
      high = t, slope_high = at, slope_low *= 0.5;
  }
  return t;
}

/// gap() at the part t of the step.
template <class R>
double TreeNewton<R>::gap_at(double t) {
  for (std::size_t i = 0; i < w_.size(); ++i) between_[i] = w_[i] + t * (next_w_[i] - w_[i]);
  law(between_, false);
  double worst = 0;
  for (std::size_t i = 0; i < w_.size(); ++i) {
    const double miss = std::abs(y_[i] + t * (next_y_[i] - y_[i]) - lambda_[i]) * scale_[i];
    worst = miss <= worst ? worst : miss;
  }
  return worst;
}

/// Some contact slides with its disc following its normal force: what is solved is no function's minimum there.
template <class R>
bool TreeNewton<R>::slides() const {
  for (std::size_t c = 0; c < contacts_.size(); ++c) {
    if (!symmetric(c)) return true;
  }
  return false;
}

/// The length of a step that no function need fall along: half as long until it does not make the gap much wider.
template <class R>
double TreeNewton<R>::backtrack() {
  const double start = gap();  // λ is still that of this round's w
  double best = 1, least = kInfinity;
  for (double t = 1; t > 0.02; t *= 0.5) {
    const double at = gap_at(t);
    if (at < least) least = at, best = t;
    if (at <= (1 - 0.1 * t) * start) return t;
  }
  return best;
}

template <class R>
RowSolveReport TreeNewton<R>::solve(BasicData<R>& data, In<R> joint_inertia, const TreeNewtonProblem<R>& problem,
                                    std::span<double> multiplier, Out<R> change, const RowSolveOptions& options) {
  contacts_ = problem.contacts, joints_ = problem.joints, numbers_ = problem.numbers, w0_ = problem.w0;
  held_ = problem.held;
  for (auto* v : {&held_impulse_, &next_held_, &held_best_}) v->assign(held_.rows(), 0.0);
  RowSolveReport report;
  coupled_ = int(contacts_.size()) <= kFewContacts;
  if (held_.rows() > 0) choose_held(data);
  begin(data, multiplier);
  prepare_loads<R>(model_, data);
  report.status = RowSolveStatus::too_many_iterations;
  law(w_, true);
  mixing_.clear();
  double tolerance = options.tolerance;  // but not below what rounding lets anyone see through σ
  for (const double w : w0_)
    tolerance = std::max(tolerance, 20 * std::numeric_limits<R>::epsilon() / kProximal<R> * std::abs(w));
  outer_ = {};
  settled_at_.w = w_, settled_at_.y.clear();
  double best = kInfinity;
  int best_round = 0;
  for (int round = 0; round < options.max_iterations; ++round) {
    solve_round(data, joint_inertia);
    ++report.iterations;
    const double open = gap();
    // (λ(w), w) obeys the law but for its proximal term, and the dynamics but for the gap; (y, w) obeys the dynamics.
    const double of_law = std::max(natural(lambda_), open), of_step = natural(y_);
    report.residual = std::min(of_law, of_step);
    if (options.record_history) report.history.push_back(report.residual);
    if (!std::isfinite(report.residual)) {
      report.status = RowSolveStatus::not_finite;
      return report;
    }
    if (report.residual < best) {
      if (report.residual < 0.7 * best) best_round = round;
      best = report.residual;
      const std::vector<double>& found = of_step < of_law ? y_ : lambda_;
      std::copy(found.begin(), found.end(), multiplier.begin());
      std::copy(x_.begin(), x_.end(), change.begin());
      held_best_ = held_impulse_;
    }
    if (report.residual <= tolerance) {  // the first that is, hence the best
      report.status = RowSolveStatus::converged;
      break;
    }
    if (round - best_round > kPatience) break;
    outer_.settled = open <= kSettled * of_law;
    if (outer_.settled)
      next_centre(report.residual);
    else if (lost(open))
      retreat(), best_round = round;
  }
  report.residual = best;
  return report;
}

/// One round of Newton's method.
template <class R>
void TreeNewton<R>::solve_round(BasicData<R>& data, In<R> joint_inertia) {
  load();
  add_pairs(data);
  solve_loaded<R>(model_, data, joint_inertia, {}, load_of_link_, loads_, next_x_);
  if (pairs_.rows() > 0) solve_pairs(data, next_x_);
  read(data, next_x_);
  move(outer_.first                  ? 1
       : coupled_ && slides()        ? backtrack()
       : outer_.settled && !coupled_ ? 1
                                     : search(),
       outer_.first);
  outer_.first = false;
}

/// This centre's problem is solved: on to the next, with a smaller σ where centres come slowly.
template <class R>
void TreeNewton<R>::next_centre(double residual) {
  const bool slow = residual > 0.25 * outer_.last_settled;
  if (slow && outer_.calm >= outer_.wait && relative_sigma_ > kLeastProximal<R>) scale_sigma(1 / kSigmaStep);
  ++outer_.calm;
  outer_.last_settled = residual, outer_.rounds = 0;
  settled_at_ = {w_, y_, held_impulse_, x_};
  centre();
  law(w_, true);
}

/// Rounds with this centre and σ lead nowhere.
template <class R>
bool TreeNewton<R>::lost(double open) {
  if (++outer_.rounds == 1) outer_.open = open;
  return coupled_ && outer_.rounds >= kRoundsOfOne && open >= 0.1 * outer_.open && relative_sigma_ < kMostProximal;
}

/// The part t of the way to the next point; all of it if there is none to start from.
template <class R>
void TreeNewton<R>::move(double t, bool first) {
  for (std::size_t i = 0; i < w_.size(); ++i) {
    w_[i] += t * (next_w_[i] - w_[i]);
    y_[i] = first ? next_y_[i] : y_[i] + t * (next_y_[i] - y_[i]);
  }
  for (std::size_t i = 0; i < held_impulse_.size(); ++i)
    held_impulse_[i] = first ? next_held_[i] : held_impulse_[i] + t * (next_held_[i] - held_impulse_[i]);
  for (std::size_t k = 0; k < x_.size(); ++k) x_[k] = first ? next_x_[k] : x_[k] + R(t) * (next_x_[k] - x_[k]);
  law(w_, true);
}

template <class R>
void TreeNewton<R>::scale_sigma(double by) {
  relative_sigma_ *= by;
  for (double& sigma : sigma_) sigma *= by;
}

/// Kinks were too sharp for Newton's method: back to where this centre was set, with a larger σ.
template <class R>
void TreeNewton<R>::retreat() {
  scale_sigma(kSigmaStep);
  w_ = settled_at_.w;
  const bool guess = settled_at_.y.empty();
  if (!guess) y_ = settled_at_.y, held_impulse_ = settled_at_.held, x_ = settled_at_.x;
  outer_ = {.settled = false, .first = guess, .wait = 2 * outer_.wait + 1};
  law(w_, true);
}

template class TreeNewton<double>;
template class TreeNewton<float>;

}  // namespace tarsus
