// A fuzzer whose inputs are numbers: subject and seed say what to do, and a child of the process does it, so that a crash
// costs one child. The finding is the subject, the seed and the sanitizer's report, and the work goes on. Takes libFuzzer's
// -max_total_time and ends as it does; -calls=N asks for N tries a family (and ends before, if the time is given and over),
// -family=NAME and -subject=NAME for a part, -first=SEED for others, -repeat=SUBJECT:SEED for one of them.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace calque::forked {

enum class Kind : uint8_t { answered, refused, wrong };
struct Outcome {
  Kind kind = Kind::refused;
  std::string what;
};

struct Subject {
  std::string family, name;
  std::function<Outcome(uint64_t seed)> attempt;
  std::function<std::string(uint64_t seed)> describe;
};

namespace detail {

struct Progress {  // shared with the child
  uint64_t seed, answered, refused;
  char what[4096];
};

struct Options {
  uint64_t calls = 0, first = 1, seconds = 0, chunk = 500;
  std::string family, subject, repeat;
};

inline Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const auto value = [&](const char* key) { return a.starts_with(key) ? a.c_str() + std::strlen(key) : nullptr; };
    if (const char* v = value("-max_total_time=")) o.seconds = std::strtoull(v, nullptr, 10);
    if (const char* v = value("-calls=")) o.calls = std::strtoull(v, nullptr, 10);
    if (const char* v = value("-chunk=")) o.chunk = std::strtoull(v, nullptr, 10);
    if (const char* v = value("-first=")) o.first = std::strtoull(v, nullptr, 10);
    if (const char* v = value("-family=")) o.family = v;
    if (const char* v = value("-subject=")) o.subject = v;
    if (const char* v = value("-repeat=")) o.repeat = v;
  }
  if (o.calls == 0 && o.seconds == 0) o.seconds = 60;
  return o;
}

// The lines of a report that say what and where.
inline std::string summary(const std::string& path) {
  std::ifstream in(path);
  std::string line, text;
  int frames = 0;
  while (std::getline(in, line) && text.size() < 1500) {
    const bool says = line.find("runtime error") != std::string::npos || line.find("ERROR: ") != std::string::npos;
    const bool frame = frames < 4 && line.find("    #") != std::string::npos && line.find("src/") != std::string::npos;
    if (frame) ++frames;
    if (says || frame) text += line.substr(0, 260) + "\n";
  }
  return text.empty() ? "died without a report\n" : text;
}

inline constexpr unsigned slow_seconds = 60, stuck_seconds = 600;  // of the processor's time, and by the clock
inline constexpr int slow_status = 99, wrong_status = 98;

inline void run_child(const Subject& subject, uint64_t from, uint64_t to, Progress& progress, const std::string& report) {
  dup2(open(report.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
  for (const int signal : {SIGPROF, SIGALRM}) std::signal(signal, [](int) { _exit(slow_status); });
  for (uint64_t seed = from; seed < to; ++seed) {
    progress.seed = seed;
    const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = slow_seconds, .tv_usec = 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    alarm(stuck_seconds);
    const Outcome outcome = subject.attempt(seed);
    if (outcome.kind == Kind::wrong) {
      std::snprintf(progress.what, sizeof progress.what, "%s", outcome.what.c_str());
      _exit(wrong_status);
    }
    ++(outcome.kind == Kind::answered ? progress.answered : progress.refused);
  }
  _exit(0);
}

struct Total {
  unsigned long long calls = 0, answered = 0, refused = 0, findings = 0;
};

}  // namespace detail

inline int run(int argc, char** argv, const std::vector<Subject>& subjects) {
  using namespace detail;
  const Options options = parse(argc, argv);
  if (!options.repeat.empty()) {
    const size_t colon = options.repeat.rfind(':');
    const uint64_t seed = std::strtoull(options.repeat.c_str() + colon + 1, nullptr, 10);
    for (const Subject& subject : subjects) {
      if (subject.name != options.repeat.substr(0, colon)) continue;
      if (subject.describe) std::printf("%s\n", subject.describe(seed).c_str());
      std::fflush(stdout);
      const Outcome outcome = subject.attempt(seed);
      const char* kinds[] = {"answered", "refused", "wrong"};
      std::printf("%s: %s\n", kinds[static_cast<size_t>(outcome.kind)], outcome.what.c_str());
      return outcome.kind == Kind::wrong;
    }
    std::printf("there is no %s\n", options.repeat.c_str());
    return 2;
  }
  auto* progress =
      static_cast<Progress*>(mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const char* folder = std::getenv("TMPDIR");
  const std::string report = std::string(folder ? folder : "/tmp") + "/calque_fuzz." + std::to_string(getpid());
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin).count());
  };
  std::map<std::string, Total> totals;
  std::map<std::string, int> said;  // findings that read the same are shown once
  const auto time_is_over = [&] { return options.seconds > 0 && elapsed() >= options.seconds; };
  const auto over = [&](const Total& total) {
    return (options.calls > 0 && total.calls >= options.calls) || time_is_over();
  };
  bool again = true;
  for (uint64_t round = 0; again; ++round) {
    again = false;
    std::map<std::string, bool> open;  // families that still want calls in this round
    for (const Subject& subject : subjects) open.emplace(subject.family, !over(totals[subject.family]));
    for (const Subject& subject : subjects) {
      if (!options.family.empty() && options.family != subject.family) continue;
      if (!options.subject.empty() && options.subject != subject.name) continue;
      Total& total = totals[subject.family];
      if (!open[subject.family] || time_is_over()) continue;
      again = true;
      uint64_t seed = options.first + round * options.chunk;
      const uint64_t end = seed + options.chunk;
      for (int failures = 0; seed < end && failures < 3;) {
        *progress = Progress{};
        std::fflush(stdout);
        const pid_t child = fork();
        if (child == 0) run_child(subject, seed, end, *progress, report);
        int status = 0;
        waitpid(child, &status, 0);
        total.calls += progress->seed - seed + 1;
        total.answered += progress->answered;
        total.refused += progress->refused;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
        ++total.findings;
        ++failures;
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        const std::string what = code == slow_status    ? "takes longer than " + std::to_string(slow_seconds) + " s\n"
                                 : code == wrong_status ? std::string(progress->what) + "\n"
                                                        : summary(report);
        // The same place is shown once: the first line of the sources that the report names.
        const size_t place = what.find(" src/");
        if (said[place == std::string::npos ? what.substr(0, 80) : what.substr(place, what.find('\n', place) - place)]++ ==
            0) {
          std::printf("FINDING %s:%llu (status %d)\n", subject.name.c_str(), static_cast<unsigned long long>(progress->seed),
                      status);
          std::istringstream lines(what);
          for (std::string line; std::getline(lines, line);) std::printf("    %s\n", line.c_str());
        }
        seed = progress->seed + 1;
      }
    }
  }
  unlink(report.c_str());
  Total all;
  std::printf("%-18s %10s %10s %10s %9s\n", "family", "calls", "answered", "refused", "findings");
  for (const auto& [family, t] : totals) {
    if (t.calls == 0) continue;
    std::printf("%-18s %10llu %10llu %10llu %9llu\n", family.c_str(), t.calls, t.answered, t.refused, t.findings);
    all.calls += t.calls;
    all.findings += t.findings;
  }
  std::printf("stat::number_of_executed_units: %llu\n%llu calls, %llu findings in %llu s\n", all.calls, all.calls,
              all.findings, static_cast<unsigned long long>(elapsed()));
  return all.findings == 0 ? 0 : 77;
}

}  // namespace calque::forked
