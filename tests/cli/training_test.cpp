// What Ctrl-C leaves of calque train.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/cli_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::training_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> training(const test::TemporaryFolder& folder, const std::string& output, int steps) {
  return {"train",        test::source_folder() + "/assets/tiny-lm",
          "--data",       folder.path("lines.txt"),
          "-o",           folder.path(output),
          "--steps",      std::to_string(steps),
          "--batch-size", "1",
          "--schedule",   "constant",
          "--save-every", "1",
          "--lr",         "1e-4"};
}

int last_step(const fs::path& folder) {
  int most = 0;
  if (!fs::exists(folder)) return 0;
  for (const std::string& name : test::names_in(folder))
    if (name.starts_with("checkpoint-") && name.find('.') == std::string::npos)
      most = std::max(most, std::stoi(name.substr(11)));
  return most;
}

TEST(Training, ctrl_c_finishes_the_step_and_loses_nothing) {
  const test::TemporaryFolder folder;
  folder.write("lines.txt", "one river went north\nthe old city was quiet\na third line\n");
  cli_test::Process process(training(folder, "stopped", 100000));
  ASSERT_TRUE(process.stop_when([&] { return last_step(folder / "stopped") >= 1; }));
  process.send(SIGINT);
  process.resume();
  const cli_test::Process::Ending ending = process.wait();
  EXPECT_EQ(ending.status, 130) << ending.out;
  EXPECT_THAT(ending.out, testing::HasSubstr("calque: stopping after this step, with a checkpoint"));
  const int done = last_step(folder / "stopped");
  EXPECT_THAT(ending.out,
              testing::HasSubstr("stopped at step " + std::to_string(done) + "; the same command with --resume"));

  std::vector<std::string> resumed = training(folder, "stopped", done + 2);
  resumed.emplace_back("--resume");
  EXPECT_EQ(cli_test::Process(resumed).wait().status, 0);
  EXPECT_EQ(cli_test::Process(training(folder, "whole", done + 2)).wait().status, 0);
  EXPECT_TRUE(test::read_file(folder / "stopped/model.safetensors") == test::read_file(folder / "whole/model.safetensors"));
}

TEST(Training, lora_saves_an_adapter_that_commands_take_as_a_model) {
  const test::TemporaryFolder folder;
  folder.write("lines.txt", "one river went north\nthe old city was quiet\na third line\n");
  const auto with_lora = [&](const std::string& output, int steps, const std::vector<std::string>& more = {}) {
    std::vector<std::string> out = training(folder, output, steps);
    out.insert(out.end(), {"--lora", "r=2,alpha=4,targets=q_proj+v_proj,dropout=0.1"});
    out.insert(out.end(), more.begin(), more.end());
    return cli_test::Process(out).wait();
  };
  EXPECT_EQ(with_lora("adapter", 2).status, 0);
  EXPECT_TRUE(fs::exists(folder / "adapter/adapter_config.json"));
  EXPECT_FALSE(fs::exists(folder / "adapter/model.safetensors"));
  const cli_test::Process::Ending written =
      cli_test::Process({"generate", folder.path("adapter"), "-p", "one", "--max-new-tokens", "3", "--greedy"}).wait();
  EXPECT_EQ(written.status, 0) << written.out;
  // As a model of its own.
  const cli_test::Process::Ending merged =
      cli_test::Process({"save", folder.path("adapter"), "-o", folder.path("merged"), "--merge"}).wait();
  EXPECT_EQ(merged.status, 0) << merged.out;
  EXPECT_TRUE(fs::exists(folder / "merged/model.safetensors"));
  EXPECT_TRUE(fs::exists(folder / "merged/tokenizer.json"));
  EXPECT_FALSE(fs::exists(folder / "merged/adapter_config.json"));
  const cli_test::Process::Ending about = cli_test::Process({"info", folder.path("adapter")}).wait();
  EXPECT_THAT(about.out, testing::HasSubstr("LORA r=2  q_proj, v_proj"));
  // Goes on with the same bits.
  EXPECT_EQ(with_lora("parts", 2).status, 0);
  EXPECT_EQ(with_lora("parts", 3, {"--resume"}).status, 0);
  EXPECT_EQ(with_lora("whole", 3).status, 0);
  EXPECT_TRUE(test::read_file(folder / "parts/adapter_model.safetensors") ==
              test::read_file(folder / "whole/adapter_model.safetensors"));
  std::vector<std::string> wrong = training(folder, "wrong", 1);
  wrong.insert(wrong.end(), {"--lora", "rank=2"});
  const cli_test::Process::Ending refused = cli_test::Process(wrong).wait();
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.out, testing::HasSubstr("--lora: expected r=8,alpha=16,... with r, alpha, dropout"));
}

}  // namespace
}  // namespace calque::training_test
