// Does a traced graph compute what its model computes? Both are run on inputs of other sizes than those of the trace.
#pragma once

#include <string>
#include <vector>

#include "calque/hub/example_inputs.h"
#include "calque/hub/traced_model.h"

namespace calque {

class PretrainedModel;

// Values for inputs of these names: the class's example inputs, and of the rest what its dummy inputs are like, with ids, labels and
// positions that the model can take.
Kwargs sample_inputs(PretrainedModel& model, const std::vector<std::string>& names, const ExampleSizes& sizes);

struct TraceCheck {
  std::vector<std::string> outputs;      // by path: "logits", "past_key_values.0.1"
  std::vector<std::string> differences;  // in words; none where both are equal
};
// Outputs may differ by `tolerance`, of 1 or of the output's largest value.
TraceCheck check_trace(PretrainedModel& model, TracedModel& traced, const Kwargs& inputs, double tolerance = 1e-5);

}  // namespace calque
