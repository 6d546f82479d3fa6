#include "rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "calque/base/error.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"

namespace calque {

ConfigSchema rotary_schema(std::vector<KeyRule> own) {
  own.push_back({"max_position_embeddings", KeyKind::length});
  return {.keys = std::move(own),
          .relations = {multiple("hidden_size", "num_attention_heads", "head_dim"),
                        multiple("num_attention_heads", "num_key_value_heads")}};
}

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
  // What the configuration says beside the scaling counts more.
  const auto put_original_length = [&] {
    constexpr const char* key = "original_max_position_embeddings";
    if (config.has(key)) std::erase_if(items, [&](const auto& item) { return item.first.to_string() == key; });
    put(key, config.integer(config.has(key) ? key : "max_position_embeddings"));
  };
  put("rope_theta", config.optional_number("rope_theta").value_or(default_theta));
  put("rope_type", "default");
  if (config.has("partial_rotary_factor")) put("partial_rotary_factor", config.number("partial_rotary_factor"));
  for (const auto& [name, value] : std::vector(items))
    if (name.to_string() == "rope_type" &&
        (value.to_string() == "llama3" || value.to_string() == "yarn" || value.to_string() == "longrope"))
      put_original_length();
  config.set("rope_parameters", dict(std::move(items)));
}

namespace {

Tensor plain_frequencies(double base, int64_t size) {
  const Tensor exponents = arange(0, size, 2, DType::int64).to(DType::float32) / static_cast<double>(size);
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
  const Tensor between =
      bitwise_and(bitwise_not(lt(wavelength, old_length / high)), bitwise_not(gt(wavelength, old_length / low)));
  return where(between, mixed, slowed);
}

// Between those that turn often within the old length (kept) and those that turn seldom (slowed by `factor`) a linear ramp.
Tensor yarn_frequencies(const Tensor& inv_freq, const Config& rope, double factor, int64_t size) {
  const double base = rope.number("rope_theta");
  const double old_length = rope.number("original_max_position_embeddings");
  const auto dimension_of = [&](double turns) {
    return static_cast<double>(size) * std::log(old_length / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  const auto turns = [&](const char* key, double otherwise) {
    const double given = rope.optional_number(key).value_or(0);
    return given == 0 ? otherwise : given;
  };
  double low = dimension_of(turns("beta_fast", 32));
  double high = dimension_of(turns("beta_slow", 1));
  if (!rope.has("truncate") || rope.flag("truncate")) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(size - 1));
  if (low == high) high += 0.001;
  const Tensor ramp = clamp((arange(size / 2, DType::float32) - low) / (high - low), 0, 1);
  return inv_freq / factor * ramp + inv_freq * (1 - ramp);
}

double yarn_attention_scaling(const Config& rope, double factor) {
  if (rope.has("attention_factor")) return rope.number("attention_factor");
  const auto scaling = [&](double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; };
  const double one = rope.optional_number("mscale").value_or(0);
  const double all = rope.optional_number("mscale_all_dim").value_or(0);
  return one != 0 && all != 0 ? scaling(one) / scaling(all) : scaling(1);
}

// Only the first part of the angles turns, but with the frequencies of the whole.
Tensor proportional_frequencies(const Config& rope, int64_t head_size) {
  const double part = rope.optional_number("partial_rotary_factor").value_or(1);
  const int64_t turning = static_cast<int64_t>(std::floor(part * static_cast<double>(head_size) / 2));
  const Tensor kept = plain_frequencies(rope.number("rope_theta"), head_size).slice(0, 0, turning);
  const Tensor still = zeros({head_size / 2 - turning}, DType::float32);
  return cat({kept, still}, 0) / rope.optional_number("factor").value_or(1);
}

Tensor factors(const Config& rope, const char* key, int64_t count) {
  const Value* value = rope.find(key);
  if (!value || !value->is_container() || static_cast<int64_t>(value->to_items().size()) != count)
    throw UserError(ErrorKind::bad_file, rope.where() + ": \"" + key + "\" is " + (value ? value->str() : "missing") +
                                             ", expected " + std::to_string(count) + " numbers");
  std::vector<float> out;
  for (const Value& one : value->to_items())
    out.push_back(
        static_cast<float>(one.kind() == Value::Kind::integer ? static_cast<double>(one.to_int()) : one.to_float()));
  return tensor_of<float>(out, {count});
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(double theta, int64_t head_size, bool interleaved)
    : interleaved(interleaved), inv_freq(register_buffer("inv_freq", plain_frequencies(theta, head_size), false)) {}

RotaryEmbedding::RotaryEmbedding(const Config& config, int64_t head_size, const RotaryOptions& options)
    : interleaved(options.interleaved), wide(options.wide), inv_freq(register_buffer("inv_freq", Tensor(), false)) {
  const Config all = config.nested("rope_parameters");
  const Config rope = options.among ? all.nested(options.among) : all;
  const std::string type = rope.text("rope_type");
  const double theta = rope.number("rope_theta");
  const double part = type == "default" && !options.partial ? 1 : rope.optional_number("partial_rotary_factor").value_or(1);
  const int64_t size = static_cast<int64_t>(static_cast<double>(head_size) * part);
  const Tensor plain = plain_frequencies(theta, size);
  const auto factor_or_growth = [&] {
    if (rope.has("factor")) return rope.number("factor");
    return config.number("max_position_embeddings") / rope.number("original_max_position_embeddings");
  };
  if (type == "default") {
    inv_freq = plain;
  } else if (type == "linear") {
    inv_freq = plain / rope.number("factor");
  } else if (type == "llama3") {
    inv_freq = llama3_frequencies(plain, rope);
  } else if (type == "proportional") {
    inv_freq = proportional_frequencies(rope, head_size);
  } else if (type == "yarn") {
    const double factor = factor_or_growth();
    inv_freq = yarn_frequencies(plain, rope, factor, size);
    attention_scaling = yarn_attention_scaling(rope, factor);
  } else if (type == "dynamic") {
    inv_freq = plain;
    length_ = Length::dynamic;
    limit_ = config.number("max_position_embeddings");
    theta_ = theta;
    factor_ = rope.number("factor");
  } else if (type == "longrope") {
    const double factor = factor_or_growth();
    length_ = Length::longrope;
    limit_ = rope.number("original_max_position_embeddings");
    inv_freq = plain / factors(rope, "short_factor", size / 2);
    long_inv_freq_.emplace(register_buffer("long_inv_freq", plain / factors(rope, "long_factor", size / 2), false));
    attention_scaling = rope.has("attention_factor") ? rope.number("attention_factor")
                        : factor <= 1                ? 1
                                                     : std::sqrt(1 + std::log(factor) / std::log(limit_));
  } else {
    throw UserError(ErrorKind::bad_file,
                    config.where() + ": rope_type is \"" + type +
                        "\", expected default, linear, dynamic, yarn, longrope, llama3 or proportional");
  }
}

Tensor RotaryEmbedding::frequencies(const Tensor& position_ids) const {
  if (length_ == Length::any) return inv_freq;
  const Tensor length = position_ids.max() + 1;
  if (length_ == Length::longrope) return where(gt(length, limit_), *long_inv_freq_, inv_freq);
  // The base grows with the length beyond the limit, so that the slowest angle covers as much of a turn as it did.
  const int64_t half = inv_freq->size(0);
  const double size = static_cast<double>(2 * half);
  const Tensor growth = factor_ * clamp_min(length, limit_) / limit_ - (factor_ - 1);
  const Tensor base = theta_ * pow(growth, size / (size - 2));
  const Tensor exponents =
      arange(0, 2 * half, 2, DType::int64, std::nullopt, position_ids.device()).to(DType::float32) / size;
  return 1.0 / pow(base, exponents);
}

std::tuple<Tensor, Tensor> RotaryEmbedding::forward(const Tensor& x, const Tensor& position_ids) {
  const Tensor angles = position_ids.unsqueeze(-1).to(DType::float32) * frequencies(position_ids);
  const Tensor both = interleaved ? repeat_interleave(angles, 2, -1) : cat({angles, angles}, -1);
  Tensor cosine = both.cos();
  Tensor sine = both.sin();
  if (attention_scaling != 1) {
    cosine = cosine * attention_scaling;
    sine = sine * attention_scaling;
  }
  if (wide) return {cosine, sine};
  return {cosine.to(x.dtype()), sine.to(x.dtype())};
}

Tensor rotate_half(const Tensor& x) {
  const int64_t half = x.size(-1) / 2;
  const Tensor first = x.slice(-1, 0, half);
  const Tensor second = x.slice(-1, half);
  return cat({neg(second), first}, -1);
}

Tensor rotate_every_two(const Tensor& x) {
  const Tensor even = x.slice(-1, 0, std::nullopt, 2);
  const Tensor odd = x.slice(-1, 1, std::nullopt, 2);
  return stack({neg(odd), even}, -1).flatten(-2);
}

static Tensor turned(const Tensor& x, const Tensor& cosine, const Tensor& sine, Tensor (*across)(const Tensor&)) {
  const int64_t part = cosine.size(-1), size = x.size(-1);
  if (part > size)
    throw UserError(ErrorKind::bad_file, "rotary positions turn pairs of numbers, but heads have " + std::to_string(size) +
                                             "; make head_dim and the part that turns even");
  const Tensor turning = part == size ? x : x.slice(-1, 0, part);
  const Tensor straight = turning * cosine.unsqueeze(1);
  const Tensor out = straight + across(turning) * sine.unsqueeze(1);
  return part == size ? out : cat({out, x.slice(-1, part)}, -1);
}

Tensor apply_rotary(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  return turned(x, cosine, sine, rotate_half);
}

Tensor apply_interleaved_rotary(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  return turned(x, cosine, sine, rotate_every_two);
}

}  // namespace calque
