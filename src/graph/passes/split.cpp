#include <set>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/graph/passes.h"
#include "graph/region_functions.h"

namespace calque {
namespace {

// A list of distinct nodes in the order in which they came.
class OrderedNodes {
 public:
  void add(const Node* n) {
    if (seen_.emplace(n, nodes_.size()).second) nodes_.push_back(n);
  }
  const std::vector<const Node*>& nodes() const { return nodes_; }
  void set(std::vector<const Node*> nodes) { nodes_ = std::move(nodes); }

 private:
  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, size_t> seen_;
};

// What a node has switched, as far as it reaches.
struct Region {
  const Node* enter;
  const Node* exit = nullptr;                       // autocast's
  std::set<std::pair<int64_t, size_t>> parts = {};  // by number
};

struct Part {
  std::string name;  // "submod_0"
  OrderedNodes inputs, outputs;
  std::vector<size_t> dependents;    // in the order in which they were found
  std::vector<size_t> dependencies;  // distinct, not yet placed
  Graph graph;
  NodeMapping environment;  // from the original's nodes
  Attributes attributes;
};

void add_distinct(std::vector<size_t>& list, size_t x) {
  if (std::find(list.begin(), list.end(), x) == list.end()) list.push_back(x);
}

std::string underscored(std::string path) {
  std::replace(path.begin(), path.end(), '.', '_');
  return path;
}

class Splitter {
 public:
  Splitter(const GraphModule& module, const SplitOptions& options)
      : module_(module), graph_(module.graph()), options_(options), part_(graph_.id_bound(), none) {}

  std::shared_ptr<GraphModule> split(const std::function<int64_t(const Node&)>& part_of) {
    assign(part_of);
    find_crossings();
    const std::vector<size_t> sorted = topological_order();
    enter_regions();
    for (const size_t p : sorted) make_inputs(parts_[p]);
    for (const Node* n : graph_.nodes())
      if (part_[n->id()] != none) copy(*n, parts_[part_[n->id()]]);
    leave_regions();
    std::vector<size_t> order = sorted;
    if (options_.keep_original_order)
      for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    return assemble(order);
  }

 private:
  static constexpr size_t none = SIZE_MAX;

  static bool stays_outside(const Node& n) {
    return n.kind() == NodeKind::placeholder || n.kind() == NodeKind::get_attr || n.kind() == NodeKind::output;
  }

  void assign(const std::function<int64_t(const Node&)>& part_of) {
    std::unordered_map<int64_t, size_t> by_number;
    int64_t highest = INT64_MIN;
    bool goes_down = false;
    for (const Node* n : graph_.nodes()) {
      if (stays_outside(*n)) continue;
      const int64_t number = part_of(*n);
      goes_down = goes_down || number < highest;
      highest = std::max(highest, number);
      const auto [at, fresh] = by_number.try_emplace(number, parts_.size());
      if (fresh) {
        parts_.emplace_back();
        parts_.back().name =
            "submod_" + (options_.partition_affix.empty() ? "" : options_.partition_affix + "_") + std::to_string(number);
      }
      part_[n->id()] = at->second;
      follow_regions(*n, {number, at->second});
    }
    if (goes_down && !(grad_modes_.empty() && autocasts_.empty()))
      throw UserError(
          "split_module: the graph switches gradient mode or autocast, so that the parts' numbers must not go down");
    for (const Region& region : autocasts_)
      if (!region.exit)
        throw UserError("split_module: the autocast region that " + region.enter->name() + " enters is never left");
  }

  void follow_regions(const Node& n, std::pair<int64_t, size_t> part) {
    if (calls_set_grad_enabled(n)) {
      grad_modes_.push_back({&n});
    } else if (calls_enter_autocast(n)) {
      autocasts_.push_back({&n});
    } else if (calls_exit_autocast(n)) {
      for (Region& region : autocasts_) {
        if (region.enter != n.args().at(0).to_node()) continue;
        region.exit = &n;
        region.parts.insert(part);
      }
    }
    if (!grad_modes_.empty()) grad_modes_.back().parts.insert(part);
    for (Region& region : autocasts_)
      if (!region.exit) region.parts.insert(part);
  }

  // The part in which a region begins has the node that begins it; the others get a copy.
  void enter_regions() {
    for (const std::vector<Region>* regions : {&autocasts_, &grad_modes_})
      for (const Region& region : *regions)
        for (auto at = std::next(region.parts.begin()); at != region.parts.end(); ++at) {
          Part& part = parts_[at->second];
          Node* n = part.graph.create_node(region.enter->kind(), region.enter->target(), region.enter->args());
          n->meta = region.enter->meta;
          part.environment[region.enter] = n;
        }
  }

  void leave_regions() {
    for (auto region = autocasts_.rbegin(); region != autocasts_.rend(); ++region)
      for (auto at = region->parts.begin(); at != std::prev(region->parts.end()); ++at) {
        Part& part = parts_[at->second];
        Node* n = part.graph.create_node(region->exit->kind(), region->exit->target(), {part.environment.at(region->enter)});
        n->meta = region->exit->meta;
      }
  }

  void find_crossings() {
    for (const Node* n : graph_.nodes()) {
      if (n->kind() == NodeKind::placeholder || n->kind() == NodeKind::get_attr || switches_region(*n)) continue;
      for (size_t i = 0; i < n->num_input_nodes(); ++i) {
        const Node* input = n->input_node(i);
        const size_t defined = part_[input->id()];
        const size_t used = part_[n->id()];
        if (defined == used) continue;
        if (defined != none) parts_[defined].outputs.add(input);
        if (used != none) parts_[used].inputs.add(input);
        if (defined == none || used == none) continue;
        add_distinct(parts_[defined].dependents, used);
        add_distinct(parts_[used].dependencies, defined);
      }
    }
  }

  std::vector<size_t> topological_order() {
    std::vector<size_t> ready;
    std::vector<size_t> waiting(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      waiting[i] = parts_[i].dependencies.size();
      if (waiting[i] == 0) ready.push_back(i);
    }
    std::vector<size_t> sorted;
    while (!ready.empty()) {
      const size_t p = ready.back();
      ready.pop_back();
      sorted.push_back(p);
      for (const size_t dependent : parts_[p].dependents)
        if (--waiting[dependent] == 0) ready.push_back(dependent);
    }
    if (sorted.size() != parts_.size()) throw UserError("split_module: cycle exists between partitions!");
    return sorted;
  }

  bool is_module_attr(const Node& n) const {
    return n.kind() == NodeKind::get_attr && module_.find_submodule(n.target().text());
  }

  void make_inputs(Part& part) {
    std::vector<const Node*> passed;
    int counter = 0;
    for (const Node* input : part.inputs.nodes()) {
      if (is_module_attr(*input)) continue;
      const std::string name = options_.keep_original_input_name ? input->name() : "arg_" + std::to_string(counter++);
      Node* placeholder = part.graph.placeholder(name);
      placeholder->set_type(input->type());
      placeholder->meta = input->meta;
      part.environment[input] = placeholder;
      passed.push_back(input);
    }
    // Modules are not passed: the part refers to them itself.
    for (const Node* input : part.inputs.nodes()) {
      if (!is_module_attr(*input)) continue;
      const std::string& path = input->target().text();
      Node* attr = part.graph.get_attr(path);
      attr->meta = input->meta;
      part.attributes.emplace_back(path, module_.get_submodule_ptr(path));
      part.environment[input] = attr;
    }
    part.inputs.set(std::move(passed));
  }

  void copy(const Node& n, Part& part) {
    const NodeFn map = [&](Node* x) {
      const auto at = part.environment.find(x);
      if (at == part.environment.end())
        throw InternalError("split_module: node " + x->name() + " is missing in " + part.name);
      return at->second;
    };
    Target target = n.target();
    if (n.kind() == NodeKind::call_module) {
      const std::string path = underscored(target.text());
      part.attributes.emplace_back(path, module_.get_submodule_ptr(target.text()));
      target = path;
    }
    Node* made = part.graph.create_node(n.kind(), target, map_nodes(n.args(), map), map_nodes(n.kwargs(), map),
                                        options_.keep_original_node_name ? n.name() : std::string_view{}, n.type());
    made->meta = n.meta;
    part.environment[&n] = made;
  }

  void construct(const Node& n) {
    if (base_env_.contains(&n)) return;
    Node* made = nullptr;
    if (n.kind() == NodeKind::placeholder) {
      std::optional<Value> default_value;
      if (!n.args().empty()) default_value = n.args()[0];
      made = base_.placeholder(options_.keep_original_node_name ? n.name() : n.target().text(), default_value);
      made->set_type(n.type());
    } else if (n.kind() == NodeKind::get_attr) {
      made = base_.get_attr(n.target().text());
      base_attributes_.emplace_back(n.target().text(), attribute(n.target().text()));
    } else {
      return;
    }
    made->meta = n.meta;
    base_env_[&n] = made;
  }
  Attribute attribute(const std::string& path) const {
    if (module_.find_submodule(path)) return module_.get_submodule_ptr(path);
    const size_t dot = path.rfind('.');
    const Module& parent = module_.get_submodule(std::string_view(path).substr(0, dot == std::string::npos ? 0 : dot));
    const std::string name = path.substr(dot == std::string::npos ? 0 : dot + 1);
    for (const auto& slot : parent.parameter_slots())
      if (slot->name == name) return Attribute(slot->tensor, true);
    return Attribute(parent.get_buffer(name));
  }

  std::shared_ptr<GraphModule> assemble(const std::vector<size_t>& order) {
    for (const Node* n : graph_.nodes())
      if (!options_.keep_original_order || n->kind() == NodeKind::placeholder) construct(*n);
    const FunctionRef getitem = get_function("operator.getitem");
    for (const size_t p : order) {
      Part& part = parts_[p];
      const std::vector<const Node*>& outputs = part.outputs.nodes();
      Values results;
      for (const Node* n : outputs) results.push_back(part.environment.at(n));
      const bool as_tuple = outputs.size() != 1 || options_.tuple_return;
      part.graph.output(as_tuple ? tuple(results) : results[0]);
      Values inputs;
      for (const Node* n : part.inputs.nodes()) {
        construct(*n);
        inputs.push_back(base_env_.at(n));
      }
      part.graph.set_shape_env(graph_.shape_env());
      base_attributes_.emplace_back(part.name, std::make_shared<GraphModule>(part.attributes, std::move(part.graph)));
      Node* call = base_.call_module(part.name, std::move(inputs));
      for (size_t i = 0; i < outputs.size(); ++i)
        base_env_[outputs[i]] = as_tuple ? base_.call_function(getitem, {call, i}) : call;
    }
    for (const Node* n : graph_.nodes()) {
      if (n->kind() != NodeKind::output) continue;
      const Value result = map_nodes(n->args().at(0), [&](Node* x) {
        construct(*x);
        return base_env_.at(x);
      });
      base_.output(result);
    }
    auto out = std::make_shared<GraphModule>(base_attributes_, std::move(base_));
    out->graph().set_shape_env(graph_.shape_env());
    out->graph().lint();
    return out;
  }

  const GraphModule& module_;
  const Graph& graph_;
  const SplitOptions& options_;
  std::vector<size_t> part_;  // by node id
  std::vector<Part> parts_;
  std::vector<Region> grad_modes_, autocasts_;
  Graph base_;
  NodeMapping base_env_;
  Attributes base_attributes_;
};

}  // namespace

std::shared_ptr<GraphModule> split_module(const GraphModule& module, const std::function<int64_t(const Node&)>& part_of,
                                          const SplitOptions& options) {
  return Splitter(module, options).split(part_of);
}

std::shared_ptr<GraphModule> split_by(const GraphModule& module, const NodePredicate& in_first) {
  int64_t part = 0;
  std::optional<bool> before;
  return split_module(module, [&](const Node& n) {
    const bool now = in_first(n);
    if (before && *before != now) ++part;
    before = now;
    return part;
  });
}

std::shared_ptr<GraphModule> sequential_split(const GraphModule& module, const NodePredicate& starts) {
  std::vector<int64_t> parts(module.graph().id_bound());
  int64_t part = 0;
  for (const Node* n : module.graph().nodes()) {
    if (starts(*n)) ++part;
    parts[n->id()] = part;
  }
  SplitOptions options;
  options.keep_original_order = true;
  options.keep_original_node_name = true;
  auto split = split_module(
      module, [&](const Node& n) { return parts[n.id()]; }, options);
  split->graph().set_pytree_info(module.graph().pytree_info());
  return split;
}

}  // namespace calque
