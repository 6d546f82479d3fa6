// JPEG by libjpeg-turbo with its defaults, which are Pillow's: the exact integer transform (ISLOW) and smooth upsampling of colour.
// clang-format off
#include <cstdio>  // jpeglib.h needs size_t and FILE
#include <jpeglib.h>
// clang-format on

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "calque/base/error.h"
#include "media/codec/codec.h"

namespace calque {
namespace {

// A progressive file of a few bytes a scan can ask for any number of passes over all pixels.
constexpr int most_jpeg_scans = 500;

struct JpegReader {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf back = {};
  char reason[JMSG_LENGTH_MAX] = "";

  JpegReader();
  ~JpegReader() { jpeg_destroy_decompress(&info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
};

[[noreturn]] void on_jpeg_error(j_common_ptr info) {
  auto& reader = *static_cast<JpegReader*>(info->client_data);
  info->err->format_message(info, reader.reason);
  std::longjmp(reader.back, 1);
}

void ignore_jpeg_message(j_common_ptr) {}

void count_jpeg_scans(j_common_ptr info) {
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number <= most_jpeg_scans) return;
  auto& reader = *static_cast<JpegReader*>(info->client_data);
  std::strcpy(reader.reason, "it has more than 500 scans");
  std::longjmp(reader.back, 1);
}

// libjpeg would fill up what is missing.
boolean refuse_short_jpeg(j_decompress_ptr info) {
  auto& reader = *static_cast<JpegReader*>(info->client_data);
  std::strcpy(reader.reason, "the file ends too early");
  std::longjmp(reader.back, 1);
}

JpegReader::JpegReader() {
  info.err = jpeg_std_error(&errors);
  errors.error_exit = on_jpeg_error;
  errors.output_message = ignore_jpeg_message;
  info.client_data = this;
}

// Calls fn, which has no object to destroy; false after an error of libjpeg.
template <class F>
bool without_jpeg_error(JpegReader& reader, F&& fn) {
  if (setjmp(reader.back)) return false;
  fn();
  return true;
}

void read_jpeg_metadata(const jpeg_decompress_struct& info, DecodedPicture& out) {
  constexpr std::string_view exif("Exif\0\0", 6), xmp("http://ns.adobe.com/xap/1.0/\0", 29);
  for (const jpeg_marker_struct* marker = info.marker_list; marker; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (data.starts_with(exif)) out.exif += out.exif.empty() ? data : data.substr(exif.size());
    if (data.starts_with(xmp)) out.xmp = data.substr(xmp.size());
  }
}

// A product of two bytes over 255, rounded as Pillow rounds it.
int over_255(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// Four inks, which files hold inverted.
void rgb_of_inks(const uint8_t* in, size_t width, uint8_t* out) {
  for (size_t x = 0; x < width; ++x) {
    const int light = in[4 * x + 3];
    for (size_t c = 0; c < 3; ++c)
      out[3 * x + c] = static_cast<uint8_t>(std::clamp(light - over_255(255 - in[4 * x + c], light), 0, 255));
  }
}

}  // namespace

DecodedPicture decode_jpeg(const PictureSource& source) {
  JpegReader reader;
  const bool has_header = without_jpeg_error(reader, [&] {
    jpeg_create_decompress(&reader.info);
    reader.info.client_data = &reader;
    reader.info.progress = &reader.progress;
    reader.progress.progress_monitor = count_jpeg_scans;
    jpeg_mem_src(&reader.info, reinterpret_cast<const uint8_t*>(source.bytes.data()), source.bytes.size());
    reader.info.src->fill_input_buffer = refuse_short_jpeg;
    jpeg_save_markers(&reader.info, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&reader.info, TRUE);
  });
  if (!has_header) source.fail(std::string("no JPEG that libjpeg reads: ") + reader.reason);
  const size_t width = reader.info.image_width, height = reader.info.image_height;
  source.check_size(width, height);
  const int components = reader.info.num_components;
  if (components != 1 && components != 3 && components != 4)
    source.fail("a JPEG of " + std::to_string(components) + " channels; expected 1, 3 or 4");
  if (source.options.labels && components != 1)
    source.fail("a map of labels has one channel; this JPEG has " + std::to_string(components));
  reader.info.out_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;

  // What a file of several scans is kept in until the last one has come.
  const bool kept = jpeg_has_multiple_scans(&reader.info) != 0;
  const MemoryClaim claim(kept ? 2 * width * height * static_cast<size_t>(components) : 0);
  DecodedPicture out;
  read_jpeg_metadata(reader.info, out);
  out.picture = Picture(static_cast<int64_t>(height), static_cast<int64_t>(width), source.options.labels ? 1 : 3);
  CountedVector<uint8_t> row(width * static_cast<size_t>(components));
  const bool whole = without_jpeg_error(reader, [&] {
    jpeg_start_decompress(&reader.info);
    while (reader.info.output_scanline < reader.info.output_height) {
      uint8_t* const to = out.picture.row(reader.info.output_scanline);
      uint8_t* into = components == 4 || out.picture.channels != components ? row.data() : to;
      jpeg_read_scanlines(&reader.info, &into, 1);
      if (components == 4)
        rgb_of_inks(row.data(), width, to);
      else if (into != to)
        for (size_t x = 0; x < width; ++x) std::memset(to + 3 * x, row[x], 3);
    }
  });
  if (!whole) source.fail(std::string("a broken JPEG: ") + reader.reason);
  return out;
}

}  // namespace calque
