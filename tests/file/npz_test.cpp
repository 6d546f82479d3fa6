// .npz files: what numpy wrote (fuzz/corpus/npz) is read; what numpy reads of ours is compared by tests/peers/compile.py.
#include "calque/file/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "calque/base/error.h"
#include "calque/op/make.h"
#include "calque/op/ops.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::npz_test {
namespace {

using testing::HasSubstr;

std::string corpus(const std::string& name) { return test::source_folder() + "/fuzz/corpus/npz/" + name; }

TEST(Npz, what_numpy_wrote_is_read) {
  const NamedArrays two = load_npz(corpus("two.npz"));
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].first, "x");
  EXPECT_TRUE(equal(two[0].second, arange(6).to(DType::float32).view({2, 3})));
  EXPECT_EQ(two[1].second.dtype(), DType::bool_);
  const NamedArrays compressed = load_npz(corpus("compressed.npz"));
  ASSERT_EQ(compressed.size(), 2u);
  EXPECT_EQ(compressed[0].first, "a/b");
  EXPECT_EQ(compressed[0].second.item<double>(), 2.5);
  EXPECT_EQ(compressed[1].second.numel(), 12);
  EXPECT_TRUE(load_npz(corpus("empty.npz")).empty());
}

TEST(Npz, what_is_written_reads_the_same) {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "x.npz").string();
  const NamedArrays arrays = {{"a", arange(5)}, {"b.weight", ones({2, 0, 3})}, {"c", tensor(1.5).to(DType::float16)}};
  save_npz(path, arrays);
  const NamedArrays read = load_npz(path);
  ASSERT_EQ(read.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read[i].first, arrays[i].first);
    EXPECT_EQ(read[i].second.dtype(), arrays[i].second.dtype());
    EXPECT_TRUE(equal(read[i].second, arrays[i].second));
  }
}

std::string refusal(const std::function<void()>& run) {
  try {
    run();
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Npz, names_and_entries_that_are_no_arrays_are_refused) {
  EXPECT_THAT(refusal([] { serialize_npz({{"x", ones({1})}, {"x", ones({1})}}); }), HasSubstr("found 'x' twice"));
  for (const char* name : {"", "/x", "../x", "a/../../x", "a\\b"})
    EXPECT_THAT(refusal([&] { serialize_npz({{name, ones({1})}}); }), HasSubstr("names of files below the archive")) << name;
  EXPECT_THAT(refusal([] { read_npz({}, "f.npz"); }), HasSubstr("f.npz"));
  EXPECT_THAT(refusal([] { load_npz(test::source_folder() + "/README.md"); }), HasSubstr("README.md"));
}

}  // namespace
}  // namespace calque::npz_test
