// tarsus-kkt: solves one KKT system of a model by every method, with residuals, rank and times.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>
#include <string_view>

#include "command.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/baselines/kkt.hpp"

namespace tarsus::app {

namespace {

struct Kkt {
  std::string model, method = "all", right_side = "gravity", keyframe;
  double damping = 0, compliance = 0;
  bool json = false;
  ReadOptions options;
};

double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// Minimum time of a call [s] over repeats of about 20 ms in total.
template <class F>
double time_of(const F& call) {
  double best = kInfinity;
  for (const double begin = seconds(); seconds() - begin < 0.02;) {
    const double start = seconds();
    call();
    best = std::min(best, seconds() - start);
  }
  return best;
}

struct Answer {
  KktMethod requested, first;  ///< first: the method that solves it unless it falls back
  KktReport report;
  double seconds = 0;
  std::vector<double> x1, x2;
};

nlohmann::json to_json(const EqualitySet& set, const Answer& a) {
  nlohmann::json dependent = nlohmann::json::array();
  for (const int row : a.report.dependent) dependent.push_back(set.row_name(row));
  return {{"method", name(a.report.method)},
          {"requested", name(a.requested)},
          {"status", name(a.report.status)},
          {"rank", a.report.rank},
          {"dependent_rows", dependent},
          {"iterations", a.report.iterations},
          {"force_residual", a.report.force_residual},
          {"row_residual", a.report.row_residual},
          {"seconds", a.seconds},
          {"x1", a.x1},
          {"x2", a.x2}};
}

/// y₁: the generalised gravity force at rest, or a random force.
std::vector<double> right_side(const Model& model, Data& data, const std::string& kind,
                               const std::vector<double>& qpos) {
  std::vector<double> y(model.nv), zero(model.nv);
  if (kind == "gravity") {
    bias_force<double>(model, data, qpos, zero, y);
    for (double& x : y) x = -x;
    return y;
  }
  if (kind != "random") throw ValueError("--rhs", "\"" + kind + "\"", "gravity or random");
  std::mt19937 engine(1);
  for (double& x : y) x = std::uniform_real_distribution<double>(-1, 1)(engine);
  return y;
}

/// @return exit status
int execute(const Kkt& options) {
  const Model model = load_model(options.model, options.options, options.json);
  const EqualitySet set = EqualitySet::of(model);
  if (set.rows() == 0 && !options.json)
    tell("{}: no equality constraints and no mimic joints: solving M x1 = y1 only\n", options.model);
  Data data(model);
  const std::vector<double> qpos = keyframe_pose(model, options.keyframe),
                            y1 = right_side(model, data, options.right_side, qpos);
  const int m = set.rows();
  std::vector<double> K(model.armature), phi(m), y2(m), sigma(m, options.compliance);
  for (double& k : K) k += options.damping;
  DelassusRows<double> rows(model);
  set.add_blocks(rows);
  kinematics<double>(model, data, qpos);
  set.evaluate<double>(data, 0, qpos, {}, rows, phi, {}, {});
  KktSolver solver(model);
  const KktInput in{data, rows, qpos, K, sigma, y1, y2};
  std::vector<KktMethod> methods(kkt_methods().begin(), kkt_methods().end());
  if (options.method != "all") methods = {kkt_method(options.method)};
  std::vector<Answer> answers;
  for (const KktMethod method : methods) {
    Answer a;
    a.requested = method, a.first = method == KktMethod::automatic ? solver.choose(rows) : method;
    a.x1.resize(model.nv), a.x2.resize(m);
    a.report = solver.solve(method, in, a.x1, a.x2);
    a.seconds = time_of([&] { solver.solve_only(method, in, a.x1, a.x2); });
    answers.push_back(std::move(a));
  }
  const bool failed = std::ranges::all_of(answers, [](auto& a) { return a.report.status == KktStatus::not_finite; });
  const int status = failed ? 3 : 0;
  double open = 0;
  for (const double x : phi) open = std::max(open, std::abs(x));
  if (options.json) {
    nlohmann::json names = nlohmann::json::array(), list = nlohmann::json::array();
    for (int r = 0; r < m; ++r) names.push_back(set.row_name(r));
    for (const Answer& a : answers) list.push_back(to_json(set, a));
    print_json({{"model", options.model},
                {"nv", model.nv},
                {"rows", m},
                {"depth", model.depth},
                {"row_names", names},
                {"phi", phi},
                {"automatic", name(solver.choose(rows))},
                {"methods", list}});
    return status;
  }
  fmt::print("{}: {} degrees of freedom, depth {}, {} constraints, {} rows; constraint error at most {:.3g}\n\n",
             model.name, model.nv, model.depth, set.size(), m, open);
  fmt::print("{:<18}{:<14}{:>6}{:>12}{:>12}{:>12}{:>12}\n", "method", "status", "rank", "iterations", "forces", "rows",
             "time [us]");
  for (const Answer& a : answers) {
    const KktReport& r = a.report;
    fmt::print("{:<18}{:<14}{:>6}{:>12}{:>12.2g}{:>12.2g}{:>12.2f}\n",
               std::string(name(a.requested)) + (r.method == a.first ? "" : "*"), name(r.status), r.rank, r.iterations,
               r.force_residual, r.row_residual, a.seconds * 1e6);
  }
  fmt::print("\nautomatic chooses {}\n", name(solver.choose(rows)));
  if (!answers.empty() && !answers[0].report.dependent.empty()) {
    fmt::print("dependent rows, and rows with zero Delassus entry:\n");
    for (const int row : answers[0].report.dependent) fmt::print("  {}\n", set.row_name(row));
  }
  return status;
}

void add_options(CLI::App& app, Kkt& kkt) {
  app.add_option("model", kkt.model, "MJCF or URDF file with equality constraints or mimic joints")->required();
  app.add_option("--method", kkt.method, "all, automatic, sweeps, branches, efpa, constrained_aba, sparse or dense")
      ->capture_default_str();
  app.add_option("--rhs", kkt.right_side, "y1: gravity (gravity forces at rest) or random")->capture_default_str();
  app.add_option("--keyframe", kkt.keyframe,
                 "Use the pose of this keyframe, by name or number, instead of the file's pose");
  app.add_option("--joint-inertia", kkt.damping, "K, added to the mass matrix's diagonal; drives of step dt add dt kd")
      ->check(number_from(0))
      ->capture_default_str();
  app.add_option("--sigma", kkt.compliance, "Sigma of all rows; positive values soften them (0: rigid)")
      ->check(number_from(0))
      ->capture_default_str();
  app.add_flag("--json", kkt.json, "Print one JSON object, with x1 and x2, instead of the table");
  add_read_options(app, kkt.options);
  app.footer(
      "Solves [M J'; J -Sigma] [x1; x2] = [y1; 0] for the accelerations x1 and the constraint forces x2 of "
      "the model at rest.\n"
      "sweeps: m + 2 sweeps of the articulated-body algorithm. branches: rows propagate along their own "
      "branches. efpa: forces propagate\n"
      "to where branches meet. constrained_aba: proximal iterations, without a matrix of rows. sparse, "
      "dense: Cholesky of M.\n"
      "Residuals are relative. A star marks a method that could not solve the system and fell back to "
      "branches; --json has\n"
      "`requested` and `method`. Exit status: 0, 1 a file that cannot be read or used, 2 wrong usage, 3 no finite "
      "solution. With\n"
      "--json, failures print an object with `error`.\n"
      "\n"
      "  tarsus-kkt models/loops/stewart.xml\n"
      "  tarsus-kkt models/loops/four_bar.xml --rhs random --json\n"
      "\n"
      "More: docs/constraints.md.");
}

}  // namespace

}  // namespace tarsus::app

int main(int argc, char** argv) {
  using namespace tarsus::app;
  CLI::App app{"tarsus-kkt: solves a model's constraint system with every method; prints residuals, rank and time"};
  app.name("tarsus-kkt");
  Kkt kkt;
  add_options(app, kkt);
  keep_standard_streams();
  const bool json = std::any_of(argv, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  const auto fail = [json](const std::string& message, int status, const char* label = "error: ") {
    tell("{}{}\n", label, message);
    return in_json(json, message, status);
  };
  try {
    app.parse(argc, argv);
    const int status = execute(kkt);
    if (std::fflush(stdout) != 0) throw tarsus::Error("standard output: cannot be written");
    return status;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : in_json(json, e.what(), 2);
  } catch (const tarsus::InputError& e) {
    return fail(e.what(), 1, "");
  } catch (const std::exception& e) {
    return fail(e.what(), status_of(e));
  }
}
