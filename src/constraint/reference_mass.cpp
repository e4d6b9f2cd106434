#include "tarsus/constraint/reference_mass.hpp"

#include <algorithm>

#include "constraint/contact_force.hpp"
#include "tarsus/dynamics/delassus.hpp"
#include "tarsus/model/jcalc.inl"
#include "tarsus/model/world_table.hpp"

namespace tarsus {

/// ReferenceMass::weight of each link, by the factors that data holds.
static std::vector<double> weights_of(const Model& model, const Data& data) {
  DelassusRows<double> rows(model);
  for (int i = 0; i < model.njoint(); ++i) {
    const RigidInertia<double> inertia = link_inertia(data.view(model, 0), i, data.links()[i].R);
    const Vec3d centre = inertia.mass > 0 ? inertia.h * (1 / inertia.mass) : Vec3d{0, 0, 0};
    const auto block = rows.block(rows.add_block(i, -1, 3));
    const Vec3d axes[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int k = 0; k < 3; ++k) write_wrench<double>({cross(centre, axes[k]), axes[k]}, block, k);
  }
  rows.sweep(model, data);
  std::vector<double> squares(std::size_t(rows.rows())), weights;
  rows.diagonal(squares);
  for (std::size_t i = 0; i < squares.size(); i += 3)
    weights.push_back(std::max((squares[i] + squares[i + 1] + squares[i + 2]) / 3, 1e-30));
  return weights;
}

static std::vector<ReferenceMass> masses_of(const Model& model, const WorldTable<double>* own) {
  Data data(model);
  data.own = own;
  factor<double>(model, data, model.qpos0, model.armature);
  const auto mean = [](const Sym3d& m) { return std::max((m.xx + m.yy + m.zz) / 3, 1e-30); };
  const std::vector<double> weights = weights_of(model, data);
  std::vector<ReferenceMass> masses;
  for (int i = 0; i < model.njoint(); ++i) {
    const LinkState<double>& link = data.links()[i];
    const Sym3d &M = link.IA.M, &I = link.IA.I;
    const JointType type = model.joints[i].type;
    const Vec3d e = link.R.column_z();
    const double joint = !has_axis(type) ? mean(I) : dot(e, (turns_on_axis(type) ? I : M) * e);
    masses.push_back({1 / mean(M), 1 / mean(I), joint, weights[std::size_t(i)]});
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
