#include "graph/region_functions.h"

#include <memory>

#include "calque/base/error.h"
#include "calque/op/autocast.h"

namespace calque {

// A region that a graph has entered, and those around it. One that no graph leaves stays open, also when its thread ends.
struct EnteredAutocast {
  explicit EnteredAutocast(const AutocastArguments& a) : scope(a.device, a.dtype, a.enabled, a.cache_enabled) {}
  AutocastScope scope;
  std::unique_ptr<EnteredAutocast> outer;
  size_t depth = 1;
};

namespace {

size_t depth_entered() {
  const EnteredAutocast* innermost = thread_context().entered_autocast;
  return innermost ? innermost->depth : 0;
}

void enter_region(const AutocastArguments& arguments) {
  auto region = std::make_unique<EnteredAutocast>(arguments);
  region->depth = depth_entered() + 1;
  region->outer.reset(thread_context().entered_autocast);
  thread_context().entered_autocast = region.release();
}

void leave_region() {
  const std::unique_ptr<EnteredAutocast> region(thread_context().entered_autocast);
  thread_context().entered_autocast = region->outer.release();
}

bool calls(const Node& n, const FunctionRef& f) {
  return n.kind() == NodeKind::call_function && n.target().function() == f.get();
}

constexpr const char* handle_type = "torch.amp.autocast";

Value enter_autocast(const Values& args, const Kwargs&) {
  enter_region(AutocastArguments(args));
  return StructValue{handle_type, std::to_string(depth_entered()), {}, {}};
}

Value exit_autocast(const Values& args, const Kwargs&) {
  if (args.size() != 1 || args[0].kind() != Value::Kind::structure || args[0].to_struct().type != handle_type)
    throw UserError("_exit_autocast: expected what _enter_autocast gave");
  if (args[0].to_struct().context != std::to_string(depth_entered()))
    throw UserError("_exit_autocast: autocast regions must be left in the reverse of the order in which they were entered");
  leave_region();
  return {};
}

}  // namespace

AutocastArguments::AutocastArguments(const Values& args) {
  if (args.size() < 4)
    throw UserError("autocast: expected a device type, a dtype, enabled and cache_enabled, found " +
                    std::to_string(args.size()) + " arguments");
  const Value &device_type = args[0], &wanted_dtype = args[1], &on = args[2], &caches = args[3];
  device = Device(device_type.to_string()).type;
  if (!wanted_dtype.is_none()) dtype = wanted_dtype.to_dtype();
  enabled = on.to_bool();
  if (!caches.is_none()) cache_enabled = caches.to_bool();
}

bool calls_set_grad_enabled(const Node& n) {
  static const FunctionRef f = get_function(set_grad_enabled_name);
  return calls(n, f);
}
bool calls_enter_autocast(const Node& n) {
  static const FunctionRef f = get_function(enter_autocast_name);
  return calls(n, f);
}
bool calls_exit_autocast(const Node& n) {
  static const FunctionRef f = get_function(exit_autocast_name);
  return calls(n, f);
}

const std::vector<std::pair<const char*, Function::Body>>& region_functions() {
  static const std::vector<std::pair<const char*, Function::Body>> functions = {
      {set_grad_enabled_name,
       [](const Values& args, const Kwargs&) {
         if (args.size() != 1 || args[0].kind() != Value::Kind::boolean)
           throw UserError("_set_grad_enabled: expected one bool");
         set_grad_enabled(args[0].to_bool());
         return Value();
       }},
      {enter_autocast_name, enter_autocast},
      {exit_autocast_name, exit_autocast},
  };
  return functions;
}

RegionGuard::RegionGuard() : grad_before_(grad_enabled()), depth_before_(depth_entered()) {}
RegionGuard::~RegionGuard() {
  if (done_) return;
  while (depth_entered() > depth_before_) leave_region();
  if (grad_enabled() != grad_before_) set_grad_enabled(grad_before_);
}

}  // namespace calque
