#include "layering.h"
#include "definitions.h"
#include "include_graph.h"
#include "support/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <regex>

namespace calque::layering {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Layering, no_room_includes_upwards) {
  const fs::path root = test::source_folder();
  const auto rooms = read_rooms(root / "cmake/rooms.txt");
  ASSERT_GE(rooms.size(), 16u);
  for (const auto& violation : find_violations(root, rooms)) ADD_FAILURE() << violation;
}

TEST(Layering, no_two_headers_define_the_same_type) {
  for (const auto& twin : find_twins(test::source_folder())) ADD_FAILURE() << twin;
}

// A thread has one context (base/thread_context.h): what a scope switches is a member of it. What stands here is something else.
TEST(Layering, threads_have_one_context) {
  const std::map<std::string, std::string> known = {
      {"include/calque/base/thread_context.h: context", "the context"},
      {"src/base/thread_context.cpp: context", "the context"},
      {"src/base/small_blocks.cpp: kept", "memory kept for reuse"},
      {"src/base/small_blocks.cpp: closer", "gives it back when the thread ends"},
      {"src/base/thread.cpp: inside_chunk",
       "the thread pool's own: a thread works on a chunk for as long as the chunk runs"},
      {"src/kernel/cpu/scratch.cpp: buffers", "memory kept for reuse"},
      {"src/op/operator.cpp: filling", "the table is asked again by the thread that fills it, before any scope can be open"},
  };
  const std::vector<std::string> found = find_thread_locals(test::source_folder());
  for (const std::string& one : found)
    EXPECT_TRUE(known.contains(one)) << one << ": make it a member of ThreadContext, or say here what else it is";
  for (const auto& [one, reason] : known) EXPECT_THAT(found, testing::Contains(one)) << "is gone: " << reason;
}

TEST(Layering, no_list_of_operators_stands_outside_of_op) {
  for (const auto& literal : find_operator_names(test::source_folder())) ADD_FAILURE() << literal;
}

// A new enumerator has to be thought of wherever the enumeration is: list the cases, ask a function of it, or write ifs.
TEST(Layering, no_switch_over_an_enumeration_has_a_default) {
  const std::set<std::string> foreign = {"Json::value_t"};  // nlohmann's
  for (const DefaultedSwitch& found : find_defaulted_switches(test::source_folder()))
    EXPECT_TRUE(foreign.contains(found.enumeration)) << found.place << ": a default beside cases of " << found.enumeration;
}

// Files of stanzas whose functions nearly everything calls. Each holds those functions alone: no operator is added to it.
const std::set<std::string> called_everywhere = {"cat", "empty", "like", "where", "zeros"};

// A new operator changes its family's header and ops.h, which includes all families: who includes them is compiled again.
TEST(Layering, an_operator_of_any_family_reaches_a_fifth_of_the_sources_at_most) {
  const fs::path root = test::source_folder();
  const IncludeGraph graph(root);
  ASSERT_GT(graph.sources().size(), 500u);
  const std::set<std::string> of_all = graph.readers("calque/op/ops.h");
  for (const std::string& source : of_all)
    EXPECT_FALSE(source.starts_with("src/")) << source << " reads ops.h, so each new operator compiles it again";
  for (const auto& stanzas : fs::directory_iterator(root / "src/op/aten")) {
    const std::string family = stanzas.path().stem();
    std::set<std::string> readers = graph.readers("calque/op/aten/" + family + ".h");
    readers.insert(of_all.begin(), of_all.end());
    if (called_everywhere.contains(family)) continue;
    EXPECT_LE(readers.size() * 5, graph.sources().size())
        << family << ".h; include the families that a file calls (calque/op/aten/<family>.h), not ops.h";
  }
}

// The same of what the compiler is given: groups of files.
TEST(Layering, an_operator_of_any_family_dirties_a_fifth_of_the_groups_at_most) {
  const fs::path root = test::source_folder();
  const auto groups = compiled_groups(root, fs::path(test::program_folder()).parent_path());
  ASSERT_GT(groups.size(), 50u);
  const IncludeGraph graph(root);
  for (const auto& stanzas : fs::directory_iterator(root / "src/op/aten")) {
    const std::string family = stanzas.path().stem();
    if (called_everywhere.contains(family)) continue;
    std::set<std::string> readers = graph.readers("calque/op/aten/" + family + ".h");
    readers.insert("src/op/aten/" + family + ".cpp");
    const auto dirty = 1 + std::count_if(groups.begin(), groups.end(), [&](const std::set<std::string>& members) {
                         return std::any_of(members.begin(), members.end(),
                                            [&](const std::string& file) { return readers.contains(file); });
                       });  // and the fronts of the family
    EXPECT_LE(static_cast<size_t>(dirty) * 5, groups.size()) << family << ".h: " << dirty << " groups include it";
  }
}

TEST(Layering, sources_include_only_families_whose_operators_they_call) {
  const fs::path headers = fs::path(test::program_folder()).parent_path() / "generated/include/calque/op/aten";
  for (const auto& needless : find_needless_families(test::source_folder(), headers)) ADD_FAILURE() << needless;
}

// A test's name says a behaviour in words, behind the ids of the rows that it stands for: T042_views_keep_their_base.
TEST(Layering, tests_are_named_in_one_style) {
  const std::regex declares(R"re(^TEST(?:_F|_P)?\((\w+), (\w+)\).*)re");
  const std::regex style(R"re((?:[A-Z]+\d+_)*[a-z0-9_]+)re");
  for (const auto& file : fs::recursive_directory_iterator(fs::path(test::source_folder()) / "tests")) {
    if (file.path().extension() != ".cpp") continue;
    std::ifstream in(file.path());
    std::string line;
    for (std::smatch match; std::getline(in, line);)
      if (std::regex_match(line, match, declares)) {
        EXPECT_TRUE(std::regex_match(match[2].str(), style)) << file.path().filename() << ": " << match[2];
      }
  }
}

TEST(Layering, functions_have_at_most_90_lines) {
  // Lists, whose entries are functions of their own: stanzas, decompositions, cases of drivers, layers by name.
  const std::regex list(R"re(src/op/aten/\w+\.cpp register_\w+|src/trace/decompositions/\w+\.cpp decompose_\w+)re"
                        R"re(|tests/peers/(export|capture)/\w+\.cpp add_\w+)re"
                        R"re(|tests/nn/layers_support\.cpp (activations_and_shapes|weighted_layers))re");
  std::vector<Definition> all =
      find_definitions(test::source_folder(), {"include", "src", "tests", "bench", "tools", "fuzz", "examples"});
  ASSERT_GT(all.size(), 10000u);
  std::erase_if(all, [&](const Definition& d) { return std::regex_match(d.file + " " + d.name, list); });
  for (const std::string& one : find_long_functions(all, 90)) ADD_FAILURE() << one;
}

TEST(Layering, files_have_at_most_800_lines) {
  for (const char* folder : {"include", "src", "tests", "bench", "tools", "fuzz", "examples"})
    for (const auto& file : fs::recursive_directory_iterator(fs::path(test::source_folder()) / folder)) {
      if (file.path().extension() != ".cpp" && file.path().extension() != ".h") continue;
      std::ifstream in(file.path());
      std::string line;
      int lines = 0;
      bool is_made = false;
      for (; std::getline(in, line); ++lines) is_made = is_made || (lines == 0 && line.starts_with("// Made by"));
      EXPECT_TRUE(lines <= 800 || is_made) << file.path() << " has " << lines << " lines";
    }
}

TEST(Layering, files_of_a_room_can_be_compiled_together) {
  for (const std::string& one : find_hidden_twins(find_definitions(test::source_folder(), {"src"}))) ADD_FAILURE() << one;
}

TEST(Layering, every_test_checks_something) {
  const std::vector<Definition> tests = find_definitions(test::source_folder(), {"tests"});
  ASSERT_GT(std::count_if(tests.begin(), tests.end(), [](const Definition& d) { return d.is_test(); }), 2000);
  for (const std::string& one : find_tests_without_checks(tests)) ADD_FAILURE() << one;
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

TEST_F(Checker, allows_own_room_lower_rooms_and_the_world_outside) {
  write("src/op/a.cpp",
        "#include \"calque/op/a.h\"\n#include \"tensor/b.h\"\n#include <calque/base/c.h>\n#include <sys/mman.h>\n"
        "#include \"local.h\"\n#include <vector>\n// #include \"calque/zoo/x.h\"\n");
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(Checker, finds_an_upward_include_in_a_public_header) {
  write("include/calque/base/a.h", "#pragma once\n#include \"calque/tensor/b.h\"\n");
  EXPECT_THAT(violations(),
              ElementsAre("include/calque/base/a.h:2: 'base' includes 'calque/tensor/b.h', and 'tensor' is above it"));
}

TEST_F(Checker, finds_an_upward_include_of_a_private_header_however_it_is_spelt) {
  write("src/base/deep/a.cpp", "#include \"op/x.h\"\n  #  include <calque/op/y.h>  // why\n#include \"../../tensor/z.h\"\n");
  EXPECT_THAT(violations(),
              ElementsAre("src/base/deep/a.cpp:1: 'base' includes 'op/x.h', and 'op' is above it",
                          "src/base/deep/a.cpp:2: 'base' includes 'calque/op/y.h', and 'op' is above it",
                          "src/base/deep/a.cpp:3: 'base' includes '../../tensor/z.h', and 'tensor' is above it"));
}

TEST_F(Checker, finds_a_public_header_that_includes_a_private_one) {
  write("include/calque/op/a.h", "#include \"op/table.h\"\n");
  EXPECT_THAT(violations(), ElementsAre("include/calque/op/a.h:1: a public header includes the private 'op/table.h'"));
}

TEST_F(Checker, finds_a_room_that_includes_the_umbrella_header) {
  write("include/calque/calque.h", "#include \"calque/op/a.h\"\n");
  write("src/op/a.cpp", "#include \"calque/calque.h\"\n");
  EXPECT_THAT(violations(),
              ElementsAre("src/op/a.cpp:1: 'calque/calque.h' belongs to no room, so it may include all of them"));
}

TEST_F(Checker, finds_folders_and_includes_outside_the_list_of_rooms) {
  write("src/attic/a.cpp", "");
  write("src/op/a.cpp", "#include \"calque/cellar/b.h\"\n");
  EXPECT_THAT(violations(), ElementsAre("src/attic:0: 'attic' is not in the list of rooms",
                                        "src/op/a.cpp:1: 'calque/cellar/b.h' is in 'cellar', which is no room"));
}

TEST_F(Checker, finds_types_that_two_headers_define) {
  write("include/calque/op/a.h", "namespace calque {\nstruct Options {\n  struct Own {};\n};\n");
  write("src/op/b.h", "namespace calque {\nclass Options final : public Base {\n  struct Own {};\n};\nstruct Other;\n");
  write("src/op/c.h", "namespace calque::kernel {\nenum class Options { none };\ntemplate <>\nstruct Other<int> {\n};\n");
  EXPECT_THAT(find_twins(root_), ElementsAre("calque::Options: include/calque/op/a.h and src/op/b.h"));
}

TEST_F(Checker, finds_the_variables_of_threads_wherever_they_stand) {
  write("include/calque/op/a.h", "extern thread_local constinit const Slot* slot;  // thread_local int not_this;\n");
  write("src/op/b.cpp",
        "// thread_local bool nor_this = false;\nstatic thread_local std::optional<DType> dtype;\nint a_thread_local = 1;\n"
        "  thread_local std::array<Buffer, static_cast<size_t>(Scratch::count)> buffers;\n  constinit thread_local Kept "
        "kept{};\n");
  write("src/op/c.cpp", "static __thread int depth = 0;\nthread_local\n    int below = 0;\n");
  EXPECT_THAT(find_thread_locals(root_),
              ElementsAre("include/calque/op/a.h: slot", "src/op/b.cpp: buffers", "src/op/b.cpp: dtype",
                          "src/op/b.cpp: kept", "src/op/c.cpp: ", "src/op/c.cpp: depth"));
}

TEST_F(Checker, finds_operators_by_name_outside_of_op_and_of_comments) {
  write("src/op/a.cpp", "get_operator(\"aten::add\");\n");
  write("include/calque/op/a.h", "get_operator(\"aten::add\");\n");
  write("include/calque/graph/a.h", "// \"aten::add\"\nconst char* url = \"a//b\"; f(\"aten::add\");\n");
  write("src/graph/a.cpp",
        "/* \"aten::add\"\n \"aten::mul\" */\nf('\"', \"aten::\" + name);\nf(\"paten::x\");  // \"aten::y\"\n");
  EXPECT_THAT(find_operator_names(root_),
              ElementsAre("include/calque/graph/a.h:2: an operator by its name; say it in the stanza or in op/well_known.h",
                          "src/graph/a.cpp:3: an operator by its name; say it in the stanza or in op/well_known.h"));
}

TEST_F(Checker, finds_functions_of_many_lines) {
  write("src/op/a.cpp",
        "namespace calque {\nstruct Kept {\n  explicit Kept(int n) : n_{n}, text_(\"}\") {\n    // }\n    use(n);\n  }\n  "
        "int n_ = {};\n};\n"
        "template <class T, int n = (2 > 1)>\nauto&& Kept::operator[](const std::map<int, T>& of) const -> T {\n  return "
        "{\n  };\n}\n"
        "MACRO(x)\nstatic const int table[] = {1,\n 2,\n 3,\n 4, 5};\nint below() { return 1; }\n}\n");
  const std::vector<Definition> found = find_definitions(root_, {"src"});
  EXPECT_THAT(find_long_functions(found, 3),
              ElementsAre("src/op/a.cpp:3: Kept has 4 lines", "src/op/a.cpp:9: ] has 5 lines"));
  EXPECT_THAT(find_long_functions(found, 0), testing::Contains("src/op/a.cpp:19: below has 1 lines"));
}

TEST_F(Checker, finds_names_that_clash_when_files_of_a_room_are_compiled_together) {
  write("src/op/a.cpp",
        "namespace calque {\nnamespace {\nint grain = 1;\nnamespace fs = std; using Key = int; using Sizes = List;\nstruct "
        "Row {\n  int size() { return 1; }\n};\n"
        "template <class T>\nstruct Sum {};\ntemplate <>\nstruct Sum<int> {};\nint f(const Row& row, int n = 3) { return n; "
        "}\n"
        "void g(int) {}\n}\nvoid h() {}\n}\n");
  write("src/op/deep/b.cpp",
        "namespace calque {\nnamespace {\nconstexpr long grain[] = {1};\nnamespace fs = std; using Key = int; using Sizes = "
        "Array;\nclass Row final : public A "
        "{\n  int size() { return 1; }\n};\n"
        "template <>\nstruct Sum<float> {};\nint f(const Row& other, int);\nint f(const Row& other, int m) { return m; "
        "}\nvoid g(long) {}\n}\nvoid h() {}\n}\n");
  write("src/graph/c.cpp", "namespace calque {\nnamespace {\nint grain = 1;\n}\n}\n");
  EXPECT_THAT(find_hidden_twins(find_definitions(root_, {"src"})),
              ElementsAre("src/op/deep/b.cpp:3: grain is also in src/op/a.cpp:3",
                          "src/op/deep/b.cpp:4: Sizes is also in src/op/a.cpp:4",
                          "src/op/deep/b.cpp:5: Row is also in src/op/a.cpp:5",
                          "src/op/deep/b.cpp:11: f is also in src/op/a.cpp:12"));
}

TEST_F(Checker, finds_tests_that_check_nothing) {
  write("tests/op/a_test.cpp",
        "void same(int a) { EXPECT_EQ(a, 1); }\nvoid alike(int a) { same(a); }\nint half(int a) { return a / 2; }\n"
        "TEST(Halves, are_half) { alike(half(2)); }\nTEST(Halves, are_not_whole) {\n  half(2);  // EXPECT_EQ\n}\n"
        "TEST_F(Halves, of_python) { CALQUE_NOT_APPLICABLE(\"of Python\"); }\nTEST(Halves, fail) { FAIL() << 1; }\n");
  EXPECT_THAT(find_tests_without_checks(find_definitions(root_, {"tests"})),
              ElementsAre("tests/op/a_test.cpp:5: Halves.are_not_whole checks nothing"));
}

TEST_F(Checker, finds_switches_over_enumerations_with_a_default) {
  write("src/op/a.cpp",
        "switch (c) {\n  case 'a': return Kind::list;\n  case 3: switch (k) {\n    case op::Kind::list: { f(\"}\"); }\n"
        "    default: break;  // why\n  }\n  default: return 0;\n}\n");
  write("src/op/b.cpp",
        "switch (k) {\n  case Kind::list: if (a) { default_value(); }\n  case Kind::tuple: break;\n}\n"
        "struct A { A() = default; };\n/* switch (k) { case Kind::list: default: } */\n");
  write("tests/op/c.cpp", "switch (k) {\n  default: break;\n  case Kind::list:\n  case Kind::tuple: break;\n}\n");
  std::vector<std::string> found;
  for (const DefaultedSwitch& one : find_defaulted_switches(root_)) found.push_back(one.place + " " + one.enumeration);
  EXPECT_THAT(found, ElementsAre("src/op/a.cpp:5 op::Kind", "tests/op/c.cpp:2 Kind"));
}

TEST_F(Checker, finds_who_reads_a_header) {
  write("include/calque/op/a.h", "#include \"calque/op/made.h\"\n");
  write("src/op/b.h", "#include <calque/op/a.h>\n");
  write("src/op/b.cpp", "#include \"op/b.h\"\n");
  write("src/op/deep/c.cpp", "#include \"../b.h\"\n");
  write("src/op/d.cpp", "// #include \"op/b.h\"\n#include \"b.cpp\"\n");
  write("tests/op/e.cpp", "#include <vector>\n");
  const IncludeGraph graph(root_);
  EXPECT_THAT(graph.sources(), ElementsAre("src/op/b.cpp", "src/op/d.cpp", "src/op/deep/c.cpp", "tests/op/e.cpp"));
  EXPECT_THAT(graph.readers("calque/op/made.h"), ElementsAre("src/op/b.cpp", "src/op/d.cpp", "src/op/deep/c.cpp"));
  EXPECT_THAT(graph.readers("src/op/b.h"), ElementsAre("src/op/b.cpp", "src/op/d.cpp", "src/op/deep/c.cpp"));
  EXPECT_THAT(graph.readers("calque/op/other.h"), IsEmpty());
}

TEST_F(Checker, reads_the_list_of_rooms_without_its_comments) {
  write("rooms.txt", "# lowest first\nbase\n\nop\n");
  EXPECT_THAT(read_rooms(root_ / "rooms.txt"), ElementsAre("base", "op"));
}

}  // namespace
}  // namespace calque::layering
