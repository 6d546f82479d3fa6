#include "calque/base/version.h"

namespace calque {

std::string_view version() { return CALQUE_VERSION; }

}  // namespace calque
