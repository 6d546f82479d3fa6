#include "calque/hub/traced_model.h"

#include <set>

#include "calque/base/error.h"
#include "calque/file/file_writer.h"
#include "calque/file/folder_writer.h"
#include "calque/file/mapped_file.h"
#include "calque/file/pickle.h"
#include "calque/graph/text.h"
#include "calque/graph/to_folder.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/loss.h"

namespace calque {
namespace {

namespace fs = std::filesystem;

constexpr const char* graph_file = "graph.txt";
constexpr const char* state_file = "state_dict.pt";

std::string read_text(const fs::path& path) {
  const auto file = MappedFile::open(path.string());
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

Graph graph_of_file(const fs::path& path) {
  try {
    return parse_graph(read_text(path));
  } catch (UserError& error) {
    if (std::string_view(error.what()).find(path.string()) == std::string_view::npos) error.prepend(path.string() + ": ");
    throw;
  }
}

// What a tracer puts into a model: losses, which have no state. Their name says which they are.
std::shared_ptr<Module> stateless_module(std::string_view path) {
  const std::string_view kind = path.substr(0, path.rfind('_'));
  if (kind == "crossentropyloss") return std::make_shared<CrossEntropyLoss>();
  if (kind == "mseloss") return std::make_shared<MSELoss>();
  if (kind == "bcewithlogitsloss") return std::make_shared<BCEWithLogitsLoss>();
  return nullptr;
}

}  // namespace

TracedModel::TracedModel(const Module& root, Graph graph, Config config, std::string model_class)
    : GraphModule(root, std::move(graph), model_class),
      config(std::move(config)),
      class_for_deserialization(std::move(model_class)) {
  const std::vector<Tensor> all = root.parameters();
  if (!all.empty()) device = all[0].device();
}

std::shared_ptr<Module> TracedModel::copy_self() const { return std::shared_ptr<Module>(new TracedModel(*this)); }

void save_traced_model(const TracedModel& traced, const fs::path& folder, const std::string& class_name) {
  const std::set<std::string> files = {"module.py", "__init__.py", state_file, graph_file, "config.json"};
  FolderWriter writer(folder, [&](const std::string& name) { return files.contains(name); });
  write_python_package(traced, writer.path(), class_name);
  Config config = traced.config;
  config.set("architectures", list({traced.class_for_deserialization}));
  config.save(writer.path());
  FileWriter file((writer.path() / graph_file).string());
  const std::string text = text_with_symbols(traced.graph());
  file.write(text.data(), text.size());
  file.commit();
  writer.commit();
}

std::shared_ptr<TracedModel> load_traced_model(const fs::path& folder) {
  const Config config = Config::from_file(folder);
  const std::vector<std::string> classes = config.architectures();
  const ModelClass* found = classes.empty() ? nullptr : model_registry().find_class(classes[0]);
  if (!found)
    throw UserError(ErrorKind::bad_file,
                    config.where() + ": architectures names " + (classes.empty() ? "nothing" : classes[0]) +
                        ", expected the class that the graph was made of, one that calque models lists");
  Graph graph = graph_of_file(folder / graph_file);
  const std::shared_ptr<PretrainedModel> model = found->make(config);
  model->eval();
  const GradModeScope no_grad(false);
  for (const auto& [name, tensor] : load_pickle_tensors((folder / state_file).string())) {
    if (model->find_tensor(name))
      model->set_tensor(name, tensor);
    else if (name.find('.') == std::string::npos)  // what the trace closed over
      model->register_buffer(name, tensor, false);
  }
  for (const Node* n : graph.nodes()) {
    if (n->kind() != NodeKind::call_module || model->find_submodule(n->target().text())) continue;
    std::shared_ptr<Module> made = stateless_module(n->target().text());
    if (!made)
      throw UserError(ErrorKind::bad_file, (folder / graph_file).string() + ": the graph calls " + n->target().text() +
                                               ", which a " + found->name + " does not have");
    model->register_module(n->target().text(), std::move(made));
  }
  return std::make_shared<TracedModel>(*model, std::move(graph), config, found->name);
}

}  // namespace calque
