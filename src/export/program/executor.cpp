#include "calque/export/executor.h"

#include <atomic>

namespace calque {
namespace {

std::atomic<ExecutorFactory> factory_of_executors = make_plan_executor;

}  // namespace

void set_executor_factory(ExecutorFactory factory) { factory_of_executors = factory; }
ExecutorFactory executor_factory() { return factory_of_executors; }

}  // namespace calque
