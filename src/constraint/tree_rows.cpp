#include "tarsus/constraint/tree_rows.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "constraint/widen.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

namespace {

constexpr double kLimitReach = 0.02;  ///< how near a joint's range gets a row [m | rad]
/// Fastest way back of a joint that is beyond its range [rad/s | m/s]. Robots' files often start at zero, a radian off;
/// in four steps of half a millisecond that would be hundreds of radians a second.
constexpr double kLimitReturn = 5;
/// The same of shapes that begin deep in one another, where no compliance is given [m/s].
constexpr double kContactReturn = 3;
constexpr std::uint64_t kLimitIdentity = std::uint64_t(1) << 62, kFrictionIdentity = std::uint64_t(1) << 63;

}  // namespace

std::array<Vec3d, 2> contact_tangents(const Vec3d& n) {  // [Duff et al. 2017]: no root, no branch
  const double sign = std::copysign(1.0, n.z), a = -1 / (sign + n.z), b = n.x * n.y * a;
  return {Vec3d{1 + sign * n.x * n.x * a, sign * b, -sign * n.x}, Vec3d{b, sign + n.y * n.y * a, -n.y}};
}

const char* name(RowsMethod method) {
  switch (method) {
    case RowsMethod::automatic: return "automatic";
    case RowsMethod::newton: return "newton";
    case RowsMethod::gauss_seidel: return "gauss_seidel";
  }
  return "automatic";
}

template <class R>
TreeRows<R>::TreeRows(const Model& model, const RowsOptions& options)
    : model_(model),
      view_(model.view<R>()),
      options_(options),
      link_force_(std::size_t(6) * model.njoint()),
      newton_(model),
      rows_(model),
      u_(model.nv),
      change_(model.nv) {}

template <class R>
void TreeRows<R>::build(const BasicData<R>& data, double h, In<R> qpos, In<R> qvel, In<R> free_velocity,
                        std::span<const LinkContact> contacts, const HeldRows<R>& held) {
  if (data.width() != 1) {
    throw ValueError("data", std::to_string(data.width()) + " lanes",
                     "one world: contacts and limits are not in lanes yet");
  }
  remember(h);
  h_ = h;
  held_ = held;
  held_impulse_.assign(held.rows(), 0.0);
  numbers_.clear(), blocks_.clear(), groups_.clear(), joint_rows_.clear();
  report_ = {};
  contacts_.assign(contacts.begin(), contacts.end());
  add_contacts(data, h);
  if (options_.limits) add_limits(data, qpos, qvel, free_velocity, h);
  if (options_.friction_loss) add_friction_loss(qvel, h);
  report_.rows = rows();
  recall();
}

template <class R>
void TreeRows<R>::add_block(RowCone cone, int reference, double coefficient, std::uint64_t identity) {
  blocks_.push_back({rows(), 0, cone, reference, coefficient, identity});
  if (reference < 0) groups_.push_back({identity, rows()});
}

template <class R>
int TreeRows<R>::add_row(const RowNumbers& numbers) {
  numbers_.push_back(numbers);
  ++blocks_.back().count;
  return rows() - 1;
}

template <class R>
void TreeRows<R>::add_contacts(const BasicData<R>& data, double h) {
  for (LinkContact& c : contacts_) {
    if (c.b <= c.a) continue;
    std::swap(c.a, c.b);
    c.point.normal = -c.point.normal;
  }
  std::erase_if(contacts_, [](const LinkContact& c) { return c.a < 0; });  // the world with itself
  const auto before = [](const LinkContact& x, const LinkContact& y) {
    const Vec3d &p = x.point.position, &q = y.point.position;
    return std::tie(x.a, x.b, x.identity, p.x, p.y, p.z) < std::tie(y.a, y.b, y.identity, q.x, q.y, q.z);
  };
  if (!std::is_sorted(contacts_.begin(), contacts_.end(), before))
    std::sort(contacts_.begin(), contacts_.end(), before);
  report_.contacts = int(contacts_.size());
  contact_rows_.resize(contacts_.size());
  for (std::size_t i = 0; i < contacts_.size(); ++i) add_contact(data, h, i);
}

/// A contact's rows: forces along n, t₁, t₂ at the point, then moments about n, t₁, t₂.
template <class R>
void TreeRows<R>::add_contact(const BasicData<R>& data, double h, std::size_t index) {
  const LinkContact& c = contacts_[index];
  const TreeContact* last = index > 0 ? &contact_rows_[index - 1] : nullptr;  // often on the same links and plane
  TreeContact& row = contact_rows_[index];
  const LinkState<R>* links = data.links();
  const Vec3d& n = c.point.normal;
  row.a = c.a, row.b = c.b, row.first_row = rows(), row.nrow = c.dimension, row.friction = c.friction;
  row.torsional = c.torsional, row.rolling = c.rolling;
  row.axis[0] = n;
  if (last && last->axis[0].x == n.x && last->axis[0].y == n.y && last->axis[0].z == n.z) {
    row.axis[1] = last->axis[1], row.axis[2] = last->axis[2];
  } else {
    const auto [t1, t2] = contact_tangents(n);
    row.axis[1] = t1, row.axis[2] = t2;
  }
  const bool same = last && last->a == c.a && last->b == c.b;
  row.inverse_mass = same ? last->inverse_mass : contact_inverse_mass(links, c.a, c.b);
  row.inverse_inertia = c.dimension > 3 ? contact_inverse_inertia(links, c.a, c.b) : 0;
  row.arm_a = c.point.position - widen(links[c.a].o), row.arm_b = {0, 0, 0};
  const Motion<double> va = widen(links[c.a].v);
  Vec3d v = va.v + cross(va.w, row.arm_a), w = va.w;
  if (c.b >= 0) {
    row.arm_b = c.point.position - widen(links[c.b].o);
    const Motion<double> vb = widen(links[c.b].v);
    v -= vb.v + cross(vb.w, row.arm_b), w -= vb.w;
  }
  for (int k = 0; k < 3; ++k) row.speed[k] = dot(row.axis[k], v);
  if (c.dimension > 3) {
    for (int k = 0; k < 3; ++k) row.speed[3 + k] = dot(row.axis[k], w);
  }
  Spook soft = c.spook;
  double gap = c.point.distance;
  if (soft.compliance == 0) {
    soft.compliance = options_.relative_compliance * h * h * row.inverse_mass;
    gap = recoverable(soft, gap, h, kContactReturn);
  }
  const SpookRow spook = spook_unilateral(soft, gap, row.speed[0], h, c.restitution, options_.restitution_threshold);
  report_.penetration = std::max(report_.penetration, -c.point.distance);
  add_block(RowCone::interval, -1, 0, c.identity);
  const int normal = add_row({spook.compliance, spook.target, 0, kInfinity});
  if (c.dimension >= 3) {
    add_block(RowCone::ball, normal, c.friction, 0);
    add_row({}), add_row({});
  }
  if (c.dimension >= 4) add_block(RowCone::box, normal, c.torsional, 0), add_row({});
  if (c.dimension >= 6) {
    add_block(RowCone::ball, normal, c.rolling, 0);
    add_row({}), add_row({});
  }
}

template <class R>
void TreeRows<R>::add_joint_row(int joint, const double* entries, double speed, const RowNumbers& numbers,
                                std::uint64_t identity) {
  JointRow row{joint, {}, speed};
  std::copy_n(entries, model_.joints[joint].nv(), row.entry);
  joint_rows_.push_back(row);
  add_block(RowCone::interval, -1, 0, identity);
  add_row(numbers);
}

/// A row for the side of a joint's range that it could reach within the step, and a little beyond. Beside
/// held loops it is as soft as a contact, in proportion to the inverse mass that the joint alone feels: in the posture
/// of a moment they can leave a joint that nothing but boundless forces would move.
template <class R>
void TreeRows<R>::add_limit(const LinkState<R>& link, int joint, In<R> qpos, In<R> qvel, In<R> free_velocity,
                            double h) {
  const Joint& j = model_.joints[joint];
  const auto add = [&](double g, const double* entries, double inverse_mass, int side) {
    double speed = 0, ahead = 0;
    for (int k = 0; k < j.nv(); ++k)
      speed += entries[k] * qvel[j.qvel + k], ahead += entries[k] * free_velocity[j.qvel + k];
    if (g + h * std::min(speed, ahead) > kLimitReach) return;
    Spook soft = options_.limit_spook;
    if (soft.compliance == 0 && held_.rows() > 0) soft.compliance = options_.relative_compliance * h * h * inverse_mass;
    const SpookRow row = spook_unilateral(soft, recoverable(soft, g, h, kLimitReturn), speed, h);
    add_joint_row(joint, entries, speed, {row.compliance, row.target, 0, kInfinity},
                  kLimitIdentity + 2 * std::uint64_t(joint) + side);
    ++report_.limits;
  };
  if (j.nv() == 1) {
    const double up = 1, down = -1, q = qpos[j.qpos];
    const double inverse_mass = double(link.Dinv.xx);
    add(q - j.range[0], &up, inverse_mass, 0);
    add(j.range[1] - q, &down, inverse_mass, 1);
    return;
  }
  // An angle is at most π sin(angle / 2), speeds are at most |ω|: most joints are far from their range without a
  // logarithm.
  const auto square = [](const R* v) { return double(v[0]) * v[0] + double(v[1]) * v[1] + double(v[2]) * v[2]; };
  const double fastest = std::sqrt(std::max(square(&qvel[j.qvel]), square(&free_velocity[j.qvel])));
  const double free_angle = (j.range[1] - kLimitReach - h * fastest) / std::numbers::pi;
  if (free_angle > 0 && square(&qpos[j.qpos + 1]) < free_angle * free_angle) return;
  const Vec3d turn =
      log_map({double(qpos[j.qpos]), double(qpos[j.qpos + 1]), double(qpos[j.qpos + 2]), double(qpos[j.qpos + 3])});
  const double angle = norm(turn);
  if (angle < 1e-6) return;  // no direction to push in
  const Vec3d n = turn * (-1 / angle);
  const Vec3d axis = widen(link.R) * n;
  const double mass = dot(axis, widen(link.IA.I) * axis) + double(link.k);
  add(j.range[1] - angle, &n.x, mass > 0 ? 1 / mass : 0, 0);
}

template <class R>
void TreeRows<R>::add_limits(const BasicData<R>& data, In<R> qpos, In<R> qvel, In<R> free_velocity, double h) {
  for (int i = 0; i < model_.njoint(); ++i) {
    if (model_.joints[i].limited && model_.joints[i].type != JointType::free)
      add_limit(data.links()[i], i, qpos, qvel, free_velocity, h);
  }
}

template <class R>
void TreeRows<R>::add_friction_loss(In<R> qvel, double h) {
  for (int i = 0; i < model_.njoint(); ++i) {
    const Joint& joint = model_.joints[i];
    if (!(joint.friction_loss > 0)) continue;
    const double bound = h * joint.friction_loss;
    for (int k = 0; k < joint.nv(); ++k) {
      double entries[6] = {};
      entries[k] = 1;
      add_joint_row(i, entries, double(qvel[joint.qvel + k]), {0, 0, -bound, bound},
                    kFrictionIdentity + 8 * std::uint64_t(i) + k);
    }
  }
}

/// Puts the last step's multipliers away, as impulses of steps of h.
template <class R>
void TreeRows<R>::remember(double h) {
  last_groups_.swap(groups_), last_multiplier_.swap(multiplier_), last_contacts_.swap(contacts_);
  last_by_identity_.clear();
  if (last_multiplier_.size() != numbers_.size()) last_groups_.clear(), last_contacts_.clear();
  last_groups_.push_back({0, rows()});
  if (h_ > 0 && h != h_) {
    for (double& x : last_multiplier_) x *= h / h_;
  }
}

/// The last step's multipliers by identity. Both steps' groups come in one order but for those that came and went.
template <class R>
void TreeRows<R>::recall() {
  multiplier_.assign(rows(), 0.0);
  taken_.assign(last_groups_.size(), 0), lost_.clear();
  int guess = 0;
  for (int g = 0; g < int(groups_.size()); ++g) {
    const int last = groups_[g].identity ? find_last(groups_[g].identity, guess) : -1;
    if (last >= 0) {
      take(g, last);
      guess = last + 1;
    } else if (g < int(contacts_.size())) {
      lost_.push_back(g);
    }
  }
  if (!last_contacts_.empty()) recall_near(lost_);
}

/// A contact that rolled on to another feature starts from where the nearest one between the same links was, if nobody
/// else does.
template <class R>
void TreeRows<R>::recall_near(std::span<const int> lost) {
  const auto links = [](const LinkContact& x, const LinkContact& y) { return std::tie(x.a, x.b) < std::tie(y.a, y.b); };
  for (const int i : lost) {
    const LinkContact& c = contacts_[i];
    const auto [begin, end] = std::equal_range(last_contacts_.begin(), last_contacts_.end(), c, links);
    int nearest = -1;
    double least = kInfinity;
    for (auto at = begin; at != end; ++at) {
      const Vec3d d = at->point.position - c.point.position;
      const int k = int(at - last_contacts_.begin());
      if (!taken_[k] && dot(d, d) < least) nearest = k, least = dot(d, d);
    }
    if (nearest >= 0) take(i, nearest);
  }
}

/// Rows of this step's group start from those of the last step's.
template <class R>
void TreeRows<R>::take(int group, int last) {
  const int to = groups_[group].first_row, from = last_groups_[last].first_row;
  const int end = group + 1 < int(groups_.size()) ? groups_[group + 1].first_row : rows();
  const int count = std::min(end - to, last_groups_[last + 1].first_row - from);
  for (int k = 0; k < count; ++k) multiplier_[to + k] = last_multiplier_[from + k];
  taken_[last] = 1;
}

/// The last step's group of this identity, -1 if there was none.
template <class R>
int TreeRows<R>::find_last(std::uint64_t identity, int guess) {
  const int n = int(last_groups_.size()) - 1;
  for (int k = guess; k < std::min(guess + 2, n); ++k) {
    if (last_groups_[k].identity == identity) return k;
  }
  const auto before = [](const Group& x, const Group& y) { return x.identity < y.identity; };
  if (last_by_identity_.empty()) {
    for (int k = 0; k < n; ++k) last_by_identity_.push_back({last_groups_[k].identity, k});
    std::sort(last_by_identity_.begin(), last_by_identity_.end(), before);
  }
  const auto at = std::lower_bound(last_by_identity_.begin(), last_by_identity_.end(), Group{identity, 0}, before);
  return at != last_by_identity_.end() && at->identity == identity ? at->first_row : -1;
}

template class TreeRows<double>;
template class TreeRows<float>;

}  // namespace tarsus
