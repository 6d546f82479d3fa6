#include "calque/base/error.h"
#include "text/legacy/classes.h"

namespace calque {
namespace {

constexpr const char* nfc = R"({"type": "NFC"})";
constexpr const char* digits = R"({"type": "Digits", "individual_digits": true})";

// Of the classes whose pieces are bytes.
LegacyBpeSettings byte_settings() { return {.prefix = "", .suffix = ""}; }

void set_byte_level(LegacyBuilder& b, bool prefix_by_default) {
  b.load_bpe(byte_settings());
  b.document.pre_tokenizer = byte_level(b.settings.flag("add_prefix_space", prefix_by_default));
  b.document.decoder = byte_level(true);
}

void default_roberta_tokens(LegacyBuilder& b) {
  b.defaults({{"bos_token", "<s>"},
              {"eos_token", "</s>"},
              {"sep_token", "</s>"},
              {"cls_token", "<s>"},
              {"unk_token", "<unk>"},
              {"pad_token", "<pad>"},
              {"mask_token", "<mask>"}});
}

void default_end_of_text(LegacyBuilder& b) {
  b.defaults({{"unk_token", "<|endoftext|>"}, {"bos_token", "<|endoftext|>"}, {"eos_token", "<|endoftext|>"}});
}

void build_gpt2(LegacyBuilder& b) {
  default_end_of_text(b);
  set_byte_level(b, false);
  b.finish();
}

void build_codegen(LegacyBuilder& b) {
  default_end_of_text(b);
  set_byte_level(b, false);
  b.document.post_processor = byte_level(true, false);
  b.finish();
}

void build_gpt_neox(LegacyBuilder& b) {
  default_end_of_text(b);
  b.defaults({{"pad_token", "<|padding|>"}});
  set_byte_level(b, false);
  b.document.normalizer = nfc;
  b.document.pre_tokenizer = byte_level(b.settings.flag("add_prefix_space", false), b.settings.flag("trim_offsets", true));
  b.finish();
}

void build_roberta(LegacyBuilder& b) {
  default_roberta_tokens(b);
  set_byte_level(b, false);
  b.finish();
  b.document.post_processor =
      two_token_processing("RobertaProcessing", b.with_id("sep_token"), b.with_id("cls_token"),
                           {{b.settings.flag("trim_offsets", true), b.settings.flag("add_prefix_space", false)}});
}

void build_layoutlmv3(LegacyBuilder& b) {
  default_roberta_tokens(b);
  set_byte_level(b, true);
  b.finish();
  b.document.post_processor = two_token_processing("RobertaProcessing", b.with_id("sep_token"), b.with_id("cls_token"),
                                                   {{true, b.settings.flag("add_prefix_space", true)}});
}

void build_blenderbot(LegacyBuilder& b) {
  default_roberta_tokens(b);
  b.match("mask_token", {.lstrip = true, .normalized = false});
  set_byte_level(b, true);
  b.finish();
}

void build_deberta(LegacyBuilder& b) {
  b.defaults({{"bos_token", "[CLS]"},
              {"eos_token", "[SEP]"},
              {"sep_token", "[SEP]"},
              {"cls_token", "[CLS]"},
              {"unk_token", "[UNK]"},
              {"pad_token", "[PAD]"},
              {"mask_token", "[MASK]"}});
  set_byte_level(b, false);
  b.finish();
  const std::string &cls = b.token("cls_token"), &sep = b.token("sep_token");
  b.document.post_processor = template_processing({{cls}, {"$A"}, {sep}}, {{cls}, {"$A"}, {sep}, {sep}, {"$B"}, {sep}},
                                                  {b.with_id("cls_token"), b.with_id("sep_token")});
}

void build_clip(LegacyBuilder& b) {
  b.defaults({{"unk_token", "<|endoftext|>"},
              {"bos_token", "<|startoftext|>"},
              {"eos_token", "<|endoftext|>"},
              {"pad_token", "<|endoftext|>"}});
  b.load_bpe({.unknown = b.token("unk_token"), .prefix = "", .suffix = "</w>"});
  b.document.normalizer = normalizer_sequence({nfc, replace_expression("\\s+", " "), R"({"type": "Lowercase"})"});
  b.document.pre_tokenizer = pre_tokenizer_sequence(
      {split_expression(R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)",
                        "Removed", true),
       byte_level(false)});
  b.document.decoder = byte_level(true);
  b.finish();
  b.document.post_processor =
      two_token_processing("RobertaProcessing", b.with_id("eos_token"), b.with_id("bos_token"), {{false, false}});
}

void build_cohere(LegacyBuilder& b) {
  b.defaults({{"unk_token", "<UNK>"},
              {"bos_token", "<BOS_TOKEN>"},
              {"eos_token", "<|END_OF_TURN_TOKEN|>"},
              {"pad_token", "<PAD>"},
              {"cls_token", "<CLS>"},
              {"sep_token", "<SEP>"},
              {"mask_token", "<MASK_TOKEN>"}});
  const bool prefix = b.settings.flag("add_prefix_space", false);
  b.load_bpe(byte_settings());
  b.document.normalizer = nfc;
  b.document.pre_tokenizer = pre_tokenizer_sequence({digits, byte_level(prefix)});
  b.document.decoder = byte_level(true);
  b.finish();
  b.add_special_again();
}

void set_qwen_parts(LegacyBuilder& b, std::string_view expression) {
  b.defaults({{"unk_token", "<|endoftext|>"}, {"eos_token", "<|endoftext|>"}, {"pad_token", "<|endoftext|>"}});
  b.load_bpe(byte_settings());
  b.document.normalizer = nfc;
  b.document.pre_tokenizer = pre_tokenizer_sequence({split_expression(expression, "Isolated", false),
                                                     byte_level(b.settings.flag("add_prefix_space", false), true, false)});
  b.document.decoder = byte_level(true);
  b.finish();
}

void build_qwen2(LegacyBuilder& b) {
  set_qwen_parts(
      b,
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
  b.add_special_as_text();
}

void build_qwen3_5(LegacyBuilder& b) {
  set_qwen_parts(
      b,
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
}

// Words of characters that end in </w>, split as Bert splits.
void set_word_end_parts(LegacyBuilder& b, const LegacyBpeSettings& how, const char* normalizer) {
  b.load_bpe(how);
  b.document.normalizer = normalizer;
  b.document.pre_tokenizer = R"({"type": "BertPreTokenizer"})";
  b.document.decoder = R"({"type": "BPEDecoder", "suffix": "</w>"})";
}

void build_openai_gpt(LegacyBuilder& b) {
  b.defaults({{"unk_token", "<unk>"}});
  set_word_end_parts(
      b, {.unknown = b.token("unk_token"), .prefix = "", .suffix = "</w>"},
      R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true})");
  b.finish();
}

void build_herbert(LegacyBuilder& b) {
  b.defaults({{"cls_token", "<s>"},
              {"unk_token", "<unk>"},
              {"pad_token", "<pad>"},
              {"mask_token", "<mask>"},
              {"sep_token", "</s>"}});
  set_word_end_parts(
      b, {.unknown = b.token("unk_token"), .suffix = "</w>"},
      R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": false, "lowercase": false})");
  b.finish();
  b.document.post_processor =
      two_token_processing("BertProcessing", {b.token("sep_token"), 2}, {b.token("cls_token"), 0}, std::nullopt);
}

void build_whisper(LegacyBuilder& b) {
  default_end_of_text(b);
  for (const char* role : {"bos_token", "eos_token", "unk_token"}) b.match(role, {.special = true, .normalized = false});
  set_byte_level(b, false);
  b.finish();
  std::vector<std::string> prefix{"<|startoftranscript|>"};
  if (const auto language = b.settings.text("language")) {
    prefix.push_back("<|" + *language + "|>");
    if (!b.document.find(prefix.back()))
      throw UserError(ErrorKind::bad_file, b.settings.folder().string() + "/tokenizer_config.json: the language \"" +
                                               *language + "\" has no token " + prefix.back() +
                                               "; expected a code such as \"en\"");
  }
  if (const auto task = b.settings.text("task"))
    prefix.push_back(*task == "transcribe" ? "<|transcribe|>" : "<|translate|>");
  if (!b.settings.flag("predict_timestamps", false)) prefix.push_back("<|notimestamps|>");
  LegacyTemplate single, pair;
  LegacyTokenIds ids{b.with_id("eos_token")};
  for (const std::string& token : prefix) {
    const int64_t id = b.id(token);
    ids.emplace_back(b.document.token_of(id).value_or(token), id);
    single.push_back({ids.back().first});
  }
  single.push_back({"$A"});
  pair = single;
  pair.push_back({"$B", 1});
  single.push_back({b.token("eos_token")});
  pair.push_back({b.token("eos_token"), 1});
  b.document.post_processor = template_processing(single, pair, ids);
}

constexpr LegacyClass classes_of_files[] = {
    {"GPT2Tokenizer",
     "gpt2 gpt_neo gptj opt phi blip-2 codegen dbrx emu3 hyperclovax_vision_v2 instructblip instructblipvideo jais2 "
     "starcoder2",
     build_gpt2},
    {"CodeGenTokenizer", "", build_codegen},
    {"GPTNeoXTokenizer", "gpt_neox falcon_mamba mamba mamba2 mpt olmo olmoe rwkv xlstm", build_gpt_neox},
    {"RobertaTokenizer BartTokenizer LongformerTokenizer LEDTokenizer MvpTokenizer",
     "roberta bart longformer led mvp bridgetower clap data2vec-text florence2 ibert lilt mega mra roberta-prelayernorm",
     build_roberta},
    {"LayoutLMv3Tokenizer", "layoutlmv3", build_layoutlmv3},
    {"BlenderbotTokenizer", "blenderbot", build_blenderbot},
    {"DebertaTokenizer", "deberta", build_deberta},
    {"CLIPTokenizer", "clip aimv2 clipseg groupvit omdet-turbo oneformer owlv2 owlvit sam3 sam3_video xclip", build_clip},
    {"CohereTokenizer", "cohere cohere2 aya_vision", build_cohere},
    {"Qwen2Tokenizer",
     "qwen2 audioflamingo3 colqwen2 cosmos3_omni fun_asr_nano hunyuan_vl internvl lighton_ocr moss_transcribe_diarize ovis2 "
     "qianfan_ocr "
     "qwen2_5_omni qwen2_5_vl qwen2_audio qwen2_moe qwen2_vl qwen3 qwen3_asr qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl "
     "qwen3_vl_moe vibevoice",
     build_qwen2},
    {"Qwen3_5Tokenizer", "qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen4_exp", build_qwen3_5},
    {"OpenAIGPTTokenizer", "openai-gpt", build_openai_gpt},
    {"HerbertTokenizer", "herbert", build_herbert},
    {"WhisperTokenizer", "whisper", build_whisper},
};

}  // namespace

std::span<const LegacyClass> bpe_classes() { return classes_of_files; }

}  // namespace calque
