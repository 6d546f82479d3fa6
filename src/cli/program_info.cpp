// calque info P.pt2: the programs of an archive, their inputs, outputs, symbols, operators and state. Also checkpoints in
// pickles.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "calque/base/error.h"
#include "calque/export/pt2.h"
#include "calque/file/mapped_file.h"
#include "calque/file/pickle.h"
#include "calque/file/zip.h"
#include "cli/program.h"
#include "cli/table.h"
#include "cli/tensor_file.h"
#include "file/checkpoint_content.h"
#include "file/file_format.h"

namespace calque::cli {
namespace {

using Json = nlohmann::ordered_json;
using Align = Table::Align;

struct StateTotals {
  uint64_t tensors = 0, elements = 0, bytes = 0;
};

std::string described(const Value& v) {
  if (v.is_tensor()) return std::string(name(v.to_tensor().dtype())) + " " + str(v.to_tensor().sym_sizes());
  if (v.kind() == Value::Kind::structure) return v.to_struct().type;
  return v.is_none() ? "None" : std::string(Value::kind_name(v.kind())) + " " + v.str();
}

// What the user gives and gets, by name.
struct Place {
  std::string name;
  std::string what;
};
std::vector<Place> inputs_of(const ExportedProgram& program) {
  std::vector<Place> out;
  const std::vector<Node*> placeholders = program.graph().placeholders();
  const std::vector<InputSpec>& specs = program.graph_signature().input_specs;
  for (size_t i = 0; i < std::min(specs.size(), placeholders.size()); ++i)
    if (specs[i].kind == InputKind::user_input)
      out.push_back({placeholders[i]->name(), described(placeholders[i]->meta.val)});
  return out;
}
std::vector<Place> outputs_of(const ExportedProgram& program) {
  std::vector<Place> out;
  const Value& results = program.graph().output_value();
  const std::vector<OutputSpec>& specs = program.graph_signature().output_specs;
  const std::vector<std::string> names = output_names(program);
  size_t user = 0;
  for (size_t i = 0; i < std::min(specs.size(), results.to_items().size()); ++i) {
    if (specs[i].kind != OutputKind::user_output) continue;
    const Value& v = results.to_items()[i];
    out.push_back(
        {user < names.size() ? names[user] : std::to_string(user), described(v.is_node() ? v.to_node()->meta.val : v)});
    ++user;
  }
  return out;
}

void count_operators(const GraphModule& module, std::map<std::string, size_t>& out, std::set<std::string>& missing) {
  for (const Node* n : module.graph().nodes()) {
    if (n->kind() != NodeKind::call_function || n->target().str() == "operator.getitem") continue;
    ++out[n->target().str()];
    if (n->target().is_text()) missing.insert(n->target().text());
  }
  for (const Module* child : module.children())
    if (const auto* graph = dynamic_cast<const GraphModule*>(child)) count_operators(*graph, out, missing);
}

// Tensors that share their storage count once.
std::map<std::string, StateTotals> state_totals(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::map<std::string, StateTotals> out;
  std::set<const void*> seen;
  for (const auto& [name, t] : tensors) {
    StateTotals& totals = out[std::string(calque::name(t.dtype()))];
    ++totals.tensors;
    if (!seen.insert(t.storage().get()).second) continue;
    totals.elements += static_cast<uint64_t>(t.numel());
    totals.bytes += t.nbytes();
  }
  return out;
}
std::vector<std::pair<std::string, Tensor>> state_of(const ExportedProgram& program) {
  std::vector<std::pair<std::string, Tensor>> out(program.state_dict().begin(), program.state_dict().end());
  for (const auto& [name, value] : program.constants())
    if (value.is_tensor()) out.emplace_back(name, value.to_tensor());
  return out;
}

void print_totals(const std::map<std::string, StateTotals>& parts) {
  Table table({{"dtype"}, {"tensors", Align::right}, {"elements", Align::right}, {"bytes", Align::right}});
  StateTotals all;
  const auto add = [&](const std::string& title, const StateTotals& t) {
    table.add({title, with_thousands(t.tensors), with_thousands(t.elements), with_thousands(t.bytes)});
  };
  for (const auto& [dtype, t] : parts) {
    add(dtype, t);
    all.tensors += t.tensors;
    all.elements += t.elements;
    all.bytes += t.bytes;
  }
  add("total", all);
  fmt::print("\n{}", table.str());
}

void print_places(const char* title, const std::vector<Place>& places) {
  Table table({{title}, {"value"}});
  for (const Place& p : places) table.add({printable(p.name), printable(p.what)});
  fmt::print("\n{}", table.str());
}

const char* dialect_name(Dialect d) { return d == Dialect::training ? "training IR" : "functional ATen IR"; }

void print_program(const std::string& model, const ExportedProgram& program) {
  std::map<std::string, size_t> operators;
  std::set<std::string> missing;
  count_operators(program.graph_module(), operators, missing);
  size_t calls = 0;
  for (const auto& [name, count] : operators) calls += count;
  fmt::print("\n{}: {}, {} nodes, {} calls of {} operators\n", printable(model), dialect_name(program.parts().dialect),
             program.graph().size(), calls, operators.size());
  print_places("input", inputs_of(program));
  print_places("output", outputs_of(program));
  if (!program.parts().range_constraints.empty()) {
    Table symbols({{"symbol"}, {"range"}});
    for (const auto& [symbol, range] : program.parts().range_constraints) symbols.add({symbol, str(range)});
    fmt::print("\n{}", symbols.str());
  }
  print_totals(state_totals(state_of(program)));
  if (!missing.empty()) {
    fmt::print("\noperators that Calque does not have ({})\n", missing.size());
    for (const std::string& m : missing) fmt::print("  {}\n", printable(m));
  }
}

Json json_of(const std::map<std::string, StateTotals>& parts) {
  Json out = Json::object();
  for (const auto& [dtype, t] : parts) out[dtype] = {{"tensors", t.tensors}, {"elements", t.elements}, {"bytes", t.bytes}};
  return out;
}

Json json_of(const ExportedProgram& program, const std::string& schema) {
  std::map<std::string, size_t> operators;
  std::set<std::string> missing;
  count_operators(program.graph_module(), operators, missing);
  Json out;
  out["schema_version"] = schema;
  out["torch_version"] = program.parts().torch_version;
  out["dialect"] = program.parts().dialect == Dialect::training ? "TRAINING" : "ATEN";
  out["nodes"] = program.graph().size();
  for (const auto& [key, places] : {std::pair{"inputs", inputs_of(program)}, std::pair{"outputs", outputs_of(program)}}) {
    out[key] = Json::array();
    for (const Place& p : places) out[key].push_back({{"name", p.name}, {"value", p.what}});
  }
  out["symbols"] = Json::object();
  for (const auto& [symbol, range] : program.parts().range_constraints)
    out["symbols"][symbol] = {{"min", range.lower == ValueRange::unbounded_below ? Json(nullptr) : Json(range.lower)},
                              {"max", range.upper == ValueRange::unbounded_above ? Json(nullptr) : Json(range.upper)}};
  out["operators"] = operators;
  out["missing_operators"] = missing;
  out["dtypes"] = json_of(state_totals(state_of(program)));
  out["tensors"] = Json::array();
  for (const auto& [name, t] : state_of(program))
    out["tensors"].push_back({{"name", name},
                              {"dtype", calque::name(t.dtype())},
                              {"shape", std::vector<int64_t>(t.sizes().begin(), t.sizes().end())}});
  return out;
}

// Who wrote the archive, as it says itself; nothing for files of PyTorch's.
std::string producer_of(const std::string& path) {
  const auto file = MappedFile::open(path);
  const ZipReader zip(file->bytes(), path, ZipContent::stored);
  for (const ZipEntry& e : zip.entries())
    if (e.name.ends_with("/producer") && e.name.find('/') == e.name.size() - 9) return std::string(e.text().substr(0, 100));
  return {};
}

}  // namespace

FileKind kind_of(const std::string& path) {
  if (path.ends_with(".npz") || path.ends_with(".npy")) return FileKind::arrays;
  const FileFormat format = format_of_file(path);
  if (format == FileFormat::safetensors) return FileKind::safetensors;
  if (format == FileFormat::program) return FileKind::program;
  if (format == FileFormat::checkpoint) return FileKind::pickle;
  if (format != FileFormat::unknown)
    refuse_format(path, "a model folder, or a .safetensors file, a .pt2 program or a checkpoint of torch.save", format);
  // Damaged: what the name promises says what is wrong with it.
  const std::string extension = std::filesystem::path(path).extension();
  if (extension == ".pt2") return FileKind::program;
  return extension == ".bin" || extension == ".pt" || extension == ".pth" ? FileKind::pickle : FileKind::safetensors;
}

NamedTensors tensors_of(const std::string& path) {
  if (kind_of(path) == FileKind::pickle) return nested_tensors(load_pickle(path, {.keep_objects = true}));
  if (kind_of(path) == FileKind::arrays) {
    const TensorFile file = TensorFile::open(path);
    NamedTensors out;
    for (const std::string& name : file.names()) out.emplace_back(name, file.tensor(name));
    return out;
  }
  const SafetensorsFile file = SafetensorsFile::open(path);
  NamedTensors out;
  for (const SafetensorsEntry& entry : file.entries()) out.emplace_back(entry.name, file.tensor(entry));
  return out;
}

void run_program_info(const InfoOptions& options) {
  const Pt2Archive archive = Pt2Archive::open(options.path);
  LoadProgramOptions load;
  load.example_inputs = false;
  const std::map<std::string, std::string> extra = archive.extra_files();
  const uint64_t bytes = std::filesystem::file_size(options.path);
  const std::string producer = producer_of(options.path);
  if (options.json) {
    Json out;
    out["path"] = options.path;
    out["format"] = "pt2";
    out["file_bytes"] = bytes;
    out["producer"] = producer.empty() ? "pytorch" : producer;
    out["models"] = Json::object();
    for (const std::string& m : archive.models())
      out["models"][m] = json_of(*archive.load(m, load), archive.schema_version(m));
    out["extra_files"] = Json::object();
    for (const auto& [name, content] : extra) out["extra_files"][name] = content.size();
    fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
    return;
  }
  fmt::print("{}: PyTorch program, {} model{}, {} ({} bytes)\n", options.path, archive.models().size(),
             archive.models().size() == 1 ? "" : "s", human_bytes(bytes), bytes);
  for (const std::string& m : archive.models()) {
    const auto program = archive.load(m, load);
    fmt::print("schema {}, written by {}\n", archive.schema_version(m),
               producer.empty() ? "PyTorch " + printable(program->parts().torch_version)
                                : printable(producer) + " for PyTorch " + printable(program->parts().torch_version));
    print_program(m, *program);
  }
  if (extra.empty()) return;
  fmt::print("\nextra files\n");
  for (const auto& [name, content] : extra) fmt::print("  {} ({})\n", printable(name), human_bytes(content.size()));
}

namespace {

Json tensors_json(const NamedTensors& list) {
  Json out = Json::array();
  for (const auto& [name, t] : list)
    out.push_back({{"name", name},
                   {"dtype", calque::name(t.dtype())},
                   {"shape", std::vector<int64_t>(t.sizes().begin(), t.sizes().end())}});
  return out;
}

void print_tensors(const NamedTensors& list) {
  Table table({{"tensor"}, {"dtype"}, {"shape"}});
  for (const auto& [name, t] : list) table.add({printable(name), std::string(calque::name(t.dtype())), str(t.sizes())});
  fmt::print("{}", table.str());
  print_totals(state_totals(list));
}

}  // namespace

void run_arrays_info(const InfoOptions& options) {
  const NamedTensors list = tensors_of(options.path);
  const uint64_t bytes = std::filesystem::file_size(options.path);
  if (options.json) {
    Json out;
    out["path"] = options.path;
    out["format"] = options.path.ends_with(".npz") ? "npz" : "npy";
    out["file_bytes"] = bytes;
    out["dtypes"] = json_of(state_totals(list));
    out["tensors"] = tensors_json(list);
    fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
    return;
  }
  fmt::print("{}: NumPy arrays, {} tensors, {} ({} bytes)\n\n", options.path, list.size(), human_bytes(bytes), bytes);
  print_tensors(list);
}

void run_pickle_info(const InfoOptions& options) {
  const Value content = load_pickle(options.path, {.keep_objects = true});
  const std::vector<CheckpointPart> parts = checkpoint_parts(content);
  const std::string what = content_name(content);
  const bool plain = what == "a state dict";
  const NamedTensors list = nested_tensors(content);
  const uint64_t bytes = std::filesystem::file_size(options.path);
  if (options.json) {
    Json out;
    out["path"] = options.path;
    out["format"] = "pickle";
    out["content"] = what;
    out["file_bytes"] = bytes;
    out["parts"] = Json::array();
    if (!plain)
      for (const CheckpointPart& part : parts)
        out["parts"].push_back({{"key", part.key}, {"what", part.what}, {"state", part.state}});
    out["state_key"] = state_key(parts).empty() ? Json(nullptr) : Json(state_key(parts));
    out["dtypes"] = json_of(state_totals(list));
    out["tensors"] = tensors_json(list);
    fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
    return;
  }
  fmt::print("{}: checkpoint of torch.save{}, {} tensors, {} ({} bytes)\n\n", options.path,
             plain ? "" : ", " + printable(what), list.size(), human_bytes(bytes), bytes);
  if (!plain && !parts.empty()) {
    Table table({{"key"}, {"holds"}});
    for (const CheckpointPart& part : parts) table.add({printable(part.key), printable(part.what)});
    fmt::print("{}\n", table.str());
    if (const std::string state = state_key(parts); !state.empty())
      fmt::print("the weights are under '{}'\n\n", printable(state));
  }
  print_tensors(list);
}

}  // namespace calque::cli
