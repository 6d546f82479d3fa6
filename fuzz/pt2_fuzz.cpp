// Any text as the program of a .pt2 archive, and any bytes as the archive: a program that prints, saves and loads again, or
// one UserError. Programs are mostly changed as JSON, value by value, so that they get beyond the first wrong byte.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "../tests/support/json_changes.h"
#include "calque/base/error.h"
#include "calque/export/pt2.h"
#include "calque/file/zip.h"
#include "calque/graph/draw.h"

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
    static_cast<void>(to_svg(program->graph()));
    static_cast<void>(program->run_decompositions());
  } catch (const UserError&) {
  }
}

}  // namespace

// Of libFuzzer; the replay of the seeds does without.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937 chance(seed);
  using Json = nlohmann::ordered_json;
  Json program = Json::parse(data, data + size, nullptr, false);
  if (program.is_discarded() || chance() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (size_t times = 1 + chance() % 4; times > 0; --times) test::change_one(program, chance);
  const std::string text = program.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

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
