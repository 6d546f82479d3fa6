#include "media/image_settings.h"

#include <fmt/format.h>

#include "base/join.h"
#include "media/settings.h"

namespace calque {
namespace {

using Numbers = std::array<double, 3>;
constexpr Numbers halves{0.5, 0.5, 0.5}, ones{1, 1, 1};
constexpr Numbers clip_mean{0.48145466, 0.4578275, 0.40821073}, clip_deviation{0.26862954, 0.26130258, 0.27577711};
constexpr Numbers imagenet_mean{0.485, 0.456, 0.406}, imagenet_deviation{0.229, 0.224, 0.225};

// What a class has where its file is silent.
struct ImageDefaults {
  const char* name;
  const char* model_types;  // with a blank on both sides of each
  ImageClass kind;
  Resample resample;
  Numbers mean, deviation;
  int64_t height, width;  // width 0: height is the shortest edge
  bool square;            // an integer as a size is both edges
  int64_t crop;           // 0: none by default
  bool center_crop;
};

constexpr ImageDefaults classes[] = {
    {"ViT", " vit swin swinv2 vit_mae vit_msn dinat ijepa swiftformer trocr mgp-str clipseg ", ImageClass::plain,
     Resample::bilinear, halves, halves, 224, 224, true, 0, false},
    {"DeiT", " deit ", ImageClass::plain, Resample::bicubic, halves, halves, 256, 256, true, 224, true},
    {"CLIP", " clip altclip git groupvit metaclip_2 kosmos-2 xclip ", ImageClass::plain, Resample::bicubic, clip_mean,
     clip_deviation, 224, 0, false, 224, true},
    {"ChineseCLIP", " chinese_clip ", ImageClass::plain, Resample::bicubic, clip_mean, clip_deviation, 224, 0, false, 224,
     true},
    {"Bit", " bit dinov2 focalnet hiera pixio ", ImageClass::plain, Resample::bicubic, clip_mean, clip_deviation, 224, 0,
     false, 224, true},
    {"Siglip", " siglip ", ImageClass::plain, Resample::bicubic, halves, halves, 224, 224, false, 0, false},
    {"Blip", " blip blip-2 instructblip ", ImageClass::plain, Resample::bicubic, clip_mean, clip_deviation, 384, 384, true,
     0, false},
    {"OwlViT", " owlvit ", ImageClass::plain, Resample::bicubic, clip_mean, clip_deviation, 768, 768, true, 768, false},
    {"Pvt", " pvt pvt_v2 ", ImageClass::plain, Resample::bicubic, imagenet_mean, imagenet_deviation, 224, 224, true, 0,
     false},
    {"MobileNetV1", " mobilenet_v1 ", ImageClass::plain, Resample::bilinear, halves, halves, 256, 0, false, 224, true},
    {"Chameleon", " chameleon ", ImageClass::plain, Resample::lanczos, ones, ones, 512, 0, false, 512, true},
    {"ConvNext", " convnext convnextv2 resnet regnet cvt ", ImageClass::convnext, Resample::bicubic, halves, halves, 384, 0,
     false, 0, false},
    {"Segformer", " segformer upernet ", ImageClass::segformer, Resample::bilinear, imagenet_mean, imagenet_deviation, 512,
     512, true, 0, false},
    {"Beit", " beit data2vec-vision ", ImageClass::beit, Resample::bicubic, halves, halves, 224, 224, true, 224, false},
    {"Donut", " donut-swin ", ImageClass::donut, Resample::bilinear, halves, halves, 2560, 1920, true, 0, false},
    {"GLPN", " glpn ", ImageClass::glpn, Resample::bilinear, halves, halves, 0, 0, true, 0, false},
};

constexpr std::string_view processor_ending = "ImageProcessor";

// "CLIPFeatureExtractor", "CLIPImageProcessorFast" and "CLIPImageProcessorPil" are all "CLIP".
std::string_view stem_of(std::string_view type) {
  for (const std::string_view ending :
       {std::string_view("Fast"), std::string_view("Pil"), processor_ending, std::string_view("FeatureExtractor")})
    if (type.ends_with(ending)) type.remove_suffix(ending.size());
  return type;
}

const ImageDefaults& class_of(const Json& json, std::string_view model_type) {
  const Json* type = setting(json, "image_processor_type");
  if (!type) type = setting(json, "feature_extractor_type");
  if (type) {
    for (const ImageDefaults& one : classes)
      if (stem_of(type->to_string()) == one.name) return one;
    type->fail("the image processor \"" + std::string(type->to_string()) + "\" is not known; expected one of " +
               join(known_image_processors(), ", "));
  }
  const std::string padded = fmt::format(" {} ", model_type);
  for (const ImageDefaults& one : classes)
    if (!model_type.empty() && std::string_view(one.model_types).find(padded) != std::string_view::npos) return one;
  json.fail("no \"image_processor_type\"; this folder does not say how a picture is prepared");
}

constexpr int64_t longest_side = 1 << 16;

// An integer, [height, width] or an object.
PictureSize read_size(const Json& json, bool square, bool width_first) {
  PictureSize out;
  if (json.kind() == Json::Kind::integer) {
    (square ? out.height : out.shortest_edge) = json.to_int();
    if (square) out.width = json.to_int();
  } else if (json.is_array()) {
    const auto items = json.items();
    if (items.size() != 2) json.fail("a size is two numbers; found " + std::to_string(items.size()));
    out.height = items[width_first ? 1 : 0].to_int(), out.width = items[width_first ? 0 : 1].to_int();
  } else {
    struct Member {
      const char* name;
      std::optional<int64_t> PictureSize::*member;
    };
    static constexpr Member members[] = {{"height", &PictureSize::height},
                                         {"width", &PictureSize::width},
                                         {"shortest_edge", &PictureSize::shortest_edge},
                                         {"longest_edge", &PictureSize::longest_edge},
                                         {"max_height", &PictureSize::max_height},
                                         {"max_width", &PictureSize::max_width}};
    for (const Member& one : members)
      if (const Json* found = setting(json, one.name)) out.*one.member = found->to_int();
  }
  const bool whole = (out.height && out.width) || out.shortest_edge || (out.max_height && out.max_width);
  if (!whole) json.fail("a size is height and width, shortest_edge (and longest_edge), or max_height and max_width");
  for (const auto& one : {out.height, out.width, out.shortest_edge, out.longest_edge, out.max_height, out.max_width})
    if (one && (*one < 1 || *one > longest_side))
      json.fail("a size of " + std::to_string(*one) + " pixels; expected 1 to " + std::to_string(longest_side));
  return out;
}

PictureSize square_size(const Json& json) {
  const PictureSize out = read_size(json, true, false);
  if (!out.height || !out.width) json.fail("expected height and width");
  return out;
}

std::vector<double> read_numbers(const Json& json, std::string_view key, const Numbers& otherwise) {
  const Json* found = setting(json, key);
  if (!found) return {otherwise.begin(), otherwise.end()};
  if (!found->is_array()) return std::vector<double>(3, found->to_float());
  std::vector<double> out;
  for (const Json& one : found->items()) out.push_back(one.to_float());
  if (out.size() != 3)
    found->fail(std::string(key) + " is one number, or one for each of the 3 channels; found " + std::to_string(out.size()));
  return out;
}

}  // namespace

std::vector<std::string> known_image_processors() {
  std::vector<std::string> out;
  for (const ImageDefaults& one : classes) out.push_back(fmt::format("{}{}", one.name, processor_ending));
  return out;
}

ImageSettings read_image_settings(const Json& json, std::string_view model_type) {
  const ImageDefaults& its = class_of(json, model_type);
  ImageSettings out;
  out.kind = its.kind;
  out.resize = flag_setting(json, "do_resize", true);
  out.center_crop = flag_setting(json, "do_center_crop", its.center_crop);
  out.rescale = flag_setting(json, "do_rescale", true);
  out.normalize = flag_setting(json, "do_normalize", its.kind != ImageClass::glpn);
  out.pad = flag_setting(json, "do_pad", its.kind == ImageClass::donut);
  out.reduce_labels = flag_setting(json, "do_reduce_labels", flag_setting(json, "reduce_labels", false));
  out.thumbnail = flag_setting(json, "do_thumbnail", true);
  out.align_long_axis = flag_setting(json, "do_align_long_axis", false);
  out.resample = static_cast<Resample>(integer_setting(json, "resample", static_cast<int64_t>(its.resample), 0, 5));
  out.rescale_factor =
      number_setting(json, "rescale_factor", its.name == std::string_view("Chameleon") ? 0.0078 : 1.0 / 255);
  out.crop_pct = number_setting(json, "crop_pct", 224.0 / 256);
  if (!(out.crop_pct >= 0.01 && out.crop_pct <= 10)) json.fail("crop_pct is a share, 0.01 to 10");
  out.size_divisor = integer_setting(json, "size_divisor", 32, 1, longest_side);
  out.mean = read_numbers(json, "image_mean", its.mean), out.deviation = read_numbers(json, "image_std", its.deviation);
  const bool square = flag_setting(json, "default_to_square", its.square);
  if (flag_setting(json, "use_square_size", false) && its.name == std::string_view("CLIP"))
    out.size.height = out.size.width = its.height;
  else if (const Json* size = setting(json, "size"))
    out.size = read_size(*size, square, its.kind == ImageClass::donut);
  else if (its.width == 0 && its.height > 0)
    out.size.shortest_edge = its.height;
  else if (its.height > 0)
    out.size.height = its.height, out.size.width = its.width;
  if (out.kind == ImageClass::convnext && out.resize && !out.size.shortest_edge)
    json.fail("ConvNextImageProcessor needs a shortest_edge");
  if (out.kind == ImageClass::donut && !out.size.height) json.fail("DonutImageProcessor needs a size of height and width");
  if (const Json* crop = setting(json, "crop_size"))
    out.crop_size = square_size(*crop);
  else if (its.crop > 0)
    out.crop_size.height = out.crop_size.width = its.crop;
  if (out.center_crop && !out.crop_size.height) json.fail("do_center_crop needs a crop_size");
  if (const Json* pad = setting(json, "pad_size")) out.pad_size = square_size(*pad);
  return out;
}

}  // namespace calque
