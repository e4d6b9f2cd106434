// EqualitySet: additions, names, evaluation. equality_spec.cpp reads a model's spec.
#include "tarsus/constraint/equality.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "constraint/kernel_table.hpp"
#include "tarsus/base/check_index.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/held_point.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {

const char* name(EqualityKind kind) {
  static constexpr const char* kNames[] = {"connect",  "weld",           "joint", "tendon",
                                           "distance", "point on plane", "screw", "user"};
  return kNames[int(kind)];
}

namespace {

/// The link of a carrier of EqualityConstants; -1: a mocap body (an index beyond the model's links).
int link_of(const Model& model, int carrier) { return carrier < model.njoint() ? carrier : -1; }

/// Pose in the frame of Model::carrier().
const Transformd& pose_on_carrier(const Body& body) { return body.mocap >= 0 ? body.X_MB : body.X_LB; }

bool finite(const Vec3d& v) { return std::isfinite(v.x) && std::isfinite(v.y) && std::isfinite(v.z); }

/// A constraint that the joints satisfy anyway has rows of rounding errors only.
void require_free(const std::string& constraint, bool held) {
  if (held)
    throw ValueError("constraint \"" + constraint + "\"", "held by the joints between its bodies",
                     "one on points that move against each other");
}

void require_finite(const std::string& constraint, const char* what, const Vec3d& v) {
  if (!finite(v))
    throw ValueError(std::string(what) + " of \"" + constraint + "\"", fmt::format("({}, {}, {})", v.x, v.y, v.z),
                     "three finite numbers [m]");
}

EqualityConstants<double> blank(EqualityKind kind) {
  EqualityConstants<double> c{};
  c.kind = kind, c.a = c.b = -1, c.scale = 1;
  c.qa = c.qb = c.va = c.vb = -1;
  for (int k = 0; k < 3; ++k) c.Ra[4 * k] = c.Rb[4 * k] = 1;
  return c;
}

void put(double* out, const Mat3d& m) {
  for (int k = 0; k < 9; ++k) out[k] = m(k / 3, k % 3);
}

bool is_identity(const double* matrix) {
  for (int k = 0; k < 9; ++k) {
    if (matrix[k] != (k % 4 == 0)) return false;
  }
  return true;
}

EqualityConstants<float> to_float(const EqualityConstants<double>& c) {
  EqualityConstants<float> f{};
  f.kind = c.kind, f.first_row = c.first_row, f.nrow = c.nrow, f.a = c.a, f.b = c.b;
  f.swapped = c.swapped, f.to_world = c.to_world, f.in_group = c.in_group;
  const auto copy = [](const double* from, int n, float* to) { std::copy(from, from + n, to); };
  copy(c.pa, 3, f.pa), copy(c.pb, 3, f.pb), copy(c.Ra, 9, f.Ra), copy(c.Rb, 9, f.Rb);
  copy(c.normal, 3, f.normal), copy(c.polynomial, 5, f.polynomial);
  f.scale = float(c.scale), f.share = float(c.share), f.reference_a = float(c.reference_a),
  f.reference_b = float(c.reference_b);
  f.qa = c.qa, f.qb = c.qb, f.va = c.va, f.vb = c.vb;
  return f;
}

/// Writes constraint `lane` of a group.
template <class R>
void put_in_group(const EqualityConstants<R>& c, int index, int lane, EqualityGroup<R>& group) {
  group.index[lane] = index, group.first_row[lane] = c.first_row, group.a[lane] = c.a, group.b[lane] = c.b;
  for (int k = 0; k < 3; ++k) group.pa[k][lane] = c.pa[k], group.pb[k][lane] = c.pb[k];
  for (int k = 0; k < 9; ++k) group.Ra[k][lane] = c.Ra[k], group.Rb[k][lane] = c.Rb[k];
  group.scale[lane] = c.scale, group.share[lane] = c.share;
}

}  // namespace

/// Adds the constants, also to a group if possible.
template <class R>
void EqualitySet::Constants<R>::add(const EqualityConstants<R>& constants) {
  all.push_back(constants);
  EqualityConstants<R>& c = all.back();
  const bool weld = c.kind == EqualityKind::weld;
  if ((!weld && c.kind != EqualityKind::connect) || c.a < 0 || c.swapped || (c.b < 0 && !c.to_world)) return;
  const int index = int(all.size()) - 1;
  for (EqualityGroup<R>& group : groups) {
    if (group.weld != weld || group.to_world != c.to_world || group.count == kGroup) continue;
    put_in_group(c, index, group.count++, group);
    all[group.index[0]].in_group = c.in_group = true;
    return;
  }
  EqualityGroup<R> group{};
  group.weld = weld, group.to_world = c.to_world, group.count = 1;
  for (int lane = 0; lane < kGroup; ++lane) put_in_group(c, index, lane, group);
  groups.push_back(group);
}

EqualitySet::EqualitySet(const Model& model) : model_(&model) {}
EqualitySet::~EqualitySet() = default;
EqualitySet::EqualitySet(EqualitySet&&) noexcept = default;
EqualitySet& EqualitySet::operator=(EqualitySet&&) noexcept = default;

template <class R>
EqualityList<R> EqualitySet::list() const {
  const auto& [all, groups] = std::get<Constants<R>>(constants_);
  return {all.data(), int(all.size()), groups.data(), int(groups.size())};
}

/// Requires that the two bodies can move against each other.
void EqualitySet::check_pair(const Equality& e) const {
  for (const int body : {e.body_a, e.body_b}) check_index("body of \"" + e.name + "\"", body, model_->nbody());
  const Body &a = model_->bodies[e.body_a], &b = model_->bodies[e.body_b];
  if (a.link != b.link) return;
  throw ValueError("constraint \"" + e.name + "\"", "bodies \"" + a.name + "\" and \"" + b.name + "\"",
                   a.link < 0 ? "at least one body that can move: both are fixed to the world"
                              : "bodies that can move against each other: one is fixed to the other");
}

void EqualitySet::check_joint(const std::string& name, int joint) const {
  check_index("joint of \"" + name + "\"", joint, model_->njoint());
}

int EqualitySet::add(Equality e, const EqualityConstants<double>& given) {
  EqualityConstants<double> c = given;
  if (e.name.empty()) e.name = fmt::format("equality {}", equalities_.size());
  e.first_row = c.first_row = rows_;
  c.nrow = e.nrow, c.kind = e.kind;
  c.swapped = link_of(*model_, c.a) < 0 && link_of(*model_, c.b) >= 0;
  c.to_world = c.b < 0 && is_identity(c.Rb);
  c.share = link_of(*model_, c.a) >= 0 && link_of(*model_, c.b) >= 0 ? 0.5 : 0;
  rows_ += e.nrow;
  equalities_.push_back(std::move(e));
  std::get<0>(constants_).add(c), std::get<1>(constants_).add(to_float(c));
  users_.resize(equalities_.size());
  return size() - 1;
}

/// Constants of points on two bodies, after checking these.
EqualityConstants<double> EqualitySet::between(const Equality& e, const Vec3d& point_a, const Vec3d& point_b) const {
  check_pair(e);
  require_finite(e.name, "point_a", point_a), require_finite(e.name, "point_b", point_b);
  EqualityConstants<double> c = blank(e.kind);
  c.a = model_->carrier(e.body_a), c.b = model_->carrier(e.body_b);
  const Transformd &X = pose_on_carrier(model_->bodies[e.body_a]), &Y = pose_on_carrier(model_->bodies[e.body_b]);
  put3(c.pa, X.R * point_a + X.p), put3(c.pb, Y.R * point_b + Y.p);
  return c;
}

int EqualitySet::add_connect(const std::string& name, int body_a, const Vec3d& point_a, int body_b,
                             const Vec3d& point_b) {
  Equality e{.name = name, .kind = EqualityKind::connect, .body_a = body_a, .body_b = body_b, .nrow = 3};
  const EqualityConstants<double> c = between(e, point_a, point_b);
  require_free(name, joints_hold(*model_, body_a, point_a, body_b, point_b));
  return add(std::move(e), c);
}

int EqualitySet::add_weld(const std::string& name, int body_a, int body_b, const Transformd& X_AB, double torque_scale,
                          const Vec3d& anchor, const Mat3d& axes) {
  Equality e{.name = name, .kind = EqualityKind::weld, .body_a = body_a, .body_b = body_b, .nrow = 6};
  check_pair(e);
  require_finite(name, "X_AB", X_AB.p), require_finite(name, "anchor", anchor);
  for (const Mat3d* R : {&X_AB.R, &axes}) {
    const double error = rotation_error(*R);
    if (error <= kRotationError) continue;  // false for nan
    throw ValueError((R == &axes ? "axes of \"" : "X_AB of \"") + name + "\"", "off by " + number_text(error),
                     "a rotation matrix");
  }
  if (!std::isfinite(torque_scale) || !(torque_scale > 0))
    throw ValueError("torque_scale of \"" + name + "\"", number_text(torque_scale), "a positive, finite number");
  EqualityConstants<double> c = between(e, X_AB.R * anchor + X_AB.p, anchor);
  put(c.Ra, pose_on_carrier(model_->bodies[body_a]).R * X_AB.R * axes);
  put(c.Rb, pose_on_carrier(model_->bodies[body_b]).R * axes);
  c.scale = e.torque_scale = torque_scale;
  return add(std::move(e), c);
}

int EqualitySet::add_joint(const std::string& name, int joint_a, int joint_b, const std::array<double, 5>& polynomial) {
  Equality e{.name = name, .kind = EqualityKind::joint, .nrow = 1};
  for (const int joint : {joint_a, joint_b}) {
    if (joint == -1 && joint == joint_b) continue;
    check_joint(name, joint);
    if (model_->joints[joint].nv() != 1)
      throw ValueError("joint of \"" + name + "\"", model_->joints[joint].name, "a hinge or a slide");
  }
  if (joint_a == joint_b)
    throw ValueError("constraint \"" + name + "\"", "joint \"" + model_->joints[joint_a].name + "\" twice",
                     "two different joints");
  for (const double x : polynomial) {
    if (!std::isfinite(x)) throw ValueError("polynomial of \"" + name + "\"", number_text(x), "finite coefficients");
  }
  EqualityConstants<double> c = blank(e.kind);
  const Joint& a = model_->joints[joint_a];
  c.a = joint_a, c.qa = a.qpos, c.va = a.qvel, c.reference_a = model_->qpos0[a.qpos];
  if (joint_b >= 0) {
    const Joint& b = model_->joints[joint_b];
    c.b = joint_b, c.qb = b.qpos, c.vb = b.qvel, c.reference_b = model_->qpos0[b.qpos];
  }
  std::copy(polynomial.begin(), polynomial.end(), c.polynomial);
  return add(std::move(e), c);
}

int EqualitySet::add_distance(const std::string& name, int body_a, const Vec3d& point_a, int body_b,
                              const Vec3d& point_b, double length) {
  Equality e{.name = name, .kind = EqualityKind::distance, .body_a = body_a, .body_b = body_b, .nrow = 1};
  EqualityConstants<double> c = between(e, point_a, point_b);
  if (!std::isfinite(length) || !(length > 0))
    throw ValueError("length of \"" + name + "\"", number_text(length),
                     "a positive, finite number of metres (for 0 use connect)");
  require_free(name, joints_hold(*model_, body_a, point_a, body_b) || joints_hold(*model_, body_b, point_b, body_a));
  c.scale = length;
  return add(std::move(e), c);
}

int EqualitySet::add_point_on_plane(const std::string& name, int body_a, const Vec3d& point_a, int body_b,
                                    const Vec3d& point_b, const Vec3d& normal) {
  Equality e{.name = name, .kind = EqualityKind::point_on_plane, .body_a = body_a, .body_b = body_b, .nrow = 1};
  EqualityConstants<double> c = between(e, point_a, point_b);
  require_finite(name, "normal", normal);
  if (!(norm(normal) > 1e-12)) throw ValueError("normal of \"" + name + "\"", "zero", "a direction");
  require_free(name, joints_hold(*model_, body_a, point_a, body_b));
  put3(c.normal, pose_on_carrier(model_->bodies[body_b]).R * (normal * (1 / norm(normal))));
  return add(std::move(e), c);
}

int EqualitySet::add_user(const std::string& name, UserRows rows) {
  Equality e{.name = name, .kind = EqualityKind::user, .nrow = rows.nrow};
  if (rows.nrow < 1) throw ValueError("nrow of \"" + name + "\"", std::to_string(rows.nrow), "at least 1");
  if (!rows.evaluate) throw ValueError("evaluate of \"" + name + "\"", "nothing", "a function");
  if (rows.joints.empty()) throw ValueError("joints of \"" + name + "\"", "none", "the joints that the rows depend on");
  for (const int joint : rows.joints) check_joint(name, joint);
  std::sort(rows.joints.begin(), rows.joints.end());
  rows.joints.erase(std::unique(rows.joints.begin(), rows.joints.end()), rows.joints.end());
  const int index = add(std::move(e), blank(EqualityKind::user));
  users_[index] = std::move(rows), has_users_ = true;
  return index;
}

void EqualitySet::set_softness(int index, const Softness& s) {
  check_index("index", index, size());
  const bool good =
      std::isfinite(s.compliance) && std::isfinite(s.damping_steps) && s.compliance >= 0 && s.damping_steps >= 0;
  if (!good || s.compliance + s.damping_steps <= 0) {
    throw ValueError("softness of \"" + equalities_[index].name + "\"",
                     fmt::format("compliance {}, damping {} steps", s.compliance, s.damping_steps),
                     "two finite numbers that are not negative and not both zero");
  }
  equalities_[index].softness = s;
}

std::string EqualitySet::row_name(int row) const {
  for (const Equality& e : equalities_) {
    if (row < e.first_row || row >= e.first_row + e.nrow) continue;
    static const char* const kAxes[] = {" x", " y", " z", " turn x", " turn y", " turn z"};
    const int k = row - e.first_row;
    std::string part;
    if (e.kind == EqualityKind::connect || e.kind == EqualityKind::weld)
      part = kAxes[k];
    else if (e.nrow > 1)
      part = " " + std::to_string(k);
    return e.name + " (" + tarsus::name(e.kind) + ")" + part;
  }
  return "row " + std::to_string(row);
}

std::vector<std::uint8_t> EqualitySet::held_trees() const {
  std::vector<std::uint8_t> held(std::size_t(model_->njoint()));
  DelassusRows<double> rows(*model_);
  add_blocks(rows);
  for (int i = 0; i < size(); ++i) {
    for (const int link : rows.block(i).links) {  // the roots are among them
      if (model_->joints[std::size_t(link)].parent < 0) held[std::size_t(link)] = 1;
    }
  }
  return held;
}

template <class R>
void EqualitySet::add_blocks(DelassusRows<R>& rows) const {
  if (rows.blocks() > 0) throw ValueError("rows", std::to_string(rows.blocks()) + " blocks", "none yet");
  for (int i = 0; i < size(); ++i) {
    const EqualityConstants<double>& c = std::get<0>(constants_).all[i];
    if (users_[i].evaluate) {
      rows.add_joint_block(users_[i].joints, c.nrow);
      continue;
    }
    const int a = link_of(*model_, c.a), b = link_of(*model_, c.b);
    const int index = rows.add_block(c.swapped ? b : a, c.swapped ? a : b, c.nrow, c.kind == EqualityKind::joint);
    if (c.kind != EqualityKind::connect && c.kind != EqualityKind::weld) continue;
    // Unit forces along the world's axes: the constant part of the rows.
    const auto block = rows.block(index);
    const int width = rows.width();
    for (int k = 0; k < 3; ++k) {
      R* on_first = block.force + (std::size_t(3 + k) * block.stride + k) * width;
      R* on_second = block.force + (std::size_t(9 + k) * block.stride + k) * width;
      std::fill_n(on_first, width, R(c.swapped ? -1 : 1)), std::fill_n(on_second, width, R(c.swapped ? 1 : -1));
    }
  }
  std::vector<RowTarget<R>> targets(size());
  find_targets(rows, targets.data());
  for (int i = 0; i < size(); ++i) {
    const auto block = rows.block(i);
    if (targets[i].force != block.force || (block.force && targets[i].stride != block.stride))
      throw Error("equality constraints: blocks' forces do not lie one after another");
  }
}

/// Addresses of the constraints' forces. The blocks' forces are contiguous; looking up each block would cost more than
/// evaluating its rows.
template <class R>
void EqualitySet::find_targets(DelassusRows<R>& rows, RowTarget<R>* targets) const {
  const int pad = row_width<R>(rows.width());
  R* force = nullptr;
  for (int i = 0; i < size(); ++i) {
    const EqualityConstants<double>& c = std::get<0>(constants_).all[i];
    targets[i] = {};
    if (c.kind == EqualityKind::user || c.kind == EqualityKind::tendon) continue;
    if (!force) force = rows.block(i).force;
    const int stride = (c.nrow + pad - 1) & -pad;
    targets[i].force = force, targets[i].stride = stride;
    if (c.kind == EqualityKind::joint) targets[i].joint = rows.block(i).joint;
    force += std::size_t(12) * stride * rows.width();
  }
}

/// A user's rows of one world, scattered to the block's DoFs.
template <class R>
static void user_rows(const Model& model, const UserRows& user, int first_row, int width, int lane, In<R> qpos,
                      In<R> qvel, const typename DelassusRows<R>::Block& block, Out<R> phi, Out<R> rate, Out<R> bias) {
  std::vector<double> q(model.nq), v(qvel.empty() ? 0 : model.nv), f(user.nrow), g(v.empty() ? 0 : user.nrow);
  for (int i = 0; i < model.nq; ++i) q[i] = double(qpos[std::size_t(i) * width + lane]);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = double(qvel[i * width + lane]);
  std::vector<int> dofs;
  for (const int joint : user.joints) {
    for (int d = 0; d < model.joints[joint].nv(); ++d) dofs.push_back(model.joints[joint].qvel + d);
  }
  std::vector<double> J(dofs.size() * user.nrow);
  user.evaluate(q, v, f, J, g);
  for (int r = 0; r < user.nrow; ++r) {
    phi[std::size_t(first_row + r) * width + lane] = R(f[r]);
    double speed = 0;
    for (std::size_t k = 0; k < dofs.size() && !v.empty(); ++k) speed += J[r * dofs.size() + k] * v[dofs[k]];
    if (!rate.empty()) rate[std::size_t(first_row + r) * width + lane] = R(speed);
    if (!bias.empty()) bias[std::size_t(first_row + r) * width + lane] = R(g[r]);
    for (std::size_t k = 0; k < block.dofs.size(); ++k) {
      const auto at = std::lower_bound(dofs.begin(), dofs.end(), block.dofs[k]);
      const bool own = at != dofs.end() && *at == block.dofs[k];
      block.joint[(k * block.stride + r) * width + lane] = own ? R(J[r * dofs.size() + (at - dofs.begin())]) : R(0);
    }
  }
}

// Apart from evaluate(), whose stack frame it would enlarge.
template <class R>
[[gnu::noinline]] void EqualitySet::evaluate_users(int width, In<R> qpos, In<R> qvel, DelassusRows<R>& rows, Out<R> phi,
                                                   Out<R> rate, Out<R> bias) const {
  for (int i = 0; i < size(); ++i) {
    if (!users_[i].evaluate) continue;
    const auto block = rows.block(i);
    for (int lane = 0; lane < width; ++lane)
      user_rows<R>(*model_, users_[i], equalities_[i].first_row, width, lane, qpos, qvel, block, phi, rate, bias);
  }
}

template <class R>
void EqualitySet::evaluate(const BasicData<R>& data, int pack, In<R> qpos, In<R> qvel, DelassusRows<R>& rows,
                           Out<R> phi, Out<R> rate, Out<R> bias) const {
  const int width = data.width();
  check_size("phi", phi.size(), std::size_t(rows_) * width);
  if (!rate.empty()) check_size("rate", rate.size(), phi.size());
  if (!bias.empty()) check_size("bias", bias.size(), phi.size());
  constexpr int kFew = 16;
  RowTarget<R> few[kFew];
  std::vector<RowTarget<R>> many;
  if (size() > kFew) many.resize(size());
  RowTarget<R>* targets = size() > kFew ? many.data() : few;
  find_targets(rows, targets);
  if (has_users_) evaluate_users<R>(width, qpos, qvel, rows, phi, rate, bias);
  const bool moving = !rate.empty() && !bias.empty();
  constraint_table<R>(width).equalities(data.view(*model_, pack), data.state(pack), list<R>(), targets, qpos.data(),
                                        qvel.data(), phi.data(), moving ? rate.data() : nullptr,
                                        moving ? bias.data() : nullptr);
}

template <class R>
bool EqualitySet::geometric_inertia(BasicData<R>& data, double h, In<R> multipliers, In<R> qvel, In<R> next,
                                    const HangingLinks<R>* hanging, Out<R> inertia) const {
  const std::size_t nv = std::size_t(model_->nv) * data.width(), nrow = std::size_t(rows_) * data.width();
  check_size("multipliers", multipliers.size(), data.packs() * nrow);
  for (const std::size_t size : {qvel.size(), next.size(), inertia.size()})
    check_size("qvel, next and inertia", size, data.packs() * nv);
  bool some = false;
  for (int p = 0; p < data.packs(); ++p) {
    const HangingLink<R>* const links = hanging ? hanging->links().data() : nullptr;
    some |=
        constraint_table<R>(data.width())
            .geometric_inertia(data.view(*model_, p), data.state(p), list<R>(), multipliers.data() + p * nrow, R(h),
                               data.joint_inertia.data() + p * nv, qvel.data() + p * nv, next.data() + p * nv, links,
                               links && data.own ? hanging_links(data.own[p]) : nullptr, inertia.data() + p * nv);
  }
  return some;
}

#define TARSUS_INSTANTIATE(R)                                                                                         \
  template void EqualitySet::add_blocks<R>(DelassusRows<R>&) const;                                                   \
  template bool EqualitySet::geometric_inertia<R>(BasicData<R>&, double, In<R>, In<R>, In<R>, const HangingLinks<R>*, \
                                                  Out<R>) const;                                                      \
  template void EqualitySet::evaluate<R>(const BasicData<R>&, int, In<R>, In<R>, DelassusRows<R>&, Out<R>, Out<R>,    \
                                         Out<R>) const;
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
