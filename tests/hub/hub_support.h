// What the tests of hub/ share: small models, goldens; with tests/support, folders that go away and what a call threw.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "calque/hub/pretrained_model.h"
#include "support/error_support.h"
#include "support/folder_support.h"

namespace calque::hub_test {

using namespace test;

std::filesystem::path golden(const std::string& name);  // tests/hub/golden/NAME
// A small Llama with random weights, by class name.
std::shared_ptr<PretrainedModel> tiny_llama(const std::string& model_class = "LlamaForCausalLM", bool tied = false,
                                            uint64_t seed = 0);
// Every parameter and buffer is there with the same dtype, sizes and bits; the difference in words, or empty.
std::string difference(Module& a, Module& b);
bool same_bits(const Tensor& a, const Tensor& b);

}  // namespace calque::hub_test
