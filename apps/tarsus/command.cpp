#include "command.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <system_error>

#include "tarsus/base/number_text.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/sim/rigid_model.hpp"

namespace tarsus::app {

std::string find_built_in(std::string word) {
  std::error_code failed;
  if (!word.starts_with("models/") || std::filesystem::exists(word, failed)) return word;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  const auto installed = program.parent_path().parent_path() / word;
  return !failed && std::filesystem::exists(installed, failed) ? installed.string() : word;
}

void add_read_options(CLI::App& command, ReadOptions& options) {
  command.add_flag("--lenient", options.lenient,
                   "Warn of a missing mesh instead of failing, where no inertia needs it");
  command.add_flag("--floating-base", options.floating_base,
                   "URDF: let the root link float instead of fixing it to the world");
  command.add_option("--package-path", options.package_paths, "URDF: folders in which package://NAME/ is looked up")
      ->expected(1, -1)
      ->check(CLI::ExistingDirectory);
  command
      .add_option_function<std::string>(
          "--fix",
          [&options](const std::string& what) {
            if (what != "balance") throw CLI::ValidationError("--fix", "the only repair is balance");
            options.fix_balance = true;
          },
          "balance: repair inertias that no real body can have, and report each")
      ->type_name("REPAIR");
}

void refuse_read_options(const ReadOptions& o, const char* expected) {
  if (o.lenient || o.floating_base || o.fix_balance || !o.package_paths.empty())
    throw ValueError("--lenient, --floating-base, --package-path or --fix", "given", expected);
}

namespace {

/// The kind of a finding: its message without names and numbers.
std::string message_kind(const Diagnostic& d) {
  std::string kind;
  bool quoted = false;
  for (const char c : d.message) {
    if (c == '\'') {
      quoted = !quoted;
      if (quoted) kind += "'…'";
    } else if (!quoted && c >= '0' && c <= '9') {
      if (kind.empty() || kind.back() != '#') kind += '#';
    } else if (!quoted) {
      kind += c;
    }
  }
  return kind;
}

}  // namespace

void print_kinds(const Diagnostics& all, std::FILE* to, bool notes) {
  std::map<std::pair<Severity, std::string>, int> counts;
  for (const Diagnostic& d : all) ++counts[{d.severity, message_kind(d)}];
  for (const Diagnostic& d : all) {
    if (d.severity == Severity::note && !notes) continue;
    int& count = counts[{d.severity, message_kind(d)}];
    const std::string more = count > 1 ? fmt::format(" (and {} more of this kind)", count - 1) : "";
    if (count > 0) std::fputs((d.text() + more + "\n").c_str(), to);
    count = 0;
  }
}

Model load_model(const std::string& path, const ReadOptions& options, bool quiet) {
  const std::optional<RigidScene> scene = scene_unless_file(path);
  if (scene) refuse_read_options(options, "a model file, to which these options apply");
  Model model = within_memory("the model " + path,
                              [&] { return compile(scene ? scene_spec(*scene) : read_model(path, options)); });
  if (!quiet) {
    Diagnostics all = model.spec.diagnostics;
    std::erase_if(all, [](const Diagnostic& d) { return d.other_law; });
    print_kinds(all, stderr, false);
  }
  return model;
}

std::string keep_recording(RecordingWriter* recording, const std::string& file, const MetaPairs& extra) {
  if (!recording || recording->frame_count() == 0) return "";
  recording->finish(extra);
  return fmt::format("; {} has the {} frames so far", file, recording->frame_count());
}

int in_json(bool json, const std::string& message, int status) {
  if (json) print_json({{"error", message}, {"exit_status", status}});
  return status;
}

int status_of(const std::exception& error) { return dynamic_cast<const ValueError*>(&error) ? 2 : 1; }

const KeyframeSpec* find_keyframe(const Model& model, const std::string& name) {
  if (name.empty()) return nullptr;
  const std::vector<KeyframeSpec>& all = model.spec.keyframes;
  std::string names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (name == all[i].name || name == std::to_string(i)) return &all[i];
    names += (i ? ", " : "") + (all[i].name.empty() ? std::to_string(i) : "\"" + all[i].name + "\"");
  }
  throw ValueError("--keyframe", "\"" + name + "\"", all.empty() ? "a model that has keyframes" : names);
}

std::vector<double> keyframe_pose(const Model& model, const std::string& name) {
  const KeyframeSpec* key = find_keyframe(model, name);
  if (!key || key->qpos.empty()) return model.qpos0;
  if (int(key->qpos.size()) == model.nq) return key->qpos;
  throw ValueError("--keyframe", "\"" + name + "\"", "one with " + std::to_string(model.nq) + " qpos");
}

void limit_forces(const std::string& text, const Model& model, Drives& drives) {
  if (text == "model") {
    take_force_limits(model, drives);
    if (std::ranges::all_of(drives.force_limit, [](double limit) { return limit == kInfinity; }))
      throw ValueError("--force-limit", "model", "a model with limits of its joints' forces");
    return;
  }
  double limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || end != text.data() + text.size() || !(limit >= 0)) {
    throw ValueError("--force-limit", "\"" + text + "\"", "\"model\" or a number of N m, not negative");
  }
  drives.force_limit.assign(model.nv, limit);
  for (const Joint& joint : model.joints) {
    if (moves_freely(joint.type)) std::fill_n(drives.force_limit.begin() + joint.qvel, 6, kInfinity);
  }
}

CLI::Validator number_from(double low, double high) {
  const std::string range = high < kInfinity ? fmt::format("{} to {}", low, high) : fmt::format("{} or more", low);
  return CLI::Validator(
      [low, high, range](std::string& text) {
        double x = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
        const bool read = error == std::errc() && end == text.data() + text.size();
        if (read && std::isfinite(x) && x >= low && x <= high) return std::string();
        return fmt::format("is {}, expected a number, {}", text, range);
      },
      "(" + range + ")");
}

void print_json(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_lists(const Lists& lists, bool json) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& [title, names] : lists) {
    if (!json) fmt::print("{}:\n", title);
    for (const auto& [name, what] : names) {
      if (!json) fmt::print("  {:<22} {}\n", name, what);
      out[title].push_back({{"name", name}, {"what", what}});
    }
  }
  if (json) fmt::print("{}\n", out.dump(2));
}

void check_apart(Files outputs, Files inputs) {
  std::map<std::filesystem::path, const char*> files;
  for (const bool written : {false, true}) {
    for (const auto& [option, path] : written ? outputs : inputs) {
      if (path.empty()) continue;
      std::error_code unknown;
      const auto file = std::filesystem::weakly_canonical(std::filesystem::absolute(path, unknown), unknown);
      if (unknown) continue;
      const auto [other, alone] = files.emplace(file, option);
      if (written && !alone) throw ValueError(option, path, std::string("a file other than that of ") + other->second);
    }
  }
}

void check_duration(double duration, double dt) {
  if (!(duration > 0) || !std::isfinite(duration))
    throw ValueError("--duration", number_text(duration), "a positive, finite number of seconds");
  if (!(dt > 0) || !std::isfinite(dt))
    throw ValueError("--dt", number_text(dt), "a positive, finite number of seconds");
  if (duration < 0.5 * dt)
    throw ValueError("--duration", number_text(duration), "at least one step, here " + number_text(dt) + " s (--dt)");
  if (!(duration / dt < 1e9))
    throw ValueError("--duration", number_text(duration),
                     "at most 1e9 steps, here of " + number_text(dt) + " s (--dt)");
}

void check_recording(const Model& model, double duration, double dt) {
  const double memory = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  const double numbers = 2.0 + model.nq + model.nv;  // time, hash, qpos, qvel
  const double bytes = std::round(duration / dt) * numbers * sizeof(double);
  if (memory > 0 && bytes > memory)
    throw ValueError("--duration", number_text(duration),
                     fmt::format("a shorter time, or no recording: it would take {:.3g} GB of memory, of which there "
                                 "are {:.3g}",
                                 bytes / 1e9, memory / 1e9));
}

namespace {
volatile std::sig_atomic_t first_signal = 0, child_process = 0;
}  // namespace

int interrupted() { return first_signal; }

void listen_for_interrupts() {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, [](int number) {
      if (first_signal == 0) first_signal = number;
      if (child_process > 0) kill(child_process, number);
      std::signal(number, SIG_DFL);
    });
  }
}

void pass_interrupts_to(int child) { child_process = child; }

void keep_standard_streams() {
  for (int stream = 0; stream < 3; ++stream) {
    // Opened in the wrong direction, so that reads from it and writes to it still fail.
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
  }
}

void report_interrupt(double time, const std::string& unit) {
  if (!interrupted()) return;
  tell("interrupted at {:.6g} {}: results up to this time are complete\n", time, unit);
  throw CLI::RuntimeError(interrupt_status());
}

void print_stages(const std::array<double, kStages>& seconds, long steps) {
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  fmt::print("  {:<22}{:>10}{:>9}\n", "stage of a step", "µs per step", "share");
  for (int k = 0; k < kStages; ++k) {
    if (seconds[std::size_t(k)] > 0)
      fmt::print("    {:<20}{:>9.3f}{:>7.1f} %\n", name(Stage(k)),
                 1e6 * seconds[std::size_t(k)] / double(std::max(1L, steps)), 100 * seconds[std::size_t(k)] / all);
  }
}

nlohmann::json stages_json(const std::array<double, kStages>& seconds) {
  nlohmann::json json = nlohmann::json::object();
  for (int k = 0; k < kStages; ++k) {
    if (seconds[std::size_t(k)] > 0) json[name(Stage(k))] = seconds[std::size_t(k)];
  }
  return json;
}

Progress::Progress(std::string label, bool quiet)
    : label_(std::move(label)), quiet_(quiet), terminal_(isatty(STDERR_FILENO)) {}

void Progress::update(double fraction, const std::string& detail) {
  if (quiet_) return;
  const int percent = int(100 * fraction);
  const double now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  if (terminal_) {
    if (now - last_shown_ < 0.05 && percent < 100) return;
    constexpr int kWidth = 30;
    const int filled = int(kWidth * fraction);
    tell("\r{} [{:#>{}}{:.>{}}] {:3d} %  {}\033[K", label_, "", filled, "", kWidth - filled, percent, detail);
  } else if (percent / 10 != last_percent_ / 10 || last_percent_ < 0) {
    tell("{} {:3d} %  {}\n", label_, percent, detail);
  }
  last_percent_ = percent, last_shown_ = now;
}

void Progress::finish() {
  if (!quiet_ && terminal_ && last_percent_ >= 0) tell("\n");
}

}  // namespace tarsus::app
