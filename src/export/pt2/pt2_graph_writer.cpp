// A graph in the file's form: getitem nodes become names of their producer's results, subgraphs are written inside the
// arguments that name them, and arguments equal to nothing but what the node has are written: no defaults are added.
#include <algorithm>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/graph/graph_module.h"
#include "calque/graph/stack_trace.h"
#include "calque/sym/srepr.h"
#include "export/pt2/pt2_format.h"

namespace calque::pt2 {
namespace {

constexpr std::string_view higher_order_prefix = "torch.ops.higher_order.";
constexpr int positional = 1;
constexpr int keyword = 2;

// ---- symbolic values --------------------------------------------------------------------------------------------------

void write_expression(JsonWriter& out, const std::string& expression, const Value& hint) {
  out.key("as_expr");
  out.begin_object();
  out.member("expr_str", expression);
  out.key("hint");
  if (hint.is_none()) {
    out.null();
  } else {
    out.begin_object();
    if (hint.kind() == Value::Kind::floating)
      out.member("as_float", hint.to_float());
    else
      out.member("as_int", hint.to_int());
    out.end_object();
  }
  out.end_object();
}

// Symbols that turned out to be others, or numbers. A program from a file has none, and its expressions are kept as they are.
bool replaces_symbols(const ShapeEnv& env) {
  return std::any_of(env.symbols().begin(), env.symbols().end(),
                     [&](const Symbol& s) { return env.replacement(s.name).has_value(); });
}

std::string sym_int_json(SymInt value) {
  JsonWriter out;
  out.begin_object();
  const std::shared_ptr<ShapeEnv> env = env_of(value);
  if (!env) {
    out.member("as_int", value.as_int());
  } else {
    const SymInt known = replaces_symbols(*env) ? env->simplify(value) : value;
    if (!known.is_symbolic()) {
      out.member("as_int", known.as_int());
    } else {
      const std::optional<int64_t> hint = env->hint(value);
      write_expression(out, srepr(value), hint ? Value(*hint) : Value());
    }
  }
  out.end_object();
  return out.take();
}

std::string sym_float_json(SymFloat value) {
  JsonWriter out;
  out.begin_object();
  if (!value.is_symbolic()) {
    out.member("as_float", value.as_float());
  } else {
    const std::optional<double> hint = env_of_float(value)->hint(value);
    write_expression(out, srepr(value), hint ? Value(*hint) : Value());
  }
  out.end_object();
  return out.take();
}

std::string sym_bool_json(SymBool value) {
  JsonWriter out;
  out.begin_object();
  if (!value.is_symbolic())
    out.member("as_bool", value.plain());
  else
    write_expression(out, srepr(value), Value());
  out.end_object();
  return out.take();
}

// Sizes repeat all over a program; each expression is printed once.
class MetaWriter {
 public:
  void write(JsonWriter& out, const Tensor& t) {
    out.begin_object();
    out.member("dtype", number_of(t.dtype()));
    write_list(out, "sizes", t.sym_sizes());
    out.member("requires_grad", t.requires_grad());
    out.key("device");
    out.begin_object();
    out.member("type", Device(t.device().type).str());
    out.key("index");
    if (t.device().index < 0)
      out.null();
    else
      out.value(static_cast<int64_t>(t.device().index));
    out.end_object();
    write_list(out, "strides", t.sym_strides());
    out.key("storage_offset");
    write(out, t.sym_storage_offset());
    out.member("layout", number_of(t.layout()));
    out.end_object();
  }
  void write(JsonWriter& out, SymInt value) {
    std::string& text = printed_[value.word()];
    if (text.empty()) text = sym_int_json(value);
    out.raw(text);
  }

 private:
  void write_list(JsonWriter& out, const char* key, SymIntList values) {
    out.key(key);
    out.begin_array();
    for (const SymInt v : values) write(out, v);
    out.end_array();
  }
  std::unordered_map<int64_t, std::string> printed_;
};

// ---- the graph --------------------------------------------------------------------------------------------------------

bool is_getitem(const Node& n) {
  return n.kind() == NodeKind::call_function && n.target().function() && n.target().function()->name() == "operator.getitem";
}

class GraphWriter {
 public:
  GraphWriter(const GraphModule& module, MetaWriter& metas) : module_(module), metas_(metas) {}

  void write(JsonWriter& out) {
    JsonWriter inputs;
    JsonWriter outputs;
    JsonWriter nodes;
    for (JsonWriter* w : {&inputs, &nodes}) w->begin_array();
    for (JsonWriter* w : {&tensors_, &ints_, &bools_, &objects_, &floats_}) w->begin_object();
    bool is_single = false;
    for (const Node* n : module_.graph().nodes()) {
      try {
        switch (n->kind()) {
          case NodeKind::placeholder: write_input(inputs, *n); break;
          case NodeKind::call_function: write_node(nodes, *n); break;
          case NodeKind::get_attr: break;
          case NodeKind::output: is_single = write_outputs(outputs, *n); break;
          case NodeKind::call_module:
          case NodeKind::call_method:
            throw UserError("a program that is saved has calls of functions only, found " + std::string(name(n->kind())));
        }
      } catch (Error& e) {
        e.prepend("cannot save node " + n->name() + ": ");
        throw;
      }
    }
    for (JsonWriter* w : {&inputs, &nodes}) w->end_array();
    for (JsonWriter* w : {&tensors_, &ints_, &bools_, &objects_, &floats_}) w->end_object();
    const auto part = [&](const char* key, const JsonWriter& w) {
      out.key(key);
      out.raw(w.text());
    };
    out.begin_object();
    part("inputs", inputs);
    part("outputs", outputs);
    part("nodes", nodes);
    part("tensor_values", tensors_);
    part("sym_int_values", ints_);
    part("sym_bool_values", bools_);
    out.member("is_single_tensor_return", is_single);
    part("custom_obj_values", objects_);
    part("sym_float_values", floats_);
    out.end_object();
  }

 private:
  enum class Known : uint8_t { tensor, integer, floating, boolean };  // how a node's value is referred to

  // ---- results of nodes ---------------------------------------------------------------------------------------------

  void tensor_name(JsonWriter& out, const std::string& name, const Tensor& val) {
    tensors_.key(name);
    metas_.write(tensors_, val);
    out.begin_object();
    out.member("name", name);
    out.end_object();
  }

  // {"as_tensor": {"name": ...}} and what is known of the value.
  void write_result(JsonWriter& out, const std::string& name, const Node* node, const Value& val) {
    const auto symbol = [&](const char* kind, JsonWriter& values, const std::string& json, Known known) {
      out.begin_object();
      out.key(kind);
      out.begin_object();
      out.member("as_name", name);
      out.end_object();
      out.end_object();
      values.key(name);
      values.raw(json);
      if (node) known_[node] = known;
    };
    if (val.kind() == Value::Kind::boolean)
      return symbol("as_sym_bool", bools_, sym_bool_json(val.to_sym_bool()), Known::boolean);
    if (val.kind() == Value::Kind::integer)
      return symbol("as_sym_int", ints_, sym_int_json(val.to_sym_int()), Known::integer);
    if (val.kind() == Value::Kind::floating)
      return symbol("as_sym_float", floats_, sym_float_json(val.to_sym_float()), Known::floating);
    if (!val.is_none() && !val.is_tensor())
      throw UserError("its value is " + std::string(Value::kind_name(val.kind())) + ", which a file cannot describe");
    out.begin_object();
    if (val.is_none()) {
      out.member("as_none", true);
    } else {
      out.key("as_tensor");
      tensor_name(out, name, val.to_tensor());
    }
    out.end_object();
  }

  // The getitem node that takes result `index`; of several the first, and the others are known by its name.
  const Node* taker(const Node& node, size_t index) {
    const Node* found = nullptr;
    for (const Node* user : node.users()) {
      if (!is_getitem(*user))
        throw UserError("it gives several values, but " + user->name() + " uses them without a getitem");
      const Value& at = user->args().at(1);
      if (at.kind() != Value::Kind::integer || at.to_int() != static_cast<int64_t>(index)) continue;
      if (!found)
        found = user;
      else
        duplicates_[user] = found;
    }
    return found;
  }
  static std::string unused(const Node& node, size_t index) { return node.name() + "_unused_" + std::to_string(index); }

  void write_tensor_list(JsonWriter& out, const Node* producer, const std::string& unused_prefix, const Values& vals) {
    out.begin_object();
    out.key("as_tensors");
    out.begin_array();
    for (size_t i = 0; i < vals.size(); ++i) {
      if (vals[i].is_none()) continue;
      const Node* user = producer ? taker(*producer, i) : nullptr;
      tensor_name(out, user ? user->name() : unused_prefix + std::to_string(i), vals[i].to_tensor());
    }
    out.end_array();
    out.end_object();
  }

  void write_several(JsonWriter& out, const Node& node, const Values& vals) {
    out.begin_array();
    for (size_t i = 0; i < vals.size(); ++i) {
      const Node* user = taker(node, i);
      const std::string name = user ? user->name() : unused(node, i);
      if (vals[i].kind() == Value::Kind::list || vals[i].kind() == Value::Kind::tuple)
        write_tensor_list(out, user, user ? user->name() + "_unused_" : unused(node, i) + "_", vals[i].to_items());
      else
        write_result(out, name, user, vals[i]);
    }
    out.end_array();
  }
  void write_one(JsonWriter& out, const Node& node) {
    out.begin_array();
    write_result(out, node.name(), &node, node.meta.val);
    out.end_array();
  }
  void write_list(JsonWriter& out, const Node& node) {
    out.begin_array();
    write_tensor_list(out, &node, node.name() + "_unused_", node.meta.val.to_items());
    out.end_array();
  }
  static bool is_sequence(const Value& v) { return v.kind() == Value::Kind::tuple || v.kind() == Value::Kind::list; }

  void write_results(JsonWriter& out, const Node& node) {
    const Value& val = node.meta.val;
    if (const Operator* op = node.op()) {
      const std::vector<SchemaArgument>& returns = op->schema().returns;
      if (returns.empty()) {
        out.begin_array();
        out.end_array();
        return;
      }
      if (returns.size() == 1 && returns[0].type.list && returns[0].type.kind == SchemaType::Kind::tensor)
        return write_list(out, node);
      return returns.size() == 1 ? write_one(out, node) : write_several(out, node, val.to_items());
    }
    if (const Value* unknown = node.meta.find(unknown_operator_key)) {
      if (unknown->to_dict().find("list")->to_bool()) return write_list(out, node);
      if (val.is_none() && node.users().empty()) {
        out.begin_array();
        out.end_array();
        return;
      }
    }
    is_sequence(val) ? write_several(out, node, val.to_items()) : write_one(out, node);
  }

  // ---- arguments ----------------------------------------------------------------------------------------------------

  template <class T>
  static void tagged(JsonWriter& out, const char* kind, const T& value) {
    out.begin_object();
    out.member(kind, value);
    out.end_object();
  }
  static void tagged_name(JsonWriter& out, const char* kind, const char* key, const std::string& name) {
    out.begin_object();
    out.key(kind);
    out.begin_object();
    out.member(key, name);
    out.end_object();
    out.end_object();
  }
  Known known(const Node* n) const {
    const auto it = known_.find(n);
    return it == known_.end() ? Known::tensor : it->second;
  }
  const std::string& tensor_reference(const Node* n) const {
    if (n->kind() == NodeKind::get_attr)
      throw UserError("it reads the attribute " + n->target().text() +
                      "; tensors of a saved program are inputs of its graph");
    const auto it = duplicates_.find(n);
    return (it == duplicates_.end() ? n : it->second)->name();
  }

  void write_node_argument(JsonWriter& out, const Node* n) {
    if (n->kind() == NodeKind::get_attr) {
      const auto* child = dynamic_cast<const GraphModule*>(module_.find_submodule(n->target().text()));
      if (!child)
        throw UserError("it reads the attribute " + n->target().text() +
                        ", which is no graph; tensors of a saved program are inputs of its graph");
      out.begin_object();
      out.key("as_graph");
      out.begin_object();
      out.member("name", n->target().text());
      out.key("graph");
      GraphWriter(*child, metas_).write(out);
      out.end_object();
      out.end_object();
      return;
    }
    switch (known(n)) {
      case Known::integer: return tagged_name(out, "as_sym_int", "as_name", n->name());
      case Known::floating: return tagged_name(out, "as_sym_float", "as_name", n->name());
      case Known::boolean: return tagged_name(out, "as_sym_bool", "as_name", n->name());
      case Known::tensor: break;
    }
    if (const Value& val = n->meta.val; val.kind() == Value::Kind::structure && val.to_struct().type == "CustomObjArgument")
      return write_object(out, n->name(), val.to_struct());
    tagged_name(out, "as_tensor", "name", tensor_reference(n));
  }

  void write_argument(JsonWriter& out, const Value& v, const SchemaType* type = nullptr) {
    switch (v.kind()) {
      case Value::Kind::node: return write_node_argument(out, v.to_node());
      case Value::Kind::none: return tagged(out, "as_none", true);
      case Value::Kind::boolean: return tagged(out, "as_bool", v.to_bool());
      case Value::Kind::integer: return tagged(out, "as_int", plain(v));
      case Value::Kind::floating: return tagged(out, "as_float", v.to_float());
      case Value::Kind::string: return tagged(out, "as_string", v.to_string());
      case Value::Kind::dtype: return tagged(out, "as_scalar_type", number_of(v.to_dtype()));
      case Value::Kind::layout: return tagged(out, "as_layout", number_of(v.to_layout()));
      case Value::Kind::memory_format: return tagged(out, "as_memory_format", number_of(v.to_memory_format()));
      case Value::Kind::complex:
        out.begin_object();
        out.key("as_complex");
        out.begin_object();
        out.member("real", v.to_complex().real());
        out.member("imag", v.to_complex().imag());
        out.end_object();
        return out.end_object();
      case Value::Kind::device:
        out.begin_object();
        out.key("as_device");
        out.begin_object();
        out.member("type", Device(v.to_device().type).str());
        out.key("index");
        if (v.to_device().index < 0)
          out.null();
        else
          out.value(static_cast<int64_t>(v.to_device().index));
        out.end_object();
        return out.end_object();
      case Value::Kind::list:
      case Value::Kind::tuple: return write_sequence(out, v.to_items(), type);
      case Value::Kind::dict:
        out.begin_object();
        out.key("as_string_to_argument");
        out.begin_object();
        for (const auto& [key, item] : v.to_dict().items) {
          out.key(key.to_string());
          write_argument(out, item);
        }
        out.end_object();
        return out.end_object();
      case Value::Kind::structure:
        if (const std::string* name = as_operator_argument(v)) return tagged(out, "as_operator", *name);
        if (v.to_struct().type == "CustomObjArgument")
          return write_object(out, v.to_struct().items.at(0).to_string(), v.to_struct());
        break;
      case Value::Kind::slice:
      case Value::Kind::tensor:
      case Value::Kind::generator: break;
    }
    throw UserError("an argument of kind " + std::string(Value::kind_name(v.kind())) + " cannot be saved");
  }
  static int64_t plain(const Value& v) {
    if (v.to_sym_int().is_symbolic())
      throw UserError("the symbolic number " + v.str() + " is an argument, expected the node that computes it");
    return v.to_int();
  }

  static void write_object(JsonWriter& out, const std::string& name, const StructValue& object) {
    out.begin_object();
    out.key("as_custom_obj");
    out.begin_object();
    out.member("name", name);
    out.member("class_fqn", object.items.at(1).to_string());
    out.end_object();
    out.end_object();
  }

  template <class F>
  static void write_items(JsonWriter& out, const char* kind, const Values& items, F&& each) {
    out.begin_object();
    out.key(kind);
    out.begin_array();
    for (const Value& item : items) each(item);
    out.end_array();
    out.end_object();
  }

  void write_sequence(JsonWriter& out, const Values& items, const SchemaType* type) {
    const auto all = [&](auto&& test) { return std::all_of(items.begin(), items.end(), test); };
    const auto is = [](Value::Kind kind) { return [kind](const Value& v) { return v.kind() == kind; }; };
    const auto numbers = [&](Known k, Value::Kind kind) {
      return [this, k, kind](const Value& v) { return v.kind() == kind || (v.is_node() && known(v.to_node()) == k); };
    };
    if (items.empty()) return write_items(out, empty_list_kind(type), items, [](const Value&) {});
    if (type && type->kind == SchemaType::Kind::floating &&
        all([](const Value& v) { return v.kind() == Value::Kind::floating || v.kind() == Value::Kind::integer; }))
      return write_items(out, "as_floats", items, [&](const Value& v) { out.value(v.to_float()); });
    if (all(is(Value::Kind::boolean)))
      return write_items(out, "as_bools", items, [&](const Value& v) { out.value(v.to_bool()); });
    if (all(is(Value::Kind::integer)))
      return write_items(out, "as_ints", items, [&](const Value& v) { out.value(plain(v)); });
    if (all(is(Value::Kind::floating)))
      return write_items(out, "as_floats", items, [&](const Value& v) { out.value(v.to_float()); });
    if (all(is(Value::Kind::string)))
      return write_items(out, "as_strings", items, [&](const Value& v) { out.value(v.to_string()); });
    if (all(numbers(Known::integer, Value::Kind::integer)))
      return write_items(out, "as_sym_ints", items, [&](const Value& v) {
        v.is_node() ? tagged(out, "as_name", v.to_node()->name()) : tagged(out, "as_int", plain(v));
      });
    if (all(numbers(Known::floating, Value::Kind::floating)))
      return write_items(out, "as_sym_floats", items, [&](const Value& v) {
        v.is_node() ? tagged(out, "as_name", v.to_node()->name()) : tagged(out, "as_float", v.to_float());
      });
    if (all(numbers(Known::boolean, Value::Kind::boolean)))
      return write_items(out, "as_sym_bools", items, [&](const Value& v) {
        v.is_node() ? tagged(out, "as_name", v.to_node()->name()) : tagged(out, "as_bool", v.to_bool());
      });
    if (all(is(Value::Kind::node)))
      return write_items(out, "as_tensors", items,
                         [&](const Value& v) { tagged(out, "name", tensor_reference(v.to_node())); });
    const auto is_node_list = [](const Value& v) {
      return is_sequence(v) &&
             std::all_of(v.to_items().begin(), v.to_items().end(), [](const Value& x) { return x.is_node(); });
    };
    if (all(is_node_list))
      return write_nested(out, "as_nested_tensors", items,
                          [&](const Value& x) { tagged(out, "name", tensor_reference(x.to_node())); });
    if (all([](const Value& v) { return v.is_node() || v.is_none(); }))
      return write_items(out, "as_optional_tensors", items, [&](const Value& v) {
        if (v.is_none()) return tagged(out, "as_none", true);
        tagged_name(out, "as_tensor", "name", tensor_reference(v.to_node()));
      });
    const auto list_of = [&](Value::Kind kind) {
      return [kind](const Value& v) {
        return is_sequence(v) &&
               std::all_of(v.to_items().begin(), v.to_items().end(), [kind](const Value& x) { return x.kind() == kind; });
      };
    };
    if (all(list_of(Value::Kind::integer)))
      return write_nested(out, "as_int_lists", items, [&](const Value& x) { out.value(plain(x)); });
    if (all(list_of(Value::Kind::floating)))
      return write_nested(out, "as_float_lists", items, [&](const Value& x) { out.value(x.to_float()); });
    const std::string kinds = join(items, ", ", [](const Value& v) { return std::string(Value::kind_name(v.kind())); });
    throw UserError("a list of " + kinds + " cannot be saved; a file's lists hold values of one kind");
  }
  template <class F>
  static void write_nested(JsonWriter& out, const char* kind, const Values& items, F&& each) {
    write_items(out, kind, items, [&](const Value& v) {
      out.begin_array();
      for (const Value& x : v.to_items()) each(x);
      out.end_array();
    });
  }
  static const char* empty_list_kind(const SchemaType* type) {
    if (!type) return "as_tensors";
    switch (type->kind) {
      case SchemaType::Kind::boolean:
      case SchemaType::Kind::sym_bool: return "as_bools";
      case SchemaType::Kind::integer:
      case SchemaType::Kind::sym_int: return "as_ints";
      case SchemaType::Kind::floating:
      case SchemaType::Kind::scalar: return "as_floats";
      case SchemaType::Kind::string: return "as_strings";
      case SchemaType::Kind::tensor:
      case SchemaType::Kind::dtype:
      case SchemaType::Kind::device:
      case SchemaType::Kind::layout:
      case SchemaType::Kind::memory_format:
      case SchemaType::Kind::generator:
      case SchemaType::Kind::complex: break;
    }
    return "as_tensors";
  }

  void write_named(JsonWriter& out, std::string_view name, const Value& v, int kind, const SchemaType* type = nullptr) {
    out.begin_object();
    out.member("name", name);
    out.key("arg");
    write_argument(out, v, type);
    out.member("kind", kind);
    out.end_object();
  }

  void write_arguments(JsonWriter& out, const Node& node) {
    out.begin_array();
    if (const Operator* op = node.op()) {
      const std::vector<SchemaArgument>& arguments = op->schema().arguments;
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (const Value* v = node.find_kwarg(arguments[i].name))
          write_named(out, arguments[i].name, *v, keyword, &arguments[i].type);
        else if (!arguments[i].keyword_only && i < node.args().size())
          write_named(out, arguments[i].name, node.args()[i], positional, &arguments[i].type);
      }
    } else if (const std::vector<std::string>* names = symbolic_function_arguments(node.target().str())) {
      for (size_t i = 0; i < std::min(names->size(), node.args().size()); ++i)
        write_named(out, (*names)[i], node.args()[i], positional);
    } else if (const Value* unknown = node.meta.find(unknown_operator_key)) {
      size_t next = 0;
      for (const Value& name : unknown->to_dict().find("names")->to_items()) {
        if (const Value* v = node.find_kwarg(name.to_string()))
          write_named(out, name.to_string(), *v, keyword);
        else if (next < node.args().size())
          write_named(out, name.to_string(), node.args()[next++], positional);
      }
    } else {
      for (const Value& v : node.args()) write_named(out, "", v, positional);
      for (const auto& [name, v] : node.kwargs()) write_named(out, name, v, keyword);
    }
    out.end_array();
  }

  // ---- nodes --------------------------------------------------------------------------------------------------------

  void write_input(JsonWriter& out, const Node& node) {
    const Value& val = node.meta.val;
    if (val.is_tensor() || val.expr()) return write_result(out, node.name(), &node, val);
    if (val.kind() == Value::Kind::structure && val.to_struct().type == "CustomObjArgument") {
      write_node_argument(out, &node);
      objects_.key(node.name());
      objects_.begin_object();
      objects_.member("name", val.to_struct().items.at(0).to_string());
      objects_.member("class_fqn", val.to_struct().items.at(1).to_string());
      return objects_.end_object();
    }
    write_argument(out, val);
  }

  static std::string target_name(const Target& target) {
    const std::string name = target.qualified_name();
    return name.starts_with("operator.") ? "_" + name : name;
  }

  void write_node(JsonWriter& out, const Node& node) {
    if (is_getitem(node)) return;
    const std::string target = target_name(node.target());
    const bool is_higher_order = target.starts_with(higher_order_prefix);
    // Results first: the names of symbolic values decide how later arguments are written, and duplicates of getitems.
    JsonWriter results;
    write_results(results, node);
    out.begin_object();
    out.member("target", target);
    out.key("inputs");
    write_arguments(out, node);
    out.key("outputs");
    out.raw(results.text());
    out.key("metadata");
    write_metadata(out, node);
    out.key("is_hop_single_tensor_return");
    if (is_higher_order)
      out.value(node.meta.val.is_tensor());
    else
      out.null();
    out.member("name", node.name());
    out.end_object();
  }

  static void write_metadata(JsonWriter& out, const Node& node) {
    const NodeMeta& meta = node.meta;
    out.begin_object();
    if (meta.stack_trace && !meta.stack_trace->empty())
      out.member("stack_trace", *meta.stack_trace);
    else if (meta.location.line() != 0)
      out.member("stack_trace", calque::stack_trace(meta.location));
    if (meta.nn_module_stack && !meta.nn_module_stack->empty()) {
      std::string text =
          join(*meta.nn_module_stack, ";", [](const ModuleStackEntry& e) { return e.key + "," + e.path + "," + e.type; });
      out.member("nn_module_stack", text);
    }
    if (meta.source_fn_stack && !meta.source_fn_stack->empty()) {
      const std::string text = join(*meta.source_fn_stack, ";", [](const SourceFn& f) { return f.name + "," + f.target; });
      out.member("source_fn_stack", text);
    }
    if (meta.torch_fn) out.member("torch_fn", meta.torch_fn->first + ";" + meta.torch_fn->second);
    if (const Value* custom = meta.find("custom");
        custom && custom->kind() == Value::Kind::dict && !custom->to_dict().items.empty()) {
      JsonWriter json;
      write_json(json, *custom);
      out.member("custom", json.text());
    }
    if (const Value* from = meta.find("from_node"); from && from->kind() == Value::Kind::string)
      out.member("from_node", from->to_string());
    out.end_object();
  }
  bool write_outputs(JsonWriter& out, const Node& node) {
    const Value& result = node.args().at(0);
    out.begin_array();
    if (!is_sequence(result)) {
      write_argument(out, result);
      out.end_array();
      return true;
    }
    for (const Value& v : result.to_items()) write_argument(out, v);
    out.end_array();
    return false;
  }

  const GraphModule& module_;
  MetaWriter& metas_;
  JsonWriter tensors_, ints_, bools_, objects_, floats_;
  std::unordered_map<const Node*, Known> known_;
  std::unordered_map<const Node*, const Node*> duplicates_;
};

}  // namespace

void write_tensor_meta(JsonWriter& out, const Tensor& tensor) { MetaWriter().write(out, tensor); }

void write_graph(JsonWriter& out, const GraphModule& module) {
  MetaWriter metas;
  GraphWriter(module, metas).write(out);
}

}  // namespace calque::pt2
