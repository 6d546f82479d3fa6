// The passes of a plan, in the order in which they run. Each is one function over a graph and what is known of its state, and
// leaves a graph that lints; docs/plans.md says what each does and when it is left out. Tests run them on graphs in text form.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "calque/graph/graph_module.h"
#include "calque/run/plan.h"

namespace calque::run {

// What a plan made of the state, and from which tensors: it stands as long as nobody writes them.
class StateUses {
 public:
  void add(const Tensor& used);
  void add_made(size_t bytes) { bytes_made_ += bytes; }
  bool are_current() const;
  size_t bytes_made() const { return bytes_made_; }

 private:
  std::vector<std::pair<Tensor, uint32_t>> used_;  // with the storage's version then
  size_t bytes_made_ = 0;
};

class StoredWeights;

// A copy of the state in the order in which a kernel reads it.
struct PackedCopy {
  Tensor weights;
  bool transposed;  // the weights are [n, k], as in linear
  Tensor packed;
};

// What a pass works on. Attributes of the module are state; those in `written` change from call to call.
struct PassInput {
  GraphModule& module;
  std::set<std::string, std::less<>> written = {};
  std::set<std::string, std::less<>> computed =
      {};  // attributes that passes made: results, which want no gradient where none is asked for
  StateUses state = {};
  std::shared_ptr<const StoredWeights> stored = {};  // copies that came with the program; null: none
  std::vector<PackedCopy> packed = {};               // copies that the passes made or found
};

struct PlanPass {
  std::string_view name;
  bool is_exact;  // the results keep eager's bits
  bool (*run)(PassInput& input);
};
const std::vector<PlanPass>& plan_passes();
// The pass of that name alone; UserError when there is none.
bool run_pass(std::string_view name, PassInput& input);
// Those that the options ask for.
void run_passes(PassInput& input, const PlanOptions& options);

}  // namespace calque::run
