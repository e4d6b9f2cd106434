#include "particles/pair_forces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "tarsus/base/error.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {
namespace {

// GROMACS' force switch, in the length unit of its two radii: adds a t² + b t³ to -d/dr of r^-p.
struct Switch {
  double a, b, k;
};
Switch switch_constants(int p, double from, double to) {
  const double width = to - from, power = elementary::pow(to, p + 2);
  const double a = -p * ((p + 4) * to - (p + 1) * from) / (power * width * width);
  const double b = p * ((p + 3) * to - (p + 1) * from) / (power * width * width * width);
  return {a, b, elementary::pow(to, -p) - a / 3 * elementary::pow(width, 3) - b / 4 * elementary::pow(width, 4)};
}

}  // namespace

PairForces::PairForces(const ParticleSystem& system)
    : n_(system.particles()), kernels_(&kernels<ParticleKernels>()), coulomb_(system.force_field.coulomb) {
  const ForceField& field = system.force_field;
  unit_ = std::max(field.lennard_jones.type.empty() ? 0 : field.lennard_jones.cutoff,
                   coulomb_.charge.empty() ? 0 : coulomb_.cutoff);
  // A larger skin means longer lists and fewer builds. The optimum for 216 waters is flat around this value.
  skin_ = field.skin > 0 ? field.skin / unit_ : 0.07;
  list_radius_ = 1 + skin_;
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
  find_sites(system);
}

// Detects systems of molecules of three charges with Lennard-Jones on the first only, consecutive particles, and
// exclusions within the molecule.
void PairForces::find_sites(const ParticleSystem& system) {
  if (n_ == 0 || n_ % 3 != 0 || n_ / 3 > kMostMolecules || coulomb_.charge.empty()) return;
  for (int i = 0; i < n_; ++i) {
    const int like = i % 3, first = i - like;
    if (laws_.class_of[i] != laws_.class_of[like] || coulomb_.charge[i] != coulomb_.charge[like]) return;
    if (excluded_.start[i + 1] - excluded_.start[i] != 2) return;
    for (int p = excluded_.start[i]; p < excluded_.start[i + 1]; ++p) {
      if (excluded_.list[p] < first || excluded_.list[p] >= first + 3) return;
    }
  }
  SiteForces::Field sites{
      args_, {}, {coulomb_.charge[0], coulomb_.charge[1], coulomb_.charge[2]}, coulomb_.corrections, coulomb_};
  sites.coulomb.charge.clear();
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      const int law = laws_.of_classes[laws_.class_of[a] * laws_.classes + laws_.class_of[b]];
      if (law < 0 || !laws_.all[law].lennard_jones) continue;
      if (a + b > 0) return;
      sites.law = laws_.all[law];
    }
  }
  const double skin = system.force_field.skin > 0 ? skin_ : 0.08;
  sites_ = std::make_unique<SiteForces>(n_ / 3, sites, unit_, skin);
  if (!sites_->fits(system.position)) sites_.reset();
}

// Particles of one class have the same laws: the same Lennard-Jones type, and a charge or none.
void PairForces::make_classes(const ForceField& field) {
  std::map<std::pair<int, bool>, int> ids;
  std::vector<std::pair<int, bool>> kinds;
  for (int i = 0; i < n_; ++i) {
    const int type = field.lennard_jones.type.empty() ? -1 : field.lennard_jones.type[i];
    const std::pair<int, bool> kind(type, !coulomb_.charge.empty() && coulomb_.charge[i] != 0);
    const auto [it, fresh] = ids.try_emplace(kind, static_cast<int>(ids.size()));
    if (fresh) kinds.push_back(kind);
    laws_.class_of.push_back(it->second);
  }
  laws_.classes = static_cast<int>(kinds.size());
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
        const double s6 = elementary::pow(lj.sigma[type_a * lj.types + type_b] / unit_, 6),
                     rc6 = elementary::pow(unit_ / lj.cutoff, 6);
        law.c6 = 4 * epsilon * s6, law.c12 = law.c6 * s6;
        if (lj.mode == LennardJones::Cutoff::shifted) law.shift = law.c12 * rc6 * rc6 - law.c6 * rc6;
      }
      if (!law.coulomb && !law.lennard_jones) {
        laws_.of_classes.push_back(-1);
        continue;
      }
      const auto [it, fresh] = known.try_emplace({law.c6, law.c12, law.coulomb}, static_cast<int>(laws_.all.size()));
      if (fresh) laws_.all.push_back(law);
      laws_.of_classes.push_back(it->second);
    }
  }
  laws_.of_class.resize(laws_.classes);
  for (int a = 0; a < laws_.classes; ++a) {
    for (int b = 0; b < laws_.classes; ++b) {
      const int law = laws_.of_classes[a * laws_.classes + b];
      if (law >= 0 && std::find(laws_.of_class[a].begin(), laws_.of_class[a].end(), law) == laws_.of_class[a].end())
        laws_.of_class[a].push_back(law);
    }
  }
}

void PairForces::make_exclusions(const ForceField& field) {
  std::vector<std::vector<int>> lists(n_);
  for (const auto& [i, j] : field.exclusions) {
    lists[i].push_back(j), lists[j].push_back(i);
  }
  excluded_.start.assign(1, 0);
  for (int i = 0; i < n_; ++i) {
    auto& list = lists[i];
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    excluded_.list.insert(excluded_.list.end(), list.begin(), list.end());
    excluded_.start.push_back(static_cast<int>(excluded_.list.size()));
    for (const int j : list) {
      if (j > i) excluded_.pairs.push_back({i, j});
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
    const Switch s6 = switch_constants(6, args_.switch_from, lj_cutoff),
                 s12 = switch_constants(12, args_.switch_from, lj_cutoff);
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

// No new pair is within the cutoff while the two largest displacements add up to less than the skin.
bool PairForces::list_is_stale() const {
  if (listed_at_.empty()) return true;
  double first = 0, second = 0, sum = 0;
  for (int i = 0; i < n_; ++i) {
    const double dx = packed_[4 * i] - listed_at_[3 * i], dy = packed_[4 * i + 1] - listed_at_[3 * i + 1];
    const double dz = packed_[4 * i + 2] - listed_at_[3 * i + 2], d2 = dx * dx + dy * dy + dz * dz;
    sum += d2;
    if (d2 > second) second = d2 > first ? std::exchange(first, d2) : d2;
  }
  return !(std::sqrt(first) + std::sqrt(second) < skin_) || std::isnan(sum);
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
    for (int i = 0; i < n_; ++i)
      low[c] = std::min(low[c], packed_[4 * i + c]), high = std::max(high, packed_[4 * i + c]);
    size[c] = std::max(high - low[c], 1e-9);
  }
  // No more cells than particles, so that a thin gas in a huge open space does not take memory.
  const int most = std::max(1, elementary::cube_root(n_));
  for (int c = 0; c < 3; ++c) {
    const double fit = std::floor(size[c] / list_radius_);
    cells_.count[c] = !(fit >= 3) ? 1 : static_cast<int>(std::min<double>(fit, std::max(most, 3)));
  }
  const int bins = cells_.count[0] * cells_.count[1] * cells_.count[2] * laws_.classes;
  cells_.bin_of.resize(n_);
  cells_.bin_start.assign(bins + 1, 0);
  for (int i = 0; i < n_; ++i) {
    int cell = 0;
    for (int c = 0; c < 3; ++c) {
      double s = (packed_[4 * i + c] - low[c]) / size[c];
      if (args_.box[c] > 0) s -= std::floor(s);
      const int at = std::isfinite(s) ? std::clamp(static_cast<int>(s * cells_.count[c]), 0, cells_.count[c] - 1) : 0;
      cell = cell * cells_.count[c] + at;
    }
    cells_.bin_of[i] = cell * laws_.classes + laws_.class_of[i];
    ++cells_.bin_start[cells_.bin_of[i] + 1];
  }
  for (int b = 0; b < bins; ++b) cells_.bin_start[b + 1] += cells_.bin_start[b];
  cells_.sorted.resize(n_ + kListPadding), cells_.x.resize(n_), cells_.y.resize(n_), cells_.z.resize(n_);
  std::vector<int> next(cells_.bin_start.begin(), cells_.bin_start.end() - 1);
  for (int i = 0; i < n_; ++i) {
    const int at = next[cells_.bin_of[i]]++;
    cells_.sorted[at] = i, cells_.x[at] = packed_[4 * i], cells_.y[at] = packed_[4 * i + 1],
    cells_.z[at] = packed_[4 * i + 2];
  }
}

// Appends the neighbours with one law of the particle at `place`. Only later places are searched, so each pair occurs
// once.
void PairForces::add_run(int place, int law) {
  CandidateArgs search{
      cells_.x.data(), cells_.y.data(), cells_.z.data(), cells_.sorted.data(), {}, {}, list_radius_ * list_radius_};
  for (int c = 0; c < 3; ++c) search.box[c] = args_.box[c], search.inverse_box[c] = args_.inverse_box[c];
  const int i = cells_.sorted[place], cell = cells_.bin_of[i] / laws_.classes;
  const int here[3] = {cell / (cells_.count[2] * cells_.count[1]), cell / cells_.count[2] % cells_.count[1],
                       cell % cells_.count[2]};
  const int* const laws = laws_.of_classes.data() + static_cast<std::size_t>(laws_.class_of[i]) * laws_.classes;
  const std::int64_t begin = list_.count;
  int reach[3], other[3];
  for (int c = 0; c < 3; ++c) reach[c] = cells_.count[c] > 1 ? 1 : 0;
  for (int code = 0; code < 27; ++code) {
    const int step[3] = {code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1};
    bool there = true;
    for (int c = 0; c < 3; ++c) {
      other[c] = here[c] + step[c];
      there = there && std::abs(step[c]) <= reach[c];
      if (args_.box[c] > 0) other[c] = (other[c] + cells_.count[c]) % cells_.count[c];
      there = there && other[c] >= 0 && other[c] < cells_.count[c];
    }
    if (!there) continue;
    const int bin = ((other[0] * cells_.count[1] + other[1]) * cells_.count[2] + other[2]) * laws_.classes;
    for (int kind = 0; kind < laws_.classes; ++kind) {
      if (laws[kind] != law) continue;
      const int from = std::max(cells_.bin_start[bin + kind], place + 1), to = cells_.bin_start[bin + kind + 1];
      if (from < to)
        list_.count += kernels_->candidates(search, cells_.x[place], cells_.y[place], cells_.z[place], from, to,
                                            list_.neighbours.data() + list_.count);
    }
  }
  drop_excluded(i, begin);
  list_.pairs += list_.count - begin;
  if (list_.count == begin) return;
  while ((list_.count - begin) % kListPadding != 0) list_.neighbours[list_.count++] = n_;
  list_.runs.push_back({i, law, begin, static_cast<int>(list_.count - begin)});
}

void PairForces::drop_excluded(int particle, std::int64_t begin) {
  int* const from = list_.neighbours.data() + begin;
  for (int p = excluded_.start[particle]; p < excluded_.start[particle + 1]; ++p) {
    int* const end = list_.neighbours.data() + list_.count;
    int* const found = std::find(from, end, excluded_.list[p]);
    if (found != end) *found = list_.neighbours[--list_.count];
  }
}

void PairForces::build_list() {
  ++list_.builds;
  list_.pairs = list_.count = 0;
  list_.runs.clear();
  listed_at_.resize(3 * static_cast<std::size_t>(n_));
  for (int i = 0; i < n_; ++i) {
    for (int c = 0; c < 3; ++c) listed_at_[3 * i + c] = packed_[4 * i + c];
  }
  sort_into_cells();
  for (int place = 0; place < n_; ++place) {
    for (const int law : laws_.of_class[laws_.class_of[cells_.sorted[place]]]) {
      const std::size_t most = static_cast<std::size_t>(list_.count) + n_ + 2 * kListPadding;
      if (list_.neighbours.size() < most) list_.neighbours.resize(most + most / 2);
      add_run(place, law);
    }
  }
}

void PairForces::add(std::span<const double> position, std::span<double> force, Energies* energies, ThreadTeam& team) {
  by_sites_ = sites_ && sites_->add(position, force, energies, team);
  if (!by_sites_) add_general(position, force, energies);
  if (coulomb_.charge.empty() || !coulomb_.corrections) return;
  if (!by_sites_) add_corrections(position, force, energies);
  if (!energies) return;
  for (const double q : coulomb_.charge) energies->coulomb -= 0.5 * coulomb_.constant * coulomb_.offset * q * q;
}

void PairForces::add_general(std::span<const double> position, std::span<double> force, Energies* energies) {
  const double scale = 1 / unit_;
  for (int i = 0; i < n_; ++i) {
    for (int c = 0; c < 3; ++c) packed_[4 * i + c] = position[3 * i + c] * scale;
  }
  if (list_is_stale()) build_list();
  std::fill(packed_force_.begin(), packed_force_.end(), 0.0);
  args_.position = packed_.data(), args_.force = packed_force_.data();
  args_.runs = list_.runs.data(), args_.run_count = static_cast<std::int64_t>(list_.runs.size());
  args_.neighbours = list_.neighbours.data(), args_.laws = laws_.all.data();
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
}

// Excluded pairs are within one molecule, which is whole, so no nearest image is needed.
void PairForces::add_corrections(std::span<const double> x, std::span<double> force, Energies* energies) const {
  double energy = 0;
  for (const auto& [i, j] : excluded_.pairs) {
    const double qq = coulomb_.constant * coulomb_.charge[i] * coulomb_.charge[j];
    if (qq == 0) continue;
    double d[3], r2 = 0;
    for (int c = 0; c < 3; ++c) d[c] = x[3 * i + c] - x[3 * j + c], r2 += d[c] * d[c];
    if (!(r2 < coulomb_.cutoff * coulomb_.cutoff)) continue;
    // The pair's energy minus the true 1/r.
    const double r = std::sqrt(r2), bare = coulomb_.bare - 1;
    const double f = qq * (bare / (r * r2) - coulomb_.linear / r - 2 * coulomb_.quadratic);
    energy += qq * (bare / r + coulomb_.linear * r + coulomb_.quadratic * r2 - coulomb_.offset);
    for (int c = 0; c < 3; ++c) force[3 * i + c] += f * d[c], force[3 * j + c] -= f * d[c];
    if (!energies) continue;
    const double virial[6] = {d[0] * d[0], d[0] * d[1], d[0] * d[2], d[1] * d[1], d[1] * d[2], d[2] * d[2]};
    for (int c = 0; c < 6; ++c) energies->virial[c] += f * virial[c];
  }
  if (energies) energies->coulomb += energy;
}

}  // namespace tarsus
