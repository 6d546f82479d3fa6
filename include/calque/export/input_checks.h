// What a program promises to accept, checked when it is called: the structure of the arguments, types, shapes with the
// relations between them, constants, and the conditions in guards_code. Prepared once for a program; holds nothing of its
// graph or state but the environment of its symbols, and may be used by any number of threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calque/export/program.h"

namespace calque {

struct InputCheckOptions {
  bool dtypes = true;  // PyTorch does not look at them
  bool guards = true;  // the conditions in guards_code
};

class InputChecks {
 public:
  explicit InputChecks(const ExportedProgram& program, const InputCheckOptions& options = {});
  ~InputChecks();
  InputChecks(InputChecks&&) noexcept;
  InputChecks& operator=(InputChecks&&) noexcept;

  // The leaves in the order of the user inputs. Keyword arguments may come in any order. UserError shows both structures.
  Values flatten(const Values& args, const Kwargs& kwargs = {}) const;
  // UserError (constraint_violation) names the place, what is expected and what was found. Sizes that are symbolic are not
  // looked at.
  void check(const Values& leaves) const;

  Values operator()(const Values& args, const Kwargs& kwargs = {}) const {
    Values leaves = flatten(args, kwargs);
    check(leaves);
    return leaves;
  }

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace calque
