// Schemas as text: what the table and the generator of the typed operators share. The generator runs before Value exists, so
// arguments keep the text of their defaults; parse_schema (calque/op/schema.h) turns it into Values.
#pragma once

#include <string_view>

#include "calque/op/schema.h"

namespace calque {

Schema parse_schema_text(std::string_view text, std::string_view default_namespace = "aten");

}  // namespace calque
