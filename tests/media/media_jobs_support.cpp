#include "media/media_jobs_support.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "calque/media/feature_extractor.h"
#include "calque/media/image_processor.h"
#include "calque/op/aten/empty.h"

namespace calque::test {
namespace {

using Job = nlohmann::json;

template <class T, class V>
Tensor tensor_over(const V& values, std::vector<int64_t> sizes, DType dtype) {
  const Tensor out = empty(std::vector<SymInt>(sizes.begin(), sizes.end()), dtype);
  std::ranges::copy(values, out.mutable_data_as<T>());
  return out;
}

Tensor pixels(const Picture& p) { return tensor_over<uint8_t>(p.bytes, {p.height, p.width, p.channels}, DType::uint8); }

std::vector<Picture> pictures_of(const Job& job, const std::string& folder, const PictureOptions& options) {
  std::vector<Picture> out;
  for (const Job& path : job.at("paths")) out.push_back(load_picture(folder + "/" + path.get<std::string>(), options));
  return out;
}

ImageProcessor processor_of(const Job& job, const std::string& folder) {
  if (job.contains("folder")) return ImageProcessor::from_folder(folder + "/" + job.at("folder").get<std::string>());
  return ImageProcessor::from_json(job.at("settings").dump(), "settings");
}

FeatureExtractor extractor_of(const Job& job, const std::string& folder) {
  if (job.contains("folder")) return FeatureExtractor::from_folder(folder + "/" + job.at("folder").get<std::string>());
  return FeatureExtractor::from_json(job.at("settings").dump(), "settings");
}

Tensor samples(const Waveform& w) { return tensor_over<float>(w.samples, {std::ssize(w.samples)}, DType::float32); }

}  // namespace

std::map<std::string, Tensor> run_media_job(const Job& job, const std::string& folder) {
  const std::string what = job.at("do");
  const auto path = [&] { return folder + "/" + job.at("path").get<std::string>(); };
  PictureOptions labels;
  labels.labels = true;
  if (what == "picture") return {{"value", pixels(load_picture(path()))}};
  if (what == "resize") {
    PictureOptions options;
    options.labels = job.value("labels", false);
    return {{"value", pixels(resized(load_picture(path(), options), job.at("height"), job.at("width"),
                                     static_cast<Resample>(job.at("filter").get<int>())))}};
  }
  if (what == "process") return {{"value", processor_of(job, folder).process(pictures_of(job, folder, {}))}};
  if (what == "labels") return {{"value", processor_of(job, folder).process_labels(pictures_of(job, folder, labels))}};
  if (what == "waveform") return {{"value", samples(load_waveform(path()))}};
  if (what == "resample") return {{"value", samples(resampled(load_waveform(path()), job.at("rate")))}};
  const FeatureExtractor extractor = extractor_of(job, folder);
  std::vector<Waveform> waveforms;
  for (const Job& one : job.at("paths")) waveforms.push_back(load_waveform(folder + "/" + one.get<std::string>()));
  SoundFeatureOptions options;
  options.whole = job.value("whole", false);
  if (job.contains("attention_mask")) options.attention_mask = job.at("attention_mask").get<bool>();
  const SoundFeatures found = extractor.extract(waveforms, options);
  std::map<std::string, Tensor> out{{"value", found.values}};
  if (found.attention_mask) out.emplace("attention_mask", *found.attention_mask);
  return out;
}

}  // namespace calque::test
