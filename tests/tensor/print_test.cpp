// Tensor::str against the text that PyTorch printed (golden/print.jsonl, written by tools/golden/print.py).
#include "calque/tensor/print.h"
#include "support/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace calque::print_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

std::vector<int64_t> ints(const Json& j) { return j.get<std::vector<int64_t>>(); }

Ref<Storage> storage_from(const Json& c, DType dtype) {
  const auto count = c["numel"].get<size_t>();
  Ref<Storage> storage = Storage::allocate(count * item_size(dtype));
  const auto text = c["data"].get<std::string>();
  if (text == "arange") {
    dispatch(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (size_t i = 0; i < count; ++i) static_cast<T*>(storage->data())[i] = Scalar(i).to<T>();
    });
    return storage;
  }
  for (size_t i = 0; i < text.size(); i += 2)
    static_cast<uint8_t*>(storage->data())[i / 2] = static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16));
  return storage;
}

TensorBase tensor_from(const Json& c) {
  const DType dtype = dtype_from_name(c["dtype"].get<std::string>()).value();
  const std::vector<int64_t> sizes = ints(c["sizes"]);
  const std::vector<int64_t> strides = ints(c["strides"]);
  TensorBase t;
  if (c.contains("kind")) {
    const bool fake = c["kind"] == "fake";
    const Device device(fake ? c["device"].get<std::string>() : c["kind"].get<std::string>());
    t = make_tensor(Meta{SymInts(sizes.begin(), sizes.end()), SymInts(strides.begin(), strides.end()), dtype, device}, fake);
  } else {
    t = from_storage(storage_from(c, dtype), dtype, sizes, strides, c["offset"].get<int64_t>());
  }
  if (c.value("requires_grad", false)) t.set_requires_grad();
  return t;
}

PrintOptions options_from(const Json& c) {
  PrintOptions out;
  if (!c.contains("options")) return out;
  const Json& o = c["options"];
  out.precision = o.value("precision", out.precision);
  out.threshold = o.value("threshold", out.threshold);
  out.edgeitems = o.value("edgeitems", out.edgeitems);
  out.linewidth = o.value("linewidth", out.linewidth);
  if (o.contains("sci_mode") && !o["sci_mode"].is_null()) out.sci_mode = o["sci_mode"].get<bool>();
  return out;
}

class DefaultDType {
 public:
  explicit DefaultDType(DType d) : before_(default_dtype()) { set_default_dtype(d); }
  ~DefaultDType() { set_default_dtype(before_); }

 private:
  DType before_;
};

TEST(Print, every_golden_case_is_pytorchs_text) {
  std::ifstream in(test::source_folder() + "/tests/tensor/golden/print.jsonl");
  ASSERT_TRUE(in);
  std::string line;
  int cases = 0;
  while (std::getline(in, line)) {
    const Json c = Json::parse(line);
    ++cases;
    const DefaultDType scope(c.contains("default") ? dtype_from_name(c["default"].get<std::string>()).value()
                                                   : DType::float32);
    const PrintOptionsScope options(options_from(c));
    EXPECT_EQ(tensor_from(c).str(), c["text"].get<std::string>()) << "case " << cases;
  }
  EXPECT_GE(cases, 900);
}

TEST(Print, an_undefined_tensor_is_none) { EXPECT_EQ(TensorBase().str(), "None"); }

TEST(Print, misaligned_data_of_a_borrowed_storage_is_read) {
  auto bytes = std::make_shared<std::vector<unsigned char>>(9);
  const float values[] = {1.5F, -2.0F};
  std::memcpy(bytes->data() + 1, values, sizeof values);
  const TensorBase t = from_storage(Storage::borrow(bytes->data() + 1, 8, bytes, true), DType::float32, {2}, {1}, 0);
  EXPECT_EQ(t.str(), "tensor([ 1.5000, -2.0000])");
}

TEST(Print, options_apply_within_their_scope_only) {
  const TensorBase t = make_tensor({1}, DType::float64);
  *t.mutable_data_as<double>() = 1.23456;
  {
    const PrintOptionsScope scope(PrintOptions::short_profile());
    EXPECT_EQ(t.str(), "tensor([1.23], dtype=torch.float64)");
  }
  EXPECT_EQ(t.str(), "tensor([1.2346], dtype=torch.float64)");
  EXPECT_EQ(get_printoptions(), PrintOptions{});
}

TEST(Print, negative_options_are_refused) {
  try {
    set_printoptions({.precision = -1, .sci_mode = {}});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "print options: precision must be from 0 to 1000, found -1");
  }
  try {
    set_printoptions({.linewidth = -80, .sci_mode = {}});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "print options: linewidth must be 0 or more, found -80");
  }
}

}  // namespace
}  // namespace calque::print_test
