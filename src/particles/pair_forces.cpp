#include "particles/pair_forces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tarsus/base/error.hpp"

namespace tarsus {
namespace {

// GROMACS' force switch in units where both radii are given: -d/dr of r^-p gets a t² + b t³ added.
struct Switch {
  double a, b, k;
};
Switch switch_constants(int p, double from, double to) {
  const double width = to - from, power = std::pow(to, p + 2);
  const double a = -p * ((p + 4) * to - (p + 1) * from) / (power * width * width);
  const double b = p * ((p + 3) * to - (p + 1) * from) / (power * width * width * width);
  return {a, b, std::pow(to, -p) - a / 3 * std::pow(width, 3) - b / 4 * std::pow(width, 4)};
}

}  // namespace

PairForces::PairForces(const ParticleSystem& system)
    : n_(system.particles()), kernels_(&particle_kernels_here()), coulomb_(system.force_field.coulomb) {
  const ForceField& field = system.force_field;
  unit_ = std::max(field.lennard_jones.type.empty() ? 0 : field.lennard_jones.cutoff, coulomb_.charge.empty() ? 0 : coulomb_.cutoff);
  // A larger skin makes longer lists and fewer builds. 8 % of the cutoff was the optimum for 216 waters.
  const double skin = (field.skin > 0 ? field.skin : 0.08 * unit_) / unit_;
  list_radius_ = 1 + skin, slack_ = skin / 2;
  const Vec3d length = system.box.length;
  for (int c = 0; c < 3; ++c) {
    args_.box[c] = length[c] / unit_;
    args_.inverse_box[c] = length[c] > 0 ? unit_ / length[c] : 0;
  }
  make_classes(field);
  make_exclusions(field);
  make_constants(field);
  packed_.assign(4 * static_cast<std::size_t>(n_ + 1), 0.0);
  packed_force_.assign(packed_.size(), 0.0);
  for (int i = 0; i < n_; ++i) packed_[4 * i + 3] = coulomb_.charge.empty() ? 0 : coulomb_.charge[i];
  for (int c = 0; c < 3; ++c) packed_[4 * n_ + c] = std::numeric_limits<double>::quiet_NaN();
  mark_.assign(n_, -1);
}

// Particles of one class see the same laws: Lennard-Jones type and whether there is a charge.
void PairForces::make_classes(const ForceField& field) {
  std::map<std::pair<int, bool>, int> ids;
  std::vector<std::pair<int, bool>> kinds;
  for (int i = 0; i < n_; ++i) {
    const int type = field.lennard_jones.type.empty() ? -1 : field.lennard_jones.type[i];
    const std::pair<int, bool> kind(type, !coulomb_.charge.empty() && coulomb_.charge[i] != 0);
    const auto [it, fresh] = ids.try_emplace(kind, static_cast<int>(ids.size()));
    if (fresh) kinds.push_back(kind);
    class_of_.push_back(it->second);
  }
  classes_ = static_cast<int>(kinds.size());
  const LennardJones& lj = field.lennard_jones;
  std::map<std::tuple<double, double, bool>, int> known;
  for (const auto& [type_a, charged_a] : kinds) {
    for (const auto& [type_b, charged_b] : kinds) {
      PairLaw law;
      law.coulomb = charged_a && charged_b;
      double epsilon = 0;
      if (type_a >= 0 && type_b >= 0) epsilon = lj.epsilon[type_a * lj.types + type_b];
      if (epsilon != 0) {
        law.lennard_jones = true;
        const double s6 = std::pow(lj.sigma[type_a * lj.types + type_b] / unit_, 6), rc6 = std::pow(unit_ / lj.cutoff, 6);
        law.c6 = 4 * epsilon * s6, law.c12 = law.c6 * s6;
        if (lj.mode == LennardJones::Cutoff::shifted) law.shift = law.c12 * rc6 * rc6 - law.c6 * rc6;
      }
      if (!law.coulomb && !law.lennard_jones) {
        law_.push_back(-1);
        continue;
      }
      const auto [it, fresh] = known.try_emplace({law.c6, law.c12, law.coulomb}, static_cast<int>(laws_.size()));
      if (fresh) laws_.push_back(law);
      law_.push_back(it->second);
    }
  }
  buckets_.resize(laws_.size());
}

void PairForces::make_exclusions(const ForceField& field) {
  std::vector<std::vector<int>> lists(n_);
  for (const auto& [i, j] : field.exclusions) {
    lists[i].push_back(j), lists[j].push_back(i);
  }
  excluded_start_.assign(1, 0);
  for (int i = 0; i < n_; ++i) {
    auto& list = lists[i];
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    excluded_.insert(excluded_.end(), list.begin(), list.end());
    excluded_start_.push_back(static_cast<int>(excluded_.size()));
    for (const int j : list) {
      if (j > i) excluded_pairs_.push_back({i, j});
    }
  }
}

void PairForces::make_constants(const ForceField& field) {
  const LennardJones& lj = field.lennard_jones;
  const double lj_cutoff = lj.type.empty() ? 0 : lj.cutoff / unit_;
  args_.lj_cutoff2 = lj_cutoff * lj_cutoff;
  args_.switched = !lj.type.empty() && lj.mode == LennardJones::Cutoff::force_switch;
  if (args_.switched) {
    args_.switch_from = lj.switch_from / unit_;
    const Switch s6 = switch_constants(6, args_.switch_from, lj_cutoff), s12 = switch_constants(12, args_.switch_from, lj_cutoff);
    args_.a6 = s6.a, args_.b6 = s6.b, args_.k6 = s6.k, args_.a12 = s12.a, args_.b12 = s12.b, args_.k12 = s12.k;
  }
  if (coulomb_.charge.empty()) return;
  const double cutoff = coulomb_.cutoff / unit_;
  args_.coulomb_cutoff2 = cutoff * cutoff;
  args_.coulomb = coulomb_.constant / unit_;
  args_.bare = coulomb_.bare;
  args_.linear = coulomb_.linear * unit_ * unit_;
  args_.quadratic = coulomb_.quadratic * unit_ * unit_ * unit_;
  args_.constant = coulomb_.offset * unit_;
}

bool PairForces::list_is_stale() const {
  if (listed_at_.empty()) return true;
  const double limit = slack_ * slack_;
  double largest = 0, sum = 0;
  for (int i = 0; i < n_; ++i) {
    const double dx = packed_[4 * i] - listed_at_[3 * i], dy = packed_[4 * i + 1] - listed_at_[3 * i + 1];
    const double dz = packed_[4 * i + 2] - listed_at_[3 * i + 2], d2 = dx * dx + dy * dy + dz * dz;
    largest = d2 > largest ? d2 : largest;
    sum += d2;
  }
  return largest > limit || std::isnan(sum);
}

void PairForces::sort_into_cells() {
  double low[3], size[3];
  for (int c = 0; c < 3; ++c) {
    if (args_.box[c] > 0) {
      low[c] = 0, size[c] = args_.box[c];
      continue;
    }
    double high = -1e300;
    low[c] = 1e300;
    for (int i = 0; i < n_; ++i) low[c] = std::min(low[c], packed_[4 * i + c]), high = std::max(high, packed_[4 * i + c]);
    size[c] = std::max(high - low[c], 1e-9);
  }
  // No more cells than particles: thin gas in a huge open space must not cost memory.
  const int most = std::max(1, static_cast<int>(std::cbrt(static_cast<double>(n_))));
  for (int c = 0; c < 3; ++c) {
    const double fit = std::floor(size[c] / list_radius_);
    cells_[c] = !(fit >= 3) ? 1 : static_cast<int>(std::min<double>(fit, std::max(most, 3)));
  }
  const int total = cells_[0] * cells_[1] * cells_[2];
  cell_of_.resize(n_);
  cell_start_.assign(total + 1, 0);
  for (int i = 0; i < n_; ++i) {
    int cell = 0;
    for (int c = 0; c < 3; ++c) {
      double s = (packed_[4 * i + c] - low[c]) / size[c];
      if (args_.box[c] > 0) s -= std::floor(s);
      const int at = std::isfinite(s) ? std::clamp(static_cast<int>(s * cells_[c]), 0, cells_[c] - 1) : 0;
      cell = cell * cells_[c] + at;
    }
    cell_of_[i] = cell;
    ++cell_start_[cell + 1];
  }
  for (int c = 0; c < total; ++c) cell_start_[c + 1] += cell_start_[c];
  sorted_.resize(n_), x_.resize(n_), y_.resize(n_), z_.resize(n_);
  std::vector<int> next(cell_start_.begin(), cell_start_.end() - 1);
  for (int i = 0; i < n_; ++i) {
    const int at = next[cell_of_[i]]++;
    sorted_[at] = i, x_[at] = packed_[4 * i], y_[at] = packed_[4 * i + 1], z_[at] = packed_[4 * i + 2];
  }
}

// Neighbours of the particle at place `me` among places [from, to), sorted by law.
void PairForces::collect(int me, int from, int to) {
  if (from >= to) return;
  CandidateArgs search{x_.data(), y_.data(), z_.data(), {}, {}, list_radius_ * list_radius_};
  for (int c = 0; c < 3; ++c) search.box[c] = args_.box[c], search.inverse_box[c] = args_.inverse_box[c];
  found_.resize(n_ + kListPadding);
  const int count = kernels_->candidates(search, x_[me], y_[me], z_[me], from, to, found_.data());
  const int i = sorted_[me];
  const int* const laws = law_.data() + static_cast<std::size_t>(class_of_[i]) * classes_;
  for (int k = 0; k < count; ++k) {
    const int j = sorted_[found_[k]], law = laws[class_of_[j]];
    if (law >= 0 && mark_[j] != i) buckets_[law].push_back(j);
  }
}

void PairForces::flush_runs(int particle) {
  for (std::size_t law = 0; law < buckets_.size(); ++law) {
    auto& bucket = buckets_[law];
    if (bucket.empty()) continue;
    pairs_ += static_cast<std::int64_t>(bucket.size());
    while (bucket.size() % kListPadding != 0) bucket.push_back(n_);
    runs_.push_back({particle, static_cast<int>(law), static_cast<std::int64_t>(neighbours_.size()), static_cast<int>(bucket.size())});
    neighbours_.insert(neighbours_.end(), bucket.begin(), bucket.end());
    bucket.clear();
  }
}

void PairForces::build_list() {
  ++builds_;
  pairs_ = 0;
  runs_.clear(), neighbours_.clear();
  listed_at_.resize(3 * static_cast<std::size_t>(n_));
  for (int i = 0; i < n_; ++i) {
    for (int c = 0; c < 3; ++c) listed_at_[3 * i + c] = packed_[4 * i + c];
  }
  sort_into_cells();
  std::fill(mark_.begin(), mark_.end(), -1);
  const auto neighbour_cell = [&](int cell, int step, int direction) {
    const int moved = cell + step;
    if (moved >= 0 && moved < cells_[direction]) return moved;
    return args_.box[direction] > 0 ? (moved + cells_[direction]) % cells_[direction] : -1;
  };
  for (int me = 0; me < n_; ++me) {
    const int i = sorted_[me];
    for (int p = excluded_start_[i]; p < excluded_start_[i + 1]; ++p) mark_[excluded_[p]] = i;
    const int cell = cell_of_[i], cz = cell % cells_[2], cy = cell / cells_[2] % cells_[1], cx = cell / (cells_[2] * cells_[1]);
    const int rx = cells_[0] > 1 ? 1 : 0, ry = cells_[1] > 1 ? 1 : 0, rz = cells_[2] > 1 ? 1 : 0;
    for (int ax = -rx; ax <= rx; ++ax) {
      for (int ay = -ry; ay <= ry; ++ay) {
        for (int az = -rz; az <= rz; ++az) {
          const int bx = neighbour_cell(cx, ax, 0), by = neighbour_cell(cy, ay, 1), bz = neighbour_cell(cz, az, 2);
          if (bx < 0 || by < 0 || bz < 0) continue;
          const int other = (bx * cells_[1] + by) * cells_[2] + bz;
          collect(me, std::max(cell_start_[other], me + 1), cell_start_[other + 1]);  // each pair once
        }
      }
    }
    flush_runs(i);
  }
}

void PairForces::add(std::span<const double> position, std::span<double> force, Energies* energies) {
  const double scale = 1 / unit_;
  for (int i = 0; i < n_; ++i) {
    for (int c = 0; c < 3; ++c) packed_[4 * i + c] = position[3 * i + c] * scale;
  }
  if (list_is_stale()) build_list();
  std::fill(packed_force_.begin(), packed_force_.end(), 0.0);
  args_.position = packed_.data(), args_.force = packed_force_.data();
  args_.runs = runs_.data(), args_.run_count = static_cast<std::int64_t>(runs_.size());
  args_.neighbours = neighbours_.data(), args_.laws = laws_.data();
  args_.with_energy = energies != nullptr;
  args_.lj_energy = args_.coulomb_energy = 0;
  std::fill_n(args_.virial, 6, 0.0);
  kernels_->pairs(args_);
  for (int i = 0; i < n_; ++i) {
    for (int c = 0; c < 3; ++c) force[3 * i + c] += packed_force_[4 * i + c] * scale;
  }
  if (energies) {
    energies->lennard_jones += args_.lj_energy;
    energies->coulomb += args_.coulomb_energy;
    for (int c = 0; c < 6; ++c) energies->virial[c] += args_.virial[c];
  }
  if (!coulomb_.charge.empty() && coulomb_.corrections) add_corrections(position, force, energies);
}

// Excluded pairs lie in one molecule, which is whole: no image is looked for.
void PairForces::add_corrections(std::span<const double> x, std::span<double> force, Energies* energies) const {
  double energy = 0;
  for (const auto& [i, j] : excluded_pairs_) {
    const double qq = coulomb_.constant * coulomb_.charge[i] * coulomb_.charge[j];
    if (qq == 0) continue;
    double d[3], r2 = 0;
    for (int c = 0; c < 3; ++c) d[c] = x[3 * i + c] - x[3 * j + c], r2 += d[c] * d[c];
    if (!(r2 < coulomb_.cutoff * coulomb_.cutoff)) continue;
    // What is left of the pair's energy after taking out the true 1/r.
    const double r = std::sqrt(r2), bare = coulomb_.bare - 1;
    const double f = qq * (bare / (r * r2) - coulomb_.linear / r - 2 * coulomb_.quadratic);
    energy += qq * (bare / r + coulomb_.linear * r + coulomb_.quadratic * r2 - coulomb_.offset);
    for (int c = 0; c < 3; ++c) force[3 * i + c] += f * d[c], force[3 * j + c] -= f * d[c];
    if (!energies) continue;
    const double virial[6] = {d[0] * d[0], d[0] * d[1], d[0] * d[2], d[1] * d[1], d[1] * d[2], d[2] * d[2]};
    for (int c = 0; c < 6; ++c) energies->virial[c] += f * virial[c];
  }
  if (!energies) return;
  for (const double q : coulomb_.charge) energy -= 0.5 * coulomb_.constant * coulomb_.offset * q * q;
  energies->coulomb += energy;
}

}  // namespace tarsus
