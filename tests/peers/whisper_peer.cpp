// whisper_peer CASES: runs whisper_generate on model folders. CASES has one JSON object a line: {"model": folder, "features": rows of bins of
// frames, "settings": generation settings, "options": of Whisper, by transformers' names, "seed": N}. For each a line of JSON: {"ids": rows,
// "segments": by row [begin, end, ids, times]} or {"error": text}.
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/generate/whisper.h"
#include "calque/hub/from_pretrained.h"
#include "generate/whisper_support.h"

using namespace calque;
using Nlohmann = nlohmann::json;

namespace {

Nlohmann run(const Nlohmann& c) {
  static std::map<std::string, std::shared_ptr<PretrainedModel>> models;
  std::shared_ptr<PretrainedModel>& model = models[c.at("model")];
  if (!model) model = from_pretrained(c.at("model").get<std::string>(), {.dtype = DType::float32});
  Generator generator(c.at("seed").get<uint64_t>());
  GenerateOptions options;
  options.generator = &generator;
  const WhisperOutput found = whisper_generate(*model, test::whisper_features_of(c.at("features")),
                                               GenerationConfig::from_json(c.at("settings").dump()),
                                               test::whisper_options_of(c.at("options")), options);
  return test::whisper_json_of(found);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream cases(argv[1]);
  for (std::string line; std::getline(cases, line);) {
    Nlohmann out;
    try {
      out = run(Nlohmann::parse(line));
    } catch (const std::exception& error) {
      out["error"] = error.what();
    }
    std::cout << out.dump() << "\n";
  }
}
