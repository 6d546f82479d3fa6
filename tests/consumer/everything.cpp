// What a user writes with the one header.
#include <calque/calque.h>

#include <iostream>

int main() {
  calque::Sequential net(calque::Linear(3, 4), calque::ReLU());
  std::cout << "calque " << calque::version() << " by hand: " << net(calque::ones({2, 3})).sizes() << "\n";
}
