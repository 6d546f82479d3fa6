#include "generate/compiled_steps.h"

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/compile/marks.h"
#include "calque/graph/function.h"
#include "calque/hub/text_part.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/operator.h"
#include "calque/run/plan.h"

namespace calque {
namespace {

constexpr int64_t least_capacity = 64;

// cat([room[:, :, :end], new], 2) of one new token: the room, the end and the new one; null for other nodes.
struct Growth {
  Node *room = nullptr, *fresh = nullptr;
  Value end;
};
std::optional<Growth> growth_of(const Node& n) {
  static const Operator& cat = get_operator(aten_name("cat"));
  static const Operator& slice = get_operator(aten_name("slice.Tensor"));
  if (n.op() != &cat || n.args().size() != 2 || n.args()[1].kind() != Value::Kind::integer || !n.args()[0].is_sequence())
    return std::nullopt;
  const Values& parts = n.args()[0].to_items();
  const int64_t dimension = n.args()[1].to_int();
  if (parts.size() != 2 || !parts[0].is_node() || !parts[1].is_node() || (dimension != 2 && dimension != -2))
    return std::nullopt;
  const Node& kept = *parts[0].to_node();
  if (kept.op() != &slice || kept.args().size() < 4 || !kept.args()[0].is_node()) return std::nullopt;
  Node* room = kept.args()[0].to_node();
  if (room->kind() != NodeKind::placeholder) return std::nullopt;
  return Growth{room, parts[1].to_node(), kept.args()[3]};
}

// What is new is written into the room; the whole is a view of it.
size_t write_into_rooms(Graph& graph) {
  static const Operator& slice = get_operator(aten_name("slice.Tensor"));
  static const Operator& copy = get_operator(aten_name("copy_"));
  size_t written = 0;
  for (Node* n : graph.node_list()) {
    const std::optional<Growth> growth = growth_of(*n);
    if (!growth) continue;
    const auto scope = graph.inserting_before(n);
    Node* end = graph.call_function(get_function("operator.add"), {growth->end, 1});
    Node* place = graph.call_function(slice, {growth->room, 2, growth->end, end});
    graph.call_function(copy, {place, growth->fresh});
    Node* all = graph.call_function(slice, {growth->room, 2, 0, end});
    n->replace_all_uses_with(all);
    graph.erase_node(n);
    ++written;
  }
  graph.eliminate_dead_code();
  graph.lint();
  return written;
}

}  // namespace

bool CompiledSteps::can(PretrainedModel& model, const KeyValueCache& cache) {
  if (&model.base_model() == &model || model.is_encoder_decoder() || cache.empty() || model.training()) return false;
  if (text_part(model.config()).optional_integer("sliding_window")) return false;
  for (const LayerCache& layer : cache.layers) {
    if (layer.empty() || layer.cross_key.defined() || layer.key.dim() != 4 || layer.value.dim() != 4) return false;
    if (layer.kept().as_int() != cache.length().as_int() || layer.first.as_int() != 0) return false;
  }
  return true;
}

CompiledSteps::CompiledSteps(PretrainedModel& model, const KeyValueCache& cache) : base_(model.base_model()) {
  length_ = cache.length().as_int();
  for (const LayerCache& layer : cache.layers) rooms_.push_back({layer.key, layer.value});
  make_room(std::max(least_capacity, 2 * length_));
  CompileOptions options;
  options.name = "step of " + base_.class_name();
  options.with = [layers = rooms_.size()](std::shared_ptr<GraphModule> graph, const Values&) {
    return plan_of_step(std::move(graph), layers);
  };
  options.verify = false;
  std::vector<std::string> names{"input_ids", "kept"};
  for (size_t i = 0; i < rooms_.size(); ++i) {
    names.push_back("key" + std::to_string(i));
    names.push_back("value" + std::to_string(i));
  }
  compiled_ = compile_values(
      [base = &base_](const Values& args) -> Value {
        const Tensor ids = args[0].to_tensor(), kept = args[1].to_tensor();
        if (!ids.is_fake()) throw UserError("the step of " + base->class_name() + " runs without a capture");
        KeyValueCache past;
        for (size_t i = 2; i < args.size(); i += 2) {
          LayerCache& layer = past.layers.emplace_back();
          layer.key = args[i].to_tensor().slice(2, 0, kept.sym_size(0));
          layer.value = args[i + 1].to_tensor().slice(2, 0, kept.sym_size(0));
        }
        ModelInputs in;
        in.set(arg::input_ids, ids);
        in.set(arg::past_key_values, past);
        in.set(arg::use_cache, true);
        return tuple({(*base)(in)["last_hidden_state"]});
      },
      std::move(names), std::move(options));
}

// The keys and values move to memory for so many tokens.
void CompiledSteps::make_room(int64_t capacity) {
  const auto moved = [&](const Tensor& from) {
    const Tensor to = zeros({from.size(0), from.size(1), capacity, from.size(3)}, from.dtype());
    to.slice(2, 0, length_).copy_(from.slice(2, 0, length_));
    maybe_mark_dynamic(to, 2);
    return to;
  };
  for (Room& room : rooms_) room = {moved(room.key), moved(room.value)};
}

CompiledGraph CompiledSteps::plan_of_step(std::shared_ptr<GraphModule> graph, size_t layers) {
  if (const size_t written = write_into_rooms(graph->graph()); written != 2 * layers)
    throw UserError(std::to_string(written) + " of " + std::to_string(2 * layers) +
                    " keys and values are written into their rooms");
  PlanOptions options;
  options.exact =
      true;  // the model's own numbers; packed weights would not help a product of one row, which reads each weight once
  const std::shared_ptr<const Plan> plan = Plan::make(*graph, options);
  return {[plan](const Values& inputs) { return plan->run(inputs); }, [plan] { return plan->is_current(); }};
}

std::optional<Value> CompiledSteps::step(const Tensor& input_ids) {
  if (failed_ || input_ids.dim() != 2 || input_ids.size(1) != 1 || input_ids.size(0) != rooms_[0].key.size(0))
    return std::nullopt;
  if (length_ == rooms_[0].key.size(2)) make_room(2 * length_);
  const Tensor kept = empty({length_}, DType::bool_);  // its size says how many there are
  maybe_mark_dynamic(kept, 0);
  // The ids are a part of all ids, whose strides grow with the text: guards would see other ones at each step.
  Values args{input_ids.clone(MemoryFormat::contiguous), kept};
  for (const Room& room : rooms_) {
    args.emplace_back(room.key);
    args.emplace_back(room.value);
  }
  try {
    const NoModuleObserversScope alone;
    ModelOutput out;
    out.set("last_hidden_state", compiled_->call(args).to_items().at(0).to_tensor());
    ++length_;
    return out.to_value();
  } catch (const UserError& e) {
    write_log(Log::perf, "generate: steps are not compiled: " + std::string(e.reason()));
    failed_ = true;
    return std::nullopt;
  }
}

KeyValueCache CompiledSteps::cache() const {
  KeyValueCache out;
  for (const Room& room : rooms_) {
    LayerCache& layer = out.layers.emplace_back();
    layer.key = room.key.slice(2, 0, length_);
    layer.value = room.value.slice(2, 0, length_);
  }
  return out;
}

std::optional<Value> CompiledSteps::Scope::intercept(Module& module, const Values& args, const Kwargs& kwargs) {
  if (&module != &steps_.base_ || !args.empty()) return std::nullopt;
  for (const auto& [name, value] : kwargs) {
    if (name != arg::input_ids.name) continue;
    std::optional<Value> out = steps_.step(value.to_tensor());
    answered_ = out.has_value();
    return out;
  }
  return std::nullopt;
}

}  // namespace calque
