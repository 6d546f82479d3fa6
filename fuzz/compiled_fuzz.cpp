// Any text as the plan of a compiled file, and any bytes as its packed weights: the program gives what it gives without a plan, or, where the bytes are taken
// for its weights, something of the same size. Plans are mostly changed as JSON, value by value.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "../tests/support/json_changes.h"
#include "calque/base/error.h"
#include "calque/export/compiled_entries.h"
#include "calque/export/export.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/zeros.h"
#include "calque/run/compiled_file.h"
#include "calque/run/plan.h"

using namespace calque;

namespace {

std::shared_ptr<const ExportedProgram> load(std::string bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return load_program(std::as_bytes(std::span(*owner)), owner);
}

const ExportedProgram& program() {
  static const ExportedProgram made = [] {
    const NoGradGuard no_grad;
    Linear module(64, 64);  // its numbers are those that the seeds were made with
    module.weight->fill_(0.5);
    module.bias->fill_(0.25);
    return export_program(module, {ones({2, 64})});
  }();
  return made;
}

}  // namespace

// Of libFuzzer; the replay of the seeds does without.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937 chance(seed);
  using Json = nlohmann::ordered_json;
  Json plan = Json::parse(data, data + size, nullptr, false);
  if (plan.is_discarded() || chance() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (size_t times = 1 + chance() % 4; times > 0; --times) test::change_one(plan, chance);
  const std::string text = plan.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const NoGradGuard no_grad;
  const std::string input(reinterpret_cast<const char*>(data), size);
  for (const size_t bytes : {size_t{0}, size, size_t{64 * 64 * 4}}) {
    SaveProgramOptions options;
    const auto block = std::make_shared<const std::string>(bytes, 'x');
    options.compiled =
        std::make_shared<const CompiledEntries>(CompiledEntries{input, {{std::as_bytes(std::span(*block)), block}}});
    try {
      const auto loaded = load(serialize_program(program(), options));
      const Tensor out = Plan::make(*loaded)->call({ones({3, 64})}).at(0).to_tensor();
      if (out.numel() != 3 * 64) std::abort();
    } catch (const UserError&) {
      std::abort();  // a plan that does not fit is made anew
    }
  }
  return 0;
}
