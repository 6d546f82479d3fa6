// Where a model's files are: a folder, or Hugging Face's cache on this machine (models--ORG--NAME with blobs, refs and
// snapshots). Calque never fetches: what is neither is an error that says where was looked. ModelFiles answers for both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace calque {

struct HubOptions {
  std::string revision = "main";         // a branch, a tag, a commit, refs/pr/1
  std::string subfolder = {};            // where in the repository or folder
  std::filesystem::path cache_dir = {};  // by default hub_cache_dir()
};

// HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, TRANSFORMERS_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub.
std::filesystem::path hub_cache_dir();
// Do HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE say 1, ON, YES or TRUE?
bool is_offline_mode();

// UserError unless it is NAME or ORG/NAME as the hub allows.
void validate_repo_id(std::string_view repo_id);
std::string repo_folder_name(std::string_view repo_id);  // "models--org--name"
// The commit that a revision stands for in this cache: what refs/REVISION holds, else the revision itself.
std::string resolve_revision(std::string_view repo_id, const HubOptions& options = {});

enum class CacheState { found, not_cached, known_absent };  // known_absent: the hub said that there is no such file
struct CacheEntry {
  CacheState state = CacheState::not_cached;
  std::filesystem::path path = {};  // when found
};
// `filename` without the subfolder. A link to a blob that is gone counts as not cached.
CacheEntry try_to_load_from_cache(std::string_view repo_id, const std::string& filename, const HubOptions& options = {});

// The files of one model, all from one folder or one snapshot.
class ModelFiles {
 public:
  // A folder of that name counts before the cache. UserError when there is neither.
  explicit ModelFiles(const std::string& name_or_path, const HubOptions& options = {});

  std::optional<std::filesystem::path> find(const std::string& filename) const;
  std::filesystem::path at(const std::string& filename) const;  // UserError names the file, and where it was looked for
  bool is_folder() const { return is_folder_; }
  const std::filesystem::path& folder() const { return folder_; }  // where they are, the subfolder included
  std::string where() const;                                       // for messages
  // Names of the files there, sorted; the first few, for messages.
  std::string listing(size_t most = 8) const;

 private:
  std::string name_;
  HubOptions options_;
  bool is_folder_ = false;
  std::filesystem::path folder_;
};

// What a cache holds.
struct CachedRevision {
  std::string commit;
  std::vector<std::string> refs;   // names that stand for it
  std::vector<std::string> files;  // sorted paths
  uint64_t bytes = 0;
};
struct CachedRepo {
  std::string repo_id;
  std::vector<CachedRevision> revisions;
};
struct CacheScan {
  std::vector<CachedRepo> repos;
  std::vector<std::string> problems;  // broken links, refs to commits that are not there
};
CacheScan scan_cache_dir(const std::filesystem::path& cache_dir = {});

}  // namespace calque
