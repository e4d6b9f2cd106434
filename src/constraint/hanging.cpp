#include "tarsus/constraint/hanging.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "constraint/kernel_table.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/constraint/equality.hpp"
#include "tarsus/constraint/reference_mass.hpp"
#include "tarsus/dynamics/own_numbers.hpp"

namespace tarsus {

namespace {

constexpr double kResolvedSwing = 1.44;  ///< (h ω)² of the fastest swing that steps resolve,
constexpr double kTaut = 0.25;  ///< and of trees on the world that loops hold, which may pull by more than the weight

/// A model in its reference pose, how its joints may move, and what its equality constraints join.
struct Rest {
  Rest(const Model& model, const EqualitySet* equalities)
      : model(model), link(model.view<double>().link), data(model), n(at(model.njoint())), may(n) {
    kinematics<double>(model, data, data.qpos);
    for (std::size_t i = 0; i < n; ++i) may[i] = slides_on_axis(link[i].joint) ? 0 : kJointTurns;
    for (std::size_t i = n; i-- > 0;) {
      const int to = link[i].parent;
      if (to >= 0 && moves_freely(link[at(to)].joint)) may[at(to)] = 0;
    }
    std::vector<char> held(n);
    for (int i = 0; equalities && i < equalities->size(); ++i) {
      for (const int root : ends((*equalities)[i])) {
        if (root >= 0) held[at(root)] = 1;
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (link[i].parent < 0 && moves_freely(link[i].joint) && !held[i]) may[i] |= kTreeFlies;
    }
  }
  bool turns(std::size_t i) const { return (may[i] & kJointTurns) != 0; }
  /// The roots of the trees that an equality between bodies joins, -1 for the world; {-1, -1} for other kinds.
  std::array<int, 2> ends(const Equality& e) const {
    if (!joins_links(e.kind)) return {-1, -1};
    const auto root = [&](int body) {
      const int on = model.bodies[at(body)].link;
      return on < 0 ? -1 : link[at(on)].root;
    };
    return {root(e.body_a), root(e.body_b)};
  }
  /// Roots of trees that loops leave free to swing: a tree with loads, each a free body with one equality, free bodies
  /// that are joined to the world and to one another alone, and `cables` between two points.
  /// @param cables [root] what is light for its loads, if loops hold it
  std::vector<char> loose(const EqualitySet& equalities, const std::vector<char>& cables) const {
    const auto lone = [&](int root) { return root >= 0 && moves_freely(link[at(root)].joint) && turns(at(root)); };
    std::vector<int> count(n);
    for (int i = 0; i < equalities.size(); ++i) {
      for (const int root : ends(equalities[i])) {
        if (root >= 0) ++count[at(root)];
      }
    }
    std::vector<char> all(n);
    std::transform(count.begin(), count.end(), all.begin(), [](int c) { return char(c > 0); });
    for (int i = 0; i < equalities.size(); ++i) {
      const std::array<int, 2> of = ends(equalities[i]);
      for (int side = 0; side < 2; ++side) {
        const int root = of[at(side)], other = of[at(1 - side)];
        if (root < 0 || cables[at(root)]) continue;
        const bool swings = lone(root) ? other < 0 || lone(other) : lone(other) && count[at(other)] == 1;
        if (!swings) all[at(root)] = 0;
      }
    }
    return all;
  }

  /// What each joint carries in a world, the mean moment of inertia over all axes through its origin [kg m²].
  std::vector<double> carried(const Data& worlds, int world) const {
    std::vector<RigidInertia<double>> sum;
    for (std::size_t i = 0; i < n; ++i) {
      const auto [mass, h, I] = inertia_of(model, worlds, int(i), world);
      const Mat3d& R = data.links()[i].R;
      sum.push_back({mass, R * h, rotate(R, I)});
    }
    std::vector<double> mean(n);
    for (std::size_t i = n; i-- > 0;) {
      if (const int to = link[i].parent; to >= 0) sum[at(to)] = sum[at(to)] + shift_back(sum[i], data.links()[i].r);
      mean[i] = (sum[i].I.xx + sum[i].I.yy + sum[i].I.zz) / 3;
    }
    return mean;
  }

  const Model& model;
  const LinkConstants<double>* link;
  Data data;
  std::size_t n;
  std::vector<std::uint8_t> may;  ///< [link] kJointTurns, kTreeFlies
};

}  // namespace

template <class R>
HangingLinks<R>::HangingLinks(const Model& model, double h, const EqualitySet* equalities)
    : links_(at(model.njoint())), h_(h), equalities_(equalities) {
  const Rest rest(model, equalities);
  for (std::size_t i = 0; i < rest.n; ++i)
    possible_ = possible_ || equalities || (rest.turns(i) && !moves_freely(rest.link[i].joint));
  if (!possible_) return;
  RestingWorlds one(model);
  const double gravity[] = {norm(model.gravity)};
  const std::vector<HangingLink<double>> links = this->links(model, one, gravity, reference_masses(model, one));
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto [hangs, loose, weight, above, most] = links[i];
    links_[i] = {R(hangs), R(loose), R(weight), R(above), R(most)};
    some_ = some_ || hangs > 0;
  }
}

template <class R>
std::vector<HangingLink<double>> HangingLinks<R>::links(const Model& model, RestingWorlds& worlds,
                                                        std::span<const double> gravity,
                                                        std::span<const ReferenceMass> masses) const {
  const Rest rest(model, equalities_);
  Data& data = worlds.data;
  const std::size_t width = at(data.width()), nv = at(model.nv), n = rest.n, count = at(data.worlds());
  check_size("gravity", gravity.size(), count), check_size("masses", masses.size(), count * n);
  kinematics<double>(model, data, data.qpos);
  AlignedVector<double> scratch((3 * nv + n) * width), fall(width), numbers(kRestingNumbers * n * width);
  std::vector<HangingLink<double>> links;
  std::vector<char> cables(n);
  for (std::size_t world = 0; world < count; ++world) {
    const std::size_t lane = world % width, first = world - lane;
    const double* const armature = &data.joint_inertia[first * nv];
    if (lane == 0) {
      for (std::size_t k = 0; k < width; ++k) fall[k] = gravity[std::min(first + k, count - 1)];
      constraint_table<double>(int(width))
          .resting_links(data.view(model, int(first / width)), data.state(int(first / width)), rest.may.data(),
                         armature, fall.data(), scratch.data(), reinterpret_cast<RestingLink<double>*>(numbers.data()));
    }
    const auto resting = [&](std::size_t i) {
      const double* const x = &numbers[kRestingNumbers * i * width + lane];
      return RestingLink<double>{x[0], x[width]};
    };
    const auto swings_by = [&](std::size_t i) { return h_ * h_ * resting(at(rest.link[i].root)).fastest; };
    for (std::size_t i = 0; i < n; ++i)
      cables[i] = h_ * h_ * resting(i).fastest > (moves_freely(rest.link[i].joint) ? kResolvedSwing : kTaut);
    const std::vector<char> loose = equalities_ ? rest.loose(*equalities_, cables) : std::vector<char>(n);
    const std::vector<double> carried = rest.carried(data, int(world));
    for (std::size_t i = 0; i < n; ++i) {
      const LinkConstants<double>& link = rest.link[i];
      const double own = armature[at(link.qvel) * width + lane], mean = carried[i] + own;
      const double weight = rest.turns(i) && mean > 0 ? 1 / std::sqrt(mean) : 0;
      const double above = weight + (link.parent >= 0 ? links[world * n + at(link.parent)].above : 0);
      const bool hangs = resting(i).swings > 0 && swings_by(i) > kResolvedSwing;
      links.push_back({double(hangs), double(loose[at(link.root)] != 0), weight, above,
                       kUnresolved * (masses[world * n + i].joint + own)});
    }
  }
  return links;
}

template <class R>
void HangingLinks<R>::find(const Model& model, BasicData<R>& data, AlignedVector<R>& inertia) {
  inertia.clear();
  const auto own = [&](std::size_t p) { return data.own && !data.own[p].hanging.empty() ? &data.own[p] : nullptr; };
  const auto may_hang = [&](std::size_t p) { return own(p) ? own(p)->hangs : some_; };
  const std::size_t w = std::size_t(data.width()), nq = std::size_t(model.nq) * w, nv = std::size_t(model.nv) * w;
  bool some = some_;
  for (std::size_t p = 0; data.own && p < std::size_t(data.packs()); ++p) some = some || may_hang(p);
  if (!some) return;
  inertia.resize(data.size(model.nv));
  some = false;
  for (std::size_t p = 0; p < std::size_t(data.packs()); ++p) {
    R* const to = &inertia[p * nv];
    const bool here = may_hang(p) && constraint_table<R>(data.width())
                                         .hanging_inertia(data.view(model, int(p)), data.state(int(p)), links_.data(),
                                                          own(p) ? hanging_links(*own(p)) : nullptr, R(h_),
                                                          &data.qpos[p * nq], &data.qvel[p * nv], to);
    if (!here) std::fill_n(to, nv, R(0));
    some = some || here;
  }
  if (!some) inertia.clear();
}

template class HangingLinks<double>;
template class HangingLinks<float>;

}  // namespace tarsus
