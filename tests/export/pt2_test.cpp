// Programs exported by PyTorch 2.13, loaded and run. tools/golden/tiny_llama.py and tools/golden/pt2.py make the files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

#include "calque/base/error.h"
#include "calque/export/export.h"
#include "calque/export/pt2.h"
#include "calque/file/zip.h"
#include "calque/graph/higher_order.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/literal.h"
#include "calque/trace/fake.h"
#include "export/pt2_support.h"
#include "support/error_support.h"

namespace calque::pt2_test {
namespace {

using namespace pt2_test;
using ::testing::HasSubstr;
using json = nlohmann::json;

std::vector<float> read_floats(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::vector<float> out(static_cast<size_t>(in.tellg()) / sizeof(float));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size() * sizeof(float)));
  return out;
}

TEST(Pt2, a_tiny_llama_gives_pytorchs_logits_at_two_lengths) {
  const auto program = load_program(golden("tiny_llama.pt2"));
  for (const int64_t length : {6, 17}) {
    const Tensor ids = (arange(length) * 37).remainder(256).view({1, length});
    const Tensor logits = program->run_flat({ids}).at(0).to_tensor();
    ASSERT_EQ(str(logits.sizes()), "[1, " + std::to_string(length) + ", 256]");
    const std::vector<float> expected = read_floats(golden("tiny_llama_" + std::to_string(length) + ".f32"));
    ASSERT_EQ(expected.size(), static_cast<size_t>(logits.numel()));
    double worst = 0;
    double largest = 1;
    const Tensor dense = logits.contiguous();
    for (size_t i = 0; i < expected.size(); ++i) {
      worst = std::max(worst, std::fabs(static_cast<double>(dense.data_as<float>()[i]) - static_cast<double>(expected[i])));
      largest = std::max(largest, std::fabs(static_cast<double>(expected[i])));
    }
    EXPECT_LE(worst, 1e-5 * largest) << "length " << length;
  }
}

TEST(Pt2, tied_weights_stay_one_storage_and_mapped) {
  const auto program = load_program(golden("tiny_llama.pt2"));
  const Tensor& weight = program->state_dict().at("model.model.embed_tokens.weight");
  EXPECT_EQ(weight.storage().get(), program->state_dict().at("model.lm_head.weight").storage().get());
  EXPECT_TRUE(weight.storage()->is_borrowed());
  EXPECT_THROW(static_cast<void>(weight.mutable_data()), UserError);
}

TEST(Pt2, wrong_files_are_named) {
  try {
    load_program(golden("absent.pt2"));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::bad_file);
    EXPECT_NE(std::string(e.what()).find("absent.pt2"), std::string::npos);
  }
  EXPECT_THROW(load_program(golden("tiny_llama_6.f32")), UserError);
}

class GoldenProgram : public testing::TestWithParam<const char*> {};

TEST_P(GoldenProgram, gives_pytorchs_results_before_and_after_saving) {
  const std::string name = GetParam();
  const auto again = round_trip(*load_golden(name));
  EXPECT_EQ(difference(*load_golden(name), name), "");
  EXPECT_EQ(difference(*again, name), "");
}
INSTANTIATE_TEST_SUITE_P(Pt2, GoldenProgram,
                         testing::Values("basic", "two_layers_dynamic", "state", "tied", "dtypes", "conv_training", "cond",
                                         "nested_cond", "unbacked", "several_results", "list_result", "some_unused",
                                         "keyword_default", "empty_int_list", "shape_arithmetic", "derived", "constants",
                                         "constant_outputs", "constant_inputs", "kwargs", "nested_inputs", "namedtuple",
                                         "mutated_input", "memory_format", "device_dtype", "infinities", "complex_argument",
                                         "optional_tensors", "decomposed_conv", "mapped", "while_loop", "preserved_modules",
                                         "custom_metadata", "unicode", "lstm"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Pt2, the_old_single_json_archive_loads_and_runs) {
  const auto program = load_program(golden("old_form.pt2"));
  EXPECT_EQ(difference(*program, "two_layers_dynamic"), "");
  EXPECT_EQ(program->parts().torch_version, "2.6.0");
  // Without the kinds of arguments, those with a default are keywords, as in PyTorch's loader.
  EXPECT_NE(program->graph_module().code().find("linear = torch.ops.aten.linear.default(x, p_a_weight, bias = p_a_bias)"),
            std::string::npos)
      << program->graph_module().code();
  EXPECT_TRUE(program->parts().example_inputs.has_value());
  EXPECT_EQ(Pt2Archive::open(golden("old_form.pt2")).extra_files().at("extra.txt"), "moo");
  EXPECT_EQ(Pt2Archive::open(golden("old_form.pt2")).schema_version("model"), "8.2");
}

TEST(Pt2, several_models_in_one_archive) {
  const Pt2Archive archive = Pt2Archive::open(golden("several.pt2"));
  EXPECT_EQ(archive.models(), (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(difference(*archive.load("first"), "two_layers_dynamic"), "");
  EXPECT_EQ(difference(*archive.load("second"), "basic"), "");
  try {
    archive.load("third");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("holds no program named 'third'; found first, second"), std::string::npos)
        << e.what();
  }
  const TemporaryFolder folder;
  const auto first = archive.load("first");
  const auto second = archive.load("second");
  save_programs({{"first", first.get()}, {"second", second.get()}}, folder.path("both.pt2"));
  EXPECT_EQ(difference(*Pt2Archive::open(folder.path("both.pt2")).load("second"), "basic"), "");
}

TEST(Pt2, symbols_have_their_ranges_and_hints) {
  const auto program = load_golden("two_layers_dynamic");
  const ShapeEnv& env = *program->graph().shape_env();
  ASSERT_EQ(program->parts().range_constraints.size(), 2U);
  for (const auto& [name, range] : program->parts().range_constraints) EXPECT_EQ(env.symbol(name).range, range) << name;
  const Node* x = program->graph().placeholders().back();
  const SymInt batch = x->meta.val.to_tensor().sym_size(0);
  EXPECT_EQ(env.hint(batch), 3);
  EXPECT_EQ(env.range(batch).upper, 64);
}

TEST(Pt2, a_derived_dimensions_symbol_learns_its_hint) {
  const auto program = load_golden("derived");
  const ShapeEnv& env = *program->graph().shape_env();
  const std::vector<Node*> inputs = program->graph().placeholders();
  EXPECT_EQ(env.hint(inputs.at(0)->meta.val.to_tensor().sym_size(0)), 5);
  EXPECT_EQ(env.hint(inputs.at(1)->meta.val.to_tensor().sym_size(0)), 4);
}

TEST(Pt2, without_weights_tensors_have_shapes_only) {
  LoadProgramOptions options;
  options.weights = false;
  const auto program = load_program(golden("two_layers_dynamic.pt2"), options);
  const Tensor& weight = program->state_dict().at("a.weight");
  EXPECT_TRUE(weight.is_fake());
  EXPECT_EQ(str(weight.sym_sizes()), "[6, 6]");
  EXPECT_EQ(program->graph_module().print_readable(), load_golden("two_layers_dynamic")->graph_module().print_readable());
}

TEST(Pt2, devices_are_mapped) {
  const std::string archive = read_file(golden("device_dtype.pt2"));
  std::string program = entry(archive, "models/model.json");
  for (size_t at = 0; (at = program.find("{\"type\": \"cpu\", \"index\": null}", at)) != std::string::npos;)
    program.replace(at, 30, "{\"type\": \"cuda\", \"index\": 1}  ");
  const std::string on_cuda = with_entry(archive, "models/model.json", program);
  EXPECT_EQ(difference(*load_bytes(on_cuda), "device_dtype"), "");

  LoadProgramOptions keep;
  keep.devices.clear();
  const auto kept = load_bytes(on_cuda, keep);
  EXPECT_EQ(kept->graph().placeholders().back()->meta.val.to_tensor().device(), Device("cuda:1"));
  EXPECT_NE(kept->graph_module().code().find("cuda"), std::string::npos);
  for (size_t at = 0; (at = program.find("\"cuda\", \"index\": 1}  ", at)) != std::string::npos;)
    program.replace(at, 21, "\"mps\", \"index\": 0}   ");
  try {
    load_bytes(with_entry(archive, "models/model.json", program));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find(
                  "the device 'mps:0', which Calque does not have; map it with LoadProgramOptions::devices"),
              std::string::npos)
        << e.what();
  }
}

TEST(Pt2, missing_operators_are_all_listed_when_it_runs) {
  const auto program = load_golden("custom_op");
  EXPECT_NE(program->graph_module().code().find("torch.ops.pt2_cases.scaled.default(args_0, 2.0, dims = [1, 2])"),
            std::string::npos)
      << program->graph_module().code();
  try {
    program->run_flat(golden_inputs(*program, "custom_op"));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unsupported_operator);
    EXPECT_NE(std::string(e.what()).find("%scaled: torch.ops.pt2_cases.scaled.default"), std::string::npos) << e.what();
  }
  const auto saved = saved_json(*program);
  EXPECT_EQ(node_of(saved, "torch.ops.pt2_cases.scaled.default"),
            node_of(nlohmann::json::parse(entry(read_file(golden("custom_op.pt2")), "models/model.json")),
                    "torch.ops.pt2_cases.scaled.default"));
}

TEST(Pt2, containers_that_are_not_known_keep_type_and_context) {
  const std::string archive = read_file(golden("nested_inputs.pt2"));
  std::string program = entry(archive, "models/model.json");
  const std::string list_spec = R"({\"type\": \"builtins.list\", \"context\": \"null\", )";
  const std::string unknown = R"({\"type\": \"some.package.Cache\", \"context\": \"[3, \\\"x\\\"]\", )";
  ASSERT_NE(program.rfind(list_spec), std::string::npos);
  program.replace(program.rfind(list_spec), list_spec.size(), unknown);
  const auto loaded = load_bytes(with_entry(archive, "models/model.json", program));
  EXPECT_EQ(difference(*loaded, "nested_inputs"), "");
  EXPECT_NE(entry(serialize_program(*loaded), "models/model.json").find(unknown), std::string::npos);
  SaveProgramOptions plain;
  plain.plain_containers = true;
  const std::string saved = entry(serialize_program(*loaded, plain), "models/model.json");
  EXPECT_EQ(saved.find("some.package.Cache"), std::string::npos);
  EXPECT_EQ(difference(*load_bytes(serialize_program(*loaded, plain)), "nested_inputs"), "");
}

TEST(Pt2, custom_objects_are_kept_as_they_are) {
  const std::string archive = read_file(golden("basic.pt2"));
  const std::string config =
      R"({"config": {"obj": {"path_name": "custom_obj_0", "is_param": false, "use_pickle": true, "tensor_meta": null}}})";
  const auto loaded = load_bytes(with_entry(with_entry(archive, "data/constants/model_constants_config.json", config),
                                            "data/constants/custom_obj_0", std::string("bytes\0of it", 11)));
  const std::string saved = serialize_program(*loaded);
  EXPECT_EQ(entry(saved, "data/constants/model_constants_config.json"), config);
  EXPECT_EQ(entry(saved, "data/constants/custom_obj_0"), std::string("bytes\0of it", 11));
}

TEST(Pt2, state_that_is_written_is_owned_and_the_rest_is_mapped) {
  const auto program = load_golden("state");
  EXPECT_FALSE(program->state_dict().at("count").storage()->is_borrowed());
  EXPECT_TRUE(program->state_dict().at("weight").storage()->is_borrowed());
  EXPECT_TRUE(program->state_dict().at("unused").storage()->is_borrowed());
}

TEST(Pt2, what_is_saved_is_aligned_stable_and_shared) {
  const auto program = load_golden("tied");
  const std::string bytes = serialize_program(*program);
  EXPECT_EQ(bytes, serialize_program(*load_golden("tied")));
  const ZipReader zip(std::as_bytes(std::span(bytes)), "saved");
  size_t weights = 0;
  for (const ZipEntry& e : zip.entries()) {
    EXPECT_EQ((e.data.data() - std::as_bytes(std::span(bytes)).data()) % 64, 0) << e.name;
    zip.check(e);
    weights += e.name.find("/weight_") != std::string::npos;
  }
  EXPECT_EQ(weights, 2U);  // the tied weight, and the four views of one buffer
  const auto again = load_bytes(bytes);
  const StateDict& state = again->state_dict();
  EXPECT_EQ(state.at("embed.weight").storage().get(), state.at("head.weight").storage().get());
  EXPECT_EQ(state.at("whole").storage().get(), state.at("column").storage().get());
  EXPECT_EQ(state.at("column").storage_offset(), 1);
}

// PyTorch writes where a view begins and forgets it when it reads; here it stays.
TEST(Pt2, where_a_view_begins_is_kept) {
  const std::string archive = read_file(golden("two_layers_dynamic.pt2"));
  json program = json::parse(entry(archive, "models/model.json"));
  json& values = program.at("graph_module").at("graph").at("tensor_values");
  json& plain = values.begin().value().at("storage_offset");
  json& symbolic = std::next(values.begin()).value().at("storage_offset");
  plain = {{"as_int", 31}};
  for (const auto& [name, meta] : values.items())
    for (const json& size : meta.at("sizes"))
      if (size.contains("as_expr")) symbolic = size;
  ASSERT_TRUE(symbolic.contains("as_expr"));
  const auto loaded = load_bytes(with_entry(archive, "models/model.json", program.dump()));
  const json saved = saved_json(*loaded);
  EXPECT_EQ(saved.at("graph_module").at("graph").at("tensor_values"), values);
  for (const int64_t wrong : {int64_t{-1}, INT64_MAX, INT64_MAX / 16}) {
    plain = {{"as_int", wrong}};
    EXPECT_THAT(error_of([&] { load_bytes(with_entry(archive, "models/model.json", program.dump())); }),
                HasSubstr("storage offset"));
  }
}

TEST(Pt2, from_a_path_a_descriptor_and_memory) {
  const TemporaryFolder folder;
  const auto program = load_golden("basic");
  save_program(*program, folder.path("saved.pt2"));
  EXPECT_EQ(folder.names(), (std::set<std::string>{"saved.pt2"}));
  EXPECT_EQ(difference(*load_program(folder.path("saved.pt2")), "basic"), "");
  FILE* file = std::fopen(folder.path("saved.pt2").c_str(), "rb");
  ASSERT_TRUE(file);
  const auto from_descriptor = load_program(fileno(file));
  std::fclose(file);
  EXPECT_EQ(difference(*from_descriptor, "basic"), "");
  EXPECT_EQ(difference(*load_bytes(read_file(folder.path("saved.pt2"))), "basic"), "");
}

TEST(Pt2, a_failed_save_leaves_the_old_file_alone) {
  const TemporaryFolder folder;
  save_program(*load_golden("basic"), folder.path("program.pt2"));
  const std::string before = read_file(folder.path("program.pt2"));
  ExportedProgram broken = copy_of(*load_golden("several_results"));
  broken.graph().find_node("getitem")->meta.val = Value("no tensor");
  broken.graph().find_node("native_layer_norm")->meta.val = tuple({Value("no"), Value("tensors"), Value("here")});
  EXPECT_THROW(save_program(broken, folder.path("program.pt2")), UserError);
  EXPECT_EQ(read_file(folder.path("program.pt2")), before);
  EXPECT_EQ(folder.names(), (std::set<std::string>{"program.pt2"}));
  SaveProgramOptions escaping;
  escaping.extra_files = {{"../outside", ""}};
  EXPECT_THROW(save_program(*load_golden("basic"), folder.path("program.pt2"), escaping), UserError);
}

TEST(Pt2, many_threads_load_at_once) {
  std::vector<std::string> wrong(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < wrong.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        const char* name = i % 2 == 0 ? "two_layers_dynamic" : "nested_cond";
        wrong[i] = difference(*load_golden(name), name);
      } catch (const std::exception& e) {
        wrong[i] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) EXPECT_EQ(w, "");
}

// As on a full disk: the file may not grow.
TEST(Pt2, a_save_that_fails_leaves_nothing) {
  const TemporaryFolder folder;
  const auto program = load_golden("basic");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string error;
  try {
    save_program(*program, folder.path("p.pt2"));
  } catch (const UserError& e) {
    error = e.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  EXPECT_THAT(error, HasSubstr("cannot write " + folder.path("p.pt2") + ": "));
  EXPECT_THAT(error, HasSubstr("nothing was left behind"));
  EXPECT_TRUE(folder.names().empty());
  // What had the name before is still there.
  save_program(*program, folder.path("p.pt2"));
  const std::string bytes = read_file(folder.path("p.pt2"));
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(save_program(*program, folder.path("p.pt2")), UserError);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  EXPECT_EQ(read_file(folder.path("p.pt2")), bytes);
  EXPECT_EQ(folder.names().size(), 1U);
}

struct MetaModel : Typed<MetaModel> {
  static constexpr const char* forward_arguments[] = {"x"};
  Parameter weight = register_parameter("weight", empty({4, 3}, {}, {}, Device("meta")));
  Buffer scale = register_buffer("scale", empty({4}, {}, {}, Device("meta")));
  Tensor forward(const Tensor& x) { return linear(x, *weight) * *scale; }
};

TEST(Pt2, a_program_whose_parameters_are_on_the_meta_device_loads) {
  MetaModel m;
  const ExportedProgram p = export_program(m, {empty({2, 3}, {}, {}, Device("meta"))});
  const auto loaded = round_trip(p);
  const Tensor& weight = loaded->state_dict().at("weight");
  EXPECT_EQ(weight.device().str(), "meta");
  EXPECT_EQ(str(weight.sizes()), "[4, 3]");
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_EQ(fake_mode_of(weight), nullptr);
  const Tensor out = loaded->call({empty({2, 3}, {}, {}, Device("meta"))}).to_tensor();
  EXPECT_EQ(out.device().str(), "meta");
  EXPECT_EQ(str(out.sizes()), "[2, 4]");
  std::string why;
  EXPECT_TRUE(same_program(p, *loaded, &why)) << why;
}

struct Everything : Typed<Everything> {
  static constexpr const char* forward_arguments[] = {"x", "y"};
  Child<Linear> linear = child<Linear>("linear", 3, 2);
  Buffer count = register_buffer("count", zeros({1}));
  Buffer hidden = register_buffer("hidden", ones({2}), false);
  Constant table = register_constant("table", arange(2));
  Value forward(const Tensor& x, const Value& y) {
    count->add_(1);
    const Tensor out = linear(x) + *count + *hidden + *table + tensor({1., 2.});
    return dict({{"out", out}, {"rows", x.sym_size(0)}, {"y", y}, {"none", Value()}});
  }
};

TEST(Pt2, a_program_equals_what_is_read_from_its_file) {
  Everything m;
  const DynamicShapes shapes =
      DynamicShapes::dict({{"x", DynamicShapes::dict({{0, Dim("rows", 2, 64)}})}, {"y", DynamicShapes::list({{}, {}})}});
  const ExportedProgram p = export_program(m, {rand({8, 3}), list({rand({2}), 3})}, {}, {.dynamic_shapes = shapes});
  for (const ExportedProgram& program : {p, p.run_decompositions()}) {
    std::string why;
    EXPECT_TRUE(same_program(program, *round_trip(program), &why)) << why;
  }
}

// PyTorch does not save such a program.
TEST(Pt2, tensors_inside_branches_are_saved) {
  const auto inner = [](const Values& in) -> Value { return in[0].to_tensor() + tensor({1., 2., 3.}); };
  const auto outer = [=](const Values& in) -> Value {
    const Tensor a = in[0].to_tensor() * tensor({3., 2., 1.});
    return cond(a.sum() > 10, inner, [](const Values& x) -> Value { return x[0].to_tensor() * 2; }, {a});
  };
  const ExportedProgram p = export_program(
      traceable([=](const Tensor& x) -> Value { return cond(x.sum() > 0, outer, inner, {x}); }, {"x"}), {ones({3})});
  const auto again = round_trip(p);
  EXPECT_EQ(again->constants().size(), 3U);
  for (const double scale : {1., 10., -1.}) {
    const Tensor x = full({3}, scale);
    EXPECT_TRUE(equal(again->call({x}).to_tensor(), p.call({x}).to_tensor())) << scale;
  }
  std::string why;
  EXPECT_TRUE(same_program(*again, *round_trip(*again), &why)) << why;
}

}  // namespace
}  // namespace calque::pt2_test
