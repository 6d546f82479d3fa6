// What a template may cost while it runs: steps, memory of the values that exist, depth of calls. Whoever makes a value or walks
// over one pays here first; what is used up is one UserError.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "calque/base/error.h"
#include "calque/text/chat_template.h"

namespace calque::jinja {

class Budget {
 public:
  explicit Budget(const ChatLimits& limits) : limits_(limits), steps_(limits.steps) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  void spend(size_t steps) {
    if (steps > steps_) [[unlikely]]
      exhausted("steps", limits_.steps, "steps");
    steps_ -= steps;
  }
  // Work on so many bytes.
  void spend_bytes(size_t bytes) { spend(bytes / 16 + 1); }
  void take(size_t bytes) {
    require(bytes);
    used_ += bytes;
  }
  void give(size_t bytes) { used_ -= bytes; }
  void require(size_t bytes) const {
    if (bytes > limits_.memory - used_) [[unlikely]]
      exhausted("bytes of memory", limits_.memory, "memory");
  }
  void check_output(size_t bytes) const {
    if (bytes > limits_.output) [[unlikely]]
      exhausted("bytes of output", limits_.output, "output");
  }

 private:
  [[noreturn]] static void exhausted(const char* what, size_t limit, const char* field) {
    throw UserError(ErrorKind::bad_file, "the template needs more than " + std::to_string(limit) + " " + what +
                                             "; it may never end, or the conversation is very long (ChatLimits::" + field +
                                             " raises the limit)");
  }
  ChatLimits limits_;
  size_t steps_;
  size_t used_ = 0;
};

// A text that grows, paid for as it does.
class Builder {
 public:
  explicit Builder(Budget& budget) : budget_(budget) {}
  Builder& operator+=(std::string_view part) {
    budget_.spend_bytes(part.size());
    budget_.require(2 * (text_.size() + part.size()));
    text_ += part;
    return *this;
  }
  Builder& operator+=(char c) {
    if (text_.size() == text_.capacity()) budget_.require(2 * text_.size());
    text_ += c;
    return *this;
  }
  void repeat(std::string_view part, size_t times) {
    if (part.empty() || times == 0) return;
    if (times > (size_t{1} << 40) / part.size()) budget_.require(size_t{1} << 40);
    budget_.spend_bytes(part.size() * times);
    budget_.require(text_.size() + part.size() * times);
    text_.reserve(text_.size() + part.size() * times);
    for (size_t i = 0; i < times; ++i) text_ += part;
  }
  size_t size() const { return text_.size(); }
  std::string& text() { return text_; }
  std::string take() { return std::move(text_); }

 private:
  Budget& budget_;
  std::string text_;
};

}  // namespace calque::jinja
