// The calls of submodules whose signature is to be kept: marked in the graph while it is recorded, read off and removed when
// its nodes have their final names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calque/export/signature.h"
#include "calque/graph/graph_module.h"
#include "calque/nn/module.h"

namespace calque {

class Tracepoints {
 public:
  // UserError when the module has no module at one of the paths.
  Tracepoints(Module& module, const std::vector<std::string>& paths);
  ~Tracepoints();
  Tracepoints(const Tracepoints&) = delete;
  Tracepoints& operator=(const Tracepoints&) = delete;

  // By path; a further call of the same module is path@1.
  std::map<std::string, ModuleCallSignature> collect(GraphModule& module, GraphSignature& signature);

 private:
  struct Specs {
    TreeSpec in_spec, out_spec;
  };
  std::map<std::string, Specs> specs_;
  std::vector<HookHandle> handles_;
};

}  // namespace calque
