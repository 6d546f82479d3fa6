#include "calque/file/zip.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "calque/base/error.h"
#include "calque/base/memory.h"
#include "calque/file/mapped_file.h"
#include "file/zip_support.h"
#include "support/error_support.h"

namespace calque::zip_test {
namespace {

std::string archive(const std::vector<std::pair<std::string, std::string>>& entries, const std::string& folder = "top") {
  std::string out;
  ZipWriter zip([&](std::span<const std::byte> b) { out.append(reinterpret_cast<const char*>(b.data()), b.size()); },
                folder);
  for (const auto& [name, content] : entries) zip.add(name, content);
  zip.finish();
  return out;
}
ZipReader open(const std::string& bytes) { return ZipReader(std::as_bytes(std::span(bytes)), "test.zip"); }

std::string error_of(const std::string& bytes) {
  return test::error_of([&] { open(bytes); }, ErrorKind::bad_file);
}

template <class T>
void put(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

TEST(Zip, what_is_written_is_read_and_aligned) {
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

TEST(Zip, damage_is_found) {
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

TEST(Zip, cut_off_anywhere_is_refused) {
  const std::string bytes = archive({{"a", "text"}, {"b", "more"}});
  for (size_t length = 0; length < bytes.size(); ++length) EXPECT_NE(error_of(bytes.substr(0, length)), "") << length;
}

TEST(Zip, names_that_lead_out_are_refused) {
  for (const char* name : {"../a", "a/../../b", "/a", "a\\b", ".."})
    EXPECT_NE(error_of(archive({{name, "x"}}, "")).find("leads out of the archive"), std::string::npos) << name;
  EXPECT_EQ(error_of(archive({{"a/..b/c..", "x"}}, "")), "");
}

// Offsets of a directory's entry, for changing them.
size_t directory(const std::string& bytes, size_t index) {
  size_t at = bytes.find("PK\1\2");
  while (index-- > 0) at = bytes.find("PK\1\2", at + 4);
  return at;
}

TEST(Zip, overlap_and_wrong_offsets_are_refused) {
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

TEST(Zip, encrypted_entries_and_unknown_methods_are_refused) {
  std::string bytes = archive({{"a", "text"}});
  put<uint16_t>(bytes, directory(bytes, 0) + 8, 1);
  EXPECT_NE(error_of(bytes).find("encrypted"), std::string::npos);
  bytes = archive({{"a", "text"}});
  put<uint16_t>(bytes, directory(bytes, 0) + 10, 12);
  EXPECT_NE(error_of(bytes).find("compressed by method 12"), std::string::npos);
  // Stored, and yet of two sizes.
  bytes = archive({{"a", "text"}});
  put<uint32_t>(bytes, directory(bytes, 0) + 24, 0xF0000000U);
  EXPECT_NE(error_of(bytes).find("two sizes"), std::string::npos);
}

TEST(Zip, compressed_entries_are_inflated) {
  const std::string text(100'000, 'x');
  const std::string bytes = test::deflated_archive({{"a/empty", ""}, {"a/long", text}, {"a/short", "text"}});
  EXPECT_LT(bytes.size(), 2000U);
  const ZipReader zip(std::as_bytes(std::span(bytes)), "test");
  EXPECT_EQ(zip.find("a/empty")->text(), "");
  EXPECT_EQ(zip.find("a/short")->text(), "text");
  EXPECT_EQ(zip.find("a/long")->text(), text);
  zip.check(*zip.find("a/long"));
  // Looked at without inflating: the names alone.
  const ZipReader names(std::as_bytes(std::span(bytes)), "test", ZipContent::stored);
  EXPECT_EQ(names.entries().size(), 3U);
  EXPECT_EQ(names.find("a/long")->text(), "");
}

TEST(Zip, compressed_entries_keep_their_memory_as_long_as_somebody_has_them) {
  const std::string bytes = test::deflated_archive({{"a", std::string(1000, 'x')}});
  const size_t before = memory_in_use();
  std::shared_ptr<const void> kept;
  {
    const ZipReader zip(std::as_bytes(std::span(bytes)), "test");
    kept = zip.find("a")->inflated;
  }
  EXPECT_EQ(memory_in_use(), before + 1000);
  kept.reset();
  EXPECT_EQ(memory_in_use(), before);
}

TEST(Zip, compressed_entries_that_lie_about_their_size_are_refused) {
  const std::string good = test::deflated_archive({{"a", "some text"}});
  for (const uint32_t claimed : {0U, 8U, 10U, 1000U}) {
    std::string bytes = good;
    put<uint32_t>(bytes, directory(bytes, 0) + 24, claimed);
    EXPECT_NE(error_of(bytes).find("does not inflate to the " + std::to_string(claimed)), std::string::npos);
  }
  for (size_t i = 31; i < directory(good, 0); ++i) {  // damaged data: an error, or text that fails the checksum
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x55);
    try {
      const ZipReader zip(std::as_bytes(std::span(bytes)), "test");
      EXPECT_THROW(zip.check(*zip.find("a")), UserError);
    } catch (const UserError&) {
    }
  }
}

TEST(Zip, a_bomb_is_refused_before_anything_is_inflated) {
  // 80 MB of zeros in 80 kB.
  const std::string bomb = test::deflated_archive({{"a", std::string(80'000'000, '\0')}});
  ASSERT_LT(bomb.size(), 100'000U);
  const size_t before = memory_in_use();
  EXPECT_NE(error_of(bomb).find("claim 80000000 bytes, more than 200 times the archive's"), std::string::npos);
  EXPECT_EQ(memory_in_use(), before);
  // Many entries of one archive count together.
  std::vector<std::pair<std::string, std::string>> many;
  for (int i = 0; i < 10; ++i) many.emplace_back("e" + std::to_string(i), std::string(8'000'000, '\0'));
  EXPECT_NE(error_of(test::deflated_archive(many)).find("claim 80000000 bytes"), std::string::npos);
  // Sizes that add up to more than a number holds.
  std::string wraps = test::deflated_archive({{"a", "1"}, {"b", "2"}});
  for (const size_t i : {0, 1}) put<uint32_t>(wraps, directory(wraps, i) + 24, 0xFFFFFFFEU);
  EXPECT_NE(error_of(wraps).find("more than 200 times"), std::string::npos);
}

TEST(Zip, what_is_inflated_counts_as_memory) {
  const std::string bytes = test::deflated_archive({{"a", std::string(2'000'000, 'x')}});
  const size_t limit = memory_limit();
  set_memory_limit(memory_in_use() + 1'000'000);
  const std::string text = test::error_of([&] { open(bytes); });
  set_memory_limit(limit);
  EXPECT_NE(text.find("memory"), std::string::npos) << text;
}

TEST(Zip, a_directory_that_claims_too_much_is_refused) {
  std::string bytes = archive({{"a", "text"}});
  const size_t end64 = bytes.find("PK\6\6");
  put<uint64_t>(bytes, end64 + 32, uint64_t{1} << 60);
  EXPECT_NE(error_of(bytes).find("cannot hold"), std::string::npos) << error_of(bytes);
  bytes = archive({{"a", "text"}});
  put<uint64_t>(bytes, end64 + 48, ~uint64_t{0});
  EXPECT_NE(error_of(bytes), "");
}

TEST(Zip, larger_than_four_gibibytes) {
  // The bytes are thrown away; what is kept is headers and directory.
  const auto large = MappedFile::zeros((size_t{4} << 30) + 100);
  std::string kept;
  uint64_t total = 0;
  ZipWriter zip(
      [&](std::span<const std::byte> b) {
        total += b.size();
        if (b.size() < 4096) kept.append(reinterpret_cast<const char*>(b.data()), b.size());
      },
      "");
  zip.add("large", large->bytes());
  zip.add("behind", "text");
  zip.finish();
  EXPECT_GT(total, uint64_t{4} << 30);
  const auto at = [&]<class T>(size_t offset, T) {
    T value;
    std::memcpy(&value, kept.data() + offset, sizeof value);
    return value;
  };
  // In both places the 32-bit fields are full and the true sizes in a zip64 field.
  EXPECT_EQ(at(22, uint32_t{}), 0xFFFFFFFFU);
  EXPECT_EQ(at(30 + 5 + 4, uint64_t{}), large->bytes().size());
  const size_t first = directory(kept, 0);
  EXPECT_EQ(at(first + 24, uint32_t{}), 0xFFFFFFFFU);
  EXPECT_EQ(at(first + 46 + 5 + 4, uint64_t{}), large->bytes().size());
  const size_t second = directory(kept, 1);
  EXPECT_EQ(at(second + 24, uint32_t{}), 4U);
  EXPECT_EQ(at(second + 42, uint32_t{}), 0xFFFFFFFFU);
  EXPECT_GT(at(second + 46 + 6 + 4, uint64_t{}), large->bytes().size());
}

}  // namespace
}  // namespace calque::zip_test
