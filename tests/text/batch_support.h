// Batches in JSON, for the tests and for the program that is compared with the tokenizers library.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "calque/text/tokenizer.h"

namespace calque::test {

// What tools/golden/tokenizer_golden.py and tests/peers/tokenizer.py say of a batch: {"max_length": 8, "strategy": "only_first", ...}.
BatchOptions batch_options(const nlohmann::json& given);
// One row of a batch, everything that the library says of it.
nlohmann::json batch_row(const Encoding& row);

}  // namespace calque::test
