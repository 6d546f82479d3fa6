#include "rotary.h"

#include <cmath>
#include <numbers>

#include "calque/base/error.h"
#include "calque/op/ops.h"

namespace calque {

void complete_rope_parameters(Config& config, double default_theta) {
  std::vector<std::pair<Value, Value>> items;
  const auto put = [&](std::string_view key, const Value& value) {
    for (auto& [name, old] : items)
      if (name.to_string() == key) return;
    items.emplace_back(key, value);
  };
  for (const char* name : {"rope_parameters", "rope_scaling"})
    if (config.has(name))
      for (const auto& [key, value] : config.find(name)->to_dict().items)
        put(key.to_string() == "type" ? "rope_type" : std::string_view(key.to_string()), value);
  put("rope_theta", config.optional_number("rope_theta").value_or(default_theta));
  put("rope_type", "default");
  config.set("rope_parameters", dict(std::move(items)));
}

namespace {

struct Frequencies {
  Tensor inv_freq;
  double attention_scaling = 1;
};

Tensor plain_frequencies(double base, int64_t size) {
  const Tensor exponents = arange_start_step(0, size, 2, DType::int64).to(DType::float32) / static_cast<double>(size);
  return 1.0 / pow(base, exponents);
}

// Long wavelengths slowed by `factor`, short ones kept, those between mixed.
Tensor llama3_frequencies(const Tensor& inv_freq, const Config& rope) {
  const double factor = rope.number("factor");
  const double low = rope.number("low_freq_factor");
  const double high = rope.number("high_freq_factor");
  const double old_length = rope.number("original_max_position_embeddings");
  const Tensor wavelength = 2 * std::numbers::pi / inv_freq;
  const Tensor slowed = where(gt(wavelength, old_length / low), inv_freq / factor, inv_freq);
  const Tensor smooth = (old_length / wavelength - low) / (high - low);
  const Tensor mixed = (1 - smooth) * slowed / factor + smooth * slowed;
  const Tensor between = bitwise_and(bitwise_not(lt(wavelength, old_length / high)), bitwise_not(gt(wavelength, old_length / low)));
  return where(between, mixed, slowed);
}

Frequencies frequencies(const Config& config, int64_t head_size) {
  const Config rope = config.nested("rope_parameters");
  const std::string type = rope.text("rope_type");
  const double base = rope.number("rope_theta");
  const int64_t size = static_cast<int64_t>(static_cast<double>(head_size) * rope.optional_number("partial_rotary_factor").value_or(1));
  const Tensor plain = plain_frequencies(base, size);
  if (type == "default") return {plain};
  if (type == "linear") return {plain / rope.number("factor")};
  if (type == "llama3") return {llama3_frequencies(plain, rope)};
  throw UserError(ErrorKind::bad_file, config.where() + ": rope_type is \"" + type + "\", expected default, linear or llama3");
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(const Config& config, int64_t head_size) : inv_freq(register_buffer("inv_freq", Tensor(), false)) {
  const Frequencies made = frequencies(config, head_size);
  inv_freq = made.inv_freq;
  attention_scaling = made.attention_scaling;
}

std::tuple<Tensor, Tensor> RotaryEmbedding::forward(const Tensor& x, const Tensor& position_ids) {
  const Tensor angles = position_ids.unsqueeze(-1).to(DType::float32) * inv_freq;
  const Tensor both = cat({angles, angles}, -1);
  Tensor cosine = both.cos();
  Tensor sine = both.sin();
  if (attention_scaling != 1) {
    cosine = cosine * attention_scaling;
    sine = sine * attention_scaling;
  }
  return {cosine.to(x.dtype()), sine.to(x.dtype())};
}

Tensor rotate_half(const Tensor& x) {
  const int64_t half = x.size(-1) / 2;
  const Tensor first = x.slice(-1, 0, half);
  const Tensor second = x.slice(-1, half);
  return cat({neg(second), first}, -1);
}

Tensor apply_rotary(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  const Tensor straight = x * cosine.unsqueeze(1);
  return straight + rotate_half(x) * sine.unsqueeze(1);
}

}  // namespace calque
