#include "tarsus/dynamics/tendon.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tarsus/dynamics/tendon_pull.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/mujoco_minval.hpp"

namespace tarsus {

namespace {

using PathKind = TendonSpec::PathKind;

void resolve_terms(const Model& model, const TendonSpec& spec, Tendon& tendon) {
  for (const TendonSpec::Term& term : spec.terms) {
    const int j = model.find_joint(term.joint);
    if (j < 0 || model.joints[j].nv() != 1)
      throw InputError(spec.where,
                       "tendon \"" + spec.name + "\": there is no hinge or slide named \"" + term.joint + "\"");
    const Joint& joint = model.joints[j];
    const auto same = std::find_if(tendon.terms.begin(), tendon.terms.end(),
                                   [&](const Tendon::Term& t) { return t.dof == joint.qvel; });
    if (same != tendon.terms.end())
      same->coefficient += term.coefficient;
    else
      tendon.terms.push_back({joint.qpos, joint.qvel, term.coefficient});
  }
  std::sort(tendon.terms.begin(), tendon.terms.end(), [](const auto& a, const auto& b) { return a.dof < b.dof; });
  for (const Tendon::Term& term : tendon.terms) tendon.dofs.push_back(term.dof);
}

void resolve_path(const Model& model, const TendonSpec& spec, Tendon& tendon) {
  std::vector<char> used(model.nv, 0);
  for (const TendonSpec::PathPoint& p : spec.path) {
    Tendon::Point point{p.kind, {}, 0, false, false, {}, p.divisor};
    if (p.kind == PathKind::site) point.frame = site_frame(model, p.name, spec.where);
    if (p.kind == PathKind::geom) {
      const GeomPlace geom = geom_place(model, p.name, spec.where);
      point.frame = geom.frame, point.radius = geom.spec->size.x;
      point.cylinder = geom.spec->type == GeomType::cylinder;
      if (!point.cylinder && geom.spec->type != GeomType::sphere)
        throw InputError(spec.where, "tendon \"" + spec.name +
                                         "\" can wrap only around spheres and cylinders, not around geom \"" + p.name +
                                         "\"");
      point.has_side = !p.side_site.empty();
      if (point.has_side) point.side = site_frame(model, p.side_site, spec.where);
    }
    if (p.kind != PathKind::pulley) mark_dofs(model, point.frame.link, used);
    tendon.path.push_back(point);
  }
  for (int v = 0; v < model.nv; ++v) {
    if (used[v]) tendon.dofs.push_back(v);
  }
}

/// A straight part of a path, and the links to which its end points are fixed.
struct PathPart {
  Vec3d from, to;
  int from_point, to_point;
};

/// Output of a walk along a path; the first one that is set is computed.
struct PathResults {
  std::vector<TendonSegment>* segments = nullptr;
  std::vector<TendonPull>* pulls = nullptr;
  double* row = nullptr;    ///< [nv] moment arms are added to it
  double* bend = nullptr;   ///< [nv] ∂²l/∂q_i² are added to it
  Vec3d* motion = nullptr;  ///< [nv] scratch for `bend`, zero before and after
};

/// Calls f(dof, velocity of the point by it, its axis of rotation or zero) for the DoFs that move a point of the link.
template <class F>
void each_motion(const Model& model, const LinkState<double>* links, int link, const Vec3d& point, const F& f) {
  for (int i = link; i >= 0; i = model.joints[i].parent) {
    const Joint& joint = model.joints[i];
    const Mat3d& A = links[i].R;
    const auto turn = [&](int dof, const Vec3d& axis) { f(dof, cross(axis, point - links[i].o), axis); };
    if (slides_on_axis(joint.type)) {
      f(joint.qvel, A.column_z(), Vec3d{0, 0, 0});
    } else if (turns_on_axis(joint.type)) {
      turn(joint.qvel, A.column_z());
    } else {
      const int translations = scalar_count(joint.type);
      for (int k = 0; k < translations; ++k)
        f(joint.qvel + k, Vec3d{k == 0 ? 1. : 0., k == 1 ? 1. : 0., k == 2 ? 1. : 0.}, Vec3d{0, 0, 0});
      for (int k = 0; k < 3; ++k)
        turn(joint.qvel + translations + k, A * Vec3d{k == 0 ? 1. : 0., k == 1 ? 1. : 0., k == 2 ? 1. : 0.});
    }
  }
}

class PathWalk {
 public:
  PathWalk(const Model& model, const LinkState<double>* links, const PathResults& results)
      : model_(model), links_(links), results_(results) {}

  double length(const Tendon& tendon) {
    double sum = 0;
    path_ = tendon.path.data();
    for (std::size_t i = 0; i + 1 < tendon.path.size();) {
      const Tendon::Point &a = tendon.path[i], &b = tendon.path[i + 1];
      if (a.kind == PathKind::pulley || b.kind == PathKind::pulley) {
        if (a.kind == PathKind::pulley) divisor_ = a.divisor;
        ++i;
      } else if (b.kind == PathKind::geom) {
        sum += around(int(i)), i += 2;
      } else {
        sum += straight({world_point(links_, a.frame), world_point(links_, b.frame), int(i), int(i) + 1}), ++i;
      }
    }
    return sum;
  }

 private:
  /// Adds the result of a straight part and returns its length over the divisor.
  double straight(const PathPart& s) {
    const Vec3d d = s.to - s.from;
    const double length = norm(d);
    const Vec3d u = length > kMujocoMinval ? d * (1 / length) : Vec3d{1, 0, 0}, none{0, 0, 0};
    const LinkFrame &from = path_[s.from_point].frame, &to = path_[s.to_point].frame;
    if (results_.segments) {
      results_.segments->push_back({s.from, s.to});
    } else if (results_.pulls) {
      results_.pulls->push_back({s.to_point, s.to, u * (1 / divisor_)});
      results_.pulls->push_back({s.from_point, s.from, u * (-1 / divisor_)});
    } else if (from.carrier() == to.carrier()) {
      return length / divisor_;
    } else if (results_.bend) {
      bend(s, u, std::max(length, kMujocoMinval));
    } else {
      add_generalized_force(model_, links_, to.link, s.to, u, none, 1 / divisor_, results_.row);
      add_generalized_force(model_, links_, from.link, s.from, u, none, -1 / divisor_, results_.row);
    }
    return length / divisor_;
  }

  /// Second derivatives of a straight part: the ends move across it, and on circles.
  void bend(const PathPart& s, const Vec3d& u, double length) {
    const std::pair<int, Vec3d> ends[] = {{path_[s.to_point].frame.link, s.to},
                                          {path_[s.from_point].frame.link, s.from}};
    for (int side = 0; side < 2; ++side) {
      const double sign = side == 0 ? 1 : -1;
      each_motion(model_, links_, ends[side].first, ends[side].second, [&](int dof, const Vec3d& v, const Vec3d& axis) {
        results_.motion[dof] += v * sign, results_.bend[dof] += sign / divisor_ * dot(u, cross(axis, v));
      });
    }
    for (const auto& [link, point] : ends) {
      each_motion(model_, links_, link, point, [&](int dof, const Vec3d&, const Vec3d&) {
        const Vec3d v = std::exchange(results_.motion[dof], Vec3d{0, 0, 0}), across = cross(u, v);
        results_.bend[dof] += dot(across, across) / (length * divisor_);
      });
    }
  }

  /// The path from site `first` around a geom to the next site.
  double around(int first) {
    const Tendon::Point &a = path_[first], &geom = path_[first + 1], &b = path_[first + 2];
    const Transformd X = world_pose(links_, geom.frame);
    const auto local = [&](const Vec3d& p) { return transpose_mul(X.R, p - X.p); };
    const Vec3d x0 = world_point(links_, a.frame), x1 = world_point(links_, b.frame);
    Vec3d side{0, 0, 0};
    if (geom.has_side) side = local(world_point(links_, geom.side));
    const WrapResult wrap =
        wrap_path(local(x0), local(x1), geom.radius, geom.cylinder, geom.has_side ? &side : nullptr);
    if (wrap.length < 0) return straight({x0, x1, first, first + 2});
    const Vec3d w0 = X.R * wrap.first + X.p, w1 = X.R * wrap.second + X.p;
    if (results_.segments) add_arc(X, geom, wrap);
    return straight({x0, w0, first, first + 1}) + wrap.length / divisor_ + straight({w1, x1, first + 1, first + 2});
  }

  /// Adds the arc or helix between the tangent points, as chords.
  void add_arc(const Transformd& X, const Tendon::Point& geom, const WrapResult& wrap) {
    constexpr double kChord = kPi / 12;
    const Vec3d lift0{0, 0, geom.cylinder ? wrap.first.z : 0}, lift1{0, 0, geom.cylinder ? wrap.second.z : 0};
    const Vec3d a = wrap.first - lift0, b = wrap.second - lift1, normal = cross(a, b), climb = lift1 - lift0;
    const double sine = norm(normal), turn = elementary::atan2(sine, dot(a, b));
    const double arc = std::sqrt(std::max(wrap.length * wrap.length - dot(climb, climb), 0.0)) / geom.radius;
    if (!(sine > 0) || !std::isfinite(arc)) return;
    const double way = std::abs(arc - turn) <= std::abs(arc - (2 * kPi - turn)) ? 1 : -1;
    const Vec3d across = cross(normal * (way / sine), a);
    const int chords = 1 + int(arc / kChord);
    Vec3d from = X.R * wrap.first + X.p;
    for (int k = 1; k <= chords; ++k) {
      const double part = double(k) / chords, angle = part * arc;
      const Vec3d at = a * elementary::cos(angle) + across * elementary::sin(angle) + lift0 + climb * part;
      const Vec3d to = X.R * at + X.p;
      results_.segments->push_back({from, to});
      from = to;
    }
  }

  const Model& model_;
  const LinkState<double>* links_;
  PathResults results_;
  const Tendon::Point* path_ = nullptr;
  double divisor_ = 1;
};

}  // namespace

/// Length beyond the spring's dead band.
static double beyond_band(const std::array<double, 2>& band, double length) {
  return length > band[1] ? length - band[1] : length < band[0] ? length - band[0] : 0;
}

double Tendon::passive_force(double length, double velocity) const {
  const double x = beyond_band(spring_length, length), speed = std::abs(velocity);
  return -x * (stiffness[0] + x * (stiffness[1] + x * stiffness[2])) -
         velocity * (damping[0] + speed * (damping[1] + speed * damping[2]));
}

double Tendon::spring_energy(double length) const {
  const double x = beyond_band(spring_length, length);
  return x * x * (stiffness[0] / 2 + x * (stiffness[1] / 3 + x * stiffness[2] / 4));
}

double Tendon::stiffness_at(double length) const {
  const double x = beyond_band(spring_length, length);
  if (x == 0 && spring_length[0] < spring_length[1]) return 0;
  return std::max(0.0, stiffness[0] + x * (2 * stiffness[1] + 3 * x * stiffness[2]));
}

double Tendon::damping_at(double velocity) const {
  const double speed = std::abs(velocity);
  return std::max(0.0, damping[0] + speed * (2 * damping[1] + 3 * speed * damping[2]));
}

bool Tendon::passive() const {
  const std::array<double, 3> none{};
  return stiffness != none || damping != none;
}

TendonSet TendonSet::of(const Model& model) {
  TendonSet set;
  for (const TendonSpec& spec : model.spec.tendons) set.add(model, spec);
  if (set.size() == 0) return set;
  // Unless the file gives a length, springs are at rest at the length of qpos_spring.
  Data data(model);
  kinematics<double>(model, data, model.qpos_spring);
  std::vector<double> length(set.size()), arm(set.arms_), row(model.nv);
  tendon_lengths(model, set, data.links(), model.qpos_spring, length, arm, row);
  for (int t = 0; t < set.size(); ++t) {
    std::array<double, 2>& spring = set.tendons_[t].spring_length;
    if (spring == std::array<double, 2>{-1, -1}) spring = {length[t], length[t]};
  }
  return set;
}

void TendonSet::add(const Model& model, const TendonSpec& spec) {
  Tendon tendon;
  tendon.name = spec.name, tendon.where = spec.where;
  spec.spatial ? resolve_path(model, spec, tendon) : resolve_terms(model, spec, tendon);
  if (model.spec.option.spring_enabled)
    tendon.stiffness = {spec.stiffness, spec.stiffness_polynomial[0], spec.stiffness_polynomial[1]};
  if (model.spec.option.damper_enabled)
    tendon.damping = {spec.damping, spec.damping_polynomial[0], spec.damping_polynomial[1]};
  tendon.spring_length = spec.spring_length, tendon.armature = spec.armature;
  tendon.limited = spec.limited && model.spec.option.limit_enabled;
  tendon.range = spec.range, tendon.margin = spec.margin;
  if (model.spec.option.friction_loss_enabled) tendon.friction_loss = spec.friction_loss;
  tendon.force_limited = spec.force_limited, tendon.force_range = spec.force_range;
  tendon.first = arms_;
  arms_ += int(tendon.dofs.size());
  spatial_ = spatial_ || spec.spatial;
  tendons_.push_back(std::move(tendon));
}

/// Length and moment arms of one tendon, as tendon_lengths().
static double measure(const Model& model, const Tendon& tendon, const LinkState<double>* links,
                      std::span<const double> qpos, std::span<double> arm, std::span<double> row) {
  double length = 0;
  if (tendon.path.empty()) {
    for (std::size_t i = 0; i < tendon.terms.size(); ++i)
      length += tendon.terms[i].coefficient * qpos[tendon.terms[i].qpos], arm[i] = tendon.terms[i].coefficient;
    return length;
  }
  length = PathWalk(model, links, {.row = row.data()}).length(tendon);
  for (std::size_t i = 0; i < tendon.dofs.size(); ++i) arm[i] = std::exchange(row[tendon.dofs[i]], 0.0);
  return length;
}

void tendon_lengths(const Model& model, const TendonSet& tendons, const LinkState<double>* links,
                    std::span<const double> qpos, std::span<double> length, std::span<double> arm,
                    std::span<double> row) {
  check_size("qpos", qpos.size(), model.nq);
  check_size("length", length.size(), tendons.size());
  check_size("arm", arm.size(), tendons.arms());
  check_size("row", row.size(), model.nv);
  for (int t = 0; t < tendons.size(); ++t)
    length[t] = measure(model, tendons[t], links, qpos, arm.subspan(tendons[t].first, tendons[t].dofs.size()), row);
}

double tendon_bend(const Model& model, const Tendon& tendon, const LinkState<double>* links,
                   std::span<const double> inertia) {
  check_size("inertia", inertia.size(), model.nv);
  if (tendon.path.empty()) return 0;
  std::vector<double> bend(inertia.size());
  std::vector<Vec3d> motion(inertia.size());
  PathWalk(model, links, {.bend = bend.data(), .motion = motion.data()}).length(tendon);
  double sum = 0;
  for (const int v : tendon.dofs) sum += std::abs(bend[v]) / inertia[v];
  return sum;
}

void tendon_pulls(const Model& model, const Tendon& tendon, const LinkState<double>* links,
                  std::vector<TendonPull>& out) {
  out.clear();
  if (!tendon.path.empty()) PathWalk(model, links, {.pulls = &out}).length(tendon);
}

void tendon_path(const Model& model, const Tendon& tendon, const LinkState<double>* links,
                 std::vector<TendonSegment>& out) {
  if (!tendon.path.empty()) PathWalk(model, links, {.segments = &out}).length(tendon);
}

/// Kinematics at the pose qpos ⊞ turn. @param moved out: that pose
static void look_ahead(const Model& model, Data& work, std::span<const double> qpos, std::span<const double> turn,
                       std::vector<double>& moved) {
  moved.resize(model.nq);
  integrate<double>(model, work, qpos, turn, 1.0, moved);
  kinematics<double>(model, work, moved);
}

double reachable_change(double wanted, double most_turn, std::span<const double> inertia, std::span<double> slope,
                        const std::function<double(std::span<const double>)>& change_ahead) {
  constexpr double kLeastTurn = 1e-6;  // a smaller one has the same slope at its end
  double rate = 0, most = 0;
  for (std::size_t v = 0; v < slope.size(); ++v) {
    if (slope[v] == 0) continue;
    rate += slope[v] * slope[v] / inertia[v], slope[v] /= inertia[v];
    most = std::max(most, std::abs(slope[v]));
  }
  const double whole = wanted / rate, part = std::copysign(std::min(std::abs(whole), most_turn / most), whole);
  if (!std::isfinite(part)) return 0;  // the length is extremal here
  if (!(most * std::abs(part) > kLeastTurn)) return wanted;
  for (double& turn : slope) turn *= part;
  const double share = change_ahead(slope) / (part * rate);  // of the change at the start
  return share < 0.5 ? 0.5 * part * rate / (1 - share) : wanted;
}

double tendon_change_ahead(const Model& model, const Tendon& tendon, Data& work, std::span<const double> qpos,
                           std::span<const double> turn) {
  check_size("turn", turn.size(), model.nv);
  std::vector<double> moved, arm(tendon.dofs.size()), row(model.nv);
  look_ahead(model, work, qpos, turn, moved);
  measure(model, tendon, work.links(), moved, arm, row);
  double change = 0;
  for (std::size_t i = 0; i < arm.size(); ++i) change += arm[i] * turn[tendon.dofs[i]];
  return change;
}

void tendon_bias(const Model& model, const TendonSet& tendons, Data& work, std::span<const double> qpos,
                 std::span<const double> qvel, std::span<double> out) {
  constexpr double kDifference = 1e-5;  // [rad | m]
  constexpr double kSlowest = 1e-150;   // the square of slower speeds is no normal number [rad/s | m/s]
  check_size("out", out.size(), tendons.size());
  std::fill(out.begin(), out.end(), 0.0);
  double fastest = 0;
  for (const double v : qvel) fastest = std::max(fastest, std::abs(v));
  if (!tendons.spatial() || !(fastest > kSlowest)) return;
  const double t = kDifference / fastest;
  std::vector<double> turn(model.nv), moved, length(tendons.size()), arm(tendons.arms()), row(model.nv);
  for (const double side : {1.0, -1.0}) {
    for (int v = 0; v < model.nv; ++v) turn[v] = side * t * qvel[v];
    look_ahead(model, work, qpos, turn, moved);
    tendon_lengths(model, tendons, work.links(), moved, length, arm, row);
    for (int k = 0; k < tendons.size(); ++k) {
      const Tendon& tendon = tendons[k];
      for (std::size_t i = 0; i < tendon.dofs.size(); ++i)
        out[k] += side * arm[tendon.first + i] * qvel[tendon.dofs[i]] / (2 * t);
    }
  }
}

}  // namespace tarsus
