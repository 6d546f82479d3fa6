#include "text/legacy/legacy.h"

#include <algorithm>
#include <array>

#include "calque/base/error.h"
#include "text/legacy/classes.h"
#include "text/utf8.h"

namespace calque {
namespace {

constexpr std::string_view generic_class = "TokenizersBackend";

// Model types whose folders name a class that transformers does not believe, ...
constexpr std::string_view generic_types =
    "EvollaModel aria beam bigbird_pegasus canary flex_olmo glm glm4 glm4_moe glm4_moe_lite glm4v glm4v_moe glm_image "
    "glmasr got_ocr2 "
    "gpt_bigcode gradium_phonon_tts granite granitemoe granitemoehybrid granitemoeshared kimi_k25 kimi_linear kosmos-2 "
    "mimo_v2_flash "
    "minicpm_ocr minicpmv4_6 minicpmv4_7 ministral ministral3 mistral mistral3 mistral_large4 mixtral nemo_speechlm "
    "nystromformer olmo2 "
    "olmo3 olmo_hybrid pegasus_x persimmon pix2struct pixtral pocket_tts stablelm umt5 voxtral voxtral_realtime "
    "xlm-roberta-xl arctic "
    "camembertv2-base chatlm cohere_asr ernie4_5 ernie4_5_moe fuyu h2ovl_chat hyperclovax hyperclovax_vlm internlm2 jamba "
    "llava llava_next "
    "minicpm3 minicpmv minimax_m2 modernbert modernbert-decoder molmo molmo2 nemotron nvfp4 opencua openvla paddleocr_vl "
    "phi3 phi3_v phimoe "
    "smolvlm step3_vl vipllava";
// ... and such as it corrects to the model type's own.
constexpr std::string_view corrected_types = "qwen2 qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen4_exp hyperclovax_vision_v2";

// Classes that exist in Python alone, and their model types: what they do is no tokenizer.json.
struct PythonClass {
  std::string_view name, model_types;
};
constexpr PythonClass python_classes[] = {
    {"BartphoTokenizer", "bartpho"},
    {"BertGenerationTokenizer", "bert-generation"},
    {"BertJapaneseTokenizer", "bert-japanese"},
    {"BertweetTokenizer", "bertweet"},
    {"BioGptTokenizer", "biogpt"},
    {"ByT5Tokenizer", "byt5"},
    {"CTRLTokenizer", "ctrl"},
    {"CanineTokenizer", "canine"},
    {"ClvpTokenizer", "clvp"},
    {"CpmAntTokenizer", "cpmant"},
    {"CpmTokenizer", "cpm"},
    {"DiaTokenizer", "dia"},
    {"EsmTokenizer", "esm"},
    {"FSMTTokenizer", "fsmt"},
    {"FastSpeech2ConformerTokenizer", "fastspeech2_conformer"},
    {"FlaubertTokenizer", "flaubert"},
    {"GPTNeoXJapaneseTokenizer", "gpt_neox_japanese"},
    {"GPTSw3Tokenizer", "gpt-sw3"},
    {"MgpstrTokenizer", "mgp-str"},
    {"MyT5Tokenizer", "myt5"},
    {"PerceiverTokenizer", "perceiver"},
    {"PhobertTokenizer", "phobert"},
    {"ProphetNetTokenizer", "prophetnet"},
    {"RagTokenizer", "rag"},
    {"RoCBertTokenizer", "roc_bert"},
    {"RoFormerTokenizer", "roformer"},
    {"SiglipTokenizer", "siglip"},
    {"SpeechT5Tokenizer", "speecht5"},
    {"TapasTokenizer", "tapas"},
    {"Tipsv2Tokenizer", "tipsv2"},
    {"VitsTokenizer", "vits"},
    {"Wav2Vec2PhonemeCTCTokenizer", "wav2vec2_phoneme"},
    {"XLMTokenizer", "xlm"},
};

// Whether a list of words with spaces between them has this one.
bool lists(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

template <class Matches>
const LegacyClass* find_class(Matches&& matches) {
  for (const auto classes : {word_piece_classes(), bpe_classes(), piece_classes(), subword_classes(), dictionary_classes()})
    for (const LegacyClass& one : classes)
      if (matches(one)) return &one;
  return nullptr;
}

const LegacyClass* class_named(std::string_view name) {
  return find_class([&](const LegacyClass& one) { return lists(one.names, name); });
}

const LegacyClass* class_of_type(std::string_view model_type) {
  return find_class([&](const LegacyClass& one) { return lists(one.model_types, model_type); });
}

[[noreturn]] void refuse(const LegacySettings& settings, const std::string& why) {
  throw UserError(ErrorKind::bad_file, settings.folder().string() + ": no tokenizer.json in this folder, and " + why);
}

// What the files alone tell.
const LegacyClass& class_by_files(const LegacySettings& settings) {
  const auto there = [&](const char* name) { return std::filesystem::exists(settings.folder() / name); };
  if (there("vocab.txt")) return *class_named("BertTokenizer");
  if (there("vocab.json") && there("merges.txt")) return *class_named("GPT2Tokenizer");
  if (there("source.spm") && there("vocab.json")) return *class_named("MarianTokenizer");
  if (there("tokenizer.model") || there("tiktoken.model")) return *class_named(generic_class);
  for (const char* name : {"spiece.model", "sentencepiece.bpe.model", "spm.model", "sentencepiece.model"})
    if (there(name))
      refuse(
          settings,
          "several classes have a " + std::string(name) +
              ": say which one it is as \"tokenizer_class\" in tokenizer_config.json, or as \"model_type\" in config.json");
  refuse(settings,
         "no vocabulary that a tokenizer could be made from (vocab.txt, vocab.json with merges.txt, or a "
         ".model of SentencePiece or tiktoken); did you "
         "download the tokenizer's files as well?");
}

bool is_python_class(std::string_view name) {
  return std::any_of(std::begin(python_classes), std::end(python_classes),
                     [&](const PythonClass& c) { return c.name == name; });
}

[[noreturn]] void refuse_class(const LegacySettings& settings, std::string_view name) {
  refuse(settings, "its class, " + excerpt(name) + ", " +
                       (is_python_class(name) ? "exists in Python alone, so that there is none to make"
                                              : "is none of those that Calque makes from vocabulary files") +
                       "; where transformers has a fast class for it, "
                       "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) in Python "
                       "writes a tokenizer.json");
}

}  // namespace

const LegacyClass& legacy_class_of(const LegacySettings& settings) {
  const std::string named = settings.tokenizer_class().value_or(""), type = settings.model_type().value_or("");
  const LegacyClass* const generic = class_named(generic_class);
  const LegacyClass* const by_type = class_of_type(type);
  const bool has_model = std::filesystem::exists(settings.folder() / "tokenizer.model") ||
                         std::filesystem::exists(settings.folder() / "tiktoken.model");
  if (lists(generic_types, type) && has_model) return *generic;
  if (by_type && lists(corrected_types, type)) return *by_type;
  if (!named.empty()) {
    const LegacyClass* const found = class_named(named);
    if (found == nullptr && is_python_class(named)) refuse_class(settings, named);
    if (found != nullptr && (found != generic || has_model)) return *found;
    if (found == nullptr && by_type == nullptr && !has_model) refuse_class(settings, named);
    if (found == nullptr && has_model) return *generic;
  }
  if (by_type) return *by_type;
  for (const PythonClass& one : python_classes)
    if (lists(one.model_types, type)) refuse_class(settings, one.name);
  return class_by_files(settings);
}

LegacyTokenizer read_legacy_tokenizer(const std::filesystem::path& folder) {
  LegacySettings settings(folder);
  const LegacyClass& found = legacy_class_of(settings);
  LegacyTokenizer out;
  out.class_name = found.names.substr(0, found.names.find(' '));
  LegacyBuilder builder(std::move(settings), out.class_name);
  found.build(builder);
  out.json = builder.document.text();
  out.clean_up_spaces = builder.settings.flag("clean_up_tokenization_spaces", builder.cleans_up);
  for (const auto& [role, token] : builder.settings.roles)
    if (token) out.special_tokens[role.substr(0, role.find('_'))] = token->token.content;
  return out;
}

}  // namespace calque
