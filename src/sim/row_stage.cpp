#include "tarsus/sim/row_stage.hpp"

#include <algorithm>

#include "tarsus/base/number_text.hpp"

namespace tarsus {

template <class R>
RowStage<R>::RowStage(const Model& model, const BasicData<R>& data, const RowStageOptions& options)
    : model_(model),
      options_(options),
      geometry_(options.contacts ? ContactGeometry(model) : ContactGeometry()),
      rows_(model, {.limits = options.joints,
                    .friction_loss = options.joints,
                    .limit_spook = options.limit_spook,
                    .solve = options.solve,
                    .method = options.method,
                    .restitution_threshold = options.restitution_threshold}),
      force_(model.nv) {
  if (data.width() != 1)
    throw ValueError("data", std::to_string(data.width()) + " lanes",
                     "one world: contacts and joint limits are not in lanes yet");
  if (!(options.restitution >= 0 && options.restitution <= 1))
    throw ValueError("restitution", number_text(options.restitution), "0 to 1");
}

template <class R>
void RowStage<R>::begin(BasicData<R>& data, double h, In<R> velocity, const HeldRows<R>& held) {
  LinkState<R>* links =
      data.links();  // the solve without rows left orientations, offsets and velocities; origins are missing
  for (int i = 0; i < model_.njoint(); ++i) {
    const int parent = model_.joints[i].parent;
    links[i].o = parent >= 0 ? links[parent].o + links[i].r : links[i].r;
  }
  geometry_.detect(data, h, found_);
  for (LinkContact& c : found_) c.restitution = options_.restitution;
  rows_.build(data, h, data.qpos, data.qvel, velocity, found_, held);
  rounds_ = 0;
}

template <class R>
void RowStage<R>::solve(BasicData<R>& data, Out<R> velocity, bool included, bool fresh) {
  rows_.solve(data, data.qpos, data.joint_inertia, velocity, included, fresh);
}

template <class R>
In<R> RowStage<R>::applied_force(BasicData<R>& data) {
  std::copy(data.tau.begin(), data.tau.end(), force_.begin());
  rows_.add_force(data, force_);
  return force_;
}

template <class R>
void RowStage<R>::apply(BasicData<R>& data, double h, Out<R> velocity, const HeldRows<R>& held) {
  begin(data, h, velocity, held);
  if (rows_.rows() > 0) solve(data, velocity, false, held.rows() == 0);  // the loops' solve leaves no link velocities
}

template class RowStage<double>;
template class RowStage<float>;

}  // namespace tarsus
