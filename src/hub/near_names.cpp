#include "hub/near_names.h"

#include <algorithm>
#include <numeric>

namespace calque {

// Without what people mix up.
static std::string plain_name(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '-' && c != '_') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (a[i] == b[j] ? 0 : 1), last[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row[j + 1] = std::min(row[j + 1], before_last[j - 1] + 1);  // two neighbours exchanged
    }
    before_last = last;
    last = row;
  }
  return last.back();
}

std::string listed(const std::vector<std::string>& names, std::string_view last) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i)
    out += (i == 0 ? "" : i + 1 < names.size() ? ", " : " " + std::string(last) + " ") + names[i];
  return out.empty() ? "none" : out;
}

std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& names) {
  constexpr size_t longest = 64, most = 3;
  const std::string wanted = plain_name(name);
  std::vector<std::pair<size_t, std::string>> found;
  if (wanted.size() > longest) return {};
  for (const std::string& candidate : names) {
    const size_t distance = edit_distance(wanted, plain_name(candidate));
    if (distance <= (wanted.size() + 1) / 4) found.emplace_back(distance, candidate);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> out;
  for (size_t i = 0; i < std::min(found.size(), most); ++i) out.push_back(found[i].second);
  return out;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& names) {
  std::vector<std::string> near = near_names(name, names);
  if (near.empty()) return "";
  for (std::string& one : near) one = "'" + one + "'";
  return "; did you mean " + listed(near, "or") + "?";
}

std::string wrapped_list(const std::vector<std::string>& names, size_t width) {
  std::string out, line;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string word = names[i] + (i + 1 < names.size() ? "," : "");
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "  " : " ") + word;
  }
  return out + line;
}

}  // namespace calque
