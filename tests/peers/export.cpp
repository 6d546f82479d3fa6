// export CASES.jsonl INPUTS.safetensors OUT.jsonl [DIR]: exports the programs and layers that tests/peers/export.py asks for, and
// writes each program in the forms that the case names: as exported, functional (no decompositions), in core ATen, the module
// stacks of its nodes, unflattened, exported again. With DIR it also saves each program there, N.pt2, with its results on some
// inputs, N.safetensors; a program of the case's "file" is loaded, printed and run, with its results in N.loaded.safetensors.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/export/fake_inputs.h"
#include "calque/export/pt2.h"
#include "calque/export/unflatten.h"
#include "calque/file/safetensors.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/views.h"
#include "calque/op/tree.h"
#include "calque/tensor/generator.h"
#include "export/programs.h"
#include "nn/layers_support.h"

namespace {

using namespace calque;
using nlohmann::json;

Value argument(const json& value, const SafetensorsFile& inputs) {
  if (value.is_object()) return inputs.tensor(value.at("tensor").get<std::string>()).clone();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return {};
  Values items;
  for (const json& item : value) items.push_back(argument(item, inputs));
  return tuple(std::move(items));
}

using ExportFrom = std::function<ExportedProgram(const Values&, const Kwargs&)>;

struct Made {
  ExportedProgram program;
  std::vector<Values> inputs;
  Kwargs kwargs;
  std::function<ExportedProgram(Module&)> again;
  // With dynamic sizes: what was said of them, and the program from other examples.
  DynamicShapes shapes = {};
  ExportFrom from = {};
  std::vector<std::string> names = {};
};

// A tensor of another size: its rows from the start, again and again if there are too few.
Tensor resized(const Tensor& t, int64_t dim, int64_t size) {
  if (t.size(dim) == 0) return size == 0 ? t : throw UserError("nothing to repeat");
  return t.index_select(dim, arange(size) % t.size(dim));
}

// The inputs with every dimension that is to stay dynamic as small as `value` and its bounds allow.
Value with_small_sizes(const Made& made, int64_t value) {
  const FakeInputs inputs = make_fake_inputs(made.names, made.inputs.at(0), made.kwargs, made.shapes);
  Values leaves;
  for (const FakeInputs::Leaf& leaf : inputs.leaves) {
    if (!leaf.example.is_tensor()) {
      leaves.push_back(leaf.example);
      continue;
    }
    Tensor t = leaf.example.to_tensor();
    for (int64_t i = 0; i < t.dim(); ++i) {
      const auto at = static_cast<size_t>(i);
      const DynamicShapes* said = leaf.shape.is_sequence()                         ? &leaf.shape.items()[at]
                                  : leaf.shape.kind() == DynamicShapes::Kind::dict ? leaf.shape.find(at)
                                                                                   : nullptr;
      if (said == nullptr) continue;
      if (said->kind() == DynamicShapes::Kind::hint && said->hint().type == DimHint::Type::dynamic)
        t = resized(t, i, std::max(value, said->hint().min.value_or(0)));
      if (said->kind() == DynamicShapes::Kind::dim) {
        const Dim& dim = said->dim();
        const int64_t root = std::max({value, dim.root().range().lower, int64_t{0}});
        t = resized(t, i, dim.is_derived() ? root * dim.multiplier() + dim.offset() : root);
      }
    }
    leaves.emplace_back(t);
  }
  std::vector<std::pair<Value, Value>> keywords;
  for (const auto& [name, v] : made.kwargs) keywords.emplace_back(name, v);
  return tree_unflatten(leaves, tree_structure(tuple({tuple(made.inputs.at(0)), dict(keywords)})));
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.dim() != b.dim()) return false;
  for (int64_t i = 0; i < a.dim(); ++i)
    if (a.size(i) != b.size(i)) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.nbytes() == 0 || std::memcmp(x.data(), y.data(), x.nbytes()) == 0;
}

bool same_results(const ExportedProgram& a, const ExportedProgram& b, const Made& made) {
  for (const Values& args : made.inputs) {
    const auto fresh = [&] {
      Values out;
      for (const Value& v : args) out.push_back(tree_map_tensors([](const Tensor& t) -> Value { return t.clone(); }, v));
      return out;
    };
    manual_seed(1);
    const Values x = tree_leaves(a.call(fresh(), made.kwargs));
    manual_seed(1);
    const Values y = tree_leaves(b.call(fresh(), made.kwargs));
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i].is_tensor() ? !y[i].is_tensor() || !same_bits(x[i].to_tensor(), y[i].to_tensor()) : x[i].str() != y[i].str())
        return false;
  }
  return true;
}

// The program from examples of size 1 and 0: the same, or at least one with the same results at the usual sizes.
json from_small_examples(const Made& made) {
  json out = json::array();
  for (const int64_t value : {1, 0}) {
    std::string said;
    try {
      const Values both = with_small_sizes(made, value).to_items();
      Kwargs kwargs;
      for (const auto& [key, v] : both.at(1).to_dict().items) kwargs.emplace_back(key.to_string(), v);
      const ExportedProgram small = made.from(both.at(0).to_items(), kwargs);
      said = small.str() == made.program.str()         ? "same"
             : same_results(small, made.program, made) ? "same results"
                                                       : "other results";
    } catch (const std::exception& e) {
      said = std::string("error: ") + e.what();
    }
    out.push_back(std::to_string(value) + ": " + said);
  }
  return out;
}

Made export_layer(const json& c, const SafetensorsFile& inputs) {
  manual_seed(c.at("seed").get<uint64_t>());
  const std::shared_ptr<Module> module = make_layer(c.at("layer").get<std::string>(), c.at("args"), inputs);
  module->train(c.at("training").get<bool>());
  Values args;
  for (const json& value : c.at("inputs")) args.push_back(argument(value, inputs));
  Kwargs kwargs;
  const json given = c.value("kwargs", json::object());
  for (const auto& [name, value] : given.items()) kwargs.emplace_back(name, argument(value, inputs));
  const ExportOptions options{.strict = c.value("strict", false)};
  return {export_program(*module, args, kwargs, options), {args}, kwargs, [=](Module& m) {
            return export_program(m, args, kwargs, options);
          }};
}

// The layer with a dynamic batch, if it allows one: the size of its first tensor's first dimension, wherever that is.
json layer_from_small_batch(const json& c, const SafetensorsFile& inputs) {
  manual_seed(c.at("seed").get<uint64_t>());
  const std::shared_ptr<Module> module = make_layer(c.at("layer").get<std::string>(), c.at("args"), inputs);
  module->train(c.at("training").get<bool>());
  Values args;
  for (const json& value : c.at("inputs")) args.push_back(argument(value, inputs));
  Kwargs kwargs;
  const json given = c.value("kwargs", json::object());
  for (const auto& [name, value] : given.items()) kwargs.emplace_back(name, argument(value, inputs));
  int64_t batch = -1;
  std::vector<DynamicShapes> shapes;
  for (const Value& v : args) {
    const bool sized = v.is_tensor() && v.to_tensor().dim() > 0;
    if (sized && batch < 0) batch = v.to_tensor().size(0);
    if (sized && v.to_tensor().size(0) == batch)
      shapes.push_back(DynamicShapes::dict({{0, Dim("batch")}}));
    else if (v.is_tensor() || tree_leaves(v).size() == 1)
      shapes.emplace_back();
    else
      return json::array();  // tensors within
  }
  if (batch < 2 || !kwargs.empty()) return json::array();
  const ExportOptions options{.dynamic_shapes = DynamicShapes::tuple(shapes), .strict = c.value("strict", false)};
  std::optional<Made> made;
  try {
    made = Made{export_program(*module, args, {}, options),
                {args},
                {},
                {},
                options.dynamic_shapes,
                [=](const Values& a, const Kwargs& k) { return export_program(*module, a, k, options); },
                module->argument_names()};
  } catch (const UserError&) {
    return json::array();  // a layer that fixes it, whatever the example
  }
  return from_small_examples(*made);
}

// The path of each module in which a node was made, with the number of the call behind it where it was not the first.
json stacks(const Graph& graph) {
  json out = json::array();
  for (const Node* n : graph.nodes()) {
    if (n->kind() != NodeKind::call_function) continue;
    std::string text = n->op() ? n->op()->schema().name : n->target().str();
    text = text.substr(text.rfind('.') + 1) + ":";
    if (n->meta.nn_module_stack)
      for (const ModuleStackEntry& e : *n->meta.nn_module_stack) {
        const size_t at = e.key.find('@');
        text += " /" + e.path + (at == std::string::npos ? "" : e.key.substr(at));
      }
    out.push_back(text);
  }
  return out;
}

// Its modules, and the operators and modules that each calls.
json unflattened(const ExportedProgram& program) {
  json out = json::array();
  const auto whole = unflatten(program);
  for (const auto& [path, module] : whole->named_modules()) {
    std::string text = path;
    if (const auto* m = dynamic_cast<const GraphModule*>(module)) {
      text += ":";
      for (const Node* n : m->graph().nodes())
        if (n->kind() == NodeKind::call_module)
          text += " " + n->target().str();
        else if (n->op())
          text += " " + n->op()->schema().name;
    }
    out.push_back(text);
  }
  return out;
}

json leaf(const Value& v, const std::string& name, NamedTensors& tensors) {
  if (v.kind() == Value::Kind::boolean) return v.to_bool();
  if (v.kind() == Value::Kind::integer) return v.to_int();
  if (v.kind() == Value::Kind::floating) return v.to_float();
  if (v.kind() == Value::Kind::string) return v.to_string();
  if (!v.is_tensor()) return nullptr;
  tensors.emplace_back(name, v.to_tensor().detach().clone());
  return {{"tensor", name}};
}

// What a program gives for each of the inputs, its tensors in a file. State that it writes is as before afterwards.
json run(const ExportedProgram& program, const Made& made, const std::string& path) {
  json runs = json::array();
  NamedTensors tensors;
  std::vector<std::pair<Tensor, Tensor>> state;
  for (const auto& [name, t] : program.named_buffers()) state.emplace_back(t, t.clone());
  for (size_t i = 0; i < made.inputs.size(); ++i) {
    Values args;
    for (const Value& v : made.inputs[i])
      args.push_back(tree_map_tensors([](const Tensor& t) -> Value { return t.clone(); }, v));
    json run{{"inputs", json::array()}, {"outputs", json::array()}};
    std::vector<std::pair<Value, Value>> keywords;
    for (const auto& [name, value] : made.kwargs) keywords.emplace_back(name, value);
    const std::string prefix = std::to_string(i) + ".";
    for (const Value& v : tree_leaves(tuple({tuple(args), dict(keywords)})))
      run["inputs"].push_back(leaf(v, prefix + "in" + std::to_string(run["inputs"].size()), tensors));
    manual_seed(1);
    for (const Value& v : tree_leaves(program.call(args, made.kwargs)))
      run["outputs"].push_back(leaf(v, prefix + "out" + std::to_string(run["outputs"].size()), tensors));
    for (const auto& [t, before] : state)
      if (!t.storage()->is_read_only()) t.copy_(before);  // what is mapped was not written
    runs.push_back(std::move(run));
  }
  tensors.emplace_back("none", make_tensor(IntList{1}, DType::float32));
  save_safetensors(path, tensors, std::nullopt, true, SharedTensors::written_each);
  return runs;
}

template <class F>
void attempt(json& out, const char* key, F&& f) {
  try {
    out[key] = f();
  } catch (const std::exception& e) {
    out[key] = std::string("error: ") + e.what();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::cerr << "usage: export CASES.jsonl INPUTS.safetensors OUT.jsonl [DIR]\n";
    return 2;
  }
  try {
    std::ifstream cases(argv[1]);
    const SafetensorsFile inputs = SafetensorsFile::open(argv[2]);
    std::ofstream out(argv[3]);
    const std::vector<peers::ExportCase> programs = peers::export_cases();
    size_t number = 0;
    for (std::string line; std::getline(cases, line); ++number) {
      const json c = json::parse(line);
      json result{{"id", c.at("id")}};
      const bool strict = c.value("strict", false);
      const auto asked = [&](const char* form) {
        const json& forms = c.at("forms");
        return std::find(forms.begin(), forms.end(), form) != forms.end();
      };
      try {
        const Made made = [&]() -> Made {
          if (c.contains("layer")) return export_layer(c, inputs);
          for (const peers::ExportCase& p : programs)
            if (p.name == c.at("id").get<std::string>())
              return {p.make(strict), p.inputs,
                      p.kwargs,       [&](Module& m) { return p.again(m, strict); },
                      p.shapes,       [&p, strict](const Values& a, const Kwargs& k) { return p.from(a, k, strict); },
                      p.names};
          throw UserError("no such program here");
        }();
        const ExportedProgram& program = made.program;
        const std::string path = argc == 5 ? std::string(argv[4]) + "/" + std::to_string(number) : std::string();
        if (asked("runs"))
          attempt(result, "runs", [&] {
            save_program(program, path + ".pt2", {.sync = false});
            return run(program, made, path + ".safetensors");
          });
        if (c.contains("file"))
          attempt(result, "loaded", [&] {
            const auto loaded = load_program(c.at("file").get<std::string>());
            return json{{"text", loaded->str()}, {"runs", run(*loaded, made, path + ".loaded.safetensors")}};
          });
        result["training"] = program.str();
        if (asked("functional")) attempt(result, "functional", [&] { return program.run_decompositions({}).str(); });
        if (asked("core")) attempt(result, "core", [&] { return program.run_decompositions().str(); });
        if (asked("module")) attempt(result, "module", [&] { return program.module()->code(); });
        if (asked("stacks")) attempt(result, "stacks", [&] { return stacks(program.graph()); });
        if (asked("unflattened")) attempt(result, "unflattened", [&] { return unflattened(program); });
        if (asked("again")) attempt(result, "again", [&] { return made.again(*program.module()).str(); });
        if (asked("small") && made.from && !made.shapes.empty())
          attempt(result, "small", [&] { return from_small_examples(made); });
        if (asked("small") && c.contains("layer"))
          attempt(result, "small", [&] { return layer_from_small_batch(c, inputs); });
        json calls = json::array();
        for (const ModuleCallEntry& e : program.module_call_graph()) {
          json entry{{"fqn", e.fqn}};
          if (e.signature) {
            for (const char* key : {"inputs", "outputs"}) {
              entry[key] = json::array();
              for (const ArgumentSpec& a : std::string(key) == "inputs" ? e.signature->inputs : e.signature->outputs)
                entry[key].push_back(a.kind == ArgumentKind::constant ? a.value.str() : a.name);
            }
            entry["in_spec"] = e.signature->in_spec.str();
            entry["out_spec"] = e.signature->out_spec.str();
          }
          calls.push_back(std::move(entry));
        }
        result["calls"] = std::move(calls);
      } catch (const std::exception& e) {
        result["training"] = std::string("error: ") + e.what();
      }
      out << result.dump() << '\n';
    }
  } catch (const std::exception& e) {
    std::cerr << "export: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
