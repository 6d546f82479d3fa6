// The functions that capture.py has traced by PyTorch and by Calque, by name; capture_cases.py has them in Python.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "calque/op/index.h"
#include "calque/op/literal.h"
#include "calque/op/operators.h"
#include "calque/trace/make_fx.h"

namespace calque::capture {

using Program = std::function<Value(const Values&)>;
using Programs = std::map<std::string, Program>;

// Enters functions of typed arguments: add("name", [](const Tensor& x) { return x + 1; });
class Adder {
 public:
  explicit Adder(Programs& programs) : programs_(programs) {}
  template <class F>
  void operator()(const std::string& name, F fn) const {
    programs_[name] = [fn](const Values& args) -> Value {
      if constexpr (std::is_invocable_r_v<Value, F, const Values&>)
        return fn(args);
      else
        return make_fx_detail::Callable<F>::call(fn, args);
    };
  }

 private:
  Programs& programs_;
};

template <class... T>
Value results(const T&... items) {
  return tuple({Value(items)...});
}

void add_pointwise(Programs& programs);
void add_layout(Programs& programs);
void add_indexing(Programs& programs);
void add_reductions(Programs& programs);
void add_sizes(Programs& programs);
void add_layers(Programs& programs);
void add_data_dependent(Programs& programs);
void add_modules(Programs& programs);
void add_regions(Programs& programs);

}  // namespace calque::capture
