// tarsus replay: checks that a recording is unchanged and that repeating its run gives the same states.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "command.hpp"
#include "tarsus/io/mjcf_writer.hpp"
#include "tarsus/io/npz.hpp"
#include "tarsus/io/recording.hpp"
#include "tarsus/sim/capture.hpp"
#include "tarsus/sim/rigid_scene.hpp"

namespace tarsus::app {

namespace {

struct Replay {
  std::string recording, model;
  bool verify = false, json = false;
  ReadOptions options;
};

/// The text of a key of the recording's metadata, or an empty string.
std::string text_of(const Recording& recording, std::string_view key) {
  for (const auto& [name, value] : recording.extra) {
    if (name == key && std::holds_alternative<std::string>(value)) return std::get<std::string>(value);
  }
  return {};
}

/// The model of a captured world, read as it was then. Its file is looked up as those of recordings are.
Model load_captured(const CaptureArrays& arrays, const Replay& replay) {
  ReadOptions options = replay.options;
  std::string file = replay.model;
  if (file.empty()) {
    ModelOrigin from = captured_model(arrays, replay.recording);
    if (from.file.empty())
      throw InputError(Location{replay.recording, 0, 0, {}},
                       "the captured world's model was not read from a file; write it to one and name that with tarsus "
                       "replay --model");
    std::vector<std::filesystem::path> given;
    for (const std::filesystem::path& path : options.package_paths) given.push_back(std::filesystem::absolute(path));
    options.package_paths.clear();
    if (std::error_code gone; !from.folder.empty()) std::filesystem::current_path(from.folder, gone);
    CLI::App command;
    add_read_options(command, options);
    std::reverse(from.options.begin(), from.options.end());  // CLI11 expects reverse order
    try {
      command.parse(std::move(from.options));
    } catch (const CLI::Error& e) {  // a folder of packages that is gone, or another version's option
      throw InputError(Location{replay.recording, 0, 0, "meta/read_options"}, e.what());
    }
    options.package_paths.insert(options.package_paths.begin(), given.begin(), given.end());
    file = from.file;
  }
  if (std::error_code unknown; !std::filesystem::exists(file, unknown) && !named_scene(file))
    throw InputError(
        Location{replay.recording, 0, 0, {}},
        fmt::format("the model of the captured world, \"{}\", is not found; name it with tarsus replay --model", file));
  return load_model(file, options, true);
}

/// Repeats the step of a captured world.
void execute_capture(const Replay& replay, NpzReader& npz) {
  CaptureArrays arrays;
  arrays.meta = npz.read_text("meta");
  for (const std::string& name : npz.names()) {
    if (name == "memory") {
      const std::string bytes = npz.read_text(name);
      arrays.memory.assign(bytes.begin(), bytes.end());
    } else if (name != "meta" && name != "model_hash") {
      arrays.arrays.emplace_back(name, npz.read_real(name, {NpzReader::kAny}));
    }
  }
  const Model model = load_captured(arrays, replay);
  const WorldCapture capture = from_arrays(model, arrays, replay.recording);
  const WorldFault fault = step_again(model, capture);
  const bool agree = same_fault(capture.fault, fault);
  const bool changed = npz.has("model_hash") && npz.read_words("model_hash", {1})[0] != model_hash(model.spec);
  if (replay.json) {
    print_json({{"step", capture.steps + 1},
                {"captured", capture.fault.text()},
                {"replayed", fault.text()},
                {"warm", !capture.memory.empty()},
                {"model_changed", changed},
                {"agree", agree}});
  } else {
    fmt::print("  {:<22}{} of {}\n", "step", capture.steps + 1, model.name);
    if (changed) fmt::print("  {:<22}{}\n", "the model", "has changed since the capture");
    fmt::print("  {:<22}{}\n", "captured", capture.fault.text());
    const bool taken = capture.fault.status != WorldStatus::ok;
    fmt::print("  {:<22}{}{}\n", "replayed", fault.text(), taken && agree ? ", the same to the bit" : "");
    if (capture.memory.empty()) fmt::print("  {:<22}{}\n", "note", "without the solver's warm start");
  }
  if (replay.verify && (changed || !agree)) throw CLI::RuntimeError(3);
}

}  // namespace

bool run_capture(const std::string& file, const ReadOptions& options, bool json, const std::string& beside) {
  char start[2] = {};
  std::error_code error;
  if (std::filesystem::is_regular_file(file, error)) std::ifstream(file, std::ios::binary).read(start, 2);
  const bool zip = std::string_view(start, 2) == "PK";
  if (!zip && std::filesystem::path(file).extension() != ".npz") return false;
  NpzReader npz{std::filesystem::path(file)};
  if (!npz.has("meta") || !is_capture(npz.read_text("meta")))
    throw InputError(
        Location{file, 0, 0, {}},
        "an .npz without a captured world, expected a model or a file written by Batch.capture; use tarsus "
        "replay for a recording");
  if (!beside.empty()) throw ValueError(beside, "given", "no such option: a captured world contains its settings");
  execute_capture({file, "", true, json, options}, npz);
  return true;
}

namespace {

void execute(const Replay& replay) {
  NpzReader npz{std::filesystem::path(replay.recording)};
  if (npz.has("meta") && is_capture(npz.read_text("meta"))) return execute_capture(replay, npz);
  if (!replay.model.empty())
    throw ValueError("--model", "given", "a capture: a recording contains the name of its model");
  refuse_read_options(replay.options, "a capture: a recording contains the options of its run");
  const Recording recording = read_recording(replay.recording);
  if (recording.hash.empty() && recording.frame_count() > 0)
    throw InputError(Location{replay.recording, 0, 0, {}},
                     "without hashes, expected a recording written by this version of tarsus run");
  const int changed = recording.first_changed();
  int frame = 0, differs = -1;
  const std::string arguments = text_of(recording, "arguments"), folder = text_of(recording, "folder");
  if (arguments.empty())
    throw InputError(Location{recording.file, 0, 0, {}},
                     "without the arguments of a run, expected a recording written by tarsus run");
  // If the folder does not exist here, the current folder is used.
  if (std::error_code gone; !folder.empty()) std::filesystem::current_path(folder, gone);
  run_again(arguments, [&](std::span<const double> qpos, std::span<const double> qvel) {
    if (frame == recording.frame_count()) return false;
    if (frame_hash(qpos, qvel) != recording.hash[std::size_t(frame)] && differs < 0) differs = frame;
    return ++frame < recording.frame_count();
  });
  if (interrupted()) {
    const std::string message = fmt::format("interrupted at frame {} of {}", frame, recording.frame_count());
    throw CLI::RuntimeError(in_json(replay.json, message, interrupt_status()));
  }
  if (frame < recording.frame_count() && differs < 0) differs = frame;
  const bool agree = changed < 0 && differs < 0;
  if (replay.json) {
    print_json({{"frames", recording.frame_count()},
                {"replayed", frame},
                {"agree", agree},
                {"first_changed_in_file", changed},
                {"first_different_replay", differs}});
  } else {
    fmt::print("  {:<22}{}\n", "frames", recording.frame_count());
    fmt::print("  {:<22}{}\n", "states in the file",
               changed < 0 ? "unchanged" : fmt::format("changed, first in frame {}", changed));
    fmt::print("  {:<22}{}\n", "replayed",
               differs < 0 ? fmt::format("{} frames, the same to the bit", frame)
                           : fmt::format("{} frames, frame {} is the first that differs", frame, differs));
  }
  if (replay.verify && !agree) throw CLI::RuntimeError(3);
}

}  // namespace

void add_replay_command(CLI::App& app) {
  auto replay = std::make_shared<Replay>();
  CLI::App* command = app.add_subcommand(
      "replay", "Repeat the simulation of a recording or of a captured world, and compare the states");
  command->add_option("recording", replay->recording, "File written by tarsus run or Batch.capture (.npz)")->required();
  command->add_option("--model", replay->model,
                      "Model of a capture, read with the options given here; default: as the capture says");
  command->add_flag("--verify", replay->verify, "Exit with status 3 unless all states are equal to the bit");
  command->add_flag("--json", replay->json, "Print one JSON object instead of the table");
  add_read_options(*command, replay->options);
  command->footer(
      "A recording stores a hash of the bits of each state and the arguments of its run. Files named by "
      "these are read again from their\n"
      "original folder or, if that folder is gone, relative to the current one. A capture of a batch's "
      "world stores everything that one step\n"
      "starts from, so a failed world fails again. The same program gives the same bits on any machine of "
      "its architecture that has fused multiply-adds.\n"
      "\n"
      "  tarsus replay out/humanoid_humanoid_walk.npz --verify\n"
      "\n"
      "More: docs/many_worlds.md.");
  command->callback([replay] { execute(*replay); });
}

}  // namespace tarsus::app
