// Writes an archive as torch.export.save lays it out: tensors, their configuration, the program, sample inputs, extra
// files. Nothing in it depends on when or where it is written.
#include <algorithm>
#include <set>

#include "calque/base/error.h"
#include "calque/base/version.h"
#include "calque/export/compiled_entries.h"
#include "calque/file/file_writer.h"
#include "calque/file/pickle.h"
#include "calque/file/zip.h"
#include "export/capture/build.h"
#include "export/pt2/pt2_format.h"

namespace calque {
namespace {

using Models = std::vector<std::pair<std::string, const ExportedProgram*>>;

// Programs made here are of the schema that this release writes.
constexpr std::string_view written_version = "2.13.0";
// Who wrote the archive; PyTorch does not look at it.
constexpr std::string_view producer_entry = "producer";

std::string folder_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const size_t dot = name.rfind('.');
  if (dot != std::string::npos && dot > 0) name.resize(dot);
  return name.empty() || name == ".." ? "archive" : name;
}

// Several programs may be in one archive: files are numbered through.
class ArchiveWriter {
 public:
  ArchiveWriter(ZipWriter::Sink sink, const std::string& folder, const SaveProgramOptions& options)
      : zip_(std::move(sink), folder), options_(options) {}

  void write(const Models& models) {
    for (const auto& [name, program] : models) write_program(name, *program);
    if (options_.compiled) write_compiled(models.at(0).first, *options_.compiled);
    for (const auto& [name, content] : options_.extra_files) zip_.add("extra/" + name, content);
    zip_.add("archive_format", "pt2");
    zip_.add("archive_version", "0");
    zip_.add(producer_entry, "calque " + std::string(version()));
    zip_.add(".data/version", "6\n");
    zip_.add("byteorder", "little");
    const std::string id = std::to_string(zip_.fingerprint());
    zip_.add(".data/serialization_id", std::string(id.size() < 40 ? 40 - id.size() : 0, '0') + id);
    zip_.finish();
  }

 private:
  struct Payload {
    std::string path;
    bool is_parameter;
    const Tensor* tensor;  // null: an object in a form of PyTorch's own
  };

  void write_program(const std::string& model, const ExportedProgram& program) {
    const std::optional<ExportedProgram> lifted = lift_branch_constants(program);
    const ExportedProgram::Parts& parts = lifted ? lifted->parts() : program.parts();
    write_state(model, parts);
    write_constants(model, parts);
    zip_.add("models/" + model + ".json",
             program_json(parts, options_.plain_containers.value_or(parts.torch_version.empty())));
    zip_.add("data/sample_inputs/" + model + ".pt", sample_inputs(parts));
  }

  void write_compiled(const std::string& model, const CompiledEntries& compiled) {
    const std::string folder = pt2::compiled_folder(model);
    zip_.add(folder + pt2::compiled_plan, compiled.plan);
    for (size_t i = 0; i < compiled.blocks.size(); ++i) zip_.add(folder + pt2::compiled_block(i), compiled.blocks[i].bytes);
  }

  void write_state(const std::string& model, const ExportedProgram::Parts& parts) {
    JsonWriter config;
    open_config(config);
    std::unordered_map<const Storage*, std::string> written;
    for (const auto& [name, t] : parts.state_dict)
      write_entry(config, name,
                  {write_storage(t, "data/weights/", "weight_", weights_, written), parts.parameters.contains(name), &t});
    close_config(config);
    zip_.add("data/weights/" + model + "_weights_config.json", config.text());
  }

  void write_constants(const std::string& model, const ExportedProgram::Parts& parts) {
    JsonWriter config;
    open_config(config);
    std::unordered_map<const Storage*, std::string> written;
    for (const auto& [name, value] : parts.constants) {
      if (value.is_tensor()) {
        const Tensor& t = value.to_tensor();
        write_entry(config, name, {write_storage(t, "data/constants/", "tensor_", constants_, written), false, &t});
      } else if (const StructValue* object = pt2::as_opaque_object(value)) {
        const std::string path = object->fields[0] + std::to_string(objects_[object->fields[0]]++);
        zip_.add("data/constants/" + path, object->context);
        write_entry(config, name, {path, false, nullptr});
      } else {
        throw UserError("save_program: the constant " + name + " is " + std::string(Value::kind_name(value.kind())) +
                        ", expected a tensor");
      }
    }
    close_config(config);
    zip_.add("data/constants/" + model + "_constants_config.json", config.text());
  }

  // The name of the file that holds the tensor's storage.
  std::string write_storage(const Tensor& t, const std::string& folder, const char* prefix, size_t& count,
                            std::unordered_map<const Storage*, std::string>& written) {
    std::string& path = written[t.storage().get()];
    if (!path.empty()) return path;
    path = prefix + std::to_string(count++);
    std::span<const std::byte> bytes;
    if (!t.is_fake() && t.storage()->data())
      bytes = {static_cast<const std::byte*>(t.storage()->data()), t.storage()->nbytes()};
    zip_.add(folder + path, bytes);
    return path;
  }

  static void open_config(JsonWriter& out) {
    out.begin_object();
    out.key("config");
    out.begin_object();
  }
  static void close_config(JsonWriter& out) {
    out.end_object();
    out.end_object();
  }
  static void write_entry(JsonWriter& out, const std::string& name, const Payload& payload) {
    out.key(name);
    out.begin_object();
    out.member("path_name", payload.path);
    out.member("is_param", payload.is_parameter);
    out.member("use_pickle", payload.tensor == nullptr);
    out.key("tensor_meta");
    if (payload.tensor)
      pt2::write_tensor_meta(out, *payload.tensor);
    else
      out.null();
    out.end_object();
  }

  static std::string program_json(const ExportedProgram::Parts& parts, bool plain_containers) {
    JsonWriter out;
    out.begin_object();
    out.key("graph_module");
    out.begin_object();
    out.key("graph");
    pt2::write_graph(out, *parts.graph_module);
    out.key("signature");
    pt2::write_signature(out, parts.signature);
    out.key("module_call_graph");
    pt2::write_module_call_graph(out, parts.module_call_graph, plain_containers);
    out.key("metadata");
    out.begin_object();
    for (const auto& [key, json] : parts.metadata) out.member(key, json);
    out.end_object();
    out.key("treespec_namedtuple_fields");
    pt2::write_namedtuple_fields(out, parts.module_call_graph, plain_containers);
    out.end_object();
    out.key("opset_version");
    out.begin_object();
    for (const auto& [name, version] : parts.opset_version) out.member(name, version);
    out.end_object();
    out.key("range_constraints");
    out.begin_object();
    for (const auto& [symbol, range] : parts.range_constraints) {
      const auto bound = [&](const char* key, int64_t value, int64_t unbounded) {
        out.key(key);
        if (value == unbounded)
          out.null();
        else
          out.value(value);
      };
      out.key(symbol);
      out.begin_object();
      bound("min_val", range.lower, ValueRange::unbounded_below);
      bound("max_val", range.upper, ValueRange::unbounded_above);
      out.end_object();
    }
    out.end_object();
    out.key("schema_version");
    out.begin_object();
    out.member("major", pt2::schema_major);
    out.member("minor", pt2::schema_minor);
    out.end_object();
    out.key("verifiers");
    out.begin_array();
    out.value(parts.dialect == Dialect::training ? "TRAINING" : "ATEN");
    out.end_array();
    out.member("torch_version", parts.torch_version.empty() ? written_version : std::string_view(parts.torch_version));
    out.key("guards_code");
    out.begin_array();
    for (const std::string& g : parts.guards_code) out.value(g);
    out.end_array();
    out.end_object();
    return out.take();
  }

  // Empty where there are none, or where they have no data to write.
  static std::string sample_inputs(const ExportedProgram::Parts& parts) {
    if (!parts.example_inputs_pickle.empty()) return parts.example_inputs_pickle;
    if (!parts.example_inputs) return {};
    bool has_data = true;
    const auto look = [&](const Value& v) {
      for (const Value& leaf : tree_leaves(v))
        if (leaf.is_tensor() && (leaf.to_tensor().is_fake() || !leaf.to_tensor().storage()->has_data())) has_data = false;
    };
    DictValue kwargs;
    for (const Value& v : parts.example_inputs->args) look(v);
    for (const auto& [name, v] : parts.example_inputs->kwargs) {
      look(v);
      kwargs.items.emplace_back(name, v);
    }
    if (!has_data) return {};
    return write_pickle(tuple({tuple(parts.example_inputs->args), Value(std::move(kwargs))}));
  }

  ZipWriter zip_;
  const SaveProgramOptions& options_;
  size_t weights_ = 0;
  size_t constants_ = 0;
  std::map<std::string, size_t> objects_;
};

void check_names(const Models& models, const SaveProgramOptions& options) {
  std::set<std::string> seen;
  const auto is_plain = [](const std::string& name) {
    return !name.empty() && name.find('\\') == std::string::npos && ("/" + name + "/").find("/../") == std::string::npos &&
           name[0] != '/';
  };
  if (options.compiled && models.size() != 1)
    throw UserError("save_program: what was compiled is written beside one program, found " + std::to_string(models.size()));
  for (const auto& [name, program] : models) {
    if (!is_plain(name) || name.find('/') != std::string::npos)
      throw UserError("save_program: '" + name + "' cannot be the name of a model");
    if (!seen.insert(name).second) throw UserError("save_program: two models are named '" + name + "'");
  }
  for (const auto& [name, content] : options.extra_files)
    if (!is_plain(name))
      throw UserError("save_program: '" + name +
                      "' cannot be the name of an extra file; expected a relative path inside the archive");
}

}  // namespace

void save_programs(const Models& models, const std::string& path, const SaveProgramOptions& options) {
  check_names(models, options);
  FileWriter file(path);
  ArchiveWriter([&](std::span<const std::byte> bytes) { file.write(bytes); }, folder_name(path), options).write(models);
  file.commit(options.sync);
}

void save_program(const ExportedProgram& program, const std::string& path, const SaveProgramOptions& options) {
  save_programs({{"model", &program}}, path, options);
}

std::string serialize_program(const ExportedProgram& program, const SaveProgramOptions& options) {
  check_names({{"model", &program}}, options);
  std::string out;
  ArchiveWriter(
      [&](std::span<const std::byte> bytes) { out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); },
      "archive", options)
      .write({{"model", &program}});
  return out;
}

}  // namespace calque
