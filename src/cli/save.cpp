// calque save MODEL -o DIR: a model folder written anew, in another dtype, in other shards or in another format.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "calque/hub/save_pretrained.h"
#include "cli/command.h"
#include "cli/models.h"
#include "cli/table.h"

namespace calque::cli {

namespace fs = std::filesystem;

// What belongs to a model besides its configuration and weights.
static void copy_companions(const fs::path& from, const fs::path& to) {
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "vocab.txt", "merges.txt",
        "added_tokens.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "chat_template.jinja"})
    if (fs::is_regular_file(from / name) && !fs::exists(to / name)) fs::copy_file(from / name, to / name);
}

static std::optional<std::string> text_of_file(const fs::path& path) {
  if (!fs::is_regular_file(path)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void run_save(const SaveCommandOptions& o) {
  const std::shared_ptr<PretrainedModel> model = load_model({o.model, o.model_class, "", ""});
  const fs::path source = model_folder(o.model);
  SaveOptions options;
  options.max_shard_size = o.max_shard_size;
  options.safe_serialization = o.format != "bin";
  options.variant = o.variant;
  if (!o.dtype.empty() && o.dtype != "auto") options.dtype = dtype_from_name(o.dtype);
  if (model->can_generate()) options.generation_config = text_of_file(source / "generation_config.json");
  const SaveResult result = save_pretrained(*model, o.output, options);
  copy_companions(source, o.output);
  Table table({{"file"}, {"bytes", Table::Align::right}});
  for (const std::string& name : result.files)
    table.add({printable(name), with_thousands(fs::file_size(fs::path(o.output) / name))});
  fmt::print("{}: {} of weights\n\n{}", o.output, human_bytes(result.total_size), table.str());
}

}  // namespace calque::cli
