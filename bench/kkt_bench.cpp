// Speed of constrained forward dynamics and of the KKT methods. JSON objects on standard output, a table on standard
// error.
//   kkt_bench              everything
//   kkt_bench --models     only constrained dynamics of characters, for the comparison of bench/kkt_peers_bench.py
//   kkt_bench --growth     times of all methods over n and m, with fitted exponents
// Times are as in aba_bench. "over_aba" is the cost of the constraints: time over that of aba() in the same run.
// "residual" is the larger of both block rows' residuals, relative.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <random>
#include <string>

#include "hinge_chain.hpp"
#include "tarsus/baselines/kkt.hpp"
#include "tarsus/math/rotation.hpp"
#include "timing.hpp"

namespace {

using namespace tarsus;
using namespace tarsus::bench;

std::vector<double> random_qpos(const Model& model, std::mt19937& engine) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> q(model.nq);
  for (double& x : q) x = uniform(engine);
  for (const Joint& joint : model.joints) {
    if (joint.nq() == 1) continue;
    double* p = q.data() + joint.qpos + scalar_count(joint.type);
    const double scale = 1 / std::sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]);
    for (int k = 0; k < 4; ++k) p[k] *= scale;
  }
  return q;
}

/// Welds that fix bodies to the world in their poses at q.
EqualitySet welds(const Model& model, const std::vector<double>& q, const std::vector<std::string>& bodies) {
  Data data(model);
  kinematics<double>(model, data, q);
  EqualitySet set(model);
  for (const std::string& name : bodies) {
    const int body = model.body_id(name);
    set.add_weld(name, body, 0, inverse(body_pose(model, data, body)));
  }
  return set;
}

/// Times aba() without and with constraints, alternating, for one world or a pack.
template <class R>
void bench_case(const Model& model, const std::vector<std::string>& bodies, bool packed) {
  std::mt19937 engine(5);
  const std::vector<double> q0 = random_qpos(model, engine);
  const EqualitySet set = welds(model, q0, bodies);
  const int width = packed ? lanes<R>(isa_level()) : 1;
  BasicData<R> data(model, width);
  ConstrainedDynamics<R> dynamics(model, set, data);
  AlignedVector<R> qpos(data.size(model.nq)), qvel(data.size(model.nv)), tau(data.size(model.nv)),
      K(data.size(model.nv)), qacc(data.size(model.nv)), free(qacc);
  for (int w = 0; w < width; ++w) {
    // Worlds differ only a little, so that the constraints stay solvable.
    std::vector<R> q(q0.begin(), q0.end()), t(std::size_t(model.nv));
    data.set(qpos, model.nq, w, q);
    for (R& x : t) x = R(std::uniform_real_distribution<double>(-1, 1)(engine));
    data.set(tau, model.nv, w, t);
    data.set(K, model.nv, w, std::vector<R>(model.armature.begin(), model.armature.end()));
  }
  const auto constrained = [&] { dynamics.accelerate(data, 0, qpos, qvel, tau, K, qacc); };
  const std::vector<Timing> t = time_in_turn({[&] { aba<R>(model, data, qpos, qvel, tau, free); }, constrained});
  // Residual of J q̈ = 0 at rest, relative to the free acceleration.
  double residual = 0;
  constrained();
  for (int w = 0; w < width; ++w) {
    const auto of_world = [&](const AlignedVector<R>& array, int count) {
      std::vector<R> x = std::vector<R>(std::size_t(count));
      data.get(array, count, w, x);
      return std::vector<double>(x.begin(), x.end());
    };
    const std::vector<double> q = of_world(qpos, model.nq), a = of_world(qacc, model.nv);
    Data probe(model);
    DelassusRows<double> rows(model);
    set.add_blocks(rows);
    std::vector<double> phi(set.rows()), rate(set.rows()), bias(set.rows());
    kinematics<double>(model, probe, q, a);
    set.evaluate<double>(probe, 0, q, a, rows, phi, rate, bias);  // rate = J q̈, with q̈ in place of the velocity
    double scale = 1;
    for (const double x : of_world(free, model.nv)) scale = std::max(scale, std::abs(x));
    for (const double x : rate) residual = std::max(residual, std::abs(x) / scale);
  }
  const char* scalar = sizeof(R) == 8 ? "double" : "float";
  fmt::print(
      "{{\"bench\": \"constrained_dynamics\", \"engine\": \"tarsus\", \"model\": \"{}\", \"nv\": {}, \"rows\": {}, "
      "\"scalar\": \"{}\", "
      "\"lanes\": {}, \"isa\": \"{}\", \"ns\": {:.1f}, \"ns_median\": {:.1f}, \"aba_ns\": {:.1f}, \"over_aba\": "
      "{:.3f}, \"residual\": {:.2g}}}\n",
      model.name, model.nv, set.rows(), scalar, width, name(isa_level()), t[1].best / width, t[1].median / width,
      t[0].best / width, t[1].best / t[0].best, residual);
  fmt::print(stderr, "{:<10}{:>4}{:>5}  {:<6} x{:<3}{:>10.1f}{:>10.1f}{:>9.2f}{:>11.2g}\n", model.name, model.nv,
             set.rows(), scalar, width, t[0].best / width, t[1].best / width, t[1].best / t[0].best, residual);
  std::fflush(stdout);
}

void bench_models() {
  fmt::print(stderr, "{:<10}{:>4}{:>5}  {:<6} {:<4}{:>10}{:>10}{:>9}{:>11}\n", "model", "nv", "rows", "scalar", "xW",
             "aba", "with", "ratio", "residual");
  const Model humanoid = built_in("humanoid"), chain = hinge_chain(72), snake = built_in("snake72");
  const std::vector<std::string> feet = {"left_foot", "right_foot"},
                                 limbs = {"left_foot", "right_foot", "left_forearm", "right_forearm"},
                                 three = {"left_foot", "right_foot", "left_forearm"};
  for (const bool packed : {false, true}) {
    for (const auto& bodies : {feet, three, limbs}) bench_case<double>(humanoid, bodies, packed);
    bench_case<double>(chain, {"link72"}, packed);
    bench_case<double>(snake, {snake.bodies.back().name}, packed);
  }
  for (const auto& bodies : {feet, three, limbs}) bench_case<float>(humanoid, bodies, true);
  bench_case<float>(chain, {"link72"}, true);
  bench_case<float>(snake, {snake.bodies.back().name}, true);
}

/// KKT system of a chain with m rows: links spread along the chain are connected to the world, with three rows each.
struct System {
  const Model& model;
  Data data;
  EqualitySet set;
  DelassusRows<double> rows;
  std::vector<double> q, K, y1, y2, x1, x2, sigma;
  KktSolver solver;

  System(const Model& m, int count) : model(m), data(m), set(m), rows(m), K(m.armature), y1(m.nv), x1(m.nv), solver(m) {
    std::mt19937 engine(7);
    q = random_qpos(model, engine);
    kinematics<double>(model, data, q);
    const int blocks = std::max(1, count / 3);
    for (int i = 0; i < blocks; ++i) {
      const int body = model.nbody() - 1 - int((long long)(model.nbody() - 1) * i / blocks);
      const Transformd X = body_pose(model, data, body);
      set.add_connect(fmt::format("c{}", i), body, {0, 0, 0}, 0, X.p);
    }
    set.add_blocks(rows);
    for (double& x : y1) x = std::uniform_real_distribution<double>(-1, 1)(engine);
    y2.resize(set.rows()), x2.resize(set.rows());
    sigma.assign(set.rows(), 1e-6);  // rows of neighbouring links are nearly dependent
    std::vector<double> phi(set.rows());
    set.evaluate<double>(data, 0, q, {}, rows, phi, {}, {});
  }
  KktInput input() { return {data, rows, q, K, sigma, y1, y2}; }
};

/// Slope of log time over log size.
double exponent(const std::vector<std::pair<double, double>>& points) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0, n = 0;
  for (const auto& [a, b] : points) {
    const double x = std::log(a), y = std::log(b);
    sx += x, sy += y, sxx += x * x, sxy += x * y, n += 1;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

void grow(const char* over, const std::vector<std::pair<int, int>>& sizes) {
  std::map<KktMethod, std::vector<std::pair<double, double>>> points;
  fmt::print(stderr, "\n{:>6}{:>6}", "n", "m");
  for (const KktMethod method : kkt_methods()) fmt::print(stderr, "{:>17}", name(method));
  fmt::print(stderr, "   chosen\n");
  for (const auto& [n, m] : sizes) {
    const Model model = hinge_chain(n);
    System s(model, m);
    fmt::print(stderr, "{:>6}{:>6}", n, s.set.rows());
    for (const KktMethod method : kkt_methods()) {
      const double rows = s.set.rows();
      const bool too_long = (method == KktMethod::dense && n > 1000) ||
                            (method == KktMethod::sweeps && double(n) * rows > 3e5) ||
                            (method == KktMethod::sparse && double(n) * n > 4e6) ||
                            (method == KktMethod::sparse && double(n) * n * rows > 3e8);
      if (too_long) {
        fmt::print(stderr, "{:>17}", "-");
        continue;
      }
      const KktReport report = s.solver.solve(method, s.input(), s.x1, s.x2);
      const double ns =
          time_in_turn({[&] { s.solver.solve_only(method, s.input(), s.x1, s.x2); }}, {.rounds = 2, .repeats = 3})[0]
              .best;
      fmt::print(
          "{{\"bench\": \"kkt_growth\", \"engine\": \"tarsus\", \"over\": \"{}\", \"method\": \"{}\", \"used\": "
          "\"{}\", \"nv\": {}, \"rows\": {}, "
          "\"ns\": {:.0f}, \"residual\": {:.2g}, \"iterations\": {}}}\n",
          over, name(method), name(report.method), n, rows, ns, std::max(report.force_residual, report.row_residual),
          report.iterations);
      fmt::print(stderr, "{:>17}", fmt::format("{:.1f} us{}", ns * 1e-3, report.method == method ? "" : "*"));
      points[method].push_back({std::string(over) == "n" ? n : rows, ns});
    }
    fmt::print(stderr, "   {}\n", name(s.solver.choose(s.rows)));
    std::fflush(stdout);
  }
  fmt::print(stderr, "{:>12}", "exponent");
  for (const KktMethod method : kkt_methods()) {
    auto& all = points[method];
    if (all.size() > 3) all.erase(all.begin(), all.end() - 3);  // keeps the three largest sizes
    const double slope = all.size() > 1 ? exponent(all) : 0;
    fmt::print(
        "{{\"bench\": \"kkt_exponent\", \"engine\": \"tarsus\", \"over\": \"{}\", \"method\": \"{}\", \"exponent\": "
        "{:.3f}}}\n",
        over, name(method), slope);
    fmt::print(stderr, "{:>17.2f}", slope);
  }
  fmt::print(stderr, "\n");
}

int run(const std::vector<std::string>& arguments) {
  const bool models = arguments == std::vector<std::string>{"--models"},
             growth = arguments == std::vector<std::string>{"--growth"};
  if (!arguments.empty() && !models && !growth) {
    fmt::print(stderr, "usage: kkt_bench [--models | --growth]\n");
    return 2;
  }
  pin_to_one_core();
  fmt::print(stderr, "kernels: {}; nanoseconds a world, minima\n", name(isa_level()));
  if (!growth) bench_models();
  if (models) return 0;
  grow("n", {{10, 6}, {30, 6}, {100, 6}, {300, 6}, {1000, 6}, {3000, 6}, {10000, 6}});
  grow("m", {{1000, 3}, {1000, 12}, {1000, 30}, {1000, 60}, {1000, 120}, {1000, 249}, {1000, 501}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    fmt::print(stderr, "kkt_bench: {}\n", e.what());
    return 1;
  }
}
