// generate with tiny-lm, beside what transformers made of it (assets/tiny-lm/reference.json, in float32).
#include "calque/generate/model_generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/hub/best_logit.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/resize.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/embedding.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/sorting.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "generate/generate_support.h"
#include "support/error_support.h"
#include "support/paths.h"

namespace calque::model_generate_test {
namespace {

using generate_test::ids_of;
using generate_test::rows_of;
using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::string tiny_lm = test::source_folder() + "/assets/tiny-lm";

PretrainedModel& tiny() {
  static const std::shared_ptr<PretrainedModel> model = [] {
    LoadOptions options;
    options.dtype = DType::float32;
    return from_pretrained(tiny_lm, options);
  }();
  return *model;
}

GenerationConfig settings(const std::string& json) { return GenerationConfig::from_json(json); }

const nlohmann::json& reference() {
  static const nlohmann::json read = nlohmann::json::parse(std::ifstream(tiny_lm + "/reference.json"));
  return read;
}

TEST(TinyLM, every_kind_of_cache_gives_the_same_text) {
  GenerationConfig config = settings(R"({"max_new_tokens": 8, "eos_token_id": -1})");
  const auto text = [&] { return rows_of(generate(tiny(), {{arg::input_ids, ids_of({{5, 9, 21}})}}, config).sequences); };
  const auto expected = text();
  for (const char* name : {"dynamic", "static", "hybrid", "sliding_window", "offloaded", "offloaded_static"}) {
    config.cache_implementation = name;
    EXPECT_EQ(text(), expected) << name;
  }
  const KeyValueCache past = tiny()({{arg::input_ids, ids_of({{5, 9}})}, {arg::use_cache, true}}).past_key_values();
  EXPECT_THAT(error_of([&] {
                generate(tiny(), {{arg::input_ids, ids_of({{5, 9, 21}})}, {arg::past_key_values, past}}, config);
              }),
              HasSubstr("use one of the two"));
}

TEST(TinyLM, greedy_ids_are_the_references) {
  for (const auto& entry : reference()) {
    const auto prompt = entry["prompt_ids"].get<std::vector<int64_t>>();
    const auto expected = entry["greedy_ids"].get<std::vector<int64_t>>();
    GenerationConfig config = generation_config_of(tiny_lm);
    config.max_new_tokens = std::ssize(expected) - std::ssize(prompt);
    EXPECT_EQ(rows_of(generate(tiny(), {{arg::input_ids, ids_of({prompt})}}, config).sequences).at(0), expected)
        << entry["prompt"];
    config.use_cache = false;
    EXPECT_EQ(rows_of(generate(tiny(), {{arg::input_ids, ids_of({prompt})}}, config).sequences).at(0), expected)
        << "without a cache: " << entry["prompt"];
  }
}

TEST(TinyLM, last_logits_are_the_references) {
  const GradModeScope no_grad(false);
  for (const auto& entry : reference()) {
    const Tensor ids = ids_of({entry["prompt_ids"].get<std::vector<int64_t>>()});
    const Tensor logits = tiny()({{arg::input_ids, ids}, {arg::logits_to_keep, 1}})["logits"].select(1, 0).select(0, 0);
    const auto [values, indices] = topk(logits, 5);
    for (int64_t i = 0; i < 5; ++i) {
      const auto& expected = entry["last_logits_top5"][static_cast<size_t>(i)];
      EXPECT_EQ(indices.select(0, i).item_as<int64_t>(), expected[0].get<int64_t>());
      EXPECT_NEAR(values.select(0, i).item_as<float>(), expected[1].get<double>(), 1e-4);  // four digits are written
    }
  }
}

TEST(TinyLM, a_text_streams_as_it_is_decoded) {
  const Tokenizer tokenizer = Tokenizer::from_file(tiny_lm);
  for (const auto& entry : reference()) {
    std::string text;
    TextStreamer streamer(tokenizer, [&](std::string_view part) { text += part; });
    const Tensor ids = ids_of({tokenizer.encode_ids(entry["prompt"].get<std::string>())});
    generate(tiny(), {{arg::input_ids, ids}}, settings(R"({"max_new_tokens": 48, "eos_token_id": 0})"),
             {.streamer = &streamer});
    EXPECT_EQ(text, entry["greedy_text"].get<std::string>());
  }
}

TEST(ModelGenerate, prompts_of_several_lengths_go_on_as_each_alone) {
  const std::vector<std::vector<int64_t>> prompts = {{2799, 560, 268, 260, 530, 462}, {35, 475, 483}, {45}};
  const GenerationConfig config = settings(R"({"max_new_tokens": 12, "eos_token_id": 0, "pad_token_id": 4095})");
  std::vector<std::vector<int64_t>> padded = prompts, masks;
  for (auto& row : padded) {
    masks.emplace_back(6 - row.size(), 0);
    masks.back().resize(6, 1);
    row.insert(row.begin(), 6 - row.size(), 4095);
  }
  // The mask as given, and made from the padding.
  const auto given =
      rows_of(generate(tiny(), {{arg::input_ids, ids_of(padded)}, {arg::attention_mask, ids_of(masks)}}, config).sequences);
  EXPECT_EQ(rows_of(generate(tiny(), {{arg::input_ids, ids_of(padded)}}, config).sequences), given);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto alone = rows_of(generate(tiny(), {{arg::input_ids, ids_of({prompts[i]})}}, config).sequences).at(0);
    EXPECT_EQ(std::vector(given[i].end() - 12, given[i].end()), std::vector(alone.end() - 12, alone.end()));
  }
}

TEST(ModelGenerate, H212_hidden_states_and_attentions_come_by_step) {
  const ModelGenerateOutput out = generate(tiny(), {{arg::input_ids, ids_of({{2799, 560, 268}})}},
                                           settings(R"({"max_new_tokens": 4, "return_dict_in_generate": true,
      "output_hidden_states": true, "output_attentions": true, "output_scores": true, "output_logits": true})"));
  ASSERT_THAT(out.hidden_states, SizeIs(4));
  ASSERT_THAT(out.attentions, SizeIs(4));
  EXPECT_THAT(out.scores, SizeIs(4));
  EXPECT_THAT(out.hidden_states[0], SizeIs(7));
  EXPECT_EQ(str(out.hidden_states[0][0].sizes()), "[1, 3, 192]");
  EXPECT_EQ(str(out.hidden_states[3][6].sizes()), "[1, 1, 192]");
  EXPECT_EQ(str(out.attentions[3][5].sizes()), "[1, 6, 1, 6]");
  EXPECT_EQ(out.past_key_values.length().as_int(), 6) << "of every token but the last";
}

TEST(ModelGenerate, H244_a_cache_goes_on_where_it_ended) {
  const std::string details = R"("return_dict_in_generate": true, "output_logits": true})";
  const Tensor prompt = ids_of({{2799, 560, 268}, {35, 475, 483}});
  const ModelGenerateOutput whole =
      generate(tiny(), {{arg::input_ids, prompt}}, settings(R"({"max_new_tokens": 4, )" + details));
  const ModelGenerateOutput first =
      generate(tiny(), {{arg::input_ids, prompt}}, settings(R"({"max_new_tokens": 3, )" + details));
  ASSERT_THAT(first.past_key_values.layers, SizeIs(6));
  const LayerCache& layer = first.past_key_values.layers[5];
  EXPECT_EQ(str(layer.key.sizes()), "[2, 2, 5, 32]") << "batch, heads, length, head size";
  EXPECT_FALSE(layer.cross_key.defined());
  const ModelGenerateOutput rest =
      generate(tiny(), {{arg::input_ids, first.sequences}, {arg::past_key_values, first.past_key_values}},
               settings(R"({"max_new_tokens": 1, )" + details));
  EXPECT_EQ(rows_of(rest.sequences), rows_of(whole.sequences));
  EXPECT_LE((rest.logits.at(0) - whole.logits.at(3)).abs().max().item_as<float>(), 1e-5f);
  EXPECT_THAT(error_of([&] {
                generate(tiny(), {{arg::input_ids, prompt}, {arg::past_key_values, rest.past_key_values}},
                         settings(R"({"max_new_tokens": 1})"));
              }),
              HasSubstr("6 ids are in the cache already, of a prompt of 3"));
}

TEST(ModelGenerate, H244_padding_on_the_left_changes_nothing) {
  const GradModeScope no_grad(false);
  const std::vector<int64_t> prompt = {2799, 560, 268, 260, 530, 462};
  std::vector<int64_t> padded(32, 4095), mask(32, 0);
  padded.insert(padded.end(), prompt.begin(), prompt.end());
  mask.resize(padded.size(), 1);
  const GenerationConfig config =
      settings(R"({"max_new_tokens": 2, "return_dict_in_generate": true, "output_logits": true})");
  const auto plain = generate(tiny(), {{arg::input_ids, ids_of({prompt})}}, config);
  const auto shifted = generate(tiny(), {{arg::input_ids, ids_of({padded})}, {arg::attention_mask, ids_of({mask})}}, config);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(allclose(plain.logits[i], shifted.logits[i], 1e-5, 1e-5));
}

TEST(ModelGenerate, H231_a_class_without_a_head_names_those_with_one) {
  LoadOptions options;
  options.model_class = "LlamaModel";
  const auto model = from_pretrained(tiny_lm, options);
  EXPECT_THAT(error_of([&] {
                generate(*model, {{arg::input_ids, ids_of({{1}})}}, settings(R"({"max_new_tokens": 1})"));
              }),
              HasSubstr("LlamaModel has no language modelling head; of this architecture there is LlamaForCausalLM"));
}

TEST(ModelGenerate, H228_without_a_prompt_it_begins_with_bos) {
  EXPECT_THAT(rows_of(generate(tiny(), {}, settings(R"({"max_new_tokens": 23, "bos_token_id": 0})")).sequences),
              ElementsAre(SizeIs(24)));
}

TEST(ModelGenerate, H229_an_encoder_decoder_begins_with_its_start_token) {
  const auto model = from_config(Config::from_json(
      R"({"model_type": "bart", "architectures": ["BartForConditionalGeneration"], "vocab_size": 40, "d_model": 16,
    "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8,
    "max_position_embeddings": 64, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2})"));
  model->eval();
  const Tensor source = ids_of({std::vector<int64_t>(29, 7)});
  const GenerationConfig config = settings(R"({"max_new_tokens": 3, "decoder_start_token_id": 2, "pad_token_id": 1})");
  EXPECT_EQ(rows_of(generate(*model, {{arg::input_ids, source}}, config).sequences).at(0).size(), 4u);
  const auto longer = rows_of(generate(*model,
                                       {{arg::input_ids, source},
                                        {arg::decoder_input_ids, source},
                                        {arg::decoder_attention_mask, ones_like(source)}},
                                       config)
                                  .sequences)
                          .at(0);
  EXPECT_EQ(longer.size(), 33u);
  EXPECT_EQ(longer[0], 2) << "the start token is put before them";
}

// torch.manual_seed(seed); model.generate(ids of the first prompt, do_sample=True, max_new_tokens=12, ...), transformers 5.22.
TEST(TinyLM, sampling_draws_what_transformers_draws) {
  struct Case {
    uint64_t seed;
    const char* settings;
    std::vector<int64_t> expected;
  };
  const Case cases[] = {
#include "generate/tiny_lm_samples.inc"
  };
  for (const Case& c : cases) {
    Generator generator(c.seed);
    GenerationConfig config = settings(c.settings);
    config.do_sample = true;
    config.max_new_tokens = 12;
    const auto rows = rows_of(
        generate(tiny(), {{arg::input_ids, ids_of({{2799, 560, 268, 260, 530, 462}})}}, config, {.generator = &generator})
            .sequences);
    EXPECT_EQ(std::vector(rows[0].begin() + 6, rows[0].end()), c.expected) << c.settings;
  }
}

// ---- embeddings in the place of ids --------------------------------------------------------------------------------

const std::vector<std::vector<int64_t>> embedded_ids = {{2799, 560, 268, 260, 530, 462}, {0, 0, 35, 475, 483, 268}};

// What no ids have, so that ids in their place would give another text.
Tensor tiny_embeds() {
  const GradModeScope no_grad(false);
  return embedding(*get_input_embeddings(tiny()).weight, ids_of(embedded_ids)) * 0.9;
}

ModelInputs embedded_inputs(const std::string& beside) {
  ModelInputs in;
  in.set(arg::inputs_embeds, tiny_embeds());
  in.set(arg::attention_mask, ids_of({{1, 1, 1, 1, 1, 1}, {0, 0, 1, 1, 1, 1}}));
  if (beside == "begin") in.set(arg::input_ids, ids_of({{45, 47}, {35, 475}}));
  if (beside == "all") in.set(arg::input_ids, ids_of(embedded_ids));
  return in;
}

TEST(InputsEmbeds, the_text_is_what_transformers_makes_of_them) {
  struct Case {
    const char* beside;  // which input_ids are given too
    uint64_t seed;
    const char* settings;
    std::vector<std::vector<int64_t>> expected;
  };
  const Case cases[] = {
#include "generate/tiny_lm_embeds.inc"
  };
  for (const Case& c : cases) {
    Generator generator(c.seed);
    GenerationConfig config = settings(c.settings);
    config.pad_token_id = 0;
    EXPECT_EQ(rows_of(generate(tiny(), embedded_inputs(c.beside), config, {.generator = &generator}).sequences), c.expected)
        << c.beside << " " << c.settings;
    config.use_cache = false;  // transformers takes a cache all the same
    Generator again(c.seed);
    EXPECT_EQ(rows_of(generate(tiny(), embedded_inputs(c.beside), config, {.generator = &again}).sequences), c.expected);
  }
}

TEST(InputsEmbeds, of_ids_give_the_text_of_the_ids) {
  const Tensor ids = ids_of({embedded_ids[0]});
  const Tensor embeds = embedding(*get_input_embeddings(tiny()).weight, ids);
  const GenerationConfig config = settings(R"({"max_new_tokens": 20, "return_dict_in_generate": true,
      "output_hidden_states": true, "output_attentions": true})");
  const ModelGenerateOutput of_ids = generate(tiny(), {{arg::input_ids, ids}}, config);
  const ModelGenerateOutput alone = generate(tiny(), {{arg::inputs_embeds, embeds}}, config);
  const std::vector<int64_t> whole = rows_of(of_ids.sequences).at(0);
  EXPECT_EQ(rows_of(alone.sequences).at(0), std::vector(whole.begin() + 6, whole.end()));
  EXPECT_EQ(rows_of(generate(tiny(), {{arg::input_ids, ids}, {arg::inputs_embeds, embeds}}, config).sequences).at(0), whole);
  EXPECT_EQ(alone.past_key_values.length().as_int(), of_ids.past_key_values.length().as_int());
  ASSERT_EQ(alone.hidden_states.size(), of_ids.hidden_states.size());
  ASSERT_EQ(alone.attentions.size(), of_ids.attentions.size());
  EXPECT_TRUE(allclose(alone.hidden_states.at(19).at(6), of_ids.hidden_states.at(19).at(6), 1e-5, 1e-5));
  // Candidates from the text so far change nothing.
  for (const Tensor& beside : {Tensor(), ids}) {
    GenerationConfig lookup = settings(R"({"max_new_tokens": 20, "prompt_lookup_num_tokens": 3})");
    const auto rows =
        rows_of(generate(tiny(), {{arg::input_ids, beside}, {arg::inputs_embeds, embeds}}, lookup).sequences).at(0);
    EXPECT_EQ(std::vector(rows.end() - 20, rows.end()), std::vector(whole.end() - 20, whole.end()));
  }
}

TEST(InputsEmbeds, go_on_from_a_cache_that_holds_the_first_of_them) {
  const Tensor embeds = tiny_embeds().narrow(0, 0, 1);
  const ModelGenerateOutput first = generate(tiny(), {{arg::inputs_embeds, embeds}},
                                             settings(R"({"max_new_tokens": 3, "return_dict_in_generate": true})"));
  const Tensor longer = cat({embeds, embedding(*get_input_embeddings(tiny()).weight, first.sequences)}, 1);
  const auto rest = generate(tiny(), {{arg::inputs_embeds, longer}, {arg::past_key_values, first.past_key_values}},
                             settings(R"({"max_new_tokens": 3})"));
  const auto whole = generate(tiny(), {{arg::inputs_embeds, embeds}}, settings(R"({"max_new_tokens": 6})"));
  EXPECT_EQ(rows_of(cat({first.sequences, rest.sequences}, 1)), rows_of(whole.sequences));
}

TEST(InputsEmbeds, are_read_by_the_encoder_of_an_encoder_decoder) {
  const auto model = from_config(Config::from_json(
      R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "vocab_size": 40, "d_model": 16, "d_kv": 8,
    "d_ff": 24, "num_layers": 1, "num_heads": 2, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0})"));
  model->eval();
  const Tensor ids = ids_of({{7, 9, 11}, {12, 13, 14}});
  const Tensor embeds = embedding(*get_input_embeddings(*model).weight, ids);
  for (const char* text : {R"({"max_new_tokens": 5, "decoder_start_token_id": 0})",
                           R"({"max_length": 5, "num_beams": 2, "decoder_start_token_id": 0})"})
    EXPECT_EQ(rows_of(generate(*model, {{arg::inputs_embeds, embeds}}, settings(text)).sequences),
              rows_of(generate(*model, {{arg::input_ids, ids}}, settings(text)).sequences));
  EXPECT_EQ(error_of([&] {
              generate(*model, {{arg::input_ids, ids}, {arg::inputs_embeds, embeds}},
                       settings(R"({"decoder_start_token_id": 0})"));
            }),
            "generate: both input_ids and inputs_embeds were given for the encoder of T5ForConditionalGeneration; give one "
            "of them");
}

TEST(InputsEmbeds, that_do_not_fit_are_errors) {
  const auto error = [](ModelInputs in, const char* text = R"({"max_new_tokens": 3})") {
    return error_of([&] { generate(tiny(), in, settings(text)); });
  };
  const Tensor embeds = tiny_embeds();
  EXPECT_EQ(error({{arg::inputs_embeds, embeds.select(0, 0)}}),
            "generate: inputs_embeds have to be [batch, length, 192], found [6, 192]");
  EXPECT_EQ(error({{arg::inputs_embeds, embeds.narrow(2, 0, 5)}}),
            "generate: inputs_embeds have to be [batch, length, 192], found [2, 6, 5]");
  EXPECT_EQ(error({{arg::inputs_embeds, embeds.narrow(1, 0, 0)}}),
            "generate: inputs_embeds have to have at least one position, found [2, 0, 192]");
  EXPECT_EQ(error({{arg::inputs_embeds, ids_of({{1}})}}),
            "generate: inputs_embeds have to be [batch, length, 192], found [1, 1]");
  EXPECT_EQ(error({{arg::input_ids, ids_of({{1}})}, {arg::inputs_embeds, embeds}}),
            "generate: input_ids and inputs_embeds have to have as many rows, found 1 and 2");
  EXPECT_EQ(error({{arg::attention_mask, ids_of({{1}, {1}})}, {arg::inputs_embeds, embeds}}),
            "generate: attention_mask has to be as large as the prompt, [2, 6], but is [2, 1]");
  EXPECT_THAT(error({{arg::inputs_embeds, embeds}}, R"({"max_length": 5})"),
              HasSubstr("Input length of inputs_embeds is 6, but `max_length` is set to 5"));
  GenerateOptions options;
  options.assistant = &tiny();
  EXPECT_THAT(
      error_of([&] {
        generate(tiny(), {{arg::inputs_embeds, embeds.narrow(0, 0, 1)}}, settings(R"({"max_new_tokens": 3})"), options);
      }),
      HasSubstr("an assistant reads input_ids, found inputs_embeds"));
}

TEST(InputsEmbeds, what_looks_at_the_prompts_ids_is_warned_of) {
  const auto warnings = generate_test::warnings_of([] {
    generate(tiny(), embedded_inputs("none"),
             settings(R"({"max_new_tokens": 2, "repetition_penalty": 1.2, "no_repeat_ngram_size": 2, "pad_token_id": 0})"));
  });
  EXPECT_THAT(warnings, testing::Contains(HasSubstr("`repetition_penalty`")));
  EXPECT_THAT(warnings, testing::Contains(HasSubstr("`no_repeat_ngram_size`")));
}

// transformers takes the prompt of a model without an encoder for what encoder penalties look at.
TEST(ModelGenerate, encoder_penalties_look_at_the_prompt_where_there_is_no_encoder) {
  const Tensor ids = ids_of({{2799, 560, 268, 260, 530, 462}});
  const auto plain = rows_of(generate(tiny(), {{arg::input_ids, ids}}, settings(R"({"max_new_tokens": 12})")).sequences);
  const auto never = rows_of(
      generate(tiny(), {{arg::input_ids, ids}}, settings(R"({"max_new_tokens": 12, "encoder_no_repeat_ngram_size": 1})"))
          .sequences);
  EXPECT_NE(plain, never);
  for (size_t i = 6; i < never[0].size(); ++i)
    EXPECT_EQ(std::count(embedded_ids[0].begin(), embedded_ids[0].end(), never[0][i]), 0);
}

// ---- the largest logit alone ------------------------------------------------------------------------------------------

std::shared_ptr<PretrainedModel> wide_gpt2(uint64_t seed = 11) {
  manual_seed(seed);
  const auto model = from_config(Config::from_json(
      R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 9000, "n_embd": 96, "n_layer": 2,
    "n_head": 4, "n_positions": 128, "initializer_range": 0.2})"));
  model->eval();
  return model;
}

TEST(BestLogit, greedy_text_is_that_of_all_logits) {
  const auto model = wide_gpt2();
  for (const auto& prompts : std::vector<std::vector<std::vector<int64_t>>>{{{5}}, {{1, 2, 3}, {7, 8, 9}}, {{8999, 0, 4}}}) {
    const std::string text = R"({"max_new_tokens": 40, "return_dict_in_generate": true)";
    const auto best = generate(*model, {{arg::input_ids, ids_of(prompts)}}, settings(text + "}"));
    const auto all = generate(*model, {{arg::input_ids, ids_of(prompts)}}, settings(text + R"(, "output_logits": true})"));
    ASSERT_EQ(all.logits.size(), 40U);
    EXPECT_EQ(rows_of(best.sequences), rows_of(all.sequences));
  }
}

TEST(BestLogit, is_of_the_whole_product_and_others_are_left_out) {
  const GradModeScope no_grad(false);
  const auto model = wide_gpt2();
  const Child<Linear>& head = *model->output_embeddings();
  BestLogit best;
  for (int i = 0; i < 20; ++i) {
    const Tensor hidden = randn({2, 1, 96});
    const Tensor all = head(hidden), alone = best(head, hidden);
    EXPECT_TRUE(alone.argmax(-1).equal(all.argmax(-1))) << i;
    EXPECT_TRUE(alone.amax({-1}).allclose(all.amax({-1}), 1e-5, 1e-6)) << i;
    EXPECT_EQ(alone.equal(all), i < 3) << i;  // short texts are not worth the copy
  }
  // Other weights are noticed.
  const Tensor state = randn({1, 1, 96});
  const auto second = wide_gpt2(12);
  const Child<Linear>& other = *second->output_embeddings();
  EXPECT_TRUE(best(other, state).argmax(-1).equal(other(state).argmax(-1)));
  head->weight->neg_();
  EXPECT_TRUE(best(head, state).argmax(-1).equal(head(state).argmax(-1)));
  // Many positions, other dtypes and heads that somebody watches are left alone.
  for (const Tensor& hidden : {randn({1, 20, 96}), randn({5, 1, 96})}) EXPECT_TRUE(best(head, hidden).equal(head(hidden)));
  const HookHandle handle = head->register_forward_hook(
      [](Module&, const Values&, const Kwargs&, const Value& result) { return std::optional(result); });
  const Tensor hidden = randn({1, 1, 96});
  EXPECT_TRUE(best(head, hidden).equal(head(hidden)));
}

TEST(BestLogit, is_not_asked_for_where_logits_are_looked_at) {
  std::vector<bool> asked;
  const NextLogits next = [&](const GenerationStep& step) {
    asked.push_back(step.best_alone);
    return ones({step.input_ids.size(0), 10});
  };
  const auto asks = [&](const std::string& text) {
    asked.clear();
    generate(next, ids_of({{1, 2}}), settings(text));
    return asked.at(0);
  };
  EXPECT_TRUE(asks(R"({"max_new_tokens": 1})"));
  EXPECT_TRUE(asks(R"({"max_new_tokens": 1, "return_dict_in_generate": true})"));
  for (const char* text : {R"("do_sample": true)", R"("num_beams": 2)", R"("repetition_penalty": 1.1)",
                           R"("return_dict_in_generate": true, "output_scores": true)",
                           R"("return_dict_in_generate": true, "output_logits": true)"})
    EXPECT_FALSE(asks(R"({"max_new_tokens": 1, )" + std::string(text) + "}")) << text;
}

}  // namespace
}  // namespace calque::model_generate_test
