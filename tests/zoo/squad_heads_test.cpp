#include "zoo/heads/squad_heads.h"
#include "support/paths.h"

#include <gtest/gtest.h>

#include "calque/file/safetensors.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/ternary.h"
#include "support/error_support.h"
#include "zoo/blocks/chunking.h"
#include "zoo/heads/sequence_summary.h"

namespace calque::squad_heads_test {
namespace {

const SafetensorsFile& parts() {
  static const SafetensorsFile file = SafetensorsFile::open(test::source_folder() + "/tests/hub/golden/heads.safetensors");
  return file;
}
StateDict state_under(const std::string& prefix) {
  StateDict state;
  for (const std::string& name : parts().names())
    if (name.starts_with(prefix)) state.set(name.substr(prefix.size()), parts().tensor(name).clone());
  return state;
}
void expect_close(const Tensor& found, const std::string& name) {
  const Tensor expected = parts().tensor(name);
  ASSERT_EQ(str(found.sizes()), str(expected.sizes())) << name;
  EXPECT_EQ(found.dtype(), expected.dtype()) << name;
  const double scale = std::max(1.0, expected.abs().max().item().to_double());
  EXPECT_LE((found - expected).abs().max().item().to_double(), 1e-5 * scale) << name;
}
using test::error_of;

class SquadHeads : public ::testing::Test {
 protected:
  SquadHeads() : head(Config::from_json(R"({"hidden_size": 8, "layer_norm_eps": 1e-5, "start_n_top": 3, "end_n_top": 2})")) {
    head.load_state_dict(state_under("state/"));
    head.eval();
  }
  Tensor in(const char* name) { return parts().tensor(name); }
  GradModeScope no_grad{false};
  SQuADHead head;
};

TEST_F(SquadHeads, H161_start_logits) {
  expect_close((*head.start_logits)(in("hidden_states"), in("p_mask")), "start_logits");
  head.to(DType::float16);
  const Tensor half = (*head.start_logits)(in("hidden_states").to(DType::float16), in("p_mask").to(DType::float16));
  EXPECT_EQ(half.select(0, 0).select(0, 5).item().to_double(), -65504);  // -65500 as float16
}

TEST_F(SquadHeads, H162_end_logits) {
  expect_close((*head.end_logits)(in("hidden_states"), Tensor(), in("start"), in("p_mask")), "end_logits");
  EXPECT_EQ(error_of([&] { (*head.end_logits)(in("hidden_states")); }),
            "PoolerEndLogits: one of start_states, start_positions should be given");
}

TEST_F(SquadHeads, H163_answer_class) {
  expect_close((*head.answer_class)(in("hidden_states"), Tensor(), in("start"), in("cls_index")), "answer_class");
  expect_close((*head.answer_class)(in("hidden_states"), Tensor(), in("start")), "answer_class_last");
}

TEST_F(SquadHeads, H164_losses_and_beams) {
  expect_close(head(in("hidden_states"), in("start"), in("end"))["loss"], "loss");
  expect_close(head(in("hidden_states"), in("start").unsqueeze(-1), in("end").unsqueeze(-1), in("cls_index"),
                    in("impossible"), in("p_mask"))["loss"],
               "loss_with_class");
  const ModelOutput found = head(in("hidden_states"), Tensor(), Tensor(), in("cls_index"), Tensor(), in("p_mask"));
  for (const char* name : {"start_top_log_probs", "start_top_index", "end_top_log_probs", "end_top_index", "cls_logits"})
    expect_close(found[name], std::string("found/") + name);
}

TEST_F(SquadHeads, H167_summaries) {
  const char* settings[] = {
      R"({"hidden_size": 8, "summary_type": "last", "summary_use_proj": true, "summary_activation": "tanh", "summary_proj_to_labels": true, "num_labels": 3, "summary_first_dropout": 0.1})",
      R"({"hidden_size": 8, "summary_type": "first", "summary_use_proj": true, "summary_proj_to_labels": false, "num_labels": 3})",
      R"({"hidden_size": 8, "summary_type": "mean"})",
      R"({"hidden_size": 8, "summary_type": "cls_index", "summary_use_proj": true, "summary_activation": "gelu", "summary_last_dropout": 0.1})"};
  for (int i = 0; i < 4; ++i) {
    const std::string at = "summary/" + std::to_string(i) + "/";
    SequenceSummary summary(Config::from_json(settings[i]));
    summary.load_state_dict(state_under(at + "state/"));
    summary.eval();
    expect_close(summary(in("hidden_states"), Tensor()), at + "plain");
    expect_close(summary(in("hidden_states"), in("cls_index")), at + "indexed");
  }
}

TEST(Chunking, H168_pieces_side_by_side) {
  const Tensor x = arange(12, DType::float32).view({2, 6});
  int calls = 0;
  const auto twice = [&](const Tensor& a, const Tensor& b) {
    ++calls;
    return a + b;
  };
  for (const int64_t size : {0, 1, 2, 3, 6}) {
    calls = 0;
    EXPECT_TRUE(equal(apply_chunking_to_forward(twice, size, 1, x, x), x + x));
    EXPECT_EQ(calls, size == 0 ? 1 : 6 / size);
  }
  EXPECT_EQ(error_of([&] { apply_chunking_to_forward(twice, 4, 1, x, x); }),
            "The dimension to be chunked 6 has to be a multiple of the chunk size 4");
  EXPECT_EQ(error_of([&] { apply_chunking_to_forward(twice, 2, 1, x, x.slice(1, 0, 4)); }),
            "All input tensors have to be of the same shape: 6, found shape 4");
}

}  // namespace
}  // namespace calque::squad_heads_test
