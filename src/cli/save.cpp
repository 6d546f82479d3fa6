// calque save MODEL -o DIR: a model folder written anew, in another dtype, in other shards or in another format.
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/hub/adapters.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/hub_cache.h"
#include "calque/hub/save_pretrained.h"
#include "cli/command.h"
#include "cli/json_text.h"
#include "cli/models.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/table.h"

namespace calque::cli {

namespace fs = std::filesystem;

void run_save(const SaveCommandOptions& o) {
  for (const char* ending : {".safetensors", ".bin", ".pt", ".pt2", ".onnx", ".gguf", ".json"})
    if (o.output.ends_with(ending) && !fs::is_directory(o.output))
      throw UserError("save: expected the name of a folder, found '" + o.output + "'" +
                      (std::string_view(ending) == ".gguf"
                           ? "; for GGUF save a folder and convert it with llama.cpp's convert_hf_to_gguf.py"
                       : std::string_view(ending) == ".onnx" || std::string_view(ending) == ".pt2"
                           ? "; `calque export` writes .pt2 programs"
                           : "; the weights are a file in it"));
  const std::shared_ptr<PretrainedModel> model = load_model({o.model, o.model_class, "", "", o.from_variant});
  SaveOptions options;
  options.max_shard_size = o.max_shard_size;
  options.safe_serialization = o.format != "bin";
  options.variant = o.variant;
  if (!o.dtype.empty()) options.dtype = dtype_option(o.dtype);
  options.companions_of = tokenizer_folder(ModelFiles(model_folder(o.model)).folder());
  if (o.merge && !model->adapters)
    throw UserError("save: --merge puts an adapter into a model's weights, and " + o.model + " has none; leave it out");
  if (o.merge) merge_and_unload(*model, true);
  if (!model->generation_config_json.empty()) options.generation_config = model->generation_config_json;
  SaveResult result;
  {
    Progress progress("saving " + o.output, o.output + " is as it was", Progress::Unit::bytes);
    options.progress = progress.callback();
    result = save_pretrained(*model, o.output, options);
  }
  Table table({{"file"}, {"bytes", Table::Align::right}});
  OrderedJson files = OrderedJson::array();
  for (const std::string& name : result.files) {
    std::error_code folder;  // has no size
    const uintmax_t bytes = fs::file_size(fs::path(o.output) / name, folder);
    table.add({printable(name), folder ? "" : with_thousands(bytes)});
    files.push_back({{"name", name}, {"bytes", folder ? OrderedJson(nullptr) : OrderedJson(bytes)}});
  }
  if (o.json) return print_json({{"path", o.output}, {"weight_bytes", result.total_size}, {"files", files}});
  if (!is_quiet()) fmt::print("{}: {} of weights\n\n{}", o.output, human_bytes(result.total_size), table.str());
}

}  // namespace calque::cli
