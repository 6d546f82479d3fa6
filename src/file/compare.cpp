#include "calque/file/compare.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <iterator>
#include <memory>
#include <type_traits>

#include <fmt/format.h>

#include "calque/base/thread.h"
#include "file/row_major.h"
#include "file/safetensors_header.h"

namespace calque {
namespace {

constexpr size_t block = 4096;  // elements that are loaded at a time

template <class T>
constexpr bool is_complex_v = std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;
template <class T>
constexpr bool is_small_float_v = !is_arithmetic_type<T> && !is_complex_v<T>;  // 16 and 8 bits: computed in float

using Wide = std::complex<double>;  // holds every element; only int64 and uint64 beyond 2^53 are rounded

template <class T>
Wide widen(T v) {
  if constexpr (is_complex_v<T>)
    return {static_cast<double>(v.real()), static_cast<double>(v.imag())};
  else if constexpr (is_small_float_v<T>)
    return static_cast<double>(static_cast<float>(v));
  else
    return static_cast<double>(v);
}

// The cast of a tensor's element as to(dtype) does it; a NaN or infinity has no integer and becomes 0.
template <class T>
T narrow(Wide v) {
  if constexpr (is_complex_v<T>) {
    using Part = typename T::value_type;
    return {static_cast<Part>(v.real()), static_cast<Part>(v.imag())};
  } else if constexpr (is_small_float_v<T>) {
    return T(static_cast<float>(v.real()));
  } else if constexpr (std::is_same_v<T, Bool>) {
    return v != Wide{};
  } else if constexpr (is_integral_type<T>) {
    if (!(std::abs(v.real()) < 0x1p63)) return T{};
    return static_cast<T>(static_cast<int64_t>(v.real()));
  } else {
    return static_cast<T>(v.real());
  }
}

bool is_nan(Wide v) { return std::isnan(v.real()) || std::isnan(v.imag()); }
double magnitude(Wide v) { return v.imag() == 0 ? std::abs(v.real()) : std::abs(v); }

// torch.isclose(a, b) of one element, in the arithmetic that PyTorch does it in: integers in float32, the 16-bit types
// rounded after every step. (PyTorch has no arithmetic for 8-bit floats; they are compared in float32.)
template <class T>
struct Close {
  Close(double tol_, bool equal_nan_) : tol(tol_), equal_nan(equal_nan_) {}
  double tol;
  bool equal_nan;

  template <class F>
  static F step(F v) {
    if constexpr (is_small_float_v<T> && sizeof(T) == 2)
      return static_cast<float>(T(v));
    else
      return v;
  }

  bool operator()(T a, T b) const {
    if constexpr (is_complex_v<T>) {
      using Part = typename T::value_type;
      if (a == b) return true;
      if (equal_nan && is_nan(widen(a)) && is_nan(widen(b))) return true;
      if (tol == 0) return false;
      const T difference = a - b;
      const Part error = std::abs(difference);
      return std::isfinite(difference.real()) && std::isfinite(difference.imag()) &&
             error <= static_cast<Part>(tol) + std::abs(static_cast<Part>(tol) * b);
    } else if constexpr (is_small_float_v<T>) {
      return finish(static_cast<float>(a), static_cast<float>(b));
    } else if constexpr (is_integral_type<T>) {
      if (a == b) return true;
      return tol != 0 && finish(static_cast<float>(a), static_cast<float>(b));
    } else {
      return finish(a, b);
    }
  }

 private:
  template <class F>
  bool finish(F a, F b) const {
    if (a == b) return true;
    if (equal_nan && std::isnan(a) && std::isnan(b)) return true;
    if (tol == 0) return false;
    const F error = std::abs(step(a - b));
    const F allowed = step(static_cast<F>(tol) + std::abs(step(static_cast<F>(tol) * b)));
    return std::isfinite(error) && error <= allowed;
  }
};

// The next elements of a tensor, as type T, whatever its dtype.
template <class T>
class Elements {
 public:
  explicit Elements(const Tensor& t) : reader_(t), dtype_(t.dtype()), raw_(block * item_size(t.dtype())) {
    if (dtype_ != dtype_v<T>) cast_ = std::make_unique<T[]>(block);
  }
  const T* next(size_t count) {
    const void* raw = reader_.next(raw_.data(), count);
    if (dtype_ == dtype_v<T>) return static_cast<const T*>(raw);
    dispatch(dtype_, [&](auto tag) {
      using From = typename decltype(tag)::type;
      const auto* from = static_cast<const From*>(raw);
      for (size_t i = 0; i < count; ++i) {
        if constexpr (is_integral_type<From> && is_arithmetic_type<T> && !std::is_same_v<T, Bool>)
          cast_[i] = static_cast<T>(from[i]);
        else
          cast_[i] = narrow<T>(widen(from[i]));
      }
    });
    return cast_.get();
  }

 private:
  RowMajorReader reader_;
  DType dtype_;
  std::vector<std::byte> raw_;
  std::unique_ptr<T[]> cast_;
};

// A sum of many terms: each block by itself, then the blocks, so that rounding errors do not pile up.
class Sum {
 public:
  void add(double v) { block_ += v; }
  void end_block() {
    total_ += block_;
    block_ = 0;
  }
  double total() const { return total_; }

 private:
  double total_ = 0, block_ = 0;
};

struct Figures {
  TensorComparison c;
  bool close = true;        // torch.allclose
  bool close_float = true;  // of both cast to float32, NaN equal to NaN
  int64_t trues_both = 0, trues_any = 0;
};

template <class T>
Figures measure(const Tensor& a, const Tensor& b, const SameOptions& options) {
  Figures f;
  Elements<T> as(a), bs(b);
  const Close<T> close(options.tol, options.equal_nan);
  const Close<float> close_float(options.tol, true);
  Sum squares, aa, bb, ab;
  const auto total = static_cast<size_t>(a.numel());
  for (size_t done = 0; done < total;) {
    const size_t count = std::min(block, total - done);
    const T* x = as.next(count);
    const T* y = bs.next(count);
    for (size_t i = 0; i < count; ++i) {
      const Wide p = widen(x[i]), q = widen(y[i]);
      if (!close(x[i], y[i])) ++f.c.outside_tol;
      f.close_float &= close_float(static_cast<float>(p.real()), static_cast<float>(q.real())) &&
                       close_float(static_cast<float>(p.imag()), static_cast<float>(q.imag()));
      const bool nan_p = is_nan(p), nan_q = is_nan(q);
      f.c.nan_a += nan_p;
      f.c.nan_b += nan_q;
      f.trues_both += p != Wide{} && q != Wide{};
      f.trues_any += p != Wide{} || q != Wide{};
      // Equal infinities, and NaN against NaN where that counts as equal, are no difference.
      const double d = p == q || (options.equal_nan && nan_p && nan_q) ? 0 : magnitude(p - q);
      squares.add(d * d);
      if (d > f.c.max_abs || (std::isnan(d) && !std::isnan(f.c.max_abs))) {
        f.c.max_abs = d;
        f.c.worst = static_cast<int64_t>(done + i);
      }
      aa.add(std::norm(p));
      bb.add(std::norm(q));
      ab.add(p.real() * q.real() + p.imag() * q.imag());
    }
    for (Sum* s : {&squares, &aa, &bb, &ab}) s->end_block();
    done += count;
  }
  f.close = f.c.outside_tol == 0;
  if (total > 0) f.c.rmse = std::sqrt(squares.total() / static_cast<double>(total));
  if (f.c.max_abs == 0) {
    f.c.cosine = 1;
  } else {
    constexpr double eps = 1e-6;
    f.c.cosine = ab.total() / std::max(std::sqrt(aa.total()), eps) / std::max(std::sqrt(bb.total()), eps);
  }
  return f;
}

struct Errors {
  double a = 0, b = 0;
  bool nan_reference = false;
  bool b_close_to_reference = true;  // loosely
};

// Root mean square errors of a and b against the float64 reference.
template <class T>
Errors measure_errors(const Tensor& reference, const Tensor& a, const Tensor& b, const SameOptions& options) {
  constexpr double loose = 4e-2;
  Errors out;
  Elements<double> rs(reference);
  Elements<T> as(a), bs(b);
  const Close<T> close(loose, options.equal_nan);
  Sum sum_a, sum_b;
  const auto total = static_cast<size_t>(a.numel());
  for (size_t done = 0; done < total;) {
    const size_t count = std::min(block, total - done);
    const double* r = rs.next(count);
    const T* x = as.next(count);
    const T* y = bs.next(count);
    for (size_t i = 0; i < count; ++i) {
      out.nan_reference |= std::isnan(r[i]);
      sum_a.add(std::norm(r[i] - widen(x[i])));
      sum_b.add(std::norm(r[i] - widen(y[i])));
      out.b_close_to_reference &= close(narrow<T>(r[i]), y[i]);
    }
    sum_a.end_block();
    sum_b.end_block();
    done += count;
  }
  out.a = std::sqrt(sum_a.total() / static_cast<double>(total));
  out.b = std::sqrt(sum_b.total() / static_cast<double>(total));
  return out;
}

double allowed_multiple(const Tensor& a, const Tensor& b, const SameOptions& options) {
  if (options.max_multiplier) return 10;
  const int64_t count = a.numel();
  if (options.larger_multiplier_for_small && count <= 10) return 10;
  if (options.larger_multiplier_for_small && count <= 500) return 8;
  // Noise dominates the error of small tensors and of 1x1 kernels; a wide tolerance says that more is expected.
  const bool noisy = count < 1000 || (a.dim() == 4 && a.size(-1) == 1 && a.size(-2) == 1) || options.tol >= 2e-2;
  return noisy || is_reduced_float(b.dtype()) ? 3 : 2;
}

void judge_against_reference(TensorComparison& c, const Errors& errors, double multiplier, const SameOptions& options) {
  c.a_error = errors.a;
  c.b_error = errors.b;
  c.multiplier = multiplier;
  if (!errors.nan_reference && c.nan_b == 0 && c.nan_a > 0 && errors.b_close_to_reference) {
    c.same = true;
    c.reason = "close to the reference where A has NaN";
    return;
  }
  const double allowed = multiplier * errors.a + options.tol / 10;
  if (errors.b <= allowed) {
    c.same = true;
    c.reason = fmt::format("rmse to the reference {:.3g}, at most {:.3g}", errors.b, allowed);
  } else if (options.equal_nan && std::isnan(errors.a) && std::isnan(errors.b)) {
    c.same = true;
    c.reason = "both have NaN errors to the reference";
  } else {
    c.reason = fmt::format("rmse to the reference {:.3g}, more than {:g} x {:.3g} + {:.3g}", errors.b, multiplier, errors.a,
                           options.tol / 10);
  }
}

TensorComparison judge(const Figures& f, const Tensor& a, const Tensor& b, const Tensor& reference,
                       const SameOptions& options) {
  TensorComparison c = f.c;
  const auto decide = [&](bool same, std::string reason) {
    c.same = same;
    c.reason = std::move(reason);
    return c;
  };
  const std::string outside =
      fmt::format("{} of {} elements are outside tolerance {:g}", c.outside_tol, a.numel(), options.tol);

  if (options.exact_dtype && a.dtype() == DType::bool_) {
    if (options.bool_iou) {
      const double iou = f.trues_any == 0 ? 1 : static_cast<double>(f.trues_both) / static_cast<double>(f.trues_any);
      return decide(iou >= *options.bool_iou,
                    fmt::format("intersection over union {:.4f}, at least {:g} wanted", iou, *options.bool_iou));
    }
    return decide(f.close, f.close ? "within tolerance" : outside);
  }
  if (options.cosine) {
    if (f.close_float) return decide(true, "within tolerance");
    return decide(c.cosine >= 0.99, fmt::format("cosine similarity {:.6f}, at least 0.99 wanted", c.cosine));
  }
  if (f.close) return decide(true, c.max_abs == 0 ? "equal" : "within tolerance");
  if (reference.dtype() == DType::float64 && !is_complex(b.dtype())) {
    const Errors errors = dispatch(
        b.dtype(), [&](auto tag) { return measure_errors<typename decltype(tag)::type>(reference, a, b, options); });
    judge_against_reference(c, errors, allowed_multiple(a, b, options), options);
    return c;
  }
  return decide(false, outside);
}

}  // namespace

TensorComparison compare_tensors(const Tensor& a, const Tensor& b, const Tensor& reference, const SameOptions& options) {
  if (!a.defined() || !b.defined()) throw UserError("compare_tensors: expected two tensors, found an undefined one");
  if (!(options.tol >= 0))
    throw UserError(fmt::format("compare_tensors: expected a tolerance of at least 0, found {}", options.tol));
  const auto equal = [](IntList x, IntList y) { return std::equal(x.begin(), x.end(), y.begin(), y.end()); };
  if (reference.defined() && !equal(reference.sizes(), a.sizes()))
    throw UserError("compare_tensors: expected a reference of sizes " + str(a.sizes()) + ", found " +
                    str(reference.sizes()));

  TensorComparison c;
  if (options.exact_dtype && a.dtype() != b.dtype()) {
    c.reason = fmt::format("dtype {} against {}", name(a.dtype()), name(b.dtype()));
    return c;
  }
  if (!equal(a.sizes(), b.sizes())) {
    c.reason = "sizes " + str(a.sizes()) + " against " + str(b.sizes());
    return c;
  }
  if (options.ignore_non_float && is_integral(a.dtype())) {
    c.same = true;
    c.reason = "ignored: not floating point";
    return c;
  }
  const Figures f = dispatch(b.dtype(), [&](auto tag) { return measure<typename decltype(tag)::type>(a, b, options); });
  return judge(f, a, b, reference.defined() ? reference : a, options);
}

FileComparison compare_files(const SafetensorsFile& a, const SafetensorsFile& b, const SafetensorsFile* reference,
                             const SameOptions& options) {
  FileComparison out;
  const std::vector<std::string> in_a = a.names(), in_b = b.names();
  std::set_difference(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::back_inserter(out.only_in_a));
  std::set_difference(in_b.begin(), in_b.end(), in_a.begin(), in_a.end(), std::back_inserter(out.only_in_b));
  for (const std::string& name : in_a) {
    if (!b.find(name)) continue;
    if (reference && !reference->find(name))
      throw UserError(fmt::format("{}: the reference has no tensor {}, which {} and {} hold", reference->path(), shown(name),
                                  a.path(), b.path()));
    const SafetensorsEntry &x = a.entry(name), &y = b.entry(name);
    out.tensors.push_back({name, std::string(x.dtype_name), std::string(y.dtype_name), x.sizes, y.sizes, {}});
  }
  parallel_for(0, static_cast<int64_t>(out.tensors.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      NamedComparison& t = out.tensors[static_cast<size_t>(i)];
      const SafetensorsEntry &x = a.entry(t.name), &y = b.entry(t.name);
      if (!x.dtype && t.dtype_a == t.dtype_b && t.sizes_a == t.sizes_b) {
        // Packed types have no arithmetic here; their bytes still say whether they are equal.
        const auto p = a.bytes(x), q = b.bytes(y);
        t.result.same = std::equal(p.begin(), p.end(), q.begin(), q.end());
        t.result.reason = t.result.same ? "equal" : "the bytes differ (packed dtype)";
      } else if (!x.dtype || !y.dtype) {
        t.result.reason = "dtype " + t.dtype_a + " against " + t.dtype_b;
      } else {
        t.result = compare_tensors(a.tensor(x), b.tensor(y), reference ? reference->tensor(t.name) : Tensor(), options);
      }
    }
  });
  out.same = out.only_in_a.empty() && out.only_in_b.empty() &&
             std::all_of(out.tensors.begin(), out.tensors.end(), [](const NamedComparison& t) { return t.result.same; });
  return out;
}

}  // namespace calque
