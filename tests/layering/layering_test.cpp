#include "layering.h"
#include "support/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace calque::layering {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Layering, NoRoomIncludesUpwards) {
  const fs::path root = test::source_folder();
  const auto rooms = read_rooms(root / "cmake/rooms.txt");
  ASSERT_GE(rooms.size(), 16u);
  for (const auto& violation : find_violations(root, rooms)) ADD_FAILURE() << violation;
}

TEST(Layering, NoTwoHeadersDefineTheSameType) {
  for (const auto& twin : find_twins(test::source_folder())) ADD_FAILURE() << twin;
}

TEST(Layering, NoListOfOperatorsStandsOutsideOfOp) {
  for (const auto& literal : find_operator_names(test::source_folder())) ADD_FAILURE() << literal;
}

// The checker itself, on a house of three rooms made for each test.
class Checker : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("calque-layering-" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::vector<std::string> violations() const { return find_violations(root_, {"base", "tensor", "op"}); }

  fs::path root_;
};

TEST_F(Checker, AllowsOwnRoomLowerRoomsAndTheWorldOutside) {
  write("src/op/a.cpp",
        "#include \"calque/op/a.h\"\n#include \"tensor/b.h\"\n#include <calque/base/c.h>\n#include <sys/mman.h>\n"
        "#include \"local.h\"\n#include <vector>\n// #include \"calque/zoo/x.h\"\n");
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(Checker, FindsAnUpwardIncludeInAPublicHeader) {
  write("include/calque/base/a.h", "#pragma once\n#include \"calque/tensor/b.h\"\n");
  EXPECT_THAT(violations(),
              ElementsAre("include/calque/base/a.h:2: 'base' includes 'calque/tensor/b.h', and 'tensor' is above it"));
}

TEST_F(Checker, FindsAnUpwardIncludeOfAPrivateHeaderHoweverItIsSpelt) {
  write("src/base/deep/a.cpp", "#include \"op/x.h\"\n  #  include <calque/op/y.h>  // why\n#include \"../../tensor/z.h\"\n");
  EXPECT_THAT(violations(),
              ElementsAre("src/base/deep/a.cpp:1: 'base' includes 'op/x.h', and 'op' is above it",
                          "src/base/deep/a.cpp:2: 'base' includes 'calque/op/y.h', and 'op' is above it",
                          "src/base/deep/a.cpp:3: 'base' includes '../../tensor/z.h', and 'tensor' is above it"));
}

TEST_F(Checker, FindsAPublicHeaderThatIncludesAPrivateOne) {
  write("include/calque/op/a.h", "#include \"op/table.h\"\n");
  EXPECT_THAT(violations(), ElementsAre("include/calque/op/a.h:1: a public header includes the private 'op/table.h'"));
}

TEST_F(Checker, FindsARoomThatIncludesTheUmbrellaHeader) {
  write("include/calque/calque.h", "#include \"calque/op/a.h\"\n");
  write("src/op/a.cpp", "#include \"calque/calque.h\"\n");
  EXPECT_THAT(violations(),
              ElementsAre("src/op/a.cpp:1: 'calque/calque.h' belongs to no room, so it may include all of them"));
}

TEST_F(Checker, FindsFoldersAndIncludesOutsideTheListOfRooms) {
  write("src/attic/a.cpp", "");
  write("src/op/a.cpp", "#include \"calque/cellar/b.h\"\n");
  EXPECT_THAT(violations(), ElementsAre("src/attic:0: 'attic' is not in the list of rooms",
                                        "src/op/a.cpp:1: 'calque/cellar/b.h' is in 'cellar', which is no room"));
}

TEST_F(Checker, FindsTypesThatTwoHeadersDefine) {
  write("include/calque/op/a.h", "namespace calque {\nstruct Options {\n  struct Own {};\n};\n");
  write("src/op/b.h", "namespace calque {\nclass Options final : public Base {\n  struct Own {};\n};\nstruct Other;\n");
  write("src/op/c.h", "namespace calque::kernel {\nenum class Options { none };\ntemplate <>\nstruct Other<int> {\n};\n");
  EXPECT_THAT(find_twins(root_), ElementsAre("calque::Options: include/calque/op/a.h and src/op/b.h"));
}

TEST_F(Checker, FindsOperatorsByNameOutsideOfOpAndOfComments) {
  write("src/op/a.cpp", "get_operator(\"aten::add\");\n");
  write("include/calque/op/a.h", "get_operator(\"aten::add\");\n");
  write("include/calque/graph/a.h", "// \"aten::add\"\nconst char* url = \"a//b\"; f(\"aten::add\");\n");
  write("src/graph/a.cpp",
        "/* \"aten::add\"\n \"aten::mul\" */\nf('\"', \"aten::\" + name);\nf(\"paten::x\");  // \"aten::y\"\n");
  EXPECT_THAT(find_operator_names(root_),
              ElementsAre("include/calque/graph/a.h:2: an operator by its name; say it in the stanza or in op/well_known.h",
                          "src/graph/a.cpp:3: an operator by its name; say it in the stanza or in op/well_known.h"));
}

TEST_F(Checker, ReadsTheListOfRoomsWithoutItsComments) {
  write("rooms.txt", "# lowest first\nbase\n\nop\n");
  EXPECT_THAT(read_rooms(root_ / "rooms.txt"), ElementsAre("base", "op"));
}

}  // namespace
}  // namespace calque::layering
