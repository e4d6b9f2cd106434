// Frames fixed to links: where sites, geoms and bodies are after kinematics(), how they move, and the generalised force
// of a force at a point. Single world, double.
#pragma once

#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

/// A frame that rides on a link; where link is -1, on a mocap body, or fixed in the world.
struct LinkFrame {
  int link = -1;
  Transformd X{identity3<double>(), {0, 0, 0}};  ///< pose in the carrier's frame (in the world where there is none)
  int mocap = -1;                                ///< Model::carrier() of what rides on a mocap body
  /// Whose LinkState has the pose; -1: the world.
  int carrier() const { return link >= 0 ? link : mocap; }
};

/// A frame fixed to a body, X in the body's.
LinkFrame frame_on(const Model& model, int body, const Transformd& X);
/// @throws InputError at `where` if the model has no such thing
LinkFrame body_frame(const Model& model, int body);
/// A body's principal axes in its frame: those that the file names (an <inertial>'s, a single geom's), else by moments.
Mat3d principal_axes(const Model& model, int body);
LinkFrame inertial_frame(const Model& model, int body);  ///< at the centre of mass, along the principal axes

/// A site or geom.
template <class Spec>
struct SpecPlace {
  int body = 0;
  const Spec* spec = nullptr;
  LinkFrame frame;
};
using SitePlace = SpecPlace<SiteSpec>;
using GeomPlace = SpecPlace<GeomSpec>;
/// @throws InputError at `where` if there is none  @param name of a body; "world" is body 0
int body_named(const Model& model, const std::string& name, const Location& where);
SitePlace site_place(const Model& model, const std::string& name, const Location& where);
GeomPlace geom_place(const Model& model, const std::string& name, const Location& where);
inline LinkFrame site_frame(const Model& model, const std::string& name, const Location& where) {
  return site_place(model, name, where).frame;
}

/// Pose in the world after kinematics(). @param links Data::links()
inline Transformd world_pose(const LinkState<double>* links, const LinkFrame& f) {
  const int at = f.carrier();
  return at < 0 ? f.X : Transformd{links[at].R, links[at].o} * f.X;
}
inline Vec3d world_point(const LinkState<double>* links, const LinkFrame& f) {
  const int at = f.carrier();
  return at < 0 ? f.X.p : links[at].o + links[at].R * f.X.p;
}
/// Velocity of the frame, world axes, at its own origin, after kinematics() with qvel.
inline Motion<double> world_velocity(const LinkState<double>* links, const LinkFrame& f) {
  if (f.link < 0) return {{0, 0, 0}, {0, 0, 0}};
  const LinkState<double>& s = links[f.link];
  return shift(Motion<double>{s.v.w, s.v.v}, s.R * f.X.p);
}

/// row += scale Jᵀ (torque, force): the generalised force of a force at a point of a link and of a torque, world axes.
/// O(depth of the link).  @param row [nv]
void add_generalized_force(const Model& model, const LinkState<double>* links, int link, const Vec3d& point,
                           const Vec3d& force, const Vec3d& torque, double scale, double* row);

/// DoFs between the link and the world, marked in `used` [nv].
void mark_dofs(const Model& model, int link, std::vector<char>& used);

}  // namespace tarsus
