// Command lines as a person would type them, with what must come: tests/cli/command_lines.txt says how they are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/cli_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::command_lines_test {
namespace {

using cli_test::Result;
using cli_test::shell_run;

struct CommandLine {
  std::string name, command;
  int status = -1;
  std::vector<std::string> wanted, unwanted;
};

struct CommandLines {
  std::vector<std::string> preparation;
  std::vector<CommandLine> cases;
};

CommandLines read_command_lines() {
  const std::string path = test::source_folder() + "/tests/cli/command_lines.txt";
  std::ifstream in(path);
  CommandLines out;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with("# ") || line.starts_with("#   ")) continue;
    if (line.starts_with("> ")) {
      out.preparation.push_back(line.substr(2));
    } else if (line.starts_with("== ")) {
      out.cases.push_back({line.substr(3), "", -1, {}, {}});
    } else if (out.cases.empty()) {
      throw std::runtime_error(path + ": expected a case before '" + line + "'");
    } else if (line.starts_with("$ ")) {
      out.cases.back().command = line.substr(2);
    } else if (CommandLine& last = out.cases.back(); last.status < 0) {
      last.status = std::stoi(line);
    } else if (line.starts_with("! ")) {
      last.unwanted.push_back(line.substr(2));
    } else {
      last.wanted.push_back(line);
    }
  }
  return out;
}

const CommandLines& command_lines() {
  static const CommandLines lines = read_command_lines();
  return lines;
}

class CommandLineTest : public testing::TestWithParam<CommandLine> {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder;
    for (const std::string& command : command_lines().preparation) {
      const Result r = run(command);
      if (r.status != 0) throw std::runtime_error(command + ": " + r.out);
    }
  }
  static void TearDownTestSuite() { delete folder_; }

  // In the folder, where nothing of the user's own settings counts.
  static Result run(const std::string& command) {
    return shell_run("cd '" + folder_->path("") +
                     "' && unset HF_HUB_CACHE HUGGINGFACE_HUB_CACHE TRANSFORMERS_CACHE HF_HOME && "
                     "export TREE='" +
                     test::source_folder() + "' XDG_CACHE_HOME=\"$PWD/no_cache\" PATH=\"" + test::program_folder() +
                     ":$PATH\" && " + command);
  }

 private:
  static test::TemporaryFolder* folder_;
};
test::TemporaryFolder* CommandLineTest::folder_ = nullptr;

TEST_P(CommandLineTest, gives_what_must_come) {
  const CommandLine& line = GetParam();
  const Result r = run(line.command);
  EXPECT_EQ(r.status, line.status) << line.command << "\n" << r.out;
  for (const std::string& text : line.wanted) EXPECT_THAT(r.out, testing::HasSubstr(text)) << line.command;
  for (const std::string& text : line.unwanted) EXPECT_THAT(r.out, testing::Not(testing::HasSubstr(text))) << line.command;
  // What is wrong is the program's own message, on lines that say so; never a bug or a crash.
  if (line.status == 2) {
    EXPECT_THAT(r.out, testing::HasSubstr("calque: ")) << line.command;
  }
  EXPECT_THAT(r.out, testing::Not(testing::HasSubstr("internal error"))) << line.command;
}

std::string name_of_case(const testing::TestParamInfo<CommandLine>& info) {
  std::string out = info.param.name;
  for (char& c : out)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) c = '_';
  return out;
}

INSTANTIATE_TEST_SUITE_P(Typed, CommandLineTest, testing::ValuesIn(command_lines().cases), name_of_case);

TEST(CommandLineTable, has_at_least_120_cases_and_each_says_something) {
  EXPECT_GE(command_lines().cases.size(), 120U);
  for (const CommandLine& line : command_lines().cases) {
    EXPECT_GE(line.status, 0) << line.name;
    EXPECT_FALSE(line.command.empty()) << line.name;
    EXPECT_FALSE(line.wanted.empty()) << line.name;
  }
}

// The page is made from the registry; `calque models --markdown > docs/models.md` makes it anew.
TEST(ModelsPage, is_what_the_registry_has) {
  std::ifstream in(test::source_folder() + "/docs/models.md");
  const std::string page((std::istreambuf_iterator<char>(in)), {});
  EXPECT_TRUE(page == cli_test::calque_run("models --markdown").out)  // both texts together are 30 kB
      << "docs/models.md is stale; run: calque models --markdown > docs/models.md";
}

}  // namespace
}  // namespace calque::command_lines_test
