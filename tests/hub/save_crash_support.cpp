#include "hub/save_crash_support.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "calque/hub/save_pretrained.h"
#include "hub/hub_support.h"

namespace calque::hub_test {

namespace fs = std::filesystem;

namespace {

using Files = std::map<std::string, std::string>;

Files contents(const fs::path& folder) {
  Files files;
  if (!fs::is_directory(folder)) return files;
  for (const std::string& name : names_in(folder)) files[name] = read_file(folder / name);
  return files;
}

struct Pair {
  std::shared_ptr<PretrainedModel> models[2] = {tiny_llama("LlamaForCausalLM", false, 1),
                                                tiny_llama("LlamaForCausalLM", false, 2)};
  SaveOptions options[2] = {{.max_shard_size = "12KB"}, {.max_shard_size = "4KB"}};
  Files files[2];

  explicit Pair(const fs::path& work) {
    for (size_t i = 0; i < 2; ++i) {
      const std::string number = std::to_string(i);
      const fs::path folder = work / ("expected" + number), source = work / ("source" + number);
      // The first model has a tokenizer of two files, the second another one of one file.
      fs::create_directory(source);
      write_file(source / "tokenizer.json", "tokenizer " + number);
      if (i == 0) write_file(source / "merges.txt", "merges " + number);
      options[i].companions_of = source;
      save_pretrained(*models[i], folder, options[i]);
      write_file(folder / "README.md", "kept");
      files[i] = contents(folder);
    }
  }
  void save(size_t i, const fs::path& folder) const { save_pretrained(*models[i], folder, options[i]); }
};

// Runs fn in a child process and gives its id.
template <class F>
pid_t in_child(F&& fn) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int status = 0;
  try {
    status = fn();
  } catch (...) {
    status = 3;
  }
  ::_exit(status);
}

void judge(CrashReport& report, const Pair& pair, const fs::path& folder, const std::string& when) {
  ++report.rounds;
  const Files found = contents(folder);
  if (found == pair.files[0])
    ++report.first;
  else if (found == pair.files[1])
    ++report.second;
  else
    report.broken += when + ": " + std::to_string(found.size()) + " files that are neither checkpoint\n";
}

void judge_leftovers(CrashReport& report, const fs::path& work) {
  for (const std::string& name : names_in(work))
    if (name != "model" && !name.starts_with("expected") && !name.starts_with("source"))
      report.broken += "left behind: " + name + "\n";
}

}  // namespace

CrashReport kill_while_saving(const fs::path& work, int rounds, uint64_t seed, FolderWriter::Exchange at_best) {
  Pair pair(work);
  for (SaveOptions& options : pair.options) {
    options.at_best = at_best;
    options.sync = false;  // a save is quick then, and a kill hits any part of it
  }
  const fs::path folder = work / "model";
  pair.save(0, folder);
  write_file(folder / "README.md", "kept");
  std::mt19937_64 random(seed);
  CrashReport report;
  for (int round = 0; round < rounds; ++round) {
    const pid_t child = in_child([&] {
      for (size_t i = 0;; ++i) pair.save((i + 1) % 2, folder);
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFSIGNALED(status)) report.broken += "round " + std::to_string(round) + ": the child ended by itself\n";
    FolderWriter::recover(folder);
    judge(report, pair, folder, "round " + std::to_string(round));
  }
  pair.save(0, folder);
  judge_leftovers(report, work);
  return report;
}

CrashReport fill_the_disk_while_saving(const fs::path& work, int steps) {
  const Pair pair(work);
  const fs::path folder = work / "model";
  pair.save(0, folder);
  write_file(folder / "README.md", "kept");
  size_t largest = 0;
  for (const auto& [name, text] : pair.files[1]) largest = std::max(largest, text.size());
  CrashReport report;
  for (int step = 0; step <= steps; ++step) {
    const auto limit = static_cast<rlim_t>(largest * static_cast<size_t>(step) / static_cast<size_t>(steps));
    const pid_t child = in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);  // then a write beyond the limit fails like one on a full disk
      const rlimit limits{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &limits);
      return error_of([&] { pair.save(1, folder); }).empty() ? 0 : 1;
    });
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool saved = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const bool refused = WIFEXITED(status) && WEXITSTATUS(status) == 1;
    if (saved != (step == steps) || refused == saved)
      report.broken += "limit " + std::to_string(limit) + ": status " + std::to_string(status) + "\n";
    judge(report, pair, folder, "limit " + std::to_string(limit));
    judge_leftovers(report, work);
  }
  return report;
}

}  // namespace calque::hub_test
