// Python's Equalities: equality constraints of a model, including user-defined ones.
#include "equalities.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tarsus/base/check_index.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

BasicData<double>& single_world(AnyData& any, const Model& model) {
  return *any.visit([&]<class R>(BasicData<R>& data) -> BasicData<double>* {
    const Call<R> call(model, any, data, Overwrites::nothing);
    if constexpr (std::is_same_v<R, double>) {
      if (data.width() == 1) return &data;
    }
    throw ValueError("data", sizeof(R) == 8 ? "a batch" : "float32", "a single world in float64");
  });
}

PyEqualities& equalities_for(const Model& model, handle equalities) {
  PyEqualities& e = expect<PyEqualities>(equalities, "equalities");
  if (&e.set.model() != &model) throw ValueError("equalities", "made for another model", "equalities of this model");
  return e;
}

namespace {

AlignedVector<double> zeros(std::size_t n) { return AlignedVector<double>(n, 0.0); }

/// The result of a user's function as a NumPy array of doubles. dimensions: "atleast_1d" or "atleast_2d".
nb::object as_array(handle object, const char* dimensions) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  return numpy.attr("ascontiguousarray")(numpy.attr(dimensions)(object), "float64");
}

nb::object to_array(std::span<const double> values) { return new_array(values, {values.size()}); }

bool finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
}

/// A user's f(qpos, qvel | None) -> (phi [nrow], J [nrow][nv]) or (phi, J, dJ/dt qvel [nrow]).
class RowFunction {
 public:
  /// Calls the function rows->functions[index] once, at qpos0. dofs: the degrees of freedom for which J may be nonzero,
  /// ascending.
  RowFunction(std::shared_ptr<PythonRows> rows, std::size_t index, const Model& model, std::string name,
              std::vector<int> dofs)
      : rows_(std::move(rows)),
        index_(index),
        model_(&model),
        name_(std::move(name)),
        dofs_(std::move(dofs)),
        probe_(std::make_shared<Data>(model)) {
    nrow_ = int(call(model.qpos0, {}).phi.size());
  }
  int nrow() const { return nrow_; }

  /// As UserRows::evaluate. Does not throw: keeps the first error and sets the rows to nan.
  void operator()(std::span<const double> qpos, std::span<const double> qvel, std::span<double> phi,
                  std::span<double> J, std::span<double> Jdot_v) const {
    const nb::gil_scoped_acquire lock;
    try {
      Values values = call(qpos, qvel);
      if (finite(qpos) && finite(qvel)) {
        for (const auto& [what, given] :
             {std::pair("phi", &values.phi), {"J", &values.J}, {"dJ/dt qvel", &values.bias}}) {
          if (!finite(*given)) throw ValueError(what + (" of \"" + name_ + "\""), "not finite", "finite numbers");
        }
      }
      if (!Jdot_v.empty() && !values.has_bias) values.bias = difference(qpos, qvel);
      std::copy(values.phi.begin(), values.phi.end(), phi.begin());
      if (!Jdot_v.empty()) std::copy(values.bias.begin(), values.bias.end(), Jdot_v.begin());
      for (int r = 0; r < nrow_; ++r) {
        for (std::size_t k = 0; k < dofs_.size(); ++k)
          J[r * dofs_.size() + k] = values.J[std::size_t(r) * model_->nv + dofs_[k]];
      }
      return;
    } catch (...) {
      rows_->keep_error();
    }
    for (const auto out : {phi, J, Jdot_v}) std::fill(out.begin(), out.end(), std::numeric_limits<double>::quiet_NaN());
  }

 private:
  struct Values {
    std::vector<double> phi, J, bias;
    bool has_bias = false;
  };

  Values call(std::span<const double> qpos, std::span<const double> qvel) const {
    const std::size_t nv = model_->nv;
    const nb::object function = rows_->functions.at(index_);
    const PythonRows::Evaluation evaluation(*rows_);
    const nb::object result = function(to_array(qpos), qvel.empty() ? nb::none() : to_array(qvel));
    if (!nb::isinstance<nb::tuple>(result) || nb::len(result) < 2 || nb::len(result) > 3)
      throw nb::type_error(("the function of \"" + name_ + "\" must return (phi, J) or (phi, J, dJ/dt qvel)").c_str());
    const nb::object phi = as_array(result[0], "atleast_1d");
    const std::size_t rows = nrow_ > 0 ? std::size_t(nrow_) : nb::len(phi);
    Values out;
    out.phi = numbers("phi", phi, {rows}), out.J = numbers("J", as_array(result[1], "atleast_2d"), {rows, nv});
    for (std::size_t k = 0; k < out.J.size(); ++k) {
      if (out.J[k] != 0 && !std::binary_search(dofs_.begin(), dofs_.end(), int(k % nv)))
        throw ValueError("J of \"" + name_ + "\"", "not zero for DoF " + std::to_string(k % nv),
                         "zero for joints that are not listed");
    }
    out.has_bias = nb::len(result) == 3 && !nb::object(result[2]).is_none();
    if (out.has_bias) out.bias = numbers("dJ/dt qvel", as_array(result[2], "atleast_1d"), {rows});
    return out;
  }

  /// J̇ q̇ by J's central difference along q̇, 6e-6 rad or m to either side.
  std::vector<double> difference(std::span<const double> qpos, std::span<const double> qvel) const {
    double speed = 0;
    for (const double v : qvel) speed = std::max(speed, std::abs(v));
    std::vector<double> bias(nrow_, 0.0);
    if (!(speed > 0) || !std::isfinite(speed)) return bias;
    const double step = 6e-6 / speed;
    AlignedVector<double> q(qpos.begin(), qpos.end()), v(qvel.begin(), qvel.end()), moved(q.size());
    for (const double side : {1.0, -1.0}) {
      integrate<double>(*model_, *probe_, q, v, side * step, moved);
      const Values there = call(moved, {});
      for (int r = 0; r < nrow_; ++r) {
        for (int k = 0; k < model_->nv; ++k)
          bias[r] += side * there.J[std::size_t(r) * model_->nv + k] * v[k] / (2 * step);
      }
    }
    return bias;
  }

  std::shared_ptr<PythonRows> rows_;
  std::size_t index_;
  const Model* model_;
  std::string name_;
  std::vector<int> dofs_;
  int nrow_ = 0;  ///< 0 until the first call
  std::shared_ptr<Data> probe_;
};

int add_user(PyEqualities& e, const std::string& name, nb::callable function, handle joints) {
  const Model& model = e.set.model();
  UserRows rows;
  if (joints.is_none()) {
    for (int j = 0; j < model.njoint(); ++j) rows.joints.push_back(j);
  } else {
    for (const handle joint : joints) rows.joints.push_back(joint_index(model, joint));
  }
  std::vector<int> dofs;
  for (const int j : rows.joints) {
    check_index("joint of \"" + name + "\"", j, model.njoint());
    for (int d = 0; d < model.joints[j].nv(); ++d) dofs.push_back(model.joints[j].qvel + d);
  }
  std::sort(dofs.begin(), dofs.end());
  dofs.erase(std::unique(dofs.begin(), dofs.end()), dofs.end());
  EqualitySet& set = e.growing(name);
  return e.rows->add(nb::borrow(function), [&](std::size_t index) {
    RowFunction f(e.rows, index, model, name, std::move(dofs));
    rows.nrow = f.nrow(), rows.evaluate = std::move(f);
    return set.add_user(name, std::move(rows));
  });
}

/// Dense J [nrow][nv] from blocks that were evaluated at the poses in the workspace.
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
  BasicData<double>& data = single_world(any, model);
  const Call<double> call(model, any, data);
  const Input<double> q = call.qpos(qpos), v = call.optional("qvel", qvel, {model.nv});
  const std::size_t m = self.set.rows(), n = model.nv;
  AlignedVector<double> phi = zeros(m), rate = zeros(m), bias = zeros(m), rest = zeros(n), tau = zeros(n);
  DelassusRows<double> rows(model);
  self.set.add_blocks(rows);
  const In<double> velocity = qvel.is_none() ? In<double>(rest) : In<double>(v);
  kinematics<double>(model, data, q, velocity);
  rnea<double>(model, data, q, velocity, rest, tau);  // velocity-product accelerations
  self.set.evaluate<double>(data, 0, q, velocity, rows, phi, rate, bias);
  self.rows->rethrow();
  nb::dict out;
  out["J"] = own_array(dense_jacobian(model, data, rows), {m, n});
  out["phi"] = own_array(std::move(phi), {m}), out["rate"] = own_array(std::move(rate), {m}),
  out["bias"] = own_array(std::move(bias), {m});
  return out;
}

void bind_inspection(nb::class_<PyEqualities>& c) {
  c.def(
       "__init__",
       [](PyEqualities* self, nb::object model, bool own) {
         const Model& m = expect<const Model>(model, "model");
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
          "nrow", [](const PyEqualities& e) { return e.set.rows(); }, "Number of rows of all constraints.")
      .def_prop_ro(
          "row_names",
          [](const PyEqualities& e) {
            std::vector<std::string> names;
            for (int r = 0; r < e.set.rows(); ++r) names.push_back(e.set.row_name(r));
            return names;
          },
          "Name of each row.")
      .def(
          "set_softness",
          [](PyEqualities& e, int index, double compliance, double damping_steps) {
            e.set.set_softness(index, {compliance, damping_steps});
          },
          "index"_a, "compliance"_a, "damping_steps"_a,
          "Sets the compliance and damping time (in steps) of SPOOK for constraint `index`. Steps use them.")
      .def(
          "rows", &py_rows, "data"_a, "qpos"_a.none(), "qvel"_a.none() = nb::none(),
          nb::sig("def rows(self, data: Data, qpos: numpy.ndarray, qvel: numpy.ndarray | None = None) -> dict"),
          "phi [nrow], J [nrow][nv], rate (J qvel) and bias (dJ/dt qvel) at one configuration. Rates of a connect or "
          "weld that is open\n"
          "between two links are taken in a frame that turns with both: J is the derivative of phi where phi is zero.");
}

/// Adds the equality of this name in the model's file. @throws ValueError, which lists the names; as growing()
int add_own(PyEqualities& e, const std::string& name) {
  const std::vector<EqualitySpec>& all = e.set.model().spec.equalities;
  const auto at = std::ranges::find(all, name, &EqualitySpec::name);
  std::string names;
  for (const EqualitySpec& one : all) {
    if (!one.name.empty()) names += (names.empty() ? "" : ", ") + one.name;
  }
  if (name.empty() || at == all.end())
    throw ValueError("name", "\"" + name + "\"", names.empty() ? "a model whose equalities have names" : names);
  return e.growing(name).add_from_spec(int(at - all.begin()));
}

void bind_additions(nb::class_<PyEqualities>& c) {
  c.def("add_own", &add_own, "name"_a,
        "Adds the equality of this name in the model's file, whether it is active there or not. Raises ValueError, "
        "which lists the names.");
  c.def(
       "add_connect",
       [](PyEqualities& e, const std::string& name, handle a, const Numbers<3>& p, handle b, const Numbers<3>& q) {
         return e.growing(name).add_connect(name, body_index(e.set.model(), a), vec("point_a", p),
                                            body_index(e.set.model(), b), vec("point_b", q));
       },
       "name"_a, "body_a"_a, "point_a"_a, "body_b"_a, "point_b"_a, "Keeps two points together: three rows.")
      .def(
          "add_distance",
          [](PyEqualities& e, const std::string& name, handle a, const Numbers<3>& p, handle b, const Numbers<3>& q,
             double length) {
            return e.growing(name).add_distance(name, body_index(e.set.model(), a), vec("point_a", p),
                                                body_index(e.set.model(), b), vec("point_b", q), length);
          },
          "name"_a, "body_a"_a, "point_a"_a, "body_b"_a, "point_b"_a, "length"_a,
          "Keeps two points `length` apart [m]: one row.")
      .def(
          "add_point_on_plane",
          [](PyEqualities& e, const std::string& name, handle a, const Numbers<3>& p, handle b, const Numbers<3>& q,
             const Numbers<3>& n) {
            return e.growing(name).add_point_on_plane(name, body_index(e.set.model(), a), vec("point_a", p),
                                                      body_index(e.set.model(), b), vec("point_b", q),
                                                      vec("normal", n));
          },
          "name"_a, "body_a"_a, "point_a"_a, "body_b"_a, "point_b"_a, "normal"_a,
          "Keeps a point of body a in a plane fixed to body b: one row.")
      .def(
          "add_joint",
          [](PyEqualities& e, const std::string& name, handle a, handle b, const std::vector<double>& polynomial) {
            std::array<double, 5> c{};
            if (polynomial.empty() || polynomial.size() > c.size())
              throw ValueError("polynomial of \"" + name + "\"", std::to_string(polynomial.size()) + " numbers",
                               "1 to 5 coefficients, the constant first");
            std::ranges::copy(polynomial, c.begin());
            return e.growing(name).add_joint(name, joint_index(e.set.model(), a),
                                             b.is_none() ? -1 : joint_index(e.set.model(), b), c);
          },
          "name"_a, "joint_a"_a, "joint_b"_a.none(), "polynomial"_a,
          "Keeps q_a - ref_a = sum c_k (q_b - ref_b)^k, with up to five coefficients c_0, c_1, … With joint_b None, "
          "q_a - ref_a is the\n"
          "constant c_0. One row.")
      .def(
          "add_weld",
          [](PyEqualities& e, const std::string& name, handle a, handle b, const Numbers<9>& rotation,
             const Numbers<3>& p) {
            const std::array<double, 9> r =
                (nb::hasattr(rotation.given, "ravel") ? Numbers<9>{rotation.given.attr("ravel")()} : rotation)
                    .of("rotation");
            const Mat3d R{r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8]};
            const double error = rotation_error(R);
            if (!(error <= kRotationError))
              throw ValueError("rotation", "off by " + number_text(error), "a rotation matrix");
            return e.growing(name).add_weld(name, body_index(e.set.model(), a), body_index(e.set.model(), b),
                                            {R, vec("position", p)});
          },
          "name"_a, "body_a"_a, "body_b"_a, "rotation"_a, "position"_a,
          "Keeps the pose of b in a's frame: rotation (nine numbers, row by row, or an array (3, 3)) and position [m]. "
          "Six rows.")
      .def(
          "add_screw",
          [](PyEqualities& e, const std::string& name, handle slide, handle hinge, double pitch) {
            const Model& model = e.set.model();
            return e.growing(name).add_screw(name, joint_index(model, slide), joint_index(model, hinge), pitch);
          },
          "name"_a, "slide"_a, "hinge"_a, "pitch"_a,
          "Couples the slide to the hinge: the slide moves by `pitch` [m] for each turn of the hinge, measured "
          "from qpos0. One row.")
      .def("add_user", &add_user, "name"_a, "function"_a, "joints"_a = nb::none(),
           nb::sig("def add_user(self, name: str, function: typing.Callable[[numpy.ndarray, numpy.ndarray | None], "
                   "tuple], joints: typing.Sequence[str | int] | None = None) -> int"),
           "Adds a user-defined constraint. function(qpos [nq], qvel [nv] or None) returns phi [nrow], which is "
           "kept at zero, its Jacobian\n"
           "J [nrow][nv] in qvel's axes and, optionally, dJ/dt qvel [nrow]. Without the last, J is differenced "
           "along qvel. The function is\n"
           "called once now, at qpos0, and at every evaluation. joints: those that phi depends on, by default "
           "all; fewer are faster.");
}

}  // namespace

void bind_equalities(nb::module_& m) {
  nb::class_<PyEqualities> c(m, "Equalities", nb::type_slots(FunctionSlots<PyEqualities>::slots),
                             "Equality constraints of a model. Equalities(model) holds the active ones of the "
                             "model's file,\n"
                             "Equalities(model, own=False) none; add_own() adds them one by one. Points are in the "
                             "bodies' frames; body 0 is the world.");
  bind_inspection(c);
  bind_additions(c);
}

}  // namespace tarsus::python
