// The KKT system and constrained dynamics.
#include <nanobind/stl/string.h>

#include <optional>

#include "equalities.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/baselines/kkt.hpp"
#include "tarsus/dynamics/tendon_inertia.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

namespace {

/// The equality set of a call: the caller's, or that of the model's file.
class Asked {
 public:
  Asked(const Model& model, handle equalities) {
    if (equalities.is_none())
      own_.emplace(EqualitySet::of(model));
    else
      theirs_ = &equalities_for(model, equalities);
  }
  const EqualitySet& set() const { return theirs_ ? theirs_->set : *own_; }
  void rethrow() const {
    if (theirs_) theirs_->rows->rethrow();
  }

 private:
  std::optional<EqualitySet> own_;
  const PyEqualities* theirs_ = nullptr;
};

AlignedVector<double> zeros(std::size_t n) { return AlignedVector<double>(n, 0.0); }

nb::object py_solve_kkt(const Model& model, AnyData& any, handle qpos, handle y1, handle y2, handle sigma,
                        handle joint_inertia, const std::string& method, handle equalities) {
  BasicData<double>& data = single_world(any, model);
  const Call<double> call(model, any, data);
  const Asked asked(model, equalities);
  const EqualitySet& set = asked.set();
  const int m = set.rows();
  const Input<double> q = call.qpos(qpos), right = call.in("y1", y1, {model.nv}),
                      rows_right = call.optional("y2", y2, {m}), soft = call.optional("sigma", sigma, {m}),
                      inertia = call.optional("joint_inertia", joint_inertia, {model.nv});
  for (const double s : soft.span()) {
    if (!(s >= 0)) throw ValueError("sigma", number_text(s), "softness, 0 or more");
  }
  const AlignedVector<double> zero = zeros(m);
  DelassusRows<double> rows(model);
  set.add_blocks(rows);
  AlignedVector<double> phi = zeros(m), x1 = zeros(model.nv), x2 = zeros(m);
  kinematics<double>(model, data, q);
  set.evaluate<double>(data, 0, q, {}, rows, phi, {}, {});
  asked.rethrow();
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
  out["dependent"] = dependent, out["iterations"] = report.iterations;
  out["force_residual"] = report.force_residual, out["row_residual"] = report.row_residual;
  return out;
}

/// K for every world: the caller's, or the armature.
template <class R>
AlignedVector<R> inertia_of(const Call<R>& call, handle joint_inertia) {
  const Input<R> given = call.optional("joint_inertia", joint_inertia, {call.model.nv});
  if (!joint_inertia.is_none()) return {given.span().begin(), given.span().end()};
  AlignedVector<R> K(call.data.size(call.model.nv));
  for (std::size_t i = 0; i < K.size(); ++i) K[i] = R(call.model.armature[i / call.data.width() % call.model.nv]);
  return K;
}

template <class R>
nb::object constrained(const Call<R>& call, const Asked& asked, handle qpos, handle qvel, handle tau, double dt,
                       handle joint_inertia) {
  const Model& model = call.model;
  BasicData<R>& data = call.data;
  if (TendonInertia::any(model))
    throw ValueError("model", "with armature of tendons",
                     "a model without it; Stepper and Batch support it with constraints");
  const Input<R> q = call.qpos(qpos), v = call.qvel(qvel), force = call.in("tau", tau, {model.nv});
  const AlignedVector<R> K = inertia_of(call, joint_inertia);
  ConstrainedDynamics<R> dynamics(model, asked.set(), data);
  AlignedVector<R> qacc(data.size(model.nv));
  call.run([&] { dynamics.accelerate(data, dt, q, v, force, K, qacc); });
  asked.rethrow();
  nb::dict out;
  out["qacc"] = own_array(std::move(qacc), batch_shape(data, {model.nv}));
  out["x2"] = own_array(AlignedVector<R>(dynamics.multiplier().begin(), dynamics.multiplier().end()),
                        batch_shape(data, {asked.set().rows()}));
  if (data.width() == 1) {
    out["status"] = name(dynamics.status(0));
  } else {
    nb::list statuses;
    for (int world = 0; world < data.worlds(); ++world) statuses.append(name(dynamics.status(world)));
    out["status"] = statuses;
  }
  return out;
}

nb::object py_constrained(const Model& model, AnyData& any, handle qpos, handle qvel, handle tau, double dt,
                          handle joint_inertia, handle equalities) {
  if (!(dt >= 0) || !std::isfinite(dt)) throw ValueError("dt", number_text(dt), "0 (exact) or a step [s]");
  const Asked asked(model, equalities);
  return any.visit([&]<class R>(BasicData<R>& data) {
    return constrained<R>(Call<R>(model, any, data), asked, qpos, qvel, tau, dt, joint_inertia);
  });
}

}  // namespace

void bind_constraint(nb::module_& m) {
  m.def("solve_kkt", &py_solve_kkt, "model"_a, "data"_a, "qpos"_a.none(), "y1"_a.none(), "y2"_a.none() = nb::none(),
        "sigma"_a.none() = nb::none(), "joint_inertia"_a.none() = nb::none(), "method"_a = "automatic",
        "equalities"_a.none() = nb::none(),
        nb::sig("def solve_kkt(model: Model, data: Data, qpos: numpy.ndarray, y1: numpy.ndarray, y2: numpy.ndarray | "
                "None = None, sigma: "
                "numpy.ndarray | None = None, joint_inertia: numpy.ndarray | None = None, method: str = 'automatic', "
                "equalities: "
                "Equalities | None = None) -> dict"),
        "Solves [M J'; J -sigma] [x1; x2] = [y1; y2] with the constraints of the model's file, or with "
        "`equalities`. M includes joint_inertia (by default the armature), but not the armature of tendons. "
        "Methods: automatic, sweeps, branches, efpa, constrained_aba, sparse, dense. Returns x1, x2, method, "
        "status, rank, dependent (row names), iterations, force_residual and row_residual (both relative).");
  m.def("constrained_dynamics", &py_constrained, "model"_a, "data"_a, "qpos"_a.none(), "qvel"_a.none(), "tau"_a.none(),
        "dt"_a = 0.0, "joint_inertia"_a.none() = nb::none(), "equalities"_a.none() = nb::none(),
        nb::sig("def constrained_dynamics(model: Model, data: Data, qpos: numpy.ndarray, qvel: numpy.ndarray, tau: "
                "numpy.ndarray, dt: float "
                "= 0.0, joint_inertia: numpy.ndarray | None = None, equalities: Equalities | None = None) -> dict"),
        "Joint accelerations under the constraints. dt = 0: exact constraints; dt > 0: SPOOK's softened rows "
        "over a step dt. Returns\n"
        "qacc [nv], x2 [nrow] (the force on the bodies is -J' x2) and status. A batch's arrays have its "
        "layout, and its status is a list.");
}

}  // namespace tarsus::python
