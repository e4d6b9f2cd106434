#include "tarsus/model/data.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "tarsus/base/check_index.hpp"
#include "tarsus/math/rotation.hpp"

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
      na_(model.na),
      nmocap_(model.nmocap()) {
  if (worlds < 1) throw ValueError("worlds", std::to_string(worlds), "at least 1");
  // Packs start on 64-byte boundaries: each has a multiple of 64 bytes.
  const std::size_t line = 64 / sizeof(R);
  const int states = std::max(nlink_ + nmocap_, 1);  // at least one, so that there is a first
  const std::size_t scalars = sizeof(LinkState<R>) / sizeof(R) * std::size_t(states) * width_;
  state_stride_ = (scalars + line - 1) / line * line;
#ifdef NDEBUG
  state_.resize(state_stride_ * packs_);
#else
  state_.resize(state_stride_ * packs_, std::numeric_limits<R>::quiet_NaN());
#endif
  qpos.resize(size(nq_)), qvel.resize(size(nv_)), qacc.resize(size(nv_)), tau.resize(size(nv_));
  ctrl.resize(size(nu_)), act.resize(size(na_));
  mocap_pos.resize(size(3 * nmocap_)), mocap_quat.resize(size(4 * nmocap_));
  joint_force.resize(size(nv_)), joint_inertia.resize(size(nv_));
  const std::vector<R> q0(model.qpos0.begin(), model.qpos0.end()),
      armature(model.armature.begin(), model.armature.end());
  for (int world = 0; world < packs_ * width_; ++world) {
    set(qpos, nq_, world, q0);
    set(joint_inertia, nv_, world, armature);
  }
  std::vector<R> position, orientation;
  for (const int body : model.mocap_bodies) {
    const BodySpec& spec = model.spec.bodies[body];
    const Quatd q = spec.orientation;
    for (int k = 0; k < 3; ++k) position.push_back(R(spec.position[k]));
    for (const double x : {q.w, q.x, q.y, q.z}) orientation.push_back(R(x));
  }
  for (int world = 0; world < packs_ * width_ && nmocap_ > 0; ++world) {
    set(mocap_pos, 3 * nmocap_, world, position);
    set(mocap_quat, 4 * nmocap_, world, orientation);
  }
  place_mocap(model);
}

template <class R>
void BasicData<R>::place_mocap(const Model& model) {
  using State = LinkState<R>;
  constexpr std::size_t kState = sizeof(State) / sizeof(R);
  const std::size_t w = std::size_t(width_);
  for (int i = 0; i < nmocap_ * packs_; ++i) {
    const int pack = i / nmocap_, k = i % nmocap_;
    const ModelView<R> m = view(model, pack);
    R* const state = state_.data() + std::size_t(pack) * state_stride_ + std::size_t(nlink_ + k) * kState * w;
    const R* const p = mocap_pos.data() + std::size_t(3 * i) * w;
    const R* const q = mocap_quat.data() + std::size_t(4 * i) * w;
    for (std::size_t lane = 0; lane < w; ++lane) {
      // A LinkState of packs consists of numbers [lane].
      const auto put = [&](std::size_t offset, std::size_t number, double x) {
        state[(offset / sizeof(R) + number) * w + lane] = R(x);
      };
      const Quatd given{double(q[lane]), double(q[w + lane]), double(q[2 * w + lane]), double(q[3 * w + lane])};
      const double length = std::sqrt(given.w * given.w + dot(given.vec(), given.vec()));
      const Mat3d turn = rotation(length > 1e-15 ? normalized(given) : Quatd{1, 0, 0, 0});  // as MuJoCo
      for (std::size_t n = 0; n < 9; ++n) put(offsetof(State, R), n, turn(int(n / 3), int(n % 3)));
      for (std::size_t n = 0; n < 3; ++n) {
        const double x = double(p[n * w + lane]),
                     g = double(m.own_gravity ? m.own_gravity[n * w + lane] : m.gravity[n]);
        put(offsetof(State, r), n, x), put(offsetof(State, o), n, x);
        put(offsetof(State, a), n, 0), put(offsetof(State, a), 3 + n, -g);
        put(offsetof(State, v), n, 0), put(offsetof(State, v), 3 + n, 0);
      }
    }
  }
}

template <class R>
void BasicData<R>::share_mocap(const BasicData& from, int pack) {
  const std::size_t one = sizeof(LinkState<R>) / sizeof(R) * std::size_t(width_), first = one * std::size_t(nlink_);
  const R* const source = from.state_.data() + std::size_t(pack) * from.state_stride_ + first;
  std::copy_n(source, one * std::size_t(nmocap_), state_.data() + first);
}

template <class R>
void BasicData<R>::get(std::span<const R> batch, int n, int world, std::span<R> out) const {
  check_index("world", world, packs_ * width_);
  check_size("batch", batch.size(), size(n));
  check_size("out", out.size(), n);
  for (int i = 0; i < n; ++i) out[i] = batch[batch_index(width_, n, i, world)];
}

template <class R>
void BasicData<R>::set(std::span<R> batch, int n, int world, std::span<const R> in) const {
  check_index("world", world, packs_ * width_);
  check_size("batch", batch.size(), size(n));
  check_size("in", in.size(), n);
  for (int i = 0; i < n; ++i) batch[batch_index(width_, n, i, world)] = in[i];
}

template <class R>
ModelView<R> BasicData<R>::view(const Model& model, int pack) const {
  ModelView<R> view = model.view<R>();
  if (!own) return view;
  const WorldTable<R>& table = own[pack];
  const auto get = [](const AlignedVector<R>& array) { return array.empty() ? nullptr : array.data(); };
  view.own_spring_rate2 = get(table.spring_rate2), view.own_round = get(table.round);
  view.own_inertia = get(table.inertia), view.own_damping = get(table.damping);
  if (width_ > 1) {
    view.own_gravity = get(table.gravity), view.own_armature = get(table.armature);
  } else {
    std::copy(table.gravity.begin(), table.gravity.end(), view.gravity);
    if (!table.armature.empty()) view.armature = table.armature.data();
  }
  return view;
}

template class BasicData<double>;
template class BasicData<float>;

}  // namespace tarsus
