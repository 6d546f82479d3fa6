// Any bytes as a file of torch.save, and as the pickle inside one: plain data whose tensors lie in their storages, or one
// UserError. What is read can be written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "calque/base/error.h"
#include "calque/file/pickle.h"
#include "calque/file/zip.h"
#include "calque/op/tree.h"

using namespace calque;

namespace {

void touch(const Value& v) {
  if (v.is_tensor()) {
    const Tensor& t = v.to_tensor();
    if (t.is_fake() || t.numel() == 0) return;
    int64_t last = 0;
    for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
    const auto* p = static_cast<const unsigned char*>(t.data());
    volatile unsigned sum = p[0] + p[static_cast<size_t>(last) * item_size(t.dtype())];
    (void)sum;
  }
  if (v.is_sequence())
    for (const Value& x : v.to_items()) touch(x);
  if (v.kind() == Value::Kind::dict)
    for (const auto& [key, x] : v.to_dict().items) touch(x);
}

void read(const std::string& bytes, bool keep_objects) {
  const auto owner = std::make_shared<const std::string>(bytes);
  PickleOptions options;
  options.keep_objects = keep_objects;
  try {
    const Value v = read_pickle(std::as_bytes(std::span(*owner)), owner, "fuzz", options);
    touch(v);
    std::string written;
    try {
      written = write_pickle(v);
    } catch (const UserError&) {
      return;  // not everything that is read has a plain form
    }
    const auto again = std::make_shared<const std::string>(written);
    read_pickle(std::as_bytes(std::span(*again)), again, "again");
  } catch (const UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  read(input, false);
  std::string zipped;
  ZipWriter zip([&](std::span<const std::byte> b) { zipped.append(reinterpret_cast<const char*>(b.data()), b.size()); },
                "archive");
  zip.add("data.pkl", input);
  zip.add("data/0", std::string(64, '\1'));
  zip.add("data/1", std::string(8, '\2'));
  zip.finish();
  read(zipped, true);
  return 0;
}
