// Programs of tests/peers/export_cases.py, written in C++: modules and functions with example inputs and what is dynamic.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calque/export/export.h"

namespace calque::peers {

struct ExportCase {
  std::string name;
  // Exported afresh.
  std::function<ExportedProgram(bool strict)> make;
  std::function<ExportedProgram(Module&, bool strict)> again;  // the module of the program exported with the same options
  std::vector<Values> inputs;  // to run it on: the example, and others where sizes are dynamic
  Kwargs kwargs = {};
  DynamicShapes shapes = {};
  std::function<ExportedProgram(const Values& args, const Kwargs& kwargs, bool strict)> from =
      {};                               // exported from other examples
  std::vector<std::string> names = {};  // of the arguments
};

std::vector<ExportCase> export_cases();

// Element i of every tensor is the same small exact number on both sides.
Tensor filled(std::vector<int64_t> sizes, int64_t seed = 0, DType dtype = DType::float32, int64_t below = 10);

inline std::vector<std::string> argument_names(const Module& m) { return m.argument_names(); }
inline std::vector<std::string> argument_names(const TraceableFunction& f) { return f.names; }

// Adds a module or function with its example inputs, and further inputs of other sizes.
template <class M>
void add_case(std::vector<ExportCase>& cases, const std::string& name, const std::shared_ptr<M>& m, const Values& args,
              const ExportOptions& options = {}, const std::vector<Values>& others = {}, const Kwargs& kwargs = {}) {
  std::vector<Values> inputs{args};
  inputs.insert(inputs.end(), others.begin(), others.end());
  const auto with = [options](bool strict) {
    ExportOptions out = options;
    out.strict = strict;
    return out;
  };
  cases.push_back({name, [=](bool strict) { return export_program(*m, args, kwargs, with(strict)); },
                   [=](Module& module, bool strict) {
                     ExportOptions again = with(strict);
                     again.preserve_module_call_signature.clear();
                     return export_program(module, args, kwargs, again);
                   },
                   std::move(inputs), kwargs, options.dynamic_shapes,
                   [=](const Values& a, const Kwargs& k, bool strict) { return export_program(*m, a, k, with(strict)); },
                   argument_names(*m)});
}

void add_function_cases(std::vector<ExportCase>& cases);
void add_module_cases(std::vector<ExportCase>& cases);
void add_region_cases(std::vector<ExportCase>& cases);     // regions and higher-order operators
void add_structure_cases(std::vector<ExportCase>& cases);  // modules in modules, hooks, state
void add_refused_cases(std::vector<ExportCase>& cases);

}  // namespace calque::peers
