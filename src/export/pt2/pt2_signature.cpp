// The graph signature and the module call graph, from and to the file's form.
#include "calque/base/error.h"
#include "export/pt2/pt2_format.h"

namespace calque::pt2 {
namespace {

std::string text(const Json& json) { return std::string(json.to_string()); }
std::string name_of(const Json& argument) { return text(argument.at("name")); }

Value constant(const Json& argument) {
  const auto& [kind, value] = argument.only();
  if (kind == "as_none") return {};
  if (kind == "as_int") return value.to_int();
  if (kind == "as_float") return value.to_float();
  if (kind == "as_string") return value.to_string();
  if (kind == "as_bool") return value.to_bool();
  argument.fail("a constant of unknown kind: " + std::string(kind));
}

// A symbolic argument in a spec is a name, or (rarely) the number itself.
ArgumentSpec symbolic(ArgumentKind kind, const Json& value) {
  const JsonMember& m = value.only();
  if (m.key == "as_name") return {kind, text(m.value)};
  return {ArgumentKind::constant, "", constant(value)};
}

ArgumentSpec read_argument(const Json& argument) {
  const auto& [kind, value] = argument.only();
  if (kind == "as_tensor") return {ArgumentKind::tensor, name_of(value)};
  if (kind == "as_sym_int") return symbolic(ArgumentKind::sym_int, value);
  if (kind == "as_sym_float") return symbolic(ArgumentKind::sym_float, value);
  if (kind == "as_sym_bool") return symbolic(ArgumentKind::sym_bool, value);
  if (kind == "as_custom_obj") return {ArgumentKind::custom_object, name_of(value), {}, text(value.at("class_fqn"))};
  return {ArgumentKind::constant, "", constant(argument)};
}

ArgumentSpec tensor_argument(const Json& spec) { return {ArgumentKind::tensor, name_of(spec.at("arg"))}; }

InputSpec read_input(const Json& spec) {
  const auto& [kind, v] = spec.only();
  if (kind == "user_input") return {InputKind::user_input, read_argument(v.at("arg"))};
  if (kind == "parameter") return {InputKind::parameter, tensor_argument(v), text(v.at("parameter_name"))};
  if (kind == "buffer")
    return {InputKind::buffer, tensor_argument(v), text(v.at("buffer_name")), v.at("persistent").to_bool()};
  if (kind == "tensor_constant") return {InputKind::constant_tensor, tensor_argument(v), text(v.at("tensor_constant_name"))};
  if (kind == "custom_obj")
    return {InputKind::custom_object,
            {ArgumentKind::custom_object, name_of(v.at("arg")), {}, text(v.at("arg").at("class_fqn"))},
            text(v.at("custom_obj_name"))};
  if (kind == "token") return {InputKind::token, {ArgumentKind::token, name_of(v.at("arg"))}};
  if (kind == "constant_input")
    return {InputKind::user_input, {ArgumentKind::constant, text(v.at("name")), constant(v.at("value"))}};
  spec.fail("an input of unknown kind: " + std::string(kind));
}

OutputSpec read_output(const Json& spec) {
  const auto& [kind, v] = spec.only();
  if (kind == "user_output") return {OutputKind::user_output, read_argument(v.at("arg"))};
  if (kind == "loss_output") return {OutputKind::loss_output, tensor_argument(v)};
  if (kind == "buffer_mutation") return {OutputKind::buffer_mutation, tensor_argument(v), text(v.at("buffer_name"))};
  if (kind == "parameter_mutation")
    return {OutputKind::parameter_mutation, tensor_argument(v), text(v.at("parameter_name"))};
  if (kind == "gradient_to_parameter")
    return {OutputKind::gradient_to_parameter, tensor_argument(v), text(v.at("parameter_name"))};
  if (kind == "gradient_to_user_input")
    return {OutputKind::gradient_to_user_input, tensor_argument(v), text(v.at("user_input_name"))};
  if (kind == "user_input_mutation")
    return {OutputKind::user_input_mutation, tensor_argument(v), text(v.at("user_input_name"))};
  if (kind == "token") return {OutputKind::token, {ArgumentKind::token, name_of(v.at("arg"))}};
  spec.fail("an output of unknown kind: " + std::string(kind));
}

// A structure becomes a dict where its children have names, a tuple otherwise. What PyTorch itself registers stays.
TreeSpec plain(const TreeSpec& spec) {
  std::vector<TreeSpec> children;
  for (const TreeSpec& c : spec.children()) children.push_back(plain(c));
  switch (spec.kind()) {
    case TreeSpec::Kind::leaf: return spec;
    case TreeSpec::Kind::tuple: return TreeSpec::tuple(std::move(children));
    case TreeSpec::Kind::list: return TreeSpec::list(std::move(children));
    case TreeSpec::Kind::dict: return TreeSpec::dict(spec.dict_keys(), std::move(children), false);
    case TreeSpec::Kind::ordered_dict: return TreeSpec::dict(spec.dict_keys(), std::move(children), true);
    case TreeSpec::Kind::structure: break;
  }
  if (spec.type() == "collections.defaultdict" || spec.type() == "collections.deque")
    return TreeSpec::structure(std::string(spec.type()), spec.context(), spec.fields(), std::move(children));
  if (spec.type() != "collections.namedtuple" && !spec.fields().empty() && spec.fields().size() == children.size()) {
    Values keys;
    for (const std::string& field : spec.fields()) keys.emplace_back(field);
    return TreeSpec::dict(std::move(keys), std::move(children));
  }
  return TreeSpec::tuple(std::move(children));
}

void write_constant(JsonWriter& out, const Value& value) {
  out.begin_object();
  if (value.is_none())
    out.member("as_none", true);
  else if (value.kind() == Value::Kind::boolean)
    out.member("as_bool", value.to_bool());
  else if (value.kind() == Value::Kind::integer)
    out.member("as_int", value.to_int());
  else if (value.kind() == Value::Kind::floating)
    out.member("as_float", value.to_float());
  else if (value.kind() == Value::Kind::string)
    out.member("as_string", value.to_string());
  else
    throw UserError("a constant input or output of kind " + std::string(Value::kind_name(value.kind())) +
                    " cannot be written; expected None, a bool, a number or a string");
  out.end_object();
}

void write_named(JsonWriter& out, const char* kind, const std::string& name) {
  out.begin_object();
  out.key(kind);
  out.begin_object();
  out.member(std::string_view(kind) == "as_tensor" ? "name" : "as_name", name);
  out.end_object();
  out.end_object();
}

void write_argument(JsonWriter& out, const ArgumentSpec& a) {
  switch (a.kind) {
    case ArgumentKind::tensor: return write_named(out, "as_tensor", a.name);
    case ArgumentKind::sym_int: return write_named(out, "as_sym_int", a.name);
    case ArgumentKind::sym_float: return write_named(out, "as_sym_float", a.name);
    case ArgumentKind::sym_bool: return write_named(out, "as_sym_bool", a.name);
    case ArgumentKind::constant: return write_constant(out, a.value);
    case ArgumentKind::token: return write_named(out, "as_tensor", a.name);
    case ArgumentKind::custom_object:
      out.begin_object();
      out.key("as_custom_obj");
      out.begin_object();
      out.member("name", a.name);
      out.member("class_fqn", a.class_name);
      out.end_object();
      out.end_object();
      return;
  }
}

void write_arg_name(JsonWriter& out, const std::string& name) {
  out.key("arg");
  out.begin_object();
  out.member("name", name);
  out.end_object();
}

void write_input(JsonWriter& out, const InputSpec& spec) {
  const auto open = [&](const char* kind) {
    out.begin_object();
    out.key(kind);
    out.begin_object();
  };
  switch (spec.kind) {
    case InputKind::user_input:
      if (spec.arg.kind == ArgumentKind::constant) {
        open("constant_input");
        out.member("name", spec.arg.name);
        out.key("value");
        write_constant(out, spec.arg.value);
      } else {
        open("user_input");
        out.key("arg");
        write_argument(out, spec.arg);
      }
      break;
    case InputKind::parameter:
      open("parameter");
      write_arg_name(out, spec.arg.name);
      out.member("parameter_name", spec.target);
      break;
    case InputKind::buffer:
      open("buffer");
      write_arg_name(out, spec.arg.name);
      out.member("buffer_name", spec.target);
      out.member("persistent", spec.persistent.value_or(true));
      break;
    case InputKind::constant_tensor:
      open("tensor_constant");
      write_arg_name(out, spec.arg.name);
      out.member("tensor_constant_name", spec.target);
      break;
    case InputKind::custom_object:
      open("custom_obj");
      out.key("arg");
      out.begin_object();
      out.member("name", spec.arg.name);
      out.member("class_fqn", spec.arg.class_name);
      out.end_object();
      out.member("custom_obj_name", spec.target);
      break;
    case InputKind::token:
      open("token");
      write_arg_name(out, spec.arg.name);
      break;
  }
  out.end_object();
  out.end_object();
}

void write_output(JsonWriter& out, const OutputSpec& spec) {
  out.begin_object();
  const auto open = [&](const char* kind, const char* target) {
    out.key(kind);
    out.begin_object();
    write_arg_name(out, spec.arg.name);
    if (target) out.member(target, spec.target);
  };
  switch (spec.kind) {
    case OutputKind::user_output:
      out.key("user_output");
      out.begin_object();
      out.key("arg");
      write_argument(out, spec.arg);
      break;
    case OutputKind::loss_output: open("loss_output", nullptr); break;
    case OutputKind::buffer_mutation: open("buffer_mutation", "buffer_name"); break;
    case OutputKind::parameter_mutation: open("parameter_mutation", "parameter_name"); break;
    case OutputKind::gradient_to_parameter: open("gradient_to_parameter", "parameter_name"); break;
    case OutputKind::gradient_to_user_input: open("gradient_to_user_input", "user_input_name"); break;
    case OutputKind::user_input_mutation: open("user_input_mutation", "user_input_name"); break;
    case OutputKind::token: open("token", nullptr); break;
  }
  out.end_object();
  out.end_object();
}

bool is_call_spec(const TreeSpec& spec) {
  if (spec.kind() != TreeSpec::Kind::tuple || spec.num_children() != 2) return false;
  const TreeSpec &args = spec.children()[0], &kwargs = spec.children()[1];
  const bool is_dict = kwargs.kind() == TreeSpec::Kind::dict || kwargs.kind() == TreeSpec::Kind::ordered_dict;
  return args.kind() == TreeSpec::Kind::tuple && is_dict &&
         std::ranges::all_of(kwargs.dict_keys(), [](const Value& key) { return key.kind() == Value::Kind::string; });
}

}  // namespace

GraphSignature read_signature(const Json& signature) {
  GraphSignature out;
  for (const Json& spec : signature.at("input_specs").items()) out.input_specs.push_back(read_input(spec));
  for (const Json& spec : signature.at("output_specs").items()) out.output_specs.push_back(read_output(spec));
  return out;
}

std::vector<ModuleCallEntry> read_module_call_graph(const Json& graph_module) {
  NamedTupleFields namedtuples;
  if (const Json* fields = graph_module.find("treespec_namedtuple_fields"); fields && !fields->is_null())
    for (const JsonMember& m : fields->members()) {
      std::vector<std::string>& names = namedtuples[std::string(m.key)];
      for (const Json& f : m.value.at("field_names").items()) names.push_back(text(f));
    }
  std::vector<ModuleCallEntry> out;
  for (const Json& entry : graph_module.at("module_call_graph").items()) {
    ModuleCallEntry& e = out.emplace_back();
    e.fqn = text(entry.at("fqn"));
    const Json* signature = entry.find("signature");
    if (!signature || signature->is_null()) continue;
    ModuleCallSignature& s = e.signature.emplace();
    for (const Json& a : signature->at("inputs").items()) s.inputs.push_back(read_argument(a));
    for (const Json& a : signature->at("outputs").items()) s.outputs.push_back(read_argument(a));
    s.in_spec = treespec_loads(signature->at("in_spec").to_string(), namedtuples);
    if (!is_call_spec(s.in_spec))
      signature->at("in_spec").fail("expected a tuple of the positional arguments and a dict of the others, found " +
                                    s.in_spec.str());
    s.out_spec = treespec_loads(signature->at("out_spec").to_string(), namedtuples);
    if (const Json* names = signature->find("forward_arg_names"); names && !names->is_null()) {
      s.forward_arg_names.emplace();
      for (const Json& n : names->items()) s.forward_arg_names->push_back(text(n));
    }
  }
  return out;
}

void write_signature(JsonWriter& out, const GraphSignature& signature) {
  out.begin_object();
  out.key("input_specs");
  out.begin_array();
  for (const InputSpec& spec : signature.input_specs) write_input(out, spec);
  out.end_array();
  out.key("output_specs");
  out.begin_array();
  for (const OutputSpec& spec : signature.output_specs) write_output(out, spec);
  out.end_array();
  out.end_object();
}

void write_module_call_graph(JsonWriter& out, const std::vector<ModuleCallEntry>& entries, bool plain_containers) {
  const auto dumped = [&](const TreeSpec& spec) { return treespec_dumps(plain_containers ? plain(spec) : spec); };
  out.begin_array();
  for (const ModuleCallEntry& e : entries) {
    out.begin_object();
    out.member("fqn", e.fqn);
    out.key("signature");
    if (!e.signature) {
      out.null();
    } else {
      out.begin_object();
      out.key("inputs");
      out.begin_array();
      for (const ArgumentSpec& a : e.signature->inputs) write_argument(out, a);
      out.end_array();
      out.key("outputs");
      out.begin_array();
      for (const ArgumentSpec& a : e.signature->outputs) write_argument(out, a);
      out.end_array();
      out.member("in_spec", dumped(e.signature->in_spec));
      out.member("out_spec", dumped(e.signature->out_spec));
      out.key("forward_arg_names");
      if (!e.signature->forward_arg_names || e.signature->forward_arg_names->empty()) {
        out.null();
      } else {
        out.begin_array();
        for (const std::string& n : *e.signature->forward_arg_names) out.value(n);
        out.end_array();
      }
      out.end_object();
    }
    out.end_object();
  }
  out.end_array();
}

void write_namedtuple_fields(JsonWriter& out, const std::vector<ModuleCallEntry>& entries, bool plain_containers) {
  NamedTupleFields all;
  if (!plain_containers)
    for (const ModuleCallEntry& e : entries)
      if (e.signature)
        for (const TreeSpec* spec : {&e.signature->in_spec, &e.signature->out_spec}) all.merge(namedtuple_fields(*spec));
  out.begin_object();
  for (const auto& [type, fields] : all) {
    out.key(type);
    out.begin_object();
    out.key("field_names");
    out.begin_array();
    for (const std::string& f : fields) out.value(f);
    out.end_array();
    out.end_object();
  }
  out.end_object();
}

}  // namespace calque::pt2
