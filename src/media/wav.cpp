// WAV files of PCM and floating point, read as libsndfile reads them: integers are divided by their largest power of two.
#include <bit>
#include <cstring>
#include <string_view>

#include "media/codec/codec.h"

namespace calque {
namespace {

uint32_t little_endian(std::string_view bytes, size_t at, size_t count) {
  uint32_t out = 0;
  for (size_t i = count; i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[at + i]);
  return out;
}

struct WavForm {
  uint32_t coding = 0, channels = 0, rate = 0, bits = 0;
  bool known() const {
    if (coding == 3) return bits == 32 || bits == 64;
    return coding == 1 && (bits == 8 || bits == 16 || bits == 24 || bits == 32);
  }
};

WavForm wav_form(std::string_view chunk) {
  WavForm form;
  if (chunk.size() < 16) return form;
  form = {little_endian(chunk, 0, 2), little_endian(chunk, 2, 2), little_endian(chunk, 4, 4), little_endian(chunk, 14, 2)};
  // The coding that an extensible header hides; its samples may not fill their bytes.
  if (form.coding == 0xFFFE && chunk.size() >= 26 && little_endian(chunk, 18, 2) == form.bits)
    form.coding = little_endian(chunk, 24, 2);
  return form;
}

float wav_sample(const char* at, const WavForm& form) {
  const std::string_view bytes(at, form.bits / 8);
  switch (form.bits) {
    case 8: return static_cast<float>(static_cast<int>(static_cast<unsigned char>(*at)) - 128) / 128.0f;
    case 16: return static_cast<float>(static_cast<int16_t>(little_endian(bytes, 0, 2))) / 32768.0f;
    case 24: return static_cast<float>(static_cast<int32_t>(little_endian(bytes, 0, 3) << 8)) / 2147483648.0f;
    case 32: {
      const uint32_t word = little_endian(bytes, 0, 4);
      return form.coding == 3 ? std::bit_cast<float>(word) : static_cast<float>(static_cast<int32_t>(word)) / 2147483648.0f;
    }
    default:
      return static_cast<float>(
          std::bit_cast<double>(uint64_t{little_endian(bytes, 4, 4)} << 32 | little_endian(bytes, 0, 4)));
  }
}

}  // namespace

bool decode_wav(const SoundSource& source, Waveform& out) {
  std::string_view rest(reinterpret_cast<const char*>(source.bytes.data()), source.bytes.size());
  if (rest.size() < 12 || !rest.starts_with("RIFF") || rest.substr(8, 4) != "WAVE") return false;
  rest.remove_prefix(12);
  WavForm form;
  std::string_view data;
  while (rest.size() >= 8) {
    const std::string_view name = rest.substr(0, 4);
    const size_t size = little_endian(rest, 4, 4);
    rest.remove_prefix(8);
    if (name == "fmt ") form = wav_form(rest.substr(0, size));
    if (name == "data") {
      data =
          rest.substr(0, size);  // a stream that was cut off, or that did not know its length, goes to the end of the file
      break;
    }
    rest.remove_prefix(std::min(rest.size(), size + (size & 1)));
  }
  if (!form.known()) return false;
  if (form.channels == 0 || form.rate == 0) source.fail("a broken WAV: no rate or no channels");
  const size_t frame = size_t{form.bits / 8} * form.channels, frames = data.size() / frame;
  source.check_length(frames, form.rate, form.channels);
  out.rate = form.rate;
  CountedVector<float> values(frames * form.channels);
  for (size_t i = 0; i < values.size(); ++i) values[i] = wav_sample(data.data() + i * (form.bits / 8), form);
  if (form.channels == 1)
    out.samples = std::move(values);
  else
    append_mean(values.data(), frames, form.channels, out.samples);
  return true;
}

}  // namespace calque
