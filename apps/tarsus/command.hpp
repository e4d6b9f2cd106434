// Declarations that the commands share. Each command has its own file and adds itself to the app. Errors are thrown,
// and main() prints them.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "tarsus/base/error.hpp"
#include "tarsus/control/force_limit.hpp"
#include "tarsus/io/read_options.hpp"
#include "tarsus/io/recording.hpp"
#include "tarsus/model/model.hpp"
#include "tarsus/sim/stage.hpp"

namespace tarsus::app {

void add_bench_command(CLI::App& app);
void add_check_command(CLI::App& app);
void add_convert_command(CLI::App& app);
void add_gains_command(CLI::App& app);
void add_info_command(CLI::App& app);
void add_map_command(CLI::App& app);
void add_md_command(CLI::App& app);
void add_replay_command(CLI::App& app);
void add_run_command(CLI::App& app);
void add_scene_command(CLI::App& app);
void add_view_commands(CLI::App& app);

/// Path of a built-in model. Built-in models are installed beside the program: models/... refers to them from any
/// folder, unless the current folder has such a file. Other words are returned unchanged.
std::string find_built_in(std::string word);
/// Adds the options of every command that reads a model.
void add_read_options(CLI::App& command, ReadOptions& options);
/// For inputs to which the reading options do not apply. @throws ValueError if any of them is given
void refuse_read_options(const ReadOptions& options, const char* expected);
/// Prints one line for each kind of finding, in the order of their first findings.
void print_kinds(const Diagnostics& all, std::FILE* to, bool notes);
/// Reads and compiles a file or a built-in scene such as balls:4:4. Warnings go to standard error unless `quiet`.
Model load_model(const std::string& path, const ReadOptions& options, bool quiet);

/// Exit status for an error: 2 (wrong usage) for an invalid value, else 1.
int status_of(const std::exception& error);
/// Prints a failure as an object, for programs, if `json`. @return the status
int in_json(bool json, const std::string& message, int status);

/// Returns work(). @throws InputError about `file` in place of a ValueError, because the invalid value is from the file
template <class Work>
auto about_file(const std::string& file, const Work& work) {
  try {
    return work();
  } catch (const ValueError& error) {
    throw InputError({file, 0, 0, {}}, error.what());
  }
}

/// What `work` returns. @throws Error: not enough memory for `what`, and what `keep` returns, which saves what there is
template <class Work>
auto within_memory(const std::string& what, const Work& work, const std::function<std::string()>& keep = {}) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw Error("not enough memory for " + what + (keep ? keep() : ""));
  }
}
/// Writes the frames that a run has recorded until its memory ran out.
/// @return the message's end, empty without a recording or frames
std::string keep_recording(RecordingWriter* recording, const std::string& file, const MetaPairs& extra);

/// Keyframe by name or number; null for an empty name. @throws ValueError that lists all keyframes
const KeyframeSpec* find_keyframe(const Model& model, const std::string& name);

/// Pose of a keyframe by name or number; qpos0 for an empty name. @throws ValueError that lists all keyframes
std::vector<double> keyframe_pose(const Model& model, const std::string& name);
/// --force-limit: "model" (the limits of the file) or one number for every joint except free joints.
void limit_forces(const std::string& text, const Model& model, Drives& drives);
/// For an option's ->check(): a finite number from `low` to `high`. (The checks of CLI11 accept nan.)
CLI::Validator number_from(double low, double high = kInfinity);
/// The viewer's page, embedded in the program. A PageWriter inserts a recording into it.
std::string_view page_template();
/// Prints a note or an error on standard error. A run does not end if this output fails.
template <class... T>
void tell(fmt::format_string<T...> text, T&&... values) {
  std::fputs(fmt::format(text, std::forward<T>(values)...).c_str(), stderr);
}
/// Prints one JSON object on standard output. Bytes that are not UTF-8 are replaced.
void print_json(const nlohmann::json& json);
/// Lists of choices: titles, each with names and descriptions.
using Lists = std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>>;
void print_lists(const Lists& lists, bool json);
/// If the file is a capture by Batch::capture, repeats its step; exit status 3 if the result differs.
/// @param beside the first given option that affects how a model is run, if any: invalid with a capture
/// @return whether the file is a capture  @throws InputError for another .npz; ValueError for `beside` with a capture
bool run_capture(const std::string& file, const ReadOptions& options, bool json, const std::string& beside);
/// Receives the state after a step: qpos, qvel. @return whether to continue
using FrameSink = std::function<bool(std::span<const double>, std::span<const double>)>;
/// Repeats the run of a recording by `tarsus run` from its arguments, without printing or writing files. Files that the
/// arguments name are looked up in the current folder.
/// @throws ValueError for arguments that are not those of a run; errors of the run
void run_again(const std::string& arguments, FrameSink sink);
/// Options and their files, which may be empty.
/// @throws ValueError if an output is the file of another output or of an input
using Files = std::initializer_list<std::pair<const char*, std::string>>;
void check_apart(Files outputs, Files inputs);
/// @throws ValueError unless --duration and --dt are positive, finite and give from 1 to 1e9 steps
void check_duration(double duration, double dt);
/// A recording is in memory until its run ends. @throws ValueError where the machine has less than it will take
void check_recording(const Model& model, double duration, double dt);

/// The first SIGINT (Ctrl-C) or SIGTERM (kill) so far, or 0. Commands that simulate then end as if they had reached
/// their duration, write their results and return interrupt_status(). The same signal again ends the program at once.
int interrupted();
inline int interrupt_status() { return 128 + interrupted(); }
void listen_for_interrupts();
/// Passes these signals on to a child process; 0: to none.
void pass_interrupts_to(int child);
/// Reserves the descriptors of closed standard streams, so that no file that is opened later takes them.
void keep_standard_streams();
/// If interrupted(): prints a note on standard error. @throws CLI::RuntimeError with interrupt_status() in that case
void report_interrupt(double time, const std::string& unit);
/// Prints a row for each stage with a measured time.
void print_stages(const std::array<double, kStages>& seconds, long steps);
nlohmann::json stages_json(const std::array<double, kStages>& seconds);

/// Progress on standard error: one line that overwrites itself on a terminal, elsewhere one line for every 10 %.
class Progress {
 public:
  explicit Progress(std::string label, bool quiet);
  void update(double fraction, const std::string& detail);
  void finish();

 private:
  std::string label_;
  bool quiet_, terminal_;
  int last_percent_ = -1;
  double last_shown_ = 0;
};

}  // namespace tarsus::app
