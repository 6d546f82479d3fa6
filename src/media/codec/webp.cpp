// WebP by libwebp: the first frame on its canvas, without its alpha, as Pillow's convert("RGB") gives it.
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>

#include "media/codec/codec.h"

namespace calque {
namespace {

std::string webp_chunk(const WebPDemuxer* demuxer, const char* name) {
  WebPChunkIterator found;
  std::string out;
  if (WebPDemuxGetChunk(demuxer, name, 1, &found))
    out.assign(reinterpret_cast<const char*>(found.chunk.bytes), found.chunk.size);
  WebPDemuxReleaseChunkIterator(&found);
  return out;
}

}  // namespace

DecodedPicture decode_webp(const PictureSource& source) {
  const WebPData data{reinterpret_cast<const uint8_t*>(source.bytes.data()), source.bytes.size()};
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data.bytes, data.size, &features) != VP8_STATUS_OK) source.fail("no WebP that libwebp reads");
  const auto width = static_cast<size_t>(features.width), height = static_cast<size_t>(features.height);
  source.check_size(width, height);
  if (source.options.labels) source.fail("a map of labels has one channel; a WebP has three");

  // The decoder has two canvases of its own.
  const MemoryClaim claim(8 * width * height);
  WebPAnimDecoderOptions options;
  WebPAnimDecoderOptionsInit(&options);
  const std::unique_ptr<WebPAnimDecoder, decltype(&WebPAnimDecoderDelete)> decoder(WebPAnimDecoderNew(&data, &options),
                                                                                   &WebPAnimDecoderDelete);
  WebPAnimInfo info;
  uint8_t* canvas = nullptr;
  int timestamp = 0;
  if (!decoder || !WebPAnimDecoderGetInfo(decoder.get(), &info)) source.fail("a broken WebP: its parts do not fit together");
  source.check_size(info.canvas_width, info.canvas_height);
  if (!WebPAnimDecoderGetNext(decoder.get(), &canvas, &timestamp))
    source.fail("a broken WebP: its first picture cannot be decoded");
  DecodedPicture out;
  out.picture = Picture(info.canvas_height, info.canvas_width, 3);
  uint8_t* to = out.picture.bytes.data();
  const size_t pixels = size_t{info.canvas_width} * info.canvas_height;
  for (size_t i = 0; i < pixels; ++i) std::memcpy(to + 3 * i, canvas + 4 * i, 3);
  const WebPDemuxer* demuxer = WebPAnimDecoderGetDemuxer(decoder.get());
  out.exif = webp_chunk(demuxer, "EXIF");
  out.xmp = webp_chunk(demuxer, "XMP ");
  return out;
}

}  // namespace calque
