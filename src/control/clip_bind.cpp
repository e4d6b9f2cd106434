// Converts a clip's channels to knots in a model's coordinates.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>

#include "tarsus/control/clip.hpp"
#include "tarsus/control/retarget.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {
namespace {

Vec3d load3(const double* p) { return {p[0], p[1], p[2]}; }
Quatd load4(const double* p) { return {p[0], p[1], p[2], p[3]}; }
void store(double* p, const Quatd& q) { p[0] = q.w, p[1] = q.x, p[2] = q.y, p[3] = q.z; }
void store(double* p, const Vec3d& v) { p[0] = v.x, p[1] = v.y, p[2] = v.z; }
bool is_identity(const Quatd& q) { return q.x == 0 && q.y == 0 && q.z == 0; }
bool is_rotational(ChannelKind kind) { return kind == ChannelKind::rotation || kind == ChannelKind::angle; }

/// Angle in (-pi, pi] of the rotation of q about `axis` (unit).
double twist(const Quatd& q, const Vec3d& axis) {
  const double s = dot(q.vec(), axis);
  return std::remainder(2 * elementary::atan2(s, q.w), 2 * kPi);
}

template <class List, class NameOf>
std::string listed(const List& list, NameOf name_of) {
  constexpr std::size_t kMost = 60;
  std::string text;
  std::size_t count = 0;
  for (const auto& item : list) {
    if (count++ == kMost) return text + ", …";
    text += (text.empty() ? "" : ", ") + name_of(item);
  }
  return text.empty() ? "none" : text;
}

int find_labelled(const Model& model, const std::string& label) {
  if (label.empty()) return -1;
  for (int j = 0; label[0] == '#' && j < model.njoint(); ++j) {
    if (joint_label(model, j) == label) return j;
  }
  return model.find_joint(label);
}

}  // namespace

std::string joint_label(const Model& model, int joint) {
  const std::string& name = model.joints[std::size_t(joint)].name;
  return name.empty() ? fmt::format("#{}", joint) : name;
}

/// Fills a ClipBinding. Single use.
class ClipBinder {
 public:
  ClipBinder(const Model& model, const MotionClip& clip, const ClipMapping& mapping)
      : model_(model), clip_(clip), mapping_(mapping) {}

  ClipBinding run() {
    check_clip();
    set_basis();
    for (const JointMapping& item : mapping_.joints) plan(item);
    if (errors_.empty() && plans_.empty()) error(mapping_where(), "the mapping drives no joint");
    if (!errors_.empty()) throw InputError(std::move(errors_));
    layout();
    fill();
    if (out_.loop_) close_loop();
    set_rates();
    set_segments();
    check_segments();
    report();
    return std::move(out_);
  }

 private:
  /// A joint with its source channels resolved.
  struct Plan {
    const JointMapping* item;
    const Joint* joint;
    std::vector<const ClipChannel*> from;
    const ClipChannel* position = nullptr;
    Vec3d axis{0, 0, 1};
    enum class How { rotate, twist, scalar, along } how = How::rotate;
    double factor = 1, add = 0;  ///< scalar: value * factor + add
    int rotation_piece = -1, position_piece = -1, scalar_piece = -1;
    double lost = 0;  ///< largest rotation that a twist discards [rad]
  };

  Location mapping_where() const {
    Location where;
    where.file = mapping_.file.empty() ? clip_.file : mapping_.file;
    return where;
  }
  void error(const Location& where, std::string text) { errors_.push_back({Severity::error, where, std::move(text)}); }
  void remark(Severity severity, const Location& where, std::string text) {
    out_.diagnostics_.push_back({severity, where, std::move(text)});
  }

  void check_clip() {
    if (clip_.times.empty()) throw InputError(mapping_where(), "the clip has no frames");
    check_size("MotionClip::values", clip_.values.size(), clip_.times.size() * std::size_t(clip_.width));
    if (!mapping_.format.empty() && mapping_.format != clip_.format) {
      error(mapping_where(), fmt::format("the mapping is for clips of format '{}', but '{}' is of format '{}'",
                                         mapping_.format, clip_.name, clip_.format));
    }
  }

  /// Sets the rotation from source axes to x forward, y left, z up.
  void set_basis() {
    const Vec3d up = mapping_.up.value_or(clip_.up), forward = mapping_.forward.value_or(clip_.forward);
    if (!(std::abs(norm(up) - 1) < 1e-6) || !(std::abs(norm(forward) - 1) < 1e-6) ||
        !(std::abs(dot(up, forward)) < 1e-6)) {
      error(mapping_where(), "the source's up and forward axes are not perpendicular unit vectors");
      return;
    }
    basis_ = quaternion(from_rows(forward, cross(up, forward), up));
  }

  const ClipChannel* channel(const std::string& wanted, const JointMapping& item) {
    const ClipChannel* found = clip_.find(wanted);
    if (!found) {
      error(item.where,
            fmt::format("joint '{}' is driven by channel '{}', which clip '{}' does not have; its channels: {}",
                        item.joint, wanted, clip_.name,
                        listed(clip_.channels, [](const ClipChannel& c) { return c.name; })));
    } else {
      used_.insert(wanted);
    }
    return found;
  }

  void plan(const JointMapping& item) {
    const int index = find_labelled(model_, item.joint);
    if (index < 0) {
      error(item.where, fmt::format("model '{}' has no joint '{}'; its joints: {}", model_.name, item.joint,
                                    listed(model_.joints, [](const Joint& j) { return j.name; })));
      return;
    }
    if (std::find(out_.driven_.begin(), out_.driven_.end(), index) != out_.driven_.end()) {
      error(item.where, fmt::format("joint '{}' is mapped twice", item.joint));
      return;
    }
    Plan plan;
    plan.item = &item, plan.joint = &model_.joints[index];
    for (const std::string& source : item.from) plan.from.push_back(channel(source, item));
    if (!item.position.empty()) plan.position = channel(item.position, item);
    if (std::count(plan.from.begin(), plan.from.end(), nullptr) || (!item.position.empty() && !plan.position)) return;
    if (!fits_joint(plan)) return;
    out_.driven_.push_back(index);
    plans_.push_back(std::move(plan));
  }

  bool fits_joint(Plan& plan) {
    const JointMapping& item = *plan.item;
    const JointType type = plan.joint->type;
    const auto refuse = [&](const std::string& why) {
      error(item.where, fmt::format("{} joint '{}': {}", tarsus::name(type), item.joint, why));
      return false;
    };
    if (plan.position && (!moves_freely(type) || plan.position->kind != ChannelKind::position)) {
      return refuse(!moves_freely(type) ? "only a free joint has a position"
                                        : fmt::format("channel '{}' is not a position", item.position));
    }
    if (plan.from.empty() && !plan.position) return refuse("no source channel is named");
    if (item.axis && !(norm(*item.axis) > 0)) return refuse("its axis is zero");
    plan.axis = item.axis ? *item.axis * (1 / norm(*item.axis)) : plan.joint->axis;
    if (slides_on_axis(type)) return fits_slide(plan, refuse);
    const bool one_angle = turns_on_axis(type) && plan.from.size() == 1 && plan.from[0]->kind == ChannelKind::angle;
    for (const ClipChannel* c : plan.from) {
      if (!is_rotational(c->kind)) return refuse(fmt::format("channel '{}' is a {}", c->name, tarsus::name(c->kind)));
      if (c->kind == ChannelKind::angle && !(norm(c->axis) > 0) && !one_angle)
        return refuse(fmt::format("the axis of angle channel '{}' is not known", c->name));
    }
    if (!turns_on_axis(type)) return true;
    plan.how = Plan::How::twist;
    plan.add = plan.joint->reference;  // a source's angle is relative to the initial pose of the model file
    if (!one_angle) return true;
    const ClipChannel& first = *plan.from[0];
    const bool known = norm(first.axis) > 0;
    if (!known && !item.axis && is_identity(item.pre) && is_identity(item.post)) {
      plan.how = Plan::How::scalar, plan.add = 0;  // a channel without an axis has the joint's own coordinate
      return true;
    }
    if (!known)
      return refuse(fmt::format("the axis of angle channel '{}' is not known, so it cannot be turned", first.name));
    // An angle about the hinge's own axis is used directly, without wrapping at half a turn.
    const double along = dot(rotate(item.pre * basis_, first.axis * (1 / norm(first.axis))), plan.axis);
    if (std::abs(along) > 1 - 1e-6 && is_identity(item.pre * item.post)) {
      plan.how = Plan::How::scalar, plan.factor = along > 0 ? 1 : -1;
    }
    return true;
  }

  template <class Refuse>
  bool fits_slide(Plan& plan, Refuse refuse) {
    if (plan.from.size() != 1) return refuse("needs exactly one source channel");
    const ClipChannel& source = *plan.from[0];
    if (is_rotational(source.kind))
      return refuse(fmt::format("channel '{}' is a {}", source.name, tarsus::name(source.kind)));
    plan.factor = mapping_.scale;
    plan.how = source.kind == ChannelKind::position ? Plan::How::along : Plan::How::scalar;
    if (norm(source.axis) > 0 && plan.how == Plan::How::scalar) {
      plan.factor *= dot(rotate(basis_, source.axis * (1 / norm(source.axis))), plan.axis);
    }
    return true;
  }

  void add_piece(ClipPieceKind kind, int qpos, int qvel, int cycle) {
    out_.pieces_.push_back({.kind = kind, .qpos = qpos, .qvel = qvel, .at = out_.row_, .cycle = cycle});
    out_.row_ += clip_numbers(kind);
  }

  void layout() {
    out_.name_ = clip_.name, out_.mapping_name_ = mapping_.name;
    out_.times_ = clip_.times;
    out_.loop_ = clip_.loop && clip_.frame_count() > 1;
    out_.rest_ = model_.qpos0, out_.nv_ = model_.nv;
    out_.diagnostics_ = clip_.diagnostics;
    for (Plan& plan : plans_) {
      const Joint& joint = *plan.joint;
      const bool is_free = moves_freely(joint.type);
      const int cycle = is_free ? int(out_.cycles_.size()) : -1;
      if (is_free) out_.cycles_.emplace_back();
      if (plan.position) {
        plan.position_piece = int(out_.pieces_.size());
        add_piece(ClipPieceKind::vector, joint.qpos, joint.qvel, cycle);
      }
      if (plan.from.empty()) continue;
      if (has_rotation(joint.type)) {
        plan.rotation_piece = int(out_.pieces_.size());
        const int first = scalar_count(joint.type);
        add_piece(ClipPieceKind::rotation, joint.qpos + first, joint.qvel + first, cycle);
      } else {
        plan.scalar_piece = int(out_.pieces_.size());
        add_piece(ClipPieceKind::scalar, joint.qpos, joint.qvel, -1);
      }
    }
    knots_.resize(out_.times_.size() * out_.pieces_.size()), rates_.resize(knots_.size());
  }

  double* knot(int frame, int piece) { return knots_[std::size_t(frame) * out_.pieces_.size() + piece].data(); }
  double* rate(int frame, int piece) { return rates_[std::size_t(frame) * out_.pieces_.size() + piece].data(); }

  /// pre * (C s1 C⁻¹) (C s2 C⁻¹) … * post.
  Quatd source_rotation(const Plan& plan, const double* frame) const {
    Quatd q{1, 0, 0, 0};
    for (const ClipChannel* c : plan.from) {
      q = q * (c->kind == ChannelKind::rotation ? load4(frame + c->column) : axis_angle(c->axis, frame[c->column]));
    }
    return normalized(plan.item->pre * basis_ * q * conjugate(basis_) * plan.item->post);
  }

  double source_scalar(Plan& plan, const double* frame) {
    const double first = frame[plan.from[0]->column];
    if (plan.how == Plan::How::scalar) return first * plan.factor;
    if (plan.how == Plan::How::along) {
      return dot(rotate(basis_, load3(frame + plan.from[0]->column)), plan.axis) * plan.factor;
    }
    const Quatd q = source_rotation(plan, frame);
    const double angle = twist(q, plan.axis);
    plan.lost = std::max(plan.lost, norm(log_map(q * axis_angle(plan.axis, -angle))));
    return angle;
  }

  void fill() {
    for (int i = 0; i < clip_.frame_count(); ++i) {
      const double* frame = clip_.frame(i);
      for (Plan& plan : plans_) {
        if (plan.position_piece >= 0) {
          const Vec3d p = rotate(basis_, load3(frame + plan.position->column)) * mapping_.scale + mapping_.offset;
          store(knot(i, plan.position_piece), p);
        }
        if (plan.rotation_piece >= 0) {
          Quatd q = source_rotation(plan, frame);
          if (i > 0) q = same_sign(q, load4(knot(i - 1, plan.rotation_piece)));
          store(knot(i, plan.rotation_piece), q);
        }
        if (plan.scalar_piece >= 0) fill_scalar(i, plan, frame);
      }
    }
  }

  void fill_scalar(int i, Plan& plan, const double* frame) {
    double value = source_scalar(plan, frame) * plan.item->sign + plan.add + plan.item->offset;
    if (i > 0 && plan.how == Plan::How::twist) {  // known up to whole turns: take the nearest to the last frame's
      const double last = *knot(i - 1, plan.scalar_piece);
      value = last + std::remainder(value - last, 2 * kPi);
    }
    *knot(i, plan.scalar_piece) = value;
  }

  static Quatd same_sign(const Quatd& q, const Quatd& like) {
    const double d = q.w * like.w + q.x * like.x + q.y * like.y + q.z * like.z;
    return d < 0 ? Quatd{-q.w, -q.x, -q.y, -q.z} : q;
  }

  /// Finds the displacement of each root in one cycle, then makes the last frame equal to the displaced first frame.
  void close_loop() {
    const int last = out_.frame_count() - 1;
    for (const Plan& plan : plans_) {
      if (!moves_freely(plan.joint->type)) continue;
      const int any = std::max(plan.position_piece, plan.rotation_piece);
      ClipCycle<double>& cycle = out_.cycles_[out_.pieces_[any].cycle];
      if (plan.rotation_piece >= 0 && clip_.cycle_heading) {
        cycle.heading =
            twist(load4(knot(last, plan.rotation_piece)) * conjugate(load4(knot(0, plan.rotation_piece))), {0, 0, 1});
      }
      if (plan.position_piece >= 0) {
        const Vec3d p0 = load3(knot(0, plan.position_piece));
        const Vec3d goal = clip_.cycle_position ? load3(knot(last, plan.position_piece)) : p0;
        const Vec3d shift = goal - rotate(axis_angle({0, 0, 1}, cycle.heading), p0);
        cycle.shift_x = shift.x, cycle.shift_y = shift.y;
      }
    }
    for (const Plan& plan : plans_) {
      if (plan.position_piece >= 0) close_vector(plan);
      if (plan.rotation_piece >= 0) close_rotation(plan);
      if (plan.scalar_piece >= 0) close_scalar(plan);
    }
    if (worst_turn_ > 0.02 || worst_shift_ > 0.01) {
      Location where;
      where.file = clip_.file;
      remark(Severity::note, where,
             fmt::format("the last frame differs from the first by up to {:.3g} rad (joint '{}') and {:.3g} m of the "
                         "root; the gap is closed over the last {:.2g} s of the cycle",
                         worst_turn_, worst_joint_, worst_shift_, window()));
    }
  }

  double window() const { return std::min(ClipBinding::kSeamWindow, 0.5 * out_.duration()); }
  /// Fraction of the seam's gap added to frame i: 0 up to the window, 1 at the end, smooth at both.
  double share(int i) const {
    const double x = std::clamp(1 - (out_.duration() - out_.times_[i]) / window(), 0.0, 1.0);
    return x * x * (3 - 2 * x);
  }

  void note_turn(double gap, const Plan& plan) {
    if (std::abs(gap) > worst_turn_) worst_turn_ = std::abs(gap), worst_joint_ = plan.joint->name;
  }

  void close_vector(const Plan& plan) {
    const int last = out_.frame_count() - 1;
    const ClipCycle<double>& cycle = out_.cycles_[out_.pieces_[plan.position_piece].cycle];
    const Vec3d goal = rotate(axis_angle({0, 0, 1}, cycle.heading), load3(knot(0, plan.position_piece))) +
                       Vec3d{cycle.shift_x, cycle.shift_y, 0};
    const Vec3d gap = goal - load3(knot(last, plan.position_piece));
    worst_shift_ = std::max(worst_shift_, norm(gap));
    for (int i = 1; i < last; ++i) {
      store(knot(i, plan.position_piece), load3(knot(i, plan.position_piece)) + gap * share(i));
    }
    store(knot(last, plan.position_piece), goal);
  }

  void close_rotation(const Plan& plan) {
    const int last = out_.frame_count() - 1, piece = plan.rotation_piece;
    const int cycle = out_.pieces_[piece].cycle;
    Quatd goal = load4(knot(0, piece));
    if (cycle >= 0) goal = normalized(axis_angle({0, 0, 1}, out_.cycles_[cycle].heading) * goal);
    const Vec3d gap = log_map(conjugate(load4(knot(last, piece))) * goal);
    note_turn(norm(gap), plan);
    for (int i = 1; i < last; ++i) store(knot(i, piece), normalized(load4(knot(i, piece)) * exp_map(gap * share(i))));
    store(knot(last, piece), same_sign(goal, load4(knot(last, piece))));
  }

  void close_scalar(const Plan& plan) {
    const int last = out_.frame_count() - 1, piece = plan.scalar_piece;
    const double whole = *knot(last, piece) - *knot(0, piece);
    // Whole turns of a hinge are progress (a wheel); the rest is the gap at the seam.
    if (turns_on_axis(plan.joint->type)) out_.pieces_[piece].turn = 2 * kPi * std::round(whole / (2 * kPi));
    const double gap = out_.pieces_[piece].turn - whole;
    if (turns_on_axis(plan.joint->type)) note_turn(gap, plan);
    for (int i = 1; i < last; ++i) *knot(i, piece) += gap * share(i);
    *knot(last, piece) = *knot(0, piece) + out_.pieces_[piece].turn;
  }

  /// Mean slope from frame i to i + 1 (rotation: in the body's axes, equal at both ends).
  Vec3d slope(int i, int piece) {
    const double h = 1 / (out_.times_[i + 1] - out_.times_[i]);
    const double *a = knot(i, piece), *b = knot(i + 1, piece);
    switch (out_.pieces_[piece].kind) {
      case ClipPieceKind::rotation: return log_map(conjugate(load4(a)) * load4(b)) * h;
      case ClipPieceKind::vector: return (load3(b) - load3(a)) * h;
      case ClipPieceKind::scalar: break;
    }
    return {(*b - *a) * h, 0, 0};
  }

  void set_rates() {
    const int last = out_.frame_count() - 1;
    if (last < 1) return;
    const std::vector<double>& t = out_.times_;
    for (int p = 0; p < int(out_.pieces_.size()); ++p) {
      const ClipPiece<double>& piece = out_.pieces_[p];
      const auto put = [&](int i, const Vec3d& v) {
        const int count = piece.kind == ClipPieceKind::scalar ? 1 : 3;
        for (int c = 0; c < count; ++c) rate(i, p)[c] = v[c];
      };
      // Each side's slope is weighted by the other side's duration, which is exact for parabolas.
      const auto blend = [](const Vec3d& before, double h_before, const Vec3d& after, double h_after) {
        return (before * h_after + after * h_before) * (1 / (h_before + h_after));
      };
      for (int i = 1; i < last; ++i) put(i, blend(slope(i - 1, p), t[i] - t[i - 1], slope(i, p), t[i + 1] - t[i]));
      Vec3d first = slope(0, p), end = slope(last - 1, p);
      if (out_.loop_) {
        const bool turns = piece.kind == ClipPieceKind::vector && piece.cycle >= 0;
        const Quatd turn = axis_angle({0, 0, 1}, turns ? out_.cycles_[piece.cycle].heading : 0);
        const Vec3d joined = blend(end, t[last] - t[last - 1], rotate(turn, first), t[1]);
        first = rotate(conjugate(turn), joined), end = joined;
      }
      put(0, first), put(last, end);
    }
  }

  /// Computes the coefficients of each segment: cubic Hermite polynomials in u from rates in u. For a rotation, w1 and
  /// w3 follow from the rates, and w2 is the remaining rotation to the next frame.
  void set_segments() {
    const int count = std::max(out_.frame_count() - 1, 1);
    out_.segments_.assign(std::size_t(count) * out_.row_, 0.0);
    for (int i = 0; i < count; ++i) {
      const int j = std::min(i + 1, out_.frame_count() - 1);
      const double h = out_.times_[j] - out_.times_[i];
      for (int p = 0; p < int(out_.pieces_.size()); ++p) {
        double* to = &out_.segments_[std::size_t(i) * out_.row_ + out_.pieces_[p].at];
        const double *x0 = knot(i, p), *x1 = knot(j, p), *r0 = rate(i, p), *r1 = rate(j, p);
        if (out_.pieces_[p].kind == ClipPieceKind::rotation) {
          const Vec3d w1 = load3(r0) * (h / 3), w3 = load3(r1) * (h / 3);
          store(to, load4(x0)), store(to + 4, w1), store(to + 10, w3);
          store(to + 7, log_map(exp_map(-w1) * conjugate(load4(x0)) * load4(x1) * exp_map(-w3)));
          continue;
        }
        const int n = out_.pieces_[p].kind == ClipPieceKind::vector ? 3 : 1;
        for (int c = 0; c < n; ++c) {
          const double step = x1[c] - x0[c], m0 = h * r0[c], m1 = h * r1[c];
          to[c] = x0[c], to[n + c] = m0, to[2 * n + c] = 3 * step - 2 * m0 - m1, to[3 * n + c] = m0 + m1 - 2 * step;
        }
      }
    }
  }

  /// Large numbers and times close together can overflow in positions, velocities or the arithmetic between them.
  void check_segments() {
    constexpr double kLargest = 1e300;
    for (int i = 0; i + 1 < out_.frame_count(); ++i) {
      const double rate = std::max(1.0, 1 / (out_.times_[i + 1] - out_.times_[i]));
      const auto numbers = std::span(out_.segments_).subspan(std::size_t(i) * out_.row_, out_.row_);
      if (rate < kLargest && std::ranges::all_of(numbers, [&](double x) { return std::abs(x) <= kLargest / rate; }))
        continue;
      Location where;
      where.file = clip_.file;
      throw InputError(where,
                       fmt::format("frames {} and {}, at {:.6g} s and {:.6g} s: their numbers are too large, or their "
                                   "times too close, to interpolate",
                                   i, i + 1, out_.times_[i], out_.times_[i + 1]));
    }
  }

  void report() {
    for (const Plan& plan : plans_) {
      if (plan.lost > 0.05) {
        remark(Severity::note, plan.item->where,
               fmt::format("hinge '{}' follows its source about its own axis only: rotations of up to {:.2g} rad about "
                           "other axes are lost",
                           plan.joint->name, plan.lost));
      }
      if (plan.joint->limited) report_range(plan);
    }
    std::vector<std::string> rest, unused;
    for (int j = 0; j < model_.njoint(); ++j) {
      if (std::find(out_.driven_.begin(), out_.driven_.end(), j) == out_.driven_.end())
        rest.push_back(model_.joints[j].name);
    }
    for (const ClipChannel& c : clip_.channels) {
      const auto& ignore = mapping_.ignore;
      if (!used_.count(c.name) && std::find(ignore.begin(), ignore.end(), c.name) == ignore.end())
        unused.push_back(c.name);
    }
    const auto self = [](const std::string& s) { return s; };
    // The author of a mapping knows what it omits; channels that match by name are not the user's choice.
    const Severity severity = mapping_.file == clip_.file ? Severity::warning : Severity::note;
    if (!rest.empty()) {
      remark(severity, mapping_where(),
             fmt::format("joints that are not driven and stay at rest: {}", listed(rest, self)));
    }
    if (!unused.empty()) {
      remark(severity, mapping_where(), fmt::format("channels not used: {}", listed(unused, self)));
    }
  }

  void report_range(const Plan& plan) {
    double beyond = 0;
    const auto& range = plan.joint->range;
    for (int i = 0; i < out_.frame_count(); ++i) {
      if (plan.scalar_piece >= 0) {
        const double v = *knot(i, plan.scalar_piece);
        beyond = std::max({beyond, range[0] - v, v - range[1]});
      } else if (turns_freely(plan.joint->type)) {
        beyond = std::max(beyond, norm(log_map(load4(knot(i, plan.rotation_piece)))) - range[1]);
      }
    }
    if (beyond > 1e-6) {
      remark(Severity::warning, plan.item->where,
             fmt::format("the clip takes joint '{}' beyond its range by up to {:.3g}", plan.joint->name, beyond));
    }
  }

  const Model& model_;
  const MotionClip& clip_;
  const ClipMapping& mapping_;
  ClipBinding out_;
  Diagnostics errors_;
  Quatd basis_{1, 0, 0, 0};
  std::vector<Plan> plans_;
  std::vector<std::array<double, 4>> knots_;  // [frame][piece] scalar, vector or quaternion
  std::vector<std::array<double, 3>> rates_;
  std::set<std::string> used_;
  double worst_turn_ = 0, worst_shift_ = 0;
  std::string worst_joint_;
};

ClipBinding bind(const Model& model, const MotionClip& clip, const ClipMapping& mapping) {
  if (mapping.points.empty()) return ClipBinder(model, clip, mapping).run();
  const bool was_found = mapping.file == clip.file;
  const std::optional<Diagnostic> doubt = was_found ? check_match(mapping) : std::nullopt;
  const auto [moved, report] = retarget(model, clip, mapping);
  ClipMapping same = identity_mapping(model, moved);
  same.name = mapping.name, same.file = mapping.file;
  ClipBinding out = ClipBinder(model, moved, same).run();
  out.diagnostics_.push_back({Severity::note, Location{clip.file, 0, 0, {}}, text(report)});
  if (doubt) out.diagnostics_.push_back(*doubt);
  return out;
}

ClipMapping identity_mapping(const Model& model, const MotionClip& clip) {
  ClipMapping mapping;
  mapping.name = "identity", mapping.file = clip.file;
  for (int j = 0; j < model.njoint(); ++j) {
    const Joint& joint = model.joints[std::size_t(j)];
    const std::string name = joint_label(model, j);
    JointMapping item;
    item.joint = name, item.where = joint.where;
    if (clip.find(name)) item.from = {name};
    if (moves_freely(joint.type) && clip.find(name + ".position")) item.position = name + ".position";
    if (!item.from.empty() || !item.position.empty()) mapping.joints.push_back(std::move(item));
  }
  return mapping;
}

bool fits(const ClipMapping& mapping, const Model& model, const MotionClip& clip) {
  if (!mapping.format.empty() && mapping.format != clip.format) return false;
  const auto known = [&](const std::string& channel) { return clip.find(channel) != nullptr; };
  const auto has_bone = [&](const PointMapping& p) {
    return std::any_of(clip.skeleton.begin(), clip.skeleton.end(), [&](const ClipBone& b) { return b.name == p.from; });
  };
  const bool points_fit = std::all_of(mapping.points.begin(), mapping.points.end(), [&](const PointMapping& p) {
    return model.find_body(p.body) >= 0 && has_bone(p);
  });
  return points_fit && std::all_of(mapping.joints.begin(), mapping.joints.end(), [&](const JointMapping& item) {
           return find_labelled(model, item.joint) >= 0 && std::all_of(item.from.begin(), item.from.end(), known) &&
                  (item.position.empty() || known(item.position));
         });
}

}  // namespace tarsus
