// Hugging Face's cache on this machine: rows of area hubcache.
#include <gmock/gmock.h>

#include "calque/hub/hub_cache.h"
#include "hub/load_support.h"

namespace calque::load_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string commit = "0123456789abcdef0123456789abcdef01234567";
const std::string other_commit = "fedcba9876543210fedcba9876543210fedcba98";

// A cache with org/name at `commit` as main, its files links into blobs.
class HubCache : public testing::Test {
 protected:
  void add(const std::string& name, const fs::path& from, const std::string& at = commit) {
    const std::string blob = "blob-" + std::to_string(count_++);
    cache_.copy(from, "models--org--name/blobs/" + blob);
    const fs::path link = cache_ / ("models--org--name/snapshots/" + at + "/" + name);
    fs::create_directories(link.parent_path());
    fs::create_symlink(fs::relative(cache_ / ("models--org--name/blobs/" + blob), link.parent_path()), link);
  }
  void SetUp() override {
    cache_.write("models--org--name/refs/main", commit);
    for (const char* name : {"config.json", "model.safetensors", "generation_config.json"}) add(name, golden("tiny") / name);
  }
  HubOptions options(const std::string& revision = "main", const std::string& subfolder = "") const {
    return {.revision = revision, .subfolder = subfolder, .cache_dir = cache_.path()};
  }
  LoadOptions load_options() const { return {.cache_dir = cache_.path()}; }

  Folder cache_;
  int count_ = 0;
};

TEST_F(HubCache, H278_a_file_is_in_the_snapshot_that_main_stands_for) {
  EXPECT_EQ(repo_folder_name("org/name"), "models--org--name");
  const CacheEntry found = try_to_load_from_cache("org/name", "config.json", options());
  EXPECT_EQ(found.state, CacheState::found);
  EXPECT_EQ(found.path, cache_ / ("models--org--name/snapshots/" + commit + "/config.json"));
  EXPECT_EQ(try_to_load_from_cache("org/name", "config.json", options()).path, found.path);
  const auto model = from_pretrained("org/name", load_options());
  EXPECT_EQ(model->class_name(), "LlamaForCausalLM");
  EXPECT_EQ(model->config().text("_name_or_path"), "org/name");
  EXPECT_NE(model->generation_config_json, "");
}

TEST_F(HubCache, H279_revisions) {
  add("config.json", golden("tiny/config.json"), other_commit);
  cache_.write("models--org--name/refs/refs/pr/1", other_commit);
  cache_.write("models--org--name/refs/v1.0", other_commit);
  for (const char* revision : {"refs/pr/1", "v1.0", other_commit.c_str()})
    EXPECT_EQ(try_to_load_from_cache("org/name", "config.json", options(revision)).path,
              cache_ / ("models--org--name/snapshots/" + other_commit + "/config.json"));
  EXPECT_EQ(resolve_revision("org/name", options()), commit);
  EXPECT_EQ(try_to_load_from_cache("org/name", "config.json", options("elsewhere")).state, CacheState::not_cached);
  EXPECT_EQ(try_to_load_from_cache("org/name", "model.safetensors", options("v1.0")).state, CacheState::not_cached)
      << "never of another revision";
  LoadOptions load = load_options();
  load.revision = "elsewhere";
  EXPECT_THAT(error_of([&] { from_pretrained("org/name", load); }), HasSubstr("not revision elsewhere"));
  EXPECT_THAT(error_of([&] { resolve_revision("org/name", options("../../x")); }), HasSubstr("leads out of the cache"));
}

TEST_F(HubCache, H280_known_absence) {
  cache_.write("models--org--name/.no_exist/" + commit + "/tokenizer.json", "");
  EXPECT_EQ(try_to_load_from_cache("org/name", "tokenizer.json", options()).state, CacheState::known_absent);
  EXPECT_EQ(try_to_load_from_cache("org/name", "vocab.json", options()).state, CacheState::not_cached);
  const ModelFiles files("org/name", options());
  EXPECT_EQ(files.find("tokenizer.json"), std::nullopt);
  EXPECT_THAT(error_of([&] { files.at("tokenizer.json"); }),
              HasSubstr("does not appear to have a file named tokenizer.json: the repository has none"));
  EXPECT_THAT(error_of([&] { files.at("vocab.json"); }), HasSubstr("it is not in the cached files"));
}

TEST_F(HubCache, H283_a_folder_counts_before_the_cache) {
  Folder here;
  const fs::path before = fs::current_path();
  fs::current_path(here.path());
  fs::create_directories("org/name");
  const std::string text = error_of([&] { ModelFiles("org/name", options("main")).at("config.json"); });
  const std::string sub = error_of([&] {
    fs::create_directories("org/name/sub");
    ModelFiles("org/name", options("main", "sub")).at("config.json");
  });
  fs::current_path(before);
  EXPECT_THAT(text, HasSubstr("org/name/ does not appear to have a file named config.json"));
  EXPECT_THAT(sub, HasSubstr("a file named sub/config.json"));
}

TEST_F(HubCache, H284_not_there_and_not_fetched) {
  const std::string text = error_of([&] { from_pretrained("org/other", load_options()); });
  EXPECT_THAT(text, HasSubstr("there is no folder of that name, and it is not in the cache of the hub"));
  EXPECT_THAT(text, HasSubstr("Calque does not connect to the hub"));
  EXPECT_THAT(text, HasSubstr("models--org--other"));
  const Environment hub("HF_HUB_OFFLINE", std::nullopt);
  for (const char* yes : {"1", "ON", "yes", "True"}) {
    const Environment offline("TRANSFORMERS_OFFLINE", yes);
    EXPECT_TRUE(is_offline_mode()) << yes;
  }
  for (const char* no : {"0", "off", "", "maybe"}) {
    const Environment offline("TRANSFORMERS_OFFLINE", no);
    EXPECT_FALSE(is_offline_mode()) << no;
  }
}

TEST_F(HubCache, H285_shards_of_one_snapshot) {
  fs::remove(cache_ / ("models--org--name/snapshots/" + commit + "/model.safetensors"));
  for (const auto& entry : fs::directory_iterator(golden("tiny_sharded")))
    if (entry.path().filename().string().starts_with("model")) add(entry.path().filename().string(), entry.path());
  EXPECT_EQ(from_pretrained("org/name", load_options())->state_dict().size(), 21u);
  fs::remove(cache_ / ("models--org--name/snapshots/" + commit + "/model-00003-of-00003.safetensors"));
  add("model-00003-of-00003.safetensors", golden("tiny_sharded/model-00003-of-00003.safetensors"), other_commit);
  EXPECT_THAT(error_of([&] { from_pretrained("org/name", load_options()); }),
              HasSubstr("a file named model-00003-of-00003.safetensors"));
}

TEST(HubCacheNames, H286_names_of_repositories) {
  for (const char* good : {"foo", "foo/bar", "123", "Foo-BAR_foo.bar123", "a/b"})
    EXPECT_NO_THROW(validate_repo_id(good)) << good;
  const std::string long_name(97, 'a');
  for (const char* bad : {"datasets/foo/bar", ".repo_id", "foo--bar", "foo.git", "other..repo", "-a", "a-", "a.", "", "a/",
                          "/a", "caf\xc3\xa9", "a b", long_name.c_str()}) {
    EXPECT_THAT(error_of([&] { validate_repo_id(bad); }), HasSubstr("incorrect model name '" + std::string(bad) + "'"))
        << bad;
    EXPECT_THAT(error_of([&] { validate_repo_id(bad); }), HasSubstr("expected a folder, or a repository of the hub")) << bad;
  }
}

TEST_F(HubCache, H287_broken_links_and_plain_files) {
  cache_.write("models--org--name/snapshots/" + commit + "/plain.txt", "plain");
  cache_.write("models--org--name/snapshots/" + commit + "/.DS_Store", "");
  cache_.write("models--org--name/snapshots/.DS_Store", "");
  EXPECT_EQ(try_to_load_from_cache("org/name", "plain.txt", options()).state, CacheState::found);
  CacheScan scan = scan_cache_dir(cache_.path());
  ASSERT_EQ(scan.repos.size(), 1u);
  EXPECT_EQ(scan.repos[0].repo_id, "org/name");
  ASSERT_EQ(scan.repos[0].revisions.size(), 1u);
  EXPECT_EQ(scan.repos[0].revisions[0].commit, commit);
  EXPECT_THAT(scan.repos[0].revisions[0].refs, ElementsAre("main"));
  EXPECT_THAT(scan.repos[0].revisions[0].files,
              ElementsAre("config.json", "generation_config.json", "model.safetensors", "plain.txt"));
  EXPECT_THAT(scan.problems, IsEmpty());

  fs::remove(cache_ / "models--org--name/blobs/blob-1");
  EXPECT_EQ(try_to_load_from_cache("org/name", "model.safetensors", options()).state, CacheState::not_cached);
  scan = scan_cache_dir(cache_.path());
  ASSERT_EQ(scan.problems.size(), 1u);
  EXPECT_THAT(scan.problems[0], HasSubstr("model.safetensors: its blob is missing"));
}

TEST(HubCacheNames, where_the_cache_is) {
  const Environment a("HF_HUB_CACHE", std::nullopt), b("HUGGINGFACE_HUB_CACHE", std::nullopt),
      c("TRANSFORMERS_CACHE", std::nullopt);
  const Environment d("HF_HOME", std::nullopt), e("XDG_CACHE_HOME", std::nullopt), f("HOME", "/home/someone");
  EXPECT_EQ(hub_cache_dir(), "/home/someone/.cache/huggingface/hub");
  const Environment home("HF_HOME", "~/hf");
  EXPECT_EQ(hub_cache_dir(), "/home/someone/hf/hub");
  const Environment cache("HF_HUB_CACHE", "/data/hub");
  EXPECT_EQ(hub_cache_dir(), "/data/hub");
}

}  // namespace
}  // namespace calque::load_test
