// The `calque` program: reads the command line and runs one command.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "calque/base/version.h"
#include "calque/base/warning.h"
#include "calque/tensor/tensor_base.h"
#include "cli/command.h"
#include "cli/memory.h"
#include "cli/models.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/task_commands.h"
#include "cli/train.h"
#include "op/operator_library.h"

namespace calque::cli {
namespace {

constexpr const char* out_of_memory =
    "the command needs more memory than there is; take a smaller model, input or dtype, or raise --memory-limit if it is "
    "set";

// An option that is given has a value: an empty one is a mistake (an unset variable of a script), not a wish for the default.
// Prompts may be empty.
void refuse_empty_names(CLI::App& app) {
  const auto wrong = [](std::string& text) { return text.empty() ? "expected a name, found an empty one" : ""; };
  const CLI::Validator not_empty(wrong, "");
  for (CLI::App* command : app.get_subcommands({}))
    for (CLI::Option* option : command->get_options())
      if (option->get_type_name() == "TEXT" && !option->check_lname("prompt")) option->check(not_empty);
}

// The shell's scripts and the manual page; installed, and for who wants to read them.
void add_completions(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completions", "A script that completes commands for a shell, or the manual page");
  command->group("");  // hidden
  command->add_option("shell", *shell, "bash, zsh, fish or man")->required()->check(one_of({"bash", "zsh", "fish", "man"}));
  command->callback([shell, &app] {
    const std::string text = completions(app, *shell);
    std::fwrite(text.data(), 1, text.size(), stdout);
  });
}

// `calque help COMMAND` is `calque COMMAND --help`; `calque help` and `calque version` are `--help` and `--version`.
std::vector<std::string> spelt_out(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) return words;
  if (words[0] == "help" && words.size() == 2)
    words = {words[1], "--help"};
  else if (words.size() == 1 && (words[0] == "help" || words[0] == "version"))
    words[0].insert(0, "--");
  return words;
}

// A setting that nobody reads is a mistake that nobody sees.
void check_environment() {
  const auto check = [](const char* name, const char* expected, const CLI::Validator& validator) {
    const char* text = std::getenv(name);
    std::string value = text ? text : "";
    if (!value.empty() && !validator(value).empty())
      throw UserError(fmt::format("the environment's {} is '{}'; expected {}", name, value, expected));
  };
  check("CALQUE_NUM_THREADS", "a number above 0", positive());
  check("CALQUE_ISA", "generic, avx2 or avx512", one_of({"generic", "avx2", "avx512", "avx512bf16"}));
}

// Reads the command line and runs the command. What it throws is the caller's.
int run_command(int argc, char** argv) {
  check_environment();
  CLI::App app{"Calque traces, exports and runs PyTorch and Hugging Face models.", "calque"};
  app.set_version_flag("--version", "calque " + std::string(version()));
  app.require_subcommand(0, 1);
  app.fallthrough();  // what every command takes may stand behind the command
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.footer(
      "`calque COMMAND --help` shows a command's options. Examples:\n"
      "  calque info model.safetensors\n"
      "  calque generate tiny-lm -p \"The people of\" -n 20\n"
      "  calque export tiny-lm -o model.pt2");
  CommonOptions common;
  add_common_options(app, common);
  app.parse_complete_callback([&] {  // before the command runs
    if (common.quiet) {
      be_quiet();
      set_warning_sink([](std::string_view) {});
    }
    if (common.threads > 0) set_num_threads(common.threads);
    set_read_variant(common.variant);
    apply_memory_limit(common.memory_limit);
    limit_time(common.time_limit);
    for (const std::string& library : common.operators) load_operator_library(library);
  });
  add_commands(app);
  add_task_commands(app);
  add_train_commands(app);
  add_completions(app);
  refuse_empty_names(app);
  for (CLI::App* command : app.get_subcommands({}))
    command->footer(
        "Also: --threads N, --memory-limit 8G, --time-limit SECONDS, --variant NAME, --operators FILE.so, --quiet (`calque "
        "--help`).");
  const NoGradGuard no_gradients;  // the commands that compute some switch them on
  try {
    std::vector<std::string> words = spelt_out(argc, argv);
    std::ranges::reverse(words);  // as CLI11 takes them
    app.parse(std::move(words));
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    say(usage_error(app, error));
    return 2;
  } catch (const ExitStatus& exit) {
    return exit.status;
  }
  if (app.get_subcommands().empty()) std::fputs(app.help().c_str(), stdout);
  return 0;
}

// The status of what was thrown, after a message. What the user or the system can mend is 2; what only we can is 3.
int status_of_failure() {
  try {
    throw;
  } catch (const ExitStatus& exit) {
    return exit.status;
  } catch (const UserError& error) {
    say(error.what());
    return 2;
  } catch (const std::filesystem::filesystem_error& error) {
    say(error.path1().string() + ": " + error.code().message());
    return 2;
  } catch (const std::system_error& error) {  // of printing, or of a thread that the system does not give
    if (!std::ferror(stdout))
      say(error.what());
    else if (error.code() != std::errc::broken_pipe)
      say("cannot write standard output: " + error.code().message());
    return 2;
  } catch (const std::bad_alloc&) {
    say(out_of_memory);
    return 2;
  } catch (const std::length_error&) {  // more elements than a container can ever have
    say(out_of_memory);
    return 2;
  } catch (const std::exception& error) {
    say(error.what());
    return 3;
  }
}

}  // namespace
}  // namespace calque::cli

int main(int argc, char** argv) {
  using namespace calque::cli;
  try {
    occupy_standard_descriptors();
    end_cleanly_on_signals();
    calque::set_warning_sink([](std::string_view message) { say("warning: " + std::string(message)); });
    const int status = run_command(argc, argv);
    flush_output();
    return status;
  } catch (...) {
    return status_of_failure();
  }
}
