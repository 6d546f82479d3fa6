// Joint graphs taken apart. What both passes must give is what an eager pass gives.
#include "calque/trace/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/grad/autograd.h"
#include "calque/graph/interpreter.h"
#include "calque/nn/functional.h"
#include "calque/op/ops.h"
#include "calque/tensor/generator.h"
#include "calque/trace/joint.h"
#include "support/error_support.h"
#include "trace/min_cut.h"

namespace calque::partition_test {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Function = std::function<Value(const Values&)>;

size_t calls(const GraphModule& module, const std::string& name) {
  size_t out = 0;
  for (const Node* n : module.graph().nodes()) out += n->op() && n->op()->schema().name == name;
  return out;
}

Values detached(const Values& values) {
  Values out;
  for (const Value& v : values) out.push_back(v.is_tensor() ? Value(v.to_tensor().detach()) : v);
  return out;
}

// Runs both passes of the partition, with ones for tangents, and compares with an eager pass over the same random numbers.
void expect_eager_results(const Partition& p, const Function& f, const Values& primals, size_t num_forward) {
  manual_seed(3);
  const Values all = Interpreter(std::as_const(*p.forward).graph()).run(detached(primals)).to_items();
  ASSERT_EQ(all.size(), num_forward + p.saved.size());
  Values given(all.begin() + static_cast<std::ptrdiff_t>(num_forward), all.end());
  manual_seed(3);
  const Values eager = f(primals).to_items();
  TensorVector outputs, seeds, leaves;
  for (const Value& v : eager) {
    if (!v.to_tensor().requires_grad()) continue;
    outputs.push_back(v.to_tensor());
    seeds.push_back(ones_like(v.to_tensor().detach()));
    given.emplace_back(seeds.back());
  }
  for (const Value& v : primals)
    if (v.to_tensor().requires_grad()) leaves.push_back(v.to_tensor());
  const TensorVector expected = grad(outputs, leaves, {.grad_outputs = seeds});
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(allclose(all[i].to_tensor(), eager[i].to_tensor().detach())) << i;
  size_t next = 0;
  const Values results = Interpreter(std::as_const(*p.backward).graph()).run(given).to_items();
  for (const Value& v : results) {
    if (!v.is_tensor()) continue;
    EXPECT_TRUE(allclose(v.to_tensor(), expected.at(next++)));
  }
  EXPECT_EQ(next, expected.size());
}

Tensor leaf(NumberList<SymInt> sizes) { return rand(sizes).set_requires_grad(); }

Value waves(const Values& v) { return tuple({v[0].to_tensor().sin().cos().exp().sigmoid()}); }

Value block(const Values& v) {
  const Tensor h = gelu(v[0].to_tensor().matmul(v[1].to_tensor()));
  return tuple({layer_norm(h, {6}).softmax(-1), h.sum().detach()});
}

Value dropped(const Values& v) { return tuple({functional::dropout(v[0].to_tensor(), 0.5, true) * v[1].to_tensor()}); }

TEST(MinCut, cuts_where_it_costs_least) {
  MinCut network(4);
  network.add_edge(0, 1, 5);
  network.add_edge(0, 2, 2);
  network.add_edge(1, 2, 4);
  network.add_edge(1, 3, 1);
  network.add_edge(2, 3, 9);
  EXPECT_THAT(network.source_side(0, 3), ElementsAre(true, false, false, false));
  MinCut endless(2);
  endless.add_edge(0, 1, MinCut::unbounded);
  EXPECT_THROW(endless.source_side(0, 1), InternalError);
}

TEST(Partition, both_kinds_compute_what_an_eager_pass_does) {
  struct Case {
    Function f;
    Values primals;
    size_t outputs;
  };
  for (const Case& c : {Case{waves, {leaf({4, 3})}, 1}, Case{block, {leaf({5, 4}), leaf({4, 6})}, 2},
                        Case{dropped, {leaf({7, 2}), leaf({7, 2})}, 1}}) {
    const JointGraph joint = trace_joint(c.f, c.primals);
    expect_eager_results(default_partition(*joint.module, c.outputs), c.f, c.primals, c.outputs);
    expect_eager_results(min_cut_rematerialization_partition(*joint.module, c.outputs), c.f, c.primals, c.outputs);
  }
}

TEST(Partition, pointwise_calls_are_made_again_rather_than_kept) {
  const JointGraph joint = trace_joint(waves, {leaf({4, 3})});
  const Partition all = default_partition(*joint.module, 1);
  const Partition least = min_cut_rematerialization_partition(*joint.module, 1);
  EXPECT_EQ(least.saved_bytes, 4u * 3u * 4u);
  EXPECT_THAT(least.saved, ElementsAre("primals_1"));
  EXPECT_GT(all.saved_bytes, least.saved_bytes);
  EXPECT_EQ(calls(*least.backward, "exp"), 1u);
}

// Keeping all four is dearer in bytes; each of them computed again is dearer in calls.
TEST(Partition, a_price_of_calls_keeps_more) {
  const JointGraph joint = trace_joint(waves, {leaf({4, 3})});
  const Partition dear = min_cut_rematerialization_partition(*joint.module, 1, {.price = 10.0});
  EXPECT_GT(dear.saved_bytes, min_cut_rematerialization_partition(*joint.module, 1).saved_bytes);
  EXPECT_EQ(calls(*dear.backward, "exp"), 0u);
  EXPECT_THAT(error_of([&] { min_cut_rematerialization_partition(*joint.module, 1, {.price = -1.0}); }),
              HasSubstr("expected a price of 0 or more, found -1"));
}

TEST(Partition, products_and_random_numbers_are_never_made_again) {
  const JointGraph joint = trace_joint(block, {leaf({5, 4}), leaf({4, 6})});
  const Partition p = min_cut_rematerialization_partition(*joint.module, 2);
  EXPECT_EQ(calls(*p.forward, "mm"), 1u);
  EXPECT_EQ(calls(*p.backward, "mm"), 2u);  // the gradients' own
  const JointGraph random = trace_joint(dropped, {leaf({7, 2}), leaf({7, 2})});
  const Partition q = min_cut_rematerialization_partition(*random.module, 1);
  for (const Node* n : std::as_const(*q.backward).graph().nodes())
    EXPECT_FALSE(n->op() && n->op()->has_tag(Tag::random)) << n->str();
}

TEST(Partition, sizes_may_be_symbols) {
  const auto env = ShapeEnv::make();
  const auto fake = FakeMode::make({.env = env, .allow_non_fake_inputs = true});
  const auto f = [](const Values& v) -> Value {
    const Tensor& x = v[0].to_tensor();
    return tuple({(x.sin() / x.sym_size(0)).sum({0})});
  };
  Tensor x = rand({5, 3});
  SymbolicContext context;
  context.sizes = {DimDynamic::dynamic_size, DimDynamic::static_size};
  context.constraint_sizes.resize(2);
  const Tensor symbolic = fake->from_tensor(x, Source::local("x"), &context);
  symbolic.set_requires_grad();
  const JointGraph joint = trace_joint(f, {symbolic});
  for (const Partition& p : {default_partition(*joint.module, 1), min_cut_rematerialization_partition(*joint.module, 1)})
    for (const int64_t rows : {5, 8}) expect_eager_results(p, f, {leaf({rows, 3})}, 1);
}

TEST(Partition, says_what_is_no_joint_graph) {
  const auto forward = aot_export_joint_simple(waves, {rand({2})}, {.trace_joint = false});
  EXPECT_THAT(error_of([&] { default_partition(*forward, 1); }), HasSubstr("with placeholders tangents_1, ..., found none"));
  const JointGraph joint = trace_joint(waves, {leaf({2})});
  EXPECT_THAT(error_of([&] { default_partition(*joint.module, 5); }), HasSubstr("at least 5 outputs, found 2"));
  EXPECT_THAT(error_of([&] { default_partition(*joint.module, 2); }),
              HasSubstr("depends on a tangent; is num_forward right?"));
}

}  // namespace
}  // namespace calque::partition_test
