// Not a test of its own: evaluates states for tests/sim/actuation_against_mujoco.py, which compares them with MuJoCo's.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/sensor.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {
namespace {

using Numbers = std::vector<double>;

template <class Span>
Numbers copy(const Span& span) {
  return Numbers(span.begin(), span.end());
}

nlohmann::json evaluate(const Model& model, const nlohmann::json& state) {
  const Numbers qpos = state["qpos"], qvel = state["qvel"], ctrl = state["ctrl"], act = state["act"];
  Actuation actuation(model);
  actuation.evaluate(qpos, qvel, ctrl, act, model.timestep);
  Numbers passive(model.nv);
  actuation.passive_force(qpos, qvel, passive);
  nlohmann::json J = nlohmann::json::array();
  for (int t = 0; t < actuation.tendons().size(); ++t) {
    Numbers row(model.nv);
    const Tendon& tendon = actuation.tendons()[t];
    for (std::size_t i = 0; i < tendon.dofs.size(); ++i)
      row[tendon.dofs[i]] = actuation.passive().tendon_arm()[tendon.first + i];
    J.push_back(row);
  }
  return {{"actuator_length", copy(actuation.length())},
          {"actuator_velocity", copy(actuation.velocity())},
          {"actuator_force", copy(actuation.force())},
          {"act_dot", copy(actuation.act_dot())},
          {"qfrc_actuator", copy(actuation.actuator_force())},
          {"qfrc_passive", passive},
          {"ten_length", copy(actuation.passive().tendon_length())},
          {"ten_velocity", copy(actuation.passive().tendon_velocity())},
          {"ten_J", J}};
}

nlohmann::json sense(SensorSet& sensors, const nlohmann::json& state) {
  const Numbers qpos = state["qpos"], qvel = state["qvel"], qacc = state["qacc"], ctrl = state["ctrl"],
                act = state["act"];
  SensorInput input{state["time"], qpos, qvel, qacc, ctrl, act};
  Numbers out(sensors.numbers());
  sensors.evaluate(input, out);
  return out;
}

/// Steps as MuJoCo's Euler integrator takes them.
nlohmann::json follow(const Model& model, const nlohmann::json& state, int steps) {
  Data data(model);
  const auto fill = [](const nlohmann::json& from, auto& to) {
    const Numbers numbers = from;
    std::copy(numbers.begin(), numbers.end(), to.begin());
  };
  fill(state["qpos"], data.qpos), fill(state["qvel"], data.qvel);
  fill(state["ctrl"], data.ctrl), fill(state["act"], data.act);
  Stepper<double> stepper(model, data,
                          {.dt = model.timestep, .actuation = ActuationMode::explicit_forces, .loops = LoopMode::off});
  nlohmann::json out = nlohmann::json::array();
  for (int i = 0; i < steps; ++i) {
    stepper.step(data);
    out.push_back(copy(data.qpos));
  }
  return {{"qpos", out}, {"act", copy(data.act)}, {"status", name(stepper.status(0))}};
}

nlohmann::json answer(const nlohmann::json& question) {
  nlohmann::json out{{"file", question["file"]}};
  try {
    ReadOptions options;
    options.lenient = true;
    const Model model = compile(read_mjcf(std::string(question["file"]), options));
    SensorSet sensors(model);
    for (int i = 0; i < sensors.size(); ++i)
      out["sensors"].push_back({sensors[i].address, sensors[i].dimension, sensors[i].kind != SensorKind::none});
    for (const ActuatorSpec& a : model.spec.actuators) out["computed"].push_back(a.computed());
    for (const nlohmann::json& state : question["states"]) {
      nlohmann::json one = evaluate(model, state);
      one["sensordata"] = sense(sensors, state);
      out["states"].push_back(one);
    }
    if (question.contains("steps")) out["run"] = follow(model, question["states"][0], question["steps"]);
  } catch (const std::exception& error) {
    out["error"] = error.what();
  }
  return out;
}

TEST(ActuationDump, EvaluatesStates) {
  const char* list = std::getenv("TARSUS_DUMP_LIST");
  const char* out_name = std::getenv("TARSUS_DUMP_OUT");
  if (!list || !out_name) GTEST_SKIP() << "run by tests/sim/actuation_against_mujoco.py";
  std::ifstream in(list);
  std::ofstream out(out_name);
  std::string line;
  while (std::getline(in, line)) out << answer(nlohmann::json::parse(line)).dump() << '\n';
}

}  // namespace
}  // namespace tarsus
