#include "calque/hub/hub_cache.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "calque/base/error.h"
#include "file/file_format.h"
#include "hub/near_names.h"

namespace calque {

namespace fs = std::filesystem;

namespace {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

fs::path expanded(const std::string& path) {
  const std::optional<std::string> home = environment("HOME");
  if (home && (path == "~" || path.starts_with("~/"))) return fs::path(*home + path.substr(1));
  return path;
}

bool is_true(const std::optional<std::string>& value) {
  if (!value) return false;
  std::string upper = *value;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return upper == "1" || upper == "ON" || upper == "YES" || upper == "TRUE";
}

[[noreturn]] void bad_repo_id(std::string_view repo_id, const std::string& why) {
  if (const size_t scheme = repo_id.find("://"); scheme != std::string_view::npos) {
    const std::string_view address = repo_id.substr(scheme + 3);
    const size_t host = std::min(address.find('/'), address.size() - 1);
    std::string name(address.substr(host + 1));
    for (const std::string_view rest : {"/tree/", "/blob/", "/resolve/", "?", "#"}) name = name.substr(0, name.find(rest));
    throw UserError("'" + std::string(repo_id) +
                    "' is an address; expected a folder, or the name of a repository of the hub" +
                    (name.empty() ? "" : ": " + name));
  }
  throw UserError("incorrect model name '" + std::string(repo_id) + "': expected a folder, or a repository of the hub; " +
                  why);
}

// A relative path that stays where it is.
bool stays_inside(const fs::path& path) {
  return !path.is_absolute() && std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

fs::path repo_cache(std::string_view repo_id, const HubOptions& options) {
  return (options.cache_dir.empty() ? hub_cache_dir() : options.cache_dir) / repo_folder_name(repo_id);
}

// "org/name" of "models--org--name".
std::string repo_of_folder(const std::string& folder) {
  std::string out = folder.substr(std::string_view("models--").size());
  if (const size_t dashes = out.find("--"); dashes != std::string::npos) out.replace(dashes, 2, "/");
  return out;
}

std::string first_word(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

}  // namespace

fs::path hub_cache_dir() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE"})
    if (const auto path = environment(name)) return expanded(*path);
  if (const auto home = environment("HF_HOME")) return expanded(*home) / "hub";
  if (const auto cache = environment("XDG_CACHE_HOME")) return expanded(*cache) / "huggingface" / "hub";
  return expanded("~") / ".cache" / "huggingface" / "hub";
}

bool is_offline_mode() { return is_true(environment("HF_HUB_OFFLINE")) || is_true(environment("TRANSFORMERS_OFFLINE")); }

void validate_repo_id(std::string_view repo_id) {
  if (std::count(repo_id.begin(), repo_id.end(), '/') > 1) bad_repo_id(repo_id, "its form is NAME or ORG/NAME");
  for (size_t at = 0; at <= repo_id.size();) {
    const std::string_view part = repo_id.substr(at, repo_id.find('/', at) - at);
    const auto allowed = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    };
    if (part.empty() || part.size() > 96 || !std::all_of(part.begin(), part.end(), allowed) || part.front() == '-' ||
        part.front() == '.' || part.back() == '-' || part.back() == '.')
      bad_repo_id(repo_id,
                  "each part has 1 to 96 letters, digits, '-', '_' or '.', and does not start or end with '-' or '.'");
    at += part.size() + 1;
  }
  if (repo_id.find("--") != std::string_view::npos || repo_id.find("..") != std::string_view::npos)
    bad_repo_id(repo_id, "there is no -- or .. in it");
  if (repo_id.ends_with(".git")) bad_repo_id(repo_id, "it does not end with .git");
}

std::string repo_folder_name(std::string_view repo_id) {
  std::string out = "models--";
  for (const char c : repo_id) out += c == '/' ? std::string("--") : std::string(1, c);
  return out;
}

std::string resolve_revision(std::string_view repo_id, const HubOptions& options) {
  const std::string revision = options.revision.empty() ? "main" : options.revision;
  if (!stays_inside(revision)) throw UserError("revision '" + revision + "' leads out of the cache");
  const fs::path ref = repo_cache(repo_id, options) / "refs" / revision;
  if (!fs::is_regular_file(ref)) return revision;
  const std::string commit = first_word(ref);
  if (commit.empty() || !stays_inside(commit) || commit.find('/') != std::string::npos)
    throw UserError(ErrorKind::bad_file, ref.string() + " holds '" + commit + "', expected a commit");
  return commit;
}

CacheEntry try_to_load_from_cache(std::string_view repo_id, const std::string& filename, const HubOptions& options) {
  validate_repo_id(repo_id);
  const fs::path inside = fs::path(options.subfolder) / filename;
  if (!stays_inside(inside)) throw UserError("file '" + inside.string() + "' leads out of the repository");
  const fs::path repo = repo_cache(repo_id, options);
  const std::string commit = resolve_revision(repo_id, options);
  if (fs::is_regular_file(repo / ".no_exist" / commit / inside)) return {CacheState::known_absent};
  const fs::path file = repo / "snapshots" / commit / inside;
  if (fs::is_regular_file(file)) return {CacheState::found, file};
  return {};
}

// For a message: names in the cache that are nearly this one.
static std::string cached_like(const std::string& name, const HubOptions& options) {
  const fs::path root = options.cache_dir.empty() ? hub_cache_dir() : options.cache_dir;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error))
    if (const std::string folder = it->path().filename().string(); folder.starts_with("models--"))
      names.push_back(repo_of_folder(folder));
  return did_you_mean(name, names);
}

// For a message about a folder without a config.json: what is there instead, and what to do with that.
static std::string what_else_it_is(const fs::path& folder) {
  constexpr int most = 64;  // files that are looked at
  std::error_code error;
  int looked = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end && looked < most; it.increment(error), ++looked) {
    const fs::path path = it->path();
    if (fs::is_regular_file(path / "config.json", error))
      return "; its folder " + path.filename().string() + " has a config.json: name that one";
    if (!fs::is_regular_file(path, error)) continue;
    try {
      const FileFormat found = format_of_file(path.string());
      if (holds_model(found))
        return "; " + path.filename().string() + " is " + std::string(format_name(found)) + ": " +
               std::string(next_step(found));
    } catch (const UserError&) {  // it cannot be read
    }
  }
  return "";
}

ModelFiles::ModelFiles(const std::string& name_or_path, const HubOptions& options) : name_(name_or_path), options_(options) {
  if (!stays_inside(options.subfolder))
    throw UserError("subfolder '" + options.subfolder + "' leads out of the model's folder");
  if (fs::is_directory(name_or_path)) {
    is_folder_ = true;
    folder_ = fs::path(name_or_path) / options.subfolder;
    if (!fs::is_directory(folder_))
      throw UserError(ErrorKind::bad_file, "no folder '" + options.subfolder + "' in " + name_or_path);
    return;
  }
  if (fs::path(name_or_path).is_absolute() || name_or_path.starts_with("./") || name_or_path.starts_with("../"))
    throw UserError(ErrorKind::bad_file,
                    "no folder " + name_or_path + (fs::exists(name_or_path) ? ": it is a file" : ": there is no such path"));
  validate_repo_id(name_or_path);
  const fs::path repo = repo_cache(name_or_path, options);
  const std::string commit = resolve_revision(name_or_path, options);
  folder_ = repo / "snapshots" / commit / options.subfolder;
  if (fs::is_directory(folder_)) return;
  std::string text = "cannot load '" + name_ + "': there is no folder of that name, and ";
  if (!fs::is_directory(repo))
    text += "it is not in the cache of the hub (" + repo.string() + ")";
  else if (!fs::is_directory(repo / "snapshots" / commit))
    text += "the cache of the hub has it, but not revision " + options.revision + " (" +
            (repo / "snapshots" / commit).string() + ")";
  else
    text += "in the cache of the hub it has no folder '" + options.subfolder + "'";
  const bool other = options.revision != "main";
  throw UserError(ErrorKind::bad_file,
                  text + cached_like(name_or_path, options) +
                      ". Calque does not connect to the hub: fetch it first, for example with `hf download " + name_ +
                      (other ? " --revision " + options.revision : "") + "` (huggingface-cli download in older releases)");
}

std::optional<fs::path> ModelFiles::find(const std::string& filename) const {
  if (!stays_inside(filename)) throw UserError(ErrorKind::bad_file, "file '" + filename + "' leads out of " + where());
  const fs::path file = folder_ / filename;
  return fs::is_regular_file(file) ? std::optional(file) : std::nullopt;
}

fs::path ModelFiles::at(const std::string& filename) const {
  if (const auto file = find(filename)) return *file;
  const std::string full = (fs::path(options_.subfolder) / filename).string();
  std::string text = where() + " does not appear to have a file named " + full;
  if (!is_folder_) {
    const bool absent = try_to_load_from_cache(name_, filename, options_).state == CacheState::known_absent;
    text += absent ? ": the repository has none" : "; Calque does not connect to the hub, and it is not in the cached files";
  }
  throw UserError(ErrorKind::bad_file,
                  text + ". It has " + listing() + (filename == "config.json" ? what_else_it_is(folder_) : ""));
}

std::string ModelFiles::where() const {
  if (is_folder_) return folder_.string();
  return name_ + " (revision " + options_.revision + ", in the cache at " + folder_.string() + ")";
}

std::string ModelFiles::listing(size_t most) const {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
    names.insert(entry.path().filename().string() + (entry.is_directory() ? "/" : ""));
  if (names.empty()) return "no files";
  std::string out;
  size_t count = 0;
  for (const std::string& name : names) {
    if (count++ == most) return out + ", and " + std::to_string(names.size() - most) + " more";
    out += (out.empty() ? "" : ", ") + name;
  }
  return out;
}

// ---- scanning -------------------------------------------------------------------------------------------------------

static CachedRepo scan_repo(const fs::path& folder, std::vector<std::string>& problems) {
  CachedRepo repo;
  repo.repo_id = repo_of_folder(folder.filename().string());
  std::map<std::string, std::vector<std::string>> refs;
  if (fs::is_directory(folder / "refs"))
    for (const auto& entry : fs::recursive_directory_iterator(folder / "refs"))
      if (entry.is_regular_file() && entry.path().filename() != ".DS_Store")
        refs[first_word(entry.path())].push_back(entry.path().lexically_relative(folder / "refs").string());
  if (!fs::is_directory(folder / "snapshots")) {
    problems.push_back(folder.string() + ": it has no snapshots");
    return repo;
  }
  std::set<fs::path> snapshots;
  for (const auto& entry : fs::directory_iterator(folder / "snapshots"))
    if (entry.path().filename() != ".DS_Store") snapshots.insert(entry.path());
  for (const fs::path& snapshot : snapshots) {
    if (!fs::is_directory(snapshot)) {
      problems.push_back(snapshot.string() + ": expected a folder, found a file");
      continue;
    }
    CachedRevision revision;
    revision.commit = snapshot.filename().string();
    for (const auto& entry : fs::recursive_directory_iterator(snapshot)) {
      if (entry.path().filename() == ".DS_Store" || entry.is_directory()) continue;
      if (!fs::is_regular_file(entry.path())) {
        problems.push_back(entry.path().string() + ": its blob is missing");
        continue;
      }
      revision.files.push_back(entry.path().lexically_relative(snapshot).string());
      revision.bytes += fs::file_size(entry.path());
    }
    std::sort(revision.files.begin(), revision.files.end());
    if (const auto at = refs.find(revision.commit); at != refs.end()) {
      revision.refs = at->second;
      std::sort(revision.refs.begin(), revision.refs.end());
      refs.erase(at);
    }
    repo.revisions.push_back(std::move(revision));
  }
  for (const auto& [commit, names] : refs)
    problems.push_back((folder / "refs" / names[0]).string() + ": it stands for " + commit +
                       ", of which there is no snapshot");
  return repo;
}

CacheScan scan_cache_dir(const fs::path& cache_dir) {
  const fs::path root = cache_dir.empty() ? hub_cache_dir() : cache_dir;
  if (!fs::is_directory(root)) throw UserError(ErrorKind::bad_file, "no cache of the hub at " + root.string());
  CacheScan out;
  std::set<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.is_directory() && entry.path().filename().string().starts_with("models--")) folders.insert(entry.path());
  for (const fs::path& folder : folders) out.repos.push_back(scan_repo(folder, out.problems));
  return out;
}

}  // namespace calque
