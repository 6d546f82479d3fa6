#include "text/legacy/classes.h"

namespace calque {
namespace {

constexpr const char* bert_pre_tokenizer = R"({"type": "BertPreTokenizer"})";
constexpr const char* word_piece_decoder = R"({"type": "WordPiece", "prefix": "##", "cleanup": true})";

void set_word_piece_parts(LegacyBuilder& b) {
  b.load_word_piece();
  b.document.normalizer = bert_normalizer(b.settings);
  b.document.pre_tokenizer = bert_pre_tokenizer;
  b.document.decoder = word_piece_decoder;
}

// [CLS] a [SEP] b [SEP]; the first token may have a type of its own.
void set_cls_sep_template(LegacyBuilder& b, int64_t cls_type = 0) {
  const std::string &cls = b.token("cls_token"), &sep = b.token("sep_token");
  b.document.post_processor =
      template_processing({{cls, cls_type}, {"$A"}, {sep}}, {{cls, cls_type}, {"$A"}, {sep}, {"$B", 1}, {sep, 1}},
                          {b.with_id("cls_token"), b.with_id("sep_token")});
}

void use_bert_roles(LegacyBuilder& b) {
  b.defaults({{"unk_token", "[UNK]"},
              {"sep_token", "[SEP]"},
              {"pad_token", "[PAD]"},
              {"cls_token", "[CLS]"},
              {"mask_token", "[MASK]"}});
}

void build_bert(LegacyBuilder& b) {
  use_bert_roles(b);
  set_word_piece_parts(b);
  b.finish();
  set_cls_sep_template(b);
}

void build_funnel(LegacyBuilder& b) {
  b.defaults({{"unk_token", "<unk>"},
              {"sep_token", "<sep>"},
              {"pad_token", "<pad>"},
              {"cls_token", "<cls>"},
              {"mask_token", "<mask>"},
              {"bos_token", "<s>"},
              {"eos_token", "</s>"}});
  set_word_piece_parts(b);
  b.finish();
  set_cls_sep_template(b, 2);
}

void build_mpnet(LegacyBuilder& b) {
  b.defaults({{"bos_token", "<s>"},
              {"eos_token", "</s>"},
              {"sep_token", "</s>"},
              {"cls_token", "<s>"},
              {"unk_token", "[UNK]"},
              {"pad_token", "<pad>"},
              {"mask_token", "<mask>"}});
  set_word_piece_parts(b);
  for (const std::string_view role : legacy_roles) b.match(role, {.lstrip = role == "mask_token"});
  b.finish();
  b.document.post_processor =
      two_token_processing("RobertaProcessing", b.with_id("sep_token"), b.with_id("cls_token"), {{true, false}});
}

void build_splinter(LegacyBuilder& b) {
  use_bert_roles(b);
  set_word_piece_parts(b);
  b.settings.own_roles.emplace_back("question_token", GivenToken{{.content = "[QUESTION]"}, true});
  b.finish();
  const std::string &cls = b.token("cls_token"), &sep = b.token("sep_token"), question = "[QUESTION]", dot = ".";
  const bool right = b.settings.text("padding_side").value_or("right") == "right";
  const LegacyTemplate pair = right ? LegacyTemplate{{cls}, {"$A"}, {question}, {dot}, {sep}, {"$B", 1}, {sep, 1}}
                                    : LegacyTemplate{{cls}, {"$A"}, {sep}, {"$B", 1}, {question}, {dot}, {sep, 1}};
  b.document.post_processor =
      template_processing({{cls}, {"$A"}, {sep}}, pair,
                          {b.with_id("cls_token"), b.with_id("sep_token"), {question, b.id(question)}, {dot, b.id(dot)}});
}

constexpr LegacyClass classes[] = {
    {"BertTokenizer DistilBertTokenizer ElectraTokenizer MobileBertTokenizer LayoutLMTokenizer LayoutLMv2Tokenizer "
     "LxmertTokenizer "
     "ConvBertTokenizer SqueezeBertTokenizer DPRReaderTokenizer DPRContextEncoderTokenizer DPRQuestionEncoderTokenizer "
     "RetriBertTokenizer RealmTokenizer NezhaTokenizer MegatronBertTokenizer",
     "bert distilbert electra mobilebert layoutlm layoutlmv2 lxmert convbert squeezebert dpr retribert realm nezha "
     "megatron-bert align "
     "bark blip bros chinese_clip ernie flava git grounding-dino mm-grounding-dino nomic_bert qdqbert tvp vilt visual_bert",
     build_bert},
    {"FunnelTokenizer", "funnel", build_funnel},
    {"MPNetTokenizer", "mpnet", build_mpnet},
    {"SplinterTokenizer", "splinter", build_splinter},
};

}  // namespace

std::span<const LegacyClass> word_piece_classes() { return classes; }

}  // namespace calque
