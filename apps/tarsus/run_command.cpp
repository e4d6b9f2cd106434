// tarsus run: a model tracks a clip under stable PD, or moves without a clip.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "command.hpp"
#include "policy_run.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"
#include "tarsus/io/gains_text.hpp"
#include "tarsus/io/output_file.hpp"
#include "tarsus/io/page.hpp"
#include "tarsus/io/recording.hpp"
#include "tarsus/sim/track.hpp"

namespace tarsus::app {

namespace {

struct Run {
  std::string model, clip, keyframe, mapping, gains, force_limit, out, page, integrator = "euler", contacts = "auto";
  std::string policy, loops = "spook", velocity_products = "auto", ctrl, actuation = "implicit";
  std::vector<std::string> push_texts;
  std::vector<Push> pushes;
  double restitution = 0;
  std::optional<double> given_dt;
  double dt = 1.0 / 30, duration = 10, start = 0;
  bool free_root = false, partial = false, use_float = false, plain = false, json = false, quiet = false,
       no_record = false, profile = false;
  ReadOptions options;
  std::string arguments;        ///< command line of this run, as json_of_words()
  std::string setting;          ///< first given option that affects how the model is run, if any
  std::string folder;           ///< folder to which relative file names in `arguments` refer
  FrameSink* replay = nullptr;  ///< receives the frames instead of files; nothing is printed

  bool with_contacts = false, with_loops = false;
  bool driven() const { return !clip.empty() || !gains.empty(); }

  /// Sets what depends on the model. With a clip, contacts are off unless requested: the root drive carries the
  /// character, so its feet may be anywhere.
  void decide(const Model& model) {
    dt = given_dt.value_or(clip.empty() ? model.timestep : 1.0 / 30);
    with_contacts = contacts == "on" || (contacts == "auto" && clip.empty() && integrator == "euler");
    with_loops = loops != "off" && !model.spec.equalities.empty();
  }
  /// Refuses options that would have no effect.
  void check(const Model& model) const {
    const auto refuse = [](const char* option, const char* expected) { throw ValueError(option, "given", expected); };
    if (!policy.empty()) {
      const char* own = "no such option: the policy determines gains, limits and contacts";
      if (!gains.empty()) refuse("--gains with --policy", own);
      if (!force_limit.empty()) refuse("--force-limit with --policy", own);
      if (plain) refuse("--plain with --policy", own);
      if (free_root) refuse("--free-root with --policy", own);
      if (use_float) refuse("--float with --policy", "no such option: a policy runs in double precision");
      if (!push_texts.empty()) refuse("--push with --policy", "a run without a policy");
      if (profile) refuse("--profile with --policy", "a run without a policy");
      if (contacts != "auto") refuse("--contacts with --policy", own);
      if (restitution != 0) refuse("--restitution with --policy", own);
      if (integrator != "euler" || loops != "spook" || velocity_products != "auto")
        refuse("--integrator, --loops or --velocity-products with --policy", own);
    }
    if (!driven() && free_root) refuse("--free-root", "drives, from --clip or --gains");
    if (free_root && std::ranges::none_of(model.joints, [](const Joint& j) { return moves_freely(j.type); }))
      refuse("--free-root", "a model with a free root");
    if (loops == "shake" && !with_loops) refuse("--loops shake", "a model with equality constraints");
    if (!driven() && plain) refuse("--plain", "drives, from --clip or --gains");
    if (!driven() && !force_limit.empty()) refuse("--force-limit", "drives, from --clip or --gains");
    if (plain && integrator == "rk4") refuse("--plain", "--integrator euler: rk4 treats every force explicitly");
    if (driven() && !ctrl.empty()) refuse("--ctrl", "the model's own actuators: no --clip and no --gains");
    if (!ctrl.empty() && actuation == "off") refuse("--ctrl", "actuators that act: no --actuation off");
    if (!ctrl.empty() && model.nu == 0) refuse("--ctrl", "a model with actuators");
    if (actuation == "explicit" && model.nu == 0) refuse("--actuation explicit", "a model with actuators");
    if (velocity_products == "on" && integrator == "rk4")
      refuse("--velocity-products on", "--integrator euler: rk4 treats every force explicitly");
    if (driven() && actuation != "implicit")
      refuse("--actuation", "the model's own actuators: no --clip and no --gains");
    if (!with_contacts && restitution != 0) refuse("--restitution", "contacts (--contacts on)");
    if (with_contacts && integrator == "rk4") refuse("--contacts on", "--integrator euler");
    if (!out.empty() && std::filesystem::path(out).extension() != ".npz")
      throw ValueError("--out", out, "a file that ends in .npz");
    if (!page.empty() && std::filesystem::path(page).extension() != ".html")
      throw ValueError("--page", page, "a file that ends in .html");
    check_duration(duration, dt);
    if (!std::isfinite(start)) throw ValueError("--start", number_text(start), "a finite number of seconds");
    if (!page.empty() && !replay) check_output(page);
  }
};

ClipBinding bind_clip(const Run& run, const Model& model) {
  std::optional<ClipMapping> mapping;
  if (!run.mapping.empty()) mapping = read_clip_mapping(run.mapping);
  const MotionClip clip = read_clip(run.clip, mapping ? &*mapping : nullptr);
  const ClipBinding binding = bind(model, clip, mapping ? *mapping : choose_clip_mapping(model, clip));
  const int driven = int(binding.driven().size());
  if (2 * driven < model.njoint() && !run.partial) {
    throw InputError(
        Location{run.clip, 0, 0, {}},
        fmt::format("the mapping {} drives {} of {} joints of {}: probably the wrong mapping. tarsus map {} "
                    "{} shows a fitting one; --mapping selects another, --partial accepts this one",
                    binding.mapping_name(), driven, model.njoint(), run.model, run.clip, run.model));
  }
  if (!run.quiet && !run.json) {
    for (const Diagnostic& d : binding.diagnostics()) {
      if (d.severity == Severity::warning) tell("{}\n", d.text());
    }
  }
  return binding;
}

/// Removes the drives of free joints, so that no external root wrench holds the character.
void let_roots_go(const Model& model, Drives& drives) {
  for (const Joint& joint : model.joints) {
    if (!moves_freely(joint.type)) continue;
    std::fill_n(drives.kp.begin() + joint.qvel, 6, 0.0);
    std::fill_n(drives.kd.begin() + joint.qvel, 6, 0.0);
  }
}

std::string default_out(const Run& run) {
  const auto stem = [](const std::string& path) { return std::filesystem::path(path).stem().string(); };
  return "out/" + stem(run.model) + (run.clip.empty() ? "" : "_" + stem(run.clip)) + ".npz";
}

nlohmann::json to_json(const Energy& e) {
  return {{"kinetic", e.kinetic}, {"potential", e.potential}, {"spring", e.spring}, {"total", e.total()}};
}

/// --push: "T,BODY,FX,FY,FZ,DURATION". A body's name may contain commas.
Push parse_push(const std::string& text, const Model& model, double duration) {
  const auto fail = [&](const std::string& what) { throw ValueError("--push", "\"" + text + "\"", what); };
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (parts.size() < 6) fail("T,BODY,FX,FY,FZ,DURATION [s, name, N, N, N, s], such as 1,torso,0,100,0,0.1");
  const auto number = [&](const std::string& part) {
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || !std::isfinite(value))
      fail("T,BODY,FX,FY,FZ,DURATION; '" + part + "' is not a number");
    return value;
  };
  Push push;
  const std::size_t last = parts.size() - 4;
  std::string body = parts[1];
  for (std::size_t i = 2; i < last; ++i) body += "," + parts[i];
  push.start = number(parts[0]);
  push.force = {number(parts[last]), number(parts[last + 1]), number(parts[last + 2])};
  push.duration = number(parts[last + 3]);
  push.body = model.find_body(body);
  if (push.body < 0 || model.bodies[push.body].link < 0) {
    std::string names;
    for (const Body& b : model.bodies) {
      if (b.link >= 0 && !b.name.empty() && names.size() < 1000) names += (names.empty() ? "" : ", ") + b.name;
    }
    fail("a moving body: " + names);
  }
  if (push.start < 0 || push.start >= duration) fail("a time from 0 to the end of the run");
  if (push.duration <= 0) fail("a duration greater than 0");
  return push;
}

nlohmann::json to_json(const std::vector<Push>& pushes, const Model& model) {
  nlohmann::json out = nlohmann::json::array();
  for (const Push& p : pushes) {
    out.push_back({{"time", p.start},
                   {"body", model.bodies[p.body].name},
                   {"force_N", {p.force.x, p.force.y, p.force.z}},
                   {"duration", p.duration}});
  }
  return out;
}

nlohmann::json to_json(const Run& run, const TrackReport& r, const std::string& out, const ClipBinding* clip,
                       const Model& model) {
  nlohmann::json json{{"status", name(r.status)},
                      {"steps", r.steps},
                      {"dt", run.dt},
                      {"seconds", r.seconds},
                      {"steps_per_second", r.steps_per_second()},
                      {"energy", to_json(r.energy)},
                      {"nan", r.nan}};
  if (clip)
    json["clip"] = {{"mapping", clip->mapping_name()},
                    {"driven", clip->driven().size()},
                    {"joints", model.njoint()},
                    {"duration", clip->duration()},
                    {"loops", clip->loop()}};
  if (run.driven()) json["tracking_error_m"] = {{"mean", r.error_mean}, {"max", r.error_max}};
  if (run.with_contacts) {
    json["contacts"] = {{"touching_max", r.contacts_max},
                        {"penetration_max_m", r.penetration_max},
                        {"residual_max_m_per_s", r.row_residual_max},
                        {"iterations_mean", r.row_iterations}};
  }
  if (run.with_loops)
    json["loops"] = {{"mode", run.loops}, {"error_max", r.loop_error_max}, {"worst_row", r.loop_error_row}};
  if (!run.pushes.empty()) {
    json["pushes"] = to_json(run.pushes, model);
    json["push_impulse_Ns"] = {r.push_impulse.x, r.push_impulse.y, r.push_impulse.z};
  }
  if (run.profile) json["stage_seconds"] = stages_json(r.stage_seconds);
  if (r.stopped) json["interrupted"] = true;
  if (!out.empty()) json["recording"] = out;
  if (!run.page.empty()) json["page"] = run.page;
  return json;
}

/// Text: the part of a clip that a run from `start` to `end` covers.
std::string clip_time(const ClipBinding& clip, double start, double end) {
  const double all = clip.duration();
  if (clip.loop()) return fmt::format("loops every {:.4g} s", all);
  return fmt::format("{:.4g} to {:.4g} s of {:.4g} s{}", start, std::min(end, all), all,
                     end > all + 1e-9 ? ", then the last pose is held" : "");
}

void print_table(const Run& run, const TrackReport& r, const std::string& out, const ClipBinding* clip,
                 const Model& model) {
  const auto row = [](const char* what, const std::string& value) { fmt::print("  {:<22}{}\n", what, value); };
  row("status", name(r.status));
  if (clip) {
    row("clip",
        fmt::format("drives {} of {} joints by {}", clip->driven().size(), model.njoint(), clip->mapping_name()));
    row("time in the clip", clip_time(*clip, run.start, run.start + r.steps * run.dt));
  }
  row("steps", fmt::format("{} of {:.6g} s", r.steps, run.dt));
  row("time", fmt::format("{:.4f} s", r.seconds));
  row("steps/s", fmt::format("{:.0f}", r.steps_per_second()));
  for (const Push& p : run.pushes)
    row("push", fmt::format("at {:.6g} s {}: {:.6g}, {:.6g}, {:.6g} N for {:.6g} s", p.start, model.bodies[p.body].name,
                            p.force.x, p.force.y, p.force.z, p.duration));
  if (!run.pushes.empty())
    row("pushes' impulse",
        fmt::format("{:.6g}, {:.6g}, {:.6g} N s", r.push_impulse.x, r.push_impulse.y, r.push_impulse.z));
  if (run.driven()) row("tracking error", fmt::format("mean {:.4g} m, max {:.4g} m", r.error_mean, r.error_max));
  row("energy", fmt::format("kinetic {:.4g} J, potential {:.4g} J", r.energy.kinetic, r.energy.potential));
  if (run.with_contacts) {
    row("contacts", fmt::format("at most {} at once, penetration at most {:.3g} m", r.contacts_max, r.penetration_max));
    row("rows' residual",
        fmt::format("at most {:.2g} m/s, {:.1f} iterations per step", r.row_residual_max, r.row_iterations));
  } else {
    row("contacts", run.clip.empty() ? "off" : "off (--contacts on enables contact with the floor)");
  }
  if (run.with_loops)
    row("loops", fmt::format("{}, error at most {:.3g}{}", run.loops, r.loop_error_max,
                             r.loop_error_max > 0 ? " (" + r.loop_error_row + ")" : ""));
  if (!out.empty()) row("recording", out);
  if (!run.page.empty()) row("page", run.page + " (open it in a browser)");
  if (run.profile) print_stages(r.stage_seconds, r.steps);
}

/// Text: why a run stopped, and what helps.
const char* meaning(WorldStatus status, const Run& run) {
  if (run.integrator == "rk4" && (status == WorldStatus::singular || status == WorldStatus::too_fast))
    return "the simulation diverged, or a moving end has no mass. rk4 treats every force explicitly: use a smaller "
           "--dt, softer --gains or --integrator euler";
  switch (status) {
    case WorldStatus::ok: return "";
    case WorldStatus::bad_input: return "an input is not finite";
    case WorldStatus::singular:
      return "an acceleration is not finite: check for moving bodies without mass and for constraints without a "
             "solution";
    case WorldStatus::too_fast:
      if (run.plain)
        return "a speed exceeds 1e6 rad/s or m/s: the simulation diverged. --plain drives are unstable at large steps "
               "(tarsus gains --plain shows which): omit --plain or use a smaller --dt";
      return "a speed exceeds 1e6 rad/s or m/s: the simulation diverged. Use a smaller --dt, drives (--gains), "
             "joint damping or a start within the joints' ranges";
    case WorldStatus::open_loop:
      return "the loops cannot be closed near this pose: use a smaller --dt, a --keyframe that closes them, or --loops "
             "spook";
  }
  return "";
}

/// Warns of a start beyond joint ranges; does not change it.
void warn_of_start(const Model& model, std::span<const double> qpos) {
  int count = 0;
  double worst = 0;
  std::string which;
  const char* unit = "";
  for (const Joint& j : model.joints) {
    if (!j.limited || j.nv() != 1) continue;
    const double beyond = std::max(j.range[0] - qpos[j.qpos], qpos[j.qpos] - j.range[1]);
    if (beyond <= 1e-6) continue;
    ++count;
    if (beyond > worst) worst = beyond, which = j.name, unit = turns_on_axis(j.type) ? "rad" : "m";
  }
  if (count == 0) return;
  tell("warning: the start pose has {} joint{} outside {} range{}, \"{}\" by {:.3g} {}{}\n", count,
       count > 1 ? "s" : "", count > 1 ? "their" : "its", count > 1 ? "s" : "", which, worst, unit,
       model.spec.keyframes.empty() ? "" : " (--keyframe selects another start)");
}

/// Prints a hint for models without a floor, such as those of URDF files, which would fall without an explanation.
void hint_at_floor(const Model& model) {
  if (!model.spec.contact_pairs.empty()) return;
  const auto free = [](const Joint& joint) { return moves_freely(joint.type); };
  if (std::none_of(model.joints.begin(), model.joints.end(), free)) return;
  for (int b = 0; b < model.nbody(); ++b) {
    for (const GeomSpec& geom : model.spec.bodies[std::size_t(b)].geoms) {
      if (model.bodies[std::size_t(b)].link < 0 && (geom.contype || geom.conaffinity)) return;
    }
  }
  tell(
      "note: there is no floor, nor any other fixed collision shape; "
      "docs/models.md says how to add a floor to a URDF robot\n");
}

/// Prints a hint at tarsus scene for a model of many free bodies that nothing joins.
void hint_at_scene(const Model& model, const std::string& file) {
  const bool all_free =
      std::all_of(model.joints.begin(), model.joints.end(), [](const Joint& j) { return moves_freely(j.type); });
  if (all_free && model.spec.equalities.empty() && model.njoint() >= 20)
    tell("note: {} free bodies and no other joints: tarsus scene {} simulates these much faster\n", model.njoint(),
         file);
}

/// --ctrl: "0.5" for all controls, or NAME=VALUE,NAME=VALUE, which override those of the keyframe.
void set_controls(const std::string& text, const Model& model, std::vector<double>& ctrl) {
  const auto number = [&](std::string_view part) {
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || !std::isfinite(value))
      throw ValueError("--ctrl", "\"" + text + "\"", "a number, or NAME=NUMBER separated by commas");
    return value;
  };
  if (text.find('=') == std::string::npos) return std::fill(ctrl.begin(), ctrl.end(), number(text));
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size()), equals = text.find('=', begin);
    if (equals >= end) number("");
    const std::string actuator = text.substr(begin, equals - begin);
    const std::vector<std::string> all = model.control_names();
    const auto found = std::find(all.begin(), all.end(), actuator);
    if (found == all.end()) {
      std::string names;
      for (const std::string& name : all) names += (names.empty() ? "" : ", ") + name;
      throw ValueError("--ctrl", "\"" + actuator + "\"", "an actuator of the model: " + names);
    }
    ctrl[std::size_t(found - all.begin())] = number(std::string_view(text).substr(equals + 1, end - equals - 1));
    begin = end + 1;
  }
}

/// Takes controls, activations, velocities and mocap poses from the keyframe, then controls from --ctrl.
void use_keyframe(const Run& run, const Model& model, TrackOptions& options) {
  options.actuators = !run.driven();
  options.actuation = *actuation_mode(run.actuation);
  options.ctrl.assign(std::size_t(model.nu), 0), options.act.assign(std::size_t(model.na), 0);
  if (const KeyframeSpec* key = find_keyframe(model, run.keyframe)) {
    if (!key->ctrl.empty()) options.ctrl = key->ctrl;
    if (!key->act.empty()) options.act = key->act;
    options.qvel = key->qvel;
    options.mocap_pos = key->mocap_position, options.mocap_quat = key->mocap_orientation;
  }
  if (!run.ctrl.empty()) set_controls(run.ctrl, model, options.ctrl);
}

PageContacts contacts_of(const TrackFrame& f) {
  PageContacts out;
  for (std::size_t i = 0; i < f.contacts.size(); ++i) {
    const LinkContact& c = f.contacts[i];
    for (const Vec3d& v : {c.point.position, f.contact_force[i], c.point.normal}) {
      for (const double x : {v.x, v.y, v.z}) out.rows.push_back(float(x));
    }
    out.rows.push_back(c.dimension < 3 ? 0 : float(c.friction));
  }
  if (f.rows)
    out.penetration = f.rows->penetration, out.residual = f.rows->residual, out.iterations = f.rows->iterations;
  return out;
}

TrackReport simulate(const Run& run, const Model& model, const PoseSource& source, const Drives& drives,
                     RecordingWriter* recording, PageWriter* page) {
  TrackOptions options;
  options.dt = run.dt, options.duration = run.duration, options.start = run.start;
  options.integrator = run.integrator == "rk4" ? Integrator::rk4 : Integrator::semi_implicit_euler;
  options.rows.contacts = options.rows.joints = run.with_contacts;
  options.rows.restitution = run.restitution;
  options.loops = run.loops == "off" ? LoopMode::off : run.loops == "shake" ? LoopMode::shake : LoopMode::spook;
  options.velocity_products = run.velocity_products == "off"  ? VelocityProductMode::off
                              : run.velocity_products == "on" ? VelocityProductMode::on
                                                              : VelocityProductMode::automatic;
  bool enough = false;
  options.pushes = run.pushes;
  options.profile = run.profile, options.stop = [&] { return enough || interrupted(); };
  use_keyframe(run, model, options);
  Progress progress(std::filesystem::path(run.model).stem().string(), run.quiet || run.json);
  const auto on_frame = [&](const TrackFrame& f) {
    const std::span<const double> target = run.driven() ? f.target : std::span<const double>();
    if (page) {
      const PageContacts contacts = contacts_of(f);
      page->frame(f.time, f.qpos, f.qvel, target, f.error_mean, run.with_contacts ? &contacts : nullptr);
    }
    if (f.step == 0) return;
    if (run.replay) enough = !(*run.replay)(f.qpos, f.qvel);
    if (recording) recording->frame(f.time, f.qpos, f.qvel, target);
    progress.update(double(f.step) / f.steps,
                    fmt::format("t = {:6.2f} s", f.time) +
                        (run.driven() ? fmt::format("  error {:.4f} m", f.error_mean) : std::string()));
  };
  const TrackReport report = run.use_float ? track<float>(model, source, drives, options, on_frame)
                                           : track<double>(model, source, drives, options, on_frame);
  progress.finish();
  return report;
}

/// What a recording tells about its run.
MetaPairs recorded_run(const Run& run, const Model& model, WorldStatus status) {
  MetaPairs meta{{"arguments", run.arguments},
                 {"folder", run.folder},
                 {"model_file", run.model},
                 {"clip_file", run.clip},
                 {"status", name(status)}};
  if (!run.policy.empty()) {
    meta.emplace_back("policy_file", run.policy);
    return meta;
  }
  meta.insert(meta.end(), {{"dt", run.dt},
                           {"scalar", run.use_float ? "float" : "double"},
                           {"integrator", run.integrator},
                           {"pushes", to_json(run.pushes, model).dump()}});
  return meta;
}

/// What needs memory, for messages.
std::string work_of(const Run& run, const Model& model, bool recorded) {
  return fmt::format("{:.0f} steps of {} degrees of freedom{}", std::round(run.duration / run.dt), model.nv,
                     recorded            ? " and their recording (--no-record makes none)"
                     : !run.page.empty() ? " and their page"
                                         : "");
}

/// Writes the recording and the page of a run whose memory ran out. @return the message's end
std::string keep_files(const Run& run, const Model& model, const std::string& out, RecordingWriter* recording,
                       PageWriter* page) {
  std::string kept = keep_recording(recording, out, recorded_run(run, model, WorldStatus::ok));
  if (!page) return kept;
  page->end_early();
  if (page->frames() == 0) return kept;
  try {
    page->write(run.page, page_template());
    return kept + fmt::format("; {} has the {} frames so far", run.page, page->frames());
  } catch (const std::bad_alloc&) {
    std::remove(run.page.c_str());
    return kept + fmt::format("; {} is not written", run.page);
  }
}

/// Runs a policy and prints its report.
void execute_policy(const Run& run, const Model& model, const ClipBinding& clip, const std::string& out,
                    RecordingWriter* recording, PageWriter* page) {
  Progress progress(std::filesystem::path(run.model).stem().string(), run.quiet || run.json);
  const auto on_frame = [&](const TrackFrame& f) {
    if (page) {
      const PageContacts contacts = contacts_of(f);
      page->frame(f.time, f.qpos, f.qvel, f.target, f.error_mean, &contacts);
    }
    if (f.step == 0) return;
    if (run.replay) (*run.replay)(f.qpos, f.qvel);
    if (recording) recording->frame(f.time, f.qpos, f.qvel, f.target);
    progress.update(double(f.step) / f.steps, fmt::format("t = {:6.2f} s", f.time));
  };
  const PolicyRun policy{run.policy, run.duration, run.start, run.given_dt, page != nullptr};
  const PolicyReport r = within_memory(
      work_of(run, model, recording), [&] { return run_policy(model, clip, policy, on_frame); },
      [&] { return keep_files(run, model, out, recording, page); });
  progress.finish();
  if (run.replay) return;
  if (recording) {
    MetaPairs meta = recorded_run(run, model, r.status);
    meta.emplace_back("dt", r.dt);
    recording->finish(meta);
  }
  if (page) page->write(run.page, page_template());
  if (run.json) {
    nlohmann::json json{{"status", name(r.status)},
                        {"steps", r.steps},
                        {"control_dt", r.control_dt},
                        {"dt", r.dt},
                        {"seconds", r.seconds},
                        {"reward", r.reward},
                        {"fell", r.fell}};
    if (interrupted()) json["interrupted"] = true;
    if (!out.empty()) json["recording"] = out;
    if (!run.page.empty()) json["page"] = run.page;
    print_json(json);
  } else {
    const auto row = [](const char* what, const std::string& value) { fmt::print("  {:<22}{}\n", what, value); };
    row("status", r.fell ? fmt::format("fell after {:.2f} s", r.steps * r.control_dt) : name(r.status));
    row("steps", fmt::format("{} of {:.6g} s, simulated in steps of {:.6g} s", r.steps, r.control_dt, r.dt));
    row("time", fmt::format("{:.4f} s", r.seconds));
    row("reward", fmt::format("{:.4f} per step, of 1", r.reward));
    if (!out.empty()) row("recording", out);
    if (!run.page.empty()) row("page", run.page + " (open it in a browser)");
  }
  if (r.status != WorldStatus::ok) {
    tell("the simulation stopped after step {}: {}: {}\n", r.steps, name(r.status), meaning(r.status, run));
    throw CLI::RuntimeError(3);
  }
  report_interrupt(r.steps * r.control_dt, "s");
}

/// The given options, as words that can be parsed again.
std::vector<std::string> words_of(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    const bool positional = option->get_positional(), flag = option->get_expected_max() == 0;
    if (flag)
      words.push_back(option->get_name());
    else if (positional)
      words.push_back(option->as<std::string>());
    else
      for (const std::string& value : option->results()) words.push_back(option->get_name() + "=" + value);
  }
  return words;
}

/// JSON list of words. A word that is not UTF-8, such as a file name in another encoding, is a list of its bytes.
std::string json_of_words(const std::vector<std::string>& words) {
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& word : words) {
    try {
      (void)nlohmann::json(word).dump();
      list.push_back(word);
    } catch (const nlohmann::json::exception&) {
      list.push_back(std::vector<std::uint8_t>(word.begin(), word.end()));
    }
  }
  return list.dump();
}

/// The words of json_of_words(). @throws nlohmann::json::exception for any other text
std::vector<std::string> words_of_json(const std::string& text) {
  std::vector<std::string> words;
  for (const nlohmann::json& word : nlohmann::json::parse(text)) {
    if (word.is_array()) {
      const auto bytes = word.get<std::vector<std::uint8_t>>();
      words.emplace_back(bytes.begin(), bytes.end());
    } else {
      words.push_back(word.get<std::string>());
    }
  }
  return words;
}

/// The first given option that affects how the model is run, rather than how it is read or what is printed.
std::string first_setting(const CLI::App& command) {
  constexpr std::string_view kOthers[] = {"--json",          "--quiet",        "--lenient",
                                          "--floating-base", "--package-path", "--fix"};
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && !option->get_positional() && std::ranges::find(kOthers, name) == std::end(kOthers))
      return name;
  }
  return "";
}

void execute(Run run) {
  if (run_capture(run.model, run.options, run.json, run.setting)) return;
  const Model model = load_model(run.model, run.options, run.quiet || run.json);
  run.decide(model);
  run.check(model);
  for (const std::string& text : run.push_texts) run.pushes.push_back(parse_push(text, model, run.duration));
  std::optional<ClipBinding> clip;
  if (!run.clip.empty()) clip = bind_clip(run, model);
  if (clip && !clip->loop() && run.start != 0 && !(run.start > 0 && run.start < clip->duration()))
    throw ValueError("--start", number_text(run.start),
                     "a time within the clip, which ends at " + number_text(clip->duration()) + " s and does not loop");
  if (const double most = clip && clip->loop() ? ClipBinding::kMostCycles * clip->duration() : kInfinity;
      run.start != 0 && std::abs(run.start) + run.duration > most)
    throw ValueError("--start", number_text(run.start), "at most 2^53 cycles of the clip, " + number_text(most) + " s");
  const PoseSource source = clip ? follow(model, *clip) : hold(keyframe_pose(model, run.keyframe));
  Drives drives = !run.gains.empty() ? read_gains(model, run.gains)
                  : clip             ? Drives::uniform(model)
                                     : Drives::none(model);
  drives.plain = run.plain;
  if (run.free_root) let_roots_go(model, drives);
  if (!run.force_limit.empty()) limit_forces(run.force_limit, model, drives);

  if (run.with_contacts && !run.quiet && !run.json) {
    if (!clip) warn_of_start(model, keyframe_pose(model, run.keyframe));
    hint_at_scene(model, run.model);
    if (run.contacts == "on" || run.options.floating_base) hint_at_floor(model);
  }

  const std::string out = run.no_record || run.replay ? "" : run.out.empty() ? default_out(run) : run.out;
  std::optional<RecordingWriter> recording;
  if (!run.replay) {
    check_apart({{"--out", out}, {"--page", run.page}}, {{"the model", run.model},
                                                         {"--clip", run.clip},
                                                         {"--mapping", run.mapping},
                                                         {"--gains", run.gains},
                                                         {"--policy", run.policy}});
  }
  if (!out.empty()) {
    check_recording(model, run.duration, run.dt);
    std::error_code error;
    if (run.out.empty()) std::filesystem::create_directories("out", error);
    if (error)
      throw Error("out, the folder of recordings, cannot be created: " + error.message() +
                  "; --out writes elsewhere, --no-record writes no recording");
    recording.emplace(out, model);
  }
  std::optional<PageWriter> page;
  if (!run.page.empty() && !run.replay) {
    const KeyframeSpec* key = find_keyframe(model, run.keyframe);
    page.emplace(model, key ? MocapPoses{key->mocap_position, key->mocap_orientation} : MocapPoses{});
  }
  if (!run.policy.empty())
    return execute_policy(run, model, *clip, out, recording ? &*recording : nullptr, page ? &*page : nullptr);
  RecordingWriter* const to = recording ? &*recording : nullptr;
  PageWriter* const shown = page ? &*page : nullptr;
  const TrackReport report = within_memory(
      work_of(run, model, to), [&] { return simulate(run, model, source, drives, to, shown); },
      [&] { return keep_files(run, model, out, to, shown); });
  if (run.replay) return;
  if (recording) recording->finish(recorded_run(run, model, report.status));
  if (page) page->write(run.page, page_template());
  if (run.json)
    print_json(to_json(run, report, out, clip ? &*clip : nullptr, model));
  else
    print_table(run, report, out, clip ? &*clip : nullptr, model);
  if (report.status != WorldStatus::ok) {
    tell("the simulation stopped after step {}: {}: {}\n", report.steps, name(report.status),
         meaning(report.status, run));
    throw CLI::RuntimeError(3);
  }
  if (report.stopped) report_interrupt(report.steps * run.dt, "s");
}

void add_options(CLI::App& command, Run& run) {
  command
      .add_option("model", run.model,
                  "MJCF or URDF file, a built-in scene such as box_stack:5 (tarsus scene --list), or a world written "
                  "by Batch.capture, whose step is repeated")
      ->required();
  command.add_option(
      "--clip", run.clip,
      "Motion to follow: BVH, AMC (with its ASF in the same folder), AMASS (.npz), DeepMimic text or a clip of this "
      "project; without one the model moves freely from its initial pose, or holds it with --gains");
  command
      .add_option("--mapping", run.mapping,
                  "Mapping from the clip's channels to the joints (JSON); default: chosen by the clip's format")
      ->needs("--clip");
  command
      .add_option("--keyframe", run.keyframe,
                  "Keyframe of the model to start from, with its velocities and controls, by name or number; with "
                  "--gains, its pose is held")
      ->excludes("--clip");
  command.add_option("--dt", run.given_dt,
                     "Time step [s]; default: 1/30 with --clip, else the model's own (MJCF's timestep)");
  command.add_option("--duration", run.duration, "Simulated time [s], rounded to a whole number of steps")
      ->capture_default_str();
  command.add_option("--start", run.start, "Time in the clip at which to start [s]")
      ->needs("--clip")
      ->capture_default_str();
  command.add_flag("--free-root", run.free_root,
                   "No drive on a free root. By default an external root wrench keeps the root on the clip, so the "
                   "character cannot fall. With this option it stands on its feet alone (--contacts on), and most "
                   "motions fall within a second or two");
  command
      .add_option("--push", run.push_texts,
                  "Force on a body's centre of mass, in world axes, for a duration: 1,torso,0,100,0,0.1 pushes at 1 s "
                  "with 100 N along y for 0.1 s; may be repeated")
      ->type_name("T,BODY,FX,FY,FZ,DURATION")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_flag("--partial", run.partial, "Accept a clip that drives under half of the joints")->needs("--clip");
  command
      .add_option("--gains", run.gains,
                  "Stiffness and damping of the drives: KP,KD (also for a free root) or KP,KD,ROOT_KP,ROOT_KD or a "
                  "JSON file such as {\"left_knee\": [300, 20], \"default\": [1000, 100]} (docs/gains.md); default "
                  "with a clip: the paper's 75000,4000,20000,2000; without one: no drives")
      ->type_name("GAINS");
  command
      .add_option("--force-limit", run.force_limit,
                  "Largest drive force, enforced at the end of the step: N m (N for slides) for every joint but a free "
                  "root, or \"model\" for the file's limits (actuatorfrcrange, effort) (docs/force_limits.md)")
      ->type_name("LIMIT");
  command
      .add_option("--ctrl", run.ctrl,
                  "Controls of the model's actuators, which act unless --clip or --gains drives the model: one number "
                  "for all, or NAME=VALUE,NAME=VALUE; others have the keyframe's ctrl, or 0")
      ->type_name("CTRL");
  command
      .add_option("--actuation", run.actuation,
                  "Model's actuators: implicit (servos act as at the end of the step, stable at any gain), explicit "
                  "(MuJoCo's forces at the start of the step) or off")
      ->check(CLI::IsMember({"implicit", "explicit", "off"}))
      ->capture_default_str();
  command
      .add_option("--policy", run.policy,
                  "Policy trained by python -m tarsus.learn (.npz), with its own gains, limits, contacts and step; the "
                  "character follows the clip on its feet (docs/learning.md)")
      ->needs("--clip")
      ->type_name("FILE");
  command.add_flag("--plain", run.plain,
                   "Drives with the paper's law: the position error uses the old velocity, unstable at large steps");
  command
      .add_option("--integrator", run.integrator, "euler (semi-implicit, for drives) or rk4 (explicit, fourth order)")
      ->check(CLI::IsMember({"euler", "rk4"}))
      ->capture_default_str();
  command
      .add_option("--contacts", run.contacts,
                  "Contact, friction and joint limits: on, off or auto (on unless there is a clip or rk4)")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->capture_default_str();
  command
      .add_option("--loops", run.loops,
                  "Equality constraints: spook (stabilised), shake (positions and velocities solved to rounding, about "
                  "twice the cost) or off")
      ->check(CLI::IsMember({"spook", "shake", "off"}))
      ->capture_default_str();
  command
      .add_option("--velocity-products", run.velocity_products,
                  "Coriolis and gyroscopic forces: on (linearly implicit: no energy gained at long steps), off "
                  "(explicit) or auto (implicit where a link turns fast)")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  command.add_option("--restitution", run.restitution, "Coefficient of restitution of every contact")
      ->check(number_from(0, 1))
      ->capture_default_str();
  command.add_flag("--float", run.use_float, "Compute in single precision");
  command.add_option("--out", run.out,
                     "Recording to write (.npz: time, qpos, qvel, target); default out/MODEL_CLIP.npz");
  command.add_flag("--no-record", run.no_record, "Do not write a recording")->excludes("--out");
  command.add_option("--page", run.page,
                     "Page to write (.html): plays the run in any browser, without network or installation");
  command.add_flag("--profile", run.profile, "Report the wall time of each stage of the steps");
  command.add_flag("--json", run.json, "Print one JSON object instead of the table");
  command.add_flag("--quiet", run.quiet, "Print neither progress nor warnings");
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto run = std::make_shared<Run>();
  CLI::App* command =
      app.add_subcommand("run", "Simulate a model; with --clip it follows a motion by stable PD drives");
  add_options(*command, *run);
  add_read_options(*command, run->options);
  command->footer(
      "Tracking error: the distance between a body's centre of mass and its position in the clip (or in "
      "the pose to hold), over steps and\n"
      "over the bodies of trees that have a drive: what gains of zero release does not count, unless all gains "
      "are zero.\n"
      "With a clip, the drive of a free root is an external wrench that holds the character: it cannot fall. "
      "With --free-root\n"
      "and --contacts on it stands on its feet alone, and most motions fall within a second or two, "
      "because no controller keeps their balance.\n"
      "A clip of another skeleton is retargeted (tarsus map). The reported time covers sampling the clip "
      "and stepping, but neither\n"
      "measuring nor recording. Exit status 3: the simulation failed.\n"
      "\n"
      "  tarsus run models/humanoid.xml --clip models/clips/humanoid_walk.json --dt 0.0333333\n"
      "  tarsus run models/humanoid.xml --duration 3                                   falls\n"
      "  tarsus run models/humanoid.xml --gains 1000,100,0,0 --dt 0.0166667            stands\n"
      "  tarsus run robot.xml --keyframe home                                          with its own "
      "servos\n"
      "  tarsus run models/pendulum.xml --dt 0.001 --integrator rk4 --duration 5\n"
      "  tarsus run models/loops/stewart.xml --dt 0.001 --loops shake --duration 5\n"
      "\n"
      "More: docs/tutorial.md, docs/gains.md, docs/ground.md, docs/actuators.md.");
  command->callback([run, command] {
    run->arguments = json_of_words(words_of(*command));
    run->setting = first_setting(*command);
    std::error_code gone;
    run->folder = std::filesystem::current_path(gone).string();
    execute(*run);
  });
}

void run_again(const std::string& arguments, FrameSink sink) {
  Run run;
  CLI::App command;
  add_options(command, run);
  add_read_options(command, run.options);
  std::vector<std::string> words;
  try {
    words = words_of_json(arguments);
    std::reverse(words.begin(), words.end());  // CLI11 expects reverse order
    command.parse(words);
  } catch (const std::exception& e) {  // from a recording of another version, or not a command line
    throw ValueError("arguments", arguments, std::string("those of tarsus run: ") + e.what());
  }
  run.quiet = true, run.replay = &sink;
  execute(run);
}

}  // namespace tarsus::app
