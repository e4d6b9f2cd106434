// Bindings of tarsus/dynamics/dynamics.hpp, with the arguments in the same order.
#include "tarsus/dynamics/dynamics.hpp"

#include "bindings.hpp"
#include "tarsus/dynamics/tendon_inertia.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

namespace {

#define TARSUS_ARRAY "numpy.ndarray"
#define TARSUS_OPTIONAL "numpy.ndarray | None = None"

void py_kinematics(const Model& model, AnyData& any, handle qpos, handle qvel) {
  any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data, Overwrites::poses);
    const Input<R> q = call.qpos(qpos), v = call.optional("qvel", qvel, {model.nv});
    call.run([&] { kinematics<R>(model, data, q, v); });
    call.leaves_kinematics(q, v);
  });
}

/// Calls f(tendons, elements of `out` of one world) for each world if a tendon has armature. qvel may be empty.
template <class R, class F>
void with_tendons(const Call<R>& call, In<R> qpos, In<R> qvel, Out<R> out, int n, const F& f) {
  if (!TendonInertia::any(call.model)) return;
  TendonInertia tendons(call.model);
  const BasicData<R>& data = call.data;
  std::vector<R> one;
  const auto world_of = [&](In<R> from, int count, int world) {
    one.resize(from.empty() ? 0 : std::size_t(count));
    if (!from.empty()) data.get(from, count, world, one);
    return std::vector<double>(one.begin(), one.end());
  };
  for (int world = 0; world < data.worlds(); ++world) {
    tendons.evaluate(data, world, world_of(qpos, call.model.nq, world), world_of(qvel, call.model.nv, world));
    std::vector<double> numbers = world_of(out, n, world);
    f(tendons, std::span<double>(numbers), [&](In<R> from, int count) { return world_of(from, count, world); });
    one.assign(numbers.begin(), numbers.end());
    data.set(out, n, world, one);
  }
}

nb::object py_rnea(const Model& model, AnyData& any, handle qpos, handle qvel, handle qacc, handle out,
                   handle external) {
  return any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data, Overwrites::poses);
    const Input<R> q = call.qpos(qpos), v = call.qvel(qvel), a = call.in("qacc", qacc, {model.nv}),
                   f = call.external(external);
    Output<R> tau = call.out("out", out, {model.nv});
    for (const Input<R>* input : {&q, &v, &a, &f}) tau.keep_apart(*input);
    call.run([&] {
      rnea<R>(model, data, q, v, a, tau, f);
      with_tendons<R>(call, q, v, tau, model.nv, [&](TendonInertia& tendons, std::span<double> one, const auto& world) {
        tendons.add_force(world(a, model.nv), one);
      });
    });
    return tau.take();
  });
}

nb::object py_bias_force(const Model& model, AnyData& any, handle qpos, handle qvel, handle out) {
  return any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data, Overwrites::poses);
    const Input<R> q = call.qpos(qpos), v = call.qvel(qvel);
    Output<R> bias = call.out("out", out, {model.nv});
    bias.keep_apart(q), bias.keep_apart(v);
    call.run([&] {
      bias_force<R>(model, data, q, v, bias);
      with_tendons<R>(call, q, v, bias, model.nv,
                      [](TendonInertia& tendons, std::span<double> one, const auto&) { tendons.add_force({}, one); });
    });
    return bias.take();
  });
}

nb::object py_crba(const Model& model, AnyData& any, handle qpos, handle out) {
  return any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data, Overwrites::poses);
    const Input<R> q = call.qpos(qpos);
    Output<R> M = call.out("out", out, {model.nv, model.nv});
    M.keep_apart(q);
    call.run([&] {
      crba<R>(model, data, q, M);
      with_tendons<R>(call, q, {}, M, model.nv * model.nv,
                      [](TendonInertia& tendons, std::span<double> one, const auto&) { tendons.add_mass(one); });
    });
    return M.take();
  });
}

nb::object py_aba(const Model& model, AnyData& any, handle qpos, handle qvel, handle tau, handle out, handle external) {
  return any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data);
    const Input<R> q = call.qpos(qpos), v = call.qvel(qvel), t = call.in("tau", tau, {model.nv}),
                   f = call.external(external);
    Output<R> qacc = call.out("out", out, {model.nv});
    for (const Input<R>* input : {&q, &v, &t, &f}) qacc.keep_apart(*input);
    call.run([&] {
      aba<R>(model, data, q, v, t, qacc, f);
      with_tendons<R>(call, q, v, qacc, model.nv,
                      [&](TendonInertia& tendons, std::span<double> one, const auto& world) {
                        tendons.accelerate(world(v, model.nv), world(t, model.nv), world(f, 6 * model.njoint()), one);
                      });
    });
    call.leaves_factors(q);
    return qacc.take();
  });
}

nb::object py_maba(const Model& model, AnyData& any, handle qpos, handle qvel, handle joint_force, handle joint_inertia,
                   handle out, handle external) {
  return any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data);
    const Input<R> q = call.qpos(qpos), v = call.qvel(qvel), Q = call.in("joint_force", joint_force, {model.nv});
    const Input<R> K = call.in("joint_inertia", joint_inertia, {model.nv}), f = call.external(external);
    Output<R> qacc = call.out("out", out, {model.nv});
    for (const Input<R>* input : {&q, &v, &Q, &K, &f}) qacc.keep_apart(*input);
    call.run([&] { maba<R>(model, data, q, v, Q, K, qacc, f); });
    call.leaves_factors(q);
    return qacc.take();
  });
}

void py_factor(const Model& model, AnyData& any, handle qpos, handle joint_inertia) {
  any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data);
    const Input<R> q = call.qpos(qpos), K = call.in("joint_inertia", joint_inertia, {model.nv});
    call.run([&] { factor<R>(model, data, q, K); });
    call.leaves_factors(q);
  });
}

nb::object py_minv(const Model& model, AnyData& any, handle y, handle out) {
  return any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data, Overwrites::nothing);
    const Input<R> in = call.in("y", y, {model.nv});
    Output<R> x = call.out("out", out, {model.nv});
    x.keep_apart_or_in_place(in);
    call.needs_factors();
    call.run([&] { minv<R>(model, data, in, x); });
    return x.take();
  });
}

nb::object py_jacobian(const Model& model, AnyData& any, handle body, handle point, handle out) {
  return any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data, Overwrites::nothing);
    const Input<R> p("point", point, {3}, 1);
    Output<R> J("out", out, {6, std::size_t(model.nv)}, 1);
    J.keep_apart(p);
    call.needs_kinematics();
    jacobian<R>(model, data, body_index(model, body), p, J);
    return J.take();
  });
}

nb::object py_integrate(const Model& model, AnyData& any, handle qpos, handle qvel, double dt, handle out) {
  return any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data, Overwrites::poses);
    const Input<R> q = call.qpos(qpos), v = call.qvel(qvel);
    Output<R> next = call.out("out", out, {model.nq});
    next.keep_apart(v), next.keep_apart_or_in_place(q);
    call.run([&] { integrate<R>(model, data, q, v, R(dt), next); });
    return next.take();
  });
}

nb::object py_difference(const Model& model, handle a, handle b, handle out) {
  const Shape positions{std::size_t(model.nq)};
  const Input<double> from("a", a, positions, 1), to("b", b, positions, 1);
  Output<double> velocity("out", out, {std::size_t(model.nv)}, 1);
  velocity.keep_apart(from), velocity.keep_apart(to);
  difference(model, from, to, velocity);
  return velocity.take();
}

int py_first_bad_world(AnyData& any, handle values, int n) {
  if (n < 0) throw ValueError("n", std::to_string(n), "not negative");
  return any.visit([&]<class R>(BasicData<R>& data) {
    const Input<R> in("values", values, batch_shape(data, {n}), 1);
    return first_bad_world<R>(data, in, n);
  });
}

}  // namespace

void bind_dynamics(nb::module_& m) {
  m.def("kinematics", &py_kinematics, "model"_a, "data"_a, "qpos"_a.none(), "qvel"_a = nb::none(),
        nb::sig("def kinematics(model: Model, data: Data, qpos: " TARSUS_ARRAY ", qvel: " TARSUS_OPTIONAL ") -> None"),
        "Computes the poses of all links (and, with qvel, their velocities) into data's workspace, for "
        "body_pose() and similar functions.\n"
        "O(n).\n"
        "\n"
        "qpos [nq], qvel [nv] or None.");
  m.def("rnea", &py_rnea, "model"_a, "data"_a, "qpos"_a.none(), "qvel"_a.none(), "qacc"_a.none(), "out"_a = nb::none(),
        "external"_a = nb::none(),
        nb::sig("def rnea(model: Model, data: Data, qpos: " TARSUS_ARRAY ", qvel: " TARSUS_ARRAY ", qacc: " TARSUS_ARRAY
                ", out: " TARSUS_OPTIONAL ", external: " TARSUS_OPTIONAL ") -> " TARSUS_ARRAY),
        "Inverse dynamics: tau [nv] = M qacc + C(qpos, qvel), armature included [N m | N]. O(n).\n\n"
        "external [njoint][6]: (moment, force) on each link at its origin, world axes [N m, N], or None.");
  m.def("bias_force", &py_bias_force, "model"_a, "data"_a, "qpos"_a.none(), "qvel"_a.none(), "out"_a = nb::none(),
        nb::sig("def bias_force(model: Model, data: Data, qpos: " TARSUS_ARRAY ", qvel: " TARSUS_ARRAY
                ", out: " TARSUS_OPTIONAL ") -> " TARSUS_ARRAY),
        "C(qpos, qvel) [nv]: gravity, centrifugal and Coriolis forces; MuJoCo's qfrc_bias [N m | N]. O(n).");
  m.def(
      "crba", &py_crba, "model"_a, "data"_a, "qpos"_a.none(), "out"_a = nb::none(),
      nb::sig("def crba(model: Model, data: Data, qpos: " TARSUS_ARRAY ", out: " TARSUS_OPTIONAL ") -> " TARSUS_ARRAY),
      "Mass matrix M(qpos) [nv][nv], armature included [kg m² | kg m | kg]. O(n depth).");
  m.def("aba", &py_aba, "model"_a, "data"_a, "qpos"_a.none(), "qvel"_a.none(), "tau"_a.none(), "out"_a = nb::none(),
        "external"_a = nb::none(),
        nb::sig("def aba(model: Model, data: Data, qpos: " TARSUS_ARRAY ", qvel: " TARSUS_ARRAY ", tau: " TARSUS_ARRAY
                ", out: " TARSUS_OPTIONAL ", external: " TARSUS_OPTIONAL ") -> " TARSUS_ARRAY),
        "Forward dynamics: qacc [nv] = M⁻¹ (tau - C) [rad/s² | m/s²]. O(n).\n"
        "\n"
        "A singular mass matrix gives inf or nan in the result. external is that of rnea(). Springs and "
        "damping are not included:\n"
        "see drive_terms().");
  m.def("maba", &py_maba, "model"_a, "data"_a, "qpos"_a.none(), "qvel"_a.none(), "joint_force"_a.none(),
        "joint_inertia"_a.none(), "out"_a = nb::none(), "external"_a = nb::none(),
        nb::sig("def maba(model: Model, data: Data, qpos: " TARSUS_ARRAY ", qvel: " TARSUS_ARRAY
                ", joint_force: " TARSUS_ARRAY ", joint_inertia: " TARSUS_ARRAY ", out: " TARSUS_OPTIONAL
                ", external: " TARSUS_OPTIONAL ") -> " TARSUS_ARRAY),
        "Forward dynamics with implicit drives: qacc [nv] = (M₀ + diag K)⁻¹ (Q - C), where M₀ is the mass "
        "matrix without the armature of joints and tendons. O(n).\n"
        "\n"
        "joint_force Q [nv] and joint_inertia K [nv] come from drive_terms(). A ball joint uses its first K "
        "for all three axes. A\n"
        "free joint uses its first three K for translation and its fourth for all rotations.");
  m.def(
      "factor", &py_factor, "model"_a, "data"_a, "qpos"_a.none(), "joint_inertia"_a.none(),
      nb::sig("def factor(model: Model, data: Data, qpos: " TARSUS_ARRAY ", joint_inertia: " TARSUS_ARRAY ") -> None"),
      "Factors M₀ + diag K for minv(); aba() and maba() leave the same factors. The armature of tendons is "
      "not included. O(n).");
  m.def("minv", &py_minv, "model"_a, "data"_a, "y"_a.none(), "out"_a = nb::none(),
        nb::sig("def minv(model: Model, data: Data, y: " TARSUS_ARRAY ", out: " TARSUS_OPTIONAL ") -> " TARSUS_ARRAY),
        "x [nv] = (M₀ + diag K)⁻¹ y with the factors of the last aba(), maba() or factor(), until a step or a function "
        "of constraints.\n"
        "Raises ValueError without factors. O(n). out may be y.");
  m.def("jacobian", &py_jacobian, "model"_a, "data"_a, "body"_a.none(), "point"_a.none(), "out"_a = nb::none(),
        nb::sig("def jacobian(model: Model, data: Data, body: int | str, point: " TARSUS_ARRAY ", out: " TARSUS_OPTIONAL
                ") -> " TARSUS_ARRAY),
        "Jacobian [6][nv] of a point [3] (world frame, m) fixed to a body. Angular rows first, world axes.\n"
        "\n"
        "It holds at the configuration of the last kinematics(); raises ValueError without one. Single world only.");
  m.def("integrate", &py_integrate, "model"_a, "data"_a, "qpos"_a.none(), "qvel"_a.none(), "dt"_a, "out"_a = nb::none(),
        nb::sig("def integrate(model: Model, data: Data, qpos: " TARSUS_ARRAY ", qvel: " TARSUS_ARRAY
                ", dt: float, out: " TARSUS_OPTIONAL ") -> " TARSUS_ARRAY),
        "qpos ⊞ dt qvel [nq]: exact for constant qvel; quaternions in the result have unit length. out may "
        "be qpos.");
  m.def("difference", &py_difference, "model"_a, "a"_a.none(), "b"_a.none(), "out"_a = nb::none(),
        nb::sig("def difference(model: Model, a: " TARSUS_ARRAY ", b: " TARSUS_ARRAY ", out: " TARSUS_OPTIONAL
                ") -> " TARSUS_ARRAY),
        "b ⊟ a [nv]: the velocity that moves a [nq] to b [nq] in one second. float64, single world.");
  m.def("first_bad_world", &py_first_bad_world, "data"_a, "values"_a.none(), "n"_a,
        nb::sig("def first_bad_world(data: Data, values: " TARSUS_ARRAY ", n: int) -> int"),
        "Index of the first world that has a non-finite number in an array of n numbers per world; -1 if all "
        "are finite.");
}

}  // namespace tarsus::python
