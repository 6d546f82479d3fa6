// Loading for sizes and dtypes alone: of weight files only the headers are read.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "calque/file/mapped_file.h"
#include "calque/hub/from_pretrained.h"
#include "calque/op/operators.h"
#include "hub/hub_support.h"

namespace calque::hub_test {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// How much of a file has been read: the bytes of it that are in the page cache. A hole that nobody has read is not.
int64_t bytes_read_of(const std::string& file) {
  const auto mapped = MappedFile::open(file);
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((mapped->bytes().size() + page - 1) / page);
  EXPECT_EQ(::mincore(const_cast<std::byte*>(mapped->bytes().data()), mapped->bytes().size(), pages.data()), 0);
  return std::count_if(pages.begin(), pages.end(), [](unsigned char one) { return (one & 1U) != 0; }) *
         static_cast<int64_t>(page);
}

// A small Llama with a large vocabulary, whose weights are a hole in the file behind the header.
constexpr int64_t vocabulary = 1 << 18, width = 64;
std::string write_model(const TemporaryFolder& folder, const char* dtype, const char* more = "") {
  folder.write("config.json",
               R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 262144, "hidden_size": 64,
    "intermediate_size": 8, "num_hidden_layers": 0, "num_attention_heads": 4, "dtype": "float32")" +
                   std::string(more) + "}");
  const int64_t item = dtype == std::string("F32") ? 4 : 2, table = vocabulary * width * item;
  const std::string header = R"({"model.embed_tokens.weight":{"dtype":")" + std::string(dtype) +
                             R"(","shape":[262144,64],"data_offsets":[0,)" + std::to_string(table) +
                             R"(]},"lm_head.weight":{"dtype":")" + dtype + R"(","shape":[262144,64],"data_offsets":[)" +
                             std::to_string(table) + "," + std::to_string(2 * table) + "]}}";
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> 8 * i & 255U);
  const std::string file = folder.write("model.safetensors", length + header);
  fs::resize_file(file, 8 + header.size() + 2 * static_cast<uint64_t>(table));
  return file;
}

TEST(HeadersOnly, no_weight_is_read) {
  for (const char* dtype : {"F32", "BF16"})
    for (const char* ties : {R"(, "tie_word_embeddings": true)", R"(, "tie_word_embeddings": false)"}) {
      SCOPED_TRACE(std::string(dtype) + ties);
      TemporaryFolder folder;
      const std::string file = write_model(folder, dtype, ties);
      const auto model = from_pretrained(folder.path(), {.values = false});
      EXPECT_LT(bytes_read_of(file), 2 << 20) << "of 128 MB or 64 MB; a page brings others with it";
      const Tensor& weight = model->get_parameter("lm_head.weight");
      EXPECT_EQ(weight.dtype(), DType::float32);
      EXPECT_EQ(str(weight.sizes()), "[262144, 64]");
      EXPECT_EQ(weight.is_same(model->get_parameter("model.embed_tokens.weight")),
                model->config().flag("tie_word_embeddings"));
    }
}

TEST(HeadersOnly, with_values_they_are_read) {
  TemporaryFolder folder;
  const std::string file = write_model(folder, "F32", R"(, "tie_word_embeddings": true)");
  const auto model = from_pretrained(folder.path());
  EXPECT_GE(bytes_read_of(file), vocabulary * width * 4) << "compared, to know whether they are tied";
}

TEST(HeadersOnly, what_is_missing_and_what_does_not_fit_is_said_all_the_same) {
  TemporaryFolder folder;
  write_model(folder, "F32", R"(, "head_dim": 16)");
  const LoadedModel loaded = load_pretrained(folder.path(), {.values = false});
  EXPECT_THAT(loaded.report.missing_keys, testing::ElementsAre("model.norm.weight"));
  EXPECT_THAT(error_of([&] {
                load_pretrained(folder.path(), {.config_updates = {{"hidden_size", 32}}, .values = false});
              }),
              HasSubstr("size mismatch for model.embed_tokens.weight"));
}

}  // namespace
}  // namespace calque::hub_test
