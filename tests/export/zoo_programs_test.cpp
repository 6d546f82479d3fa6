// Models of twenty architectures, exported by PyTorch 2.13 from transformers with dynamic batch and length, give PyTorch's
// outputs at two sizes, and go through a file unchanged. tools/golden/zoo_programs.py makes the files.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/op/operators.h"
#include "export/pt2_support.h"

namespace calque::zoo_programs_test {
namespace {

namespace fs = std::filesystem;
using namespace pt2_test;

std::vector<std::string> classes() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(golden("zoo")))
    if (entry.path().extension() == ".pt2") out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

// "logits", "hidden_states.0": as the files name outputs.
std::string path_text(const KeyPath& path) {
  std::string out;
  for (const TreeKey& k : path)
    out += (out.empty() ? "" : ".") +
           (k.key.kind() == Value::Kind::string ? k.key.to_string() : std::to_string(k.key.to_int()));
  return out;
}

void expect_results(const ExportedProgram& program, const std::string& name) {
  const SafetensorsFile in = SafetensorsFile::open(golden("zoo/" + name + ".in"));
  const SafetensorsFile want = SafetensorsFile::open(golden("zoo/" + name + ".out"));
  Kwargs kwargs;
  for (const auto& entry : in.entries()) kwargs.emplace_back(entry.name, in.tensor(entry));
  size_t found = 0;
  for (const auto& [path, leaf] : tree_flatten_with_path(program.call({}, kwargs)).leaves) {
    if (!leaf.is_tensor()) continue;
    ++found;
    const Tensor a = leaf.to_tensor().to(DType::float64);
    const Tensor b = want.tensor(path_text(path)).to(DType::float64);
    ASSERT_EQ(str(a.sizes()), str(b.sizes())) << name << " " << path_text(path);
    EXPECT_LE((a - b).abs().max().item().to_double(), 1e-5 * std::max(1.0, b.abs().max().item().to_double()))
        << name << " " << path_text(path);
  }
  EXPECT_EQ(found, want.entries().size()) << name;
}

TEST(ZooPrograms, give_pytorchs_outputs_at_two_sizes) {
  ASSERT_EQ(classes().size(), 20U);
  for (const std::string& name : classes()) {
    const auto program = load_program(golden("zoo/" + name + ".pt2"));
    for (const char* size : {".0", ".1"}) expect_results(*program, name + size);
  }
}

TEST(ZooPrograms, are_the_same_after_saving_and_loading) {
  for (const std::string& name : classes()) {
    const auto program = load_program(golden("zoo/" + name + ".pt2"));
    const auto again = round_trip(*program);
    std::string why;
    EXPECT_TRUE(same_program(*program, *again, &why)) << name << ": " << why;
    expect_results(*again, name + ".1");
  }
}

}  // namespace
}  // namespace calque::zoo_programs_test
