// Quantities of the workspace after kinematics(): poses, velocities, energy, momentum.
#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

namespace {

nb::object py_body_pose(const Model& model, AnyData& any, handle body) {
  return any.visit([&]<class R>(BasicData<R>& data) -> nb::object {
    const Call<R> call(model, any, data, Overwrites::nothing);
    call.needs_kinematics();
    const Transformd X = body_pose<R>(model, data, body_index(model, body));
    return nb::make_tuple(to_numpy(X.R), to_numpy(X.p));
  });
}

nb::object py_body_poses(const Model& model, AnyData& any) {
  return any.visit([&]<class R>(BasicData<R>& data) -> nb::object {
    const Call<R> call(model, any, data, Overwrites::nothing);
    call.needs_kinematics();
    const std::size_t n = model.nbody();
    AlignedVector<double> rotations(9 * n), positions(3 * n);
    for (std::size_t i = 0; i < n; ++i) {
      const Transformd X = body_pose<R>(model, data, int(i));
      for (int k = 0; k < 9; ++k) rotations[9 * i + k] = X.R(k / 3, k % 3);
      for (int k = 0; k < 3; ++k) positions[3 * i + k] = X.p[k];
    }
    return nb::make_tuple(own_array(std::move(rotations), {n, 3, 3}), own_array(std::move(positions), {n, 3}));
  });
}

nb::object py_body_velocity(const Model& model, AnyData& any, handle body) {
  return any.visit([&]<class R>(BasicData<R>& data) -> nb::object {
    const Call<R> call(model, any, data, Overwrites::nothing);
    call.needs_kinematics(true);
    const Motion<double> v = body_velocity<R>(model, data, body_index(model, body));
    return nb::make_tuple(to_numpy(v.w), to_numpy(v.v));
  });
}

Energy py_energy(const Model& model, AnyData& any, handle qpos, handle qvel) {
  return any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data, Overwrites::poses);
    if (data.width() != 1) throw ValueError("data", "a batch", "a single world");
    const auto q = call.qpos(qpos), v = call.qvel(qvel);
    kinematics<R>(model, data, q, v);
    call.leaves_kinematics(q, v);
    return energy<R>(model, data, q, v);
  });
}

Momentum py_momentum(const Model& model, AnyData& any) {
  return any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data, Overwrites::nothing);
    call.needs_kinematics(true);
    return momentum<R>(model, data);
  });
}

}  // namespace

void bind_measure(nb::module_& m) {
  nb::class_<Energy>(m, "Energy", "[J].")
      .def_ro("kinetic", &Energy::kinetic, "Kinetic energy of the bodies and, through armature, of the rotors.")
      .def_ro("potential", &Energy::potential, "Potential energy of gravity, zero at the world's origin.")
      .def_ro("spring", &Energy::spring, "Energy in the joints' springs.")
      .def("total", &Energy::total, "Sum of the three energies.")
      .def("__repr__", [](const Energy& e) {
        return "<tarsus.Energy kinetic=" + number_text(e.kinetic) + " potential=" + number_text(e.potential) +
               " spring=" + number_text(e.spring) + ">";
      });
  nb::class_<Momentum>(m, "Momentum", "Mass, centre of mass and momentum of all moving bodies.")
      .def_ro("mass", &Momentum::mass, "[kg].")
      .def_prop_ro(
          "com", [](const Momentum& p) { return to_numpy(p.com); }, nb::sig("def com(self) -> numpy.ndarray"),
          "[3] position of the centre of mass [m].")
      .def_prop_ro(
          "linear", [](const Momentum& p) { return to_numpy(p.linear); }, nb::sig("def linear(self) -> numpy.ndarray"),
          "[3] linear momentum [kg m/s].")
      .def_prop_ro(
          "angular", [](const Momentum& p) { return to_numpy(p.angular); },
          nb::sig("def angular(self) -> numpy.ndarray"), "[3] angular momentum about the centre of mass [kg m²/s].")
      .def("__repr__", [](const Momentum& p) {
        const auto vector = [](const Vec3d& v) {
          return "(" + number_text(v.x) + ", " + number_text(v.y) + ", " + number_text(v.z) + ")";
        };
        return "<tarsus.Momentum mass=" + number_text(p.mass) + " com=" + vector(p.com) +
               " linear=" + vector(p.linear) + " angular=" + vector(p.angular) + ">";
      });
  m.def("body_pose", &py_body_pose, "model"_a, "data"_a, "body"_a.none(),
        nb::sig("def body_pose(model: Model, data: Data, body: int | str) -> tuple[numpy.ndarray, numpy.ndarray]"),
        "(rotation [3][3], position [3] m) of a body in the world, after kinematics(): p_world = rotation @ "
        "p_body + position.");
  m.def("body_poses", &py_body_poses, "model"_a, "data"_a,
        nb::sig("def body_poses(model: Model, data: Data) -> tuple[numpy.ndarray, numpy.ndarray]"),
        "(rotations [nbody][3][3], positions [nbody][3] m) of all bodies in the world, after kinematics().");
  m.def("body_velocity", &py_body_velocity, "model"_a, "data"_a, "body"_a.none(),
        nb::sig("def body_velocity(model: Model, data: Data, body: int | str) -> tuple[numpy.ndarray, numpy.ndarray]"),
        "(angular [3] rad/s, linear [3] m/s) velocity of a body's frame, at its origin and in world axes, "
        "after kinematics() with qvel.");
  m.def("energy", &py_energy, "model"_a, "data"_a, "qpos"_a.none(), "qvel"_a.none(),
        nb::sig("def energy(model: Model, data: Data, qpos: numpy.ndarray, qvel: numpy.ndarray) -> Energy"),
        "Energy at qpos [nq] and qvel [nv]; runs kinematics(). Single world only.");
  m.def("momentum", &py_momentum, "model"_a, "data"_a, nb::sig("def momentum(model: Model, data: Data) -> Momentum"),
        "Momentum, after kinematics() with qvel. Single world only.");
}

}  // namespace tarsus::python
