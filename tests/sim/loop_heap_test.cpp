// Equality constraints between many trees with many contacts: the laws at the end of each step.
#include <gtest/gtest.h>

#include <cmath>

#include "support/loop_scenes.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::test {
namespace {

/// Checks J v⁺ = J v + h y₂ at the pose at which the step began, independently of the solver's report.
/// @return the largest residual [m/s | rad/s]
double loop_miss(const Model& model, const EqualitySet& set, const Data& start, const Data& end,
                 const ConstrainedDynamics<double>& loops, double h) {
  Data at(model);
  DelassusRows<double> rows(model);
  set.add_blocks(rows);
  std::vector<double> phi(set.rows()), bias(set.rows()), before(set.rows()), after(set.rows());
  for (const bool last : {false, true}) {
    const In<double> qvel = last ? In<double>(end.qvel) : In<double>(start.qvel);
    kinematics<double>(model, at, start.qpos, qvel);
    set.evaluate<double>(at, 0, start.qpos, qvel, rows, phi, last ? after : before, bias);
  }
  double most = 0;
  for (int i = 0; i < set.rows(); ++i) most = std::max(most, std::abs(after[i] - before[i] - h * loops.demand(0)[i]));
  return most;
}

/// @param redundant some rows follow from others. Their right sides agree only up to the loops' position errors.
void laws_hold(const LoopScene& scene, int steps, int touching, bool redundant) {
  const Model model = scene.model();
  const EqualitySet set = EqualitySet::of(model);
  Data data(model), start(model);
  StepOptions options;
  options.dt = 1.0 / 60, options.rows.contacts = options.rows.joints = true;
  Stepper<double> stepper(model, data, options);
  int most = 0;
  for (int i = 0; i < steps; ++i) {
    start.qpos = data.qpos, start.qvel = data.qvel;
    ASSERT_EQ(stepper.step(data), 0);
    const RowsReport& report = stepper.rows()->report();
    EXPECT_EQ(report.status, StepStatus::converged) << i;
    EXPECT_LE(report.residual, 1e-6) << i;
    double speed = 1;
    for (const double v : data.qvel) speed = std::max(speed, std::abs(v));
    EXPECT_LE(loop_miss(model, set, start, data, *stepper.loops(), options.dt), (redundant ? 1e-6 : 1e-10) * speed)
        << i;
    most = std::max(most, report.touching);
  }
  EXPECT_GT(most, touching);
}

TEST(LoopHeap, LawsHoldInAHeapOfChains) { laws_hold(heap_of_chains(18), 40, 100, false); }
TEST(LoopHeap, LawsHoldInARopeOnBoxes) { laws_hold(rope_on_boxes(100, 10), 110, 80, false); }
TEST(LoopHeap, LawsHoldInACoiledRope) { laws_hold(coiled_rope(60), 60, 60, false); }
TEST(LoopHeap, LawsHoldInANetOfWelds) { laws_hold(net_of_welds(8, 9), 60, 40, true); }

}  // namespace
}  // namespace tarsus::test
