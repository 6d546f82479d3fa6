// The post-processors of a tokenizer.json: special tokens around the text, and offsets without white space.
#pragma once

#include <memory>
#include <vector>

#include "calque/text/tokenizer.h"

namespace calque {

class Json;

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // One encoding, or two of a pair, in and out (more when a template puts tokens around them). They are joined afterwards.
  virtual std::vector<Encoding> apply(std::vector<Encoding> encodings, bool add_special_tokens) const = 0;
};

std::vector<std::unique_ptr<PostProcessor>> make_post_processors(const Json& json);

}  // namespace calque
