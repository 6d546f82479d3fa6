#include "hub/python_way.h"

#include <algorithm>

namespace calque {
namespace {

// The class that the configuration names. It is put into code, so a text that is no identifier is replaced by the general class.
std::string python_class(const Config& config) {
  const std::vector<std::string> names = config.architectures();
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (names.empty() || names[0].empty() || !std::all_of(names[0].begin(), names[0].end(), is_letter)) return "AutoModel";
  return names[0];
}

std::string python_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out + "\"";
}

std::string python_inputs(const Config& config, const std::string& folder) {
  if (config.has("vocab_size") || config.has("text_config"))
    return "dict(transformers.AutoTokenizer.from_pretrained(" + folder + R"()("Some text", return_tensors="pt")))";
  if (const auto size = config.optional_integer("image_size")) {
    const std::string side = std::to_string(*size);
    return R"({"pixel_values": torch.rand(1, )" + std::to_string(config.optional_integer("num_channels").value_or(3)) +
           ", " + side + ", " + side + ")}";
  }
  return "{...}  # the tensors that its forward takes, by name";
}

}  // namespace

std::string python_way(const Config& config, const std::string& folder) {
  const std::string where = python_text(folder);
  const bool text = config.has("vocab_size") || config.has("text_config");
  return "What works today: PyTorch exports the model, and Calque runs the program. In Python (pip install torch "
         "transformers "
         "safetensors):\n"
         "  import torch, transformers, safetensors.torch\n"
         "  model = transformers." +
         python_class(config) + ".from_pretrained(" + where +
         ").eval(); model.config.use_cache = False\n"
         "  inputs = " +
         python_inputs(config, where) +
         "\n"
         "  safetensors.torch.save_file(inputs, \"inputs.safetensors\")\n"
         "  torch.export.save(torch.export.export(model, (), inputs" +
         (text ? ", dynamic_shapes={k: {1: torch.export.Dim.AUTO} for k in inputs}" : "") +
         "), \"model.pt2\")\n"
         "then\n"
         "  calque run model.pt2 --inputs inputs.safetensors --outputs outputs.safetensors";
}

}  // namespace calque
