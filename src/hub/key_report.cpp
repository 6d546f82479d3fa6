#include "calque/hub/key_report.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "calque/op/tensor.h"

namespace calque {

namespace {

bool is_layer_number(std::string_view part) {
  return !part.empty() && part.size() < 10 &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct KeyPattern {
  std::vector<std::string> parts;           // of the first key
  std::map<size_t, std::set<int>> numbers;  // by part
};

std::string pattern_text(const KeyPattern& pattern) {
  constexpr size_t most = 10;
  std::string out;
  for (size_t i = 0; i < pattern.parts.size(); ++i) {
    if (i > 0) out += '.';
    const auto at = pattern.numbers.find(i);
    if (at == pattern.numbers.end() || at->second.size() == 1) {
      out += pattern.parts[i];
      continue;
    }
    std::string numbers;
    if (at->second.size() > most)
      numbers = std::to_string(*at->second.begin()) + "..." + std::to_string(*at->second.rbegin());
    else
      for (const int number : at->second) numbers += (numbers.empty() ? "" : ", ") + std::to_string(number);
    out += "{" + numbers + "}";
  }
  return out;
}

}  // namespace

std::vector<std::string> merge_layer_numbers(const std::vector<std::string>& keys) {
  std::vector<KeyPattern> patterns;
  std::map<std::string, size_t> known;
  for (const std::string& key : keys) {
    KeyPattern one;
    std::string shape;
    for (size_t at = 0; at <= key.size();) {
      const size_t end = std::min(key.find('.', at), key.size());
      one.parts.push_back(key.substr(at, end - at));
      if (is_layer_number(one.parts.back()) && one.parts.size() > 1)
        one.numbers[one.parts.size() - 1].insert(std::stoi(one.parts.back()));
      shape += one.numbers.contains(one.parts.size() - 1) ? "*" : one.parts.back();
      shape += '.';
      at = end + 1;
    }
    const auto [at, fresh] = known.try_emplace(shape, patterns.size());
    if (fresh) {
      patterns.push_back(std::move(one));
      continue;
    }
    for (const auto& [part, numbers] : one.numbers)
      patterns[at->second].numbers[part].insert(numbers.begin(), numbers.end());
  }
  std::vector<std::string> out;
  for (const KeyPattern& pattern : patterns) out.push_back(pattern_text(pattern));
  return out;
}

std::string LoadReport::table() const {
  std::vector<std::array<std::string, 3>> rows;
  std::string notes;
  if (!unexpected_keys.empty()) {
    notes +=
        "\n- UNEXPECTED: not used. Fine when the checkpoint is of another task or architecture, not when it should be the "
        "same.";
    for (const std::string& key : merge_layer_numbers(unexpected_keys)) rows.push_back({key, "UNEXPECTED", ""});
  }
  if (!missing_keys.empty()) {
    notes += "\n- MISSING: newly initialised, as the checkpoint has none. Train the model before you use it.";
    for (const std::string& key : merge_layer_numbers(missing_keys)) rows.push_back({key, "MISSING", ""});
  }
  if (!mismatched_keys.empty()) {
    notes += "\n- MISMATCH: newly initialised, as the shapes did not match. Train the model before you use it.";
    // One line for keys that differ in numbers and have the same two shapes.
    std::vector<std::pair<std::string, std::vector<std::string>>> by_shapes;
    for (const MismatchedKey& one : mismatched_keys) {
      const std::string shapes = "checkpoint " + str(IntList(one.found)) + ", model " + str(IntList(one.expected));
      auto at = std::find_if(by_shapes.begin(), by_shapes.end(), [&](const auto& group) { return group.first == shapes; });
      if (at == by_shapes.end()) at = by_shapes.insert(by_shapes.end(), {shapes, {}});
      at->second.push_back(one.key);
    }
    for (const auto& [shapes, keys] : by_shapes)
      for (const std::string& key : merge_layer_numbers(keys)) rows.push_back({key, "MISMATCH", shapes});
  }
  if (rows.empty()) return "";
  rows.insert(rows.begin(), {"Key", "Status", mismatched_keys.empty() ? "" : "Details"});
  size_t widths[3] = {};
  for (const auto& row : rows)
    for (size_t i = 0; i < 3; ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < 3; ++i) {
      if (widths[i] == 0) continue;
      line += (i > 0 ? " | " : "") + rows[r][i] + std::string(widths[i] - rows[r][i].size(), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
    if (r > 0) continue;
    for (size_t i = 0; i < 3; ++i)
      if (widths[i] > 0) out += (i > 0 ? "-+-" : "") + std::string(widths[i], '-');
    out += "\n";
  }
  return out + "\nNotes:" + notes;
}

}  // namespace calque
