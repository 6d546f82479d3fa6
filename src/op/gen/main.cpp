// calque-opgen: reads the stanza files (src/op/aten/*.cpp) for the schemas in their def(...), in_place(...) and out(...)
// calls and writes the typed fronts: free functions, Tensor methods, their definitions, and the call that registers
// every stanza file. It runs at build time and links nothing but the schema parser.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "calque/base/error.h"
#include "op/derived_schema.h"

namespace calque {
namespace {

namespace fs = std::filesystem;

// Written by hand in tensor.h, with the same meaning.
const std::set<std::string_view> hand_written_methods = {"size",
                                                         "stride",
                                                         "numel",
                                                         "dim",
                                                         "is_contiguous",
                                                         "data",
                                                         "version",
                                                         "str",
                                                         "layout",
                                                         "device",
                                                         "is_floating_point",
                                                         "sym_size",
                                                         "sym_stride",
                                                         "sym_numel",
                                                         "sym_storage_offset",
                                                         "is_same_size"};

std::string read(const fs::path& path) {
  std::ifstream in(path);
  if (!in) throw UserError("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_if_changed(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  if (fs::exists(path) && read(path) == text) return;
  std::ofstream out(path);
  out << text;
  if (!out) throw UserError("cannot write " + path.string());
}

// The string literal (adjacent ones joined) that starts at or after `at`.
std::string literal(const std::string& text, size_t& at) {
  std::string out;
  while (true) {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
    if (at >= text.size() || text[at] != '"') return out;
    const size_t close = text.find('"', at + 1);
    out += text.substr(at + 1, close - at - 1);
    at = close + 1;
  }
}

std::vector<Schema> scan(const std::string& text) {
  std::vector<Schema> found;
  Schema functional;
  size_t at = 0;
  while ((at = text.find_first_of(".", at)) != std::string::npos) {
    const std::string_view rest = std::string_view(text).substr(at);
    const auto take = [&](std::string_view call) {
      if (!rest.starts_with(call)) return std::string();
      size_t from = at + call.size();
      return literal(text, from);
    };
    if (const std::string s = take(".def("); !s.empty()) found.push_back(functional = parse_schema(s));
    if (const std::string s = take(".in_place("); !s.empty()) found.push_back(derive_in_place(functional, s));
    if (const std::string s = take(".out("); !s.empty()) found.push_back(derive_out(functional, s));
    ++at;
  }
  return found;
}

std::string parameter_type(const SchemaType& t) {
  if (t.kind == SchemaType::Kind::tensor && !t.list) return "const Tensor&";
  if (t.kind == SchemaType::Kind::scalar && !t.list && !t.optional) return "const Scalar&";
  return t.cpp_type();
}

// What the front's signature says: an optional list takes {1, 2} directly.
std::string front_type(const SchemaType& t) {
  if (t.list && t.optional && t.kind != SchemaType::Kind::tensor) {
    const std::string inner = t.cpp_type();
    if (inner == "std::optional<IntList>") return "OptionalList<int64_t>";
    if (inner == "std::optional<SymIntList>") return "OptionalList<SymInt>";
  }
  return parameter_type(t);
}

std::string default_text(const SchemaArgument& a) {
  const Value& v = *a.default_value;
  if (v.is_none())
    return a.type.kind == SchemaType::Kind::tensor      ? "{}"
           : a.type.kind == SchemaType::Kind::generator ? "nullptr"
                                                        : "std::nullopt";
  if (v.kind() == Value::Kind::list) {
    std::string s = "{";
    const Values& items = v.to_items();
    for (size_t i = 0; i < items.size(); ++i) s += (i ? ", " : "") + items[i].str();
    return s + "}";
  }
  if (v.kind() == Value::Kind::boolean) return v.to_bool() ? "true" : "false";
  if (v.kind() == Value::Kind::string) return "\"" + v.to_string() + "\"";
  if (v.kind() == Value::Kind::dtype) return "DType::" + std::string(name(v.to_dtype()));
  if (v.kind() == Value::Kind::memory_format) return "MemoryFormat::contiguous";
  if (v.kind() == Value::Kind::layout) return "Layout::strided";
  std::string s = v.str();
  if (s == "inf") return "HUGE_VAL";
  if (s == "-inf") return "-HUGE_VAL";
  return s;
}

std::string return_type(const Schema& s) {
  if (s.returns.empty()) return "void";
  if (s.returns.size() == 1) return s.returns[0].type.cpp_return_type();
  std::string t = "std::tuple<";
  for (size_t i = 0; i < s.returns.size(); ++i) t += (i ? ", " : "") + s.returns[i].type.cpp_return_type();
  return t + ">";
}

const std::set<std::string_view> keywords = {"and",  "or",    "not",  "xor",  "int", "float",  "double",
                                             "bool", "short", "long", "char", "new", "delete", "default"};

std::string identifier(std::string name) {
  if (keywords.contains(name)) name += "_";
  return name;
}

// One front function. Defaults are kept only on a tail without gaps, so that overloads such as out= stay callable.
struct Front {
  std::string name;
  std::string declaration;  // parameters with defaults
  std::string parameters;   // parameters without
  std::string key;          // C++ types: two fronts of one name must differ here
};

Front make_front(const Schema& s, bool method) {
  Front f;
  f.name = identifier(s.name);
  size_t first = method ? 1 : 0;
  size_t tail = s.arguments.size();
  while (tail > first && s.arguments[tail - 1].default_value) --tail;
  for (size_t i = first; i < s.arguments.size(); ++i) {
    const SchemaArgument& a = s.arguments[i];
    const std::string p = front_type(a.type) + " " + identifier(a.name);
    f.declaration += p + (i >= tail ? " = " + default_text(a) : "") + ", ";
    f.parameters += p + ", ";
    if (i < tail) f.key += front_type(a.type) + ",";
  }
  f.declaration += "std::source_location where = std::source_location::current()";
  f.parameters += "std::source_location where";
  return f;
}

// A number beside a tensor calls the overload for two tensors, as it does in Python: x.add(2) is add.Tensor.
std::optional<Schema> tensor_overload(const Schema& s, const std::vector<Schema>& all) {
  static constexpr std::string_view bases[] = {"add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_"};
  if (!s.overload.starts_with("Scalar") || std::find(std::begin(bases), std::end(bases), s.name) == std::end(bases))
    return std::nullopt;
  const std::string overload = "Tensor" + s.overload.substr(6);
  for (const Schema& other : all)
    if (other.name == s.name && other.overload == overload) return other;
  return std::nullopt;
}

std::string body(const Schema& called, bool method, const std::vector<Schema>& all) {
  const auto wrapping = tensor_overload(called, all);
  const Schema& s = wrapping ? *wrapping : called;
  std::string types;
  std::string names;
  for (size_t i = 0; i < s.arguments.size(); ++i) {
    types += ", " + parameter_type(s.arguments[i].type);
    std::string name = method && i == 0 ? std::string("*this") : identifier(s.arguments[i].name);
    if (wrapping && i == 1) name = "wrapped_scalar(" + name + ")";
    names += ", " + name;
  }
  return "{\n  static const Operator& op = get_operator(\"" + s.full_name() + "\");\n  return typed_call<" + return_type(s) +
         types + (method ? ">(op, {where, CallForm::method}" : ">(op, where") + names + ");\n}\n";
}

int run(int argc, char** argv) {
  std::vector<fs::path> stanzas;
  fs::path out_dir;
  for (int i = 1; i < argc; ++i) {
    const std::string_view a = argv[i];
    if (a == "--out-dir" && i + 1 < argc)
      out_dir = argv[++i];
    else if (a == "--stanzas")
      continue;
    else
      stanzas.emplace_back(a);
  }
  if (out_dir.empty()) throw UserError("usage: calque-opgen --stanzas FILE... --out-dir DIR");
  std::sort(stanzas.begin(), stanzas.end());

  std::vector<Schema> schemas;
  std::set<std::string> names;
  std::string registrations;
  std::string declarations;
  for (const fs::path& p : stanzas) {
    for (Schema& s : scan(read(p))) {
      if (!names.insert(s.full_name()).second)
        throw UserError(p.string() + ": " + s.full_name() + " is defined twice; an operator has one stanza");
      schemas.push_back(std::move(s));
    }
    const std::string function = "register_" + p.stem().string();
    declarations += "void " + function + "(Library& aten);\n";
    registrations += "  {\n    Library aten(\"aten\", \"" + p.stem().string() + "\");\n    " + function + "(aten);\n  }\n";
  }

  const std::string banner = "// Generated by calque-opgen from the operator stanzas in src/op/aten; do not edit.\n";
  std::string header =
      banner +
      "// Typed fronts: one free function per operator, overloaded as ATen's are.\n#pragma once\n\n#include "
      "<cmath>\n\n#include \"calque/op/library.h\"\n#include \"calque/tensor/optional_list.h\"\n\nnamespace calque {\n\n";
  std::string methods = banner;
  constexpr size_t parts = 4;
  std::vector<std::string> sources(parts, banner + "#include \"calque/op/ops.h\"\n\nnamespace calque {\n\n");
  std::set<std::string> seen;
  std::set<std::string> seen_methods;
  size_t count = 0;
  for (const Schema& s : schemas) {
    if (s.name.starts_with("__")) continue;  // operator spellings: called by name
    const bool is_method = !s.arguments.empty() && s.arguments[0].name == "self" && s.arguments[0].type == SchemaType{} &&
                           !s.arguments.back().is_written();
    std::string& source = sources[count++ % parts];
    Front f = make_front(s, false);
    if (!seen.insert(f.name + "(" + f.key).second) f.name += "_" + s.overload;
    header += return_type(s) + " " + f.name + "(" + f.declaration + ");\n";
    source += return_type(s) + " " + f.name + "(" + f.parameters + ") " + body(s, false, schemas) + "\n";
    const bool in_place_method = s.name.ends_with("_") && !s.arguments.empty() && s.arguments[0].name == "self";
    if ((is_method || in_place_method) && !hand_written_methods.contains(s.name)) {
      Front m = make_front(s, true);
      if (!seen_methods.insert(m.name + "(" + m.key).second) m.name += "_" + s.overload;
      methods += "  " + return_type(s) + " " + m.name + "(" + m.declaration + ") const;\n";
      source += return_type(s) + " Tensor::" + m.name + "(" + m.parameters + ") const " + body(s, true, schemas) + "\n";
    }
  }
  header += "\n}  // namespace calque\n\n#include \"calque/op/operators.h\"\n";
  write_if_changed(out_dir / "include/calque/op/ops.h", header);
  write_if_changed(out_dir / "include/calque/tensor/tensor_methods.inc", methods);
  for (size_t i = 0; i < parts; ++i) {
    if (i == 0)
      sources[i] +=
          declarations +
          "\nvoid register_builtin_operators();\nvoid register_builtin_operators() {\n" +
          registrations + "}\n\n";
    write_if_changed(out_dir / ("src/ops_front_" + std::to_string(i) + ".cpp"), sources[i] + "}  // namespace calque\n");
  }
  return 0;
}

}  // namespace
}  // namespace calque

int main(int argc, char** argv) {
  try {
    return calque::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "calque-opgen: %s\n", e.what());
    return 1;
  }
}
