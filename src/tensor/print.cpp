#include "calque/tensor/print.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "calque/base/error.h"

namespace calque {

namespace {

// Far beyond any double's digits; keeps a line's length within reason.
constexpr int max_precision = 1000;

std::string digits(double value, std::chars_format format, int precision) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string out(static_cast<size_t>(precision) + 330, '\0');  // the largest double has 309 digits before the point
  out.resize(
      static_cast<size_t>(std::to_chars(out.data(), out.data() + out.size(), value, format, precision).ptr - out.data()));
  return out;
}

std::string padded(std::string text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

// Decides once for all shown elements how numbers look and how wide they are.
class Formatter {
 public:
  Formatter(const std::vector<double>& values, DType dtype, const PrintOptions& options) : precision_(options.precision) {
    std::vector<double> numbers;
    for (const double v : values)
      if (is_number(v, dtype)) numbers.push_back(v);
    if (numbers.empty()) return;

    double smallest = std::fabs(numbers[0]);
    double largest = smallest;
    for (const double v : numbers) {
      if (std::isnan(v)) smallest = largest = v;
      if (std::fabs(v) < smallest) smallest = std::fabs(v);
      if (std::fabs(v) > largest) largest = std::fabs(v);
      if (v != std::ceil(v)) integers_ = false;
    }
    scientific_ = options.sci_mode.value_or(largest / smallest > 1000.0 || largest > 1.0e8 || smallest < 1.0e-4);
    for (const double v : numbers) {
      // A whole number is shown with a point after it.
      const size_t point = integers_ && !scientific_ ? 1 : 0;
      width_ = std::max(width_, number(v).size() + point);
    }
  }
  explicit Formatter(const std::vector<std::string>& integers) {
    for (const std::string& text : integers) width_ = std::max(width_, text.size());
  }

  size_t width() const { return width_; }
  std::string format(double value) const {
    std::string text = number(value);
    if (integers_ && !scientific_ && std::isfinite(value)) text += '.';
    return padded(std::move(text), width_);
  }
  std::string format(std::string integer) const { return padded(std::move(integer), width_); }

 private:
  // What counts for width and notation: finite values that are not zero. For float8_e8m0fnu PyTorch's isfinite lets
  // NaN through, and its zero, which the type lacks, becomes the smallest value.
  static bool is_number(double v, DType dtype) {
    if (dtype == DType::float8_e8m0fnu) return v != 0x1p-127;
    return std::isfinite(v) && v != 0;
  }
  std::string number(double v) const {
    if (scientific_) return digits(v, std::chars_format::scientific, precision_);
    return digits(v, std::chars_format::fixed, integers_ ? 0 : precision_);
  }

  int precision_ = 0;
  bool integers_ = true;
  bool scientific_ = false;
  size_t width_ = 1;
};

// Reads elements by their place in memory, which need not be aligned (a mapped file's may not be).
struct Reader {
  double (*real)(const std::byte*);
  double (*imag)(const std::byte*);
  std::string (*integer)(const std::byte*);
};

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

Reader reader(DType dtype) {
  return dispatch(dtype, [](auto tag) -> Reader {
    using T = typename decltype(tag)::type;
    constexpr DTypeCategory kind = category(dtype_v<T>);
    if constexpr (kind == DTypeCategory::boolean) {
      return {nullptr, nullptr, [](const std::byte* p) { return std::string(*p == std::byte{0} ? "False" : "True"); }};
    } else if constexpr (kind == DTypeCategory::integral) {
      return {nullptr, nullptr, [](const std::byte* p) { return std::to_string(load<T>(p)); }};
    } else if constexpr (kind == DTypeCategory::complex) {
      return {[](const std::byte* p) { return static_cast<double>(load<T>(p).real()); },
              [](const std::byte* p) { return static_cast<double>(load<T>(p).imag()); }, nullptr};
    } else if constexpr (std::is_same_v<T, double>) {
      return {[](const std::byte* p) { return load<T>(p); }, nullptr, nullptr};
    } else {
      return {[](const std::byte* p) { return static_cast<double>(static_cast<float>(load<T>(p))); }, nullptr, nullptr};
    }
  });
}

class Printer {
 public:
  Printer(const TensorBase& t, const PrintOptions& options)
      : options_(options),
        dtype_(t.dtype()),
        reader_(reader(dtype_)),
        data_(static_cast<const std::byte*>(t.data())),
        summarize_(t.numel() > options.threshold) {
    for (size_t d = 0; d < t.sizes().size(); ++d) dims_.push_back({t.sizes()[d], t.strides()[d] * t.element_size()});
    if (is_integral(dtype_)) {
      std::vector<std::string> texts;
      visit(0, data_, [&](const std::byte* p) { texts.push_back(reader_.integer(p)); });
      formatters_.emplace_back(texts);
      return;
    }
    for (const auto part : {reader_.real, reader_.imag}) {
      if (part == nullptr) continue;
      std::vector<double> values;
      visit(0, data_, [&](const std::byte* p) { values.push_back(part(p)); });
      formatters_.emplace_back(values, dtype_, options_);
    }
  }

  std::string text(size_t indent) const {
    if (dims_.empty()) return element(data_);
    return block(0, data_, indent);
  }

 private:
  struct Dim {
    int64_t size;
    int64_t stride;  // in bytes
  };

  bool cut(const Dim& dim) const {
    return summarize_ && (dim.size - 1) / 2 >= options_.edgeitems;  // size > 2 * edgeitems, which may overflow
  }

  template <class F>
  void visit(size_t d, const std::byte* at, F&& fn) const {
    if (d == dims_.size()) return fn(at);
    const Dim dim = dims_[d];
    for (int64_t i = 0; i < dim.size; ++i) {
      if (cut(dim) && i == options_.edgeitems) i = dim.size - options_.edgeitems;
      if (i < dim.size) visit(d + 1, at + i * dim.stride, fn);
    }
  }

  std::string element(const std::byte* at) const {
    if (reader_.integer) return formatters_[0].format(reader_.integer(at));
    const std::string real = formatters_[0].format(reader_.real(at));
    if (reader_.imag == nullptr) return real;
    std::string imag = formatters_[1].format(reader_.imag(at)) + "j";
    imag.erase(0, imag.find_first_not_of(' '));
    return real + (imag[0] == '-' ? "" : "+") + imag;
  }

  std::string block(size_t d, const std::byte* at, size_t indent) const {
    const bool innermost = d + 1 == dims_.size();
    std::vector<std::string> parts;
    const Dim dim = dims_[d];
    for (int64_t i = 0; i < dim.size; ++i) {
      if (cut(dim) && i == options_.edgeitems) {
        parts.push_back(innermost && options_.edgeitems != 0 ? " ..." : "...");
        i = dim.size - options_.edgeitems;
        if (i == dim.size) break;
      }
      const std::byte* child = at + i * dim.stride;
      parts.push_back(innermost ? element(child) : block(d + 1, child, indent + 1));
    }
    const std::string next_line(indent + 1, ' ');
    const std::string outer = "," + std::string(dims_.size() - d - 1, '\n') + next_line;
    const size_t per_line = elements_per_line(indent);
    std::string out = "[";
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i != 0 && innermost) out += i % per_line == 0 ? ",\n" + next_line : ", ";
      if (i != 0 && !innermost) out += outer;
      out += parts[i];
    }
    return out + "]";
  }

  size_t elements_per_line(size_t indent) const {
    size_t length = formatters_[0].width() + 2;
    if (formatters_.size() == 2) length += formatters_[1].width() + 1;
    const auto room = options_.linewidth - static_cast<int64_t>(indent);
    return room <= 0 ? 1 : std::max<size_t>(1, static_cast<size_t>(room) / length);
  }

  const PrintOptions& options_;
  DType dtype_;
  Reader reader_;
  const std::byte* data_;
  bool summarize_;
  std::vector<Dim> dims_;
  std::vector<Formatter> formatters_;  // one, or real and imaginary
};

std::string size_suffix(SymIntList sizes) {
  std::string out = "size=(";
  for (size_t i = 0; i < sizes.size(); ++i) out += (i == 0 ? "" : ", ") + sizes[i].str();
  return out + (sizes.size() == 1 ? ",)" : ")");
}

bool is_default_dtype(DType d) {
  const DType complex = default_dtype() == DType::float64 ? DType::complex128 : DType::complex64;
  return d == default_dtype() || d == complex || d == DType::int64 || d == DType::bool_;
}

std::string with_suffixes(std::string text, const std::vector<std::string>& suffixes, size_t indent, int64_t linewidth) {
  // PyTorch counts the last line two characters too long when it is the only one; line breaks depend on it.
  const size_t newline = text.rfind('\n');
  size_t line = newline == std::string::npos ? text.size() + 2 : text.size() - newline + 1;
  for (const std::string& suffix : suffixes) {
    if (static_cast<int64_t>(line + suffix.size() + 2) > linewidth) {
      text += ",\n" + std::string(indent, ' ') + suffix;
      line = indent + suffix.size();
    } else {
      text += ", " + suffix;
      line += suffix.size() + 2;
    }
  }
  return text + ")";
}

void check(const PrintOptions& o) {
  if (o.precision < 0 || o.precision > max_precision)
    throw UserError("print options: precision must be from 0 to " + std::to_string(max_precision) + ", found " +
                    std::to_string(o.precision));
  const std::pair<const char*, int64_t> rest[] = {
      {"threshold", o.threshold}, {"edgeitems", o.edgeitems}, {"linewidth", o.linewidth}};
  for (const auto& [name, value] : rest)
    if (value < 0)
      throw UserError(std::string("print options: ") + name + " must be 0 or more, found " + std::to_string(value));
}

std::atomic<GradFnNamer> grad_fn_namer = nullptr;
std::mutex options_mutex;
PrintOptions process_options;

}  // namespace

std::string tensor_str(const TensorBase& t, const PrintOptions& options) {
  check(options);
  if (!t.defined()) return "None";
  const bool is_meta = t.device().type == DeviceType::meta;
  const bool has_values = !is_meta && !t.is_fake();
  std::string text = is_meta || has_values ? "tensor(" : "FakeTensor(";
  const size_t indent = text.size();
  const std::string dtype = "dtype=torch." + std::string(name(t.dtype()));
  std::vector<std::string> suffixes;

  if (t.device().type != DeviceType::cpu) suffixes.push_back("device='" + t.device().str() + "'");
  if (!has_values) {
    text += "...";
    suffixes.push_back(size_suffix(t.sym_sizes()));
    if (t.dtype() != default_dtype()) suffixes.push_back(dtype);
  } else if (t.numel() == 0) {
    text += "[]";
    if (t.dim() != 1) suffixes.push_back(size_suffix(t.sym_sizes()));
    if (t.dtype() != default_dtype()) suffixes.push_back(dtype);
  } else {
    text += Printer(t, options).text(indent);
    if (options.edgeitems == 0) suffixes.push_back(size_suffix(t.sym_sizes()));
    if (!is_default_dtype(t.dtype())) suffixes.push_back(dtype);
  }
  if (t.requires_grad()) {
    const GradFnNamer namer = grad_fn_namer;
    const std::string made_by = namer ? namer(t) : "";
    suffixes.push_back(made_by.empty() ? "requires_grad=True" : "grad_fn=<" + made_by + ">");
  }
  return with_suffixes(std::move(text), suffixes, indent, options.linewidth);
}

void set_grad_fn_namer(GradFnNamer namer) { grad_fn_namer = namer; }

void set_printoptions(const PrintOptions& options) {
  check(options);
  const std::lock_guard lock(options_mutex);
  process_options = options;
}

PrintOptions get_printoptions() {
  const std::lock_guard lock(options_mutex);
  return process_options;
}

std::string TensorBase::str() const { return tensor_str(*this, get_printoptions()); }

}  // namespace calque
