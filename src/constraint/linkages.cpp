#include "tarsus/constraint/linkages.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "constraint/kernel_table.hpp"
#include "constraint/linkage_sums.hpp"
#include "tarsus/dynamics/velocity_products.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {

constexpr double kAhead = 1e-3;       ///< h|ω| of the fastest link from which rates are taken half a step ahead [rad]
constexpr double kLeastAngle = 3e-3;  ///< from which the energy is balanced [rad]

/// Changes of velocity that need no other solve: by rounding, by a share of the work of the step's forces, and after
/// another solve.
template <class R>
constexpr double kRounding = sizeof(R) == 8 ? 1e-7 : 1e-5;
constexpr double kShare = 1e-2, kAgain = 1e-3;

/// Whether the energy that the constraint takes and gives is known: it stores none and nothing moves it.
static bool conserves(const Model& model, const Equality& e) {
  const auto driven = [&](int body) { return model.bodies[std::size_t(body)].mocap >= 0; };
  return e.softness.compliance == 0 && e.kind != EqualityKind::user && !driven(e.body_a) && !driven(e.body_b);
}

template <class R>
Linkages<R>::Linkages(const EqualitySet& equalities, const BasicData<R>& data)
    : model_(equalities.model()),
      equalities_(equalities),
      width_(data.width()),
      linkage_(std::size_t(model_.njoint()), -1),
      of_row_(std::size_t(equalities.rows()), -1),
      elsewhere_(model_, data.width()) {
  const std::size_t n = linkage_.size();
  std::vector<int> group(n);  // of a root: itself or another root of its group
  std::iota(group.begin(), group.end(), 0);
  const auto first = [&](int root) {
    while (group[std::size_t(root)] != root) root = group[std::size_t(root)];
    return root;
  };
  DelassusRows<double> rows(model_);
  equalities.add_blocks(rows);
  std::vector<int> root_of(std::size_t(equalities.size()), -1);
  for (int i = 0; i < equalities.size(); ++i) {
    for (const int link : rows.block(i).links) {  // the roots are among them
      if (model_.joints[std::size_t(link)].parent >= 0) continue;
      if (root_of[std::size_t(i)] < 0) root_of[std::size_t(i)] = link;
      group[std::size_t(first(link))] = first(root_of[std::size_t(i)]);
    }
  }
  std::vector<char> joined(n), other(n);
  for (std::size_t j = 0; j < n; ++j) {
    const Joint& joint = model_.joints[j];
    if (joint.parent < 0 && moves_freely(joint.type)) other[std::size_t(first(int(j)))] = 1;
  }
  for (int i = 0; i < equalities.size(); ++i) {
    if (root_of[std::size_t(i)] < 0) continue;
    const std::size_t root = std::size_t(first(root_of[std::size_t(i)]));
    if (joins_links(equalities[i].kind)) joined[root] = 1;
    if (!conserves(model_, equalities[i])) other[root] = 1;
  }
  std::vector<int> number(n, -1);
  for (std::size_t j = 0; j < n; ++j) {
    if (model_.joints[j].parent >= 0) continue;
    const std::size_t root = std::size_t(first(int(j)));
    if (!joined[root] || other[root]) continue;
    if (number[root] < 0) number[root] = count_++;
    linkage_[j] = number[root];
  }
  for (int i = 0; i < equalities.size(); ++i) {
    for (int r = 0; root_of[std::size_t(i)] >= 0 && r < equalities[i].nrow; ++r)
      of_row_[std::size_t(equalities[i].first_row + r)] = linkage_[std::size_t(root_of[std::size_t(i)])];
  }
  if (!any()) return;
  const std::size_t w = std::size_t(width_);
  change_.resize(data.size(model_.nv)), angle_.resize(data.size(count_)), ahead_.resize(data.size(equalities.rows()));
  sums_.resize(kLinkageSums * std::size_t(count_) * w), factor_.resize(data.size(count_));
  scratch_.resize(std::size_t(std::max(model_.nq, model_.nv)) * w);
}

template <class R>
void Linkages<R>::mark(std::span<std::uint8_t> held) const {
  for (std::size_t j = 0; j < held.size(); ++j) {
    if (linkage_[j] >= 0) held[j] = kLinkage;
  }
}

template <class R>
void Linkages<R>::begin(BasicData<R>& data, double h, ConstrainedDynamics<R>& loops) {
  if (!any()) return;
  const std::size_t w = std::size_t(width_), nrow = of_row_.size(), n = std::size_t(count_) * w;
  for (std::size_t p = 0; p < std::size_t(data.packs()); ++p)
    constraint_table<R>(width_).linkage_angles(data.view(model_, int(p)), elsewhere_.state(0), linkage_.data(), count_,
                                               R(h), &data.qpos[p * std::size_t(model_.nq) * w],
                                               &data.qvel[p * std::size_t(model_.nv) * w], &angle_[p * n]);
  const auto moves = [](R square) { return square < 0 || square > R(kAhead * kAhead); };
  moves_ = std::any_of(angle_.begin(), angle_.end(), moves);
  if (!moves_) return loops.look_ahead({});
  std::fill(change_.begin(), change_.end(), R(0));
  for (std::size_t i = 0; i < ahead_.size(); ++i) {
    const int which = of_row_[i / w % nrow];
    ahead_[i] = which >= 0 && angle_[i / (nrow * w) * n + std::size_t(which) * w + i % w] > R(kAhead * kAhead);
  }
  loops.look_ahead(ahead_);
}

/// The factor by which a linkage's velocity is to be changed. @param loops the work of the loops
template <class R>
R Linkages<R>::factor(const R* sums, std::size_t lane, double square_angle, bool again, double loops) const {
  const auto sum = [&](LinkageSum of) { return double(sums[std::size_t(of) * std::size_t(width_) + lane]); };
  const double a = sum(square), b = sum(linear), rows = sum(terms) - loops, c = sum(constant) + rows;
  if (!(a > 0)) return 1;
  const double root = std::sqrt(std::max(b * b + 4 * a * c, 0.0));
  // (root - b)/(2 a) without cancellation
  const double r = b > 0 ? 2 * std::max(c, 0.0) / (root + b) : (root - b) / (2 * a);
  const double tolerance = again ? kAgain : kRounding<R> + kShare * (sum(work) + std::abs(rows)) / (2 * a);
  if (!std::isfinite(r) || std::abs(r - 1) < tolerance || (again && r > 1)) return 1;
  return R(std::clamp(r, 0.0, 1 + std::max(square_angle, 0.0)));
}

template <class R>
bool Linkages<R>::balance(BasicData<R>& data, const Solved& in, bool again, ConstrainedDynamics<R>& loops) {
  if (!moves_) return false;
  const std::size_t w = std::size_t(width_), nq = std::size_t(model_.nq) * w, nv = std::size_t(model_.nv) * w;
  const std::size_t rows = std::size_t(equalities_.rows());
  bool some = false;
  for (int p = 0; p < data.packs(); ++p) {
    const std::size_t v = std::size_t(p) * nv, row0 = std::size_t(p) * rows * w;
    constraint_table<R>(width_).linkage_energy(data.view(model_, p), elsewhere_.state(0), linkage_.data(), count_,
                                               R(in.h), &in.qpos[std::size_t(p) * nq], &in.qvel[v],
                                               in.free.empty() ? nullptr : &in.free[v], &in.next[v], &in.force[v],
                                               &in.inertia[v], scratch_.data(), sums_.data());
    const std::size_t place = std::size_t(p) * std::size_t(count_) * w;
    bool here = false;
    for (int g = 0; g < count_; ++g) {
      for (std::size_t lane = 0; lane < w; ++lane) {
        R& factor_of = factor_[place + std::size_t(g) * w + lane];
        if (again && factor_of == 1) continue;  // whether its neighbours are solved again or not
        factor_of = 1;
        const std::size_t world = std::size_t(p) * w + lane;
        const R angle = angle_[place + std::size_t(g) * w + lane];
        if (angle >= 0 && angle <= R(kLeastAngle * kLeastAngle)) continue;
        if (int(world) >= data.worlds() || (!in.found.empty() && in.found[world] == 0)) continue;
        if (loops.status(int(world)) == KktStatus::inconsistent) continue;  // no rates are those that the rows ask for
        double work = 0;
        for (std::size_t r = 0; r < rows && !in.free.empty(); ++r) {
          if (of_row_[r] != g) continue;
          const std::size_t i = row0 + r * w + lane;
          const R sum = loops.rate(p)[i - row0] + R(in.h / 2) * loops.demand(p)[i - row0];
          work -= in.h * double(loops.multiplier()[i]) * double(sum);
        }
        factor_of = factor(&sums_[kLinkageSums * std::size_t(g) * w], lane, double(angle), again, work);
        here = here || factor_of != 1;
      }
    }
    if (!here) continue;
    some = true;
    for (int j = 0; j < model_.njoint(); ++j) {
      const Joint& joint = model_.joints[std::size_t(j)];
      const int g = linkage_[std::size_t(model_.view<R>().link[j].root)];
      for (int k = joint.qvel; g >= 0 && k < joint.qvel + joint.nv(); ++k) {
        for (std::size_t lane = 0; lane < w; ++lane) {
          const std::size_t i = v + std::size_t(k) * w + lane;
          change_[i] += (factor_[place + std::size_t(g) * w + lane] - 1) * in.next[i];
        }
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t lane = 0; of_row_[r] >= 0 && lane < w; ++lane) {
        const R f = std::min(factor_[place + std::size_t(of_row_[r]) * w + lane], R(1));
        ahead_[row0 + r * w + lane] *= f * f;
      }
    }
  }
  if (some) loops.look_ahead(ahead_);
  return some;
}

template class Linkages<double>;
template class Linkages<float>;

}  // namespace tarsus
