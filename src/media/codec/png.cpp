// PNG by libpng, as Pillow reads it: grey of 16 bits is cut off at 255, other channels of 16 bits keep their high byte.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "calque/base/error.h"
#include "media/codec/codec.h"

namespace calque {
namespace {

struct PngReader {
  std::span<const std::byte> bytes;
  size_t at = 0;
  char reason[160] = "";
  png_structp png = nullptr;
  png_infop info = nullptr;

  explicit PngReader(std::span<const std::byte> all);
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
};

void keep_png_reason(char* reason, size_t size, const char* text) {
  std::strncpy(reason, text, size - 1);
  reason[size - 1] = '\0';
}

void read_png_bytes(png_structp png, png_bytep out, size_t count) {
  auto& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader.bytes.size() - reader.at) png_error(png, "the file ends too early");
  std::memcpy(out, reader.bytes.data() + reader.at, count);
  reader.at += count;
}

[[noreturn]] void on_png_error(png_structp png, png_const_charp text) {
  auto& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
  keep_png_reason(reader.reason, sizeof reader.reason, text);
  png_longjmp(png, 1);
}

void ignore_png_warning(png_structp, png_const_charp) {}

PngReader::PngReader(std::span<const std::byte> all)
    : bytes(all), png(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_png_error, ignore_png_warning)) {
  if (png) info = png_create_info_struct(png);
  if (!info) throw UserError("out of memory: libpng has no place for its state");
  png_set_read_fn(png, this, read_png_bytes);
}

// Calls fn, which has no object to destroy; false after an error of libpng.
template <class F>
bool without_png_error(png_structp png, F&& fn) {
  if (setjmp(png_jmpbuf(png))) return false;
  fn();
  return true;
}

struct PngForm {
  png_uint_32 width = 0, height = 0;
  int depth = 0, colour = 0, passes = 1;
  size_t row_bytes = 0;
};

// What libpng is asked for, so that rows have whole bytes.
void set_png_transforms(png_structp png, png_infop info, PngForm& form) {
  if (form.colour == PNG_COLOR_TYPE_GRAY && form.depth < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (form.colour == PNG_COLOR_TYPE_PALETTE) png_set_packing(png);
  if (form.depth == 16 && form.colour != PNG_COLOR_TYPE_GRAY) png_set_strip_16(png);
  form.passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  form.row_bytes = png_get_rowbytes(png, info);
}

void fill_from_row(const PngForm& form, const std::vector<png_color>& palette, bool labels, const uint8_t* in,
                   uint8_t* out) {
  const size_t width = form.width;
  const auto grey = [&](size_t x, uint8_t value) {
    if (labels)
      out[x] = value;
    else
      out[3 * x] = out[3 * x + 1] = out[3 * x + 2] = value;
  };
  switch (form.colour) {
    case PNG_COLOR_TYPE_GRAY:
      for (size_t x = 0; x < width; ++x) grey(x, form.depth == 16 ? (in[2 * x] ? uint8_t{255} : in[2 * x + 1]) : in[x]);
      break;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      for (size_t x = 0; x < width; ++x) grey(x, in[2 * x]);
      break;
    case PNG_COLOR_TYPE_PALETTE:
      for (size_t x = 0; x < width; ++x) {
        if (labels) {
          out[x] = in[x];
          continue;
        }
        const png_color colour = in[x] < palette.size() ? palette[in[x]] : png_color{};
        out[3 * x] = colour.red, out[3 * x + 1] = colour.green, out[3 * x + 2] = colour.blue;
      }
      break;
    default:
      const size_t step = form.colour == PNG_COLOR_TYPE_RGB_ALPHA ? 4 : 3;
      for (size_t x = 0; x < width; ++x) std::memcpy(out + 3 * x, in + step * x, 3);
  }
}

void read_png_metadata(png_structp png, png_infop info, DecodedPicture& out) {
  png_bytep exif = nullptr;
  png_uint_32 size = 0;
  if (png_get_eXIf_1(png, info, &size, &exif)) out.exif.assign(reinterpret_cast<const char*>(exif), size);
  png_textp texts = nullptr;
  int count = 0;
  png_get_text(png, info, &texts, &count);
  for (int i = 0; i < count; ++i)
    if (std::strcmp(texts[i].key, "XML:com.adobe.xmp") == 0 && texts[i].text) out.xmp = texts[i].text;
}

}  // namespace

DecodedPicture decode_png(const PictureSource& source) {
  PngReader reader(source.bytes);
  PngForm form;
  const bool has_header = without_png_error(reader.png, [&] {
    png_set_user_limits(reader.png, 0x7fffffff, 0x7fffffff);
    png_read_info(reader.png, reader.info);
    png_get_IHDR(reader.png, reader.info, &form.width, &form.height, &form.depth, &form.colour, nullptr, nullptr, nullptr);
  });
  if (!has_header) source.fail(std::string("no PNG that libpng reads: ") + reader.reason);
  source.check_size(form.width, form.height);
  const bool single = form.colour == PNG_COLOR_TYPE_PALETTE || form.colour == PNG_COLOR_TYPE_GRAY;
  if (source.options.labels && (!single || form.depth == 16))
    source.fail("a map of labels has one channel of at most 8 bits; this PNG has colours, alpha or 16 bits");
  std::vector<png_color> palette;
  png_colorp colours = nullptr;
  int count = 0;
  if (png_get_PLTE(reader.png, reader.info, &colours, &count)) palette.assign(colours, colours + count);

  if (!without_png_error(reader.png, [&] { set_png_transforms(reader.png, reader.info, form); }))
    source.fail(std::string("a broken PNG: ") + reader.reason);
  DecodedPicture out;
  out.picture = Picture(form.height, form.width, source.options.labels ? 1 : 3);
  // Passes of an interlaced file go over all rows; otherwise one row is enough.
  const size_t kept = form.passes > 1 ? form.height : 1;
  CountedVector<uint8_t> rows(kept * form.row_bytes);
  const bool whole = without_png_error(reader.png, [&] {
    for (int pass = 0; pass < form.passes; ++pass)
      for (png_uint_32 y = 0; y < form.height; ++y) {
        uint8_t* const row = rows.data() + (kept > 1 ? y : 0) * form.row_bytes;
        png_read_row(reader.png, row, nullptr);
        if (pass + 1 == form.passes) fill_from_row(form, palette, source.options.labels, row, out.picture.row(y));
      }
    png_read_end(reader.png, reader.info);
  });
  if (!whole) source.fail(std::string("a broken PNG: ") + reader.reason);
  read_png_metadata(reader.png, reader.info, out);
  return out;
}

namespace {

struct PngWriter {
  CountedVector<uint8_t> out;
  char reason[160] = "";
};

void write_png_bytes(png_structp png, png_bytep bytes, size_t count) {
  auto& writer = *static_cast<PngWriter*>(png_get_io_ptr(png));
  writer.out.insert(writer.out.end(), bytes, bytes + count);
}

[[noreturn]] void on_png_write_error(png_structp png, png_const_charp text) {
  auto& writer = *static_cast<PngWriter*>(png_get_error_ptr(png));
  keep_png_reason(writer.reason, sizeof writer.reason, text);
  png_longjmp(png, 1);
}

}  // namespace

CountedVector<uint8_t> encode_png(const Picture& picture) {
  PngWriter writer;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &writer, on_png_write_error, ignore_png_warning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  const bool written =
      info && without_png_error(png, [&] {
        png_set_write_fn(png, &writer, write_png_bytes, nullptr);
        png_set_IHDR(png, info, static_cast<png_uint_32>(picture.width), static_cast<png_uint_32>(picture.height), 8,
                     picture.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
        png_write_info(png, info);
        for (int64_t y = 0; y < picture.height; ++y) png_write_row(png, picture.row(y));
        png_write_end(png, info);
      });
  png_destroy_write_struct(&png, &info);
  if (!written) throw UserError(std::string("a PNG could not be written: ") + writer.reason);
  return std::move(writer.out);
}

}  // namespace calque
