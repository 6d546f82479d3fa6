// Generator: the stream of random bits behind every random operator. A Mersenne Twister (MT19937) seeded, read and
// saved exactly as PyTorch's CPU generator, so that a stream can be continued on either side. It knows bits only; what
// is made of them (uniform, normal, ...) is in kernel/cpu/random. Its methods do not lock: whoever draws holds mutex().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace calque {

class Generator {
 public:
  static constexpr uint64_t default_seed = 67280421310721;
  static constexpr size_t state_bytes = 5056;

  explicit Generator(uint64_t seed = default_seed) { manual_seed(seed); }
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  std::unique_ptr<Generator> clone() const;

  // Restarts the stream. The low 32 bits choose it; initial_seed() gives back all 64.
  void manual_seed(uint64_t seed);
  uint64_t seed();  // restarts from a seed that the operating system chose, and returns it
  uint64_t initial_seed() const { return seed_; }

  uint32_t random() {
    if (--left_ == 0) next_block();
    return output_[next_++];
  }
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }

  // The second half of a Box-Muller pair, kept for the next normal sample of that precision.
  std::optional<float> next_float_normal;
  std::optional<double> next_double_normal;

  // The bytes of torch.get_rng_state(), and back. UserError for bytes that are no such state; nothing changes then.
  std::vector<uint8_t> get_state() const;
  void set_state(std::span<const uint8_t> bytes);

  std::mutex& mutex() { return mutex_; }

 private:
  static constexpr uint32_t words = 624;
  void next_block();
  void temper();

  std::array<uint32_t, words> state_{};
  std::array<uint32_t, words> output_{};  // the block's numbers, made from state_ all at once
  uint32_t left_ = 1;                     // draws until the block is used up, plus one
  uint32_t next_ = 0;
  uint64_t seed_ = 0;
  std::mutex mutex_;
};

// The generator of operators that are given none. Seeded by the operating system at first use.
Generator& default_generator();
// Restarts the default generator (under its lock) and returns it. Negative seeds wrap, as in PyTorch.
Generator& manual_seed(uint64_t seed);

}  // namespace calque
