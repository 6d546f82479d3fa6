// make_fx: behaviours that PyTorch's test/test_proxy_tensor.py checks. The comment of each test names where the behaviour comes
// from; what is expected is what PyTorch gave, code byte for byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/nn/nn.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/shaping.h"
#include "calque/op/aten/splitting.h"
#include "calque/op/aten/unique.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/op/library.h"
#include "calque/op/literal.h"
#include "calque/sym/sym_math.h"
#include "calque/sym/unbacked.h"
#include "calque/trace/decompositions.h"
#include "calque/trace/make_fx.h"
#include "support/error_support.h"

namespace calque::proxy_tensor_test {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

MakeFxOptions symbolic(std::vector<std::string> names) {
  MakeFxOptions options{.mode = TracingMode::symbolic};
  options.names = std::move(names);
  return options;
}
MakeFxOptions fake(std::vector<std::string> names) {
  MakeFxOptions options{.mode = TracingMode::fake};
  options.names = std::move(names);
  return options;
}
std::string body(const TracedGraph& g) {
  const std::string code = g.module->code();
  const size_t from = code.find("def forward");
  return code.substr(from, code.find_last_not_of(" \n") + 1 - from);
}
// PyTorch's code without what its Python front end adds to factories (T077: what was not given is not written).
std::string as_given(std::string code, bool device_given = false) {
  for (const std::string added : {", device = device(type='cpu')", ", pin_memory = False"})
    if (!device_given || added.find("pin_memory") != std::string::npos)
      for (size_t at; (at = code.find(added)) != std::string::npos;) code.erase(at, added.size());
  return code;
}
std::vector<std::string> guards(const TracedGraph& g) {
  std::vector<std::string> out;
  for (const Guard& guard : g.env->guards()) out.push_back(guard.condition.str());
  return out;
}
std::string calls(const TracedGraph& g) {
  std::string text;
  for (const Node* n : g.graph().nodes())
    if (n->kind() == NodeKind::call_function) text += (text.empty() ? "" : " ") + n->target().str();
  return text;
}
bool same(const Value& a, const Tensor& b) { return a.to_tensor().equal(b); }
Tensor bools(std::vector<bool> v) {
  std::vector<int64_t> items(v.begin(), v.end());
  return tensor_of<int64_t>(items, {static_cast<int64_t>(items.size())}).to(DType::bool_);
}

// TestSymbolicTracing::test_neg_shape
TEST(ProxyTensorBehaviour, B201_a_size_is_negated_and_added_to) {
  const auto f = [](const Tensor& a) {
    const SymInt n = -a.sym_size(0);
    return empty({n + 10});
  };
  const TracedGraph g = make_fx(f, symbolic({"a"}))(zeros({2}));
  EXPECT_EQ(
      body(g),
      as_given("def forward(self, a_1):\n    sym_size_int = torch.ops.aten.sym_size.int(a_1, 0);  a_1 = None\n    neg = "
               "-sym_size_int;  sym_size_int = None\n    add = neg + 10;  neg = None\n    empty = "
               "torch.ops.aten.empty.memory_format([add], device = device(type='cpu'), pin_memory = False);  add = None\n   "
               " return "
               "empty"));
  EXPECT_EQ(g(zeros({7})).to_tensor().size(0), 3);
}

// test_symint_to_tensor
TEST(ProxyTensorBehaviour, B202_a_tensor_divided_by_a_size_takes_it_as_a_number) {
  const TracedGraph g = make_fx([](const Tensor& a) { return a / a.sym_size(0); }, symbolic({"a"}))(zeros({4}));
  EXPECT_EQ(body(g),
            "def forward(self, a_1):\n    sym_size_int = torch.ops.aten.sym_size.int(a_1, 0)\n    div = "
            "torch.ops.aten.div.Tensor(a_1, sym_size_int);  a_1 = sym_size_int = None\n    return div");
  EXPECT_TRUE(same(g(ones({2})), full({2}, 0.5)));
}

// test_new_empty
TEST(ProxyTensorBehaviour, B203_sizes_of_one_input_make_a_tensor_like_another) {
  const auto f = [](const Tensor& a, const Tensor& b) {
    const SymInt columns = b.sym_size(1) * 2;
    return a.new_empty({b.sym_size(0), columns});
  };
  const TracedGraph g = make_fx(f, symbolic({"a", "b"}))(rand({2, 3}), rand({4, 5}));
  EXPECT_EQ(
      body(g),
      as_given(
          "def forward(self, a_1, b_1):\n    sym_size_int = torch.ops.aten.sym_size.int(b_1, 1)\n    mul = sym_size_int * "
          "2;  "
          "sym_size_int = None\n    sym_size_int_1 = torch.ops.aten.sym_size.int(b_1, 0);  b_1 = None\n    new_empty = "
          "torch.ops.aten.new_empty.default(a_1, [sym_size_int_1, mul], pin_memory = False);  a_1 = sym_size_int_1 = mul = "
          "None\n    return new_empty"));
  EXPECT_EQ(str(g(rand({3, 7}), rand({9, 3})).to_tensor().sizes()), "[9, 6]");
  EXPECT_TRUE(guards(g).empty());
}

// test_expand
TEST(ProxyTensorBehaviour, B204_expanding_to_an_inputs_own_sizes_needs_no_guard) {
  const auto f = [](const Tensor& a) { return mul(a, a).expand(a.sym_sizes()); };
  const TracedGraph one = make_fx(f, symbolic({"a"}))(rand({3}));
  EXPECT_TRUE(guards(one).empty());
  for (const int64_t n : {2, 3, 4}) EXPECT_TRUE(same(one(ones({n})), ones({n})));
  const TracedGraph two = make_fx(f, symbolic({"a"}))(rand({5, 1}));
  EXPECT_THAT(body(two), HasSubstr("torch.ops.aten.expand.default(mul, [sym_size_int, 1])"));
  for (const int64_t n : {3, 4, 6}) EXPECT_TRUE(same(two(ones({n, 1})), ones({n, 1})));
}

// test_metadata
TEST(ProxyTensorBehaviour, B205_a_size_and_the_node_that_computes_it_are_one_expression) {
  const TracedGraph g =
      make_fx([](const Tensor& a, const Tensor& b) { return a.new_empty({a.sym_size(0) + b.sym_size(0)}); },
              symbolic({"a", "b"}))(rand({5}), rand({4}));
  const SymInt size = g.graph().find_node("new_empty")->meta.val.to_tensor().sym_size(0);
  EXPECT_TRUE(identical(size, g.graph().find_node("add")->meta.val.to_sym_int()));
}

// test_binary_broadcast
TEST(ProxyTensorBehaviour, B206_broadcasting_over_ones_leaves_no_guard) {
  const TracedGraph g =
      make_fx([](const Tensor& a, const Tensor& b) { return a * b; }, symbolic({"a", "b"}))(rand({1, 2}), rand({3, 1}));
  EXPECT_TRUE(guards(g).empty());
  EXPECT_EQ(str(g(ones({1, 5}), ones({4, 1})).to_tensor().sizes()), "[4, 5]");
}

// test_repeat_interleave
TEST(ProxyTensorBehaviour, B207_repeating_rows_by_a_size_leaves_no_guard) {
  const auto f = [](const Tensor& s, const Tensor& b) { return s.repeat_interleave(b.sym_size(0), 0); };
  const TracedGraph g = make_fx(f, symbolic({"s", "b"}))(ones({4, 64}, DType::int64), rand({5}));
  EXPECT_TRUE(guards(g).empty());
  EXPECT_THAT(calls(g), HasSubstr("aten.expand.default aten.clone.default operator.mul aten.view.default"));
  EXPECT_TRUE(same(g(arange(2).view({2, 1}), rand({3})), tensor_of<int64_t>({0, 0, 0, 1, 1, 1}, {6, 1})));
}

// test_adv_index_batch
TEST(ProxyTensorBehaviour, B208_a_slice_of_a_larger_tensor_is_written_without_a_guard) {
  const auto f = [](const Tensor& s) {
    const SymInt length = s.sym_size(1);
    const Tensor tokens = zeros({s.sym_size(0), length + 64}).to(s.dtype()).fill_(0);
    tokens.set_by({Slice(), Slice(none, length)}, s);
    return tokens;
  };
  const TracedGraph g = make_fx(f, symbolic({"s"}))(ones({4, 64}, DType::int64));
  EXPECT_TRUE(guards(g).empty()) << guards(g)[0];
  const Tensor out = g(ones({2, 3}, DType::int64)).to_tensor();
  EXPECT_EQ(str(out.sizes()), "[2, 67]");
  EXPECT_EQ(out.sum().item_as<int64_t>(), 6);
}

// test_dynamic_pointwise_scalar
TEST(ProxyTensorBehaviour, B209_masked_rows_of_a_column_are_written_in_place) {
  const auto f = [](const Tensor& gravity, const Tensor& mask) {
    const Tensor negative = gravity.index_by({mask, 0}) * -1;
    gravity.set_by({mask, 0}, negative);
  };
  const TracedGraph g = make_fx(f, symbolic({"gravity", "mask"}))(rand({12, 4}), ones({12}, DType::bool_));
  EXPECT_EQ(
      body(g),
      "def forward(self, gravity_1, mask_1):\n    select = torch.ops.aten.select.int(gravity_1, 1, 0)\n    index = "
      "torch.ops.aten.index.Tensor(select, [mask_1]);  select = None\n    mul = torch.ops.aten.mul.Tensor(index, -1);  "
      "index = None\n    select_1 = torch.ops.aten.select.int(gravity_1, 1, 0);  gravity_1 = None\n    index_put_ = "
      "torch.ops.aten.index_put_.default(select_1, [mask_1], mul);  select_1 = mask_1 = mul = index_put_ = None\n    return "
      "None");
  const Tensor x = ones({2, 2});
  g(x, bools({true, false}));
  EXPECT_TRUE(same(x, tensor_of<float>({-1, 1, 1, 1}, {2, 2})));
}

// test_unbacked_slice
TEST(ProxyTensorBehaviour, B210_rows_chosen_by_a_mask_are_sliced_along_other_dimensions) {
  const auto f = [](const Tensor& x, const Tensor& m) {
    return x.index_by({m}).index_by({Slice(), Slice(), Slice(none, 2)});
  };
  const TracedGraph g = make_fx(f, symbolic({"x", "m"}))(rand({12, 3, 3}), ones({12}, DType::bool_));
  EXPECT_EQ(str(g(rand({4, 5, 3}), bools({true, false, true, true})).to_tensor().sizes()), "[3, 5, 2]");
}

// test_nonidentity_transitive_guards
TEST(ProxyTensorBehaviour, B211_each_of_several_doublings_is_guarded_once) {
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e) -> Value {
    const Tensor v[] = {a, b, c, d, e};
    Values cats, out;
    for (size_t i = 0; i < 4; ++i) cats.push_back(cat({v[i], v[i]}));
    for (size_t i = 4; i-- > 0;) out.push_back(cats[i].to_tensor() + v[i + 1]);
    return list(out);
  };
  const TracedGraph g =
      make_fx(f, symbolic({"a", "b", "c", "d", "e"}))(rand({2}), rand({4}), rand({8}), rand({16}), rand({32}));
  EXPECT_EQ(guards(g).size(), 4U);
  const auto one = [](int64_t n) { return ProducedGuards::RealInput(ProducedGuards::RealTensor{{n}, {1}, 0}); };
  EXPECT_TRUE(g.guards().accepts({one(3), one(6), one(12), one(24), one(48)}));
  EXPECT_FALSE(g.guards().accepts({one(3), one(6), one(12), one(24), one(47)}));
}

// test_guards_equal (a chain of sums with doubled sizes)
TEST(ProxyTensorBehaviour, B212_a_chain_of_doublings_has_one_free_size) {
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e) {
    const Tensor v[] = {a, b, c, d, e};
    Tensor x = a;
    for (size_t i = 0; i < 4; ++i) x = cat({x, v[i]}) + v[i + 1];
    return x;
  };
  const TracedGraph g =
      make_fx(f, symbolic({"a", "b", "c", "d", "e"}))(rand({2}), rand({4}), rand({8}), rand({16}), rand({32}));
  size_t free = 0;
  for (const Symbol& s : g.env->symbols()) free += !g.env->replacement(s.name);
  EXPECT_EQ(free, 1U);
  EXPECT_EQ(g(rand({3}), rand({6}), rand({12}), rand({24}), rand({48})).to_tensor().size(0), 48);
}

// test_guards_equal (a view to another input's size)
TEST(ProxyTensorBehaviour, B213_a_view_to_another_inputs_size_is_one_equality) {
  const auto f = [](const Tensor& a, const Tensor& b) {
    const Tensor v = a.view({b.sym_size(0)});
    return v + b.sum();
  };
  EXPECT_EQ(guards(make_fx(f, symbolic({"a", "b"}))(rand({4, 2}), rand({8}))).size(), 1U);
  EXPECT_EQ(guards(make_fx(f, symbolic({"a", "b"}))(rand({2, 3, 4}), rand({24}))).size(), 1U);
  EXPECT_EQ(guards(make_fx(f, symbolic({"a", "b"}))(rand({4, 2}), rand({8, 5}))).size(), 1U);
}

// test_guard_upperbound_range_refinement
TEST(ProxyTensorBehaviour, B214_the_stricter_of_two_lower_bounds_is_what_is_checked) {
  const auto f = [](const Tensor& a) {
    EXPECT_TRUE(guard(a.sym_size(0) > 5));
    EXPECT_TRUE(guard(a.sym_size(0) > 12));
    return a.cos();
  };
  const TracedGraph g = make_fx(f, symbolic({"a"}))(rand({15}));
  EXPECT_THAT(g.guards({.simplified = true}).exprs(), ElementsAre("13 <= L['a'].size()[0]"));
}

// test_guard_lowerbound_range_refinement
TEST(ProxyTensorBehaviour, B215_a_bound_that_follows_from_another_is_not_guarded) {
  const auto f = [](const Tensor& a) {
    EXPECT_TRUE(guard(a.sym_size(0) < 20));
    EXPECT_TRUE(guard(a.sym_size(0) < 30));
    return a.cos();
  };
  const TracedGraph g = make_fx(f, symbolic({"a"}))(rand({15}));
  EXPECT_EQ(guards(g).size(), 1U);
  EXPECT_THAT(g.guards({.simplified = true}).exprs(), ElementsAre("L['a'].size()[0] <= 19"));
}

// test_sym_storage_offset
TEST(ProxyTensorBehaviour, B216_an_input_may_begin_in_the_middle_of_its_storage) {
  const auto f = [](const Tensor& x, const Tensor& y) { return x + y; };
  const TracedGraph g = make_fx(f, symbolic({"x", "y"}))(arange(8, DType::float32).slice(0, 3), rand({5}));
  EXPECT_TRUE(guards(g).empty());
  EXPECT_TRUE(same(g(arange(8, DType::float32).slice(0, 3), zeros({5})), arange(3, 8, DType::float32)));
}

// test_rmethod
TEST(ProxyTensorBehaviour, B217_a_size_on_the_left_of_a_sum_is_the_second_argument) {
  const TracedGraph g = make_fx([](const Tensor& x) { return x.sym_size(0) + x; }, symbolic({"x"}))(rand({5}));
  EXPECT_EQ(body(g),
            "def forward(self, x_1):\n    sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)\n    add = "
            "torch.ops.aten.add.Tensor(x_1, sym_size_int);  x_1 = sym_size_int = None\n    return add");
  EXPECT_TRUE(same(g(zeros({12})), full({12}, 12.0)));
}

// test_return_symint (all sizes)
TEST(ProxyTensorBehaviour, B218_all_sizes_may_be_the_result) {
  const TracedGraph g = make_fx(
      [](const Values& in) -> Value {
        const Tensor& x = in[0].to_tensor();
        return tuple({x.sym_size(0), x.sym_size(1)});
      },
      symbolic({"x"}))(rand({5, 3}));
  EXPECT_EQ(body(g),
            "def forward(self, x_1):\n    sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)\n    sym_size_int_1 = "
            "torch.ops.aten.sym_size.int(x_1, 1);  x_1 = None\n    return (sym_size_int, sym_size_int_1)");
  EXPECT_EQ(g(rand({4, 6})).str(), "(4, 6)");
}

// TestGenericProxyTensor::test_proxy_tensor_mode_with_decomp_table_preserves_proxy
TEST(ProxyTensorBehaviour, B219_what_a_decomposition_makes_is_traced_when_it_is_written) {
  const DecompositionTable table{{&get_operator("aten::new_zeros"), [](const Values& args) -> std::optional<Value> {
                                    const Tensor& t = args[0].to_tensor();
                                    return zeros(from_value<std::vector<SymInt>>(args[1]), t.dtype(), {}, t.device());
                                  }}};
  MakeFxOptions options{.decompositions = &table};
  options.names = {"x"};
  const TracedGraph g = make_fx(
      [](const Tensor& x) {
        const Tensor y = x.new_zeros(x.sym_sizes());
        return y.copy_(x);
      },
      options)(ones({2}));
  EXPECT_EQ(
      body(g),
      as_given(
          "def forward(self, x_1):\n    zeros = torch.ops.aten.zeros.default([2], dtype = torch.float32, device = "
          "device(type='cpu'), pin_memory = False)\n    copy_ = torch.ops.aten.copy_.default(zeros, x_1);  zeros = x_1 = "
          "None\n    return copy_",
          true));
}

// test_inplace_metadata
TEST(ProxyTensorBehaviour, B220_an_in_place_unsqueeze_is_seen_by_the_program) {
  const auto f = [](const Tensor& x) {
    const Tensor y = x.clone();
    y.unsqueeze_(-1);
    EXPECT_EQ(y.dim(), 2);
    EXPECT_EQ(y.sym_size(-1).guard_int(), 1);
    return y;
  };
  const TracedGraph g = make_fx(f, symbolic({"x"}))(rand({5}));
  EXPECT_EQ(body(g),
            "def forward(self, x_1):\n    clone = torch.ops.aten.clone.default(x_1);  x_1 = None\n    unsqueeze_ = "
            "torch.ops.aten.unsqueeze_.default(clone, -1);  clone = None\n    return unsqueeze_");
  EXPECT_TRUE(guards(g).empty());
}

// test_make_fx_model_double_param
TEST(ProxyTensorBehaviour, B221_a_parameter_used_twice_is_one_attribute_read_twice) {
  const auto norm = std::make_shared<LayerNorm>(Sizes{8});
  const TracedGraph g = make_fx([&](const Tensor& x) {
    const Tensor y = (*norm)(x);
    return (*norm)(y);
  })(rand({2, 8}));
  EXPECT_EQ(g.module->state_dict().size(), 2U);
  std::vector<std::string> reads;
  for (const Node* n : g.graph().find_nodes(NodeKind::get_attr)) reads.push_back(n->name() + "=" + n->target().text());
  EXPECT_THAT(reads, ElementsAre("_param_constant0=_param_constant0", "_param_constant1=_param_constant1",
                                 "_param_constant0_1=_param_constant0", "_param_constant1_1=_param_constant1"));
}

// TestFakeProxyTensor::test_free_fake
TEST(ProxyTensorBehaviour, B222_a_fake_tensor_closed_over_is_refused_by_a_real_trace) {
  const auto mode = FakeMode::make();
  const Tensor y = mode->from_tensor(rand({2}));
  EXPECT_NE(error_of([&] { make_fx([&](const Tensor& x) { return add(x, y); })(rand({2})); }), "");
}

// TestFakeProxyTensor::test_issue82547
TEST(ProxyTensorBehaviour, B223_a_real_tensor_closed_over_is_refused_by_a_fake_trace) {
  const Tensor p = rand({3, 3});
  EXPECT_THAT(error_of([&] { make_fx([&]() { return p.t(); }, MakeFxOptions{.mode = TracingMode::fake})(); }),
              HasSubstr("allow_non_fake_inputs"));
}

// test_pr_86917
TEST(ProxyTensorBehaviour, B224_results_of_an_operator_are_items_of_its_node) {
  const auto f = [](const Tensor& a, const Tensor& b) -> Value {
    return call(get_operator("aten::nll_loss_forward"), Values{a, b, {}, 1, 10});
  };
  const TracedGraph g = make_fx(f, symbolic({"a", "b"}))(rand({1, 10}), zeros({1}, DType::int64));
  EXPECT_EQ(
      body(g),
      "def forward(self, a_1, b_1):\n    nll_loss_forward = torch.ops.aten.nll_loss_forward.default(a_1, b_1, None, 1, "
      "10);  a_1 = b_1 = None\n    getitem = nll_loss_forward[0]\n    getitem_1 = nll_loss_forward[1];  nll_loss_forward = "
      "None\n    return (getitem, getitem_1)");
}

// test_strides
TEST(ProxyTensorBehaviour, B225_a_program_may_ask_whether_a_tensor_is_contiguous) {
  const auto f = [](const Tensor& x) {
    EXPECT_TRUE(x.is_contiguous());
    EXPECT_FALSE(x.is_contiguous(MemoryFormat::channels_last));
    const Tensor y = x.permute({0, 3, 1, 2});
    EXPECT_FALSE(y.is_contiguous());
    EXPECT_TRUE(y.is_contiguous(MemoryFormat::channels_last));
    EXPECT_FALSE(x.index_by({Slice(), 1}).is_contiguous());
    EXPECT_FALSE(x.index_by({Slice(), Slice(none, none, 2)}).is_contiguous());
    return y;
  };
  make_fx(f)(rand({2, 3, 4, 5}));
  make_fx(f, fake({"x"}))(rand({2, 3, 4, 5}));
}

// TestGenericProxyTensor::test_make_fx_simple and its kin: results of operators with several
TEST(ProxyTensorBehaviour, B226_values_and_indices_are_two_items) {
  const TracedGraph g = make_fx(
      [](const Tensor& x) {
        const auto [values, indices] = max(x, int64_t{0});
        return std::tuple<Tensor, Tensor>(values, indices);
      },
      fake({"x"}))(rand({3, 4}));
  EXPECT_EQ(body(g),
            "def forward(self, x_1):\n    max_1 = torch.ops.aten.max.dim(x_1, 0);  x_1 = None\n    getitem = max_1[0]\n    "
            "getitem_1 = max_1[1];  max_1 = None\n    return (getitem, getitem_1)");
}

// in-place operators in a row
TEST(ProxyTensorBehaviour, B227_in_place_calls_stay_and_each_takes_the_result_of_the_one_before) {
  const TracedGraph g = make_fx([](const Tensor& x) { return x.add_(1).mul_(2); }, fake({"x"}))(rand({3}));
  EXPECT_EQ(body(g),
            "def forward(self, x_1):\n    add_ = torch.ops.aten.add_.Tensor(x_1, 1);  x_1 = None\n    mul_ = "
            "torch.ops.aten.mul_.Tensor(add_, 2);  add_ = None\n    return mul_");
  const Tensor x = ones({3});
  g(x);
  EXPECT_TRUE(same(x, full({3}, 4.0)));
}

// unbind along a symbolic dimension
TEST(ProxyTensorBehaviour, B228_taking_rows_apart_fixes_their_number) {
  const TracedGraph g = make_fx([](const Tensor& x) { return unbind(x)[0] + 1; }, symbolic({"x"}))(rand({3, 2}));
  EXPECT_EQ(guards(g).size(), 1U);
  EXPECT_THAT(body(g),
              HasSubstr("unbind = torch.ops.aten.unbind.int(x_1);  x_1 = None\n    getitem = unbind[0]\n    getitem_1 = "
                        "unbind[1];  getitem_1 = None\n    getitem_2 = unbind[2];  unbind = getitem_2 = None\n"));
}

// split by a number
TEST(ProxyTensorBehaviour, B229_all_parts_of_a_split_are_items_and_those_not_used_are_dropped) {
  const TracedGraph g = make_fx([](const Tensor& x) { return split(x, 2)[1]; }, symbolic({"x"}))(rand({5}));
  EXPECT_EQ(
      body(g),
      "def forward(self, x_1):\n    split = torch.ops.aten.split.Tensor(x_1, 2);  x_1 = None\n    getitem = split[0];  "
      "getitem = None\n    getitem_1 = split[1]\n    getitem_2 = split[2];  split = getitem_2 = None\n    return getitem_1");
  EXPECT_TRUE(same(g(arange(6)), arange(2, 4)));
}

// branch on sizes
TEST(ProxyTensorBehaviour, B230_a_branch_on_two_sizes_leaves_one_equality) {
  const auto f = [](const Tensor& x) { return guard(x.sym_size(0) * 2 == x.sym_size(1)) ? x.sum({0}) : x.sum({1}); };
  const TracedGraph g = make_fx(f, symbolic({"x"}))(rand({3, 6}));
  EXPECT_EQ(guards(g).size(), 1U);
  const auto real = [](int64_t a, int64_t b) {
    return ProducedGuards::RealInput(ProducedGuards::RealTensor{{a, b}, {b, 1}, 0});
  };
  EXPECT_TRUE(g.guards().accepts({real(4, 8)}));
  EXPECT_FALSE(g.guards().accepts({real(4, 9)}));
}

// branch on data
TEST(ProxyTensorBehaviour, B231_a_branch_on_a_count_of_data_names_the_expression) {
  const auto f = [](const Tensor& x) { return guard(x.nonzero().sym_size(0) > 2) ? x : x + 1; };
  EXPECT_THAT(error_of([&] { make_fx(f, symbolic({"x"}))(rand({4})); }, ErrorKind::data_dependent), HasSubstr("u0 > 2"));
}

// where as a search
TEST(ProxyTensorBehaviour, B232_the_count_of_a_search_is_a_result) {
  const TracedGraph g = make_fx([](const Values& in) -> Value { return where(in[0].to_tensor() > 0)[0].sym_size(0); },
                                symbolic({"x"}))(rand({4}));
  EXPECT_EQ(
      body(g),
      "def forward(self, x_1):\n    gt = torch.ops.aten.gt.Scalar(x_1, 0);  x_1 = None\n    nonzero = "
      "torch.ops.aten.nonzero.default(gt);  gt = None\n    unbind = torch.ops.aten.unbind.int(nonzero, 1)\n    getitem = "
      "unbind[0];  unbind = getitem = None\n    sym_size_int = torch.ops.aten.sym_size.int(nonzero, 0);  nonzero = None\n"
      "    return sym_size_int");
  EXPECT_EQ(g(tensor_of<float>({1, -1, 2, 3, 0}, {5})).to_int(), 3);
}

// unique values
TEST(ProxyTensorBehaviour, B233_the_number_of_unique_values_is_a_result) {
  const TracedGraph g =
      make_fx([](const Values& in) -> Value { return std::get<0>(_unique2(in[0].to_tensor())).sym_size(0); },
              symbolic({"x"}))(rand({4}));
  EXPECT_EQ(
      body(g),
      "def forward(self, x_1):\n    _unique2 = torch.ops.aten._unique2.default(x_1);  x_1 = None\n    getitem = "
      "_unique2[0]\n    getitem_1 = _unique2[1];  getitem_1 = None\n    getitem_2 = _unique2[2];  _unique2 = getitem_2 = "
      "None\n    sym_size_int = torch.ops.aten.sym_size.int(getitem, 0);  getitem = None\n    return sym_size_int");
  EXPECT_EQ(g(tensor_of<float>({1, 2, 1, 3, 2}, {5})).to_int(), 3);
}

// masked_select
TEST(ProxyTensorBehaviour, B234_values_chosen_by_a_mask_are_summed) {
  const TracedGraph g = make_fx([](const Tensor& x) { return masked_select(x, x > 0).sum(); }, symbolic({"x"}))(rand({4}));
  EXPECT_EQ(calls(g), "aten.gt.Scalar aten.masked_select.default aten.sum.default");
  EXPECT_EQ(g(tensor_of<float>({1, -1, 2}, {3})).to_tensor().item_as<float>(), 3.0F);
}

// repeat_interleave by a tensor
TEST(ProxyTensorBehaviour, B235_rows_repeated_by_a_tensor_are_selected_by_index) {
  const auto f = [](const Tensor& x, const Tensor& r) { return repeat_interleave(x, r); };
  const TracedGraph g = make_fx(f, symbolic({"x", "r"}))(rand({3}), tensor_of<int64_t>({1, 2, 3}, {3}));
  EXPECT_EQ(
      body(g),
      "def forward(self, x_1, r_1):\n    repeat_interleave = torch.ops.aten.repeat_interleave.Tensor(r_1);  r_1 = None\n    "
      "index_select = torch.ops.aten.index_select.default(x_1, 0, repeat_interleave);  x_1 = repeat_interleave = None\n    "
      "return index_select");
  EXPECT_TRUE(same(g(arange(3), tensor_of<int64_t>({2, 0, 1}, {3})), tensor_of<int64_t>({0, 0, 2}, {3})));
}

// cat with an unbacked part
TEST(ProxyTensorBehaviour, B236_a_part_of_unknown_length_is_joined_with_others) {
  const auto f = [](const Tensor& x) {
    const Tensor found = x.nonzero().squeeze(-1);
    return cat({found, zeros({1}, DType::int64)});
  };
  const TracedGraph g = make_fx(f, symbolic({"x"}))(rand({4}));
  EXPECT_TRUE(guards(g).empty());
  EXPECT_TRUE(same(g(tensor_of<float>({0, 5, 0, 5}, {4})), tensor_of<int64_t>({1, 3, 0}, {3})));
  EXPECT_EQ(calls(g), "aten.nonzero.default aten.squeeze.dim aten.zeros.default aten.cat.default");
}

// padding to a fixed length (mended)
TEST(ProxyTensorBehaviour, B237_padding_to_a_length_is_computed_from_the_size) {
  const auto f = [](const Tensor& x) { return pad(x, {0, 10 - x.sym_size(0)}); };
  const TracedGraph g = make_fx(f, symbolic({"x"}))(rand({4}));
  EXPECT_EQ(
      body(g),
      "def forward(self, x_1):\n    sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)\n    sub = 10 - sym_size_int;  "
      "sym_size_int = None\n    constant_pad_nd = torch.ops.aten.constant_pad_nd.default(x_1, [0, sub], 0.0);  x_1 = sub = "
      "None\n    return constant_pad_nd");
  EXPECT_TRUE(guards(g).empty());
  EXPECT_EQ(g(rand({7})).to_tensor().size(0), 10);
}

// factories of sizes
TEST(ProxyTensorBehaviour, B238_a_tensor_filled_with_a_size) {
  const TracedGraph g = make_fx(
      [](const Tensor& x) {
        return full({x.sym_size(0), 2}, Scalar(x.sym_size(1)));
      },
      symbolic({"x"}))(rand({5, 3}));
  EXPECT_EQ(
      body(g),
      as_given("def forward(self, x_1):\n    sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)\n    sym_size_int_1 = "
               "torch.ops.aten.sym_size.int(x_1, 1);  x_1 = None\n    full = torch.ops.aten.full.default([sym_size_int, 2], "
               "sym_size_int_1, device = device(type='cpu'), pin_memory = False);  sym_size_int = sym_size_int_1 = None\n   "
               " return "
               "full"));
  EXPECT_TRUE(same(g(rand({2, 7})), full({2, 2}, 7)));
}

// factories of sizes
TEST(ProxyTensorBehaviour, B239_a_range_up_to_twice_a_size_of_a_dtype) {
  const TracedGraph g =
      make_fx([](const Tensor& x) { return arange(Scalar(x.sym_size(0) * 2), DType::float32); }, symbolic({"x"}))(rand({5}));
  EXPECT_EQ(
      body(g),
      as_given("def forward(self, x_1):\n    sym_size_int = torch.ops.aten.sym_size.int(x_1, 0);  x_1 = None\n    mul = "
               "sym_size_int "
               "* 2;  sym_size_int = None\n    arange = torch.ops.aten.arange.default(mul, dtype = torch.float32, device = "
               "device(type='cpu'), pin_memory = False);  mul = None\n    return arange"));
  EXPECT_TRUE(guards(g).empty());
}

// factories of sizes
TEST(ProxyTensorBehaviour, B240_identity_and_triangle_of_a_size) {
  const TracedGraph g = make_fx(
      [](const Tensor& x) {
        const Tensor identity = eye(x.sym_size(0));
        return identity + tril(ones({x.sym_size(0), x.sym_size(0)}));
      },
      symbolic({"x"}))(rand({5, 3}));
  EXPECT_THAT(body(g),
              HasSubstr(as_given(
                  "eye = torch.ops.aten.eye.default(sym_size_int, device = device(type='cpu'), pin_memory = False)")));
  EXPECT_TRUE(same(g(rand({2, 9})), tensor_of<float>({2, 0, 1, 2}, {2, 2})));
}

// linspace takes a plain number of steps
TEST(ProxyTensorBehaviour, B241_the_steps_of_a_linspace_are_fixed_by_the_trace) {
  const TracedGraph g =
      make_fx([](const Tensor& x) { return linspace(0, 1, x.sym_size(0).guard_int()); }, symbolic({"x"}))(rand({5}));
  EXPECT_EQ(
      body(g),
      as_given(
          "def forward(self, x_1):\n    linspace = torch.ops.aten.linspace.default(0, 1, 5, device = device(type='cpu'), "
          "pin_memory = False)\n    return linspace"));
  EXPECT_EQ(guards(g).size(), 1U);
}

// item of a float
TEST(ProxyTensorBehaviour, B242_a_value_read_from_a_sum_multiplies) {
  const TracedGraph g = make_fx([](const Tensor& x) { return x * x.sum().item(); }, symbolic({"x"}))(rand({3}));
  EXPECT_EQ(body(g),
            "def forward(self, x_1):\n    sum_1 = torch.ops.aten.sum.default(x_1)\n    _local_scalar_dense = "
            "torch.ops.aten._local_scalar_dense.default(sum_1);  sum_1 = None\n    mul = torch.ops.aten.mul.Tensor(x_1, "
            "_local_scalar_dense);  x_1 = _local_scalar_dense = None\n    return mul");
  EXPECT_TRUE(same(g(ones({4})), full({4}, 4.0)));
}

// test_decomposition_interpreter
TEST(ProxyTensorBehaviour, B243_a_traced_operator_is_decomposed_afterwards) {
  const TracedGraph g = make_fx([](const Tensor& x) { return silu(x); }, fake({"x"}))(rand({4, 4}));
  EXPECT_EQ(calls(g), "aten.silu.default");
  const TracedGraph again = make_fx([&](const Tensor& x) { return g(x).to_tensor(); },
                                    [] {
                                      MakeFxOptions options{.mode = TracingMode::fake};
                                      options.decompositions = &core_aten_decompositions();
                                      return options;
                                    }())(rand({4, 4}));
  EXPECT_EQ(calls(again).find("silu"), std::string::npos) << calls(again);
  const Tensor x = arange(4, DType::float32);
  EXPECT_LT((again(x).to_tensor() - silu(x)).abs().max().item_as<double>(), 1e-6);
}

// linear above and below dispatch
TEST(ProxyTensorBehaviour, B244_linear_is_a_transpose_and_an_addmm_below_dispatch) {
  const auto f = [](const Tensor& x, const Tensor& w, const Tensor& b) { return linear(x, w, b); };
  const TracedGraph g = make_fx(f, symbolic({"x", "w", "b"}))(rand({5, 3}), rand({2, 3}), rand({2}));
  EXPECT_EQ(body(g),
            "def forward(self, x_1, w_1, b_1):\n    t = torch.ops.aten.t.default(w_1);  w_1 = None\n    addmm = "
            "torch.ops.aten.addmm.default(b_1, x_1, t);  b_1 = x_1 = t = None\n    return addmm");
  EXPECT_TRUE(guards(g).empty());
}

// test_size_with_tensor
TEST(ProxyTensorBehaviour, B245_values_of_a_literal_tensor_are_sizes) {
  const auto f = [](const Tensor& t) {
    const Tensor sizes = tensor({800, 1216});
    SymInts all{2, t.sym_size(0)};
    for (const Tensor& one : unbind(sizes)) all.push_back(Value(one.item()).to_sym_int());
    return t.new_empty(all);
  };
  const TracedGraph g = make_fx(f, symbolic({"t"}))(rand({3, 8, 11}));
  EXPECT_EQ(str(g(rand({4, 8, 11})).to_tensor().sizes()), "[2, 4, 800, 1216]");
}

}  // namespace
}  // namespace calque::proxy_tensor_test
