// random_peer SCRIPT OUT: runs a script of random calls (tests/kernel/random_support.h) and writes every result's
// bytes, one after the other.
#include <fstream>
#include <iostream>

#include "../kernel/random_support.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: random_peer SCRIPT OUT\n";
    return 2;
  }
  std::ifstream script(argv[1]);
  std::ofstream out(argv[2], std::ios::binary);
  if (!script || !out) {
    std::cerr << "random_peer: cannot open " << argv[1] << " or " << argv[2] << '\n';
    return 2;
  }
  try {
    for (const calque::RandomResult& r : calque::run_random_script(script))
      out.write(reinterpret_cast<const char*>(r.bytes.data()), static_cast<std::streamsize>(r.bytes.size()));
  } catch (const std::exception& e) {
    std::cerr << "random_peer: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
