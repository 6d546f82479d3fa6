// The training loop on tiny-lm: it learns, it accumulates, it goes on from checkpoints with the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "calque/hub/from_pretrained.h"
#include "calque/train/trainer.h"
#include "support/error_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::trainer_test {
namespace {

std::string tiny_lm() { return test::source_folder() + "/assets/tiny-lm"; }

using testing::HasSubstr;

// All that a run of training needs. With dropout: its random numbers go on too.
struct TrainingRun {
  explicit TrainingRun(TrainOptions options = {.batch_size = 2}, const std::string& schedule_name = "cosine") {
    LoadOptions load;
    load.dtype = DType::float32;
    load.config_updates = {{"attention_dropout", 0.2}};
    load.attention = "eager";
    model = from_pretrained(tiny_lm(), load);
    make_trainable(*model);
    const Tokenizer tokenizer = Tokenizer::from_file(tiny_lm());
    const std::vector<TrainText> texts{{"The people of the river went north.", {}, {}},
                                       {"A calque is a tracing on thin paper.", {}, {}},
                                       {"Short.", {}, {}},
                                       {"What is written twice is learnt, what is written twice is learnt.", {}, {}},
                                       {"Numbers: one two three four five six.", {}, {}}};
    data.emplace(*model, tokenizer, texts, TrainTask::causal_lm);
    optimizer = std::make_unique<AdamW>(trainable_groups(*model, 0.01), AdamWOptions{.lr = 1e-3});
    schedule = get_scheduler(schedule_name, *optimizer, 2, 12);
    trainer.emplace(*model, *data, *optimizer, *schedule, options);
  }
  std::vector<double> steps(int count) {
    std::vector<double> out;
    for (int i = 0; i < count; ++i) out.push_back(trainer->step().loss);
    return out;
  }
  // All parameters' bytes.
  std::string bytes() const {
    std::string out;
    for (const auto& [name, p] : model->named_parameters()) {
      const Tensor t = p.detach().clone(MemoryFormat::contiguous);
      out.append(static_cast<const char*>(t.data()), t.nbytes());
    }
    return out;
  }

  std::shared_ptr<PretrainedModel> model;
  std::optional<TrainData> data;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<LRScheduler> schedule;
  std::optional<Trainer> trainer;
};

TEST(Training, the_loss_falls) {
  TrainingRun run;
  const std::vector<double> losses = run.steps(10);
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_EQ(run.trainer->steps_done(), 10);
}

TEST(Training, goes_on_from_a_checkpoint_with_the_same_bits) {
  const test::TemporaryFolder folder;
  TrainingRun whole;
  std::vector<double> expected = whole.steps(7);

  TrainingRun first;
  std::vector<double> losses = first.steps(4);  // in the middle of the second epoch
  first.trainer->save(folder / "checkpoint-4");
  TrainingRun second;
  second.steps(2);  // what was before a load does not matter
  second.trainer->load(folder / "checkpoint-4");
  EXPECT_EQ(second.trainer->steps_done(), 4);
  for (const double loss : second.steps(3)) losses.push_back(loss);
  EXPECT_EQ(losses, expected);
  EXPECT_TRUE(whole.bytes() == second.bytes());
}

TEST(Training, a_checkpoint_is_a_model_folder) {
  const test::TemporaryFolder folder;
  TrainingRun run;
  run.steps(1);
  run.trainer->save(folder / "checkpoint-1", tiny_lm());
  EXPECT_THAT(test::names_in(folder / "checkpoint-1"),
              testing::IsSupersetOf({"config.json", "model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pt",
                                     "trainer_state.json", "tokenizer.json"}));
  EXPECT_EQ(last_checkpoint(folder.path()), folder / "checkpoint-1");
  const auto again = from_pretrained(folder / "checkpoint-1");
  EXPECT_EQ(again->class_name(), "LlamaForCausalLM");
}

TEST(Training, refuses_to_go_on_with_another_seed) {
  const test::TemporaryFolder folder;
  TrainingRun run;
  run.steps(1);
  run.trainer->save(folder / "checkpoint-1");
  TrainingRun other({.batch_size = 2, .seed = 7});
  EXPECT_THAT(test::error_of([&] { other.trainer->load(folder / "checkpoint-1"); }),
              HasSubstr("training cannot go on from here: \"seed\" was 42 and is 7 now"));
}

TEST(Training, a_step_of_several_batches_has_their_mean_loss) {
  TrainingRun one({.batch_size = 2}, "constant"), two({.batch_size = 2, .accumulate = 3}, "constant");
  const TrainStep step = two.trainer->step();
  EXPECT_EQ(step.step, 1);
  double tokens = 0;
  for (const auto& rows : one.data->epoch(2, 42, 0)) tokens += static_cast<double>(one.data->tokens(rows));
  EXPECT_EQ(static_cast<double>(step.tokens), tokens);  // an epoch is three batches
}

TEST(Training, bfloat16_autocast_keeps_float32_weights) {
  TrainingRun run({.batch_size = 2, .bfloat16 = true});
  const std::vector<double> losses = run.steps(6);
  EXPECT_LT(losses.back(), losses.front());
  for (const auto& [name, p] : run.model->named_parameters()) EXPECT_EQ(p.dtype(), DType::float32) << name;
}

TEST(Training, evaluation_changes_nothing) {
  TrainingRun plain;
  const std::vector<double> expected = plain.steps(3);
  TrainingRun evaluated;  // it seeds dropout anew
  const double before = evaluated.trainer->evaluate(*evaluated.data).loss;
  EXPECT_EQ(evaluated.steps(3), expected);
  EXPECT_LT(evaluated.trainer->evaluate(*evaluated.data).loss, before);
  EXPECT_EQ(evaluated.trainer->evaluations().size(), 2U);
}

TEST(Training, the_curve_is_a_picture_with_both_lines) {
  const std::string svg = loss_curve_svg({{1, 3.0, 1, 1, 5}, {2, 2.0, 1, 1, 5}}, {{2, 2.5}}, "a < b");
  EXPECT_THAT(svg, HasSubstr("<svg xmlns="));
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr("<circle"));
  size_t lines = 0;
  for (size_t at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1)) ++lines;
  EXPECT_EQ(lines, 2U);
}

}  // namespace
}  // namespace calque::trainer_test
