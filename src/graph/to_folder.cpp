#include "calque/graph/to_folder.h"

#include <algorithm>
#include <set>

#include "calque/base/error.h"
#include "calque/file/file_writer.h"
#include "calque/file/folder_writer.h"
#include "calque/file/pickle.h"
#include "calque/nn/loss.h"
#include "calque/nn/transformer.h"
#include "calque/tensor/dtype.h"
#include "calque/tensor/number_text.h"

namespace calque {
namespace {

constexpr const char* class_head = R"(import os

import torch
from math import inf
from math import nan
NoneType = type(None)
from torch import device
import torch.fx._pytree as fx_pytree
import torch.utils._pytree as pytree

from torch.nn import *


def _put(root, path, value):
    *parents, name = path.split('.')
    for parent in parents:
        if parent not in root._modules:
            root.add_module(parent, torch.nn.Module())
        root = root._modules[parent]
    if isinstance(value, torch.nn.Module):
        root.add_module(name, value)
    elif isinstance(value, torch.nn.Parameter):
        root.register_parameter(name, value)
    else:
        root.register_buffer(name, value)


)";

// A layer whose weight is computed from parts of it (torch.nn.utils.parametrizations).
bool is_parametrized(const Module& module) {
  return module.type_name().starts_with("torch.nn.utils.parametrize.Parametrized");
}
bool is_of_torch(const Module& module) {
  return module.type_name().starts_with("torch.nn.modules.") || is_parametrized(module);
}
bool is_empty(const Module& module) { return module.class_name() == "Module" || module.class_name() == "Container"; }

// A layer with a weight as direction and length: it prints what its layer is made with.
std::string normed_constructor(const Module& module) {
  const Tensor& lengths = module.get_parameter("parametrizations.weight.original0");
  const Tensor& directions = module.get_parameter("parametrizations.weight.original1");
  int64_t dim = directions.dim() - 1;  // there is a length for each place of it
  while (dim > 0 && lengths.size(dim) != directions.size(dim)) --dim;
  const std::string layer = module.class_name().substr(std::string("Parametrized").size());
  return "torch.nn.utils.parametrizations.weight_norm(" + layer + "(" + module.extra_repr() +
         "), name='weight', dim=" + std::to_string(dim) + ")";
}

std::string attention_constructor(const MultiheadAttention& module) {
  const auto python = [](bool flag) { return flag ? "True" : "False"; };
  std::string out = "MultiheadAttention(" + std::to_string(module.embed_dim) + ", " + std::to_string(module.num_heads) +
                    ", dropout=" + python_repr(module.dropout) + ", bias=" + python(module.in_proj_bias.defined()) +
                    ", add_bias_kv=" + python(module.bias_k().defined()) + ", add_zero_attn=" + python(module.add_zero_attn);
  if (module.kdim != module.embed_dim) out += ", kdim=" + std::to_string(module.kdim);
  if (module.vdim != module.embed_dim) out += ", vdim=" + std::to_string(module.vdim);
  return out + ", batch_first=" + python(module.batch_first) + ")";
}

// PyTorch prints a layer as the call that makes it; of a loss it prints the name alone.
std::string constructor(const Module& module, const std::string& path) {
  if (is_parametrized(module)) return normed_constructor(module);
  if (const auto* attention = dynamic_cast<const MultiheadAttention*>(&module)) return attention_constructor(*attention);
  if (const auto* loss = dynamic_cast<const LossBase*>(&module)) {
    std::string out = module.class_name() + "(";
    if (const auto* entropy = dynamic_cast<const CrossEntropyLoss*>(&module); entropy && entropy->ignore_index != -100)
      out += "ignore_index=" + std::to_string(entropy->ignore_index) + ", ";
    return out + "reduction='" + loss->reduction + "')";
  }
  std::string text = module.str();
  if (!is_of_torch(module) || text.find('\n') != std::string::npos)
    throw UserError("to_folder: the graph calls " + path + ", a " + module.type_name() +
                    ", which no call of a constructor of torch.nn makes; trace it with a tracer that enters it "
                    "(Tracer::is_leaf_module)");
  return text;
}

std::string quoted(const std::string& path) { return "'" + path + "'"; }

std::string empty_tensor(const Tensor& t) {
  std::string sizes;
  for (const int64_t size : t.sizes()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  return "torch.empty([" + sizes + "], dtype=torch." + std::string(name(t.dtype())) + ")";
}

struct Held {
  std::string path;
  Tensor tensor;
  bool is_parameter = false;
};

// What a module holds itself, below it first what comes first.
void collect(const Module& module, const std::string& prefix, bool in_constructor, std::vector<Held>& tensors,
             std::vector<std::pair<std::string, std::string>>& modules) {
  bool made = in_constructor;
  if (!made && !prefix.empty() && is_of_torch(module) && !is_empty(module)) {
    const std::string path = prefix.substr(0, prefix.size() - 1);
    if (module.class_name() != "ModuleList" && module.class_name() != "Sequential") {
      modules.emplace_back(path, constructor(module, path));
      made = true;
    }
  }
  for (const auto* slots : {&module.parameter_slots(), &module.buffer_slots(), &module.constant_slots()})
    for (const auto& slot : *slots)
      if (slot->tensor.defined() && !(made && !slot->is_parameter && !slot->persistent))
        tensors.push_back({prefix + slot->name, slot->tensor, made ? false : slot->is_parameter});
  for (const auto& slot : module.module_slots())
    if (slot->module) collect(*slot->module, prefix + slot->name + ".", made, tensors, modules);
}

struct Contents {
  std::vector<Held> tensors;
  std::vector<std::pair<std::string, std::string>> modules;
};

Contents contents_of(const GraphModule& module) {
  Contents out;
  collect(module, "", false, out.tensors, out.modules);
  return out;
}

bool within_a_module(const Contents& contents, const std::string& path) {
  return std::ranges::any_of(contents.modules, [&](const auto& one) { return path.starts_with(one.first + "."); });
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  FileWriter file(path.string());
  file.write(text.data(), text.size());
  file.commit();
}

std::string indented_lines(const std::string& text) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) out += "    " + text.substr(begin, end - begin);
    out += "\n";
    begin = end + 1;
  }
  return out;
}

}  // namespace

std::string python_module(const GraphModule& module, const std::string& class_name) {
  const Contents contents = contents_of(module);
  std::string out =
      class_head + ("class " + class_name + "(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n");
  for (const auto& [path, call] : contents.modules) out += "        _put(self, " + quoted(path) + ", " + call + ")\n";
  for (const Held& held : contents.tensors) {
    if (within_a_module(contents, held.path)) continue;
    std::string value = empty_tensor(held.tensor);
    if (held.is_parameter)
      value = "torch.nn.Parameter(" + value + (held.tensor.requires_grad() ? "" : ", requires_grad=False") + ")";
    out += "        _put(self, " + quoted(held.path) + ", " + value + ")\n";
  }
  out +=
      "        state = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'state_dict.pt')\n"
      "        self.load_state_dict(torch.load(state, weights_only=True))\n";
  out += std::string("        self.train(") + (module.training() ? "True" : "False") + ")\n";
  return out + indented_lines(module.code());
}

Value graph_state(const GraphModule& module) {
  std::vector<std::pair<Value, Value>> items;
  for (const Held& held : contents_of(module).tensors) items.emplace_back(held.path, held.tensor.detach());
  return dict(std::move(items));
}

void write_python_package(const GraphModule& module, const std::filesystem::path& folder, const std::string& class_name) {
  write_text(folder / "module.py", python_module(module, class_name));
  write_text(folder / "__init__.py", "from .module import *\n");
  save_pickle((folder / "state_dict.pt").string(), graph_state(module));
}

void to_folder(const GraphModule& module, const std::filesystem::path& folder, const std::string& class_name) {
  const std::set<std::string> files = {"module.py", "__init__.py", "state_dict.pt"};
  FolderWriter writer(folder, [&](const std::string& name) { return files.contains(name); });
  write_python_package(module, writer.path(), class_name);
  writer.commit();
}

}  // namespace calque
