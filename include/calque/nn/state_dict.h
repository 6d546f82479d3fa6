// StateDict: names and tensors in a fixed order, what a module's state_dict() gives and load_state_dict() takes. The
// tensors are handles: a state dict of a module shares its parameters and buffers. Copying it copies handles.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/op/tensor.h"

namespace calque {

class StateDict {
 public:
  using Item = std::pair<std::string, Tensor>;

  StateDict() = default;
  StateDict(std::initializer_list<Item> items);
  explicit StateDict(std::vector<Item> items);

  void set(std::string name, Tensor tensor);  // a name that is there already keeps its place
  const Tensor* find(std::string_view name) const;
  const Tensor& at(std::string_view name) const;  // UserError names the key
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  bool erase(std::string_view name);
  void rename(std::string_view name, std::string to);  // in place; UserError when `name` is missing or `to` is there

  const std::vector<Item>& items() const { return items_; }
  // The items whose names start so, in order; takes time for those only.
  std::vector<const Item*> items_under(std::string_view prefix) const;
  std::vector<Item>::const_iterator begin() const { return items_.begin(); }
  std::vector<Item>::const_iterator end() const { return items_.end(); }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }

  // What PyTorch keeps as `_metadata`: a version per module path. Empty for what was read from a file without it.
  std::map<std::string, int64_t, std::less<>> versions;

 private:
  void index_from(size_t first);
  std::vector<Item> items_;
  std::map<std::string, size_t, std::less<>> position_;
};

struct IncompatibleKeys {
  std::vector<std::string> missing_keys;
  std::vector<std::string> unexpected_keys;
};

}  // namespace calque
