// Python's RigidWorld: a world of either precision, the assets of its shapes, and each body's user frame.
#pragma once

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <chrono>
#include <cmath>

#include "bindings.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/sim/rigid_model.hpp"

namespace tarsus::python {

/// Applies Python's keywords to a scene's options and surfaces. @return whether contacts are solved in float
/// @throws ValueError, nb::type_error for unknown keywords
bool apply_keywords(RigidScene& scene, const nb::kwargs& keywords);
/// Changes options of an existing world.
/// @throws ValueError, nb::type_error, also for options that are fixed at construction
void change_options(RigidWorldOptions& options, const nb::kwargs& keywords);
nb::dict to_python(const RigidWorldOptions& options);
/// Inertia from three principal moments or a (3, 3) array [kg m²].
Sym3d inertia_of(nb::handle object);
/// @throws ValueError for a quaternion that is zero or not finite
Quatd unit(const std::array<double, 4>& q);

/// The body frame as the user defined it.
struct BodyFrame {
  Mat3d turn;  ///< its axes in the world
  Vec3d arm;   ///< from its origin to the centre of mass, world
};

/// Python's RigidWorld: a world of either precision, the assets of its shapes, and each body's user frame.
class AnyRigidWorld {
 public:
  AnyRigidWorld(RigidScene scene, const nb::kwargs& keywords) {
    if (apply_keywords(scene, keywords))
      world_ = std::make_unique<RigidWorld<float>>(make_world<float>(scene));
    else
      world_ = std::make_unique<RigidWorld<double>>(make_world<double>(scene));
    frames_.resize(scene.bodies.size());
    names_ = std::move(scene.names);
    names_.resize(scene.bodies.size());
    contact_dt_ = scene.options.dt;
  }
  static std::unique_ptr<AnyRigidWorld> from_model(const Model& model, const nb::kwargs& keywords) {
    RigidModel rigid = rigid_model(model);
    auto out = std::make_unique<AnyRigidWorld>(std::move(rigid.scene), keywords);
    out->frames_ = std::move(rigid.com_frame);
    out->geometry_ = std::move(rigid.geometry);
    return out;
  }

  template <class F>
  auto visit(F f) const {
    if (busy_) throw ValueError("world", "in use by another thread", "one thread at a time");
    return std::visit([&](const auto& world) { return f(*world); }, world_);
  }

  int add_surface(const Surface& s) {
    return visit([&](auto& w) { return w.add_surface(s); });
  }
  int add_body(const OwnedShape* shape, double mass, const Numbers<3>& position, const Numbers<4>& orientation,
               nb::handle inertia, const Numbers<3>& com_given, int surface) {
    const Vec3d com = vec("com", com_given);
    if (!shape && inertia.is_none()) throw ValueError("inertia", "None", "moments, because there is no shape");
    if (!(mass > 0) || !std::isfinite(mass)) throw ValueError("mass", number_text(mass), "finite, above 0");
    for (int k = 0; k < 3; ++k) {
      if (inertia.is_none() && com[k] != 0)  // nan too
        throw ValueError("com", number_text(com[k]), "0 unless inertia is given: otherwise the shape determines both");
    }
    const PrincipalBody made =
        inertia.is_none() ? principal_body(mass, shape->shape) : principal_body(mass, com, inertia_of(inertia));
    const Vec3d& moment = made.body.inertia;
    const double sum = moment.x + moment.y + moment.z;
    for (int k = 0; k < 3; ++k) {
      if (moment[k] > 0.5 * sum * (1 + 1e-9))
        throw ValueError("inertia",
                         "with a moment " + number_text(moment[k]) + " above the sum of the other two, " +
                             number_text(sum - moment[k]),
                         "a solid body's moments, each at most the sum of the other two");
    }
    if (surface < 0 || surface >= visit([](auto& w) { return int(w.surfaces().size()); }))
      throw ValueError("surface", std::to_string(surface), "an existing surface");
    if (shape && (shape->shape.type == ShapeType::plane || shape->shape.type == ShapeType::height_field))
      throw ValueError("shape", name(shape->shape.type), "a shape that can move: planes and height fields cannot");
    RigidBody body = made.body;
    set_pose(body, made.frame, vec("position", position), unit(orientation.of("orientation")));
    const int number = visit([&](auto& w) { return w.add_body(body); });
    frames_.push_back(made.frame), names_.emplace_back();
    if (shape) add_shape(number, *shape, {}, surface, 1, 1);
    return number;
  }
  int add_shape(int body, const OwnedShape& shape, const ShapePose& local, int surface, int contype, int conaffinity) {
    BodyShape s{body, shape.shape, local, surface, contype, conaffinity};
    if (body >= 0 && body < n()) {
      const ShapePose& frame = frames_[std::size_t(body)];
      s.local.position = transpose_mul(frame.rotation, s.local.position - frame.position);
      s.local.rotation = transpose(frame.rotation) * s.local.rotation;
    }
    const int number = visit([&](auto& w) { return w.add_shape(s); });
    shapes_.push_back(shape);
    return number;
  }
  void exclude(int a, int b) {
    visit([&](auto& w) { w.exclude(a, b); });
  }

  /// Steps without Python's lock; looks for Ctrl-C every now and then.
  nb::object step(int steps) {
    if (steps < 1) throw ValueError("steps", std::to_string(steps), "1 or more");
    RigidStepReport report;
    contact_dt_ = visit([](auto& w) { return w.options().dt; });
    visit([&](auto& w) {
      int done = 0;
      while (done < steps && report.status == WorldStatus::ok) {
        {
          const Busy busy(busy_);
          const nb::gil_scoped_release release;
          const auto start = std::chrono::steady_clock::now();
          while (done < steps && std::chrono::steady_clock::now() - start < std::chrono::milliseconds(100)) {
            report = w.step();
            if (report.status != WorldStatus::ok) break;
            ++done;
          }
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
      }
    });
    failed_ = report.status != WorldStatus::ok;
    stepped_ = true;
    return nb::cast(report);
  }

  int n() const {
    return visit([](auto& w) { return int(w.bodies().size()); });
  }
  nb::object poses() const {
    std::vector<double> out;
    visit([&](auto& w) {
      for (std::size_t i = 0; i < w.bodies().size(); ++i) {
        const RigidBody& b = w.bodies()[i];
        const BodyFrame f = frame(b, i);
        const Vec3d p = b.position - f.arm;
        const Quatd q = same_axes(i) ? b.orientation : quaternion(f.turn);
        out.insert(out.end(), {p.x, p.y, p.z, q.w, q.x, q.y, q.z});
      }
    });
    return new_array(out, {frames_.size(), 7});
  }
  void set_poses(nb::handle from) {
    const Input<double> in("poses", from, {frames_.size(), 7}, sizeof(double));
    visit([&](auto& w) {
      std::vector<RigidBody> bodies = w.bodies();
      for (std::size_t i = 0; i < bodies.size(); ++i) {
        const double* p = in.span().data() + 7 * i;
        check_row("poses", i, {p, 7});
        RigidBody& b = bodies[i];
        const Vec3d velocity = b.velocity - cross(b.angular_velocity, frame(b, i).arm);
        set_pose(b, frames_[i], {p[0], p[1], p[2]}, unit({p[3], p[4], p[5], p[6]}));
        b.velocity = velocity + cross(b.angular_velocity, frame(b, i).arm);
        b.asleep = false, b.still_time = 0;
      }
      w.bodies().swap(bodies);
      w.forget_contacts();
    });
    stepped_ = false;
  }
  /// Velocities of the body frames' origins and angular velocities, in world axes.
  nb::object velocities() const {
    std::vector<double> out;
    visit([&](auto& w) {
      for (std::size_t i = 0; i < w.bodies().size(); ++i) {
        const RigidBody& b = w.bodies()[i];
        const Vec3d v = b.velocity - cross(b.angular_velocity, frame(b, i).arm), s = b.angular_velocity;
        out.insert(out.end(), {v.x, v.y, v.z, s.x, s.y, s.z});
      }
    });
    return new_array(out, {frames_.size(), 6});
  }
  void set_velocities(nb::handle from) {
    const Input<double> in("velocities", from, {frames_.size(), 6}, sizeof(double));
    for (std::size_t i = 0; i < frames_.size(); ++i) check_row("velocities", i, in.span().subspan(6 * i, 6));
    visit([&](auto& w) {
      for (std::size_t i = 0; i < w.bodies().size(); ++i) {
        const double* v = in.span().data() + 6 * i;
        RigidBody& b = w.bodies()[i];
        b.angular_velocity = {v[3], v[4], v[5]};
        b.velocity = Vec3d{v[0], v[1], v[2]} + cross(b.angular_velocity, frame(b, i).arm);
        b.asleep = false, b.still_time = 0;
      }
    });
    stepped_ = false;
  }
  nb::object forces() const {
    std::vector<double> out;
    visit([&](auto& w) {
      for (const RigidBody& b : w.bodies())
        out.insert(out.end(), {b.force.x, b.force.y, b.force.z, b.torque.x, b.torque.y, b.torque.z});
    });
    return new_array(out, {frames_.size(), 6});
  }
  void set_forces(nb::handle from) {
    const Input<double> in("forces", from, {frames_.size(), 6}, sizeof(double));
    for (std::size_t i = 0; i < frames_.size(); ++i) check_row("forces", i, in.span().subspan(6 * i, 6));
    visit([&](auto& w) {
      for (std::size_t i = 0; i < w.bodies().size(); ++i) {
        const double* f = in.span().data() + 6 * i;
        RigidBody& b = w.bodies()[i];
        b.force = {f[0], f[1], f[2]}, b.torque = {f[3], f[4], f[5]};
        if (dot(b.force, b.force) + dot(b.torque, b.torque) > 0) b.asleep = false, b.still_time = 0;
      }
    });
  }
  nb::object masses() const {
    std::vector<double> out;
    visit([&](auto& w) {
      for (const RigidBody& b : w.bodies()) out.push_back(b.mass);
    });
    return new_array(out, {frames_.size()});
  }
  nb::object asleep() const {
    nb::list out;
    visit([&](auto& w) {
      for (const RigidBody& b : w.bodies()) out.append(b.asleep);
    });
    return nb::module_::import_("numpy").attr("array")(out, nb::arg("dtype") = "bool");
  }
  nb::dict contacts() const;
  /// Shapes for a viewer, except hulls and height fields, which come from models: scene_json() describes them.
  nb::list shapes() const;

  nb::dict options() const {
    nb::dict out = to_python(visit([](auto& w) { return w.options(); }));
    out["dtype"] = world_.index() == 1 ? "float32" : "float64";
    return out;
  }
  void set_options(const nb::kwargs& keywords) {
    RigidWorldOptions o = visit([](auto& w) { return w.options(); });
    change_options(o, keywords);
    visit([&](auto& w) { w.options() = o; });
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Busy {
    std::atomic<bool>& flag;
    explicit Busy(std::atomic<bool>& f) : flag(f) { flag = true; }
    ~Busy() { flag = false; }
  };
  static void check_row(const char* what, std::size_t i, std::span<const double> row) {
    for (const double x : row) {
      if (!std::isfinite(x)) throw ValueError(what, number_text(x) + " of body " + std::to_string(i), "finite");
    }
  }
  static void set_pose(RigidBody& b, const ShapePose& frame, const Vec3d& position, const Quatd& orientation) {
    const Mat3d turn = rotation(orientation);
    b.position = position + turn * frame.position;
    const bool same = frame.rotation.xx == 1 && frame.rotation.yy == 1 && frame.rotation.zz == 1;
    b.orientation = same ? orientation : quaternion(turn * frame.rotation);
  }
  bool same_axes(std::size_t body) const {
    const Mat3d& r = frames_[body].rotation;
    return r.xx == 1 && r.yy == 1 && r.zz == 1;
  }
  BodyFrame frame(const RigidBody& b, std::size_t body) const {
    const ShapePose& f = frames_[body];
    const Mat3d turn = rotation(b.orientation) * transpose(f.rotation);
    return {turn, turn * f.position};
  }

  template <class R>
  nb::dict contact_arrays(const RigidWorld<R>& w) const;

  std::variant<std::unique_ptr<RigidWorld<double>>, std::unique_ptr<RigidWorld<float>>> world_;
  std::vector<ShapePose> frames_;   // [body] centre of mass and principal axes in the user's frame
  std::vector<OwnedShape> shapes_;  // keeps hulls and height fields alive
  std::shared_ptr<const ContactGeometry> geometry_;
  std::vector<std::string> names_;
  double contact_dt_ = 0;
  bool stepped_ = false, failed_ = false;  // contacts are valid if the state is that of the last step
  std::atomic<bool> busy_ = false;
};

}  // namespace tarsus::python
