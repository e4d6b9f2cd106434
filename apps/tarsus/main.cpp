// tarsus: the command line.
#include <fmt/core.h>

#include "command.hpp"
#include "tarsus/base/error.hpp"

int main(int argc, char** argv) {
  using namespace tarsus::app;
  CLI::App app{
      "tarsus: dynamics of characters, robots and constrained particles.\n\n"
      "A first run:  tarsus run models/humanoid.xml --clip models/clips/humanoid_walk.json"};
  app.name("tarsus");
  app.require_subcommand(1);
  app.set_version_flag("--version", TARSUS_VERSION);
  app.footer(
      "Each command has its own --help. Exit status: 0 done, 1 an error in the input, 2 wrong usage, 3 the simulation "
      "failed.");
  add_run_command(app);
  add_scene_command(app);
  add_check_command(app);
  add_convert_command(app);
  add_info_command(app);
  add_gains_command(app);
  add_kkt_command(app);
  add_md_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& e) {  // a command's own exit status
    return e.get_exit_code();
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const tarsus::InputError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "error: {}\n", e.what());
    return 1;
  }
  return 0;
}
