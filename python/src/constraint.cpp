// Equality constraints, the KKT system and constrained dynamics.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/constraint/kkt.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

namespace {

using Point = std::array<double, 3>;
Vec3d point(const Point& p) { return {p[0], p[1], p[2]}; }

int joint_index(const Model& model, handle joint) {
  return nb::isinstance<nb::str>(joint) ? model.joint_id(nb::cast<std::string>(joint)) : nb::cast<int>(joint);
}

BasicData<double>& single(AnyData& any, const Model& model) {
  return *any.visit([&]<class R>(BasicData<R>& data) -> BasicData<double>* {
    const Call<R> call(model, any, data);
    if constexpr (std::is_same_v<R, double>) {
      if (data.width() == 1) return &data;
    }
    throw ValueError("data", sizeof(R) == 8 ? "a batch" : "float32", "a single world in float64");
  });
}

const EqualitySet& set_of(const Model& model, handle equalities, std::optional<EqualitySet>& own) {
  if (equalities.is_none()) return own.emplace(EqualitySet::of(model));
  return equalities_for(model, equalities).set;
}

AlignedVector<double> zeros(std::size_t n) { return AlignedVector<double>(n, 0.0); }

/// J [nrow][nv] dense, from blocks filled at the poses in the workspace.
AlignedVector<double> dense_jacobian(const Model& model, const BasicData<double>& data, DelassusRows<double>& rows) {
  AlignedVector<double> J(std::size_t(rows.rows()) * model.nv, 0.0);
  std::vector<double> part;
  for (int b = 0; b < rows.blocks(); ++b) {
    const auto block = rows.block(b);
    part.resize(block.dofs.size() * block.stride);
    rows.jacobian(model, data, b, part.data());
    for (std::size_t k = 0; k < block.dofs.size(); ++k) {
      for (int r = 0; r < block.nrow; ++r)
        J[std::size_t(block.first_row + r) * model.nv + block.dofs[k]] += part[k * block.stride + r];
    }
  }
  return J;
}

nb::object py_rows(const PyEqualities& self, AnyData& any, handle qpos, handle qvel) {
  const Model& model = self.set.model();
  BasicData<double>& data = single(any, model);
  const Call<double> call(model, any, data);
  const Input<double> q = call.qpos(qpos), v = call.optional("qvel", qvel, {model.nv});
  const std::size_t m = self.set.rows(), n = model.nv;
  AlignedVector<double> phi = zeros(m), rate = zeros(m), bias = zeros(m), rest = zeros(n), tau = zeros(n);
  DelassusRows<double> rows(model);
  self.set.add_blocks(rows);
  const In<double> velocity = qvel.is_none() ? In<double>(rest) : In<double>(v);
  kinematics<double>(model, data, q, velocity);
  rnea<double>(model, data, q, velocity, rest, tau);  // accelerations that velocities alone bring
  self.set.evaluate<double>(data, 0, q, velocity, rows, phi, rate, bias);
  nb::dict out;
  out["J"] = own_array(dense_jacobian(model, data, rows), {m, n});
  out["phi"] = own_array(std::move(phi), {m}), out["rate"] = own_array(std::move(rate), {m}),
  out["bias"] = own_array(std::move(bias), {m});
  return out;
}

nb::object py_solve_kkt(const Model& model, AnyData& any, handle qpos, handle y1, handle y2, handle sigma,
                        handle joint_inertia, const std::string& method, handle equalities) {
  BasicData<double>& data = single(any, model);
  const Call<double> call(model, any, data);
  std::optional<EqualitySet> own;
  const EqualitySet& set = set_of(model, equalities, own);
  const int m = set.rows();
  const Input<double> q = call.qpos(qpos), right = call.in("y1", y1, {model.nv}),
                      rows_right = call.optional("y2", y2, {m}), soft = call.optional("sigma", sigma, {m}),
                      inertia = call.optional("joint_inertia", joint_inertia, {model.nv});
  const AlignedVector<double> zero = zeros(m);
  DelassusRows<double> rows(model);
  set.add_blocks(rows);
  AlignedVector<double> phi = zeros(m), x1 = zeros(model.nv), x2 = zeros(m);
  kinematics<double>(model, data, q);
  set.evaluate<double>(data, 0, q, {}, rows, phi, {}, {});
  KktSolver solver(model);
  const KktInput in{data,
                    rows,
                    q,
                    joint_inertia.is_none() ? In<double>(model.armature) : In<double>(inertia),
                    soft,
                    right,
                    y2.is_none() ? In<double>(zero) : In<double>(rows_right)};
  const KktReport report = solver.solve(kkt_method(method), in, x1, x2);
  nb::list dependent;
  for (const int row : report.dependent) dependent.append(set.row_name(row));
  nb::dict out;
  out["x1"] = own_array(std::move(x1), {std::size_t(model.nv)}), out["x2"] = own_array(std::move(x2), {std::size_t(m)});
  out["method"] = name(report.method), out["status"] = name(report.status), out["rank"] = report.rank;
  out["dependent"] = dependent, out["rounds"] = report.rounds;
  out["force_residual"] = report.force_residual, out["row_residual"] = report.row_residual;
  return out;
}

nb::object py_constrained(const Model& model, AnyData& any, handle qpos, handle qvel, handle tau, double dt,
                          handle joint_inertia, handle equalities) {
  BasicData<double>& data = single(any, model);
  const Call<double> call(model, any, data);
  if (!(dt >= 0) || !std::isfinite(dt)) throw ValueError("dt", number_text(dt), "0 (exact) or a step [s]");
  std::optional<EqualitySet> own;
  const EqualitySet& set = set_of(model, equalities, own);
  const Input<double> q = call.qpos(qpos), v = call.qvel(qvel), force = call.in("tau", tau, {model.nv}),
                      inertia = call.optional("joint_inertia", joint_inertia, {model.nv});
  ConstrainedDynamics<double> dynamics(model, set, data);
  AlignedVector<double> qacc = zeros(model.nv);
  dynamics.accelerate(data, dt, q, v, force, joint_inertia.is_none() ? In<double>(model.armature) : In<double>(inertia),
                      qacc);
  const std::size_t m = set.rows();
  nb::dict out;
  out["qacc"] = own_array(std::move(qacc), {std::size_t(model.nv)});
  out["x2"] = own_array(AlignedVector<double>(dynamics.multiplier().begin(), dynamics.multiplier().end()), {m});
  out["status"] = name(dynamics.status(0));
  return out;
}

}  // namespace

PyEqualities& equalities_for(const Model& model, handle equalities) {
  PyEqualities& e = nb::cast<PyEqualities&>(equalities);
  if (&e.set.model() != &model) throw ValueError("equalities", "made for another model", "this model's own");
  return e;
}

void bind_constraint(nb::module_& m) {
  nb::class_<PyEqualities>(m, "Equalities",
                           "Equality constraints of a model. Equalities(model) has those of the model's file, "
                           "Equalities(model, own=False) none. Points are in bodies' frames; body 0 is the world.")
      .def(
          "__init__",
          [](PyEqualities* self, nb::object model, bool own) {
            const Model& m = nb::cast<const Model&>(model);
            new (self) PyEqualities{model, own ? EqualitySet::of(m) : EqualitySet(m)};
          },
          "model"_a, "own"_a = true, nb::sig("def __init__(self, model: Model, own: bool = True) -> None"))
      .def("__len__", [](const PyEqualities& e) { return e.set.size(); })
      .def("__repr__",
           [](const PyEqualities& e) {
             return "<tarsus.Equalities of '" + e.set.model().name + "' " + std::to_string(e.set.size()) +
                    " constraints, " + std::to_string(e.set.rows()) + " rows>";
           })
      .def_prop_ro(
          "nrow", [](const PyEqualities& e) { return e.set.rows(); }, "Rows of all constraints.")
      .def_prop_ro(
          "row_names",
          [](const PyEqualities& e) {
            std::vector<std::string> names;
            for (int r = 0; r < e.set.rows(); ++r) names.push_back(e.set.row_name(r));
            return names;
          },
          "One name a row.")
      .def(
          "add_connect",
          [](PyEqualities& e, const std::string& name, handle a, const Point& p, handle b, const Point& q) {
            return e.growing().add_connect(name, body_index(e.set.model(), a), point(p), body_index(e.set.model(), b),
                                           point(q));
          },
          "name"_a, "body_a"_a, "point_a"_a, "body_b"_a, "point_b"_a, "Two points stay together: three rows.")
      .def(
          "add_distance",
          [](PyEqualities& e, const std::string& name, handle a, const Point& p, handle b, const Point& q,
             double length) {
            return e.growing().add_distance(name, body_index(e.set.model(), a), point(p), body_index(e.set.model(), b),
                                            point(q), length);
          },
          "name"_a, "body_a"_a, "point_a"_a, "body_b"_a, "point_b"_a, "length"_a,
          "Two points stay `length` apart [m]: one row.")
      .def(
          "add_point_on_plane",
          [](PyEqualities& e, const std::string& name, handle a, const Point& p, handle b, const Point& q,
             const Point& n) {
            return e.growing().add_point_on_plane(name, body_index(e.set.model(), a), point(p),
                                                  body_index(e.set.model(), b), point(q), point(n));
          },
          "name"_a, "body_a"_a, "point_a"_a, "body_b"_a, "point_b"_a, "normal"_a,
          "A point of a stays in a plane fixed to b: one row.")
      .def(
          "add_joint",
          [](PyEqualities& e, const std::string& name, handle a, handle b, const std::array<double, 5>& polynomial) {
            return e.growing().add_joint(name, joint_index(e.set.model(), a),
                                         b.is_none() ? -1 : joint_index(e.set.model(), b), polynomial);
          },
          "name"_a, "joint_a"_a, "joint_b"_a.none(), "polynomial"_a,
          "q_a - ref_a = sum c_k (q_b - ref_b)^k; joint_b None: a constant. One row.")
      .def(
          "add_weld",
          [](PyEqualities& e, const std::string& name, handle a, handle b, const std::array<double, 9>& R,
             const Point& p) {
            const Mat3d rotation{R[0], R[1], R[2], R[3], R[4], R[5], R[6], R[7], R[8]};
            return e.growing().add_weld(name, body_index(e.set.model(), a), body_index(e.set.model(), b),
                                        {rotation, point(p)});
          },
          "name"_a, "body_a"_a, "body_b"_a, "rotation"_a, "position"_a,
          "b keeps its pose in a's frame: rotation (nine numbers, row by row) and position [m]. Six rows.")
      .def(
          "set_softness",
          [](PyEqualities& e, int index, double compliance, double damping_steps) {
            e.set.set_softness(index, {compliance, damping_steps});
          },
          "index"_a, "compliance"_a, "damping_steps"_a, "SPOOK's compliance and damping time in steps, used by steps.")
      .def("rows", &py_rows, "data"_a, "qpos"_a.none(), "qvel"_a.none() = nb::none(),
           nb::sig("def rows(self, data: Data, qpos: numpy.ndarray, qvel: numpy.ndarray | None = None) -> dict"),
           "phi [nrow], J [nrow][nv], rate J qvel and bias dJ/dt qvel, at one configuration.");
  m.def(
      "solve_kkt", &py_solve_kkt, "model"_a, "data"_a, "qpos"_a.none(), "y1"_a.none(), "y2"_a.none() = nb::none(),
      "sigma"_a.none() = nb::none(), "joint_inertia"_a.none() = nb::none(), "method"_a = "automatic",
      "equalities"_a.none() = nb::none(),
      nb::sig("def solve_kkt(model: Model, data: Data, qpos: numpy.ndarray, y1: numpy.ndarray, y2: numpy.ndarray | "
              "None = None, sigma: "
              "numpy.ndarray | None = None, joint_inertia: numpy.ndarray | None = None, method: str = 'automatic', "
              "equalities: "
              "Equalities | None = None) -> dict"),
      "Solves [M J'; J -sigma] [x1; x2] = [y1; y2] with the constraints of the model's file, or `equalities`. M "
      "includes "
      "joint_inertia (the armature unless given). Methods: automatic, sweeps, branches, efpa, constrained_aba, sparse, "
      "dense. "
      "Returns x1, x2, method, status, rank, dependent (row names), rounds, force_residual, row_residual (relative).");
  m.def("constrained_dynamics", &py_constrained, "model"_a, "data"_a, "qpos"_a.none(), "qvel"_a.none(), "tau"_a.none(),
        "dt"_a = 0.0, "joint_inertia"_a.none() = nb::none(), "equalities"_a.none() = nb::none(),
        nb::sig("def constrained_dynamics(model: Model, data: Data, qpos: numpy.ndarray, qvel: numpy.ndarray, tau: "
                "numpy.ndarray, dt: float "
                "= 0.0, joint_inertia: numpy.ndarray | None = None, equalities: Equalities | None = None) -> dict"),
        "Joint accelerations under the constraints: exact for dt = 0, SPOOK's softened rows over a step dt otherwise. "
        "Returns qacc [nv], x2 "
        "(the force on the bodies is -J' x2), status.");
}

}  // namespace tarsus::python
