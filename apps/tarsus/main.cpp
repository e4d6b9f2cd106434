// tarsus: the command line.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "tarsus/base/error.hpp"

namespace {

/// The given command, its parent commands before it, the program first.
std::vector<const CLI::App*> given_commands(const CLI::App* app) {
  std::vector<const CLI::App*> commands{app};
  for (auto parsed = app->get_subcommands(); !parsed.empty(); parsed = parsed[0]->get_subcommands())
    commands.push_back(parsed[0]);
  return commands;
}

/// The error, and the command whose --help to read.
std::string usage_failure(const CLI::App* app, const CLI::Error& error) {
  std::string command;
  for (const CLI::App* part : given_commands(app)) command += part->get_name() + " ";
  return fmt::format("{}\nRun {}--help for more information.\n", error.what(), command);
}

/// The error's text. Where it begins with an argument of the library that has the name of a given option, it names the
/// option: "--cutoff: is ..." for "cutoff: is ...".
std::string as_option(const CLI::App* app, const tarsus::ValueError& error) {
  const std::string text = error.what();
  std::string name = "--" + text.substr(0, text.find(':'));
  std::ranges::replace_if(
      name, [](char c) { return c == ' ' || c == '_'; }, '-');
  const CLI::Option* option = given_commands(app).back()->get_option_no_throw(name);
  return option && option->count() > 0 ? name + text.substr(name.size() - 2) : text;
}

/// Refuses an unknown command, or one of a command of commands. CLI11 would report that a command is missing.
void know(const CLI::App& app, std::span<char* const> words) {
  if (words.empty() || words[0][0] == '-' || app.get_require_subcommand_min() == 0) return;
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == words[0]) return know(*command, words.subspan(1));
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  throw CLI::ParseError(fmt::format("Unknown command \"{}\"; expected one of {}", words[0], names),
                        CLI::ExitCodes::InvalidError);
}

/// Refuses empty arguments, such as an unset variable of a shell script. CLI11 would ignore the option.
void refuse_empty(const std::vector<std::string>& words) {
  for (std::size_t k = 1; k < words.size(); ++k) {
    if (words[k].empty())
      throw CLI::ParseError("The argument after \"" + words[k - 1] + "\" is empty", CLI::ExitCodes::InvalidError);
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tarsus::app;
  CLI::App app{
      "tarsus: dynamics of characters, robots, free bodies and constrained particles.\n"
      "\n"
      "First run:  tarsus run models/humanoid.xml --clip models/clips/humanoid_walk.json"};
  app.name("tarsus");
  app.require_subcommand(1);
  app.set_version_flag("--version", TARSUS_VERSION);
  app.footer(
      "Each command has its own --help; docs/tutorial.md is an introduction. Exit status: 0 success, 1 a "
      "file that cannot be read,\n"
      "used or written, 2 wrong usage (command, option or value), 3 the simulation failed, 130 stopped by "
      "Ctrl-C, 143 by\n"
      "SIGTERM (kill). With --json, which all but view and demo have, a command that fails before it has a result "
      "prints an\n"
      "object with `error`.");
  add_run_command(app);
  add_scene_command(app);
  add_check_command(app);
  add_convert_command(app);
  add_info_command(app);
  add_gains_command(app);
  add_map_command(app);
  add_md_command(app);
  add_view_commands(app);
  add_replay_command(app);
  add_bench_command(app);
  app.failure_message(usage_failure);
  keep_standard_streams();
  listen_for_interrupts();
  const bool json = std::any_of(argv, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  const auto fail = [json](const std::string& message, int status, const char* label = "error: ") {
    tell("{}{}\n", label, message);
    return in_json(json, message, status);
  };
  try {
    int status = 0;
    try {
      if (argc < 2) throw CLI::CallForHelp();
      know(app, std::span(argv + 1, std::size_t(argc - 1)));
      std::vector<std::string> words(argv + 1, argv + argc);
      refuse_empty(words);
      for (std::string& word : words) word = find_built_in(std::move(word));
      std::reverse(words.begin(), words.end());  // CLI11 expects reverse order
      app.parse(std::move(words));
    } catch (const CLI::RuntimeError& e) {  // has the exit status of a command
      return e.get_exit_code();
    } catch (const CLI::ParseError& e) {  // wrong usage, or the text of --help
      status = app.exit(e) == 0 && argc > 1 ? 0 : in_json(json, e.what(), 2);
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw tarsus::Error("standard output: cannot be written");
    return status;
  } catch (const std::filesystem::filesystem_error& e) {
    return fail(e.path1().string() + ": " + e.code().message(), 1);
  } catch (const tarsus::InputError& e) {
    return fail(e.what(), 1, "");
  } catch (const std::bad_alloc&) {
    return fail("not enough memory", 1);
  } catch (const tarsus::ValueError& e) {
    return fail(as_option(&app, e), 2);
  } catch (const std::exception& e) {
    return fail(e.what(), status_of(e));
  }
}
