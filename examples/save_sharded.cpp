// A model written in shards of at most 2 MB, and read back:  save_sharded FOLDER
#include <calque/calque.h>

#include <filesystem>
#include <iostream>

using namespace calque;

int main(int argc, char** argv) try {
  if (argc != 2) throw UserError("usage: save_sharded FOLDER");
  const auto model = from_pretrained(argv[1]);
  SaveOptions options;
  options.max_shard_size = "2MB";
  options.companions_of = argv[1];  // its tokenizer comes along
  const SaveResult saved = save_pretrained(*model, "sharded", options);
  for (const std::string& file : saved.files)
    std::cout << file << " " << std::filesystem::file_size(std::filesystem::path("sharded") / file) << " bytes\n";
  std::cout << saved.total_size << " bytes of weights\n";

  // Folders in shards open like any other.
  const auto again = from_pretrained("sharded");
  const StateDict after = again->state_dict();
  for (const auto& [name, tensor] : model->state_dict())
    if (!equal(tensor, after.at(name))) throw UserError(name + " came back with other values");
  std::cout << after.size() << " tensors came back\n";
  return saved.files.size() > 3 && Tokenizer::from_file("sharded").vocab_size() > 0 ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
