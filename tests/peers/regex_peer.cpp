// regex_peer CASES OUT: for each line of CASES, {"pattern", "texts"}, the pieces of every text that the expression cuts, matches
// and what is between them, as [begin, end, is a match] in characters; or the error that refuses the expression.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "text/split_pattern.h"

namespace {

using Json = nlohmann::json;

Json pieces_of(const calque::SplitPattern& pattern, const std::string& text) {
  Json out = Json::array();
  const auto characters = [&](size_t byte) { return calque::count_utf8(std::string_view(text).substr(0, byte)); };
  size_t before = 0;
  const auto add = [&](size_t begin, size_t end, bool match) {
    if (begin < end) out.push_back({characters(begin), characters(end), match});
  };
  calque::TextBudget budget({}, "regex_peer", calque::TextBudget::Of::text, text.size());
  calque::for_each_match(pattern, text, budget, [&](size_t begin, size_t end) {
    add(before, begin, false);
    add(begin, end, true);
    before = end;
  });
  add(before, text.size(), false);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: regex_peer CASES OUT\n";
    return 2;
  }
  std::ifstream in(argv[1]);
  std::ofstream out(argv[2]);
  for (std::string line; std::getline(in, line);) {
    const Json given = Json::parse(line);
    Json result;
    try {
      calque::ExpressionBudget budget;
      const auto pattern = calque::regex_pattern(given["pattern"].get<std::string>(), budget);
      for (const Json& text : given["texts"]) result["pieces"].push_back(pieces_of(*pattern, text.get<std::string>()));
    } catch (const calque::UserError& error) {
      result = {{"error", error.what()}};
    }
    out << result.dump() << '\n';
  }
  return 0;
}
