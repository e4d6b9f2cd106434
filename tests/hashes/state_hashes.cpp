// Hashes of the final states of a set of runs: trees, lanes, contact also in lanes, loops, free bodies, particles, in
// both precisions. Two builds, instruction sets or compilers that print the same lines compute the same bits.
// tools/state_hashes.sh compares those that this machine can run; docs/decisions/0006-the-same-bits.md states what is
// promised.
#include <fmt/core.h>

#include <bit>

#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/math/cpu.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/particles/builtin.hpp"
#include "tarsus/particles/verlet.hpp"
#include "tarsus/sim/batch.hpp"
#include "tarsus/sim/rigid_scene.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {
namespace {

const std::string kModels = TARSUS_SOURCE_DIR "/models/";

template <class R>
const char* precision() {
  return sizeof(R) == 8 ? "double" : "float";
}

void print(const char* name, const char* precision, std::uint64_t hash) {
  fmt::print("{:<28} {:<6} {:016x}\n", name, precision, hash);
}

std::uint64_t hash_of(std::span<const double> values) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const double value : values) hash = (hash ^ std::bit_cast<std::uint64_t>(value)) * 0x100000001b3u;
  return hash;
}

/// `steps` steps of 1/60 s from initial states that differ between worlds, either limp or with drives towards the
/// initial pose.
template <class R>
void tree(const char* name, const Model& model, int worlds, bool driven, bool contacts, int steps) {
  BasicData<R> data(model, worlds);
  std::vector<R> qpos(model.nq), qvel(model.nv);
  AlignedVector<R> target(data.qpos.size());
  for (int world = 0; world < worlds; ++world) {
    for (int i = 0; i < model.nq; ++i) qpos[i] = R(model.qpos0[i]);
    data.set(target, model.nq, world, qpos);
    for (int i = 0; i < model.nv; ++i) qvel[i] = R((7 * i + 3 * world) % 11 - 5) / R(8);
    data.set(data.qpos, model.nq, world, qpos);
    data.set(data.qvel, model.nv, world, qvel);
  }
  StepOptions options;
  options.rows.contacts = options.rows.joints = contacts;
  Stepper<R> stepper(model, data, options);
  const Drives drives = driven ? Drives::uniform(model) : Drives::none(model);
  for (int i = 0; i < steps; ++i) stepper.step(data, drives, target);
  print(name, precision<R>(), state_hash(data));
}

template <class R>
void tree(const char* name, const std::string& file, int worlds, bool driven, bool contacts, int steps) {
  tree<R>(name, compile(read_model(kModels + file)), worlds, driven, contacts, steps);
}

/// Worlds in lanes that fall with contacts, joint limits and, if driven, drives with force limits. The last pack is not
/// full.
/// @param iterations of Newton's method; with few, the scalar path repeats most steps. 0: the default
template <class R>
void lanes(const char* name, const Model& model, bool driven, int steps, int iterations = 0) {
  BatchOptions options;
  options.step.rows.contacts = options.step.rows.joints = true;
  if (iterations > 0) options.step.rows.solve.max_iterations = iterations;
  if (driven) options.drives = Drives::uniform(model), options.drives->force_limit.assign(model.nv, 60);
  Batch<R> batch(model, 11, options);
  for (std::size_t i = 0; i < batch.qvel().size(); ++i) batch.qvel()[i] = R(int(7 * i % 23) - 11) / R(8);
  for (int i = 0; i < steps; ++i) batch.step();
  print(name, precision<R>(), batch.state_hash());
}

template <class R>
void lanes(const char* name, const std::string& file, int steps, int iterations = 0) {
  lanes<R>(name, compile(read_model(kModels + file)), true, steps, iterations);
}

/// A wall of boxes, each on two below, as one model: its contacts are eliminated with the joints.
Model wall() {
  std::string boxes;
  for (int i = 0; i < 18; ++i) {
    boxes += fmt::format("<body pos='{} 0 {}'><freejoint/><geom type='box' size='.1 .05 .05'/></body>",
                         0.202 * (i % 6) + 0.1 * (i / 6 % 2), 0.05 + 0.1 * (i / 6));
  }
  return compile(parse_mjcf("<mujoco><worldbody><geom type='plane' size='0 0 1'/>" + boxes + "</worldbody></mujoco>",
                            "wall", "."));
}

template <class R>
void bodies(const char* name, const char* scene) {
  RigidWorld<R> world = make_world<R>(*named_scene(scene));
  for (int i = 0; i < 120; ++i) world.step();
  print(name, precision<R>(), world.state_hash());
}

void particles(const char* name, int steps) {
  ParticleSystem system = make_builtin_system(name);
  VelocityVerlet verlet(system, {});
  for (int i = 0; i < steps; ++i) verlet.step();
  print(name, "double", hash_of(system.position) ^ std::rotl(hash_of(system.velocity), 1));
}

/// The elementary functions that code outside of kernels uses in place of the system's mathematical library.
void elementary_functions() {
  std::vector<double> values;
  for (int i = -5000; i < 5000; ++i) {
    const double x = 0.0371 * i, y = 1.7 - 0.0113 * i, positive = elementary::exp(0.01 * i);
    values.insert(values.end(),
                  {elementary::sin(x), elementary::cos(y), elementary::atan2(x, y), positive, elementary::log(positive),
                   elementary::pow(positive, 1.6075), elementary::hypot(x, y)});
  }
  print("elementary functions", "double", hash_of(values));
}

template <class R>
void all() {
  tree<R>("humanoid, drives", "humanoid.xml", 1, true, false, 120);
  tree<R>("humanoid, 20 worlds", "humanoid.xml", 20, true, false, 120);
  tree<R>("dog, drives", "dog.xml", 1, true, false, 120);
  tree<R>("snake72, limp", "snake72.xml", 1, false, false, 120);
  tree<R>("humanoid falls", "humanoid.xml", 1, false, true, 90);
  tree<R>("Stewart platform", "loops/stewart.xml", 1, false, false, 240);
  tree<R>("four-bar linkage", "loops/four_bar.xml", 1, false, false, 240);
  lanes<R>("humanoids fall in lanes", "humanoid.xml", 60);
  lanes<R>("dogs fall in lanes", "dog.xml", 30);
  lanes<R>("lanes, then scalar path", "humanoid.xml", 20, 3);
  lanes<R>("walls crowd lanes", wall(), false, 60);
  tree<R>("wall of 18 boxes", wall(), 1, false, true, 90);
  bodies<R>("balls:6:6", "balls:6:6");
  bodies<R>("box_pyramid:5", "box_pyramid:5");
}

}  // namespace
}  // namespace tarsus

int main() {
  using namespace tarsus;
  fmt::print(stderr, "kernels: {}\n", name(isa_level()));
  all<double>();
#if !defined(TARSUS_DOUBLE_ONLY)
  all<float>();
#endif
  particles("water216", 50);
  particles("c60", 200);
  particles("butane125", 50);
  elementary_functions();
}
