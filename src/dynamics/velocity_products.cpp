#include "tarsus/dynamics/velocity_products.hpp"

#include <utility>

#include "dynamics/kernel_table.hpp"

namespace tarsus {

template <class R>
VelocityProducts<R>::VelocityProducts(const Model& model, const BasicData<R>& data, std::vector<std::uint8_t> held)
    : held_(std::move(held)),
      links_(kernel_table<R>(data.width()).velocity_product_link_size() * model.njoint()),
      scratch_(7 * std::size_t(model.nv) * data.width()) {
  if (!held_.empty()) check_size("held", held_.size(), std::size_t(model.njoint()));
  const ModelView<R> view = model.view<R>();
  for (int i = 0; i < view.nlink; ++i) {
    if (view.link[i].alone) bodies_.push_back(i);
  }
}

template <class R>
void VelocityProducts<R>::accelerate(const Model& model, BasicData<R>& data, In<R> theta_h, In<R> qpos, In<R> qvel,
                                     In<R> joint_force, In<R> joint_inertia, Out<R> qacc, In<R> external,
                                     In<R> tangent) {
  const int nlink = model.njoint();
  check_size("theta_h", theta_h.size(), data.size(1));
  check_size("qpos", qpos.size(), data.size(model.nq));
  check_size("qvel", qvel.size(), data.size(model.nv));
  check_size("joint_force", joint_force.size(), data.size(model.nv));
  check_size("joint_inertia", joint_inertia.size(), data.size(model.nv));
  check_size("qacc", qacc.size(), data.size(model.nv));
  if (!external.empty()) check_size("external", external.size(), data.size(6 * nlink));
  if (!tangent.empty()) check_size("tangent", tangent.size(), data.size(36 * nlink));
  const KernelTable<R>& kernels = kernel_table<R>(data.width());
  for (int pack = 0; pack < data.packs(); ++pack) {
    const auto at = [&](auto span, int n) {
      return span.empty() ? nullptr : span.data() + std::size_t(pack) * n * data.width();
    };
    kernels.velocity_products(data.view(model, pack), data.state(pack), links_.data(), at(theta_h, 1),
                              at(qpos, model.nq), at(qvel, model.nv), at(joint_force, model.nv),
                              at(joint_inertia, model.nv), at(external, 6 * nlink), at(tangent, 36 * nlink),
                              at(qacc, model.nv));
  }
}

template <class R>
bool VelocityProducts<R>::accelerate_step(const Model& model, BasicData<R>& data, R h, bool always, In<R> qpos,
                                          In<R> qvel, In<R> joint_force, In<R> joint_inertia, Out<R> qacc,
                                          In<R> stiff) {
  check_size("qpos", qpos.size(), data.size(model.nq));
  check_size("qvel", qvel.size(), data.size(model.nv));
  check_size("joint_force", joint_force.size(), data.size(model.nv));
  check_size("joint_inertia", joint_inertia.size(), data.size(model.nv));
  check_size("qacc", qacc.size(), data.size(model.nv));
  const KernelTable<R>& kernels = kernel_table<R>(data.width());
  bool factors = true;
  for (int pack = 0; pack < data.packs(); ++pack) {
    const std::size_t q = std::size_t(pack) * model.nq * data.width(), v = std::size_t(pack) * model.nv * data.width();
    const bool slow = kernels.velocity_products_step(data.view(model, pack), data.state(pack), links_.data(), h, always,
                                                     held(), scratch_.data(), qpos.data() + q, qvel.data() + v,
                                                     joint_force.data() + v, joint_inertia.data() + v,
                                                     stiff.empty() ? nullptr : stiff.data() + v, qacc.data() + v);
    factors = factors && slow;
  }
  return factors;
}

template <class R>
void VelocityProducts<R>::begin_step(const Model& model, BasicData<R>& data, R h, Use use, In<R> qpos, In<R> qvel,
                                     In<R> joint_force, In<R> joint_inertia, Out<R> qacc, Out<R> found, In<R> stiff) {
  check_size("qpos", qpos.size(), data.size(model.nq));
  check_size("qvel", qvel.size(), data.size(model.nv));
  check_size("joint_force", joint_force.size(), data.size(model.nv));
  check_size("joint_inertia", joint_inertia.size(), data.size(model.nv));
  check_size("qacc", qacc.size(), data.size(model.nv)), check_size("found", found.size(), data.size(1));
  const KernelTable<R>& kernels = kernel_table<R>(data.width());
  for (int pack = 0; pack < data.packs(); ++pack) {
    const std::size_t q = std::size_t(pack) * model.nq * data.width(), v = std::size_t(pack) * model.nv * data.width();
    kernels.begin_step(data.view(model, pack), data.state(pack), links_.data(), h, use == Use::always,
                       use == Use::never, held(), scratch_.data(), qpos.data() + q, qvel.data() + v,
                       joint_force.data() + v, joint_inertia.data() + v, stiff.empty() ? nullptr : stiff.data() + v,
                       qacc.data() + v, &found[std::size_t(pack * data.width())]);
  }
}

template <class R>
void VelocityProducts<R>::leave_pose(const Model& model, BasicData<R>& data, R h) {
  for (int pack = 0; pack < data.packs(); ++pack) {
    const std::size_t q = std::size_t(pack) * model.nq * data.width(), v = std::size_t(pack) * model.nv * data.width();
    kernel_table<R>(data.width())
        .leave_pose(data.view(model, pack), h, bodies_.data(), int(bodies_.size()), &data.qpos[q], &data.qvel[v]);
  }
}

template <class R>
void VelocityProducts<R>::reach_pose(const Model& model, const BasicData<R>& data, R h, Out<R> next_qpos,
                                     Out<R> next_qvel) {
  for (int pack = 0; pack < data.packs(); ++pack) {
    const std::size_t q = std::size_t(pack) * model.nq * data.width(), v = std::size_t(pack) * model.nv * data.width();
    kernel_table<R>(data.width())
        .reach_pose(data.view(model, pack), h, bodies_.data(), int(bodies_.size()), &data.qpos[q], &next_qpos[q],
                    &next_qvel[v]);
  }
}

template class VelocityProducts<double>;
template class VelocityProducts<float>;

}  // namespace tarsus
