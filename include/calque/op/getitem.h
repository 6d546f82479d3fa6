// getitem: container[key] for any Value, written so that a trace at the user's level sees it (operator.getitem). For
// programs whose inputs are dicts, lists or structures that a tracer does not take apart.
#pragma once

#include <source_location>

#include "calque/op/value.h"

namespace calque {

// Keys of a dict are matched as values, fields of a structure by name or position, items of a list by position
// (negative from the end). UserError when there is nothing there.
Value getitem(const Value& container, const Value& key, std::source_location where = std::source_location::current());

}  // namespace calque
