// The safetensors reader and writer, against files made by hand and against the `safetensors` library's own
// (golden/safetensors.jsonl, written by tools/golden/safetensors_golden.py).
#include "calque/file/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "calque/file/file_writer.h"
#include "file/file_support.h"
#include "support/error_support.h"

namespace calque::safetensors_test {
namespace {

using file_test::file_of;
using file_test::from_hex;
using file_test::read_lines;
using file_test::tensor_from;
using test::TemporaryFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Range = SafetensorsFile::Range;
using Index = SafetensorsFile::Index;

SafetensorsFile parse(const std::string& content) {
  auto owner = std::make_shared<std::string>(content);
  const auto bytes = std::as_bytes(std::span(owner->data(), owner->size()));
  return SafetensorsFile::from_bytes(bytes, owner, "x.safetensors");
}

using test::error_of;

std::string refused(const std::string& content) {
  return error_of([&] { parse(content); }, ErrorKind::bad_file);
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

template <class T>
std::vector<T> values(const Tensor& t) {  // row-major, of any strides
  std::vector<T> out;
  std::vector<int64_t> index(static_cast<size_t>(t.dim()), 0);
  for (int64_t n = t.numel(); n > 0; --n) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * t.strides()[d];
    out.push_back(t.data_as<T>()[at]);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < t.sizes()[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

std::vector<int64_t> sizes(const Tensor& t) { return {t.sizes().begin(), t.sizes().end()}; }

Tensor counting(std::vector<int64_t> sizes) {
  Tensor t = make_tensor(sizes, DType::float32);
  for (int64_t i = 0; i < t.numel(); ++i) t.mutable_data_as<float>()[i] = static_cast<float>(i);
  return t;
}

TEST(Safetensors, H261_layout_is_length_header_data) {
  std::string data(16, '\0');
  data[4] = 7;
  const SafetensorsFile f = parse(file_of("{" + entry("test", "I32", "[2,2]", "[0,16]") + "}", data));
  ASSERT_EQ(f.entries().size(), 1U);
  EXPECT_EQ(f.entries()[0].name, "test");
  EXPECT_EQ(f.entries()[0].begin, 0U);  // counted from the start of the data
  EXPECT_EQ(f.entries()[0].end, 16U);
  const Tensor t = f.tensor("test");
  EXPECT_EQ(t.dtype(), DType::int32);
  EXPECT_EQ(sizes(t), (std::vector<int64_t>{2, 2}));
  EXPECT_THAT(values<int32_t>(t), ElementsAre(0, 7, 0, 0));
}

TEST(Safetensors, H261_tensors_are_read_only_views_that_keep_the_file_alive) {
  TemporaryFolder folder;
  save_safetensors(folder.path("x.safetensors"), {{"a", counting({2, 3})}, {"b", counting({4})}});
  Tensor a, b;
  {
    const SafetensorsFile f = SafetensorsFile::open(folder.path("x.safetensors"));
    a = f.tensor("a");
    b = f.tensor("b");
    EXPECT_EQ(a.data(), f.bytes(f.entry("a")).data());
    EXPECT_TRUE(a.storage()->is_borrowed());
  }
  std::filesystem::remove(folder.path("x.safetensors"));
  EXPECT_THAT(values<float>(a), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values<float>(b), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(error_of([&] { a.mutable_data(); }), HasSubstr("read-only"));
}

TEST(Safetensors, H262_a_file_shorter_than_eight_bytes_is_refused) {
  EXPECT_THAT(refused(""), AllOf(HasSubstr("x.safetensors"), HasSubstr("expected a safetensors file, found an empty file")));
  EXPECT_THAT(refused("\1\2\3\4\5\6\7"),
              AllOf(HasSubstr("x.safetensors"), HasSubstr("at least 8 bytes"), HasSubstr("found 7")));
}

TEST(Safetensors, H262_a_header_above_the_limit_is_refused) {
  EXPECT_THAT(refused(file_of("{}", "", 100'000'001)), AllOf(HasSubstr("100000001"), HasSubstr("100000000")));
  EXPECT_THAT(refused(file_of("{}", "", ~uint64_t{0})), HasSubstr("18446744073709551615"));
  EXPECT_THAT(refused(file_of("{}", "", 100'000'000)), HasSubstr("only 2 follow"));  // the limit itself is legal
}

TEST(Safetensors, H262_a_header_beyond_the_file_is_refused) {
  EXPECT_THAT(refused(file_of("", "", 60)), AllOf(HasSubstr("header of 60 bytes"), HasSubstr("only 0 follow")));
}

TEST(Safetensors, H264_data_must_end_where_the_last_tensor_ends) {
  const std::string header = "{" + entry("test", "I32", "[2,2]", "[0,16]") + "}";
  EXPECT_THAT(refused(file_of(header, std::string(15, '\0'))),
              AllOf(HasSubstr("tensor 'test'"), HasSubstr("[0, 16]"), HasSubstr("15 bytes"), HasSubstr("cut off")));
  EXPECT_THAT(refused(file_of(header, std::string(17, '\0'))),
              AllOf(HasSubstr("17 bytes"), HasSubstr("1 bytes belong to no tensor")));
  EXPECT_NO_THROW(parse(file_of(header, std::string(16, '\0'))));
  EXPECT_THAT(refused(file_of("{}", "x")), HasSubstr("belong to no tensor"));
}

TEST(Safetensors, H264_holes_and_overlaps_are_refused) {
  const auto two = [](const std::string& second, size_t data) {
    return file_of("{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("b", "U8", "[4]", second) + "}",
                   std::string(data, '\0'));
  };
  EXPECT_THAT(refused(two("[5,9]", 9)),
              AllOf(HasSubstr("'b'"), HasSubstr("hole"), HasSubstr("start at 4"), HasSubstr("'a'")));
  EXPECT_THAT(refused(two("[3,7]", 8)), AllOf(HasSubstr("'b'"), HasSubstr("overlap"), HasSubstr("'a'")));
  EXPECT_THAT(refused(two("[3,7]", 7)), HasSubstr("overlap"));
  EXPECT_THAT(refused(file_of("{" + entry("a", "U8", "[4]", "[2,6]") + "}", "123456")),
              AllOf(HasSubstr("hole"), HasSubstr("the header ends")));
}

TEST(Safetensors, H266_offsets_must_span_what_the_shape_takes) {
  EXPECT_THAT(refused(file_of("{" + entry("test", "I32", "[2,2]", "[0,4]") + "}", "1234")),
              AllOf(HasSubstr("tensor 'test'"), HasSubstr("I32 of shape [2, 2] takes 16 bytes"), HasSubstr("span 4")));
  EXPECT_THAT(refused(file_of("{" + entry("test", "I32", "[1]", "[4,0]") + "}", "1234")),
              HasSubstr("end before they start"));
}

TEST(Safetensors, H267_sizes_that_overflow_are_refused) {
  for (const char* shape :
       {"[2,18446744073709551614]", "[2,9223372036854775807]", "[4294967296,4294967296]", "[4611686018427387904,8,0]"})
    EXPECT_THAT(refused(file_of("{" + entry("test", "I32", shape, "[0,16]") + "}", std::string(16, '\0'))),
                HasSubstr("overflows"))
        << shape;
}

TEST(Safetensors, H268_empty_tensors_and_scalars) {
  const SafetensorsFile f =
      parse(file_of("{" + entry("a", "I32", "[2,0]", "[0,0]") + "," + entry("s", "I32", "[]", "[0,4]") + "," +
                        entry("b", "F64", "[0]", "[4,4]") + "," + entry("c", "F32", "[0,5]", "[4,4]") + "}",
                    std::string("\x2a\0\0\0", 4)));
  EXPECT_EQ(sizes(f.tensor("a")), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(f.tensor("s").dim(), 0);
  EXPECT_THAT(values<int32_t>(f.tensor("s")), ElementsAre(42));
  EXPECT_EQ(f.tensor("b").numel(), 0);
  EXPECT_EQ(sizes(f.tensor("c")), (std::vector<int64_t>{0, 5}));
  EXPECT_THAT(refused(file_of("{" + entry("s", "I32", "[]", "[0,0]") + "}")), HasSubstr("takes 4 bytes"));
}

TEST(Safetensors, H270_metadata_is_strings_only) {
  EXPECT_THAT(refused(file_of(R"({"__metadata__":{"a":1}})")),
              AllOf(HasSubstr("__metadata__"), HasSubstr("'a'"), HasSubstr("the number 1")));
  for (const char* value : {"null", "true", "-1", "1.5", "{}", "[\"x\"]"})
    EXPECT_THAT(refused(file_of(std::string(R"({"__metadata__":{"a":)") + value + "}}")), HasSubstr("expected a string"))
        << value;
  EXPECT_THAT(refused(file_of(R"({"__metadata__":"a"})")), HasSubstr("object of strings"));
  EXPECT_FALSE(parse(file_of(R"({"__metadata__":null})")).metadata().has_value());
}

TEST(Safetensors, H270_names_are_unique) {
  const std::string a = entry("a", "U8", "[1]", "[0,1]"), none = entry("a", "U8", "[0]", "[1,1]");
  EXPECT_THAT(refused(file_of("{" + a + "," + a + "}", "x")), AllOf(HasSubstr("'a'"), HasSubstr("twice")));
  EXPECT_THAT(refused(file_of("{" + a + "," + none + "}", "x")), HasSubstr("twice"));
  EXPECT_THAT(refused(file_of(R"({"__metadata__":{"k":"1","k":"2"}})")), HasSubstr("'k' twice"));
}

TEST(Safetensors, H270_values_are_not_looked_at) {
  const std::string nan("\0\0\xc0\x7f\0\0\x80\xff", 8);
  const Tensor t = parse(file_of("{" + entry("a", "F32", "[2]", "[0,8]") + "}", nan)).tensor("a");
  EXPECT_TRUE(std::isnan(values<float>(t)[0]));
  EXPECT_TRUE(std::isinf(values<float>(t)[1]));
}

TEST(Safetensors, H272_the_bytes_of_a_small_file) {
  Tensor t = make_tensor({2, 2}, DType::int32);
  std::memset(t.mutable_data(), 0, 16);
  const auto bytes = serialize_safetensors({{"test", t}});
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(text, file_of(R"({"test":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}}    )", std::string(16, '\0')));
  EXPECT_EQ(text[0], 64);
}

TEST(Safetensors, H273_the_bytes_are_those_of_the_library) {
  int count = 0;
  for (const auto& line : read_lines("safetensors.jsonl")) {
    if (line["kind"] != "save") continue;
    ++count;
    NamedTensors tensors;
    for (const auto& t : line["tensors"]) tensors.emplace_back(t["name"].get<std::string>(), tensor_from(t));
    std::optional<SafetensorsMetadata> metadata;
    if (!line["metadata"].is_null()) metadata = line["metadata"].get<SafetensorsMetadata>();
    EXPECT_EQ(serialize_safetensors(tensors, metadata), from_hex(line["file"].get<std::string>()))
        << line["tensors"].dump().substr(0, 300);
    TemporaryFolder folder;
    save_safetensors(folder.path("x"), tensors, metadata);
    const auto expected = from_hex(line["file"].get<std::string>());
    EXPECT_EQ(test::read_file(folder.path("x")),
              std::string(reinterpret_cast<const char*>(expected.data()), expected.size()));
  }
  EXPECT_GE(count, 35);
}

TEST(Safetensors, H273_every_dtype_round_trips_in_rank_order) {
  NamedTensors tensors;
  for (const DType dtype : all_dtypes) {
    if (dtype == DType::complex128) continue;
    Tensor t = make_tensor({3, 2}, dtype);
    auto* bytes = static_cast<uint8_t*>(t.mutable_data());
    for (size_t i = 0; i < t.nbytes(); ++i) bytes[i] = static_cast<uint8_t>(dtype == DType::bool_ ? i % 2 : i * 37 + 11);
    tensors.emplace_back(std::string(name(dtype)), t);
  }
  TemporaryFolder folder;
  save_safetensors(folder.path("x"), tensors);
  const SafetensorsFile f = SafetensorsFile::open(folder.path("x"));
  std::vector<std::string_view> order;
  for (const auto& e : f.entries()) order.push_back(e.dtype_name);
  EXPECT_THAT(order, ElementsAre("U64", "I64", "F64", "C64", "F32", "U32", "I32", "BF16", "F16", "U16", "I16", "F8_E5M2FNUZ",
                                 "F8_E4M3FNUZ", "F8_E8M0", "F8_E4M3", "F8_E5M2", "I8", "U8", "BOOL"));
  for (const auto& [name, t] : tensors) {
    const Tensor back = f.tensor(name);
    EXPECT_EQ(back.dtype(), t.dtype());
    EXPECT_EQ(sizes(back), sizes(t));
    EXPECT_EQ(std::memcmp(back.data(), t.data(), t.nbytes()), 0) << name;
    EXPECT_TRUE(back.storage()->is_borrowed()) << name;
  }
}

TEST(Safetensors, H275_metadata_is_none_or_the_exact_map) {
  TemporaryFolder folder;
  save_safetensors(folder.path("none"), {{"a", counting({1})}});
  EXPECT_FALSE(SafetensorsFile::open(folder.path("none")).metadata().has_value());
  save_safetensors(folder.path("empty"), {{"a", counting({1})}}, SafetensorsMetadata{});
  EXPECT_EQ(SafetensorsFile::open(folder.path("empty")).metadata(), SafetensorsMetadata{});
  const SafetensorsMetadata map{{"framework", "pt"}, {"é\n\"", "𝄞\\"}, {"", ""}};
  save_safetensors(folder.path("map"), {{"a", counting({1})}}, map);
  EXPECT_EQ(SafetensorsFile::open(folder.path("map")).metadata(), map);
}

TEST(Safetensors, H275_unknown_names_and_missing_files_are_named) {
  const SafetensorsFile f = parse(file_of("{" + entry("a", "U8", "[1]", "[0,1]") + "}", "x"));
  EXPECT_THAT(error_of([&] { f.tensor("no.such"); }),
              AllOf(HasSubstr("x.safetensors"), HasSubstr("'no.such'"), HasSubstr("'a'")));
  EXPECT_EQ(f.find("no.such"), nullptr);
  EXPECT_THAT(f.names(), ElementsAre("a"));
  EXPECT_THAT(error_of([] { SafetensorsFile::open("/no/such/model.safetensors"); }, ErrorKind::bad_file),
              AllOf(HasSubstr("/no/such/model.safetensors"), HasSubstr("No such file")));
  EXPECT_THAT(error_of([] { SafetensorsFile::open("/"); }, ErrorKind::bad_file), HasSubstr("not a regular file"));
}

TEST(Safetensors, H276_slices_are_views_of_the_part) {
  TemporaryFolder folder;
  save_safetensors(folder.path("x"), {{"x", counting({5, 4})}, {"s", counting({})}});
  const SafetensorsFile f = SafetensorsFile::open(folder.path("x"));
  const Tensor whole = f.tensor("x");
  const auto check = [&](std::vector<Index> indices, std::vector<int64_t> shape, std::vector<float> expected) {
    const Tensor part = f.slice("x", indices);
    EXPECT_EQ(sizes(part), shape);
    EXPECT_EQ(values<float>(part), expected);
    const auto* first = static_cast<const float*>(whole.data());
    EXPECT_TRUE(part.data() >= first && part.data() <= first + 20);
    EXPECT_TRUE(part.storage()->is_read_only());
  };
  check({Range{{}, 2}}, {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  check({Range{}, Range{{}, 2}}, {5, 2}, {0, 1, 4, 5, 8, 9, 12, 13, 16, 17});
  check({0, Range{{}, 2}}, {2}, {0, 1});
  check({Range{2, {}}, -1}, {3}, {11, 15, 19});
  check({}, {5, 4}, values<float>(whole));
  check({-5}, {4}, {0, 1, 2, 3});
  check({4, 3}, {}, {19});
  check({Range{-2, {}}, Range{-20, 1}}, {2, 1}, {12, 16});
  check({Range{3, 99}, 0}, {2}, {12, 16});
  check({Range{3, 2}}, {0, 4}, {});
  check({Range{20, {}}}, {0, 4}, {});
  check({Range{0, 5, 2}, Range{1, {}, 2}}, {3, 2}, {1, 3, 9, 11, 17, 19});
  EXPECT_EQ(f.slice("s", {}).dim(), 0);
}

TEST(Safetensors, H276_indices_out_of_range_are_refused) {
  TemporaryFolder folder;
  save_safetensors(folder.path("x"), {{"x", counting({5, 4})}, {"s", counting({})}});
  const SafetensorsFile f = SafetensorsFile::open(folder.path("x"));
  EXPECT_THAT(error_of([&] { f.slice("x", {int64_t{-6}}); }),
              AllOf(HasSubstr("'x'"), HasSubstr("index -6"), HasSubstr("dimension 0 of size 5"), HasSubstr("-5 to 4")));
  EXPECT_THAT(error_of([&] { f.slice("x", {int64_t{20}}); }), HasSubstr("index 20"));
  EXPECT_THAT(error_of([&] { f.slice("x", {Range{}, int64_t{4}}); }), HasSubstr("dimension 1 of size 4"));
  EXPECT_THAT(error_of([&] { f.slice("x", {Range{}, Range{}, Range{}}); }), HasSubstr("at most 2 indices, found 3"));
  EXPECT_THAT(error_of([&] { f.slice("x", {Range{0, 1, 0}}); }), HasSubstr("step of at least 1"));
  EXPECT_THAT(error_of([&] { f.slice("s", {Range{}}); }), HasSubstr("at most 0 indices"));
}

TEST(Safetensors, H277_a_wrong_header_length_fails_cleanly) {
  EXPECT_THAT(refused(file_of("{" + entry("a", "U8", "[1]", "[0,1]") + "}", "x", 1000)), HasSubstr("header of 1000 bytes"));
}

int64_t peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Safetensors, H277_overlapping_entries_stop_at_the_first_one_too_many) {
  std::string header = "{";
  const size_t count = 1'000'000;
  header.reserve(count * 64);
  for (size_t i = 0; i < count; ++i) {
    header += '"';
    header += std::to_string(i);
    header += R"(":{"dtype":"F32","shape":[500,500],"data_offsets":[0,1000000]},)";
  }
  header.back() = '}';
  const std::string content = file_of(header, std::string(1'000'000, '\0'));
  const auto bytes = std::as_bytes(std::span(content.data(), content.size()));
  const int64_t before = peak_kilobytes();
  EXPECT_THAT(error_of([&] { SafetensorsFile::from_bytes(bytes, std::make_shared<int>(), "x"); }),
              AllOf(HasSubstr("'1'"), HasSubstr("overlap")));
  EXPECT_LT(peak_kilobytes() - before, 16 * 1024);
}

TEST(Safetensors, H277_hostile_nesting_and_shapes_stay_cheap) {
  EXPECT_THAT(refused(file_of(std::string(1'000'000, '{'))), HasSubstr("not JSON"));
  EXPECT_THAT(refused(file_of("{\"a\":{\"x\":" + std::string(1'000'000, '['))), HasSubstr("not JSON"));
  std::string ones = "[1";
  for (int i = 0; i < 100'000; ++i) ones += ",1";
  EXPECT_THAT(refused(file_of("{" + entry("a", "U8", ones + "]", "[0,1]") + "}", "x")),
              HasSubstr("more than 64 dimensions"));
  const std::string message = refused(file_of("{\"" + std::string(1'000'000, 'n') + "\":1}"));
  EXPECT_LT(message.size(), 1000U);
  EXPECT_LT(refused(file_of("{\"a" + std::string(1'000'000, '\xff'))).size(), 1000U);
}

TEST(Safetensors, opens_what_the_library_opens) {
  int count = 0;
  for (const auto& line : read_lines("safetensors.jsonl")) {
    if (line["kind"] != "open") continue;
    ++count;
    const auto bytes = from_hex(line["file"].get<std::string>());
    const std::string content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const bool expected = line["ok"].get<bool>() && !line.contains("strict");
    try {
      const SafetensorsFile f = parse(content);
      EXPECT_TRUE(expected) << content.substr(8);
      if (expected) {
        EXPECT_EQ(nlohmann::json(f.names()), line["names"]);
      }
    } catch (const UserError& e) {
      EXPECT_FALSE(expected) << content.substr(8) << "\n" << e.what();
      EXPECT_EQ(e.kind(), ErrorKind::bad_file);
      EXPECT_THAT(e.what(), testing::ContainsRegex(
                                "x.safetensors: (not a valid safetensors file: |expected a safetensors file, found )"));
    }
  }
  EXPECT_GE(count, 150);
}

TEST(Safetensors, what_is_wrong_is_named) {
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return refused(file_of("{" + entry("w", dtype, shape, offsets) + "}", "1234"));
  };
  EXPECT_THAT(one("F99", "[1]", "[0,4]"), AllOf(HasSubstr("tensor 'w'"), HasSubstr("BOOL, F4"), HasSubstr("found 'F99'")));
  EXPECT_THAT(one("F32", "[-1]", "[0,4]"), HasSubstr("negative number -1"));
  EXPECT_THAT(one("F32", "[1.5]", "[0,4]"), HasSubstr("the number 1.5"));
  EXPECT_THAT(one("F32", "{}", "[0,4]"), HasSubstr("expected a list as shape, found an object"));
  EXPECT_THAT(one("F32", "[1]", "[0]"), HasSubstr("two data_offsets, found 1"));
  EXPECT_THAT(one("F4", "[7]", "[0,4]"), HasSubstr("28 bits"));
  EXPECT_THAT(refused(file_of("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}")), HasSubstr("it has no data_offsets"));
  EXPECT_THAT(refused(file_of("{\"w\":3}")),
              HasSubstr("expected an object with dtype, shape and data_offsets, found the number 3"));
  EXPECT_THAT(refused(file_of("PK")), HasSubstr("found byte 0x50"));
  EXPECT_THAT(refused(file_of("{\"a\n\":")), Not(HasSubstr("\n")));
}

TEST(Safetensors, packed_dtypes_are_listed_but_no_tensors) {
  const SafetensorsFile f = parse(file_of("{" + entry("p", "F4", "[8]", "[0,4]") + "}", "1234"));
  EXPECT_EQ(f.entry("p").numel(), 8);
  EXPECT_EQ(f.bytes(f.entry("p")).size(), 4U);
  EXPECT_THAT(error_of([&] { f.tensor("p"); }), AllOf(HasSubstr("'p'"), HasSubstr("F4")));
}

TEST(Safetensors, bytes_that_cannot_be_viewed_are_copied) {
  const std::string one("\x00\x00\x80\x3f", 4);
  const SafetensorsFile f =
      parse(file_of("{" + entry("b", "BOOL", "[3]", "[0,3]") + "," + entry("f", "F32", "[1]", "[3,7]") + "}",
                    std::string("\0\1\xff", 3) + one));
  EXPECT_THAT(values<float>(f.tensor("f")), ElementsAre(1));
  const Tensor b = f.tensor("b");
  EXPECT_FALSE(b.storage()->is_borrowed());
  EXPECT_THAT(values<bool>(b), ElementsAre(false, true, true));
}

TEST(SaveSafetensors, what_cannot_be_saved_is_named_and_creates_nothing) {
  TemporaryFolder folder;
  const auto save = [&](const NamedTensors& tensors, const std::optional<SafetensorsMetadata>& metadata = {}) {
    return error_of([&] { save_safetensors(folder.path("x"), tensors, metadata); });
  };
  EXPECT_THAT(save({{"c", make_tensor({2}, DType::complex128)}}),
              AllOf(HasSubstr("'c'"), HasSubstr("complex128"), HasSubstr("cast it")));
  EXPECT_THAT(save({{"a", counting({1})}, {"a", counting({2})}}), HasSubstr("two tensors are named 'a'"));
  EXPECT_THAT(save({{"a", Tensor()}}), HasSubstr("undefined"));
  EXPECT_THAT(save({{"f", make_tensor(counting({2}).meta(), /*fake=*/true)}}), HasSubstr("has no data"));
  EXPECT_THAT(save({{"__metadata__", counting({1})}}), HasSubstr("reserves"));
  EXPECT_THAT(save({{"\xff", counting({1})}}), HasSubstr("UTF-8"));
  EXPECT_THAT(save({}, SafetensorsMetadata{{"k", "\xc0"}}), HasSubstr("the metadata value of 'k'"));
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(SaveSafetensors, a_file_may_be_saved_over_itself) {
  TemporaryFolder folder;
  const std::string path = folder.path("x");
  save_safetensors(path, {{"a", counting({3})}, {"b", counting({1000, 100})}});
  const NamedTensors tensors = SafetensorsFile::open(path).tensors();
  save_safetensors(path, {{"b2", tensors[1].second}, {"a2", tensors[0].second}});
  EXPECT_THAT(values<float>(tensors[0].second), ElementsAre(0, 1, 2));  // the old file lives as long as its views
  const SafetensorsFile f = SafetensorsFile::open(path);
  EXPECT_THAT(f.names(), ElementsAre("a2", "b2"));
  EXPECT_EQ(values<float>(f.tensor("b2")), values<float>(tensors[1].second));
  EXPECT_THAT(folder.names(), ElementsAre("x"));
}

TEST(SaveSafetensors, a_full_disk_leaves_the_old_file_and_no_other) {
  TemporaryFolder folder;
  const std::string path = folder.path("x");
  save_safetensors(path, {{"a", counting({3})}});
  const std::string before = test::read_file(path);
  // A limit on the size of files fails a write() half-way, as a full disk does.
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 100'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = error_of([&] { save_safetensors(path, {{"a", counting({100, 1000})}}); }, ErrorKind::bad_file);
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, AllOf(HasSubstr(path), HasSubstr("cannot write"), HasSubstr("nothing was left behind")));
  EXPECT_EQ(test::read_file(path), before);
  EXPECT_THAT(folder.names(), ElementsAre("x"));
}

TEST(SaveSafetensors, a_writer_that_is_not_committed_leaves_nothing) {
  TemporaryFolder folder;
  {
    FileWriter writer(folder.path("x"));
    writer.write("abc", 3);
    EXPECT_EQ(writer.size(), 3U);
    EXPECT_EQ(folder.names().size(), 1U);
    EXPECT_NE(*folder.names().begin(), "x");
  }
  EXPECT_THAT(folder.names(), IsEmpty());
  EXPECT_THAT(error_of([&] { FileWriter w(folder.path("no/x")); }, ErrorKind::bad_file), HasSubstr("No such file"));
  EXPECT_THAT(error_of([&] { FileWriter w("/dev/full"); }, ErrorKind::bad_file), HasSubstr("not a regular file"));
}

TEST(SaveSafetensors, shared_memory_is_found) {
  const Tensor base = counting({4, 6});
  const Tensor top = make_view(base, {2, 6}, {6, 1}, 0);
  const Tensor bottom = make_view(base, {2, 6}, {6, 1}, 12);
  const Tensor middle = make_view(base, {2, 6}, {6, 1}, 6);
  const Tensor alias = make_view(base, {4, 6}, {6, 1}, 0);
  const Tensor empty = make_view(base, {0, 6}, {6, 1}, 0);
  EXPECT_THAT(find_shared_memory({{"t", top}, {"b", bottom}, {"e", empty}, {"other", counting({4, 6})}}), IsEmpty());

  const auto tied = find_shared_memory({{"lm_head", alias}, {"embed", base}});
  ASSERT_EQ(tied.size(), 1U);
  EXPECT_THAT(tied[0].names, ElementsAre("embed", "lm_head"));
  EXPECT_TRUE(tied[0].identical);
  EXPECT_EQ(tied[0].complete, "embed");

  const auto parts = find_shared_memory({{"t", top}, {"m", middle}, {"b", bottom}});
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_THAT(parts[0].names, ElementsAre("b", "m", "t"));
  EXPECT_FALSE(parts[0].identical);
  EXPECT_FALSE(parts[0].complete.has_value());

  const auto covered = find_shared_memory({{"whole", base}, {"t", top}, {"b", bottom}});
  ASSERT_EQ(covered.size(), 1U);
  EXPECT_EQ(covered[0].complete, "whole");
}

TEST(SaveSafetensors, shared_memory_is_refused_by_name_unless_each_is_to_be_written) {
  const Tensor base = counting({4, 6});
  const NamedTensors tied = {{"lm_head", make_view(base, {4, 6}, {6, 1}, 0)}, {"embed", base}, {"other", counting({2})}};
  const std::string expected =
      "save_safetensors: some tensors share memory, which would be in the file once for each name and be apart when it is "
      "read: {'embed', 'lm_head'}. Leave out all but one of a group, or clone() the others; save_pretrained knows which "
      "weights of a model are tied";
  TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { serialize_safetensors(tied); }), expected);
  EXPECT_EQ(error_of([&] { save_safetensors(folder.path("x"), tied); }), expected);
  EXPECT_THAT(folder.names(), IsEmpty());
  save_safetensors(folder.path("x"), tied, std::nullopt, true, SharedTensors::written_each);
  EXPECT_EQ(SafetensorsFile::open(folder.path("x")).tensor("lm_head").nbytes(), base.nbytes());
  // Views that lie side by side share no byte.
  const NamedTensors halves = {{"t", make_view(base, {2, 6}, {6, 1}, 0)}, {"b", make_view(base, {2, 6}, {6, 1}, 12)}};
  EXPECT_FALSE(serialize_safetensors(halves).empty());
}

// Views of one storage, and whether the safetensors library saves them.
TEST(SaveSafetensors, shared_memory_is_refused_where_the_library_refuses_it) {
  int count = 0;
  for (const auto& line : read_lines("safetensors.jsonl")) {
    if (line["kind"] != "shared") continue;
    ++count;
    const Tensor base = counting({line["elements"].get<int64_t>()});
    NamedTensors tensors;
    for (const auto& [name, view] : line["views"].items())
      tensors.emplace_back(name, make_view(base, {view[1].get<int64_t>()}, {1}, view[0].get<int64_t>()));
    const std::string error = line["saved"].get<bool>() ? "" : "some tensors share memory";
    if (error.empty())
      EXPECT_FALSE(serialize_safetensors(tensors).empty()) << line.dump();
    else
      EXPECT_THAT(error_of([&] { serialize_safetensors(tensors); }), HasSubstr(error)) << line.dump();
  }
  EXPECT_GE(count, 60);
}

TEST(SaveSafetensors, large_strided_tensors_are_written_row_major) {
  const Tensor base = counting({700, 900});
  const Tensor t = make_view(base, {900, 700}, {1, 900}, 0);
  const auto bytes = serialize_safetensors({{"t", t}});
  auto owner = std::make_shared<std::vector<std::byte>>(bytes);
  const Tensor back = SafetensorsFile::from_bytes(*owner, owner, "x").tensor("t");
  for (int64_t i = 0; i < 900; i += 37)
    for (int64_t j = 0; j < 700; j += 11) ASSERT_EQ(back.data_as<float>()[i * 700 + j], static_cast<float>(j * 900 + i));
}

TEST(SaveSafetensors, what_could_not_be_read_back_is_refused_before_anything_is_written) {
  const auto of_dims = [](size_t dims) { return make_tensor(std::vector<int64_t>(dims, 1), DType::float32); };
  const test::TemporaryFolder folder;
  const std::string path = folder.path("x");
  save_safetensors(path, {{"t", of_dims(64)}});
  EXPECT_EQ(SafetensorsFile::open(path).tensor("t").dim(), 64);
  const std::string before = test::read_file(path);
  EXPECT_THAT(test::error_of([&] {
                save_safetensors(path, {{"t", of_dims(65)}});
              }),
              HasSubstr("tensor 't' has 65 dimensions, and safetensors files are read with at most 64"));
  EXPECT_EQ(test::read_file(path), before);
  EXPECT_EQ(folder.names(), std::set<std::string>{"x"});
}

}  // namespace
}  // namespace calque::safetensors_test
