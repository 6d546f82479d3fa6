#include "calque/file/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/file/file_writer.h"
#include "calque/file/mapped_file.h"
#include "calque/op/tensor.h"
#include "file/row_major.h"

namespace calque {
namespace {

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr size_t npy_longest_header = 1 << 20;
constexpr size_t npy_most_sizes = 64;

struct NpyType {
  std::string_view code;  // without the byte order
  DType dtype;
};
constexpr NpyType npy_types[] = {{"b1", DType::bool_},     {"u1", DType::uint8},      {"i1", DType::int8},
                                 {"i2", DType::int16},     {"i4", DType::int32},      {"i8", DType::int64},
                                 {"u2", DType::uint16},    {"u4", DType::uint32},     {"u8", DType::uint64},
                                 {"f2", DType::float16},   {"f4", DType::float32},    {"f8", DType::float64},
                                 {"c8", DType::complex64}, {"c16", DType::complex128}};

struct NpyHeader {
  DType dtype = DType::float32;
  bool swapped = false;
  bool fortran_order = false;
  std::vector<int64_t> sizes;
};

// The header is a Python dict of a fixed form: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class NpyHeaderReader {
 public:
  NpyHeaderReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  NpyHeader read() {
    NpyHeader out;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true, read_type(out);
      } else if (key == "fortran_order" && !order) {
        order = true, out.fortran_order = truth();
      } else if (key == "shape" && !shape) {
        shape = true, out.sizes = sizes();
      } else {
        fail(fmt::format("its header has the key '{}' where one of descr, fortran_order and shape was expected", key));
      }
      if (!take(',') && peek() != '}') fail("its header has no comma behind a value");
    }
    if (!descr || !order || !shape) fail("its header lacks one of descr, fortran_order and shape");
    return out;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw UserError(ErrorKind::bad_file, name_ + ": not a .npy file that can be read: " + why);
  }

 private:
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("its header has no '{}' at byte {}", c, at_));
  }
  std::string_view quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail(fmt::format("its header has no text at byte {}", at_));
    const size_t begin = ++at_, end = text_.find(quote, begin);
    if (end == std::string_view::npos) fail("its header has a text without an end");
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  bool truth() {
    peek();
    for (const bool value : {true, false})
      if (const std::string_view word = value ? "True" : "False"; text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    fail("fortran_order is neither True nor False");
  }
  std::vector<int64_t> sizes() {
    std::vector<int64_t> out;
    expect('(');
    while (!take(')')) {
      peek();
      int64_t size = -1;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) fail("its shape holds something that is no size");
      at_ = static_cast<size_t>(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // of Python 2
      if (out.size() == npy_most_sizes) fail(fmt::format("its shape has more than {} dimensions", npy_most_sizes));
      out.push_back(size);
      if (!take(',') && peek() != ')') fail("its shape has no comma behind a size");
    }
    return out;
  }
  void read_type(NpyHeader& out) {
    if (peek() == '[') fail("it holds structures; expected numbers");
    const std::string_view code = quoted();
    if (code.ends_with('O')) fail("it holds Python objects, which are not loaded; save numbers");
    const bool ordered = !code.empty() && std::string_view("<>|=").find(code[0]) != std::string_view::npos;
    const std::string_view kind = ordered ? code.substr(1) : code;
    const auto* found = std::ranges::find(npy_types, kind, &NpyType::code);
    if (found == std::end(npy_types)) fail(fmt::format("its dtype is '{}'; expected numbers or booleans", code));
    out.dtype = found->dtype;
    const bool big = ordered && code[0] == '>';
    out.swapped = item_size(out.dtype) > 1 && big != (std::endian::native == std::endian::big);
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
};

std::string npy_code(DType dtype) {
  const auto* found = std::ranges::find(npy_types, dtype, &NpyType::dtype);
  if (found == std::end(npy_types))
    throw UserError(fmt::format(".npy has no dtype for {}; convert the tensor, or write safetensors", name(dtype)));
  return fmt::format("{}{}", item_size(dtype) == 1 ? '|' : std::endian::native == std::endian::big ? '>' : '<', found->code);
}

}  // namespace

Tensor read_npy(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto fail = [&](const std::string& why) { NpyHeaderReader({}, name).fail(why); };
  if (!text.starts_with(npy_magic) || text.size() < 10) fail("it does not begin as one");
  const int version = text[6];
  if (version < 1 || version > 3) fail(fmt::format("its version is {}; 1 to 3 can be read", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  size_t length = 0, begin = 8 + length_bytes;
  if (text.size() < begin) fail("it ends in its header");
  for (size_t i = 0; i < length_bytes; ++i) length |= size_t{static_cast<uint8_t>(text[8 + i])} << (8 * i);
  if (length > npy_longest_header || length > text.size() - begin) fail("it ends in its header");
  const NpyHeader header = NpyHeaderReader(text.substr(begin, length), name).read();

  const std::span<const std::byte> data = bytes.subspan(begin + length);
  size_t expected = item_size(header.dtype);
  bool overflow = false;
  for (const int64_t size : header.sizes) overflow |= __builtin_mul_overflow(expected, static_cast<size_t>(size), &expected);
  if (std::ranges::count(header.sizes, 0) > 0) overflow = false, expected = 0;
  if (overflow || data.size() != expected)
    fail(fmt::format("{} bytes of elements were expected after its header, found {}",
                     overflow ? std::string("more than there can be") : std::to_string(expected), data.size()));
  std::vector<int64_t> sizes = header.sizes;
  if (header.fortran_order) std::ranges::reverse(sizes);
  Tensor out = make_tensor(sizes, header.dtype);
  auto* to = static_cast<std::byte*>(out.mutable_data());
  if (!data.empty()) std::memcpy(to, data.data(), data.size());
  if (header.swapped) {
    const size_t item = is_complex(header.dtype) ? item_size(header.dtype) / 2 : item_size(header.dtype);
    for (size_t i = 0; i < data.size(); i += item) std::reverse(to + i, to + i + item);
  }
  if (!header.fortran_order || sizes.size() < 2) return out;
  std::vector<int64_t> order;
  for (int64_t i = std::ssize(sizes) - 1; i >= 0; --i) order.push_back(i);
  return out.permute(order).contiguous();
}

Tensor load_npy(const std::string& path) {
  const auto file = MappedFile::open(path);
  return read_npy(file->bytes(), path);
}

std::vector<std::byte> serialize_npy(const Tensor& given) {
  const Tensor tensor = given.dtype() == DType::bfloat16 ? given.to(DType::float32) : given;
  std::string shape;
  for (const int64_t size : tensor.sizes()) shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  if (tensor.dim() == 1) shape += ',';
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", npy_code(tensor.dtype()), shape);
  constexpr size_t before = 10, alignment = 64;
  header.append((alignment - (before + header.size() + 1) % alignment) % alignment, ' ');
  header += '\n';
  std::string start(npy_magic);
  start += '\x01';
  start += '\0';
  start += static_cast<char>(header.size() & 0xff);
  start += static_cast<char>(header.size() >> 8);
  start += header;

  const size_t item = item_size(tensor.dtype());
  std::vector<std::byte> out(start.size() + static_cast<size_t>(tensor.numel()) * item);
  std::memcpy(out.data(), start.data(), start.size());
  size_t at = start.size();
  RowMajorReader reader(tensor);
  constexpr size_t piece = 4096;
  std::vector<std::byte> buffer(piece * item);
  while (const size_t count = std::min(piece, reader.remaining())) {
    std::memcpy(out.data() + at, reader.next(buffer.data(), piece), count * item);
    at += count * item;
  }
  return out;
}

void save_npy(const std::string& path, const Tensor& tensor) {
  FileWriter file(path);
  file.write(serialize_npy(tensor));
  file.commit();
}

}  // namespace calque
