// calque models: the architectures and classes of the registry, and what each class does.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/hub/registry.h"
#include "cli/command.h"
#include "cli/json_text.h"
#include "cli/table.h"
#include "hub/near_names.h"

namespace calque::cli {
namespace {

// What a class of a task gives, in words. A task that is not here is shown by its name.
const std::map<std::string, const char*, std::less<>>& task_words() {
  static const std::map<std::string, const char*, std::less<>> words = {
      {"default", "hidden states"},
      {"causal-lm", "text that goes on (`generate`)"},
      {"seq2seq-lm", "text from text (`generate`)"},
      {"masked-lm", "the likely words for a mask"},
      {"pretraining", "the losses of pretraining"},
      {"next-sentence-prediction", "whether a text follows another"},
      {"multiple-choice", "the best of several answers"},
      {"question-answering", "the span of a text that answers"},
      {"sequence-classification", "labels of a text"},
      {"token-classification", "labels of words"},
      {"image-feature-extraction", "features of a picture"},
      {"image-classification", "labels of a picture"},
      {"zero-shot-image-classification", "how well texts fit pictures"},
      {"semantic-segmentation", "labels of a picture's points"},
      {"masked-image-modeling", "the pixels of masked patches"},
      {"backbone", "the outputs of stages, for other models"},
      {"ctc", "the letters of a sound"},
      {"speech-seq2seq", "the words of a sound"},
      {"audio-classification", "labels of a sound"},
      {"audio-frame-classification", "labels of a sound's frames"},
      {"audio-xvector", "a vector for who speaks"},
      {"special", "a part of another model"},
  };
  return words;
}

std::string gives(const ModelClass& one) {
  std::vector<std::string> words;
  for (const std::string& task : one.tasks) {
    const auto found = task_words().find(task);
    words.push_back(found == task_words().end() ? task : found->second);
  }
  return join(words, "; ");
}

// The first class of an architecture carries its note.
std::string shown(const Architecture& architecture, const ModelClass& one) {
  const bool noted = !architecture.note.empty() && &one == &architecture.classes.front();
  return gives(one) + (noted ? " (" + architecture.note + ")" : "");
}

std::vector<const Architecture*> chosen(const std::string& name) {
  std::vector<const Architecture*> out;
  std::vector<std::string> names;
  for (const auto& one : model_registry().architectures()) {
    names.push_back(one->model_type);
    const bool by_class = std::ranges::any_of(one->classes, [&](const ModelClass& c) { return c.name == name; });
    if (name.empty() || one->model_type == name || by_class) out.push_back(one.get());
  }
  std::sort(names.begin(), names.end());
  if (out.empty())
    throw UserError("models: there is no architecture or class '" + name + "'" + did_you_mean(name, names) +
                    "\nThere are\n" + wrapped_list(names) +
                    "\nA model of another architecture runs as a program: docs/models.md says how.");
  std::ranges::sort(out, {}, &Architecture::model_type);
  return out;
}

constexpr const char* every_class =
    "`calque info`, `forward`, `trace`, `export`, `save` and `diff` take every class; `generate` those that give text.";

void print_markdown(const std::vector<const Architecture*>& all) {
  size_t classes = 0;
  for (const Architecture* one : all) classes += one->classes.size();
  fmt::print(
      "# Models\n\n<!-- Made by `calque models --markdown > docs/models.md`; a test fails when it is stale. -->\n\n"
      "Calque has {} classes of {} architectures, under transformers' names. {}\n"
      "Each class is compared live with transformers (`tests/peers/models.py`). `calque models` prints this list, `--json` "
      "for "
      "programs.\n\n"
      "A model of another architecture runs as a program: PyTorch exports it once, Calque runs it.\n\n"
      "```python\n"
      "import torch, transformers, safetensors.torch\n"
      "model = transformers.AutoModel.from_pretrained(\"FOLDER\").eval(); model.config.use_cache = False\n"
      "inputs = dict(transformers.AutoTokenizer.from_pretrained(\"FOLDER\")(\"Some text\", return_tensors=\"pt\"))\n"
      "safetensors.torch.save_file(inputs, \"inputs.safetensors\")\n"
      "torch.export.save(torch.export.export(model, (), inputs, dynamic_shapes={{k: {{1: torch.export.Dim.AUTO}} for k in "
      "inputs}}), \"model.pt2\")\n"
      "```\n\n"
      "```\ncalque run model.pt2 --inputs inputs.safetensors --outputs outputs.safetensors\n```\n\n"
      "| architecture | class | gives |\n|---|---|---|\n",
      classes, all.size(), every_class);
  for (const Architecture* one : all)
    for (const ModelClass& c : one->classes)
      fmt::print("| {} | {} | {} |\n", &c == &one->classes.front() ? one->model_type : "", c.name, shown(*one, c));
}

}  // namespace

void run_models(const ModelsOptions& o) {
  const std::vector<const Architecture*> all = chosen(o.architecture);
  if (o.markdown) return print_markdown(all);
  if (o.json) {
    OrderedJson out = OrderedJson::array();
    for (const Architecture* one : all) {
      OrderedJson classes = OrderedJson::array();
      for (const ModelClass& c : one->classes)
        classes.push_back({{"name", c.name}, {"tasks", c.tasks}, {"gives", gives(c)}});
      out.push_back({{"model_type", one->model_type}, {"config_class", one->config_class}, {"classes", classes}});
      if (!one->note.empty()) out.back()["note"] = one->note;
    }
    return print_json(out);
  }
  Table table({{"architecture"}, {"class"}, {"gives"}});
  for (const Architecture* one : all)
    for (const ModelClass& c : one->classes)
      table.add({&c == &one->classes.front() ? one->model_type : "", c.name, shown(*one, c)});
  fmt::print("{}\n{}\n", table.str(), every_class);
}

}  // namespace calque::cli
