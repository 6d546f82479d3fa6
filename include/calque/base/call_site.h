// CallSite: how and where the user wrote a call. Operators, modules and guards name it.
#pragma once

#include <cstdint>
#include <source_location>

namespace calque {

// How the user wrote an operator's call: add(a, b) or a.add(b). `a + b` has no form of its own here: modes see it as a call of
// operator.add before it becomes a call of an operator of the table.
enum class CallForm : uint8_t { function, method };
struct CallSite {
  CallSite(std::source_location where = {}, CallForm form = CallForm::function) : where(where), form(form) {}
  std::source_location where;
  CallForm form;
};

}  // namespace calque
