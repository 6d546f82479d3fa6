// Where this tree and its programs are. One small file knows it, so that every other object is the same in all clones and a
// compiler cache shares it.
#pragma once

#include <string>

namespace calque::test {

std::string source_folder();   // the root of the tree
std::string program_folder();  // where the build puts programs

}  // namespace calque::test
