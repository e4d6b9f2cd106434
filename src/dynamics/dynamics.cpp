// Checks sizes and calls the kernels for each pack.
#include "tarsus/dynamics/dynamics.hpp"

#include <algorithm>
#include <cmath>

#include "dynamics/kernel_table.hpp"
#include "dynamics/pack_arrays.hpp"
#include "tarsus/dynamics/stiffened.hpp"
#include "tarsus/model/body_at.hpp"

namespace tarsus {

namespace {

template <class R>
void check_external(const BasicData<R>& data, std::span<const R> external) {
  if (!external.empty()) check_size("external", external.size(), data.size(6 * data.nlink()));
}

}  // namespace

template <class R>
void kinematics(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel) {
  check_data(model, data);
  check_size("qpos", qpos.size(), data.size(model.nq));
  if (!qvel.empty()) check_size("qvel", qvel.size(), data.size(model.nv));
  data.place_mocap(model);
  each_pack(kernel_table<R>(data.width()), model, data, [&](auto& k, const ModelView<R>& view, void* s, auto p) {
    k.kinematics(view, s, p(qpos, model.nq), p(qvel, model.nv));
  });
}

template <class R>
void rnea(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, In<R> qacc, Out<R> tau, In<R> external) {
  check_data(model, data);
  check_size("qpos", qpos.size(), data.size(model.nq));
  check_sizes(data, model.nv, "qvel", qvel, "tau", tau, "qacc", qacc);
  check_external(data, external);
  each_pack(kernel_table<R>(data.width()), model, data, [&](auto& k, const ModelView<R>& view, void* s, auto p) {
    const R* a = p(qacc, model.nv);
    R* out = p(tau, model.nv);
    k.rnea(view, s, p(qpos, model.nq), p(qvel, model.nv), a, p(external, 6 * data.nlink()), out);
    for (int i = 0; i < model.nv; ++i) {
      for (int lane = 0; lane < data.width(); ++lane) {
        const std::size_t j = std::size_t(i) * data.width() + lane;
        out[j] += (view.own_armature ? view.own_armature[j] : view.armature[i]) * a[j];
      }
    }
  });
}

template <class R>
void bias_force(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, Out<R> bias) {
  check_data(model, data);
  check_size("qpos", qpos.size(), data.size(model.nq));
  check_sizes(data, model.nv, "qvel", qvel, "bias", bias);
  each_pack(kernel_table<R>(data.width()), model, data, [&](auto& k, const ModelView<R>& view, void* s, auto p) {
    k.rnea(view, s, p(qpos, model.nq), p(qvel, model.nv), nullptr, nullptr, p(bias, model.nv));
  });
}

template <class R>
void crba(const Model& model, BasicData<R>& data, In<R> qpos, Out<R> mass_matrix) {
  check_data(model, data);
  check_size("qpos", qpos.size(), data.size(model.nq));
  check_size("mass_matrix", mass_matrix.size(), data.size(model.nv) * model.nv);
  each_pack(kernel_table<R>(data.width()), model, data, [&](auto& k, const ModelView<R>& view, void* s, auto p) {
    k.crba(view, s, p(qpos, model.nq), p(mass_matrix, model.nv * model.nv));
  });
}

template <class R>
void aba(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, In<R> tau, Out<R> qacc, In<R> external) {
  check_data(model, data);
  R* K = data.joint_inertia.data();
  for (int pack = 0; pack < data.packs(); ++pack) {
    const ModelView<R> view = data.view(model, pack);
    if (view.own_armature)
      K = std::copy_n(view.own_armature, model.nv * data.width(), K);
    else
      for (int i = 0; i < model.nv; ++i) K = std::fill_n(K, data.width(), view.armature[i]);
  }
  maba(model, data, qpos, qvel, tau, data.joint_inertia, qacc, external);
}

template <class R>
void maba(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, In<R> joint_force, In<R> joint_inertia,
          Out<R> qacc, In<R> external) {
  check_data(model, data);
  check_size("qpos", qpos.size(), data.size(model.nq));
  check_sizes(data, model.nv, "qvel", qvel, "joint_force", joint_force, "joint_inertia", joint_inertia, "qacc", qacc);
  check_external(data, external);
  each_pack(kernel_table<R>(data.width()), model, data, [&](auto& k, const ModelView<R>& view, void* s, auto p) {
    k.aba(view, s, p(qpos, model.nq), p(qvel, model.nv), p(joint_force, model.nv), p(joint_inertia, model.nv),
          p(external, 6 * data.nlink()), p(qacc, model.nv));
  });
}

template <class R>
void factor(const Model& model, BasicData<R>& data, In<R> qpos, In<R> joint_inertia) {
  check_data(model, data);
  if (!qpos.empty()) check_size("qpos", qpos.size(), data.size(model.nq));
  check_size("joint_inertia", joint_inertia.size(), data.size(model.nv));
  each_pack(kernel_table<R>(data.width()), model, data, [&](auto& k, const ModelView<R>& view, void* s, auto p) {
    k.factor(view, s, p(qpos, model.nq), p(joint_inertia, model.nv));
  });
}

template <class R>
void minv(const Model& model, BasicData<R>& data, In<R> y, Out<R> x) {
  check_data(model, data);
  check_sizes(data, model.nv, "y", y, "x", x);
  each_pack(kernel_table<R>(data.width()), model, data, [&](auto& k, const ModelView<R>& view, void* s, auto p) {
    k.minv(view, s, p(y, model.nv), p(x, model.nv));
  });
}

template <class R>
void prepare_stiffened(const Model& model, BasicData<R>& data) {
  check_data(model, data);
  each_pack(kernel_table<R>(data.width()), model, data,
            [&](auto& k, const ModelView<R>& view, void* s, auto) { k.prepare_stiffened(view, s); });
}

template <class R>
void spread_acceleration(const Model& model, BasicData<R>& data, In<R> x) {
  check_data(model, data);
  check_size("x", x.size(), data.size(model.nv));
  each_pack(kernel_table<R>(data.width()), model, data, [&](auto& k, const ModelView<R>& view, void* s, auto p) {
    k.spread_acceleration(view, s, p(x, model.nv));
  });
}

template <class R>
void prepare_step(const Model& model, BasicData<R>& data, R h, Out<R> bias) {
  check_data(model, data);
  check_size("bias", bias.size(), data.size(6 * model.njoint()));
  each_pack(kernel_table<R>(data.width()), model, data, [&](auto& k, const ModelView<R>& view, void* s, auto p) {
    k.prepare_step(view, s, h, p(bias, 6 * model.njoint()));
  });
}

template <class R>
void solve_stiffened(const Model& model, BasicData<R>& data, In<R> joint_inertia, In<R> joint_force, In<R> bias,
                     std::span<const int> stiffness_of_link, std::span<const LinkStiffness<R>> stiffnesses, Out<R> x) {
  check_data(model, data);
  if (data.width() != 1) throw ValueError("data", "a batch", "a single world");
  check_size("joint_inertia", joint_inertia.size(), model.nv);
  check_size("joint_force", joint_force.size(), model.nv);
  if (!bias.empty()) check_size("bias", bias.size(), 6 * std::size_t(model.njoint()));
  check_size("stiffness_of_link", stiffness_of_link.size(), model.njoint());
  if (!x.empty()) check_size("x", x.size(), model.nv);
  kernel_table<R>(1).solve_stiffened(data.view(model, 0), data.state(0), joint_inertia.data(), joint_force.data(),
                                     bias.empty() ? nullptr : bias.data(), stiffness_of_link.data(), stiffnesses.data(),
                                     x.empty() ? nullptr : x.data());
}

template <class R>
void solve_factored(const Model& model, BasicData<R>& data, std::span<const int> stiffness_of_link,
                    std::span<const LinkStiffness<R>> stiffnesses, Out<R> x) {
  check_data(model, data);
  if (data.width() != 1) throw ValueError("data", "a batch", "a single world");
  check_size("stiffness_of_link", stiffness_of_link.size(), model.njoint());
  if (!x.empty()) check_size("x", x.size(), model.nv);
  kernel_table<R>(1).solve_factored(data.view(model, 0), data.state(0), stiffness_of_link.data(), stiffnesses.data(),
                                    x.empty() ? nullptr : x.data());
}

template <class R>
void jacobian(const Model& model, BasicData<R>& data, int body, In<R> point, Out<R> J) {
  check_data(model, data);
  if (data.width() != 1) throw ValueError("data", "a batch", "a single world");
  const int link = body_at(model, body).link;
  check_size("point", point.size(), 3);
  check_size("J", J.size(), std::size_t(6) * model.nv);
  kernel_table<R>(1).jacobian(model.view<R>(), data.state(0), link, point.data(), J.data());
}

template <class R>
void integrate(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, R dt, Out<R> out) {
  check_data(model, data);
  check_sizes(data, model.nq, "qpos", qpos, "out", out);
  check_size("qvel", qvel.size(), data.size(model.nv));
  each_pack(kernel_table<R>(data.width()), model, data, [&](auto& k, const ModelView<R>& view, void*, auto p) {
    k.integrate(view, p(qpos, model.nq), p(qvel, model.nv), dt, p(out, model.nq));
  });
}

template <class R>
int first_bad_world(const BasicData<R>& data, In<R> values, int n) {
  check_size("values", values.size(), data.size(n));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    const std::size_t lane = i % data.width(), pack = i / (std::size_t(n) * data.width());
    const int world = int(pack * data.width() + lane);
    if (world < data.worlds()) return world;
  }
  return -1;
}

#define TARSUS_INSTANTIATE(R)                                                                              \
  template void kinematics<R>(const Model&, BasicData<R>&, In<R>, In<R>);                                  \
  template void rnea<R>(const Model&, BasicData<R>&, In<R>, In<R>, In<R>, Out<R>, In<R>);                  \
  template void bias_force<R>(const Model&, BasicData<R>&, In<R>, In<R>, Out<R>);                          \
  template void crba<R>(const Model&, BasicData<R>&, In<R>, Out<R>);                                       \
  template void aba<R>(const Model&, BasicData<R>&, In<R>, In<R>, In<R>, Out<R>, In<R>);                   \
  template void maba<R>(const Model&, BasicData<R>&, In<R>, In<R>, In<R>, In<R>, Out<R>, In<R>);           \
  template void factor<R>(const Model&, BasicData<R>&, In<R>, In<R>);                                      \
  template void minv<R>(const Model&, BasicData<R>&, In<R>, Out<R>);                                       \
  template void prepare_stiffened<R>(const Model&, BasicData<R>&);                                         \
  template void spread_acceleration<R>(const Model&, BasicData<R>&, In<R>);                                \
  template void prepare_step<R>(const Model&, BasicData<R>&, R, Out<R>);                                   \
  template void solve_stiffened<R>(const Model&, BasicData<R>&, In<R>, In<R>, In<R>, std::span<const int>, \
                                   std::span<const LinkStiffness<R>>, Out<R>);                             \
  template void solve_factored<R>(const Model&, BasicData<R>&, std::span<const int>,                       \
                                  std::span<const LinkStiffness<R>>, Out<R>);                              \
  template void jacobian<R>(const Model&, BasicData<R>&, int, In<R>, Out<R>);                              \
  template void integrate<R>(const Model&, BasicData<R>&, In<R>, In<R>, R, Out<R>);                        \
  template int first_bad_world<R>(const BasicData<R>&, In<R>, int);
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
