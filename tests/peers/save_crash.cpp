// save_crash FOLDER ROUNDS SEED MODE: kills saves at random moments (MODE whole or renames), or fills the disk in ROUNDS steps
// (MODE disk); prints what was found, one line.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "hub/save_crash_support.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  using calque::FolderWriter;
  const std::string mode = argv[4];
  const int rounds = std::atoi(argv[2]);
  const auto seed = static_cast<uint64_t>(std::atoll(argv[3]));
  const calque::hub_test::CrashReport report =
      mode == "disk"
          ? calque::hub_test::fill_the_disk_while_saving(argv[1], rounds)
          : calque::hub_test::kill_while_saving(
                argv[1], rounds, seed, mode == "renames" ? FolderWriter::Exchange::renames : FolderWriter::Exchange::whole);
  std::printf("%d rounds: %d first, %d second\n%s", report.rounds, report.first, report.second, report.broken.c_str());
  return report.broken.empty() ? 0 : 1;
}
