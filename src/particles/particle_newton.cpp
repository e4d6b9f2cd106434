#include "tarsus/particles/particle_newton.hpp"

#include <algorithm>
#include <cmath>

#include "particles/kernels.hpp"
#include "particles/path_stage.hpp"
#include "solver/newton.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/base/union_find.hpp"

namespace tarsus {
namespace {

/// A subset of the rows as a problem on the same coordinates.
class RowSubset final : public Problem {
 public:
  RowSubset(const ConstraintSet& set, std::vector<int> rows) : set_(set), rows_(std::move(rows)) {
    for (const int row : rows_) {
      const RowPattern& all = set.pattern();
      pattern_.column.insert(pattern_.column.end(), all.column.begin() + all.start[row],
                             all.column.begin() + all.start[row + 1]);
      pattern_.start.push_back(pattern_.nonzeros());
    }
  }
  int nx() const override { return set_.nx(); }
  int nv() const override { return set_.nv(); }
  const RowPattern& pattern() const override { return pattern_; }
  double evaluate_row(int row, std::span<const double> x, std::span<double> gradient) const override {
    return set_.evaluate_row(rows_[row], x, gradient);
  }
  double scale(int row) const override { return set_.scale(rows_[row]); }
  double rounding_floor(int row, std::span<const double> x) const override {
    return set_.rounding_floor(rows_[row], x);
  }
  std::string describe(int row) const override { return set_.describe(rows_[row]); }
  double curvature(int row) const override { return set_.curvature(rows_[row]); }
  const std::vector<int>& rows() const { return rows_; }

 private:
  const ConstraintSet& set_;
  std::vector<int> rows_;
  RowPattern pattern_;
};

// Merges a part's report into the whole report.
void merge(SolveReport& whole, const SolveReport& part) {
  whole.iterations = std::max(whole.iterations, part.iterations);
  whole.factorizations += part.factorizations;
  whole.start_residual = std::max(whole.start_residual, part.start_residual);
  whole.pivot_ratio = std::min(whole.pivot_ratio, part.pivot_ratio);
  whole.wrong_root |= part.wrong_root;
  const bool worse = (!part.ok() && whole.ok()) || (part.ok() == whole.ok() && part.status > whole.status);
  if (worse) whole.status = part.status;
  if (worse || (part.ok() == whole.ok() && part.residual > whole.residual) || whole.worst_row < 0) {
    whole.residual = part.residual, whole.worst_row = part.worst_row;
  }
}

/// @param otherwise status of a finite, regular system that is not solved
SolveReport report_of(const LaneReport& lanes, double tolerance, SolveStatus otherwise) {
  SolveReport report;
  report.iterations = lanes.iterations;
  report.residual = lanes.residual;
  report.start_residual = lanes.start_residual;
  report.worst_row = lanes.worst_row;
  report.pivot_ratio = lanes.pivot_ratio;
  report.wrong_root = lanes.wrong_root;
  constexpr double kNonsense = 1e-6;  // a larger residual is not rounding: the rows are almost dependent
  if (lanes.failed || !(lanes.residual < kNonsense)) {
    report.status = !(lanes.pivot_ratio > kSingular) ? SolveStatus::singular
                    : !std::isfinite(lanes.residual) ? SolveStatus::not_finite

                                                     : otherwise;
  } else if (lanes.residual > tolerance) {
    report.status = SolveStatus::at_rounding;
  }
  return report;
}

}  // namespace

struct ParticleNewton::Plan {
  const ConstraintSet* set = nullptr;
  const ParticleKernels* kernels = nullptr;
  std::vector<BondBatch> bonds;
  std::vector<TriangleBatch> triangles;
  std::vector<PathStage> paths;
  std::unique_ptr<RowSubset> general;
  NewtonSolver newton;
  ParticleNewtonPlan counts;
  std::vector<double> multiplier;  // [nrow + 1], the last for padding lanes of a batch
  std::vector<double> saved, general_multiplier;
  ThreadTeam* team = nullptr;
  std::vector<LaneReport> thread_report;

  void sort_components(std::span<const double> inverse_mass);
  bool take_component(const std::vector<int>& rows, std::span<const double> inverse_mass);
  bool take_triangle(const std::vector<int>& rows, std::span<const double> inverse_mass);
  bool take_path(const std::vector<int>& rows, std::span<const double> inverse_mass);
  void add_bond(int row, std::span<const double> inverse_mass);
  void fill_batches();
  /// Runs a stage over batches, on the team if there are many.
  template <class Batch>
  void run_batches(LaneReport (*kernel)(const Batch*, int, const StageArgs&), const std::vector<Batch>& batches,
                   const StageArgs& args, SolveStatus otherwise, SolveReport& report);
  /// Chains and general rows write their result only on success; batches write during the iterations.
  bool one_part_only() const { return bonds.empty() && triangles.empty() && paths.size() + (general ? 1 : 0) <= 1; }
};

template <class Batch>
void ParticleNewton::Plan::run_batches(LaneReport (*kernel)(const Batch*, int, const StageArgs&),
                                       const std::vector<Batch>& batches, const StageArgs& args, SolveStatus otherwise,
                                       SolveReport& report) {
  constexpr int kWorthATeam = 64;  // batches
  const int count = static_cast<int>(batches.size());
  if (count == 0) return;
  if (!team || team->size() == 1 || count < kWorthATeam)
    return merge(report, report_of(kernel(batches.data(), count, args), args.tolerance, otherwise));
  thread_report.resize(team->size());
  team->run([&](int thread) {
    const ThreadTeam::Range range = team->share(count, thread);
    thread_report[thread] = kernel(batches.data() + range.begin, range.end - range.begin, args);
  });
  for (const LaneReport& part : thread_report) merge(report, report_of(part, args.tolerance, otherwise));
}

void ParticleNewton::Plan::add_bond(int row, std::span<const double> inverse_mass) {
  const int lane = counts.bonds++ % kLaneBatch;
  if (lane == 0) bonds.emplace_back();
  BondBatch& batch = bonds.back();
  batch.used = lane + 1;
  for (int a = 0; a < 2; ++a) {
    batch.particle[a][lane] = set->row_particles(row)[a];
    batch.inverse_mass[a][lane] = inverse_mass[set->row_particles(row)[a]];
  }
  batch.row[lane] = row;
  batch.length2[lane] = set->scale(row);
  batch.inverse_length2[lane] = 1 / set->scale(row);
}

bool ParticleNewton::Plan::take_triangle(const std::vector<int>& rows, std::span<const double> inverse_mass) {
  if (rows.size() != 3) return false;
  int corner[3] = {set->row_particles(rows[0])[0], set->row_particles(rows[0])[1], -1};
  for (const int row : rows) {
    for (const int i : set->row_particles(row)) {
      if (i == corner[0] || i == corner[1] || i == corner[2]) continue;
      if (corner[2] >= 0) return false;
      corner[2] = i;
    }
  }
  if (corner[2] < 0) return false;
  const int lane = counts.triangles % kLaneBatch;
  TriangleBatch batch{};
  if (lane > 0) batch = triangles.back();
  constexpr int kEnds[3][2] = {{0, 1}, {0, 2}, {1, 2}};
  for (int k = 0; k < 3; ++k) {
    const auto joins = [&](int row) {
      const auto p = set->row_particles(row);
      return (p[0] == corner[kEnds[k][0]] && p[1] == corner[kEnds[k][1]]) ||
             (p[1] == corner[kEnds[k][0]] && p[0] == corner[kEnds[k][1]]);
    };
    const auto found = std::find_if(rows.begin(), rows.end(), joins);
    if (found == rows.end()) return false;
    batch.row[k][lane] = *found;
    batch.length2[k][lane] = set->scale(*found);
    batch.inverse_length2[k][lane] = 1 / set->scale(*found);
    batch.particle[k][lane] = corner[k];
    batch.inverse_mass[k][lane] = inverse_mass[corner[k]];
  }
  batch.used = lane + 1;
  if (lane == 0) triangles.emplace_back();
  triangles.back() = batch;
  ++counts.triangles;
  return true;
}

// A component is an open chain if no movable particle has more than two of its rows and there is no ring.
bool ParticleNewton::Plan::take_path(const std::vector<int>& rows, std::span<const double> inverse_mass) {
  std::vector<std::pair<int, int>> touch;  // (movable particle, row)
  for (const int row : rows) {
    for (const int i : set->row_particles(row)) {
      if (inverse_mass[i] != 0) touch.emplace_back(i, row);
    }
  }
  std::sort(touch.begin(), touch.end());
  const auto at = [&](int particle) { return std::lower_bound(touch.begin(), touch.end(), std::pair(particle, -1)); };
  const auto degree = [&](int particle) {
    return std::upper_bound(touch.begin(), touch.end(), std::pair(particle, 1 << 30)) - at(particle);
  };
  int start_row = -1, start_particle = -1;
  for (const auto& [i, row] : touch) {
    if (degree(i) > 2) return false;
  }
  for (const int row : rows) {
    for (const int i : set->row_particles(row)) {
      if (start_row < 0 && (inverse_mass[i] == 0 || degree(i) == 1)) start_row = row, start_particle = i;
    }
  }
  if (start_row < 0) return false;  // a ring
  std::vector<int> particles{start_particle}, order;
  for (int row = start_row; row >= 0;) {
    order.push_back(row);
    const auto ends = set->row_particles(row);
    const int next = ends[0] == particles.back() ? ends[1] : ends[0];
    particles.push_back(next);
    int following = -1;
    if (inverse_mass[next] != 0) {
      for (auto it = at(next); it != touch.end() && it->first == next; ++it) {
        if (it->second != row) following = it->second;
      }
    }
    row = following;
  }
  if (order.size() != rows.size()) return false;
  ++counts.chains, counts.chain_rows += static_cast<int>(rows.size());
  paths.emplace_back(*set, inverse_mass, std::move(particles), std::move(order));
  return true;
}

bool ParticleNewton::Plan::take_component(const std::vector<int>& rows, std::span<const double> inverse_mass) {
  for (const int row : rows) {
    if (set->kind(row) != RowKind::distance) return false;
    const auto p = set->row_particles(row);
    if (inverse_mass[p[0]] == 0 && inverse_mass[p[1]] == 0) return false;
  }
  if (rows.size() == 1) {
    add_bond(rows[0], inverse_mass);
    return true;
  }
  return take_triangle(rows, inverse_mass) || take_path(rows, inverse_mass);
}

void ParticleNewton::Plan::fill_batches() {
  // Lanes without a molecule repeat the last one. They write their multipliers to a spare entry.
  const int spare = set->nrow();
  for (int lane = counts.bonds % kLaneBatch; lane != 0 && lane < kLaneBatch; ++lane) {
    BondBatch& batch = bonds.back();
    for (int a = 0; a < 2; ++a) {
      batch.particle[a][lane] = batch.particle[a][lane - 1],
      batch.inverse_mass[a][lane] = batch.inverse_mass[a][lane - 1];
    }
    batch.length2[lane] = batch.length2[lane - 1], batch.inverse_length2[lane] = batch.inverse_length2[lane - 1];
    batch.row[lane] = spare;
  }
  for (int lane = counts.triangles % kLaneBatch; lane != 0 && lane < kLaneBatch; ++lane) {
    TriangleBatch& batch = triangles.back();
    for (int k = 0; k < 3; ++k) {
      batch.particle[k][lane] = batch.particle[k][lane - 1],
      batch.inverse_mass[k][lane] = batch.inverse_mass[k][lane - 1];
      batch.length2[k][lane] = batch.length2[k][lane - 1];
      batch.inverse_length2[k][lane] = batch.inverse_length2[k][lane - 1];
      batch.row[k][lane] = spare;
    }
  }
}

void ParticleNewton::Plan::sort_components(std::span<const double> inverse_mass) {
  UnionFind sets(set->particles());
  const int nrow = set->nrow();
  std::vector<int> anchor(nrow, -1);  // a movable particle of the row
  for (int row = 0; row < nrow; ++row) {
    for (const int i : set->row_particles(row)) {
      if (inverse_mass[i] == 0) continue;
      if (anchor[row] < 0) anchor[row] = i;
      sets.join(i, anchor[row]);
    }
  }
  std::vector<int> component(set->particles(), -1);
  std::vector<std::vector<int>> members;
  std::vector<int> rest;
  for (int row = 0; row < nrow; ++row) {
    if (anchor[row] < 0) {
      rest.push_back(row);  // all its particles are pinned
      continue;
    }
    int& id = component[sets.find(anchor[row])];
    if (id < 0) id = static_cast<int>(members.size()), members.emplace_back();
    members[id].push_back(row);
  }
  for (const auto& rows : members) {
    if (!take_component(rows, inverse_mass)) rest.insert(rest.end(), rows.begin(), rows.end());
  }
  fill_batches();
  counts.general_rows = static_cast<int>(rest.size());
  std::sort(rest.begin(), rest.end());
  if (!rest.empty()) general = std::make_unique<RowSubset>(*set, std::move(rest));
}

ParticleNewton::ParticleNewton(const ConstraintSet& set, std::span<const double> inverse_mass, ThreadTeam* team)
    : plan_(std::make_unique<Plan>()) {
  check_size("inverse_mass", inverse_mass.size(), set.particles());
  plan_->set = &set;
  plan_->team = team;
  plan_->kernels = &kernels<ParticleKernels>();
  plan_->sort_components(inverse_mass);
  plan_->multiplier.assign(set.nrow() + 1, 0.0);
}

ParticleNewton::~ParticleNewton() = default;

ParticleNewtonPlan ParticleNewton::plan() const { return plan_->counts; }

SolveReport ParticleNewton::solve_positions([[maybe_unused]] const Problem& problem, const MassOperator& mass,
                                            std::span<const double> x0, std::span<double> x,
                                            std::span<double> multiplier, const SolveOptions& options) {
  Plan& plan = *plan_;
  check_size("multiplier", multiplier.size(), plan.set->nrow());
  check_size("x", x.size(), plan.set->nx());
  const bool undo = !plan.one_part_only();
  if (undo) plan.saved.assign(x.begin(), x.end());
  SolveReport report;
  const StageArgs args{x0.data(),
                       x.data(),
                       plan.multiplier.data(),
                       options.tolerance,
                       options.max_iterations > 0 ? options.max_iterations : 60,
                       options.timestep};
  plan.run_batches(plan.kernels->bond_positions, plan.bonds, args, SolveStatus::diverged, report);
  plan.run_batches(plan.kernels->triangle_positions, plan.triangles, args, SolveStatus::too_many_iterations, report);
  const bool direct = !undo && !plan.general;  // a chain writes its multipliers only on success
  for (PathStage& path : plan.paths) {
    if (!report.ok()) break;
    merge(report, path.positions(*plan.kernels, x0, x, direct ? multiplier : plan.multiplier, options));
  }
  if (plan.general && report.ok()) {
    plan.general_multiplier.resize(plan.general->nrow());
    SolveReport part = plan.newton.solve_positions(*plan.general, mass, x0, x, plan.general_multiplier, options);
    if (part.worst_row >= 0) part.worst_row = plan.general->rows()[part.worst_row];
    merge(report, part);
    for (int k = 0; k < plan.general->nrow(); ++k)
      plan.multiplier[plan.general->rows()[k]] = plan.general_multiplier[k];
  }
  if (!report.ok()) {
    if (undo) std::copy(plan.saved.begin(), plan.saved.end(), x.begin());
    return report;
  }
  if (!direct) std::copy_n(plan.multiplier.begin(), multiplier.size(), multiplier.begin());
  return report;
}

SolveReport ParticleNewton::solve_velocities([[maybe_unused]] const Problem& problem, const MassOperator& mass,
                                             std::span<const double> x, std::span<double> v,
                                             std::span<double> multiplier, const SolveOptions& options) {
  Plan& plan = *plan_;
  check_size("multiplier", multiplier.size(), plan.set->nrow());
  check_size("v", v.size(), plan.set->nv());
  const bool undo = !plan.one_part_only();
  if (undo) plan.saved.assign(v.begin(), v.end());
  SolveReport report;
  const StageArgs args{x.data(), v.data(), plan.multiplier.data(), options.tolerance, 2, options.timestep};
  plan.run_batches(plan.kernels->bond_velocities, plan.bonds, args, SolveStatus::diverged, report);
  plan.run_batches(plan.kernels->triangle_velocities, plan.triangles, args, SolveStatus::too_many_iterations, report);
  const bool direct = !undo && !plan.general;
  for (PathStage& path : plan.paths) {
    if (!report.ok()) break;
    merge(report, path.velocities(*plan.kernels, x, v, direct ? multiplier : plan.multiplier, options));
  }
  if (plan.general && report.ok()) {
    plan.general_multiplier.resize(plan.general->nrow());
    SolveReport part = plan.newton.solve_velocities(*plan.general, mass, x, v, plan.general_multiplier, options);
    if (part.worst_row >= 0) part.worst_row = plan.general->rows()[part.worst_row];
    merge(report, part);
    for (int k = 0; k < plan.general->nrow(); ++k)
      plan.multiplier[plan.general->rows()[k]] = plan.general_multiplier[k];
  }
  if (!report.ok()) {
    if (undo) std::copy(plan.saved.begin(), plan.saved.end(), v.begin());
    return report;
  }
  if (!direct) std::copy_n(plan.multiplier.begin(), multiplier.size(), multiplier.begin());
  return report;
}

std::unique_ptr<ConstraintSolver> make_particle_solver(std::string_view name, const ConstraintSet& set,
                                                       std::span<const double> inverse_mass, ThreadTeam* team) {
  if (name == "newton") return std::make_unique<ParticleNewton>(set, inverse_mass, team);
  if (name == "newton_general") return make_solver("newton");
  try {
    return make_solver(name);
  } catch (const ValueError&) {
    throw ValueError("solver", std::string(name), "newton, newton_general, m_shake, shake or shake_matrix");
  }
}

}  // namespace tarsus
