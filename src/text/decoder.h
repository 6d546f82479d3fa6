// The decoders of a tokenizer.json: they make text of tokens.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace calque {

class ExpressionBudget;
class Json;
class TextBudget;

class Decoder {
 public:
  virtual ~Decoder() = default;
  // The bytes of the tokens are paid for; what makes them longer, or looks at them more than once, pays for that.
  virtual std::vector<std::string> apply(std::vector<std::string> tokens, TextBudget& budget) const = 0;
};

struct Decoders {
  std::vector<std::unique_ptr<Decoder>> steps;
  bool any = false;         // without a decoder tokens are joined with spaces
  bool byte_level = false;  // the only step is byte-level: each token stands for bytes, whatever is around it

  std::string decode(std::vector<std::string> tokens, TextBudget& budget) const;
};

Decoders make_decoders(const Json& json, ExpressionBudget& budget);

// transformers' clean_up_tokenization: no space before punctuation and contractions.
void clean_up_spaces(std::string& text);

// The bytes of a token in the byte alphabet; of one that is not in it, its own.
void append_token_bytes(std::string& bytes, std::string_view token);

}  // namespace calque
