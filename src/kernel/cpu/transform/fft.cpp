#include "kernel/cpu/transform/fft.h"

#include <cmath>
#include <complex>
#include <map>
#include <memory>
#include <numbers>
#include <vector>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/copy.h"

namespace calque::kernel {
namespace {

using Complex = std::complex<double>;

Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

Complex root(int64_t i, int64_t n) {
  const long double angle = -2 * std::numbers::pi_v<long double> * static_cast<long double>(i) / static_cast<long double>(n);
  return {static_cast<double>(std::cos(angle)), static_cast<double>(std::sin(angle))};
}

// A forward transform of one length; the backward one conjugates before and after.
class Plan {
 public:
  explicit Plan(int64_t n) : n_(n) {
    constexpr int64_t largest_direct = 47;
    int64_t rest = n;
    for (const int64_t p : {int64_t{4}, int64_t{2}, int64_t{3}, int64_t{5}})
      for (; rest % p == 0; rest /= p) factors_.push_back(p);
    for (int64_t p = 7; p * p <= rest; p += 2)
      for (; rest % p == 0; rest /= p) factors_.push_back(p);
    if (rest > 1) factors_.push_back(rest);
    for (const int64_t p : factors_)
      if (p > largest_direct) convolved_ = true;
    if (convolved_) {
      prepare_convolution();
      return;
    }
    roots_.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) roots_[static_cast<size_t>(i)] = root(i, n);
  }

  void run(const Complex* in, Complex* out) const {
    if (convolved_)
      convolve(in, out);
    else
      step(in, 1, out, n_, 0);
  }

 private:
  void step(const Complex* in, int64_t stride, Complex* out, int64_t n, size_t level) const {
    if (n == 1) {
      out[0] = in[0];
      return;
    }
    const int64_t p = factors_[level], m = n / p, skip = n_ / n;
    for (int64_t q = 0; q < p; ++q) step(in + q * stride, stride * p, out + q * m, m, level + 1);
    Complex t[64];
    for (int64_t k = 0; k < m; ++k) {
      t[0] = out[k];
      for (int64_t q = 1; q < p; ++q) t[q] = times(out[q * m + k], roots_[static_cast<size_t>(q * k * skip)]);
      if (p == 2) {
        out[k] = t[0] + t[1];
        out[m + k] = t[0] - t[1];
      } else if (p == 4) {
        const Complex a = t[0] + t[2], b = t[0] - t[2], c = t[1] + t[3], d = t[1] - t[3];
        const Complex rotated(d.imag(), -d.real());
        out[k] = a + c;
        out[m + k] = b + rotated;
        out[2 * m + k] = a - c;
        out[3 * m + k] = b - rotated;
      } else {
        const int64_t turn = n_ / p;
        for (int64_t r = 0; r < p; ++r) {
          Complex sum = t[0];
          for (int64_t q = 1; q < p; ++q) sum += times(t[q], roots_[static_cast<size_t>(q * r % p * turn)]);
          out[r * m + k] = sum;
        }
      }
    }
  }

  // Bluestein: jk = (j^2 + k^2 - (k - j)^2) / 2 makes the transform a convolution with a chirp.
  void prepare_convolution() {
    int64_t length = 1;
    while (length < 2 * n_ - 1) length *= 2;
    inner_ = std::make_unique<Plan>(length);
    chirp_.resize(static_cast<size_t>(n_));
    for (int64_t i = 0, square = 0; i < n_; square = (square + 2 * i + 1) % (2 * n_), ++i)
      chirp_[static_cast<size_t>(i)] = root(square, 2 * n_);
    std::vector<Complex> b(static_cast<size_t>(length));
    for (int64_t i = 0; i < n_; ++i) {
      b[static_cast<size_t>(i)] = std::conj(chirp_[static_cast<size_t>(i)]);
      if (i > 0) b[static_cast<size_t>(length - i)] = b[static_cast<size_t>(i)];
    }
    filter_.resize(b.size());
    inner_->run(b.data(), filter_.data());
  }
  void convolve(const Complex* in, Complex* out) const {
    const size_t length = filter_.size();
    std::vector<Complex> a(length), b(length);
    for (int64_t i = 0; i < n_; ++i) a[static_cast<size_t>(i)] = times(in[i], chirp_[static_cast<size_t>(i)]);
    inner_->run(a.data(), b.data());
    for (size_t i = 0; i < length; ++i) b[i] = std::conj(times(b[i], filter_[i]));
    inner_->run(b.data(), a.data());
    for (int64_t i = 0; i < n_; ++i)
      out[i] = times(std::conj(a[static_cast<size_t>(i)]) / static_cast<double>(length), chirp_[static_cast<size_t>(i)]);
  }

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Complex> roots_;
  bool convolved_ = false;
  std::unique_ptr<Plan> inner_;
  std::vector<Complex> chirp_, filter_;
};

// Calls fn(offset of the line in a, offset in b) for every line along `dim`, in parallel; sizes other than dim's are a's.
template <class F>
void each_line(const TensorBase& a, const TensorBase& b, int64_t dim, int64_t length, F&& fn) {
  int64_t lines = 1;
  for (int64_t d = 0; d < a.dim(); ++d)
    if (d != dim) lines *= a.size(d);
  parallel_for(0, lines, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, length)), [&](int64_t begin, int64_t end) {
    std::vector<Complex> in(static_cast<size_t>(length)), out(static_cast<size_t>(length));
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i, at_a = 0, at_b = 0;
      for (int64_t d = a.dim() - 1; d >= 0; --d) {
        if (d == dim) continue;
        at_a += rest % a.size(d) * a.stride(d);
        at_b += rest % a.size(d) * b.stride(d);
        rest /= a.size(d);
      }
      fn(at_a, at_b, in.data(), out.data());
    }
  });
}

template <class T>
void transform_in_place(const TensorBase& t, int64_t dim, bool forward, double scale) {
  const int64_t n = t.size(dim), stride = t.stride(dim);
  const Plan plan(n);
  std::complex<T>* const data = static_cast<std::complex<T>*>(t.mutable_data());
  each_line(t, t, dim, n, [&](int64_t at, int64_t, Complex* in, Complex* out) {
    for (int64_t i = 0; i < n; ++i) {
      const Complex x(data[at + i * stride]);
      in[i] = forward ? x : std::conj(x);
    }
    plan.run(in, out);
    for (int64_t i = 0; i < n; ++i)
      data[at + i * stride] = std::complex<T>(std::complex<double>((forward ? out[i] : std::conj(out[i])) * scale));
  });
}

// The transform of a real line that holds infinities or NaN, from its definition: factors that are zero are left out, so
// that an infinity reaches only the parts it belongs to.
constexpr double nothing = 1e-17;  // cos(pi / 2), rounded
// Longer transforms multiply an infinity on its way, which leaves NaN everywhere.
constexpr int64_t longest_by_definition = 32, longest_back_by_definition = 16;
void from_definition(const Complex* line, int64_t n, int64_t kept, Complex* result) {
  for (int64_t k = 0; k < kept; ++k) {
    double re = 0, im = 0;
    for (int64_t j = 0; j < n; ++j) {
      const Complex r = root(j * k % n, n);
      if (std::abs(r.real()) > nothing) re += line[j].real() * r.real();
      if (std::abs(r.imag()) > nothing) im += line[j].real() * r.imag();
    }
    result[k] = {re, im};
  }
}

// The same for the way back: `line` is conjugated, of n values of which those up to the middle are read.
void back_from_definition(const Complex* line, int64_t n, Complex* result) {
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t k = 0; 2 * k <= n; ++k) {
      const Complex r = root(j * k % n, n);
      const double times = k == 0 || 2 * k == n ? 1 : 2;
      if (std::abs(r.real()) > nothing) sum += times * line[k].real() * r.real();
      if (k && 2 * k < n && std::abs(r.imag()) > nothing) sum -= times * line[k].imag() * r.imag();
    }
    result[j] = sum;
  }
}

template <class T>
void real_to_complex(const TensorBase& input, int64_t dim, double scale, const TensorBase& out) {
  const int64_t n = input.size(dim), kept = out.size(dim), in_stride = input.stride(dim), out_stride = out.stride(dim);
  const Plan plan(n);
  const T* const from = input.data_as<T>();
  std::complex<T>* const to = static_cast<std::complex<T>*>(out.mutable_data());
  each_line(input, out, dim, n, [&](int64_t at, int64_t to_at, Complex* line, Complex* result) {
    bool finite = true;
    for (int64_t i = 0; i < n; ++i) {
      line[i] = static_cast<double>(from[at + i * in_stride]);
      finite = finite && std::isfinite(line[i].real());
    }
    if (finite || n > longest_by_definition)
      plan.run(line, result);
    else
      from_definition(line, n, kept, result);
    for (int64_t i = 0; i < kept; ++i) to[to_at + i * out_stride] = std::complex<T>(std::complex<double>(result[i] * scale));
  });
}

template <class T>
void complex_to_real(const TensorBase& input, int64_t dim, double scale, const TensorBase& out) {
  const int64_t n = out.size(dim), in_stride = input.stride(dim), out_stride = out.stride(dim);
  const Plan plan(n);
  const std::complex<T>* const from = static_cast<const std::complex<T>*>(input.data());
  T* const to = out.mutable_data_as<T>();
  each_line(input, out, dim, n, [&](int64_t at, int64_t to_at, Complex* line, Complex* result) {
    // The backward transform of a Hermitian line, as the forward one of its conjugate.
    bool finite = true;
    bool only_added = n > longest_back_by_definition;  // at a quarter of the length, or half of it, nothing is multiplied
    for (int64_t i = 0; 2 * i <= n; ++i) {
      Complex x(from[at + i * in_stride]);
      if (i == 0 || 2 * i == n) x = x.real();
      line[i] = std::conj(x);
      const bool special = !std::isfinite(x.real()) || !std::isfinite(x.imag());
      finite = finite && !special;
      only_added = only_added && !(special && 4 * i % n != 0);
      if (i > 0 && 2 * i < n) line[n - i] = x;
    }
    if (finite || (n > longest_back_by_definition && !only_added))
      plan.run(line, result);
    else
      back_from_definition(line, n, result);
    for (int64_t i = 0; i < n; ++i) to[to_at + i * out_stride] = static_cast<T>(result[i].real() * scale);
  });
}

// The library that PyTorch calls refuses a batch of no lines.
void check_not_empty(const TensorBase& t, const char* which) {
  if (t.numel() == 0)
    throw UserError(std::string("fft: expected at least one line to transform, found ") + which + " of sizes " +
                    str(t.sym_sizes()));
}

void transform_in_place(const TensorBase& t, int64_t dim, bool forward, double scale) {
  if (t.dtype() == DType::complex128)
    transform_in_place<double>(t, dim, forward, scale);
  else
    transform_in_place<float>(t, dim, forward, scale);
}

}  // namespace

void fft_complex(const TensorBase& input, IntList dims, bool forward, double scale, const TensorBase& out) {
  if (!dims.empty()) check_not_empty(input, "an input");
  copy(input, out);
  for (size_t i = 0; i < dims.size(); ++i) transform_in_place(out, dims[i], forward, i + 1 == dims.size() ? scale : 1.0);
}

void fft_real(const TensorBase& input, IntList dims, double scale, const TensorBase& out) {
  check_not_empty(input, "an input");
  const int64_t last = dims.back();
  const double first_scale = dims.size() == 1 ? scale : 1.0;
  if (input.dtype() == DType::float64)
    real_to_complex<double>(input, last, first_scale, out);
  else
    real_to_complex<float>(input, last, first_scale, out);
  for (size_t i = 0; i + 1 < dims.size(); ++i) transform_in_place(out, dims[i], true, i + 2 == dims.size() ? scale : 1.0);
}

void fft_to_real(const TensorBase& input, int64_t dim, double scale, const TensorBase& out) {
  check_not_empty(input, "an input");
  check_not_empty(out, "a result");
  if (out.dtype() == DType::float64)
    complex_to_real<double>(input, dim, scale, out);
  else
    complex_to_real<float>(input, dim, scale, out);
}

}  // namespace calque::kernel
