// Reads a .pt2 archive: models/model.json is the program, data/weights and data/constants hold raw tensor bytes.
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/export/program.h"
#include "calque/file/mapped_file.h"
#include "calque/file/zip.h"
#include "calque/graph/interpreter.h"

namespace calque {

using nlohmann::json;

namespace {

// The schema's ScalarType numbers.
constexpr std::pair<int, DType> dtype_numbers[] = {
    {1, DType::uint8},      {2, DType::int8},       {3, DType::int16},         {4, DType::int32},        {5, DType::int64},   {6, DType::float16},
    {7, DType::float32},    {8, DType::float64},    {10, DType::complex64},    {11, DType::complex128},  {12, DType::bool_},  {13, DType::bfloat16},
    {28, DType::uint16},    {29, DType::float8_e4m3fn}, {30, DType::float8_e5m2}, {31, DType::float8_e4m3fnuz}, {32, DType::float8_e5m2fnuz},
};
constexpr std::pair<int, MemoryFormat> memory_formats[] = {
    {1, MemoryFormat::contiguous}, {2, MemoryFormat::channels_last}, {3, MemoryFormat::channels_last_3d}, {4, MemoryFormat::preserve}};

}  // namespace

class ProgramReader {
 public:
  explicit ProgramReader(std::shared_ptr<const MappedFile> file) : file_(std::move(file)), zip_(file_->bytes(), file_->path()) {}

  std::shared_ptr<const ExportedProgram> read() {
    find_top();
    auto program = std::make_shared<ExportedProgram>();
    read_tensors(*program, "data/weights/", "model_weights_config.json");
    read_tensors(*program, "data/constants/", "model_constants_config.json");
    const json model = parse(entry("models/model.json"), "models/model.json");
    try {
      read_program(model, *program);
    } catch (const json::exception& e) {
      fail("models/model.json does not have the expected form: " + std::string(e.what()));
    }
    return program;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw UserError(ErrorKind::bad_file, file_->path() + ": " + why); }

  // All entries live under one folder named after the file that was saved.
  void find_top() {
    for (const ZipEntry& e : zip_.entries())
      if (e.name.ends_with("/archive_format")) {
        top_ = e.name.substr(0, e.name.size() - std::string_view("archive_format").size());
        const std::string format = text(e);
        if (format != "pt2") fail("archive_format is '" + format + "', expected 'pt2'");
        return;
      }
    fail("no archive_format entry; expected a .pt2 archive as torch.export.save of PyTorch 2.13 writes it");
  }
  const ZipEntry& entry(const std::string& name) const {
    const ZipEntry* e = zip_.find(top_ + name);
    if (!e) fail("entry " + top_ + name + " is missing");
    return *e;
  }
  static std::string text(const ZipEntry& e) { return {reinterpret_cast<const char*>(e.data.data()), e.data.size()}; }
  json parse(const ZipEntry& e, const std::string& name) const {
    const char* begin = reinterpret_cast<const char*>(e.data.data());
    int depth = 0;
    // The reader's recursion is bounded by refusing deep nesting first.
    for (const char c : std::string_view(begin, e.data.size())) {
      depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
      if (depth > 2000) fail(name + " is nested too deeply");
    }
    try {
      return json::parse(begin, begin + e.data.size());
    } catch (const json::exception& error) {
      fail(name + " is no JSON: " + error.what());
    }
  }

  DType dtype(const json& number) const {
    for (const auto& [n, d] : dtype_numbers)
      if (n == number.get<int>()) return d;
    fail("dtype number " + number.dump() + " is unknown");
  }

  void read_tensors(ExportedProgram& program, const std::string& folder, const std::string& config) {
    if (!zip_.find(top_ + folder + config)) return;
    const json root = parse(entry(folder + config), folder + config);
    std::unordered_map<std::string, Ref<Storage>> storages;  // tied tensors share one
    try {
      for (const auto& [name, info] : root.at("config").items()) {
        if (info.at("use_pickle").get<bool>()) fail("tensor " + name + " is pickled, which is not supported yet");
        const auto path = info.at("path_name").get<std::string>();
        const json& meta = info.at("tensor_meta");
        const std::span<const std::byte> bytes = entry(folder + path).data;
        auto [it, fresh] = storages.try_emplace(path);
        if (fresh) it->second = Storage::borrow(const_cast<std::byte*>(bytes.data()), bytes.size(), file_, true);
        const std::vector<int64_t> sizes = ints(meta.at("sizes"), name);
        const std::vector<int64_t> strides = ints(meta.at("strides"), name);
        try {
          program.state_.emplace(name, from_storage(it->second, dtype(meta.at("dtype")), sizes, strides, meta.at("storage_offset").at("as_int").get<int64_t>()));
        } catch (const UserError& e) {
          fail("tensor " + name + ": " + e.what());
        }
      }
    } catch (const json::exception& e) {
      fail(folder + config + " does not have the expected form: " + e.what());
    }
  }
  std::vector<int64_t> ints(const json& list, const std::string& tensor) const {
    std::vector<int64_t> out;
    for (const json& x : list) {
      if (!x.contains("as_int")) fail("tensor " + tensor + " has a symbolic size in the file");
      out.push_back(x.at("as_int").get<int64_t>());
    }
    return out;
  }

  void read_program(const json& model, ExportedProgram& program) {
    const json& module = model.at("graph_module");
    const json& graph = module.at("graph");
    for (const json& spec : module.at("signature").at("input_specs")) read_input(spec, program);
    for (const json& node : graph.at("nodes")) read_node(node, program.graph_);
    Values results;
    for (const json& o : graph.at("outputs")) results.push_back(argument(o));
    program.graph_.output(list(std::move(results)));
    size_t position = 0;
    for (const json& spec : module.at("signature").at("output_specs")) {
      if (spec.contains("user_output")) program.user_outputs_.push_back(position);
      ++position;
    }
    program.graph_.lint();
  }

  void read_input(const json& spec, ExportedProgram& program) {
    const auto add = [&](const std::string& node, const std::string& state) {
      if (!state.empty() && !program.state_.contains(state)) fail("input " + node + " refers to " + state + ", which the archive does not hold");
      nodes_[node] = program.graph_.placeholder(node, {}, node);
      program.placeholder_state_.push_back(state);
    };
    const auto arg_name = [](const json& x) { return x.at("arg").at("name").get<std::string>(); };
    if (spec.contains("parameter")) add(arg_name(spec["parameter"]), spec["parameter"].at("parameter_name"));
    else if (spec.contains("buffer")) add(arg_name(spec["buffer"]), spec["buffer"].at("buffer_name"));
    else if (spec.contains("tensor_constant")) add(arg_name(spec["tensor_constant"]), spec["tensor_constant"].at("tensor_constant_name"));
    else if (spec.contains("user_input")) {
      const json& arg = spec["user_input"].at("arg");
      if (!arg.contains("as_tensor")) fail("a user input that is no tensor is not supported yet: " + arg.dump());
      const std::string name = arg["as_tensor"].at("name");
      add(name, "");
      program.user_inputs_.push_back(name);
    } else {
      fail("an input of unknown kind: " + spec.dump().substr(0, 80));
    }
  }

  void read_node(const json& node, Graph& graph) {
    const Target target = Target::resolve(node.at("target").get<std::string>());
    const json& outputs = node.at("outputs");
    Values args;
    Kwargs kwargs;
    for (const json& input : node.at("inputs")) {
      const bool positional = !target.op() && input.value("kind", 1) == 1;
      if (positional) args.push_back(argument(input.at("arg")));
      else kwargs.emplace_back(input.at("name").get<std::string>(), argument(input.at("arg")));
    }
    const std::string name = node.contains("name") && node["name"].is_string() ? node["name"].get<std::string>() : std::string();
    Node* n = graph.call_function(target, std::move(args), std::move(kwargs), name);
    const FunctionRef getitem = get_function("operator.getitem");
    if (outputs.size() == 1 && outputs[0].contains("as_tensors")) {  // a list of tensors, each with a name of its own
      size_t i = 0;
      for (const json& item : outputs[0]["as_tensors"]) nodes_[item.at("name")] = graph.call_function(getitem, {n, i++}, {}, item.at("name").get<std::string>());
    } else if (outputs.size() > 1) {
      size_t i = 0;
      for (const json& o : outputs) {
        const std::optional<std::string> result = result_name(o);
        if (result) nodes_[*result] = graph.call_function(getitem, {n, i}, {}, *result);
        ++i;
      }
    } else if (outputs.size() == 1) {
      if (const std::optional<std::string> result = result_name(outputs[0])) nodes_[*result] = n;
    }
  }
  static std::optional<std::string> result_name(const json& o) {
    if (o.contains("as_tensor")) return o["as_tensor"].at("name").get<std::string>();
    for (const char* kind : {"as_sym_int", "as_sym_bool", "as_sym_float"})
      if (o.contains(kind) && o[kind].contains("as_name")) return o[kind]["as_name"].get<std::string>();
    return std::nullopt;
  }

  Value reference(const std::string& name) const {
    const auto it = nodes_.find(name);
    if (it == nodes_.end()) fail("the graph uses " + name + " before it is defined");
    return it->second;
  }
  Value number(const json& x) const {  // {"as_int": 3}, {"as_name": "s"}, {"as_float": ...}, {"as_bool": ...}
    if (x.contains("as_name")) return reference(x["as_name"]);
    if (x.contains("as_int")) return Value(x["as_int"].get<int64_t>());
    if (x.contains("as_float")) return Value(x["as_float"].get<double>());
    if (x.contains("as_bool")) return Value(x["as_bool"].get<bool>());
    fail("an argument of unknown kind: " + x.dump().substr(0, 80));
  }
  template <class F>
  Value items(const json& list, F&& each) const {
    Values out;
    for (const json& x : list) out.push_back(each(x));
    return ListValue{std::move(out)};
  }

  Value argument(const json& arg) const {
    const std::string kind = arg.begin().key();
    const json& x = arg.begin().value();
    if (kind == "as_none") return Value();
    if (kind == "as_tensor") return reference(x.at("name"));
    if (kind == "as_tensors") return items(x, [&](const json& t) { return reference(t.at("name")); });
    if (kind == "as_optional_tensors")
      return items(x, [&](const json& t) { return t.contains("as_tensor") ? reference(t["as_tensor"].at("name")) : Value(); });
    if (kind == "as_int") return Value(x.get<int64_t>());
    if (kind == "as_float") return Value(x.is_string() ? std::strtod(x.get<std::string>().c_str(), nullptr) : x.get<double>());
    if (kind == "as_bool") return Value(x.get<bool>());
    if (kind == "as_string") return Value(x.get<std::string>());
    if (kind == "as_ints") return items(x, [](const json& i) { return Value(i.get<int64_t>()); });
    if (kind == "as_floats") return items(x, [](const json& i) { return Value(i.get<double>()); });
    if (kind == "as_bools") return items(x, [](const json& i) { return Value(i.get<bool>()); });
    if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") return number(x);
    if (kind == "as_sym_ints") return items(x, [&](const json& i) { return number(i); });
    if (kind == "as_scalar_type") return Value(dtype(x));
    if (kind == "as_device") {
      Device d(x.at("type").get<std::string>());
      return Value(Device(d.type == DeviceType::cuda ? DeviceType::cpu : d.type));
    }
    if (kind == "as_layout") return Value(Layout::strided);
    if (kind == "as_memory_format") {
      for (const auto& [n, f] : memory_formats)
        if (n == x.get<int>()) return Value(f);
    }
    fail("an argument of kind " + kind + " is not supported yet");
  }

  std::shared_ptr<const MappedFile> file_;
  ZipReader zip_;
  std::string top_;
  std::unordered_map<std::string, Node*> nodes_;
};

std::shared_ptr<const ExportedProgram> ExportedProgram::load(const std::string& path) { return ProgramReader(MappedFile::open(path)).read(); }

std::vector<Value> ExportedProgram::run(const Values& inputs) const {
  if (inputs.size() != user_inputs_.size())
    throw UserError("run: expected " + std::to_string(user_inputs_.size()) + " inputs, found " + std::to_string(inputs.size()));
  Values all;
  size_t next = 0;
  for (const std::string& state : placeholder_state_) all.push_back(state.empty() ? inputs[next++] : Value(state_.at(state)));
  const Value result = Interpreter(graph_).run(all);
  std::vector<Value> out;
  for (const size_t i : user_outputs_) out.push_back(result.to_items().at(i));
  return out;
}

}  // namespace calque
