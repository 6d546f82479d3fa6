// Runs one case of gradients: what requires a gradient, the gradients of the arguments, theirs, and differences in float64.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/grad/autograd.h"
#include "calque/op/mode.h"
#include "calque/op/ops.h"
#include "calque/tensor/generator.h"
#include "op/opcheck_support.h"

namespace calque::opcheck {

using Json = nlohmann::json;

namespace {

// The operators that are called, as PyTorch's dispatch modes see them.
class CallLog final : public Mode {
 public:
  ModeSlot slot() const override { return ModeSlot::recorder; }
  Value call(const Operator& op, const Values& args) override {
    const bool is_bookkeeping = &op == &detach_ || &op == &alias_;
    if (!is_bookkeeping) names.push_back(op.name());
    return call_next(op, args);
  }
  std::vector<std::string> names;

 private:
  const Operator& detach_ = get_operator("aten::detach");
  const Operator& alias_ = get_operator("aten::alias");
};

class GradientRun {
 public:
  GradientRun(const CaseFile& file, const Json& entry, const Operator& op, Report& report)
      : file_(file), entry_(entry), op_(op), report_(report), seed_(entry.at("seed").get<uint64_t>()) {}

  void run() {
    Arguments args = make_arguments(file_, entry_, op_, Data::real);
    inputs_ = wanted_of(args);
    storages_ = args.storages;
    for (const Tensor& t : inputs_) t.set_requires_grad();
    const Values outs = results(std::move(args));
    const Json& smooth = entry_.at("smooth");
    if (outs.size() != smooth.size()) throw Mismatch{fmt::format("{} results, PyTorch {}", outs.size(), smooth.size())};
    for (size_t i = 0; i < outs.size(); ++i) {
      const bool requires_grad = outs[i].is_tensor() && outs[i].to_tensor().requires_grad();
      if (requires_grad != smooth[i].get<bool>())
        throw Mismatch{fmt::format("result {}: requires_grad is {}, PyTorch's {}", i, requires_grad, smooth[i].dump())};
    }
    if (!entry_.contains("gradients")) return;
    TensorVector roots;
    for (const Json& root : entry_.at("roots")) {
      roots.push_back(outs[root[0].get<size_t>()].to_tensor());
      given_.push_back(tensor(root[1]));
    }
    const bool again = entry_.contains("second");
    if (again)
      for (const Tensor& g : given_) g.set_requires_grad();
    const TensorVector gradients =
        grad(roots, inputs_, {.grad_outputs = given_, .create_graph = again, .allow_unused = true});
    judge(gradients, entry_.at("gradients"), "gradient", 0);
    if (again) judge_second(gradients);
    if (entry_.contains("calls")) judge_calls();
    if (entry_.contains("numeric")) judge_differences(gradients);
  }

 private:
  // The arguments that want a gradient; cases number tensors in the order of the arguments, then of the keywords by name.
  TensorVector wanted_of(const Arguments& args) const {
    Values leaves;
    for (const Value& v : args.positional) flatten_into(v, leaves);
    for (const auto& [key, v] : args.keyword) flatten_into(v, leaves);
    std::vector<const Json*> described;
    describe(entry_.at("args"), described);
    describe(entry_.at("kwargs"), described);
    TensorVector tensors, out;
    for (size_t i = 0; i < leaves.size(); ++i)
      if (described.at(i)->is_object() && described[i]->contains("t")) tensors.push_back(leaves[i].to_tensor());
    for (const Json& k : entry_.at("wants")) out.push_back(tensors.at(k.get<size_t>()));
    return out;
  }

  static void describe(const Json& v, std::vector<const Json*>& out) {
    const bool is_leaf = !v.is_array() && !(v.is_object() && !v.contains("t") && !is_plain(v));
    if (is_leaf) {
      out.push_back(&v);
      return;
    }
    for (const Json& x : v) describe(x, out);
  }
  // An object that is one argument: {"f": "nan"} and the like.
  static bool is_plain(const Json& v) {
    return std::any_of(std::begin(plain_keys), std::end(plain_keys),
                       [&](const char* key) { return v.size() == 1 && v.contains(key); });
  }
  static constexpr const char* plain_keys[] = {"f", "c", "dtype", "device", "layout", "memory_format"};

  Values results(Arguments args) const {
    if (entry_.contains("clone")) args.positional[0] = Value(args.positional[0].to_tensor().clone());
    manual_seed(seed_);
    Values flat;
    for (const Value& v : results_of(op_, call(op_, std::move(args.positional), std::move(args.keyword))))
      flatten_into(v, flat);
    return flat;
  }

  Tensor tensor(const Json& v) const {
    return from_storage(storages_.at(v.at("t").get<size_t>()), dtype_from_name(v.at("dtype").get<std::string>()).value(),
                        v.at("sizes").get<std::vector<int64_t>>(), v.at("strides").get<std::vector<int64_t>>(),
                        v.at("offset").get<int64_t>());
  }

  std::string_view bytes_of(const Json& e) const {
    if (e.contains("alias")) return file_.blob(entry_.at("storages").at(e["alias"].get<size_t>()));
    return file_.blob(entry_.at("out_storages").at(e["t"].get<size_t>()));
  }

  void judge(const TensorVector& got, const Json& expected, const std::string& what, size_t first_reference) const {
    const Check check = check_from_name(entry_.at("check").get<std::string>());
    for (size_t i = 0; i < got.size(); ++i) {
      const Json& e = expected.at(i);
      const std::string where = fmt::format("{} {}", what, i);
      if (!got[i].defined() || e.is_null()) {
        if (got[i].defined()) throw Mismatch{where + ": PyTorch has none"};
        if (!e.is_null()) throw Mismatch{where + ": there is none, PyTorch has one"};
        continue;
      }
      expect_geometry(got[i], e, where);
      std::string_view reference;
      if (const auto at = entry_.find("ref"); at != entry_.end() && first_reference + i < at->size())
        if (const Json& r = (*at)[first_reference + i]; !r.is_null()) reference = file_.blob(r);
      const auto wrong =
          compare(elements_of(got[i]), elements_of(e, bytes_of(e)), reference, check, entry_.at("id").get<std::string>(),
                  &report_.errors, false, entry_.value("ulps", int64_t{2}));
      if (wrong) throw Mismatch{where + ": " + *wrong};
    }
  }

  void judge_second(const TensorVector& gradients) const {
    TensorVector roots, directions, all = inputs_;
    for (const Json& root : entry_.at("again")) {
      const Tensor& g = gradients.at(root[0].get<size_t>());
      if (!g.requires_grad())
        throw Mismatch{fmt::format("gradient {}: does not require grad, PyTorch's does", root[0].dump())};
      roots.push_back(g);
      directions.push_back(tensor(root[1]));
    }
    all.insert(all.end(), given_.begin(), given_.end());
    judge(grad(roots, all, {.grad_outputs = directions, .allow_unused = true}), entry_.at("second"), "second gradient",
          inputs_.size());
  }

  // Which operators the backward pass calls, in which order.
  void judge_calls() const {
    Arguments args = make_arguments(file_, entry_, op_, Data::real);
    const TensorVector inputs = wanted_of(args);
    for (const Tensor& t : inputs) t.set_requires_grad();
    const Values outs = results(std::move(args));
    TensorVector roots;
    for (const Json& root : entry_.at("roots")) roots.push_back(outs[root[0].get<size_t>()].to_tensor());
    CallLog log;
    const ModeScope scope(log);
    grad(roots, inputs, {.grad_outputs = given_, .allow_unused = true});
    const auto expected = entry_.at("calls").get<std::vector<std::string>>();
    if (log.names != expected)
      throw Mismatch{fmt::format("the backward pass calls [{}], PyTorch's [{}]", fmt::join(log.names, ", "),
                                 fmt::join(expected, ", "))};
  }

  // The sum of the results by their gradients, with the arguments moved a little.
  double value(const TensorVector& directions, double step) const {
    const GradModeScope off(false);
    Arguments args = make_arguments(file_, entry_, op_, Data::real);
    const TensorVector inputs = wanted_of(args);
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].add_(directions[i], step);
    const Values outs = results(std::move(args));
    double sum = 0;
    for (size_t i = 0; i < given_.size(); ++i)
      sum += (outs[entry_.at("roots")[i][0].get<size_t>()].to_tensor() * given_[i]).sum().item<double>();
    return sum;
  }

  void judge_differences(const TensorVector& gradients) const {
    constexpr double step = 1e-6;
    const GradModeScope off(false);
    manual_seed(seed_ + 1);
    TensorVector directions;
    for (const Tensor& t : inputs_) directions.push_back(randn_like(t));
    const double numeric = (value(directions, step) - value(directions, -step)) / (2 * step);
    double analytic = 0, scale = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const Tensor terms = gradients[i].detach() * directions[i];
      analytic += terms.sum().item<double>();
      scale += terms.abs().sum().item<double>();
    }
    if (!(std::abs(numeric - analytic) <= 1e-5 * std::max(1.0, scale)))
      throw Mismatch{fmt::format("the gradient along a direction is {:.9g}, differences give {:.9g}", analytic, numeric)};
  }

  const CaseFile& file_;
  const Json& entry_;
  const Operator& op_;
  Report& report_;
  uint64_t seed_;
  std::vector<Ref<Storage>> storages_;
  TensorVector inputs_, given_;
};

}  // namespace

void run_gradient_case(const CaseFile& file, const Json& entry, const Operator& op, Report& report) {
  GradientRun(file, entry, op, report).run();
}

}  // namespace calque::opcheck
