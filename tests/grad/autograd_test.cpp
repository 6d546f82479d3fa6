// The engine: passes, leaves, hooks, views, writes, functions of the user's. Expected numbers are derivatives worked out by hand, or
// PyTorch 2.13's, as each test says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "calque/grad/autograd.h"
#include "calque/op/library.h"
#include "calque/op/ops.h"

namespace calque::autograd_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor leaf(std::initializer_list<double> values) {
  return tensor_of<double>(ListRef<double>(values), {static_cast<int64_t>(values.size())}).set_requires_grad();
}
std::vector<double> values_of(const Tensor& t) {
  const Tensor c = t.detach().contiguous();
  return {c.data_as<double>(), c.data_as<double>() + c.numel()};
}
std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

// ---- passes ---------------------------------------------------------------------------------------------------------

TEST(Backward, adds_into_the_leaves) {
  const Tensor x = leaf({1, 2, 3});
  backward((x * x).sum());
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(2, 4, 6));
  backward((x * 10).sum());
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(12, 14, 16));
}

// PyTorch's texts.
TEST(Backward, tensors_say_what_made_them) {
  const Tensor x = leaf({1, 2});
  EXPECT_EQ((x * 2).str(), "tensor([2., 4.], dtype=torch.float64, grad_fn=<MulBackward0>)");
  EXPECT_EQ(x.str(), "tensor([1., 2.], dtype=torch.float64, requires_grad=True)");
  EXPECT_EQ((x * 2).unsqueeze(1).str(), "tensor([[2.],\n        [4.]], dtype=torch.float64, grad_fn=<UnsqueezeBackward0>)");
  EXPECT_EQ((x * 2).detach().str(), "tensor([2., 4.], dtype=torch.float64)");
}

TEST(Backward, sums_over_all_ways) {
  const Tensor x = leaf({2});
  const Tensor y = x * x;
  backward(y * y + y * 3 + x);  // x^4 + 3 x^2 + x
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(4 * 8 + 6 * 2 + 1));
}

TEST(Backward, sums_what_was_broadcast) {
  const Tensor x = leaf({1, 2});
  const Tensor rows = ones({3, 2}, DType::float64);
  backward((x * rows).sum());
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(3, 3));
}

TEST(Backward, takes_gradients_of_outputs_that_are_no_scalars) {
  const Tensor x = leaf({1, 2});
  backward(x * x, {.gradients = {tensor_of<double>({10.0, 100.0}, {2})}});
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(20, 400));
}

TEST(Backward, for_some_leaves_leaves_the_others_alone) {
  const Tensor x = leaf({3}), y = leaf({5});
  backward(x * y, {.inputs = {x}});
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(5));
  EXPECT_FALSE(grad_of(y).defined());
}

TEST(Grad, gives_gradients_of_tensors_on_the_way) {
  const Tensor x = leaf({3});
  const Tensor y = x * x;
  const TensorVector g = grad({y * y}, {y, x});
  EXPECT_THAT(values_of(g[0]), ElementsAre(18));
  EXPECT_THAT(values_of(g[1]), ElementsAre(108));
  EXPECT_FALSE(grad_of(x).defined());
}

TEST(Grad, of_a_gradient) {
  const Tensor x = leaf({2});
  Tensor y = x * x * x;
  for (const double expected : {12.0, 12.0, 6.0}) {
    y = grad({y}, {x}, {.create_graph = true})[0];
    EXPECT_THAT(values_of(y), ElementsAre(expected));
  }
}

TEST(Grad, says_that_an_input_is_unused) {
  const Tensor x = leaf({1}), y = leaf({1});
  EXPECT_THAT(error_of([&] { (void)grad({x * 2}, {x, y}); }), HasSubstr("not have been used in the graph (input 1)"));
  EXPECT_FALSE(grad({x * 2}, {x, y}, {.allow_unused = true})[1].defined());
  EXPECT_THAT(values_of(grad({x * 2}, {x, y}, {.materialize_grads = true})[1]), ElementsAre(0));
}

TEST(Backward, wants_a_scalar_or_a_gradient) {
  const Tensor x = leaf({1, 2});
  EXPECT_THAT(error_of([&] { backward(x * 2); }), HasSubstr("grad can be implicitly created only for scalar outputs"));
  EXPECT_THAT(error_of([&] { backward(x * 2, {.gradients = {ones({3}, DType::float64)}}); }),
              HasSubstr("has a shape of [3] and output 0 has a shape of [2]"));
  EXPECT_THAT(error_of([&] { backward(ones({1})); }), HasSubstr("does not require grad and does not have a grad_fn"));
}

TEST(Backward, a_second_time_needs_the_graph_retained) {
  const Tensor x = leaf({2});
  const Tensor y = x * x;
  backward(y, {.retain_graph = true});
  backward(y);
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(8));
  EXPECT_THAT(error_of([&] { backward(y); }), HasSubstr("Trying to backward through the graph a second time"));
}

TEST(Backward, sees_that_a_kept_tensor_was_written) {
  const Tensor x = leaf({2});
  const Tensor y = x * 1;
  const Tensor z = y * y;
  y.add_(1);
  const std::string error = error_of([&] { backward(z); });
  EXPECT_THAT(error, HasSubstr("modified by an in-place operation"));
  EXPECT_THAT(error, HasSubstr("AddBackward"));
  EXPECT_THAT(error, HasSubstr("MulBackward"));
  EXPECT_THAT(error, HasSubstr("autograd_test.cpp"));
}

TEST(Backward, goes_through_a_hundred_thousand_nodes) {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = y + x;
  backward(y);
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(100001));
  // And what was never walked is given back without recursion.
  Tensor z = x;
  for (int i = 0; i < 100000; ++i) z = z * z;
}

TEST(Backward, runs_on_several_threads_over_one_leaf) {
  const Tensor x = leaf({1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) backward(x * x);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(1600));
}

TEST(Backward, frees_what_was_kept_as_it_goes) {
  const Tensor x = leaf({1});
  Tensor middle = x * 2;
  const Tensor y = middle * middle;
  const Ref<Storage> storage = middle.storage();
  middle = Tensor();
  EXPECT_GT(storage.use_count(), 1U);
  backward(y);
  EXPECT_EQ(storage.use_count(), 1U);
}

// ---- who wants a gradient -------------------------------------------------------------------------------------------

TEST(RequiresGrad, goes_from_arguments_to_results) {
  const Tensor x = leaf({1});
  EXPECT_TRUE((x * 2).requires_grad());
  EXPECT_FALSE((x * 2).is_leaf());
  EXPECT_FALSE(x.detach().requires_grad());
  EXPECT_FALSE((x > 0).requires_grad());
  const NoGradGuard off;
  EXPECT_FALSE((x * 2).requires_grad());
  const EnableGradGuard on;
  EXPECT_TRUE((x * 2).requires_grad());
}

TEST(RequiresGrad, a_result_knows_its_node) {
  const Tensor x = leaf({1});
  EXPECT_EQ(grad_fn(x * x)->name(), "MulBackward0");
  EXPECT_FALSE(grad_fn(x));
}

// As PyTorch 2.13 has it.
TEST(RequiresGrad, a_view_of_a_leaf_wants_one_also_without_grad_mode) {
  const Tensor x = leaf({1, 2});
  const NoGradGuard off;
  const Tensor v = x.select(0, 0);
  EXPECT_TRUE(v.requires_grad());
  EXPECT_TRUE(v.is_leaf());
  EXPECT_FALSE(grad_fn(v));
}

TEST(RequiresGrad, is_refused_where_there_is_no_gradient) {
  EXPECT_THAT(error_of([] { ones({1}, DType::int64).set_requires_grad(); }), HasSubstr("floating point"));
}

// ---- writes ---------------------------------------------------------------------------------------------------------

TEST(Writes, change_the_history) {
  const Tensor x = leaf({3});
  const Tensor y = x * 2;
  y.mul_(x);  // 2 x^2
  backward(y);
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(12));
}

TEST(Writes, of_leaves_are_refused) {
  const Tensor x = leaf({3});
  EXPECT_THAT(error_of([&] { x.add_(1); }),
              HasSubstr("a leaf tensor that requires grad is being used in an in-place operation"));
  EXPECT_THAT(error_of([&] { x.select(0, 0).add_(1); }), HasSubstr("a view of a leaf tensor that requires grad"));
  const NoGradGuard off;
  x.add_(1);
  EXPECT_THAT(values_of(x), ElementsAre(4));
}

TEST(Writes, into_a_view_reach_its_base_and_the_other_views) {
  const Tensor w = leaf({5});
  const Tensor x = zeros({3}, DType::float64);
  const Tensor first = x.select(0, 0), second = x.select(0, 1);
  first.copy_(w.select(0, 0));
  EXPECT_TRUE(x.requires_grad());
  EXPECT_EQ(grad_fn(x)->name(), "CopySlices");
  EXPECT_TRUE(second.requires_grad());
  EXPECT_EQ(grad_fn(second)->name(), "AsStridedBackward0");
  EXPECT_EQ(grad_fn(first)->name(), "AsStridedBackward0");
  backward((x * tensor_of<double>({7.0, 8.0, 9.0}, {3})).sum());
  EXPECT_THAT(values_of(grad_of(w)), ElementsAre(7));
}

TEST(Writes, into_a_view_keep_the_gradient_elsewhere) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * 1;
  y.select(0, 1).mul_(10);
  backward((y * y).sum());
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(2, 400, 6));
}

TEST(Writes, into_views_that_cannot_say_where_they_come_from_are_refused) {
  const Tensor w = leaf({1});
  const Tensor base = ones({2}, DType::float64);
  Tensor v;
  {
    const NoGradGuard off;
    v = base.select(0, 0);
  }
  EXPECT_THAT(error_of([&] { v.mul_(w.select(0, 0)); }), HasSubstr("a view was created in no_grad mode"));
  const Tensor parts = base.unbind(0)[0];
  EXPECT_THAT(error_of([&] { parts.mul_(w.select(0, 0)); }), HasSubstr("a function that returns multiple views"));
}

TEST(Writes, with_out_are_refused) {
  const Tensor x = leaf({1});
  const Tensor y = zeros({1}, DType::float64);
  EXPECT_THAT(error_of([&] { mul(x, x, out(y)); }), HasSubstr("out=... arguments don't support automatic differentiation"));
}

// ---- hooks ----------------------------------------------------------------------------------------------------------

TEST(Hooks, of_tensors_see_and_replace_gradients) {
  const Tensor x = leaf({1});
  const Tensor y = x * 3;
  std::vector<double> seen;
  GradHookHandle on_y = register_hook(y, [&](const Tensor& g) {
    seen.push_back(g.item<double>());
    return g * 2;
  });
  register_hook(x, [&](const Tensor& g) {
    seen.push_back(g.item<double>());
    return Tensor();
  });
  backward(y * 5, {.retain_graph = true});
  EXPECT_THAT(seen, ElementsAre(5, 30));
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(30));
  on_y.remove();
  seen.clear();
  backward(y * 5);
  EXPECT_THAT(seen, ElementsAre(15));
}

TEST(Hooks, of_nodes_run_before_and_after) {
  const Tensor x = leaf({1});
  const Tensor y = x * 3;
  std::vector<std::string> order;
  register_prehook(grad_fn(y), [&](const TensorVector& g) {
    order.push_back("before " + std::to_string(static_cast<int>(g[0].item<double>())));
    return TensorVector{g[0] * 2};
  });
  register_hook(grad_fn(y), [&](const TensorVector& in, const TensorVector& out) {
    order.push_back("after " + std::to_string(static_cast<int>(in[0].item<double>())) + " " +
                    std::to_string(static_cast<int>(out[0].item<double>())));
    return TensorVector{};
  });
  register_post_accumulate_grad_hook(
      x, [&](const Tensor& t) { order.push_back("leaf " + std::to_string(static_cast<int>(grad_of(t).item<double>()))); });
  backward(y);
  EXPECT_THAT(order, ElementsAre("before 1", "after 6 2", "leaf 6"));
}

TEST(Hooks, results_may_retain_their_gradient) {
  const Tensor x = leaf({4});
  const Tensor y = x * x;
  retain_grad(y);
  backward(y * y);
  EXPECT_THAT(values_of(grad_of(y)), ElementsAre(32));
}

TEST(Hooks, kept_tensors_wait_in_files) {
  const auto folder = std::filesystem::temp_directory_path() / ("calque-kept-" + std::to_string(getpid()));
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor w = leaf({10, 20});
  Tensor y;
  {
    const SavedTensorHooksScope scope(save_on_disk(folder.string()));
    const Tensor across = x.view({2, 2}).t();  // kept with its strides
    y = (across * across * w.expand({2, 2})).sum();
  }
  EXPECT_EQ(files(), 4);  // both factors of both products
  backward(y, {.retain_graph = true});
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(20, 40, 120, 160));
  EXPECT_THAT(values_of(grad_of(w)), ElementsAre(1 + 4, 9 + 16));
  EXPECT_EQ(files(), 4);
  backward(y);
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(40, 80, 240, 320));
  EXPECT_EQ(files(), 0);
  std::filesystem::remove_all(folder);
}

TEST(Hooks, of_kept_tensors_pack_and_unpack) {
  struct Doubled : SavedTensorHooks {
    int packed = 0;
    std::shared_ptr<void> pack(const Tensor& t) override {
      ++packed;
      return std::make_shared<Tensor>(t.detach() * 2);
    }
    Tensor unpack(const std::shared_ptr<void>& p) override { return *std::static_pointer_cast<Tensor>(p); }
  };
  const auto hooks = std::make_shared<Doubled>();
  const Tensor x = leaf({3});
  Tensor y;
  {
    const SavedTensorHooksScope scope(hooks);
    y = x * x;
  }
  EXPECT_EQ(hooks->packed, 2);
  backward(y);
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(12));
}

// ---- functions of the user's ------------------------------------------------------------------------------------------

struct Cube : GradFunction {
  TensorVector forward(const TensorVector& x) override {
    save_for_backward({x[0]});
    return {x[0] * x[0] * x[0]};
  }
  TensorVector backward(const TensorVector& g) override {
    const Tensor x = saved_tensors()[0];
    return {needs_input_grad(0) ? g[0] * 3 * x * x : Tensor()};
  }
};

TEST(Functions, go_with_a_tensor_that_was_written_with_what_it_gave) {
  const auto function = std::make_shared<Cube>();
  const auto write = [&](std::shared_ptr<Cube> f) {
    const Tensor y = apply_function(f, {leaf({1, 2})})[0];
    y.true_divide_(leaf({3, 4}));  // keeps y, which is then what was made of it
    y.view({2, 1}).true_divide_(leaf({5}));
  };
  write(function);
  EXPECT_EQ(function.use_count(), 1);
}

TEST(Functions, have_the_gradient_that_they_say) {
  const Tensor x = leaf({2});
  const Tensor y = apply_function(std::make_shared<Cube>(), {x})[0];
  EXPECT_EQ(grad_fn(y)->name(), "FunctionBackward");
  const Tensor first = grad({y}, {x}, {.create_graph = true})[0];
  EXPECT_THAT(values_of(first), ElementsAre(12));
  EXPECT_THAT(values_of(grad({first}, {x})[0]), ElementsAre(12));
}

TEST(Functions, say_how_many_gradients_they_should_have_given) {
  struct Wrong : Cube {
    TensorVector backward(const TensorVector&) override { return {}; }
  };
  const Tensor x = leaf({2});
  const Tensor y = apply_function(std::make_shared<Wrong>(), {x})[0];
  EXPECT_THAT(error_of([&] { backward(y); }), HasSubstr("incorrect number of gradients (expected 1, got 0)"));
}

TEST(Functions, may_write_their_input) {
  struct Twice : GradFunction {
    TensorVector forward(const TensorVector& x) override {
      x[0].mul_(2);
      mark_dirty({x[0]});
      return {x[0]};
    }
    TensorVector backward(const TensorVector& g) override { return {g[0] * 2}; }
  };
  const Tensor x = leaf({2});
  const Tensor y = x * 3;
  const Tensor z = apply_function(std::make_shared<Twice>(), {y})[0];
  EXPECT_TRUE(z.is_same(y));
  backward(y * y);  // (6 x)^2
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(144));
}

TEST(Operators, of_users_have_gradients_and_those_without_say_so) {
  Library mine("autograd_test");
  mine.def("triple(Tensor self) -> Tensor")
      .compute([](const Tensor& self) { return self.meta(); },
               [](const Tensor& self, const Tensor& out) { mul(self, 3, calque::out(out)); })
      .gradient("self", "", [](const Gradients& g) { return g.grad() * 3; });
  mine.def("mute(Tensor self) -> Tensor")
      .compute([](const Tensor& self) { return self.meta(); },
               [](const Tensor& self, const Tensor& out) { mul(self, 3, calque::out(out)); });
  const Tensor x = leaf({2});
  const Tensor y = call("autograd_test::triple", {x}).to_tensor();
  EXPECT_EQ(grad_fn(y)->name(), "TripleBackward0");
  backward(y * y);
  EXPECT_THAT(values_of(grad_of(x)), ElementsAre(36));
  const Tensor z = call("autograd_test::mute", {x}).to_tensor();
  EXPECT_TRUE(z.requires_grad());
  EXPECT_THAT(error_of([&] { backward(z); }), HasSubstr("the gradient of autograd_test::mute"));
}

TEST(Anomaly, names_the_line_and_finds_nan) {
  const Tensor x = leaf({-1});
  const DetectAnomaly scope;
  const Tensor y = (x * 0).sqrt();
  EXPECT_THAT(error_of([&] { backward(y); }), HasSubstr("returned nan values"));
}

}  // namespace
}  // namespace calque::autograd_test
