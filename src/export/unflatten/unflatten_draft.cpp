#include "export/unflatten/unflatten_draft.h"

#include <algorithm>

#include "calque/base/error.h"

namespace calque::unflatten_detail {

DraftPtr Draft::find(std::string_view name) const {
  for (const auto& [key, child] : *children)
    if (key == name) return child;
  return nullptr;
}

DraftPtr Draft::find_path(std::string_view path) {
  Draft* at = this;
  DraftPtr out;
  for (const std::string& item : split(path)) {
    out = at->find(item);
    if (!out) return nullptr;
    at = out.get();
  }
  return out;
}

void Draft::set(const std::string& name, DraftPtr child) {
  for (auto& [key, known] : *children)
    if (key == name) {
      known = std::move(child);
      return;
    }
  children->emplace_back(name, std::move(child));
}

void Draft::erase(std::string_view name) {
  std::erase_if(*children, [&](const auto& entry) { return entry.first == name; });
}

void Draft::set_state(State value) {
  const auto at = std::ranges::find(state, value.name, &State::name);
  if (at != state.end())
    *at = std::move(value);
  else
    state.push_back(std::move(value));
}

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> out;
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    out.emplace_back(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return out;
}

std::string_view before_at(std::string_view call_name) { return call_name.substr(0, call_name.find('@')); }

std::string call_name(const std::string& path, size_t index) {
  return index == 1 ? path : path + "@" + std::to_string(index - 1);
}

std::string accessor(const std::string& parent, const std::string& child) {
  if (parent.empty()) return child;
  if (!child.starts_with(parent + "."))
    throw UserError("unflatten: the module " + child + " is called in " + parent +
                    ", which is not above it; attach it to the module that calls it");
  return child.substr(parent.size() + 1);
}

}  // namespace calque::unflatten_detail
