// What a model amounts to: parameters, bytes, floating-point operations, and the memory that its modules take while they run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "calque/hub/pretrained_model.h"

namespace calque {

// Tied parameters count once. Without embeddings: the weights of Embedding modules do not count.
int64_t num_parameters(Module& model, bool only_trainable = false, bool exclude_embeddings = false);
// Bytes of parameters, and of buffers.
int64_t memory_footprint(Module& model, bool return_buffers = true);
// Elements of the main input; 0 and a warning when it is not given.
int64_t estimate_tokens(const PretrainedModel& model, const ModelInputs& inputs);
// Of a forward and a backward pass, the attention's square not counted: 6 * tokens * parameters.
int64_t floating_point_ops(PretrainedModel& model, const ModelInputs& inputs, bool exclude_embeddings = true);

// Resident memory that each module's calls added, by module path, while this object lives.
class MemoryHooks {
 public:
  explicit MemoryHooks(Module& model);
  ~MemoryHooks();
  MemoryHooks(const MemoryHooks&) = delete;
  MemoryHooks& operator=(const MemoryHooks&) = delete;
  void reset();
  struct Usage {
    int64_t pre_forward = 0, post_forward = 0;  // of the last call, bytes
    int64_t difference = 0;                     // summed over calls
  };
  const std::map<std::string, Usage>& usage() const { return *usage_; }

 private:
  std::shared_ptr<std::map<std::string, Usage>> usage_;
  std::vector<HookHandle> handles_;
};

// A warning, once, when there is no attention mask and the first or last token of a row is the padding token.
void warn_if_padding_and_no_attention_mask(const PretrainedModel& model, const Tensor& input_ids,
                                           const Tensor& attention_mask);

}  // namespace calque
