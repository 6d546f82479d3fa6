#include "calque/media/image_processor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "calque/base/error.h"
#include "calque/hub/config.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/zeros.h"
#include "media/image_settings.h"
#include "media/orientation.h"
#include "media/settings.h"

namespace calque {
namespace {

struct Extent {
  int64_t height, width;
};

int64_t cut(double x) { return static_cast<int64_t>(x); }
double real(int64_t x) { return static_cast<double>(x); }

Extent with_shortest_edge(Extent e, int64_t edge) {
  const int64_t shorter = std::min(e.height, e.width), longer = std::max(e.height, e.width);
  const int64_t other = cut(real(edge * longer) / real(shorter));
  return e.width <= e.height ? Extent{other, edge} : Extent{edge, other};
}

// The shortest edge, unless the other one would become longer than allowed.
Extent between_edges(Extent e, int64_t edge, int64_t longest) {
  const double least = real(std::min(e.height, e.width)), most = real(std::max(e.height, e.width));
  double exact = real(edge);
  if (most / least * real(edge) > real(longest)) {
    exact = real(longest) * least / most;
    edge = cut(std::nearbyint(exact));
  }
  if ((e.height <= e.width && e.height == edge) || (e.width <= e.height && e.width == edge)) return e;
  if (e.width < e.height) return {cut(exact * real(e.height) / real(e.width)), edge};
  return {edge, cut(exact * real(e.width) / real(e.height))};
}

Extent inside(Extent e, int64_t height, int64_t width) {
  const double scale = std::min(real(height) / real(e.height), real(width) / real(e.width));
  return {cut(real(e.height) * scale), cut(real(e.width) * scale)};
}

Extent wanted_extent(Extent e, const PictureSize& size) {
  if (size.shortest_edge && size.longest_edge) return between_edges(e, *size.shortest_edge, *size.longest_edge);
  if (size.shortest_edge) return with_shortest_edge(e, *size.shortest_edge);
  if (size.max_height && size.max_width) return inside(e, *size.max_height, *size.max_width);
  return {*size.height, *size.width};
}

Picture resized_to(const Picture& picture, Extent to, Resample filter) {
  return resized(picture, to.height, to.width, filter);
}

// The picture on a black ground, from this corner on.
Picture on_ground(const Picture& picture, Extent ground, int64_t top, int64_t left) {
  if (picture.height > ground.height || picture.width > ground.width)
    throw UserError("a picture of " + std::to_string(picture.height) + " x " + std::to_string(picture.width) +
                    " cannot be padded to " + std::to_string(ground.height) + " x " + std::to_string(ground.width));
  Picture out(ground.height, ground.width, picture.channels);
  for (int64_t y = 0; y < picture.height; ++y)
    std::memcpy(out.row(top + y) + left * picture.channels, picture.row(y),
                static_cast<size_t>(picture.width * picture.channels));
  return out;
}

Picture convnext_resized(const Picture& picture, const ImageSettings& s, Resample filter) {
  const int64_t edge = *s.size.shortest_edge;
  if (edge >= 384) return resized(picture, edge, edge, filter);
  const Extent to = with_shortest_edge({picture.height, picture.width}, cut(real(edge) / s.crop_pct));
  return center_cropped(resized_to(picture, to, filter), edge, edge);
}

Picture donut_fitted(Picture picture, const ImageSettings& s) {
  const Extent page{*s.size.height, *s.size.width};
  const auto lies = [](int64_t height, int64_t width) { return width > height; };
  const bool turn = page.height != page.width && picture.height != picture.width &&
                    lies(page.height, page.width) != lies(picture.height, picture.width);
  if (s.align_long_axis && turn) picture = turned(std::move(picture), 6);
  if (s.resize)
    picture = resized_to(picture, with_shortest_edge({picture.height, picture.width}, std::min(page.height, page.width)),
                         s.resample);
  if (s.thumbnail) {
    const Extent own{picture.height, picture.width};
    Extent to{std::min(own.height, page.height), std::min(own.width, page.width)};
    if (to.height != own.height || to.width != own.width) {
      if (own.height > own.width)
        to.width = cut(real(own.width * to.height) / real(own.height));
      else if (own.width > own.height)
        to.height = cut(real(own.height * to.width) / real(own.width));
      picture = resized_to(picture, to, s.resample);
    }
  }
  if (s.pad) picture = on_ground(picture, page, (page.height - picture.height) / 2, (page.width - picture.width) / 2);
  return picture;
}

// The steps before bytes become floats.
Picture fitted(Picture picture, const ImageSettings& s, Resample filter) {
  switch (s.kind) {
    case ImageClass::donut: picture = donut_fitted(std::move(picture), s); break;
    case ImageClass::convnext:
      if (s.resize) picture = convnext_resized(picture, s, filter);
      break;
    case ImageClass::glpn:
      if (s.resize)
        picture = resized(picture, picture.height / s.size_divisor * s.size_divisor,
                          picture.width / s.size_divisor * s.size_divisor, filter);
      return picture;
    case ImageClass::plain:
    case ImageClass::segformer:
    case ImageClass::beit:
      if (s.resize) picture = resized_to(picture, wanted_extent({picture.height, picture.width}, s.size), filter);
  }
  if (s.center_crop && s.kind != ImageClass::segformer)
    picture = center_cropped(picture, *s.crop_size.height, *s.crop_size.width);
  return picture;
}

// What a byte of a channel becomes.
std::array<float, 256> floats_of_bytes(const ImageSettings& s, size_t channel) {
  std::array<float, 256> out;
  for (size_t i = 0; i < 256; ++i) {
    out[i] = static_cast<float>(i);
    if (s.rescale) out[i] = static_cast<float>(static_cast<double>(i) * s.rescale_factor);
    if (s.normalize) out[i] = (out[i] - static_cast<float>(s.mean[channel])) / static_cast<float>(s.deviation[channel]);
  }
  return out;
}

std::string extent_text(const Picture& p) { return std::to_string(p.height) + " x " + std::to_string(p.width); }

}  // namespace

struct ImageProcessor::Impl {
  ImageSettings settings;
  std::vector<std::array<float, 256>> floats;

  Impl(const Json& json, std::string_view model_type) : settings(read_image_settings(json, model_type)) {
    for (size_t c = 0; c < 3; ++c) floats.push_back(floats_of_bytes(settings, c));
  }

  // All of one size; a ground of zeros around the smaller ones where the settings say so.
  Extent common_extent(std::span<const Picture> pictures) const {
    Extent out{pictures[0].height, pictures[0].width};
    const bool pads = settings.pad && settings.kind == ImageClass::plain;
    if (pads && settings.pad_size) return {*settings.pad_size->height, *settings.pad_size->width};
    for (const Picture& one : pictures) {
      if (pads)
        out = {std::max(out.height, one.height), std::max(out.width, one.width)};
      else if (one.height != out.height || one.width != out.width)
        throw UserError("pictures of one batch become " + extent_text(pictures[0]) + " and " + extent_text(one) +
                        "; give them one by one, or in one shape");
    }
    return out;
  }
};

ImageProcessor::ImageProcessor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ImageProcessor::ImageProcessor(ImageProcessor&&) noexcept = default;
ImageProcessor& ImageProcessor::operator=(ImageProcessor&&) noexcept = default;
ImageProcessor::~ImageProcessor() = default;

ImageProcessor ImageProcessor::from_folder(const std::filesystem::path& folder) {
  std::unique_ptr<Impl> impl;
  std::error_code error;
  std::string model_type;
  if (std::filesystem::is_regular_file(folder / "config.json", error))
    model_type = Config::from_file(folder / "config.json").model_type();
  read_processor_settings(folder, "image_processor",
                          [&](const Json& json) { impl = std::make_unique<Impl>(json, model_type); });
  return ImageProcessor(std::move(impl));
}

ImageProcessor ImageProcessor::from_json(std::string_view json, const std::string& what) {
  const JsonDocument document(json, what);
  return document.read([](const Json& root) { return ImageProcessor(std::make_unique<Impl>(root, "")); });
}

std::vector<std::string> ImageProcessor::known() { return known_image_processors(); }

Tensor ImageProcessor::process(std::span<const Picture> pictures) const {
  if (pictures.empty()) throw UserError("no pictures to prepare; expected at least one");
  std::vector<Picture> done;
  for (const Picture& one : pictures) {
    if (one.channels != 3)
      throw UserError("a picture of " + std::to_string(one.channels) + " channel; expected red, green and blue");
    done.push_back(fitted(one, impl_->settings, impl_->settings.resample));
  }
  const Extent extent = impl_->common_extent(done);
  const bool bytes = !impl_->settings.rescale && !impl_->settings.normalize;
  const Tensor out = zeros({std::ssize(done), 3, extent.height, extent.width}, bytes ? DType::uint8 : DType::float32);
  const int64_t plane = extent.height * extent.width;
  for (size_t i = 0; i < done.size(); ++i) {
    const Picture& one = done[i];
    if (one.height > extent.height || one.width > extent.width)
      throw UserError("a picture becomes " + extent_text(one) + ", which is larger than the pad_size");
    for (int64_t y = 0; y < one.height; ++y)
      for (int64_t c = 0; c < 3; ++c) {
        const int64_t at = (static_cast<int64_t>(i) * 3 + c) * plane + y * extent.width;
        const uint8_t* const from = one.row(y) + c;
        if (bytes) {
          uint8_t* const to = out.mutable_data_as<uint8_t>() + at;
          for (int64_t x = 0; x < one.width; ++x) to[x] = from[3 * x];
        } else {
          float* const to = out.mutable_data_as<float>() + at;
          const std::array<float, 256>& floats = impl_->floats[static_cast<size_t>(c)];
          for (int64_t x = 0; x < one.width; ++x) to[x] = floats[from[3 * x]];
        }
      }
  }
  return out;
}

Tensor ImageProcessor::process_labels(std::span<const Picture> maps) const {
  const ImageSettings& s = impl_->settings;
  if (s.kind != ImageClass::segformer && s.kind != ImageClass::beit)
    throw UserError("maps of labels are prepared by SegformerImageProcessor and BeitImageProcessor");
  if (maps.empty()) throw UserError("no maps of labels to prepare; expected at least one");
  std::vector<Picture> done;
  for (const Picture& one : maps) {
    if (one.channels != 1) throw UserError("a map of labels has one channel (PictureOptions::labels)");
    Picture map = one;
    // Label 0 becomes 255, which training leaves out; the others move down by one.
    if (s.reduce_labels)
      for (uint8_t& label : map.bytes) label = label == 0 || label == 255 ? uint8_t{255} : static_cast<uint8_t>(label - 1);
    done.push_back(fitted(std::move(map), s, s.kind == ImageClass::segformer ? Resample::nearest : s.resample));
  }
  const Extent extent = impl_->common_extent(done);
  const Tensor out = empty({std::ssize(done), extent.height, extent.width}, DType::int64);
  int64_t* to = out.mutable_data_as<int64_t>();
  for (const Picture& one : done) to = std::ranges::copy(one.bytes, to).out;
  return out;
}

}  // namespace calque
