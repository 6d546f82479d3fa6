#include <bit>
#include <utility>

#include "calque/text/tokenizer.h"
#include "text/tokenizer_impl.h"
#include "text/utf8.h"

namespace calque {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(&tokenizer), skip_special_tokens_(skip_special_tokens) {}

// Memory is given back after each text, steps are not.
std::string StreamDecoder::decoded(std::span<const int64_t> ids) {
  const Tokenizer::Impl& impl = *tokenizer_->impl_;
  TextBudget budget(impl.limits, impl.name, TextBudget::Of::ids, ids.size());
  budget.continue_stream(impl.limits, came_, spent_);
  std::string out;
  if (impl.decoders.byte_level)
    for (const std::string& token : impl.tokens_of(ids, skip_special_tokens_, budget)) append_token_bytes(out, token);
  else
    out = impl.decoders.decode(impl.tokens_of(ids, skip_special_tokens_, budget), budget);
  spent_ = budget.steps_spent();
  return out;
}

std::string StreamDecoder::push(int64_t id) {
  ++came_;
  if (tokenizer_->impl_->decoders.byte_level) {
    bytes_ += decoded({&id, 1});
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
  // Of many ids without a text it is enough to look now and then.
  if (const size_t held = ids_.size() - context_; held > 16 && held % (std::bit_floor(held) / 4) != 0) return "";
  const std::string text = decoded(ids_);
  if (text.size() <= given_.size() || !text.starts_with(given_) || text.ends_with("\xEF\xBF\xBD")) return "";
  std::string out = text.substr(given_.size());
  std::vector<int64_t> last(ids_.begin() + static_cast<std::ptrdiff_t>(context_), ids_.end());
  std::string last_text = decoded(last);
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
  StreamDecoder rest(*tokenizer_, skip_special_tokens_);
  std::swap(*this, rest);
  if (tokenizer_->impl_->decoders.byte_level) return repair_utf8(rest.bytes_);
  const std::string text = rest.decoded(rest.ids_);
  return text.starts_with(rest.given_) ? text.substr(rest.given_.size()) : "";
}

}  // namespace calque
