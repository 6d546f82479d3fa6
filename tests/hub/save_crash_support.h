// Saves that are killed or run out of disk: is the old or the new checkpoint whole, every time?
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "calque/file/folder_writer.h"

namespace calque::hub_test {

struct CrashReport {
  int rounds = 0;
  int first = 0, second = 0;  // which of the two checkpoints was there afterwards
  std::string broken;         // what was wrong, one line each
};

// A child process saves two differently sharded checkpoints, each with a tokenizer of its own, over one another and is killed at a
// random moment; then the folder is compared with both, byte for byte. With Exchange::renames the folder is recovered first.
CrashReport kill_while_saving(const std::filesystem::path& work, int rounds, uint64_t seed, FolderWriter::Exchange at_best);

// Saves under every limit of file size from 0 up to the largest file, in `steps` steps: what the disk cannot take leaves
// the old checkpoint, with an error.
CrashReport fill_the_disk_while_saving(const std::filesystem::path& work, int steps);

}  // namespace calque::hub_test
