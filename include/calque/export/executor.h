// Executor: who runs the graph of a program that is called. By default that is a plan of run/, made by the first call and made
// anew when the graph or what it was made from changed; the interpreter runs the graph under modes and on tensors without data.
#pragma once

#include <memory>

#include "calque/op/value.h"

namespace calque {

class ExportedProgram;

class Executor {
 public:
  virtual ~Executor() = default;
  // The user's inputs, flattened; gives the outputs in the order of the output specs. Called by any number of threads.
  virtual Values run(const Values& inputs) const = 0;
  // False when it has to be made anew.
  virtual bool is_current() const = 0;
};

using ExecutorFactory = std::shared_ptr<const Executor> (*)(const ExportedProgram& program);

// Who makes the executors of programs from now on, in this process; null: the interpreter runs them all.
void set_executor_factory(ExecutorFactory factory);
ExecutorFactory executor_factory();

// The default, defined in run/.
std::shared_ptr<const Executor> make_plan_executor(const ExportedProgram& program);

}  // namespace calque
