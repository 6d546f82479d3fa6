// The file's graph becomes nodes, named and ordered as PyTorch's own loader does it: a placeholder per input, a call per
// node, a getitem for each of several results, a get_attr and a child module for each subgraph.
#include <algorithm>

#include "calque/base/error.h"
#include "export/pt2/pt2_format.h"
#include "file/json_value.h"

namespace calque::pt2 {
namespace {

constexpr std::string_view higher_order = "torch.ops.higher_order";
constexpr char separator = ';';

enum class ArgumentPlace : int64_t { unknown = 0, positional = 1, keyword = 2 };

bool is_python_keyword(std::string_view name) {
  static constexpr std::string_view words[] = {"from",  "in",    "is",     "lambda", "global", "def",   "del",  "pass",
                                               "with",  "as",    "and",    "or",     "not",    "if",    "else", "for",
                                               "while", "class", "return", "import", "try",    "raise", "yield"};
  return std::find(std::begin(words), std::end(words), name) != std::end(words);
}

// "key,path,type" where the type may have commas inside brackets.
ModuleStackEntry stack_entry(std::string_view item, const Json& where) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < item.size(); ++i) {
    if (item[i] == '(' || item[i] == '[')
      ++depth;
    else if (item[i] == ')' || item[i] == ']')
      --depth;
    else if (item[i] == ',' && depth == 0) {
      parts.push_back(item.substr(start, i - start));
      start = i + 1;
    }
  }
  parts.push_back(item.substr(start));
  if (parts.size() != 3)
    where.fail("an entry of nn_module_stack with " + std::to_string(parts.size()) + " parts, expected key, path and type");
  return {std::string(parts[0]), std::string(parts[1]), std::string(parts[2])};
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

// Shared by the graphs of one program: equal metadata is kept once.
class MetadataReader {
 public:
  void read(const Json& metadata, NodeMeta& out) {
    for (const auto& [key, json] : metadata.members()) {
      const std::string_view text = json.to_string();
      if (text.empty()) continue;
      if (key == "stack_trace")
        out.stack_trace = shared(traces_, text, [&] { return std::string(text); });
      else if (key == "nn_module_stack")
        out.nn_module_stack = shared(stacks_, text, [&] { return module_stack(text, json); });
      else if (key == "source_fn_stack")
        out.source_fn_stack = shared(sources_, text, [&] { return source_stack(text, json); });
      else if (key == "torch_fn")
        out.torch_fn = shared(functions_, text, [&] { return torch_fn(text); });
      else if (key == "custom")
        out.set(key, value_of_json(JsonDocument(text, "custom metadata").root()));
      else
        out.set(key, text);
    }
  }

 private:
  template <class T>
  using Cache = std::unordered_map<std::string_view, std::shared_ptr<const T>>;
  template <class T, class F>
  static std::shared_ptr<const T> shared(Cache<T>& cache, std::string_view text, F&& make) {
    std::shared_ptr<const T>& entry = cache[text];
    if (!entry) entry = std::make_shared<const T>(make());
    return entry;
  }
  static ModuleStack module_stack(std::string_view text, const Json& where) {
    ModuleStack out;
    for (const std::string_view item : split(text, separator)) out.push_back(stack_entry(item, where));
    return out;
  }
  static std::vector<SourceFn> source_stack(std::string_view text, const Json& where) {
    std::vector<SourceFn> out;
    for (const std::string_view item : split(text, separator)) {
      const size_t comma = item.find(',');
      if (comma == std::string_view::npos) where.fail("an entry of source_fn_stack without a comma");
      out.push_back({std::string(item.substr(0, comma)), std::string(item.substr(comma + 1))});
    }
    return out;
  }
  static std::pair<std::string, std::string> torch_fn(std::string_view text) {
    const size_t end = text.find(separator);
    return {std::string(text.substr(0, end)),
            std::string(end == std::string_view::npos ? std::string_view() : text.substr(end + 1))};
  }

  Cache<std::string> traces_;
  Cache<ModuleStack> stacks_;
  Cache<std::vector<SourceFn>> sources_;
  Cache<std::pair<std::string, std::string>> functions_;
};

struct Shared {
  const GraphSignature& signature;
  SymbolReader& symbols;
  const std::vector<std::pair<std::string, Value>>& objects;
  MetadataReader metadata = {};
  std::unordered_map<std::string_view, Target> targets = {};
};

class GraphReader {
 public:
  GraphReader(const Json& graph, Shared& shared) : json_(graph), shared_(shared) {}

  std::shared_ptr<GraphModule> read() {
    constexpr std::pair<const char*, ValueReader> kinds[] = {{"tensor_values", &GraphReader::tensor_value},
                                                             {"sym_int_values", &GraphReader::integer_value},
                                                             {"sym_float_values", &GraphReader::float_value},
                                                             {"sym_bool_values", &GraphReader::boolean_value},
                                                             {"custom_obj_values", &GraphReader::custom_object}};
    for (const auto& [kind, reader] : kinds)
      if (const Json* values = json_.find(kind); values && !values->is_null())
        for (const JsonMember& m : values->members()) metas_[m.key] = {reader, &m.value};
    size_t position = 0;
    for (const Json& input : json_.at("inputs").items()) read_input(input, position++);
    for (const Json& node : json_.at("nodes").items()) {
      try {
        read_node(node);
      } catch (UserError& e) {
        const Json* name = node.find("name");
        e.prepend("node " + std::string(name && name->is_string() ? name->to_string() : node.at("target").to_string()) +
                  ": ");
        throw;
      }
    }
    read_outputs();
    graph_.set_shape_env(shared_.symbols.env());
    return std::make_shared<GraphModule>(children_, std::move(graph_));
  }

 private:
  // ---- values of nodes ------------------------------------------------------------------------------------------------
  using ValueReader = Value (GraphReader::*)(const Json&);
  struct MetaJson {
    ValueReader reader;
    const Json* json;
  };

  Value val(std::string_view name, const Json& where) {
    const auto it = metas_.find(name);
    if (it == metas_.end()) where.fail("nothing is said of the value " + std::string(name));
    return (this->*it->second.reader)(*it->second.json);
  }
  Value tensor_value(const Json& json) { return shared_.symbols.fake(json); }
  Value integer_value(const Json& json) { return shared_.symbols.sym_int(json); }
  Value float_value(const Json& json) { return shared_.symbols.sym_float(json); }
  Value boolean_value(const Json& json) { return shared_.symbols.sym_bool(json); }
  Value custom_object(const Json& json) {
    return StructValue{"CustomObjArgument",
                       "null",
                       {"name", "class_fqn"},
                       {Value(json.at("name").to_string()), Value(json.at("class_fqn").to_string())}};
  }

  // The node is what the file calls `name`, and bears that name whatever FX thinks of it.
  void bind(std::string_view name, Node* node, const Json& where) {
    if (!nodes_.emplace(name, node).second) where.fail("the value " + std::string(name) + " is defined twice");
    if (node->name() != name) node->set_name(std::string(name));
    node->meta.val = val(name, where);
  }
  Value reference(std::string_view name, const Json& where) const {
    const auto it = nodes_.find(name);
    if (it == nodes_.end()) where.fail("the graph uses " + std::string(name) + " before it is defined");
    return it->second;
  }

  // ---- inputs ---------------------------------------------------------------------------------------------------------

  void read_input(const Json& input, size_t position) {
    const auto& [kind, value] = input.only();
    std::string_view name;
    if (kind == "as_tensor" || kind == "as_custom_obj")
      name = value.at("name").to_string();
    else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool")
      name = value.at("as_name").to_string();
    if (!name.empty()) {
      bind(name, graph_.placeholder(std::string(name), {}, name), input);
      return;
    }
    if (kind != "as_int" && kind != "as_float" && kind != "as_bool" && kind != "as_none" && kind != "as_string")
      input.fail("an input of kind " + std::string(kind) + ", which a graph cannot have");
    const std::vector<InputSpec>& specs = shared_.signature.input_specs;
    std::string constant = position < specs.size() ? specs[position].arg.name : std::string();
    if (constant.empty()) constant = "arg" + std::to_string(position);
    Node* node = graph_.placeholder(constant, {}, constant);
    node->meta.val = argument(input);
  }

  // ---- arguments ------------------------------------------------------------------------------------------------------

  template <class F>
  static Value list_of(const Json& items, F&& each) {
    Values out;
    out.reserve(items.items().size());
    for (const Json& x : items.items()) out.push_back(each(x));
    return list(std::move(out));
  }
  Value tensor(const Json& x) const { return reference(x.at("name").to_string(), x); }
  Value number(const Json& x) const {
    const auto& [kind, value] = x.only();
    if (kind == "as_name") return reference(value.to_string(), x);
    if (kind == "as_int") return value.to_int();
    if (kind == "as_float") return value.to_float();
    if (kind == "as_bool") return value.to_bool();
    x.fail("a symbolic argument of unknown kind: " + std::string(kind));
  }
  Value optional_tensor(const Json& x) const {
    const auto& [kind, value] = x.only();
    if (kind == "as_none") return {};
    if (kind != "as_tensor") x.fail("an optional tensor of unknown kind: " + std::string(kind));
    return tensor(value);
  }

  Value argument(const Json& arg) {
    const auto& [kind, x] = arg.only();
    if (kind == "as_tensor") return tensor(x);
    if (kind == "as_none") return {};
    if (kind == "as_int") return x.to_int();
    if (kind == "as_ints") return list_of(x, [](const Json& i) { return Value(i.to_int()); });
    if (kind == "as_bool") return x.to_bool();
    if (kind == "as_float") return x.to_float();
    if (kind == "as_tensors") return list_of(x, [&](const Json& t) { return tensor(t); });
    if (kind == "as_optional_tensors") return list_of(x, [&](const Json& t) { return optional_tensor(t); });
    if (kind == "as_optional_tensor") return optional_tensor(x);
    if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") return number(x);
    if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools")
      return list_of(x, [&](const Json& i) { return number(i); });
    if (kind == "as_floats") return list_of(x, [](const Json& i) { return Value(i.to_float()); });
    if (kind == "as_bools") return list_of(x, [](const Json& i) { return Value(i.to_bool()); });
    if (kind == "as_string") return x.to_string();
    if (kind == "as_strings") return list_of(x, [](const Json& i) { return Value(i.to_string()); });
    if (kind == "as_scalar_type") return dtype_from_number(x);
    if (kind == "as_memory_format") return memory_format_from_number(x);
    if (kind == "as_layout") return layout_from_number(x);
    if (kind == "as_device") return shared_.symbols.device(x);
    if (kind == "as_complex") return std::complex<double>(x.at("real").to_float(), x.at("imag").to_float());
    if (kind == "as_nested_tensors")
      return list_of(x, [&](const Json& inner) { return list_of(inner, [&](const Json& t) { return tensor(t); }); });
    if (kind == "as_int_lists")
      return list_of(x, [](const Json& inner) {
        Values items;
        for (const Json& i : inner.items()) items.emplace_back(i.to_int());
        return tuple(std::move(items));
      });
    if (kind == "as_float_lists")
      return list_of(x, [](const Json& inner) { return list_of(inner, [](const Json& i) { return Value(i.to_float()); }); });
    if (kind == "as_string_to_argument") {
      DictValue d;
      for (const JsonMember& m : x.members()) d.items.emplace_back(m.key, argument(m.value));
      return d;
    }
    if (kind == "as_operator") return operator_argument(std::string(x.to_string()));
    if (kind == "as_graph") return subgraph(x);
    if (kind == "as_custom_obj") {
      const std::string_view name = x.at("name").to_string();
      if (const auto it = nodes_.find(name); it != nodes_.end()) return it->second;
      for (const auto& [key, object] : shared_.objects)
        if (key == name) return custom_object(x);
      x.fail("the custom object " + std::string(name) + " is not in the archive");
    }
    arg.fail("an argument of unknown kind: " + std::string(kind));
  }

  Value subgraph(const Json& x) {
    const std::string name(x.at("name").to_string());
    children_.emplace_back(name, GraphReader(x.at("graph"), shared_).read());
    return graph_.get_attr(name, name);
  }

  struct Arguments {
    Values args;
    Kwargs kwargs;
  };
  static ArgumentPlace place(const Json& input) {
    const Json* kind = input.find("kind");
    if (!kind || kind->is_null()) return ArgumentPlace::unknown;
    return static_cast<ArgumentPlace>(kind->to_int());
  }

  // By the operator's schema, in its order.
  Arguments operator_arguments(const Schema& schema, const Json& inputs) {
    struct Given {
      std::string_view name;
      Value value;
      ArgumentPlace place;
      bool used = false;
    };
    std::vector<Given> given;
    for (const Json& input : inputs.items())
      given.push_back({input.at("name").to_string(), argument(input.at("arg")), place(input)});
    Arguments out;
    size_t used = 0;
    for (const SchemaArgument& a : schema.arguments) {
      const auto it = std::find_if(given.begin(), given.end(), [&](const Given& g) { return g.name == a.name && !g.used; });
      if (it == given.end()) continue;
      it->used = true;
      ++used;
      ArgumentPlace where = it->place;
      if (where == ArgumentPlace::unknown || (where == ArgumentPlace::keyword && is_python_keyword(a.name)))
        where = (!a.default_value && !a.keyword_only) || is_python_keyword(a.name) ? ArgumentPlace::positional
                                                                                   : ArgumentPlace::keyword;
      if (where == ArgumentPlace::positional)
        out.args.push_back(std::move(it->value));
      else
        out.kwargs.emplace_back(a.name, std::move(it->value));
    }
    if (used != given.size())
      for (const Given& g : given)
        if (!g.used) inputs.fail(schema.full_name() + " has no argument named " + std::string(g.name));
    return out;
  }
  Arguments plain_arguments(const Json& inputs, bool all_positional) {
    Arguments out;
    for (const Json& input : inputs.items()) {
      const std::string_view name = input.at("name").to_string();
      if (all_positional || name.empty() || place(input) == ArgumentPlace::positional)
        out.args.push_back(argument(input.at("arg")));
      else
        out.kwargs.emplace_back(name, argument(input.at("arg")));
    }
    return out;
  }

  // ---- nodes ----------------------------------------------------------------------------------------------------------

  const Target& target(std::string_view text) {
    const auto [it, fresh] = shared_.targets.try_emplace(text);
    if (fresh) it->second = Target::resolve(text);
    return it->second;
  }

  void read_node(const Json& json) {
    const std::string_view text = json.at("target").to_string();
    const Target& callee = target(text);
    const Json& inputs = json.at("inputs");
    const Json& outputs = json.at("outputs");
    const bool is_higher_order = text.starts_with(higher_order);
    const bool is_symbolic = symbolic_function_arguments(text) != nullptr;
    const bool is_unknown =
        callee.is_text() && (text.starts_with("torch.ops.") || text.starts_with("#")) && !is_higher_order;
    Arguments a = callee.op() ? operator_arguments(callee.op()->schema(), inputs) : plain_arguments(inputs, is_symbolic);

    std::string_view name;
    if (const Json* given = json.find("name"); given && !given->is_null()) name = given->to_string();
    // Files without names: a node with one result bears its name.
    if (name.empty() && outputs.items().size() == 1) name = result_name(outputs.items()[0]);
    Node* node = graph_.call_function(callee, std::move(a.args), std::move(a.kwargs), name);
    NodeMeta meta;
    if (const Json* metadata = json.find("metadata"); metadata && !metadata->is_null())
      shared_.metadata.read(*metadata, meta);
    if (is_higher_order)  // subgraphs have no metadata of their own
      for (size_t i = 0; i < node->num_input_nodes(); ++i)
        if (Node* input = node->input_node(i); input->kind() == NodeKind::get_attr) input->meta = meta;
    node->meta = meta;
    const Json* single = json.find("is_hop_single_tensor_return");
    read_results(outputs, node, meta, is_higher_order && !(single && !single->is_null() && single->to_bool()));
    if (is_unknown) keep_names(inputs, outputs, *node);
  }

  static void keep_names(const Json& inputs, const Json& outputs, Node& node) {
    Values names;
    for (const Json& input : inputs.items()) names.emplace_back(input.at("name").to_string());
    const bool gives_list = outputs.items().size() == 1 && outputs.items()[0].only().key == "as_tensors";
    node.meta.set(unknown_operator_key, dict({{"names", list(std::move(names))}, {"list", gives_list}}));
  }

  // Of an output that is one named value; empty for others.
  static std::string_view result_name(const Json& output) {
    const auto& [kind, value] = output.only();
    if (kind == "as_tensor") return value.at("name").to_string();
    if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") return value.at("as_name").to_string();
    return {};
  }

  void read_results(const Json& outputs, Node* node, const NodeMeta& meta, bool always_tuple) {
    const std::span<const Json> all = outputs.items();
    if (all.empty()) return;
    if (all.size() == 1) {
      const auto& [kind, value] = all[0].only();
      if (kind == "as_none") {
        node->rename(node->target().python_name() + "_unused");
        return;
      }
      if (const std::string_view name = result_name(all[0]); !name.empty() && !always_tuple) {
        bind(name, node, all[0]);
        return;
      }
      if (kind == "as_tensors") {
        Values vals;
        size_t i = 0;
        for (const Json& t : value.items()) vals.push_back(getitem(node, i++, t.at("name").to_string(), meta, t));
        node->meta.val = tuple(std::move(vals));
        nodes_.emplace(node->name(), node);
        return;
      }
    }
    Values vals;
    for (size_t i = 0; i < all.size(); ++i) vals.push_back(result(node, i, all[i], meta));
    node->meta.val = tuple(std::move(vals));
    nodes_.emplace(node->name(), node);
  }

  // One of several results; its value.
  Value result(Node* node, size_t index, const Json& output, const NodeMeta& meta) {
    const auto& [kind, value] = output.only();
    if (const std::string_view name = result_name(output); !name.empty()) return getitem(node, index, name, meta, output);
    if (kind == "as_none") {
      Node* item = graph_.call_function(getitem_, {node, index}, {}, "as_none");
      item->meta = meta;
      return {};
    }
    if (kind == "as_tensors") {
      Node* items = graph_.call_function(getitem_, {node, index});
      Values vals;
      size_t i = 0;
      for (const Json& t : value.items()) vals.push_back(getitem(items, i++, t.at("name").to_string(), meta, t));
      items->meta = meta;
      items->meta.val = list(std::move(vals));
      return items->meta.val;
    }
    output.fail("a result of kind " + std::string(kind) + ", which is not understood");
  }
  Value getitem(Node* node, size_t index, std::string_view name, const NodeMeta& meta, const Json& where) {
    Node* item = graph_.call_function(getitem_, {node, index}, {}, name);
    item->meta = meta;
    bind(name, item, where);
    return item->meta.val;
  }

  // ---- outputs --------------------------------------------------------------------------------------------------------

  void read_outputs() {
    Values results;
    Values vals;
    for (const Json& o : json_.at("outputs").items()) {
      results.push_back(argument(o));
      vals.push_back(results.back().is_node() ? results.back().to_node()->meta.val : results.back());
    }
    const Json* single = json_.find("is_single_tensor_return");
    const bool is_single = single && !single->is_null() && single->to_bool();
    if (is_single && results.size() != 1)
      json_.fail("a graph that returns a single tensor has " + std::to_string(results.size()) + " outputs");
    Node* output = graph_.output(is_single ? results[0] : tuple(std::move(results)));
    output->meta.val = is_single ? vals[0] : tuple(std::move(vals));
  }

  const Json& json_;
  Shared& shared_;
  Graph graph_;
  Attributes children_;
  struct ViewHash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  std::unordered_map<std::string, Node*, ViewHash, std::equal_to<>> nodes_;  // by the file's names
  std::unordered_map<std::string_view, MetaJson> metas_;
  Target getitem_ = get_function("operator.getitem");
};

}  // namespace

std::shared_ptr<GraphModule> read_graph(const Json& graph, const GraphSignature& signature, SymbolReader& symbols,
                                        const std::vector<std::pair<std::string, Value>>& objects) {
  Shared shared{signature, symbols, objects};
  return GraphReader(graph, shared).read();
}

}  // namespace calque::pt2
