// The `calque` program.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/base/version.h"
#include "cli/command.h"

int main(int argc, char** argv) {
  CLI::App app{"Calque traces, exports and runs PyTorch and Hugging Face models."};
  app.set_version_flag("--version", "calque " + std::string(calque::version()));
  app.require_subcommand(0, 1);
  calque::cli::add_info(app);
  calque::cli::add_diff(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const calque::cli::ExitStatus& exit) {
    return exit.status;
  } catch (const calque::UserError& error) {
    fmt::print(stderr, "calque: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "calque: {}\n", error.what());
    return 3;
  }
  return 0;
}
