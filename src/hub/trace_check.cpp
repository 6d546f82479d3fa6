#include "calque/hub/trace_check.h"

#include <algorithm>
#include <cmath>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/hub/dummy_inputs.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/text_part.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/operators.h"
#include "calque/op/tree.h"

namespace calque {
namespace {

using Leaves = std::vector<std::pair<std::string, Tensor>>;

void flatten_outputs(const std::string& path, const Value& value, Leaves& out) {
  const auto below = [&](const std::string& name) { return path.empty() ? name : path + "." + name; };
  if (value.is_tensor()) {
    out.emplace_back(path, value.to_tensor());
  } else if (value.kind() == Value::Kind::tuple || value.kind() == Value::Kind::list) {
    for (size_t i = 0; i < value.to_items().size(); ++i) flatten_outputs(below(std::to_string(i)), value.to_items()[i], out);
  } else if (value.kind() == Value::Kind::dict) {
    for (const auto& [key, item] : value.to_dict().items) flatten_outputs(below(key.to_string()), item, out);
  }
}

Leaves outputs_of(Module& module, const Kwargs& inputs) {
  // Each run has inputs of its own: a model may write into them.
  Kwargs own;
  for (const auto& [name, value] : inputs)
    own.emplace_back(name, tree_map_tensors([](const Tensor& t) -> Value { return t.clone(); }, value));
  Leaves out;
  flatten_outputs("", module.call({}, own), out);
  return out;
}

double largest(const Tensor& t) { return t.numel() == 0 ? 0 : abs(t).max().item_as<double>(); }

std::string difference_of(const Tensor& expected, const Tensor& found, double tolerance) {
  const IntList model_sizes = expected.sizes(), graph_sizes = found.sizes();
  if (expected.dtype() != found.dtype() || !std::ranges::equal(model_sizes, graph_sizes))
    return "is " + std::string(name(found.dtype())) + " " + str(graph_sizes) + " in the graph, " +
           std::string(name(expected.dtype())) + " " + str(model_sizes) + " in the model";
  if (expected.equal(found)) return "";
  const Tensor a = expected.to(DType::float64), b = found.to(DType::float64);
  const double worst = largest(a - b), allowed = tolerance * std::max(1.0, largest(a));
  if (worst <= allowed) return "";
  return "differs by " + std::to_string(worst) + ", allowed are " + std::to_string(allowed);
}

// Zeros as they are would hide mistakes: numbers that count up to a limit.
Tensor counted(const Tensor& like, int64_t limit) {
  return (arange(like.numel(), like.dtype()) % std::max<int64_t>(limit, 1)).view(like.sym_sizes());
}

Tensor varied(const Tensor& like) {
  const Tensor numbers = arange(like.numel(), DType::float32);
  return sin(numbers * 0.7).view(like.sym_sizes()).to(like.dtype());
}

int64_t limit_of(const PretrainedModel& model, const DummyInputs& dummies, const std::string& name, const Tensor& zeros,
                 const ExampleSizes& sizes) {
  const Config& config = model.config();
  const int64_t vocabulary = text_part(config).optional_integer("vocab_size").value_or(2);
  if (name == "token_type_ids") return config.optional_integer("type_vocab_size").value_or(2);
  if (name == "start_positions" || name == "end_positions" || name.ends_with("position_ids")) return sizes.length;
  if (name == "bbox") return 8;
  if (name.find("label") == std::string::npos) return vocabulary;
  if (dummies.is_of({"multiple-choice"})) return sizes.choices;
  if (dummies.is_of({"next-sentence-prediction"})) return 2;
  const bool by_row = zeros.dim() == 1 || dummies.is_of({"token-classification"});
  return by_row ? config.num_labels() : std::min<int64_t>(vocabulary, 2 * sizes.length);
}

// Of another form than the trace's are the example inputs of classes that take both; a cache is made for the trace's sizes alone.
bool fits(const Value& own, const Value& dummy, bool has_cache) {
  if (own.is_none() || !own.is_tensor() || !dummy.is_tensor()) return !own.is_none();
  const Tensor &a = own.to_tensor(), &b = dummy.to_tensor();
  return a.dim() == b.dim() && (!has_cache || std::ranges::equal(IntList(a.sizes()), IntList(b.sizes())));
}

}  // namespace

Kwargs sample_inputs(PretrainedModel& model, const std::vector<std::string>& names, const ExampleSizes& sizes) {
  const ModelInputs given = model.example_inputs(sizes);
  DummyInputs dummies(model);
  dummies.batch.size = sizes.batch;
  dummies.length.size = sizes.length;
  dummies.decoder_length.size = sizes.decoder_length;
  if (dummies.choices.size != 0) dummies.choices.size = sizes.choices;
  if (dummies.samples.size != 0) dummies.samples.size = given.tensor("input_values").size(1);
  const bool has_cache = std::ranges::find(names, std::string(arg::past_key_values.name)) != names.end();
  const auto valued = [&](const std::string& name, const Tensor& zeros) -> Value {
    if (name == "labels" && dummies.is_of({"ctc"}))  // characters, none of them the blank
      return counted(zeros.to(DType::int64), limit_of(model, dummies, name, zeros, sizes) - 1) + 1;
    if (is_floating(zeros.dtype())) return varied(zeros);
    if (name.find("mask") != std::string::npos) return ones_like(zeros);
    return counted(zeros, limit_of(model, dummies, name, zeros, sizes));
  };
  Kwargs out;
  for (const std::string& name : model.argument_names()) {
    if (std::ranges::find(names, name) == names.end()) continue;
    const bool lengthened = has_cache && name.find("mask") != std::string::npos;
    const Value own = lengthened ? Value() : given.get(name);
    const size_t before = out.size();
    for (const DummyInput& dummy : dummies.make(name, names)) {
      if (dummy.name != name) continue;
      if (fits(own, dummy.value, has_cache)) {
        out.emplace_back(name, own);
        continue;
      }
      out.emplace_back(name, tree_map_tensors([&](const Tensor& t) { return valued(name, t); }, dummy.value));
    }
    // Positions stand for the labels of a class that answers questions; one that takes labels all the same has a class of each row.
    if (out.size() == before) out.emplace_back(name, counted(zeros({sizes.batch}, DType::int64), 2));
  }
  return out;
}

TraceCheck check_trace(PretrainedModel& model, TracedModel& traced, const Kwargs& inputs, double tolerance) {
  const GradModeScope no_grad(false);
  const Leaves expected = outputs_of(model, inputs), found = outputs_of(traced, inputs);
  TraceCheck out;
  const auto find = [](const Leaves& leaves, const std::string& path) {
    return std::ranges::find(leaves, path, &Leaves::value_type::first);
  };
  for (const auto& [path, tensor] : expected) {
    out.outputs.push_back(path);
    const auto at = find(found, path);
    const std::string difference =
        at == found.end() ? "is not in the graph's output" : difference_of(tensor, at->second, tolerance);
    if (!difference.empty()) out.differences.push_back(path + " " + difference);
  }
  for (const auto& [path, tensor] : found)
    if (find(expected, path) == expected.end()) out.differences.push_back(path + " is not in the model's output");
  return out;
}

}  // namespace calque
