// What FileWriter and FolderWriter have on disk under temporary names. They remove it when they are done or fail; a program that
// ends on a signal removes it with abandon_writing(). What a killed process left is removed by the next writer of the same target.
#pragma once

namespace calque {

// Removes every temporary file and folder of this process, and keeps its writers from making or finishing any: whoever tries waits
// until the process ends, so that nothing half-removed is ever put in a target's place. For a process that ends at once; to be
// called by an ordinary thread, not by a signal handler.
void abandon_writing() noexcept;

}  // namespace calque
