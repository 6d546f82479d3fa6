// Any bytes as a chat template, in front of a conversation with tools; or, behind a first byte that is odd, as one expression of
// it. What comes out is text, or one UserError of a bounded length, nothing else, within small limits.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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

}  // namespace

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
