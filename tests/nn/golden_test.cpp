// A sample of the cases that tests/peers/nn.py compares live, with PyTorch's answers as files (tools/golden/nn_golden.py).
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "calque/op/aten/ternary.h"
#include "nn/layers_support.h"
#include "support/paths.h"

namespace calque::golden_test {
namespace {

const std::string folder = test::source_folder() + "/tests/nn/golden/";

// The largest distance of two tensors in representable floats.
int64_t ulps(const Tensor& a, const Tensor& b) {
  const auto ordered = [](float x) {
    int32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? int64_t{std::numeric_limits<int32_t>::min()} - bits : int64_t{bits};
  };
  int64_t worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const int64_t distance = ordered(a.data_as<float>()[i]) - ordered(b.data_as<float>()[i]);
    worst = std::max(worst, distance < 0 ? -distance : distance);
  }
  return worst;
}

void compare(const std::string& name, const Tensor& want, const Tensor& found, bool normal) {
  ASSERT_EQ(want.dtype(), found.dtype()) << name;
  ASSERT_EQ(str(want.sizes()), str(found.sizes())) << name;
  if (equal(want, found)) return;
  ASSERT_TRUE(is_floating(want.dtype())) << name << ": values differ";
  if (want.dtype() == DType::float32 && (name.find("/state/") != std::string::npos || name.starts_with("init."))) {
    // Uniform samples are the same bits; normal ones go through logarithms and cosines.
    ASSERT_TRUE(normal) << name << ": not bit for bit the same";
    if (!name.starts_with("init.orthogonal_")) {
      ASSERT_LE(ulps(want, found), 4) << name;
      return;
    }
  }
  const double relative = want.dtype() == DType::bfloat16 ? 1.6e-2 : want.dtype() == DType::float64 ? 1e-7 : 1.3e-6;
  const double absolute = want.dtype() == DType::float64 ? 1e-7 : 1e-5;
  EXPECT_TRUE(allclose(found, want, relative, absolute, true))
      << name << "\nexpected " << want.str() << "\nfound " << found.str();
}

TEST(LayersGolden, answer_as_pytorch_does) {
  const SafetensorsFile inputs = SafetensorsFile::open(folder + "inputs.safetensors");
  const SafetensorsFile expected = SafetensorsFile::open(folder + "expected.safetensors");
  std::ifstream cases(folder + "cases.jsonl");
  size_t compared = 0;
  for (std::string line; std::getline(cases, line);) {
    const nlohmann::json layer_case = nlohmann::json::parse(line);
    SCOPED_TRACE(layer_case.at("id").get<std::string>());
    const LayerResult result = run_layer_case(layer_case, inputs);
    ASSERT_EQ(result.error, "");
    const nlohmann::json& said = layer_case.at("expected");
    EXPECT_EQ(result.repr, said.at("repr").get<std::string>());
    EXPECT_EQ(result.type_name, said.at("type").get<std::string>());
    EXPECT_EQ(result.state_names, said.at("state").get<std::vector<std::string>>());
    for (const auto& [name, tensor] : result.tensors)
      compare(name, expected.tensor(name), tensor.contiguous(), layer_case.at("normal").get<bool>());
    compared += result.tensors.size();
  }
  EXPECT_EQ(compared, expected.entries().size());
}

}  // namespace
}  // namespace calque::golden_test
