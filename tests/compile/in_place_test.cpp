// Modules that are compiled where they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/compile/compile.h"
#include "calque/nn/hook_kinds.h"
#include "calque/nn/nn.h"
#include "calque/op/ops.h"
#include "calque/trace/make_fx.h"

namespace calque::in_place_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Net : Typed<Net> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> linear = child<Linear>("linear", 3, 2);
  int calls = 0;
  Tensor forward(const Tensor& x) {
    ++calls;
    return linear(x).relu();
  }
};

TEST(CompileInPlace, calls_of_the_module_run_what_was_captured) {
  const NoGradGuard off;
  const auto net = std::make_shared<Net>();
  const Tensor x = rand({4, 3});
  const Tensor expected = (*net)(x);
  const Compiled compiled = compile_in_place(*net, {.verify = false});
  const int before = net->calls;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(allclose((*net)(x), expected));
  EXPECT_TRUE(allclose(net->call({x}).to_tensor(), expected));
  EXPECT_EQ(net->calls, before + 1);  // the capture
  EXPECT_EQ(compiled.cache_size(), 1u);
}

TEST(CompileInPlace, hooks_run_with_it_and_make_another_capture) {
  const NoGradGuard off;
  const auto net = std::make_shared<Net>();
  const Compiled compiled = compile_in_place(*net, {.verify = false});
  const Tensor x = rand({4, 3}), plain = (*net)(x);
  HookHandle handle =
      net->register_forward_hook([](Module&, const Values&, const Kwargs&, const Value& result) -> std::optional<Value> {
        return result.to_tensor() + 1;
      });
  EXPECT_TRUE(allclose((*net)(x), plain + 1));
  EXPECT_EQ(compiled.cache_size(), 2u);
  handle.remove();
  EXPECT_TRUE(allclose((*net)(x), plain));
}

TEST(CompileInPlace, inside_of_traces_it_is_the_module_itself) {
  const NoGradGuard off;
  const auto net = std::make_shared<Net>();
  const Compiled compiled = compile_in_place(*net);
  const TracedGraph traced = make_fx([&](const Tensor& x) { return (*net)(x); })(rand({4, 3}));
  EXPECT_THAT(traced.graph().str(), HasSubstr("aten.relu.default"));
  EXPECT_EQ(compiled.cache_size(), 0u);
}

TEST(CompileInPlace, the_module_goes_with_what_was_made_of_it) {
  std::weak_ptr<Module> gone;
  {
    const auto net = std::make_shared<Net>();
    compile_in_place(*net);
    (*net)(rand({4, 3}));
    gone = net;
  }
  EXPECT_TRUE(gone.expired());
}

TEST(Hooks, are_counted_by_kind) {
  Net net;
  EXPECT_TRUE(hooks_of(net).empty());
  HookHandle first = net.register_forward_pre_hook([](Module&, const Values&, const Kwargs&) { return std::nullopt; });
  net.register_forward_pre_hook([](Module&, const Values&, const Kwargs&) { return std::nullopt; });
  net.register_state_dict_post_hook([](Module&, StateDict&, const std::string&) {});
  EXPECT_THAT(hooks_of(net), ElementsAre(HookCount{HookKind::forward_pre, 2}, HookCount{HookKind::state_dict_post, 1}));
  first.remove();
  EXPECT_EQ(hooks_of(net).at(0).count, 1u);
}

}  // namespace
}  // namespace calque::in_place_test
