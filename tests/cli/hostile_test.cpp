// Programs from strangers (tests/cli/hostile), run as a user runs them: refused with one line and status 2, or answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "calque/export/export.h"
#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/op/ops.h"
#include "cli/cli_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::hostile_test {
namespace {

using cli_test::calque_run;
using cli_test::Result;
using testing::StartsWith;

const std::string hostile_folder = test::source_folder() + "/tests/cli/hostile/";

void expect_refused(const Result& r) {
  EXPECT_EQ(r.status, 2) << r.out;
  EXPECT_THAT(r.out, StartsWith("calque: "));
}

class HostileProgram : public testing::TestWithParam<const char*> {};
TEST_P(HostileProgram, is_refused) { expect_refused(calque_run("run " + hostile_folder + GetParam() + ".pt2")); }
INSTANTIATE_TEST_SUITE_P(Files, HostileProgram,
                         testing::Values("reshape_alias_read", "reshape_alias_write", "repeat_interleave_wrap",
                                         "bce_empty_target", "fractional_max_pool2d_kernel", "ctc_loss_label",
                                         "batch_norm_backward_short", "adaptive_avg_pool2d_backward_short", "mvlgamma_p"),
                         [](const auto& test) { return std::string(test.param); });

TEST(HostileInputs, counts_that_add_up_to_nothing_are_refused) {
  expect_refused(calque_run("run " + hostile_folder + "repeat_interleave_honest.pt2 --inputs " + hostile_folder +
                            "repeat_interleave_inputs.safetensors"));
}

// Bytes other than 0 and 1 in a bool tensor are true, in counting and in writing alike.
TEST(HostileBools, any_byte_but_zero_is_true) {
  const test::TemporaryFolder folder;
  const std::string out = folder.path("out.safetensors");
  Result r = calque_run("run " + hostile_folder + "masked_select_bool_bytes.pt2");  // selects, and gives something else
  EXPECT_EQ(r.status, 0) << r.out;
  r = calque_run("run " + hostile_folder + "index_bool_bytes.pt2 --outputs " + out);
  ASSERT_EQ(r.status, 0) << r.out;
  EXPECT_EQ(SafetensorsFile::open(out).tensor("0").numel(), 12);
}

// Each tensor would be allowed, all of them are not.
TEST(HostileMemory, many_nodes_of_a_gigabyte_are_refused) {
  const test::TemporaryFolder folder;
  const auto f = traceable(
      [](const Tensor& x) -> Value {
        Values all;
        for (int i = 0; i < 2'000; ++i) all.emplace_back(x.new_empty({1 << 28}));
        return tuple(all);
      },
      {"x"});
  save_program(export_program(f, {zeros({1})}), folder.path("p.pt2"), {.sync = false});
  save_safetensors(folder.path("in.safetensors"), {{"x", zeros({1})}});
  const Result r =
      calque_run("run " + folder.path("p.pt2") + " --inputs " + folder.path("in.safetensors") + " --memory-limit 8G");
  expect_refused(r);
  EXPECT_THAT(r.out, testing::HasSubstr("out of memory"));
}

TEST(HostileDtypes, a_function_without_a_formula_for_a_dtype_is_refused) {
  const Result r = calque_run("run " + hostile_folder + "pow_complex.pt2");
  EXPECT_EQ(r.status, 2) << r.out;
  EXPECT_THAT(r.out, testing::HasSubstr("not implemented for dtype complex"));
}

}  // namespace
}  // namespace calque::hostile_test
