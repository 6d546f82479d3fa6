// How weight files are brought into memory: the order of the reading, and that a folder's values do not depend on it.
#include "hub/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "calque/file/mapped_file.h"

namespace calque::read_ahead_test {
namespace {

const std::array<std::byte, 40> memory{};
ByteSpan ten_bytes(size_t at) { return ByteSpan(memory).subspan(at, 10); }

std::vector<size_t> places(const std::vector<ByteSpan>& pieces) {
  std::vector<size_t> out;
  for (const ByteSpan& piece : pieces) out.push_back(static_cast<size_t>(piece.data() - memory.data()));
  return out;
}

std::vector<size_t> order_by(std::vector<ByteSpan> used) {
  return places(in_order_of_use({ten_bytes(30), ten_bytes(0), ten_bytes(10), ten_bytes(20)}, used));
}

TEST(ReadAhead, pieces_come_in_the_order_of_their_use) {
  EXPECT_EQ(order_by({ByteSpan(memory).subspan(32, 4), ByteSpan(memory).subspan(11, 2)}),
            (std::vector<size_t>{30, 10, 0, 20}));
}

TEST(ReadAhead, all_pieces_of_a_tensor_count_and_the_first_use_decides) {
  EXPECT_EQ(order_by({ByteSpan(memory).subspan(18, 14), ByteSpan(memory).subspan(0, 12)}),
            (std::vector<size_t>{10, 20, 30, 0}));
}

TEST(ReadAhead, without_uses_it_is_the_order_of_addresses) { EXPECT_EQ(order_by({}), (std::vector<size_t>{0, 10, 20, 30})); }

TEST(ReadAhead, what_lies_elsewhere_or_holds_nothing_is_passed_over) {
  static const std::array<std::byte, 8> elsewhere{};
  EXPECT_EQ(order_by({ByteSpan(elsewhere), ByteSpan(), ByteSpan(memory).subspan(40), ByteSpan(memory).subspan(20, 10)}),
            (std::vector<size_t>{20, 0, 10, 30}));
}

TEST(ReadAhead, a_file_that_is_not_in_the_page_cache_is_read_as_it_is) {
  const std::string path = testing::TempDir() + "read_ahead_test.bin";
  std::string text(size_t{40} << 20, '\0');
  for (size_t i = 0; i < text.size(); i += 1000) text[i] = static_cast<char>(i / 1000);
  std::ofstream(path, std::ios::binary) << text;
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  ASSERT_GE(descriptor, 0);
  ::fsync(descriptor);
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
  const auto file = MappedFile::open(path);
  {
    ReadAhead ahead({file});
    const std::array<ByteSpan, 1> last{file->bytes().last(1)};
    ahead.order(last);
    EXPECT_TRUE(std::equal(text.begin(), text.end(), reinterpret_cast<const char*>(file->bytes().data())));
  }
  ::unlink(path.c_str());
}

TEST(ReadAhead, no_files_and_empty_files_are_no_reading) {
  ReadAhead nothing({});
  nothing.order({});
  const std::shared_ptr<const MappedFile> file = MappedFile::zeros(0);
  {
    ReadAhead empty({file});
    empty.order({});
    EXPECT_EQ(file.use_count(), 2);  // kept mapped as long as it reads
  }
  EXPECT_EQ(file.use_count(), 1);
}

}  // namespace
}  // namespace calque::read_ahead_test
