#include "calque/media/picture.h"

#include "calque/base/error.h"
#include "calque/file/file_writer.h"
#include "calque/file/mapped_file.h"
#include "media/codec/codec.h"
#include "media/orientation.h"

namespace calque {

Picture::Picture(int64_t h, int64_t w, int64_t c)
    : height(h), width(w), channels(c), bytes(static_cast<size_t>(h) * static_cast<size_t>(w) * static_cast<size_t>(c)) {}

void PictureSource::fail(const std::string& why) const { throw UserError(ErrorKind::bad_file, what + ": " + why); }

void PictureSource::check_size(uint64_t width, uint64_t height) const {
  if (width == 0 || height == 0) fail("a picture without pixels");
  if (height > options.max_pixels / width)
    fail("a picture of " + std::to_string(width) + " x " + std::to_string(height) + " pixels; at most " +
         std::to_string(options.max_pixels) + " are read (raise the limit with --max-pixels or PictureOptions::max_pixels)");
}

void library_absent(const std::string& what, const char* reads, const char* library, const char* package) {
  throw UserError(what + ": " + reads + " need " + library + ", which this Calque was built without; install " + package +
                  " and build again");
}

Picture decode_picture(std::span<const std::byte> bytes, const std::string& what, const PictureOptions& options) {
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const PictureSource source{bytes, what, options};
  DecodedPicture out;
  if (head.starts_with("\x89PNG\r\n\x1a\n"))
    out = decode_png(source);
  else if (head.starts_with("\xff\xd8\xff"))
    out = decode_jpeg(source);
  else if (head.starts_with("RIFF") && head.substr(0, 12).ends_with("WEBP"))
    out = decode_webp(source);
  else
    source.fail("neither PNG nor JPEG nor WebP; convert it to one of these");
  return turned(std::move(out.picture), options.labels ? 1 : orientation_of(out.exif, out.xmp));
}

Picture load_picture(const std::string& path, const PictureOptions& options) {
  return decode_picture(MappedFile::open(path)->bytes(), path, options);
}

void save_png(const std::string& path, const Picture& picture) {
  const CountedVector<uint8_t> bytes = encode_png(picture);
  FileWriter file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace calque
