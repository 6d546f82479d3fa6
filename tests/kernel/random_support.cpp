#include "random_support.h"

#include <cstring>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "calque/op/tensor.h"
#include "calque/tensor/generator.h"
#include "kernel/cpu/random/random.h"

namespace calque {
namespace {

std::vector<int64_t> read_list(std::istream& in) {
  std::string word;
  in >> word;
  std::vector<int64_t> values;
  if (word == "-") return values;
  std::istringstream parts(word);
  for (std::string part; std::getline(parts, part, 'x');) values.push_back(std::stoll(part));
  return values;
}

double read_double(std::istream& in) {
  std::string word;
  in >> word;
  return std::stod(word);
}

DType read_dtype(std::istream& in) {
  std::string word;
  in >> word;
  return dtype_from_name(word).value();
}

Tensor zeros_strided(DType dtype, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  int64_t elements = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) {
      elements = 0;
      break;
    }
    elements += (sizes[d] - 1) * strides[d];
  }
  const size_t bytes = static_cast<size_t>(elements) * item_size(dtype);
  Ref<Storage> storage = Storage::allocate(bytes);
  if (bytes != 0) std::memset(storage->data(), 0, bytes);
  return from_storage(std::move(storage), dtype, sizes, strides, 0);
}

// Probabilities and weights that every float dtype holds exactly: 64ths, zero and one among them.
Tensor read_weights(std::istream& in) {
  const DType dtype = read_dtype(in);
  const auto sizes = read_list(in);
  const auto strides = read_list(in);
  const Tensor t = zeros_strided(dtype, sizes, strides);
  dispatch(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_constructible_v<T, float>) {
      auto* data = static_cast<T*>(t.storage()->data());
      for (size_t i = 0; i < t.storage()->nbytes() / sizeof(T); ++i)
        data[i] = static_cast<T>(static_cast<float>(i * 37 % 65) / 64.0F);
    }
  });
  return t;
}

std::vector<uint8_t> from_hex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::vector<uint8_t> buffer_of(const Tensor& t) {
  const auto* data = static_cast<const uint8_t*>(t.storage()->data());
  return {data, data + t.storage()->nbytes()};
}

}  // namespace

std::vector<RandomResult> run_random_script(std::istream& script) {
  std::vector<RandomResult> results;
  Generator g;
  for (std::string line; std::getline(script, line);) {
    std::istringstream in(line);
    std::string op;
    in >> op;
    RandomResult result;
    result.line = line;
    if (op == "seed") {
      uint64_t seed = 0;
      in >> seed;
      g.manual_seed(seed);
      continue;
    }
    if (op == "load") {
      std::string hex;
      in >> hex;
      g.set_state(from_hex(hex));
      continue;
    }
    if (op == "state") {
      result.is_state = true;
      result.bytes = g.get_state();
      results.push_back(std::move(result));
      continue;
    }
    const DType dtype = read_dtype(in);
    const auto sizes = read_list(in);
    const auto strides = read_list(in);
    const Tensor out = zeros_strided(dtype, sizes, strides);
    if (op == "uniform") {
      const double from = read_double(in);
      uniform_kernel(out, from, read_double(in), &g);
    } else if (op == "normal" || op == "log_normal" || op == "cauchy") {
      const double a = read_double(in);
      const double b = read_double(in);
      (op == "normal" ? normal_kernel : op == "cauchy" ? cauchy_kernel : log_normal_kernel)(out, a, b, &g);
      result.exact = false;
    } else if (op == "exponential") {
      exponential_kernel(out, read_double(in), &g);
      result.exact = false;
    } else if (op == "geometric") {
      geometric_kernel(out, read_double(in), &g);
    } else if (op == "bernoulli") {
      bernoulli_kernel(out, read_double(in), &g);
    } else if (op == "dropout") {
      dropout_mask_kernel(out, read_double(in), &g);
    } else if (op == "bernoulli_p") {
      bernoulli_kernel(out, read_weights(in), &g);
    } else if (op == "multinomial") {
      int replacement = 0;
      in >> replacement;
      multinomial_kernel(out, read_weights(in), replacement != 0, &g);
    } else if (op == "random") {
      random_kernel(out, &g);
    } else if (op == "random_from_to") {
      int64_t from = 0;
      std::string to;
      in >> from >> to;
      random_from_to_kernel(out, from, to == "none" ? std::nullopt : std::optional<int64_t>(std::stoll(to)), &g);
    } else if (op == "randperm") {
      randperm_kernel(out, &g);
    } else {
      throw std::runtime_error("unknown line in a random script: " + line);
    }
    result.dtype = dtype;
    result.bytes = buffer_of(out);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace calque
