// The directions that retargeting carries from one skeleton to another: between which points, and about which axes.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "control/retarget_source.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {

/// A segment; each of its ends is the mean of one or two points.
struct Segment {
  std::string name;
  std::vector<std::string> from, to;
  double weight = 1;
};

inline const std::vector<Segment>& segments() {
  static const std::vector<Segment> kSegments = [] {
    std::vector<Segment> out = {
        {"hips", {"right_hip"}, {"left_hip"}, 1},
        {"shoulders", {"right_shoulder"}, {"left_shoulder"}, 1},
        {"trunk", {"right_hip", "left_hip"}, {"right_shoulder", "left_shoulder"}, 1},
        {"head", {"neck"}, {"head"}, 0.5},
    };
    for (const std::string side : {"left_", "right_"}) {
      out.push_back({side + "thigh", {side + "hip"}, {side + "knee"}, 1});
      out.push_back({side + "shin", {side + "knee"}, {side + "ankle"}, 1});
      out.push_back({side + "foot", {side + "ankle"}, {side + "toe"}, 0.7});
      out.push_back({side + "upper_arm", {side + "shoulder"}, {side + "elbow"}, 1});
      out.push_back({side + "forearm", {side + "elbow"}, {side + "wrist"}, 1});
    }
    return out;
  }();
  return kSegments;
}

/// A joint that bends a limb about one axis, with the adjacent points on both sides.
struct Bend {
  std::string above, at, below;
  std::string axis() const { return at + "_axis"; }
};

inline const std::vector<Bend>& bends() {
  static const std::vector<Bend> kBends = {{"left_hip", "left_knee", "left_ankle"},
                                           {"right_hip", "right_knee", "right_ankle"},
                                           {"left_shoulder", "left_elbow", "left_wrist"},
                                           {"right_shoulder", "right_elbow", "right_wrist"}};
  return kBends;
}

template <class Map>
bool has_all(const Map& map, const Segment& s) {
  const auto there = [&](const std::string& name) { return map.count(name) > 0; };
  return std::all_of(s.from.begin(), s.from.end(), there) && std::all_of(s.to.begin(), s.to.end(), there);
}

inline Vec3d mean_of(const Points& points, const std::vector<std::string>& names) {
  Vec3d sum{0, 0, 0};
  for (const std::string& name : names) sum = sum + points.at(name);
  return sum * (1.0 / double(names.size()));
}

inline Vec3d unit_or(const Vec3d& v, const Vec3d& otherwise) {
  const double length = norm(v);
  return length > 1e-9 ? v * (1 / length) : otherwise;
}

/// The bending axis of a limb; its length is the sine of the bending angle.
inline Vec3d bend_axis(const Points& p, const Bend& bend) {
  const Vec3d zero{0, 0, 0}, at = p.at(bend.at);
  return cross(unit_or(at - p.at(bend.above), zero), unit_or(p.at(bend.below) - at, zero));
}

inline double elevation(const Vec3d& d) { return elementary::atan2(d.z, elementary::hypot(d.x, d.y)); }

}  // namespace tarsus
