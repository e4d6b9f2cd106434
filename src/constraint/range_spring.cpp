// Springs in place of the turning force of a ball joint's range (range_spring.hpp): which joints may need one, and
// whether a step does.
#include "constraint/range_spring.hpp"

#include "tarsus/dynamics/own_numbers.hpp"
#include "tarsus/solver/term.hpp"

namespace tarsus {

bool holds_light_link(const Model& model, std::span<const RigidInertia<double>> inertia, int joint) {
  constexpr double kHeavy = 2.5;
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
  const auto is_light = [&](int link, double other) {  // the rest is beyond the joint, or in `other`
    const double own = inertia[std::size_t(link)].mass;
    return std::min(other, (link == joint ? beyond : all - beyond) - own) > kHeavy * own;
  };
  const int parent = model.joints[std::size_t(joint)].parent;
  return is_light(joint, all - beyond) || (parent >= 0 && is_light(parent, beyond));
}

template <class R>
bool RangeSpring::is_needed(const Model& model, const BasicData<R>& data, int world, int joint, double K,
                            const Vec3d& rate, double h) const {
  constexpr double kTurned = 0.1;  // [rad]
  if (!(h * norm(across(rate)) > kTurned)) return false;
  const auto least = [&](int link) { return eigen(inertia_of(model, data, link, world).I).values.z; };
  const int parent = model.joints[std::size_t(joint)].parent;
  return h * h * stiffness > K + (parent < 0 ? least(joint) : std::min(least(joint), least(parent)));
}

template bool RangeSpring::is_needed(const Model&, const Data&, int, int, double, const Vec3d&, double) const;
template bool RangeSpring::is_needed(const Model&, const DataFloat&, int, int, double, const Vec3d&, double) const;

}  // namespace tarsus
