#include "run/stored_weights.h"

#include <algorithm>

#include "calque/base/crc32.h"
#include "calque/base/log.h"
#include "calque/base/version.h"
#include "calque/export/program.h"
#include "calque/file/json.h"
#include "kernel/cpu/gemm/packed.h"

namespace calque::run {
namespace {

constexpr int64_t format = 1;

std::span<const std::byte> bytes_of(const Storage& s) { return {static_cast<const std::byte*>(s.data()), s.nbytes()}; }

// What a copy was made of: two that have it in common are the same.
std::string key_of(uint32_t checksum, size_t bytes, const Tensor& weights, bool transposed) {
  std::string out = std::to_string(checksum) + " " + std::to_string(bytes) + (transposed ? " t" : " n");
  for (const int64_t number :
       {weights.storage_offset(), weights.size(0), weights.size(1), weights.stride(0), weights.stride(1)})
    out += " " + std::to_string(number);
  return out;
}

void check_equal(const Json& plan, std::string_view key, std::string_view expected) {
  const std::string_view found = plan.at(key).to_string();
  if (found != expected)
    throw UserError(std::string(key) + " is " + std::string(found.substr(0, 80)) + ", here it is " + std::string(expected));
}

}  // namespace

std::shared_ptr<const StoredWeights> StoredWeights::of(const ExportedProgram& program) {
  const std::shared_ptr<const CompiledEntries>& entries = program.parts().compiled;
  if (!entries) return nullptr;
  std::shared_ptr<StoredWeights> made(new StoredWeights);
  try {
    made->read(*entries);
    return made;
  } catch (const UserError& e) {
    write_log(Log::plan, "the plan of the file is made anew: " + std::string(e.reason()));
    return nullptr;
  }
}

void StoredWeights::read(const CompiledEntries& entries) {
  const JsonDocument document(entries.plan, "the plan");
  const Json& plan = document.root();
  if (plan.at("format").to_int() != format) plan.fail("another form, expected " + std::to_string(format));
  check_equal(plan, "calque", version());
  check_equal(plan, "layout", kernel::packed_layout());
  const std::span<const Json> copies = plan.at("packed").items();
  if (copies.size() != entries.blocks.size())
    plan.fail(std::to_string(copies.size()) + " packed weights, and " + std::to_string(entries.blocks.size()) + " blocks");
  for (size_t i = 0; i < copies.size(); ++i) {
    const CompiledEntries::Block& block = entries.blocks[i];
    if (copies[i].at("bytes").to_int() != static_cast<int64_t>(block.bytes.size()))
      copies[i].fail("another size than that of block " + std::to_string(i) + ", " + std::to_string(block.bytes.size()));
    if (!blocks_.emplace(copies[i].at("of").to_string(), block).second) copies[i].fail("the same weights twice");
  }
  for (const auto& [storage, checksum] : entries.checksums) {
    checksums_.emplace(storage.get(), checksum);
    state_.push_back(storage);
  }
}

Tensor StoredWeights::find(const Tensor& weights, bool transposed) const {
  const auto checksum = checksums_.find(weights.storage().get());
  if (checksum == checksums_.end() || weights.version() != 0) return {};
  const auto it = blocks_.find(key_of(checksum->second, weights.storage()->nbytes(), weights, transposed));
  if (it == blocks_.end()) return {};
  const CompiledEntries::Block& block = it->second;
  const int64_t numbers = kernel::packed_numbers(weights.size(transposed ? 0 : 1), weights.size(transposed ? 1 : 0));
  const bool is_aligned = reinterpret_cast<uintptr_t>(block.bytes.data()) % Storage::alignment == 0;
  if (!is_aligned || block.bytes.size() != static_cast<size_t>(numbers) * sizeof(float)) return {};
  auto* data = const_cast<std::byte*>(block.bytes.data());
  return Tensor(
      from_storage(Storage::borrow(data, block.bytes.size(), block.owner, true), DType::float32, {numbers}, {1}, 0));
}

CompiledEntries stored_entries(std::span<const PackedCopy> copies) {
  CompiledEntries out;
  std::unordered_map<const Storage*, uint32_t> checksums;  // tied weights are read once
  JsonWriter plan;
  plan.begin_object();
  plan.member("format", format);
  plan.member("calque", version());
  plan.member("layout", kernel::packed_layout());
  plan.key("packed");
  plan.begin_array();
  for (const PackedCopy& copy : copies) {
    const Storage& source = *copy.weights.storage();
    const auto [checksum, fresh] = checksums.try_emplace(&source);
    if (fresh) checksum->second = crc32(bytes_of(source));
    plan.begin_object();
    plan.member("of", key_of(checksum->second, source.nbytes(), copy.weights, copy.transposed));
    plan.member("bytes", static_cast<int64_t>(copy.packed.nbytes()));
    plan.end_object();
    const auto owner = std::make_shared<const Tensor>(copy.packed);
    out.blocks.push_back({bytes_of(*owner->storage()), owner});
  }
  plan.end_array();
  plan.end_object();
  out.plan = plan.take();
  return out;
}

}  // namespace calque::run
