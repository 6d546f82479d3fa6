// Programs exported by PyTorch 2.13, loaded and run. tools/golden/tiny_llama.py and tools/golden/pt2.py make the files.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "calque/export/pt2.h"
#include "calque/op/ops.h"

namespace calque {
namespace {

const std::string golden = std::string(CALQUE_SOURCE_DIR) + "/tests/export/golden/";

std::vector<float> read_floats(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::vector<float> out(static_cast<size_t>(in.tellg()) / sizeof(float));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size() * sizeof(float)));
  return out;
}

TEST(Pt2, ATinyLlamaGivesPyTorchsLogitsAtTwoLengths) {
  const auto program = load_program(golden + "tiny_llama.pt2");
  for (const int64_t length : {6, 17}) {
    const Tensor ids = (arange(length) * 37).remainder(256).view({1, length});
    const Tensor logits = program->run_flat({ids}).at(0).to_tensor();
    ASSERT_EQ(str(logits.sizes()), "[1, " + std::to_string(length) + ", 256]");
    const std::vector<float> expected = read_floats(golden + "tiny_llama_" + std::to_string(length) + ".f32");
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

TEST(Pt2, TiedWeightsStayOneStorageAndMapped) {
  const auto program = load_program(golden + "tiny_llama.pt2");
  const Tensor& weight = program->state_dict().at("model.model.embed_tokens.weight");
  EXPECT_EQ(weight.storage().get(), program->state_dict().at("model.lm_head.weight").storage().get());
  EXPECT_TRUE(weight.storage()->is_borrowed());
  EXPECT_THROW(static_cast<void>(weight.mutable_data()), UserError);
}

TEST(Pt2, WrongFilesAreNamed) {
  try {
    load_program(golden + "absent.pt2");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::bad_file);
    EXPECT_NE(std::string(e.what()).find("absent.pt2"), std::string::npos);
  }
  EXPECT_THROW(load_program(golden + "tiny_llama_6.f32"), UserError);
}

}  // namespace
}  // namespace calque
