// Any text as the program of a .pt2 archive, and any bytes as the archive: a program that prints, saves and loads again, or
// one UserError. Programs are mostly changed as JSON, value by value, so that they get beyond the first wrong byte.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

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

using Json = nlohmann::ordered_json;

void collect(Json& json, std::vector<Json*>& out) {
  out.push_back(&json);
  if (json.is_structured())
    for (Json& child : json) collect(child, out);
}

void change_one(Json& root, std::mt19937& chance) {
  const auto below = [&](size_t n) { return chance() % n; };
  std::vector<Json*> all;
  collect(root, all);
  Json& here = *all[below(all.size())];
  switch (below(7)) {
    case 0: {
      const Json other = *all[below(all.size())];
      here = other;
      return;
    }
    case 1: {
      static const Json odd[] = {nullptr,
                                 true,
                                 0,
                                 -1,
                                 1,
                                 std::numeric_limits<int32_t>::max(),
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min(),
                                 std::numeric_limits<uint64_t>::max(),
                                 1e308,
                                 "",
                                 "s0",
                                 "Infinity",
                                 Json::array(),
                                 Json::object()};
      here = odd[below(std::size(odd))];
      return;
    }
    case 2:
      if (here.is_structured() && !here.empty())
        here.erase(std::next(here.begin(), static_cast<ptrdiff_t>(below(here.size()))));
      return;
    case 3:
      if (here.is_array()) {
        const Json other = here.empty() || below(2) == 0 ? *all[below(all.size())] : here[below(here.size())];
        here.insert(std::next(here.begin(), static_cast<ptrdiff_t>(below(here.size() + 1))), other);
      }
      return;
    case 4: {  // a value of the same kind from elsewhere: another name, another number
      std::vector<Json*> alike;
      std::copy_if(all.begin(), all.end(), std::back_inserter(alike),
                   [&](const Json* j) { return j->type() == here.type(); });
      const Json other = *alike[below(alike.size())];
      here = other;
      return;
    }
    case 5:
      if (here.is_number_integer()) here = static_cast<int64_t>(static_cast<uint64_t>(here.get<int64_t>()) + below(5) - 2);
      return;
    default:
      if (here.is_object() && !here.empty()) {  // a member under another's name
        const auto from = std::next(here.begin(), static_cast<ptrdiff_t>(below(here.size())));
        const Json value = from.value();
        const std::string key = from.key();
        std::vector<std::string> keys;
        for (const Json* j : all)
          if (j->is_object())
            for (const auto& [name, unused] : j->items()) keys.push_back(name);
        here.erase(key);
        here[keys[below(keys.size())]] = value;
      }
      return;
  }
}

}  // namespace

// Of libFuzzer; the replay of the seeds does without.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937 chance(seed);
  Json program = Json::parse(data, data + size, nullptr, false);
  if (program.is_discarded() || chance() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (size_t times = 1 + chance() % 4; times > 0; --times) change_one(program, chance);
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
