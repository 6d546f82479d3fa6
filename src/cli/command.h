// The commands of the `calque` program. A command adds itself to the application with its options and a callback; what
// the callback throws, main() turns into a message and an exit status: 2 for a UserError (usage or bad input), 1 for
// ExitStatus{1} (not the same, or a failed check), 3 for a bug.
#pragma once

namespace CLI {
class App;
}

namespace calque::cli {

struct ExitStatus {  // thrown by a command that is done but has something else than 0 to say
  int status;
};

void add_info(CLI::App& app);
void add_diff(CLI::App& app);

}  // namespace calque::cli
