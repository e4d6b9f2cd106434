#include "tarsus/control/retarget.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <optional>

#include "control/figure.hpp"
#include "control/retarget_segments.hpp"
#include "control/retarget_source.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {

namespace {

constexpr int kFirstIterations = 60, kIterations = 8;
constexpr double kStandingSpeed = 0.3;                ///< [m/s] largest speed of an ankle in stance, after scaling
constexpr double kStandingHeight = 0.05;              ///< [m] largest height above its lowest, after scaling
constexpr double kShortestStance = 0.1;               ///< [s]
constexpr double kBlend = 0.1;                        ///< [s] at the start and end of a stance
constexpr double kAnkleWeight = 40, kRootWeight = 4;  ///< per metre, relative to 1 per radian
constexpr double kAxisWeight = 0.2;  ///< of a bend's axis: a limb bent by less than 0.2 rad says less where it lies
constexpr double kRestWeight = 0.03, kStepWeight = 0.03;
constexpr int kSmoothings = 10, kSmoothIterations = 2;
constexpr double kSmoothWeight = 0.3;  ///< per radian of deviation from the mean of the neighbouring frames
constexpr double kFarthest = 1e9, kFarthestStep = 1e3;  ///< [m] of a point: from the origin, and between frames
constexpr double kGroundShare = 0.05;                   ///< fraction of frames whose ankles may be below the ground

struct Stance {
  int first = 0, last = 0;
  Vec3d place{0, 0, 0};
};

class Retargeter {
 public:
  Retargeter(const Model& model, const MotionClip& clip, const ClipMapping& mapping)
      : model_(model), clip_(clip), figure_(model), source_(clip, mapping) {
    for (const PointMapping& p : mapping.points) {
      const int body = model.find_body(p.body);
      if (body < 0 || model.bodies[std::size_t(body)].joint_count == 0) {
        throw InputError(
            p.where.file.empty() ? place_of(clip) : p.where,
            fmt::format("point '{}': model '{}' has no body '{}' with a joint", p.point, model.name, p.body));
      }
      for (const PointMapping* other = mapping.points.data(); other != &p; ++other) {
        if (other->body == p.body && other->tip == p.tip) {
          throw InputError(p.where.file.empty() ? place_of(clip) : p.where,
                           fmt::format("points '{}' and '{}' are both {} body '{}'", other->point, p.point,
                                       p.tip ? "the far end of" : "at", p.body));
        }
      }
      points_[p.point] = p.tip ? figure_.far_end(body) : figure_.anchor(body);
    }
    for (const Segment& s : segments()) {
      if (has_all(points_, s) && has_all(source_.frame(0), s)) used_.push_back(s);
    }
    find_driven();
    upright_ = bent_ = upright();
    measure();
    for (const Bend& bend : bends()) add_bend(bend);
    add_pelvis();
  }

  Retargeted run() {
    std::vector<double> qpos = first_guess();
    Retargeted out;
    open_clip(out.clip);
    error_sum_.assign(used_.size(), 0.0), error_count_.assign(used_.size(), 0);
    std::map<std::string, std::vector<Vec3d>> ankles;
    std::vector<Frame> frames(std::size_t(source_.count()));
    for (int i = 0; i < source_.count(); ++i) {
      Frame& frame = frames[std::size_t(i)];
      frame.ankles = ankle_targets(i);
      solve(i, frame.ankles, i == 0 ? kFirstIterations : kIterations, {qpos, kStepWeight}, qpos);
      lift(i, frame.ankles, {qpos, kStepWeight}, qpos);
      frame.qpos = qpos;
    }
    smooth(frames);
    for (int i = 0; i < source_.count(); ++i) {
      const std::vector<double>& qpos = frames[std::size_t(i)].qpos;
      figure_.pose(qpos);
      for (const std::string side : {"left_", "right_"}) {
        out.report.sink_max = std::max(out.report.sink_max, -figure_.lowest(points_.at(side + "ankle").body));
        ankles[side].push_back(figure_.place(points_.at(side + "ankle")));
      }
      add_errors(i);
      store(qpos, i, out.clip);
    }
    report(ankles, out.report);
    clean_clip(out.clip, [&](int, int) { return place_of(clip_); });
    return out;
  }

 private:
  struct Frame {
    std::map<std::string, Vec3d> ankles;
    std::vector<double> qpos;
  };
  struct Pull {  ///< target of the joints, and weight [1/rad]
    std::vector<double> to;
    double weight;
  };

  /// If frames are fitted independently, a hinge may turn by radians between two of them, where hinges align and a limb
  /// can go either way. All frames are therefore fitted again, forwards and backwards, with a pull to their neighbours.
  void smooth(std::vector<Frame>& frames) {
    const int n = int(frames.size());
    std::vector<double> between(std::size_t(model_.nv));
    Pull near{model_.qpos0, kSmoothWeight};
    for (int sweep = 0; sweep < kSmoothings; ++sweep) {
      for (int k = 1; k + 1 < n; ++k) {
        const int i = sweep % 2 ? n - 1 - k : k;
        const auto at = [&](int frame) { return std::span<const double>(frames[std::size_t(frame)].qpos); };
        const double before = source_.time(i - 1), share = (source_.time(i) - before) / (source_.time(i + 1) - before);
        difference(model_, at(i - 1), at(i + 1), between);
        integrate(model_, integrator_data(), at(i - 1), std::span<const double>(between), share, std::span(near.to));
        Frame& frame = frames[std::size_t(i)];
        solve(i, frame.ankles, kSmoothIterations, near, frame.qpos);
        lift(i, frame.ankles, near, frame.qpos);
      }
    }
  }

  /// The standing pose with its limbs bent, rotated about the vertical and moved to face like the source.
  std::vector<double> first_guess() {
    std::vector<double> qpos = bent_;
    const Joint* const root = root_joint();
    if (!root || !moves_freely(root->type)) return qpos;
    figure_.pose(qpos);
    const Points mine = places(), &theirs = source_.frame(0);
    const auto heading = [](const Points& p) {
      const Vec3d left = p.at("left_hip") - p.at("right_hip");
      return elementary::atan2(left.y, left.x);
    };
    double* q = qpos.data() + root->qpos;
    const Quatd turn = axis_angle({0, 0, 1}, heading(theirs) - heading(mine));
    const Quatd turned = normalized(turn * Quatd{q[3], q[4], q[5], q[6]});
    q[3] = turned.w, q[4] = turned.x, q[5] = turned.y, q[6] = turned.z;
    figure_.pose(qpos);
    const Vec3d away = root_target(0) - mean_of(places(), {"right_hip", "left_hip"});
    q[0] += away.x, q[1] += away.y, q[2] += away.z;
    return qpos;
  }

  /// Of the tree that has the hips; null if they are fixed to the world.
  const Joint* root_joint() const {
    int link = model_.bodies[std::size_t(points_.at("left_hip").body)].link;
    if (link < 0) return nullptr;
    while (model_.joints[std::size_t(link)].parent >= 0) link = model_.joints[std::size_t(link)].parent;
    return &model_.joints[std::size_t(link)];
  }

  Points places() const {
    Points out;
    for (const auto& [name, p] : points_) out[name] = figure_.place(p);
    return out;
  }

  /// Adds the bending axis of a limb: the axis that the source's bones carry, for the model's hinge. A straight limb
  /// would otherwise be free to rotate about itself, and would flip where its bend passes through zero.
  void add_bend(const Bend& bend) {
    const Segment parts{"", {bend.above, bend.at}, {bend.below}};
    if (!has_all(points_, parts) || !has_all(source_.frame(0), parts)) return;
    const ModelPoint point = points_.at(bend.at);
    const Body& body = model_.bodies[std::size_t(point.body)];
    const Joint& joint = model_.joints[std::size_t(body.joint_first)];
    if (body.joint_count != 1 || !turns_on_axis(joint.type) || !joint.limited) return;
    std::vector<double> qpos = bent_;
    qpos[std::size_t(joint.qpos)] = 0.5 * (joint.range[0] + joint.range[1]);
    figure_.pose(qpos);
    Points at = places();
    const ModelPoint beside{point.body, point.local + joint.axis};
    const double along = dot(bend_axis(at, bend), figure_.place(beside) - at.at(bend.at));
    if (std::abs(along) < 0.1) return;
    std::vector<Vec3d> axes;
    for (int i = 0; i < source_.count(); ++i) axes.push_back(bend_axis(source_.frame(i), bend));
    const double agreement = source_.add_axis(bend.at, source_.bone_above(bend.below), axes);
    if (agreement == 0) return;
    points_[bend.axis()] = {point.body, point.local + joint.axis * (along > 0 ? 1.0 : -1.0)};
    bent_ = std::move(qpos);
    axes_.push_back({bend.axis(), {bend.at}, {bend.axis()}, kAxisWeight * agreement});
  }

  /// Adds the pelvis's up direction: towards the mean position of the shoulders. Otherwise the split of a bow between
  /// hips and chest would be arbitrary.
  void add_pelvis() {
    const Segment trunk{"", {"right_hip", "left_hip"}, {"right_shoulder", "left_shoulder"}};
    const int pelvis = common_ancestor(points_.at("left_hip").body, points_.at("right_hip").body,
                                       [&](int b) { return model_.bodies[std::size_t(b)].parent; });
    if (pelvis == 0 || !has_all(points_, trunk) || !has_all(source_.frame(0), trunk)) return;
    const auto up = [&](const Points& p) { return unit_or(mean_of(p, trunk.to) - mean_of(p, trunk.from), {0, 0, 0}); };
    std::vector<Vec3d> axes;
    for (int i = 0; i < source_.count(); ++i) axes.push_back(up(source_.frame(i)));
    const double agreement = source_.add_axis("pelvis", source_.pelvis_bone(), axes);
    if (agreement == 0) return;
    figure_.pose(upright_);
    const Points rest = places();
    const Vec3d middle = mean_of(rest, trunk.from);
    points_["pelvis"] = figure_.fixed_to(pelvis, middle);
    points_["pelvis_axis"] = figure_.fixed_to(pelvis, middle + up(rest));
    axes_.push_back({"pelvis", {"pelvis"}, {"pelvis_axis"}, kAxisWeight * agreement});
  }

  /// The model's own pose, standing: a free root is turned so that the figure's up is vertical. This is the direction,
  /// of the vertical and the axes of the root, that agrees best with those of legs and trunk.
  std::vector<double> upright() {
    std::vector<double> qpos = model_.qpos0;
    const Joint* const root = root_joint();
    if (!root || !moves_freely(root->type)) return qpos;
    figure_.pose(qpos);
    const Points rest = places();
    const std::vector<std::string> ankles = {"right_ankle", "left_ankle"}, hips = {"right_hip", "left_hip"};
    const std::vector<std::string> shoulders = {"right_shoulder", "left_shoulder"};
    Vec3d tall = unit_or(mean_of(rest, hips) - mean_of(rest, ankles), {0, 0, 0});
    if (has_all(rest, {"", hips, shoulders}))
      tall = tall + unit_or(mean_of(rest, shoulders) - mean_of(rest, hips), {0, 0, 0});
    double* q = qpos.data() + root->qpos;
    const Quatd turned{q[3], q[4], q[5], q[6]};
    Vec3d up{0, 0, 1};
    for (int k = 0; k < 3; ++k) {
      Vec3d axis{0, 0, 0};
      axis[k] = 1, axis = rotate(turned, axis);
      const double along = dot(axis, tall);
      if (std::abs(along) > dot(up, tall) + 1e-6) up = axis * (along > 0 ? 1.0 : -1.0);
    }
    const Quatd upright = normalized(between(up, {0, 0, 1}) * turned);
    q[3] = upright.w, q[4] = upright.x, q[5] = upright.y, q[6] = upright.z;
    return qpos;
  }

  /// Determines scale, ground, angles of flat feet, and stances.
  void measure() {
    figure_.pose(upright_);
    const Points rest = places();
    const auto leg = [&](const std::string& side) {
      return norm(rest.at(side + "hip") - rest.at(side + "knee")) +
             norm(rest.at(side + "knee") - rest.at(side + "ankle"));
    };
    const double ours = leg("left_") + leg("right_"), theirs = source_.leg("left_") + source_.leg("right_");
    if (!(theirs > 0)) throw InputError(place_of(clip_), "the skeleton's legs have no length");
    scale_ = ours / theirs;
    if (!(scale_ > 0 && std::isfinite(scale_)))
      throw InputError(place_of(clip_),
                       fmt::format("the legs are {:.4g} long in the skeleton and {:.4g} m in model '{}'", theirs, ours,
                                   model_.name));
    source_.set_scale(scale_);
    check_places();
    for (const std::string side : {"left_", "right_"}) {
      const ModelPoint& ankle = points_.at(side + "ankle");
      ankle_height_[side] = rest.at(side + "ankle").z - figure_.lowest(ankle.body);
      ground_[side] = source_.low(side + "ankle", kGroundShare);
      find_stances(side);
      flat_[side] = 0;
      if (!points_.count(side + "toe")) continue;
      std::vector<double> slopes;
      std::vector<Vec3d> axes(std::size_t(source_.count()), Vec3d{0, 0, 0});
      for (const Stance& s : stances_[side]) {
        for (int i = s.first; i <= s.last; ++i) {
          const Vec3d foot = source_.frame(i).at(side + "toe") - source_.frame(i).at(side + "ankle");
          slopes.push_back(elevation(foot)), axes[std::size_t(i)] = cross(foot, {0, 0, 1});
        }
      }
      if (slopes.empty() || source_.add_axis(side + "ankle", source_.bone_above(side + "toe"), axes) == 0) continue;
      std::nth_element(slopes.begin(), slopes.begin() + std::ptrdiff_t(slopes.size() / 2), slopes.end());
      flat_[side] = elevation(rest.at(side + "toe") - rest.at(side + "ankle")) - slopes[slopes.size() / 2];
    }
  }

  /// Positions must leave digits for the directions (at kFarthest, the last is 0.1 µm), and neighbouring frames must
  /// not be so far apart that the pull between them outweighs the directions.
  void check_places() const {
    const auto check = [&](int i, const std::string& point, double distance, double most, const char* from) {
      if (distance <= most) return;
      throw InputError(
          place_of(clip_),
          fmt::format("frame {}, at {:.4g} s: its {} is {:.3g} m from {} (at the model's scale), expected at "
                      "most {:.3g} m",
                      i, source_.time(i), point, distance, from, most));
    };
    for (int i = 0; i < source_.count(); ++i) {
      for (const auto& [name, p] : source_.frame(i)) {
        check(i, name, norm(p), kFarthest, "the origin");
        if (i > 0)
          check(i, name, norm(p - source_.frame(i - 1).at(name)), kFarthestStep, "where it was a frame before");
      }
    }
  }

  void find_stances(const std::string& side) {
    const auto stands = [&](int i) {
      const int a = std::max(i - 1, 0), b = std::min(i + 1, source_.count() - 1);
      if (a == b) return true;
      Vec3d way = source_.frame(b).at(side + "ankle") - source_.frame(a).at(side + "ankle");
      way.z = 0;
      return source_.frame(i).at(side + "ankle").z < ground_[side] + kStandingHeight &&
             norm(way) < kStandingSpeed * (source_.time(b) - source_.time(a));
    };
    std::vector<Stance>& all = stances_[side];
    for (int i = 0; i < source_.count(); ++i) {
      if (!stands(i)) continue;
      Stance s;
      s.first = i;
      Vec3d sum{0, 0, 0};
      while (i < source_.count() && stands(i)) sum = sum + source_.frame(i++).at(side + "ankle");
      s.last = i - 1;
      s.place = sum * (1.0 / (s.last - s.first + 1));
      if (source_.time(s.last) - source_.time(s.first) >= kShortestStance) all.push_back(s);
    }
  }

  /// Target of each ankle: the source's position on the model's ground, constant during a stance. The displacement of a
  /// stance fades within kBlend before and after it, or within the time to the next stance if that is shorter.
  std::map<std::string, Vec3d> ankle_targets(int i) {
    std::map<std::string, Vec3d> out;
    for (const std::string side : {"left_", "right_"}) {
      Vec3d p = source_.frame(i).at(side + "ankle");
      const double t = source_.time(i);
      const std::vector<Stance>& all = stances_[side];
      const auto gap = [&](std::size_t k) { return source_.time(all[k].first) - source_.time(all[k - 1].last); };
      for (std::size_t k = 0; k < all.size(); ++k) {
        const Stance& s = all[k];
        const double before = source_.time(s.first) - t, after = t - source_.time(s.last);
        const double away = std::max({before, after, 0.0});
        const std::size_t later = before > 0 ? k : k + 1;  // of the two stances on both sides of the gap
        const double blend = later > 0 && later < all.size() ? std::min(kBlend, gap(later)) : kBlend;
        if (away >= blend) continue;
        const int edge = before > 0 ? s.first : after > 0 ? s.last : i;
        const Vec3d offset = s.place - source_.frame(edge).at(side + "ankle");
        const double share = 1 - away / blend;
        p.x += offset.x * share, p.y += offset.y * share;
      }
      p.z = std::max(p.z - ground_[side], 0.0) + ankle_height_[side];
      out[side] = p;
    }
    return out;
  }

  Vec3d wanted(const Segment& s, int i) const {
    const Points& p = source_.frame(i);
    const Vec3d d = unit_or(mean_of(p, s.to) - mean_of(p, s.from), {0, 0, 0});
    const std::string side = s.name == "left_foot" ? "left_" : s.name == "right_foot" ? "right_" : "";
    if (side.empty() || flat_.at(side) == 0) return d;
    const Vec3d axis = unit_or(p.at(side + "ankle_axis") - p.at(side + "ankle"), {0, 1, 0});
    return rotate(axis_angle(axis, flat_.at(side)), d);
  }

  /// Accumulates rows weight · (J dq - residual) in the normal equations.
  struct Normal {
    Eigen::MatrixXd A;
    Eigen::VectorXd b;
    double cost = 0;
    void add(const Eigen::MatrixXd& J, const Vec3d& residual, double weight) {
      const Eigen::Vector3d r(residual.x, residual.y, residual.z);
      A.noalias() += weight * weight * J.transpose() * J;
      b.noalias() += weight * weight * J.transpose() * r;
      cost += weight * weight * r.squaredNorm();
    }
  };

  Normal linearise(int i, const std::map<std::string, Vec3d>& targets, const std::vector<double>& qpos,
                   const Pull& near) {
    figure_.pose(qpos);
    const int nv = model_.nv;
    Normal n{Eigen::MatrixXd::Zero(nv, nv), Eigen::VectorXd::Zero(nv), 0};
    std::map<std::string, Eigen::MatrixXd> J;
    for (const auto& [name, p] : points_) J[name] = figure_.jacobian_of(p);
    const Points at = places();
    const auto mean_jacobian = [&](const std::vector<std::string>& names) {
      Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(3, nv);
      for (const std::string& name : names) sum += J.at(name);
      return Eigen::MatrixXd(sum / double(names.size()));
    };
    const auto aim = [&](const Segment& s) {
      const Vec3d d = mean_of(at, s.to) - mean_of(at, s.from), goal = wanted(s, i);
      const double length = norm(d);
      if (length < 1e-9 || norm(goal) == 0) return;
      // d/|d| changes at the rate (1 - u uᵀ) ḋ / |d|.
      const Vec3d u = d * (1 / length);
      const Eigen::Vector3d e(u.x, u.y, u.z);
      const Eigen::MatrixXd rows =
          (Eigen::Matrix3d::Identity() - e * e.transpose()) * (mean_jacobian(s.to) - mean_jacobian(s.from)) / length;
      n.add(rows, goal - u, s.weight);
    };
    std::for_each(used_.begin(), used_.end(), aim), std::for_each(axes_.begin(), axes_.end(), aim);
    for (const auto& [side, target] : targets)
      n.add(J.at(side + "ankle"), target - at.at(side + "ankle"), kAnkleWeight);
    const std::vector<std::string> hips = {"right_hip", "left_hip"};
    n.add(mean_jacobian(hips), root_target(i) - mean_of(at, hips), kRootWeight);
    pull(qpos, model_.qpos0, kRestWeight, true, n);
    pull(qpos, near.to, near.weight, false, n);
    return n;
  }

  /// Middle of the hips at the source's height above the ankles' ground.
  Vec3d root_target(int i) const {
    Vec3d p = source_.frame(i).at("pelvis");
    p.z += 0.5 * (ankle_height_.at("left_") - ground_.at("left_") + ankle_height_.at("right_") - ground_.at("right_"));
    return p;
  }

  void pull(const std::vector<double>& qpos, const std::vector<double>& to, double weight, bool joints_only,
            Normal& n) {
    std::vector<double> v(std::size_t(model_.nv));
    difference(model_, qpos, to, v);
    for (const Joint& joint : model_.joints) {
      if (joints_only && moves_freely(joint.type)) continue;
      for (int k = joint.qvel; k < joint.qvel + joint.nv(); ++k) {
        n.A(k, k) += weight * weight;
        n.b(k) += weight * weight * v[std::size_t(k)];
        n.cost += weight * weight * v[std::size_t(k)] * v[std::size_t(k)];
      }
    }
  }

  void keep_ranges(std::vector<double>& qpos) const {
    for (const Joint& joint : model_.joints) {
      if (joint.limited && joint.nv() == 1)
        qpos[std::size_t(joint.qpos)] = std::clamp(qpos[std::size_t(joint.qpos)], joint.range[0], joint.range[1]);
    }
  }

  /// Fixes joints that are at an end of their range and would exceed it. Clamping them after a step of all joints could
  /// undo the step.
  void hold_ends(const std::vector<double>& qpos, Normal& n) const {
    for (const Joint& joint : model_.joints) {
      if (!joint.limited || joint.nv() != 1) continue;
      const double q = qpos[std::size_t(joint.qpos)], push = n.b(joint.qvel);
      if (!(q <= joint.range[0] && push < 0) && !(q >= joint.range[1] && push > 0)) continue;
      n.A.row(joint.qvel).setZero(), n.A.col(joint.qvel).setZero();
      n.A(joint.qvel, joint.qvel) = 1, n.b(joint.qvel) = 0;
    }
  }

  void solve(int i, const std::map<std::string, Vec3d>& targets, int iterations, const Pull& near,
             std::vector<double>& qpos) {
    std::vector<double> trial(qpos.size());
    double damping = 1e-3;
    Normal n = linearise(i, targets, qpos, near);
    for (int k = 0; k < iterations; ++k) {
      hold_ends(qpos, n);
      Eigen::MatrixXd A = n.A;
      A.diagonal().array() += damping;
      const Eigen::VectorXd step = A.ldlt().solve(n.b);
      const std::vector<double> v(step.data(), step.data() + step.size());
      integrate(model_, integrator_data(), std::span<const double>(qpos), std::span<const double>(v), 1.0,
                std::span<double>(trial));
      keep_ranges(trial);
      Normal next = linearise(i, targets, trial, near);
      if (next.cost < n.cost) {
        const bool settled = n.cost - next.cost < 1e-7 * n.cost;
        qpos = trial, n = std::move(next), damping = std::max(damping * 0.3, 1e-9);
        if (settled) break;
      } else {
        damping *= 10;
      }
    }
  }

  Data& integrator_data() {
    if (!integrator_) integrator_.emplace(model_);
    return *integrator_;
  }

  /// Raises feet whose shapes reach below the ground.
  void lift(int i, std::map<std::string, Vec3d>& targets, const Pull& near, std::vector<double>& qpos) {
    for (int k = 0; k < 2; ++k) {
      figure_.pose(qpos);
      bool raised = false;
      for (auto& [side, target] : targets) {
        const double low = figure_.lowest(points_.at(side + "ankle").body);
        if (low < -1e-3) target.z -= low, raised = true;
      }
      if (!raised) return;
      solve(i, targets, kIterations, near, qpos);
    }
  }

  /// A segment without length has no direction, and no error.
  void add_errors(int i) {
    const Points at = places();
    for (std::size_t k = 0; k < used_.size(); ++k) {
      const Vec3d u = unit_or(mean_of(at, used_[k].to) - mean_of(at, used_[k].from), {0, 0, 0});
      const Vec3d goal = wanted(used_[k], i);
      if (norm(u) == 0 || norm(goal) == 0) continue;
      error_sum_[k] += elementary::acos(std::clamp(dot(u, goal), -1.0, 1.0)), ++error_count_[k];
    }
  }

  void report(const std::map<std::string, std::vector<Vec3d>>& ankles, RetargetReport& out) const {
    out.up = source_.up(), out.forward = source_.forward(), out.scale = scale_;
    const auto counted = std::count_if(error_count_.begin(), error_count_.end(), [](int n) { return n > 0; });
    for (std::size_t k = 0; k < used_.size(); ++k) {
      if (error_count_[k] == 0) continue;
      const double mean = error_sum_[k] / error_count_[k];
      out.direction_error += mean / double(counted);
      if (mean > out.direction_worst) out.direction_worst = mean, out.worst = used_[k].name;
    }
    double sum = 0;
    for (const auto& [side, path] : ankles) {
      for (const Stance& s : stances_.at(side)) {
        double way = 0;
        for (int i = s.first; i <= s.last; ++i) {
          const Vec3d d = path[std::size_t(i)] - path[std::size_t(s.first)];
          way = std::max(way, elementary::hypot(d.x, d.y));
        }
        sum += way, ++out.stances;
        out.slide_max = std::max(out.slide_max, way);
      }
    }
    out.slide_mean = out.stances > 0 ? sum / out.stances : 0;
  }

  /// Finds the joints that move a point: those above its body, and for a far end also the body's own.
  void find_driven() {
    std::vector<bool> moves(model_.joints.size(), false);
    for (const auto& [name, p] : points_) {
      const bool tip = norm(p.local - figure_.anchor(p.body).local) > 0;
      for (int b = tip ? p.body : model_.bodies[std::size_t(p.body)].parent; b > 0;
           b = model_.bodies[std::size_t(b)].parent) {
        const Body& body = model_.bodies[std::size_t(b)];
        for (int j = 0; j < body.joint_count; ++j) moves[std::size_t(body.joint_first + j)] = true;
      }
    }
    for (std::size_t j = 0; j < moves.size(); ++j) {
      if (moves[j]) driven_.push_back(int(j));
    }
  }

  void open_clip(MotionClip& out) const {
    out.name = clip_.name, out.diagnostics = clip_.diagnostics, out.format = "tarsus", out.file = clip_.file,
    out.loop = clip_.loop;
    out.cycle_position = clip_.cycle_position, out.cycle_heading = clip_.cycle_heading;
    const auto add = [&](const std::string& name, ChannelKind kind) {
      ClipChannel c;
      c.name = name, c.kind = kind, c.column = out.width;
      out.channels.push_back(c);
      out.width += width(kind);
    };
    for (const int j : driven_) {
      const Joint& joint = model_.joints[std::size_t(j)];
      const std::string name = joint_label(model_, j);
      if (moves_freely(joint.type)) add(name + ".position", ChannelKind::position);
      add(name, turns_on_axis(joint.type)    ? ChannelKind::angle
                : slides_on_axis(joint.type) ? ChannelKind::translation
                                             : ChannelKind::rotation);
    }
  }

  void store(const std::vector<double>& qpos, int i, MotionClip& out) const {
    out.times.push_back(clip_.times[std::size_t(i)]);
    for (const int j : driven_) {
      const Joint& joint = model_.joints[std::size_t(j)];
      out.values.insert(out.values.end(), qpos.begin() + joint.qpos, qpos.begin() + joint.qpos + joint.nq());
    }
  }

  const Model& model_;
  const MotionClip& clip_;
  Figure figure_;
  RetargetSource source_;
  std::map<std::string, ModelPoint> points_;
  std::vector<Segment> used_, axes_;
  std::vector<int> driven_;
  std::vector<double> upright_;  ///< [nq] qpos0, standing
  std::vector<double> bent_;     ///< [nq] upright_, with the joints of axes_ in the middle of their ranges
  double scale_ = 1;
  std::map<std::string, double> ankle_height_, ground_;
  std::map<std::string, double> flat_;  ///< [rad] pitch of the model's foot relative to the source's when both are flat
  std::map<std::string, std::vector<Stance>> stances_;
  std::vector<double> error_sum_;  ///< of each segment [rad], and the number of frames in which it has a direction
  std::vector<int> error_count_;
  std::optional<Data> integrator_;
};

}  // namespace

std::string text(const RetargetReport& r) {
  return fmt::format(
      "retargeted at scale {:.4g}: segments {:.1f} degrees from the source's on average ({} {:.1f}); feet "
      "slide {:.1f} cm per stance on average, {:.1f} cm at most, over {} stances, and penetrate the ground by {:.1f} "
      "cm at most",
      r.scale, r.direction_error * 180 / kPi, r.worst, r.direction_worst * 180 / kPi, 100 * r.slide_mean,
      100 * r.slide_max, r.stances, 100 * r.sink_max);
}

Retargeted retarget(const Model& model, const MotionClip& clip, const ClipMapping& mapping) {
  if (clip.times.empty()) throw InputError(place_of(clip), "the clip has no frames");
  if (!mapping.format.empty() && mapping.format != clip.format) {
    throw InputError(mapping.file.empty() ? place_of(clip) : Location{mapping.file, 0, 0, {}},
                     fmt::format("the mapping is for clips of format '{}', but '{}' is of format '{}'", mapping.format,
                                 clip.name, clip.format));
  }
  return Retargeter(model, clip, mapping).run();
}

}  // namespace tarsus
