// Modules as such: registration, names, traversal, state, hooks, calls, copies.
#include "calque/nn/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/warning.h"
#include "calque/nn/functional_call.h"
#include "calque/nn/typed.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "support/error_support.h"

namespace calque::module_test {
namespace {

struct Scale : Typed<Scale> {
  explicit Scale(int64_t n, float value = 1, bool with_shift = true)
      : weight(register_parameter("weight", full({n}, value))),
        shift(register_buffer("shift", with_shift ? zeros({n}) : Tensor())) {}
  Parameter weight;
  Buffer shift;
  static constexpr const char* forward_arguments[] = {"input", "times"};
  Tensor forward(const Tensor& input, int64_t times = 1) {
    Tensor out = mul(input, weight);
    for (int64_t i = 1; i < times; ++i) out = mul(out, weight);
    return shift.defined() ? add(out, shift) : out;
  }
};

struct Block : Typed<Block> {
  Child<Scale> first = child<Scale>("first", 2, 2.0F);
  Child<Scale> second = child<Scale>("second", 2, 3.0F);
  Parameter gain = register_parameter("gain", ones({1}));
  Tensor forward(const Tensor& x) { return mul(second(first(x)), gain); }
};

struct Net : Typed<Net> {
  Child<Block> block = child<Block>("block");
  Child<Scale> head = child<Scale>("head", 2, 5.0F, false);
  Tensor forward(const Tensor& x) { return head(block(x)); }
};

std::vector<float> values(const Tensor& t) {
  const Tensor c = t.contiguous();
  return {c.data_as<float>(), c.data_as<float>() + c.numel()};
}
Tensor row(float a, float b) { return tensor_of<float>({a, b}, {2}); }

using test::error_of;
template <class Named>
std::vector<std::string> names(const Named& named) {
  std::vector<std::string> out;
  for (const auto& [name, thing] : named) out.push_back(name);
  return out;
}
using Names = std::vector<std::string>;

TEST(Module, calls_forward_typed_and_by_values) {
  Net net;
  EXPECT_EQ(values(net(row(1, 2))), (std::vector<float>{30, 60}));
  EXPECT_EQ(values(net.call({row(1, 2)}).to_tensor()), (std::vector<float>{30, 60}));
  EXPECT_EQ(values(net.call({}, {{"input", row(1, 2)}}).to_tensor()), (std::vector<float>{30, 60}));
}

TEST(Module, default_arguments_of_forward_serve_value_calls) {
  Scale scale(2, 3);
  EXPECT_EQ(values(scale.call({row(1, 2)}).to_tensor()), (std::vector<float>{3, 6}));
  EXPECT_EQ(values(scale.call({row(1, 2)}, {{"times", 2}}).to_tensor()), (std::vector<float>{9, 18}));
}

TEST(Module, wrong_arguments_are_named) {
  Scale scale(2);
  EXPECT_EQ(error_of([&] { scale.call({}); }), "Scale.forward() missing required argument: 'input'");
  EXPECT_EQ(error_of([&] {
              scale.call({row(1, 2), 1, 2});
            }),
            "Scale.forward() takes 2 positional arguments but 3 were given");
  EXPECT_EQ(error_of([&] {
              scale.call({row(1, 2)}, {{"foo", 1}});
            }),
            "Scale.forward() got an unexpected keyword argument 'foo'");
  EXPECT_EQ(error_of([&] {
              scale.call({row(1, 2)}, {{"input", 1}});
            }),
            "Scale.forward() got multiple values for argument 'input'");
  EXPECT_THAT(error_of([&] { scale.call({row(1, 2), "x"}); }), testing::StartsWith("Scale.forward: argument 'times': "));
  EXPECT_EQ(error_of([] { Module().call({}); }), "Module [Module] is missing the required \"forward\" function");
}

TEST(Module, names_are_checked_at_registration) {
  Net net;
  EXPECT_EQ(error_of([&] { net.register_parameter("a.b", row(1, 2)); }),
            "Net: parameter name can't contain \".\", got: a.b");
  EXPECT_EQ(error_of([&] { net.register_buffer("", row(1, 2)); }), "Net: buffer name can't be empty string \"\"");
  EXPECT_EQ(error_of([&] { net.register_parameter("block", row(1, 2)); }), "Net: attribute 'block' already exists");
  EXPECT_EQ(error_of([&] { net.block->register_module("gain", std::make_shared<Net>()); }),
            "Block: attribute 'gain' already exists");
  EXPECT_EQ(error_of([&] { net.block->register_buffer("gain", row(1, 2)); }), "Block: attribute 'gain' already exists");
}

TEST(Module, a_parameter_requires_gradients_a_buffer_does_not) {
  Scale scale(2);
  EXPECT_TRUE(scale.weight->requires_grad());
  EXPECT_FALSE(scale.shift->requires_grad());
  scale.requires_grad_(false);
  EXPECT_FALSE(scale.weight->requires_grad());
  EXPECT_THAT(error_of([&] { scale.register_parameter("n", zeros({2}, DType::int64)); }),
              testing::HasSubstr("only tensors of floating point"));
  scale.register_parameter("n", zeros({2}, DType::int64), false);
  EXPECT_EQ(names(scale.named_parameters()), (Names{"weight", "n"}));
}

TEST(Module, traversal_goes_in_the_order_of_registration) {
  Net net;
  EXPECT_EQ(names(net.named_parameters()),
            (Names{"block.gain", "block.first.weight", "block.second.weight", "head.weight"}));
  EXPECT_EQ(names(net.named_buffers()), (Names{"block.first.shift", "block.second.shift"}));
  EXPECT_EQ(names(net.named_modules()), (Names{"", "block", "block.first", "block.second", "head"}));
  EXPECT_EQ(names(net.named_modules("m")), (Names{"m", "m.block", "m.block.first", "m.block.second", "m.head"}));
  EXPECT_EQ(names(net.named_children()), (Names{"block", "head"}));
  EXPECT_EQ(names(net.named_parameters("p", false)), Names{});
  EXPECT_EQ(names(net.block->named_parameters("p", false)), Names{"p.gain"});
}

TEST(Module, shared_modules_and_tied_tensors_count_once_unless_asked) {
  Net net;
  net.register_module("again", net.get_submodule_ptr("head"));
  net.head->weight = *net.block->first->weight;
  EXPECT_EQ(names(net.named_modules()), (Names{"", "block", "block.first", "block.second", "head"}));
  EXPECT_EQ(names(net.named_modules("", false)), (Names{"", "block", "block.first", "block.second", "head", "again"}));
  EXPECT_EQ(names(net.named_parameters()), (Names{"block.gain", "block.first.weight", "block.second.weight"}));
  EXPECT_EQ(names(net.named_parameters("", true, false)),
            (Names{"block.gain", "block.first.weight", "block.second.weight", "head.weight", "again.weight"}));
  EXPECT_EQ(names(net.state_dict()), (Names{"block.gain", "block.first.weight", "block.first.shift", "block.second.weight",
                                            "block.second.shift", "head.weight", "again.weight"}));
  EXPECT_TRUE(net.state_dict().at("head.weight").is_same(net.block->first->weight));
}

TEST(Module, looks_up_by_path) {
  Net net;
  EXPECT_EQ(&net.get_submodule(""), &net);
  EXPECT_EQ(net.get_submodule("block.second").class_name(), "Scale");
  EXPECT_TRUE(net.get_parameter("block.first.weight").is_same(net.block->first->weight));
  EXPECT_TRUE(net.get_buffer("block.first.shift").is_same(net.block->first->shift));
  EXPECT_EQ(net.find_submodule("block.third"), nullptr);
  EXPECT_EQ(net.find_tensor("block.third.weight"), nullptr);
  EXPECT_EQ(error_of([&] { net.get_submodule("block.third"); }), "Block has no attribute `third`");
  EXPECT_EQ(error_of([&] { net.get_submodule("block.gain"); }), "`gain` is not an nn.Module");
  EXPECT_EQ(error_of([&] { net.get_parameter("block.first.shift"); }), "`shift` is not an nn.Parameter");
  EXPECT_EQ(error_of([&] { net.get_buffer("block.first.weight"); }), "`weight` is not a buffer");
  EXPECT_EQ(error_of([&] { net.get_buffer("block.first.nothing"); }), "Scale has no attribute `nothing`");
}

TEST(Module, a_replaced_child_is_what_forward_calls) {
  struct Negate : Typed<Negate> {
    Tensor forward(const Tensor& x) { return x.neg(); }
  };
  Net net;
  net.set_submodule("block.first", std::make_shared<Negate>());
  EXPECT_EQ(values(net(row(1, 2))), (std::vector<float>{-15, -30}));
  EXPECT_THAT(error_of([&] { net.block->first->weight.defined(); }), testing::HasSubstr("was replaced by a"));
  net.set_submodule("block.first", std::make_shared<Scale>(2, 1.0F));
  EXPECT_EQ(values(net(row(1, 2))), (std::vector<float>{15, 30}));
  EXPECT_EQ(error_of([&] { net.set_submodule("block.third", std::make_shared<Negate>(), true); }),
            "Block has no attribute `third`");
  net.delete_submodule("block.first");
  EXPECT_EQ(error_of([&] { net(row(1, 2)); }), "the child module first is None");
}

TEST(Module, a_replaced_tensor_is_what_forward_reads) {
  Net net;
  net.set_tensor("head.weight", full({2}, 10.0));
  EXPECT_EQ(values(net(row(1, 2))), (std::vector<float>{60, 120}));
}

TEST(Module, a_derived_forward_is_called_through_the_base) {
  struct Twice : Typed<Twice, Scale> {
    using Typed<Twice, Scale>::Typed;
    Tensor forward(const Tensor& x) { return mul(Scale::forward(x), full({1}, 2.0)); }
  };
  Net net;
  net.set_submodule("head", std::make_shared<Twice>(2, 5.0F, false));
  EXPECT_EQ(values(net(row(1, 2))), (std::vector<float>{60, 120}));
  const std::shared_ptr<Scale> base = std::make_shared<Twice>(2, 5.0F, false);
  EXPECT_EQ(values((*base)(row(1, 2))), (std::vector<float>{10, 20}));
}

TEST(Module, prints_as_pytorch_does) {
  struct WithExtra : Typed<WithExtra> {
    std::string extra_repr() const override { return "a=1\nb=2"; }
    void forward() {}
  };
  Net net;
  net.register_module("none", nullptr);
  net.register_module("extra", std::make_shared<WithExtra>());
  EXPECT_EQ(net.str(),
            "Net(\n  (block): Block(\n    (first): Scale()\n    (second): Scale()\n  )\n  (head): Scale()\n  (none): None\n "
            " (extra): WithExtra(\n    a=1\n    "
            "b=2\n  )\n)");
}

TEST(Module, loads_a_state_dict) {
  Net net, other;
  const GradModeScope no_grad(false);
  for (const auto& [name, tensor] : other.state_dict()) tensor.fill_(7);
  EXPECT_TRUE(net.load_state_dict(other.state_dict()).missing_keys.empty());
  EXPECT_EQ(values(net.head->weight), (std::vector<float>{7, 7}));
  EXPECT_FALSE(net.head->weight->is_same(other.head->weight));
  net.load_state_dict(other.state_dict(), true, true);
  EXPECT_TRUE(net.head->weight->is_same(other.head->weight));
}

TEST(Module, loading_reports_everything_that_does_not_fit_and_writes_nothing) {
  Net net;
  StateDict state = net.state_dict();
  for (const auto& [name, tensor] : StateDict(state)) state.set(name, full_like(tensor, 9));
  state.erase("head.weight");
  state.set("head.more", row(1, 2));
  state.set("other.weight", row(1, 2));
  state.set("block.gain", zeros({2, 1}));
  EXPECT_EQ(error_of([&] { net.load_state_dict(state); }),
            "Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: \"head.weight\". \n\tUnexpected "
            "key(s) in state_dict: \"other.weight\", "
            "\"head.more\". \n\tsize mismatch for block.gain: copying a param with shape torch.Size([2, 1]) from "
            "checkpoint, the shape in current model is "
            "torch.Size([1]).");
  EXPECT_EQ(values(net.block->first->weight), (std::vector<float>{2, 2}));
  state.erase("block.gain");
  const IncompatibleKeys keys = net.load_state_dict(state, false);
  EXPECT_EQ(keys.missing_keys, (Names{"block.gain", "head.weight"}));
  EXPECT_EQ(keys.unexpected_keys, (Names{"other.weight", "head.more"}));
  EXPECT_EQ(values(net.block->first->weight), (std::vector<float>{9, 9}));
}

TEST(Module, buffers_that_do_not_persist_are_not_in_the_state_dict) {
  Scale scale(2);
  scale.register_buffer("cache", row(1, 2), false);
  EXPECT_EQ(names(scale.state_dict()), (Names{"weight", "shift"}));
  EXPECT_EQ(names(scale.named_buffers()), (Names{"shift", "cache"}));
  StateDict state = scale.state_dict();
  state.set("cache", row(1, 2));
  EXPECT_THAT(error_of([&] { scale.load_state_dict(state); }),
              testing::HasSubstr("Unexpected key(s) in state_dict: \"cache\". "));
}

TEST(Module, converts_dtypes_and_keeps_identity) {
  Net net;
  net.head->weight = *net.block->first->weight;
  const Tensor before = net.head->weight;
  net.register_buffer("ids", zeros({2}, DType::int64));
  net.to(DType::bfloat16);
  EXPECT_TRUE(net.head->weight->is_same(before));
  EXPECT_TRUE(net.block->first->weight->is_same(before));
  EXPECT_EQ(before.dtype(), DType::bfloat16);
  EXPECT_TRUE(before.requires_grad());
  EXPECT_EQ(net.get_buffer("ids").dtype(), DType::int64);
  EXPECT_EQ(net.block->first->shift->dtype(), DType::bfloat16);
  EXPECT_THAT(error_of([&] { net.to(DType::int64); }), testing::HasSubstr("only accepts floating point or complex dtypes"));
  net.to(Device(DeviceType::meta));
  EXPECT_EQ(before.device().type, DeviceType::meta);
  EXPECT_THAT(error_of([&] { net.to(Device(DeviceType::cpu)); }), testing::HasSubstr("Cannot copy out of meta tensor"));
  net.to_empty(Device(DeviceType::cpu));
  EXPECT_EQ(before.device().type, DeviceType::cpu);
}

TEST(Module, train_eval_and_apply_reach_every_module) {
  Net net;
  net.eval();
  for (Module* m : net.modules()) EXPECT_FALSE(m->training());
  Names order;
  net.apply([&](Module& m) { order.push_back(m.class_name()); });
  EXPECT_EQ(order, (Names{"Scale", "Scale", "Block", "Scale", "Net"}));
}

TEST(Module, deep_copy_is_independent_and_keeps_what_is_shared) {
  const auto net = std::make_shared<Net>();
  net->head->weight = *net->block->first->weight;
  net->register_module("again", net->get_submodule_ptr("head"));
  net->register_buffer("view", net->block->second->shift->slice(0, 1));
  net->eval();
  const std::shared_ptr<Net> copy = deep_copy(*net);
  EXPECT_FALSE(copy->training());
  EXPECT_TRUE(copy->head->weight->is_same(copy->block->first->weight));
  EXPECT_EQ(&copy->get_submodule("again"), &copy->get_submodule("head"));
  EXPECT_FALSE(copy->head->weight->is_same(net->head->weight));
  EXPECT_TRUE(copy->head->weight->requires_grad());
  const GradModeScope no_grad(false);
  copy->get_buffer("block.second.shift").fill_(1);
  EXPECT_EQ(values(copy->get_buffer("view")), std::vector<float>{1});
  EXPECT_EQ(values(net->get_buffer("view")), std::vector<float>{0});
  copy->get_parameter("head.weight").fill_(0);
  EXPECT_EQ(values((*copy)(row(1, 2))), (std::vector<float>{0, 0}));
  EXPECT_EQ(values((*net)(row(1, 2))), (std::vector<float>{12, 24}));
  EXPECT_THAT(error_of([&] { Net second(*net); }), testing::HasSubstr("use deep_copy()"));
}

TEST(Module, hooks_see_and_change_arguments_and_results) {
  Net net;
  Names log;
  HookHandle pre =
      net.head->register_forward_pre_hook([&](Module& m, const Values& args, const Kwargs&) -> std::optional<Module::Call> {
        log.push_back("pre " + m.class_name());
        return Module::Call{{neg(args[0].to_tensor())}, {}};
      });
  HookHandle post = net.head->register_forward_hook(
      [&](Module&, const Values&, const Kwargs&, const Value& result) -> std::optional<Value> {
        log.push_back("post");
        return mul(result.to_tensor(), full({1}, 2.0));
      });
  net.head->register_forward_hook(
      [&](Module&, const Values&, const Kwargs&, const Value&) -> std::optional<Value> {
        log.push_back("first");
        return std::nullopt;
      },
      true);
  EXPECT_EQ(values(net(row(1, 2))), (std::vector<float>{-60, -120}));
  EXPECT_EQ(log, (Names{"pre Scale", "first", "post"}));
  pre.remove();
  post.remove();
  post.remove();
  EXPECT_EQ(values(net(row(1, 2))), (std::vector<float>{30, 60}));
}

TEST(Module, hooks_marked_always_run_when_forward_throws) {
  Scale scale(2);
  int calls = 0;
  scale.register_forward_hook(
      [&](Module&, const Values&, const Kwargs&, const Value& result) -> std::optional<Value> {
        ++calls;
        EXPECT_TRUE(result.is_none());
        throw UserError("hook");
      },
      false, true);
  scale.register_forward_hook([&](Module&, const Values&, const Kwargs&, const Value&) -> std::optional<Value> {
    calls += 10;
    return std::nullopt;
  });
  const uint64_t warnings = warning_count();
  EXPECT_THAT(error_of([&] { scale(zeros({3})); }), testing::Not(testing::HasSubstr("hook")));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(warning_count(), warnings + 1);
}

TEST(Module, state_dict_hooks) {
  Scale scale(2);
  scale.register_state_dict_post_hook(
      [](Module&, StateDict& state, const std::string& prefix) { state.rename(prefix + "weight", prefix + "w"); });
  EXPECT_EQ(names(scale.state_dict()), (Names{"w", "shift"}));
  EXPECT_THAT(error_of([&] { scale.load_state_dict(scale.state_dict()); }),
              testing::HasSubstr("Missing key(s) in state_dict: \"weight\". "));
  HookHandle post = scale.register_load_state_dict_post_hook([](Module&, IncompatibleKeys& keys) {
    keys.missing_keys.clear();
    keys.unexpected_keys.clear();
  });
  scale.load_state_dict(scale.state_dict());
  post.remove();
  scale.register_load_state_dict_pre_hook([](Module&, StateDict& state, const std::string& prefix, IncompatibleKeys&,
                                             Names&) { state.rename(prefix + "w", prefix + "weight"); });
  scale.load_state_dict(scale.state_dict());
}

TEST(Module, observers_see_calls_and_may_answer_them) {
  struct Recorder : ModuleObserver {
    Names log;
    std::string leaf;
    std::optional<Value> intercept(Module& m, const Values& args, const Kwargs&) override {
      if (m.class_name() != leaf) return std::nullopt;
      log.push_back("call " + m.class_name());
      return args[0];
    }
    void enter(Module& m) override { log.push_back("enter " + m.class_name()); }
    void leave(Module& m) override { log.push_back("leave " + m.class_name()); }
  } recorder;
  Net net;
  {
    const ModuleObserverScope scope(recorder);
    recorder.leaf = "Block";
    EXPECT_EQ(values(net(row(1, 2))), (std::vector<float>{5, 10}));
    EXPECT_EQ(recorder.log, (Names{"enter Net", "call Block", "enter Scale", "leave Scale", "leave Net"}));
    recorder.log.clear();
    EXPECT_THROW(net.head(zeros({3})), UserError);
    EXPECT_EQ(recorder.log, (Names{"enter Scale", "leave Scale"}));
    recorder.log.clear();
    const NoModuleObserversScope none;
    net(row(1, 2));
    EXPECT_EQ(recorder.log, Names{});
  }
  net(row(1, 2));
  EXPECT_EQ(recorder.log, Names{});
}

TEST(Module, functional_call_uses_other_tensors_and_puts_back_its_own) {
  Net net;
  const Tensor own = net.head->weight;
  const Value out = functional_call(net, {{"head.weight", full({2}, 1.0)}, {"block.first.shift", ones({2})}}, {row(1, 2)});
  EXPECT_EQ(values(out.to_tensor()), (std::vector<float>{9, 15}));
  EXPECT_TRUE(net.head->weight->is_same(own));
  EXPECT_THROW(functional_call(net, {{"head.weight", zeros({3})}}, {row(1, 2)}), UserError);
  EXPECT_TRUE(net.head->weight->is_same(own));
  EXPECT_EQ(error_of([&] {
              functional_call(net, {{"head.weight", own}, {"x", own}}, {row(1, 2)}, {}, {.strict = true});
            }),
            "Error(s) in reparametrizing for Net:\n\tUnexpected key(s): 'x'.\n\tMissing key(s): 'block.first.shift', "
            "'block.first.weight', 'block.gain', "
            "'block.second.shift', 'block.second.weight'.");
}

TEST(Module, functional_call_follows_tied_weights) {
  Net net;
  net.head->weight = *net.block->first->weight;
  EXPECT_EQ(values(functional_call(net, {{"head.weight", ones({2})}}, {row(1, 2)}).to_tensor()), (std::vector<float>{3, 6}));
  EXPECT_EQ(values(functional_call(net, {{"head.weight", ones({2})}}, {row(1, 2)}, {}, {.tie_weights = false}).to_tensor()),
            (std::vector<float>{6, 12}));
  EXPECT_EQ(error_of([&] {
              functional_call(net, {{"head.weight", ones({2})}, {"block.first.weight", ones({2})}}, {row(1, 2)});
            }),
            "functional_call got multiple values for keys ['block.first.weight', 'head.weight'], which are tied. Consider "
            "using tie_weights=False");
}

struct Output {
  Tensor first;
  std::optional<Tensor> second;
  Value to_value() const { return dict({{"first", first}, {"second", second ? Value(*second) : Value()}}); }
  static Output from_value(const Value& v) {
    const Value* second = v.to_dict().find("second");
    return {v.to_dict().find("first")->to_tensor(),
            second->is_none() ? std::nullopt : std::optional<Tensor>(second->to_tensor())};
  }
};
struct Pair : Typed<Pair> {
  static constexpr const char* forward_arguments[] = {"a", "b", "flag", "sizes"};
  Output forward(const Tensor& a, const std::optional<Tensor>& b, bool flag = false,
                 const std::vector<int64_t>& sizes = {}) {
    return {sizes.empty() ? a : a.reshape(SymInts(sizes.begin(), sizes.end())), flag ? b : std::nullopt};
  }
};

struct Forgetful : Typed<Forgetful> {
  Scale scale{2};
  Tensor forward(const Tensor& x) { return scale(x); }
};
struct ForgetfulOuter : Typed<ForgetfulOuter> {
  Child<Forgetful> inner = child<Forgetful>("inner");
  Tensor forward(const Tensor& x) { return inner(x); }
};
struct ForgetfulOptional : Typed<ForgetfulOptional> {
  std::optional<Block> block;
  Tensor forward(const Tensor& x) { return block ? (*block)(x) : x; }
};

TEST(Module, a_plain_member_that_nobody_registered_is_said_at_the_first_call) {
  const char* mend =
      "Forgetful has a Scale as a plain member, which it does not know of: parameters(), state_dict(), to() and traces "
      "would "
      "miss it. Register it where it is declared: `Child<Scale> name = child<Scale>(\"name\", ...);` instead of `Scale "
      "name`";
  const Tensor x = row(1, 2);
  Forgetful on_stack;
  EXPECT_THAT(error_of([&] { on_stack(x); }), testing::HasSubstr(mend));
  EXPECT_THAT(error_of([&] { on_stack(x); }), testing::HasSubstr(mend)) << "said again while it is so";
  EXPECT_THAT(error_of([&] { std::make_shared<Forgetful>()->call({x}); }), testing::HasSubstr(mend));
  EXPECT_THAT(error_of([&] { ForgetfulOuter()(x); }), testing::HasSubstr(mend));
  ForgetfulOptional optional;
  EXPECT_TRUE(values(optional(x)) == values(x));
  ForgetfulOptional made;
  made.block.emplace();
  EXPECT_THAT(error_of([&] { made(x); }), testing::HasSubstr("ForgetfulOptional has a Block as a plain member"));
}

struct Stateless : Typed<Stateless> {
  Tensor forward(const Tensor& x) { return x; }
};
// What looks like a plain member and is none, or has nothing to miss.
struct Careful : Typed<Careful> {
  Stateless nothing;
  std::shared_ptr<Scale> shared = std::make_shared<Scale>(2);
  Child<Scale> child_ = child_module<Scale>("scale", shared);
  std::unique_ptr<Scale> elsewhere = std::make_unique<Scale>(2);
  std::vector<Scale> many;
  Scale lent{2};
  Careful() {
    register_module("lent", std::shared_ptr<Module>(std::shared_ptr<void>(), &lent));
    many.emplace_back(2);
    many.emplace_back(3);  // moves the first
  }
  Tensor forward(const Tensor& x) { return lent(child_(nothing(x))); }
};

TEST(Module, modules_that_are_no_plain_members_give_no_alarm) {
  const Tensor x = row(1, 2);
  struct {
    Scale before{2};
    Careful careful;
    Scale behind{2};
  } neighbours;
  EXPECT_EQ(values(neighbours.careful(x)), values(x));
  EXPECT_EQ(values(std::make_unique<Careful>()->call_typed(x)), values(x));
  const std::shared_ptr<Net> copy = deep_copy(Net());
  EXPECT_EQ(values((*copy)(x)), values(Net()(x)));
  // Memory that a module has left is anybody's.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(Net()(x)), values((*copy)(x)));
  Scale moved = [] {
    Scale made(2, 3.0F);
    return Scale(std::move(made));
  }();
  EXPECT_EQ(values(moved(x)), values(row(3, 6)));
}

TEST(Module, structured_arguments_and_results) {
  Pair pair;
  pair.register_forward_hook([](Module&, const Values& args, const Kwargs&, const Value&) -> std::optional<Value> {
    EXPECT_LE(args.size(), 4U);
    return std::nullopt;
  });
  EXPECT_FALSE(pair(row(1, 2), std::nullopt).second);
  EXPECT_TRUE(pair(row(1, 2), row(1, 2), true).second);
  EXPECT_EQ(pair(row(1, 2), row(1, 2), true, std::vector<int64_t>{2, 1}).first.dim(), 2);
  const Value out = pair.call({row(1, 2)}, {{"sizes", list({1, 2})}, {"flag", true}, {"b", row(1, 2)}});
  EXPECT_EQ(out.to_dict().find("first")->to_tensor().dim(), 2);
}

}  // namespace
}  // namespace calque::module_test
