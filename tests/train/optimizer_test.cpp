// What optimizers, schedules and clipping promise beside their numbers, which tests/peers/optim.py holds against PyTorch's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "calque/file/pickle.h"
#include "calque/grad/autograd.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/make.h"
#include "calque/tensor/generator.h"
#include "calque/train/clip_grad.h"
#include "calque/train/schedule.h"
#include "support/error_support.h"
#include "support/folder_support.h"

namespace calque::optimizer_test {
namespace {

Tensor leaf(const Tensor& values) { return values.clone().set_requires_grad(); }

std::vector<float> floats(const Tensor& t) {
  const Tensor flat = t.detach().clone(MemoryFormat::contiguous);
  return {flat.data_as<float>(), flat.data_as<float>() + flat.numel()};
}

TEST(Sgd, moves_against_the_gradient) {
  const Tensor w = leaf(tensor({1.0F, 2.0F}));
  SGD optimizer({w}, {.lr = 0.5});
  set_grad(w, tensor({1.0F, -2.0F}));
  optimizer.step();
  EXPECT_THAT(floats(w), testing::ElementsAre(0.5F, 3.0F));
}

TEST(Sgd, momentum_remembers_the_first_gradient_whole) {
  const Tensor w = leaf(tensor({0.0F}));
  SGD optimizer({w}, {.lr = 1, .momentum = 0.5, .dampening = 0.5});
  set_grad(w, tensor({4.0F}));
  optimizer.step();
  optimizer.step();
  EXPECT_THAT(floats(w), testing::ElementsAre(-8.0F));  // 4, then 4 * 0.5 + 4 * 0.5
}

TEST(Optimizers, leave_parameters_without_a_gradient_alone) {
  const Tensor a = leaf(tensor({1.0F})), b = leaf(tensor({1.0F}));
  AdamW optimizer({a, b}, {.lr = 0.1});
  set_grad(a, tensor({1.0F}));
  optimizer.step();
  EXPECT_NE(floats(a)[0], 1.0F);
  EXPECT_EQ(floats(b)[0], 1.0F);
  EXPECT_TRUE(optimizer.state(b).empty());
}

TEST(Optimizers, advance_the_version_of_what_they_write) {
  const Tensor w = leaf(tensor({1.0F}));
  Adam optimizer({w});
  set_grad(w, tensor({1.0F}));
  const uint32_t before = w.version();
  optimizer.step();
  EXPECT_GT(w.version(), before);
}

TEST(Optimizers, groups_have_options_of_their_own) {
  const Tensor a = leaf(tensor({0.0F})), b = leaf(tensor({0.0F}));
  SGD optimizer(std::vector<ParamGroup>{{{a}, {}, {}}, {{b}, {{"lr", 0.25}}, {}}}, {.lr = 1});
  for (const Tensor& p : {a, b}) set_grad(p, tensor({1.0F}));
  optimizer.step();
  EXPECT_EQ(floats(a)[0], -1.0F);
  EXPECT_EQ(floats(b)[0], -0.25F);
}

TEST(Optimizers, a_closure_gives_gradients_and_the_loss) {
  const Tensor w = leaf(tensor({3.0F}));
  SGD optimizer({w}, {.lr = 1});
  const NoGradGuard off;
  const Tensor loss = optimizer.step([&] {
    EXPECT_TRUE(grad_enabled());
    set_grad(w, tensor({1.0F}));
    return tensor({7.0F});
  });
  EXPECT_EQ(floats(loss)[0], 7.0F);
  EXPECT_EQ(floats(w)[0], 2.0F);
}

TEST(Optimizers, zero_grad_takes_gradients_away_or_fills_them_with_zeros) {
  const Tensor w = leaf(tensor({3.0F}));
  SGD optimizer({w});
  set_grad(w, tensor({1.0F}));
  optimizer.zero_grad(false);
  EXPECT_EQ(floats(grad_of(w))[0], 0.0F);
  optimizer.zero_grad();
  EXPECT_FALSE(grad_of(w).defined());
}

// One pass over all parameters: where a thread's part begins does not show.
TEST(Optimizers, any_number_of_threads_gives_the_same_bits) {
  manual_seed(1);
  std::vector<Tensor> starts, grads;
  for (const int64_t n : {3, 70001, 17, 40000}) {
    starts.push_back(randn({n}));
    grads.push_back(randn({n}));
  }
  const auto run = [&](int threads) {
    const int before = num_threads();
    set_num_threads(threads);
    std::vector<Tensor> params;
    for (const Tensor& start : starts) params.push_back(leaf(start));
    AdamW optimizer(params, {.lr = 0.1, .amsgrad = true});
    for (int i = 0; i < 3; ++i) {
      for (size_t p = 0; p < params.size(); ++p) set_grad(params[p], grads[p].clone());
      optimizer.step();
    }
    set_num_threads(before);
    std::vector<float> out;
    for (const Tensor& p : params)
      for (const float v : floats(p)) out.push_back(v);
    return out;
  };
  const std::vector<float> one = run(1);
  EXPECT_EQ(one, run(2));
  EXPECT_EQ(one, run(3));
}

TEST(Optimizers, a_gradient_in_another_order_of_memory_gives_the_same_bits) {
  manual_seed(2);
  const Tensor start = randn({5, 9}), grad = randn({5, 9});
  const Tensor a = leaf(start), b = leaf(start);
  for (const Tensor& p : {a, b}) {
    Adam optimizer({p}, {.lr = 0.1});
    set_grad(p, p.is_same(a) ? grad.clone() : grad.t().clone(MemoryFormat::contiguous).t());
    optimizer.step();
  }
  EXPECT_EQ(floats(a), floats(b));
}

TEST(Optimizers, a_saved_state_goes_on_with_the_same_bits) {
  manual_seed(3);
  const Tensor start = randn({33});
  std::vector<Tensor> grads;
  for (int i = 0; i < 6; ++i) grads.push_back(randn({33}));
  const auto steps = [&](Optimizer& optimizer, const Tensor& w, int from, int to) {
    for (int i = from; i < to; ++i) {
      set_grad(w, grads[static_cast<size_t>(i)].clone());
      optimizer.step();
    }
  };
  const Tensor whole = leaf(start);
  RMSprop uninterrupted({whole}, {.lr = 0.1, .momentum = 0.9, .centered = true});
  steps(uninterrupted, whole, 0, 6);

  const test::TemporaryFolder folder;
  const std::string path = folder.path("optimizer.pt");
  const Tensor first = leaf(start);
  RMSprop before({first}, {.lr = 0.1, .momentum = 0.9, .centered = true});
  steps(before, first, 0, 3);
  save_optimizer(before, path);
  const Tensor second = leaf(first.detach());
  RMSprop after({second}, {.lr = 1e9});
  load_optimizer(after, path);
  steps(after, second, 3, 6);
  EXPECT_EQ(floats(whole), floats(second));
}

TEST(Optimizers, what_is_loaded_is_a_copy) {
  const Tensor a = leaf(tensor({1.0F})), b = leaf(tensor({1.0F}));
  SGD one({a}, {.lr = 1, .momentum = 0.9}), other({b}, {.lr = 1, .momentum = 0.9});
  set_grad(a, tensor({1.0F}));
  one.step();
  other.load_state_dict(one.state_dict());
  one.step();
  EXPECT_EQ(floats(other.state(b).at("momentum_buffer").to_tensor())[0], 1.0F);
}

TEST(Optimizers, refuse_what_pytorch_refuses) {
  const Tensor w = leaf(tensor({1.0F}));
  EXPECT_THAT(test::error_of([&] { SGD({w}, {.lr = -1}); }), testing::HasSubstr("Invalid learning rate: -1.0"));
  EXPECT_THAT(test::error_of([&] { SGD({w}, {.nesterov = true}); }),
              testing::HasSubstr("Nesterov momentum requires a momentum and zero dampening"));
  EXPECT_THAT(test::error_of([&] {
                Adam({w}, {.betas = {0.9, 1.0}});
              }),
              testing::HasSubstr("Invalid beta parameter at index 1: 1.0"));
  EXPECT_THAT(test::error_of([&] { Adam(std::vector<Tensor>{}); }),
              testing::HasSubstr("optimizer got an empty parameter list"));
  EXPECT_THAT(test::error_of([&] { Adam({w, w}); }), testing::HasSubstr("the same parameter twice"));
  EXPECT_THAT(test::error_of([&] {
                Adam(std::vector<ParamGroup>{{{w}, {}, {}}, {{w}, {}, {}}});
              }),
              testing::HasSubstr("some parameters appear in more than one parameter group"));
  EXPECT_THAT(test::error_of([&] {
                Adam(std::vector<ParamGroup>{{{w}, {{"learning_rate", 1.0}}, {}}});
              }),
              testing::HasSubstr("an option \"learning_rate\" that the optimizer does not know"));
  EXPECT_THAT(test::error_of([&] { TransformersAdafactor({w}, {.lr = 0.1}); }),
              testing::HasSubstr("Cannot combine manual `lr` and `relative_step=True` options"));
}

TEST(Optimizers, a_state_that_does_not_fit_changes_nothing) {
  const Tensor a = leaf(tensor({1.0F, 2.0F})), b = leaf(tensor({1.0F})), c = leaf(tensor({1.0F, 1.0F, 1.0F}));
  Adam two({a, b}), one({a}), three({c});
  set_grad(a, tensor({1.0F, 1.0F}));
  one.step();
  EXPECT_THAT(test::error_of([&] { two.load_state_dict(one.state_dict()); }),
              testing::HasSubstr("doesn't match the size of optimizer's group: group 0 has 2 parameters, the loaded one 1"));
  EXPECT_THAT(test::error_of([&] { three.load_state_dict(one.state_dict()); }),
              testing::HasSubstr("expected sizes [3] as the parameter's, found [2]"));
  EXPECT_TRUE(three.state(c).empty());
  EXPECT_THAT(test::error_of([&] { one.load_state_dict(Value(3)); }), testing::HasSubstr("expected a dict, found"));
}

TEST(Optimizers, a_state_of_another_size_is_an_error_not_a_read_past_its_end) {
  const Tensor a = leaf(tensor({1.0F, 2.0F, 3.0F}));
  Adam optimizer({a});
  Value state =
      dict({{"state", dict({{0, dict({{"step", tensor({1.0F})}, {"exp_avg", zeros({1})}, {"exp_avg_sq", zeros({})}})}})},
            {"param_groups", list({dict({{"params", list({0})}})})}});
  set_grad(a, tensor({1.0F, 1.0F, 1.0F}));
  EXPECT_THAT(test::error_of([&] {
                optimizer.load_state_dict(state);
                optimizer.step();
              }),
              testing::HasSubstr("expected sizes [3]"));
}

TEST(Schedules, a_schedule_sets_the_rate_when_it_is_made_and_at_each_step) {
  const Tensor w = leaf(tensor({1.0F}));
  SGD optimizer({w}, {.lr = 1});
  LambdaLR schedule = linear_schedule_with_warmup(optimizer, 2, 4);
  std::vector<double> rates;
  for (int i = 0; i < 5; ++i) {
    rates.push_back(optimizer.param_groups()[0].lr());
    schedule.step();
  }
  EXPECT_THAT(rates, testing::ElementsAre(0.0, 0.5, 1.0, 0.5, 0.0));
  EXPECT_EQ(schedule.last_epoch(), 5);
}

TEST(Schedules, an_unknown_name_lists_those_that_there_are) {
  const Tensor w = leaf(tensor({1.0F}));
  SGD optimizer({w});
  EXPECT_THAT(test::error_of([&] { get_scheduler("cosin", optimizer, 0, 1); }),
              testing::HasSubstr("there is no schedule \"cosin\"; there are linear, cosine"));
}

TEST(Clipping, gives_the_norm_that_was_and_scales_to_the_bound) {
  const Tensor a = leaf(tensor({0.0F, 0.0F})), b = leaf(tensor({0.0F}));
  set_grad(a, tensor({3.0F, 0.0F}));
  set_grad(b, tensor({4.0F}));
  EXPECT_FLOAT_EQ(clip_grad_norm_({a, b}, 1.0).item<float>(), 5.0F);
  EXPECT_NEAR(floats(grad_of(a))[0], 0.6, 1e-6);
  EXPECT_NEAR(floats(grad_of(b))[0], 0.8, 1e-6);
}

TEST(Clipping, a_norm_that_is_no_number_is_an_error_where_asked_for) {
  const Tensor a = leaf(tensor({0.0F}));
  set_grad(a, tensor({std::nanf("")}));
  EXPECT_THAT(test::error_of([&] { clip_grad_norm_({a}, 1.0, 2.0, true); }),
              testing::HasSubstr("The total norm of order 2.0 for gradients from `parameters` is non-finite"));
  EXPECT_TRUE(std::isnan(clip_grad_norm_({a}, 1.0).item<float>()));
}

TEST(Clipping, by_value) {
  const Tensor a = leaf(tensor({0.0F, 0.0F, 0.0F}));
  set_grad(a, tensor({-3.0F, 0.25F, 9.0F}));
  clip_grad_value_({a}, 0.5);
  EXPECT_THAT(floats(grad_of(a)), testing::ElementsAre(-0.5F, 0.25F, 0.5F));
}

}  // namespace
}  // namespace calque::optimizer_test
