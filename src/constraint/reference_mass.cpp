// Reference masses of the links (reference_mass.hpp), from the factors of M̂ in the model's reference pose, without
// drives. O(nlink).
#include "tarsus/constraint/reference_mass.hpp"

#include <algorithm>
#include <utility>

#include "constraint/kernel_table.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

RestingWorlds::RestingWorlds(const Model& model, std::span<const RigidInertia<double>> inertia,
                             std::span<const double> armature)
    : data(model, model.njoint() > 0 ? int(inertia.size()) / model.njoint() : 1), own(at(data.packs())) {
  const int nlink = model.njoint(), worlds = data.worlds();
  check_size("inertia", inertia.size(), at(worlds * nlink)),
      check_size("armature", armature.size(), at(worlds * model.nv));
  for (int world = 0; world < worlds; ++world)
    data.set(data.joint_inertia, model.nv, world, armature.subspan(at(world * model.nv), at(model.nv)));
  for (int pack = 0; pack < data.packs(); ++pack) {
    AlignedVector<double>& to = own[at(pack)].inertia;
    to.resize(at(10 * nlink * data.width()));
    for (int lane = 0; lane < data.width(); ++lane) {
      const int world = std::min(pack * data.width() + lane, worlds - 1);
      double* number = to.data() + lane;
      for (const auto& [m, h, I] : inertia.subspan(at(world * nlink), at(nlink))) {
        for (const double x : {m, h.x, h.y, h.z, I.xx, I.xy, I.xz, I.yy, I.yz, I.zz})
          *number = x, number += data.width();
      }
    }
  }
  data.own = own.data();
}

std::vector<ReferenceMass> reference_masses(const Model& model, RestingWorlds& worlds) {
  Data& data = worlds.data;
  const int nlink = model.njoint(), width = data.width();
  factor<double>(model, data, data.qpos, data.joint_inertia);
  AlignedVector<double> omega(at(36 * nlink * width)), numbers(at(kReferenceNumbers * nlink * width));
  std::vector<ReferenceMass> masses;
  for (int world = 0; world < data.worlds(); ++world) {
    const int pack = world / width, lane = world % width;
    if (lane == 0)
      constraint_table<double>(width).reference(data.view(model, pack), data.state(pack), omega.data(), numbers.data());
    const double* number = numbers.data() + lane;
    const auto next = [&] { return std::exchange(number, number + width)[0]; };
    const auto positive = [&] { return std::max(next(), 1e-30); };
    for (int i = 0; i < nlink; ++i) {
      const double linear = positive(), angular = positive(),
                   joint = has_axis(model.joints[at(i)].type) ? next() : positive();
      const double weight = positive(), joint_weight = positive();
      masses.push_back({1 / linear, 1 / angular, joint, weight, joint_weight});
    }
  }
  return masses;
}

std::vector<ReferenceMass> reference_masses(const Model& model) {
  RestingWorlds worlds(model);
  return reference_masses(model, worlds);
}

}  // namespace tarsus
