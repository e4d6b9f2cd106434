#include "tarsus/constraint/reference_mass.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "constraint/contact_force.hpp"
#include "tarsus/dynamics/delassus.hpp"
#include "tarsus/model/jcalc.inl"
#include "tarsus/model/world_table.hpp"

namespace tarsus {

/// ReferenceMass::weight and joint_weight of each link, by the factors that data holds.
static std::vector<std::array<double, 2>> weights_of(const Model& model, const Data& data) {
  DelassusRows<double> rows(model);
  for (int i = 0; i < model.njoint(); ++i) {
    const RigidInertia<double> inertia = link_inertia(data.view(model, 0), i, data.links()[i].R);
    const Vec3d centre = inertia.mass > 0 ? inertia.h * (1 / inertia.mass) : Vec3d{0, 0, 0};
    const auto block = rows.block(rows.add_block(i, -1, 3));
    const Vec3d axes[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int k = 0; k < 3; ++k) write_wrench<double>({cross(centre, axes[k]), axes[k]}, block, k);
  }
  for (int i = 0; i < model.njoint(); ++i) {
    const Joint& joint = model.joints[i];
    const int n = std::min(joint.nv(), 3), first = joint.qvel + joint.nv() - n;
    const auto block = rows.block(rows.add_joint_block({&i, 1}, n));
    std::fill_n(block.joint, block.dofs.size() * std::size_t(block.stride), 0.0);
    for (int k = 0; k < n; ++k) {
      const auto place = std::find(block.dofs.begin(), block.dofs.end(), first + k) - block.dofs.begin();
      block.joint[place * block.stride + k] = 1;
    }
  }
  rows.sweep(model, data);
  std::vector<double> squares(std::size_t(rows.rows()));
  rows.diagonal(squares);
  std::vector<std::array<double, 2>> weights(std::size_t(model.njoint()));
  for (std::size_t i = 0; i < 2 * weights.size(); ++i) {
    const auto block = rows.block(int(i));
    const double* const of = &squares[std::size_t(block.first_row)];
    weights[i % weights.size()][i / weights.size()] =
        std::max(std::accumulate(of, of + block.nrow, 0.0) / block.nrow, 1e-30);
  }
  return weights;
}

static std::vector<ReferenceMass> masses_of(const Model& model, const WorldTable<double>* own) {
  Data data(model);
  data.own = own;
  factor<double>(model, data, model.qpos0, model.armature);
  const auto mean = [](const Sym3d& m) { return std::max((m.xx + m.yy + m.zz) / 3, 1e-30); };
  const std::vector<std::array<double, 2>> weights = weights_of(model, data);
  std::vector<ReferenceMass> masses;
  for (int i = 0; i < model.njoint(); ++i) {
    const LinkState<double>& link = data.links()[i];
    const Sym3d &M = link.IA.M, &I = link.IA.I;
    const JointType type = model.joints[i].type;
    const Vec3d e = link.R.column_z();
    const double joint = !has_axis(type) ? mean(I) : dot(e, (turns_on_axis(type) ? I : M) * e);
    masses.push_back({1 / mean(M), 1 / mean(I), joint, weights[std::size_t(i)][0], weights[std::size_t(i)][1]});
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
