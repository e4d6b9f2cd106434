#include "command.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>

#include "tarsus/io/model_file.hpp"

namespace tarsus::app {

void add_read_options(CLI::App& command, ReadOptions& options) {
  command.add_flag("--lenient", options.lenient, "A missing mesh is a warning where no inertia needs it");
  command.add_flag("--floating-base", options.floating_base,
                   "URDF: the root link floats instead of being fixed to the world");
  command.add_option("--package-path", options.package_paths, "URDF: folders in which package://NAME/ is looked for")
      ->expected(1, -1);
  command
      .add_option_function<std::string>(
          "--fix",
          [&options](const std::string& what) {
            if (what != "balance") throw CLI::ValidationError("--fix", "the one known repair is: balance");
            options.fix_balance = true;
          },
          "balance: mend inertias that no real body can have, and report each")
      ->type_name("REPAIR");
}

Model load_model(const std::string& path, const ReadOptions& options, bool quiet) {
  Model model = compile(read_model(path, options));
  if (!quiet) {
    for (const Diagnostic& d : model.spec.diagnostics) {
      if (d.severity != Severity::note) fmt::print(stderr, "{}\n", d.text());
    }
  }
  return model;
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
    fmt::print(stderr, "\r{} [{:#>{}}{:.>{}}] {:3d} %  {}\033[K", label_, "", filled, "", kWidth - filled, percent,
               detail);
  } else if (percent / 10 != last_percent_ / 10 || last_percent_ < 0) {
    fmt::print(stderr, "{} {:3d} %  {}\n", label_, percent, detail);
  }
  last_percent_ = percent, last_shown_ = now;
}

void Progress::finish() {
  if (!quiet_ && terminal_) fmt::print(stderr, "\n");
}

}  // namespace tarsus::app
