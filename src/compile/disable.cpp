#include "calque/base/error.h"
#include "calque/compile/compile.h"
#include "calque/nn/signature.h"
#include "compile/capture.h"

namespace calque {
namespace {

class DisabledModule final : public Module {
 public:
  DisabledModule(std::shared_ptr<Module> module, std::string reason, std::source_location where)
      : module_(module), reason_(std::move(reason)), where_(where) {
    register_module("_orig_mod", std::move(module));
  }
  std::string type_name() const override { return "torch._dynamo.eval_frame.OptimizedModule"; }
  std::vector<std::string> argument_names() const override { return module_->argument_names(); }
  ForwardSignature forward_signature() const override { return module_->forward_signature(); }
  Value forward_values(const Values& args, const Kwargs& kwargs) override {
    std::vector<std::pair<Value, Value>> named;
    for (const auto& [name, value] : kwargs) named.emplace_back(name, value);
    return compile_detail::call_eagerly(
        [m = module_](const Values& packed) {
          Kwargs unpacked;
          for (const auto& [name, value] : packed[1].to_dict().items) unpacked.emplace_back(name.to_string(), value);
          return m->call(packed[0].to_items(), std::move(unpacked));
        },
        {tuple(args), dict(std::move(named))}, reason_, where_);
  }

 private:
  const std::shared_ptr<Module> module_;
  const std::string reason_;
  const std::source_location where_;
};

}  // namespace

namespace compile_detail {

Value call_eagerly(const std::function<Value(const Values& args)>& function, const Values& args, const std::string& reason,
                   std::source_location where) {
  if (Capturing* capture = capturing()) return capture->call_eagerly(function, args, reason, where);
  return function(args);
}

}  // namespace compile_detail

std::shared_ptr<Module> disable(std::shared_ptr<Module> module, std::string reason, std::source_location where) {
  if (!module) throw UserError("disable: expected a module, found none");
  return std::make_shared<DisabledModule>(std::move(module), std::move(reason), where);
}

}  // namespace calque
