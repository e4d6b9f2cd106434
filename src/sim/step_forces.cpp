// Forces on bodies over a Stepper's last step, for sensors that measure them.
#include "tarsus/sim/sensor.hpp"
#include "tarsus/sim/step.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

namespace {

/// One world's part of `all`.
template <class R>
AlignedVector<R> of_world(const BasicData<R>& data, std::span<const R> all, int world) {
  AlignedVector<R> out(all.size() / std::size_t(data.packs() * data.width()));
  data.get(all, int(out.size()), world, out);
  return out;
}

/// Forces of a world's equality constraints on bodies, at the origins of links, and along tendons. A body fixed to the
/// world or to a mocap body bears the reaction to the force on the other body.
template <class R>
void add_equality_forces(const Model& model, const EqualitySet& set, In<R> multiplier, const BasicData<R>& data,
                         int world, StepForces& forces) {
  std::vector<BodyForce>& out = forces.external;
  BasicData<R> work(model);
  work.qpos = of_world<R>(data, data.qpos, world);
  std::copy(forces.qpos.begin(), forces.qpos.end(), work.qpos.begin());
  work.mocap_pos = of_world<R>(data, data.mocap_pos, world);
  work.mocap_quat = of_world<R>(data, data.mocap_quat, world);
  kinematics<R>(model, work, work.qpos);
  DelassusRows<R> rows(model);
  set.add_blocks(rows);
  AlignedVector<R> phi(set.rows());
  set.evaluate<R>(work, 0, work.qpos, {}, rows, phi, {}, {});
  for (int i = 0; i < set.size(); ++i) {
    const Equality& e = set[i];
    using enum EqualityKind;
    if (e.kind != connect && e.kind != weld && e.kind != distance && e.kind != point_on_plane) continue;
    const typename DelassusRows<R>::Block block = rows.block(i);
    for (const int side : {0, 1}) {
      const int link = side == 0 ? block.a : block.b;
      if (link < 0) continue;
      double wrench[6] = {};
      for (int k = 0; k < 6; ++k) {
        for (int r = 0; r < block.nrow; ++r)
          wrench[k] -= double(multiplier[std::size_t(e.first_row + r)]) *
                       double(block.force[std::size_t(6 * side + k) * block.stride + r]);
      }
      const bool on_a = model.bodies[e.body_a].link == link;
      const Vec3d point = widen(work.links()[link].o), force{wrench[3], wrench[4], wrench[5]},
                  torque{wrench[0], wrench[1], wrench[2]};
      out.push_back({on_a ? e.body_a : e.body_b, point, force, torque});
      if (std::min(block.a, block.b) < 0) out.push_back({on_a ? e.body_b : e.body_a, point, -force, -torque});
    }
  }
  set.add_tendon_forces(std::vector<double>(work.qpos.begin(), work.qpos.end()),
                        std::vector<double>(multiplier.begin(), multiplier.end()), forces.tendon_along);
}

template <class R>
void add_tendon_forces(const Model& model, const Stepper<R>& stepper, int world, StepForces& out) {
  for (std::size_t t = 0; stepper.taker(world).has_force_rows() && t < model.spec.tendons.size(); ++t) {
    const TendonForces forces = stepper.tendon_forces(int(t), world);
    out.tendon_limit.push_back(forces.range), out.tendon_along[t] += forces.friction;
  }
}

/// Forces of contacts and joint limits of a world in SIMD lanes.
template <class R>
void add_row_forces(const Model& model, const LaneStage<R>& lanes, int world, StepForces& out) {
  for (int i = 0; i < model.njoint(); ++i) out.joint_limit.push_back(lanes.terms().limit_force(world, i));
  lanes.terms().each_touch(world, [&](const LaneTouched& c) {
    const ContactShape &a = lanes.geometry()->shapes()[c.first], &b = lanes.geometry()->shapes()[c.second];
    out.contacts.push_back(
        {a.body, b.body, a.geom, b.geom, c.point, c.normal, c.distance, c.force, c.torque, c.margin});
  });
}
/// The same for a world of the scalar path.
template <class R>
void add_row_forces(const Model& model, const RowStage<R>& rows, StepForces& out) {
  for (int i = 0; i < model.njoint(); ++i) out.joint_limit.push_back(rows.terms().limit_force(i));
  const std::span<const ContactShape> shapes = rows.geometry().shapes();
  const std::span<const LinkContact> contacts = rows.contacts();
  for (std::size_t i = 0; i < contacts.size(); ++i) {
    const auto [first, second] = ContactGeometry::shapes_of(contacts[i]);
    const ContactShape* a = &shapes[first];
    const ContactShape* b = &shapes[second];
    if (a->link != contacts[i].a) std::swap(a, b);
    TouchPoint touch{a->body, b->body, a->geom, b->geom, contacts[i].point.position, contacts[i].point.normal};
    touch.distance = rows.geometry().separation(contacts[i]);
    touch.force = rows.terms().force(int(i)), touch.torque = rows.terms().torque(int(i));
    touch.margin = touch.distance - contacts[i].point.distance;
    out.contacts.push_back(touch);
  }
}

}  // namespace

template <class R>
StepForces step_forces(const Model& model, const Stepper<R>& stepper, const BasicData<R>& data, int world) {
  if (stepper.status(world) != WorldStatus::ok) return kNoStep;
  StepForces out;
  const Stepper<R>& taker = stepper.taker(world);
  const LaneStage<R>* lanes = stepper.options().rows.any() ? taker.lane_rows() : nullptr;
  out.known = !lanes || lanes->terms().feels();
  if (!out.known) return out;
  out.tendon_along.resize(model.spec.tendons.size());
  const bool mine = &taker == &stepper;
  const auto of_taker = [&](In<R> all) {
    return mine ? of_world<R>(data, all, world) : AlignedVector<R>(all.begin(), all.end());
  };
  if (stepper.options().integrator == Integrator::semi_implicit_euler) {
    const auto take = [&](In<R> all, std::vector<double>& to) {
      if (!mine || data.worlds() == 1) return to.assign(all.begin(), all.end());
      const AlignedVector<R> own = of_taker(all);
      to.assign(own.begin(), own.end());
    };
    take(taker.start_qpos(), out.qpos), take(taker.start_qvel(), out.qvel);
  }
  if (taker.loops()) {
    const ConstrainedDynamics<R>& loops = *taker.loops();
    add_equality_forces<R>(model, loops.equalities(), of_taker(loops.multiplier()), data, world, out);
  }
  add_tendon_forces(model, stepper, world, out);
  if (lanes) add_row_forces(model, *lanes, world, out);
  if (taker.rows()) add_row_forces(model, *taker.rows(), out);
  for (const TouchPoint& touch : out.contacts) {
    out.external.push_back({touch.body_a, touch.point, touch.force, touch.torque});
    out.external.push_back({touch.body_b, touch.point, -touch.force, -touch.torque});
  }
  return out;
}

template StepForces step_forces<double>(const Model&, const Stepper<double>&, const BasicData<double>&, int);
template StepForces step_forces<float>(const Model&, const Stepper<float>&, const BasicData<float>&, int);

}  // namespace tarsus
