#include "compile/md5.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace calque::compile_detail {
namespace {

constexpr std::array<int, 16> shifts = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

// floor(2^32 * |sin(i + 1)|)
std::array<uint32_t, 64> sine_table() {
  std::array<uint32_t, 64> out = {};
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<uint32_t>(std::floor(4294967296.0 * std::abs(std::sin(static_cast<double>(i + 1)))));
  return out;
}

using State = std::array<uint32_t, 4>;

void add_block(State& state, const unsigned char* block) {
  static const std::array<uint32_t, 64> sines = sine_table();
  std::array<uint32_t, 16> words = {};
  for (size_t i = 0; i < 64; ++i) words[i / 4] |= static_cast<uint32_t>(block[i]) << (8 * (i % 4));
  auto [a, b, c, d] = state;
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t round = i / 16;
    uint32_t f = 0, word = 0;
    if (round == 0) {
      f = (b & c) | (~b & d);
      word = i;
    } else if (round == 1) {
      f = (d & b) | (~d & c);
      word = (5 * i + 1) % 16;
    } else if (round == 2) {
      f = b ^ c ^ d;
      word = (3 * i + 5) % 16;
    } else {
      f = c ^ (b | ~d);
      word = (7 * i) % 16;
    }
    const uint32_t turned = std::rotl(a + f + sines[i] + words[word], shifts[4 * round + i % 4]);
    a = d;
    d = c;
    c = b;
    b += turned;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
}

}  // namespace

std::string md5_hex(std::string_view text) {
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  const uint64_t bits = 8 * static_cast<uint64_t>(text.size());
  for (int i = 0; i < 8; ++i) padded += static_cast<char>((bits >> (8 * i)) & 0xff);
  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (size_t at = 0; at < padded.size(); at += 64)
    add_block(state, reinterpret_cast<const unsigned char*>(padded.data()) + at);
  std::string out;
  for (const uint32_t word : state)
    for (int i = 0; i < 4; ++i) out += fmt::format("{:02x}", (word >> (8 * i)) & 0xff);
  return out;
}

}  // namespace calque::compile_detail
