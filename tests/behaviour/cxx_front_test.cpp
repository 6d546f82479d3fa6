// What somebody who knows libtorch types in the first hour, with one header. The values are PyTorch's.
#include <calque/calque.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace calque::cxx_front_test {
namespace {

using testing::HasSubstr;

template <class T>
std::vector<T> values(const Tensor& t) {
  const Tensor c = t.contiguous();
  return {c.data_as<T>(), c.data_as<T>() + c.numel()};
}
template <class T>
std::string printed(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}
Tensor counted(NumberList<SymInt> sizes) {
  const SymIntList s = sizes;
  SymInt n = 1;
  for (const SymInt size : s) n = n * size;
  return arange(n, DType::float32).view(sizes);
}

TEST(CxxFront, what_has_a_text_goes_into_a_stream) {
  EXPECT_EQ(printed(tensor({{1, 2}, {3, 4}})), "tensor([[1, 2],\n        [3, 4]])");
  EXPECT_EQ(printed(counted({2, 3}).sizes()), "[2, 3]");
  EXPECT_EQ(printed(DType::bfloat16), "bfloat16");
  EXPECT_EQ(printed(Device(DeviceType::meta)), "meta");
  EXPECT_EQ(printed(Value(tuple({1, "a"}))), "(1, 'a')");
  EXPECT_EQ(printed(Linear(3, 8)), "Linear(in_features=3, out_features=8, bias=True)");
  EXPECT_THAT(printed(make_fx([](const Tensor& x) { return x.relu(); })(ones(2)).graph()), HasSubstr("aten.relu.default"));
}

TEST(CxxFront, numbers_in_braces_have_the_dtype_of_torch_tensor) {
  EXPECT_EQ(tensor({1, 2, 3}).dtype(), DType::int64);
  EXPECT_EQ(tensor({1.5, 2.0}).dtype(), DType::float32);
  EXPECT_EQ(tensor({1, 2.5}).dtype(), DType::float32);
  EXPECT_EQ(tensor({true, false}).dtype(), DType::bool_);
  EXPECT_EQ(tensor({std::complex<double>(1, 2)}).dtype(), DType::complex64);
  EXPECT_EQ(tensor({1, 2}, DType::float64).dtype(), DType::float64);
  EXPECT_EQ(tensor(3).dim(), 0);
  EXPECT_EQ(str(tensor({{{1, 2, 3}}, {{4, 5, 6}}}).sizes()), "[2, 1, 3]");
  EXPECT_EQ(tensor(std::vector<double>{1, 2}).dtype(), DType::float64);
}

TEST(CxxFront, lists_of_different_lengths_are_refused) {
  EXPECT_THAT(
      [] {
        tensor({{1, 2}, {3}});
      },
      testing::ThrowsMessage<UserError>(HasSubstr("the lists at depth 2 have different lengths: expected 2, found 1")));
  EXPECT_THAT([] { tensor({{1, 2}, 3}); }, testing::ThrowsMessage<UserError>(HasSubstr("not nested alike")));
  EXPECT_THAT([] { tensor({300}, DType::uint8); }, testing::ThrowsMessage<UserError>(HasSubstr("300")));
}

TEST(CxxFront, a_tensor_over_memory_shares_it) {
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  const Tensor t = from_blob(memory.data(), {2, 3});
  EXPECT_EQ(t.dtype(), DType::float32);
  t[1][2] = 60;
  EXPECT_EQ(memory[5], 60);
  EXPECT_EQ(values<float>(from_blob(memory.data(), {3, 2}, {1, 3})), (std::vector<float>{1, 4, 2, 5, 3, 60}));
  EXPECT_EQ(values<int32_t>(from_blob(static_cast<void*>(memory.data()), {1}, DType::int32)),
            std::vector<int32_t>{0x3f800000});
}

TEST(CxxFront, the_deleter_runs_when_nobody_uses_the_memory_any_more) {
  int deleted = 0;
  int64_t memory[] = {1, 2};
  Tensor view;
  {
    const Tensor t = from_blob(memory, {2}, [&](void* p) { deleted += p == memory; });
    view = t[1];
  }
  EXPECT_EQ(deleted, 0);
  EXPECT_EQ(view.item<int64_t>(), 2);
  view = Tensor();
  EXPECT_EQ(deleted, 1);
}

TEST(CxxFront, constant_memory_is_not_written_to) {
  const float memory[] = {1, 2};
  const Tensor t = from_blob(memory, {2});
  EXPECT_EQ(t.sum().item<float>(), 3);
  EXPECT_THROW(t.add_(1), UserError);
  EXPECT_EQ(memory[0], 1);
}

TEST(CxxFront, memory_that_is_not_there_is_refused) {
  EXPECT_THAT([] { from_blob(static_cast<float*>(nullptr), {2}); },
              testing::ThrowsMessage<UserError>(HasSubstr("the pointer is null, expected memory of 8 bytes")));
  float x = 0;
  EXPECT_THROW(from_blob(&x, {-1}), UserError);
  EXPECT_THROW(from_blob(&x, {2, 2}, {1}), UserError);
  EXPECT_THROW(from_blob(&x, {int64_t{1} << 40, int64_t{1} << 40}), UserError);
  EXPECT_EQ(from_blob(static_cast<float*>(nullptr), {0, 3}).numel(), 0);
}

TEST(CxxFront, subscripts_are_written_as_in_python) {
  const Tensor x = counted({2, 3, 4});
  EXPECT_EQ(x[1][2][3].item<float>(), 23);
  EXPECT_EQ((x[{1, 2, 3}].item<float>()), 23);
  EXPECT_EQ(str(x[{0, Slice(1, 3)}].sizes()), "[2, 4]");
  EXPECT_EQ(str(x.index({Slice(), 0, Slice(none, none, 2)}).sizes()), "[2, 2]");
  EXPECT_EQ(str(x.index({"...", -1}).sizes()), "[2, 3]");
  EXPECT_EQ(str(x.index({none, ellipsis}).sizes()), "[1, 2, 3, 4]");
  EXPECT_EQ(str(x.index({tensor({0, 1}), tensor({2, 0})}).sizes()), "[2, 4]");
  EXPECT_EQ(str(x[x > 20].sizes()), "[3]");
  EXPECT_THAT([&] { x["all"]; }, testing::ThrowsMessage<UserError>(HasSubstr("a text can only be \"...\"")));
}

TEST(CxxFront, what_is_assigned_to_a_subscript_is_written) {
  const Tensor x = zeros({2, 3});
  x[0] = 5;
  x[1] = tensor({1.0, 2.0, 3.0});
  x[0][1] = -1;
  x[{1, Slice(1, none)}] *= 10;
  EXPECT_EQ(values<float>(x), (std::vector<float>{5, -1, 5, 1, 20, 30}));
  x.index_put_({Slice(), 0}, 7);
  x.index_put_({tensor({1}), tensor({2})}, tensor(8.0));
  EXPECT_EQ(values<float>(x), (std::vector<float>{7, -1, 5, 7, 20, 8}));
  Tensor y = x[0];
  y = x[1];  // a variable: it is another tensor now
  EXPECT_EQ(values<float>(x), (std::vector<float>{7, -1, 5, 7, 20, 8}));
}

TEST(CxxFront, a_number_stands_for_a_list_of_one) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(values<float>(x.sum(1)), (std::vector<float>{3, 12}));
  EXPECT_EQ(values<float>(x.sum(-1, true)), (std::vector<float>{3, 12}));
  EXPECT_EQ(values<float>(x.mean(0)), (std::vector<float>{1.5, 2.5, 3.5}));
  EXPECT_EQ(values<float>(sum(x, 0)), (std::vector<float>{3, 5, 7}));
  EXPECT_EQ(str(x.view(-1).sizes()), "[6]");
  EXPECT_EQ(str(x.reshape(6).sizes()), "[6]");
  EXPECT_EQ(str(zeros(4).sizes()), "[4]");
  EXPECT_EQ(str(randn(3).sizes()), "[3]");
  EXPECT_EQ(values<float>(x.flip(0)), (std::vector<float>{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(values<float>(x.amax(1)), (std::vector<float>{2, 5}));
  EXPECT_NEAR(x.std(1)[0].item<float>(), 1, 1e-6);
  EXPECT_NEAR(x.var(0)[0].item<float>(), 4.5, 1e-6);
  EXPECT_NEAR(x.norm(2, 1)[0].item<float>(), 2.2360679, 1e-6);
  EXPECT_EQ(str(max_pool2d(counted({1, 1, 4, 4}), 2).sizes()), "[1, 1, 2, 2]");
  EXPECT_EQ(str(conv2d(ones({1, 1, 4, 4}), ones({1, 1, 3, 3}), {}, 1, 1).sizes()), "[1, 1, 4, 4]");
}

TEST(CxxFront, whole_numbers_choose_the_overload_that_they_choose_in_pytorch) {
  const Tensor x = counted({4, 2});
  EXPECT_EQ(values<float>(repeat_interleave(tensor({1.0, 2.0}), 2)), (std::vector<float>{1, 1, 2, 2}));
  EXPECT_EQ(values<float>(tensor({1.0, 2.0}).repeat_interleave(2)), (std::vector<float>{1, 1, 2, 2}));
  EXPECT_EQ(values<int64_t>(repeat_interleave(tensor({1, 2}))), (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(x.split(3).size(), 2U);
  EXPECT_EQ(x.split({1, 3}).size(), 2U);
  EXPECT_EQ(x.tensor_split(4).size(), 4U);
  EXPECT_EQ(x.chunk(2).size(), 2U);
  EXPECT_EQ(values<int64_t>(arange(0, 10, 3)), (std::vector<int64_t>{0, 3, 6, 9}));
  EXPECT_EQ(values<int64_t>(arange(2, 5)), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(str(randint(0, 10, {2, 3}).sizes()), "[2, 3]");
  EXPECT_EQ(str(randint(10, {2}).sizes()), "[2]");
  EXPECT_EQ(values<float>(std::get<0>(x.topk(1, 0))), (std::vector<float>{6, 7}));
}

TEST(CxxFront, numbers_are_added_in_place) {
  Tensor x = zeros(2);
  const Tensor same = x;
  x += 3;
  x *= 2;
  x -= 1;
  x /= 5;
  EXPECT_EQ(values<float>(same), (std::vector<float>{1, 1}));
}

TEST(CxxFront, tensors_are_converted_to_a_dtype_or_a_device) {
  const Tensor x = tensor({1.9, -1.9});
  EXPECT_EQ(values<int64_t>(x.to(DType::int64)), (std::vector<int64_t>{1, -1}));
  EXPECT_EQ(x.to(DeviceType::meta).device(), Device(DeviceType::meta));
  EXPECT_TRUE(x.to(Device("cpu")).is_same(x));
}

TEST(CxxFront, elements_are_read_and_written_by_pointer) {
  const Tensor x = counted({3});
  x.data_ptr<float>()[1] = 10;
  const std::vector<float> copy(x.data_ptr<const float>(), x.data_ptr<const float>() + x.numel());
  EXPECT_EQ(copy, (std::vector<float>{0, 10, 2}));
  EXPECT_THROW(x.data_ptr<double>(), UserError);
}

TEST(CxxFront, sizes_are_compared_and_kept) {
  const Tensor x = counted({2, 3});
  EXPECT_TRUE(x.sizes() == x.clone().sizes());
  EXPECT_FALSE(x.sizes() == x.t().sizes());
  EXPECT_EQ(x.sizes().vec(), (std::vector<int64_t>{2, 3}));
}

TEST(CxxFront, gradients_are_off_under_the_guard) {
  EXPECT_TRUE(grad_enabled());
  {
    NoGradGuard no_grad;
    EXPECT_FALSE(grad_enabled());
  }
  EXPECT_TRUE(grad_enabled());
}

struct Net : Typed<Net> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Sequential> body = child<Sequential>("body", Linear(3, 8), ReLU(), Linear(8, 2));
  Tensor forward(const Tensor& x) { return body(x); }
};

TEST(CxxFront, a_sequence_of_modules_is_written_in_place_and_gives_a_tensor) {
  Net net;
  EXPECT_EQ(str(net(ones({5, 3})).sizes()), "[5, 2]");
  EXPECT_EQ(net.named_parameters().size(), 4U);
  EXPECT_EQ(net.named_parameters()[2].first, "body.2.weight");
  Sequential nested(Sequential(Linear(3, 3)), Tanh());
  const Tensor y = nested(ones({1, 3}));
  EXPECT_EQ(str(y.sizes()), "[1, 3]");
  EXPECT_EQ(ModuleList(Linear(1, 1), Linear(2, 2)).size(), 2U);
}

Net made(float bias) {
  Net net;
  for (const auto& [name, parameter] : net.named_parameters())
    if (name.ends_with("bias")) {
      const NoGradGuard no_grad;
      parameter.fill_(bias);
    }
  return net;
}

TEST(CxxFront, a_function_returns_a_module) {
  Net net = made(2);
  std::vector<Net> nets;
  nets.push_back(std::move(net));
  for (int i = 0; i < 4; ++i) nets.push_back(made(1));
  EXPECT_EQ(nets[0].body->at<Linear>(2).bias->sum().item<float>(), 4);
  EXPECT_EQ(str(nets[0](ones({1, 3})).sizes()), "[1, 2]");
}

TEST(CxxFront, a_module_is_not_copied_by_accident) {
  const Net net;
  EXPECT_THAT([&] { const Net copy = net; }, testing::ThrowsMessage<UserError>(HasSubstr("use deep_copy()")));
  const auto copy = deep_copy(net);
  EXPECT_FALSE(copy->parameters()[0].is_same(net.parameters()[0]));
}

TEST(CxxFront, outputs_of_models_have_names) {
  ModelOutput out;
  out.set("logits", ones({1, 2}));
  EXPECT_EQ(str(out.logits().sizes()), "[1, 2]");
  EXPECT_TRUE(out.hidden_states().empty());
  EXPECT_THAT([&] { out.last_hidden_state(); }, testing::ThrowsMessage<UserError>(HasSubstr("it has logits")));
}

}  // namespace
}  // namespace calque::cxx_front_test
