// What nodes keep, in files until it is needed.
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "calque/file/safetensors.h"
#include "calque/grad/autograd.h"

namespace calque {
namespace {

// A file of its own, which goes with the node that keeps it.
struct KeptFile {
  explicit KeptFile(std::string path) : path(std::move(path)) {}
  ~KeptFile() {
    std::error_code ignored;  // another may have cleaned up
    std::filesystem::remove(path, ignored);
  }
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;
  std::string path;
  Meta meta;
};

class OnDisk final : public SavedTensorHooks {
 public:
  explicit OnDisk(std::string folder) : folder_(std::move(folder)) { std::filesystem::create_directories(folder_); }

  std::shared_ptr<void> pack(const Tensor& tensor) override {
    static std::atomic<uint64_t> next{0};
    const auto file =
        std::make_shared<KeptFile>((std::filesystem::path(folder_) /
                                    ("kept-" + std::to_string(getpid()) + "-" + std::to_string(next++) + ".safetensors"))
                                       .string());
    file->meta = tensor.meta();
    const NoGradGuard off;
    save_safetensors(file->path, {{"kept", tensor.detach()}}, std::nullopt, false);
    return file;
  }

  // With the strides that it had; the file stays for a second pass.
  Tensor unpack(const std::shared_ptr<void>& packed) override {
    const auto& file = *std::static_pointer_cast<KeptFile>(packed);
    const NoGradGuard off;
    const Tensor read = SafetensorsFile::open(file.path).tensor("kept");
    const Tensor out = make_tensor(file.meta);
    if (!out.is_non_overlapping_and_dense()) return read.clone();  // an expanded tensor was written whole
    return out.copy_(read);
  }

 private:
  std::string folder_;
};

}  // namespace

std::shared_ptr<SavedTensorHooks> save_on_disk(const std::string& folder) { return std::make_shared<OnDisk>(folder); }

}  // namespace calque
