#include "tarsus/control/clip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

const char* name(ChannelKind kind) {
  switch (kind) {
    case ChannelKind::position: return "position";
    case ChannelKind::rotation: return "rotation";
    case ChannelKind::angle: return "angle";
    case ChannelKind::translation: return "translation";
  }
  return "?";
}

const ClipChannel* MotionClip::find(std::string_view channel) const {
  const auto it =
      std::find_if(channels.begin(), channels.end(), [&](const ClipChannel& c) { return c.name == channel; });
  return it == channels.end() ? nullptr : &*it;
}

int MotionClip::add_channel(const std::string& channel, ChannelKind kind, const Vec3d& axis) {
  channels.push_back({channel, kind, width, axis});
  width += tarsus::width(kind);
  return channels.back().column;
}

void MotionClip::push_rotation(const Vec3d& v) {
  Quatd q = exp_map(v);
  if (values.size() >= std::size_t(width)) {
    const double* last = &values[values.size() - std::size_t(width)];
    if (q.w * last[0] + q.x * last[1] + q.y * last[2] + q.z * last[3] < 0) q = {-q.w, -q.x, -q.y, -q.z};
  }
  values.insert(values.end(), {q.w, q.x, q.y, q.z});
}

namespace {

using Where = std::function<Location(int frame, int column)>;

void check_times(const MotionClip& clip, const Where& where, Diagnostics& errors) {
  for (int i = 0; i < clip.frame_count(); ++i) {
    const double t = clip.times[i];
    if (!std::isfinite(t) || (i == 0 && t != 0) || (i > 0 && !(t > clip.times[i - 1]))) {
      errors.push_back({Severity::error, where(i, -1),
                        fmt::format("frame {} is at {} s: times begin at 0, are finite and increase", i, t)});
      return;
    }
  }
}

/// Gives quaternions unit length and a continuous sign. Normalisation within kRounding is due to printed digits and is
/// not reported.
void clean_rotation(MotionClip& clip, const ClipChannel& channel, const Where& where, Diagnostics& errors) {
  constexpr double kRounding = 1e-5;
  double worst = 0;
  int normalised = 0, flipped = 0, worst_frame = 0, flip_frame = 0;
  Quatd last{1, 0, 0, 0};
  double sign = 1;
  for (int i = 0; i < clip.frame_count(); ++i) {
    double* v = &clip.values[std::size_t(i) * clip.width + channel.column];
    const double length = elementary::hypot(elementary::hypot(v[0], v[1]), elementary::hypot(v[2], v[3]));
    const double off = std::abs(length - 1);
    if (!(off <= kMaxNormError)) {
      errors.push_back(
          {Severity::error, where(i, channel.column),
           fmt::format("the quaternion of channel '{}' in frame {} has length {:.4g}, expected about 1: is "
                       "this the layout of the file?",
                       channel.name, i, length)});
      return;
    }
    if (off > kRounding) ++normalised;
    if (off > worst) worst = off, worst_frame = i;
    const double last_sign = sign;
    sign = i > 0 && v[0] * last.w + v[1] * last.x + v[2] * last.y + v[3] * last.z < 0 ? -1 : 1;
    if (sign != last_sign && flipped++ == 0) flip_frame = i;
    last = {sign * v[0] / length, sign * v[1] / length, sign * v[2] / length, sign * v[3] / length};
    v[0] = last.w, v[1] = last.x, v[2] = last.y, v[3] = last.z;
  }
  if (normalised > 0) {
    clip.diagnostics.push_back({worst > 0.01 ? Severity::warning : Severity::note, where(worst_frame, channel.column),
                                fmt::format("channel '{}': {} of {} quaternions were normalised; the largest error of "
                                            "their length was {:.3g} (frame {})",
                                            channel.name, normalised, clip.frame_count(), worst, worst_frame)});
  }
  if (flipped > 0) {
    clip.diagnostics.push_back(
        {Severity::note, where(flip_frame, channel.column),
         fmt::format("channel '{}': the sign of the quaternions flips {} times, first in frame {}; "
                     "made one sign",
                     channel.name, flipped, flip_frame)});
  }
}

/// Channels are found by their names.
void check_names(const MotionClip& clip, const Where& where, Diagnostics& errors) {
  std::set<std::string_view> names;
  for (const ClipChannel& channel : clip.channels) {
    if (names.insert(channel.name).second) continue;
    errors.push_back({Severity::error, where(-1, -1),
                      fmt::format("two channels are called '{}' (the position of joint NAME is called NAME.position): "
                                  "rename a joint",
                                  channel.name)});
    return;
  }
}

/// Angles are used as they are, because a fast joint may turn that far. Written in one turn, they jump by 2 pi instead.
void report_jumps(MotionClip& clip, const ClipChannel& channel, const Where& where) {
  int jumps = 0, first = 0;
  double turn = 0;
  for (int i = 1; i < clip.frame_count(); ++i) {
    const double step = clip.frame(i)[channel.column] - clip.frame(i - 1)[channel.column];
    if (std::abs(step) > kPi && jumps++ == 0) first = i, turn = step;
  }
  if (jumps == 0) return;
  clip.diagnostics.push_back(
      {Severity::warning, where(first, channel.column),
       fmt::format(
           "angle '{}' turns by {:.3g} rad from frame {} to frame {}{}, and the joint will turn that far: unwrap "
           "angles that are written within one turn",
           channel.name, turn, first - 1, first, jumps > 1 ? fmt::format(" (the first of {} jumps)", jumps) : "")});
}

void check_axes(const MotionClip& clip, const Where& where, Diagnostics& errors) {
  const auto unit = [](const Vec3d& v) { return std::abs(norm(v) - 1) < 1e-9; };
  if (!unit(clip.up) || !unit(clip.forward) || !(std::abs(dot(clip.up, clip.forward)) < 1e-9)) {
    errors.push_back(
        {Severity::error, where(-1, -1), "the up and forward axes are not two perpendicular unit vectors"});
  }
}

}  // namespace

void clean_clip(MotionClip& clip, const Where& where) {
  Diagnostics errors;
  if (clip.times.empty()) throw InputError(where(-1, -1), "the clip has no frames");
  if (clip.values.size() != clip.times.size() * std::size_t(clip.width)) {
    throw ShapeError("MotionClip::values", clip.values.size(), clip.times.size() * std::size_t(clip.width));
  }
  check_axes(clip, where, errors);
  check_names(clip, where, errors);
  check_times(clip, where, errors);
  const auto bad = std::find_if(clip.values.begin(), clip.values.end(), [](double v) { return !std::isfinite(v); });
  if (bad != clip.values.end()) {
    const auto index = bad - clip.values.begin();
    const int frame = int(index / clip.width), column = int(index % clip.width);
    throw InputError(where(frame, column), fmt::format("{} in frame {} is not a finite number", *bad, frame));
  }
  for (const ClipChannel& channel : clip.channels) {
    if (channel.kind == ChannelKind::rotation) clean_rotation(clip, channel, where, errors);
    if (channel.kind == ChannelKind::angle) report_jumps(clip, channel, where);
  }
  if (!errors.empty()) throw InputError(std::move(errors));
}

}  // namespace tarsus
