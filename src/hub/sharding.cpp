#include "calque/hub/sharding.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/hub/checkpoint.h"

namespace calque {

uint64_t parse_file_size(std::string_view text) {
  const auto wrong = [&] {
    return UserError("size \"" + std::string(text) +
                     "\" is not in the correct format: expected a number followed by a unit, e.g. \"5GB\" or \"200MiB\"");
  };
  std::string_view rest = text;
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  while (!rest.empty() && rest.back() == ' ') rest.remove_suffix(1);
  const size_t digits = rest.find_first_not_of("0123456789.");
  const std::string number(rest.substr(0, digits));
  std::string unit(digits == std::string_view::npos ? "" : rest.substr(digits));
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size() : unit.find_first_not_of(' '));
  if (number.empty() || number == "." || number.find('.') != number.rfind('.')) throw wrong();
  double factor = 1;
  if (!unit.empty()) {
    // "kb" counts bits where a decimal unit is meant: 200kb is 25,000 bytes.
    const bool bits = unit.size() == 2 && unit.back() == 'b';
    std::string upper;
    for (const char c : unit) upper += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    static const std::map<std::string, double> units = {{"B", 1},           {"KB", 1e3},           {"MB", 1e6},
                                                        {"GB", 1e9},        {"TB", 1e12},          {"KIB", 1024.0},
                                                        {"MIB", 1048576.0}, {"GIB", 1073741824.0}, {"TIB", 1099511627776.0}};
    const auto found = units.find(upper);
    if (found == units.end()) throw wrong();
    factor = bits ? found->second / 8 : found->second;
  }
  const double bytes = std::strtod(number.c_str(), nullptr) * factor;  // infinite when there are too many digits
  if (!(bytes < 9e18)) throw wrong();
  return static_cast<uint64_t>(std::floor(bytes));
}

std::string shard_name(const std::string& weights_name, size_t number, size_t count) {
  const size_t dot = weights_name.rfind('.');
  return fmt::format("{}-{:05}-of-{:05}{}", weights_name.substr(0, dot), number, count, weights_name.substr(dot));
}

bool is_weight_file(const std::string& name, const std::string& variant) {
  const auto five_digits = [](std::string_view text) {
    return text.size() == 5 && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  for (const char* plain : {"model.safetensors", "pytorch_model.bin"}) {
    const std::string weights = with_variant(plain, variant);
    if (name == weights || name == with_variant(std::string(plain) + ".index.json", variant)) return true;
    const size_t dot = weights.rfind('.');
    const std::string start = weights.substr(0, dot) + "-", end = weights.substr(dot);
    if (!name.starts_with(start) || !name.ends_with(end) || name.size() != start.size() + 14 + end.size()) continue;
    const std::string_view middle = std::string_view(name).substr(start.size(), 14);
    if (five_digits(middle.substr(0, 5)) && middle.substr(5, 4) == "-of-" && five_digits(middle.substr(9))) return true;
  }
  return false;
}

ShardPlan plan_shards(const NamedTensors& tensors, const ShardOptions& options) {
  ShardPlan plan;
  std::vector<NamedTensors> shards;
  std::vector<size_t>
      order;  // transformers 5 numbers a shard when it is full, hence after oversized ones that came meanwhile
  std::unordered_map<const Storage*, size_t> places;  // in which shard a storage is
  constexpr size_t none = static_cast<size_t>(-1);
  size_t open = none;  // the shard that is being filled
  uint64_t filled = 0;
  std::vector<std::pair<size_t, const NamedTensors::value_type*>> later;
  for (const auto& item : tensors) {
    const Storage* storage =
        item.second.is_fake() || !item.second.storage()->has_data() ? nullptr : item.second.storage().get();
    if (const auto seen = places.find(storage); storage && seen != places.end()) {
      if (options.transformers >= 5)
        later.emplace_back(seen->second, &item);
      else
        shards[seen->second].push_back(item);
      continue;
    }
    const uint64_t bytes = options.bytes_of ? options.bytes_of(item.first, item.second) : item.second.nbytes();
    plan.total_size += bytes;
    const bool too_large = bytes > options.max_shard_size;
    if (too_large && options.transformers >= 5) {
      shards.push_back({item});
      order.push_back(shards.size() - 1);
      if (storage) places[storage] = shards.size() - 1;
      continue;
    }
    if (open == none || filled + bytes > options.max_shard_size) {
      if (open != none) order.push_back(open);
      shards.emplace_back();
      open = shards.size() - 1;
      filled = 0;
    }
    shards[open].push_back(item);
    filled += bytes;
    if (storage) places[storage] = open;
  }
  for (const auto& [shard, item] : later) shards[shard].push_back(*item);
  if (shards.empty()) {
    shards.emplace_back();
    open = 0;
  }
  if (open != none) order.push_back(open);
  for (size_t i = 0; i < order.size(); ++i)
    plan.shards.push_back({order.size() == 1 ? options.weights_name : shard_name(options.weights_name, i + 1, order.size()),
                           std::move(shards[order[i]])});
  return plan;
}

}  // namespace calque
