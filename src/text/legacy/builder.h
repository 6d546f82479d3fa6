// What the tokenizer classes of transformers are made of: a class takes its arguments from the settings, loads its vocabulary, sets
// the parts of the tokenizer.json, and has its special tokens added, in this order.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/file/mapped_file.h"
#include "text/legacy/document.h"
#include "text/legacy/sentencepiece.h"
#include "text/legacy/settings.h"

namespace calque {

class LegacyBuilder {
 public:
  LegacyBuilder(LegacySettings given, std::string class_name)
      : settings(std::move(given)), class_name_(std::move(class_name)) {}

  LegacySettings settings;
  bool cleans_up = false;  // whether decoded texts lose spaces where the settings do not say
  TokenizerDocument document;

  // ---- arguments
  // The class's own special tokens, for roles of which the files say nothing.
  void defaults(std::initializer_list<std::pair<const char*, const char*>> tokens);
  // The token of a role, where it is given as a text alone, matches so.
  void match(std::string_view role, LegacyToken how);
  const std::string& token(std::string_view role) const;  // an error when the files say null
  bool has_token(std::string_view role) const;
  int64_t id(std::string_view token) const;  // the unknown token's when there is none
  int64_t role_id(std::string_view role) const { return id(token(role)); }
  std::pair<std::string, int64_t> with_id(std::string_view role) const { return {token(role), role_id(role)}; }

  // ---- vocabularies
  std::filesystem::path file(std::string_view name) const;  // an error when the folder has none
  void load_word_piece();                                   // vocab.txt
  void load_bpe(const LegacyBpeSettings& how);              // vocab.json and merges.txt
  bool use_tiktoken();                                      // all parts, where the folder has a vocabulary of tiktoken's
  // The folder's SentencePiece model, or the one of this name. Its control and user-defined pieces are additional special tokens.
  const SentencePieceModel& sentencepiece(std::string_view name = {});
  void use_pieces(size_t skip = 0);  // adds them to the vocabulary, without the first ones
  void use_unigram(int64_t unknown, bool byte_fallback = false, const LegacyVocabulary* pieces = nullptr);
  void use_bpe(const LegacyBpeSettings& how) { use_bpe_of(document.vocabulary, how); }
  void use_bpe_of(const LegacyVocabulary& pieces, const LegacyBpeSettings& how);  // the merges are those of the pieces
  // The normalizer of the model's replacements, if it has any; `longest` as SentencePiece itself replaces.
  std::optional<std::string> precompiled(bool longest = false) const;

  // ---- special tokens
  void add_extra(std::string_view text, LegacyToken how = {});  // to the additional special tokens
  // Adds all special tokens; then, unless there is a post-processor that shall stay, makes the one of add_bos_token and add_eos_token.
  void finish();
  void make_post_processor();
  void add_special_again();    // some classes add theirs a second time, as special whatever the files say
  void add_special_as_text();  // or so, as their texts alone
  bool adds_bos = false;       // whether the class asks for the first token where the files do not say

 private:
  [[noreturn]] void fail(const std::string& why) const;
  std::vector<std::pair<std::string, GivenToken>> all_roles() const;  // in the order in which they are added
  std::vector<GivenToken> extras() const;

  std::string class_name_;
  std::shared_ptr<const MappedFile> model_file_;
  SentencePieceModel model_;
  bool makes_post_processor_ = false;
};

// ---- parts as JSON

std::string json_sequence(std::string_view type, std::string_view member, const std::vector<std::string>& parts);
inline std::string normalizer_sequence(const std::vector<std::string>& parts) {
  return json_sequence("Sequence", "normalizers", parts);
}
inline std::string pre_tokenizer_sequence(const std::vector<std::string>& parts) {
  return json_sequence("Sequence", "pretokenizers", parts);
}
inline std::string decoder_sequence(const std::vector<std::string>& parts) {
  return json_sequence("Sequence", "decoders", parts);
}
std::string replace_text(std::string_view text, std::string_view content);
std::string replace_expression(std::string_view expression, std::string_view content);
std::string metaspace(std::string_view scheme, bool split = true);
std::string byte_level(bool add_prefix_space, bool trim_offsets = true, bool use_regex = true);
std::string split_expression(std::string_view expression, std::string_view behavior, bool invert);
std::string bert_normalizer(const LegacySettings& settings, std::optional<bool> lower_case = std::nullopt);
// RobertaProcessing, or BertProcessing without the flags.
std::string two_token_processing(std::string_view type, const std::pair<std::string, int64_t>& sep,
                                 const std::pair<std::string, int64_t>& cls,
                                 std::optional<std::pair<bool, bool>> trim_and_prefix);

}  // namespace calque
