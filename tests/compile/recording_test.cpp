// Recordings of failing backends, and running them again.
#include "calque/compile/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/compile/compile.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/operators.h"
#include "support/error_support.h"
#include "support/folder_support.h"

namespace calque::recording_test {
namespace {

using testing::HasSubstr;

// Refuses products, as long as it is told to.
bool refuses = true;
void register_refusing() {
  static const bool once = [] {
    register_backend("refusing", [](std::shared_ptr<GraphModule> graph, const Values& examples) -> CompiledGraph {
      for (const Node* n : graph->graph().nodes())
        if (refuses && n->target().qualified_name().find("linear") != std::string::npos)
          throw UserError("no product of " + str(examples.at(0).to_tensor().sym_sizes()) + " here");
      return lookup_backend("eager")(graph, examples);
    });
    return true;
  }();
  static_cast<void>(once);
}

TEST(Recordings, a_failing_backend_fails_again) {
  register_refusing();
  const test::TemporaryFolder folder;
  set_recording_folder(folder.path(""));
  CompileOptions options;
  options.backend = "refusing";
  options.name = "net";
  const auto net = compile(std::make_shared<Linear>(4, 3), options);
  EXPECT_THAT(test::error_of([&] { net.call({ones({2, 4})}); }), HasSubstr("no product of [2, 4] here"));
  set_recording_folder("");
  const Recording recording = Recording::read(folder.path("recording_0.json"));
  EXPECT_EQ(recording.function, "net");
  EXPECT_EQ(recording.backend, "refusing");
  EXPECT_THAT(recording.graph, HasSubstr("aten.linear.default"));
  const Replayed again = replay(recording);
  EXPECT_TRUE(again.is_same) << again.error;
  EXPECT_EQ(replay(recording, "calque").error, "");
  refuses = false;
  EXPECT_EQ(replay(recording).error, "");
  refuses = true;
}

TEST(Recordings, nothing_is_written_where_nobody_asked) {
  register_refusing();
  set_recording_folder("");
  CompileOptions options;
  options.backend = "refusing";
  EXPECT_NE(test::error_of([&] { compile(std::make_shared<Linear>(4, 3), options).call({ones({2, 4})}); }), "");
}

TEST(Recordings, what_is_none_is_one_error) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(test::error_of([&] { Recording::read(folder.write("a.json", "{}")); }), HasSubstr("a.json"));
  EXPECT_THAT(test::error_of([&] { Recording::read(folder.write("b.json", "[1")); }), HasSubstr("b.json"));
  EXPECT_THAT(test::error_of([&] { replay({"f", "", "why", "%x = placeholder"}); }), HasSubstr("name a backend"));
  EXPECT_THAT(test::error_of([&] { replay({"f", "eager", "why", "no graph"}); }), HasSubstr("line 1"));
}

}  // namespace
}  // namespace calque::recording_test
