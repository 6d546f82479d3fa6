// calque replay FILE: a graph that a backend of compile() failed on, given to it again.
#include <fmt/format.h>

#include "calque/compile/recording.h"
#include "cli/command.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/table.h"

namespace calque::cli {

void run_replay(const ReplayOptions& o) {
  const Recording recording = about_file(o.path, [&] { return Recording::read(o.path); });
  const Replayed now = about_file(o.path, [&] { return replay(recording, o.backend); });
  const std::string backend = o.backend.empty() ? recording.backend : o.backend;
  if (o.json) {
    print_json({{"path", o.path},
                {"function", recording.function},
                {"backend", backend},
                {"recorded_error", recording.error},
                {"error", now.error.empty() ? OrderedJson(nullptr) : OrderedJson(now.error)},
                {"same_error", now.is_same}});
  } else {
    fmt::print("{}: {}, backend {}\nrecorded: {}\nnow: {}\n", printable(o.path), printable(recording.function), backend,
               printable(recording.error),
               now.error.empty() ? "it does not fail"
               : now.is_same     ? "the same"
                                 : printable(now.error));
  }
  if (!now.error.empty()) throw ExitStatus{1};
}

}  // namespace calque::cli
