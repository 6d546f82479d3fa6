// CaptureScope: all that a capture switches on for the calling thread, in one object. make_fx, the graphs of higher-order
// calls, run_decompositions, export and the symbolic tracer each open one and say in a Capture what they need; captures inside
// captures nest. Its parts are opened in the order in which they stand in Capture and closed in the reverse, also when
// the captured program throws. Everything that a Capture points to must outlive the scope.
#pragma once

#include <optional>

#include "calque/base/thread_context.h"
#include "calque/graph/higher_order.h"
#include "calque/nn/backends.h"
#include "calque/nn/observer.h"
#include "calque/op/autocast.h"
#include "calque/op/composite_policy.h"
#include "calque/op/mode.h"
#include "calque/sym/observer.h"
#include "calque/tensor/regions.h"

namespace calque {

struct Capture {
  // is_exporting() holds, tensor(size) keeps a symbolic size, and programs do not depend on whether the machine has cuDNN.
  bool exporting = false;
  // What becomes of composite operators; null: they expand by their own bodies. None: as it is around the capture.
  std::optional<const CompositePolicy*> composites = {};
  bool python_bodies = false;
  Mode* fake = nullptr;  // answers calls without data
  // Calls, higher-order calls, arithmetic on sizes and regions become its nodes, and no other recorder's.
  Recorder* recorder = nullptr;
  Mode* symbolic = nullptr;           // the symbolic tracer, which sees calls as the user wrote them; is_fx_tracing() holds
  ModuleObserver* modules = nullptr;  // is told of module calls
  bool every_cast = false;  // autocast casts a parameter at each use: a graph that remembered would have the first alone
};

class CaptureScope {
 public:
  explicit CaptureScope(const Capture& capture);
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  struct Exporting {
    Exporting();
    ContextCount<&ThreadContext::exports> count;
    ContextSwitch<&ThreadContext::symbolic_literals, true> literals;
    CudnnScope cudnn;
  };
  struct Recording {
    explicit Recording(Recorder& recorder);
    ContextScope<&ThreadContext::recorder> recorder;
    ModeScope calls;
    HigherOrderTracerScope graphs;
    SymObserverScope arithmetic;
    RegionObserverScope regions;
  };
  struct Symbolic {
    explicit Symbolic(Mode& tracer) : calls(tracer) {}
    ModeScope calls;
    ContextCount<&ThreadContext::symbolic_traces> count;
  };

  std::optional<Exporting> exporting_;
  std::optional<CompositePolicyScope> composites_;
  std::optional<PythonBodiesScope> python_bodies_;
  std::optional<ModeScope> fake_;
  std::optional<Recording> recording_;
  std::optional<Symbolic> symbolic_;
  std::optional<ModuleObserverScope> modules_;
  std::optional<NoAutocastCacheScope> every_cast_;
};

}  // namespace calque
