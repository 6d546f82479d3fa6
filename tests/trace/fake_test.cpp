// Fake tensors: the rows of area `fake` (docs/conformance.md), and what is around them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/file/pickle.h"
#include "calque/graph/interpreter.h"
#include "calque/nn/module.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/unique.h"
#include "calque/op/aten/upsample.h"
#include "calque/op/aten/view_copies.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/op/library.h"
#include "calque/op/literal.h"
#include "calque/trace/fake.h"
#include "calque/trace/make_fx.h"
#include "support/conformance.h"
#include "support/error_support.h"

namespace calque::fake_test {
namespace {

using ::testing::HasSubstr;

using test::error_of;

const Device cuda("cuda:0");

TEST(Fake, T144_operators_on_converted_tensors_need_no_data) {
  const auto mode = FakeMode::make();
  const Tensor a = mode->from_tensor(zeros({2, 2}));
  const Tensor b = mode->from_tensor(zeros({4, 2, 2}));
  const Tensor c = a + b;
  EXPECT_TRUE(c.is_fake());
  EXPECT_EQ(str(c.sizes()), "[4, 2, 2]");
  EXPECT_EQ(c.device(), Device("cpu"));
  EXPECT_FALSE(c.storage()->has_data());
}

TEST(Fake, T145_factories_under_the_mode_are_fake_and_claim_their_device) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  const Tensor x = rand({4, 4});
  const Tensor y = ones({4, 4}, {}, {}, cuda);
  EXPECT_EQ(fake_mode_of(x), mode.get());
  EXPECT_EQ(fake_mode_of(y), mode.get());
  EXPECT_EQ(y.device(), cuda);
  EXPECT_EQ(fake_mode_of(x.relu()), mode.get());
}

TEST(Fake, T146_tensors_stay_fake_and_their_modes_after_it_is_left) {
  const auto mode = FakeMode::make();
  Tensor x;
  {
    const ModeScope scope(*mode);
    x = zeros({2, 3});
  }
  const Tensor y = (x * 2).sum({0});
  EXPECT_EQ(fake_mode_of(y), mode.get());
  EXPECT_EQ(str(y.sizes()), "[3]");
}

TEST(Fake, T147_a_real_tensor_must_be_converted_first) {
  const auto mode = FakeMode::make();
  const Tensor real = zeros({2});
  const ModeScope scope(*mode);
  EXPECT_THAT(error_of([&] { real.relu(); }), HasSubstr("Please convert all Tensors to FakeTensors first"));
  EXPECT_THAT(error_of([&] { real.relu(); }), HasSubstr("relu"));
}

TEST(Fake, T149_tensors_of_two_modes_do_not_mix) {
  const auto a = FakeMode::make();
  const auto b = FakeMode::make();
  const Tensor x = a->from_tensor(zeros({2}));
  const Tensor y = b->from_tensor(zeros({2}));
  EXPECT_THAT(error_of([&] { x + y; }), HasSubstr("mixing fake modes"));
}

TEST(Fake, T150_an_operator_without_a_shape_rule_is_named) {
  Library mine("fake_test");
  mine.def("only_cpu(Tensor self) -> Tensor")
      .own(
          [](const Tensor&) -> Tensor {
            throw UserError(ErrorKind::unsupported_operator, "registered without a shape rule");
          },
          [](const Tensor& self) { return self.clone(); });
  const auto mode = FakeMode::make();
  const Tensor x = mode->from_tensor(zeros({2}));
  EXPECT_THAT(error_of([&] { call("fake_test::only_cpu", {x}); }), HasSubstr("fake_test::only_cpu"));
}

TEST(Fake, T151_a_size_that_depends_on_data_needs_a_shape_environment) {
  const auto mode = FakeMode::make();
  const Tensor x = mode->from_tensor(zeros({10}));
  const std::string text = error_of([&] { x.nonzero(); });
  EXPECT_THAT(text, HasSubstr("nonzero"));
  EXPECT_THAT(text, HasSubstr("dynamic output shape"));
}

TEST(Fake, T152_scalars_of_a_fake_tensor_become_unbacked_symbols) {
  const auto mode = FakeMode::make({.env = ShapeEnv::make(), .static_shapes = true});
  const Tensor x = mode->from_tensor(zeros({10}, DType::int64));
  std::vector<SymInt> items;
  for (int64_t i = 0; i < 10; ++i) items.push_back(x.select(0, i).item().sym_int());
  for (const SymInt s : items) EXPECT_TRUE(s.is_symbolic());
  EXPECT_FALSE(identical(items[0], items[1]));
}

TEST(Fake, T153_prints_its_sizes_and_no_values) {
  const auto mode = FakeMode::make();
  EXPECT_EQ(mode->from_tensor(zeros({2, 2})).str(), "FakeTensor(..., size=(2, 2))");
  const ModeScope scope(*mode);
  EXPECT_EQ(zeros({2, 2}, {}, {}, cuda).str(), "FakeTensor(..., device='cuda:0', size=(2, 2))");
}

TEST(Fake, T154_conversion_keeps_requires_grad) {
  const auto mode = FakeMode::make();
  const Tensor x = zeros({2}).set_requires_grad();
  EXPECT_TRUE(mode->from_tensor(x).requires_grad());
  EXPECT_TRUE(mode->from_tensor(x).is_leaf());
  EXPECT_FALSE(mode->from_tensor(zeros({2})).requires_grad());
}

TEST(Fake, T155_a_view_of_a_parameter_is_no_parameter) {
  const auto mode = FakeMode::make();
  const Tensor parameter = zeros({4}).set_requires_grad();
  const Tensor fake = mode->from_tensor(parameter);
  EXPECT_TRUE(fake.is_leaf() && fake.requires_grad());
  const Tensor view = mode->from_tensor(parameter.view({2, 2}));
  EXPECT_FALSE(view.is_leaf());
}

TEST(Fake, T156_types_promote_as_real_ones_do) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  EXPECT_EQ((rand({2}) / ones({2}, DType::int64)).dtype(), DType::float32);
  EXPECT_EQ((zeros({2}, DType::int32) * 2.0).dtype(), DType::float32);
  const Tensor quotient = div(wrapped_scalar(3), wrapped_scalar(2));
  EXPECT_EQ(quotient.dim(), 0);
  EXPECT_TRUE(quotient.is_fake());
  EXPECT_EQ(quotient.item().to<double>(), 1.5);
}

TEST(Fake, T157_a_number_on_the_cpu_follows_the_other_device) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  const Tensor x = tensor(1.0) + rand({4, 4}, {}, {}, cuda);
  EXPECT_EQ(x.device(), cuda);
  EXPECT_EQ(str(x.sizes()), "[4, 4]");
}

TEST(Fake, T158_two_devices_do_not_mix) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  const Tensor c = rand({4}), g = rand({4}, {}, {}, cuda);
  EXPECT_THAT(error_of([&] { sin(c, out(g)); }), HasSubstr("two different devices"));
  EXPECT_THAT(error_of([&] { c.add_(g); }), HasSubstr("two different devices"));
}

TEST(Fake, T159_copies_keep_the_destinations_device) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  const Tensor c = rand({4, 4}), g = rand({4, 4}, {}, {}, cuda);
  EXPECT_EQ(c.copy_(g).device(), Device("cpu"));
  EXPECT_EQ(g.copy_(c).device(), cuda);
  const Tensor small = rand({2}, {}, {}, cuda);
  EXPECT_EQ(small.resize_as_(c).device(), cuda);
  EXPECT_EQ(str(small.sizes()), "[4, 4]");
  EXPECT_EQ(c.type_as(g).device(), cuda);
}

TEST(Fake, T160_indices_may_be_on_the_cpu) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  const Tensor g = rand({8, 3}, {}, {}, cuda);
  const Tensor i = zeros({5}, DType::int64);
  EXPECT_EQ(g[i].device(), cuda);
  EXPECT_EQ(slice_scatter(g, rand({2, 3}), 0, 0, 2).device(), cuda);
  EXPECT_EQ(index_put(g, {i}, rand({5, 3})).device(), cuda);
  EXPECT_EQ(call("aten::copy", {g, rand({8, 3})}).to_tensor().device(), cuda);
}

TEST(Fake, T161_devices_that_the_machine_does_not_have) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  EXPECT_EQ(empty({2}, {}, {}, cuda).device(), cuda);
  EXPECT_EQ(ones({2}, {}, {}, cuda).device(), cuda);
  EXPECT_EQ(zeros({2}, {}, {}, cuda).device(), cuda);
  EXPECT_EQ(rand({2}, {}, {}, cuda).device(), cuda);
  EXPECT_EQ(tensor({1, 2}).to(cuda, DType::int64).device(), cuda);
}

TEST(Fake, T162_like_constructors_follow_their_input_unless_told) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  const Tensor g = rand({2}, {}, {}, cuda);
  for (const Tensor& t :
       {ones_like(g), zeros_like(g), empty_like(g), full_like(g, 1), rand_like(g), randn_like(g), randint_like(g, 3)})
    EXPECT_EQ(t.device(), cuda);
  EXPECT_EQ(ones_like(g, {}, {}, Device("cpu")).device(), Device("cpu"));
}

TEST(Fake, T163_conversion_of_dtype_keeps_strides_as_eager_does) {
  const Tensor odd = zeros({24}).as_strided({4, 1, 3}, {3, 0, 1});
  const auto mode = FakeMode::make();
  EXPECT_EQ(str(mode->from_tensor(odd).to(DType::float64).strides()), str(odd.to(DType::float64).strides()));
}

TEST(Fake, T164_memory_format_propagates) {
  CALQUE_NOT_APPLICABLE("speaks of the gradient of a channels-last input; waits for autograd");
}

TEST(Fake, T165_faking_a_fake_tensor_again_keeps_its_symbols) {
  const auto env = ShapeEnv::make();
  const auto a = FakeMode::make({.env = env});
  const auto b = FakeMode::make({.env = env});
  const Tensor x = a->from_tensor(zeros({3, 4}), Source::local("x"));
  const Tensor y = b->from_tensor(x);
  EXPECT_TRUE(identical(x.sym_size(0), y.sym_size(0)));
  EXPECT_EQ(fake_mode_of(x), a.get());
  EXPECT_EQ(fake_mode_of(y), b.get());
}

TEST(Fake, T168_meta_tensors_are_allowed_unless_forbidden) {
  const auto mode = FakeMode::make();
  const Tensor meta = empty({3}, {}, {}, Device("meta"));
  {
    const ModeScope scope(*mode);
    EXPECT_EQ((meta + meta).device(), Device("meta"));
  }
  const auto strict = FakeMode::make({.allow_meta = false});
  const ModeScope scope(*strict);
  EXPECT_THAT(error_of([&] { meta + meta; }), HasSubstr("meta device"));
}

TEST(Fake, T169_a_literal_remembers_its_value) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  EXPECT_EQ(tensor(4.0).item().to<double>(), 4.0);
  EXPECT_TRUE(tensor(4.0).is_fake());
}

TEST(Fake, T170_writing_a_known_value_keeps_it_known) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  const Tensor x = tensor(4.0);
  const Tensor y = x.add_(1);
  EXPECT_EQ(x.item().to<double>(), 5.0);
  EXPECT_EQ(y.item().to<double>(), 5.0);
  EXPECT_TRUE(y.is_same(x));
}

TEST(Fake, T171_an_unknown_value_ends_it_for_all_that_share_the_storage) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  const Tensor x = tensor(4.0);
  const Tensor view = x.view({1});
  EXPECT_TRUE(fake_constant(view).defined());
  x.add_(rand({}));
  EXPECT_FALSE(fake_constant(x).defined());
  EXPECT_FALSE(fake_constant(view).defined());
  const Tensor y = tensor({4.0});
  y.resize_({4});
  EXPECT_FALSE(fake_constant(y).defined());
}

TEST(Fake, T172_a_slice_of_a_known_value_shares_both_storages) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  const Tensor x = tensor({4.0});
  const Tensor y = x.slice(0, 0, 1);
  EXPECT_EQ(x.storage().get(), y.storage().get());
  EXPECT_EQ(fake_constant(x).storage().get(), fake_constant(y).storage().get());
}

TEST(Fake, T173_an_expanded_value_is_not_known) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  const Tensor x = tensor({4.0});
  const Tensor y = x.expand({4});
  EXPECT_FALSE(fake_constant(y).defined());
}

TEST(Fake, T175_the_same_tensor_converts_to_the_same_tensor) {
  const auto mode = FakeMode::make();
  const Tensor x = zeros({2});
  const Tensor a = mode->from_tensor(x);
  EXPECT_TRUE(a.is_same(mode->from_tensor(x)));
}

TEST(Fake, T176_shared_storage_stays_shared) {
  const auto mode = FakeMode::make();
  const Tensor x = zeros({4});
  const Tensor a = mode->from_tensor(x);
  const Tensor b = mode->from_tensor(x.view({2, 2}));
  EXPECT_EQ(a.storage().get(), b.storage().get());
  EXPECT_NE(a.storage().get(), mode->from_tensor(zeros({4})).storage().get());
}

TEST(Fake, T177_nothing_is_kept_alive_by_the_mode) {
  std::weak_ptr<FakeMode> gone;
  {
    const auto mode = FakeMode::make();
    gone = mode;
    Tensor x = zeros({4});
    Tensor a = mode->from_tensor(x);
    Tensor view = a.view({2, 2}).detach();  // a view of the tensor itself would keep it, as PyTorch's _base does
    EXPECT_EQ(mode->memo_size(), 1U);
    a = Tensor();
    EXPECT_EQ(mode->memo_size(), 0U);
    EXPECT_EQ(view.storage().get(), mode->from_tensor(x).storage().get());  // the view keeps the fake storage
  }
  EXPECT_TRUE(gone.expired());
}

TEST(Fake, a_copy_of_a_fake_tensor_does_not_stand_for_it_when_it_is_gone) {
  const auto mode = FakeMode::make();
  const Tensor real = ones({2, 3});
  const auto traced =
      make_fx([](const Tensor& x) { return x + 1; }, {.mode = TracingMode::fake, .fake = mode})(mode->from_tensor(real));
  // The placeholder keeps a copy of what it was given, which is gone by now.
  EXPECT_EQ(mode->memo_size(), 0U);
  const Tensor again = mode->from_tensor(real);
  EXPECT_EQ(again.use_count(), 1U);
  EXPECT_EQ(str(again.sym_sizes()), "[2, 3]");
  EXPECT_TRUE(again.is_same(mode->from_tensor(real)));
  EXPECT_EQ(fake_mode_of(traced.graph().placeholders()[0]->meta.val.to_tensor()), mode.get());
}

TEST(Fake, T181_T183_the_cache_counts_hits_misses_and_what_it_must_not_keep) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  const Tensor x = rand({4, 3});
  const FakeCacheInfo before = mode->cache_info();
  const Tensor a = x + x;
  const Tensor b = x + x;
  const FakeCacheInfo after = mode->cache_info();
  EXPECT_EQ(after.misses - before.misses, 1U);
  EXPECT_EQ(after.hits - before.hits, 1U);
  EXPECT_EQ(str(a.sizes()), str(b.sizes()));
  EXPECT_EQ(a.dtype(), b.dtype());
  x.unsqueeze_(0);
  EXPECT_EQ(mode->cache_info().bypasses - after.bypasses, 1U);
}

TEST(Fake, T184_a_cached_answer_is_the_argument_or_its_view_where_it_was) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  for (int i = 0; i < 2; ++i) {
    const Tensor x = rand({4, 3});
    EXPECT_TRUE(x.add_(1).is_same(x));
    const Tensor t = x.transpose(0, 1);
    EXPECT_EQ(t.storage().get(), x.storage().get());
    EXPECT_EQ(str(t.strides()), "[1, 3]");
    const auto [values, indices] = x.max(1);
    EXPECT_EQ(str(values.sizes()), "[4]");
    EXPECT_EQ(indices.dtype(), DType::int64);
  }
  EXPECT_GE(mode->cache_info().hits, 3U);
}

TEST(Fake, strides_of_a_symbolic_input_follow_its_sizes) {
  const auto env = ShapeEnv::make();
  const auto mode = FakeMode::make({.env = env});
  EXPECT_EQ(str(mode->from_tensor(zeros({3, 4, 5}), Source::local("x")).sym_strides()), "[s1*s2, s2, 1]");
  const Tensor t = mode->from_tensor(zeros({6, 7}).transpose(0, 1), Source::local("t"));
  EXPECT_EQ(str(t.sym_sizes()), "[s3, s4]");
  EXPECT_EQ(str(t.sym_strides()), "[1, s3]");
}

TEST(Fake, sizes_that_values_give) {
  const auto env = ShapeEnv::make();
  const auto mode = FakeMode::make({.env = env, .static_shapes = true});
  // A tensor without elements needs no symbol for how many of them are not zero: there is none.
  EXPECT_EQ(str(nonzero(mode->from_tensor(zeros({5, 0}))).sym_sizes()), "[0, 2]");
  EXPECT_EQ(str(argwhere(mode->from_tensor(zeros({0}))).sym_sizes()), "[0, 1]");
  // How many values differ and how long the list of their counts is are two symbols.
  const Tensor x = mode->from_tensor(zeros({5}, DType::int64));
  const SymInt differing = std::get<0>(_unique2(x)).sym_size(0), counted = bincount(x, {}, 3).sym_size(0);
  EXPECT_NE(differing.str(), counted.str());
  EXPECT_EQ(env->range(counted).lower, 3);
}

TEST(Fake, sizes_that_factors_give_stay_symbolic) {
  const auto f = [](const Tensor& x) { return upsample_nearest2d(x, {}, {{1.5, 2.0}}); };
  const TracedGraph traced = make_fx(f, {.mode = TracingMode::symbolic})(rand({1, 2, 5, 6}));
  EXPECT_EQ(traced.env->guards().size(), 0U);
  const Tensor other = rand({1, 2, 7, 9});
  EXPECT_TRUE(equal(Interpreter(traced.graph()).run({other}).to_tensor(), f(other)));
}

TEST(Fake, a_traced_one_hot_refuses_what_is_no_class) {
  const auto f = [](const Tensor& x) { return one_hot(x, 4); };
  const TracedGraph traced = make_fx(f, {.mode = TracingMode::fake})(tensor({1, 2, 3}));
  const auto run = [&](const Tensor& x) { return Interpreter(traced.graph()).run({x}).to_tensor(); };
  EXPECT_TRUE(equal(run(tensor({0, 3, 1})), f(tensor({0, 3, 1}))));
  EXPECT_THAT(error_of([&] {
                run(tensor({0, 4, 1}));
              }),
              HasSubstr("one_hot: Class values must be smaller than num_classes."));
  EXPECT_THAT(error_of([&] { run(tensor({0, -1, 1})); }), HasSubstr("one_hot: Class values must be non-negative."));
}

TEST(Fake, seventy_billion_parameters_cost_next_to_nothing) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  std::vector<Tensor> weights;
  int64_t parameters = 0;
  for (int layer = 0; layer < 80; ++layer)
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {8192, 8192}, {1024, 8192}, {1024, 8192}, {8192, 8192}, {28672, 8192}, {28672, 8192}, {8192, 28672}}) {
      weights.push_back(empty({rows, columns}, DType::bfloat16));
      parameters += rows * columns;
    }
  EXPECT_GT(parameters, 68'000'000'000);
  for (const Tensor& w : weights) EXPECT_FALSE(w.storage()->has_data());
}

TEST(Fake, a_device_without_a_number_is_the_first_one) {
  const auto mode = FakeMode::make();
  const ModeScope scope(*mode);
  const Tensor any = empty({3}, {}, {}, Device("cuda")), first = empty({3}, {}, {}, Device("cuda:0"));
  EXPECT_EQ(any.device().str(), "cuda:0");
  EXPECT_EQ((any + first).device().str(), "cuda:0");
  EXPECT_EQ(mode->make_fake({{3}, {1}, DType::float32, Device("cuda"), false}).device().str(), "cuda:0");
  EXPECT_EQ(empty({3}, {}, {}, Device("meta")).device().str(), "meta");
  EXPECT_THAT(error_of([&] { add(first, empty({3}, {}, {}, Device("cuda:1"))); }), HasSubstr("two different devices"));
}

TEST(Fake, a_checkpoint_read_under_the_mode_has_its_tensors) {
  const Tensor whole = rand({4, 3});
  const std::string file = write_pickle(dict({{"w", whole}, {"row", list({whole.select(0, 1)})}, {"step", 7}}));
  const auto bytes = std::as_bytes(std::span(file));
  const auto env = ShapeEnv::make();
  for (const auto& mode : {FakeMode::make(), FakeMode::make({.env = env})}) {
    const ModeScope scope(*mode);
    const Value content = read_pickle(bytes, nullptr, "memory");
    const Tensor w = content.to_dict().find("w")->to_tensor();
    const Tensor row = content.to_dict().find("row")->to_items()[0].to_tensor();
    EXPECT_EQ(fake_mode_of(w), mode.get());
    EXPECT_EQ(str(w.sizes()), "[4, 3]");
    EXPECT_EQ(str(row.sizes()), "[3]");
    EXPECT_TRUE(row.storage().get() == w.storage().get());
    EXPECT_EQ(content.to_dict().find("step")->to_int(), 7);
  }
  EXPECT_EQ(fake_mode_of(read_pickle(bytes, nullptr, "memory").to_dict().find("w")->to_tensor()), nullptr);
}

}  // namespace
}  // namespace calque::fake_test
