#include "tarsus/model/data.hpp"

#include <algorithm>
#include <limits>

namespace tarsus {

template <class R>
BasicData<R>::BasicData(const Model& model, int worlds)
    : worlds_(worlds),
      width_(worlds > 1 ? lanes<R>(isa_level()) : 1),
      packs_((worlds + width_ - 1) / width_),
      nlink_(model.njoint()),
      nq_(model.nq),
      nv_(model.nv),
      nu_(model.nu),
      na_(model.na) {
  if (worlds < 1) throw ValueError("worlds", std::to_string(worlds), "at least 1");
  // Packs start 64 bytes apart from each other's lines: a multiple of 64 bytes each.
  const std::size_t line = 64 / sizeof(R);
  const std::size_t scalars = sizeof(LinkState<R>) / sizeof(R) * std::size_t(nlink_) * width_;
  state_stride_ = (scalars + line - 1) / line * line;
#ifdef NDEBUG
  state_.resize(state_stride_ * packs_);
#else
  state_.resize(state_stride_ * packs_, std::numeric_limits<R>::quiet_NaN());
#endif
  qpos.resize(size(nq_)), qvel.resize(size(nv_)), qacc.resize(size(nv_)), tau.resize(size(nv_));
  ctrl.resize(size(nu_)), act.resize(size(na_));
  joint_force.resize(size(nv_)), joint_inertia.resize(size(nv_));
  const std::vector<R> q0(model.qpos0.begin(), model.qpos0.end()),
      armature(model.armature.begin(), model.armature.end());
  for (int world = 0; world < packs_ * width_; ++world) {
    set(qpos, nq_, world, q0);
    set(joint_inertia, nv_, world, armature);
  }
}

template <class R>
void BasicData<R>::get(std::span<const R> batch, int n, int world, std::span<R> out) const {
  check_size("batch", batch.size(), size(n));
  check_size("out", out.size(), n);
  const R* p = batch.data() + std::size_t(world / width_) * n * width_ + world % width_;
  for (int i = 0; i < n; ++i) out[i] = p[std::size_t(i) * width_];
}

template <class R>
void BasicData<R>::set(std::span<R> batch, int n, int world, std::span<const R> in) const {
  check_size("batch", batch.size(), size(n));
  check_size("in", in.size(), n);
  R* p = batch.data() + std::size_t(world / width_) * n * width_ + world % width_;
  for (int i = 0; i < n; ++i) p[std::size_t(i) * width_] = in[i];
}

template <class R>
ModelView<R> BasicData<R>::view(const Model& model, int pack) const {
  ModelView<R> view = model.view<R>();
  if (!own) return view;
  const WorldTable<R>& table = own[pack];
  const auto get = [](const AlignedVector<R>& array) { return array.empty() ? nullptr : array.data(); };
  view.own_inertia = get(table.inertia), view.own_damping = get(table.damping);
  if (width_ > 1)
    view.own_gravity = get(table.gravity);
  else
    std::copy(table.gravity.begin(), table.gravity.end(), view.gravity);
  return view;
}

template class BasicData<double>;
template class BasicData<float>;

}  // namespace tarsus
