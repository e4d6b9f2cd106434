#include "tarsus/constraint/hanging.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "constraint/kernel_table.hpp"
#include "tarsus/constraint/equality.hpp"
#include "tarsus/constraint/reference_mass.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {

namespace {

constexpr double kLight = 0.1;      ///< share of a flying tree that may hang on the rest of it
constexpr double kResolved = 1.44;  ///< (h ω)² of the fastest swing that steps resolve,
constexpr double kTaut = 0.25;   ///< and of trees on the world that loops hold, which may pull by more than the weight
constexpr int kIterations = 20;  ///< for ω: a lower bound of it, within a tenth

/// A model in its reference pose, and what its equality constraints join.
struct Rest {
  Rest(const Model& model, const EqualitySet* equalities)
      : model(&model), view(model.view<double>()), data(model), n(std::size_t(model.njoint())) {
    const std::vector<double> qpos0(model.qpos0.begin(), model.qpos0.end());
    kinematics<double>(model, data, qpos0);
    std::copy(qpos0.begin(), qpos0.end(), data.qpos.begin());
    for (std::size_t i = 0; i < n; ++i) carried.push_back(model_inertia<double>(view.link[i], link(i).R));
    for (std::size_t i = 0; i < n; ++i) turns.push_back(!slides_on_axis(view.link[i].joint));
    for (std::size_t i = n; i-- > 0;) {
      const int to = view.link[i].parent;
      if (to < 0) continue;
      carried[std::size_t(to)] = carried[std::size_t(to)] + shift_back(carried[i], link(i).r);
      if (moves_freely(view.link[std::size_t(to)].joint)) turns[std::size_t(to)] = 0;
    }
    std::vector<char> held(n);  // by loops
    for (int i = 0; equalities && i < equalities->size(); ++i) {
      for (const int root : ends((*equalities)[i])) {
        if (root >= 0) held[std::size_t(root)] = 1;
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t root = std::size_t(view.link[i].root);
      const bool flies = moves_freely(view.link[root].joint) && !held[root];
      swings.push_back(turns[i] && !moves_freely(view.link[i].joint) &&
                       (!flies || carried[i].mass < kLight * carried[root].mass));
    }
  }
  const LinkState<double>& link(std::size_t i) const { return data.links()[i]; }
  /// The roots of the trees that an equality between bodies joins, -1 for the world; {-1, -1} for other kinds.
  std::array<int, 2> ends(const Equality& e) const {
    if (!joins_links(e.kind)) return {-1, -1};
    const auto root = [&](int body) {
      const int on = model->bodies[std::size_t(body)].link;
      return on < 0 ? -1 : view.link[std::size_t(on)].root;
    };
    return {root(e.body_a), root(e.body_b)};
  }
  /// Roots of trees that loops leave free to swing: a tree with loads, each a free body with one equality, free bodies
  /// that are joined to the world and to one another alone, and `cables` between two points.
  /// @param cables [root] what is light for its loads, if loops hold it
  std::vector<char> loose(const EqualitySet& equalities, const std::vector<char>& cables) const {
    const auto lone = [&](int root) {
      return root >= 0 && moves_freely(view.link[std::size_t(root)].joint) && turns[std::size_t(root)];
    };
    std::vector<int> count(n);
    for (int i = 0; i < equalities.size(); ++i) {
      for (const int root : ends(equalities[i])) {
        if (root >= 0) ++count[std::size_t(root)];
      }
    }
    std::vector<char> all(n);
    std::transform(count.begin(), count.end(), all.begin(), [](int c) { return char(c > 0); });
    for (int i = 0; i < equalities.size(); ++i) {
      const std::array<int, 2> of = ends(equalities[i]);
      for (int side = 0; side < 2; ++side) {
        const int root = of[std::size_t(side)], other = of[std::size_t(1 - side)];
        if (root < 0 || cables[std::size_t(root)]) continue;
        const bool swings = lone(root) ? other < 0 || lone(other) : lone(other) && count[std::size_t(other)] == 1;
        if (!swings) all[std::size_t(root)] = 0;
      }
    }
    return all;
  }

  const Model* model;
  ModelView<double> view;
  BasicData<double> data;
  std::size_t n;
  std::vector<RigidInertia<double>> carried;  ///< by each joint, about its origin
  std::vector<char> turns;                    ///< joints that turn: all but slides, and free ones that carry others
  std::vector<char> swings;                   ///< joints that bear what hangs
};

/// y = H x for the stiffness H of gravity g in the reference pose (hanging.inl).
void apply_stiffness(const Rest& rest, const Vec3d& g, const std::vector<double>& x, std::vector<double>& y) {
  const std::size_t n = rest.n;
  std::vector<Vec3d> turn(n, Vec3d{}), above(n, Vec3d{}), below(n, Vec3d{});
  for (std::size_t i = 0; i < n; ++i) {
    const LinkConstants<double>& link = rest.view.link[i];
    if (rest.swings[i]) turn[i] = joint_motion<double>(link, rest.link(i).R, &x[std::size_t(link.qvel)]).w;
    above[i] = turn[i];
    if (link.parent >= 0) above[i] += above[std::size_t(link.parent)];
  }
  std::fill(y.begin(), y.end(), 0.0);
  for (std::size_t i = n; i-- > 0;) {
    const LinkConstants<double>& link = rest.view.link[i];
    const Vec3d d = rest.carried[i].h;
    const double k = dot(d, g);
    // P = tr S - S with S = d gᵀ: Pᵀ of what is above, and P of what is below.
    const Vec3d torque = above[i] * k - g * dot(d, above[i]) + below[i];
    if (rest.swings[i]) joint_force<double>(link, rest.link(i).R, {torque, {}}, &y[std::size_t(link.qvel)]);
    if (link.parent >= 0) below[std::size_t(link.parent)] += below[i] + turn[i] * k - d * dot(g, turn[i]);
  }
}

/// A lower bound of the largest ω² of each tree under gravity g, by root.
std::vector<double> fastest_swings(const Model& model, Rest& rest, const Vec3d& g) {
  const std::size_t nv = std::size_t(model.nv);
  std::vector<double> force(nv), x(nv), square(rest.n), fastest(rest.n);
  for (std::size_t v = 0; v < nv; ++v) force[v] = (v % 2 ? -1.0 : 1.0) / double(1 + v % 7);
  for (int k = 0; k <= kIterations; ++k) {
    if (k > 0) apply_stiffness(rest, g, x, force);
    minv<double>(model, rest.data, force, x);
    std::fill(square.begin(), square.end(), 0.0);
    const auto root = [&](std::size_t v) { return std::size_t(rest.view.link[model.dof_joint[v]].root); };
    for (std::size_t v = 0; v < nv; ++v) square[root(v)] += x[v] * force[v];
    for (std::size_t v = 0; v < nv; ++v) {
      if (square[root(v)] > 0) x[v] /= std::sqrt(square[root(v)]);
    }
    if (k > 0) fastest = square;
  }
  for (double& s : fastest) s = std::sqrt(std::max(s, 0.0));
  return fastest;
}

}  // namespace

template <class R>
HangingLinks<R>::HangingLinks(const Model& model, double h, const EqualitySet* equalities)
    : links_(std::size_t(model.njoint())), h_(R(h)) {
  Rest rest(model, equalities);
  const bool some = std::any_of(rest.swings.begin(), rest.swings.end(), [](char s) { return s != 0; });
  if (!some && !equalities) return;
  std::vector<double> inertia(std::size_t(model.nv)), fastest(rest.n);
  for (std::size_t i = 0; i < rest.n; ++i) {  // joints that do not bear what hangs stand still
    const LinkConstants<double>& link = rest.view.link[i];
    const RigidInertia<double>& I = rest.carried[i];
    const double held = rest.swings[i] ? 0 : 1e6 * (I.mass + I.I.xx + I.I.yy + I.I.zz + 1);
    for (int v = link.qvel; v < link.qvel + qvel_count(link.joint); ++v)
      inertia[std::size_t(v)] = rest.view.armature[v] + held;
  }
  factor<double>(model, rest.data, {}, inertia);
  const double gravity = norm(load3<double>(rest.view.gravity));
  for (int axis = 0; some && axis < 3; ++axis) {
    Vec3d g{};
    g[axis] = gravity;
    const std::vector<double> now = fastest_swings(model, rest, g);
    for (std::size_t i = 0; i < rest.n; ++i) fastest[i] = std::max(fastest[i], now[i]);
  }
  std::vector<char> cables(rest.n);
  for (std::size_t i = 0; i < rest.n; ++i)
    cables[i] = h * h * fastest[i] > (moves_freely(rest.view.link[i].joint) ? kResolved : kTaut);
  const std::vector<ReferenceMass> reference = reference_masses(model);
  const std::vector<char> loose = equalities ? rest.loose(*equalities, cables) : std::vector<char>(rest.n);
  std::vector<double> above(rest.n);
  for (std::size_t i = 0; i < rest.n; ++i) {
    const LinkConstants<double>& link = rest.view.link[i];
    const double own = rest.view.armature[link.qvel];
    const Sym3<double>& I = rest.carried[i].I;
    const bool hangs = rest.swings[i] && h * h * fastest[std::size_t(link.root)] > kResolved;
    const double mean = (I.xx + I.yy + I.zz) / 3 + own;
    const double weight = rest.turns[i] && mean > 0 ? 1 / std::sqrt(mean) : 0;
    above[i] = weight + (link.parent >= 0 ? above[std::size_t(link.parent)] : 0);
    links_[i] = {hangs, loose[std::size_t(link.root)] != 0, R(weight), R(above[i]),
                 R(kUnresolved * (reference[i].joint + own))};
    some_ = some_ || hangs;
  }
}

template <class R>
void HangingLinks<R>::find(const Model& model, BasicData<R>& data, AlignedVector<R>& inertia) {
  inertia.clear();
  if (!some_) return;
  const std::size_t w = std::size_t(data.width()), nq = std::size_t(model.nq) * w, nv = std::size_t(model.nv) * w;
  inertia.resize(data.size(model.nv));
  bool some = false;
  for (std::size_t p = 0; p < std::size_t(data.packs()); ++p) {
    R* const own = &inertia[p * nv];
    const bool here = constraint_table<R>(data.width())
                          .hanging_inertia(data.view(model, int(p)), data.state(int(p)), links_.data(), h_,
                                           &data.qpos[p * nq], &data.qvel[p * nv], own);
    if (!here) std::fill_n(own, nv, R(0));
    some = some || here;
  }
  if (!some) inertia.clear();
}

template class HangingLinks<double>;
template class HangingLinks<float>;

}  // namespace tarsus
