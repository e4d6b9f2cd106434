#include "tarsus/dynamics/frame.hpp"

#include "tarsus/math/rotation.hpp"
#include "tarsus/model/body_at.hpp"
#include "tarsus/model/find_on_bodies.hpp"

namespace tarsus {

namespace {

template <class Spec>
SpecPlace<Spec> place_in_bodies(const Model& model, std::vector<Spec> BodySpec::*member, const char* kind,
                                const std::string& name, const Location& where) {
  const auto [body, one] = find_on_bodies(model.spec, member, name);
  if (!one) throw InputError(where, std::string("there is no ") + kind + " named \"" + name + "\"");
  return {body, one, frame_on(model, body, {rotation(normalized(one->orientation)), one->position})};
}

/// The principal axes that the file gives, if it gives any.
std::optional<Quatd> given_axes(const Model& model, int body) {
  const std::optional<InertialSpec>& given = model.spec.bodies[std::size_t(body)].inertial;
  return given && given->axes ? std::optional(normalized(*given->axes)) : std::nullopt;
}

}  // namespace

LinkFrame frame_on(const Model& model, int body, const Transformd& X) {
  const Body& b = body_at(model, body);
  if (b.mocap >= 0) return {-1, b.X_MB * X, model.carrier(body)};
  return {b.link, b.X_LB * X};
}

LinkFrame body_frame(const Model& model, int body) { return frame_on(model, body, {identity3<double>(), {0, 0, 0}}); }

Mat3d principal_axes(const Model& model, int body) {
  const Body& b = body_at(model, body);
  const std::optional<Quatd> given = given_axes(model, body);
  return given ? rotation(*given) : eigen(b.inertia).vectors;
}

Quatd principal_orientation(const Model& model, int body) {
  const Body& b = body_at(model, body);
  const std::optional<Quatd> given = given_axes(model, body);
  return given ? *given : eigen(b.inertia).orientation;
}

LinkFrame inertial_frame(const Model& model, int body, const Vec3d& com_offset) {
  return frame_on(model, body, {principal_axes(model, body), body_at(model, body).com + com_offset});
}

LinkFrame movable_frame(const Model& model, int body) {
  const LinkFrame frame = inertial_frame(model, body);
  if (frame.link < 0) {
    const std::string what = body == 0 ? "the world" : model.bodies[body].name + ", which no joint moves";
    throw ValueError("body", std::to_string(body) + ", " + what, "a body that joints can move");
  }
  return frame;
}

int body_named(const Model& model, const std::string& name, const Location& where) {
  const int body = name == "world" ? 0 : model.find_body(name);
  if (body < 0) throw InputError(where, "there is no body named \"" + name + "\"");
  return body;
}

SitePlace site_place(const Model& model, const std::string& name, const Location& where) {
  return place_in_bodies(model, &BodySpec::sites, "site", name, where);
}

GeomPlace geom_place(const Model& model, const std::string& name, const Location& where) {
  return place_in_bodies(model, &BodySpec::geoms, "geom", name, where);
}

void add_generalized_force(const Model& model, const LinkState<double>* links, int link, const Vec3d& point,
                           const Vec3d& force, const Vec3d& torque, double scale, double* row) {
  const Vec3d f = force * scale, n = torque * scale;
  for (int i = link; i >= 0; i = model.joints[i].parent) {
    const Joint& joint = model.joints[i];
    const LinkState<double>& s = links[i];
    double* out = row + joint.qvel;
    if (slides_on_axis(joint.type)) {
      out[0] += dot(s.R.column_z(), f);
      continue;
    }
    const Vec3d moment = cross(point - s.o, f) + n;
    if (turns_on_axis(joint.type)) {
      out[0] += dot(s.R.column_z(), moment);
      continue;
    }
    const int translations = scalar_count(joint.type);
    for (int k = 0; k < translations; ++k) out[k] += f[k];
    out += translations;
    const Vec3d local = transpose_mul(s.R, moment);
    for (int k = 0; k < 3; ++k) out[k] += local[k];
  }
}

void mark_dofs(const Model& model, int link, std::vector<char>& used) {
  for (int i = link; i >= 0; i = model.joints[i].parent) {
    for (int k = 0; k < model.joints[i].nv(); ++k) used[model.joints[i].qvel + k] = 1;
  }
}

}  // namespace tarsus
