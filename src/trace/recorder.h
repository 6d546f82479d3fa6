// Recorder: the mode that makes a node of each operator call and asks the modes below for the answer. It knows which
// node made which tensor and which expression; symbolic numbers become nodes when they are first used.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "calque/graph/higher_order.h"
#include "calque/nn/observer.h"
#include "calque/op/mode.h"
#include "calque/sym/observer.h"
#include "calque/tensor/regions.h"
#include "calque/trace/make_fx.h"
#include "trace/expr_map.h"
#include "trace/expression_nodes.h"

namespace calque {

// In meta while a graph is recorded again: the name of the node that a node was made for.
inline constexpr const char* from_node = "from_node";

class Recorder : public Mode,
                 public ModuleObserver,
                 public HigherOrderTracer,
                 public SymObserver,
                 public RegionObserver,
                 public ProxyMode {
 public:
  // `outer`: the recorder of the graph that calls the one recorded here; what that one knows becomes an input.
  Recorder(GraphModule& module, const MakeFxOptions& options, Recorder* outer = nullptr)
      : module_(module), graph_(module.graph()), options_(options), outer_(outer) {}

  ModeSlot slot() const override { return options_.pre_dispatch ? ModeSlot::pre_dispatch : ModeSlot::recorder; }
  Value call(const Operator& op, const Values& args) override;

  // From now on `value` is what `node` computes; the parts of a tuple get getitem nodes. `constants` mirrors the value.
  void track(const Value& value, Node* node, const Value& constants = {});
  // A value as an argument of a node.
  Value argument(const Value& v);
  Value tensor_argument(const Tensor& t);
  bool tracks(const Tensor& t) const { return tensors_.contains(&t.impl()); }

  const Graph& recorded() const override { return graph_; }
  const Node* node_of(const Tensor& t) const override;

  Value trace(const char* target, std::vector<Branch> branches,
              const std::function<Values(const Values&, const Values&)>& arguments,
              const std::function<Value(const std::vector<Value>&)>& result) override;
  Value trace_call(const char* target, const Values& args, const Kwargs& kwargs,
                   const std::function<Value(const Kwargs&)>& result) override;

  void enter(Module& module) override;
  void leave(Module& module) override;

  void grad_mode_set(bool enabled) override;
  void autocast_entered(const AutocastRegion& region) override;
  void autocast_left() override;

  void computed(const char* function, std::span<const SymNumber> operands, const SymNumber& result) override;
  void counted(const TensorImpl& tensor, SymInt numel) override;

 private:
  struct Tracked {
    Node* node = nullptr;
    Tensor constant;  // what it is known to hold
    Tensor alive;     // an address must not be reused while it is a key
  };
  struct SizeOf {
    enum class What : uint8_t { size, stride, numel, offset } what = What::size;
    Node* node = nullptr;
    int64_t dim = 0;
  };
  // The outermost operator that is being answered: what a decomposition's nodes come from.
  class OriginalScope {
   public:
    OriginalScope(Recorder& recorder, const Operator& op) : recorder_(recorder), before_(recorder.original_) {
      if (!before_) recorder.original_ = &op;
    }
    ~OriginalScope() { recorder_.original_ = before_; }
    OriginalScope(const OriginalScope&) = delete;
    OriginalScope& operator=(const OriginalScope&) = delete;

   private:
    Recorder& recorder_;
    const Operator* before_;
  };
  Value record(const Operator& called, const Values& args);
  // The answer of the operator's decomposition, where the options have one that answers.
  std::optional<Value> decomposed(const Operator& op, const Values& args);
  // Is it known what the traced tensors among the arguments hold, and is there one? Then the call can be answered now.
  bool are_known(const Values& args) const;
  Value value_of_known(const Operator& op, const Values& args) const;
  void refuse_data_dependence(const Operator& op, const Values& args) const;
  Node* node_of_call(const Operator& op, const Values& args);
  bool is_off() const;      // another records now, or nobody
  bool is_at_work() const;  // this one records now, or one of the graphs that are called from this one's
  bool knows(const Value& v);
  Value lifted(const Value& v);
  Value constant_values(const Value& v) const;
  void describe(Node* node);
  // Of a module that is about to be called, from the outermost one; none when that does not have it.
  std::optional<std::string> path_of(const Module& module) const;
  // Was the node made by the call of the program, or for the node of a graph that is run again, that is going on now?
  bool in_same_call(const Node& node) const;
  Value attribute(const Tensor& t);
  std::string numbered(const char* name, const char* separator = "");  // the next that is free
  Value number(const Expr* e);
  Value number_as_computed(const Expr* e);  // though guards may have fixed it since
  Node* function(const char* name, Values args);
  void remember(const Expr* e, Node* node);
  const SizeOf* size_source(const Expr* e);  // the first tensor that has this size, stride or offset; null if none has

  GraphModule& module_;
  Graph& graph_;
  const MakeFxOptions& options_;
  Recorder* outer_;
  Values lifted_;  // of the outer trace, what became an input
  std::unordered_map<const TensorImpl*, Tracked> tensors_;
  ExprMap<Node*> numbers_;
  ExprMap<SizeOf> sizes_;
  std::vector<Node*> unread_;  // tensors whose sizes are not in sizes_ yet: most are never asked for
  std::unordered_map<const TensorImpl*, std::string> attributes_;
  std::unordered_map<std::string_view, size_t> next_number_;  // of attributes and graphs of that name
  std::shared_ptr<const ModuleStack> modules_;
  std::vector<std::shared_ptr<const ModuleStack>> outer_modules_;
  std::vector<Module*> module_path_;
  std::vector<Node*> autocasts_;                   // the regions that are open; null for one that is not recorded
  std::unordered_map<std::string, size_t> calls_;  // of modules, by path
  const Operator* original_ = nullptr;
};

// What a node keeps of a value: later changes of a tensor's layout do not reach it.
Value snapshot(const Value& v);
// The same values in tensors of their own.
Value fresh(const Value& v);
// A tensor's size, stride, number of elements or offset.
bool is_accessor(const Node& node);
// Sizes that nobody uses, and arithmetic on them.
void remove_unused(Graph& graph);

}  // namespace calque
