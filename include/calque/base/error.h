// The two kinds of failure. `UserError`: the caller's input or program is at fault, and the text says what, where,
// expected, found and the likely fix. `InternalError`: Calque is at fault; the text asks for a report.
// The library throws nothing else of its own.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace calque {

enum class ErrorKind {
  invalid_input,         // a wrong shape, dtype, index, argument
  constraint_violation,  // a declared dynamic shape does not hold
  data_dependent,        // control flow on values that are not known while tracing
  unsupported_operator,  // no such operator, or no kernel for this dtype
  bad_file,              // truncated, hostile or wrong file
};

class Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  // Puts `context` in front of the message. A function that the error leaves says so where it happened.
  void prepend(const std::string& context) {
    message_ = context + message_;
    said_ += context.size();
  }
  // Puts the call in which it happened on a line of its own; a call given later (an outer one) replaces it.
  void set_context(const std::string& call) {
    message_.resize(said_);
    message_ += "\n  in " + call;
  }
  std::string_view reason() const { return std::string_view(message_).substr(0, said_); }  // without the call

 private:
  std::string message_;
  size_t said_ = message_.size();
};

class UserError : public Error {
 public:
  UserError(ErrorKind kind, std::string message) : Error(std::move(message)), kind_(kind) {}
  explicit UserError(std::string message) : UserError(ErrorKind::invalid_input, std::move(message)) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message)
      : Error("internal error: " + message + " (this is a bug in Calque; please report it with the input that caused it)") {}
};

// Asserts an invariant of Calque's own; never used on what a user passed in.
inline void internal_assert(bool holds, const char* what) {
  if (!holds) [[unlikely]]
    throw InternalError(what);
}

}  // namespace calque
