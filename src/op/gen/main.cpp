// calque-opgen: reads the stanza files (src/op/aten/*.cpp) and writes the typed fronts: free functions by family, Tensor
// methods, their definitions, and the call that registers every stanza file. It runs at build time and links nothing but the
// schema parser.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "calque/base/error.h"
#include "op/schema_text.h"
#include "stanza_reader.h"

namespace calque::gen {
namespace {

namespace fs = std::filesystem;

// A name that begins with an underscore is an operator's own business: a function, no method.
bool is_internal(std::string_view name) { return name.starts_with("_"); }

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

bool is_out(const SchemaArgument& a) {
  return a.is_written() && a.keyword_only && a.type.kind == SchemaType::Kind::tensor && !a.type.list;
}

// How the table's functions take it.
std::string parameter_type(const SchemaType& t) {
  if (t.kind == SchemaType::Kind::tensor && !t.list) return "const Tensor&";
  if (t.kind == SchemaType::Kind::scalar && !t.list && !t.optional) return "const Scalar&";
  return t.cpp_type();
}

bool is_list_of_integers(const SchemaType& t) {
  return t.list && (t.kind == SchemaType::Kind::integer || t.kind == SchemaType::Kind::sym_int);
}

// What the front's signature says: a list of integers takes {1, 2} and 1, and an out= argument has a type of its own.
std::string front_type(const SchemaArgument& a) {
  if (is_out(a)) return "const Out&";
  if (is_list_of_integers(a.type))
    return std::string(a.type.optional ? "OptionalList<" : "NumberList<") +
           (a.type.kind == SchemaType::Kind::integer ? "int64_t>" : "SymInt>");
  return parameter_type(a.type);
}

// Does a whole number serve for it, but only by a conversion that is as good as that to a SymInt?
bool may_take_number(const SchemaArgument& a) {
  using Kind = SchemaType::Kind;
  const Kind kind = a.type.kind;
  const bool number = kind == Kind::integer || kind == Kind::sym_int || kind == Kind::floating || kind == Kind::scalar;
  return a.type.list ? is_list_of_integers(a.type) : number && a.type.optional;
}

std::string item_text(std::string_view text) {
  if (text == "True") return "true";
  if (text == "False") return "false";
  if (text == "inf") return "HUGE_VAL";
  if (text == "-inf") return "-HUGE_VAL";
  return std::string(text);
}

// The default as C++ writes it.
std::string default_text(const SchemaArgument& a) {
  using Kind = SchemaType::Kind;
  const std::string& text = a.default_text;
  if (text == "None")
    return a.type.kind == Kind::tensor ? "{}" : a.type.kind == Kind::generator ? "nullptr" : "std::nullopt";
  if (a.type.list) {
    std::string items;
    for (const std::string_view item : default_items(a.type, text)) items += (items.empty() ? "" : ", ") + item_text(item);
    return "{" + items + "}";
  }
  if (a.type.kind == Kind::dtype) return "DType::" + (text == "long" ? "int64" : text);
  if (a.type.kind == Kind::memory_format) return "MemoryFormat::contiguous";
  if (a.type.kind == Kind::layout) return "Layout::strided";
  if (text == "Mean") return "1";  // at::Reduction
  if (text == "Sum") return "2";
  return item_text(text);
}

std::string return_type(const Schema& s) {
  if (s.returns.empty()) return "void";
  if (s.returns.size() == 1) return s.returns[0].type.cpp_return_type();
  std::string t = "std::tuple<";
  for (size_t i = 0; i < s.returns.size(); ++i) t += (i ? ", " : "") + s.returns[i].type.cpp_return_type();
  return t + ">";
}

std::string identifier(const std::string& name) { return name == "default" || name == "bool" ? name + "_" : name; }

// One front function.
struct Front {
  std::string declaration;  // parameters with defaults
  std::string parameters;   // parameters without
};

// The calls that fronts answer: a name and the C++ types of the arguments given; and the operator. A call that two could answer
// goes to the first.
using Calls = std::map<std::string, std::string>;

// Defaults are kept only on a tail without gaps, so that overloads such as out= stay callable, and only as far as no earlier
// front of that name answers the shorter call.
Front make_front(const Schema& s, const std::string& cpp_name, const std::string& family, bool method, Calls& taken) {
  Front f;
  const size_t first = method ? 1 : 0;
  const size_t count = s.arguments.size();
  size_t tail = count;
  while (tail > first && s.arguments[tail - 1].has_default()) --tail;
  std::string call = cpp_name + "(";
  std::vector<std::string> calls;  // with 0, 1, ... arguments
  for (size_t i = first; i < count; ++i) {
    calls.push_back(call);
    call += front_type(s.arguments[i]) + ",";
  }
  calls.push_back(call);
  if (const auto whole = taken.find(call); whole != taken.end())
    throw UserError(family + ".cpp: the C++ function of " + s.full_name() + " has the name and the parameters of that of " +
                    whole->second + " (" + call + "...); give one of them another name: .cpp_name(\"" + s.name + "_" +
                    s.overload + "\")");
  for (size_t i = count; i-- > tail;)
    if (taken.contains(calls[i - first])) tail = i + 1;
  for (size_t i = tail; i <= count; ++i) taken.emplace(calls[i - first], s.full_name());
  for (size_t i = first; i < count; ++i) {
    const SchemaArgument& a = s.arguments[i];
    const std::string p = front_type(a) + " " + identifier(a.name);
    f.declaration += p + (i >= tail ? " = " + default_text(a) : "") + ", ";
    f.parameters += p + ", ";
  }
  f.declaration += "std::source_location where = std::source_location::current()";
  f.parameters += "std::source_location where";
  return f;
}

class Generator {
 public:
  void add_file(const fs::path& path) {
    const std::string family = path.stem().string();
    forms_.try_emplace(family);
    for (Stanza& stanza : read_stanzas(read(path))) {
      if (Form* form = std::get_if<Form>(&stanza))
        add(family, std::move(*form));
      else
        aliases_.emplace_back(family, std::get<Alias>(std::move(stanza)));
    }
  }

  // What the class below Tensor has already is no method of Tensor: it would hide the other.
  void add_base(const fs::path& header) { base_methods_.merge(read_calls(read(header))); }

  void write(const fs::path& out_dir) {
    for (const auto& [family, alias] : aliases_) add(family, alias);
    std::string all =
        banner("Every operator as a free function; a family alone is in calque/op/aten/<family>.h.") + "#pragma once\n\n";
    std::string methods = banner("");
    constexpr size_t parts = 3;
    std::vector<std::string> sources(parts, banner("") + "#include \"calque/op/library.h\"\n");
    std::vector<std::string> bodies(parts);
    size_t part = 0;
    for (const auto& [family, forms] : forms_) {
      const std::string header = "calque/op/aten/" + family + ".h";
      std::string declarations;
      for (const Form& form : forms) write_form(family, form, declarations, methods, bodies[part]);
      write_if_changed(out_dir / "include" / header,
                       banner("The operators of src/op/aten/" + family + ".cpp.") +
                           "#pragma once\n\n#include \"calque/op/operators.h\"\n\nnamespace calque {\n\n" + declarations +
                           "\n}  // namespace calque\n");
      all += "#include \"" + header + "\"\n";
      sources[part] += "#include \"" + header + "\"\n";
      part = (part + 1) % parts;
    }
    write_if_changed(out_dir / "include/calque/op/ops.h", all);
    write_if_changed(out_dir / "include/calque/op/tensor_methods.inc", methods);
    for (size_t i = 0; i < parts; ++i)
      write_if_changed(out_dir / ("src/ops_front_" + std::to_string(i) + ".cpp"),
                       sources[i] + "\nnamespace calque {\n\n" + bodies[i] + "}  // namespace calque\n");
    write_if_changed(out_dir / "src/ops_register.cpp", registration());
  }

 private:
  void add(const std::string& family, Form form) {
    if (!names_.insert(form.schema.full_name()).second)
      throw UserError(family + ".cpp: " + form.schema.full_name() + " is defined twice; an operator has one stanza");
    forms_[family].push_back(std::move(form));
  }
  void add(const std::string& family, const Alias& alias) {
    std::vector<Form> found;
    for (const auto& [other, forms] : forms_)
      for (const Form& form : forms)
        if (form.schema.name == alias.target) found.push_back(aliased(form, alias));
    if (found.empty())
      throw UserError(family + ".cpp: " + alias.name + " is an alias of " + alias.target + ", which is no operator");
    for (Form& form : found) add(family, std::move(form));
  }

  static std::string banner(const std::string& what) {
    return "// Generated by calque-opgen from the operator stanzas in src/op/aten; do not edit.\n" +
           (what.empty() ? "" : "// " + what + "\n");
  }

  void write_form(const std::string& family, const Form& form, std::string& declarations, std::string& methods,
                  std::string& bodies) {
    const Schema& s = form.schema;
    if (s.name.starts_with("__")) return;  // operator spellings: called by name
    const Front f = make_front(s, form.cpp_name, family, false, functions_);
    declarations += return_type(s) + " " + form.cpp_name + "(" + f.declaration + ");\n" + number_front(form, f, false);
    bodies += return_type(s) + " " + form.cpp_name + "(" + f.parameters + ") " + body(form, false) + "\n";
    const bool starts_with_self = !s.arguments.empty() && s.arguments[0].name == "self";
    const bool functional = starts_with_self && s.arguments[0].type == SchemaType{} && !s.arguments.back().is_written();
    const bool in_place = starts_with_self && s.name.ends_with("_");
    if ((!functional && !in_place) || base_methods_.contains(s.name) || is_internal(s.name)) return;
    const Front m = make_front(s, form.cpp_name, family, true, methods_);
    methods +=
        "  " + return_type(s) + " " + form.cpp_name + "(" + m.declaration + ") const;\n" + number_front(form, m, true);
    bodies += return_type(s) + " Tensor::" + form.cpp_name + "(" + m.parameters + ") const " + body(form, true) + "\n";
  }

  // x.split(2), repeat_interleave(x, 2): where one front takes a SymInt and another of its name a list or an optional number,
  // whole numbers go to the SymInt's, as in PyTorch, where they are no conversion.
  std::string number_front(const Form& form, const Front& front, bool method) const {
    const std::vector<SchemaArgument>& arguments = form.schema.arguments;
    for (size_t place = method ? 1 : 0; place < arguments.size(); ++place) {
      const SchemaType& type = arguments[place].type;
      if (type.kind != SchemaType::Kind::sym_int || type.list || type.optional || !has_rival(form, place)) continue;
      const std::string name = identifier(arguments[place].name);
      std::string declaration = front.declaration, names;
      declaration.replace(declaration.find("SymInt " + name), 6, "N");
      for (size_t i = method ? 1 : 0; i < arguments.size(); ++i)
        names += (i == place ? "SymInt(" + name + ")" : identifier(arguments[i].name)) + ", ";
      return (method ? "  " : "") + ("template <std::integral N>\n" + return_type(form.schema)) + " " + form.cpp_name + "(" +
             declaration + ")" + (method ? " const" : "") + " { return " + form.cpp_name + "(" + names + "where); }\n";
    }
    return "";
  }

  bool has_rival(const Form& form, size_t place) const {
    for (const auto& [family, forms] : forms_)
      for (const Form& other : forms)
        if (other.cpp_name == form.cpp_name && other.schema.arguments.size() > place &&
            may_take_number(other.schema.arguments[place]) && !is_out(form.schema.arguments.back()))
          return true;
    return false;
  }

  // A number beside a tensor calls the overload for two tensors, as it does in Python: x.add(2) is add.Tensor.
  std::optional<Schema> tensor_overload(const Form& form) const {
    const Schema& s = form.schema;
    if (!form.wraps_numbers || is_out(s.arguments.back())) return std::nullopt;
    const std::string overload = "Tensor" + s.overload.substr(6);
    for (const auto& [family, forms] : forms_)
      for (const Form& other : forms)
        if (other.schema.name == s.name && other.schema.overload == overload) return other.schema;
    throw UserError(s.full_name() + " wraps numbers, but there is no overload " + overload);
  }

  std::string body(const Form& form, bool method) const {
    const auto wrapping = tensor_overload(form);
    const Schema& s = wrapping ? *wrapping : form.schema;
    std::string types;
    std::string names;
    for (size_t i = 0; i < s.arguments.size(); ++i) {
      const SchemaArgument& a = s.arguments[i];
      types += ", " + parameter_type(a.type);
      std::string name = method && i == 0 ? std::string("*this") : identifier(a.name);
      if (is_out(a)) name += ".tensor()";
      if (wrapping && i == 1) name = "wrapped_scalar(" + name + ")";
      names += ", " + name;
    }
    return "{\n  static constinit OperatorByName op(\"" + s.full_name() + "\");\n  return typed_call<" + return_type(s) +
           types + (method ? ">(op.get(), {where, CallForm::method}" : ">(op.get(), where") + names + ");\n}\n";
  }

  bool has_alias(const std::string& family) const {
    return std::any_of(aliases_.begin(), aliases_.end(), [&](const auto& entry) { return entry.first == family; });
  }

  std::string registration() const {
    std::string declarations;
    std::string calls;
    // The targets of aliases are there before them.
    for (const bool with_aliases : {false, true})
      for (const auto& [family, forms] : forms_) {
        if (has_alias(family) != with_aliases) continue;
        declarations += "void register_" + family + "(Library& aten);\n";
        calls += "  {\n    Library aten(\"aten\", \"" + family + "\");\n    register_" + family + "(aten);\n  }\n";
      }
    return banner("") + "#include \"calque/op/library.h\"\n\nnamespace calque {\n\n" + declarations +
           "\nvoid register_builtin_operators();\nvoid register_builtin_operators() {\n" + calls +
           "}\n\n}  // namespace calque\n";
  }

  std::map<std::string, std::vector<Form>> forms_;      // by family
  std::vector<std::pair<std::string, Alias>> aliases_;  // each with its family
  std::set<std::string> names_;
  std::set<std::string> base_methods_;
  Calls functions_;
  Calls methods_;
};

int run(int argc, char** argv) {
  Generator generator;
  fs::path out_dir;
  for (int i = 1; i < argc; ++i) {
    const std::string_view a = argv[i];
    if (a == "--out-dir" && i + 1 < argc)
      out_dir = argv[++i];
    else if (a == "--base" && i + 1 < argc)
      generator.add_base(argv[++i]);
    else if (a != "--stanzas")
      generator.add_file(a);
  }
  if (out_dir.empty()) throw UserError("usage: calque-opgen [--base HEADER] --stanzas FILE... --out-dir DIR");
  generator.write(out_dir);
  return 0;
}

}  // namespace
}  // namespace calque::gen

int main(int argc, char** argv) {
  try {
    return calque::gen::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "calque-opgen: %s\n", e.what());
    return 1;
  }
}
