// CompileProfiler: a backend that counts what it is given and runs it node by node, with a report on graph breaks and recompilations:
//
//   CompileProfiler profiler;
//   const auto f = compile(function, {.with = profiler.backend(), .recompile_limit = 1000});
//   f(x);
//   std::cout << profiler.report();
//
// As PyTorch 2.3 had it. What it reports is the process's: reset_compile() starts anew.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "calque/compile/compile.h"

namespace calque {

class CompileProfiler {
 public:
  struct Metrics {
    uint64_t frame_count = 0;  // graphs
    uint64_t op_count = 0;     // calls in them
  };
  CompileProfiler() : counts_(std::make_shared<Counts>()) {}
  Backend backend() const;
  Metrics get_metrics() const { return {counts_->frames, counts_->operators}; }
  std::string report() const;

 private:
  struct Counts {
    std::atomic<uint64_t> frames = 0, operators = 0;
  };
  std::shared_ptr<Counts> counts_;
};

}  // namespace calque
