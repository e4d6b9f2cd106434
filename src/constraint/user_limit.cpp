// A user's limits as terms; see tarsus/constraint/user_limit.hpp.
#include "tarsus/constraint/user_limit.hpp"

#include "tarsus/constraint/step_terms.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

void check(const UserLimit& limit, const Model& model) {
  const std::string what = " of limit \"" + limit.name + "\"";
  if (limit.joint < 0 || limit.joint >= model.njoint())
    throw ValueError("joint" + what, std::to_string(limit.joint), "an index below " + std::to_string(model.njoint()));
  if (moves_freely(model.joints[limit.joint].type))
    throw ValueError("joint" + what, "\"" + model.joints[limit.joint].name + "\"", "a hinge, a slide or a ball joint");
  if (!limit.evaluate) throw ValueError("function" + what, "none", "a function of the joint's qpos");
}

template <class R>
void StepTerms<R>::add_user_limits() {
  for (std::size_t k = 0; !limits_.joined.empty() && k < limits_.users.size(); ++k) {  // laid out once more
    const auto& [name, rows, gap, near] = limits_.users[k];
    if (near || joined(name)) add_bound(name.kind, name.identity, rows, gap, {}, true);
  }
  if (!limits_.joined.empty()) return;
  limits_.users.clear();
  for (std::size_t i = 0; i < options_.user_limits.size(); ++i) {
    const UserLimit& limit = options_.user_limits[i];
    const Joint& joint = model_.joints[limit.joint];
    std::array<double, 4> q{};
    for (int k = 0; k < joint.nq(); ++k) q[std::size_t(k)] = double(step_.qpos[joint.qpos + k]);
    const std::optional<UserLimit::Value> value = limit.evaluate(std::span(q).first(std::size_t(joint.nq())));
    if (!value) continue;
    const bool axial = has_axis(joint.type);
    const JointRows rows{limit.joint, axial ? JointRows::Part::axial : JointRows::Part::angular, 1,
                         axial ? Vec3d{value->e.x, 0, 0} : widen(step_.data->links()[limit.joint].R) * value->e};
    limits_.users.push_back({{Kind::user_limit, i}, rows, value->gap, false});
    limits_.users.back().near = add_bound(Kind::user_limit, i, rows, value->gap, {}, false);
  }
}

template void StepTerms<double>::add_user_limits();
template void StepTerms<float>::add_user_limits();

}  // namespace tarsus
