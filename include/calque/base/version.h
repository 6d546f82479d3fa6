// The version of the library that is linked, as opposed to that of the headers a caller was compiled with.
#pragma once

#include <string_view>

namespace calque {

/// "MAJOR.MINOR.PATCH".
std::string_view version();

}  // namespace calque
