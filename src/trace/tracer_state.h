// What a Tracer knows during a trace, and the extra by which an opaque proxy knows its tracer.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "calque/nn/module.h"
#include "calque/trace/fake.h"
#include "calque/trace/tracer.h"
#include "trace/capture_scope.h"

namespace calque {

// Proxies may outlive their trace; `tracer` points to null then.
class ProxyExtra : public TensorExtra {
 public:
  ProxyExtra(std::shared_ptr<Tracer*> tracer, Node* node) : tracer_(std::move(tracer)), node_(node) {}
  [[noreturn]] void refuse(const char* asked) const override;
  SymInt size(int64_t d) const override;

 private:
  Tracer& tracer() const;
  std::shared_ptr<Tracer*> tracer_;
  Node* node_;
};

struct Tracer::State {
  struct Tracked {
    Node* node;
    Tensor alive;  // an address must not be reused while it is a key
  };
  struct SizeOf {
    Node* node;
    int64_t dim;
    bool stride;
  };

  Graph* graph = nullptr;
  Module* root = nullptr;
  std::shared_ptr<Module> function_root;
  std::shared_ptr<Tracer*> self;  // null between traces
  std::source_location where;     // of the call of trace()

  std::unordered_map<const TensorImpl*, Tracked> tensors;
  std::unordered_map<const Expr*, Node*> numbers;
  std::unordered_map<const Expr*, SizeOf> sizes;  // of fake values
  std::unordered_map<const TensorImpl*, std::string> parameters;
  std::unordered_map<const TensorImpl*, std::string> buffers;
  std::unordered_map<const TensorImpl*, std::string> plain_tensors;  // constants that the root had before the trace
  std::unordered_map<const TensorImpl*, std::string> constants;
  std::unordered_map<std::string, Value> attributes;  // proxies of parameters, by path
  std::unordered_map<const Module*, std::string> module_paths;
  std::shared_ptr<ShapeEnv> env;
  std::shared_ptr<FakeMode> fake;  // null without examples

  Scope scope;
  std::shared_ptr<const ModuleStack> modules;
  std::unordered_map<std::string, int64_t> num_calls;
  std::unordered_map<std::string, Scope> node_scopes;
  const Module* passing = nullptr;  // its call is not intercepted again
  int paused = 0;                   // calls are answered, not recorded
};

// One trace, while it runs.
class Tracer::Active {
 public:
  explicit Active(Tracer& tracer);
  ~Active();
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;

 private:
  Tracer& tracer_;
  CaptureScope capture_;
};

// Calls are answered by fake values while in scope.
class Tracer::Paused {
 public:
  explicit Paused(State& state) : state_(state), fake_(*state.fake) { ++state_.paused; }
  ~Paused() { --state_.paused; }
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;

 private:
  State& state_;
  ModeScope fake_;
};

// "model.cpp:12"; empty when it is not known.
std::string place(const std::source_location& where);

}  // namespace calque
