// How the program ends: outputs that cannot be written, signals, weights that are cut off, mistakes of users, memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/file/safetensors.h"
#include "cli/cli_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::endings_test {
namespace {

namespace fs = std::filesystem;
using cli_test::calque_run;
using cli_test::Process;
using cli_test::Result;
using cli_test::shell_run;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Names = std::set<std::string>;

const fs::path tiny_lm = fs::path(test::source_folder()) / "assets/tiny-lm";

size_t lines_of(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

// The thread sanitizer takes signals and the address space for itself: such endings are then its own.
#if defined(__SANITIZE_THREAD__)
#define CALQUE_NEEDS_PLAIN_PROCESS() GTEST_SKIP() << "ends otherwise under the thread sanitizer"
#else
#define CALQUE_NEEDS_PLAIN_PROCESS() static_cast<void>(0)
#endif

// So does the address sanitizer, of the address space alone.
#if defined(__SANITIZE_ADDRESS__)
#define CALQUE_NEEDS_PLAIN_ADDRESSES() GTEST_SKIP() << "the address sanitizer needs the addresses that this limits"
#else
#define CALQUE_NEEDS_PLAIN_ADDRESSES() CALQUE_NEEDS_PLAIN_PROCESS()
#endif

class Endings : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string copy(const std::string& name) const { return folder_.copy(tiny_lm, name); }

  // tiny-lm with a vocabulary of half a million tokens, whose embedding is a hole in its file: large to save, small on disk.
  std::string large_model(const std::string& name) const {
    const std::string folder = copy(name);
    nlohmann::json config = nlohmann::json::parse(test::read_file(folder + "/config.json"));
    const int64_t tokens = 500'000, width = config["hidden_size"];
    config["vocab_size"] = tokens;
    test::write_file(folder + "/config.json", config.dump());
    const SafetensorsFile small = SafetensorsFile::open(tiny_lm / "model.safetensors");
    const std::string embedding = "model.embed_tokens.weight";
    nlohmann::ordered_json header;
    std::string bytes;
    const auto add = [&](const std::string& tensor, const std::vector<int64_t>& sizes, uint64_t size) {
      header[tensor] = {{"dtype", "BF16"}, {"shape", sizes}, {"data_offsets", {bytes.size(), bytes.size() + size}}};
    };
    for (const SafetensorsEntry& entry : small.entries()) {
      if (entry.name == embedding) continue;
      add(entry.name, entry.sizes, entry.nbytes());
      const auto data = small.bytes(entry);
      bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
    }
    const auto hole = static_cast<uint64_t>(tokens * width * 2);
    add(embedding, {tokens, width}, hole);
    header["__metadata__"] = {{"format", "pt"}};
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');  // what is not aligned is copied, not mapped
    const uint64_t length = text.size();
    std::string file(sizeof length, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    test::write_file(folder + "/model.safetensors", file + text + bytes);
    fs::resize_file(folder + "/model.safetensors", file.size() + text.size() + bytes.size() + hole);
    return folder;
  }
  // Whether something under a temporary name is in the test's folder.
  bool has_temporary() const {
    const Names names = folder_.names();
    return std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.starts_with("."); });
  }
  // That its writer has locked: there is something in it.
  bool has_temporary_in_use() const {
    std::error_code gone;
    for (const std::string& name : names())
      if (name.starts_with(".") && !std::filesystem::is_empty(folder_.path() / name, gone) && !gone) return true;
    return false;
  }
  Names names() const { return folder_.names(); }

  const test::TemporaryFolder folder_;
};

// ---- output ---------------------------------------------------------------------------------------------------------

TEST_F(Endings, output_that_cannot_be_written_is_status_2_and_one_line) {
  for (const char* command : {"info tiny-lm", "info tiny-lm --json", "trace mlp", "trace tiny-lm", "trace --list", "--help",
                              "--version", "save --help", "diff tiny-lm tiny-lm", "generate tiny-lm -p x -n 3 --greedy",
                              "generate tiny-lm -p x -n 3 --greedy --json", "forward tiny-lm -p x"}) {
    for (const char* where : {">/dev/full", ">&-"}) {
      const Result r = shell_run(std::string("$CALQUE ") + command + " " + where);
      EXPECT_EQ(r.status, 2) << command << where << r.out;
      EXPECT_THAT(r.out, StartsWith("calque: cannot write standard output")) << command << where;
      EXPECT_EQ(lines_of(r.out), 1U) << r.out;
    }
  }
  const Result saved = shell_run("$CALQUE save tiny-lm -o " + path("m") + " >/dev/full");
  EXPECT_EQ(saved.status, 2);
  EXPECT_EQ(names(), Names{"m"});
  // Also where the files of a command would get the number of an output that is closed.
  EXPECT_EQ(shell_run("$CALQUE save tiny-lm -o " + path("n") + " >&- 2>&-").status, 2);
  EXPECT_EQ(calque_run("diff tiny-lm " + path("n")).status, 0);
}

TEST_F(Endings, a_pipe_that_nobody_reads_ends_the_program_quietly) {
  for (const char* command :
       {"trace tiny-lm --format json", "info tiny-lm", "generate tiny-lm -p 'The people' -n 1000000"}) {
    // The reader is gone before the program begins.
    const std::string pipe = path("pipe");
    const Result r = shell_run("mkfifo " + pipe + "; exec 3<>" + pipe + " 4>" + pipe + " 3<&-; $CALQUE " + command + " >&4");
    EXPECT_EQ(r.out, "") << command;
    EXPECT_EQ(r.status, 2) << command;
    fs::remove(pipe);
  }
}

TEST_F(Endings, messages_that_cannot_be_written_change_nothing) {
  EXPECT_EQ(shell_run("$CALQUE info nowhere 2>/dev/full").status, 2);
  EXPECT_EQ(shell_run("$CALQUE generate tiny-lm -p x -n 2 --greedy --stats 2>/dev/full").status, 0);
}

// ---- mistakes -------------------------------------------------------------------------------------------------------

TEST_F(Endings, mistakes_are_status_2_and_name_what_is_wrong) {
  const std::string model = copy("m");
  fs::create_symlink(path("loop"), path("loop"));
  fs::create_symlink(path("loop.pt2"), path("loop.pt2"));
  fs::create_symlink(path("m/generation_config.json"), path("m/loop"));
  const auto message = [&](const std::string& command) {
    const Result r = shell_run("cd " + folder_.path().string() + " && $CALQUE " + command);
    EXPECT_EQ(r.status, 2) << command << "\n" << r.out;
    return r.out;
  };
  EXPECT_THAT(message("save tiny-lm -o ''"), HasSubstr("--output"));
  EXPECT_THAT(message("save tiny-lm -o ."), AllOf(StartsWith("calque: "), HasSubstr("the current folder")));
  EXPECT_THAT(message("export mlp -o ''"), HasSubstr("--output"));
  EXPECT_THAT(message("export mlp -o ."), AllOf(StartsWith("calque: "), HasSubstr("a name that ends in .pt2")));
  fs::create_directory(path("folder.pt2"));
  EXPECT_THAT(message("export mlp -o folder.pt2"), AllOf(StartsWith("calque: "), HasSubstr("not a regular file")));
  EXPECT_THAT(message("trace mlp -o ''"), HasSubstr("--output"));
  EXPECT_THAT(message("forward tiny-lm -p x --outputs ''"), HasSubstr("--outputs"));
  for (const char* command :
       {"info loop", "save loop -o x", "save tiny-lm -o loop", "save tiny-lm -o loop/x", "export loop -o x.pt2",
        "export mlp -o loop.pt2", "run loop", "diff loop loop", "generate loop -p x", "forward loop -p x",
        "forward tiny-lm --inputs loop", "trace loop", "forward tiny-lm -p x --outputs loop/x"})
    EXPECT_THAT(message(command), AllOf(StartsWith("calque: "), HasSubstr("loop"), HasSubstr("symbolic links"))) << command;
  EXPECT_THAT(message("generate tiny-lm -p x --set num_beams=-1"), HasSubstr("`num_beams` must be greater than 0"));
  EXPECT_THAT(message("generate tiny-lm -p x --set num_beams=2147483648"), HasSubstr("more memory than"));
  EXPECT_THAT(message("generate tiny-lm -p x --set eos_token_id=[]"), HasSubstr("eos_token_id"));
  EXPECT_THAT(message("save tiny-lm -o x --max-shard-size " + std::string(400, '9')),
              HasSubstr("not in the correct format"));
  for (const auto& [text, expected] : {std::pair(R"({"eos_token_id": []})", "`eos_token_id`"),
                                       {R"({"num_beams": -1})", "`num_beams`"},
                                       {R"({"num_beams": )", "not valid JSON"},
                                       {R"([])", "expected an object"}}) {
    test::write_file(model + "/generation_config.json", text);
    EXPECT_THAT(message("generate m -p x"), AllOf(HasSubstr(expected))) << text;
  }
  test::write_file(model + "/generation_config.json", "{");
  EXPECT_THAT(message("generate m -p x"), HasSubstr("m/generation_config.json"));
  EXPECT_EQ(names(), (Names{"folder.pt2", "loop", "loop.pt2", "m"}));
}

TEST_F(Endings, an_error_about_a_file_names_the_file) {
  const std::string model = copy("m"), index = model + "/model.safetensors.index.json";
  fs::remove(model + "/model.safetensors");
  for (const char* text :
       {"", "{", "[]", "{}", R"({"weight_map": 3})", R"({"weight_map": {}})", R"({"weight_map": {"a": 1}})",
        R"({"weight_map": {"a": "../b"}})", R"({"weight_map": {"a": "b"}})"}) {
    test::write_file(index, text);
    const Result r = calque_run("generate " + model + " -p x");
    EXPECT_EQ(r.status, 2) << text;
    EXPECT_THAT(r.out, AllOf(StartsWith("calque: "), HasSubstr(index))) << text;
    EXPECT_EQ(r.out.find(index), r.out.rfind(index)) << "once: " << r.out;
  }
  const std::string inputs = path("inputs.safetensors");
  for (const char* name : {"nonsense", "input_ids.x", "past_key_values.0.x"}) {
    save_safetensors(inputs, {{name, make_tensor({1}, DType::int64)}});
    const Result r = calque_run("forward tiny-lm --inputs " + inputs);
    EXPECT_EQ(r.status, 2) << name;
    EXPECT_THAT(r.out, AllOf(HasSubstr(inputs), HasSubstr(name))) << name;
  }
  save_safetensors(inputs, {{"x", make_tensor({3}, DType::int64)}});
  const Result r =
      calque_run("run " + test::source_folder() + "/tests/export/golden/two_layers_dynamic.pt2 --inputs " + inputs);
  EXPECT_EQ(r.status, 2);
  EXPECT_THAT(r.out, HasSubstr(inputs));
}

// ---- memory ---------------------------------------------------------------------------------------------------------

TEST_F(Endings, a_limit_of_memory_is_read_from_the_command_line_and_the_environment) {
  for (const char* size : {"8G", "8GiB", "8000MB", "8000000000"}) {
    EXPECT_EQ(calque_run(std::string("--memory-limit ") + size + " trace --list").status, 0) << size;
    EXPECT_EQ(calque_run(std::string("trace --list --memory-limit ") + size).status, 0) << size;
    EXPECT_EQ(shell_run(std::string("CALQUE_MEMORY_LIMIT=") + size + " $CALQUE trace --list").status, 0) << size;
  }
  for (const char* size : {"0", "much", "8X", "-1"}) {
    const Result r = calque_run(std::string("trace --list --memory-limit=") + size);
    EXPECT_EQ(r.status, 2) << size;
    EXPECT_THAT(r.out, AllOf(StartsWith("calque: --memory-limit"), testing::Not(HasSubstr("mlp")))) << size;
    EXPECT_EQ(shell_run(std::string("CALQUE_MEMORY_LIMIT=") + size + " $CALQUE trace --list").status, 2) << size;
  }
}

TEST_F(Endings, a_limit_of_memory_is_kept) {
  const Result r = calque_run("--memory-limit 50K generate tiny-lm -p x -n 4");
  EXPECT_EQ(r.status, 2) << r.out;
  EXPECT_THAT(r.out, AllOf(HasSubstr("out of memory"), HasSubstr("--memory-limit")));
}

TEST_F(Endings, a_limit_of_time_is_kept) {
  const Result r = calque_run("--time-limit 1 generate tiny-lm -p x -n 100000000 --set eos_token_id=null");
  EXPECT_EQ(r.status, 2) << r.out;
  EXPECT_THAT(r.out, HasSubstr("--time-limit"));
}

TEST_F(Endings, a_command_that_gets_no_memory_says_so) {
  CALQUE_NEEDS_PLAIN_ADDRESSES();
  // Half a million kibibytes of addresses hold the weights once as they are, and not again in float32.
  const Result r = shell_run("ulimit -v 500000; $CALQUE save " + large_model("large") + " --dtype float32 -o " + path("m"));
  EXPECT_EQ(r.status, 2) << r.out;
  EXPECT_THAT(r.out, AllOf(StartsWith("calque: "), HasSubstr("memory")));
  EXPECT_EQ(names(), Names{"large"});
}

TEST_F(Endings, a_file_that_may_not_grow_is_an_error_and_leaves_nothing) {
  const Result r = shell_run("ulimit -f 1000; $CALQUE save tiny-lm -o " + path("m"));
  EXPECT_EQ(r.status, 2) << r.out;
  EXPECT_THAT(r.out, AllOf(StartsWith("calque: cannot write "), HasSubstr("model.safetensors: File too large")));
  EXPECT_EQ(names(), Names{});
  // Nor is anything of a folder that is there changed, and the message names it, not the one beside it in which it is made.
  const std::string target = copy("old");
  const Result again = shell_run("ulimit -f 2000; $CALQUE save tiny-lm --dtype fp32 -o " + target);
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.out,
              StartsWith("calque: cannot write " + target +
                         "/model.safetensors: File too large; nothing was left behind, and a file of that name is "
                         "as it was\n"));
  EXPECT_EQ(names(), Names{"old"});
  EXPECT_EQ(calque_run("diff tiny-lm " + target).status, 0);
}

// ---- signals --------------------------------------------------------------------------------------------------------

TEST_F(Endings, a_save_that_is_interrupted_leaves_the_old_folder_and_nothing_else) {
  CALQUE_NEEDS_PLAIN_PROCESS();
  const std::string model = large_model("large"), target = copy("m");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Process save({"save", model, "-o", target});
    ASSERT_TRUE(save.stop_when([&] { return has_temporary(); }));
    ASSERT_TRUE(has_temporary());
    save.send(signal);
    save.resume();
    EXPECT_EQ(save.wait().signal, signal);
    EXPECT_EQ(names(), (Names{"large", "m"}));
    EXPECT_EQ(calque_run("diff tiny-lm " + target).status, 0);
  }
}

TEST_F(Endings, ctrl_c_says_what_was_done_so_far) {
  CALQUE_NEEDS_PLAIN_PROCESS();
  const std::string model = large_model("large"), target = copy("m");
  Process save({"save", model, "-o", target});
  ASSERT_TRUE(save.stop_when([&] { return has_temporary(); }));
  save.send(SIGINT);
  save.resume();
  Process::Ending end = save.wait();
  EXPECT_EQ(end.signal, SIGINT);
  EXPECT_THAT(end.out, AllOf(HasSubstr("calque: stopped by Ctrl-C while saving " + target),
                             HasSubstr("; " + target + " is as it was")));

  // A text that has begun. Jobs of a shell without job control ignore the signal.
  const Result r = shell_run("cd " + folder_.path().string() + R"sh( && CALQUE="$CALQUE" bash -c '
    set -m
    "$CALQUE" generate tiny-lm -p "Call me" --greedy -n 2000 --set min_new_tokens=2000 > text 2> errors & p=$!
    until [ "$(wc -c < text)" -gt 8 ] || ! kill -0 $p; do :; done
    kill -INT $p; wait $p; echo status $?; cat errors')sh");
  EXPECT_THAT(r.out, AllOf(HasSubstr("status 130"), HasSubstr("calque: stopped by Ctrl-C while generating: "),
                           HasSubstr("of 2,000 tokens done")));
}

TEST_F(Endings, what_a_killed_save_left_goes_with_the_next_one_and_not_before_it_is_dead) {
  CALQUE_NEEDS_PLAIN_PROCESS();
  const std::string model = large_model("large"), target = copy("m");
  Process save({"save", model, "-o", target});
  ASSERT_TRUE(save.stop_when([&] { return has_temporary_in_use(); }));
  // It lives: another save of the same folder leaves it alone.
  EXPECT_EQ(calque_run("save tiny-lm -o " + target).status, 0);
  EXPECT_TRUE(has_temporary());
  save.send(SIGKILL);
  EXPECT_EQ(save.wait().signal, SIGKILL);
  EXPECT_TRUE(has_temporary());
  EXPECT_EQ(calque_run("save tiny-lm -o " + target).status, 0);
  EXPECT_EQ(names(), (Names{"large", "m"}));
  EXPECT_EQ(calque_run("diff tiny-lm " + target).status, 0);
}

TEST_F(Endings, an_interrupted_or_killed_export_leaves_the_old_file_and_nothing_for_long) {
  CALQUE_NEEDS_PLAIN_PROCESS();
  const std::string model = large_model("large"), target = path("p.pt2");
  test::write_file(target, "old");
  {
    Process exported({"export", model, "-o", target, "--static"});
    ASSERT_TRUE(exported.stop_when([&] { return has_temporary(); }));
    exported.send(SIGTERM);
    exported.resume();
    EXPECT_EQ(exported.wait().signal, SIGTERM);
    EXPECT_EQ(names(), (Names{"large", "p.pt2"}));
  }
  Process exported({"export", model, "-o", target, "--static"});
  ASSERT_TRUE(exported.stop_when([&] { return has_temporary(); }));
  exported.send(SIGKILL);
  EXPECT_EQ(exported.wait().signal, SIGKILL);
  EXPECT_TRUE(has_temporary());
  EXPECT_EQ(test::read_file(target), "old");
  EXPECT_EQ(calque_run("export mlp -o " + target).status, 0);
  EXPECT_EQ(names(), (Names{"large", "p.pt2"}));
}

TEST_F(Endings, signals_that_are_ignored_stay_ignored) {
  const Result r = shell_run(
      "trap '' INT TERM HUP; $CALQUE generate tiny-lm -p x -n 3 --greedy & "
      "p=$!; kill -INT $p; kill -TERM $p; kill -HUP $p; wait $p");
  EXPECT_EQ(r.status, 0) << r.out;
}

TEST_F(Endings, weights_that_are_cut_off_while_in_use_are_named) {
  CALQUE_NEEDS_PLAIN_PROCESS();
  const std::string model = large_model("large");
  Process save({"save", model, "-o", path("m"), "--dtype", "float32"});
  ASSERT_TRUE(save.stop_when([&] { return has_temporary(); }));
  fs::resize_file(model + "/model.safetensors", 4096);
  save.resume();
  const Process::Ending end = save.wait();
  EXPECT_EQ(end.status, 2) << end.signal << end.out;
  EXPECT_THAT(end.out, AllOf(StartsWith("calque: " + model + "/model.safetensors: "), HasSubstr("the file was cut off")));
  EXPECT_EQ(lines_of(end.out), 1U) << end.out;
  EXPECT_EQ(names(), Names{"large"});
}

// ---- saving ---------------------------------------------------------------------------------------------------------

TEST_F(Endings, a_saved_model_has_its_own_tokenizer_and_the_users_files_stay) {
  const std::string target = copy("m");
  test::write_file(target + "/tokenizer.json", "another model's");
  test::write_file(target + "/merges.txt", "another model's");
  test::write_file(target + "/README.md", "the user's");
  const Result r = calque_run("save tiny-lm -o " + target);
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(r.out, HasSubstr("tokenizer.json"));
  EXPECT_EQ(test::read_file(target + "/tokenizer.json"), test::read_file(tiny_lm / "tokenizer.json"));
  EXPECT_FALSE(fs::exists(target + "/merges.txt"));
  EXPECT_EQ(test::read_file(target + "/README.md"), "the user's");
}

}  // namespace
}  // namespace calque::endings_test
