#include "tarsus/constraint/reference_mass.hpp"

#include <algorithm>

#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/model/world_table.hpp"

namespace tarsus {

static std::vector<ReferenceMass> masses_of(const Model& model, const WorldTable<double>* own) {
  Data data(model);
  data.own = own;
  factor<double>(model, data, model.qpos0, model.armature);
  const auto mean = [](const Sym3d& m) { return std::max((m.xx + m.yy + m.zz) / 3, 1e-30); };
  std::vector<ReferenceMass> masses;
  for (int i = 0; i < model.njoint(); ++i) {
    const LinkState<double>& link = data.links()[i];
    const Sym3d &M = link.IA.M, &I = link.IA.I;
    const JointType type = model.joints[i].type;
    const Vec3d e = link.R.column_z();
    const double joint = !has_axis(type) ? mean(I) : dot(e, (turns_on_axis(type) ? I : M) * e);
    masses.push_back({1 / mean(M), 1 / mean(I), joint});
  }
  return masses;
}

std::vector<ReferenceMass> reference_masses(const Model& model) { return masses_of(model, nullptr); }

std::vector<ReferenceMass> reference_masses(const Model& model, std::span<const RigidInertia<double>> inertia) {
  check_size("inertia", inertia.size(), model.njoint());
  WorldTable<double> own;
  for (const RigidInertia<double>& one : inertia) {
    const Sym3d& I = one.I;
    for (const double x : {one.mass, one.h.x, one.h.y, one.h.z, I.xx, I.xy, I.xz, I.yy, I.yz, I.zz})
      own.inertia.push_back(x);
  }
  return masses_of(model, &own);
}

}  // namespace tarsus
