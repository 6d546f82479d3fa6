// What the tests of hub/ share: folders that go away, small models, files as text.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "calque/hub/pretrained_model.h"

namespace calque::hub_test {

// A folder of its own in the system's temporary folder, removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::filesystem::path golden(const std::string& name);  // tests/hub/golden/NAME
std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, const std::string& text);
std::set<std::string> files_of(const std::filesystem::path& folder);  // names, hidden ones too

// A small Llama with random weights, by class name.
std::shared_ptr<PretrainedModel> tiny_llama(const std::string& model_class = "LlamaForCausalLM", bool tied = false,
                                            uint64_t seed = 0);
// Every parameter and buffer is there with the same dtype, sizes and bits; the difference in words, or empty.
std::string difference(Module& a, Module& b);
bool same_bits(const Tensor& a, const Tensor& b);
// The text of the UserError that fn throws; "" when it throws none.
template <class F>
std::string error_of(F&& fn);

}  // namespace calque::hub_test

#include "calque/base/error.h"

template <class F>
std::string calque::hub_test::error_of(F&& fn) {
  try {
    fn();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}
