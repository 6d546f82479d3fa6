#include "file/checkpoint_content.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/file/pickle.h"

namespace calque {
namespace {

std::string key_text(const Value& key) { return key.kind() == Value::Kind::string ? key.to_string() : key.str(); }

bool is_state_dict(const Value& value) {
  if (value.kind() != Value::Kind::dict || value.to_dict().items.empty()) return false;
  return std::ranges::all_of(value.to_dict().items, [](const auto& item) {
    return item.first.kind() == Value::Kind::string && item.second.is_tensor();
  });
}

bool is_optimiser(const Value& value) {
  return value.kind() == Value::Kind::dict && value.to_dict().find("state") && value.to_dict().find("param_groups");
}

std::string shortened(std::string text) {
  constexpr size_t most = 40;
  if (text.size() > most) text = text.substr(0, most) + "...";
  return text;
}

std::string described(const Value& value) {
  if (is_optimiser(value)) return "the state of an optimiser";
  if (is_state_dict(value)) {
    const size_t count = value.to_dict().items.size();
    return std::to_string(count) + (count == 1 ? " tensor" : " tensors");
  }
  const std::string kind(Value::kind_name(value.kind()));
  switch (value.kind()) {
    case Value::Kind::tensor: return "a tensor " + str(value.to_tensor().sizes());
    case Value::Kind::dict: return "a dict of " + std::to_string(value.to_dict().items.size());
    case Value::Kind::list:
    case Value::Kind::tuple: {
      const Values& items = value.to_items();
      if (!items.empty() && std::ranges::all_of(items, is_optimiser)) return "states of optimisers";
      return "a " + kind + " of " + std::to_string(items.size());
    }
    case Value::Kind::structure: return "an object of the class " + value.to_struct().type;
    case Value::Kind::none: return kind;
    case Value::Kind::string: return "the text '" + shortened(value.to_string()) + "'";
    case Value::Kind::boolean:
    case Value::Kind::integer:
    case Value::Kind::floating:
    case Value::Kind::complex:
    case Value::Kind::slice:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::node: break;
  }
  return kind + " " + shortened(value.str());
}

void append(const std::string& path, const Value& value, NamedTensors& out) {
  const auto below = [&](const std::string& name) { return path.empty() ? name : path + "." + name; };
  if (value.is_tensor()) {
    out.emplace_back(path.empty() ? "0" : path, value.to_tensor());
  } else if (value.kind() == Value::Kind::dict) {
    for (const auto& [key, item] : value.to_dict().items) append(below(key_text(key)), item, out);
  } else if (value.kind() == Value::Kind::list || value.kind() == Value::Kind::tuple) {
    for (size_t i = 0; i < value.to_items().size(); ++i) append(below(std::to_string(i)), value.to_items()[i], out);
  } else if (value.kind() == Value::Kind::structure) {
    const StructValue& s = value.to_struct();
    for (size_t i = 0; i < s.items.size(); ++i)
      append(below(i < s.fields.size() ? s.fields[i] : std::to_string(i)), s.items[i], out);
  }
}

[[noreturn]] void refuse_content(const std::string& path, const Value& content) {
  const std::vector<CheckpointPart> parts = checkpoint_parts(content);
  const std::string state = state_key(parts);
  std::string text = path + ": expected names and tensors (a state dict), found " + content_name(content);
  if (content.kind() == Value::Kind::dict && !is_optimiser(content)) {
    constexpr size_t most = 12;
    text += ": ";
    for (size_t i = 0; i < std::min(parts.size(), most); ++i)
      text += (i ? ", " : "") + ("'" + parts[i].key + "' is " + parts[i].what);
    if (parts.size() > most) text += ", and " + std::to_string(parts.size() - most) + " more";
  }
  if (!state.empty())
    text += ". The weights are under '" + state + "'; in Python: torch.save(torch.load('" + path +
            "', weights_only=False)['" + state + "'], 'weights.pt')";
  else if (is_optimiser(content))
    text += ", which holds no weights; name the model's file";
  else if (content.kind() == Value::Kind::structure)
    text += ". Save its state instead; in Python: torch.save(torch.load('" + path +
            "', weights_only=False).state_dict(), 'weights.pt')";
  else if (!nested_tensors(content).empty())
    text += ". `calque info` lists its tensors";
  throw UserError(ErrorKind::bad_file, text);
}

}  // namespace

std::vector<CheckpointPart> checkpoint_parts(const Value& content) {
  std::vector<CheckpointPart> out;
  if (content.kind() != Value::Kind::dict) return out;
  for (const auto& [key, value] : content.to_dict().items)
    out.push_back({key_text(key), described(value), is_state_dict(value)});
  return out;
}

NamedTensors nested_tensors(const Value& content) {
  NamedTensors out;
  append("", content, out);
  return out;
}

std::string state_key(const std::vector<CheckpointPart>& parts) {
  // What training loops call it; else the first that can be one.
  for (const char* usual : {"model_state_dict", "state_dict", "model", "module", "net", "weights"})
    for (const CheckpointPart& part : parts)
      if (part.state && part.key == usual) return part.key;
  for (const CheckpointPart& part : parts)
    if (part.state) return part.key;
  return "";
}

std::string content_name(const Value& content) {
  if (is_state_dict(content)) return "a state dict";
  if (is_optimiser(content)) return "the state of an optimiser";
  if (content.kind() == Value::Kind::structure) return "a whole object of the class " + content.to_struct().type;
  if (!state_key(checkpoint_parts(content)).empty()) return "a training checkpoint";
  return described(content);
}

NamedTensors load_pickle_tensors(const std::string& path) {
  Value content;
  try {
    content = load_pickle(path);
  } catch (const UserError& refused) {
    // Objects of a training loop beside the weights: what they are can be said without making them.
    if (refused.kind() != ErrorKind::bad_file) throw;
    try {
      content = load_pickle(path, {.keep_objects = true});
    } catch (const UserError&) {
    }
    if (content.kind() != Value::Kind::structure && state_key(checkpoint_parts(content)).empty()) throw;
  }
  if (content.kind() != Value::Kind::dict || !(content.to_dict().items.empty() || is_state_dict(content)))
    refuse_content(path, content);
  NamedTensors out;
  for (const auto& [key, value] : content.to_dict().items) out.emplace_back(key.to_string(), value.to_tensor());
  return out;
}

}  // namespace calque
