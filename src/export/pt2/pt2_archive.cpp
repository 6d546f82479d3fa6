// The archive: which models it holds, where their tensors lie, and the old form with everything in pickles.
#include <algorithm>
#include <cstring>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/export/compiled_entries.h"
#include "calque/file/mapped_file.h"
#include "calque/file/pickle.h"
#include "calque/file/zip.h"
#include "export/pt2/pt2_format.h"
#include "file/file_format.h"
#include "file/tensor_view.h"
#include "op/value_items.h"

namespace calque {
namespace {

using Constants = std::vector<std::pair<std::string, Value>>;

constexpr std::string_view models_folder = "models/";
constexpr std::string_view extra_folder = "extra/";
constexpr std::string_view old_extra_folder = "extra_files/";
constexpr std::string_view json_suffix = ".json";

}  // namespace

struct Pt2Archive::Impl {
  Impl(std::span<const std::byte> bytes, std::shared_ptr<const void> owner_of_bytes, std::string name)
      : owner(std::move(owner_of_bytes)), what(std::move(name)), zip(bytes, what) {
    for (const ZipEntry& e : zip.entries()) {
      if (!e.name.ends_with("/archive_format") && e.name != "archive_format") continue;
      top = e.name.substr(0, e.name.size() - std::string_view("archive_format").size());
      if (e.text() != "pt2") fail("archive_format is '" + std::string(e.text().substr(0, 40)) + "', expected 'pt2'");
      read_layout();
      return;
    }
    if (!zip.find("serialized_exported_program.json"))
      fail(
          "it has neither an archive_format entry nor serialized_exported_program.json; expected an archive of "
          "torch.export.save");
    old_form = true;
    check_old_version();
    models.emplace_back("model");
  }

  [[noreturn]] void fail(const std::string& why) const { throw UserError(ErrorKind::bad_file, what + ": " + why); }

  void read_layout() {
    if (const ZipEntry* order = zip.find(top + "byteorder"); order && order->text() != "little")
      fail(order->text() == "big"
               ? "it was written on a big-endian machine; programs of little-endian ones are supported"
               : "unknown byte order '" + std::string(order->text().substr(0, 40)) + "', expected 'little'");
    if (const ZipEntry* version = zip.find(top + "archive_version"); version && version->text() != "0")
      fail("its archive_version is '" + std::string(version->text().substr(0, 40)) + "', expected '0'");
    const std::string folder = top + std::string(models_folder);
    for (const ZipEntry& e : zip.entries())
      if (e.name.starts_with(folder) && e.name.ends_with(json_suffix))
        models.push_back(e.name.substr(folder.size(), e.name.size() - folder.size() - json_suffix.size()));
  }
  void check_old_version() const {
    const ZipEntry* version = zip.find("version");
    if (!version) fail("the entry 'version' is missing");
    const std::string text(version->text().substr(0, 40));
    const std::string major = std::to_string(pt2::schema_major);
    if (text.substr(0, text.find('.')) != major)
      fail("Serialized version '" + text + "' does not match our current schema version " + major + "." +
           std::to_string(pt2::schema_minor));
  }

  const ZipEntry& entry(const std::string& name) const {
    const ZipEntry* e = zip.find(name);
    if (!e) fail("the entry " + name + " is missing");
    return *e;
  }
  const ZipEntry& checked_entry(const std::string& name) const {
    const ZipEntry& e = entry(name);
    zip.check(e);
    return e;
  }
  JsonDocument parse(const ZipEntry& e) const {
    zip.check(e);
    return JsonDocument(e.text(), what + ": " + e.name);
  }

  const ZipEntry& model_entry(const std::string& model) const {
    if (std::find(models.begin(), models.end(), model) == models.end()) {
      const std::string known = join(models, ", ");
      throw UserError(what + ": it holds no program named '" + model + "'; " +
                      (known.empty() ? "it holds none at all" : "found " + known));
    }
    return entry(old_form ? "serialized_exported_program.json"
                          : top + std::string(models_folder) + model + std::string(json_suffix));
  }

  // Errors in a part of the archive name the file and the part, and are of one kind.
  template <class F>
  auto in_part(const std::string& part, F&& body) const {
    try {
      return body();
    } catch (const UserError& e) {
      const std::string_view reason = e.reason();
      if (e.kind() == ErrorKind::bad_file && reason.starts_with(what)) throw;
      throw UserError(ErrorKind::bad_file, what + ": " + part + ": " + std::string(reason));
    }
  }

  std::shared_ptr<const void> owner_of(const ZipEntry& e) const { return e.inflated ? e.inflated : owner; }

  // ---- tensors ------------------------------------------------------------------------------------------------------

  struct Payload {
    std::vector<std::pair<std::string, Value>> values;  // tensors and custom objects, in the file's order
    // Names; not told by a pickle, whose parameters are read as tensors.
    std::optional<std::set<std::string, std::less<>>> parameters;
    std::vector<std::pair<Ref<Storage>, uint32_t>> checksums;  // of the entries that are mapped
  };

  Payload read_payload(const std::string& folder, const std::string& config, const std::string& legacy,
                       const LoadProgramOptions& options, pt2::SymbolReader& symbols) const {
    if (const ZipEntry* pickled = zip.find(top + folder + legacy)) return pickled_payload(*pickled);
    const ZipEntry& e = entry(top + folder + config);
    const JsonDocument document = parse(e);
    return in_part(e.name, [&] {
      Payload out;
      out.parameters.emplace();
      std::unordered_map<std::string_view, Ref<Storage>> storages;  // tied tensors share one
      for (const auto& [name, info] : document.root().at("config").members())
        in_part(e.name + ": " + std::string(name), [&] {
          out.values.emplace_back(name, read_tensor(top + folder, info, options, symbols, storages));
          if (info.at("is_param").to_bool()) out.parameters->emplace(name);
        });
      for (const auto& [path, storage] : storages)
        out.checksums.emplace_back(storage, entry(top + folder + std::string(path)).crc);
      return out;
    });
  }

  Value read_tensor(const std::string& folder, const Json& info, const LoadProgramOptions& options,
                    pt2::SymbolReader& symbols, std::unordered_map<std::string_view, Ref<Storage>>& storages) const {
    const std::string_view path = info.at("path_name").to_string();
    const ZipEntry& data = entry(folder + std::string(path));
    const Json* meta = info.find("tensor_meta");
    if (!meta || meta->is_null()) {
      const size_t digits = path.find_first_of("0123456789");
      return pt2::opaque_object(std::string(path.substr(0, digits)), std::string(data.text()));
    }
    if (!options.weights) return symbols.fake(*meta);
    if (info.at("use_pickle").to_bool()) return read_pickle(data.data, owner_of(data), what + ": " + data.name);
    if (meta->at("layout").to_int() != pt2::number_of(Layout::strided))
      meta->fail("a sparse tensor; strided ones are supported");
    const Device device = symbols.device(meta->at("device"));
    if (device.type == DeviceType::meta) return meta_tensor(*meta, symbols);
    if (device.type != DeviceType::cpu)
      meta->fail("a tensor on the device " + device.str() +
                 "; map it with LoadProgramOptions::devices, or load without weights");
    const DType dtype = pt2::dtype_from_number(meta->at("dtype"));
    const std::vector<int64_t> sizes = pt2::plain_integers(meta->at("sizes"));
    const std::vector<int64_t> strides = pt2::plain_integers(meta->at("strides"));
    const JsonMember& offset = meta->at("storage_offset").only();
    Ref<Storage>& storage = storages[path];
    if (!storage) storage = storage_of(data, dtype, sizes);
    Tensor t = checked_view(storage, dtype, sizes, strides, offset.value.to_int(), "tensor");
    if (meta->at("requires_grad").to_bool() && (is_floating(dtype) || is_complex(dtype))) t.set_requires_grad();
    return t;
  }

  // A tensor on the meta device: all that the file says of it is all that there is.
  static Tensor meta_tensor(const Json& meta, pt2::SymbolReader& symbols) {
    const Tensor checked = symbols.fake(meta);
    Tensor t = make_tensor(checked.meta(), true);
    t.impl().offset = checked.impl().offset;
    if (checked.requires_grad()) t.set_requires_grad();
    return t;
  }

  Ref<Storage> storage_of(const ZipEntry& data, DType dtype, const std::vector<int64_t>& sizes) const {
    if (data.data.empty()) {
      // A tensor that had no data when it was saved (a fake one): PyTorch loads zeros.
      int64_t bytes = static_cast<int64_t>(item_size(dtype));
      for (const int64_t n : sizes)
        if (n < 0 || __builtin_mul_overflow(bytes, n, &bytes)) fail("the sizes of " + data.name + " overflow");
      const std::shared_ptr<const MappedFile> zeros = MappedFile::zeros(static_cast<size_t>(bytes));
      return Storage::borrow(const_cast<std::byte*>(zeros->bytes().data()), zeros->bytes().size(), zeros, true);
    }
    if (reinterpret_cast<uintptr_t>(data.data.data()) % 16 == 0)
      return Storage::borrow(const_cast<std::byte*>(data.data.data()), data.data.size(), owner_of(data), true);
    Ref<Storage> copy = Storage::allocate(data.data.size());  // a zip that was not made by PyTorch
    std::memcpy(copy->data(), data.data.data(), data.data.size());
    return copy;
  }

  Payload pickled_payload(const ZipEntry& e) const {
    Payload out;
    if (e.data.empty()) return out;
    const Value content = read_pickle(e.data, owner_of(e), what + ": " + e.name);
    if (content.kind() != Value::Kind::dict)
      fail(e.name + " holds " + std::string(Value::kind_name(content.kind())) + ", expected names and tensors");
    for (const auto& [key, value] : content.to_dict().items) {
      if (key.kind() != Value::Kind::string || !value.is_tensor()) fail(e.name + ": " + key.str() + " is no tensor");
      out.values.emplace_back(key.to_string(), value);
    }
    return out;
  }

  std::optional<ExampleInputs> example_inputs(const ZipEntry* e) const {
    if (!e || e->data.empty()) return std::nullopt;
    zip.check(*e);
    PickleOptions options;
    options.keep_objects = true;
    const Value content = read_pickle(e->data, owner_of(*e), what + ": " + e->name, options);
    const bool is_tuple = content.kind() == Value::Kind::tuple;
    if (!is_tuple && content.kind() != Value::Kind::dict)
      fail(e->name + " holds " + std::string(Value::kind_name(content.kind())) +
           ", expected arguments and keyword arguments");
    if (!is_tuple || content.to_items().empty()) return std::nullopt;
    const Values& items = content.to_items();
    if (items.size() != 2 || items[0].kind() != Value::Kind::tuple || items[1].kind() != Value::Kind::dict)
      fail(e->name + ": expected a tuple of arguments and a dict of keyword arguments");
    ExampleInputs out;
    out.args = items[0].to_items();
    for (const auto& [key, value] : items[1].to_dict().items) {
      if (key.kind() != Value::Kind::string) fail(e->name + ": a keyword argument whose name is no text");
      out.kwargs.emplace_back(key.to_string(), value);
    }
    return out;
  }

  static bool has_structures(const ExampleInputs& inputs) {
    const auto test = [](const auto& self, const Value& v) -> bool {
      return v.kind() == Value::Kind::structure || any_item(v, [&](const Value& item) { return self(self, item); });
    };
    for (const Value& v : inputs.args)
      if (test(test, v)) return true;
    for (const auto& [name, v] : inputs.kwargs)
      if (test(test, v)) return true;
    return false;
  }

  // ---- the program --------------------------------------------------------------------------------------------------

  std::shared_ptr<const ExportedProgram> load(const std::string& model, const LoadProgramOptions& options) const {
    const ZipEntry& e = model_entry(model);
    const JsonDocument document = parse(e);
    return in_part(e.name, [&] { return read_program(document.root(), model, options); });
  }

  std::shared_ptr<const ExportedProgram> read_program(const Json& root, const std::string& model,
                                                      const LoadProgramOptions& options) const {
    const int64_t major = root.at("schema_version").at("major").to_int();
    if (major != pt2::schema_major)
      root.fail("its schema version is " + std::to_string(major) + "." +
                std::to_string(root.at("schema_version").at("minor").to_int()) + ", expected " +
                std::to_string(pt2::schema_major) + ".x");
    const pt2::DeviceMap devices(options.devices);
    pt2::SymbolReader symbols(root.at("range_constraints"), devices);
    ExportedProgram::Parts parts;
    Payload state = old_form
                        ? old_payload("serialized_state_dict.pt", options)
                        : read_payload("data/weights/", model + "_weights_config.json", model + ".pt", options, symbols);
    Payload constants =
        old_form ? old_payload("serialized_constants.pt", options)
                 : read_payload("data/constants/", model + "_constants_config.json", model + ".pt", options, symbols);
    for (auto& [name, value] : state.values) {
      if (!value.is_tensor()) fail("the weight " + name + " is no tensor");
      parts.state_dict.set(name, value.to_tensor());
    }
    parts.constants = std::move(constants.values);
    parts.compiled = compiled_entries(model, std::move(state.checksums), std::move(constants.checksums));

    const Json& module = root.at("graph_module");
    parts.signature = pt2::read_signature(module.at("signature"));
    if (state.parameters) {
      parts.parameters = std::move(*state.parameters);
    } else {
      const std::vector<std::string> named = parts.signature.parameters();
      parts.parameters.insert(named.begin(), named.end());
    }
    parts.module_call_graph = pt2::read_module_call_graph(module);
    if (parts.module_call_graph.empty() || !parts.module_call_graph[0].signature)
      module.fail("the call signature of the program itself is missing");
    parts.graph_module = pt2::read_graph(module.at("graph"), parts.signature, symbols, parts.constants);
    symbols.finish();
    pt2::own_written_state(parts);
    parts.range_constraints = symbols.ranges();
    if (const Json* metadata = module.find("metadata"); metadata && !metadata->is_null())
      for (const auto& [key, value] : metadata->members()) parts.metadata.emplace_back(key, value.to_string());
    if (const Json* verifiers = root.find("verifiers"); verifiers && !verifiers->is_null() && !verifiers->items().empty())
      parts.dialect = verifiers->items()[0].to_string() == "TRAINING" ? Dialect::training : Dialect::aten;
    parts.opset_version.clear();
    for (const auto& [name, version] : root.at("opset_version").members())
      parts.opset_version.emplace(name, version.to_int());
    if (const Json* version = root.find("torch_version"); version && version->is_string())
      parts.torch_version = version->to_string();
    if (parts.torch_version.empty()) parts.torch_version = "<=2.4";
    if (const Json* guards = root.find("guards_code"); guards && !guards->is_null())
      for (const Json& g : guards->items()) parts.guards_code.emplace_back(g.to_string());
    if (options.example_inputs) {
      const ZipEntry* e = zip.find(old_form ? "serialized_example_inputs.pt" : top + "data/sample_inputs/" + model + ".pt");
      parts.example_inputs = example_inputs(e);
      if (parts.example_inputs && has_structures(*parts.example_inputs)) parts.example_inputs_pickle = e->text();
    }
    return std::make_shared<const ExportedProgram>(std::move(parts));
  }

  using Checksums = std::vector<std::pair<Ref<Storage>, uint32_t>>;
  std::shared_ptr<const CompiledEntries> compiled_entries(const std::string& model, Checksums state,
                                                          Checksums constants) const {
    const std::string folder = top + pt2::compiled_folder(model);
    const ZipEntry* plan = zip.find(folder + pt2::compiled_plan);
    if (!plan) return nullptr;
    auto out = std::make_shared<CompiledEntries>();
    out->plan = plan->text();
    while (const ZipEntry* block = zip.find(folder + pt2::compiled_block(out->blocks.size())))
      out->blocks.push_back({block->data, owner_of(*block)});
    out->checksums = std::move(state);
    out->checksums.insert(out->checksums.end(), constants.begin(), constants.end());
    return out;
  }

  Payload old_payload(const std::string& name, const LoadProgramOptions&) const {
    return pickled_payload(checked_entry(name));
  }

  std::shared_ptr<const void> owner;
  std::string what;
  ZipReader zip;
  std::string top;  // the folder that all entries are in, with its slash
  bool old_form = false;
  std::vector<std::string> models;
};

Pt2Archive Pt2Archive::from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                  const std::string& what) {
  Pt2Archive archive;
  archive.impl_ = reading_format(FileFormat::program, bytes, what,
                                 [&] { return std::make_shared<const Impl>(bytes, std::move(owner), what); });
  return archive;
}
Pt2Archive Pt2Archive::open(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return from_bytes(file->bytes(), file, path);
}
Pt2Archive Pt2Archive::open(int descriptor, const std::string& what) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(descriptor, what);
  return from_bytes(file->bytes(), file, what);
}

const std::vector<std::string>& Pt2Archive::models() const { return impl_->models; }

std::shared_ptr<const ExportedProgram> Pt2Archive::load(const std::string& model, const LoadProgramOptions& options) const {
  return impl_->load(model, options);
}
std::shared_ptr<const ExportedProgram> Pt2Archive::load(const LoadProgramOptions& options) const {
  return impl_->load(impl_->models.size() == 1 ? impl_->models[0] : "model", options);
}

std::map<std::string, std::string> Pt2Archive::extra_files() const {
  std::map<std::string, std::string> out;
  const std::string folder = impl_->old_form ? std::string(old_extra_folder) : impl_->top + std::string(extra_folder);
  for (const ZipEntry& e : impl_->zip.entries())
    if (e.name.starts_with(folder)) {
      impl_->zip.check(e);
      out.emplace(e.name.substr(folder.size()), e.text());
    }
  return out;
}

std::string Pt2Archive::schema_version(const std::string& model) const {
  return impl_->parse(impl_->model_entry(model)).read([](const Json& root) {
    const Json& version = root.at("schema_version");
    return std::to_string(version.at("major").to_int()) + "." + std::to_string(version.at("minor").to_int());
  });
}

std::shared_ptr<const ExportedProgram> load_program(const std::string& path, const LoadProgramOptions& options) {
  return Pt2Archive::open(path).load(options);
}
std::shared_ptr<const ExportedProgram> load_program(int descriptor, const LoadProgramOptions& options) {
  return Pt2Archive::open(descriptor).load(options);
}
std::shared_ptr<const ExportedProgram> load_program(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                                    const LoadProgramOptions& options) {
  return Pt2Archive::from_bytes(bytes, std::move(owner)).load(options);
}

}  // namespace calque
