// Patches of a picture, and attention between them, under the names of ViT's checkpoints ("attention.attention.query",
// "attention.output.dense"). Families that share them give the prefix of their class names.
#pragma once

#include <string>
#include <tuple>

#include "attention.h"
#include "calque/nn/convolution.h"
#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"
#include "child_if.h"
#include "family_module.h"
#include "vision.h"

namespace calque {

struct ViTPatchEmbeddings : FamilyModule<ViTPatchEmbeddings> {
  static constexpr const char* part = "PatchEmbeddings";
  static constexpr const char* forward_arguments[] = {"pixel_values"};
  ViTPatchEmbeddings(const Config& c, std::string family);
  Tensor forward(const Tensor& pixel_values);  // [batch, patches, size]
  int64_t channels;
  PictureSize image_size, patch_size;
  int64_t num_patches;
  Child<Conv2d> projection;
};

struct ViTSelfAttention : FamilyModule<ViTSelfAttention> {
  static constexpr const char* part = "SelfAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "head_mask", "eager"};
  using Result = std::tuple<Tensor, Tensor>;  // output, weights
  ViTSelfAttention(const Config& c, std::string family);
  Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask, bool eager);
  int64_t heads, size;
  Child<Linear> query, key, value;
  Child<Dropout> dropout;
};

struct ViTSelfOutput : FamilyModule<ViTSelfOutput> {
  static constexpr const char* part = "SelfOutput";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  ViTSelfOutput(const Config& c, std::string family);
  Tensor forward(const Tensor& hidden_states) { return dropout(dense(hidden_states)); }
  Child<Linear> dense;
  Child<Dropout> dropout;
};

struct ViTAttention : FamilyModule<ViTAttention> {
  static constexpr const char* part = "Attention";
  static constexpr auto& forward_arguments = ViTSelfAttention::forward_arguments;
  ViTAttention(const Config& c, const std::string& family);
  ViTSelfAttention::Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                   bool eager);
  Child<ViTSelfAttention> attention;
  Child<ViTSelfOutput> output;
};

}  // namespace calque
