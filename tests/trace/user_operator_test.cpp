// A user's own operator, added by one stanza through the public door, has every form a built-in one has.
#include <gtest/gtest.h>

#include "calque/graph/interpreter.h"
#include "calque/op/library.h"
#include "calque/op/operators.h"
#include "calque/trace/decompositions.h"
#include "calque/trace/make_fx.h"

namespace calque::user_operator_test {
namespace {

// out = self * factor + 1, contiguous float32 only.
Meta scale_rule(const Tensor& self, double) {
  if (self.dtype() != DType::float32) throw UserError("scale: expected float32, found " + std::string(name(self.dtype())));
  return self.meta();
}
void scale_kernel(const Tensor& self, double factor, const Tensor& out) {
  const float* x = self.data_as<float>();
  float* y = out.mutable_data_as<float>();
  for (int64_t i = 0; i < self.numel(); ++i) y[i] = x[i] * static_cast<float>(factor) + 1;
}

class UserOperator : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Library mine("mine");
    mine.def("scale(Tensor self, float factor=2.0) -> Tensor")
        .compute(scale_rule, scale_kernel)
        .in_place("scale_")
        .out("scale.out")
        .tags(Tag::pointwise);
    mine.alias("grow", "scale");
    mine.alias("grow_", "scale_");
    mine.def("twice(Tensor self) -> Tensor").composite([](const Tensor& self) -> Tensor { return self + self; });
  }
  Tensor x = tensor_of<float>({1, 2, 3}, {3});
};

TEST_F(UserOperator, runs_by_name_with_defaults) {
  EXPECT_EQ(call("mine::scale", {x}).to_tensor().data_as<float>()[2], 7);
  EXPECT_EQ(call("mine::scale", {x}, {{"factor", 10.0}}).to_tensor().data_as<float>()[0], 11);
  EXPECT_EQ(call("mine::twice", {x}).to_tensor().data_as<float>()[1], 4);
}

TEST_F(UserOperator, has_in_place_and_out_forms) {
  const Tensor y = x.clone();
  EXPECT_TRUE(call("mine::scale_", {y, 3.0}).to_tensor().is_same(y));
  EXPECT_EQ(y.data_as<float>()[0], 4);
  const Tensor out = make_tensor(IntList{3}, DType::float32);
  call("mine::scale.out", {x, 1.0}, {{"out", out}});
  EXPECT_EQ(out.data_as<float>()[2], 4);
}

TEST_F(UserOperator, an_alias_is_its_target_under_another_name) {
  EXPECT_EQ(get_operator("mine::grow.out").schema().str(),
            "mine::grow.out(Tensor self, float factor=2., *, Tensor(a!) out) -> Tensor(a!)");
  EXPECT_EQ(get_operator("mine::grow").alias_of(), &get_operator("mine::scale"));
  EXPECT_EQ(call("mine::grow", {x}).to_tensor().data_as<float>()[2], 7);
  const Operator& in_place = get_operator("mine::grow_");
  const Tensor y = x.clone();
  typed_call<Tensor, const Tensor&, double>(in_place, {}, y, 3.0);
  EXPECT_EQ(y.data_as<float>()[0], 4);
  const TracedGraph g = make_fx(
      [](const Tensor& in) {
        return call("mine::grow", {in, 5.0});
      },
      {.mode = TracingMode::symbolic})(x);
  EXPECT_NE(g.graph().str().find("mine.scale.default(%arg0_1, 5.0)"), std::string::npos) << g.graph().str();
}

TEST_F(UserOperator, an_alias_needs_its_target) {
  try {
    Library("mine").alias("shrink", "scael");
    ADD_FAILURE() << "an alias of nothing was registered";
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(),
                 "alias: shrink is to be another name for mine::scael, which is no operator yet; register that one first");
  }
}

TEST_F(UserOperator, traces_like_any_other) {
  const TracedGraph g = make_fx(
      [](const Tensor& in) {
        return call("mine::scale", {in, 5.0});
      },
      {.mode = TracingMode::symbolic})(x);
  EXPECT_NE(g.graph().str().find("mine.scale.default(%arg0_1, 5.0)"), std::string::npos) << g.graph().str();
  EXPECT_EQ(
      Interpreter(g.graph()).run({tensor_of<float>({1}, {1}).expand({4}).contiguous()}).to_tensor().data_as<float>()[3], 6);
}

TEST_F(UserOperator, a_wrong_signature_is_refused_at_registration) {
  Library mine("mine");
  try {
    mine.def("wrong(Tensor self, int n) -> Tensor").composite([](const Tensor& self, double) -> Tensor { return self; });
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("parameter 1 ('n') must be int64_t"), std::string::npos) << e.what();
  }
  EXPECT_THROW(mine.def("scale(Tensor self, float factor=2.0) -> Tensor"), UserError);
  EXPECT_THROW(mine.def("broken(Tensor self"), UserError);
}

TEST_F(UserOperator, with_a_composite_body_is_taken_apart_though_it_came_after_the_table) {
  default_decompositions();
  Library late("late");
  late.def("thrice(Tensor self) -> Tensor").composite([](const Tensor& self) -> Tensor { return self + self + self; });
  const TracedGraph whole = make_fx([](const Tensor& t) { return call("late::thrice", {t}).to_tensor(); },
                                    {.mode = TracingMode::fake, .pre_dispatch = true})(x);
  EXPECT_EQ(whole.graph().find_nodes(NodeKind::call_function, Target(get_operator("late::thrice"))).size(), 1U);
  const TracedGraph apart = DecompositionInterpreter(whole, default_decompositions(), as_exports_do).decompose();
  EXPECT_EQ(apart.graph().find_nodes(NodeKind::call_function, Target(get_operator("late::thrice"))).size(), 0U);
  EXPECT_EQ(apart.graph().find_nodes(NodeKind::call_function, Target(get_operator("aten::add.Tensor"))).size(), 2U);
}

}  // namespace
}  // namespace calque::user_operator_test
