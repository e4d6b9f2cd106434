// What the commands share. Each command lives in its own file and adds itself to the app; errors are thrown, main()
// prints them.
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

/// The built-in models lie beside the program where it is installed: models/... means those wherever it is run, unless
/// there is such a file in the current folder. Other words stay.
std::string find_built_in(std::string word);
/// Options that every command which reads a model has.
void add_read_options(CLI::App& command, ReadOptions& options);
/// Where no model is read. @throws ValueError if any of them is given
void refuse_read_options(const ReadOptions& options, const char* expected);
/// A line for each kind of finding, in the order in which the kinds were first found.
void print_kinds(const Diagnostics& all, std::FILE* to, bool notes);
/// Reads and compiles a file or a built-in scene such as balls:4:4; warnings go to standard error unless quiet.
Model load_model(const std::string& path, const ReadOptions& options, bool quiet);

/// Exit status of a command that an error ended: 2, wrong usage, for a value that cannot be; 1 for all else.
int status_of(const std::exception& error);

/// What `work` returns; a value that it refuses is one of the file's.  @throws InputError in the place of ValueError
template <class Work>
auto about_file(const std::string& file, const Work& work) {
  try {
    return work();
  } catch (const ValueError& error) {
    throw InputError({file, 0, 0, {}}, error.what());
  }
}

/// What `work` returns. @throws Error: not enough memory for `what`
template <class Work>
auto within_memory(const std::string& what, const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw Error("not enough memory for " + what);
  }
}

/// By name or number; null for no name. @throws ValueError, which lists them
const KeyframeSpec* find_keyframe(const Model& model, const std::string& name);

/// The pose of a keyframe by its name or number; the model's own for an empty name. @throws ValueError with all names
std::vector<double> keyframe_pose(const Model& model, const std::string& name);
/// --force-limit: "model" (what the file says) or a number, the same for every joint but a free root.
void limit_forces(const std::string& text, const Model& model, Drives& drives);
/// For an option's ->check(): a finite number from `low` to `high`. (Those of CLI11 let nan through.)
CLI::Validator number_from(double low, double high = kInfinity);
/// The viewer's page, in which a PageWriter puts a recording; part of the program.
std::string_view page_template();
/// Notes and errors, on standard error. A run does not end because nobody reads them.
template <class... T>
void tell(fmt::format_string<T...> text, T&&... values) {
  std::fputs(fmt::format(text, std::forward<T>(values)...).c_str(), stderr);
}
/// One JSON object on standard output; names in it that are no UTF-8 are replaced, not an error.
void print_json(const nlohmann::json& json);
/// What there is to choose from: titles, and below each the names with what they are.
using Lists = std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>>;
void print_lists(const Lists& lists, bool json);
/// The step of a world that Batch::capture wrote, once more, if that is what the file is. Exit status 3 where it ends
/// otherwise. @param beside an option that says how a model is run, if any is given: it has no use here
/// @return whether it is  @throws ValueError for another .npz, and for `beside` with a capture
bool run_capture(const std::string& file, const ReadOptions& options, bool json, const std::string& beside);
/// A state after a step: qpos, qvel. @return whether more are wanted
using FrameSink = std::function<bool(std::span<const double>, std::span<const double>)>;
/// Runs once more what a recording by `tarsus run` names as its arguments; prints nothing, writes nothing. Files that
/// the arguments name are looked for in the current folder.
/// @throws ValueError for arguments that are not those of a run; as the run
void run_again(const std::string& arguments, FrameSink sink);
/// Before the work that the file is for; leaves what is there as it is.
/// @throws Error naming the file and the reason if it could not be written
void check_output(const std::string& path);
/// @throws Error naming the file and the reason
void write_file(const std::string& path, const std::string& text);
/// Options and the files that they name, or nothing.
/// @throws ValueError where an output is the file of another, or one that is read
using Files = std::initializer_list<std::pair<const char*, std::string>>;
void check_apart(Files outputs, Files inputs);
/// Throws unless what was asked for by --duration and --dt is at least one step.
void check_duration(double duration, double dt);
/// A recording is in memory until its run ends. @throws ValueError where the machine has less than it will take
void check_recording(const Model& model, double duration, double dt);

/// Whether Ctrl-C asked to stop: commands that simulate then end as if they had reached their duration, write what they
/// have and return kInterrupted. A second Ctrl-C ends the program at once.
bool interrupted();
void listen_for_interrupts();
/// A standard stream that is closed stays so: no file that is opened later takes its place.
void keep_standard_streams();
inline constexpr int kInterrupted = 130;
/// A note on standard error, and kInterrupted. @throws CLI::RuntimeError if interrupted()
void report_interrupt(double time, const std::string& unit);
/// A row for each stage that took time.
void print_stages(const std::array<double, kStages>& seconds, long steps);
nlohmann::json stages_json(const std::array<double, kStages>& seconds);

/// A line that overwrites itself on a terminal, and stays silent elsewhere but for a line each ten per cent.
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
