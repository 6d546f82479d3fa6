// The post-processors of a tokenizer.json: special tokens around the text, and offsets without white space.
#pragma once

#include <memory>
#include <vector>

#include "calque/text/tokenizer.h"

namespace calque {

class Json;
class TextBudget;

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // One encoding, or two of a pair, in and out (more when a template puts tokens around them). They are joined afterwards.
  // Tokens that are put in or copied are paid for.
  virtual std::vector<Encoding> apply(std::vector<Encoding> encodings, bool add_special_tokens,
                                      TextBudget& budget) const = 0;
};

// The memory that a token takes in an encoding, and that an encoding takes.
size_t token_memory(std::string_view token);
size_t encoding_memory(const Encoding& encoding);

std::vector<std::unique_ptr<PostProcessor>> make_post_processors(const Json& json);

}  // namespace calque
