#include "particles/site_forces.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tarsus/math/elementary.hpp"

namespace tarsus {
namespace {

constexpr double kFar = 1e12;       // in cutoffs
constexpr double kKeptSkin = 0.06;  // skin of the second list
constexpr int kMoleculesAPart = 400, kMostParts = 16, kSegments = 32;

double extent_of(std::span<const double> position, int molecule) {
  const double* p = position.data() + 9 * std::size_t(molecule);
  double most = 0;
  for (int s = 1; s < 3; ++s) {
    double d2 = 0;
    for (int c = 0; c < 3; ++c) d2 += (p[3 * s + c] - p[c]) * (p[3 * s + c] - p[c]);
    most = d2 > most || std::isnan(d2) ? d2 : most;
  }
  return most;
}

}  // namespace

SiteForces::SiteForces(int molecules, const Field& field, double unit, double skin)
    : m_(molecules), field_(field), unit_(unit), skin_(skin), kernels_(&kernels<SiteKernels>()) {
  packed_.assign(std::size_t(kSiteRow) * (m_ + 1), 0.0);
  for (int c = 0; c < kSiteRow; ++c) packed_[std::size_t(kSiteRow) * m_ + c] = c % 4 < 3 ? kFar * (1 + c) : 0.0;
  for (int s = 0; s < 27; ++s) {
    const int step[3] = {s / 9 - 1, s / 3 % 3 - 1, s % 3 - 1};
    for (int c = 0; c < 3; ++c) shift_[4 * s + c] = step[c] * field_.pairs.box[c];
  }
  args_.field = &field_.pairs, args_.law = &field_.law;
  for (int k = 0; k < 9; ++k) {
    const double charges = field_.pairs.coulomb * field_.charge[k / 3] * field_.charge[k % 3];
    args_.charges[k] = charges, args_.bare[k] = charges * field_.pairs.bare;
    args_.linear[k] = -charges * field_.pairs.linear, args_.quadratic[k] = -2 * charges * field_.pairs.quadratic;
  }
  args_.nobody = unsigned(m_) * kSiteBytes | kSameImage, args_.keep2 = (1 + kKeptSkin) * (1 + kKeptSkin);
  kept_.end.resize(m_), kept_.at.assign(packed_.size(), 0.0);
  list_.order.resize(m_), list_.offset.resize(3 * std::size_t(m_)), cells_.of.resize(m_),
      cells_.id.resize(m_ + kListPadding);
  cells_.x.resize(m_), cells_.y.resize(m_), cells_.z.resize(m_);
  parts_.resize(std::clamp(m_ / kMoleculesAPart, 1, kMostParts));
  segments_.resize(std::min(kSegments, std::max(1, m_ / 16)));
  for (std::size_t k = 0; k < segments_.size(); ++k) {
    segments_[k].from = int(std::int64_t(m_) * std::int64_t(k) / std::int64_t(segments_.size()));
    segments_[k].to = int(std::int64_t(m_) * std::int64_t(k + 1) / std::int64_t(segments_.size()));
  }
}

bool SiteForces::fits(std::span<const double> position) const {
  double extent = 0;
  for (int i = 0; i < m_; ++i) extent = std::max(extent, extent_of(position, i));
  const double reach = 1 + skin_ + 2 * std::sqrt(extent) / unit_;
  if (!(reach < 2)) return false;
  for (int c = 0; c < 3; ++c) {
    if (field_.pairs.box[c] > 0 && !(field_.pairs.box[c] > reach)) return false;
  }
  return true;
}

// Loads the molecules at these places, with the shift into the box that they had when the list was built. Returns the
// largest distances of sites from kept_.at.
SiteForces::Largest SiteForces::load(std::span<const double> position, int from, int to) {
  const double scale = 1 / unit_;
  Largest most;
  for (int k = from; k < to; ++k) {
    const double* p = position.data() + 9 * std::size_t(list_.order[k]);
    const double* o = list_.offset.data() + 3 * std::size_t(k);
    const double* q = kept_.at.data() + std::size_t(kSiteRow) * k;
    double* out = packed_.data() + std::size_t(kSiteRow) * k;
    double way[3] = {};
    for (int s = 0; s < 3; ++s) {
      for (int c = 0; c < 3; ++c) {
        const double x = p[3 * s + c] * scale - o[c], d = x - q[4 * s + c];
        out[4 * s + c] = x, way[s] += d * d;
      }
    }
    most.take(std::max(way[0], std::max(way[1], way[2])));
  }
  return most;
}

// Loads all molecules. Returns whether the second list is still valid.
bool SiteForces::load_all(std::span<const double> position, ThreadTeam& team) {
  std::vector<Largest> parts(team.size());
  team.run([&](int thread) {
    const ThreadTeam::Range range = team.share(m_, thread);
    parts[thread] = load(position, range.begin, range.end);
  });
  Largest most;
  for (const Largest& part : parts) most.take(part);
  return std::sqrt(most.first) + std::sqrt(most.second) < kKeptSkin;
}

SiteForces::Moved SiteForces::moved(std::span<const double> position, int from, int to) const {
  Moved most;
  for (int i = from; i < to; ++i) {
    const double *p = position.data() + 9 * std::size_t(i), *q = list_.at.data() + 3 * std::size_t(i);
    const double dx = p[0] - q[0], dy = p[1] - q[1], dz = p[2] - q[2], d2 = dx * dx + dy * dy + dz * dz;
    const double e2 = extent_of(position, i);
    most.extent = e2 > most.extent ? e2 : most.extent;
    most.sum += d2 + e2;
    most.way.take(d2);
  }
  return most;
}

bool SiteForces::list_is_stale(std::span<const double> position, ThreadTeam& team) const {
  if (list_.at.empty()) return true;
  std::vector<Moved> parts(team.size());
  team.run([&](int thread) {
    const ThreadTeam::Range range = team.share(m_, thread);
    parts[thread] = moved(position, range.begin, range.end);
  });
  Moved most;
  for (const Moved& part : parts) {
    most.way.take(part.way);
    most.extent = std::max(most.extent, part.extent);
    most.sum += part.sum;
  }
  const double grown = std::max(0.0, std::sqrt(most.extent) / unit_ - list_.extent);
  const double used = (std::sqrt(most.way.first) + std::sqrt(most.way.second)) / unit_ + 2 * grown;
  return !(used < skin_) || std::isnan(most.sum);
}

// The index of cells runs along z fastest, then y, then x: the cells of a column and their molecules are consecutive.
void SiteForces::sort_into_cells(std::span<const double> position) {
  const double scale = 1 / unit_;
  const double* const box = field_.pairs.box;
  list_.at.resize(3 * std::size_t(m_));
  double extent = 0, high[3];
  for (int i = 0; i < m_; ++i) {
    for (int c = 0; c < 3; ++c) list_.at[3 * i + c] = position[9 * std::size_t(i) + c];
    extent = std::max(extent, extent_of(position, i));
  }
  list_.extent = std::sqrt(extent) / unit_;
  list_.radius = 1 + skin_ + 2 * list_.extent;
  for (int c = 0; c < 3; ++c) {
    cells_.low[c] = 0, cells_.size[c] = box[c];
    if (box[c] > 0) continue;
    cells_.low[c] = 1e300, high[c] = -1e300;
    for (int i = 0; i < m_; ++i) {
      const double x = list_.at[3 * i + c] * scale;
      cells_.low[c] = std::min(cells_.low[c], x), high[c] = std::max(high[c], x);
    }
    cells_.size[c] = std::max(high[c] - cells_.low[c], 1e-9);
  }
  // Narrow columns contain little volume outside the sphere. There are no more cells than molecules.
  const double most = std::max(1.0, 2.0 * elementary::cube_root(m_));
  for (int c = 0; c < 3; ++c)
    cells_.count[c] = int(std::clamp(std::floor(cells_.size[c] * (c < 2 ? 3 : 4) / list_.radius), 1.0, most));
  const int cells = cells_.count[0] * cells_.count[1] * cells_.count[2];
  cells_.start.assign(std::size_t(cells) + 1, 0);
  std::vector<double> images(3 * std::size_t(m_));
  for (int i = 0; i < m_; ++i) {
    int cell = 0;
    for (int c = 0; c < 3; ++c) {
      double s = (list_.at[3 * i + c] * scale - cells_.low[c]) / cells_.size[c];
      const double whole = box[c] > 0 && std::isfinite(s) ? std::floor(s) : 0.0;
      images[3 * i + c] = whole * box[c];
      s -= whole;
      const int at = std::isfinite(s) ? std::clamp(int(s * cells_.count[c]), 0, cells_.count[c] - 1) : 0;
      cell = cell * cells_.count[c] + at;
    }
    cells_.of[i] = cell;
    ++cells_.start[cell + 1];
  }
  for (int b = 0; b < cells; ++b) cells_.start[b + 1] += cells_.start[b];
  std::vector<int> next(cells_.start.begin(), cells_.start.end() - 1);
  for (int i = 0; i < m_; ++i) {
    const int at = next[cells_.of[i]]++;
    list_.order[at] = i, cells_.id[at] = unsigned(at) * kSiteBytes;
    for (int c = 0; c < 3; ++c) list_.offset[3 * std::size_t(at) + c] = images[3 * std::size_t(i) + c];
  }
}

// Lists the later places near each of the segment's places, column by column of each image.
void SiteForces::list_segment(Segment& segment) {
  const NearArgs near{cells_.x.data(), cells_.y.data(), cells_.z.data(), cells_.id.data(), list_.radius * list_.radius};
  const double* const box = field_.pairs.box;
  const double slack = 1e-9;  // the computation of a molecule's cell is rounded
  segment.entry.clear(), segment.pairs = 0;
  std::int64_t count = 0;
  const double wide[3] = {cells_.size[0] / cells_.count[0], cells_.size[1] / cells_.count[1],
                          cells_.size[2] / cells_.count[2]};
  for (int i = segment.from; i < segment.to; ++i) {
    const double at[3] = {cells_.x[i], cells_.y[i], cells_.z[i]};
    const std::int64_t begin = count;
    int from[3], to[3];
    for (int c = 0; c < 3; ++c) {
      from[c] = int(std::floor((at[c] - cells_.low[c] - list_.radius) / wide[c] - slack));
      to[c] = int(std::floor((at[c] - cells_.low[c] + list_.radius) / wide[c] + slack));
      if (box[c] == 0) from[c] = std::max(from[c], 0), to[c] = std::min(to[c], cells_.count[c] - 1);
    }
    const auto gap2 = [&](int c, int cell) {  // squared distance to a layer of cells
      const double below = cells_.low[c] + cell * wide[c] - at[c], above = -below - wide[c];
      const double d = std::max(0.0, std::max(below, above) - slack);
      return d * d;
    };
    for (int cx = from[0]; cx <= to[0]; ++cx) {
      const int sx = cx < 0 ? -1 : cx >= cells_.count[0] ? 1 : 0;
      const int column_x = (cx - sx * cells_.count[0]) * cells_.count[1];
      const double left_x = list_.radius * list_.radius - gap2(0, cx);
      for (int cy = from[1]; cy <= to[1]; ++cy) {
        const int sy = cy < 0 ? -1 : cy >= cells_.count[1] ? 1 : 0;
        const double left = left_x - gap2(1, cy);
        if (!(left > 0)) continue;
        const int column = (column_x + cy - sy * cells_.count[1]) * cells_.count[2];
        if (cells_.start[column + cells_.count[2]] <= i + 1) continue;
        const double half = std::sqrt(left);
        const int z0 = std::max(from[2], int(std::floor((at[2] - cells_.low[2] - half) / wide[2] - slack)));
        const int z1 = std::min(to[2], int(std::floor((at[2] - cells_.low[2] + half) / wide[2] + slack)));
        for (int sz = z0 < 0 ? -1 : 0; sz <= (z1 >= cells_.count[2] ? 1 : 0); ++sz) {
          const int k0 = std::max(z0 - sz * cells_.count[2], 0),
                    k1 = std::min(z1 - sz * cells_.count[2], cells_.count[2] - 1);
          if (k0 > k1) continue;
          const int first = std::max(cells_.start[column + k0], i + 1), last = cells_.start[column + k1 + 1];
          if (first >= last) continue;
          const std::size_t need = std::size_t(count) + std::size_t(last - first) + 2 * kListPadding;
          if (segment.entry.size() < need) segment.entry.resize(need + need / 2);
          const int s = (sx + 1) * 9 + (sy + 1) * 3 + sz + 1;
          const double point[3] = {at[0] - shift_[4 * s], at[1] - shift_[4 * s + 1], at[2] - shift_[4 * s + 2]};
          unsigned* const out = segment.entry.data() + count;
          const int found = kernels_->near_places(near, point, first, last, out);
          for (int k = 0; k < found; ++k) out[k] += unsigned(s);
          count += found;
        }
      }
    }
    segment.pairs += count - begin;
    if (segment.entry.size() < std::size_t(count) + kListPadding)
      segment.entry.resize(2 * std::size_t(count) + kListPadding);
    while (count % kListPadding != 0) segment.entry[count++] = args_.nobody;
    list_.start[i + 1] = count;  // relative to the segment
  }
  segment.entry.resize(count);
}

// Cuts the molecules into runs with about equal numbers of pairs.
void SiteForces::cut_into_parts(ThreadTeam& team) {
  const auto count = std::int64_t(parts_.size());
  int at = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    Part& part = parts_[k];
    part.from = at;
    const std::int64_t goal = list_.start[m_] * (k + 1) / count;
    at = k + 1 == count
             ? m_
             : int(std::lower_bound(list_.start.begin() + at, list_.start.begin() + m_, goal) - list_.start.begin());
    part.to = at;
  }
  team.run([&](int thread) {
    for (std::size_t k = thread; k < parts_.size(); k += team.size()) {
      Part& part = parts_[k];
      part.force.resize(std::size_t(kSiteRow) * (m_ + 1));
      part.touched.assign(blocks(), 0);
      for (int i = part.from; i < part.to; ++i) part.touched[i / kBlock] = 1;
      for (std::int64_t p = list_.start[part.from]; p < list_.start[part.to]; ++p)
        part.touched[list_.entry[p] / (kSiteBytes * kBlock)] = 1;
    }
  });
}

void SiteForces::build_list(std::span<const double> position, ThreadTeam& team) {
  ++list_.builds;
  sort_into_cells(position);
  load(position, 0, m_);
  for (int k = 0; k < m_; ++k) {
    const double* p = packed_.data() + std::size_t(kSiteRow) * k;
    cells_.x[k] = p[0], cells_.y[k] = p[1], cells_.z[k] = p[2];
  }
  list_.start.assign(std::size_t(m_) + 1, 0);
  team.run([&](int thread) {
    for (std::size_t k = thread; k < segments_.size(); k += team.size()) list_segment(segments_[k]);
  });
  std::int64_t before = 0;
  list_.count = 0;
  for (const Segment& segment : segments_) {
    for (int i = segment.from; i < segment.to; ++i) list_.start[i + 1] += before;
    before += std::int64_t(segment.entry.size());
    list_.count += segment.pairs;
  }
  list_.entry.resize(before), kept_.entry.resize(before);
  kept_.due = true;
  team.run([&](int thread) {
    for (std::size_t k = thread; k < segments_.size(); k += team.size())
      std::copy(segments_[k].entry.begin(), segments_[k].entry.end(),
                list_.entry.begin() + list_.start[segments_[k].from]);
  });
  cut_into_parts(team);
}

void SiteForces::compute_part(Part& part, bool with_energy) {
  for (std::size_t b = 0; b < part.touched.size(); ++b) {
    if (!part.touched[b]) continue;
    const auto from = part.force.begin() + std::ptrdiff_t(b * kBlock * kSiteRow);
    std::fill(from, from + std::min<std::ptrdiff_t>(kBlock * kSiteRow, part.force.end() - from), 0.0);
  }
  SiteArgs args = args_;
  args.position = packed_.data(), args.shift = shift_, args.start = list_.start.data();
  args.force = part.force.data(), args.with_energy = with_energy;
  if (kept_.due) {
    args.entry = list_.entry.data(), args.end = list_.start.data() + 1, args.kept = kept_.entry.data(),
    args.kept_end = kept_.end.data();
    const std::ptrdiff_t from = std::ptrdiff_t(kSiteRow) * part.from, to = std::ptrdiff_t(kSiteRow) * part.to;
    std::copy(packed_.begin() + from, packed_.begin() + to, kept_.at.begin() + from);
  } else {
    args.entry = kept_.entry.data(), args.end = kept_.end.data();
  }
  kernels_->sites(args, part.from, part.to);
  part.lj = args.lj_energy, part.coulomb = args.coulomb_energy;
  std::copy_n(args.virial, 6, part.virial);
}

// The smooth form's terms between the sites of one molecule, which is whole, so that no nearest image is needed.
void SiteForces::correct(const double* x, double* force, Correction* correction) const {
  const Coulomb& coulomb = field_.coulomb;
  const double bare = coulomb.bare - 1;  // without the true 1/r
  const bool rooted = correction || bare != 0 || coulomb.linear != 0;
  for (int i = 0; i < 2; ++i) {
    for (int j = i + 1; j < 3; ++j) {
      const double qq = coulomb.constant * field_.charge[i] * field_.charge[j];
      double d[3], r2 = 0;
      for (int c = 0; c < 3; ++c) d[c] = x[3 * i + c] - x[3 * j + c], r2 += d[c] * d[c];
      if (!(r2 < coulomb.cutoff * coulomb.cutoff)) continue;
      const double r = rooted ? std::sqrt(r2) : 1.0, rinv = 1 / r;
      const double f = qq * (bare * rinv * rinv * rinv - coulomb.linear * rinv - 2 * coulomb.quadratic);
      for (int c = 0; c < 3; ++c) force[3 * i + c] += f * d[c], force[3 * j + c] -= f * d[c];
      if (!correction) continue;
      correction->energy += qq * (bare * rinv + coulomb.linear * r + coulomb.quadratic * r2 - coulomb.offset);
      const double virial[6] = {d[0] * d[0], d[0] * d[1], d[0] * d[2], d[1] * d[1], d[1] * d[2], d[2] * d[2]};
      for (int c = 0; c < 6; ++c) correction->virial[c] += f * virial[c];
    }
  }
}

// Adds the parts' forces of one block, in the parts' order.
void SiteForces::collect(std::span<const double> position, std::span<double> force, int block,
                         Correction* correction) const {
  const double scale = 1 / unit_;
  const int begin = block * kBlock, end = std::min(m_, begin + kBlock);
  if (begin >= end) return;
  const std::size_t count = std::size_t(end - begin) * kSiteRow;
  double sum[kBlock * kSiteRow] = {};
  for (const Part& part : parts_) {
    if (!part.touched[block]) continue;
    const double* f = part.force.data() + std::size_t(begin) * kSiteRow;
    for (std::size_t c = 0; c < count; ++c) sum[c] += f[c];
  }
  for (int k = begin; k < end; ++k) {
    const std::size_t molecule = 9 * std::size_t(list_.order[k]);
    double* out = force.data() + molecule;
    const double* f = sum + std::size_t(k - begin) * kSiteRow;
    for (int s = 0; s < 3; ++s) {
      for (int c = 0; c < 3; ++c) out[3 * s + c] += f[4 * s + c] * scale;
    }
    if (field_.corrections) correct(position.data() + molecule, out, correction);
  }
}

bool SiteForces::add(std::span<const double> position, std::span<double> force, Energies* energies, ThreadTeam& team) {
  if (list_is_stale(position, team)) {
    if (!fits(position)) return false;
    build_list(position, team);
  } else {
    kept_.due = !load_all(position, team);
  }
  corrections_.assign(blocks(), {});
  team.run([&](int thread) {
    for (std::size_t k = thread; k < parts_.size(); k += team.size()) compute_part(parts_[k], energies != nullptr);
    team.barrier();
    const ThreadTeam::Range range = team.share(blocks(), thread);
    for (int block = range.begin; block < range.end; ++block)
      collect(position, force, block, energies ? &corrections_[block] : nullptr);
  });
  if (!energies) return true;
  const auto add_virial = [&](const double* virial) {
    for (int c = 0; c < 6; ++c) energies->virial[c] += virial[c];
  };
  for (const Part& part : parts_) {
    energies->lennard_jones += part.lj, energies->coulomb += part.coulomb;
    add_virial(part.virial);
  }
  for (const Correction& correction : corrections_) {
    energies->coulomb += correction.energy;
    add_virial(correction.virial);
  }
  return true;
}

}  // namespace tarsus
