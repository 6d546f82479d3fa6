// Compiled files: the first call uses the packed weights that came with the program; what does not fit the program, this machine or
// itself is packed anew; the weights that were packed do not stay in memory.
#include "calque/run/compiled_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "calque/export/compiled_entries.h"
#include "calque/file/mapped_file.h"
#include "calque/file/zip.h"
#include "calque/op/aten/arange.h"
#include "calque/run/plan.h"
#include "export/export_support.h"
#include "support/folder_support.h"

namespace calque::compiled_file_test {
namespace {

using testing::HasSubstr;

// Two products, the second with the same weights as the first.
struct Tied : Typed<Tied> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> first = child<Linear>("first", 256, 256);
  Child<Linear> second = child<Linear>("second", 256, 512);
  Tensor forward(const Tensor& x) { return second(first(first(x))); }
};

class CompiledFiles : public testing::Test {
 protected:
  CompiledFiles() {
    const NoGradGuard no_grad;
    program_.emplace(export_program(module_, {x_}));
    file_ = save_compiled_program(*program_, path());
    expected_ = second_call(*program_);
  }
  std::string path(const std::string& name = "compiled.pt2") const { return folder_.path(name); }

  // The archive again, its entries changed: name (without the folder) and content, an empty name leaves it out.
  using Change = std::function<void(std::string& name, std::string& content)>;
  std::string changed(const Change& change) const {
    const auto file = MappedFile::open(path());
    const ZipReader read(file->bytes(), "compiled");
    std::string bytes;
    ZipWriter out([&](std::span<const std::byte> b) { bytes.append(reinterpret_cast<const char*>(b.data()), b.size()); },
                  "compiled");
    for (const ZipEntry& e : read.entries()) {
      std::string name = e.name.substr(e.name.find('/') + 1), content(e.text());
      change(name, content);
      if (!name.empty()) out.add(name, content);
    }
    out.finish();
    return folder_.write("changed.pt2", bytes);
  }
  static Change in_plan(const std::string& from, const std::string& to) {
    return [=](std::string& name, std::string& content) {
      if (name != "compiled/model/plan.json") return;
      const size_t at = content.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      content.replace(at, from.size(), to);
    };
  }
  // Packed weights come in with the second call, and a build without optimisation sums them in another order than the first.
  Value second_call(const ExportedProgram& program) const {
    static_cast<void>(program.call({x_}));
    return program.call({x_});
  }
  // The bytes that a plan packed itself, and that it gives what the program gives.
  size_t packed_anew(const std::string& path) const {
    const NoGradGuard no_grad;
    const auto program = load_program(path);
    const auto plan = Plan::make(*program);
    EXPECT_TRUE(same(plan->call({x_}).at(0), expected_));
    EXPECT_TRUE(same(second_call(*program), expected_));
    return plan->packed_bytes();
  }

  test::TemporaryFolder folder_;
  Tied module_;
  Tensor x_ = (arange(60 * 256, DType::float32) * 0.001).view({60, 256});
  std::optional<ExportedProgram> program_;
  CompiledFile file_;
  Value expected_;
};

TEST_F(CompiledFiles, the_plan_of_a_compiled_file_packs_nothing) {
  EXPECT_EQ(file_.packed, 2U);
  EXPECT_GE(file_.packed_bytes, 4U * 256 * (256 + 512));
  EXPECT_EQ(packed_anew(path()), 0U);
}

TEST_F(CompiledFiles, a_program_without_a_plan_packs_what_it_needs) {
  save_program(*program_, path("plain.pt2"));
  EXPECT_EQ(packed_anew(path("plain.pt2")), file_.packed_bytes);
}

TEST_F(CompiledFiles, a_compiled_file_is_compiled_again_from_what_it_holds) {
  const auto loaded = load_program(path());
  const CompiledFile again = save_compiled_program(*loaded, path("again.pt2"));
  EXPECT_EQ(again.packed_bytes, file_.packed_bytes);
  EXPECT_EQ(packed_anew(path("again.pt2")), 0U);
}

TEST_F(CompiledFiles, saving_a_compiled_program_leaves_the_plan_out) {
  const auto loaded = load_program(path());
  save_program(*loaded, path("plain.pt2"));
  EXPECT_EQ(load_program(path("plain.pt2"))->parts().compiled, nullptr);
}

TEST_F(CompiledFiles, a_plan_of_another_machine_or_version_is_made_anew) {
  EXPECT_EQ(packed_anew(changed(in_plan("columns, ", "columns, other "))), file_.packed_bytes);
  EXPECT_EQ(packed_anew(changed(in_plan(R"("calque": ")", R"("calque": "9)"))), file_.packed_bytes);
  EXPECT_EQ(packed_anew(changed(in_plan(R"("format": 1)", R"("format": 2)"))), file_.packed_bytes);
}

TEST_F(CompiledFiles, a_plan_that_does_not_fit_its_file_is_made_anew) {
  EXPECT_EQ(packed_anew(changed(in_plan("{", "["))), file_.packed_bytes);
  EXPECT_EQ(packed_anew(changed(in_plan(R"("packed": [{)", R"("packed": [{}, {)"))), file_.packed_bytes);
  EXPECT_EQ(packed_anew(changed(in_plan(R"("bytes": 2)", R"("bytes": 3)"))), file_.packed_bytes);
  EXPECT_EQ(packed_anew(changed([](std::string& name, std::string&) {
              if (name.ends_with("block_1")) name.clear();
            })),
            file_.packed_bytes);
  EXPECT_EQ(packed_anew(changed([](std::string& name, std::string& content) {
              if (name.ends_with("block_1")) content.resize(content.size() - 4);
            })),
            file_.packed_bytes);
}

TEST_F(CompiledFiles, a_copy_of_other_weights_is_packed_anew) {
  const size_t one = packed_anew(changed(in_plan(R"("of": ")", R"("of": "1)")));
  EXPECT_GT(one, 0U);
  EXPECT_LT(one, file_.packed_bytes);
}

TEST_F(CompiledFiles, weights_that_were_exchanged_are_the_ones_that_count) {
  const std::string path = changed([](std::string& name, std::string& content) {
    if (name.starts_with("data/weights/weight_") && content.size() > 4096) content[2] = static_cast<char>(content[2] ^ 0x40);
  });
  const NoGradGuard no_grad;
  const auto program = load_program(path);
  const auto plan = Plan::make(*program);
  EXPECT_EQ(plan->packed_bytes(), file_.packed_bytes);
  PlanOptions plain;
  plain.optimize = false;
  EXPECT_TRUE(same(plan->call({x_}).at(0), Plan::make(*program, plain)->call({x_}).at(0)));
}

// Pages of the tensor's memory that this process has.
size_t resident_pages(const Tensor& t) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(t.storage()->data());
  const uintptr_t first = (begin + page - 1) / page, last = (begin + t.storage()->nbytes()) / page;
  const int fd = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  size_t present = 0;
  for (uintptr_t p = first; p < last; ++p) {
    uint64_t entry = 0;
    if (::pread(fd, &entry, sizeof entry, static_cast<off_t>(p * sizeof entry)) == sizeof entry) present += entry >> 63;
  }
  ::close(fd);
  return present;
}

TEST_F(CompiledFiles, mapped_weights_do_not_stay_in_memory_beside_packed_ones) {
  const NoGradGuard no_grad;
  for (const bool compiled : {false, true}) {
    save_program(*program_, path("plain.pt2"));
    const auto program = load_program(compiled ? path() : path("plain.pt2"));
    const Tensor weight = program->state_dict().at("second.weight");
    if (!compiled) {
      EXPECT_TRUE(weight.sum().defined());
      ASSERT_GT(resident_pages(weight), 100U);
    }
    const auto plan = Plan::make(*program);
    EXPECT_EQ(resident_pages(weight), 0U) << compiled;
    EXPECT_TRUE(same(plan->call({x_}).at(0), expected_));
    EXPECT_EQ(resident_pages(weight), 0U) << compiled;
    EXPECT_TRUE(
        same(program->state_dict().at("second.weight"), program_->state_dict().at("second.weight")));  // they come back
  }
}

TEST_F(CompiledFiles, what_was_compiled_goes_beside_one_program) {
  SaveProgramOptions options;
  options.compiled = std::make_shared<const CompiledEntries>();
  EXPECT_THAT(error_of([&] {
                save_programs({{"a", &*program_}, {"b", &*program_}}, path("two.pt2"), options);
              }),
              HasSubstr("beside one program, found 2"));
}

}  // namespace
}  // namespace calque::compiled_file_test
