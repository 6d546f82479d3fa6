#include "support/paths.h"

namespace calque::test {

std::string source_folder() { return CALQUE_SOURCE_DIR; }
std::string program_folder() { return CALQUE_TEST_BIN; }

}  // namespace calque::test
