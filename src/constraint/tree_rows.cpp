#include "tarsus/constraint/tree_rows.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "constraint/widen.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

namespace {

constexpr std::uint64_t kLimitIdentity = std::uint64_t(1) << 62, kFrictionIdentity = std::uint64_t(1) << 63;

template <class R>
Motion<double> velocity_of(const LinkState<R>* links, int link) {
  return link < 0 ? Motion<double>{{0, 0, 0}, {0, 0, 0}} : widen(links[link].v);
}

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
                        std::span<const LinkContact> contacts) {
  if (data.width() != 1) {
    throw ValueError("data", std::to_string(data.width()) + " lanes",
                     "one world: contacts and limits are not in lanes yet");
  }
  remember();
  if (h_ > 0 && h != h_) {
    for (Warm& warm : warm_) std::for_each_n(warm.multiplier, warm.count, [&](double& x) { x *= h / h_; });
  }
  h_ = h;
  numbers_.clear(), blocks_.clear(), contact_rows_.clear(), joint_rows_.clear();
  report_ = {};
  contacts_.assign(contacts.begin(), contacts.end());
  add_contacts(data, h);
  if (options_.limits) add_limits(qpos, qvel, free_velocity, h);
  if (options_.friction_loss) add_friction_loss(h);
  report_.rows = rows();
  recall();
}

template <class R>
void TreeRows<R>::add_block(RowCone cone, int reference, double coefficient, std::uint64_t identity) {
  blocks_.push_back({rows(), 0, cone, reference, coefficient, identity});
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
  std::sort(contacts_.begin(), contacts_.end(), [](const LinkContact& x, const LinkContact& y) {
    const Vec3d &p = x.point.position, &q = y.point.position;
    return std::tie(x.a, x.b, x.identity, p.x, p.y, p.z) < std::tie(y.a, y.b, y.identity, q.x, q.y, q.z);
  });
  report_.contacts = int(contacts_.size());
  for (const LinkContact& c : contacts_) add_contact(data, h, c);
}

/// A contact's rows: forces along n, t₁, t₂ at the point, then moments about n, t₁, t₂.
template <class R>
void TreeRows<R>::add_contact(const BasicData<R>& data, double h, const LinkContact& c) {
  const auto [t1, t2] = contact_tangents(c.point.normal);
  const Vec3d n = c.point.normal, arm_a = c.point.position - widen(data.links()[c.a].o);
  const Vec3d arm_b = c.b >= 0 ? c.point.position - widen(data.links()[c.b].o) : Vec3d{0, 0, 0};
  contact_rows_.push_back({c.a, c.b, rows(), c.dimension, arm_a, arm_b, {n, t1, t2}, c.friction});
  const Motion<double> va = velocity_of(data.links(), c.a), vb = velocity_of(data.links(), c.b);
  const double speed = dot(n, va.v + cross(va.w, arm_a) - vb.v - cross(vb.w, arm_b));
  Spook soft = c.spook;
  if (soft.compliance == 0) {
    soft.compliance = options_.relative_compliance * h * h * contact_inverse_mass(data.links(), c.a, c.b);
  }
  const SpookRow spook =
      spook_unilateral(soft, c.point.distance, speed, h, c.restitution, options_.restitution_threshold);
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
void TreeRows<R>::add_joint_row(int joint, const double* entries, const RowNumbers& numbers, std::uint64_t identity) {
  JointRow row{joint, {}};
  std::copy_n(entries, model_.joints[joint].nv(), row.entry);
  joint_rows_.push_back(row);
  add_block(RowCone::interval, -1, 0, identity);
  add_row(numbers);
}

/// A row for the side of a joint's range that it could reach within the step, and a little beyond.
template <class R>
void TreeRows<R>::add_limit(int joint, In<R> qpos, In<R> qvel, In<R> free_velocity, double h) {
  const Joint& j = model_.joints[joint];
  const auto add = [&](double g, const double* entries, int side) {
    double speed = 0, ahead = 0;
    for (int k = 0; k < j.nv(); ++k)
      speed += entries[k] * qvel[j.qvel + k], ahead += entries[k] * free_velocity[j.qvel + k];
    if (g + h * std::min(speed, ahead) > 0.02) return;
    const SpookRow row = spook_unilateral(options_.limit_spook, g, speed, h);
    add_joint_row(joint, entries, {row.compliance, row.target, 0, kInfinity},
                  kLimitIdentity + 2 * std::uint64_t(joint) + side);
    ++report_.limits;
  };
  if (j.nv() == 1) {
    const double up = 1, down = -1, q = qpos[j.qpos];
    add(q - j.range[0], &up, 0);
    add(j.range[1] - q, &down, 1);
    return;
  }
  const Vec3d turn =
      log_map({double(qpos[j.qpos]), double(qpos[j.qpos + 1]), double(qpos[j.qpos + 2]), double(qpos[j.qpos + 3])});
  const double angle = norm(turn);
  if (angle < 1e-6) return;  // no direction to push in
  const Vec3d n = turn * (-1 / angle);
  add(j.range[1] - angle, &n.x, 0);
}

template <class R>
void TreeRows<R>::add_limits(In<R> qpos, In<R> qvel, In<R> free_velocity, double h) {
  for (int i = 0; i < model_.njoint(); ++i) {
    if (model_.joints[i].limited && model_.joints[i].type != JointType::free)
      add_limit(i, qpos, qvel, free_velocity, h);
  }
}

template <class R>
void TreeRows<R>::add_friction_loss(double h) {
  for (int i = 0; i < model_.njoint(); ++i) {
    const Joint& joint = model_.joints[i];
    if (!(joint.friction_loss > 0)) continue;
    const double bound = h * joint.friction_loss;
    for (int k = 0; k < joint.nv(); ++k) {
      double entries[6] = {};
      entries[k] = 1;
      add_joint_row(i, entries, {0, 0, -bound, bound}, kFrictionIdentity + 8 * std::uint64_t(i) + k);
    }
  }
}

/// The last step's multipliers by identity. A contact's rows are several blocks, of which only the first has one.
template <class R>
void TreeRows<R>::remember() {
  warm_.clear();
  if (multiplier_.size() != numbers_.size()) return;
  for (const RowBlock& block : blocks_) {
    if (block.identity) warm_.push_back({block.identity, 0, {}});
    if (warm_.empty()) continue;
    Warm& warm = warm_.back();
    for (int i = block.first; i < block.first + block.count && warm.count < 6; ++i)
      warm.multiplier[warm.count++] = multiplier_[i];
  }
  std::sort(warm_.begin(), warm_.end(), [](const Warm& x, const Warm& y) { return x.identity < y.identity; });
}

template <class R>
void TreeRows<R>::recall() {
  multiplier_.assign(rows(), 0.0);
  const Warm* from = nullptr;
  int taken = 0;
  for (const RowBlock& block : blocks_) {
    if (block.reference < 0) {
      const auto at = std::lower_bound(warm_.begin(), warm_.end(), block.identity,
                                       [](const Warm& w, std::uint64_t id) { return w.identity < id; });
      from = block.identity && at != warm_.end() && at->identity == block.identity ? &*at : nullptr;
      taken = 0;
    }
    for (int i = block.first; i < block.first + block.count; ++i, ++taken) {
      if (from && taken < from->count) multiplier_[i] = from->multiplier[taken];
    }
  }
}

template class TreeRows<double>;
template class TreeRows<float>;

}  // namespace tarsus
