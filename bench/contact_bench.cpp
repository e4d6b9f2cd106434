// Rigid bodies with contact: time and penetration of a step. JSON objects, one per line.
//   contact_bench [drop8000|drop64000|pyramid|threads|all]   default: drop8000 and pyramid
// Bullet and ODE run the same scene if the build found their packages: the same masses, friction, step and number of
// iterations. Each engine settles its own pile. Then the engines alternate, and the best of several rounds counts.
// Penetrations are those of tarsus; ms is wall time of one core.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "peers/contact_peers.hpp"
#include "tarsus/sim/rigid_scene.hpp"

namespace {

using namespace tarsus;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double number(const char* name, double fallback) {
  const char* text = std::getenv(name);
  return text ? std::atof(text) : fallback;
}

RigidScene tuned(RigidScene scene, int threads) {
  scene.options.iterations = int(number("ITER", 10));
  scene.options.threads = threads;
  scene.options.relative_compliance = number("EPS", 1e-5);
  scene.options.damping_time = number("TAU", 0);
  scene.options.margin = number("MARGIN", 0.02);
  return scene;
}

/// The scene in tarsus, settled, so that steps can be timed.
struct Ours {
  RigidWorld<float> world;
  RigidStepReport report;
  double best = 1e9, penetration_max = 0, penetration_mean = 0;
  std::array<double, 5> stages{1e9, 1e9, 1e9, 1e9, 1e9};
  static constexpr Stage kShown[5] = {Stage::collide, Stage::match, Stage::prepare, Stage::terms, Stage::integrate};
  int samples = 0;

  Ours(const RigidScene& scene, int settle) : world(make_world<float>(scene)) {
    // A deep pile settles sooner with more iterations. Steps with the timed number of iterations follow.
    world.options().iterations = int(number("SETTLE_ITER", scene.options.iterations));
    for (int i = 0; i < settle; ++i) world.step();
    world.options().iterations = scene.options.iterations;
    for (int i = 0; i < 60; ++i) world.step();
  }
  void time(int steps) {
    const double start = seconds();
    for (int i = 0; i < steps; ++i) {
      report = world.step();
      penetration_max = std::max(penetration_max, report.penetration_max);
      penetration_mean += report.penetration_mean, ++samples;
      for (int k = 0; k < 5; ++k) stages[k] = std::min(stages[k], report.seconds[std::size_t(kShown[k])]);
    }
    best = std::min(best, (seconds() - start) / steps);
  }
  void print(const RigidScene& scene) const {
    fmt::print(
        "{{\"bench\":\"{}\",\"engine\":\"tarsus\",\"bodies\":{},\"threads\":{},\"ms\":{:.3f},\"contacts\":{},"
        "\"touching\":{},"
        "\"penetration_max_m\":{:.5f},\"penetration_mean_m\":{:.5f},\"colours\":{},\"change\":{:.2g},\"kinetic_"
        "energy\":{:.3g},"
        "\"status\":\"{}\",\"stages_ms\":{{\"collide\":{:.3f},\"match\":{:.3f},\"prepare\":{:.3f},\"terms\":{:.3f},"
        "\"integrate\":{:.3f}}}}}\n",
        scene.name, scene.bodies.size(), scene.options.threads, 1e3 * best, report.contacts, report.touching,
        penetration_max, samples ? penetration_mean / samples : 0, report.colours, report.residual,
        world.kinetic_energy(), name(report.status), 1e3 * stages[0], 1e3 * stages[1], 1e3 * stages[2], 1e3 * stages[3],
        1e3 * stages[4]);
    std::fflush(stdout);
  }
};

void compare(const RigidScene& plain, int settle, int rounds, bool with_peers) {
  const RigidScene scene = tuned(plain, int(number("THREADS", 1)));
  Ours ours(scene, settle);
  std::vector<std::unique_ptr<ContactPeer>> peers;
  if (with_peers) peers = make_contact_peers(scene);
  std::vector<double> best(peers.size(), 1e9);
  for (auto& peer : peers) {
    for (int i = 0; i < settle; ++i) peer->step();
  }
  for (int round = 0; round < rounds; ++round) {
    ours.time(10);
    for (std::size_t k = 0; k < peers.size(); ++k) {
      const double start = seconds();
      for (int i = 0; i < 5; ++i) peers[k]->step();
      best[k] = std::min(best[k], (seconds() - start) / 5);
    }
  }
  ours.print(scene);
  for (std::size_t k = 0; k < peers.size(); ++k) {
    const PeerMeasure m = peers[k]->measure();
    fmt::print(
        "{{\"bench\":\"{}\",\"engine\":\"{}\",\"bodies\":{},\"ms\":{:.3f},\"contacts\":{},\"penetration_max_m\":{:.5f},"
        "\"penetration_mean_m\":{:.5f},\"times_ours\":{:.2f}}}\n",
        scene.name, peers[k]->name(), scene.bodies.size(), 1e3 * best[k], m.contacts, m.penetration_max,
        m.penetration_mean, best[k] / ours.best);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int settle = int(number("SETTLE", 600));
  const bool peers = number("PEERS", 1) != 0;
  if (what.empty() || what == "all" || what == "drop8000") compare(ball_drop(20, 20), settle, 5, peers);
  if (what.empty() || what == "all" || what == "pyramid") compare(ball_pyramid(20), settle, 5, peers);
  if (what == "all" || what == "drop64000") compare(ball_drop(40, 40), settle, 3, false);
  return 0;
}
