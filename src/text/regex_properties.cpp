#include "text/regex_properties.h"

#include <algorithm>
#include <vector>

namespace calque {

uint16_t regex_properties_of(char32_t c) {
  const auto after = std::upper_bound(regex_property_starts.begin(), regex_property_starts.end(), static_cast<uint32_t>(c));
  return regex_property_values[static_cast<size_t>(after - regex_property_starts.begin()) - 1];
}

uint8_t script_named(std::string_view name) {
  for (size_t i = 0; i < regex_script_names.size(); ++i) {
    std::string_view names = regex_script_names[i];
    while (!names.empty()) {
      const size_t end = std::min(names.find('|'), names.size());
      if (names.substr(0, end) == name) return static_cast<uint8_t>(i + 1);
      names.remove_prefix(std::min(end + 1, names.size()));
    }
  }
  return 0;
}

std::span<const CasePair> equal_in_any_case(char32_t c) {
  static const std::vector<CasePair> pairs = [] {
    std::vector<CasePair> made;
    for (size_t i = 0; i < regex_case_ranges.size(); i += 4) {
      const int32_t* r = regex_case_ranges.data() + i;
      for (int32_t x = r[0]; x <= r[1]; x += r[2])
        made.push_back({static_cast<char32_t>(x), static_cast<char32_t>(x + r[3])});
    }
    std::stable_sort(made.begin(), made.end(), [](const CasePair& a, const CasePair& b) { return a.c < b.c; });
    return made;
  }();
  const auto found = std::equal_range(pairs.begin(), pairs.end(), CasePair{c, 0},
                                      [](const CasePair& a, const CasePair& b) { return a.c < b.c; });
  return {found.first, found.second};
}

std::span<const CaseSequence> case_sequences() {
  static const std::vector<CaseSequence> sequences = [] {
    std::vector<CaseSequence> made;
    for (size_t i = 0; i < regex_case_sequences.size(); i += 4) {
      const uint32_t* s = regex_case_sequences.data() + i;
      made.push_back({s[0], {s[1], s[2], s[3]}});
    }
    return made;
  }();
  return sequences;
}

}  // namespace calque
