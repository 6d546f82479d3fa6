#include <calque/base/version.h>

#include <iostream>

int main() {
  std::cout << "linked with calque " << calque::version() << "\n";
  return calque::version().empty() ? 1 : 0;
}
