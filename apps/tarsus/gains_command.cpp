// tarsus gains: shows the effect of drive gains on each joint at a step size.
#include <fmt/core.h>

#include <cmath>
#include <memory>

#include "command.hpp"
#include "tarsus/control/gain_report.hpp"
#include "tarsus/io/gains_text.hpp"

namespace tarsus::app {

namespace {

struct Gains {
  std::string model, gains;
  double dt = 1.0 / 60;
  bool plain = false, json = false;
  ReadOptions options;
};

/// Infinity and NaN as null, because JSON has neither.
nlohmann::json number(double x) { return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(); }

std::string full_name(const Model& model, const GainReport& r) {
  return model.joints[r.joint].name + (r.part.empty() ? "" : ", " + r.part);
}

void print_gains(const Model& model, const Gains& options, const std::vector<GainReport>& reports) {
  nlohmann::json joints = nlohmann::json::array();
  for (const GainReport& r : reports) {
    joints.push_back(
        {{"joint", model.joints[r.joint].name},
         {"type", name(model.joints[r.joint].type)},
         {"part", r.part},
         {"kp", r.kp},
         {"kd", r.kd},
         {"inertia", {{"held", r.inertia}, {"held_largest", r.inertia_largest}, {"limp", number(r.inertia_limp)}}},
         {"frequency_hz", number(r.frequency)},
         {"damping_ratio", number(r.damping_ratio)},
         {"step",
          {{"frequency_hz", number(r.step_frequency)},
           {"damping_ratio", number(r.step_damping_ratio)},
           {"numerical_damping", number(r.numerical_damping)},
           {"phase_lag_deg", number(r.phase_lag)},
           {"growth", number(r.growth)},
           {"largest_stable_dt", number(r.largest_stable_step)}}},
         {"warnings", r.warnings}});
  }
  print_json({{"model", options.model}, {"dt", options.dt}, {"plain", options.plain}, {"joints", joints}});
}

void print_table(const Model& model, const Gains& options, const std::vector<GainReport>& reports) {
  fmt::print("{} at steps of {:.6g} s, {} law, inertias at the pose of the file\n\n", model.name, options.dt,
             options.plain ? "plain" : "implicit");
  fmt::print("{:<26}{:>10}{:>10}  {:>20}  {:>18}  {:>18}  {:>6}{:>8}\n", "", "kp", "kd", "inertia, others", "specified",
             "realised", "added", "lag");
  fmt::print("{:<26}{:>10}{:>10}  {:>10}{:>10}  {:>10}{:>8}  {:>10}{:>8}  {:>6}{:>8}\n", "joint", "", "", "held",
             "limp", "Hz", "zeta", "Hz", "zeta", "zeta", "deg");
  const auto cell = [](const char* format, double x) {
    return std::isnan(x) ? "-" : fmt::format(fmt::runtime(format), x);
  };
  for (const GainReport& r : reports) {
    fmt::print("{:<26}{:>10.4g}{:>10.4g}  {:>10.3g}{:>10}  {:>10}{:>8}  {:>10}{:>8}  {:>6}{:>8}\n", full_name(model, r),
               r.kp, r.kd, r.inertia, cell("{:.3g}", r.inertia_limp), cell("{:.3g}", r.frequency),
               cell("{:.2g}", r.damping_ratio), cell("{:.3g}", r.step_frequency), cell("{:.2g}", r.step_damping_ratio),
               cell("{:.2g}", r.numerical_damping), cell("{:.1f}", r.phase_lag));
  }
  int warned = 0;
  for (const GainReport& r : reports) {
    for (const std::string& warning : r.warnings)
      fmt::print("{}warning: {}: {}\n", warned++ ? "" : "\n", full_name(model, r), warning);
  }
}

void execute(const Gains& options) {
  const Model model = load_model(options.model, options.options, options.json);
  Drives drives = options.gains.empty() ? Drives::uniform(model) : read_gains(model, options.gains);
  drives.plain = options.plain;
  const std::vector<GainReport> reports = report_gains(model, drives, options.dt, model.qpos0);
  if (options.json)
    print_gains(model, options, reports);
  else
    print_table(model, options, reports);
}

}  // namespace

void add_gains_command(CLI::App& app) {
  auto gains = std::make_shared<Gains>();
  CLI::App* command = app.add_subcommand("gains", "Show the effect of drive gains on each joint at a step size");
  command->add_option("model", gains->model, "MJCF or URDF file")->required();
  command->add_option("--dt", gains->dt, "Step [s]")->capture_default_str();
  command
      ->add_option("--gains", gains->gains,
                   "KP,KD or KP,KD,ROOT_KP,ROOT_KD or a JSON file; default: the paper's 75000,4000,20000,2000")
      ->type_name("GAINS");
  command->add_flag("--plain", gains->plain,
                    "The paper's law: the position error uses the old velocity, unstable at large steps");
  command->add_flag("--json", gains->json, "Print one JSON object instead of the table");
  add_read_options(*command, gains->options);
  command->footer(
      "Treats each joint alone, as m q'' = -kp (q - target) - kd q'. The inertia m is the joint's inertia "
      "with all other joints held (M_ii;\n"
      "balls and free joints: the axis with the least), since under stable PD their drives hold them; "
      "'limp' is 1 / (M^-1)_ii, with all\n"
      "others limp. Specified: natural frequency and damping ratio of that oscillator. Realised: those of "
      "one step of stable PD.\n"
      "Added: difference of the two damping ratios. Lag: phase lag that the step adds at the specified "
      "frequency.\n"
      "\n"
      "  tarsus gains models/humanoid.xml --dt 0.0166667 --gains 300,20\n"
      "\n"
      "More: docs/gains.md.");
  command->callback([gains] { execute(*gains); });
}

}  // namespace tarsus::app
