// Jobs for the room media as JSON, which tests/peers/media.py and the goldens share.
//   {"do": "picture", "path": P}                                    pixels
//   {"do": "resize", "path": P, "height": H, "width": W, "filter": F}
//   {"do": "process", "paths": [P, ...], "settings": {...}}          pixel_values; "folder" instead of "settings"
//   {"do": "labels", "paths": [P, ...], "settings": {...}}
//   {"do": "waveform", "path": P}                                   samples
//   {"do": "resample", "path": P, "rate": R}
//   {"do": "features", "paths": [P, ...], "settings": {...}, "whole": false}   values, attention_mask
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "calque/op/tensor.h"

namespace calque::test {

// Paths are relative to `folder`. Throws what the room throws.
std::map<std::string, Tensor> run_media_job(const nlohmann::json& job, const std::string& folder);

}  // namespace calque::test
