// The table, overloads, modes and the two ways to call.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/unary.h"
#include "calque/op/library.h"

namespace calque::dispatch_test {
namespace {

Tensor floats(std::initializer_list<float> values) {
  return tensor_of<float>(ListRef<float>(values), {static_cast<int64_t>(values.size())});
}
std::vector<float> values_of(const Tensor& t) {
  const Tensor c = t.contiguous();
  return {c.data_as<float>(), c.data_as<float>() + c.numel()};
}

TEST(Dispatch, typed_and_by_name_give_the_same) {
  const Tensor a = floats({1, 2, 3});
  const Tensor b = floats({10, 20, 30});
  EXPECT_EQ(values_of(add(a, b)), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(values_of(a + b), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(values_of(a.add(b, 2)), (std::vector<float>{21, 42, 63}));
  EXPECT_EQ(values_of(call("aten::add.Tensor", {a, b}, {{"alpha", 2}}).to_tensor()), (std::vector<float>{21, 42, 63}));
  EXPECT_EQ(values_of(1 - a), (std::vector<float>{0, -1, -2}));
}

TEST(Dispatch, in_place_writes_through_and_advances_the_version) {
  const Tensor a = floats({1, 2});
  const uint32_t before = a.version();
  const Tensor r = a.add_(floats({1, 1}));
  EXPECT_TRUE(r.is_same(a));
  EXPECT_EQ(values_of(a), (std::vector<float>{2, 3}));
  EXPECT_GT(a.version(), before);
}

TEST(Dispatch, out_is_resized_and_filled) {
  const Tensor out = make_tensor(IntList{0}, DType::float32);
  call("aten::add.out", {floats({1, 2}), floats({3, 4})}, {{"out", out}});
  EXPECT_EQ(values_of(out), (std::vector<float>{4, 6}));
}

TEST(Dispatch, resolves_overloads_by_arguments) {
  EXPECT_EQ(resolve_overload("aten::add", {floats({1}), floats({1})}).name(), "aten::add.Tensor");
  EXPECT_EQ(resolve_overload("aten::add", {floats({1}), 2}).name(),
            "aten::add.Tensor");  // as PyTorch: the number is wrapped
}

TEST(Dispatch, unknown_operators_and_arguments_are_named) {
  try {
    call("aten::add.Tensr", {});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("aten::add.Tensor"), std::string::npos) << e.what();
  }
  try {
    call("aten::add.Tensor", {floats({1}), "x"});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("argument 'other' must be Tensor"), std::string::npos) << e.what();
  }
}

class CountingMode : public Mode {
 public:
  ModeSlot slot() const override { return ModeSlot::user; }
  Value call(const Operator& op, const Values& args) override {
    names.push_back(op.name());
    return call_next(op, args);
  }
  std::vector<std::string> names;
};

class RedirectingMode : public Mode {  // every add becomes a mul
 public:
  ModeSlot slot() const override { return ModeSlot::user; }
  Value call(const Operator& op, const Values& args) override {
    if (op.name() == "aten::add.Tensor") return calque::call("aten::mul.Tensor", {args[0], args[1]});
    return call_next(op, args);
  }
};

TEST(Modes, count_calls_below_composite_expansion) {
  CountingMode mode;
  const Tensor a = floats({1, 2});
  {
    const ModeScope scope(mode);
    static_cast<void>(true_divide(a, a));  // composite: its body's div is what a dispatch mode sees
    static_cast<void>(a + a);
  }
  static_cast<void>(a + a);
  EXPECT_EQ(mode.names, (std::vector<std::string>{"aten::div.Tensor", "aten::add.Tensor"}));
}

TEST(Modes, redirect_and_nest) {
  RedirectingMode redirect;
  CountingMode count;
  const Tensor a = floats({2, 3});
  const ModeScope below(count);
  const ModeScope above(redirect);
  EXPECT_EQ(values_of(a + a), (std::vector<float>{4, 9}));
  EXPECT_EQ(count.names[0], "aten::mul.Tensor");
}

TEST(Modes, push_order_matters_only_within_a_slot) {
  struct Named : Mode {
    Named(ModeSlot s, std::string n, std::vector<std::string>& log) : slot_(s), name_(std::move(n)), log_(log) {}
    ModeSlot slot() const override { return slot_; }
    Value call(const Operator& op, const Values& args) override {
      log_.push_back(name_);
      return call_next(op, args);
    }
    ModeSlot slot_;
    std::string name_;
    std::vector<std::string>& log_;
  };
  std::vector<std::string> log;
  Named recorder(ModeSlot::recorder, "recorder", log);
  Named function(ModeSlot::function, "function", log);
  const ModeScope a(function);
  const ModeScope b(recorder);
  const Tensor t = floats({1});
  log.clear();
  static_cast<void>(t + t);
  EXPECT_EQ(log, (std::vector<std::string>{"function", "recorder"}));
}

TEST(Dispatch, meta_tensors_answer_from_the_rule_alone) {
  const Tensor a =
      make_tensor(Meta{{SymInt(2), SymInt(3)}, {SymInt(3), SymInt(1)}, DType::float32, Device(DeviceType::meta), false});
  const Tensor r = a * a;
  EXPECT_TRUE(r.is_fake());
  EXPECT_EQ(str(r.sizes()), "[2, 3]");
  EXPECT_THROW(static_cast<void>(r.data()), UserError);
}

TEST(Dispatch, gradient_state_is_carried) {
  const Tensor a = floats({1, 2});
  a.set_requires_grad();
  EXPECT_TRUE((a + a).requires_grad());
  EXPECT_FALSE((a + a).is_leaf());
  {
    const GradModeScope off(false);
    EXPECT_FALSE((a + a).requires_grad());
  }
  EXPECT_THROW(a.add_(a), UserError);
  EXPECT_FALSE(a.detach().requires_grad());
}

}  // namespace
}  // namespace calque::dispatch_test
