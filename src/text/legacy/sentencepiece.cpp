#include "text/legacy/sentencepiece.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "base/utf8.h"
#include "calque/base/error.h"
#include "text/utf8.h"

namespace calque {
namespace {

// The fields of one message, in order. A length-delimited value is a view, a number its 64 bits.
class WireReader {
 public:
  enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  WireReader(std::string_view message, const std::string& name, size_t offset = 0)
      : rest_(message), name_(name), at_(offset) {}

  bool next() {
    if (rest_.empty()) return false;
    const uint64_t key = varint("a field's number");
    field_ = key >> 3;
    if (field_ == 0 || field_ > (1u << 29) - 1) fail("a field is numbered " + std::to_string(field_));
    switch (key & 7) {
      case 0: wire_ = Wire::varint, number_ = varint("a number"); break;
      case 1: wire_ = Wire::fixed64, number_ = fixed(8); break;
      case 2: wire_ = Wire::bytes, bytes_ = take(varint("a length")); break;
      case 5: wire_ = Wire::fixed32, number_ = fixed(4); break;
      default: fail("a field is of wire type " + std::to_string(key & 7));
    }
    return true;
  }

  // Whether the field is this one. One of another wire type is unknown, and skipped, as protobuf does.
  bool is(uint64_t field, Wire wire) const { return field_ == field && wire_ == wire; }
  uint64_t number() const { return number_; }
  std::string_view bytes() const { return bytes_; }
  WireReader message() const { return {bytes_, name_, bytes_at_}; }
  std::string_view text(const char* what) const {
    if (!is_valid_utf8(bytes_)) fail(std::string(what) + " is not UTF-8 text");
    return bytes_;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw UserError(ErrorKind::bad_file, name_ + ": not a readable SentencePiece model: " + why + " (near byte " +
                                             std::to_string(at_) + "); the file may be cut off or of another kind");
  }

 private:
  uint64_t varint(const char* what) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (rest_.empty()) fail(std::string(what) + " is cut off");
      const auto byte = static_cast<unsigned char>(rest_.front());
      advance(1);
      if (shift == 63 && byte > 1) break;
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    fail(std::string(what) + " takes more than 64 bits");
  }
  uint64_t fixed(size_t size) {
    const std::string_view bytes = take(size);
    uint64_t value = 0;
    for (size_t i = size; i > 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
    return value;
  }
  std::string_view take(uint64_t size) {
    bytes_at_ = at_;
    if (size > rest_.size())
      fail("field " + std::to_string(field_) + " takes " + std::to_string(size) + " bytes, and " +
           std::to_string(rest_.size()) + " are left");
    const std::string_view out = rest_.substr(0, size);
    advance(size);
    return out;
  }
  void advance(size_t size) {
    rest_.remove_prefix(size);
    at_ += size;
  }

  std::string_view rest_;
  const std::string& name_;
  size_t at_;  // in the file
  uint64_t field_ = 0, number_ = 0;
  size_t bytes_at_ = 0;
  std::string_view bytes_;
  Wire wire_ = Wire::varint;
};

using Wire = WireReader::Wire;

// An int32 of protobuf; negative ones are written with 64 bits.
int64_t wire_int32(uint64_t number) { return static_cast<int32_t>(static_cast<uint32_t>(number)); }

SentencePiece read_piece(WireReader message) {
  SentencePiece piece;
  while (message.next()) {
    if (message.is(1, Wire::bytes)) {
      piece.text = message.text("a piece");
    } else if (message.is(2, Wire::fixed32)) {
      piece.score = std::bit_cast<float>(static_cast<uint32_t>(message.number()));
      if (!std::isfinite(piece.score)) message.fail("a piece's score is not a finite number");
    } else if (message.is(3, Wire::varint)) {
      // Unknown kinds leave the default, as for every enumeration of protobuf.
      if (message.number() >= 1 && message.number() <= 6) piece.kind = static_cast<SentencePiece::Kind>(message.number());
    }
  }
  if (piece.text.empty()) message.fail("a piece is empty");
  return piece;
}

void read_trainer(WireReader message, SentencePieceModel& model) {
  while (message.next()) {
    const auto integer = [&](uint64_t field, int64_t& to) {
      if (message.is(field, Wire::varint)) to = wire_int32(message.number());
    };
    const auto text = [&](uint64_t field, std::string_view& to) {
      if (message.is(field, Wire::bytes)) to = message.text("the text of a special piece");
    };
    if (message.is(3, Wire::varint) && message.number() >= 1 && message.number() <= 4)
      model.type = static_cast<SentencePieceModel::Type>(message.number());
    if (message.is(35, Wire::varint)) model.byte_fallback = message.number() != 0;
    integer(40, model.unk_id);
    integer(41, model.bos_id);
    integer(42, model.eos_id);
    integer(43, model.pad_id);
    text(45, model.unk_piece);
    text(46, model.bos_piece);
    text(47, model.eos_piece);
    text(48, model.pad_piece);
  }
}

void read_normalizer(WireReader message, SentencePieceModel& model) {
  while (message.next())
    if (message.is(2, Wire::bytes)) model.precompiled_charsmap = message.bytes();
}

}  // namespace

SentencePieceModel read_sentencepiece(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (all.starts_with("version https://git-lfs"))
    throw UserError(ErrorKind::bad_file, name +
                                             " is a Git LFS pointer, not the model itself: run `git lfs install` and "
                                             "`git lfs pull` in its folder");
  SentencePieceModel model;
  WireReader message(all, name);
  while (message.next()) {
    if (message.is(1, Wire::bytes)) model.pieces.push_back(read_piece(message.message()));
    if (message.is(2, Wire::bytes)) read_trainer(message.message(), model);
    if (message.is(3, Wire::bytes)) read_normalizer(message.message(), model);
  }
  if (model.pieces.empty()) message.fail("there are no pieces");
  std::unordered_set<std::string_view> seen;
  seen.reserve(model.pieces.size());
  for (const SentencePiece& piece : model.pieces)
    if (!seen.insert(piece.text).second) message.fail("the piece \"" + excerpt(piece.text) + "\" stands there twice");
  return model;
}

}  // namespace calque
