// Exports from examples of size 0 and 1: a dimension that was asked to be dynamic stays so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "export/export_support.h"

namespace calque::small_examples_test {
namespace {

using ::testing::HasSubstr;

DS dims(std::vector<std::pair<Value, DS>> entries) { return DS::dict(std::move(entries)); }

ExportedProgram exported(const TraceableFunction& f, const Values& args, const DS& shapes) {
  return export_program(f, args, {}, {.dynamic_shapes = shapes});
}

TEST(SmallExamples, the_program_does_not_depend_on_the_example) {
  // Asks about everything that a size of 1 answers in its own way: broadcasting, views, contiguity, attention masks.
  const auto f = traceable(
      [](const Tensor& x, const Tensor& mask) {
        const SymInt batch = x.sym_size(0), length = x.sym_size(1);
        const Tensor heads = x.view({batch, length, 2, 4}).transpose(1, 2);
        const Tensor allowed = mask.view({batch, 1, 1, length}).expand({batch, 1, length, length});
        const Tensor out = scaled_dot_product_attention(heads, heads, heads, allowed);
        return out.transpose(1, 2).reshape({batch, length, 8}) + x.mean({{1}}, true);
      },
      {"x", "mask"});
  const Dim batch("batch"), length("length");
  const DS shapes = DS::dict({{"x", dims({{0, batch}, {1, length}})}, {"mask", dims({{0, batch}, {1, length}})}});
  const auto inputs = [](int64_t b, int64_t l) { return Values{rand({b, l, 8}), ones({b, l}, DType::bool_)}; };
  const ExportedProgram usual = exported(f, inputs(3, 7), shapes);
  const std::pair<int64_t, int64_t> examples[] = {{1, 7}, {3, 1}, {1, 1}, {0, 7}, {0, 1}};
  for (const auto& [b, l] : examples) {
    SCOPED_TRACE(std::to_string(b) + " x " + std::to_string(l));
    const ExportedProgram p = exported(f, inputs(b, l), shapes);
    EXPECT_EQ(p.str(), usual.str());
    for (const auto& [rows, columns] : examples) {
      const Values other = inputs(rows, columns);
      const Tensor found = p.call(other).to_tensor(), eager = f.body(other).to_tensor();
      EXPECT_TRUE(allclose(found, eager)) << rows << " x " << columns;
    }
  }
}

TEST(SmallExamples, dims_without_a_name) {
  const auto f = traceable([](const Tensor& x, const Tensor& y) { return x + y; }, {"x", "y"});
  const DS any = dims({{0, Dim::DYNAMIC}});
  const ExportedProgram p = exported(f, {rand({1}), rand({1})}, DS::dict({{"x", any}, {"y", any}}));
  EXPECT_EQ(p.str(), exported(f, {rand({4}), rand({4})}, DS::dict({{"x", any}, {"y", any}})).str());
  EXPECT_EQ(p.call({rand({6}), rand({6})}).to_tensor().size(0), 6);
}

TEST(SmallExamples, derived_dims_follow_their_root) {
  const auto f =
      traceable([](const Tensor& x, const Tensor& y) { return x + y.slice(0, 1).slice(0, 0, {}, 2); }, {"x", "y"});
  const Dim b("b");
  const DS shapes = DS::dict({{"x", dims({{0, b}})}, {"y", dims({{0, 2 * b + 1}})}});
  const ExportedProgram p = exported(f, {rand({1}), rand({3})}, shapes);
  EXPECT_EQ(p.str(), exported(f, {rand({4}), rand({9})}, shapes).str());
  EXPECT_EQ(p.call({rand({5}), rand({11})}).to_tensor().size(0), 5);
  // The root may be no input's.
  const auto g = traceable([](const Tensor& y) { return y.slice(0, 1); }, {"y"});
  const DS alone = DS::dict({{"y", dims({{0, b + 1}})}});
  EXPECT_EQ(exported(g, {rand({1})}, alone).str(), exported(g, {rand({6})}, alone).str());
}

TEST(SmallExamples, strides_are_those_of_other_sizes) {
  const auto f = traceable([](const Tensor& x) { return x.transpose(0, 1).contiguous().view({-1}); }, {"x"});
  const DS shapes = DS::dict({{"x", dims({{0, Dim("batch")}})}});
  const ExportedProgram p = exported(f, {rand({1, 4})}, shapes);
  const Tensor x = rand({3, 4});
  EXPECT_TRUE(equal(p.call({x}).to_tensor(), x.t().contiguous().view({-1})));
}

TEST(SmallExamples, a_size_that_the_program_fixes_is_named_with_the_line) {
  const auto f = traceable([](const Tensor& x, const Tensor& y) { return cat({x, y}, 1); }, {"x", "y"});
  const std::string why = error_of([&] {
    exported(f, {rand({1, 3}), rand({1, 3})}, DS::dict({{"x", dims({{0, Dim("batch")}})}, {"y", {}}}));
  });
  EXPECT_THAT(why, HasSubstr("You marked batch as dynamic but your code specialized it to be a constant (1)"));
  EXPECT_THAT(why, HasSubstr("With other sizes (5 for batch): cat: "));
  EXPECT_THAT(why, HasSubstr("small_examples_test.cpp:"));
  EXPECT_THAT(why, HasSubstr("Suggested fixes:\n  batch = 1"));
}

TEST(SmallExamples, a_branch_that_the_example_does_not_take) {
  const auto f = traceable([](const Tensor& x) { return guard(x.sym_size(0) > 3) ? x.sin() : x.cos(); }, {"x"});
  for (const DS& how : {DS(Dim("batch")), DS(Dim::DYNAMIC)}) {
    const std::string why = error_of([&] { exported(f, {rand({1, 3})}, DS::dict({{"x", dims({{0, how}})}})); });
    EXPECT_THAT(why, HasSubstr("With other sizes (5 for "));
    EXPECT_THAT(why, HasSubstr("> 3 was needed (at small_examples_test.cpp:"));
  }
}

TEST(SmallExamples, other_errors_speak_of_the_sizes_that_were_given) {
  const auto f = traceable([](const Tensor& x) { return matmul(x, x); }, {"x"});
  const std::string why = error_of([&] { exported(f, {rand({1, 3})}, DS::dict({{"x", dims({{0, Dim("batch")}})}})); });
  EXPECT_THAT(why, HasSubstr("(1x3 and 1x3)"));
  EXPECT_THAT(error_of([&] {
                exported(f, {rand({1, 3})}, DS::dict({{"x", dims({{0, Dim("batch", 3)}})}}));
              }),
              HasSubstr("the example's size 1 of batch is not in range [3, inf]"));
}

}  // namespace
}  // namespace calque::small_examples_test
