#include "calque/text/tokenizer.h"

#include <algorithm>
#include <limits>

#include "calque/base/error.h"
#include "calque/file/json.h"
#include "calque/file/mapped_file.h"
#include "text/json_parts.h"
#include "text/legacy/legacy.h"
#include "text/tokenizer_impl.h"

namespace calque {
namespace {

constexpr size_t longest_text = std::numeric_limits<uint32_t>::max() / 4;

std::string read_text(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path.string());
  const auto bytes = file->bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Errors of `read` begin with the name of the file, or of what is read in it.
template <class Read>
void naming(const std::string& name, Read&& read) {
  try {
    read();
  } catch (UserError& e) {
    if (!e.reason().starts_with(name)) e.prepend(name + ": ");
    throw;
  }
}

// Positions in a text's bytes, counted in its characters.
class CharacterCounter {
 public:
  explicit CharacterCounter(std::string_view text) : counts_(text.size() + 1) {
    uint32_t n = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      n += i > 0 && !is_utf8_continuation(text[i]);
      counts_[i] = n;
    }
    counts_[text.size()] = text.empty() ? 0 : n + 1;
  }
  size_t operator()(size_t byte) const { return counts_[byte]; }

 private:
  std::vector<uint32_t> counts_;
};

}  // namespace

class Tokenizer::Impl::Loan {
 public:
  explicit Loan(const Impl& impl) : impl_(impl) {
    const std::lock_guard lock(impl.mutex);
    if (!impl.idle.empty()) {
      scratch_ = std::move(impl.idle.back());
      impl.idle.pop_back();
    }
    if (!scratch_) scratch_ = std::make_unique<Scratch>();
  }
  ~Loan() {
    const std::lock_guard lock(impl_.mutex);
    impl_.idle.push_back(std::move(scratch_));
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  Scratch& operator*() const { return *scratch_; }

 private:
  const Impl& impl_;
  std::unique_ptr<Scratch> scratch_;
};

// ---- reading ------------------------------------------------------------------------------------------------------

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::read(std::string_view text, const std::string& name, const TextLimits& limits,
                          const std::optional<std::filesystem::path>& folder) {
  if (!is_valid_utf8(text)) throw UserError(ErrorKind::bad_file, name + ": not UTF-8 text");
  const JsonDocument document(text, name);
  const Json& json = document.root();
  auto impl = std::make_unique<Impl>();
  impl->name = name;
  impl->limits = limits;
  static const JsonDocument nothing("null", "null");
  const auto part = [&](std::string_view key) -> const Json& {
    const Json* found = json.find(key);
    return found ? *found : nothing.root();
  };
  if (json.is_object() && json.find("model") == nullptr)
    throw UserError(ErrorKind::bad_file, name +
                                             ": expected a tokenizer.json, found a JSON text without \"model\"; "
                                             "name the model's folder, or the tokenizer.json in it");
  impl->settings = TokenizerSettings::read(document, folder);
  naming(name, [&] {
    ExpressionBudget expressions(limits);
    impl->normalizers = make_normalizers(part("normalizer"), expressions);
    impl->model = make_model(json.at("model"));
    impl->pre_tokenizers = make_pre_tokenizers(part("pre_tokenizer"), impl->model->knows_bytes(), expressions);
    impl->post_processors = make_post_processors(part("post_processor"));
    impl->decoders = make_decoders(part("decoder"), expressions);
    std::vector<AddedToken> tokens;
    if (const Json& added = part("added_tokens"); !added.is_null())
      for (const Json& item : added.items()) tokens.push_back(read_added_token(item));
    tokens.insert(tokens.end(), impl->settings.named_tokens.begin(), impl->settings.named_tokens.end());
    size_t bytes = 0;
    for (const AddedToken& token : tokens) bytes += token.content.size();
    TextBudget budget(limits, impl->name, TextBudget::Of::added_tokens, bytes);
    impl->added.add(tokens, *impl->model, impl->normalizers, budget);
    impl->settings.guess_roles([&](std::string_view token) { return impl->added.is_special(token); });
  });
  return Tokenizer(std::move(impl));
}

Tokenizer Tokenizer::from_json(std::string_view text, const std::string& name, const TextLimits& limits) {
  return read(text, name, limits, std::nullopt);
}

Tokenizer Tokenizer::from_file(const std::filesystem::path& path, const TextLimits& limits) {
  const bool folder = std::filesystem::is_directory(path);
  const std::filesystem::path file = folder ? path / "tokenizer.json" : path;
  if (!folder || std::filesystem::exists(file)) return read(read_text(file), file.string(), limits, file.parent_path());
  LegacyTokenizer made = read_legacy_tokenizer(path);
  Tokenizer tokenizer = read(made.json, path.string(), limits, path);
  tokenizer.impl_->settings.clean_up_spaces = made.clean_up_spaces;
  for (auto& [role, token] : made.special_tokens) tokenizer.impl_->settings.special_tokens[role] = std::move(token);
  return tokenizer;
}

// ---- encoding -----------------------------------------------------------------------------------------------------

Encoding Tokenizer::Impl::encode_one(std::string_view given, int64_t type, Want want, OffsetUnit unit,
                                     TextBudget& budget) const {
  if (given.size() > longest_text)
    throw UserError("encode: a text of " + std::to_string(given.size()) + " bytes; expected at most " +
                    std::to_string(longest_text));
  std::string repaired;
  std::vector<uint32_t> origin;  // of the repaired text's bytes
  std::string_view text = given;
  if (!is_valid_utf8(given)) text = repaired = repair_utf8(given, &origin);

  const Loan loan(*this);
  Scratch& scratch = *loan;
  TextStore store(budget);
  scratch.pieces.clear();
  added.split({text}, normalizers, scratch.pieces, store);
  pre_tokenizers.apply(scratch.pieces, scratch.other, store);

  budget.enter("model");
  Encoding out;
  int32_t word = -1;
  for (const Piece& piece : scratch.pieces) {
    ++word;
    if (piece.added >= 0) {
      out.ids.push_back(piece.added);
      if (want == Want::everything) {
        budget.take(token_memory(piece.text));
        const TextRange range = piece.original(0, piece.text.size());
        out.tokens.emplace_back(piece.text);
        out.word_ids.push_back(word);
        out.offsets.emplace_back(range.begin, range.end);
      }
      continue;
    }
    scratch.tokens.clear();
    model->tokenize(piece.text, pre_tokenizers.bytes, budget, scratch.model, scratch.tokens);
    if (want == Want::ids) budget.take(scratch.tokens.size() * sizeof(int64_t));
    size_t at = 0;
    for (const ModelToken& token : scratch.tokens) {
      out.ids.push_back(token.id);
      if (want == Want::ids) continue;
      const std::string_view called = token.surface ? piece.text.substr(at, token.size) : *model->id_to_token(token.id);
      budget.take(token_memory(called));
      out.tokens.emplace_back(called);
      out.word_ids.push_back(word);
      // Prefixes and suffixes that fell back to bytes are longer than the text.
      const size_t begin = std::min(at, piece.text.size() - 1), end = std::min(at + token.size, piece.text.size());
      const TextRange range = piece.original(begin, std::max(end, begin + 1));
      out.offsets.emplace_back(range.begin, range.end);
      if (!token.shared) at += token.size;
    }
  }
  if (want == Want::ids) return out;
  out.type_ids.assign(out.size(), type);
  out.special_tokens_mask.assign(out.size(), 0);
  out.attention_mask.assign(out.size(), 1);
  out.sequence_ids.assign(out.size(), static_cast<int8_t>(type));
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (unit == OffsetUnit::characters && !ascii) {
    const CharacterCounter count(text);
    for (auto& [begin, end] : out.offsets) begin = count(begin), end = count(end);
  } else if (!origin.empty()) {
    for (auto& [begin, end] : out.offsets) begin = origin[begin], end = origin[end];
  }
  return out;
}

Encoding Tokenizer::Impl::post_process(std::vector<Encoding> encodings, const PostContext& context) const {
  for (size_t i = 0; i < post_processors.size(); ++i) {
    context.budget.enter("post-processor", i + 1);
    for (const Encoding& e : encodings) context.budget.spend(1 + e.size());
    encodings = post_processors[i]->apply(std::move(encodings), context);
  }
  if (encodings.empty()) return {};
  Encoding out = std::move(encodings.front());
  for (size_t i = 1; i < encodings.size(); ++i) append_encoding(out, encodings[i]);
  return out;
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  TextBudget budget(impl_->limits, impl_->name, TextBudget::Of::text, text.size());
  std::vector<Encoding> one;
  one.push_back(impl_->encode_one(text, 0, Impl::Want::everything, options.offsets, budget));
  return impl_->post_process(std::move(one), {options.add_special_tokens, {}, budget});
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const {
  TextBudget budget(impl_->limits, impl_->name, TextBudget::Of::text, first.size() + second.size());
  std::vector<Encoding> two;
  two.push_back(impl_->encode_one(first, 0, Impl::Want::everything, options.offsets, budget));
  two.push_back(impl_->encode_one(second, 1, Impl::Want::everything, options.offsets, budget));
  return impl_->post_process(std::move(two), {options.add_special_tokens, {}, budget});
}

std::vector<int64_t> Tokenizer::encode_ids(std::string_view text, bool add_special_tokens) const {
  TextBudget budget(impl_->limits, impl_->name, TextBudget::Of::text, text.size());
  std::vector<Encoding> one;
  one.push_back(impl_->encode_one(text, 0, Impl::Want::ids, OffsetUnit::bytes, budget));
  return impl_->post_process(std::move(one), {add_special_tokens, {}, budget}).ids;
}

// ---- decoding and the vocabulary ----------------------------------------------------------------------------------

const std::string* Tokenizer::Impl::token(int64_t id) const {
  if (id < 0 || id > std::numeric_limits<uint32_t>::max()) return nullptr;
  const auto small = static_cast<uint32_t>(id);
  if (const AddedToken* found = added.find(small)) return &found->decoded;
  return model->id_to_token(small);
}

std::vector<std::string> Tokenizer::Impl::tokens_of(std::span<const int64_t> ids, bool skip_special_tokens,
                                                    TextBudget& budget) const {
  budget.enter("vocabulary");
  std::vector<std::string> out;
  out.reserve(ids.size());
  for (const int64_t id : ids) {
    const std::string* found = token(id);
    if (found == nullptr) continue;
    budget.spend(1 + found->size() / 16);
    if (skip_special_tokens && added.is_special(*found)) continue;
    budget.take(sizeof(std::string) + found->size());
    out.push_back(*found);
  }
  return out;
}

std::string Tokenizer::decode(std::span<const int64_t> ids, bool skip_special_tokens) const {
  TextBudget budget(impl_->limits, impl_->name, TextBudget::Of::ids, ids.size());
  return impl_->decoders.decode(impl_->tokens_of(ids, skip_special_tokens, budget), budget);
}

std::string Tokenizer::decode_clean(std::span<const int64_t> ids, bool skip_special_tokens) const {
  std::string text = decode(ids, skip_special_tokens);
  if (impl_->settings.clean_up_spaces && !impl_->model->is_bpe()) clean_up_spaces(text);
  return text;
}

size_t Tokenizer::vocab_size() const {
  size_t n = impl_->model->vocab_size();
  for (const auto& [id, token] : impl_->added.by_id()) n += !impl_->model->token_to_id(token.content);
  return n;
}

std::optional<int64_t> Tokenizer::token_to_id(std::string_view token) const {
  if (const auto found = impl_->added.token_to_id(token)) return *found;
  if (const auto found = impl_->model->token_to_id(token)) return *found;
  return std::nullopt;
}

std::optional<std::string> Tokenizer::id_to_token(int64_t id) const {
  const std::string* found = impl_->token(id);
  return found ? std::optional(*found) : std::nullopt;
}

bool Tokenizer::is_special(int64_t id) const {
  const std::string* found = impl_->token(id);
  return found && impl_->added.is_special(*found);
}

std::optional<std::string> Tokenizer::special_token(std::string_view role) const {
  const auto found = impl_->settings.special_tokens.find(role);
  if (found == impl_->settings.special_tokens.end()) return std::nullopt;
  return found->second;
}

std::optional<int64_t> Tokenizer::special_token_id(std::string_view role) const {
  const auto token = special_token(role);
  return token ? token_to_id(*token) : std::nullopt;
}

const std::vector<std::string>& Tokenizer::additional_special_tokens() const {
  return impl_->settings.additional_special_tokens;
}
std::optional<int64_t> Tokenizer::model_max_length() const { return impl_->settings.model_max_length; }
TextSide Tokenizer::padding_side() const { return impl_->settings.padding_side; }
TextSide Tokenizer::truncation_side() const { return impl_->settings.truncation_side; }
int64_t Tokenizer::pad_type_id() const { return impl_->settings.pad_type_id; }
const std::vector<std::string>& Tokenizer::model_input_names() const { return impl_->settings.model_input_names; }

}  // namespace calque
