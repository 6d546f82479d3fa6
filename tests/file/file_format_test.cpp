// What files are, by their bytes: files as other tools wrote them (tools/golden/foreign_files.py), and beginnings made by hand.
#include "file/file_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "calque/export/pt2.h"
#include "calque/file/json.h"
#include "calque/file/mapped_file.h"
#include "calque/file/pickle.h"
#include "calque/file/safetensors.h"
#include "calque/op/ops.h"
#include "file/checkpoint_content.h"
#include "support/error_support.h"
#include "support/paths.h"

namespace calque::file_format_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string foreign(const std::string& name) { return test::source_folder() + "/tests/file/golden/foreign/" + name; }
FileFormat format_of_text(std::string_view text) { return format_of(std::as_bytes(std::span(text.data(), text.size()))); }

TEST(FileFormats, files_of_other_tools_are_told_apart) {
  const std::pair<const char*, FileFormat> files[] = {
      {"state.pt", FileFormat::checkpoint},
      {"legacy.pt", FileFormat::checkpoint},
      {"training.pt", FileFormat::checkpoint},
      {"compressed_state.pt", FileFormat::checkpoint},
      {"module.pt", FileFormat::checkpoint},
      {"program.pt2", FileFormat::program},
      {"compressed_program.pt2", FileFormat::program},
      {"script.pt", FileFormat::torch_script},
      {"plain.pkl", FileFormat::other_pickle},
      {"relu.onnx", FileFormat::onnx},
      {"tiny.gguf", FileFormat::gguf},
      {"tf_model.h5", FileFormat::keras},
      {"saved_model.pb", FileFormat::saved_model},
      {"frozen_graph.pb", FileFormat::tensorflow_graph},
      {"flax_model.msgpack", FileFormat::flax},
      {"array.npy", FileFormat::numpy},
      {"arrays.npz", FileFormat::numpy_archive},
      {"files.tar", FileFormat::tar},
      {"program_input.json", FileFormat::json},
  };
  for (const auto& [name, format] : files)
    EXPECT_EQ(format_name(format_of_file(foreign(name))), format_name(format)) << name;
  // Nothing else is there that nobody asked for.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(foreign("")), {}),
            std::ssize(files) + 5);  // lightning.ckpt, list.pt, optimizer.pt, tensor.pt, training_args.pt
}

TEST(FileFormats, beginnings_are_enough) {
  using namespace std::string_view_literals;
  const std::pair<std::string_view, FileFormat> texts[] = {
      {"", FileFormat::empty},
      {"\x02\0\0\0\0\0\0\0{}"sv, FileFormat::safetensors},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", FileFormat::lfs_pointer},
      {"<!DOCTYPE html><html><body>Sign in</body></html>", FileFormat::web_page},
      {"\n  <HTML>", FileFormat::web_page},
      {"\xef\xbb\xbf{\"a\": 1}", FileFormat::json},
      {"[1, 2]", FileFormat::json},
      {"Entry not found", FileFormat::text},
      {"<?xml version=\"1.0\"?><net name=\"m\" version=\"11\">", FileFormat::openvino},
      {"\x1f\x8b\x08\0"sv, FileFormat::packed},
      {"\x1c\0\0\0TFL3"sv, FileFormat::tensorflow_lite},
      {"\x1c\0\0\0ET12"sv, FileFormat::executorch},
      {"\x7f"
       "ELF\2"sv,
       FileFormat::shared_library},
      {"PK\3\4 and no more"sv, FileFormat::unknown},
      {"\0\1\2\3\4\5\6\7\x08\x09\x0a"sv, FileFormat::unknown},
  };
  for (const auto& [text, format] : texts) EXPECT_EQ(format_name(format_of_text(text)), format_name(format)) << text;
}

TEST(FileFormats, every_format_has_a_name) {
  for (int i = 0; i <= static_cast<int>(FileFormat::text); ++i)
    EXPECT_FALSE(format_name(static_cast<FileFormat>(i)).empty()) << i;
}

TEST(FileFormats, readers_say_what_a_foreign_file_is_and_what_to_do) {
  const auto as_tensors = [](const char* name) { return test::error_of([&] { SafetensorsFile::open(foreign(name)); }); };
  const auto as_checkpoint = [](const char* name) { return test::error_of([&] { load_pickle(foreign(name)); }); };
  const auto as_program = [](const char* name) { return test::error_of([&] { load_program(foreign(name)); }); };
  EXPECT_THAT(as_tensors("relu.onnx"), AllOf(HasSubstr("relu.onnx: expected a safetensors file, found an ONNX model; "),
                                             HasSubstr("torch.export.save"), HasSubstr("calque run")));
  EXPECT_THAT(as_tensors("state.pt"), HasSubstr("found a checkpoint of torch.save; `calque info"));
  EXPECT_THAT(as_checkpoint("script.pt"), HasSubstr("expected a checkpoint of torch.save, found a TorchScript archive"));
  EXPECT_THAT(as_checkpoint("plain.pkl"), HasSubstr("found a pickle that is not a checkpoint of torch.save"));
  EXPECT_THAT(as_checkpoint("tiny.gguf"),
              AllOf(HasSubstr("found a GGUF file"), HasSubstr("gguf_file='" + foreign("tiny.gguf"))));
  EXPECT_THAT(as_program("script.pt"),
              HasSubstr("expected a .pt2 program of torch.export.save, found a TorchScript archive"));
  EXPECT_THAT(as_program("tf_model.h5"), HasSubstr("found an HDF5 file"));
  const std::string page = "<html>Please log in</html>";
  EXPECT_THAT(test::error_of([&] { JsonDocument(page, "config.json"); }),
              HasSubstr("config.json: expected a JSON text, found a web page; a download failed"));
}

TEST(FileFormats, a_damaged_file_of_the_right_kind_says_what_is_damaged) {
  const std::string text("\x20\0\0\0\0\0\0\0{\"a\"", 12);
  EXPECT_THAT(test::error_of([&] { SafetensorsFile::from_bytes(std::as_bytes(std::span(text)), nullptr, "x"); }),
              HasSubstr("x: not a valid safetensors file: its first 8 bytes give a header of 32 bytes"));
}

TEST(CompressedArchives, a_checkpoint_is_the_same_as_the_stored_one) {
  const NamedTensors stored = load_pickle_tensors(foreign("state.pt"));
  NamedTensors inflated = load_pickle_tensors(foreign("compressed_state.pt"));  // PyTorch opens it as well
  ASSERT_EQ(inflated.size(), 4U);
  for (size_t i = 0; i < stored.size(); ++i) {
    EXPECT_EQ(inflated[i].first, stored[i].first);
    EXPECT_TRUE(equal(inflated[i].second, stored[i].second)) << stored[i].first;
  }
}

TEST(CompressedArchives, a_program_runs_as_in_pytorch) {
  const auto program = load_program(foreign("compressed_program.pt2"));
  const auto file = MappedFile::open(foreign("program_input.json"));
  const std::string text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  std::vector<float> x, y;
  JsonDocument(text, "golden").read([&](const Json& root) {
    for (const auto& [key, to] : {std::pair("x", &x), std::pair("y", &y)})
      for (const Json& row : root.at(key).items())
        for (const Json& number : row.items()) to->push_back(static_cast<float>(number.to_float()));
  });
  const Tensor out = program->call({tensor_of<float>(x, {2, 3})}).to_tensor();
  EXPECT_TRUE(allclose(out, tensor_of<float>(y, {2, 2})));
}

TEST(Checkpoints, a_training_checkpoint_says_where_its_weights_are) {
  const std::string text = test::error_of([] { load_pickle_tensors(foreign("training.pt")); });
  EXPECT_THAT(text,
              AllOf(HasSubstr("expected names and tensors (a state dict), found a training checkpoint: 'epoch' is int 7"),
                    HasSubstr("'model_state_dict' is 4 tensors"), HasSubstr("is the state of an optimiser"),
                    HasSubstr("The weights are under 'model_state_dict'; in Python: torch.save(torch.load('")));
  // Objects of the training loop are named, and not made.
  EXPECT_THAT(test::error_of([] { load_pickle_tensors(foreign("training_args.pt")); }),
              AllOf(HasSubstr("'args' is an object of the class argparse.Namespace"), HasSubstr("under 'net'")));
  EXPECT_THAT(test::error_of([] { load_pickle_tensors(foreign("lightning.ckpt")); }), HasSubstr("under 'state_dict'"));
}

TEST(Checkpoints, what_holds_no_weights_says_so) {
  EXPECT_THAT(test::error_of([] { load_pickle_tensors(foreign("optimizer.pt")); }),
              AllOf(HasSubstr("found the state of an optimiser, which holds no weights"), Not(HasSubstr("under"))));
  EXPECT_THAT(test::error_of([] { load_pickle_tensors(foreign("module.pt")); }),
              AllOf(HasSubstr("found a whole object of the class torch.nn.modules.container.Sequential"),
                    HasSubstr(".state_dict(), 'weights.pt')")));
  EXPECT_THAT(test::error_of([] { load_pickle_tensors(foreign("list.pt")); }), HasSubstr("found a list of 2"));
}

TEST(Checkpoints, nested_tensors_have_paths) {
  const Value content = load_pickle(foreign("training.pt"));
  const NamedTensors all = nested_tensors(content);
  EXPECT_EQ(all.size(), 16U);
  EXPECT_EQ(all[0].first, "model_state_dict.0.weight");
  EXPECT_EQ(state_key(checkpoint_parts(content)), "model_state_dict");
}

}  // namespace
}  // namespace calque::file_format_test
