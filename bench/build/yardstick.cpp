// What the times of bench/build/run are scaled by: containers, algorithms, function objects and strings of the standard
// library, with nothing of Calque in it, so that it costs the same whatever Calque becomes.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int n>
struct Part {
  using Key = std::tuple<std::string, int, std::integral_constant<int, n>>;
  std::map<std::string, std::vector<std::variant<int, double, std::string>>> ordered;
  std::unordered_map<std::string, std::shared_ptr<std::vector<std::string>>> hashed;
  std::vector<std::function<std::string(const std::string&, int)>> functions;

  std::string run(const std::string& text) {
    ordered[text + std::to_string(n)].emplace_back(text);
    hashed.try_emplace(text, std::make_shared<std::vector<std::string>>(n, text));
    functions.emplace_back([this](const std::string& s, int i) { return s + std::to_string(i + n + int(ordered.size())); });
    std::vector<Key> keys;
    for (const auto& [name, values] : ordered) keys.emplace_back(name, int(values.size()), std::integral_constant<int, n>{});
    std::sort(keys.begin(), keys.end());
    std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return std::get<1>(a) < std::get<1>(b); });
    std::ostringstream out;
    for (const Key& key : keys) out << std::get<0>(key) << functions.back()(text, std::get<1>(key));
    return out.str();
  }
};

template <int... n>
std::string all(std::integer_sequence<int, n...>, const std::string& text) {
  return (Part<n>().run(text) + ...);
}

std::string yardstick(const std::string& text);
std::string yardstick(const std::string& text) {
  const std::regex words("[a-z]+|[0-9]+");
  return std::regex_replace(all(std::make_integer_sequence<int, 12>(), text), words, "x");
}
