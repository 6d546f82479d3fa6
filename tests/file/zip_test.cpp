#include "calque/file/zip.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "calque/base/error.h"

namespace calque {
namespace {

std::string archive(const std::vector<std::pair<std::string, std::string>>& entries, const std::string& folder = "top") {
  std::string out;
  ZipWriter zip([&](std::span<const std::byte> b) { out.append(reinterpret_cast<const char*>(b.data()), b.size()); }, folder);
  for (const auto& [name, content] : entries) zip.add(name, content);
  zip.finish();
  return out;
}
ZipReader open(const std::string& bytes) { return ZipReader(std::as_bytes(std::span(bytes)), "test.zip"); }

std::string error_of(const std::string& bytes) {
  try {
    open(bytes);
    return "";
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::bad_file);
    return e.what();
  }
}

template <class T>
void put(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

TEST(Zip, Crc32IsTheStandardOne) {
  const std::string text = "123456789";
  EXPECT_EQ(crc32(std::as_bytes(std::span(text))), 0xCBF43926U);
  const std::string longer(1000, 'x');
  const auto bytes = std::as_bytes(std::span(longer));
  for (const size_t cut : {0, 1, 15, 16, 17, 500, 1000}) EXPECT_EQ(crc32(bytes.subspan(cut), crc32(bytes.first(cut))), crc32(bytes)) << cut;
}

TEST(Zip, WhatIsWrittenIsReadAndAligned) {
  const std::string bytes = archive({{"b", "second"}, {"a/é", std::string(1000, 'x')}, {"empty", ""}});
  const ZipReader zip = open(bytes);
  ASSERT_EQ(zip.entries().size(), 3U);
  EXPECT_EQ(zip.find("top/b")->text(), "second");
  EXPECT_EQ(zip.find("top/a/é")->text(), std::string(1000, 'x'));
  EXPECT_EQ(zip.find("b"), nullptr);
  for (const ZipEntry& e : zip.entries()) {
    EXPECT_EQ((e.data.data() - std::as_bytes(std::span(bytes)).data()) % 64, 0);
    zip.check(e);
  }
}

TEST(Zip, DamageIsFound) {
  std::string bytes = archive({{"a", "some text that is damaged"}});
  bytes[bytes.find("damaged")] = 'D';
  const ZipReader zip = open(bytes);
  try {
    zip.check(*zip.find("top/a"));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("test.zip: entry top/a is damaged"), std::string::npos) << e.what();
  }
}

TEST(Zip, CutOffAnywhereIsRefused) {
  const std::string bytes = archive({{"a", "text"}, {"b", "more"}});
  for (size_t length = 0; length < bytes.size(); ++length) EXPECT_NE(error_of(bytes.substr(0, length)), "") << length;
}

TEST(Zip, NamesThatLeadOutAreRefused) {
  for (const char* name : {"../a", "a/../../b", "/a", "a\\b", ".."}) EXPECT_NE(error_of(archive({{name, "x"}}, "")).find("leads out of the archive"), std::string::npos) << name;
  EXPECT_EQ(error_of(archive({{"a/..b/c..", "x"}}, "")), "");
}

// Offsets of a directory's entry, for changing them.
size_t directory(const std::string& bytes, size_t index) {
  size_t at = bytes.find("PK\1\2");
  while (index-- > 0) at = bytes.find("PK\1\2", at + 4);
  return at;
}

TEST(Zip, OverlapAndWrongOffsetsAreRefused) {
  const std::string good = archive({{"a", "text"}, {"b", "more"}});
  std::string bytes = good;
  put<uint32_t>(bytes, directory(bytes, 1) + 42, 0);  // b is where a is
  EXPECT_NE(error_of(bytes).find("overlap"), std::string::npos) << error_of(bytes);
  for (const uint32_t offset : {0x7FFFFFFFU, 0xFFFFFFFEU, static_cast<uint32_t>(good.size())}) {
    bytes = good;
    put<uint32_t>(bytes, directory(bytes, 0) + 42, offset);
    EXPECT_NE(error_of(bytes), "");
  }
  bytes = good;
  put<uint32_t>(bytes, directory(bytes, 0) + 20, 0x7FFFFFFFU);
  put<uint32_t>(bytes, directory(bytes, 0) + 24, 0x7FFFFFFFU);
  EXPECT_NE(error_of(bytes), "");
}

TEST(Zip, CompressedAndEncryptedEntriesAreRefused) {
  std::string bytes = archive({{"a", "text"}});
  put<uint16_t>(bytes, directory(bytes, 0) + 10, 8);
  EXPECT_NE(error_of(bytes).find("compressed"), std::string::npos);
  bytes = archive({{"a", "text"}});
  put<uint16_t>(bytes, directory(bytes, 0) + 8, 1);
  EXPECT_NE(error_of(bytes).find("encrypted"), std::string::npos);
  // A bomb says that a few bytes are many.
  bytes = archive({{"a", "text"}});
  put<uint32_t>(bytes, directory(bytes, 0) + 24, 0xF0000000U);
  EXPECT_NE(error_of(bytes).find("compressed"), std::string::npos);
}

TEST(Zip, ADirectoryThatClaimsTooMuchIsRefused) {
  std::string bytes = archive({{"a", "text"}});
  const size_t end64 = bytes.find("PK\6\6");
  put<uint64_t>(bytes, end64 + 32, uint64_t{1} << 60);
  EXPECT_NE(error_of(bytes).find("cannot hold"), std::string::npos) << error_of(bytes);
  bytes = archive({{"a", "text"}});
  put<uint64_t>(bytes, end64 + 48, ~uint64_t{0});
  EXPECT_NE(error_of(bytes), "");
}

TEST(Zip, LargerThanFourGibibytes) {
  // The bytes are made on the fly and thrown away; what is kept is the directory, and where things are.
  const std::string block(size_t{1} << 20, 'x');
  std::string tail;
  uint64_t total = 0;
  ZipWriter zip(
      [&](std::span<const std::byte> b) {
        total += b.size();
        tail.append(reinterpret_cast<const char*>(b.data()), b.size() < 4096 ? b.size() : 0);
      },
      "");
  const std::vector<std::byte> large(size_t{300} << 20);
  for (int i = 0; i < 15; ++i) zip.add("part" + std::to_string(i), large);
  zip.finish();
  EXPECT_GT(total, uint64_t{4} << 30);
  const size_t last = tail.rfind("PK\1\2");
  uint32_t offset = 0;
  uint16_t extra = 0;
  uint64_t wide = 0;
  std::memcpy(&offset, tail.data() + last + 42, 4);
  std::memcpy(&extra, tail.data() + last + 30, 2);
  ASSERT_EQ(offset, 0xFFFFFFFFU);
  ASSERT_EQ(extra, 12);
  std::memcpy(&wide, tail.data() + last + 46 + std::string("part14").size() + 4, 8);
  EXPECT_GT(wide, uint64_t{4} << 30);
  EXPECT_LT(wide, total);
}

}  // namespace
}  // namespace calque
