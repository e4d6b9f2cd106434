// Frames fixed to links: poses of sites, geoms and bodies after kinematics(), their velocities, and the generalised
// force of a force at a point. Single world, double.
#pragma once

#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

/// A frame fixed to a link or, if link is -1, to a mocap body or to the world.
struct LinkFrame {
  int link = -1;
  Transformd X{identity3<double>(), {0, 0, 0}};  ///< pose in the carrier's frame (in the world without a carrier)
  int mocap = -1;                                ///< Model::carrier() of a frame on a mocap body
  /// Index of the LinkState that has the carrier's pose; -1: the world.
  int carrier() const { return link >= 0 ? link : mocap; }
};

// Bodies are given by index. @throws ValueError for an index out of range
/// A frame fixed to a body; X is its pose in the body's frame.
LinkFrame frame_on(const Model& model, int body, const Transformd& X);
/// The body's own frame.
LinkFrame body_frame(const Model& model, int body);
/// A body's principal axes in its frame, as the columns of a rotation: those that the file gives (of <inertial> or of a
/// single geom), else those computed from the moments.
Mat3d principal_axes(const Model& model, int body);
/// Their quaternion, with MuJoCo's sign.
Quatd principal_orientation(const Model& model, int body);
/// At the centre of mass, along the principal axes.  @param com_offset of a world's own centre of mass, body axes [m]
LinkFrame inertial_frame(const Model& model, int body, const Vec3d& com_offset = {0, 0, 0});
/// inertial_frame() of a body that joints can move.
/// @throws ValueError for a body that is fixed to the world or to a mocap body
LinkFrame movable_frame(const Model& model, int body);

/// A site or geom and its frame.
template <class Spec>
struct SpecPlace {
  int body = 0;
  const Spec* spec = nullptr;
  LinkFrame frame;
};
using SitePlace = SpecPlace<SiteSpec>;
using GeomPlace = SpecPlace<GeomSpec>;
/// Index of the named body; "world" is body 0. @throws InputError at `where` if there is no such body
int body_named(const Model& model, const std::string& name, const Location& where);
/// The named site or geom. @throws InputError at `where` if there is none
SitePlace site_place(const Model& model, const std::string& name, const Location& where);
GeomPlace geom_place(const Model& model, const std::string& name, const Location& where);
inline LinkFrame site_frame(const Model& model, const std::string& name, const Location& where) {
  return site_place(model, name, where).frame;
}

/// Pose of a frame, and position of its origin [m], in the world after kinematics(). @param links Data::links()
inline Transformd world_pose(const LinkState<double>* links, const LinkFrame& f) {
  const int at = f.carrier();
  return at < 0 ? f.X : Transformd{links[at].R, links[at].o} * f.X;
}
inline Vec3d world_point(const LinkState<double>* links, const LinkFrame& f) {
  const int at = f.carrier();
  return at < 0 ? f.X.p : links[at].o + links[at].R * f.X.p;
}
/// Velocity of the frame at its origin [rad/s, m/s], world axes, after kinematics() with qvel. Zero without a link.
inline Motion<double> world_velocity(const LinkState<double>* links, const LinkFrame& f) {
  if (f.link < 0) return {{0, 0, 0}, {0, 0, 0}};
  const LinkState<double>& s = links[f.link];
  return shift(Motion<double>{s.v.w, s.v.v}, s.R * f.X.p);
}

/// row += scale Jᵀ (torque, force): adds the generalised force of a torque [N m] and of a force [N] at a point [m] of a
/// link, all in world axes. O(depth of the link).
/// @param link -1: the world, which adds nothing  @param row [nv] [N m | N]
void add_generalized_force(const Model& model, const LinkState<double>* links, int link, const Vec3d& point,
                           const Vec3d& force, const Vec3d& torque, double scale, double* row);

/// Sets used[i] = 1 for the DoFs i between the link and the world; the other entries are kept. @param used [nv]
void mark_dofs(const Model& model, int link, std::vector<char>& used);

}  // namespace tarsus
