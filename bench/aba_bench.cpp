// Speed of forward dynamics: aba(), maba() with K and Q given, maba() with its drive terms, and the pass that takes
// velocity products implicitly; in double and float; one world per call and a pack of worlds per call. JSON objects on
// standard output, a table on standard error.
//   aba_bench                   everything
//   aba_bench --models          without the growth over chains
//   aba_bench --trees FOLDER    only writes the measured trees, for the programs in bench/peers
// Times are processor time of this thread, pinned to one core: nanoseconds per world and call, minimum and median over
// repeats. Variants of one model alternate in each repeat, so that their ratios refer to the same machine state. Each
// result includes the largest |rnea(aba) - tau|, relative to the largest of the forces that cancel (tau and bias).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "hinge_chain.hpp"
#include "tarsus/control/drive.hpp"
#include "tarsus/dynamics/velocity_products.hpp"
#include "tarsus/math/rotation.hpp"
#include "timing.hpp"

namespace {

using namespace tarsus;
using namespace tarsus::bench;

/// State, forces, drives and result buffers of a run.
template <class R>
struct Bench {
  const Model& model;
  BasicData<R> data;
  VelocityProducts<R> products;
  Drives drives;
  AlignedVector<R> qpos, qvel, tau, target, force, inertia, qacc, back;  // force, inertia: MABA's Q and K

  Bench(const Model& m, int worlds)
      : model(m),
        data(m, worlds),
        products(m, data),
        drives(Drives::uniform(m)),
        qpos(data.size(m.nq)),
        qvel(data.size(m.nv)),
        tau(data.size(m.nv)),
        target(data.size(m.nq)),
        force(data.size(m.nv)),
        inertia(data.size(m.nv)),
        qacc(data.size(m.nv)),
        back(data.size(m.nv)) {
    std::mt19937 engine(5);
    for (int world = 0; world < worlds; ++world) {
      fill(engine, world, qpos), fill(engine, world, target);
      for (auto* v : {&qvel, &tau}) {
        std::vector<R> row(std::size_t(m.nv));
        for (R& x : row) x = uniform(engine);
        data.set(*v, m.nv, world, row);
      }
    }
    drive_terms<R>(model, data, drives, 1.0 / 30, qpos, qvel, target, {}, tau, force, inertia);
  }

  static R uniform(std::mt19937& engine) { return R(std::uniform_real_distribution<double>(-1, 1)(engine)); }

  void fill(std::mt19937& engine, int world, AlignedVector<R>& to) {
    std::vector<R> row(std::size_t(model.nq));
    for (R& x : row) x = uniform(engine);
    for (const Joint& joint : model.joints) {
      if (joint.nq() == 1) continue;
      R* q = row.data() + joint.qpos + scalar_count(joint.type);
      const R scale = 1 / std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
      for (int k = 0; k < 4; ++k) q[k] *= scale;
    }
    data.set(to, model.nq, world, row);
  }

  void run_aba() { aba<R>(model, data, qpos, qvel, tau, qacc); }
  void run_maba() { maba<R>(model, data, qpos, qvel, force, inertia, qacc); }
  void run_products() { products.accelerate_step(model, data, R(1.0 / 60), true, qpos, qvel, force, inertia, qacc); }
  void run_drives() {
    drive_terms<R>(model, data, drives, 1.0 / 30, qpos, qvel, target, {}, tau, force, inertia);
    run_maba();
  }

  double residual() {
    AlignedVector<R> bias(tau.size());
    bias_force<R>(model, data, qpos, qvel, bias);
    run_aba();
    rnea<R>(model, data, qpos, qvel, qacc, back);
    double worst = 0, scale = 0;
    for (std::size_t i = 0; i < tau.size(); ++i) {
      worst = std::max(worst, std::abs(double(back[i]) - double(tau[i])));
      scale = std::max({scale, std::abs(double(tau[i])), std::abs(double(bias[i]))});
    }
    return worst / scale;
  }
};

template <class R>
void bench_model(const Model& model) {
  const char* scalar = sizeof(R) == 8 ? "double" : "float";
  for (const bool packed : {false, true}) {
    const int width = packed ? lanes<R>(isa_level()) : 1;
    Bench<R> b(model, width);
    const double residual = b.residual();
    const std::vector<Timing> t =
        time_in_turn({[&] { b.run_aba(); }, [&] { b.run_maba(); }, [&] { b.run_drives(); }, [&] { b.run_products(); }});
    const char* names[] = {"aba", "maba", "maba_with_drive_terms", "velocity_products"};
    for (int i = 0; i < 4; ++i) {
      fmt::print(
          "{{\"bench\": \"{}\", \"engine\": \"tarsus\", \"model\": \"{}\", \"nv\": {}, \"scalar\": \"{}\", \"lanes\": "
          "{}, \"isa\": \"{}\", "
          "\"ns\": {:.1f}, \"ns_median\": {:.1f}, \"over_aba\": {:.4f}, \"residual\": {:.2g}}}\n",
          names[i], model.name, model.nv, scalar, width, name(isa_level()), t[i].best / width, t[i].median / width,
          t[i].best / t[0].best, residual);
    }
    fmt::print(stderr,
               "{:<10}{:>4}  {:<6} x{:<3}{:>10.1f}{:>10.1f}{:>12.1f}{:>10.1f}{:>9.3f}{:>9.3f}{:>9.3f}{:>12.2g}\n",
               model.name, model.nv, scalar, width, t[0].best / width, t[1].best / width, t[2].best / width,
               t[3].best / width, t[1].best / t[0].best, t[2].best / t[0].best, t[3].best / t[0].best, residual);
    std::fflush(stdout);
  }
}

/// Exponent of time over chain length, by a least-squares fit of logarithms.
template <class R>
void bench_growth(const char* of, void (Bench<R>::*pass)()) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0, n = 0;
  for (const int links : {10, 30, 100, 300, 1000, 3000, 10000}) {
    const Model model = hinge_chain(links);
    Bench<R> b(model, 1);
    const double residual = b.residual(), ns = time_in_turn({[&] { (b.*pass)(); }})[0].best;
    fmt::print(
        "{{\"bench\": \"growth\", \"engine\": \"tarsus\", \"pass\": \"{}\", \"nv\": {}, \"ns\": {:.1f}, "
        "\"ns_per_link\": {:.2f}, \"residual\": {:.2g}}}\n",
        of, links, ns, ns / links, residual);
    fmt::print(stderr, "{}: chain of {:>5} hinges {:>12.1f} ns {:>8.2f} ns a link  {:>10.2g}\n", of, links, ns,
               ns / links, residual);
    const double x = std::log(links), y = std::log(ns);
    sx += x, sy += y, sxx += x * x, sxy += x * y, n += 1;
  }
  const double exponent = (n * sxy - sx * sy) / (n * sxx - sx * sx);
  fmt::print("{{\"bench\": \"growth_exponent\", \"engine\": \"tarsus\", \"pass\": \"{}\", \"exponent\": {:.4f}}}\n", of,
             exponent);
  fmt::print(stderr, "{}: time grows with the {:.3f}th power of the number of links\n", of, exponent);
}

/// Writes the tree as the kernels see it, one line for each link; bench/peers/pinocchio_tree.hpp describes the columns.
void write_tree(const Model& model, const std::filesystem::path& folder) {
  std::ofstream out(folder / (model.name + ".tree"));
  const ModelView<double> view = model.view<double>();
  for (int i = 0; i < view.nlink; ++i) {
    const LinkConstants<double>& link = view.link[i];
    out << fmt::format("{} {}", link.parent, name(link.joint));
    for (const double x : link.E0) out << fmt::format(" {}", x);
    for (const double x : link.r0) out << fmt::format(" {}", x);
    // Inertia about the centre of mass from the inertia about the link's origin.
    const double m = link.mass, x = m > 0 ? link.h[0] / m : 0, y = m > 0 ? link.h[1] / m : 0,
                 z = m > 0 ? link.h[2] / m : 0;
    const double* I = link.I;
    out << fmt::format(" {} {} {} {}", m, x, y, z);
    out << fmt::format(" {} {} {} {} {} {}\n", I[0] - m * (y * y + z * z), I[1] + m * x * y, I[2] + m * x * z,
                       I[3] - m * (x * x + z * z), I[4] + m * y * z, I[5] - m * (x * x + y * y));
  }
  out.close();
  if (!out) throw Error((folder / model.name).string() + ".tree cannot be written");
}

int run(const std::vector<std::string>& arguments) {
  const bool models_only = arguments == std::vector<std::string>{"--models"};
  const bool trees = arguments.size() == 2 && arguments[0] == "--trees";
  if (!arguments.empty() && !models_only && !trees) {
    fmt::print(stderr, "usage: aba_bench [--models | --trees FOLDER]\n");
    return 2;
  }
  pin_to_one_core();
  std::vector<Model> models;
  for (const char* name : {"humanoid", "dog", "snake36", "snake72", "snake195"}) models.push_back(built_in(name));
  for (const int links : {36, 72, 195}) models.push_back(hinge_chain(links));
  if (trees) {
    for (const Model& model : models) write_tree(model, arguments[1]);
    return 0;
  }
  fmt::print(stderr, "kernels: {}; nanoseconds a world, minima\n", name(isa_level()));
  fmt::print(stderr, "{:<10}{:>4}  {:<6} {:<4}{:>10}{:>10}{:>12}{:>10}{:>9}{:>9}{:>9}{:>12}\n", "model", "nv", "scalar",
             "xW", "aba", "maba", "+drives", "implicit", "maba/aba", "all/aba", "impl/aba", "residual");
  for (const Model& model : models) {
    bench_model<double>(model);
    bench_model<float>(model);
  }
  if (models_only) return 0;
  bench_growth<double>("aba", &Bench<double>::run_aba);
  bench_growth<double>("velocity_products", &Bench<double>::run_products);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    fmt::print(stderr, "aba_bench: {}\n", e.what());
    return 1;
  }
}
