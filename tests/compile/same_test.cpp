// same() on nested values; what it says of two tensors is tested in tests/file/compare_test.cpp.
#include "calque/compile/same.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "calque/base/error.h"
#include "calque/op/make.h"
#include "calque/op/ops.h"

namespace calque {
namespace {

using ::testing::HasSubstr;

Value output(const std::string& type, std::vector<std::string> fields, Values items) {
  return StructValue{type, "", std::move(fields), std::move(items)};
}

std::string refusal(const Value& a, const Value& b, const Value& reference = {}) {
  try {
    same(a, b, reference);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Same, walks_nested_values_and_names_the_first_difference) {
  const Tensor x = tensor({1.0, 2.0}), y = tensor({1.0, 2.5});
  EXPECT_TRUE(same(list({x, tuple({x, "text", 3, true, Value()})}), tuple({x, list({x, "text", 3, true, Value()})})));
  const SameResult r =
      same(list({x, dict({{"b", x}, {"a", tuple({x, x})}})}), list({x, dict({{"a", tuple({x, y})}, {"b", y}})}));
  EXPECT_FALSE(r);
  EXPECT_EQ(r.path, "[1]['a'][1]");  // keys in sorted order
  EXPECT_THAT(r.reason, HasSubstr("1 of 2 elements are outside tolerance 0.0001"));
  EXPECT_EQ(r.tensor.worst, 1);
  EXPECT_EQ(same(x, y).path, "");
}

TEST(Same, lists_of_other_lengths_differ) { EXPECT_EQ(same(list({1, 2}), list({1})).reason, "length 2 against 1"); }

TEST(Same, what_is_no_number_has_to_be_equal) {
  EXPECT_EQ(same(list({"a"}), list({"b"})).reason, "'a' against 'b'");
  EXPECT_FALSE(same(3, 4));
  EXPECT_FALSE(same(Value(), 1));
  SameOptions ignore;
  ignore.ignore_non_float = true;
  EXPECT_TRUE(same(3, 4, {}, ignore));
  EXPECT_TRUE(same("a", "b", {}, ignore));
}

TEST(Same, floats_are_compared_as_tensors) {
  EXPECT_TRUE(same(1.0, 1.00001));
  EXPECT_FALSE(same(1.0, 1.01));
  EXPECT_TRUE(same(1.0, tensor(1.0f)));
}

TEST(Same, the_reference_is_walked_beside_them) {
  const Tensor exact = tensor(std::vector<double>(100, 1.0)), a = full({100}, 1.001), b = full({100}, 1.0015);
  EXPECT_FALSE(same(list({a}), list({b})));
  EXPECT_TRUE(same(list({a}), list({b}), list({exact})));  // less than three times a's error, as it is small
  EXPECT_TRUE(same(dict({{"k", a}}), dict({{"k", b}}), dict({{"k", exact}})));
  EXPECT_THAT(refusal(list({a}), list({b}), list({exact, exact})), HasSubstr("expected a reference of 1 items"));
  EXPECT_THAT(refusal(dict({{"k", a}}), dict({{"k", b}}), dict({{"l", exact}})), HasSubstr("a reference with the key 'k'"));
}

TEST(Same, of_answers_to_questions_the_loss_alone_counts) {
  const std::string type = "transformers.modeling_outputs.QuestionAnsweringModelOutput";
  const std::vector<std::string> fields = {"loss", "start_logits", "end_logits"};
  const Tensor loss = tensor(0.5), x = tensor({1.0}), y = tensor({2.0});
  EXPECT_TRUE(same(output(type, fields, {loss, x, x}), output(type, fields, {loss, y, y})));
  EXPECT_EQ(same(output(type, fields, {Value(), x, x}), output(type, fields, {Value(), x, y})).path, ".end_logits");
  EXPECT_EQ(
      same(output("MaskedLMOutput", {"loss", "logits"}, {loss, x}), output("MaskedLMOutput", {"loss", "logits"}, {loss, y}))
          .path,
      ".logits");
}

TEST(Same, other_structures_are_refused_with_their_place) {
  const Tensor x = tensor({1.0});
  EXPECT_THAT(refusal(list({x}), x), HasSubstr("expected a list or a tuple, as the first has it, found a Tensor"));
  EXPECT_THAT(refusal(list({dict({{"a", x}})}), list({dict({{"b", x}})})), HasSubstr("at [0]: expected the key 'a'"));
  EXPECT_THAT(refusal(dict({{"a", x}}), dict({{"a", x}, {"b", x}})), HasSubstr("expected the keys of"));
  EXPECT_THAT(refusal(x, "text"), HasSubstr("expected a tensor or a number"));
  EXPECT_THAT(refusal(output("A", {"a"}, {x}), output("B", {"a"}, {x})), HasSubstr("expected a A, found a B"));
}

TEST(Same, nan_and_infinity_in_the_middle_of_a_tree) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Value a = list({tensor({1.0, nan})});
  EXPECT_FALSE(same(a, a));
  SameOptions options;
  options.equal_nan = true;
  EXPECT_TRUE(same(a, a, {}, options));
}

}  // namespace
}  // namespace calque
