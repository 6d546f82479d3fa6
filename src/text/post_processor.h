// The post-processors of a tokenizer.json: special tokens around the text, and offsets without white space.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "calque/text/tokenizer.h"

namespace calque {

class Json;
class TextBudget;

struct PostContext {
  bool add_special_tokens;
  // Of the two encodings: a part of its text that overflowed. The library leaves the types of those as they are.
  std::array<bool, 2> overflowed;
  TextBudget& budget;
};

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // One encoding, or two of a pair, in and out (more when a template puts tokens around them). They are joined afterwards.
  // Tokens that are put in or copied are paid for.
  virtual std::vector<Encoding> apply(std::vector<Encoding> encodings, const PostContext& context) const = 0;
  virtual size_t added_tokens(bool pair) const = 0;  // that it puts in, if it may
};

// `from` behind `to`.
void append_encoding(Encoding& to, const Encoding& from);

// The memory that a token takes in an encoding, and that an encoding takes.
size_t token_memory(std::string_view token);
size_t encoding_memory(const Encoding& encoding);

std::vector<std::unique_ptr<PostProcessor>> make_post_processors(const Json& json);

}  // namespace calque
