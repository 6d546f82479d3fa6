#include "op/well_known.h"

namespace calque {

const WellKnownOperators& ops() {
#define CALQUE_FOUND(member, name) get_operator(name),
  static const WellKnownOperators operators{CALQUE_WELL_KNOWN_OPERATORS(CALQUE_FOUND)};
#undef CALQUE_FOUND
  return operators;
}

// Not by ops(): a thread that makes its operators waits for the table, and the table must not wait for them.
void check_well_known_operators() {
#define CALQUE_FIND(member, name) get_operator(name);
  CALQUE_WELL_KNOWN_OPERATORS(CALQUE_FIND)
#undef CALQUE_FIND
}

}  // namespace calque
