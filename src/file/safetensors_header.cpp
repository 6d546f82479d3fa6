#include "file/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/join.h"
#include "file/safetensors_format.h"

namespace calque {
namespace {

using HeaderJson = nlohmann::json;

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw UserError(ErrorKind::bad_file, path + ": not a valid safetensors file: " + why);
}

// Receives the header piece by piece. Where it is in the document: the root object, a tensor's object, one of a
// tensor's lists, the metadata, or a value that the format does not define and that is skipped.
class HeaderReader : public nlohmann::json_sax<HeaderJson> {
 public:
  HeaderReader(uint64_t data_bytes, const std::string& path, SafetensorsHeader& out)
      : data_bytes_(data_bytes), path_(path), out_(out) {}

  bool null() override {
    if (place_ == Place::root && in_metadata_) return true;  // the same as absent
    return scalar("null");
  }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(int64_t value) override { return scalar(fmt::format("the negative number {}", value)); }
  bool number_float(double, const std::string& text) override { return scalar("the number " + text.substr(0, 40)); }
  bool binary(HeaderJson::binary_t&) override { return scalar("binary data"); }

  bool number_unsigned(uint64_t value) override {
    if (place_ == Place::shape) {
      if (entry_.sizes.size() == safetensors_max_dims)
        bad(fmt::format("its shape has more than {} dimensions", safetensors_max_dims));
      if (value > uint64_t{std::numeric_limits<int64_t>::max()})
        bad(fmt::format("its shape holds {}, which overflows a 64-bit size", value));
      entry_.sizes.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place_ == Place::offsets) {
      if (offsets_ == 2) bad("expected two data_offsets, found more");
      (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
      return true;
    }
    return scalar(fmt::format("the number {}", value));
  }

  bool string(std::string& value) override {
    if (place_ == Place::metadata) {
      if (!out_.metadata->emplace(key_, std::move(value)).second)
        fail("__metadata__ holds the key " + shown(key_) + " twice");
      return true;
    }
    if (place_ == Place::tensor && field_ == Field::dtype) {
      const auto found = std::find_if(safetensors_dtypes.begin(), safetensors_dtypes.end(),
                                      [&](const SafetensorsDType& d) { return d.name == value; });
      if (found == safetensors_dtypes.end()) {
        const std::string known = join(safetensors_dtypes, ", ", [](const auto& d) { return std::string(d.name); });
        bad("expected a dtype among " + known + "; found " + shown(value));
      }
      entry_.dtype_name = found->name;
      entry_.dtype = found->dtype;
      bits_ = found->bits;
      return true;
    }
    return scalar("the string " + shown(value));
  }

  bool start_object(size_t) override {
    switch (place_) {
      case Place::start: place_ = Place::root; return true;
      case Place::root:
        if (in_metadata_) {
          out_.metadata.emplace();
          place_ = Place::metadata;
        } else {
          entry_ = {};
          entry_.name = std::move(key_);
          seen_ = 0;
          offsets_ = 0;
          place_ = Place::tensor;
        }
        return true;
      case Place::tensor:
      case Place::shape:
      case Place::offsets:
      case Place::metadata:
      case Place::done: break;
    }
    return open("an object");
  }

  bool end_object() override {
    if (skipped_) return close();
    if (place_ == Place::tensor) finish_entry();
    place_ = place_ == Place::root ? Place::done : Place::root;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ == Place::tensor && field_ == Field::shape) {
      place_ = Place::shape;
      return true;
    }
    if (place_ == Place::tensor && field_ == Field::offsets) {
      place_ = Place::offsets;
      return true;
    }
    return open("a list");
  }

  bool end_array() override {
    if (skipped_) return close();
    place_ = Place::tensor;
    return true;
  }

  bool key(std::string& value) override {
    if (skipped_) return true;
    if (place_ == Place::tensor) {
      field_ = value == "dtype"          ? Field::dtype
               : value == "shape"        ? Field::shape
               : value == "data_offsets" ? Field::offsets
                                         : Field::unknown;
      if (field_ == Field::unknown) return true;
      const unsigned bit = 1U << static_cast<unsigned>(field_);
      if (seen_ & bit) bad("its " + value + " is given twice");
      seen_ |= bit;
      return true;
    }
    key_ = std::move(value);
    if (place_ == Place::root) {
      in_metadata_ = key_ == safetensors_metadata_key;
      if (in_metadata_ && std::exchange(metadata_seen_, true)) fail("__metadata__ is given twice");
    }
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string why = error.what();
    if (const size_t colon = why.find("parse error"); colon != std::string::npos) why = why.substr(colon);
    // The text quotes the input, which may be long and in no encoding.
    for (char& c : why)
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
    if (why.size() > 200) why = why.substr(0, 200) + "...";
    fail(fmt::format("the header is not JSON in UTF-8, at byte {} of it: {}", position, why));
  }

 private:
  enum class Place { start, root, tensor, shape, offsets, metadata, done };
  enum class Field { dtype, shape, offsets, unknown };

  [[noreturn]] void fail(const std::string& why) const { calque::fail(path_, why); }
  [[noreturn]] void bad(const std::string& why) const { fail("tensor " + shown(entry_.name) + ": " + why); }

  // A value where the format has another kind.
  bool scalar(const std::string& found) {
    if (skipped_ || (place_ == Place::tensor && field_ == Field::unknown)) return true;
    unexpected(found);
  }
  bool open(const std::string& found) {
    if (skipped_ || (place_ == Place::tensor && field_ == Field::unknown)) {
      ++skipped_;
      return true;
    }
    unexpected(found);
  }
  bool close() {
    --skipped_;
    return true;
  }
  [[noreturn]] void unexpected(const std::string& found) const {
    switch (place_) {
      case Place::metadata: fail("__metadata__: expected a string under " + shown(key_) + ", found " + found);
      case Place::root:
        if (in_metadata_) fail("__metadata__: expected an object of strings, found " + found);
        fail("tensor " + shown(key_) + ": expected an object with dtype, shape and data_offsets, found " + found);
      case Place::shape: bad("expected whole numbers in shape, found " + found);
      case Place::offsets: bad("expected two whole numbers in data_offsets, found " + found);
      case Place::tensor:
        if (field_ == Field::dtype) bad("expected a string as dtype, found " + found);
        bad(std::string("expected a list as ") + (field_ == Field::shape ? "shape" : "data_offsets") + ", found " + found);
      case Place::start:
      case Place::done: fail("expected an object as header, found " + found);
    }
    throw InternalError("safetensors: no such place in a header");
  }

  void finish_entry() {
    for (const auto& [field, text] :
         {std::pair{Field::dtype, "dtype"}, {Field::shape, "shape"}, {Field::offsets, "data_offsets"}})
      if (!(seen_ & 1U << static_cast<unsigned>(field))) bad(std::string("it has no ") + text);
    if (offsets_ != 2) bad(fmt::format("expected two data_offsets, found {}", offsets_));
    const SafetensorsEntry& e = entry_;
    if (e.end < e.begin) bad(fmt::format("its data_offsets [{}, {}] end before they start", e.begin, e.end));
    const uint64_t bytes = claimed_bytes();
    if (e.end - e.begin != bytes)
      bad(fmt::format(
          "{} of shape {} takes {} bytes, but its data_offsets [{}, {}] span {}; the header or the shape is wrong",
          e.dtype_name, str(IntList(e.sizes)), bytes, e.begin, e.end, e.end - e.begin));
    if (e.end > data_bytes_)
      bad(
          fmt::format("its data_offsets [{}, {}] end beyond the {} bytes of data in the file; the file may be cut off: "
                      "fetch it again",
                      e.begin, e.end, data_bytes_));
    // Tensors that neither overlap nor leave a hole add up to the data. Seeing it here stops a header of overlapping
    // entries at the first one too many.
    total_ += bytes;
    if (total_ > data_bytes_) {
      for (const auto& earlier : out_.entries)
        if (earlier.name == e.name) fail("the header holds the tensor " + shown(e.name) + " twice");
      bad(fmt::format("with it the tensors claim {} bytes, the file has {}: tensors overlap", total_, data_bytes_));
    }
    if (out_.entries.size() == std::numeric_limits<uint32_t>::max()) fail("more tensors than a file can hold");
    out_.entries.push_back(std::move(entry_));
  }

  uint64_t claimed_bytes() const {
    uint64_t count = 1;
    int64_t extent = 1;  // what the strides of an empty tensor still have to fit in
    bool overflow = false;
    for (const int64_t size : entry_.sizes) {
      overflow |= __builtin_mul_overflow(count, static_cast<uint64_t>(size), &count);
      overflow |= __builtin_mul_overflow(extent, std::max<int64_t>(size, 1), &extent);
    }
    uint64_t bits = 0;
    overflow |= __builtin_mul_overflow(count, uint64_t{bits_}, &bits);
    if (overflow)
      bad(fmt::format("the size of {} of shape {} overflows 64 bits", entry_.dtype_name, str(IntList(entry_.sizes))));
    if (bits % 8 != 0)
      bad(fmt::format("{} of shape {} takes {} bits, which is no whole number of bytes", entry_.dtype_name,
                      str(IntList(entry_.sizes)), bits));
    return bits / 8;
  }

  const uint64_t data_bytes_;
  const std::string& path_;
  SafetensorsHeader& out_;
  Place place_ = Place::start;
  Field field_ = Field::unknown;
  bool in_metadata_ = false;
  bool metadata_seen_ = false;
  size_t skipped_ = 0;  // how deep inside a value that the format does not define
  std::string key_;
  SafetensorsEntry entry_;
  unsigned seen_ = 0;
  unsigned bits_ = 0;
  unsigned offsets_ = 0;
  uint64_t total_ = 0;
};

void check_coverage(const std::vector<SafetensorsEntry>& entries, uint64_t data_bytes, const std::string& path) {
  uint64_t at = 0;
  const SafetensorsEntry* before = nullptr;
  for (const auto& e : entries) {
    if (e.begin < at)
      fail(path, fmt::format("tensor {}: its data_offsets [{}, {}] overlap tensor {} at [{}, {}]", shown(e.name), e.begin,
                             e.end, shown(before->name), before->begin, before->end));
    if (e.begin > at)
      fail(path, fmt::format("tensor {}: its data_offsets [{}, {}] leave a hole: expected it to start at {}, where {} ends",
                             shown(e.name), e.begin, e.end, at, before ? "tensor " + shown(before->name) : "the header"));
    at = e.end;
    before = &e;
  }
  if (at != data_bytes)
    fail(path,
         fmt::format("the tensors end at byte {} of the data, but the file has {} bytes of data: {} bytes belong to no "
                     "tensor; the file may have been appended to or belong to another header",
                     at, data_bytes, data_bytes - at));
}

}  // namespace

std::string shown(std::string_view name) {
  constexpr size_t longest = 200;
  std::string out = "'";
  for (const char c : name.substr(0, longest)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  out += name.size() > longest ? "'..." : "'";
  return out;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes, const std::string& path) {
  if (json.empty() || json.front() != '{')
    fail(path, "expected the header to start with '{'" +
                   (json.empty() ? std::string(", found an empty header")
                                 : fmt::format(", found byte 0x{:02x}", static_cast<unsigned char>(json.front()))) +
                   "; the file may be of another kind");
  // The parser takes a zero byte for the end of its input.
  if (const size_t zero = json.find('\0'); zero != std::string_view::npos)
    fail(path, fmt::format("the header is not JSON in UTF-8: it holds a zero byte, at byte {} of it", zero));

  SafetensorsHeader out;
  HeaderReader reader(data_bytes, path, out);
  HeaderJson::sax_parse(json.begin(), json.end(), &reader);

  const auto& entries = out.entries;
  std::sort(out.entries.begin(), out.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  out.by_name.resize(entries.size());
  std::iota(out.by_name.begin(), out.by_name.end(), 0U);
  // Names come in long runs that are sorted already, the worst case of std::sort.
  std::stable_sort(out.by_name.begin(), out.by_name.end(),
                   [&](uint32_t a, uint32_t b) { return entries[a].name < entries[b].name; });
  for (size_t i = 1; i < out.by_name.size(); ++i)
    if (const auto& name = entries[out.by_name[i]].name; entries[out.by_name[i - 1]].name == name)
      fail(path, "the header holds the tensor " + shown(name) + " twice");
  check_coverage(entries, data_bytes, path);
  return out;
}

}  // namespace calque
