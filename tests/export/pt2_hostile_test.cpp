// Archives that are cut off, damaged or made to hurt: each is one UserError (bad_file), quickly and without much memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>
#include <functional>
#include <random>

#include "calque/base/error.h"
#include "calque/export/unflatten.h"
#include "calque/file/pickle.h"
#include "export/pt2_support.h"
#include "support/error_support.h"
#include "support/json_changes.h"

namespace calque::pt2_hostile_test {
namespace {

using namespace pt2_test;
using nlohmann::json;

double processor_seconds() {  // of this thread: what others do does not count
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What loading says; empty when it loads. Anything but a UserError(bad_file) leaves the test.
std::string error_of(const std::string& archive) {
  const double start = processor_seconds();
  std::string message = test::error_of([&] { load_bytes(archive); }, ErrorKind::bad_file);
  EXPECT_LT(processor_seconds() - start, 1.0);
  return message;
}

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

const std::string program_entry = "models/model.json";

class HostileProgram : public testing::Test {
 protected:
  std::string archive = read_file(golden("two_layers_dynamic.pt2"));
  json program = json::parse(entry(archive, program_entry));
  json& graph = program.at("graph_module").at("graph");
  std::string error() { return error_of(with_entry(archive, program_entry, program.dump())); }
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(HostileProgram, cut_off_anywhere) {
  for (size_t length = 0; length < archive.size(); length += length < 2000 ? 17 : 211)
    EXPECT_NE(error_of(archive.substr(0, length)), "") << length;
}

TEST_F(HostileProgram, a_damaged_program_is_noticed) {
  std::string damaged = archive;
  damaged[damaged.find("\"graph_module\"") + 3] ^= 1;
  EXPECT_HAS(error_of(damaged), "is damaged");
}

// Every value of the program, replaced by values of other kinds.
void for_each_place(json& here, const std::function<void(json&)>& visit) {
  if (here.is_object() || here.is_array())
    for (auto& child : here) for_each_place(child, visit);
  visit(here);
}

TEST_F(HostileProgram, wrong_types_anywhere) {
  const std::vector<json> others = {nullptr,
                                    true,
                                    -1,
                                    1e300,
                                    "text",
                                    json::array(),
                                    json::object(),
                                    json::array({json::object()}),
                                    {{"as_int", INT64_MAX}},
                                    INT64_MAX,
                                    INT64_MIN};
  size_t count = 0;
  for (json& node : graph.at("nodes")) node.at("metadata").erase("stack_trace");
  for_each_place(program, [&](json& place) {
    const json kept = place;
    place = others[count++ % others.size()];
    error();  // a UserError, or the value did not matter
    place = kept;
  });
  EXPECT_GT(count, 400U);
  EXPECT_EQ(error(), "");
}

// Programs that say something else than their writers meant, loaded and used in every way that runs no kernel: UserErrors at most.
TEST_F(HostileProgram, random_changes_and_every_use) {
  std::mt19937 chance(1);
  size_t loaded = 0;
  for (const char* name :
       {"two_layers_dynamic", "cond", "auto_functionalized_two", "preserved_modules", "nested_inputs", "state"}) {
    const std::string file = read_file(golden(std::string(name) + ".pt2"));
    const test::Json original = test::Json::parse(entry(file, program_entry));
    for (int i = 0; i < 400; ++i) {
      test::Json changed = original;
      for (size_t times = 1 + chance() % 3; times > 0; --times) test::change_one(changed, chance);
      const std::string bytes = with_entry(file, program_entry, changed.dump());
      std::shared_ptr<const ExportedProgram> p;
      const auto use = [&](const std::function<void()>& step) {
        try {
          step();
        } catch (const UserError&) {
        }
      };
      use([&] { p = load_bytes(bytes); });
      if (!p) continue;
      ++loaded;
      use([&] { p->graph_module().print_readable(); });
      use([&] { load_bytes(serialize_program(*p)); });
      use([&] { p->run_decompositions(); });
      use([&] { p->module(); });
      use([&] { unflatten(*p); });
    }
  }
  EXPECT_GT(loaded, 400U);
}

TEST_F(HostileProgram, members_missing_anywhere) {
  for_each_place(program, [&](json& place) {
    if (!place.is_object()) return;
    const json kept = place;
    for (const auto& [key, value] : kept.items()) {
      place.erase(key);
      error();
      place = kept;
    }
  });
  EXPECT_EQ(error(), "");
}

TEST_F(HostileProgram, uses_before_definition_and_two_definitions) {
  json& nodes = graph.at("nodes");
  std::swap(nodes[0], nodes[1]);
  EXPECT_HAS(error(), "before it is defined");
  std::swap(nodes[0], nodes[1]);
  nodes.push_back(nodes[0]);
  EXPECT_HAS(error(), "defined twice");
}

TEST_F(HostileProgram, an_unknown_argument_is_named) {
  graph.at("nodes")[0].at("inputs")[0].at("name") = "weights";
  EXPECT_HAS(error(), "two_layers_dynamic/models/model.json: node linear: ");
  EXPECT_HAS(error(), "aten::linear has no argument named weights");
}

TEST_F(HostileProgram, another_schema_is_refused) {
  program.at("schema_version").at("major") = 9;
  EXPECT_HAS(error(), "its schema version is 9.20, expected 8.x");
  program.at("schema_version") = {{"major", 8}, {"minor", 99}};  // minor versions are compatible
  EXPECT_EQ(error(), "");
}

TEST_F(HostileProgram, subgraphs_without_end) {
  const std::string empty =
      R"({"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}, "sym_int_values": {}, "sym_bool_values": {}})";
  std::string nested;
  const int depth = 20'000;
  const std::string open =
      R"({"inputs": [], "outputs": [], "tensor_values": {}, "sym_int_values": {}, "sym_bool_values": {}, "nodes": [{"target": "torch.ops.higher_order.cond", "outputs": [], "metadata": {}, "inputs": [{"name": "", "kind": 1, "arg": {"as_graph": {"name": "g", "graph": )";
  for (int i = 0; i < depth; ++i) nested += open;
  nested += empty;
  for (int i = 0; i < depth; ++i) nested += "}}}]}]}";
  json outer = program;
  outer.at("graph_module").at("graph") = "PLACE";
  std::string whole = outer.dump();
  whole.replace(whole.find("\"PLACE\""), 7, nested);
  EXPECT_HAS(error_of(with_entry(archive, program_entry, whole)), "nested deeper");
}

TEST_F(HostileProgram, expressions_without_end) {
  std::string deep;
  for (int i = 0; i < 20'000; ++i) deep += "Add(Integer(1), ";
  for (auto& [name, meta] : graph.at("tensor_values").items())
    meta.at("sizes")[0] = {{"as_expr", {{"expr_str", deep}, {"hint", nullptr}}}};
  EXPECT_NE(error(), "");
  for (auto& [name, meta] : graph.at("tensor_values").items())
    meta.at("sizes")[0] = {{"as_expr", {{"expr_str", "__import__('os').system('true')"}, {"hint", nullptr}}}};
  EXPECT_NE(error(), "");
}

TEST_F(HostileProgram, sizes_that_overflow) {
  for (const int64_t size : {INT64_MAX, int64_t{1} << 60, int64_t{-1}, INT64_MIN}) {
    for (auto& [name, meta] : graph.at("tensor_values").items())
      if (meta.at("sizes")[0].contains("as_int")) meta.at("sizes")[0] = {{"as_int", size}};
    EXPECT_NE(error(), "") << size;
  }
}

TEST_F(HostileProgram, weights_outside_their_files) {
  const std::string config = "data/weights/model_weights_config.json";
  const auto with = [&](const std::function<void(json&)>& change) {
    json c = json::parse(entry(archive, config));
    change(c.at("config").at("a.weight"));
    return error_of(with_entry(archive, config, c.dump()));
  };
  EXPECT_EQ(with([](json&) {}), "");
  EXPECT_HAS(with([](json& w) { w["path_name"] = "weight_99"; }),
             "the entry two_layers_dynamic/data/weights/weight_99 is missing");
  EXPECT_HAS(with([](json& w) { w["path_name"] = "../../models/model.json"; }), "is missing");
  EXPECT_HAS(with([](json& w) { w["tensor_meta"]["sizes"][0]["as_int"] = 7; }), "reach element");
  EXPECT_HAS(with([](json& w) { w["tensor_meta"]["storage_offset"]["as_int"] = int64_t{1} << 62; }), "the storage has 36");
  EXPECT_HAS(with([](json& w) { w["tensor_meta"]["strides"][0]["as_int"] = INT64_MAX; }), "overflow");
  EXPECT_HAS(with([](json& w) { w["tensor_meta"]["strides"][0]["as_int"] = -1; }), "negative");
  EXPECT_HAS(with([](json& w) { w["tensor_meta"]["dtype"] = 99; }), "the dtype number 99 is unknown");
  EXPECT_HAS(with([](json& w) { w["tensor_meta"]["layout"] = 1; }), "sparse");
  EXPECT_HAS(with([](json& w) { w["is_param"] = false; }),
             "State dict entry for parameter a.weight is not an instance of torch.nn.Parameter");
  EXPECT_HAS(with([](json& w) { w.erase("is_param"); }), "is_param");
}

TEST_F(HostileProgram, a_few_bytes_that_claim_to_be_many) {
  const long before = peak_kilobytes();
  // An empty file stands for zeros, as PyTorch has it; they cost nothing until they are read.
  const std::string config = "data/weights/model_weights_config.json";
  json c = json::parse(entry(archive, config));
  json& weight = c.at("config").at("a.weight");
  weight["path_name"] = "weight_empty";
  weight["tensor_meta"]["sizes"] = {{{"as_int", int64_t{1} << 20}}, {{"as_int", int64_t{1} << 14}}};
  weight["tensor_meta"]["strides"] = {{{"as_int", int64_t{1} << 14}}, {{"as_int", 1}}};
  error_of(with_entry(with_entry(archive, config, c.dump()), "data/weights/weight_empty", ""));
  weight["tensor_meta"]["sizes"][0]["as_int"] = int64_t{1} << 60;
  EXPECT_NE(error_of(with_entry(with_entry(archive, config, c.dump()), "data/weights/weight_empty", "")), "");
  EXPECT_LT(peak_kilobytes() - before, 100 * 1024);
}

TEST_F(HostileProgram, sample_inputs_with_code) {
  using namespace std::string_literals;
  const std::string inputs = "data/sample_inputs/model.pt";
  EXPECT_EQ(error_of(with_entry(archive, inputs, "")), "");
  EXPECT_HAS(error_of(with_entry(archive, inputs, "nonsense")), "expected a checkpoint of torch.save, found a text file");
  const std::string good = entry(archive, inputs);
  const std::string bad = with_entry(good, "data.pkl",
                                     "\x80\x02"
                                     "cos\nsystem\nX\4\0\0\0true\x85R."s);
  EXPECT_HAS(error_of(with_entry(archive, inputs, bad)), "os.system");
}

TEST_F(HostileProgram, an_archive_of_something_else) {
  EXPECT_HAS(error_of(with_entry(archive, "archive_format", "pt3")), "archive_format is 'pt3', expected 'pt2'");
  EXPECT_HAS(error_of(with_entry(archive, "byteorder", "big")), "big-endian");
  EXPECT_HAS(error_of(with_entry(archive, "byteorder", "middle")), "unknown byte order 'middle', expected 'little'");
  EXPECT_HAS(error_of(write_pickle(Value(1))),
             "expected a .pt2 program of torch.export.save, found a checkpoint of torch.save");
  EXPECT_HAS(error_of(""), "expected a .pt2 program of torch.export.save, found an empty file");
}

}  // namespace
}  // namespace calque::pt2_hostile_test
