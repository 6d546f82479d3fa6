// .npy files: what numpy wrote is read as it is, and what Calque writes is numpy's own file, byte by byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "calque/file/npy.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/zeros.h"
#include "support/error_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::npy_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path npy_golden = fs::path(test::source_folder()) / "tests/file/golden/npy";

std::string npy_text(const std::string& name) { return test::read_file(npy_golden / (name + ".npy")); }

Tensor read_text(const std::string& text) {
  return read_npy({reinterpret_cast<const std::byte*>(text.data()), text.size()}, "x.npy");
}

std::string text_of(const Tensor& tensor) {
  const std::vector<std::byte> bytes = serialize_npy(tensor);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

double number_at(const Tensor& flat, int64_t i) {
  const Tensor one = flat.select(0, i);
  if (flat.dtype() == DType::bool_) return one.item_as<bool>() ? 1 : 0;
  if (is_integral(flat.dtype())) return static_cast<double>(one.item_as<int64_t>());
  return one.item_as<double>();
}

TEST(Npy, what_numpy_wrote_is_read) {
  const auto values = nlohmann::json::parse(std::ifstream(npy_golden / "values.json"));
  ASSERT_GT(values.size(), 15U);
  for (const auto& [name, said] : values.items()) {
    SCOPED_TRACE(name);
    const Tensor tensor = load_npy((npy_golden / (name + ".npy")).string());
    EXPECT_EQ(std::string(calque::name(tensor.dtype())), said["dtype"].get<std::string>());
    EXPECT_EQ(std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end()), said["sizes"].get<std::vector<int64_t>>());
    ASSERT_EQ(static_cast<size_t>(tensor.numel()), said["values"].size());
    const Tensor numbers = is_complex(tensor.dtype()) ? view_as_real(tensor).reshape({-1}) : tensor.reshape({-1});
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      const auto& one = is_complex(tensor.dtype()) ? said["values"][static_cast<size_t>(i / 2)][static_cast<size_t>(i % 2)]
                                                   : said["values"][static_cast<size_t>(i)];
      EXPECT_EQ(number_at(numbers, i), one.is_boolean() ? double(one.get<bool>()) : one.get<double>());
    }
  }
}

TEST(Npy, what_is_written_is_numpys_file) {
  for (const char* name : {"b1", "u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "scalar",
                           "empty", "one_dimension"})
    EXPECT_EQ(text_of(read_text(npy_text(name))), npy_text(name)) << name;
}

TEST(Npy, strided_tensors_are_written_row_by_row) {
  const Tensor x = arange(24).view({2, 3, 4}).to(DType::float32);
  EXPECT_TRUE(equal(read_text(text_of(x.permute({2, 0, 1}))), x.permute({2, 0, 1})));
  EXPECT_TRUE(equal(read_text(text_of(x.slice(2, 1, 4, 2))), x.slice(2, 1, 4, 2)));
}

TEST(Npy, bfloat16_is_written_as_float32) {
  const Tensor x = tensor_of<float>({1.5F, -2.25F}, {2});
  EXPECT_EQ(text_of(x.to(DType::bfloat16)), text_of(x));
  EXPECT_THAT(test::error_of([] { serialize_npy(zeros({2}, DType::float8_e5m2)); }),
              HasSubstr(".npy has no dtype for float8_e5m2"));
}

TEST(Npy, files_are_written_whole) {
  const test::TemporaryFolder folder;
  const Tensor x = arange(6).view({2, 3});
  save_npy(folder.path("x.npy"), x);
  EXPECT_TRUE(equal(load_npy(folder.path("x.npy")), x));
  EXPECT_EQ(folder.names(), std::set<std::string>{"x.npy"});
}

TEST(Npy, objects_texts_and_structures_are_refused) {
  const auto reason = [](const std::string& text) { return test::error_of([&] { read_text(text); }, ErrorKind::bad_file); };
  EXPECT_THAT(reason(npy_text("objects")), HasSubstr("x.npy: not a .npy file that can be read: it holds Python objects"));
  EXPECT_THAT(reason(npy_text("structure")), HasSubstr("it holds structures"));
  EXPECT_THAT(reason(npy_text("text")), HasSubstr("its dtype is '<U3'; expected numbers or booleans"));
}

TEST(Npy, wrong_files_say_what_is_wrong) {
  const auto reason = [](const std::string& text) { return test::error_of([&] { read_text(text); }, ErrorKind::bad_file); };
  const std::string good = npy_text("f4");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_THAT(reason("not one"), HasSubstr("it does not begin as one"));
  EXPECT_THAT(reason(good.substr(0, 40)), HasSubstr("it ends in its header"));
  EXPECT_THAT(reason(good.substr(0, good.size() - 1)),
              HasSubstr("24 bytes of elements were expected after its header, found 23"));
  EXPECT_THAT(reason(good + "x"), HasSubstr("found 25"));
  EXPECT_THAT(reason(changed("(2, 3)", "(2,-3)")), HasSubstr("no size"));
  EXPECT_THAT(reason(changed("'shape': (2, 3), }                    ", "'shape': (4294967295, 4294967295, 9), }")),
              HasSubstr("more than there can be"));
  EXPECT_THAT(reason(changed("fortran_order", "fortran_other")), HasSubstr("the key 'fortran_other'"));
  EXPECT_THAT(reason(changed("'shape': (2, 3), ", "                 ")),
              HasSubstr("lacks one of descr, fortran_order and shape"));
  std::string version = good;
  version[6] = 9;
  EXPECT_THAT(reason(version), HasSubstr("its version is 9"));
}

}  // namespace
}  // namespace calque::npy_test
