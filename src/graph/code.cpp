#include "calque/graph/code.h"

#include <array>
#include <span>
#include <unordered_map>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/graph/graph.h"
#include "calque/graph/stack_trace.h"
#include "calque/graph/text.h"
#include "value_print.h"

namespace calque {
namespace {

// How FX writes calls of Python's operators.
struct OperatorForm {
  std::string_view name, form;
};
constexpr OperatorForm magic_methods[] = {
    {"eq", "{} == {}"}, {"ne", "{} != {}"},  {"lt", "{} < {}"},        {"gt", "{} > {}"},      {"le", "{} <= {}"},
    {"ge", "{} >= {}"}, {"pos", "+{}"},      {"neg", "-{}"},           {"invert", "~{}"},      {"add", "{} + {}"},
    {"sub", "{} - {}"}, {"mul", "{} * {}"},  {"floordiv", "{} // {}"}, {"truediv", "{} / {}"}, {"div", "{} / {}"},
    {"mod", "{} % {}"}, {"pow", "{} ** {}"}, {"lshift", "{} << {}"},   {"rshift", "{} >> {}"}, {"and_", "{} & {}"},
    {"or_", "{} | {}"}, {"xor", "{} ^ {}"},  {"getitem", "{}[{}]"},    {"matmul", "{} @ {}"},
};
constexpr OperatorForm inplace_methods[] = {
    {"iadd", "{} += {}"},  {"iand", "{} &= {}"},       {"ifloordiv", "{} //= {}"}, {"ilshift", "{} <<= {}"},
    {"imod", "{} %= {}"},  {"imul", "{} *= {}"},       {"imatmul", "{} @= {}"},    {"ior", "{} |= {}"},
    {"ipow", "{} **= {}"}, {"irshift", "{} >>= {}"},   {"isub", "{} -= {}"},       {"itruediv", "{} /= {}"},
    {"ixor", "{} ^= {}"},  {"setitem", "{}[{}] = {}"},
};

template <size_t n>
std::string_view find_form(const OperatorForm (&forms)[n], const Function* f) {
  constexpr std::string_view prefix = "operator.";
  if (!f || !f->name().starts_with(prefix)) return {};
  for (const OperatorForm& form : forms)
    if (form.name == f->short_name()) return form.form;
  return {};
}

std::string filled(std::string_view form, const std::vector<std::string>& args, const std::string& name) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form.compare(i, 2, "{}") == 0) {
      if (next == args.size()) throw UserError("python_code: node " + name + " has too few arguments for its operator");
      out += args[next++];
      ++i;
    } else {
      out += form[i];
    }
  }
  return out;
}

bool is_identifier(std::string_view s) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  for (const char c : s)
    if (!(c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
          static_cast<unsigned char>(c) >= 0x80))
      return false;
  return true;
}

// self.layers.0 is getattr(self.layers, "0").
std::string format_target(std::string base, std::string_view target) {
  while (true) {
    const std::string item(target.substr(0, target.find('.')));
    base = is_identifier(item) ? base + "." + item : "getattr(" + base + ", \"" + item + "\")";
    if (item.size() == target.size()) return base;
    target.remove_prefix(item.size() + 1);
  }
}

bool is_from_torch(std::string_view name) { return name == "torch" || name.starts_with("torch."); }

// "File: a.py:3 in forward, code: return x" from the innermost frame of a Python traceback.
std::string summary_of_trace(const std::string& trace) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin <= trace.size();) {
    const size_t end = std::min(trace.find('\n', begin), trace.size());
    std::string line = trace.substr(begin, end - begin);
    const size_t first = line.find_first_not_of(" \t\r");
    const size_t last = line.find_last_not_of(" \t\r");
    lines.push_back(first == std::string::npos ? "" : line.substr(first, last - first + 1));
    begin = end + 1;
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  while (!lines.empty() && lines.front().empty()) lines.erase(lines.begin());
  for (size_t i = lines.size() < 2 ? 0 : lines.size() - 1; i-- > 0;) {
    const std::string& line = lines[i];
    const size_t middle = line.rfind("\", line ");
    if (!line.starts_with("File \"") || middle == std::string::npos) continue;
    const size_t number = middle + 8;
    const size_t in = line.find(", in ", number);
    if (in == std::string::npos) continue;
    return "File: " + line.substr(6, middle - 6) + ":" + line.substr(number, in - number) + " in " + line.substr(in + 5) +
           ", code: " + lines[i + 1];
  }
  return {};
}

class CodeGenerator {
 public:
  CodeGenerator(const Graph& graph, std::string_view root, const CodeOptions& options)
      : graph_(graph), root_(root), options_(options) {
    for (const std::string_view name : {"inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"})
      names_.create_name(name, true);
    print_.node = [this](const Node& n) { return name_of(n); };
    print_.structure = [this](const StructValue& s) { return structure(s); };
    print_.leaf = [this](const Value& v) { return leaf(v); };
    plain_.node = print_.node;
    print_.dict = [this](const Value& v) { return blue(plain_(v)); };
  }

  std::string source() {
    find_last_uses();
    for (const Node* n : graph_.nodes()) {
      if (options_.verbose) append_summary(*n);
      emit(*n);
      append_deletions(*n);
    }
    if (graph_.nodes().empty()) body_ += "pass\n";
    std::string prologue = definition();
    body_.erase(0, std::min(body_.find_first_not_of('\n'), body_.size()));
    std::string code = "    ";
    for (const char c : body_) {
      code += c;
      if (c == '\n') code += "    ";
    }
    return "\n\n\n" + prologue + "\n" + code;
  }

 private:
  std::string name_of(const Node& n) {
    std::string& name = node_names_[&n];
    if (name.empty()) name = names_.create_name(n.name());
    return name;
  }

  // The name under which code refers to a function or type of this qualified name.
  std::string global(const std::string& qualified, bool is_builtin = false) {
    if (is_from_torch(qualified)) return qualified;
    std::string& name = globals_[qualified];
    if (name.empty()) name = names_.create_name(qualified, is_builtin);
    return name;
  }

  std::string paint(std::string_view code, const std::string& text) const {
    return options_.colored ? std::string(code) + text + "\033[0m" : text;
  }
  std::string blue(const std::string& text) const { return paint("\033[34m", text); }

  std::string leaf(const Value& v) {
    if (v.is_tensor())
      return "torch.Tensor(size=" + str(v.to_tensor().sym_sizes()) + ", dtype=" + std::string(name(v.to_tensor().dtype())) +
             ")";
    return blue(v.str());
  }
  std::string structure(const StructValue& s) {
    if (s.type == "builtins.Ellipsis") return blue("Ellipsis");
    if (s.type == "torch._ops.OpOverload") return s.context;  // an operator as an argument
    if (s.type != "collections.namedtuple") return blue(plain_(Value(s)));
    const std::string type = s.context.size() > 2 ? s.context.substr(1, s.context.size() - 2) : s.type;
    return global(type) + plain_.tuple(s.items);
  }

  std::string arguments(const Values& args, const Kwargs& kwargs, size_t from = 0) {
    std::string out;
    for (size_t i = from; i < args.size(); ++i) out += (out.empty() ? "" : ", ") + print_(args[i]);
    for (const auto& [key, v] : kwargs) out += (out.empty() ? "" : ", ") + key + " = " + print_(v);
    return out;
  }

  void find_last_uses() {
    std::vector<bool> seen(graph_.id_bound());
    last_uses_.resize(graph_.id_bound());
    for (const Node* n : graph_.nodes().reversed())
      for (size_t i = 0; i < n->num_input_nodes(); ++i) {
        const Node* input = n->input_node(i);
        if (&input->graph() != &graph_ || seen[input->id()]) continue;
        seen[input->id()] = true;
        last_uses_[n->id()].push_back(input);
      }
  }

  void append_deletions(const Node& n) {
    if (n.kind() == NodeKind::placeholder) return;
    std::vector<const Node*> gone;
    if (n.kind() != NodeKind::output) {
      gone = last_uses_[n.id()];
      if (n.users().empty()) gone.push_back(&n);
    }
    if (!gone.empty()) {
      std::string list;
      for (const Node* g : gone) list += name_of(*g) + " = ";
      body_ += ";  " + paint("\033[2m", list + "None");
    }
    body_ += "\n";
  }

  void append_summary(const Node& n) {
    if (n.kind() == NodeKind::placeholder || n.kind() == NodeKind::output) return;
    std::string extra;
    for (const std::string& key : options_.additional_meta)
      if (const Value* v = n.meta.find(key)) extra += (extra.empty() ? "" : ", ") + key + ": " + python_str(*v);
    if (!extra.empty()) extra = "# " + extra + " ";
    std::string summary = "\n" + paint("\033[2m", extra + "#" + annotation(n) + " " + origin(n)) + "\n";
    if (summary == last_summary_) return;
    body_ += summary;
    last_summary_ = std::move(summary);
  }
  static std::string annotation(const Node& n) {
    const Value* custom = n.meta.find("custom");
    if (!custom || custom->kind() != Value::Kind::dict || custom->to_dict().items.empty()) return {};
    constexpr size_t longest = 40;
    DictValue shown = custom->to_dict();
    for (auto& [key, v] : shown.items)
      if (const std::string text = python_str(v); text.size() > longest) v = Value(text.substr(0, longest) + "...");
    return " Annotation: " + Value(std::move(shown)).str();
  }
  static std::string origin(const Node& n) {
    if (n.meta.stack_trace)
      if (std::string s = summary_of_trace(*n.meta.stack_trace); !s.empty()) return s;
    if (n.meta.location.line() != 0) return summary_of_trace(stack_trace(n.meta.location));
    return "No stacktrace found for following nodes";
  }

  std::string type_annotation(const Node& n) {
    if (options_.verbose) {
      const Value& val = n.meta.val;
      if (val.is_tensor()) {
        const Tensor& t = val.to_tensor();
        std::string text = paint("\033[31m", std::string(dtype_abbreviation(t.dtype()))) + blue(str(t.sym_sizes()));
        text += paint("\033[2m\033[34m", options_.include_stride ? str(t.sym_strides()) : "");
        text += paint("\033[2m\033[32m", options_.include_device ? t.device().str() : "");
        return ": \"" + text + "\"";
      }
      if (const std::string text = value_text(val); text.starts_with("Sym(")) return ": \"" + text + "\"";
    }
    return n.type().empty() ? "" : " : " + n.type();
  }

  void emit(const Node& n) {
    if (n.kind() == NodeKind::placeholder) return emit_placeholder(n);
    if (n.kind() == NodeKind::output) {
      if (!n.type().empty()) return_annotation_ = " -> " + n.type();
      const PyTreeInfo* info = graph_.pytree_info().get();
      const std::string result = n.args().empty() ? "None" : print_(n.args()[0]);
      body_ += info && info->out_spec ? "return pytree.tree_unflatten(" + result + ", self._out_spec)" : "return " + result;
      return;
    }
    if (const std::string_view form = find_form(inplace_methods, n.target().function());
        n.kind() == NodeKind::call_function && !form.empty()) {
      std::vector<std::string> args;
      for (const Value& a : n.args()) args.push_back(print_(a));
      const std::string call = filled(form, args, n.name());
      body_ += call + ";  " + name_of(n) + type_annotation(n) + " = " + args.at(0);
      return;
    }
    const std::string left = name_of(n) + type_annotation(n) + " = ";
    body_ += left + expression(n);
  }

  std::string expression(const Node& n) {
    const std::string root(root_);
    switch (n.kind()) {
      case NodeKind::get_attr: return format_target(root, n.target().text());
      case NodeKind::call_module:
        return format_target(root, n.target().text()) + "(" + arguments(n.args(), n.kwargs()) + ")";
      case NodeKind::call_method: {
        if (n.args().empty()) throw UserError("python_code: node " + n.name() + " calls a method of nothing");
        const std::string object = print_(n.args()[0]);
        return format_target(object, n.target().text()) + "(" + arguments(n.args(), n.kwargs(), 1) + ")";
      }
      case NodeKind::placeholder:
      case NodeKind::call_function:
      case NodeKind::output: break;
    }
    const Function* f = n.target().function();
    if (const std::string_view form = find_form(magic_methods, f); !form.empty()) {
      std::vector<std::string> args;
      for (const Value& a : n.args()) args.push_back(print_(a));
      return filled(form, args, n.name());
    }
    constexpr std::string_view builtins = "builtins.";
    std::string qualified = n.target().qualified_name();
    const bool is_builtin = qualified.starts_with(builtins);
    if (is_builtin)
      qualified.erase(0, builtins.size());
    else if (f && qualified.starts_with("operator."))
      qualified.insert(0, "_");
    const std::string callee = global(qualified, is_builtin);
    if (is_builtin && qualified == "getattr" && n.args().size() == 2 && n.args()[1].kind() == Value::Kind::string &&
        is_identifier(n.args()[1].to_string()))
      return format_target(print_(n.args()[0]), n.args()[1].to_string());
    return callee + "(" + arguments(n.args(), n.kwargs()) + ")";
  }

  void emit_placeholder(const Node& n) {
    const std::string& target = n.target().text();
    const std::string type = type_annotation(n);
    std::string variable = target + type + (n.args().empty() ? "" : " = " + print_(n.args()[0]));
    if (options_.expanded_def)
      if (const Value* desc = n.meta.find("desc")) variable += "  # " + python_str(*desc);
    free_variables_.push_back(variable);
    std::string raw;
    for (const char c : target)
      if (c != '*') raw += c;
    if (const std::string name = name_of(n); raw != name) body_ += name + " = " + raw + "\n";
  }

  std::string signature(std::vector<std::string> variables) const {
    if (variables.empty() || variables[0] != "self") variables.insert(variables.begin(), "self");
    if (!options_.expanded_def) return "def forward(" + join(variables, ", ") + ")" + return_annotation_ + ":";
    std::string lines;
    for (const std::string& v : variables) {
      const size_t hash = v.find('#');
      if (hash == std::string::npos) {
        lines += "    " + v + ",\n";
        continue;
      }
      const std::string comment = v.substr(hash + 1);
      lines += "    " + v.substr(0, v.find_last_not_of(' ', hash - 1) + 1) + ",  # " +
               comment.substr(comment.find_first_not_of(' ')) + "\n";
    }
    return "def forward(\n" + lines + ")" + return_annotation_ + ":";
  }

  std::string definition() {
    const PyTreeInfo* info = graph_.pytree_info().get();
    if (!info) return signature(free_variables_);
    std::vector<std::string> variables = free_variables_;
    const std::vector<std::string>& own = info->orig_args;
    if (!own.empty() && own[0] == "self") variables.insert(variables.begin(), "self");
    std::string out = signature(own);
    if (variables.empty()) return out;
    std::string annotated;
    std::string plain;
    for (const std::string& v : variables) {
      if (v.find(':') != std::string::npos) annotated += options_.expanded_def ? "\n    " + v : v + "; ";
      const std::string bare = v.substr(0, v.find(':'));
      plain += (plain.empty() ? "" : ", ") + bare.substr(0, bare.find('#'));
    }
    if (!annotated.empty()) out += options_.expanded_def ? annotated : "\n    " + annotated + "\n";
    return out + "\n    " + plain + ", = fx_pytree.tree_flatten_spec(" + flattened_arguments(*info) + ")";
  }

  static std::string flattened_arguments(const PyTreeInfo& info) {
    const TreeSpec& spec = info.in_spec;
    const bool has_kwargs = spec.kind() == TreeSpec::Kind::tuple && spec.num_children() == 2 &&
                            spec.children()[0].kind() == TreeSpec::Kind::tuple &&
                            spec.children()[1].kind() == TreeSpec::Kind::dict;
    if (!has_kwargs) return "[" + join(info.orig_args, ", ") + "], self._in_spec";
    const size_t count = std::min(spec.children()[0].num_children(), info.orig_args.size());
    std::string keywords;
    const Values& keys = spec.children()[1].dict_keys();
    for (size_t i = 0; i < keys.size() && count + i < info.orig_args.size(); ++i)
      keywords += (keywords.empty() ? "" : ", ") + ("'" + python_str(keys[i]) + "':") + info.orig_args[count + i];
    return "([" + join(std::span(info.orig_args).first(count), ", ") + "], {" + keywords + "}), self._in_spec";
  }

  const Graph& graph_;
  std::string_view root_;
  const CodeOptions& options_;
  Namespace names_;
  ValuePrinter print_;
  ValuePrinter plain_;  // Python's repr, where FX does not look inside
  std::unordered_map<const Node*, std::string> node_names_;
  std::unordered_map<std::string, std::string> globals_;
  std::vector<std::vector<const Node*>> last_uses_;
  std::vector<std::string> free_variables_;
  std::string return_annotation_;
  std::string body_;
  std::string last_summary_;
};

}  // namespace

std::string python_code(const Graph& graph, std::string_view root_module, const CodeOptions& options) {
  return CodeGenerator(graph, root_module, options).source();
}

}  // namespace calque
