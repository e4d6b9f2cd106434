// tarsus view and tarsus demo: start the viewer of the Python package in place of this program.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "command.hpp"
#include "tarsus/base/error.hpp"

namespace tarsus::app {

namespace {

/// Python program: runs the package's command line, or says what to install.
constexpr const char* kProgram =
    "import sys\n"
    "try:\n"
    "    from tarsus.view.command import main\n"
    "except ImportError as error:\n"
    "    sys.exit(f'error: {error}. The viewer is part of the Python package: pip install \"tarsus[view]\", or'\n"
    "             ' \"pip install .[view]\" in the source tree. TARSUS_PYTHON names the Python to use,'\n"
    "             f' now {sys.executable}.')\n"
    "sys.exit(main())\n";

void hand_over(const std::string& command, const std::vector<std::string>& arguments) {
  const char* named = std::getenv("TARSUS_PYTHON");
  std::vector<std::string> words = {named && *named ? named : "python3", "-c", kProgram, command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  throw Error(words[0] + ": " + std::strerror(errno) + "; the viewer needs Python 3 (TARSUS_PYTHON selects it)");
}

void add(CLI::App& app, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  command->prefix_command();
  command->set_help_flag();  // the package prints --help
  command->callback([command, name] { hand_over(name, command->remaining()); });
}

}  // namespace

void add_view_commands(CLI::App& app) {
  add(app, "view",
      "Show a model, scene, recording or clip in the browser; write pages, pictures and films (Python "
      "package)");
  add(app, "demo", "The gallery: list the scenes, or open one (Python package)");
}

}  // namespace tarsus::app
