// compare_tensors against the verdicts and figures of PyTorch's same() (golden/same.jsonl, written by
// tools/golden/same.py), and what only Calque does: sizes, names, packed dtypes.
#include "calque/file/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "file/file_support.h"

namespace calque::compare_test {
namespace {

using file_test::file_of;
using file_test::read_lines;
using file_test::tensor_from;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SameOptions options_from(const nlohmann::json& o) {
  SameOptions out;
  out.tol = o.value("tol", out.tol);
  out.equal_nan = o.value("equal_nan", false);
  out.cosine = o.value("cos_similarity", false);
  out.exact_dtype = o.value("exact_dtype", true);
  out.ignore_non_float = o.value("ignore_non_fp", false);
  out.larger_multiplier_for_small = o.value("use_larger_multiplier_for_smaller_tensor", false);
  out.max_multiplier = o.value("force_max_multiplier", false);
  if (o.value("use_iou_for_bool", false)) out.bool_iou = o.value("iou_threshold", 0.99);
  return out;
}

void expect_near(const nlohmann::json& line, const char* figure, double found) {
  if (!line.contains(figure)) return;
  const double expected = line[figure].get<double>();
  EXPECT_NEAR(found, expected, 1e-12 * std::max(1.0, std::abs(expected))) << figure;
}

TEST(Compare, agrees_with_pytorch) {
  const auto lines = read_lines("same.jsonl");
  std::vector<Tensor> tensors;
  for (const auto& t : lines[0]) tensors.push_back(tensor_from(t));
  int count = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    const auto& line = lines[i];
    const Tensor a = tensors[line["a"].get<size_t>()], b = tensors[line["b"].get<size_t>()];
    const Tensor reference = line.contains("reference") ? tensors[line["reference"].get<size_t>()] : Tensor();
    const TensorComparison c = compare_tensors(a, b, reference, options_from(line["options"]));
    if (!line.contains("skip")) {
      ++count;
      EXPECT_EQ(c.same, line["same"].get<bool>()) << c.reason << "\n" << line.dump() << "\n" << a.str() << "\n" << b.str();
    }
    EXPECT_THAT(c.reason, testing::Not(IsEmpty()));
    if (c.reason.starts_with("ignored") || c.reason.starts_with("dtype")) continue;
    expect_near(line, "max_abs", c.max_abs);
    expect_near(line, "rmse", c.rmse);
    expect_near(line, "cosine", c.max_abs == 0 ? line.value("cosine", 1.0) : c.cosine);
    if (c.a_error) expect_near(line, "a_error", *c.a_error);
    if (c.b_error) expect_near(line, "b_error", *c.b_error);
  }
  EXPECT_GE(count, 1000);
}

TEST(Compare, strides_do_not_matter) {
  const Tensor a = tensor_of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor stored = tensor_of<float>({1, 4, 2, 5, 3, 7}, {3, 2});
  const TensorComparison c = compare_tensors(a, make_view(stored, {2, 3}, {1, 2}, 0));
  EXPECT_FALSE(c.same);
  EXPECT_EQ(c.max_abs, 1);
  EXPECT_EQ(c.worst, 5);
  EXPECT_EQ(c.outside_tol, 1);
  EXPECT_EQ(c.reason, "1 of 6 elements are outside tolerance 0.0001");
}

TEST(Compare, sizes_must_agree) {
  const Tensor a = tensor_of<float>({1, 1, 1}, {3});
  const TensorComparison c = compare_tensors(a, tensor_of<float>({1}, {1}));
  EXPECT_FALSE(c.same);
  EXPECT_EQ(c.reason, "sizes [3] against [1]");
  EXPECT_EQ(compare_tensors(a, tensor_of<int32_t>({1, 1, 1}, {3})).reason, "dtype float32 against int32");
  EXPECT_THROW(compare_tensors(a, a, tensor_of<double>({1}, {1})), UserError);
  SameOptions bad;
  bad.tol = -1;
  EXPECT_THROW(compare_tensors(a, a, {}, bad), UserError);
}

TEST(Compare, ignoring_leaves_floating_tensors_in) {
  SameOptions options;
  options.ignore_non_float = true;
  EXPECT_FALSE(compare_tensors(tensor_of<float>({1}, {1}), tensor_of<float>({2}, {1}), {}, options).same);
  EXPECT_TRUE(compare_tensors(tensor_of<int64_t>({1}, {1}), tensor_of<int64_t>({2}, {1}), {}, options).same);
}

TEST(Compare, eight_bit_floats_are_compared_as_float32) {
  const auto e4m3 = [](float v) { return tensor_of<Float8E4M3FN>({Float8E4M3FN(v)}, {1}); };
  SameOptions wide;
  wide.tol = 0.1;
  EXPECT_TRUE(compare_tensors(e4m3(1.0F), e4m3(1.125F), {}, wide).same);
  EXPECT_FALSE(compare_tensors(e4m3(1.0F), e4m3(1.25F), {}, wide).same);
}

TEST(CompareFiles, names_dtypes_and_values) {
  TemporaryFolder folder;
  const Tensor x = tensor_of<float>({1, 2}, {2}), y = tensor_of<float>({1, 2.5}, {2}), n = tensor_of<int32_t>({1, 2}, {2});
  save_safetensors(folder.path("a"), {{"same", x}, {"value", x}, {"type", x}, {"left", x}}, std::nullopt, true,
                   SharedTensors::written_each);
  save_safetensors(folder.path("b"), {{"same", x}, {"value", y}, {"type", n}, {"right", x}}, std::nullopt, true,
                   SharedTensors::written_each);
  const SafetensorsFile a = SafetensorsFile::open(folder.path("a")), b = SafetensorsFile::open(folder.path("b"));
  const FileComparison c = compare_files(a, b);
  EXPECT_FALSE(c.same);
  EXPECT_THAT(c.only_in_a, ElementsAre("left"));
  EXPECT_THAT(c.only_in_b, ElementsAre("right"));
  ASSERT_EQ(c.tensors.size(), 3U);
  EXPECT_TRUE(c.tensors[0].result.same);
  EXPECT_EQ(c.tensors[1].result.reason, "dtype float32 against int32");
  EXPECT_EQ(c.tensors[2].result.max_abs, 0.5);
  EXPECT_TRUE(compare_files(a, a, &a).same);

  save_safetensors(folder.path("r"), {{"same", x}});
  const SafetensorsFile r = SafetensorsFile::open(folder.path("r"));
  try {
    compare_files(a, b, &r);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("the reference has no tensor 'type'"));
  }
}

TEST(CompareFiles, packed_dtypes_by_their_bytes) {
  TemporaryFolder folder;
  const std::string header = R"({"p":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})";
  const auto open = [&](const char* name, const std::string& data) {
    return SafetensorsFile::open(folder.write(name, file_of(header, data)));
  };
  const SafetensorsFile a = open("a", "xy"), b = open("b", "xy"), c = open("c", "xz");
  EXPECT_TRUE(compare_files(a, b).same);
  EXPECT_FALSE(compare_files(a, c).same);
}

}  // namespace
}  // namespace calque::compare_test
