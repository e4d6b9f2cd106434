#include "constraint/range_spring.hpp"

#include "tarsus/solver/term.hpp"

namespace tarsus {

bool holds_light_link(const Model& model, int joint) {
  constexpr double kHeavy = 2.5;
  const std::vector<RigidInertia<double>> inertia = link_inertias(model);
  std::vector<double> carried(inertia.size(), 0.0);
  for (int i = model.njoint() - 1; i >= 0; --i) {
    carried[std::size_t(i)] += inertia[std::size_t(i)].mass;
    const int parent = model.joints[std::size_t(i)].parent;
    if (parent >= 0) carried[std::size_t(parent)] += carried[std::size_t(i)];
  }
  int root = joint;
  while (model.joints[std::size_t(root)].parent >= 0) root = model.joints[std::size_t(root)].parent;
  const bool floats = moves_freely(model.joints[std::size_t(root)].type);
  const double all = floats ? carried[std::size_t(root)] : kUnbounded, beyond = carried[std::size_t(joint)];
  const auto is_light = [&](int link, double other) {  // the rest is beyond the joint, or `other` is
    const double own = inertia[std::size_t(link)].mass;
    return std::min(other, (link == joint ? beyond : all - beyond) - own) > kHeavy * own;
  };
  const int parent = model.joints[std::size_t(joint)].parent;
  return is_light(joint, all - beyond) || (parent >= 0 && is_light(parent, beyond));
}

template <class R>
double least_inertia(const Model& model, const WorldTable<R>* own, int width, int lane, int joint) {
  const std::vector<RigidInertia<double>> inertia = link_inertias(model);
  const auto least = [&](int link) {
    if (!own || own->inertia.empty()) return eigen(inertia[std::size_t(link)].I).values.z;
    const auto at = [&](int k) {
      return double(own->inertia[std::size_t(10 * link + k) * std::size_t(width) + std::size_t(lane)]);
    };
    return eigen(Sym3d{at(4), at(5), at(6), at(7), at(8), at(9)}).values.z;
  };
  const int parent = model.joints[std::size_t(joint)].parent;
  return parent < 0 ? least(joint) : std::min(least(joint), least(parent));
}

template double least_inertia<double>(const Model&, const WorldTable<double>*, int, int, int);
template double least_inertia<float>(const Model&, const WorldTable<float>*, int, int, int);

}  // namespace tarsus
