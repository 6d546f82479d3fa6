// The `calque` program.
#include <CLI/CLI.hpp>

#include <string>

#include "calque/base/version.h"

int main(int argc, char** argv) {
  CLI::App app{"Calque traces, exports and runs PyTorch and Hugging Face models."};
  app.set_version_flag("--version", "calque " + std::string(calque::version()));
  app.require_subcommand(0);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return 0;
}
