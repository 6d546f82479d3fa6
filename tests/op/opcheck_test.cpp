// The golden sample: a few cases of each operator, made by PyTorch (tools/opcheck/make_golden.sh). One test an operator.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <limits>
#include <map>
#include <memory>

#include "op/opcheck_support.h"
#include "support/paths.h"

namespace calque::opcheck {
namespace {

const std::string folder = test::source_folder() + "/tests/op/golden/";

const CaseFile& golden(const std::string& name) {
  static std::map<std::string, std::unique_ptr<CaseFile>> loaded;
  auto& file = loaded[name];
  if (!file) file = std::make_unique<CaseFile>(folder + name + ".jsonl");
  return *file;
}

class GoldenTest : public testing::Test {
 public:
  GoldenTest(std::string file, std::string op) : file_(std::move(file)), op_(std::move(op)) {}
  void TestBody() override {
    const CaseFile& file = golden(file_);
    Report report;
    report.op = op_;
    for (size_t i = 0; i < file.size(); ++i)
      if (file.operator_at(i) == op_) run_case(file, file.at(i), {}, report);
    finish(report);
    const auto gaps =
        read_gaps(test::source_folder() + "/tests/op/" + (file_ == "gradients" ? "gradient_gaps.tsv" : "known_gaps.tsv"));
    if (!report.failures.empty() && gaps.contains(op_) && gaps.at(op_).allows(report.failed(), report.cases))
      GTEST_SKIP() << "known gap: " << gaps.at(op_).what;
    for (const Failure& f : report.failures) ADD_FAILURE() << f.id << ": " << f.call << "\n" << f.what;
  }

 private:
  std::string file_, op_;
};

// The tests' names come from the files, so they are registered before main looks for tests.
const bool registered = [] {
  for (const std::string name : {"cases", "guards", "errors", "gradients"}) {
    std::map<std::string, bool> ops;
    const CaseFile& file = golden(name);
    for (size_t i = 0; i < file.size(); ++i) {
      const std::string op = file.operator_at(i);
      if (find_operator(op) != nullptr) ops[op] = true;
    }
    for (const auto& [op, present] : ops)
      testing::RegisterTest(("Golden_" + name).c_str(), op.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [name, op = op]() -> GoldenTest* { return new GoldenTest(name, op); });
  }
  return true;
}();

TEST(Opcheck, tells_one_ulp_from_three) {
  const float a[] = {1.0F, 2.0F};
  float b[] = {1.0F, 2.0F};
  Elements x{reinterpret_cast<const char*>(a), DType::float32, {2}, {1}, 0};
  Elements y{reinterpret_cast<const char*>(b), DType::float32, {2}, {1}, 0};
  EXPECT_FALSE(compare(x, y, {}, Check::pointwise, "", nullptr));
  b[1] = 2.0F + 2 * 0x1p-22F;
  EXPECT_FALSE(compare(x, y, {}, Check::pointwise, "", nullptr));
  EXPECT_TRUE(compare(x, y, {}, Check::exact, "", nullptr));
  b[1] = 2.0F + 3 * 0x1p-22F;
  EXPECT_TRUE(compare(x, y, {}, Check::pointwise, "", nullptr));
  // Closer to float64 than PyTorch is never wrong.
  const double reference[] = {1.0, 2.0};
  EXPECT_FALSE(compare(x, y, {reinterpret_cast<const char*>(reference), sizeof reference}, Check::pointwise, "", nullptr));
}

TEST(Opcheck, tells_zeros_apart_and_takes_nan_for_nan) {
  const float a[] = {0.0F}, b[] = {-0.0F}, n[] = {std::numeric_limits<float>::quiet_NaN()};
  const auto one = [](const float* p) { return Elements{reinterpret_cast<const char*>(p), DType::float32, {1}, {1}, 0}; };
  EXPECT_TRUE(compare(one(a), one(b), {}, Check::pointwise, "", nullptr));
  EXPECT_TRUE(compare(one(a), one(b), {}, Check::exact, "", nullptr));
  EXPECT_FALSE(compare(one(n), one(n), {}, Check::exact, "", nullptr));
  EXPECT_TRUE(compare(one(n), one(a), {}, Check::pointwise, "", nullptr));
}

TEST(Opcheck, holds_bfloat16_to_pytorchs_rounding) {
  const BFloat16 a[] = {BFloat16(1.0F)}, b[] = {BFloat16(1.0078125F)};
  Elements x{reinterpret_cast<const char*>(a), DType::bfloat16, {1}, {1}, 0};
  Elements y{reinterpret_cast<const char*>(b), DType::bfloat16, {1}, {1}, 0};
  const auto with = [&](double r) {
    return compare(x, y, {reinterpret_cast<const char*>(&r), sizeof r}, Check::pointwise, "", nullptr);
  };
  EXPECT_TRUE(with(1.0078));                 // clearly nearer to PyTorch's
  EXPECT_FALSE(with(1.00390625 + 0x1p-23));  // one float32 step from the middle
  EXPECT_TRUE(with(1.00390625 + 0x1p-20));
}

TEST(Opcheck, averages_the_errors_of_sums) {
  Report report;
  report.op = "sum";
  const float good[] = {1.0F}, off[] = {1.0F + 8 * 0x1p-23F};
  const double reference[] = {1.0};
  const auto one = [](const float* p) { return Elements{reinterpret_cast<const char*>(p), DType::float32, {1}, {1}, 0}; };
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(compare(one(off), one(good), {reinterpret_cast<const char*>(reference), sizeof reference},
                         Check::accumulate, "x", &report.errors));
  finish(report);
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_NE(report.failures[0].what.find("RMS error"), std::string::npos);
}

}  // namespace
}  // namespace calque::opcheck
