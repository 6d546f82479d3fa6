// calque save MODEL -o DIR: a model folder written anew, in another dtype, in other shards or in another format.
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "calque/hub/hub_cache.h"
#include "calque/hub/save_pretrained.h"
#include "cli/command.h"
#include "cli/models.h"
#include "cli/table.h"

namespace calque::cli {

namespace fs = std::filesystem;

void run_save(const SaveCommandOptions& o) {
  const std::shared_ptr<PretrainedModel> model = load_model({o.model, o.model_class, "", ""});
  SaveOptions options;
  options.max_shard_size = o.max_shard_size;
  options.safe_serialization = o.format != "bin";
  options.variant = o.variant;
  if (!o.dtype.empty() && o.dtype != "auto") options.dtype = dtype_from_name(o.dtype);
  options.companions_of = ModelFiles(model_folder(o.model)).folder();
  if (!model->generation_config_json.empty()) options.generation_config = model->generation_config_json;
  const SaveResult result = save_pretrained(*model, o.output, options);
  Table table({{"file"}, {"bytes", Table::Align::right}});
  for (const std::string& name : result.files) {
    std::error_code folder;  // has no size
    const uintmax_t bytes = fs::file_size(fs::path(o.output) / name, folder);
    table.add({printable(name), folder ? "" : with_thousands(bytes)});
  }
  fmt::print("{}: {} of weights\n\n{}", o.output, human_bytes(result.total_size), table.str());
}

}  // namespace calque::cli
