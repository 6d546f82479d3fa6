#include <map>
#include <mutex>
#include <optional>

#include "calque/base/error.h"
#include "calque/compile/compile.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/text.h"
#include "calque/run/plan.h"
#include "calque/trace/functional.h"
#include "compile/debug.h"

namespace calque {
namespace {

CompiledGraph by_nodes(std::shared_ptr<GraphModule> graph) {
  return {
      [graph = std::move(graph)](const Values& inputs) { return Interpreter(std::as_const(*graph).graph()).run(inputs); }};
}

CompiledGraph by_plan(std::shared_ptr<GraphModule> graph, const Values&) {
  PlanOptions options;
  size_t pass_number = 0;
  if (compile_detail::debug_enabled())
    options.after_pass = [&](const std::string& pass, const GraphModule& after) {
      compile_detail::debug_part_file("pass_" + std::to_string(pass_number++) + (pass.empty() ? "" : "_" + pass) + ".txt",
                                      text_with_symbols(after.graph()));
    };
  const std::shared_ptr<const Plan> plan = Plan::make(*graph, options);
  if (compile_detail::debug_enabled()) compile_detail::debug_part_file("plan.txt", plan->describe());
  return {[plan](const Values& inputs) { return plan->run(inputs); }, [plan] { return plan->is_current(); }};
}

// An output that lies in the memory of an input, which a graph without views has to be given back as such.
struct AliasingOutput {
  size_t output, input;
  int64_t offset;
};

// None where an offset depends on sizes.
std::optional<std::vector<AliasingOutput>> aliasing_outputs(const Graph& graph) {
  std::vector<AliasingOutput> out;
  const std::vector<Node*> inputs = graph.placeholders();
  const Values& results = graph.output_value().to_items();
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_node() || !results[i].to_node()->meta.val.is_tensor()) continue;
    const Node* result = results[i].to_node();
    for (size_t k = 0; k < inputs.size(); ++k) {
      const Value& input = inputs[k]->meta.val;
      if (!input.is_tensor() || input.to_tensor().storage().get() != result->meta.val.to_tensor().storage().get()) continue;
      if (result->meta.val.to_tensor().sym_storage_offset().is_symbolic()) return std::nullopt;
      out.push_back({i, k, result == inputs[k] ? -1 : result->meta.val.to_tensor().storage_offset()});
      break;
    }
  }
  return out;
}

// Composite operators expanded and writes to inputs left to the end, as PyTorch's of that name.
CompiledGraph by_lowered_nodes(std::shared_ptr<GraphModule> graph, const Values& examples) {
  const auto aliasing = aliasing_outputs(std::as_const(*graph).graph());
  if (!aliasing) return by_nodes(std::move(graph));
  MakeFxOptions options;
  options.mode = TracingMode::symbolic;
  for (const Value& v : examples)
    if (v.is_tensor() && !options.fake)
      if (FakeMode* mode = fake_mode_of(v.to_tensor())) options.fake = mode->shared_from_this();
  const auto body = [graph](const Values& inputs) { return Interpreter(std::as_const(*graph).graph()).run(inputs); };
  const TracedGraph lowered = make_fx_values(functionalize(body), examples, options);
  return {[module = lowered.module, aliasing](const Values& inputs) -> Value {
    Values results = Interpreter(std::as_const(*module).graph()).run(inputs).to_items();
    for (const AliasingOutput& a : *aliasing) {
      const Tensor& input = inputs[a.input].to_tensor();
      const Tensor& computed = results[a.output].to_tensor();
      results[a.output] = a.offset < 0 ? input : input.as_strided(computed.sym_sizes(), computed.sym_strides(), a.offset);
    }
    return tuple(std::move(results));
  }};
}

struct Backends {
  std::mutex mutex;
  std::map<std::string, Backend, std::less<>> by_name = {
      {"calque", by_plan},
      {"eager", [](std::shared_ptr<GraphModule> graph, const Values&) { return by_nodes(std::move(graph)); }},
      {"aot_eager", by_lowered_nodes},
  };
};

Backends& backends() {
  static Backends b;
  return b;
}

}  // namespace

void register_backend(std::string name, Backend backend) {
  if (!backend) throw UserError("register_backend: expected a function for '" + name + "', found none");
  Backends& b = backends();
  const std::lock_guard lock(b.mutex);
  if (!b.by_name.emplace(name, std::move(backend)).second)
    throw UserError("register_backend: the name '" + name + "' is taken; choose another");
}

std::vector<std::string> list_backends() {
  Backends& b = backends();
  const std::lock_guard lock(b.mutex);
  std::vector<std::string> out;
  for (const auto& [name, backend] : b.by_name) out.push_back(name);
  return out;
}

Backend lookup_backend(std::string_view name) {
  {
    Backends& b = backends();
    const std::lock_guard lock(b.mutex);
    if (const auto at = b.by_name.find(name); at != b.by_name.end()) return at->second;
  }
  std::string known;
  for (const std::string& n : list_backends()) known += (known.empty() ? "" : ", ") + n;
  throw UserError("compile: expected a backend among " + known + ", found '" + std::string(name) +
                  "'; register_backend() adds one");
}

}  // namespace calque
