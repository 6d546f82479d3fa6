// JSON that commands print with --json: values keep their types. Infinities and NaN, which JSON has not, are the texts "inf", "-inf", "nan".
#pragma once

#include <nlohmann/json.hpp>

#include "calque/op/value.h"

namespace calque::cli {

using OrderedJson = nlohmann::ordered_json;

// None, numbers, texts, lists and dicts as they are; tensors as nested lists; anything else as its text.
OrderedJson to_json(const Value& value);
// {"dtype": ..., "shape": [...], "values": [...]}; the values of more than `most` elements are null.
OrderedJson tensor_json(const Tensor& tensor, int64_t most = 1000);
void print_json(const OrderedJson& json);  // indented, ends with a newline; what is no UTF-8 is replaced

}  // namespace calque::cli
