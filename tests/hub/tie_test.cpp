// Tying by hand: rows of area tie that loading does not show.
#include <gmock/gmock.h>

#include "calque/hub/tie_weights.h"
#include "calque/nn/container.h"
#include "calque/nn/normalization.h"
#include "calque/op/operators.h"
#include "hub/load_support.h"

namespace calque::load_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(TieWeights, H089_an_output_layer_takes_the_embeddings) {
  const Embedding embedding(7, 3);
  Linear output(3, 5);
  const Tensor bias = output.bias->detach().clone();
  tie_or_clone_weights(output, embedding);
  EXPECT_TRUE((*output.weight).is_same(*embedding.weight));
  EXPECT_EQ(output.out_features, 7);
  ASSERT_EQ(output.bias->numel(), 7);
  EXPECT_TRUE(same(output.bias->detach().slice(0, 0, 5), bias));
  EXPECT_EQ(output.bias->detach().slice(0, 5).abs().max().item_as<double>(), 0);
  EXPECT_TRUE(output.bias->requires_grad());

  Linear copied(3, 7, false);
  tie_or_clone_weights(copied, embedding, true);
  EXPECT_FALSE((*copied.weight).is_same(*embedding.weight));
  EXPECT_TRUE(same(copied.weight->detach(), embedding.weight->detach()));
}

struct Block : Module {
  explicit Block(bool with_bias = true) {
    register_module("attention", std::make_shared<Linear>(3, 3, with_bias));
    register_module("norm", std::make_shared<LayerNorm>(std::vector<int64_t>{3}));
  }
};
struct CrossBlock : Module {
  CrossBlock() { register_module("cross", std::make_shared<Linear>(3, 3)); }
};

TEST(TieWeights, H090_an_encoder_takes_the_decoders_weights) {
  Module encoder, decoder;
  const auto encoder_layers = std::make_shared<Module>(), decoder_layers = std::make_shared<Module>();
  encoder.register_module("layers", encoder_layers);
  decoder.register_module("layers", decoder_layers);
  encoder_layers->register_module("0", std::make_shared<Block>());
  encoder_layers->register_module("1", std::make_shared<Block>());
  decoder_layers->register_module("0", std::make_shared<Block>());
  decoder_layers->register_module("1", std::make_shared<CrossBlock>());
  decoder_layers->register_module("2", std::make_shared<Block>());
  decoder.register_module("only_here", std::make_shared<Linear>(2, 2));
  const Warnings warnings;
  EXPECT_THAT(tie_encoder_decoder_weights(encoder, decoder, "encoder"), IsEmpty());
  EXPECT_THAT(warnings.all(), IsEmpty());
  for (const char* name : {"attention.weight", "attention.bias", "norm.weight", "norm.bias"}) {
    EXPECT_TRUE(encoder.get_parameter("layers.0." + std::string(name))
                    .is_same(decoder.get_parameter("layers.0." + std::string(name))))
        << name;
    EXPECT_TRUE(encoder.get_parameter("layers.1." + std::string(name))
                    .is_same(decoder.get_parameter("layers.2." + std::string(name))))
        << name;
  }
  encoder.register_module("pooler", std::make_shared<Linear>(2, 2));
  EXPECT_THAT(tie_encoder_decoder_weights(encoder, decoder, "encoder"), ElementsAre("encoder/pooler"));
  EXPECT_TRUE(warnings.any("not tied to the decoder: encoder/pooler"));

  Module bare;
  bare.register_module("only_here", std::make_shared<Module>());
  EXPECT_THAT(error_of([&] { tie_encoder_decoder_weights(bare, decoder, "encoder"); }), HasSubstr("the encoder has none"));
}

// transformers 5 has no such tie, and its models are silent about it.
TEST(TieWeights, a_configuration_that_ties_encoder_and_decoder_is_warned_of) {
  const auto json = [](const char* tie) {
    return R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "vocab_size": 20, "d_model": 8, "d_kv": 4,
      "d_ff": 8, "num_layers": 1, "num_heads": 2, "tie_encoder_decoder": )" +
           std::string(tie) + "}";
  };
  {
    const Warnings warnings;
    from_config(Config::from_json(json("false")));
    EXPECT_FALSE(warnings.any("tie_encoder_decoder"));
  }
  const Warnings warnings;
  const auto model = from_config(Config::from_json(json("true")));
  EXPECT_TRUE(warnings.any("sets `tie_encoder_decoder`, which transformers 5 no longer follows"));
  EXPECT_EQ(warnings.all().size(), 1U) << "once, not once for each part of the model";
  const std::string query = ".block.0.layer.0.SelfAttention.q.weight";
  EXPECT_FALSE(model->get_parameter("encoder" + query).is_same(model->get_parameter("decoder" + query)));
}

TEST(TieWeights, H090_trees_that_are_too_deep) {
  const auto chain = [] {
    auto top = std::make_shared<Module>();
    Module* at = top.get();
    for (int i = 0; i < 600; ++i) {
      auto next = std::make_shared<Module>();
      at->register_module("next", next);
      at = next.get();
    }
    return top;
  };
  EXPECT_THAT(error_of([&] { tie_encoder_decoder_weights(*chain(), *chain(), "encoder"); }),
              HasSubstr("nested deeper than 500"));
}

}  // namespace
}  // namespace calque::load_test
