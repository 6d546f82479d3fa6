#include "calque/hub/device_map.h"

#include <gtest/gtest.h>

#include "calque/base/warning.h"
#include "calque/nn/container.h"
#include "calque/nn/normalization.h"
#include "calque/op/aten/zeros.h"
#include "hub/hub_support.h"

namespace calque::device_map_test {
namespace {

using namespace hub_test;

// Accelerate's toy: 64, 72 and 100 bytes.
struct ModelForTest : Typed<ModelForTest> {
  static constexpr const char* torch_type = "tests.ModelForTest";
  ModelForTest()
      : linear1(child<Linear>("linear1", 3, 4)),
        batchnorm(child<BatchNorm1d>("batchnorm", 4)),
        linear2(child<Linear>("linear2", 4, 5)) {}
  Tensor forward(const Tensor& x) { return linear2(batchnorm(linear1(x))); }
  Child<Linear> linear1;
  Child<BatchNorm1d> batchnorm;
  Child<Linear> linear2;
};
struct LinearWithNonPersistentBuffers : Typed<LinearWithNonPersistentBuffers> {
  LinearWithNonPersistentBuffers()
      : weight(register_parameter("weight", zeros({10, 10}))), bias(register_buffer("bias", zeros({10}), false)) {}
  Tensor forward(const Tensor& x) { return x; }
  Parameter weight;
  Buffer bias;
};

std::shared_ptr<Sequential> three() {
  auto out = std::make_shared<Sequential>();
  for (const char* name : {"0", "1", "2"}) out->register_module(name, std::make_shared<ModelForTest>());
  return out;
}

DeviceMap sorted(DeviceMap map) {
  std::sort(map.begin(), map.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return map;
}
std::string plan(Module& model, const MaxMemory& limits, std::vector<std::string> whole = {}) {
  return device_map_text(sorted(infer_auto_device_map(model, {.max_memory = limits, .no_split_modules = std::move(whole)})));
}

TEST(DeviceMap, H115_sizes_of_modules) {
  ModelForTest model;
  const ModuleSizes sizes = compute_module_sizes(model);
  EXPECT_EQ(sizes.of(""), 236);
  EXPECT_EQ(sizes.of("linear1"), 64);
  EXPECT_EQ(sizes.of("linear1.weight"), 48);
  EXPECT_EQ(sizes.of("batchnorm"), 72);
  EXPECT_EQ(sizes.of("linear2"), 100);
  const ModuleSizes half = compute_module_sizes(model, DType::float16);
  EXPECT_EQ(half.of("linear1"), 32);
  EXPECT_EQ(half.of("batchnorm"), 40);  // the counter of batches has 8 bytes
  EXPECT_EQ(half.of("linear2"), 50);
  EXPECT_EQ(half.of(""), 122);
}

TEST(DeviceMap, H116_the_first_accelerator_keeps_room_for_the_largest_layer) {
  ModelForTest model;
  EXPECT_EQ(plan(model, {{0, 200}, {1, 200}}), "{'batchnorm': 1, 'linear1': 0, 'linear2': 1}");
}

TEST(DeviceMap, H117_other_accelerators_do_not) {
  ModelForTest model;
  EXPECT_EQ(plan(model, {{0, 200}, {1, 172}, {2, 200}}), "{'batchnorm': 1, 'linear1': 0, 'linear2': 1}");
}

TEST(DeviceMap, H118_tied_weights_fit_together) {
  ModelForTest model;
  model.linear1->weight = zeros({5, 4});
  model.linear2->weight = *model.linear1->weight;
  EXPECT_EQ(find_tied_parameters(model), (std::vector<std::vector<std::string>>{{"linear1.weight", "linear2.weight"}}));
  EXPECT_EQ(plan(model, {{0, 200}, {1, 200}}), "{'': 0}");
}

TEST(DeviceMap, H119_modules_are_split_unless_they_must_stay_whole) {
  const auto model = three();
  EXPECT_EQ(plan(*model, {{0, 500}, {1, 500}}), "{'0': 0, '1.batchnorm': 0, '1.linear1': 0, '1.linear2': 1, '2': 1}");
  EXPECT_EQ(plan(*model, {{0, 500}, {1, 500}}, {"ModelForTest"}), "{'0': 0, '1': 1, '2': 1}");
}

TEST(DeviceMap, H120_tied_weights_are_on_one_device) {
  Sequential model;
  std::vector<std::shared_ptr<ModelForTest>> layers;
  for (const char* name : {"layer1", "layer2", "layer3"}) {
    layers.push_back(std::make_shared<ModelForTest>());
    model.register_module(name, layers.back());
  }
  layers[2]->linear2->weight = *layers[0]->linear2->weight;
  EXPECT_EQ(plan(model, {{0, 400}, {1, 500}}),
            "{'layer1': 0, 'layer2': 1, 'layer3.batchnorm': 1, 'layer3.linear1': 1, 'layer3.linear2': 0}");
}

TEST(DeviceMap, H121_maps_are_cleaned_at_every_level) {
  EXPECT_EQ(device_map_text(clean_device_map({{"a", 0}, {"b", 0}, {"c", 0}})), "{'': 0}");
  EXPECT_EQ(device_map_text(sorted(clean_device_map({{"a.x", 0}, {"a.y", 0}, {"b.x", 1}, {"b.y", 1}, {"c", 1}}))),
            "{'a': 0, 'b': 1, 'c': 1}");
  EXPECT_EQ(device_map_text(sorted(clean_device_map({{"b.x.0", 0}, {"b.x.1", 0}, {"b.y", 0}, {"c", "cpu"}}))),
            "{'b': 0, 'c': 'cpu'}");
}

TEST(DeviceMap, H123_limits_in_order) {
  const MaxMemory limits = max_memory({{"disk", "1GB"}, {"cpu", "2KiB"}, {1, "500"}, {"cuda:0", "1MB"}});
  std::string text;
  for (const auto& [device, bytes] : limits) text += device.str() + " " + std::to_string(static_cast<int64_t>(bytes)) + "; ";
  EXPECT_EQ(text, "0 1000000; 1 500; cpu 2048; disk 1000000000; ");
  EXPECT_EQ(error_of([] {
              max_memory({{"tpu", "1GB"}});
            }),
            "max_memory: device tpu is not recognized, available devices are integers (for accelerators), 'mps', 'cpu' and "
            "'disk'");
  ModelForTest model;
  EXPECT_EQ(plan(model, {{"cpu", 200}}), "{'batchnorm': 'disk', 'linear1': 'cpu', 'linear2': 'disk'}");
}

TEST(DeviceMap, H124_every_tensor_needs_a_device) {
  ModelForTest model;
  check_device_map(model, {{"", 0}});
  EXPECT_EQ(error_of([&] {
              check_device_map(model, {{"linear1", 0}, {"linear2", 1}});
            }),
            "The device map does not give any device for the following parameters: batchnorm.weight, batchnorm.bias, "
            "batchnorm.running_mean, "
            "batchnorm.running_var, batchnorm.num_batches_tracked");
}

TEST(DeviceMap, H126_tied_parameters_apart_are_a_warning) {
  std::vector<std::string> warnings;
  reset_warnings();
  const WarningSink before = set_warning_sink([&](std::string_view text) { warnings.emplace_back(text); });
  check_tied_parameters_on_same_device({{"linear1.weight", "linear2.weight"}}, {{"linear1", 0}, {"linear2", 1}});
  check_tied_parameters_on_same_device({{"linear1.weight", "linear2.weight"}}, {{"", 0}});
  set_warning_sink(before);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("{'linear1.weight': 0, 'linear2.weight': 1}"), std::string::npos);
  EXPECT_EQ(error_of([] {
              check_tied_parameters_on_same_device({{"a.b"}}, {{"c", 0}});
            }),
            "The device map does not contain the module a.b.");
}

TEST(DeviceMap, H112_what_a_device_map_may_be) {
  const auto model = tiny_llama();
  EXPECT_EQ(device_map_text(resolve_device_map(*model, "cpu")), "{'': 'cpu'}");
  EXPECT_EQ(device_map_text(resolve_device_map(*model, "0")), "{'': 0}");
  EXPECT_EQ(device_map_text(resolve_device_map(*model, "cuda:1")), "{'': 1}");
  for (const char* mode : {"auto", "balanced", "balanced_low_0", "sequential"})
    EXPECT_EQ(device_map_text(resolve_device_map(*model, mode, {{"cpu", 1e9}})), "{'': 'cpu'}") << mode;
  EXPECT_EQ(error_of([&] { resolve_device_map(*model, "-1"); }),
            "device map: a device number cannot be negative, found -1; to run on the cpu ask for 'cpu'");
  EXPECT_EQ(error_of([&] { resolve_device_map(*model, "best"); }),
            "device map: 'best' is neither a device nor one of 'auto', 'balanced', 'balanced_low_0', 'sequential'");
}

struct Unsplit : PretrainedModel {
  Unsplit() : PretrainedModel(Config{}) {}
  ModelOutput forward(const ModelInputs&) override { return {}; }
  std::span<const ModelArgument> arguments() const override { return {}; }
  std::string type_name() const override { return "tests.Unsplit"; }
};

TEST(DeviceMap, H114_a_class_must_say_what_stays_whole) {
  Unsplit model;
  EXPECT_EQ(error_of([&] { resolve_device_map(model, "auto"); }),
            "Unsplit does not support device map 'auto': it does not say which modules must stay whole (no_split_modules)");
}

TEST(DeviceMap, H127_auto_uses_the_first_devices) {
  const auto model = tiny_llama();
  const double size = compute_module_sizes(*model).of("");
  for (const double part : {0.7, 0.9}) {
    const DeviceMap map = resolve_device_map(*model, "auto", {{0, part * size}, {1, 2 * size}, {"cpu", 2 * size}});
    std::set<std::string> devices;
    for (const auto& [name, device] : map) devices.insert(device.str());
    EXPECT_EQ(devices, (std::set<std::string>{"0", "1"})) << device_map_text(map);
    check_device_map(*model, map);
  }
  EXPECT_NE(describe_device_map(*model, {{"model", 0}, {"lm_head", "cpu"}}).find("lm_head    cpu             2560 bytes\n"),
            std::string::npos)
      << describe_device_map(*model, {{"model", 0}, {"lm_head", "cpu"}});
}

TEST(DeviceMap, H136_buffers_that_fit_nowhere_are_a_warning) {
  Sequential model;
  model.register_module("linear1", std::make_shared<LinearWithNonPersistentBuffers>());
  model.register_module("linear2", std::make_shared<LinearWithNonPersistentBuffers>());
  std::vector<std::string> warnings;
  reset_warnings();
  const WarningSink before = set_warning_sink([&](std::string_view text) { warnings.emplace_back(text); });
  const MaxMemory limits = {{0, 500}, {"cpu", 10000}};
  const DeviceMap with = infer_auto_device_map(model, {.max_memory = limits});
  EXPECT_EQ(warnings.size(), 1U);
  const DeviceMap without = infer_auto_device_map(model, {.max_memory = limits, .offload_buffers = true});
  EXPECT_EQ(warnings.size(), 1U);
  set_warning_sink(before);
  EXPECT_EQ(device_map_text(with), device_map_text(without));
}

}  // namespace
}  // namespace calque::device_map_test
