// Standard output and standard error of the program. What a command prints counts as done when it has been written: main() asks
// at the end, and so does who prints for long. Messages that cannot be written are lost, and stop nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace calque::cli {

// Descriptors 0 to 2 that were closed when the program began are taken, so that no file of a command gets one of them and then what is
// printed. Writing to such an output fails, as it would have.
void occupy_standard_descriptors();

// UserError unless the name of a file that `option` names ends in one of these (or is empty). The name says what is written, and
// nothing else is written under it; for formats that Calque does not write the message says how to get one.
void require_ending(const std::string& path, const std::string& option, const std::vector<std::string>& endings);

// UserError with the system's reason unless all that was printed so far has been written; ExitStatus{2}, without a word, when
// nobody reads it any more (a pipe that was closed).
void flush_output();

// With --quiet: no warnings, notes and progress. Set before the command runs.
void be_quiet();
bool is_quiet();

void say(std::string_view message);            // "calque: ..." and a newline, on standard error
void note(std::string_view message);           // the same, unless quiet
void write_error_text(std::string_view text);  // as it is

}  // namespace calque::cli
