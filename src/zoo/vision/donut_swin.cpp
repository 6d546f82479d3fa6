// Donut's encoder of pages: Swin as it was, without a norm behind the last stage.
#include "calque/hub/registry.h"
#include "zoo/blocks/swin_layers.h"
#include "zoo/heads/vision_heads.h"

namespace calque::donut_swin {

namespace {

constexpr SwinStyle donut_style{.family = "transformers.models.donut.modeling_donut_swin.DonutSwin",
                                .base = "donut",
                                .extra_position = true,
                                .saved_index = true,
                                .softmax_in_float32 = false,
                                .checkpoints_layers = false};

struct DonutSwinModel : ModelOf<DonutSwinModel, SwinPictures> {
  static constexpr const char* torch_type = "transformers.models.donut.modeling_donut_swin.DonutSwinModel";
  static constexpr auto& forward_arguments = swin_arguments;
  explicit DonutSwinModel(const Config& c, bool = true) : ModelOf(donut_style, c, false) {}
  ModelOutput forward(const ModelInputs& in) override {
    const SwinResult result = encoded(in);
    return swin_output(result, result.last_hidden_state);
  }
  bool supports_sdpa() const override { return false; }
};

constexpr HeadFamily donut_heads{donut_style.family, "donut", made_model<DonutSwinModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "donut-swin",
      .config_class = "DonutSwinConfig",
      .attribute_map = swin_attributes(),
      .defaults = swin_defaults(),
      .schema = swin_schema(),
      .complete = complete_swin_sizes,
      .classes = {model_class<DonutSwinModel>("DonutSwinModel", {"default"}),
                  head_class<SwinImageClassification>({"image-classification"}, {&donut_heads, "ForImageClassification"})},
  });
}

}  // namespace calque::donut_swin
