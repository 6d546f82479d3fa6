// Models of pictures, and of texts with pictures: files of either generation of transformers, a part's class with the whole's
// folder, and what is said of inputs and configurations that do not fit.
#include <gmock/gmock.h>

#include "calque/file/safetensors.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/registry.h"
#include "calque/hub/save_pretrained.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/operators.h"
#include "hub/hub_support.h"
#include "support/paths.h"

namespace calque::vision_test {
namespace {

using namespace hub_test;
using testing::HasSubstr;

std::filesystem::path folder_of(const std::string& name) {
  return std::filesystem::path(test::source_folder()) / "tests/zoo/golden" / name;
}

std::shared_ptr<PretrainedModel> open(const std::string& name, const std::string& model_class = "") {
  LoadOptions options;
  options.model_class = model_class;
  return from_pretrained(folder_of(name), options);
}

// The weights of a folder under other names.
LoadedModel load_renamed(const std::string& name, const std::string& from, const std::string& to) {
  const SafetensorsFile file = SafetensorsFile::open((folder_of(name) / "model.safetensors").string());
  NamedTensors tensors;
  for (auto [key, tensor] : file.tensors()) {
    if (const size_t at = key.find(from); at != std::string::npos) key.replace(at, from.size(), to);
    tensors.emplace_back(key, tensor);
  }
  return load_pretrained(Config::from_file(folder_of(name)), StateDict(std::move(tensors)));
}

TEST(VisionFiles, a_part_opens_from_the_folder_of_the_whole) {
  for (const char* whole : {"clip", "siglip", "altclip"}) {
    const auto model = open(whole);
    const std::string text = std::string(whole) + "_text_model", vision = std::string(whole) + "_vision_model";
    for (const std::string& part : {text, vision}) {
      const std::string name = model_registry().find(part)->classes.front().name;
      const auto alone = open(whole, name);
      EXPECT_EQ(alone->config().model_type(), part);
      Module& same = model->get_submodule(part == text ? "text_model" : "vision_model");
      EXPECT_EQ(difference(same, *alone), "") << name;
    }
  }
}

TEST(VisionFiles, names_of_either_generation_are_read) {
  // transformers 4 wrote a part's file with the whole's prefix.
  LoadOptions part;
  part.model_class = "CLIPTextModel";
  EXPECT_TRUE(load_pretrained(folder_of("clip_text_model"), part).report.missing_keys.empty());
  // AltCLIP's layers are written either way.
  struct Renamed {
    const char *folder, *from, *to;
  };
  for (const auto& [name, from, to] : {Renamed{"altclip", "roberta.encoder.layer.", "roberta.encoder.layers."},
                                       {"altclip", "vision_model.encoder.layer.", "vision_model.encoder.layers."}}) {
    const LoadedModel loaded = load_renamed(name, from, to);
    EXPECT_TRUE(loaded.report.missing_keys.empty()) << name;
    EXPECT_TRUE(loaded.report.unexpected_keys.empty()) << name;
    EXPECT_EQ(difference(*open(name), *loaded.model), "") << name;
  }
}

TEST(VisionFiles, a_second_description_of_a_part_counts) {
  const Config config = Config::from_json(
      R"({"model_type": "clip", "text_config": {"hidden_size": 64, "num_attention_heads": 4},
          "text_config_dict": {"hidden_size": 32}, "vision_config_dict": null})");
  EXPECT_EQ(config.nested("text_config").integer("hidden_size"), 32);
  EXPECT_EQ(config.nested("text_config").integer("num_attention_heads"), 8);  // its default
  EXPECT_FALSE(config.find("text_config_dict"));
}

TEST(Pictures, of_another_size_or_form_are_refused_in_words) {
  const auto model = open("vit");
  const auto refusal = [&](std::vector<SymInt> sizes, bool interpolate = false) {
    return error_of([&] {
      ModelInputs in;
      in.set("pixel_values", ones(sizes));
      if (interpolate) in.set("interpolate_pos_encoding", true);
      (*model)(in);
    });
  };
  EXPECT_THAT(refusal({1, 3, 18, 12}), HasSubstr("Input image size (18*12) doesn't match model (12*12)"));
  EXPECT_EQ(refusal({1, 3, 18, 18}, true), "");
  EXPECT_THAT(refusal({1, 1, 12, 12}), HasSubstr("Expected 3 but got 1"));
  EXPECT_THAT(refusal({3, 12, 12}), HasSubstr("pixel_values has 3 dimensions, expected [batch, channels, height, width]"));
  EXPECT_THAT(error_of([&] { (*model)({}); }), HasSubstr("You have to specify pixel_values"));
}

TEST(Pictures, stages_that_there_are_not_are_refused) {
  const auto refusal = [](const char* more) {
    return error_of([&] {
      Config::from_json(std::string(R"({"model_type": "resnet", "depths": [1, 1], "hidden_sizes": [4, 8])") + more + "}");
    });
  };
  EXPECT_EQ(refusal(R"(, "out_features": ["stem", "stage2"])"), "");
  EXPECT_EQ(refusal(R"(, "out_indices": [0, -1])"), "");
  EXPECT_THAT(refusal(R"(, "out_features": ["stage3"])"),
              HasSubstr(R"(expected names of stages: "stem", "stage1" to "stage2")"));
  EXPECT_THAT(refusal(R"(, "out_features": ["stage2", "stage1"])"), HasSubstr("expected stages in their order, each once"));
  EXPECT_THAT(refusal(R"(, "out_indices": [3])"), HasSubstr("expected numbers of stages, from 0 to 2"));
  EXPECT_THAT(refusal(R"(, "out_indices": [1], "out_features": ["stage2"])"),
              HasSubstr("expected the stages of out_features"));
  EXPECT_THAT(refusal(R"(, "depths": [])"), HasSubstr("expected one number or more"));
  EXPECT_THAT(refusal(R"(, "layer_type": "other")"), HasSubstr("expected basic or bottleneck"));
}

TEST(Pictures, a_patch_is_no_larger_than_the_picture) {
  EXPECT_THAT(error_of([] {
                from_config(Config::from_json(
                    R"({"model_type": "vit", "image_size": 16, "patch_size": 32, "architectures": ["ViTModel"]})"));
              }),
              HasSubstr("\"patch_size\" is 32, expected at most image_size, which is 16"));
}

// A branch is dropped for whole samples, and what stays is as much larger.
TEST(Pictures, layers_are_dropped_in_training_only) {
  Config config = Config::from_file(folder_of("convnext"));
  config.set("drop_path_rate", 0.5);
  const auto model = from_config(config, {.model_class = "ConvNextModel"});
  const ModelInputs in = model->example_inputs({.batch = 4});
  const GradModeScope no_grad(false);
  model->eval();
  const Tensor calm = (*model)(in).pooler_output();
  EXPECT_TRUE(equal((*model)(in).pooler_output(), calm));
  model->train();
  EXPECT_FALSE(equal((*model)(in).pooler_output(), (*model)(in).pooler_output()));
}

}  // namespace
}  // namespace calque::vision_test
