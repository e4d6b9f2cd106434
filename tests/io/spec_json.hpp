// A ModelSpec as JSON, for comparison with other readers' results for the same file.
#pragma once

#include <nlohmann/json.hpp>

#include "tarsus/model/spec.hpp"

namespace tarsus {

inline nlohmann::json to_json(const Vec3d& v) { return {v.x, v.y, v.z}; }
inline nlohmann::json to_json(const Quatd& q) { return {q.w, q.x, q.y, q.z}; }

inline nlohmann::json to_json(const JointSpec& j) {
  return {{"name", j.name},
          {"type", static_cast<int>(j.type)},
          {"pos", to_json(j.position)},
          {"axis", to_json(j.axis)},
          {"ref", j.reference},
          {"springref", j.spring_reference},
          {"stiffness", j.stiffness},
          {"damping", j.damping},
          {"armature", j.armature},
          {"frictionloss", j.friction_loss},
          {"limited", j.limited},
          {"range", j.range},
          {"force_limited", j.force_limited},
          {"force_range", j.force_range}};
}

inline nlohmann::json to_json(const GeomSpec& g) {
  return {{"name", g.name},
          {"type", static_cast<int>(g.type)},
          {"size", to_json(g.size)},
          {"pos", to_json(g.position)},
          {"quat", to_json(g.orientation)},
          {"mesh", g.mesh},
          {"friction", g.friction},
          {"contype", g.contype},
          {"conaffinity", g.conaffinity},
          {"condim", g.condim},
          {"margin", g.margin},
          {"gap", g.gap},
          {"group", g.group}};
}

inline nlohmann::json to_json(const BodySpec& b) {
  nlohmann::json out = {{"name", b.name},
                        {"parent", b.parent},
                        {"pos", to_json(b.position)},
                        {"quat", to_json(b.orientation)},
                        {"mocap", b.mocap},
                        {"gravcomp", b.gravity_compensation}};
  if (b.inertial) {
    const Sym3d& i = b.inertial->inertia;
    out["mass"] = b.inertial->mass;
    out["com"] = to_json(b.inertial->com);
    out["inertia"] = {i.xx, i.xy, i.xz, i.yy, i.yz, i.zz};
  }
  for (const JointSpec& j : b.joints) out["joints"].push_back(to_json(j));
  for (const GeomSpec& g : b.geoms) out["geoms"].push_back(to_json(g));
  for (const SiteSpec& s : b.sites)
    out["sites"].push_back(
        {{"name", s.name}, {"pos", to_json(s.position)}, {"quat", to_json(s.orientation)}, {"size", to_json(s.size)}});
  return out;
}

inline nlohmann::json to_json(const ModelSpec& spec) {
  nlohmann::json out = {
      {"name", spec.name}, {"timestep", spec.option.timestep}, {"gravity", to_json(spec.option.gravity)}};
  for (const BodySpec& b : spec.bodies) out["bodies"].push_back(to_json(b));
  for (const ActuatorSpec& a : spec.actuators) {
    out["actuators"].push_back({{"name", a.name},
                                {"target", a.target},
                                {"transmission", static_cast<int>(a.transmission)},
                                {"gain", a.gain},
                                {"bias", a.bias},
                                {"gear", a.gear},
                                {"ctrl_limited", a.control_limited},
                                {"ctrl_range", a.control_range},
                                {"force_limited", a.force_limited},
                                {"force_range", a.force_range},
                                {"dynamics", a.dynamics}});
  }
  for (const KeyframeSpec& k : spec.keyframes)
    out["keys"].push_back({{"name", k.name}, {"qpos", k.qpos}, {"ctrl", k.ctrl}, {"qvel", k.qvel}});
  for (const EqualitySpec& q : spec.equalities) {
    out["equalities"].push_back({{"name", q.name},
                                 {"type", static_cast<int>(q.type)},
                                 {"first", q.first},
                                 {"second", q.second},
                                 {"active", q.active},
                                 {"anchor", to_json(q.anchor)},
                                 {"poly", q.polynomial}});
  }
  for (const TendonSpec& t : spec.tendons) {
    nlohmann::json terms = nlohmann::json::array();
    for (const auto& term : t.terms) terms.push_back({term.joint, term.coefficient});
    out["tendons"].push_back({{"name", t.name},
                              {"spatial", t.spatial},
                              {"terms", terms},
                              {"limited", t.limited},
                              {"range", t.range},
                              {"stiffness", t.stiffness},
                              {"damping", t.damping}});
  }
  for (const auto& p : spec.contact_pairs) out["pairs"].push_back({p.geom1, p.geom2});
  for (const auto& x : spec.contact_excludes) out["excludes"].push_back({x.body1, x.body2});
  for (const auto& s : spec.sensors) out["sensors"].push_back({s.kind, s.name});
  for (const Diagnostic& d : spec.diagnostics) out["diagnostics"].push_back(d.text());
  return out;
}

}  // namespace tarsus
