#include "calque/text/tokenizer.h"
#include "text/tokenizer_impl.h"
#include "text/utf8.h"

namespace calque {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(&tokenizer), skip_special_tokens_(skip_special_tokens) {}

std::string StreamDecoder::push(int64_t id) {
  const Tokenizer::Impl& impl = *tokenizer_->impl_;
  if (impl.decoders.byte_level) {
    TextBudget budget(impl.limits, impl.name, TextBudget::Of::ids, 1);
    for (const std::string& token : impl.tokens_of({&id, 1}, skip_special_tokens_, budget))
      append_token_bytes(bytes_, token);
    size_t whole = 0;
    while (whole < bytes_.size()) {
      const Utf8Step step = next_utf8(std::string_view(bytes_).substr(whole));
      if (step.kind == Utf8Step::Kind::incomplete) break;
      whole += step.size;
    }
    std::string out = repair_utf8(std::string_view(bytes_).substr(0, whole));
    bytes_.erase(0, whole);
    return out;
  }
  // Other decoders look at a token's neighbours: the tokens of the last text are decoded again with those that follow,
  // and what they add to that text is new. A text that ends in U+FFFD may be the beginning of a character.
  ids_.push_back(id);
  const std::string text = tokenizer_->decode(ids_, skip_special_tokens_);
  if (text.size() <= given_.size() || !text.starts_with(given_) || text.ends_with("\xEF\xBF\xBD")) return "";
  std::string out = text.substr(given_.size());
  std::vector<int64_t> last(ids_.begin() + static_cast<std::ptrdiff_t>(context_), ids_.end());
  std::string last_text = tokenizer_->decode(last, skip_special_tokens_);
  if (last_text.empty()) {
    given_ = text;
  } else {
    ids_ = std::move(last);
    given_ = std::move(last_text);
  }
  context_ = ids_.size();
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  if (tokenizer_->impl_->decoders.byte_level) {
    out = repair_utf8(bytes_);
  } else {
    const std::string text = tokenizer_->decode(ids_, skip_special_tokens_);
    if (text.starts_with(given_)) out = text.substr(given_.size());
  }
  bytes_.clear();
  ids_.clear();
  given_.clear();
  context_ = 0;
  return out;
}

}  // namespace calque
