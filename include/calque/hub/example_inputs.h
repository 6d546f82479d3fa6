// Inputs that a model of its class takes, for tracing, exporting and counting: ids that differ, masks that keep everything. A
// class that takes others than ids and masks, or ids of another form, says so (PretrainedModel::example_inputs).
#pragma once

#include <cstdint>
#include <vector>

#include "calque/hub/config.h"
#include "calque/hub/model_inputs.h"

namespace calque {

class PretrainedModel;

struct ExampleSizes {
  int64_t batch = 2;
  int64_t length = 7;
  int64_t decoder_length = 5;  // of a decoder beside an encoder
  int64_t choices = 3;         // where there are choices
};

// Ids that differ, none of them padding or an end of text.
Tensor example_ids(const Config& config, const std::vector<int64_t>& sizes);
// input_ids of these sizes, and of the rest what the class takes: their mask, their boxes.
ModelInputs example_tokens(const PretrainedModel& model, const std::vector<int64_t>& sizes);
// With the end of the text as the last token of each row, where the config names one.
ModelInputs with_ends_of_text(ModelInputs inputs, const Config& config);

}  // namespace calque
