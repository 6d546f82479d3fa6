// The line of user code behind a guard. A rule's own line says little to the user; the operators' room knows who called.
#pragma once

#include <source_location>

namespace calque {

// Asked while an operator's rule takes a guard. Its answer is used where it names a line.
using GuardSite = std::source_location (*)();
void set_guard_site(GuardSite site);

}  // namespace calque
