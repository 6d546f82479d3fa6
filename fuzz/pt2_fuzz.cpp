// Any text as the program of a .pt2 archive, and any bytes as the archive: a program that prints, saves and loads again, or
// one UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "calque/base/error.h"
#include "calque/export/pt2.h"
#include "calque/file/zip.h"

using namespace calque;

namespace {

std::shared_ptr<const ExportedProgram> load(std::string bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return load_program(std::as_bytes(std::span(*owner)), owner);
}

void use(const std::string& bytes) {
  try {
    const auto program = load(bytes);
    static_cast<void>(program->graph_module().print_readable());
    static_cast<void>(program->graph().str());
    static_cast<void>(load(serialize_program(*program)));
  } catch (const UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  use(input);
  std::string archive;
  ZipWriter zip([&](std::span<const std::byte> b) { archive.append(reinterpret_cast<const char*>(b.data()), b.size()); },
                "fuzz");
  const std::string meta =
      R"({"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": {"dtype": 7, "sizes": [{"as_int": 4}], "requires_grad": true, "device": {"type": "cpu", "index": null}, "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}})";
  zip.add("archive_format", "pt2");
  zip.add("models/model.json", input);
  zip.add("data/weights/weight_0", std::string(16, '\0'));
  zip.add("data/weights/model_weights_config.json", "{\"config\": {\"w\": " + meta + "}}");
  zip.add("data/constants/model_constants_config.json", "{\"config\": {}}");
  zip.finish();
  use(archive);
  return 0;
}
