// DataAnswers: who says what a number out of a tensor is, when a trace asks for it as a plain one: a branch, a loop's bound, item<int>(). Without
// one such a question is a UserError (data_dependent). What is answered is taken to be so from then on, and is no guard: whoever
// answers sees to it that the trace is used for that answer alone.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <variant>

#include "calque/sym/observer.h"
#include "calque/sym/shape_env.h"

namespace calque {

using DataAnswer = std::variant<bool, int64_t, double>;

class DataAnswers {
 public:
  virtual ~DataAnswers() = default;
  // An answer of the number's own kind; none: the question is an error, as without DataAnswers. What it throws reaches the program.
  virtual std::optional<DataAnswer> answer(const SymNumber& asked, std::source_location where) = 0;
};

// Who answers for the symbols of an environment, while in scope.
class DataAnswersScope {
 public:
  DataAnswersScope(ShapeEnv& env, DataAnswers& answers);
  ~DataAnswersScope();
  DataAnswersScope(const DataAnswersScope&) = delete;
  DataAnswersScope& operator=(const DataAnswersScope&) = delete;

 private:
  ShapeEnv& env_;
  DataAnswers* before_;
};

// Asks for a number that is symbolic and depends on data; none where nobody answers.
std::optional<DataAnswer> ask_data(const SymNumber& number, std::source_location where = std::source_location::current());

}  // namespace calque
