#include "calque/tensor/generator.h"

#include <cstring>
#include <random>
#include <string>

#include "calque/base/error.h"

namespace calque {
namespace {

// What PyTorch writes, field by field (its legacy layout: words are stored in 64 bits each, two fields are unused).
struct SavedState {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[624];
  double unused_x;
  double normal_double;
  double unused_rho;
  int32_t normal_double_valid;
  uint32_t padding;
  float normal_float;
  uint8_t normal_float_valid;
  uint8_t tail[3];
};
static_assert(sizeof(SavedState) == Generator::state_bytes);

uint64_t seed_from_system() {
  std::random_device device;
  const uint64_t high = device();
  return high << 32 | device();
}

// One step of the recurrence: the top bit of `a` and the rest of `b`, times the twist matrix.
uint32_t twist(uint32_t a, uint32_t b) {
  const uint32_t mixed = (a & 0x80000000U) | (b & 0x7fffffffU);
  return mixed >> 1 ^ ((0U - (b & 1U)) & 0x9908b0dfU);
}

}  // namespace

std::unique_ptr<Generator> Generator::clone() const {
  auto copy = std::make_unique<Generator>(seed_);
  copy->state_ = state_;
  copy->output_ = output_;
  copy->left_ = left_;
  copy->next_ = next_;
  copy->next_float_normal = next_float_normal;
  copy->next_double_normal = next_double_normal;
  return copy;
}

void Generator::manual_seed(uint64_t seed) {
  seed_ = seed;
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < words; ++i) state_[i] = 1812433253U * (state_[i - 1] ^ state_[i - 1] >> 30) + i;
  left_ = 1;
  next_ = 0;
  next_float_normal.reset();
  next_double_normal.reset();
}

uint64_t Generator::seed() {
  manual_seed(seed_from_system());
  return seed_;
}

void Generator::next_block() {
  constexpr uint32_t middle = 397;
  constexpr uint32_t rest = words - middle;
  constexpr uint32_t even = rest / 16 * 16;  // a count that vectorises without a remainder
  uint32_t* s = state_.data();
  for (uint32_t i = 0; i < even; ++i) s[i] = s[i + middle] ^ twist(s[i], s[i + 1]);
  for (uint32_t i = even; i < rest; ++i) s[i] = s[i + middle] ^ twist(s[i], s[i + 1]);
  for (uint32_t i = rest; i < words - 1; ++i) s[i] = s[i - rest] ^ twist(s[i], s[i + 1]);
  s[words - 1] = s[middle - 1] ^ twist(s[words - 1], s[0]);
  temper();
  left_ = words;
  next_ = 0;
}

void Generator::temper() {
  for (uint32_t i = 0; i < words; ++i) {
    uint32_t y = state_[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680U;
    y ^= (y << 15) & 0xefc60000U;
    output_[i] = y ^ (y >> 18);
  }
}

std::vector<uint8_t> Generator::get_state() const {
  SavedState saved{};
  saved.seed = seed_;
  saved.left = static_cast<int32_t>(left_);
  saved.seeded = 1;
  saved.next = next_;
  for (uint32_t i = 0; i < words; ++i) saved.words[i] = state_[i];
  saved.normal_double = next_double_normal.value_or(0.0);
  saved.normal_double_valid = next_double_normal.has_value();
  saved.normal_float = next_float_normal.value_or(0.0F);
  saved.normal_float_valid = next_float_normal.has_value();
  std::vector<uint8_t> bytes(sizeof saved);
  std::memcpy(bytes.data(), &saved, sizeof saved);
  return bytes;
}

void Generator::set_state(std::span<const uint8_t> bytes) {
  if (bytes.size() != state_bytes)
    throw UserError("Generator::set_state: expected a state of " + std::to_string(state_bytes) + " bytes, found " +
                    std::to_string(bytes.size()));
  SavedState saved;
  std::memcpy(&saved, bytes.data(), sizeof saved);
  // left and next move together; any other pair would read past the block.
  const bool in_block = saved.left > 0 && saved.left <= static_cast<int32_t>(words) && saved.next <= words &&
                        saved.next + static_cast<uint64_t>(saved.left) <= words + 1;
  if (saved.seeded == 0 || !in_block)
    throw UserError("Generator::set_state: the bytes are no state of a seeded MT19937 generator (seeded " +
                    std::to_string(saved.seeded) + ", left " + std::to_string(saved.left) + ", next " +
                    std::to_string(saved.next) + ")");
  seed_ = saved.seed;
  left_ = static_cast<uint32_t>(saved.left);
  next_ = static_cast<uint32_t>(saved.next);
  for (uint32_t i = 0; i < words; ++i) state_[i] = static_cast<uint32_t>(saved.words[i]);
  temper();
  next_double_normal.reset();
  next_float_normal.reset();
  if (saved.normal_double_valid != 0) next_double_normal = saved.normal_double;
  if (saved.normal_float_valid != 0) next_float_normal = saved.normal_float;
}

Generator& default_generator() {
  static Generator generator(seed_from_system());
  return generator;
}

Generator& manual_seed(uint64_t seed) {
  Generator& generator = default_generator();
  const std::lock_guard lock(generator.mutex());
  generator.manual_seed(seed);
  return generator;
}

}  // namespace calque
