// clones ROOT [TOKENS]: lists the code of a tree that stands twice, the longest run first.
#include <cstdio>
#include <cstdlib>
#include <set>

#include "clones.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "clones ROOT [TOKENS]\n");
    return 2;
  }
  const auto clones = calque::layering::find_clones(argv[1], argc > 2 ? std::atoi(argv[2]) : 60);
  std::set<std::pair<std::string, int>> lines;
  for (const auto& c : clones) {
    std::printf("%4d tokens  %s:%d-%d  %s:%d-%d\n", c.tokens, c.here.file.c_str(), c.here.first, c.here.last,
                c.earlier.file.c_str(), c.earlier.first, c.earlier.last);
    for (int line = c.here.first; line <= c.here.last; ++line) lines.emplace(c.here.file, line);
  }
  std::printf("%zu runs, %zu lines\n", clones.size(), lines.size());
}
