#include "tarsus/sim/world_parameters.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "constraint/range_spring.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/constraint/hanging.hpp"
#include "tarsus/constraint/reference_mass.hpp"
#include "tarsus/dynamics/spin_response.hpp"

namespace tarsus {

namespace {

/// Index of each body's first geom, and the number of geoms.
std::vector<int> first_geoms(const Model& model) {
  std::vector<int> first{0};
  for (const BodySpec& body : model.spec.bodies) first.push_back(first.back() + int(body.geoms.size()));
  return first;
}

}  // namespace

const char* name(WorldParameter which) {
  static constexpr const char* kNames[kWorldParameters] = {"mass_scale",
                                                           "damping_scale",
                                                           "armature_scale",
                                                           "friction_loss_scale",
                                                           "com_offset",
                                                           "gravity",
                                                           "friction_scale",
                                                           "kp_scale",
                                                           "kd_scale",
                                                           "force_scale",
                                                           "actuator_gain_scale",
                                                           "actuator_damping_scale",
                                                           "actuator_force_scale"};
  return kNames[int(which)];
}

int numbers(const Model& model, WorldParameter which) {
  switch (which) {
    case WorldParameter::mass_scale: return model.nbody();
    case WorldParameter::damping_scale:
    case WorldParameter::armature_scale:
    case WorldParameter::friction_loss_scale: return model.njoint();
    case WorldParameter::com_offset: return 3 * model.nbody();
    case WorldParameter::gravity: return 3;
    case WorldParameter::friction_scale: return first_geoms(model).back();
    case WorldParameter::actuator_gain_scale:
    case WorldParameter::actuator_damping_scale:
    case WorldParameter::actuator_force_scale: return int(model.spec.actuators.size());
    default: return model.nv;
  }
}

bool WorldParameters::any() const {
  return std::any_of(values.begin(), values.end(), [](const std::vector<double>& v) { return !v.empty(); });
}

std::span<const double> WorldParameters::of(const Model& model, WorldParameter which, int world) const {
  const std::span<const double> all = (*this)[which];
  const std::size_t n = at(numbers(model, which));
  return all.empty() ? all : all.subspan(n * at(world), n);
}

ActuatorScales WorldParameters::actuators(const Model& model, int world) const {
  return {of(model, WorldParameter::actuator_gain_scale, world),
          of(model, WorldParameter::actuator_damping_scale, world),
          of(model, WorldParameter::actuator_force_scale, world)};
}

WorldParameters WorldParameters::world(const Model& model, int world) const {
  WorldParameters out;
  for (int k = 0; k < kWorldParameters; ++k) {
    const std::span<const double> mine = of(model, WorldParameter(k), world);
    out.values[at(k)].assign(mine.begin(), mine.end());
  }
  return out;
}

void WorldParameters::check_sizes(const Model& model, int worlds) const {
  for (int k = 0; k < kWorldParameters; ++k) {
    const std::vector<double>& own = values[at(k)];
    const WorldParameter which = WorldParameter(k);
    if (!own.empty()) check_size(name(which), own.size(), at(worlds) * at(numbers(model, which)));
  }
}

void check_numbers(const Model& model, WorldParameter which, std::span<const double> given) {
  const bool positive = which == WorldParameter::mass_scale || which >= WorldParameter::force_scale;
  const bool signed_ = is_of_vectors(which);
  const int n = numbers(model, which);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const double x = given[i];
    if (std::isfinite(x) && (signed_ || x > 0 || (x == 0 && !positive))) continue;
    throw ValueError(
        std::string(name(which)) + "[" + std::to_string(i / at(n)) + ", " + std::to_string(i % at(n)) + "]",
        number_text(x),
        signed_    ? "a finite number"
        : positive ? "a finite, positive number"
                   : "a finite number, not negative");
  }
}

Drives scaled(Drives drives, const Model& model, const WorldParameters& parameters, int world) {
  const auto multiply = [&](std::vector<double>& numbers, WorldParameter which) {
    const std::span<const double> scale = parameters.of(model, which, world);
    for (std::size_t i = 0; i < std::min(scale.size(), numbers.size()); ++i) numbers[i] *= scale[i];
  };
  multiply(drives.kp, WorldParameter::kp_scale), multiply(drives.kd, WorldParameter::kd_scale);
  multiply(drives.force_limit, WorldParameter::force_scale), multiply(drives.force_floor, WorldParameter::force_scale);
  return drives;
}

/// The numbers of what hangs in the lanes' worlds.
template <class R>
static void fill_hanging(WorldTable<R>& table, const Model& model, const HangingLinks<R>& hanging,
                         const WorldParameters& parameters, std::span<const int> world, RestingWorlds& resting,
                         std::span<const ReferenceMass> references) {
  std::vector<double> gravity;
  for (const int w : world) {
    const std::span<const double> own = parameters.of(model, WorldParameter::gravity, w);
    gravity.push_back(norm(own.empty() ? model.gravity : Vec3d{own[0], own[1], own[2]}));
  }
  const std::vector<HangingLink<double>> links = hanging.links(model, resting, gravity, references);
  const std::size_t nlink = at(model.njoint()), width = world.size();
  for (std::size_t i = 0; i < nlink; ++i) {
    const auto put = [&](double HangingLink<double>::*number) {
      for (std::size_t lane = 0; lane < width; ++lane) table.hanging.push_back(R(links[lane * nlink + i].*number));
    };
    put(&HangingLink<double>::hangs), put(&HangingLink<double>::loose), put(&HangingLink<double>::weight);
    put(&HangingLink<double>::above), put(&HangingLink<double>::most);
  }
  table.hangs = std::ranges::any_of(links, [](const HangingLink<double>& link) { return link.hangs > 0; });
}

template <class R>
void fill(WorldTable<R>& table, const Model& model, const ContactGeometry* geometry, const WorldParameters& parameters,
          std::span<const int> world, const ActuatorSet* servos, const HangingLinks<R>* hanging) {
  const std::size_t width = world.size();
  // number(i, the world's part of the parameter) is called for each i < n and lane; absent parameters are skipped.
  const auto lay = [&](AlignedVector<R>& to, std::size_t n, WorldParameter which, const auto& number) {
    to.clear();
    if (parameters[which].empty()) return;
    to.resize(n * width);
    for (std::size_t lane = 0; lane < width; ++lane) {
      const std::span<const double> own = parameters.of(model, which, world[lane]);
      for (std::size_t i = 0; i < n; ++i) to[i * width + lane] = R(number(i, own));
    }
  };
  const auto copy = [&](AlignedVector<R>& to, WorldParameter which) {
    lay(to, at(numbers(model, which)), which, [](std::size_t i, std::span<const double> own) { return own[i]; });
  };
  const auto scale_joints = [&](AlignedVector<R>& to, WorldParameter which, double Joint::*number) {
    lay(to, at(model.njoint()), which,
        [&](std::size_t i, std::span<const double> own) { return model.joints[i].*number * own[i]; });
  };
  scale_joints(table.damping, WorldParameter::damping_scale, &Joint::damping);
  scale_joints(table.friction_loss, WorldParameter::friction_loss_scale, &Joint::friction_loss);
  const auto armature = [&](std::size_t dof, std::span<const double> own) {
    return own.empty() ? model.armature[dof] : model.armature[dof] * own[at(model.dof_joint[dof])];
  };
  lay(table.armature, at(model.nv), WorldParameter::armature_scale, armature);
  table.mass_scale.clear(), table.com_offset.clear();
  table.inertia.clear(), table.row_mass.clear(), table.spring_rate2.clear(), table.carried_inertia.clear();
  table.light.clear(), table.round.clear(), table.hanging.clear(), table.hangs = false;
  constexpr WorldParameter kInertial[] = {WorldParameter::mass_scale, WorldParameter::com_offset,
                                          WorldParameter::armature_scale};
  const bool inertial =
      std::ranges::any_of(kInertial, [&](WorldParameter which) { return !parameters[which].empty(); });
  const bool hangs = hanging && (inertial || !parameters[WorldParameter::gravity].empty());
  if (inertial || hangs) {
    std::vector<RigidInertia<double>> all;  // [lane][link]
    std::vector<double> armatures;          // [lane][nv]
    for (const int w : world) {
      const auto own = [&](WorldParameter which) { return parameters.of(model, which, w); };
      const auto links = link_inertias(model, own(WorldParameter::mass_scale), own(WorldParameter::com_offset));
      all.insert(all.end(), links.begin(), links.end());
      for (std::size_t dof = 0; dof < at(model.nv); ++dof)
        armatures.push_back(armature(dof, own(WorldParameter::armature_scale)));
    }
    RestingWorlds resting(model, all, armatures);
    const std::vector<ReferenceMass> references = reference_masses(model, resting);
    if (hangs) fill_hanging(table, model, *hanging, parameters, world, resting, references);
    const std::vector<double> masses = reference_numbers<double>(references);
    const std::size_t nlink = at(model.njoint()), nv = at(model.nv), lanes = inertial ? width : 0;
    for (AlignedVector<R>* to : {&table.spring_rate2, &table.light, &table.round}) to->resize(nlink * lanes);
    const std::vector<std::uint8_t> spins = spinning_links(model);
    table.inertia.resize(nlink * 10 * lanes), table.row_mass.resize(masses.size() / width * lanes);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      R *inertia = table.inertia.data() + lane, *mass = table.row_mass.data() + lane,
        *rate2 = table.spring_rate2.data() + lane, *light = table.light.data() + lane,
        *round = table.round.data() + lane;
      const auto put = [&](R*& to, std::initializer_list<double> numbers) {
        for (const double x : numbers) *to = R(x), to += width;
      };
      const std::span<const RigidInertia<double>> links = std::span(all).subspan(lane * nlink, nlink);
      for (const auto& [m, h, I] : links) put(inertia, {m, h.x, h.y, h.z, I.xx, I.xy, I.xz, I.yy, I.yz, I.zz});
      for (const double x : std::span(masses).subspan(lane * nlink * kReferenceNumbers, nlink * kReferenceNumbers))
        put(mass, {x});
      const std::vector<double> carried = carried_inertia(model, links, std::span(armatures).subspan(lane * nv, nv));
      for (const Joint& joint : model.joints) put(rate2, {spring_rate(joint, carried)});
      for (std::size_t i = 0; i < nlink; ++i) {
        const Joint& joint = model.joints[i];
        put(round, {double(spins[i] == kRoundLink && is_round(links[i]))});
        put(light, {double(joint.limited && turns_freely(joint.type) && holds_light_link(model, links, int(i)))});
      }
      table.carried_inertia.insert(table.carried_inertia.end(), carried.begin(), carried.end());
    }
  }
  if (inertial && width == 1)
    copy(table.mass_scale, WorldParameter::mass_scale), copy(table.com_offset, WorldParameter::com_offset);
  const auto list = [&](std::vector<double>& to, WorldParameter which) {
    to.clear();
    for (std::size_t lane = 0; lane < width && !parameters[which].empty(); ++lane) {
      const std::span<const double> own = parameters.of(model, which, world[lane]);
      to.insert(to.end(), own.begin(), own.end());
    }
  };
  list(table.damping_scale, WorldParameter::damping_scale);
  list(table.actuator_gain, WorldParameter::actuator_gain_scale);
  list(table.actuator_damping, WorldParameter::actuator_damping_scale);
  list(table.actuator_force, WorldParameter::actuator_force_scale);
  copy(table.gravity, WorldParameter::gravity);
  table.friction.clear();
  if (geometry && !parameters[WorldParameter::friction_scale].empty()) {
    const std::vector<int> first = first_geoms(model);
    const auto geom = [&](std::uint32_t shape) {
      const ContactShape& s = geometry->shapes()[shape];
      return at(first[at(s.body)] + s.geom);
    };
    const std::span<const BodyPair> pairs = geometry->pairs();
    lay(table.friction, pairs.size(), WorldParameter::friction_scale, [&](std::size_t i, std::span<const double> own) {
      return geometry->friction_of(pairs[i], own[geom(pairs[i].first)], own[geom(pairs[i].second)]);
    });
  }
  table.kp.clear(), table.kd.clear(), table.force.clear();
  if (width == 1) return;
  if (!servos) {
    copy(table.kp, WorldParameter::kp_scale), copy(table.kd, WorldParameter::kd_scale);
    copy(table.force, WorldParameter::force_scale);
    return;
  }
  const auto lay_mean = [&](AlignedVector<R>& to, WorldParameter which, const auto& weight) {
    lay(to, at(model.nv), which, [&](std::size_t dof, std::span<const double> own) {
      double sum = 0, all = 0;
      for (int i = 0; i < servos->size(); ++i) {
        const Actuator& a = (*servos)[i];
        if (!a.is_joint_servo() || a.dofs[0] != int(dof)) continue;
        const double w = weight(a);
        sum += w * own[at(i)], all += w;
      }
      return all > 0 ? sum / all : 1;
    });
  };
  const auto square = [](const Actuator& a) { return a.gear[0] * a.gear[0]; };
  lay_mean(table.kp, WorldParameter::actuator_gain_scale,
           [&](const Actuator& a) { return square(a) * a.stiffness(0); });
  lay_mean(table.kd, WorldParameter::actuator_damping_scale,
           [&](const Actuator& a) { return square(a) * a.damping(0); });
  lay_mean(table.force, WorldParameter::actuator_force_scale,
           [](const Actuator& a) { return double(a.force_limited); });  // then it is the only one of its joint
}

template void fill<double>(WorldTable<double>&, const Model&, const ContactGeometry*, const WorldParameters&,
                           std::span<const int>, const ActuatorSet*, const HangingLinks<double>*);
template void fill<float>(WorldTable<float>&, const Model&, const ContactGeometry*, const WorldParameters&,
                          std::span<const int>, const ActuatorSet*, const HangingLinks<float>*);

}  // namespace tarsus
