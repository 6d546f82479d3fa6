// Schemas as text: what the table and the generator of the typed operators share. The generator runs before Value exists, so
// arguments keep the text of their defaults; parse_schema (calque/op/schema.h) turns it into Values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calque/op/schema.h"

namespace calque {

Schema parse_schema_text(std::string_view text, std::string_view default_namespace = "aten");

// The elements of a list's default: "[0, 1]" has two, and a single "0" stands for all two of an int[2].
std::vector<std::string_view> default_items(const SchemaType& type, std::string_view text);

// A default as PyTorch prints it, which is not always as a schema writes it: "2." for 2.0, "4" for long.
std::string printed_default(const SchemaType& type, std::string_view text);

}  // namespace calque
