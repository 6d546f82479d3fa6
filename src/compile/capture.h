// Capture: a call run once on fake tensors, as a graph with everything that its result depends on. Questions about data end it, unless
// their answers are given: then it goes on to the next one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calque/compile/compile.h"
#include "calque/sym/data_answers.h"
#include "compile/guards.h"

namespace calque::compile_detail {

// What was seen of an input at earlier captures: a size that changed is -1 from then on.
struct SeenInput {
  std::vector<int64_t> sizes;
  std::optional<Value> number;
  bool number_changed = false;
};
using SeenInputs = std::map<std::string, SeenInput>;

struct Call {
  const Values& args;
  const Kwargs& kwargs;
};
using Callee = std::function<Value(const Values& args, const Kwargs& kwargs)>;

// A call of a disabled function: what runs between two parts.
struct EagerCall {
  std::function<Value(const Values& args)> function;
  TreeSpec arguments;
};

struct Question {
  std::string text;  // "u0 > 3"
  std::string kind;  // "a branch on data"
  std::source_location where;
  std::shared_ptr<const EagerCall> call = nullptr;  // the "answer" is its result, an argument of the captures to come
  std::string reason() const;
};

// An answered or open question's place in the graph: what was recorded before it.
struct QuestionMark {
  uint32_t position = 0;  // ids below it came before
  std::string node;       // that computes it; "" for a number that is known by then
};

struct Captured {
  std::shared_ptr<GraphModule> module;
  std::shared_ptr<FakeMode> fake;
  Guards::Parts guards;
  std::vector<QuestionMark> marks;          // of all questions, the open one last
  std::optional<Question> open;             // none: the capture reached the end
  std::vector<std::string> inputs;          // the placeholders' names, for the call's tensors and then its numbers
  std::vector<size_t> input_tensors;        // which of the guarded tensors, by index
  std::vector<bool> float_numbers;          // of the numbers behind them, which are floats
  TreeSpec out_spec;                        // of the result
  std::vector<const TensorSlot*> assigned;  // buffers that the program gave other tensors: the last outputs
  size_t num_ops = 0;
};

struct CaptureRequest {
  Callee callee;
  std::shared_ptr<Module> root;    // may be null
  std::vector<std::string> names;  // of the arguments
  std::optional<bool> dynamic;
  bool fixed_numbers = false;  // numbers are never symbols: the function takes plain ones
  const SeenInputs* seen = nullptr;
  std::vector<DataAnswer> answers;                    // `true` for the call of a disabled function
  std::vector<std::pair<std::string, Value>> values;  // guard_on
  size_t results = 0;                                 // so many of the last arguments are what disabled functions gave
};

Captured capture(const CaptureRequest& request, const Call& call);
bool is_inside_capture();  // the calling thread

// The capture that the calling thread is inside of, as a disabled function sees it.
class Capturing {
 public:
  virtual ~Capturing() = default;
  // The result, where an earlier part of the call has it; else it leaves the function.
  virtual Value call_eagerly(const std::function<Value(const Values& args)>& function, const Values& args,
                             const std::string& reason, std::source_location where) = 0;
};
Capturing* capturing();  // null outside of any
// Runs it on the leaves of its arguments: what the next capture takes as an argument.
Value run_eager_call(const EagerCall& call, const Values& leaves);
std::string result_name(size_t index);  // of that argument

// Adds what this call's inputs are.
void see_inputs(SeenInputs& seen, const std::vector<std::string>& names, const Call& call);

}  // namespace calque::compile_detail
