// What PyTorch's own tests demand of tensors with symbolic sizes: the rows of area `sym` that need tensors. The others
// are in tests/sym.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/mode.h"
#include "calque/op/tensor.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/symbolic_context.h"

namespace calque::symbolic_rows_test {
namespace {

using Texts = std::vector<std::string>;

struct SymbolicTensors : testing::Test {
  std::shared_ptr<ShapeEnv> env = ShapeEnv::make();

  Tensor symbolic(const std::vector<int64_t>& sizes, const char* name) {
    SymInts plain(sizes.begin(), sizes.end());
    const SymInts plain_strides = contiguous_strides(plain);
    std::vector<int64_t> strides;
    for (const SymInt s : plain_strides) strides.push_back(s.as_int());
    const TensorGeometry t = create_symbolic_geometry(*env, sizes, strides, 0, Source::local(name));
    Meta meta;
    meta.sizes = t.sizes;
    meta.strides = t.strides;
    return make_tensor(meta, true);
  }
  std::vector<int64_t> hints(SymIntList values) const {
    std::vector<int64_t> out;
    for (const SymInt v : values) out.push_back(env->hint(v).value());
    return out;
  }
  Texts guards() const {
    Texts out;
    for (const Guard& g : env->guards()) out.push_back(g.condition.str());
    return out;
  }
};

TEST_F(SymbolicTensors, T187_adding_broadcasts_symbolic_sizes) {
  const Tensor x = symbolic({5, 4, 3}, "x"), y = symbolic({5, 4, 3}, "y"), z = symbolic({1, 4, 1}, "z");
  EXPECT_EQ(hints(add(x, y).sym_sizes()), (std::vector<int64_t>{5, 4, 3}));
  EXPECT_EQ(hints(add(x, z).sym_sizes()), (std::vector<int64_t>{5, 4, 3}));
  EXPECT_TRUE(identical(add(x, z).sym_sizes()[0], x.sym_sizes()[0]));
  EXPECT_TRUE(guards().empty()) << "duck sizing knows that they are equal";
}

TEST_F(SymbolicTensors, T188_sizes_may_mix_symbols_and_integers) {
  const Tensor x = symbolic({1, 1, 3}, "x"), y = symbolic({4, 7}, "y");
  const SymInt a = y.sym_sizes()[0], b = y.sym_sizes()[1];
  for (const std::vector<SymInt>& sizes : {std::vector<SymInt>{a, b, 3},
                                           {a, 7, -1},
                                           {4, b, 3},
                                           {4, 7, x.sym_sizes()[2]},
                                           {a, b, x.sym_sizes()[2]},
                                           {SymInt(4), 7, 3}}) {
    const Tensor out = expand(x, sizes);
    EXPECT_EQ(hints(out.sym_sizes()), (std::vector<int64_t>{4, 7, 3}));
  }
}

TEST_F(SymbolicTensors, T190_strides_and_counts_are_symbolic) {
  const Tensor x = symbolic({5, 4, 3}, "x");
  EXPECT_TRUE(x.sym_strides()[0].is_symbolic());
  EXPECT_EQ(x.sym_strides()[0].str(), "s1*s2");
  EXPECT_EQ(x.sym_strides()[2].as_int(), 1);
  EXPECT_TRUE(x.sym_numel().is_symbolic());
  EXPECT_EQ(x.sym_numel().str(), "s0*s1*s2");
  const Tensor plain = make_tensor({5, 4}, DType::float32);
  EXPECT_FALSE(plain.sym_numel().is_symbolic());
  EXPECT_EQ(plain.numel(), 20);
}

TEST_F(SymbolicTensors, T191_derived_tensors_share_the_symbol) {
  const Tensor x = symbolic({10, 4}, "x");
  const Tensor wide = expand(x, {x.sym_sizes()[0], x.sym_sizes()[1]});
  EXPECT_TRUE(guard(wide.sym_sizes()[0] > 3));
  EXPECT_EQ(guards(), Texts{"s0 > 3"});
  EXPECT_TRUE(guard(x.sym_sizes()[0] > 3));
  EXPECT_EQ(env->guards().size(), 1U);
}

TEST_F(SymbolicTensors, T194_a_meta_tensor_of_a_symbolic_size) {
  const SymInt n = env->create_size(5, "n");
  const Tensor out = empty({n}, DType::float32, {}, Device("meta"));
  EXPECT_TRUE(identical(out.sym_sizes()[0], n));
  EXPECT_EQ(out.device().str(), "meta");
}

struct SeesArguments : Mode {
  ModeSlot slot() const override { return ModeSlot::user; }
  Value call(const Operator& op, const Values& args) override {
    seen = args;
    return call_next(op, args);
  }
  Values seen;
};

TEST_F(SymbolicTensors, T219_a_symbolic_number_reaches_the_dispatcher) {
  const Tensor x = symbolic({5, 4}, "x");
  const SymInt alpha = env->create_size(7, "alpha");
  SeesArguments mode;
  {
    const ModeScope scope(mode);
    (void)add(x, x, alpha);
  }
  ASSERT_EQ(mode.seen.size(), 3U);
  EXPECT_TRUE(identical(mode.seen[2].to_scalar().sym_int(), alpha)) << "the same node";
  EXPECT_TRUE(guards().empty());
}

TEST_F(SymbolicTensors, T222_tensors_of_symbolic_values_hold_their_examples) {
  const std::vector<SymInt> values{env->create_size(2, "a"), env->create_size(3, "b"), env->create_size(5, "c")};
  for (const DType dtype : {DType::uint8, DType::int8, DType::int16, DType::int32, DType::int64, DType::float16,
                            DType::bfloat16, DType::float32, DType::float64}) {
    for (size_t i = 0; i < values.size(); ++i) {
      const Tensor t = full({SymInt(1)}, Scalar(values[i].guard_int()), dtype);
      EXPECT_EQ(t.dtype(), dtype);
      EXPECT_EQ(t.item_as<int64_t>(), std::vector<int64_t>({2, 3, 5})[i]);
    }
  }
}

}  // namespace
}  // namespace calque::symbolic_rows_test
