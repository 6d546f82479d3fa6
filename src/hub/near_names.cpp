#include "hub/near_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace calque {

// How many letters must be put in, taken out or changed.
static size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) out += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
  return out.empty() ? "none" : out;
}

std::string near_names(std::string_view name, std::vector<std::string> names, size_t most) {
  std::sort(names.begin(), names.end());
  if (name.empty()) return listed(names);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
  if (names.size() > most) names.resize(most);
  return listed(names);
}

}  // namespace calque
