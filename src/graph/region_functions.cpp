#include "graph/region_functions.h"

#include <memory>

#include "calque/base/error.h"
#include "calque/op/autocast.h"

namespace calque {
namespace {

std::vector<std::unique_ptr<AutocastScope>>& entered() {
  thread_local std::vector<std::unique_ptr<AutocastScope>> scopes;
  return scopes;
}

bool calls(const Node& n, const FunctionRef& f) {
  return n.kind() == NodeKind::call_function && n.target().function() == f.get();
}

constexpr const char* handle_type = "torch.amp.autocast";

Value enter_autocast(const Values& args, const Kwargs&) {
  const AutocastArguments a(args);
  entered().push_back(std::make_unique<AutocastScope>(a.device, a.dtype, a.enabled, a.cache_enabled));
  return StructValue{handle_type, std::to_string(entered().size()), {}, {}};
}

Value exit_autocast(const Values& args, const Kwargs&) {
  if (args.size() != 1 || args[0].kind() != Value::Kind::structure || args[0].to_struct().type != handle_type)
    throw UserError("_exit_autocast: expected what _enter_autocast gave");
  if (args[0].to_struct().context != std::to_string(entered().size()))
    throw UserError("_exit_autocast: autocast regions must be left in the reverse of the order in which they were entered");
  entered().pop_back();
  return {};
}

}  // namespace

AutocastArguments::AutocastArguments(const Values& args) {
  if (args.size() < 4)
    throw UserError("autocast: expected a device type, a dtype, enabled and cache_enabled, found " +
                    std::to_string(args.size()) + " arguments");
  device = Device(args[0].to_string()).type;
  if (!args[1].is_none()) dtype = args[1].to_dtype();
  enabled = args[2].to_bool();
  if (!args[3].is_none()) cache_enabled = args[3].to_bool();
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

RegionGuard::RegionGuard() : grad_before_(grad_enabled()), depth_before_(entered().size()) {}
RegionGuard::~RegionGuard() {
  if (done_) return;
  while (entered().size() > depth_before_) entered().pop_back();
  if (grad_enabled() != grad_before_) set_grad_enabled(grad_before_);
}

}  // namespace calque
