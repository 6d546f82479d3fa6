#include "calque/hub/weight_form.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "calque/op/aten/empty.h"

namespace calque {

namespace {

void replace_part(std::string& name, const std::string& from, const std::string& to) {
  const auto bare = [](const std::string& text) { return text.starts_with("^") ? text.substr(1) : text; };
  const std::string old = bare(from);
  const size_t at =
      from.starts_with("^") || to.starts_with("^") ? (name.starts_with(old) ? 0 : std::string::npos) : name.find(old);
  if (at != std::string::npos) name.replace(at, old.size(), bare(to));
}

struct Numbered {
  std::string before;  // what stands before the part's name
  size_t number;
};

// "model.layers.0.mlp.experts.3.up_proj.weight" as the part "mlp.experts.*.up_proj.weight": "model.layers.0.", 3.
std::optional<Numbered> as_part(const std::string& name, const std::string& part) {
  const size_t star = part.find('*');
  const std::string head = part.substr(0, star), tail = part.substr(star + 1);
  if (!name.ends_with(tail)) return std::nullopt;
  const size_t end = name.size() - tail.size();
  const size_t at = name.rfind(head, end);
  if (at == std::string::npos || (at > 0 && name[at - 1] != '.')) return std::nullopt;
  size_t number = 0;
  const char* last = name.data() + end;
  const auto [stop, error] = std::from_chars(name.data() + at + head.size(), last, number);
  if (error != std::errc() || stop != last) return std::nullopt;
  return Numbered{name.substr(0, at), number};
}

using Grid = std::map<size_t, std::vector<size_t>>;  // by number, the places of the parts

bool is_complete(const Grid& grid, size_t parts, const NamedTensors& tensors) {
  const Tensor& one = tensors[grid.begin()->second[0]].second;
  size_t expected = 0;
  for (const auto& [number, places] : grid) {
    if (number != expected++ || places.size() != parts) return false;
    for (const size_t place : places) {
      const Tensor& other = tensors[place].second;
      if (other.dtype() != one.dtype() || other.dim() < 1 || !std::ranges::equal(other.sizes(), one.sizes())) return false;
    }
  }
  return true;
}

Tensor joined(const Grid& grid, const NamedTensors& tensors, bool values) {
  const Tensor& one = tensors[grid.begin()->second[0]].second;
  std::vector<int64_t> sizes(one.sizes().begin(), one.sizes().end());
  const int64_t rows = sizes[0];
  sizes[0] *= static_cast<int64_t>(grid.begin()->second.size());
  sizes.insert(sizes.begin(), static_cast<int64_t>(grid.size()));
  if (!values) return empty(SymInts(sizes.begin(), sizes.end()), one.dtype(), std::nullopt, Device(DeviceType::meta));
  const Tensor out = empty(SymInts(sizes.begin(), sizes.end()), one.dtype());
  for (const auto& [number, places] : grid) {
    const Tensor of_number = out.select(0, static_cast<int64_t>(number));
    for (size_t i = 0; i < places.size(); ++i)
      of_number.narrow(0, static_cast<int64_t>(i) * rows, rows).copy_(tensors[places[i]].second);
  }
  return out;
}

}  // namespace

NamedTensors WeightForm::of_model(const NamedTensors& of_file, bool values) const {
  NamedTensors tensors = of_file;
  for (auto& [name, tensor] : tensors)
    for (const auto* pairs : {&old, &renamed})
      for (const auto& [from, to] : *pairs) replace_part(name, from, to);
  std::set<size_t> gone;
  NamedTensors made;
  for (const Joined& one : joined) {
    std::map<std::string, Grid> by_module;
    for (size_t p = 0; p < one.parts.size(); ++p)
      for (size_t i = 0; i < tensors.size(); ++i)
        if (const auto found = as_part(tensors[i].first, one.parts[p])) {
          std::vector<size_t>& places = by_module[found->before][found->number];
          if (places.size() == p) places.push_back(i);
        }
    for (const auto& [before, grid] : by_module) {
      if (!is_complete(grid, one.parts.size(), tensors)) continue;
      made.emplace_back(before + one.whole, calque::joined(grid, tensors, values));
      for (const auto& [number, places] : grid) gone.insert(places.begin(), places.end());
    }
  }
  NamedTensors out;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!gone.contains(i)) out.push_back(std::move(tensors[i]));
  out.insert(out.end(), made.begin(), made.end());
  return out;
}

NamedTensors WeightForm::of_file(const NamedTensors& of_model) const {
  NamedTensors out;
  for (const auto& [name, tensor] : of_model) {
    const auto one = std::ranges::find_if(joined, [&](const Joined& candidate) { return name.ends_with(candidate.whole); });
    if (one == joined.end()) {
      out.emplace_back(name, tensor);
      continue;
    }
    const std::string before = name.substr(0, name.size() - one->whole.size());
    const int64_t rows = tensor.size(1) / static_cast<int64_t>(one->parts.size());
    for (int64_t number = 0; number < tensor.size(0); ++number)
      for (size_t p = 0; p < one->parts.size(); ++p) {
        std::string part = one->parts[p];
        part.replace(part.find('*'), 1, std::to_string(number));
        out.emplace_back(before + part, tensor.select(0, number).narrow(0, static_cast<int64_t>(p) * rows, rows).clone());
      }
  }
  for (auto& [name, tensor] : out)
    for (const auto& [from, to] : renamed) replace_part(name, to, from);
  return out;
}

}  // namespace calque
