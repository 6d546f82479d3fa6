#include <calque/base/version.h>

#include <iostream>

int main() { std::cout << "calque " << calque::version() << "\n"; }
