// Any bytes as a chat template, in front of a conversation with tools; or, behind a first byte that is odd, as one expression of
// it. What comes out is text, or one UserError of a bounded length, nothing else, within small limits.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "calque/base/error.h"
#include "calque/text/chat_template.h"
#include "text/utf8.h"

using namespace calque;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

ChatOptions conversation(bool continues) {
  ChatOptions options;
  options.messages_json = R"([{"role": "system", "content": "Be <brief>. é"},
    {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image"}]},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"x": [1, 2.5, true]}}}]},
    {"role": "tool", "content": "42"}, {"role": "assistant", "content": " It is 42. "}])";
  options.tools_json =
      R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}])";
  options.variables_json = R"({"n": 3, "x": "a b", "d": {"b": 1, "A": [2]}})";
  options.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  options.continue_final_message = continues;
  options.now = std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
  options.limits = {.steps = 200'000, .memory = 4 << 20, .output = 1 << 20};
  return options;
}

// What templates are made of, put where a word of the template begins.
constexpr std::string_view parts[] = {"{{ ",
                                      " }}",
                                      "{% if ",
                                      " %}",
                                      "{% endif %}",
                                      "{% for m in messages %}",
                                      "{% endfor %}",
                                      "{%- ",
                                      "-%}",
                                      "{% set x = ",
                                      "{% else %}",
                                      "{% macro f(a, b=1) %}",
                                      "{% endmacro %}",
                                      "{% call f(1) %}",
                                      "{% endcall %}",
                                      "{% filter upper %}",
                                      "{% endfilter %}",
                                      "{% raw %}",
                                      "{% endraw %}",
                                      "{% generation %}",
                                      "{% endgeneration %}",
                                      "{% break %}",
                                      "{% continue %}",
                                      "messages",
                                      "message",
                                      "tools",
                                      "loop.index0",
                                      "loop.previtem",
                                      "namespace(a=1)",
                                      "range(10**9)",
                                      "range(n)",
                                      "x",
                                      "d",
                                      "none",
                                      "true",
                                      "-1",
                                      "9223372036854775807",
                                      "1e308",
                                      "'a'",
                                      "[1, 2]",
                                      "[:]",
                                      "[::-1]",
                                      "[-1]",
                                      "{'a': [1]}",
                                      ".a",
                                      ".items()",
                                      ".split()",
                                      ".format(1)",
                                      "%",
                                      " % ",
                                      "'%s' % x",
                                      "*",
                                      "**",
                                      "//",
                                      " ~ ",
                                      " + ",
                                      " - ",
                                      " in ",
                                      " not in ",
                                      " is ",
                                      " is not ",
                                      " is defined",
                                      " is mapping",
                                      " if x else ",
                                      " and ",
                                      " or ",
                                      "not ",
                                      "(",
                                      ")",
                                      ",",
                                      " | ",
                                      "|tojson(indent=2)",
                                      "|join(',')",
                                      "|map(attribute='role')",
                                      "|selectattr('role', 'equalto', 'user')",
                                      "|list",
                                      "|length",
                                      "|trim",
                                      "|replace('a', 'bb')",
                                      "|batch(2)",
                                      "|slice(2)",
                                      "|sort",
                                      "|groupby('role')",
                                      "|indent(4)",
                                      "|default('x', true)",
                                      "|int",
                                      "|float",
                                      "|round(2)",
                                      "|first",
                                      "|dictsort",
                                      "|unique",
                                      "|center(100)",
                                      "|wordwrap(3)",
                                      "|format(1, 2)",
                                      "|string|escape",
                                      "strftime_now('%Y')",
                                      "raise_exception('x')",
                                      "\xC3\x89",
                                      "\n"};

}  // namespace

extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937 chance(seed);
  if (size < 2 || chance() % 3 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const auto is_word = [&](size_t i) { return std::isalnum(data[i]) != 0 || data[i] == '_'; };
  size_t at = 1 + chance() % (size - 1);
  while (at > 1 && is_word(at) && is_word(at - 1)) --at;
  size_t end = at;
  if (chance() % 2 == 0) end = at + 1;  // the word goes
  while (end > at && end < size && is_word(end) && is_word(end - 1)) ++end;
  const std::string_view part = chance() % 8 == 0 ? "" : parts[chance() % std::size(parts)];
  if (size - (end - at) + part.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  const std::string rest(data + end, data + size);
  std::copy(part.begin(), part.end(), data + at);
  std::copy(rest.begin(), rest.end(), data + at + part.size());
  return at + part.size() + rest.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string text = (data[0] & 1) ? "{{ " + repair_utf8(rest) + " }}" : std::string(rest);
  try {
    const std::string out = ChatTemplate::from_text(text).render(conversation((data[0] & 2) != 0));
    require(is_valid_utf8(out) && out.size() <= 1 << 20);
  } catch (const UserError& e) {
    require(std::string_view(e.what()).size() < 2 * size + 20'000);
  }
  return 0;
}
