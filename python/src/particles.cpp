// Particle systems with constraints: tarsus/particles/system.hpp, verlet.hpp and the files of tarsus/io.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>

#include "bindings.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/io/md_system.hpp"
#include "tarsus/io/output_file.hpp"
#include "tarsus/io/particle_setup.hpp"
#include "tarsus/io/particle_source.hpp"
#include "tarsus/io/xyz.hpp"
#include "tarsus/particles/builtin.hpp"
#include "tarsus/particles/verlet.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

namespace {

/// Python's ParticleSystem. `revision` counts changes that invalidate existing integrators.
struct Particles {
  ParticleSystem system;
  int revision = 0;
  bool stepping = false;
  std::shared_ptr<PythonRows> rows = std::make_shared<PythonRows>();

  /// The system between steps. @throws ValueError while another thread steps it or one of its functions is evaluated
  ParticleSystem& at_rest() {
    rows->check_idle("system");
    const Taken free(stepping, "system");
    return system;
  }
  /// The system, for changes of more than the state.
  ParticleSystem& changing() {
    ParticleSystem& s = at_rest();
    ++revision;
    return s;
  }

  std::size_t n() const { return system.mass.size(); }
  void rethrow() const { rows->rethrow(); }
  template <class F>
  int add(F f) {
    changing();
    if (system.constraints.particles() != system.particles()) system.constraints = ConstraintSet(system.particles());
    return f(system.constraints);
  }
};

/// f(x [k, 3]) -> (value, gradient [k, 3]). The system holds the function where Python's garbage collector can see it,
/// because functions often refer back to the system.
RowFunction row_function(std::shared_ptr<PythonRows> rows, std::size_t index) {
  return [rows = std::move(rows), index](std::span<const double> x, std::span<double> gradient) -> double {
    const nb::gil_scoped_acquire lock;
    try {
      const PythonRows::Evaluation evaluation(*rows);
      const Shape shape{x.size() / 3, 3};
      const nb::object function = rows->functions.at(index);
      const nb::object result = function(new_array(std::vector<double>(x.begin(), x.end()), shape));
      if (!nb::isinstance<nb::tuple>(result) || nb::len(result) != 2)
        throw nb::type_error("a constraint's function must return (value, gradient)");
      const Input<double> slope("gradient", result[1], shape, 1);
      if (!gradient.empty()) std::copy(slope.span().begin(), slope.span().end(), gradient.begin());
      return nb::cast<double>(result[0]);
    } catch (...) {
      rows->keep_error();
    }
    std::fill(gradient.begin(), gradient.end(), std::numeric_limits<double>::quiet_NaN());
    return std::numeric_limits<double>::quiet_NaN();
  };
}

nb::dict to_python(const Energies& e) {
  nb::dict out;
  out["lennard_jones"] = e.lennard_jones, out["coulomb"] = e.coulomb, out["bonds"] = e.bonds;
  out["angles"] = e.angles, out["torsions"] = e.torsions, out["springs"] = e.springs, out["gravity"] = e.gravity;
  out["potential"] = e.potential();
  return out;
}

nb::object sym3(const std::array<double, 6>& v) {
  return new_array(std::array{v[0], v[1], v[2], v[1], v[3], v[4], v[2], v[4], v[5]}, {3, 3});
}

/// A new array of numbers, read-only because writing to the copy would not change the system.
template <class Values>
nb::object fixed(const Values& values) {
  return own_array<double, const double>(AlignedVector<double>(values.begin(), values.end()), {values.size()});
}

void construct(Particles* self, handle mass, handle position, handle velocity, handle box, const std::string& units) {
  const Shape shape = shape_of("mass", mass);
  const std::size_t n = shape.empty() ? 0 : shape[0];
  ParticleSystem system;
  system.units = units_by_name(units);
  system.mass = numbers("mass", mass, {n});
  system.position = numbers("position", position, {n, 3});
  system.velocity = velocity.is_none() ? std::vector<double>(3 * n) : numbers("velocity", velocity, {n, 3});
  if (!box.is_none()) system.box.length = vec("box", {nb::borrow(box)});
  system.constraints = ConstraintSet(static_cast<int>(n));
  system.check();
  new (self) Particles{std::move(system)};
}

nb::object load(handle source, const std::string& units, const std::string& forces, handle setup, double cutoff,
                bool reaction_field, std::vector<int> rigid_bonds, std::vector<int> rigid_angles, std::uint64_t seed) {
  Particles out;
  Diagnostics notes;
  const ParticleSource from{file_name("source", source),
                            units,
                            forces,
                            file_name("setup", setup),
                            cutoff,
                            reaction_field,
                            std::move(rigid_bonds),
                            std::move(rigid_angles),
                            seed};
  {
    const nb::gil_scoped_release release;
    out.system = load_particles(from, notes);
  }
  const nb::object warn = nb::module_::import_("warnings").attr("warn");
  for (const Diagnostic& note : notes) warn(note.text());
  return nb::cast(std::move(out));
}

/// Makes molecules whole, because constraints and bonds do not use periodic images. Warns if particles moved.
void warn_and_make_whole(ParticleSystem& system) {
  if (const int moved = make_whole(system); moved > 0) nb::module_::import_("warnings").attr("warn")(made_whole(moved));
}

void set_up(Particles& self, handle setup) {
  // Converts NumPy arrays and numbers in the dictionary to lists and numbers.
  const nb::object plain = nb::cpp_function([](nb::handle x) -> nb::object {
    if (!nb::hasattr(x, "tolist")) throw nb::type_error("setup: contains an object that is neither JSON nor NumPy");
    return x.attr("tolist")();
  });
  const nb::object text = nb::isinstance<nb::str>(setup)
                              ? nb::borrow(setup)
                              : nb::module_::import_("json").attr("dumps")(setup, nb::arg("default") = plain);
  apply_particle_setup(self.changing(), nb::cast<std::string>(text), "setup");
  warn_and_make_whole(self.system);
}

void save(Particles& self, handle file) {
  const ParticleSystem& system = self.at_rest();
  const std::string path = file_name("path", file), extension = std::filesystem::path(path).extension().string();
  if (extension != ".sys" && extension != ".xyz" && extension != ".extxyz")
    throw ValueError("path", path, "a file that ends in .sys, .xyz or .extxyz");
  std::ostringstream text;  // before the file is opened, so that an existing file stays unchanged if this throws
  if (extension == ".sys")
    write_md_system(text, system);
  else
    write_xyz_frame(text, system);
  write_file(path, text.view());
  const auto pins = std::count(system.pinned.begin(), system.pinned.end(), 1);
  if (pins > 0)
    nb::module_::import_("warnings")
        .attr("warn")(path + ": the format does not store pins: " + std::to_string(pins) +
                      " pinned particles are free in it");
}

/// Returns f(), a call of the library that evaluates functions of constraints. An exception of a function takes
/// precedence over an error of the library.
template <class F>
auto with_functions(Particles& self, F f) {
  try {
    auto done = f();
    self.rethrow();
    return done;
  } catch (const Error&) {
    self.rethrow();
    throw;
  }
}

Preparation prepare_system(Particles& self, double tolerance, std::optional<double> timestep) {
  warn_and_make_whole(self.changing());
  Preparation done = with_functions(
      self, [&] { return prepare(self.system, tolerance, timestep.value_or(self.system.units.timestep)); });
  if (done.loose[0] >= 0) {
    const std::string pair = std::to_string(done.loose[0]) + " and " + std::to_string(done.loose[1]);
    nb::module_::import_("warnings")
        .attr("warn")("particles " + pair +
                      " are excluded from pair forces, but no bonds or constraints connect them: are bonds missing?");
  }
  return done;
}

void set_temperature_of(Particles& self, double temperature, std::uint64_t seed) {
  self.at_rest();
  with_functions(self, [&] { return set_temperature(self.system, temperature, seed), true; });
}

nb::object forces_of(Particles& self) {
  const ParticleSystem& system = self.at_rest();
  std::vector<double> force(3 * self.n());
  Energies energies;
  Forces(system).compute(system.position, force, &energies);
  const auto bad = std::ranges::find_if(force, [](double f) { return !std::isfinite(f); });
  if (bad != force.end() || !std::isfinite(energies.potential())) {
    throw ValueError("forces",
                     bad == force.end() ? "of infinite energy"
                                        : "not finite at particle " + std::to_string((bad - force.begin()) / 3),
                     "particles that neither coincide nor are too far apart");
  }
  return nb::make_tuple(new_array(force, {self.n(), 3}), to_python(energies), sym3(energies.virial));
}

void set_pinned(Particles& self, handle which) {
  std::vector<char> pinned(self.n(), 0);
  const std::string expected = "indices of particles, 0 to " + std::to_string(std::ptrdiff_t(self.n()) - 1);
  if (!nb::hasattr(which, "__iter__") || nb::isinstance<nb::str>(which))
    throw nb::type_error(("pinned: is " + std::string(nb::repr(which).c_str()) + ", expected " + expected).c_str());
  for (const handle one : which) {
    int i = 0;
    if (PyBool_Check(one.ptr()) || !nb::try_cast(one, i))
      throw nb::type_error(("pinned: has " + std::string(nb::repr(one).c_str()) + ", expected " + expected).c_str());
    if (i < 0 || i >= self.system.particles()) throw ValueError("pinned", std::to_string(i), expected);
    pinned[i] = 1;
  }
  self.changing().pinned = std::move(pinned);
}

std::vector<int> pinned_of(const Particles& self) { return pinned_particles(self.system.inverse_masses()); }

/// The distance rows, in order.
nb::object distances_of(const Particles& self) {
  const ConstraintSet& set = self.system.constraints;
  std::vector<int> pairs;
  for (int row = 0; row < set.nrow(); ++row) {
    if (set.kind(row) != RowKind::distance) continue;
    for (const int particle : set.row_particles(row)) pairs.push_back(particle);
  }
  return new_array(pairs, {pairs.size() / 2, 2});
}

nb::object view_of(handle self, std::vector<double> ParticleSystem::*values) {
  Particles& p = nb::cast<Particles&>(self);
  return view_array((p.system.*values).data(), {p.n(), 3}, self);
}
void assign(Particles& self, std::vector<double> ParticleSystem::*values, const char* argument, handle from) {
  const Input<double> in(argument, from, {self.n(), 3}, 1);
  std::copy(in.span().begin(), in.span().end(), (self.at_rest().*values).begin());
}

class Verlet {
 public:
  Verlet(nb::object owner, std::optional<double> timestep, const std::string& solver, double tolerance,
         int max_iterations, int threads)
      : owner_(std::move(owner)),
        particles_(&expect<Particles>(owner_, "system")),
        verlet_(with_functions(*particles_,
                               [&] {
                                 const double dt = timestep.value_or(particles_->system.units.timestep);
                                 return std::make_unique<VelocityVerlet>(
                                     particles_->at_rest(),
                                     VerletOptions{dt, solver, tolerance, max_iterations, threads});
                               })),
        revision_(particles_->revision),
        position_(particles_->system.position) {}

  /// Steps without Python's lock; checks for Ctrl-C from time to time.
  nb::object step(int steps) {
    if (steps < 1) throw ValueError("steps", std::to_string(steps), "1 or more");
    particles_->at_rest();
    const Taken taken(particles_->stepping, "system");
    check();
    StepReport report;
    int done = 0;
    const auto run = [&] {
      const auto start = std::chrono::steady_clock::now();
      while (done < steps && report.ok && std::chrono::steady_clock::now() - start < std::chrono::milliseconds(100)) {
        report = verlet_->step(done + 1 == steps);
        done += report.ok;
      }
    };
    bool interrupted = false;
    do {
      if (!particles_->rows->functions.empty()) {
        run();
      } else {
        const nb::gil_scoped_release release;
        run();
      }
      interrupted = PyErr_CheckSignals() != 0;
    } while (done < steps && report.ok && !interrupted);
    position_ = particles_->system.position;
    steps_ += done;
    if (interrupted) {
      verlet_->update_energies();
      throw nb::python_error();
    }
    particles_->rethrow();
    return nb::cast(std::move(report));
  }
  void reverse() {
    const Taken free(particles_->stepping, "system");
    verlet_->reverse();
  }
  void set_thermostat(double temperature, double relaxation, std::uint64_t seed) {
    const Taken free(particles_->stepping, "system");
    if (!(temperature > 0) || !std::isfinite(temperature))
      throw ValueError("temperature", number_text(temperature), "positive, finite");
    const int degrees = degrees_of_freedom(particles_->system);
    verlet_->set_thermostat(std::make_unique<Thermostat>(
        0.5 * degrees * particles_->system.units.boltzmann * temperature, degrees, relaxation, seed));
  }
  nb::object system() const { return owner_; }
  handle owner() const { return owner_; }
  void forget() { owner_.reset(); }
  long steps() const { return steps_; }
  double exchanged() const { return verlet_->thermostat() ? verlet_->thermostat()->exchanged() : 0.0; }
  const VelocityVerlet& operator*() const { return *verlet_; }
  std::size_t rows() const {
    particles_->at_rest();
    check();
    return static_cast<std::size_t>(particles_->system.constraints.nrow());
  }
  std::size_t n() const { return particles_->n(); }

 private:
  void check() const {
    if (particles_->revision != revision_)
      throw ValueError("system", "changed since this integrator was made", "a new VelocityVerlet");
    if (particles_->system.position != position_)
      throw ValueError("position", "changed since the last step",
                       "a new VelocityVerlet: this one has the forces of the old positions");
  }

  nb::object owner_;
  Particles* particles_;
  std::unique_ptr<VelocityVerlet> verlet_;
  int revision_;
  std::vector<double> position_;
  long steps_ = 0;
};

void bind_reports(nb::module_& m) {
  nb::class_<SolveReport>(m, "SolveReport", "Result of a constraint solver in one stage.")
      .def_prop_ro(
          "status", [](const SolveReport& r) { return status_name(r.status); }, nb::sig("def status(self) -> str"),
          "'converged', 'at rounding', or why it failed.")
      .def_prop_ro("ok", &SolveReport::ok, "Whether the constraints hold.")
      .def_ro("iterations", &SolveReport::iterations, "Newton iterations or sweeps.")
      .def_ro("factorizations", &SolveReport::factorizations, "Number of iterations that factored a new matrix.")
      .def_ro("residual", &SolveReport::residual, "Dimensionless violation at the end: max |sigma|/(2 d^2).")
      .def_ro("start_residual", &SolveReport::start_residual, "Dimensionless violation before the first iteration.")
      .def_ro("worst_row", &SolveReport::worst_row,
              "Row of the largest violation, -1: none. ParticleSystem.describe() names its particles.")
      .def_ro("pivot_ratio", &SolveReport::pivot_ratio,
              "Smallest ratio of a pivot to its diagonal entry; near 0 rows are dependent.")
      .def_ro("wrong_root", &SolveReport::wrong_root, "Whether a row converged to its mirrored solution.")
      .def("__repr__", [](const SolveReport& r) {
        return "<tarsus.SolveReport " + std::string(status_name(r.status)) +
               " iterations=" + std::to_string(r.iterations) + " residual=" + number_text(r.residual) + ">";
      });
  nb::class_<StepReport>(m, "StepReport", "Outcome of VelocityVerlet.step().")
      .def_ro("ok", &StepReport::ok, "False: the system is as it was before the step that failed.")
      .def_ro("message", &StepReport::message,
              "Reason for the failure: stage, worst constraint, its particles and the numbers.")
      .def_ro("stability", &StepReport::stability,
              "For a failed step: dt omega_max at its start; the step is stable below 2.")
      .def_ro("position", &StepReport::position, "Report of the last position stage.")
      .def_ro("velocity", &StepReport::velocity, "Report of the last velocity stage.")
      .def("__bool__", [](const StepReport& r) { return r.ok; })
      .def("__repr__",
           [](const StepReport& r) { return "<tarsus.StepReport " + (r.ok ? std::string("ok") : r.message) + ">"; });
  nb::class_<Preparation>(m, "Preparation", "What ParticleSystem.prepare() changed in the initial state.")
      .def_ro("redundant", &Preparation::redundant,
              "Descriptions of the constraints removed because the others imply them.")
      .def_ro("rank", &Preparation::rank, "Number of constraint rows that remain.")
      .def_ro("start_violation", &Preparation::start_violation, "Dimensionless violation before the projection.")
      .def_ro("iterations", &Preparation::iterations, "Number of Newton iterations of the projection.")
      .def_ro("moved_max", &Preparation::moved_max, "Largest displacement of a particle.")
      .def_ro("moved_rms", &Preparation::moved_rms, "Root mean square of the displacement over particles.")
      .def_ro("velocity_changed_max", &Preparation::velocity_changed_max, "Largest change of a velocity component.")
      .def("__repr__", [](const Preparation& p) {
        return "<tarsus.Preparation rank=" + std::to_string(p.rank) +
               " redundant=" + std::to_string(p.redundant.size()) +
               " start_violation=" + number_text(p.start_violation) + ">";
      });
}

void bind_constraints(nb::class_<Particles>& c) {
  c.def(
      "add_distance",
      [](Particles& p, int i, int j, double d) { return p.add([&](auto& s) { return s.add_distance(i, j, d); }); },
      "i"_a, "j"_a, "length"_a, "Keeps the distance |x_i - x_j|. All add_ methods return the row of their constraint.");
  c.def(
      "add_angle",
      [](Particles& p, int i, int j, int k, double a) {
        return p.add([&](auto& s) { return s.add_angle(i, j, k, a); });
      },
      "i"_a, "j"_a, "k"_a, "angle"_a, "Keeps the angle at particle j [rad].");
  c.def(
      "add_dihedral",
      [](Particles& p, int i, int j, int k, int l, double a) {
        return p.add([&](auto& s) { return s.add_dihedral(i, j, k, l, a); });
      },
      "i"_a, "j"_a, "k"_a, "l"_a, "angle"_a, "Keeps the torsion angle [rad], pi at trans.");
  c.def(
      "add_plane",
      [](Particles& p, int i, const Numbers<3>& point, const Numbers<3>& normal, double length) {
        return p.add([&](auto& s) { return s.add_plane(i, vec("point", point), vec("normal", normal), length); });
      },
      "i"_a, "point"_a, "normal"_a, "length"_a = 1.0, "Keeps a particle on a plane; the violation is a length.");
  c.def(
      "add_sphere",
      [](Particles& p, int i, const Numbers<3>& centre, double radius) {
        return p.add([&](auto& s) { return s.add_sphere(i, vec("centre", centre), radius); });
      },
      "i"_a, "centre"_a, "radius"_a, "Keeps a particle on a sphere.");
  c.def(
      "add_linear",
      [](Particles& p, std::vector<int> particles, const std::vector<Numbers<3>>& coefficients, double value,
         double length) {
        std::vector<Vec3d> a;
        for (const Numbers<3>& k : coefficients) a.push_back(vec("coefficients", k));
        return p.add([&](auto& s) { return s.add_linear(std::move(particles), std::move(a), value, length); });
      },
      "particles"_a, "coefficients"_a, "value"_a, "length"_a = 1.0, "Keeps the sum of coefficient_a . x_a.");
  c.def(
      "add_centre_of_mass",
      [](Particles& p, const Numbers<3>& centre, double length) {
        return p.add([&](auto& s) { return s.add_centre_of_mass(p.system.mass, vec("centre", centre), length); });
      },
      "centre"_a, "length"_a = 1.0, "Keeps the centre of mass: three rows. Returns the first.");
  c.def(
      "add_user",
      [](Particles& p, std::vector<int> particles, nb::callable function, double scale, const std::string& name) {
        p.changing();
        return p.rows->add(nb::borrow(function), [&](std::size_t index) {
          return p.add(
              [&](auto& s) { return s.add_user(std::move(particles), row_function(p.rows, index), scale, name); });
        });
      },
      "particles"_a, "function"_a, "scale"_a, "name"_a = "user",
      nb::sig("def add_user(self, particles: list[int], function: typing.Callable[[numpy.ndarray], tuple[float, "
              "numpy.ndarray]], scale: float, name: str = 'user') -> int"),
      "Keeps a user-defined function at zero: function(x [k, 3]) -> (value, gradient [k, 3]). The "
      "tolerance applies to |value|/scale.");
  c.def(
      "describe",
      [](const Particles& p, int row) {
        if (row < 0 || row >= p.system.constraints.nrow())
          throw ValueError("row", std::to_string(row), "below " + std::to_string(p.system.constraints.nrow()));
        return p.system.constraints.describe(row);
      },
      "row"_a, "Description of a constraint row.");
  c.def(
      "violation",
      [](Particles& p) {
        const ParticleSystem& system = p.at_rest();
        const double value = largest_violation_at(system.constraints, system.position).value;
        p.rethrow();
        return value;
      },
      "Largest dimensionless violation of the present state.");
}

// For the garbage collector: an integrator refers to its system, whose functions may refer back to the integrator.

int traverse_verlet(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<Verlet>(self)->owner().ptr());
  return 0;
}
int clear_verlet(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Verlet>(self)->forget();
  return 0;
}
PyType_Slot verlet_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_verlet)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear_verlet)},
                              {0, nullptr}};

void bind_system(nb::module_& m) {
  nb::class_<Particles> c(
      m, "ParticleSystem", nb::type_slots(FunctionSlots<Particles>::slots),
      "Particles: masses, state, box, constraints and forces. position and velocity are views [n, 3]. "
      "Constraints and bonded\n"
      "terms do not use nearest images. setup() and prepare() therefore make molecules whole that the box "
      "cuts, and warn.");
  c.def(
      "__init__", &construct, "mass"_a, "position"_a, "velocity"_a = nb::none(), "box"_a = nb::none(),
      "units"_a = "reduced",
      nb::sig("def __init__(self, mass: numpy.ndarray, position: numpy.ndarray, velocity: numpy.ndarray | None = None, "
              "box: typing.Sequence[float] | None = None, units: str = 'reduced') -> None"),
      "mass [n], 0 for a pinned particle. position and velocity [n, 3]. box: three lengths, 0 for an open "
      "direction.\n"
      "units: 'reduced', 'nm_ps', 'angstrom_fs' or 'si'.");
  c.def_static(
      "load", &load, "source"_a, "units"_a = "", "forces"_a = "", "setup"_a = "", "cutoff"_a = 0.0,
      "reaction_field"_a = false, "rigid_bonds"_a = std::vector<int>(), "rigid_angles"_a = std::vector<int>(),
      "seed"_a = 1,
      nb::sig("def load(source: str | os.PathLike, units: str = '', forces: str = '', setup: str | os.PathLike = '', "
              "cutoff: float = 0.0, "
              "reaction_field: bool = False, rigid_bonds: list[int] = [], rigid_angles: list[int] = [], seed: "
              "int = 1) -> ParticleSystem"),
      "Loads a file (.sys, .xyz, .extxyz, .data) or a built-in system ('water216', 'chain:100', …), with "
      "the options of\n"
      "`tarsus md`. Notes of the reader are issued as Python warnings.");
  c.def("save", &save, "path"_a, nb::sig("def save(self, path: str | os.PathLike) -> None"),
        "Writes .sys (distance constraints only) or extended XYZ (no constraints), with 17 digits. Neither "
        "format stores pins; a warning\n"
        "says so.");
  c.def("setup", &set_up, "setup"_a, nb::sig("def setup(self, setup: dict | str) -> None"),
        "Adds forces, pins and further constraints from a dictionary or JSON text; docs/particles.md lists "
        "the keys. If it has forces, they\n"
        "replace all present ones; otherwise those stay. Everything else is added.");
  c.def(
      "set_forces", [](Particles& p, const std::string& name) { set_force_field(p.changing(), name); }, "name"_a,
      "Sets a built-in force field, such as 'spce-reaction-field'.");
  c.def("prepare", &prepare_system, "tolerance"_a = 1e-12, "timestep"_a = nb::none(),
        "Removes redundant constraints (later rows move up), projects positions and velocities onto the "
        "others, and reports the\n"
        "changes. Raises ValueError naming the rows if that is impossible.");
  c.def("set_temperature", &set_temperature_of, "temperature"_a, "seed"_a = 1,
        "Sets random velocities of this temperature that satisfy the constraints and have no total momentum.");
  c.def("forces", &forces_of, nb::sig("def forces(self) -> tuple[numpy.ndarray, dict[str, float], numpy.ndarray]"),
        "(force [n, 3], energies by name, virial [3, 3] of pairs and bonded terms) at the present positions.\n"
        "Raises ValueError if they are not finite, as where particles coincide.");
  c.def(
      "temperature", [](Particles& p) { return temperature(p.at_rest()); },
      "Temperature of the present velocities [K; reduced units: energy], 0 without degrees of freedom.");
  c.def(
      "kinetic_energy", [](Particles& p) { return kinetic_energy(p.at_rest()); },
      "Kinetic energy of the present velocities, in the system's energy unit.");
  c.def(
      "degrees_of_freedom", [](const Particles& p) { return degrees_of_freedom(p.system); },
      "Number of moving coordinates minus constraints, minus 3 where momentum is conserved.");
  c.def_prop_rw(
      "position", [](handle self) { return view_of(self, &ParticleSystem::position); },
      [](Particles& p, handle x) { assign(p, &ParticleSystem::position, "position", x); },
      nb::sig("def position(self) -> numpy.ndarray"), "[n, 3]; a view.");
  c.def_prop_rw(
      "velocity", [](handle self) { return view_of(self, &ParticleSystem::velocity); },
      [](Particles& p, handle v) { assign(p, &ParticleSystem::velocity, "velocity", v); },
      nb::sig("def velocity(self) -> numpy.ndarray"), "[n, 3]; a view.");
  c.def_prop_ro(
      "mass", [](const Particles& p) { return fixed(p.system.mass); }, nb::sig("def mass(self) -> numpy.ndarray"),
      "[n] masses; read-only.");
  c.def_prop_ro(
      "box",
      [](const Particles& p) {
        const Vec3d& length = p.system.box.length;
        return fixed(std::array{length.x, length.y, length.z});
      },
      nb::sig("def box(self) -> numpy.ndarray"), "[3] lengths of the box, 0 where open; read-only.");
  c.def_prop_rw(
      "pinned", &pinned_of, &set_pinned, nb::arg().none(),
      nb::for_setter(nb::sig("def pinned(self, value: collections.abc.Iterable[int], /) -> None")),
      "Indices of the particles that never move. Assigning replaces them; those of mass 0 are always among them.");
  c.def_prop_ro(
      "units", [](const Particles& p) { return p.system.units.name; },
      "Unit system: 'nm_ps', 'angstrom_fs', 'si' or 'reduced'.");
  c.def_prop_ro(
      "species", [](const Particles& p) { return p.system.species; }, "[n] names of the particles, or empty.");
  c.def_prop_ro(
      "constraints", [](const Particles& p) { return p.system.constraints.nrow(); }, "Number of constraint rows.");
  c.def_prop_ro("distances", &distances_of, nb::sig("def distances(self) -> numpy.ndarray"),
                "[k, 2] particle pairs of the distance constraints, in the order of their rows.");
  c.def("__len__", &Particles::n);
  c.def("__repr__", [](const Particles& p) {
    return "<tarsus.ParticleSystem " + std::to_string(p.n()) + " particles, " +
           std::to_string(p.system.constraints.nrow()) + " constraints, " + p.system.units.name + ">";
  });
  bind_constraints(c);
}

void bind_verlet(nb::module_& m) {
  nb::class_<Verlet> c(m, "VelocityVerlet", nb::type_slots(verlet_slots),
                       "Velocity Verlet with the constraint stages of SHAKE and RATTLE, solved to rounding.");
  c.def(nb::init<nb::object, std::optional<double>, const std::string&, double, int, int>(), "system"_a,
        "timestep"_a = nb::none(), "solver"_a = "newton", "tolerance"_a = 1e-12, "max_iterations"_a = 0,
        "threads"_a = 1,
        nb::sig("def __init__(self, system: ParticleSystem, timestep: float | None = None, solver: str = 'newton', "
                "tolerance: "
                "float = 1e-12, max_iterations: int = 0, threads: int = 1) -> None"),
        "timestep None: the default of the system. solver: 'newton', 'newton_general', 'm_shake', 'shake' or "
        "'shake_matrix'. The constraints\n"
        "must hold and be independent: ParticleSystem.prepare() leaves out redundant ones and projects an initial "
        "state onto the others.\n"
        "Results are the same to the bit for any number of threads.");
  c.def("step", &Verlet::step, "steps"_a = 1, nb::sig("def step(self, steps: int = 1) -> StepReport"),
        "Makes `steps` steps, or stops at the first that fails; the report is then false and gives the "
        "reason.");
  c.def("reverse", &Verlet::reverse, "Reverses time: the same number of steps leads back to the start.");
  c.def("set_thermostat", &Verlet::set_thermostat, "temperature"_a, "relaxation"_a, "seed"_a = 1,
        "Adds a thermostat: stochastic velocity rescaling with this time constant.");
  c.def("__repr__", [](const Verlet& v) {
    return "<tarsus.VelocityVerlet of " + std::to_string(v.n()) +
           " particles, timestep=" + number_text((*v).options().timestep) + ", " + std::to_string(v.steps()) +
           " steps done>";
  });
  c.def_prop_ro("system", &Verlet::system, nb::sig("def system(self) -> ParticleSystem"),
                "The particle system that it advances.");
  c.def_prop_ro(
      "time", [](const Verlet& v) { return (*v).time(); }, "Simulated time since construction.");
  c.def_prop_ro(
      "timestep", [](const Verlet& v) { return (*v).options().timestep; }, "Time step; negative after reverse().");
  c.def_prop_ro("steps", &Verlet::steps, "Number of steps made.");
  c.def_prop_ro(
      "energies", [](const Verlet& v) { return to_python((*v).energies()); },
      nb::sig("def energies(self) -> dict[str, float]"), "Potential energies after the last step.");
  c.def_prop_ro("exchanged", &Verlet::exchanged,
                "Energy removed by the thermostat: the total energy plus this is conserved.");
  c.def_prop_ro(
      "shadow_shift", [](const Verlet& v) { return (*v).shadow_shift(); },
      "Energy correction: added to the total energy before the last step, it gives the energy that the "
      "discrete equations conserve.");
  c.def_prop_ro(
      "stability", [](const Verlet& v) { return v.rows(), (*v).stability(); },
      "dt omega_max implied by the multipliers; the step is stable below 2.");
  c.def_prop_ro(
      "tensions", [](const Verlet& v) { return new_array((*v).tensions(), {v.rows()}); },
      nb::sig("def tensions(self) -> numpy.ndarray"), "[rows] tension of each distance in the last position stage.");
  c.def_prop_ro(
      "constraint_forces",
      [](const Verlet& v) {
        return v.rows(), new_array((*v).constraint_forces(), {v.n(), 3});
      },
      nb::sig("def constraint_forces(self) -> numpy.ndarray"), "[n, 3] constraint forces of the last position stage.");
  c.def_prop_ro(
      "constraint_virial", [](const Verlet& v) { return v.rows(), to_numpy((*v).constraint_virial()); },
      nb::sig("def constraint_virial(self) -> numpy.ndarray"),
      "[3, 3] sum of x_a F_b in the last position stage. It depends on the origin where rows fix points in "
      "space.");
}

}  // namespace

void bind_particles(nb::module_& m) {
  bind_reports(m);
  bind_system(m);
  bind_verlet(m);
  m.def("builtin_particle_systems", &builtin_systems,
        "Built-in systems for ParticleSystem.load(): name and description.");
  m.def(
      "element_mass", [](const std::string& symbol) { return element_mass(symbol); }, "symbol"_a,
      "Standard atomic mass [g/mol] of a chemical symbol; 0 if unknown.");
  m.def("particle_force_fields", &force_field_names,
        "Built-in force fields for ParticleSystem.set_forces(): name and description.");
}

}  // namespace tarsus::python
